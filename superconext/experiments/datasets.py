"""Data sets of an experiment: their files, options, and how their rows are split.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from superconext.core.errors import ConfigError
from superconext.experiments.systems import (
    Parameters,
    checked_parameters,
    read_tables,
    text_of,
)

#: How the rows are split: all files as given; a tenth of train held out for dev by the seed;
#: all three parts drawn by the seed; a few rows of each class of train drawn by the seed.
SCHEMES = ("given", "dev", "resampled", "shots")

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
    kept of each file. header, encoding, fix_text, drop_unlabelled, fold_label_case: how the files
    are read. parameters: those of `train` that hold on this data set, such as its word
    vectors.
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
    text_column: str | None = None
    label_column: str | None = None
    header: bool | None = None
    encoding: str | None = None
    fix_text: bool = False
    drop_unlabelled: bool = False
    fold_label_case: bool = False
    parameters: Parameters = ()

    def files(self) -> dict[str, str]:
        """The labelled files by role."""
        named = {"train": self.train, "dev": self.dev, "test": self.test}
        return {role: path for role, path in named.items() if path is not None}

    def scheme(self) -> str:
        """One of SCHEMES, or "cv5" for five folds. Raises ConfigError for files and a wish that do
        not go together."""
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
    """One of SCHEMES, from which files are given and `--splits` ("given", "resample", None).

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
