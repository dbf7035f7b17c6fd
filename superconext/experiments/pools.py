"""Which rows is a comparison made on, and what is wrong with them?

Copies and near-copies across train, dev and test flatter the figures, and texts with two labels
bound them. All are looked for before anything is fitted, and are part of the result.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from superconext.core.errors import DataError
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset, check_training
from superconext.data.duplicates import conflicting, deduplicate, leaks
from superconext.data.lines import STDIN
from superconext.data.reading import read_labelled
from superconext.experiments.near_rows import near_findings, subsampled, without_near
from superconext.experiments.plan import Labelled

_ADVICE = "; add --deduplicate to remove them"


@dataclass(frozen=True)
class Pools:
    """rows: what `plan.cut` splits; labels: all there are, sorted.

    files: name, path as given, hash and rows of each file. findings: leakage and conflicts,
    one line each, about the rows as they are compared on. sha256: of each pool's rows.
    """

    rows: dict[str, Labelled]
    labels: list[str]
    files: dict[str, dict[str, Any]]
    findings: list[str]
    sha256: dict[str, str]


def read_pools(
    files: dict[str, str],
    scheme: str,
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    remove_copies: bool = False,
    remove_near: bool = False,
    at_most: int | None = None,
    look: bool = True,
    progress: Progress | None = None,
    called: str = "",
) -> Pools:
    """Read the labelled files and look for leakage.

    Args:
        files: path of "train" and, where given, "dev" and "test". Under scheme "resampled"
            their rows become one pool.
        remove_copies: keep the first of equal texts in each pool, and drop rows of train
            whose text stands in dev or test, and of dev whose text stands in test.
        remove_near: drop rows of train that resemble one of dev or test, of dev that resemble
            one of test, and all but the first of those that resemble each other in a pool.
        at_most: rows kept of each pool, after that.
        look: whether to look for near-duplicates, which takes longest.
        called: the data set's name, said before what is found in it.

    Raises DataError for files that cannot be read or trained on.
    """
    progress = progress or Progress()
    lead = f"{called}: " if called else ""
    corpora: dict[str, Dataset] = {}
    for role, path in files.items():
        if path == STDIN:
            raise DataError(
                f"found standard input for {role}; expected a file, because a comparison reads "
                "its data again when it goes on: save the rows to a file first"
            )
        corpora[role] = read_labelled(path, text_column, label_column)
        for note in corpora[role].notes:
            progress.say(f"note: {corpora[role].source}: {note}")
    facts = {
        role: {
            "path": files[role],
            "sha256": corpus.sha256,
            "rows": len(corpus),
            "classes": corpus.class_counts(),
        }
        for role, corpus in corpora.items()
    }
    if scheme == "resampled":
        corpora = {"all": _joined(list(corpora.values()))}
    removed = _without_copies(corpora) if remove_copies else []
    if remove_near:
        removed += without_near(corpora, progress)
    if at_most is not None:
        removed += subsampled(corpora, at_most)
    for line in removed:
        progress.say(f"note: {lead}{line}")
    check_training(corpora["all"] if scheme == "resampled" else corpora["train"])
    for role in ("dev", "test"):
        if role in corpora and not len(corpora[role]):
            raise DataError(f"{files[role]}: no row is left; expected some {role} rows: add some")
    findings = [*_leaks(corpora), *_copies(corpora), *_conflicts(corpora), *_unknown(corpora)]
    if look:
        findings += near_findings(corpora, progress)
    for line in findings:
        progress.warn(lead + line)
    return Pools(
        {role: (corpus.texts, corpus.labels) for role, corpus in corpora.items()},
        sorted({label for corpus in corpora.values() for label in corpus.labels}),
        facts,
        removed + [line.partition("; add --dedup")[0] for line in findings],
        {role: _digest(corpus) for role, corpus in corpora.items()},
    )


def _joined(corpora: list[Dataset]) -> Dataset:
    return dataclasses.replace(
        corpora[0],
        texts=[text for corpus in corpora for text in corpus.texts],
        labels=[label for corpus in corpora for label in corpus.labels],
        lines=[line for corpus in corpora for line in corpus.lines],
        source=" + ".join(corpus.source for corpus in corpora),
    )


def _without_copies(corpora: dict[str, Dataset]) -> list[str]:
    """Take the copies out of `corpora`; says what was taken."""
    said = []
    for role, corpus in list(corpora.items()):
        kept = deduplicate(corpus.texts)
        if len(kept) < len(corpus):
            said.append(f"{len(corpus) - len(kept)} rows of {role} repeated a text: removed")
        corpora[role] = corpus.select(kept)
    for role, others in (("train", ("dev", "test")), ("dev", ("test",))):
        if role not in corpora:
            continue
        held = [text for other in others if other in corpora for text in corpora[other].texts]
        leaked = leaks(held, corpora[role].texts)
        if len(leaked):
            named = " or ".join(other for other in others if other in corpora)
            said.append(f"{len(leaked)} rows of {role} stood in {named}: removed from {role}")
            kept = np.setdiff1d(np.arange(len(corpora[role])), leaked)
            corpora[role] = corpora[role].select(kept)
    return said


def _leaks(corpora: dict[str, Dataset]) -> list[str]:
    said = []
    for seen, held in (("train", "test"), ("train", "dev"), ("dev", "test")):
        if seen in corpora and held in corpora:
            count = len(leaks(corpora[seen].texts, corpora[held].texts))
            if count:
                said.append(
                    f"LEAKAGE: {count} of {len(corpora[held])} {held} texts stand in {seen} word "
                    f"for word, which flatters the figures{_ADVICE}"
                )
    return said


def _copies(corpora: dict[str, Dataset]) -> list[str]:
    said = []
    for role, corpus in corpora.items():
        count = len(corpus) - len(deduplicate(corpus.texts))
        if count:
            side = " (no split parts copies)" if role == "all" else ""
            where = "" if role == "all" else f" of {role}"
            said.append(
                f"DUPLICATES: {count} of {len(corpus)} rows{where} repeat a text{side}{_ADVICE}"
            )
    return said


def _conflicts(corpora: dict[str, Dataset]) -> list[str]:
    whole = _joined(list(corpora.values()))
    count = conflicting(whole.texts, whole.labels)
    if not count:
        return []
    return [f"CONFLICTS: {count} text{'s carry' if count > 1 else ' carries'} more than one label"]


def _unknown(corpora: dict[str, Dataset]) -> list[str]:
    if "test" not in corpora:
        return []
    strange = sorted(set(corpora["test"].labels) - set(corpora["train"].labels))
    if not strange:
        return []
    return [
        f"UNKNOWN LABELS: test has labels that training never sees: {', '.join(strange[:5])}; "
        "they count as wrong"
    ]


def _digest(corpus: Dataset) -> str:
    return hashlib.sha256(json.dumps([corpus.texts, corpus.labels]).encode()).hexdigest()
