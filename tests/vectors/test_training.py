"""Vectors trained on the spot: reproducible, complete, composed as gensim's are."""

import logging
import subprocess
import sys

import numpy as np
import pytest

from superconext.core.errors import ConfigError, MissingExtraError, VectorsError
from superconext.vectors import training
from superconext.vectors.table import WordVectors
from superconext.vectors.training import train_vectors

gensim_models = pytest.importorskip("gensim.models")
SENTENCES = [
    ["hada", "film", "zwin", "bzaf"],
    ["هاد", "الفيلم", "زوين", "بزاف"],
    ["film", "khayb", "bzaf"],
] * 10
SMALL = {"dimension": 12, "buckets": 300, "epochs": 3}


@pytest.mark.parametrize("method", ["fasttext", "word2vec"])
def test_the_same_seed_gives_the_same_bits(method):
    one, two = (train_vectors(SENTENCES, method=method, seed=3, **SMALL) for _ in range(2))
    other = train_vectors(SENTENCES, method=method, seed=4, **SMALL)
    assert one.words == two.words
    assert one.matrix.tobytes() == two.matrix.tobytes()
    assert one.sha256 == two.sha256 != other.sha256
    if method == "fasttext":
        assert one.subwords.buckets.tobytes() == two.subwords.buckets.tobytes()
    assert one.matrix.tobytes() != other.matrix.tobytes()


def test_the_same_bits_whatever_the_hash_seed():
    code = (
        "from superconext.vectors.training import train_vectors;"
        "print(train_vectors([['a','bb','c']]*30, dimension=4, buckets=50, epochs=1).sha256)"
    )
    hashes = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path), "OMP_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(hashes) == 1


@pytest.fixture
def trained(monkeypatch):
    """Vectors, and gensim's own of the same training."""
    made = []
    real = training._gensim_model

    def spy(method):
        def build(**settings):
            made.append(real(method)(**settings))
            return made[-1]

        return build

    monkeypatch.setattr(training, "_gensim_model", spy)
    return train_vectors(SENTENCES, **SMALL), made[0].wv


def gensim_buckets(keyed, word):
    from gensim.models.fasttext import ft_ngram_hashes

    return ft_ngram_hashes(word, keyed.min_n, keyed.max_n, keyed.bucket)


def test_words_are_composed_as_gensim_does(trained):
    vectors, keyed = trained
    assert vectors.words == keyed.index_to_key
    # An n-gram that gensim only ever gave a random start counts as zeros.
    seen = {bucket for word in keyed.index_to_key for bucket in gensim_buckets(keyed, word)}
    unseen = ["zwina", "الزوينة", "x", "filmmm", "Bzaf3"]
    for word in unseen:
        rows = [
            keyed.vectors_ngrams[bucket] if bucket in seen else np.zeros(12)
            for bucket in gensim_buckets(keyed, word)
        ]
        expected = np.mean(rows, axis=0, dtype=np.float64)
        np.testing.assert_allclose(vectors.subwords.compose_many([word])[0][0], expected, atol=1e-6)
    assert vectors.lookup(unseen)[1].all()
    # A word of the table: the mean of its own vector and those of its n-grams.
    for row, word in enumerate(vectors.words):
        grams = [keyed.vectors_ngrams[i] for i in vectors.subwords.hashes(word)]
        mean = np.mean([keyed.vectors_vocab[row], *grams], axis=0, dtype=np.float64)
        np.testing.assert_allclose(vectors.lookup([word])[0][0], mean, atol=1e-6)


def test_n_grams_of_no_trained_word_are_zeros(trained):
    vectors, keyed = trained
    seen = {bucket for word in keyed.index_to_key for bucket in gensim_buckets(keyed, word)}
    filled = np.flatnonzero(vectors.subwords.buckets.any(axis=1))
    assert set(filled.tolist()) == seen and len(seen) < 300
    np.testing.assert_array_equal(vectors.subwords.buckets[filled], keyed.vectors_ngrams[filled])


def test_shapes_types_and_order():
    vectors = train_vectors(SENTENCES, **SMALL)
    assert isinstance(vectors, WordVectors)
    assert vectors.matrix.shape == (9, 12)
    assert vectors.matrix.dtype == vectors.subwords.buckets.dtype == np.float32
    assert vectors.subwords.buckets.shape == (300, 12)
    assert set(vectors.words[:2]) == {"film", "bzaf"}
    assert train_vectors(SENTENCES, method="word2vec", **SMALL).subwords is None


def test_words_that_share_contexts_come_close():
    rng = np.random.default_rng(0)
    groups = [[f"{letter}{i}" for i in range(6)] for letter in "pq"]
    lists = [list(rng.choice(groups[i % 2], size=8)) for i in range(400)]
    vectors = train_vectors(lists, method="word2vec", dimension=16, epochs=10, window=3)
    nearest = [word for word, _ in vectors.nearest("p0", 5)]
    assert all(word.startswith("p") for word in nearest)


def test_a_tiny_corpus_keeps_every_word_and_says_so():
    vectors = train_vectors([["one", "two"], ["three"]], min_count=5, **SMALL)
    assert sorted(vectors.words) == ["one", "three", "two"]
    assert "only 3 tokens" in vectors.notes[0]
    assert train_vectors([["alone"]], **SMALL).words == ["alone"]


def test_a_larger_corpus_leaves_rare_words_out():
    lists = [["common", "words"]] * 3000 + [["rare"]]
    vectors = train_vectors(lists, min_count=2, dimension=4, buckets=50, epochs=1)
    assert sorted(vectors.words) == ["common", "words"]
    assert vectors.notes == []
    with pytest.raises(VectorsError, match="9000 times"):
        train_vectors(lists, min_count=9000, **SMALL)


@pytest.mark.parametrize("lists", [[], [[]], [[], []]])
def test_no_token_is_an_error(lists):
    with pytest.raises(VectorsError, match="0 tokens"):
        train_vectors(lists, **SMALL)


def test_a_generator_and_an_object_read_anew_give_the_same():
    class Again:
        passes = 0

        def __iter__(self):
            self.passes += 1
            yield from SENTENCES

    again = Again()
    expected = train_vectors(SENTENCES, **SMALL).sha256
    assert train_vectors(again, **SMALL).sha256 == expected
    assert again.passes == SMALL["epochs"] + 1
    assert train_vectors(iter(SENTENCES), **SMALL).sha256 == expected
    assert train_vectors((tuple(s) for s in SENTENCES), **SMALL).sha256 == expected


def test_a_very_long_sentence_is_not_cut():
    tokens = ["a"] * 10_000 + ["late", "words"] * 50
    late = train_vectors([tokens], method="word2vec", dimension=4, epochs=1, min_count=1)
    untouched = gensim_models.Word2Vec(vector_size=4, min_count=1, seed=0, sg=1, workers=1)
    untouched.build_vocab_from_freq({"a": 10_000, "late": 50, "words": 50})
    assert (late.lookup(["late"])[0][0] != untouched.wv["late"]).any()


def test_progress_climbs_to_one():
    seen = []
    train_vectors(SENTENCES, progress=seen.append, **SMALL)
    assert seen == sorted(seen) and seen[0] == 0 and seen[-1] == 1 and len(seen) > 4


def test_an_error_in_the_callback_or_in_a_later_pass_reaches_the_caller():
    def stop(fraction):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_vectors(SENTENCES, progress=stop, **SMALL)

    class Breaks:
        passes = 0

        def __iter__(self):
            self.passes += 1
            yield from SENTENCES
            if self.passes == 2:
                raise OSError("the disk is gone")

    with pytest.raises(OSError, match="disk"):
        train_vectors(Breaks(), **SMALL)


def test_bad_tokens_are_named():
    with pytest.raises(VectorsError, match="sentence 2 is the string"):
        train_vectors([["fine"], "not tokens"], **SMALL)
    with pytest.raises(VectorsError, match="a token is 7"):
        train_vectors([["fine", 7]], **SMALL)


@pytest.mark.parametrize(
    "wrong",
    [
        {"method": "glove"},
        {"dimension": 0},
        {"epochs": 0},
        {"window": -1},
        {"workers": 0},
        {"negative": 0},
        {"min_n": 5, "max_n": 4},
        {"min_n": 0},
        {"buckets": 0},
    ],
)
def test_impossible_settings(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        train_vectors(SENTENCES, **wrong)
    if "min_n" in wrong:  # so that the same words are refused whatever the method
        with pytest.raises(ConfigError, match="min_n"):
            train_vectors(SENTENCES, method="word2vec", **wrong)


def test_without_gensim_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gensim.models", None)
    with pytest.raises(
        MissingExtraError, match=r"needs gensim, .* pip install 'superconext\[train"
    ):
        train_vectors(SENTENCES)


def test_importing_the_room_does_not_import_gensim_or_torch():
    code = (
        "import sys, superconext.vectors.readers, superconext.vectors.training;"
        "print([m for m in ('gensim', 'torch') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


def test_gensim_says_nothing_and_its_logger_is_left_as_it_was(caplog):
    logger = logging.getLogger("gensim")
    before = logger.level
    train_vectors(SENTENCES, **SMALL)
    assert logger.level == before
    assert not [record for record in caplog.records if record.name.startswith("gensim")]
