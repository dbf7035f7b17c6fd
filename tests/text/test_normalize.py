import itertools
import json
import pickle
import re
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from superconext.core.errors import ConfigError
from superconext.text import normalize as rules
from superconext.text.normalize import (
    PROFILES,
    RULE_NAMES,
    RULES,
    Normalizer,
    choose_profile,
    normalizer_of,
)
from tests.text.strategies import texts

MANUAL = Path(__file__).parents[2] / "docs" / "text.md"


def only(*rules):
    return Normalizer("none", enable=[*rules, "spaces"])


def told_rules():
    """The rows of the table in docs/text.md: rule, profiles, before, after, why."""
    lines = MANUAL.read_text(encoding="utf-8").splitlines()
    first = lines.index("| rule | on in | before | after | why |") + 2
    for line in itertools.takewhile(lambda line: line.startswith("|"), lines[first:]):
        cells = [cell.removeprefix(" ").removesuffix(" ") for cell in line.split("|")[1:-1]]
        yield [
            re.sub(r"\[U\+(\w{4})\]", lambda code: chr(int(code[1], 16)), cell.strip("`"))
            for cell in cells
        ]


def test_the_manual_tells_every_rule_and_where_it_is_on():
    every = [name for name in PROFILES if name != "none"]
    told = [
        (row[0], tuple({"all": every, "–": []}.get(row[1], row[1].split(", "))))
        for row in told_rules()
    ]
    assert told == [(rule.name, rule.profiles) for rule in RULES]
    assert all(row[-1] for row in told_rules())


@pytest.mark.parametrize("row", list(told_rules()), ids=lambda row: row[0])
def test_the_example_of_each_rule_is_true_and_is_its_own_doing(row):
    name, before, after = row[0], row[2], row[3]
    assert only(name)(before) == after
    if name != "spaces":
        assert only()(before) == before != after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("@user و352ألف هههههه!!!!! https://t.co/abc…", "<user> و352الف هه!!! <url> ..."),
        ("اللّٰه", "الله"),
        ("ﺍﻟﻠﻪ", "الله"),
        ("C’EST l´argent", "c'est l'argent"),
        ("kay8reb 3la 9albi 7out 5oya", "kay8reb 3la 9albi 7out 5oya"),
        ("3'ir covid-19 mp3", "3'ir covid-19 mp3"),
        ("23/12 12:30 1,000 2018-2019 -5", "<num> <num> <num> <num> - <num>"),
        ("٢٠٢٢ ۲۰۲۲", "<num> <num>"),
        ("3.5dh", "<num> .5dh"),
        ("me@mail.ma @a@b", "<email> <user> <user>"),
        ("شوف(https://x.org/a?b=1).", "شوف( <url> )."),
        ("www.example.com awww.so www...", "<url> aww.so ww..."),
        ("https://t.co/abcمرحبا", "<url> مرحبا"),
        ("##tag #a_b_c# C#", "tag a b c# c#"),
        ("#हिन्दी_दिवस #中文", "हिन्दी दिवस 中文"),
        ("ڤ گ ڭ چ پ ڨ", "ڤ گ ڭ چ پ ڨ"),
        ("قهوة", "قهوة"),
        ("❤️‍🔥 👩🏽‍💻 a‍b 👍‍", "❤‍🔥 👩🏽‍💻 ab 👍"),
        ("می‌روم a\u200bb a\u2800b", "ميروم a b a b"),
        ("5️⃣ 1000000", "5⃣ <num>"),
        ("hhhhhhh looool créée", "hh lool créée"),
        ("a\0b \ud800", "ab \ufffd"),
        ("", ""),
        (" \n\t ", ""),
    ],
)
def test_arabic_profile(before, after):
    assert Normalizer("arabic")(before) == after


def test_letters_that_compose_only_after_something_between_them_is_gone():
    n = Normalizer("arabic")
    assert n("e\u0640\u0301") == "é"
    assert n("ا\u0640\u0654") == "ا"
    assert n("J\u030c") == "ǰ"
    assert n("و\u0654") == "ؤ"


def test_what_profiles_leave_alone():
    assert Normalizer("latin")("In 2019, 3.5% of @me") == "in 2019, 3.5% of <user>"
    assert Normalizer("arabizi")("أنا 7ta f 2019") == "أنا 7ta f <num>"
    text = " أَنا ـ\n\0 C'EST https://x.y @me #a_b 2019 !!!!!! \ud800 👍🏽 "
    assert Normalizer("none")(text) is text
    assert Normalizer("none").rules == ()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("İYİ Iğdır", "iyi iğdır"),  # without i and a dot above, which no keyboard writes
        ("ⴰⴳⵯ ⴰⴳⵡ Aⵯ", "ⴰⴳⵯ ⴰⴳⵡ aⵯ"),
        ("२०२४ ๒๐๒๔ ၂၀၂၄ ২০২৪", "2024 2024 2024 2024"),
        ("बहुुुुत बहुुुत बहुुत ดีีีี", "बहुुत बहुुत बहुुत ดีี"),
    ],
)
def test_other_scripts(before, after):
    assert Normalizer("latin")(before) == after


def test_digits_of_every_script_are_known():
    plain = Normalizer("latin")
    for code in filter(lambda code: chr(code).isdecimal(), range(0x1_0000)):
        assert plain(chr(code)) == str(unicodedata.decimal(chr(code)))


def test_yehs_stay_apart_where_they_are_letters_of_their_own():
    pashto = ["سړی راغی", "سړي راغلل", "ښځې ته وايي"]
    assert choose_profile(pashto) == "arabic-alef_maksura"
    plain = normalizer_of("auto", pashto)
    assert plain.named == "arabic-alef_maksura" and plain("سړی") != plain("سړي")
    asked = normalizer_of("auto+alef_maksura-lower", pashto)
    assert asked.named == "arabic-lower" and asked("سړی") == asked("سړي")
    assert choose_profile(["الفيلم زوين بزاف"] * 100 + ["ې"]) == "arabic"
    assert Normalizer("latin+tatweel").named == "latin+tatweel"


def test_options_go_by_rule_name():
    assert "ta_marbuta" not in Normalizer("arabic").rules
    assert Normalizer("arabic", enable=["ta_marbuta"])("قهوة") == "قهوه"
    assert Normalizer("arabic", disable=["hashtags", "lower"])("#A_b #2019") == "#A_b #2019"
    assert Normalizer("arabic", enable=["skin_tones"])("👩🏽‍💻👍🏿") == "👩‍💻👍"
    # In the order of the table, whatever the order asked for.
    asked = Normalizer("none", enable=["spaces", "nfkc", "lower"]).rules
    assert asked == ("nfkc", "lower", "spaces")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"profile": "arabik"}, ["'arabik'", "arabizi", "did you mean 'arabic'"]),
        ({"enable": ["tatwel"]}, ["'tatwel'", "enable", "elongation", "did you mean 'tatweel'"]),
        ({"disable": ["xyzzy"]}, ["'xyzzy'", "disable", "spaces"]),
        ({"enable": "lower"}, ["'lower'", "list"]),
        ({"enable": [3]}, ["3", "expected"]),
        ({"profile": "arabic+xyzzy"}, ["'xyzzy'", "in normalize"]),
        ({"profile": "latin-lower", "enable": ["lower"]}, ["'lower'", "both"]),
        ({"enable": ["lower"], "disable": ["lower"]}, ["'lower'", "both"]),
    ],
)
def test_wrong_names_are_refused_with_the_known_ones(arguments, words):
    with pytest.raises(ConfigError) as error:
        Normalizer(**arguments)
    assert all(word in str(error.value) for word in words)
    assert "\n" not in str(error.value)


def test_rules_are_switched_behind_the_profile_as_by_arguments():
    given = Normalizer("latin+tatweel-lower")
    assert given.profile == "latin"
    assert given.rules == Normalizer("latin", enable=["tatweel"], disable=["lower"]).rules
    assert "lower" not in given.rules and "tatweel" in given.rules


@given(
    profile=st.sampled_from(PROFILES),
    names=st.lists(st.sampled_from(RULE_NAMES), unique=True),
    cut=st.integers(0, len(RULE_NAMES)),
)
def test_round_trip_as_json_and_between_processes(profile, names, cut):
    normalizer = Normalizer(profile, enable=names[:cut], disable=names[cut:])
    again = Normalizer.from_dict(json.loads(json.dumps(normalizer.to_dict())))
    assert again.to_dict() == normalizer.to_dict() and again.rules == normalizer.rules
    assert pickle.loads(pickle.dumps(normalizer)).to_dict() == normalizer.to_dict()


@pytest.mark.parametrize(
    "data", [{}, None, [], {"profile": "arabic"}, {"profile": "x", "rules": []}]
)
def test_from_dict_refuses_damage(data):
    with pytest.raises(ConfigError):
        Normalizer.from_dict(data)


@settings(max_examples=300, deadline=None)
@given(text=texts, profile=st.sampled_from(PROFILES))
def test_profiles_are_stable(text, profile):
    normalize = Normalizer(profile)
    once = normalize(text)
    assert normalize(once) == once


@settings(max_examples=300, deadline=None)
@given(text=texts, names=st.sets(st.sampled_from(RULE_NAMES)))
@example(text="\u0130\u0307\u0307", names={"lower"})
def test_any_choice_of_rules_is_stable(text, names):
    normalize = Normalizer("none", enable=sorted(names))
    once = normalize(text)
    assert normalize(once) == once


def test_a_dot_that_comes_to_its_i_is_taken_with_it():
    for between in ("\u0640", "\u064b"):
        once = Normalizer("arabic")(f"i{between}\u0307")
        assert once == Normalizer("arabic")(once) == "i"


def test_of_very_many_marks_in_a_row_the_rest_is_dropped():
    normalize = Normalizer("none", enable=["nfkc"])
    kept = [normalize("a" + "\u0301" * count + "b") for count in (499, 502, 700, 5_000)]
    assert len(kept[0]) == 500 and kept[1] == kept[2] == kept[3]
    assert all(normalize(text) == text for text in kept)


@settings(max_examples=300, deadline=None)
@given(text=texts)
def test_compatibility_forms_line_by_line_are_those_of_the_whole_text(text):
    whole = text.translate(rules._SPACING_FORMS)
    assert rules.nfkc(text) == unicodedata.normalize("NFKC", whole)
    assert rules.is_nfkc(text) == unicodedata.is_normalized("NFKC", text)


@settings(deadline=None)
@given(words=st.lists(st.sampled_from(["salam", "3la", "شكون", "كيفاش", "😂", "ላም"]), max_size=9))
def test_order_is_kept(words):
    assert Normalizer("arabic")("  ".join(words)).split() == words


@settings(deadline=None)
@given(text=texts)
def test_arabic_profile_leaves_nothing_it_promises_to_remove(text):
    out = Normalizer("arabic")(text)
    assert not set(out) & {*"ـأإآٱىیً\u064e\u0651\u0652\u0670\u200b\u200c\u200f\ufeff\0", "\ufe0f"}
    assert not any("\ud800" <= c <= "\udfff" for c in out)
    assert out == " ".join(out.split())
    for letter in set(filter(str.isalpha, out)):
        assert letter * 3 not in out
    for mark in "!?.،😂":
        assert mark * 4 not in out


@pytest.mark.parametrize(
    "unit",
    ["a", "1", "#", "@", "_", "ا", "\u0654", "\u0301", "1.", "1_", "a@", "#_", "http://", "www.",
     "\u200d", "👍\u200d", "ـ\u0654", " ", "\ud800", "<a", "a-", "\u064b\u0301"],
)  # fmt: skip
def test_a_long_run_takes_linear_time(unit):
    # Quadratic time would be minutes here; a million characters take about a second.
    text = "ا" + unit * (300_000 // len(unit)) + "a"
    start = time.process_time()
    for profile in ("arabic", "latin"):
        Normalizer(profile)(text)
    assert time.process_time() - start < 5


def test_choose_profile():
    arabic, arabizi = ["شكون هذا", "راك مليح بزاف"], ["chkoun hada", "3la 9albi", "ma3arfach walo"]
    english = ["the 2nd mp3 of 2019 in 3d", "don't"] * 10
    assert choose_profile(arabic) == "arabic"
    assert choose_profile(arabizi) == "arabizi"
    assert choose_profile(english) == "latin"
    assert choose_profile(arabizi * 3 + arabic) == "arabic"
    assert choose_profile(["ሰላም ለዓለም", "हिन्दी"]) == "latin"
    assert choose_profile([]) == choose_profile(["", "12 !"]) == "latin"
    assert choose_profile(reversed(arabizi + english)) == choose_profile(arabizi + english)


def test_choose_profile_thresholds():
    # 5 Arabic letters of 100, then 4 of 100.
    assert choose_profile(["ابجده " + "x" * 95]) == "arabic"
    assert choose_profile(["ابجد " + "x" * 96]) == "latin"
    # 1 Arabizi word of 100, then of 101.
    assert choose_profile(["3la", *["salam " * 33] * 3]) == "arabizi"
    assert choose_profile(["3la", *["salam " * 50] * 2]) == "latin"
    # 1 of 500 Arabic letters is a yeh of its own, then 1 of 501.
    assert choose_profile(["ا" * 499 + "ې"]) == "arabic-alef_maksura"
    assert choose_profile(["ا" * 499 + "ې", "ا"]) == "arabic"
    # Numbers are no words.
    assert choose_profile(["3la", "salam " * 50 + "12 " * 60]) == "arabizi"
    # One long text, such as a page pasted into a cell, does not outweigh the others.
    assert choose_profile([*["wach had lfilm zwin"] * 900, "شكون هذا " * 12_000]) == "latin"
    assert choose_profile([*["3la had lfilm zwin"] * 20, "salam " * 20_000]) == "arabizi"
    # Neither addresses nor names count.
    assert choose_profile(["hello https://t.co/a3bc7d @m3a_ab #9alb"] * 5) == "latin"
