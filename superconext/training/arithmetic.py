"""Arithmetic that is asked for and that this machine is slow at, or has no compiler for."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from contextlib import suppress
from timeit import repeat
from typing import Protocol

import torch

from superconext.core.files import cache_dir, write_json
from superconext.core.process import processor_kind
from superconext.core.progress import Progress
from superconext.encoders.compiled_gates import warn_without_kernel

#: File of the cache: of each kind of processor, what `slowdown` has given there.
FILE = "bfloat16.json"

#: Ratios up to here are no slowdown worth a line.
SLOWER = 1.2


class Asked(Protocol):
    """What asks: of training, with a `device`, or of pretraining, which has a CPU alone."""

    @property
    def precision(self) -> str: ...

    @property
    def compile(self) -> bool: ...


def warn_where_slow(configs: Iterable[Asked], progress: Progress) -> None:
    """Warn, once, where one of the configurations asks for an arithmetic that is slower here, or
    for a compiler that is not."""
    on_cpu = [one for one in configs if getattr(one, "device", "cpu") == "cpu"]
    if any(one.compile for one in on_cpu):
        warn_without_kernel(progress)
    if any(one.precision == "bfloat16" for one in on_cpu) and (ratio := _remembered()) > SLOWER:
        progress.warn(
            f"precision = 'bfloat16': found that this processor takes {ratio:.1f} times as long "
            "for a matrix product in it as in float32, expected it to be faster, as with AVX-512 "
            "BF16 or AMX: use --precision float32"
        )


def slowdown() -> float:
    """How many times as long a matrix product takes in bfloat16 as in float32; some 20 ms."""

    def seconds(kind: torch.dtype) -> float:
        one, other = torch.ones(64, 128, dtype=kind), torch.ones(128, 256, dtype=kind)
        return min(repeat(lambda: torch.mm(one, other), repeat=5, number=1))

    return seconds(torch.bfloat16) / seconds(torch.float32)


def _remembered() -> float:
    """`slowdown` of this kind of processor, version of torch and limit for torch's library."""
    about = [torch.__version__, os.environ.get("ONEDNN_MAX_CPU_ISA", ""), processor_kind()]
    kind = hashlib.sha256("\n".join(about).encode()).hexdigest()[:16]
    file, known = cache_dir() / FILE, {}
    with suppress(OSError, ValueError, TypeError):
        known = dict(json.loads(file.read_text("utf-8")))
    if not isinstance(known.get(kind), float):
        known[kind] = slowdown()
        with suppress(OSError):
            file.parent.mkdir(parents=True, exist_ok=True)
            write_json(file, known)
    return float(known[kind])
