"""`superconext serve`: equal answers to `predict`, and a graceful stop."""

import configparser
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from superconext.core.blank import is_blank
from superconext.export.onnx_folder import write_rest
from superconext.runs.folder import load_model
from tests.cli.conftest import environment, rows
from tests.export.test_server import needs_extra, post, texts_of
from tests.export.test_standalone import FAKE

ROOT = Path(__file__).parents[2]
DOCKERFILE = dict(
    line.split(" ", 1)
    for line in (ROOT / "scripts" / "Dockerfile").read_text(encoding="utf-8").splitlines()
    if not line.startswith("#")
)
TEXTS = [text for _, text in rows(30, seed=9)]


@pytest.fixture
def serving(finished):
    """`superconext serve` of a run in a process of its own: (process, host and port)."""
    words = [sys.executable, "-m", "superconext", "serve", finished.folder, "--port", "0"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, env=environment(), text=True)
    line = process.stderr.readline()
    assert line.startswith("serving at http://127.0.0.1:"), line + process.stderr.read()
    yield process, ("127.0.0.1", int(line.split(":")[-1].split("/")[0]))
    process.kill()
    process.wait(20)


def arrived(place):
    """Requests that were answered or wait for an answer."""
    lines = post(place, b"", "/metrics", "GET")[1].splitlines()
    numbers = dict(line.split() for line in lines if not line.startswith("#"))
    names = "superconext_requests_waiting", "superconext_request_seconds_count"
    return sum(int(numbers[name]) for name in names)


@needs_extra
def test_it_answers_as_predict_does_and_stops_when_all_is_answered(serving, finished, call):
    process, place = serving
    texts = [*TEXTS, "", "\t", "jdida machi ma3rofa", "😀", "\u200f"]
    model = load_model(finished.folder)
    status, said = post(place, {"texts": texts})
    filled = [text for text in texts if not is_blank(text)]
    found = [row for row in said["probabilities"] if row is not None]
    assert status == 200 and said["classes"] == model.classes and len(found) == len(filled)
    assert np.abs(np.array(found) - model.probabilities(filled)).max() < 1e-5
    lines = "\n".join(texts[:30]).encode()
    predicted = call("predict", finished.folder, "--json", stdin=lines).out
    assert [row["label"] for row in json.loads(predicted)] == said["labels"][:30]
    with ThreadPoolExecutor(8) as pool:
        many = [f"{text} {k}" for k in range(30) for text in TEXTS]
        asked = [pool.submit(post, place, {"texts": many}) for _ in range(8)]
        until = time.perf_counter() + 60
        while arrived(place) < 1 + len(asked):
            assert time.perf_counter() < until
        process.send_signal(signal.SIGTERM)
        answers = [one.result() for one in asked]
    assert [status for status, _ in answers] == [200] * 8
    assert all(said["labels"] == answers[0][1]["labels"] for _, said in answers)
    assert process.wait(30) == 0
    rest = process.stderr.read()
    assert rest == "stopped\n", "no text and no traceback"
    with pytest.raises(ConnectionError):
        post(place, texts_of("a"))


@pytest.fixture
def exported(finished, tmp_path):
    """An export, and the variables of a process with a stand-in for onnxruntime."""
    (tmp_path / "export").mkdir()
    (tmp_path / "export" / "model.onnx").write_bytes(b"a graph")
    write_rest(load_model(finished.folder), tmp_path / "export")
    (tmp_path / "onnxruntime.py").write_text(FAKE.replace("CLASSES", "2"))
    paths = [str(tmp_path), environment()["PYTHONPATH"]]
    return tmp_path / "export", {**environment(), "PYTHONPATH": os.pathsep.join(paths)}


def test_predict_with_an_export_imports_no_torch(exported):
    folder, env = exported
    program = (
        "import sys\n"
        "for name in ('torch', 'sklearn', 'scipy', 'gensim'): sys.modules[name] = None\n"
        "from superconext.cli import main\nmain(['predict', sys.argv[1], '--proba'])\n"
    )
    words = [sys.executable, "-c", program, folder]
    said = subprocess.run(words, input=b"zwin bzaf\n", capture_output=True, env=env, check=False)
    assert said.returncode == 0, said.stderr.decode()
    assert said.stdout.decode().splitlines()[1].endswith("\tzwin bzaf")


def test_the_dockerfile_installs_the_pins_of_the_extra_and_copies_what_the_guide_exports():
    guide = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
    assert "".join(f"    {line} {rest}\n" for line, rest in DOCKERFILE.items()) in guide
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    extras = setup["options.extras_require"]
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    names = {"numpy", *(word.partition(">")[0].strip() for word in extras["serve"].split())}
    words = shlex.split(DOCKERFILE["RUN"])
    packages = {word for word in words[3:] if not word.startswith("--")}
    assert packages == {word for word in pinned if word.partition("==")[0] in names}
    source, target = DOCKERFILE["COPY"].split()
    assert f"--format onnx --out {source}\n" in guide
    assert json.loads(DOCKERFILE["CMD"])[:2] == ["python", f"{target}/serve.py"]


@needs_extra
def test_an_export_serves_by_itself_as_the_dockerfile_starts_it(exported):
    folder, env = exported
    _, program, *options = json.loads(DOCKERFILE["CMD"].replace("0.0.0.0", "127.0.0.1"))
    words = [sys.executable, folder / Path(program).name, *options, "--port", "0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, env=env, text=True) as process:
        line = process.stderr.readline()
        assert line.startswith("serving at "), line + process.stderr.read()
        place = "127.0.0.1", int(line.split(":")[-1].split("/")[0])
        status, said = post(place, texts_of("zwin", ""))
        assert (status, said["labels"][1]) == (200, None) and said["labels"][0] in said["classes"]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0 and process.stderr.read() == "stopped\n"


@needs_extra
def test_an_address_that_is_taken_is_said_in_one_line(finished, call):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = call("serve", finished.folder, "--port", taken.getsockname()[1])
        port = taken.getsockname()[1]
    assert said.code == 1 and "Traceback" not in said.err
    assert f"127.0.0.1, port {port}: Address already in use; " in said.err
    assert "choose another with --port" in said.err
    said = call("serve", finished.folder, "--host", "192.0.2.1")
    assert said.code == 1 and said.err.count("192.0.2.1") == 1
    assert said.err.endswith("; expected an address of this machine: check --host\n")
    for host in ("nosuchhost.invalid", "no:such:host"):
        said = call("serve", finished.folder, "--host", host)
        assert said.code == 1 and said.err.startswith(f"error: {host}, port 8000: ")
        assert said.err.endswith("; expected an address of this machine: check --host\n")


@needs_extra
def test_an_exports_program_says_what_is_wrong_with_an_address(exported):
    folder, env = exported

    def told(*words):
        program = [sys.executable, folder / "serve.py", *words]
        said = subprocess.run(program, capture_output=True, env=env, text=True)
        assert said.returncode in (1, 2) and "Traceback" not in said.stderr
        return said.stderr.splitlines()[-1]

    for words in (("--port", "65536"), ("--port", "-1"), ("--threads", "0")):
        assert f"argument {words[0]}: found {words[1]}, expected " in told(*words)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = told("--port", str(port))
    end = "Address already in use; choose another --host or --port"
    assert line == f"error: 127.0.0.1, port {port}: {end}"


def test_without_the_packages_the_extra_is_named(finished, call, monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    said = call("serve", finished.folder)
    assert said.code == 2 and "superconext[serve]" in said.err
