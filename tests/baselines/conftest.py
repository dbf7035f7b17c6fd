"""Baselines are tested in comparisons too: the fixtures of those."""

from tests.experiments.conftest import _no_figures, data, request_of

__all__ = ["_no_figures", "data", "request_of"]
