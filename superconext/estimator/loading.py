"""A saved model as an estimator, without waiting for scikit-learn.

scikit-learn, with the SciPy it brings along, takes longer to import than torch, and answering
needs nothing of it. So `load` gives an estimator that answers at once, and that becomes a whole
`SuperConTextClassifier` as soon as anything else is asked of it: `score`, `get_params`, a clone,
a place in a pipeline, `isinstance`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from superconext.core.gc_pause import not_collecting
from superconext.estimator.predict_mixin import Answers
from superconext.estimator.validation import check_texts, typed_labels

if TYPE_CHECKING:
    from superconext.estimator.classifier import SuperConTextClassifier
    from superconext.fitting.model import Model


def load(path: str | Path) -> SuperConTextClassifier:
    """The fitted classifier of a run folder, or of "hf://user/name[@revision]" on the Hub.

    Labels are in the dtype they were fitted in; a run of the command line has text.
    Raises RunError when the folder is no run or is damaged.
    """
    if isinstance(path, str) and path.startswith("hf://"):
        from superconext.export.hub import cached

        with cached(path) as copy:
            return load(copy)
    with not_collecting():
        from superconext.runs.folder import load_model, read_manifest

        folder = Path(path)
        model = load_model(folder)
        classes = typed_labels(model.classes, read_manifest(folder).get("label_type", "str"))
    loaded = LoadedClassifier(model, classes)
    if "superconext.estimator.classifier" in sys.modules:
        loaded._become_whole()
    return cast("SuperConTextClassifier", loaded)


class LoadedClassifier(Answers):
    """What a loaded classifier is until more than an answer is asked of it.

    It has every attribute of a fitted `SuperConTextClassifier`, so that it becomes one by
    changing its class.
    """

    def __init__(self, model: Model, classes: np.ndarray) -> None:
        vars(self).update(model.config.to_dict(), callbacks=None)
        self.model_ = model
        self.classes_ = classes
        self.history_: list[dict[str, Any]] = []

    def transform(self, X: Iterable[str]) -> np.ndarray:
        """Frozen sentence vectors float32 `[N, d]` of texts `[N]`."""
        if "sklearn" in sys.modules:  # which may have been told to give frames
            self._become_whole()
            return self.transform(X)
        return self._model().features(check_texts(X))

    def _model(self) -> Model:
        return self.model_

    def _become_whole(self) -> None:
        from superconext.estimator.classifier import SuperConTextClassifier

        # Not by `self.__class__ = ...`, which would ask for the class below first.
        vars(object)["__class__"].__set__(self, SuperConTextClassifier)

    def __getattr__(self, name: str) -> Any:
        self._become_whole()
        return getattr(self, name)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """For `isinstance`: what it is about to be."""
        self._become_whole()
        return type(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        self._become_whole()
        return self.__reduce_ex__(protocol)

    def __repr__(self) -> str:
        self._become_whole()
        return repr(self)
