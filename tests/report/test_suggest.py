"""`superconext suggest`: uncertain sentences, unlike each other, in the form a tool imports."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import superconext
from superconext.core.errors import DataError
from superconext.data.dataset import Texts
from superconext.data.reading import read_labelled
from superconext.report.suggest import UNCERTAIN, interface, select, suggest
from superconext.text.characters import script_of
from tests.cli.conftest import blame, call_main, rows

UNLABELLED = "data/sample/unlabelled.txt"


def pool(texts):
    return Texts(list(texts), list(range(1, len(texts) + 1)), "pool.txt", [])


@pytest.fixture(scope="module")
def texts():
    return [text for _, text in rows(150, seed=11)]


@pytest.fixture(scope="module")
def model(finished):
    return superconext.load(finished.folder).model_


def test_select_takes_uncertain_rows_one_of_each_group():
    """Four tight groups; in each the rows are equally uncertain, the rest are certain."""
    draw = np.random.default_rng(0)
    centres = np.array([[0, 0], [9, 0], [0, 9], [9, 9]])
    vectors = np.concatenate([centre + draw.normal(0, 0.1, (10, 2)) for centre in centres])
    vectors = np.concatenate([vectors, draw.normal(40, 5, (60, 2))])
    certain = np.concatenate([np.full(40, 0.55), np.full(60, 0.99)])
    chosen = select(np.column_stack([certain, 1 - certain]), vectors, 4)
    assert sorted(row // 10 for row in chosen) == [0, 1, 2, 3]


def test_select_gives_as_many_as_asked_for_even_of_equal_vectors():
    shares = np.full((30, 2), 0.5)
    assert len(set(select(shares, np.zeros((30, 3)), 7).tolist())) == 7
    assert len(select(shares, np.zeros((30, 3)), 50)) == 30
    assert len(select(np.full((0, 2), 0.5), np.zeros((0, 3)), 5)) == 0


def test_suggestions_are_among_the_least_certain_and_sorted(model, texts):
    found = suggest(model, pool(texts), 5)
    shares = np.sort(model.probabilities(list(dict.fromkeys(texts))), axis=1)
    limit = np.sort(shares[:, -1] - shares[:, -2])[UNCERTAIN * 5]
    assert len(found) == 5
    assert all(2 * one.certainty - 1 <= limit + 1e-3 for one in found)
    assert [one.certainty for one in found] == sorted(one.certainty for one in found)
    for one in found:
        assert texts[one.line - 1] == one.text
        assert model.predict([one.text]) == [one.prediction]
    assert found == suggest(model, pool(texts), 5)


def test_blank_texts_are_not_suggested(model, texts):
    (chosen,) = suggest(model, pool(["", "  ", texts[0]]), 1)
    assert chosen.text == texts[0] and chosen.line == 3
    with pytest.raises(DataError, match="no text that is still unlabelled"):
        suggest(model, pool(["", " "]), 1)


def test_near_duplicates_once_and_no_labelled_text(model, texts):
    text = "had lfilm dyal lbare7 kan momtaz bzaf ou l9issa zwina"
    copies = [text, text.upper(), text + " !", *texts[:3]]
    found = [one.text for one in suggest(model, pool(copies), 50)]
    assert found.count(text) == 1 and len(found) == 1 + len({*map(str.lower, texts[:3])})
    found = [one.text for one in suggest(model, pool(copies), 50, labelled=[text + "!!"])]
    assert all("momtaz bzaf ou" not in one.lower() for one in found)
    with pytest.raises(DataError, match="no text that is still unlabelled"):
        suggest(model, pool(copies[:3]), 50, labelled=[text])


@pytest.mark.parametrize("balance", ["class", "script"])
def test_balance_gives_equal_numbers_and_fills_up(sample_run, balance):
    lines = Path(UNLABELLED).read_text(encoding="utf-8").splitlines()[:400]
    found = suggest(sample_run.model_, pool(lines), 12, balance=balance)
    kinds = Counter(script_of(o.text) if balance == "script" else o.prediction for o in found)
    assert len(found) == 12 and max(kinds.values()) - min(kinds.values()) <= 1
    assert len(suggest(sample_run.model_, pool(lines), 1, balance=balance)) == 1
    arabic = [line for line in lines if script_of(line) == "Arabic"][:60]
    few = [line for line in lines if script_of(line) == "Latin"][:2]
    found = suggest(sample_run.model_, pool(arabic + few), 10, balance="script")
    assert Counter(script_of(one.text) for one in found) == {"Arabic": 8, "Latin": 2}


def test_the_estimator_suggests_too(finished, texts):
    found = superconext.load(finished.folder).suggest(texts, 3)
    assert len(found) == 3 and all(texts[one.line - 1] == one.text for one in found)


# The command


@pytest.fixture
def given(finished, texts, tmp_path):
    path = tmp_path / "pool.txt"
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return finished.folder, path, "-n", 4


def test_tsv_to_fill_in_that_train_reads(given, tmp_path):
    said = call_main("suggest", *given)
    table = [line.split("\t") for line in said.out.splitlines()]
    assert said.code == 0 and table[0] == ["label", "text", "line", "prediction", "certainty"]
    assert len(table) == 5 and all(row[0] == "" for row in table[1:])
    filled = tmp_path / "filled.tsv"
    filled.write_text(
        "\n".join(["\t".join(table[0]), *("\t".join(["pos", *row[1:]]) for row in table[1:])])
    )
    assert read_labelled(filled).texts == [row[1] for row in table[1:]]
    blind = call_main("suggest", *given, "--blind").out.splitlines()
    assert blind[0] == "label\ttext\tline"
    assert [line.split("\t")[1] for line in blind] == [row[1] for row in table]


def test_leave_out_and_json(given, tmp_path):
    first = json.loads(call_main("suggest", *given, "--json").out)
    done = tmp_path / "done.tsv"
    lines = ["label\ttext", *(f"pos\t{row['text']}" for row in first)]
    done.write_text("\n".join(lines) + "\n", encoding="utf-8")
    second = json.loads(call_main("suggest", *given, "--json", "--leave-out", done).out)
    assert len(second) == 4 and not {r["text"] for r in first} & {r["text"] for r in second}


def test_what_the_tools_import_is_read_back_once_it_is_annotated(given, tmp_path):
    plain = json.loads(call_main("suggest", *given, "--json").out)
    said = call_main("suggest", *given, "--for", "label-studio")
    tasks = json.loads(said.out)
    assert interface(["neg", "pos"]) in said.err
    for task, row in zip(tasks, plain, strict=True):
        assert task["data"] == {"text": row["text"], "line": row["line"]}
        (prediction,) = task["predictions"]
        assert prediction["score"] == row["certainty"]
        # What Label Studio exports: the annotator has confirmed what was predicted.
        task["annotations"] = [{"result": prediction["result"], "was_cancelled": False}]
    export = tmp_path / "export.json"
    export.write_text(json.dumps(tasks, ensure_ascii=False), encoding="utf-8")
    rows_back = read_labelled(export)
    assert rows_back.texts == [row["text"] for row in plain]
    assert rows_back.labels == [row["prediction"] for row in plain]
    said = call_main("suggest", *given, "--for", "doccano")
    export = tmp_path / "all.jsonl"
    export.write_text(said.out, encoding="utf-8")
    assert read_labelled(export).labels == rows_back.labels
    both = call_main("suggest", *given, "--for", "label-studio", "--json")
    assert both.code == 2 and "--for label-studio says what is written" in both.err
    blind = call_main("suggest", *given, "--for", "doccano", "--blind").out.splitlines()
    assert all(json.loads(line)["label"] == [] for line in blind)
    blind = call_main("suggest", *given, "--for", "label-studio", "--blind").out
    assert "predictions" not in blind
    table = list(csv.DictReader(io.StringIO(call_main("suggest", *given, "--for", "csv").out)))
    assert [row["text"] for row in table] == [row["text"] for row in plain]


def test_names_of_classes_are_escaped_in_the_interface():
    from xml.etree import ElementTree

    names = ['a<b&"', "ا'b", "c"]
    choices = ElementTree.fromstring(interface(names)).iter("Choice")
    assert [choice.get("value") for choice in choices] == names


def test_what_cannot_be_done_is_one_line(given, tmp_path):
    assert "exists already" in blame(call_main("suggest", *given, "--out", given[1]))
    assert "no such" in blame(call_main("suggest", given[0], tmp_path / "no.txt")).lower()
    assert call_main("suggest", *given, "--balance", "colour").code == 2


def test_rows_that_have_a_label_are_not_suggested(finished, tmp_path):
    path = tmp_path / "some.csv"
    rows = ["hadi zwina bzaf,neg", "khayb had lfilm,", "mosalsal aadi,NaN", "walo walo walo,pos"]
    path.write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    said = call_main("suggest", finished.folder, path, "--json")
    assert said.code == 0, said.err
    found = {row["text"] for row in json.loads(said.out)}
    assert found == {"khayb had lfilm", "mosalsal aadi"}
    assert "2 labelled texts left out" in said.err
    path.write_text("text,label\nhadi zwina bzaf,neg\n", encoding="utf-8")
    assert "no text that is still unlabelled" in call_main("suggest", finished.folder, path).err


def test_the_file_that_is_read_is_not_written(finished, tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("text\nhadi zwina bzaf\n", encoding="utf-8")
    for words in (
        ("suggest", finished.folder, path),
        ("predict", finished.folder, path),
        ("audit", path),
    ):
        said = call_main(*words, "--out", path, "--force")
        assert said.code == 1 and "is a file that is read; expected another" in said.err
    assert path.read_text(encoding="utf-8") == "text\nhadi zwina bzaf\n"


def test_a_file_in_place_of_a_text_is_told(finished, tmp_path):
    path = tmp_path / "some.csv"
    path.write_text("text\nhadi zwina bzaf\n", encoding="utf-8")
    said = call_main("explain", finished.folder, path)
    assert said.code == 2 and f"as a TEXT; expected --file {path}" in said.err


def test_select_takes_the_text_nearest_to_where_the_uncertainty_is():
    # Of six rows the three least certain are grouped: one at 0 that is not certain at all, and two
    # that nearly are. Weighted by their uncertainty their centre is near 0, by none at 0.5.
    margins = np.array([0.0, 0.9, 0.9, 0.95, 0.95, 0.95])
    shares = np.column_stack([(1 + margins) / 2, (1 - margins) / 2])
    vectors = np.array([[0.0], [0.5], [1.0], [0.6], [0.6], [0.6]])
    assert select(shares, vectors, 1).tolist() == [0]


def test_select_leaves_the_more_certain_half_alone():
    # Of the twelve rows the six most certain make a group of their own, far away.
    margins = np.concatenate([np.full(6, 0.2), np.full(6, 0.6)])
    shares = np.column_stack([(1 + margins) / 2, (1 - margins) / 2])
    draw = np.random.default_rng(0)
    vectors = np.concatenate([draw.normal(0, 1, (6, 2)), draw.normal(50, 1, (6, 2))])
    for count in (1, 2, 3):
        assert max(select(shares, vectors, count)) < 6


def test_select_takes_the_row_whose_two_likeliest_classes_are_nearest():
    shares = np.array([[0.4, 0.3, 0.3], [0.45, 0.44, 0.11]])
    assert select(shares, np.zeros((2, 3)), 1).tolist() == [1]


def test_select_takes_of_a_wide_group_one_of_its_own():
    # Two rows, on either side of a centre to which one row of the other group is nearer.
    uncertain = np.array([[0, 5.7], [0, -5.7], [5.4, 0], *[[10, 0]] * 17])
    vectors = np.concatenate([uncertain, np.full((20, 2), 99)])
    certain = np.repeat([0.6, 0.9], 20)
    chosen = select(np.column_stack([certain, 1 - certain]), vectors, 2)
    assert sorted(row < 2 for row in chosen.tolist()) == [False, True]


class Ensemble:
    """A model whose probe is sure of everything, and whose n-grams beside it of "known" alone."""

    classes = ("neg", "pos")

    class probe:
        @staticmethod
        def probabilities(vectors):
            return np.tile([0.99, 0.01], (len(vectors), 1))

    def features(self, texts):
        return np.array([[float(len(text)), text.count("a")] for text in texts])

    def combined(self, texts, probabilities):
        shares = np.array([0.99 if "known" in text else 0.4 for text in texts])
        return np.column_stack([shares, 1 - shares])


def test_what_is_uncertain_is_what_the_whole_model_predicts():
    texts = [f"{word} number {k} {chr(97 + k) * 9}" for k in range(8) for word in ("known", "odd")]
    found = suggest(Ensemble(), Texts(texts, list(range(1, 17)), "pool.txt", []), 3)
    assert len(found) == 3 and all(one.text.startswith("odd") for one in found)
    assert {(one.prediction, one.certainty) for one in found} == {("pos", 0.6)}


def test_the_seed_is_that_of_the_groups_too(monkeypatch):
    seeds = []

    def first(shares, vectors, count, seed=0):
        seeds.append(seed)
        return np.arange(count)

    monkeypatch.setattr("superconext.report.suggest.select", first)
    suggest(Ensemble(), pool([f"odd number {k} {chr(97 + k) * 9}" for k in range(8)]), 2, seed=7)
    assert seeds == [7]


def test_of_many_texts_some_are_drawn_at_random(monkeypatch):
    monkeypatch.setattr("superconext.report.suggest.POOL", 12)
    draw = np.random.default_rng(0)
    texts = [
        " ".join("".join(draw.choice([*"abdhklmnrsz"], 7)) for _ in range(4)) for _ in range(40)
    ]
    lines, told = [], []
    for seed in (1, 1, 2):
        found = suggest(Ensemble(), pool(texts), 12, seed=seed, tell=told.append)
        lines.append(sorted(one.line for one in found))
        assert len(found) == 12 and all(texts[one.line - 1] == one.text for one in found)
    assert lines[0] == lines[1] != lines[2] and lines[0][-1] > 20
    assert told == [f"12 of {len(texts)} texts, drawn at random, are considered"] * 3
    told.clear()
    assert len(suggest(Ensemble(), pool(texts[:12]), 3, tell=told.append)) == 3 and not told


class Unsure(Ensemble):
    def combined(self, texts, probabilities):
        shares = np.array([0.5 + len(text) / 1234 for text in texts])
        return np.column_stack([shares, 1 - shares])


def test_the_certainty_is_told_to_four_places():
    texts = ["zwin", "khayb bzaf"]
    found = suggest(Unsure(), pool(texts), 2)
    assert [one.certainty for one in found] == [0.5032, 0.5081]


def test_classes_are_balanced_by_what_the_whole_model_predicts():
    texts = [f"{word} number {chr(97 + k) * 9}" for k in range(8) for word in ("known", "odd")]
    found = suggest(Ensemble(), pool(texts), 6, balance="class")
    assert Counter(one.prediction for one in found) == {"neg": 3, "pos": 3}


def test_the_groups_of_each_class_are_made_of_its_own_vectors(monkeypatch):
    given = []

    def first(shares, vectors, count, seed=0):
        given.append((shares[:, 0].tolist(), vectors[:, 0].tolist()))
        return np.arange(count)

    monkeypatch.setattr("superconext.report.suggest.select", first)
    texts = [f"{word} number {chr(97 + k) * 9}" for k in range(3) for word in ("known", "odd")]
    suggest(Ensemble(), pool(texts), 4, balance="class")
    known, odd = (float(len(f"{word} number {'a' * 9}")) for word in ("known", "odd"))
    assert sorted(given) == [([0.4] * 3, [odd] * 3), ([0.99] * 3, [known] * 3)]


def test_another_seed_groups_otherwise():
    draw = np.random.default_rng(0)
    shares, vectors = np.full((60, 2), 0.5), draw.normal(size=(60, 4))
    chosen = [set(select(shares, vectors, 5, seed).tolist()) for seed in (1, 1, 2, 3)]
    assert chosen[0] == chosen[1] and not chosen[0] == chosen[2] == chosen[3]


def test_labelled_texts_are_known_in_another_case_and_with_another_mention():
    texts = pool(["film zwin bzaf @ali", "khayb"])
    (found,) = suggest(Ensemble(), texts, 2, labelled=["FILM ZWIN BZAF @omar"])
    assert found.text == "khayb"
