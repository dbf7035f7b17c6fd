"""Rows that train the encoder beside the training rows: those of a related set, and soft labels.

Another dialect of the same task, another source of the same dialect: what makes a sentence positive
there is much the same, while how often it is, and in what words, is not. So these rows train the
encoder, and the probe, which says how often and where the classes part, is fitted on the training
rows alone. It is transfer from a source domain with labels (Pan and Yang, 2010), in one training.

Soft labels are texts whose target is a share of each class in place of one label. They come from a
file, such as the probabilities that another model gives unlabelled texts (distillation: Hinton,
Vinyals and Dean, 2015), and from annotators who differ. Such rows train encoder and probe; nothing
is evaluated or chosen on them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from superconext.core.blank import is_blank
from superconext.core.errors import ConfigError, DataError, plural
from superconext.data.columns import own_name
from superconext.data.dataset import respelt
from superconext.data.duplicates import Decontamination
from superconext.data.lines import UNNAMED, shown, some_shown
from superconext.data.reading import RowStream, read_labelled
from superconext.text.tokenize import Tokenizer


@dataclass(frozen=True)
class AuxiliaryRows:
    """Tokens and labels of the rows kept.

    facts: file, hash, rows kept, rows left out for their label and for what they say.
    respelt: which labels left out differ from the classes in spelling alone, as a clause.
    """

    tokens: list[list[str]]
    labels: list[str]
    facts: dict[str, Any]
    respelt: str = ""

    @property
    def summary(self) -> str:
        """What was read, for the user."""
        facts = self.facts
        return (
            f"related: {plural(facts['rows'], 'row')} of {facts['file']}; left out "
            f"{facts['other_label']} of another label and {facts['held']} that repeat a "
            f"held-out text{self.respelt}"
        )


def auxiliary_rows(
    path: str, tokenizer: Tokenizer, classes: Sequence[str], held: Sequence[str]
) -> AuxiliaryRows:
    """The rows of a labelled file whose label is one of the classes and whose words are not those
    of a held text.

    Raises DataError for a file that cannot be read, ConfigError where no row is left.
    """
    dataset = read_labelled(path, encoding=UNNAMED)
    known, held_back = set(classes), Decontamination(held, tokenizer)
    labels, tokens, others = [], [], 0
    rows = zip(dataset.texts, tokenizer.many(dataset.texts), dataset.labels, strict=True)
    for text, words, label in rows:
        if label not in known:
            others += 1
        elif not held_back.repeats(text, words):
            labels.append(label)
            tokens.append(words)
    names = sorted(set(dataset.labels))
    alike = respelt((name for name in names if name not in known), classes, folding=False)
    if not labels and held_back.removed:
        raise ConfigError(
            f"related = {path!r}: found {plural(held_back.removed, 'row')} of the training rows' "
            f"labels, which all repeat a held-out text, and {others} of another label{alike}; "
            "expected others to learn from: take other texts"
        )
    if not labels:
        found, wanted = some_shown(names), some_shown(classes)
        raise ConfigError(
            f"related = {path!r}: found rows labelled {found} and none to learn from; expected "
            f"some labelled {wanted}, like the training rows" + (alike or ": rename its labels")
        )
    facts = {
        "file": Path(dataset.source).name,
        "sha256": dataset.sha256,
        "rows": len(labels),
        "other_label": others,
        "held": held_back.removed,
    }
    return AuxiliaryRows(tokens, labels, facts, alike)


#: How far from 1 the shares of a text may sum, for their rounding; they are divided by the sum.
TOLERANCE = 0.01


@dataclass(frozen=True)
class SoftRows:
    """Tokens and shares float64 `[M, C]` of the rows kept.

    facts: rows kept and rows left out for what they say; file and hash, where there is one.
    """

    tokens: list[list[str]]
    shares: np.ndarray
    facts: dict[str, Any]


def soft_rows(
    path: str | None,
    ties: Sequence[tuple[str, Mapping[str, float]]],
    tokenizer: Tokenizer,
    classes: Sequence[str],
    held: Sequence[str],
) -> SoftRows | None:
    """The rows of a file and of annotators' ties whose words are not those of a held text, without
    ties with a label that is no class; None where there are none.

    Raises DataError for a file that cannot be read, ConfigError where no row of it is left.
    """
    if path is None and not ties:
        return None
    facts: dict[str, Any] = {}
    # A tie with a label that is no class says nothing of how likely the others are.
    whole = [(text, shares) for text, shares in ties if set(shares) <= {*classes}]
    texts, rows = [text for text, _ in whole], list(share_matrix([s for _, s in whole], classes))
    if path is not None:
        more, shares, sha256 = _read(path, classes)
        texts, rows = [*texts, *more], [*rows, *shares]
        facts = {"file": Path(path).name, "sha256": sha256}
    held_back = Decontamination(held, tokenizer)
    kept = [
        (words, shares)
        for text, words, shares in zip(texts, tokenizer.many(texts), rows, strict=True)
        if not held_back.repeats(text, words)
    ]
    if not kept:
        if path is None:
            return None
        raise ConfigError(
            f"soft_labels = {path!r}: found {len(rows)} texts, which all repeat a held-out "
            "text; expected others to learn from: take other texts"
        )
    facts |= {"rows": len(kept), "held": held_back.removed}
    return SoftRows([words for words, _ in kept], np.array([s for _, s in kept]), facts)


def share_matrix(shares: Sequence[Mapping[str, float]], classes: Sequence[str]) -> np.ndarray:
    """Shares by label as float64 `[N, C]`, those of other labels left out; a row sums to 1, or to 0
    where it has no class."""
    matrix = np.array([[row.get(name, 0.0) for name in classes] for row in shares])
    matrix = matrix.reshape(len(shares), len(classes))
    sums = matrix.sum(axis=1, keepdims=True)
    divided: np.ndarray = np.divide(matrix, sums, out=matrix, where=sums > 0)
    return divided


def targets(
    labels: np.ndarray, given: np.ndarray | None, soft: SoftRows | None, classes: int
) -> np.ndarray | None:
    """The target of every training row float64 `[N + M, C]`; None where each is one class.

    labels: class indices `[N]`. given: shares of the first of these rows. soft: M rows behind them.
    """
    every = np.eye(classes)[labels]
    if given is not None:
        every[: len(given)] = given
    if soft is not None:
        every = np.concatenate([every, soft.shares])
    return None if (every.max(axis=1) == 1).all() else every


def drawn_labels(shares: np.ndarray, stream: np.random.Generator) -> np.ndarray:
    """A class index for each row `[N]`, drawn with the probabilities `[N, C]`."""
    edges = shares.cumsum(axis=1, dtype=np.float64)
    below = stream.random((len(shares), 1)) * edges[:, -1:] >= edges[:, :-1]
    drawn: np.ndarray = below.sum(axis=1, dtype=np.int64)
    return drawn


def _read(path: str, classes: Sequence[str]) -> tuple[list[str], list[np.ndarray], str]:
    """Texts and their shares `[C]`, without rows that have neither; and the file's SHA-256."""
    stream = RowStream(path, classes=classes, every_row=True, encoding=UNNAMED)
    rows, sha256 = stream.collect()
    texts, shares = [], []
    for text, line, given in zip(rows.texts, rows.lines, rows.votes, strict=True):
        where = f"{stream.name}, line {line}"
        cells = {name.strip(): cell for name, cell in dict(given).items()}
        if is_blank(text) and cells:
            raise DataError(f"{where}: found an empty text, expected one: remove the row")
        if not is_blank(text):
            numbers = np.array(
                [_share(cells.get(own_name(cells, name), ""), name, where) for name in classes]
            )
            if abs(numbers.sum() - 1) > TOLERANCE:
                raise DataError(
                    f"{where}: found shares of {', '.join(shown(name, 24) for name in classes[:8])}"
                    f" that sum to {numbers.sum():.4g}, expected 1: give every class of the "
                    "training rows, and no other, a column"
                )
            texts.append(text)
            shares.append(numbers / numbers.sum())
    return texts, shares, sha256


def _share(cell: str, name: str, where: str) -> float:
    try:
        number = float(cell)
    except ValueError:
        number = math.nan
    if not 0 <= number <= 1 + TOLERANCE:
        raise DataError(
            f"{where}: found {shown(cell, 24)} as the share of {shown(name, 24)}, expected a "
            "number from 0 to 1: correct the row"
        )
    return number
