"""Writing files so that nobody ever meets half of one: beside, to the disk, then renamed."""

from __future__ import annotations

import contextlib
import csv
import errno
import hashlib
import io
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superconext.core.locks import try_lock

if TYPE_CHECKING:
    import numpy as np

#: What ends a row or a cell of a table for some reader of it.
_BREAKS = re.compile("\r\n|[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A temporary path in the same folder that becomes `path` if the block succeeds.

    When this returns the content and its name are on the disk, and at no moment, a loss of power
    included, is there half of it under that name. What a process that was killed in here left for
    the same `path` is cleared away. Raises OSError, naming `path`, when the system refuses.
    """
    temporary: Path | None = None
    handle = -1
    try:
        handle, temporary = _made_beside(path)
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        sync(temporary)
        os.replace(temporary, path)
        sync(path.parent)
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
        if handle >= 0:
            os.close(handle)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk.

    Raises OSError when the disk refuses what was written before.
    """
    folder = path.is_dir()
    if folder and sys.platform == "win32":
        return  # there no folder can be opened
    handle = os.open(path, os.O_RDONLY if folder else os.O_RDWR)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems know no such thing for a folder.
        if not folder or error.errno not in (errno.EINVAL, errno.ENOTSUP, errno.EBADF):
            raise
    finally:
        os.close(handle)


def _made_beside(path: Path) -> tuple[int, Path]:
    """A new file, held by a lock while its maker lives, and its name."""
    start, end = f".{path.name}.", ".tmp"
    if sys.platform == "win32":  # no open file can be renamed there
        handle, name = tempfile.mkstemp(end, start, path.parent)
        os.close(handle)
        return -1, Path(name)
    for name in os.listdir(path.parent):
        if len(name) == len(start) + 8 + len(end) and name.startswith(start) and name[-4:] == end:
            with contextlib.suppress(OSError):
                _clear_dead(path.parent / name)
    while True:
        handle, name = tempfile.mkstemp(end, start, path.parent)
        # Somebody who clears away may have taken it in the moment before it was locked.
        if try_lock(handle) is not False and os.fstat(handle).st_nlink:
            return handle, Path(name)
        os.close(handle)


def _clear_dead(temporary: Path) -> None:
    handle = os.open(temporary, os.O_RDWR)
    try:
        if try_lock(handle):
            temporary.unlink()
    finally:
        os.close(handle)


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


def write_array(path: Path, array: np.ndarray) -> None:
    """Write a NumPy file; unlike `np.save`, which does not say, a full disk raises as one."""
    import numpy as np

    class Plain:
        """No file object to NumPy, which would write past Python to one."""

        def __init__(self, write: Any) -> None:
            self.write = write

    with path.open("wb") as stream:
        np.lib.format.write_array(Plain(stream.write), array, allow_pickle=False)  # type: ignore[arg-type]


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
