"""Word vectors with n-grams: composed as the docstring says, trained, folded, shared."""

import math

import numpy as np
import pytest
import torch

from superconext.data.token_store import OovWords
from superconext.encoders.words import WordEmbedding
from superconext.text.ngrams import NgramVocabulary
from superconext.text.tokenize import UNK_ID

WORDS = ["<pad>", "<unk>", "bzaf", "bezaf", "bzzaf", "walo", "wala"]


def embedding(tune=True):
    ngrams = NgramVocabulary.build(WORDS)
    torch.manual_seed(0)
    model = WordEmbedding(torch.randn(7, 4), tune, len(ngrams), ngrams.encode(WORDS))
    return model, ngrams


def by_hand(row, word, table, ngrams):
    """A word's own row plus its known n-grams' rows over the root of the number of all."""
    marked = f"<{word}>" if word not in ("<pad>", "<unk>") else ""
    pieces = {
        marked[a:b] for a in range(len(marked)) for b in range(a + 2, min(a + 5, len(marked)) + 1)
    }
    known = [p for p in pieces if p in ngrams.ngrams]
    total = sum((table[ngrams.ngrams.index(p)] for p in known), torch.zeros(4))
    return row + total / math.sqrt(max(len(pieces), 1))


def test_starts_at_the_given_vectors():
    model, _ = embedding()
    assert torch.equal(model.table(), model.words.data)


def test_composes_every_word_as_defined():
    model, ngrams = embedding()
    torch.nn.init.normal_(model.ngrams)
    table = model.table()
    for i, word in enumerate(WORDS):
        expected = by_hand(model.words.data[i], word, model.ngrams.data, ngrams)
        assert torch.allclose(table[i], expected, atol=1e-6), word
    ids = torch.tensor([[2, 3, 0], [5, 1, 2]])
    assert torch.allclose(model(ids), table[ids], atol=1e-6)


def test_newcomers_share_what_the_n_grams_learned():
    model, ngrams = embedding()
    torch.nn.init.normal_(model.ngrams)
    new = ["bzaaf", "qqq"]
    given = np.ones((2, 4), dtype=np.float32)
    table = model.table(OovWords(given, np.array([True, False]), ngrams.encode(new)))
    first = by_hand(torch.ones(4), "bzaaf", model.ngrams.data, ngrams)
    assert torch.allclose(table[7], first, atol=1e-6)
    assert torch.allclose(table[8], model.words.data[UNK_ID])


@pytest.mark.parametrize("tune", [True, False])
def test_training_reaches_words_and_n_grams(tune):
    model, ngrams = embedding(tune)
    model(torch.tensor([[5, 5]])).sum().backward()
    assert (model.words.grad is not None) == tune
    touched = model.ngrams.grad.abs().sum(dim=1) > 0
    shared = [row for row, ngram in enumerate(ngrams.ngrams) if ngram in "<walo>"]
    assert touched.nonzero().flatten().tolist() == shared and shared


def test_folding_changes_no_vector():
    model, ngrams = embedding()
    torch.nn.init.normal_(model.ngrams)
    oov_words = OovWords(
        np.zeros((1, 4), dtype=np.float32), np.array([False]), ngrams.encode(["bzf"])
    )
    before = model.table(oov_words)
    model.fold()
    assert torch.allclose(model.table(oov_words), before)
    saved = WordEmbedding(model.words.data, True, len(ngrams))
    saved.load_state_dict(model.state_dict())
    assert torch.allclose(saved.table(oov_words), before)
    assert torch.allclose(saved(torch.tensor([[4]]))[0, 0], before[4])


def test_without_n_grams_it_is_a_plain_table():
    model = WordEmbedding(torch.randn(7, 4))
    ids = torch.tensor([[1, 5]])
    assert torch.equal(model(ids), model.words[ids]) and model.ngrams.shape == (0, 4)


def by_rows(monkeypatch, tune=True):
    """The same embedding with dense and with row-sparse gradients, n-grams not at zero."""
    dense, _ = embedding(tune)
    torch.nn.init.normal_(dense.ngrams)
    sparse, _ = embedding(tune)
    sparse.load_state_dict(dense.state_dict())
    ids = torch.tensor([[5, 5, 2], [3, 0, 1]])
    weight = torch.randn(2, 3, 4)
    monkeypatch.setattr("superconext.encoders.words.SPARSE_FROM", 1000)
    first = dense(ids)
    (first * weight).sum().backward()
    monkeypatch.setattr("superconext.encoders.words.SPARSE_FROM", 1)
    second = sparse(ids)
    (second * weight).sum().backward()
    assert torch.equal(first, second)
    return dense, sparse, ids


@pytest.mark.parametrize("tune", [True, False])
def test_a_large_tables_gradient_names_the_rows_of_the_batch_alone(monkeypatch, tune):
    dense, sparse, ids = by_rows(monkeypatch, tune)
    assert sparse.ngrams.grad.is_sparse
    assert torch.allclose(sparse.ngrams.grad.to_dense(), dense.ngrams.grad, atol=1e-6)
    used = (dense.ngrams.grad.abs().sum(dim=1) > 0).nonzero().flatten()
    assert torch.equal(sparse.ngrams.grad._indices()[0], used)
    if not tune:
        assert sparse.words.grad is None
        return
    assert sparse.words.grad.is_sparse
    assert torch.allclose(sparse.words.grad.to_dense(), dense.words.grad, atol=1e-6)
    assert sparse.words.grad._indices()[0].tolist() == sorted(set(ids.flatten().tolist()))


def test_two_backward_passes_add_up(monkeypatch):
    dense, sparse, ids = by_rows(monkeypatch)
    for model in (dense, sparse):
        monkeypatch.setattr(
            "superconext.encoders.words.SPARSE_FROM", 1 if model is sparse else 1000
        )
        model(ids.flip(0)).square().sum().backward()
    for name in ("words", "ngrams"):
        found = getattr(sparse, name).grad.to_dense()
        assert torch.allclose(found, getattr(dense, name).grad, atol=1e-5), name


def test_whoever_reads_says_which_rows(monkeypatch):
    monkeypatch.setattr("superconext.encoders.words.SPARSE_FROM", 1)
    model, ngrams = embedding()
    told = []

    def note(table, rows):
        told.append((table is model.words, None if rows is None else rows.tolist()))

    model.before_reading = note
    model(torch.tensor([[5, 2, 5]]))
    shared = [i for i, n in enumerate(ngrams.ngrams) if n in "<walo>" or n in "<bzaf>"]
    assert told == [(True, [2, 5]), (False, shared)]
    told.clear()
    model.table()
    assert told == [(True, None), (False, None)]
    model.fold()
    assert model.before_reading is None
