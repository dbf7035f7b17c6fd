import pytest

from superconext import SuperConTextClassifier
from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError
from superconext.core.progress import Progress
from superconext.fitting.checks import warn_where_unread

TEXTS, LABELS = ["zwin bzaf", "khayb bzaf"] * 8, ["pos", "neg"] * 8

WRONG = [
    ({"options": "margin=wide", "objective": "triplet"}, "margin = 'wide'"),
    ({"options": "ensemble=some", "objective": "dualcl"}, "ensemble"),
    ({"options": "pool_size=0", "objective": "css_lm", "unlabelled": "none.txt"}, "pool_size"),
    ({"objective": "css_lm"}, "unlabelled is not set"),
    ({"pretrain": True}, "pretrain = true and no unlabelled text"),
    ({"pretrain_words": 9}, "pretrain_words = 9 without pretrain"),
    ({"device": "abacus"}, "device = 'abacus'"),
    ({"objective": "lacom"}, "did you mean 'lacon'"),
    ({"options": "mining=treshold"}, "did you mean 'threshold'"),
    ({"probe_rows": "unseen"}, "which was removed; .* use members = 4"),
]


@pytest.mark.parametrize(("given", "told"), WRONG, ids=[told for _, told in WRONG])
def test_what_cannot_be_is_refused_before_vectors_are_read(given, told):
    """A missing vector file would be the next thing to be told of."""
    with pytest.raises(ConfigError, match=told):
        SuperConTextClassifier(**{"vectors": "missing.txt", **given}).fit(TEXTS, LABELS)


@pytest.mark.parametrize(
    ("given", "unread"),
    [
        ({}, False),
        ({"pretrain": True, "vectors": "some.vec"}, False),
        ({"objective": "css_lm", "vectors": "some.vec"}, False),
        ({"vectors": "some.vec"}, False),  # told where they are read
        ({"encoder": "transformer", "model": "bert"}, True),
        ({"encoder": "transformer", "model": "bert", "objective": "css_lm", "freeze": True}, True),
    ],
)
def test_unlabelled_text_that_nothing_learns_from_is_told(given, unread):
    said = []
    progress = Progress()
    progress.warn = said.append
    warn_where_unread(resolve({"unlabelled": "text.txt", **given}), progress)
    assert len(said) == unread and all("found nothing that learns" in s for s in said)
    warn_where_unread(resolve(given), progress)
    assert len(said) == unread, "without text there is nothing to tell"
