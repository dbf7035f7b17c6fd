"""`superconext vectors`: train word vectors, look into them, convert and fetch them."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from superconext.cli.options import (
    BRIDGE,
    JSON,
    LEAVE_OUT,
    QUIET,
    TEXT_COLUMN,
    TEXT_READING,
    echo_json,
    echo_notes,
    free_folder,
    normalize,
    number,
    out,
    say_next,
)
from superconext.config.parameters import BY_NAME
from superconext.core.errors import StoppedEarly

if TYPE_CHECKING:
    from superconext.text.tokenize import Tokenizer
    from superconext.vectors.text_corpus import Lines

_OUT = out("word vectors")
_NORMALIZE = normalize(
    None,
    "Normalisation profile and rules for the text; unset: those recorded in VECTORS, else auto.",
)


@click.group()
def vectors() -> None:
    """Train, inspect, convert and fetch word vectors."""


@vectors.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@_OUT
@click.option(
    "--method",
    type=click.Choice(("fasttext", "word2vec")),
    default="fasttext",
    show_default=True,
    help="With character n-grams or without.",
)
@number("--dimension", BY_NAME["vector_dimension"].default, "Dimension of the vectors.")
@number("--epochs", None, "Passes over the text; unset: chosen by its length.")
@number("--window", 5, "Words of context.")
@number(
    "--min-count",
    2,
    "Leave out words seen fewer times; in a text of under 5,000 tokens all are kept.",
)
@number("--min-n", 2, "Shortest n-gram.")
@number("--max-n", 5, "Longest n-gram.")
@number("--seed", 0, "Random seed.", click.IntRange(0))
@number(
    "--workers",
    1,
    "Threads; with more than one, the same seed does not give the same vectors.",
)
@normalize("auto", "Normalisation profile and rules, such as auto-lower.")
@BRIDGE
@LEAVE_OUT
@TEXT_COLUMN
@TEXT_READING
@JSON
@QUIET
def train(
    files: tuple[str, ...],
    out: str,
    force: bool,
    normalize: str,
    bridge: str | None,
    leave_out: tuple[str, ...],
    text_column: str | None,
    reading: dict[str, Any],
    as_json: bool,
    quiet: bool,
    **settings: Any,
) -> None:
    """Train word vectors on the text FILEs, one sentence a line (also .gz).

    Of labelled files only the text is read. Repeat the command to resume it; finished vectors
    are taken from the cache.
    """
    from superconext.core.progress import TerminalProgress
    from superconext.data.duplicates import Decontamination
    from superconext.report.datasets import facts_of, tokens_of
    from superconext.vectors.text_corpus import Lines, Sentences, make_tokenizer, record_tokenizer
    from superconext.vectors.training import cached_vectors

    folder = free_folder(out, force, [*files, *leave_out])
    progress, began = TerminalProgress(quiet), time.perf_counter()
    lines = Lines(files, text_column, **reading)
    tokenizer = make_tokenizer(lines, normalize, bridge)
    folder.parent.mkdir(parents=True, exist_ok=True)
    left_out = Decontamination.of_files(leave_out, tokenizer, text_column, **reading)
    text = Sentences(lines, tokenizer, folder.parent, progress, left_out=left_out)
    try:
        with progress.bar("training word vectors") as advance:
            made = cached_vectors(text, identity=text.identity(), progress=advance, **settings)
    except KeyboardInterrupt as stop:
        if stop.args:
            raise StoppedEarly(f"interrupted; {stop.args[0]}") from None
        raise
    free_folder(out, force)  # it may have appeared meanwhile
    made.save(folder, lambda fresh: record_tokenizer(fresh, tokenizer))
    echo_notes([*lines.notes, *left_out.notes, *made.notes])
    facts = {
        **facts_of(made, folder),
        "tokens": tokens_of(made),
        "profile": tokenizer.normalizer.named,
        "cached": not text.tokenised,
        "seconds": round(time.perf_counter() - began, 2),
    }
    _show(facts, as_json, out)


@vectors.command()
@click.argument("source", metavar="VECTORS")
@click.option("--on", "text", metavar="FILE", help="Text to measure the coverage of.")
@click.option("--nearest", metavar="WORD", help="Show the words closest to this one.")
@_NORMALIZE
@TEXT_COLUMN
@TEXT_READING
@JSON
def info(
    source: str,
    text: str | None,
    nearest: str | None,
    normalize: str | None,
    text_column: str | None,
    reading: dict[str, Any],
    as_json: bool,
) -> None:
    """Describe the word vectors VECTORS, and how much of a text they cover."""
    from superconext.core.progress import TerminalProgress
    from superconext.report.datasets import coverage_table, facts_of, nearest_table
    from superconext.vectors.readers import read_vectors
    from superconext.vectors.table import count_words, coverage
    from superconext.vectors.text_corpus import Lines, recorded_tokenizer

    with TerminalProgress().bar("reading word vectors"):
        table = read_vectors(source)
    recorded = recorded_tokenizer(source)
    facts: dict[str, Any] = {**facts_of(table), "notes": table.notes}
    if recorded is not None:
        facts["profile"] = recorded.normalizer.named
    answers: dict[str, Any] = {}
    if text is not None:
        lines = Lines([text], text_column, **reading)
        tokenizer = _reader(source, lines, normalize)
        counts = count_words(map(tokenizer, lines))
        echo_notes(lines.notes)
        profile = tokenizer.normalizer.named
        answers["coverage"] = {"file": text, "profile": profile, **coverage(table, counts)}
    if nearest is not None:
        # Spelt as the words of the table are, where it is known how that was.
        tokens = recorded(nearest) if recorded is not None and nearest not in table else []
        word = tokens[0] if len(tokens) == 1 else nearest
        words = [{"word": other, "cosine": near} for other, near in table.nearest(word)]
        answers["nearest"] = {"word": word, "in_table": word in table, "words": words}
    if as_json:
        echo_json({**facts, **answers})
        return
    echo_notes(facts.pop("notes"))
    _show(facts, False)
    if "coverage" in answers:
        click.echo("\n" + coverage_table(answers["coverage"]))
    if "nearest" in answers:
        click.echo("\n" + nearest_table(answers["nearest"]))


@vectors.command()
@click.argument("source", metavar="VECTORS")
@_OUT
@number("--limit", None, "Keep only the first N words.")
@click.option(
    "--words-of",
    metavar="FILE",
    help="Keep the words of this text (with --limit also the first N).",
)
@_NORMALIZE
@TEXT_COLUMN
@TEXT_READING
@JSON
def convert(
    source: str,
    out: str,
    force: bool,
    limit: int | None,
    words_of: str | None,
    normalize: str | None,
    text_column: str | None,
    reading: dict[str, Any],
    as_json: bool,
) -> None:
    """Convert VECTORS, in any readable format, to a folder that loads fast."""
    from superconext.core.progress import TerminalProgress
    from superconext.report.datasets import facts_of
    from superconext.vectors.readers import read_vectors
    from superconext.vectors.table import count_words
    from superconext.vectors.text_corpus import Lines, record_tokenizer, recorded_tokenizer

    folder = free_folder(out, force, [source, words_of])
    if words_of is None and reading["encoding"]:
        raise click.UsageError("--encoding is that of the text of --words-of; VECTORS are UTF-8")
    recorded, keep = recorded_tokenizer(source), None
    if words_of is not None:
        lines = Lines([words_of], text_column, **reading)
        keep = set(count_words(map(_reader(source, lines, normalize), lines)))
        echo_notes(lines.notes)
    with TerminalProgress().bar("reading word vectors"):
        table = read_vectors(source, keep=keep, limit=limit)

    def also(fresh: Path) -> None:
        if recorded:
            record_tokenizer(fresh, recorded)

    free_folder(out, force)  # it may have appeared meanwhile
    table.save(folder, also)
    echo_notes(table.notes)
    _show(facts_of(table, folder), as_json, out)


@vectors.command()
@click.argument("name")
@click.option("--out", metavar="PATH", help="File or folder to write.  [default: in the cache]")
@click.option("--url-base", metavar="URL", help="Folder of a mirror that has the same file.")
@JSON
@QUIET
def fetch(name: str, out: str | None, url_base: str | None, as_json: bool, quiet: bool) -> None:
    """Download the public word vectors NAME, check them and print their path.

    NAME is glove-wiki-gigaword-50, -100, -200 or -300 (English), glove-twitter-25, -50, -100 or
    -200 (tweets), or fastText's cc.LANG.300.vec (words) or cc.LANG.300.bin (subwords too, 7 GB)
    for a language code such as ar, arz or fr.
    """
    from dataclasses import asdict

    from superconext.core.errors import VectorsError
    from superconext.core.progress import TerminalProgress
    from superconext.vectors import catalogue

    try:
        entry = catalogue.find(name)
    except VectorsError as error:
        raise click.BadParameter(str(error), param_hint="NAME") from None
    progress = TerminalProgress(quiet)
    with progress.bar(f"fetching {entry.name}") as advance:
        got = catalogue.fetch(entry, out, url_base=url_base, progress=advance, say=progress.say)
    progress.say(f"checked against {got.check}; licence: {entry.licence or 'not stated'}")
    if as_json:
        facts = {"name": entry.name, "licence": entry.licence, **asdict(got)}
        echo_json({**facts, "path": str(got.path)})
    else:
        click.echo(got.path)
        say_next(f"superconext train FILE --vectors {shlex.quote(str(got.path))} --out RUN")


def _reader(source: str, lines: Lines, normalize: str | None) -> Tokenizer:
    """The tokenizer for a text to compare with VECTORS: as named, as recorded, or `auto`."""
    from superconext.vectors.text_corpus import make_tokenizer, recorded_tokenizer

    recorded = recorded_tokenizer(source)
    auto = recorded is None if normalize is None else normalize.startswith("auto")
    lines.once = not auto  # which reads the text beforehand
    if recorded is not None and normalize is None:
        return recorded
    bridge = recorded.bridge.dialect if recorded is not None and recorded.bridge else None
    return make_tokenizer(lines, normalize or "auto", bridge)


def _show(facts: dict[str, Any], as_json: bool, out: str = "") -> None:
    if as_json:
        echo_json(facts)
        return
    from superconext.report.datasets import facts_table

    click.echo(facts_table(facts))
    if out:
        say_next(f"superconext train FILE --vectors {shlex.quote(out)} --out RUN")
