"""scripts/reproduce_results.py: its steps, and that it goes on where it was."""

import importlib.util
import itertools
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from superconext.cli import cli

SCRIPT = Path(__file__).parents[2] / "scripts" / "reproduce_results.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("reproduce_results", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


def test_every_step_is_a_command_that_has_these_options(script, tmp_path):
    """Files that are missing are complained of, options that do not exist come before that."""
    given = (tmp_path / "data", [str(tmp_path / "text.txt")], tmp_path / "out")
    planned = list(script.steps(*given, None))
    names = [step.name for step in planned]
    assert len(set(names)) == len(names) == 25
    with_vectors = list(script.steps(*given, "glove.txt"))
    assert set(names) - {step.name for step in with_vectors} == {"english-vectors"}
    for step in planned:
        if step.command[1:3] != ["-m", "superconext"]:
            continue
        verb = step.command[3]
        options = cli.commands[verb]
        words = step.command[4:]
        if hasattr(options, "commands"):
            options, words = options.commands[words[0]], words[1:]
        known = {word for parameter in options.params for word in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, step.name
        result = CliRunner().invoke(cli, [*step.command[3:], "--help"])
        assert result.exit_code == 0


def test_no_encoder_reads_a_text_that_its_table_is_about(script, tmp_path):
    planned = {s.name: s.command for s in script.steps(Path("D"), ["text.txt"], tmp_path, None)}
    tables = [name for name in planned if name.endswith("-table")]
    assert len(tables) == 3
    for name in tables:
        sets = planned[name][planned[name].index("--sets") + 1].split(",")
        for maker in ("-vectors", "-encoder"):
            words = planned[name.replace("-table", maker)]
            pairs = itertools.pairwise(words)
            held = {Path(file).parent.name for option, file in pairs if option == "--leave-out"}
            assert set(sets) <= held


def test_goes_on_where_it_was(script, tmp_path, monkeypatch, capsys):
    done = []

    def run(command, check):
        assert check
        to = Path(command[command.index("--out") + 1])
        done.append(to.name)
        if to.name.endswith("plain"):
            raise KeyboardInterrupt  # stopped before its last file is there
        to.mkdir()

    monkeypatch.setattr("subprocess.run", run)
    words = ["reproduce", str(tmp_path / "data"), "--unlabelled", "t.txt", "--only", "dialects"]
    monkeypatch.setattr("sys.argv", [*words, "--out", str(tmp_path / "out")])
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            script.main()
    assert done == ["dialects-vectors", "dialects-encoder", "dialects-plain", "dialects-plain"]
    assert "dialects-encoder: there already" in capsys.readouterr().err


def test_an_unknown_group_is_refused_with_those_there_are(script, tmp_path, monkeypatch, capsys):
    words = [
        "reproduce",
        "D",
        "--unlabelled",
        "t.txt",
        "--out",
        str(tmp_path),
        "--only",
        "dialekts",
    ]
    monkeypatch.setattr("sys.argv", words)
    with pytest.raises(SystemExit):
        script.main()
    assert "dialects, english, few, others, related" in capsys.readouterr().err


def test_what_no_other_step_makes_is_written_before_it_is_read(script, tmp_path):
    data, out = tmp_path / "data", tmp_path / "out"
    out.mkdir()
    for name, text in {
        "mac/all.tsv": "positive\tzwin bzaf\nmixed\tla\nnegative\tkhayb\n",
        "imdb/train.tsv": "1\tGood.<br />So good! Yes\n",
        "imdb/dev.tsv": "0\tBad.\n",
        "algerian_djalil/all.tsv": "neutral\twach",  # no end of line
        "twifil/all.tsv": "positive\ttop\n",
    }.items():
        path = data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for step in script.steps(data, ["text.txt"], out, None):
        if step.prepare is not None:
            step.prepare()
    read = {path.relative_to(out): path.read_text() for path in out.rglob("*") if path.is_file()}
    assert read == {
        Path("mac_two_classes.tsv"): "pos\tzwin bzaf\nneg\tkhayb\n",
        Path("sentences.txt"): "Good.\nSo good!\nYes\nBad.\n",
        Path("twifil_and_djalil.tsv"): "neutral\twach\npositive\ttop\n",
    }
