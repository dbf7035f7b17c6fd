"""What makes up a comparison, and that every fit of a seed sees the same rows."""

from collections import Counter

import pytest

from superconext.baselines import ALWAYS_FITTED
from superconext.core.errors import ConfigError, DataError
from superconext.experiments.plan import Fit, cut, make_plan
from superconext.experiments.systems import choose_scheme, parse_systems, plain


def pool(count, start=0):
    texts = [f"text {k}" for k in range(start, start + count)]
    return texts, ["ab"[k % 2] for k in range(count)]


@pytest.mark.parametrize(
    ("dev", "test", "wanted", "scheme"),
    [
        (True, True, None, "given"),
        (True, True, "given", "given"),
        (False, True, None, "dev"),
        (False, False, None, "resampled"),
        (True, True, "resample", "resampled"),
        (True, False, "resample", "resampled"),
    ],
)
def test_files_and_wish_decide_the_scheme(dev, test, wanted, scheme):
    assert choose_scheme(dev, test, wanted) == scheme


@pytest.mark.parametrize(("dev", "wanted"), [(False, "given"), (True, "given"), (True, None)])
def test_what_does_not_go_together_is_refused(dev, wanted):
    with pytest.raises(ConfigError, match="without a test file"):
        choose_scheme(dev, False, wanted)


def test_baselines_on_every_split_and_objectives_with_every_seed():
    names = ["superloss", "cross_entropy"]
    systems = parse_systems(",".join(names))
    given = make_plan(systems, 3, "given")
    assert Counter(fit.system.name for fit in given) == {
        **dict.fromkeys(ALWAYS_FITTED, 1),
        **dict.fromkeys(names, 3),
    }
    assert {fit.split for fit in given} == {"given"}
    for scheme in ("dev", "resampled"):
        plan = make_plan(systems, 3, scheme)
        assert Counter(fit.system.name for fit in plan) == dict.fromkeys(
            [*ALWAYS_FITTED, *names], 3
        )
        assert all(fit.split == f"{scheme}-{fit.seed}" for fit in plan)
        assert len({fit.key for fit in plan}) == len(plan)
        assert {fit.key for fit in plan} < {fit.key for fit in make_plan(systems, 4, scheme)}


def test_no_seed_is_no_plan():
    with pytest.raises(ConfigError, match="seeds = 0"):
        make_plan(parse_systems("supcon"), 0, "given")


def test_given_rows_are_left_alone():
    pools = {"train": pool(10), "dev": pool(4, 10), "test": pool(4, 20)}
    assert cut(pools, Fit(plain("superloss"), 7, "given")) == pools


def test_a_tenth_of_train_is_held_out_by_the_seed():
    pools = {"train": pool(100), "test": pool(20, 100)}
    first, again, other = (
        cut(pools, Fit(plain(name), seed, f"dev-{seed}"))
        for name, seed in (("superloss", 0), ("majority", 0), ("superloss", 1))
    )
    assert first == again != other
    assert first["test"] == other["test"] == pools["test"]
    assert len(first["dev"][0]) == 10 and len(first["train"][0]) == 90
    assert sorted(first["dev"][0] + first["train"][0]) == sorted(pools["train"][0])


def test_resampled_rows_are_all_there_and_copies_stay_together():
    texts, labels = pool(100)
    pools = {"all": (texts + texts[:30], labels + labels[:30])}
    seen = set()
    for seed in range(4):
        parts = cut(pools, Fit(plain("superloss"), seed, f"resampled-{seed}"))
        assert Counter(text for texts, _ in parts.values() for text in texts) == Counter(
            pools["all"][0]
        )
        train, dev, test = (set(parts[name][0]) for name in ("train", "dev", "test"))
        assert not train & dev and not train & test and not dev & test
        assert len(dev) == len(test) == 10
        for text, label in zip(*parts["test"], strict=True):
            assert label == labels[texts.index(text)]
        seen.add(frozenset(test))
    assert len(seen) == 4


def test_too_few_rows_to_split():
    with pytest.raises(DataError, match="no row is left for"):
        cut({"all": pool(4)}, Fit(plain("superloss"), 0, "resampled-0"))
