"""Frozen features to classes: probes, ensembles with n-gram models, and metrics.

Both registries know their entries by name and import them when they are first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from superconext.core.registry import Entry, Registry

if TYPE_CHECKING:
    from collections.abc import Callable

    from superconext.probe.base import Probe

#: Values of `probe_features` under which a model of n-grams predicts together with the probe.
ENSEMBLE_NAMES = ("encoder+tfidf", "encoder+ngrams")

#: The classifiers fitted on frozen sentence vectors, by the value of `probe_features`.
PROBES: Registry[type[Probe]] = Registry(
    "probe",
    "superconext.probe.base:Probe",
    {
        "encoder": Entry(
            "superconext.probe.logistic_regression:LogisticRegressionProbe",
            "logistic regression on the encoder's sentence vectors",
        )
    },
    "SUPERCONEXT_PROBES",
    home=__name__,
    parameter="probe_features",
    also=ENSEMBLE_NAMES,
)

#: The metrics of predicted labels; see `superconext.probe.metrics.metric_values`.
METRICS: Registry[Callable[..., float]] = Registry(
    "metric",
    None,
    {
        "accuracy": Entry("superconext.probe.metrics:accuracy", "share of rows that are right"),
        "f1_macro": Entry("superconext.probe.metrics:f1_macro", "mean F1 of the classes"),
        "f1_weighted": Entry(
            "superconext.probe.metrics:f1_weighted", "mean F1 of the classes, weighted by rows"
        ),
    },
    "SUPERCONEXT_METRICS",
    home=__name__,
)


def probe_class(name: str) -> type[Probe]:
    """The probe that a value of `probe_features` asks for. Raises ConfigError."""
    PROBES.check(name)
    return PROBES.get("encoder" if name in ENSEMBLE_NAMES else name)


#: After the name of a baseline whose probabilities are adjusted as those of the run beside it are.
ADJUSTED = "_adjusted"
