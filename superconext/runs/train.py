"""From labelled files to a finished run folder: what `superconext train` does."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from superconext.config import Config, resolve
from superconext.data.source import STDIN
from superconext.errors import RunError, StoppedEarly
from superconext.files import write_json
from superconext.runs.contents import Evaluation, write_run
from superconext.runs.place import (
    check_out,
    kept_on_interrupt,
    partial_of,
    put_in_place,
    removed_on_failure,
)
from superconext.runs.request import Splits, TrainRequest, read_splits
from superconext.training.progress import Progress

#: What the parameters name on disk; a run may be gone on with from another folder.
_FILE_PARAMETERS = ("vectors", "unlabelled")


def train_run(request: TrainRequest, progress: Progress) -> dict[str, Any]:
    """Train, probe, compare with the baselines and write the run folder.

    Returns the metrics document. Raises StoppedEarly when the user interrupts after an
    epoch, with what there is kept, and the other project errors with nothing written.
    """
    config = resolve(request.given, "train")
    out = Path(request.out)
    check_out(out, request.force)
    partial = partial_of(out)
    splits = read_splits(request, config, progress)
    with removed_on_failure(partial, out):
        if partial.exists():
            progress.say(f"note: {partial}, an unfinished run, is thrown away and begun anew")
            shutil.rmtree(partial)
        (partial / "checkpoint").mkdir(parents=True)
        _save_request(partial / "checkpoint", request, splits)
        return _fill(request, config, splits, partial, progress)


def resume_run(folder: Path, progress: Progress) -> dict[str, Any]:
    """Go on with the run that was stopped in `folder`, to the end it was asked for.

    Raises RunError when there is nothing to go on with.
    """
    partial = partial_of(folder)
    stopped = partial if partial.exists() else folder
    if not (stopped / "checkpoint").is_dir():
        raise RunError(
            f"{folder}: no checkpoint found; expected a run that was stopped before its end: "
            "start a new one with superconext train"
        )
    try:
        saved = json.loads((stopped / "checkpoint" / "request.json").read_text(encoding="utf-8"))
        hashes = saved.pop("sha256")
        request = replace(TrainRequest(**saved), out=str(folder), force=True)
        request = replace(request, command=tuple(request.command))
        config = resolve(request.given, "resume")
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise RunError(
            f"{stopped}: the checkpoint cannot be read ({error}); start anew with --force"
        ) from None
    splits = read_splits(request, config, progress)
    for name, corpus in splits.named().items():
        if hashes.get(name) != corpus.sha256:
            raise RunError(
                f"{corpus.source}: its content is not what {folder} was trained on; expected the "
                "file as it was: put it back, or start anew with --force"
            )
    if stopped is folder:
        with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as beside:
            copy = Path(beside) / "run"
            shutil.copytree(folder / "checkpoint", copy / "checkpoint")
            copy.rename(partial)
    # A kill while the results were written leaves some of them.
    for rest in partial.iterdir():
        if rest.is_dir() and rest.name != "checkpoint":
            shutil.rmtree(rest)
        elif rest.is_file():
            rest.unlink()
    with kept_on_interrupt(partial, folder):
        return _fill(request, config, splits, partial, progress)


def _fill(
    request: TrainRequest, config: Config, splits: Splits, partial: Path, progress: Progress
) -> dict[str, Any]:
    import torch

    from superconext.experiments.baselines import baseline_report
    from superconext.fitting import check_device, fit_model
    from superconext.stages import total_epochs

    # Not for the training alone: figures of merit are worked out under the same threads.
    torch.set_num_threads(config.threads)
    check_device(config.device)  # before the baselines, which take their time
    wall, cpu = time.perf_counter(), time.process_time()
    rows = {name: (corpus.texts, corpus.labels) for name, corpus in splits.named().items()}
    baselines: dict[str, Any] = {}
    if config.baselines:
        with progress.bar("baselines"):
            baselines = baseline_report(
                rows["train"], rows["dev"], {n: r for n, r in rows.items() if n != "train"}
            )
    started = time.perf_counter()
    fitted = fit_model(
        *rows["train"],
        config,
        rows["dev"],
        progress=progress,
        checkpoint=partial / "checkpoint",
        set_aside=rows["test"][0] if "test" in rows else (),
    )
    evaluation = Evaluation.of(fitted, rows, splits.reported, baselines)
    evaluation.metrics["seconds"] = round(time.perf_counter() - started, 2)
    times = {
        "wall_seconds": round(time.perf_counter() - wall, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
    }
    write_run(partial, request, splits, fitted, evaluation, times, progress)
    put_in_place(partial, Path(request.out))
    if fitted.interrupted:
        epochs = len(fitted.history)
        raise StoppedEarly(
            f"interrupted after {epochs} of {total_epochs(config)} epochs; the run so "
            f"far is saved in {request.out}: go on with superconext train --resume {request.out}"
        )
    # Last of all, so that a kill at any moment leaves a run or something to go on with.
    shutil.rmtree(Path(request.out) / "checkpoint")
    return evaluation.metrics


def _save_request(folder: Path, request: TrainRequest, splits: Splits) -> None:
    """Write what resuming needs besides the trainer's state; paths become absolute."""

    def absolute(value: str | None) -> str | None:
        return os.path.abspath(value) if value and value != STDIN else value

    given = {
        name: absolute(value) if name in _FILE_PARAMETERS else value
        for name, value in request.given.items()
    }
    paths = {name: absolute(getattr(request, name)) for name in ("train", "dev", "test")}
    hashes = {name: corpus.sha256 for name, corpus in splits.named().items()}
    write_json(
        folder / "request.json", {**asdict(request), **paths, "given": given, "sha256": hashes}
    )
