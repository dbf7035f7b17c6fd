"""From labelled files to a finished run folder: what `superconext train` does."""

from __future__ import annotations

import contextlib
import json
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from superconext.config import Config, resolve
from superconext.data.corpus import Corpus, check_training, read_labelled
from superconext.data.splits import leaks, stratified_holdout
from superconext.errors import DataError, RunError, StoppedEarly
from superconext.files import write_json
from superconext.run_contents import Evaluation, write_run
from superconext.training.progress import Progress

HELD_BACK = 0.1


@dataclass(frozen=True)
class TrainRequest:
    """What the user asked for.

    given: the parameters the user named; everything else is the preset's.
    command: the words of the command line, for the manifest.
    keep_text: whether `predictions.tsv` repeats the texts.
    """

    train: str
    out: str
    dev: str | None = None
    test: str | None = None
    given: dict[str, Any] = field(default_factory=dict)
    text_column: str | None = None
    label_column: str | None = None
    force: bool = False
    keep_text: bool = False
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class Splits:
    """The labelled rows, and which split the figures are reported on."""

    train: Corpus
    dev: Corpus
    test: Corpus | None

    @property
    def reported(self) -> str:
        return "dev" if self.test is None else "test"

    def named(self) -> dict[str, Corpus]:
        found = {"train": self.train, "dev": self.dev, "test": self.test}
        return {name: corpus for name, corpus in found.items() if corpus is not None}


def train_run(request: TrainRequest, progress: Progress) -> dict[str, Any]:
    """Train, probe, compare with the baselines and write the run folder.

    Returns the metrics document. Raises StoppedEarly after saving what there is when the
    user interrupts, and the other project errors with nothing written.
    """
    config = resolve(request.given, "train")
    out = Path(request.out)
    if out.exists() and not request.force:
        raise RunError(f"{out} exists already; expected a new folder: choose another or add --force")
    splits = read_splits(request, config, progress)
    partial = out.with_name(out.name + ".partial")
    if partial.exists():
        shutil.rmtree(partial)
    with _removed_on_failure(partial):
        (partial / "checkpoint").mkdir(parents=True)
        paths = {
            name: str(Path(value).resolve()) if value else None
            for name, value in (("train", request.train), ("dev", request.dev), ("test", request.test))
        }
        write_json(partial / "checkpoint" / "request.json", {**asdict(request), **paths})
        return _fill(request, config, splits, partial, progress)


def resume_run(folder: Path, progress: Progress) -> dict[str, Any]:
    """Go on with the run that was stopped in `folder`, to the end it was asked for.

    Raises RunError when there is nothing to go on with.
    """
    partial = folder.with_name(folder.name + ".partial")
    if not (partial / "checkpoint").is_dir():
        if not (folder / "checkpoint").is_dir():
            raise RunError(
                f"{folder}: no checkpoint found; expected a run that was stopped before its end: "
                "start a new one with superconext train"
            )
        shutil.copytree(folder / "checkpoint", partial / "checkpoint")
    try:
        saved = json.loads((partial / "checkpoint" / "request.json").read_text(encoding="utf-8"))
        request = replace(TrainRequest(**saved), out=str(folder), force=True)
        request = replace(request, command=tuple(request.command))
    except (OSError, ValueError, TypeError) as error:
        raise RunError(
            f"{partial}: the checkpoint cannot be read ({error}); start anew with --force"
        ) from None
    config = resolve(request.given, "resume")
    splits = read_splits(request, config, progress)
    return _fill(request, config, splits, partial, progress)


def read_splits(request: TrainRequest, config: Config, progress: Progress) -> Splits:
    """Read and check the labelled files; without a dev file a tenth of train is held back."""

    def read(path: str) -> Corpus:
        corpus = read_labelled(path, request.text_column, request.label_column)
        for note in corpus.notes:
            progress.say(f"note: {corpus.source}: {note}")
        return corpus

    train = read(request.train)
    check_training(train)
    test = read(request.test) if request.test else None
    if request.dev:
        dev = read(request.dev)
    else:
        kept, held = stratified_holdout(train.texts, train.labels, HELD_BACK, config.seed)
        train, dev = train.select(kept), train.select(held)
        progress.say(
            f"note: no dev file, so {len(dev)} of {len(train) + len(dev)} training rows are held "
            "back to choose settings on"
        )
    if not len(dev):
        raise DataError(
            f"{train.source}: {len(train)} rows are too few to hold any back; expected more rows, "
            "or a dev file with --dev"
        )
    if test is not None:
        unknown = sorted(set(test.labels) - set(train.labels))
        if unknown:
            progress.say(
                f"warning: {test.source} has labels that training never sees: "
                f"{', '.join(unknown[:5])}; they count as wrong"
            )
        for corpus, name in ((train, "train"), (dev, "dev")):
            copies = len(leaks(corpus.texts, test.texts))
            if copies:
                progress.say(
                    f"warning: {copies} of {len(test)} test texts stand in {name} word for word; "
                    "the test figures are flattered by them"
                )
    return Splits(train, dev, test)


def _fill(
    request: TrainRequest, config: Config, splits: Splits, partial: Path, progress: Progress
) -> dict[str, Any]:
    from superconext.experiments.baselines import fit_baselines
    from superconext.fitting import fit_model

    wall, cpu = time.perf_counter(), time.process_time()
    rows = {name: (corpus.texts, corpus.labels) for name, corpus in splits.named().items()}
    baselines: dict[str, Any] = {}
    if config.baselines:
        with progress.bar("baselines"):
            baselines = fit_baselines(
                rows["train"], rows["dev"], {n: r for n, r in rows.items() if n != "train"}
            )
    started = time.perf_counter()
    fitted = fit_model(
        *rows["train"], config, rows["dev"], progress=progress, checkpoint=partial / "checkpoint"
    )
    evaluation = Evaluation.of(fitted, rows, splits.reported, baselines)
    evaluation.metrics["seconds"] = round(time.perf_counter() - started, 2)
    times = {
        "wall_seconds": round(time.perf_counter() - wall, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
    }
    write_run(partial, request, splits, fitted, evaluation, times, progress)
    if not fitted.interrupted:
        shutil.rmtree(partial / "checkpoint")
    _put_in_place(partial, Path(request.out))
    if fitted.interrupted:
        epochs = len(fitted.history)
        raise StoppedEarly(
            f"interrupted after {epochs} of {config.epochs * config.members} epochs; the run so "
            f"far is saved in {request.out}: go on with superconext train --resume {request.out}"
        )
    return evaluation.metrics


def _put_in_place(partial: Path, out: Path) -> None:
    """Rename the finished folder over whatever `--force` allows to be replaced."""
    old = out.with_name(out.name + ".old")
    if out.exists():
        out.rename(old)
    partial.rename(out)
    if old.is_dir():
        shutil.rmtree(old)
    else:
        old.unlink(missing_ok=True)


@contextlib.contextmanager
def _removed_on_failure(folder: Path) -> Iterator[None]:
    """Take the unfinished folder away when the block raises, so that no half run stays."""
    try:
        yield
    except StoppedEarly:
        raise
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


