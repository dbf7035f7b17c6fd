"""Writing files so that nobody ever meets half of one: beside first, then renamed."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: What ends a row or a cell of a table for some reader of it.
_BREAKS = re.compile("\r\n|[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A temporary path in the same folder that becomes `path` if the block succeeds.

    Raises OSError, naming `path`, when the system refuses to write.
    """
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        os.close(handle)
        temporary = Path(name)
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        if error.errno is not None:
            error.filename, error.filename2 = str(path), None
        raise
    except Exception as error:
        # safetensors puts the system's refusal into the words of an error of its own.
        code = re.search(r"\(os error (\d+)\)", str(error))
        if code is None:
            raise
        number = int(code[1])
        raise OSError(number, os.strerror(number), str(path)) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def _umask() -> int:
    # Only setting it reads it; mkstemp's own mode would keep the file from the group.
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text with `\\n` line ends."""
    with beside(path) as temporary:
        temporary.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path, value: Any) -> None:
    """Write a JSON document, indented, non-ASCII kept readable, NaN refused."""
    text = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:  # half of a surrogate pair, which only escapes can carry
            text = json.dumps(value, indent=2, allow_nan=False)
    write_text(path, text + "\n")


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as CSV; the header has every key in order of first appearance."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, buffer.getvalue())


def tsv_cell(text: str) -> str:
    """`text` with every tab and line end as a space, for a TSV has no quoting."""
    return _BREAKS.sub(" ", text)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
