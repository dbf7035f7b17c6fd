"""A command that is killed at any moment and given again ends as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

pytest.importorskip("resource")
if not hasattr(os, "fork"):
    pytest.skip("POSIX processes", allow_module_level=True)

from superconext.core.files import atomic_write
from superconext.vectors.table import WordVectors
from tests.reliability.commands import contents, digest

SIGNALS = ("SIGKILL", "SIGTERM", "SIGINT")


def go_on(server, files, folder):
    """Resume, or begin anew where nothing was finished, until the run is whole."""
    run = folder / "run"
    for _ in range(3):
        said = server(["train", "--resume", run], folder)
        assert "Traceback" not in said.err and said.code in (0, 1), said.err
        if said.code == 0:
            return said
        assert "no checkpoint found" in said.err or "no such" in said.err, said.err
        if (run / "manifest.json").exists():
            return said
        said = server(files.train_words(run), folder)
        if said.code == 0:
            return said
    raise AssertionError(said.err)


def check_stopped(server, files, folder, whole, **fault):
    """Stop a training, look at what it left, and end it. Returns how it was stopped."""
    stopped = server(files.train_words(folder / "run"), folder, **fault)
    told = f"{fault}: {stopped}"
    polite = fault.get("how", fault.get("signal")) in ("SIGTERM", "SIGINT")
    # A signal that comes before the command has begun ends the process as it ends any.
    assert stopped.code in ((0, 1, -2, -15) if polite else (0, -9, -25)), told
    if stopped.code in (0, 1):
        assert "Traceback" not in stopped.err, told
    if stopped.code == 1:
        assert "interrupted" in stopped.err.splitlines()[-1], told
    go_on(server, files, folder)
    assert digest(folder / "run") == whole[0], told
    assert [path.name for path in folder.iterdir()] == ["run"], told
    return stopped


def test_stopped_at_a_few_moments(server, files, whole, tmp_path):
    """One of each kind; all of them are in the slow tests."""
    events = whole[1].events
    faults = [
        {"how": "SIGKILL", "at": events // 3},
        {"how": "tear", "size": 300, "at": events // 4},
        {"how": "SIGTERM", "at": events // 2},
        {"signal": "SIGINT", "after": 0.6 * whole[1].seconds},
    ]
    for number, fault in enumerate(faults):
        folder = tmp_path / str(number)
        folder.mkdir()
        check_stopped(server, files, folder, whole, **fault)


@pytest.mark.slow
def test_stopped_at_fifty_random_moments(server, files, whole, tmp_path):
    draw = random.Random(0)
    stopped = []
    for number in range(50):
        folder = tmp_path / str(number)
        folder.mkdir()
        fault = {"signal": SIGNALS[number % 3], "after": draw.random() * whole[1].seconds}
        stopped.append(check_stopped(server, files, folder, whole, **fault).code)
    print({code: stopped.count(code) for code in sorted(set(stopped))}, file=sys.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGKILL", "tear", "SIGTERM", "SIGINT"])
def test_stopped_at_every_event(server, files, whole, tmp_path, how):
    """Inside every write: before each opening, at each sync and rename, and half way through."""
    for at in range(1, whole[1].events + 1):
        folder = tmp_path / str(at)
        folder.mkdir()
        check_stopped(server, files, folder, whole, how=how, at=at, size=200)


def check_replaced(server, files, folder, at, how):
    """Stop `train --force` over an earlier run: that stands, or the new one does, whole."""
    folder.mkdir()
    run = folder / "run"
    old = server(files.train_words(run, "--epochs", "1"), folder)
    assert old.code == 0, old.err
    before = contents(run)
    said = server(files.train_words(run, "--force"), folder, how=how, at=at, size=200)
    if said.code == 0:
        return False
    old_stands = {name: value for name, value in contents(run).items() if name in before} == before
    if not old_stands:
        assert "epochs = 3" in (run / "config.toml").read_text(), (how, at)
    assert server(["predict", run, files.test], folder).code == 0, (how, at)
    return True


def test_an_earlier_run_stands_until_the_new_one_is_whole(server, files, whole, tmp_path):
    events = whole[1].events
    for at in (events // 2, events - 6):
        assert check_replaced(server, files, tmp_path / str(at), at, "SIGKILL")


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM", "full"])
def test_an_earlier_run_stands_at_every_event(server, files, whole, tmp_path, how):
    at = 1
    while check_replaced(server, files, tmp_path / str(at), at, how):
        at += 1
    # What is left at the last event, clearing up, may fail without harm to the new run.
    assert at >= whole[1].events


# Other commands


def vector_words(files, out):
    small = ["--dimension", 4, "--epochs", 1, "--seed", 0]
    return ["vectors", "train", files.text, "--out", out, *small, "--quiet", "--json"]


def check_vectors(server, files, folder, expected, at, how, **more):
    """Stop `vectors train`, with its cache; the second call must end well and alike."""
    folder.mkdir()
    said = server(vector_words(files, folder / "v"), folder, at=at, how=how, size=100, **more)
    again = server(vector_words(files, folder / "v"), folder, **more)
    if said.code == 0 or ((folder / "v").exists() and "exists already" in again.err):
        assert again.code == 1
    else:
        assert again.code == 0, (how, at, again.err)
    assert {path.name for path in (folder / "v").iterdir()} >= {"info.json", "tokenizer.json"}
    assert WordVectors.load(folder / "v", verify=True).content_sha256() == expected
    return said.code != 0


@pytest.fixture(scope="module")
def vector_hash(server, files, tmp_path_factory):
    pytest.importorskip("gensim.models")
    folder = tmp_path_factory.mktemp("vectors")
    said = server(vector_words(files, folder / "v"), folder)
    assert said.code == 0, said.err
    return WordVectors.load(folder / "v").content_sha256(), said.events


def test_vectors_train_stopped(server, files, vector_hash, tmp_path):
    for at, how in ((3, "tear"), (vector_hash[1] // 2, "SIGKILL")):
        assert check_vectors(server, files, tmp_path / f"{at}{how}", vector_hash[0], at, how)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGKILL", "tear"])
def test_vectors_train_and_its_cache_stopped_at_every_event(
    server, files, vector_hash, tmp_path, how
):
    """Each time with a cache of its own, in the folder that is watched."""
    folder = tmp_path / "all"
    folder.mkdir()
    cache = str(folder / "cache")
    total = server(vector_words(files, folder / "v"), folder, cache=cache).events
    assert total > vector_hash[1]  # the cache's are among them
    for at in range(1, total + 1):
        place = tmp_path / str(at)
        cache = str(place / "cache")
        check_vectors(server, files, place, vector_hash[0], at, how, cache=cache)


def compare_words(files, out):
    parts = [files.train, "--dev", files.dev, "--test", files.test, "--vectors", files.vectors]
    sizes = ["--hidden-size", 4, "--batch-size", 20, "--epochs", 1]
    return ["compare", *parts, *sizes, "--objectives", "supcon", "--seeds", 2, "--out", out]


def lines_of(folder):
    """The lines of results.jsonl without times, in order of what they are of."""
    found = [json.loads(line) for line in (folder / "results.jsonl").read_text().splitlines()]
    for line in found:
        line.pop("seconds")
    return sorted(found, key=lambda line: json.dumps(line, sort_keys=True))


def check_compared(server, files, folder, expected, **fault):
    out = folder / "out"
    said = server(compare_words(files, out), folder, **fault)
    again = server(compare_words(files, out), folder)
    assert again.code == 0, (fault, said.err, again.err)
    assert lines_of(out) == expected
    assert not [path for path in out.rglob("*") if path.name.endswith((".tmp", ".part"))]
    return said


@pytest.fixture(scope="module")
def compared(server, files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("compared")
    said = server(compare_words(files, folder / "out"), folder)
    assert said.code == 0, said.err
    return lines_of(folder / "out"), said


def test_compare_stopped(server, files, compared, tmp_path):
    fault = {"how": "SIGKILL", "at": compared[1].events // 2}
    assert check_compared(server, files, tmp_path, compared[0], **fault).code == -9


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGKILL", "tear", "SIGTERM", "full"])
def test_compare_stopped_at_every_event(server, files, compared, tmp_path, how):
    for at in range(1, compared[1].events + 1):
        folder = tmp_path / str(at)
        folder.mkdir()
        check_compared(server, files, folder, compared[0], how=how, at=at, size=300)


# Downloads


@pytest.fixture
def site():
    """A server on this machine with one file of word vectors; yields its address."""
    lines = [f"word{k} {k} 0.5 1.5" for k in range(4000)]
    content = ("\n".join(lines) + "\n").encode()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}/", content
    http.shutdown()
    http.server_close()


FETCHING = """
import sys
from pathlib import Path
from superconext.core.download import Downloader, PublicFile
from superconext.core.errors import DataError
from tests.reliability.server import Fault
url, path, at, how = sys.argv[1:]
fault = Fault(str(Path(path).parent), int(at), how, 5000)
fault.arm()
downloader = Downloader(Path(path).parent.with_suffix(".ledger"), DataError)
downloader.fetch(PublicFile(url), Path(path), "words.txt", url=url, advice="")
fault.at = 0
print(fault.count)
"""


def fetch_aside(url, path, at, how):
    import subprocess

    from tests.cli.conftest import environment

    words = [sys.executable, "-c", FETCHING, url, str(path), str(at), how]
    env = {**environment(), "no_proxy": "127.0.0.1"}
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=300)


def check_fetched(site, folder, at, how):
    url, content = site
    path = folder / "words.txt"
    stopped = fetch_aside(url, path, at, how)
    assert not path.exists() or path.read_bytes() == content, (at, how)
    done = fetch_aside(url, path, 0, "")
    assert done.returncode == 0, done.stderr
    assert path.read_bytes() == content and list(folder.iterdir()) == [path], (at, how)
    return stopped


def test_data_fetch_stopped(site, tmp_path):
    assert check_fetched(site, tmp_path, 2, "tear").returncode == -25


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGKILL", "tear"])
def test_data_fetch_stopped_at_every_event(site, tmp_path, how):
    at = 1
    while True:
        folder = tmp_path / f"{at}"
        folder.mkdir()
        if check_fetched(site, folder, at, how).returncode == 0:
            break
        at += 1
    assert at > 3


# What a killed writer leaves beside a file


def test_the_next_writer_clears_what_a_killed_one_left(tmp_path):
    path = tmp_path / "ملف with a space.json"
    number = os.fork()
    if number == 0:
        with atomic_write(path) as temporary:
            temporary.write_text("half")
            os.kill(os.getpid(), 9)
    os.waitpid(number, 0)
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(f".{path.name}.") and left.name.endswith(".tmp")
    with atomic_write(path) as outer:
        outer.write_text("slow")
        with atomic_write(path) as inner:  # one that lives is left alone
            inner.write_text("quick")
        assert path.read_text() == "quick" and outer.exists()
    assert path.read_text() == "slow" and list(tmp_path.iterdir()) == [path]
