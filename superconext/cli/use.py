"""`superconext evaluate`, `predict`, `embed` and `report`: the commands that use a run."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
from operator import eq
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from superconext.cli.options import (
    COLUMNS,
    CSV_OR_TSV,
    HEADER,
    JSON,
    READING,
    TEXT_COLUMN,
    TEXT_READING,
    THREADS,
    echo_json,
    echo_notes,
    echo_rows,
    missing,
    out_file,
    quiet_option,
    reading_flags,
    say_next,
    say_waiting,
    switch,
    tell,
)
from superconext.core.blank import is_blank, zeros_for_blank
from superconext.core.errors import listed, plural
from superconext.core.files import shell_word
from superconext.core.progress import WARNING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TextIO

    import numpy as np

    from superconext.data.columns import Known
    from superconext.data.dataset import Dataset
    from superconext.data.reading import RowStream
    from superconext.fitting.familiarity import Familiarity
    from superconext.fitting.model import Model
    from superconext.probe.metrics import Evaluation

SILENT = quiet_option("Show nothing on stderr but errors.")

#: Texts encoded at once; bounds the memory, whatever the reader brings.
_AT_ONCE = 4096
#: Rows from which on it is odd that all are right.
_MANY = 100


def _not_nan(ctx: click.Context, option: click.Parameter, value: float | None) -> float | None:
    if value is not None and math.isnan(value):
        raise click.BadParameter("nan is no probability; expected a number from 0 to 1")
    return value


def refuse_swapped(runs: Sequence[str], file: str | None) -> None:
    """Raise UsageError where a file stands where a run belongs, and a run where FILE does."""
    marks = "manifest.json", "classify.py"
    if file is None or not any(Path(file, mark).is_file() for mark in marks):
        return
    if not Path(runs[0]).is_file():
        return
    verb = click.get_current_context().info_name
    swapped = " ".join(map(shlex.quote, (*runs[1:], file, runs[0])))
    raise click.UsageError(
        f"found the file {runs[0]} before the run {file}; expected the run first: "
        f"swap them: superconext {verb} {swapped}"
    )


@click.command(short_help="Score one or several runs on a labelled file.")
@click.argument("runs", metavar="RUN...", nargs=-1)
@click.argument("file", metavar="FILE", required=False)
@COLUMNS
@READING
@JSON
@SILENT
@THREADS
def evaluate(
    runs: tuple[str, ...],
    file: str | None,
    text_column: str | None,
    label_column: str | None,
    reading: dict[str, Any],
    as_json: bool,
    quiet: bool,
    threads: int,
) -> None:
    """Compute the metrics of RUN on the labelled FILE.

    RUN may also be a folder made by export --format onnx or static.

    Several RUNs are compared with the first: the difference in accuracy on the same rows, the rows
    that only one run predicts correctly, and the p-value of McNemar's exact test.
    """
    from superconext.core.progress import TerminalProgress
    from superconext.data.duplicates import keys_of
    from superconext.data.file_format import PREVIEWED
    from superconext.data.reading import read_labelled
    from superconext.report.table import class_table, render, score_rows, script_table

    if file is None or not runs:
        context = click.get_current_context()
        if file is None or Path(file).is_file():
            raise missing(context, "runs", *["file"] * (file is None), beside=("file",))
        context.params |= {"runs": file, "file": None}  # click gives the last argument to FILE
        raise missing(context, "file", beside=("runs",))
    refuse_swapped(runs, file)
    models = [load_any(run, threads) for run in runs]
    known = models[0].known
    say_waiting(file)
    corpus = read_labelled(file, text_column, label_column, known=known, **reading)
    if not quiet:
        echo_notes(corpus.notes, corpus.source)
        _show_rows(zip(corpus.labels[:PREVIEWED], corpus.texts[:PREVIEWED], strict=True))
    for run, model in zip(runs[1:], models[1:], strict=True):
        _warn_of_other_columns(run, model.known, corpus, text_column, label_column)
    found = []
    with TerminalProgress(quiet).bar("evaluating"):
        for run, model in zip(runs, models, strict=True):
            source = f"{corpus.source}, {run}" if len(runs) > 1 else corpus.source
            found.append(_evaluated(run, model, corpus, source, quiet))
    if len(runs) > 1:
        if (copies := len(corpus) - len(set(keys_of(corpus.texts)))) and not quiet:
            click.echo(
                f"warning: {corpus.source}: {copies} of {plural(len(corpus), 'row')} repeat a "
                "text, and p counts each of them: superconext data inspect --deduplicate writes "
                "each text once",
                err=True,
            )
        _show_beside(runs, found, corpus, as_json)
        return
    [run], [model], [(evaluation, document)] = runs, models, found
    if as_json:
        echo_json(document)
        return
    by = " + ".join(filter(None, model.titles.values()))
    shown = {f"{run} ({by})": evaluation.metrics}
    if evaluation.encoder_alone is not None and model.titles["probe_title"]:
        shown[f"its {model.titles['probe_title']} alone"] = evaluation.encoder_alone
    scores = score_rows(shown)
    click.echo(f"{corpus.source}, {plural(len(corpus), 'row')}\n{render(scores, [*scores[0]])}\n")
    click.echo(class_table(evaluation.metrics))
    if "by_script" in evaluation.metrics:
        table = {"reported_split": "test", "test": evaluation.metrics}
        click.echo("\n" + script_table(table, run))
    if Path(run, "manifest.json").exists():
        same = {**reading, "text_column": text_column, "label_column": label_column}
        words = " ".join([shlex.quote(run), shlex.quote(file), *reading_flags(same)])
        say_next(f"superconext report {words} shows the mistakes")


def _warn_of_other_columns(
    run: str, known: Known, corpus: Dataset, text_column: str | None, label_column: str | None
) -> None:
    """Warn where a run was trained on columns of other names than those that all are judged on."""
    read = corpus.columns or {}
    if read.get("header") is not True:
        return
    for kind, name, told in (
        ("text", known.text, text_column),
        ("label", known.label, label_column),
    ):
        if not told and name is not None and name != read.get(kind):
            click.echo(
                f"warning: {run} was trained on {kind}s of the column {name!r}, and is judged on "
                f"those of {read.get(kind)!r}, as the first run is (--{kind}-column names one)",
                err=True,
            )


def _evaluated(
    run: str, model: Model, corpus: Dataset, source: str, quiet: bool
) -> tuple[Evaluation, dict[str, Any]]:
    """What a run predicts for labelled rows, and that as `--json` has it; warnings on stderr."""
    import numpy as np

    from superconext.export.exported_model import ExportedModel
    from superconext.fitting.familiarity import Familiarity, overlap_report
    from superconext.probe.metrics import Evaluation, scored
    from superconext.report.table import untested_line

    unknown = unknown_labels(corpus, model.classes, run, quiet)
    if isinstance(model, ExportedModel):
        shares = model.probabilities(corpus.texts)
        metrics, predicted = scored(corpus.texts, corpus.labels, shares, model.classes)
        evaluation = Evaluation(np.empty((len(corpus), 0)), shares, predicted, metrics)
    else:
        from superconext.fitting.model import evaluate as evaluate_model

        evaluation = evaluate_model(model, corpus.texts, corpus.labels)
    if not quiet and len(corpus) >= _MANY and evaluation.metrics["accuracy"] == 1:
        click.echo(
            f"warning: {source}: {run} predicts every one of these labels: did it make them?",
            err=True,
        )
    untested = untested_line(corpus.labels, evaluation.predicted, model.classes)
    if untested and not quiet:
        click.echo(f"note: {source}: {untested}", err=True)
    familiarity = Familiarity()
    facts = familiarity.add(model, corpus.texts)
    overlap = overlap_report(facts, familiarity.seen, evaluation, corpus.labels, model.classes)
    for line in familiarity.warnings(overlap) if not quiet else ():
        click.echo(f"warning: {source}: {line}", err=True)
    more = {"unknown_labels": unknown} if unknown else {}
    return evaluation, {**evaluation.document(), **more, "overlap": overlap}


def _show_beside(
    runs: Sequence[str],
    found: Sequence[tuple[Evaluation, dict[str, Any]]],
    corpus: Dataset,
    as_json: bool,
) -> None:
    """The scores of several runs, and each of them against the first on the same rows."""
    from superconext.experiments.paired_tests import accuracies_against_first
    from superconext.report.table import probability, render, score_rows

    right = [[*map(eq, evaluation.predicted, corpus.labels)] for evaluation, _ in found]
    tests = accuracies_against_first(right)
    if as_json:
        told = [{"run": run, **document} for run, (_, document) in zip(runs, found, strict=True)]
        beside = [{}, *({"against_first": test} for test in tests)]
        echo_json({"runs": [one | more for one, more in zip(told, beside, strict=True)]})
        return
    scores = score_rows({run: one.metrics for run, (one, _) in zip(runs, found, strict=True)})
    click.echo(
        f"{corpus.source}, {plural(len(corpus), 'row')}\n{render(scores, list(scores[0]))}\n"
    )
    rows = [
        {
            "run": run,
            "difference": f"{test['difference']:+.3f}",
            "only it right": test["only_right"],
            "only first right": test["only_first_right"],
            "p (McNemar)": probability(test["p_mcnemar"]),
            **({"p (Holm)": probability(test["p_holm"])} if len(tests) > 1 else {}),
        }
        for run, test in zip(runs[1:], tests, strict=True)
    ]
    click.echo(f"accuracy against {runs[0]}\n{render(rows, list(rows[0]))}")


def unknown_labels(
    corpus: Dataset, classes: Sequence[str], run: str, quiet: bool = False
) -> dict[str, int]:
    """Rows of each label that is no class of the run, with a warning on stderr.

    Raises DataError where that is every label.
    """
    from superconext.core.errors import DataError
    from superconext.data.dataset import respelt
    from superconext.data.lines import shown, some_shown

    counts = corpus.class_counts()
    unknown = {label: count for label, count in counts.items() if label not in set(classes)}
    if not unknown:
        return {}
    alike = respelt(unknown, classes)
    if len(unknown) == len(counts):
        raise DataError(
            f"{corpus.source}: found no label that {run} knows, but {some_shown(counts)}; expected "
            f"{some_shown(classes)}"
            + (alike or ": check --label-column, or map the labels to those of the run")
        )
    rows = [f"{shown(label, 24)} ({plural(count, 'row')})" for label, count in unknown.items()]
    if quiet:
        return unknown
    click.echo(
        f"warning: {corpus.source} has labels that {run} does not know: {listed(rows)}"
        f"; {sum(unknown.values())} of {plural(len(corpus), 'row')} have them and count as "
        f"wrong{alike}",
        err=True,
    )
    return unknown


def _show_rows(rows: Iterable[tuple[str | None, str]]) -> None:
    """How the first rows were read, a line each, on stderr."""
    import shutil

    from superconext.data.lines import shown

    width = shutil.get_terminal_size((100, 24)).columns
    for number, (label, text) in enumerate(rows, 1):
        head = f"note: row {number}: " + ("" if label is None else f"label {shown(label, 24)}, ")
        click.echo(f"{head}text {shown(text, max(20, width - len(head) - 8))}", err=True)


@click.command(short_help="Label new texts.")
@click.argument("run")
@click.argument("file", default="-")
@TEXT_COLUMN
@HEADER
@TEXT_READING
@switch("--proba", "Add the probability of every class.")
@switch("--details", "Add each row's line number and how much of its text RUN knows, and a header.")
@click.option(
    "--abstain-below",
    type=click.FloatRange(0, 1),
    callback=_not_nan,
    metavar="P",
    help="Leave the label empty (JSON: null) if every class is less probable than P.",
)
@click.option(
    "--keep",
    multiple=True,
    metavar="COLUMN",
    help="Add this column of FILE after the text; may be repeated; all: every column.",
)
@switch("--drop-incomplete", "Leave out rows without a text.")
@click.option(
    "--on-error",
    type=click.Choice(["fail", "skip"]),
    default="fail",
    show_default=True,
    help="What to do with a line that cannot be read: stop, or skip and count it.",
)
@out_file(f"{CSV_OR_TSV}, under a header, or JSON (--json)")
@JSON
@SILENT
@THREADS
def predict(
    run: str,
    file: str,
    text_column: str | None,
    header: bool | None,
    reading: dict[str, Any],
    proba: bool,
    details: bool,
    abstain_below: float | None,
    keep: tuple[str, ...],
    drop_incomplete: bool,
    on_error: str,
    out: str | None,
    as_json: bool,
    quiet: bool,
    threads: int,
) -> None:
    """Label the texts of FILE (- is standard input) and print label TAB text, or write it to --out.

    RUN may also be a folder made by export --format onnx or static. FILE may be of any size. Every
    row of FILE gives one row, in the same order; a row without text gets an empty label, or is left
    out with --drop-incomplete. With --proba, --details, --keep or --out a header names the columns.
    --details and --json add line numbers, the shares of a text's words and letters that are new to
    RUN, and whether RUN was made from the text (train or dev).
    """
    import sys
    from contextlib import ExitStack

    from superconext.core.errors import DataError, LineError
    from superconext.core.files import atomic_write
    from superconext.core.progress import TerminalProgress
    from superconext.data.reading import RowStream

    refuse_swapped([run], file)
    model = load_any(run, threads)
    texts = RowStream(
        file,
        text_column,
        labelled=False,
        on_error=on_error,
        every_row=not drop_incomplete,
        header=header,
        known=model.known,
        beside=bool(keep),
        **reading,
    )
    preview = not quiet and file != "-"
    say_waiting(file)
    terminal = out is None and sys.stdout.isatty()
    with ExitStack() as stack:
        stream = None
        if out is not None:
            temporary = stack.enter_context(atomic_write(Path(out)))
            stream = stack.enter_context(temporary.open("w", encoding="utf-8", newline=""))
        # Where rows go to the terminal, they are seen to move.
        texts.advance = stack.enter_context(TerminalProgress(quiet or terminal).bar("predicting"))
        settings = (as_json, proba, abstain_below, details, preview, keep)
        try:
            written, familiarity = write_predictions(model, texts, *settings, stream, out, quiet)
        except LineError as error:
            raise DataError(f"{error} (--on-error skip leaves such lines out)") from None
    if out is not None:
        tell(f"{out}: {plural(written, 'row')}")
    new = familiarity.seen is None or familiarity.seen.total() < familiarity.texts
    labelled = out is not None and any(label is not None for label, _ in texts.preview)
    # Else labels are what is wanted, or a file that `suggest` may read otherwise.
    new = new and not (proba or labelled) and header is None
    if new and preview and (terminal or out) and Path(run, "manifest.json").exists():
        same = reading_flags({**reading, "text_column": text_column})
        said = " ".join([shlex.quote(run), shlex.quote(file), *same])
        say_next(f"superconext suggest {said} chooses the sentences to label next")


def write_predictions(
    model: Model,
    texts: RowStream,
    as_json: bool = False,
    proba: bool = False,
    abstain_below: float | None = None,
    details: bool = False,
    preview: bool = False,
    keep: Sequence[str] = (),
    stream: TextIO | None = None,
    out: str | None = None,
    quiet: bool = False,
) -> tuple[int, Familiarity]:
    """Predict block by block; rows are written as they are made, what was read goes to stderr.

    A row without a text gets no label. Returns the number of rows, and what the run knows of them.

    as_json: one JSON array instead of TSV. proba: every class's probability too.
    abstain_below: rows whose largest probability is lower get no label.
    details: line and what `facts_of` tells of every row too, which JSON always has.
    preview: shows on stderr how the first rows were read.
    keep: columns that are written too; "all" for every one.
    stream: by default stdout. out: the file's name, which says whether it is CSV.
    quiet: nothing goes to stderr.
    """
    from superconext.core.label_types import share_columns
    from superconext.data.formats import table_lines
    from superconext.data.reading import LateColumns, kept_columns
    from superconext.fitting.familiarity import Familiarity, facts_of

    begun = labelled = shown = 0
    kept: dict[str, str] = {}
    late: LateColumns | None = None
    as_csv = (out or "").lower().endswith(".csv")
    told = [*(facts_of(model, ["a"])[0] or {})] * details
    heading = [*["line"] * details, "label", *told, "text"]
    place = len(heading) - 1 - len(told)
    heading[place:place] = share_columns(model.classes, heading) if proba else []
    familiarity = Familiarity()

    def show_notes() -> None:
        nonlocal shown
        if not quiet:
            echo_notes(texts.notes[shown:], texts.name)
        shown = len(texts.notes)

    for block in texts:
        show_notes()
        if preview:
            _show_rows(texts.preview)
            preview = False
        if keep and not begun:
            kept = kept_columns(texts, block.beside, keep, heading, model.columns)
            late = LateColumns(block.beside)
        elif late is not None and "all" in keep:
            late.add(block)
        for start in range(0, len(block), _AT_ONCE):
            part = block.texts[start : start + _AT_ONCE]
            facts = familiarity.add(model, part)
            shares = _shares(model, part)
            labels = [
                None
                if share is None or share.max() < (abstain_below or 0.0)
                else model.classes[share.argmax()]
                for share in shares
            ]
            lines = block.lines[start : start + _AT_ONCE]
            cells = [
                {name: row.get(column, "") for name, column in kept.items()}
                for row in block.beside[start : start + _AT_ONCE] or [{}] * len(part)
            ]
            rows: Iterable[Any] = zip(lines, labels, shares, facts, part, cells, strict=True)
            if as_json:
                written = [_json_row(model, proba, *row) for row in rows]
                echo_rows((", " if begun else "[") + ", ".join(written), stream)
            else:
                table = [_table_row(model, proba, details, told, *row) for row in rows]
                if (proba or details or keep or out) and not begun:
                    table.insert(0, [*heading, *kept])
                mark = "\ufeff" * (as_csv and not begun)  # spreadsheets know UTF-8 by it
                lines_out = table_lines(table, texts.separator if as_csv else "")
                echo_rows(mark + "".join(lines_out), stream)
            begun += len(part)
            labelled += len(part) - labels.count(None)
    if as_json:
        click.echo("]", stream)
    show_notes()
    if late and late.told() and not quiet:
        click.echo(f"warning: {texts.name}: {late.told()}", err=True)
    if not quiet:
        _tell_predicted(texts, familiarity, begun, labelled, abstain_below)
    return begun, familiarity


def _tell_predicted(
    texts: RowStream,
    familiarity: Familiarity,
    begun: int,
    labelled: int,
    abstain_below: float | None,
) -> None:
    """On stderr: rows that got no label, of those begun, and texts that were read in part, left out
    or unlike those of training."""
    filled = familiarity.texts
    notes = []
    if begun > filled:
        blank = plural(begun - filled, "row")
        mend = "--drop-incomplete leaves such rows out"
        notes.append(f"{blank} without a text, given an empty label ({mend})")
    if labelled < filled:
        notes.append(
            f"no label for {filled - labelled} of {filled} texts, whose classes are all less "
            f"probable than {abstain_below:g}"
        )
    echo_notes(notes, texts.name)
    for problem in [*(f"{texts.name}: {w}" for w in familiarity.warnings()), *texts.problems]:
        click.echo(f"warning: {problem}", err=True)
    if texts.on_error == "skip":
        click.echo(
            f"{texts.name}: {plural(begun, 'text')} predicted, "
            f"{plural(texts.skipped, 'line')} skipped",
            err=True,
        )


def _shares(model: Model, texts: list[str]) -> list[np.ndarray | None]:
    """The probability of every class `[C]` for each text; None for one that is blank."""
    filled = [text for text in texts if not is_blank(text)]
    found = iter(model.probabilities(filled)) if filled else iter(())
    if len(filled) == len(texts):
        return list(found)
    return [None if is_blank(text) else next(found) for text in texts]


def _json_row(
    model: Model,
    proba: bool,
    line: int,
    label: str | None,
    share: np.ndarray | None,
    facts: dict[str, Any] | None,
    text: str,
    kept: Mapping[str, str],
) -> str:
    answer: dict[str, Any] = {"line": line, "label": label}
    if proba:
        shares = None if share is None else dict(zip(model.classes, share.tolist(), strict=True))
        answer["probabilities"] = shares
    more = {"kept": kept} if kept else {}
    return json.dumps({**answer, **(facts or {}), "text": text, **more}, ensure_ascii=False)


def _table_row(
    model: Model,
    proba: bool,
    details: bool,
    told: Sequence[str],
    line: int,
    label: str | None,
    share: np.ndarray | None,
    facts: dict[str, Any] | None,
    text: str,
    kept: Mapping[str, str],
) -> list[str]:
    cells = [*[str(line)] * details, label or ""]
    if proba:
        cells += [""] * len(model.classes) if share is None else [f"{p:.4f}" for p in share]
    values = [(facts or {}).get(name) for name in told]
    cells += [f"{value:.2f}" if isinstance(value, float) else value or "" for value in values]
    return [*cells, text, *kept.values()]


@click.command(short_help="Write the sentence vectors of texts as a NumPy file.")
@click.argument("run")
@click.argument("file")
@out_file("an array of NumPy", "VECTORS.npy", required=True, endings=lambda _: (".npy",))
@TEXT_COLUMN
@HEADER
@TEXT_READING
@THREADS
def embed(
    run: str,
    file: str,
    out: str,
    text_column: str | None,
    header: bool | None,
    reading: dict[str, Any],
    threads: int,
) -> None:
    """Write the sentence vectors of the texts of FILE, float32 [N, d], as a NumPy file.

    A row without text gets a vector of zeros.
    """
    import io

    import numpy as np

    from superconext.core.files import atomic_write
    from superconext.core.progress import TerminalProgress
    from superconext.data.reading import read_texts

    refuse_swapped([run], file)
    model = load_any(run, threads)
    say_waiting(file)
    read = read_texts(file, text_column, header, model.known, True, **reading)
    with TerminalProgress().bar("embedding"):
        vectors = zeros_for_blank(read.texts, model.features(read.texts))
    blank = sum(map(is_blank, read.texts))
    rows = f"{plural(blank, 'row')} without a text, given a vector of zeros"
    echo_notes([*read.notes, *[rows] * bool(blank)], read.source)
    warn_of_unread(model, read.texts, read.source)
    # Not straight into the file: there NumPy does not say why a write fails.
    buffer = io.BytesIO()
    np.save(buffer, vectors, allow_pickle=False)
    with atomic_write(Path(out)) as temporary:
        temporary.write_bytes(buffer.getbuffer())
    click.echo(f"{out}: {plural(len(vectors), 'vector')} of {vectors.shape[1]} numbers", err=True)
    say_next(f"numpy.load({out!r}) in Python")


def warn_of_unread(model: Model, texts: Sequence[str], source: str = "") -> None:
    """Warn on stderr where the run does not read the end of some texts."""
    from superconext.fitting.familiarity import Familiarity

    familiarity = Familiarity()
    familiarity.add(model, texts)
    echo_notes((f"{WARNING}{line}" for line in familiarity.unread()), source)


def _load(run: str, threads: int, *expected: str) -> Any:
    from superconext.runs.manifest import code_told, load_run

    model, manifest = load_run(Path(run), threads, *expected)
    warn_unfinished(run, manifest)
    warn_misread(run, model.indexer.misread)
    warn_misread(run, code_told(model, manifest))
    return model


def warn_unfinished(run: str, manifest: Mapping[str, Any]) -> None:
    """A warning on stderr where the training of a run was interrupted."""
    from superconext.runs.manifest import unfinished

    if told := unfinished(Path(run), manifest):
        click.echo(f"{WARNING}{told}", err=True)


def warn_misread(run: str, told: str) -> None:
    """A warning on stderr of `TextIndexer.misread` or `code_told`."""
    if told:
        click.echo(f"{WARNING}{run}: {told}", err=True)


def load_any(run: str, threads: int) -> Any:
    """A run, or what export --format onnx or static made of one."""
    from superconext.export.exported_model import load_export

    exported = load_export(Path(run), threads)
    if exported is None:
        return _load(run, threads, "a run or an exported folder")
    warn_misread(run, exported.misread)
    return exported


@click.command(short_help="Write an HTML page of a run: scores, map, mistakes.")
@click.argument("run")
@click.argument("file", required=False)
@click.option("--train", metavar="FILE", help="Training rows, to show those nearest to each row.")
@click.option(
    "--out",
    metavar="PAGE.html",
    help="Page to write.  [default: RUN/report.html; with FILE, report-NAME.html beside it]",
)
@COLUMNS
@READING
@THREADS
def report(
    run: str,
    file: str | None,
    train: str | None,
    out: str | None,
    text_column: str | None,
    label_column: str | None,
    reading: dict[str, Any],
    threads: int,
) -> None:
    """Write an HTML page of RUN on the labelled FILE: scores, a map, mistakes, every sentence.

    Without FILE the page shows what RUN recorded: no sentences, unless trained with --keep-text.
    The page is one file that loads nothing else; it contains the sentences of FILE and --train.
    """
    from superconext.core.errors import DataError, RunError, SuperConTextError
    from superconext.core.progress import TerminalProgress
    from superconext.data.reading import read_labelled
    from superconext.runs.manifest import read_manifest

    refuse_swapped([run], file)
    manifest = read_manifest(Path(run))  # what is no run is told before what is not installed
    from superconext.report.page import expected, is_page, write_page
    from superconext.runs.page import PAGE, folder_page, other_page

    stem = Path(re.sub(r"(?i)\.(gz|bz2|xz|zip)$", "", Path(file or "").name)).stem or "rows"
    name = PAGE if file is None else f"report-{stem}.html"
    path = Path(out) if out else Path(run) / name
    if not path.parent.is_dir():
        raise DataError(f"{path.parent}: no such folder; expected one to write {path.name} into")
    if path.suffix.lower() not in (".html", ".htm", ""):
        raise DataError(f"{path}: found no ending .html, expected one: name the page so")
    if os.path.lexists(path) and not is_page(path):
        raise DataError(f"{path} exists and is no page; expected a new file: choose another")
    if file is None:
        if train:
            raise click.UsageError("--train needs FILE: also name the file to evaluate RUN on.")
        warn_unfinished(run, manifest)
        if out is None and path.exists():  # of training, which shows more than is recorded
            echo_notes(["the run has its page already"])
        else:
            context = folder_page(Path(run))
            try:
                write_page(path, context)
            except SuperConTextError:
                raise
            except (AttributeError, ArithmeticError, LookupError, TypeError, ValueError) as error:
                raise RunError(
                    f"{run}: its records cannot be shown ({error}); expected metrics.json and "
                    "history.csv as train wrote them: give a labelled FILE to judge the run on"
                ) from None
    else:
        model = _load(run, threads)

        def read(path: str) -> Dataset:
            corpus = read_labelled(path, text_column, label_column, known=model.known, **reading)
            echo_notes(corpus.notes, corpus.source)
            return corpus

        corpus = read(file)
        unknown_labels(corpus, model.classes, run)
        rows = None if train is None else read(train)
        with TerminalProgress().bar("drawing the page"):
            context = other_page(Path(run), model, corpus, rows)
            write_page(path, context)
        if context.seen is not None and context.seen.any():
            click.echo(f"warning: {corpus.source}: {' '.join(expected(context))}", err=True)
    click.echo(path)
    say_next(f"open {shell_word(path)} in a browser")
