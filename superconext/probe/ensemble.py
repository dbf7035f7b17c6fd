"""What answers beside the encoder's probe, by the name `probe_features` gives it.

`encoder+tfidf` is the mean of the probe's probabilities and those of TF-IDF and a logistic
regression. The two err on different rows, so their mean may be better than either; the table
of a run says whether it is. `encoder+ngrams` weighs three models by what dev says of them: the
probe, TF-IDF, and character n-grams weighted by log-count ratios.

Features of all side by side under one logistic regression do not work: the encoder has
memorised its training rows, there its features alone separate the classes, and the
regression never learns to use anything else. So each model is fitted by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from superconext.config.parameters import Config
from superconext.core.files import beside
from superconext.probe.calibration import fit_temperature
from superconext.probe.log_count_ratios import Ratios, fit_ratios
from superconext.probe.log_linear_pool import fit_weights, log_probabilities, pooled
from superconext.probe.logistic_regression import log_odds, softmax
from superconext.probe.tfidf import FILES as TFIDF_FILES
from superconext.probe.tfidf import Lexical, fit_lexical


class Companion(Protocol):
    """A model of the text itself, and how its answer and the probe's become one.

    title: what tables call it.
    files: names of what `save` writes.
    run_format: of run folders that hold it; earlier versions refuse those.
    """

    title: ClassVar[str]
    files: ClassVar[tuple[str, ...]]
    run_format: ClassVar[int]

    def combined(self, texts: Sequence[str], probe: np.ndarray) -> np.ndarray:
        """Probabilities `[N, C]` to predict by, given the probe's `[N, C]` of N texts."""

    def chosen(self) -> dict[str, Any]:
        """What was chosen on dev, by the names `metrics.json` has."""

    def save(self, folder: Path) -> None:
        """Write its `files` into an existing folder; nothing is pickled."""


@dataclass(frozen=True)
class Dev:
    """Dev rows of a class that train has: texts `[N]`, class indices `[N]`, the probe's
    probabilities `[N, C]`."""

    texts: Sequence[str]
    labels: np.ndarray
    probe: np.ndarray


@dataclass(frozen=True, eq=False)
class MeanWithTfidf:
    """The mean of the probe's probabilities and TF-IDF's.

    temperature: what TF-IDF's scores were divided by, where they were calibrated.
    """

    tfidf: Lexical
    temperature: float | None = None

    title: ClassVar[str] = "TF-IDF"
    files: ClassVar[tuple[str, ...]] = TFIDF_FILES
    run_format: ClassVar[int] = 3

    def combined(self, texts: Sequence[str], probe: np.ndarray) -> np.ndarray:
        mean: np.ndarray = (probe + self.tfidf.probabilities(texts)) / 2
        return mean

    def chosen(self) -> dict[str, Any]:
        of_tfidf = {} if self.temperature is None else {"tfidf_temperature": self.temperature}
        return {"tfidf_C": self.tfidf.c, **of_tfidf}

    def save(self, folder: Path) -> None:
        self.tfidf.save(folder)

    @classmethod
    def load(cls, folder: Path) -> MeanWithTfidf:
        return cls(Lexical.load(folder))

    @classmethod
    def fit(
        cls, texts: Sequence[str], labels: np.ndarray, dev: Dev | None, config: Config
    ) -> MeanWithTfidf:
        shift = config.logit_adjustment * log_odds(labels, int(labels.max()) + 1)
        if dev is None:
            model = fit_lexical(texts, labels)
            return cls(replace(model, intercept=model.intercept - shift))
        model = fit_lexical(texts, labels, dev.texts, dev.labels)
        model = replace(model, intercept=model.intercept - shift)
        if not config.calibrate:
            return cls(model)
        by = fit_temperature(model.decision(dev.texts), dev.labels)
        return cls(replace(model, coef=model.coef / by, intercept=model.intercept / by), by)


@dataclass(frozen=True, eq=False)
class PoolWithNgrams:
    """The probe, TF-IDF and character n-grams in one pool (`opinion_pool`).

    weights: float64 `[3]`, of the three in this order.
    shift: float64 `[C]`, what `logit_adjustment` takes off the scores. The probe comes with it
        taken off already; it is put back before the probe is weighed.
    """

    tfidf: Lexical
    ratios: Ratios
    weights: np.ndarray
    shift: np.ndarray

    title: ClassVar[str] = "n-grams"
    files: ClassVar[tuple[str, ...]] = (*TFIDF_FILES, "ngrams.safetensors")
    run_format: ClassVar[int] = 4

    def combined(self, texts: Sequence[str], probe: np.ndarray) -> np.ndarray:
        logs = _three(self.tfidf, self.ratios, texts, probe, self.shift)
        return softmax(pooled(logs, self.weights) - self.shift)

    def chosen(self) -> dict[str, Any]:
        names = ("encoder", "tfidf", "ngrams")
        weights = dict(zip(names, self.weights.tolist(), strict=True))
        return {"tfidf_C": self.tfidf.c, "ngrams_C": self.ratios.c, "pool_weights": weights}

    def save(self, folder: Path) -> None:
        from safetensors.numpy import save_file

        self.tfidf.save(folder)  # with the n-grams that both have
        ratios = self.ratios
        arrays = {
            "ratio": ratios.ratio,
            "coef": ratios.coef,
            "intercept": ratios.intercept,
            "c": np.array([ratios.c]),
            "weights": self.weights,
            "shift": self.shift,
        }
        with beside(folder / self.files[-1]) as temporary:
            save_file(arrays, temporary)

    @classmethod
    def load(cls, folder: Path) -> PoolWithNgrams:
        """What `save` wrote. Raises ValueError where the files are not of one model."""
        from safetensors.numpy import load_file

        tfidf = Lexical.load(folder)
        arrays = load_file(folder / cls.files[-1])
        if any(x.dtype.kind != "f" or not np.isfinite(x).all() for x in arrays.values()):
            raise ValueError(f"{cls.files[-1]} holds what are no finite numbers")
        ratio, coef, intercept = (arrays[name] for name in ("ratio", "coef", "intercept"))
        machines, classes = len(tfidf.intercept), len(arrays["shift"])
        if (
            ratio.shape != (machines, len(tfidf.characters))
            or coef.shape != ratio.shape
            or intercept.shape != (machines,)
            or arrays["weights"].shape != (3,)
            or classes != max(machines, 2)
        ):
            raise ValueError(f"{cls.files[-1]} is not of the model in {', '.join(TFIDF_FILES)}")
        ratios = Ratios(tfidf.characters, ratio, coef, intercept, float(arrays["c"][0]))
        return cls(tfidf, ratios, arrays["weights"], arrays["shift"])

    @classmethod
    def fit(
        cls, texts: Sequence[str], labels: np.ndarray, dev: Dev | None, config: Config
    ) -> PoolWithNgrams:
        shares = np.bincount(labels) / len(labels)
        shift = config.logit_adjustment * np.log(shares)
        held = () if dev is None else (dev.texts, dev.labels)
        tfidf, ratios = fit_lexical(texts, labels, *held), fit_ratios(texts, labels, *held)
        weights = np.full(3, 1 / 3)
        if dev is not None:
            logs = _three(tfidf, ratios, dev.texts, dev.probe, shift)
            weights = fit_weights(logs, dev.labels)
        return cls(tfidf, ratios, weights, shift)


def _three(
    tfidf: Lexical, ratios: Ratios, texts: Sequence[str], probe: np.ndarray, shift: np.ndarray
) -> list[np.ndarray]:
    """Log probabilities `[N, C]` of the probe without its shift, of TF-IDF and of n-grams."""
    of_probe = np.log(np.maximum(probe, np.finfo(np.float64).tiny)) + shift
    scores = (of_probe, tfidf.decision(texts), ratios.decision(texts))
    return [log_probabilities(one) for one in scores]


#: By the value of `probe_features`; the encoder alone has none.
COMPANIONS: Mapping[str, type[MeanWithTfidf] | type[PoolWithNgrams]] = {
    "encoder+tfidf": MeanWithTfidf,
    "encoder+ngrams": PoolWithNgrams,
}
