"""Import paths that documentation named before modules moved still work, with a warning."""

import importlib
import sys
import warnings

import pytest

import superconext


@pytest.mark.parametrize("old", sorted(superconext._MOVED))
def test_an_old_path_works_and_warns(old):
    sys.modules.pop(old, None)
    new = importlib.import_module(superconext._MOVED[old])
    with pytest.warns(DeprecationWarning, match=superconext._MOVED[old]):
        alias = importlib.import_module(old)
    public = [name for name in vars(new) if not name.startswith("_")]
    assert public or hasattr(new, "__path__")
    assert all(getattr(alias, name) is getattr(new, name) for name in public)


def test_an_unknown_path_is_still_an_error():
    with warnings.catch_warnings(), pytest.raises(ModuleNotFoundError, match="no_such_module"):
        importlib.import_module("superconext.no_such_module")
