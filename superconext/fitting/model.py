"""A trained model: text in, sentence vectors, probabilities and labels out; and its evaluation.

A saved run predicts without scikit-learn and gensim, so it answers quickly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from superconext.config.parameters import Config
from superconext.core.errors import RunError
from superconext.core.process import gc_paused
from superconext.core.registry import own_fault
from superconext.data.columns import Known
from superconext.data.duplicates import SeenTexts
from superconext.data.token_store import TokenStore
from superconext.encoders.base import (
    Encoder,
    EncoderOutput,
    TextIndexer,
    encoded_blocks,
    sentence_vectors,
)
from superconext.objectives.base import Objective
from superconext.probe.base import Probe, softmax
from superconext.probe.ensemble import Ensemble, predicting
from superconext.probe.metrics import Evaluation, scored
from superconext.text.tokenize import Pieces

#: Begins the modules of this package.
_OURS = "superconext."


@dataclass(frozen=True)
class Answer:
    """What a model says of N texts.

    features: sentence vectors float32 `[N, d]`, members side by side.
    probabilities: float64 `[N, C]` that the model predicts by.
    probe: float64 `[N, C]` of the linear probe, that is of the encoder alone; the same where
        nothing stands beside it.
    native: float64 `[N, C]` of the objective's own rule, mean over the members; None if it
        has none.
    """

    features: np.ndarray
    probabilities: np.ndarray
    probe: np.ndarray
    native: np.ndarray | None


@dataclass
class Model:
    """Everything prediction needs.

    classes: labels in sorted order.
    indexer: texts to the token ids the encoders read.
    encoders: one for each member.
    objectives: the trained objectives, for their native prediction; none of a frozen encoder.
    probe: classifier on the members' concatenated vectors.
    ensemble: n-gram models of the text itself that predict together with the probe; None where
        the probe predicts alone.
    second_objective: of every second member, in a run that an earlier version wrote.
    columns: `text`, `label` and `header` of the training file (`Dataset.columns`), as far as known;
        of a loaded run as its manifest has it.
    seen: keyed hashes of the texts it was made from; None where they are not known.
    """

    config: Config
    classes: list[str]
    indexer: TextIndexer
    encoders: list[Encoder]
    objectives: list[Objective]
    probe: Probe
    ensemble: Ensemble | None = None
    second_objective: str | None = None
    columns: Any = None
    seen: SeenTexts | None = None

    @property
    def known(self) -> Known:
        """What it knows of files to predict on."""
        return Known.of_model(self)

    def texts_seen(self, texts: Sequence[str]) -> list[str]:
        """Those of the texts that it was made from, where that is known."""
        if self.seen is None:
            return []
        splits = self.seen.split_of(self.tokens(texts))
        return [text for text, split in zip(texts, splits, strict=True) if split]

    @property
    def titles(self) -> dict[str, str]:
        """What tables call the probe on its encoder, "" where n-grams predict alone, and the
        ensemble beside it, where it has one."""
        config, title = self.config, "trained encoder"
        if config.freeze:
            title = "mean word vectors" if config.encoder == "mean" else "frozen encoder"
            if config.encoder != "mean" and (config.init or config.pretrain):
                title = "frozen pretrained encoder"
        if self.ensemble is None:
            return {"probe_title": title}
        title = title if "encoder" in predicting(self.ensemble.settings) else ""
        return {"probe_title": title, "companion": self.ensemble.title}

    def tokens(self, texts: Sequence[str]) -> list[list[str]]:
        """Normalised tokens of each text."""
        return self.indexer.tokenizer.many(texts)

    def store(self, texts: Sequence[str] | Pieces) -> TokenStore:
        """Token ids of texts `[N]`, or of texts already cut into pieces."""
        # Of the many lists made here none refers to another in a circle.
        with gc_paused():
            return self.indexer.store(texts)

    def features(self, texts: Sequence[str]) -> np.ndarray:
        """Sentence vectors float32 `[N, d]`, members side by side; texts alike have one."""
        store = self.store(texts)
        rows, place = store.distinct()
        if len(rows) == len(store):
            return member_features(self.encoders, store)
        return member_features(self.encoders, store.subset(rows))[place]

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """Class probabilities float64 `[N, C]`, columns as `classes`.

        Of the probe, together with the ensemble where it has one.
        """
        return self.combined(texts, self.probe.probabilities(self.features(texts)))

    def decision(self, texts: Sequence[str]) -> np.ndarray:
        """Scores `[N, C]` of the probe; where it does not predict alone, logarithms of the
        probabilities."""
        if self.ensemble is None:
            return self.probe.decision(self.features(texts))
        return np.log(np.maximum(self.probabilities(texts), np.finfo(np.float64).tiny))

    def predict(self, texts: Sequence[str]) -> list[str]:
        """The most probable label of each text."""
        return self.labels((self.decision if self.ensemble is None else self.probabilities)(texts))

    def labels(self, scores: np.ndarray) -> list[str]:
        """The classes with the highest of scores `[N, C]`."""
        return [self.classes[k] for k in scores.argmax(axis=1)]

    def answer(self, texts: Sequence[str], pieces: Pieces | None = None) -> Answer:
        """Vectors, probabilities, the probe's and the objective's own, of one encoding.

        pieces: the texts as the tokenizer has cut them, where that is done already.
        """
        store = self.store(texts if pieces is None else pieces)
        if not self.objectives:
            features = member_features(self.encoders, store)
            return self._answer(texts, features, None)
        parts = [
            vectors_and_scores(encoder, objective, store, len(self.classes))
            for encoder, objective in zip(self.encoders, self.objectives, strict=True)
        ]
        features = np.hstack([vectors for vectors, _ in parts])
        scores = [score for _, score in parts if score is not None]
        native = None
        if len(scores) == len(parts):
            native = np.mean([softmax(score) for score in scores], axis=0)
        return self._answer(texts, features, native)

    def combined(self, texts: Sequence[str], probe: np.ndarray) -> np.ndarray:
        """What the model predicts by, given the probe's probabilities `[N, C]` of the texts.

        Raises RunError where they are no numbers, as of weights that are none or too large.
        """
        shares = probe if self.ensemble is None else self.ensemble.combined(texts, probe)
        if not np.isfinite(shares).all():
            raise RunError(
                "found probabilities that are no numbers; expected shares: the model's "
                "weights are damaged: train again"
            )
        return shares

    def _answer(
        self, texts: Sequence[str], features: np.ndarray, native: np.ndarray | None
    ) -> Answer:
        if not np.isfinite(features).all():
            for own in (one for one in self.encoders if not type(one).__module__.startswith(_OURS)):
                bad = texts[int(np.flatnonzero(~np.isfinite(features).all(axis=1))[0])]
                raise own_fault(own, f"NaN or infinity for the text {bad!r:.80}", "finite vectors")
        probe = self.probe.probabilities(features)
        return Answer(features, self.combined(texts, probe), probe, native)


@torch.no_grad()
def vectors_and_scores(
    encoder: Encoder, objective: Objective, store: TokenStore, classes: int
) -> tuple[np.ndarray, np.ndarray | None]:
    """Sentence vectors float32 `[N, d]` and native scores float64 `[N, C]` of C classes of a store.

    The scores are None where the objective has no rule of its own, or the store no row.
    The objective is left in evaluation mode. Raises ConfigError for scores that are not `[N, C]`.
    """
    objective.eval()
    vectors = np.empty((len(store), encoder.sentence_size), dtype=np.float32)
    whole = objective.needs_token_states and not objective.scores_together
    rows: list[np.ndarray] = []
    outputs: list[EncoderOutput] = []
    scores: list[Tensor | None] = []
    for block, output in encoded_blocks(encoder, store, whole=whole):
        vectors[block] = output.sentence.float().cpu().numpy()
        rows.append(block)
        if objective.scores_together:
            outputs.append(EncoderOutput.of_sentences(output.sentence, output.class_states))
        else:
            scores.append(objective.checked_scores(output, classes))
    if outputs:
        states = [output.class_states for output in outputs if output.class_states is not None]
        together = EncoderOutput.of_sentences(
            torch.cat([output.sentence for output in outputs]),
            torch.cat(states) if states else None,
        )
        scores = [objective.checked_scores(together, classes)]
    found = [score.cpu().double().numpy() for score in scores if score is not None]
    if not found:
        return vectors, None
    if len(found) < len(scores):
        text = "None for some of the texts alone, returned by class_scores"
        raise own_fault(objective, text, "scores of every text, or of none")
    ordered = np.empty((len(store), classes))
    ordered[np.concatenate(rows)] = np.concatenate(found)
    return vectors, ordered


def member_features(encoders: Sequence[Encoder], store: TokenStore) -> np.ndarray:
    """Sentence vectors of all members side by side, float32 `[N, d]`."""
    return np.hstack([sentence_vectors(encoder, store) for encoder in encoders])


def evaluate(
    model: Model,
    texts: Sequence[str],
    labels: Sequence[str],
    pieces: Pieces | None = None,
    held_out: np.ndarray | None = None,
) -> Evaluation:
    """Predict the texts `[N]` and compare with their labels: the one function by which `train`,
    `evaluate`, `compare` and the other experiments score a model.

    Args:
        pieces: the texts as the model's tokenizer has cut them, where that is done already.
        held_out: probabilities `[M, C]` that stand for the model's, of the M rows whose label is
            one of its classes; see `Fitted.dev_probabilities`.
    """
    answer = model.answer(texts, pieces)
    probabilities = answer.probabilities
    if held_out is not None:
        probabilities = probabilities.copy()
        probabilities[[label in model.classes for label in labels]] = held_out

    rows, classes = (texts, labels), model.classes
    metrics, predicted = scored(*rows, probabilities, classes)
    alone = None if model.ensemble is None else scored(*rows, answer.probe, classes)[0]
    if alone is not None and model.config.calibrate:  # the temperature is that of the ensemble
        alone.pop("expected_calibration_error", None)
    native, native_predicted = None, None
    if answer.native is not None:
        native, native_predicted = scored(*rows, answer.native, classes)
    return Evaluation(
        answer.features,
        probabilities,
        predicted,
        metrics,
        alone,
        native,
        native_predicted,
    )
