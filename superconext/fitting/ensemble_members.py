"""Ensemble members: encoders of one configuration, each trained with a seed of its own."""

from __future__ import annotations

from dataclasses import replace

from superconext.config.parameters import Config
from superconext.core.errors import ConfigError

#: Between the seeds of two members: runs whose seeds are neighbours have no member in common,
#: so that their spread is what it seems.
_STRIDE = 1_000_000
_SEEDS = 2**31


def member_config(config: Config, member: int) -> Config:
    """The configuration that the member of number `member`, from 0, is trained by."""
    return replace(config, seed=(config.seed + member * _STRIDE) % _SEEDS)


def check_members(config: Config) -> None:
    """Raise ConfigError where there are too few members."""
    if config.probe_rows == "unseen" and config.members < 2:
        raise ConfigError(
            f"probe_rows = 'unseen' with members = {config.members}; expected at least 2 members, "
            "each of which leaves out a part of the rows: set members to 5"
        )
