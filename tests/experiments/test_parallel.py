"""Fits on other workers come out as they do here."""

import importlib.util
import json
import os
import signal
import threading
import time

import pytest

from superconext.core.errors import ConfigError, MissingExtraError, RunError
from superconext.core.progress import Progress
from superconext.experiments import plan as parallel
from superconext.experiments.compare import compare
from superconext.experiments.plan import Workers
from superconext.experiments.record import read_results
from tests.experiments.conftest import changed

needs_dask = pytest.mark.skipif(
    importlib.util.find_spec("distributed") is None, reason="needs the extra dask"
)


@pytest.mark.parametrize(
    ("workers", "message"),
    [
        (Workers(0), "jobs = 0"),
        (Workers(backend="threads"), "expected one of processes, dask"),
        (Workers(scheduler="tcp://localhost:1"), "add --backend dask"),
        (Workers(backend="dask"), "without a scheduler"),
    ],
)
def test_workers_that_cannot_be(workers, message):
    with pytest.raises(ConfigError, match=message):
        workers.check()


def test_without_the_extra_it_is_named(monkeypatch):
    monkeypatch.setattr(parallel.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"superconext\[dask\]"):
        Workers(backend="dask", scheduler="tcp://localhost:1").check()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
def test_a_killed_worker_is_told_as_one():
    with pytest.raises(RunError, match=r"ended from outside.*repeat the command.*--jobs"):
        list(parallel.side_by_side(_killed, [(k,) for k in range(2)], Workers(2), 1))


def _killed(number):
    os.kill(os.getpid(), signal.SIGKILL)


@needs_dask
def test_a_scheduler_that_does_not_answer(request_of, monkeypatch):
    monkeypatch.setattr(parallel, "_PATIENCE", "300ms")
    nowhere = Workers(backend="dask", scheduler="tcp://127.0.0.1:1")
    with pytest.raises(RunError, match=r"127\.0\.0\.1:1: cannot be reached"):
        compare(request_of(workers=nowhere), Progress())


@needs_dask
@pytest.mark.slow
def test_two_dask_workers_write_the_lines_that_one_process_does(request_of, tmp_path):
    from distributed import LocalCluster

    request = request_of(given=False, objectives="superloss,ce_ce:pooling=mean")
    compare(request, Progress())
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        workers = Workers(backend="dask", scheduler=cluster.scheduler_address)
        compare(changed(request, out=str(tmp_path / "two"), workers=workers), Progress())
    one, two = (
        {
            key: {name: value for name, value in line.items() if name != "seconds"}
            for key, line in read_results(tmp_path / name / "results.jsonl").items()
        }
        for name in ("out", "two")
    )
    assert one == two and len(one) == 12


@needs_dask
@pytest.mark.slow
def test_workers_of_several_threads_and_none_are_refused(request_of):
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
    ) as cluster:
        workers = Workers(backend="dask", scheduler=cluster.scheduler_address)
        with pytest.raises(RunError, match="worker with 2 threads"):
            compare(request_of(workers=workers), Progress())
    with LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster:
        workers = Workers(backend="dask", scheduler=cluster.scheduler_address)
        with pytest.raises(RunError, match="has no worker"):
            compare(request_of(workers=workers), Progress())


@needs_dask
@pytest.mark.slow
def test_a_dask_worker_that_is_killed_costs_no_fit_and_doubles_none(request_of, tmp_path):
    from distributed import Client, LocalCluster

    request = request_of(given=False, objectives="superloss,ce_ce:pooling=mean")
    compare(request, Progress())
    file, killed = tmp_path / "two" / "results.jsonl", []

    def kill(client):
        while not (file.exists() and file.read_bytes().count(b"\n") > 1):
            time.sleep(0.02)
        (pid, *_) = client.run(os.getpid).values()
        killed.append(pid)
        os.kill(pid, signal.SIGKILL)

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        workers = Workers(backend="dask", scheduler=cluster.scheduler_address)
        with Client(cluster, set_as_default=False) as client:
            killer = threading.Thread(target=kill, args=(client,), daemon=True)
            killer.start()
            compare(changed(request, out=str(tmp_path / "two"), workers=workers), Progress())
            killer.join(60)
    assert killed
    one, two = (
        [json.loads(line) for line in (tmp_path / name / "results.jsonl").open(encoding="utf-8")]
        for name in ("out", "two")
    )
    for line in (*one, *two):
        line.pop("seconds", None)
    assert sorted(map(str, one)) == sorted(map(str, two))
    assert len(read_results(file)) == len(two)
