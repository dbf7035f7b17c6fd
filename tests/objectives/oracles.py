"""Losses as plain loops in float64, written from the equations."""

import math

import numpy as np


def superloss(vectors, labels, ids, temperature, reduction="macro", include_self=False, kept=None):
    """Equations 3 (macro) and 8 (micro) of SuperConText, with Algorithm 1's terms."""
    z = [v / math.sqrt(float((v * v).sum())) for v in np.asarray(vectors, dtype=np.float64)]
    by_class = {}
    for i in range(len(z)):
        positives, negatives = [], []
        for j in range(len(z)):
            term = math.exp(float(z[i] @ z[j]) / temperature)
            if labels[i] == labels[j]:
                if include_self or ids[i] != ids[j]:
                    positives.append(term)
            elif kept is None or kept[i][j]:
                negatives.append(term)
        if not positives or not negatives:
            continue
        positive = sum(positives) / len(positives)
        negative = sum(negatives) / len(negatives)
        by_class.setdefault(labels[i], []).append(-math.log(positive / (positive + negative)))
    if not by_class:
        return 0.0
    if reduction == "micro":
        rows = [loss for losses in by_class.values() for loss in losses]
        return sum(rows) / len(rows)
    means = [sum(losses) / len(losses) for losses in by_class.values()]
    return sum(means) / len(means)
