"""Data sets in memory: what is picked and counted, and which labels are told of as doubtful."""

from __future__ import annotations

import pytest

from superconext.core.errors import DataError, RowsError
from superconext.data.dataset import (
    Dataset,
    check_counts,
    check_held,
    check_letters,
    check_repeated,
    check_sides,
    classes_apart,
    folded,
    respelt,
)


def counted(**counts):
    return check_counts(counts, "a.tsv", lambda label: 7)


def test_repeats_are_the_texts_asked_for_that_are_in_the_set():
    own = Dataset(["zwin bzaf", "khayb bzaf", "zwin bzaf"], ["pos", "neg", "pos"])
    assert own.repeats_of(["ZWIN bzaf", "mzyan had"]) == 1
    assert own.repeats_of(["khayb bzaf", "Khayb bzaf", "khayb  bzaf", "walo"]) == 3


def test_rows_that_are_picked_keep_their_shares_and_no_ties():
    shares = [{"pos": 1.0}, {"neg": 0.75, "pos": 0.25}, {"neg": 1.0}]
    ties = [("walo", {"neg": 0.5, "pos": 0.5})]
    rows = Dataset(["a", "b", "c"], ["pos", "neg", "neg"], shares=shares, ties=ties)
    picked = rows.select([2, 1])
    assert picked.shares == [{"neg": 1.0}, {"neg": 0.75, "pos": 0.25}] and not picked.ties
    assert not Dataset(["a", "b"], ["pos", "neg"]).select([1]).shares


@pytest.mark.parametrize(
    ("label", "plain"), [("İYİ", "iyi"), ("1.00", "1"), ("ｐｏｓ", "pos"), ("v1.0", "v1.0")]
)
def test_labels_are_folded_whatever_their_form(label, plain):
    assert folded(label) == plain


def test_copies_are_one_text_where_rows_are_held_out():
    texts, labels = ["zwin", "bnin", "khayb", "khayb"], ["pos", "pos", "neg", "neg"]
    with pytest.raises(DataError, match="found 1 class with two different texts"):
        check_held(Dataset(texts, labels))
    check_held(Dataset([*texts, "ghali"], [*labels, "neg"]))


def test_emoji_say_something_and_half_of_the_texts_may_say_nothing():
    check_letters(["🤩", "😡 2", "12"], "a.tsv", ())
    check_letters(["zwin", "12"], "a.tsv", ())
    with pytest.raises(RowsError, match="found no letter in 2 of 3 texts"):
        check_letters(["zwin", "12", "+"], "a.tsv", ())


def test_many_classes_of_few_rows_may_be_dates():
    days = {f"2020-01-{n}": 20 for n in range(10, 20)}
    assert counted(**days) == []
    (told,) = counted(**days | {"2020-01-19": 19})
    assert "found 10 classes in 199 rows" in told and "if these are dates or numbers" in told


@pytest.mark.parametrize(
    ("few", "others", "told"), [(3, 80, True), (4, 200, False), (3, 70, False)]
)
def test_a_class_is_doubtful_where_it_has_three_rows_or_fewer_of_many(few, others, told):
    found = counted(positif=40, positife=few, neutre=others)
    assert bool(found) == told and all("'positife' in 3 rows alone" in line for line in found)


@pytest.mark.parametrize(
    ("label", "frequent"), [("ouii", "oui"), ("inintéressante", "intéressante")]
)
def test_a_short_name_and_one_of_a_syllable_more_are_others(label, frequent):
    (told,) = counted(**{label: 1, frequent: 9, "autre": 9})
    assert f"with a single row: {label!r} (line 7);" in told


def test_labels_repeat_where_half_of_the_rows_share_one():
    check_repeated({"a": 10, **{str(n): 1 for n in range(10)}}, "a.tsv")
    check_repeated({str(n): 1 for n in range(19)}, "a.tsv")
    with pytest.raises(RowsError, match="found 20 different labels in 20 rows"):
        check_repeated({str(n): 1 for n in range(20)}, "a.tsv")


def test_as_many_labels_as_texts_are_not_called_swapped():
    check_sides(Dataset(["a", "b", "a"], ["very good", "so so", "so so"]))
    with pytest.raises(RowsError, match="the columns look swapped"):
        check_sides(Dataset(["a", "b", "a"], ["very good", "so so", "very bad"]))


def test_classes_that_differ_in_case_are_not_apart():
    one, other = (Dataset(["a", "b"], labels) for labels in (["Pos", "Neg"], ["pos", "neg "]))
    assert classes_apart(one, other) == classes_apart(one, Dataset(["a"], ["nul"])) == []
    (told,) = classes_apart(one, Dataset(["a", "b"], ["bon", "nul"]))
    assert told.startswith("the files share no class: 'Neg', 'Pos' in ")


def test_of_two_names_a_label_is_like_the_one_it_differs_from_in_case_is_told():
    told = respelt(["NÉGATIF"], ["négatif", "negatif"])
    assert (
        told == "; 'NÉGATIF' and 'négatif' differ in case or spelling alone: add --fold-label-case"
    )


def test_thousands_are_no_way_to_write_one():
    assert counted(**{"1,000": 9, "1": 9}) == [] and len(counted(**{"1,0": 9, "1": 9})) == 1
