"""CSS-LM's retrieval and losses as plain loops in float64, written from the equations."""

import math

import numpy as np


def cosine(u, v):
    return float(u @ v) / math.sqrt(float(u @ u) * float(v @ v))


def mean(values):
    return sum(values) / len(values) if values else 0.0


def ranked(score, count):
    """The `count` pool rows of highest score."""
    return set(sorted(range(len(score)), key=lambda j: -score[j])[:count])


def retrieval(batch, pool, labels, *, levels, k, negatives, drawn):
    """P, P_D, P_C, N, N_D, N_C (pool part) as lists of sets, every row of the batch a query.

    batch, pool: (d, c) vectors of each row. drawn: the random negatives.
    """
    rows = range(len(labels))
    f = {"D": [[cosine(q[0], o[0]) for o in pool] for q in batch]}
    f["C"] = [[cosine(q[1], o[1]) for o in pool] for q in batch]
    f["D+C"] = [[f["D"][i][j] + f["C"][i][j] for j in range(len(pool))] for i in rows]
    p = [ranked(f[levels][i], k) for i in rows]
    pd = [ranked(f["D"][i], k) if "D" in levels else set() for i in rows]
    pc = [ranked(f["C"][i], k) if "C" in levels else set() for i in rows]
    n = [set(drawn) for _ in rows]
    nd = [set(drawn) for _ in rows]
    if negatives == "farthest":
        n = [ranked([-s for s in f[levels][i]], k) for i in rows]
        nd = [ranked([-s for s in f["D"][i]], k) if "D" in levels else set() for i in rows]
    nc = []
    for i in rows:
        own, other = set(), set()
        for j in rows:
            if labels[j] == labels[i]:
                n[i] = n[i] - p[j]
                own = own | pc[j]
            else:
                other = other | pc[j]
            nd[i] = nd[i] - pd[j]
        nc.append(other - own)
    return p, pd, pc, n, nd, nc


def pulls(f_rows, f_pool, near, far, against, seen):
    """Rows' terms [log Z_i - f(i, j)] towards labelled and towards pool positives, as means."""
    labelled, found = [], []
    for i in range(len(near)):
        z = sum(math.exp(f_rows(i, k)) for k in seen[i])
        z += sum(math.exp(f_pool(i, k)) for k in far[i] | against[i])
        if near[i]:
            labelled.append(mean([math.log(z) - f_rows(i, j) for j in near[i]]))
        if far[i]:
            found.append(mean([math.log(z) - f_pool(i, j) for j in far[i]]))
    return labelled, found


def losses(batch, pool, labels, ids, sets, temperature, form):
    """(L_CSS, L_D, L_C) of equations 2, 6 and 7: means, or the printed sums ("faithful")."""
    p, pd, pc, n, nd, nc = sets
    rows = range(len(labels))
    same = [[j for j in rows if labels[j] == labels[i] and ids[j] != ids[i]] for i in rows]
    seen = [[j for j in rows if form == "faithful" or ids[j] != ids[i]] for i in rows]

    def similarity(space):
        def of(row):
            return np.concatenate(row) if space == "x" else row[0] if space == "d" else row[1]

        def rows_f(i, j):
            return cosine(of(batch[i]), of(batch[j])) / temperature

        def pool_f(i, j):
            return cosine(of(batch[i]), of(pool[j])) / temperature

        def inner_f(j, k):
            return cosine(of(pool[j]), of(pool[k])) / temperature

        return rows_f, pool_f, inner_f

    def together(labelled, found):
        if form == "faithful":
            return sum(labelled) + sum(found)
        return mean(labelled) + mean(found)

    rows_f, pool_f, inner_f = similarity("x")
    css = together(*pulls(rows_f, pool_f, same, p, n, seen))
    by_class = {}
    for i in rows:
        if len(p[i]) < 2:
            continue
        terms = []
        for j in p[i]:
            z = sum(math.exp(inner_f(j, k)) for k in p[i] if k != j)
            z += sum(math.exp(inner_f(j, k)) for k in n[i])
            terms += [math.log(z) - inner_f(j, k) for k in p[i] if k != j]
        third = sum(terms) / (len(p[i]) * (len(p[i]) - 1))
        by_class.setdefault(labels[i], []).append(third)
        if form == "faithful":
            css += third / (len(same[i]) + 1)
    if form == "mean":
        css += mean([mean(values) for values in by_class.values()])

    rows_f, pool_f, _ = similarity("d")
    domain = together(*pulls(rows_f, pool_f, seen, pd, nd, seen))
    rows_f, pool_f, _ = similarity("c")
    classes = together(*pulls(rows_f, pool_f, same, pc, nc, seen))
    return css, domain, classes
