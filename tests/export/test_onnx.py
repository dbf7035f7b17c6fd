"""ONNX gives torch's numbers, for any batch, length and word."""

import copy
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from superconext.core.blank import is_blank
from superconext.core.errors import ConfigError, MissingExtraError, RunError
from superconext.encoders.base import Encoder
from superconext.export import onnx_folder, onnx_model
from superconext.export.onnx_folder import tolerance_of, write_onnx
from superconext.export.onnx_model import OnnxModel, run_session
from superconext.probe.logistic_regression import LogisticRegressionProbe
from tests.cli.conftest import environment
from tests.export.conftest import SENTENCES, labels_of

pytest.importorskip("onnx", reason="needs the onnx extra")
onnxruntime = pytest.importorskip("onnxruntime", reason="needs the onnx extra")


@pytest.fixture(scope="module")
def folder(model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("onnx")
    assert 0 <= write_onnx(model, folder) <= tolerance_of(model)
    return folder


@pytest.fixture(scope="module")
def session(folder):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(folder / "model.onnx"), options)


def test_ids_alone_give_the_probes_scores(model, session):
    (ids,) = session.get_inputs()
    assert ids.name == "ids" and ids.type == "tensor(int64)" and len(ids.shape) == 2
    assert all(isinstance(side, str) for side in ids.shape), "both may be of any size"
    known = [
        text
        for text in SENTENCES
        if all(t in model.indexer.vocabulary for t in model.tokens([text])[0])
    ]
    assert len(known) > 20
    store = model.store(known)
    for rows in (np.arange(len(known)), np.arange(1), np.arange(3, 8)):
        padded, _ = store.pad(rows)
        wider = np.pad(padded, ((0, 0), (0, 5)))
        expected = model.decision([known[i] for i in rows])
        for given in (padded, wider):
            (scores,) = session.run(["scores"], {"ids": given})
            assert scores.dtype == np.float64 and np.abs(scores - expected).max() < 1e-4


def test_text_gives_what_the_model_says_also_of_unseen_words(model, folder):
    other = OnnxModel(folder)
    assert other.classes == model.classes
    assert np.abs(other.probabilities(SENTENCES) - model.probabilities(SENTENCES)).max() < 1e-5
    assert np.abs(other.features(SENTENCES) - model.features(SENTENCES)).max() < 1e-5
    filled = [not is_blank(text) for text in [*SENTENCES, "", "\u200b"]]
    assert other.transform([*SENTENCES, "", "\u200b"]).any(axis=1).tolist() == filled
    assert other.transform([]).shape == (0, model.features(["a"]).shape[1])
    assert other.predict(SENTENCES).tolist() == labels_of(model, SENTENCES)
    assert (other.predict(SENTENCES[::-1])[::-1] == other.predict(SENTENCES)).all()


def test_a_long_text_among_short_ones_does_not_make_a_large_batch(folder, monkeypatch):
    sizes = []

    def watched(session, ids, oov_words):
        sizes.append(ids.shape)
        return run_session(session, ids, oov_words)

    texts = [*SENTENCES[:40], " ".join(["zwin"] * 700), *SENTENCES[40:60]]
    model = OnnxModel(folder)
    whole = model.probabilities(texts)
    monkeypatch.setattr(onnx_model, "run_session", watched)
    monkeypatch.setattr(onnx_model, "_TOKENS", 200)
    assert np.abs(model.probabilities(texts) - whole).max() < 1e-6
    assert sum(rows for rows, _ in sizes) == len(texts)
    assert all(rows == 1 or rows * width <= 200 for rows, width in sizes)
    assert max(rows for rows, _ in sizes) > 5
    sizes.clear()
    monkeypatch.setattr(onnx_model, "_TOKENS", 1 << 13)
    monkeypatch.setattr(onnx_model, "_BLOCK", 16)
    assert np.abs(model.probabilities(texts) - whole).max() < 1e-6
    assert max(rows for rows, _ in sizes) == 16


def test_a_damaged_folder_is_refused(folder, tmp_path):
    import shutil

    for name, content in [
        ("model.onnx", b"other"),
        ("model.json", b"{}"),
        ("model.json", b'{"format": 99}'),
        ("ngrams.safetensors", b""),
    ]:
        copy = tmp_path / "copy"
        shutil.copytree(folder, copy)
        (copy / name).write_bytes(content)
        with pytest.raises(RunError, match="export it again"):
            OnnxModel(copy)
        shutil.rmtree(copy)
    with pytest.raises(RunError, match="export it again"):
        OnnxModel(tmp_path / "none")


def test_numbers_that_differ_are_not_kept_quiet(model, tmp_path, monkeypatch):
    nan = float("nan")
    for part, found in (
        ("_difference", (nan, 0.0)),
        ("_difference", (0.0, nan)),
        ("_difference", (0.0, 2e-5)),
        ("difference_on_texts", nan),
    ):
        with monkeypatch.context() as patch, pytest.raises(RunError, match="differ"):
            patch.setattr(onnx_folder, part, lambda *_, found=found: found)
            folder = tmp_path / str(found)
            folder.mkdir()
            write_onnx(model, folder)


def test_without_the_package_the_extra_is_named(model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(MissingExtraError, match=r"superconext\[onnx\]"):
        write_onnx(model, tmp_path)


def test_predicting_needs_neither_torch_nor_scikit_learn(model, folder):
    program = (
        "import sys, json\n"
        "for name in ('torch', 'sklearn', 'gensim', 'onnx'):\n"
        "    sys.modules[name] = None\n"
        "from superconext.export.onnx_model import OnnxModel\n"
        "print(json.dumps(OnnxModel(sys.argv[1]).predict(json.loads(sys.argv[2])).tolist()))\n"
    )
    words = [sys.executable, "-c", program, str(folder), json.dumps(SENTENCES[:30])]
    said = subprocess.run(words, capture_output=True, env=environment(), check=False)
    assert said.returncode == 0, said.stderr.decode()
    assert json.loads(said.stdout) == labels_of(model, SENTENCES[:30])


def test_an_encoder_without_an_onnx_form_is_refused(model, tmp_path):
    class Other(Encoder):
        def vector_table(self, oov_words):
            return model.encoders[0].vector_table(oov_words)

    with pytest.raises(RunError, match="Other cannot be written as ONNX"):
        write_onnx(replace(model, encoders=[Other()]), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_probe_on_features_of_unit_length_answers_alike(model, tmp_path):
    other = replace(model, probe=replace(model.probe, unit_length=True))
    assert np.abs(other.probabilities(SENTENCES) - model.probabilities(SENTENCES)).max() > 1e-3
    write_onnx(other, tmp_path)
    answers = OnnxModel(tmp_path).probabilities(SENTENCES)
    assert np.abs(answers - other.probabilities(SENTENCES)).max() < 1e-5


one_shape = pytest.mark.parametrize("fitted", ["plain"], indirect=True)


@one_shape
def test_a_probe_that_is_not_the_packages_own_is_refused(model, tmp_path):
    class Other(LogisticRegressionProbe):
        def decision(self, features):
            return -super().decision(features)

    with pytest.raises(ConfigError, match="expected a logistic regression, which ONNX can hold"):
        write_onnx(replace(model, probe=Other(**vars(model.probe))), tmp_path)
    assert not list(tmp_path.iterdir())


@one_shape
def test_sentences_of_zeros_have_no_length_and_an_answer(model, tmp_path):
    encoders = copy.deepcopy(model.encoders)
    with torch.no_grad():
        for encoder in encoders:
            for part in (*encoder.forwards.parameters(), *encoder.backwards.parameters()):
                part.zero_()
    zero = replace(model, encoders=encoders, probe=replace(model.probe, unit_length=True))
    assert not zero.features(SENTENCES).any()
    write_onnx(zero, tmp_path)
    found = OnnxModel(tmp_path).probabilities(SENTENCES)
    assert np.abs(found - zero.probabilities(SENTENCES)).max() < 1e-9


@one_shape
@pytest.mark.parametrize("wrong", ["new words", "padding", "order"])
def test_a_graph_that_reads_something_wrongly_is_not_exported(model, tmp_path, monkeypatch, wrong):
    def faulty(session, ids, oov_words):
        if wrong == "new words":
            oov_words = np.zeros_like(oov_words)
        elif wrong == "padding":
            ids = np.where(ids == 0, 1, ids)
        else:
            scores, sentence = run_session(session, ids, oov_words)
            return scores, sentence[::-1]
        return run_session(session, ids, oov_words)

    # The texts alone are not to find it.
    monkeypatch.setattr(onnx_folder, "difference_on_texts", lambda *_: 0.0)
    monkeypatch.setattr(onnx_folder, "run_session", faulty)
    with pytest.raises(RunError, match="onnxruntime and torch differ by"):
        write_onnx(model, tmp_path)
