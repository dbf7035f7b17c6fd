import pytest

from superconext import SuperConTextClassifier
from superconext.core.errors import ConfigError

TEXTS, LABELS = ["zwin bzaf", "khayb bzaf"] * 8, ["pos", "neg"] * 8

WRONG = [
    ({"options": "margin=wide", "objective": "triplet"}, "margin = 'wide'"),
    ({"options": "ensemble=some", "objective": "dualcl"}, "ensemble"),
    ({"options": "pool_size=0", "objective": "css_lm", "unlabelled": "none.txt"}, "pool_size"),
    ({"objective": "css_lm"}, "unlabelled is not set"),
    ({"pretrain": True}, "pretrain = true and no unlabelled text"),
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
