"""What the commands that learn from plain text have in common."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from superconext.config.parameters import BY_NAME
from superconext.core.errors import ConfigError

POSITIVE = click.IntRange(1)
PROFILES = click.Choice(BY_NAME["normalize"].choices or ())

OUT = click.option("--out", required=True, metavar="FOLDER", help="Folder to write, must be new.")
FORCE = click.option("--force", is_flag=True, help="Replace FOLDER if it holds word vectors.")
COLUMN = click.option("--text-column", metavar="NAME", help="Text column, by name or number.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
QUIET = click.option("--quiet", is_flag=True, help="No progress on stderr.")
BRIDGE = click.option(
    "--bridge", type=click.Choice(BY_NAME["bridge"].choices or ()), help=BY_NAME["bridge"].help
)
LEAVE_OUT = click.option(
    "--leave-out",
    multiple=True,
    metavar="FILE",
    help="Labelled file whose texts are left out, such as test rows; may be given several times.",
)


def free_folder(out: str, force: bool) -> Path:
    """The folder to write. Raises VectorsError, before any work, if it may not be written."""
    from superconext.core.errors import VectorsError

    folder = Path(out)
    if folder.name in ("", ".."):
        raise VectorsError(f"{out} names no new folder; expected one to write: choose a name")
    if os.path.lexists(folder):
        if not force:
            raise VectorsError(
                f"{out} exists already; expected a new folder: choose another or add --force"
            )
        if not (folder / "info.json").is_file() and (not folder.is_dir() or any(folder.iterdir())):
            raise VectorsError(
                f"{out} is no folder of word vectors; --force expects one to replace: choose "
                "another name, or remove it yourself"
            )
    return folder


def _profile(ctx: click.Context, option: click.Parameter, value: str | None) -> str | None:
    try:
        if value is not None:
            BY_NAME["normalize"].check(value)
    except ConfigError as error:
        raise click.BadParameter(str(error), ctx, option) from None
    return value


def normalize(default: str | None, help: str) -> Callable[..., Any]:
    """The option `--normalize` with rules after the profile."""
    return click.option(
        "--normalize",
        metavar=f"[{'|'.join(PROFILES.choices)}][+RULE][-RULE]",
        default=default,
        show_default=default is not None,
        callback=_profile,
        help=help,
    )
