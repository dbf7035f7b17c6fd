"""Row sources: the rows that splits are drawn from, deduplicated and checked for leakage.

Copies and near-copies across train, dev and test inflate the metrics, and texts with two labels
bound them. All are looked for before anything is fitted, and are part of the result.

Near-duplicates, texts that differ by a letter, a link or one more `ه` of laughter, leak as copies
do. They are texts as the model reads them, alike by shared character 4-grams
(`data.duplicates`). They are always reported, and removed only where that is asked for:
unlike copies they may be honest rows, such as "great film" and "great films".
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from superconext.core.errors import DataError, listed, plural
from superconext.core.progress import Progress
from superconext.data.dataset import ALIKE, Dataset, check_training, unknown_labels
from superconext.data.duplicates import (
    THRESHOLD,
    conflicting,
    deduplicate,
    first_copies,
    leaks,
    near_duplicate_groups,
    text_keys,
)
from superconext.data.lines import STDIN
from superconext.data.reading import read_labelled
from superconext.data.splits import stratified_holdout
from superconext.experiments.plan import HELD_OUT, Labelled
from superconext.experiments.subsampling import TEST_HELD
from superconext.experiments.systems import READING, DataSet

#: Parts, and the later parts that none of their texts may stand in.
_LATER_PARTS = {"train": ("dev", "test"), "dev": ("test",)}
_PAIRS = (("train", "test"), ("train", "dev"), ("dev", "test"))

#: Characters that are looked through for near-duplicates by default, some seconds' work; of
#: larger data a sample is.
BUDGET = 3_000_000

_ALIKE = f"shared character 4-grams {THRESHOLD:g} or more"
_ADVICE = "; add --deduplicate to remove them"
_NEAR_ADVICE = "; add --deduplicate-near to remove them"


@dataclass(frozen=True)
class RowSource:
    """rows: what `plan.cut` splits; labels: all there are, sorted.

    lines: of each row of `rows`. unlabelled: texts of rows without a label, which were left out of
    the training rows.
    files: name, path as given, hash and rows of each file. findings: leakage and conflicts,
    one line each, about the rows as they are compared on. sha256: of each pool's rows.
    """

    rows: dict[str, Labelled]
    labels: list[str]
    files: dict[str, dict[str, Any]]
    findings: list[str]
    sha256: dict[str, str]
    lines: dict[str, Sequence[int]]
    unlabelled: Sequence[str] = ()


def read_rows(
    data: DataSet, scheme: str, progress: Progress, *, near_findings: bool = True
) -> RowSource:
    """Read the labelled files of a data set and look for leakage.

    Its `deduplicate` keeps the first of equal texts in each pool, with the label that most of
    them have, and drops rows of train whose text is in dev or test, and of dev whose text is in
    test. Its `deduplicate_near` drops rows of train that resemble one of dev or test, of dev that
    resemble one of test, and where rows of all files become one pool all but the first of those
    that resemble each other, with the label that most of its copies have. Its `at_most` then
    bounds each pool.

    Args:
        scheme: as `Request.scheme` says; under "resampled" and `TEST_HELD` the rows of all files
            become one pool, as where they are dealt into folds.
        near_findings: whether to look for near-duplicates, which takes longest.

    Raises DataError for files that cannot be read or trained on.
    """
    files = data.files()
    lead = f"{data.name}: " if data.name else ""
    corpora: dict[str, Dataset] = {}
    for role, path in files.items():
        if path == STDIN:
            raise DataError(
                f"found standard input for {role}; expected a file, because a comparison reads "
                "its data again when it resumes: save the rows to a file first"
            )
        with progress.bar(f"reading {path}") as advance:
            columns = (data.text_column, data.label_column)
            reading = {name: getattr(data, name) for name in READING}
            corpora[role] = read_labelled(path, *columns, **reading, advance=advance)
        for note in corpora[role].notes:
            if not (role == "train" and data.fold_label_case is not False and ALIKE in note):
                progress.note(note, corpora[role].source)
    facts = {
        role: {
            "path": files[role],
            "sha256": corpus.sha256,
            "rows": len(corpus),
            "classes": corpus.class_counts(),
        }
        for role, corpus in corpora.items()
    }
    if scheme in ("resampled", TEST_HELD) or scheme.startswith("cv"):
        corpora = {"all": _joined(list(corpora.values()))}
    removed = _without_copies(corpora) if data.deduplicate else []
    if data.deduplicate_near:
        removed += _without_near(corpora, progress)
    if data.at_most is not None:
        removed += _subsampled(corpora, data.at_most)
    for line in removed:
        progress.note(f"{lead}{line}")
    pool = corpora["all" if "all" in corpora else "train"]
    for line in check_training(pool, data.fold_label_case is False):
        progress.warn(lead + line)
    for role in ("dev", "test"):
        if role in corpora and not len(corpora[role]):
            raise DataError(f"{files[role]}: no row is left; expected some {role} rows: add some")
    findings = _findings(corpora)
    if near_findings:
        findings += _near_findings(corpora, progress)
    for line in findings:
        progress.warn(lead + line)
    if scheme == TEST_HELD:
        train, test = stratified_holdout(pool.texts, pool.labels, HELD_OUT, 0)
        corpora = {"train": pool.select(train), "test": pool.select(test)}
    return RowSource(
        {role: (corpus.texts, corpus.labels) for role, corpus in corpora.items()},
        sorted({label for corpus in corpora.values() for label in corpus.labels}),
        facts,
        removed + [line.partition("; add --dedup")[0] for line in findings],
        {
            role: hashlib.sha256(json.dumps([corpus.texts, corpus.labels]).encode()).hexdigest()
            for role, corpus in corpora.items()
        },
        {role: corpus.lines for role, corpus in corpora.items()},
        pool.unlabelled,
    )


def _joined(corpora: list[Dataset]) -> Dataset:
    return dataclasses.replace(
        corpora[0],
        texts=[text for corpus in corpora for text in corpus.texts],
        labels=[label for corpus in corpora for label in corpus.labels],
        lines=[line for corpus in corpora for line in corpus.lines],
        unlabelled=[text for corpus in corpora for text in corpus.unlabelled],
        source=" + ".join(corpus.source for corpus in corpora),
        shares=(),  # which no fit of a comparison learns from
        ties=(),
        annotated=None,
    )


def _keys(corpora: Mapping[str, Dataset]) -> dict[str, list[str]]:
    """What texts are compared by, see `duplicates.text_keys`."""
    return text_keys({role: corpus.texts for role, corpus in corpora.items()})[0]


def _without_copies(corpora: dict[str, Dataset]) -> list[str]:
    """Remove copies from `corpora`; returns a note for each part that lost rows."""
    notes = []
    keys = _keys(corpora)
    for role, corpus in list(corpora.items()):
        kept, labels = first_copies(keys[role], corpus.labels)
        if len(kept) < len(corpus):
            repeats = plural(len(corpus) - len(kept), "row")
            several = len(conflicting(keys[role], corpus.labels))
            voted = f"; {plural(several, 'text')} with several labels had the most common one"
            notes.append(f"{repeats} of {role} repeated a text: removed{voted * bool(several)}")
        corpora[role] = dataclasses.replace(corpus.select(kept), labels=labels)
        keys[role] = [keys[role][row] for row in kept]

    def leaked(role: str, others: list[str]) -> np.ndarray:
        later = [key for other in others for key in keys[other]]
        return leaks(later, keys[role])

    return notes + _drop(corpora, leaked, "with a text that is also in {}")


def _without_near(corpora: dict[str, Dataset], progress: Progress) -> list[str]:
    """Remove near-duplicates from `corpora`; returns a note for each part that lost rows.

    All rows are looked through. Rows that are exact copies go with them; of these the one that
    stays has the label that most of them have.
    """
    groups = _groups(corpora, progress, None)
    if "all" in corpora:
        group = groups.group["all"]
        _, first = np.unique(group, return_index=True)
        kept = np.union1d(np.flatnonzero(group < 0), first)
        corpus, keys = corpora["all"], _keys(corpora)["all"]
        first, voted = first_copies(keys, corpus.labels)
        label = {keys[row]: name for row, name in zip(first, voted, strict=True)}
        labels = [label[keys[row]] for row in kept]
        corpora["all"] = dataclasses.replace(corpus.select(kept), labels=labels)
        count = len(group) - len(kept)
        rows = plural(count, "row")
        return [f"{rows} resembled an earlier one ({_ALIKE}): removed"] * bool(count)

    def resembling(role: str, others: list[str]) -> np.ndarray:
        return np.flatnonzero(groups.resembling(role, others))

    return _drop(corpora, resembling, "resembled {} (" + _ALIKE + ")")


def _drop(
    corpora: dict[str, Dataset], leaked: Callable[[str, list[str]], np.ndarray], how: str
) -> list[str]:
    """Remove from train and dev the rows `leaked(part, later parts)`; returns notes."""
    notes = []
    for role, later in _LATER_PARTS.items():
        others = [other for other in later if other in corpora]
        rows = leaked(role, others) if role in corpora and others else ()
        if len(rows):
            where = how.format(" or ".join(others))
            notes.append(f"{plural(len(rows), 'row')} of {role} {where}: removed from {role}")
            kept = np.setdiff1d(np.arange(len(corpora[role])), rows)
            corpora[role] = corpora[role].select(kept)
    return notes


def _findings(corpora: dict[str, Dataset]) -> list[str]:
    """Leakage, copies, conflicting labels and unknown labels, a sentence each."""
    findings, keys = [], _keys(corpora)
    for earlier, later in _PAIRS:
        if earlier in corpora and later in corpora:
            count = len(leaks(keys[earlier], keys[later]))
            if count:
                findings.append(
                    f"LEAKAGE: {count} of {len(corpora[later])} {later} texts are in {earlier}, "
                    f"which makes the scores too high{_ADVICE}"
                )
    for role, corpus in corpora.items():
        count = len(corpus) - len(deduplicate(keys[role]))
        if count:
            side = " (no split parts copies)" if role == "all" else ""
            where = "" if role == "all" else f" of {role}"
            findings.append(
                f"DUPLICATES: {count} of {len(corpus)} rows{where} repeat a text{side}{_ADVICE}"
            )
    labels = [label for corpus in corpora.values() for label in corpus.labels]
    count = len(conflicting([key for of in keys.values() for key in of], labels))
    if count:
        findings.append(f"CONFLICTS: {plural(count, 'text')} with more than one label")
    if "test" in corpora:
        test, known = corpora["test"], set(corpora["train"].labels)
        unknown, mend = unknown_labels(test.labels, known, test.source)
        if unknown:
            findings.append(
                "UNKNOWN LABELS: test has labels that training never sees: "
                f"{listed(unknown)}; they count as wrong{mend}"
            )
    return findings


@dataclass(frozen=True)
class _Groups:
    """Groups of texts that resemble each other.

    rows: those looked through, of each part. group: of each such row, -1 for a text that resembles
        no other. share: of all rows that were looked through.
    """

    rows: dict[str, np.ndarray]
    group: dict[str, np.ndarray]
    share: float

    def resembling(self, part: str, others: Sequence[str]) -> np.ndarray:
        """Which rows of a part are in a group with one of the other parts, bool."""
        shared = np.unique(np.concatenate([self.group[name] for name in others]))
        return np.isin(self.group[part], shared[shared >= 0])


def _near_findings(corpora: Mapping[str, Dataset], progress: Progress) -> list[str]:
    """What resembles what across the parts, one line each; exact copies are not counted.

    corpora: "train", "dev", "test", or "all" where the seed draws the parts. Above `BUDGET`
    characters a sample of each part's rows is looked through, and the findings say so: the counts
    are then lower bounds.
    """
    groups = _groups(corpora, progress, BUDGET)
    findings = []
    share_note = (
        f", looked for in {groups.share:.0%} of the rows, so at least" if groups.share < 1 else ""
    )
    if "all" in corpora:
        count = _resembling_others(corpora["all"], groups)
        if count:
            findings.append(
                f"NEAR-DUPLICATES: {count} of {len(corpora['all'])} rows resemble an earlier one"
                f"{share_note} ({_ALIKE}); a random split separates them, which makes "
                "the scores too high" + _NEAR_ADVICE
            )
        return findings
    for earlier, later in _PAIRS:
        if earlier in corpora and later in corpora:
            exact = set(corpora[earlier].texts)
            rows = groups.rows[later][groups.resembling(later, [earlier])]
            count = sum(corpora[later].texts[row] not in exact for row in rows)
            if count:
                findings.append(
                    f"NEAR-DUPLICATES: {count} of {len(corpora[later])} {later} rows resemble a "
                    f"text of {earlier}{share_note} ({_ALIKE}), which makes the "
                    f"scores too high{_NEAR_ADVICE}"
                )
    if not findings and groups.share < 1:
        findings.append(
            f"NEAR-DUPLICATES: none found in {groups.share:.0%} of the rows, all that was looked "
            "through; superconext data inspect looks through all"
        )
    return findings


def _groups(corpora: Mapping[str, Dataset], progress: Progress, budget: int | None) -> _Groups:
    """The groups in `corpora`; of more than `budget` characters, in a sample of each part."""
    size = sum(len(text) for corpus in corpora.values() for text in corpus.texts)
    share = 1.0 if budget is None or size <= budget else budget / size
    draw = np.random.RandomState(0)
    rows = {
        name: np.arange(len(corpus))
        if share == 1
        else np.sort(draw.permutation(len(corpus))[: max(1, int(share * len(corpus)))])
        for name, corpus in corpora.items()
    }
    texts = {name: [corpora[name].texts[row] for row in places] for name, places in rows.items()}
    keys, _ = text_keys(texts)
    with progress.bar("looking for near-duplicates") as advance:
        number = near_duplicate_groups(
            [key for part in keys.values() for key in part], progress=advance
        )
    ends = np.cumsum([len(part) for part in keys.values()])
    group = dict(zip(keys, np.split(number, ends[:-1]), strict=True))
    return _Groups(rows, group, share)


def _resembling_others(corpus: Dataset, groups: _Groups) -> int:
    """Rows whose group has an earlier row of another text, exactly."""
    first: dict[int, set[str]] = {}
    count = 0
    for row, group in zip(groups.rows["all"], groups.group["all"], strict=True):
        if group >= 0:
            texts = first.setdefault(int(group), set())
            text = corpus.texts[row]
            count += bool(texts) and text not in texts
            texts.add(text)
    return count


def _subsampled(corpora: dict[str, Dataset], at_most: int) -> list[str]:
    """Keep about `at_most` rows of each part, drawn class by class with seed 0.

    The draw is over distinct texts, and copies come along.
    """
    notes = []
    for name, corpus in list(corpora.items()):
        if len(corpus) > at_most:
            share = 1 - at_most / len(corpus)
            kept, _ = stratified_holdout(corpus.texts, corpus.labels, share, 0)
            corpora[name] = corpus.select(kept)
            notes.append(
                f"SUBSAMPLE: {len(kept)} of {len(corpus)} rows of {name}, drawn by class with "
                "seed 0"
            )
    return notes
