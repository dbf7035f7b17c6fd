"""Copies of modules that let an exported folder predict without superconext.

An export brings the code that it needs, so that it answers without an installation: the package's
own modules, unchanged but for imports relative to their new home. With them
`classify.py` needs NumPy and onnxruntime alone (and `tokenizers` for a transformer), of a static
student NumPy alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from superconext._version import __version__
from superconext.core.errors import listed
from superconext.data.file_format import FILE_FORMATS
from superconext.report.table import escape_markdown

#: The folder of the copies, which is a package.
RUNTIME = "superconext_runtime"

_HOME = Path(__file__).resolve().parents[1]

_ABOUT = f'''"""The modules of superconext {__version__} that turn text into labels.

SPDX-License-Identifier: MIT
Copyright (c) The superconext authors
"""
'''

_CLASSIFY = '''"""Text to label with this folder alone; --help names the packages it needs.

    python classify.py FILE           label TAB text for each line (no FILE, or -: standard input)
    python classify.py FILE --proba   with the probability of every class, under a header
    python classify.py FILE.csv --keep id    with a column of the table, under a header
    python classify.py FILE --out labels.csv    a new file with a header; .tsv: tabs for commas

FILE is read as by superconext predict: of a table the text column of training, else that named
text, else one with a usual name; or that of --text-column NAME.

In a program, with this folder on sys.path:

    from classify import load
    model = load()
    model.predict(["..."])            labels; "" for a blank text
    model.predict_proba(["..."])      float64 [N, C], columns as model.classes; of a blank text
                                      all alike
"""

from __future__ import annotations

import argparse
import csv
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

PACKAGES = @PACKAGES@
HERE = Path(__file__).resolve().parent
#: Texts that are answered at once, at most.
AT_ONCE = 1024
#: What would end a cell is written as a space.
ONE_CELL = dict.fromkeys(map(ord, "\\t\\r\\n\\v\\f\\x1c\\x1d\\x1e\\x85\\u2028\\u2029"), " ")


def one_cell(text: str) -> str:
    return text.replace("\\r\\n", "\\n").translate(ONE_CELL)


class LineFeeds:
    """What CSV is written to: `csv` quotes a lone carriage return only where its lines end in one,
    which is taken off here."""

    def __init__(self, stream):
        self.stream = stream

    def write(self, line):
        self.stream.write(line[:-2] + "\\n")


def open_streams() -> None:
    """Open what is closed of the standard streams, as by a daemon."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))


def needed(*packages: str) -> None:
    """Raise ImportError if a package is missing, or the folder of modules beside this file."""
    if not (HERE / "superconext_runtime").is_dir():
        lacks = "found no superconext_runtime; expected the whole exported folder"
        raise ImportError(f"{HERE}: {lacks}")
    missing = [name for name in packages if find_spec(name) is None]
    if missing:
        raise ImportError(f"found no {missing[0]}; expected it: pip install {' '.join(missing)}")


def threads(text: str) -> int:
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"found {text}, expected 1 or more")
    return int(text)


def load(*, threads: int = 1):
    """The model of this folder."""
    needed(*PACKAGES)
    from superconext_runtime.export.@MODULE@ import @CLASS@

    return @OPENED@


def rows(model, texts: list[str], kept: list[list[str]], proba: bool) -> Iterator[list[str]]:
    """The cells of each text; the label of a blank one is empty."""
    from superconext_runtime.core.blank import is_blank

    answers = model.probabilities(texts)
    for text, beside, shares in zip(texts, kept, answers, strict=True):
        blank = is_blank(text)
        cells = ["" if blank else model.classes[shares.argmax()]]
        if proba:
            cells += ["" if blank else f"{share:.4f}" for share in shares]
        yield [*cells, text, *beside]


def tell(texts, told: int) -> int:
    """Write the notes of a file to standard error, but for those that were; returns how many."""
    from superconext_runtime.core.progress import WARNING

    for note in texts.notes[told:]:
        kind = "warning" if note.startswith(WARNING) else "note"
        print(f"{kind}: {texts.name}: {note.removeprefix(WARNING)}", file=sys.stderr)
    return len(texts.notes)


@contextmanager
def table(out: str | None, separator: str) -> Iterator[Callable[[Iterable[list[str]]], object]]:
    """A function that writes rows: to standard output, or to a file that is there when all are."""

    def write_tsv(found: Iterable[list[str]]) -> None:
        lines = ["\\t".join(map(one_cell, row)) for row in found]
        print(*lines, sep="\\n", file=stream, flush=out is None)

    if out is None:
        stream = sys.stdout
        yield write_tsv
        return
    part, as_csv = Path(f"{out}.{os.getpid()}.part"), out.lower().endswith(".csv")
    try:
        # Spreadsheets know UTF-8 by its mark.
        coding = "utf-8-sig" if as_csv else "utf-8"
        with part.open("w", encoding=coding, newline="") as stream:
            rows = csv.writer(LineFeeds(stream), delimiter=separator)
            yield rows.writerows if as_csv else write_tsv
        part.replace(out)
    finally:
        part.unlink(missing_ok=True)


def check_new(out: str | None, file: str, force: bool) -> None:
    """Raise ValueError for an output that would take the place of another file."""
    if out is None:
        return
    if not out.lower().endswith((".csv", ".tsv")):
        raise ValueError(f"{out}: expected a name that ends in .csv or .tsv: name it so")
    if not Path(out).parent.is_dir():
        raise ValueError(f"{out}: found no folder {Path(out).parent}; expected one: make it first")
    if Path(out).exists():
        if Path(file).exists() and os.path.samefile(out, file):
            raise ValueError(f"{out} is the file that is read; expected another: choose one")
        if not force:
            raise ValueError(
                f"{out} exists already; expected a new file: choose another or add --force"
            )


def main() -> None:
    about = argparse.ArgumentParser(
        allow_abbrev=False,
        description="Print label TAB text for each text of FILE; a blank text has an empty label.",
        epilog=f"Needs Python 3.11 or newer, and: pip install {' '.join(PACKAGES)}",
    )
    about.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        default="-",
        help="texts, one a line, or a table (.csv, .tsv, .jsonl, ...), also .gz; default: standard "
        "input (-)",
    )
    about.add_argument(
        "--text-column",
        metavar="NAME",
        help="of a table, or its number where there is no header; default: that of training, else "
        "text",
    )
    about.add_argument(
        "--encoding", metavar="NAME", help="of a file that is not UTF-8, such as windows-1256"
    )
    about.add_argument(
        "--proba",
        action="store_true",
        help="also every class's probability, rounded to 4 decimals, under a header",
    )
    about.add_argument(
        "--keep",
        metavar="COLUMN",
        action="append",
        default=[],
        help="add this column of a table after the text, under a header; may be repeated; all: "
        "every other column",
    )
    about.add_argument(
        "--out",
        metavar="FILE",
        help="write a new .csv or .tsv, with a header, in place of standard output",
    )
    about.add_argument("--force", action="store_true", help="replace the file of --out")
    about.add_argument(
        "--threads", type=threads, default=1, help="of onnxruntime, if it answers; default: 1"
    )
    open_streams()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the end as by Ctrl-C
    given = about.parse_args()
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        check_new(given.out, given.file, given.force)
        model = load(threads=given.threads)
        from superconext_runtime.core.label_types import share_columns
        from superconext_runtime.data.lines import check_encoding
        from superconext_runtime.data.reading import LateColumns, RowStream, kept_columns

        texts = RowStream(
            given.file,
            given.text_column,
            labelled=False,
            every_row=True,
            known=model.known,
            encoding=given.encoding and check_encoding(given.encoding),
            beside=bool(given.keep),
        )
        blocks = iter(texts)
        block = next(blocks)
        told, count, longer = tell(texts, 0), 0, 0
        shares = share_columns(model.classes, ["label", "text"]) if given.proba else []
        head, kept = ["label", *shares, "text"], {}
        if given.keep:
            kept = kept_columns(texts, block.beside, given.keep, head, model.columns)
        late = LateColumns(block.beside)
        with table(given.out, texts.separator) as write:
            if given.proba or given.keep or given.out:
                write([[*head, *kept]])
            while block is not None:
                for start in range(0, len(block), AT_ONCE):
                    part = block.texts[start : start + AT_ONCE]
                    beside = block.beside[start : start + AT_ONCE] or [{}] * len(part)
                    cells = [[row.get(name, "") for name in kept.values()] for row in beside]
                    write(rows(model, part, cells, given.proba))
                    longer += model.longer(part)
                count += len(block)
                block = next(blocks, None)
                if block is not None and "all" in given.keep:
                    late.add(block)
                told = tell(texts, told)
        if given.out:
            print(f"{given.out}: {count} rows", file=sys.stderr)
        if late.told():
            print(f"warning: {texts.name}: {late.told()}", file=sys.stderr)
        if longer:
            most = f"only the first {model.indexer.max_length} tokens of a text"
            found = f"{longer} of {count} texts {'is' if longer == 1 else 'are'} longer"
            print(f"warning: the model reads {most}, and {found}", file=sys.stderr)
    except BrokenPipeError:  # such as by head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit("error: interrupted; run the command again")
    except OSError as error:
        where = error.filename or given.out or "standard output"
        sys.exit(f"error: {where}: {error.strerror or error}; check the path and the free space")
    except (ImportError, ValueError, csv.Error) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
'''


_SERVE = '''"""This folder as an HTTP service. Needs what classify.py needs, starlette and uvicorn.

    python serve.py --port 8000

POST /predict takes {"texts": ["...", ...]}; GET /health, GET /metrics.
"""

import argparse
import sys

from classify import PACKAGES, load, needed, open_streams, threads


def port(text: str) -> int:
    if not 0 <= int(text) < 1 << 16:
        raise argparse.ArgumentTypeError(f"found {text}, expected 0 to 65535")
    return int(text)


def main() -> None:
    about = argparse.ArgumentParser(
        allow_abbrev=False,
        description='Answer POST /predict {"texts": ["...", ...]}; GET /health, GET /metrics.',
        epilog=f"Needs: pip install {' '.join(PACKAGES)} starlette uvicorn",
    )
    about.add_argument(
        "--host", default="127.0.0.1", help="address to listen on; default: this machine alone"
    )
    about.add_argument("--port", type=port, default=8000, help="0: any free one; default: 8000")
    about.add_argument(
        "--threads", type=threads, default=1, help="of onnxruntime, if it answers; default: 1"
    )
    open_streams()
    given = about.parse_args()
    try:
        needed(*PACKAGES, "starlette", "uvicorn")
        from superconext_runtime.export.server import run_server

        model = load(threads=given.threads)
    except (ImportError, OSError, ValueError) as error:
        sys.exit(f"error: {error}")
    try:
        run_server(model, given.host, given.port)
    except OSError as error:
        sys.exit(f"error: {error.filename}: {error.strerror}; choose another --host or --port")


if __name__ == "__main__":
    main()
'''


_README = """# Labels for texts

Made of the run `@RUN@` by `superconext export`, version @VERSION@. Labels: @LABELS@.
@COST@
With Python 3.11 or newer, and without superconext, in this folder:

    pip install @PACKAGES@

- A file, a text a line or a table: `python classify.py FILE --proba`; more: `--help`.
- In Python (elsewhere, put this folder on `sys.path`):

      from classify import load
      model = load()
      model.predict(["..."])        # labels, "" for a blank text
      model.predict_proba(["..."])  # columns as model.classes; of a blank text all alike

- Over HTTP: `pip install starlette uvicorn`, then `python serve.py --port 8000`, and
  `curl -d '{"texts": ["..."]}' localhost:8000/predict`.

superconext opens the folder too: `superconext predict`, `superconext serve`, `superconext.load`.
"""

#: Labels that the README names.
_NAMED = 20


def write_standalone(
    folder: Path,
    packages: Sequence[str],
    module: str,
    opened: str,
    classes: Sequence[str],
    run: str,
    cost: str = "",
) -> None:
    """Write `README.md`, `classify.py`, `serve.py` and the modules they need into a folder.

    packages: those that must be installed where they run. module: of `export`, with the class that
    `opened`, an expression of `HERE` and `threads`, makes the model of. classes, run (its name) and
    cost (a sentence): for the README.
    """
    labels = listed([escape_markdown(label) for label in classes], _NAMED)
    about = {"RUN": run, "VERSION": __version__, "LABELS": labels}
    about |= {"COST": f"\n{cost}\n" * bool(cost), "PACKAGES": " ".join(packages)}
    readme = re.sub("@([A-Z]+)@", lambda found: about[found[1]], _README)
    (folder / "README.md").write_text(readme, encoding="utf-8")
    home = folder / RUNTIME
    for needed in sorted(_modules(module)):
        source = _file(needed).read_text(encoding="utf-8")
        dots = "." * needed.count(".")
        source = re.sub(r"^(\s*from )superconext\.", rf"\1{dots}", source, flags=re.MULTILINE)
        place = home / _file(needed).relative_to(_HOME)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(source, encoding="utf-8")
        (place.parent / "__init__.py").touch()
    (home / "__init__.py").write_text(_ABOUT, encoding="utf-8")
    classify = _CLASSIFY.replace("@PACKAGES@", repr(tuple(packages)))
    kind = re.match(r"\w+", opened)
    assert kind is not None
    for name, value in (("MODULE", module), ("CLASS", kind[0]), ("OPENED", opened)):
        classify = classify.replace(f"@{name}@", value)
    (folder / "classify.py").write_text(classify, encoding="utf-8")
    (folder / "serve.py").write_text(_SERVE, encoding="utf-8")


def _modules(module: str) -> set[str]:
    """The one that answers, the readers of files, the HTTP service, and every module of the package
    that one of these imports at its top level."""
    found: set[str] = set()
    waiting = [f"superconext.export.{name}" for name in (module, "exported_model", "server")]
    waiting += ["superconext.data.reading"]
    waiting += [entry.target.partition(":")[0] for entry in FILE_FORMATS.built_in.values()]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += _imported(module)
    return found


def _imported(module: str) -> Iterator[str]:
    for node in ast.parse(_file(module).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("superconext."):
            assert node.module is not None
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if _file(inner).is_file() else node.module


def _file(module: str) -> Path:
    return _HOME.joinpath(*module.split(".")[1:]).with_suffix(".py")
