"""Agreement of annotators against its definition in loops, and through the command line."""

from __future__ import annotations

import json
import random

import pytest
from sklearn.metrics import f1_score

from superconext.core.errors import DataError
from superconext.data.file_format import Votes
from superconext.data.labels import Annotated, krippendorff_alpha, pairwise_f1
from superconext.data.reading import read_labelled
from tests.cli.conftest import blame, call_main


def alpha_of(votes):
    """Disagreement of pairs within texts over that of pairs among all labels in such texts."""
    texts = [[v for v in given if v] for given in votes]
    texts = [given for given in texts if len(given) > 1]
    every = [label for given in texts for label in given]
    observed = 0.0
    for given in texts:
        pairs = [(a, b) for i, a in enumerate(given) for j, b in enumerate(given) if i != j]
        observed += sum(a != b for a, b in pairs) / (len(given) - 1)
    pairs = [(a, b) for i, a in enumerate(every) for j, b in enumerate(every) if i != j]
    expected = sum(a != b for a, b in pairs) / len(pairs)
    return 1 - (observed / len(every)) / expected


@pytest.mark.parametrize("seed", range(4))
def test_alpha_and_f1_are_their_definitions(seed):
    draw = random.Random(seed)
    votes = [[draw.choice(["a", "a", "b", "c", ""]) for _ in range(4)] for _ in range(20)]
    assert krippendorff_alpha(votes) == pytest.approx(alpha_of(votes))
    annotated = Annotated([""] * 20, votes, list("wxyz"))
    for one, other, count, score in pairwise_f1(annotated):
        both = [(g["wxyz".index(one)], g["wxyz".index(other)]) for g in votes]
        both = [pair for pair in both if all(pair)]
        assert count == len(both)
        assert score == pytest.approx(f1_score(*zip(*both, strict=True), average="macro"))


def test_alpha_at_its_ends():
    assert krippendorff_alpha([["a", "a"], ["b", "b"]]) == 1
    assert krippendorff_alpha([["a", "b"], ["b", "a"]]) < 0
    assert krippendorff_alpha([["a", "a"]]) != krippendorff_alpha([["a", "a"]])  # nan


WIDE = "tweet,annotator_1,annotator_2,annotator3\nun a,p,p,n\nun b,p,n,\nun c,n,n,n\nun d,,,\n"
LABELLED = "label\ttext\np\tun a\nn\tun c\n"
LONG = "text\tannotator\tlabel\nun a\tx\tp\nun b\tx\tp\nun a\ty\tp\nun a\tz\tn\nun b\ty\tn\n"


def test_both_forms_through_the_command_line(tmp_path):
    (tmp_path / "wide.csv").write_text(WIDE, encoding="utf-8")
    (tmp_path / "long.tsv").write_text(
        LONG + "un c\tx\tn\nun c\ty\tn\nun c\tz\tn\n", encoding="utf-8"
    )
    reports = []
    for name in ("wide.csv", "long.tsv"):
        out = tmp_path / f"{name}.out{name[-4:]}"
        said = call_main("data", "agreement", tmp_path / name, "--out", out, "--json")
        assert said.code == 0, said.err
        reports.append(json.loads(said.out))
        lines = {"wide.csv": "label,tweet\np,un a\nn,un c\n", "long.tsv": LABELLED}
        assert out.read_text(encoding="utf-8-sig") == lines[name]
        assert reports[-1]["ties"] == ["un b"]
    assert reports[0]["alpha"] == reports[1]["alpha"]
    said = call_main("data", "agreement", tmp_path / "wide.csv")
    assert "alpha" in said.out and "tie: p, n: un b" in said.err


def test_of_two_labels_that_one_annotator_gave_a_text_the_later_counts():
    votes = [Votes([pair]) for pair in (("x", "p"), ("x", "n"), ("y", "p"), ("x", "p"), ("x", "n"))]
    texts = ["un a", "un b", "un a", "un b", "un a"]
    found = Annotated.of(texts, votes, [2, 3, 4, 5, 6], by_text=True)
    assert (found.texts, found.annotators, found.lines) == (["un a", "un b"], ["x", "y"], [2, 3])
    assert found.votes == [["n", "p"], ["p", ""]] and found.replaced == 2
    assert found.labels == [None, "p"] and found.tied() == [("un a", {"n": 0.5, "p": 0.5})]


def test_rows_of_one_text_are_as_many_texts_where_each_row_has_all_labels(tmp_path):
    (tmp_path / "wide.csv").write_text(WIDE + "un a,n,n,n\n", encoding="utf-8")
    found = read_labelled(tmp_path / "wide.csv")
    pairs = zip(found.texts, found.labels, strict=True)
    assert list(pairs) == [("un a", "p"), ("un c", "n"), ("un a", "n")]


def test_a_share_is_one_of_all_labels_that_a_text_was_given():
    found = Annotated(["un a", "un b"], [["p", "n", "p"], ["", "n", "n"]], ["x", "y", "z"])
    assert found.shares([0, 1]) == [{"n": 1 / 3, "p": 2 / 3}, {"n": 1.0}]


@pytest.mark.parametrize("rows", [9, 10])
def test_columns_of_classes_are_refused_from_ten_rows_on(rows):
    votes = [[str(int(k % 3 == place)) for place in range(3)] for k in range(rows)]
    found = Annotated([f"un {k}" for k in range(rows)], votes, ["hate", "insult", "vulgar"])
    if rows == 10:
        with pytest.raises(DataError, match="they are classes, not annotators' labels"):
            found.refuse_class_columns("x.csv")
        return
    found.refuse_class_columns("x.csv")
    assert "have 0 and 1 alone: if they are classes" in found.doubts[0]


def test_zeros_and_ones_of_columns_named_as_annotators_are_labels():
    votes = [[str(int(k % 3 == place)) for place in range(3)] for k in range(12)]
    found = Annotated([f"un {k}" for k in range(12)], votes, ["annotator_1", "annotator_2", "x"])
    found.refuse_class_columns("x.csv")
    assert found.doubts == [] and found.labels == ["0"] * 12


def test_tables_without_annotators(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\na,b\n", encoding="utf-8")
    assert "no columns of annotators" in blame(call_main("data", "agreement", tmp_path / "a.csv"))
    (tmp_path / "b.csv").write_text(WIDE + "x,y\n", encoding="utf-8")
    assert "line 6" in blame(call_main("data", "agreement", tmp_path / "b.csv"))


def test_what_is_odd_about_the_votes_is_told(tmp_path):
    lines = ["t one\ta\tnan", "t two\tb\tB", "t three\ta\ta", "t four\tb\tb", "t five\t\t"]
    file = tmp_path / "votes.tsv"
    file.write_text("\n".join(["text\tannotator_1\tannotator_2", *lines]) + "\n", "utf-8")
    said = call_main("data", "agreement", file)
    assert said.code == 0
    assert "the label 'nan'" in said.err and "'B'" in said.err
    assert "that nobody labelled left out" in said.err
