"""How is one input made out of others, so that it is nearly right and wrong somewhere?

Blind changes of bytes are stopped by the first check of a format. So a container is opened,
something inside it is changed, and it is closed again: a gzip or zip of changed bytes, a
safetensors file whose header lies, JSON with one value replaced.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
import zipfile
from collections.abc import Callable, Sequence
from typing import Any

#: Longest input made; longer ones are cut.
LONGEST = 1 << 16

_INTERESTING = (0, 1, 2, 7, 127, 128, 255, 256, 4096, 65535, 2**31 - 1, 2**31, 2**32 - 1)
_BIG = (*_INTERESTING, 2**40, 2**53 + 1, 2**63 - 1, 2**64 - 1)
_TEXTS = (
    b"", b" ", b"\n", b"\r\n", b"\r", b"\t", b",", b'"', b'""', b"'", b"\\", b"\0", b"\xff",
    b"\xef\xbb\xbf", b"\xff\xfe", b"\xe2\x80\xa8", b"\xc2\x85", b"\xd8\xa7", b"\xed\xa0\x80",
    b"nan", b"inf", b"-inf", b"1e999", b"-0", b"1e-400", b"9" * 30, b"9" * 5000, b"null",
    b"true", b"{}", b"[]", b"../", b"/", b"[" * 3000, b"{\"a\":" * 3000, b"a" * 5000, b"a " * 600,
)  # fmt: skip
_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 3.5, -0.0, 1e308, float("inf"), float("nan"), 10**6, 10**9,
    2**63, 10**30, "", "a", "../x", "/etc", "\0", "\ud800", "خايب", [], {}, [[]], [None],
    ["a", "a"], {"a": 1}, "x" * 3000,
)  # fmt: skip


class Mutator:
    """Makes inputs out of seeds and of those found worth keeping.

    Args:
        tokens: pieces that mean something in the format, put in here and there.
        draw: the source of randomness.
    """

    def __init__(self, tokens: Sequence[bytes], draw: random.Random) -> None:
        self.tokens = [*tokens, *_TEXTS]
        self.draw = draw

    def mutate(self, name: str, data: bytes, pool: Sequence[bytes]) -> bytes:
        """An input out of `data`, a file of this name; `pool` has others to splice with."""
        if self.draw.random() < 0.7:
            changed = self._inside(name, data)
            if changed is not None:
                return changed[:LONGEST]
        return self._bytes(data, pool)[:LONGEST]

    def _bytes(self, data: bytes, pool: Sequence[bytes]) -> bytes:
        draw = self.draw
        changed = bytearray(data)
        for _ in range(draw.choice((1, 1, 1, 2, 3, 8))):
            at = draw.randrange(len(changed) + 1)
            end = min(len(changed), at + draw.choice((1, 1, 2, 4, 8, 30, 300)))
            match draw.randrange(12):
                case 0:
                    changed[at:end] = bytes(draw.randrange(256) for _ in range(end - at))
                case 1 if at < len(changed):
                    changed[at] ^= 1 << draw.randrange(8)
                case 2:
                    del changed[at:end]
                case 3:
                    changed[at:at] = changed[at:end] * draw.choice((1, 2, 10, 100))
                case 4 | 5:
                    changed[at:at] = draw.choice(self.tokens)
                case 6:
                    changed[at:end] = draw.choice(self.tokens)
                case 7:
                    del changed[at:]
                case 8:
                    size, kind = draw.choice(((1, "B"), (2, "H"), (4, "I"), (8, "Q")))
                    number = draw.choice(_BIG) & ((1 << 8 * size) - 1)
                    order = draw.choice("<<<>")
                    changed[at : at + size] = struct.pack(f"{order}{kind}", number)
                case 9:
                    self._number(changed, at)
                case 10:
                    self._lines(changed)
                case _ if pool:
                    other = draw.choice(pool)
                    begin = draw.randrange(len(other) + 1)
                    changed[at:end] = other[begin : begin + draw.choice((1, 10, 100, 1000))]
            del changed[4 * LONGEST :]
        return bytes(changed)

    def _number(self, changed: bytearray, at: int) -> None:
        """Replace the digits next behind `at` by another number."""
        while at < len(changed) and not 48 <= changed[at] <= 57:
            at += 1
        end = at
        while end < len(changed) and 48 <= changed[end] <= 57:
            end += 1
        changed[at:end] = str(self.draw.choice(_BIG)).encode()

    def _lines(self, changed: bytearray) -> None:
        lines = bytes(changed).split(b"\n")
        one, other = self.draw.randrange(len(lines)), self.draw.randrange(len(lines))
        match self.draw.randrange(4):
            case 0:
                lines[one], lines[other] = lines[other], lines[one]
            case 1:
                del lines[one]
            case 2:
                lines.insert(other, lines[one])
            case _:
                lines[one:one] = [lines[other]] * 50
        changed[:] = b"\n".join(lines)

    def _inside(self, name: str, data: bytes) -> bytes | None:
        """Change what a container holds; None for what is none, or a broken one."""
        opener: Callable[[bytes], bytes] | None = None
        if data.startswith(b"\x1f\x8b"):
            opener = self._gzip
        elif data.startswith(b"PK"):
            opener = self._zip
        elif name.endswith(".safetensors"):
            opener = self._safetensors
        elif name.endswith(".json"):
            opener = self._json
        elif name.endswith(".npy"):
            opener = self._npy
        try:
            return opener(data) if opener else None
        except Exception:
            return None

    def _gzip(self, data: bytes) -> bytes:
        whole = gzip.decompress(data)
        return gzip.compress(self._bytes(whole, ()), compresslevel=1, mtime=0)

    def _zip(self, data: bytes) -> bytes:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(info.filename, archive.read(info)) for info in archive.infolist()]
        at = self.draw.randrange(len(members))
        name, content = members[at]
        if self.draw.random() < 0.1:
            name = self.draw.choice(("../" + name, "/" + name, name * 2, "", "data.pkl", "a.txt"))
        members[at] = (name, self._bytes(content, ()))
        buffer = io.BytesIO()
        packing = self.draw.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
        with zipfile.ZipFile(buffer, "w", packing) as archive:
            for name, content in members:
                archive.writestr(zipfile.ZipInfo(name), content)
        return buffer.getvalue()

    def _safetensors(self, data: bytes) -> bytes:
        size = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + size])
        rest = data[8 + size :]
        match self.draw.randrange(6):
            case 0:
                header.pop(self.draw.choice(list(header)))
            case 1:
                name = self.draw.choice(list(header))
                header[self.draw.choice([*header, "x", "encoder.999999999.embedding.words"])] = (
                    header[name]
                )
            case 2:
                entry = header[self.draw.choice(list(header))]
                entry["shape"] = entry["shape"][::-1] or [1]
            case 3:
                entry = header[self.draw.choice(list(header))]
                entry["dtype"] = self.draw.choice(
                    ("F16", "BF16", "F32", "F64", "I8", "I64", "BOOL", "F8_E4M3", "U8", "C64")
                )
            case 4:
                self._replace(header)
            case _:
                rest = self._bytes(rest, ())[: len(rest)].ljust(len(rest), b"\0")
        head = json.dumps(header).encode()
        return len(head).to_bytes(8, "little") + head + rest

    def _npy(self, data: bytes) -> bytes:
        end = data.index(b"\n") + 1
        head = self._bytes(data[10 : end - 1], ()) + b"\n"
        return data[:8] + struct.pack("<H", len(head) & 0xFFFF) + head + data[end:]

    def _json(self, data: bytes) -> bytes:
        document = json.loads(data)
        for _ in range(self.draw.choice((1, 1, 2))):
            self._replace(document)
        return json.dumps(document, ensure_ascii=self.draw.random() < 0.9).encode(
            "utf-8", "surrogatepass"
        )

    def _replace(self, node: Any) -> None:
        """Replace, remove, repeat or add one value, at any depth."""
        while isinstance(node, (dict, list)) and node:
            keys = list(node) if isinstance(node, dict) else list(range(len(node)))
            key = self.draw.choice(keys)
            if isinstance(node[key], (dict, list)) and node[key] and self.draw.random() < 0.7:
                node = node[key]
                continue
            match self.draw.randrange(4):
                case 0:
                    del node[key]
                case 1 if isinstance(node, list):
                    node.extend([node[key]] * self.draw.choice((1, 5)))
                case 2 if isinstance(node[key], int):
                    node[key] = self.draw.choice((node[key] + 1, -node[key], 10 * node[key]))
                case _:
                    node[key] = self.draw.choice(_VALUES)
            return
