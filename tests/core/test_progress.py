"""Bars and lines on stderr."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import time
import types

import pytest

from superconext.core import progress


@pytest.mark.parametrize(("name", "shown"), [("Shell", True), ("TerminalShell", False)])
def test_shells_derived_from_jupyters_are_notebooks(monkeypatch, name, shown):
    jupyter = type("ZMQInteractiveShell" if shown else "Other", (), {})
    shell = type(name, (jupyter,), {})()  # as Colab's
    module = types.SimpleNamespace(get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", module)
    assert progress.in_notebook() == shown


def test_a_bar_moves_where_no_share_is_known(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(progress, "_DELAY", 0.05)
    monkeypatch.setattr(progress, "_TICK", 0.02)
    monkeypatch.setattr(sys, "stderr", shown := Terminal())
    with progress.TerminalProgress().bar("thinking") as advance:
        time.sleep(0.3)
        clocks = shown.getvalue().count("thinking")
        advance(0.5)
        time.sleep(0.1)
    assert clocks >= 3 and "50%" in shown.getvalue()
    monkeypatch.setattr(sys, "stderr", piped := io.StringIO())
    with progress.TerminalProgress().bar("thinking") as advance:
        time.sleep(0.1)
        advance(0.5)
    assert not piped.getvalue()


def test_where_there_is_no_terminal_a_line_breaks_a_long_silence(monkeypatch):
    monkeypatch.setattr(progress, "_LINES", 0.05)
    monkeypatch.setattr(sys, "stderr", piped := io.StringIO())
    told = progress.TerminalProgress()
    with told.bar("thinking") as advance:
        advance(0.2)
        time.sleep(0.1)
        advance(0.4)
        advance(0.5)
    assert piped.getvalue() == "thinking: 40%\n"
    with progress.TerminalProgress(quiet=True).bar("thinking") as advance:
        time.sleep(0.1)
        advance(0.5)
    assert piped.getvalue() == "thinking: 40%\n"


def test_a_terminal_that_says_it_has_no_size_gets_a_bar():
    pty = pytest.importorskip("pty")
    code = (
        "import time; from superconext.core import progress; progress._DELAY = 0.05\n"
        "with progress.TerminalProgress().bar('thinking') as advance: time.sleep(0.7)"
    )
    master, slave = pty.openpty()
    subprocess.run([sys.executable, "-c", code], stderr=slave, check=True, timeout=60)
    os.close(slave)
    assert b"thinking" in os.read(master, 1000)
    os.close(master)


def test_the_work_goes_on_where_the_reader_of_the_messages_has_left():
    code = (
        "from superconext.core.progress import TerminalProgress as P; p = P()\n"
        "for n in range(20000): p.say(f'line {n}')\n"
        "print('done')"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr.readline() == "line 0\n"
        process.stderr.close()
        assert process.stdout.read() == "done\n"
    assert process.returncode == 0


def test_a_closed_stderr_hears_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    told = progress.TerminalProgress()
    told.say("a line")
    told.warn("another")
    with told.bar("thinking") as advance:
        advance(0.5)
