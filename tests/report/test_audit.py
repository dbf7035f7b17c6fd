"""`superconext audit`: wrong labels come first, each with what it may be and why."""

from __future__ import annotations

import csv
import json
import random
import re
import shutil
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from superconext.core.errors import DataError
from superconext.data.dataset import Dataset
from superconext.data.reading import read_labelled
from superconext.report.audit import (
    CONTRADICTED,
    audit,
    likely_wrong,
    misspelt_labels,
    suspicions,
    too_few,
    unseen_probabilities,
)
from tests.cli.conftest import blame, call_main, rows

HEADINGS = ["label", "text", "line", "suggested", "suspicion", "why"]


def data_set(pairs):
    return Dataset([text for _, text in pairs], [label for label, _ in pairs])


@pytest.fixture(scope="module")
def noisy():
    """120 rows of two classes, every twelfth with the wrong label; and which these are."""
    pairs = rows(120, seed=7)
    wrong = set(range(0, 120, 12))
    other = {"pos": "neg", "neg": "pos"}
    return [(other[a] if i in wrong else a, b) for i, (a, b) in enumerate(pairs)], wrong


@pytest.fixture
def file(noisy, tmp_path):
    path = tmp_path / "noisy.tsv"
    lines = ["label\ttext", *(f"{label}\t{text}" for label, text in noisy[0])]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_flipped_labels_come_first_with_the_right_label_and_a_reason(noisy):
    pairs, wrong = noisy
    found = audit(data_set(pairs))
    first = found.ranked[: len(wrong)]
    assert len({suspect.row for suspect in first} & wrong) >= 0.8 * len(wrong)
    for suspect in first:
        assert {suspect.label, suspect.suggested} == {"pos", "neg"} and suspect.why
    assert sorted(suspect.row for suspect in found.ranked) == list(range(120))
    scores = [suspect.suspicion for suspect in found.ranked]
    assert scores == sorted(scores, reverse=True) and scores[-1] < 0 < scores[0]
    assert found.summary["suspects"] == len(found.suspects) < 60
    assert found.summary["scripts"]["Latin"]["pos"] > 0


def test_the_same_rows_give_the_same_audit(noisy):
    shares = []
    sources = ["z"] * 70 + ["a"] * 50
    once = audit(data_set(noisy[0]), progress=shares.append, sources=sources)
    assert list(once.summary["sources"]) == ["z", "a"], "the largest first"
    assert once.ranked == audit(data_set(noisy[0])).ranked
    assert shares == [0.2, 0.4, 0.6, 0.8, 1.0]


def test_labels_that_one_class_lost_to_another_are_found(noisy):
    """A third of a class moved to the other: the rows left must not look worse than those moved."""
    pairs = rows(240, seed=3)
    places = [i for i, (label, _) in enumerate(pairs) if label == "pos"]
    moved = set(random.Random(0).sample(places, len(places) // 3))
    noisy = [("neg" if i in moved else label, text) for i, (label, text) in enumerate(pairs)]
    first = audit(data_set(noisy)).ranked[: len(moved)]
    assert len({suspect.row for suspect in first} & moved) > 0.6 * len(moved)


def test_a_row_is_never_judged_by_a_model_that_has_seen_it_or_its_near_copy():
    """Each text has words of its own, so that a model without it knows nothing of them."""
    draw = random.Random(1)
    texts = ["".join(draw.choices("abcdefghijklm", k=12)) for _ in range(30)]
    labels = np.arange(30) % 2
    texts, labels = texts * 2, np.concatenate([labels, labels])
    together = unseen_probabilities(texts, labels, np.tile(np.arange(30), 2))
    given = together[np.arange(60), labels]
    assert given.mean() < 0.6
    alone = unseen_probabilities(texts, labels, np.arange(60))
    assert alone[np.arange(60), labels].mean() > given.mean() + 0.1


def test_a_contradiction_names_the_other_line(noisy):
    pairs = [
        *noisy[0],
        ("neg", "had lfilm zwin bzaf ou l9issa"),
        ("pos", "HAD lfilm zwin bzaf ou l9issa"),
    ]
    found = audit(data_set(pairs))
    by_row = {suspect.row: suspect for suspect in found.ranked}
    assert by_row[120].why[0] == "the same text is 'pos' in line 122"
    assert by_row[121].why[0] == "the same text is 'neg' in line 121"
    assert by_row[120].suggested == "pos" and found.summary["contradictions"] >= 2


def test_the_counts_are_those_of_a_file_made_by_hand(tmp_path):
    """Two copies and three near-copies with several labels, two near-copies with one label, a
    misspelt label and a row of mojibake among 60 plain rows."""
    near = "lmekla f had lmet3em dyal lmdina kant {} bzaf f l3cha lbare7"
    made = [
        *(("pos", "lkhedma zwina walakin ghalya"), ("neg", "LKHEDMA zwina walakin ghalya")),
        *(("pos", near.format(word)) for word in ("zwina", "zwini")),
        ("neg", near.format("zwino")),
        *(
            ("pos", f"tsennit ttiyara sa3a w nos f lmatar dyal {place}")
            for place in ("fes", "fess")
        ),
        *(("Neg", "khayb kan"), ("neg", "rÃ©fÃ©rence Ã\xa0 lâ€™Ã©cole")),
    ]
    pairs = [*rows(60, seed=8), *made]
    source = tmp_path / "all.tsv"
    lines = ["label\ttext", *(f"{label}\t{text}" for label, text in pairs)]
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    said = call_main("audit", source, "--json")
    found = json.loads(said.out)
    assert (found["rows"], found["contradictions"], found["mojibake"]) == (69, 5, 1)
    assert found["misspelt_labels"] == {"Neg": "neg"} and found["disputed"] == 0
    assert "5 have a copy or near copy with another label" in said.err
    assert "share of each class by script, in percent\nscript" in said.err
    suspects = [row for row in found["ranked"] if row["suggested"]]
    assert found["suspects"] == len(suspects)
    assert all(row["suspicion"] > 0 or row["label"] == "Neg" for row in suspects)
    by_line = {row["line"]: row for row in found["ranked"]}
    assert by_line[66]["suggested"] == "pos"  # one of three near-copies
    for line in (64, 65):  # the other two
        told = by_line[line]
        assert told["why"][0] == "nearly the same text is 'neg' in line 66"
        assert bool(told["suggested"]) is (told["suspicion"] > 0)
    assert not any("same text" in why for line in (67, 68) for why in by_line[line]["why"])
    assert "the text looks like mojibake of 'référence à l’école'" in by_line[70]["why"]


def test_misspelt_labels_come_first_and_count_as_what_they_mean(noisy):
    pairs = [*noisy[0], ("Pos", "zwin bzaf"), ("ne g", "khayb bzaf")]
    found = audit(data_set(pairs))
    assert {(s.label, s.suggested) for s in found.ranked[:2]} == {("Pos", "pos"), ("ne g", "neg")}
    assert found.summary["misspelt_labels"] == {"Pos": "pos", "ne g": "neg"}


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"pos": 5, "POS": 2, "p os": 1}, {"POS": "pos", "p os": "pos"}),
        ({"happy": 900, "unhappy": 1, "class1": 2, "class2": 1}, {}),
        ({"+": 900, "-": 1}, {}),
        ({"إيجابي": 3, "إيجابي\u200f": 1}, {"إيجابي\u200f": "إيجابي"}),
        ({"ｐｏｓ": 1, "pos": 5}, {"ｐｏｓ": "pos"}),
        ({}, {}),
    ],
)
def test_which_labels_are_misspelt(counts, expected):
    assert misspelt_labels(counts) == expected


def test_suspicion_is_the_log_likelihood_ratio_of_the_likeliest_other_class():
    shares = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.5, 0.1, 0.4], [0.1, 0.6, 0.3]])
    suspicion, rivals = suspicions(shares, np.array([0, 0, 1, 2]), np.arange(4))
    priors = np.array([0.5, 0.25, 0.25])
    for row, (label, rival) in enumerate([(0, 1), (0, 1), (1, 2), (2, 1)]):
        likelihoods = shares[row] / priors
        assert rivals[row] == rival
        expected = np.log(likelihoods[rival] / likelihoods[label])
        assert suspicion[row] == pytest.approx(expected)


def test_near_duplicates_count_once_in_what_a_class_weighs():
    """Ninety rows of one template share a fold, whose model knows but ten of their class."""
    draw = random.Random(3)
    middle = [
        "room",
        "phone",
        "food",
        "hotel",
        "service",
        "staff",
        "bed",
        "lunch",
        "view",
        "bar",
        "lift",
        "pool",
    ]
    good = ["great", "nice", "lovely", "super", "happy", "fresh", "clean", "tasty", "warm", "cosy"]
    bad = ["awful", "broken", "dirty", "nasty", "rude", "cold", "late", "stale", "noisy", "damp"]
    order = "thank you for your order number {} it was great and we are happy"
    texts = [order.format(draw.randint(1000, 9999)) for _ in range(90)]
    for words in (good, bad):
        texts += [" ".join(draw.sample(words, 3) + draw.sample(middle, 3)) for _ in range(10)]
    assert not audit(Dataset(texts, ["good"] * 100 + ["bad"] * 10)).suspects


def test_without_a_label_it_is_the_ratio_of_the_two_likeliest_classes():
    shares = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7], [0.2, 0.7, 0.1]])
    suspicion, rivals = suspicions(shares, np.array([0, 1, 2, -1]), np.arange(4))
    assert rivals[3] == 1 and suspicion[3] == pytest.approx(np.log(0.7 / 0.2))


def test_copies_with_another_label_add_their_share_of_all_copies(noisy):
    copies = [(label, "rani ma fhemt walo f had lqissa") for label in ("neg", "pos", "pos")]
    found = audit(data_set([*noisy[0], *copies]))
    by_row = {suspect.row: suspect.suspicion for suspect in found.ranked}
    # Of two classes each is as much likelier as the other is less so.
    assert by_row[120] + by_row[121] == pytest.approx(CONTRADICTED * (2 / 3 + 1 / 3))
    assert by_row[121] == pytest.approx(by_row[122])


def test_the_line_of_a_copy_is_one_of_the_label_that_is_named(noisy):
    labels = ["spam", "neg", "neg", "pos"]
    copies = [(label, "rani ma fhemt walo f had lqissa") for label in labels]
    found = audit(data_set([*noisy[0], *copies]))
    [last] = [suspect for suspect in found.ranked if suspect.row == 123]
    assert last.why[0] == "the same text is 'neg' in line 122"


@pytest.mark.parametrize(("against", "suggested"), [(0.5, ""), (0.6, "neg")])
def test_annotators_suggest_a_label_that_most_of_them_gave(noisy, against, suggested):
    pairs = noisy[0]
    likely = [a for a in audit(data_set(pairs)).ranked if a.label == "pos" and a.suspicion < 0]
    assert likely[0].suspicion > -0.4 and not likely[0].why
    shares = [{} for _ in pairs]
    shares[likely[0].row] = {"neg": against, "pos": 1 - against}
    found = audit(replace(data_set(pairs), shares=shares))
    [judged] = [a for a in found.ranked if a.row == likely[0].row]
    assert judged.suspicion == pytest.approx(likely[0].suspicion + against)
    assert judged.suggested == suggested and "annotators disagree" in judged.why[0]


def test_the_label_of_a_row_is_never_what_its_annotators_suggest(noisy):
    pairs = noisy[0]
    one = next(a for a in audit(data_set(pairs)).ranked if a.label == "pos" and not a.suggested)
    shares = [{} for _ in pairs]
    shares[one.row] = {"pos": 0.4, "neg": 0.3, "mixed": 0.3}
    found = audit(replace(data_set(pairs), shares=shares)).ranked
    assert all(a.suggested != a.label for a in found)
    [judged] = [a for a in found if a.row == one.row]
    assert judged.suggested == "" and "'pos' 40%, 'neg' 30%" in judged.why[0]


@pytest.mark.parametrize("spelling", [str.title, str.upper, str])
def test_votes_are_of_the_labels_that_they_spell_in_another_case(noisy, spelling):
    pairs = noisy[0]
    votes = [{spelling(label): 1.0} for label, _ in pairs]
    found, plain = audit(replace(data_set(pairs), shares=votes)), audit(data_set(pairs))
    told = [(a.row, a.suggested, a.why) for a in found.ranked]
    assert told == [(a.row, a.suggested, a.why) for a in plain.ranked]
    votes[0] = {spelling("neg"): 0.5, "nEG": 0.25, spelling("pos"): 0.25}
    [judged] = [a for a in audit(replace(data_set(pairs), shares=votes)).ranked if a.row == 0]
    assert "annotators disagree: 'neg' 75%, 'pos' 25%" in judged.why


@pytest.mark.parametrize(
    "pairs",
    [
        [("a", "x y"), ("a", "z w"), ("b", "q r")],
        [("a", "x y")] * 4 + [("b", "q r")] * 4,
        [("a", "..."), ("a", "!!!"), ("b", "   "), ("b", "\t")],
    ],
)
def test_too_few_rows_are_refused(pairs):
    if pairs[0][1] == "...":
        pairs = [(label, " ") for label, _ in pairs]
    with pytest.raises(DataError, match=r"found \d class(es)? with two different texts"):
        audit(data_set(pairs))


def test_the_smallest_set_and_a_class_of_one_row_are_audited():
    pairs = [("a", "one two"), ("a", "three four"), ("b", "five six"), ("b", "seven"), ("c", "ten")]
    assert len(audit(data_set(pairs)).ranked) == 5


# The command


def test_stdout_is_a_table_of_all_rows_that_train_can_read(file, noisy, tmp_path):
    said = call_main("audit", file)
    assert said.code == 0, said.err
    table = [line.split("\t") for line in said.out.splitlines()]
    assert table[0] == HEADINGS and len(table) == 121
    back = tmp_path / "back.tsv"
    back.write_text(said.out, encoding="utf-8")
    again = read_labelled(back)
    pairs = noisy[0]
    lines = [int(row[2]) for row in table[1:]]
    assert [pairs[line - 2] for line in lines] == list(zip(again.labels, again.texts, strict=True))
    better, first, likely = re.search(
        r": another label fits (\d+) of 120 rows better: look at the first (\d+) rows "
        r"\(estimate: about (\d+) of 120 labels wrong or hard to tell\)",
        said.err,
    ).groups()
    assert first == better, "one number of rows to look at"
    assert f"{file}: " in said.err and 0 < int(likely) <= int(better)
    assert int(better) == sum(row[3] != "" for row in table[1:])


def test_a_ratio_that_rounds_to_one_is_told_in_words():
    draw = random.Random(0)
    words = [f"w{k}" for k in range(12)]
    pairs = [(draw.choice(["x", "y"]), " ".join(draw.sample(words, 4))) for _ in range(300)]
    told = [why for suspect in audit(data_set(pairs)).suspects for why in suspect.why]
    assert any(re.fullmatch("hardly more likely among rows of '[xy]' than among rows of .*", w)
               for w in told)  # fmt: skip
    assert not any(why.startswith("1 times") for why in told)


def test_a_large_ratio_is_told_without_an_exponent():
    texts = [f"{word} {n}" for word, count in (("zwin", 960), ("khayb", 40)) for n in range(count)]
    labels = ["pos"] * 961 + ["neg"] * 39
    (first,) = audit(Dataset(texts, labels)).suspects
    assert re.match(r"\d\d0 times as likely among rows of 'neg'", first.why[0])


def test_a_spreadsheet_file_keeps_tabs_and_quotes_and_is_read_back(tmp_path):
    pairs = rows(40, seed=2)
    source = tmp_path / "all.csv"
    with source.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream).writerows(
            [("label", "text"), *pairs, ("neg", 'he said "khayb"\tand, left\nthen')]
        )
    out = tmp_path / "audited.csv"
    assert call_main("audit", source, "--out", out).code == 0
    assert out.read_bytes().startswith(b"\xef\xbb\xbf")
    assert sorted(read_labelled(out).texts) == sorted(read_labelled(source).texts)


def test_other_columns_of_the_file_go_along_under_names_of_their_own(noisy, tmp_path):
    path = tmp_path / "odd.csv"
    lines = [f"{n};{text};{label};x{n}" for n, (label, text) in enumerate(noisy[0])]
    path.write_text("\n".join(["id;text;label;line", *lines]) + "\n", encoding="utf-8-sig")
    assert call_main("audit", path, "--out", tmp_path / "out.csv").code == 0
    with (tmp_path / "out.csv").open(encoding="utf-8-sig", newline="") as stream:
        table = list(csv.DictReader(stream, delimiter=";"))
    assert list(table[0]) == [*HEADINGS, "id", "given_line"]
    for row in table:
        assert noisy[0][int(row["id"])] == (row["label"], row["text"])
        assert int(row["line"]) == int(row["id"]) + 2 and row["given_line"] == f"x{row['id']}"
    ranked = json.loads(call_main("audit", path, "--json", "-n", 2).out)["ranked"]
    assert [one["kept"]["id"] for one in ranked] == [row["id"] for row in table[:2]]


def test_wrong_labels_are_counted_as_a_plain_loop_does():
    draw = np.random.default_rng(0)
    shares, labels = draw.dirichlet([1, 1, 1], 60), draw.integers(-1, 3, 60)
    means = [
        np.mean([s[k] for s, y in zip(shares, labels, strict=True) if y == k]) for k in (0, 1, 2)
    ]
    count = 0
    for share, label in zip(shares, labels, strict=True):
        sure = [k for k in (0, 1, 2) if share[k] >= means[k]]
        count += bool(label >= 0 and sure and max(sure, key=lambda k: share[k]) != label)
    assert 0 < count == likely_wrong(shares, labels) < 60


def test_json_and_n_and_quiet(file):
    said = call_main("audit", file, "--json", "-n", 3, "--quiet")
    document = json.loads(said.out)
    assert len(document["ranked"]) == 3 and document["rows"] == 120
    assert list(document["ranked"][0]) == HEADINGS
    assert said.err == ""


def test_the_next_step_trains_on_all_rows_or_corrects_their_file(file, tmp_path):
    whole, some = tmp_path / "whole.tsv", tmp_path / "some.tsv"
    said = call_main("audit", file, "--out", whole)
    assert said.err.endswith(
        f"next: correct labels in {whole}; superconext train {whole} --out RUN\n"
    )
    said = call_main("audit", file, "-n", 3, "--out", some)
    assert said.err.endswith(f"next: correct labels in {file}, at the lines that {some} names\n")


def test_a_terminal_gets_the_first_rows_as_a_table(file, monkeypatch, capsys):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    from superconext.cli.labelling import give

    give([{"label": "a", "text": "word " * 40, "line": n} for n in range(30)], None)
    shown = capsys.readouterr()
    assert len(shown.out.splitlines()) == 22 and "…" in shown.out
    assert "20 of 30 rows shown" in shown.err


def test_a_run_lends_its_vectors_and_one_of_the_same_rows_is_warned_of(finished, file, tmp_path):
    said = call_main("audit", file, "--run", finished.folder, "--json")
    assert said.code == 0, said.err
    plain = json.loads(call_main("audit", file, "--json").out)
    assert json.loads(said.out)["ranked"] != plain["ranked"] and "warning" not in said.err
    said = call_main("audit", finished.data.train, "--run", finished.folder)
    assert "was trained on" in said.err and said.code == 0
    manifest = tmp_path / "run" / "manifest.json"
    shutil.copytree(finished.folder, tmp_path / "run")
    facts = json.loads(manifest.read_text("utf-8")) | {"freeze": True}
    manifest.write_text(json.dumps(facts), "utf-8")
    said = call_main("audit", finished.data.train, "--run", tmp_path / "run")
    assert said.code == 0 and "was trained on" not in said.err, "its encoder saw no label"


def test_what_cannot_be_done_is_one_line(file, tmp_path):
    assert "no folder" in blame(call_main("audit", file, "--out", tmp_path / "no" / "x.tsv"))
    assert "exists already" in blame(call_main("audit", file, "--out", file))
    one = tmp_path / "one.tsv"
    one.write_text("label\ttext\nneg\tkhayb\nneg\tghali\n", encoding="utf-8")
    assert "expected two" in blame(call_main("audit", one))
    assert call_main("audit", file, "-n", 0).code == 2
    assert not list(tmp_path.glob("*.tmp"))


def test_annotators_who_disagree_are_a_reason_and_ties_come_first(tmp_path):
    """One of three annotators answers `neg` to every tenth text; each thirtieth is a tie."""
    lines = ["text,annotator_1,annotator_2,annotator_3,platform"]
    for number, (label, text) in enumerate(rows(120, seed=5)):
        votes = [label, label, "neg" if number % 10 == 5 else label]
        votes = ["pos", "neg", ""] if number % 30 == 0 else votes
        lines.append(",".join([f'"{text}"', *votes, "blog" if number % 3 else "chat"]))
    file = tmp_path / "votes.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    said = call_main("audit", file, "--out", tmp_path / "audited.tsv").err
    cells = [line.split("\t") for line in (tmp_path / "audited.tsv").read_text().splitlines()]
    assert len(cells) == 121 and [row[0] for row in cells[1:6]] == ["", "", "", "", cells[5][0]]
    for row in cells[1:5]:
        assert "annotators disagree: 'neg' 50%, 'pos' 50%" in row[5] and cells[5][0]
        assert row[5].endswith("among rows of any other class")
        assert lines[int(row[2]) - 1].startswith(f'"{row[1]}",'), "each its own line"
    assert " of 120 rows better" in said, "ties are rows"
    assert sorted(int(row[2]) for row in cells[1:5]) == [2, 32, 62, 92]
    shared = [row for row in cells[5:] if "disagree" in row[5]]
    assert shared and all(row[0] == "pos" and "'pos' 67%, 'neg' 33%" in row[5] for row in shared)
    assert "have annotators who disagree" in said and "'blog'" in said and "'chat'" in said
    # What was written is read back once the ties are decided, or without them.
    again = read_labelled(tmp_path / "audited.tsv", drop_unlabelled=True)
    assert len(again) == 116


def test_misspelt_labels_come_before_ties(tmp_path):
    lines = ["text,annotator_1,annotator_2"]
    for number, (label, text) in enumerate(rows(60, seed=5)):
        votes = {7: ["Pos", "Pos"], 9: ["pos", "neg"]}.get(number, [label] * 2)
        lines.append(",".join([f'"{text}"', *votes]))
    file = tmp_path / "votes.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    ranked = json.loads(call_main("audit", file, "--json").out)["ranked"]
    assert [row["label"] for row in ranked[:2]] == ["Pos", ""]


def test_annotators_beside_a_column_of_labels_are_a_reason_too(tmp_path):
    table = ["label,text,rater_a,rater_b"]
    for number, (label, text) in enumerate(rows(60, seed=6)):
        other = "pos" if label == "neg" else "neg"
        table.append(",".join([label, f'"{text}"', *[other if number == 7 else label] * 2]))
    file = tmp_path / "both.csv"
    file.write_text("\n".join(table) + "\n", encoding="utf-8")
    found = json.loads(call_main("audit", file, "--json").out)
    (row,) = (row for row in found["ranked"] if "disagree" in " ".join(row["why"]))
    assert row["line"] == 9 and row["suggested"] not in ("", row["label"])
    assert found["disputed"] == 1 and found["sources"] == {}


def test_what_train_refuses_for_its_labels_audit_refuses_too(tmp_path):
    """Else nearly every label is called wrong."""
    path = tmp_path / "swapped.tsv"
    rows = [f"{'good' if n % 2 else 'bad'}\tfilm numero {n} zwin" for n in range(40)]
    path.write_text("\n".join(["text\tlabel", *rows]) + "\n", encoding="utf-8")
    said = call_main("audit", path)
    assert said.code == 1 and "40 different labels in 40 rows" in said.err
    assert "they look like texts: --text-column and --label-column" in said.err


SPAM = ["gagnez un iphone", "votre compte expire", "crédit rapide", "cliquez ici maintenant"]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_a_class_too_small_to_judge_leaves_the_rest_as_it_is(noisy, tmp_path, count):
    """A model that has seen one or two rows of a class finds it likely anywhere."""
    alone = audit(data_set(noisy[0]))
    more = audit(data_set([*noisy[0], *(("spam", text) for text in SPAM[:count])]))
    assert more.summary["too_few"] == {"spam": count} and alone.summary["too_few"] == {}
    assert more.summary["likely_wrong"] == alone.summary["likely_wrong"]
    assert more.suspects == alone.suspects
    spam = [suspect for suspect in more.ranked if suspect.label == "spam"]
    assert {suspect.why for suspect in spam} == {("too few texts of 'spam' to judge",)}
    assert [suspect.suspicion for suspect in spam] == [0] * count
    assert [suspect.row for suspect in spam] == [*range(120, 120 + count)], "equals as in the file"

    path = tmp_path / "rare.tsv"
    lines = [f"{a}\t{b}" for a, b in [*noisy[0], *(("spam", text) for text in SPAM[:count])]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    said = call_main("audit", path)
    assert " of 120 labels wrong or hard" in said.err
    assert f"too few texts to judge: 'spam' ({count} row{'s' * (count > 1)});" in said.err


def test_a_misspelt_label_is_told_of_the_class_that_is_too_small_to_judge(noisy):
    names = ["spam", "spam", "Spam", "spam"]
    found = audit(data_set([*noisy[0], *zip(names, SPAM, strict=True)]))
    [misspelt] = [suspect for suspect in found.ranked if suspect.label == "Spam"]
    assert misspelt.why == ("may be 'spam' misspelt", "too few texts of 'spam' to judge")


def test_a_copy_with_another_label_is_told_of_a_class_too_small_to_judge(noisy):
    found = audit(data_set([*noisy[0], ("spam", noisy[0][1][1])]))
    [spam] = [suspect for suspect in found.suspects if suspect.label == "spam"]
    assert spam.suggested == noisy[0][1][0] and "in line" in spam.why[0]


def test_classes_that_are_all_small_are_judged():
    pairs = [(label, f"{label}{n} x{n}") for label in ("a", "b", "c") for n in range(3)]
    assert audit(data_set(pairs)).summary["too_few"] == {}


def test_each_class_has_a_threshold_of_its_own():
    # Class 0 is given 0.9 by its rows on average, class 1 only 0.6: the last row is wrong.
    shares = np.array([[0.9, 0.1]] * 4 + [[0.4, 0.6]] * 4 + [[0.35, 0.65]])
    labels = np.array([0] * 4 + [1] * 4 + [0])
    assert likely_wrong(shares, labels) == 1
    # Just as sure as the class is on average: counted.
    shares = np.array([[0.8, 0.2]] * 2 + [[0.5, 0.5]] * 2 + [[0.25, 0.75]])
    assert likely_wrong(shares, np.array([0, 0, 0, 1, 1])) == 0
    assert likely_wrong(np.array([[0.75, 0.25], [0.75, 0.25]]), np.array([0, 1])) == 1


@pytest.fixture
def labelled():
    pairs = rows(60, seed=3)
    vectors = np.random.default_rng(0).normal(2, 3, (60, 8)) * np.arange(1, 9)
    labels = np.array([("neg", "pos").index(label) for label, _ in pairs])
    return [text for _, text in pairs], labels, vectors


def test_vectors_of_rows_that_no_model_learns_from_change_no_other_row(labelled):
    texts, labels, vectors = labelled
    labels = np.where(np.arange(60) < 6, -1, labels)
    other = vectors.copy()
    other[:6] *= 100
    found = [unseen_probabilities(texts, labels, np.arange(60), some) for some in (vectors, other)]
    np.testing.assert_allclose(found[0][6:], found[1][6:], atol=1e-12)
    assert not np.allclose(found[0][:6], found[1][:6])


def test_vectors_are_as_long_as_ngrams(labelled, monkeypatch):
    texts, labels, vectors = labelled
    fit, seen = LogisticRegression.fit, []

    def watched(self, features, *others, **weights):
        seen.append(np.square(features.toarray()))
        return fit(self, features, *others, **weights)

    monkeypatch.setattr(LogisticRegression, "fit", watched)
    unseen_probabilities(texts, labels, np.arange(60), vectors)
    assert seen
    for squares in seen:
        assert squares[:, :-8].sum(axis=1).mean() == pytest.approx(2, abs=0.2)
        assert squares[:, -8:].sum(axis=1).mean() == pytest.approx(2, abs=0.01)


def test_which_classes_are_too_few_is_told_by_their_different_texts():
    labels = [*"aaaaaaa", *"bbbbb", *"cccc", *"dddddd"]
    groups = np.array([*range(16), *[99] * 6])  # of class d all are copies
    assert too_few(labels, groups) == {"c": 4, "d": 6}
    assert too_few([*"aaaaaaaaabb"], np.arange(11)) == {}, "one of the two largest"
    assert too_few([*"aaaaaaaaabbc"], np.arange(12)) == {"c": 1}


def test_without_a_label_classes_are_weighed_before_two_are_the_likeliest():
    shares = np.array([[0.8, 0.1, 0.1]] * 3 + [[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.6, 0.3, 0.1]])
    suspicion, rivals = suspicions(shares, np.array([0, 0, 0, 1, 2, -1]), np.arange(6))
    # By their shares of the rows, 0.6, 0.2 and 0.2, class 1 is likelier than class 0.
    assert rivals[5] == 1 and suspicion[5] == pytest.approx(np.log(1.5))


def test_a_copy_under_a_misspelt_label_contradicts_none_and_is_judged(noisy):
    text = "rani ma fhemt walo f had lqissa"
    found = audit(data_set([*noisy[0], ("pos", text), ("Pos", text)]))
    plain = audit(data_set([*noisy[0], ("pos", text), ("pos", text)]))
    assert found.summary["contradictions"] == plain.summary["contradictions"] == 0
    (misspelt,) = (suspect for suspect in found.ranked if suspect.label == "Pos")
    assert not any("the same text" in why or "too few" in why for why in misspelt.why)
    (same,) = (suspect for suspect in plain.ranked if suspect.row == misspelt.row)
    assert misspelt.suspicion == pytest.approx(same.suspicion) and misspelt.suggested == "pos"


def test_all_that_have_a_suggestion_are_counted_and_a_script_has_all_classes(noisy):
    likely = next(a for a in reversed(audit(data_set(noisy[0])).ranked) if a.label == "pos")
    pairs = [*noisy[0], ("neg", "это очень плохо")]
    pairs[likely.row] = "Pos", likely.text
    found = audit(data_set(pairs))
    assert found.suspects[0].label == "Pos" and found.suspects[0].suspicion < 0
    assert found.summary["suspects"] == len(found.suspects)
    assert found.summary["scripts"]["Cyrillic"] == {"Pos": 0, "neg": 1, "pos": 0}


def test_the_text_of_a_tie_may_be_mojibake_too(tmp_path):
    lines = ["text,annotator_1,annotator_2", *(f"{b},{a},{a}" for a, b in rows(40, seed=5))]
    file = tmp_path / "votes.csv"
    file.write_text("\n".join([*lines, "rÃ©fÃ©rence Ã©cole,pos,neg"]) + "\n", encoding="utf-8")
    found = audit(read_labelled(file))
    assert found.ranked[0].label == "" and found.summary["mojibake"] == 1


def test_a_ratio_beyond_a_thousand_is_told_as_one(noisy, monkeypatch):
    monkeypatch.setattr(
        "superconext.report.audit.suspicions",
        lambda shares, truth, groups: (np.full(len(truth), 12.0), 1 - truth),
    )
    for suspect in audit(data_set(noisy[0])).ranked:
        assert suspect.why[0].startswith("1000 times as likely among rows of ")


def test_a_copy_and_annotators_with_another_label_both_add_to_a_suspicion(noisy):
    text = "rani ma fhemt walo f had lqissa"
    plain = data_set([*noisy[0], ("pos", text), ("neg", text)])
    votes = [*[{}] * len(noisy[0]), {"neg": 0.25, "pos": 0.75}, {}]
    scores = [
        next(one.suspicion for one in audit(rows).ranked if one.row == len(noisy[0]))
        for rows in (plain, replace(plain, shares=votes))
    ]
    assert scores[1] - scores[0] == pytest.approx(0.25 * CONTRADICTED)


def test_labels_that_begin_alike_are_named_whole(noisy):
    long = {name: f"what people say of it is {name}" for name in ("pos", "neg")}
    found = audit(data_set([(long[label], text) for label, text in noisy[0]]))
    why = " ".join(reason for suspect in found.suspects for reason in suspect.why)
    assert f"'{long['pos']}'" in why and f"'{long['neg']}'" in why and "…" not in why
