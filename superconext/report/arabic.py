"""Labels in right-to-left scripts, ready for the installed matplotlib.

From 3.11 matplotlib joins Arabic letters and orders right-to-left text by itself
(HarfBuzz and SheenBidi through libraqm; release notes of 3.11). Before, it drew single
letters from left to right, so the label has to be turned into joined presentation forms
in visual order first. Doing both would reverse the label again.
"""

from __future__ import annotations

import importlib.util
import unicodedata
from functools import cache
from typing import Any

from superconext.core.errors import MissingExtraError

#: Comes with matplotlib and has Arabic, Latin, Tifinagh, Greek and Cyrillic letters.
FONT = "DejaVu Sans"

_RENDERER_SHAPES_FROM = (3, 11)


def shape(label: str) -> str:
    """`label` as the installed matplotlib must be given it to be read correctly.

    Labels without right-to-left letters come back as they are, and so does every label
    where matplotlib shapes text itself. Vowel signs are kept.

    Raises MissingExtraError when matplotlib is absent, or needs arabic-reshaper and
    python-bidi for this label and they are absent.
    """
    if not _right_to_left(label) or renderer_shapes():
        return label
    try:
        # The package's own `bidi.get_display` leaves brackets unmirrored: ")12(".
        from bidi.algorithm import get_display

        reshaper = _reshaper()
    except ImportError as error:
        raise MissingExtraError("drawing Arabic labels", "plots") from error
    return str(get_display(reshaper.reshape(label)))


def renderer_shapes() -> bool:
    """Whether the installed matplotlib joins and orders Arabic letters by itself."""
    try:
        import matplotlib
    except ImportError as error:
        raise MissingExtraError("drawing figures", "plots") from error
    return tuple(matplotlib.__version_info__[:2]) >= _RENDERER_SHAPES_FROM


def can_shape() -> bool:
    """Whether `shape` can do its work here: all it needs is installed."""
    helpers = ("arabic_reshaper", "bidi")
    if importlib.util.find_spec("matplotlib") is None:
        return False
    return all(importlib.util.find_spec(name) for name in helpers) or renderer_shapes()


@cache
def _reshaper() -> Any:
    from arabic_reshaper import ArabicReshaper

    # The one-glyph word for God is not in the font; its letters are.
    return ArabicReshaper({"delete_harakat": False, "ARABIC LIGATURE ALLAH": False})


def _right_to_left(label: str) -> bool:
    return any(unicodedata.bidirectional(character) in ("R", "AL") for character in label)
