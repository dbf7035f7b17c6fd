"""Two processes train what one would have trained, and notice when one of them is gone."""

import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from superconext.core.errors import ConfigError, TrainingError
from superconext.encoders.base import EncoderOutput
from superconext.training import distributed
from superconext.training.distributed import Processes, ProcessLost, World, current_world, joined
from tests.training.two_processes import PLANS, trained

ROOT = Path(__file__).parents[2]


def launch(*arguments):
    """Two processes of `two_processes` on this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": "2"}
    return [
        subprocess.Popen(
            [sys.executable, "-m", "tests.training.two_processes", *arguments],
            env={**os.environ, **common, "RANK": str(rank), "OMP_NUM_THREADS": "1"},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]


def test_what_stops_a_process_from_outside_is_told_once():
    class Alone(Processes):
        rank, size = 0, 2

        def __init__(self):
            pass

    with pytest.raises(ProcessLost) as told, Alone()._answered(45):
        distributed._stopped(15, None)
    assert "another process has ended" not in str(told.value)
    assert str(told.value).count("expected all") == 1 and "--resume" in str(told.value)
    ended = pytest.raises(ProcessLost, match="process 0 of 2: another process has ended")
    with ended, Alone()._answered(45):
        raise RuntimeError("Connection closed by peer")


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    """By process, what it ended with in every training."""
    from safetensors.torch import load_file

    out = tmp_path_factory.mktemp("two")
    for process in launch("train", str(out)):
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    return [load_file(out / f"{rank}.safetensors") for rank in (0, 1)]


def part(weights, name):
    return {k.split("/", 1)[1]: v for k, v in weights.items() if k.startswith(f"{name}/")}


@pytest.mark.parametrize("name", PLANS)
def test_two_processes_end_with_the_weights_of_one(name, weights):
    one, two = trained(name), part(weights[0], name)
    assert one.keys() == two.keys()
    for key, value in one.items():
        assert torch.allclose(value, two[key], rtol=1e-7, atol=1e-9), key


def test_both_processes_have_the_same_weights_to_the_last_bit(weights):
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(value, weights[1][key]) for key, value in weights[0].items())


def test_dropout_is_on_and_repeats_itself(weights):
    first, second = (part(weights[0], f"{turn} turn") for turn in ("first", "second"))
    still = part(weights[0], "two views")
    assert all(torch.equal(value, second[key]) for key, value in first.items())
    assert any(not torch.allclose(value, still[key]) for key, value in first.items())


def test_a_process_that_dies_ends_the_other_with_a_message():
    started = time.monotonic()
    first, second = launch("die", "nowhere")
    second.communicate(timeout=120)
    _, errors = first.communicate(timeout=60)
    assert time.monotonic() - started < 120
    assert first.returncode == 1 and second.returncode == -9
    assert "ProcessLost: process 0 of 2: another process has ended" in errors


@pytest.mark.slow
def test_two_nodes_of_torchrun_train_the_run_of_one_process(tmp_path):
    from safetensors.torch import load_file

    sample = ROOT / "data" / "sample"
    words = ["-m", "superconext", "train", str(sample / "train.tsv"), "--quiet", "--threads", "1"]
    words += ["--dev", str(sample / "dev.tsv"), "--preset", "fast", "--no-baselines", "--no-report"]
    words += ["--epochs", "2", "--hidden-size", "16", "--vector-dimension", "16"]
    words += ["--dropout", "0", "--word-dropout", "0"]  # what is drawn differs by process
    env = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    one = [sys.executable, *words, "--out", str(tmp_path / "one")]
    subprocess.run(one, env=env, check=True, capture_output=True, timeout=120)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = [
        sys.executable,
        "-m",
        "torch.distributed.run",
        "--nnodes",
        "2",
        "--nproc-per-node",
        "1",
    ]
    common += ["--master-addr", "127.0.0.1", "--master-port", str(port)]
    nodes = [
        subprocess.Popen(
            [*common, "--node-rank", str(rank), *words, "--out", str(tmp_path / "two")],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in (0, 1)
    ]
    said = [node.communicate(timeout=180) for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], said
    assert "superconext" in said[0][0] and not said[1][0], "the first process alone prints"
    expected, found = (
        load_file(tmp_path / name / "encoder.safetensors") for name in ("one", "two")
    )
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        assert torch.allclose(value, found[name], rtol=1e-4, atol=1e-4), name


def test_alone_nothing_is_joined(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    with joined() as world:
        assert type(world) is World and current_world().main
    assert not torch.distributed.is_initialized()


@pytest.mark.parametrize(("rank", "size"), [("x", "2"), ("0", "many")])
def test_a_broken_environment_is_named(monkeypatch, rank, size):
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", size)
    with pytest.raises(ConfigError, match="as torchrun sets them"), joined():
        pass


def test_seeds_differ_in_every_number():
    seeds = {distributed._seed([a, b, c]) for a in (0, 1) for b in (0, 1) for c in (0, 1)}
    assert len(seeds) == 8 and min(seeds) >= 0


class Alone(Processes):
    """One of several processes, to which no other speaks."""

    def sum_(self, values):
        pass


def test_the_objective_draws_alike_in_all_processes_and_each_drops_for_itself():
    def drawn(rank, step=5):
        world, found = Alone(rank, 2, None), []
        torch.manual_seed(rank)

        def encode(rows):
            found.append(float(torch.rand(())))
            return EncoderOutput.of_sentences(torch.zeros(len(rows), 2))

        world.begin_step(3, step)
        for _ in range(2):  # views of a batch
            world.encode(encode, np.arange(4), np.full(4, 3))
        return found, float(torch.rand(()))

    (one, own), (two, other) = drawn(0), drawn(1)
    assert own == other and len({*one, *two}) == 4
    assert drawn(0) == (one, own) and drawn(0, step=6)[1] != own


def test_processes_that_read_other_files_are_refused():
    class Other(Alone):
        def broadcast(self, value):
            return {**value, "rows": 7}

    with pytest.raises(TrainingError, match="process 1 found rows 8, the first process 7; exp"):
        Other(1, 2, None).begin([], {"seed": 0, "rows": 8})


def test_all_begin_with_the_weights_of_the_first_process():
    class Later(Alone):
        def broadcast(self, value):
            return value

        def _broadcast(self, values):
            values.fill_(7)

    weights = [torch.nn.Parameter(torch.ones(2, 3)), torch.ones(4, 3, dtype=torch.int64).T]
    Later(1, 2, None).begin(weights, {"rows": 8})
    assert all((weight == 7).all() for weight in weights)


class Pair(Processes):
    """One of two processes, which are threads here."""

    def __init__(self, rank, barrier, given):
        super().__init__(rank, 2, None)
        self.barrier, self.given = barrier, given

    def sum_(self, values):
        self.given[self.rank] = values.clone()
        self.barrier.wait()
        total = self.given[0] + self.given[1]
        self.barrier.wait()
        values.copy_(total)


def in_two_threads(work):
    """What `work` returns of a process, for both."""
    barrier, given = threading.Barrier(2, timeout=30), {}
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda rank: work(Pair(rank, barrier, given)), (0, 1)))


def sparse(rows, value):
    values = torch.full((len(rows), 2), value)
    return torch.sparse_coo_tensor([rows], values, (5, 2), check_invariants=True)


def test_gradients_are_added_up_though_a_process_has_none():
    dense = torch.arange(10.0).view(5, 2)
    of_both = {
        "both": (dense, 2 * dense),
        "one": (None, dense),
        "none": (None, None),
        "rows": (sparse([1, 3, 3], 2.0), sparse([0, 3], 4.0)),
        "rows of one": (sparse([4], 1.0), None),
        "common": (dense, dense),
        "common rows": (sparse([2], 6.0), sparse([2], 6.0)),
    }

    def added(world):
        weights = {name: torch.nn.Parameter(torch.ones(5, 2)) for name in of_both}
        for name, weight in weights.items():
            grad = of_both[name][world.rank]
            weight.grad = None if grad is None else grad.clone()
        own, common = (
            [weight for name, weight in weights.items() if name.startswith("common") == shared]
            for shared in (False, True)
        )
        world.all_reduce_gradients(own, common)
        return {name: weight.grad for name, weight in weights.items()}

    for found in in_two_threads(added):
        assert found["none"] is None
        for name, grads in of_both.items():
            there = [grad.to_dense() for grad in grads if grad is not None]
            if there:
                total = sum(there) / (2 if name.startswith("common") else 1)
                assert torch.equal(found[name].to_dense(), total), name
                assert found[name].is_sparse == ("rows" in name)


def test_the_mean_is_that_of_all_losses_and_each_has_its_part_of_the_gradient():
    def meant(world):
        losses = torch.tensor([[1.0, 2.0, 6.0], [7.0]][world.rank], requires_grad=True)
        mean = world.mean(losses)
        mean.backward()
        return float(mean.detach()), losses.grad.tolist()

    assert in_two_threads(meant) == [(4.0, [0.25] * 3), (4.0, [0.25])]
