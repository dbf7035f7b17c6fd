"""What path stands for word vectors that somebody holds in memory? A folder in the cache."""

from __future__ import annotations

import os
from typing import Any

from superconext.vectors.table import WordVectors


def path_of(source: Any) -> Any:
    """The path of vectors that may be an object, a `WordVectors` or one of torchtext's.

    Such an object is written to the cache, under its content's hash; a path is given back as text,
    and anything else as it is, for whoever checks parameters to refuse.

    Raises VectorsError for an object whose words and vectors do not fit each other, or a cache
    that cannot be written.
    """
    if isinstance(source, os.PathLike):
        return os.fspath(source)
    if source is None or isinstance(source, str):
        return source
    # Not at the top: most vectors are files, and the readers take a while to import.
    from superconext.vectors.cache import cache_dir
    from superconext.vectors.readers import read_vectors
    from superconext.vectors.torchtext_objects import is_torchtext

    if is_torchtext(source):
        source = read_vectors(source)
    if not isinstance(source, WordVectors):
        return source
    folder = cache_dir() / "vectors" / f"given-{source.content_sha256()[:32]}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        source.save(folder)
    return str(folder)
