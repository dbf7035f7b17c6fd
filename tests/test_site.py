"""What `make docs` is made of: the table of contents and the generated pages."""

import re
import runpy
from pathlib import Path

from superconext.cli import cli
from superconext.config.parameters import PARAMETERS
from superconext.data.fetch import CATALOGUE

ROOT = Path(__file__).resolve().parents[1]


def test_the_contents_have_every_page_once_and_the_generated_ones(tmp_path):
    sections = runpy.run_path(str(ROOT / "docs" / "conf.py"))["SECTIONS"]
    listed = [page for pages in sections.values() for page in pages]
    runpy.run_path(str(ROOT / "scripts" / "reference_pages.py"))["write"](tmp_path)
    written = {f"reference/{path.stem}" for path in tmp_path.iterdir()}
    pages = {path.stem for path in (ROOT / "docs").glob("*.md")} - {"index"}
    assert sorted(listed) == sorted(pages | written)


def test_generated_pages_have_every_command_parameter_and_set(tmp_path):
    runpy.run_path(str(ROOT / "scripts" / "reference_pages.py"))["write"](tmp_path)
    pages = {path.stem: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    for name in cli.commands:
        assert f"\n## superconext {name}\n" in pages["commands"]
    assert "\n### superconext data merge\n" in pages["commands"]
    assert " --hidden-size INTEGER " in pages["commands"]
    for row in PARAMETERS:
        assert f"\n| `{row.name}` | " in pages["parameters"]
    for name in CATALOGUE:
        assert f"\n| `{name}` | " in pages["sets"]
    assert "paper: 300" in pages["parameters"]
    assert "Misprints" in pages["papers"]


def test_the_pages_and_the_help_are_in_standard_english(tmp_path):
    runpy.run_path(str(ROOT / "scripts" / "reference_pages.py"))["write"](tmp_path)
    phrases = "figures of merit|goes on where|go on with|reckoned|oftener|put right|stands? in two"
    phrases += "|that holds (?:for|of|in)|mended|by heart|of arq and ary"
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *tmp_path.iterdir()]:
        found = re.findall(rf"\b(?:{phrases})\b", path.read_text(encoding="utf-8"))
        assert not found or path.name == "results.md", (path.name, found)
