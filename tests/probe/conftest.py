"""Metrics are tested in comparisons too: the fixtures of those, but for the hidden figures."""

from tests.experiments.conftest import data, request_of

__all__ = ["data", "request_of"]
