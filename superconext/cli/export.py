"""`superconext export`, `serve`, `push` and `pull`: a run in other forms and places."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from superconext.cli.options import (
    COLUMNS,
    JSON,
    TEXT_READING,
    THREADS,
    echo_json,
    echo_notes,
    say_next,
    switch,
)
from superconext.cli.use import unknown_labels, warn_misread, warn_unfinished
from superconext.core.errors import plural
from superconext.core.files import shell_word
from superconext.core.progress import WARNING

if TYPE_CHECKING:
    from superconext.data.columns import Known
    from superconext.data.dataset import Dataset
    from superconext.data.duplicates import SeenTexts
    from superconext.fitting.model import Model


@click.command(short_help="Convert a run: smaller, ONNX, static, sentence-transformers.")
@click.argument("run")
@click.option(
    "--format",
    "form",
    type=click.Choice(["folder", "onnx", "static", "sentence-transformers"]),
    default="folder",
    show_default=True,
    help="folder: the model without figures and predictions. onnx: predicts with NumPy and "
    "onnxruntime alone. static: a distilled model that predicts with NumPy alone, many times as "
    "fast and less accurate. onnx and sentence-transformers need the extras of these names.",
)
@click.option("--out", required=True, metavar="FOLDER", help="Folder to write; must not exist.")
@switch("--prune", "Leave out n-gram vectors that no word uses; needs --test.", "pruned")
@click.option(
    "--test",
    metavar="FILE",
    help="With --prune or static: labelled file to measure the loss of accuracy on.",
)
@click.option(
    "--train",
    "train_file",
    metavar="FILE",
    help="With static (required): the labelled file RUN was trained on. Without --test a tenth is "
    "not learned from; the loss of accuracy is measured on it where training held it out too.",
)
@click.option(
    "--unlabelled",
    multiple=True,
    metavar="FILE",
    help="With static: more text to distil on; may be repeated.",
)
@click.option(
    "--expected",
    metavar="FILE",
    help="With --prune: text like what the model will read; of the words outside the training "
    "text only those in this file are kept.",
)
@click.option(
    "--vocabulary-min-count",
    "min_count",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Leave out words that training saw fewer times, such as names.",
)
@COLUMNS
@TEXT_READING
@JSON
def export(
    run: str,
    form: str,
    out: str,
    pruned: bool,
    test: str | None,
    train_file: str | None,
    unlabelled: tuple[str, ...],
    expected: str | None,
    min_count: int,
    text_column: str | None,
    label_column: str | None,
    reading: dict[str, Any],
    as_json: bool,
) -> None:
    """Convert RUN to another format, or to a smaller run folder.

    The export does not recognise training texts: their hashes are left out. Files are read as
    in training (columns, --encoding, --fix-text), unless these options say otherwise.
    """
    if pruned and not test:
        raise click.UsageError(
            "--prune needs --test FILE, on which it measures the loss of accuracy."
        )
    static = form == "static"
    if (expected and not pruned) or (test and not pruned and not static):
        raise click.UsageError("--test and --expected go with --prune; leave them out or add it.")
    if static != bool(train_file) or (unlabelled and not static) or (static and pruned):
        raise click.UsageError(
            "--format static needs --train FILE, may have --unlabelled, and excludes --prune; the "
            "other formats take neither --train nor --unlabelled."
        )
    if static and min_count > 1:
        raise click.UsageError(
            "--vocabulary-min-count leaves words out of the run, and a static student learns from "
            "all words of --train; expected one of them: leave it out, or use another format."
        )
    columns = {"text_column": text_column, "label_column": label_column}
    if any([*reading.values(), *columns.values()]) and not (pruned or static):
        raise click.UsageError(
            "--text-column, --label-column, --encoding and --fix-text are for the files of static "
            "and --prune."
        )
    from superconext.core.files import new_folder
    from superconext.runs.folder import load_model, save_model, write_manifest
    from superconext.runs.manifest import code_told, read_manifest

    model, manifest = load_model(run), read_manifest(Path(run))
    warn_unfinished(run, manifest)
    warn_misread(run, model.indexer.misread)
    warn_misread(run, code_told(model, manifest))
    reading = {**_recorded(manifest), **{name: value for name, value in reading.items() if value}}
    seen, model.seen = model.seen, None
    # A name that tables have and plain text has not.
    known = replace(model.known, text=text_column) if text_column else model.known
    label_type = str(manifest.get("label_type", "str"))
    facts: dict[str, Any] = {"format": form, "out": out}
    whole = model
    if min_count > 1:
        from superconext.export.prune import without_examples, without_rare_words

        model, facts["words_left_out"] = without_rare_words(model, min_count)
    with new_folder(Path(out)) as fresh:
        if pruned:
            from superconext.export.prune import prune

            assert test is not None
            wanted = _texts([expected], reading, known) if expected else None
            rows = _rows(model, run, test, columns | reading)
            model, report = prune(model, rows.texts, rows.labels, wanted, whole)
            facts["pruned"] = {"test": Path(test).name, **asdict(report)}
        if form == "onnx":
            from superconext.export.onnx_folder import write_onnx

            name = Path(run).resolve().name
            facts["largest_difference"] = write_onnx(model, fresh, name, label_type)
        elif static:
            assert train_file is not None
            rows = _rows(model, run, train_file, columns | reading)
            dev = _rows(model, run, test, columns | reading) if test else None
            more = _texts(unlabelled, reading, known)
            facts["cost"] = _distil(model, seen, fresh, run, rows, dev, more, label_type)
        elif form == "sentence-transformers":
            from superconext.export.sentence_module import write_sentence_transformer

            write_sentence_transformer(model, fresh)
        else:
            manifest = {k: v for k, v in manifest.items() if k not in ("format", "files")}
            if min_count > 1:
                manifest = without_examples(manifest) | {"vocabulary_min_count": min_count}
            if pruned:
                manifest["pruned"] = facts["pruned"]
            alone = [encoder.standing_alone(model.config) for encoder in model.encoders]
            if alone:
                model.encoders, model.config = [one for one, _ in alone], alone[0][1]
            write_manifest(fresh, manifest, save_model(model, fresh))
        facts["bytes"] = sum(path.stat().st_size for path in fresh.rglob("*") if path.is_file())
    _show(facts, as_json)


def _recorded(manifest: dict[str, Any]) -> dict[str, Any]:
    """How the files of the run were read, as `read_texts` takes it."""
    found = manifest.get("data")
    for name in ("train", "reading"):
        found = found.get(name) if isinstance(found, dict) else None
    kinds = {"encoding": str, "fix_text": bool}
    found = found if isinstance(found, dict) else {}
    return {name: found[name] for name, kind in kinds.items() if isinstance(found.get(name), kind)}


def _rows(model: Model, run: str, path: str, reading: dict[str, Any]) -> Dataset:
    """Labelled rows mended as training may have done: without those that lack a text or label, and
    with labels folded where that makes no two classes of the run one."""
    from superconext.data.dataset import folded
    from superconext.data.reading import read_labelled

    fold = len({folded(name) for name in model.classes}) == len(model.classes)
    mend = {"drop_unlabelled": True, "fold_label_case": fold, **reading}
    rows = read_labelled(path, known=model.known, **mend)
    echo_notes(rows.notes, rows.source)
    unknown_labels(rows, model.classes, run)
    return rows


def _texts(paths: Sequence[str], reading: dict[str, Any], known: Known) -> list[str]:
    """The texts of files without labels."""
    from superconext.data.reading import read_texts

    texts = []
    for path in paths:
        read = read_texts(path, known=known, **reading)
        echo_notes(read.notes, read.source)
        texts += read.texts
    return texts


def _distil(
    model: Model,
    seen: SeenTexts | None,
    folder: Path,
    run: str,
    rows: Dataset,
    dev: Dataset | None,
    more: Sequence[str],
    label_type: str,
) -> dict[str, Any]:
    """Write the student, distilled on rows and more texts; its cost is measured on dev, else on the
    rows that training held back."""
    from superconext.core.progress import TerminalProgress
    from superconext.data.splits import HELD_BACK, stratified_holdout
    from superconext.export.static_folder import write_static

    texts = list(rows.texts)
    # Who names rows to measure on vouches for them where the run cannot tell.
    trained = None if dev is None else 0
    if dev is None:
        kept, held = stratified_holdout(rows.texts, rows.labels, HELD_BACK, model.config.seed)
        dev, texts = rows.select(held), rows.select(kept).texts
    texts += more
    if seen is not None and model.indexer is not None:
        splits = seen.split_of(model.indexer.tokenizer.many(dev.texts))
        trained = splits.count("train")
    name = Path(run).resolve().name
    progress = TerminalProgress()
    cost = write_static(model, folder, texts, dev, progress, name, trained, label_type)
    if trained is None:
        echo_notes(
            [
                f"{run} does not tell which texts it was trained on (an exported or pulled folder "
                "cannot), so no score is told; expected rows that it was not trained on: give them "
                "with --test"
            ],
            dev.source,
        )
    if trained:
        found = f"found {trained} of {len(dev)} rows that the run was trained on"
        mend = "expected others to measure the cost on: give them with --test"
        echo_notes([f"{WARNING * ('run' in cost)}{found}; {mend}"], dev.source)
    return cost


def _show(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        echo_json(facts)
        return
    click.echo(f"{facts['out']}: {facts['format']}, {facts['bytes'] / 1e6:.1f} MB", err=True)
    if "words_left_out" in facts:
        words = plural(facts["words_left_out"], "word")
        click.echo(f"left out {words} of the training text", err=True)
    if "largest_difference" in facts:
        difference = facts["largest_difference"]
        click.echo(f"onnxruntime and torch differ by at most {difference:.1e}", err=True)
        say_next(f"python {shell_word(Path(facts['out'], 'classify.py'))} FILE")
    if "cost" in facts:
        cost = facts["cost"]
        for name in ("run", "student"):
            if (scores := cost.get(name)) is None:
                continue
            click.echo(
                f"{name:8}accuracy {scores['accuracy']:.4f}, macro F1 {scores['f1_macro']:.4f}"
            )
        click.echo(
            f"both give the same label to {cost['agree']} of {cost['rows']} rows; the student "
            f"learned from {cost['learned']} texts",
            err=True,
        )
        say_next(f"python {shell_word(Path(facts['out'], 'classify.py'))} FILE")
    if "pruned" in facts:
        pruned = facts["pruned"]
        words, buckets = pruned["words"], pruned["buckets"]
        click.echo(
            f"loss in accuracy: {pruned['accuracy_loss']:.4f} ({pruned['accuracy_before']:.4f} "
            f"before, {pruned['accuracy_after']:.4f} after, {pruned['labels_changed']} of "
            f"{pruned['rows']} labels changed)"
        )
        click.echo(
            f"kept {words[1]} of {words[0]} words outside the training text and {buckets[1]} of "
            f"{buckets[0]} n-gram buckets",
            err=True,
        )


@click.command(short_help="Upload a run to the Hugging Face Hub.")
@click.argument("run")
@click.argument("name", metavar="USER/NAME")
@click.option("--private/--public", default=None, help="Visibility of a new repository.")
@click.option("--revision", metavar="BRANCH", help="Branch to push to, created if missing.")
@click.option("--message", default="Upload with superconext", help="Commit message.")
@JSON
def push(
    run: str, name: str, private: bool | None, revision: str | None, message: str, as_json: bool
) -> None:
    """Upload RUN to the Hugging Face Hub, and create the repository if it does not exist.

    predictions.tsv, report.html and the hashes of the training texts are not uploaded.
    Needs the extra hub, and a login (hf auth login, or HF_TOKEN).
    """
    from superconext.export.hub import push as upload
    from superconext.runs.manifest import read_manifest

    warn_unfinished(run, read_manifest(Path(run)))
    address = upload(run, name, private, revision, message)
    if as_json:
        echo_json({"run": run, "name": name, "commit": address})
    else:
        click.echo(address)
        at = f" --revision {shlex.quote(revision)}" if revision else ""
        say_next(f"superconext pull {shlex.quote(name)}{at} --out RUN on another machine")


@click.command(short_help="Download a run from the Hugging Face Hub.")
@click.argument("name", metavar="USER/NAME")
@click.option("--out", required=True, metavar="RUN", help="Folder to write; must not exist.")
@click.option("--revision", metavar="REVISION", help="Branch, tag or commit.")
@JSON
def pull(name: str, out: str, revision: str | None, as_json: bool) -> None:
    """Download a run from the Hugging Face Hub into a new folder, and check its hashes.

    Needs the extra hub; a private run also needs a login.
    """
    from superconext.export.hub import pull as download

    download(name, out, revision)
    if as_json:
        echo_json({"name": name, "out": out})
    else:
        click.echo(f"{out}: {name}, checked", err=True)
        say_next(f"superconext predict {shlex.quote(out)} FILE")


def _limit(name: str, default: int, text: str) -> Any:
    return click.option(name, type=click.IntRange(1), default=default, show_default=True, help=text)


@click.command(short_help="Label texts over HTTP.")
@click.argument("run")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="Port; 0: any free one.",
)
@_limit("--max-bytes", 1 << 20, "Most bytes in the body of a request.")
@_limit("--max-texts", 1000, "Most texts in a request.")
@_limit("--max-characters", 10_000, "Most characters in a text.")
@_limit("--max-waiting", 64, "Most requests that wait at once.")
@THREADS
def serve(
    run: str,
    host: str,
    port: int,
    max_bytes: int,
    max_texts: int,
    max_characters: int,
    max_waiting: int,
    threads: int,
) -> None:
    """Serve RUN over HTTP: a run, or a folder made by export --format onnx or static.

    POST /predict takes {"texts": ["...", ...]}; GET /health and /metrics (Prometheus) are for
    monitoring. Requests over a limit are refused (413, 429). No text is logged. SIGTERM lets
    running requests finish. Needs the extra serve.
    """
    from superconext.cli.use import load_any
    from superconext.export.server import Limits, run_server

    limits = Limits(max_bytes, max_texts, max_characters, waiting=max_waiting)
    run_server(load_any(run, threads), host, port, limits)
