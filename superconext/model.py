"""A trained model: text in, sentence vectors, probabilities and labels out.

Nothing here needs scikit-learn or gensim, so a saved run answers quickly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from superconext.config import Config
from superconext.data.token_store import Newcomers, TokenStore, build_store
from superconext.encoders.base import Encoder, sentence_vectors
from superconext.objectives.base import Objective
from superconext.probe import Probe, softmax
from superconext.text.ngrams import NgramVocabulary
from superconext.text.tokenize import Tokenizer
from superconext.text.vocabulary import UNK_ID, Vocabulary
from superconext.vectors.table import WordVectors


@dataclass
class Model:
    """Everything prediction needs.

    classes: labels in sorted order.
    vocabulary: training words, whose vectors the encoders own (and may have tuned).
    reserve: vectors of words the training text lacks.
    ngrams: character n-grams the encoders have vectors for, or None.
    encoders: one for each member.
    objectives: the trained objectives, for their native prediction; may be empty.
    probe: logistic regression on the members' concatenated vectors.
    """

    config: Config
    classes: list[str]
    tokenizer: Tokenizer
    vocabulary: Vocabulary
    reserve: WordVectors
    ngrams: NgramVocabulary | None
    encoders: list[Encoder]
    objectives: list[Objective]
    probe: Probe

    def tokens(self, texts: Sequence[str]) -> list[list[str]]:
        """Normalised tokens of each text."""
        return [self.tokenizer(text) for text in texts]

    def store(self, texts: Sequence[str]) -> TokenStore:
        """Token ids of texts, with vectors for words the vocabulary lacks."""
        return store_with_newcomers(
            self.tokens(texts),
            self.vocabulary,
            self.reserve,
            self.ngrams,
            self.config.max_length,
        )

    def features(self, texts: Sequence[str]) -> np.ndarray:
        """Sentence vectors float32 `[N, d]`, members side by side."""
        return member_features(self.encoders, self.store(texts))

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """Class probabilities float64 `[N, C]` of the probe, columns as `classes`."""
        return self.probe.probabilities(self.features(texts))

    def predict(self, texts: Sequence[str]) -> list[str]:
        """The most probable label of each text."""
        best = self.probe.decision(self.features(texts)).argmax(axis=1)
        return [self.classes[k] for k in best]

    def native_probabilities(self, features: np.ndarray) -> np.ndarray | None:
        """Class probabilities `[N, C]` of the objective's own rule, or None if it has none.

        Members are averaged.
        """
        if not self.objectives:
            return None
        total = np.zeros((len(features), len(self.classes)))
        start = 0
        for encoder, objective in zip(self.encoders, self.objectives, strict=True):
            part = torch.from_numpy(features[:, start : start + encoder.sentence_size])
            start += encoder.sentence_size
            device = next(encoder.parameters()).device
            with torch.no_grad():
                scores = objective.class_scores(part.to(device))
            if scores is None:
                return None
            total += softmax(scores.cpu().double().numpy())
        return total / len(self.encoders)


def member_features(encoders: Sequence[Encoder], store: TokenStore) -> np.ndarray:
    """Sentence vectors of all members side by side, float32 `[N, d]`."""
    return np.hstack([sentence_vectors(encoder, store) for encoder in encoders])


def store_with_newcomers(
    token_lists: Sequence[Sequence[str]],
    vocabulary: Vocabulary,
    reserve: WordVectors,
    ngrams: NgramVocabulary | None,
    max_length: int,
) -> TokenStore:
    """Token ids under `vocabulary`; words it lacks become newcomers with ids after it.

    A word of which neither the reserve nor an n-gram is known becomes the unknown word.
    """
    new = sorted({t for tokens in token_lists for t in tokens[:max_length] if t not in vocabulary})
    vectors, known = reserve.lookup(new)
    pieces = ngrams.encode(new) if ngrams is not None else None
    newcomers = Newcomers(np.ascontiguousarray(vectors), known, pieces)
    useful = known if pieces is None else known | (np.diff(pieces.offsets) > 0)
    ids_of = {new[i]: len(vocabulary) + int(i) for i in np.flatnonzero(useful)}
    sentences = []
    for tokens in token_lists:
        ids = vocabulary.encode(tokens[:max_length])
        for position in np.flatnonzero(ids == UNK_ID):
            ids[position] = ids_of.get(tokens[int(position)], UNK_ID)
        sentences.append(ids)
    return build_store(sentences, max_length, newcomers)
