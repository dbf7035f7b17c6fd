"""Which of several files is which part of a set, and what is left of them without copies?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

from superconext.core.errors import ConfigError
from superconext.data.dataset import Dataset
from superconext.data.folder import Row
from superconext.data.lines import STDIN
from superconext.data.same_text import text_keys, without_copies

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

    Of a text that stands in several parts the last one keeps it, see `same_text.without_copies`;
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
