"""Which objective trains which member? Encoders that learnt differently err differently.

Members of one objective differ by their seed alone and agree on most of what they get wrong.
Where a second objective is named it trains every second member, from the second on; the probe
then reads both kinds of features side by side.
"""

from __future__ import annotations

from dataclasses import replace

from superconext.config.parameters import Config
from superconext.core.errors import ConfigError
from superconext.objectives.catalogue import check_objective, objective_class

#: Between the seeds of two members: runs whose seeds are neighbours have no member in common,
#: so that their spread is what it seems.
_STRIDE = 1_000_000
_SEEDS = 2**31


def member_config(config: Config, member: int) -> Config:
    """What the member of number `member`, from 0, is trained by, its seed among it.

    `options` are the first objective's; the second has its defaults.
    """
    config = replace(config, seed=(config.seed + member * _STRIDE) % _SEEDS)
    if config.second_objective is None or member % 2 == 0:
        return config
    return replace(
        config,
        objective=config.second_objective,
        batch_size=config.second_batch_size or config.batch_size,
        options=None,
    )


def kinds(config: Config) -> list[Config]:
    """The one or two configurations that members are trained by."""
    return [member_config(config, member) for member in range(min(config.members, 2))]


def reading_pool(config: Config) -> Config | None:
    """The first of `kinds` whose objective learns from unlabelled text, or None."""
    for kind in kinds(config):
        if objective_class(kind.objective).needs_pool:
            return kind
    return None


def check_members(config: Config) -> None:
    """Raise ConfigError where there are too few members, or the second objective is unknown."""
    if config.probe_rows == "unseen" and config.members < 2:
        raise ConfigError(
            f"probe_rows = 'unseen' with members = {config.members}; expected at least 2 members, "
            "each of which leaves out a part of the rows: set members to 5"
        )
    if config.second_objective is not None:
        check_objective(config.second_objective)


def unused_objective(config: Config) -> str | None:
    """What to tell of a second objective that no member is trained with; None where one is."""
    if config.second_objective is None or config.members > 1:
        return None
    return (
        f"members = {config.members}, so second_objective = {config.second_objective!r}, which "
        "trains every second one, is not used"
    )
