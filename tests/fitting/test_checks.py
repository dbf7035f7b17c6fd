import numpy as np
import pytest

from superconext import SuperConTextClassifier
from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError
from superconext.core.progress import Progress
from superconext.encoders.words import MeanEncoder
from superconext.fitting.checks import warn_where_unread
from superconext.objectives.catalogue import OBJECTIVES, objective_class

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
    assert sum("found nothing that learns" in line for line in said) == unread
    said.clear()
    warn_where_unread(resolve(given), progress)
    assert not any("learns" in line for line in said), "without text there is nothing to tell"


UNREAD = [
    ({"objective": "cross_entropy", "temperature": 0.5}, ["temperature = 0.5 with objective"]),
    ({"objective": "ce_ce", "temperature": 0.5}, []),
    ({"objective": "dualcl", "temperature": 0.5, "projection": "linear"}, ["projection"]),
    ({"objective": "superloss", "temperature": 0.5, "projection": "linear"}, []),
    (
        {"encoder": "mean", "pooling": "mean", "layers": 2},
        ["layers = 2, pooling = 'mean' with enc"],
    ),
    ({"encoder": "mean", "tune_vectors": True, "epochs": 2}, []),
    ({"encoder": "transformer", "model": "bert", "min_count": 2}, ["min_count = 2 with encoder"]),
    ({"encoder": "transformer", "model": "bert", "dropout": 0.3, "max_length": 9}, []),
    ({"freeze": True, "epochs": 3, "objective": "supcon"}, ["'supcon', epochs = 3 with freeze"]),
    ({"freeze": True, "related": "other.tsv", "layers": 2}, []),
    (
        {"encoder": "transformer", "model": "bert", "freeze": True, "related": "other.tsv"},
        ["related = 'other.tsv' with freeze"],
    ),
    ({"encoder": "mean", "freeze": True, "layers": 2}, ["layers = 2 with encoder"]),
    ({"preset": "paper", "freeze": True}, []),
    ({"preset": "paper", "encoder": "mean"}, []),
]


@pytest.mark.parametrize(("given", "told"), UNREAD, ids=[str(given) for given, _ in UNREAD])
def test_parameters_that_nothing_reads_are_told(given, told):
    said = []
    progress = Progress()
    progress.warn = said.append
    warn_where_unread(resolve(given), progress)
    assert len(said) == len(told)
    for line, part in zip(said, told, strict=True):
        assert part in line and "leave" in line


def _vectors(**given):
    small = {"vector_method": "random", "vector_dimension": 6, "hidden_size": 4, "epochs": 1}
    model = SuperConTextClassifier(**{**small, "baselines": False, "batch_size": 8, **given})
    return model.fit(TEXTS, LABELS).transform(TEXTS)


@pytest.mark.parametrize("name", sorted(OBJECTIVES.built_in))
def test_whether_an_objective_reads_temperature_and_projection(name, tmp_path):
    """Training with another value gives other vectors, or the same where it says it reads none."""
    objective, given = objective_class(name), {"objective": name}
    if objective.needs_pool:
        (tmp_path / "pool.txt").write_text("zwin\nkhayb\nmezyan bzaf\n" * 9, encoding="utf-8")
        given |= {"unlabelled": str(tmp_path / "pool.txt"), "options": "warmup=0"}
    usual = _vectors(**given)
    hotter = _vectors(**given, temperature=0.5)
    assert np.array_equal(usual, hotter) != objective.reads_temperature
    straight = _vectors(**given, projection="identity")
    assert np.array_equal(usual, straight) != objective.uses_projection


@pytest.mark.parametrize(
    "given", [{"layers": 2}, {"hidden_size": 8}, {"dropout": 0.5}, {"word_dropout": 0.5},
              {"pooling": "mean"}, {"compile": True}],
)  # fmt: skip
def test_the_mean_encoder_reads_none_of_what_it_says_it_does_not(given):
    assert set(given) <= MeanEncoder.unread
    assert np.array_equal(_vectors(encoder="mean"), _vectors(encoder="mean", **given))
