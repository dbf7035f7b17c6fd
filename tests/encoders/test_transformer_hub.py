"""A transformer of a name on the Hub, here a stand-in on loopback: its revision is kept."""

import errno
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("transformers")

import superconext
from superconext.core.errors import RunError
from tests.cli.conftest import blame, call_main, write_table
from tests.encoders.transformers import LABELS, NEW, TEXTS, make_model
from tests.export.hub_server import Repository
from tests.export.test_hub import hub  # noqa: F401

NAME = "zahra/tiny"
FIRST, SECOND = "1" * 40, "2" * 40


@pytest.fixture
def served(hub, tmp_path):  # noqa: F811
    """The stand-in with two commits of a model, the second at the head of main."""
    repository = hub.repositories[NAME] = Repository(None)
    for commit, kinds in ((FIRST, 2), (SECOND, 3)):
        folder = Path(make_model(tmp_path / commit, type_vocab_size=kinds))
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        repository.commits[commit] = {**files, "pytorch_model.bin": b"never asked for"}
        repository.branches["main"] = commit
        shutil.rmtree(folder)
    return hub


def train(run, revision, *more):
    table = write_table(run.with_suffix(".tsv"), zip(LABELS, TEXTS, strict=True))
    words = "--encoder", "transformer", "--model", NAME, "--epochs", 1, "--cv", 0
    options = [f"revision={revision}"] if revision else []
    return call_main(
        "train", table, "--out", run, *words, "--options", ",".join([*options, *more]) or "layer=-1"
    )


def facts(run):
    return json.loads((run / "vocabulary.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("revision", "commit"), [(FIRST, FIRST), ("main", SECOND)])
def test_a_run_has_the_commit_that_it_read(revision, commit, served, tmp_path):
    said = train(tmp_path / "run", revision)
    assert said.code == 0, said.err
    model = facts(tmp_path / "run")["model"]
    assert (model["name"], model["revision"], len(model["sha256"])) == (NAME, commit, 64)
    assert facts(tmp_path / "run")["architecture"]["type_vocab_size"] == 1 + int(commit[0])
    assert f"/{NAME}/resolve/{commit}/model.safetensors" in " ".join(served.asked)
    assert not any(path.endswith(".bin") for path in served.asked)
    served.asked.clear()
    assert superconext.load(tmp_path / "run").transform(NEW).shape == (len(NEW), 16)
    assert not served.asked, "the run has the weights, and needs no Hub"


def test_adapters_are_put_beside_the_commit_that_they_were_trained_on(served, tmp_path):
    pytest.importorskip("peft")
    run = tmp_path / "run"
    said = train(run, "main", "lora=2")
    assert said.code == 0, said.err
    before = superconext.load(run).predict_proba(NEW)
    served.repositories[NAME].branches["main"] = FIRST  # main has moved on, and is in the cache
    assert train(tmp_path / "other", "").code == 0
    assert facts(tmp_path / "other")["model"]["revision"] == FIRST
    served.asked.clear()
    assert np.array_equal(superconext.load(run).predict_proba(NEW), before)
    assert not served.asked
    for cached in (tmp_path / "hub").glob(f"models--*/snapshots/{SECOND}"):
        shutil.rmtree(cached)
    with pytest.raises(RunError, match="adapters belong to zahra/tiny") as error:
        superconext.load(run)
    assert "\n" not in str(error.value) and not served.asked


def test_an_unknown_revision_is_one_line(served, tmp_path):
    said = train(tmp_path / "run", "3" * 40)
    assert said.code == 1 and said.err.splitlines()[-1].startswith(f"error: model = '{NAME}': no ")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("code", [429, 500, None])
def test_a_hub_that_fails_is_told_as_such_with_its_own_words(code, served, tmp_path):
    served.broken = code
    if code is None:
        served.stop()
        served.stop = lambda: None
    line = blame(train(tmp_path / "run", ""))
    wanted = "the Hub cannot be reached (Conn" if code is None else "the Hub answered with an error"
    assert wanted in line and line.endswith("try again, or give a folder that has it")
    assert str(code or "refused") in line and "writ" not in line


def test_a_disk_that_is_full_is_told_with_its_own_words(monkeypatch, tmp_path):
    def fill(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "x" * 300)

    monkeypatch.setattr(pytest.importorskip("huggingface_hub"), "snapshot_download", fill)
    line = blame(train(tmp_path / "run", ""))
    assert "it cannot be written (OSError: [Errno 28] No space left" in line and len(line) < 460
