"""The model card's figures: scores beside baselines, classes, and the vectors' health."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from superconext.report.facts import (
    Facts,
    look,
    number,
    reported_split,
    rows_judged,
    text_of,
    wilson,
)
from superconext.report.table import markdown

_BASELINES = {"majority": "majority class", "tfidf_logreg": "TF-IDF + logistic regression"}
_NOTHING = "<!-- No scores were recorded. -->"


def results(facts: Facts) -> str:
    """The model and its baselines on the reported split, with intervals and in words.

    Of a run that predicts by the probe and a companion together, both are the model.
    """
    split = reported_split(facts)
    own = _own(facts, split)
    if not isinstance(own, Mapping):
        return _NOTHING
    n = rows_judged(facts, split)
    rows = [_row("this model", own, n)]
    if _is_combined(facts):
        rows.append(_row("its encoder alone, with a linear probe", look(facts, split), n))
    native = look(facts, "native", split)
    if isinstance(native, Mapping):
        rows.append(_row("this model, by its objective's own rule", native, n))
    rows += [_row(name, look(scores, split), n) for name, scores in _others(facts)]
    on = f" ({n:.0f} rows)" if n is not None else ""
    parts = [
        f"On {text_of(split)}{on}. In brackets: Wilson's 95% interval, the uncertainty that "
        "comes from judging this many rows and no other.",
        markdown(rows, ("model", "accuracy", "macro F1", "weighted F1")),
        _verdict(facts, own, split, n),
    ]
    if split == "dev":
        parts.append(
            "No test file was given: these rows also chose the probe's regularisation, so expect "
            "somewhat less on new data."
        )
    if n is None:
        parts.append("<!-- How many rows were judged? Not recorded, hence no interval. -->")
    return "\n\n".join(part for part in parts if part)


def other_splits(facts: Facts) -> str:
    """The model's other splits; a comment when it was compared with nothing."""
    shown = reported_split(facts)
    others = [s for s in ("train", "dev", "test") if isinstance(look(facts, s), Mapping)]
    rows = [
        {"split": split, **_row("", _own(facts, split), rows_judged(facts, split))}
        for split in others
        if split != shown
    ]
    parts = []
    if rows:
        parts.append("This model on the other rows:")
        parts.append(markdown(rows, ("split", "accuracy", "macro F1", "weighted F1")))
    if not _others(facts):
        parts.append("<!-- No baselines were recorded: is this better than a simple model? -->")
    return "\n\n".join(parts)


def per_class(facts: Facts) -> str:
    """Precision, recall, F1 and support of each class on the reported split."""
    split = reported_split(facts)
    table = look(_own(facts, split), "per_class")
    if not isinstance(table, Mapping) or not table:
        return "<!-- No scores of single classes were recorded. -->"
    rows = []
    for name in table:
        row: dict[str, Any] = {"class": str(name)}
        for column in ("precision", "recall", "f1"):
            row[column.replace("f1", "F1")] = number(look(table, name, column))
        support = number(look(table, name, "support"))
        row["rows"] = None if support is None else int(support)
        rows.append(row)
    heading = f"Each class on {text_of(split)}:"
    return heading + "\n\n" + markdown(rows, ("class", "precision", "recall", "F1", "rows"))


def collapse(facts: Facts) -> str:
    """Whether the sentence vectors use their space, in words."""
    rank = number(look(facts, "collapse", "effective_rank"))
    cosine = number(look(facts, "collapse", "mean_cosine"))
    collapsed = look(facts, "collapse", "collapsed")
    parts = []
    if rank is not None:
        parts.append(
            f"The vectors spread over about {rank:.1f} directions (effective rank; 1 would mean "
            "that all lie on one line)."
        )
    if cosine is not None:
        parts.append(
            f"Two sentences drawn at random have a cosine of {cosine:.2f} on average (1 would "
            "mean that all vectors point the same way)."
        )
    if collapsed is True:
        parts.append(
            "**The encoder collapsed**: it gives nearly the same vector to every sentence. Do not "
            "use its vectors; train again with a lower learning rate or another temperature."
        )
    elif collapsed is False:
        parts.append("The encoder did not collapse.")
    return " ".join(parts) or "<!-- Did the encoder collapse? Not recorded. -->"


def _own(facts: Facts, split: str) -> Any:
    """The figures on a split of what the run predicts by."""
    return look(facts, "combined", split) if _is_combined(facts) else look(facts, split)


def _is_combined(facts: Facts) -> bool:
    return isinstance(look(facts, "combined", reported_split(facts)), Mapping)


def _others(facts: Facts) -> list[tuple[str, Any]]:
    given = look(facts, "baselines")
    if not isinstance(given, Mapping):
        return []
    return [(_BASELINES.get(str(name), str(name)), scores) for name, scores in given.items()]


def _row(name: str, scores: Any, n: float | None) -> dict[str, Any]:
    accuracy = number(look(scores, "accuracy"))
    shown = None if accuracy is None else f"{accuracy:.3f}"
    if accuracy is not None and n is not None and 0 <= accuracy <= 1:
        low, high = wilson(accuracy, n)
        shown = f"{accuracy:.3f} ({low:.3f} to {high:.3f})"
    return {
        "model": name,
        "accuracy": shown,
        "macro F1": number(look(scores, "f1_macro")),
        "weighted F1": number(look(scores, "f1_weighted")),
    }


def _verdict(facts: Facts, own: Any, split: str, n: float | None) -> str:
    """The model against its best baseline, in one sentence that claims no more than it may."""
    accuracy = number(look(own, "accuracy"))
    scored = [(number(look(scores, split, "accuracy")), name) for name, scores in _others(facts)]
    known = [(value, name) for value, name in scored if value is not None]
    if accuracy is None or not known:
        return ""
    best, name = max(known)
    name = text_of(name)
    gap = accuracy - best
    if round(abs(gap), 3) == 0:
        return f"Its accuracy equals that of the best baseline ({name})."
    side = "above" if gap > 0 else "below"
    sentence = f"Its accuracy is {abs(gap):.3f} {side} that of the best baseline ({name})"
    if n is not None and 0 <= accuracy <= 1:
        low, high = wilson(accuracy, n)
        if low <= best <= high:
            return sentence + ", which lies within the model's interval: this may be chance."
    return sentence + "."
