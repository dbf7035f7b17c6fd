"""Where is a run made, and how does it come to its place whole or not at all?

A run is made in `RUN.partial` beside its place and renamed at the end.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from superconext.errors import RunError, StoppedEarly


def check_out(out: Path, force: bool) -> None:
    """Raise RunError unless `out` may be written: it is new, or a run and `force` is given."""
    if out.name in ("", ".."):
        raise RunError(f"{out} names no new folder; expected one for the run: choose a name")
    if not os.path.lexists(out):
        return
    if not force:
        raise RunError(
            f"{out} exists already; expected a new folder: choose another or add --force"
        )
    if not (out / "manifest.json").is_file() and not (out.is_dir() and not any(out.iterdir())):
        raise RunError(
            f"{out} is no run folder; --force expects one to replace: choose another name, or "
            "remove it yourself"
        )


def partial_of(out: Path) -> Path:
    """Where the run is made, beside its place. Raises RunError if that is something else."""
    partial = out.with_name(out.name + ".partial")
    if os.path.lexists(partial) and not (partial / "checkpoint").is_dir():
        raise RunError(
            f"{partial} is in the way and no unfinished run; expected the name to be free: "
            "rename or remove it"
        )
    return partial


def put_in_place(partial: Path, out: Path) -> None:
    """Rename the finished folder over the earlier run that `--force` or `--resume` replaces."""
    with tempfile.TemporaryDirectory(
        prefix=f".{out.name}-", dir=out.parent, ignore_cleanup_errors=True
    ) as beside:
        old = Path(beside) / "old"
        if os.path.lexists(out):
            out.rename(old)
        try:
            partial.rename(out)
        except BaseException:
            if os.path.lexists(old) and not os.path.lexists(out):
                old.rename(out)
            raise


@contextlib.contextmanager
def removed_on_failure(partial: Path, out: Path) -> Iterator[None]:
    """Take the unfinished folder away when the block raises, so that no half run stays."""
    made = [folder for folder in partial.parents if not folder.exists()]
    try:
        with kept_on_interrupt(partial, out):
            yield
    except StoppedEarly:
        raise
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()
        raise


@contextlib.contextmanager
def kept_on_interrupt(partial: Path, out: Path) -> Iterator[None]:
    """Turn Ctrl-C into StoppedEarly where a finished epoch is worth going on from."""
    try:
        yield
    except KeyboardInterrupt:
        if not any((partial / "checkpoint").glob("member-*")):
            raise
        raise StoppedEarly(
            f"interrupted; the epochs done so far are kept in {partial}: "
            f"go on with superconext train --resume {out}"
        ) from None
