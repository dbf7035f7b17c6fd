"""The model card: README.md of a run folder, in the layout of the Hugging Face Hub.

One template, filled with what manifest.json and metrics.json record. They are checked against
one table of types first: what is missing or of another type becomes an HTML comment for the
user to fill in, never a guess. Layout: Mitchell et al., "Model Cards for Model Reporting" (2019).
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from collections.abc import Mapping
from numbers import Real
from pathlib import Path
from string import Template
from typing import Any

from superconext.encoders import ENCODERS
from superconext.report.canvas import replacing
from superconext.report.table import BASELINE_NAMES, clean, escape_markdown, markdown, wilson

_SPLITS = ("train", "dev", "test")
_FEW = 30  # rows of a class, below which its scores say little
_SCORES = ("accuracy", "macro F1", "weighted F1")
_TFIDF = "a logistic regression on TF-IDF features (word 1-2-grams, character 2-5-grams)"

#: How a run predicts with an ensemble, by the ensemble's title.
_ENSEMBLES = {
    "TF-IDF": f"It answers by the mean of the probe's probabilities and those of {_TFIDF}.",
    "n-grams": (
        f"It answers by three models, the probe, {_TFIDF} and one on character n-grams weighted by "
        "log-count ratios, whose log probabilities are added with weights chosen on dev rows."
    ),
}

_TEMPLATE = Template("""\
---
# license: which licence do you give this model? Its SPDX name, such as cc-by-4.0
# language: which ones are the sentences in? ISO 639 codes, such as ary, arq, aeb
library_name: superconext
pipeline_tag: text-classification
tags:
$tags
metrics:
- accuracy
- f1
---

# Text classifier$trained_with

$what

## Data

$data

## Results

$results

## Sentence vectors

$collapse

## Limits

- One class a sentence: it cannot say that two classes hold, or none. A sentence that belongs to \
no class still gets one.
- Trained on $rows. It knows the words and spellings in them and in the text its word vectors \
come from; others are guessed from their letters or not known at all.
- Label noise: the labels were taken as they are. A wrong label pulls a sentence towards the \
wrong class in training and counts as an error, or hides one, in the results. No model can be \
shown to be better than its annotators agree.
- Dialect coverage: a score holds for the towns, topics, years and scripts that the test rows \
come from. Expect less on others, and on sentences that mix languages in another way. Nothing \
here was measured on them.
$small_classes- Chance: other seeds give other scores; the intervals above do not cover that.

## How to load it

```python
import superconext

model = superconext.load("path/to/this/folder")
model.predict(["a sentence", "another one"])
```

```bash
superconext predict path/to/this/folder sentences.txt
```

The folder holds plain arrays, JSON, TOML and text; loading it runs no code from it.

## How it was made

$made

## What we cannot know: please fill in

The command that wrote this page saw the files, not the people. Before you share the
model, replace each comment.

- Intended use: <!-- Who should use it, for what? What should it not be used for? -->
- Source of the data: <!-- Where and when were the sentences collected, by whom? -->
- Licence of the data: <!-- Which one? Does it allow a model trained on it to be shared? -->
- Labels: <!-- Who labelled it, with which instructions? How often did two people agree? -->
- Consent: <!-- Did the writers agree? Are names or private matters left in the text? -->
- Languages and dialects: <!-- Which varieties, regions and scripts, in which shares? -->
- Contact: <!-- Whom to ask, and whom to tell about a mistake? -->
""")


def write_card(path: str | os.PathLike[str], facts: Mapping[str, Any]) -> None:
    """Write the card to `path` (a folder: to its README.md), replacing what was there.

    Raises RunError when the file cannot be written.
    """
    target = Path(path)
    if target.is_dir():
        target = target / "README.md"
    with replacing(target) as temporary:
        temporary.write_text(render_card(facts), encoding="utf-8", newline="\n")


def render_card(facts: Mapping[str, Any]) -> str:
    """The card as text.

    Args:
        facts: manifest.json and metrics.json of a run folder merged into one mapping. Any key
            may be missing or of another type.

    Text from users (labels, file names) is escaped: it can break neither a table nor the
    front matter, nor begin HTML.
    """
    facts = _typed(facts, _SCHEMA)
    results = _Results(facts)
    objectives = [facts[key] for key in _OBJECTIVES if facts[key]]
    names = " and ".join(map(escape_markdown, objectives))
    rows = facts["data"]["train"]["rows"]
    tags = ["text-classification", "sentence-embeddings", "contrastive-learning", *objectives[:1]]
    return _TEMPLATE.substitute(
        # A JSON string is a YAML scalar that nothing inside can end.
        tags="\n".join(f"- {json.dumps(tag, ensure_ascii=False)}" for tag in tags),
        trained_with=f" trained with {names}" if names else "",
        what=_what(facts),
        data=_data(facts["data"]),
        results=_paragraphs(results.compared(), results.other_splits(), results.of_classes()),
        collapse=_collapse(**facts["collapse"]),
        rows="<!-- how many? not recorded --> rows" if rows is None else f"{rows} rows",
        small_classes=results.small_classes(),
        made=_made(facts),
    )


def _paragraphs(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


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
_SPLIT = {
    **dict.fromkeys(("accuracy", "f1_macro", "f1_weighted", "n"), _number),
    "per_class": {_EACH: dict.fromkeys(("precision", "recall", "f1", "support"), _number)},
}
_SCORED = dict.fromkeys(_SPLITS, _SPLIT)
_FILE = {"file": _text, "sha256": _text, "rows": _whole, "classes": {_EACH: _whole}}
_SCHEMA: dict[str, Any] = {
    **dict.fromkeys((*_OBJECTIVES, "encoder", "companion", "reported_split"), _text),
    **dict.fromkeys(("preset", "seed", "threads", "created", "version", "status"), _setting),
    **dict.fromkeys(("wall_seconds", "cpu_seconds"), _seconds),
    **_SCORED,
    **dict.fromkeys(("combined", "encoder_alone", "native"), _SCORED),
    "baselines": {_EACH: _SCORED},
    "command": _command,
    "data": dict.fromkeys(_SPLITS, _FILE),
    "related": {"rows": _whole, "file": _text},
    "vectors": {"name": _text, "dimension": _number, "trained_on": _text},
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


# Paragraphs


def _what(facts: Mapping[str, Any]) -> str:
    objective = escape_markdown(facts["objective"] or "") or "<!-- which? not recorded -->"
    lines = [
        f"A sentence encoder ({_encoder(facts['encoder'])}) trained with the objective "
        f"{objective}, and a linear probe (logistic regression) on its frozen sentence vectors. "
        "It gives each sentence exactly one class."
    ]
    if facts["second_objective"]:
        lines.append(
            "It has several such encoders, read by the probe side by side; every second one was "
            f"trained with {escape_markdown(facts['second_objective'])} instead."
        )
    if facts["related"]["rows"] is not None:
        file = escape_markdown(facts["related"]["file"] or "a related set")
        lines.append(
            f"The encoder, and not the probe, also learnt from {facts['related']['rows']} labelled "
            f"rows of {file}."
        )
    if _recorded(facts["combined"]):
        lines.append(_ENSEMBLES.get(facts["companion"], _ENSEMBLES["TF-IDF"]))
    if classes := facts["data"]["train"]["classes"]:
        lines.append(f"Classes ({len(classes)}): {', '.join(map(escape_markdown, classes))}.")
    else:
        lines.append("<!-- Which classes does it tell apart? Not recorded. -->")
    lines.append(_vectors(**facts["vectors"]))
    if facts["status"] not in ("complete", None):
        lines.append(
            f"**This run did not reach its end (status: {escape_markdown(facts['status'])}).** "
            "The scores below are those of the weights saved last."
        )
    return _paragraphs(*lines)


def _encoder(name: str | None) -> str:
    """What kind of encoder it is; runs that do not record it have the only one there was."""
    if name in (None, "bilstm"):
        return "a bidirectional LSTM over word vectors"
    return escape_markdown(ENCODERS.summary(name) if name in ENCODERS else name)


def _vectors(name: str | None, dimension: float | None, trained_on: str | None) -> str:
    """The word vectors the encoder starts from, in one line."""
    if not name and not trained_on:
        return "<!-- Which word vectors does it start from? Not recorded. -->"
    size = "" if dimension is None else f" {dimension:g} dimensions,"
    source = escape_markdown(trained_on or "") or "<!-- what? not recorded -->"
    title = escape_markdown(_file_name(name) or "unnamed")
    return f"Word vectors: {title},{size} trained on {source}."


def _data(data: Mapping[str, Any]) -> str:
    """Files, row counts and hashes, then the rows of each class in each split."""
    data = {split: file for split, file in data.items() if _recorded(file)}
    if not data:
        return "<!-- Which files was it trained and judged on? Not recorded. -->"
    files = [
        {
            "split": split,
            "file": _file_name(file["file"]),
            "rows": file["rows"],
            "SHA-256": (file["sha256"] or "")[:16] or None,
        }
        for split, file in data.items()
    ]
    tables = [markdown(files, ("split", "file", "rows", "SHA-256"))]
    counts = {split: file["classes"] for split, file in data.items() if file["classes"]}
    if counts:
        names = dict.fromkeys(name for given in counts.values() for name in given)
        rows = [
            {"class": name, **{split: given.get(name, 0) for split, given in counts.items()}}
            for name in names
        ]
        tables += ["Rows of each class:", markdown(rows, ("class", *counts))]
    tables.append("(The hash is cut to its first 16 digits; `manifest.json` has it whole.)")
    return _paragraphs(*tables)


def _file_name(path: str | None) -> str | None:
    """The last part alone: folder names of the author's machine are nobody's business."""
    return re.split(r"[/\\]", path.rstrip("/\\"))[-1] or None if path else None


class _Results:
    """The scores of a run that the card shows.

    Of a run that predicts by the probe and an ensemble together, both are the model.
    """

    def __init__(self, facts: Mapping[str, Any]) -> None:
        self.probe = {split: facts[split] for split in _SPLITS if _recorded(facts[split])}
        reported = (facts["reported_split"], "test", "dev")
        self.split = split = next((name for name in reported if name in self.probe), "test")
        self.count = self._count(split)
        together = _recorded(facts["combined"][split])
        #: What the run predicts by, by split.
        self.model = facts["combined"] if together else self.probe
        #: What else is known of the reported split, by what the card calls it.
        self.others = {}
        if together:
            alone = facts["encoder_alone"][split]
            # Runs of versions before 0.2 have these scores under the split's name.
            alone = alone if _recorded(alone) else facts[split]
            self.others["its encoder alone, with a linear probe"] = alone
        if _recorded(facts["native"][split]):
            self.others["this model, by its objective's own rule"] = facts["native"][split]
        self.baselines = {
            BASELINE_NAMES.get(name, name): scores[split]
            for name, scores in facts["baselines"].items()
        }
        self.classes = self.model.get(split, facts[split])["per_class"]

    def compared(self) -> str:
        """The model and its baselines on the reported split, with intervals and in words."""
        if self.split not in self.model:
            return "<!-- No scores were recorded. -->"
        models = {"this model": self.model[self.split], **self.others, **self.baselines}
        rows = [{"model": name, **_cells(models[name], self.count)} for name in models]
        parts = [
            f"On {self.split}{'' if self.count is None else f' ({self.count:.0f} rows)'}. In "
            "brackets: Wilson's 95% interval, the uncertainty that comes from judging this many "
            "rows and no other.",
            markdown(rows, ("model", *_SCORES)),
            self._verdict(),
        ]
        if self.split == "dev":
            parts.append(
                "No test file was given: these rows also chose the probe's regularisation, so "
                "expect somewhat less on new data."
            )
        if self.count is None:
            parts.append("<!-- How many rows were judged? Not recorded, hence no interval. -->")
        return _paragraphs(*parts)

    def other_splits(self) -> str:
        """The model's other splits; a comment when it was compared with nothing."""
        rows = [
            {"split": split, **_cells(self.model[split], self._count(split))}
            for split in self.probe
            if split != self.split
        ]
        parts = []
        if rows:
            parts += ["This model on the other rows:", markdown(rows, ("split", *_SCORES))]
        if not self.baselines:
            parts.append("<!-- No baselines were recorded: is this better than a simple model? -->")
        return _paragraphs(*parts)

    def of_classes(self) -> str:
        """Precision, recall, F1 and rows of each class on the reported split."""
        if not self.classes:
            return "<!-- No scores of single classes were recorded. -->"
        rows = [
            {"class": name, **scores, "F1": scores["f1"], "rows": _whole(scores["support"])}
            for name, scores in self.classes.items()
        ]
        columns = ("class", "precision", "recall", "F1", "rows")
        return _paragraphs(f"Each class on {self.split}:", markdown(rows, columns))

    def small_classes(self) -> str:
        """The limit that classes of a few rows set; "" where there are none."""
        supports = {name: scores["support"] for name, scores in self.classes.items()}
        few = [name for name, rows in supports.items() if rows is not None and rows < _FEW]
        names = ", ".join(map(escape_markdown, few))
        limit = (
            f"- Fewer than {_FEW} rows were judged of: {names}. Their scores may be far from what "
            "you will see.\n"
        )
        return limit if few else ""

    def _count(self, split: str) -> float | None:
        """How many rows a split's scores stand on: its `n`, else the sum of the supports."""
        scores = self.probe.get(split, {"n": None, "per_class": {}})
        supports = [values["support"] for values in scores["per_class"].values()]
        total = sum(supports) if supports and None not in supports else None
        count = total if scores["n"] is None else scores["n"]
        return count if count is not None and count > 0 else None

    def _verdict(self) -> str:
        """The model against its best baseline, in one sentence that claims no more than it may."""
        accuracy = self.model[self.split]["accuracy"]
        known = [(scores["accuracy"], name) for name, scores in self.baselines.items()]
        known = [(value, name) for value, name in known if value is not None]
        if accuracy is None or not known:
            return ""
        best, name = max(known)
        gap, name = accuracy - best, escape_markdown(name)
        if round(abs(gap), 3) == 0:
            return f"Its accuracy equals that of the best baseline ({name})."
        side = "above" if gap > 0 else "below"
        sentence = f"Its accuracy is {abs(gap):.3f} {side} that of the best baseline ({name})"
        low, high = _interval(accuracy, self.count) or (1.0, 0.0)
        chance = ", which lies within the model's interval: this may be chance"
        return sentence + chance * (low <= best <= high) + "."


def _interval(accuracy: float, count: float | None) -> tuple[float, float] | None:
    return wilson(accuracy, count) if count is not None and 0 <= accuracy <= 1 else None


def _cells(scores: Mapping[str, Any], count: float | None) -> dict[str, Any]:
    """Cells of `_SCORES`, the accuracy with its interval."""
    accuracy = scores["accuracy"]
    shown = None if accuracy is None else f"{accuracy:.3f}"
    if accuracy is not None and (ends := _interval(accuracy, count)):
        shown = f"{shown} ({ends[0]:.3f} to {ends[1]:.3f})"
    return dict(zip(_SCORES, (shown, scores["f1_macro"], scores["f1_weighted"]), strict=True))


def _collapse(
    effective_rank: float | None, mean_cosine: float | None, collapsed: bool | None
) -> str:
    """Whether the sentence vectors use their space, in words."""
    parts = []
    if effective_rank is not None:
        parts.append(
            f"The vectors spread over about {effective_rank:.1f} directions (effective rank; 1 "
            "would mean that all lie on one line)."
        )
    if mean_cosine is not None:
        parts.append(
            f"Two sentences drawn at random have a cosine of {mean_cosine:.2f} on average (1 would "
            "mean that all vectors point the same way)."
        )
    if collapsed:
        parts.append(
            "**The encoder collapsed**: it gives nearly the same vector to every sentence. Do not "
            "use its vectors; train again with a lower learning rate or another temperature."
        )
    elif collapsed is not None:
        parts.append("The encoder did not collapse.")
    return " ".join(parts) or "<!-- Did the encoder collapse? Not recorded. -->"


def _made(facts: Mapping[str, Any]) -> str:
    """The command, the settings and the versions."""
    parts = ["<!-- With which command? Not recorded. -->"]
    if facts["command"]:
        parts = [
            _fenced(facts["command"], "bash"),
            "<!-- The command may name folders of your machine: look before you publish. -->",
        ]
    settings = {name: facts[key] for key, name in _SETTINGS.items() if facts[key] is not None}
    if not facts["versions"]:
        parts.append("<!-- With which versions of Python and of the packages? Not recorded. -->")
    rows = [
        {"what": name, "value": value} for name, value in (settings | facts["versions"]).items()
    ]
    return _paragraphs(*parts, markdown(rows, ("what", "value")) if rows else "")


def _fenced(code: str, language: str) -> str:
    """A code block whose fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    code = code.encode("utf-8", "replace").decode("utf-8")
    return f"{fence}{language}\n{code}\n{fence}"
