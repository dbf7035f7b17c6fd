"""Tables: alignment by what a terminal shows, escaping that no label can break."""

import math
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from superconext.probe import ADJUSTED
from superconext.report.table import (
    Grid,
    agreement_line,
    clean,
    clip,
    display_width,
    escape_markdown,
    fold_lines,
    interval,
    judged,
    markdown,
    probability,
    render,
    score_table,
    script_table,
    spread,
    told_overlap,
    untested_line,
    verdict,
)

MARK = "\u200e"
ROWS = [
    {"model": "superloss", "accuracy": 0.86, "macro F1": 0.8554, "seconds": 31.24, "n": 200},
    {"model": "majority class", "accuracy": 0.5, "macro F1": None, "seconds": 0.01, "n": 200},
]


def test_numbers_are_right_aligned_and_text_left_aligned():
    text = render(ROWS, ["model", "accuracy", "macro F1", "seconds", "n"], fmt={"seconds": ".1f"})
    assert text.split("\n") == [
        "model           accuracy  macro F1  seconds    n",
        "--------------  --------  --------  -------  ---",
        "superloss          0.860     0.855     31.2  200",
        "majority class     0.500         -      0.0  200",
    ]


def test_one_specification_for_all_columns():
    assert "0.86000" in render(ROWS, ["accuracy"], fmt=".5f")
    assert "86.0%" in render(ROWS, ["accuracy"], fmt=".1%")


def test_no_rows_leave_heading_and_rule():
    assert render([], ["model", "accuracy"]) == "model  accuracy\n-----  --------"


def test_a_column_of_numbers_and_text_is_left_aligned():
    text = render([{"a": 7}, {"a": "seven"}, {"a": None}], ["a"])
    assert text.split("\n")[2:] == ["7", "seven", "-"]


def test_numpy_numbers_count_as_numbers_and_true_does_not():
    rows = [{"a": np.float32(0.25), "b": np.int64(7), "c": True}]
    assert render(rows, ["a", "b", "c"]).split("\n")[-1] == "0.250  7  True"


def test_not_a_number_is_shown_as_such_and_missing_as_a_dash():
    last = render([{"a": math.nan, "b": None}], ["a", "b", "c"]).split("\n")[-1]
    assert last.split() == ["nan", "-", "-"]


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("", 0),
        ("abc", 3),
        ("إيجابي", 6),
        ("سلبي", 4),
        ("مُدَرِّسَة", 5),  # vowel signs stand on their letters
        ("e\u0301", 1),
        ("评价", 4),
        ("ｆｕ", 4),
        ("a\u200db", 2),
        ("한", 2),
        ("\u1112\u1161\u11ab", 2),  # the same syllable in three parts
    ],
)
def test_display_width(text, cells):
    assert display_width(text) == cells


def test_columns_line_up_whatever_the_script():
    labels = ["neg", "إيجابي", "评价", "مُدَرِّسَة", "e\u0301te\u0301"]
    lines = render([{"class": name, "f1": 0.5} for name in labels], ["class", "f1"]).split("\n")
    assert {display_width(line) for line in lines} == {len("class  f1") + 4}


def test_right_to_left_cells_keep_the_numbers_in_their_columns():
    row = {"class": "سلبي", "precision": 0.1, "recall": 0.9}
    last = render([row], ["class", "precision", "recall"]).split("\n")[-1]
    assert last.startswith(f"{MARK}سلبي{MARK} ")
    # Every number is preceded by a strong left-to-right character, so none joins the label.
    strong = [unicodedata.bidirectional(c) for c in last if c == MARK or c.isalpha()]
    assert strong[0] == strong[-1] == "L"
    assert last.index("0.100") < last.index("0.900")
    assert MARK not in render(ROWS, ["model", "accuracy"])


def test_a_label_cannot_start_a_new_line():
    text = render([{"class": "a\nb\tc\x1b[31m\u2028d", "n": 1}], ["class", "n"])
    assert text.count("\n") == 2
    assert "a b c [31m d" in text


@given(st.text(max_size=40), st.integers(1, 12))
def test_clip_never_exceeds_its_width(text, width):
    text = clean(text)
    shown = clip(text, width)
    assert display_width(shown) <= width
    assert shown == text or "…" in shown


def test_clip_keeps_what_tells_numbered_names_apart():
    names = [f"a rather long class name {i}" for i in range(20)]
    assert len({clip(name, 12) for name in names}) == 20
    assert clip("abcdefghij", 7) == "abcd…ij"
    assert clip("short", 5) == "short"
    assert not unicodedata.combining(clip("كتابةطويلةجداًُ", 7)[-3])


def test_clean_drops_direction_controls_and_surrogates():
    assert clean("\u202eevil\u202c \ud800") == "evil \ufffd"
    assert clean("  a \r\n b ") == "a b"


def test_markdown_table():
    assert markdown(ROWS, ["model", "accuracy", "n"]).split("\n") == [
        "| model | accuracy | n |",
        "| --- | ---: | ---: |",
        "| superloss | 0.860 | 200 |",
        "| majority class | 0.500 | 200 |",
    ]
    lines = markdown([{"a": -0.5}], ["a", "b"], fmt=".1f").split("\n")
    assert lines[1:] == ["| ---: | --- |", "| -0.5 | - |"], "a column without values is no number"


@pytest.mark.parametrize(
    ("label", "escaped"),
    [
        ("a|b", "a&#124;b"),
        ("a\\|b", "a\\\\&#124;b"),
        ("<script>", "\\<script\\>"),
        ("x-->", "x--\\>"),
        ("[x](y)", "\\[x\\](y)"),
        ("train_1.tsv", "train\\_1.tsv"),
        ("# head", "\\# head"),
        ("- item", "\\- item"),
        ("3. item", "3\\. item"),
        ("3.5", "3.5"),
        ("TF-IDF + regression", "TF-IDF + regression"),
        ("&lt;", "\\&lt;"),
        ("سلبي", "سلبي"),
    ],
)
def test_escape_markdown(label, escaped):
    assert escape_markdown(label) == escaped


HOSTILE = st.text(
    st.sampled_from("|\\`*_[]()<>#+-=!~&;$:\"'{}. \n\t1a2سل") | st.characters(), max_size=25
)


@given(HOSTILE, HOSTILE)
def test_no_label_changes_the_shape_of_a_markdown_table(label, heading):
    lines = markdown([{"class": label, "n": 1}], ["class", "n"]).split("\n")
    assert len(lines) == 3
    assert [line.count("|") for line in lines] == [3, 3, 3]
    assert markdown([{heading: "x"}], [heading]).count("|") == 6


@given(HOSTILE)
def test_a_markdown_reader_shows_the_label_itself(label):
    reader = pytest.importorskip("markdown_it").MarkdownIt("commonmark").enable("table")
    tokens = reader.parse(markdown([{"class": label, "n": 1}], ["class", "n"]))
    cells = [token for token in tokens if token.type == "inline"]
    assert len(cells) == 4
    assert all(child.type in ("text", "text_special") for child in cells[2].children)
    assert "".join(child.content for child in cells[2].children) == clean(label).replace(
        "\x00", "\ufffd"
    )


GRID = Grid(["system", "F1"], [["a_b", "71.0 ± 2.0"], ["c", "-"]], {(0, 1)}, ["A note."])


def test_a_grid_is_written_in_three_forms():
    assert GRID.text().split("\n") == [
        "system          F1",
        "------  -----------",
        "a_b     71.0 ± 2.0*",
        "c                -",
        "",
        "A note.",
    ]
    assert Grid(["a", "b"], [["1", "2"]], {(0, 0), (0, 1)}).text().endswith("1  2")
    noted = Grid(["a", "n"], [["b", "1"]], {(0, 0)}, ["Seconds: wall time. Bold: better than c."])
    assert noted.text().endswith("b*  1\n\nSeconds: wall time. *: better than c.")
    assert GRID.markdown().split("\n") == [
        "| system | F1 |",
        "| --- | ---: |",
        "| a\\_b | **71.0 ± 2.0** |",
        "| c | - |",
        "",
        "- A note.",
    ]
    latex = GRID.latex()
    odd = Grid(["system", "x"], [["[ours] a|b", "1"], ["*b", "2"]]).latex()
    assert r"{[}ours] a\textbar{}b & 1" in odd and "{*}b & 2" in odd
    assert r"\begin{tabular}{lr}" in latex
    assert r"a\_b & \textbf{71.0 $\pm$ 2.0} \\" in latex


def test_latex_takes_no_sign_of_a_table_for_its_own():
    odd = "100% #1 $x$ {y} a&b _ ~ ^ < > \\n"
    lines = Grid([odd, "F1"], [[odd, "1"]], notes=[odd, "Bold: best."]).latex().splitlines()
    shown = (
        r"100\% \#1 \$x\$ \{y\} a\&b \_ \textasciitilde{} \textasciicircum{} $<$ $>$ "
        r"\textbackslash{}n"
    )
    assert rf"{shown} & F1 \\" in lines and rf"{shown} & 1 \\" in lines
    note = rf"\multicolumn{{2}}{{p{{\linewidth}}}}{{\footnotesize {shown} Bold: best.}} \\"
    assert note in lines


def test_a_grid_writes_its_files_and_unrounded_rows(tmp_path):
    GRID.write(tmp_path, "t", [{"system": "a_b", "F1": 0.71}])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv", "t.md", "t.tex"]
    assert (tmp_path / "t.md").read_text(encoding="utf-8") == GRID.markdown() + "\n"
    assert (tmp_path / "t.csv").read_text() == "system,F1\na_b,0.71\n"


def test_notes_are_left_out_where_there_are_none():
    assert Grid(["a"], [["b"]]).text() == "a\n-\nb"


def test_weighted_f1_by_script():
    def of(*scores):
        by_script = {"Arabic": {"n": 1200, "f1_weighted": scores[0]}}
        by_script["Latin"] = {"n": 60, "f1_weighted": scores[1]}
        return {"test": {"n": 1260, "by_script": by_script}}

    plain = {"test": {"n": 1260}, "reported_split": "test"}
    assert script_table({**plain, "baselines": {"majority": {"test": {"n": 1260}}}}) == ""
    baselines = {"tfidf_logreg": of(0.5, 0.25)}
    text = script_table({**of(0.75, 0.5), "reported_split": "test", "baselines": baselines})
    lines = text.splitlines()
    assert lines[1].split("  ")[0] == "model" and lines[1].endswith("Arabic (1,200)  Latin (60)")
    assert [line.split()[-2:] for line in lines[3:]] == [["0.500", "0.250"], ["0.750", "0.500"]]


def test_weighted_f1_by_script_names_what_predicts():
    test = {"n": 60, "by_script": {"Latin": {"n": 60, "f1_weighted": 0.5}}}
    metrics = {"reported_split": "test", "test": test, "companion": "n-grams"}
    for more, name in (
        ({}, "superconext"),
        ({"combined": {}}, "superconext, trained encoder + n-grams"),
        ({"combined": {}, "probe_title": ""}, "superconext, n-grams"),
    ):
        assert script_table(metrics | more).splitlines()[-1].split("  ")[0] == name


def test_rows_of_scripts_with_few_are_told_as_left_out():
    def told(n):
        test = {"n": n, "by_script": {"Arabic": {"n": 1200, "f1_weighted": 0.75}}}
        return script_table({"reported_split": "test", "test": test}).splitlines()[0]

    assert told(1200) == "weighted F1 by script (rows)"
    assert told(1207).startswith("weighted F1 by script (rows); 7 rows left out, of scripts with")


def test_rows_of_all_scripts_shown_are_none_of_those_left_out():
    scripts = {name: {"n": n, "f1_weighted": 0.75} for name, n in (("Arabic", 90), ("Latin", 60))}
    test = {"n": 151, "by_script": scripts}
    assert "; 1 row left out" in script_table({"reported_split": "test", "test": test})


def test_a_cross_validation_is_told_with_its_folds_and_what_they_leave_out():
    folds = {"count": 20, "repeats": 4, "interval": (0.6, 0.75), "texts": 90, "not_held_out": 0}
    folds["accuracy"] = {"mean": 0.7, "sd": 0.05}
    above, below = fold_lines({"n": 100, "folds": folds})
    assert above == ("cross-validated, 100 rows, each predicted while held out (5 folds, 4 times)")
    assert below.splitlines() == [
        "",
        "over 20 folds: accuracy 70.0 ± 5.0 (percent, mean ± standard deviation)",
        "95% interval of the accuracy: 60.0 to 75.0 (Wilson, 90 different texts)",
    ]
    once = {**folds, "count": 5, "repeats": 1}
    assert fold_lines({"n": 100, "folds": once})[0].endswith("while held out (5 folds)")
    earlier = fold_lines({"n": 100, "folds": {**folds, "not_held_out": 2}})[1]
    assert earlier.endswith("2 rows, an only text of a class or in folds that were not fitted")
    for lost, only, told in (
        (5, 2, "2 rows, the only text of a class; 3 rows, in folds that were not fitted"),
        (2, 2, "2 rows, the only text of a class"),
        (3, 0, "3 rows, in folds that were not fitted"),
    ):
        some = {**folds, "not_held_out": lost, "only_texts": only}
        assert fold_lines({"n": 100, "folds": some})[1].endswith(f"\nnever held out: {told}")


def test_texts_that_a_run_has_seen_are_counted_over_both_splits():
    rest = {"accuracy": 0.5, "n": 7}
    seen = {"train": 2, "dev": 1, "texts": 10, "without": rest}
    assert told_overlap(seen) == (
        "3 of 10 texts are among the rows of the run (2 train and 1 dev); accuracy without them "
        "0.500 (7 rows)"
    )
    alone = {"train": 0, "dev": 1, "without": None}
    assert told_overlap(alone) == (
        "1 text is among the rows of the run (1 dev); there are no others to evaluate it on"
    )


def test_a_class_without_rows_has_no_scores_but_its_support():
    none = {"precision": 0.0, "recall": 0.0, "f1": 0.0, "support": 0}
    some = {**none, "support": 3}
    unknown = {"precision": None, "recall": None, "f1": None, "support": 0}
    assert judged({"a": some, "b": none}) == {"a": some, "b": unknown}


def test_a_spread_of_nothing_is_told_and_no_spread_is_not():
    assert [spread(0.714, None), spread(0.714, 0.0), spread(0.714, 0.0126)] == [
        "71.4", "71.4 ± 0.0", "71.4 ± 1.3",
    ]  # fmt: skip
    assert spread(0.71432, 0.01, factor=1, digits=3) == "0.714 ± 0.010"


def test_the_limits_of_a_difference_have_signs():
    assert interval(-0.0124, 0.03) == "-1.2 to +3.0"
    assert interval(0.0, None) == interval(None, 0.0) == "-"


def test_small_p_values_are_told_as_small():
    assert [probability(p) for p in (None, 0.0009, 0.001, 0.0104)] == [
        "-", "< 0.001", "0.001", "0.010",
    ]  # fmt: skip


def test_the_seconds_of_a_run_stand_once_and_the_part_s_own_scores_beside_it():
    scores = {"accuracy": 0.5, "f1_macro": 0.5, "f1_weighted": 0.5, "n": 10}
    alone = {"test": {**scores, "accuracy": 0.25}}
    metrics = {"reported_split": "test", "test": scores, "seconds": 7.0}
    assert score_table(metrics).splitlines()[-1].split()[-4:] == ["0.500"] * 3 + ["7.0"]
    both = {"encoder_alone": alone, "combined": {"test": scores}, "companion": "n-grams"}
    part, whole = score_table(metrics | both).splitlines()[-2:]
    assert part.startswith("superconext, trained encoder alone")
    assert part.split()[-4:] == ["0.250", "0.500", "0.500", "-"]
    assert "n-grams" in whole
    assert whole.split()[-4:] == ["0.500"] * 3 + ["7.0"]
    assert "(no test file: the run chose its settings on them)" not in score_table(metrics)
    alone = score_table(metrics | both | {"probe_title": ""}).splitlines()[-1]
    assert alone.startswith("superconext, n-grams ") and "encoder" not in score_table(
        metrics | both | {"probe_title": ""}
    )
    own = {**scores, "accuracy": 0.75}
    others = {"majority": {"test": own, "seconds": 0.25}, "tfidf_logreg": {"dev": own}}
    shown = score_table({**metrics, "baselines": others, "native": {"test": own}}).splitlines()
    assert [line.split()[-4:] for line in shown[3:]] == [
        ["0.750", "0.500", "0.500", "0.2"],
        ["0.750", "0.500", "0.500", "-"],
        ["0.500", "0.500", "0.500", "7.0"],
    ]
    assert "TF-IDF" not in "".join(shown), "which has no scores on these rows"
    dev = {**metrics, "reported_split": "dev", "dev": {**scores, "n": 20}}
    assert "(no test file: the run chose its settings on them)" in score_table(dev)
    for nothing in ({"dev": {**scores, "n": 19}}, {"cv": scores}, {"chosen_on_dev": False}):
        assert "rows (no test file)\n" in score_table({**dev, **nothing})


def test_the_model_is_told_beside_the_best_baseline():
    others = {"tfidf_logreg": {"test": {"accuracy": 0.573}}, "majority": {}}
    test = {"accuracy": 0.5, "n": 1000}
    metrics = {"reported_split": "test", "test": test, "baselines": others}
    name = "TF-IDF + logistic regression"
    said = verdict(metrics, ["--preset", "--hidden-size"])
    ahead = f"{name} is 7.3 points of accuracy ahead on the test rows"
    assert said.startswith(f"{ahead}; omit --preset, --hidden-size, so that train compares recip")
    assert "compares recipes" not in verdict(metrics)
    test["n"] = 100
    chance = "rows; may be chance (95% interval of the model's accuracy: 40.4 to 59.6); "
    assert chance in verdict(metrics)
    few = {"n": 18, "accuracy": 16 / 18}
    full = {"test": {"accuracy": 1.0}}
    said = verdict({"reported_split": "test", "test": few, "baselines": {"tfidf_logreg": full}})
    assert "11.1 points" in said, "two rows, though 100 is outside the model's own interval"
    assert "; may be chance (95% interval of the baseline's accuracy: 82.4 to 100.0); " in said
    test["accuracy"] = 0.573
    assert verdict(metrics, ["--preset"]) == (
        f"the model is as accurate as the best baseline ({name}) on the test rows; more text "
        "(--unlabelled) may help"
    )
    test["accuracy"] = 0.5740
    assert "is 0.1 points of accuracy ahead of the best" in verdict(metrics)
    test |= {"accuracy": 0.6, "folds": {"texts": 10_000}}
    ahead = (
        f"the model is 2.7 points of accuracy ahead of the best baseline ({name}) on the test rows"
    )
    assert verdict(metrics, ["--preset"]) == ahead, "what is counted are texts"
    assert verdict({**metrics, "baselines": {}}) == ""
    others["pretrained_logreg"] = {"test": {"accuracy": 0.7}}
    assert "frozen pretrained encoder + logistic regression is" in verdict(metrics, ["--preset"])
    itself = {**metrics, "probe_title": "frozen pretrained encoder"}
    assert verdict(itself) == (
        "the model, frozen pretrained encoder + logistic regression, is 2.7 points of accuracy "
        f"ahead of the best other baseline ({name}) on the test rows"
    )
    assert "10.0 points" in verdict({**itself, "combined": {}})


def test_labels_that_training_never_sees_are_named_where_most_rows_have_them():
    others = {"majority": {"test": {"accuracy": 0.1}}}
    for unseen, told in ((5, False), (6, True)):
        support = {"pos": {"support": 10 - unseen}, "autre": {"support": unseen}}
        metrics = {
            "reported_split": "test",
            "train": {"per_class": {"pos": {"support": 8}, "neg": {"support": 8}}},
            "test": {"accuracy": 0.1, "n": 10, "per_class": support},
            "baselines": others,
        }
        for accuracy in (0.0, 0.1, 0.2):
            metrics["test"]["accuracy"] = accuracy
            said = verdict(metrics, ["--preset"])
            own = "; 6 of 10 test rows have labels that training never sees: rename them, or train"
            assert (own in said) == told
            assert ("--unlabelled" in said) == (not told and accuracy < 0.2)


def test_adjusted_baselines_of_equal_classes_are_not_shown_twice():
    plain = {"accuracy": 0.5, "f1_macro": 0.4, "f1_weighted": 0.4, "n": 10}
    other = {**plain, "f1_macro": 0.41}
    metrics = {"reported_split": "test", "test": plain, "seconds": 1.0}
    for adjusted, shown in ((plain, 0), (other, 1)):
        told = "adjusted: predicts rare classes more often, as superconext's"
        like = {"test": adjusted}  # of a cross-validation, which keeps no settings
        baselines = {"tfidf_logreg": {"test": plain}, f"tfidf_logreg{ADJUSTED}": like}
        table = score_table({**metrics, "baselines": baselines})
        assert table.count("logistic regression, adjusted") == shown
        assert (told in table) == bool(shown) == ("adjusted:" in table)


def test_adjusted_baselines_are_shown_where_any_of_them_has_scores_of_its_own():
    plain = {"accuracy": 0.5, "f1_macro": 0.4, "f1_weighted": 0.4, "n": 10}
    other = {**plain, "f1_macro": 0.41}
    baselines = {name: {"test": plain} for name in ("tfidf_logreg", "vectors_logreg")}
    baselines |= {f"tfidf_logreg{ADJUSTED}": {"test": other}}
    baselines |= {f"vectors_logreg{ADJUSTED}": {"test": plain}}
    table = score_table({"reported_split": "test", "test": plain, "baselines": baselines})
    assert table.count("logistic regression, adjusted") == 2


def test_annotators_that_agree_by_chance_alone_are_told_so():
    assert agreement_line({"human_ceiling": None}) == "no text has the labels of two annotators"
    said = agreement_line({"human_ceiling": 0.0, "alpha": 0.0})
    assert said.startswith(
        "annotators: Krippendorff's alpha 0.000; one against another, macro F1 0"
    )
    assert "alpha -;" in agreement_line({"human_ceiling": 0.5, "alpha": None})


@pytest.mark.parametrize(
    ("truth", "predicted", "classes", "told"),
    [
        ("aabb", "abab", "ab", ""),
        ("aabb", "abab", "abc", "1 of 3 classes has no row, so its accuracy is unknown: 'c'; macro "
         "F1 is of the other 2"),
        ("aabb", "abac", "abcd", "2 of 4 classes have no row, so their accuracy is unknown: 'c', "
         "'d'; macro F1 is of the 3 that occur or are predicted"),
        ("aaxx", "aaaa", "ab", "1 of 2 classes has no row, so its accuracy is unknown: 'b'; macro "
         "F1 is of the 2 that occur or are predicted"),
        ("aaaa", "aaaa", "ab", "1 of 2 classes has no row, so its accuracy is unknown: 'b'; macro "
         "F1 is of the other one alone"),
    ],
)  # fmt: skip
def test_macro_f1_is_of_the_classes_that_are_told(truth, predicted, classes, told):
    assert untested_line(truth, predicted, classes) == told
