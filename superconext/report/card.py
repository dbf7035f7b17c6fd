"""The model card: README.md of a run folder, in the layout of the Hugging Face Hub.

One template, `card.md.jinja`, filled with what manifest.json and metrics.json record. They are
checked against one table of types first: what is missing or of another type becomes an HTML
comment for the user to fill in, never a guess. Layout: Mitchell et al., "Model Cards for Model
Reporting" (2019).
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from numbers import Real
from pathlib import Path
from typing import Any

from superconext.encoders import ENCODERS
from superconext.probe.base import FEWEST_DEV_ROWS
from superconext.probe.ensemble import predicting
from superconext.report.figures import replacing
from superconext.report.table import (
    BASELINE_NAMES,
    clean,
    counted,
    escape_markdown,
    isolated,
    judged,
    markdown,
    may_be_chance,
    told_overlap,
    wilson,
)

_SPLITS = ("train", "dev", "test", "cv")
_FEW = 30  # rows of a class, below which its scores say little
_SCORES = ("accuracy", "macro F1", "weighted F1")

_KEYS = ("accuracy", "f1_macro", "f1_weighted")
_KINDS = ("accuracy", "f1", "f1")

#: The figures a card shows, and what they are.
FIGURES = {
    "confusion": "Confusion matrix",
    "map": "Map of the sentence vectors",
    "curves": "Training curves",
}


def write_card(path: str | os.PathLike[str], facts: Mapping[str, Any]) -> None:
    """Write the card to `path` (a folder: to its README.md), replacing what was there.

    It shows those of `FIGURES` that are in the folder `figures` beside it. Raises RunError when
    the file cannot be written.
    """
    target = Path(path)
    if target.is_dir():
        target = target / "README.md"
    figures = [name for name in FIGURES if (target.parent / "figures" / f"{name}.png").is_file()]
    with replacing(target) as temporary:
        temporary.write_text(render_card(facts, figures), encoding="utf-8", newline="\n")


def render_card(facts: Mapping[str, Any], figures: Sequence[str] = ()) -> str:
    """The card as text.

    Args:
        facts: manifest.json and metrics.json of a run folder merged into one mapping. Any key
            may be missing or of another type.
        figures: of `FIGURES`, that are to be shown.

    Text from users (labels, file names) is escaped: it can break neither a table nor the
    front matter, nor begin HTML.
    """
    import jinja2

    facts = _typed(facts, _SCHEMA)
    by = predicting(facts)
    trained = "encoder" in by and not facts["freeze"]
    objectives = [facts[key] for key in _OBJECTIVES if facts[key] and trained]
    tags = ["text-classification"] + ["sentence-embeddings"] * ("encoder" in by)
    tags += ["contrastive-learning"] * trained + objectives[:1]
    titles = [facts[key] for key in ("probe_title", "companion") if facts[key]]
    shown = ["confusion"] + ["map"] * ("encoder" in by) + ["curves"] * trained
    settings = {name: facts[key] for key, name in _SETTINGS.items() if facts[key] is not None}
    settings |= facts["versions"]
    environment = jinja2.Environment(
        trim_blocks=True, keep_trailing_newline=True, undefined=jinja2.StrictUndefined
    )
    environment.filters |= {"md": _escaped, "isolated": isolated, "file_name": _file_name}
    template = Path(__file__).with_name("card.md.jinja").read_text(encoding="utf-8")
    values = {
        **facts,
        **_data(facts["data"]),
        **_results(facts),
        "objectives": objectives,
        # A JSON string is a YAML scalar that nothing inside can end.
        "tags": [json.dumps(tag, ensure_ascii=False) for tag in tags],
        "encoder": _encoder(facts["encoder"]),
        "sample": _sample(facts),
        "several": facts["members"] if (facts["members"] or 1) > 1 else None,
        "model_name": json.dumps(
            "superconext, "
            + (objectives[0] if objectives else " + ".join(titles) or "no objective")
        ),
        "encoder_predicts": "encoder" in by,
        "pool": _pool(by),
        "few": _FEW,
        "figures": {name: FIGURES[name] for name in figures if name in shown},
        "command": facts["command"] and _fenced(facts["command"], "bash"),
        "settings": _table(
            [{"what": name, "value": value} for name, value in settings.items()], "what", "value"
        ),
    }
    return environment.from_string(template).render(values)


def _escaped(text: str | None) -> str:
    return escape_markdown(text or "")


def _table(rows: list[dict[str, Any]], *columns: str) -> str:
    return markdown(rows, columns) if rows else ""


# The types of what is recorded


def _text(value: Any) -> str | None:
    """One line of text."""
    return (clean(value) or None) if isinstance(value, str) else None


def _number(value: Any) -> float | None:
    """A finite number."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        return None
    return float(value)


def _whole(value: Any) -> int | None:
    number = _number(value)
    return None if number is None else int(number)


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _setting(value: Any) -> str | None:
    """Text or a number, as text."""
    return _text(value) if _number(value) is None else str(value)


def _seconds(value: Any) -> str | None:
    seconds = _number(value)
    return None if seconds is None else f"{seconds:.1f} s"


def _command(value: Any) -> str | None:
    if isinstance(value, (list, tuple)) and value:
        return shlex.join(map(str, value))
    return value if isinstance(value, str) and value.strip() else None


_EACH = "*"  # every key there is
_OBJECTIVES = ("objective", "second_objective")

#: What the card's last table calls settings.
_SETTINGS = {
    **{name: name for name in ("preset", "seed", "threads", "created")},
    "wall_seconds": "wall clock",
    "cpu_seconds": "processor time",
    "version": "superconext",
}
_METRICS = dict.fromkeys(("accuracy", "f1_macro", "f1_weighted"), _number)
_SPLIT = {
    **_METRICS,
    "n": _number,
    "folds": {
        "count": _whole,
        "repeats": _whole,
        "texts": _number,
        "accuracy": {"mean": _number, "sd": _number},
    },
    "per_class": {_EACH: dict.fromkeys(("precision", "recall", "f1", "support"), _number)},
}
_SCORED = dict.fromkeys(_SPLITS, _SPLIT)
_FILE = {"file": _text, "sha256": _text, "rows": _whole, "classes": {_EACH: _whole}}
_SCHEMA: dict[str, Any] = {
    **dict.fromkeys((*_OBJECTIVES, "encoder", "reported_split"), _text),
    **dict.fromkeys(("probe_title", "companion"), _text),
    **dict.fromkeys(("preset", "seed", "threads", "created", "version", "status"), _setting),
    **dict.fromkeys(("wall_seconds", "cpu_seconds"), _seconds),
    **_SCORED,
    **dict.fromkeys(("combined", "encoder_alone", "native"), _SCORED),
    "baselines": {_EACH: _SCORED},
    "freeze": _flag,
    "members": _whole,
    "finetune_epochs": _whole,
    "chosen_on_dev": _flag,
    "pool_weights": {_EACH: _number},
    "overlap": {
        **dict.fromkeys(("texts", "train", "dev"), _whole),
        "without": {"n": _whole, "accuracy": _number},
    },
    "command": _command,
    "data": dict.fromkeys(_SPLITS, _FILE),
    "related": {"rows": _whole, "file": _text},
    "soft_labels": {"rows": _whole},
    "model": {"name": _text, "sha256": _text},
    "agreement": {"alpha": _number, "annotators": _whole},
    "vectors": {"name": _text, "dimension": _number, "trained_on": _text},
    "recipes": {
        **dict.fromkeys(("chosen", "why", "compared"), _text),
        "recipes": {_EACH: {"title": _text, "log_loss": _number, **_METRICS}},
    },
    "collapse": {"effective_rank": _number, "mean_cosine": _number, "collapsed": _flag},
    "versions": {_EACH: _setting},
}


def _typed(value: Any, kind: Any) -> Any:
    """`value` in the shape of a schema: None stands where it has nothing of the kind."""
    if not isinstance(kind, Mapping):
        return kind(value)
    given = value if isinstance(value, Mapping) else {}
    if _EACH in kind:
        return {str(key): _typed(inner, kind[_EACH]) for key, inner in given.items()}
    return {key: _typed(given.get(key), inner) for key, inner in kind.items()}


def _recorded(value: Any) -> bool:
    """Whether a part of the facts holds anything."""
    return any(map(_recorded, value.values())) if isinstance(value, dict) else value is not None


# What the template shows


def _encoder(name: str | None) -> str:
    """What kind of encoder it is; runs that do not record it have the only one there was."""
    if name in (None, "bilstm"):
        return "a bidirectional LSTM over word vectors"
    return escape_markdown(ENCODERS.summary(name) if name in ENCODERS else name)


def _pool(models: Sequence[str]) -> str:
    """What a pool of models predicts with, in words."""
    regression = "a logistic regression on"
    names = {
        "encoder": "the probe",
        "tfidf": f"{regression} TF-IDF features (word 1-2-grams, character 2-5-grams)",
        "ngrams": f"{regression} character n-grams weighted by log-count ratios",
    }
    *others, last = [names[model] for model in models] or ["none of its models"]
    if not others:
        return f"{last} alone"
    return (
        f"{'two' if len(others) == 1 else 'three'} models, {', '.join(others)} and {last}, whose "
        "log probabilities are added with weights chosen on held-out rows"
    )


def _data(data: Mapping[str, Any]) -> dict[str, str]:
    """Files, row counts and hashes; the rows of each class in each split."""
    rows = [
        {
            "split": split,
            "file": _file_name(file["file"]),
            "rows": file["rows"],
            "SHA-256": (file["sha256"] or "")[:16] or None,
        }
        for split, file in data.items()
        if _recorded(file)
    ]
    counts = {split: file["classes"] for split, file in data.items() if file["classes"]}
    names = dict.fromkeys(name for given in counts.values() for name in given)
    of_classes = [
        {"class": name, **{split: given.get(name, 0) for split, given in counts.items()}}
        for name in names
    ]
    return {
        "files": _table(rows, "split", "file", "rows", "SHA-256"),
        "class_rows": _table(of_classes, "class", *counts),
    }


def _sample(facts: Mapping[str, Any]) -> int | None:
    """Training rows that stand for all, of a file larger than memory; None of any other."""
    judged, whole = _count(facts["train"]), facts["data"]["train"]["rows"]
    return int(judged) if judged and whole and judged < whole else None


def _file_name(path: str | None) -> str | None:
    """The last part alone: folder names of the author's machine are nobody's business."""
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1] or None if path else None


def _results(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The scores that the card shows.

    Of a run that predicts by the probe and an ensemble together, both are the model.
    """
    probe = {split: facts[split] for split in _SPLITS if _recorded(facts[split])}
    reported = (facts["reported_split"], "test", "dev")
    split = next((name for name in reported if name in probe), "test")
    count = _count(probe.get(split))
    texts = None if count is None else counted(probe[split], count)
    together = _recorded(facts["combined"][split])
    model = facts["combined"] if together else probe
    models = {"this model": model[split]} if split in model else {}
    if together:
        alone = facts["encoder_alone"][split]
        # Runs of versions before 0.2 have these scores under the split's name.
        alone = alone if _recorded(alone) else facts[split]
        if "encoder" in predicting(facts):
            models["its encoder alone, with a linear probe"] = alone
    if _recorded(facts["native"][split]):
        models["this model, by its objective's own rule"] = facts["native"][split]
    baselines = {
        BASELINE_NAMES.get(name, name): scores[split] for name, scores in facts["baselines"].items()
    }
    models |= baselines
    compared = [{"model": name, **_cells(scores, texts)} for name, scores in models.items()]
    others = [
        {"split": name, **_cells(model[name], _count(probe[name]))}
        for name in probe
        if name not in (split, "cv")  # which other models predicted
    ]
    classes = model.get(split, facts[split])["per_class"]
    of_classes = [
        {"class": name, **scores, "F1": scores["f1"], "rows": _whole(scores["support"])}
        for name, scores in judged(classes).items()
    ]
    supports = {name: scores["support"] for name, scores in classes.items()}
    return {
        "together_anywhere": _recorded(facts["combined"]),
        "split": split,
        "indexed": [
            # A name of a number, the Hub's type of metric, and the number.
            (name, kind, model[split][key])
            for name, kind, key in zip(_SCORES, _KINDS, _KEYS, strict=True)
            if split in model and model[split][key] is not None
        ],
        # A JSON string is a YAML scalar that nothing inside can end.
        "judged_file": json.dumps(
            _file_name(facts["data"]["train" if split == "cv" else split]["file"]) or "unnamed"
        ),
        "chosen_on_dev": split == "dev"
        and "cv" not in probe
        and (facts["chosen_on_dev"] is not False)
        and (count is None or count >= FEWEST_DEV_ROWS),
        "folds": facts["cv"]["folds"],
        "tried": _table(
            [
                {
                    "recipe": row["title"],
                    "log loss": row["log_loss"],
                    **dict(zip(_SCORES, (row[key] for key in _KEYS), strict=True)),
                }
                for row in facts["recipes"]["recipes"].values()
            ],
            "recipe",
            "log loss",
            *_SCORES,
        ),
        "count": count,
        "texts": None if texts == count else texts,
        "compared": _table(compared, "model", *_SCORES) if split in model else "",
        "verdict": " ".join(
            [
                *([_verdict(model[split], baselines, texts)] if split in model else ()),
                *([_seen(facts["overlap"])] if split == "test" else ()),
            ]
        ).strip(),
        "other_splits": _table(others, "split", *_SCORES),
        "baselines": baselines,
        "classes": _table(of_classes, "class", "precision", "recall", "F1", "rows"),
        "small_classes": [
            name for name, rows in supports.items() if rows is not None and rows < _FEW
        ],
    }


def _count(scores: Mapping[str, Any] | None) -> float | None:
    """How many rows a split's scores stand on: its `n`, else the sum of the supports."""
    if scores is None:
        return None
    supports = [values["support"] for values in scores["per_class"].values()]
    total = sum(supports) if supports and None not in supports else None
    count = total if scores["n"] is None else scores["n"]
    return count if count is not None and count > 0 else None


def _seen(overlap: Mapping[str, Any]) -> str:
    """The test texts that the run has seen, in a sentence; empty where it has seen none."""
    counts = {name: overlap[name] or 0 for name in ("train", "dev")}
    if not any(counts.values()):
        return ""
    rest = overlap["without"]
    known = None not in rest.values()
    told = told_overlap({**overlap, **counts, "without": rest if known else None})
    return f"{told[0].upper()}{told[1:]}."


def _verdict(
    model: Mapping[str, Any], baselines: Mapping[str, Mapping[str, Any]], count: float | None
) -> str:
    """The model against its best baseline, in one sentence that claims no more than it may."""
    accuracy = model["accuracy"]
    known = [(scores["accuracy"], name) for name, scores in baselines.items()]
    known = [(value, name) for value, name in known if value is not None]
    if accuracy is None or not known:
        return ""
    best, name = max(known, key=lambda pair: pair[0])  # of a tie the first, as on the page
    gap, name = accuracy - best, escape_markdown(name)
    if round(abs(gap), 3) == 0:
        return f"Its accuracy equals that of the best baseline ({name})."
    side = "above" if gap > 0 else "below"
    sentence = f"Its accuracy is {abs(gap):.3f} {side} that of the best baseline ({name})"
    if count is None or not (0 <= accuracy <= 1 and 0 <= best <= 1):
        return f"{sentence}."
    found = may_be_chance(accuracy, best, count)
    lies = {
        "model": "which lies within the model's interval",
        "baseline": "within whose interval the model's lies",
    }
    return f"{sentence}, {lies[found[0]]}: this may be chance." if found else f"{sentence}."


def _interval(accuracy: float, count: float | None) -> tuple[float, float] | None:
    return wilson(accuracy, count) if count is not None and 0 <= accuracy <= 1 else None


def _cells(scores: Mapping[str, Any], count: float | None) -> dict[str, Any]:
    """Cells of `_SCORES`, the accuracy with its interval."""
    accuracy = scores["accuracy"]
    shown = None if accuracy is None else f"{accuracy:.3f}"
    if accuracy is not None and (ends := _interval(accuracy, count)):
        shown = f"{shown} ({ends[0]:.3f} to {ends[1]:.3f})"
    return dict(zip(_SCORES, (shown, *(scores[key] for key in _KEYS[1:])), strict=True))


def _fenced(code: str, language: str) -> str:
    """A code block whose fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    code = code.encode("utf-8", "replace").decode("utf-8")
    return f"{fence}{language}\n{code}\n{fence}"
