"""Exports of a transformer: sentence-transformers' own modules, and ONNX."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("transformers")

from superconext import SuperConTextClassifier
from superconext.export.onnx_folder import write_onnx, write_rest
from superconext.export.onnx_model import OnnxModel
from superconext.export.sentence_module import write_sentence_transformer
from tests.encoders.transformers import LABELS, NEW, TEXTS, bytewise, make_model

TRAINED = {"encoder": "transformer", "epochs": 1, "batch_size": 8, "max_length": 20}
SENTENCES = [*TEXTS, *filter(None, NEW), "zwin bzaf " * 40, "Zwin, bzaf"]
SENTENCES += [
    "zwin\u2028bzaf\x85w\x1cmzyan"
]  # white space that tokenizers drop as control characters

pytestmark = pytest.mark.filterwarnings("ignore:all sentences lie")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("models") / "bert")


def trained(folder, **given):
    fitted = SuperConTextClassifier(**{**TRAINED, **given}, model=folder).fit(TEXTS, LABELS)
    return fitted.model_


@pytest.mark.parametrize("pooling", ["cls", "mean", "max"])
def test_sentence_transformers_opens_it_without_superconext(pooling, folder, tmp_path, monkeypatch):
    library = pytest.importorskip("sentence_transformers")
    model = trained(folder, pooling=pooling)
    expected = model.features(SENTENCES)
    write_sentence_transformer(model, tmp_path)
    kinds = [entry["type"] for entry in json.loads((tmp_path / "modules.json").read_text())]
    assert kinds == [f"sentence_transformers.models.{k}" for k in ("Transformer", "Pooling")]
    for name in [name for name in sys.modules if name.split(".")[0] == "superconext"]:
        monkeypatch.setitem(sys.modules, name, None)
    opened = library.SentenceTransformer(str(tmp_path), device="cpu")
    assert np.abs(opened.encode(SENTENCES) - expected).max() < 1e-5
    # No layer that nothing reads, whose weights would be called missing.
    assert opened[0].auto_model.pooler is None


def test_white_space_counts_as_single_spaces_there_too(folder, tmp_path):
    from transformers import AutoModel, AutoTokenizer

    copied = Path(shutil.copytree(folder, tmp_path / "model"))
    bytewise(copied)
    model = trained(copied, freeze=True)
    (tmp_path / "out").mkdir()
    assert model.encoders[0].sentence_modules(model.indexer, tmp_path / "out")
    plain, odd = "zwin bzaf w mzyan", ["zwin  bzaf w mzyan", " zwin\nbzaf\tw\x1cmzyan \n"]
    read, bare = (
        AutoTokenizer.from_pretrained(tmp_path / "out"),
        AutoModel.from_pretrained(tmp_path / "out"),
    )
    ids = read([plain, *odd], return_tensors="pt").input_ids
    assert (ids == ids[:1]).all() and len(ids[0]) == 2 + len(plain)
    states = bare.eval()(ids).last_hidden_state.mean(dim=1).detach().numpy()
    assert np.abs(states - model.features([plain, *odd])).max() < 1e-5


def test_an_export_names_no_token_that_the_tokenizer_has_not(folder, tmp_path):
    copied = Path(shutil.copytree(folder, tmp_path / "model"))
    bytewise(copied, special=["[PAD]", "[CLS]", "[SEP]"])
    model = trained(copied, freeze=True)
    for name in ("out", "other"):
        (tmp_path / name).mkdir()
    assert model.encoders[0].sentence_modules(model.indexer, tmp_path / "out")
    settings = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    assert settings["pad_token"] == "[PAD]" and "unk_token" not in settings
    model.encoders[0].pad = 20  # a byte, as where a model names no padding
    assert model.encoders[0].sentence_modules(model.indexer, tmp_path / "other") is None


def test_vectors_of_one_length_have_length_1_there(folder, tmp_path):
    library = pytest.importorskip("sentence_transformers")
    model = trained(folder, options="unit=true")
    write_sentence_transformer(model, tmp_path)
    vectors = library.SentenceTransformer(str(tmp_path), device="cpu").encode(SENTENCES)
    assert np.abs(4 * vectors - model.features(SENTENCES)).max() < 1e-5


@pytest.mark.parametrize(
    "given", [{"objective": "dualcl"}, {"options": "layer=1"}, {"normalize": "arabizi"}]
)
def test_what_is_no_plain_transformer_is_wrapped(given, folder, tmp_path):
    library = pytest.importorskip("sentence_transformers")
    model = trained(folder, **given)
    write_sentence_transformer(model, tmp_path)
    opened = library.SentenceTransformer(str(tmp_path), device="cpu", trust_remote_code=True)
    assert np.abs(opened.encode(SENTENCES) - model.features(SENTENCES)).max() < 1e-5


@pytest.mark.long
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"pooling": "max", "options": "layer=1"},
        {"options": "unit=true", "objective": "dualcl", "members": 2},
        {"max_length": 500},  # more than the model has places for
    ],
)
def test_onnx_gives_torchs_numbers_from_text(given, folder, tmp_path):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    model = trained(folder, **given)
    assert write_onnx(model, tmp_path) <= 1e-5
    other = OnnxModel(tmp_path)
    assert np.abs(other.probabilities(SENTENCES) - model.probabilities(SENTENCES)).max() < 1e-5
    assert np.abs(other.features(SENTENCES) - model.features(SENTENCES)).max() < 1e-5
    assert np.abs(other.features([""]) - model.features([""])).max() < 1e-5, "no token"


def test_an_export_names_the_packages_it_needs(folder, tmp_path):
    model = trained(folder)
    (tmp_path / "model.onnx").write_bytes(b"a graph")
    write_rest(model, tmp_path)
    program = "import sys; sys.path[0] = sys.argv[1]; import classify; classify.needed('os', 'nil')"
    words = [sys.executable, "-c", program, str(tmp_path)]
    said = subprocess.run(words, capture_output=True, text=True, check=False)
    assert said.returncode == 1
    assert said.stderr.endswith("\nImportError: found no nil; expected it: pip install nil\n")
    packages = "PACKAGES = ('numpy', 'onnxruntime', 'tokenizers')\n"
    assert packages in (tmp_path / "classify.py").read_text(encoding="utf-8")
