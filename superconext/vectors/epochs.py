"""How far has the training of word vectors come? Told to the user, and kept to go on from.

gensim trains; this is what it calls after each pass over the text. A state holds the trained arrays
and the random state in one safetensors file, written at most every `SAVED_EVERY` seconds. A
training that goes on from one ends with the same bits, for one worker, as one that was not stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

#: Seconds of training that a stop may lose beside the pass it falls into: writing takes about one.
SAVED_EVERY = 30.0


class Epochs:
    """gensim callback: reports the fraction of the passes that is done, and keeps states.

    Args:
        total: passes over the text.
        report: called with the fraction.
        state: file of the state; None to keep none.
        check: called after each pass; raises if the text could not be read to its end, which gensim
            does not see. Nothing of such a pass is kept.

    Attributes:
        done: passes that are done.
    """

    def __init__(
        self,
        total: int,
        report: Callable[[float], None] | None,
        state: Path | None,
        check: Callable[[], None],
    ) -> None:
        self.total, self.done, self.state = total, 0, state
        self._check = check
        self._report = report or (lambda done: None)
        self._saved = time.monotonic()

    def restore(self, model: Any) -> None:
        """Put a model of the same text and settings where its state is, if there is a whole one."""
        if self.state is None or not self.state.exists():
            return
        from superconext.core.state_file import DAMAGE, read_state

        try:
            facts, tensors = read_state(self.state)
            saved = {name: tensors[name].numpy() for name in (*_arrays(model), "random")}
            if any(saved[name].shape != own.shape for name, own in _arrays(model).items()):
                raise ValueError("of another size")
            model.random.set_state(("MT19937", saved["random"], *facts["random"]))
        except DAMAGE:
            return  # begun anew, which costs time alone
        for name, own in _arrays(model).items():
            own[:] = saved[name]
        self.done = facts["done"]

    def train(self, model: Any, token_lists: Any, sentences: int, words: int) -> None:
        """Run the passes that are left."""
        first, last, before, total = model.alpha, model.min_alpha, self.done, self.total

        def rate(progress: float, epoch: int) -> float:
            # gensim's own line, which counts passes from this call's first.
            gone = (epoch + before + progress) / total
            return float(max(last, first - (first - last) * gone))

        model._get_next_alpha = rate
        model.train(
            token_lists,
            total_examples=sentences,
            total_words=words,
            epochs=total - before,
            callbacks=(self,),
        )

    def on_train_begin(self, model: Any) -> None:
        self._report(self.done / self.total)

    def on_train_end(self, model: Any) -> None:
        pass

    def on_epoch_begin(self, model: Any) -> None:
        pass

    def on_epoch_end(self, model: Any) -> None:
        self._check()
        self.done += 1
        if self.done < self.total and time.monotonic() - self._saved >= SAVED_EVERY:
            self._save(model)
        self._report(self.done / self.total)

    def _save(self, model: Any) -> None:
        if self.state is None:
            return
        import torch

        from superconext.core.state_file import write_state

        _, keys, *more = model.random.get_state()
        arrays = {**_arrays(model), "random": keys}
        try:
            self.state.parent.mkdir(parents=True, exist_ok=True)
            write_state(
                self.state,
                {"done": self.done, "random": [int(more[0]), int(more[1]), float(more[2])]},
                {name: torch.from_numpy(value) for name, value in arrays.items()},
            )
        except OSError:
            self.state = None  # a state spares time; without room for it training goes on
        self._saved = time.monotonic()


def _arrays(model: Any) -> dict[str, np.ndarray]:
    """What training moves."""
    keyed = model.wv
    if hasattr(keyed, "vectors_vocab"):
        return {
            "words": keyed.vectors_vocab, "ngrams": keyed.vectors_ngrams, "output": model.syn1neg
        }  # fmt: skip
    return {"words": keyed.vectors, "output": model.syn1neg}
