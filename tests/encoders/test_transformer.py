"""Pretrained transformers as encoders: their vectors, their training, and hostile files."""

import dataclasses
import itertools
import json
import re
import shutil
import socket
import sqlite3
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

pytest.importorskip("transformers")

import transformers
from tokenizers import Tokenizer
from transformers import (
    AutoModel,
    FunnelConfig,
    GPT2Config,
    GPT2Model,
    RobertaConfig,
    T5Config,
    XLNetConfig,
)

import superconext
from superconext import SuperConTextClassifier
from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError, MissingExtraError, RunError
from superconext.data.dataset import Dataset
from superconext.data.token_store import build_store
from superconext.encoders import ENCODERS, encoder_class
from superconext.encoders.transformer import Options as TransformerOptions
from superconext.encoders.transformer import TransformerEncoder
from superconext.fitting.fit import fit_model
from superconext.objectives.catalogue import OBJECTIVES, objective_class
from superconext.probe.logistic_regression import DEFAULT_C, FROZEN_C
from superconext.training.callbacks import Callback
from superconext.training.trainer import decided
from tests.cli.conftest import call_main, write_table
from tests.encoders.transformers import LABELS, NEW, TEXTS, bytewise, make_model

ONE_EPOCH = {"encoder": "transformer", "epochs": 1, "batch_size": 8, "learning_rate": 1e-3}

pytestmark = pytest.mark.filterwarnings("ignore:all sentences lie")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return make_model(tmp_path_factory.mktemp("models") / "bert")


@pytest.fixture
def copied(model, tmp_path):
    """A copy of the model's folder to damage."""
    return Path(shutil.copytree(model, tmp_path / "copied"))


def frozen(model, **given):
    settings = {**ONE_EPOCH, "model": str(model), "freeze": True, **given}
    return SuperConTextClassifier(**settings).fit(TEXTS, LABELS)


def expected_vectors(folder, texts, pooling, layer=-1, most=46):
    """Each text by itself through the library, without padding."""
    model = AutoModel.from_pretrained(folder).eval()
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    tokenizer.no_truncation()
    tokenizer.no_padding()
    vectors = []
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False).ids or [1]
        ids = torch.tensor([[2, *ids[:most], 3]])
        states = model(ids, output_hidden_states=True).hidden_states[layer][0]
        pooled = {"cls": states[0], "mean": states.mean(0), "max": states.amax(0)}
        vectors.append(pooled[pooling].detach().numpy())
    return np.stack(vectors)


# Frozen


@pytest.mark.parametrize(("pooling", "layer"), [("cls", -1), ("mean", -1), ("max", 1), ("mean", 0)])
def test_frozen_vectors_are_the_librarys(pooling, layer, model):
    fitted = frozen(model, pooling=pooling, options=f"layer={layer}")
    texts = [*NEW[:2], *NEW[3:], "", "Zwin,   bzaf\tw mzyan!"]
    plain = [" ".join(text.split()) for text in texts]
    expected = expected_vectors(model, plain, pooling, layer)
    expected[-2] = 0  # of a blank text
    assert np.allclose(fitted.transform(texts), expected, atol=1e-5)


def test_the_probe_of_few_frozen_vectors_is_more_regularised(model):
    assert frozen(model).model_.probe.c == FROZEN_C < DEFAULT_C
    trained = SuperConTextClassifier(**ONE_EPOCH, model=model).fit(TEXTS, LABELS)
    assert trained.model_.probe.c == DEFAULT_C


@pytest.mark.parametrize(
    ("modes", "told"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "--pooling cls"),
        ({"pooling_mode_lasttoken": True}, "'lasttoken'.*results differ"),
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, None),
        ({"word_embedding_dimension": 8}, None),
    ],
)
def test_another_pooling_than_the_folder_names_is_told(modes, told, copied):
    (copied / "1_Pooling").mkdir()
    (copied / "1_Pooling" / "config.json").write_text(json.dumps(modes))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        frozen(copied)
    said = [str(one.message) for one in caught if "1_Pooling" in str(one.message)]
    assert len(said) == bool(told) and all(re.search(told, one) for one in said)


def test_vectors_of_one_length(model):
    vectors = expected_vectors(model, NEW[:2], "mean")
    expected = 4 * vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    assert not np.allclose(frozen(model).transform(NEW[:2]), expected, atol=1e-2)  # also cached
    assert np.allclose(frozen(model, options="unit=true").transform(NEW[:2]), expected, atol=1e-5)


def test_roberta_has_its_positions_and_long_texts_are_cut(tmp_path):
    folder = make_model(tmp_path / "roberta", RobertaConfig, type_vocab_size=1)
    texts = ["mzyan", "zwin bzaf " * 60]
    # 48 places, of which two are before padding's, and two special tokens.
    expected = expected_vectors(folder, texts, "mean", most=44)
    assert np.allclose(frozen(folder).transform(texts), expected, atol=1e-5)
    short = frozen(folder, max_length=3).transform(texts)
    assert np.allclose(short, expected_vectors(folder, texts, "mean", most=3), atol=1e-5)


def test_a_model_of_relative_positions_has_no_longest_text(tmp_path):
    def kind(max_position_embeddings, **sizes):
        return XLNetConfig(**sizes, d_inner=32, d_head=8)

    folder = make_model(tmp_path, kind)
    texts = ["mzyan", "zwin bzaf " * 60]
    expected = expected_vectors(folder, texts, "mean", most=500)
    assert np.allclose(frozen(folder, max_length=500).transform(texts), expected, atol=1e-5)


def test_frozen_vectors_are_kept_by_text_and_model(model, copied, monkeypatch):
    rows, forward = [], TransformerEncoder._read

    def counted(self, ids, lengths):
        rows.append(len(ids))
        return forward(self, ids, lengths)

    monkeypatch.setattr(TransformerEncoder, "_read", counted)
    given = {"pooling": "max", "options": "layer=2"}
    first = frozen(model, **given)
    assert sum(rows) == len(set(TEXTS))
    assert np.array_equal(frozen(model, **given).transform(TEXTS), first.transform(TEXTS))
    assert sum(rows) == len(set(TEXTS))
    make_model(copied, type_vocab_size=3)  # other random weights
    other = frozen(copied, **given)
    assert not np.array_equal(other.transform(TEXTS), first.transform(TEXTS))
    (encoder,) = first.model_.encoders
    encoder.cache.path.write_bytes(b"no database at all" * 100)
    assert np.array_equal(frozen(model, **given).transform(TEXTS), first.transform(TEXTS))
    with sqlite3.connect(encoder.cache.path) as connection:  # made anew
        (key, kept), (other_key, _) = connection.execute("SELECT * FROM vectors").fetchmany(2)
        flipped = bytes([kept[0] ^ 0x40]) + kept[1:]
        for damaged in ((flipped, key), (kept[:9], other_key)):
            connection.execute("UPDATE vectors SET vector=? WHERE key=?", damaged)
    assert np.array_equal(frozen(model, **given).transform(TEXTS), first.transform(TEXTS))
    with sqlite3.connect(encoder.cache.path) as connection:
        query = "SELECT vector FROM vectors WHERE key=?"
        assert connection.execute(query, (key,)).fetchone() == (kept,)


def test_kept_vectors_are_of_the_special_tokens_behind_a_text_too(model, copied):
    path = copied / "tokenizer.json"
    spelling = json.loads(path.read_text(encoding="utf-8"))
    single = spelling["post_processor"]["single"]
    assert "SpecialToken" in single[-1]
    del single[-1]
    path.write_text(json.dumps(spelling), encoding="utf-8")
    assert not np.allclose(frozen(model).transform(NEW), frozen(copied).transform(NEW), atol=1e-3)


def test_a_run_needs_neither_the_model_nor_the_network(copied, tmp_path, monkeypatch):
    table = [(label, text) for text, label in zip(TEXTS, LABELS, strict=True)]
    train, test = (write_table(tmp_path / f"{n}.tsv", table) for n in ("train", "test"))
    run = tmp_path / "run"
    words = "--encoder", "transformer", "--model", copied, "--freeze", "--json"
    outcome = call_main("train", train, "--test", test, "--out", run, *words)
    assert outcome.code == 0, outcome.err
    metrics = json.loads(outcome.out)
    assert metrics["test"]["accuracy"] > 0.7 and "tfidf_logreg" in metrics["baselines"]
    shutil.rmtree(copied)
    monkeypatch.setattr(socket, "socket", None)
    evaluated = call_main("evaluate", run, test, "--json")
    assert json.loads(evaluated.out)["accuracy"] == metrics["test"]["accuracy"], evaluated.err
    assert len(call_main("predict", run, test).out.splitlines()) == len(TEXTS)
    assert call_main("embed", run, test, "--out", tmp_path / "v.npy").code == 0
    assert np.load(tmp_path / "v.npy").shape == (len(TEXTS), 16)
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["model"]["name"] == "copied" and len(manifest["model"]["sha256"]) == 64


def test_a_comparison_has_transformers_beside_bilstms(model, tmp_path):
    table = [
        (label, f"{text} {i}") for i, (text, label) in enumerate(zip(TEXTS, LABELS, strict=True))
    ]
    train, test = (write_table(tmp_path / f"{n}.tsv", table) for n in ("train", "test"))
    frozen = f"superloss:encoder=transformer+model={model}+freeze=yes+options.layer=1"
    words = "--objectives", f"superloss,{frozen}", "--seeds", 2, "--epochs", 1, "--hidden-size", 4
    given = "--vector-method", "random", "--vector-dimension", 4, "--splits", "given"
    outcome = call_main("compare", train, "--test", test, "--out", tmp_path / "c", *words, *given)
    assert outcome.code == 0, outcome.err
    lines = map(json.loads, (tmp_path / "c" / "results.jsonl").read_text().splitlines())
    names = [line.get("system", line["objective"]) for line in lines]
    assert names.count("superloss") == names.count(frozen) == 2


# Texts that are cut


@pytest.mark.parametrize(
    ("word", "given", "most", "why"),
    [
        # 48 places and two special tokens; with DualCL two labels and their [SEP] too.
        ("a ", {}, 46, "model's longest input"),
        ("a ", {"objective": "dualcl"}, 43, "model's longest input"),
        ("a ", {"max_length": 30}, 30, "--max-length"),
        ("م", {"max_length": 30}, 30, "--max-length"),  # fewer letters than bytes
    ],
)
def test_texts_that_are_cut_are_counted(word, given, most, why, copied, tmp_path):
    if word == "م":
        bytewise(copied)
    size = most if word == "a " else most // 2
    long = [(word * times).strip() for times in (size, size + 1, size + 9)]
    rows = [*zip(LABELS, TEXTS, strict=True), *zip(["good", "bad", "good"], long, strict=True)]
    train = write_table(tmp_path / "train.tsv", rows)
    settings = {**ONE_EPOCH, "model": copied, **given}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in settings.items()]
    run = tmp_path / "run"
    said = call_main("train", train, "--dev", train, "--out", run, *options)
    assert said.code == 0, said.err
    counted = f"cut after {most} tokens ({why.replace('model', 'the model')}): 2 train texts"
    assert counted in said.err
    told = call_main("predict", run, train).err
    assert f"the first {most} tokens of a text ({why.replace('model', 'its model')}" in told
    assert f"2 of {len(rows)} texts are longer" in told


# Fine-tuned


@pytest.mark.parametrize("objective", sorted(OBJECTIVES.built_in))
def test_every_objective_trains_it_and_the_run_answers_alike(objective, model, tmp_path):
    (tmp_path / "pool.txt").write_text("\n".join(f"klma{i} {t}" for i, t in enumerate(TEXTS)))
    given = {**ONE_EPOCH, "model": model, "objective": objective, "seed": 1}
    if objective.startswith(("css", "scf")):
        given["unlabelled"] = str(tmp_path / "pool.txt")
    fitted = SuperConTextClassifier(**given).fit(TEXTS, LABELS)
    start = frozen(model).transform(NEW)
    assert not np.allclose(fitted.transform(NEW), start, atol=1e-3), "it has learned nothing"
    fitted.save(tmp_path / "run")
    again = superconext.load(tmp_path / "run")
    assert np.allclose(again.predict_proba(NEW), fitted.predict_proba(NEW), atol=1e-6)
    # A text has the same vector whatever stands beside it.
    assert np.allclose(again.transform(NEW)[:1], again.transform(NEW[:1]), atol=1e-5)


def class_states(model, options="", kind="dualcl"):
    config = resolve({**ONE_EPOCH, "model": model, "objective": kind, "pooling": "cls"})
    fitted = fit_model(Dataset(TEXTS, LABELS), config)
    encoder = fitted.model.encoders[0]
    store = fitted.model.store(["zwin bzaf", "khayb"])
    return encoder, store, encoder(*map(torch.from_numpy, store.pad(np.arange(2))))


@pytest.mark.long
def test_few_rows_are_all_trained_on_in_passes_that_the_rows_decide(model, tmp_path):
    """A tenth is held back where it would choose something, or where something reads it."""
    given = {"encoder": "transformer", "model": str(model), "objective": "supcon"}
    fitted = SuperConTextClassifier(**given).fit(TEXTS, LABELS).model_
    of = fitted.config
    assert (of.epochs, of.batch_size) == (24, len(TEXTS))
    assert (of.temperature, of.projection, of.learning_rate) == (0.3, "identity", 5e-5)
    watched = SuperConTextClassifier(**given, callbacks=[Callback()]).fit(TEXTS, LABELS)
    assert watched.model_.config.batch_size < len(TEXTS)
    train = write_table(tmp_path / "train.tsv", list(zip(LABELS, TEXTS, strict=True)))
    test = write_table(tmp_path / "test.tsv", [("good", NEW[0]), ("bad", NEW[1])])
    options = [f"--{name}={value}" for name, value in given.items()]
    call_main("train", train, "--test", test, "--out", tmp_path / "run", *options)
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert (metrics["train"]["n"], "dev" in metrics) == (len(TEXTS), False)


@pytest.mark.parametrize("reads", [{"objective": "css_lm"}, {"keep": "best"}])
def test_few_rows_are_held_back_where_training_reads_how_they_do(reads, model, tmp_path):
    pool = tmp_path / "pool.txt"
    pool.write_text("\n".join(f"klma{i} {t}" for i, t in enumerate(TEXTS)))
    given = {**ONE_EPOCH, "model": model, "unlabelled": str(pool), **reads}
    train = write_table(tmp_path / "train.tsv", list(zip(LABELS, TEXTS, strict=True)))
    test = write_table(tmp_path / "test.tsv", [("good", NEW[0]), ("bad", NEW[1])])
    options = [f"--{name.replace('_', '-')}={value}" for name, value in given.items()]
    outcome = call_main("train", train, "--test", test, "--out", tmp_path / "run", *options)
    assert outcome.code == 0, outcome.err
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert metrics["train"]["n"] + metrics["dev"]["n"] == len(TEXTS)
    fitted = SuperConTextClassifier(**given).fit(TEXTS, LABELS)
    assert all("dev_score" in record for record in fitted.history_)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [(2, (24, 4)), (20, (24, 20)), (833, (24, 32)), (2_000, (10, 32)), (10**6, (3, 32))],
)
def test_passes_by_rows(rows, expected):
    config = decided(resolve({"encoder": "transformer"}), rows)
    assert (config.epochs, config.batch_size) == expected
    named = decided(resolve({"encoder": "transformer", "epochs": config.epochs}), rows)
    assert named == config
    steps = decided(resolve({"encoder": "transformer", "steps_per_epoch": 6}), rows)
    assert (steps.epochs, steps.batch_size) == (15, 32)


class Passes(Callback):
    """The batches of each epoch."""

    def __init__(self):
        self.batches = []

    def on_epoch_begin(self, trainer, epoch):
        self.batches.append([*trainer.batches.epoch(epoch)])


@pytest.mark.parametrize("objective", ["supcon", "cross_entropy"])
@pytest.mark.parametrize(
    ("sizes", "steps"), [((48, 48), 3), ((90, 4, 2), 9), ((16,) * 6, 4), ((8, 8), 1), ((9, 3), 2)]
)
def test_every_pass_reads_every_row_however_skewed_the_classes(
    objective, sizes, steps, model, monkeypatch
):
    monkeypatch.setattr("superconext.training.trainer.MOST_PASSES", 2)
    monkeypatch.setattr("superconext.training.trainer.FEWEST_PASSES", 2)
    labels = [str(k) for k, size in enumerate(sizes) for _ in range(size)]
    rows = Dataset([f"{NEW[0]} {i}" for i in range(len(labels))], labels)
    given = {"encoder": "transformer", "model": str(model), "objective": objective}
    seen = Passes()
    fit_model(rows, resolve(given), callbacks=[seen])
    for batches in seen.batches:
        assert {*np.concatenate(batches).tolist()} == {*range(len(labels))}
        expected = steps if objective == "supcon" else -(-len(labels) // 32)
        assert len(batches) == expected
    assert len(seen.batches) == 2


def test_epochs_that_are_named_are_trained_as_those_that_are_not(model):
    given = {"encoder": "transformer", "model": str(model), "objective": "supcon"}
    left, named = (
        SuperConTextClassifier(**given, epochs=epochs).fit(TEXTS, LABELS) for epochs in (None, 24)
    )
    assert np.array_equal(left.transform(NEW), named.transform(NEW))


def test_class_tokens_stand_between_cls_and_the_text(model):
    encoder, store, output = class_states(model)
    library = encoder.model
    vectors, rows = library.get_input_embeddings().weight, encoder.class_rows
    for row, length in enumerate(store.lengths):
        ids = torch.from_numpy(store.take(np.array([row]))[0].astype(np.int64))
        inputs = torch.cat([vectors[[2]], rows, vectors[[3]], vectors[ids], vectors[[3]]])[None]
        # [CLS] label label [SEP] text [SEP]: labels at the position of [CLS].
        places = torch.tensor([[0, 0, 0, *range(1, length + 3)]])
        types = torch.tensor([[0] * 4 + [1] * (length + 1)])
        states = library(
            inputs_embeds=inputs, position_ids=places, token_type_ids=types
        ).last_hidden_state[0]
        assert torch.allclose(output.sentence[row], states[0], atol=1e-5)
        assert torch.allclose(output.class_states[row], states[1:3], atol=1e-5)
        assert torch.allclose(output.token_states[row, :length], states[4:-1], atol=1e-5)
    with torch.no_grad():  # their order says nothing
        rows.copy_(rows.flip(0))
    again = encoder(*map(torch.from_numpy, store.pad(np.arange(2))))
    assert torch.allclose(again.class_states, output.class_states.flip(1), atol=1e-5)
    assert torch.allclose(again.sentence, output.sentence, atol=1e-5)


@pytest.mark.parametrize("name", ["BertConfig", "MPNetConfig", "DebertaV2Config"])
def test_class_tokens_are_shuffled_in_training_where_their_order_tells(name, tmp_path):
    kind = getattr(transformers, name)
    relative = {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
    given = relative if name == "DebertaV2Config" else {}
    folder = make_model(tmp_path / "model", kind, **given)
    config = resolve({**ONE_EPOCH, "model": folder, "dropout": 0.0})
    indexer = fit_model(Dataset(TEXTS, LABELS), replace_freeze(config)).model.indexer
    encoder = TransformerEncoder.build(config, indexer, 3).eval()
    store = indexer.store(["zwin bzaf", "khayb"])
    rows = [*map(torch.from_numpy, store.pad(np.arange(2)))]
    orders = torch.tensor([*itertools.permutations(range(3))])
    with torch.no_grad():
        alone = [encoder._read(*rows, order.expand(2, -1)).class_states for order in orders]
        assert torch.allclose(alone[0], encoder(*rows).class_states, atol=1e-6), "in evaluation"
        encoder.train()
        encoder._order_matters()
        states = torch.get_rng_state()
        drawn = [encoder(*rows).class_states for _ in range(20)]
        torch.set_rng_state(states)
        assert torch.equal(encoder(*rows).class_states, drawn[0])
    tells = name != "BertConfig"
    assert encoder.training and encoder._order_matters() is tells
    found = set()
    for one in drawn:
        for row in range(2):
            near = [torch.allclose(one[row], other[row], atol=1e-5) for other in alone]
            assert sum(near) == (1 if tells else 6)
            found.add(near.index(True))
    assert len(found) == (6 if tells else 1)


def test_class_tokens_start_at_the_words_of_their_labels(model):
    config = resolve({**ONE_EPOCH, "model": model})
    prepared = fit_model(Dataset(TEXTS, LABELS), replace_freeze(config)).model
    encoder = TransformerEncoder.build(config, prepared.indexer, 3)
    before = encoder.class_rows.detach().clone()
    encoder.start_class_tokens(prepared.indexer, ["bad", "Good_bad", "☃"])
    words = encoder.model.get_input_embeddings().weight
    ids = [prepared.indexer.store([name]).tokens for name in ("bad", "good bad")]
    for row, own in enumerate(ids):
        assert torch.allclose(encoder.class_rows[row], words[own].mean(0))
    assert torch.equal(encoder.class_rows[2], before[2]), "of an unknown word"


def replace_freeze(config):
    return resolve({**config.to_dict(), "freeze": True})


def test_rates_rise_fall_and_sink_with_the_layers(model):
    options = "warmup_ratio=0.25,layer_decay=0.5,weight_decay=0.02,head_rate=0.3"
    config = resolve({**ONE_EPOCH, "model": model, "options": options})
    indexer = fit_model(Dataset(TEXTS, LABELS), replace_freeze(config)).model.indexer
    encoder = TransformerEncoder.build(config, indexer)
    head = torch.nn.Linear(3, 3)
    groups = encoder.parameter_groups(0.8, list(head.parameters()))
    settings = {id(p): (g["lr"], g["decay"]) for g in groups for p in g["params"]}
    expected = {"embeddings": 0.2, "layer.0": 0.4, "layer.1": 0.8}
    for name, weight in encoder.named_parameters():
        (rate,) = (rate for part, rate in expected.items() if part in name)
        assert settings[id(weight)] == (pytest.approx(rate), 0.02 if weight.ndim > 1 else 0.0), name
    assert [settings[id(p)] for p in head.parameters()] == [(0.3, 0.02), (0.3, 0.0)]
    assert [encoder.rate(done) for done in (0, 0.125, 0.25, 0.625, 1)] == [0, 0.5, 1, 0.5, 0]


@pytest.mark.parametrize(
    "given",
    [
        {"objective": "supcon", "options": "layer=1,layer_decay=0.9"},
        {"objective": "cross_entropy", "options": "layer=0,layer_decay=0.9"},
        {"objective": "supcon", "options": "layer=1,lora=2"},
    ],
)
def test_layers_above_the_one_that_is_read_stay(given, model):
    if "lora" in given["options"]:
        pytest.importorskip("peft")
    fitted = SuperConTextClassifier(**ONE_EPOCH, model=model, **given).fit(TEXTS, LABELS)
    assert fitted.score(TEXTS, LABELS) > 0.4


@pytest.mark.parametrize("encoder", ENCODERS.names())
@pytest.mark.parametrize("objective", OBJECTIVES.names())
def test_no_option_is_both_of_the_objective_and_of_the_encoder(encoder, objective):
    kinds = encoder_class(encoder), objective_class(objective)
    names = [{field.name for field in dataclasses.fields(one.options_type)} for one in kinds]
    assert not names[0] & names[1]


def test_an_own_objective_whose_option_the_encoder_has_is_refused(model, monkeypatch):
    monkeypatch.setattr(OBJECTIVES, "_added", {})

    class Taken(OBJECTIVES.get("cross_entropy")):
        options_type = TransformerOptions

    OBJECTIVES.register("taken", Taken)
    given = {**ONE_EPOCH, "model": model, "objective": "taken"}
    with pytest.raises(ConfigError, match=r"Taken.* found the option 'head_rate', which"):
        SuperConTextClassifier(**given).fit(TEXTS, LABELS)


def test_a_table_of_words_by_any_name_learns_slowest():
    sizes = {"n_layer": 2, "n_embd": 16, "n_head": 2, "vocab_size": 99, "n_positions": 48}
    net = GPT2Model(GPT2Config(**sizes, bos_token_id=1, eos_token_id=2))
    options = resolve({**ONE_EPOCH, "model": "x", "options": "layer_decay=0.5"})
    indexer = SimpleNamespace(mask=None, prefix=[], suffix=[], unknown=3, limit=lambda room: None)
    encoder = TransformerEncoder(net, indexer, options, class_tokens=2)
    groups = encoder.parameter_groups(0.8, [])
    rates = {id(weight): group["lr"] for group in groups for weight in group["params"]}
    for name, rate in {"wte": 0.2, "wpe": 0.2, "h.0": 0.4, "h.1": 0.8, "ln_f": 0.8}.items():
        found = {rates[id(w)] for n, w in net.named_parameters() if n.startswith(name)}
        assert len(found) == 1 and found.pop() == pytest.approx(rate), name
    assert rates[id(encoder.class_rows)] == pytest.approx(0.2)


class Stop(Callback):
    def __init__(self, after):
        self.after = after

    def on_epoch_end(self, trainer, record):
        if record["epoch"] == self.after:
            raise KeyboardInterrupt


@pytest.mark.parametrize("objective", ["superloss", "dualcl"])
def test_a_resumed_training_is_the_same_to_the_bit(objective, model, tmp_path):
    config = resolve({**ONE_EPOCH, "model": model, "objective": objective, "epochs": 3})
    data = Dataset(TEXTS, LABELS)
    whole = fit_model(data, config)
    stopped = fit_model(data, config, callbacks=[Stop(2)], checkpoint=tmp_path)
    assert stopped.interrupted
    resumed = fit_model(data, config, checkpoint=tmp_path)
    one, other = (fitted.model.encoders[0].state_dict() for fitted in (whole, resumed))
    assert all(torch.equal(value, other[name]) for name, value in one.items())
    assert np.array_equal(whole.features, resumed.features)


# What is refused


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": None}, "no model.*add model"),
        ({"encoder": "bilstm"}, "starts from no model"),
        ({"vectors": "some.txt"}, "reads no word vectors"),
        ({"init": "folder"}, "cannot start from a pretrained encoder"),
        ({"pooling": "last"}, "expected one of cls, mean, max"),
        ({"bridge": "moroccan"}, "as they are written"),
        ({"freeze": True, "members": 2}, "set members to 1"),
        ({"freeze": True, "finetune_epochs": 2}, "set finetune_epochs to 0"),
        ({"options": "revision=abc"}, "leave revision out"),
        ({"options": "layer=3"}, "expected at most 2"),
        ({"options": "warmup_ratio=2"}, "at most 1"),
        ({"options": "lora=2,layer=0"}, "no linear layer to adapt"),
        ({"options": "layr=1"}, "no option 'layr'"),
        ({"options": "lora=2", "freeze": True}, "leave the other out"),
        ({"model": "no/such/folder"}, "no such folder"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(given, message, model):
    estimator = SuperConTextClassifier(**{**ONE_EPOCH, "model": model, **given})
    with pytest.raises(ConfigError, match=message) as error:
        estimator.fit(TEXTS, LABELS)
    assert "\n" not in str(error.value)


def test_why_a_model_cannot_be_had_is_told_in_our_words(monkeypatch):
    hub = pytest.importorskip("huggingface_hub")

    class RepositoryNotFoundError(Exception):
        pass

    def refuse(*_, **__):
        raise RepositoryNotFoundError("404 Client Error. (Request ID: Root=1-2)\n\nRepository")

    monkeypatch.setattr(hub, "snapshot_download", refuse)
    told = r"no such folder, and the Hub has no such model, or it is private; expected .*the name$"
    with pytest.raises(ConfigError, match=told):
        SuperConTextClassifier(**{**ONE_EPOCH, "model": "nosuch"}).fit(TEXTS, LABELS)


def test_other_encoders_have_no_first_token_to_pool():
    with pytest.raises(ConfigError, match="expected one of last, mean, max"):
        SuperConTextClassifier(pooling="cls").fit(TEXTS, LABELS)


def test_a_model_without_a_token_before_a_text_has_none_to_pool(tmp_path):
    folder = make_model(tmp_path)
    path = tmp_path / "tokenizer.json"
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**tokenizer, "post_processor": None}), encoding="utf-8")
    given = {**ONE_EPOCH, "model": folder, "pooling": "cls"}
    with pytest.raises(ConfigError, match=r"pooling = 'cls'.* expected 'mean' or 'max'"):
        SuperConTextClassifier(**given).fit(TEXTS, LABELS)
    given["pooling"] = "mean"
    assert len(SuperConTextClassifier(**given).fit(TEXTS, LABELS).predict(NEW)) == len(NEW)
    with pytest.raises(ConfigError, match=r"objective = 'dualcl'.* as in decoders"):
        SuperConTextClassifier(**given, objective="dualcl").fit(TEXTS, LABELS)


def edit(folder, **entries):
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **entries}))


def pickled(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")


def cut(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:500])


def without_words(folder):
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    tokenizer["model"]["vocab"] = {
        token["content"]: token["id"] for token in tokenizer["added_tokens"]
    }
    path.write_text(json.dumps(tokenizer), encoding="utf-8")


def elsewhere(folder):
    index = {"weight_map": {"a": "../secret.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (pickled, "expected weights as safetensors"),
        (cut, "its weights cannot be used"),
        (elsewhere, "its weights cannot be used"),
        (lambda folder: (folder / "config.json").unlink(), "found no config.json"),
        (lambda folder: (folder / "config.json").write_text("[" * 9999), "config.json"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), "its tokenizer"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "no tokenizer.json and no vocab"),
        (without_words, "its tokenizer knows no word"),
        (lambda folder: FunnelConfig().save_pretrained(folder), "funnel: it shortens"),
        (lambda folder: edit(folder, num_hidden_layers=10**9), "asks for num_hidden_layers"),
        (lambda folder: edit(folder, hidden_size=32), "cannot be used"),
        (lambda folder: edit(folder, hidden_size=10**7), "cannot be used"),
        (lambda folder: edit(folder, vocab_size=5), "cannot be used"),
        (lambda folder: edit(folder, model_type="no_such"), "cannot be used"),
        (lambda folder: edit(folder, pad_token_id=10**8), "cannot be used"),
        (lambda folder: T5Config().save_pretrained(folder), "no encoder alone|cannot be used"),
    ],
)
def test_damaged_models_are_refused_in_one_line(damage, message, copied):
    damage(copied)
    with pytest.raises(ConfigError, match=message) as error:
        SuperConTextClassifier(**{**ONE_EPOCH, "model": str(copied)}).fit(TEXTS, LABELS)
    assert "\n" not in str(error.value) and str(error.value).count("choose another") <= 1


def test_no_code_of_a_model_is_run(copied, model):
    (copied / "evil.py").write_text("raise SystemExit('ran')")
    edit(
        copied,
        auto_map={"AutoModel": "evil.Evil", "AutoConfig": "evil.Evil"},
        attn_implementation="someone/kernel",
        _attn_implementation="someone/kernel",
    )
    assert np.allclose(frozen(copied).transform(NEW), frozen(model).transform(NEW), atol=1e-6)


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("architecture", []),
        ("architecture", {"model_type": "bert", "num_hidden_layers": 10**9}),
        ("architecture", {"model_type": "bert", "vocab_size": 10**12}),
        ("architecture", {"model_type": "../../x"}),
        ("subwords", {"model": None}),
        ("subwords", "text"),
        ("tokenizer", None),
    ],
)
def test_damaged_runs_are_refused_in_one_line(entry, value, model, tmp_path):
    frozen(model).save(tmp_path / "run")
    path = tmp_path / "run" / "vocabulary.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), entry: value}))
    manifest = tmp_path / "run" / "manifest.json"
    facts = json.loads(manifest.read_text())
    facts["files"]["vocabulary.json"] = superconext.core.files.file_sha256(path)
    manifest.write_text(json.dumps(facts))
    with pytest.raises(RunError, match="do not fit together") as error:
        superconext.load(tmp_path / "run")
    assert "\n" not in str(error.value)


def test_the_missing_extra_is_named(model, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"superconext\[transformers\]"):
        SuperConTextClassifier(**ONE_EPOCH, model=model).fit(TEXTS, LABELS)


def test_the_missing_extra_of_adapters_is_named(model, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "peft", None)
    with pytest.raises(MissingExtraError, match=r"superconext\[peft\]"):
        SuperConTextClassifier(**ONE_EPOCH, model=model, options="lora=2").fit(TEXTS, LABELS)


def test_large_batches_have_the_gradient_of_one_pass(model):
    from superconext.encoders.base import encode_rows
    from superconext.training.cached_gradients import encode_for_training

    config = resolve({**ONE_EPOCH, "model": model, "dropout": 0.0})
    indexer = fit_model(Dataset(TEXTS, LABELS), replace_freeze(config)).model.indexer
    store, rows = indexer.store(TEXTS), np.arange(len(TEXTS))
    gradients = []
    for size in (None, 5):
        encoder = TransformerEncoder.build(config, indexer).train()
        output = encode_for_training(encoder, store, rows, mini_batch_size=size)
        (output.sentence @ output.sentence.T).softmax(1)[:, 0].sum().backward()
        gradients.append({n: p.grad for n, p in encoder.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        assert torch.allclose(gradient, gradients[1][name], atol=1e-5), name
    whole = encode_rows(encoder.eval(), store, rows).sentence
    assert torch.allclose(whole, output.sentence, atol=1e-5)
    assert encoder.kept_bytes > 0 and build_store([[5]], 3).lengths.tolist() == [1]


@pytest.mark.parametrize("pooling", ["mean", "max"])
def test_class_tokens_are_no_part_of_a_pooled_sentence(pooling, model):
    config = resolve({**ONE_EPOCH, "model": model, "objective": "dualcl", "pooling": pooling})
    fitted = fit_model(Dataset(TEXTS, LABELS), config).model
    encoder, store = fitted.encoders[0], fitted.store(["zwin bzaf", "khayb"])
    output = encoder(*map(torch.from_numpy, store.pad(np.arange(2))))
    library, rows = encoder.model, encoder.class_rows
    vectors = library.get_input_embeddings().weight
    for row, length in enumerate(store.lengths):
        ids = torch.from_numpy(store.take(np.array([row]))[0].astype(np.int64))
        # [CLS] label label [SEP] text [SEP], of which the labels are left out.
        inputs = torch.cat([vectors[[2]], rows, vectors[[3]], vectors[ids], vectors[[3]]])[None]
        states = library(
            inputs_embeds=inputs,
            position_ids=torch.tensor([[0, 0, 0, *range(1, length + 3)]]),
            token_type_ids=torch.tensor([[0] * 4 + [1] * (length + 1)]),
        ).last_hidden_state[0]
        kept = torch.cat([states[:1], states[3:]])
        expected = kept.mean(0) if pooling == "mean" else kept.amax(0)
        assert torch.allclose(output.sentence[row], expected, atol=1e-5)
