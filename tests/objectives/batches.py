"""Small batches and objectives by name, for the tests of the losses."""

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from superconext.config.parameters import resolve
from superconext.objectives.base import Batch, Shape
from superconext.objectives.catalogue import objective_class

COMPOSITIONS = {
    "balanced": [0, 0, 0, 1, 1, 1],
    "unbalanced": [0, 0, 0, 0, 0, 1, 1, 2, 2, 2],
    "two rows": [0, 1],
    "one class": [0, 0, 0],
    "a single row of a class": [0, 0, 0, 1],
    "every row its own class": [0, 1, 2, 3],
    "one row": [0],
    "fifty classes": [k // 2 for k in range(100)],
}


def make_batch(vectors, labels, ids=None, second=None):
    """A batch whose sentence and projected vectors are `vectors`, its second view `second`."""
    labels = torch.as_tensor(labels)
    ids = torch.arange(len(labels)) if ids is None else torch.as_tensor(ids)
    second = vectors if second is None else second
    return Batch(vectors, vectors, labels, ids, 0, 1, second_view=lambda: (second, second))


def random_vectors(n, d=5, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((n, d)))


def build(name, options=None, classes=3, d=5, **parameters):
    """The objective as a run would build it, its own weights in float64."""
    torch.manual_seed(0)
    config = resolve({"objective": name, "options": options, **parameters})
    return objective_class(name).from_config(config, Shape(classes, d, d)).double()


def classifier(objective):
    """Weights `[C, d]` and bias `[C]` of an objective's classifier, as arrays."""
    linear = objective.classifier
    return linear.weight.detach().numpy(), linear.bias.detach().numpy()


class Largest(TorchDispatchMode):
    """Remembers the size of the largest tensor made."""

    size = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        tensors = [leaf for leaf in tree_leaves(result) if isinstance(leaf, torch.Tensor)]
        self.size = max([self.size, *(tensor.numel() for tensor in tensors)])
        return result
