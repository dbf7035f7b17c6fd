"""How much of a text do word vectors know? By distinct words (types) and by tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from superconext.vectors.table import WordVectors


def count_words(token_lists: Iterable[Sequence[str]]) -> Counter[str]:
    """How often each word stands in a text."""
    counts: Counter[str] = Counter()
    for tokens in token_lists:
        counts.update(tokens)
    return counts


def coverage(vectors: WordVectors, counts: Mapping[str, int], examples: int = 20) -> dict[str, Any]:
    """What of a text has a vector.

    Args:
        counts: how often each word stands in the text.
        examples: how many missing words to name.

    Returns:
        `types` and `tokens`, the size of the text, and for `exact` (the word as written),
        `any_case` (that, or a word equal but for case) and `served` (that, or composed of
        character n-grams) the counts and shares of both; `missing`, the most frequent words
        (with their counts) that are not in the table in any case, equal counts by code point.
    """
    words = list(counts)
    # `restrict` gives the rows that words find exactly or but for case.
    listed = {word.casefold() for word in vectors.restrict(words).words}
    any_case = [word.casefold() in listed for word in words]
    spell = None if vectors.subwords is None else vectors.subwords.hashes
    found = {
        "exact": vectors.known(words).tolist(),
        "any_case": any_case,
        "served": [
            ok or (spell is not None and bool(spell(word)))
            for word, ok in zip(words, any_case, strict=True)
        ],
    }
    tokens = sum(counts.values())
    report: dict[str, Any] = {"types": len(words), "tokens": tokens}
    for name, flags in found.items():
        of_types = sum(flags)
        of_tokens = sum(counts[word] for word, ok in zip(words, flags, strict=True) if ok)
        report[name] = {
            "types": of_types,
            "tokens": of_tokens,
            "type_share": of_types / max(len(words), 1),
            "token_share": of_tokens / max(tokens, 1),
        }
    absent = [word for word, ok in zip(words, any_case, strict=True) if not ok]
    absent.sort(key=lambda word: (-counts[word], word))
    report["missing"] = [[word, counts[word]] for word in absent[:examples]]
    return report
