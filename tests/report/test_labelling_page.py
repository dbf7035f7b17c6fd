"""The Python of docs/labelling.md, in a folder with the sample; the tutorial has the commands."""

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_page_works_as_written(tmp_path, monkeypatch, capsys):
    shutil.copytree(ROOT / "data", tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "labelling.md").read_text(encoding="utf-8")
    ((kind, block),) = re.findall(r"```(\w+)\n(.*?)```", page, re.DOTALL)
    assert kind == "python"
    exec(compile(block, "page", "exec"), {})
    assert len(capsys.readouterr().out.splitlines()) == 3
