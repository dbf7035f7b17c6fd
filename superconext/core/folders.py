"""Folders that come to their place whole or not at all, and where the cache is."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from superconext.core.errors import RunError
from superconext.core.files import sync
from superconext.core.locks import try_lock

_LOCK = ".lock"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2  # from linux/fcntl.h and linux/fs.h
#: A folder without a lock file may be one that is just being made, if it is younger.
_SURELY_DEAD = 3600.0  # seconds


@contextmanager
def folder_beside(folder: Path) -> Iterator[Path]:
    """A hidden folder beside `folder` to make things in; it is gone after the block.

    What processes that were killed inside such a block left for the same `folder` is cleared
    away first. Raises OSError, naming `folder`, when the system refuses.
    """
    hidden: Path | None = None
    handle = -1
    try:
        clear_beside(folder)
        hidden = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
        handle = os.open(hidden / _LOCK, os.O_RDWR | os.O_CREAT)
        try_lock(handle)
        yield hidden
    except OSError as error:
        if error.errno is not None:
            error.filename, error.filename2 = _known_as(error.filename, hidden, folder), None
        raise
    finally:
        if sys.platform == "win32" and handle >= 0:  # no open file can be removed there
            os.close(handle)
        if hidden is not None:
            _remove(hidden)
        if sys.platform != "win32" and handle >= 0:
            os.close(handle)


def _known_as(path: object, hidden: Path | None, folder: Path) -> str:
    """The name of what lies in `hidden` once it has its place: nobody asked for a hidden one."""
    if hidden is not None and isinstance(path, str) and Path(path).is_relative_to(hidden):
        return str(folder.joinpath(*Path(path).relative_to(hidden).parts[1:]))
    return str(folder)


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """An empty folder beside `folder` that gets its name if the block succeeds.

    Raises RunError if something of that name exists.
    """
    if folder.exists() or folder.is_symlink():
        raise RunError(f"{folder} exists already; expected a new folder: choose another")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder_beside(folder) as hidden:
        fresh = hidden / "new"
        fresh.mkdir()
        yield fresh
        put_folder(fresh, folder, hidden / "old")


def put_folder(fresh: Path, folder: Path, old: Path) -> None:
    """Give the finished folder `fresh` the name `folder`, on the disk when this returns.

    An earlier `folder` goes to `old`. Where the system can (Linux, on most of its file systems)
    the two change places in one step, so that at no moment `folder` is missing; elsewhere it is
    between two renames. Raises OSError with all as it was.
    """
    sync_tree(fresh)
    if not os.path.lexists(folder):
        fresh.rename(folder)
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
        with folder_beside(place) as hidden:
            folder.rename(hidden / "removed")
    except OSError:  # such as a disk too full for one more folder
        shutil.rmtree(folder, ignore_errors=True)


def clear_beside(folder: Path, alone: bool = False) -> None:
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
                _clear_dead(folder.parent / name, alone)


def _remove(hidden: Path) -> None:
    """The lock goes last: what a kill leaves is then known to be dead."""
    for path in hidden.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        elif path.name != _LOCK:
            path.unlink(missing_ok=True)
    shutil.rmtree(hidden, ignore_errors=True)


def _clear_dead(hidden: Path, alone: bool) -> None:
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


def cache_dir() -> Path:
    """The folder of things that can be made again.

    `$SUPERCONEXT_CACHE` if it is set, else `superconext` in the platform's cache folder.
    """
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
