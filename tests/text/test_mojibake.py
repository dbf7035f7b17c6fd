"""Mojibake: what it may have been."""

from __future__ import annotations

import pytest

from superconext.text.mojibake import likely_meant


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1"])
def test_mojibake_is_recognised_and_restored(encoding):
    for text in ("très déçu", "c’est raté", "c’est ça", "l’ami", "هذا الفيلم رائع"):
        octets = text.encode("utf-8")
        try:
            damaged = octets.decode(encoding)
        except UnicodeDecodeError:
            continue
        assert likely_meant(f"ok {damaged}") == f"ok {text}"
    for sound in ("très déçu", "هذا رائع", "“quoted” – 50 €", "ÀÉÎÕÜ", "plain", ""):
        assert likely_meant(sound) == ""
    assert likely_meant("ط§ظ„ط³ظ„ط§ظ… bzaf") == "السلام bzaf"
    assert likely_meant("lost \ufffd") == "lost \ufffd"
    assert likely_meant("کچی".encode().decode("cp1256")) == "کچی"
