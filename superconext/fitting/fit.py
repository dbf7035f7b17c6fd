"""`fit_model`: labelled texts to a trained and probed model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from superconext.config.parameters import Config
from superconext.core.errors import plural
from superconext.core.process import give_back_freed_memory, keep_freed_memory
from superconext.core.progress import Progress
from superconext.core.registry import expect, own_fault
from superconext.data.dataset import Dataset
from superconext.data.duplicates import SeenTexts
from superconext.encoders.base import Encoder
from superconext.fitting.model import Model, evaluate, member_features
from superconext.fitting.preprocess import Prepared, preprocess
from superconext.fitting.stages import second_stage, total_epochs, train_member
from superconext.objectives.base import Objective
from superconext.probe import probe_class
from superconext.probe.base import FEWEST_DEV_ROWS, Probe
from superconext.probe.ensemble import (
    ENSEMBLES,
    DevRows,
    Ensemble,
    MeanWithTfidf,
    PoolWithNgrams,
    Settings,
)
from superconext.probe.logistic_regression import (
    DEFAULT_C,
    FROZEN_C,
    LogisticRegressionProbe,
    adjusted,
    calibrate,
    cooled,
    fit_frozen_probe,
    fit_probe,
)
from superconext.probe.metrics import Evaluation, collapse_report
from superconext.text.tokenize import Pieces
from superconext.training.callbacks import Callback, Record
from superconext.training.distributed import leave_to_main
from superconext.training.trainer import decided


@dataclass
class Fitted:
    """A trained model and what was learned on the way.

    history: one record an epoch, with `member` from 1, and where a second stage was asked
        for `stage`, 1 or 2, through which the epochs are counted on.
    features: sentence vectors of the training rows, or of their sample, `[N, d]`.
    facts: normalisation profile, vector source, words unknown to the vocabulary.
    planned: epochs of all stages of all members, had nobody stopped it.
    interrupted: whether training was stopped by the user.
    pieces: the words of each split that is in memory, read once.
    dev_probabilities: float64 `[M, C]` of the dev rows whose class is known, where the model has
        weights that were fitted on these rows: each row's by weights fitted on others.
    chosen_on_dev: whether anything was chosen on dev rows; where it was not, their scores are
        those of new rows.
    """

    model: Model
    history: list[Record]
    features: np.ndarray
    facts: dict[str, Any]
    collapse: dict[str, Any]
    planned: int
    interrupted: bool = False
    pieces: dict[str, Pieces] = field(default_factory=dict)
    dev_probabilities: np.ndarray | None = None
    chosen_on_dev: bool = False

    @property
    def status(self) -> dict[str, Any]:
        """Whether the training is complete, as the manifest of a run says it."""
        if not self.interrupted:
            return {"status": "complete"}
        done = {"epochs": len(self.history), "planned_epochs": self.planned}
        return {"status": "interrupted", **done}

    def evaluate(self, split: str, texts: Sequence[str], labels: Sequence[str]) -> Evaluation:
        """The model's evaluation on a split `[N]` of the fit, by name; dev is predicted out of
        fold where the model has weights that were fitted on it."""
        held_out = self.dev_probabilities if split == "dev" else None
        return evaluate(self.model, texts, labels, self.pieces.get(split), held_out)


def fit_model(
    train: Dataset,
    config: Config,
    dev: Dataset | None = None,
    *,
    test_texts: Sequence[str] = (),
    not_drawn: Sequence[str] = (),
    classes: Sequence[str] | None = None,
    progress: Progress | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: Path | None = None,
    monitor: bool = True,
    on_prepared: Callable[[Prepared], None] | None = None,
    settings: Settings | None = None,
) -> Fitted:
    """Train encoders on labelled texts and probe them.

    Args:
        train: the training rows; at least two classes of two rows. Where they are on disk, all
            of them train the encoder, and the rest is fitted on the sample in memory.
        dev: rows on which the probe's C (and with `keep="best"` the epoch) is chosen.
        test_texts: texts that no unlabelled text learned from may repeat.
        not_drawn: labelled texts that are none of the splits', which it may not repeat either.
        classes: the distinct labels in the order of the probability columns; sorted if None.
        checkpoint: folder to save to after epochs and to resume from if it holds a
            state of the same training.
        monitor: whether `history` has a `dev_score` of a quick probe after each epoch (where
            dev is given); without, it is there only where training itself reads it, and the
            model is the same.
        on_prepared: called with the preprocessed rows before the first member is trained; torch's
            random state is afterwards what it was.
        settings: C and weights that a cross-validation has chosen; dev then chooses neither.

    Raises:
        DataError, ConfigError, VectorsError, TrainingError: see there.
    """
    progress = progress or Progress()
    keep_freed_memory()
    with own_torch_state(config.threads):
        names = classes or sorted(train.class_counts())
        prepared = preprocess(train, dev, names, config, progress, test_texts, not_drawn)
        if on_prepared is not None:
            with torch.random.fork_rng(devices=[]):
                on_prepared(prepared)
        if train.on_disk is not None:
            give_back_freed_memory()
        config = decided(config, len(prepared.labels))
        if config.keep == "best" and not config.freeze and prepared.dev is None:
            progress.warn(
                "keep = 'best': found no dev rows to tell the best epoch by; expected some; the "
                "last one is kept: give more rows, or a dev file"
            )
        planned = total_epochs(config)
        members = train_members(prepared, config, progress, callbacks, checkpoint, monitor)
        config, encoders = members.config, members.encoders
        leave_to_main()
        if (
            train.on_disk is not None
        ):  # evaluation needs other blocks than training, and those are large
            give_back_freed_memory()
        hard = prepared.probe_split[1][: len(train.texts)]  # of rows with a label, which come first
        with progress.bar("fitting the probe"):
            features = member_features(encoders, prepared.probe_split[0])
            held = None if prepared.dev is None else member_features(encoders, prepared.dev)
            if settings is None:
                rows = train.texts, features, held
                probe = _final_probe(prepared, *rows, config, progress)
            else:
                probe = _refitted_probe(prepared, features, config, settings, progress)
        if settings is None:
            labelled = train.texts, hard
            ensemble, held_out = _ensemble(prepared, labelled, dev, probe, held, config, progress)
            if isinstance(ensemble, MeanWithTfidf):
                judged = _dev_rows(prepared, dev, probe, held)
                probe, ensemble = _calibrated_mean(probe, ensemble, judged, prepared.facts)
        else:
            ensemble, held_out = _refitted_ensemble(prepared, train, config, settings), None
    collapse = collapse_report(features)
    collapse["collapsed"] &= not config.freeze  # nothing was trained that could have
    model = Model(
        config,
        prepared.classes,
        prepared.indexer,
        encoders,
        members.objectives,
        probe,
        ensemble,
        columns=train.columns,
        seen=_seen(train, prepared),
    )
    return Fitted(
        model,
        members.history,
        features,
        prepared.facts,
        collapse,
        planned,
        members.interrupted,
        prepared.pieces,
        held_out,
        settings is None and _chosen_on_dev(prepared, probe, ensemble, config),
    )


def _chosen_on_dev(
    prepared: Prepared, probe: Probe, ensemble: Ensemble | None, config: Config
) -> bool:
    """Whether dev has chosen the epoch, a C, a temperature or the weights of a pool."""
    rows = 0 if prepared.dev_labels is None else int((prepared.dev_labels >= 0).sum())
    if rows < FEWEST_DEV_ROWS:
        return False
    within = isinstance(probe, LogisticRegressionProbe) and not probe.chosen_on_dev
    return not (config.freeze and within and ensemble is None and not config.calibrate)


@dataclass
class Members:
    """The trained encoders of a run.

    objectives: with which they were trained last; none of a frozen encoder.
    history: of all members, as `Fitted` has it.
    config: as it was, but without a second stage that an interruption has cut off.
    """

    encoders: list[Encoder]
    objectives: list[Objective]
    history: list[Record]
    interrupted: bool
    config: Config


def train_members(
    prepared: Prepared,
    config: Config,
    progress: Progress,
    callbacks: Sequence[Callback] = (),
    checkpoint: Path | None = None,
    monitor: bool = True,
) -> Members:
    """Train every member of a configuration whose epochs are decided (`decided`).

    The arguments are those of `fit_model`.
    """
    made = Members([], [], [], False, config)
    for member in range(config.members):
        words = progress, callbacks, checkpoint, monitor
        try:
            trained = train_member(prepared, made.config, member, *words)
        except KeyboardInterrupt:
            if not made.encoders:
                raise
            made.interrupted = True
            progress.say(f"keeping {plural(member, 'member')} of {config.members}")
            break
        made.interrupted = trained.interrupted
        if not trained.finetuned and second_stage(made.config):
            if made.encoders:  # which answer by a softmax, and this one has none yet
                progress.say(f"keeping {plural(member, 'member')} of {config.members}")
                break
            made.config = replace(made.config, finetune_epochs=0)
        made.history += [{"member": member + 1, **record} for record in trained.history]
        made.encoders.append(trained.encoder.finish())
        if trained.objective is not None:
            made.objectives.append(trained.objective.eval())
        if made.interrupted:
            break
    return made


def _seen(train: Dataset, prepared: Prepared) -> SeenTexts:
    splits: dict[str, Iterable[Sequence[str]]] = {}
    if train.on_disk is not None:
        splits["train"] = train.on_disk
    for name in ("train", "dev"):
        if name in prepared.pieces:
            splits[name] = prepared.pieces[name].lists()
    if prepared.taught:
        splits["train"] = chain(splits["train"], prepared.taught)
    return SeenTexts.of(splits)


def _final_probe(
    prepared: Prepared,
    texts: Sequence[str],
    features: np.ndarray,
    dev_features: np.ndarray | None,
    config: Config,
    progress: Progress,
) -> Probe:
    """texts: of the rows that have a label."""
    dev_labels, shares = prepared.dev_labels, prepared.probe_shares
    labels = prepared.probe_split[1] if shares is None else shares
    kind = probe_class(config.probe_features)
    if labels.ndim > 1 and kind is not LogisticRegressionProbe:
        labels = labels.argmax(axis=1)
    fit: Callable[..., Probe] = kind.fit
    if config.freeze and kind is LogisticRegressionProbe:
        whole = texts if len(texts) == len(features) else None
        fit = partial(fit_frozen_probe, beside=prepared.emoji_scores(config), texts=whole)
    probe = fit(features, labels, dev_features, dev_labels)
    if kind is not LogisticRegressionProbe:
        expect(isinstance(probe, kind), kind, "fit", probe, f"a fitted {kind.__name__}")
        _try_probe(kind, probe, features[:2], len(prepared.classes))
        return probe
    assert isinstance(probe, LogisticRegressionProbe)
    probe = adjusted(probe, labels, config.logit_adjustment)
    if not config.calibrate:
        return probe
    if ENSEMBLES.get(config.probe_features) is PoolWithNgrams:  # calibrated as a whole
        enough_to_calibrate(dev_labels, progress)
        return probe
    return calibrated(probe, dev_features, dev_labels, prepared.facts, progress)


def _try_probe(kind: type[Probe], probe: Probe, features: np.ndarray, classes: int) -> None:
    """Raise ConfigError for a probe of somebody's own that does not give a score and a probability
    for each class, or is another after it was saved."""
    scores, shape = probe.decision(features), (len(features), classes)
    expect(np.shape(scores) == shape, kind, "decision", scores, f"scores of shape {shape}")
    shares = probe.probabilities(features)
    expect(np.shape(shares) == shape, kind, "probabilities", shares, f"shares of shape {shape}")
    for name, numbers in (("decision", scores), ("probabilities", shares)):
        if not np.isfinite(numbers).all():
            raise own_fault(kind, f"NaN or infinity, returned by {name}", "finite numbers")
    try:
        again = kind.from_arrays(probe.arrays(), classes, features.shape[1]).decision(features)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        said = f"{type(error).__name__} ({error}) in from_arrays or arrays"
        raise own_fault(kind, said, "arrays that make the same probe again") from error
    if not np.allclose(again, scores):
        raise own_fault(kind, "another probe after arrays and from_arrays", "the same")


def calibrated(
    probe: LogisticRegressionProbe,
    dev_features: np.ndarray | None,
    dev_labels: np.ndarray | None,
    facts: dict[str, Any],
    progress: Progress,
) -> LogisticRegressionProbe:
    """The probe, calibrated on dev rows; a warning where they are too few. The temperature goes
    into `facts`."""
    if enough_to_calibrate(dev_labels, progress):
        assert dev_features is not None and dev_labels is not None
        probe, facts["probe_temperature"] = calibrate(probe, dev_features, dev_labels)
    return probe


def enough_to_calibrate(dev_labels: np.ndarray | None, progress: Progress) -> bool:
    """Whether there are dev rows enough for a temperature; a warning where not."""
    rows = 0 if dev_labels is None else len(dev_labels)
    if rows < FEWEST_DEV_ROWS:
        progress.warn(
            f"calibrate: found {rows} dev rows, expected at least {FEWEST_DEV_ROWS}; the "
            "probabilities are left as they are: use cv = 5 (--cv 5), which calibrates on the rows "
            "that folds hold out, or give more rows"
        )
    return rows >= FEWEST_DEV_ROWS


def _refitted_probe(
    prepared: Prepared,
    features: np.ndarray,
    config: Config,
    settings: Settings,
    progress: Progress,
) -> Probe:
    """The probe with the C and the temperature that were chosen; of a pool without it, with the
    default."""
    labels = prepared.probe_split[1]
    kind = probe_class(config.probe_features)
    if kind is not LogisticRegressionProbe:
        return kind.fit(features, labels)
    default = FROZEN_C if config.freeze else DEFAULT_C
    grid = (settings.c.get("encoder", default),)
    scores = prepared.emoji_scores(config)
    probe = fit_probe(features, labels, grid=grid, unit_length=config.freeze, beside=scores)
    probe = adjusted(probe, labels, config.logit_adjustment)
    if not config.calibrate:
        return probe
    if all(temperature == 1 for temperature in settings.temperatures.values()):
        progress.warn(
            f"calibrate: found no mistake in the rows that folds held out, or fewer than "
            f"{FEWEST_DEV_ROWS} of them; expected both; the probabilities are left as they are: "
            "give more rows"
        )
    if "encoder" not in settings.temperatures:  # of a pool, which has one of its own
        return probe
    temperature = prepared.facts["probe_temperature"] = settings.temperatures["encoder"]
    return cooled(probe, temperature)


def _refitted_ensemble(
    prepared: Prepared, train: Dataset, config: Config, settings: Settings
) -> Ensemble | None:
    kind = ENSEMBLES.get(config.probe_features)
    if kind is None:
        return None
    rows = train.texts, prepared.probe_split[1]
    return kind.refit(*rows, settings, config)


def _ensemble(
    prepared: Prepared,
    rows: tuple[Sequence[str], np.ndarray],
    dev: Dataset | None,
    probe: Probe,
    dev_features: np.ndarray | None,
    config: Config,
    progress: Progress,
) -> tuple[Ensemble | None, np.ndarray | None]:
    """The n-gram models that predict together with the probe, fitted on the probe's texts that have
    a label and these labels (`rows`), and the `dev_probabilities` of `Fitted`."""
    kind = ENSEMBLES.get(config.probe_features)
    if kind is None:
        return None, None
    held = _dev_rows(prepared, dev, probe, dev_features)
    with progress.bar(kind.title):
        return kind.fit(*rows, held, config, prepared.probe_shares)


def _dev_rows(
    prepared: Prepared, dev: Dataset | None, probe: Probe, features: np.ndarray | None
) -> DevRows | None:
    if dev is None or features is None:
        return None
    assert prepared.dev_labels is not None
    pairs = zip(dev.texts, dev.labels, strict=True)
    known = [text for text, label in pairs if label in prepared.classes]
    return DevRows(known, prepared.dev_labels, probe.probabilities(features))


def _calibrated_mean(
    probe: Probe, ensemble: MeanWithTfidf, dev: DevRows | None, facts: dict[str, Any]
) -> tuple[Probe, MeanWithTfidf]:
    """Both with the temperature that fits their mean, beside those that they have: that of the
    probe is in `facts`."""
    if dev is None or "probe_temperature" not in facts:
        return probe, ensemble
    assert isinstance(probe, LogisticRegressionProbe)
    ensemble, by = ensemble.calibrated(dev.texts, dev.probe, dev.labels)
    facts["probe_temperature"] *= by
    return cooled(probe, by), ensemble


@contextmanager
def own_torch_state(threads: int) -> Iterator[None]:
    """Inside the block torch has gradients, float32, no autocast, the processor as its default
    device, so many threads and random numbers of its own, whatever the caller has set; after it
    everything is as before."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        with (
            ExitStack() as undone,
            fixed_threads(threads),
            torch.random.fork_rng(devices=[]),
            torch.inference_mode(False),
            torch.enable_grad(),
        ):
            if torch.get_default_device().type != "cpu":  # the mode slows each call of torch
                undone.enter_context(torch.device("cpu"))
            for device in ("cpu", "cuda"):
                if torch.is_autocast_enabled(device):
                    undone.enter_context(torch.autocast(device, enabled=False))
            yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def fixed_threads(threads: int) -> Iterator[None]:
    """Limit torch's and BLAS's threads inside the block, and put them back after it."""
    from threadpoolctl import threadpool_limits

    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        with threadpool_limits(threads):
            yield
    finally:
        torch.set_num_threads(before)
