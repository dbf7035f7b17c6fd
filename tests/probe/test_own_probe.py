"""A probe of a contributor's own: trained with, saved, loaded, and missed where it is not known."""

import inspect
import json
import subprocess
import sys
from typing import ClassVar

import numpy as np
import pytest

from superconext import SuperConTextClassifier, load
from superconext.core.errors import ConfigError, SuperConTextError
from superconext.probe import PROBES
from superconext.probe.base import Probe
from superconext.probe.logistic_regression import LogisticRegressionProbe, fit_probe
from tests.cli.conftest import environment, write_table

QUICK = {"epochs": 2, "batch_size": 8, "hidden_size": 4, "vector_dimension": 4}
TEXTS = [f"zwin bzaf {n}" for n in "abcdefghijklmnop"] + [f"khayb chi {n}" for n in "abcdefghijkl"]
LABELS = ["pos"] * 16 + ["neg"] * 12


class NearestMean(Probe):
    """The class whose mean sentence vector is nearest."""

    def __init__(self, means):
        self.means = means

    @classmethod
    def fit(cls, features, labels, dev_features=None, dev_labels=None):
        classes = range(int(labels.max()) + 1)
        return cls(np.stack([features[labels == k].mean(axis=0) for k in classes]))

    def decision(self, features):
        return -((features[:, None] - self.means) ** 2).sum(axis=2)

    def arrays(self):
        return {"means": self.means}

    @classmethod
    def from_arrays(cls, arrays, classes, width):
        if arrays["means"].shape != (classes, width):
            raise ValueError(f"means of shape {arrays['means'].shape}")
        return cls(arrays["means"])

    @property
    def settings(self):
        return {"probe_means": len(self.means)}


@pytest.fixture(autouse=True)
def _registered(monkeypatch):
    monkeypatch.setattr(PROBES, "_added", dict(PROBES._added))
    PROBES.register("nearest_mean", NearestMean)


def test_an_estimator_predicts_by_it():
    ours = SuperConTextClassifier(**QUICK, probe_features="nearest_mean").fit(TEXTS, LABELS)
    assert isinstance(ours.model_.probe, NearestMean)
    vectors = ours.transform(TEXTS)
    nearest = ((vectors[:, None] - ours.model_.probe.means) ** 2).sum(axis=2).argmin(axis=1)
    assert ours.predict(TEXTS).tolist() == [ours.classes_[k] for k in nearest]
    assert np.allclose(ours.predict_proba(TEXTS).sum(axis=1), 1)


def test_the_command_line_trains_with_it_and_a_run_names_the_probe_it_lacks(tmp_path, monkeypatch):
    """In processes of their own, which know of it by the environment variable alone."""
    file = tmp_path / "nearest.py"
    imports = "import numpy as np\nfrom superconext.probe.base import Probe\n\n\n"
    file.write_text(imports + inspect.getsource(NearestMean), "utf-8")
    rows = list(zip(LABELS, TEXTS, strict=True))
    train, dev = (write_table(tmp_path / f"{name}.tsv", rows) for name in ("train", "dev"))
    run = tmp_path / "run"

    def call(*words):
        known = {**environment(), "SUPERCONEXT_PROBES": f"nearest_mean={file}:NearestMean"}
        words = [sys.executable, "-m", "superconext", *map(str, words)]
        return subprocess.run(words, env=known, capture_output=True, text=True, check=False)

    quick = [f"--{name.replace('_', '-')}={value}" for name, value in QUICK.items()]
    words = ["train", train, "--dev", dev, "--out", run, *quick, "--no-baselines"]
    trained = call(*words, "--probe-features", "nearest_mean")
    assert trained.returncode == 0, trained.stderr
    metrics = json.loads((run / "metrics.json").read_text("utf-8"))
    assert metrics["probe_means"] == 2 and "probe_C" not in metrics
    evaluated = call("evaluate", run, dev, "--json")
    assert json.loads(evaluated.stdout)["accuracy"] == metrics["dev"]["accuracy"]
    model = load(run)
    vectors = model.transform(TEXTS)
    nearest = ((vectors[:, None] - model.model_.probe.means) ** 2).sum(axis=2).argmin(axis=1)
    assert list(model.predict(TEXTS)) == [model.classes_[k] for k in nearest]
    monkeypatch.setattr(PROBES, "_added", {})
    with pytest.raises(SuperConTextError, match=r"probe 'nearest_mean' .*not part of superconext"):
        load(run)


@pytest.mark.parametrize(
    "given",
    [{"calibrate": True}, {"logit_adjustment": 0.5}],
)
def test_what_needs_a_logistic_regression_is_refused_first(given):
    with pytest.raises(ConfigError, match=f"{next(iter(given))}.* with probe_features"):
        SuperConTextClassifier(**QUICK, probe_features="nearest_mean", **given).fit(TEXTS, LABELS)


class Turned(NearestMean):
    """Keeps its means in columns, so that what it saves is not in C's order."""

    def arrays(self):
        return {"means": np.asfortranarray(self.means)[::-1]}

    @classmethod
    def from_arrays(cls, arrays, classes, width):
        return cls(arrays["means"][::-1])


class Flat(LogisticRegressionProbe):
    """A logistic regression of somebody's own: C is always 0.01."""

    rows: ClassVar[list[int]] = []

    @classmethod
    def fit(cls, features, labels, dev_features=None, dev_labels=None):
        cls.rows.append(len(features))
        return cls(**vars(fit_probe(features, labels, grid=(0.01,))))


@pytest.mark.parametrize("cv", [0, 2])
def test_one_that_extends_the_logistic_regression_is_fitted_by_its_own_method(cv):
    PROBES.register("flat", Flat)
    Flat.rows.clear()
    given = {**QUICK, "probe_features": "flat"}
    model = SuperConTextClassifier(**given, cv=cv).fit(TEXTS, LABELS)
    # Of 28 rows three are held back; two folds are dealt anew several times, then all are fitted.
    assert Flat.rows[-1] == (28 if cv else 25) and {*Flat.rows[:-1]} == ({14} if cv else set())
    assert isinstance(model.model_.probe, Flat)
    with pytest.raises(ConfigError, match="calibrate with probe_features = 'flat'"):
        SuperConTextClassifier(**given, calibrate=True).fit(TEXTS, LABELS)


def test_arrays_in_any_order_are_saved_as_they_are(tmp_path):
    PROBES.register("turned", Turned)
    model = SuperConTextClassifier(**QUICK, probe_features="turned").fit(TEXTS, LABELS)
    model.save(tmp_path / "run")
    again = load(tmp_path / "run")
    np.testing.assert_array_equal(again.model_.probe.means, model.model_.probe.means)
    assert again.predict(TEXTS).tolist() == model.predict(TEXTS).tolist()


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"decision": lambda self, rows: rows[:, :2] * np.nan}, "found NaN .* by decision"),
        ({"probabilities": lambda self, rows: rows[:, :1]}, r"shape \(2, 1\), returned by prob"),
        ({"arrays": lambda self: {}}, r"found KeyError \('means'\) in from_arrays or arrays"),
        ({"arrays": lambda self: {"means": self.means + 1}}, "found another probe after arrays"),
    ],
)
def test_what_would_fail_later_is_refused_when_it_is_fitted(methods, message):
    PROBES.register("wrong", type("Wrong", (NearestMean,), methods))
    with pytest.raises(ConfigError, match=message):
        SuperConTextClassifier(**QUICK, probe_features="wrong").fit(TEXTS, LABELS)


def test_an_unknown_one_is_named_with_the_nearest():
    with pytest.raises(ConfigError, match="did you mean 'nearest_mean'"):
        SuperConTextClassifier(**QUICK, probe_features="nearest_man").fit(TEXTS, LABELS)
    with pytest.raises(ConfigError, match=r"^probe_features = .*did you mean 'encoder\+ngrams'"):
        PROBES.check("encoder+ngram")
    PROBES.check("encoder+ngrams")
