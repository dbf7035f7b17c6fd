"""`superconext pretrain` and `train --init`: learns, repeats itself, goes on, refuses."""

import json
import random
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from superconext import SuperConTextClassifier
from superconext.core.errors import ConfigError, RunError
from superconext.encoders.bilstm import BiLSTMEncoder
from superconext.encoders.compiled_gates import Kernel, kernel
from superconext.encoders.pretrained import start_from
from superconext.encoders.words import WordEmbedding
from superconext.training.callbacks import Callback
from superconext.training.checkpoint import KEPT, Checkpointer
from superconext.training.pretraining import language_model
from superconext.training.pretraining.language_model import (
    HeldOutLoss,
    Settings,
    pretraining,
    read_corpus,
)
from superconext.training.pretraining.make import TIMES
from superconext.vectors.subwords import SubwordTable
from superconext.vectors.table import WordVectors
from tests.cli.conftest import BAD, COMMON, GOOD, call_main, rows, write_table
from tests.experiments.conftest import Heard

SMALL = ("--vector-dimension", 6, "--hidden-size", 5, "--batch-size", 20, "--quiet")


def ordered(count, seed=0):
    """Sentences in which every word tells the next one: a b c d e f and back to a."""
    draw = random.Random(seed)
    ring = "abcdef"
    text = []
    for _ in range(count):
        start = draw.randrange(6)
        text.append([ring[(start + k) % 6] for k in range(draw.randint(3, 7))])
    return text


def corpus(count=300):
    return read_corpus(ordered(count), seed=0)


def trainer(states, progress=None, callbacks=(), **settings):
    read = corpus()
    table = np.random.default_rng(0).standard_normal((len(read.vocabulary), 6)).astype(np.float32)
    small = {"hidden_size": 12, "batch_size": 20, "epochs": 3, "learning_rate": 0.02, "dropout": 0}
    settings = Settings(**{**small, "word_dropout": 0.0, "sample": 6, **settings})
    return pretraining(read, table, settings, states, progress, callbacks)


def weights(made):
    return {name: value.clone() for name, value in made.weights().items()}


def same(one, other):
    return all(torch.equal(value, other[name]) for name, value in one.items())


def test_what_follows_is_learned(tmp_path):
    made = trainer(tmp_path, epochs=12)
    held = next(hook for hook in made.callbacks if isinstance(hook, HeldOutLoss))
    before = held.loss(made)
    made.fit()
    # Six words as likely as each other cost log 6 = 1.79, fewer of them in a sample less; the
    # last word always tells the next.
    assert before > 1.2
    assert made.history[-1]["held_loss"] < 0.2
    assert [record["epoch"] for record in made.history] == list(range(1, 13))


def test_sentences_without_a_word_to_predict_have_no_loss(tmp_path):
    """In some batches, and in all that is held out, every word is too rare."""
    common, rare = ordered(60), [[f"r{k}a", f"r{k}b", f"r{k}c"] for k in range(80)]
    read = read_corpus([*common, *rare], seed=0)
    read = replace(read, trained=np.arange(138), held_out=np.array([138, 139]))
    table = np.ones((len(read.vocabulary), 6), dtype=np.float32)
    settings = Settings(hidden_size=4, batch_size=4, epochs=1)
    progress = Heard()
    made = pretraining(read, table, settings, tmp_path, progress, ())
    made.fit()
    assert made.history[0]["held_loss"] is None and np.isfinite(made.history[0]["loss"])
    assert any("on held-out sentences none (no word to predict)" in line for line in progress.lines)


def test_the_words_that_are_read_stay(tmp_path):
    made = trainer(tmp_path)
    before = made.encoder.embedding.words.detach().clone()
    made.fit()
    assert torch.equal(before, made.encoder.embedding.words)


def test_equal_seeds_give_equal_weights_and_others_others(tmp_path):
    made = []
    for k, seed in enumerate((0, 0, 1)):
        made.append(trainer(tmp_path / str(k), seed=seed))
        made[k].fit()
    one, other, third = made
    assert same(weights(one), weights(other))
    assert not same(weights(one), weights(third))


def test_compiled_steps_learn_the_same(tmp_path):
    plain, other = trainer(tmp_path / "a"), trainer(tmp_path / "b", compile=True)
    for made in (plain, other):
        made.fit()
    assert same(weights(plain), weights(other)) != isinstance(kernel(), Kernel)
    losses = [made.history[-1]["held_loss"] for made in (plain, other)]
    assert losses[0] == pytest.approx(losses[1], rel=0.01)


def timeless(made):
    return [{**record, "seconds": 0} for record in made.history]


@pytest.mark.parametrize(
    ("stop", "part"), [(3, 1.0), (14, 1.0), (15, 1.0), (29, 1.0), (9, 0.5), (13, 0.5)]
)
def test_a_stopped_training_goes_on_to_the_same_end(tmp_path, monkeypatch, stop, part):
    monkeypatch.setattr(language_model, "SAVED_EVERY", 5)
    whole = trainer(tmp_path / "whole", part=part)
    whole.fit()

    class StopError(Exception):
        pass

    class Stop(Callback):
        def on_step_end(self, trainer, step, loss):
            if trainer.steps_done == stop:
                raise StopError

    broken = trainer(tmp_path / "broken", callbacks=[Stop()], part=part)
    with pytest.raises(StopError):
        broken.fit()
    heard = Heard()
    again = trainer(tmp_path / "broken", progress=heard, part=part)
    epoch = round(14 * part)  # steps
    last = max((stop - 1) // 5 * 5, (stop - 1) // epoch * epoch)
    assert again.steps_done == last
    again.fit()
    assert same(weights(whole), weights(again))
    assert timeless(again) == timeless(whole)
    told = f"resuming after step {last} of {3 * epoch}"
    assert any(told in line for line in heard.lines) == (stop > 5)
    assert len(list((tmp_path / "broken").iterdir())) == KEPT


def test_a_torn_state_falls_back_to_the_one_before(tmp_path, monkeypatch):
    monkeypatch.setattr(language_model, "SAVED_EVERY", 5)
    whole = trainer(tmp_path)
    whole.fit()
    last = next(iter(Checkpointer(tmp_path, 0, "pretraining", every=5).saved().values()))
    last.write_bytes(last.read_bytes()[:-7])
    heard = Heard()
    again = trainer(tmp_path, progress=heard)
    again.fit()
    assert any("cannot be used" in line and "the one before" in line for line in heard.lines)
    assert same(weights(whole), weights(again))
    for path in tmp_path.iterdir():
        path.write_bytes(b"nothing")
    with pytest.raises(RunError, match="cannot be used"):
        trainer(tmp_path)


def test_the_learning_rate_rises_and_falls_in_a_line(tmp_path):
    rates = []

    class Watch(Callback):
        def on_step_end(self, trainer, step, loss):
            rates.append(trainer.optimizer.param_groups[0]["lr"])

    trainer(tmp_path, callbacks=[Watch()]).fit()
    steps, rise = 42, 4  # three epochs of 14 batches; a tenth of all
    expected = [0.02 * min(1.0, (k + 1) / rise) * (1 - k / steps) for k in range(steps)]
    assert rates == pytest.approx(expected)


def test_nothing_is_dropped_from_sentences_held_out(tmp_path):
    training = trainer(tmp_path, dropout=0.5, word_dropout=0.5)
    (held,) = [one for one in training.callbacks if isinstance(one, HeldOutLoss)]
    losses = []
    for _ in range(2):
        training.encoder.train()
        losses.append(held.loss(training))
    assert losses[0] == losses[1]


def test_a_state_of_an_earlier_version_is_not_read(tmp_path):
    whole = trainer(tmp_path / "whole")
    whole.fit()
    checkpoints = Checkpointer(tmp_path / "whole", 0, "pretraining", every=500).saved()
    saved = next(iter(checkpoints.values()))
    stale = tmp_path / "stale" / "step-42.safetensors"  # the name that version 3 gave it
    stale.parent.mkdir()
    stale.write_bytes(saved.read_bytes())
    assert trainer(stale.parent).steps_done == 0


def test_states_hold_what_is_trained_alone(tmp_path):
    made = trainer(tmp_path)
    assert "encoder.embedding.words" not in made.weights()
    assert "objective.words.words" in made.weights()
    with pytest.raises(ValueError, match="not those that this training changes"):
        made.load_weights(made.modules.state_dict())


def text_file(tmp_path, count=150, name="text.txt", seed=1):
    draw = random.Random(seed)
    path = tmp_path / name
    lines = [" ".join(draw.choices([*GOOD, *BAD, *COMMON], k=7)) for _ in range(count)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def cached(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_the_command_and_a_run_that_starts_from_it(cached):
    path, out = text_file(cached), cached / "pre"
    facts = json.loads(call_main("pretrain", path, "--out", out, *SMALL, "--json")[1])
    assert facts["cached"] is False and facts["tokens"] > 500
    assert len(facts["history"]) == 2
    second = cached / "again"
    facts = json.loads(call_main("pretrain", path, "--out", second, *SMALL, "--json")[1])
    assert facts["cached"] is True
    hashes = [json.loads((f / "encoder.json").read_text())["sha256"] for f in (out, second)]
    assert hashes[0] == hashes[1]

    train = write_table(cached / "train.tsv", rows(60, 0))
    run = cached / "run"
    code, _, _ = call_main(
        "train", train, "--out", run, "--init", out, "--epochs", 1,
        "--learning-rate", "1e-30", "--keep", "last", "--no-baselines", "--quiet",
    )  # fmt: skip
    assert code == 0
    # At next to no learning rate the run ends with the very layers it began with.
    ours, theirs = load_file(run / "encoder.safetensors"), load_file(out / "encoder.safetensors")
    assert torch.equal(ours["encoder.0.forwards.0.weight_hh_l0"], theirs["forwards.weight_hh_l0"])
    assert torch.equal(ours["encoder.0.backwards.0.weight_ih_l0"], theirs["backwards.weight_ih_l0"])
    # The folder is a folder of word vectors too.
    assert call_main("vectors", "info", out)[0] == 0


def test_each_pass_reads_so_many_words_of_a_longer_text(cached):
    path = text_file(cached)
    words = len(path.read_text(encoding="utf-8").split())
    made = {}
    for asked in (None, words // 2, words, 10 * words):
        given = () if asked is None else ("--words", asked)
        out = cached / f"pre{asked}"
        _, said, _ = call_main("pretrain", path, "--out", out, *SMALL, *given, "--json")
        facts = json.loads(said)
        made[asked] = facts["settings"]["part"], facts["sha256"]
    assert made[None] == made[words] == made[10 * words] and made[None][0] == 1
    assert made[words // 2] == (pytest.approx(0.5, abs=0.001), made[words // 2][1])
    assert made[words // 2][1] != made[None][1]


def test_the_estimator_takes_it(cached):
    out = cached / "pre"
    assert call_main("pretrain", text_file(cached), "--out", out, *SMALL)[0] == 0
    texts, labels = [" ".join(GOOD), " ".join(BAD)] * 10, ["good", "bad"] * 10
    model = SuperConTextClassifier(init=str(out), epochs=1).fit(texts, labels)
    assert set(model.predict(texts)) <= {"good", "bad"}
    config = model.model_.config
    assert (config.hidden_size, config.vector_dimension) == (5, 6)
    assert model.get_params()["hidden_size"] is None


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (("--init", "OUT", "--hidden-size", 7), 1, "leave hidden_size out"),
        (("--init", "OUT", "--vector-dimension", 7), 1, "leave vector_dimension out"),
        (("--init", "OUT", "--hidden-size", 5, "--vectors", "OUT"), 1, "leave out vectors"),
        (("--init", "NOTHING"), 1, "NOTHING"),
    ],
)
def test_what_does_not_fit_is_told(cached, options, code, told):
    out = cached / "pre"
    assert call_main("pretrain", text_file(cached), "--out", out, *SMALL)[0] == 0
    train = write_table(cached / "train.tsv", rows(40, 0))
    named = [str(out) if option == "OUT" else option for option in options]
    found = call_main("train", train, "--out", cached / "run", *named, "--quiet")
    assert found[0] == code
    assert told in found[2] and "Traceback" not in found[2]
    assert not (cached / "run").exists()


def test_a_dimension_that_given_word_vectors_do_not_have_is_told(cached):
    text, words = text_file(cached), cached / "words.vec"
    lines = [f"{word} 0.{k} 0.5 -0.{k} 1.5" for k, word in enumerate([*GOOD, *BAD, *COMMON], 1)]
    words.write_text("\n".join(lines) + "\n", encoding="utf-8")
    train = write_table(cached / "train.tsv", rows(40, 0))
    for dimension, told in ((7, True), (4, False)):
        more = ("--vectors", words, "--vector-dimension", dimension, "--hidden-size", 5)
        for verb, file, epochs in (("pretrain", text, 2), ("train", train, 1)):
            out = cached / f"{verb}{dimension}"
            code, _, error = call_main(verb, file, "--out", out, *more, "--epochs", epochs)
            assert code == 0, error
            assert ("have 4 numbers; vector_dimension = 7 is" in error) == told, error


@pytest.mark.parametrize(("rate", "told"), [("30", True), ("0.002", False)])
def test_an_encoder_that_has_learned_nothing_is_told(cached, rate, told):
    more = ("--learning-rate", rate, "--epochs", 4)
    code, _, error = call_main(
        "pretrain", text_file(cached), "--out", cached / "pre", *more, *SMALL
    )
    assert code == 0
    assert ("worse than chance" in error) == told, error


def test_text_that_is_left_out_as_a_whole_is_told_so(cached):
    text = text_file(cached)
    more = ("--leave-out", text, "--quiet")
    code, _, error = call_main("pretrain", text, "--out", cached / "pre", *more)
    assert code == 1 and "what is left out of it" in error


def test_too_little_text_is_refused(cached):
    code, _, error = call_main("pretrain", text_file(cached, 20), "--out", cached / "pre", *SMALL)
    assert code == 1 and "20 sentences" in error and not (cached / "pre").exists()


def test_only_the_first_of_several_layers_is_filled(cached):
    out = cached / "pre"
    assert call_main("pretrain", text_file(cached), "--out", out, *SMALL)[0] == 0
    encoder = BiLSTMEncoder(WordEmbedding(torch.randn(4, 6)), 5, layers=2)
    second = encoder.forwards[1].weight_hh_l0.detach().clone()
    start_from(encoder, out)
    assert torch.equal(second, encoder.forwards[1].weight_hh_l0)
    with pytest.raises(ConfigError, match="dimension"):
        start_from(BiLSTMEncoder(WordEmbedding(torch.randn(4, 7)), 5), out)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_words_the_vectors_lack_keep_the_noise_the_encoder_has_read(cached, monkeypatch, kind):
    read = {}

    def watching(corpus, table, *others):
        read.update(zip(corpus.vocabulary.words, table, strict=True))
        return pretraining(corpus, table, *others)

    monkeypatch.setattr("superconext.training.pretraining.make.pretraining", watching)
    vectors, out = cached / "few", cached / "pre"
    WordVectors([GOOD[0], BAD[0], "elsewhere"], np.eye(3, dtype=kind)).save(vectors)
    options = ("--vectors", vectors, "--out", out, "--hidden-size", 5, "--quiet")
    assert call_main("pretrain", text_file(cached), *options)[0] == 0
    held = WordVectors.load(out, verify=True)
    words = [word for word in read if not word.startswith("<")]
    assert set(held.words) == {*words, "elsewhere"} and len(words) == len({*GOOD, *BAD, *COMMON})
    rows, found = held.lookup(words)
    assert found.all() and rows.any(axis=1).all()
    np.testing.assert_array_equal(rows, np.stack([read[word] for word in words]))
    assert any("had random vectors" in note for note in held.notes)


def watched(monkeypatch):
    """The trainings that `pretrain` makes, and the word vectors that go into each."""
    made = []

    def watching(corpus, table, *others):
        made.append((corpus, table.copy(), pretraining(corpus, table, *others)))
        return made[-1][2]

    monkeypatch.setattr("superconext.training.pretraining.make.pretraining", watching)
    return made


def test_vectors_of_ngrams_learn_and_are_in_the_word_vectors_of_the_folder(cached, monkeypatch):
    made, out = watched(monkeypatch), cached / "pre"
    first = cached / "vectors"
    text = text_file(cached)
    assert call_main("vectors", "train", text, "--out", first, "--dimension", 6, "--quiet")[0] == 0
    given = ("--vectors", first, "--out", out, "--hidden-size", 5, "--quiet")
    assert call_main("pretrain", text, *given)[0] == 0
    ((corpus, before, trainer),) = made
    words = corpus.vocabulary.words[2:]
    old, new = (WordVectors.load(folder, verify=True) for folder in (first, out))
    embedding = trainer.encoder.embedding
    change = TIMES * embedding.ngrams.detach().numpy()
    assert np.abs(change).max() > 0.01
    # What the encoder has read of a word is in the folder, also of words the text does not have.
    read, found = new.lookup(words)
    assert found.all() and not np.allclose(read, before[2:], atol=1e-3)
    np.testing.assert_allclose(read, embedding.table().numpy()[2:], atol=1e-5)
    for word in (*words[:5], "unheard", "goodish"):
        ids = old.subwords.hashes(word)
        expected = old.lookup([word])[0][0] + sum(change[k] for k in ids) / len(ids)
        np.testing.assert_allclose(new.lookup([word])[0][0], expected, atol=1e-5)
    assert np.array_equal(before[:2], embedding.table().numpy()[:2]), "no word has no n-grams"


def test_word_vectors_of_the_same_file_cut_short_make_another_encoder(cached):
    text, file = text_file(cached), cached / "words.vec"
    draw = np.random.default_rng(0)
    rows = [" ".join([word, *map(str, draw.random(6))]) for word in [*GOOD, *BAD, *COMMON]]
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    assert call_main("vectors", "convert", file, "--out", cached / "whole")[0] == 0
    assert call_main("vectors", "convert", file, "--limit", 3, "--out", cached / "cut")[0] == 0
    for name, cached_already in (("whole", False), ("cut", False), ("whole", True)):
        out = cached / f"from_{name}"
        words = ("pretrain", text, "--vectors", cached / name, "--out", out, "--hidden-size", 5)
        code, said, error = call_main(*words, "--json", "--force")
        assert code == 0, error
        assert json.loads(said)["cached"] is cached_already
    made = [WordVectors.load(cached / f"from_{name}").matrix for name in ("whole", "cut")]
    assert not np.array_equal(*made)


def test_a_word_found_in_another_case_keeps_what_the_encoder_has_read(cached, monkeypatch):
    made, out = watched(monkeypatch), cached / "pre"
    draw = np.random.default_rng(0)
    rows = draw.standard_normal((2, 6)).astype(np.float32)
    buckets = draw.standard_normal((50, 6)).astype(np.float32)
    names = [GOOD[0].upper(), BAD[0]]
    WordVectors(names, rows, SubwordTable(buckets, 2, 4)).save(cached / "few")
    options = ("--vectors", cached / "few", "--out", out, "--hidden-size", 5, "--quiet")
    assert call_main("pretrain", text_file(cached), *options)[0] == 0
    ((corpus, before, trainer),) = made
    words = corpus.vocabulary.words[2:]
    np.testing.assert_array_equal(before[2 + words.index(GOOD[0])], rows[0])
    held = WordVectors.load(out, verify=True)
    np.testing.assert_allclose(
        held.lookup(words)[0], trainer.encoder.embedding.table().numpy()[2:], atol=2e-3
    )
    assert names[0] in held.words
    unknown = corpus.vocabulary.words[1]  # among 50 n-grams some are those of words
    np.testing.assert_array_equal(held.lookup([unknown])[0][0], before[1])


@pytest.mark.parametrize(("emoji", "relearned"), [("", False), ("😂😭", False), ("😂😭🔥", True)])
def test_scores_of_emoji_are_learned_anew_of_text_with_as_many(cached, emoji, relearned):
    text, file = text_file(cached), cached / "more.txt"
    lines = text.read_text(encoding="utf-8").splitlines()
    told = [f"{line} {'😂😭🔥'[k % 3]}" for k, line in enumerate([*lines, *lines])]
    file.write_text("\n".join(told) + "\n", encoding="utf-8")
    words = ("vectors", "train", file, "--out", cached / "first", "--dimension", 6, "--quiet")
    assert call_main(*words)[0] == 0
    if emoji:
        lines = [f"{line} {emoji[k % len(emoji)]}" for k, line in enumerate(lines)]
        text.write_text("\n".join(lines) + "\n", encoding="utf-8")
    options = ("--vectors", cached / "first", "--out", cached / "pre", "--hidden-size", 5)
    assert call_main("pretrain", text, *options, "--quiet")[0] == 0
    old, new = (WordVectors.load(cached / name).emoji_scores for name in ("first", "pre"))
    assert len(old) == 3
    assert np.array_equal(old, new) != relearned


def test_tables_of_very_many_ngrams_stay_as_they_are(cached, monkeypatch):
    monkeypatch.setattr("superconext.training.pretraining.make.MOST_LEARNED", 299)
    rows, buckets = np.ones((1, 6), np.float32), np.ones((50, 6), np.float32)
    WordVectors([BAD[0]], rows, SubwordTable(buckets, 2, 4)).save(cached / "few")
    out = cached / "pre"
    options = ("--vectors", cached / "few", "--out", out, "--hidden-size", 5, "--quiet")
    assert call_main("pretrain", text_file(cached), *options)[0] == 0
    assert np.array_equal(WordVectors.load(out).subwords.buckets, buckets)


def encoder_and_own_text(folder):
    """A pretrained encoder, and labelled rows in which every word tells the next one."""
    assert call_main("pretrain", text_file(folder), "--out", folder / "pre", *SMALL)[0] == 0
    own = folder / "own.tsv"
    lines = [f"good\t{' '.join(tokens)} unheard" for tokens in ordered(150)]
    own.write_text("label\ttext\n" + "\n".join(lines) + "\n", encoding="utf-8")
    return folder / "pre", own


def further(pre, own, out, *more):
    """`pretrain --init`, which takes the sizes of that encoder."""
    words = ("--init", pre, "--out", out, "--batch-size", 20, "--quiet")
    return call_main("pretrain", own, *words, *more)


def test_an_encoder_learns_on_from_own_texts(cached):
    pre, own = encoder_and_own_text(cached)
    fast = ("--learning-rate", 0.05, "--json")
    facts = json.loads(further(pre, own, cached / "more", *fast)[1])
    before = json.loads((pre / "encoder.json").read_text("utf-8"))
    assert facts["continued_from"] == {"sha256": before["sha256"], "files": ["text.txt"]}
    assert facts["files"] == ["own.tsv"] and facts["sha256"] != before["sha256"]
    held = [record["held_loss"] for record in facts["history"]]
    assert len(held) == 10 and held[-1] < held[0] - 0.2 and facts["cached"] is False
    assert json.loads(further(pre, own, cached / "twice", *fast)[1])["cached"] is True
    # A word that the first text lacks has the vector of its n-grams.
    vectors = [WordVectors.load(folder).lookup(["unheard"]) for folder in (pre, cached / "more")]
    assert vectors[1][1].all() and np.array_equal(vectors[0][0], vectors[1][0])
    train = write_table(cached / "train.tsv", rows(60, 0))
    small = ("--epochs", 1, "--no-baselines", "--quiet")
    given = ("train", train, "--out", cached / "run", "--init", cached / "more", *small)
    assert call_main(*given)[0] == 0


def test_it_starts_from_the_weights_of_that_encoder(cached):
    pre, own = encoder_and_own_text(cached)
    assert further(pre, own, cached / "more", "--epochs", 1, "--learning-rate", "1e-30")[0] == 0
    first, second = (load_file(folder / "encoder.safetensors") for folder in (pre, cached / "more"))
    assert same(first, second)


def test_stopped_on_own_texts_it_goes_on_to_the_same_end(cached, monkeypatch):
    class Stop(Callback):
        def on_step_end(self, trainer, step, loss):
            if trainer.steps_done == 33:
                raise KeyboardInterrupt

    def stopping(*given):
        made = pretraining(*given)
        made.callbacks.append(Stop())
        return made

    pre, own = encoder_and_own_text(cached)
    with monkeypatch.context() as patch:
        patch.setattr(language_model, "SAVED_EVERY", 5)
        patch.setattr("superconext.training.pretraining.make.pretraining", stopping)
        code, _, error = further(pre, own, cached / "more")
    assert code == 1 and "repeat the command to resume" in error
    assert not (cached / "more").exists()
    assert "resuming after step" in call_main(
        "pretrain", own, "--init", pre, "--out", cached / "more", "--batch-size", 20,
    )[2]  # fmt: skip
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(cached / "other"))
    assert further(pre, own, cached / "whole")[0] == 0
    ends = [load_file(cached / name / "encoder.safetensors") for name in ("more", "whole")]
    assert same(*ends)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (("--init", "OWN"), "found no encoder.json"),
        (("--vectors", "PRE"), "brings its own; expected one of the two"),
        (("--normalize", "none"), "fixes its normalisation"),
        (("--hidden-size", 7), "leave hidden_size out"),
        (("--vector-dimension", 7), "leave vector_dimension out"),
        (("--out", "PRE", "--force"), "choose another --out"),
    ],
)
def test_what_no_encoder_can_learn_on_from_is_refused(cached, more, told):
    pre, own = encoder_and_own_text(cached)
    before = (pre / "encoder.json").read_bytes()
    named = [{"PRE": pre, "OWN": cached}.get(word, word) for word in more]
    code, _, error = further(pre, own, cached / "more", *named)
    assert code == 1 and told in error and "Traceback" not in error
    assert not (cached / "more").exists() and (pre / "encoder.json").read_bytes() == before


def test_an_encoder_inside_the_folder_to_replace_is_kept(cached):
    pre, own = encoder_and_own_text(cached)
    inside = shutil.copytree(pre, cached / "more" / "inside")
    shutil.copy(pre / "info.json", cached / "more")
    code, _, error = further(inside, own, cached / "more", "--force")
    assert code == 1 and "more' holds the encoder to go on from" in error
    assert (inside / "encoder.json").is_file()


def test_sizes_follow_from_the_encoder_before_any_text_is_read(cached):
    pre, own = encoder_and_own_text(cached)
    for more in (("--hidden-size", 7), ("--vector-dimension", 7)):
        code, _, error = further(pre, cached / "no-such-text.txt", cached / "more", *more)
        assert code == 1 and f"leave {more[0][2:].replace('-', '_')} out" in error
    train = write_table(cached / "train.tsv", rows(60, 0))
    words = ("--init", pre, "--epochs", 1, "--quiet")
    more = ("--pretrain", "--unlabelled", own, "--no-baselines")
    said = call_main("train", train, "--out", cached / "run", *words, *more)
    assert said.code == 0, said.err
    named = "hidden_size = 5", "vector_dimension = 6"
    assert all(line in (cached / "run" / "config.toml").read_text("utf-8") for line in named)
    test = write_table(cached / "test.tsv", rows(40, 1))
    systems = ("--objectives", "superloss,pretrained_logreg", "--seeds", 1)
    out = cached / "compared"
    said = call_main("compare", train, "--test", test, "--out", out, *systems, *words)
    assert said.code == 0, said.err


def test_too_few_own_texts_are_refused(cached):
    pre, _ = encoder_and_own_text(cached)
    few = text_file(cached, 20, "few.txt")
    code, _, error = further(pre, few, cached / "more")
    assert code == 1 and "20 sentences" in error and not (cached / "more").exists()
