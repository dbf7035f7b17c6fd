"""Sets that lie at Hugging Face, through its own library (the `datasets` extra)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from superconext.core.errors import DataError, MissingExtraError
from superconext.data.catalogue import PublicSet
from superconext.data.folder import Row


def hub_parts(entry: PublicSet, cache: Path, quiet: bool = True) -> dict[str, Iterable[Row]]:
    """Rows of each part, read as they are iterated.

    Args:
        cache: folder the library keeps its downloads in.
        quiet: without the library's own progress bars.

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
