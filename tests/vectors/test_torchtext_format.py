"""torchtext's files, made here without torchtext."""

import collections
import io
import os
import pickle
import sys
import types

import numpy as np
import pytest
import torch

from superconext.core.errors import VectorsError
from superconext.vectors.readers import read_torchtext_vocab, read_vectors

WORDS = ["the", "قط", "a b"]


def cache_tuple(words=WORDS, dimension=4, **changes):
    parts = {
        "words": list(words),
        "ids": {word: i for i, word in enumerate(words)},
        "vectors": torch.arange(len(words) * dimension).reshape(len(words), dimension).float(),
        "said": dimension,
    }
    parts.update(changes)
    return tuple(parts.values())


@pytest.mark.parametrize("zipped", [True, False])
def test_vector_cache(tmp_path, zipped):
    path = tmp_path / "glove.txt.pt"
    torch.save(cache_tuple(), path, _use_new_zipfile_serialization=zipped)
    vectors = read_vectors(path)
    assert vectors.words == WORDS
    np.testing.assert_array_equal(vectors.matrix, np.arange(12).reshape(3, 4))
    assert vectors.matrix.dtype == np.float32
    assert read_vectors(path, keep={"THE"}).words == ["the"]
    assert len(read_vectors(path, limit=2)) == 2


@pytest.mark.parametrize(
    "content",
    [
        cache_tuple()[:3],
        cache_tuple(vectors=torch.zeros(3, 5)),
        cache_tuple(vectors=torch.zeros(2, 4)),
        cache_tuple(vectors=torch.zeros(3, 4, dtype=torch.int64)),
        cache_tuple(vectors=torch.zeros(3, 4).to_sparse()),
        cache_tuple(vectors=[[0.0] * 4] * 3),
        cache_tuple(said="4"),
        cache_tuple(words=[1, 2, 3]),
        {"state": torch.zeros(2)},
    ],
)
def test_other_content_is_refused(tmp_path, content):
    path = tmp_path / "x.pt"
    torch.save(content, path)
    with pytest.raises(VectorsError, match="expected"):
        read_vectors(path)


def test_objects_in_a_cache_are_not_run(tmp_path, monkeypatch):
    class Evil:
        def __reduce__(self):
            return os.system, ("touch pwned",)

    monkeypatch.chdir(tmp_path)
    for zipped in (True, False):
        torch.save((Evil(), 1, 2, 3), "x.pt", _use_new_zipfile_serialization=zipped)
        with pytest.raises(VectorsError, match="safety"):
            read_vectors(tmp_path / "x.pt")
        with pytest.raises(VectorsError, match="safety"):
            read_torchtext_vocab(tmp_path / "x.pt")
    assert not (tmp_path / "pwned").exists()


def test_vectors_that_are_not_finite_are_counted(tmp_path):
    words = [f"w{i}" for i in range(30)]
    parts = cache_tuple(words)
    parts[2][3, 1] = float("nan")
    torch.save(parts, tmp_path / "x.pt")
    vectors = read_vectors(tmp_path / "x.pt")
    assert len(vectors) == 29
    assert "row 4" in vectors.notes[0]


@pytest.fixture
def torchtext(monkeypatch):
    """Modules with the names of torchtext's classes, gone again before anything is read."""

    def module(name, **members):
        made = types.ModuleType(name)
        for key, value in members.items():
            value.__module__, value.__qualname__ = name, key
            setattr(made, key, value)
        monkeypatch.setitem(sys.modules, name, made)

    class Inner:
        def __init__(self, words):
            self.words = words

        def __getstate__(self):
            return ("0.0.2", [0], self.words, [])

        def __setstate__(self, state):
            raise AssertionError("must not run")

    class Outer(torch.nn.Module):
        def __init__(self, words):
            super().__init__()
            self.vocab = Inner(words)

    class Legacy:
        def __init__(self, words):
            self.freqs = collections.Counter(words)
            self.itos = words
            self.stoi = collections.defaultdict(_default_unk_index)
            self.stoi.update({word: i for i, word in enumerate(words)})
            self.vectors = torch.ones(len(words), 2)

    def _default_unk_index():
        return 0

    module("torchtext")
    module("torchtext.vocab", Vocab=Legacy, _default_unk_index=_default_unk_index)
    module("torchtext.vocab.vocab", Vocab=Outer)
    module("torchtext._torchtext", Vocab=Inner)
    return types.SimpleNamespace(Outer=Outer, Legacy=Legacy, undo=monkeypatch.undo)


@pytest.mark.filterwarnings("ignore:Couldn't retrieve source code")
@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("kind", ["Outer", "Legacy"])
def test_vocabularies(tmp_path, torchtext, kind, zipped):
    path = tmp_path / "vocab.pt"
    words = ["<unk>", "<pad>", "the", "قط"]
    torch.save(getattr(torchtext, kind)(words), path, _use_new_zipfile_serialization=zipped)
    torchtext.undo()
    assert "torchtext" not in sys.modules
    assert read_torchtext_vocab(path) == words
    with pytest.raises(VectorsError):
        read_vectors(path)


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_vocabulary_pickled_without_torch(tmp_path, torchtext, protocol):
    data = io.BytesIO()
    pickle.dump(torchtext.Outer(["<unk>", "x"]), data, protocol=protocol)
    torchtext.undo()
    (tmp_path / "vocab.pkl").write_bytes(data.getvalue())
    assert read_torchtext_vocab(tmp_path / "vocab.pkl") == ["<unk>", "x"]
    for length in range(0, len(data.getvalue()), 5):
        (tmp_path / "vocab.pkl").write_bytes(data.getvalue()[:length])
        with pytest.raises(VectorsError):
            read_torchtext_vocab(tmp_path / "vocab.pkl")


def test_what_is_no_vocabulary_is_refused(tmp_path):
    torch.save(["a", "b"], tmp_path / "list.pt")
    with pytest.raises(VectorsError, match="no list of words"):
        read_torchtext_vocab(tmp_path / "list.pt")
    with pytest.raises(VectorsError, match="cannot be read"):
        read_torchtext_vocab(tmp_path / "nowhere.pt")
    (tmp_path / "text.pt").write_text("the 1 2 3\n")
    with pytest.raises(VectorsError):
        read_torchtext_vocab(tmp_path / "text.pt")
