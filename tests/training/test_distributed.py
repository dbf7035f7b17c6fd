"""Two processes train what one would have trained, and notice when one of them is gone."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from superconext.core.errors import ConfigError
from superconext.training import distributed
from superconext.training.distributed import World, current_world, joined
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
