import numpy as np
import pytest

from superconext import SuperConTextClassifier, load
from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError
from superconext.core.progress import Progress
from superconext.fitting.ensemble_members import member_config
from superconext.fitting.fit import fit_model

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


def test_each_member_is_what_its_objective_alone_makes(tmp_path):
    """With seeds a million apart, the second objective in batches of its own, bit for bit."""
    table = np.random.default_rng(0).normal(size=(7, 8))
    words = ["mezyan", "zwin", "khayb", "3iyan", "bzaf", "chi", "<num>"]
    lines = [" ".join([word, *map(str, row)]) for word, row in zip(words, table, strict=True)]
    (tmp_path / "v.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def trained(**given):
        shared = {**QUICK, "vectors": str(tmp_path / "v.txt")}
        return fit_model(TEXTS, LABELS, resolve({**shared, **given})).model

    second = {"objective": "cross_entropy", "batch_size": 8}
    both = trained(seed=5, members=4, second_objective="cross_entropy", second_batch_size=8)
    alone = [
        trained(seed=5 + member * 1_000_000, **(second if member % 2 else {}))
        for member in range(4)
    ]
    names = [type(objective).__name__ for objective in both.objectives]
    assert names == ["SuperLoss", "CrossEntropy"] * 2
    singles = [model.features(TEXTS) for model in alone]
    assert np.array_equal(both.features(TEXTS), np.hstack(singles))
    assert not np.array_equal(singles[1], trained(seed=1_000_005).features(TEXTS))


def test_the_second_objective_takes_the_batches_of_the_first_unless_told():
    parts = fit(members=2, second_objective="cross_entropy").transform(TEXTS)
    told = fit(members=2, second_objective="cross_entropy", second_batch_size=16)
    assert np.array_equal(parts, told.transform(TEXTS))


@pytest.mark.parametrize(
    ("first", "options", "second"),
    [
        ("superloss", None, "cross_entropy"),
        ("lacon", "layers=1", "dualcl"),
        ("dualcl", "ensemble=soft", "ce_scl"),
    ],
)
def test_is_saved_and_answers_alike(first, options, second, tmp_path):
    model = fit(objective=first, options=options, members=2, second_objective=second)
    model.save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert np.allclose(again.predict_proba(TEXTS), model.predict_proba(TEXTS), atol=1e-6)
    own, saved = (m.model_.native_probabilities(TEXTS) for m in (model, again))
    # A mean of the members' own rules, where every one has such.
    assert (own is None) == (saved is None) == (first == "superloss")
    if own is not None:
        assert np.allclose(own, saved, atol=1e-6)


def test_the_second_objective_may_be_the_one_that_reads_unlabelled_text(tmp_path):
    given = {"members": 2, "second_objective": "css_lm", "second_batch_size": 8}
    with pytest.raises(ConfigError, match="objective css_lm learns from unlabelled text"):
        fit(**given)
    pool = tmp_path / "pool.txt"
    pool.write_text("\n".join(f"zwin hadchi {n}" for n in range(40)) + "\n", encoding="utf-8")
    model = fit(**given, unlabelled=str(pool))
    assert model.transform(TEXTS[:2]).shape == (2, 2 * 16)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"second_objective": "superlos", "members": 2}, "did you mean 'superloss'"),
        ({"second_objective": "superlos", "members": 2, "vectors": "missing.txt"}, "did you mean"),
        ({"second_objective": "superlos"}, "did you mean 'superloss'"),
        ({"probe_rows": "unseen", "vectors": "missing.txt"}, "members = 1"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_read(given, told):
    with pytest.raises(ConfigError, match=told):
        fit(**given)


def test_of_one_member_the_second_objective_is_not_used_and_said_so():
    said = []

    class Said(Progress):
        def say(self, text):
            said.append(text)

    alone, beside = (
        fit_model(TEXTS, LABELS, resolve({**QUICK, **given}), progress=Said()).model
        for given in ({}, {"second_objective": "cross_entropy"})
    )
    assert np.array_equal(alone.features(TEXTS), beside.features(TEXTS))
    assert [text for text in said if "second_objective" in text] == [
        "note: members = 1, so second_objective = 'cross_entropy', which trains every second "
        "one, is not used"
    ]


def test_runs_of_neighbouring_seeds_have_no_member_in_common():
    """Nor does a seed near the largest go beyond it."""
    seeds = [
        member_config(resolve({"seed": seed}), member).seed
        for seed in range(50)
        for member in range(20)
    ]
    assert len(set(seeds)) == len(seeds)
    assert 0 <= member_config(resolve({"seed": 2**31 - 1}), 99).seed < 2**31
