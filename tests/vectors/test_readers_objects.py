"""Word vectors in memory are taken where a path is."""

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from superconext import SuperConTextClassifier
from superconext.core.errors import ConfigError, VectorsError
from superconext.vectors.readers import path_of, read_vectors
from superconext.vectors.table import WordVectors

WORDS = ["zwin", "khayb", "bzaf", "had", "chi"]
MATRIX = np.random.default_rng(0).standard_normal((5, 6)).astype(np.float32)
TEXTS = ["zwin bzaf", "khayb bzaf", "had zwin", "had khayb", "chi zwin", "chi khayb"] * 4
LABELS = ["good", "bad"] * 12
SMALL = {"epochs": 2, "hidden_size": 4, "batch_size": 8}


class OfTorchtext:
    """Looks like `torchtext.vocab.Vectors`."""

    def __init__(self, vectors=MATRIX):
        self.itos, self.vectors = WORDS, vectors


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "vectors"


@pytest.mark.parametrize("made", [OfTorchtext, lambda: WordVectors(WORDS, MATRIX)])
def test_an_estimator_takes_the_object_itself(own_cache, tmp_path, made):
    WordVectors(WORDS, MATRIX).save(tmp_path / "folder")
    by_path = SuperConTextClassifier(vectors=str(tmp_path / "folder"), **SMALL).fit(TEXTS, LABELS)
    source = made()
    model = SuperConTextClassifier(vectors=source, **SMALL).fit(TEXTS, LABELS)
    np.testing.assert_array_equal(model.predict_proba(TEXTS), by_path.predict_proba(TEXTS))
    assert model.vectors is source  # as scikit-learn wants it
    clone(model).fit(TEXTS, LABELS)
    assert len(list(own_cache.glob("given-*"))) == 1
    model.save(tmp_path / "run")


def test_what_is_kept_is_what_was_given(own_cache):
    kept = read_vectors(path_of(OfTorchtext()))
    assert kept.words == WORDS
    np.testing.assert_array_equal(kept.matrix, MATRIX)
    assert path_of(OfTorchtext(MATRIX + 1)) != path_of(OfTorchtext())


@pytest.mark.parametrize("damage", ["flip", "cut", "remove", "file"])
def test_a_damaged_entry_is_made_again(own_cache, damage):
    folder = Path(path_of(WordVectors(WORDS, MATRIX)))
    matrix = folder / "matrix.npy"
    if damage == "flip":
        content = bytearray(matrix.read_bytes())
        content[-10] ^= 0x40
        matrix.write_bytes(content)
    elif damage == "cut":
        matrix.write_bytes(matrix.read_bytes()[:-8])
    else:
        matrix.unlink()
    if damage == "file":
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
        folder.write_bytes(b"a")
    assert path_of(WordVectors(WORDS, MATRIX)) == str(folder)
    np.testing.assert_array_equal(read_vectors(str(folder)).matrix, MATRIX)


def test_paths_are_text_afterwards():
    assert path_of(Path("a") / "b") == str(Path("a") / "b")
    assert path_of("glove.txt") == "glove.txt" and path_of(None) is None


def test_what_is_no_vectors_is_refused(own_cache):
    with pytest.raises(VectorsError, match="holds 5 words beside vectors of shape"):
        SuperConTextClassifier(vectors=OfTorchtext(MATRIX[:3]), **SMALL).fit(TEXTS, LABELS)
    with pytest.raises(ConfigError, match="vectors = "):
        SuperConTextClassifier(vectors=7, **SMALL).fit(TEXTS, LABELS)
