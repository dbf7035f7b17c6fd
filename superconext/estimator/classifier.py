"""The scikit-learn estimators: `fit`, `predict`, `transform`."""

from __future__ import annotations

import inspect
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.exceptions import NotFittedError

from superconext.config.parameters import (
    BY_NAME,
    FILE_PARAMETERS,
    PARAMETERS,
    REMOVED,
    Config,
    check_names,
    docstring,
    meant,
    with_files,
)
from superconext.core.blank import is_blank, zeros_for_blank
from superconext.core.errors import ConfigError, DataError, plural
from superconext.estimator.loading import (
    PredictMixin,
    check_rows,
    check_texts,
    load_classifier,
    refuse_arguments,
    true_labels,
)

if TYPE_CHECKING:
    from typing import Self

    from superconext.core.progress import Progress
    from superconext.fitting.model import Model
    from superconext.training.callbacks import Callback


class _TextEstimator(TransformerMixin, BaseEstimator):
    """What the classifier and the encoder share: parameters, `fit`, `transform`, `save`, `load`.

    The docstrings of the two classes list the parameters and the attributes that `fit` sets.
    """

    def __new__(cls, *_: Any, **given: Any) -> Self:
        check_names((name for name in given if name in REMOVED), cls.__name__)
        return super().__new__(cls)

    callbacks: Sequence[Callback] | None
    verbose: bool

    def __init__(self, *values: Any, **given: Any) -> None:
        signature = inspect.signature(type(self))
        try:
            bound = signature.bind(*values, **given)
        except TypeError:
            for name in given:
                if name not in signature.parameters:
                    known = signature.parameters
                    hint = meant(name, known, f"known: {', '.join(known)}")
                    raise TypeError(
                        f"{type(self).__name__}: unknown parameter {name!r}; {hint}"
                    ) from None
            raise
        bound.apply_defaults()
        for name, value in bound.arguments.items():
            setattr(self, name, value)

    def fit(self, X: Iterable[str], y: Any = None, **refused: Any) -> Self:
        """Train on texts and their labels; returns the estimator.

        A stratified tenth of the rows is held out to choose C of the probe on. If the data is too
        small for that, C keeps its default, and a transformer learns from all rows unless
        `callbacks` or its training read the held-out rows' scores. With `cv`, cross-validation
        chooses C instead (and what `calibrate` divides by), and with `preset="auto"` the recipe
        too; the model is then fitted on all rows.

        Args:
            X: texts `[N]`, none of them blank.
            y: labels `[N]`: str, whole numbers or bool.

        Raises:
            DataError: for texts or labels that cannot be learned from.
            ConfigError: for a parameter that is impossible, alone or beside another one.
            VectorsError: for word vectors that cannot be read.
            TrainingError: if training fails, as with a loss that is not finite.
            TypeError: for any other argument, such as `sample_weight`.
            KeyboardInterrupt: after Ctrl-C. If it came after the first epoch, the estimator keeps
                the weights so far, and a folder that `save` writes says so.
        """
        # Training draws from the one generator of the process: fits in threads take turns.
        with _FITTING:
            return self._fit(X, y, refused)

    def _fit(self, X: Iterable[str], y: Any, refused: dict[str, Any]) -> Self:
        from superconext.core.progress import Progress, TerminalProgress
        from superconext.data.dataset import Dataset
        from superconext.data.splits import HELD_BACK, stratified_holdout
        from superconext.fitting.checks import (
            check_config,
            needs_every_row,
            warn_where_slow,
            warn_where_unread,
        )
        from superconext.fitting.fit import fit_model
        from superconext.fitting.recipes import check_open, fit_cross_validated, fit_on_dev

        refuse_arguments(type(self).__name__, refused)
        config = self._config()
        check_config(config)
        progress = TerminalProgress() if self.verbose else Progress()
        warn_where_slow([config], progress)
        warn_where_unread(config, progress)
        defaults = {row.name: None if row.governed else row.default for row in PARAMETERS}
        given = self._given()
        named = {name: value for name, value in given.items() if value != defaults[name]}
        check_open(named, config)
        callbacks = self._callbacks()
        texts, truth = check_rows(X, y, type(self).__name__)
        if blank := [place for place, text in enumerate(texts) if is_blank(text)]:
            raise DataError(f"text {blank[0]} is blank: drop the row")
        classes = np.unique(truth)
        labels = [str(label) for label in truth]
        _warn_of_labels(texts, labels, progress)
        rows = Dataset(texts, labels, range(1, len(texts) + 1))
        names = [str(label) for label in classes]
        chosen = config.preset == "auto"
        shown: dict[str, Any] | None = None
        if config.cv or (chosen and config.cv is None):
            fitted, shown = fit_cross_validated(rows, config, names, callbacks, progress)
        else:
            train, dev = rows, None
            more: dict[str, Any] = {"classes": names, "callbacks": callbacks, "progress": progress}
            if self.callbacks or not needs_every_row(config, len(texts) * HELD_BACK):
                kept, held = stratified_holdout(texts, labels, HELD_BACK, config.seed)
                train, dev = rows.select(kept), rows.select(held)
            if chosen and not dev:
                raise DataError(
                    f"cv = 0 with preset = 'auto': {plural(len(texts), 'row')} are too few to hold "
                    "any back; expected some to choose on: give more rows, or leave cv out"
                )
            if chosen and dev:
                fitted, _ = fit_on_dev(train, config, dev, **more)
            else:
                fitted = fit_model(train, config, dev, **more)
        self.__dict__.pop("cv_", None)
        if shown is not None:
            self.cv_ = shown
        self.classes_ = classes
        self.model_ = fitted.model
        self.history_ = fitted.history
        self.status_ = fitted.status
        if fitted.interrupted:
            raise KeyboardInterrupt(
                f"interrupted after {len(fitted.history)} of {fitted.planned} epochs; the "
                "estimator has the weights so far"
            )
        return self

    def transform(self, X: Iterable[str]) -> np.ndarray:
        """Sentence vectors, float32 `[N, d]`, of texts `[N]` by the frozen encoder; zeros for a
        blank text.

        Of a BiLSTM d is twice `hidden_size`, times `members`. Raises NotFittedError before `fit`,
        and DataError for anything but texts.
        """
        model, texts = self._model(), check_texts(X, some=False)
        return zeros_for_blank(texts, model.features(texts))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns of `transform`, `[d]`."""
        prefix = type(self).__name__.lower()
        width = sum(encoder.sentence_size for encoder in self._model().encoders)
        return np.array([f"{prefix}{i}" for i in range(width)], dtype=object)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to a new folder, which `superconext.load` opens.

        The folder has plain files (safetensors, JSON, TOML); nothing is pickled. Raises RunError if
        `path` exists, and NotFittedError before `fit`.
        """
        from superconext.runs.folder import save_run

        model = self._model()
        facts = {"label_type": self.classes_.dtype.name, **getattr(self, "status_", {})}
        save_run(model, Path(path), facts)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """The fitted estimator of a run folder, or of "hf://user/name[@revision]" on the Hub.

        `superconext.load` opens it faster, for prediction alone. Raises RunError if the folder is
        no run or is damaged.
        """
        loaded = load_classifier(path)
        return cls._of_model(loaded.model_, loaded.classes_, loaded.status)

    @classmethod
    def _of_model(cls, model: Model, classes: np.ndarray, status: Mapping[str, Any]) -> Self:
        """A fitted estimator around a trained model, and whether its training was complete."""
        estimator = cls(**model.config.to_dict())
        estimator.model_, estimator.classes_, estimator.history_ = model, classes, []
        estimator.status_ = {**status}
        return estimator

    def push_to_hub(
        self, name: str, private: bool | None = None, revision: str | None = None
    ) -> str:
        """Upload the model to the Hugging Face Hub, for `superconext.load("hf://user/name")`.

        Args:
            name: "user/name" of the repository; it is made if it is not there.
            private: whether a repository that is made is private; None: as the account has it.
            revision: branch to upload to; None: the main one.

        Returns the web address of the commit. Raises RunError if nobody is logged in or the Hub
        refuses, ConfigError for an impossible name, MissingExtraError without the extra `hub`.
        """
        import tempfile

        from superconext.export.hub import push

        with tempfile.TemporaryDirectory(prefix="superconext-") as place:
            self.save(Path(place) / "run")
            return push(Path(place) / "run", name, private, revision)

    def _given(self) -> dict[str, Any]:
        """The parameters by name; arrays and numbers of numpy as Python's own."""
        given = {name: getattr(self, name) for name in BY_NAME}
        numpys = np.ndarray, np.generic
        return {k: v.tolist() if isinstance(v, numpys) else v for k, v in given.items()}

    def _config(self) -> Config:
        from superconext.encoders.pretrained import resolve_sized
        from superconext.vectors.readers import path_of

        given = self._given()
        for row in PARAMETERS:
            if given[row.name] is None and row.default is not None and not row.governed:
                raise ConfigError(
                    f"{row.name}: found None; expected a value: leave it out for {row.default!r}"
                )
        for name in (*FILE_PARAMETERS, "model"):
            given[name] = with_files(name, given[name], path_of)
        return resolve_sized(given, type(self).__name__)

    def _callbacks(self) -> list[Callback]:
        from superconext.training.callbacks import Callback

        given = self.callbacks or []
        callbacks = list(given) if isinstance(given, Iterable) else [given]
        for callback in callbacks:
            if not isinstance(callback, Callback):
                raise ConfigError(
                    f"callbacks: found {callback!r}; expected instances of "
                    "superconext.training.callbacks.Callback: derive it from that class"
                )
        return callbacks

    def _model(self) -> Model:
        model: Model | None = getattr(self, "model_", None)
        if model is None:
            raise NotFittedError(
                f"this {type(self).__name__} is not fitted; call fit with texts and labels first"
            )
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags


def _warn_of_labels(texts: Sequence[str], labels: Sequence[str], progress: Progress) -> None:
    """Warn of labels as the command line does: those that may be missing, misspelt or one class,
    classes with a single row, and texts with several labels."""
    from superconext.data.dataset import doubtful_counts
    from superconext.data.duplicates import told_conflicting
    from superconext.data.file_format import Block
    from superconext.data.labels import LabelReader

    reader = LabelReader(drop=False, fold=False, of_file=False)
    places = range(len(labels))
    reader.read(Block([*texts], [*labels], places), None)
    for note in reader.notes():
        progress.note(note, "y")
    for line in doubtful_counts(
        Counter(labels), "y", lambda label: f"position {labels.index(label)}"
    ):
        progress.warn(line)
    if told := told_conflicting(texts, labels, places, "at positions"):
        progress.warn(f"y: {told}")


class SuperConTextEncoder(_TextEstimator):
    """A sentence encoder trained on labelled texts: a transformer for scikit-learn's pipelines.

    `fit(X, y)` trains on texts and labels `[N]`; `transform(X)` gives sentence vectors, float32
    `[N, d]`. `vectors` may also be a `WordVectors`, or the `Vectors` of torchtext.

    Example:
        >>> encoder = SuperConTextEncoder(vector_method="random", epochs=1, hidden_size=8)
        >>> texts = ["film zwin", "film khayb", "zwin had chi", "khayb bzaf"] * 3
        >>> encoder.fit_transform(texts, [1, 0] * 6).shape
        (12, 16)
    """


#: Held while an estimator is fitted.
_FITTING = threading.RLock()


class SuperConTextClassifier(ClassifierMixin, _TextEstimator, PredictMixin):
    """A text classifier: a trained sentence encoder and a logistic regression on its vectors.

    `fit` learns word vectors, trains the encoder with the objective, freezes it, and fits the
    logistic regression, called the probe. `predict` answers by the probe alone; with
    `probe_features="encoder+tfidf"` by the mean of its probabilities and those of TF-IDF + logistic
    regression; with `"encoder+ngrams"` by a pool of both and of character n-grams.

    The preset "fast" trains one encoder; "auto" compares recipes as `superconext train` does, but
    pretrains only if told. `vectors` may also be a `WordVectors`, or the `Vectors` of torchtext.

    Source: Moukafih et al. (2023), "SuperConText: Supervised contrastive learning framework for
    textual representations".

    Example:
        >>> texts = ["film zwin bzaf", "film khayb bzaf", "zwin had chi", "khayb had chi"] * 6
        >>> labels = ["good", "bad"] * 12
        >>> model = SuperConTextClassifier(vector_method="random", epochs=8, hidden_size=8)
        >>> model.fit(texts, labels).predict(["film zwin", "khayb"]).tolist()
        ['good', 'bad']
    """

    def score(self, X: Iterable[str], y: Any, sample_weight: Any = None) -> float:
        """Accuracy, from 0 to 1, of what `predict` gives for texts `[N]`, blank ones too, with true
        labels `[N]`, which may have weights.

        Raises DataError for labels that `fit` refuses, or of another kind than the classes.
        """
        self._model()
        texts = check_texts(X, some=False)
        labels = true_labels(y, len(texts), self.classes_, type(self).__name__)
        return float(super().score(texts, labels, sample_weight))


_CALLBACKS = """callbacks : sequence of Callback or None, default=None
    Called during training, see `superconext.training.callbacks`.
verbose : bool, default=False
    Whether `fit` shows its progress: lines on stderr, bars on a terminal and in notebooks.

Attributes
----------
classes_ : array [C]
    Distinct labels, sorted, in the dtype of `y`.
history_ : list of dict
    A record for each epoch of each member; empty in a loaded model.
model_ : superconext.fitting.model.Model
    The fitted model.
status_ : dict
    Whether training was complete, as `manifest.json` has it.
cv_ : dict
    Only with `cv`, or `preset="auto"` unless `cv=0`: the cross-validated metrics.
    `cv_["probabilities"]` are those of each row out of fold, float64 [N, C] (NaN if no fold held
    the row out), the mean over folds that are dealt repeatedly, and so better than one model's,
    which the metrics tell; with the preset `cv_["recipes"]` is what was compared."""

#: Those of the table, a preset's being None by default, `callbacks` and `verbose`.
_PARAMETERS = [
    inspect.Parameter(
        row.name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=None if row.governed else row.default,
        annotation=row.type | None if row.optional or row.governed else row.type,
    )
    for row in PARAMETERS
]
for _name, _default, _type in (("callbacks", None, Any), ("verbose", False, bool)):
    _PARAMETERS.append(_PARAMETERS[-1].replace(name=_name, default=_default, annotation=_type))
# scikit-learn reads the names of parameters off the constructor.
_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
_TextEstimator.__init__.__signature__ = inspect.Signature([_SELF, *_PARAMETERS])  # type: ignore[attr-defined]

for _estimator in (SuperConTextEncoder, SuperConTextClassifier):
    _estimator.__doc__ = "\n".join(
        [inspect.cleandoc(_estimator.__doc__ or ""), "", docstring(), _CALLBACKS]
    )
    # Else what is shown of a class that has `__new__` is the signature of that.
    _estimator.__signature__ = inspect.Signature(_PARAMETERS)
