"""Fine-tuning: all weights and a softmax by cross-entropy, also stopped and resumed."""

import hashlib
import json
import re
import warnings

import numpy as np
import pytest
import torch

from superconext.config.parameters import resolve
from superconext.core.errors import StoppedEarly
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.encoders.base import EncoderOutput
from superconext.fitting import stages
from superconext.fitting.fit import fit_model
from superconext.fitting.stages import second_stage, total_epochs
from superconext.objectives.cross_entropy import CrossEntropy
from superconext.runs.folder import load_model, save_run
from superconext.runs.splits import TrainRequest
from superconext.runs.train import resume_run, train_run
from superconext.training.callbacks import Callback

WORDS = {
    "pos": ["مليح", "فرحان", "زوين", "mzyan", "bnin"],
    "neg": ["خايب", "مقلق", "عيان", "khayb", "7amd"],
    "ask": ["واش", "فين", "شحال", "wach", "fin"],
}
DRAW = np.random.default_rng(0)
ROWS = [
    (" ".join([*DRAW.choice(["had", "lfilm", "bzaf", "kan"], 3), DRAW.choice(words)]), label)
    for _ in range(16)
    for label, words in WORDS.items()
]
TEXTS, LABELS = [text for text, _ in ROWS], [label for _, label in ROWS]
DEV = (TEXTS[::4], LABELS[::4])
SMALL = {
    "hidden_size": 8, "batch_size": 12, "vector_dimension": 8,
    "learning_rate": 0.05, "word_dropout": 0.0, "baselines": False,
    "epochs": 4,
}  # fmt: skip
TUNED = {"finetune_epochs": 5}

pytestmark = pytest.mark.filterwarnings("ignore:all sentences lie")


def fit(callbacks=(), checkpoint=None, progress=None, **given):
    config = resolve({**SMALL, **given})
    more = {"callbacks": callbacks, "checkpoint": checkpoint, "progress": progress}
    return fit_model(Dataset(TEXTS, LABELS), config, Dataset(*DEV), **more)


class Lines(Progress):
    def __init__(self):
        self.said = []

    def say(self, line):
        self.said.append(line)


def own_labels(model):
    return [model.classes[k] for k in model.answer(TEXTS).native.argmax(axis=1)]


def same(first, second):
    """Whether two models have the very same weights."""
    pairs = zip(
        [*first.encoders, *first.objectives], [*second.encoders, *second.objectives], strict=True
    )
    return all(
        torch.equal(value, b.state_dict()[name])
        for a, b in pairs
        for name, value in a.state_dict().items()
    )


def timeless(history):
    return [{k: v for k, v in record.items() if k != "seconds"} for record in history]


class PressAt(Callback):
    """Ctrl-C once, after a number of epochs of all stages and members, or within the next."""

    def __init__(self, epochs, within=False):
        self.left, self.within = epochs, within

    def on_epoch_end(self, trainer, record):
        self.left -= 1
        if self.left == 0 and not self.within:
            raise KeyboardInterrupt

    def on_step_end(self, trainer, step, loss):
        if self.left == 0 and self.within and step == 1:
            self.left = -1
            raise KeyboardInterrupt


@pytest.fixture(autouse=True, scope="module")
def _fast():
    """A softmax learns the few rows here in a few epochs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "FINETUNING_RATE", 0.1)
        yield


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUPERCONEXT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        return fit()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of two stages that nobody stopped, and what it was asked for."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUPERCONEXT_CACHE", str(tmp_path_factory.getbasetemp() / "cache"))
        return fit(**TUNED)


def test_a_contrastive_objective_then_predicts_by_its_softmax(plain, whole):
    fitted = whole
    assert plain.model.answer(TEXTS).native is None
    assert isinstance(fitted.model.objectives[0], CrossEntropy)
    right = np.mean([a == b for a, b in zip(own_labels(fitted.model), LABELS, strict=True)])
    assert right > 0.6, "chance is a third"
    softmax = fitted.model.objectives[0]
    features = torch.from_numpy(fitted.model.features(TEXTS))
    scores = softmax.class_scores(EncoderOutput.of_sentences(features)).softmax(dim=1)
    assert np.allclose(fitted.model.answer(TEXTS).native, scores.detach().numpy(), atol=1e-6)


def test_history_tells_the_stages_apart(plain, whole):
    history = timeless(whole.history)
    assert [record["stage"] for record in history] == [1] * 4 + [2] * 5
    assert [record["epoch"] for record in history] == list(range(1, 10))
    assert [{k: v for k, v in r.items() if k != "stage"} for r in history[:4]] == timeless(
        plain.history
    ), "the first stage is what it is without a second"
    assert history[-1]["loss"] < history[4]["loss"]
    assert all("dev_score" in record and "batch_accuracy" in record for record in history[4:])
    assert history[-1]["dev_score"] > 0.6, "chance is a third"


def test_all_weights_are_trained(plain, whole):
    assert not np.array_equal(plain.features, whole.features)
    before, after = (m.encoders[0].state_dict() for m in (plain.model, whole.model))
    tuned = [n for n in before if n != "embedding.words" and before[n].numel()]
    assert not any(torch.equal(before[name], after[name]) for name in tuned)


def test_saved_and_loaded_it_answers_the_same(whole, tmp_path):
    model = whole.model
    save_run(model, tmp_path / "run")
    again = load_model(tmp_path / "run")
    assert again.config == model.config and same(again, model)
    first, second = model.answer(TEXTS), again.answer(TEXTS)
    assert np.allclose(first.native, second.native, atol=1e-6)
    assert np.allclose(first.probabilities, second.probabilities, atol=1e-6)


def test_a_folder_that_knows_of_no_second_stage_loads(plain, tmp_path):
    run = tmp_path / "run"
    save_run(plain.model, run)
    path = run / "config.toml"
    text = re.sub(r"(?m)^finetune.*\n", "", path.read_text(encoding="utf-8"))
    path.write_text(text, encoding="utf-8", newline="\n")
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    assert "finetune" not in text
    manifest["format"] = 1
    manifest["files"]["config.toml"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (run / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert np.array_equal(load_model(run).features(TEXTS), plain.model.features(TEXTS))


@pytest.mark.parametrize(
    ("keep", "epochs"), [("average", 2), ("average", 4), ("average", 8), ("best", 7)]
)
def test_resumed_training_equals_uninterrupted(whole, keep, epochs, tmp_path):
    fitted = whole
    if keep != "average":
        fitted = fit(**TUNED, keep=keep)
    stopped = fit([PressAt(epochs)], tmp_path, **TUNED, keep=keep)
    assert stopped.interrupted and len(stopped.history) == epochs
    resumed = fit(checkpoint=tmp_path, **TUNED, keep=keep)
    assert same(resumed.model, fitted.model) and not resumed.interrupted
    assert timeless(resumed.history) == timeless(fitted.history)


@pytest.mark.parametrize("name", ["superloss", "dualcl"])
def test_stopped_before_its_softmax_it_is_a_model_of_the_first_stage(name, tmp_path):
    stopped = fit([PressAt(3)], objective=name, **TUNED)
    assert stopped.interrupted and not stopped.model.config.finetune_epochs
    save_run(stopped.model, tmp_path / "run")
    again = load_model(tmp_path / "run").answer(TEXTS)
    own = stopped.model.answer(TEXTS).native
    assert (own is None) == (again.native is None) == (name == "superloss")
    if own is not None:
        assert np.allclose(again.native, own, atol=1e-6)


def test_stopped_within_the_first_epoch_of_its_softmax_nothing_is_lost(plain, whole, tmp_path):
    stopped = fit([PressAt(4, within=True)], tmp_path, **TUNED)
    assert stopped.interrupted and len(stopped.history) == 4
    assert same(stopped.model, plain.model) and not stopped.model.config.finetune_epochs
    assert same(fit(checkpoint=tmp_path, **TUNED).model, whole.model)


@pytest.mark.parametrize("given", [{}, TUNED])
def test_stopped_within_the_first_epoch_of_its_second_member_it_keeps_the_first(given, tmp_path):
    epochs = 9 if given else 4
    stopped = fit([PressAt(epochs, within=True)], tmp_path, members=2, **given)
    alone, whole = fit(**given), fit(members=2, **given)
    assert stopped.interrupted and len(stopped.history) == epochs
    assert len(stopped.model.encoders) == 1 and same(stopped.model, alone.model)
    assert same(fit(checkpoint=tmp_path, members=2, **given).model, whole.model)
    with pytest.raises(KeyboardInterrupt):
        fit([PressAt(0, within=True)], members=2, **given)


@pytest.mark.parametrize(
    ("keep", "within", "told"),
    [
        ("last", True, "interrupted after 2 finished epochs and 2 batches of the next"),
        ("average", False, "interrupted after 2 finished epochs"),
    ],
)
def test_it_is_said_how_far_a_stopped_training_came(keep, within, told):
    lines = Lines()
    fit([PressAt(2, within=within)], progress=lines, keep=keep)
    assert lines.said[-1] == told


@pytest.mark.parametrize("epochs", [9, 11, 13])
def test_it_is_said_that_a_member_is_left_out(epochs):
    """In its first epoch, in a later one, and in the first of its fine-tuning."""
    lines = Lines()
    within = {"within": epochs != 11}
    fit([PressAt(epochs, **within)], progress=lines, members=2, **TUNED)
    assert lines.said[-1] == "keeping 1 member of 2"


def test_members_of_a_stopped_run_all_answer_by_a_softmax(tmp_path):
    given = {"members": 2, **TUNED}
    stopped = fit([PressAt(11)], tmp_path, **given)
    assert stopped.interrupted and len(stopped.model.encoders) == 1
    assert stopped.model.config.finetune_epochs and len(stopped.history) == 9
    resumed, uninterrupted = fit(checkpoint=tmp_path, **given), fit(**given)
    assert same(resumed.model, uninterrupted.model) and len(resumed.model.encoders) == 2
    assert len(own_labels(resumed.model)) == len(TEXTS)
    later = fit([PressAt(15)], **given)
    assert later.interrupted and len(later.model.encoders) == 2


def test_an_encoder_with_class_tokens_is_tuned_too(tmp_path):
    fitted = fit(objective="dualcl", options="ensemble=soft", **TUNED)
    assert fitted.model.encoders[0].class_tokens == 3
    save_run(fitted.model, tmp_path / "run")
    again = load_model(tmp_path / "run")
    assert np.allclose(again.answer(TEXTS).native, fitted.model.answer(TEXTS).native, atol=1e-6)


def test_what_the_second_stage_is_told():
    config = resolve({"objective": "triplet", "options": "margin=0.3", "epochs": 7, "members": 2})
    assert second_stage(config) is None and total_epochs(config) == 14
    config = resolve({**config.to_dict(), "finetune_epochs": 5})
    second = second_stage(config)
    assert (second.objective, second.options) == ("cross_entropy", None)
    assert second.epochs == 5
    for rate in (2e-5, 0.5):  # as low as before, but never as high
        tuned = second_stage(resolve({**config.to_dict(), "learning_rate": rate}))
        assert tuned.learning_rate == min(rate, stages.FINETUNING_RATE)
    assert second_stage(second) is None and total_epochs(config) == 2 * (7 + second.epochs)


def test_through_the_front_door_stopped_and_resumed(tmp_path, monkeypatch):
    """`train --finetune-epochs`, its figures of merit, Ctrl-C in the second stage, `--resume`."""
    files = {}
    for name, part in (("train", ROWS), ("dev", ROWS[::4]), ("test", ROWS[1::4])):
        files[name] = tmp_path / f"{name}.tsv"
        lines = ["label\ttext", *(f"{label}\t{text}" for text, label in part)]
        files[name].write_text("\n".join(lines) + "\n", encoding="utf-8")

    def request(out):
        paths = {name: str(path) for name, path in files.items()}
        return TrainRequest(**paths, out=str(out), given={**SMALL, **TUNED})

    from superconext.data.sampler import ShuffledBatches

    batches, pressed = ShuffledBatches.epoch, []

    def pressing(self, number):
        if number == 2 and not pressed:
            pressed.append(number)
            raise KeyboardInterrupt
        return batches(self, number)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        metrics = train_run(request(tmp_path / "whole"), Progress())
        assert set(metrics["native"]) == {"train", "dev", "test"}
        monkeypatch.setattr(ShuffledBatches, "epoch", pressing)
        with pytest.raises(StoppedEarly, match="after 6 of 9 epochs"):
            train_run(request(tmp_path / "run"), Progress())
        assert load_model(tmp_path / "run").config.finetune_epochs
        resumed = resume_run(tmp_path / "run", Progress())
    assert resumed["native"] == metrics["native"] and resumed["test"] == metrics["test"]
    assert same(load_model(tmp_path / "run"), load_model(tmp_path / "whole"))
