"""The page of a run: one HTML file with its scores, its sentences on a map, and its mistakes.

What the page shows is gathered here; the files in `template/` lay it out. The page is one file
that loads nothing: a content security policy allows its own style and script alone, by their
hashes. Sentences are other people's text: Jinja2 escapes what it prints, the script sets text and
never markup, and no sentence can end the block of JSON that it reads.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from superconext.core.errors import listed, plural
from superconext.core.files import write_text
from superconext.report.audit import Audit
from superconext.report.explain import Explanation, nearest, word_spans
from superconext.report.figures import class_colours
from superconext.report.run_figures import count_pairs, curve_panels, first_stage
from superconext.report.table import (
    BASELINE_NAMES,
    Grid,
    clean,
    counted,
    isolated,
    judged,
    may_be_chance,
    wilson,
)
from superconext.text.characters import script_of
from superconext.text.tokenize import tokenize, word_count

#: Rows of the judged file on a page, and of the training rows beside them, at most.
MOST_ROWS = 5000
#: Bytes of all sentences on a page, about; longer sentences are cut until they fit.
MOST_TEXT = 4_000_000
_CUTS = (2000, 1000, 500, 250, 120)
_NEAREST = 3
_TELLING = 12
_SUSPECTS = 15
_BINS = 10
_LENGTHS = ((5, "1 to 5 words"), (10, "6 to 10"), (20, "11 to 20"), (math.inf, "more than 20"))
_SHARES = ((0.0, "none"), (0.1, "up to 10%"), (0.3, "10 to 30%"), (1.0, "more than 30%"))
_FILES = Path(__file__).with_name("template")


@dataclass(frozen=True)
class PageRows:
    """Labelled rows as a model answered them.

    Args:
        texts, labels: `[N]`; the texts are empty where they are not known.
        lines: of the file they are from, `[N]`.
        predicted: labels `[N]`.
        confidence: the largest probability of each row `[N]`.
        probabilities: float64 `[N, C]`, where known.
        features: sentence vectors `[N, d]`, where known.
    """

    texts: Sequence[str]
    labels: Sequence[str]
    lines: Sequence[int]
    predicted: Sequence[str]
    confidence: np.ndarray
    probabilities: np.ndarray | None = None
    features: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def select(self, rows: np.ndarray) -> PageRows:
        """The rows of these numbers."""

        def of(values: Sequence[Any]) -> list[Any]:
            return [values[row] for row in rows.tolist()] if len(values) else []

        return PageRows(
            of(self.texts), of(self.labels), of(self.lines), of(self.predicted),
            self.confidence[rows],
            None if self.probabilities is None else self.probabilities[rows],
            None if self.features is None else self.features[rows],
        )  # fmt: skip


@dataclass(frozen=True)
class PageContext:
    """What a page is made of.

    Args:
        split: what the page calls the rows: test, dev, or the name of a file.
        rows: the judged rows.
        classes: the model's, in order.
        metrics: of the rows, as `probe.metrics` has them.
        others: metrics of baselines, controls and parts of the model on the same rows, by name.
        train: the training rows, where known.
        unknown: share of the words of each row `[N]` that the model does not know, where told.
        seen: whether the run learned from each row or was chosen by it, bool `[N]`, where known.
        layout: the map, float64 `[N, 2]`, rows of the figure `map`; map_title: its method.
        history: a mapping for each epoch, as the rows of history.csv.
        made: tables of how the model was made: a title, and (what, value) pairs.
        command: that made it.
        notes: sentences to stand at the top.
        explained: what the words of some rows contribute to the prediction, by the row.
        audit: of labels. audited: what the page calls the rows that it is of.
        chosen: whether settings were chosen on the rows.
        expects: what to expect of new sentences, where `seen` is not known row by row.
    """

    split: str
    rows: PageRows
    classes: Sequence[str]
    metrics: Mapping[str, Any]
    others: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    train: PageRows | None = None
    unknown: np.ndarray | None = None
    seen: np.ndarray | None = None
    layout: np.ndarray | None = None
    map_title: str = ""
    history: Sequence[Mapping[str, Any]] = ()
    made: Mapping[str, Sequence[tuple[str, Any]]] = field(default_factory=dict)
    command: str = ""
    notes: Sequence[str] = ()
    explained: Mapping[int, Explanation] = field(default_factory=dict)
    audit: Audit | None = None
    audited: str = ""
    chosen: bool = False
    expects: Sequence[str] = ()

    @property
    def rows_of(self) -> str:
        """What the rows are, in words."""
        if self.split == "cv":
            return "the training file, each predicted by a model that had not seen it"
        return self.split

    @cached_property
    def right(self) -> np.ndarray:
        """Whether each row is right, bool `[N]`."""
        pairs = zip(self.rows.labels, self.rows.predicted, strict=True)
        return np.array([label == predicted for label, predicted in pairs], dtype=bool)

    @cached_property
    def buckets(self) -> list[tuple[str, str, list[str], np.ndarray]]:
        """Ways to sort the rows: key, title, names of the buckets, the bucket of each row."""
        sorted_by = []
        if self.rows.texts:
            scripts = [script_of(text[: _CUTS[0]]) for text in self.rows.texts]
            names = [name for name, _ in Counter(scripts).most_common()]
            of_row = np.array([names.index(name) for name in scripts])
            sorted_by.append(("script", "Script", names, of_row))
            lengths = np.array(list(map(word_count, self.rows.texts)))
            sorted_by.append(("length", "Length", *_sorted_into(lengths, _LENGTHS)))
        if self.unknown is not None:
            unknown = _sorted_into(self.unknown, _SHARES)
            sorted_by.append(("unknown", "Unknown words", *unknown))
        return sorted_by


def write_page(path: Path, context: PageContext) -> None:
    """Write the page to a file. Raises OSError where it cannot be written."""
    write_text(path, render_page(context))


def is_page(path: Path) -> bool:
    """Whether a file is an HTML page, or empty. Raises OSError where it cannot be read."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(15).lower() in (b"", b"<!doctype html>")


def render_page(context: PageContext) -> str:
    """The page as HTML."""
    from markupsafe import Markup

    names, counts = count_pairs(context.rows.labels, context.rows.predicted, context.classes)
    data, left_out = _sentences(context, names)
    scores = _scores(context)
    columns = counts.sum(axis=1, keepdims=True)
    return _render(
        "page.html",
        context=context,
        names=names,
        colours=class_colours(names),
        scores=scores,
        explained=sum(map(bool, data["rows"].get("words", ()))),
        domain=_domain([row["interval"] for row in scores if row["interval"]]),
        verdict=verdict(context.rows_of, scores, expected(context), context.chosen),
        counts=counts.tolist(),
        shares=(counts / np.maximum(columns, 1)).tolist(),
        per_class=judged(context.metrics.get("per_class", {})),
        slices=_slices(context),
        reliability=_reliability(context),
        calibration_error=context.metrics.get("expected_calibration_error"),
        panels=_panels(context.history),
        curves_of=_curves_of(context.history),
        telling=_telling(context.train, names),
        suspects=_suspects(context.audit),
        notes=[*context.notes, *left_out],
        data=Markup(_json(data)),
    )


def write_tables(
    path: Path, title: str, grids: Mapping[str, Grid], figures: Sequence[Path] = ()
) -> None:
    """Write a page of an experiment: its tables under their headings, and its PNG figures.

    Raises OSError where a file cannot be read or written.
    """
    pictures = [(one, base64.b64encode(one.read_bytes()).decode()) for one in figures]
    write_text(path, _render("tables.html", title=title, grids=grids.items(), pictures=pictures))


def _render(name: str, **values: Any) -> str:
    """A template with its style and script, whose hashes are all that its policy allows."""
    from jinja2 import Environment, FileSystemLoader
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(_FILES), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    policy = "default-src 'none'; base-uri 'none'; form-action 'none'"
    for kind, source in (("css", "style"), ("js", "script")):
        text = (_FILES / f"page.{kind}").read_text(encoding="utf-8").strip()
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        policy += f"; {source}-src 'sha256-{digest}'"
        values[source] = Markup(text)  # the package's own lines
    html = environment.get_template(name).render(**values, policy=policy)
    return html.encode("utf-8", "replace").decode("utf-8")


def _json(value: Any) -> str:
    """JSON that can be in a script element: no `<`, so nothing in it ends the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


# Scores


def _scores(context: PageContext) -> list[dict[str, Any]]:
    """The model and what it is compared with: names, scores, Wilson's interval of the accuracy."""
    count = len(context.rows)
    rows = []
    for name, metrics in {"this model": context.metrics, **context.others}.items():
        accuracy = metrics.get("accuracy")
        known = isinstance(accuracy, int | float) and count > 0
        rows.append(
            {
                "name": BASELINE_NAMES.get(name, name),
                "baseline": name in context.others and not name.startswith("this model"),
                "accuracy": accuracy,
                "interval": wilson(float(accuracy), counted(context.metrics, count))
                if known and accuracy is not None
                else None,
                "macro": metrics.get("f1_macro"),
                "weighted": metrics.get("f1_weighted"),
                "n": count,
                "judged": counted(context.metrics, count),
            }
        )
    return rows


def _domain(intervals: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The ends of an axis of shares that holds all intervals, in steps of 5 points."""
    if not intervals:
        return 0.0, 1.0
    low = math.floor(min(low for low, _ in intervals) * 20 - 0.2) / 20
    high = math.ceil(max(high for _, high in intervals) * 20 + 0.2) / 20
    return max(low, 0.0), min(high, 1.0)


def expected(context: PageContext) -> list[str]:
    """What to expect of new sentences where some rows say nothing of them; empty where all do."""
    classes, labels = set(context.classes), context.rows.labels
    foreign = np.array([label not in classes for label in labels], dtype=bool)
    seen = np.zeros(len(labels), dtype=bool) if context.seen is None else context.seen
    fresh = ~(foreign | seen)
    if context.expects:
        return [*context.expects]
    said = []
    if count := int(seen.sum()):
        verb = "is" if count == 1 else "are"
        said.append(
            f"{plural(count, 'row')} {verb} among those that it was trained on or chosen by."
        )
    if count := int(foreign.sum()):
        names = listed(sorted(set(labels) - classes))
        verb, other = ("has", "counts") if count == 1 else ("have", "count")
        said.append(
            f"{plural(count, 'row')} {verb} a class that training never saw ({names}) and {other} "
            "as wrong."
        )
    if said:
        said.append(of_the_others(context.right[fresh].sum(), int(fresh.sum())))
    return said


def of_the_others(right: float, count: int) -> str:
    """What to expect of new sentences by the rows, `count`, that say something of them."""
    if not count:
        return "No row tells what to expect of new sentences."
    share = float(right) / count
    low, high = wilson(share, count)
    return (
        f"Of the other {plural(count, 'row')}, {share:.1%} {'is' if count == 1 else 'are'} "
        f"labelled correctly: of new sentences expect {low:.1%} to {high:.1%} right."
    )


def verdict(
    split: str,
    scores: Sequence[Mapping[str, Any]],
    expected: Sequence[str] = (),
    chosen: bool = False,
) -> list[str]:
    """What the scores mean, in sentences that claim no more than they may.

    scores: of the model, then of the baselines; `judged`: rows that its interval counts.

    expected: what to expect of new sentences, where that is not what the scores are.
    chosen: whether settings were chosen on these rows.
    """
    model, others = scores[0], [row for row in scores[1:] if row["baseline"]]
    others = [row for row in others if row["accuracy"] is not None]
    if not model["interval"]:
        return ["No row was judged."]
    low, high = model["interval"]
    headline = (
        f"{model['accuracy']:.1%} ({low:.1%} to {high:.1%}) of {model['n']} sentences of {split} "
        "are labelled correctly"
    )
    said = [*expected] or [
        f"Of other sentences of the same kind, expect {low:.1%} to {high:.1%} right (95% interval "
        "for so few sentences, without the variation between seeds)."
    ]
    if chosen:
        said.append("Settings were chosen on these rows: expect somewhat less on new ones.")
    if not others:
        return [f"{headline}.", *said, "It was compared with no baseline here."]
    best = max(others, key=lambda row: row["accuracy"])
    gap = model["accuracy"] - best["accuracy"]
    side = f"{abs(gap) * 100:.1f} points {'above' if gap > 0 else 'below'}"
    told = f"The best baseline, {best['name']}, has {best['accuracy']:.1%}"
    if round(abs(gap), 3) == 0:
        side, told = "as many as by", f"{told}, too."
    elif may_be_chance(model["accuracy"], best["accuracy"], model["judged"]):
        side = "not clearly above or below"
        told += ": one lies within the interval of the other, so these rows do not tell them apart."
    else:
        told += ", and neither lies within the 95% interval of the other."
    return [f"{headline}, {side} the best baseline.", *said, told]


def _slices(context: PageContext) -> list[dict[str, Any]]:
    """Accuracy by script, by length and by unknown words, with intervals."""
    groups = []
    for key, title, names, of in context.buckets:
        rows = []
        for number, name in enumerate(names):
            inside = of == number
            count = int(inside.sum())
            if count:
                right = int(context.right[inside].sum())
                interval = wilson(right / count, count)
                row = {"name": name, "number": number, "n": count, "accuracy": right / count}
                rows.append({**row, "interval": interval, "of": count / len(of)})
        groups.append({"key": key, "title": title, "rows": rows})
    return groups


def _sorted_into(
    values: np.ndarray, limits: Sequence[tuple[float, str]]
) -> tuple[list[str], np.ndarray]:
    ends = np.array([end for end, _ in limits[:-1]])
    return [name for _, name in limits], np.searchsorted(ends, values)


def _reliability(context: PageContext) -> list[dict[str, Any]]:
    """Confidence and accuracy of the rows in each of ten bins that has any."""
    confidence = context.rows.confidence
    place = np.clip(np.ceil(confidence * _BINS).astype(int) - 1, 0, _BINS - 1)
    bins = []
    for number in range(_BINS):
        inside = place == number
        if count := int(inside.sum()):
            accuracy = float(context.right[inside].mean())
            bins.append(
                {
                    "confidence": float(confidence[inside].mean()),
                    "accuracy": accuracy,
                    "interval": wilson(accuracy, count),
                    "n": count,
                }
            )
    return bins


def _curves_of(history: Sequence[Mapping[str, Any]]) -> str:
    """What the curves are of, where training had more parts."""
    most = {of: len({str(row.get(of, 1)) for row in history}) for of in ("member", "stage")}
    parts = {"member": "encoder", "stage": "stage"}
    told = [f"the first {parts[of]} of {count}" for of, count in most.items() if count > 1]
    return f"Of {', '.join(told)}." if told else ""


def _panels(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The training curves as points of a unit square."""
    panels = []
    epochs, drawn = curve_panels(first_stage(history))
    for panel, lines in drawn:
        values = [y for _, ys in lines for y in ys if math.isfinite(y)]
        low, high = min(values), max(values)
        wide, tall = max(epochs[-1] - epochs[0], 1), high - low
        shown = [
            {
                "name": line.name,
                "points": [
                    ((x - epochs[0]) / wide, 1 - (y - low) / tall if tall else 0.5)
                    for x, y in zip(epochs, ys, strict=True)
                    if math.isfinite(y)
                ],
                "last": next(y for y in reversed(ys) if math.isfinite(y)),
            }
            for line, ys in lines
        ]
        panels.append(
            {
                "name": panel.name,
                "ends": [(high, 8), (low, 102)] if tall else [(low, 54)],
                "lines": shown,
                "epochs": epochs,
            }
        )
    return panels


def _telling(train: PageRows | None, names: Sequence[str]) -> list[dict[str, Any]]:
    """The words, pairs of words and spellings that tell each class from the others.

    They are ranked by z, the log-count ratio over its standard error: a rare n-gram needs a
    larger ratio (Monroe, Colaresi and Quinn, 2008, "Fightin' words").
    """
    from sklearn.feature_extraction.text import CountVectorizer

    from superconext.probe.ngrams import ALPHA, WORD_OPTIONS, log_count_ratio

    if train is None or not any(map(str.split, train.texts)):
        return []
    kinds = {
        "words": {**WORD_OPTIONS, "min_df": 2},
        "spellings": {"analyzer": "char_wb", "ngram_range": (3, 4), "min_df": 5},
    }
    texts = [*map(clean, train.texts)]  # as they are shown, where a click searches
    # Apart from their punctuation.
    words = [" ".join(filter(_is_word, tokenize(text))) for text in texts]
    labels = np.array([str(label) for label in train.labels], dtype=object)
    found: list[dict[str, Any]] = [{"name": name} for name in names if (labels == name).any()]
    for kind, options in kinds.items():
        try:
            counter = CountVectorizer(**options, binary=True, dtype=np.float64)
            present = counter.fit_transform(words if kind == "words" else texts)
        except ValueError:  # no n-gram is in so many rows
            continue
        ngrams = counter.get_feature_names_out()
        for one in found:
            inside = labels == one["name"]
            if inside.all():
                continue
            p, q = (np.asarray(present[part].sum(axis=0)).ravel() for part in (inside, ~inside))
            z = log_count_ratio(present, inside) / np.sqrt(1 / (p + ALPHA) + 1 / (q + ALPHA))
            # What is in no larger share of the class's rows is typical of few n-grams, not of it.
            z[p / inside.sum() <= q / (~inside).sum()] = 0
            best = [at for at in np.argsort(-z, kind="stable")[:_TELLING] if z[at] > 1]
            one[kind] = [(ngrams[at], int(p[at]), int(p[at] + q[at])) for at in best]
    return found


def _is_word(token: str) -> bool:
    return any(unicodedata.category(letter)[0] != "P" for letter in token)


def _suspects(audit: Audit | None) -> list[dict[str, Any]]:
    """The rows whose label is most suspicious, for a table."""
    found = [] if audit is None else audit.suspects[:_SUSPECTS]
    return [
        one.to_dict()
        | {"text": _cut(clean(one.text), _CUTS[2]), "why": [_isolated(why) for why in one.why]}
        for one in found
    ]


def _isolated(why: str) -> str:
    """What speaks against a label, with each quoted label apart from the text around it."""
    return re.sub(r"'([^']*)'", lambda quoted: f"'{isolated(quoted[1])}'", why)


# Sentences


def _sentences(context: PageContext, names: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """What the script reads, and what was left out, in words."""
    rows, notes = context.rows, []
    if not rows.texts:
        return {"classes": list(names), "rows": {"label": []}, "train": {"label": []}}, [
            "The sentences are not on this page: they were not kept in the run folder."
        ]
    kept = _sample(len(rows))
    if len(kept) < len(rows):
        notes.append(
            f"Map and table show {len(kept)} of {len(rows)} sentences, drawn at random; all other "
            "figures are of all."
        )
    shown = rows.select(kept)
    train = context.train
    if train is not None:
        beside = _sample(len(train.labels))
        if len(beside) < len(train.labels):
            notes.append(
                f"Nearest training sentences are among {len(beside)} of {len(train.labels)}, drawn "
                "at random."
            )
        train = train.select(beside)
    texts = [clean(text[: 2 * _CUTS[0]]) for text in shown.texts]
    beside_texts = [clean(text[: 2 * _CUTS[0]]) for text in train.texts] if train else []
    cut = next(
        (cut for cut in _CUTS if _size(texts, cut) + _size(beside_texts, cut) < MOST_TEXT),
        _CUTS[-1],
    )
    if max(map(len, [*texts, *beside_texts])) > cut:
        notes.append(f"Sentences are cut after {cut} characters.")
    place = {name: at for at, name in enumerate(names)}
    data: dict[str, Any] = {
        "text": [_cut(text, cut) for text in texts],
        "line": [int(line) for line in shown.lines],
        "label": [place[label] for label in shown.labels],
        "guess": [place[label] for label in shown.predicted],
        "sure": _rounded(shown.confidence),
    }
    for key, _, _, of in context.buckets:
        data[key] = of[kept].tolist()
    if context.explained:
        data["words"] = [
            _marks(text, context.explained.get(row))
            for text, row in zip(data["text"], kept.tolist(), strict=True)
        ]
    if shown.probabilities is not None:
        order = np.argsort(-shown.probabilities, axis=1, kind="stable")[:, :3]
        data["top"] = [
            [[place[context.classes[k]], round(float(p[k]), 3)] for k in some]
            for some, p in zip(order.tolist(), shown.probabilities, strict=True)
        ]
    near: dict[str, Any] = {"label": []}
    points = None if context.layout is None else context.layout[kept]
    if train is not None and train.texts:
        # Rows of training may have labels of which no judged row is; they are classes all the same.
        near = {"text": [_cut(text, cut) for text in beside_texts]}
        near["label"] = [place.get(str(label), -1) for label in train.labels]
        if train.features is not None and shown.features is not None:
            closest, cosines = nearest(shown.features, train.features, _NEAREST)
            data["near"], data["cosine"] = closest.tolist(), _rounded(cosines)
            if points is not None:
                near["x"], near["y"] = _placed(train.features, shown.features, points)
    if points is not None:
        data["x"], data["y"] = _rounded(points[:, 0]), _rounded(points[:, 1])
    return {"classes": list(names), "rows": data, "train": near}, notes


def _sample(count: int) -> np.ndarray:
    """Numbers of the rows on the page, ascending: all, or `MOST_ROWS` drawn from a fixed seed."""
    if count <= MOST_ROWS:
        return np.arange(count)
    return np.sort(np.random.default_rng(0).choice(count, MOST_ROWS, replace=False))


def _size(texts: Sequence[str], cut: int) -> int:
    return sum(len(text[:cut].encode("utf-8", "replace")) for text in texts)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _marks(text: str, explained: Explanation | None) -> list[tuple[int, int, float]]:
    """Where the words of a text on the page stand, and what each contributes; [] if not known."""
    if explained is None:
        return []
    # The page's text is the file's but for white space, characters of control, and its end.
    spans = word_spans(text)
    pairs = zip(spans, explained.words, strict=False)
    marks = [(a, b, round(value, 2)) for (a, b), (word, value) in pairs if text[a:b] == word]
    return marks if len(marks) >= min(len(spans), len(explained.words)) - 1 else []


def _rounded(values: np.ndarray) -> Any:
    return np.round(np.nan_to_num(values.astype(np.float64)), 3).tolist()


def _placed(train: np.ndarray, rows: np.ndarray, points: np.ndarray) -> tuple[Any, Any]:
    """Places of training rows on the map: the mean of their three nearest judged rows'.

    The nearer, the heavier; so the map of the judged rows stays what it is without them.
    """
    near, cosines = nearest(train, rows, _NEAREST)
    weights = np.exp(20 * (cosines - cosines.max(axis=1, keepdims=True)))
    weights /= weights.sum(axis=1, keepdims=True)
    places = (np.nan_to_num(points)[near] * weights[:, :, None]).sum(axis=1)
    return _rounded(places[:, 0]), _rounded(places[:, 1])
