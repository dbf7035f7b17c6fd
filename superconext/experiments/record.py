"""The folder of an experiment: `results.jsonl`, a line a fit, and `comparison.json`, its identity.

What the metrics of a data set follow from (rows, parameters, version) must not change within a
folder. Systems, data sets, seeds, shots, reference and processes may: they only set how much is
fitted. What the metrics of a system follow from is part of its lines. A line is on the disk before
the next fit begins, safe from kills and second writers.

A line has `system`, `objective`, `parameters`, `dataset`; `seed` and `split` (`given`, `dev-SEED`,
`resampled-SEED`, `shotsK-SEED`; deterministic baselines have one line per split); `rows` of train,
dev and test; `dev` and `test` (`n`, `accuracy`, `f1_macro`, `f1_weighted`); `predictions` and
`truth` of the test rows, as indices into `labels` of `comparison.json`; `native`, the same by the
objective's own rule; what was chosen (`probe_C`, `tfidf_C`, `C`, `pooling`, `epochs`, `minn`,
`maxn`); `steps` of training; `seconds`; `collapsed`; `config`, a hash of all that determines the
fit; `metric_files`, hashes of the files of added metrics; of `fewshot` also `shots` and `overlap`,
the expected share of rows that two draws have in common.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from superconext._version import __version__
from superconext.config.fingerprints import Fingerprints
from superconext.config.parameters import BY_NAME, DECIDED_WITH_SYSTEMS, resolve, with_files
from superconext.core import locks
from superconext.core.environment import made_with
from superconext.core.errors import RunError
from superconext.core.files import sync, write_json
from superconext.core.progress import Progress
from superconext.experiments.plan import Fit, Key, Request, key_of
from superconext.experiments.row_sources import RowSource
from superconext.experiments.subsampling import parse_draw
from superconext.experiments.systems import DataSet, System

RESULTS = "results.jsonl"
LOCK = ".lock"


def read_results(path: Path) -> dict[Key, dict[str, Any]]:
    """The lines of a results file by fit; of two lines for one fit the first counts.

    A last line without its line end is what a kill left of a write, and is passed over.
    Raises RunError, naming the line, for anything else that is no line of results.
    """
    lines: dict[Key, dict[str, Any]] = {}
    if not path.exists():
        return lines
    *whole, _ = path.read_bytes().split(b"\n")
    for number, content in enumerate(whole, 1):
        try:
            line = json.loads(content)
            sizes = {len(line[name]) for name in ("predictions", "truth") if name in line}
            if sizes and "folds" not in line:  # these may leave rows out
                sizes.add(line["test"]["n"])
            if len(sizes) > 1:
                raise ValueError("other numbers of rows")
            lines.setdefault(key_of(line), line)
        except (ValueError, KeyError, TypeError):
            raise RunError(
                f"{path}, line {number}: found no result of a fit, expected one JSON object with "
                "system, seed and split: remove the line, and its fit is run again"
            ) from None
    return lines


class ResultsFile:
    """The results of a comparison, and the place to add to them.

    lines: the finished ones, by fit.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / RESULTS
        self.lines = read_results(self.path)
        if self.path.exists():  # else the next line would be written onto the end of a torn one
            with self.path.open("r+b") as stream:
                stream.truncate(stream.read().rfind(b"\n") + 1)

    def add(self, line: Mapping[str, Any]) -> None:
        """Append a line; when this returns it is on the disk, and when it raises, gone again."""
        text = json.dumps(line, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        new = not self.path.exists()
        with self.path.open("ab", buffering=0) as stream:
            before = stream.seek(0, os.SEEK_END)
            try:
                content = text.encode() + b"\n"
                while content:  # a full disk takes a part of it before it refuses the rest
                    content = content[stream.write(content) :]
                os.fsync(stream.fileno())
            except OSError as error:
                stream.truncate(before)
                error.filename = str(self.path)
                raise
        if new:
            sync(self.path.parent)
        self.lines[key_of(line)] = dict(line)


@contextmanager
def only_writer(folder: Path, progress: Progress) -> Iterator[None]:
    """Hold the folder's lock inside the block; see `locks.only_writer` for what it raises."""
    with locks.only_writer(folder / LOCK, folder, progress.say, "its finished fits are kept"):
        yield


RECORD = "comparison.json"
RECORD_FORMAT = 2

_PACKAGES = ("torch", "numpy", "scipy", "scikit-learn", "gensim")


def config_hash(
    identity: Any,
    fit: Fit,
    parameters: Mapping[str, Any],
    configs: Sequence[Mapping[str, Any]] = (),
    code: Sequence[str] = (),
) -> str:
    """A hash, 16 hexadecimal digits, of everything that a fit's metrics follow from.

    configs: what its trainings are configured by: a parameter that is given with the value of the
        identity may be another for a system with another preset or encoder.
    code: hashes of the files of what a user has added.
    """
    what: list[Any] = [identity, fit.key]
    if parameters:
        what += [fit.system.objective, parameters]
    what += [*configs, *code]
    text = json.dumps(what, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def make_identity(
    request: Request, dataset: DataSet, pools: RowSource, prints: Fingerprints
) -> dict[str, Any]:
    """What the metrics of a system without parameters follow from, on a data set."""
    config = resolve(request.given_on(dataset), request.verb).to_dict()
    for name in DECIDED_WITH_SYSTEMS:
        del config[name]
    identity = {
        "version": __version__,
        "splits": request.scheme(dataset),
        "rows": pools.sha256,
        "parameters": prints.of(config),
    }
    if pools.unlabelled:
        text = json.dumps(list(pools.unlabelled))
        identity["unlabelled"] = hashlib.sha256(text.encode()).hexdigest()
    return identity | ({"rest_unlabelled": True} if dataset.rest_unlabelled else {})


def make_record(
    request: Request, pools: Mapping[str, RowSource], prints: Fingerprints
) -> dict[str, Any]:
    """The content of comparison.json. pools: by the data sets' names."""
    return {
        "format": RECORD_FORMAT,
        "verb": request.verb,
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "command": list(request.command),
        "seeds": request.seeds,
        "shots": [parse_draw(name).amount for name in request.draws if request.verb == "fewshot"],
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
        **made_with(_PACKAGES),
    }


def claim(folder: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """Write comparison.json, or raise RunError if the folder holds another experiment. Returns it.

    Systems and data sets that an earlier command had and this one has not stay in it, for
    their lines stay too, and so does the identity of a data set, which hashes of lines are of.
    """
    kept = dict(record)
    path = folder / RESULTS
    # A record of no fit, as where rows were too few for every draw, binds nobody.
    if (folder / RECORD).exists() and path.exists() and path.stat().st_size:
        known = read_record(folder)
        difference = _first_difference(known, record)
        if difference:
            raise RunError(
                f"{folder}: made with {difference}; expected the same data, parameters and "
                "version, so that its fits can be compared: choose another folder with --out"
            )
        for name in ("systems", "datasets"):
            kept[name] = {**known[name], **record[name]}
        for name, data in known["datasets"].items():
            kept["datasets"][name] = {**kept["datasets"][name], "identity": data["identity"]}
    write_json(folder / RECORD, kept)
    return kept


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
        made_with = line["objective"], line.get("parameters", {})
        if name in wanted and made_with != wanted[name]:
            raise RunError(
                f"{folder}: the lines of system {name!r} were made with {_words(*made_with)}, now "
                f"{_words(*wanted[name])}; expected the same: give the system another name, or "
                "choose another folder with --out"
            )


def check_folder(folder: Path) -> None:
    """Raise RunError if the folder holds something, but no experiment."""
    if not os.path.lexists(folder) or (folder / RECORD).is_file():
        return
    if not folder.is_dir() or any(path.name[0] != "." for path in folder.iterdir()):
        raise RunError(
            f"{folder} is there and holds no comparison; expected a new folder or one made by the "
            "same command: choose another with --out"
        )


def read_record(folder: Path) -> dict[str, Any]:
    """The content of comparison.json. Raises RunError if there is none that can be read."""
    path = folder / RECORD
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        known = record["format"] == RECORD_FORMAT and "verb" in record
        parts = [record["systems"], record["datasets"]]
        parts += [data["identity"] for data in record["datasets"].values()]
        known &= all(isinstance(part, dict) for part in parts)
    except OSError as error:
        raise RunError(
            f"{path}: cannot be read ({error.strerror}); expected the folder of a comparison made "
            "by superconext compare, fewshot or sweep"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        known = False
    if not known:
        raise RunError(
            f"{path}: found no record of format {RECORD_FORMAT}; expected one written by "
            "superconext compare, fewshot or sweep: choose another folder"
        )
    return record


def _kept(system: System) -> dict[str, Any]:
    saved = {"objective": system.objective, "parameters": _absolute(dict(system.parameters))}
    return {**saved, "source": system.source} if system.source else saved


def _source(dataset: DataSet) -> dict[str, Any]:
    files = {role: os.path.abspath(path) for role, path in dataset.files().items()}
    saved = {**asdict(dataset), **files, "parameters": _absolute(dict(dataset.parameters))}
    del saved["name"]
    return saved


def _absolute(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: with_files(name, value, os.path.abspath) for name, value in parameters.items()}


def _first_difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """The first thing two records disagree on, in words."""
    if before["verb"] != now["verb"]:
        return f"superconext {before['verb']}, this is superconext {now['verb']}"
    for name in now["datasets"]:
        if name in before["datasets"]:
            pair = (records["datasets"][name]["identity"] for records in (before, now))
            difference = first_of_identities(*pair)
            if difference:
                return f"{difference} (data set {name})" if name else difference
    if not set(before["datasets"]) & set(now["datasets"]):
        return f"other data sets ({', '.join(name or 'one file' for name in before['datasets'])})"
    return None


def first_of_identities(saved: Mapping[str, Any], identity: Mapping[str, Any]) -> str | None:
    """The first thing two identities of a data set disagree on, in words."""
    if saved.get("version") != identity["version"]:
        return f"version {saved.get('version')}, this is {identity['version']}"
    if saved.get("splits") != identity["splits"]:
        return f"splits {saved.get('splits')!r}, now {identity['splits']!r}"
    if saved.get("rows") != identity["rows"]:
        changed = [
            name for name, rows in identity["rows"].items() if saved["rows"].get(name) != rows
        ]
        return f"other rows ({', '.join(changed) or 'fewer files'})"
    if saved.get("unlabelled") != identity.get("unlabelled"):
        return "other rows without a label"
    if (rest := saved.get("rest_unlabelled", False)) != identity.get("rest_unlabelled", False):
        return f"rest_unlabelled = {rest}, now {not rest}"
    now = identity["parameters"]
    # A parameter that is younger than the folder had its default before there was a choice.
    before = {**{name: BY_NAME[name].default for name in now}, **saved.get("parameters", {})}
    for name in dict.fromkeys([*before, *now]):
        if before.get(name) != now.get(name):
            return f"{name} = {before.get(name)!r}, now {now.get(name)!r}"
    return None


def _words(objective: str, parameters: Mapping[str, Any]) -> str:
    return ", ".join([objective, *(f"{name} = {value!r}" for name, value in parameters.items())])
