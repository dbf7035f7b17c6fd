"""Which recipe without a trained encoder to take where few rows can tell: what each rule scores.

    python scripts/few_label_choice.py STORED.csv --set arq=train.tsv ... -- --init ENCODER
    python scripts/few_label_choice.py STORED.csv --set sst2=train.tsv ... -- --vectors VECTORS

From each file (4,000 rows at most, no copies) some rows are drawn: as many of each class, or as the
set has them. The recipes are cross-validated on these as `superconext train` does it, then fitted
on all of them and judged on other rows of the file (2,500 at most). A rule takes the lowest log
loss, or starts from one recipe and leaves it for the lowest where that is better by so many
standard errors. The mean weighted F1 of the rules, and the difference from the lowest log loss
with its 95% interval over draws and sets, take the place of those of the same option and rows in
STORED.csv. Files with test rows are not
for this: the rule of the package was chosen here.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from doc_tables import read_rows, write_rows
from scipy.stats import sem
from sklearn.metrics import f1_score

from superconext.config.parameters import Config, resolve
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.data.duplicates import deduplicate
from superconext.data.reading import read_labelled
from superconext.fitting.cross_validation import (
    NGRAMS,
    PRETRAINED,
    TFIDF,
    VECTORS,
    CrossValidation,
)
from superconext.fitting.recipes import Recipe, recipes_of
from superconext.probe.base import log_shares, log_softmax
from superconext.probe.ensemble import ALONE, MODELS, POOL, pooled, row_losses
from superconext.probe.logistic_regression import fit_probe
from superconext.probe.ngrams import RatioFeatures, TfidfFeatures, decisions, refit_ngrams

#: Rows of each class, and rows drawn as the set has them.
BALANCED, NATURAL = (8, 16, 32, 64), (100, 300)
MOST, ASKED = 4000, 2500
LOWEST = "lowest log loss"
HEAD = ("given", "rows", "fits", "rule", "f1_weighted", "difference", "interval")


def sampled(path: str) -> Dataset:
    """The rows of a file, `MOST` at most, without copies."""
    data = read_labelled(path)
    data = data.select(deduplicate(data.texts))
    return data.select(np.sort(np.random.default_rng(0).permutation(len(data))[:MOST]))


def named(sets: list[str]) -> list[tuple[str, str]]:
    """Names and files of `--set NAME=FILE`."""
    if wrong := [one for one in sets if not Path(one.partition("=")[2]).is_file()]:
        sys.exit(f"error: --set {wrong[0]}: expected NAME=FILE, a file that is there")
    return [(name, path) for name, _, path in (one.partition("=") for one in sets)]


def drawn(labels: np.ndarray, size: str, draw: int) -> tuple[np.ndarray, np.ndarray]:
    """Places of the rows to train on and to judge on."""
    order, count = np.random.default_rng(1000 + draw).permutation(len(labels)), int(size.split()[0])
    rows = order[:count]
    if "class" in size:
        rows = np.concatenate([order[labels[order] == k][:count] for k in range(labels.max() + 1)])
    rows = np.sort(rows)
    return rows, np.setdiff1d(order, rows)[:ASKED]


def scores(
    data: Dataset,
    labels: np.ndarray,
    features: Mapping[str, np.ndarray],
    config: Config,
    classes: list[str],
    rows: np.ndarray,
    asked: np.ndarray,
) -> dict[str, tuple[np.ndarray, float]]:
    """By recipe: its log loss on each drawn row, and its weighted F1 on the others."""
    some = data.select(rows)
    cv = CrossValidation(some, config, 5, Progress(), classes=classes)
    cv._features = {name: every[rows] for name, every in features.items()}
    cv.add([TFIDF, NGRAMS, *features])
    recipes = [recipe for recipe in recipes_of(config, len(rows)) if not recipe.trained]
    held = {r: cv.held_out(r.models, POOL if r.ngrams else ALONE, 0.0) for r in recipes}
    grids = {r.encoder or NGRAMS: held[r].settings.c for r in recipes}
    c = grids[NGRAMS]
    kinds = [TfidfFeatures, RatioFeatures]
    models = refit_ngrams(kinds, some.texts, cv.labels, [c[TFIDF], c[NGRAMS]])
    texts = [data.texts[row] for row in asked]
    logs = dict(zip((TFIDF, NGRAMS), map(log_softmax, decisions(models, texts)), strict=True))
    for name, every in features.items():
        grid = (grids[name]["encoder"],)
        probe = fit_probe(every[rows], cv.labels, grid=grid, unit_length=True)
        logs[name] = log_softmax(probe.decision(every[asked]))
    shift = config.logit_adjustment * log_shares(cv.labels, len(classes))
    found = {}
    for recipe in recipes:
        settings = held[recipe].settings
        if recipe.ngrams:
            used = [name for name in MODELS if name in settings.weights]
            parts = [logs[str(recipe.encoder) if name == "encoder" else name] for name in used]
            predicted = pooled(parts, np.array([settings.weights[name] for name in used]))
        else:
            predicted = logs[str(recipe.encoder)]
        losses = row_losses(held[recipe].shares, cv.folds, cv.labels)
        answers = (log_softmax(predicted) - shift).argmax(axis=1)
        score = f1_score(labels[asked], answers, average="weighted", zero_division=0)
        found[_name(recipe)] = losses, 100 * float(score)
    return found


def _name(recipe: Recipe) -> str:
    return " + ".join([recipe.encoder or ""] * bool(recipe.encoder) + ["n-grams"] * recipe.ngrams)


def rules(names: list[str]) -> dict[str, Callable[[Mapping[str, np.ndarray]], str]]:
    """What each rule takes, given the losses of the recipes."""

    def lowest(losses: Mapping[str, np.ndarray]) -> str:
        return min(losses, key=lambda name: losses[name].mean())

    def start_from(first: str, errors: float) -> Callable[[Mapping[str, np.ndarray]], str]:
        def take(losses: Mapping[str, np.ndarray]) -> str:
            best = lowest(losses)
            gain = losses[first] - losses[best]
            return best if gain.mean() > errors * gain.std() / len(gain) ** 0.5 else first

        return take

    found = {LOWEST: lowest} | {f"always {name}": lambda _, name=name: name for name in names}
    encoder = PRETRAINED if PRETRAINED in names else VECTORS
    for first in (encoder, f"{encoder} + n-grams"):
        for errors in (0.5, 1, 2):
            found[f"{first}, unless {errors:g} standard errors"] = start_from(first, errors)
    return found


def main() -> None:
    words, rest = sys.argv[1:], []
    if "--" in words:
        words, rest = words[: words.index("--")], words[words.index("--") + 1 :]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stored", type=Path)
    parser.add_argument("--set", action="append", required=True, metavar="NAME=FILE")
    parser.add_argument("--draws", type=int, default=10)
    options = parser.parse_args(words)
    if len(rest) != 2 or rest[0] not in ("--init", "--vectors"):
        parser.error("expected -- --init ENCODER, or -- --vectors VECTORS, at the end")
    config = resolve({"preset": "auto", rest[0].removeprefix("--"): rest[1]})
    names = [VECTORS, PRETRAINED] if config.init else [VECTORS]
    sizes = [f"{n} of each class" for n in BALANCED] + [f"{n} as they come" for n in NATURAL]
    taken: dict[tuple[str, str], list[float]] = defaultdict(list)
    for set_name, path in named(options.set):
        data = sampled(path)
        whole = CrossValidation(data, config, 5, Progress())
        whole.make_ready(names)
        for size in sizes:
            for draw in range(options.draws):
                rows, asked = drawn(whole.labels, size, draw)
                counts = np.bincount(whole.labels[rows], minlength=len(whole.classes))
                if counts.min() < 2 or not len(asked):
                    continue  # which `train` refuses, or cannot hold out; or none is left
                found = scores(
                    data, whole.labels, whole._features, config, whole.classes, rows, asked
                )
                losses = {name: loss for name, (loss, _) in found.items()}
                for rule, take in rules(list(found)).items():
                    taken[size, rule].append(found[take(losses)][1])
        print(set_name, "done", flush=True)
    store(options.stored, rest[0], sizes, taken, config)


def store(
    path: Path,
    given: str,
    sizes: list[str],
    taken: Mapping[tuple[str, str], list[float]],
    config: Config,
) -> None:
    """Put the means into the file, in the place of those of the same option and rows."""
    sizes = [size for size in sizes if len(taken[size, LOWEST]) > 1]
    stored = read_rows(path) if path.exists() else []
    stored = [row for row in stored if row["given"] != given or row["rows"] not in sizes]
    for size in sizes:
        base = np.array(taken[size, LOWEST])
        for rule in rules([_name(r) for r in recipes_of(config, 0) if not r.trained]):
            one = np.array(taken[size, rule])
            figures = (one.mean(), (one - base).mean(), 1.96 * sem(one - base))
            row = (given, size, len(one), rule, *(f"{x:.2f}" for x in figures))
            stored.append(dict(zip(HEAD, map(str, row), strict=True)))
    write_rows(path, stored)


if __name__ == "__main__":
    main()
