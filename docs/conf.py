"""Sphinx: the site of these pages, which `make docs` builds from a copy of this folder."""

import re
from os.path import relpath
from pathlib import Path
from typing import Any

from superconext import __version__

# Quotation marks and dots alone: options have two hyphens.
smartquotes_action = "qe"
project = "superconext"
release = version = __version__
copyright = "the superconext authors, MIT licence"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = f"superconext {__version__}"
root_doc = "index"
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
suppress_warnings = ["myst.header"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
python_use_unqualified_type_names = True

#: Headings of the table of contents, with the pages under each.
SECTIONS = {
    "Tutorials": ["first-model", "labelling-loop"],
    "How-to": [
        "guide",
        "data",
        "labelling",
        "vectors",
        "pretrain",
        "transformer",
        "related",
        "report",
        "compare",
        "protocols",
        "faq",
    ],
    "Reference": [
        "reference/commands",
        "reference/parameters",
        "reference/python",
        "objectives",
        "reference/losses",
        "text",
        "reference/bridge",
        "reliability",
        "reference/sets",
    ],
    "Explanation": [
        "probe",
        "architecture",
        "performance",
        "inference",
        "citing",
        "reference/papers",
    ],
    "Research": ["results", "research"],
}

#: Files outside this folder that pages link to; the site offers them as downloads.
OUTSIDE = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "data/README.md")


def prepared(app: Any, name: str, source: list[str]) -> None:
    """The index with a table of contents, which forges would show as code; links to `OUTSIDE`."""
    if name == root_doc:
        for caption, pages in SECTIONS.items():
            entries = "\n".join(pages)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{entries}\n```\n"
    for file in OUTSIDE:
        there = Path(relpath(Path(app.confdir).parent / file, app.srcdir)).as_posix()
        source[0] = re.sub(rf"\]\(\.\./{file}(#[\w-]+)?\)", f"](path:{there})", source[0])


def not_ours(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool:
    """Whether to leave a member out: those of scikit-learn, torch and the like."""
    home = getattr(member, "__module__", None) or project
    return skip or not home.startswith(project)


def setup(app: Any) -> None:
    app.connect("source-read", prepared)
    app.connect("autodoc-skip-member", not_ours)
