"""When does Python look for garbage? Not while a model is being made ready, which leaves none.

Importing torch and reading a large vocabulary make some hundred thousand objects that stay. The
collector looks through all of them again and again, and once more when the program ends: together
a third of the processor time until a small file is predicted.
"""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def not_collecting() -> Iterator[None]:
    """Inside the block nothing is collected; afterwards all is as it was."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def spare_the_end() -> None:
    """Let the program end without a last look: what it leaves goes with the process."""
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
