import numpy as np
import pytest

from superconext import SuperConTextClassifier, load
from superconext.config.parameters import resolve
from superconext.data.dataset import Dataset
from superconext.fitting.fit import fit_model
from superconext.fitting.stages import member_config

QUICK = {
    "epochs": 3,
    "batch_size": 16,
    "hidden_size": 8,
    "vector_dimension": 8,
    "learning_rate": 0.01,
}
TEXTS = [f"{word} {filler} {n}" for n in range(8) for word, filler in
         (("mezyan", "bzaf"), ("zwin", "chi"), ("khayb", "bzaf"), ("3iyan", "chi"))]  # fmt: skip
LABELS = ["pos", "pos", "neg", "neg"] * 8


def fit(**given):
    return SuperConTextClassifier(**{**QUICK, **given}).fit(TEXTS, LABELS)


def test_each_member_is_what_its_seed_alone_makes(tmp_path):
    """With seeds a million apart, bit for bit."""
    table = np.random.default_rng(0).normal(size=(7, 8))
    words = ["mezyan", "zwin", "khayb", "3iyan", "bzaf", "chi", "<num>"]
    lines = [" ".join([word, *map(str, row)]) for word, row in zip(words, table, strict=True)]
    (tmp_path / "v.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def trained(**given):
        shared = {**QUICK, "vectors": str(tmp_path / "v.txt")}
        return fit_model(Dataset(TEXTS, LABELS), resolve({**shared, **given})).model

    both = trained(seed=5, members=4)
    alone = [trained(seed=5 + member * 1_000_000) for member in range(4)]
    assert np.array_equal(both.features(TEXTS), np.hstack([m.features(TEXTS) for m in alone]))


@pytest.mark.parametrize(("objective", "options"), [("superloss", None), ("lacon", "layers=1")])
def test_is_saved_and_answers_alike(objective, options, tmp_path):
    model = fit(objective=objective, options=options, members=2)
    model.save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert np.allclose(again.predict_proba(TEXTS), model.predict_proba(TEXTS), atol=1e-6)
    own, saved = (m.model_.answer(TEXTS).native for m in (model, again))
    # A mean of the members' native predictions.
    assert (own is None) == (saved is None) == (objective == "superloss")
    if own is not None:
        assert np.allclose(own, saved, atol=1e-6)


def test_runs_of_neighbouring_seeds_have_no_member_in_common():
    """Nor does a seed near the largest go beyond it."""
    seeds = [
        member_config(resolve({"seed": seed}), member).seed
        for seed in range(50)
        for member in range(20)
    ]
    assert len(set(seeds)) == len(seeds)
    assert 0 <= member_config(resolve({"seed": 2**31 - 1}), 99).seed < 2**31
