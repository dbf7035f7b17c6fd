"""A two-way language model: each direction of the LSTM says the word it will read next.

The forward LSTM has read the words up to a place, and so has, from the other end, the backward
one; neither has seen the word it is asked for. With states s, a linear map A for each direction and
the output vectors v and biases b of the words, the score of word w is v_w . (A s) + b_w, and the
loss is the cross-entropy of the true next word, summed over both directions and averaged over
all predictions. It is taken over the true word and a sample of K others instead of all V, each
score less the log of the number of times its word is expected in the sample, so that the
frequent words, which are drawn more often, are not punished for it.

Sources: Peters et al. (2018), "Deep contextualized word representations", section 3.1, for one
layer and without shared weights; Jean et al. (2015), "On using very large target vocabulary for
neural machine translation", section 3, for the sampled softmax.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from superconext.encoders.bilstm import BiLSTMEncoder
from superconext.encoders.embedding import WordEmbedding
from superconext.encoders.packed.packing import Packing

#: Power of the word counts by which the other words are drawn: Mikolov et al. (2013).
FLATTENED = 0.75


class TwoWayLanguageModel(nn.Module):
    """The output side of a language model on a one-layer encoder.

    Args:
        encoder: one layer, without class tokens.
        words: vectors of the words that may be predicted, `[W, e]`, to start from. They are the
            ids `first` to `first + W - 1`; other ids are read and never predicted.
        counts: how often each is seen in the text, `[W]`.
        first: the id of the first of them.
        sample: the K other words that each batch is compared with.
    """

    def __init__(
        self,
        encoder: BiLSTMEncoder,
        words: Tensor,
        counts: np.ndarray,
        first: int = 2,
        sample: int = 2048,
    ) -> None:
        super().__init__()
        self.encoder, self.first = encoder, first
        half = encoder.sentence_size // 2
        self.maps = nn.ModuleList(nn.Linear(half, words.shape[1], bias=False) for _ in range(2))
        self.words = WordEmbedding(words)
        shares = counts / counts.sum()
        self.bias = WordEmbedding(torch.from_numpy(np.log(shares)).float()[:, None])
        weights = shares**FLATTENED
        self._cumulated = np.cumsum(weights / weights.sum())
        self._shares = weights / weights.sum()
        self.sample = min(sample, len(words))

    def forward(self, tokens: np.ndarray, lengths: np.ndarray, rng: np.random.Generator) -> Tensor:
        """Mean negative log-likelihood of the next words, a scalar with gradient.

        Args:
            tokens: ids of N sentences one after the other, `[sum of lengths]`.
            lengths: of the sentences, `[N]`.
            rng: draws the other words.
        """
        states, targets = self._predictions(tokens, lengths)
        drawn, expected = self._draw(rng)
        distinct, place = np.unique(np.concatenate([targets, drawn]), return_inverse=True)
        rows = self.words(torch.from_numpy(distinct))
        bias = self.bias(torch.from_numpy(distinct)).squeeze(1)
        true, others = (torch.from_numpy(part) for part in np.split(place, [len(targets)]))
        right = (states * rows.index_select(0, true)).sum(1) + bias.index_select(0, true)
        # The true word is compared as if it had been drawn too.
        right = right - torch.from_numpy(np.log(self._expected(targets))).to(right)
        wrong = states @ rows.index_select(0, others).t() + bias.index_select(0, others)
        wrong = wrong - torch.from_numpy(np.log(expected)).to(wrong)
        wrong = wrong.masked_fill(true[:, None] == others[None, :], -math.inf)
        whole = torch.logsumexp(torch.cat([right[:, None], wrong], dim=1), dim=1)
        return (whole - right).mean()

    def _predictions(self, tokens: np.ndarray, lengths: np.ndarray) -> tuple[Tensor, np.ndarray]:
        """Mapped states `[M, e]` of both directions and the words they are to say `[M]`."""
        packing = Packing(lengths)
        starts = (np.cumsum(lengths) - lengths)[packing.order]
        ids = tokens[starts[packing.row] + packing.time].astype(np.int64)
        states = self.encoder.read_both_ways(torch.from_numpy(ids), packing)
        # Each half stands in its own reading order, so the next token is the next in time.
        before = np.flatnonzero(packing.time < packing.lengths[packing.row] - 1)
        after = packing.offsets[packing.time[before] + 1] + packing.row[before]
        kept, targets = [], []
        for direction, read in enumerate((ids, ids[packing.reversed.numpy()])):
            target = read[after] - self.first
            known = (target >= 0) & (target < len(self._shares))
            half = states[direction].index_select(0, torch.from_numpy(before[known]))
            kept.append(self.maps[direction](half))
            targets.append(target[known])
        return torch.cat(kept), np.concatenate(targets)

    def _draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Distinct words `[K' <= K]` drawn by their flattened shares, and how often expected."""
        spots = np.searchsorted(self._cumulated, rng.random(self.sample), side="right")
        drawn = np.unique(np.minimum(spots, len(self._shares) - 1))
        return drawn, self._expected(drawn)

    def _expected(self, words: np.ndarray) -> np.ndarray:
        """The chance that a word is among the distinct words of a sample."""
        return -np.expm1(self.sample * np.log1p(-self._shares[words]))
