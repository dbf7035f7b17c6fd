"""How many epochs an encoder is trained for where time is short."""

import json
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from superconext.config.parameters import resolve
from superconext.core.errors import RunError
from superconext.fitting import time_budget
from superconext.fitting.time_budget import EpochBudget, OutOfTime
from tests.fitting.test_cross_validation import TINY

CONFIG = resolve({**TINY, "epochs": None})


class Machine:
    """Trains by name only: so many seconds for each step, the first slower than the others, and
    after each epoch."""

    def __init__(self, monkeypatch, steps=20, seconds=1.0, first=30.0, between=0.0):
        self.now, self.steps, self.seconds, self.first = 0.0, steps, seconds, first
        self.between = between
        self.begun = []
        monkeypatch.setattr(time_budget, "clock", lambda: self.now)

    def fit(self, config, callbacks):
        epochs = config.epochs or 15
        self.begun.append(epochs)
        batches = SimpleNamespace(steps=self.steps)
        trainer = SimpleNamespace(batches=batches, epochs=epochs)
        for callback in callbacks:
            callback.on_train_begin(trainer)
        for step in range(epochs * self.steps):
            trainer.steps_done = step + 1
            self.now += self.first if step == 0 and len(self.begun) == 1 else self.seconds
            for callback in callbacks:
                callback.on_step_end(trainer, step % self.steps, 0.5)
            trainer.epoch, beyond = divmod(step + 1, self.steps)
            if beyond:
                continue
            self.now += self.between
            for callback in callbacks:
                callback.on_epoch_end(trainer, {})
        return epochs


def test_with_time_for_all_epochs_training_begins_once(monkeypatch):
    machine, budget = Machine(monkeypatch), EpochBudget()
    assert budget.train(machine.fit, CONFIG, 330.0) == 15
    assert machine.begun == [15] and budget.epochs is None and budget.of is None
    assert budget.config(CONFIG) == CONFIG


def test_with_less_it_has_as_many_as_end_before_the_deadline(monkeypatch):
    machine, budget = Machine(monkeypatch), EpochBudget()
    assert budget.train(machine.fit, CONFIG, 200.0) == 7
    # After 37 seconds 163 are left, of which nine tenths hold seven epochs of 20 seconds.
    assert machine.begun == [15, 7] and (budget.epochs, budget.of) == (7, 15)
    assert 150 < machine.now <= 200
    assert budget.config(CONFIG).epochs == 7
    assert budget.train(machine.fit, CONFIG, machine.now) == 7, "the first training decides"


@pytest.mark.parametrize(("steps", "seconds"), [(20, 1000.0), (20, 8.0)])
def test_with_time_for_no_epoch_there_is_no_training(monkeypatch, steps, seconds):
    machine, budget = Machine(monkeypatch, steps, seconds), EpochBudget()
    with pytest.raises(OutOfTime):
        budget.train(machine.fit, CONFIG, 150.0)
    assert machine.begun == [15] and budget.epochs is None


def test_it_is_noticed_where_a_step_takes_longer_than_all_the_time(monkeypatch):
    machine = Machine(monkeypatch, seconds=400.0, first=400.0)
    with pytest.raises(OutOfTime):
        EpochBudget().train(machine.fit, CONFIG, 150.0)
    assert machine.now == 400.0, "after the first step"


@pytest.mark.parametrize("steps", [2, 5, 8, 9])
def test_it_decides_within_the_first_epoch_so_that_no_checkpoint_is_of_more(monkeypatch, steps):
    machine = Machine(monkeypatch, steps)
    fit, ended = machine.fit, []

    def watched(config, callbacks):
        try:
            return fit(config, callbacks)
        finally:
            ended.append(machine.now)

    budget = EpochBudget()
    budget.train(watched, CONFIG, 30.0 + 6 * steps)
    assert ended[0] <= 30 + steps and budget.epochs < 15


def test_what_stands_between_epochs_takes_time_too(monkeypatch):
    machine, budget = Machine(monkeypatch, between=40.0), EpochBudget()
    assert budget.train(machine.fit, CONFIG, 600.0) == 7
    # After an epoch, at 89 seconds, 511 are left, of which nine tenths hold seven of 60 seconds.
    assert machine.begun == [15, 7] and budget.of == 15
    assert 400 < machine.now <= 600


def test_with_time_for_the_only_epoch_it_is_not_given_up_at_its_end(monkeypatch):
    machine, budget = Machine(monkeypatch, between=1000.0), EpochBudget()
    assert budget.train(machine.fit, replace(CONFIG, epochs=1), 100.0) == 1
    assert machine.begun == [1]


def test_what_the_first_epoch_decided_stands_though_later_ones_take_longer(monkeypatch, tmp_path):
    machine, budget = Machine(monkeypatch), EpochBudget(tmp_path)

    class Tiring:
        def on_train_begin(self, trainer):
            machine.seconds = 1.0

        def on_step_end(self, trainer, step, loss):
            machine.seconds = 1.0 if trainer.steps_done <= machine.steps else 9.0

        def on_epoch_end(self, trainer, record):
            pass

    def tired(config, callbacks):
        return machine.fit(config, [Tiring(), *callbacks])

    assert budget.train(tired, CONFIG, 400.0) == 15
    assert machine.begun == [15] and machine.now > 400 and budget.epochs is None
    assert EpochBudget(tmp_path).train(machine.fit, CONFIG, 0.0) == 15


def test_time_in_which_others_work_does_not_count():
    began = time_budget.clock()
    time.sleep(0.3)
    assert time_budget.clock() - began < 0.2


def test_slower_than_it_seemed_is_shortened_again(monkeypatch):
    machine, budget = Machine(monkeypatch), EpochBudget()

    def tired(config, callbacks):
        machine.seconds = 2.0 if machine.begun else 1.0
        return machine.fit(config, callbacks)

    assert budget.train(tired, CONFIG, 200.0) == 3
    assert machine.begun == [15, 7, 3] and budget.of == 15


def test_a_resumed_run_trains_for_as_many_epochs_whatever_the_time(monkeypatch, tmp_path):
    machine = Machine(monkeypatch)
    EpochBudget(tmp_path).train(machine.fit, CONFIG, 200.0)
    again = EpochBudget(tmp_path)
    assert (again.epochs, again.of) == (7, 15)
    assert again.train(machine.fit, CONFIG, 0.0) == 7


def test_a_resumed_run_trains_for_all_where_there_was_time_for_all(monkeypatch, tmp_path):
    machine = Machine(monkeypatch)
    EpochBudget(tmp_path).train(machine.fit, CONFIG, 1000.0)
    assert EpochBudget(tmp_path).train(machine.fit, CONFIG, 0.0) == 15


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"epochs": 3}'])
def test_a_damaged_note_of_the_epochs_is_an_error(tmp_path, text):
    (tmp_path / "epochs.json").write_text(text, encoding="utf-8")
    with pytest.raises(RunError, match=r"epochs\.json: cannot be read .* --force"):
        EpochBudget(tmp_path)


def test_what_is_written_says_both_numbers(monkeypatch, tmp_path):
    EpochBudget(tmp_path).train(Machine(monkeypatch).fit, CONFIG, 200.0)
    assert json.loads((tmp_path / "epochs.json").read_text()) == {"epochs": 7, "of": 15}


def test_several_steps_are_timed_so_that_a_few_slow_ones_do_not_decide(monkeypatch):
    machine, budget = Machine(monkeypatch), EpochBudget()

    class Stumbling:
        def on_train_begin(self, trainer):
            machine.seconds = 6.0

        def on_step_end(self, trainer, step, loss):
            machine.seconds = 6.0 if trainer.steps_done < 4 else 1.0

        def on_epoch_end(self, trainer, record):
            pass

    # Three of the seven steps after the first take six seconds: 22 / 7 in all.
    fit = machine.fit
    assert budget.train(lambda config, known: fit(config, [Stumbling(), *known]), CONFIG, 1100.0)
    assert machine.begun == [15] and budget.epochs is None
