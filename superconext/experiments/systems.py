"""Systems and data sets of an experiment, as the command line and TOML files name them.

A system is an objective or a baseline with parameters of its own, under a name. On the command line
it is `OBJECTIVE` or `OBJECTIVE:PARAMETER=VALUE+PARAMETER=VALUE`, and that is its name too; further
baselines are named alike. A TOML file gives it a name of its own:

    [[system]]
    name = "mined"
    objective = "superloss"
    options = {mining = "topk", mining_threshold = 20}

where `options` are those of its objective, on the command line `options.mining=topk`. A data set is
its files, options, and how their rows are split:

    [[dataset]]
    name = "msac"
    train = "msac/train.tsv"
    test = "msac/test.tsv"
    vectors = "msac/vectors.txt"
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from superconext.baselines import ALWAYS_FITTED, BASELINES, CONTROLS
from superconext.config.files import read_toml
from superconext.config.parameters import (
    BY_NAME,
    DECIDED_WITH_SYSTEMS,
    OPTION,
    Config,
    check_names,
    from_text,
    with_files,
)
from superconext.core.errors import ConfigError, nearest
from superconext.encoders.pretrained import SIZES, resolve_sized
from superconext.objectives.catalogue import OBJECTIVES

#: Parameters by name, in the order they were given; hashable, unlike a mapping.
Parameters = tuple[tuple[str, Any], ...]


def read_tables(path: Path, key: str) -> list[dict[str, Any]]:
    """The `[[key]]` tables of a TOML file, in order. Raises ConfigError naming the file."""
    document = read_toml(path, f"[[{key}]] tables")
    tables = document.pop(key, [])
    if document:
        raise ConfigError(
            f"{path}: found {next(iter(document))!r}; expected [[{key}]] tables alone: remove it"
        )
    if not isinstance(tables, list) or not tables or not all(isinstance(t, dict) for t in tables):
        raise ConfigError(f"{path}: found no [[{key}]] table; expected one or more: add them")
    return tables


def checked_parameters(
    values: Mapping[str, Any], where: str, folder: Path | None = None, also: Sequence[str] = ()
) -> Parameters:
    """The values as parameters of `train`, checked one by one.

    where: what an error message names. folder: what paths among the values are relative to; None
    leaves them. also: keys the table may have beside parameters, for the hint at a misspelt one.

    Raises ConfigError for what is no parameter, what the experiment decides, and values of the
    wrong type or outside their limits.
    """
    parameters = []
    for name, value in values.items():
        _refuse_own(name, where)
        check_names([name], where, also)
        if name == "options" and isinstance(value, Mapping):
            parameters += [(f"{OPTION}{option}", inner) for option, inner in value.items()]
            continue
        if name.startswith(OPTION):
            parameters.append((name, value))
            continue
        parameter = BY_NAME[name]
        if parameter.type is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        try:
            parameter.check(value)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None
        if folder is not None:
            value = with_files(name, value, partial(os.path.join, folder), str(folder))
        if isinstance(value, list):
            value = tuple(value)
        parameters.append((name, value))
    return tuple(parameters)


def _refuse_own(name: str, where: str) -> None:
    """Raise ConfigError for a parameter that the experiment decides."""
    if name == "budget":
        raise ConfigError(
            f"{where}: found budget; expected none, as {AUTO} has no budget in comparisons, so "
            "that its result does not depend on the machine's speed: leave it out"
        )
    if name in DECIDED_WITH_SYSTEMS:
        raise ConfigError(f"{where}: found {name}, which the experiment decides: leave it out")


def text_of(table: Mapping[str, Any], key: str, where: str) -> str | None:
    """The text under a key, None where there is none. Raises ConfigError for anything else."""
    value = table.get(key)
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise ConfigError(f'{where}: {key} = {value!r}; expected text, as {key} = "..."')
    return value


#: The system that `train` makes where no recipe is named.
AUTO = "auto"

#: The largest budget, in minutes, which no fit needs.
_ENDLESS = 10_000.0

#: What the row of an objective's native prediction is called, after the system's name.
OWN_RULE = " (own rule)"

#: A plus between parameters, not one within a value (`encoder+tfidf`).
_PLUS = re.compile(r"\+(?=[^+]*=)|\+\s*$")


@dataclass(frozen=True)
class System:
    """name: of its row; objective: trained, `AUTO`, or a baseline's name; parameters: its own.

    source: the data set whose rows its encoder is trained on, "" for the one it is evaluated on.
    """

    name: str
    objective: str
    parameters: Parameters = ()
    source: str = ""

    @property
    def is_baseline(self) -> bool:
        return self.objective in BASELINES

    @property
    def is_auto(self) -> bool:
        return self.objective == AUTO

    @property
    def is_seeded(self) -> bool:
        """Whether another seed gives another model on the same rows."""
        return not self.is_baseline or BASELINES.get(self.objective).seeded

    @property
    def reads_parameters(self) -> bool:
        """Whether parameters of `train` change it: it is no baseline, or one that reads a run."""
        return not self.is_baseline or BASELINES.get(self.objective).needs_run

    def __str__(self) -> str:
        """The objective and parameters, for names that do not list them."""
        words = [self.objective, *(f"{n} = {shown(v)}" for n, v in self.parameters)]
        return ", ".join([*words, f"trained on {self.source}"] if self.source else words)


def plain(name: str) -> System:
    """An objective or a baseline without parameters of its own."""
    return System(name, name)


def fit_config(given: Mapping[str, Any], system: System, seed: int) -> Config:
    """The configuration of one fit: the system's parameters win over the given ones.

    For a baseline it is that of the run whose text it reads, of the default objective; one that
    starts from an encoder has its sizes, as it trains none of others. What `AUTO` compares does
    not depend on time: it has the largest budget. Nor has it an adjustment for rare classes that
    its rivals lack.
    Raises ConfigError and RunError as `resolve_sized` does.
    """
    parameters = {**dict(system.parameters), "seed": seed}
    if system.is_baseline:
        left = {"options", *(SIZES if {**given, **parameters}.get("init") else ())}
        given = {n: v for n, v in given.items() if n not in left and not n.startswith(OPTION)}
    elif system.is_auto:
        from superconext.fitting.recipes import naming

        alike = {"logit_adjustment": given.get("logit_adjustment") or 0.0}
        given = {**given, **alike, "preset": AUTO}
        named = [name for name in naming({**given, **dict(system.parameters)}) if name != "preset"]
        if named:
            raise ConfigError(
                f"{system.name}: found {named[0]}, and a recipe that is chosen; expected one of "
                f"them: leave out {named[0]}, give it to other systems alone "
                f"(OBJECTIVE:{named[0]}=VALUE), or leave out {AUTO}"
            )
    else:
        parameters["objective"] = system.objective
    config = resolve_sized({**given, **parameters, "baselines": False}, system.name)
    if system.is_auto:
        return replace(config, budget=_ENDLESS)
    if config.preset == AUTO:
        raise ConfigError(
            f"{system.name}: found preset = 'auto', which chooses among recipes; expected one "
            f"recipe to measure: name the system {AUTO}, or another preset"
        )
    return config


def parse_systems(text: str) -> tuple[System, ...]:
    """The systems of `--objectives`, comma separated. Raises ConfigError."""
    systems = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        objective, colon, rest = (piece.strip() for piece in part.partition(":"))
        _check_name(objective)
        settings = {}
        for setting in _PLUS.split(rest) if colon else ():
            name, equals, value = (piece.strip() for piece in setting.partition("="))
            if not equals:
                raise ConfigError(
                    f"{part}: found {setting.strip()!r} after {objective}; expected "
                    f"{objective}:PARAMETER=VALUE, and + before a further PARAMETER=VALUE"
                )
            if name in settings:
                raise ConfigError(f"{part}: {name} is given twice; expected each once")
            settings[name] = parse_value(name, value, part)
        parameters = checked_parameters(settings, part)
        _check_parameters(objective, parameters, part)
        systems.append(with_parameters(objective, parameters))
    return distinct(systems)


def read_systems(path: Path) -> tuple[System, ...]:
    """The systems of a TOML file; paths in it are relative to its folder.

    Raises ConfigError naming the file and the system.
    """
    systems = []
    for number, table in enumerate(read_tables(path, "system"), 1):
        where = f"{path}, system {number}"
        name, objective = (text_of(table, key, where) for key in ("name", "objective"))
        if objective is None:
            raise ConfigError(f'{where}: found no objective; expected objective = "superloss"')
        where = f"{path}, system {name or objective}"
        try:
            _check_name(objective)
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None
        rest = {key: value for key, value in table.items() if key not in ("name", "objective")}
        parameters = checked_parameters(rest, where, path.parent, ("name", "objective"))
        if name is not None and name.endswith(OWN_RULE):
            raise ConfigError(
                f"{where}: found a name that ends in {OWN_RULE.strip()!r}, which marks an "
                "objective's own rule; expected another: change it"
            )
        _check_parameters(objective, parameters, where)
        system = with_parameters(objective, parameters)
        systems.append(System(name or system.name, objective, parameters))
    return distinct(systems)


def _check_name(objective: str) -> None:
    """Raise ConfigError unless it is an objective or a baseline that may be named."""
    if objective in OBJECTIVES and (objective == AUTO or objective in BASELINES):
        other = "the recipe that is chosen" if objective == AUTO else "a baseline"
        raise ConfigError(
            f"found {objective!r}, which is an objective and {other} too; expected a name of one "
            "thing: register your own under another name"
        )
    if objective == AUTO or (objective in BASELINES and objective not in ALWAYS_FITTED):
        return
    if objective not in OBJECTIVES and nearest(objective, ALWAYS_FITTED):
        raise ConfigError(
            f"found {objective!r} among the systems; expected no baseline of those fitted in every "
            f"comparison ({', '.join(ALWAYS_FITTED)}): leave it out"
        )
    if objective not in OBJECTIVES:
        near = nearest(objective, [*OBJECTIVES.names(), AUTO, *BASELINES.names()])
        if near == AUTO or near in BASELINES:
            raise ConfigError(
                f"found {objective!r} among the systems; expected an objective, a baseline or "
                f"{AUTO}: did you mean {near!r}?"
            )
    OBJECTIVES.check(objective)


def _check_parameters(objective: str, parameters: Parameters, where: str) -> None:
    if parameters and not System(objective, objective).reads_parameters:
        raise ConfigError(
            f"{where}: found {parameters[0][0]} for {objective}, a baseline that chooses its own "
            "settings; expected none: leave it out"
        )


def with_parameters(objective: str, parameters: Parameters) -> System:
    """The system under the name that `--objectives` would call it by."""
    settings = "+".join(f"{name}={shown(value)}" for name, value in parameters)
    return System(f"{objective}:{settings}" if settings else objective, objective, parameters)


def distinct(systems: Iterable[System]) -> tuple[System, ...]:
    """The systems as they are. Raises ConfigError for none, and for a name that is taken."""
    systems = tuple(systems)
    if not systems:
        raise ConfigError("found no objective; expected one or more names, each once")
    for name, count in Counter(system.name for system in systems).items():
        taken = name in CONTROLS and plain(name) not in systems
        if name in ALWAYS_FITTED or taken:
            raise ConfigError(
                f"system {name!r}: a baseline has this name; expected another: change it"
            )
        if count > 1:
            raise ConfigError(f"objective or system {name!r} is named twice; expected each once")
    return systems


def parse_value(name: str, text: str, where: str) -> Any:
    """The text of a parameter's value as the parameter's type. Raises ConfigError."""
    _refuse_own(name, where)
    check_names([name], where)
    if name.startswith(OPTION):
        return _literal(text)
    parameter = BY_NAME[name]
    try:
        value = from_text(name, text, parameter.type)
        parameter.check(value)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None
    return value


def _literal(text: str) -> Any:
    """A number where the text is one, else the text: its objective knows the type."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def shown(value: Any) -> str:
    """A parameter's value as the command line takes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)


def check_reference(
    reference: str, systems: Sequence[System], controls: Sequence[str] = ()
) -> None:
    """Raise ConfigError unless the reference will have a row in the table.

    controls: those that are fitted on every data set without being named.
    """
    default = (*ALWAYS_FITTED, *controls)
    known = list(dict.fromkeys([*default, *(system.name for system in systems)]))
    if reference.removesuffix(OWN_RULE) not in known or reference in {
        name + OWN_RULE for name in (*default, *(s.name for s in systems if s.is_baseline))
    }:
        raise ConfigError(
            f"reference = {reference!r}: expected a system of the comparison: {', '.join(known)}, "
            f"or an objective's name followed by {OWN_RULE.strip()!r}"
        )


_FILES = ("train", "dev", "test")
#: How the files are read, as `read_labelled` takes it.
READING = ("header", "encoding", "fix_text", "drop_unlabelled", "fold_label_case")
_FLAGS = (
    "deduplicate", "deduplicate_near", "header", "fix_text", "drop_unlabelled", "fold_label_case"
)  # fmt: skip
_TEXTS = ("name", *_FILES, "splits", "text_column", "label_column", "encoding")
#: A data set's name is a folder's too.
_NAME = re.compile(r"\w[\w.+-]*")
_TAKEN = ("figures",)


@dataclass(frozen=True)
class DataSet:
    """name: "" for the only one. splits: "given", "resample", or None to go by the files. cv: folds
    of a cross-validation; 0 for none, None to go by the number of rows.

    deduplicate, deduplicate_near: take copies, and texts almost the same, out. at_most: rows
    kept of each file. rest_unlabelled: of a draw of some rows, learn from the texts of the others.
    header, encoding, fix_text, drop_unlabelled, fold_label_case: how the files are read.
    parameters: those of `train` that hold on this data set, such as its word vectors.
    """

    name: str
    train: str
    dev: str | None = None
    test: str | None = None
    splits: str | None = None
    cv: int | None = 0
    deduplicate: bool = False
    deduplicate_near: bool = False
    at_most: int | None = None
    rest_unlabelled: bool = False
    text_column: str | None = None
    label_column: str | None = None
    header: bool | None = None
    encoding: str | None = None
    fix_text: bool = False
    drop_unlabelled: bool = False
    fold_label_case: bool | None = None
    parameters: Parameters = ()

    def files(self) -> dict[str, str]:
        """The labelled files by role."""
        named = {"train": self.train, "dev": self.dev, "test": self.test}
        return {role: path for role, path in named.items() if path is not None}

    def scheme(self) -> str:
        """What `choose_scheme` says, or "cv5" for five folds. Raises ConfigError for files and a
        wish that do not go together."""
        beside = self.splits and f"splits = {self.splits!r}"
        beside = "a dev or test file" if self.dev or self.test else beside
        try:
            if self.cv and beside:
                raise ConfigError(
                    f"cv = {self.cv} with {beside}; expected one of them, as folds take the place "
                    "of test rows: leave one out"
                )
            if self.cv:
                return f"cv{self.cv}"
            return choose_scheme(self.dev is not None, self.test is not None, self.splits)
        except ConfigError as error:
            raise ConfigError(
                f"data set {self.name}: {error}" if self.name else str(error)
            ) from None


def choose_scheme(dev: bool, test: bool, wanted: str | None) -> str:
    """How the rows are split, by which files are given and `--splits` ("given", "resample", None).

    "given": all files as they are; "dev": a tenth of train held out for dev by the seed;
    "resampled": all three parts drawn by the seed.

    Raises ConfigError for files and a wish that do not go together.
    """
    if wanted == "resample":
        return "resampled"
    if test:
        return "given" if dev else "dev"
    if wanted == "given":
        raise ConfigError(
            "splits = 'given' without a test file; expected one: add --test, or leave --splits out "
            "to draw the splits from the training file"
        )
    if dev:
        raise ConfigError(
            "found a dev file without a test file; expected both or neither: add --test, or "
            "--splits resample to draw the splits from both files' rows"
        )
    return "resampled"


def from_files(train: Sequence[str], **common: Any) -> tuple[DataSet, ...]:
    """A data set for each file; several are named by the part of their paths that differs.

    common: fields of DataSet that hold for all. Raises ConfigError for dev or test files with
    several training files, and a file named twice.
    """
    if len(train) == 1:
        return (DataSet("", train[0], **common),)
    if common.get("dev") or common.get("test"):
        raise ConfigError(
            f"found a dev or test file beside {len(train)} training files; expected to know which "
            "it belongs to: list the data sets in a file and give it with --datasets"
        )
    paths = [Path(os.path.abspath(path)) for path in train]
    stems = [path.name.partition(".")[0] for path in paths]
    names = stems if len(set(stems)) == len(stems) else [path.parent.name for path in paths]
    if len(set(names)) < len(names):
        names = ["-".join(path.parts[-2:]).partition(".")[0] for path in paths]
    cleaned = [re.sub(r"[^\w.+-]", "-", name) for name in names]
    return _distinct(
        [
            DataSet(name if _NAME.fullmatch(name) else f"data-{at}", path, **common)
            for at, (name, path) in enumerate(zip(cleaned, train, strict=True), 1)
        ],
        "TRAIN",
    )


def read_datasets(path: Path, common: Mapping[str, Any]) -> tuple[DataSet, ...]:
    """The data sets of a TOML file; paths in it are relative to its folder.

    common: fields of DataSet for the tables that do not name them. Raises ConfigError naming the
    file and the data set.
    """
    datasets = []
    for number, table in enumerate(read_tables(path, "dataset"), 1):
        where = f"{path}, dataset {table.get('name', number)}"
        texts = {key: text_of(table, key, where) for key in _TEXTS}
        for key in ("name", "train"):
            if not texts[key]:
                raise ConfigError(f'{where}: found no {key}; expected {key} = "...": add it')
        if not _NAME.fullmatch(str(texts["name"])):
            raise ConfigError(
                f"{where}: cannot be the name of a folder; expected letters, digits, '.', '-', '+' "
                "and '_': change it"
            )
        if texts["splits"] not in (None, "given", "resample"):
            raise ConfigError(
                f"{where}: splits = {texts['splits']!r}; expected 'given' or 'resample'"
            )
        for key in _FLAGS:
            if not isinstance(table.get(key, False), bool):
                raise ConfigError(f"{where}: {key} = {table[key]!r}; expected true or false")
        most = table.get("at_most", 1)
        if not isinstance(most, int) or isinstance(most, bool) or most < 1:
            raise ConfigError(f"{where}: at_most = {most!r}; expected a number of rows")
        known = (*_TEXTS, *_FLAGS, "at_most")
        rest = {key: value for key, value in table.items() if key not in known}
        fields: dict[str, Any] = {key: value for key, value in texts.items() if value is not None}
        fields |= {
            role: os.path.join(path.parent, fields[role]) for role in _FILES if role in fields
        }
        fields |= {key: table[key] for key in (*_FLAGS, "at_most") if key in table}
        fields["parameters"] = checked_parameters(rest, where, path.parent, known)
        datasets.append(DataSet(**{**common, **fields}))
    return _distinct(datasets, str(path))


def _distinct(datasets: Sequence[DataSet], where: str) -> tuple[DataSet, ...]:
    for name, count in Counter(dataset.name.lower() for dataset in datasets).items():
        if count > 1:
            raise ConfigError(f"{where}: two data sets are called {name!r}; expected each once")
        if name in _TAKEN:
            raise ConfigError(
                f"{where}: a data set is called {name!r}, as a folder of the results is; expected "
                "another name: list the data sets in a file and give it with --datasets"
            )
    return tuple(datasets)
