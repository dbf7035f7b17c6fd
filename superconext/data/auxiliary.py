"""Auxiliary data: rows of a related labelled set that the encoder learns from too.

Another dialect of the same task, another source of the same dialect: what makes a sentence positive
there is much the same, while how often it is, and in what words, is not. So these rows train the
encoder, and the probe, which says how often and where the classes part, is fitted on the training
rows alone. It is transfer from a source domain with labels (Pan and Yang, 2010), in one training.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from superconext.core.errors import ConfigError
from superconext.data.duplicates import Decontamination
from superconext.data.reading import read_labelled
from superconext.text.tokenize import Tokenizer


@dataclass(frozen=True)
class AuxiliaryRows:
    """Tokens and labels of the rows kept.

    facts: file, hash, rows kept, rows left out for their label and for what they say.
    """

    tokens: list[list[str]]
    labels: list[str]
    facts: dict[str, Any]

    @property
    def summary(self) -> str:
        """What was read, for the user."""
        facts = self.facts
        return (
            f"related: {facts['rows']} rows of {facts['file']}; left out {facts['other_label']} of "
            f"another label and {facts['held']} that say what a dev or test text says"
        )


def auxiliary_rows(
    path: str, tokenizer: Tokenizer, classes: Sequence[str], held: Sequence[str]
) -> AuxiliaryRows:
    """The rows of a labelled file whose label is one of the classes and whose words are not those
    of a held text.

    Raises DataError for a file that cannot be read, ConfigError where no row is left.
    """
    dataset = read_labelled(path)
    known, held_back = set(classes), Decontamination(held, tokenizer)
    labels, tokens, others = [], [], 0
    for words, label in zip(tokenizer.many(dataset.texts), dataset.labels, strict=True):
        if label not in known:
            others += 1
        elif not held_back.holds(words):
            labels.append(label)
            tokens.append(words)
    if not labels:
        raise ConfigError(
            f"related = {path!r}: found rows labelled {', '.join(sorted(set(dataset.labels))[:5])} "
            f"and none to learn from; expected some labelled {', '.join(list(classes)[:5])}, as "
            "the training rows are, that say no dev or test text: name its labels as those are"
        )
    facts = {
        "file": Path(dataset.source).name,
        "sha256": dataset.sha256,
        "rows": len(labels),
        "other_label": others,
        "held": held_back.removed,
    }
    return AuxiliaryRows(tokens, labels, facts)
