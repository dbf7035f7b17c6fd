"""The unlabelled pool: what it holds, what it gives, and whole trainings with one."""

import dataclasses

import numpy as np
import pytest
import torch

from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError, DataError
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.encoders.base import sentence_vectors
from superconext.fitting.fit import fit_model
from superconext.fitting.preprocess import preprocess
from superconext.runs.folder import load_model, save_run
from superconext.text.normalize import Normalizer
from superconext.text.tokenize import Tokenizer
from superconext.training.callbacks import Callback
from superconext.training.pool import EncodedPool, draw_pool
from tests.training.test_trainer import make_trainer

torch.set_num_threads(1)

GOOD = ["mzyan bzaf", "zwin w bnin", "3jebni had chi", "wa3er bzaf", "zwin mzyan", "bnin w wa3er"]
BAD = ["khayb bzaf", "ghali w khayb", "ma3jebnich walo", "walo walo", "khayb hada", "ghali bzaf"]
TEXTS = GOOD + BAD
LABELS = ["good"] * 6 + ["bad"] * 6
DEV = (["mzyan hada", "ghali walo", "zwin bzaf", "khayb w ghali"], ["good", "bad", "good", "bad"])
#: Some say what a labelled text says, in other letters or spacing.
UNLABELLED = [
    *("zwin hada bzaf", "had chi bnin", "hada wa3er", "mzyan w bnin", "daba zwin lyoum"),
    *("khayb had chi", "ghali lyoum", "hada walo", "bnin lyoum w mzyan", "khayb w walo daba"),
    *("Mzyan  BZAF", "ghali walo", "zwin bzaf", "zwin hada bzaf", "wa3er bzaf"),
]
SMALL = {
    "epochs": 4,
    "hidden_size": 8,
    "batch_size": 6,
    "vector_dimension": 8,
    "learning_rate": 0.02,
    "baselines": False,
}


@pytest.fixture
def configured(tmp_path):
    path = tmp_path / "unlabelled.txt"
    path.write_text("\n".join(UNLABELLED) + "\n", encoding="utf-8")

    def make(objective="css_lm", options="retrieved=3,queries=4,negative_rows=4", **changes):
        given = {**SMALL, "objective": objective, "options": options, "unlabelled": str(path)}
        return resolve({**given, **changes})

    return make


def fit(config, **more):
    return fit_model(Dataset(TEXTS, LABELS), config, Dataset(*DEV), **more)


def words(store, prepared):
    """Sentences of a store as words, those of no known vector as <unk>."""
    names = dict(enumerate(prepared.indexer.vocabulary.words))
    new = sorted(
        {w for text in UNLABELLED for w in prepared.indexer.tokenizer(text)} - set(names.values())
    )
    names |= {len(prepared.indexer.vocabulary) + i: word for i, word in enumerate(new)}
    return [
        tuple(names[int(i)] for i in store.tokens[start:end])
        for start, end in zip(store.offsets[:-1], store.offsets[1:], strict=True)
    ]


# ---------------------------------------------------------------------------- what it holds


def test_holds_no_training_text_no_dev_text_and_nothing_twice(configured):
    config = configured()
    prepared = preprocess(
        Dataset(TEXTS, LABELS), Dataset(*DEV), ["bad", "good"], config, Progress()
    )
    found = words(prepared.pool, prepared)
    assert len(found) == len(set(found)) == prepared.facts["pool"] == 10
    held = {tuple(prepared.indexer.tokenizer(text)) for text in [*TEXTS, *DEV[0]]}
    assert not held & set(found)
    assert set(found) == {tuple(prepared.indexer.tokenizer(text)) for text in UNLABELLED} - held


def test_holds_no_dev_text_whose_label_training_never_saw(configured):
    dev = ([*DEV[0], UNLABELLED[0]], [*DEV[1], "strange"])
    prepared = preprocess(
        Dataset(TEXTS, LABELS), Dataset(*dev), ["bad", "good"], configured(), Progress()
    )
    found = words(prepared.pool, prepared)
    assert tuple(prepared.indexer.tokenizer(UNLABELLED[0])) not in found and len(found) == 9


def test_holds_no_text_set_aside(configured):
    config, aside = configured(), [UNLABELLED[0]]
    prepared = preprocess(
        Dataset(TEXTS, LABELS), Dataset(*DEV), ["bad", "good"], config, Progress(), aside
    )
    found = words(prepared.pool, prepared)
    assert tuple(prepared.indexer.tokenizer(UNLABELLED[0])) not in found and len(found) == 9
    fitted = fit_model(Dataset(TEXTS, LABELS), config, Dataset(*DEV), test_texts=aside)
    assert fitted.facts["pool"] == 9


def test_is_drawn_by_the_seed_and_no_larger_than_asked():
    tokenizer = Tokenizer(Normalizer("none"))
    texts = [f"w{i} w{i + 1}" for i in range(100)] + ["", "  "]

    def draw(size, seed):
        return draw_pool(texts, tokenizer, [["w0", "w1"]], size, seed, "file")

    kept, passed = draw(1000, 0)
    assert (len(kept), passed) == (99, 3) and ["w0", "w1"] not in kept
    assert len(draw(30, 0)[0]) == 30
    assert draw(30, 0) == draw(30, 0) != draw(30, 1)


def test_a_labelled_text_with_another_mark_is_passed_over_too():
    texts = ["w0 w1 '", '"w0" w1 !', "w2 w1", "w2 w1 .", "!!!"]
    kept, passed = draw_pool(texts, Tokenizer(), [["w0", "w1"]], 10, 0, "file")
    assert len(kept) == 1 and kept[0][:2] == ["w2", "w1"] and passed == 4


def test_an_objective_without_need_has_none(configured):
    config = configured(objective="scf", options=None)
    assert (
        preprocess(Dataset(TEXTS, LABELS), Dataset(*DEV), ["bad", "good"], config, Progress()).pool
        is None
    )
    assert make_trainer(objective="scf").pool is None


@pytest.mark.parametrize("objective", ["css_lm", "css_lm_st"])
def test_without_a_file_the_advice_is_to_name_one(configured, objective):
    with pytest.raises(ConfigError, match=f"{objective} learns from unlabelled .*add --unlabelled"):
        fit(configured(objective, unlabelled=None))


def test_a_file_with_nothing_new_is_refused(configured, tmp_path):
    path = tmp_path / "copies.txt"
    path.write_text("\n".join([*TEXTS, *DEV[0]]) + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"copies\.txt: found 16 rows.*expected other unlabelled"):
        fit(configured(unlabelled=str(path)))


# ---------------------------------------------------------------------------- what it gives


def test_memory_is_the_whole_pool_as_the_epoch_began():
    trainer = make_trainer(objective="css_lm")
    pool, store = trainer.pool, trainer.pool.store
    pool.begin_epoch()

    def expected():
        vectors = torch.from_numpy(sentence_vectors(trainer.encoder, store))
        with torch.no_grad():
            return trainer.objective.remembered(vectors)

    first = expected()
    assert pool.memory.dtype == torch.float32 and not pool.memory.requires_grad
    assert torch.allclose(pool.memory, first, atol=1e-6) and pool.memory.shape == (50, 32)
    with torch.no_grad():
        trainer.objective.class_head.weight.add_(0.3)
    assert torch.allclose(pool.memory, first, atol=1e-6)
    pool.begin_epoch()
    assert torch.allclose(pool.memory, expected(), atol=1e-6)
    assert not torch.allclose(pool.memory, first, atol=1e-3)


def test_rows_are_encoded_again_with_gradient_and_dropout():
    trainer = make_trainer(objective="css_lm")
    rows = torch.tensor([7, 3, 41])
    trainer.modules.train()
    vectors = trainer.pool.encode(rows)
    vectors.sum().backward()
    weight = trainer.encoder.forwards[0].weight_ih_l0
    assert vectors.shape == (3, 16) and float(weight.grad.abs().sum()) > 0
    assert not torch.allclose(vectors, trainer.pool.encode(rows))
    trainer.modules.eval()
    expected = sentence_vectors(trainer.encoder, trainer.pool.store)[rows.numpy()]
    assert np.allclose(trainer.pool.encode(rows).detach().numpy(), expected, atol=1e-6)


def test_an_epoch_that_asks_for_nothing_encodes_nothing():
    trainer = make_trainer(objective="css_lm", options="warmup=2", epochs=3)
    made = []
    remember = EncodedPool._remember
    trainer.pool._remember = lambda: made.append(trainer.epoch) or remember(trainer.pool)
    trainer.fit()
    assert made == [2]


# ------------------------------------------------------------------------- whole trainings


@pytest.mark.parametrize("objective", ["css_lm", "css_lm_st", "scf"])
def test_fits_and_a_saved_run_predicts_the_same_by_its_own_rule(configured, tmp_path, objective):
    options = configured().options if objective != "scf" else None
    fitted = fit(configured(objective, options, epochs=6))
    native = fitted.model.answer(TEXTS).native
    assert native.shape == (12, 2) and np.allclose(native.sum(axis=1), 1)
    told = [fitted.model.classes[k] for k in native.argmax(axis=1)]
    assert np.mean(np.array(told) == LABELS) > 0.8
    save_run(fitted.model, tmp_path / "run")
    loaded = load_model(tmp_path / "run")
    assert np.allclose(loaded.answer(TEXTS).native, native, atol=1e-12)
    assert np.array_equal(loaded.probabilities(TEXTS), fitted.model.probabilities(TEXTS))


@pytest.mark.parametrize("levels", ["D", "C"])
def test_variants_fit(configured, levels):
    fitted = fit(configured(options=f"levels={levels},retrieved=3,queries=4,negative_rows=4"))
    first = fitted.history[1]  # with retrieval, and before any fall-back
    assert first["fallen_back"] == 0 and 0 < first["pool_rows"] <= 10
    assert ("domain" in first, "class" in first) == (levels == "D", levels == "C")


def state(fitted):
    modules = [fitted.model.encoders[0], fitted.model.objectives[0]]
    return [value for module in modules for value in module.state_dict().values()]


def timeless(history):
    return [{k: v for k, v in record.items() if k != "seconds"} for record in history]


@pytest.mark.parametrize("objective", ["css_lm", "css_lm_st"])
def test_same_seed_is_the_same_bit_for_bit(configured, objective):
    first, second = fit(configured(objective)), fit(configured(objective))
    other = fit(configured(objective, seed=1))
    assert all(torch.equal(a, b) for a, b in zip(state(first), state(second), strict=True))
    assert timeless(first.history) == timeless(second.history)
    assert not all(
        a.shape == b.shape and torch.equal(a, b)
        for a, b in zip(state(first), state(other), strict=True)
    )


class Scripted(Callback):
    """Dev scores as given, so that the fall-back comes when the test wants it."""

    def __init__(self, scores, stop=None):
        self.scores, self.stop = scores, stop

    def on_epoch_end(self, trainer, record):
        record["dev_score"] = self.scores[record["epoch"] - 1]

    def on_epoch_begin(self, trainer, epoch):
        if epoch == self.stop:
            raise KeyboardInterrupt


@pytest.mark.parametrize("stop", [1, 2, 4])
def test_resumed_training_equals_uninterrupted(configured, tmp_path, stop):
    options = "retrieved=3,queries=4,negative_rows=4,patience=1"
    config = configured(options=options, epochs=6)
    scores = [0.4, 0.6, 0.5, 0.7, 0.7, 0.8]
    whole = fit(config, callbacks=[Scripted(scores)])
    assert [record["fallen_back"] for record in whole.history] == [0, 0, 0, 1, 1, 1]
    part = fit(config, callbacks=[Scripted(scores, stop)], checkpoint=tmp_path / "checkpoint")
    assert part.interrupted and len(part.history) == stop
    again = fit(config, callbacks=[Scripted(scores)], checkpoint=tmp_path / "checkpoint")
    assert all(torch.equal(a, b) for a, b in zip(state(whole), state(again), strict=True))
    assert timeless(whole.history) == timeless(again.history)


def test_without_dev_rows_nothing_is_dropped(configured):
    history = fit_model(Dataset(TEXTS, LABELS), configured(), None).history
    assert [record["fallen_back"] for record in history] == [0] * 4
    assert all("domain" in record for record in history[1:])


def test_members_have_their_own_memory_of_one_pool(configured):
    fitted = fit(configured(members=2, epochs=2))
    assert len(fitted.model.objectives) == 2
    assert fitted.model.answer(TEXTS).native.shape == (12, 2)


def test_the_configuration_of_a_run_keeps_the_options(configured, tmp_path):
    config = configured()
    save_run(fit(dataclasses.replace(config, epochs=1)).model, tmp_path / "run")
    assert load_model(tmp_path / "run").config.options == config.options
