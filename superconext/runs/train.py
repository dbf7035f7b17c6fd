"""`superconext train`: from labelled files to a finished run folder.

In a distributed run the first process makes the run folder and the others help to train.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superconext.config.fingerprints import Fingerprints
from superconext.config.parameters import Config, with_files
from superconext.core.errors import (
    ConfigError,
    DataError,
    RunError,
    StoppedEarly,
    SuperConTextError,
    UnregisteredError,
)
from superconext.core.files import remove_folder, shell_word, staging_folder, sync_tree, write_json
from superconext.core.progress import Progress
from superconext.core.registry import own_code_sha256
from superconext.data.lines import STDIN, STDIN_NAME
from superconext.encoders.pretrained import resolve_sized
from superconext.fitting.checks import check_config, warn_where_slow, warn_where_unread
from superconext.fitting.preprocess import check_streamed
from superconext.fitting.recipes import check_open, pretraining_of
from superconext.runs.artifacts import RunResults, write_run
from superconext.runs.folder import (
    changed_code,
    check_out,
    epochs_kept,
    has_epochs,
    is_complete,
    only_checkpoint,
    only_run,
    partial_of,
    put_in_place,
    run_of,
)
from superconext.runs.manifest import CHECKPOINT
from superconext.runs.splits import Splits, TrainRequest, is_big, read_splits
from superconext.training.distributed import LeftToMain, World, current_world, led

if TYPE_CHECKING:
    from superconext.fitting.preprocess import Prepared


#: Where the shell has the pipes of `<(command)`.
_PIPES = ("/dev/fd/", "/proc/self/fd/")


def train_run(request: TrainRequest, progress: Progress) -> dict[str, Any]:
    """Train, probe, compare with the baselines and write the run folder.

    Returns the metrics document. An earlier run is replaced when the new one is whole, and not
    before. Raises StoppedEarly when the user or the disk stops it after an epoch, with the
    epochs kept, and the other project errors; where no epoch was done nothing is left.
    """
    request, config = _settled(request, progress)
    out = check_out(Path(request.out), request.force, request.reads(config))
    request = replace(request, out=str(out))
    with only_run(out, progress.say):
        check_out(out, request.force)  # again: until now another process may have written it
        partial = partial_of(out)
        splits = read_splits(request, config, progress)
        if partial.exists():
            progress.note(f"{partial}, an unfinished run, is discarded, and training starts again")
            remove_folder(partial, out)
        try:
            with epochs_kept(partial, out, progress.say):
                with staging_folder(out) as hidden:
                    (hidden / "new" / CHECKPOINT).mkdir(parents=True)
                    _save_request(hidden / "new" / CHECKPOINT, request, splits)
                    (hidden / "new").rename(partial)
                return _fill(request, config, splits, partial, progress)
        except BaseException:
            # Left empty-handed, and only then: no half run stays.
            if (partial / CHECKPOINT).is_dir() and not has_epochs(partial):
                remove_folder(partial, out)
            raise


def _settled(request: TrainRequest, progress: Progress) -> tuple[TrainRequest, Config]:
    """The request and its configuration, checked; where `auto` cannot choose, with `fast`.

    Raises ConfigError for what cannot be.
    """
    config = resolve_sized(request.given, "train")
    check_open(request.given, config)
    check_config(config, bool(request.reading.get("drop_unlabelled")))
    warn_where_slow([config], progress)
    big, several = is_big(request.train, request.store), current_world().size > 1
    reason = f"{request.train} is read in a stream" if big else "several processes train together"
    if config.cv and (big or several or request.dev):
        found = f"a dev file ({request.dev})" if request.dev else f"a run where {reason}"
        raise ConfigError(
            f"cv = {config.cv} with {found}; expected one of them, as a cross-validation takes the "
            "place of dev rows and needs all training rows in memory: leave one out"
        )
    if big:
        check_streamed(config)
    if config.preset == "auto" and (big or several):
        progress.note(f"{reason}, so no recipe is chosen: this is preset fast")
        request = replace(request, given={**request.given, "preset": "fast"})
        config = resolve_sized(request.given, "train")
    if pretraining := pretraining_of(request.given, config, progress):
        request = replace(request, given={**request.given, **pretraining})
        config = resolve_sized(request.given, "train")
    warn_where_unread(config, progress)
    return request, config


def resume_run(folder: Path, progress: Progress) -> dict[str, Any]:
    """Go on with the run that was stopped in `folder`, to the end it was asked for; RUN.partial,
    where its epochs are, stands for RUN.

    Raises RunError when there is nothing to resume, and what `train_run` does.
    """
    named, folder = folder, run_of(folder)
    if os.path.abspath(named) != os.path.abspath(folder) and not named.is_symlink():
        progress.note(f"{named} is the unfinished {folder}, which is resumed")
    begun = partial_of(folder).exists()
    if not folder.exists() and not begun:
        raise _nothing_stopped(folder)
    with only_run(folder, progress.say):
        partial = partial_of(folder)
        stopped = partial if partial.exists() else folder
        if not (stopped / CHECKPOINT).is_dir():
            if begun and is_complete(folder):  # all that was left to do was done just now
                progress.note(f"{folder} was finished already")
                return _metrics(folder)
            raise _nothing_stopped(folder)
        if stopped is folder and is_complete(folder):
            # Stopped when all that was left to do was to take the checkpoint away.
            progress.note(f"{folder} was finished already")
            shutil.rmtree(folder / CHECKPOINT, ignore_errors=True)
            return _metrics(folder)
        request, config, splits = _saved_request(stopped, folder, progress)
        if splits.folds:
            progress.note("the cross-validation is repeated; then training resumes")
        if stopped is folder:
            with staging_folder(folder) as hidden:
                shutil.copytree(folder / CHECKPOINT, hidden / "run" / CHECKPOINT)
                sync_tree(hidden / "run")
                (hidden / "run").rename(partial)
        # A kill while the results were written leaves some of them.
        only_checkpoint(partial)
        with epochs_kept(partial, folder, progress.say):
            return _fill(request, config, splits, partial, progress)


def _is_gone(path: str) -> bool:
    """Whether what a number named is no file now."""
    return not Path(path).is_file()


def _nothing_stopped(folder: Path) -> RunError:
    found = "no checkpoint found" if folder.exists() else "no such folder"
    return RunError(
        f"{folder}: {found}; expected a run that was stopped while its encoder trained (of a "
        "cross-validation nothing is kept): start a new one with superconext train"
    )


def _saved_request(
    stopped: Path, folder: Path, progress: Progress
) -> tuple[TrainRequest, Config, Splits]:
    """What the run was asked to do, and its rows, which must be what they were."""
    try:
        saved = json.loads((stopped / CHECKPOINT / "request.json").read_text(encoding="utf-8"))
        hashes, prints = saved.pop("sha256"), saved.pop("files", {})
        code = saved.pop("own_code_sha256", {})
        request = replace(TrainRequest(**saved), out=str(folder), force=True)
        if not all(isinstance(f, str | None) for f in (request.train, request.dev, request.test)):
            raise ValueError("a file's name is no text")
        request = replace(request, command=tuple(request.command))
        config = resolve_sized(request.given, "resume")
        check_config(config, bool(request.reading.get("drop_unlabelled")))
    except UnregisteredError as error:
        raise RunError(
            f"{stopped}: {error}. The checkpoint waits for the code that the run was begun with"
        ) from None
    except SuperConTextError as error:  # such as a folder or device that is not there
        raise RunError(
            f"{stopped}: {error}. The checkpoint waits until that is mended, or start again with "
            "--force"
        ) from None
    except (
        AttributeError,
        KeyError,
        OSError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        raise RunError(
            f"{stopped}: the checkpoint cannot be read ({error}); start again with --force"
        ) from None
    files = request.train, request.dev, request.test
    if gone := [path for path in files if path and path.startswith(_PIPES) and _is_gone(path)]:
        raise RunError(
            f"{stopped}: begun with rows from {gone[0]}, a pipe that is gone; expected a file: "
            "write the rows to one and start again with superconext train --force"
        )
    piped = not {STDIN, "/dev/stdin"}.isdisjoint(files)
    if piped:
        progress.note(f"{folder} was trained on standard input: its rows are read from there")
    again = f"pipe the rows that {folder} was trained on, or start again with --force"
    try:
        splits = read_splits(request, config, progress)
    except DataError as error:
        if not (piped and str(error).startswith(STDIN_NAME)):
            raise
        raise DataError(f"{error} ({again})") from error
    changed = [c.source for name, c in splits.named().items() if hashes.get(name) != c.sha256]
    now = _prints(request.given) if prints else {}
    changed += [f"{n} = {request.given[n]}" for n in prints if now.get(n) != prints[n]]
    if told := changed_code(config, code):
        raise RunError(f"{stopped}: {told.partition(',')[0]}: put it back, or start again")
    if changed:
        mend = "the file as it was: put it back, or start again with --force"
        if changed[0] == STDIN_NAME:
            mend = f"the same: {again}"
        raise RunError(
            f"{changed[0]}: its content is not what {folder} was trained on; expected {mend}"
        )
    return request, config, splits


def _prints(given: Mapping[str, Any]) -> dict[str, Any]:
    """Hashes of the files that parameters name."""
    named = {n: v for n, v in given.items() if with_files(n, v, lambda _: None) != v}
    return Fingerprints().of(named)


def _metrics(run: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((run / "metrics.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"{run / 'metrics.json'}: cannot be read ({error}); train again") from None
    return found


def _fill(
    request: TrainRequest, config: Config, splits: Splits, partial: Path, progress: Progress
) -> dict[str, Any]:
    import torch

    from superconext.baselines.baseline import baseline_report, controls_of
    from superconext.fitting.controls import run_text
    from superconext.fitting.cross_validation import CrossValidation, cross_validate
    from superconext.fitting.familiarity import Familiarity
    from superconext.fitting.fit import fit_model
    from superconext.fitting.recipes import choose, fit_on_dev

    # Not for the training alone: metrics are computed under the same threads.
    torch.set_num_threads(config.threads)
    call_helpers(request, partial / CHECKPOINT)
    wall, cpu = time.perf_counter(), time.process_time()
    baselines: dict[str, Any] = {}
    named = splits.named()
    rows = {name: (data.texts, data.labels) for name, data in named.items()}
    train, dev = rows["train"], rows.get("dev")
    reported = {name: some for name, some in rows.items() if name != "train"}
    if config.baselines and reported:
        with progress.bar("baselines"):
            baselines = baseline_report(train, dev, reported, config=config)
    test_texts = splits.test.texts if splits.test else ()
    auto, choice, folds, settings = config.preset == "auto", None, None, None
    started = time.perf_counter()
    if splits.folds:
        dev_texts = splits.dev.texts if splits.dev else ()
        dealt = splits.train, config, splits.folds, progress
        cv = CrossValidation(*dealt, test_texts, not_drawn=dev_texts)
        if auto:
            choice, folds, settings = choose(cv, progress, partial / CHECKPOINT)
            config = choice.config
        else:
            folds = cross_validate(cv)
            settings = folds.recipe.settings
        del cv
    controls = controls_of(config) if config.baselines and reported else ()
    controls_seconds = 0.0

    def fit_controls(prepared: Prepared) -> None:
        nonlocal controls_seconds
        began = time.perf_counter()
        texts = {name: data.texts for name, data in named.items()}
        with progress.bar("controls"):
            run = run_text(prepared, config, texts)
            baselines.update(baseline_report(train, dev, reported, controls, run, config))
        controls_seconds = time.perf_counter() - began

    more: dict[str, Any] = {
        "test_texts": test_texts,
        "progress": progress,
        "checkpoint": partial / CHECKPOINT,
        "on_prepared": fit_controls if controls else None,
    }
    if auto and folds is None:
        assert splits.dev is not None
        fitted, choice = fit_on_dev(splits.train, config, splits.dev, **more)
    else:
        fitted = fit_model(splits.train, config, splits.dev, settings=settings, **more)
    with progress.bar("evaluating"):
        results = RunResults.of(fitted, splits, baselines, folds)
    if splits.test is not None:
        familiarity = Familiarity()
        pieces = fitted.pieces.get("test")
        tokens = None if pieces is None else pieces.lists()
        familiarity.add(fitted.model, splits.test.texts, tokens)
        for line in familiarity.strangeness():
            progress.warn(f"{splits.test.source}: {line}")
    results.recipes = None if choice is None else choice.facts
    if choice is not None and choice.recipe.encoder and not fitted.model.titles["probe_title"]:
        progress.say("auto: in the pool n-grams have all the weight, so they alone predict")
    before = fitted.facts.get("seconds_before", (0.0, 0.0))  # of a run that was stopped
    seconds = before[0] + time.perf_counter() - started - controls_seconds
    results.metrics["seconds"] = round(seconds, 2)
    times = {
        "wall_seconds": round(before[0] + time.perf_counter() - wall, 2),
        "cpu_seconds": round(before[1] + time.process_time() - cpu, 2),
    }
    write_run(partial, request, splits, fitted, results, times, progress)
    put_in_place(partial, Path(request.out), new=not request.force)
    if fitted.interrupted:
        epochs = len(fitted.history)
        raise StoppedEarly(
            f"interrupted after {epochs} of {fitted.planned} epochs; the run so "
            f"far is saved in {request.out}: resume with superconext train --resume "
            + shell_word(request.out)
        )
    return results.metrics


def _save_request(folder: Path, request: TrainRequest, splits: Splits) -> None:
    """Write what resuming needs besides the trainer's state; paths become absolute."""

    def absolute(value: str | None) -> str | None:
        return os.path.abspath(value) if value and value != STDIN else value

    given = {name: with_files(name, value, absolute) for name, value in request.given.items()}
    paths = {name: absolute(getattr(request, name)) for name in ("train", "dev", "test", "store")}
    hashes = {name: corpus.sha256 for name, corpus in splits.named().items()}
    prints = {"sha256": hashes, "files": _prints(given), "own_code_sha256": own_code_sha256()}
    write_json(folder / "request.json", {**asdict(request), **paths, "given": given, **prints})


def distributed(run: Callable[[], dict[str, Any]]) -> dict[str, Any] | None:
    """What `run`, which makes a run folder, returns; None in every process but the first.

    Without torchrun there is one process, and this is `run()`. Raises ProcessLost where another
    process ends before its time.
    """
    return led(run, lambda: _help(current_world()))


def call_helpers(request: TrainRequest, checkpoint: Path) -> None:
    """Tell the other processes what the first is about to train; there may be none.

    Raises ConfigError where they cannot read what it has read.
    """
    world = current_world()
    if world.size == 1:
        return
    if STDIN in (request.train, request.dev, request.test):
        raise ConfigError(
            f"{STDIN} names the standard input, which {world.size} processes cannot all read; "
            "expected files: write it to one first"
        )
    world.broadcast({"request": asdict(request), "checkpoint": str(checkpoint.absolute())})


def _help(world: World) -> None:
    from superconext.fitting.fit import fit_model

    told: dict[str, Any] = world.broadcast({})
    request = TrainRequest(**told["request"])
    config = resolve_sized(request.given, "train")
    silent = _Silent()
    splits = read_splits(request, config, silent)
    try:
        fit_model(
            splits.train,
            config,
            splits.dev,
            test_texts=splits.test.texts if splits.test else (),
            progress=silent,
            checkpoint=Path(told["checkpoint"]),
        )
    except LeftToMain:
        return


class _Silent(Progress):
    """The first process has said it all."""

    def warn(self, line: str) -> None:
        pass
