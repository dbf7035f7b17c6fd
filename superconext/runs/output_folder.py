"""The output folder of a run: made in `RUN.partial` and renamed into place when it is whole.

While it is made, `.RUN.lock` keeps other processes out.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from superconext.core import locks
from superconext.core.errors import RunError, StoppedEarly, SuperConTextError
from superconext.core.files import (
    clear_staging,
    free_folder,
    remove_folder,
    replace_folder,
    staging_folder,
    sync,
)

CHECKPOINT = "checkpoint"

#: In the checkpoint of a finished run that is about to take its place: once that stands in RUN,
#: what RUN.partial holds is the run that was replaced.
_IN_PLACE = "in-place"


def check_out(out: Path, force: bool) -> None:
    """Raise RunError unless `out` may be written: it is new, or a run and `force` is given."""
    free_folder(out, force, "manifest.json", "run folder", RunError)


def partial_of(out: Path) -> Path:
    """Where the run is made, beside its place. Raises RunError if that is something else."""
    partial = _partial(out)
    if os.path.lexists(partial) and not (partial / CHECKPOINT).is_dir():
        raise RunError(
            f"{partial} is in the way and no unfinished run; expected the name to be free: "
            "rename or remove it"
        )
    return partial


def _partial(out: Path) -> Path:
    return out.with_name(out.name + ".partial")


@contextlib.contextmanager
def only_run(out: Path, say: Callable[[str], None]) -> Iterator[None]:
    """Let no other process make this run inside the block, and end what a kill cut short.

    Folders above `out` are made, and taken away again if the block leaves them empty. Raises
    RunError while another process makes the run.
    """
    made = [folder for folder in out.parents if not folder.exists()]
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        lock = out.with_name(f".{out.name}.lock")
        kept = "train --resume continues from its finished epochs"
        with locks.only_writer(lock, out, say, kept, remove=True):
            _settle(out)
            clear_staging(out, alone=True)
            yield
    finally:
        for folder in made:
            with contextlib.suppress(OSError):
                folder.rmdir()


def put_in_place(partial: Path, out: Path) -> None:
    """Let the finished folder take the place of the run that `--force` or `--resume` replaces.

    Its checkpoint goes last of all, unless it says that it was interrupted.
    """
    (partial / CHECKPOINT / _IN_PLACE).touch()
    with staging_folder(out) as hidden:
        replace_folder(partial, out, hidden / "old")
    _settle(out)


def _settle(out: Path) -> None:
    """Do what is left to do once a finished run stands in its place, or was about to."""
    partial = _partial(out)
    if not os.path.lexists(out) and (partial / CHECKPOINT / _IN_PLACE).exists():
        # A stop between the two renames of a system that cannot exchange folders.
        partial.rename(out)
        sync(out.parent)
    if not (out / CHECKPOINT / _IN_PLACE).exists():
        return
    if os.path.lexists(partial):
        remove_folder(partial, out)
    if is_complete(out):
        shutil.rmtree(out / CHECKPOINT)
    else:
        (out / CHECKPOINT / _IN_PLACE).unlink()


def is_complete(run: Path) -> bool:
    """Whether this is a finished run that nothing is left to do for."""
    try:
        manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
        return bool(manifest["status"] == "complete")
    except (OSError, ValueError, KeyError, TypeError):
        return False


@contextlib.contextmanager
def epochs_kept(partial: Path, out: Path, say: Callable[[str], None]) -> Iterator[None]:
    """When the block raises, keep what is worth going on from: the finished epochs, if any.

    Raises StoppedEarly, which tells how to go on, in place of KeyboardInterrupt and OSError;
    with other errors `say` is told. A folder without an epoch is left to the caller.
    """
    try:
        yield
    except StoppedEarly:
        raise
    except BaseException as error:
        if not has_epochs(partial):
            raise
        only_checkpoint(partial)
        here = f"the finished epochs are kept in {partial}"
        command = f"superconext train --resume {out}"
        if isinstance(error, KeyboardInterrupt):
            raise StoppedEarly(f"interrupted; {here}: resume with {command}") from None
        if isinstance(error, OSError) and not isinstance(error, SuperConTextError):
            found = f"{error.filename or partial}: {error.strerror or error}"
            raise StoppedEarly(
                f"{found}; expected the disk to take it; {here}: make room, or correct what it "
                f"says, and resume with {command}"
            ) from error
        say(f"note: {here}: once the cause is gone, resume with {command}")
        raise


def has_epochs(partial: Path) -> bool:
    """Whether an unfinished run has come past its first epoch."""
    return any((partial / CHECKPOINT).glob("member-*"))


def only_checkpoint(partial: Path) -> None:
    """Remove the results from an unfinished run: they are written again, and room is scarce."""
    for rest in partial.iterdir():
        if rest.name == CHECKPOINT:
            continue
        if rest.is_dir() and not rest.is_symlink():
            shutil.rmtree(rest)
        else:
            rest.unlink()
