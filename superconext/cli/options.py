"""Options that several commands share, one for every parameter among them, and printing."""

from __future__ import annotations

import difflib
import functools
import itertools
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import click

from superconext.config.parameters import (
    BY_NAME,
    ELSEWHERE,
    FILE_PARAMETERS,
    GROUPS,
    PARAMETERS,
    REMOVED,
    Parameter,
    options_by_name,
    removal,
)
from superconext.core import files
from superconext.core.errors import (
    ConfigError,
    DataError,
    OptionError,
    VectorsError,
    for_terminal,
    listed,
    plural,
)
from superconext.core.process import processors
from superconext.core.progress import WARNING
from superconext.data.lines import STDIN
from superconext.encoders import ENCODERS
from superconext.objectives.catalogue import OBJECTIVES
from superconext.probe import PROBES

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def shared(*options: Decorator) -> Decorator:
    """One decorator for several options, which help shows in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


def number(
    flag: str, default: Any, help: str, kind: click.ParamType | None = None, name: str = ""
) -> Decorator:
    """An option that takes a whole number from 1, or another kind of number."""
    return click.option(
        *filter(None, (flag, name)),
        type=kind or click.IntRange(1),
        default=default,
        show_default=default is not None,
        help=help,
    )


def switch(flag: str, help: str, *name: str) -> Decorator:
    """An option that is there or not."""
    return click.option(flag, *name, is_flag=True, help=help)


def quiet_option(help: str) -> Decorator:
    """`--quiet`, which is read before the others, as they may `tell` of what they are given."""
    return click.option("--quiet", is_flag=True, is_eager=True, help=help)


JSON = switch("--json", "Print one JSON document.", "as_json")
QUIET = quiet_option("Show only warnings and errors on stderr.")
TEXT_COLUMN = click.option(
    "--text-column", metavar="NAME", help="Text column: its name, or its number from 1."
)
LABEL_COLUMN = click.option(
    "--label-column",
    metavar="NAME",
    help="Label column: its name, or its number from 1; of several annotators, their columns with "
    "commas between.",
)
HEADER = click.option(
    "--header/--no-header",
    default=None,
    help="Whether the first row is a header.  [default: detected]",
)
COLUMNS = shared(TEXT_COLUMN, LABEL_COLUMN)


def _known_encoding(ctx: click.Context, option: click.Parameter, name: str | None) -> str | None:
    from superconext.data.lines import check_encoding

    return None if name is None else as_usage(check_encoding, name)


ENCODING = click.option(
    "--encoding",
    metavar="NAME",
    callback=_known_encoding,
    help="Encoding of files that are not UTF-8, such as windows-1256.",
)
DROP_INCOMPLETE = click.option(
    "--drop-incomplete",
    "--drop-unlabelled",
    "drop_unlabelled",
    is_flag=True,
    help="Leave out rows without a text or label; train and compare still learn word vectors from "
    "texts without a label.",
)
_READING: dict[str, Decorator] = {
    "header": HEADER,
    "encoding": ENCODING,
    "fix_text": switch(
        "--fix-text", "Repair text saved in the wrong encoding (needs the extra ftfy)."
    ),
    "drop_unlabelled": DROP_INCOMPLETE,
    "fold_label_case": click.option(
        "--fold-label-case/--no-fold-label-case",
        default=None,
        help="Merge, or keep, labels that differ only in case, spaces, final .0 or Arabic "
        "spelling.",
    ),
}
CONFIG = click.option(
    "--config", metavar="TOML", help="Read parameters from this file; options override it."
)
FIGURES = click.option(
    "--figures",
    metavar="[svg][,pdf]",
    default="",
    callback=lambda _context, _option, value: _formats(value),
    help="Also write the figures as SVG or PDF, for papers.",
)


def _used(_context: click.Context, _option: click.Parameter, threads: int | None) -> int | None:
    """Threads, with a note where they are more than can run at once."""
    usable = processors()
    if threads is not None and threads > usable:
        tell(
            f"note: --threads {threads}: found {plural(usable, 'processor')} to use; expected no "
            "more threads, which make it slower"
        )
    return threads


THREADS = click.option(
    "--threads",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    callback=_used,
    help="Number of processor threads.",
)
SPLITS = click.option(
    "--splits",
    type=click.Choice(["given", "resample"]),
    help="Use the files as they are, or draw an 80/10/10 split of all rows with each seed; "
    "sweep draws the test rows once.  "
    "[default: given with --test, else resample]",
)
LEAVE_OUT = click.option(
    "--leave-out",
    multiple=True,
    metavar="FILE",
    help="Leave out the texts of this labelled file, such as test rows; may be repeated.",
)
BRIDGE = click.option(
    "--bridge", type=click.Choice(BY_NAME["bridge"].choices or ()), help=BY_NAME["bridge"].help
)


def _formats(value: str) -> tuple[str, ...]:
    formats = tuple(dict.fromkeys(name.strip().lower() for name in value.split(",") if name))
    if not {"png", "svg", "pdf"}.issuperset(formats):
        raise click.BadParameter(f"found {value!r}; expected svg, pdf or both with a comma between")
    return tuple(name for name in formats if name != "png")


def _reading(*names: str) -> Decorator:
    """Options of how files are read, which a command gets in one argument, `reading`."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def call(*arguments: Any, **options: Any) -> Any:
            chosen = {name: options.pop(name) for name in names}
            return command(*arguments, reading=chosen, **options)

        return shared(*(_READING[name] for name in names))(call)

    return add


READING = _reading(*_READING)
TEXT_READING = _reading("encoding", "fix_text")
LABEL_READING = _reading("encoding", "fix_text", "fold_label_case")


def reading_flags(given: Mapping[str, Any]) -> list[str]:
    """How a file was read, as the words of a command that reads it so too.

    given: `text_column`, `label_column`, and what the options of `READING` were set to.
    """
    flags = []
    for name in ("text_column", "label_column", *_READING):
        value, flag = given.get(name), name.replace("_", "-")
        flag = {"drop-unlabelled": "drop-incomplete"}.get(flag, flag)
        if isinstance(value, str):
            flags.append(f"--{flag} {shlex.quote(value)}")
        elif value or (value is False and name in _UNDECIDED):
            flags.append(f"--{'' if value else 'no-'}{flag}")
    return flags


#: Options of `READING` that the reader decides where they are not given.
_UNDECIDED = ("header", "fold_label_case")


def out(holds: str, metavar: str = "FOLDER") -> Decorator:
    """`--out` and `--force` of a command that writes a folder."""
    return shared(
        click.option(
            "--out",
            required=True,
            metavar=metavar,
            help="Folder to write; must not exist.",
        ),
        switch("--force", f"Replace {metavar} if it holds {holds}."),
    )


#: Endings of the files that commands write.
TABLES = (".csv", ".tsv", ".tab", ".txt")
DOCUMENTS = (".json", ".jsonl", ".ndjson")

CSV_OR_TSV = "CSV if its name ends in .csv (with an input .csv's separator), else TSV"


def tables(options: Mapping[str, Any]) -> Sequence[str]:
    """The endings of a command that writes tables."""
    return TABLES


def tables_or_json(options: Mapping[str, Any]) -> Sequence[str]:
    """The endings of a command that writes tables, and with `--json` a document."""
    return DOCUMENTS if options["as_json"] else TABLES


def out_file(
    form: str = CSV_OR_TSV,
    metavar: str = "FILE",
    required: bool = False,
    endings: Callable[[Mapping[str, Any]], Sequence[str]] = tables_or_json,
) -> Decorator:
    """`--out` and `--force` of a command that may write one file; the command gets `out` alone.

    A file that cannot be written, that is there already, or whose name ends otherwise than those of
    the files that the command writes, is refused before any work.

    endings: those, the most usual first, of what the command writes with its other options.
    """

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def call(*arguments: Any, out: str | None, force: bool, **options: Any) -> Any:
            path = Path(out or "")
            known, ending = endings(options), path.suffix.lower()
            if ending not in ("", *known):
                mend = "name the file so"
                other = {**options, "as_json": not options.get("as_json")}
                if ending in endings(other):
                    mend += ", or add --json" if other["as_json"] else ", or leave out --json"
                raise DataError(
                    f"{out}: found the ending {path.suffix}, expected {' or '.join(known[:2])}: "
                    f"{mend}"
                )
            if out is not None and not path.parent.is_dir():
                raise DataError(
                    f"{out}: found no folder {path.parent}; expected one: make it first"
                )
            if out is not None and os.path.lexists(path) and not (force and path.is_file()):
                mend = "choose another" + " or add --force" * path.is_file()
                raise DataError(f"{out} exists already; expected a new file: {mend}")
            for given in options.values() if out is not None and path.exists() else ():
                for read in given if isinstance(given, tuple) else (given,):
                    if isinstance(read, str) and os.path.isfile(read) and path.samefile(read):
                        raise DataError(
                            f"{out} is a file that is read; expected another to write: what is "
                            "made of it would take its place"
                        )
            if out is None or force:
                return command(*arguments, out=out, **options)
            try:
                with files.only_new(path):
                    return command(*arguments, out=out, **options)
            except FileExistsError as error:
                if error.filename != str(path):
                    raise
                raise DataError(
                    f"{out} was written by somebody else meanwhile; expected a new file: choose "
                    "another or add --force"
                ) from None

        return shared(
            click.option(
                "--out",
                metavar=metavar,
                required=required,
                help=f"File to write: {form}; must not exist.",
            ),
            switch("--force", f"Replace {metavar} if it exists."),
        )(call)

    return add


def echo_rows(text: str, stream: IO[str] | None = None) -> None:
    """Rows of somebody's texts, whose lines end as they say: to the character, but for what a
    terminal would obey. stream: stdout where None is given."""
    on_terminal = stream is None and sys.stdout.isatty()
    # With `color`, click takes no such characters away.
    click.echo(for_terminal(text) if on_terminal else text, stream, nl=False, color=True)


def echo_json(document: Any) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(document, ensure_ascii=False))


def echo_notes(notes: Iterable[str], source: str = "") -> None:
    """Notes, after the name of what they are about, as `tell` shows them; warnings are among them,
    and are always shown."""
    lead = f"{source}: " if source else ""
    for note in notes:
        bare = note.removeprefix(WARNING)
        if bare == note:
            tell(f"note: {lead}{note}")
        else:
            click.echo(f"warning: {lead}{bare}", err=True)


def as_usage(check: Callable[..., Any], *arguments: Any) -> Any:
    """Call a check; a ConfigError from it is wrong usage."""
    try:
        return check(*arguments)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


#: Values in the example of a message, by the parameter's name; others are shown as in help.
_SAMPLES = {
    "train_file": "train.csv",
    "train_files": "train.csv",
    "run": "runs/mine",
    "runs": "runs/mine",
    "unlabelled": "posts.txt",
    "file": "rows.csv",
    "files": "posts.txt",
    "source": "vectors.txt",
    "objectives": "superloss,cross_entropy",
    "systems": "systems.toml",
    "seeds": "3",
    "parameter": "temperature",
    "values": "0.1,0.3",
    "shots": "8,16",
    "test": "test.csv",
}


#: The same of a command, where it takes other files than most.
_OF_COMMANDS = {("inspect", "files"): "train.csv test.csv"}


def missing(context: click.Context, *names: str, beside: Sequence[str] = ()) -> click.UsageError:
    """The error of everything that a command still needs: these names, or what was not given of
    what it requires. beside: what else its example has."""
    params = context.command.params
    needs = {one.name for one in params if one.required} | {*getattr(context.command, "needs", ())}
    needs |= {*beside}
    names = names or tuple(name or "" for name in needs - context.params.keys())
    gone = [one for one in params if one.name in names]
    words = [context.command_path]
    for one in params:
        if one.name in needs | {*names}:
            shown = (one.metavar or (one.name or "").upper()).strip("[].")
            given = context.params.get(one.name or "")
            value = _SAMPLES.get(one.name or "", shown)
            value = _OF_COMMANDS.get((context.info_name or "", one.name or ""), value)
            value = shlex.quote(given) if given and isinstance(given, str) else value
            words.append(value if isinstance(one, click.Argument) else f"{one.opts[0]} {value}")
    said = "; missing ".join(
        f"{one.param_type_name} {re.sub(r'[][.]', '', one.get_error_hint(context))}" for one in gone
    )
    return click.UsageError(f"Missing {said}; expected, for example: {' '.join(words)}", context)


def tell(line: str) -> None:
    """A line on stderr, unless the command has --quiet."""
    context = click.get_current_context(silent=True)
    if context is None or not context.params.get("quiet"):
        click.echo(line, err=True)


def say_waiting(*files: str | None) -> None:
    """That text is waited for, where one of the files to read is a terminal."""
    if STDIN in files and sys.stdin.isatty():
        tell("waiting for text: one a line, then Ctrl-D (Windows: Ctrl-Z)")


def say_next(line: str) -> None:
    """What to do with a result, as the last line that `tell` shows."""
    tell(f"next: {line}")


def free_folder(out: str, force: bool, reads: Sequence[str | None] = ()) -> Path:
    """The folder of word vectors to write. Raises VectorsError if it may not be written, or holds
    what is read."""
    return files.free_folder(out, force, "info.json", "folder of word vectors", VectorsError, reads)


_TYPES: dict[type, Any] = {int: click.INT, float: click.FLOAT, str: click.STRING}

#: Groups of options that are no parameters; the others stand first, as "Options".
_GROUP_OF = {
    **dict.fromkeys(
        ("dev", "test", "datasets", "splits", "deduplicate", "deduplicate_near", "at_most"), "data"
    ),
    **dict.fromkeys(("text_column", "label_column", "store", *_READING), "data"),
    **dict.fromkeys(
        ("out", "force", "keep_text", "no_report", "figures", "as_json", "quiet"), "output"
    ),
}


#: Names that other tools have for an option, and ours; of several the first that a command has.
_ELSEWHERE = {
    **{name.replace("_", "-"): ours.replace("_", "-") for name, ours in ELSEWHERE.items()},
    **dict.fromkeys(("random-state", "random-seed"), "seed seeds"),
    **dict.fromkeys(("n-jobs", "workers"), "jobs threads"),
    **dict.fromkeys(("output", "output-dir", "o"), "out"),
    **dict.fromkeys(("text", "text-col"), "text-column"),
    **dict.fromkeys(("label", "label-col"), "label-column"),
    **dict.fromkeys(("val", "valid", "validation", "eval"), "dev"),
    **dict.fromkeys(("drop-unlabeled", "dropna", "drop-empty"), "drop-incomplete"),
    "overwrite": "force",
}


def no_such_option(error: click.NoSuchOption, words: Sequence[str]) -> click.UsageError:
    """The error of an option that a command does not have, with what to use instead: what replaced
    it, our name for it, one of nearly that name, or the commands that do have it.

    words: the command line.
    """
    flag, context = error.option_name, error.ctx
    if context is None:
        return error
    name = flag.lstrip("-").replace("-", "_").removeprefix("no_")
    if name in REMOVED and isinstance(context.command, GroupedCommand):
        following = dict(itertools.pairwise(words))
        following |= dict(word.split("=", 1) for word in words if "=" in word)
        instead = removal(name, flag=True, value=following.get(flag) or None)
        return click.UsageError(f"found {flag}, which was removed; {instead}", context)
    known = _flags(context.command)
    for ours in _ELSEWHERE.get(flag.lstrip("-").replace("_", "-"), "").split():
        if f"--{ours}" in known:
            return click.UsageError(f"no option {flag}; it is called --{ours} here", context)
    said = f"No such option {flag!r}"
    owners = [*_owners(flag, context.find_root().command)]
    # Of an option of another command hardly any other is meant.
    if near := _near(flag, known, _ALIKE[bool(owners)]):
        said += f"; did you mean {' or '.join(map(repr, near))}?"
    elif owners:
        said += f"; it belongs to superconext {listed(owners, _OWNERS)}"
    return click.UsageError(said, context)


#: Commands that a message names, and how alike names are that may be meant for one that no command
#: has, or that another has.
_OWNERS, _ALIKE = 3, (0.65, 0.78)


def _flags(command: click.Command) -> list[str]:
    return [flag for one in command.params for flag in (*one.opts, *one.secondary_opts)]


def _near(flag: str, known: Iterable[str], alike: float) -> list[str]:
    """The nearest of the known options, or those of which one name begins the other; none where
    none is near."""
    names = [one[2:] for one in known if one.startswith("--")]
    name = flag.removeprefix("--")
    begin = [
        one
        for one in names
        if (len(name) >= 4 and one.startswith(name)) or (len(one) >= 4 and name.startswith(one))
    ]
    return [f"--{one}" for one in begin or difflib.get_close_matches(name, names, 1, alike)]


def _owners(flag: str, command: click.Command, path: str = "") -> Iterator[str]:
    """The commands at or below one that have an option, without the name of the program."""
    if isinstance(command, click.Group):
        for name, one in command.commands.items():
            yield from _owners(flag, one, f"{path} {name}".lstrip())
    elif flag in _flags(command):
        yield path


#: Options that `--help` shows of a command with every parameter; `--help-all` shows the others.
_ESSENTIAL = (
    *("out", "test", "dev", "datasets", "objectives", "shots", "parameter", "values", "protocol"),
    *("seeds", "unlabelled", "pretrain", "vectors", "preset", "budget", "cv", "soft_labels"),
    *("resume", "config", "seed", "help_all", "help"),
)


def _show_all(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.meta[_ALL] = True
        click.echo(ctx.get_help())
        ctx.exit()


_ALL = "superconext.help_all"


class GroupedCommand(click.Command):
    """A command with every parameter of a run. `--help` shows the options that most people need,
    `--help-all` every one under the heading of its group.

    needs: options that it cannot do without, but checks itself.
    """

    def __init__(self, *arguments: Any, needs: Sequence[str] = (), **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.needs = needs
        self.params.append(
            click.Option(
                ["--help-all"],
                is_flag=True,
                expose_value=False,
                is_eager=True,
                callback=_show_all,
                help="Show every option and exit.",
            )
        )

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except OptionError as error:
            if error.name not in options_by_name(ctx.params.get("options")):
                raise  # it stands in a file
            raise click.BadParameter(str(error), ctx, param_hint="'--options'") from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        options = [one for one in self.get_params(ctx) if isinstance(one, click.Option)]
        if not ctx.meta.get(_ALL):
            named = {option.name: option for option in options}
            shown = [named[name] for name in _ESSENTIAL if name in named]
            records = [option.get_help_record(ctx) for option in shown]
            with formatter.section("Options"):
                formatter.write_dl([record for record in records if record is not None])
            others = len(options) - len(shown)
            formatter.write_paragraph()
            if "fold_label_case" in named:
                formatter.write_text(
                    "For rows without a text or label, and labels that differ in case or spelling: "
                    "--drop-incomplete, --fold-label-case."
                )
                formatter.write_paragraph()
            formatter.write_text(f"{others} more options: {ctx.command_path} --help-all")
            return
        groups: dict[str, list[tuple[str, str]]] = {}
        for option in options:
            record = option.get_help_record(ctx)
            name = option.name or ""
            group = BY_NAME[name].group if name in BY_NAME else _GROUP_OF.get(name, "options")
            if record is not None:
                groups.setdefault(group, []).append(record)
        for group in ("options", *GROUPS):
            if group in groups:
                with formatter.section(group.capitalize()):
                    formatter.write_dl(groups[group])


class RegisteredName(click.ParamType):
    """A name of a registry, which is looked into only when a name is given or help is shown."""

    name = "name"

    def __init__(self, names: Callable[[], list[str]], check: Callable[[str], None]) -> None:
        self.names, self.check = names, check

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            self.check(value)
        except ConfigError as error:
            self.fail(str(error), param, ctx)
        return value

    def get_metavar(self, param: click.Parameter, ctx: click.Context | None = None) -> str:
        return f"[{'|'.join(self.names())}]"


class Minutes(click.ParamType):
    """A number of minutes; 90s, 5m and 1h are understood."""

    name = "time"
    units = {"s": 1 / 60, "m": 1.0, "h": 60.0}  # noqa: RUF012

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        text = str(value).strip()
        unit = self.units.get(text[-1:].lower())
        try:
            return float(text if unit is None else text[:-1]) * (unit or 1.0)
        except ValueError:
            self.fail(f"found {value!r}; expected minutes, such as 5, 90s or 1h", param, ctx)


#: Parameters whose choices are the names in a registry.
_REGISTERED = {
    "objective": RegisteredName(OBJECTIVES.names, OBJECTIVES.check),
    "encoder": RegisteredName(ENCODERS.names, ENCODERS.check),
    "probe_features": RegisteredName(PROBES.values, PROBES.check),
}


def parameters(without: Sequence[str] = ()) -> Decorator:
    """An option for every parameter but those without; one not given arrives as None."""
    return shared(*(_option(row) for row in PARAMETERS if row.name not in without))


def given_parameters(options: dict[str, Any]) -> dict[str, Any]:
    """The parameters among a command's options that the user named."""
    return {name: value for name, value in options.items() if name in BY_NAME and value is not None}


def _option(parameter: Parameter) -> Decorator:
    flag = "--" + parameter.name.replace("_", "-")
    if parameter.type is bool:
        return click.option(
            f"{flag}/--no-{flag[2:]}", parameter.name, default=None, help=_help(parameter)
        )
    kind, metavar = _REGISTERED.get(parameter.name, _TYPES[parameter.type]), None
    if parameter.name in FILE_PARAMETERS:
        metavar = "FOLDER" if parameter.name == "init" else "FILE"
    if parameter.name == "budget":
        kind = Minutes()
    if parameter.additions:
        metavar = f"[{'|'.join(parameter.choices or ())}][+RULE][-RULE]"
    elif parameter.choices:
        kind = click.Choice(parameter.choices)
    return click.option(
        flag,
        parameter.name,
        type=kind,
        metavar=metavar,
        default=None,
        multiple=parameter.several or parameter.name == "options",
        callback=_checked(parameter),
        help=_help(parameter),
    )


def _checked(parameter: Parameter) -> Callable[..., Any]:
    """A value outside its limits is wrong usage, as a word where a number belongs is."""

    def check(ctx: click.Context, option: click.Parameter, value: Any) -> Any:
        value = None if value == () else value  # of one that may be repeated, and was not given
        if parameter.name == "options" and value is not None:
            value = ",".join(value)
        try:
            if value is not None:
                parameter.check(value)
        except ConfigError as error:
            raise click.BadParameter(str(error), ctx, option) from None
        return _used(ctx, option, value) if parameter.name == "threads" else value

    return check


#: Defaults that depend on the command.
_DEFAULTS = {
    "preset": "auto in train, where no option names a recipe; else fast",
    "logit_adjustment": "0; 0.5 with --preset auto",
    "pretrain": "no, except as above",
    "threads": "in train one for each idle processor, up to 4; else 1",
}


def _help(parameter: Parameter) -> str:
    """The parameter's help and its default, under each preset and encoder where they differ."""
    values = parameter.defaults
    default = values.pop("fast")
    others = [f"{name}: {_show(value)}" for name, value in values.items() if value != default]
    help = parameter.help + " May be repeated." * parameter.several
    if default is None and not others:
        return help
    shown = "; ".join([_show(default), *others])
    shown = _DEFAULTS.get(parameter.name, shown)
    return f"{help}  [default: {shown}]"


def _show(value: Any) -> str:
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def normalize(default: str | None, help: str) -> Decorator:
    """The option `--normalize` with rules after the profile."""
    return click.option(
        "--normalize",
        metavar=f"[{'|'.join(BY_NAME['normalize'].choices or ())}][+RULE][-RULE]",
        default=default,
        show_default=default is not None,
        callback=_checked(BY_NAME["normalize"]),
        help=help,
    )
