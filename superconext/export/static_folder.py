"""A run distilled into a static student, written as a folder that predicts with NumPy alone.

The student (`export.static_model`) learns the probabilities that the run gives to texts (Hinton et
al., 2015, "Distilling the knowledge in a neural network", at temperature 1): those of its training
file, and unlabelled ones. Beside what `export.standalone` writes there are `static.json` (format,
classes, their type, columns, SHA-256 of the weights) and `static.safetensors` (the table float16,
the layers float32).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from superconext.core.arrays import write_arrays
from superconext.core.errors import DataError
from superconext.core.files import file_sha256, write_json
from superconext.core.progress import Advance, Progress
from superconext.core.random_streams import ALL_ROWS, random_stream
from superconext.data.dataset import Dataset
from superconext.data.duplicates import text_keys
from superconext.data.token_store import TokenStore
from superconext.export.exported_model import sealed
from superconext.export.standalone import write_standalone
from superconext.export.static_model import FACTS, FORMAT, WEIGHTS, StaticModel, hashed
from superconext.fitting.model import Model
from superconext.probe.metrics import probability_metrics
from superconext.training.trainer import epochs_of

#: Vectors in the table (its logarithm), numbers in each, and units of the hidden layer.
BITS, SIZE, HIDDEN = 17, 16, 32

#: Texts of a step, the fewest steps, their rate at first (it falls to 0), the vectors' spread.
_BATCH, _STEPS, _RATE, _SPREAD = 128, 300, 3e-3, 0.1


def write_static(
    model: Model,
    folder: Path,
    texts: Sequence[str],
    dev: Dataset,
    progress: Progress,
    run: str = "a run",
    trained: int | None = 0,
    label_type: str = "str",
) -> dict[str, Any]:
    """Distil a model and write the student into an existing, empty folder.

    Args:
        texts: what it learns from; those of `dev`, however they are written, are left out.
        dev: labelled rows that both are measured on.
        run: its name, for the README.
        trained: rows of `dev` that it was trained on, as far as known; None: maybe any of them.
        label_type: name of the dtype that labels were fitted in.

    Returns accuracy and macro F1 of `run` and `student` (not of rows most of which are, or may be,
    `trained`), `rows`, in how many both `agree`, how many texts were `learned` from, and `trained`.
    Raises DataError where one of both is missing.
    """
    texts = [text for text in dict.fromkeys(texts) if text.strip()]
    keys, _ = text_keys({"learned": texts, "held": dev.texts})
    held = set(keys["held"])
    alike = [key in held for key in keys["learned"]]
    texts = [text for text, copy in zip(texts, alike, strict=True) if not copy]
    if not texts or not held:
        raise DataError(
            f"found {len(texts)} texts to learn from and {len(held)} to measure on; expected some "
            "of both: give more, or rows to measure on with --test"
        )
    with progress.bar("answering"):
        answers = model.probabilities(texts)
    with progress.bar("distilling") as advance:
        write_arrays(folder / WEIGHTS, distil(texts, answers, model.config.seed, advance))
    facts = {"format": FORMAT, "classes": model.classes, "columns": model.columns}
    facts["label_type"] = label_type
    files = {WEIGHTS: file_sha256(folder / WEIGHTS)}
    write_json(folder / FACTS, sealed({**facts, "files": files}))
    both = [one.probabilities(dev.texts) for one in (model, StaticModel(folder))]
    agree = int((both[0].argmax(axis=1) == both[1].argmax(axis=1)).sum())
    counts = {"rows": len(dev), "agree": agree, "learned": len(texts), "trained": trained}
    scores: dict[str, Any] = {}
    cost = (
        f"It is a static student of the run: both give the same label to {agree} of {len(dev)} "
        f"texts that the run {'may have been' if trained is None else 'was'} trained on and the "
        "student was not."
    )
    if trained is not None and 2 * trained < len(dev):
        for name, shares in zip(("run", "student"), both, strict=True):
            found = probability_metrics(dev.labels, shares, model.classes)
            scores[name] = {metric: found[metric] for metric in ("accuracy", "f1_macro")}
        teacher, student = scores["run"], scores["student"]
        cost = (
            f"It is a static student of the run: on {len(dev)} rows its accuracy is "
            f"{student['accuracy']:.3f}, the run's {teacher['accuracy']:.3f}; macro F1 "
            f"{student['f1_macro']:.3f} and {teacher['f1_macro']:.3f}."
        )
        if trained:
            cost += f" The run was trained on {trained} of these rows: expect less on new texts."
    opened = "StaticModel(HERE)"
    write_standalone(folder, ["numpy"], "static_model", opened, model.classes, run, cost)
    return {**scores, **counts}


def distil(
    texts: Sequence[str], answers: np.ndarray, seed: int, advance: Advance
) -> dict[str, np.ndarray]:
    """The arrays of a student that gives N texts, each of which has a word, probabilities like
    `answers` `[N, C]`. The same seed gives the same student."""
    bags, wanted = Bags(texts), torch.from_numpy(answers.astype(np.float32))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        table = nn.EmbeddingBag(1 << BITS, SIZE, mode="sum", sparse=True)
        first, last = nn.Linear(SIZE, HIDDEN), nn.Linear(HIDDEN, answers.shape[1])
    spread = np.zeros((1 << BITS, 1), np.float32)
    spread[bags.pieces.tokens] = _SPREAD  # vectors that no text has stay zeros
    table.weight.data *= torch.from_numpy(spread)
    layers = [*first.parameters(), *last.parameters()]
    optimizers = torch.optim.SparseAdam(list(table.parameters())), torch.optim.Adam(layers)
    steps_each = -(-len(texts) // _BATCH)
    epochs = max(epochs_of(len(texts)), -(-_STEPS // steps_each))
    done, steps = 0, epochs * steps_each
    for epoch in range(epochs):
        order = random_stream(seed, ALL_ROWS, epoch).permutation(len(texts))
        for rows in np.split(order, range(_BATCH, len(order), _BATCH)):
            hidden = first(table(*bags.batch(rows))).relu()
            nn.functional.cross_entropy(last(hidden), wanted[rows]).backward()
            for optimizer in optimizers:
                optimizer.param_groups[0]["lr"] = _RATE * (1 - done / steps)
                optimizer.step()
                optimizer.zero_grad()
            done += 1
            advance(done / steps)
    weights = {"table": table.weight.half(), "A": first.weight.T, "a": first.bias}
    weights |= {"B": last.weight.T, "b": last.bias}
    return {name: one.detach().contiguous().numpy() for name, one in weights.items()}


class Bags:
    """Of each of N texts the rows of the table that it is the weighted sum of.

    texts: the pieces of each text; pieces: the rows of each piece, its own first.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        number: dict[str, int] = {}
        cut = [[number.setdefault(p, len(number)) for p in t.lower().split()] for t in texts]
        places = np.fromiter(chain.from_iterable(cut), np.int64)
        self.texts = TokenStore(places, np.cumsum([0, *map(len, cut)]))
        parts = list(hashed(list(number), BITS))
        sizes = np.empty(len(number), np.int64)
        for places, rows in parts:
            sizes[places] = len(rows)
        begins = np.append(0, np.cumsum(sizes))
        self.pieces = TokenStore(np.empty(begins[-1], np.int64), begins)
        for places, rows in parts:
            self.pieces.tokens[begins[places] + np.arange(len(rows))[:, None]] = rows

    def batch(self, texts: np.ndarray) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """What an EmbeddingBag takes: rows, where each text begins, weights."""
        pieces, counts = self.texts.take(texts)
        rows, sizes = self.pieces.take(pieces)
        weights = np.repeat(1 / np.sqrt(sizes - 1), sizes)
        weights[np.cumsum(sizes) - sizes] = 1
        of_text = np.add.reduceat(sizes, np.cumsum(counts) - counts)
        weights = (weights / np.repeat(np.sqrt(counts), of_text)).astype(np.float32)
        begin = torch.from_numpy(np.cumsum(of_text) - of_text)
        return torch.from_numpy(rows), begin, torch.from_numpy(weights)
