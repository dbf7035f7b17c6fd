"""The model card: README.md of a run folder, in the layout of the Hugging Face Hub.

Says what the run folder knows and asks for the rest: a fact nobody recorded becomes an
HTML comment for the user to fill in, never a guess. Layout: Mitchell et al., "Model Cards
for Model Reporting" (2019).
"""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from superconext.report.canvas import replacing
from superconext.report.card_data import data, vectors
from superconext.report.card_results import collapse, other_splits, per_class, results
from superconext.report.facts import Facts, look, number, reported_split, text_of
from superconext.report.table import clean, escape_markdown, markdown

_TFIDF = "a logistic regression on TF-IDF features (word 1-2-grams, character 2-5-grams)"

#: How it answers, by the title of what stands beside the probe.
_TOGETHER = {
    "TF-IDF": f"It answers by the mean of the probe's probabilities and those of {_TFIDF}.",
    "n-grams": (
        f"It answers by three models, the probe, {_TFIDF} and one on character n-grams weighted by "
        "log-count ratios, whose log probabilities are added with weights chosen on dev rows."
    ),
}


def write_card(path: str | os.PathLike[str], facts: Facts) -> None:
    """Write the card to `path` (a folder: to its README.md), replacing what was there.

    Raises RunError when the file cannot be written.
    """
    target = Path(path)
    if target.is_dir():
        target = target / "README.md"
    with replacing(target) as beside:
        beside.write_text(render_card(facts), encoding="utf-8", newline="\n")


def render_card(facts: Facts) -> str:
    """The card as text.

    Args:
        facts: manifest.json and metrics.json of a run folder merged into one mapping.
            Any key may be missing or of another type; what stood there becomes a
            comment.

    Text from users (labels, file names) is escaped: it can break neither a table nor the
    front matter, nor begin HTML.
    """
    sections = [
        front_matter(facts),
        _title(facts),
        _what(facts),
        "## Data",
        data(facts),
        "## Results",
        results(facts),
        other_splits(facts),
        per_class(facts),
        "## Sentence vectors",
        collapse(facts),
        "## Limits",
        _limits(facts),
        "## How to load it",
        _LOADING,
        "## How it was made",
        _made(facts),
        "## What we cannot know: please fill in",
        _QUESTIONS,
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def front_matter(facts: Facts) -> str:
    """The YAML block that the Hub reads; licence and language are left as questions."""
    tags = ["text-classification", "sentence-embeddings", "contrastive-learning"]
    objective = look(facts, "objective")
    if isinstance(objective, str) and clean(objective):
        tags.append(clean(objective))
    lines = [
        "---",
        "# license: which licence do you give this model? Its SPDX name, such as cc-by-4.0",
        "# language: which ones are the sentences in? ISO 639 codes, such as ary, arq, aeb",
        "library_name: superconext",
        "pipeline_tag: text-classification",
        "tags:",
        # A JSON string is a YAML scalar that nothing inside can end.
        *(f"- {json.dumps(tag, ensure_ascii=False)}" for tag in tags),
        "metrics:",
        "- accuracy",
        "- f1",
        "---",
    ]
    return "\n".join(lines)


def _title(facts: Facts) -> str:
    names = (text_of(look(facts, key)) for key in ("objective", "second_objective"))
    objective = " and ".join(name for name in names if name)
    return "# Text classifier" + (f" trained with {objective}" if objective else "")


def _what(facts: Facts) -> str:
    objective = text_of(look(facts, "objective")) or "<!-- which? not recorded -->"
    lines = [
        f"A sentence encoder (a bidirectional LSTM over word vectors) trained with the objective "
        f"{objective}, and a linear probe (logistic regression) on its frozen sentence "
        "vectors. It gives each sentence exactly one class."
    ]
    second = text_of(look(facts, "second_objective"))
    if second:
        lines.append(
            f"It has several such encoders, read by the probe side by side; every second one was "
            f"trained with {second} instead."
        )
    related = look(facts, "related", "rows")
    if isinstance(related, int) and not isinstance(related, bool):
        lines.append(
            f"The encoder, and not the probe, also learnt from {related} labelled rows of "
            f"{text_of(look(facts, 'related', 'file')) or 'a related set'}."
        )
    if look(facts, "combined") is not None:
        lines.append(_TOGETHER.get(text_of(look(facts, "companion")), _TOGETHER["TF-IDF"]))
    classes = look(facts, "data", "train", "classes")
    if isinstance(classes, Mapping) and classes:
        names = ", ".join(escape_markdown(str(name)) for name in classes)
        lines.append(f"Classes ({len(classes)}): {names}.")
    else:
        lines.append("<!-- Which classes does it tell apart? Not recorded. -->")
    lines.append(vectors(facts))
    status = look(facts, "status")
    if status is not None and status != "complete":
        lines.append(
            f"**This run did not reach its end (status: {text_of(status)}).** The figures below "
            "are those of the weights saved last."
        )
    return "\n\n".join(lines)


def _limits(facts: Facts) -> str:
    rows = number(look(facts, "data", "train", "rows"))
    trained = f"{rows:.0f} rows" if rows is not None else "<!-- how many? not recorded --> rows"
    lines = [
        "- One class a sentence: it cannot say that two classes hold, or none. A sentence that "
        "belongs to no class still gets one.",
        f"- Trained on {trained}. It knows the words and spellings in them and in the text its "
        "word vectors come from; others are guessed from their letters or not known at all.",
        "- Label noise: the labels were taken as they are. A wrong label pulls a sentence "
        "towards the wrong class in training and counts as an error, or hides one, in the "
        "results. No model can be shown to be better than its annotators agree.",
        "- Dialect coverage: a score holds for the towns, topics, years and scripts that the "
        "test rows come from. Expect less on others, and on sentences that mix languages in "
        "another way. Nothing here was measured on them.",
    ]
    small = _small_classes(facts)
    if small:
        lines.append(
            f"- Fewer than {_FEW} rows were judged of: {', '.join(small)}. Their scores may be "
            "far from what you will see."
        )
    lines.append("- Chance: other seeds give other figures; the intervals above do not cover that.")
    return "\n".join(lines)


_FEW = 30


def _small_classes(facts: Facts) -> list[str]:
    table = look(facts, reported_split(facts), "per_class")
    if not isinstance(table, Mapping):
        return []
    supports = {str(name): number(look(table, name, "support")) for name in table}
    return [
        escape_markdown(name)
        for name, support in supports.items()
        if support is not None and support < _FEW
    ]


def _made(facts: Facts) -> str:
    parts = []
    command = look(facts, "command")
    if isinstance(command, Sequence) and not isinstance(command, str) and command:
        parts.append(_fenced(shlex.join(str(word) for word in command), "bash"))
        parts.append(
            "<!-- The command may name folders of your machine: look before you publish. -->"
        )
    elif isinstance(command, str) and command.strip():
        parts.append(_fenced(command, "bash"))
    else:
        parts.append("<!-- With which command? Not recorded. -->")
    settings: list[dict[str, str | None]] = [
        {"what": name, "value": value}
        for name, value in (
            ("preset", _shown(look(facts, "preset"))),
            ("seed", _shown(look(facts, "seed"))),
            ("threads", _shown(look(facts, "threads"))),
            ("created", _shown(look(facts, "created"))),
            ("wall clock", _seconds(look(facts, "wall_seconds"))),
            ("processor time", _seconds(look(facts, "cpu_seconds"))),
            ("superconext", _shown(look(facts, "version"))),
        )
        if value is not None
    ]
    versions = look(facts, "versions")
    if isinstance(versions, Mapping):
        known = {row["what"] for row in settings}
        settings += [
            {"what": str(name), "value": _shown(value)}
            for name, value in versions.items()
            if name not in known
        ]
    else:
        parts.append("<!-- With which versions of Python and of the packages? Not recorded. -->")
    if settings:
        parts.append(markdown(settings, ("what", "value")))
    return "\n\n".join(parts)


def _shown(given: Any) -> str | None:
    if isinstance(given, bool) or not isinstance(given, (str, int, float)):
        return None
    if isinstance(given, float) and not math.isfinite(given):
        return None
    return clean(str(given)) or None


def _seconds(given: Any) -> str | None:
    value = number(given)
    return None if value is None else f"{value:.1f} s"


def _fenced(code: str, language: str) -> str:
    """A code block whose fence is longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall("`+", code)), default=0)
    fence = "`" * max(3, longest + 1)
    code = code.encode("utf-8", "replace").decode("utf-8")
    return f"{fence}{language}\n{code}\n{fence}"


_LOADING = """```python
import superconext

model = superconext.load("path/to/this/folder")
model.predict(["a sentence", "another one"])
```

```bash
superconext predict path/to/this/folder sentences.txt
```

The folder holds plain arrays, JSON, TOML and text; loading it runs no code from it."""

_QUESTIONS = """The command that wrote this page saw the files, not the people. Before you share the
model, replace each comment.

- Intended use: <!-- Who should use it, for what? What should it not be used for? -->
- Source of the data: <!-- Where and when were the sentences collected, by whom? -->
- Licence of the data: <!-- Which one? Does it allow a model trained on it to be shared? -->
- Labels: <!-- Who labelled it, with which instructions? How often did two people agree? -->
- Consent: <!-- Did the writers agree? Are names or private matters left in the text? -->
- Languages and dialects: <!-- Which varieties, regions and scripts, in which shares? -->
- Contact: <!-- Whom to ask, and whom to tell about a mistake? -->"""
