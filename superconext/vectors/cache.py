"""Have these vectors been trained before? A cache keyed by the tokens and every setting."""

from __future__ import annotations

import hashlib
import inspect
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from superconext.core.errors import VectorsError
from superconext.vectors.table import FOLDER_VERSION, WordVectors
from superconext.vectors.training import TokenLines, train_vectors


def cache_dir() -> Path:
    """Where things that can be made again are kept.

    `$SUPERCONEXT_CACHE` if it is set, else `superconext` in the platform's cache folder.
    """
    named = os.environ.get("SUPERCONEXT_CACHE")
    if named:
        return Path(named).expanduser()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        base = Path(local) if local else Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME", ""))
        if not base.is_absolute():  # the XDG specification: a relative path is ignored
            base = Path.home() / ".cache"
    return base / "superconext"


_default_cache_dir = cache_dir


def cached_vectors(
    source: Iterable[Sequence[str]] | Sequence[str | Path] | str | Path,
    *,
    cache_dir: str | Path | None = None,
    tokenize: Callable[[str], Sequence[str]] | None = None,
    identity: str | None = None,
    progress: Callable[[float], None] | None = None,
    **settings: Any,
) -> WordVectors:
    """`train_vectors`, or what it gave for the same tokens and settings before.

    Training that was stopped goes on from its last state, which the cache keeps until it ends; a
    KeyboardInterrupt that leaves one says so.

    Args:
        source: token lists, or one or more text files with one sentence a line.
        cache_dir: the cache; `cache_dir()` by default. Entries stand in `vectors` inside it.
        tokenize: line to tokens, for files.
        identity: a hash that stands for the tokens, where the caller knows one without
            making them; by default they are read and hashed.
        progress: called with the fraction done; at once with 1.0 when nothing is to do.
        **settings: those of `train_vectors`.

    Returns:
        The table, memory-mapped when it comes from the cache. A damaged entry is trained and
        written again; a cache that cannot be written costs nothing but the note that says so.

    Raises:
        ConfigError, VectorsError: as `train_vectors`.
        TypeError: a setting that `train_vectors` does not have.
    """
    token_lists = _token_lists(source, tokenize)
    key = _key(token_lists, identity, settings)
    home = Path(cache_dir) if cache_dir is not None else _default_cache_dir()
    folder = home / "vectors" / key
    damage = ""
    if folder.exists():
        try:
            vectors = WordVectors.load(folder, verify=True)
        except VectorsError:
            damage = "the cache entry was damaged and has been made again"
        else:
            if progress is not None:
                progress(1.0)
            return vectors
    state = folder.with_name(f"{key}.state")
    try:
        vectors = train_vectors(token_lists, progress=progress, state=state, **settings)
    except KeyboardInterrupt as stop:
        if state.exists():
            stop.args = (f"what is done is kept in {state}: go on with the same command",)
        raise
    with suppress(OSError):
        state.unlink(missing_ok=True)
    try:
        _clear_damaged(folder, damage)
        vectors.save(folder)
    except (OSError, VectorsError) as error:
        vectors.notes.append(f"not kept in the cache {folder}: {error}")
    if damage:
        vectors.notes.append(damage)
    return vectors


def _token_lists(
    source: Any, tokenize: Callable[[str], Sequence[str]] | None
) -> Iterable[Sequence[str]]:
    if isinstance(source, str | os.PathLike):
        source = [source]
    if iter(source) is source:  # a generator: it is read twice at least
        source = list(source)
    if isinstance(source, Sequence) and source and isinstance(source[0], str | os.PathLike):
        return TokenLines([Path(path) for path in source], tokenize)
    return source  # type: ignore[no-any-return]


def _key(
    token_lists: Iterable[Sequence[str]], identity: str | None, settings: dict[str, Any]
) -> str:
    """Hash of the tokens, every setting (defaults too), and the versions of all that trains."""
    bound = inspect.signature(train_vectors).bind(token_lists, **settings)
    bound.apply_defaults()
    named = {
        name: value
        for name, value in bound.arguments.items()
        if name not in ("token_lists", "progress", "state")
    }
    try:
        gensim = metadata.version("gensim")
    except metadata.PackageNotFoundError:
        gensim = "none"
    # What training makes of the same text beyond its settings; raise it with any change there.
    versions = {"format": FOLDER_VERSION, "gensim": gensim, "training": 2}
    digest = hashlib.sha256(json.dumps([named, versions], sort_keys=True, default=str).encode())
    if identity is not None:
        digest.update(identity.encode())
        return digest.hexdigest()[:32]
    for tokens in token_lists:
        # JSON keeps ["a b"] and ["a", "b"] apart; a separator of our own would not.
        listed = tokens if isinstance(tokens, str) else list(tokens)
        digest.update(json.dumps(listed, default=str).encode() + b"\n")
    return digest.hexdigest()[:32]


def _clear_damaged(folder: Path, damage: str) -> None:
    """Take away a damaged entry that `save` would not recognise as its own."""
    if not damage:
        return
    if folder.is_dir() and not folder.is_symlink():
        shutil.rmtree(folder)
    else:
        folder.unlink()
