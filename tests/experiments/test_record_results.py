"""Lines stay, torn lines go, and one process writes."""

import json
import os
import signal
import subprocess
import sys

import pytest

from superconext.core.errors import RunError
from superconext.core.progress import Progress
from superconext.experiments.record import ResultsFile, only_writer, read_results


def line(objective="supcon", seed=0, split="given", **more):
    return {"objective": objective, "seed": seed, "split": split, **more}


def test_what_is_added_is_read_again(tmp_path):
    results = ResultsFile(tmp_path)
    assert results.lines == {}
    for seed in range(3):
        results.add(line(seed=seed, value=seed / 3))
        assert len(results.path.read_bytes().splitlines()) == seed + 1
    again = ResultsFile(tmp_path)
    assert again.lines == results.lines
    assert again.lines["supcon", 2, "given"]["value"] == 2 / 3


def test_of_two_lines_for_a_fit_the_first_stands(tmp_path):
    results = ResultsFile(tmp_path)
    results.add(line(value=1))
    results.add(line(value=2))
    assert read_results(results.path)["supcon", 0, "given"]["value"] == 1


def test_a_line_torn_anywhere_is_passed_over_and_cut(tmp_path):
    results = ResultsFile(tmp_path)
    results.add(line(seed=0))
    results.add(line(seed=1))
    content = results.path.read_bytes()
    first = content.index(b"\n") + 1
    for end in range(first + 1, len(content)):
        results.path.write_bytes(content[:end])
        assert list(read_results(results.path)) == [("supcon", 0, "given")]
        again = ResultsFile(tmp_path)
        again.add(line(seed=1))
        assert results.path.read_bytes() == content


SHORT = {"predictions": [0, 1], "truth": [0, 1, 1], "test": {"n": 3}}


@pytest.mark.parametrize(
    "text",
    ["{}", "[1]", "3", "half a", '{"objective": "supcon"}', "", json.dumps(line(seed=2, **SHORT))],
)
def test_another_damaged_line_is_named(tmp_path, text):
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(line()) + "\n" + text + "\n" + json.dumps(line(seed=1)) + "\n")
    with pytest.raises(RunError, match=r"results.jsonl, line 2: .*remove the line"):
        read_results(path)


HOLDING = """
import sys, time
from pathlib import Path
from superconext.experiments.record import only_writer
from superconext.core.progress import Progress
with only_writer(Path(sys.argv[1]), Progress()):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_a_second_process_is_refused_until_the_first_has_died(tmp_path):
    heard = []
    progress = Progress()
    progress.say = heard.append
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "held\n"
        with (
            pytest.raises(RunError, match=f"process {process.pid} on .* is writing there"),
            only_writer(tmp_path, progress),
        ):
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not heard
    with only_writer(tmp_path, progress):
        assert len(heard) == 1 and f"process {process.pid}" in heard[0] and "kept" in heard[0]
        with pytest.raises(RunError, match=str(os.getpid())), only_writer(tmp_path, progress):
            pass
    with only_writer(tmp_path, progress):
        assert len(heard) == 1


def test_the_lock_is_given_back_when_the_block_fails(tmp_path):
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), only_writer(tmp_path, Progress()):
            raise ZeroDivisionError
