"""`superconext push` and `pull`: runs on the Hugging Face Hub."""

from __future__ import annotations

import json

import click

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


@click.command()
@click.argument("run")
@click.argument("name", metavar="USER/NAME")
@click.option("--private/--public", default=None, help="Of a repository that is made.")
@click.option("--revision", metavar="BRANCH", help="Branch to push to, made if it is not there.")
@click.option("--message", default="Upload with superconext", help="Of the commit.")
@_JSON
def push(
    run: str, name: str, private: bool | None, revision: str | None, message: str, as_json: bool
) -> None:
    """Upload RUN to the Hugging Face Hub, where it is made if it is not there.

    Its predictions.tsv stays at home, for it holds texts. Needs the extra hub, and a login
    (hf auth login, or HF_TOKEN).
    """
    from superconext.export.hub import push as upload

    address = upload(run, name, private, revision, message)
    if as_json:
        click.echo(json.dumps({"run": run, "name": name, "commit": address}, ensure_ascii=False))
    else:
        click.echo(address)


@click.command()
@click.argument("name", metavar="USER/NAME")
@click.option("--out", required=True, metavar="RUN", help="Folder to write, must be new.")
@click.option("--revision", metavar="REVISION", help="Branch, tag or commit.")
@_JSON
def pull(name: str, out: str, revision: str | None, as_json: bool) -> None:
    """Download a run from the Hugging Face Hub into a new folder, and check its hashes.

    Needs the extra hub; a private run also needs a login.
    """
    from superconext.export.hub import pull as download

    download(name, out, revision)
    if as_json:
        click.echo(json.dumps({"name": name, "out": out}, ensure_ascii=False))
    else:
        click.echo(f"{out}: {name}, checked", err=True)
