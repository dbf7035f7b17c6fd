"""What was a comparison made of? `comparison.json`: enough to refuse another, and to re-run.

What decides the figures (rows, parameters, version) must not change within a folder.
Objectives, seeds, reference and processes may: they only say how much of it is wanted.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from superconext._version import __version__
from superconext.config import Config, resolve
from superconext.errors import DataError, RunError, VectorsError
from superconext.experiments.plan import Fit
from superconext.experiments.pools import Pools
from superconext.files import file_sha256, write_json

FILE = "comparison.json"
FORMAT = 1

#: Decided by the comparison itself, so no parameter of it.
OWN_PARAMETERS = ("objective", "seed", "baselines")

_FILE_PARAMETERS = ("vectors", "unlabelled")
_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "gensim")


@dataclass(frozen=True)
class CompareRequest:
    """What the user asked for.

    given: the parameters the user named, without those in OWN_PARAMETERS.
    splits: "given", "resample", or None to go by the files.
    """

    train: str
    out: str
    objectives: tuple[str, ...]
    seeds: int
    dev: str | None = None
    test: str | None = None
    given: dict[str, Any] = field(default_factory=dict)
    splits: str | None = None
    deduplicate: bool = False
    reference: str = "tfidf_logreg"
    jobs: int = 1
    text_column: str | None = None
    label_column: str | None = None
    command: tuple[str, ...] = ()

    def files(self) -> dict[str, str]:
        """The labelled files by role."""
        named = {"train": self.train, "dev": self.dev, "test": self.test}
        return {role: path for role, path in named.items() if path is not None}


def fit_config(given: Mapping[str, Any], fit: Fit) -> Config:
    """The configuration of one fit. Raises ConfigError as `resolve` does."""
    own = {"objective": fit.objective, "seed": fit.seed, "baselines": False}
    return resolve({**given, **own}, "compare")


def config_hash(identity: Mapping[str, Any], fit: Fit) -> str:
    """16 hexadecimal digits that stand for everything a fit's figures follow from."""
    text = json.dumps([identity, fit.key], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def make_record(
    request: CompareRequest, scheme: str, pools: Pools, fits: Sequence[Fit]
) -> dict[str, Any]:
    """The content of comparison.json."""
    example = next(fit for fit in fits if not fit.is_baseline)
    config = fit_config(request.given, example).to_dict()
    for name in OWN_PARAMETERS:
        del config[name]
    # A file is what it holds, wherever it lies.
    for name in _FILE_PARAMETERS:
        if config[name]:
            config[name] = f"sha256 {_content_sha256(Path(config[name]), name)}"
    return {
        "format": FORMAT,
        "created": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": list(request.command),
        "request": _with_absolute_paths(request),
        "identity": {
            "version": __version__,
            "splits": scheme,
            "rows": pools.sha256,
            "parameters": config,
        },
        "files": pools.files,
        "labels": pools.labels,
        "findings": pools.findings,
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in _PACKAGES},
        },
        "cpus": os.cpu_count(),
    }


def claim(folder: Path, record: Mapping[str, Any]) -> None:
    """Write comparison.json, or raise RunError if the folder holds another comparison."""
    if (folder / FILE).exists():
        found = read_record(folder)["identity"]
        difference = _first_difference(found, record["identity"])
        if difference:
            raise RunError(
                f"{folder}: made with {difference}; expected the same data, parameters and "
                "version, so that its fits can be compared: choose another folder with --out"
            )
    write_json(folder / FILE, record)


def check_folder(folder: Path) -> None:
    """Raise RunError if the folder holds something, but no comparison."""
    if not os.path.lexists(folder) or (folder / FILE).is_file():
        return
    if not folder.is_dir() or any(path.name[0] != "." for path in folder.iterdir()):
        raise RunError(
            f"{folder} is there and holds no comparison; expected a new folder or one made by "
            "superconext compare: choose another with --out"
        )


def read_record(folder: Path) -> dict[str, Any]:
    """The content of comparison.json. Raises RunError if there is none that can be read."""
    path = folder / FILE
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        known = record["format"] == FORMAT and isinstance(record["identity"], dict)
    except OSError as error:
        raise RunError(
            f"{path}: cannot be read ({error.strerror}); expected the folder of a comparison made "
            "by superconext compare"
        ) from None
    except (ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise RunError(
            f"{path}: found no record of format {FORMAT}; expected one written by superconext "
            "compare: choose another folder"
        )
    return record


def saved_request(record: Mapping[str, Any]) -> CompareRequest:
    """The request of a record, paths as absolute as they were made."""
    saved = dict(record["request"])
    for name in ("objectives", "command"):
        saved[name] = tuple(saved[name])
    return CompareRequest(**saved)


def _with_absolute_paths(request: CompareRequest) -> dict[str, Any]:
    given = dict(request.given)
    for name in _FILE_PARAMETERS:
        if given.get(name):
            given[name] = os.path.abspath(given[name])
    files = {role: os.path.abspath(path) for role, path in request.files().items()}
    return {**asdict(request), **files, "given": given, "out": os.path.abspath(request.out)}


def _first_difference(there: Mapping[str, Any], here: Mapping[str, Any]) -> str | None:
    """The first thing two identities disagree on, in words."""
    if there.get("version") != here["version"]:
        return f"version {there.get('version')}, this is {here['version']}"
    if there.get("splits") != here["splits"]:
        return f"splits {there.get('splits')!r}, now {here['splits']!r}"
    if there.get("rows") != here["rows"]:
        changed = [name for name, rows in here["rows"].items() if there["rows"].get(name) != rows]
        return f"other rows ({', '.join(changed) or 'fewer files'})"
    before, now = there.get("parameters", {}), here["parameters"]
    for name in dict.fromkeys([*before, *now]):
        if before.get(name) != now.get(name):
            return f"{name} = {before.get(name)!r}, now {now.get(name)!r}"
    return None


def _content_sha256(path: Path, content: str) -> str:
    """Hash of a file, or of every file below a folder with its name."""
    error = VectorsError if content == "vectors" else DataError
    if not path.is_dir():
        # `archive.zip:member` names a file in an archive.
        file = path if path.exists() else Path(str(path).rpartition(":")[0] or path)
        if not file.is_file():
            raise error(f"{path}: no such file; expected a file for {content}: check the path")
        return file_sha256(file)
    digest = hashlib.sha256()
    for file in sorted(item for item in path.rglob("*") if item.is_file()):
        digest.update(f"{file.relative_to(path).as_posix()} {file_sha256(file)}\n".encode())
    return digest.hexdigest()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
