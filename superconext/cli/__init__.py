"""The command line: words to calls, errors to one line and an exit code."""

from __future__ import annotations

import errno
import os
import sys

import click

from superconext._version import __version__
from superconext.cli.compare import compare
from superconext.cli.data import data
from superconext.cli.export import export
from superconext.cli.fewshot import fewshot
from superconext.cli.sweep import sweep
from superconext.cli.train import train
from superconext.cli.use import embed, evaluate, predict
from superconext.cli.vectors import vectors
from superconext.errors import SuperConTextError


class _Group(click.Group):
    """Shows commands in the order a user meets them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(__version__, prog_name="superconext")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def cli(debug: bool) -> None:
    """Train sentence representations on a few labelled sentences and judge them honestly."""


for command in (train, evaluate, predict, embed, compare, fewshot, sweep, vectors, data, export):
    cli.add_command(command)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 data, model or machine at fault, 2 usage."""
    words = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in words
    # Read when torch is first imported: idle workers sleep instead of spinning, for on a
    # shared machine spinning ones slow everybody, themselves included.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    try:
        # --debug is accepted anywhere on the line.
        plain = [word for word in words if word != "--debug"]
        cli(args=plain, obj=plain, standalone_mode=False)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.exceptions.Exit as error:
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of a pipe has gone, as `head` does: nobody is left to tell.
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
        sys.exit(1)
    except (click.Abort, KeyboardInterrupt):
        _fail("interrupted before anything could be saved; run the command again", debug)
    except (SuperConTextError, OSError, MemoryError) as error:
        _fail(explain(error), debug)
    except Exception as error:
        _fail(
            f"found {type(error).__name__} ({error}), which was not expected: "
            "run again with --debug and report what it shows",
            debug,
        )


def explain(error: BaseException) -> str:
    """One line for an error: what was found, what was expected, what to do."""
    if isinstance(error, MemoryError):
        return "out of memory; expected more of it: close other programs or lower batch_size"
    if isinstance(error, OSError) and not isinstance(error, SuperConTextError):
        name = error.filename or "a file"
        advice = {
            errno.ENOSPC: "expected free disk space: make room and run the command again",
            errno.EDQUOT: "expected free disk space: make room and run the command again",
            errno.EACCES: "expected permission: check who owns it",
            errno.EROFS: "expected a folder that can be written to: choose another",
        }.get(error.errno or 0, "check the path and run the command again")
        return f"{name}: {error.strerror or error}; {advice}"
    return str(error)


def _fail(message: str, debug: bool) -> None:
    if debug:
        import traceback

        traceback.print_exc()
    print("error:", " ".join(message.split()), file=sys.stderr)
    sys.exit(1)
