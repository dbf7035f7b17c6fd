"""fastText's own classifier, where its package is installed (the extra `fasttext`).

Source: Joulin et al. (2017), "Bag of tricks for efficient text classification". One thread
and a seed, so that the same rows give the same labels.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from superconext.baselines.baseline import Baseline, Split
from superconext.core.errors import MissingExtraError, TrainingError
from superconext.probe.base import FEWEST_DEV_ROWS

#: Epochs and lengths of character n-grams (none, 2 to 5) tried on dev, in this order.
EPOCHS: tuple[int, ...] = (5, 15, 50)
SUBWORDS: tuple[tuple[int, int], ...] = ((0, 0), (2, 5))

#: Settings that are not chosen. fastText's default of two million buckets would take 800 MB.
FIXED: dict[str, Any] = {"lr": 0.5, "dim": 100, "wordNgrams": 2, "bucket": 200_000}

#: Begins a label in fastText's file; a private character that is taken out of the texts.
_PREFIX = "\ue000"


class FastText(Baseline):
    """A linear classifier on the mean of word, word 2-gram and character n-gram vectors.

    Epochs and character n-grams are those with the highest dev accuracy, the first of
    equals in the order above; with fewer than `FEWEST_DEV_ROWS` dev rows the last of both.
    """

    seeded = True

    @classmethod
    def check(cls) -> None:
        _module()

    def fit(self, train: Split, dev: Split | None, seed: int = 0) -> FastText:
        """Raises MissingExtraError without the package, TrainingError where it gives up."""
        fasttext = _module()
        self.names = sorted(set(train[1]))
        grid = [(epochs, lengths) for epochs in EPOCHS for lengths in SUBWORDS]
        chosen = dev is not None and len(dev[1]) >= FEWEST_DEV_ROWS
        best = -1.0
        with tempfile.TemporaryDirectory(prefix="superconext-") as folder:
            file = Path(folder) / "train.txt"
            lines = [
                f"{_PREFIX}{self.names.index(label)} {_line(text)}\n"
                for text, label in zip(*train, strict=True)
            ]
            file.write_text("".join(lines), encoding="utf-8", newline="\n")
            for epochs, lengths in grid if chosen else grid[-1:]:
                model = _train(fasttext, file, epochs, lengths, seed)
                accuracy = 0.0
                if dev is not None and chosen:
                    labels = _labels(model, dev[0], self.names)
                    accuracy = sum(map(str.__eq__, labels, dev[1])) / len(labels)
                if accuracy > best:
                    best, self.model = accuracy, model
                    self.settings = {"epochs": epochs, "minn": lengths[0], "maxn": lengths[1]}
        return self

    def predict(self, texts: Sequence[str]) -> list[str]:
        return _labels(self.model, texts, self.names)


def _module() -> Any:
    """The package fasttext, or MissingExtraError."""
    try:
        import fasttext
    except ImportError:
        raise MissingExtraError("The baseline fasttext", "fasttext") from None
    return fasttext


def _train(fasttext: Any, file: Path, epochs: int, lengths: tuple[int, int], seed: int) -> Any:
    try:
        return fasttext.train_supervised(
            str(file),
            epoch=epochs,
            minn=lengths[0],
            maxn=lengths[1],
            label=_PREFIX,
            thread=1,
            seed=seed,
            verbose=0,
            **FIXED,
        )
    except (RuntimeError, ValueError) as error:
        raise TrainingError(
            f"fastText with {epochs} epochs gave up ({error}); expected it to end: leave the "
            "baseline fasttext out"
        ) from None


def _line(text: str) -> str:
    """A text as fastText may read it: on one line, in lower case as for other baselines."""
    text = text.encode("utf-8", "replace").decode("utf-8").replace(_PREFIX, " ")
    # This word is the line's end to fastText.
    return " ".join(word for word in text.lower().split() if word != "</s>")


def _labels(model: Any, texts: Sequence[str], names: Sequence[str]) -> list[str]:
    # A list at a time: for a single text some releases do not work with NumPy 2.
    predicted, _ = model.predict([_line(text) for text in texts])
    return [
        names[int(labels[0].removeprefix(_PREFIX))] if labels else names[0] for labels in predicted
    ]
