"""Keeping freed memory: asked for on glibc, left alone where the user decided."""

import os
import subprocess
import sys

import pytest

from superconext.core import process

FAULTS = """
import resource
from superconext.core.process import keep_freed_memory
kept = keep_freed_memory()
import torch
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(10_000_000)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
for _ in range(6):
    last = faults()
print(kept, last)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="an allocator of Linux")
def test_a_freed_block_is_used_again():
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("MALLOC_", "GLIBC_"))}
    found = subprocess.run(
        [sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True, env=environment
    )
    kept, faults = found.stdout.split()
    if kept == "False":
        pytest.skip("not glibc")
    assert int(faults) < 100  # of the ten thousand pages of 40 MB


@pytest.mark.parametrize(
    ("name", "value"),
    [("MALLOC_TRIM_THRESHOLD_", "1"), ("GLIBC_TUNABLES", "glibc.malloc.mmap_threshold=1")],
)
def test_the_users_own_settings_stand(monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    assert process.keep_freed_memory() is False


def test_other_systems_are_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert process.keep_freed_memory() is False


RESIDENT = """
from superconext.core.process import give_back_freed_memory, keep_freed_memory
kept = keep_freed_memory()
import torch
def resident():
    line = next(x for x in open("/proc/self/status") if x.startswith("VmRSS"))
    return int(line.split()[1]) / 1024
blocks = [torch.ones(2_500_000) for _ in range(40)]  # 10 MB each
still = blocks[::8]
full = resident()
del blocks
left = resident()
give_back_freed_memory()
print(kept, full - left, full - resident(), float(sum(map(torch.sum, still))) == 12_500_000)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="an allocator of Linux")
def test_what_was_kept_can_be_given_back():
    found = subprocess.run(
        [sys.executable, "-c", RESIDENT], capture_output=True, text=True, check=True
    )
    kept, at_once, after, whole = found.stdout.split()
    if kept == "False":
        pytest.skip("not glibc, or set up by the user")
    assert float(at_once) < 100 and float(after) > 250 and whole == "True"
