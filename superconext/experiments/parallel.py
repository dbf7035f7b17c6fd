"""Where fits run: in this process, in worker processes, or on a Dask cluster."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

from superconext.core.errors import ConfigError, MissingExtraError, RunError

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
    from joblib import delayed

    with closing(parallel(delayed(work)(*task) for task in tasks)) as results:
        yield from results


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
