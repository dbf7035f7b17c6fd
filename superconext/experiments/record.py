"""What was an experiment made of? `comparison.json`: enough to refuse another, and to re-run.

What decides the figures of a data set (rows, parameters, version) must not change within a
folder. Systems, data sets, seeds, shots, reference and processes may: they only say how
much is wanted. What decides those of a system stands in its lines.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from superconext._version import __version__
from superconext.config.parameters import BY_NAME, FILE_PARAMETERS, resolve
from superconext.core.errors import DataError, RunError, VectorsError
from superconext.core.files import file_sha256, write_json
from superconext.experiments.datasets import DataSet
from superconext.experiments.plan import Fit
from superconext.experiments.pools import Pools
from superconext.experiments.request import Request
from superconext.experiments.systems import System
from superconext.experiments.toml_tables import OWN_PARAMETERS

FILE = "comparison.json"
FORMAT = 2

_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "gensim")
_ROLES = ("train", "dev", "test")


class Fingerprints:
    """What a parameter that names a file stands for: the content, wherever it lies."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], str] = {}

    def of(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters with files as their hashes. Raises for files that are not there."""
        known = dict(parameters)
        for name in FILE_PARAMETERS:
            if known.get(name):
                key = name, str(known[name])
                if key not in self._seen:
                    self._seen[key] = _content_sha256(Path(known[name]), name)
                known[name] = f"sha256 {self._seen[key]}"
        return known


def config_hash(identity: Mapping[str, Any], fit: Fit, parameters: Mapping[str, Any]) -> str:
    """16 hexadecimal digits that stand for everything a fit's figures follow from."""
    what: list[Any] = [identity, fit.key]
    if parameters:
        what += [fit.system.objective, parameters]
    text = json.dumps(what, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def make_identity(
    request: Request, dataset: DataSet, pools: Pools, prints: Fingerprints
) -> dict[str, Any]:
    """What decides the figures of a plain system on a data set."""
    config = resolve(request.given_on(dataset), request.verb).to_dict()
    for name in OWN_PARAMETERS:
        del config[name]
    return {
        "version": __version__,
        "splits": request.scheme(dataset),
        "rows": pools.sha256,
        "parameters": prints.of(config),
    }


def make_record(
    request: Request, pools: Mapping[str, Pools], prints: Fingerprints
) -> dict[str, Any]:
    """The content of comparison.json. pools: by the data sets' names."""
    return {
        "format": FORMAT,
        "verb": request.verb,
        "created": datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": list(request.command),
        "seeds": request.seeds,
        "shots": list(request.shots),
        "protocol": request.protocol,
        "reference": request.reference,
        "given": _absolute(request.given),
        "systems": {system.name: _kept(system) for system in request.systems},
        "datasets": {
            data.name: {
                "source": _source(data),
                "identity": make_identity(request, data, pools[data.name], prints),
                "files": pools[data.name].files,
                "labels": pools[data.name].labels,
                "findings": pools[data.name].findings,
            }
            for data in request.datasets
        },
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in _PACKAGES},
        },
        "cpus": os.cpu_count(),
    }


def claim(folder: Path, record: Mapping[str, Any]) -> None:
    """Write comparison.json, or raise RunError if the folder holds another experiment.

    Systems and data sets that an earlier command had and this one has not stay in it, for
    their lines stay too.
    """
    kept = dict(record)
    if (folder / FILE).exists():
        found = read_record(folder)
        difference = _first_difference(found, record)
        if difference:
            raise RunError(
                f"{folder}: made with {difference}; expected the same data, parameters and "
                "version, so that its fits can be compared: choose another folder with --out"
            )
        for name in ("systems", "datasets"):
            kept[name] = {**found[name], **record[name]}
    write_json(folder / FILE, kept)


def check_systems(
    folder: Path,
    lines: Iterable[Mapping[str, Any]],
    systems: Iterable[System],
    prints: Fingerprints,
) -> None:
    """Raise RunError if lines of a system's name were made with other parameters."""
    wanted = {
        system.name: (system.objective, prints.of(dict(system.parameters))) for system in systems
    }
    for line in lines:
        name = line.get("system", line["objective"])
        found = line["objective"], line.get("parameters", {})
        if name in wanted and found != wanted[name]:
            raise RunError(
                f"{folder}: the lines of system {name!r} were made with {_words(*found)}, now "
                f"{_words(*wanted[name])}; expected the same: give the system another name, or "
                "choose another folder with --out"
            )


def check_folder(folder: Path) -> None:
    """Raise RunError if the folder holds something, but no experiment."""
    if not os.path.lexists(folder) or (folder / FILE).is_file():
        return
    if not folder.is_dir() or any(path.name[0] != "." for path in folder.iterdir()):
        raise RunError(
            f"{folder} is there and holds no comparison; expected a new folder or one made by the "
            "same command: choose another with --out"
        )


def read_record(folder: Path) -> dict[str, Any]:
    """The content of comparison.json, of whatever format, as this version writes it.

    Raises RunError if there is none that can be read.
    """
    path = folder / FILE
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if record["format"] == 1:
            record = _from_format_1(record)
        known = record["format"] == FORMAT and isinstance(record["datasets"], dict)
    except OSError as error:
        raise RunError(
            f"{path}: cannot be read ({error.strerror}); expected the folder of a comparison made "
            "by superconext compare, fewshot or sweep"
        ) from None
    except (ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise RunError(
            f"{path}: found no record of a format up to {FORMAT}; expected one written by "
            "superconext compare, fewshot or sweep: choose another folder"
        )
    return record


def _from_format_1(old: Mapping[str, Any]) -> dict[str, Any]:
    """Format 1 had one data set without a name, and objectives without parameters."""
    request = old["request"]
    same = ("splits", "deduplicate", "text_column", "label_column")
    source = {name: request.get(name) for name in (*_ROLES, *same)}
    data = {name: old[name] for name in ("identity", "files", "labels", "findings")}
    kept = ("created", "command", "versions", "cpus")
    return {
        **{name: old[name] for name in kept},
        "format": FORMAT,
        "verb": "compare",
        "shots": [],
        **{name: request[name] for name in ("seeds", "reference", "given")},
        "systems": {name: {"objective": name, "parameters": {}} for name in request["objectives"]},
        "datasets": {"": {"source": {**source, "parameters": {}}, **data}},
    }


def _kept(system: System) -> dict[str, Any]:
    own = {"objective": system.objective, "parameters": _absolute(dict(system.parameters))}
    return {**own, "source": system.source} if system.source else own


def _source(dataset: DataSet) -> dict[str, Any]:
    files = {role: os.path.abspath(path) for role, path in dataset.files().items()}
    return {
        **{role: files.get(role) for role in _ROLES},
        "splits": dataset.splits,
        "deduplicate": dataset.deduplicate,
        "deduplicate_near": dataset.deduplicate_near,
        "at_most": dataset.at_most,
        "text_column": dataset.text_column,
        "label_column": dataset.label_column,
        "parameters": _absolute(dict(dataset.parameters)),
    }


def _absolute(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: os.path.abspath(value) if name in FILE_PARAMETERS and value else value
        for name, value in parameters.items()
    }


def _first_difference(there: Mapping[str, Any], here: Mapping[str, Any]) -> str | None:
    """The first thing two records disagree on, in words."""
    if there["verb"] != here["verb"]:
        return f"superconext {there['verb']}, this is superconext {here['verb']}"
    for name in here["datasets"]:
        if name in there["datasets"]:
            pair = (records["datasets"][name]["identity"] for records in (there, here))
            difference = first_of_identities(*pair)
            if difference:
                return f"{difference} (data set {name})" if name else difference
    if not set(there["datasets"]) & set(here["datasets"]):
        return f"other data sets ({', '.join(name or 'one file' for name in there['datasets'])})"
    return None


def first_of_identities(there: Mapping[str, Any], here: Mapping[str, Any]) -> str | None:
    """The first thing two identities of a data set disagree on, in words."""
    if there.get("version") != here["version"]:
        return f"version {there.get('version')}, this is {here['version']}"
    if there.get("splits") != here["splits"]:
        return f"splits {there.get('splits')!r}, now {here['splits']!r}"
    if there.get("rows") != here["rows"]:
        changed = [name for name, rows in here["rows"].items() if there["rows"].get(name) != rows]
        return f"other rows ({', '.join(changed) or 'fewer files'})"
    now = here["parameters"]
    # A parameter that is younger than the folder had its default before there was a choice.
    before = {**{name: BY_NAME[name].default for name in now}, **there.get("parameters", {})}
    for name in dict.fromkeys([*before, *now]):
        if before.get(name) != now.get(name):
            return f"{name} = {before.get(name)!r}, now {now.get(name)!r}"
    return None


def _words(objective: str, parameters: Mapping[str, Any]) -> str:
    return ", ".join([objective, *(f"{name} = {value!r}" for name, value in parameters.items())])


def _content_sha256(path: Path, content: str) -> str:
    """Hash of a file, or of every file below a folder with its name."""
    error = VectorsError if content == "vectors" else DataError
    if not path.is_dir():
        # `archive.zip:member` names a file in an archive.
        file = path if path.exists() else Path(str(path).rpartition(":")[0] or path)
        if not file.is_file():
            raise error(f"{path}: no such file; expected what {content} names: check the path")
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
