"""Files and folders that appear whole or not at all: atomic writes, staging folders, the cache."""

from __future__ import annotations

import contextlib
import csv
import ctypes
import errno
import hashlib
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superconext.core.errors import DataError, RunError, SuperConTextError
from superconext.core.locks import locked_file, try_lock

if TYPE_CHECKING:
    import numpy as np

#: What ends a row or a cell of a table for some reader of it.
_BREAKS = re.compile("\r\n|[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]")


#: Paths that `atomic_write` must not replace, see `only_new`.
_new: set[Path] = set()


@contextmanager
def only_new(path: Path) -> Iterator[None]:
    """Inside the block the first `atomic_write` of `path` raises FileExistsError where something
    of that name has appeared meanwhile."""
    _new.add(path)
    try:
        yield
    finally:
        _new.discard(path)


def _place(temporary: Path, path: Path) -> None:
    """Give a finished file its name."""
    if path not in _new:
        os.replace(temporary, path)
        return
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        os.replace(temporary, path)
    _new.discard(path)


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
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
        # Only setting the mask reads it; mkstemp's own mode would keep the file from the group.
        os.umask(mask := os.umask(0o022))
        with contextlib.suppress(OSError):  # of a mount that sets modes itself
            temporary.chmod(0o666 & ~mask)
        sync(temporary)
        _place(temporary, path)
        sync(path.parent)
    except OSError as error:
        if error.errno is not None:
            _blame(error, str(path))
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


def _blame(error: OSError, name: str) -> None:
    """Let an error of the system name this file alone."""
    error.filename = name
    if error.filename2 is not None:
        del error.filename2  # None would be named, too


@contextmanager
def blamed_on(path: Path) -> Iterator[None]:
    """What the system refuses inside the block names `path`, as an open file's errors do not."""
    try:
        yield
    except OSError as error:
        _blame(error, str(path))
        raise


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
        handle, made = temporary_file(path.parent, start, end)
        os.close(handle)
        return -1, made
    for name in os.listdir(path.parent):
        if len(name) == len(start) + 8 + len(end) and name.startswith(start) and name[-4:] == end:
            with contextlib.suppress(OSError):
                _clear_dead(path.parent / name)
    return locked_file(lambda: temporary_file(path.parent, start, end))


def temporary_file(folder: Path, start: str = "", end: str = "") -> tuple[int, Path]:
    """A new file in a folder, open, and its name between `start` and `end`."""
    handle, name = tempfile.mkstemp(end, start, folder)
    return handle, Path(name)


def _clear_dead(temporary: Path) -> None:
    handle = os.open(temporary, os.O_RDWR)
    try:
        if try_lock(handle):
            temporary.unlink()
    finally:
        os.close(handle)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text with `\\n` line ends."""
    with atomic_write(path) as temporary:
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


class _Lines:
    """What `csv` writes to, where its lines are wanted."""

    write = staticmethod(str)


def csv_lines(rows: Iterable[Iterable[Any]], separator: str = ",") -> Iterator[str]:
    """The lines of a table as CSV, a line feed behind each.

    `csv` quotes a cell with a lone carriage return, at which readers end a line, only where its
    own lines end in one.
    """
    line = csv.writer(_Lines(), delimiter=separator, lineterminator="\r\n").writerow
    return (line(row)[:-2] + "\n" for row in rows)


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as CSV; the header has every key in order of first appearance."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = ([row.get(name, "") for name in names] for row in rows)
    write_text(path, "".join(csv_lines([names, *cells])))


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


def refuse_pipe(path: Path, content: str, error: type[SuperConTextError] = DataError) -> None:
    """Raise `error` for a pipe or device; `content`: what is read more than once. It is not opened,
    as one that nobody writes to would be waited for."""
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise error(
            f"{path}: found a pipe or device, which can be read once alone; expected a file, "
            f"as {content} is read more than once: write the text to one"
        )


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


_LOCK = ".lock"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # from linux/fcntl.h and linux/fs.h
#: A folder without a lock file may be one that is just being made, if it is younger.
_SURELY_DEAD = 3600.0  # seconds


@contextmanager
def staging_folder(folder: Path) -> Iterator[Path]:
    """A hidden folder beside `folder` to make things in; it is gone after the block.

    What processes that were killed inside such a block left for the same `folder` is cleared
    away first. Raises OSError, naming `folder`, when the system refuses.
    """
    hidden: Path | None = None
    handle = -1
    try:
        clear_staging(folder)
        handle, lock = locked_file(lambda: _lock_in_new_folder(folder))
        hidden = lock.parent
        yield hidden
    except OSError as error:
        if error.errno is not None:
            _blame(error, _known_as(error.filename, hidden, folder))
        raise
    finally:
        if sys.platform == "win32" and handle >= 0:  # no open file can be removed there
            os.close(handle)
        if hidden is not None:
            _remove(hidden)
        if sys.platform != "win32" and handle >= 0:
            os.close(handle)


def _lock_in_new_folder(folder: Path) -> tuple[int, Path]:
    hidden = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        return os.open(hidden / _LOCK, os.O_RDWR | os.O_CREAT), hidden / _LOCK
    except OSError:  # such as a disk that has room for the folder alone
        shutil.rmtree(hidden, ignore_errors=True)
        raise


def _known_as(path: object, hidden: Path | None, folder: Path) -> str:
    """The name of what lies in `hidden` once it has its place: nobody asked for a hidden one."""
    if hidden is not None and isinstance(path, str) and Path(path).is_relative_to(hidden):
        return str(folder.joinpath(*Path(path).relative_to(hidden).parts[1:]))
    return str(folder)


def free_folder(
    out: str | Path,
    force: bool,
    mark: str,
    what: str,
    error: type[SuperConTextError],
    reads: Iterable[str | Path | None] = (),
) -> Path:
    """The folder to write: a new one, an empty one, or with `force` one with the file `mark`; of a
    link, what it leads to.

    reads: files and folders that the command reads, or None.

    Raises `error` for any other, calling what --force expects by the words `what`, and for one that
    cannot be replaced as a whole, or would take with it what is read.
    """
    folder = Path(out)
    if folder.name in ("", ".."):
        raise error(f"{out} names no new folder; expected one to write: choose a name")
    if not os.path.lexists(folder):
        return folder
    if not force:
        raise error(f"{out} exists already; expected a new folder: choose another or add --force")
    if not (folder / mark).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise error(
            f"{out} is no {what}; --force expects one to replace: choose another name, or remove "
            "it yourself"
        )
    folder = folder.resolve() if folder.is_symlink() else folder
    if os.path.ismount(folder):
        raise error(
            f"{out} is a mount point, whose place no new folder can take; expected another folder: "
            "name one inside it"
        )
    with contextlib.suppress(OSError):  # of a folder that is gone
        if Path.cwd().is_relative_to(folder.resolve()):
            raise error(
                f"{out} holds the folder that this command runs in; expected one to replace: run "
                "it from another folder"
            )
    for path in reads:
        with contextlib.suppress(OSError):
            if path and Path(path).resolve().is_relative_to(folder.resolve()):
                itself = Path(path).resolve() == folder.resolve()
                found = f"is {path} itself" if itself else f"has {path} in it"
                raise error(
                    f"{out} {found}, which is read here and would be removed; expected another "
                    "folder to write: choose one" + ", or move the file" * (not itself)
                )
    return folder


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """An empty folder beside `folder` that gets its name if the block succeeds.

    Raises RunError if something of that name exists.
    """
    if folder.exists() or folder.is_symlink():
        raise RunError(f"{folder} exists already; expected a new folder: choose another")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with staging_folder(folder) as hidden:
        fresh = hidden / "new"
        fresh.mkdir()
        yield fresh
        replace_folder(fresh, folder, hidden / "old", new=True)


def replace_folder(fresh: Path, folder: Path, old: Path, new: bool = False) -> None:
    """Give the finished folder `fresh` the name `folder`, on the disk when this returns.

    An earlier `folder` goes to `old`; with `new`, RunError is raised where one has appeared.
    Where the system can (Linux, on most of its file systems) the two change places in one step,
    so that at no moment `folder` is missing; elsewhere it is between two renames. Raises OSError
    with all as it was.
    """
    sync_tree(fresh)
    if not os.path.lexists(folder):
        fresh.rename(folder)
    elif new:
        raise RunError(
            f"{folder} was made by another process meanwhile; expected a new folder: choose another"
        )
    elif exchange(fresh, folder):
        fresh.rename(old)
    else:
        folder.rename(old)
        try:
            fresh.rename(folder)
        except BaseException:
            if not os.path.lexists(folder):
                old.rename(folder)
            raise
    sync(folder.parent)


def exchange(one: Path, other: Path) -> bool:
    """Let two paths change places in one step; False where that cannot be done."""
    if not sys.platform.startswith("linux"):
        return False
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    if rename is None:  # glibc before 2.28
        return False
    names = (os.fsencode(path) for path in (one, other))
    return bool(rename(_AT_FDCWD, next(names), _AT_FDCWD, next(names), _RENAME_EXCHANGE) == 0)


def sync_tree(folder: Path) -> None:
    """Wait until everything below a folder is on the disk."""
    for place, _, names in os.walk(folder, topdown=False):
        for name in names:
            path = Path(place, name)
            if not path.is_symlink():
                sync(path)
        sync(Path(place))


def remove_folder(folder: Path, place: Path) -> None:
    """Remove `folder`, which lies beside `place`; where there is room, a kill leaves all of it."""
    try:
        with staging_folder(place) as hidden:
            folder.rename(hidden / "removed")
    except OSError:  # such as a disk too full for one more folder
        shutil.rmtree(folder, ignore_errors=True)


def clear_path(path: Path) -> None:
    """Remove what has this name, a file, link or folder, if anything has."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def clear_staging(folder: Path, alone: bool = False) -> None:
    """Remove the hidden folders beside `folder` whose makers have died.

    alone: the caller knows that no other process makes one there now, so that not even a folder
        that was just begun can be a living one's.
    """
    if sys.platform == "win32":
        return
    start = f".{folder.name}-"
    for name in os.listdir(folder.parent):
        if len(name) == len(start) + 8 and name.startswith(start):
            with contextlib.suppress(OSError):
                _clear_dead_folders(folder.parent / name, alone)


def clear_all_staging(parent: Path) -> None:
    """`clear_staging` of every folder in `parent`; and what killed processes left of
    `atomic_write`, or of other hidden folders."""
    for path in list(parent.iterdir()) if parent.is_dir() else ():
        if not path.name.startswith(".") or path.is_symlink():
            continue
        with contextlib.suppress(OSError):
            if path.is_file() and path.suffix == ".tmp" and sys.platform != "win32":
                _clear_dead(path)
            elif path.is_dir() and not (path / _LOCK).exists():
                if time.time() - path.stat().st_mtime > _SURELY_DEAD:
                    shutil.rmtree(path, ignore_errors=True)
        if path.name.startswith(".") and path.name[-9:-8] == "-" and (path / _LOCK).is_file():
            clear_staging(parent / path.name[1:-9])


def _remove(hidden: Path) -> None:
    """The lock goes last: what a kill leaves is then known to be dead."""
    for path in hidden.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != _LOCK:
            path.unlink(missing_ok=True)
    shutil.rmtree(hidden, ignore_errors=True)


def _clear_dead_folders(hidden: Path, alone: bool) -> None:
    try:
        handle = os.open(hidden / _LOCK, os.O_RDWR)
    except FileNotFoundError:
        if alone or (hidden.is_dir() and time.time() - hidden.stat().st_mtime > _SURELY_DEAD):
            shutil.rmtree(hidden, ignore_errors=True)
        return
    try:
        if try_lock(handle):
            _remove(hidden)
    finally:
        os.close(handle)


def shell_word(path: str | Path) -> str:
    """A path as a shell takes it for a file, also one with a space, or a dash in front."""
    name = str(path)
    return shlex.quote(f"./{name}" if name.startswith("-") else name)


def cache_dir() -> Path:
    """The folder of things that can be made again.

    `$SUPERCONEXT_CACHE` if it is set, else `superconext` in the platform's cache folder. Raises
    OSError for a user without a home, as in bare containers.
    """
    try:
        return _cache_dir()
    except RuntimeError:
        told = "no home folder is known: set HOME or SUPERCONEXT_CACHE"
        raise FileNotFoundError(errno.ENOENT, told, "cache") from None


def _cache_dir() -> Path:
    named = os.environ.get("SUPERCONEXT_CACHE")
    if named:
        return Path(named).expanduser()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        base = Path(local) if local else Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", ""))
        if not base.is_absolute():  # the XDG specification: a relative path is ignored
            base = Path.home() / ".cache"
    return base / "superconext"
