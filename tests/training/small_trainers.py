"""Small trainers of every objective, for tests of how a step is taken."""

import numpy as np
import torch

from superconext.config.parameters import resolve
from superconext.data.sampler import make_batches
from superconext.data.token_store import build_store
from superconext.encoders.bilstm import BiLSTMEncoder
from superconext.encoders.layers import projection_head
from superconext.encoders.words import WordEmbedding
from superconext.objectives.base import Shape
from superconext.objectives.catalogue import objective_class
from superconext.training.trainer import Trainer


def make_trainer(objective, dtype=torch.float64, mini_batch_size=None, **parameters):
    """Three classes, 60 sentences of 1 to 11 random words, dropout on."""
    settings = {"epochs": 1, "batch_size": 48, "hidden_size": 8}
    config = resolve({"objective": objective, **settings, **parameters})
    generator = np.random.default_rng(0)
    labels = np.arange(60) % 3
    sentences = [generator.integers(2, 30, generator.integers(1, 12)) for _ in labels]
    store = build_store(sentences, config.max_length)
    torch.manual_seed(0)
    kind = objective_class(objective)
    embedding = WordEmbedding(torch.randn(30, 8), tune=True)
    tokens = 3 if kind.needs_class_tokens else 0
    encoder = BiLSTMEncoder(embedding, 8, config.layers, 0.3, 0.2, config.pooling, tokens)
    projection = config.projection if kind.uses_projection else "identity"
    head = projection_head(projection, 16)
    shape = Shape(3, 16, 16)
    batches = make_batches(kind.batches, labels, 48, 2, 0)
    built = kind.from_config(config, shape)
    for module in (encoder, head, built):
        module.to(dtype)
    pool = None
    if kind.needs_pool:
        pool = build_store([generator.integers(2, 30, 5) for _ in range(40)], config.max_length)
    trainer = Trainer(encoder, head, built, batches, store, labels, config, (), pool)
    trainer.mini_batch_size = mini_batch_size
    return trainer


def without_chance(trainer):
    """The same trainer with dropout off and class tokens in their fixed order."""
    encoder = trainer.encoder
    encoder.dropout.share = encoder.word_dropout = 0.0
    encoder._slots = lambda texts, device: torch.arange(encoder.class_tokens).expand(texts, -1)
    return trainer
