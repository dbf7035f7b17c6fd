"""The cache: what is kept in it, what is in use, and its size limit.

An entry is a file or folder in one of the folders of `KINDS`. A process that reads or makes one
says so (`use`): that is the entry's last use, and nobody removes it before that process ends. What
was made here stays within a limit: the entries that were used longest ago go first. Downloads do
not count, because their paths were given to people.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from superconext.core.errors import ConfigError
from superconext.core.files import cache_dir, clear_all_staging, remove_folder, temporary_file
from superconext.core.locks import locked_file, try_lock

#: Folders of the cache and what their entries are; True for downloads.
KINDS = {
    "vectors": ("word vectors", False),
    "encoders": ("pretrained encoder", False),
    "transformers": ("sentence vectors of a frozen transformer", False),
    "compiled": ("compiled part of a training step", False),
    "tokens": ("tokens of a large training file", False),
    "downloads": ("download", True),
    "datasets": ("download", True),
}
#: Gigabytes (10^9 bytes) that what was made may take, unless `$SUPERCONEXT_CACHE_LIMIT` says more
#: or less.
LIMIT = 5.0
#: Told wherever the cache is shown.
IN_CLEAR = (
    "Cached files hold words and sentences of the texts they were made from, unencrypted, other "
    "people's among them: clear them before you pass on the machine or its disk."
)

_USERS = ".users"
#: Where locks are unknown, a process is taken for a living one for so many seconds.
_SURELY_DEAD = 86_400.0
_LEDGER = "sha256.json"  # of hashes of downloads; without it a folder is somebody else's
_mine: dict[tuple[Path, int], int] = {}


@dataclass(frozen=True)
class Entry:
    """name: `KIND/NAME`. used: seconds since 1970. size: bytes. in_use: by a living process."""

    name: str
    path: Path
    what: str
    size: int
    used: float
    in_use: bool
    download: bool


def size_limit() -> float | None:
    """Bytes that what was made may take, None for any number.

    Raises ConfigError for a `$SUPERCONEXT_CACHE_LIMIT` that is neither a number nor `none`.
    """
    named = os.environ.get("SUPERCONEXT_CACHE_LIMIT", "").strip()
    if named.lower() == "none":
        return None
    try:
        limit = float(named) if named else LIMIT
        if not 0 <= limit < float("inf"):
            raise ValueError
    except ValueError:
        raise ConfigError(
            f"SUPERCONEXT_CACHE_LIMIT = {named!r}: expected gigabytes as a number of at least 0, "
            "or none for no limit: change it"
        ) from None
    return limit * 1e9


def use(entry: Path) -> None:
    """Note that this process uses an entry, or is about to make it: nobody removes it until the
    process ends. Raises ConfigError as `size_limit` does."""
    size_limit()
    home = cache_dir()
    with suppress(OSError, ValueError):  # ValueError: not in the cache
        name = entry.relative_to(home).as_posix()
        os.write(_user_file(home), f"{name}\n".encode("utf-8", "surrogateescape"))
        os.utime(entry)


def _user_file(home: Path) -> int:
    """The open file, locked while this process lives, that names what it uses."""
    key = home, os.getpid()
    if key not in _mine:
        (home / _USERS).mkdir(parents=True, exist_ok=True)
        _mine[key], file = locked_file(lambda: temporary_file(home / _USERS))
        atexit.register(_leave, key, file)
    return _mine[key]


def _leave(key: tuple[Path, int], file: Path) -> None:
    if key[1] == os.getpid():  # a forked child leaves its parent's alone
        with suppress(OSError):
            os.close(_mine.pop(key))
            file.unlink()


def _names_in_use(home: Path) -> set[str]:
    names: set[str] = set()
    for file in [*(home / _USERS).iterdir()] if (home / _USERS).is_dir() else ():
        with suppress(OSError):
            handle = os.open(file, os.O_RDWR)
            try:
                taken = try_lock(handle)
                if taken is None:
                    taken = time.time() - file.stat().st_mtime > _SURELY_DEAD
                if taken:
                    file.unlink()
                    continue
                names.update(file.read_text("utf-8", "surrogateescape").splitlines())
            finally:
                os.close(handle)
    return names


def entries() -> list[Entry]:
    """Everything in the cache, the entry used last first."""
    home = cache_dir()
    busy = _names_in_use(home)
    found = [entry for kind in KINDS for entry in _of_kind(home, kind, busy)]
    return sorted(found, key=lambda entry: (-entry.used, entry.name))


def _of_kind(home: Path, kind: str, busy: set[str]) -> Iterator[Entry]:
    label, download = KINDS[kind]
    folder = home / kind
    if not folder.is_dir() or (download and not (folder / _LEDGER).is_file()):
        return
    for path in folder.iterdir():
        # Hidden is what is just being made, which whoever makes it clears away.
        if path.name.startswith(".") or path.name == _LEDGER:
            continue
        name = f"{kind}/{path.name}"
        with suppress(OSError):
            size, used = _size(path), path.lstat().st_mtime
            what = f"{label}: {_about(path, kind)}".removesuffix(": ")
            # With a result its unfinished state is in use, with a file the folder that it is in.
            in_use = any(f"{o}/".startswith(f"{name}/") or name.startswith(f"{o}.") for o in busy)
            yield Entry(name, path, what, size, used, in_use, download)


def _size(path: Path) -> int:
    if path.is_symlink() or not path.is_dir():
        return path.lstat().st_size
    files = (Path(place, name) for place, _, names in os.walk(path) for name in names)
    return sum(file.lstat().st_size for file in files)


def _about(path: Path, kind: str) -> str:
    if path.name.endswith((".state", ".states")):
        return "unfinished training"
    if kind in ("downloads", "datasets"):
        return path.name
    facts: dict[str, Any] = {}
    for name in ("info.json", "encoder.json"):
        with suppress(OSError, ValueError, RecursionError):
            found = json.loads((path / name).read_text(encoding="utf-8"))
            facts |= found if isinstance(found, dict) else {}
    if isinstance(facts.get("files"), list):
        return f"of {', '.join(map(str, facts['files']))}"
    return str(facts.get("name", ""))


def remove(entry: Entry) -> None:
    """Take an entry away. Raises OSError where the system refuses."""
    if entry.path.is_symlink() or not entry.path.is_dir():
        entry.path.unlink(missing_ok=True)
    else:
        remove_folder(entry.path, entry.path)
        if entry.path.exists():
            shutil.rmtree(entry.path)


def clear_dead() -> None:
    """Remove what killed processes had begun to make."""
    for kind, (_, download) in KINDS.items():
        with suppress(OSError):
            if not download:
                clear_all_staging(cache_dir() / kind)


def trim() -> list[Entry]:
    """Remove what was used longest ago until what was made here is within the limit; what is in use
    stays. Returns what was removed; raises ConfigError as `size_limit` does."""
    limit, removed = size_limit(), []
    clear_dead()
    if limit is None:
        return []
    made = [entry for entry in entries() if not entry.download]
    size = sum(entry.size for entry in made)
    for entry in reversed(made):
        if size <= limit:
            break
        if not entry.in_use:
            with suppress(OSError):
                remove(entry)
                removed.append(entry)
                size -= entry.size
    return removed
