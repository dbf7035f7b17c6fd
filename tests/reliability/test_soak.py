"""Many fits in one process, and many processes at one run, leave nothing behind."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts from /proc")


@pytest.fixture(scope="module")
def script():
    path = Path(__file__).parents[2] / "scripts" / "soak.py"
    if not path.is_file():
        pytest.skip("scripts/soak.py is not here")
    spec = importlib.util.spec_from_file_location("soak", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.long
def test_fifteen_fits_leave_no_file_open_and_little_memory(script, tmp_path):
    rows = script.soak(15, tmp_path)
    first, last = rows[1], rows[-1]
    assert last[0] == 15 and not list(tmp_path.iterdir())
    assert last[2] <= first[2] and last[3] <= first[3] + 1
    # A leak of one embedding table or model each would be ten times this over 1,000 fits; so
    # few fits cannot tell a small one: scripts/soak.py does.
    assert last[1] - first[1] < 60


@pytest.mark.slow
def test_ten_processes_predict_from_one_run(script, tmp_path):
    assert script.predict_together(10, tmp_path)


@pytest.mark.slow
def test_a_thousand_fits(script, tmp_path):
    rows = script.soak(1000, tmp_path)
    assert rows[-1][1] - rows[0][1] < 20 and rows[-1][2] <= rows[0][2]
