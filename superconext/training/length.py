"""How many epochs does training take, of few rows and of many?

An encoder learns from each row it reads, and the more rows there are, the fewer times it has to
read each: of seven and of seventeen thousand rows six epochs were worth more than fifteen, and
more than three (docs/ablations.md has the figures).
"""

from __future__ import annotations

from dataclasses import replace

from superconext.config import Config

#: Epochs that are made of however many rows.
FEWEST_EPOCHS = 6


def shortened(config: Config, rows: int) -> Config:
    """The configuration with as many whole epochs as `read_limit` allows `rows` rows.

    At least `FEWEST_EPOCHS`, or `epochs` where that is less; never more than `epochs`. Where
    `steps_per_epoch` is given, an epoch has nothing to do with the rows and all are made.
    """
    if config.read_limit is None or config.steps_per_epoch is not None:
        return config
    allowed = max(config.read_limit // max(rows, 1), FEWEST_EPOCHS)
    return replace(config, epochs=min(config.epochs, allowed))
