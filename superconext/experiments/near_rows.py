"""Which rows of an experiment are almost the same text as one they are judged against?

Texts that differ by a letter, a link or one more `ه` of laughter leak as copies do, and a search
for copies does not see them. They are texts as the model reads them (see `data.duplicates`), alike
by shared character 4-grams. They are said always, and taken out only
where that is asked for: unlike copies they may be honest rows, such as "great film" and "great
films".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.data.duplicates import THRESHOLD, near_duplicate_groups, text_keys
from superconext.data.splits import stratified_holdout

#: Characters looked through unasked; a few seconds' work. Beyond, rows are drawn.
BUDGET = 3_000_000

_PAIRS = (("train", "test"), ("train", "dev"), ("dev", "test"))
_ADVICE = "; add --deduplicate-near to remove them"


@dataclass(frozen=True)
class _Groups:
    """group: of each row of each part, -1 for a row that resembles no other text."""

    rows: dict[str, np.ndarray]
    group: dict[str, np.ndarray]
    share: float


def near_findings(corpora: Mapping[str, Dataset], progress: Progress) -> list[str]:
    """What resembles what across the parts, one line each; exact copies are not counted.

    Args:
        corpora: "train", "dev", "test", or "all" where the seed draws the parts.

    Above `BUDGET` characters a share of each part's rows is looked through, and said: what is
    found then is a lower bound.
    """
    found = _groups(corpora, progress, BUDGET)
    said = []
    seen = f", looked for in {found.share:.0%} of the rows, so at least" if found.share < 1 else ""
    if "all" in corpora:
        count = _resembling_others(corpora["all"], found)
        if count:
            said.append(
                f"NEAR-DUPLICATES: {count} of {len(corpora['all'])} rows resemble an earlier one"
                f"{seen} ({_what()}); a random split parts them, which flatters the figures"
                + _ADVICE
            )
        return said
    for earlier, later in _PAIRS:
        if earlier in corpora and later in corpora:
            count = len(_leaking(corpora, found, later, (earlier,)))
            if count:
                said.append(
                    f"NEAR-DUPLICATES: {count} of {len(corpora[later])} {later} rows resemble a "
                    f"text of {earlier}{seen} ({_what()}), which flatters the figures{_ADVICE}"
                )
    if not said and found.share < 1:
        said.append(
            f"NEAR-DUPLICATES: none found in {found.share:.0%} of the rows, all that was looked "
            "through; superconext data inspect looks through all"
        )
    return said


def without_near(corpora: dict[str, Dataset], progress: Progress) -> list[str]:
    """Take rows out of `corpora` that resemble rows judged on; says what was taken.

    Of train what resembles dev or test, of dev what resembles test; of a pool that the seed
    draws from all but the first of each group. Rows that are exact copies go with them. All rows
    are looked through.
    """
    found = _groups(corpora, progress, None)
    said = []
    if "all" in corpora:
        group = found.group["all"]
        _, first = np.unique(group, return_index=True)
        kept = np.union1d(np.flatnonzero(group < 0), first)
        taken = len(group) - len(kept)
        if taken:
            said.append(f"{taken} rows resembled an earlier one ({_what()}): removed")
        corpora["all"] = corpora["all"].select(kept)
        return said
    # Both from what was found before anything is taken.
    for earlier, later in (("train", ("dev", "test")), ("dev", ("test",))):
        others = [name for name in later if name in found.group]
        if earlier not in corpora or not others:
            continue
        held = np.unique(np.concatenate([found.group[name] for name in others]))
        bad = np.isin(found.group[earlier], held[held >= 0])
        if bad.any():
            said.append(
                f"{bad.sum()} rows of {earlier} resembled {' or '.join(others)} ({_what()}): "
                f"removed from {earlier}"
            )
            corpora[earlier] = corpora[earlier].select(np.flatnonzero(~bad))
    return said


def _what() -> str:
    return f"shared character 4-grams {THRESHOLD:g} or more"


def _groups(corpora: Mapping[str, Dataset], progress: Progress, budget: int | None) -> _Groups:
    rows, share = _looked_through(corpora, budget)
    texts = {name: [corpora[name].texts[row] for row in places] for name, places in rows.items()}
    keys, _ = text_keys(texts)
    with progress.bar("looking for near-duplicates") as advance:
        number = near_duplicate_groups(
            [k for part in keys.values() for k in part], progress=advance
        )
    ends = np.cumsum([len(part) for part in keys.values()])
    group = dict(zip(keys, np.split(number, ends[:-1]), strict=True))
    return _Groups(rows, group, share)


def _looked_through(
    corpora: Mapping[str, Dataset], budget: int | None
) -> tuple[dict[str, np.ndarray], float]:
    """The rows of each part to look at: all, or a share of each drawn once and for all."""
    size = sum(len(text) for corpus in corpora.values() for text in corpus.texts)
    share = 1.0 if budget is None or size <= budget else budget / size
    draw = np.random.RandomState(0)
    rows = {
        name: np.arange(len(corpus))
        if share == 1
        else np.sort(draw.permutation(len(corpus))[: max(1, int(share * len(corpus)))])
        for name, corpus in corpora.items()
    }
    return rows, share


def _leaking(
    corpora: Mapping[str, Dataset], found: _Groups, later: str, others: tuple[str, ...]
) -> np.ndarray:
    """Rows of a part that resemble a text of the others without being a copy of one."""
    held = np.unique(np.concatenate([found.group[name] for name in others]))
    exact = {text for name in others for text in corpora[name].texts}
    alike = np.isin(found.group[later], held[held >= 0])
    places = found.rows[later][alike]
    return np.array([row for row in places if corpora[later].texts[row] not in exact], dtype=int)


def _resembling_others(corpus: Dataset, found: _Groups) -> int:
    """Rows whose group has an earlier row of another text, to the letter."""
    first: dict[int, set[str]] = {}
    count = 0
    for row, group in zip(found.rows["all"], found.group["all"], strict=True):
        if group >= 0:
            seen = first.setdefault(int(group), set())
            text = corpus.texts[row]
            count += bool(seen) and text not in seen
            seen.add(text)
    return count


def subsampled(corpora: dict[str, Dataset], at_most: int) -> list[str]:
    """Keep about `at_most` rows of each part, drawn class by class with seed 0; says so.

    The draw is over distinct texts, and copies come along.
    """
    said = []
    for name, corpus in list(corpora.items()):
        if len(corpus) > at_most:
            share = 1 - at_most / len(corpus)
            kept, _ = stratified_holdout(corpus.texts, corpus.labels, share, 0)
            corpora[name] = corpus.select(kept)
            said.append(
                f"SUBSAMPLE: {len(kept)} of {len(corpus)} rows of {name}, drawn by class with "
                "seed 0"
            )
    return said
