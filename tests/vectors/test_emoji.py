"""Emoji scores of mean word vectors: from the sentences to the probe that reads them."""

import json
import random

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from superconext.baselines.baseline import fit_baseline
from superconext.config.parameters import resolve
from superconext.core.errors import VectorsError
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.encoders import encoder_class
from superconext.fitting.controls import prepare_run_text
from superconext.fitting.cross_validation import VECTORS, CrossValidation, frozen
from superconext.fitting.fit import fit_model
from superconext.probe import logistic_regression
from superconext.vectors import emoji, training
from superconext.vectors.emoji import rows_of_lists, scores_of
from superconext.vectors.readers import read_vectors
from superconext.vectors.table import WordVectors
from superconext.vectors.training import cached_vectors, emoji_scores, train_vectors

QUICK = {"dimension": 6, "epochs": 30, "buckets": 500}
FACES = {"😂": ("zwin", "hlu"), "😭": ("khayb", "hamd"), "": ("film", "match")}


def told(count=300, seed=0):
    """Two in three sentences hold words and an emoji that go together."""
    draw = random.Random(seed)
    lines = []
    for k in range(count):
        face = list(FACES)[k % 3]
        lines.append([*draw.choices("abcdef", k=3), *draw.choices(FACES[face], k=2)])
        lines[-1] += [face] * bool(face)
    return lines


@pytest.fixture(scope="module")
def trained():
    return train_vectors(told(), **QUICK)


def test_sentences_with_emoji_are_kept_without_them():
    lines = told(450)
    rows, words = rows_of_lists(lines, FACES, 0)
    assert sorted(rows.names) == sorted(face for face in FACES if face)
    expected = [(line[:-1], line[-1]) for line in lines if line[-1] in ("😂", "😭")]
    assert len(rows.labels) == len(expected) == 300
    for k, (tokens, face) in enumerate(expected):
        found = rows.store.take(np.array([k]))[0]
        assert [words[token] for token in found] == tokens
        assert rows.names[rows.labels[k]] == face


def test_emoji_that_are_always_beside_others_are_left_out_alone():
    crowd = ["🎉", "🔥", "💯", "🙏", "✨", "💔"]
    lines = [*told(450), *[["a", "b", *crowd]] * 10]
    rows, _ = rows_of_lists(lines, [*FACES, *crowd], 0)
    drawn = set(rows.names)
    assert {"😂", "😭"} < drawn < {"😂", "😭", *crowd}, "ten sentences cannot draw all six"
    assert sorted(set(rows.labels)) == [*range(len(rows.names))]
    assert [rows.names[k] for k in rows.labels[:2]] == [lines[0][-1], lines[1][-1]]


def test_as_many_sentences_as_are_asked_for_are_enough():
    lines = told(150)  # 100 sentences
    assert len(rows_of_lists(lines, FACES, 0)[0].labels) == 100
    assert rows_of_lists(lines[:-3], FACES, 0) is None
    rare = [*[["a", "b", "😂"]] * 90, *[["c", "d", "😭"]] * 10]
    assert rows_of_lists(rare, FACES, 0)[0].names == ["😂", "😭"]
    assert rows_of_lists([*rare[:-1], rare[0]], FACES, 0) is None


def test_a_tone_of_skin_makes_no_other_emoji_and_alone_none():
    thumbs = [["c", "d", "👍" + tone] for tone in ("", "\U0001f3fb", "\U0001f3ff")] * 40
    known = [*FACES, *(line[-1] for line in thumbs)]
    assert rows_of_lists([*told(150), *thumbs], known, 0)[0].names[0] == "👍"
    assert len(rows_of_lists([*told(150), *thumbs], known, 0)[0].names) == 3
    lines = [*told(450), *[["a", "b", "\U0001f3fd"]] * 200]
    rows, _ = rows_of_lists(lines, [*FACES, "\U0001f3fd"], 0)
    assert sorted(rows.names) == ["😂", "😭"] and len(rows.labels) == 300


@pytest.mark.parametrize(
    "lines",
    [
        [["film", "zwin"]] * 300,
        told(120),  # 80 sentences
        [["a", "b", "😂"]] * 300,  # one emoji alone
        [["a", "😂"], ["b", "😭"]] * 300,  # one word each
        [*[["a", "b", "😂"]] * 300, *[["c", "d", "😭"]] * 9],
    ],
    ids=["none", "few", "one", "alone", "rare"],
)
def test_text_without_emoji_enough_has_no_scores(lines):
    assert rows_of_lists(lines, ["😂", "😭", "a"], 0) is None
    assert train_vectors(lines, **QUICK).emoji_scores is None


def test_scores_are_a_regression_on_mean_vectors_at_unit_length(trained):
    rows, words = rows_of_lists(told(), trained.words, 0)
    means = []
    for k in range(len(rows.labels)):
        tokens = [words[t] for t in rows.store.take(np.array([k]))[0]]
        mean = np.mean([trained.matrix[trained.words.index(t)] for t in tokens], axis=0)
        means.append(mean / np.sqrt((mean.astype(float) ** 2).sum()))
    means = np.array(means, dtype=np.float64)
    expected = LogisticRegression(C=1.0, max_iter=2000, tol=1e-8).fit(means, rows.labels).coef_[0]
    found = trained.emoji_scores
    assert found.shape == (1, 6) and found.dtype == np.float32
    cosine = found[0] @ expected / np.linalg.norm(found[0]) / np.linalg.norm(expected)
    assert cosine > 0.999
    scores = means @ found[0].astype(float)
    assert scores.var() == pytest.approx(means.var(axis=0).sum(), rel=1e-3)
    right = (scores > np.median(scores)) == (rows.labels == 1)
    assert right.mean() > 0.7, "half of them by chance"


def test_scores_of_several_emoji_are_centred_and_of_the_size_asked_for():
    draw = np.random.default_rng(0)
    labels = np.arange(300) % 4
    vectors = draw.standard_normal((300, 5)) + 2 * draw.standard_normal((4, 5))[labels]
    scores = scores_of(vectors, labels, 0.5)
    assert scores.shape == (4, 5)
    assert np.abs(scores.sum(axis=0)).max() < 1e-5
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    spread = (unit @ scores.T).var(axis=0).sum()
    assert spread == pytest.approx(unit.var(axis=0).sum() / 4, rel=1e-3)


def test_the_same_text_has_the_same_scores_and_no_more_sentences_than_are_read(
    trained, monkeypatch
):
    again = train_vectors(told(), **QUICK)
    assert np.array_equal(again.emoji_scores, trained.emoji_scores)
    assert again.sha256 == trained.sha256
    monkeypatch.setattr(emoji, "MOST_SCORED", 110)
    rows, _ = rows_of_lists(told(), trained.words, 0)
    assert len(rows.labels) == 110 and len(rows.store) == 110
    monkeypatch.setattr(emoji, "_MOST_READ", 105)
    assert len(rows_of_lists(told(), trained.words, 0)[0].labels) == 105


def test_a_folder_keeps_them(trained, tmp_path):
    trained.save(tmp_path / "v")
    whole = read_vectors(tmp_path / "v")
    some = read_vectors(tmp_path / "v", keep={"zwin"}, limit=2)
    for one in (whole, some, WordVectors.load(tmp_path / "v", verify=True), some.restrict(["a"])):
        assert np.array_equal(one.emoji_scores, trained.emoji_scores)
        assert one.emoji_scores.flags["C_CONTIGUOUS"] and one.emoji_scores.flags["WRITEABLE"]
    plain = train_vectors([["film", "zwin"]] * 40, **QUICK)
    plain.save(tmp_path / "v")
    assert read_vectors(tmp_path / "v").emoji_scores is None
    assert not (tmp_path / "v" / "emoji_scores.npy").exists()


def test_a_folder_of_before_has_none(trained, tmp_path):
    trained.emoji_scores, kept = None, trained.emoji_scores
    trained.save(tmp_path / "v")
    trained.emoji_scores = kept
    path = tmp_path / "v" / "info.json"
    info = json.loads(path.read_text())
    del info["emoji"]
    path.write_text(json.dumps(info))
    assert WordVectors.load(tmp_path / "v", verify=True).emoji_scores is None


@pytest.mark.parametrize("damage", ["gone", "cut", "rows", "nan", "flipped"])
def test_damaged_scores_are_a_clear_error(trained, tmp_path, damage):
    trained.save(tmp_path / "v")
    path = tmp_path / "v" / "emoji_scores.npy"
    data, scores = bytearray(path.read_bytes()), np.load(path)
    path.unlink()
    if damage == "cut":
        path.write_bytes(data[:-4])
    elif damage == "rows":
        np.save(path, np.vstack([scores, scores]))
    elif damage == "nan":
        np.save(path, scores * np.float32("nan"))
    elif damage == "flipped":
        data[-2] ^= 1
        path.write_bytes(data)
        WordVectors.load(tmp_path / "v")
    with pytest.raises(VectorsError, match="not a readable folder"):
        WordVectors.load(tmp_path / "v", verify=True)


def test_the_cache_keeps_them(trained, tmp_path):
    for _ in range(2):
        found = cached_vectors(told(), cache_dir=tmp_path, **QUICK)
        assert np.array_equal(found.emoji_scores, trained.emoji_scores)


@pytest.fixture
def text(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "text.txt"
    path.write_text("".join(" ".join(line) + "\n" for line in told(600, 1)), encoding="utf-8")
    return path


def asked(monkeypatch):
    """What fits of probes are given to stand beside the vectors."""
    given, fit = [], logistic_regression._with_c
    monkeypatch.setattr(
        logistic_regression, "_with_c", lambda *args: given.append(args[-1]) or fit(*args)
    )
    return given


ROWS = Dataset([f"{w} film {n}" for n in "abcdef" for w in ("zwin", "hamd")], ["pos", "neg"] * 6)


def test_they_stand_beside_mean_word_vectors_in_a_run_a_control_and_folds(text, monkeypatch):
    base = {"unlabelled": str(text), "vector_dimension": 6, "preset": "fast"}
    config = resolve(base)
    run = prepare_run_text(ROWS, None, [], config)
    scores = run.indexer.emoji_scores
    assert scores.shape == (1, 6)
    assert run.indexer.facts["vectors"]["emoji_scores"] == 1
    given = asked(monkeypatch)
    mean = frozen(config, VECTORS)
    fit_model(ROWS, mean)
    assert len(given) == 1 and np.array_equal(given[0], scores)

    fit_baseline("vectors_logreg", (ROWS.texts, ROWS.labels), None, run=run)
    assert len(given) == 2 and np.array_equal(given[1], scores)
    fit_baseline("plain_vectors_logreg", (ROWS.texts, ROWS.labels), None, run=run)
    assert len(given) == 3 and given[2] is None

    assert encoder_class("mean").emoji_scores(mean, run.indexer) is scores
    assert encoder_class("bilstm").emoji_scores(config, run.indexer) is None
    tuned = resolve({**base, "encoder": "mean", "subwords": True, "epochs": 1})
    fit_model(ROWS, tuned)
    assert given[-1] is None, "these vectors were changed by training"

    folds = CrossValidation(ROWS, config, 3, Progress())
    beside = []
    monkeypatch.setattr(
        "superconext.fitting.cross_validation.along_c",
        lambda *args: beside.append(args[-1]) or (lambda c: np.full((len(args[2]), 2), 0.5)),
    )
    folds.add([VECTORS])
    assert beside and all(np.array_equal(one, scores) for one in beside)


def test_vectors_that_were_given_keep_theirs(text, tmp_path):
    folder = tmp_path / "own"
    given = train_vectors(told(600, 1), **QUICK)
    given.save(folder)
    config = resolve({"vectors": str(folder), "vector_dimension": 6, "preset": "fast"})
    run = prepare_run_text(ROWS, None, [], config)
    assert np.array_equal(run.indexer.emoji_scores, given.emoji_scores)
    assert np.array_equal(emoji_scores(told(600, 1), given), given.emoji_scores)
    document, arrays = run.indexer.to_saved()
    assert "emoji" not in json.dumps(sorted(arrays)) and "emoji_scores" not in document


def test_which_of_several_emoji_is_learned_follows_from_the_seed():
    lines = [[*line, *("😂", "😭") * (k % 4 == 0)] for k, line in enumerate(told())]
    made = train_vectors(lines, **{**QUICK, "epochs": 2}, seed=3)
    assert np.array_equal(made.emoji_scores, emoji_scores(lines, made, 3))
    assert not np.array_equal(made.emoji_scores, emoji_scores(lines, made, 0))


def test_words_without_a_vector_count_as_the_mean_of_the_others():
    lines, draw = told(), np.random.default_rng(0)
    words = sorted({word for line in lines for word in line} - {"film", "match"})
    matrix = draw.normal(1, 1, (len(words), 6)).astype(np.float32)
    lacking = [row for row, word in enumerate(words) if word in ("a", "zwin")]
    kept = np.setdiff1d(np.arange(len(words)), lacking)
    few = WordVectors([words[row] for row in kept], matrix[kept])
    matrix[lacking] = matrix[kept].mean(axis=0)
    expected = emoji_scores(lines, WordVectors(words, matrix))
    np.testing.assert_allclose(emoji_scores(lines, few), expected, atol=1e-4)


def test_the_rate_falls_in_a_line_within_a_pass_too(monkeypatch):
    rates = []
    monkeypatch.setattr(training, "_CHUNK", 50)
    monkeypatch.setattr(training._Blocks, "learn", lambda self, w, s, rate, d: rates.append(rate))
    lists = [["zwin", "bzaf", "had", "chi", "khayb"]] * 40  # 200 words: 4 times 50
    train_vectors(lists, dimension=4, buckets=50, epochs=2)
    expected = 0.025 - (0.025 - 0.0001) * np.arange(8) / 8
    assert rates == pytest.approx(expected.tolist())
