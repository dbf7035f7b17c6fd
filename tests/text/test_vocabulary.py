import copy
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from superconext.core.errors import ConfigError, RunError
from superconext.text.tokenize import PAD, UNK, Vocabulary

TEXTS = [["b", "a", "c"], ["a", "b"], ["a", "d"], []]
token_lists = st.lists(st.lists(st.text(min_size=1, max_size=3), max_size=8), max_size=8)


def test_order_is_count_then_word():
    vocabulary = Vocabulary.build(TEXTS)
    assert vocabulary.words == (PAD, UNK, "a", "b", "c", "d")
    assert vocabulary.counts == (0, 0, 3, 2, 1, 1)
    assert len(vocabulary) == 6
    assert vocabulary.index("b") == 3
    assert vocabulary.index("z") == 1
    assert vocabulary.index(PAD) == 0
    assert "c" in vocabulary and "z" not in vocabulary


def test_rare_words_are_left_out_and_counted_as_unknown():
    vocabulary = Vocabulary.build(TEXTS, min_count=2)
    assert vocabulary.words[2:] == ("a", "b")
    assert vocabulary.counts == (0, 2, 3, 2)
    assert Vocabulary.build(TEXTS, max_size=1).words[2:] == ("a",)
    assert Vocabulary.build(TEXTS, max_size=3).words[2:] == ("a", "b", "c")


def test_no_text_leaves_the_specials():
    assert Vocabulary.build([]).words == (PAD, UNK)
    assert Vocabulary.build([[]]).encode(["a"]).tolist() == [1]


def test_generators_are_read_once():
    once = Vocabulary.build(iter(t) for t in TEXTS)
    assert once.to_json() == Vocabulary.build(TEXTS).to_json()


@pytest.mark.parametrize("argument", [{"min_count": 0}, {"max_size": 0}, {"min_count": -3}])
def test_sizes_below_one_are_refused(argument):
    with pytest.raises(ConfigError, match=next(iter(argument))):
        Vocabulary.build(TEXTS, **argument)


def test_encode():
    ids = Vocabulary.build(TEXTS).encode(["d", "z", "a"])
    assert ids.dtype == np.int32
    assert ids.tolist() == [5, 1, 2]
    empty = Vocabulary.build(TEXTS).encode([])
    assert empty.shape == (0,) and empty.dtype == np.int32


def test_specials_spelt_out_in_a_text_are_unknown_words():
    vocabulary = Vocabulary.build([[PAD, UNK, "a", PAD]])
    assert vocabulary.words == (PAD, UNK, "a")
    assert vocabulary.counts == (0, 3, 1)
    assert vocabulary.encode([PAD, UNK, "a"]).tolist() == [1, 1, 2]


@given(texts=token_lists, min_count=st.integers(1, 3), max_size=st.none() | st.integers(1, 5))
def test_against_a_plain_loop(texts, min_count, max_size):
    vocabulary = Vocabulary.build(texts, min_count=min_count, max_size=max_size)
    flat = [token for text in texts for token in text]
    expected = sorted(set(flat), key=lambda token: (-flat.count(token), token))
    expected = [token for token in expected if flat.count(token) >= min_count][:max_size]
    assert list(vocabulary.words[2:]) == expected
    assert sum(vocabulary.counts) == len(flat)
    for text in texts:
        for token, i in zip(text, vocabulary.encode(text), strict=True):
            assert i == (2 + expected.index(token) if token in expected else 1)


@given(texts=token_lists, min_count=st.integers(1, 3))
def test_round_trip(texts, min_count):
    vocabulary = Vocabulary.build(texts, min_count=min_count)
    again = Vocabulary.from_json(json.loads(json.dumps(vocabulary.to_json())))
    assert again.to_json() == vocabulary.to_json()


def _set(key, value):
    return lambda data: data.__setitem__(key, value)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data.pop("tokens"), "tokens"),
        (lambda data: data.pop("counts"), "counts"),
        (lambda data: data.pop("specials"), "specials"),
        (_set("format", 99), "format 99"),
        (_set("specials", {"pad": "<p>", "unk": UNK}), "specials"),
        (_set("tokens", "abc"), "list"),
        (_set("tokens", [PAD, UNK, "a", "b", "c", "a"]), "'a' at 2 and 5"),
        (_set("tokens", [PAD, UNK, "a", "b", "c", 3]), "token 5 of type int"),
        (_set("tokens", [PAD, UNK, "a", "b", "c", ["x"]]), "token 5 of type list"),
        (_set("tokens", [UNK, PAD, "a", "b", "c", "d"]), "begin"),
        (_set("tokens", ["x", "y", "a", "b", "c", "d"]), "begin"),
        (_set("tokens", [PAD, UNK, "a"]), "3 tokens and 6 counts"),
        (_set("counts", [0, 0, 3, 2, 1, -1]), "count 5"),
        (_set("counts", [0, 0, 3, 2, 1, True]), "count 5"),
        (_set("counts", [0, 0, 3, 2, 1, 1.5]), "count 5"),
        (_set("counts", [7, 0, 3, 2, 1, 1]), "count 7"),
        (_set("counts", None), "list"),
    ],
)
def test_damage_is_named(damage, words):
    data = copy.deepcopy(Vocabulary.build(TEXTS).to_json())
    damage(data)
    with pytest.raises(RunError) as error:
        Vocabulary.from_json(data)
    assert words in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("data", [None, [], "x", 3, {"tokens": [PAD, UNK], "counts": []}])
def test_something_else_is_refused(data):
    with pytest.raises(RunError):
        Vocabulary.from_json(data)


def test_no_file_at_all_of_specials():
    with pytest.raises(RunError):
        Vocabulary.from_json({**Vocabulary.build([]).to_json(), "tokens": [], "counts": []})


def test_words_and_counts_must_agree():
    with pytest.raises(ConfigError, match="2 words and 1 counts"):
        Vocabulary(["a", "b"], [1])
    with pytest.raises(ConfigError, match="'a' twice"):
        Vocabulary(["a", "a"], [1, 1])
    with pytest.raises(ConfigError, match="<pad>"):
        Vocabulary([PAD], [1])


def test_oov_report():
    vocabulary = Vocabulary.build(TEXTS)
    report = vocabulary.oov_report([["a", "z", "z"], ["y", "b", PAD], ["x", "a", "a", "y"]])
    assert report == {
        "types": 6,
        "tokens": 10,
        "oov_types": 4,
        "oov_tokens": 6,
        "oov_type_share": 4 / 6,
        "oov_token_share": 0.6,
        "frequent_oov": [["y", 2], ["z", 2], [PAD, 1], ["x", 1]],
    }
    json.dumps(report)


def test_oov_report_of_nothing_and_its_length():
    vocabulary = Vocabulary.build(TEXTS)
    assert vocabulary.oov_report([])["oov_token_share"] == 0.0
    many = vocabulary.oov_report([[f"w{i:02}" for i in range(30)]])
    assert [token for token, _ in many["frequent_oov"]] == [f"w{i:02}" for i in range(10)]
