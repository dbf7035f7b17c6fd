"""The token store of `train --store` is whole or absent, whenever the command is stopped."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("resource")
if not hasattr(os, "fork"):
    pytest.skip("POSIX processes", allow_module_level=True)

from superconext.core.files import file_sha256
from superconext.data.file_rows import tokenised_rows
from superconext.text.normalize import Normalizer
from superconext.text.tokenize import Tokenizer
from tests.cli.conftest import blame
from tests.reliability.commands import contents, digest


def words(files, folder):
    return files.train_words(folder / "run", "--store", folder / "store")


@pytest.fixture(scope="module")
def stored(server, files, tmp_path_factory):
    """The run, the files of the store, and how many events making both had."""
    folder = tmp_path_factory.mktemp("stored")
    said = server(words(files, folder), folder)
    assert said.code == 0 and "read in a stream" in said.err, said.err
    found = contents(folder / "store")
    assert len(found) == 11  # eight of the rows, three of the ids that training reads
    return digest(folder / "run"), found, said.events


def check_stopped(server, files, folder, stored, **fault):
    """Stop the command, and give it again. True where it was stopped before the store was whole."""
    folder.mkdir()
    said = server(words(files, folder), folder, **fault)
    (folder / "store").mkdir(exist_ok=True)
    left = {name: value for name, value in contents(folder / "store").items() if "/." not in name}
    assert left.items() <= stored[1].items(), (fault, said.err)
    if fault["how"] in ("full", "limit"):
        blame(said)
        assert left == contents(folder / "store"), "what is unfinished makes room"
    again = server(words(files, folder), folder)
    if (folder / "run").exists() and again.code:
        again = server(["train", "--resume", folder / "run"], folder)
    assert again.code == 0, (fault, said.err, again.err)
    assert digest(folder / "run") == stored[0], fault
    assert contents(folder / "store") == stored[1], fault
    return left != stored[1]


@pytest.mark.long
def test_stopped_at_a_few_moments(server, files, stored, tmp_path):
    faults = [
        {"how": "SIGKILL", "at": 12},
        {"how": "tear", "size": 100, "at": 8},
        {"how": "full", "at": 10},
        {"how": "limit", "size": 100, "at": 8},
    ]
    for number, fault in enumerate(faults):
        assert check_stopped(server, files, tmp_path / str(number), stored, **fault), fault


@pytest.mark.slow
@pytest.mark.parametrize("how", ["SIGKILL", "tear", "SIGTERM", "full", "limit"])
def test_stopped_at_every_event_until_it_is_whole(server, files, stored, tmp_path, how):
    """Each later one is the training's own; those are in test_resume.py and test_disk.py."""
    at = 1
    while check_stopped(server, files, tmp_path / str(at), stored, how=how, at=at, size=60):
        at += 1
    assert 30 < at < stored[2]


@pytest.mark.parametrize("name", ["words.json", "lines.npy", "tokens.bin", "ids.bin"])
@pytest.mark.parametrize("kept", [0, 20])
def test_a_torn_store_is_made_again(server, files, stored, tmp_path, name, kept):
    assert server(words(files, tmp_path), tmp_path).code == 0
    (path,) = (tmp_path / "store").rglob(name)
    path.write_bytes(path.read_bytes()[:kept])
    (tmp_path / "run").rename(tmp_path / "first")
    said = server(words(files, tmp_path), tmp_path)
    assert said.code == 0, said.err
    assert digest(tmp_path / "run") == stored[0]
    assert contents(tmp_path / "store") == stored[1]


@pytest.mark.parametrize("name", ["labels.npy", "tokens.bin", "ids.bin"])
def test_a_store_that_was_altered_is_made_again(server, files, stored, tmp_path, name):
    assert server(words(files, tmp_path), tmp_path).code == 0
    (path,) = (tmp_path / "store").rglob(name)
    content = bytearray(path.read_bytes())
    content[-2] ^= 0x40  # a huge number, or another class
    path.write_bytes(content)
    (tmp_path / "run").rename(tmp_path / "first")
    said = server(words(files, tmp_path), tmp_path)
    assert said.code == 0, said.err
    assert digest(tmp_path / "run") == stored[0]
    assert contents(tmp_path / "store") == stored[1]


def test_of_two_that_make_the_same_store_the_first_one_stays(files, tmp_path):
    tokenizer = Tokenizer(Normalizer("none"))
    sha256, first = file_sha256(files.train), []

    def made(advance=lambda done: None):
        return tokenised_rows(files.train, sha256, tokenizer, (None, None), tmp_path, advance, 1)

    def while_the_other_works(done):
        if not first:
            first.append(made().folder.stat().st_ino)

    second = made(while_the_other_works)
    assert second.folder.stat().st_ino == first[0]
    assert [path.name for path in second.folder.parent.iterdir()] == [second.folder.name]
