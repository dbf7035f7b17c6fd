"""The cache of trained vectors: what shares an entry, and what happens to a bad one."""

import errno
import inspect
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from superconext.core.files import cache_dir
from superconext.vectors import training
from superconext.vectors.training import cached_vectors

pytest.importorskip("gensim.models")
SENTENCES = [["hada", "film", "zwin"], ["film", "khayb"]] * 5
SMALL = {"dimension": 4, "buckets": 40, "epochs": 1}


@pytest.fixture
def trained(monkeypatch):
    """Counts the trainings."""
    calls = []
    real = training.train_vectors

    def counting(token_lists, **settings):
        calls.append(settings)
        return real(token_lists, **settings)

    counting.__signature__ = __import__("inspect").signature(real)
    monkeypatch.setattr(training, "train_vectors", counting)
    return calls


def entries(folder):
    return sorted((folder / "vectors").iterdir())


def test_the_second_time_nothing_is_trained(tmp_path, trained):
    seen = []
    one = cached_vectors(SENTENCES, cache_dir=tmp_path, **SMALL)
    two = cached_vectors(SENTENCES, cache_dir=tmp_path, progress=seen.append, **SMALL)
    assert len(trained) == 1
    assert seen == [1.0]
    assert (one.words, one.sha256, one.notes) == (two.words, two.sha256, two.notes)
    np.testing.assert_array_equal(one.matrix, two.matrix)
    np.testing.assert_array_equal(one.lookup(["zwina"])[0], two.lookup(["zwina"])[0])
    assert isinstance(two.matrix, np.memmap)


def test_defaults_written_out_are_the_same_settings(tmp_path, trained):
    cached_vectors(SENTENCES, cache_dir=tmp_path, **SMALL)
    cached_vectors(SENTENCES, cache_dir=tmp_path, seed=0, window=5, **SMALL)
    cached_vectors((tuple(tokens) for tokens in SENTENCES), cache_dir=tmp_path, **SMALL)
    assert len(trained) == 1


@pytest.mark.parametrize(
    "change", [{"seed": 1}, {"epochs": 2}, {"min_n": 2}, {"method": "word2vec"}, {"buckets": 41}]
)
def test_another_setting_is_another_entry(tmp_path, trained, change):
    cached_vectors(SENTENCES, cache_dir=tmp_path, **SMALL)
    cached_vectors(SENTENCES, cache_dir=tmp_path, **{**SMALL, **change})
    assert len(trained) == len(entries(tmp_path)) == 2


def test_every_setting_is_part_of_what_names_an_entry():
    changes = inspect.signature(training.train_vectors).parameters.keys()
    changes -= {"token_lists", "progress", "state"}
    keys = {training._key(SENTENCES, None, {name: 77}) for name in changes}
    assert len(keys | {training._key(SENTENCES, None, {})}) == len(changes) + 1 > 10


def test_other_tokens_are_another_entry(tmp_path, trained):
    variants = [[["a b", "c"]], [["a", "b c"]], [["a", "b"], ["c"]], [["a", "b", "c"]]]
    for lists in variants:
        cached_vectors(lists, cache_dir=tmp_path, **SMALL)
    assert len(trained) == len(entries(tmp_path)) == 4


def test_an_unknown_setting_is_refused_before_any_work(tmp_path, trained):
    with pytest.raises(TypeError):
        cached_vectors(SENTENCES, cache_dir=tmp_path, colour="blue")
    assert not trained


@pytest.mark.parametrize("damage", ["cut", "flipped", "no info", "a file"])
def test_a_damaged_entry_is_made_again(tmp_path, trained, damage):
    expected = cached_vectors(SENTENCES, cache_dir=tmp_path, **SMALL).sha256
    (entry,) = entries(tmp_path)
    matrix = entry / "matrix.npy"
    data = matrix.read_bytes()
    if damage == "cut":
        matrix.write_bytes(data[:-9])
    elif damage == "flipped":
        matrix.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    elif damage == "no info":
        (entry / "info.json").unlink()
    else:
        for path in entry.iterdir():
            path.unlink()
        entry.rmdir()
        entry.write_text("x")
    again = cached_vectors(SENTENCES, cache_dir=tmp_path, **SMALL)
    assert again.sha256 == expected
    assert any("damaged" in note for note in again.notes)
    third = cached_vectors(SENTENCES, cache_dir=tmp_path, **SMALL)
    assert len(trained) == 2
    assert not any("damaged" in note for note in third.notes)


def test_a_cache_that_cannot_be_written_costs_only_a_note(tmp_path, trained):
    (tmp_path / "wall").write_text("a file where the cache should be")
    vectors = cached_vectors(SENTENCES, cache_dir=tmp_path / "wall", **SMALL)
    assert len(vectors) == 4
    assert "not kept" in vectors.notes[-1]


def test_a_full_cache_is_named_once(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "replace", full)
    monkeypatch.setattr(Path, "rename", full)
    monkeypatch.setattr(os, "rename", full)
    vectors = cached_vectors(SENTENCES, cache_dir=tmp_path, **SMALL)
    start = f"not kept in the cache {tmp_path / 'vectors'}"
    assert vectors.notes[-1].startswith(start)
    assert vectors.notes[-1].endswith(": No space left on device")


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "mine"))
    assert cache_dir() == tmp_path / "mine"
    cached_vectors(SENTENCES, **SMALL)
    assert len(entries(tmp_path / "mine")) == 1
    monkeypatch.delenv("SUPERCONEXT_CACHE")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_dir() == tmp_path / ".cache" / "superconext"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg" / "superconext"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_dir() == tmp_path / "Library" / "Caches" / "superconext"
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    assert cache_dir() == tmp_path / "local" / "superconext"
