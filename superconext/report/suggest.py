"""Sentences to label next: uncertain ones that are unlike each other.

Of the texts ten times as many as asked for, but at most half of all, are taken whose two likeliest
classes are nearest to each other. k-means groups them by their sentence vectors, each weighted by
its uncertainty, and of each group the text nearest to its centre is suggested. Source: Zhdanov
(2019), "Diverse mini-batch active learning".
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from superconext.core.blank import is_blank
from superconext.core.errors import DataError
from superconext.data.dataset import Texts
from superconext.data.duplicates import near_duplicate_groups, text_keys
from superconext.report.explain import Model
from superconext.text.characters import script_of

#: Uncertain texts that are grouped for each one that is suggested.
UNCERTAIN = 10

#: Texts that are looked at; of more, as many are drawn at random.
POOL = 20_000


@dataclass(frozen=True)
class Suggestion:
    """One text to label. line: of its file. certainty: probability of the prediction."""

    text: str
    line: int
    prediction: str | int | float
    certainty: float


def suggest(
    model: Model,
    texts: Texts,
    count: int = 50,
    labelled: Sequence[str] = (),
    balance: str | None = None,
    seed: int = 0,
    tell: Callable[[str], None] = lambda line: None,
) -> list[Suggestion]:
    """The texts to label next, the least certain first.

    Args:
        model: of a run. texts: unlabelled; of near-duplicates the first one counts.
        count: how many, fewer where there are not as many.
        labelled: texts that have a label; they and their near-duplicates are left out.
        balance: "class" for as many of each predicted class, "script" for as many of each script.
        tell: called where there are more texts than `POOL`.

    Raises DataError where every text is among the labelled ones.
    """
    keys, _ = text_keys({"labelled": labelled, "texts": texts.texts})
    groups = near_duplicate_groups(keys["labelled"] + keys["texts"])
    groups = np.where(groups < 0, -1 - np.arange(len(groups)), groups)
    known, groups = groups[: len(labelled)], groups[len(labelled) :]
    first = np.sort(np.unique(groups, return_index=True)[1])
    rows = first[~np.isin(groups[first], known)]
    rows = rows[[not is_blank(texts.texts[row]) for row in rows]]
    if not len(rows):
        raise DataError(
            f"{texts.source}: found no text that is still unlabelled, expected some: check the file"
        )
    if len(rows) > POOL:
        tell(f"{POOL:,} of {len(rows):,} texts, drawn at random, are considered")
        rows = np.sort(np.random.default_rng(seed).choice(rows, POOL, replace=False))
    pool = [texts.texts[row] for row in rows]
    vectors = model.features(pool)
    shares = model.combined(pool, model.probe.probabilities(vectors))
    names: Any = np.zeros(len(pool))
    if balance is not None:
        names = shares.argmax(axis=1) if balance == "class" else [script_of(text) for text in pool]
    kinds = np.unique(names, return_inverse=True)[1]
    smallest_first = np.argsort(np.bincount(kinds), kind="stable")
    chosen: list[int] = []
    for place, kind in enumerate(smallest_first):
        members = np.flatnonzero(kinds == kind)
        wanted = (count - len(chosen)) // (len(smallest_first) - place)
        chosen += members[select(shares[members], vectors[members], wanted, seed)].tolist()
    chosen.sort(key=lambda row: shares[row].max())
    return [
        Suggestion(
            pool[row],
            texts.lines[rows[row]],
            model.classes[int(shares[row].argmax())],
            round(float(shares[row].max()), 4),
        )
        for row in chosen
    ]


def select(probabilities: np.ndarray, vectors: np.ndarray, count: int, seed: int = 0) -> np.ndarray:
    """Rows of the texts to label next, `[count]` or all N where there are fewer.

    Args:
        probabilities: of the classes, `[N, C]`. vectors: of the sentences, `[N, d]`.
    """
    from sklearn.cluster import KMeans

    best = np.sort(probabilities, axis=1)
    margins = best[:, -1] - best[:, -2]
    uncertain = max(count, min(UNCERTAIN * count, len(margins) // 2))
    rows = np.argsort(margins, kind="stable")[:uncertain]
    if len(rows) <= count:
        return rows
    points = vectors[rows]
    groups = KMeans(count, n_init=1, max_iter=50, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of fewer distinct vectors than groups
        groups.fit(points, sample_weight=1 - margins[rows] + 1e-6)
    distances = groups.transform(points)
    distances[np.arange(len(rows)), groups.labels_] -= distances.max() + 1  # its own group first
    taken: list[int] = []
    for group in range(count):
        distances[taken] = np.inf
        taken.append(int(distances[:, group].argmin()))
    return rows[taken]


def pre_annotated(suggestions: Sequence[Suggestion], tool: str, blind: bool = False) -> str:
    """What an annotation tool imports: tasks with the prediction, or without where `blind`.

    tool: "label-studio" (a JSON array for a project with the interface of `interface`) or
        "doccano" (JSON lines for a project of text classification).
    """
    tasks: list[dict[str, Any]] = []
    for one in suggestions:
        if tool == "doccano":
            seen = {} if blind else {"certainty": one.certainty}
            tasks.append(
                {"text": one.text, "label": [] if blind else [one.prediction], "line": one.line}
                | seen
            )
            continue
        task: dict[str, Any] = {"data": {"text": one.text, "line": one.line}}
        if not blind:
            choice = {"from_name": "label", "to_name": "text", "type": "choices"}
            result = [{**choice, "value": {"choices": [one.prediction]}}]
            task["predictions"] = [
                {"model_version": "superconext", "score": one.certainty, "result": result}
            ]
        tasks.append(task)
    if tool == "doccano":
        return "\n".join(json.dumps(task, ensure_ascii=False) for task in tasks)
    return json.dumps(tasks, ensure_ascii=False, indent=1)


def interface(classes: Sequence[str]) -> str:
    """The labelling interface of Label Studio that the tasks of `pre_annotated` belong to."""
    choices = "".join(f"<Choice value={quoteattr(name)}/>" for name in classes)
    return (
        '<View><Text name="text" value="$text"/>'
        f'<Choices name="label" toName="text" choice="single">{choices}</Choices></View>'
    )


def table(suggestions: Sequence[Suggestion], blind: bool = False) -> list[dict[str, Any]]:
    """Rows with an empty column `label` to fill in; `blind` leaves out what the run says."""
    rows = [{"label": "", **asdict(one)} for one in suggestions]
    hidden = {"prediction", "certainty"} if blind else set()
    return [{key: row[key] for key in row if key not in hidden} for row in rows]
