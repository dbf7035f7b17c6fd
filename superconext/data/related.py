"""Which rows of a related labelled set does the encoder learn from, beside the training rows?

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
from superconext.data.left_out import LeftOut
from superconext.data.reading import read_labelled
from superconext.text.tokenize import Tokenizer


@dataclass(frozen=True)
class Related:
    """Tokens and labels of the rows kept.

    facts: file, hash, rows kept, rows left out for their label and for what they say.
    """

    tokens: list[list[str]]
    labels: list[str]
    facts: dict[str, Any]

    @property
    def told(self) -> str:
        """What was read, for the user."""
        of = self.facts
        return (
            f"related: {of['rows']} rows of {of['file']}; left out {of['other_label']} of another "
            f"label and {of['held']} that say what a dev or test text says"
        )


def related_rows(
    path: str, tokenizer: Tokenizer, classes: Sequence[str], held: Sequence[str]
) -> Related:
    """The rows of a labelled file whose label is one of the classes and whose words are not those
    of a held text.

    Raises DataError for a file that cannot be read, ConfigError where no row is left.
    """
    corpus = read_labelled(path)
    known, left_out = set(classes), LeftOut(held, tokenizer)
    labels, tokens, others = [], [], 0
    for words, label in zip(tokenizer.many(corpus.texts), corpus.labels, strict=True):
        if label not in known:
            others += 1
        elif not left_out.holds(words):
            labels.append(label)
            tokens.append(words)
    if not labels:
        raise ConfigError(
            f"related = {path!r}: found rows labelled {', '.join(sorted(set(corpus.labels))[:5])} "
            f"and none to learn from; expected some labelled {', '.join(list(classes)[:5])}, as "
            "the training rows are, that say no dev or test text: name its labels as those are"
        )
    facts = {
        "file": Path(corpus.source).name,
        "sha256": corpus.sha256,
        "rows": len(labels),
        "other_label": others,
        "held": left_out.passed,
    }
    return Related(tokens, labels, facts)
