"""Data sets and word vectors as text: inspection, catalogue, coverage, nearest words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superconext.core.errors import listed, plural
from superconext.data.fetch import PublicSet
from superconext.data.lines import shown
from superconext.report.table import clean, clip, render

if TYPE_CHECKING:  # the list of public sets needs neither NumPy nor vectors
    from superconext.text.tokenize import Tokenizer
    from superconext.vectors.table import WordVectors

_WIDTH = 72  # cells of a text that is shown as an example


def catalogue_table(entries: Sequence[PublicSet]) -> str:
    """One line for each public set."""
    rows = [
        {
            "name": entry.name,
            "task": entry.task,
            "language": clip(entry.language, 32),
            "classes": entry.classes,
            "train / dev / test": _rows(entry),
            "hash": _hash(entry),
            "from": _origin(entry),
            "licence": entry.licence,
        }
        for entry in entries
    ]
    return render(rows, list(rows[0]))


def _hash(entry: PublicSet) -> str:
    if not entry.files:
        return "-"
    return "MD5" if all(file.md5 for file in entry.files.values()) else "unknown"


def _rows(entry: PublicSet) -> str:
    if "all" in entry.rows:
        return f"{entry.rows['all']} in all"
    return " / ".join(str(entry.rows.get(part, "-")) for part in ("train", "dev", "test"))


def _origin(entry: PublicSet) -> str:
    if entry.hub:
        return "Hugging Face"
    if entry.by_hand:
        return "by hand"
    host = next(iter(entry.files.values())).url.split("/")[2]
    return "GitHub" if host == "raw.githubusercontent.com" else host


def set_facts(entry: PublicSet) -> dict[str, Any]:
    """Everything the catalogue knows of a set, as plain data."""
    return {
        "name": entry.name,
        "task": entry.task,
        "language": entry.language,
        "classes": entry.classes,
        "rows": dict(entry.rows),
        "licence": entry.licence,
        "files": [
            {"url": file.url, "bytes": file.size, "md5": file.md5} for file in entry.files.values()
        ],
        "hugging_face": entry.hub or None,
        "parser": entry.parser or None,
        "beware": entry.beware or None,
        "by_hand": entry.by_hand or None,
    }


def set_table(entry: PublicSet) -> str:
    """The same, one line for each fact."""
    facts: list[tuple[str, str]] = []
    for name, value in set_facts(entry).items():
        if name == "rows":
            value = ", ".join(f"{part} {count}" for part, count in entry.rows.items())
        if name == "files":
            for file in value:
                size = "unknown" if file["bytes"] is None else str(file["bytes"])
                facts.append(("address", file["url"]))
                facts.append(("", f"bytes {size}, MD5 {file['md5'] or 'unknown'}"))
        elif value is not None:
            facts.append((name.replace("_", " "), str(value)))
    width = max(len(name) for name, _ in facts)
    return "\n".join(f"{name:<{width}}  {value}" for name, value in facts)


def inspection(report: Mapping[str, Any]) -> str:
    """The report of `data.inspect.inspect_parts` as tables under headings."""
    blocks = [
        _counted("class", {part["name"]: part["classes"] for part in report["parts"]}),
        _lengths(report["parts"]),
        _counted("script", {part["name"]: part["scripts"] for part in report["parts"]}),
        *_by_script(report["parts"]),
        _copies(report),
        _conflicts(report["conflicts"]),
    ]
    if report["near_duplicates"] is not None:
        blocks.append(_near(report["near_duplicates"], report["parts"]))
    return "\n\n".join(blocks)


def leaks(report: Mapping[str, Any]) -> list[str]:
    """One line for each part whose texts are in an earlier one."""
    sizes = {part["name"]: part["rows"] for part in report["parts"]}
    return [
        f"{pair['rows']} of {sizes[pair['of']]} rows of {pair['of']} "
        f"({pair['rows'] / sizes[pair['of']]:.1%}) are in {pair['in']} too"
        for pair in report["duplicates"]["across"]
        if pair["rows"]
    ]


def pool_table(sources: Sequence[Mapping[str, Any]]) -> str:
    """What `data.pool.make_pool` read and kept of each source, and why the rest went."""
    columns = [name for name in sources[0] if any(row[name] for row in sources)]
    totals = {name: sum(row[name] for row in sources) for name in columns if name != "source"}
    rows = [*sources, {"source": "all", **totals}] if len(sources) > 1 else sources
    return render(rows, columns)


def part_table(files: Mapping[str, Mapping[str, Any]]) -> str:
    """Rows of each class in each file, from the record of `data.splits.write_folder`."""
    return _counted(
        "class", {name.rsplit(".", 1)[0]: file["classes"] for name, file in files.items()}
    )


def lacking_lines(files: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Which classes of the others each file has no row of, from the same record."""
    names = sorted({name for file in files.values() for name in file["classes"]})
    lacking = {
        file: [shown(name, 24) for name in names if name not in found["classes"]]
        for file, found in files.items()
    }
    return [
        f"{file} has no row of {len(some)} of {len(names)} classes: {listed(some, 3)}; no score on "
        f"it shows how well a model knows {'it' if len(some) == 1 else 'them'}"
        for file, some in lacking.items()
        if some
    ]


def _counted(what: str, counts: Mapping[str, Mapping[str, int]]) -> str:
    """Counts and shares of each class or script, a pair of columns for each part."""
    names = list(dict.fromkeys(name for part in counts.values() for name in part))
    if what == "class":
        names.sort()
    totals = {part: sum(values.values()) for part, values in counts.items()}
    rows: list[dict[str, Any]] = []
    for name in names:
        row: dict[str, Any] = {what: name}
        for part, values in counts.items():
            row[part] = values.get(name, 0)
            row[f"{part} %"] = 100 * values.get(name, 0) / totals[part]
        rows.append(row)
    rows.append({what: "all", **totals})
    return render(rows, list(rows[0]), fmt=".1f")


def _by_script(parts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Shares of the classes within each group of scripts, in percent; none for one group."""
    groups = [(part, group) for part in parts for group in part["classes_by_script"]]
    if len({group for _, group in groups}) < 2:
        return []
    classes = sorted({label for part in parts for label in part["classes"]})
    rows = []
    for part, group in groups:
        counts = part["classes_by_script"][group]
        total = sum(counts.values())
        shares = {f"{label} %": 100 * counts.get(label, 0) / total for label in classes}
        rows.append({"script": group, "of": part["name"], "rows": total, **shares})
    return [render(rows, list(rows[0]), fmt=".1f")]


def _lengths(parts: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        {"length in": unit, "of": part["name"], **part[unit]}
        for unit in ("words", "characters")
        for part in parts
    ]
    return render(rows, list(rows[0]), fmt=".1f")


def _copies(report: Mapping[str, Any]) -> str:
    sizes = {part["name"]: part["rows"] for part in report["parts"]}
    rows: list[dict[str, Any]] = [
        {
            "duplicates": f"within {part['name']}",
            "rows": part["rows"],
            "%": 100 * part["rows"] / sizes[part["name"]],
            "identical": part["identical"],
            "same label": part["same_label"],
        }
        for part in report["duplicates"]["within"]
    ]
    for pair in report["duplicates"]["across"]:
        rows.append(
            {
                "duplicates": f"{pair['of']} in {pair['in']}",
                "rows": pair["rows"],
                "%": 100 * pair["rows"] / sizes[pair["of"]],
                "identical": pair["identical"],
                "same label": pair["same_label"],
            }
        )
    note = f"duplicates: the same text after normalisation (profile {report['profile']})"
    return f"{render(rows, list(rows[0]), fmt='.1f')}\n{note}"


def _conflicts(found: Mapping[str, Any]) -> str:
    count = f"{found['texts']}, in {plural(found['rows'], 'row')}"
    lines = [f"texts that have another label in another row: {count}"]
    for case in found["examples"]:
        labels = ", ".join(f"{clean(label)} {count}" for label, count in case["labels"].items())
        lines.append(f"  {clip(clean(case['text']), _WIDTH)}")
        lines.append(f"    {labels}  ({', '.join(case['where'])})")
    return "\n".join(lines)


def _near(found: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> str:
    sizes = {part["name"]: part["rows"] for part in parts}
    lines = [
        f"near-duplicates (similarity {found['threshold']:g} or more): "
        f"{plural(found['texts'], 'text')} in {plural(found['groups'], 'group')}, "
        f"{found['conflicts']} of them with several labels"
    ]
    lines += [
        f"  {pair['of']} in {pair['in']}: {plural(pair['rows'], 'row')} "
        f"({pair['rows'] / sizes[pair['of']]:.1%})"
        for pair in found["across"]
    ]
    for case in found["examples"]:
        lines.append(f"  {case['similarity']:.2f}  ({', '.join(case['where'])})")
        lines += [f"    {clip(clean(text), _WIDTH)}" for text in case["texts"]]
    return "\n".join(lines)


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
        "emoji": 0 if vectors.emoji_scores is None else len(vectors.emoji_scores),
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
    """The report of `vectors.table.coverage`, with its `file` and `profile`, as text."""
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
    from superconext.vectors.readers import read_vectors
    from superconext.vectors.table import count_words, coverage
    from superconext.vectors.text_corpus import recorded_tokenizer

    tokenizer = recorded_tokenizer(source) or _tokenizer(parts, profile)
    counts = {name: count_words(map(tokenizer, texts)) for name, texts in parts.items()}
    vectors = read_vectors(source, keep=set(chain.from_iterable(counts.values())))
    reports = [
        {"file": name, "profile": tokenizer.normalizer.named, **coverage(vectors, words)}
        for name, words in counts.items()
    ]
    return reports, vectors.notes


def said_in(
    parts: Texts, unlabelled: Sequence[str], profile: str, **reading: Any
) -> tuple[list[dict[str, Any]], list[str]]:
    """Of each part how many texts a line of the unlabelled texts says too, in the same words, and
    notes on how these were read.

    Only texts with a word count. reading: how the files are read, as `Lines` takes it. Raises
    DataError where a file cannot be read.
    """
    from superconext.data.duplicates import wording
    from superconext.vectors.text_corpus import Lines

    tokenizer = _tokenizer(parts, profile)
    words = {name: [wording(tokenizer(text)) for text in texts] for name, texts in parts.items()}
    labelled = set(chain.from_iterable(words.values())) - {""}
    lines = Lines(unlabelled, **reading)
    shared = labelled.intersection(wording(tokenizer(line)) for line in lines)
    said = [
        {"part": name, "texts": len(texts), "said": sum(text in shared for text in texts)}
        for name, texts in words.items()
    ]
    return said, lines.notes


def _tokenizer(parts: Texts, profile: str) -> Tokenizer:
    from superconext.text.normalize import normalizer_of
    from superconext.text.tokenize import Tokenizer

    return Tokenizer(normalizer_of(profile, chain.from_iterable(parts.values())))
