"""Blank texts: what does not show is nothing, and every class is as likely."""

import unicodedata

import numpy as np
import pytest

from superconext.core.blank import BLANKS, INVISIBLE, is_blank, uniform_for_blank


@pytest.mark.parametrize(
    "text",
    [
        *("", " \t\n", "\u00a0\u3000", "\u200b\u200d\ufeff", "\u2800", "\u3164", "\uffa0"),
        *("\ufe0f", "\u034f", "\x00", "\x07\x9f", "\u2800 \u3164\ufe0f"),
    ],
)
def test_what_does_not_show_is_blank(text: str) -> None:
    assert is_blank(text)
    assert not is_blank(f"{text}a{text}")


@pytest.mark.parametrize("text", [".", "\u2764\ufe0f", "\u0301", "?", "0"])
def test_any_sign_that_shows_is_not_blank(text: str) -> None:
    assert not is_blank(text)


def test_the_controls_are_those_of_unicode() -> None:
    controls = {c for c in range(0x110000) if unicodedata.category(chr(c)) == "Cc"}
    assert {c for c in controls if not is_blank(chr(c))} == set()
    assert not INVISIBLE & BLANKS


def test_scores_of_blank_texts_prefer_no_class() -> None:
    scores = np.array([[3.0, -1.0, 0.0, 2.0]] * 3)
    found = uniform_for_blank(["zwin", "\u2800", "khayb"], scores)
    assert found[1].tolist() == [0.25] * 4
    assert np.array_equal(found[[0, 2]], scores[[0, 2]])
    assert (scores == scores[0]).all()
