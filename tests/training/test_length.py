import pytest
from hypothesis import given
from hypothesis import strategies as st

from superconext import SuperConTextClassifier
from superconext.config import resolve
from superconext.training.length import FEWEST_EPOCHS, shortened

TEXTS = [f"{word} {filler} {n}" for n in range(10) for word, filler in
         (("mezyan", "bzaf"), ("zwin", "chi"), ("khayb", "bzaf"), ("3iyan", "chi"))]  # fmt: skip
LABELS = ["pos", "pos", "neg", "neg"] * 10


@given(st.integers(1, 40), st.integers(1, 10**6), st.integers(1, 10**6))
def test_no_more_rows_are_read_than_the_limit_save_for_the_fewest_epochs(epochs, limit, rows):
    got = shortened(resolve({"epochs": epochs, "read_limit": limit}), rows).epochs
    assert min(epochs, FEWEST_EPOCHS) <= got <= epochs
    assert got * rows <= limit or got <= FEWEST_EPOCHS
    # One epoch more would be too many, of rows or of epochs.
    assert got == epochs or (got + 1) * rows > limit


@pytest.mark.parametrize("given", [{}, {"read_limit": 10, "steps_per_epoch": 2}])
def test_without_a_limit_and_with_steps_of_their_own_all_epochs_are_made(given):
    config = resolve(given)
    assert shortened(config, 10**6) == config


def test_the_model_says_how_many_epochs_were_made():
    """36 rows are trained on, a tenth being held back, so 260 allow seven."""
    quick = {"batch_size": 16, "hidden_size": 4, "vector_dimension": 4}
    model = SuperConTextClassifier(**quick, epochs=9, read_limit=260, members=2)
    model.fit(TEXTS, LABELS)
    assert [record["epoch"] for record in model.history_] == [*range(1, 8)] * 2
    assert model.model_.config.epochs == 7
    assert model.get_params()["epochs"] == 9
