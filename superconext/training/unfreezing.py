"""When do word vectors begin to be trained? At an epoch that the user may name.

A fresh encoder's first gradients are large and of no use to the vectors; kept still until
the layers above have settled, they lose less of what they brought along.

Source: Howard and Ruder (2018), "Universal language model fine-tuning for text
classification", section 3.3; here with two steps, all else and then the vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from superconext.core.errors import ConfigError
from superconext.training.callbacks import Callback, Training
from superconext.training.length import decided_epochs

if TYPE_CHECKING:
    from superconext.config.parameters import Config
    from superconext.encoders.embedding import WordEmbedding


class UnfreezeVectors(Callback):
    """Keeps the word rows still until an epoch, and free from it on.

    The rows are the optimiser's from the start, so a checkpoint has one shape; as long as
    they get no gradient, it passes over them. Which epoch it is says all there is to know,
    so a resumed training needs no state of this. A later stage finds the rows free.

    Args:
        embedding: its word rows; built to be tuned.
        epoch: the first, counted from 1, in which they are trained.
    """

    every_process = True

    def __init__(self, embedding: WordEmbedding, epoch: int) -> None:
        self.embedding, self.epoch = embedding, epoch

    def on_epoch_begin(self, trainer: Training, epoch: int) -> None:
        self.embedding.words.requires_grad_(epoch + 1 >= self.epoch)

    def on_train_end(self, trainer: Training) -> None:
        self.embedding.words.requires_grad_(True)


def unfreezing(embedding: WordEmbedding, epoch: int | None) -> list[Callback]:
    """The hooks for `unfreeze_epoch`; none where it is not set."""
    return [] if epoch is None else [UnfreezeVectors(embedding, epoch)]


def check_unfreezing(config: Config) -> None:
    """Raise ConfigError where no epoch is left to train the vectors in."""
    epochs = decided_epochs(config)
    if (config.unfreeze_epoch or 0) > epochs and not config.finetune:
        raise ConfigError(
            f"unfreeze_epoch = {config.unfreeze_epoch}: training ends before, with epoch "
            f"{epochs}; expected an epoch up to that: change it, or epochs"
        )
