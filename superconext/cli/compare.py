"""`superconext compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from superconext.cli.experiments import (
    OF_DATA,
    RUNS,
    SYSTEMS,
    SYSTEMS_DECIDED,
    chosen_systems,
    chosen_workers,
    given_on_all,
    make_request,
    require,
)
from superconext.cli.options import SPLITS, GroupedCommand, as_usage, echo_json, parameters
from superconext.core.errors import RunError

if TYPE_CHECKING:
    from superconext.experiments.compare import Compared
    from superconext.experiments.datasets import DataSet
    from superconext.experiments.plan import Request

#: What `--protocol` takes to explain every protocol.
_LIST = "list"


@click.command(cls=GroupedCommand)
@click.argument("train_files", metavar="[TRAIN]...", nargs=-1)
@click.option("--dev", metavar="FILE", help="Rows to choose settings on; unset: a tenth of TRAIN.")
@click.option("--test", metavar="FILE", help="Rows to report on; unset: splits are drawn.")
@click.option("--datasets", metavar="TOML", help="Data sets from a file, in place of TRAIN.")
@SYSTEMS
@SPLITS
@click.option(
    "--cv",
    type=click.IntRange(0, 100),
    metavar="K",
    help="Cross-validate on K folds of TRAIN in place of test rows; 0: never.  [default: 5 for "
    "fewer than 300 rows without --test]",
)
@click.option(
    "--protocol",
    metavar="NAME",
    help="Compare what a paper compared, beside its figures; list: describe each.",
)
@click.option(
    "--study",
    "studies",
    multiple=True,
    metavar="NAME",
    help="Of the protocol, this study alone; may be repeated.  [default: all]",
)
@RUNS
@click.option(
    "--verify",
    type=(str, click.IntRange(1)),
    metavar="DIR N",
    help="Re-run N fits of DIR, drawn at random: do they match?",
)
@parameters(without=SYSTEMS_DECIDED)
@click.pass_context
def compare(
    ctx: click.Context,
    train_files: tuple[str, ...],
    verify: tuple[str, int] | None,
    protocol: str | None,
    studies: tuple[str, ...],
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Compare systems and baselines on TRAIN over several seeds and write DIR.

    The baselines (majority class, TF-IDF + logistic regression, TF-IDF + linear SVM) are
    always fitted too, vectors_logreg wherever there are word vectors, pretrained_logreg
    wherever --init or --pretrain is given; nbsvm, fasttext and ngrams where --objectives names
    them. A fit that DIR already holds is not run again. With several TRAIN files, or data sets
    from a file, each has a table of its own. With --protocol the systems are those of a paper;
    parameters given apply to all of them that do not set these.
    """
    from superconext.core.progress import TerminalProgress

    progress = TerminalProgress(quiet)
    if verify:
        allowed = {"verify", "jobs", "backend", "scheduler", "as_json", "quiet"}
        source = click.core.ParameterSource.DEFAULT
        named = [name for name in ctx.params if ctx.get_parameter_source(name) != source]
        if set(named) - allowed:
            raise click.UsageError(
                "--verify takes its files and parameters from DIR; leave out everything but "
                "--jobs, --backend, --scheduler, --json and --quiet"
            )
        _verify(*verify, options, as_json, progress)
        return
    if protocol == _LIST:
        from superconext.experiments.protocol import explained, load_protocol, protocol_names

        click.echo("\n\n".join(explained(load_protocol(name)) for name in protocol_names()))
        return
    if studies and not protocol:
        raise click.UsageError("--study belongs to --protocol: name that too")
    if protocol:
        if options["objectives"] or options["systems"]:
            raise click.UsageError(
                "a protocol names its systems; leave out --objectives and --systems beside it"
            )
        require(options, out="folder")
        given = ctx.get_parameter_source("reference") != click.core.ParameterSource.DEFAULT
        wanted = make_request(
            ctx,
            options,
            "compare",
            datasets=_datasets(train_files, options | {"protocol": protocol}),
            systems=(),
            seeds=1,
            given=given_on_all(options, "compare", progress),
            reference=options["reference"] * given,
        )
        reports = _run_protocol(protocol, studies, wanted, options["seeds"], progress)
        _show_reports(reports, as_json)
        click.echo(f"comparison folder: {options['out']}", err=True)
        return
    if not options["systems"]:
        require(options, objectives="names")
    seedless = options["cv"] or not (options["test"] or options["splits"] or options["cv"] == 0)
    options["seeds"] = options["seeds"] or 0
    require(options, **({} if seedless else {"seeds": "number"}), out="folder")
    from superconext.experiments import compare as comparing

    request = make_request(
        ctx,
        options,
        "compare",
        datasets=_datasets(train_files, options | {"protocol": protocol}),
        systems=chosen_systems(options),
        given=given_on_all(options, "compare", progress),
    )
    as_usage(request.check)
    compared = comparing.compare(request, progress)
    if as_json:
        echo_json(_document(compared, options["reference"]))
    else:
        click.echo(_text(compared))
    click.echo(f"comparison folder: {options['out']}", err=True)


def _datasets(train_files: tuple[str, ...], options: dict[str, Any]) -> tuple[DataSet, ...]:
    from superconext.experiments.datasets import from_files, read_datasets

    if options["protocol"] and options["cv"]:
        raise click.UsageError("a protocol says how rows are split; leave out --cv beside it")
    fields = {name: options[name] for name in ("splits", *OF_DATA)} | options["reading"]
    fields["cv"] = 0 if options["protocol"] else options["cv"]
    if options["datasets"]:
        if train_files or options["dev"] or options["test"]:
            raise click.UsageError(
                "--datasets names the files; leave out TRAIN, --dev and --test beside it"
            )
        return read_datasets(Path(options["datasets"]), fields)
    if not train_files:
        raise click.UsageError("Missing argument 'TRAIN': the labelled file to train on.")
    fields |= {"dev": options["dev"], "test": options["test"]}
    datasets: tuple[DataSet, ...] = as_usage(lambda: from_files(train_files, **fields))
    return datasets


def _text(compared: Compared) -> str:
    from superconext.experiments.tables import script_grid, to_grid

    parts = []
    for name, table in compared.tables.items():
        by_script = script_grid(table)
        grids = [to_grid(table), *([] if by_script is None else [by_script])]
        parts.append("\n\n".join([*([name] if name else []), *(grid.text() for grid in grids)]))
    if compared.overview is None:
        return parts[0]
    return "\n\n".join([*parts, f"all data sets\n\n{compared.overview.text()}"])


def _document(compared: Compared, reference: str) -> dict[str, Any]:
    from superconext.experiments.tables import mean_ranks, to_csv_rows

    tables = {
        name: {
            "rows": to_csv_rows(table),
            "notes": table.notes,
            **({"by_script": table.by_script} if table.by_script else {}),
        }
        for name, table in compared.tables.items()
    }
    if compared.overview is None:
        return {"reference": reference, **tables[""]}
    ranks = mean_ranks(compared.tables)
    return {"reference": reference, "datasets": tables, "mean_ranks": ranks}


def _verify(
    folder: str, number: int, options: dict[str, Any], as_json: bool, progress: Any
) -> None:
    from superconext.experiments.verify import verify

    checks = verify(Path(folder), number, progress, workers=chosen_workers(options))
    if as_json:
        documents = [
            {
                **({"dataset": check.fit.dataset} if check.fit.dataset else {}),
                "system": check.fit.system.name,
                "objective": check.fit.system.objective,
                "seed": check.fit.seed,
                "split": check.fit.split,
                "match": check.same,
                "predictions": check.rows,
                "differing": check.differing,
            }
            for check in checks
        ]
        echo_json({"checks": documents})
    else:
        for check in checks:
            click.echo(str(check))
    wrong = [check for check in checks if not check.same]
    if wrong:
        raise RunError(
            f"{folder}: {len(wrong)} of {len(checks)} fits did not come out as they were written; "
            "expected all to match: compare the versions and processor with those in "
            "comparison.json"
        )


def _run_protocol(
    name: str, studies: tuple[str, ...], wanted: Request, seeds: int | None, progress: Any
) -> dict[str, Any]:
    """Run the studies of a protocol, each into a folder of its own; the figures of each."""
    from superconext.experiments.protocol import chosen_studies, expand, load_protocol
    from superconext.experiments.protocol_report import run_study

    protocol = as_usage(load_protocol, name)
    chosen = as_usage(chosen_studies, protocol, studies)
    requests = [
        as_usage(lambda study=study: expand(protocol, study, wanted, seeds=seeds))
        for study in chosen
    ]
    for request in requests:
        as_usage(request.plan)
    return {
        study.name: run_study(protocol, study, request, progress)
        for study, request in zip(chosen, requests, strict=True)
    }


def _show_reports(reports: dict[str, Any], as_json: bool) -> None:
    """Print what came out."""
    if as_json:
        document = {
            name: {"rows": report.rows, "notes": report.notes} for name, report in reports.items()
        }
        echo_json({"studies": document})
        return
    click.echo("\n\n".join(report.text() for report in reports.values()))
