"""The pretrained encoder a training asks for with `pretrain`: made of its unlabelled text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from superconext.config.parameters import Config
from superconext.core.errors import ConfigError
from superconext.core.progress import Progress
from superconext.data.duplicates import Decontamination
from superconext.text.tokenize import Tokenizer
from superconext.training.pretraining.make import made_encoder, text_vectors
from superconext.training.pretraining.pretrainer import Settings
from superconext.vectors.text_corpus import Lines, Sentences


def check_pretraining(config: Config) -> None:
    """Raise ConfigError where a configuration asks for what cannot be made."""
    if config.pretrain and config.init:
        raise ConfigError(
            f"pretrain = true beside init = {config.init!r}, which is pretrained; expected one of "
            "the two: leave one out"
        )
    if config.pretrain and not config.unlabelled:
        raise ConfigError(
            "pretrain = true and no unlabelled text; expected some to learn from: name a file "
            "with one sentence a line as unlabelled"
        )


def pretrained_encoder(
    config: Config, tokenizer: Tokenizer, held: Iterable[str], progress: Progress
) -> Path:
    """The folder of an encoder pretrained on `config.unlabelled`, out of the cache or made.

    held: dev and test texts; what says the same is not learned from.

    Its words are spelt as the run's, its seed is not the run's: runs that differ in their seed
    alone share it. Everything else is as `superconext pretrain` has it by default.
    """
    assert config.unlabelled
    lines = Lines([config.unlabelled])
    text = Sentences(lines, tokenizer, None, progress, left_out=Decontamination(held, tokenizer))
    vectors = text_vectors(text, config.vectors, config.vector_dimension, progress)
    settings = Settings(hidden_size=config.hidden_size)
    with made_encoder(text, vectors, settings, config.threads, progress) as (made, cached):
        pass
    progress.say(f"encoder: pretrained on {lines.paths[0].name}{', cached' * cached}")
    for note in [*lines.notes, *vectors.notes]:
        progress.say(f"note: {note}")
    return made
