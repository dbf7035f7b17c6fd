"""Predicting with onnxruntime from an exported folder; needs NumPy and onnxruntime alone.

This module and what it imports are copied into the folder (`export.standalone`).
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from superconext.core.arrays import read_arrays
from superconext.core.errors import MissingExtraError, check_texts
from superconext.core.files import file_sha256
from superconext.core.label_types import typed_labels
from superconext.data.token_store import OovWords
from superconext.encoders.indexer import TextIndexer, WordIndexer
from superconext.encoders.subword_indexer import SubwordIndexer
from superconext.export.exported_model import ExportedModel, check_seal, checked_facts, opening
from superconext.probe.base import softmax
from superconext.probe.ensemble import ENSEMBLES, Ensemble
from superconext.probe.logistic_regression import check_weights

#: Of `model.json`. 2: with the n-gram models that answer beside the encoder.
FORMAT = 2

#: The folder of the n-gram models in an export.
ENSEMBLE = "ensemble"

#: Sentences and tokens, padding counted, that one call of the session gets at most: what a
#: transformer's attention holds grows with the sentences times the square of the longest.
_BLOCK, _TOKENS = 256, 1 << 13


class OnnxModel(ExportedModel):
    """Text to probabilities, those of the run, from a folder of `superconext export RUN --format
    onnx`: encoders and probe by onnxruntime, the rest by NumPy.

    Attributes:
        ensemble: what answers beside the probe, as in `Model`.

    Raises MissingExtraError without onnxruntime, RunError when the folder is damaged.
    """

    def __init__(self, folder: str | Path, threads: int = 1) -> None:
        self.folder = folder = Path(folder)
        self.ensemble: Ensemble | None = None
        with opening(folder, "ONNX", "onnx"):
            facts = json.loads((folder / "model.json").read_text(encoding="utf-8"))
            if facts["format"] != FORMAT:
                raise ValueError(f"format {facts['format']!r}, this version reads {FORMAT}")
            for name, digest in facts["files"].items():
                if file_sha256(folder / name) != digest:
                    raise ValueError(f"{name} is not what model.json lists")
            self.classes, self.columns = checked_facts(facts)
            self.classes_ = typed_labels(self.classes, facts.get("label_type", "str"))
            kind = SubwordIndexer if "subwords" in facts else WordIndexer
            if "subwords" not in facts and not (folder / "vectors").is_dir():
                raise FileNotFoundError(errno.ENOENT, "", str(folder / "vectors"))
            self.indexer: TextIndexer = kind.from_onnx(folder, facts)
            if facts["ensemble"] is not None:
                self.ensemble = ENSEMBLES[facts["ensemble"]].load(folder / ENSEMBLE)
                tfidf = self.ensemble.tfidf
                size = len(self.classes), len(tfidf.idf)
                check_weights(tfidf.coef, tfidf.intercept, *size, "TF-IDF")
            if facts.get("priors") is not None:
                raise ValueError("it corrects by script, which this version cannot")
            arrays = read_arrays(folder / "ngrams.safetensors")
            self._session = session_of(folder / "model.onnx", threads)
            shapes = {output.name: output.shape for output in self._session.get_outputs()}
            count = shapes["scores"][-1]
            if isinstance(count, int) and count != len(self.classes):
                raise ValueError(f"{len(self.classes)} classes, but {count} scores in model.onnx")
            check_seal(facts, "model.json")
        members = range(len(arrays) // 2)
        self._members = [(arrays[f"unknown.{m}"], arrays[f"ngrams.{m}"]) for m in members]

    def probabilities(self, texts: Sequence[str]) -> np.ndarray:
        """Class probabilities float64 `[N, C]`, columns as `classes`."""
        texts = check_texts(texts, some=False)
        if not texts:
            return np.empty((0, len(self.classes)))
        shares = softmax(self._answer(texts)[0])
        if self.ensemble is not None:
            shares = self.ensemble.combined(texts, shares)
        return shares

    def features(self, texts: Sequence[str]) -> np.ndarray:
        """Sentence vectors float32 `[N, d]`."""
        texts = check_texts(texts, some=False)
        return self._answer(texts)[1] if texts else self._answer([""])[1][:0]

    def _answer(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The probe's scores float64 `[N, C]` and the sentence vectors float32 `[N, d]`."""
        store = self.indexer.store(texts)
        oov_words = np.empty((0, 0), np.float32)
        if store.oov_words is not None:
            new = [oov_word_vectors(store.oov_words, *member) for member in self._members]
            oov_words = np.hstack(new)
        # Sentences of alike length together save the arithmetic on padding.
        order = np.argsort(store.lengths, kind="stable")
        parts = [
            run_session(self._session, store.pad(rows)[0], oov_words)
            for rows in _blocks(order, store.lengths)
        ]
        back = np.argsort(order)
        scores, sentences = (np.concatenate(part)[back] for part in zip(*parts, strict=True))
        return scores, sentences


def _blocks(order: np.ndarray, lengths: np.ndarray) -> Iterator[np.ndarray]:
    """`order`, by ascending length, in parts within `_BLOCK` and `_TOKENS`, or of one sentence."""
    start = 0
    for stop in range(1, len(order)):
        count = stop - start + 1
        if count > _BLOCK or count * int(lengths[order[stop]]) > _TOKENS:
            yield order[start:stop]
            start = stop
    yield order[start:]


def oov_word_vectors(oov_words: OovWords, unknown: np.ndarray, ngrams: np.ndarray) -> np.ndarray:
    """Vectors `[U, e]` of words the vocabulary lacks, as `encoders.words` makes them.

    unknown: the unknown word's vector `[e]`. ngrams: n-gram vectors `[G, e]`.
    """
    vectors = np.where(oov_words.known[:, None], oov_words.vectors, unknown)
    pieces = oov_words.ngrams
    if pieces is not None and len(pieces.ids):
        counts = np.diff(pieces.offsets)
        some = np.flatnonzero(counts)
        sums = np.add.reduceat(ngrams[pieces.ids], pieces.offsets[some], axis=0)
        vectors[some] += sums * pieces.scales(some)[:, None]
    return vectors.astype(np.float32)


def session_of(path: Path, threads: int = 1) -> Any:
    """An onnxruntime session on the CPU. Raises MissingExtraError without it, and where it is too
    old."""
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtraError("Running ONNX models", "serve") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3  # it would warn that `oov_words` can be left out
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # a class of its own for each status
        if "NOT_IMPLEMENTED" not in str(error):
            raise
        newer = "onnxruntime 1.20.1 or newer, which"
        raise MissingExtraError(f"{path}", "serve", newer) from error


def run_session(
    session: Any, ids: np.ndarray, oov_words: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(the probe's scores `[N, C]`, sentence vectors `[N, d]`) of what the graph takes.

    ids: int64 `[N, T]`; oov_words: float32 `[U, members * e]`.
    """
    fed = {"ids": ids.astype(np.int64), "oov_words": oov_words}
    scores, sentence = session.run(["scores", "sentence"], fed)
    return scores, sentence
