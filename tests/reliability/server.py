"""Commands in children of one warm process, each with a fault in it: a kill, a full disk.

A line of JSON on standard input asks for a command, a line of JSON on standard output answers.
Run as `python -m tests.reliability.server`. Importing torch takes seconds and a tiny training a
fraction of one, so the children are forked from a process that has imported everything.

An *event* is a moment at which a command touches a folder: a file is opened for writing, a name
made, changed or removed, a file or a folder sent to the disk (before and after it is).
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

_NAMES = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.truncate"}


class Fault:
    """Counts the events below `folder` and, at number `at`, does `how`.

    how: a signal's name, sent to this process; `tear`, the kernel kills it in the next write
    that goes past `size` bytes of a file; `limit`, every such write fails (EFBIG), as over a
    quota; `full`, nothing can be opened for writing, made or synced any more (ENOSPC).
    """

    def __init__(self, folder: str, at: int, how: str, size: int) -> None:
        self.folder, self.at, self.how, self.size = folder, at, how, size
        self.count, self.full, self.owner = 0, False, os.getpid()

    def arm(self) -> None:
        from superconext.core import files as folders

        sync, exchange = os.fsync, folders.exchange

        def watched_sync(handle):
            self.event()
            sync(handle)
            self.event()

        def watched_exchange(one, other):
            self.event()
            done = exchange(one, other)
            self.event()
            return done

        os.fsync, folders.exchange = watched_sync, watched_exchange
        sys.addaudithook(self.hear)

    def hear(self, name, arguments) -> None:
        if name == "open":
            path, _, flags = arguments
            if isinstance(path, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                return
        elif name not in _NAMES or isinstance(arguments[0], int):
            return
        if os.path.abspath(os.fsdecode(arguments[0])).startswith(self.folder):
            self.event(frees=name in ("os.remove", "os.rmdir"))

    def event(self, frees: bool = False) -> None:
        if os.getpid() != self.owner:
            return
        self.count += 1
        if self.count == self.at:
            self.act()
        if self.full and not frees:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def act(self) -> None:
        if self.how in ("tear", "limit"):
            act = signal.SIG_DFL if self.how == "tear" else signal.SIG_IGN
            signal.signal(signal.SIGXFSZ, act)
            hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
            resource.setrlimit(resource.RLIMIT_FSIZE, (self.size, hard))
        elif self.how == "full":
            self.full = True
        else:
            os.kill(self.owner, signal.Signals[self.how])


def child(asked: dict, out: int, err: int, told: str) -> None:
    """Run the command and leave; never returns."""
    import torch

    from superconext.cli import main

    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.stdout, sys.stderr = (os.fdopen(number, "w", closefd=False) for number in (1, 2))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    torch.set_num_threads(1)
    if asked.get("cache"):
        os.environ["SUPERCONEXT_CACHE"] = asked["cache"]
    fault = Fault(asked["folder"], asked.get("at", 0), asked.get("how", ""), asked.get("size", 0))
    fault.arm()
    if asked.get("memory"):
        now = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (now + asked["memory"],) * 2)
    code = 0
    try:
        main(asked["words"])
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1
    except KeyboardInterrupt:
        print("error: interrupted before the command began", file=sys.stderr)
        code = 1
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 99
    for late in (signal.SIGINT, signal.SIGTERM):
        signal.signal(late, signal.SIG_IGN)
    sys.stdout.flush()
    sys.stderr.flush()
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    fault.at = 0
    fault.full = False
    Path(told).write_text(str(fault.count))
    os._exit(code)


def read_all(handle: int) -> str:
    with os.fdopen(handle, encoding="utf-8") as stream:
        return stream.read()


def serve() -> None:
    """Answer until standard input ends."""
    import sklearn.linear_model
    import torch._dynamo  # noqa: F401

    import superconext.experiments.compare
    import superconext.report.figures
    import superconext.runs.train
    import superconext.training.pretraining.make
    import superconext.vectors.training

    with contextlib.suppress(ImportError):
        import gensim.models  # noqa: F401
    superconext.report.figures.available = lambda: False
    # The texts of the tests are tiny.
    superconext.training.pretraining.language_model.SAVED_EVERY = 4
    scratch = tempfile.mkdtemp()
    told = os.path.join(scratch, "told")
    assert sklearn.linear_model and threading.active_count() == 1
    print("ready", flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        Path(told).unlink(missing_ok=True)
        # Pipes, for a limit on file sizes must not cut what the command says; they hold it all.
        out, err = os.pipe(), os.pipe()
        began = time.perf_counter()
        number = os.fork()
        if number == 0:
            child(asked, out[1], err[1], told)
        os.close(out[1])
        os.close(err[1])
        if asked.get("signal"):
            time.sleep(asked["after"])
            if os.waitid(os.P_PID, number, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                os.kill(number, signal.Signals[asked["signal"]])
        status = os.waitpid(number, 0)[1]
        answer = {
            "code": os.waitstatus_to_exitcode(status),
            "out": read_all(out[0]),
            "err": read_all(err[0]),
            "seconds": time.perf_counter() - began,
            "events": int(Path(told).read_text()) if Path(told).exists() else -1,
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
