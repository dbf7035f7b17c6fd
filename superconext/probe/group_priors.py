"""Correction of probabilities by the class shares of each group of texts (`prior_groups`).

Where one script's training rows have other class shares than another's for a reason that new texts
do not share (two pools of tweets, labelled by other people), a model learns the script as a sign of
the class. Dividing the probabilities by the mean that the model gives to texts of the same script,
and multiplying by the prior that is wanted instead, takes that away:

    p(c | x) proportional to  p_model(c | x) / prior_group(c) * wanted(c)

The means are those of out-of-fold predictions of the training rows. The equation is that of a new
prior in Saerens et al. (2002), "Adjusting the outputs of a classifier to new a priori
probabilities", for each group by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from superconext.probe.base import softmax
from superconext.probe.logistic_regression import (
    LogisticRegressionProbe,
    fit_probe,
    folds,
)
from superconext.text.characters import FEWEST_OF_SCRIPT, OTHER, script_groups

#: Values of the parameter.
NO_GROUPS, BY_SCRIPT = "none", "script"

#: What the run folder keeps of it.
FILE = "group_priors.json"

#: Rows that the mean over all rows counts for in the mean of each group, so that a group of a few
#: rows, or one that training never saw, is corrected little or not at all.
PRIOR_ROWS = 20


@dataclass(frozen=True, eq=False)
class GroupPriors:
    """Mean probabilities of the classes in each group, and those wanted in their place.

    priors: by group, float64 `[C]` that sum to 1; by "" those of all rows, for groups that
        training never saw.
    wanted: float64 `[C]`.
    """

    priors: Mapping[str, np.ndarray]
    wanted: np.ndarray

    def corrected(self, texts: Sequence[str], probabilities: np.ndarray) -> np.ndarray:
        """The probabilities float64 `[N, C]` of N texts, corrected."""
        factor = {name: self.wanted / prior for name, prior in self.priors.items()}
        factors = [factor.get(group, factor[""]) for group in script_groups(texts)]
        shares = probabilities * np.array(factors).reshape(-1, len(self.wanted))
        corrected: np.ndarray = shares / shares.sum(axis=1, keepdims=True)
        return corrected

    def to_dict(self) -> dict[str, Any]:
        priors = {name: prior.tolist() for name, prior in self.priors.items()}
        return {"groups": BY_SCRIPT, "priors": priors, "wanted": self.wanted.tolist()}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], classes: int) -> GroupPriors:
        """What `to_dict` gave. Raises ValueError for anything else."""
        priors = saved.get("priors")
        if saved.get("groups") != BY_SCRIPT or not isinstance(priors, Mapping) or "" not in priors:
            raise ValueError(f"{FILE} has no priors by script")
        shares = [saved.get("wanted"), *priors.values()]
        arrays = [np.array(one, dtype=np.float64) for one in shares]
        for array in arrays:
            if array.shape != (classes,) or not (np.isfinite(array) & (array > 0)).all():
                raise ValueError(f"{FILE} has priors that are not {classes} positive numbers")
        return cls(dict(zip(priors, arrays[1:], strict=True)), arrays[0])


def fit_group_priors(
    texts: Sequence[str], probabilities: np.ndarray, strength: float = 0.0
) -> GroupPriors:
    """The priors of the training rows.

    Args:
        texts: of N rows.
        probabilities: out-of-fold, `[N, C]`.
        strength: 0 wants the mean over all rows, 1 equal shares of all classes; between them the
            mean to the power of 1 - strength.
    """
    whole = probabilities.mean(axis=0)
    groups = np.array(script_groups(texts))
    priors = {"": whole}
    for name in sorted(set(groups.tolist())):
        inside = probabilities[groups == name]
        priors[name] = (inside.sum(axis=0) + PRIOR_ROWS * whole) / (len(inside) + PRIOR_ROWS)
    wanted = whole ** (1 - strength)
    return GroupPriors(priors, wanted / wanted.sum())


def out_of_fold(
    labels: np.ndarray,
    predict: Callable[[np.ndarray, np.ndarray], np.ndarray],
    texts: Sequence[str] | None = None,
) -> np.ndarray | None:
    """Probabilities `[N, C]` of each row by a model fitted without it; None where a class has a
    single row, so that there are no folds.

    Args:
        labels: class indices `[N]`.
        predict: from row numbers (fitted on `[n]`, held out `[m]`) to probabilities `[m, C]`.
        texts: of the N rows, whose copies one fold holds out.
    """
    parts = folds(labels, texts)
    if not parts:
        return None
    shares = np.empty((len(labels), int(labels.max()) + 1))
    for fitted, held in parts:
        shares[held] = predict(fitted, held)
    return shares


def probe_out_of_fold(
    probe: LogisticRegressionProbe,
    features: np.ndarray,
    labels: np.ndarray,
    temperature: float = 1.0,
    texts: Sequence[str] | None = None,
) -> np.ndarray | None:
    """The same of a linear probe on features `[N, d]`, with the C that was chosen.

    Args:
        temperature: what its scores are divided by.
        texts: of the N rows, whose copies one fold holds out.
    """

    def predict(fitted: np.ndarray, held: np.ndarray) -> np.ndarray:
        rows = features[fitted], labels[fitted]
        of_fold = fit_probe(
            *rows, grid=(probe.c,), unit_length=probe.unit_length, beside=probe.beside
        )
        return softmax(of_fold.decision(features[held]) / temperature)

    return out_of_fold(labels, predict, texts)


def balanced_cells(texts: Sequence[str], labels: np.ndarray) -> np.ndarray:
    """Class and script of N rows as one index `[N]` from 0 without gaps, for balanced batches.

    A group in which some class has fewer than `FEWEST_OF_SCRIPT` rows counts as `OTHER`, and that
    as the largest group where it is as small: else a few rows would fill much of every batch.
    Every class is then in every group, and all classes have equal shares of a batch.
    """
    classes = int(labels.max()) + 1
    groups = np.array(script_groups(texts), dtype=object)  # else longer names would be cut off

    def small(name: str) -> bool:
        return int(np.bincount(labels[groups == name], minlength=classes).min()) < FEWEST_OF_SCRIPT

    for name in set(groups.tolist()) - {OTHER}:
        if small(name):
            groups[groups == name] = OTHER
    sizes = Counter(groups[groups != OTHER].tolist())
    if sizes and OTHER in groups and small(OTHER):
        groups[groups == OTHER] = sizes.most_common(1)[0][0]
    _, numbers = np.unique(groups, return_inverse=True)
    cells: np.ndarray = numbers * classes + labels
    return cells
