"""Texts that are likely to break a normaliser: what joins, composes, or looks like a pattern."""

from hypothesis import strategies as st

FRAGMENTS = [
    *"aAhHtTpPsSwWxiI3925.,:/-_'’#@<>!?%+&~ \t\n\0…´`\"²½",
    *"ـاأإآىیةويڤگڭچپڨٹ٣۵٪٫،؟",
    *"\u064e\u0651\u0670\u0653\u0654\u0655\u0301\u030c\u0338\u200b\u200c\u200d\u200f\ufe0f\u20e3",
    *"\ud800\udc00👍🏽❤🔥♂🇩🇿İΣʼŉJｶﾞ中文กिहअ्가각፩ሰ\u2028\x1c\x85\xa0ﺍﻻﷺ﷽ﹰﹷＡ＠＃①ﬁß",
    "://", "www.", "http://", "pic.twitter.com/", "@b.c", "b@", "<num>", "<url>", "ooo", "www",
]  # fmt: skip

texts = st.one_of(
    st.text(),
    st.text(alphabet=st.characters()),  # lone surrogates too
    st.lists(
        st.tuples(st.sampled_from(FRAGMENTS), st.integers(1, 4)).map(lambda p: p[0] * p[1]),
        max_size=14,
    ).map("".join),
)
