"""The tutorials run as written, in order, and print what the pages show."""

import contextlib
import io
import re
import runpy
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import call_main

SCRIPT = runpy.run_path(str(Path(__file__).resolve().parents[1] / "scripts" / "tutorials.py"))
PAGES = SCRIPT["PAGES"]
SMALL = "--preset fast --epochs 1 --hidden-size 16 --vector-dimension 16 --no-report"


def piped(command, given=b""):
    return subprocess.run(command, shell=True, check=True, input=given, capture_output=True).stdout


def run_quickly(language, source):
    """The block in this process, with a smaller model."""
    if language == "python":
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(source, "tutorial", "exec"), {})
        return out.getvalue()
    printed = ""
    for line in source.splitlines():
        before, ours, after = line.partition("superconext ")
        if not ours:
            printed += piped(line).decode()
            continue
        words, _, rest = after.partition(" | ")
        given = piped(before.removesuffix("| ")) if before else b""
        if words.startswith("train "):  # the recipe that is not chosen shows the same rows
            words += f" {SMALL}" + " --logit-adjustment 0.5" * ("--preset" not in words)
        said = call_main(*shlex.split(words), stdin=given)
        assert said.code == 0, f"{line}\n{said.err}"
        printed += piped(rest, said.out.encode()).decode() if rest else said.out
    return printed


def lines_of(block):
    """How many lines it has, but for those on adjusted baselines: these are shown where they differ
    from the plain ones, which depends on the model."""
    return sum("adjusted" not in line for line in block.splitlines())


def shown(page):
    return [block[4] for block in SCRIPT["BLOCK"].finditer(page) if block[3]]


@pytest.mark.long
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_the_page_runs_and_prints_as_many_lines_as_it_shows(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    page = path.read_text(encoding="utf-8")
    found = SCRIPT["with_outputs"](page, run_quickly)
    blocks = shown(page)
    assert len(blocks) >= 6 and all(block.strip() for block in blocks)
    assert [lines_of(block) for block in shown(found)] == [lines_of(block) for block in blocks]
    untrained = [
        at for at, block in enumerate(blocks) if "reviews" in block or "of the 10" in block
    ]
    assert untrained and all(shown(found)[at] == blocks[at] for at in untrained)


def test_every_block_of_a_tutorial_is_run():
    for path in PAGES:
        page = path.read_text(encoding="utf-8")
        kinds = set(re.findall(r"^```(\w+)", page, re.MULTILINE))
        run = list(SCRIPT["BLOCK"].finditer(page))
        assert kinds == {"bash", "python", "text"}
        # jupytext opens the page as a Python notebook, its `bash` blocks as cells of bash.
        assert re.match(r"<!--\n\n---\njupyter:\n  kernelspec:\n(?:    .*\n)+---\n\n-->\n", page)
        assert page.count("\n```\n") == len(run) + len(shown(page))


@pytest.mark.slow
def test_the_pages_show_what_the_commands_print(monkeypatch):
    monkeypatch.setattr("sys.argv", ["tutorials.py", "--check"])
    assert SCRIPT["main"]() == 0
