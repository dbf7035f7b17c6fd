"""The command line: words to calls, errors to one line and an exit code."""

from __future__ import annotations

import atexit
import contextlib
import errno
import io
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from superconext._version import __version__
from superconext.cli.cache import cache
from superconext.cli.data import data, sample
from superconext.cli.experiments import compare, fewshot, sweep
from superconext.cli.export import export, pull, push, serve
from superconext.cli.labelling import audit, merge, suggest
from superconext.cli.labelling import explain as explain_texts
from superconext.cli.options import missing, no_such_option
from superconext.cli.train import pretrain, train
from superconext.cli.use import embed, evaluate, predict, report
from superconext.cli.vectors import vectors
from superconext.core.errors import (
    MissingExtraError,
    SuperConTextError,
    for_terminal,
    needs_training,
)
from superconext.core.files import cache_dir
from superconext.core.process import skip_final_collection, wait_briefly
from superconext.core.registry import own_code_at_fault, own_code_raising

_ROOM = "expected free disk space: make room and run the command again"
_MEMORY = "out of memory; expected more of it: close other programs or lower batch_size"
_ADVICE = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EFBIG: "expected leave to write a file of that size: lift the limit (ulimit -f), or "
    "choose another disk",
    errno.EACCES: "expected permission: check who owns it",
    errno.EROFS: "expected a folder that can be written to: choose another",
    errno.EADDRINUSE: "expected a free port: choose another with --port",
    errno.EADDRNOTAVAIL: "expected an address of this machine: check --host",
}
#: How torch, NumPy, C++ and the loader of libraries say that memory has run out.
_SIGNS = (
    "can't allocate memory",
    "cannot allocate memory",
    "unable to allocate",
    "bad_alloc",
    "out of memory",
    "can't start new thread",
    "failed to map segment",
)


def explain(error: BaseException) -> str:
    """The line for any error but those of wrong usage."""
    if _is_memory(error):
        return _MEMORY
    if isinstance(error, SuperConTextError):
        return str(error)
    if isinstance(error, OSError):
        name = error.filename or "a file"
        advice = _ADVICE.get(error.errno or 0, "check the path and run the command again")
        if error.errno in (errno.EACCES, errno.EROFS) and _is_of_cache(error.filename):
            advice += ", or name a folder elsewhere as SUPERCONEXT_CACHE"
        return f"{own_code_raising(error)}{name}: {error.strerror or error}; {advice}"
    if isinstance(error.__cause__ or error.__context__, KeyboardInterrupt):
        # Code in C may raise another error in its place.
        return "interrupted; run the command again, or resume it as said above"
    return own_code_at_fault(error) or (
        f"found {type(error).__name__} ({error}), which was not expected: "
        "run again with --debug and report what it shows"
    )


def _is_of_cache(name: object) -> bool:
    """Whether a path is in the cache, or above it."""
    try:
        path, cache = Path(str(name)), cache_dir()
    except OSError:
        return False
    return path.is_relative_to(cache) or cache.is_relative_to(path)


def _is_memory(error: BaseException) -> bool:
    """Whether an error, or what it was raised from, tells of memory that has run out."""
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            return False
        if isinstance(seen, MemoryError) or getattr(seen, "errno", None) == errno.ENOMEM:
            return True
        if isinstance(seen, RuntimeError | ImportError | OSError) and not isinstance(
            seen, SuperConTextError
        ):
            said = str(seen).lower()
            if any(sign in said for sign in _SIGNS):
                return True
        seen = seen.__cause__ or seen.__context__
    return False


#: Where a context keeps the command line.
_WORDS = "superconext.words"


class _Group(click.Group):
    """Shows commands under headings, in the order a user meets them, and says of an option that a
    command does not have what to use instead."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[_WORDS] = [*args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            raise no_such_option(error, ctx.meta[_WORDS]) from None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        limit = formatter.width - 6 - max(map(len, self.commands))
        for heading, commands in _COMMANDS.items():
            rows = [(command.name or "", command.get_short_help_str(limit)) for command in commands]
            with formatter.section(heading):
                formatter.write_dl(rows)


@click.group(
    cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="superconext")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """Train and evaluate text classifiers and sentence representations with few labels."""


_COMMANDS: dict[str, tuple[click.Command, ...]] = {
    "Train and use a run": (train, evaluate, predict, embed, report),
    "Label": (audit, suggest, explain_texts),
    "Experiments": (compare, fewshot, sweep),
    "Word vectors, encoders and data": (sample, vectors, pretrain, data, cache),
    "Export, serve and share a run": (export, serve, push, pull),
}
for _command in (command for commands in _COMMANDS.values() for command in commands):
    cli.add_command(_command)
data.add_command(merge)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 data, model or machine at fault, 2 usage, or a
    package is not installed."""
    words = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in words
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed, as by a daemon
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    real = sys.stdout is sys.__stdout__
    if real and isinstance(sys.stdout.buffer, io.RawIOBase):
        # Unbuffered (python -u): what a full disk takes in part would be lost without a word.
        sys.stdout = open(sys.stdout.fileno(), "w", closefd=False)  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal shows what it can; what goes elsewhere is UTF-8, on Windows too.
            encoding = None if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors="backslashreplace")
    wait_briefly()
    skip_final_collection()
    try:
        # --debug is accepted anywhere on the line.
        plain = [word for word in words if word != "--debug"]
        # A polite request to end is as Ctrl-C, which saves.
        verb = next((word for word in plain if not word.startswith("-")), "")
        extra = _BESIDE_TRAINING.get(verb, "train")
        with (
            _on_signal(signal.SIGTERM, signal.default_int_handler),
            needs_training(f"superconext {verb}", extra),
        ):
            cli(args=plain, obj=plain, standalone_mode=False)
    except click.ClickException as error:
        _show(_all_missing(error))
        sys.exit(error.exit_code)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of a pipe has gone, as `head` does: nobody is left to tell.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        sys.exit(1)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted before anything could be saved; run the command again", debug)
    except MissingExtraError as error:
        _fail(str(error), debug, 2)
    except Exception as error:
        if isinstance(error, OSError) and not error.filename and _is_of_output(error):
            error.filename = "standard output"
            # What is left of it would be refused once more when the program ends.
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        _fail(explain(error), debug)


#: Extras of the commands that need more than `train` to open a run.
_BESIDE_TRAINING = {"push": "hub", "pull": "hub"}


def _is_of_output(error: OSError) -> bool:
    """Whether the system has refused what was written to standard output."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and any(
        value is sys.stdout for value in trace.tb_frame.f_locals.values()
    )


def _all_missing(error: click.ClickException) -> click.ClickException:
    """The error, with all that is missing where click names the first alone."""
    context = getattr(error, "ctx", None)
    if not isinstance(error, click.MissingParameter) or context is None:
        return error
    return missing(context)


def _show(error: click.ClickException) -> None:
    """Say how a command is called and what is wrong, the latter as every other error is said."""
    context = getattr(error, "ctx", None)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return
    if context is not None:
        usage = context.command.get_usage(context).replace("Usage:", "usage:")
        click.echo(f"{usage} (help: {context.command_path} --help)", err=True)
    click.echo(f"error: {' '.join(error.format_message().split())}", err=True)


@contextlib.contextmanager
def _on_signal(number: int, handler: Any) -> Iterator[None]:
    """Inside the block the signal has this handler."""
    try:
        before = signal.signal(number, handler)
    except ValueError:  # only a main thread may
        yield
        return
    try:
        yield
    finally:
        signal.signal(number, before)


def _fail(message: str, debug: bool, code: int = 1) -> None:
    # A second Ctrl-C finds the end under way; torch, too, has work to do there.
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)
    with _on_signal(signal.SIGINT, signal.SIG_IGN):
        if debug:
            import traceback

            traceback.print_exc()
        print("error:", for_terminal(" ".join(message.split())), file=sys.stderr)
    sys.exit(code)
