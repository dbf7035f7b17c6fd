"""`superconext cache`: what is kept to save time, and its clearing."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import click

from superconext.cli.options import JSON, echo_json, switch
from superconext.core.cache import IN_CLEAR
from superconext.core.errors import RunError

if TYPE_CHECKING:
    from superconext.core.cache import Entry

_HOURS = {"h": 1, "d": 24, "w": 7 * 24}


def _seconds(ctx: click.Context, option: click.Parameter, value: str | None) -> float | None:
    found = re.fullmatch(r"(\d{1,6})([hdw])", value or "")
    if value is not None and not found:
        raise click.BadParameter(
            f"{value!r}: expected hours, days or weeks, as 12h, 30d or 4w", ctx, option
        )
    return float(found[1]) * _HOURS[found[2]] * 3600 if found else None


@click.group(invoke_without_command=True, epilog=IN_CLEAR)
@JSON
@click.pass_context
def cache(ctx: click.Context, as_json: bool) -> None:
    """List what the cache keeps: vectors, encoders, tokens, downloads.

    The cache is in $SUPERCONEXT_CACHE, or in the platform's cache folder. Apart from downloads it
    takes at most 5 GB, or $SUPERCONEXT_CACHE_LIMIT gigabytes (none: no limit). The least recently
    used entries are removed first, never those in use.
    """
    if ctx.invoked_subcommand is not None:
        return
    from superconext.core.cache import entries, size_limit
    from superconext.core.files import cache_dir
    from superconext.report.table import render

    found, limit = entries(), size_limit()
    if as_json:
        rows = [_facts(entry) for entry in found]
        echo_json({"folder": str(cache_dir()), "limit": limit, "note": IN_CLEAR, "entries": rows})
        return
    shown = [
        {
            "name": entry.name[:24],
            "size": size_in_words(entry.size),
            "last used": "now" if entry.in_use else _ago(entry.used),
            "what": entry.what,
        }
        for entry in found
    ]
    if shown:
        click.echo(render(shown, ("name", "size", "last used", "what")))
    made = sum(entry.size for entry in found if not entry.download)
    bound = "no limit" if limit is None else f"of {size_in_words(limit)}"
    loaded = sum(entry.size for entry in found if entry.download)
    click.echo(
        f"{cache_dir()}: made here {size_in_words(made)} ({bound}), downloaded "
        f"{size_in_words(loaded)}"
    )
    click.echo(IN_CLEAR)


@cache.command(epilog=IN_CLEAR)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--older-than", metavar="30d", callback=_seconds, help="Remove entries not used for this long."
)
@switch("--all", "Remove everything that is not in use, downloads too.", "everything")
@JSON
def clear(
    names: tuple[str, ...], older_than: float | None, everything: bool, as_json: bool
) -> None:
    """Remove the entries NAME (the beginning of a name is enough), old ones, or all.

    Entries in use are kept and listed.
    """
    from superconext.core.cache import clear_dead, entries, remove

    if (bool(names), older_than is not None, everything).count(True) != 1:
        raise click.UsageError("expected what to remove: NAME, --older-than 30d or --all")
    clear_dead()
    found, chosen = entries(), []
    for name in names:
        alike = [entry for entry in found if entry.name.startswith(name)]
        alike = [entry for entry in alike if entry.name == name] or alike
        if len(alike) != 1:
            raise RunError(
                f"{name}: found {len(alike)} entries of that name; expected one, as `superconext "
                "cache` shows them: give more of the name"
            )
        chosen += alike
    if not names:
        oldest = time.time() - (older_than or 0)
        chosen = [entry for entry in found if everything or entry.used < oldest]
    removed = [entry for entry in chosen if not entry.in_use]
    for entry in removed:
        remove(entry)
    busy = [entry.name for entry in chosen if entry.in_use]
    if busy:
        click.echo(f"note: in use by another process and left: {', '.join(busy)}", err=True)
    size = sum(entry.size for entry in removed)
    if as_json:
        echo_json({"removed": [_facts(entry) for entry in removed], "in_use": busy})
    else:
        click.echo(f"{len(removed)} removed, {size_in_words(size)}")


def _facts(entry: Entry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "what": entry.what,
        "bytes": entry.size,
        "used": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(entry.used)),
        "in_use": entry.in_use,
    }


def size_in_words(size: float) -> str:
    """Bytes as a person reads them."""
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def _ago(used: float) -> str:
    hours = max(time.time() - used, 0) / 3600
    if hours < 1:
        return f"{hours * 60:.0f} min ago"
    return f"{hours:.0f} h ago" if hours < 48 else f"{hours / 24:.0f} days ago"
