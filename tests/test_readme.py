"""The README's commands run, its Python runs, and its table is what the demo prints."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PYTHON = f"'{sys.executable}' -m superconext"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "data", folder / "data")
    return folder


def run(command, folder):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUPERCONEXT_CACHE", str(folder / "cache"))
        patch.setenv("PYTHONPATH", str(ROOT))
        result = subprocess.run(
            command.replace("superconext ", PYTHON + " ", 1)
            if command.startswith("superconext")
            else command.replace("| superconext ", f"| {PYTHON} "),
            shell=True,
            cwd=folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
        )
    assert result.returncode == 0, f"{command}\n{result.stderr}"
    return result.stdout


def test_two_commands_and_a_result_within_the_first_thirty_lines():
    head = README.splitlines()[:30]
    assert "$ make demo" in head and "$ make test" in head
    assert any("superconext, linear probe" in line for line in head)
    targets = (ROOT / "Makefile").read_text()
    assert "\ndemo:" in targets and "\ntest:" in targets


def test_the_demo_by_hand_is_the_demo_of_make_and_prints_the_table_shown(folder):
    by_hand = next(line for line in blocks("sh")[0].splitlines() if " train " in line)
    words = by_hand.split(" train ", 1)[1].replace("runs/demo", "$(RUN)")
    assert f"superconext train {words}" in (ROOT / "Makefile").read_text()

    def scores(text):
        return {
            name.strip(): [float(cell) for cell in cells.split()[:3]]
            for name, cells in re.findall(r"^(.+?)  +(0\.\d+ .*)$", text, re.MULTILINE)
        }

    printed = scores(run("superconext train " + by_hand.split(" train ", 1)[1], folder))
    shown = scores(blocks("text")[0])
    assert list(printed) == list(shown) and len(shown) == 3
    for name, cells in shown.items():  # another machine rounds otherwise: 120 rows
        assert printed[name] == pytest.approx(cells, abs=0.04), name


def test_every_console_command_runs(folder):
    for block in blocks("console"):
        for line in block.splitlines():
            command = line.removeprefix("$ ")
            if not command.startswith("make "):
                assert run(command, folder).strip() or "embed" in command
    assert (folder / "vectors.npy").exists()


def test_the_python_runs(folder):
    for block in blocks("python"):
        (folder / "example.py").write_text(block, encoding="utf-8")
        assert "good" in run(f"'{sys.executable}' example.py", folder)


def test_every_link_leads_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target
