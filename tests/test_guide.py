"""Every block of the guide runs, in order, in one folder; links and paths of all pages exist."""

import importlib.util
import os
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import call_main

ROOT = Path(__file__).resolve().parents[1]
GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCKS = re.findall(r"(?:<!-- needs: (.*?) -->\n)?```(\w+)\n(.*?)```", GUIDE, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("guide")
    shutil.copytree(ROOT / "data", folder / "data")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUPERCONEXT_CACHE", str(folder / "cache"))
        patch.chdir(folder)
        yield folder


@pytest.fixture(scope="module")
def names():
    """What the Python blocks share."""
    return {}


def test_every_block_is_of_a_kind_that_is_run():
    assert len(BLOCKS) == GUIDE.count("```") // 2 >= 10
    assert {kind for _, kind, _ in BLOCKS} == {"python", "console"}


@pytest.mark.long
@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_the_block_runs(number, folder, names, capsys):
    needs, kind, text = BLOCKS[number]
    missing = [name for name in needs.split() if importlib.util.find_spec(name) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    if kind == "python":
        exec(compile(text, f"guide block {number}", "exec"), names)
        assert capsys.readouterr().out or "print" not in text
        return
    for line in text.splitlines():
        assert line.startswith("$ "), line
        before, _, after = line[2:].rpartition("| ")
        said = before.removeprefix("echo ").strip().strip('"')
        words = shlex.split(after)
        assert words.pop(0) == "superconext"
        outcome = call_main(*words, stdin=said.encode() + b"\n" if said else b"")
        assert outcome.code == 0, f"{line}\n{outcome.err}"
        assert "Traceback" not in outcome.err


@pytest.mark.long
def test_what_the_prose_promises_is_so(folder, names):
    assert names["model"].score(names["test"].texts, names["test"].labels) > 0.6
    assert len(names["patient"].history_) <= 30
    for name in ("runs/vectors", "runs/guide", "runs/python", "runs/small"):
        assert os.path.isdir(name), name


def anchors(page):
    """The anchors of a page's headings, as forges make them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", line.lower()).strip().replace(" ", "-") for line in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_link_leads_somewhere(page):
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        path = page.parent / name if name else page
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_file_of_the_project_that_is_named_exists(page):
    text = page.read_text(encoding="utf-8")
    for name in re.findall(r"\b((?:superconext|scripts|tests)/[\w/]+\.(?:py|toml|sh))\b", text):
        assert (ROOT / name).exists(), name
    for name in re.findall(r"`(\w+/[\w/]+\.py)`", text):
        assert (ROOT / name).exists() or (ROOT / "superconext" / name).exists(), name


def test_the_index_leads_to_every_page():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for page in PAGES:
        assert page.name == "index.md" or f"]({page.name}" in index, page.name
