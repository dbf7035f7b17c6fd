"""The commands of docs/labelling.md, in order, in a folder with the sample."""

from __future__ import annotations

import csv
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from superconext.data.reading import read_labelled
from tests.cli.conftest import call_main

PAGE = (Path(__file__).parents[2] / "docs" / "labelling.md").read_text(encoding="utf-8")
SAMPLE = Path(__file__).parents[2] / "data"


def fill_in(path, answers):
    """What a person does in a spreadsheet."""
    with path.open(encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    for row in rows:
        assert row["label"] == ""
        row["label"] = answers[row["text"]]
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.DictWriter(stream, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def test_the_page_works_as_written(tmp_path, monkeypatch, capsys):
    shutil.copytree(SAMPLE, tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    truth = read_labelled("data/sample/train.tsv")
    answers = dict(zip(truth.texts, truth.labels, strict=True))
    blocks = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)
    assert [kind for kind, _ in blocks] == ["console", "console", "python"]
    for kind, block in blocks:
        if kind == "python":
            exec(compile(block, "page", "exec"), {})
            assert len(capsys.readouterr().out.splitlines()) == 3
            continue
        for line in block.splitlines():
            assert line.startswith("$ ")
            words = shlex.split(line[2:])
            if words[0] != "superconext":
                subprocess.run(line[2:], shell=True, check=True)
                continue
            said = call_main(*words[1:], *(["--no-baselines"] if words[1] == "train" else []))
            assert said.code == 0, f"{line}\n{said.err}"
            if words[1] == "suggest":
                fill_in(Path("next.csv"), answers)
    merged, audited = read_labelled("labelled-2.tsv"), read_labelled("audited.csv")
    assert len(merged) == len(audited) == 120
    assert set(zip(merged.texts, merged.labels, strict=True)) <= set(answers.items())
    assert sorted(audited.texts) == sorted(merged.texts)
