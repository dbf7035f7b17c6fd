"""Options of several commands: groups in the help, registered names, what has left."""

import os
import shlex
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from superconext.cli import cli
from superconext.config.parameters import BY_NAME, DECIDED, GROUPS
from superconext.core.process import processors
from superconext.data.sample import SAMPLE_FILES
from superconext.objectives.catalogue import OBJECTIVES

SAMPLE = Path(__file__).parents[2] / "data" / "sample"
WITH_PARAMETERS = ("train", "compare", "fewshot", "sweep")


def output(*words):
    return CliRunner().invoke(cli, words).output


def test_commands_stand_under_headings():
    text = output("--help")
    for heading in ("Train and use a run:", "Experiments:", "Export, serve and share a run:"):
        assert f"\n{heading}\n" in text
    assert all(f"\n  {name} " in text for name in cli.commands)


@pytest.mark.parametrize("verb", WITH_PARAMETERS)
def test_every_parameter_stands_under_the_heading_of_its_group(verb):
    groups = [f"\n{group.capitalize()}:\n" for group in ("options", *GROUPS)]
    text = "\n" + output(verb, "--help-all")
    places = [text.find(group) for group in groups if group in text]
    assert places == sorted(places) and len(places) >= len(GROUPS)
    offered = {option.name for option in cli.commands[verb].params}
    for row in BY_NAME.values():
        if row.name not in offered:
            assert verb != "train" and row.name in ("objective", *DECIDED)
            continue
        flag = text.index(f"\n  --{row.name.replace('_', '-')} ")
        heading = max(text.rfind(group, 0, flag + 1) for group in groups)
        assert text.startswith(f"\n{row.group.capitalize()}:\n", heading), row.name


def test_an_objective_that_is_registered_later_can_be_named():
    words = ("train", "missing.tsv", "--out", "run", "--objective", "later")
    said = CliRunner().invoke(cli, words)
    assert said.exit_code == 2 and "expected one of superloss" in said.output
    OBJECTIVES.register("later", "nowhere.at_all:Later")
    try:
        assert "|later]" in output("train", "--help-all")
        said = CliRunner().invoke(cli, words)
        assert "Invalid value" not in said.output and said.exit_code != 2
    finally:
        del OBJECTIVES._added["later"]


def test_no_command_has_two_options_of_one_name():
    def commands(group):
        for command in group.commands.values():
            yield from commands(command) if isinstance(command, click.Group) else [command]

    for command in commands(cli):
        flags = [flag for option in command.params for flag in option.opts]
        assert len(flags) == len(set(flags)), command.name
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help, (command.name, option.name)


@pytest.mark.parametrize("verb", WITH_PARAMETERS)
def test_help_shows_what_most_people_need_and_where_the_rest_is(verb):
    short, whole = output(verb, "--help"), output(verb, "--help-all")
    assert f"more options: cli {verb} --help-all" in short
    flags = {line.split()[0] for line in short.splitlines() if line.startswith("  --")}
    assert {"--out", "--test", "--unlabelled", "--preset"} <= flags and len(flags) <= 20
    count = int(short.split(" more options")[0].split()[-1])
    assert count + len(flags) + short.count("TRAIN]") > 40
    everywhere = {line.split()[0] for line in whole.splitlines() if line.startswith("  --")}
    assert flags - {"--help"} <= everywhere | {"--help-all"}


@pytest.mark.parametrize(
    "verb, given, ours",
    [
        ("train", "--lr", "--learning-rate"),
        ("train", "--random-state", "--seed"),
        ("train", "--n-jobs", "--threads"),
        ("train", "--max-iter", "--epochs"),
        ("compare", "--random-state", "--seeds"),
        ("train", "--output_dir", "--out"),
        ("predict", "--label", None),
    ],
)
def test_names_of_other_tools_are_answered_with_ours(verb, given, ours):
    said = CliRunner().invoke(cli, [verb, "x.tsv", given, "1"])
    assert said.exit_code == 2
    assert (f"no option {given}; it is called {ours} here" in said.output) == (ours is not None)


def test_the_sample_is_written_once(tmp_path):
    def call(*words):
        return CliRunner().invoke(cli, ["sample", str(tmp_path / "here"), *words])

    assert "train.tsv" in call().output
    assert (tmp_path / "here" / "test.tsv").read_bytes() == (SAMPLE / "test.tsv").read_bytes()
    said = call()
    assert said.exit_code == 1 and "exists already" in str(said.exception)
    assert call("--force").exit_code == 0


def test_the_wheel_has_the_sample():
    settings = ConfigParser()
    settings.read(SAMPLE.parents[1] / "setup.cfg", encoding="utf-8")
    listed = settings["options.data_files"]["share/superconext/sample"].split()
    assert sorted(listed) == sorted(f"data/sample/{name}" for name in SAMPLE_FILES)
    assert sorted(SAMPLE_FILES) == sorted(path.name for path in SAMPLE.iterdir())


def test_all_that_train_misses_is_said_at_once():
    said = CliRunner().invoke(cli, ["train"]).output
    assert "'TRAIN'" in said and "'--out'" in said


def test_all_that_is_missing_is_named_at_once(call):
    said = call("suggest")
    assert said.code == 2 and "Missing argument 'RUN'; missing argument 'UNLABELLED';" in said.err
    assert said.err.endswith(" suggest runs/mine rows.csv\n")
    said = call("evaluate")
    assert said.code == 2 and "Missing argument 'RUN'; missing argument 'FILE';" in said.err
    said = call("evaluate", "my run")
    assert said.code == 2 and "Missing argument 'FILE'; expected" in said.err
    assert said.err.endswith(" evaluate 'my run' rows.csv\n") and "'RUN'" not in said.err
    said = call("evaluate", __file__)
    assert said.code == 2 and "Missing argument 'RUN'; expected" in said.err
    assert said.err.endswith(f" evaluate runs/mine {__file__}\n")
    said = call("sample")
    assert said.code == 2 and "Missing argument 'DIR'; expected, for example: " in said.err
    said = call("embed", "run")
    assert said.code == 2 and "Missing argument 'FILE'; missing option '--out';" in said.err
    said = call("compare", "--out", "compared")
    assert "Missing argument 'TRAIN'; missing option '--objectives'; expected" in said.err
    needed = "compare train.csv --objectives superloss,cross_entropy --out"
    program = said.err.split("usage: ")[1].split(" compare")[0]
    assert f"for example: {program} {needed}" in said.err
    said = call("sweep", "--seeds", 2)
    assert "Missing argument 'TRAIN'; missing option '--parameter'; missing option" in said.err
    assert "[TRAIN]\n" not in output("train", "--help").split("Options:")[1]


def test_a_shell_completes_commands_and_options():
    def completed(*words):
        program = (
            "import sys; sys.argv[0] = 'superconext'; from superconext.cli import main; main()"
        )
        more = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
        env = {**os.environ, **more, "_SUPERCONEXT_COMPLETE": "bash_complete"}
        command = [sys.executable, "-c", program]
        return subprocess.run(command, env=env, capture_output=True, text=True).stdout.split()

    assert completed("superconext", "tra") == ["plain,train"]
    assert completed("superconext", "train", "--unl") == ["plain,--unlabelled"]


@pytest.mark.parametrize(
    "words",
    [
        ("sweep", "TRAIN", "--parameter", "temperature", "--values", "0.1,0.3"),
        ("sweep", "TRAIN", "--parameter", "temperature"),
        ("fewshot", "TRAIN", "--shots", "2"),
        ("compare", "TRAIN", "--test", "TEST", "--objectives", "superloss"),
        ("compare", "TRAIN", "--test", "TEST", "--systems", "SYSTEMS"),
        ("compare", "TRAIN", "--protocol", "supercontext"),
    ],
)
def test_the_example_of_a_message_lacks_nothing(call, words, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    said = call(*words)
    assert said.code == 2
    example = shlex.split(said.err.split("for example: ")[1])
    again = call(*example[example.index(words[0]) :])
    assert again.code == 1 and "no such file" in again.err.lower(), again.err


def test_a_misspelt_parameter_is_told_before_what_is_missing(call):
    said = call("sweep", "train.csv", "--parameter", "temprature", "--values", "0.1,0.3")
    assert said.code == 2 and "did you mean 'temperature'?" in said.err


def test_seeds_are_marked_as_required():
    for command in ("fewshot", "sweep"):
        assert "0, 1, ... [required]" in " ".join(output(command, "--help").split())
    assert "[required, unless cross-validated]" in " ".join(output("compare", "--help").split())


def test_one_of_a_kind_is_no_plural(call, tmp_path):
    said = call(
        *("sweep", "train.csv", "--parameter", "epochs", "--values", "1", "--values", "2"),
        *("--seeds", 1, "--out", tmp_path / "swept"),
    )
    assert said.code == 2 and "found 1 parameter and 2 lists of values" in said.err


@pytest.mark.parametrize(
    "words, end",
    [
        (
            ("predict", "run", "x", "--seed", "1"),
            "; it belongs to superconext train, suggest, vectors train and ",
        ),
        (("train", "x", "--proba"), "No such option '--proba'; it belongs to superconext predict"),
        (("serve", "run", "--prot", "1"), "No such option '--prot'; did you mean '--port'?"),
        (("train", "x", "--otu", "y"), "No such option '--otu'; did you mean '--out'?"),
        (("train", "x", "--pooling-mode", "mean"), "; did you mean '--pooling'?"),
        (("data", "split", "x", "--nearest", "w"), "; it belongs to superconext vectors info"),
        (("predict", "run", "x", "--no-calibrate"), "; it belongs to superconext train, "),
        (("compare", "x", "--seed", "1"), "No such option '--seed'; did you mean '--seeds'?"),
        (("train", "x", "--hidden", "8"), "; did you mean '--hidden-size'?"),
        (("train", "x", "--tempreature", "8"), "; did you mean '--temperature'?"),
        (("evaluate", "run", "x", "--colour"), "No such option '--colour'"),
    ],
)
def test_an_option_of_another_command_is_told_with_the_command(call, words, end):
    said = call(*words)
    last = said.err.splitlines()[-1]
    assert said.code == 2 and end in last and last.count("superconext") <= 1
    assert ("did you mean" in last) == ("did you mean" in end)


@pytest.mark.parametrize(
    "words, texts",
    [
        (
            ("train", "--help-all"),
            [
                *("--unlabelled FILE", "--vectors FILE", "--related FILE", "--soft-labels FILE"),
                *("--init FOLDER", "learn word vectors from texts without a label"),
                *("final .0 or Arabic spelling", "and the text has 500,000 words"),
                "enough to read 45,000 rows, at least 6",
            ],
        ),
        (("train", "--help"), ["interrupted after its encoder's first epoch", "--budget TIME"]),
        (
            ("pretrain", "--help"),
            ["Replace FOLDER if it holds an encoder or word vectors.", "that each pass reads"],
        ),
        (("export", "--help"), ["n-gram vectors that no word uses"]),
        (("compare", "--help"), ["linear SVM; without --protocol also vectors_logreg"]),
        (("evaluate", "--help"), ["the rows that only one run predicts correctly"]),
    ],
)
def test_help_says_what_is_done(words, texts):
    said = " ".join(output(*words).split())
    assert [text for text in texts if text not in said] == []


def test_more_threads_than_processors_are_noted_at_once(call, tmp_path):
    many = processors() + 1
    said = call("predict", tmp_path / "none", "--threads", many)
    note = f"note: --threads {many}: found "
    assert said.err.startswith(note) and said.code == 1
    assert not call("predict", tmp_path / "none", "--threads", processors()).err.startswith(note)
    assert note not in call("predict", tmp_path / "none", "--threads", many, "--quiet").err
    said = call("train", tmp_path / "none", "--threads", many, "--out", tmp_path / "run")
    assert note in said.err
