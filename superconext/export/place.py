"""Where is an export made, and how does it come to its place whole or not at all?"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from superconext.core.errors import RunError
from superconext.core.folders import folder_beside, put_folder


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
