"""The finished run of the command line's tests serves here too."""

from tests.cli.conftest import _no_figures, data, finished

__all__ = ["_no_figures", "data", "finished"]
