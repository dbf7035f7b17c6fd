"""Training ends where patience does; curves for TensorBoard."""

import pickle
import re
from pathlib import Path

import pytest

from superconext.core.errors import ConfigError, MissingExtraError
from superconext.training import callbacks
from superconext.training.callbacks import Callback, EarlyStopping, EpochSoFar, TensorBoard
from tests.training.test_trainer import make_trainer


class Told(Callback):
    """Puts given values into the records, as a probe on dev rows would."""

    def __init__(self, values):
        self.values = values

    def on_epoch_end(self, trainer, record):
        record["dev_score"] = self.values[record["epoch"] - 1]


@pytest.mark.parametrize(
    ("values", "options", "epochs"),
    [
        ([0.5, 0.6, 0.6, 0.5, 0.9, 0.9], {"patience": 2}, 4),
        ([0.5, 0.6, 0.6, 0.5, 0.9, 0.9], {"patience": 3}, 6),
        ([0.5, 0.4, 0.5, 0.6, 0.6, 0.6], {"patience": 1}, 2),
        ([0.5, 0.51, 0.52, 0.53, 0.54, 0.55], {"patience": 2, "min_delta": 0.1}, 3),
        ([0.5, 0.4, 0.3, 0.35, 0.36, 0.2], {"patience": 2, "mode": "min"}, 5),
    ],
)
def test_it_waits_as_long_as_it_is_told(values, options, epochs):
    stopping = EarlyStopping(**options)
    history = make_trainer([Told(values), stopping], epochs=6).fit()
    assert len(history) == epochs
    stopped = stopping.waited >= stopping.patience
    assert stopped or epochs == 6
    assert stopping.stopped_epoch == (epochs if stopped else None)
    best = min if options.get("mode") == "min" else max
    if "min_delta" not in options:
        assert stopping.best == best(values[:epochs])


def test_it_forgets_between_trainings_and_goes_on_in_a_resumed_one():
    stopping = EarlyStopping(patience=2)
    for _ in range(2):
        assert len(make_trainer([Told([0.9] + [0.1] * 5), stopping], epochs=6).fit()) == 3
    trainer = make_trainer([Told([0.9] + [0.1] * 5), EarlyStopping(patience=2)], epochs=6)
    trainer.history = [{"epoch": 1, "dev_score": 0.9}, {"epoch": 2, "dev_score": 0.1}]
    trainer.epoch = 2
    assert [record["epoch"] for record in trainer.fit()] == [1, 2, 3]


def test_what_is_not_recorded_cannot_be_watched():
    with pytest.raises(ConfigError, match=r"'dev_score'.*expected one of epoch, loss"):
        make_trainer([EarlyStopping()], epochs=2).fit()
    assert len(make_trainer([EarlyStopping(1, "loss", "min")], epochs=2).fit()) == 2


@pytest.mark.parametrize("wrong", [{"patience": 0}, {"mode": "most"}, {"min_delta": -1.0}])
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ConfigError, match="early stopping"):
        EarlyStopping(**wrong)


def test_without_the_package_the_extra_is_named(tmp_path, monkeypatch):
    def missing():
        raise MissingExtraError("Writing for TensorBoard", "tensorboard")

    monkeypatch.setattr(callbacks, "_writer_class", missing)
    with pytest.raises(MissingExtraError, match=r"superconext\[tensorboard\]"):
        TensorBoard(tmp_path)


def test_every_step_and_epoch_is_on_a_curve(tmp_path):
    pytest.importorskip("tensorboard", reason="needs the tensorboard extra")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = pickle.loads(pickle.dumps(TensorBoard(tmp_path / "logs")))
    for _ in range(2):
        trainer = make_trainer([Told([0.1, 0.2, 0.3]), board], epochs=3)
        history = trainer.fit()
        pickle.dumps(board)
    for name in ("training-1", "training-2"):
        read = EventAccumulator(str(tmp_path / "logs" / name)).Reload()
        losses = [event.value for event in read.Scalars("epoch/loss")]
        assert losses == pytest.approx([record["loss"] for record in history], rel=1e-5)
        scores = [event.value for event in read.Scalars("epoch/dev_score")]
        assert scores == pytest.approx([0.1, 0.2, 0.3])
        assert len(read.Scalars("step/loss")) == 3 * trainer.batches.steps


def test_the_recipe_of_a_callback_halves_the_rates():
    page = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    (block,) = [b for b in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "Halve" in b]
    names = {}
    exec(block, names)
    rates = []

    class Notes(Callback):
        def on_step_end(self, trainer, step, loss):
            if step == 0:
                rates.append(trainer.optimizer.param_groups[0]["lr"])

    trainer = make_trainer(epochs=5)
    trainer.callbacks += [names["Halve"](), Notes()]
    trainer.fit()
    assert rates[:3] == [rates[0]] * 3 and rates[3:] == [rates[0] / 2] * 2


def test_the_mean_of_an_epoch_is_over_the_batches_that_have_the_number():
    so_far = EpochSoFar()
    for scalars in ({"loss": 1.0}, {"loss": 3.0, "kept": 0.5}, {"loss": 5.0}):
        so_far.add(scalars)
    assert so_far.step == 3 and so_far.means() == {"loss": 3.0, "kept": 0.5}
