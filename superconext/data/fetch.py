"""Public labelled sets that `data fetch` knows: the catalogue, their download, and their rows.

The sets are in `catalogue.toml`, a table each: addresses, hashes, licences. Where nobody
published a hash, that of the first download is recorded (`core.download`); row counts are compared
with what a parser finds.
"""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from superconext.core.download import Downloader, PublicFile
from superconext.core.errors import DataError, MissingExtraError, plural, suggestion

if TYPE_CHECKING:  # NumPy and the readers are not needed to list the sets
    from superconext.data.splits import Row


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


_TABLES = tomllib.loads(Path(__file__).with_name("catalogue.toml").read_text(encoding="utf-8"))

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


_ADVICE = "or download it elsewhere and name its folder with --from"

#: Share of the published rows below which a download that no published hash vouches for is taken
#: for a cut-off file or some other page.
ENOUGH = 0.95


@dataclass(frozen=True)
class Fetched:
    """The rows of a set and where they come from.

    Attributes:
        parts: rows (label, text) by part, each to be iterated once.
        sources: for each file its `url`, `sha256` and what it was `checked` against.
        notes: what was dropped, and where counts differ from the published ones; the ones on
            rows are there once `parts` have been iterated.
    """

    parts: dict[str, Iterable[Row]]
    sources: list[dict[str, str]]
    notes: list[str]


def fetch(
    entry: PublicSet,
    cache: Path,
    *,
    source: str | Path | None = None,
    url_base: str | None = None,
    progress: Callable[[float], None] | None = None,
    say: Callable[[str], None] | None = None,
    pause: Callable[[float], None] = time.sleep,
) -> Fetched:
    """Download a set, or take what is there, and parse it.

    Args:
        cache: folder for downloads; those of this set go into `cache / entry.name`.
        source: folder that holds the files already, under their own names, instead.
        url_base: address of a folder with the same files, instead of the catalogue's.
        progress: called with the share of the files that are here, 0 to 1; say: with lines for
            people; pause: waits so many seconds before another attempt.

    Raises DataError: no certain address; no connection; a server that refuses; too many bytes;
    another hash; files that are not laid out as expected, or with far fewer rows than are
    published, which are removed where no hash is published; MissingExtraError: the set lies at
    Hugging Face and its library is not installed.
    """
    if entry.by_hand:
        raise DataError(f"{entry.name}: no certain address is known; {entry.by_hand}")
    notes: list[str] = []
    if entry.hub:
        if source is not None or url_base is not None:
            found = "--from" if source is not None else "--url-base"
            raise DataError(
                f"{entry.name}: found {found}; expected a set that lies in files of its own, and "
                f"this one is fetched by the library datasets, as {entry.hub}: leave it out"
            )
        loaded = hub_parts(entry, cache / entry.name, quiet=progress is None)
        counted: dict[str, Iterable[Row]] = {
            part: _clean(part, rows, entry, notes) for part, rows in loaded.items()
        }
        address = f"https://huggingface.co/datasets/{entry.hub}"
        return Fetched(counted, [{"url": address, "sha256": "", "checked": "by datasets"}], notes)
    downloader = Downloader(cache / "sha256.json", DataError, say, pause)
    paths: dict[str, Path] = {}
    sources = []
    for number, (role, file) in enumerate(entry.files.items()):

        def advance(share: float, before: int = number) -> None:
            if progress is not None:
                progress((before + share) / len(entry.files))

        url = file.url
        if source is not None:
            path = Path(source) / file.name
            if not path.is_file():
                raise DataError(
                    f"{path}: no such file; expected {file.url} saved under that name: save it"
                )
            checked = downloader.check(path, file)
        else:
            path = cache / entry.name / file.name
            url = file.address(url_base, DataError)
            checked = downloader.fetch(
                file,
                path,
                f"{entry.name}/{file.name}",
                url=url,
                advice=_ADVICE,
                progress=advance,
                replace_damaged=True,
            )
        paths[role] = path
        sources.append({"url": url, "sha256": checked.sha256, "checked": checked.check})
    from superconext.data.parsers import PARSERS

    unsure = {file.name: paths[role] for role, file in entry.files.items() if file.md5 is None}
    parts: dict[str, Iterable[Row]] = {}
    try:
        parsed = PARSERS[entry.parser](paths, entry.options)
        for part, published in entry.rows.items():
            rows = parts[part] = list(_clean(part, parsed.get(part, ()), entry, notes))
            if unsure and source is None and len(rows) < ENOUGH * published:
                raise DataError(
                    f"{entry.name}: {part} has {plural(len(rows), 'row')}, expected {published} as "
                    "published: the download was cut off, or is the page of a network's login; "
                    f"fetch it again, {_ADVICE}"
                )
    except DataError:
        if source is None:
            for name, path in unsure.items():
                path.unlink(missing_ok=True)
                downloader.forget(f"{entry.name}/{name}")
        raise
    return Fetched(parts, sources, notes)


def with_split(
    entry: PublicSet, fetched: Fetched, seed: int
) -> tuple[dict[str, Iterable[Row]], dict[str, Any]]:
    """The parts to write, and how they were made.

    A set of one file comes as `all`, the whole of it, and as train, dev and test, a split of 80,
    10 and 10 percent under the seed as `data.splits.split_dataset` makes it.
    """
    if set(fetched.parts) != {"all"}:
        return fetched.parts, {"split": "as published"}
    from superconext.data.dataset import Dataset
    from superconext.data.splits import split_dataset

    rows = list(fetched.parts["all"])
    corpus = Dataset(
        texts=[text for _, text in rows],
        labels=[label for label, _ in rows],
        lines=list(range(1, len(rows) + 1)),
        source=entry.name,
        sha256=fetched.sources[0]["sha256"],
        notes=[],
    )
    parts, record = split_dataset(corpus, seed=seed)
    return {"all": rows, **parts}, {"split": record}


def hub_parts(entry: PublicSet, cache: Path, quiet: bool = True) -> dict[str, Iterable[Row]]:
    """Rows of each part, read as they are iterated; `cache`: folder the library keeps its downloads
    in.

    Raises MissingExtraError without the library, DataError where it cannot bring the set.
    """
    try:
        import datasets
    except ImportError:
        raise MissingExtraError(f"Fetching {entry.name}", "datasets") from None
    if quiet:
        datasets.disable_progress_bars()
    try:
        loaded: Any = datasets.load_dataset(entry.hub, cache_dir=str(cache))
    # Whatever it raises, and that differs from version to version, means one thing here.
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise DataError(
            f"{entry.hub}: Hugging Face's library cannot fetch it ({reason}); expected a "
            "connection to huggingface.co: go online and run the command again"
        ) from error
    missing = [part for part in entry.rows if part not in loaded]
    if missing:
        raise DataError(
            f"{entry.hub}: found the parts {', '.join(loaded)}, expected {missing[0]} too: "
            "the set has been changed by its owners"
        )
    return {part: _rows(loaded[part], entry) for part in entry.rows}


def _rows(split: Any, entry: PublicSet) -> Iterator[Row]:
    kind = split.features["label"]
    names = getattr(kind, "names", None)
    for record in split:
        label = record["label"]
        name = names[label] if names is not None and isinstance(label, int) else str(label)
        yield name, " ".join(str(record[column]) for column in entry.hub_text)


def _clean(part: str, rows: Iterable[Row], entry: PublicSet, notes: list[str]) -> Iterator[Row]:
    """Rows that hold something, labels by their better names; the rest is counted in a note."""
    kept = dropped = 0
    for label, text in rows:
        label, text = label.strip(), text.strip()
        if label and text:
            kept += 1
            yield entry.labels.get(label, label), text
        else:
            dropped += 1
    if dropped:
        notes.append(f"{part}: {plural(dropped, 'row')} without a text or a label left out")
    if kept != entry.rows[part]:
        notes.append(f"{part}: {plural(kept, 'row')}, where {entry.rows[part]} are published")
