"""Inspection of labelled data sets: counts, lengths, scripts, duplicates, leakage, contradictions.

`inspect_parts` gives plain data (the JSON of `data inspect`); the tables are made in
`superconext.report.datasets`. `deduplicated` gives what is left without copies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from superconext.core.errors import ConfigError
from superconext.data.dataset import Dataset
from superconext.data.duplicates import THRESHOLD, near_duplicates, text_keys, without_copies
from superconext.data.lines import STDIN, shown
from superconext.data.splits import Row
from superconext.text.characters import script_counts, script_groups
from superconext.text.mojibake import damage_of, is_garbled
from superconext.text.tokenize import word_count

_PERCENTILES = (50, 90, 99)

#: Rows of a group from which its class shares are compared, and how many at most are looked at.
_COMPARED = (100, 20_000)

#: Shares differ where they do by this much, and by this many standard errors.
_FAR, _SURELY = 0.15, 5.0

Keys = Mapping[str, Sequence[str]]


def inspect_parts(
    parts: Mapping[str, Dataset],
    profile: str = "auto",
    threshold: float | None = THRESHOLD,
    examples: int = 3,
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Counts, lengths, scripts, copies, leaks, contradictions and near-duplicates.

    Args:
        parts: files by a short name, in the order train, dev, test.
        profile: rules under which texts count as the same, see `duplicates.text_keys`.
        threshold: Jaccard similarity of a near-duplicate; None leaves that search out.
        examples: how many cases of each kind to show.
        progress: called with the share of the near-duplicate search done, 0 to 1.

    Returns:
        `profile`; `parts` (for each its `file`, `rows`, `classes`, `characters`, `words`,
        `scripts`, `classes_by_script`, `garbled` texts); `duplicates`, `conflicts` and
        `near_duplicates` as
        `duplicates_of`, `conflicts_of` and `near_duplicates_of` describe them.

    Raises ConfigError for an unknown profile or an impossible threshold.
    """
    keys, profile = text_keys({name: part.texts for name, part in parts.items()}, profile)
    report: dict[str, Any] = {
        "profile": profile,
        "parts": [_facts(name, part) for name, part in parts.items()],
        "duplicates": duplicates_of(parts, keys),
        "conflicts": conflicts_of(parts, keys, examples),
        "near_duplicates": None,
    }
    if threshold is not None:
        found = near_duplicates_of(parts, keys, threshold, examples, progress)
        report["near_duplicates"] = found
    return report


def _facts(name: str, part: Dataset) -> dict[str, Any]:
    return {
        "name": name,
        "file": part.source,
        "sha256": part.sha256,
        "rows": len(part),
        "classes": part.class_counts(),
        "characters": _lengths([len(text) for text in part.texts]),
        "words": _lengths(list(map(word_count, part.texts))),
        "scripts": script_counts(part.texts),
        "classes_by_script": _classes_by_script(part),
        "garbled": sum(bool(is_garbled(text) or damage_of(text)) for text in part.texts),
    }


def _classes_by_script(part: Dataset) -> dict[str, dict[str, int]]:
    """How many rows of each class each group of scripts has, the largest group first."""
    counts: dict[str, Counter[str]] = {}
    for group, label in zip(script_groups(part.texts), part.labels, strict=True):
        counts.setdefault(group, Counter())[label] += 1
    order = sorted(counts, key=lambda group: -counts[group].total())
    return {group: dict(sorted(counts[group].items())) for group in order}


def told_other_shares(train: Dataset, test: Dataset) -> str:
    """The class whose share of the rows, or of the rows of a script, differs most between train
    and test, as words; "" where none differs much."""
    known, counts = train.class_counts(), test.class_counts()
    found = {"": (known, counts)}
    if train.on_disk is None and test.on_disk is None:
        ours, others = _classes_by_script(_some(train)), _classes_by_script(_some(test))
        if len({**ours, **others}) > 1:
            both = [group for group in ours if group in others]
            found |= {f"{group} ": (ours[group], others[group]) for group in both}
    told, most = "", _FAR
    for group, (here, there) in found.items():
        rows, held = sum(here.values()), sum(there.values())
        if min(rows, held) < _COMPARED[0]:
            continue
        for label in known:
            first, second = here.get(label, 0) / rows, there.get(label, 0) / held
            mean = (here.get(label, 0) + there.get(label, 0)) / (rows + held)
            error = float(np.sqrt(mean * (1 - mean) * (1 / rows + 1 / held)))
            if abs(first - second) > max(most, _SURELY * error):
                most = abs(first - second)
                told = f"{second:.0%} of the {group}rows in test are {shown(label)}, in train "
                told += f"{first:.0%}"
    return told


def _some(part: Dataset) -> Dataset:
    """The part, or evenly spaced rows of a large one."""
    if len(part) <= _COMPARED[1]:
        return part
    return part.select(np.linspace(0, len(part) - 1, _COMPARED[1]).astype(int))


def _lengths(counts: list[int]) -> dict[str, float]:
    """Least, mean, percentiles (lengths that occur) and greatest."""
    values = np.array(counts)
    found: dict[str, float] = {"min": int(values.min()), "mean": round(float(values.mean()), 2)}
    for percent in _PERCENTILES:
        found[f"p{percent}"] = int(np.percentile(values, percent, method="inverted_cdf"))
    return {**found, "max": int(values.max())}


def duplicates_of(parts: Mapping[str, Dataset], keys: Keys) -> dict[str, list[dict[str, Any]]]:
    """Copies inside each part and from part to part.

    Returns:
        `within`: for each part `rows` that repeat an earlier one of it after normalisation, and
        `identical` ones that do so exactly, and how many with the `same_label` (as an earlier one).
        `across`: for each later part `of` and earlier part `in`, the `rows` of the first whose
        text is in the second after normalisation, how many of them `identical`ly, and how
        many with the `same_label` (some copy of which has it).
    """
    names = list(parts)
    within = [
        {
            "name": name,
            "rows": len(keys[name]) - len(set(keys[name])),
            "identical": len(parts[name]) - len(set(parts[name].texts)),
            "same_label": len(keys[name])
            - len(set(zip(keys[name], parts[name].labels, strict=True))),
        }
        for name in names
    ]
    across = []
    for place, later in enumerate(names):
        for earlier in names[:place]:
            seen, exact = set(keys[earlier]), set(parts[earlier].texts)
            labelled = set(zip(keys[earlier], parts[earlier].labels, strict=True))
            pairs = zip(keys[later], parts[later].labels, strict=True)
            across.append(
                {
                    "of": later,
                    "in": earlier,
                    "rows": sum(key in seen for key in keys[later]),
                    "identical": sum(text in exact for text in parts[later].texts),
                    "same_label": sum(pair in labelled for pair in pairs),
                }
            )
    return {"within": within, "across": across}


def conflicts_of(parts: Mapping[str, Dataset], keys: Keys, examples: int) -> dict[str, Any]:
    """Texts that carry several labels: how many `texts`, in how many `rows`, and `examples`.

    The parts are taken together. Each example has the `text` as first written, its `labels`
    with their counts, and `where` it stands (`part:line`).
    """
    labels: dict[str, Counter[str]] = {}
    for name, part in parts.items():
        for key, label in zip(keys[name], part.labels, strict=True):
            labels.setdefault(key, Counter())[label] += 1
    torn = {key: counts for key, counts in labels.items() if len(counts) > 1}
    shown = sorted(torn, key=lambda key: -torn[key].total())[:examples]
    places = _places(parts, keys, shown)
    return {
        "texts": len(torn),
        "rows": sum(counts.total() for counts in torn.values()),
        "examples": [
            {
                "text": _text_at(parts, places[key][0]),
                "labels": dict(torn[key].most_common()),
                "where": _where(parts, places[key]),
            }
            for key in shown
        ],
    }


def near_duplicates_of(
    parts: Mapping[str, Dataset],
    keys: Keys,
    threshold: float,
    examples: int,
    progress: Callable[[float], None] | None = None,
) -> dict[str, Any]:
    """Distinct texts that are almost the same; copies do not count again.

    Returns:
        `threshold`; `groups` of such texts; `texts` in them; `across`: for each later part `of`
        and earlier part `in` the `rows` of the first in a group with another text of the second;
        `conflicts`: groups with several labels; `examples` with their `similarity`, `texts` and
        `where`.
    """
    distinct = list(dict.fromkeys(key for name in parts for key in keys[name]))
    found = near_duplicates(distinct, threshold, progress)
    group_of = {distinct[i]: number for number, group in enumerate(found.groups) for i in group}
    members: dict[str, dict[int, set[str]]] = {name: {} for name in parts}
    labels: list[set[str]] = [set() for _ in found.groups]
    for name, part in parts.items():
        for key, label in zip(keys[name], part.labels, strict=True):
            if key in group_of:
                members[name].setdefault(group_of[key], set()).add(key)
                labels[group_of[key]].add(label)
    names = list(parts)
    across = [
        {
            "of": later,
            "in": earlier,
            "rows": sum(
                key in group_of and bool(members[earlier].get(group_of[key], set()) - {key})
                for key in keys[later]
            ),
        }
        for place, later in enumerate(names)
        for earlier in names[:place]
    ]
    shown = [[distinct[i], distinct[j]] for i, j, _ in found.pairs[-examples:]] if examples else []
    places = _places(parts, keys, [key for pair in shown for key in pair])
    return {
        "threshold": threshold,
        "groups": len(found.groups),
        "texts": len(group_of),
        "conflicts": sum(len(group) > 1 for group in labels),
        "across": across,
        "examples": [
            {
                "similarity": round(similarity, 3),
                "texts": [_text_at(parts, places[key][0]) for key in pair],
                "where": [_where(parts, places[key][:1])[0] for key in pair],
            }
            for pair, (_, _, similarity) in zip(shown, found.pairs[-examples:], strict=False)
        ],
    }


def _places(
    parts: Mapping[str, Dataset], keys: Keys, wanted: Sequence[str]
) -> dict[str, list[tuple[str, int]]]:
    """Part and row of every copy of the wanted texts."""
    places: dict[str, list[tuple[str, int]]] = {key: [] for key in wanted}
    for name in parts:
        for row, key in enumerate(keys[name]):
            if key in places:
                places[key].append((name, row))
    return places


def _text_at(parts: Mapping[str, Dataset], place: tuple[str, int]) -> str:
    return parts[place[0]].texts[place[1]]


def _where(parts: Mapping[str, Dataset], places: Sequence[tuple[str, int]]) -> list[str]:
    return [f"{name}:{parts[name].lines[row]}" for name, row in places[:6]]


#: Names of parts in the order in which they are compared and kept.
ORDER = ("all", "train", "dev", "valid", "validation", "test")


def named_parts(
    files: Sequence[str], dev: str | None = None, test: str | None = None
) -> dict[str, str]:
    """Files by a short name: the part they are, or what comes before the first dot.

    Files that are all named for parts, as `*.tsv` lists them by the alphabet, come in the order
    of parts; others stay in the order given, dev and test last. A name that is taken gets a
    number. Raises ConfigError for a file given twice.
    """
    given = [(_stem(path), path) for path in files]
    if len(given) == 1 and (dev or test):
        given = [("train", files[0])]
    given += [(part, path) for part, path in (("dev", dev), ("test", test)) if path is not None]
    seen: set[Path] = set()
    for _, path in given:
        if Path(path).resolve() in seen:
            raise ConfigError(f"{path} is given twice; expected each file once: leave one out")
        seen.add(Path(path).resolve())
    if all(name in ORDER for name, _ in given):
        given.sort(key=lambda pair: ORDER.index(pair[0]))
    named: dict[str, str] = {}
    for name, path in given:
        others = (f"{name}-{number}" for number in count(2))
        named[name if name not in named else next(n for n in others if n not in named)] = path
    return named


def deduplicated(
    parts: Mapping[str, Dataset], profile: str
) -> tuple[dict[str, list[Row]], dict[str, Any]]:
    """Rows (label, text) of each part without copies, and a record of where they come from.

    Of a text that is in several parts the last one keeps it, see `duplicates.without_copies`;
    a part of which nothing is left is left out.
    """
    keys, profile = text_keys({name: part.texts for name, part in parts.items()}, profile)
    kept = without_copies(keys, {name: part.labels for name, part in parts.items()})
    rows = {
        name: [
            (label, parts[name].texts[row])
            for row, label in zip(places.tolist(), labels, strict=True)
        ]
        for name, (places, labels) in kept.items()
        if len(places)
    }
    sources = {
        name: {"file": part.source, "sha256": part.sha256, "rows": len(part)}
        for name, part in parts.items()
    }
    return rows, {"deduplicated": sources, "normalize": profile}


def _stem(path: str) -> str:
    return "stdin" if path == STDIN else Path(path).name.lstrip(".").split(".")[0] or "file"
