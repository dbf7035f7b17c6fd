"""`superconext compare` as a user meets it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

from superconext.cli import cli
from superconext.cli.experiments import compare
from tests.cli.conftest import environment

if "compare" not in cli.commands:
    cli.add_command(compare)

# The command line, but the second objective's first fit waits to be stopped, and says so.
PAUSING = """
import sys, time
from superconext.cli import cli, main
from superconext.cli.experiments import compare
from superconext.experiments import runner
cli.add_command(compare)
progress_line = runner.progress_line
def pausing(fit, *rest):
    if fit.system.name == "superloss":
        print("waiting", flush=True)
        time.sleep(60)
    return progress_line(fit, *rest)
runner.progress_line = pausing
main(sys.argv[1:])
"""


def words(data, out, *more):
    files = ("compare", data.train, "--dev", data.dev, "--test", data.test, "--out", out)
    return [*files, "--objectives", "superloss,ce_ce", "--seeds", "1", *data.small, *more]


@pytest.fixture(scope="module")
def finished(call, data, tmp_path_factory):
    out = tmp_path_factory.mktemp("compared") / "out"
    said = call(*words(data, out))
    assert said.code == 0, said.err
    return out, said


def test_table_on_stdout_and_progress_on_stderr(finished):
    out, said = finished
    lines = said.out.splitlines()
    assert lines[0].split()[:3] == ["system", "fits", "accuracy"]
    names = [line.split("  ")[0] for line in lines[2:9]]
    baselines = ["majority", "tfidf_logreg", "tfidf_svm", "vectors_logreg"]
    assert names == [*baselines, "superloss", "ce_ce", "ce_ce (own rule)"]
    assert "hierarchical bootstrap" in said.out and "[6/6] ce_ce" in said.err
    assert said.err.splitlines()[-2:] == [
        f"comparison folder: {out}",
        f"next: open {out / 'report.html'} in a browser",
    ]
    record = json.loads((out / "comparison.json").read_text(encoding="utf-8"))
    assert record["command"][:2] == ["superconext", "compare"]


def test_run_folders_in_place_of_files_are_for_evaluate(call, tmp_path):
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "manifest.json").write_text("{}")
    runs = (tmp_path / "old", tmp_path / "new")
    said = call("compare", *runs, "--test", "t.tsv")
    assert said.code == 2 and f"superconext evaluate {runs[0]} {runs[1]} t.tsv" in said.err


def test_json_is_one_document(finished, call, data):
    out, _ = finished
    said = call(*words(data, out, "--json", "--quiet", "--reference", "ce_ce (own rule)"))
    document = json.loads(said.out)
    assert said.code == 0 and document["reference"] == "ce_ce (own rule)"
    assert [row["fits"] for row in document["rows"]] == [1] * 7
    assert document["rows"][6]["p"] is None and 0 < document["rows"][0]["p"] <= 1


def test_leakage_is_said_on_stderr_and_stands_in_the_table(call, data, tmp_path):
    leaky = data._replace(dev=data.test)
    said = call(*words(leaky, tmp_path / "out", "--objectives", "superloss", "--quiet"))
    assert said.code == 0 and "warning: LEAKAGE: 12 of 12 test texts are in dev" in said.err
    assert "LEAKAGE" in said.out


def test_verify(finished, call):
    out, _ = finished
    said = call("compare", "--verify", out, 3)
    assert said.code == 0 and said.out.count(": match (12 predictions)") == 3
    told = json.loads(call("compare", "--verify", out, 1, "--json").out)
    assert [check["match"] for check in told["checks"]] == [True]


def test_verify_says_what_does_not_match(finished, call, tmp_path):
    out, _ = finished
    for name in ("comparison.json", "results.jsonl"):
        (tmp_path / name).write_bytes((out / name).read_bytes())
    path = tmp_path / "results.jsonl"
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        line["predictions"][0] ^= 1
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    said = call("compare", "--verify", tmp_path, 1)
    assert said.code == 1 and "DIFFERS (1 of 12 predictions" in said.out
    assert said.err.splitlines()[-1].startswith(f"error: {tmp_path}: 1 of 1 fits did not come out")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--objectives", "superlos"], "did you mean 'superloss'"),
        (["--objectives", "supcon,supcon"], "each once"),
        (["--objectives", ","], "one or more names"),
        (["--seeds", "0"], "--seeds"),
        (["--seed", "3"], "No such option"),
        (["--objective", "supcon"], "No such option"),
        (["--jobs", "0"], "--jobs"),
        (["--reference", "best"], "reference = 'best'"),
        (["--epochs", "0"], "epochs = 0"),
        (["--verify", "DIR", "3"], "--verify takes its files"),
    ],
)
def test_wrong_usage(call, data, tmp_path, more, message):
    said = call(*words(data, tmp_path / "out", *more))
    assert said.code == 2 and message in " ".join(said.err.split()) and not said.out
    assert not (tmp_path / "out").exists()


def test_missing_words(call, data, tmp_path):
    out = ("--out", tmp_path / "out")
    assert (
        "Missing argument 'TRAIN'"
        in call("compare", "--objectives", "supcon", "--seeds", 1, *out).err
    )
    for gone in ("--objectives", "--seeds", "--out"):
        line = words(data, tmp_path / "out")
        at = line.index(gone)
        said = call(*line[:at], *line[at + 2 :])
        assert said.code == 2 and f"Missing option '{gone}'" in said.err
    said = call(
        "compare", data.train, "--dev", data.dev, "--objectives", "supcon", "--seeds", 1, *out
    )
    assert said.code == 2 and "dev file without a test file" in said.err


def test_other_parameters_are_refused_in_one_line(finished, call, data):
    out, _ = finished
    said = call(*words(data, out, "--epochs", "3"))
    assert said.code == 1 and said.err.splitlines()[-1].startswith(
        f"error: {out}: made with epochs"
    )
    assert "Traceback" not in said.err


def test_a_run_s_own_configuration_may_be_given(finished, call, data, tmp_path):
    out, _ = finished
    path = tmp_path / "config.toml"
    path.write_text('seed = 5\nobjective = "supcon"\nepochs = 2\n', encoding="utf-8")
    said = call(*words(data, out, "--config", path))
    assert said.code == 0 and "seed is left out" in said.err and "objective is left out" in said.err


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 1), (signal.SIGKILL, -9)])
def test_a_stopped_comparison_goes_on(finished, call, data, tmp_path, number, code):
    line = [str(word) for word in words(data, tmp_path / "out")]
    with subprocess.Popen(
        [sys.executable, "-c", PAUSING, *line],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env=environment(),
    ) as process:
        assert process.stdout.readline() == "waiting\n"
        refused = call(*line)
        assert refused.code == 1 and f"process {process.pid} on" in refused.err
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == code
    if number == signal.SIGINT:
        assert err.splitlines()[-1] == (
            f"error: interrupted; 5 of 6 fits are in {tmp_path / 'out'}: "
            "resume by repeating the command"
        )
    said = call(*line)
    assert said.code == 0 and "5 of 6 fits are in" in said.err and "[6/6] ce_ce" in said.err
    assert ("was stopped while writing" in said.err) == (number == signal.SIGKILL)

    def predictions(out):
        lines = (out / "results.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line)["predictions"] for line in lines]

    assert predictions(tmp_path / "out") == predictions(finished[0])


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from superconext.cli.experiments import compare\n"
        "compare.main(['--help'], standalone_mode=False)\n"
        "assert not {'torch', 'sklearn', 'gensim', 'joblib', 'scipy'} & set(sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=False
    )
    assert done.returncode == 0, done.stderr
    assert "--objectives" in done.stdout and "--seed " not in done.stdout


def test_systems_and_data_sets_from_files(call, data, tmp_path):
    systems = tmp_path / "systems.toml"
    systems.write_text(
        '[[system]]\nname = "ours"\nobjective = "superloss"\nepochs = 1\n', encoding="utf-8"
    )
    sets = tmp_path / "sets.toml"
    text = "".join(
        f'[[dataset]]\nname = "{name}"\ntrain = "{data.train.as_posix()}"\n'
        f'test = "{path.as_posix()}"\n'
        for name, path in (("first", data.test), ("second", data.dev))
    )
    sets.write_text(text, encoding="utf-8")
    out = tmp_path / "out"
    line = ["compare", "--datasets", sets, "--systems", systems, "--seeds", 1, "--out", out]
    said = call(*line, *data.small)
    assert said.code == 0, said.err
    assert "all data sets" in said.out and "ours: superloss, epochs = 1." in said.out
    assert (out / "second" / "table.md").is_file() and (out / "overview.md").is_file()
    document = json.loads(call(*line, *data.small, "--json", "--quiet").out)
    assert list(document["datasets"]) == ["first", "second"] and "ours" in document["mean_ranks"]
    told = json.loads(call("compare", "--verify", out, 1, "--json").out)
    assert told["checks"][0]["dataset"] in ("first", "second")
    beside = call(*line, data.train, *data.small)
    assert beside.code == 2 and "--datasets names the files" in beside.err


def test_several_training_files(call, data, tmp_path):
    line = ["compare", data.train, data.dev, "--objectives", "superloss:epochs=1", "--seeds", 1]
    said = call(*line, "--out", tmp_path / "out", *data.small)
    assert said.code == 0, said.err
    assert said.out.startswith("train\n") and "\ndev\n" in said.out
    refused = call(*line, "--test", data.test, "--out", tmp_path / "two", *data.small)
    assert refused.code == 2 and "--datasets" in refused.err
