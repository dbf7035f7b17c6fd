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


def unit(vectors):
    """Rows of length one, as a list."""
    return [v / math.sqrt(float((v * v).sum())) for v in np.asarray(vectors, dtype=np.float64)]


def mean(values):
    return sum(values) / len(values) if values else 0.0


def anchors(labels, ids):
    """(i, positives of i, negatives of i) of every row."""
    rows = range(len(labels))
    for i in rows:
        positives = [j for j in rows if labels[j] == labels[i] and ids[j] != ids[i]]
        yield i, positives, [j for j in rows if labels[j] != labels[i]]


def triplet(vectors, labels, ids, margin, form):
    """The four forms of Triplet's docstring, over Euclidean distances of unit vectors."""
    z = unit(vectors)

    def distance(i, j):
        return math.sqrt(float(((z[i] - z[j]) ** 2).sum()))

    losses = []
    for a, positives, negatives in anchors(labels, ids):
        if not positives or not negatives:
            continue
        to_negatives = [distance(a, n) for n in negatives]
        to_positives = [distance(a, p) for p in positives]
        gap = max(to_positives) - min(to_negatives)
        if form == "hard":
            losses.append(max(gap + margin, 0.0))
        elif form == "soft":
            losses.append(math.log1p(math.exp(gap)))
        elif form == "semi_hard":
            for d in to_positives:
                farther = [other for other in to_negatives if other > d]
                chosen = min(farther) if farther else max(to_negatives)
                losses.append(max(d - chosen + margin, 0.0))
        else:
            values = [d - other + margin for d in to_positives for other in to_negatives]
            losses += [value for value in values if value > 0]
    return mean(losses)


def n_pair(vectors, tuple_sets, temperature):
    """Mean over tuple sets (lists of (anchor, positive)) of the N-pair-mc loss."""
    z = unit(vectors)
    means = []
    for tuples in tuple_sets:
        losses = []
        for k, (a, p) in enumerate(tuples):
            others = [
                math.exp(float(z[a] @ z[q] - z[a] @ z[p]) / temperature)
                for j, (_, q) in enumerate(tuples)
                if j != k
            ]
            losses.append(math.log(1 + sum(others)))
        means.append(mean(losses))
    return mean(means)


def supcon(vectors, labels, ids, temperature, form, reduction="mean"):
    """Equations 2 (out) and 3 (in) of Khosla et al., over anchors that have a positive."""
    z = unit(vectors)
    losses = []
    for i, positives, negatives in anchors(labels, ids):
        if not positives:
            continue
        term = {j: math.exp(float(z[i] @ z[j]) / temperature) for j in positives + negatives}
        whole = sum(term.values())
        if form == "in":
            losses.append(-math.log(mean([term[p] for p in positives]) / whole))
        else:
            losses.append(mean([-math.log(term[p] / whole) for p in positives]))
    return sum(losses) if reduction == "sum" else mean(losses)


def cross_entropy(scores, labels):
    """Mean of -log softmax at the label, from scores `[N, C]`."""
    return mean(
        [
            -math.log(math.exp(row[y]) / sum(math.exp(score) for score in row))
            for row, y in zip(np.asarray(scores).tolist(), labels, strict=True)
        ]
    )


def two_views(first, second, ids, temperature, form):
    """NT-Xent over 2N views, or SimCSE's one direction; repeats of a sentence left out."""
    n = len(ids)
    views = unit(first) + unit(second)
    ids = [*ids, *ids]
    losses = []
    for i in range(n if form == "simcse" else 2 * n):
        partner = (i + n) % (2 * n)
        candidates = range(n, 2 * n) if form == "simcse" else range(2 * n)
        term = {
            j: math.exp(float(views[i] @ views[j]) / temperature)
            for j in candidates
            if j == partner or ids[j] != ids[i]
        }
        losses.append(-math.log(term[partner] / sum(term.values())))
    return mean(losses)
