"""How do the files of a run become a model? Sizes are compared before anything is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from superconext.config.parameters import Config
from superconext.encoders.bilstm import BiLSTMEncoder
from superconext.encoders.embedding import WordEmbedding
from superconext.encoders.projection import projected_size
from superconext.fitting.ensemble_members import member_config
from superconext.fitting.model import Model
from superconext.fitting.stages import second_stage
from superconext.objectives.base import Objective, Shape
from superconext.objectives.catalogue import objective_class
from superconext.probe import probe_class
from superconext.runs import trust
from superconext.text.ngrams import NgramVocabulary
from superconext.text.tokenize import Tokenizer
from superconext.text.vocabulary import Vocabulary
from superconext.vectors.subwords import SubwordTable
from superconext.vectors.table import WordVectors


def assemble(
    config: Config,
    words: dict[str, Any],
    arrays: dict[str, np.ndarray],
    tensors: dict[str, torch.Tensor],
    probe: dict[str, np.ndarray],
) -> Model:
    """The model of `config.toml`, `vocabulary.json` and the three safetensors files.

    Raises an error of Python's (ValueError, LookupError, ...) where they do not fit together.
    """
    classes = trust.texts(words["classes"], "classes")
    if len(set(classes)) != len(classes) or len(classes) < 2:
        raise ValueError(f"{len(classes)} classes, expected two or more, each once")
    vocabulary = Vocabulary.from_json(words["vocabulary"])
    ngrams = None if words["ngrams"] is None else NgramVocabulary.from_json(words["ngrams"])
    reserve = _reserve(words["reserve"], arrays)
    encoders, objectives = [], []
    for member in range(trust.members_of(tensors)):
        prefix, own = f"encoder.{member}.", member_config(config, member)
        table = tensors[f"{prefix}embedding.words"]
        trust.check_table(table, len(vocabulary))
        if table.shape[1] != reserve.dimension:
            raise ValueError(
                f"words of {table.shape[1]} numbers and {reserve.dimension} in reserve"
            )
        tokens = len(tensors.get(f"{prefix}class_rows", ()))
        size = 0 if ngrams is None else len(ngrams)
        mine = [t for name, t in tensors.items() if name.split(".")[1] == str(member)]
        with torch.device("meta"):
            trust.check_affordable(
                _modules(own, torch.empty(table.shape), size, 0, len(classes)), mine
            )
        # The tables of words and n-grams are not made before they are read: they are large.
        words_to_come = torch.empty(table.shape, device="meta")
        encoder, objective = _modules(own, words_to_come, size, tokens, len(classes))
        # A tensor may be a view of the file, which somebody may write over.
        weights = {n: t.to(torch.float32, copy=True) for n, t in _under(prefix, tensors)}
        encoder.load_state_dict(weights, assign=True)
        objective.load_state_dict(dict(_under(f"objective.{member}.", tensors)))
        encoders.append(encoder.eval())
        objectives.append(objective.eval())
    width = sum(encoder.sentence_size for encoder in encoders)
    return Model(
        config,
        classes,
        Tokenizer.from_dict(words["tokenizer"]),
        vocabulary,
        reserve,
        ngrams,
        list(encoders),
        list(objectives),
        probe_class(config.probe_features).from_arrays(probe, len(classes), width),
    )


def _under(prefix: str, tensors: dict[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    """The tensors whose name begins so, by the rest of it."""
    return ((n[len(prefix) :], t) for n, t in tensors.items() if n.startswith(prefix))


def _modules(
    config: Config, table: torch.Tensor, ngrams: int, class_tokens: int, classes: int
) -> tuple[BiLSTMEncoder, Objective]:
    """A member's encoder and objective as they are made, before their weights are put in."""
    # The objective a model ends its training with is the one it predicts by.
    last = second_stage(config) or config
    kind = objective_class(last.objective)
    projection = config.projection if kind.uses_projection else "identity"
    encoder = BiLSTMEncoder(
        WordEmbedding(table, config.tune_vectors, ngrams),
        hidden_size=config.hidden_size,
        layers=config.layers,
        dropout=config.dropout,
        pooling=config.pooling,
        class_tokens=class_tokens,
    )
    width = projected_size(projection, encoder.sentence_size, config.projection_size)
    return encoder, kind.build(last, Shape(classes, encoder.sentence_size, width))


def _reserve(facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> WordVectors:
    subwords = None
    if "buckets" in arrays:
        buckets = arrays["buckets"]
        if "bucket_rows" in arrays:
            buckets = trust.spread_rows(
                buckets, arrays["bucket_rows"], int(arrays["bucket_count"][0])
            )
        lengths = facts["min_n"], facts["max_n"]
        if not all(type(length) is int for length in lengths):
            raise ValueError(f"n-gram lengths {lengths!r:.99}")
        subwords = SubwordTable(buckets, *lengths)
    words = trust.texts(facts["words"], "reserve")
    name, sha256 = trust.texts([facts["name"], facts["sha256"]], "name and sha256")
    return WordVectors(words, arrays["matrix"], subwords, name=name, sha256=sha256)
