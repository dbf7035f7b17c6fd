"""Metrics are tested in comparisons too: the fixtures of those, but for the hidden figures."""

import pytest

from tests.experiments.conftest import data, request_of

__all__ = ["data", "request_of"]


@pytest.fixture
def exact(monkeypatch):
    """scikit-learn's logistic regression goes on to the optimum, whatever tolerance is asked."""
    from sklearn.linear_model import LogisticRegression

    fit = LogisticRegression.fit

    def to_the_end(self, *rows):
        self.tol, self.max_iter = 1e-10, 10_000
        return fit(self, *rows)

    monkeypatch.setattr(LogisticRegression, "fit", to_the_end)
