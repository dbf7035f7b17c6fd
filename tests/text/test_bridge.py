import runpy
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from superconext.core.errors import ConfigError
from superconext.text.bridge import DIALECTS, Bridge
from superconext.text.normalize import Normalizer
from tests.text.strategies import texts

PAIRS = {
    "moroccan": "3la/علا 3la/على 9alb/قلب salam/سلام chkoun/شكون chkon/شكون bzaf/بزاف "
    "bezzaf/بزّاف kifach/كيفاش wach/واش dyal/ديال dial/ديال 7na/حنا khoya/خويا 5oya/خويا "
    "ghadi/غادي 3andi/عندي sba7/صباح chno/شنو xno/شنو ma3arfach/ماعرفاش 3lach/علاش "
    "l9dim/القديم el9dim/القديم allah/الله kay8reb/كيهرب wa7ed/واحد tri9/طريق gal/ݣال gal/گال "
    "kanktbo/كنكتبو hadchi/هادشي 2ana/أنا 3'adi/غادي",
    "algerian": "3lah/علاه wa9tach/وقتاش chkoun/شكون khouya/خويا rabi/ربي kol/كل djazair/جزاير "
    "wech/واش 7ob/حب gal/ڨال",
    "tunisian": "8odwa/غدوة barcha/برشا 3lech/علاش kifech/كيفاش 5ater/خاطر ya3tik/يعطيك "
    "sa7a/صحة ha4a/هاذا 9albi/قلبي m3allem/معلم",
}


@pytest.mark.parametrize(
    ("dialect", "pair"), [(d, pair) for d, pairs in PAIRS.items() for pair in pairs.split()]
)
def test_both_spellings_share_a_key(dialect, pair):
    latin, arabic = pair.split("/")
    bridge = Bridge(dialect)
    assert bridge(latin) == bridge(arabic)
    assert all("\u0600" <= c <= "\u06ff" for c in bridge(latin))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_words_that_differ_keep_apart(dialect):
    words = [
        "9alb",
        "salam",
        "chkoun",
        "bzaf",
        "kifach",
        "wach",
        "7na",
        "ghadi",
        "3andi",
        "sba7",
        "3lach",
        "dar",
        "dir",
        "dour",
    ]
    assert len({Bridge(dialect)(word) for word in words}) == len(words)


def test_keys_of_known_words():
    bridge = Bridge("moroccan")
    assert bridge("9alb") == "قلب"
    assert bridge("salam") == "سلم"
    assert bridge("chkoun") == "شكون"


def test_dialects_read_the_same_letters_differently():
    assert Bridge("tunisian")("8alta") == Bridge("tunisian")("غلطة")
    assert Bridge("moroccan")("8reb") == Bridge("moroccan")("هرب")
    assert Bridge("moroccan")("xi") == Bridge("moroccan")("شي") != Bridge("algerian")("xi")


@pytest.mark.parametrize("token", ["<url>", "2019", "!!!", "😂", "ሰላም", "...", "<num>", ""])
def test_other_tokens_stay(token):
    assert Bridge("algerian")(token) == token


@settings(max_examples=300, deadline=None)
@given(token=texts, dialect=st.sampled_from(sorted(DIALECTS)))
def test_any_token_has_a_key(token, dialect):
    key = Bridge(dialect)(token)
    assert isinstance(key, str)
    assert bool(key) == bool(token)


def test_normalising_first_does_not_part_a_pair():
    bridge, normalize = Bridge("moroccan"), Normalizer("arabic", disable=["alef_maksura"])
    for pair in PAIRS["moroccan"].split():
        latin, arabic = pair.split("/")
        assert bridge(normalize(latin)) == bridge(normalize(arabic))


def test_unknown_dialect():
    with pytest.raises(ConfigError, match=r"'tunisien'.*moroccan.*did you mean 'tunisian'"):
        Bridge("tunisien")


def test_the_site_has_the_letters_of_every_dialect():
    root = Path(__file__).parents[2]
    page = runpy.run_path(str(root / "scripts" / "reference_pages.py"))["bridge"]()
    assert "`tch` تش, " in page and "| `8` | ه | ه | غ |" in page
    for letters in DIALECTS.values():
        assert all(f"`{unit}` " in page for unit in letters)
