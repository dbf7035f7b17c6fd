"""A training whose tables have row-sparse gradients is the training it would be without."""

import numpy as np
import pytest
import torch

from superconext.config.parameters import resolve
from superconext.data.dataset import Dataset
from superconext.fitting.fit import fit_model
from superconext.training.callbacks import Callback

DRAW = np.random.default_rng(0)
COMMON = [f"klma{i}" for i in range(40)]
WORDS = {"pos": ["مليح", "زوين", "mzyan"], "neg": ["خايب", "عيان", "khayb"]}
ROWS = [
    (" ".join([*DRAW.choice(COMMON, 3), DRAW.choice(words)]), label)
    for _ in range(16)
    for label, words in WORDS.items()
]
TEXTS, LABELS = [text for text, _ in ROWS], [label for _, label in ROWS]
SMALL = {
    "hidden_size": 8, "batch_size": 8, "vector_dimension": 8,
    "learning_rate": 0.02, "epochs": 3, "vector_method": "random", "baselines": False,
    "tune_vectors": True,
}  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore:all sentences lie")


class Stop(Callback):
    def __init__(self, after):
        self.after = after

    def on_epoch_end(self, trainer, record):
        self.after -= 1
        if self.after == 0:
            raise KeyboardInterrupt


class Watch(Callback):
    """Whether the optimiser's state names rows, and whether anything is put off at epochs' ends."""

    def __init__(self):
        self.rows, self.moved_later = [], []

    def on_epoch_end(self, trainer, record):
        table = trainer.encoder.embedding.words
        before = table.detach().clone()
        self.rows.append("rows" in trainer.optimizer.state[table])
        trainer.optimizer.catch_up()
        self.moved_later.append(not torch.equal(before, table))


def fit(callbacks=(), checkpoint=None, **given):
    config = resolve({**SMALL, **given})
    return fit_model(Dataset(TEXTS, LABELS), config, callbacks=callbacks, checkpoint=checkpoint)


def weights(fitted):
    return fitted.model.encoders[0].state_dict()


@pytest.fixture
def sparse(monkeypatch):
    monkeypatch.setattr("superconext.encoders.words.SPARSE_FROM", 1)
    monkeypatch.setattr("superconext.training.optimizer.LAZY_FROM", 0)


@pytest.mark.parametrize(
    "given",
    [
        {"subwords": False},
        {"subwords": True},
        {"subwords": True, "finetune_epochs": 2},
        {"objective": "dualcl", "keep": "last"},
    ],
)
def test_it_is_the_dense_training(given, monkeypatch):
    dense, watch = fit(**given), Watch()
    monkeypatch.setattr("superconext.encoders.words.SPARSE_FROM", 1)
    monkeypatch.setattr("superconext.training.optimizer.LAZY_FROM", 0)
    rows = fit([watch], **given)
    assert watch.rows[-1] and not any(watch.moved_later)
    for name, value in weights(dense).items():
        assert torch.allclose(weights(rows)[name], value, atol=2e-3), name
    losses = [[record["loss"] for record in fitted.history] for fitted in (dense, rows)]
    assert np.allclose(*losses, rtol=1e-3)


@pytest.mark.usefixtures("sparse")
@pytest.mark.parametrize("keep", ["last", "average"])
def test_a_stopped_training_goes_on_bit_for_bit(tmp_path, keep):
    whole = fit(keep=keep)
    stopped = fit([Stop(2)], tmp_path, keep=keep)
    assert stopped.interrupted
    resumed = fit([], tmp_path, keep=keep)
    for name, value in weights(whole).items():
        assert torch.equal(weights(resumed)[name], value), name


class StopWithin(Callback):
    """Stops the second stage after three steps of it."""

    def __init__(self):
        self.begun = self.steps = 0

    def on_train_begin(self, trainer):
        self.begun += 1

    def on_step_end(self, trainer, step, loss):
        self.steps += self.begun == 2
        if self.steps == 3:
            raise KeyboardInterrupt


@pytest.mark.usefixtures("sparse")
def test_what_fine_tuning_owes_is_not_paid_onto_the_weights_it_began_with():
    plain = fit(keep="last", subwords=True)
    stopped = fit([StopWithin()], keep="last", subwords=True, finetune_epochs=2)
    assert stopped.interrupted
    answers = [made.model.probabilities(TEXTS) for made in (plain, stopped)]
    assert np.array_equal(*answers)
    for name, value in weights(plain).items():
        assert torch.equal(weights(stopped)[name], value), name


def test_large_checkpoints_are_fewer_than_epochs_and_cost_only_time(tmp_path, monkeypatch):
    whole = fit()
    monkeypatch.setattr("superconext.training.checkpoint.RATE", 1)
    monkeypatch.setattr("superconext.training.checkpoint.SMALL", 1)
    fit([Stop(2)], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["member-0-epoch-1.safetensors"]
    resumed = fit([], tmp_path)
    assert (tmp_path / "member-0-epoch-3.safetensors").exists(), "the last is always written"
    for name, value in weights(whole).items():
        assert torch.equal(weights(resumed)[name], value), name
