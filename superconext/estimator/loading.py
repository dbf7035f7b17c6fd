"""`load`: a saved run as a classifier that needs neither scikit-learn nor SciPy to predict.

scikit-learn, with the SciPy it brings along, takes about as long to import as torch, and
predicting needs nothing of it. So `load` gives a `LoadedClassifier`, a plain class.
`LoadedClassifier.estimator()`, or `SuperConTextClassifier.load`, gives the scikit-learn
estimator of the same run.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from superconext.core.memory import gc_paused
from superconext.estimator.validation import check_texts, typed_labels

if TYPE_CHECKING:
    from superconext.estimator.classifier import SuperConTextClassifier
    from superconext.fitting.model import Model
    from superconext.labelling.explain import Explanation
    from superconext.labelling.suggest import Suggestion


class PredictMixin:
    """Predicts with a fitted `_model()` and `classes_`; nothing here needs scikit-learn."""

    classes_: np.ndarray

    def predict(self, X: Iterable[str]) -> np.ndarray:
        """The most probable label of each text, `[N]`."""
        shares = self.predict_proba(X)
        best: np.ndarray = self.classes_[shares.argmax(axis=1)]
        return best

    def predict_proba(self, X: Iterable[str]) -> np.ndarray:
        """Class probabilities `[N, C]`, columns as `classes_`."""
        return self._model().probabilities(check_texts(X))

    def decision_function(self, X: Iterable[str]) -> np.ndarray:
        """Scores `[N, C]`, or `[N]` for two classes (positive for `classes_[1]`).

        Those of the probe; with an ensemble, logarithms of the probabilities.
        """
        scores = self._model().decision(check_texts(X))
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def explain(self, X: Iterable[str]) -> list[Explanation]:
        """What each word of each text contributes to its prediction."""
        from superconext.labelling.explain import explain

        return explain(self._model(), check_texts(X))

    def suggest(
        self,
        X: Iterable[str],
        count: int = 50,
        labelled: Sequence[str] = (),
        balance: str | None = None,
    ) -> list[Suggestion]:
        """Which texts to label next, see `labelling.suggest`; `line` is the place, from 1."""
        from superconext.data.dataset import Texts
        from superconext.labelling.suggest import suggest

        texts = check_texts(X)
        pool = Texts(texts, [*range(1, len(texts) + 1)], "texts", [])
        return suggest(self._model(), pool, count, labelled, balance)

    def _model(self) -> Model:
        raise NotImplementedError


def load(path: str | Path) -> LoadedClassifier:
    """The fitted classifier of a run folder, or of "hf://user/name[@revision]" on the Hub.

    Labels are in the dtype they were fitted in; a run of the command line has text.
    Raises RunError when the folder is no run or is damaged.

    Example:
        >>> from superconext import SuperConTextClassifier, load
        >>> model = SuperConTextClassifier(vector_method="random", epochs=1, hidden_size=8)
        >>> model.fit(["film zwin", "film khayb", "zwin bzaf", "khayb"] * 3, [1, 0] * 6).save("run")
        >>> load("run").predict_proba(["film zwin"]).shape
        (1, 2)
    """
    if isinstance(path, str) and path.startswith("hf://"):
        from superconext.export.hub import cached

        with cached(path) as copy:
            return load(copy)
    with gc_paused():
        from superconext.runs.folder import load_model, read_manifest

        folder = Path(path)
        model = load_model(folder)
        classes = typed_labels(model.classes, read_manifest(folder).get("label_type", "str"))
    return LoadedClassifier(model, classes)


class LoadedClassifier(PredictMixin):
    """A fitted classifier out of a run folder: predicts and embeds, and is saved again.

    scikit-learn's tools take it: a clone of it is an unfitted `SuperConTextClassifier` with
    the run's parameters.

    Attributes:
        model_: the trained model.
        classes_: distinct labels `[C]`, sorted.
    """

    def __init__(self, model: Model, classes: np.ndarray) -> None:
        self.model_ = model
        self.classes_ = classes

    def __repr__(self) -> str:
        config = self.model_.config
        return f"LoadedClassifier({config.objective}, {len(self.classes_)} classes)"

    def estimator(self) -> SuperConTextClassifier:
        """The same run as a fitted scikit-learn estimator."""
        from superconext.estimator.classifier import SuperConTextClassifier

        return SuperConTextClassifier._of_model(self.model_, self.classes_)

    def transform(self, X: Iterable[str]) -> np.ndarray:
        """Frozen sentence vectors float32 `[N, d]` of texts `[N]`."""
        return self._model().features(check_texts(X))

    def score(self, X: Iterable[str], y: Iterable[Any]) -> float:
        """Accuracy on texts and labels `[N]`."""
        return float(np.mean(self.predict(X) == np.asarray(y)))

    def save(self, path: str | Path) -> None:
        """Write the model to a new folder. Raises RunError if `path` exists."""
        self.estimator().save(path)

    def push_to_hub(
        self, name: str, private: bool | None = None, revision: str | None = None
    ) -> str:
        """Upload as user/name, see `export.hub.push`."""
        return self.estimator().push_to_hub(name, private, revision)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters the run was trained with."""
        return self.model_.config.to_dict()

    def fit(self, X: Iterable[str], y: Iterable[Any]) -> SuperConTextClassifier:
        """A new estimator with the run's parameters, trained on other rows."""
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
