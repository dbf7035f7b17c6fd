"""torchtext's objects in place of a path: look-alikes everywhere, the real ones where they run.

`scripts/torchtext_env.sh` builds an environment for the second kind. torchtext is looked for by
its metadata alone: beside a current torch its import fails with an error of the system.
"""

from __future__ import annotations

import collections
import pickle
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import torch

from superconext.core.errors import VectorsError
from superconext.vectors.readers import read_torchtext_vocab, read_vectors
from superconext.vectors.table import WordVectors

WORDS = ["the", "قط", "zwin", "3la"]
MATRIX = np.arange(12, dtype=np.float32).reshape(4, 3) / 7

#: Written by torchtext 0.18 on torch 2.3, by the last test of this file.
KEPT = Path(__file__).parent / "torchtext"
INVENTED = ["<unk>", "blimu", "زرطوف", "3aklo", "vérla-di", "🐫", "snorf"]
TABLE = (np.arange(len(INVENTED) * 5, dtype=np.float32).reshape(-1, 5) - 17) / 8


class LooksLikeVectors:
    def __init__(self, words=WORDS, vectors=MATRIX):
        self.itos, self.vectors, self.dim = words, vectors, 3


class LooksLikeVocab:
    def __init__(self, words=WORDS):
        self.words = words

    def get_itos(self):
        return self.words


@pytest.mark.parametrize(
    "vectors", [MATRIX, torch.from_numpy(MATRIX), torch.nn.Parameter(torch.from_numpy(MATRIX))]
)
def test_an_object_in_place_of_a_path(vectors):
    read = read_vectors(LooksLikeVectors(vectors=vectors))
    assert read.words == WORDS and read.dimension == 3
    np.testing.assert_array_equal(read.matrix, MATRIX)
    assert read.name == "torchtext LooksLikeVectors"
    assert read.sha256 == WordVectors(WORDS, MATRIX).content_sha256()


def test_only_the_wanted_rows():
    source = LooksLikeVectors()
    some = read_vectors(source, keep={"ZWIN"}, limit=1)
    assert some.words == ["the", "zwin"]
    np.testing.assert_array_equal(some.matrix, MATRIX[[0, 2]])
    # The hash stands for the whole source, as a file's does.
    assert some.sha256 == read_vectors(source).sha256


def test_the_object_is_neither_kept_nor_changed(tmp_path):
    tensor = torch.from_numpy(MATRIX.copy())
    read = read_vectors(LooksLikeVectors(vectors=tensor))
    tensor.zero_()
    np.testing.assert_array_equal(read.matrix, MATRIX)
    read.save(tmp_path / "folder")
    assert read_vectors(tmp_path / "folder").sha256 == read.sha256


def test_half_precision():
    read = read_vectors(LooksLikeVectors(vectors=torch.from_numpy(MATRIX).to(torch.bfloat16)))
    np.testing.assert_allclose(read.matrix, MATRIX, rtol=1e-2)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (LooksLikeVectors(vectors=None), "words and no vectors"),
        (LooksLikeVocab(), "words and no vectors"),
        (LooksLikeVectors(words=["a"]), "1 words beside vectors of shape"),
        (LooksLikeVectors(vectors=np.zeros(4)), "shape"),
        (LooksLikeVectors(vectors=np.zeros((4, 3), dtype=int)), "expected floats"),
        (LooksLikeVectors(vectors="text"), "expected floats"),
        (LooksLikeVectors(words={"the": 0}), "list of strings"),
        (LooksLikeVectors(words=[1, 2, 3, 4]), "list of strings"),
    ],
)
def test_an_object_that_does_not_fit(source, said):
    with pytest.raises(VectorsError, match=said) as caught:
        read_vectors(source)
    assert "\n" not in str(caught.value)


def test_the_words_of_an_object():
    assert read_torchtext_vocab(LooksLikeVocab()) == WORDS
    assert read_torchtext_vocab(LooksLikeVectors(vectors=None)) == WORDS
    with pytest.raises(VectorsError, match="list of strings"):
        read_torchtext_vocab(LooksLikeVocab(words=None))


def test_torchtext_is_never_imported():
    """Not even where it is installed: merely importing it breaks beside a current torch."""
    code = (
        "import sys; import superconext, superconext.vectors.readers;"
        "import superconext.encoders.embedding_init;"
        "from superconext.vectors.readers import read_vectors;"
        "sys.exit(any(name.split('.')[0] == 'torchtext' for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120).returncode == 0


@pytest.mark.parametrize("name", ["invented.txt.pt", "invented.txt_3.pt"])
def test_a_real_vector_cache(name):
    read = read_vectors(KEPT / name)
    count = 3 if name.endswith("_3.pt") else len(INVENTED)
    assert read.words == INVENTED[:count] and read.notes == []
    np.testing.assert_array_equal(read.matrix, TABLE[:count])
    assert read_vectors(KEPT / name, keep={"زرطوف"}).words == ["زرطوف"]


@pytest.mark.parametrize("name", ["vocab.pt", "vocab.pkl"])
def test_a_real_vocabulary_in_a_file(name):
    assert read_torchtext_vocab(KEPT / name) == ["<unk>", "<pad>", *INVENTED[1:4]]
    with pytest.raises(VectorsError, match="expected"):
        read_vectors(KEPT / name)


def _missing() -> str:
    """Why torchtext cannot run here, found out without importing it; empty if it can."""
    try:
        found = metadata.version("torchtext")
    except metadata.PackageNotFoundError:
        return "torchtext is not installed; scripts/torchtext_env.sh makes a place where it is"
    major, minor = (int(part) for part in torch.__version__.split(".")[:2])
    if (major, minor) >= (2, 4):
        return f"torchtext {found} does not load beside torch {torch.__version__}"
    return ""


@pytest.fixture
def torchtext_vocab():
    if _missing():
        pytest.skip(_missing())
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it announces its own end
        import torchtext.vocab
    return torchtext.vocab


@pytest.fixture
def glove(tmp_path):
    """A file as GloVe writes it."""
    path = tmp_path / "tiny.txt"
    lines = (
        f"{word} {' '.join(f'{x:.6f}' for x in row)}\n"
        for word, row in zip(WORDS, MATRIX, strict=True)
    )
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.mark.torchtext
def test_real_vectors_and_the_cache_they_leave(torchtext_vocab, glove, tmp_path):
    real = torchtext_vocab.Vectors(str(glove), cache=str(tmp_path / "cache"))
    read = read_vectors(real)
    assert read.words == WORDS
    np.testing.assert_allclose(read.matrix, MATRIX, atol=1e-6)
    np.testing.assert_array_equal(read.matrix, real.vectors.numpy())
    assert read_vectors(real, keep={"zwin"}).words == ["zwin"]
    cached = read_vectors(tmp_path / "cache" / "tiny.txt.pt")
    assert cached.words == WORDS
    np.testing.assert_array_equal(cached.matrix, read.matrix)
    first = torchtext_vocab.Vectors(str(glove), cache=str(tmp_path / "cache"), max_vectors=2)
    assert read_vectors(first).words == WORDS[:2]
    assert read_vectors(tmp_path / "cache" / "tiny.txt_2.pt").words == WORDS[:2]


@pytest.mark.torchtext
@pytest.mark.parametrize("save", [torch.save, lambda v, path: path.write_bytes(pickle.dumps(v))])
def test_a_real_vocabulary_and_its_file(torchtext_vocab, tmp_path, save):
    counts = collections.OrderedDict(zip(WORDS, (4, 3, 2, 1), strict=True))
    real = torchtext_vocab.vocab(counts, min_freq=2, specials=["<unk>", "<pad>"])
    real.set_default_index(0)
    expected = ["<unk>", "<pad>", *WORDS[:3]]
    assert real.get_itos() == expected
    assert read_torchtext_vocab(real) == expected
    with pytest.raises(VectorsError, match="words and no vectors"):
        read_vectors(real)
    save(real, tmp_path / "vocab.pt")
    assert read_torchtext_vocab(tmp_path / "vocab.pt") == expected


@pytest.mark.torchtext
def test_the_kept_files_are_what_torchtext_writes(torchtext_vocab, tmp_path):
    """Files that are not there are put there: remove them to have them made again."""
    glove, fresh = tmp_path / "invented.txt", tmp_path / "torchtext"
    lines = (
        f"{word} {' '.join(str(float(x)) for x in row)}\n"
        for word, row in zip(INVENTED, TABLE, strict=True)
    )
    glove.write_text("".join(lines), encoding="utf-8")
    for most in (None, 3):
        torchtext_vocab.Vectors(str(glove), cache=str(fresh), max_vectors=most)
    counts = collections.OrderedDict((word, 9 - i) for i, word in enumerate(INVENTED[1:]))
    vocab = torchtext_vocab.vocab(counts, min_freq=7, specials=["<unk>", "<pad>"])
    vocab.set_default_index(0)
    torch.save(vocab, fresh / "vocab.pt")
    (fresh / "vocab.pkl").write_bytes(pickle.dumps(vocab))
    if not KEPT.exists():
        shutil.copytree(fresh, KEPT)
    assert sorted(p.name for p in KEPT.iterdir()) == sorted(p.name for p in fresh.iterdir())
    for path in fresh.glob("*.txt*.pt"):
        ours, theirs = read_vectors(path), read_vectors(KEPT / path.name)
        assert ours.words == theirs.words
        np.testing.assert_array_equal(ours.matrix, theirs.matrix)
    for path in fresh.glob("vocab.*"):
        assert read_torchtext_vocab(path) == read_torchtext_vocab(KEPT / path.name)
