"""Gradient caching: batches too large to keep all states of the encoder for the backward pass.

What the encoder's backward pass needs of a sentence takes far more memory than its vector. So the
batch is encoded in parts whose graphs are forgotten at once, the loss is formed on all vectors
together, and once its gradient with respect to them is known each part is encoded again, from the
random state it had before, and passes its share of the gradient on. Every dropped element is
dropped again, and the gradient is that of one pass; the price is a second forward pass.

Source: Gao et al. (2021), "Scaling deep contrastive learning batch size under memory limited
setup" (GradCache). Forgetting and repeating is `torch.utils.checkpoint`'s work.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from superconext.data.token_store import TokenStore
from superconext.encoders.base import (
    MOST_TOKENS,
    Encoder,
    EncoderOutput,
    encode_at_once,
    encode_rows,
    token_groups,
)

#: Bytes that an encoder may keep of a batch before its gradients are cached.
MOST_KEPT = 1 << 30


def encode_for_training(
    encoder: Encoder,
    store: TokenStore,
    rows: np.ndarray,
    *,
    whole: bool = False,
    mini_batch_size: int | None = None,
) -> EncoderOutput:
    """Rows of a store encoded with gradient, in the order given, as `encode_rows` does it.

    Args:
        whole: with token states.
        mini_batch_size: sentences encoded at once, fewer than the batch has for cached
            gradients, all of it for one pass; None: one pass if the estimate is within
            `MOST_KEPT`, else parts of as many tokens as an encoder reads at once.

    The gradient is formed by `Tensor.backward`; `torch.autograd.grad` cannot reach through
    cached parts.
    """
    parts = _parts(store.lengths_of(rows), encoder.kept_bytes, mini_batch_size)
    cached = torch.is_grad_enabled() and any(p.requires_grad for p in encoder.parameters())
    if len(parts) == 1 or not cached:
        return encode_rows(encoder, store, rows, whole=whole)
    outputs = [_cached(encoder, store, rows[part], whole) for part in parts]
    back = torch.from_numpy(np.argsort(np.concatenate(parts))).to(outputs[0].sentence.device)
    return _joined(outputs, back, whole)


def _parts(lengths: np.ndarray, kept_bytes: int, mini_batch_size: int | None) -> list[np.ndarray]:
    """Positions `[n]` in the parts they are encoded in, longest sentences first."""
    if mini_batch_size is not None:
        order = np.argsort(-lengths, kind="stable")
        return np.split(order, np.arange(mini_batch_size, len(order), mini_batch_size))
    tokens = MOST_KEPT // kept_bytes
    if int(lengths.sum()) <= tokens:
        return [np.arange(len(lengths))]
    return token_groups(lengths, tokens) if 0 < tokens < MOST_TOKENS else token_groups(lengths)


def _cached(encoder: Encoder, store: TokenStore, rows: np.ndarray, whole: bool) -> EncoderOutput:
    from torch.utils.checkpoint import checkpoint

    def run(_: Tensor) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
        output = encode_at_once(encoder, store, rows, whole=whole)
        states = (output.token_states, output.mask) if whole else (None, None)
        return output.sentence, output.class_states, *states

    # It wants a gradient so that autograd forms those of the weights, which it does not see.
    anchor = torch.zeros((), device=next(encoder.parameters()).device, requires_grad=True)
    # The other form of checkpoint would keep what the encoder's own functions hold.
    sentence, classes, states, mask = checkpoint(run, anchor, use_reentrant=True)
    if states is None:
        return EncoderOutput.of_sentences(sentence, classes)
    return EncoderOutput(states, mask, sentence, classes)


def _joined(outputs: list[EncoderOutput], back: Tensor, whole: bool) -> EncoderOutput:
    classes = [output.class_states for output in outputs if output.class_states is not None]
    joined = EncoderOutput.of_sentences(
        torch.cat([output.sentence for output in outputs])[back],
        torch.cat(classes)[back] if classes else None,
    )
    if whole:
        width = max(output.mask.shape[1] for output in outputs)
        states, masks = [], []
        for output in outputs:
            missing = width - output.mask.shape[1]
            states.append(functional.pad(output.token_states, (0, 0, 0, missing)))
            masks.append(functional.pad(output.mask, (0, missing)))
        joined.token_states, joined.mask = torch.cat(states)[back], torch.cat(masks)[back]
    return joined
