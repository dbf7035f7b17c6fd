"""`superconext compare`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from superconext.cli.parameters import given_parameters, with_parameters
from superconext.errors import ConfigError, RunError
from superconext.objectives.catalogue import CATALOGUE, check_objective

#: Parameters of `train` that the comparison decides itself.
_DECIDED = ("objective", "seed", "baselines")


def _objectives(
    ctx: click.Context, option: click.Parameter, value: str | None
) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = tuple(name.strip() for name in value.split(",") if name.strip())
    try:
        for name in names:
            check_objective(name)
    except ConfigError as error:
        raise click.BadParameter(str(error), ctx, option) from None
    if not names or len(set(names)) < len(names):
        raise click.BadParameter("expected one or more names, each once", ctx, option)
    return names


@click.command()
@click.argument("train_file", metavar="[TRAIN]", required=False)
@click.option("--dev", metavar="FILE", help="Rows to choose settings on; unset: a tenth of TRAIN.")
@click.option("--test", metavar="FILE", help="Rows to report on; unset: splits are drawn.")
@click.option(
    "--objectives",
    metavar="A,B,C",
    callback=_objectives,
    help=f"What to compare, of: {', '.join(CATALOGUE)}.",
)
@click.option(
    "--seeds", type=click.IntRange(1, 10_000), help="Fits of each objective, seeds 0, 1, ...",
)  # fmt: skip
@click.option("--out", metavar="DIR", help="Folder to write, new or to go on with.")
@click.option(
    "--jobs", type=click.IntRange(1), default=1, show_default=True, help="Fits side by side."
)
@click.option(
    "--reference",
    metavar="NAME",
    default="tfidf_logreg",
    show_default=True,
    help="System the others are tested against.",
)
@click.option(
    "--splits",
    type=click.Choice(["given", "resample"]),
    help="Files as they are, or each seed an 80/10/10 split of all rows.  "
    "[default: given with --test, else resample]",
)
@click.option("--deduplicate", is_flag=True, help="Remove copies within and across splits.")
@click.option(
    "--verify",
    type=(str, click.IntRange(1)),
    metavar="DIR N",
    help="Re-run N fits of DIR, drawn at random: do they match?",
)
@click.option("--config", metavar="TOML", help="Parameters from a file; options win over it.")
@click.option("--text-column", metavar="NAME", help="Text column, by name or number from 1.")
@click.option("--label-column", metavar="NAME", help="Label column, by name or number from 1.")
@click.option("--json", "as_json", is_flag=True, help="Print the table as one JSON document.")
@click.option("--quiet", is_flag=True, help="No progress on stderr.")
@with_parameters
@click.pass_context
def compare(
    ctx: click.Context,
    train_file: str | None,
    verify: tuple[str, int] | None,
    jobs: int,
    as_json: bool,
    quiet: bool,
    **options: Any,
) -> None:
    """Compare objectives and baselines on TRAIN over several seeds and write DIR.

    The baselines (majority class, TF-IDF + logistic regression, TF-IDF + linear SVM) are
    always fitted beside. A fit that DIR already holds is not run again.
    """
    from superconext.training.progress import TerminalProgress

    progress = TerminalProgress(quiet)
    if verify:
        allowed = {"verify", "jobs", "as_json", "quiet"}
        source = click.core.ParameterSource.DEFAULT
        named = [name for name in ctx.params if ctx.get_parameter_source(name) != source]
        if set(named) - allowed:
            raise click.UsageError(
                "--verify takes its files and parameters from DIR; leave out everything but "
                "--jobs, --json and --quiet"
            )
        _verify(*verify, jobs, as_json, progress)
        return
    for name, what in (("objectives", "names"), ("seeds", "number"), ("out", "folder")):
        if not options[name]:
            raise click.UsageError(f"Missing option '--{name}': the {what} to compare with.")
    if not train_file:
        raise click.UsageError("Missing argument 'TRAIN': the labelled file to train on.")
    _compare(ctx, train_file, jobs, as_json, progress, options)


# The table of parameters has them for `train`; here they would say two things.
compare.params = [option for option in compare.params if option.name not in _DECIDED]


def _compare(
    ctx: click.Context,
    train_file: str,
    jobs: int,
    as_json: bool,
    progress: Any,
    options: dict[str, Any],
) -> None:
    from superconext.config_file import read_config
    from superconext.experiments import compare as comparing
    from superconext.experiments.plan import check_reference, choose_scheme
    from superconext.experiments.record import CompareRequest
    from superconext.experiments.table_files import to_csv_rows, to_text

    own = ("dev", "test", "objectives", "seeds", "out", "reference", "splits", "deduplicate")
    given = given_parameters(options)
    if options["config"]:
        from_file = read_config(Path(options["config"]))
        for name in _DECIDED:
            if from_file.pop(name, None) is not None:
                progress.say(f"note: {options['config']}: {name} is left out; compare decides it")
        given = {**from_file, **given}
    try:
        choose_scheme(bool(options["dev"]), bool(options["test"]), options["splits"])
        check_reference(options["reference"], options["objectives"])
    except ConfigError as error:
        raise click.UsageError(str(error)) from None
    request = CompareRequest(
        train=train_file,
        jobs=jobs,
        given=given,
        text_column=options["text_column"],
        label_column=options["label_column"],
        command=("superconext", *(ctx.obj or ())),
        **{name: options[name] for name in own},
    )
    compared = comparing.compare(request, progress)
    if as_json:
        rows = to_csv_rows(compared.table)
        document = {"reference": request.reference, "rows": rows, "notes": compared.table.notes}
        click.echo(json.dumps(document, ensure_ascii=False))
    else:
        click.echo(to_text(compared.table))
    click.echo(f"comparison folder: {request.out}", err=True)


def _verify(folder: str, number: int, jobs: int, as_json: bool, progress: Any) -> None:
    from superconext.experiments.verify import verify

    checks = verify(Path(folder), number, progress, jobs=jobs)
    if as_json:
        told = [
            {
                "objective": check.fit.objective,
                "seed": check.fit.seed,
                "split": check.fit.split,
                "match": check.same,
                "predictions": check.rows,
                "differing": check.differing,
            }
            for check in checks
        ]
        click.echo(json.dumps({"checks": told}))
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
