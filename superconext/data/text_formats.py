"""Files of text without labels: subtitles, chat exports, MediaWiki dumps.

They are for `data pool` above all; wherever texts are read they are known too. Each gives one cue,
message or sentence a row, without time stamps, names and markup.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from xml.parsers import expat

from superconext.core.errors import DataError
from superconext.data.file_format import Block, FileFormat, RowFile
from superconext.data.json_formats import array_items
from superconext.text.markup import TAG

_ROWS = 1024
_LONGEST = 1 << 22  # characters of a page or a message


class TextFormat(FileFormat):
    """A format without labels; a subclass gives line and text of each item."""

    kind = ""

    def items(self) -> Iterator[tuple[int, str]]:
        raise NotImplementedError

    def blocks(self) -> Iterator[Block]:
        file = self.file
        if file.wanted.labelled:
            raise DataError(
                f"{file.name}: found {self.kind}, expected labelled rows: give a table of texts "
                "and labels"
            )
        file.notes.append(f"read as {self.kind}")
        texts: list[str] = []
        lines: list[int] = []
        for line, text in self.items():
            if text := " ".join(text.split()):
                texts.append(text)
                lines.append(line)
            if len(texts) == _ROWS:
                yield Block(texts, [], lines)
                texts, lines = [], []
        yield Block(texts, [], lines)


class Subtitles(TextFormat):
    """SubRip (`.srt`) and WebVTT: a cue a row; lines that roll on from the cue before once."""

    kind = "subtitles"
    suffixes = (".srt", ".vtt")
    _timing = re.compile(r"\s*(?:\d+:)?\d+:\d+[.,]\d+\s*-->")
    _markup = re.compile(r"<[^<>]*>|\{\\[^{}]*\}|\[[^\[\]]*\]|[♪♫]")

    def items(self) -> Iterator[tuple[int, str]]:
        inside, start = False, 0
        before: list[str] = []
        cue: list[str] = []
        for first, lines in self.file.runs():
            for number, line in enumerate(lines, first):
                timing = "-->" in line and self._timing.match(line)
                if (timing or not line.strip()) and inside:
                    yield start, " ".join(part for part in cue if part not in before)
                    before, cue = cue, []
                if timing or not line.strip():
                    inside, start = bool(timing), number
                elif inside:
                    text = " ".join(html.unescape(self._markup.sub(" ", line)).split())
                    cue.append(text.removeprefix("- "))
        yield start, " ".join(part for part in cue if part not in before)


class WhatsApp(TextFormat):
    """The text export of a WhatsApp chat: a message a row, without its date and sender."""

    kind = "a WhatsApp export"
    within = (".txt",)
    _half = r"(?:\s?[^\W\d]\.?\s?[^\W\d]?\.?)?"  # pm, p. m., م
    _at = r"(?:[^\W\d]{1,4}\s){0,2}"  # à, um, a las
    _turn = "[\u200e\u200f]*"  # marks of direction, as phones in Arabic write around signs
    _day = rf"\d{{1,4}}{_turn}[./-]{_turn}\d{{1,2}}{_turn}[./-]{_turn}\d{{1,4}}"
    _past = r"(?:[:.]\d{2}){1,2}|\s?h\s?\d{2}(?:\s?min\s?\d{2}\s?s)?"  # 23 h 59 min 10 s
    _clock = rf"(?:[^\W\d]{{1,4}})?\d{{1,2}}(?:{_past})"  # 下午11:59
    _date = rf"{_day}{_turn}[,،]?{_turn}\s+{_at}{_clock}{_half}"
    _begin = re.compile(f"{_turn}(?:\\[{_date}\\]\\s?|{_date}\\s[-–]\\s)")

    @classmethod
    def recognises(cls, first_line: str, file: RowFile) -> bool:
        return bool(cls._begin.match(first_line))

    def items(self) -> Iterator[tuple[int, str]]:
        start, message, size = 0, [""], 0
        for first, lines in self.file.runs():
            for number, line in enumerate(lines, first):
                begun = self._begin.match(line)
                if begun:
                    yield start, self._text(message)
                    start, message, size = number, [], 0
                    _, _, line = line[begun.end() :].partition(": ")  # notices have no sender
                if message or begun:
                    size += len(line)
                    message += [line] * (size < _LONGEST)
        yield start, self._text(message)

    @staticmethod
    def _text(message: list[str]) -> str:
        """What was written; attachments begin with a mark or are in angle brackets."""
        text = "\n".join(message)
        if text.startswith("\u200e"):
            return ""
        text = text.strip("\u200e\u200f \n")
        return text[: text.rfind("<")] if text.endswith(">") and "<" in text else text


#: Types of messages in which somebody says something, of Telegram and of Messenger.
_SAID = ("message", "Generic", "Share", "text", "link")


class Telegram(TextFormat):
    """`result.json` of a Telegram export, of one chat or of all, or a chat as Messenger and
    Instagram export it: a message a row."""

    kind = "the export of a chat"
    within = (".json",)

    @classmethod
    def recognises(cls, first_line: str, file: RowFile) -> bool:
        if not first_line.startswith("{"):
            return False
        head = " ".join(file.head[:100])[:10_000]
        # Of a whole account other things come first, such as contacts.
        account = r'\s*\{\s*("about"\s*:\s*"[^"]*",\s*)?"(personal_information|contacts)"\s*:\s*\{'
        chats = r'"chats"\s*:\s*\{'
        return bool(re.search(r'"(?:messages|chats)"\s*:\s*[\[{]', head)) or bool(
            re.match(account, head) and re.search(chats, " ".join(file.head))
        )

    def items(self) -> Iterator[tuple[int, str]]:
        for number, record in array_items(self.file.runs(), self.file.name, "messages"):
            try:
                message = json.loads(record, strict=False)
            except (ValueError, RecursionError):
                self.file.bad(
                    DataError(
                        f"{self.file.name}, line {number}: found a message that is no JSON, "
                        "expected an object: export the chat again"
                    )
                )
                continue
            if message.get("type", "message") in _SAID:
                parts = message["text"] if "text" in message else _of_meta(message)
                parts = parts if isinstance(parts, list) else [parts]
                plain = [p if isinstance(p, str) else _linked(p) for p in parts]
                yield number, "".join(plain).replace("\0", " ")


def _of_meta(message: dict[str, Any]) -> str:
    """The text of a message that Messenger or Instagram exported: bytes of UTF-8, each written as
    a character."""
    text = message.get("content")
    if not isinstance(text, str):
        return ""
    with suppress(UnicodeError):
        return text.encode("latin-1").decode("utf-8")
    return text


def _linked(part: object) -> str:
    """The text of a formatted part, but none of one that is an address or a name."""
    hidden = ("link", "email", "phone", "mention", "mention_name", "bank_card")
    if not isinstance(part, dict) or part.get("type") in hidden:
        return " "
    return str(part.get("text") or "")


class MediaWiki(TextFormat):
    """A dump of a MediaWiki such as Wikipedia: the sentences of the articles."""

    kind = "a MediaWiki dump"
    suffixes = (".xml",)

    def items(self) -> Iterator[tuple[int, str]]:
        name, pages = self.file.name, _Pages(self.file.name)
        try:
            for _, lines in self.file.runs():
                pages.parser.Parse(("\n".join(lines) + "\n").encode("utf-8", "replace"), False)
                yield from pages.take()
            pages.parser.Parse(b"", True)
        except expat.ExpatError as error:
            raise DataError(
                f"{name}, line {error.lineno}: found XML that is broken "
                f"({expat.errors.messages[error.code]}), expected a MediaWiki dump: copy it again"
            ) from None
        yield from pages.take()


class _Pages:
    """The sentences of the pages that a parser of XML has come by."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._characters
        self.parser.EntityDeclHandler = self._entity
        self.ready: list[tuple[int, str]] = []
        self.field, self.parts, self.size, self.depth = "", [""], 0, 0
        self.page: dict[str, str] = {}

    def take(self) -> list[tuple[int, str]]:
        ready, self.ready = self.ready, []
        return ready

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        del attributes
        self.depth += 1
        if self.depth == 1 and name != "mediawiki":
            raise self._refusal(f"of <{name[:24]}>", "save it as text")
        if name == "page":
            self.page = {}
        elif name == "redirect":
            self.page["redirect"] = ""
        self.field, self.parts, self.size = name, [], 0

    def _characters(self, data: str) -> None:
        if self.field in ("ns", "text") and self.size < _LONGEST:
            self.size += len(data)
            self.parts.append(data)

    def _end(self, name: str) -> None:
        self.depth -= 1
        if name == self.field and name in ("ns", "text"):
            self.page[name] = "".join(self.parts)
        self.field = ""
        if (
            name == "page"
            and self.page.get("ns", "0").strip() == "0"
            and "redirect" not in self.page
        ):
            line = self.parser.CurrentLineNumber
            self.ready += [
                (line, sentence) for sentence in wiki_sentences(self.page.get("text", ""))
            ]

    def _entity(self, *_: object) -> None:
        raise self._refusal("that declares entities", "do not trust it")

    def _refusal(self, what: str, advice: str) -> DataError:
        return DataError(f"{self.name}: found XML {what}, expected a MediaWiki dump: {advice}")


_NESTED = (("{{", "}}"), ("{|", "|}"), ("<!--", "-->"))
_BLOCKS = re.compile(
    r"<(/?)(ref|math|gallery|score|timeline|source|syntaxhighlight)\b[^<>]*?(/?)>", re.IGNORECASE
)
_LINK = re.compile(r"\[\[([^\[\]]*)\]\]")
_OUTER_LINK = re.compile(r"\[(?:https?:)?//[^\s\[\]]*+\s?([^\[\]]*)\]")
_SENTENCE = re.compile(r"(?<=[.!?؟…])\s+(?=\S)")


def wiki_sentences(text: str) -> list[str]:
    """The sentences of a page of wikitext, in linear time; what is nested too deep is left out."""
    for opening, closing in _NESTED:
        text = _without(text, re.compile(f"({re.escape(opening)})|{re.escape(closing)}"))
    text = _without(text, _BLOCKS)
    for _ in range(3):  # links are in the captions of pictures
        text = _LINK.sub(_linked_words, text)
    text = _OUTER_LINK.sub(r"\1", text)
    text = html.unescape(TAG.sub(" ", text)).replace("'''", "").replace("''", "")
    found = []
    for line in text.split("\n"):
        line = line.strip()
        if line[:1] not in ("=", "|", "!", "{", "}", "_", ""):
            found += _SENTENCE.split(line.lstrip("*#:; "))
    return found


def _without(text: str, mark: re.Pattern[str]) -> str:
    """The text outside of nested pairs; an opening without an end takes the rest along.

    In `mark`, group 1 is an opening mark or, of a tag, the slash of a closing one.
    """
    kept, depth, begin = [], 0, 0
    for match in mark.finditer(text):
        tag = mark.groups > 1
        if tag and match[3]:  # closes itself
            if not depth:
                kept.append(text[begin : match.start()])
                begin = match.end()
            continue
        opens = not match[1] if tag else bool(match[1])
        if opens:
            if not depth:
                kept.append(text[begin : match.start()])
            depth += 1
        elif depth:
            depth -= 1
            begin = match.end()
    if not depth:
        kept.append(text[begin:])
    return " ".join(kept)


def _linked_words(match: re.Match[str]) -> str:
    target, _, words = match[1].partition("|")
    if ":" in target:  # pictures, categories, other languages
        return ""
    return words.rpartition("|")[2] or target
