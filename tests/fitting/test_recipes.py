"""The preset `auto`: what it chooses, on which figures, and when it may not choose."""

import numpy as np
import pytest

from superconext import SuperConTextClassifier, load
from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError, DataError
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.fitting import recipes
from superconext.fitting.checks import check_config
from superconext.fitting.cross_validation import CrossValidation
from superconext.fitting.fit import fit_model
from superconext.fitting.recipes import choose, fit_on_dev, is_open, recipes_of
from superconext.probe.base import softmax
from superconext.probe.ensemble import Settings, cross_weighted, fit_weights, row_losses
from superconext.runs.folder import load_model, save_run
from superconext.training.pretraining.make import pretrain, request_of
from tests.fitting.test_cross_validation import TINY, dataset

AUTO = {**TINY, "preset": "auto"}


class Said(Progress):
    def __init__(self):
        self.lines = []

    def say(self, line):
        self.lines += [line] if line.startswith("auto") else []


def noise(rows=60):
    draw = np.random.default_rng(3)
    texts = [" ".join(draw.choice(list("abcdefghij"), 6)) + f" {row}" for row in range(rows)]
    return Dataset(texts, [str(k) for k in draw.integers(0, 3, rows)], range(rows))


RECIPES = recipes_of(resolve(AUTO), 30)


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A pretrained encoder."""
    folder = tmp_path_factory.mktemp("begun")
    lines = [" ".join(reversed(text.split())) for text in dataset(200, seed=5).texts]
    (folder / "text.txt").write_text("\n".join(lines), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SUPERCONEXT_CACHE", str(folder / "cache"))
        sizes = {"hidden_size": 6, "vector_dimension": 8, "epochs": 1}
        given = request_of(sizes, files=[str(folder / "text.txt")], out=folder / "encoder")
        pretrain(given, Progress())
    return folder / "encoder"


def test_a_named_recipe_is_no_open_choice():
    assert is_open({"unlabelled": "x", "seed": 3, "cv": 5, "init": None})
    for name, value in (("objective", "supcon"), ("preset", "fast"), ("options.mining", "topk")):
        assert not is_open({name: value})
    with pytest.raises(ConfigError, match="preset = 'auto' with epochs = 3"):
        SuperConTextClassifier(preset="auto", epochs=3).fit(["a b", "c d"] * 9, ["x", "y"] * 9)


@pytest.mark.parametrize("data", [dataset(60), noise()], ids=["words-decide", "noise"])
def test_it_is_never_significantly_worse_than_tfidf(data):
    said = Said()
    cv = CrossValidation(data, resolve(AUTO), 5, said)
    choice, folds, _ = choose(cv, said)
    assert set(choice.facts["recipes"]) == {recipe.name for recipe in RECIPES}
    tfidf = cv.held_out({"tfidf": "tfidf"}, "alone")
    ours, theirs = (row_losses(one.shares, cv.folds, cv.labels) for one in (folds.recipe, tfidf))
    worse = ours - theirs
    assert worse.mean() <= 2 * worse.std() / np.sqrt(len(worse))
    assert "5 recipes" in said.lines[1] and "chosen" in said.lines[3]
    every = ["auto: its cross-validated scores are from all 20 folds"]
    assert said.lines[4:] == ([] if choice.recipe.trained else every)
    counts = set(data.class_counts().values())
    told = "rare classes get more weight (logit adjustment 0.5)" in said.lines[3]
    assert told == (len(counts) > 1)
    assert "in 5 of 20 folds" in said.lines[1], "so few rows are dealt once for a trained encoder"
    assert folds.baselines["tfidf_logreg"]["n"] == 60


def test_the_accuracy_of_the_chosen_recipe_is_that_of_the_table():
    said = Said()
    cv = CrossValidation(noise(140), resolve(AUTO), 5, said)
    choice, folds, _ = choose(cv, said)
    assert "in 10 of 10 folds" in said.lines[1], (
        "rows are dealt twice, and all recipes judged on both"
    )
    shown, table = (
        choice.facts["recipes"][choice.recipe.name],
        folds.recipe.metrics(cv.train, cv.classes),
    )
    for name in ("accuracy", "f1_macro", "f1_weighted"):
        assert shown[name] == pytest.approx(table[name], abs=1e-12)
    assert f"({shown['accuracy']:.1%})" in said.lines[2]


def test_without_time_the_trained_encoder_is_left_out_and_that_is_said():
    said = Said()
    cv = CrossValidation(dataset(), resolve({**AUTO, "budget": 0.0}), 5, said)
    choice, folds, _ = choose(cv, said)
    assert not choice.recipe.trained and set(choice.facts["recipes"]) == {
        recipe.name for recipe in RECIPES if not recipe.trained
    }
    assert "longer than the budget" in said.lines[3] and "in 1 of 20 folds" in said.lines[1]
    assert "1 of 20 folds; more would exceed the budget)" in said.lines[1]
    assert len(folds.recipe.folds) == 1, "the first fold is fitted however little time there is"


def test_a_probe_that_does_not_predict_is_not_calibrated():
    class Warned(Progress):
        def __init__(self):
            self.lines = []

        def warn(self, line):
            self.lines.append(line)

    given = {**TINY, "freeze": True, "encoder": "mean", "calibrate": True}
    config, warned = resolve({**given, "probe_features": "encoder+ngrams"}), Warned()
    chosen = {"tfidf": 1.0, "ngrams": 3.0}, {"tfidf": 0.5, "ngrams": 0.5}
    for temperature in (0.5, 1.0):
        settings = Settings(*chosen, {"pool": temperature})
        fitted = fit_model(dataset(), config, progress=warned, settings=settings)
        assert "probe_temperature" not in fitted.facts
        assert fitted.model.ensemble.temperature == temperature
        assert len(warned.lines) == (temperature == 1), warned.lines


def test_python_fits_no_baselines_on_folds_that_it_does_not_show(monkeypatch):
    asked = []
    real = CrossValidation.add
    monkeypatch.setattr(
        CrossValidation, "add", lambda cv, names: asked.extend(names) or real(cv, names)
    )
    rows = dataset()
    model = SuperConTextClassifier(**TINY, cv=3).fit(rows.texts, rows.labels)
    assert not asked and model.model_.config.baselines


@pytest.mark.parametrize(("minutes", "fewer"), [(0.6, True), (60.0, False), (0.0, None)])
def test_controls_are_fitted_once_however_often_training_begins(monkeypatch, minutes, fewer):
    """With a clock that every look at it puts a second forward."""
    seconds = iter(range(1_000_000))
    monkeypatch.setattr("time.process_time", lambda: float(next(seconds)))
    prepared = []
    config = resolve({**AUTO, "epochs": None, "budget": minutes})
    rows = dataset(30), config, dataset(60, seed=1), Progress()
    _, choice = fit_on_dev(*rows, on_prepared=prepared.append)
    assert len(prepared) == 1
    assert ("trained" in choice.facts["recipes"]) == (fewer is not None)
    assert (choice.facts["epochs"] is not None) == bool(fewer)


def test_controls_take_none_of_the_encoders_time(monkeypatch):
    """With the same clock, which controls put forward by more than the budget."""
    seconds = iter(range(1_000_000))
    monkeypatch.setattr("time.process_time", lambda: float(next(seconds)))
    config = resolve({**AUTO, "epochs": None, "budget": 60.0})
    rows = dataset(30), config, dataset(60, seed=1), Progress()
    _, choice = fit_on_dev(*rows, on_prepared=lambda _: [next(seconds) for _ in range(4_000)])
    assert "trained" in choice.facts["recipes"] and choice.facts["epochs"] is None


def test_a_run_whose_recipe_dev_has_chosen_says_that_it_is_calibrated(monkeypatch):
    monkeypatch.setattr(recipes, "recipes_of", lambda config, rows: RECIPES[:3])
    config = resolve({**AUTO, "calibrate": True})
    fitted, choice = fit_on_dev(dataset(30), config, dataset(60, seed=1), Progress())
    assert fitted.model.config.calibrate and choice.config.calibrate


@pytest.mark.parametrize(("trained", "chosen"), [(0.0001, "ngrams"), (0.0, "trained")])
def test_a_trained_encoder_is_not_taken_where_all_are_nearly_right(trained, chosen, monkeypatch):
    """By how little it is better: 0.0004 of log loss on each row alike, or 0.004."""
    size = 0.0005 if trained else 0.004

    def decided(losses, *rest):
        values = {"trained": trained, "ngrams": size}
        losses = {r: np.full(len(loss), values.get(r.name, 1.0)) for r, loss in losses.items()}
        return real(losses, *rest)

    real = recipes._decided
    monkeypatch.setattr(recipes, "_decided", decided)
    _, choice = fit_on_dev(dataset(30), resolve(AUTO), dataset(60, seed=1), Progress())
    assert choice.recipe.name == chosen


@pytest.mark.parametrize("lower", [0.0005, 0.002])
def test_n_grams_that_bring_next_to_nothing_are_left_out(lower, monkeypatch):
    def decided(losses, *rest):
        values = {"trained": 0.5, "trained+ngrams": 0.5 - lower}
        losses = {r: np.full(len(loss), values.get(r.name, 1.0)) for r, loss in losses.items()}
        return real(losses, *rest)

    real = recipes._decided
    monkeypatch.setattr(recipes, "_decided", decided)
    _, choice = fit_on_dev(dataset(30), resolve(AUTO), dataset(60, seed=1), Progress())
    assert choice.recipe.name == ("trained" if lower < 0.001 else "trained+ngrams")


@pytest.mark.parametrize(
    ("rows", "lower", "chosen"),
    [
        (24, 0.1, "frozen"),  # n-grams are better by less than one standard error, 0.2
        (24, 0.3, "ngrams"),
        (99, 0.1, "frozen"),
        (100, 0.1, "frozen+ngrams"),
        (100, 0.3, "ngrams"),
    ],
)
def test_a_pretrained_encoder_stays_unless_another_recipe_is_clearly_better(
    rows, lower, chosen, begun
):
    """Losses of 25 rows: n-grams alone differ from all others, by -1 and +1 around `lower`."""
    scattered = np.array([1.0, -1.0] * 12 + [0.0])
    losses = {
        r: np.full(25, 2.0) - (lower + scattered) * (r.name == "ngrams")
        for r in recipes_of(resolve(with_init(begun)), rows)
        if not r.trained
    }
    assert recipes._ready(losses, rows).name == chosen
    without = {r: loss for r, loss in losses.items() if r.encoder != "pretrained"}
    assert recipes._ready(without, rows).name == "ngrams"


def with_init(folder):
    return {**AUTO, "init": str(folder), "hidden_size": 6, "vector_dimension": 8}


def test_few_rows_do_not_train_a_pretrained_encoder(begun, monkeypatch):
    def refused(*given, **more):
        raise AssertionError("trained")

    monkeypatch.setattr(CrossValidation, "add_encoder", refused)
    said, data, config = Said(), dataset(60), resolve(with_init(begun))
    choice, folds, _ = choose(CrossValidation(data, config, 5, said), said)
    assert {recipe.encoder for recipe in recipes_of(config, 99)} == {None, "vectors", "pretrained"}
    assert len(choice.facts["recipes"]) == 5 and "5 recipes" in said.lines[0]
    assert len(folds.recipe.folds) == 20 and "in 20 of 20 folds)" in said.lines[1]
    prepared = []
    dev = dataset(60, seed=1)
    fitted, choice = fit_on_dev(data, config, dev, said, on_prepared=prepared.append)
    assert len(prepared) == 1 and not choice.recipe.trained and fitted.model.config.freeze
    with pytest.raises(AssertionError, match="trained"):
        choose(CrossValidation(dataset(100), config, 5, said), said)


@pytest.mark.long
def test_beside_a_pretrained_encoder_its_vectors_are_compared_too(begun, monkeypatch):
    monkeypatch.setattr(recipes, "ENOUGH_ROWS", 0)
    said, real = Said(), recipes._decided
    chosen = {}
    for wanted in ("vectors", "vectors+ngrams", "frozen"):

        def decided(losses, *rest, wanted=wanted):
            losses = {r: loss + 9 * (r.name != wanted) for r, loss in losses.items()}
            ready = min((r for r in losses if not r.trained), key=lambda r: losses[r].mean())
            return real(losses, *rest[:-1], ready)

        monkeypatch.setattr(recipes, "_decided", decided)
        cv = CrossValidation(dataset(60), resolve(with_init(begun)), 5, said)
        choice, folds, _ = choose(cv, said)
        chosen[wanted] = choice
        assert choice.recipe.name == wanted and len(choice.facts["recipes"]) == 7
        fitted = fit_model(dataset(60), choice.config, progress=said)
        assert fitted.model.features(["a b"]).shape == (1, 12 if wanted == "frozen" else 8)
        assert {"vectors_logreg", "pretrained_logreg"} <= set(folds.baselines)
    assert (
        "mean word vectors + n-grams" in said.lines[2]
        and "frozen pretrained encoder" in said.lines[2]
    )
    assert chosen["vectors"].config.encoder == "mean" and chosen["vectors"].config.init
    assert chosen["frozen"].config.encoder == "bilstm"
    check_config(chosen["vectors"].config)


@pytest.mark.parametrize("pretrained", [False, True])
@pytest.mark.parametrize("wanted", [*(r.name for r in RECIPES), "vectors", "vectors+ngrams"])
def test_each_recipe_chosen_on_dev_is_a_run_that_loads_and_predicts_alike(
    wanted, pretrained, begun, tmp_path, monkeypatch
):
    monkeypatch.setattr(recipes, "ENOUGH_ROWS", 0)
    given = with_init(begun) if pretrained else AUTO
    if wanted not in {recipe.name for recipe in recipes_of(resolve(given), 30)}:
        return

    def decided(losses, *rest):
        losses = {recipe: loss + 9 * (recipe.name != wanted) for recipe, loss in losses.items()}
        return real(losses, *rest)

    real = recipes._decided
    monkeypatch.setattr(recipes, "_decided", decided)
    train, dev = dataset(30), dataset(60, seed=1)
    fitted, choice = fit_on_dev(train, resolve(given), dev, Progress())
    assert choice.recipe.name == wanted
    model = fitted.model
    assert model.config.freeze != choice.recipe.trained
    assert (model.ensemble is not None) == choice.recipe.ngrams
    if choice.recipe.ngrams:
        assert (model.ensemble.weights[0] == 0) == (choice.recipe.encoder is None)
    save_run(model, tmp_path / "run")
    again = load_model(tmp_path / "run")
    assert again.config == model.config
    shares = model.probabilities(dev.texts)
    np.testing.assert_allclose(again.probabilities(dev.texts), shares, atol=1e-6)
    assert fitted.evaluate("dev", dev.texts, dev.labels).metrics["n"] == 60


def test_the_classifier_chooses_and_its_run_can_be_fitted_again(tmp_path):
    small = {"vector_dimension": 8, "vector_method": "random"}
    data = dataset()
    model = SuperConTextClassifier(preset="auto", budget=0.0, **small).fit(data.texts, data.labels)
    assert model.cv_["recipes"]["chosen"] in {recipe.name for recipe in RECIPES}
    model.save(tmp_path / "run")
    loaded = load(tmp_path / "run")
    np.testing.assert_allclose(
        loaded.predict_proba(data.texts), model.predict_proba(data.texts), atol=1e-6
    )
    assert loaded.get_params()["preset"] == "fast"
    assert loaded.fit(data.texts, data.labels).predict(data.texts[:2]).shape == (2,)


def unequal(rows=120, seed=0):
    """Three classes of 70, 20 and 10%, whose words tell them apart seven times in ten."""
    draw = np.random.default_rng(seed)
    labels = draw.choice(["common", "rare", "some"], rows, p=[0.7, 0.1, 0.2])
    words = [of if draw.random() < 0.7 else draw.choice(labels) for of in labels]
    texts = [f"{of} w{draw.integers(9)} w{draw.integers(9)} {n}" for n, of in enumerate(words)]
    return Dataset(texts, [str(of) for of in labels], range(rows))


@pytest.mark.parametrize("judged_on", ["folds", "dev"])
def test_half_of_the_log_class_shares_is_subtracted_unless_another_part_is_named(judged_on):
    """Of what predicts and of the baselines alike: p is proportional to p / share ** 0.5."""
    train, new = unequal(), unequal(60, seed=1)
    fitted = {}
    for name, given in (("half", {}), ("none", {"logit_adjustment": 0.0})):
        small = {"budget": 0.0, "vector_dimension": 8, "vector_method": "random", **given}
        if judged_on == "folds":
            model = SuperConTextClassifier(preset="auto", **small).fit(train.texts, train.labels)
            assert model.get_params()["preset"] == "auto"
            fitted[name] = model.predict_proba(new.texts), model.cv_
        else:
            config = resolve({"preset": "auto", **small})
            found, choice = fit_on_dev(train, config, unequal(90, seed=2), Progress())
            fitted[name] = found.model.probabilities(new.texts), {"recipes": choice.facts}
    (half, of_half), (none, of_none) = fitted["half"], fitted["none"]
    assert of_half["recipes"]["chosen"] == of_none["recipes"]["chosen"]
    shares = [train.labels.count(name) / len(train) for name in sorted(set(train.labels))]
    for row, plain in zip(half, none, strict=True):
        expected = [p / share**0.5 for p, share in zip(plain, shares, strict=True)]
        np.testing.assert_allclose(row, np.array(expected) / sum(expected), atol=1e-6)
    assert (half.argmax(axis=1) != none.argmax(axis=1)).any()
    plain = of_none["recipes"]["recipes"]
    for name, recipe in of_half["recipes"]["recipes"].items():
        expected = pytest.approx(plain[name]["log_loss"], rel=1e-5)
        assert recipe["log_loss"] == expected, "what decides is not adjusted"


def test_with_a_cv_of_0_the_classifier_chooses_on_a_tenth_that_it_holds_out(monkeypatch):
    data = dataset(80)
    names = sorted({*data.labels})
    numbers = [(10, 2, -1)[names.index(label)] for label in data.labels]
    judged = []

    def watched(train, config, dev, *given, **more):
        judged.append(len(dev))
        return fit_on_dev(train, config, dev, *given, **more)

    monkeypatch.setattr(recipes, "fit_on_dev", watched)
    monkeypatch.setattr(recipes, "OPEN", (*recipes.OPEN, *TINY))
    model = SuperConTextClassifier(**AUTO, cv=0).fit(data.texts, numbers)
    assert judged == [8] and not hasattr(model, "cv_")
    assert model.classes_.tolist() == sorted(set(numbers))
    assert model.score(data.texts, numbers) > 0.5
    with pytest.raises(DataError, match="4 rows are too few to hold any back"):
        SuperConTextClassifier(**AUTO, cv=0).fit(["a b", "c d", "e f", "g h"], [1, 2, 1, 2])


@pytest.mark.parametrize("name", ["ngrams", "frozen+ngrams"])
def test_a_pool_that_dev_rows_have_chosen_is_calibrated_on_them(monkeypatch, name):
    def decided(losses, *rest):
        losses = {r: np.full(len(x), 0.5 + (r.name != name)) for r, x in losses.items()}
        return real(losses, *rest)

    real = recipes._decided
    monkeypatch.setattr(recipes, "_decided", decided)
    dev = noise(60)
    plain, scaled = (
        fit_on_dev(noise(40), resolve({**AUTO, "calibrate": flag}), dev, Progress())[0]
        for flag in (False, True)
    )
    by = scaled.model.ensemble.temperature
    assert plain.model.ensemble.temperature is None and abs(by - 1) > 1e-3
    new = dataset(40, seed=9).texts
    for one, other in (
        (plain.dev_probabilities, scaled.dev_probabilities),
        (plain.model.probabilities(new), scaled.model.probabilities(new)),
    ):
        np.testing.assert_allclose(other, softmax(np.log(one) / by), atol=1e-6)


def test_a_temperature_has_no_part_in_the_choice(monkeypatch):
    """Nor in what is said of the recipes, and what is chosen predicts the same labels."""
    kept = tuple(recipe for recipe in RECIPES if not recipe.trained)
    monkeypatch.setattr(recipes, "recipes_of", lambda *_: kept)
    draw = np.random.default_rng(5)
    labels = draw.choice(["x", "y", "z"], 90, p=[0.7, 0.2, 0.1]).tolist()
    texts = [
        " ".join(draw.choice([label * 2, *"abcdefgh"], 5, p=[0.2, *[0.1] * 8])) for label in labels
    ]
    told, models = [], []
    for flag in (False, True):
        config = {**AUTO, "calibrate": flag, "logit_adjustment": 1.0}
        cv = CrossValidation(
            Dataset(texts, labels, range(90)), resolve(config), 3, Progress(), times=1
        )
        choice, folds, settings = choose(cv, Progress())
        told.append((choice.recipe, choice.facts["recipes"]))
        models.append(folds.recipe.mean(3)[1])
        assert bool(settings.temperatures) == flag
    assert told[0] == told[1]
    assert not np.allclose(*models) and np.array_equal(*(one.argmax(axis=1) for one in models))


def test_n_grams_alone_are_weighed_as_dev_rows_want_them(monkeypatch):
    def decided(losses, *rest):
        losses = {r: np.full(len(x), 0.5 + (r.name != "ngrams")) for r, x in losses.items()}
        return real(losses, *rest)

    real = recipes._decided
    monkeypatch.setattr(recipes, "_decided", decided)
    dev = dataset(60, seed=1)
    config = resolve({**AUTO, "logit_adjustment": 0.0})
    fitted, choice = fit_on_dev(dataset(30), config, dev, Progress())
    assert choice.recipe.name == "ngrams"
    pool, classes = fitted.model.ensemble, fitted.model.classes
    labels = np.array([classes.index(label) for label in dev.labels])
    logs = [np.log(one.probabilities(dev.texts)) for one in (pool.tfidf, pool.ratios)]
    np.testing.assert_allclose(pool.weights, [0, *fit_weights(logs, labels)])
    np.testing.assert_allclose(fitted.dev_probabilities, softmax(cross_weighted(logs, labels)))
