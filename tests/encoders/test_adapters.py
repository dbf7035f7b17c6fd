"""LoRA: adapters are trained beside a transformer, and a run keeps them alone."""

import json
import shutil

import numpy as np
import pytest

pytest.importorskip("transformers")
pytest.importorskip("peft")

import torch
from safetensors.numpy import load_file

import superconext
from superconext import SuperConTextClassifier
from superconext.config.parameters import resolve
from superconext.core.errors import RunError
from superconext.data.dataset import Dataset
from superconext.export.hub import push
from superconext.fitting.fit import fit_model
from tests.cli.conftest import call_main, write_table
from tests.encoders.test_transformer import ONE_EPOCH, Stop
from tests.encoders.transformers import LABELS, NEW, TEXTS, make_model

ADAPTED = {**ONE_EPOCH, "learning_rate": 0.01, "options": "lora=2"}

pytestmark = pytest.mark.filterwarnings("ignore:all sentences lie")


@pytest.fixture
def model(tmp_path):
    return make_model(tmp_path / "base")


@pytest.mark.parametrize("objective", ["superloss", "dualcl"])
def test_a_run_has_adapters_and_the_name_of_their_model(objective, model, tmp_path):
    given = {**ADAPTED, "model": model, "objective": objective}
    fitted = SuperConTextClassifier(**given).fit(TEXTS, LABELS)
    untrained = SuperConTextClassifier(**{**given, "learning_rate": 1e-9}).fit(TEXTS, LABELS)
    assert not np.allclose(fitted.transform(NEW), untrained.transform(NEW), atol=1e-3)
    fitted.save(tmp_path / "run")
    saved = load_file(tmp_path / "run" / "encoder.safetensors")
    weights = [name for name in saved if name.startswith("encoder.0.model.")]
    assert weights and all("lora_" in name for name in weights)
    facts = json.loads((tmp_path / "run" / "vocabulary.json").read_text())["model"]
    assert facts["name"] == "base" and len(facts["sha256"]) == 64
    again = superconext.load(tmp_path / "run")
    assert np.array_equal(again.transform(NEW), fitted.transform(NEW))
    again.save(tmp_path / "twice")
    twice = superconext.load(tmp_path / "twice")
    assert np.array_equal(twice.predict_proba(NEW), fitted.predict_proba(NEW))


def test_other_base_weights_and_none_are_refused(model, tmp_path):
    SuperConTextClassifier(**ADAPTED, model=model).fit(TEXTS, LABELS).save(tmp_path / "run")
    make_model(tmp_path / "base", type_vocab_size=3)
    with pytest.raises(RunError, match="put it back") as error:
        superconext.load(tmp_path / "run")
    assert "\n" not in str(error.value)
    shutil.rmtree(model)
    outcome = call_main("predict", tmp_path / "run", stdin=b"zwin\n")
    assert outcome.code != 0 and outcome.err.count("\n") == 1 and "no such folder" in outcome.err


def test_only_adapters_change_and_a_resumed_training_is_the_same(model, tmp_path):
    config = resolve({**ADAPTED, "model": model, "epochs": 3})
    data = Dataset(TEXTS, LABELS)
    whole = fit_model(data, config)
    assert fit_model(data, config, callbacks=[Stop(2)], checkpoint=tmp_path).interrupted
    resumed = fit_model(data, config, checkpoint=tmp_path)
    assert np.array_equal(whole.features, resumed.features)
    encoder = whole.model.encoders[0]
    trained = [name for name, weight in encoder.named_parameters() if weight.requires_grad]
    assert trained and all("lora_" in name for name in trained)
    ids = whole.model.store(NEW[:2]).pad(np.arange(2))
    expected = encoder(*map(torch.from_numpy, ids)).sentence
    merged = encoder.merged()
    assert len(merged.state_dict()) > 10
    assert not any("lora" in name for name in merged.state_dict())
    assert torch.allclose(merged(*map(torch.from_numpy, ids)).sentence, expected, atol=1e-5)
    again = encoder(*map(torch.from_numpy, ids)).sentence
    assert torch.equal(again, expected), "merging has changed the encoder itself"


def test_an_exported_folder_has_merged_weights(model, tmp_path):
    pytest.importorskip("sentence_transformers")
    table = [(label, text) for text, label in zip(TEXTS, LABELS, strict=True)]
    train, run, out = write_table(tmp_path / "train.tsv", table), tmp_path / "run", tmp_path / "out"
    words = "--encoder", "transformer", "--model", model, "--options", "lora=2", "--epochs", 1
    outcome = call_main("train", train, "--out", run, *words, "--cv", 0, "--learning-rate", 0.01)
    assert outcome.code == 0, outcome.err
    outcome = call_main("export", run, "--format", "sentence-transformers", "--out", out)
    assert outcome.code == 0, outcome.err
    assert not any("lora" in name for name in load_file(out / "model.safetensors"))


def test_an_exported_run_needs_no_model_beside_it(model, tmp_path):
    run = tmp_path / "run"
    SuperConTextClassifier(**ADAPTED, model=model).fit(TEXTS, LABELS).save(run)
    alone, texts = tmp_path / "alone", b"zwin bzaf\nkhayb\n"
    assert call_main("export", run, "--out", alone).code == 0
    expected = call_main("predict", run, "--proba", "--quiet", stdin=texts).out
    shutil.rmtree(model)
    assert "no such folder" in call_main("predict", run, stdin=b"zwin\n").err
    outcome = call_main("predict", alone, "--proba", "--quiet", stdin=texts)
    assert outcome.code == 0, outcome.err
    assert expected and outcome.out == expected


def test_adapters_alone_are_not_pushed(model, tmp_path):
    SuperConTextClassifier(**ADAPTED, model=model).fit(TEXTS, LABELS).save(tmp_path / "run")
    with pytest.raises(RunError, match=r"found adapters .*superconext export \S+ --out NEW, then"):
        push(tmp_path / "run", "me/adapted")


def test_a_run_of_a_model_beside_it_opens_from_anywhere(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SuperConTextClassifier(**ADAPTED, model="base").fit(TEXTS, LABELS).save("run")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert len(superconext.load(tmp_path / "run").predict(NEW)) == len(NEW)
