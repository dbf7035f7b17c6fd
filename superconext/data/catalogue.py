"""Catalogue of the public labelled sets that `data fetch` knows: addresses, hashes, licences.

The sets stand in `catalogue.toml`, a table each. Where nobody published a hash, that of the first
download is recorded (`core.download`); row counts are compared with what a parser finds.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from superconext.core.download import PublicFile
from superconext.core.errors import DataError, suggestion


@dataclass(frozen=True)
class PublicSet:
    """One labelled set.

    Attributes:
        name: what `data fetch` calls it.
        task, language: in words.
        classes: how many.
        rows: rows of each published part; `all` where there is one file and no split.
        licence: the terms its authors name, as found at its address.
        files: what to download, by the role the parser knows it by; none where no address is
            certain, and then `by_hand` tells how to get it.
        parser, options: which reader of `parsers` makes rows of them, and with what settings.
        labels: better names for labels, where the files hold bare numbers.
        hub: its name at Hugging Face, where the `datasets` extra fetches it.
        hub_text: columns there that make the text, joined by a space.
        beware: what one should know before reporting figures on it.
    """

    name: str
    task: str
    language: str
    classes: int
    rows: Mapping[str, int]
    licence: str
    files: Mapping[str, PublicFile] = field(default_factory=dict)
    parser: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    hub: str = ""
    hub_text: tuple[str, ...] = ("text",)
    beware: str = ""
    by_hand: str = ""


def _read(name: str, table: dict[str, Any]) -> PublicSet:
    base = table.pop("base", "")
    table["files"] = {
        role: PublicFile(base + file) if isinstance(file, str) else PublicFile(**file)
        for role, file in table.get("files", {}).items()
    }
    table["hub_text"] = tuple(table.get("hub_text", ("text",)))
    return PublicSet(name, **table)


_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))

#: Every set by its name, in the order `data list` shows them.
CATALOGUE = {name: _read(name, table) for name, table in _TABLES.items()}


def find(name: str) -> PublicSet:
    """The set of that name, in any case and with `-` for `_`.

    Raises DataError, with the nearest name, for any other.
    """
    folded = name.casefold().replace("-", "_")
    if folded in CATALOGUE:
        return CATALOGUE[folded]
    raise DataError(
        f"{name!r} names no known set; expected one of {', '.join(CATALOGUE)}; "
        + suggestion(folded, CATALOGUE)
    )
