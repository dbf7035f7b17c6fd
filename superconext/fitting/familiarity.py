"""Familiarity of new texts: which were seen in training, and which are unlike all of those."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from superconext.core.blank import is_blank
from superconext.core.errors import plural
from superconext.probe.metrics import probability_metrics
from superconext.report.table import told_overlap

if TYPE_CHECKING:  # exports are told of their texts too, without torch
    from superconext.fitting.model import Model
    from superconext.probe.metrics import Evaluation

#: A text is unlike what the run has seen from these shares on, and such texts are common in a file
#: from this share on.
_STRANGE_WORDS, _STRANGE_SCRIPT, _COMMON = 0.8, 0.5, 0.2

_METRICS = ("n", "accuracy", "f1_macro", "f1_weighted")


def facts_of(
    model: Model, texts: Sequence[str], tokens: list[list[str]] | None = None
) -> list[dict[str, Any] | None]:
    """What the run can tell of each text: the shares of its words (`unknown_words`) and letters
    (`unseen_script`) that are new to it, the split it is in (`seen_in`); None for a blank text.

    tokens: the texts, tokenized, where that was done.
    """
    if model.indexer is None:  # of a static student
        return [None if is_blank(text) else {} for text in texts]
    tokens = model.indexer.tokenizer.many(texts) if tokens is None else tokens
    facts: list[dict[str, Any]] = [{} for _ in texts]
    unfamiliar = model.indexer.unfamiliar(tokens)
    if unfamiliar is not None:
        for fact, (words, letters) in zip(facts, unfamiliar.round(4).tolist(), strict=True):
            fact.update(unknown_words=words, unseen_script=letters)
    if model.seen is not None:
        for fact, split in zip(facts, model.seen.split_of(tokens), strict=True):
            fact["seen_in"] = split
    return [None if is_blank(text) else fact for fact, text in zip(facts, texts, strict=True)]


class Familiarity:
    """Counts over the facts of a file's texts.

    Attributes:
        texts: texts that are not blank. strange: those unlike what the run has seen. cut: those of
            which it reads `most` tokens alone, because of `why`.
        seen: how many are in each split of the run; None where that is not known.
    """

    def __init__(self) -> None:
        self.texts = self.strange = self.cut = self.most = 0
        self.why = ""
        self.seen: Counter[str] | None = None

    def add(
        self, model: Model, texts: Sequence[str], tokens: list[list[str]] | None = None
    ) -> list[dict[str, Any] | None]:
        """Count texts; returns their facts, see `facts_of`."""
        if model.indexer is not None:
            tokens = model.indexer.tokenizer.many(texts) if tokens is None else tokens
            self.cut += model.indexer.cut(tokens)
            self.most = getattr(model.indexer, "max_length", 0)
            limited = model.indexer.limited
            self.why = "its model's longest input" if limited else "--max-length of train"
        facts = facts_of(model, texts, tokens)
        for fact in facts:
            if fact is None:
                continue
            self.texts += 1
            self.strange += (
                fact.get("unknown_words", 0) >= _STRANGE_WORDS
                or fact.get("unseen_script", 0) >= _STRANGE_SCRIPT
            )
            if "seen_in" in fact:
                self.seen = Counter() if self.seen is None else self.seen
                self.seen.update(filter(None, [fact["seen_in"]]))
        return facts

    def warnings(self, overlap: dict[str, Any] | None = None) -> list[str]:
        """What a user must not miss; `overlap` is an `overlap_report` of the same texts."""
        lines = []
        if self.seen:
            told = overlap or {"train": self.seen["train"], "dev": self.seen["dev"]}
            lines.append(told_overlap({"texts": self.texts, **told}))
        return lines + self.unread() + self.strangeness()

    def unread(self) -> list[str]:
        """The warning that the run does not read the end of some texts, if it does not."""
        if not self.cut:
            return []
        texts = plural(self.texts, "text")
        return [
            f"the run reads only the first {self.most} tokens of a text ({self.why})"
            f", and {self.cut} of {texts} {'is' if self.cut == 1 else 'are'} longer"
        ]

    def strangeness(self) -> list[str]:
        """The warning that many of the texts are unlike what the run has seen, if they are."""
        if self.strange and self.strange >= _COMMON * self.texts:
            return [
                f"{self.strange} of {self.texts} texts are unlike those the run was trained on: "
                "their words or their script are new to it, and their labels are guesses "
                "(superconext predict --details shows which)"
            ]
        return []


def seen_by(model: Model, texts: Sequence[str]) -> np.ndarray | None:
    """Whether each text is among the rows of the run, bool `[N]`; None where that is not known."""
    if model.seen is None:
        return None
    return np.array([bool(fact and fact.get("seen_in")) for fact in facts_of(model, texts)], bool)


def overlap_report(
    facts: Sequence[dict[str, Any] | None],
    seen: Counter[str] | None,
    evaluation: Evaluation,
    labels: Sequence[str],
    classes: Sequence[str],
) -> dict[str, Any] | None:
    """How many of the texts `[N]` are in each split of the run, and the metrics without them.

    None if the run does not know its texts; without metrics if all or none are in them.
    """
    if seen is None:
        return None
    rest = [row for row, fact in enumerate(facts) if not (fact and fact.get("seen_in"))]
    report: dict[str, Any] = {"train": seen["train"], "dev": seen["dev"], "without": None}
    if 0 < len(rest) < len(facts):
        some = [labels[row] for row in rest]
        metrics = probability_metrics(some, evaluation.probabilities[rest], classes)
        report["without"] = {name: metrics[name] for name in _METRICS}
    return report
