"""What did the user ask for? The same for a comparison, a few-shot curve and a sweep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from superconext.experiments.datasets import DataSet
from superconext.experiments.parallel import Workers
from superconext.experiments.plan import Fit, make_plan
from superconext.experiments.systems import System, check_reference, distinct


@dataclass(frozen=True)
class Request:
    """An experiment: every system with every seed on every data set.

    out: the folder. given: the parameters of `train` that hold for all, without those in
    OWN_PARAMETERS. reference: the row that others are tested against. shots: how many rows
    of each class are drawn (`fewshot` alone). draws: which training rows, or what damage to
    them (protocols alone; see `draws`). protocol: its name. command: the words of the command
    line.
    """

    datasets: tuple[DataSet, ...]
    systems: tuple[System, ...]
    seeds: int
    out: str
    verb: str = "compare"
    given: dict[str, Any] = field(default_factory=dict)
    reference: str = "tfidf_logreg"
    shots: tuple[int, ...] = ()
    draws: tuple[str, ...] = ()
    protocol: str = ""
    workers: Workers = field(default_factory=Workers)
    command: tuple[str, ...] = ()

    def given_on(self, dataset: DataSet) -> dict[str, Any]:
        """The parameters on a data set: its own win over those for all."""
        return {**self.given, **dict(dataset.parameters)}

    def scheme(self, dataset: DataSet) -> str:
        """How a data set's rows are split. Raises ConfigError."""
        return dataset.scheme(shots=bool(self.shots))

    def plan(self) -> list[Fit]:
        """Every fit, data set by data set. Raises ConfigError for what cannot be planned."""
        distinct(self.systems)
        check_reference(self.reference, self.systems)
        return [
            fit
            for data in self.datasets
            for fit in make_plan(
                self.systems, self.seeds, self.scheme(data), data.name, self.shots, self.draws
            )
        ]

    def changed(self, **changes: Any) -> Request:
        """A request with other values; fields of DataSet are changed in every data set."""
        names = {item.name for item in fields(Request)}
        of_data = {name: value for name, value in changes.items() if name not in names}
        own = {name: value for name, value in changes.items() if name in names}
        datasets = own.pop("datasets", self.datasets)
        own["datasets"] = tuple(replace(data, **of_data) for data in datasets)
        return replace(self, **own)


def saved_system(name: str, saved: Mapping[str, Any]) -> System:
    """A system as `comparison.json` keeps it."""
    own = tuple(saved["parameters"].items())
    return System(name, saved["objective"], own, saved.get("source", ""))


def saved_dataset(name: str, saved: Mapping[str, Any]) -> DataSet:
    """A data set as `comparison.json` keeps it."""
    source = {**saved["source"], "parameters": tuple(saved["source"]["parameters"].items())}
    return DataSet(**{**source, "name": name})
