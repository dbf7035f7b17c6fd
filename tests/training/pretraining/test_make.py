"""`train --pretrain` is `pretrain` and `train --init` in one."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from superconext import SuperConTextClassifier
from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.fitting.checks import check_config
from superconext.fitting.fit import fit_model
from superconext.training.pretraining.make import _table, pretrain, request_of
from superconext.vectors.table import WordVectors
from tests.experiments.conftest import Heard
from tests.fitting.test_stages import DEV, LABELS, SMALL, TEXTS, same

pytestmark = pytest.mark.filterwarnings("ignore:all sentences lie")


@pytest.fixture
def text(tmp_path, monkeypatch):
    """Unlabelled text that says what some dev row says, with another mark at its end."""
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "text.txt"
    lines = [f"{one} {other}" for one, other in zip(TEXTS, reversed(TEXTS), strict=True)]
    path.write_text("\n".join([*lines * 3, f"{DEV[0][0]} !"]) + "\n", encoding="utf-8")
    return path


def fit(progress=None, **given):
    return fit_model(
        Dataset(TEXTS, LABELS), resolve({**SMALL, **given}), Dataset(*DEV), progress=progress
    ).model


def test_gives_the_model_of_the_two_commands(text, tmp_path):
    heard = Heard()
    at_once = fit(heard, pretrain=True, unlabelled=str(text))
    assert "encoder: pretrained on text.txt" in "\n".join(heard.lines)
    assert "cached" not in "\n".join(heard.lines)

    held = tmp_path / "dev.tsv"
    held.write_text("".join(f"{b}\t{a}\n" for a, b in zip(*DEV, strict=True)), encoding="utf-8")
    folder = tmp_path / "encoder"
    sizes = {name: SMALL[name] for name in ("hidden_size", "vector_dimension")}
    request = request_of(sizes, files=[str(text)], out=folder, leave_out=[str(held)])
    assert pretrain(request, Progress())["cached"], "the very same work"
    after = fit(init=str(folder))
    assert same(at_once, after)
    assert not same(at_once, fit(unlabelled=str(text)))
    told, alone = [
        at_once.indexer.facts["vectors"],
        fit(unlabelled=str(text)).indexer.facts["vectors"],
    ]
    assert told["cleared_of"] == alone["cleared_of"] == len({*DEV[0]})
    assert told["trained_on"] == "text.txt"


def test_a_second_seed_takes_it_from_the_cache(text):
    fit(pretrain=True, unlabelled=str(text))
    heard = Heard()
    fit(heard, pretrain=True, unlabelled=str(text), seed=1)
    assert "encoder: pretrained on text.txt, cached" in heard.lines


def test_a_run_trains_a_given_encoder_further(text, tmp_path):
    own = tmp_path / "own.txt"
    own.write_text("\n".join(TEXTS * 4) + "\n", encoding="utf-8")
    folder = tmp_path / "encoder"
    sizes = {name: SMALL[name] for name in ("hidden_size", "vector_dimension")}
    pretrain(request_of(sizes, files=[str(text)], out=folder), Progress())
    heard, told = Heard(), Heard()
    more = fit(heard, pretrain=True, init=str(folder), unlabelled=str(own))
    assert f"encoder: {folder}, trained further on own.txt" in heard.lines
    plain = fit(told, init=str(folder), unlabelled=str(own))
    assert any("--pretrain trains the encoder further on it" in line for line in told.lines)
    assert not same(more, plain)
    for given, message in (
        ({"normalize": "none"}, "expected the same: choose --normalize"),
        ({"vectors": str(folder)}, "leave out vectors"),
    ):
        with pytest.raises(ConfigError, match=message):
            fit(pretrain=True, init=str(folder), unlabelled=str(own), **given)


def test_the_estimator_has_it(text):
    model = SuperConTextClassifier(**SMALL, pretrain=True, unlabelled=str(text))
    assert set(model.fit(TEXTS, LABELS).predict(TEXTS)) <= set(LABELS)
    assert torch.isfinite(torch.from_numpy(model.predict_proba(TEXTS))).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [({}, "no unlabelled text"), ({"init": "some/encoder"}, "no unlabelled text")],
    ids=str,
)
def test_what_cannot_be_is_refused(given, message):
    with pytest.raises(ConfigError, match=message):
        check_config(resolve({**SMALL, "pretrain": True, **given}))


def test_words_that_the_vectors_lack_are_added_and_nothing_is_lost():
    known = np.random.default_rng(1).normal(3, 0.01, (50, 8)).astype(np.float32)
    names = [f"w{n}" for n in range(50)]
    vectors = WordVectors(names, known, name="v", emoji_scores=np.ones((1, 8), np.float32))
    words = ["<pad>", "<unk>", *names[:40], *(f"new{n}" for n in range(300))]
    corpus = SimpleNamespace(vocabulary=SimpleNamespace(words=words))
    table, whole = _table(vectors, corpus)
    assert not table[0].any()
    np.testing.assert_allclose(table[1], known[:40].mean(axis=0), rtol=1e-5)
    np.testing.assert_array_equal(table[2:42], known[:40])
    assert whole.words == [*names, *words[42:]] and whole.name == "v"
    np.testing.assert_array_equal(whole.lookup(words[2:])[0], table[2:])
    np.testing.assert_array_equal(whole.emoji_scores, vectors.emoji_scores)
    assert table[42:].std() == pytest.approx(known[:40].std(), rel=0.1)
    assert abs(table[42:].mean()) < known[:40].std()
