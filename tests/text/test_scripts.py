"""Scripts of texts, and groups of them."""

import numpy as np
import pytest

from superconext.text.characters import rows_by_script, script_counts, script_groups, script_of


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
        ("这部电影很好看", "Han"),
        ("これは日本語です", "Japanese"),
        ("スーパーマーケット", "Japanese"),
        ("ｶﾀｶﾅ", "Japanese"),
        ("ＡＢＣ", "Latin"),
        ("ʻŌlelo Hawaiʻi", "Latin"),
        ("ᱥᱟᱱᱛᱟᱲᱤ", "Ol Chiki"),
        ("ᐃᓄᒃᑎᑐᑦ", "Canadian syllabics"),
        ("𝓪", "no letters"),
        ("123 !!! 😂😂", "no letters"),
        ("", "no letters"),
    ],
)
def test_script_of_a_text(text, script):
    assert script_of(text) == script


def test_counts_come_most_frequent_first():
    assert next(iter(script_counts(["ب", "1", "a", "b"]))) == "Latin"
    assert script_counts([]) == {}


def test_texts_in_no_single_script_are_one_group():
    texts = ["زوين", "zwin", "شكراا bravo", "123", "привет"]
    assert script_groups(texts) == ["Arabic", "Latin", *["mixed or other"] * 2, "Cyrillic"]


def test_figures_are_for_groups_that_have_rows_enough():
    rows = rows_by_script(["zwin"] * 50 + ["زوين"] * 60 + ["123"] * 49)
    assert list(rows) == ["Arabic", "Latin"]
    assert np.array_equal(rows["Latin"], np.arange(50))
    assert np.array_equal(rows["Arabic"], np.arange(50, 110))
    assert rows_by_script(["zwin"] * 500 + ["زوين"] * 49) == {} == rows_by_script([])
