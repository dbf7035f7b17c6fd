"""`load`: a saved run as a classifier that needs neither scikit-learn nor SciPy to predict.

scikit-learn, with the SciPy it brings along, takes about as long to import as torch, and
predicting needs nothing of it. So `load` gives a `LoadedClassifier`, a plain class.
`LoadedClassifier.estimator()`, or `SuperConTextClassifier.load`, gives the scikit-learn
estimator of the same run.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superconext.core.blank import is_blank, uniform_for_blank, zeros_for_blank
from superconext.core.errors import (
    ConfigError,
    DataError,
    RunError,
    check_texts,
    listed,
    needs_training,
    plural,
)
from superconext.core.label_types import best_labels, typed_labels

if TYPE_CHECKING:
    from superconext.estimator.classifier import SuperConTextClassifier
    from superconext.export.exported_model import ExportedModel
    from superconext.fitting.model import Model
    from superconext.report.explain import Explanation
    from superconext.report.suggest import Suggestion


def check_rows(texts: Any, labels: Any, estimator: str) -> tuple[list[str], np.ndarray]:
    """What `check_texts` and `check_labels` make of both. Raises DataError, also where the two are
    in each other's place: what is no text beside labels that are sentences, or more labels than
    texts that differ."""
    swapped = "the two look swapped: pass the texts first, then the labels"
    texts, labels = (list(of) if isinstance(of, Iterator) else of for of in (texts, labels))
    try:
        rows = check_texts(texts)
    except DataError as error:
        if _are_labels(texts, labels):
            raise DataError(f"{error}; the labels are sentences, so {swapped}") from None
        raise
    truth = check_labels(labels, len(rows), estimator)
    kinds, different = set(truth.tolist()), set(rows)
    if len(kinds) > len(different) and truth.dtype.kind in "OU" and any(map(str.strip, rows)):
        raise DataError(
            f"found {plural(len(kinds), 'different label')} for "
            f"{plural(len(different), 'different text')}, such as {str(truth[0])!r:.60} for "
            f"{rows[0]!r:.60}; {swapped}"
        )
    return rows, truth


def _are_labels(texts: Any, labels: Any) -> bool:
    """Whether what came as texts may be the labels: those that came as labels are sentences, and
    the texts are none, or fewer of them differ."""
    if isinstance(texts, str) or getattr(texts, "ndim", 1) != 1:
        return False
    both = [list(of) if isinstance(of, Iterable) else [] for of in (texts, labels)]
    spaced, sentences = (
        any(isinstance(cell, str) and " " in cell.strip() for cell in cells) for cells in both
    )
    different = [len({*map(str, cells)}) for cells in both]
    return sentences and (not spaced or different[1] > different[0])


def check_labels(labels: Any, count: int, estimator: str) -> np.ndarray:
    """Labels `[N]` as an array of str, whole numbers or bool, in the dtype they came in.

    labels: a list, a Series, an array `[N]`, any iterable of them. count: how many there must be.
    estimator: name for the message.

    Raises DataError for None, for several labels a row, for kinds that are mixed, for missing
    labels and for numbers that are measured and not counted.
    """
    if labels is None:
        raise DataError(
            f"{estimator} requires y to be passed, but the target y is None; expected a label "
            "for each text: pass them as the second argument"
        )
    if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
        raise DataError(f"found y = {labels!r}; expected a list of labels, one for each text")
    if isinstance(labels, (Mapping, AbstractSet)):
        raise DataError(f"found y of type {type(labels).__name__}; expected a list of labels")
    if isinstance(labels, np.ma.MaskedArray) and (hidden := np.ma.getmaskarray(labels)).any():
        raise DataError(
            f"label {int(hidden.argmax())} is missing (masked): label the row or drop it"
        )
    # A frame has columns, which iterating over it would take for the labels.
    given = np.asarray(labels) if hasattr(labels, "__array__") else list(labels)
    if isinstance(given, list):
        _refuse_mixture(given)
        given = _plain(given)
    try:
        whole = isinstance(given, list) and any(map(_ends_in_nul, given))
        array = np.asarray(given, dtype=object if whole else None)
    except ValueError:
        raise DataError(
            "found lists of labels of different lengths; y should be a 1d array with one label for "
            "each text: superconext predicts one class for a text"
        ) from None
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(
            f"found y of shape {array.shape}; y should be a 1d array with one label for each "
            "text: pass one column"
        )
    if len(array) != count:
        raise DataError(
            f"found {plural(count, 'text')} and {plural(len(array), 'label')}; expected as many"
        )
    if array.dtype.kind == "O":
        _refuse_mixture(array.tolist())
        if all(isinstance(label, str) for label in array.tolist()):
            array = np.array(_plain(array.tolist()), dtype=object)
        else:
            array = np.array(array.tolist())
            if array.dtype.kind == "O":
                huge = [label for label in array.tolist() if not -(2**63) <= label < 2**64]
                raise _beyond_64_bits((huge or array.tolist())[0])
    if array.dtype.kind == "f":
        if np.isnan(array).any():
            missing = int(np.isnan(array).argmax())
            raise DataError(f"label {missing} is missing (NaN): label the row or drop it")
        if (array != np.floor(array)).any():
            raise DataError(
                "Unknown label type: continuous; found labels such as "
                f"{array[array != np.floor(array)][0]}, expected classes: bin them first"
            )
        if (large := np.abs(array) >= 2.0**63).any():
            raise _beyond_64_bits(array[large][0])
        if (large := np.abs(array) >= 2.0**53).any() and _merged(given, array):
            raise DataError(
                f"found whole numbers such as {array[large][0]:.0f} of several types, which become "
                "equal as floats; expected one type: convert them, such as with str"
            )
        array = array + array.dtype.type(0)  # -0.0 is the class 0.0
    if array.dtype.kind == "T":
        array = np.array(array.tolist(), dtype=str)
    if array.dtype.kind in "OU":
        for position, label in enumerate(array.tolist()):
            if not str(label).strip():
                raise DataError(f"label {position} is empty: label the row or drop it")
    if array.dtype.kind not in "OUiufb":
        raise DataError(
            f"labels are of type {array.dtype}; expected text, whole numbers or bool: convert them"
        )
    return array


def true_labels(labels: Any, count: int, classes: np.ndarray, estimator: str) -> np.ndarray:
    """What `check_labels` makes of labels `[N]` to score by, N = `count` above 0.

    classes: of the model. Raises DataError, also where they are numbers and the labels text, or the
    other way round.
    """
    truth = check_labels(labels, count, estimator)
    if not len(truth):
        raise DataError("found no texts; expected one or more, each with its label: pass some")
    kinds = ["text" if a.dtype.kind in "OU" else "numbers" for a in (truth, classes)]
    if kinds[0] != kinds[1]:
        raise DataError(
            f"found labels that are {kinds[0]}, such as {truth[0]}; expected {kinds[1]}, as "
            f"the classes of the model are, such as {classes[0]}: convert them"
        )
    if not np.isin(truth, classes).any():
        warnings.warn(
            f"found no label that the model knows, such as {truth[0]!s}; expected some of "
            f"{listed([str(name) for name in classes])}: check the labels",
            stacklevel=3,
        )
    return truth


def _beyond_64_bits(label: Any) -> DataError:
    return DataError(
        f"found the label {label}, a number beyond 64 bits; expected smaller ones or text: convert "
        "them, such as with str"
    )


def _ends_in_nul(label: Any) -> bool:
    """Whether a label is text of which numpy's own kind would lose the end."""
    return isinstance(label, str) and label.endswith("\0")


def _merged(labels: Any, array: np.ndarray) -> bool:
    """Whether labels that differ are equal in the array that numpy made of them."""
    return len(set(np.asarray(labels, dtype=object).ravel().tolist())) > len(set(array.tolist()))


def _plain(labels: list[Any]) -> list[Any]:
    """Labels with text of kinds of its own, such as of an Enum, as str."""
    return [str.__str__(label) if isinstance(label, str) else label for label in labels]


def _refuse_mixture(labels: list[Any]) -> None:
    """Raise DataError unless all are text, or all are numbers or bool."""
    for position, label in enumerate(labels):
        if isinstance(label, float) and math.isnan(label):
            raise DataError(f"label {position} is missing (NaN): label the row or drop it")
        if not isinstance(label, (str, int, float, np.generic, list, tuple, np.ndarray)):
            raise DataError(
                f"label {position} is {type(label).__name__}; expected text or a whole number: "
                "label the row or drop it"
            )
        if isinstance(label, str) != isinstance(labels[0], str):
            raise DataError(
                f"label 0 is {type(labels[0]).__name__} and label {position} is "
                f"{type(label).__name__}; expected one kind: convert them, such as with str"
            )


def refuse_arguments(name: str, arguments: dict[str, Any]) -> None:
    """Raise TypeError for arguments that `fit` has no use for; None means not given."""
    given = [argument for argument, value in arguments.items() if value is not None]
    if "sample_weight" in given:
        raise TypeError(
            f"{name}.fit() found sample_weight, which it does not support: batches give every "
            "class the same share and rows count alike in them; expected X and y alone: repeat or "
            "drop rows instead"
        )
    if given:
        raise TypeError(
            f"{name}.fit() found the argument {given[0]!r}; expected X and y alone: parameters go "
            "to the constructor or set_params"
        )


class PredictMixin:
    """Predicts with a fitted `_model()` and `classes_`; nothing here needs scikit-learn."""

    classes_: np.ndarray

    def predict(self, X: Iterable[str], **refused: Any) -> np.ndarray:
        """The most probable label of each text, `[N]`, in the dtype of `classes_`.

        A blank text gets the label "", as on the command line. Where labels are numbers or bool
        there is no such label: it gets `classes_[0]`, the first of classes that are all as
        probable, and a warning tells which rows these are. Raises DataError for anything but texts,
        and TypeError for any other argument.
        """
        if refused:
            raise TypeError(
                f"{type(self).__name__}.predict() found the argument {next(iter(refused))!r}; "
                "expected texts alone: leave it out, and to abstain, discard the labels where "
                "predict_proba(texts).max(axis=1) < 0.9"
            )
        texts = check_texts(X, some=False)
        return best_labels(texts, self.predict_proba(texts), self.classes_)

    def predict_proba(self, X: Iterable[str]) -> np.ndarray:
        """Class probabilities, float64 `[N, C]`, with columns in the order of `classes_`.

        For a blank text every class gets 1 / C.
        """
        texts = check_texts(X, some=False)
        return uniform_for_blank(texts, self._model().probabilities(texts))

    def decision_function(self, X: Iterable[str]) -> np.ndarray:
        """Scores, float64 `[N, C]`, or `[N]` for two classes (positive for `classes_[1]`).

        They are the probe's; where n-grams predict too, logarithms of the probabilities. For a
        blank text all are alike.
        """
        texts = check_texts(X, some=False)
        scores = uniform_for_blank(texts, self._model().decision(texts))
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def explain(self, X: Iterable[str]) -> list[Explanation]:
        """What each word of each text contributes to its prediction: by how much the log-odds of
        the predicted class fall without it.

        Of a text that is longer than the model reads, words at its end are left out, with a
        warning. Raises DataError for anything but texts, and for a blank one.
        """
        from superconext.fitting.familiarity import Familiarity
        from superconext.report.explain import explain

        texts, familiarity = check_texts(X), Familiarity()
        if blank := [place for place, text in enumerate(texts) if is_blank(text)]:
            raise DataError(f"text {blank[0]} is blank, expected words to explain: leave it out")
        familiarity.add(self._model(), texts)
        for line in familiarity.unread():
            warnings.warn(line, stacklevel=2)
        found = explain(self._model(), texts)
        named = self._named()
        return [replace(one, label=named[one.label]) for one in found]

    def suggest(
        self,
        X: Iterable[str],
        count: int = 50,
        labelled: Iterable[str] = (),
        balance: str | None = None,
    ) -> list[Suggestion]:
        """Which of the unlabelled texts to label next: uncertain ones that differ from each other.

        Args:
            X: unlabelled texts `[N]`.
            count: how many to suggest; fewer where there are not as many.
            labelled: texts that have a label; they, those that the run was trained on where it
                knows them, and the near-duplicates of both are left out.
            balance: "class" for as many of each predicted class, "script" for as many of each.

        Returns suggestions, the least certain first; `line` is the place in X, from 1. Raises
        DataError where no text is left, ConfigError for another count or balance. Source: Zhdanov
        (2019), see `report.suggest`.
        """
        from superconext.data.dataset import Texts
        from superconext.report.suggest import suggest

        texts, known = check_texts(X), check_texts(labelled, some=False)
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise ConfigError(f"count: found {count!r}; expected a whole number from 1")
        if balance not in (None, "class", "script"):
            raise ConfigError(f"balance: found {balance!r}; expected None, 'class' or 'script'")
        pool = Texts(texts, [*range(1, len(texts) + 1)], "texts", [])
        named = self._named()
        known = [*known, *self._model().texts_seen(texts)]
        found = suggest(self._model(), pool, int(count), known, balance)
        return [replace(one, prediction=named[one.prediction]) for one in found]

    def _named(self) -> dict[Any, Any]:
        """The classes by the text that the model knows them as."""
        return dict(zip(self._model().classes, self.classes_.tolist(), strict=True))

    def _model(self) -> Model:
        raise NotImplementedError


def load(path: str | Path) -> LoadedClassifier | ExportedModel:
    """Open a saved model for prediction.

    Args:
        path: a run folder, as `superconext train` and `save` write it; an export of one to ONNX or
            a static student; or "hf://user/name[@revision]" for a run on the Hugging Face Hub.

    Returns a `LoadedClassifier`, or for an export an `ExportedModel`, which only has `predict`,
    `predict_proba` and `transform`. Labels are in the dtype they were fitted in; str where that is
    not recorded, as by the command line, which reads text, and by exports of earlier versions.

    Raises RunError if the folder is no model or is damaged, and MissingExtraError for a run that is
    not exported where the extra `train` is not installed.

    Example:
        >>> from superconext import SuperConTextClassifier, load
        >>> model = SuperConTextClassifier(vector_method="random", epochs=1, hidden_size=8)
        >>> model.fit(["film zwin", "film khayb", "zwin bzaf", "khayb"] * 3, [1, 0] * 6).save("run")
        >>> load("run").predict_proba(["film zwin"]).shape
        (1, 2)
    """
    from superconext.export.exported_model import load_export

    exported = load_export(Path(path))
    if exported is None:
        return load_classifier(path)
    if told := exported.misread:
        warnings.warn(f"{path}: {told}", stacklevel=2)
    return exported


def load_classifier(path: str | Path) -> LoadedClassifier:
    """`load` of a run, here or on the Hub."""
    if isinstance(path, str) and path.startswith("hf://"):
        with needs_training("A run of the Hub"):
            from superconext.export.hub import cached

        with cached(path) as copy:
            try:
                return _classifier(copy, path)
            except RunError as error:  # which names a folder that is gone by then
                raise RunError(str(error).replace(str(copy), path)) from error
    return _classifier(Path(path), str(path))


def _classifier(run: Path, name: str) -> LoadedClassifier:
    """The classifier of a run folder; name: what its user calls it."""
    from superconext.runs.manifest import code_told, load_run, unfinished

    model, manifest = load_run(run)
    try:
        classes = typed_labels(model.classes, manifest.get("label_type", "str"))
    except ValueError as error:
        raise RunError(
            f"manifest.json: {error}; expected the manifest as it was written: copy the run again"
        ) from None
    if told := unfinished(run, manifest):
        warnings.warn(told.replace(str(run), name, 1), stacklevel=4)
    for told in filter(None, (model.indexer.misread, code_told(model, manifest))):
        warnings.warn(f"{name}: {told}", stacklevel=4)
    names = ("status", "epochs", "planned_epochs")
    status = {name: manifest[name] for name in names if name in manifest}
    return LoadedClassifier(model, classes, status)


class LoadedClassifier(PredictMixin):
    """The fitted classifier of a run folder, which `load` returns: it predicts, embeds, explains.

    The tools of scikit-learn accept it; a clone of it is an unfitted `SuperConTextClassifier` with
    the parameters of the run.

    Attributes:
        model_: the trained model.
        classes_: distinct labels `[C]`, sorted.
        status: whether its training was complete, as the manifest says it.
    """

    def __init__(self, model: Model, classes: np.ndarray, status: Mapping[str, Any]) -> None:
        self.model_ = model
        self.classes_ = classes
        self.status = status

    def __repr__(self) -> str:
        config = self.model_.config
        return f"LoadedClassifier({config.objective}, {len(self.classes_)} classes)"

    def _repr_html_(self) -> str:
        """The table of parameters that notebooks show, as of the estimator."""
        return str(self.estimator()._repr_html_())

    def estimator(self) -> SuperConTextClassifier:
        """The same model as a fitted scikit-learn estimator."""
        from superconext.estimator.classifier import SuperConTextClassifier

        return SuperConTextClassifier._of_model(self.model_, self.classes_, self.status)

    def transform(self, X: Iterable[str]) -> np.ndarray:
        """Sentence vectors, float32 `[N, d]`, of texts `[N]` by the frozen encoder; zeros for a
        blank text."""
        texts = check_texts(X, some=False)
        return zeros_for_blank(texts, self._model().features(texts))

    def score(self, X: Iterable[str], y: Iterable[Any]) -> float:
        """Accuracy, from 0 to 1, of what `predict` gives for texts `[N]` with true labels `[N]`.

        Raises DataError where there is not a label of the classes' type for each text.
        """
        predicted = self.predict(X)
        truth = true_labels(y, len(predicted), self.classes_, type(self).__name__)
        return float(np.mean(predicted == truth))

    def save(self, path: str | Path) -> None:
        """Write the model to a new folder. Raises RunError if `path` exists."""
        self.estimator().save(path)

    def push_to_hub(
        self, name: str, private: bool | None = None, revision: str | None = None
    ) -> str:
        """Upload the model to the Hub, as `SuperConTextClassifier.push_to_hub` does."""
        return self.estimator().push_to_hub(name, private, revision)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters that the run was trained with, by name."""
        return self.model_.config.to_dict()

    def fit(self, X: Iterable[str], y: Iterable[Any]) -> SuperConTextClassifier:
        """A new estimator with the parameters of the run, trained on other texts and labels."""
        return self.__sklearn_clone__().fit(X, y)

    def _model(self) -> Model:
        return self.model_

    def __sklearn_clone__(self) -> SuperConTextClassifier:
        from superconext.estimator.classifier import SuperConTextClassifier

        return SuperConTextClassifier(**self.get_params())

    def __sklearn_tags__(self) -> Any:
        return self.__sklearn_clone__().__sklearn_tags__()

    def __sklearn_is_fitted__(self) -> bool:
        return True
