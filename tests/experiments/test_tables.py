"""Means, tests and bold, against plain computations; and that every format can be read."""

import csv
import io
import json
import re

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import accuracy_score, f1_score

from superconext.experiments.paired_tests import resampled_t_test
from superconext.experiments.tables import (
    by_system,
    make_table,
    make_tables,
    script_grid,
    to_csv_rows,
    to_grid,
)
from superconext.report.table import wilson

TRUTH = [k % 3 for k in range(90)]


def line(objective, seed, split, wrong, truth=TRUTH, own=None):
    """A line whose predictions are wrong on `wrong` rows, by its own rule on `own`."""

    def told(count):
        draw = np.random.default_rng([seed, count])
        predicted = list(truth)
        for row in draw.choice(len(truth), count, replace=False):
            predicted[row] = (truth[row] + 1) % 3
        scores = {
            "n": len(truth),
            "accuracy": accuracy_score(truth, predicted),
            "f1_macro": f1_score(truth, predicted, average="macro"),
            "f1_weighted": f1_score(truth, predicted, average="weighted"),
        }
        return {"dev": scores, "test": scores, "predictions": predicted}

    more = {"native": told(own)} if own is not None else {}
    return {
        "objective": objective,
        "seed": seed,
        "split": split,
        "rows": {"train": 720, "dev": 90, "test": 90},
        "seconds": 1.0 + seed,
        "truth": list(truth),
        **told(wrong),
        **more,
    }


def resampled(counts, name="supcon", own=None):
    return [line(name, seed, f"resampled-{seed}", wrong, own=own) for seed, wrong in counts.items()]


@pytest.fixture
def given():
    lines = [line("tfidf_logreg", 0, "given", 40), line("tfidf_svm", 0, "given", 38)]
    lines += [line("ce_ce", seed, "given", 5 + seed, own=70) for seed in range(3)]
    return make_table(lines, "tfidf_logreg", ["LEAKAGE: 1 of 90 rows"])


@pytest.fixture
def drawn():
    lines = resampled({0: 30, 1: 33, 2: 35, 3: 31}, "tfidf_logreg")
    lines += resampled({0: 12, 1: 14, 2: 10, 3: 15}, "supcon")
    lines += resampled({0: 31, 1: 30, 2: 36, 3: 33}, "ce_ce", own=50)
    return make_table(lines, "tfidf_logreg"), lines


def test_an_objective_with_a_rule_of_its_own_has_two_rows():
    systems = by_system([line("ce_ce", 0, "given", 5, own=9), line("supcon", 0, "given", 5)])
    assert list(systems) == ["ce_ce", "ce_ce (own rule)", "supcon"]
    rows = {name: sum(np.array(of[0]["predictions"]) != TRUTH) for name, of in systems.items()}
    assert rows == {"ce_ce": 5, "ce_ce (own rule)": 9, "supcon": 5}


def test_means_and_deviations(drawn):
    table, lines = drawn
    for row in table.rows[:2]:
        of = [x for x in lines if x["objective"] == row.name]
        for key in ("accuracy", "f1_macro", "f1_weighted"):
            values = [x["test"][key] for x in of]
            mean = sum(values) / 4
            assert row.means[key] == pytest.approx(mean)
            spread = (sum((v - mean) ** 2 for v in values) / 3) ** 0.5
            assert row.deviations[key] == pytest.approx(spread)
        assert row.means["seconds"] == 2.5 and row.fits == 4


def test_resampled_splits_are_paired_and_the_t_test_corrected(drawn):
    table, lines = drawn
    scores = {name: [x["test"]["f1_weighted"] for x in of] for name, of in by_system(lines).items()}
    raw = {}
    for row in table.rows[1:]:
        differences = np.subtract(scores[row.name], scores["tfidf_logreg"])
        t = differences.mean() / np.sqrt((1 / 4 + 1 / 8) * differences.var(ddof=1))
        raw[row.name] = 2 * stats.t.sf(abs(t), 3)
        assert row.p == pytest.approx(raw[row.name])
        assert row.difference == pytest.approx(differences.mean())
    # Holm by its definition: the k-th smallest times the tests left, never below the last.
    highest = 0.0
    for left, name in zip((3, 2, 1), sorted(raw, key=raw.get), strict=True):
        highest = max(highest, min(1, left * raw[name]))
        found = next(row for row in table.rows if row.name == name)
        assert found.p_holm == pytest.approx(highest)
    better = {row.name: row.better for row in table.rows}
    assert better == {
        "tfidf_logreg": False,
        "supcon": True,
        "ce_ce": False,
        "ce_ce (own rule)": False,  # surely different, but worse
    }
    assert table.rows[3].p_holm < 0.05 and table.rows[3].difference < 0
    assert any("Nadeau and Bengio" in note for note in table.notes)


def test_pairs_are_made_by_split_whatever_the_order(drawn):
    table, lines = drawn
    turned = make_table(lines[:4] + lines[4:8][::-1] + lines[8:], "tfidf_logreg")
    assert turned.rows[1].p == pytest.approx(table.rows[1].p)
    fewer = make_table(lines[1:], "tfidf_logreg").rows[1]
    ours, theirs = ([x["test"]["f1_weighted"] for x in lines[k : k + 3]] for k in (5, 1))
    assert fewer.p == pytest.approx(resampled_t_test(ours, theirs, 1 / 8).p)


def test_the_tests_of_several_tables_are_corrected_together(drawn):
    lines = drawn[1][:8]  # of one system and the reference
    alone = make_table(lines, "tfidf_logreg").rows[1]
    tables = make_tables({"a": lines, "b": lines, "c": lines}, "tfidf_logreg")
    assert list(tables) == ["a", "b", "c"] and alone.p_holm == alone.p
    for table in tables.values():
        row = table.rows[1]
        assert row.p == alone.p and row.p_holm == pytest.approx(min(1, 3 * alone.p))
        assert any("corrected for the 3 tests of this table" in note for note in table.notes)


def test_one_split_gives_a_difference_but_no_p():
    lines = resampled({0: 30}, "tfidf_logreg") + resampled({0: 10})
    row = make_table(lines, "tfidf_logreg").rows[1]
    assert row.difference > 0 and row.p is row.p_holm is None and not row.better
    assert row.deviations["accuracy"] is None
    assert "two seeds or more" in to_grid(make_table(lines, "tfidf_logreg")).text()


def test_the_same_lead_in_every_split_is_not_tested():
    lines = [*resampled({0: 30, 1: 30}, "tfidf_logreg"), *resampled({0: 10, 1: 10})]
    same = {"f1_weighted": 0.5}
    lines = [{**one, "test": {**one["test"], **same}} for one in lines[:2]] + [
        {**one, "test": {**one["test"], "f1_weighted": 0.7}} for one in lines[2:]
    ]
    table = make_table(lines, "tfidf_logreg")
    row = table.rows[1]
    assert row.difference == pytest.approx(0.2) and row.p is None and not row.better
    told = f"No test: {row.name} minus tfidf_logreg is the same in every split."
    assert told in table.notes and not any("two seeds or more" in note for note in table.notes)
    assert to_csv_rows(table)[1]["test"] is None


def test_a_row_names_the_test_that_was_made():
    """Draws with test rows of their own are compared by the t-test, as resampled splits are."""
    lines = [*resampled({0: 30, 1: 20}, "tfidf_logreg"), *resampled({0: 10, 1: 12})]
    given = [{**one, "overlap": 0.1, "shots": 8} for one in lines]
    assert to_csv_rows(make_table(given, "tfidf_logreg"))[1]["test"] == "hierarchical bootstrap"
    drawn = [{**one, "truth": np.roll(TRUTH, one["seed"]).tolist()} for one in given]
    assert to_csv_rows(make_table(drawn, "tfidf_logreg"))[1]["test"] == "corrected resampled t-test"


def test_given_rows_are_bootstrapped(given):
    rows = {row.name: row for row in given.rows}
    assert rows["ce_ce"].better and rows["ce_ce"].p_holm < 0.05
    assert not rows["ce_ce (own rule)"].better and rows["ce_ce (own rule)"].difference < 0
    assert not rows["tfidf_svm"].better
    assert rows["tfidf_svm"].p_mcnemar is not None and rows["ce_ce"].p_mcnemar is None
    assert rows["tfidf_logreg"].p is None
    assert rows["ce_ce"].low < rows["ce_ce"].difference < rows["ce_ce"].high
    assert any("means over seeds moved by" in note for note in given.notes)
    assert given.notes[-1] == "Data: LEAKAGE: 1 of 90 rows."


def test_one_seed_is_said_to_say_nothing_of_others():
    baselines = [line("tfidf_logreg", 0, "given", 40)]
    told = "One seed of supcon: interval and p leave out what another seed would change."
    alone = make_table([*baselines, line("supcon", 0, "given", 20)], "tfidf_logreg")
    assert told in alone.notes
    drawn = [line(name, 0, "dev-0", wrong) for name, wrong in (("tfidf_logreg", 40), ("nbsvm", 9))]
    everywhere = make_table(drawn, "tfidf_logreg").notes
    assert told.replace("supcon", "every system") in everywhere
    several = [line("supcon", seed, "given", 20) for seed in range(2)]
    assert not any("One seed" in n for n in make_table(baselines + several, "tfidf_logreg").notes)


def test_an_interval_that_ends_at_zero_is_explained_beside_its_p():
    lines = [line(name, 0, "given", 40) for name in ("tfidf_logreg", "tfidf_svm", "auto")]
    lines += [line("supcon", 0, "given", 20)]
    predicted = lines[2]["predictions"]  # three rows more are right, which many resamples lack
    wrong = [row for row, name in enumerate(TRUTH) if predicted[row] != name]
    for row in wrong[:3]:
        predicted[row] = TRUTH[row]
    table = make_table(lines, "tfidf_logreg")
    _, same, half, better = table.rows
    assert half.low == 0 < half.difference and half.p >= 0.25
    assert same.low == same.high == 0 and better.low > 0
    (note,) = (note for note in table.notes if "that ends at 0" in note)
    assert note.startswith("Interval of auto that ends at 0") and "as tfidf_logreg" in note


def test_another_reference_turns_the_sign(given, drawn):
    _, lines = drawn
    turned = make_table(lines, "supcon")
    assert turned.rows[0].difference == pytest.approx(-drawn[0].rows[1].difference)
    assert turned.rows[0].p == pytest.approx(drawn[0].rows[1].p)
    assert not any(row.better for row in turned.rows)


def test_without_the_reference_there_are_no_tests():
    table = make_table(resampled({0: 1, 1: 2}), "tfidf_logreg")
    assert table.rows[0].p is None and any("has no fit here" in note for note in table.notes)
    assert make_table([], "tfidf_logreg").notes == ["No fit has ended."]


def test_markdown_is_bold_only_where_it_is_significantly_better(given):
    lines = to_grid(given).markdown().splitlines()
    bold = [text for text in lines if "**" in text]
    assert len(bold) == 1 and bold[0].startswith("| ce\\_ce |")
    assert len({text.count("|") for text in lines if text.startswith("|")}) == 1
    cells = [cell.strip() for cell in bold[0].split("|")[1:-1]]
    assert [at for at, cell in enumerate(cells) if "**" in cell] == [4, 6]
    assert "| reference |" in lines[2]


def test_latex_has_even_rows_and_no_bare_signs(given):
    text = to_grid(given).latex()
    body = text[text.index(r"\midrule") : text.index(r"\bottomrule")].splitlines()[1:]
    assert all(len(re.findall(r"(?<!\\)&", row)) == 9 and row.endswith(r"\\") for row in body)
    assert text.count(r"\textbf") == 2 and "±" not in text and not re.search(r"(?<!\\)_", text)
    bare = text.replace(r"% needs", "")
    assert not re.search(r"(?<!\\)%", bare) and text.count("{") == text.count("}")


def test_csv_and_json_hold_the_figures_unrounded(drawn, tmp_path):
    table, _ = drawn
    to_grid(table).write(tmp_path, "table", to_csv_rows(table))
    read = list(csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text())))
    for row, cells in zip(table.rows, read, strict=True):
        assert cells["system"] == row.name and int(cells["fits"]) == 4
        assert float(cells["f1_weighted_mean"]) == row.means["f1_weighted"]
        assert cells["p_holm"] == ("" if row.p_holm is None else str(row.p_holm))
    assert json.loads(json.dumps(to_csv_rows(table)))[1]["significantly_better"] is True
    assert (tmp_path / "table.md").read_text(encoding="utf-8") == to_grid(table).markdown() + "\n"
    assert (tmp_path / "table.tex").read_text(encoding="utf-8") == to_grid(table).latex() + "\n"


def test_scores_of_each_script_are_means_over_the_fits():
    lines = resampled({0: 30}, "tfidf_logreg") + resampled({0: 10, 1: 12})
    assert script_grid(make_table(lines, "tfidf_logreg")) is None
    for line, score in zip(lines, (0.5, 0.6, 0.8), strict=True):
        of = {"n": 60, "f1_weighted": score}, {"n": 1030, "f1_weighted": 0.25}
        line["by_script"] = dict(zip(("Arabic", "Latin"), of, strict=True))
    grid = script_grid(make_table(lines, "tfidf_logreg"))
    assert grid.headings == ["system", "Arabic (60)", "Latin (1,030)"]
    assert grid.rows == [
        ["tfidf_logreg", "50.0", "25.0"],
        ["supcon", "70.0 ± 14.1", "25.0 ± 0.0"],
    ]
    assert "Of the fits" not in grid.notes[0]
    lines[1]["by_script"] = {}  # too few rows of a script there
    grid = script_grid(make_table(lines, "tfidf_logreg"))
    assert grid.rows[1] == ["supcon", "80.0", "25.0"]
    assert grid.notes[0].endswith("Of the fits so many have 50: Arabic in 50%, Latin in 50%.")
    # A cross-validation's are of all rows that its folds held out.
    lines[2]["folds"] = [{"rows": {"train": 18, "test": 9}, "test": lines[2]["test"]}] * 3
    lines[2]["texts"] = 27
    grid = script_grid(make_table([lines[2]], "supcon"))
    assert grid.rows == [["supcon", "80.0", "25.0"]] and "Of the fits" not in grid.notes[0]


def test_baselines_that_are_not_adjusted_for_rare_classes_are_told():
    lines = resampled({0: 30}, "tfidf_logreg") + resampled({0: 30}, "tfidf_svm")
    lines += resampled({0: 10, 1: 12})
    lines[0]["logit_adjustment"] = 0.5
    (note,) = [n for n in make_table(lines, "tfidf_logreg").notes if n.startswith("logit_adj")]
    assert note.endswith("in the baselines too, but not in tfidf_svm.")


def test_the_recipe_of_each_fold_is_counted_once():
    scores = {"n": 9, "accuracy": 0.5, "f1_macro": 0.5, "f1_weighted": 0.5}
    folds = [{"rows": {"train": 18, "test": 9}, "test": scores}] * 3
    whole = {"system": "auto", "objective": "auto", "seed": 0, "split": "cv3-0", "seconds": 3.0}
    whole |= {
        "test": scores,
        "texts": 27,
        "folds": folds,
        "recipes": ["n-grams", "best", "n-grams"],
    }
    (note,) = [n for n in make_table([whole], "auto").notes if n.startswith("auto: the recipe")]
    assert "dev rows: n-grams (2), best (1). " in note


def test_rows_that_no_fold_holds_out_are_told():
    scores = {"n": 9, "accuracy": 0.5, "f1_macro": 0.5, "f1_weighted": 0.5}
    for test, told in ((9, "(27 rows in 3 folds, the same"), (8, "(24 rows in 3 folds, the same")):
        folds = [{"rows": {"train": 27 - test, "test": test}, "test": scores}] * 3
        whole = {"system": "auto", "objective": "auto", "seed": 0, "split": "cv3-0", "seconds": 3.0}
        notes = make_table([{**whole, "test": scores, "texts": 27, "folds": folds}], "auto").notes
        assert told in notes[0]
        assert notes[0].endswith("; 3 rows, the only text of a class, in none).") == (test == 8)


def test_the_interval_of_accuracy_is_of_the_mean_over_all_deals():
    lines = []
    for seed, accuracy in enumerate((0.5, 0.7, 0.9)):
        scores = {"n": 9, "accuracy": accuracy, "f1_macro": accuracy, "f1_weighted": accuracy}
        lines.append(
            {"system": "tfidf_logreg", "objective": "tfidf_logreg", "seed": seed}
            | {"split": f"cv3-{seed}", "seconds": 3.0, "test": scores, "texts": 27}
            | {"folds": [{"rows": {"train": 18, "test": 9}, "test": scores}] * 3}
        )
    (row,) = make_table(lines, "tfidf_logreg").rows
    assert row.accuracy_interval == pytest.approx(wilson(0.7, 27))
    assert row.fits == 9 and row.means["seconds"] == 1.0, "of a fold"


def test_steps_are_told_where_some_systems_take_twice_as_many():
    def steps(**counts):
        lines = [
            {**line(name, seed, f"resampled-{seed}", 9), "steps": count}
            for name, count in counts.items()
            for seed in range(2)
        ]
        lines += resampled({0: 20, 1: 21}, name="tfidf_logreg")
        return [note for note in make_table(lines, "tfidf_logreg").notes if "Steps" in note]

    assert steps(superloss=120, supcon=100) == [] == steps(superloss=8)
    (told,) = steps(superloss=120, cross_entropy=15)
    assert told.startswith("Steps of training: superloss 120, cross_entropy 15.")


def test_own_rules_are_named_where_rare_classes_weigh_more():
    lines = [{**one, "logit_adjustment": 1.0} for one in resampled({0: 20}, name="tfidf_logreg")]
    lines += resampled({0: 9}, name="cross_entropy", own=12)
    (told,) = [n for n in make_table(lines, "tfidf_logreg").notes if "rare classes" in n]
    assert told.endswith("too, but not in cross_entropy (own rule).")
