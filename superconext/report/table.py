"""Tables of text: aligned for a terminal, as GitHub's Markdown, and as LaTeX and CSV files.

`Grid` holds finished cells and writes itself in each form; `render` and `markdown` make one
from rows of values. Labels come from users' files, in any script: they are escaped, and
aligned by the cells a terminal gives them, not by their number of characters.

The scores of a run are such tables: the model and its baselines, each class, with intervals.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from pathlib import Path
from typing import Any

from superconext.core.errors import listed, plural
from superconext.core.files import write_csv, write_text
from superconext.data.lines import shown
from superconext.probe import ADJUSTED, METRICS

MISSING = "-"

#: Left-to-right mark. Without it a terminal that orders right-to-left text by itself
#: counts the numbers after an Arabic label as part of that label and swaps the columns.
_MARK = "\u200e"
_BIDI_CONTROLS = re.compile("[\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069]")
_RIGHT_TO_LEFT = ("R", "AL")
_INLINE = re.compile(r"([\\`*_\[\]<>~$&])")
_LINE_START = re.compile(r"^(#|=|\d*[-+.)](?=[-\s]|$))")
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "−": r"$-$",
    "<": r"$<$",
    ">": r"$>$",
    "|": r"\textbar{}",
    **{sign: "\\" + sign for sign in "&%$#_{}"},
}
_LATEX_SIGN = re.compile("|".join(map(re.escape, _LATEX)))

Format = str | Mapping[str, str]


@dataclass(frozen=True)
class Grid:
    """A table of finished cells.

    Args:
        headings: one for each column.
        rows: cells as text, as many in each row as there are headings.
        bold: (row, column) of cells that stand out: with a star in text, else in bold type.
        notes: sentences below the table, a line each.
        right: columns that are aligned to the right; None for all but the first.
    """

    headings: list[str]
    rows: list[list[str]]
    bold: set[tuple[int, int]] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    right: Collection[int] | None = None

    @classmethod
    def of(
        cls, rows: Sequence[Mapping[str, Any]], columns: Sequence[str], fmt: Format = ".3f"
    ) -> Grid:
        """A grid of rows of values; see `render` for the arguments."""
        specs = [fmt if isinstance(fmt, str) else fmt.get(name, ".3f") for name in columns]
        cells = [
            [_cell(row.get(name), spec) for name, spec in zip(columns, specs, strict=True)]
            for row in rows
        ]
        right = [at for at, name in enumerate(columns) if _numeric(rows, name)]
        return cls(list(columns), cells, right=right)

    def text(self) -> str:
        """Aligned for a terminal by `display_width`, notes below, no final newline.

        Bold cells have a star, unless the whole row is bold. A cell with right-to-left letters
        stands between left-to-right marks (no width, not seen), which keep the columns in order.
        """
        whole = {row for row, _ in self.bold if self._is_bold(row)}
        starred = {cell for cell in self.bold if cell[0] not in whole}
        marked = replace(self, bold=starred)._marked(clean, "{}*")
        texts = [list(map(clean, self.headings)), *marked]
        for column in {column for _, column in starred}:  # the others of it line up
            for line in texts:
                line[column] += "" if line[column].endswith("*") else " "
        widths = [max(map(display_width, column)) for column in zip(*texts, strict=True)]
        right = self.right_aligned
        texts.insert(1, ["-" * width for width in widths])
        lines = [
            "  ".join(
                _padded(cell, width, side)
                for cell, width, side in zip(line, widths, right, strict=True)
            ).rstrip(" ")
            for line in texts
        ]
        notes = [note.replace("Bold: ", "*: ") for note in self.notes]
        return "\n".join([*lines, *([""] if notes else []), *notes])

    def markdown(self) -> str:
        """GitHub's Markdown, text escaped, notes as a list below, no final newline."""
        rule = ["---:" if side else "---" for side in self.right_aligned]
        lines = [
            [_markdown_cell(name) for name in self.headings],
            rule,
            *self._marked(_markdown_cell, "**{}**"),
        ]
        notes = [f"- {escape_markdown(note)}" for note in self.notes]
        table = ["| " + " | ".join(line) + " |" for line in lines]
        return "\n".join([*table, *([""] if notes else []), *notes])

    def latex(self) -> str:
        """A tabular for the package booktabs, with the notes as its last row."""
        count = len(self.headings)
        sides = "".join("r" if side else "l" for side in self.right_aligned)
        notes = " ".join(_latex(note) for note in self.notes)
        return "\n".join(
            [
                r"% needs \usepackage{booktabs}",
                rf"\begin{{tabular}}{{{sides}}}",
                r"\toprule",
                " & ".join(_latex(name) for name in self.headings) + r" \\",
                r"\midrule",
                *(" & ".join(line) + r" \\" for line in self._marked(_latex, r"\textbf{{{}}}")),
                r"\bottomrule",
                rf"\multicolumn{{{count}}}{{p{{\linewidth}}}}{{\footnotesize {notes}}} \\",
                r"\end{tabular}",
            ]
        )

    def write(
        self, folder: Path, stem: str, records: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        """Write STEM.md, STEM.tex and, given unrounded rows of values, STEM.csv."""
        write_text(folder / f"{stem}.md", self.markdown() + "\n")
        if records is not None:
            write_csv(folder / f"{stem}.csv", records)
        write_text(folder / f"{stem}.tex", self.latex() + "\n")

    @property
    def right_aligned(self) -> list[bool]:
        right = range(1, len(self.headings)) if self.right is None else self.right
        return [at in right for at in range(len(self.headings))]

    def _is_bold(self, row: int) -> bool:
        return all((row, column) in self.bold for column in range(len(self.headings)))

    def _marked(self, escape: Callable[[str], str], bold: str) -> list[list[str]]:
        return [
            [
                bold.format(escape(cell)) if (row, column) in self.bold else escape(cell)
                for column, cell in enumerate(cells)
            ]
            for row, cells in enumerate(self.rows)
        ]


def render(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    *,
    fmt: Format = ".3f",
) -> str:
    """A plain text table: heading, rule, one line for each row, no final newline.

    Columns that hold numbers alone are right-aligned, the others left-aligned. rows: a missing key
    or None shows as "-". columns: keys of the rows in the order of the table; also the headings.
    fmt: format specification of fractions, one for all or `{column: specification}` (".3f" where
    absent); whole numbers are printed as they are.
    """
    return Grid.of(rows, columns, fmt).text()


def markdown(
    rows: Sequence[Mapping[str, Any]],
    columns: Sequence[str],
    *,
    fmt: Format = ".3f",
) -> str:
    """The same table in GitHub's Markdown, text escaped, no final newline."""
    return Grid.of(rows, columns, fmt).markdown()


def spread(mean: float, deviation: float | None, factor: float = 100, digits: int = 1) -> str:
    """A mean and its standard deviation as a cell, in percent by default."""
    text = f"{factor * mean:.{digits}f}"
    return text if deviation is None else f"{text} ± {factor * deviation:.{digits}f}"


def probability(value: float | None) -> str:
    """A p-value as a cell; None is missing."""
    if value is None:
        return MISSING
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def interval(low: float | None, high: float | None) -> str:
    """The limits of a difference as a cell, in points (hundredths); None is missing."""
    if low is None or high is None:
        return MISSING
    return f"{100 * low:+.1f} to {100 * high:+.1f}"


def display_width(text: str) -> int:
    """Terminal cells of `text`: wide characters 2, combining and format characters 0."""
    return sum(_cells(character) for character in text)


def isolated(text: str) -> str:
    """A label for a line in English; one with letters written from right to left is put between
    marks, so that what stands beside it keeps its place."""
    kinds = map(unicodedata.bidirectional, text)
    return f"\u2068{text}\u2069" if {"R", "AL"} & {*kinds} else text


def clip(text: str, width: int) -> str:
    """`text` shortened to `width` cells with an ellipsis inside it.

    The last third is kept, because that is where numbered names differ. Marks stay with
    their letter.
    """
    if display_width(text) <= width:
        return text
    tail = max(width - 1, 0) // 3
    head = max(width - 1, 0) - tail
    at, used = 0, 0
    while used + _cells(text[at]) <= head:
        used += _cells(text[at])
        at += 1
    back, used = len(text), 0
    while used + _cells(text[back - 1]) <= tail:
        used += _cells(text[back - 1])
        back -= 1
    while back < len(text) and _cells(text[back]) == 0:
        back += 1
    return text[:at].rstrip() + "…" + text[back:].lstrip()


def clean(text: str) -> str:
    """`text` on one line: white space and control characters become one space.

    Explicit direction controls go too (they can make a label read as another one), and
    lone surrogates, which no file can hold, become U+FFFD.
    """
    text = _BIDI_CONTROLS.sub("", text)
    kinds = ((unicodedata.category(character), character) for character in text)
    shown = (
        {"Cc": " ", "Zl": " ", "Zp": " ", "Cs": "\ufffd"}.get(kind, character)
        for kind, character in kinds
    )
    return " ".join("".join(shown).split())


def escape_markdown(text: str) -> str:
    """`text` as literal Markdown on one line, safe inside a table cell.

    A `|` becomes an entity, which every Markdown reader keeps inside its cell; other
    characters with a meaning get a backslash. A leading list or heading sign is covered,
    so the result may also begin a paragraph.
    """
    escaped = _INLINE.sub(r"\\\1", clean(text)).replace("|", "&#124;")
    return _LINE_START.sub(lambda found: found[0][:-1] + "\\" + found[0][-1], escaped)


def _cell(value: Any, spec: str) -> str:
    if value is None:
        return MISSING
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, Real) and not isinstance(value, bool):
        return format(float(value), spec)
    return clean(str(value))


def _markdown_cell(cell: str) -> str:
    return cell if cell == MISSING else escape_markdown(cell)


def _latex(text: str) -> str:
    escaped = _LATEX_SIGN.sub(lambda found: _LATEX[found[0]], text)
    # After the end of a row these two signs are taken for an argument of it.
    return re.sub(r"^[\[*]", lambda found: f"{{{found[0]}}}", escaped)


def _numeric(rows: Sequence[Mapping[str, Any]], column: str) -> bool:
    values = [row[column] for row in rows if row.get(column) is not None]
    return bool(values) and all(isinstance(v, Real) and not isinstance(v, bool) for v in values)


def _padded(text: str, width: int, right: bool) -> str:
    fill = " " * (width - display_width(text))
    if any(unicodedata.bidirectional(character) in _RIGHT_TO_LEFT for character in text):
        text = _MARK + text + _MARK
    return fill + text if right else text + fill


def _cells(character: str) -> int:
    # Conjoining Hangul vowels and finals are letters that stack on the one before.
    if unicodedata.category(character) in ("Mn", "Me", "Cf") or "\u1160" <= character <= "\u11ff":
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


#: What tables call the probe on an encoder that has learned the labels.
TRAINED = "trained encoder"

#: What they call the baselines; one of somebody else's has its own name.
BASELINE_NAMES = {
    "majority": "majority class",
    "tfidf_logreg": "TF-IDF + logistic regression",
    "vectors_logreg": "mean word vectors + logistic regression",
    "pretrained_logreg": "frozen pretrained encoder + logistic regression",
}
BASELINE_NAMES |= {name + ADJUSTED: f"{title}, adjusted" for name, title in BASELINE_NAMES.items()}

#: Headings of the built-in metrics; a registered one is its own heading.
METRIC_TITLES = {"accuracy": "accuracy", "f1_macro": "macro F1", "f1_weighted": "weighted F1"}


def told_overlap(overlap: Mapping[str, Any]) -> str:
    """What `familiarity.overlap_report` found, or its counts, as a sentence without full stop."""
    places = [f"{overlap[name]} {name}" for name in ("train", "dev") if overlap[name]]
    count, of = overlap["train"] + overlap["dev"], overlap.get("texts")
    whole = f"{count} of {of} texts" if of else plural(count, "text")
    line = f"{whole} {'is' if count == 1 else 'are'} among the rows of the run"
    line += f" ({' and '.join(places)})"
    if "without" not in overlap:
        return line
    rest = overlap["without"]
    if rest is None:
        return f"{line}; there are no others to evaluate it on"
    return f"{line}; accuracy without them {rest['accuracy']:.3f} ({plural(rest['n'], 'row')})"


def chosen_on_dev(metrics: Mapping[str, Any]) -> bool:
    """Whether scores are those of dev rows on which the run chose its settings: too few choose
    nothing, nor do any beside a cross-validation, nor where a frozen encoder's probe chooses within
    train."""
    from superconext.probe.base import FEWEST_DEV_ROWS  # with numpy, which help does without

    if metrics["reported_split"] != "dev" or "cv" in metrics:
        return False
    if not metrics.get("chosen_on_dev", True):  # earlier versions do not record it
        return False
    return bool(metrics["dev"]["n"] >= FEWEST_DEV_ROWS)


def score_table(metrics: Mapping[str, Any]) -> str:
    """Scores on the reported split of baselines, native prediction and probe, as text.

    Last the probe together with the n-gram models, where the run predicts by that; of a run that
    predicts by n-grams alone these alone. Metrics of a
    contributor's own, if any, have their columns after the built-in ones.
    """
    split = metrics["reported_split"]
    baselines = {
        name: scores
        for name, scores in metrics.get("baselines", {}).items()
        if split in scores  # some are scored on other rows alone
    }
    adjusted = {name for name in baselines if name.endswith(ADJUSTED)}
    if all(_as_plain(name, baselines, split) for name in adjusted):  # classes of one size
        baselines = {name: of for name, of in baselines.items() if name not in adjusted}
        adjusted = set()
    rows = [
        _row(BASELINE_NAMES.get(name, name), scores[split], scores.get("seconds"))
        for name, scores in baselines.items()
    ]
    if split in metrics.get("native", {}):
        rows.append(_row("superconext, objective's own rule", metrics["native"][split], None))
    # Runs of versions before 0.2 have the probe's own figures under the split's name.
    probe = metrics.get("encoder_alone", metrics)[split]
    title, seconds = metrics.get("probe_title", TRAINED), metrics.get("seconds")
    if title or "combined" not in metrics:
        whole = None if "combined" in metrics else seconds
        alone = " alone" if "combined" in metrics else ""
        rows.append(_row(f"superconext, {title or TRAINED}{alone}", probe, whole))
    if "combined" in metrics:
        name = f"superconext, {f'{title} + ' if title else ''}{metrics['companion']}"
        rows.append(_row(name, metrics["combined"][split], seconds))
    note = "" if split == "test" else " (no test file)"
    if chosen_on_dev(metrics):
        note = " (no test file: the run chose its settings on them)"
    title, below = f"{split}, {plural(metrics[split]['n'], 'row')}{note}", ""
    if split == "cv":
        title, below = fold_lines(metrics[split])
    if adjusted:
        below = f"\nadjusted: predicts rare classes more often, as superconext's rows are{below}"
    columns = ("model", *(METRIC_TITLES.get(name, name) for name in METRICS), "seconds")
    return f"{title}\n{render(rows, columns, fmt={'seconds': '.1f'})}{below}"


def _as_plain(name: str, baselines: Mapping[str, Any], split: str) -> bool:
    """Whether an adjusted baseline has all the scores of the one that is not."""
    plain = baselines.get(name.removesuffix(ADJUSTED), {}).get(split, {})
    return all(baselines[name][split].get(one) == plain.get(one) for one in METRICS)


def verdict(metrics: Mapping[str, Any], named: Sequence[str] = ()) -> str:
    """The model's accuracy on the reported split beside the best baseline's, and what to do where
    that is higher, or where most rows have labels that training never sees; nothing without
    baselines. A model that is a baseline itself, as the chosen recipe may be, is held against the
    others.

    named: the options that named a recipe, in place of one chosen among several."""
    split = metrics["reported_split"]
    own = metrics[split]["accuracy"]
    known = [
        (scores[split]["accuracy"], BASELINE_NAMES.get(name, name))
        for name, scores in metrics.get("baselines", {}).items()
        if scores.get(split, {}).get("accuracy") is not None
    ]
    itself = None if "combined" in metrics else metrics.get("probe_title")
    others = [(score, name) for score, name in known if not (itself and name.startswith(itself))]
    if own is None or not others:
        return ""
    best, name = max(others, key=lambda pair: pair[0])
    gap, rows = 100 * (own - best), "rows held out" if split == "cv" else f"the {split} rows"
    model, other = "the model", "baseline"
    if len(others) < len(known):
        model, other = f"the model, {itself} + logistic regression,", "other baseline"
    seen = metrics.get("train", {}).get("per_class", {})
    per_class = metrics[split].get("per_class", {}) if seen else {}
    unseen = sum(of["support"] for label, of in per_class.items() if label not in seen)
    labels = ""
    if unseen > metrics[split]["n"] / 2:
        some = f"{unseen} of {metrics[split]['n']} {split} rows"
        labels = (
            f"; {some} have labels that training never sees: rename them, or train on such rows"
        )
    if abs(gap) < 0.05:
        more = labels or "; more text (--unlabelled) may help"
        return f"{model} is as accurate as the best {other} ({name}) on {rows}{more}"
    chance = ""
    if found := may_be_chance(own, best, counted(metrics[split], metrics[split]["n"])):
        whose, (low, high) = found
        interval = f"{100 * low:.1f} to {100 * high:.1f}"
        chance = f"; may be chance (95% interval of the {whose}'s accuracy: {interval})"
    if gap > 0:
        return (
            f"{model} is {gap:.1f} points of accuracy ahead of the best {other} ({name}) on "
            f"{rows}{chance}{labels}"
        )
    mend = f"omit {listed(named, 3)}, so that train compares recipes, or " if named else ""
    advice = labels or f"; {mend}give more text with --unlabelled"
    return f"{name} is {-gap:.1f} points of accuracy ahead on {rows}{chance}{advice}"


def fold_lines(scores: Mapping[str, Any]) -> tuple[str, str]:
    """What stands above and below the scores of a cross-validation."""
    folds = scores["folds"]
    times = f", {folds['repeats']} times" * (folds["repeats"] > 1)
    per = folds["count"] // folds["repeats"]
    dealt = f"{plural(per, 'fold')}{times}"
    title = f"cross-validated, {scores['n']} rows, each predicted while held out ({dealt})"
    spreads = ", ".join(
        f"{METRIC_TITLES.get(name, name)} {spread(values['mean'], values['sd'])}"
        for name, values in folds.items()
        if isinstance(values, Mapping)
    )
    low, high = folds["interval"]
    lines = [
        f"over {plural(folds['count'], 'fold')}: {spreads} (percent, mean ± standard deviation)",
        f"95% interval of the accuracy: {100 * low:.1f} to {100 * high:.1f} (Wilson, "
        f"{folds['texts']} different texts)",
    ]
    if lost := folds["not_held_out"]:
        only = folds.get("only_texts", 0)
        whys = {"the only text of a class": only, "in folds that were not fitted": lost - only}
        if "only_texts" not in folds:  # of a run of an earlier version
            whys = {"an only text of a class or in folds that were not fitted": lost}
        told = "; ".join(f"{plural(rows, 'row')}, {why}" for why, rows in whys.items() if rows)
        lines.append(f"never held out: {told}")
    return title, "\n" + "\n".join(lines)


def script_table(metrics: Mapping[str, Any], name: str = "superconext") -> str:
    """Weighted F1 on the rows of each script of the reported split, as text; "" where there are
    not two with `FEWEST_OF_SCRIPT` rows. name: of the model."""
    from superconext.text.characters import FEWEST_OF_SCRIPT

    split = metrics["reported_split"]
    if "combined" in metrics:
        title = metrics.get("probe_title", TRAINED)
        name = f"{name}, {f'{title} + ' if title else ''}{metrics['companion']}"
    systems = {
        **{BASELINE_NAMES.get(n, n): scores for n, scores in metrics.get("baselines", {}).items()},
        name: metrics,
    }
    scores = {name: of.get(split, {}).get("by_script", {}) for name, of in systems.items()}
    rows = [
        {"model": name, **{f"{script} ({s['n']:,})": s["f1_weighted"] for script, s in of.items()}}
        for name, of in scores.items()
        if of
    ]
    if not rows:
        return ""
    judged = metrics[split]
    left = judged["n"] - sum(of["n"] for of in judged["by_script"].values())
    out = f"; {plural(left, 'row')} left out, of scripts with fewer than {FEWEST_OF_SCRIPT}"
    out *= bool(left)
    return f"weighted F1 by script (rows){out}\n{render(rows, list(rows[0]))}"


def agreement_line(report: Mapping[str, Any]) -> str:
    """How far annotators agree, of a report of `data.labels`."""
    if report["human_ceiling"] is None:
        return "no text has the labels of two annotators"
    alpha = MISSING if report["alpha"] is None else f"{report['alpha']:.3f}"
    return (
        f"annotators: Krippendorff's alpha {alpha}; one against another, macro F1 "
        f"{report['human_ceiling']:.3f} on average (human ceiling)"
    )


def class_table(scores: Mapping[str, Any]) -> str:
    """Precision, recall and F1 of each class, as text."""
    rows = [{"class": name, **values} for name, values in judged(scores["per_class"]).items()]
    return render(rows, ("class", "precision", "recall", "f1", "support"))


def judged(per_class: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The scores of each class, None for those of a class without rows, which nobody knows."""
    return {
        name: {
            score: None if values.get("support") == 0 and score != "support" else value
            for score, value in values.items()
        }
        for name, values in per_class.items()
    }


def untested_line(
    truth: Sequence[str], predicted: Sequence[str], classes: Sequence[str], split: str = ""
) -> str:
    """Which classes the model knows and no row has, and what macro F1 is of; "" for none.

    truth, predicted: labels `[N]` of the rows. split: their name, for the message.
    """
    rest = set(classes).intersection(truth)
    lacking = [shown(name, 24) for name in classes if name not in rest]
    if not lacking:
        return ""
    occurring = len({*truth, *predicted})  # those that macro F1 is the mean of
    verb, whose = ("has", "its") if len(lacking) == 1 else ("have", "their")
    of = f"the {occurring} that occur or are predicted"
    if occurring == len(rest):
        of = f"the other {occurring}" if occurring > 1 else "the other one alone"
    return (
        f"{len(lacking)} of {len(classes)} classes {verb} no {f'{split} row'.strip()}, so {whose} "
        f"accuracy is unknown: {listed(lacking, 3)}; macro F1 is of {of}"
    )


def counted(scores: Mapping[str, Any], rows: float) -> float:
    """What an interval of the accuracy counts: the distinct texts that scores tell of, as those of
    a cross-validation do, for a copy is no further evidence; else the rows."""
    folds = scores.get("folds")
    texts = folds.get("texts") if isinstance(folds, Mapping) else None
    return float(texts) if isinstance(texts, int | float) and texts > 0 else rows


#: Standard deviations on each side of a normal variable's mean that hold 95% of it.
_Z = 1.959963984540054


def wilson(share: float, n: float) -> tuple[float, float]:
    """Wilson's score interval of a share of `n` trials, at 95%.

    Source: E. B. Wilson (1927); unlike share +- z * sd it stays within [0, 1] and holds
    for small `n` and shares near 0 or 1.
    """
    z = _Z
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def may_be_chance(own: float, best: float, n: float) -> tuple[str, tuple[float, float]] | None:
    """Where one of two accuracies on `n` trials lies in the 95% interval of the other: whose
    interval it is, that of the "model" (`own`) or the "baseline", and its ends; else None.

    The interval of a share at 0 or 1 is narrow to one side, so that of few rows either counts."""
    for whose, centre, other in (("model", own, best), ("baseline", best, own)):
        low, high = wilson(centre, n)
        if low <= other <= high:
            return whose, (low, high)
    return None


def score_rows(models: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row of the scores of each model, by the headings of `score_table`."""
    return [
        {"run": name, **{METRIC_TITLES.get(metric, metric): of.get(metric) for metric in METRICS}}
        for name, of in models.items()
    ]


def _row(name: str, scores: Mapping[str, Any], seconds: float | None) -> dict[str, Any]:
    values = {METRIC_TITLES.get(metric, metric): scores.get(metric) for metric in METRICS}
    return {"model": name, **values, "seconds": seconds}
