"""How does a public set come here whole, checked, and as train, dev and test files?

`pooch` downloads, checks published hashes and keeps what is there already. Where nobody published
a hash, the one of the first download is kept in a record and later downloads are compared with it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from superconext.core.errors import DataError
from superconext.core.files import write_json
from superconext.data.catalogue import PublicFile, PublicSet
from superconext.data.dataset import Dataset
from superconext.data.folder import Row
from superconext.data.parsers import PARSERS
from superconext.data.split_file import split_corpus
from superconext.data.transfer import transfer

Say = Callable[[str], None]


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
    say: Say | None = None,
) -> Fetched:
    """Download a set, or take what is there, and parse it.

    Args:
        cache: folder for downloads; those of this set go into `cache / entry.name`.
        source: folder that holds the files already, under their own names, instead.
        url_base: address of a folder with the same files, instead of the catalogue's.
        progress: called with the share of the files that are here, 0 to 1.
        say: called with lines for people.

    Raises:
        DataError: no certain address; no connection; a server that refuses; too many bytes;
            another hash; files that are not laid out as expected.
        MissingExtraError: the set lies at Hugging Face and its library is not installed.
    """
    if entry.by_hand:
        raise DataError(f"{entry.name}: no certain address is known; {entry.by_hand}")
    notes: list[str] = []
    if entry.hub:
        from superconext.data.hub import hub_parts

        loaded = hub_parts(entry, cache / entry.name, quiet=progress is None)
        counted: dict[str, Iterable[Row]] = {
            part: _clean(part, rows, entry, notes) for part, rows in loaded.items()
        }
        address = f"https://huggingface.co/datasets/{entry.hub}"
        return Fetched(counted, [{"url": address, "sha256": "", "checked": "by datasets"}], notes)
    paths: dict[str, Path] = {}
    sources = []
    for place, (role, file) in enumerate(entry.files.items()):
        if source is not None:
            path = Path(source) / file.name
            if not path.is_file():
                raise DataError(
                    f"{path}: no such file; expected {file.url} saved under that name: save it"
                )
            checked = _published(path, file) or "nothing: no hash is published"
        else:
            path, checked = _downloaded(entry, file, cache, url_base, place, progress, say)
        paths[role] = path
        sources.append({"url": file.url, "sha256": _digest(path, "sha256"), "checked": checked})
    parsed = PARSERS[entry.parser](paths, entry.options)
    parts: dict[str, Iterable[Row]] = {
        part: list(_clean(part, parsed.get(part, ()), entry, notes)) for part in entry.rows
    }
    return Fetched(parts, sources, notes)


def with_split(
    entry: PublicSet, fetched: Fetched, seed: int
) -> tuple[dict[str, Iterable[Row]], dict[str, Any]]:
    """The parts to write, and how they were made.

    A set of one file comes as `all`, the whole of it, and as train, dev and test, a split of 80,
    10 and 10 percent under the seed as `split_file.split_corpus` makes it.
    """
    if set(fetched.parts) != {"all"}:
        return fetched.parts, {"split": "as published"}
    rows = list(fetched.parts["all"])
    corpus = Dataset(
        texts=[text for _, text in rows],
        labels=[label for label, _ in rows],
        lines=list(range(1, len(rows) + 1)),
        source=entry.name,
        sha256=fetched.sources[0]["sha256"],
        notes=[],
    )
    drawn, made = split_corpus(corpus, seed=seed)
    return {"all": rows, **drawn}, {"split": made}


def _downloaded(
    entry: PublicSet,
    file: PublicFile,
    cache: Path,
    url_base: str | None,
    place: int,
    progress: Callable[[float], None] | None,
    say: Say | None,
) -> tuple[Path, str]:
    """Where a file is once it is here, and what it was checked against."""
    url = file.url
    if url_base is not None:
        url = f"{url_base.rstrip('/')}/{urlsplit(file.url).path.rsplit('/', 1)[-1]}"
    if urlsplit(url).scheme not in ("http", "https"):
        raise DataError(f"{url}: expected an address of http or https; give such a one")
    path = cache / entry.name / file.name
    count = len(entry.files)

    def advance(share: float) -> None:
        if progress is not None:
            progress((place + share) / count)

    if not path.is_file() and say is not None:
        say(f"downloading {url}")
    transfer(url, path, file, advance)
    return path, _published(path, file) or _recorded(path, f"{entry.name}/{file.name}", cache, say)


def _published(path: Path, file: PublicFile) -> str:
    if file.md5 is None:
        return ""
    found = _digest(path, "md5")
    if found != file.md5:
        raise DataError(
            f"{path}: found MD5 {found}, expected {file.md5} as published: the file is damaged or "
            "another one; remove it and fetch it again"
        )
    return "MD5 as published"


def _recorded(path: Path, name: str, cache: Path, say: Say | None) -> str:
    """Compare with the hash of the first download, or record it if this is the first."""
    ledger = cache / "sha256.json"
    known = _read_ledger(ledger)
    found = _digest(path, "sha256")
    if name not in known:
        write_json(ledger, {**known, name: found})
        if say is not None:
            say(f"{path.name}: no hash is published; found SHA-256 {found}, recorded in {ledger}")
        return "nothing: no hash is published; recorded for the next time"
    if known[name] != found:
        path.unlink()
        raise DataError(
            f"{path}: found SHA-256 {found}, expected {known[name]} as at the first download: the "
            f"file is damaged or another one and has been removed; fetch it again, or take "
            f"{name} out of {ledger} to accept the new one"
        )
    return "SHA-256 as at the first download"


def _read_ledger(path: Path) -> dict[str, str]:
    try:
        known: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        known = None
    if not isinstance(known, dict) or not all(isinstance(v, str) for v in known.values()):
        raise DataError(
            f"{path}: not the record of downloads it should be; expected a JSON object of file "
            "names and hashes; remove it, and the next downloads are recorded anew"
        )
    return known


def _digest(path: Path, algorithm: str) -> str:
    # MD5 is what some authors published; it tells damage, and https tells who sent the file.
    digest = hashlib.new(algorithm, usedforsecurity=False)
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


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
        notes.append(f"{part}: {dropped} rows without a text or a label left out")
    if kept != entry.rows[part]:
        notes.append(f"{part}: {kept} rows, where {entry.rows[part]} are published")
