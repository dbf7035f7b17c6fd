"""The loop: learns, repeats itself exactly, stops on nonsense, resumes bit for bit."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from superconext.config.parameters import resolve
from superconext.core.errors import RunError, TrainingError
from superconext.core.progress import Progress
from superconext.data.sampler import make_batches
from superconext.data.token_store import build_store
from superconext.encoders.base import sentence_vectors
from superconext.encoders.bilstm import BiLSTMEncoder
from superconext.encoders.layers import projection_head
from superconext.encoders.words import WordEmbedding
from superconext.objectives.base import Shape
from superconext.objectives.catalogue import OBJECTIVES, objective_class
from superconext.training.callbacks import KEEPERS, Callback, DevProbe, KeepAverage, KeepBest
from superconext.training.checkpoint import Checkpointer
from superconext.training.trainer import Trainer

torch.set_num_threads(1)


def make_trainer(callbacks=(), objective="superloss", seed=0, **parameters):
    """Two classes told apart by the words they use, 60 short sentences."""
    settings = {"epochs": 3, "batch_size": 20, "hidden_size": 8}
    settings["learning_rate"] = 0.02
    config = resolve({"objective": objective, "seed": seed, **settings, **parameters})
    generator = np.random.default_rng(0)
    labels = np.arange(60) % 2
    store = build_store([generator.integers(2, 12, 5) + 10 * k for k in labels], config.max_length)
    torch.manual_seed(seed)
    kind = objective_class(objective)
    tokens = 2 if kind.needs_class_tokens else 0
    encoder = BiLSTMEncoder(WordEmbedding(torch.randn(22, 8)), hidden_size=8, class_tokens=tokens)
    head = projection_head(config.projection, 16)
    shape = Shape(2, 16, 16)
    batches = make_batches(kind.batches, labels, 20, config.steps_per_epoch, seed)
    pool = None
    if kind.needs_pool:
        pool = build_store([generator.integers(2, 22, 5) for _ in range(50)], config.max_length)
    built = kind.from_config(config, shape)
    return Trainer(encoder, head, built, batches, store, labels, config, callbacks, pool)


def same(first, second):
    weights = second.weights()
    return all(torch.equal(value, weights[name]) for name, value in first.weights().items())


@pytest.mark.parametrize("objective", list(OBJECTIVES))
def test_training_lowers_the_loss(objective):
    # SupCon's floor is log|P|, not 0: it cannot fall far.
    # Losses that a warm-up keeps out would raise it when they join.
    options = "warmup=0" if objective_class(objective).needs_pool else None
    history = make_trainer(objective=objective, epochs=8, options=options).fit()
    assert history[-1]["loss"] < 0.85 * history[0]["loss"]
    assert [record["epoch"] for record in history] == list(range(1, 9))


def test_history_tells_the_similarities_and_what_mining_kept():
    history = make_trainer(options="mining=topk,mining_threshold=2", epochs=6).fit()
    assert history[-1]["positive_similarity"] > history[-1]["negative_similarity"] + 0.5
    assert [record["kept"] for record in history[:2]] == [1.0, 1.0]
    assert [record["kept"] for record in history[2:]] == pytest.approx([0.2] * 4)


def test_same_seed_is_the_same_bit_for_bit():
    first, second, other = make_trainer(), make_trainer(), make_trainer(seed=1)
    for trainer in (first, second, other):
        torch.manual_seed(trainer.config.seed)
        trainer.fit()
    assert same(first, second) and not same(first, other)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_precision_trains(precision):
    history = make_trainer(precision=precision, epochs=6).fit()
    assert history[-1]["loss"] < history[0]["loss"]


def test_hooks_are_called_in_order_and_can_stop():
    calls = []

    class Recorder(Callback):
        def on_train_begin(self, trainer):
            calls.append("begin")

        def on_epoch_begin(self, trainer, epoch):
            calls.append(f"epoch {epoch}")

        def on_step_end(self, trainer, step, loss):
            calls.append(step)

        def on_epoch_end(self, trainer, record):
            calls.append(record["epoch"])
            trainer.stop = record["epoch"] == 2

        def on_train_end(self, trainer):
            calls.append("end")

    make_trainer([Recorder()], epochs=9, steps_per_epoch=3).fit()
    assert calls == ["begin", "epoch 0", 0, 1, 2, 1, "epoch 1", 0, 1, 2, 2, "end"]


def test_keep_best_ends_with_the_weights_of_the_best_epoch():
    scores = iter([0.5, 0.9, 0.9, 0.2])
    seen = []

    class Snapshot(Callback):
        def on_epoch_end(self, trainer, record):
            seen.append({k: v.clone() for k, v in trainer.weights().items()})

    trainer = make_trainer([DevProbe(lambda _: next(scores)), KeepBest(), Snapshot()], epochs=4)
    trainer.fit()
    assert all(torch.equal(value, seen[1][name]) for name, value in trainer.weights().items())


def test_a_loss_that_is_not_finite_stops_with_advice():
    trainer = make_trainer()
    with torch.no_grad():
        trainer.head[0].weight.fill_(float("nan"))
    with pytest.raises(TrainingError, match=r"epoch 1, batch 1.*lower learning_rate"):
        trainer.fit()


@pytest.mark.parametrize("share", [0.4, 1.0, 0.01])
def test_keep_average_ends_with_the_mean_of_the_last_epochs(share):
    seen = []

    class Snapshot(Callback):
        def on_epoch_end(self, trainer, record):
            seen.append({k: v.double().clone() for k, v in trainer.weights().items()})

    trainer = make_trainer([KeepAverage(share), Snapshot()], epochs=5)
    trainer.fit()
    last = {0.4: 2, 1.0: 5, 0.01: 1}[share]
    for name, value in trainer.weights().items():
        expected = sum(weights[name] for weights in seen[-last:]) / last
        assert torch.allclose(value.double(), expected, atol=1e-6), name


@pytest.mark.parametrize(("epochs", "averaged"), [(10, 4), (5, 2), (15, 6), (7, 3), (1, 1)])
def test_average_is_over_the_last_two_fifths_of_the_epochs(epochs, averaged):
    seen = []

    class Snapshot(Callback):
        def on_epoch_end(self, trainer, record):
            seen.append({k: v.double().clone() for k, v in trainer.weights().items()})

    keeper = KEEPERS["average"]()
    trainer = make_trainer([keeper, Snapshot()], epochs=epochs, steps_per_epoch=1)
    trainer.fit()
    assert keeper.value == averaged
    for name, value in trainer.weights().items():
        expected = sum(weights[name] for weights in seen[-averaged:]) / averaged
        assert torch.allclose(value.double(), expected, atol=1e-6), name


def test_of_whole_numbers_among_the_weights_the_last_are_kept():
    numbers = iter(range(1, 10))

    def weights():
        number = next(numbers)
        return {"seen": torch.tensor(number), "bias": torch.tensor(float(number))}

    keeper = KEEPERS["average"]()
    for epoch in range(1, 6):
        keeper.on_epoch_end(SimpleNamespace(epochs=5, weights=weights), {"epoch": epoch})
    assert (keeper.weights["seen"], keeper.weights["bias"]) == (2, 1.5)


@pytest.mark.parametrize("keep", list(KEEPERS))
@pytest.mark.parametrize("stop", [2, 4])
def test_resumed_training_equals_uninterrupted(tmp_path, keep, stop):
    class Stop(Callback):
        def on_epoch_end(self, trainer, record):
            if record["epoch"] == stop:
                raise KeyboardInterrupt

    def hooks():
        probe = DevProbe(lambda t: -abs(len(t.history) - 2.0))
        return [probe, KEEPERS[keep]()] if KEEPERS[keep] else [probe]

    torch.manual_seed(0)
    whole = make_trainer(hooks(), epochs=5)
    whole.fit()
    torch.manual_seed(0)
    first = make_trainer([*hooks(), Checkpointer(tmp_path, 0), Stop()], epochs=5)
    with pytest.raises(KeyboardInterrupt):
        first.fit()
    torch.manual_seed(99)
    second = make_trainer(hooks(), epochs=5)
    assert Checkpointer(tmp_path, 0).restore(second) and second.epoch == stop
    second.fit()
    assert same(whole, second)

    def timeless(history):
        return [{k: v for k, v in record.items() if k != "seconds"} for record in history]

    assert timeless(whole.history) == timeless(second.history)


@pytest.mark.parametrize("damage", ["cut", "header", "a bit", "gone"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(tmp_path, damage):
    make_trainer([Checkpointer(tmp_path, 0)], epochs=4).fit()
    assert not Checkpointer(tmp_path, 1).saved() and not Checkpointer(tmp_path, 0, "x").saved()
    saved = Checkpointer(tmp_path, 0).saved()
    assert list(saved) == [4, 3] and sorted(saved.values()) == sorted(tmp_path.iterdir())
    heard = []
    progress = Progress()
    progress.warn = heard.append
    for epoch, path in saved.items():
        content = bytearray(path.read_bytes())
        content[-9 if damage == "a bit" else 20] ^= 1
        path.write_bytes(path.read_bytes()[:-1] if damage == "cut" else content)
        if damage == "gone":
            path.unlink()
        trainer = make_trainer()
        checkpointer = Checkpointer(tmp_path, 0, progress=progress)
        if epoch == 4:
            assert checkpointer.restore(trainer) and trainer.epoch == 3
            assert len(heard) == (damage != "gone")
            assert all(path.name in line and "after epoch 3" in line for line in heard)
        elif damage == "gone":
            assert not checkpointer.restore(trainer)
        else:
            with pytest.raises(RunError, match=r"checkpoint cannot be used .*--force"):
                checkpointer.restore(trainer)
    assert not Checkpointer(tmp_path / "none", 0).restore(make_trainer())


def test_sentence_vectors_separate_what_was_trained():
    trainer = make_trainer(epochs=8)
    trainer.fit()
    vectors = sentence_vectors(trainer.encoder, trainer.store)
    labels = trainer.labels.numpy()
    centres = np.stack([vectors[labels == k].mean(axis=0) for k in (0, 1)])
    nearest = ((vectors[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == labels).mean() > 0.95
