"""`superconext compare`, `fewshot` and `sweep`, and the options that they share."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from superconext.baselines import ALWAYS_FITTED, BASELINES
from superconext.cli.options import (
    COLUMNS,
    CONFIG,
    FIGURES,
    JSON,
    QUIET,
    READING,
    SPLITS,
    Decorator,
    GroupedCommand,
    as_usage,
    echo_json,
    given_parameters,
    missing,
    number,
    parameters,
    say_next,
    shared,
    switch,
    tell,
)
from superconext.config.parameters import (
    BY_NAME,
    DECIDED,
    DECIDED_WITH_SYSTEMS,
    OPTION,
    check_names,
    options_by_name,
)
from superconext.core.errors import ConfigError, RunError
from superconext.core.files import shell_word
from superconext.objectives.catalogue import OBJECTIVES

if TYPE_CHECKING:
    from superconext.core.progress import Progress
    from superconext.experiments.compare import Compared
    from superconext.experiments.plan import Request, Workers
    from superconext.experiments.systems import DataSet, System

#: Fields of a data set that are options of all three commands.
OF_DATA = ("deduplicate", "deduplicate_near", "at_most", "text_column", "label_column")

_MORE_BASELINES = [name for name in BASELINES if name not in ALWAYS_FITTED]


def _parsed(
    ctx: click.Context, option: click.Parameter, value: str | None
) -> tuple[System, ...] | None:
    from superconext.experiments.systems import parse_systems

    try:
        return None if value is None else parse_systems(value)
    except ConfigError as error:
        raise click.BadParameter(str(error), ctx, option) from None


#: `--objectives` and `--systems`.
SYSTEMS = shared(
    click.option(
        "--objectives",
        metavar="A,B,C",
        callback=_parsed,
        help="Systems to compare: OBJECTIVE or OBJECTIVE:PARAMETER=VALUE+PARAMETER=VALUE. "
        "auto: the recipe that train chooses with the same dev rows. "
        f"Objectives: {', '.join(OBJECTIVES)}. Baselines: {', '.join(_MORE_BASELINES)}.",
    ),
    click.option(
        "--systems", metavar="TOML", help="Read the systems, and names for them, from this file."
    ),
)

#: Where to write, by whom, and how to report.
RUNS = shared(
    click.option("--out", metavar="DIR", help="Folder to write, or to resume.  [required]"),
    click.option(
        "--reference",
        metavar="NAME",
        default="tfidf_logreg",
        show_default=True,
        help="System that the others are tested against.",
    ),
    number("--jobs", 1, "Fits to run in parallel."),
    click.option(
        "--backend",
        type=click.Choice(["processes", "dask"]),
        default="processes",
        show_default=True,
        help="Run the fits in processes of this machine, or on the workers of --scheduler.",
    ),
    click.option("--scheduler", metavar="ADDRESS", help="Address of the Dask scheduler."),
    switch("--deduplicate", "Remove duplicates within and across splits."),
    switch("--deduplicate-near", "Remove training rows that nearly repeat a dev or test text."),
    click.option(
        "--at-most",
        type=click.IntRange(8),
        metavar="N",
        help="Use a stratified sample of N rows of each file.",
    ),
    CONFIG,
    COLUMNS,
    READING,
    FIGURES,
    JSON,
    QUIET,
)


def _seeds(required: str = "required") -> Decorator:
    """`--seeds`, and when it is required."""
    help = f"How often to fit each system, with seeds 0, 1, ...  [{required}]"
    return number("--seeds", None, help, click.IntRange(1, 10_000))


def require(options: dict[str, Any], *names: str) -> None:
    """Wrong usage, with these options in its example, unless each of them was given."""
    if gone := [name for name in names if not options[name]]:
        raise missing(click.get_current_context(), *gone, beside=names)


def chosen_systems(options: dict[str, Any]) -> tuple[System, ...]:
    """The systems of `--objectives` or of the file given with `--systems`."""
    from superconext.experiments.systems import read_systems

    if options["objectives"] and options["systems"]:
        raise click.UsageError("found --objectives and --systems; expected one of them")
    if options["systems"]:
        return read_systems(Path(options["systems"]))
    require(options, "objectives")
    systems: tuple[System, ...] = options["objectives"]
    return systems


def given_on_all(options: dict[str, Any], verb: str, progress: Progress) -> dict[str, Any]:
    """The parameters for all systems: options, then the file given with `--config`."""
    from superconext.config.files import read_config

    # Such as --cv, which is the comparison's and not that of each fit.
    decided = {*DECIDED} - {"budget"}
    given = {n: value for n, value in given_parameters(options).items() if n not in decided}
    if not options["config"]:
        return given
    from_file = read_config(Path(options["config"]))
    for name in DECIDED if verb == "sweep" else DECIDED_WITH_SYSTEMS:
        if from_file.pop(name, None) is not None:
            progress.note(f"{options['config']}: {name} is left out; {verb} decides it")
    return {**from_file, **given}


def one_dataset(train_file: str, options: dict[str, Any], *also: str) -> tuple[DataSet]:
    """The data set of a command that takes one; `also`: its fields beside those of all commands."""
    from superconext.experiments.systems import DataSet

    names = ("dev", "test", *OF_DATA, *also)
    fields = {name: options[name] for name in names} | options["reading"]
    return (DataSet("", train_file, **fields),)


def make_request(ctx: click.Context, options: dict[str, Any], verb: str, **own: Any) -> Request:
    """The request of a command, from the options that all three have and fields of its `own`."""
    from superconext.experiments.plan import Request

    workers = chosen_workers(options)
    shared = {name: options[name] for name in ("seeds", "out", "reference", "figures")}
    command = ("superconext", *(ctx.obj or ()))
    return Request(**{**shared, "verb": verb, "workers": workers, "command": command, **own})


def chosen_workers(options: dict[str, Any]) -> Workers:
    """What runs the fits. Wrong usage for options that do not go together."""
    from superconext.experiments.plan import Workers

    workers = Workers(options["jobs"], options["backend"], options["scheduler"])
    as_usage(workers.check)
    return workers


#: What `--protocol` takes to explain every protocol.
_LIST = "list"


@click.command(
    cls=GroupedCommand,
    needs=("train_files", "out"),
    short_help="Compare objectives and baselines over several seeds.",
)
@click.argument("train_files", metavar="[TRAIN]...", nargs=-1)
@click.option(
    "--dev", metavar="FILE", help="Labelled file to choose settings on; unset: a tenth of TRAIN."
)
@click.option(
    "--test", metavar="FILE", help="Labelled file to report scores on; unset: splits are drawn."
)
@click.option("--datasets", metavar="TOML", help="Read data sets from this file in place of TRAIN.")
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
    help="Repeat a paper's comparison, with its figures; list: describe them. Or a .toml file.",
)
@click.option(
    "--study",
    "studies",
    multiple=True,
    metavar="NAME",
    help="Run only this study of the protocol; may be repeated.  [default: all]",
)
@_seeds("required, unless cross-validated")
@RUNS
@click.option(
    "--verify",
    type=(str, click.IntRange(1)),
    metavar="DIR N",
    help="Repeat N fits of DIR, drawn at random, and check that they match.",
)
@parameters(without=DECIDED_WITH_SYSTEMS)
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

    Baselines are always fitted too: majority class, TF-IDF + logistic regression and TF-IDF +
    linear SVM; without --protocol also vectors_logreg and pretrained_logreg (with --init or
    --pretrain); others if --objectives names them. Fits that DIR already has are kept. Each of
    several TRAIN files or data sets gets its own table. --protocol takes the systems of a paper;
    parameters apply to every system that does not set them itself.
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
    if runs := [one for one in train_files if Path(one, "manifest.json").is_file()]:
        words = shlex.join([*runs, options["test"] or "FILE"])
        raise click.UsageError(
            f"found the run folder {runs[0]}, expected labelled files to train on: runs that are "
            f"trained are compared by superconext evaluate {words}"
        )
    asked = {**options, "train_files": train_files}
    rows = () if options["datasets"] else ("train_files",)
    if protocol:
        if options["objectives"] or options["systems"]:
            raise click.UsageError(
                "a protocol names its systems; leave out --objectives and --systems beside it"
            )
        require({**asked, "protocol": protocol}, *rows, "protocol", "out")
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
        _where("comparison", options["out"])
        return
    seedless = options["cv"] or not (options["test"] or options["splits"] or options["cv"] == 0)
    options["seeds"] = options["seeds"] or 0
    systems = "systems" if options["systems"] else "objectives"
    require(asked, *rows, systems, *(() if seedless else ("seeds",)), "out")
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
    _where("comparison", options["out"])


def _where(kind: str, folder: str) -> None:
    """The folder that a command wrote, and its page."""
    tell(f"{kind} folder: {folder}")
    page = Path(folder, "report.html")
    if page.exists():
        say_next(f"open {shell_word(page)} in a browser")


def _datasets(train_files: tuple[str, ...], options: dict[str, Any]) -> tuple[DataSet, ...]:
    from superconext.experiments.systems import from_files, read_datasets

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
    from superconext.experiments.runner import verify

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
    from superconext.experiments.protocol import chosen_studies, expand, load_protocol, run_study

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


def _numbers(
    ctx: click.Context, option: click.Parameter, value: str | None
) -> tuple[int, ...] | None:
    if value is None:
        return None
    try:
        return tuple(int(piece) for piece in value.split(",") if piece.strip())
    except ValueError:
        raise click.BadParameter(
            f"{value!r}: expected whole numbers, as 4,8,16", ctx, option
        ) from None


@click.command(
    cls=GroupedCommand,
    needs=("test", "shots", "seeds", "out"),
    short_help="Draw score curves for a few labelled rows of each class.",
)
@click.argument("train_file", metavar="TRAIN", required=True)
@click.option(
    "--dev",
    metavar="FILE",
    help="Labelled file to choose settings on; unset: as many rows of TRAIN as are trained on.",
)
@click.option("--test", metavar="FILE", help="Labelled file to report scores on.  [required]")
@click.option(
    "--shots",
    metavar="4,8,16",
    callback=_numbers,
    help="Numbers of rows to draw of each class.  [required]",
)
@switch(
    "--rest-unlabelled",
    "Learn also from the texts of TRAIN's other rows, without their labels: word vectors, with "
    "--pretrain the encoder, and the pool of css_lm.",
)
@SYSTEMS
@_seeds()
@RUNS
@parameters(without=DECIDED_WITH_SYSTEMS)
@click.pass_context
def fewshot(
    ctx: click.Context, train_file: str, as_json: bool, quiet: bool, **options: Any
) -> None:
    """Draw a few rows of each class from TRAIN, with each seed, and write score curves to DIR.

    Without --objectives or --systems, superloss and cross_entropy are compared. The baselines of
    compare are fitted on the same rows.
    """
    from superconext.core.progress import TerminalProgress
    from superconext.experiments import compare as drawing
    from superconext.experiments.systems import parse_systems
    from superconext.experiments.tables import to_long_rows

    require(options, "test", "shots", "seeds", "out")
    if not options["objectives"] and not options["systems"]:
        options["objectives"] = parse_systems("superloss,cross_entropy")
    progress = TerminalProgress(quiet)
    request = make_request(
        ctx,
        options,
        "fewshot",
        datasets=one_dataset(train_file, options, "rest_unlabelled"),
        systems=chosen_systems(options),
        given=given_on_all(options, "fewshot", progress),
        draws=as_usage(drawing.shot_draws, options["shots"]),
    )
    as_usage(request.plan)
    curve = drawing.fewshot(request, progress)
    if as_json:
        rows = to_long_rows("shots", curve.tables)
        document = {"reference": request.reference, "rows": rows, "notes": curve.table.notes}
        echo_json(document)
    else:
        click.echo("weighted F1 in percent, by rows of each class\n")
        click.echo(f"{replace(curve.overview, notes=[]).text()}\n\n{curve.table.text()}")
    _where("few-shot", str(request.out))


@click.command(
    cls=GroupedCommand,
    needs=("parameter", "values", "seeds", "out"),
    short_help="Try several values of one or more parameters.",
)
@click.argument("train_file", metavar="TRAIN", required=True)
@click.option(
    "--dev", metavar="FILE", help="Labelled file to choose values on; unset: a tenth of TRAIN."
)
@click.option("--test", metavar="FILE", help="Labelled file to report the chosen values on.")
@click.option(
    "--parameter",
    multiple=True,
    metavar="NAME",
    help="Parameter to vary; may be repeated.  [required]",
)
@click.option(
    "--values",
    multiple=True,
    metavar="A,B,C",
    help="Its values, a list for each --parameter; with --optuna also LOW:HIGH[:log].  [required]",
)
@click.option(
    "--optuna",
    "trials",
    type=click.IntRange(1),
    metavar="N",
    help="Search with N trials of one fit each, in place of a grid (extra optuna).",
)
@SPLITS
@_seeds()
@RUNS
@parameters(without=DECIDED)
@click.pass_context
def sweep(
    ctx: click.Context,
    train_file: str,
    parameter: tuple[str, ...],
    values: tuple[str, ...],
    trials: int | None,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Vary one parameter or a grid of several; choose values on dev, report them on test.

    The other parameters apply to every grid point. The baselines are fitted too. With --optuna
    each trial is one fit with seed 0; the other seeds are fitted for the chosen values.
    """
    from superconext.core.progress import TerminalProgress
    from superconext.encoders import encoder_class
    from superconext.experiments import sweep as sweeping
    from superconext.experiments.tables import to_csv_rows, to_grid
    from superconext.objectives.catalogue import objective_class

    names = tuple(name.replace("-", "_") for name in parameter)
    as_usage(check_names, names, "sweep")
    asked = {**options, "parameter": parameter, "values": values}
    require(asked, "parameter", "values", "seeds", "out")
    progress = TerminalProgress(quiet)
    given = given_on_all(options, "sweep", progress)
    single = {OPTION + name for name in options_by_name(given.get("options"))}
    twice = sorted({*names} & {*given, *single})
    if twice:
        raise click.UsageError(f"found a value for {twice[0]}, which is varied: leave it out")
    objective = given.pop("objective", "superloss")
    if trials:
        encoder = given.get("encoder", BY_NAME["encoder"].default)
        owners = as_usage(objective_class, objective), as_usage(encoder_class, encoder)
        kinds = [owner.options_type for owner in owners]
        axes = as_usage(sweeping.parse_axes, names, values, kinds)
        systems = ()
    else:
        systems = as_usage(sweeping.make_grid, objective, names, values)
    datasets = one_dataset(train_file, options, "splits")
    request = make_request(ctx, options, "sweep", datasets=datasets, systems=systems, given=given)
    if trials:
        swept = sweeping.search(request, objective, axes, trials, progress)
    else:
        as_usage(request.plan)
        swept = sweeping.sweep(request, progress)
    if as_json:
        document = {
            "chosen": swept.chosen.values,
            "dev": sweeping.to_dev_rows(swept.points, swept.chosen),
            "test": to_csv_rows(swept.table),
            "notes": [*swept.grid.notes, *swept.table.notes],
        }
        echo_json(document)
    else:
        click.echo(f"on dev\n\n{swept.grid.text()}\n\non test\n\n{to_grid(swept.table).text()}")
    _where("sweep", str(request.out))
