"""`superconext pretrain` by two processes, each on its share of the sentences."""

import json
import os
import random
import socket
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from safetensors.torch import load_file

from superconext.data.token_store import build_store
from superconext.training.pretraining.make import Shard
from tests.cli.conftest import BAD, COMMON, GOOD

ROOT = Path(__file__).parents[3]
SETTINGS = "--vector-dimension 6 --hidden-size 5 --batch-size 20 --epochs 4 --emoji-epochs 2"
SETTINGS += " --dropout 0 --word-dropout 0 --threads 1"  # what is drawn differs by process


def text():
    """1,800 lines, two in three with an emoji that says whether their words are good or bad."""
    draw, lines = random.Random(0), []
    for k in range(1800):
        words, face = [(GOOD, "😂"), (BAD, "😭"), (COMMON, "")][k % 3]
        line = [*draw.choices(COMMON, k=draw.randint(1, 9)), *draw.choices(words, k=2), face]
        lines.append(" ".join(line))
    return "\n".join(lines)


def start(folder, out, size=1):
    """So many processes of one call, as torchrun starts them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(size)}
    common |= {"SUPERCONEXT_CACHE": str(folder / "cache"), "PYTHONPATH": str(ROOT)}
    words = ["pretrain", str(folder / "text.txt"), "--out", str(folder / out), *SETTINGS.split()]
    return [
        subprocess.Popen(
            [sys.executable, "-m", "superconext", *words],
            env={**os.environ, **common, "RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]


def ended(processes):
    """What each said on both streams; all of them have to end well."""
    said = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), said
    return said


def stop_when_saved(processes, folder):
    """Kill the first process as soon as a state of the training stands in the cache."""
    patience = time.monotonic() + 60
    while not [*folder.glob("cache/encoders/*.states/*.safetensors")]:
        assert time.monotonic() < patience and processes[0].poll() is None
        time.sleep(0.005)
    processes[0].kill()
    _, errors = processes[1].communicate(timeout=60)
    assert processes[1].returncode == 1 and "another process has ended" in errors
    processes[0].communicate()


@pytest.mark.slow
def test_two_processes_that_are_stopped_and_go_on_make_the_encoder_of_one(tmp_path):
    (tmp_path / "text.txt").write_text(text(), encoding="utf-8")
    ended(start(tmp_path, "one"))
    stop_when_saved(start(tmp_path, "two", 2), tmp_path)
    first, second = ended(start(tmp_path, "two", 2))
    assert "resuming after step" in first[1]
    assert second == ("", ""), "the first process alone prints"
    one, two = (
        json.loads((tmp_path / name / "encoder.json").read_text()) for name in ("one", "two")
    )
    assert (one["processes"], two["processes"]) == (1, 2)
    assert one["emoji"] == two["emoji"] and one["emoji"]["sentences"] >= 1000
    for part in ("history", "emoji_history"):
        losses = [
            [
                record[name]
                for record in facts[part]
                for name in ("loss", "held_loss")
                if name in record
            ]
            for facts in (one, two)
        ]
        np.testing.assert_allclose(*losses, rtol=1e-5)
    expected, found = (
        load_file(tmp_path / name / "encoder.safetensors") for name in ("one", "two")
    )
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(value, found[name], rtol=1e-3, atol=1e-4, err_msg=name)
    again, _ = ended(start(tmp_path, "again", 2))
    assert "yes" in next(line for line in again[0].splitlines() if line.startswith("cached"))


def test_shares_together_are_the_batch():
    store = build_store([[k] * (k % 4 + 1) for k in range(2, 12)], 9)
    trained, rows = np.array([0, 2, 3, 4, 6, 7, 9]), np.array([7, 2, 9, 0])
    read = []
    for rank in range(3):
        numbers = trained[rank::3]
        tokens, lengths = store.take(numbers)
        share = Shard(tokens, np.append(0, np.cumsum(lengths)), None, numbers)
        assert len(share) == len(numbers)
        tokens, lengths = share.take(rows)
        assert lengths.sum() == len(tokens)
        read += tokens.tolist()
    assert sorted(read) == sorted(store.take(rows)[0].tolist())
    assert Shard(store.tokens[:0], np.zeros(1, np.int64)).take(rows)[1].tolist() == []
