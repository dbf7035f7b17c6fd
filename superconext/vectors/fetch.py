"""How does a public file of word vectors come here whole, checked and only when asked for?

The command `vectors fetch` calls this and nothing else does. A file is downloaded beside its
place, checked, and only then renamed. Where its authors publish no hash, the one of the first
download is kept in the cache and every later download is compared with it.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from superconext.core.errors import VectorsError
from superconext.core.files import beside, sync, write_json
from superconext.vectors.cache import cache_dir
from superconext.vectors.catalogue import PublicVectors
from superconext.vectors.download import download

_BLOCK = 1 << 20


@dataclass(frozen=True)
class Fetched:
    """A file that is there and checked.

    Attributes:
        path: what to give to `--vectors` or `vectors convert`.
        bytes, sha256: of that file.
        check: what its content was compared with, for people.
        downloaded: False where a file was there already.
    """

    path: Path
    bytes: int
    sha256: str
    check: str
    downloaded: bool


def fetch(
    entry: PublicVectors,
    out: str | Path | None = None,
    *,
    url_base: str | None = None,
    progress: Callable[[float], None] | None = None,
    say: Callable[[str], None] | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Fetched:
    """Download a file of the catalogue, or check the one that is there already.

    Args:
        out: file to write, or folder to write it into; `downloads` in the cache by default.
        url_base: address of a folder that holds the same file, instead of the catalogue's.
        progress: called with the share downloaded, 0 to 1.
        say: called with lines for people.
        pause: waits so many seconds before another attempt.

    Raises:
        VectorsError: no connection, a server that refuses, too many bytes, or another hash;
            an earlier file is left as it was.
    """
    say = say or _silent
    url = entry.url if url_base is None else f"{url_base.rstrip('/')}/{entry.file_name}"
    if urlsplit(url).scheme not in ("http", "https"):
        raise VectorsError(f"{url}: expected an address of http or https; give such a one")
    final = _place(entry, out)
    packed = final.with_name(final.name + ".gz") if entry.unpack else final
    ledger = _Ledger(cache_dir() / "downloads" / "sha256.json")
    if os.path.lexists(final):
        # A published MD5 is of the packed file, so what was unpacked goes by the record.
        published = None if entry.unpack else entry.md5
        digests, check = _checked(final, _unpacked_name(entry), published, ledger)
        return Fetched(final, final.stat().st_size, digests["sha256"], check, False)
    final.parent.mkdir(parents=True, exist_ok=True)
    here = os.path.lexists(packed)
    if not here:
        part = packed.with_name(packed.name + ".part")
        by_hand = (
            f"or download that address elsewhere, save it as {packed} and run the command again"
        )
        download(url, part, entry, by_hand, progress or _ignore, say, pause)
        try:
            digests, check = _checked(part, entry.file_name, entry.md5, ledger)
        except VectorsError:
            part.unlink()
            raise
        sync(part)
        part.replace(packed)
        sync(packed.parent)
    else:
        digests, check = _checked(packed, entry.file_name, entry.md5, ledger)
    if entry.unpack:
        say(f"unpacking {packed}")
        sha256 = _unpack(packed, final, entry.limit)
        ledger.record(_unpacked_name(entry), sha256)
        digests = {"sha256": sha256}
        if not here:
            packed.unlink()
    return Fetched(final, final.stat().st_size, digests["sha256"], check, not here)


def _silent(line: str) -> None:
    pass


def _ignore(share: float) -> None:
    pass


def _unpacked_name(entry: PublicVectors) -> str:
    return entry.file_name.removesuffix(".gz") if entry.unpack else entry.file_name


def _place(entry: PublicVectors, out: str | Path | None) -> Path:
    name = _unpacked_name(entry)
    if out is None:
        return cache_dir() / "downloads" / name
    path = Path(out)
    return path / name if path.is_dir() or str(out).endswith(("/", os.sep)) else path


class _Ledger:
    """SHA-256 of the files that came without a published hash, by file name."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> dict[str, str]:
        try:
            known: Any = json.loads(self.path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            known = error
        if not isinstance(known, dict) or not all(isinstance(v, str) for v in known.values()):
            raise VectorsError(
                f"{self.path}: not the record of downloads it should be; expected a JSON object "
                "of file names and hashes; remove it, and the next downloads are recorded anew"
            )
        return known

    def record(self, name: str, sha256: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_json(self.path, {**self.read(), name: sha256})


def _checked(path: Path, name: str, md5: str | None, ledger: _Ledger) -> tuple[dict[str, str], str]:
    """Hashes of a file and what they were compared with. Raises VectorsError if they differ."""
    if not path.is_file():
        raise VectorsError(f"{path} is no plain file; expected a file to write: choose another")
    digests = _digests(path)
    if md5 is not None:
        if digests["md5"] != md5:
            raise VectorsError(
                f"{path}: found MD5 {digests['md5']}, expected {md5} as published: the file is "
                "damaged or another one; remove it if it is still there and fetch it again"
            )
        return digests, "MD5 as published"
    recorded = ledger.read().get(name)
    if recorded is None:
        if name.endswith(".gz"):
            _check_gzip(path)
        ledger.record(name, digests["sha256"])
        return digests, "no hash is published; SHA-256 recorded for the next time"
    if digests["sha256"] != recorded:
        raise VectorsError(
            f"{path}: found SHA-256 {digests['sha256']}, expected {recorded} as at the first "
            f"download: the file is damaged or was replaced by its authors; fetch it again, or "
            f"take {name} out of {ledger.path} to accept the new one"
        )
    return digests, "SHA-256 as at the first download"


def _digests(path: Path) -> dict[str, str]:
    # MD5 is what the catalogue has; it tells damage, and https tells who sent the file.
    md5, sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            md5.update(block)
            sha256.update(block)
    return {"md5": md5.hexdigest(), "sha256": sha256.hexdigest()}


def _check_gzip(path: Path) -> None:
    """Where nobody published a hash, the file's own checksum still tells a damaged one."""
    try:
        with gzip.open(path, "rb") as stream:
            if not stream.read(1):  # gzip takes a file of no bytes for a whole one
                raise EOFError("there is nothing in it")
            while stream.read(_BLOCK):
                pass
    except (OSError, EOFError, zlib.error) as error:
        raise VectorsError(_no_gzip(path, error)) from error


def _no_gzip(path: Path, error: Exception) -> str:
    return (
        f"{path}: not a whole gzip file ({error}); expected one, and not the page of a proxy; "
        "fetch it again"
    )


def _unpack(packed: Path, final: Path, limit: int) -> str:
    """Gunzip into place; the SHA-256 of what came out."""
    digest, written = hashlib.sha256(), 0
    with (
        beside(final) as temporary,
        temporary.open("wb") as sink,
        gzip.open(packed, "rb") as source,
    ):
        while True:
            try:
                block = source.read(_BLOCK)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise VectorsError(_no_gzip(packed, error)) from error
            if not block:
                return digest.hexdigest()
            written += len(block)
            if written > limit:
                raise VectorsError(
                    f"{packed}: unpacks to more than {limit} bytes; expected less; the file is "
                    "not what it should be: remove it"
                )
            digest.update(block)
            sink.write(block)
