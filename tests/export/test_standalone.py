"""An export answers as its run does, with NumPy and onnxruntime alone.

The graph itself is tested in test_onnx.py. Here torch stands in for onnxruntime where that is
missing, so that all the rest is tested everywhere.
"""

import csv
import importlib.util
import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import superconext
from superconext import SuperConTextClassifier, __version__
from superconext.core.arrays import read_arrays
from superconext.core.blank import is_blank
from superconext.core.errors import DataError, MissingExtraError, RunError
from superconext.export import onnx_model
from superconext.export.exported_model import checked_facts, load_export
from superconext.export.onnx_folder import (
    difference_on_texts,
    generated_texts,
    tolerance_of,
    write_rest,
)
from superconext.export.onnx_model import OnnxModel
from superconext.export.standalone import write_standalone
from superconext.runs.folder import save_run
from tests.cli.conftest import call_main
from tests.estimator.test_contract import LABELS, TEXTS, TINY
from tests.export.conftest import labels_of
from tests.runs.test_folder import make_model

KINDS = {
    "encoder": {},
    "members": {"members": 2, "layers": 2, "pooling": "last", "calibrate": True},
    "bridge": {"bridge": "moroccan", "normalize": "arabic+ta_marbuta"},
    "words alone": {"subwords": False, "normalize": "none"},
    "tfidf": {"probe_features": "encoder+tfidf", "calibrate": True},
    "ngrams": {"probe_features": "encoder+ngrams", "members": 2},
    "ngrams, three classes": {"probe_features": "encoder+ngrams", "logit_adjustment": 0.5},
}
HAS_ONNX = all(importlib.util.find_spec(name) for name in ("onnx", "onnxruntime"))


class TorchSession:
    """What an onnxruntime session answers, by the run's own encoders and probe."""

    def __init__(self, model):
        self.model = model

    def get_outputs(self):
        return [SimpleNamespace(name="scores", shape=["batch", len(self.model.classes)])]

    def run(self, names, fed):
        assert names == ["scores", "sentence"]
        ids = torch.from_numpy(fed["ids"])
        lengths = (ids != 0).sum(dim=1).clamp(min=1)
        tables = [encoder.vector_table(None) for encoder in self.model.encoders]
        edges = np.cumsum([table.shape[1] for table in tables])[:-1]
        new = np.split(fed["oov_words"], edges, axis=1)
        with torch.no_grad():
            parts = [
                encoder(ids, lengths, torch.cat([table, torch.from_numpy(own)])).sentence
                for encoder, table, own in zip(self.model.encoders, tables, new, strict=True)
            ]
        sentence = torch.cat(parts, dim=1).numpy()
        return self.model.probe.decision(sentence), sentence


def opened(model, folder):
    """The export of a model, written into a new folder."""
    if HAS_ONNX:
        from superconext.export.onnx_folder import write_onnx

        assert write_onnx(model, folder) <= tolerance_of(model)
        return OnnxModel(folder)
    (folder / "model.onnx").write_bytes(b"a graph")
    write_rest(model, folder)
    return opened_as(model, folder)


def opened_as(model, folder):
    """The export in a folder, with torch in place of onnxruntime where that is missing."""
    with pytest.MonkeyPatch.context() as patch:
        if not HAS_ONNX:
            patch.setattr(onnx_model, "session_of", lambda *_: TorchSession(model))
        return OnnxModel(folder)


@pytest.fixture(scope="module", params=KINDS)
def model(request):
    names = LABELS if "three" not in request.param else ["a", "b", "c"] * 8
    texts = [f"{text} {k}" for k in range(10) for text in TEXTS]
    given = {**TINY, "epochs": 1, **KINDS[request.param]}
    return SuperConTextClassifier(**given).fit(texts, names * 10).model_


@pytest.fixture(scope="module")
def export(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    return opened(model, folder), folder


def test_it_answers_as_the_run_does(model, export):
    other, _ = export
    assert difference_on_texts(model, other, count=400, seed=1) <= tolerance_of(model)
    texts = generated_texts(model, 300, seed=2)
    assert len({*texts}) > 290 and {"", "\ud800"} <= {*texts}
    assert np.abs(other.features(texts) - model.features(texts)).max() < 1e-6
    assert other.predict(texts).tolist() == labels_of(model, texts)
    some = [text for text in texts if not is_blank(text)]
    assert np.array_equal(other.predict_proba(some), other.probabilities(some))
    assert np.allclose(other.predict_proba(["", "\u200b\ufeff"]), 1 / len(model.classes))
    # What stands beside the encoder takes part.
    probe = model.probe.probabilities(model.features(texts))
    alone = model.ensemble is None
    assert np.allclose(other.probabilities(texts), probe, atol=1e-4) == alone
    assert other.probabilities([]).shape == (0, len(model.classes))
    assert other.predict([]).shape == (0,)
    with pytest.raises(DataError, match="found one string; expected a list"):
        other.predict("khayb bzaf")  # else each letter would be labelled


@pytest.mark.slow
def test_it_answers_as_the_run_does_on_ten_thousand_texts(model, export):
    assert difference_on_texts(model, export[0], count=10_000, seed=3) <= tolerance_of(model)


FAKE = """
from types import SimpleNamespace
import numpy as np

class SessionOptions: ...

class InferenceSession:
    def __init__(self, path, options, providers): ...
    def get_outputs(self):
        return [SimpleNamespace(name="scores", shape=["batch", CLASSES])]
    def run(self, names, fed):
        weights = np.arange(1, fed["ids"].shape[1] + 1)
        sums = ((fed["ids"] % 97) * weights).sum(axis=1) / 1000 + float(fed["oov_words"].sum())
        return np.outer(sums, np.linspace(-1, 1, CLASSES)), sums[:, None].astype(np.float32)
"""

#: What answers must not need.
ABSENT = (
    "torch", "sklearn", "scipy", "gensim", "safetensors", "click", "tqdm", "superconext",
    "transformers", "tokenizers", "threadpoolctl", "joblib",
)  # fmt: skip


def test_the_folder_alone_answers(model, export, tmp_path, monkeypatch):
    """In a process that has NumPy, and a stand-in for onnxruntime, and nothing else."""
    _, folder = export
    (tmp_path / "onnxruntime.py").write_text(FAKE.replace("CLASSES", str(len(model.classes))))
    texts = generated_texts(model, 200, seed=4)
    program = (
        f"import sys, json\nfor name in {ABSENT!r}: sys.modules[name] = None\n"
        f"sys.path[:0] = [{str(tmp_path)!r}, {str(folder)!r}]\n"
        "from classify import load\n"
        "print(json.dumps(load().probabilities(json.load(sys.stdin)).tolist()))\n"
    )
    words = [sys.executable, "-c", program]
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    said = subprocess.run(
        words, input=json.dumps(texts).encode(), capture_output=True, env=plain, check=False
    )
    assert said.returncode == 0, said.stderr.decode()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)
    expected = OnnxModel(folder).probabilities(texts)
    assert np.abs(np.array(json.loads(said.stdout)) - expected).max() < 1e-9
    del sys.modules["onnxruntime"]  # monkeypatch would put the stand-in back


@pytest.fixture
def classify(model, export, tmp_path):
    """Runs the program of the folder beside a stand-in for onnxruntime."""
    (tmp_path / "onnxruntime.py").write_text(FAKE.replace("CLASSES", str(len(model.classes))))
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def run(*words, given=b"", program="classify.py"):
        command = [sys.executable, str(export[1] / program), *words]
        return subprocess.run(command, input=given, capture_output=True, env=env, check=False)

    return run


def test_the_program_of_the_folder_classifies(model, export, classify):
    said = classify("-", "--proba", given="zwin\tbzaf\n\n  \nزوين\u2028\r\n".encode())
    assert said.returncode == 0, said.stderr.decode()
    head, *rows = said.stdout.decode().split("\n")[:-1]
    assert head.split("\t") == ["label", *model.classes, "text"] and len(rows) == 4
    cells = [row.split("\t") for row in rows]
    assert cells[1] == [""] * (len(model.classes) + 2) and cells[0][-1] == "zwin bzaf"
    assert cells[3][0] in model.classes
    assert sum(map(float, cells[0][1:-1])) == pytest.approx(1, abs=1e-5)
    assert all(len(cell) == 6 for cell in cells[0][1:-1])
    readme = (export[1] / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) <= 25 and "@" not in readme and "\n\n\n" not in readme
    for told in (*model.classes, "pip install numpy onnxruntime", "run `", __version__):
        assert told in readme


@pytest.mark.long
@pytest.mark.parametrize("model", ["encoder"], indirect=True)
def test_the_programs_of_the_folder_read_tables_and_options(model, classify, tmp_path):
    lines = tmp_path / "lines.jsonl"
    lines.write_text(json.dumps({"text": "zwin\r\nbzaf\rbnin"}) + "\n", encoding="utf-8")
    said = classify(lines)
    assert said.stdout.decode().split("\t")[-1].splitlines() == ["zwin bzaf bnin"]
    plain = classify("-", given=b"zwin").stdout.decode()
    assert plain.split("\t")[0] in model.classes and plain.endswith("\tzwin\n")
    assert classify("-").stdout == b"" and classify(given=b"zwin").stdout == plain.encode()
    said = " ".join(classify("--help").stdout.decode().split())
    for told in ("pip install numpy onnxruntime", "one a line", "default: standard input", "4 dec"):
        assert told in said
    said = " ".join(classify("--help", program="serve.py").stdout.decode().split())
    for told in ("--host HOST address to", "any free one", "of onnxruntime", "starlette uvicorn"):
        assert told in said
    assert "--keep" not in said and "--proba" not in said, "no table is read here"
    for program, *words in (["classify.py", "-", "--prob"], ["serve.py", "--po"]):
        failed = classify(*words, program=program, given=b"zwin")
        assert failed.returncode == 2 and not failed.stdout  # no part of a name is taken for it
        assert f"unrecognized arguments: {words[-1]}".encode() in failed.stderr
    failed = classify(str(tmp_path / "none"))
    assert failed.returncode == 1 and failed.stderr.decode().startswith("error: ")
    assert (
        b"none: no such file, expected a data file" in failed.stderr
        and b"Traceback" not in failed.stderr
    )
    table = tmp_path / "table.csv"
    table.write_text('n;text;label\n1;"zwin; ""bzaf""\n";good\n2;khayb\n\n', encoding="utf-8-sig")
    said = classify(str(table))
    answers = said.stdout
    texts = [row.split("\t")[1] for row in answers.decode().splitlines()]
    assert texts == ['zwin; "bzaf" ', "khayb"]
    assert said.stderr.decode() == f"note: {table}: columns read as separated by semicolons\n"
    assert answers == classify("-", given=b'zwin; "bzaf" \nkhayb\n').stdout
    assert classify(str(table), "--text-column", "n").stdout.endswith(b"\t2\n")
    failed = classify(str(table), "--text-column", "body")
    assert failed.returncode == 1 and b"no column 'body', found 'n', 'text', 'lab" in failed.stderr
    kept = classify(str(table), "--keep", "N", "--keep", "label")
    rows = [row.split("\t") for row in kept.stdout.decode().splitlines()]
    assert rows[0] == ["label", "text", "n", "given_label"]
    assert classify(str(table), "--keep", "all").stdout == kept.stdout
    assert [row[1:] for row in rows[1:]] == [['zwin; "bzaf" ', "1", "good"], ["khayb", "2", ""]]
    both = classify(str(table), "--keep", "n", "--proba").stdout.decode().splitlines()
    assert both[0].split("\t") == ["label", *model.classes, "text", "n"]
    whole = tmp_path / "labels.tsv"
    written = classify(str(table), "--out", str(whole))
    assert written.stdout == b"" and b"labels.tsv: 2 rows" in written.stderr
    assert whole.read_bytes() == b"label\ttext\n" + answers
    failed = classify(str(table), "--out", str(whole))
    assert failed.returncode == 1 and b"exists already; expected a new file" in failed.stderr
    cut = tmp_path / "cut.csv"
    cut.write_bytes(table.read_bytes() + b"\xff\xfe\n")
    failed = classify(str(cut), "--out", str(whole), "--force")
    assert failed.returncode == 1 and whole.read_bytes() == b"label\ttext\n" + answers
    assert classify(str(table), "--proba", "--out", str(whole), "--force").returncode == 0
    assert whole.read_text(encoding="utf-8").count("\t") == 3 * (1 + len(model.classes))
    before = table.read_bytes()
    failed = classify(str(table), "--out", str(table), "--force")
    assert failed.returncode == 1 and b"is the file that is read" in failed.stderr
    assert table.read_bytes() == before
    sheet = tmp_path / "labels.csv"
    assert classify(str(table), "--out", str(sheet)).returncode == 0
    with sheet.open(encoding="utf-8-sig", newline="") as stream:
        lines = list(csv.reader(stream, delimiter=";"))
    assert [row[1] for row in lines] == ["text", 'zwin; "bzaf"\n', "khayb"]
    odd = tmp_path / "odd.csv"
    odd.write_bytes(b'n,text\n1,"mlih\rnadi"\n2,zwin\n')
    assert classify(str(odd), "--out", str(sheet), "--force").returncode == 0
    with sheet.open(encoding="utf-8-sig", newline="") as stream:
        assert [row[1] for row in csv.reader(stream)] == ["text", "mlih\rnadi", "zwin"]
    for name in ("none/labels.tsv", "labels.txt", "labels"):
        failed = classify(str(table), "--out", str(tmp_path / name))
        assert failed.returncode == 1 and b"Traceback" not in failed.stderr
    assert not list(tmp_path.glob("*.part"))
    failed = classify(str(table), "--keep", "id")
    assert failed.returncode == 1 and not failed.stdout
    assert b"no column 'id', found 'n', 'text', 'label'" in failed.stderr
    assert b"give one of these with --keep" in failed.stderr
    failed = classify("-", "--keep", "id", given=b"zwin")
    assert failed.returncode == 1 and b"found no named column beside the text" in failed.stderr
    assert classify("-", given=table.read_bytes()).stdout == answers, "a table may be piped"
    table.write_text("id;text\n", encoding="utf-8")
    failed = classify(str(table))
    assert failed.returncode == 1 and not failed.stdout and b"error: " in failed.stderr


@pytest.mark.parametrize("model", ["encoder"], indirect=True)
def test_the_program_of_the_folder_warns_of_what_is_not_read(model, classify):
    most = model.config.max_length
    said = classify("-", given=b"zwin\n" + b"zwin " * (most + 1) + b"\n")
    told = f"warning: the model reads only the first {most} tokens of a text, and 1 of 2 texts is"
    assert said.returncode == 0 and said.stderr.decode().endswith(f"\n{told} longer\n")


def test_a_damaged_export_is_refused(model, export, tmp_path):
    import shutil

    _, folder = export
    facts = json.loads((folder / "model.json").read_text())
    damages = [("model.onnx", b"other"), ("model.json", b"[]"), ("model.json", b"[" * 100_000)]
    damages.append(("model.json", b'{"format": 99}'))
    damages.append(("model.json", json.dumps({**facts, "format": 1}).encode()))
    for name in (name for name in facts["files"] if name != "model.onnx"):
        damages.append((name, (folder / name).read_bytes()[:-3]))
    count = len(facts["classes"])
    for change in (
        {"ensemble": "none"}, {"priors": {}}, {"classes": "abc"[:count]},
        {"classes": ["a"] * count}, {"classes": [*facts["classes"], "new"]}, {"columns": "x"},
        {"classes": [*range(count)]}, {"columns": [1, 2]}, {"columns": {"text": []}},
        {"files": []}, {"label_type": 3}, {"vocabulary": None}, {"ensemble": None, "more": 1},
        {"classes": facts["classes"][::-1]},
    ):  # fmt: skip
        damages.append(("model.json", json.dumps({**facts, **change}).encode()))
    for name, content in damages:
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        (copy / name).write_bytes(content)
        with pytest.raises(RunError, match="export it again") as refused:
            opened_as(model, copy)
        assert "\n" not in str(refused.value)
        shutil.rmtree(copy)


def test_what_answers_beside_the_graph_is_under_the_hashes(model, export):
    _, folder = export
    files = json.loads((folder / "model.json").read_text(encoding="utf-8"))["files"]
    beside = {f"ensemble/{file.name}" for file in folder.glob("ensemble/*")}
    vectors = {f"vectors/{file.name}" for file in folder.glob("vectors/*")}
    assert {*files} == {"model.onnx", "ngrams.safetensors", *beside, *vectors}
    assert bool(beside) == (model.ensemble is not None)


def test_a_file_that_is_gone_is_named(export, tmp_path):
    import shutil

    _, folder = export
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    files = json.loads((folder / "model.json").read_text())["files"]
    for name in ("model.json", *files):
        (copy / name).rename(tmp_path / "away")
        told = f"{copy / name}: missing; expected a whole export: copy or export it again"
        said = call_main("predict", copy, stdin=b"zwin\n")
        assert (said.code, said.err.strip()) == (1, f"error: {told}")
        with pytest.raises(RunError, match=f"^{re.escape(told)}$"):
            superconext.load(copy)
        (tmp_path / "away").rename(copy / name)


def test_arrays_are_read_as_the_library_reads_them(tmp_path):
    from safetensors.numpy import load_file, save_file

    arrays = {
        "a": np.arange(6.0).reshape(2, 3),
        "b": np.ones((0, 4), np.float32),
        "c": np.array([7], np.int32),
        "d": np.float16([[1.5]]),
        "e": np.array(3, np.int64),
    }
    save_file(arrays, tmp_path / "x", {"about": "test"})
    ours, theirs = read_arrays(tmp_path / "x"), load_file(tmp_path / "x")
    assert ours.keys() == theirs.keys()
    for name, array in theirs.items():
        assert ours[name].dtype == array.dtype and np.array_equal(ours[name], array)
        assert ours[name].shape == array.shape
    whole = (tmp_path / "x").read_bytes()
    header = json.dumps({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 9]}}).encode()
    for content in (
        b"", whole[:7], whole[:60], whole[:-1], b"\xff" * 40,
        len(header).to_bytes(8, "little") + header + bytes(9),
        (2).to_bytes(8, "little") + b"[]",
    ):  # fmt: skip
        (tmp_path / "x").write_bytes(content)
        with pytest.raises(ValueError, match="no whole safetensors file"):
            read_arrays(tmp_path / "x")


def test_many_unseen_words_without_scipy(monkeypatch):
    from superconext.vectors.subwords import SubwordTable

    table = SubwordTable(np.random.default_rng(0).standard_normal((500, 4)), 2, 5)
    words = [f"kalima{k * 7919 % 10007}" for k in range(1500)] + ["a" * 9000]
    expected, _ = table.compose_many(words)
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    found, _ = table.compose_many(words)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_an_onnxruntime_that_is_too_old_is_told(tmp_path, monkeypatch):
    old = FAKE.replace("CLASSES", "2").replace(
        "options, providers): ...",
        'options, providers): raise ValueError("9 : NOT_IMPLEMENTED : ReduceL2")',
    )
    (tmp_path / "onnxruntime.py").write_text(old)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "onnxruntime", raising=False)
    with pytest.raises(MissingExtraError, match=r"model\.onnx needs onnxruntime 1\.20\.1 or newer"):
        onnx_model.session_of(tmp_path / "model.onnx")
    del sys.modules["onnxruntime"]  # monkeypatch would put the stand-in back


@pytest.mark.parametrize("model", ["encoder"], indirect=True)
def test_threads_reach_onnxruntime(model, export, tmp_path):
    folder = export[1]
    if importlib.util.find_spec("onnxruntime"):
        options = load_export(folder, threads=3)._session.get_session_options()
        assert options.intra_op_num_threads == 3
    told = FAKE.replace("CLASSES", str(len(model.classes))).replace(
        "options, providers): ...",
        "options, providers): print('threads', options.intra_op_num_threads, file=sys.stderr)",
    )
    (tmp_path / "onnxruntime.py").write_text("import sys\n" + told)
    words = [sys.executable, str(folder / "classify.py"), "--threads", "3"]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    said = subprocess.run(words, input=b"zwin\n", capture_output=True, env=env, check=False)
    assert said.returncode == 0 and said.stderr.splitlines()[0] == b"threads 3", said.stderr


@pytest.mark.parametrize("model", ["encoder"], indirect=True)
def test_texts_that_are_not_read_to_their_end_are_counted_over_all_parts(model, export, tmp_path):
    (tmp_path / "onnxruntime.py").write_text(FAKE.replace("CLASSES", str(len(model.classes))))
    most = model.config.max_length
    texts = ["zwin"] * 2100
    for place in (0, 1023, 1024, 2099):
        texts[place] = "zwin " * (most + 1)
    words = [sys.executable, str(export[1] / "classify.py")]
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    given = "".join(f"{text}\n" for text in texts).encode()
    said = subprocess.run(words, input=given, capture_output=True, env=env, check=False)
    assert said.stderr.decode().endswith(", and 4 of 2100 texts are longer\n"), said.stderr


@pytest.mark.parametrize(
    "columns",
    [
        None,
        {"text": "Post", "label": "Label"},
        {"text": 1, "label": 0},
        {"text": "a", "label": None},
    ],
)
def test_columns_of_training_go_along(columns, tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"a graph")
    model = make_model(20)
    model.columns = columns
    write_rest(model, tmp_path, "my-run")
    facts = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    assert checked_facts(facts) == (model.classes, columns)
    assert "Made of the run `my-run` by" in (tmp_path / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"classes": ["a"]}, "not two labels or more that differ"),
        ({"classes": ["a", "b", "a"]}, "not two labels or more that differ"),
        ({"columns": {"text": "a", "label": ["b"]}}, "no names of columns"),
        ({"columns": {"text": ["a"], "label": "b"}}, "no names of columns"),
        ({"columns": ["a", "b"]}, "no names of columns"),
    ],
)
def test_facts_that_no_export_has(change, told):
    with pytest.raises(ValueError, match=told):
        checked_facts({"classes": ["a", "b"], "columns": None, **change})


def test_facts_of_an_export_without_columns():
    assert checked_facts({"classes": ["a", "b"]}) == (["a", "b"], None)
    with pytest.raises(LookupError):
        checked_facts({"columns": None})


def test_a_run_with_a_program_of_its_own_is_a_run(tmp_path):
    save_run(make_model(20), tmp_path / "run")
    (tmp_path / "run" / "classify.py").write_text("print('mine')\n", encoding="utf-8")
    assert load_export(tmp_path / "run") is None
    assert superconext.load(tmp_path / "run").predict(["zwin"]).shape == (1,)


def test_a_label_is_one_line_of_the_readme(tmp_path):
    labels = ["very\ngood", "bad\t one\x1b`<img>", "\ud800", *map(str, range(30))]
    write_standalone(tmp_path, ["numpy"], "static_model", "StaticModel(HERE)", labels, "r")
    readme = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert r"Labels: very good, bad one \`\<img\>, �, 0, " in readme
    assert "15, 16" in readme and "16, 17" not in readme
