"""`superconext audit`, `suggest`, `explain` and `data merge`: the commands for those who label."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from superconext.cli.options import (
    COLUMNS,
    DOCUMENTS,
    DROP_INCOMPLETE,
    JSON,
    LABEL_READING,
    LEAVE_OUT,
    QUIET,
    READING,
    TEXT_COLUMN,
    TEXT_READING,
    THREADS,
    echo_json,
    echo_notes,
    echo_rows,
    number,
    out_file,
    say_next,
    say_waiting,
    switch,
    tables,
    tables_or_json,
    tell,
)
from superconext.cli.use import _load, refuse_swapped, warn_of_unread
from superconext.core.blank import is_blank
from superconext.core.errors import DataError, for_terminal, listed, plural
from superconext.core.progress import WARNING

if TYPE_CHECKING:
    from superconext.report.explain import Explanation

#: Rows shown on a terminal, and cells of a text there.
_SHOWN, _WIDTH = 20, 60


#: Conflicts of merged files that are told one by one.
_CONFLICTS = 20


@click.command(short_help="Find labels that are likely to be wrong.")
@click.argument("file")
@click.option("--run", metavar="RUN", help="Use the sentence vectors of this run too.")
@number("-n", None, "Rows to list, the most suspicious first.  [default: all]", name="count")
@out_file()
@COLUMNS
@READING
@JSON
@QUIET
@THREADS
def audit(
    file: str,
    run: str | None,
    count: int | None,
    out: str | None,
    text_column: str | None,
    label_column: str | None,
    reading: dict[str, Any],
    as_json: bool,
    quiet: bool,
    threads: int,
) -> None:
    """Rank the rows of the labelled FILE: the labels most likely to be wrong come first.

    Prints TSV (on a terminal, a table of the first rows): label and text, under the names that FILE
    gives them, line, the label that may be right, a suspicion (the log-likelihood ratio of that
    label to the given one), the reasons and the other columns of FILE. Correct
    the labels in a spreadsheet; train reads the corrected file. If several annotators labelled
    FILE, their disagreement is a reason too. A RUN that was trained on a tenth of FILE or more
    is not used, unless its encoder is frozen.
    """
    import dataclasses

    from superconext.core.progress import TerminalProgress
    from superconext.data.columns import given_names
    from superconext.data.dataset import check_training
    from superconext.data.reading import read_beside, read_labelled
    from superconext.fitting.familiarity import Familiarity
    from superconext.report.audit import audit as audit_rows
    from superconext.runs.manifest import read_manifest

    model = None if run is None else _load(run, threads)
    known = None if model is None else model.known
    say_waiting(file)
    rows = read_labelled(file, text_column, label_column, known=known, **reading)
    echo_notes(rows.notes, rows.source)
    check_training(rows)  # whose warnings are among the reasons that are listed
    shares, sources, cells = read_beside(rows, text_column, reading["encoding"])
    rows = dataclasses.replace(rows, shares=shares)
    progress = TerminalProgress(quiet)
    vectors = None
    if run is not None and model is not None:
        familiarity = Familiarity()
        familiarity.add(model, rows.texts)
        known_rows = familiarity.seen["train"] if familiarity.seen else 0
        learned = known_rows and not read_manifest(Path(run)).get("freeze")
        left_out = learned and known_rows >= _TOO_MANY * len(rows)
        if learned:
            progress.warn(
                f"{run} was trained on {known_rows} of {len(rows)} texts of {rows.source}: its "
                "vectors agree with their wrong labels"
                + ", so it is ignored: train on other rows"
                * left_out
            )
        if not left_out:
            vectors = model.features([*rows.texts, *(text for text, _ in rows.ties)])
    with progress.bar("fitting models of the other rows") as advance:
        found = audit_rows(rows, vectors, advance, sources)
    listed = [suspect.to_dict() for suspect in found.ranked[:count]]
    if not quiet:
        _show_summary(found.summary)
    if as_json:
        kept = [{"kept": cells[row["line"]]} if any(cells.values()) else {} for row in listed]
        listed = [row | one for row, one in zip(listed, kept, strict=True)]
        _give_json({**found.summary, "ranked": listed}, out, len(listed))
        return
    table = [named_as(row | {"why": "; ".join(row["why"])}, rows.columns) for row in listed]
    if out or not sys.stdout.isatty():  # a terminal has no room for more columns
        taken = [*table[0]]
        for row in table:
            others = cells.get(row["line"], {})
            again = others.keys() >= _OF_AUDIT  # what an earlier audit said
            left = [name for name in others if not (again and name in _OF_AUDIT)]
            row |= {new: others[name] for name, new in given_names(left, taken).items()}
    give(table, out, separator=rows.separator)
    if out and len(listed) < len(found.ranked):
        say_next(f"correct labels in {file}, at the lines that {out} names")
    elif out:
        say_next(f"correct labels in {out}; superconext train {reading_of(out, table)} --out RUN")


#: Share of the texts that a run may have been trained on: short ones come up again anywhere.
_TOO_MANY = 0.1

#: Training sentences that `explain` shows beside each.
_NEAREST = 3

#: Columns that `audit` writes beside label and text.
_OF_AUDIT = {"line", "suggested", "suspicion", "why"}


def _suggested(options: Mapping[str, Any]) -> Sequence[str]:
    """The endings of what `suggest` writes."""
    if options["tool"] in ("label-studio", "doccano"):
        return DOCUMENTS
    return (".csv",) if options["tool"] == "csv" else tables_or_json(options)


@click.command(short_help="Choose the sentences to label next.")
@click.argument("run")
@click.argument("file", metavar="UNLABELLED")
@number("-n", 50, "Sentences to suggest.", name="count")
@LEAVE_OUT
@click.option(
    "--balance",
    type=click.Choice(["class", "script"]),
    help="Suggest equally many sentences of each predicted class, or of each script.",
)
@click.option(
    "--for",
    "tool",
    type=click.Choice(["label-studio", "doccano", "csv"]),
    help="Write a file that this tool imports, with predictions to confirm.",
)
@switch("--blind", "Leave out the predictions.")
@number(
    "--seed", 0, "Seed of the clustering, and of a draw from over 20,000 texts.", click.IntRange(0)
)
@out_file(endings=_suggested)
@TEXT_COLUMN
@TEXT_READING
@JSON
@QUIET
@THREADS
def suggest(
    run: str,
    file: str,
    count: int,
    leave_out: tuple[str, ...],
    balance: str | None,
    tool: str | None,
    blind: bool,
    seed: int,
    out: str | None,
    text_column: str | None,
    reading: dict[str, Any],
    as_json: bool,
    quiet: bool,
    threads: int,
) -> None:
    """Choose sentences of UNLABELLED to label next: uncertain ones that differ from each other.

    Near-duplicates are suggested once. Give the rows labelled so far with --leave-out. Fill in
    the column label, then add the rows with data merge.
    """
    from superconext.core.progress import TerminalProgress
    from superconext.data.reading import labelled_texts, read_texts
    from superconext.report import suggest as suggesting

    if tool and as_json:
        raise click.UsageError(
            f"--for {tool} says what is written, and --json something else; leave one of them out."
        )
    refuse_swapped([run], file)
    model = _load(run, threads)
    known = model.known
    say_waiting(file)
    texts = read_texts(file, text_column, known=known, **reading)
    echo_notes(texts.notes, texts.source)
    labelled = [
        text for path in leave_out for text in read_texts(path, known=known, **reading).texts
    ]
    if done := labelled_texts(file, known.label or "label", text_column, known=known, **reading):
        labelled += done
        echo_notes([f"{plural(len(done), 'labelled text')} left out"], texts.source)
    with TerminalProgress(quiet).bar("comparing texts"):
        if seen := model.texts_seen(texts.texts):
            labelled += seen
            learned = f"{plural(len(seen), 'text')} that the run was trained on, left out"
            echo_notes([learned], texts.source)
        told: list[str] = []
        found = suggesting.suggest(model, texts, count, labelled, balance, seed, told.append)
    echo_notes(told, texts.source)
    if as_json:
        _give_json(suggesting.table(found, blind), out, len(found))
    elif tool in ("label-studio", "doccano"):
        if tool == "label-studio":
            echo_notes(
                [f"labelling interface of the project: {suggesting.interface(model.classes)}"]
            )
        _write(suggesting.pre_annotated(found, tool, blind), out, len(found))
        if out:
            say_next(f"import {out} into {tool}")
    else:
        table = [named_as(row, model.columns) for row in suggesting.table(found, blind)]
        give(table, out, tool == "csv", texts.separator)
        if out:
            same = reading_of(out, table)
            say_next(f"fill in its labels; superconext data merge LABELLED {same} --out NEW")


@click.command(short_help="Show what each word adds to a prediction.")
@click.argument("run")
@click.argument("texts", metavar="TEXT...", nargs=-1)
@click.option("--file", metavar="FILE", help="Explain the texts of this file (-: stdin).")
@click.option("--train", metavar="FILE", help="Labelled file, to show its nearest sentences.")
@out_file()
@TEXT_COLUMN
@TEXT_READING
@JSON
@THREADS
def explain(
    run: str,
    texts: tuple[str, ...],
    file: str | None,
    train: str | None,
    out: str | None,
    text_column: str | None,
    reading: dict[str, Any],
    as_json: bool,
    threads: int,
) -> None:
    """Show how much each word contributes to the prediction of RUN for each TEXT.

    A word's contribution is how far the log-odds of the predicted class fall without it. Sentences
    are numbered as the rows of --file, of which those without a text are left out. A run
    keeps no training texts: give the file with --train to see the nearest ones, on a terminal or
    with --json. Prints a row for each word as TSV; on a terminal, coloured sentences.
    """
    from superconext.core.progress import TerminalProgress
    from superconext.data.reading import read_labelled, read_texts
    from superconext.report.explain import explain as explain_texts
    from superconext.report.explain import nearest

    texts = tuple(map(_decoded, texts))
    if bool(texts) == bool(file):
        raise click.UsageError("expected the texts to explain: as TEXTs, or in a file with --file")
    if any(map(is_blank, texts)):
        raise click.UsageError("found an empty TEXT; expected words in each")
    if named := next((text for text in texts if os.path.isfile(text)), None):
        raise click.UsageError(f"found the file {named} as a TEXT; expected --file {named}")
    model = _load(run, threads)
    asked = dict(enumerate(texts, 1))
    if file is not None:
        say_waiting(file)
        read = read_texts(file, text_column, None, model.known, every_row=True, **reading)
        asked = {row: text for row, text in enumerate(read.texts, 1) if not is_blank(text)}
        blank = len(read) - len(asked)
        told = f"{plural(blank, 'row')} without a text, left out"
        echo_notes([*read.notes, *[told] * bool(blank)], read.source)
        if not asked:
            raise DataError(
                f"{read.source}: found no row with a text, expected some: check the column"
            )
    with TerminalProgress().bar("explaining"):
        found = explain_texts(model, [*asked.values()])
    warn_of_unread(model, [*asked.values()], read.source if file else "")
    near: list[list[dict[str, Any]]] = [[] for _ in asked]
    in_colour = not as_json and out is None and sys.stdout.isatty()
    if train is not None:
        rows = read_labelled(train, known=model.known, drop_unlabelled=True, **reading)
        vectors = model.features([*asked.values()])
        places = nearest(vectors, model.features(rows.texts), _NEAREST)
        near = [
            [
                {"text": rows.texts[at], "label": rows.labels[at], "line": rows.lines[at]}
                | {"cosine": round(float(cosine), 4)}
                for at, cosine in zip(*one, strict=True)
            ]
            for one in zip(*places, strict=True)
        ]
        if not (as_json or in_colour):
            echo_notes(["a table of words has no place for the nearest sentences: add --json"])
    if as_json:
        more = [{"nearest": similar} if train else {} for similar in near]
        each = zip(asked, found, more, strict=True)
        document = [{"sentence": place, **one.to_dict(), **rest} for place, one, rest in each]
        _give_json(document, out, len(document))
    elif in_colour:
        for one, similar in zip(found, near, strict=True):
            _show_words(one)
            for row in similar:
                text = for_terminal(f"{row['label']}  {row['text']}")
                click.echo(f"  nearest: {row['cosine']:.2f}  {text}")
    else:
        give(
            [
                {"sentence": place, "label": one.label, "probability": round(one.probability, 4)}
                | {"word": word, "contribution": round(value, 4)}
                for place, one in zip(asked, found, strict=True)
                for word, value in one.words
            ],
            out,
        )


@click.command()
@click.argument("old")
@click.argument("new")
@click.option(
    "--keep",
    type=click.Choice(["both", "old", "new"]),
    default="both",
    show_default=True,
    help="Which label to keep for a text that has different labels in the two files.",
)
@out_file(endings=tables)
@COLUMNS
@LABEL_READING
@DROP_INCOMPLETE
@JSON
def merge(
    old: str,
    new: str,
    keep: str,
    out: str | None,
    text_column: str | None,
    label_column: str | None,
    reading: dict[str, Any],
    drop_unlabelled: bool,
    as_json: bool,
) -> None:
    """Merge the labelled rows of OLD and NEW into one file, every text once.

    A text with several labels is listed on stderr and kept with each of them, unless --keep
    chooses one. Column names and encoding apply to both files. Other columns of OLD are kept.
    """
    from superconext.data.dataset import ALIKE, check_sides, classes_apart, spelt_alike
    from superconext.data.labels import merge as merge_sets
    from superconext.data.lines import shown
    from superconext.data.reading import read_beside, read_labelled

    say_waiting(old, new)
    first, second = (
        read_labelled(path, text_column, label_column, drop_unlabelled=drop_unlabelled, **reading)
        for path in (old, new)
    )
    for part in (first, second):
        echo_notes(part.notes, part.source)
        check_sides(part)
    merged = merge_sets(first, second, keep, fold=reading["fold_label_case"] is not False)
    echo_notes(merged.notes, second.source)
    alike = spelt_alike(Counter(label for label, _ in merged.rows))
    warnings = [
        f"found {ALIKE}: {'; '.join(alike[:5])}: train makes them one with --fold-label-case"
    ]
    warnings = warnings if alike else classes_apart(first, second)
    for conflict in merged.conflicts[:_CONFLICTS]:
        labels = (
            f"{shown(label, 24)} ({', '.join(at)})" for label, at in conflict["labels"].items()
        )
        click.echo(f"conflict: {shown(conflict['text'], 60)} is {' and '.join(labels)}", err=True)
    if (more := len(merged.conflicts) - _CONFLICTS) > 0:
        click.echo(f"and {plural(more, 'conflict')} more", err=True)
    echo_notes(f"{WARNING}{warning}" for warning in warnings)
    click.echo(
        f"{plural(len(merged.rows), 'row')}; left out {merged.repeated} repeated and "
        f"{merged.replaced} replaced; {plural(len(merged.conflicts), 'conflict')}",
        err=True,
    )
    rows = [{"label": label, "text": text} for label, text in merged.rows]
    cells = {
        name: read_beside(part, text_column, reading["encoding"])[2]
        for name, part in (("old", first), ("new", second))
    }
    others = list(next(iter(cells["old"].values()), {}))
    kept = []
    for sources in merged.sources:
        found = [cells[name].get(line, {}) for name, line in sources]
        kept.append({name: next((c[name] for c in found if name in c), "") for name in others})
    if as_json:
        counts = {"repeated": merged.repeated, "replaced": merged.replaced}
        whole = [
            row | ({"kept": more} if more else {}) for row, more in zip(rows, kept, strict=True)
        ]
        echo_json({**counts, "conflicts": merged.conflicts, "rows": whole})
    if out or not as_json:
        table = [named_as(row, first.columns) | more for row, more in zip(rows, kept, strict=True)]
        give(table, out, separator=first.separator)
        if out:
            fold = " --fold-label-case" * bool(alike)
            say_next(f"superconext train {reading_of(out, table)}{fold} --out RUN")


def _decoded(text: str) -> str:
    """A word of the command line as UTF-8, whatever the locale took its bytes for."""
    try:
        return os.fsencode(text).decode("utf-8")
    except UnicodeError:
        raise click.UsageError(
            f"found {text!a}, which is not UTF-8; expected TEXTs in UTF-8: put them into a "
            "file, and name it with --file, and its --encoding"
        ) from None


def _show_words(explained: Explanation) -> None:
    """One sentence, words for the label blue, against it yellow, strong ones bold."""
    most = max(abs(value) for _, value in explained.words)
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    shown = [(for_terminal(word), value) for word, value in explained.words]
    words = [
        click.style(word, fg="blue" if value > 0 else "yellow", bold=abs(value) > most / 2)
        if abs(value) > most / 10 and not plain
        else word
        for word, value in shown
    ]
    label = for_terminal(str(explained.label))
    click.echo(f"{label} {explained.probability:.2f}  {' '.join(words)}")
    ordered = sorted(shown, key=lambda pair: -abs(pair[1]))
    click.echo("  " + "  ".join(f"{word} {value:+.2f}" for word, value in ordered[:8]))


def _show_summary(summary: Mapping[str, Any]) -> None:
    from superconext.data.lines import shown
    from superconext.report.table import render

    source = summary["file"]
    few, better, left_out = (summary[key] for key in ("likely_wrong", "suspects", "too_few"))
    look = f": look at the first {plural(better, 'row') if better > 1 else 'row'}" * bool(better)
    counts = (
        f"another label fits {better or 'none'} of {plural(summary['rows'], 'row')} better{look} "
        f"(estimate: {f'about {few}' if few else 'hardly any'} of "
        f"{plural(summary['rows'] - sum(left_out.values()), 'label')} wrong or hard to tell)"
    )
    told = [
        (
            summary["contradictions"],
            "have a copy or near copy with another label",
        ),
        (summary["disputed"], "have annotators who disagree"),
        (summary["mojibake"], "have a text that looks like mojibake"),
    ]
    more = "".join(f"; {many} {what}" for many, what in told if many)
    click.echo(f"{source}: {counts}{more}", err=True)
    for label, meant in summary["misspelt_labels"].items():
        click.echo(f"{source}: label {label!r} may be {meant!r} misspelt", err=True)
    if left_out:
        named = [f"{shown(label, 24)} ({plural(n, 'row')})" for label, n in left_out.items()]
        click.echo(
            f"warning: {source}: too few texts to judge: {listed(named, _SHOWN)}; the "
            "estimate is of the other labels: check these by hand",
            err=True,
        )
    for kind in ("script", "source"):
        groups = list(summary[f"{kind}s"].items())
        rows = [
            {kind: shown(group, 24) if kind == "source" else group, "rows": sum(of.values())}
            | {f"{label} %": 100 * count / sum(of.values()) for label, count in of.items()}
            for group, of in groups[:_SHOWN]
        ]
        if rows:
            more = f"\n{len(groups) - _SHOWN} more" * (len(groups) > _SHOWN)
            table = render(rows, list(rows[0]), fmt=".1f")
            click.echo(f"\nshare of each class by {kind}, in percent\n{table}{more}\n", err=True)


def named_as(row: Mapping[str, Any], columns: Mapping[str, Any] | None) -> dict[str, Any]:
    """A row to write, with its label and text first, in columns called as where they are from."""
    from superconext.data.columns import Known

    rest = {key: cell for key, cell in row.items() if key not in ("label", "text")}
    label, text = Known.of((), columns).headings(*rest)
    return {label: row["label"], text: row["text"], **rest}


def reading_of(out: str, table: Sequence[Mapping[str, Any]]) -> str:
    """The words of a command that reads rows of `named_as` written to a file: its name, and the
    columns that it does not call `text` and `label`."""
    label, text = [*table[0]][:2]
    named = {"text": text, "label": label}
    flags = [
        f" --{usual}-column {shlex.quote(name)}"
        for usual, name in named.items()
        if name.strip().casefold() != usual
    ]
    return shlex.quote(out) + "".join(flags)


def give(
    rows: Sequence[Mapping[str, Any]], out: str | None, as_csv: bool = False, separator: str = ","
) -> None:
    """Rows of the same keys to a file or stdout, under a heading; a table on a terminal.

    separator: between the cells of a CSV file.

    A CSV file begins with a byte order mark, without which spreadsheets do not take it for UTF-8.
    """
    from superconext.data.formats import table_lines
    from superconext.report.table import clip, render

    as_csv = as_csv or (out or "").lower().endswith(".csv")
    if not as_csv and out is None and sys.stdout.isatty():
        shown = [
            {
                key: clip(cell, _WIDTH) if isinstance(cell, str) else cell
                for key, cell in row.items()
            }
            for row in rows[:_SHOWN]
        ]
        click.echo(render(shown, list(rows[0])))
        if len(rows) > _SHOWN:
            tell(f"{_SHOWN} of {len(rows)} rows shown; --out FILE writes all")
    else:
        table = [[*rows[0]], *([*row.values()] for row in rows)]
        mark = "\ufeff" * (as_csv and out is not None)
        lines = "".join(table_lines(table, separator if as_csv else ""))
        _write(mark + lines.removesuffix("\n"), out, len(rows))


def _give_json(document: Any, out: str | None, rows: int) -> None:
    if out is None:
        echo_json(document)
    else:
        _write(json.dumps(document, ensure_ascii=False), out, rows)


def _write(text: str, out: str | None, rows: int) -> None:
    from superconext.core.files import write_text

    if out is None:
        echo_rows(text + "\n")
        return
    write_text(Path(out), text + "\n")
    tell(f"{out}: {plural(rows, 'row')}")
