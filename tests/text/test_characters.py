"""The classes of characters against a loop over every code point."""

import re
import unicodedata

import pytest

from superconext.text import characters


def expected(categories: str) -> set[int]:
    """The assigned code points of a class, from its definition."""
    apart = {
        code
        for first, last in (*characters._UNSPACED_RANGES, *characters._EMOJI_RANGES)
        for code in range(first, last + 1)
    }
    found = set()
    for code in range(0x110000):
        kind = unicodedata.category(chr(code))[0]
        if kind in categories and (kind == "M" or code not in apart):
            found.add(code)
    return found | (set(characters._JOINERS) if "M" in categories else set())


@pytest.mark.parametrize(
    ("body", "categories"),
    [(characters.letters, "LN"), (characters.word, "LNM"), (characters.marks, "M")],
    ids=["letters", "word", "marks"],
)
def test_a_class_takes_what_its_categories_say(body, categories):
    pattern = re.compile(f"[{body()}]")
    taken = {code for code in range(0x110000) if pattern.match(chr(code))}
    wanted = expected(categories)
    assert not [hex(code) for code in wanted - taken][:5]
    # Beyond the BMP ranges go over code points that are not assigned, and only over those.
    more = [code for code in taken - wanted if unicodedata.category(chr(code)) != "Cn"]
    assert not [hex(code) for code in more][:5]
    unspaced = re.compile(f"[{characters.UNSPACED}]")
    assert not [code for code in taken - wanted if unspaced.match(chr(code))]
    assert not [code for code in taken - wanted if code <= 0xFFFF]


@pytest.mark.parametrize("code", [*range(0x80), 0x80, 0x5D0, 0xD800, 0xFFFD, 0x1F600, 0x10FFFF])
def test_a_body_means_the_characters_themselves(code):
    others = [chr(other) for other in (*range(0x100), 0xD800, 0x1F600) if other != code]
    one = re.compile(f"[{characters.class_body([(code, code)])}]")
    assert one.fullmatch(chr(code)) and not any(map(one.match, others))
    two = re.compile(f"[{characters.class_body([(code, code), (0x61, 0x63)])}]")
    assert two.match(chr(code)) and two.match("b") and (two.match("-") is None or code == 0x2D)
