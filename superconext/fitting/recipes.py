"""The preset `auto`: of a few recipes, the one that predicts held-out rows best.

The recipes are n-grams alone, a probe on an encoder that is left as it is (the mean of the word
vectors and, where there is one, the pretrained encoder), the encoder that is trained on the labels,
and a pool of n-grams with each. They are compared by log loss on the same held-out rows: those of a
cross-validation within train, or dev where that has `DEV_ROWS_THAT_DECIDE` rows or `cv` is 0. What
has to be trained is chosen where it is better than the best of the others by more than the standard
error of the difference. Among these, which are ready within seconds, the lowest log loss decides;
where there is a pretrained encoder, it predicts, from `ENOUGH_ROWS` on with n-grams, unless another
is better by more than the standard error: few rows choose badly (scripts/few_label_choice.py). With
fewer rows it is not trained further, which gains nothing (scripts/results/few_label_training.csv).
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from superconext.config.parameters import Config, files_of
from superconext.core.errors import ConfigError, duration, plural
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.fitting.cross_validation import (
    DEFAULT_FOLDS,
    ENCODER,
    NGRAMS,
    PRETRAINED,
    TFIDF,
    VECTORS,
    CrossValidated,
    CrossValidation,
    OutOfFold,
    cross_validate,
    frozen,
)
from superconext.fitting.fit import Fitted, calibrated, enough_to_calibrate, fit_model
from superconext.fitting.preprocess import Prepared
from superconext.fitting.time_budget import EpochBudget, OutOfTime, clock
from superconext.probe.base import FEWEST_DEV_ROWS, log_shares, shifted, softmax
from superconext.probe.ensemble import (
    ALONE,
    POOL,
    Fold,
    PoolWithNgrams,
    Settings,
    cross_weighted,
    fit_weights,
    row_losses,
)
from superconext.probe.logistic_regression import LogisticRegressionProbe
from superconext.probe.metrics import metric_values
from superconext.training.callbacks import Callback, EarlyStopping
from superconext.training.pretraining.make import words_read
from superconext.vectors.text_corpus import Lines

#: Dev rows from which on dev decides, in place of a cross-validation.
DEV_ROWS_THAT_DECIDE = 50

#: Parameters that leave the choice open: where they are named, `auto` still chooses.
OPEN = (
    *("preset", "unlabelled", "vectors", "init", "pretrain", "pretrain_words"),
    *("vector_method", "vector_dimension"),
    *("normalize", "bridge", "min_count", "max_length", "seed", "threads", "device", "precision"),
    *("compile", "baselines", "cv", "budget", "logit_adjustment", "calibrate"),
)

#: Least difference in log loss that is worth a trained encoder, where all recipes are nearly right.
WORTH_TRAINING = 0.001

#: And n-grams beside an encoder: a pool may give them no weight.
WORTH_NGRAMS = 0.001

#: Training rows from which n-grams, and training on the labels, may add to a pretrained encoder.
ENOUGH_ROWS = 100

#: Words of unlabelled text from which an encoder is pretrained on it.
ENOUGH_WORDS = 500_000

#: Words of a text that pretraining is through with in a second, both passes and emoji together.
_WORDS_A_SECOND = 8_000

#: Share of the budget after which what needs no training is not fitted on further folds.
_FOR_THE_QUICK = 1 / 3


@dataclass(frozen=True)
class Recipe:
    """What predicts: an encoder, n-grams, or both.

    encoder: that model of a `CrossValidation`, None for n-grams alone.
    """

    name: str
    encoder: str | None
    ngrams: bool

    @property
    def trained(self) -> bool:
        return self.encoder == ENCODER

    @property
    def models(self) -> dict[str, str]:
        """Models of a `CrossValidation` by what `Settings` calls them."""
        found = {ENCODER: self.encoder} if self.encoder else {}
        return found | ({TFIDF: TFIDF, NGRAMS: NGRAMS} if self.ngrams else {})

    def config(self, config: Config) -> Config:
        """The configuration of a run by this recipe, under the preset whose values it has."""
        features = "encoder+ngrams" if self.ngrams else "encoder"
        own = config if self.trained else frozen(config, self.encoder or VECTORS)
        return replace(own, probe_features=features, preset="fast")

    @property
    def title(self) -> str:
        encoder = [_TITLES[self.encoder]] if self.encoder else []
        return " + ".join(encoder + ["n-grams"] * self.ngrams)


_TITLES = {
    VECTORS: "mean word vectors",
    PRETRAINED: "frozen pretrained encoder",
    ENCODER: "trained encoder",
}


def recipes_of(config: Config, rows: int) -> tuple[Recipe, ...]:
    """What is compared with so many training rows; `frozen` is the pretrained encoder where there
    is one."""
    pairs = {"frozen": VECTORS, "trained": ENCODER}
    if config.init or config.pretrain:
        pairs = {"vectors": VECTORS, "frozen": PRETRAINED}
        pairs |= {"trained": ENCODER} if rows >= ENOUGH_ROWS else {}
    recipes = [Recipe("ngrams", None, True)]
    for name, encoder in pairs.items():
        recipes += [Recipe(name, encoder, False), Recipe(f"{name}+ngrams", encoder, True)]
    return tuple(recipes)


@dataclass(frozen=True)
class Choice:
    """The chosen recipe, its configuration, and what `manifest.json` says of the choice."""

    recipe: Recipe
    config: Config
    facts: dict[str, Any]


def pretraining_of(given: Mapping[str, Any], config: Config, progress: Progress) -> dict[str, Any]:
    """The parameters by which the unlabelled text pretrains an encoder without being told to: none
    where it is too little, or the budget too small. Says so.

    Passes over a longer text read as many words as fit into the budget.
    Raises DataError for text that cannot be read.
    """
    asked = given.get("pretrain") is not None or config.init
    if config.preset != "auto" or asked or not config.unlabelled:
        return {}
    words = words_read(Lines(files_of(config.unlabelled)))
    if words < ENOUGH_WORDS:
        return {}
    a_minute = 60 * _WORDS_A_SECOND
    read = min(words, round(config.budget * a_minute))
    if read < ENOUGH_WORDS:
        progress.say(
            f"auto: no encoder is pretrained: within --budget it reads {read:,} of {words:,} "
            f"unlabelled words, and needs {ENOUGH_WORDS:,} (--pretrain reads all)"
        )
        return {}
    about = plural(max(round(read / a_minute), 1), "minute")
    on = f"an encoder on {read:,}{f' of {words:,}' * (read < words)} unlabelled words"
    more = f"; on all with --budget {math.ceil(words / a_minute)}m" * (read < words)
    progress.say(f"auto: also pretrains {on}: about {about} (not with --no-pretrain{more})")
    return {"pretrain": True, **({"pretrain_words": read} if read < words else {})}


def naming(given: Mapping[str, Any]) -> list[str]:
    """The given parameters that name a recipe, sorted, the preset first."""
    named = sorted(name for name, value in given.items() if value is not None and name not in OPEN)
    return ["preset"] * (given.get("preset") not in (None, "auto")) + named


def flags_naming(given: Mapping[str, Any]) -> list[str]:
    """The same as options of the command line."""
    return [f"--{'no-' * (given[name] is False)}{name}".replace("_", "-") for name in naming(given)]


def is_open(given: Mapping[str, Any]) -> bool:
    """Whether none of the given parameters names a recipe."""
    return not naming(given)


def check_open(given: Mapping[str, Any], config: Config) -> None:
    """Raise ConfigError where `auto` is asked for and a recipe named beside it."""
    if config.preset != "auto" or is_open(given):
        return
    first = naming(given)[0]
    raise ConfigError(
        f"preset = 'auto' with {first} = {given[first]!r}: expected a recipe to be chosen or to be "
        "named: leave one of them out, or use preset fast"
    )


def choose(
    cv: CrossValidation, progress: Progress, checkpoint: Path | None = None
) -> tuple[Choice, CrossValidated, Settings]:
    """The recipe of the lowest out-of-fold log loss, what it and its encoder alone predict, and
    the settings for the fit on all rows.

    The budget counts from when word vectors and pretrained encoder are made. Fewer folds are fitted
    where it ends earlier, the trained encoder last, for fewer epochs where there is no time for
    all; all recipes are compared on the same folds. checkpoint: of the fit on all rows.
    """
    config = cv.config
    seconds, dealt = 60 * config.budget, len(cv.folds)
    recipes = recipes_of(config, len(cv.labels))
    untrained = [recipe.encoder for recipe in recipes if recipe.encoder and not recipe.trained]
    cv.make_ready(untrained)
    began = clock()
    _begun(recipes, config, progress)
    # Where so few rows are dealt three times or more, encoders are trained on the first deal alone.
    first = sum(fold.repeat == 0 for fold in cv.folds)
    cv.add(
        dict.fromkeys([TFIDF, NGRAMS, *untrained]),
        began + _FOR_THE_QUICK * seconds,
    )
    once, budget = dealt > 2 * first, EpochBudget(checkpoint)
    if any(recipe.trained for recipe in recipes):
        cv.add_encoder(began + seconds, first if once else None, budget)
    every, done = cv.folds, len(cv.models.get(ENCODER, ()))

    shift = config.logit_adjustment * log_shares(cv.labels, len(cv.classes))

    def held_out(recipe: Recipe, calibrate: bool = False) -> OutOfFold:
        how = POOL if recipe.ngrams else ALONE
        return cv.held_out(recipe.models, how, calibrate=calibrate)

    def lost(one: OutOfFold) -> np.ndarray:
        return _plain_losses(one.shares, one.folds, cv.labels, shift)

    quick = {recipe: held_out(recipe) for recipe in recipes if not recipe.trained}
    ready = _ready({recipe: lost(one) for recipe, one in quick.items()}, len(cv.labels))
    if done:
        cv.keep(done)
    tried = {recipe: held_out(recipe) for recipe in recipes if done or not recipe.trained}
    rows, _ = tried[ready].mean(len(cv.classes))
    losses = {recipe: lost(one)[rows] for recipe, one in tried.items()}
    scores = {recipe: one.scores(cv.train, cv.classes) for recipe, one in tried.items()}
    limit = "; more would exceed the budget" * (len(cv.folds) < dealt)
    if done and once and len(cv.folds) == first:
        limit = f"; encoders are trained in the first {first} only"
    where = f"out of fold on {len(rows)} rows (in {len(cv.folds)} of {dealt} folds{limit})"
    adjusted = bool(np.ptp(shift) > 0)
    compared = _Compared(scores, where, began, len(cv.labels), adjusted, budget)
    choice = _told(_decided(losses, len(cv.labels), ready), compared, config, progress)
    best = choice.recipe
    if not best.trained:  # the others were on fewer folds perhaps, it was on all
        if len(cv.folds) < len(every):
            progress.say(f"auto: its cross-validated scores are from all {len(every)} folds")
        cv.folds = every
    alone = None
    if best.ngrams:  # of n-grams alone, beside an encoder that was left as it is
        alone = cv.held_out({ENCODER: best.encoder or untrained[0]}, ALONE, calibrate=False)
    baselines = cv.baselines() if config.baselines else {}
    chosen = held_out(best, config.calibrate)  # temperatures had no part in the choice
    return choice, CrossValidated(chosen, alone, baselines), chosen.settings


def _begun(recipes: Sequence[Recipe], config: Config, progress: Progress) -> None:
    progress.say(f"auto: comparing {len(recipes)} recipes within {duration(config.budget)}")


def fit_on_dev(
    train: Dataset,
    config: Config,
    dev: Dataset,
    progress: Progress,
    *,
    test_texts: Sequence[str] = (),
    not_drawn: Sequence[str] = (),
    callbacks: Sequence[Callback] = (),
    checkpoint: Path | None = None,
    monitor: bool = True,
    on_prepared: Callable[[Prepared], None] | None = None,
    classes: Sequence[str] | None = None,
) -> tuple[Fitted, Choice]:
    """A model of the training rows whose recipe dev rows have chosen, and the choice.

    Each recipe is fitted on train as a run of its own would be, and the best on dev is the model.
    No fit on all rows follows, as after `choose`. Weights of a pool that are judged were fitted on
    other dev rows. Arguments are those of `fit_model`, and so are the errors.
    """
    recipes = recipes_of(config, len(train))
    # A temperature of its own on the rows that judge would favour a recipe.
    plainly = replace(config, calibrate=False)
    shared: dict[str, Any] = {"test_texts": test_texts, "not_drawn": not_drawn}
    shared |= {"classes": classes, "progress": progress}

    def fitted_by(pool: Recipe, **more: Any) -> Fitted:
        return fit_model(train, pool.config(plainly), dev, **shared, **more)

    pools = {recipe.encoder: recipe for recipe in recipes if recipe.encoder and recipe.ngrams}
    trained = pools.pop(ENCODER, None)
    once = on_prepared  # before the time of the budget begins
    fits: dict[str | None, Fitted] = {}
    for encoder, pool in pools.items():
        fits[encoder] = fitted_by(pool, on_prepared=once)
        once = None
    fits[None] = plain = next(iter(fits.values()))  # whose n-grams are those of all
    began = clock()  # word vectors and pretrained encoder are made
    _begun(recipes, config, progress)
    budget = EpochBudget(checkpoint)
    if trained is not None:
        watched: dict[str, Any] = {"checkpoint": checkpoint, "monitor": monitor}

        def train_encoder(config: Config, hooks: Sequence[Callback]) -> Fitted:
            every = [*hooks, *callbacks]
            fitted = fit_model(train, config, dev, **shared, callbacks=every, **watched)
            if fitted.interrupted:  # what some of its epochs predict is not what it would
                raise KeyboardInterrupt
            return fitted

        with contextlib.suppress(OutOfTime):
            latest = began + 60 * config.budget
            fits[ENCODER] = budget.train(train_encoder, trained.config(plainly), latest)
    classes = plain.model.classes
    known = [row for row, label in enumerate(dev.labels) if label in classes]
    texts, truth = ([column[row] for row in known] for column in (dev.texts, dev.labels))
    labels = np.array([classes.index(label) for label in truth])
    ngrams = _ngrams_alone(plain, texts, labels)
    shares: dict[Recipe, np.ndarray] = {}
    for recipe in recipes:
        fitted = fits.get(recipe.encoder)
        if fitted is None:
            continue
        if not recipe.encoder:
            shares[recipe] = ngrams[0]
        elif recipe.ngrams:
            assert fitted.dev_probabilities is not None
            shares[recipe] = fitted.dev_probabilities
        else:
            model = fitted.model
            shares[recipe] = model.probe.probabilities(model.features(texts))
    fold = [Fold(0, np.empty(0, np.int64), np.arange(len(labels)))]
    of_train = np.array([classes.index(label) for label in train.labels if label in classes])
    shift = config.logit_adjustment * log_shares(of_train, len(classes))

    def of_recipe(recipe: Recipe) -> np.ndarray:
        """The shift that its probabilities come with."""
        pool = fits[recipe.encoder].model.ensemble
        assert isinstance(pool, PoolWithNgrams)
        if not recipe.encoder:
            return pool.shift
        return pool.whole_shift if recipe.ngrams else pool.of_probe

    losses = {
        recipe: _plain_losses([one], fold, labels, of_recipe(recipe))
        for recipe, one in shares.items()
    }
    scores = {
        recipe: metric_values(truth, [classes[k] for k in one.argmax(axis=1)], classes, one)
        for recipe, one in shares.items()
    }
    where = f"on {len(labels)} dev rows"
    compared = _Compared(scores, where, began, len(train), bool(np.ptp(shift) > 0), budget)
    choice = _told(_decided(losses, len(train)), compared, config, progress)
    fitted = fits[choice.recipe.encoder]
    model = fitted.model
    if not choice.recipe.ngrams:
        model.ensemble, fitted.dev_probabilities = None, None
        if config.calibrate and isinstance(model.probe, LogisticRegressionProbe):
            features = model.features(texts)
            model.probe = calibrated(model.probe, features, labels, fitted.facts, progress)
    elif not choice.recipe.encoder:
        assert isinstance(model.ensemble, PoolWithNgrams)
        model.ensemble = replace(model.ensemble, weights=ngrams[1])
        fitted.dev_probabilities = ngrams[0]
    if config.calibrate and isinstance(model.ensemble, PoolWithNgrams):
        assert fitted.dev_probabilities is not None
        enough_to_calibrate(labels, progress)
        calibrated_pool = model.ensemble.calibrated(fitted.dev_probabilities, labels)
        model.ensemble, fitted.dev_probabilities = calibrated_pool
    features_of = choice.config.probe_features
    model.config = replace(model.config, probe_features=features_of, calibrate=config.calibrate)
    return replace(fitted, chosen_on_dev=len(labels) >= FEWEST_DEV_ROWS), choice


def fit_chosen(
    train: Dataset,
    config: Config,
    dev: Dataset | None,
    progress: Progress,
    *,
    test_texts: Sequence[str] = (),
    not_drawn: Sequence[str] = (),
    monitor: bool = True,
) -> tuple[Fitted, Choice]:
    """A model of the training rows, its recipe chosen on dev, or by cross-validation where dev has
    fewer than `DEV_ROWS_THAT_DECIDE` rows and `cv` is not 0, or is None. Arguments are those of
    `fit_model`."""
    more: dict[str, Any] = {"progress": progress, "not_drawn": not_drawn, "monitor": monitor}
    more["test_texts"] = test_texts
    if dev is not None and (len(dev) >= DEV_ROWS_THAT_DECIDE or config.cv == 0):
        return fit_on_dev(train, config, dev, **more)
    held = [*(dev.texts if dev is not None else ()), *test_texts]
    cv = CrossValidation(
        train, config, config.cv or DEFAULT_FOLDS, progress, held, not_drawn=not_drawn
    )
    choice, _, settings = choose(cv, progress)
    return fit_model(train, choice.config, dev, settings=settings, **more), choice


def fit_cross_validated(
    train: Dataset,
    config: Config,
    classes: Sequence[str],
    callbacks: Sequence[Callback] = (),
    progress: Progress | None = None,
) -> tuple[Fitted, dict[str, Any]]:
    """A model of all rows, its recipe (with the preset `auto`) and settings chosen by
    cross-validation, and what that has shown: metrics, `probabilities` and `recipes`.

    Callbacks are those of the fit on all rows: raises ConfigError for one that watches dev rows.
    """
    progress = progress or Progress()
    for callback in callbacks:
        if isinstance(callback, EarlyStopping) and callback.monitor == "dev_score":
            raise ConfigError(
                "early stopping watches 'dev_score', and after a cross-validation all rows train; "
                "expected the loss or rows held out: use monitor='loss', mode='min', or cv=0"
            )
    # Nobody is shown baselines here.
    plainly = replace(config, baselines=False)
    cv = CrossValidation(train, plainly, config.cv or DEFAULT_FOLDS, progress, classes=classes)
    shown: dict[str, Any] = {}
    if config.preset == "auto":
        choice, folds, settings = choose(cv, progress)
        config = replace(choice.config, baselines=config.baselines)
        shown["recipes"] = choice.facts
    else:
        folds = cross_validate(cv)
        settings = folds.recipe.settings
    rows, shares = folds.recipe.mean(len(classes))
    shown["probabilities"] = np.full((len(train), len(classes)), np.nan)
    shown["probabilities"][rows] = shares
    shown |= folds.recipe.metrics(train, classes)
    fitted = fit_model(
        train,
        config,
        classes=classes,
        callbacks=callbacks,
        progress=progress,
        settings=settings,
    )
    return fitted, shown


def _plain_losses(
    shares: Sequence[np.ndarray], folds: Sequence[Fold], labels: np.ndarray, shift: np.ndarray
) -> np.ndarray:
    """Log loss of each row, of class indices `[N]`, by the probabilities of each fold's held-out
    rows `[n, C]` as they were before `logit_adjustment` subtracted `shift` `[C]`."""
    return row_losses([shifted(one, -shift) for one in shares], folds, labels)


def _ngrams_alone(
    fitted: Fitted, texts: Sequence[str], labels: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The n-grams of a pool without its encoder: probabilities `[M, C]` of dev rows, each by
    weights fitted on others and shifted as the pool's, and the weights."""
    pool = fitted.model.ensemble
    assert isinstance(pool, PoolWithNgrams)
    logs = [np.log(one.probabilities(texts)) for one in (pool.tfidf, pool.ratios)]
    weights = np.array([0.0, *fit_weights(logs, labels)])
    return softmax(cross_weighted(logs, labels) - pool.shift), weights


def _gain(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """By how much the second of two recipes has the lower log loss `[n]`, and the standard error;
    rows that are NaN were not held out."""
    difference = first - second
    difference = difference[~np.isnan(difference)]
    return float(difference.mean()), float(difference.std()) / math.sqrt(len(difference))


def _lowest(mean: Mapping[Recipe, float]) -> Recipe:
    """The recipe of the lowest log loss; an encoder alone where n-grams beside it are worth less
    than `WORTH_NGRAMS`."""
    best = min(mean, key=lambda recipe: mean[recipe])
    alone = [r for r in mean if r.encoder and r.encoder == best.encoder and not r.ngrams]
    return next((r for r in alone if mean[r] - mean[best] < WORTH_NGRAMS), best)


def _ready(losses: Mapping[Recipe, np.ndarray], rows: int) -> Recipe:
    """The choice among recipes without an encoder to train, from their log loss on each row `[n]`
    and the number of training rows."""
    best = _lowest({recipe: float(np.nanmean(loss)) for recipe, loss in losses.items()})
    expected = Recipe("", PRETRAINED, rows >= ENOUGH_ROWS)
    for recipe in losses:
        if (recipe.encoder, recipe.ngrams) == (expected.encoder, expected.ngrams):
            gain, error = _gain(losses[recipe], losses[best])
            return best if gain > error else recipe
    return best


@dataclass(frozen=True)
class _Decision:
    """What log losses have decided.

    mean: log loss of each recipe. ready: the choice among those that need no training.
    rival: what was measured against it at last, None where nothing was; it is `chosen` where it is
        clearly better. gain, error: by how much its log loss is lower, and the standard error.
    behind: recipes of lower log loss on these rows, which were behind on more.
    """

    mean: Mapping[Recipe, float]
    ready: Recipe
    chosen: Recipe
    rival: Recipe | None
    gain: float
    error: float
    behind: Sequence[Recipe]

    def why(self, rows: int) -> str:
        """The reason in words. rows: of training."""
        out = "the trained encoder was left out, as it takes longer than the budget"
        if rows < ENOUGH_ROWS and any(recipe.encoder == PRETRAINED for recipe in self.mean):
            out = f"with fewer than {ENOUGH_ROWS} rows a pretrained encoder is not trained further"
        if self.chosen.trained:
            return (
                f"its log loss is {self.gain:.4f} lower than that of {self.ready.title}, more than "
                f"one standard error ({self.error:.4f})"
            )
        why = [out]
        if self.rival is not None:
            why = [self._of_rival(self.rival)]
            if not any(recipe.trained for recipe in self.mean):
                why.append(out)
        if self.behind:
            why.append(f"over all folds its log loss is lower than that of {self.behind[0].title}")
        return "; ".join(why)

    def _of_rival(self, rival: Recipe) -> str:
        if self.gain <= 0:
            return f"{rival.title} is no better: its log loss is {-self.gain:.4f} higher"
        return (
            f"{rival.title} is not clearly better: its log loss is {self.gain:.4f} lower, and has "
            f"to be lower by more than one standard error ({self.error:.4f})"
            + f" and {WORTH_TRAINING}"
            * rival.trained
        )


def _decided(
    losses: Mapping[Recipe, np.ndarray], rows: int, ready: Recipe | None = None
) -> _Decision:
    """The choice among recipes, from their log loss on each of the same rows `[n]`.

    rows: of training. ready: the choice among those that need no training, where more rows than
    these have shown it.
    """
    mean = {recipe: float(loss.mean()) for recipe, loss in losses.items()}
    ready = ready or _ready({r: loss for r, loss in losses.items() if not r.trained}, rows)
    trained = [recipe for recipe in mean if recipe.trained]
    if trained:
        best = _lowest({recipe: mean[recipe] for recipe in trained})
        gain, error = _gain(losses[ready], losses[best])
        if gain > max(error, WORTH_TRAINING):
            return _Decision(mean, ready, best, best, gain, error, ())
    lower = {r: _gain(losses[ready], losses[r]) for r in mean if mean[r] < mean[ready]}
    # What a pretrained encoder was kept in place of; others were behind over all folds.
    near = [r for r, (by, of) in lower.items() if by <= of and ready.encoder == PRETRAINED]
    rivals = [*trained, *(recipe for recipe in near if not recipe.trained)]
    behind = [recipe for recipe in lower if not recipe.trained and recipe not in near]
    if not rivals:
        return _Decision(mean, ready, ready, None, 0.0, 0.0, behind)
    rival = min(rivals, key=lambda r: mean[r])
    return _Decision(mean, ready, ready, rival, *_gain(losses[ready], losses[rival]), behind)


@dataclass(frozen=True)
class _Compared:
    """How recipes were compared.

    scores: metrics of each recipe. where: on which rows. began: by `clock`. rows: of training.
    adjusted: whether classes are of several sizes and rare ones get more weight. budget: the epochs
    of the trained encoder.
    """

    scores: Mapping[Recipe, Mapping[str, Any]]
    where: str
    began: float
    rows: int
    adjusted: bool
    budget: EpochBudget


def _told(decision: _Decision, compared: _Compared, config: Config, progress: Progress) -> Choice:
    """A decision as a choice; it is told in three lines."""
    chosen, why = decision.chosen, decision.why(compared.rows)
    table = {
        recipe.name: {"title": recipe.title, "log_loss": decision.mean[recipe], **scores}
        for recipe, scores in compared.scores.items()
    }
    told = [
        f"{row['title']} {row['log_loss']:.3f} ({row['accuracy']:.1%})" for row in table.values()
    ]
    seconds = clock() - compared.began
    progress.say(f"auto: compared {len(table)} recipes {compared.where} in {seconds:.0f} s")
    progress.say(f"auto: log loss and accuracy: {'; '.join(told)}")
    budget = compared.budget
    epochs = budget.epochs if any(recipe.trained for recipe in compared.scores) else None
    if epochs:
        few = f"{plural(epochs, 'epoch')} of {budget.of}"
        progress.say(f"auto: the encoder is trained for {few}, to keep to the budget (--budget)")
    shift = f"rare classes get more weight (logit adjustment {config.logit_adjustment:g}); "
    progress.say(
        f"auto: chosen: {chosen.title}; {why}; {shift * compared.adjusted}"
        f"as the best of {len(table)}, its scores on these rows are a little too high"
    )
    facts = {
        "chosen": chosen.name,
        "why": why,
        "compared": compared.where,
        "standard_error": decision.error,
        "seconds": round(seconds, 1),
        "epochs": epochs,
        "recipes": table,
    }
    own = chosen.config(config)
    return Choice(chosen, budget.config(own) if chosen.trained else own, facts)
