"""`superconext explain`: the words that a run's answer stands on."""

from __future__ import annotations

import json

import numpy as np
import pytest

import superconext
from superconext.data.reading import read_labelled
from superconext.report.explain import explain, nearest
from tests.cli.conftest import BAD, GOOD, blame, call_main, rows, write_table


class Counts:
    """A model whose log-odds are known: one for each good word, minus one for each bad one."""

    classes = ("neg", "pos")

    def probabilities(self, texts):
        odds = np.array(
            [sum((w in GOOD) - (w in BAD) for w in text.split()) for text in texts], dtype=float
        )
        positive = 1 / (1 + np.exp(-odds))
        return np.column_stack([1 - positive, positive])


def test_contributions_are_the_log_odds_lost():
    text = f"had {GOOD[1]} bzaf {GOOD[2]} ou {BAD[1]}"
    (found,) = explain(Counts(), [text])
    assert found.label == "pos" and found.probability == pytest.approx(1 / (1 + np.exp(-1)))
    assert [word for word, _ in found.words] == text.split()
    assert [value for _, value in found.words] == pytest.approx([0, 1, 0, 1, 0, -1], abs=1e-9)
    assert [text[a:b] for a, b in found.spans] == text.split()


def test_characters_of_scripts_without_spaces_count_as_words():
    (found,) = explain(Counts(), ["好電影 zwin"])
    assert [word for word, _ in found.words] == ["好", "電", "影", "zwin"]


def test_the_only_word_of_a_text_is_compared_with_what_is_answered_to_none(finished):
    model = superconext.load(finished.folder)
    for word in ("zwin", "khayb", "bzaf"):
        label, share = model.predict([word])[0], model.predict_proba([word]).max()
        assert np.allclose(model.predict_proba([""]), 1 / len(model.classes_))
        (found,) = explain(model.model_, [word])
        expected = np.log(share / (1 - share)) + np.log(len(model.classes_) - 1)
        assert found.label == label and found.words == [(word, pytest.approx(expected, abs=1e-4))]


def test_many_texts_are_explained_as_one_by_one(finished):
    model = superconext.load(finished.folder).model_
    texts = [*read_labelled(finished.data.test).texts, "zwin", "!!", "كولشي ديما مزيان"] * 3
    together = explain(model, texts)
    assert [one.text for one in together] == texts
    for one in (0, 5, 13, 14):
        (alone,) = explain(model, [texts[one]])
        assert alone.label == together[one].label
        pairs = zip(alone.words, together[one].words, strict=True)
        assert all(a == b and x == pytest.approx(y, abs=1e-4) for (a, x), (b, y) in pairs)


def test_removing_the_top_words_changes_the_answer_more_than_removing_others(sample_run):
    """Faithfulness: two words with the largest contributions against two at random."""
    model = sample_run.model_
    texts = read_labelled("data/sample/test.tsv").texts
    texts = [text for text in texts if len(text.split()) >= 4]
    draw = np.random.default_rng(0)

    def lost(one, removed):
        kept = [word for at, (word, _) in enumerate(one.words) if at not in removed]
        column = model.classes.index(one.label)
        return one.probability - model.probabilities([" ".join(kept)])[0, column]

    top, others = [], []
    for one in explain(model, texts):
        order = np.argsort([-value for _, value in one.words])
        top.append(lost(one, set(order[:2].tolist())))
        others.append(lost(one, set(draw.permutation(len(order))[:2].tolist())))
    assert len(texts) > 50 and np.mean(top) > 1.5 * np.mean(others) > 0
    assert np.mean(np.array(top) >= np.array(others) - 1e-9) > 0.8


def test_nearest_agrees_with_a_plain_loop():
    draw = np.random.default_rng(0)
    some, others = draw.normal(size=(7, 4)), draw.normal(size=(9, 4))
    places, cosines = nearest(some, others, 3)
    for i, x in enumerate(some):
        similar = [x @ y / np.linalg.norm(x) / np.linalg.norm(y) for y in others]
        expected = sorted(range(9), key=lambda j: -similar[j])[:3]
        assert places[i].tolist() == expected
        np.testing.assert_allclose(cosines[i], [similar[j] for j in expected], atol=1e-6)
    assert nearest(some, others[:2], 3)[0].shape == (7, 2)
    assert np.isfinite(nearest(np.zeros((2, 4)), np.full((3, 4), np.nan), 3)[1]).all()


def test_the_estimator_explains_too(finished):
    text = read_labelled(finished.data.test).texts[0]
    (found,) = superconext.load(finished.folder).explain([text])
    assert found.label == superconext.load(finished.folder).predict([text])[0]


@pytest.fixture(scope="module", params=["encoder", "encoder+tfidf"])
def short(request, tmp_path_factory):
    """A run that reads no more than four tokens of a text."""
    folder = tmp_path_factory.mktemp("short") / "run"
    texts, labels = zip(*((text, label) for label, text in rows(60, seed=3)), strict=True)
    given = {"vector_method": "random", "epochs": 3, "hidden_size": 4, "vector_dimension": 8}
    given |= {"max_length": 4, "probe_features": request.param}
    superconext.SuperConTextClassifier(**given).fit(texts, labels).save(folder)
    return folder


def test_words_that_the_run_does_not_read_do_not_move_into_what_it_reads(short):
    run = superconext.load(short)
    head, rest = "had lfilm bzaf zwin", "khayb 7amd khayb"
    with pytest.warns(UserWarning, match="reads only the first 4 tokens of a text"):
        (found,) = run.explain([f"{head} {rest}"])
    (alone,) = run.explain([head])
    whole = run.predict_proba([f"{head} {rest}"]).max()
    assert found.probability == pytest.approx(whole, abs=1e-6)
    if run.model_.ensemble is None:
        assert found.spans == alone.spans
        pairs = zip(found.words, alone.words, strict=True)
        assert all(a == b and x == pytest.approx(y, abs=1e-5) for (a, x), (b, y) in pairs)
    else:  # n-grams read the rest, and the encoder none of it
        assert [word for word, _ in found.words] == [*head.split(), *rest.split()]
        features = run.model_.features([head.replace(" bzaf", ""), head])
        whole = [f"{head.replace(' bzaf', '')} {rest}", f"{head} {rest.removeprefix('khayb')}"]
        shares = run.model_.combined(whole, run.model_.probe.probabilities(features))
        column = run.model_.classes.index(found.label)
        odds = [np.log(p / (1 - p)) for p in (found.probability, *shares[:, column])]
        values = [value for _, value in found.words]
        assert [values[2], values[4]] == pytest.approx(
            [odds[0] - odds[1], odds[0] - odds[2]], abs=1e-5
        )


def test_a_page_shows_long_texts_too(short, tmp_path):
    file = write_table(tmp_path / "rows.tsv", [("pos", "had lfilm bzaf zwin khayb"), *rows(9, 4)])
    page = tmp_path / "page.html"
    said = call_main("report", short, file, "--out", page)
    assert said.code == 0 and page.stat().st_size > 1000, said.err


def test_the_commands_warn_of_what_the_run_does_not_read(short, tmp_path):
    file = tmp_path / "rows.txt"
    file.write_text("zwin bzaf\n\nhad lfilm bzaf zwin khayb\n", encoding="utf-8")
    told = "the run reads only the first 4 tokens of a text (--max-length of train), and 1 of "
    for words, lead in (
        (("predict", short, file), f"warning: {file}: {told}2 texts is longer"),
        (("explain", short, "--file", file), f"warning: {file}: {told}2 texts is longer"),
        (("explain", short, "a b c d e"), f"warning: {told}1 text is longer"),
        (
            ("embed", short, file, "--out", tmp_path / "v.npy"),
            f"warning: {file}: {told}2 texts is longer",
        ),
    ):
        said = call_main(*words)
        assert said.code == 0 and lead in said.err.splitlines(), said.err


# The command


def test_a_row_for_each_word_and_json_and_a_file(finished):
    text = read_labelled(finished.data.test).texts[0]
    said = call_main("explain", finished.folder, text)
    lines = [line.split("\t") for line in said.out.splitlines()]
    assert said.code == 0 and lines[0] == [
        "sentence",
        "label",
        "probability",
        "word",
        "contribution",
    ]
    assert [line[3] for line in lines[1:]] == text.split()
    words = ("explain", finished.folder, "--file", finished.data.test, "--json")
    document = json.loads(call_main(*words, "--train", finished.data.train).out)
    assert len(document) == 12 and len(document[0]["nearest"]) == 3
    assert [row["word"] for row in document[0]["words"]] == text.split()
    assert "nearest" not in json.loads(call_main(*words).out)[0]
    said = call_main(*words[:-1], "--train", finished.data.train)
    assert said.code == 0 and "no place for the nearest sentences: add --json" in said.err


def test_sentences_are_numbered_as_the_rows_of_the_file(finished, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("id,text\n1,zwin\n2,\n3,khayb bzaf\n", encoding="utf-8")
    said = call_main("explain", finished.folder, "--file", file)
    rows = [line.split("\t") for line in said.out.splitlines()[1:]]
    assert [(row[0], row[3]) for row in rows] == [("1", "zwin"), ("3", "khayb"), ("3", "bzaf")]
    assert f"note: {file}: 1 row without a text, left out" in said.err
    said = call_main("explain", finished.folder, "--file", file, "--json")
    assert [one["sentence"] for one in json.loads(said.out)] == [1, 3]
    file.write_text("id,text\n1,\n2,\n", encoding="utf-8")
    said = call_main("explain", finished.folder, "--file", file)
    told = f"error: {file}: found no row with a text, expected some: check the column"
    assert said.code == 1 and told in said.err.splitlines()


def test_a_terminal_gets_coloured_words_and_numbers(capsys):
    from superconext.cli.labelling import _show_words

    (found,) = explain(Counts(), [f"had {GOOD[1]} {BAD[1]} {GOOD[2]}"])
    _show_words(found)
    shown = capsys.readouterr().out
    assert f"{GOOD[1]} +1.00" in shown and f"{BAD[1]} -1.00" in shown


def test_wrong_usage_is_said(finished, tmp_path):
    assert call_main("explain", finished.folder).code == 2
    assert call_main("explain", finished.folder, "x", "--file", finished.data.test).code == 2
    assert call_main("explain", finished.folder, "  ").code == 2
    blame(call_main("explain", tmp_path / "none", "x"))


@pytest.mark.parametrize(
    ("name", "value", "coloured"),
    [("TERM", "xterm", True), ("TERM", "dumb", False), ("NO_COLOR", "1", False)],
)
def test_colours_are_left_out_where_they_are_not_wanted(monkeypatch, name, value, coloured):
    import click

    from superconext.cli.labelling import _show_words

    monkeypatch.setattr(click, "echo", (shown := []).append)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    _show_words(explain(Counts(), [f"{GOOD[1]} {BAD[1]}"])[0])
    assert ("\x1b[" in shown[0]) == coloured


def test_words_of_a_command_are_utf8_in_any_locale(finished):
    text = "فيلم zwin"
    bytes_taken_apart = text.encode().decode("ascii", "surrogateescape")
    expected = call_main("explain", finished.folder, text)
    assert expected.code == 0 and expected == call_main(
        "explain", finished.folder, bytes_taken_apart
    )
    said = call_main("explain", finished.folder, "tr\udce9s")
    assert said.code == 2 and "expected TEXTs in UTF-8" in said.err


def test_each_text_of_many_is_explained_for_the_label_asked_of_it(monkeypatch):
    monkeypatch.setattr("superconext.report.explain._AT_ONCE", 8)
    texts = [f"had {word} {k}" for k, word in enumerate([*GOOD, *BAD])]
    labels = [("neg", "pos", None)[k % 3] for k in range(12)]
    found = explain(Counts(), texts, labels)
    assert [one.text for one in found] == texts
    for one, label in zip(found, labels, strict=True):
        good = one.text.split()[1] in GOOD
        assert one.label == (label or ("pos" if good else "neg"))
        sign = 1 if (one.label == "pos") == good else -1
        assert one.words[1][1] == pytest.approx(sign) and one.words[0][1] == pytest.approx(0)
        assert one.probability == pytest.approx(1 / (1 + np.exp(-sign)))


def test_an_answer_that_is_quite_sure_has_finite_contributions():
    class Sure(Counts):
        def probabilities(self, texts):
            return np.array([[0.0, 1.0] if "zwin" in text else [1.0, 0.0] for text in texts])

    (found,) = explain(Sure(), ["had zwin"])
    (same, other) = (value for _, value in found.words)
    assert same == 0 and 20 < other < 100


def test_nearest_of_many_rows_are_those_of_few():
    draw = np.random.default_rng(0)
    some, others = draw.normal(size=(2100, 3)), draw.normal(size=(20, 3))
    places, cosines = nearest(some, others, 2)
    assert places.shape == cosines.shape == (2100, 2)
    for row in (0, 1023, 1024, 2047, 2048, 2099):
        alone = nearest(some[row : row + 1], others, 2)
        assert places[row].tolist() == alone[0][0].tolist()
        np.testing.assert_allclose(cosines[row], alone[1][0], atol=1e-6)
