"""Objectives with label embeddings in a whole fit: they learn, and survive being saved."""

import numpy as np
import pytest

from superconext import load
from superconext.config.parameters import resolve
from superconext.data.dataset import Dataset
from superconext.fitting.fit import fit_model
from superconext.runs.folder import load_model, save_run

STEMS = ["zwin bzaf had film", "khayb w ma 3jbni walo", "zwin w mzyan bzaf", "khayb bzaf had chi"]
WORDS = ["lyoum", "ghedda", "f dar", "m3a nas", "hna", "lhih", "daba"]
TEXTS = [f"{STEMS[i % 4]} {WORDS[i % 7]}" for i in range(22)] + ["zwin", "khayb"]
LABELS = ["good" if i % 2 == 0 else "bad" for i in range(24)]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    path = tmp_path_factory.mktemp("vectors") / "vectors.txt"
    words = sorted({word for text in TEXTS for word in text.split()})
    drawn = np.random.default_rng(0).standard_normal((len(words), 10))
    lines = [
        f"{word} {' '.join(f'{x:.4f}' for x in row)}"
        for word, row in zip(words, drawn, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("objective", "options"),
    [
        ("lacon", None),
        ("lacon", "fusion=true,lcl=faithful,icl=sum"),
        ("leam", None),
        ("leam", "kernel=shared,width=3"),
        ("lsan", None),
        ("lsan", "readout=mean"),
    ],
)
def test_a_fitted_model_predicts_the_same_after_saving(objective, options, vectors, tmp_path):
    config = resolve(
        {
            "objective": objective,
            "options": options,
            "vectors": vectors,
            "epochs": 10,
            "hidden_size": 8,
            "batch_size": 8,
            "learning_rate": 0.02,
            "subwords": False,
            "word_dropout": 0.0,
            "keep": "last",
        }
    )
    fitted = fit_model(Dataset(TEXTS, LABELS), config, Dataset(TEXTS, LABELS))
    assert fitted.history[-1]["loss"] < fitted.history[0]["loss"]
    native = fitted.model.answer(TEXTS).native
    assert native.shape == (24, 2) and native.sum(axis=1) == pytest.approx(np.ones(24))
    predicted = np.array(fitted.model.classes)[native.argmax(axis=1)]
    assert np.mean(predicted == np.array(LABELS)) >= 0.9
    # A text's prediction does not depend on the texts beside it.
    alone = np.vstack([fitted.model.answer([text]).native for text in TEXTS])
    assert alone == pytest.approx(native, abs=1e-5)
    save_run(fitted.model, tmp_path / "run")
    assert np.array_equal(load_model(tmp_path / "run").answer(TEXTS).native, native)
    assert load(tmp_path / "run").get_params()["options"] == options
