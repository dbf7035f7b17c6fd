"""Controls: baselines that start from what a run starts from, without its training.

`vectors_logreg` reads the run's word vectors, `pretrained_logreg` its pretrained encoder, both
with the probe's logistic regression, C chosen as for the other linear baselines. What a run scores
above them is what training the encoder has added; what they score above TF-IDF comes from the
unlabelled text.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import torch

from superconext.baselines.baseline import (
    ProbabilisticBaseline,
    RunText,
    Split,
    class_indices,
)
from superconext.config.parameters import Config
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.encoders import encoder_class
from superconext.encoders.base import Encoder, sentence_vectors
from superconext.encoders.indexer import WordIndexer
from superconext.fitting.fit import own_torch_state
from superconext.fitting.preprocess import Prepared, preprocess
from superconext.probe.base import FEWEST_DEV_ROWS
from superconext.probe.logistic_regression import LogisticRegressionProbe, fit_probe, log_loss
from superconext.vectors.table import mean_vectors

#: Poolings of the frozen encoder, in the order they are tried on dev; the first without dev.
POOLINGS = ("mean", "max", "last")


def run_text(prepared: Prepared, config: Config, texts: Mapping[str, Sequence[str]]) -> RunText:
    """The text side of a run for its controls.

    Args:
        prepared: the run's preprocessed rows.
        config: of the run.
        texts: of each split, the very lists that were preprocessed. Those of which no pieces were
            kept, such as the sample of a training file that is read in a stream, are tokenised
            when they are first read.
    """
    tokenised = [
        (some, prepared.pieces[name]) for name, some in texts.items() if name in prepared.pieces
    ]
    return RunText(replace(config, init=prepared.init), prepared.indexer, tokenised)


def prepare_run_text(
    train: Dataset,
    dev: Dataset | None,
    test_texts: Sequence[str],
    config: Config,
    not_drawn: Sequence[str] = (),
) -> RunText:
    """`run_text` for controls that are fitted without a run: the rows are preprocessed here, as the
    run would do it.

    Raises what `preprocess` does.
    """
    with own_torch_state(config.threads):
        classes = sorted(train.class_counts())
        prepared = preprocess(train, dev, classes, config, Progress(), test_texts, not_drawn)
    texts = {"train": train.texts, "dev": dev.texts if dev else [], "test": test_texts}
    return run_text(prepared, config, texts)


class _OnFrozenVectors(ProbabilisticBaseline):
    """A probe on sentence vectors that the run starts from."""

    needs_run = True
    probe: LogisticRegressionProbe

    def decision(self, texts: Sequence[str]) -> np.ndarray:
        return self.probe.decision(self._features(texts))

    def _features(self, texts: Sequence[str]) -> np.ndarray:
        """Sentence vectors float32 `[N, d]`."""
        raise NotImplementedError


class VectorsLogisticRegression(_OnFrozenVectors):
    """Logistic regression on the mean of the word vectors that the run starts from.

    reads_emoji: whether it reads the emoji scores that were learned with them, as a run on mean
        word vectors does.
    """

    reads_emoji: ClassVar[bool] = True

    @classmethod
    def lacks(cls, config: Config) -> str:
        kind = encoder_class(config.encoder)
        if not issubclass(getattr(kind, "indexer_class", object), WordIndexer):
            return (
                f"found encoder = {config.encoder!r}, which reads no word vectors; expected one "
                "that does, such as bilstm"
            )
        if config.vector_method == "random" and not (
            config.vectors or config.init or config.pretrain
        ):
            return (
                "found vector_method = 'random', that is no word vectors; expected some: name "
                "another method, or a file as vectors"
            )
        return ""

    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> VectorsLogisticRegression:
        self.names, labels, dev_labels = class_indices(train, dev)
        held = None if dev is None else self._features(dev[0])
        features = self._features(train[0])
        self.probe = fit_probe(
            *(features, labels, held, dev_labels),
            learned=False,
            unit_length=True,
            beside=self._indexer.emoji_scores if self.reads_emoji else None,
            texts=train[0],
        )
        self.settings = {"C": self.probe.c}
        return self

    @property
    def _indexer(self) -> WordIndexer:
        assert self.run is not None and isinstance(self.run.indexer, WordIndexer)
        return self.run.indexer

    def _features(self, texts: Sequence[str]) -> np.ndarray:
        assert self.run is not None and self._indexer.table is not None
        return mean_vectors(self.run.store(texts), self._indexer.table)


class PlainVectorsLogisticRegression(VectorsLogisticRegression):
    """The same without emoji scores: what the word vectors alone are worth."""

    reads_emoji = False


class PretrainedLogisticRegression(_OnFrozenVectors):
    """Logistic regression on the sentence vectors of the pretrained encoder, frozen.

    The encoder is the one layer that was pretrained, over the vectors it was pretrained with. Its
    pooling is the one with the lowest log loss on dev, the first of equals in the order of
    `POOLINGS`; with fewer than `FEWEST_DEV_ROWS` dev rows the mean.
    """

    @classmethod
    def lacks(cls, config: Config) -> str:
        if not encoder_class(config.encoder).reads_pretrained:
            return (
                f"found encoder = {config.encoder!r}, which cannot start from a pretrained "
                "encoder; expected one that can, such as bilstm"
            )
        if not (config.init or config.pretrain):
            return "found no pretrained encoder; expected one: give init or pretrain"
        return ""

    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> PretrainedLogisticRegression:
        assert self.run is not None
        self.names, labels, dev_labels = class_indices(train, dev)
        rows = self.run.store(train[0])
        held = None if dev is None else self.run.store(dev[0])
        few = held is None or len(held) < FEWEST_DEV_ROWS
        best: float | None = None
        for pooling in POOLINGS[:1] if few else POOLINGS:
            encoder = frozen_encoder(self.run, pooling)
            dev_features = None if held is None else sentence_vectors(encoder, held)
            features = sentence_vectors(encoder, rows)
            probe = fit_probe(
                *(features, labels, dev_features, dev_labels),
                learned=False,
                unit_length=True,
                beside=frozen_scores(self.run, pooling),
                texts=train[0],
            )
            loss = 0.0
            if dev_features is not None and dev_labels is not None:
                loss = log_loss(probe.probabilities(dev_features), dev_labels)
            if best is None or loss < best:
                best = loss
                self._keep(encoder, probe, pooling)
        return self

    def _keep(self, encoder: Encoder, probe: LogisticRegressionProbe, pooling: str) -> None:
        self.encoder, self.probe = encoder, probe
        self.settings = {"pooling": pooling, "C": probe.c}

    def _features(self, texts: Sequence[str]) -> np.ndarray:
        assert self.run is not None
        return sentence_vectors(self.encoder, self.run.store(texts))


def frozen_scores(run: RunText, pooling: str) -> np.ndarray | None:
    """The `Encoder.emoji_scores` of a `frozen_encoder`."""
    config = replace(run.config, layers=1, members=1, pooling=pooling)
    return encoder_class(config.encoder).emoji_scores(config, run.indexer)


def frozen_encoder(run: RunText, pooling: str) -> Encoder:
    """The pretrained encoder that a run starts from, in evaluation mode, before any training.

    Torch's random state stays as it is. Raises ConfigError where the sizes of the run are not
    those of the folder, RunError where the folder is damaged.
    """
    config = replace(run.config, layers=1, pooling=pooling)
    with torch.random.fork_rng(devices=[]):
        encoder = encoder_class(config.encoder).build(config, run.indexer)
    return encoder.to(torch.device(config.device)).finish()


#: Of the regression.
ITERATIONS, SEED = 100, 42


def fit_benchmark(features: np.ndarray, labels: Sequence[str]) -> Any:
    """MTEB's classifier on features `[N, d]`."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LogisticRegression(max_iter=ITERATIONS, random_state=SEED)
        return model.fit(features, labels)


class VectorsBenchmark(VectorsLogisticRegression):
    """MTEB's classifier on the mean of the word vectors that the run starts from."""

    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> VectorsBenchmark:
        self.model = fit_benchmark(self._features(train[0]), train[1])
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        return [str(label) for label in self.model.predict(self._features(texts))]

    def predict_proba(self, texts: Sequence[str]) -> np.ndarray:
        shares: np.ndarray = self.model.predict_proba(self._features(texts))
        return shares


class PretrainedBenchmark(PretrainedLogisticRegression):
    """MTEB's classifier on the mean token states of the pretrained encoder, frozen."""

    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> PretrainedBenchmark:
        assert self.run is not None
        self.encoder = frozen_encoder(self.run, "mean")
        self.model = fit_benchmark(self._features(train[0]), train[1])
        return self

    predict = VectorsBenchmark.predict
    predict_proba = VectorsBenchmark.predict_proba
