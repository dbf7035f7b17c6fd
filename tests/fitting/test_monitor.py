"""The score after each epoch is for who looks on: without it the model is the same."""

import numpy as np
import pytest

from superconext.config.parameters import resolve
from superconext.data.dataset import Dataset
from superconext.fitting.fit import fit_model
from tests.fitting.test_stages import DEV, LABELS, SMALL, TEXTS, same

pytestmark = pytest.mark.filterwarnings("ignore:all sentences lie")


def fit(monitor, **given):
    return fit_model(
        Dataset(TEXTS, LABELS), resolve({**SMALL, **given}), Dataset(*DEV), monitor=monitor
    )


@pytest.mark.parametrize(
    "given",
    [{}, {"keep": "last", "members": 2}, {"finetune_epochs": 5, "keep": "average"}],
    ids=str,
)
def test_a_model_nobody_watched_is_the_same(given):
    watched, alone = fit(True, **given), fit(False, **given)
    assert same(watched.model, alone.model)
    answers = [fitted.model.answer(TEXTS).probabilities for fitted in (watched, alone)]
    np.testing.assert_array_equal(*answers)
    assert all("dev_score" in record for record in watched.history)
    assert not any("dev_score" in record for record in alone.history)


def test_the_best_epoch_without_dev_rows_is_the_last_and_that_is_said():
    with pytest.warns(UserWarning, match="keep = 'best': found no dev rows"):
        fit_model(Dataset(TEXTS, LABELS), resolve({**SMALL, "keep": "best"}))


@pytest.mark.parametrize("given", [{"keep": "best"}, {"objective": "css_lm"}], ids=str)
def test_training_that_reads_the_score_has_it(given, tmp_path):
    pool = tmp_path / "pool.txt"
    pool.write_text("".join(f"{text} bzaf\n" for text in TEXTS), encoding="utf-8")
    watched = fit(True, **given, unlabelled=str(pool))
    alone = fit(False, **given, unlabelled=str(pool))
    assert same(watched.model, alone.model)
    assert all("dev_score" in record for record in alone.history)
