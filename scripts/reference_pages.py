"""The generated pages of the site: commands, parameters, Python, losses, letters, papers, sets.

    python scripts/reference_pages.py build/pages/reference

`make docs` calls it before Sphinx.
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

import click

from superconext.cli import cli, options
from superconext.config.parameters import GROUPS, PARAMETERS, table_of
from superconext.data.fetch import CATALOGUE
from superconext.experiments.protocol import load_protocol, protocol_names
from superconext.objectives.base import Objective
from superconext.objectives.catalogue import OBJECTIVES, objective_class
from superconext.text.bridge import DIALECTS

#: Modules of the page on Python, with the names shown of each.
PUBLIC = {
    "superconext.estimator.classifier": ["SuperConTextClassifier", "SuperConTextEncoder"],
    "superconext.estimator.loading": ["load", "LoadedClassifier"],
    "superconext.data.reading": ["read_labelled"],
    "superconext.vectors.readers": ["read_vectors"],
    "superconext.text.normalize": ["Normalizer", "choose_profile"],
    "superconext.text.tokenize": ["Tokenizer"],
    "superconext.report.audit": ["audit"],
    "superconext.training.callbacks": ["Callback", "EarlyStopping", "TensorBoard"],
    "superconext.objectives.base": ["Objective", "CheckedOptions"],
    "superconext.objectives.catalogue": ["register"],
    "superconext.export.onnx_model": ["OnnxModel"],
}


def commands(group: click.Group, path: str, depth: int = 2) -> str:
    """The help of each command of a group, as `--help-all` prints it."""
    parts = []
    for name, command in sorted(group.commands.items()):
        whole = f"{path} {name}"
        context = click.Context(
            command,
            info_name=whole,
            max_content_width=100,
            terminal_width=100,
            help_option_names=["-h", "--help"],
        )
        context.meta[options._ALL] = True
        parts.append(f"{'#' * depth} {whole}\n\n```text\n{command.get_help(context)}\n```\n")
        if isinstance(command, click.Group):
            parts.append(commands(command, whole, depth + 1))
    return "\n".join(parts)


def parameters() -> str:
    """The one table of parameters, a section for each of its groups."""
    parts = []
    for group in GROUPS:
        rows = []
        for row in PARAMETERS:
            if row.group == group:
                allowed = ", ".join(row.choices) if row.choices else row.limits()
                defaults = "; ".join(
                    f"{shown(value)}" if number == 0 else f"{name}: {shown(value)}"
                    for number, (name, value) in enumerate(row.defaults.items())
                    if number == 0 or value != next(iter(row.defaults.values()))
                )
                rows.append([f"`{row.name}`", defaults, allowed, row.help])
        if rows:
            told = table(["parameter", "default", "allowed", "meaning"], rows)
            parts.append(f"## {group.capitalize()}\n\n{told}\n")
    return "\n".join(parts)


def table(headings: list[str], rows: list[list[str]]) -> str:
    """A Markdown table; cells are text without markup, but for code."""
    lines = [headings, ["---"] * len(headings), *rows]
    escaped = (
        [cell.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*") for cell in line]
        for line in lines
    )
    return "\n".join(f"| {' | '.join(line)} |" for line in escaped) + "\n"


def shown(value: object) -> str:
    if value is None:
        return "unset"
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def python() -> str:
    """The public names, from their docstrings."""
    parts = []
    for module, names in PUBLIC.items():
        parts.append(f"## {module}\n\n```{{eval-rst}}")
        for name in names:
            parts.append(f".. auto{kind(module, name)}:: {module}.{name}")
            if kind(module, name) == "class":
                parts.append("   :members:\n   :inherited-members: object\n")
        parts.append("```\n")
    return "\n".join(parts)


def kind(module: str, name: str) -> str:
    return (
        "class" if isinstance(getattr(importlib.import_module(module), name), type) else "function"
    )


def sets() -> str:
    """What `data fetch` knows, with the licence of each."""
    rows = [
        [
            f"`{one.name}`",
            one.task,
            one.language,
            str(one.classes),
            f"{sum(one.rows.values()):,}",
            one.licence,
        ]
        for one in CATALOGUE.values()
    ]
    return table(["name", "task", "language", "classes", "rows", "licence"], rows)


def objectives() -> str:
    """Of each objective the equations and sources of its docstring, and its options."""
    parts = []
    for name in sorted(OBJECTIVES.built_in):
        cls = objective_class(name)
        own = "" if cls.class_scores is Objective.class_scores else ", a rule of its own to predict"
        parts.append(f"## {name}\n\nBatches: {cls.batches}{own}.\n")
        rows = []
        for row in table_of(cls.options_type):
            allowed = ", ".join(row.choices) if row.choices else row.limits().removeprefix("of ")
            rows.append([f"`{row.name}`", shown(row.default), allowed, row.help])
        if rows:
            parts.append(table(["option", "default", "allowed", "meaning"], rows))
        where = f"{cls.__module__}.{cls.__name__}"
        parts.append(f"```{{eval-rst}}\n.. autoclass:: {where}\n   :no-members:\n```\n")
    return "\n".join(parts)


def bridge() -> str:
    """The letters of the bridge: those common to all dialects, and the others side by side."""
    units = sorted(
        {unit for letters in DIALECTS.values() for unit in letters}, key=lambda u: (-len(u), u)
    )
    rows, common = [], []
    for unit in units:
        found = [letters.get(unit) for letters in DIALECTS.values()]
        told = ["–" if letter is None else letter or "(short)" for letter in found]
        if len(set(told)) == 1:
            common.append(f"`{unit}` {told[0]}")
        else:
            rows.append([f"`{unit}`", *told])
    return f"{', '.join(common)}.\n\n{table(['Latin', *DIALECTS], rows)}"


def papers() -> str:
    """What each protocol departs in from its paper, and the misprints found there."""
    parts = []
    for name in protocol_names():
        one = load_protocol(name)
        parts.append(f"## {name}\n\n{one.paper}\n")
        for heading, lines in (("Departures", one.departs), ("Misprints", one.misprints)):
            if lines:
                parts.append(f"{heading}:\n\n" + "\n".join(f"- {line}" for line in lines) + "\n")
    return "\n".join(parts)


def write(folder: Path) -> None:
    """Write the pages, those that changed."""
    pages = {
        "commands": "# Commands\n\nEvery command with all its options; `--help` shows those that "
        "most people need.\n\n" + commands(cli, "superconext"),
        "parameters": "# Parameters\n\nNames in Python and TOML; on the command line "
        "`hidden_size` is `--hidden-size`. A default after a preset's or encoder's name holds "
        "there.\n\n" + parameters(),
        "python": "# Python\n\n" + python(),
        "sets": "# Public data sets\n\nWhat `superconext data fetch` knows. Read the licence and "
        "cite the paper.\n\n" + sets(),
    }
    pages["losses"] = (
        "# Equations and options of the objectives\n\nOptions are given as `--options "
        "NAME=VALUE,...`.\n\n" + objectives()
    )
    pages["bridge"] = (
        "# Letters of the bridge\n\nWhat each Latin spelling becomes under `--bridge DIALECT`.\n\n"
        + bridge()
    )
    pages["papers"] = (
        "# Departures and misprints\n\nWhere the protocols depart from their papers, and the "
        "misprints known to us. Those of the losses are in the objectives' docstrings.\n\n"
    ) + papers()
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    write(parser.parse_args().folder)
