"""`superconext sweep` as a user meets it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.cli.conftest import environment


def words(data, out, *more):
    files = ("sweep", data.train, "--dev", data.dev, "--test", data.test, "--out", out)
    return [*files, "--seeds", "1", *data.small, *more]


VARIED = (
    *("--parameter", "options.mining-threshold", "--values", "2,4"),
    *("--options", "mining=topk"),
)


def test_dev_table_then_the_chosen_one_on_test(call, data, tmp_path):
    out = tmp_path / "out"
    said = call(*words(data, out, *VARIED))
    assert said.code == 0, said.err
    dev, test = said.out.split("on test\n")
    assert dev.startswith("on dev\n") and dev.count("chosen\n") == 1
    assert sum(line.startswith("superloss:") for line in test.splitlines()[:8]) == 1
    assert {path.name for path in out.iterdir()} >= {"dev.md", "dev.csv", "table.md"}
    document = json.loads(call(*words(data, out, *VARIED, "--json", "--quiet")).out)
    assert document["chosen"] in (
        {"options.mining_threshold": 2},
        {"options.mining_threshold": 4},
    )
    assert [row["options.mining_threshold"] for row in document["dev"]] == [2, 4]
    assert len(document["test"]) == 4


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ([], "Missing option '--parameter'"),
        (["--parameter", "layers"], "Missing option '--values'"),
        (["--parameter", "epoch", "--values", "1"], "did you mean 'epochs'"),
        (["--parameter", "epochs", "--values", "1"], "which is varied"),
        (["--parameter", "layers", "--values", "0"], "layers = 0"),
        (["--parameter", "layers", "--values", "1", "--objectives", "supcon"], "No such option"),
    ],
)
def test_wrong_usage(call, data, tmp_path, more, message):
    said = call(*words(data, tmp_path / "out", *more))
    assert said.code == 2 and message in " ".join(said.err.split()) and not said.out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("verb", ["fewshot", "sweep"])
def test_help_imports_nothing_heavy(verb):
    code = (
        "import sys\n"
        f"from superconext.cli.experiments import {verb} as command\n"
        "command.main(['--help-all'], standalone_mode=False)\n"
        "assert not {'torch', 'sklearn', 'gensim', 'joblib', 'scipy'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=False
    )
    assert done.returncode == 0, done.stderr
    assert "--scheduler" in done.stdout and "--seed " not in done.stdout
