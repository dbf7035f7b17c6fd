"""What collected text has beside its words: tags, entities, addresses, the sign of a retweet."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from superconext.text import normalize as rules

#: An opening or closing tag of HTML.
TAG = re.compile(r"</?[A-Za-z][^<>]*>")

_RETWEET = re.compile(r"^\s*RT\b\s*:?\s*")
_PARTS = re.compile(r"[\t\r\n]+")


def cleaned(text: str) -> str:
    """A text without markup, addresses, handles, the sign of a retweet and invisible characters."""
    text = html.unescape(text) if "&" in text else text
    # Tags first, as an address in one becomes <url>; afterwards those placeholders.
    text = TAG.sub(" ", rules.users(rules.emails(rules.urls(TAG.sub(" ", text)))))
    return rules.spaces(_RETWEET.sub("", text).translate(rules.INVISIBLE))


def is_marked(text: str) -> bool:
    """Whether `cleaned` may leave out more than what is no word."""
    return "&" in text or "<" in text or _RETWEET.match(text) is not None


def parts(text: str) -> Iterator[str]:
    """The lines of a text and the cells between its tabs, where there are several."""
    found = [part for part in _PARTS.split(text) if part.strip()]
    if len(found) > 1:
        yield from found
