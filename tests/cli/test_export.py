"""`superconext export`: a run in other forms, smaller, or a clear refusal."""

from __future__ import annotations

import json

import numpy as np
import pytest

import superconext
from superconext.runs.folder import load_model
from tests.cli.conftest import rows, write_table

TEXTS = [text for _, text in rows(10, seed=4)]


def test_a_folder_has_the_model_alone_and_its_history(call, finished, tmp_path):
    out = tmp_path / "model"
    said = call("export", finished.folder, "--out", out)
    assert said.code == 0 and said.out == "" and "MB" in said.err
    assert {path.name for path in out.iterdir()} == {
        "manifest.json", "config.toml", "vocabulary.json",
        "encoder.safetensors", "vectors.safetensors", "probe.safetensors",
    }  # fmt: skip
    before, after = (load_model(folder) for folder in (finished.folder, out))
    assert np.array_equal(after.probabilities(TEXTS), before.probabilities(TEXTS))
    told = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    was = json.loads((finished.folder / "manifest.json").read_text(encoding="utf-8"))
    assert told["data"] == was["data"] and told["command"] == was["command"]
    assert call("predict", out, stdin=b"zwin\n").code == 0


def test_pruning_prints_the_loss(call, finished, tmp_path):
    out = tmp_path / "small"
    words = ("--prune", "--test", finished.data.test, "--out", out)
    said = call("export", finished.folder, *words)
    assert said.code == 0, said.err
    assert said.out.startswith("loss in accuracy: ") and "before" in said.out
    told = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["pruned"]
    assert told["rows"] == 12 and told["test"] == "test.tsv"
    assert told["accuracy_loss"] == told["accuracy_before"] - told["accuracy_after"]
    scores = json.loads(call("evaluate", out, finished.data.test, "--json").out)
    assert scores["accuracy"] == pytest.approx(told["accuracy_after"])


def test_columns_of_any_name_can_be_said(call, finished, tmp_path):
    lines = finished.data.test.read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    odd = tmp_path / "odd.tsv"
    told = ["id\tbody\tmark", *[f"{n}\t{row[1]}\t{row[0]}" for n, row in enumerate(rows)]]
    odd.write_text("\n".join(told) + "\n", encoding="utf-8")
    columns = ("--text-column", "body", "--label-column", "mark")
    answers = []
    for number, words in enumerate([(finished.data.test,), (odd, *columns)]):
        out = tmp_path / str(number)
        said = call("export", finished.folder, "--prune", "--out", out, "--test", *words)
        assert said.code == 0, said.err
        answers.append(said.out)
    assert answers[0] == answers[1]
    out = tmp_path / "none"
    said = call("export", finished.folder, "--out", out, *columns)
    assert said.code == 2 and "for the files of static and --prune" in said.err


def test_labels_that_the_run_does_not_know_are_told(call, finished, tmp_path):
    """Else a loss of 0 is measured on rows that are all wrong, before and after."""
    other, out = tmp_path / "other.tsv", tmp_path / "out"
    lines = finished.data.test.read_text(encoding="utf-8").splitlines()
    other.write_text("\n".join(f"x{line}" for line in lines) + "\n", encoding="utf-8")
    said = call("export", finished.folder, "--prune", "--test", other, "--out", out)
    assert said.code == 1 and "found no label that" in said.err and not out.exists()
    other.write_text("\n".join([*lines, "odd\tzwin"]) + "\n", encoding="utf-8")
    said = call("export", finished.folder, "--prune", "--test", other, "--out", out)
    assert said.code == 0 and "'odd' (1 row)" in said.err


def test_only_expected_words_are_kept(call, finished, tmp_path):
    expected = tmp_path / "expected.txt"
    expected.write_text("kolchi zwin\n", encoding="utf-8")
    words = ("--prune", "--test", finished.data.test, "--expected", expected, "--json")
    said = call("export", finished.folder, *words, "--out", tmp_path / "small")
    told = json.loads(said.out)
    assert told["format"] == "folder" and told["pruned"]["words"] == [2, 1]
    assert load_model(tmp_path / "small").indexer.oov_vectors.words == ["kolchi"]


@pytest.mark.parametrize("form", ["onnx", "sentence-transformers"])
def test_the_other_formats(call, finished, tmp_path, form):
    pytest.importorskip(form.replace("-", "_"), reason=f"needs the {form} extra")
    if form == "onnx":
        pytest.importorskip("onnxruntime", reason="needs the onnx extra")
    said = call("export", finished.folder, "--format", form, "--out", tmp_path / "o", "--json")
    assert said.code == 0, said.err
    told = json.loads(said.out)
    assert told["format"] == form and told["bytes"] > 1000
    if form == "onnx":
        from superconext.export.onnx_model import OnnxModel

        assert told["largest_difference"] <= 1e-5
        expected = load_model(finished.folder).probabilities(TEXTS)
        assert np.abs(OnnxModel(tmp_path / "o").probabilities(TEXTS) - expected).max() < 1e-5


def test_what_cannot_be_done_is_refused_with_nothing_written(call, finished, tmp_path):
    (tmp_path / "there").mkdir()
    run = finished.folder
    for words, code, message in [
        (("--out", tmp_path / "there"), 1, "exists already"),
        (("--out", tmp_path / "x", "--prune"), 2, "--prune needs --test"),
        (("--out", tmp_path / "x", "--test", finished.data.test), 2, "go with --prune"),
        (("--out", tmp_path / "x", "--format", "keras"), 2, "keras"),
        ((), 2, "--out"),
        (("--out", tmp_path / "x", "--prune", "--test", tmp_path / "none"), 1, "no such file"),
    ]:
        said = call("export", run, *words)
        assert said.code == code and message in said.err, said.err
    assert call("export", tmp_path / "none", "--out", tmp_path / "x").code == 1
    assert [path.name for path in tmp_path.iterdir()] == ["there"]


def test_onnxruntime_answers_for_predict_and_embed(call, finished, tmp_path):
    for name in ("onnx", "onnxruntime"):
        pytest.importorskip(name, reason="needs the onnx extra")
    out = tmp_path / "onnx"
    assert call("export", finished.folder, "--format", "onnx", "--out", out).code == 0
    given = "\n".join(TEXTS).encode() + b"\n"
    ours, theirs = (
        [line.split("\t") for line in call("predict", run, "--proba", stdin=given).out.splitlines()]
        for run in (finished.folder, out)
    )
    assert [row[0] for row in ours] == [row[0] for row in theirs] and len(ours) == 11
    numbers = [[[float(cell) for cell in row[1:-1]] for row in rows[1:]] for rows in (ours, theirs)]
    assert np.allclose(*numbers, atol=2e-4)  # as printed
    for run, name in ((finished.folder, "a.npy"), (out, "b.npy")):
        assert call("embed", run, finished.data.test, "--out", tmp_path / name).code == 0
    vectors = [np.load(tmp_path / name) for name in ("a.npy", "b.npy")]
    assert vectors[1].dtype == np.float32 and np.allclose(*vectors, atol=1e-5)


def test_the_loss_is_told_against_the_run_where_words_are_left_out_too(call, finished, tmp_path):
    out, test = tmp_path / "small", finished.data.test
    words = ("--prune", "--test", test, "--vocabulary-min-count", 1000, "--json")
    said = call("export", finished.folder, *words, "--out", out)
    assert said.code == 0, said.err
    told = json.loads(said.out)["pruned"]
    whole, small = (
        json.loads(call("predict", folder, test, "--json").out) for folder in (finished.folder, out)
    )
    changed = [a["label"] != b["label"] for a, b in zip(whole, small, strict=True)]
    assert told["labels_changed"] == sum(changed) > 0
    for folder, name in ((finished.folder, "accuracy_before"), (out, "accuracy_after")):
        scores = json.loads(call("evaluate", folder, test, "--json").out)
        assert told[name] == pytest.approx(scores["accuracy"])
    manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["vocabulary_min_count"] == 1000 and manifest["pruned"]["rows"] == 12
    assert "command" not in manifest


def test_an_onnx_export_tells_what_run_it_was_made_of(call, finished, tmp_path):
    for name in ("onnx", "onnxruntime"):
        pytest.importorskip(name, reason="needs the onnx extra")
    out = tmp_path / "out"
    assert call("export", finished.folder, "--format", "onnx", "--out", out).code == 0
    readme = (out / "README.md").read_text(encoding="utf-8")
    assert f"Made of the run `{finished.folder.name}` by" in readme


def test_classes_that_differ_in_case_alone_stay_apart(call, tmp_path):

    texts = ["zwin bzaf", "khayb bzaf", "film zwin", "film khayb"] * 6
    given = {"vector_method": "random", "epochs": 6, "hidden_size": 4, "vector_dimension": 4}
    model = superconext.SuperConTextClassifier(**given).fit(texts, ["Pos", "pos"] * 12)
    model.save(tmp_path / "run")
    test = write_table(tmp_path / "a.tsv", [("Pos", "zwin had"), ("pos", "khayb had")] * 3)
    words = ("--prune", "--test", test, "--out", tmp_path / "out", "--json")
    said = call("export", tmp_path / "run", *words)
    assert said.code == 0, said.err
    right = (model.predict(["zwin had", "khayb had"]) == ["Pos", "pos"]).mean()
    assert json.loads(said.out)["pruned"]["accuracy_before"] == pytest.approx(right) and right > 0.5
