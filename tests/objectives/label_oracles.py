"""LaCon, LEAM and LSAN as plain loops in float64, written from the equations."""

import math

import numpy as np

from tests.objectives.oracles import mean


def cosine(u, v):
    return float(u @ v) / math.sqrt(float(u @ u) * float(v @ v))


def log_softmax_at(scores, y):
    """-log softmax of a list of scores at entry y."""
    top = max(scores)
    return math.log(sum(math.exp(score - top) for score in scores)) + top - scores[y]


def mlp(rows, weights, prefix, layers):
    """Linear layers with ReLU between, from entries prefix.0.weight, prefix.2.weight, ..."""
    result = []
    for row in rows:
        for layer in range(layers):
            if layer:
                row = np.array([max(value, 0.0) for value in row])
            matrix, bias = (weights[f"{prefix}.{2 * layer}.{n}"] for n in ("weight", "bias"))
            row = np.array([float(w @ row) + b for w, b in zip(matrix, bias, strict=True)])
        result.append(row)
    return np.array(result)


def lacon_terms(instances, embeddings, labels, temperature, heads, lcl_form, icl_form):
    """ICL' (equation 4), LCL (equation 5 and its stable form) and LER (equation 6)."""
    classes, size = embeddings.shape
    rows = range(len(labels))
    icl = 0.0
    for k in range(heads):
        part = list(range(k, size, heads))
        losses = []
        for i in rows:
            scores = [
                cosine(instances[i][part], embeddings[p][part]) / temperature
                for p in range(classes)
            ]
            losses.append(log_softmax_at(scores, labels[i]))
        icl += mean(losses)
    if icl_form == "mean":
        icl /= heads

    by_label = []
    for p in sorted(set(labels)):
        own = [a for a in rows if labels[a] == p]
        others = [b for b in rows if labels[b] != p]
        if not others or lcl_form == "none":
            continue
        term = [math.exp(cosine(embeddings[p], instances[i]) / temperature) for i in rows]
        against = sum(term[b] for b in others)
        if lcl_form == "faithful":
            by_label.append(sum(-math.log(term[a] / against) for a in own))
        else:
            by_label.append(mean([-math.log(term[a] / (term[a] + against)) for a in own]))
    lcl = mean(by_label)

    ler = mean(
        [
            math.exp(1 + cosine(embeddings[i], embeddings[j])) - 1
            for i in range(classes)
            for j in range(classes)
            if i != j
        ]
    )
    return icl, lcl, ler


def attention_weights(tokens, embeddings, weight, bias):
    """beta of one sentence's tokens, with one window for all classes or a full one."""
    classes, length, width = len(embeddings), len(tokens), weight.shape[2]
    reach = width // 2
    match = [[cosine(token, label) for label in embeddings] for token in tokens]
    scores = []
    for t in range(length):
        best = 0.0
        for c in range(classes):
            total = bias[c]
            for k in range(width):
                position = t + k - reach
                if not 0 <= position < length:
                    continue
                if weight.shape[1] == 1:
                    total += weight[0][0][k] * match[position][c]
                else:
                    total += sum(weight[c][o][k] * match[position][o] for o in range(classes))
            best = max(best, total)
        scores.append(math.exp(best))
    return [score / sum(scores) for score in scores]


def attended(states, lengths, embeddings, weight, bias):
    """z of each sentence, `[N, d]`."""
    result = []
    for row, length in zip(states, lengths, strict=True):
        tokens = row[:length]
        beta = attention_weights(tokens, embeddings, weight, bias)
        result.append(sum(b * token for b, token in zip(beta, tokens, strict=True)))
    return np.array(result)


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def lsan_scores(states, lengths, weights, readout):
    """Scores `[N, C]` of LSAN, from a dict of its weights."""
    labels = weights["labels"]
    classes, half = labels.shape
    result = []
    for row, length in zip(states, lengths, strict=True):
        tokens = row[:length]
        vectors = []
        for c in range(classes):
            energy = []
            for token in tokens:
                hidden = [math.tanh(float(w @ token)) for w in weights["hidden.weight"]]
                energy.append(math.exp(float(weights["self_attention.weight"][c] @ hidden)))
            by_self = sum(e / sum(energy) * token for e, token in zip(energy, tokens, strict=True))
            ahead = sum(float(labels[c] @ token[:half]) * token[:half] for token in tokens)
            back = sum(float(labels[c] @ token[half:]) * token[half:] for token in tokens)
            by_label = np.concatenate([ahead, back])
            p = sigmoid(
                float(weights["of_label.weight"][0] @ by_label) + weights["of_label.bias"][0]
            )
            q = sigmoid(float(weights["of_self.weight"][0] @ by_self) + weights["of_self.bias"][0])
            vectors.append(p / (p + q) * by_label + q / (p + q) * by_self)
        if readout == "class":
            result.append([float(weights["readout.weight"][0] @ vector) for vector in vectors])
        else:
            average = sum(vectors) / classes
            result.append(
                [
                    float(w @ average) + b
                    for w, b in zip(weights["readout.weight"], weights["readout.bias"], strict=True)
                ]
            )
    return np.array(result)
