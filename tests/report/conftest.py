"""The finished run of the command line's tests serves here too; and one of the sample."""

import pytest

from superconext import SuperConTextClassifier
from superconext.data.reading import read_labelled
from tests.cli.conftest import data, finished

__all__ = ["data", "finished"]


@pytest.fixture(scope="session")
def sample_run():
    """A classifier of the sample, of an encoder pooled with n-grams."""
    train = read_labelled("data/sample/train.tsv")
    small = {"epochs": 2, "hidden_size": 16, "vector_dimension": 16}
    model = SuperConTextClassifier(probe_features="encoder+ngrams", **small)
    return model.fit(train.texts, train.labels)
