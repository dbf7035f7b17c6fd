"""Batches with token states, and what tests do to objectives with label embeddings."""

import dataclasses

import torch

from tests.objectives.batches import make_batch, random_vectors

LENGTHS = [3, 1, 5, 4, 2, 6]


def token_batch(labels, lengths, d=8, width=None, seed=0, filler=7.5):
    """A batch with token states `[N, T, d]`; at padding stands `filler`."""
    states = torch.full((len(labels), width or max(lengths), d), filler, dtype=torch.float64)
    for i, length in enumerate(lengths):
        states[i, :length] = random_vectors(length, d, seed=100 * seed + i)
    mask = torch.arange(states.shape[1])[None, :] < torch.tensor(lengths)[:, None]
    batch = make_batch(random_vectors(len(labels), d, seed), labels)
    return dataclasses.replace(batch, token_states=states, mask=mask)


def arrays(module):
    return {name: value.detach().numpy() for name, value in module.state_dict().items()}


def rename_classes(objective, rename):
    """Class k becomes rename[k] in label embeddings and attention."""
    with torch.no_grad():
        objective.labels[rename] = objective.labels.clone()
        attention = getattr(objective, "attention", None)
        if attention is not None:
            attention.bias[rename] = attention.bias.clone()
            if not attention.shared:
                weight = attention.weight.clone()
                for i in range(len(rename)):
                    for j in range(len(rename)):
                        attention.weight[rename[i], rename[j]] = weight[i, j]
