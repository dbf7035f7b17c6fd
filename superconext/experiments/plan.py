"""What an experiment asks for, the plan of its fits, and where these run.

A fit is a system, a seed and a split. Fits run in this process, in worker processes, or on a Dask
cluster.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from superconext.baselines import ALWAYS_FITTED, CONTROLS
from superconext.core.errors import ConfigError, DataError, MissingExtraError, RunError
from superconext.data.splits import stratified_holdout, stratified_three_way
from superconext.experiments.subsampling import TEST_HELD, Labelled, draw_of, drawn, pick
from superconext.experiments.systems import (
    DataSet,
    Parameters,
    System,
    check_reference,
    distinct,
    fit_config,
    plain,
)

BACKENDS = ("processes", "dask")

#: Seconds to wait for a scheduler that does not answer.
_PATIENCE = "15s"


@dataclass(frozen=True)
class Workers:
    """jobs: fits side by side on this machine; scheduler: address of a Dask cluster's.

    With backend "dask" the cluster decides how many run at once: one for each thread of
    each of its workers.
    """

    jobs: int = 1
    backend: str = "processes"
    scheduler: str | None = None

    def check(self) -> None:
        """Raise ConfigError or MissingExtraError for workers that cannot be had."""
        if self.backend not in BACKENDS:
            raise ConfigError(
                f"backend = {self.backend!r}: expected one of {', '.join(BACKENDS)}: change it"
            )
        if self.jobs < 1:
            raise ConfigError(f"jobs = {self.jobs}: expected one or more")
        if self.backend == "processes" and self.scheduler:
            raise ConfigError(
                "found a scheduler for backend 'processes'; expected one for 'dask' alone: add "
                "--backend dask"
            )
        if self.backend == "dask":
            if not self.scheduler:
                raise ConfigError(
                    "backend 'dask' without a scheduler; expected its address: add --scheduler "
                    "tcp://HOST:8786"
                )
            if importlib.util.find_spec("distributed") is None:
                raise MissingExtraError("backend 'dask'", "dask")


def side_by_side(
    work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], workers: Workers, threads: int
) -> Generator[Any, None, None]:
    """`work(*task)` for every task, each result as it ends, in any order.

    threads: matrix threads of a process on this machine. Raises RunError where a Dask cluster
    cannot be reached or has no worker.
    """
    from joblib import Parallel, parallel_config

    if workers.backend == "dask":
        with _cluster(str(workers.scheduler)), parallel_config("dask"):
            yield from _results(Parallel(return_as="generator_unordered"), work, tasks)
        return
    with parallel_config(
        "loky", n_jobs=min(workers.jobs, len(tasks)), inner_max_num_threads=threads
    ):
        # No more than the running tasks are handed out, so that a kill costs no others.
        few = Parallel(return_as="generator_unordered", pre_dispatch="n_jobs", batch_size=1)
        yield from _results(few, work, tasks)


def _results(parallel: Any, work: Callable[..., Any], tasks: Sequence[Any]) -> Iterator[Any]:
    from concurrent.futures.process import BrokenProcessPool

    from joblib import delayed

    try:
        with closing(parallel(delayed(work)(*task) for task in tasks)) as results:
            yield from results
    except BrokenProcessPool:  # as joblib's error for a killed worker is
        raise RunError(
            "found a worker process that was ended from outside, often for lack of memory; "
            "expected it to finish: repeat the command, which keeps the fits that are done, "
            "perhaps with fewer --jobs"
        ) from None


@contextmanager
def _cluster(address: str) -> Iterator[None]:
    from distributed import Client

    try:
        client = Client(address, timeout=_PATIENCE)
    except (OSError, ValueError, TimeoutError) as error:
        raise RunError(
            f"scheduler {address}: cannot be reached ({error or type(error).__name__}); expected "
            "the address of a running Dask scheduler: start one with `dask scheduler`, or check "
            "the address"
        ) from None
    with client:
        threads = client.nthreads()
        if any(count > 1 for count in threads.values()):
            raise RunError(
                f"scheduler {address}: has a worker with {max(threads.values())} threads; expected "
                "one each, because torch's random state is a process's: start workers with "
                "--nthreads 1, and more of them with --nworkers"
            )
        if not threads:
            raise RunError(
                f"scheduler {address}: has no worker; expected one or more: start one with `dask "
                f"worker {address} --nthreads 1`"
            )
        yield


HELD_OUT = 0.1

Key = tuple[str, int, str]


@dataclass(frozen=True)
class Fit:
    """One fit: a system, the seed, the name of the split, and the data set's ("" for one).

    The seed of a baseline that is not random is that of the split.
    """

    system: System
    seed: int
    split: str
    dataset: str = ""

    @property
    def key(self) -> Key:
        """What its line in results.jsonl is found by."""
        return self.system.name, self.seed, place(self.dataset, self.split)

    @property
    def is_baseline(self) -> bool:
        return self.system.is_baseline

    @property
    def reads_parameters(self) -> bool:
        return self.system.reads_parameters

    def __str__(self) -> str:
        where = f"{self.dataset}, " if self.dataset else ""
        return f"{where}{self.system.name}, seed {self.seed}, split {self.split}"


def place(dataset: str, split: str) -> str:
    """The split, with its data set before it where there are several."""
    return f"{dataset}/{split}" if dataset else split


def key_of(line: Mapping[str, Any]) -> Key:
    """The key of the fit that a line of results.jsonl is of."""
    return name_of(line), line["seed"], place(line.get("dataset", ""), line["split"])


def name_of(line: Mapping[str, Any]) -> str:
    """The name of a line's system; where it has none, the objective's."""
    name: str = line["system"] if "system" in line else line["objective"]
    return name


def make_plan(
    systems: Sequence[System],
    seeds: int,
    scheme: str,
    dataset: str = "",
    draws: Sequence[str] = (),
    controls: Sequence[str] = (),
) -> list[Fit]:
    """Every fit on one data set: the baselines on each split, then each system's seeds, from 0.

    A baseline that is random has every seed too. A system that is trained on another data set has
    no fit on that one. draws: names of `subsampling.KINDS` and numbers; "" for all rows as they
    are. controls: baselines to fit beside those that always are, named among the systems or not.

    Raises ConfigError for fewer than one seed.
    """
    if seeds < 1:
        raise ConfigError(f"seeds = {seeds}: expected one or more")
    splits = [
        (seed, f"{draw}-{seed}" if draw else whole_split(scheme, seed))
        for draw in draws or ("",)
        for seed in range(seeds)
    ]
    distinct = [(seed, split) for seed, split in splits if split != "given" or seed == 0]
    baselines = [plain(name) for name in (*ALWAYS_FITTED, *controls)]
    baselines += [s for s in systems if s.is_baseline and s not in baselines]
    plan = [
        Fit(system, seed, split, dataset)
        for system in baselines
        for seed, split in (splits if system.is_seeded else distinct)
    ]
    # Neighbours differ in their split wherever splits differ, so that processes working side
    # by side seldom train the same word vectors twice.
    plan += [
        Fit(system, seed, split, dataset)
        for system in systems
        if not system.is_baseline and (not system.source or system.source != dataset)
        for seed, split in splits
    ]
    return plan


def whole_split(scheme: str, seed: int) -> str:
    """The name of the split that takes all rows as they are."""
    return scheme if scheme == "given" else f"{scheme}-{seed}"


def scheme_of(source_rows: Mapping[str, Labelled]) -> str:
    """How rows in these source_rows are split, as `systems.choose_scheme` says."""
    if "all" in source_rows:
        return "resampled"
    return "given" if "dev" in source_rows else "dev"


def cut(source_rows: Mapping[str, Labelled], fit: Fit) -> dict[str, Labelled]:
    """The rows of a fit: `{"train": (texts, labels), "dev": .., "test": ..}`.

    Args:
        source_rows: "train", "dev" and "test" for split "given", "train" and "test" where dev is
            held out by the seed, "all" where everything is drawn by the seed; "train" and
            "test", and "dev" where it is not drawn, for draws of a few rows. A draw (see
            `subsampling`) is made from the training rows of any of these.

    Raises DataError where there are too few rows to fill every part.
    """
    if fit.split == "given":
        return dict(source_rows)
    draw = draw_of(fit.split)
    if draw and draw.kind == "mteb" and "all" in source_rows:
        raise DataError(
            f"{draw} needs test rows of their own; expected a file of them: give --test"
        )
    train = source_rows.get("train", ([], []))
    if "all" in source_rows:
        rows = stratified_three_way(*source_rows["all"], fit.seed, HELD_OUT, HELD_OUT)
        names = ("train", "dev", "test")
        parts = {
            name: pick(source_rows["all"], part) for name, part in zip(names, rows, strict=True)
        }
    elif draw and ("dev" in source_rows or draw.of.draws_dev):
        parts = dict(source_rows)
    else:
        train_rows, dev_rows = stratified_holdout(*train, HELD_OUT, fit.seed)
        parts = {
            "train": pick(train, train_rows),
            "dev": pick(train, dev_rows),
            "test": source_rows["test"],
        }
    if draw:
        parts = drawn(parts, draw, fit.seed, own_dev="dev" in source_rows)
    empty = [name for name, (texts, _) in parts.items() if not texts]
    if empty:
        raise DataError(
            f"split {fit.split}: no row is left for {empty[0]}; expected more rows, or files of "
            "your own with --dev and --test"
        )
    return parts


def possible_fits(
    plan: Sequence[Fit],
    source_rows: Mapping[str, Mapping[str, Labelled]],
    draws: Sequence[str],
    warn: Callable[[str], None],
) -> list[Fit]:
    """The fits whose draws the data sets have rows for; warns of draws that are left out.

    source_rows: of each data set, what `cut` splits.
    """
    impossible = set()
    seeds = sorted({fit.seed for fit in plan})
    for name, rows in source_rows.items():
        for draw in filter(None, draws):
            try:
                for seed in seeds:
                    cut(rows, Fit(plain("majority"), seed, f"{draw}-{seed}"))
            except DataError as error:
                warn(f"{name + ': ' if name else ''}{draw} is left out: seed {seed}: {error}")
                impossible.add((name, draw))
    return [fit for fit in plan if (fit.dataset, str(draw_of(fit.split))) not in impossible]


@dataclass(frozen=True)
class Request:
    """An experiment: every system with every seed on every data set.

    seeds: 0 for as many as a cross-validation has deals. out: the folder. given: the parameters of
    `train` that hold for all, without those in DECIDED_WITH_SYSTEMS. reference: the row that
    others are tested against. draws: which training rows, or what damage to them (see
    `subsampling`). protocol: its name. command: the words of the command line. figures: formats
    of the figures beside PNG.
    """

    datasets: tuple[DataSet, ...]
    systems: tuple[System, ...]
    seeds: int
    out: str
    verb: str = "compare"
    given: dict[str, Any] = field(default_factory=dict)
    reference: str = "tfidf_logreg"
    draws: tuple[str, ...] = ()
    protocol: str = ""
    workers: Workers = field(default_factory=Workers)
    command: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()

    @property
    def formats(self) -> tuple[str, ...]:
        """Of the figures."""
        return ("png", *self.figures)

    def given_on(self, dataset: DataSet) -> dict[str, Any]:
        """The parameters on a data set: its own win over those for all."""
        return {**self.given, **dict(dataset.parameters)}

    def scheme(self, dataset: DataSet) -> str:
        """How a data set's rows are split. Raises ConfigError."""
        scheme = "shots" if self.verb == "fewshot" else dataset.scheme()
        return TEST_HELD if (self.verb, scheme) == ("sweep", "resampled") else scheme

    def plan(self) -> list[Fit]:
        """Every fit, data set by data set. Raises ConfigError for what cannot be planned."""
        distinct(self.systems)
        controls = {data.name: self.controls_on(data) for data in self.datasets}
        everywhere = [name for name in CONTROLS if all(name in of for of in controls.values())]
        check_reference(self.reference, self.systems, everywhere)
        plan: list[Fit] = []
        for data in self.datasets:
            scheme, of = self.scheme(data), controls[data.name]
            plan += make_plan(self.systems, self.seeds, scheme, data.name, self.draws, of)
        return plan

    def check(self) -> None:
        """Raise ConfigError for what cannot be planned."""
        replace(self, seeds=self.seeds or 1).plan()

    def controls_on(self, dataset: DataSet) -> tuple[str, ...]:
        """The controls that are fitted on a data set without being named.

        They are those that the parameters for all systems allow. A sweep and a paper's protocol
        have none.
        """
        if self.verb not in ("compare", "fewshot") or self.protocol:
            return ()
        from superconext.baselines.baseline import controls_of
        from superconext.fitting.checks import check_config

        config = fit_config(self.given_on(dataset), plain(CONTROLS[0]), 0)
        try:
            check_config(config)
        except ConfigError:
            return ()  # incomplete without a system's own parameters; each system is checked
        return controls_of(config)


def saved_system(name: str, saved: Mapping[str, Any]) -> System:
    """A system as `comparison.json` keeps it."""
    parameters = _parameters(saved)
    return System(name, saved["objective"], parameters, saved.get("source", ""))


def saved_dataset(name: str, saved: Mapping[str, Any]) -> DataSet:
    """A data set as `comparison.json` keeps it."""
    source = {**saved["source"], "parameters": _parameters(saved["source"])}
    return DataSet(**{**source, "name": name})


def _parameters(saved: Mapping[str, Any]) -> Parameters:
    values = saved["parameters"].items()
    return tuple((name, tuple(v) if isinstance(v, list) else v) for name, v in values)
