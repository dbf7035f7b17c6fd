"""Word vectors as text: facts, coverage of labelled and unlabelled text, nearest words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from superconext.data.duplicates import wording
from superconext.text.normalize import Normalizer, choose_profile
from superconext.text.tokenize import Tokenizer
from superconext.vectors.coverage import count_words, coverage
from superconext.vectors.readers import read_vectors
from superconext.vectors.table import WordVectors
from superconext.vectors.text_corpus import Lines, recorded_tokenizer

Texts = Mapping[str, Sequence[str]]

_LEVELS = {"exact": "exact", "any_case": "in any case", "served": "with subwords"}


def facts_of(vectors: WordVectors, out: Path | None = None) -> dict[str, Any]:
    """What a table of word vectors is, as plain data; `out` is the folder it was written to."""
    table, grams = vectors.subwords, None
    if table is not None:
        grams = {"buckets": len(table.buckets), "min_n": table.min_n, "max_n": table.max_n}
    return {
        **({} if out is None else {"out": str(out)}),
        "name": vectors.name,
        "words": len(vectors),
        "dimension": vectors.dimension,
        "subwords": grams,
        "sha256": vectors.sha256,
    }


def tokens_of(vectors: WordVectors) -> int | None:
    """Tokens a trained table was made from: one out of the cache knows it by its name only."""
    match = re.search(r"(\d+) tokens", vectors.name)
    return int(match[1]) if match else None


def facts_table(facts: Mapping[str, Any]) -> str:
    """One line for each fact, names aligned."""
    shown = dict(facts)
    if "subwords" in shown:
        shown["subwords"] = "none"
        if grams := facts["subwords"]:
            shown["subwords"] = (
                f"{grams['buckets']} buckets, n-grams of {grams['min_n']} to {grams['max_n']} "
                "characters"
            )
    width = max(len(name) for name in shown)
    return "\n".join(f"{name:<{width}}  {_value(value)}" for name, value in shown.items())


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value is None else str(value)


def coverage_table(report: Mapping[str, Any]) -> str:
    """The report of `vectors.coverage.coverage`, with its `file` and `profile`, as text."""
    lines = [
        f"coverage of {report['file']} (profile {report['profile']})",
        f"{'':<14}{'types':>18}{'tokens':>20}",
        f"{'in the text':<14}{report['types']:>18}{report['tokens']:>20}",
    ]
    for name, title in _LEVELS.items():
        row = report[name]
        types = f"{row['types']} {row['type_share']:7.1%}"
        tokens = f"{row['tokens']} {row['token_share']:7.1%}"
        lines.append(f"{title:<14}{types:>18}{tokens:>20}")
    missing = ", ".join(f"{word} {count}" for word, count in report["missing"])
    lines.append(f"not in the table, most frequent first: {missing or 'nothing'}")
    return "\n".join(lines)


def nearest_table(report: Mapping[str, Any]) -> str:
    """Words with their cosine to one word, closest first."""
    how = "" if report["in_table"] else ", whose vector is that of another case or of its n-grams"
    lines = [f"nearest to {report['word']}{how}", "cosine  word"]
    lines += [f"{row['cosine']:6.3f}  {row['word']}" for row in report["words"]]
    return "\n".join(lines)


def coverage_of(parts: Texts, source: str, profile: str) -> tuple[list[dict[str, Any]], list[str]]:
    """How much of each part the vectors know, spelt as the vectors' own tokenizer does.

    Also gives notes on the vectors. Raises VectorsError where they cannot be read.
    """
    tokenizer = recorded_tokenizer(source) or _tokenizer(parts, profile)
    counts = {name: count_words(map(tokenizer, texts)) for name, texts in parts.items()}
    vectors = read_vectors(source, keep=set(chain.from_iterable(counts.values())))
    reports = [
        {"file": name, "profile": tokenizer.normalizer.profile, **coverage(vectors, words)}
        for name, words in counts.items()
    ]
    return reports, vectors.notes


def said_in(parts: Texts, unlabelled: Sequence[str], profile: str) -> list[dict[str, Any]]:
    """Of each part how many texts a line of the unlabelled texts says too, in the same words.

    Only texts with a word count. Raises DataError where a file cannot be read.
    """
    tokenizer = _tokenizer(parts, profile)
    words = {name: [wording(tokenizer(text)) for text in texts] for name, texts in parts.items()}
    labelled = set(chain.from_iterable(words.values())) - {""}
    shared = labelled.intersection(wording(tokenizer(line)) for line in Lines(unlabelled))
    return [
        {"part": name, "texts": len(texts), "said": sum(text in shared for text in texts)}
        for name, texts in words.items()
    ]


def _tokenizer(parts: Texts, profile: str) -> Tokenizer:
    if profile == "auto":
        profile = choose_profile(chain.from_iterable(parts.values()))
    return Tokenizer(Normalizer(profile))
