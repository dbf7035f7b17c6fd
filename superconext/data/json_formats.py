"""JSON lines, JSON arrays, and what annotation tools export in them.

A record's keys are its columns; one of a tool is made flat first (`flattened`). The answers of
several annotators to one text are `Votes`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence, Sized
from itertools import zip_longest
from typing import Any

from superconext.core.errors import DataError
from superconext.data.columns import TEXT_NAMES, Known, is_annotator, own_name
from superconext.data.file_format import Block, LineFormat, RowFile, Votes, parsed_rows
from superconext.data.lines import LONGEST, RUN_LINES, Run, shown

_EXAMPLE = '{"text": "...", "label": "..."}'


class _RepeatedKey(ValueError):
    """An object that has a key twice, of which JSON readers keep either."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _RepeatedKey(next(name for name in names if names.count(name) > 1))
    return found


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object,
    parse_int=str,
    parse_float=str,
    parse_constant=lambda _: None,
    strict=False,
)
#: The archive that Twitter lets people download is a script that gives a name to an array.
_ARRAY = re.compile(r"(?:window\.YTD\.[\w.]+\s*=\s*)?\[\s*(\{|$)")
_SURROGATE = re.compile("[\ud800-\udfff]")
#: A string, or as much of one as is on the line, and brackets; possessive, so linear.
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*+(?:"|$)|[{}\[\]]')


#: What stands behind a key, and behind the bracket of an array of objects.
_IS_KEY, _BEGINS = re.compile(r"\s*:"), re.compile(r"\s*\{")

#: Keys of arrays of objects in a task or an answer, which are no rows.
_OF_TASK = {"annotations", "completions", "responses", "predictions", "drafts", "options"}
_OF_TASK |= {"spans", "tokens", "entities", "relations"}

#: What a flat record of Argilla has of each question, behind its name and a point.
_OF_QUESTION = ("responses", "suggestion")

#: Keys of an answer for a region of the text, the sound or the picture.
_REGION = {"start", "end", "startOffset", "ranges", "sequence", "x"}


class _Answers(list[tuple[str, Any]]):
    """Annotator and answer of each, as a tool has them: a label, or a list of choices."""


class _OfPart(list[Any]):
    """Choices for a part of the text."""


class JsonLines(LineFormat):
    """One JSON object a line, an array of objects, or an object of columns on one line.

    Numbers are taken as they are spelt, so 1 and 1.0 differ; the labels true and false, too.
    """

    suffixes = (".jsonl", ".ndjson", ".json")
    within = (".js",)

    def __init__(self, file: RowFile) -> None:
        super().__init__(file)
        self.keys: list[str] | None = None
        self._first: set[str] = set()
        self._items = 0
        self._begins: dict[int, int] = {}  # lines of items whose rows are not made yet
        self._asked: dict[str, None] = {}  # a tool's questions so far
        self._answered = False  # whether the label is the answer to a tool's question
        # Keys and questions of a task in which the question that is the label has no answer.
        self._unasked: tuple[list[str], list[str]] | None = None

    @classmethod
    def recognises(cls, first_line: str, file: RowFile) -> bool:
        return first_line.startswith("{") or bool(_ARRAY.match(first_line))

    def blocks(self) -> Iterator[Block]:
        first = self.file.first_line() or ""
        if _ARRAY.match(first):
            yield from self._of_items(array_items(self.file.runs(), self.file.name))
        elif key := _key_of_rows(self.file.head, self._text_names()):
            self.file.notes.append(f"rows read from the array {shown(key)}")
            items = array_items(self.file.runs(), self.file.name, key, alone=True)
            yield from self._of_items(items)
        elif rows := _rows_of_columns(self.file.head):
            self.file.notes.append(f"one object holds all {len(rows)} rows")
            others = [number for numbers, _ in self.file.filled() for number in numbers][1:]
            if others:
                raise DataError(
                    f"{self.file.name}, line {others[0]}: found more behind an object that holds "
                    "all rows, expected that object alone: write one object for each row"
                )
            yield from self._of_items((1, json.dumps(row)) for row in rows)
        else:
            yield from super().blocks()
        if self.keys is None and self._unasked:
            self.file.named(*self._unasked)  # says which columns there are

    def _text_names(self) -> set[str]:
        """What the column of texts may be called."""
        wanted = self.file.wanted
        named = (wanted.text_column, (wanted.known or Known()).text)
        return {*TEXT_NAMES, *(name.strip().casefold() for name in named if isinstance(name, str))}

    def _of_items(self, items: Iterable[tuple[int, str]]) -> Iterator[Block]:
        """The rows of objects, given by their line and text."""
        labelled = self.file.wanted.labelled
        numbers: list[int] = []
        records: list[str] = []
        last = 0
        for number, record in items:
            # Rows are found again by their numbers: items that share a line have one each.
            last = max(number, last + 1)
            self._begins[last] = number
            numbers.append(last)
            records.append(record)
            if len(records) == RUN_LINES:
                yield parsed_rows(self.file, numbers, records, self._item, labelled)
                numbers, records = [], []
        yield parsed_rows(self.file, numbers, records, self._item, labelled)

    def row(self, line: str, number: int) -> tuple[str, str | Votes]:
        return self._row(line, f"{self.file.name}, line {number}")

    def _item(self, item: str, number: int) -> tuple[str, str | Votes]:
        """The row of the next item."""
        self._items += 1
        line = self._begins.pop(number)
        return self._row(item, f"{self.file.name}, line {line}, item {self._items}")

    def _row(self, line: str, where: str) -> tuple[str, str | Votes]:
        task = json_record(line.strip(), where)
        record, tool = flattened(task)
        outer: dict[str, Any] = {}
        if tool and self.file.wanted.beside:  # such as a task's number
            outer = {key: v for key, v in task.items() if key not in record and isinstance(v, str)}
        votes = [key for key, value in record.items() if isinstance(value, _Answers)]
        if self.file.wanted.classes:
            return self._of_classes(record, self.file.wanted.classes, where)
        if self.keys is None:
            if tool and not votes and self.file.wanted.labelled:  # not annotated yet
                return json_value(record, self._text_key(record), where), ""
            wished = self.file.wanted.label_column
            if (
                votes
                and isinstance(wished, str)
                and not ({wished} & record.keys() or wished.isdecimal())
            ):
                self._unasked = list(record), votes
                return json_value(record, self._text_key(record), where), ""
            if tool:
                self.file.notes.append(f"read as an export of {tool}")
            try:
                self.keys, self._first = self.file.named(list(record), votes), {*record}
                self.file.names += outer
                self._answered = len(self.keys) > 1 and self.keys[1] in votes
            except DataError:
                if what := "" if tool else _of_all_rows(record):
                    raise DataError(f"{where}: found {what}") from None
                raise
        for key in self.keys:
            if key not in record and (name := _alike(record, key)):
                record[key] = record.pop(name)
        self._check_questions(votes, where)
        if self._answered and tool and self.keys[1] not in votes:
            record[self.keys[1]] = ""  # nobody has answered; the task may have a former label
        # A label that is left out; a key that the first record lacks may be the label's misspelt.
        left_out = tool or record.keys() <= self._first
        if self.file.wanted.labelled and len(self.keys) > 1 and left_out:
            record.setdefault(self.keys[1], "")
        if tool and "annotator" in (self.file.columns or {}):  # one that is not named
            record.setdefault("annotator", "")
        if record.get(self.keys[0], "") is None:
            record[self.keys[0]] = ""
        text = json_value(record, self.keys[0], where)
        if self.file.wanted.beside:
            self.file.cells = {key: _cell(value) for key, value in (outer | record).items()}
        if self.file.voters:
            if isinstance(answers := record.get(self.keys[-1]), _Answers):  # of one annotator
                record[self.keys[-1]] = _only(answers[0][1], where) if answers else ""
            wide, named = len(self.keys) == 1, self.file.wanted.label_column is not None
            asked = self.file.voters if named or not wide else filter(is_annotator, record)
            keys = [key for key in asked if key in record or not wide]
            return text, self.file.votes({k: json_value(record, k, where, True) for k in keys})
        if len(self.keys) == 1:
            return text, ""
        given = record.get(self.keys[1])
        if isinstance(given, _Answers):
            return text, _checked(given, self.keys[1], where)
        return text, json_value(record, self.keys[1], where, True)

    def _check_questions(self, votes: Sequence[str], where: str) -> None:
        """Raise DataError where a tool asked several questions and nothing says which is the label:
        neither the user, a run, nor the name of one."""
        if not self.keys or len(self.keys) < 2 or not votes:
            return
        self._asked |= dict.fromkeys(votes)
        wanted = self.file.wanted
        told = wanted.label_column is not None or (wanted.known or Known()).label == self.keys[1]
        named = self._answered and self.keys[1].strip().casefold() == "label"
        if not told and not named and (len(self._asked) > 1 or not self._answered):
            raise DataError(
                f"{where}: found answers to several questions "
                f"({', '.join(map(shown, self._asked))}), expected to be told which is the label: "
                "add --label-column"
            )

    def _of_classes(
        self, record: dict[str, Any], classes: Sequence[str], where: str
    ) -> tuple[str, Votes]:
        """The text, and under each class what the record, or `probabilities` in it, has."""
        key = self._text_key(record)
        given = record.get("probabilities", record) or {}
        text = json_value({key: record[key] or ""}, key, where)
        if not isinstance(given, dict):
            raise DataError(f"{where}: found probabilities that are no object, expected one")
        names = [own_name(given, name) for name in classes if given]
        return text, Votes((name, json_value(given, name, where)) for name in names)

    def _text_key(self, record: dict[str, Any]) -> str:
        return list(record)[self.file.wanted.place(list(record), "text", self.file.name)]


def _alike(record: dict[str, Any], key: str) -> str:
    """The only key that differs from another in case and spaces around alone, "" for none."""
    found = [name for name in record if name.strip().casefold() == key.strip().casefold()]
    return found[0] if len(found) == 1 else ""


def flattened(record: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The columns of a record, and the annotation tool that it comes from, "" for none.

    What annotators answered are `_Answers`, which may be lists of choices.

    Label Studio: the fields of `data`, and for each control the choices of all annotations.
    Argilla: the fields, and for each question the responses that were submitted; before 2.0 the
    text among `inputs` and `annotation`. Prodigy: the `label` or the choice of an answer that was
    accepted; none of one that was rejected or ignored. doccano: `text` and `label`, or numbers of
    labels among `annotations`.
    """
    if record.keys() == {"tweet"} and isinstance(record["tweet"], dict):
        return record["tweet"], ""
    data, fields, given = (record.get(key) for key in ("data", "fields", "annotations"))
    given = record.get("completions", given)
    if isinstance(data, dict) and isinstance(given, list):
        votes: dict[str, _Answers] = {}
        for entry in filter(_is_kept, given):
            chosen: dict[str, list[Any]] = {}
            for result in filter(_is_choice, entry.get("result") or ()):
                name, value = str(result.get("from_name", "label")), result["value"]
                kind = _OfPart if value.keys() & _REGION else list
                picked = [_path(choice) for choice in value["choices"]]
                chosen[name] = kind(dict.fromkeys([*chosen.get(name, ()), *picked]))
            for name, choices in chosen.items():
                given_by = votes.setdefault(name, _Answers())
                given_by.append((_who(entry, given_by), choices))
        return {**data, **votes}, "Label Studio"
    if isinstance(fields, dict) and isinstance(record.get("responses"), dict | list):
        return {**fields, **_responses(record["responses"])}, "Argilla"
    status = ".responses.status"
    if questions := [key.removesuffix(status) for key in record if key.endswith(status)]:
        return _flat_answers(record, questions), "Argilla"
    if "annotation" in record and ("inputs" in record or "annotation_agent" in record):
        inputs = record.get("inputs")
        inputs = inputs if isinstance(inputs, dict) else {"text": inputs or record.get("text")}
        answer = record["annotation"]
        left_out = answer is None or record.get("status") == "Discarded"
        return {**inputs, "label": _Answers([] if left_out else [("1", answer)])}, "Argilla"
    if isinstance(given, list) and all(isinstance(a, dict) and "label" in a for a in given):
        of_whom: dict[str, list[Any]] = {}
        for one in given:
            kind = _OfPart if "start_offset" in one else list
            who = _who(one, of_whom)
            of_whom[who] = kind([*of_whom.get(who, ()), one["label"]])
        return {**record, "label": _Answers(of_whom.items())}, "doccano"
    label = record.get("label")
    if record.get("answer") in ("accept", "reject", "ignore") and "text" in record:
        chosen = record.get("accept", [] if label is None else [label])
        kept = record["answer"] == "accept" and chosen
        others = {k: v for k, v in record.items() if k not in ("accept", "answer", "options")}
        if "_annotator_id" in record:
            others.setdefault("annotator", record["_annotator_id"])
        return {**others, "label": _Answers([("1", chosen)] if kept else [])}, "Prodigy"
    if isinstance(label, list) and isinstance(data, str) and "text" not in record:
        return {
            **record,
            "text": data,
            "label": _Answers([("1", label)] * bool(label)),
        }, "doccano"
    return record, ""


def _key_of_rows(head: Sequence[str], names: Collection[str]) -> str:
    """The key of the array that holds all rows, of a file which is one object on one line or on
    several; "" for JSON lines, another file, and for a task of an annotation tool.

    names: of columns of texts, which a row has.
    """
    lines = [line for line in head if line.strip()]
    depth, last = 0, ""
    found: str | None = None
    for at, line in enumerate(lines):
        for match in _TOKEN.finditer(line):
            token = match[0]
            if token in ("{", "["):
                depth += 1
                if depth == 2 and token == "[" and found is None:
                    begins = _BEGINS.match(line, match.end()) or (
                        not line[match.end() :].strip()
                        and "".join(lines[at + 1 : at + 3]).lstrip().startswith("{")
                    )
                    found = last if begins else None
            elif token in ("}", "]"):
                depth -= 1
                if not depth and at + 1 < len(lines):
                    return ""  # an object a line
            elif depth == 1 and _IS_KEY.match(line, match.end()):
                last = token.strip('"')
                if last.strip().casefold() in names:
                    return ""
    if found is None or found.casefold() in _OF_TASK:
        return ""
    if len(lines) == 1:
        try:
            record = _DECODER.decode(lines[0].strip())
        except (ValueError, RecursionError):
            return ""
        if not isinstance(record, dict) or flattened(record)[1]:
            return ""
    return found


def _rows_of_columns(head: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of a file whose only line is an object of columns: lists of as many cells each, as
    `datasets` has them, or objects of the same keys, as pandas writes them, which may be rows
    under their numbers or names as well; else none."""
    lines = [line for line in head if line.strip()]
    if len(lines) != 1 or not re.match(r'\s*\{\s*"(?:[^"\\]|\\.)*+"\s*:\s*[\[{]', lines[0]):
        return []
    try:
        columns = _DECODER.decode(lines[0].strip())
    except (ValueError, RecursionError):
        return []
    cells = [*columns.values()]
    if not len(cells) > 1 or flattened(columns)[1] or {"columns", "data"} <= columns.keys():
        return []
    if all(isinstance(column, dict) and column.keys() == cells[0].keys() for column in cells):
        if all(map(str.isdecimal, columns)) or (_named(cells[0]) and not _named(columns)):
            return cells  # rows under numbers, or under names of their own
        cells = [[column[key] for key in cells[0]] for column in cells]
    if not all(isinstance(column, list) and len(column) == len(cells[0]) > 1 for column in cells):
        return []
    return [dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True)]


def _named(keys: Iterable[str]) -> bool:
    """Whether a column of texts is among them."""
    return not TEXT_NAMES.isdisjoint(key.strip().casefold() for key in keys)


def _of_all_rows(record: dict[str, Any]) -> str:
    """What an object that holds all rows is, what is expected and what to do; "" for one row."""
    values = [*record.values()]
    if any(isinstance(v, str) for k, v in record.items() if k.strip().casefold() in TEXT_NAMES):
        return ""
    lists = [key for key, value in record.items() if isinstance(value, list)]
    held = [key for key in lists if record[key] and isinstance(record[key][0], dict)]
    if held:
        return f"all rows inside {shown(held[0])}, expected an array of them: save that array alone"
    nested = values and all(isinstance(value, dict | list) for value in values)
    # Sentences as keys, which are longer than their labels.
    named = 2 * sum(" " in key.strip() for key in record) > len(record) > 5
    if not nested and not (named and len("".join(map(str, values))) < len("".join(record))):
        return ""
    return (
        f"all rows in one object, expected {_EXAMPLE} for each: write them so, in an array (of "
        "pandas: orient='records')"
    )


def _who(entry: dict[str, Any], others: Sized) -> str:
    """Who gave an answer, by the tool's name or number; else the answer's place among others."""
    who = entry.get("completed_by", entry.get("user_id", entry.get("user")))
    if isinstance(who, dict):
        who = who.get("email", who.get("id"))
    return str(len(others) + 1 if who is None else who)


def _checked(votes: _Answers, key: str, where: str) -> str | Votes:
    """Votes whose labels are text; "" for none. Raises DataError for several in one answer."""
    labels = ((who, {key: _only(answer, where)}) for who, answer in votes)
    given = ((who, json_value(label, key, where, True)) for who, label in labels)
    return Votes((who, label) for who, label in given if label) or ""


def _path(choice: object) -> object:
    """A choice of Label Studio; a nested one, which is a list of choices, as one text."""
    if isinstance(choice, list):
        return "/".join(map(str, choice))
    return choice if isinstance(choice, str) else json.dumps(choice)


def _is_kept(annotation: object) -> bool:
    return isinstance(annotation, dict) and not annotation.get("was_cancelled")


def _is_choice(result: object) -> bool:
    value = result.get("value") if isinstance(result, dict) else None
    return isinstance(value, dict) and isinstance(value.get("choices"), list)


def _only(answer: object, where: str) -> object:
    choices = answer if isinstance(answer, list) else [answer]
    if isinstance(answer, _OfPart):
        raise DataError(
            f"{where}: found a label of a part of the text ({shown(str(answer[0]), 24)}), expected "
            "one of the whole text: keep one label for each text"
        )
    if len(choices) != 1:
        several = ", ".join(shown(str(choice), 24) for choice in choices[:4]) or "none"
        raise DataError(
            f"{where}: found an annotation of {len(choices)} labels ({several}), expected one: "
            "classification here is single-label only, keep one label for each text"
        )
    return choices[0]


def _flat_answers(record: dict[str, Any], questions: Sequence[str]) -> dict[str, Any]:
    """The fields of a flat record of Argilla, and the answers that its columns have for each
    question: `responses`, `responses.users`, `responses.status`."""
    own = tuple(f"{question}.{kind}" for question in questions for kind in _OF_QUESTION)
    given = {}
    for question in questions:
        names = (f"{question}.responses{part}" for part in ("", ".users", ".status"))
        columns = [column if isinstance(column := record.get(name), list) else [] for name in names]
        keys = ("value", "user_id", "status")
        given[question] = [
            dict(zip(keys, one, strict=True)) for one in zip_longest(*columns) if one[0] is not None
        ]
    fields = {key: value for key, value in record.items() if not key.startswith(own)}
    return {**fields, **_responses(given)}


def _responses(responses: Any) -> dict[str, _Answers]:
    """The submitted answers to each question, of Argilla 2 (by question) or 1 (by annotator)."""
    votes: dict[str, _Answers] = {}
    if isinstance(responses, dict):
        listed = {q: a if isinstance(a, list) else [] for q, a in responses.items()}
        pairs = [(q, a) for q, answers in listed.items() for a in answers]
    else:
        pairs = [
            (question, {"user_id": entry.get("user_id"), **answer, "status": entry.get("status")})
            for entry in responses
            if isinstance(entry, dict) and isinstance(entry.get("values"), dict)
            for question, answer in entry["values"].items()
            if isinstance(answer, dict)
        ]
    for question, answer in pairs:
        kept = votes.setdefault(question, _Answers())
        if isinstance(answer, dict) and answer.get("status") in (None, "submitted"):
            kept.append((_who(answer, kept), answer.get("value")))
    return votes


def array_items(
    runs: Iterable[Run], name: str, key: str = "", alone: bool = False
) -> Iterator[tuple[int, str]]:
    """Line and text of each object in a top-level array, or in arrays under `key`.

    alone: whether no other array of the file's one object holds objects.

    Memory is bounded by the longest of them. Raises DataError for one that is too long, an array
    that is not closed or has other items, and where there are none.
    """

    def check_between(number: int, text: str, token: str = "") -> None:
        """Nothing but commas and blanks stands between objects and behind them."""
        between = not depth and bool(inside[-1] if inside else found and not key)
        text = text.strip(" \t\r\n,") if between else ""
        if text or (between and (token[:1] == '"' or (token == "[" and inside))):
            raise _broken(name, number, f"{shown(text or token)} beside the objects of an array")

    # Of each open bracket whether items stand between it and its end; None for one of an object.
    inside: list[bool | None] = []
    item, size, start, last, found = [""], 0, 0, "", False
    depth = 0  # of the item that is open, 0 for none
    for first, lines in runs:
        for number, line in enumerate(lines, first):
            begin = done = 0
            for match in _TOKEN.finditer(line):
                token = match[0]
                check_between(number, line[done : match.start()], token)
                done = match.end()
                if token in ("{", "["):
                    if token == "{" and not depth and inside and inside[-1]:
                        depth, start, begin, item, size = (
                            len(inside) + 1,
                            number,
                            match.start(),
                            [],
                            0,
                        )
                    wanted = last == f'"{key}"' if key else not inside
                    wanted = wanted and (not alone or inside == [None])
                    if alone and token == "{" and inside == [None, False]:
                        raise _broken(name, number, f"objects in another array than {shown(key)}")
                    inside.append(wanted if token == "[" else None)
                elif token in ("}", "]"):
                    if not inside:
                        raise _broken(name, number, "a closing bracket too many")
                    if len(inside) == depth:
                        item.append(line[begin : match.end()])
                        yield start, "\n".join(item)
                        depth, found = 0, True
                    inside.pop()
                elif (
                    alone
                    and inside == [None]
                    and token.strip('" ').casefold() in TEXT_NAMES
                    and _IS_KEY.match(line, match.end())
                ):
                    raise _broken(name, number, f"{shown(token)} beside the array {shown(key)}")
                last = token
            check_between(number, line[done:])
            if depth:
                item.append(line[begin:])
                size += len(line) + 1
                if size > LONGEST:
                    raise _broken(
                        name, start, f"an object longer than {LONGEST >> 20} Mi characters"
                    )
    if inside:
        raise _broken(name, start, "an array or object that is never closed")
    if not found:
        raise _broken(name, 1, "an array without objects")


def _broken(name: str, line: int, what: str) -> DataError:
    return DataError(
        f"{name}, line {line}: found {what}, expected a JSON array of objects: correct the file, "
        "or write one object a line"
    )


def json_record(line: str, where: str) -> dict[str, Any]:
    """The object on one line. Numbers stay as spelt; other constants become None."""
    try:
        record = _DECODER.decode(line)
    except _RepeatedKey as error:
        raise DataError(
            f"{where}: found the key {shown(str(error))} twice in an object, expected each once: "
            "remove one"
        ) from None
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deep"
        if isinstance(error, json.JSONDecodeError) and error.pos >= len(line):
            raise DataError(
                f"{where}: found an object that does not end on its line, expected {_EXAMPLE} on "
                "each line, or an array of such objects: write the rows so (of an array inside an "
                "object, save the array alone)"
            ) from None
        raise DataError(
            f"{where}: not valid JSON ({reason}), expected one object a line: correct the line"
        ) from None
    if not isinstance(record, dict):
        raise DataError(
            f"{where}: found a JSON {_json_type(record)}, expected one object a line such as "
            f"{_EXAMPLE}: write each row so"
        )
    return record


def json_value(record: dict[str, Any], key: str, where: str, optional: bool = False) -> str:
    """The text or number under a key; optional, a label: also true or false, and "" for null."""
    if key not in record:
        names = ", ".join(shown(name, 24) for name in list(record)[:8]) or "none"
        raise DataError(
            f"{where}: no key {shown(key)}, found {names}, expected the keys of the first record: "
            "complete the record or remove it"
        )
    value = record[key]
    if value is None and optional:
        return ""
    if isinstance(value, bool) and optional:
        return json.dumps(value)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        if len(set(value)) > 1:
            several = ", ".join(shown(item, 24) for item in value[:4])
            of_pandas = "" if optional else " (of pandas: orient='records')"
            raise DataError(
                f"{where}: {shown(key)} has several values ({several}), expected one: "
                "classification here is single-label only, keep one label for each text" + of_pandas
            )
        value = value[0] if value else ""
    if not isinstance(value, str):
        raise DataError(
            f"{where}: {shown(key)} is a JSON {_json_type(value)}, expected a string or a number: "
            "one text and one label a record (of pandas: orient='records')"
        )
    # JSON escapes can spell what no UTF-8 file can hold.
    if "\0" in value or (not value.isascii() and _SURROGATE.search(value)):
        raise DataError(
            f"{where}: found an escaped NUL or half a surrogate pair, expected text: correct the "
            "escape or remove the line"
        )
    return value


def _cell(value: object) -> str:
    """Any value as text, "" for null."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return "" if value is None else _SURROGATE.sub("\ufffd", text)


def _json_type(value: object) -> str:
    names = {bool: "boolean", list: "array", dict: "object", str: "string or number"}
    return names.get(type(value), "null or NaN")
