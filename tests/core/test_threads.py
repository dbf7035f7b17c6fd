"""How many threads are taken, and how they wait."""

import os
import subprocess
import sys

import pytest

from superconext.core import process
from superconext.core.process import MOST, choose_threads, idle_between, read_times, wait_briefly

#: user nice system idle iowait irq softirq steal guest guest_nice
STAT = """cpu  0 0 0 0 0 0 0 0 0 0
cpu0 {} {} 5 {} 0 0 0 0 0 0
cpu1 {} {} 5 {} 0 0 0 0 0 0
intr 12345
ctxt 678
""".format


@pytest.fixture(autouse=True)
def not_told(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


def reading(*columns, allowed=frozenset({0, 1}), yielding=True):
    return read_times(STAT(*columns).splitlines(), set(allowed), yielding)


@pytest.mark.parametrize(
    ("before", "after", "settings", "expected"),
    [
        ((0, 0, 0, 0, 0, 0), (0, 0, 10, 0, 0, 10), {}, 2),
        ((0, 0, 0, 0, 0, 0), (10, 0, 0, 0, 0, 10), {}, 1),
        ((9, 9, 9, 9, 9, 9), (19, 9, 9, 19, 9, 9), {}, 0),
        ((0, 0, 0, 0, 0, 0), (2, 0, 8, 5, 0, 5), {}, 1),  # a little work is no neighbour
        ((0, 0, 0, 0, 0, 0), (0, 10, 0, 0, 0, 10), {}, 2),  # work that makes way
        ((0, 0, 0, 0, 0, 0), (0, 10, 0, 0, 0, 10), {"yielding": False}, 1),
        ((0, 0, 0, 0, 0, 0), (0, 0, 10, 0, 0, 10), {"allowed": {1}}, 1),
        ((0, 0, 5, 0, 0, 5), (0, 0, 5, 0, 0, 5), {}, 0),  # the clock stood still
    ],
)
def test_processors_without_work_are_counted(before, after, settings, expected):
    assert idle_between(reading(*before, **settings), reading(*after, **settings)) == expected


@pytest.mark.parametrize(
    ("seen", "expected"),
    [(None, 1), ((1, 2), 1), ((2, 2), 2), ((3, 64), 3), ((64, 64), MOST)],
)
def test_one_thread_for_each_idle_processor(seen, expected):
    environment: dict[str, str] = {}
    wait_briefly(environment)
    assert choose_threads(lambda: seen, environment) == expected
    assert environment["GOMP_SPINCOUNT"] == process.SPIN


@pytest.mark.parametrize(("there", "expected"), [(1, 1), (2, 2), (64, MOST)])
def test_where_no_processor_is_idle_all_are_taken_and_nobody_spins(there, expected):
    environment: dict[str, str] = {}
    wait_briefly(environment)
    assert choose_threads(lambda: (0, there), environment) == expected
    assert environment["GOMP_SPINCOUNT"] == "0"


def test_waiting_that_the_user_chose_stays():
    environment = {"GOMP_SPINCOUNT": "7"}
    assert choose_threads(lambda: (0, 2), environment) == 2
    assert environment == {"GOMP_SPINCOUNT": "7"}


def test_train_chooses_before_torch_is_there(tmp_path):
    code = (
        "import sys; from superconext import cli; from superconext.core import process; "
        "process.choose_threads = lambda: print('torch' in sys.modules) or 1; "
        "cli.main(['train', 'missing.tsv', '--out', 'run'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(("named", "expected"), [("1", 1), ("3", 3), ("3,2", 3), ("", 2), ("x", 2)])
def test_what_the_environment_says_is_obeyed(named, expected, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", named)
    assert choose_threads(lambda: (2, 2)) == expected


def test_without_the_systems_file_it_is_one(monkeypatch):
    def refuse(*_, **__):
        raise OSError

    monkeypatch.setattr(process, "open", refuse, raising=False)
    assert choose_threads() == 1


def test_this_machine_is_read_quickly():
    found = process.idle_processors(0.02)
    assert found is None or 0 <= found[0] <= found[1] <= (os.cpu_count() or 1)


def test_what_has_just_ended_is_no_neighbour(monkeypatch):
    busy_once = iter([{0: (0, 0), 1: (0, 0)}, {0: (9, 10), 1: (2, 10)}, {0: (18, 20), 1: (11, 20)}])
    monkeypatch.setattr(process, "_times", lambda: next(busy_once))
    assert process.idle_processors(0.0) == (2, 2)


def test_a_neighbour_is_busy_at_every_look(monkeypatch):
    looks = iter([{0: (9 * k, 10 * k), 1: (0, 10 * k)} for k in range(process.LOOKS + 1)])
    monkeypatch.setattr(process, "_times", lambda: next(looks))
    assert process.idle_processors(0.0) == (1, 2)
    assert next(looks, None) is None


def test_waiting_is_set_unless_the_user_did():
    fresh: dict[str, str] = {}
    wait_briefly(fresh)
    assert fresh == {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": process.SPIN}
    for name in fresh:
        own = {name: "active" if name == "OMP_WAIT_POLICY" else "7"}
        wait_briefly(own)
        assert len(own) == 1


def test_importing_it_imports_no_torch():
    code = "import superconext.core.process, sys; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
