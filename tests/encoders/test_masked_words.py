"""The masked language model that CSS-LM may have beside it: its loss, its draws, its training."""

from functools import partial

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

from transformers import (
    AutoModelForMaskedLM,
    BertConfig,
    DebertaV2Config,
    DistilBertConfig,
    RobertaConfig,
)

from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError
from superconext.core.random_streams import HIDDEN_WORDS, random_stream
from superconext.data.dataset import Dataset
from superconext.encoders.transformer import TransformerEncoder
from superconext.fitting.fit import fit_model
from superconext.training.callbacks import Callback
from superconext.training.pool import EncodedPool
from tests.cli.conftest import call_main, write_table
from tests.encoders.transformers import LABELS, NEW, TEXTS, make_model

POOL = [f"{a} {b}" for a in NEW for b in TEXTS[:9] if a]
CSS = {
    "encoder": "transformer", "objective": "css_lm", "epochs": 3, "batch_size": 8,
    "learning_rate": 1e-3, "dropout": 0.1,
}  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore:all sentences lie")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("models") / "bert", auto=AutoModelForMaskedLM)


@pytest.fixture
def pool(tmp_path):
    path = tmp_path / "pool.txt"
    path.write_text("\n".join(POOL), encoding="utf-8")
    return str(path)


def test_a_head_that_transformers_cannot_read_is_told_of(model, monkeypatch):
    config = resolve({"encoder": "transformer", "model": model, "freeze": True})
    indexer = fit_model(Dataset(TEXTS, LABELS), config).model.indexer
    encoder = TransformerEncoder.build(config, indexer)

    def broken(*_):
        raise AttributeError("head has no\nweight")

    monkeypatch.setattr("superconext.encoders.transformer.language_head", broken)
    with pytest.raises(ConfigError, match=r"head that guesses.* \(head has no weight\)"):
        encoder.start_guessing(config)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(
    "kind",
    [BertConfig, RobertaConfig, DistilBertConfig, partial(DebertaV2Config, legacy=False)],
)
def test_the_loss_is_that_of_the_whole_model_word_by_word(kind, tied, tmp_path):
    folder = make_model(tmp_path / "model", kind, AutoModelForMaskedLM, tie_word_embeddings=tied)
    config = resolve({"encoder": "transformer", "model": folder, "dropout": 0.0})
    frozen = resolve({"encoder": "transformer", "model": folder, "freeze": True})
    indexer = fit_model(Dataset(TEXTS, LABELS), frozen).model.indexer
    encoder = TransformerEncoder.build(config, indexer)
    assert encoder.start_guessing(config)
    before = encoder.state_dict().keys()
    encoder.double(), encoder.language_head[0].double()
    store = indexer.store(POOL)
    rows = torch.arange(0, len(POOL), 2)
    pool = EncodedPool(store, encoder, torch.nn.Module(), seed=5, guesses=True)
    loss = pool.guess(rows, step=7)

    whole = AutoModelForMaskedLM.from_pretrained(folder).double().eval()
    words, terms = whole.get_input_embeddings().num_embeddings, []
    for row in rows.tolist():
        text = [int(word) for word in store.take(np.array([row]))[0]]
        chosen, other = random_stream(5, HIDDEN_WORDS, 7, row).random((2, len(text)))
        shown = list(text)
        for place in range(len(text)):
            if chosen[place] < 0.15 * 0.8:
                shown[place] = indexer.mask
            elif chosen[place] < 0.15 * 0.9:
                shown[place] = int(other[place] * words)
        ids = torch.tensor([[*indexer.prefix, *shown, *indexer.suffix]])
        with torch.no_grad():
            logits = whole(input_ids=ids, attention_mask=torch.ones_like(ids)).logits[0]
        for place, word in enumerate(text):
            if chosen[place] < 0.15:
                scores = logits[len(indexer.prefix) + place]
                terms.append(float(scores.exp().sum().log() - scores[word]))
    assert len(terms) > 10
    assert float(loss.detach()) == pytest.approx(sum(terms) / len(terms), rel=1e-9)
    loss.backward()
    assert encoder.model.get_input_embeddings().weight.grad.abs().sum() > 0
    assert encoder.finish().state_dict().keys() == before and not encoder.language_head


class Stop(Callback):
    def on_epoch_end(self, trainer, record):
        if record["epoch"] == 2:
            raise KeyboardInterrupt


def test_it_is_learned_and_a_resumed_training_is_the_same(model, pool, tmp_path):
    given = {**CSS, "model": model, "unlabelled": pool}
    config = resolve({**given, "options": "language_model=0.5,queries=2,retrieved=4"})
    data = Dataset(TEXTS, LABELS)
    whole = fit_model(data, config)
    assert ["language_model" in record for record in whole.history] == [False, True, True]
    stopped = fit_model(data, config, callbacks=[Stop()], checkpoint=tmp_path / "states")
    assert stopped.interrupted
    resumed = fit_model(data, config, checkpoint=tmp_path / "states")
    one, other = (fitted.model.encoders[0].state_dict() for fitted in (whole, resumed))
    assert all(torch.equal(value, other[name]) for name, value in one.items())
    without = fit_model(data, resolve({**given, "options": "queries=2,retrieved=4"}))
    assert not any("language_model" in record for record in without.history)
    assert not np.array_equal(whole.features, without.features)


@pytest.mark.parametrize("headless", ["layer", "base", "bilstm"])
def test_without_a_head_it_is_left_out_and_said(headless, model, pool, tmp_path):
    options = "language_model=1,queries=2,retrieved=4"
    given = ["--encoder", "transformer", "--model", model]
    if headless == "base":
        given[3] = make_model(tmp_path / "base")
    elif headless == "layer":
        options += ",layer=1"
    else:
        given = []
    table = write_table(tmp_path / "train.tsv", zip(LABELS, TEXTS, strict=True))
    rest = ["--objective", "css_lm", "--epochs", "2", "--unlabelled", pool, "--options", options]
    outcome = call_main("train", table, "--out", tmp_path / "run", *given, *rest)
    assert outcome.code == 0, outcome.err
    (note,) = (line for line in outcome.err.splitlines() if "no head" in line)
    assert note.startswith("warning: language_model is left out: the encoder has no head that")
    assert "language_model" not in (tmp_path / "run" / "history.csv").read_text()
