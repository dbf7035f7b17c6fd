"""Two labelled sets as one: nothing lost, copies once, disagreements listed."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from superconext.data.dataset import Dataset
from superconext.data.labels import merge
from superconext.data.reading import read_labelled
from tests.cli.conftest import blame, call_main, write_table

OLD = [("pos", "zwin bzaf"), ("neg", "khayb"), ("pos", "zwin bzaf"), ("neg", "ghali\tbzaf")]
NEW = [("neg", "zwin bzaf"), ("neg", "khayb"), ("pos", "mzyan"), ("neg", "ghali bzaf")]


def data_set(pairs):
    return Dataset([text for _, text in pairs], [label for label, _ in pairs])


def test_copies_once_conflicts_listed_and_kept():
    merged = merge(data_set(OLD), data_set(NEW))
    assert merged.rows == [*OLD[:2], OLD[3], NEW[0], NEW[2]]
    assert merged.repeated == 3 and merged.replaced == 0
    places = {"pos": ["old:1", "old:3"], "neg": ["new:1"]}
    assert merged.conflicts == [{"text": "zwin bzaf", "labels": places}]


def test_one_of_the_sets_decides():
    assert merge(data_set(OLD), data_set(NEW), "old").rows == [*OLD[:2], OLD[3], NEW[2]]
    newer = merge(data_set(OLD), data_set(NEW), "new")
    assert newer.rows == [OLD[1], OLD[3], NEW[0], NEW[2]]
    assert newer.replaced == 2 and len(newer.conflicts) == 1


def test_a_conflict_inside_one_set_is_kept_whoever_decides():
    torn = [("pos", "x"), ("neg", "x")]
    for keep in ("old", "new", "both"):
        for pair in ((torn, NEW), (NEW, torn)):
            rows = merge(*map(data_set, pair), keep=keep).rows
            assert {("pos", "x"), ("neg", "x")} <= set(rows)


ROWS = st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("uvwxyz")), max_size=12)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ROWS, ROWS, st.sampled_from(["both", "old", "new"]))
def test_nothing_is_lost(old, new, keep):
    merged = merge(data_set(old), data_set(new), keep)
    assert len(set(merged.rows)) == len(merged.rows)
    assert {text for _, text in merged.rows} == {text for _, text in old + new}
    if keep == "both":
        assert set(merged.rows) == set(old + new)
    deciding = {"old": old, "new": new}.get(keep, [])
    assert set(deciding) <= set(merged.rows)
    assert len(merged.rows) + merged.repeated + merged.replaced == len(old + new)
    labels = {}
    for label, text in old + new:
        labels.setdefault(text, set()).add(label)
    torn = {text for text in labels if len(labels[text]) > 1}
    assert {conflict["text"] for conflict in merged.conflicts} == torn


def test_the_command_writes_one_file_and_tells_the_conflicts(tmp_path):
    for name, pairs in (("old", OLD[:3]), ("new", NEW)):
        lines = ["label\ttext", *(f"{label}\t{text}" for label, text in pairs)]
        (tmp_path / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    files = tmp_path / "old.tsv", tmp_path / "new.tsv"
    out = tmp_path / "all.csv"
    said = call_main("data", "merge", *files, "--keep", "new", "--out", out, "--json")
    assert said.code == 0 and "'zwin bzaf' is 'pos' (old:2, old:4) and 'neg' (new:2)" in said.err
    document = json.loads(said.out)
    assert len(document["rows"]) == 4 and document["replaced"] == 2 and document["repeated"] == 1
    rows = read_labelled(out)
    merged = list(zip(rows.labels, rows.texts, strict=True))
    assert merged == [OLD[1], NEW[0], NEW[2], NEW[3]]
    with files[1].open("a", encoding="utf-8") as stream:
        stream.write("\tnobody could tell\n")
    said = call_main("data", "merge", *files, "--drop-unlabelled")
    assert said.code == 0 and "1 row without a label left out" in said.err
    assert "--drop-incomplete" in blame(call_main("data", "merge", *files))
    assert "1 row without a label" in call_main("audit", files[1], "--drop-unlabelled").err
    files = files[:1] * 2
    assert call_main("data", "merge", *files).out.splitlines()[0] == "label\ttext"
    assert "exists already" in blame(call_main("data", "merge", *files, "--out", out))


def write(path, pairs, header="label\ttext"):
    lines = [header, *(f"{label}\t{text}" for label, text in pairs)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def labelled(*classes, rows=12):
    """Rows of these classes in turn, whose texts are those of no other call of other classes."""
    return [(classes[n % len(classes)], f"had lfilm {classes[0]} {n}") for n in range(rows)]


def test_labels_of_the_new_file_are_spelt_as_the_old_ones(tmp_path):
    old = write(tmp_path / "old.tsv", [("pos", "zwin"), ("neg", "khayb"), ("pos", "mzyan")])
    rows = [("Pos", "zwin"), ("NEG", "khayb"), ("Pos", "jdid"), ("Mixed", "ma3rft")]
    new = write(tmp_path / "new.tsv", rows)
    out = tmp_path / "all.tsv"
    said = call_main("data", "merge", old, new, "--out", out)
    assert said.code == 0 and "warning" not in said.err and "--fold-label-case" not in said.err
    put = f"note: {new}: 3 labels put in the spelling of {old} ('Pos' to 'pos', 'NEG' to 'neg')"
    assert put in said.err and "5 rows; left out 2 repeated and 0 replaced; 0 conf" in said.err
    merged = read_labelled(out)
    assert merged.labels == ["pos", "neg", "pos", "pos", "Mixed"]
    said = call_main("data", "merge", old, new, "--no-fold-label-case")
    assert "conflict: 'zwin' is 'pos' (old:2) and 'Pos' (new:2)" in said.err
    # An old file that has both spellings says nothing of which is right, but the option does.
    both = write(tmp_path / "both.tsv", [("pos", "zwin"), ("Pos", "mzyan")])
    assert "put in the spelling" not in call_main("data", "merge", both, new).err
    said = call_main("data", "merge", both, new, "--fold-label-case", "--json")
    labels = {row["text"]: row["label"] for row in json.loads(said.out)["rows"]}
    assert [labels[text] for text in ("zwin", "mzyan", "khayb")] == ["pos", "pos", "neg"]


def test_labels_that_differ_in_case_are_warned_of(tmp_path):
    old = write(tmp_path / "old.tsv", labelled("positif", "negatif"))
    new = write(tmp_path / "new.tsv", labelled("Positif", "negatif"))
    flag = "--no-fold-label-case"
    said = call_main("data", "merge", old, new, flag, "--out", tmp_path / "all.tsv")
    assert said.code == 0
    assert "warning: found classes that differ in case" in said.err
    assert "'positif' (6 rows) and 'Positif' (6 rows): train makes them one with" in said.err
    command = said.err.partition("next: superconext ")[2].split()
    assert "--fold-label-case" in command
    command[command.index("RUN")] = tmp_path / "run"
    assert call_main(*command, "--preset", "fast", "--cv", 0, "--epochs", 1).code == 0
    said = call_main("data", "merge", old, old, "--out", tmp_path / "same.tsv")
    assert "warning" not in said.err and "--fold-label-case" not in said.err


def test_files_that_share_no_class_are_warned_of(tmp_path):
    old = write(tmp_path / "old.tsv", labelled("positif", "negatif"))
    new = write(tmp_path / "new.tsv", labelled("positive", "negative"))
    said = call_main("data", "merge", old, new)
    told = f"'negatif', 'positif' in {old}; 'negative', 'positive' in {new}"
    assert said.code == 0 and f"warning: the files share no class: {told}" in said.err
    more = write(tmp_path / "more.tsv", labelled("neutre"))
    assert "share no class" not in call_main("data", "merge", old, more).err


@pytest.mark.parametrize("rows", [6, 30])
@pytest.mark.parametrize("place", [0, 1])
def test_columns_in_each_others_place_are_refused(tmp_path, rows, place):
    good = write(tmp_path / "old.tsv", labelled("positif", "negatif"))
    swapped = write(tmp_path / "new.tsv", labelled("bon", "nul", rows=rows), "text\tlabel")
    files = [good, good]
    files[place] = swapped
    line = blame(call_main("data", "merge", *files, "--out", tmp_path / "all.tsv"))
    assert f"{swapped}: found {rows} different labels" in line
    assert "--text-column and --label-column name " in line
    assert not (tmp_path / "all.tsv").exists()


def test_copies_are_known_whatever_marks_case_and_form_they_have(tmp_path):
    old = [("pos", "déjà zwin"), ("neg", "khayb bzaf"), ("pos", "mzyan had chi"), ("neg", "machi")]
    new = [
        ("pos", unicodedata.normalize("NFD", "déjà zwin")),
        ("neg", "\u200fkhayb \u200bbzaf"),
        ("neg", "Mzyan had  chi"),
        ("pos", "chi jdid"),
    ]
    files = [write_table(tmp_path / f"{k}.tsv", part) for k, part in enumerate((old, new))]
    said = call_main("data", "merge", *files)
    assert said.code == 0
    assert said.out.splitlines()[1:] == [f"{a}\t{b}" for a, b in [*old, *new[2:]]]
    assert "conflict: 'mzyan had chi' is 'pos' (old:4) and 'neg' (new:4)" in said.err
    assert "6 rows; left out 2 repeated and 0 replaced; 1 conflict" in said.err
    assert call_main("data", "merge", *files, "--keep", "old").out.count("zyan had") == 1
