"""When are two texts the same text, and which copy stays?

Two texts are copies when their keys are equal: the text as the model reads it, after the rules
of a profile of `superconext.text.normalize`. Letter case, an address or a mention, or one more
`ه` of laughter make no new text. Under the profile `none` only the very same characters are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from superconext.core.errors import DataError
from superconext.data.splits import Rows
from superconext.text.normalize import Normalizer, choose_profile


def text_keys(
    parts: Mapping[str, Sequence[str]], profile: str = "auto"
) -> tuple[dict[str, list[str]], str]:
    """The key of each text of each part, and the profile: `auto` is decided on all parts at once.

    A text of which the rules leave nothing is its own key. Raises ConfigError for an unknown
    profile.
    """
    if profile == "auto":
        profile = choose_profile(chain.from_iterable(parts.values()))
    normalizer = Normalizer(profile)
    keys = {name: [normalizer(text) or text for text in texts] for name, texts in parts.items()}
    return keys, profile


def first_copies(keys: Sequence[str], labels: Sequence[str]) -> tuple[Rows, list[str]]:
    """Sorted rows of the first copy of each text, and a label for each of them.

    A text with several labels gets the one most of its copies have, of equally many the one
    that comes first. Raises DataError for unequal lengths.
    """
    if len(keys) != len(labels):
        raise DataError(
            f"found {len(keys)} texts and {len(labels)} labels, expected as many of each: "
            "pass one label for each text"
        )
    first: dict[str, int] = {}
    votes: dict[str, Counter[str]] = {}
    for row, (key, label) in enumerate(zip(keys, labels, strict=True)):
        first.setdefault(key, row)
        votes.setdefault(key, Counter())[label] += 1
    rows = np.fromiter(first.values(), dtype=np.int64, count=len(first))
    # `most_common` keeps the order of arrival among equals.
    return rows, [votes[key].most_common(1)[0][0] for key in first]


def without_copies(
    keys: Mapping[str, Sequence[str]], labels: Mapping[str, Sequence[str]]
) -> dict[str, tuple[Rows, list[str]]]:
    """For each part the rows to keep, with their labels, so that every text stands once.

    Parts are in the order train, dev, test: of a text that stands in several, the copies in the
    last one stay, so that nothing is taken from what results are reported on.
    """
    kept: dict[str, tuple[Rows, list[str]]] = {}
    later: set[str] = set()
    for name in reversed(list(keys)):
        rows, voted = first_copies(keys[name], labels[name])
        wanted = [place for place, row in enumerate(rows) if keys[name][row] not in later]
        kept[name] = rows[wanted], [voted[place] for place in wanted]
        later.update(keys[name])
    return {name: kept[name] for name in keys}
