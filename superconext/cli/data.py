"""`superconext data`: look into labelled files, split them, list and fetch public sets."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from superconext.cli.labelling import give, named_as, reading_of
from superconext.cli.options import (
    COLUMNS,
    CSV_OR_TSV,
    DROP_INCOMPLETE,
    ENCODING,
    JSON,
    LABEL_READING,
    LEAVE_OUT,
    QUIET,
    READING,
    TEXT_COLUMN,
    as_usage,
    echo_json,
    echo_notes,
    number,
    out,
    out_file,
    reading_flags,
    say_next,
    say_waiting,
    switch,
    tables,
)
from superconext.config.parameters import BY_NAME
from superconext.core.errors import plural
from superconext.core.files import shell_word
from superconext.data import FORMS

if TYPE_CHECKING:
    from superconext.data.dataset import Dataset

_OUT = out("a data set", "DIR")
#: Lines from which on pretraining is worth trying.
_ENOUGH = 20_000
_SEED = number("--seed", 0, "Seed of the split.", click.IntRange(0, 2**32 - 1))
_NORMALIZE = click.option(
    "--normalize",
    type=click.Choice(BY_NAME["normalize"].choices or ()),
    default="auto",
    show_default=True,
    help="Normalisation profile under which texts are compared; none: exactly.",
)
_FRACTION = click.FloatRange(0, 1, max_open=True)


@click.group()
def data() -> None:
    """Inspect and split labelled files, list and fetch public sets."""


@data.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--dev", metavar="FILE", help="Dev file, compared with the files before it.")
@click.option("--test", metavar="FILE", help="Test file, compared with the files before it.")
@click.option("--vectors", metavar="VECTORS", help="Show how many words these vectors cover.")
@click.option(
    "--unlabelled",
    multiple=True,
    metavar="FILE",
    help="Count the texts that also occur in this unlabelled text; may be repeated.",
)
@click.option(
    "--near",
    type=click.FloatRange(0.5, 1, min_open=True),
    default=0.8,
    show_default=True,
    help="Minimum Jaccard similarity of near-duplicates' character 4-grams.",
)
@switch("--no-near", "Do not look for near-duplicates.")
@click.option(
    "--examples",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    help="Examples shown per problem.",
)
@click.option(
    "--deduplicate", metavar="DIR", help="Write the files without duplicates into this new folder."
)
@switch("--force", "Replace DIR if it holds a data set.")
@_NORMALIZE
@COLUMNS
@READING
@JSON
@QUIET
def inspect(
    files: tuple[str, ...],
    dev: str | None,
    test: str | None,
    vectors: str | None,
    unlabelled: tuple[str, ...],
    near: float,
    no_near: bool,
    examples: int,
    deduplicate: str | None,
    force: bool,
    normalize: str,
    text_column: str | None,
    label_column: str | None,
    reading: dict[str, Any],
    as_json: bool,
    quiet: bool,
) -> None:
    """Show classes, lengths, scripts, duplicates, leaks, contradictory labels of labelled FILEs.

    Give FILEs in the order train, dev, test; they are compared with one another. --deduplicate
    writes every text once, into the last file that has it, with its most frequent label.
    """
    from superconext.core.errors import DataError
    from superconext.core.progress import TerminalProgress
    from superconext.data.dataset import check_training
    from superconext.data.inspect import deduplicated, inspect_parts, named_parts
    from superconext.data.splits import check_folder, write_folder
    from superconext.report.datasets import coverage_of, inspection, leaks, said_in

    if deduplicate is not None:
        check_folder(deduplicate, force, [*files, dev, test])
    named = as_usage(named_parts, files, dev, test)
    # A report goes on where other commands stop, a copy of the rows does not.
    reading = {**reading, "on_error": "skip" if deduplicate is None else "fail"}
    parts = {name: _read(path, text_column, label_column, reading) for name, path in named.items()}
    texts = {name: part.texts for name, part in parts.items()}
    progress = TerminalProgress(quiet)
    refused = False
    try:
        doubts = check_training(next(iter(parts.values())))
    except DataError as error:
        doubts, refused = [str(error)], True
    for line in doubts:
        progress.warn(line)
    with progress.bar("looking for near-duplicates") as advance:
        report = inspect_parts(parts, normalize, None if no_near else near, examples, advance)
    if vectors is not None:
        report["vectors"], notes = coverage_of(texts, vectors, normalize)
        echo_notes(notes)
    listed = ", ".join(unlabelled)
    if unlabelled:
        report["unlabelled"], notes = said_in(
            texts, unlabelled, normalize, encoding=reading["encoding"], fix_text=reading["fix_text"]
        )
        echo_notes(notes)
        for found in report["unlabelled"]:
            if found["said"] and found["part"] != "train":
                progress.warn(
                    f"{found['said']} of {found['texts']} texts of {found['part']} are in "
                    f"{listed}: remove evaluation texts from it (--leave-out)"
                )
    for leak in leaks(report):
        progress.warn(f"{leak}: results on them are too good")
    if deduplicate is not None:
        rows, record = deduplicated(parts, report["profile"])
        document = write_folder(deduplicate, rows, record, force=force)
        report["deduplicated"] = {"out": deduplicate, "files": document["files"]}
        for name, part in parts.items():
            progress.say(f"{name}: {len(rows.get(name, ()))} of {len(part)} rows kept")
    if as_json:
        echo_json(report)
        return
    click.echo(inspection(report))
    if "vectors" in report:
        from superconext.report.datasets import coverage_table

        for found in report["vectors"]:
            click.echo("\n" + coverage_table(found))
    for found in report.get("unlabelled", ()):
        said = f"{found['said']} of {found['texts']} texts of {found['part']}"
        click.echo(f"in {listed}: {said}")
    notes = [note for part in parts.values() for note in part.notes]
    advice = " ".join(notes)
    refused |= any("not counted here" in n and "--drop-incomplete" not in n for n in notes)
    if named_encoding := re.search(r"give --encoding (\S+) if", advice):
        say_next(
            f"superconext data inspect {' '.join(map(shell_word, named.values()))} --encoding "
            f"{named_encoding[1]} reads all rows, if that is the encoding"
        )
    elif refused:
        say_next("mend what is said above: `superconext train` refuses the file as it is")
    elif deduplicate is not None and not quiet:
        _train_next(deduplicate, document)
    elif not quiet:
        mend = reading_flags({**reading, "text_column": text_column, "label_column": label_column})
        mend += [
            flag
            for flag in ("--drop-incomplete", "--fold-label-case")
            if flag in advice and not {flag, flag.replace("--", "--no-")} & {*mend}
        ]
        paths = {name: shell_word(path) for name, path in named.items()}
        others = [f"--{name} {path}" for name, path in paths.items() if name in ("dev", "test")]
        first = next(iter(paths.values()))
        same = " ".join([first, *mend])
        say_next(
            f"superconext train {' '.join([first, *others, *mend])} --out RUN, and superconext "
            f"audit {same} for wrong labels"
        )


@data.command()
@click.argument("file")
@_OUT
@click.option(
    "--dev", type=_FRACTION, default=0.1, show_default=True, help="Share of the texts; 0: no file."
)
@click.option(
    "--test", type=_FRACTION, default=0.1, show_default=True, help="Share of the texts; 0: no file."
)
@_SEED
@switch("--deduplicate", "Keep one copy of each text.")
@switch("--near-together", "Also keep near-duplicates in the same split.", "near")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMS),
    default="tsv",
    show_default=True,
    help="Format of the files to write.",
)
@_NORMALIZE
@COLUMNS
@READING
@JSON
def split(
    file: str,
    out: str,
    force: bool,
    dev: float,
    test: float,
    seed: int,
    deduplicate: bool,
    near: bool,
    form: str,
    normalize: str,
    text_column: str | None,
    label_column: str | None,
    reading: dict[str, Any],
    as_json: bool,
) -> None:
    """Split the labelled FILE into train, dev and test.

    Splits are stratified, and duplicates of a text are always in the same split. The same file,
    seed and fractions give the same split.
    """
    from superconext.core.progress import TerminalProgress
    from superconext.data.reading import read_beside
    from superconext.data.splits import check_folder, split_dataset, write_folder
    from superconext.report.datasets import lacking_lines, part_table

    if dev + test >= 1:
        raise click.UsageError(f"--dev {dev:g} and --test {test:g} leave no rows to train on")
    check_folder(out, force, [file])
    corpus = _read(file, text_column, label_column, reading)
    others = next(iter(read_beside(corpus, text_column, reading["encoding"])[2].values()), {})
    if others:
        note = f"left out the columns {', '.join(others)}: label and text are written"
        echo_notes([note], corpus.source)
    with TerminalProgress().bar("splitting"):
        parts, made = split_dataset(
            corpus, dev, test, seed, profile=normalize, deduplicate=deduplicate, near=near
        )
    document = write_folder(out, parts, made, form, force)
    if deduplicate:
        click.echo(f"{plural(made['deduplicated'], 'copy')} left out", err=True)
    echo_notes(lacking_lines(document["files"]))
    if as_json:
        echo_json({"out": out, **document})
        return
    click.echo(part_table(document["files"]))
    _train_next(out, document)


def _train_next(out: str, document: dict[str, Any]) -> None:
    """The command that trains on the parts of a folder."""
    paths = {Path(name).stem: shell_word(f"{out}/{name}") for name in document["files"]}
    words = [f"--{part} {paths[part]}" for part in ("train", "dev", "test") if part in paths]
    if "train" not in paths:  # parts have the names of files
        words = [f"--train {next(iter(paths.values()))}"]
    say_next(f"superconext train {' '.join(words).removeprefix('--train ')} --out RUN")


@data.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True)
@click.option("--out", required=True, metavar="FILE", help="Text file to write.")
@LEAVE_OUT
@click.option(
    "--like", multiple=True, metavar="FILE", help="Keep lines that resemble the texts of this file."
)
@click.option(
    "--unlike",
    multiple=True,
    metavar="FILE",
    help="With --like: drop lines that resemble the texts of this file.",
)
@TEXT_COLUMN
@ENCODING
@click.option(
    "--near",
    type=click.FloatRange(0.5, 1, min_open=True),
    default=0.8,
    show_default=True,
    help="Minimum Jaccard similarity of near-duplicates' character 4-grams.",
)
@switch("--no-near", "Keep near-duplicates.")
@number("--min-words", 2, "Drop lines with fewer words.")
@_NORMALIZE
@switch("--force", "Replace the file to write.")
@JSON
@QUIET
def pool(
    files: tuple[str, ...],
    out: str,
    near: float,
    no_near: bool,
    force: bool,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Gather unlabelled text from FILEs into one file, one sentence or post a line.

    FILEs may be text, tables, JSON, subtitles (.srt, .vtt), exports of WhatsApp, Telegram,
    Messenger and Twitter, MediaWiki dumps, also as .gz, .bz2 or in a .zip. Markup, addresses and
    handles are removed; duplicates, near-duplicates, texts of --leave-out and lines unlike --like
    are dropped. Repeat an interrupted command to resume it.
    """
    from superconext.core.errors import DataError
    from superconext.core.locks import only_writer
    from superconext.core.progress import TerminalProgress
    from superconext.data.pool import PoolRequest, make_pool
    from superconext.report.datasets import pool_table

    if options["unlike"] and not options["like"]:
        raise click.UsageError("--unlike needs --like: texts of the wanted language")
    if Path(out).is_dir() or (os.path.lexists(out) and not force):
        raise DataError(f"{out} exists already; expected a new file: choose another or add --force")
    Path(out).absolute().parent.mkdir(parents=True, exist_ok=True)
    progress = TerminalProgress(quiet)
    request = PoolRequest(files=files, out=out, near=None if no_near else near, **options)
    lock = Path(out).with_name(f".{Path(out).name}.lock")
    with only_writer(lock, Path(out), progress.say, "what it wrote is kept", remove=True):
        report = as_usage(make_pool, request, progress)
    if lost := sum(source["unreadable"] for source in report["sources"]):
        coded = any("UTF-8" in why for why in report["dropped"].get("unreadable", ()))
        mend = f"; expected text in {options['encoding'] or 'UTF-8'}: check them, or name another"
        progress.warn(
            f"left out {plural(lost, 'line')} that cannot be read"
            + (f"{mend} --encoding" if coded or options["encoding"] else ": see why")
        )
    if as_json:
        echo_json(report)
        return
    for reason, lines in report["dropped"].items():
        if reason != "repeat":
            for line in lines:
                progress.say(f"{reason}: {line if reason == 'unreadable' else line[:100]}")
    click.echo(pool_table(report["sources"]))
    pretrain = " --pretrain" * (report["kept"] >= _ENOUGH)
    say_next(f"superconext train FILE --unlabelled {shell_word(out)}{pretrain} --out RUN")


@data.command()
@click.argument("file")
@out_file(f"the texts with majority labels, {CSV_OR_TSV}", endings=tables)
@COLUMNS
@LABEL_READING
@DROP_INCOMPLETE
@JSON
def agreement(
    file: str,
    out: str | None,
    text_column: str | None,
    label_column: str | None,
    reading: dict[str, Any],
    drop_unlabelled: bool,
    as_json: bool,
) -> None:
    """Measure how far the annotators of FILE agree, and write the majority labels.

    FILE has a column for each annotator (annotator_1, annotator_2, ...), or the columns annotator
    and label with a row for each label. Texts with a tie are listed and left out of --out.
    """
    from superconext.core.errors import DataError
    from superconext.data.labels import agreement_report
    from superconext.data.reading import read_labelled
    from superconext.report.table import agreement_line, render

    say_waiting(file)
    corpus = read_labelled(
        file, text_column, label_column, votes=True, drop_unlabelled=drop_unlabelled, **reading
    )
    echo_notes(corpus.notes, corpus.source)
    annotated = corpus.annotated
    if annotated is None:
        raise DataError(
            f"{file}: no columns of annotators, expected annotator_1 and annotator_2, or "
            "annotator and label: rename them, or list them with --label-column"
        )
    ties, rows = annotated.ties, annotated.block()
    report = agreement_report(annotated) | {"ties": [annotated.texts[row] for row in ties]}
    if out is not None:
        if not len(rows):
            raise DataError(
                f"{file}: found a tie for each of {len(ties)} texts, expected some with a label "
                f"that most annotators gave, to write into {out}: leave --out out"
            )
        table = zip(rows.labels, rows.texts, strict=True)
        named = [named_as({"label": label, "text": text}, corpus.columns) for label, text in table]
        give(named, out, separator=corpus.separator)
    if as_json:
        echo_json(report)
        return
    if report["pairs"]:
        click.echo(render(report["pairs"], list(report["pairs"][0])))
    click.echo(agreement_line(report))
    click.echo(f"{plural(len(rows), 'text')} with a majority, {len(ties)} with a tie")
    for row in ties[:5]:
        labels = ", ".join(filter(None, annotated.votes[row]))
        click.echo(f"tie: {labels}: {annotated.texts[row][:80]}", err=True)
    if out is not None:
        say_next(f"superconext train {reading_of(out, named)} --out RUN")


@data.command("list")
@click.argument("name", required=False)
@JSON
def list_sets(name: str | None, as_json: bool) -> None:
    """List the public sets that `data fetch` knows, or describe the set NAME."""
    from superconext.data.fetch import CATALOGUE
    from superconext.report.datasets import catalogue_table, set_facts, set_table

    if name is not None:
        entry = _find(name)
        text = json.dumps(set_facts(entry), ensure_ascii=False) if as_json else set_table(entry)
    else:
        entries = list(CATALOGUE.values())
        text = catalogue_table(entries)
        if as_json:
            text = json.dumps([set_facts(entry) for entry in entries], ensure_ascii=False)
    click.echo(text)
    if not as_json:
        say_next(f"superconext data fetch {name or 'NAME'} --out DIR")


@data.command()
@click.argument("name")
@_OUT
@_SEED
@click.option("--from", "source", metavar="DIR", help="Folder that already has the files.")
@click.option("--url-base", metavar="URL", help="Folder of a mirror that has the same files.")
@JSON
@QUIET
def fetch(
    name: str,
    out: str,
    force: bool,
    seed: int,
    source: str | None,
    url_base: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Download the public set NAME, check it, and write train, dev and test files.

    `data list` shows the names. A set published as one file is written as all.tsv, and split
    80/10/10; a set without a dev file gets none. Downloads are kept in the cache.
    """
    from superconext.core.files import cache_dir
    from superconext.core.progress import TerminalProgress
    from superconext.data.fetch import fetch as fetch_set
    from superconext.data.fetch import with_split
    from superconext.data.splits import check_folder, write_folder
    from superconext.report.datasets import part_table

    entry = _find(name)
    if source is not None and url_base is not None:
        raise click.UsageError("found --from and --url-base; expected one of them")
    check_folder(out, force, [source])
    progress = TerminalProgress(quiet)
    with progress.bar(f"fetching {entry.name}") as advance:
        got = fetch_set(
            entry,
            cache_dir() / "datasets",
            source=source,
            url_base=url_base,
            progress=None if quiet else advance,
            say=progress.say,
        )
    parts, made = with_split(entry, got, seed)
    record = {"name": entry.name, "licence": entry.licence, "sources": got.sources, **made}
    document = write_folder(out, parts, record, force=force)
    echo_notes(got.notes)
    for file in got.sources:
        progress.say(f"{file['url']}: checked against {file['checked']}")
    progress.say(f"licence: {entry.licence}" + (f"; beware: {entry.beware}" * bool(entry.beware)))
    if as_json:
        echo_json({"out": out, **document})
        return
    click.echo(part_table(document["files"]))
    _train_next(out, document)


def _find(name: str) -> Any:
    from superconext.core.errors import DataError
    from superconext.data import fetch as catalogue

    try:
        return catalogue.find(name)
    except DataError as error:
        raise click.BadParameter(str(error), param_hint="NAME") from None


def _read(
    path: str, text_column: str | None, label_column: str | None, reading: dict[str, Any]
) -> Dataset:
    from superconext.core.progress import TerminalProgress
    from superconext.data.reading import read_labelled

    say_waiting(path)
    with TerminalProgress().bar(f"reading {path}") as advance:
        corpus = read_labelled(path, text_column, label_column, **reading, advance=advance)
    echo_notes(corpus.notes, corpus.source)
    return corpus


@click.command(short_help="Write the invented sample data to a folder.")
@click.argument("folder", metavar="DIR")
@switch("--force", "Replace its files in DIR.")
def sample(folder: str, force: bool) -> None:
    """Write the sample to DIR: 630 invented labelled reviews and 4,000 unlabelled ones."""
    from superconext.data.sample import write_sample

    for path in write_sample(Path(folder), force):
        click.echo(path)
    few, test, text = (
        shell_word(Path(folder) / name) for name in ("few.tsv", "test.tsv", "unlabelled.txt")
    )
    say_next(f"superconext train {few} --test {test} --unlabelled {text} --out runs/demo")
