"""The door every encoder has: token ids and lengths in, token states and a sentence out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from superconext.data.token_store import Newcomers, TokenStore


@dataclass
class EncoderOutput:
    """token_states `[N, T, d]`, mask `[N, T]` (True at real tokens), sentence `[N, d]`."""

    token_states: Tensor
    mask: Tensor
    sentence: Tensor


class Encoder(nn.Module):
    """Base of all encoders. `sentence_size` is the d of `EncoderOutput.sentence`."""

    sentence_size: int

    def forward(self, ids: Tensor, lengths: Tensor, table: Tensor | None = None) -> EncoderOutput:
        """Encode padded ids `[N, T]` with lengths `[N]`.

        table: word vectors `[V + U, e]` to use instead of the encoder's own `[V, e]`, as
            `vector_table` gave them.
        """
        raise NotImplementedError

    def vector_table(self, newcomers: Newcomers | None) -> Tensor | None:
        """Vectors for vocabulary words and newcomers, once for many batches; None if the
        encoder needs none."""
        return None


def length_groups(lengths: np.ndarray, groups: int) -> list[np.ndarray]:
    """Positions `[n]` cut into up to `groups` parts of alike length, shortest first.

    Encoding the parts one by one saves the arithmetic on padding. It changes no result,
    since an encoder treats every sentence alone.
    """
    order = np.argsort(lengths, kind="stable")
    return [part for part in np.array_split(order, min(groups, len(order))) if len(part)]


def encode_rows(
    encoder: Encoder,
    store: TokenStore,
    rows: np.ndarray,
    *,
    whole: bool = False,
    groups: int = 4,
    table: Tensor | None = None,
) -> EncoderOutput:
    """Encode rows of a store, in the order given.

    whole: pad all rows to one width and return their token states; otherwise rows are
        encoded in groups of alike length and `token_states` and `mask` are empty.
    table: see `Encoder.forward`.
    """
    device = next(encoder.parameters()).device

    def run(part: np.ndarray) -> EncoderOutput:
        ids, lengths = store.pad(part)
        output: EncoderOutput = encoder(
            torch.from_numpy(ids).to(device), torch.from_numpy(lengths).to(device), table
        )
        return output

    if whole:
        return run(rows)
    parts = length_groups(store.lengths[rows], groups)
    sentence = torch.cat([run(rows[part]).sentence for part in parts])
    back = torch.from_numpy(np.argsort(np.concatenate(parts))).to(device)
    empty = sentence.new_empty(0)
    return EncoderOutput(empty, empty, sentence[back])


@torch.no_grad()
def sentence_vectors(encoder: Encoder, store: TokenStore, block: int = 1024) -> np.ndarray:
    """Frozen sentence vectors float32 `[N, d]` of a whole store, dropout off."""
    training = encoder.training
    encoder.eval()
    table = encoder.vector_table(store.newcomers)
    order = np.argsort(store.lengths, kind="stable")
    result = np.empty((len(store), encoder.sentence_size), dtype=np.float32)
    for start in range(0, len(order), block):
        rows = order[start : start + block]
        result[rows] = encode_rows(encoder, store, rows, table=table).sentence.float().cpu().numpy()
    encoder.train(training)
    return result
