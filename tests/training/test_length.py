import pytest
from hypothesis import given
from hypothesis import strategies as st

from superconext import SuperConTextClassifier
from superconext.config.parameters import resolve
from superconext.training.trainer import epochs_of, with_epochs

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
    assert with_epochs(resolve({"epochs": 40}), 10**6).epochs == 40
    assert with_epochs(resolve({"preset": "paper"}), 10**6).epochs == 60
    # Steps of their own: the rows have no say in how long an epoch is.
    assert with_epochs(resolve({"steps_per_epoch": 3}), 10**6).epochs == 15


@pytest.mark.parametrize(("limit", "epochs"), [(45_000, 15), (250, 6), (36 * 8 + 1, 8)])
def test_the_model_says_how_many_epochs_were_made(limit, epochs, monkeypatch):
    """36 of the 40 rows are trained on, a tenth being held back."""
    monkeypatch.setattr("superconext.training.trainer.ROWS_READ", limit)
    model = SuperConTextClassifier(**QUICK, members=2).fit(TEXTS, LABELS)
    assert [record["epoch"] for record in model.history_] == [*range(1, epochs + 1)] * 2
    assert model.model_.config.epochs == epochs
    assert model.get_params()["epochs"] is None
