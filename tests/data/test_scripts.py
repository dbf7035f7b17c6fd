"""Scripts of texts."""

from __future__ import annotations

import pytest

from superconext.data.inspect import script_counts, script_of


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("الفيلم زوين بزاف", "Arabic"),
        ("had lfilm zwin bzaf 3jebni", "Latin"),
        ("ça été créé", "Latin"),
        ("شكراا bravo", "mixed"),
        ("الفيلم زوين بزاف هاد النهار ok", "Arabic"),  # 2 letters of 26
        ("ⴰⵣⵓⵍ", "Tifinagh"),
        ("привет", "Cyrillic"),
        ("123 !!! 😂😂", "no letters"),
        ("", "no letters"),
    ],
)
def test_script_of_a_text(text, script):
    assert script_of(text) == script


def test_counts_come_most_frequent_first():
    assert next(iter(script_counts(["ب", "1", "a", "b"]))) == "Latin"
    assert script_counts([]) == {}
