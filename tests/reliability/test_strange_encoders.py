"""A pretrained encoder from a stranger: `train --init FOLDER` uses it or refuses it in one line."""

from __future__ import annotations

import json
import os
import shutil
import time
import tracemalloc

import pytest
import torch
from safetensors.torch import load_file, save_file

from superconext.core.errors import RunError
from superconext.core.files import file_sha256
from superconext.encoders.bilstm import BiLSTMEncoder
from superconext.encoders.pretrained import start_from
from superconext.encoders.words import WordEmbedding
from tests.cli.conftest import blame, call_main
from tests.reliability.commands import make_files
from tests.reliability.readers import make_encoder

SIZES = ("--hidden-size", 3, "--epochs", 1, "--batch-size", 20, "--no-baselines", "--quiet")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "pre"
    make_encoder(folder)
    return folder


@pytest.fixture(autouse=True)
def no_figures(monkeypatch):
    monkeypatch.setattr("superconext.report.figures.available", lambda: False)


@pytest.fixture
def pre(made, tmp_path):
    shutil.copytree(made, tmp_path / "pre")
    return tmp_path / "pre"


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return make_files(tmp_path_factory.mktemp("rows"))


def train(rows, pre, *more):
    run = pre.parent / "run"
    words = ["train", rows.train, "--dev", rows.dev, "--init", pre, "--out", run, *SIZES]
    return call_main(*words, *more)


def refused(rows, pre, told, most=16 << 20):
    """`train` refuses the folder with one line, in little memory and time, and writes nothing."""
    tracemalloc.start()
    started = time.process_time()
    try:
        last = blame(train(rows, pre))
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()
    assert time.process_time() - started < 20 and len(last) < 1000
    assert str(pre) in last and told in last, last
    assert not (pre.parent / "run").exists()


def edit(pre, **facts):
    path = pre / "encoder.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**document, **facts}), encoding="utf-8")


def sign(pre):
    """Note the hash of the weights as they are, as a stranger would."""
    edit(pre, sha256=file_sha256(pre / "encoder.safetensors"))


def put(pre, tensors):
    save_file(tensors, pre / "encoder.safetensors")
    sign(pre)


def test_the_folder_that_all_others_are_made_from_is_taken(rows, pre):
    said = train(rows, pre)
    assert said.code == 0, said.err


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "no JSON document"), (b"weights", "no JSON document"), (b"\xff\xfe{}", "no JSON"),
        (b"1" * 100_000, "no JSON document"), (b"[" * 900_000, "nested too deep"),
        (b'{"a":' * 100_000, "nested too deep"), (b" " * (1 << 21), "longer than 1 MiB"),
        (b"[]", "found a JSON list"), (b"null", "found a JSON NoneType"),
        (b"{}", "found format None"),
    ],
    ids=["empty", "text", "bytes", "digits", "lists", "objects", "long", "list", "null", "bare"],
)  # fmt: skip
def test_facts_that_are_none(rows, pre, content, told):
    (pre / "encoder.json").write_bytes(content)
    refused(rows, pre, told)


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"version": 2}, "version 2"), ({"version": None}, "version None"),
        ({"version": "1" * 500_000}, "version '1111"), ({"format": {"a": []}}, "found format {"),
        ({"format": "superconext-vectors"}, "expected 'superconext-encoder'"),
        ({"hidden_size": 10**12}, "found hidden_size 1000"),
        ({"hidden_size": "\ud800"}, "found hidden_size '"), ({"hidden_size": True}, "found hidden"),
        ({"hidden_size": [3] * 100_000}, "expected 1 to 8192"),
        ({"hidden_size": 8192}, "leave hidden_size out"), ({"dimension": -1}, "found dimension -1"),
        ({"dimension": 10**300}, "expected 1 to 4096"), ({"dimension": 5}, "word vectors of 5"),
        ({"sha256": ["x"]}, "not the one"), ({"sha256": "0" * 64}, "not the one"),
    ],
)  # fmt: skip
def test_facts_that_lie(rows, pre, facts, told):
    edit(pre, **facts)
    refused(rows, pre, told)


def test_a_size_that_nobody_asked_for_is_not_made(rows, pre):
    edit(pre, hidden_size=8192)
    words = ["train", rows.train, "--dev", rows.dev, "--init", pre, "--out", pre.parent / "run"]
    tracemalloc.start()
    last = blame(call_main(*words))
    assert "its tensors are not those of its sizes" in last
    assert tracemalloc.get_traced_memory()[1] < 16 << 20
    tracemalloc.stop()


def test_weights_that_are_not_those_of_the_facts(rows, pre):
    path = pre / "encoder.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    refused(rows, pre, "it is not the one that encoder.json tells of")
    for content in (whole[:-8], whole[:20], b"", (2**62).to_bytes(8, "little") + whole[8:]):
        path.write_bytes(content)
        sign(pre)
        refused(rows, pre, "encoder.safetensors: cannot be used")
    path.unlink()
    refused(rows, pre, "it is missing")


def test_a_header_that_lies(rows, pre):
    path = pre / "encoder.safetensors"
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    for shape in ([10**12, 4], [2**32, 2**32], [0], []):
        header = json.loads(data[8 : 8 + size])
        header["forwards.weight_hh_l0"]["shape"] = shape
        head = json.dumps(header).encode()
        path.write_bytes(len(head).to_bytes(8, "little") + head + data[8 + size :])
        sign(pre)
        refused(rows, pre, "cannot be used")


def test_tensors_of_other_shapes_names_and_numbers(rows, pre):
    tensors = load_file(pre / "encoder.safetensors")
    name = "backwards.weight_hh_l0"
    others = {key: value for key, value in tensors.items() if key != name}
    for changed in (
        others,
        {},
        {**tensors, "more": torch.zeros(2)},
        {**others, name: torch.ones(3)},
    ):
        put(pre, changed)
        refused(rows, pre, "its tensors are not those of its sizes")
    for number in (float("nan"), float("inf")):
        put(pre, {**others, name: torch.full_like(tensors[name], number)})
        refused(rows, pre, "not finite")
    whole = torch.ones(tensors[name].shape, dtype=torch.int64)
    for value in (whole, whole.to(torch.complex64), whole.bool()):
        put(pre, {**others, name: value})
        refused(rows, pre, "its tensors are not those of its sizes")


@pytest.mark.parametrize(
    "name", ["encoder.json", "encoder.safetensors", "info.json", "words.json", "matrix.npy"]
)
def test_links_out_of_the_folder_are_refused_and_links_within_are_not(rows, pre, tmp_path, name):
    (pre / "inside").mkdir()
    (pre / name).rename(pre / "inside" / name)
    (pre / name).symlink_to(pre / "inside" / name)
    encoder = BiLSTMEncoder(WordEmbedding(torch.zeros(4, 6)), 3)
    start_from(encoder, pre)
    (pre / name).unlink()
    (pre / "inside" / name).rename(tmp_path / name)
    for target in (tmp_path / name, f"../{name}", "/dev/zero", "/etc/nothing"):
        (pre / name).symlink_to(target)
        refused(rows, pre, f"{name}: a link that leads out of the folder")
        (pre / name).unlink()
    (pre / name).symlink_to(name)  # to itself
    refused(rows, pre, "")


@pytest.mark.parametrize(
    "name", ["encoder.json", "encoder.safetensors", "words.json", "matrix.npy"]
)
def test_a_pipe_or_a_folder_in_the_place_of_a_file_is_not_waited_for(rows, pre, name):
    (pre / name).unlink()
    (pre / name).mkdir()
    refused(rows, pre, f"{name}: found no plain file")
    (pre / name).rmdir()
    if hasattr(os, "mkfifo"):
        os.mkfifo(pre / name)
        refused(rows, pre, f"{name}: found no plain file")


def test_word_vectors_that_lie(rows, pre):
    info = json.loads((pre / "info.json").read_text(encoding="utf-8"))
    for lie in ({"dimension": 10**12}, {"dimension": 5}, {"words": -1, "dimension": None}):
        (pre / "info.json").write_text(json.dumps({**info, **lie}), encoding="utf-8")
        refused(rows, pre, "not a readable folder of word vectors")


def test_a_folder_of_word_vectors_alone_and_none_at_all(rows, pre):
    (pre / "encoder.json").unlink()
    refused(rows, pre, "found no encoder.json, expected the folder of a pretrained encoder")
    shutil.rmtree(pre)
    refused(rows, pre, "superconext pretrain")
    pre.write_text("a file", encoding="utf-8")
    refused(rows, pre, "superconext pretrain")


def test_the_library_refuses_as_the_command_does(pre):
    encoder = BiLSTMEncoder(WordEmbedding(torch.zeros(4, 6)), 3)
    edit(pre, version=9)
    with pytest.raises(RunError, match="version 9"):
        start_from(encoder, pre)
