"""Options of several commands: groups in the help, registered names, what has left."""

import click
import pytest
from click.testing import CliRunner

from superconext.cli import cli
from superconext.config.parameters import BY_NAME, GROUPS
from superconext.objectives.catalogue import OBJECTIVES

WITH_PARAMETERS = ("train", "compare", "fewshot", "sweep")


def output(*words):
    return CliRunner().invoke(cli, words).output


def test_commands_stand_under_headings():
    text = output("--help")
    for heading in ("Train and use a run:", "Experiments:", "Export and share a run:"):
        assert f"\n{heading}\n" in text
    assert all(f"\n  {name} " in text for name in cli.commands)


@pytest.mark.parametrize("verb", WITH_PARAMETERS)
def test_every_parameter_stands_under_the_heading_of_its_group(verb):
    groups = [f"\n{group.capitalize()}:\n" for group in ("options", *GROUPS)]
    text = "\n" + output(verb, "--help")
    places = [text.find(group) for group in groups if group in text]
    assert places == sorted(places) and len(places) >= len(GROUPS)
    offered = {option.name for option in cli.commands[verb].params}
    for row in BY_NAME.values():
        if row.name not in offered:
            assert verb != "train" and row.name in ("objective", "seed", "baselines")
            continue
        flag = text.index(f"\n  --{row.name.replace('_', '-')} ")
        heading = max(text.rfind(group, 0, flag + 1) for group in groups)
        assert text.startswith(f"\n{row.group.capitalize()}:\n", heading), row.name


def test_an_objective_that_is_registered_later_can_be_named():
    words = ("train", "missing.tsv", "--out", "run", "--objective", "later")
    said = CliRunner().invoke(cli, words)
    assert said.exit_code == 2 and "expected one of superloss" in said.output
    OBJECTIVES.register("later", "nowhere.at_all:Later")
    try:
        assert "|later]" in output("train", "--help")
        said = CliRunner().invoke(cli, words)
        assert "Invalid value" not in said.output and said.exit_code != 2
    finally:
        del OBJECTIVES._added["later"]


def test_no_command_has_two_options_of_one_name():
    def commands(group):
        for command in group.commands.values():
            yield from commands(command) if isinstance(command, click.Group) else [command]

    for command in commands(cli):
        flags = [flag for option in command.params for flag in option.opts]
        assert len(flags) == len(set(flags)), command.name
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help, (command.name, option.name)
