"""Encoders from outside the package: trained, saved, loaded, and refused where they are missing."""

import json
import zlib

import numpy as np
import pytest
import torch
from torch import nn

import superconext
from superconext import SuperConTextClassifier
from superconext.core.errors import ConfigError, RunError
from superconext.data.token_store import build_store
from superconext.encoders import ENCODERS, register
from superconext.encoders.base import Encoder, EncoderOutput, TextIndexer
from superconext.encoders.words import WordEncoder
from superconext.text.tokenize import Tokenizer
from tests.cli.conftest import call_main, rows, write_table
from tests.estimator.test_contract import LABELS, NEW, TEXTS, TINY


class MeanOfWords(WordEncoder):
    """The mean of the word vectors: an encoder that needs nothing but its reading of words."""

    def __init__(self, embedding):
        super().__init__()
        self.embedding = embedding
        self.sentence_size = embedding.dimension

    @classmethod
    def over_words(cls, embedding, config, class_tokens):
        return cls(embedding)

    @classmethod
    def width_of(cls, config):
        return config.vector_dimension

    def forward(self, ids, lengths, table=None):
        vectors = self.embedding(ids) if table is None else nn.functional.embedding(ids, table)
        mask = torch.arange(ids.shape[1])[None] < lengths[:, None]
        weights = mask.unsqueeze(2).to(vectors.dtype)
        return EncoderOutput(vectors, mask, (vectors * weights).sum(1) / weights.sum(1))


class LetterIndexer(TextIndexer):
    """Pairs of letters to one of 64 numbers; it has no vocabulary and nothing to save."""

    def __init__(self, tokenizer):
        self.tokenizer, self.facts = tokenizer, {}

    def store(self, texts):
        lists = texts.lists() if hasattr(texts, "lists") else self.tokenizer.many(texts)
        return build_store([self._ids(tokens) for tokens in lists], 200)

    def training_store(self, rows, config):
        return build_store([self._ids(tokens) for tokens in rows], 200)

    def _ids(self, tokens):
        text = " ".join(tokens)
        pairs = (text[i : i + 2].encode() for i in range(len(text) - 1))
        return np.array([2 + zlib.crc32(pair) % 64 for pair in pairs], dtype=np.int32)

    def to_saved(self):
        return {"tokenizer": self.tokenizer.to_dict()}, {}

    @classmethod
    def from_saved(cls, document, arrays, config):
        return cls(Tokenizer.from_dict(document["tokenizer"]))


class Letters(Encoder):
    """A trained vector for each number, averaged."""

    indexer_class = LetterIndexer
    sentence_size = 16

    def __init__(self):
        super().__init__()
        self.rows = nn.Embedding(66, 16)

    @classmethod
    def fit_indexer(cls, rows, config, held_out, progress):
        return LetterIndexer(rows.tokenizer)

    @classmethod
    def build(cls, config, indexer, class_tokens=0):
        return cls()

    @classmethod
    def width_of(cls, config):
        return cls.sentence_size

    @classmethod
    def from_tensors(cls, config, indexer, tensors):
        encoder = cls()
        encoder.load_state_dict(tensors)
        return encoder

    def forward(self, ids, lengths, table=None):
        states = self.rows(ids)
        mask = torch.arange(ids.shape[1])[None] < lengths[:, None]
        weights = mask.unsqueeze(2).to(states.dtype)
        return EncoderOutput(states, mask, (states * weights).sum(1) / weights.sum(1))


@pytest.fixture(scope="module", autouse=True)
def registered():
    register("mean_of_words", MeanOfWords)
    register("letters", Letters)
    yield
    for name in ("mean_of_words", "letters"):
        del ENCODERS._added[name]


@pytest.mark.parametrize("name", ["mean_of_words", "letters"])
@pytest.mark.parametrize("objective", ["superloss", "cross_entropy", "leam"])
def test_it_trains_saves_loads_and_answers_alike(name, objective, tmp_path):
    model = SuperConTextClassifier(**{**TINY, "encoder": name, "objective": objective})
    model.fit(TEXTS, LABELS)
    assert model.score(TEXTS, LABELS) > 0.6
    model.save(tmp_path / "run")
    again = superconext.load(tmp_path / "run")
    assert np.allclose(again.predict_proba(NEW), model.predict_proba(NEW), atol=1e-6)
    # A text has the same vector whatever stands beside it.
    assert np.allclose(again.transform(NEW)[:1], again.transform(NEW[:1]), atol=1e-6)


@pytest.mark.parametrize("name", ["mean_of_words", "letters"])
def test_the_command_line_trains_evaluates_and_predicts(name, tmp_path):
    texts = rows(60, 0)
    train, test = write_table(tmp_path / "train.tsv", texts), tmp_path / "test.tsv"
    write_table(test, texts[:10])
    run = tmp_path / "run"
    told = call_main(
        "train", train, "--test", test, "--out", run, "--encoder", name, "--epochs", 2,
        "--vector-method", "word2vec", "--no-baselines", "--json",
    )  # fmt: skip
    assert told.code == 0, told.err
    evaluated = json.loads(call_main("evaluate", run, test, "--json").out)
    assert evaluated["accuracy"] == json.loads(told.out)["test"]["accuracy"]
    assert len(call_main("predict", run, test, "--text-column", "text").out.splitlines()) == 10
    assert call_main("embed", run, test, "--out", tmp_path / "v.npy").code == 0
    assert np.load(tmp_path / "v.npy").shape[0] == 10


class Shared(MeanOfWords):
    """With weights and numbers of every kind: shared, counted, and an order of columns."""

    def __init__(self, embedding):
        super().__init__(embedding)
        self.first = nn.Linear(self.sentence_size, self.sentence_size)
        self.second = nn.Linear(self.sentence_size, self.sentence_size)
        self.second.weight = self.first.weight
        self.norm = nn.BatchNorm1d(self.sentence_size)
        self.register_buffer("order", torch.arange(self.sentence_size).flip(0))

    def forward(self, ids, lengths, table=None):
        found = super().forward(ids, lengths, table)
        sentence = self.second(torch.tanh(self.first(found.sentence[:, self.order])))
        return EncoderOutput(found.token_states, found.mask, self.norm(sentence))


@pytest.mark.parametrize("keep", ["average", "best", "last"])
def test_shared_weights_and_buffers_of_integers(keep, tmp_path):
    register("shared", Shared)
    try:
        model = SuperConTextClassifier(**{**TINY, "encoder": "shared", "keep": keep, "epochs": 4})
        model.fit(TEXTS, LABELS).save(tmp_path / "run")
        again = superconext.load(tmp_path / "run")
        assert np.allclose(again.predict_proba(NEW), model.predict_proba(NEW), atol=1e-6)
        state = again.model_.encoders[0].state_dict()
        assert state["order"].dtype == state["norm.num_batches_tracked"].dtype == torch.int64
        assert state["norm.num_batches_tracked"] > 0
    finally:
        del ENCODERS._added["shared"]


class Padded(MeanOfWords):
    """Forgets that shorter sentences are padded."""

    def forward(self, ids, lengths, table=None):
        found = super().forward(ids, lengths, table)
        return EncoderOutput(found.token_states, found.mask, found.token_states.mean(dim=1))


def test_a_vector_that_depends_on_the_batch_is_refused():
    register("padded", Padded)
    try:
        with pytest.raises(ConfigError, match=r"'padded' .*found a sentence vector of forward"):
            SuperConTextClassifier(**{**TINY, "encoder": "padded"}).fit(
                [*TEXTS, "zwin", "khayb"], [*LABELS, *LABELS[:2]]
            )
    finally:
        del ENCODERS._added["padded"]


def test_class_tokens_are_refused_where_the_encoder_has_none():
    model = SuperConTextClassifier(**{**TINY, "encoder": "letters", "objective": "dualcl"})
    with pytest.raises(ConfigError, match="class tokens"):
        model.fit(TEXTS, LABELS)


def test_starting_from_a_pretrained_encoder_is_refused_where_it_cannot_be(tmp_path):
    for given in ({"init": str(tmp_path)}, {"pretrain": True, "unlabelled": "some.txt"}):
        with pytest.raises(ConfigError, match="cannot start from a pretrained encoder"):
            SuperConTextClassifier(**{**TINY, "encoder": "letters", **given}).fit(TEXTS, LABELS)


def test_a_run_of_an_encoder_that_is_not_registered_says_what_is_missing(tmp_path):
    SuperConTextClassifier(**{**TINY, "encoder": "letters"}).fit(TEXTS, LABELS).save(
        tmp_path / "run"
    )
    added = ENCODERS._added.pop("letters")
    try:
        with pytest.raises(
            RunError, match=r"the encoder 'letters' .*not part of superconext"
        ) as error:
            superconext.load(tmp_path / "run")
        assert "copy the run again" not in str(error.value)
    finally:
        ENCODERS._added["letters"] = added


def test_an_unknown_encoder_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match="did you mean 'bilstm'"):
        SuperConTextClassifier(**{**TINY, "encoder": "bilsm"}).fit(TEXTS, LABELS)
