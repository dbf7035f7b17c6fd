"""MTEB's classifier on frozen vectors, against scikit-learn on vectors made by hand."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from superconext.baselines.baseline import fit_baseline
from superconext.config.parameters import resolve
from superconext.encoders.base import sentence_vectors
from superconext.fitting.controls import frozen_encoder, mean_vectors
from tests.experiments.conftest import data
from tests.fitting.test_controls import DEV, PRETRAINED, TEST, TRAIN, prepared_run

__all__ = ["data"]


@pytest.mark.parametrize("name", ["vectors_mteb", "pretrained_mteb"])
def test_it_is_plain_logistic_regression_on_the_vectors_as_they_are(name, data):
    if name == "vectors_mteb":
        run = prepared_run(vectors=str(data / "vectors.txt"))
        train, test = (mean_vectors(run.store(s[0]), run.indexer.table) for s in (TRAIN, TEST))
    else:
        run = prepared_run(**PRETRAINED)
        encoder = frozen_encoder(run, "mean")
        train, test = (sentence_vectors(encoder, run.store(s[0])) for s in (TRAIN, TEST))
    expected = LogisticRegression(C=1.0, max_iter=100, random_state=42).fit(train, TRAIN[1])
    found = fit_baseline(name, TRAIN, DEV, run=run)
    assert found.predict(TEST[0]) == expected.predict(test).tolist()
    np.testing.assert_allclose(found.predict_proba(TEST[0]), expected.predict_proba(test))
    assert found.settings == {}  # nothing is chosen
    adjusted = fit_baseline(name, TRAIN, DEV, run=run, config=resolve({"logit_adjustment": 0.5}))
    assert adjusted.settings == {"logit_adjustment": 0.5}
    assert set(adjusted.predict(TEST[0])) <= {"neg", "pos"}
