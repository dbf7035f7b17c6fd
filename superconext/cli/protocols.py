"""`superconext compare --protocol NAME`: a paper's comparison, its figures beside ours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from superconext.cli.experiments import as_usage

if TYPE_CHECKING:
    from superconext.experiments.plan import Request

#: What `--protocol` takes to explain every protocol.
LIST = "list"


def show_protocols(names: tuple[str, ...] = ()) -> None:
    """Print what each protocol is."""
    from superconext.experiments.protocol import explained, load_protocol, protocol_names

    texts = [explained(load_protocol(name)) for name in names or protocol_names()]
    click.echo("\n\n".join(texts))


def run_protocol(
    name: str, studies: tuple[str, ...], wanted: Request, seeds: int | None, progress: Any
) -> dict[str, Any]:
    """Run the studies of a protocol one after another, each into a folder of its own.

    Args:
        wanted: see `experiments.protocol.expand`.

    Returns the figures of each study by its name.
    """
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


def tell(reports: dict[str, Any], as_json: bool) -> None:
    """Print what came out."""
    if as_json:
        document = {
            name: {"rows": report.rows, "notes": report.notes} for name, report in reports.items()
        }
        click.echo(json.dumps({"studies": document}, ensure_ascii=False))
        return
    click.echo("\n\n".join(report.text() for report in reports.values()))
