"""Training in blocks: the right gradient, good vectors, the same bits again, safe stops."""

import sys

import numpy as np
import pytest

from superconext.vectors import training
from superconext.vectors.table import WordVectors
from superconext.vectors.training import cached_vectors, train_vectors

gensim_models = pytest.importorskip("gensim.models")
LISTS = [["zwin", "bzaf", "had"], ["khayb", "bzaf", "had", "chi"], ["zwin", "chi"]] * 40
SMALL = {"dimension": 12, "buckets": 300, "epochs": 4, "min_count": 1}


def model_of(lists, method="fasttext"):
    kind, more = gensim_models.Word2Vec, {}
    if method == "fasttext":
        kind, more = gensim_models.FastText, {"bucket": 50, "min_n": 2, "max_n": 4}
    model = kind(sg=1, vector_size=7, window=3, negative=5, min_count=1, seed=1, **more)
    model.build_vocab(lists)
    model.syn1neg[:] = np.random.default_rng(0).standard_normal(model.syn1neg.shape)
    return model


def sigmoid(score):
    return 1 / (1 + np.exp(-score))


def learned(model, word, sentence, rate, seed):
    """Words', n-grams' and output vectors after one block, pair by pair in float64."""
    keyed, draw = model.wv, np.random.default_rng(seed)
    reach = draw.integers(1, model.window + 1, len(word))
    picks = draw.integers(0, model.cum_table[-1], training._SHARED)
    others = np.searchsorted(model.cum_table, np.sort(picks))
    old = {name: array.astype(np.float64) for name, array in training._arrays(model).items()}
    new = {name: array.copy() for name, array in old.items()}

    def step(centre, other, target, weight):
        grams = keyed.buckets_word[word[centre]] if "ngrams" in old else []
        rows = [old["words"][word[centre]], *(old["ngrams"][gram] for gram in grams)]
        hidden = np.mean(rows, axis=0)
        size = rate * weight * (target - sigmoid(hidden @ old["output"][other]))
        new["output"][other] += size * hidden
        new["words"][word[centre]] += size * old["output"][other]
        for gram in grams:
            new["ngrams"][gram] += size * old["output"][other]

    for i in range(len(word)):
        for j in range(len(word)):
            if i != j and sentence[i] == sentence[j] and abs(i - j) <= reach[i]:
                step(i, word[j], 1, 1)
                for other in others:
                    if other != word[j]:
                        step(i, other, 0, model.negative / len(others))
    return new


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("method", ["fasttext", "word2vec"])
def test_a_block_is_learned_as_its_pairs_are_one_by_one(monkeypatch, method, public):
    if public:  # as where scipy lacks the routine that is used
        monkeypatch.setitem(sys.modules, "scipy.sparse._sparsetools", None)
    model = model_of(LISTS, method)
    blocks = training._Blocks(model)
    blocks.block = 9
    word = np.array([0, 1, 2, 1, 4, 3, 0, 2, 1], np.int32)
    sentence = np.array([0, 0, 0, 0, 1, 1, 1, 1, 2])
    expected = learned(model, word, sentence, 0.3, seed=5)
    blocks.learn(word, sentence, 0.3, np.random.default_rng(5))
    blocks.store()
    for name, array in training._arrays(model).items():
        assert np.abs(array - expected[name]).max() < 1e-5, name


def test_several_blocks_see_the_words_beyond_their_ends():
    one, two = model_of(LISTS), model_of(LISTS)
    word, sentence = np.array([0, 1, 2, 1, 4, 3], np.int32), np.zeros(6, np.int64)
    for model, size in ((one, 6), (two, 2)):
        blocks = training._Blocks(model)
        blocks.block = size
        # So small a step that it hardly matters which block is first; no counter-examples.
        model.negative = 0
        blocks.learn(word, sentence, 1e-3, np.random.default_rng(3))
        blocks.store()
    moved = np.abs(one.wv.vectors_vocab - model_of(LISTS).wv.vectors_vocab).max()
    assert np.abs(one.wv.vectors_vocab - two.wv.vectors_vocab).max() < moved / 20


@pytest.mark.parametrize("method", ["fasttext", "word2vec"])
def test_words_that_share_contexts_come_close(method):
    rng = np.random.default_rng(0)
    groups = [[f"{letter}{i}" for i in range(6)] for letter in "pq"]
    lists = [list(rng.choice(groups[i % 2], size=8)) for i in range(400)]
    vectors = train_vectors(lists, method=method, dimension=16, epochs=10, window=3, buckets=500)
    assert all(word.startswith("p") for word, _ in vectors.nearest("p0", 5))


@pytest.mark.parametrize("lists", [[["one"] * 50] * 20, [["one", "two"] * 30] * 20, [["alone"]]])
def test_texts_of_hardly_any_word_do_not_run_away(lists):
    rows = train_vectors(lists, dimension=8, buckets=50, epochs=100).matrix
    assert np.isfinite(rows).all() and np.abs(rows).max() < 10


@pytest.mark.parametrize("method", ["fasttext", "word2vec"])
def test_the_same_seed_gives_the_same_bits_and_a_folder_that_is_read(tmp_path, method):
    one, two = (train_vectors(LISTS, method=method, seed=3, **SMALL) for _ in range(2))
    assert one.sha256 == two.sha256
    assert one.sha256 != train_vectors(LISTS, method=method, seed=4, **SMALL).sha256
    one.save(tmp_path / "made")
    assert WordVectors.load(tmp_path / "made", verify=True).sha256 == one.sha256
    if method == "fasttext":
        composed = one.subwords.compose_many(one.words)[0]
        assert np.isfinite(composed).all() and one.lookup(["zwina"])[1].all()


@pytest.mark.parametrize("passes", [1, 3])
def test_what_was_stopped_ends_with_the_same_bits(tmp_path, monkeypatch, passes):
    monkeypatch.setattr(training, "SAVED_EVERY", 0.0)

    def stop(done):
        if done == passes / 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="repeat the command to resume"):
        cached_vectors(LISTS, cache_dir=tmp_path, progress=stop, **SMALL)
    seen = []
    again = cached_vectors(LISTS, cache_dir=tmp_path, progress=seen.append, **SMALL)
    assert again.sha256 == train_vectors(LISTS, **SMALL).sha256
    assert sorted(set(seen)) == [done / 4 for done in range(passes, 5)]


def test_threads_share_the_text():
    read = []

    class Lists:
        def __iter__(self):
            read.append(len(read))
            yield from LISTS * 100

    vectors = train_vectors(Lists(), workers=3, **{**SMALL, "epochs": 2})
    assert len(read) == 3 and np.isfinite(vectors.matrix).all()
    assert len(vectors.words) == 5


def test_each_pass_draws_anew(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        training._Blocks,
        "learn",
        lambda blocks, word, sentence, rate, draw: drawn.append(draw.random()),
    )
    train_vectors([["zwin", "bzaf", "lfilm"]] * 20, epochs=3, dimension=4)
    assert len(drawn) == len(set(drawn)) == 3
