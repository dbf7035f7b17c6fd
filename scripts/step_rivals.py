"""The rivals of bench_step.py: the same step as other libraries, and as people write it.

Each is a function of (size, sentences, steps) that gives back `run`; `run` trains so many steps
and tells the tokens it read. Each wants the same word vectors (frozen), widths, batch size and
balanced batches of two classes. They keep their own losses, and no projection head where they
have none, which is less work than ours. A rival that is not installed raises ImportError.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np


class Size(Protocol):
    """The model that is measured."""

    dimension: int
    layers: int
    hidden: int
    batch: int


Run = Callable[[], int]


def packed(size: Size, sentences: list[np.ndarray], steps: int, vocabulary: int) -> Run:
    """The same model as it is usually written: a packed bidirectional nn.LSTM."""
    import torch
    from torch import nn
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

    torch.manual_seed(0)
    words = nn.Embedding(vocabulary, size.dimension, padding_idx=0)
    words.weight.requires_grad_(False)
    wide = 2 * size.hidden
    lstm = nn.LSTM(
        size.dimension,
        size.hidden,
        size.layers,
        batch_first=True,
        bidirectional=True,
        dropout=0.2 if size.layers > 1 else 0.0,
    )
    dropout = nn.Dropout(0.2)
    head = nn.Sequential(nn.Linear(wide, wide), nn.ReLU(), nn.Linear(wide, 256))
    parameters = [*lstm.parameters(), *head.parameters()]
    optimizer = torch.optim.Adam(parameters)
    rows = [torch.from_numpy(sentence) for sentence in sentences]
    labels = torch.arange(len(rows)) % 2
    draw = _balanced(len(rows), size.batch)

    def step() -> int:
        chosen = torch.from_numpy(draw())
        batch = [rows[i] for i in chosen.tolist()]
        lengths = torch.tensor([len(row) for row in batch])
        vectors = dropout(words(pad_sequence(batch, batch_first=True)))
        states, _ = lstm(pack_padded_sequence(vectors, lengths, True, enforce_sorted=False))
        padded, _ = pad_packed_sequence(states, batch_first=True)
        padded = dropout(padded)
        mask = torch.arange(padded.shape[1])[None, :] < lengths[:, None]
        sentence = padded.masked_fill(~mask.unsqueeze(2), -torch.inf).amax(dim=1)
        z = nn.functional.normalize(head(sentence), dim=1)
        logits = z @ z.T / 0.1
        target = labels[chosen]
        same = target[:, None] == target[None, :]
        other = ~torch.eye(len(target), dtype=torch.bool)
        log_probability = logits - torch.logsumexp(logits.masked_fill(~other, -1e9), 1, True)
        loss = -(log_probability * (same & other)).sum(1) / (same & other).sum(1)
        optimizer.zero_grad()
        loss.mean().backward()
        nn.utils.clip_grad_norm_(parameters, 5.0)
        optimizer.step()
        return int(lengths.sum())

    return lambda: sum(step() for _ in range(steps))


def sentence_transformers(
    size: Size, sentences: list[np.ndarray], steps: int, vocabulary: int
) -> Run:
    """sentence-transformers: WordEmbeddings + LSTM + max pooling, its batch-hard triplet loss.

    Its modules and its loss in a plain loop, without the trainer around them, which would only
    add to the time. Texts go through its own white-space tokenizer, as in its training.
    """
    import torch
    from sentence_transformers import SentenceTransformer
    from torch import nn

    try:
        from sentence_transformers.sentence_transformer import losses
        from sentence_transformers.sentence_transformer import modules as models
        from sentence_transformers.sentence_transformer.modules.tokenizer import (
            WhitespaceTokenizer,
        )
    except ImportError:  # before version 6
        from sentence_transformers import losses, models
        from sentence_transformers.models.tokenizer import WhitespaceTokenizer

    torch.manual_seed(0)
    spelt = spellings(vocabulary)
    tokenizer = WhitespaceTokenizer(spelt, stop_words=[], do_lower_case=False)
    vectors = torch.randn(vocabulary, size.dimension).numpy() * 0.1
    words = models.WordEmbeddings(tokenizer, vectors, update_embeddings=False)
    lstm = models.LSTM(
        size.dimension,
        size.hidden,
        num_layers=size.layers,
        dropout=0.2 if size.layers > 1 else 0.0,
        bidirectional=True,
    )
    pooling = models.Pooling(2 * size.hidden, pooling_mode="max")
    model = SentenceTransformer(modules=[words, lstm, pooling], device="cpu")
    model.train()
    loss_of = losses.BatchHardTripletLoss(model)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters)
    texts = [" ".join(spelt[i] for i in row) for row in sentences]
    draw = _balanced(len(texts), size.batch)
    read = getattr(model, "preprocess", model.tokenize)

    def step() -> int:
        chosen = draw()
        features = read([texts[i] for i in chosen])
        loss = loss_of([features], torch.from_numpy(chosen % 2))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        return sum(len(sentences[i]) for i in chosen)

    return lambda: sum(step() for _ in range(steps))


def flair(size: Size, sentences: list[np.ndarray], steps: int, vocabulary: int) -> Run:
    """flair: DocumentRNNEmbeddings with an LSTM, and its TextClassifier with cross-entropy."""
    import flair as library
    import torch
    from flair.data import Dictionary, Sentence
    from flair.embeddings import DocumentRNNEmbeddings, WordEmbeddings
    from flair.models import TextClassifier
    from torch import nn

    torch.manual_seed(0)
    library.device = torch.device("cpu")
    spelt = spellings(vocabulary)
    words = WordEmbeddings(
        embeddings=None,
        vocab={word: i for i, word in enumerate(spelt)},
        embedding_length=size.dimension,
        name="words",
    )
    document = DocumentRNNEmbeddings(
        [words],
        hidden_size=size.hidden,
        rnn_layers=size.layers,
        reproject_words=False,
        bidirectional=True,
        dropout=0.2,
        word_dropout=0.0,
        locked_dropout=0.0,
        rnn_type="LSTM",
    )
    classes = Dictionary(add_unk=False)
    for name in ("0", "1"):
        classes.add_item(name)
    model = TextClassifier(document, label_type="class", label_dictionary=classes)
    model.train()
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.Adam(parameters)
    documents = []
    for i, row in enumerate(sentences):
        documents.append(Sentence([spelt[word] for word in row]))
        documents[-1].add_label("class", str(i % 2))
    draw = _balanced(len(documents), size.batch)

    def step() -> int:
        chosen = draw()
        batch = [documents[i] for i in chosen]
        loss, count = model.forward_loss(batch)
        optimizer.zero_grad()
        (loss / count).backward()
        nn.utils.clip_grad_norm_(parameters, 5.0)
        optimizer.step()
        for sentence in batch:
            sentence.clear_embeddings()
        return sum(len(sentences[i]) for i in chosen)

    return lambda: sum(step() for _ in range(steps))


def fasttext(size: Size, sentences: list[np.ndarray], steps: int, vocabulary: int) -> Run:
    """fastText's supervised mode, one thread, for its throughput: it has no BiLSTM to train.

    A run reads the file, counts its words and passes over it five times; all tokens count.
    """
    from fasttext import train_supervised

    spelt, passes = spellings(vocabulary), 5
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "train.txt"
    path.write_text(
        "".join(
            f"__label__{i % 2} {' '.join(spelt[word] for word in row)}\n"
            for i, row in enumerate(sentences)
        ),
        encoding="utf-8",
    )
    tokens = sum(map(len, sentences))

    def run(kept: object = folder) -> int:
        train_supervised(str(path), dim=size.dimension, epoch=passes, thread=1, verbose=0)
        return passes * tokens

    return run


def spellings(vocabulary: int) -> list[str]:
    """A word for each id; the first two are never written."""
    return ["<pad>", "<unk>", *(f"w{i}" for i in range(2, vocabulary))]


def _balanced(rows: int, batch: int) -> Callable[[], np.ndarray]:
    """Draws row numbers `[batch]`, half of them even, half odd."""
    generator = np.random.default_rng(0)
    members: Sequence[np.ndarray] = [np.arange(k, rows, 2) for k in (0, 1)]

    def draw() -> np.ndarray:
        return np.concatenate([generator.permutation(own)[: batch // 2] for own in members])

    return draw


RIVALS: dict[str, Callable[[Size, list[np.ndarray], int, int], Run]] = {
    "packed": packed,
    "sentence-transformers": sentence_transformers,
    "flair": flair,
    "fastText": fasttext,
}
