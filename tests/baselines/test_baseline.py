"""NB-SVM and fastText: fitted as described, and named among the objectives."""

import itertools
import math
import sys

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import LinearSVC

from superconext.baselines import linear as fasttext_baseline
from superconext.baselines.baseline import AdjustedBaseline, baseline_report, fit_baseline
from superconext.baselines.linear import NBSVM_GRID, FastText, NbSvm
from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError, MissingExtraError, TrainingError
from superconext.core.progress import Progress
from superconext.experiments.compare import compare, fewshot
from superconext.experiments.plan import make_plan
from superconext.experiments.record import read_results
from superconext.experiments.runner import verify
from superconext.experiments.systems import check_reference, parse_systems, plain, read_systems
from tests.experiments.conftest import Heard, changed

MARKS = {"bad": ["khayb", "خايب"], "good": ["zwin", "مزيان"], "so so": ["3adi", "عادي"]}


def split(count, classes, seed):
    draw = np.random.default_rng(seed)
    names = sorted(MARKS)[:classes]
    labels = [names[k % classes] for k in range(count)]
    texts = []
    for label in labels:
        # One word in ten is of another class.
        of = label if draw.random() < 0.9 else str(draw.choice(names))
        words = [str(draw.choice(MARKS[of])), "Hadchi", *draw.choice(["bzaf", "had", "w"], 2)]
        texts.append(" ".join(draw.permutation(words)))
    return texts, labels


def grams(text):
    words = text.lower().split()
    return {*words, *(f"{a} {b}" for a, b in itertools.pairwise(words))}


def peer(train, c):
    """NB-SVM by its definition, as loops over dense rows; returns a function of texts."""
    known = sorted({gram for text in train[0] for gram in grams(text)})
    names = sorted(set(train[1]))
    machines = {}
    for name in names:
        inside, outside = [1.0] * len(known), [1.0] * len(known)
        for text, label in zip(*train, strict=True):
            for gram in grams(text):
                (inside if label == name else outside)[known.index(gram)] += 1
        ratio = [
            math.log((p / sum(inside)) / (q / sum(outside)))
            for p, q in zip(inside, outside, strict=True)
        ]
        rows = [[r * (g in grams(t)) for g, r in zip(known, ratio, strict=True)] for t in train[0]]
        svm = LinearSVC(C=c, dual="auto", random_state=0, tol=1e-10, max_iter=100_000)
        svm.fit(np.array(rows), [label == name for label in train[1]])
        weights = svm.coef_[0].tolist()
        size = sum(abs(w) for w in weights) / len(weights)
        machines[name] = ratio, [0.75 * size + 0.25 * w for w in weights], svm.intercept_[0] / 4

    def predict(texts):
        found = []
        for text in texts:
            scores = {}
            for name, (ratio, weights, bias) in machines.items():
                scores[name] = bias + sum(
                    r * w
                    for gram, r, w in zip(known, ratio, weights, strict=True)
                    if gram in grams(text)
                )
            found.append(max(scores, key=scores.get))
        return found

    return predict


@pytest.mark.parametrize("classes", [2, 3])
def test_nbsvm_is_the_one_of_its_definition_with_c_from_cross_validation(classes):
    train, dev, test = (split(n, classes, seed) for seed, n in enumerate((60, 30, 40)))
    ours = NbSvm().fit(train, dev)
    folds = StratifiedKFold(5, shuffle=True, random_state=0).split(*train)
    parts = [[tuple([part[k] for k in rows] for part in train) for rows in fold] for fold in folds]
    scores = {
        c: np.mean([right(peer(own, c), others) for own, others in parts]) for c in NBSVM_GRID
    }
    best = min(c for c in scores if np.isclose(scores[c], max(scores.values())))
    assert ours.settings == {"C": best}
    rival = peer(train, best)
    texts = [*test[0], "", "zzz", "ZWIN", "khayb khayb"]
    assert ours.predict(texts) == rival(texts)
    assert right(ours.predict, test) > 0.8
    assert NbSvm().fit(train, None).settings == {"C": best}
    one = [*train[0], "wahid"], [*train[1], "a class of one row"]
    assert NbSvm().fit(one, None).settings == {"C": 1.0}
    scores = {c: right(peer(one, c), dev) for c in NBSVM_GRID}
    assert NbSvm().fit(one, dev).settings == {"C": max(scores, key=scores.get)}


def right(predict, rows):
    return np.mean([a == b for a, b in zip(predict(rows[0]), rows[1], strict=True)])


def test_they_are_named_among_the_objectives(tmp_path):
    systems = parse_systems("superloss,nbsvm,fasttext")
    assert systems == (plain("superloss"), plain("nbsvm"), plain("fasttext"))
    assert [system.is_baseline for system in systems] == [False, True, True]
    path = tmp_path / "systems.toml"
    path.write_text('[[system]]\nname = "bayes"\nobjective = "nbsvm"\n', "utf-8")
    (bayes,) = read_systems(path)
    assert bayes.name == "bayes" and bayes.is_baseline
    check_reference("fasttext", systems)
    with pytest.raises(ConfigError, match="reference = "):
        check_reference("nbsvm (own rule)", systems)
    with pytest.raises(ConfigError, match=r"nbsvm:layers=2: found layers for nbsvm, a baseline"):
        parse_systems("nbsvm:layers=2")
    path.write_text('[[system]]\nobjective = "fasttext"\nepochs = 3\n', "utf-8")
    with pytest.raises(ConfigError, match="found epochs for fasttext, a baseline"):
        read_systems(path)


def test_a_random_baseline_has_every_seed_and_another_one_line():
    plan = make_plan(parse_systems("superloss,fasttext,nbsvm"), 3, "given")
    names = [fit.system.name for fit in plan]
    assert names == [
        *("majority", "tfidf_logreg", "tfidf_svm"),
        *["fasttext"] * 3,
        "nbsvm",
        *["superloss"] * 3,
    ]
    assert [fit.seed for fit in plan if fit.system.name == "fasttext"] == [0, 1, 2]
    drawn = make_plan(parse_systems("nbsvm"), 2, "resampled")
    assert [fit.split for fit in drawn if fit.system.name == "nbsvm"] == [
        "resampled-0",
        "resampled-1",
    ]


def test_compare_and_fewshot_fit_nbsvm_where_it_is_named(request_of, data, tmp_path):
    request = request_of(objectives="nbsvm,superloss", seeds=2, reference="nbsvm")
    result = compare(request, Progress())
    names = [row.name for row in result.table.rows]
    assert names == [
        "majority",
        "tfidf_logreg",
        "tfidf_svm",
        "vectors_logreg",
        "nbsvm",
        "superloss",
    ]
    line = read_results(tmp_path / "out" / "results.jsonl")["nbsvm", 0, "given"]
    assert set(line) >= {"C", "predictions"} and line["rows"]["train"] == 50
    assert all(check.same for check in verify(tmp_path / "out", 9, Progress()))
    heard = Heard()
    request = request_of(
        objectives="nbsvm",
        seeds=1,
        draws=("shots2", "shots4"),
        verb="fewshot",
        out=str(tmp_path / "few"),
    )
    curve = fewshot(changed(request, dev=None), heard)
    assert "nbsvm" in [row.name for row in curve.tables["4"].rows]
    assert not any("steps of training" in line for line in heard.lines)


def test_a_run_with_tfidf_beside_the_encoder_is_a_system(request_of, data, tmp_path):
    name = "superloss:probe_features=encoder+tfidf+epochs=1"
    (system,) = parse_systems(name)
    assert dict(system.parameters) == {"probe_features": "encoder+tfidf", "epochs": 1}
    assert system.name == name
    with pytest.raises(ConfigError, match="found 'epochs' after superloss"):
        parse_systems("superloss:epochs+layers=2")
    result = compare(request_of(objectives=f"superloss:epochs=1,{name}", seeds=1), Progress())
    lines = read_results(tmp_path / "out" / "results.jsonl")
    mean, alone = lines[name, 0, "given"], lines["superloss:epochs=1", 0, "given"]
    assert mean["tfidf_C"] > 0 and "tfidf_C" not in alone
    from superconext.config.parameters import resolve
    from superconext.data.reading import read_labelled
    from superconext.fitting.fit import fit_model

    train, dev, test = (read_labelled(data / f"{s}.tsv") for s in ("train", "dev", "test"))
    own = {"epochs": 1, "probe_features": "encoder+tfidf"}
    config = resolve({**request_of().given, **own})
    model = fit_model(train, config, dev).model
    assert mean["predictions"] == [model.classes.index(x) for x in model.predict(test.texts)]
    assert any("not by its encoder alone" in note for note in result.table.notes)
    assert all(check.same for check in verify(tmp_path / "out", 9, Progress()))


# fastText


def test_without_its_package_fasttext_is_refused_before_anything_is_read(
    request_of, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "fasttext", None)
    with pytest.raises(MissingExtraError, match=r"superconext\[fasttext\]"):
        compare(request_of(objectives="fasttext"), Progress())
    assert not (tmp_path / "out").exists()


@pytest.fixture
def small(monkeypatch):
    pytest.importorskip("fasttext")
    monkeypatch.setattr(fasttext_baseline, "FIXED", {"lr": 0.5, "dim": 10, "bucket": 1000})


def test_fasttext_learns_chooses_on_dev_and_repeats_itself(small):
    train, dev, test = (split(n, 3, seed) for seed, n in enumerate((90, 30, 40)))
    first, again = (fit_baseline("fasttext", train, dev, 3) for _ in range(2))
    assert np.mean([a == b for a, b in zip(first.predict(test[0]), test[1], strict=True)]) > 0.8
    assert first.predict(test[0]) == again.predict(test[0]) and first.settings == again.settings
    epochs, minn, maxn = (first.settings[name] for name in ("epochs", "minn", "maxn"))
    assert epochs in fasttext_baseline.EPOCHS and (minn, maxn) in fasttext_baseline.SUBWORDS
    assert FastText().fit(train, None).settings == {"epochs": 50, "minn": 2, "maxn": 5}


def test_fasttext_has_probabilities_that_can_be_adjusted(small):
    train = split(90, 3, 0)
    texts = [*split(40, 3, 2)[0], "", "</s>"]
    plain = FastText().fit(train, None, 3)
    shares = plain.predict_proba(texts)
    assert shares.shape == (42, 3) and np.allclose(shares.sum(axis=1), 1) and (shares > 0).all()
    names = sorted(set(train[1]))
    assert [names[k] for k in shares[:40].argmax(axis=1)] == plain.predict(texts)[:40]
    rare = (train[0][:60], [names[0]] * 50 + [names[1]] * 10)
    even, odd = (
        fit_baseline("fasttext", rare, None, 3, config=resolve({"logit_adjustment": strength}))
        for strength in (0.0, 1.0)
    )
    shifted = even.predict_proba(texts) * 60 / [50, 10]
    expected = shifted / shifted.sum(axis=1, keepdims=True)
    assert np.allclose(odd.predict_proba(texts), expected)


def test_a_baseline_is_adjusted_as_the_run_beside_it():
    texts = [f"w{n % 4} word" for n in range(80)]
    labels = ["neg" if n % 4 == 1 and n % 20 < 8 else "pos" for n in range(80)]
    train = texts, labels
    plain = fit_baseline("tfidf_logreg", train, None)
    half = fit_baseline("tfidf_logreg", train, None, config=resolve({"logit_adjustment": 0.5}))
    assert half.settings == {**plain.settings, "logit_adjustment": 0.5}
    shares = [labels.count(name) / len(labels) for name in ("neg", "pos")]
    found = half.predict_proba(texts)
    for row, before in zip(found, plain.predict_proba(texts), strict=True):
        raised = [p / share**0.5 for p, share in zip(before, shares, strict=True)]
        np.testing.assert_allclose(row, [p / sum(raised) for p in raised], atol=1e-9)
    assert half.predict(texts) == [("neg", "pos")[k] for k in found.argmax(axis=1)]
    assert half.predict(texts) != plain.predict(texts)
    config = resolve({"logit_adjustment": 0.5})
    report = baseline_report(train, None, {"train": train}, config=config)
    assert list(report) == ["majority", "tfidf_logreg", "tfidf_logreg_adjusted"]
    for name, fitted in {"tfidf_logreg": plain, "tfidf_logreg_adjusted": half}.items():
        right = sum(a == b for a, b in zip(fitted.predict(texts), labels, strict=True))
        assert report[name]["train"]["accuracy"] == pytest.approx(right / len(labels))
    for name in ("majority", "tfidf_svm"):  # no probabilities
        kept = fit_baseline(name, train, None, config=resolve({"logit_adjustment": 0.5}))
        assert not isinstance(kept, AdjustedBaseline)


def test_fasttext_reads_odd_texts_as_texts(small):
    train = (
        ["zwin\nbzaf", "__label__1 khayb", "\ue0001 zwin", "khayb </s> zwin", "", "\ud83d khayb"]
        * 5,
        ["good", "bad", "good", "bad", "good", "bad"] * 5,
    )
    found = FastText().fit(train, None)
    assert found.predict(["zwin bzaf", "KHAYB", "\n", "\ue0000"])[:2] == ["good", "bad"]


@pytest.mark.parametrize("failures", [2, 3])
def test_fasttext_tries_a_fit_that_met_nan_three_times(small, monkeypatch, failures):
    import fasttext

    tries, learn = [], fasttext.train_supervised

    def uncertain(*arguments, **options):
        tries.append(options["seed"])
        if len(tries) <= failures:
            raise RuntimeError("Encountered NaN.")
        return learn(*arguments, **options)

    monkeypatch.setattr(fasttext, "train_supervised", uncertain)
    train = split(30, 2, 0)
    if failures == 2:
        assert FastText().fit(train, None, 5).predict(train[0][:3]) == train[1][:3]
    else:
        with pytest.raises(TrainingError, match=r"three times \(Encountered NaN"):
            FastText().fit(train, None, 5)
    assert tries == [5, 5, 5]


def test_fasttext_stands_in_a_comparison(small, request_of, tmp_path):
    compare(request_of(objectives="fasttext", seeds=2), Progress())
    lines = read_results(tmp_path / "out" / "results.jsonl")
    assert {key[1] for key in lines if key[0] == "fasttext"} == {0, 1}
    assert lines["fasttext", 1, "given"]["epochs"] == 50
    assert all(check.same for check in verify(tmp_path / "out", 9, Progress()))
