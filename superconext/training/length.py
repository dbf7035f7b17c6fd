"""The number of epochs that training takes, by the number of rows.

An encoder learns from each row it reads, and the more rows there are, the fewer times it has to
read each: of seven and of seventeen thousand rows six epochs were worth more than fifteen
(docs/ablations.md has the figures).
"""

from __future__ import annotations

from dataclasses import replace

from superconext.config.parameters import Config

#: Epochs of few rows, the paper's number; and of however many.
MOST_EPOCHS = 15
FEWEST_EPOCHS = 6

#: Rows read in all epochs together, where that is between the two: fifteen epochs of 3,000 rows.
ROWS_READ = 45_000


def epochs_of(rows: int) -> int:
    """Epochs for a number of training rows."""
    return min(max(ROWS_READ // max(rows, 1), FEWEST_EPOCHS), MOST_EPOCHS)


def with_epochs(config: Config, rows: int) -> Config:
    """The configuration with its epochs decided: as given, or by the number of training rows.

    Where `steps_per_epoch` is given an epoch has nothing to do with the rows, and there are
    `MOST_EPOCHS`.
    """
    if config.epochs is not None:
        return config
    by_rows = epochs_of(rows) if config.steps_per_epoch is None else MOST_EPOCHS
    return replace(config, epochs=by_rows)


def decided_epochs(config: Config) -> int:
    """The epochs of a configuration that `with_epochs` has seen, or that was given them."""
    if config.epochs is None:
        raise ValueError("found a configuration whose epochs are not decided; see with_epochs")
    return config.epochs
