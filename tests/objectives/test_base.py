"""Options of one objective, from text."""

from dataclasses import dataclass

import pytest

from superconext.core.errors import ConfigError
from superconext.objectives.base import parse_options


@dataclass(frozen=True)
class Options:
    margin: float = 0.2
    form: str = "hard"
    heads: int = 4
    stable: bool = True


def test_values_are_read_by_type_and_the_rest_keeps_its_default():
    assert parse_options(None, Options) == parse_options(" ", Options) == Options()
    expected = Options(margin=1.0, form="soft", stable=False)
    assert parse_options("margin=1, form = soft,stable=No", Options) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("margin", "expected name=value$"),
        ("margin=1,5", "found '5', expected name=value: write 1.5 with a decimal point"),
        ("margn=1", "did you mean 'margin'"),
        (
            "temprature=3",
            "this objective has no .*parameter temperature .--temperature.\\?",
        ),
        ("zzz=1", "known: margin, form, heads, stable"),
        ("heads=1.5", "a whole number"),
        ("margin=inf", "finite"),
        ("stable=maybe", "yes or no"),
    ],
)
def test_mistakes_are_named(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_options(text, Options)
