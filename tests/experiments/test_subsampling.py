"""Draws take the rows they say, the same for a seed, nested, and damage as much as they say."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.baselines import ALWAYS_FITTED
from superconext.core.errors import ConfigError, DataError
from superconext.data.duplicates import keys_of
from superconext.experiments.fit_job import run_fit
from superconext.experiments.plan import HELD_OUT, Fit, cut, make_plan
from superconext.experiments.subsampling import (
    RAREST,
    counts_of,
    damaged_words,
    draw_of,
    draw_rows,
    expected_overlap,
    mteb_rows,
    parse_draw,
    wrong_labels,
)
from superconext.experiments.systems import System, parse_systems, plain


def pool(sizes, start=0):
    texts, labels = [], []
    for label, size in sizes.items():
        texts += [f"{label} text {k + start} of several words" for k in range(size)]
        labels += [label] * size
    return texts, labels


def fit(split, seed=0):
    return Fit(plain("majority"), seed, split)


FILES = {"train": pool({"a": 700, "b": 300}), "test": pool({"a": 9, "b": 9}, 5000)}
GIVEN = {**FILES, "dev": pool({"a": 30, "b": 20}, 9000)}


@pytest.mark.parametrize(
    "name", ["shots1", "shots", "rows3", "share0", "share101", "labels-1", "x"]
)
def test_names_that_are_none(name):
    with pytest.raises(ConfigError, match="expected one of shots"):
        parse_draw(name)


def test_a_split_names_its_draw():
    assert draw_of("rho5-12") == parse_draw("rho5") and str(draw_of("rho5-12")) == "rho5"
    assert draw_of("given") is None and draw_of("dev-3") is None and draw_of("resampled-3") is None


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("shots16", {"a": 16, "b": 16}),
        ("rows20", {"a": 14, "b": 6}),
        ("rows100", {"a": 70, "b": 30}),
        ("share10", {"a": 70, "b": 30}),
        ("rho1", {"a": RAREST, "b": RAREST}),
        ("rho10", {"a": 10 * RAREST, "b": RAREST}),
    ],
)
def test_as_many_rows_as_said_and_the_given_dev_and_test(name, counts):
    parts = cut(GIVEN, fit(f"{name}-3", 3))
    assert Counter(parts["train"][1]) == counts
    assert parts["dev"] == GIVEN["dev"] and parts["test"] == GIVEN["test"]
    assert len(set(parts["train"][0])) == sum(counts.values())
    assert parts == cut(GIVEN, fit(f"{name}-3", 3))
    assert parts["train"] != cut(GIVEN, fit(f"{name}-4", 4))["train"]


def test_without_dev_rows_a_tenth_is_held_out_first_but_shots_draw_as_many():
    parts = cut(FILES, fit("rows50-1", 1))
    assert len(parts["dev"][0]) == 100 and len(parts["train"][0]) == 50
    assert not set(parts["dev"][0]) & set(parts["train"][0])
    parts = cut(FILES, fit("shots8-1", 1))
    assert Counter(parts["dev"][1]) == {"a": 8, "b": 8}
    one = {"all": FILES["train"]}
    parts = cut(one, fit("share10-1", 1))
    assert len(parts["test"][0]) == 100 and len(parts["train"][0]) == 80


def test_smaller_draws_are_part_of_larger_ones():
    for few, many in (("rows20", "rows100"), ("rho1", "rho5"), ("share10", "share50")):
        small, large = (set(cut(GIVEN, fit(f"{n}-2", 2))["train"][0]) for n in (few, many))
        assert small < large


def test_three_classes_lie_on_an_exponential_curve():
    counts = counts_of(parse_draw("rho9"), {"x": 10, "y": 999, "z": 500})
    assert counts == {"y": 9 * 32, "z": 3 * 32, "x": 32}


def test_too_few_rows_are_refused():
    with pytest.raises(
        DataError, match=r"class 'a' has 700 distinct texts.*expected 960 for rho30"
    ):
        cut(GIVEN, fit("rho30-0"))
    with pytest.raises(DataError, match="shots"):
        cut(FILES, fit("shots200-0"))


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(2, 60), min_size=2, max_size=5),
    percent=st.integers(1, 100),
)
def test_a_share_is_near_its_size_and_keeps_two_of_each_class(sizes, percent):
    named = {f"c{k}": size for k, size in enumerate(sizes)}
    counts = counts_of(parse_draw(f"share{percent}"), named)
    assert all(2 <= counts[name] <= size for name, size in named.items())
    wanted = round(sum(sizes) * percent / 100)
    assert wanted <= sum(counts.values()) <= wanted + 2 * len(sizes)


def test_the_expected_overlap_is_that_of_draws():
    draw = parse_draw("rows100")
    shares = []
    for seed in range(0, 40, 2):
        one, two = (set(cut(GIVEN, fit(f"rows100-{s}", s))["train"][0]) for s in (seed, seed + 1))
        shares.append(len(one & two) / 100)
    assert expected_overlap(GIVEN["train"], draw) == pytest.approx(0.1)
    assert np.mean(shares) == pytest.approx(0.1, abs=0.03)


def test_labels_are_wrong_at_the_rate_and_never_right():
    labels = ["a", "b", "c"] * 100
    found = wrong_labels(labels, 20, 1)
    changed = [(old, new) for old, new in zip(labels, found, strict=True) if old != new]
    assert len(changed) == 60 and set(found) == {"a", "b", "c"}
    assert wrong_labels(labels, 20, 1) == found != wrong_labels(labels, 20, 2)
    parts = cut(GIVEN, fit("labels40-0"))
    assert parts["train"][0] == GIVEN["train"][0] and parts["dev"] == GIVEN["dev"]
    assert sum(x != y for x, y in zip(parts["train"][1], GIVEN["train"][1], strict=True)) == 400


def test_a_class_that_has_more_than_its_share_gets_no_row_that_is_left():
    sizes = {"a": 84, "b": 19, "c": 97}  # of 20 rows 8.4, 1.9 and 9.7
    assert counts_of(parse_draw("rows20"), sizes) == {"a": 8, "b": 2, "c": 10}


def test_words_are_damaged_at_the_rate_and_one_is_left():
    texts = [" ".join(f"w{k}" for k in range(20)) for _ in range(200)] + ["alone", ""]
    found = damaged_words(texts, 30, 0)
    lengths = [len(text.split()) for text in found[:200]]
    assert np.mean(lengths) == pytest.approx(20 * (1 - 0.3 / 3), abs=0.4)  # a third is dropped
    assert found[200:] == ["alone", ""] or found[200].startswith("w")
    assert all(text for text in found[:201])
    assert damaged_words(texts, 0, 0) == texts
    assert damaged_words(texts, 30, 0) == found != damaged_words(texts, 30, 1)
    assert len(cut(GIVEN, fit("words100-0"))["train"][0]) == 1000


def test_a_plan_has_every_draw_and_no_fit_of_an_encoder_on_its_own_rows():
    systems = (*parse_systems("superloss"), System("s from x", "superloss", (), "x"))
    plan = make_plan(systems, 2, "given", "x", draws=("", "rows20"))
    splits = Counter(fit.split for fit in plan if fit.system.name == "superloss")
    assert splits == {"given": 2, "rows20-0": 1, "rows20-1": 1}
    assert not any(fit.system.source for fit in plan)
    baselines = Counter(fit.split for fit in plan if fit.is_baseline)
    assert baselines == dict.fromkeys(["given", "rows20-0", "rows20-1"], len(ALWAYS_FITTED))
    assert any(f.system.source for f in make_plan(systems, 1, "dev", "y", draws=("rows20",)))


def by_mteb(labels, count, experiments):
    """The rows of each experiment as MTEB's code says it: a list shuffled again and again."""
    order = list(range(len(labels)))
    found = []
    for _ in range(experiments):
        np.random.RandomState(42).shuffle(order)
        taken, rows = Counter(), []
        for row in order:
            if taken[labels[row]] < count:
                rows.append(row)
                taken[labels[row]] += 1
        found.append(rows)
    return found


def test_mteb_draws_are_those_of_its_shuffles():
    labels = np.random.default_rng(3).choice(["a", "b", "c"], 200, p=[0.6, 0.3, 0.1]).tolist()
    expected = by_mteb(labels, 8, 10)
    assert len({tuple(rows) for rows in expected}) == 10
    for experiment, rows in enumerate(expected):
        train, dev = mteb_rows(labels, 8, experiment)
        assert train.tolist() == rows
        assert not set(train.tolist()) & set(dev.tolist())
        assert max(Counter(labels[row] for row in dev.tolist()).values()) <= 8


def test_draws_of_mteb_overlap_by_rows_as_they_stand():
    """Also where each text of a class has another label too, and where texts are copies."""
    rows = list("abcdab"), list("xxyyzz")
    assert expected_overlap(rows, parse_draw("mteb2")) == 1
    rows = ["a"] * 4 + ["b", "c", "d", "e"], ["x"] * 4 + ["y"] * 4
    assert expected_overlap(rows, parse_draw("mteb2")) == 0.5


def test_mteb_is_judged_on_the_first_test_rows_and_takes_copies_as_they_stand():
    test = pool({"a": 1500, "b": 1500}, 5000)
    train = ["same"] * 20 + [f"b {k}" for k in range(20)], ["a"] * 20 + ["b"] * 20
    parts = cut({"train": train, "dev": GIVEN["dev"], "test": test}, fit("mteb8-3", 3))
    assert parts["train"][0].count("same") == 8 and len(parts["train"][0]) == 16
    assert parts["test"] == (test[0][:2048], test[1][:2048]) and parts["dev"] == GIVEN["dev"]
    drawn = cut({"train": train, "test": FILES["test"]}, fit("mteb8-0"))["dev"]
    assert Counter(drawn[1]) == {"a": 8, "b": 8}
    with pytest.raises(DataError, match="class 'b' has 7 rows; expected 8"):
        cut({"train": (train[0][:27], train[1][:27]), "test": test}, fit("mteb8-0"))
    with pytest.raises(DataError, match="give --test"):
        cut({"all": train}, fit("mteb8-0"))


def test_copies_of_a_text_are_drawn_once_and_never_on_both_sides():
    plain = [f"@user{k} Film number {k} zwin" for k in range(60)]
    texts = plain + [f"@other{k} film number {k} ZWIN" for k in range(60)]
    labels = ["ab"[k % 2] for k in range(60)] * 2
    labels[60] = "b"  # the text of row 0 has two labels behind different mentions
    keys = np.array(keys_of(texts))
    for name in ("shots14", "shots7"):
        for seed in range(5):
            train, dev = draw_rows((texts, labels), parse_draw(name), seed, dev=True)
            drawn = keys[np.concatenate([train, dev])].tolist()
            assert len(set(drawn)) == len(drawn) and keys[0] not in drawn
    with pytest.raises(DataError, match="class 'a' has 29 distinct texts to draw from"):
        draw_rows((texts, labels), parse_draw("shots15"), 0, dev=True)
    # Where no two texts are copies the draw is that of the texts themselves.
    apart = draw_rows((plain, labels[:60]), parse_draw("shots7"), 1, dev=True)
    assert [len(part) for part in apart] == [14, 14]
    assert expected_overlap((texts, labels), parse_draw("shots14")) == pytest.approx(
        14 / 29.5, abs=0.01
    )


@pytest.mark.parametrize(
    ("name", "axis"),
    [
        ("mteb8", "N rows of each class and the first 2,048 test rows, as MTEB takes them"),
        ("rho1", "imbalance 1:N"),
        ("labels10", "N percent of the labels wrong"),
    ],
)
def test_the_axis_of_draws_has_the_number_alone_replaced(name, axis):
    assert parse_draw(name).describe("N") == axis


def test_the_overlap_of_draws_is_at_least_that_of_their_test_rows():
    """Where test rows are drawn from the same file, a tenth of two draws' are expected alike."""
    # A share is one of the nine tenths that each seed leaves to training.
    for name, overlap in (("rows20-0", 0.02), ("share50-0", 0.45)):
        given = run_fit(fit(name), FILES, {}, ["a", "b"])
        assert given["overlap"] == pytest.approx(overlap, rel=0.05)
        drawn = run_fit(fit(name), {"all": FILES["train"]}, {}, ["a", "b"])
        share = overlap * 0.9 if name.startswith("share") else overlap  # a tenth is test
        assert drawn["overlap"] == pytest.approx(max(share, HELD_OUT), rel=0.05)


def test_rows_that_rounding_leaves_go_to_the_largest_remainders():
    sizes = {"a": 161, "b": 304, "c": 535}  # of 100 rows 16.1, 30.4 and 53.5
    assert counts_of(parse_draw("rows100"), sizes) == {"a": 16, "b": 30, "c": 54}
    sizes = {"a": 167, "b": 265, "c": 568}  # 16.7, 26.5 and 56.8
    assert counts_of(parse_draw("share10"), sizes) == {"a": 17, "b": 26, "c": 57}
