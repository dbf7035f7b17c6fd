from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import superconext
from superconext import SuperConTextClassifier
from superconext.config.parameters import resolve
from superconext.training.trainer import decided, epochs_of

TEXTS = [f"{word} {filler} {n}" for n in range(10) for word, filler in
         (("mezyan", "bzaf"), ("zwin", "chi"), ("khayb", "bzaf"), ("3iyan", "chi"))]  # fmt: skip
LABELS = ["pos", "pos", "neg", "neg"] * 10
QUICK = {"batch_size": 16, "hidden_size": 4, "vector_dimension": 4}


@given(st.integers(0, 10**7), st.integers(0, 10**4))
def test_more_rows_are_never_read_more_often(rows, more):
    assert 15 >= epochs_of(rows) >= epochs_of(rows + more) >= 6


def test_few_rows_have_the_papers_epochs_and_many_rows_six():
    assert [epochs_of(rows) for rows in (2, 3_000, 4_500, 7_500, 10**6)] == [15, 15, 10, 6, 6]


def test_what_is_given_is_made_of_however_many_rows():
    assert decided(resolve({"epochs": 40}), 10**6).epochs == 40
    assert decided(resolve({"preset": "paper"}), 10**6).epochs == 60
    # Steps of their own: the rows have no say in how long an epoch is.
    assert decided(resolve({"steps_per_epoch": 3}), 10**6).epochs == 15


@pytest.mark.parametrize(("limit", "epochs"), [(45_000, 15), (250, 6), (36 * 8 + 1, 8)])
def test_the_model_says_how_many_epochs_were_made(limit, epochs, monkeypatch):
    """36 of the 40 rows are trained on, a tenth being held back."""
    monkeypatch.setattr("superconext.training.trainer.ROWS_READ", limit)
    model = SuperConTextClassifier(**QUICK, members=2).fit(TEXTS, LABELS)
    assert [record["epoch"] for record in model.history_] == [*range(1, epochs + 1)] * 2
    assert model.model_.config.epochs == epochs
    assert model.get_params()["epochs"] is None


PRETRAINED = {"init": "folder"}


@pytest.mark.parametrize(
    ("given", "rows", "expected"),
    [
        (PRETRAINED, 599, ("mean", 2e-4)),
        (PRETRAINED, 600, ("max", 1e-3)),
        ({"pretrain": True}, 24, ("mean", 2e-4)),
        ({**PRETRAINED, "freeze": True}, 10**5, ("mean", 1e-3)),
        ({**PRETRAINED, "pooling": "max"}, 24, ("max", 2e-4)),
        ({**PRETRAINED, "learning_rate": 0.01}, 24, ("mean", 0.01)),
        ({**PRETRAINED, "preset": "paper"}, 24, ("last", 1e-3)),
        ({}, 24, ("max", 1e-3)),
    ],
)
def test_a_pretrained_encoder_takes_small_steps_on_few_rows(given, rows, expected):
    config = decided(resolve(given), rows)
    assert (config.pooling, config.learning_rate) == expected


def test_a_run_from_a_pretrained_encoder_records_what_was_decided(tmp_path):
    encoder = Path(__file__).parents[1] / "frozen" / "pretrained"
    model = SuperConTextClassifier(init=str(encoder), hidden_size=6, batch_size=16, epochs=1)
    model.fit(TEXTS, LABELS).save(tmp_path / "run")
    found = superconext.load(tmp_path / "run").model_.config
    assert (found.pooling, found.learning_rate) == ("mean", 2e-4)
    assert model.get_params()["pooling"] is None
