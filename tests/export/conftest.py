"""A few tiny trained models, of every shape an export must know."""

import pytest

from superconext import SuperConTextClassifier
from superconext.core.blank import is_blank
from tests.estimator.test_contract import LABELS, NEW, TEXTS, TINY

SHAPES = {
    "plain": {},
    "layers": {"layers": 2, "pooling": "last", "members": 2, "tune_vectors": True},
    "mean": {"pooling": "mean", "subwords": False},
    "class tokens": {"objective": "dualcl"},
    "three classes": {},
}
SENTENCES = [*TEXTS, *NEW, "zwin " * 250, "<pad> <unk>"]


def labels_of(model, texts):
    """What an export answers: the run's labels, and none for a blank text."""
    pairs = zip(texts, model.predict(texts), strict=True)
    return ["" if is_blank(text) else label for text, label in pairs]


@pytest.fixture(scope="session", params=SHAPES)
def fitted(request):
    labels = LABELS if request.param != "three classes" else ["a", "b", "c"] * 8
    given = {**TINY, "epochs": 2, **SHAPES[request.param]}
    return SuperConTextClassifier(**given).fit(TEXTS, labels)


@pytest.fixture(scope="session")
def model(fitted):
    return fitted.model_
