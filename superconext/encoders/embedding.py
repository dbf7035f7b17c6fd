"""Word ids to vectors: a row for each word plus what its character n-grams add.

A tuned word row teaches the encoder nothing about other spellings of that word; a tuned
n-gram row does. So a word's vector is its own row plus the sum of its n-grams' rows over
the square root of their number; an n-gram that training never saw counts as zeros. N-gram
rows start at zero: training begins at the given word vectors.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from superconext.data.token_store import Newcomers
from superconext.text.ngrams import WordNgrams
from superconext.text.vocabulary import UNK_ID


class WordEmbedding(nn.Module):
    """Vectors of vocabulary words and of newcomers.

    Args:
        words: initial vectors `[V, e]`.
        tune: whether the word rows are trained.
        ngram_count: rows of the n-gram table; 0 for none.
        ngrams: n-grams of the V words; None when the word rows already include them, as
            in a saved model.
    """

    def __init__(
        self,
        words: Tensor,
        tune: bool = True,
        ngram_count: int = 0,
        ngrams: WordNgrams | None = None,
    ) -> None:
        super().__init__()
        self.words = nn.Parameter(words.clone(), requires_grad=tune)
        self.ngrams = nn.Parameter(torch.zeros(ngram_count, words.shape[1]))
        self._index = ngrams if ngram_count else None

    @property
    def dimension(self) -> int:
        return int(self.words.shape[1])

    def forward(self, ids: Tensor) -> Tensor:
        """Vectors `[N, T, e]` of vocabulary words `[N, T]`, with gradient."""
        if self._index is None:
            return functional.embedding(ids, self.words)
        # Each distinct word is composed once, however often it stands in the batch.
        distinct, position = torch.unique(ids, return_inverse=True)
        rows = self.words[distinct] + self._compose(self._index, distinct.cpu().numpy())
        return functional.embedding(position, rows)

    @torch.no_grad()
    def table(self, newcomers: Newcomers | None = None) -> Tensor:
        """Vectors `[V + U, e]` of all vocabulary words and newcomers, without gradient.

        A newcomer no source knows starts from the unknown word's row.
        """
        rows = self.words.detach()
        if self._index is not None:
            rows = rows + self._compose(self._index, np.arange(len(rows)))
        if newcomers is None or not len(newcomers):
            return rows
        given = torch.from_numpy(newcomers.vectors).to(rows)
        known = torch.from_numpy(newcomers.known).to(rows.device)
        given = torch.where(known[:, None], given, self.words[UNK_ID].detach())
        if newcomers.ngrams is not None and len(self.ngrams):
            given = given + self._compose(newcomers.ngrams, np.arange(len(given)))
        return torch.cat([rows, given])

    @torch.no_grad()
    def fold(self) -> None:
        """Add the n-grams into the word rows for good; no training after this."""
        self.words.copy_(self.table())
        self._index = None

    def _compose(self, words: WordNgrams, chosen: np.ndarray) -> Tensor:
        """What the n-grams add to the chosen words, `[n, e]`."""
        starts = words.offsets[chosen]
        sizes = words.offsets[chosen + 1] - starts
        ends = np.cumsum(sizes)
        flat = words.ids[np.arange(int(sizes.sum())) + np.repeat(starts - (ends - sizes), sizes)]
        device = self.ngrams.device
        total = functional.embedding_bag(
            torch.from_numpy(flat).to(device),
            self.ngrams,
            torch.from_numpy(ends - sizes).to(device),
            mode="sum",
        )
        scale = 1.0 / np.sqrt(np.maximum(words.counts[chosen], 1))
        return total * torch.from_numpy(scale).to(total).unsqueeze(1)
