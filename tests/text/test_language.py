"""The character model against its equation in loops, and which lines are like others."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from superconext.text.language import CharacterModel, Resemblance, letters


def bits(train, text):
    """Mean log2 probability of the characters of a text, by its definition."""
    counts = [Counter() for _ in range(5)]
    for line in train:
        padded = "    " + line
        for end in range(5, len(padded) + 1):
            for order in range(5):
                counts[order][padded[end - order - 1 : end]] += 1
    total, padded, sums = sum(counts[0].values()), "    " + text, 0.0
    for end in range(5, len(padded) + 1):
        chance = (counts[0][padded[end - 1]] + 1) / (total + 500)
        for order in range(1, 5):
            seen = counts[order][padded[end - order - 1 : end]]
            context = counts[order - 1][padded[end - order - 1 : end - 1]] if end > 5 else 0
            chance = (seen + 4 * chance) / (max(context, seen) + 4)
        sums += np.log2(chance)
    return sums / len(text)


@pytest.mark.parametrize("train", [[" abab ba "], [" واش راك ", " لاباس عليك ", " wach rak "]])
def test_the_model_is_its_equation(train):
    texts = [" wach rak labas ", " راك لاباس ", " x ", " abba "]
    expected = [bits(train, text) for text in texts]
    np.testing.assert_allclose(CharacterModel(train).bits(texts), expected, rtol=1e-9)


def test_letters():
    assert letters("Zwiiiin, 3la…") == " zwiin 3la "


def test_a_collection_without_other_languages_is_kept_whole():
    lines = [f"had {a} kan {b} bzaf" for a in ("lfilm", "lktab") for b in ("zwin", "khayb")] * 20
    assert Resemblance(lines, {"a": lines[:40]}).wanted(lines, "a").all()
