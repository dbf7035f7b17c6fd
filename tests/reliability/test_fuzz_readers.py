"""Every reader on its corpus, on some hundred changed inputs, and on what hypothesis finds."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.reliability.fuzzing import Counts, fuzz, judge
from tests.reliability.readers import CORPUS, Case, readers

READERS = {reader.name: reader for reader in readers()}
INPUTS = {"run": 40}


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A folder for each reader, made when it is first asked for."""
    made = {}

    def place(name):
        if name not in made:
            made[name] = tmp_path_factory.mktemp(name)
            READERS[name].prepare(made[name])
        return made[name]

    return place


def told(counts):
    return [(found.what, found.case.data[:80], found.trace[-600:]) for found in counts.findings]


def test_the_corpus_is_small_and_has_a_file_of_every_reader():
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 200_000
    assert {path.name for path in CORPUS.iterdir()} >= set(READERS)


@pytest.mark.parametrize("name", READERS)
def test_what_once_failed_and_a_few_changes_of_it(places, name):
    reader, counts = READERS[name], fuzz(READERS[name], places(name), INPUTS.get(name, 150), 1)
    assert not counts.findings, told(counts)
    assert counts.inputs >= INPUTS.get(name, 150) and counts.refused
    # The corpus holds good files too: a reader that refuses all is not tried at all.
    good = Counts()
    for case in reader.seeds(places(name)):
        judge(reader, places(name), case, good)
    assert good.accepted


_SMALL = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
_CELLS = st.text(st.characters(codec="utf-8"), max_size=12)
_LINES = st.lists(st.lists(_CELLS, max_size=4), max_size=6)


def refuse_or_answer(places, name, file, data):
    counts = Counts()
    judge(READERS[name], places(name), Case(file, data), counts)
    assert not counts.findings, told(counts)


@pytest.mark.parametrize(
    ("name", "file"), [("csv", "a.csv"), ("tsv", "a.tsv"), ("stream", "a.csv"), ("stream", "a.txt")]
)
@given(lines=_LINES, header=st.booleans())
@_SMALL
def test_tables_of_any_text(places, name, file, lines, header):
    separator = "," if file.endswith("csv") else "\t"
    table = [["label", "text"], *lines] if header else lines
    refuse_or_answer(places, name, file, "\n".join(map(separator.join, table)).encode())


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | _CELLS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_CELLS, inner, max_size=3),
    max_leaves=8,
)


@given(documents=st.lists(_JSON | st.fixed_dictionaries({"text": _JSON, "label": _JSON})))
@_SMALL
def test_json_lines_of_anything(places, documents):
    import json

    data = "\n".join(json.dumps(document) for document in documents).encode()
    refuse_or_answer(places, "jsonl", "a.jsonl", data)


@pytest.mark.parametrize("name", ["glove", "word2vec_binary", "torchtext_vocab", "toml_config"])
@given(data=st.binary(max_size=200))
@_SMALL
def test_bytes_of_any_kind(places, name, data):
    file = "a.toml" if name == "toml_config" else "a.bin"
    refuse_or_answer(places, name, file, data)


@given(
    rows=st.lists(
        st.tuples(_CELLS, st.lists(st.floats(width=32) | _CELLS, max_size=4)), max_size=6
    ),
    promise=st.none() | st.tuples(st.integers(0, 10**19), st.integers(0, 10**10)),
)
@_SMALL
def test_vectors_as_text(places, rows, promise):
    lines = [] if promise is None else ["{} {}".format(*promise)]
    lines += [" ".join([word, *map(str, numbers)]) for word, numbers in rows]
    refuse_or_answer(places, "word2vec_text", "a.txt", "\n".join(lines).encode())
