"""How good is an encoder on rows of another data set than the one it was trained on?

The encoder is trained on the source's rows and frozen; the linear probe is fitted on the target's
training rows, its C chosen on the target's dev rows, as every probe is. Labels of the two need
not be the same. Gunel et al. (2021, Table 7) go on training all weights on the target; this does
not, so that what is measured is what the source taught.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from superconext.data.duplicates import leaks
from superconext.experiments.plan import Fit, Labelled, cut, scheme_of, whole_split
from superconext.experiments.systems import fit_config

if TYPE_CHECKING:
    from superconext.fitting.model import Model


@dataclass(frozen=True)
class Source:
    """rows: what `plan.cut` splits; given: the parameters that hold on this data set."""

    rows: Mapping[str, Labelled]
    given: Mapping[str, Any]


#: The encoder of the last fit: the next draw of the same seed mostly wants it again.
_last: dict[Any, tuple[Model, dict[str, Any]]] = {}


def fit_transferred(
    fit: Fit, parts: Mapping[str, Labelled], source: Source
) -> tuple[dict[str, Any], dict[str, list[str]]]:
    """Facts for the line, and the answers on "dev" and "test" of the target.

    Args:
        parts: of the target. Rows of the source whose text is one of its dev or test texts are
            left out of training; how many, the facts tell as `source_left_out`.

    Raises what training raises.
    """
    from superconext.probe import probe_class

    model, facts = _encoder(fit, parts, source)
    classes = sorted(set(parts["train"][1]))
    index = {label: k for k, label in enumerate(classes)}
    features = {name: model.features(texts) for name, (texts, _) in parts.items()}
    truth = {
        name: np.array([index.get(label, -1) for label in labels])
        for name, (_, labels) in parts.items()
    }
    kind = probe_class(fit_config(source.given, fit.system, fit.seed).probe_features)
    probe = kind.fit(features["train"], truth["train"], features["dev"], truth["dev"])
    answers = {
        name: [classes[k] for k in probe.decision(features[name]).argmax(axis=1)]
        for name in ("dev", "test")
    }
    return {**facts, **probe.settings}, answers


def _encoder(
    fit: Fit, parts: Mapping[str, Labelled], source: Source
) -> tuple[Model, dict[str, Any]]:
    import torch

    from superconext.fitting.fit import fit_model

    whole = Fit(fit.system, fit.seed, whole_split(scheme_of(source.rows), fit.seed))
    own = cut(source.rows, whole)
    held = [*parts["dev"][0], *parts["test"][0]]
    texts, labels = own["train"]
    bad = set(leaks(held, texts).tolist())
    texts = [text for row, text in enumerate(texts) if row not in bad]
    labels = [label for row, label in enumerate(labels) if row not in bad]
    config = fit_config(source.given, fit.system, fit.seed)
    key = config, tuple(texts), tuple(labels), tuple(held)
    if key not in _last:
        torch.set_num_threads(config.threads)
        fitted = fit_model(texts, labels, config, own["dev"], set_aside=held, monitor=False)
        if fitted.interrupted:
            raise KeyboardInterrupt
        _last.clear()
        facts = {"source_left_out": len(bad), "collapsed": fitted.collapse["collapsed"]}
        _last[key] = fitted.model, facts
    return _last[key]
