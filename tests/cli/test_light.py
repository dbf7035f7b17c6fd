"""The plain install: without the packages of the extra `train`, exports answer and the rest says
which command brings what is missing."""

import configparser
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from superconext.cli import explain
from superconext.core.errors import TRAINING, MissingExtraError
from superconext.core.progress import Progress
from superconext.data.reading import read_labelled
from superconext.export.static_folder import write_static
from superconext.runs.folder import load_model
from tests.cli.test_serve import exported  # noqa: F401  (a fixture)

ROOT = Path(__file__).parents[2]
SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg", encoding="utf-8")
EXTRAS = SETUP["options.extras_require"]
#: Packages that a plain install need not have, by the names that Python imports.
ABSENT = (*TRAINING, "onnx", "matplotlib", "transformers", "pandas", "huggingface_hub")

#: Runs each list of words as a command, where none of `ABSENT` can be imported.
PROGRAM = f"""
import contextlib, io, json, sys

class Absent:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] in {ABSENT!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent)
import superconext
from superconext.cli import main
from superconext.export import server
server.run_server = lambda model, *_: print("serving", model)
found = []
for words in json.load(sys.stdin):
    out, err, code = io.StringIO(), io.StringIO(), 0
    sys.stdin = io.TextIOWrapper(io.BytesIO(b"zwin bzaf\\n\\n"), encoding="utf-8")
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            exec(words) if isinstance(words, str) else main(words)
        except SystemExit as leaving:
            code = leaving.code or 0
        except Exception as error:
            print(type(error).__name__, error, file=sys.stderr)
            code = 1
    found.append([code, out.getvalue(), err.getvalue()])
json.dump(found, sys.stdout)
"""


@pytest.fixture
def light(exported, tmp_path):  # noqa: F811
    """Runs commands, and statements of Python, as in a plain install: (code, out, err) of each."""

    def answers(*commands):
        lines = [c if isinstance(c, str) else [str(word) for word in c] for c in commands]
        said = subprocess.run(
            [sys.executable, "-c", PROGRAM], input=json.dumps(lines), env=exported[1],
            capture_output=True, text=True, check=False, cwd=tmp_path, encoding="utf-8",
        )  # fmt: skip
        assert said.returncode == 0, said.stderr
        return json.loads(said.stdout)

    return answers


def test_what_every_install_brings_is_light():
    needed = re.findall(r"^[\w-]+", SETUP["options"]["install_requires"], re.MULTILINE)
    assert sorted(needed) == ["charset-normalizer", "click", "numpy", "tqdm"]
    train = re.findall(r"^[\w-]+", EXTRAS["train"], re.MULTILINE)
    assert {name.replace("scikit-learn", "sklearn") for name in train} == {*TRAINING}
    assert "superconext[" not in EXTRAS["serve"]


def test_every_extra_that_a_message_or_page_names_is_there():
    for path in [
        *ROOT.glob("superconext/**/*.py"), *ROOT.glob("docs/*.md"), ROOT / "README.md",
        ROOT / "CONTRIBUTING.md", ROOT / "Makefile", ROOT / "setup.cfg",
    ]:  # fmt: skip
        text = path.read_text(encoding="utf-8")
        named = re.findall(r"(?:superconext|'\.)\[([a-z,-]+)\]", text)
        named += re.findall(r"MissingExtraError\(\s*[^()]*?, \"([a-z-]+)\"", text)
        named += re.findall(r"\bextra `([a-z-]+)`", text)
        for name in ",".join(named).split(","):
            assert not name or name in EXTRAS, (path, name)


def test_exports_answer(light, exported, finished, data, tmp_path):  # noqa: F811
    onnx, static = exported[0], tmp_path / "student"
    static.mkdir()
    rows = read_labelled(data.train)
    write_static(
        load_model(finished.folder), static, rows.texts, read_labelled(data.dev), Progress()
    )
    commands = [["--help"], ["--version"], ["sample", "sample"], ["data", "inspect", data.train]]
    commands += [["predict", folder, "--proba"] for folder in (onnx, static)]
    commands += [["serve", folder] for folder in (onnx, static)]
    python = "model = superconext.load({!r}); print(model.predict(['zwin', ' ']), model)"
    commands += [python.format(str(folder)) for folder in (onnx, static)]
    found = light(*commands)
    assert [code for code, _, _ in found] == [0] * len(commands), found
    asked = [["evaluate", static, data.test], ["explain", static, "zwin"], ["report", static]]
    asked += [["suggest", static, data.test], ["audit", data.train, "--run", static]]
    beside = ["evaluate", static, onnx, static, data.test]
    (code, scores, err), (compared, tests, why), *others = light(asked[0], beside, *asked[1:])
    assert code == 0 and "weighted F1" in scores and f"\n{static} (export) " in scores, err
    assert compared == 0 and f"accuracy against {static}" in tests and "p (McNemar)" in tests, why
    for words, (code, _, err) in zip(asked[1:], others, strict=True):
        assert code == 1 and "found an export, which predict, evaluate" in err, (words, err)
    for folder, (_, out, _), (_, served, _), (_, loaded, _) in zip(
        (onnx, static), found[4:6], found[6:8], found[8:], strict=True
    ):
        head, first, second = out.splitlines()
        assert head.startswith("label\tneg\tpos") and first.endswith("\tzwin bzaf")
        assert first.split("\t")[0] in ("neg", "pos") and not second.strip()
        assert str(folder) in served and str(folder) in loaded and "['neg', 'pos']" in loaded
        assert re.match(r"\['(neg|pos)' ''\] (Onnx|Static)Model\(", loaded)


def test_what_needs_training_names_the_package_and_the_command(light, finished, data, tmp_path):
    run = finished.folder
    commands = [
        ["train", data.train, "--out", "out"], ["predict", run], ["serve", run], ["report", run],
        ["export", run, "--out", "out"], ["evaluate", run, data.test], ["audit", data.train],
        ["compare", data.train, "--objectives", "superloss", "--out", "out"],
        ["vectors", "train", data.train, "--out", "out"], ["pretrain", data.train, "--out", "out"],
        ["explain", run, "zwin"], ["suggest", run, data.test],
    ]  # fmt: skip
    for words, (code, out, err) in zip(commands, light(*commands), strict=True):
        *_, last = err.splitlines()
        assert code == 2 and not out and "Traceback" not in err, (words, err)
        assert last.startswith("error: ") and "which is not installed: " in last, (words, last)
        assert last.split(" needs ")[1].split(",")[0] in TRAINING
        assert "pip install 'superconext[train]'" in last
        assert "pip install -c constraints.txt -e '.[train]'" in last
        assert (
            f"superconext {words[0]}" in last
            or f"{run}, which is a run" in last
            or "vectors" in last
        )
    commands = [["push", run, "a/b"], ["pull", "a/b", "--out", "out"]]
    for words, (code, _, err) in zip(commands, light(*commands), strict=True):
        assert code == 2 and "pip install 'superconext[hub]'" in err, (words, err)

    assert not (tmp_path / "out").exists()
    for code, _, err in light(
        "from superconext import SuperConTextClassifier",
        "from superconext.estimator import SuperConTextEncoder",
        f"superconext.load({str(run)!r})",
    ):
        assert code == 1 and err.startswith("MissingExtraError ") and err.count("\n") == 1, err
        assert "pip install 'superconext[train]'" in err


def test_a_wrong_path_is_told_as_one(light):
    (code, _, err), *_ = light(["predict", "nowhere"])
    assert code == 1 and "nowhere: no such folder" in err


def test_a_package_that_does_not_fit_is_told_from_one_that_is_missing():
    with pytest.raises(MissingExtraError, match=r"needs a package that is not installed: pip ins"):
        try:
            import superconext_of_nobody  # noqa: F401
        except ImportError:
            raise MissingExtraError("lora", "peft") from None
    told = r"that cannot be imported \(cannot import name 'gone' from .*\): pip install --upgrade '"
    with pytest.raises(MissingExtraError, match=told):
        try:
            from json import gone  # noqa: F401
        except ImportError:
            raise MissingExtraError("lora", "peft") from None


def test_a_cache_that_may_not_be_written_names_the_variable(monkeypatch, tmp_path):
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    for name, told in ((tmp_path / "cache" / "x", True), (tmp_path, True), ("/elsewhere", False)):
        error = PermissionError(13, "Permission denied", str(name))
        assert ("SUPERCONEXT_CACHE" in explain(error)) == told, name
