import json
import pickle
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.core.errors import ConfigError
from superconext.text.normalize import PLACEHOLDERS, PROFILES, Normalizer
from superconext.text.tokenize import Tokenizer, tokenize, word_count
from tests.text.strategies import texts


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        (" \n", []),
        ("salam khoya", ["salam", "khoya"]),
        ("3la 9alb 7out ma3arfach sway3", ["3la", "9alb", "7out", "ma3arfach", "sway3"]),
        ("l'argent c’est est-elle 3'ir", ["l'argent", "c’est", "est-elle", "3'ir"]),
        ("covid-19, foo_bar -x- 'y'", ["covid-19", ",", "foo_bar", "-", "x", "-", "'", "y", "'"]),
        ("a--b a'-b", ["a", "--", "b", "a", "'", "-", "b"]),
        ("واش؟؟ لا، لا", ["واش", "؟؟", "لا", "،", "لا"]),
        ("wa3r!!! ok...?!", ["wa3r", "!!!", "ok", "...", "?", "!"]),
        ("2019 3.5 10% 23/12 12:30 1,000.", ["2019", "3.5", "10%", "23/12", "12:30", "1,000", "."]),
        ("3.5dh 4dh", ["3", ".", "5dh", "4dh"]),
        ("و352 3اكتوبر", ["و352", "3اكتوبر"]),
        ("<url><num> <asp> <3 a<b", ["<url>", "<num>", "<asp>", "<", "3", "a", "<", "b"]),
        ("#tag_a @me_1 # a@b", ["#tag_a", "@me_1", "#", "a", "@b"]),
        ("😂😂❤️", ["😂", "😂", "❤️"]),
        ("👍🏽👩🏽‍💻❤️‍🔥🤷‍♂️", ["👍🏽", "👩🏽‍💻", "❤️‍🔥", "🤷‍♂️"]),
        ("🇩🇿🇲🇦 5️⃣6️⃣ 👨‍👩‍👧‍👦", ["🇩🇿", "🇲🇦", "5️⃣", "6️⃣", "👨‍👩‍👧‍👦"]),
        ("🏴\U000e0067\U000e0062\U000e007fx", ["🏴\U000e0067\U000e0062\U000e007f", "x"]),
        ("قلب😍زوين", ["قلب", "😍", "زوين"]),
        ("اللّٰه مَشّانا مـــهم", ["اللّٰه", "مَشّانا", "مـــهم"]),
        ("ሰላም፣ ዓለም።", ["ሰላም", "፣", "ዓለም", "።"]),
        ("हिन्दी में है।", ["हिन्दी", "में", "है", "।"]),
        ("বাংলা ভাষা", ["বাংলা", "ভাষা"]),
        ("می‌روم", ["می‌روم"]),
        ("Ελλάδα Привет 한국어", ["Ελλάδα", "Привет", "한국어"]),
        ("我爱 中文abc", ["我", "爱", "中", "文", "abc"]),
        ("𠀀𠀁 𪚥a", ["𠀀", "𠀁", "𪚥", "a"]),
        ("กิน", ["กิ", "น"]),
        ("e\u0301a x\u0323y", ["e\u0301a", "x\u0323y"]),
        ("ⵜⴰⵎⴰⵣⵉⵖⵜ", ["ⵜⴰⵎⴰⵣⵉⵖⵜ"]),
    ],
)
def test_tokens(text, tokens):
    assert tokenize(text) == tokens


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("had l-film zwin, bzaf!", 4),
        ("قلب😍زوين", 1),
        ("我爱 中文abc", 5),
        ("กิน", 2),
        ("हिन्दी में", 2),
        ("", 0),
    ],
)
def test_words_are_counted_by_spaces_and_by_characters_where_there_are_none(text, words):
    assert word_count(text) == words


@settings(max_examples=400, deadline=None)
@given(text=texts)
def test_nothing_but_white_space_is_lost(text):
    tokens = tokenize(text)
    assert "".join(tokens) == "".join(text.split())
    assert tokens == Tokenizer()(text)


@settings(max_examples=300, deadline=None)
@given(text=texts, profile=st.sampled_from(PROFILES))
def test_tokens_are_whole(text, profile):
    for token in Tokenizer(Normalizer(profile))(text):
        assert token
        assert not any(c.isspace() for c in token)


@settings(deadline=None)
@given(text=texts)
def test_white_space_parts_tokens(text):
    assert tokenize(text + " " + text) == tokenize(text) * 2
    assert tokenize(text) == [token for part in text.split() for token in tokenize(part)]


@pytest.mark.parametrize("placeholder", PLACEHOLDERS)
def test_placeholders_stay_whole_and_meet_their_source(placeholder):
    source = {"<url>": "http://x.org", "<email>": "a@b.c", "<user>": "@me", "<num>": "12,5"}
    split = Tokenizer(Normalizer("arabic"))
    assert split(source[placeholder]) == [placeholder]
    assert split(placeholder) == [placeholder]


@settings(deadline=None)
@given(text=st.text(alphabet="0123456789.,:/-_'%a ضم", max_size=12))
def test_a_number_is_masked_exactly_if_it_is_a_token(text):
    normalize = Normalizer("none", enable=["numbers"])
    masked = tokenize(normalize(text))
    expected = ["<num>" if t[0].isdigit() and not any(map(str.isalpha, t)) else t
                for t in tokenize(text)]  # fmt: skip
    assert masked == expected


def test_runs_agree_after_normalising():
    split = Tokenizer(Normalizer("arabizi"))
    assert split("wa3r!!!!!!") == split("wa3r!!!") == ["wa3r", "!!!"]
    assert split("zwiiiin") == split("zwiiin") == ["zwiin"]
    assert split("hhhhhh") == ["hh"]


def test_bridge_is_off_unless_asked():
    normalizer = Normalizer("arabic")
    assert Tokenizer(normalizer)("3la 9albi") == ["3la", "9albi"]
    split = Tokenizer(normalizer, bridge="moroccan")
    assert split("9alb salam 😂 2019") == split("قلب سلام 😂 2019")
    with pytest.raises(ConfigError, match="moroccan"):
        Tokenizer(normalizer, bridge="morocan")


def test_round_trip():
    for split in (Tokenizer(), Tokenizer(Normalizer("arabic", enable=["ta_marbuta"]), "tunisian")):
        again = Tokenizer.from_dict(json.loads(json.dumps(split.to_dict())))
        assert again.to_dict() == split.to_dict()
        assert again("القهوة 9ahwa!") == split("القهوة 9ahwa!")
    with pytest.raises(ConfigError, match="normalizer"):
        Tokenizer.from_dict({})


@pytest.mark.parametrize(
    "unit",
    ["a", "1.", "1_", "1-1,", "a'", "<a", "#_", "@_", "#a", "!", "👍\u200d", "🏴\U000e0067", "ก",
     "\u0301", "\ud800", "\0"],
)  # fmt: skip
def test_a_long_run_takes_linear_time(unit):
    start = time.process_time()
    tokenize(unit * (300_000 // len(unit)) + "a")
    assert time.process_time() - start < 5


@given(st.lists(texts, max_size=6), st.sampled_from(PROFILES), st.sampled_from([None, "moroccan"]))
@settings(max_examples=300, deadline=None)
def test_many_texts_at_once_are_as_one_by_one(some, profile, bridge):
    tokenizer = Tokenizer(Normalizer(profile), bridge)
    expected = [tokenizer(text) for text in some]
    assert tokenizer.many(some) == expected
    assert tokenizer.many(some[::-1]) == expected[::-1]  # from memory
    assert tokenizer.many([" ".join(some)]) == [[token for tokens in expected for token in tokens]]


@given(st.lists(texts, max_size=4))
@settings(max_examples=200, deadline=None)
def test_no_optional_rule_reaches_over_a_space(some):
    tokenizer = Tokenizer(Normalizer("arabic", enable=["skin_tones", "ta_marbuta", "split_digits"]))
    assert tokenizer.many(some) == [tokenizer(text) for text in some]


def test_what_many_remembers_is_bounded_and_not_pickled(monkeypatch):
    monkeypatch.setattr("superconext.text.tokenize._REMEMBERED", 10)
    tokenizer = Tokenizer(Normalizer("arabic"))
    long = ["xy" * 2500 + str(i) for i in range(3)]
    for start in range(0, 100, 5):
        words = [f"w{chr(97 + i % 26)}{i}" for i in range(start, start + 5)]
        assert tokenizer.many([" ".join(words), *long]) == [words, *([text] for text in long)]
        assert len(tokenizer._known) <= 16
    again = pickle.loads(pickle.dumps(tokenizer))
    assert again._known == {} and again("b w") == ["b", "w"]
    assert again.many(["a\nb c", ""]) == [["a", "b", "c"], []]


def test_a_newline_is_no_token():
    assert tokenize("a\n\nb\n") == ["a", "b"]


def test_pieces_of_many_texts_are_those_of_each(monkeypatch):
    monkeypatch.setattr("superconext.text.tokenize._AT_ONCE", 3)
    texts = ["zwina bzaf", "", "had chi zwin", "bzaf bzaf 3la", "la", "zwin", " chi  ", "3la had"]
    tokenizer = Tokenizer()
    found = tokenizer.pieces(texts)
    assert len(set(map(tuple, found.tokens))) == len(found.tokens)
    edges = [0, *np.cumsum(found.counts)]
    for k, text in enumerate(texts):
        numbers = found.numbers[edges[k] : edges[k + 1]]
        assert [token for i in numbers for token in found.tokens[i]] == tokenizer(text)


@pytest.mark.parametrize("at_once", [1, 3, 100])
@pytest.mark.parametrize("most", [None, 1, 2, 50])
def test_spread_says_where_the_tokens_of_each_text_stand(monkeypatch, at_once, most):
    texts = ["zwina, bzaf", "", "had chi...zwin", "bzaf bzaf 3la", "la", "  ", "zwin!? la"]
    tokenizer = Tokenizer()
    found = tokenizer.pieces(texts)
    laid = [token for piece in found.tokens for token in piece]
    monkeypatch.setattr("superconext.text.tokenize._AT_ONCE", at_once)
    chosen, edges = found.spread(most)
    assert edges[0] == 0 and len(edges) == len(texts) + 1 and edges[-1] == len(chosen)
    for k, text in enumerate(texts):
        own = [laid[place] for place in chosen[edges[k] : edges[k + 1]]]
        assert own == tokenizer(text)[:most]


def test_no_text_has_no_piece():
    found = Tokenizer().pieces([])
    assert (len(found.tokens), len(found.numbers), len(found.counts)) == (0, 0, 0)
