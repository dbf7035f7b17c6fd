"""The table of normalisation rules: what each one does, why, and where it is on.

`RULES` is in the order of application, and that order matters: characters first (so that
later patterns see one spelling), then placeholders, then runs. `docs/text.md` prints this
table; a test keeps the two equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from superconext.text import characters, patterns

PROFILES = ("arabic", "arabizi", "latin", "none")
PLACEHOLDERS = ("<url>", "<email>", "<user>", "<num>")

_EVERY = ("arabic", "arabizi", "latin")


@dataclass(frozen=True)
class Rule:
    """One entry: either a character map or a function, and the words for the manual."""

    name: str
    reason: str
    before: str
    after: str
    profiles: tuple[str, ...]
    characters: Mapping[int, str | None] = field(default_factory=dict)
    function: Callable[[str], str] | None = None


_INVISIBLE: dict[int, str | None] = {
    **dict.fromkeys(characters.INVISIBLE, None),
    **dict.fromkeys(characters.BLANKS, " "),
    **dict.fromkeys(range(0xD800, 0xE000), "\ufffd"),  # lone surrogates cannot be saved as UTF-8
}


RULES: tuple[Rule, ...] = (
    Rule(
        "skin_tones",
        "The tone of a hand seldom carries the label; off, because it can.",
        "👍🏽",
        "👍",
        (),
        characters=dict.fromkeys(characters.SKIN_TONES, None),
    ),
    Rule(
        "invisible",
        "Direction marks, soft hyphens, controls and style selectors make two spellings that "
        "look the same. The zero width joiner stays inside emoji sequences. The zero width "
        "non-joiner goes without a space: it does not end a word (UAX #29). The zero width "
        "space does end one. A lone surrogate becomes U+FFFD.",
        "الحسيمة\u200f ❤\ufe0f",
        "الحسيمة ❤",
        _EVERY,
        characters=_INVISIBLE,
        function=patterns.join_emoji_only,
    ),
    Rule(
        "nfkc",
        "Phones and old pages write Arabic presentation forms, ligatures and wide letters: "
        "one letter must be one code point.",
        "ﻻ ﷺ Ａ",
        "لا صلى الله عليه وسلم A",
        _EVERY,
        function=patterns.nfkc,
    ),
    Rule(
        "lower",
        "Few sentences cannot teach two cases; switch it off for cased vectors.",
        "C'EST Wa3r",
        "c'est wa3r",
        _EVERY,
        function=str.lower,
    ),
    Rule(
        "quotes",
        "Keyboards differ in the apostrophe: c’est and c'est are one word.",
        "c’est “top”",
        'c\'est "top"',
        _EVERY,
        characters={
            **dict.fromkeys(map(ord, "‘’‛ʼʻ"), "'"),
            **dict.fromkeys(map(ord, "“”„‟"), '"'),
        },
    ),
    Rule(
        "digits",
        "Arabic-Indic and Persian digits, with their separators, are the same numbers.",
        "٢٠١٩ ۳٫۵ ١٠٪",
        "2019 3.5 10%",
        _EVERY,
        characters={
            **{0x0660 + value: str(value) for value in range(10)},
            **{0x06F0 + value: str(value) for value in range(10)},
            **{ord("٪"): "%", ord("٫"): ".", ord("٬"): ","},
        },
    ),
    Rule(
        "tatweel",
        "The stroke that stretches a word is ornament.",
        "مـــهمـا",
        "مهما",
        ("arabic",),
        characters={0x0640: None},
    ),
    Rule(
        "diacritics",
        "Short vowels and shadda (U+064B to U+0652, U+0670) are written now and then only.",
        "موزَّعة",
        "موزعة",
        ("arabic",),
        characters=dict.fromkeys((*range(0x064B, 0x0653), 0x0670), None),
    ),
    Rule(
        "alef",
        "The hamza on alef is left out at will (أإآٱ to ا, with combining hamza and madda).",
        "أنا إلى آخر",
        "انا الى اخر",
        ("arabic",),
        characters={
            **dict.fromkeys(map(ord, "أإآٱ"), "ا"),
            # NFKC composes a hamza with the plain alef again: left behind, it would come back.
            **dict.fromkeys((0x0653, 0x0654, 0x0655), None),
        },
    ),
    Rule(
        "alef_maksura",
        "Final ي and ى change places from region to region; ی is the Persian keyboard's.",
        "علا على بنی",
        "علا علي بني",
        ("arabic",),
        characters=dict.fromkeys(map(ord, "ىی"), "ي"),
    ),
    Rule(
        "ta_marbuta",
        "Off: the ending tells dialect and gender (ة to ه).",
        "قهوة",
        "قهوه",
        (),
        characters={ord("ة"): "ه"},
    ),
    Rule(
        "urls",
        "An address is seen once; that there is one is worth knowing.",
        "شوف https://t.co/8zHqgoaJ6f",
        "شوف <url>",
        _EVERY,
        function=patterns.urls,
    ),
    Rule(
        "emails",
        "As for addresses.",
        "ktb l me@mail.ma",
        "ktb l <email>",
        _EVERY,
        function=patterns.emails,
    ),
    Rule(
        "users",
        "A name would be learnt by heart.",
        "@nawel_1 شكرا",
        "<user> شكرا",
        _EVERY,
        function=patterns.users,
    ),
    Rule(
        "hashtags",
        "The words of a hashtag are words: # goes, _ parts them. Off, the tag is one token.",
        "#نجوى_كرم #Dzair",
        "نجوى كرم Dzair",
        _EVERY,
        function=patterns.hashtags,
    ),
    Rule(
        "split_digits",
        "Off: digits glued to Arabic letters become their own token.",
        "و352 3اكتوبر",
        "و 352 3 اكتوبر",
        (),
        function=patterns.split_digits,
    ),
    Rule(
        "numbers",
        "A number (a token without a letter) is rare as itself; digits inside words are letters "
        "of Arabizi and stay. Off for `latin`, whose vectors know numbers.",
        "2019 3.5 10% 3la 9alb 7out",
        "<num> <num> <num> 3la 9alb 7out",
        ("arabic", "arabizi"),
        function=patterns.numbers,
    ),
    Rule(
        "elongation",
        "Three or more of a letter are feeling, not spelling; two are spelling (الله, créée). "
        "Laughter is the same thing. Digits are never cut.",
        "راااائع هههههه hhhhh 1000",
        "راائع هه hh 1000",
        _EVERY,
        function=patterns.elongation,
    ),
    Rule(
        "punctuation",
        "A run of one mark or one emoji says the same after three.",
        "wa3r!!!!!! 😂😂😂😂😂",
        "wa3r!!! 😂😂😂",
        _EVERY,
        function=patterns.punctuation,
    ),
    Rule(
        "spaces",
        "Runs of white space become one space, the ends are trimmed.",
        "  salam \t khoya",
        "salam khoya",
        _EVERY,
        function=patterns.spaces,
    ),
)

RULE_NAMES = tuple(rule.name for rule in RULES)


def rules_markdown() -> str:
    """The table as Markdown, as it stands in docs/text.md."""

    def cell(text: str) -> str:
        shown = "".join(
            f"[U+{ord(c):04X}]" if ord(c) in characters.INVISIBLE or c == "\t" else c for c in text
        )
        return f"`{shown}`"

    lines = [
        "| rule | " + " | ".join(PROFILES) + " | before | after | why |",
        "|---" * (len(PROFILES) + 4) + "|",
    ]
    for rule in RULES:
        on = " | ".join("on" if profile in rule.profiles else "–" for profile in PROFILES)
        lines.append(
            f"| `{rule.name}` | {on} | {cell(rule.before)} | {cell(rule.after)} | {rule.reason} |"
        )
    return "\n".join(lines)
