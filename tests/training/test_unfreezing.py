"""Frozen, tuned, or frozen and then tuned: what moves when, also stopped and resumed."""

import numpy as np
import pytest
import torch

from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError
from superconext.fitting.fit import fit_model
from superconext.runs.folder import load_model, save_run
from superconext.training.callbacks import Callback

WORDS = {"pos": ["مليح", "زوين", "mzyan", "bnin"], "neg": ["خايب", "عيان", "khayb", "7amd"]}
DRAW = np.random.default_rng(0)
ROWS = [
    (" ".join([*DRAW.choice(["had", "lfilm", "bzaf", "kan"], 3), DRAW.choice(words)]), label)
    for _ in range(16)
    for label, words in WORDS.items()
]
TEXTS, LABELS = [text for text, _ in ROWS], [label for _, label in ROWS]
SMALL = {
    "hidden_size": 8, "projection_size": 8, "batch_size": 8, "vector_dimension": 8,
    "learning_rate": 0.02, "epochs": 4, "keep": "last", "baselines": False,
}  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore:all sentences lie")


class Watch(Callback):
    """The word rows before each epoch and after the last; presses Ctrl-C after `stop` epochs."""

    def __init__(self, stop=0):
        self.rows, self.layers, self.stop = [], [], stop

    def look(self, trainer):
        self.rows.append(trainer.encoder.embedding.words.detach().clone())
        self.layers.append(trainer.encoder.forwards[0].weight_hh_l0.detach().clone())

    def on_train_begin(self, trainer):
        self.look(trainer)

    def on_epoch_end(self, trainer, record):
        self.look(trainer)
        self.stop -= 1
        if self.stop == 0:
            raise KeyboardInterrupt

    def moved(self):
        """The epochs, from 1, in which the word rows changed."""
        pairs = zip(self.rows, self.rows[1:], strict=False)
        return [epoch for epoch, (a, b) in enumerate(pairs, 1) if not torch.equal(a, b)]


def fit(callbacks=(), checkpoint=None, **given):
    config = resolve({**SMALL, **given})
    return fit_model(TEXTS, LABELS, config, callbacks=callbacks, checkpoint=checkpoint)


def weights(fitted):
    return fitted.model.encoders[0].state_dict()


def same(first, second):
    return all(torch.equal(value, weights(second)[name]) for name, value in weights(first).items())


@pytest.mark.parametrize("subwords", [True, False])
@pytest.mark.parametrize(
    ("given", "epochs"),
    [
        ({"tune_vectors": False}, []),
        ({"tune_vectors": True}, [1, 2, 3, 4]),
        ({"unfreeze_epoch": 1}, [1, 2, 3, 4]),
        ({"unfreeze_epoch": 3}, [3, 4]),
        ({"unfreeze_epoch": 4, "tune_vectors": True}, [4]),
    ],
)
def test_word_rows_move_in_the_epochs_that_are_named(given, epochs, subwords):
    watch = Watch()
    fit([watch], subwords=subwords, **given)
    assert watch.moved() == epochs
    assert all(
        not torch.equal(a, b) for a, b in zip(watch.layers, watch.layers[1:], strict=False)
    ), "the layers above are trained throughout"


def test_unfrozen_from_the_first_epoch_is_tuned():
    assert same(fit(unfreeze_epoch=1), fit(tune_vectors=True))


def test_until_then_it_is_the_frozen_training():
    frozen, thawed = Watch(), Watch()
    fit([frozen])
    fit([thawed], unfreeze_epoch=3)
    for epoch in range(3):  # before the first, after the first and after the second
        assert torch.equal(frozen.layers[epoch], thawed.layers[epoch])
    assert not torch.equal(frozen.layers[4], thawed.layers[4])


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_a_stopped_training_goes_on_bit_for_bit(tmp_path, stop):
    whole = fit(unfreeze_epoch=3)
    stopped = fit([Watch(stop)], tmp_path, unfreeze_epoch=3)
    assert stopped.interrupted and len(stopped.history) == stop
    watch = Watch()
    resumed = fit([watch], tmp_path, unfreeze_epoch=3)
    assert same(whole, resumed)
    done = stop - 1  # the last epoch was stopped before its state was saved
    assert [done + epoch for epoch in watch.moved()] == [e for e in (3, 4) if e > done]


def test_every_member_thaws_at_the_same_epoch():
    watch = Watch()
    fit([watch], unfreeze_epoch=4, members=2)
    assert len(watch.rows) == 10 and watch.moved() == [4, 5, 9]  # 5: the next member begins


def test_a_second_stage_trains_what_the_first_never_thawed(tmp_path):
    watch = Watch()
    given = {"unfreeze_epoch": 5, "finetune": True, "finetune_epochs": 2}
    whole = fit([watch], **given)
    assert watch.moved() == [6, 7]  # 5 is the second stage's beginning
    fit([Watch(4)], tmp_path, **given)
    assert same(whole, fit([], tmp_path, **given))


def test_an_epoch_after_the_last_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"unfreeze_epoch = 5: .* epoch 4; expected"):
        fit(unfreeze_epoch=5)
    # A run stopped before its second stage has none left, and opens all the same.
    stopped = fit([Watch(2)], unfreeze_epoch=5, finetune=True)
    save_run(stopped.model, tmp_path / "run")
    assert load_model(tmp_path / "run").config.unfreeze_epoch == 5
