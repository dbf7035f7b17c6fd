"""`train` on a small file: cross-validated by itself, and with no recipe named, chosen for."""

from __future__ import annotations

import csv
import json
import random
import re
import time

import numpy as np
import pytest

from superconext.config.files import read_config
from superconext.config.parameters import resolve
from superconext.core.progress import Progress
from superconext.encoders.pretrained import read_facts
from superconext.experiments.systems import AUTO, fit_config, plain
from superconext.fitting import cross_validation, preprocess
from superconext.fitting import recipes as recipes_module
from superconext.fitting.cross_validation import CrossValidation
from superconext.fitting.model import Model
from superconext.fitting.recipes import fit_chosen
from superconext.runs.folder import load_model
from superconext.training.checkpoint import Checkpointer
from tests.cli.conftest import blame, write_table
from tests.fitting.test_cross_validation import dataset

SMALL = ("--vector-method", "random", "--vector-dimension", "8")
BRIEF = ("--epochs", "1", "--steps-per-epoch", "2", "--hidden-size", "4")
TRAINED = (*SMALL, *BRIEF)


def unlabelled(folder, sentences):
    """A file of sentences of six words each."""
    draw = random.Random(0)
    lines = [" ".join(draw.choices([f"w{n}" for n in range(40)], k=6)) for _ in range(sentences)]
    path = folder / "text.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


@pytest.fixture
def few(tmp_path):
    data = dataset(30)
    return write_table(tmp_path / "few.tsv", list(zip(data.labels, data.texts, strict=True)))


@pytest.fixture
def brief(monkeypatch):
    """Options of a short training, which leave the choice open."""
    names = ("epochs", "steps_per_epoch", "hidden_size")
    monkeypatch.setattr(recipes_module, "OPEN", (*recipes_module.OPEN, *names))
    return TRAINED


def test_thirty_rows_of_three_classes_have_an_answer_and_its_interval(call, few, tmp_path):
    run = tmp_path / "run"
    said = call("train", few, "--out", run, *TRAINED, "--cv", "3")
    assert said.code == 0, said.err
    assert "cross-validated, 30 rows" in said.out and "(3 folds, 6 times)" in said.out
    assert "95% interval of the accuracy" in said.out and "over 18 folds" in said.out
    metrics = json.loads((run / "metrics.json").read_text())
    assert metrics["reported_split"] == "cv" and metrics["cv"]["n"] == 30
    low, high = metrics["cv"]["folds"]["interval"]
    assert low <= metrics["cv"]["accuracy"] <= high
    assert set(metrics["baselines"]) == {"majority", "tfidf_logreg"}
    with (run / "predictions.tsv").open(encoding="utf-8") as file:
        table = list(csv.DictReader(file, delimiter="\t"))
    assert [int(row["line"]) for row in table] == list(range(2, 32)), "every row of the file"
    assert "Cross-validated (3 folds, 6 times)" in (run / "README.md").read_text()
    assert (run / "report.html").is_file()
    words = load_model(run).indexer.vocabulary
    assert all(f"n{row}" in words for row in range(30)), "the model is fitted on all rows"
    assert call("evaluate", run, few).code == 0


def test_every_interval_counts_a_text_once(call, tmp_path):
    data = dataset(30)
    pairs = list(zip(data.labels, data.texts, strict=True))
    path, run = write_table(tmp_path / "x.tsv", [*pairs, *pairs[:9]]), tmp_path / "run"
    said = call("train", path, "--out", run, *TRAINED, "--cv", "3", "--no-baselines")
    assert said.code == 0, said.err
    told = r"accuracy: (.+) to (.+) \(Wilson, 30 different texts\)"
    low, high = re.search(told, said.out).groups()
    card = (run / "README.md").read_text(encoding="utf-8")
    ends = re.search(r"this model \| .+ \((.+) to (.+)\)", card.split("## Results")[1]).groups()
    assert [f"{100 * float(end):.1f}" for end in ends] == [low, high]
    assert "(39 rows, 30 distinct texts)" in card
    assert f"({low}% to {high}%)" in (run / "report.html").read_text(encoding="utf-8")


def test_rows_that_are_never_held_out_are_told_with_the_reason(call, tmp_path):
    data = dataset(30)
    pairs = [*zip(data.labels, data.texts, strict=True), ("alone", "a class of one text")]
    path = write_table(tmp_path / "x.tsv", pairs)
    said = call("train", path, "--out", tmp_path / "cv", *TRAINED, "--cv", "3", "--no-baselines")
    assert "never held out: 1 row, the only text of a class\n" in said.out, said.err
    said = call("train", path, "--out", tmp_path / "run", *SMALL, "--budget", "0.01s")
    assert "of a recipe, in 0.01 seconds of processor time at most" in said.err
    told = "never held out: 1 row, the only text of a class; 24 rows, in folds that were not fitted"
    assert f"{told}\n" in said.out, said.err


def test_it_happens_by_itself_and_can_be_left_out(call, few, tmp_path):
    words = ("train", few, *TRAINED, "--no-baselines", "--out")
    said = call(*words, tmp_path / "by-itself")
    assert "by cross-validation (5 folds): 5 fits, then one on all rows (--cv 0: " in said.err
    said = call(*words, tmp_path / "held", "--cv", "0")
    assert "3 of 30 training rows are held out" in said.err and "dev, 3 rows" in said.out
    line = blame(call(*words, tmp_path / "both", "--cv", "3", "--dev", few))
    assert "cv = 3 with a dev file" in line
    line = blame(call(*words, tmp_path / "stream", "--cv", "3", "--store", tmp_path / "store"))
    assert "read in a stream" in line


def test_a_cross_validation_that_is_stopped_leaves_nothing(call, few, tmp_path, monkeypatch):
    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(CrossValidation, "_add_trained", stopped)
    said = call("train", few, "--out", tmp_path / "out" / "run", *TRAINED)
    assert said.code == 1 and "interrupted before anything could be saved" in said.err
    assert not (tmp_path / "out").exists()


def test_with_no_recipe_named_one_is_chosen_and_the_others_figures_are_kept(call, few, tmp_path):
    run = tmp_path / "run"
    said = call("train", few, "--out", run, *SMALL, "--budget", "0s")
    assert said.code == 0, said.err
    told = [line for line in said.err.splitlines() if line.startswith("auto: ")]
    assert (
        "(5 folds, 4 times): up to 20 fits of a recipe, in 0 minutes of processor time at most"
        in said.err
    )
    assert len(told) == 4 and "3 recipes" in told[1] and "chosen: " in told[3]
    assert "best of 3" in told[3], "the choice flatters the chosen one's scores"
    assert said.err.count("text: spelling rules") == 1, "what both fits read is said once"
    recipes = json.loads((run / "manifest.json").read_text())["recipes"]
    assert recipes["chosen"] in recipes["recipes"] and len(recipes["recipes"]) == 3
    titles = {"ngrams": "n-grams", "frozen": "mean word vectors"}
    titles["frozen+ngrams"] = "mean word vectors + n-grams"
    title, both = titles[recipes["chosen"]], recipes["chosen"] == "frozen+ngrams"
    found = [line.split("  ")[0] for line in said.out.splitlines() if "superconext, " in line]
    assert found[-1] == f"superconext, {title}" and len(found) == 1 + both
    shown = call("evaluate", run, few).out
    assert f"\n{run} ({title}) " in shown and ("\nits mean word vectors alone " in shown) == both
    card = (run / "README.md").read_text()
    assert "chosen automatically" in card
    preset = f"auto, chose {title}"
    assert json.loads((run / "manifest.json").read_text())["preset"] == preset
    assert f"| preset | {preset} |" in card and preset in (run / "report.html").read_text()
    config = read_config(run / "config.toml")
    assert config["preset"] == "fast" and config["freeze"]
    again = call("train", few, "--config", run / "config.toml", "--out", tmp_path / "again")
    assert again.code == 0 and "auto:" not in again.err
    said = call("train", few, "--out", tmp_path / "other", "--budget", "soon")
    assert said.code == 2 and "expected minutes, such as 5, 90s or 1h" in said.err


@pytest.fixture(scope="module")
def easy(tmp_path_factory):
    """Rows whose class is in the letters of one word, which is spelt in a new way in each."""
    words, draw = ("mzyaaan", "khaaayb"), random.Random(0)
    table = []
    for row in range(150):
        word, at = words[row % 2], draw.randrange(7)
        other = draw.sample(["had", "lfilm", "bzaf", "kan", "walakin", "walo", "lhaja"], 5)
        spelt = word[:at] + draw.choice("abcde") + word[at:]
        table.append(("neg" if row % 2 else "pos", " ".join([*other, spelt, str(row)])))
    return write_table(tmp_path_factory.mktemp("easy") / "easy.tsv", table)


TRAINING = ("objective", "temperature", "epochs", "learning_rate", "dropout", "keep")


def told_of(run):
    """The card of a run, and what its page calls the run and its parameters."""
    card = (run / "README.md").read_text(encoding="utf-8")
    page = (run / "report.html").read_text(encoding="utf-8")
    made = page[page.index('<section id="made">') :]
    names = re.findall(r'<th scope="row">(.*?)</th>', made)
    return card, page, names


def test_a_run_that_chose_n_grams_alone_tells_of_no_encoder(call, easy, tmp_path):
    run = tmp_path / "run"
    said = call("train", easy, "--out", run, *SMALL, "--budget", "0s")
    assert said.code == 0 and "auto: chosen: n-grams;" in said.err, said.err
    card, page, names = told_of(run)
    assert "# Text classifier on n-grams\n" in card and '- name: "superconext, n-grams"' in card
    assert "It predicts with two models, a logistic regression on TF-IDF features" in card
    for wrong in (
        "probe",
        "trained with",
        "## Sentence vectors",
        "curves",
        "encoder alone",
        "Word",
    ):
        assert wrong not in card, wrong
    assert "sentence-embeddings" not in card and "contrastive-learning" not in card
    assert not {*TRAINING, "encoder", "layers", "pooling", "vector_dimension"} & set(names)
    assert {"preset", "seed", "predicts by", "logit_adjustment"} <= set(names)
    assert "encoder alone" not in page and "of word vectors that do not predict" in page
    assert not (run / "history.csv").exists()
    said = call("report", run, easy, "--out", tmp_path / "page.html")
    assert said.code == 0, said.err
    other = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "temperature" not in other and "of word vectors that do not predict" in other
    assert call("report", run, "--out", tmp_path / "recorded.html").code == 0
    assert "temperature" not in (tmp_path / "recorded.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("features", ["encoder", "encoder+ngrams"])
def test_a_run_of_a_frozen_encoder_tells_of_no_training(call, easy, tmp_path, features):
    run = tmp_path / "run"
    words = ("--encoder", "mean", "--freeze", "--no-subwords", "--probe-features", features)
    said = call("train", easy, "--out", run, *SMALL, *words, "--no-baselines")
    assert said.code == 0, said.err
    card, _, names = told_of(run)
    assert "that was not trained on the labels" in card and "## Sentence vectors" in card
    assert "- contrastive-learning" not in card and "did not collapse" not in card
    assert not set(TRAINING) & set(names) and {"encoder", "vector_dimension"} <= set(names)
    assert not (run / "history.csv").exists()


def test_it_is_said_where_a_pool_leaves_the_vectors_out(call, few, tmp_path, monkeypatch):
    title = {"probe_title": "", "companion": "n-grams"}  # as of a model whose vectors weigh 0
    monkeypatch.setattr(Model, "titles", property(lambda model: title))
    said = call("train", few, "--out", tmp_path / "run", *SMALL, "--budget", "0s")
    chosen = json.loads((tmp_path / "run" / "manifest.json").read_text())["recipes"]["chosen"]
    assert ("so they alone predict" in said.err) == (chosen != "ngrams")


def test_a_recipe_is_chosen_or_named(call, few, tmp_path):
    line = blame(call("train", few, "--out", tmp_path / "other", "--preset", "auto", *TRAINED))
    assert "expected a recipe to be chosen or to be named" in line


@pytest.mark.long
@pytest.mark.usefixtures("brief")
def test_enough_unlabelled_text_pretrains_an_encoder_by_itself(call, few, tmp_path, monkeypatch):
    enough = recipes_module.ENOUGH_WORDS
    monkeypatch.setattr(recipes_module, "ENOUGH_WORDS", 900)
    text = unlabelled(tmp_path, 200)
    given = ("train", few, "--unlabelled", text, "--vector-dimension", "8", *BRIEF)
    given += ("--no-baselines", "--no-report")
    run = tmp_path / "run"
    said = call(*given, "--out", run)
    assert said.code == 0, said.err
    told = (
        "auto: also pretrains an encoder on 1,200 unlabelled words: about 1 minute (not with --no-"
    )
    assert told in said.err and "compared 5 recipes" in said.err
    assert "with fewer than 100 rows a pretrained encoder is not trained further" in said.err
    assert read_config(run / "config.toml")["pretrain"] is True
    for words, note in (
        (["--no-pretrain"], ""),
        (["--pretrain"], ""),
        (["--preset", "fast"], ""),
        (["--budget", "0s"], "within --budget it reads 0 of 1,200 unlabelled words, and needs 900"),
    ):
        said = call(*given, *words, "--out", tmp_path / "-".join(words))
        assert said.code == 0, said.err
        assert note in said.err and "auto: also" not in said.err
        assert ("encoder: pretrained" in said.err) == (words == ["--pretrain"])
    monkeypatch.setattr(recipes_module, "ENOUGH_WORDS", enough)
    said = call(*given, "--out", tmp_path / "little")
    assert said.code == 0 and "pretrain" not in said.err


@pytest.mark.long
@pytest.mark.usefixtures("brief")
def test_of_long_text_pretraining_reads_as_much_as_the_budget_allows(
    call, few, tmp_path, monkeypatch
):
    monkeypatch.setattr(recipes_module, "ENOUGH_WORDS", 300)
    monkeypatch.setattr(recipes_module, "_WORDS_A_SECOND", 4)  # 1,200 words in five minutes
    text = unlabelled(tmp_path, 800)
    given = ("train", few, "--unlabelled", text, "--vector-dimension", "8", *BRIEF)
    given += ("--no-baselines", "--no-report")
    parts = []
    for budget, told in (
        (
            (),
            "on 1,200 of 4,800 unlabelled words: about 5 minutes (not with --no-pretrain; on all ",
        ),
        (("--budget", "10m"), "on 2,400 of 4,800 unlabelled words: about 10 minutes"),
        (("--budget", "20m"), "on 4,800 unlabelled words: about 20 minutes (not with"),
    ):
        run, cache = tmp_path / f"run{len(parts)}", tmp_path / f"cache{len(parts)}"
        monkeypatch.setenv("SUPERCONEXT_CACHE", str(cache))
        said = call(*given, *budget, "--out", run)
        assert said.code == 0 and f"auto: also pretrains an encoder {told}" in said.err, said.err
        (made,) = (cache / "encoders").glob("*/encoder.json")
        facts = read_facts(made.parent)
        parts.append(facts["settings"]["part"])
        assert facts["sentences"] > 700  # all of them are drawn from
    assert parts == [0.25, 0.5, 1.0]
    said = read_config(tmp_path / "run0" / "config.toml")
    assert said["pretrain"] is True and said["pretrain_words"] == 1_200


@pytest.mark.usefixtures("brief")
@pytest.mark.parametrize("on_dev", [False, True])
def test_the_budget_does_not_count_pretraining(call, few, tmp_path, monkeypatch, on_dev):
    late, made = [0.0], preprocess.pretrained_encoder

    def slow(*given):
        late[0] = 600  # later it comes out of the cache
        return made(*given)

    monkeypatch.setattr(preprocess, "pretrained_encoder", slow)
    monkeypatch.setattr(recipes_module, "ENOUGH_ROWS", 0)
    for module in (recipes_module, cross_validation):
        monkeypatch.setattr(module, "clock", lambda: time.process_time() + late[0])
    text = unlabelled(tmp_path, 200)
    data = dataset(60)
    dev = write_table(tmp_path / "dev.tsv", list(zip(data.labels, data.texts, strict=True)))
    said = call(
        *("train", few, "--unlabelled", text, "--pretrain", "--vector-dimension", "8"),
        *(("--dev", dev) if on_dev else ()),
        *(*BRIEF, "--no-baselines", "--no-report", "--out", tmp_path / "run"),
    )
    assert said.code == 0 and late[0] >= 600, said.err
    assert "compared 7 recipes" in said.err and "longer than the budget" not in said.err
    assert on_dev or "in 5 of 20 folds; encoders are trained in the first 5 only" in said.err


@pytest.mark.parametrize("dev_rows", [12, 60])
def test_compare_measures_the_recipe_that_train_chooses(call, tmp_path, brief, dev_rows):
    files = []
    for name, rows in (("train", 45), ("dev", dev_rows), ("test", 30)):
        data = dataset(rows, seed=len(name))
        pairs = list(zip(data.labels, data.texts, strict=True))
        files += [f"--{name}", write_table(tmp_path / f"{name}.tsv", pairs)]
    run, out = tmp_path / "run", tmp_path / "out"
    said = call("train", *files[1:], *brief, "--no-baselines", "--out", run)
    assert said.code == 0, said.err
    words = ("--objectives", "auto", "--seeds", 1, "--out", out)
    said = call("compare", *files[1:], *brief, *words)
    assert said.code == 0, said.err
    lines = map(json.loads, (out / "results.jsonl").read_text().splitlines())
    line = next(line for line in lines if line.get("system") == "auto")
    chosen = json.loads((run / "manifest.json").read_text())["recipes"]
    title = chosen["recipes"][chosen["chosen"]]["title"]
    assert line["recipes"] == [title]
    assert f"auto: the recipe that train chooses with the same dev rows: {title} (1)." in said.out
    expected = json.loads((run / "metrics.json").read_text())["test"]
    assert {name: line["test"][name] for name in ("accuracy", "f1_macro")} == pytest.approx(
        {name: expected[name] for name in ("accuracy", "f1_macro")}, abs=1e-12
    )


def test_compare_chooses_again_without_the_rows_of_each_fold(call, few, tmp_path, brief):
    words = ("--objectives", "auto", "--seeds", 1, "--cv", 2, "--out", tmp_path / "out")
    said = call("compare", few, *brief, *words)
    assert said.code == 0, said.err
    lines = map(json.loads, (tmp_path / "out" / "results.jsonl").read_text().splitlines())
    line = next(line for line in lines if line.get("system") == "auto")
    assert len(line["recipes"]) == 2 and None not in line["predictions"]


def test_compare_takes_no_recipe_beside_the_choice(call, few, tmp_path):
    words = ("--seeds", 1, "--out", tmp_path / "out", "--epochs", 3)
    line = blame(call("compare", few, "--objectives", "auto,superloss", *words))
    assert "auto: found epochs, and a recipe that is chosen" in line and "superloss" not in line
    line = blame(call("compare", few, "--objectives", "superloss:preset=auto", *words))
    assert "name the system auto" in line
    said = call("compare", few, "--objectives", "auot", *words)
    assert said.code == 2 and "did you mean 'auto'?" in said.err


def test_compare_gives_the_choice_no_adjustment_that_its_rivals_lack():
    system = plain(AUTO)
    assert fit_config({}, system, 0).logit_adjustment == 0
    assert resolve({"preset": "auto"}).logit_adjustment == 0.5
    assert fit_config({"logit_adjustment": 0.5}, system, 0).logit_adjustment == 0.5


@pytest.mark.parametrize("dev_rows", [1, 12])
def test_a_cv_of_0_lets_dev_decide_however_few_rows_it_has(call, few, tmp_path, brief, dev_rows):
    data = dataset(dev_rows, seed=1)
    dev = write_table(tmp_path / "dev.tsv", list(zip(data.labels, data.texts, strict=True)))
    words = ("train", few, "--dev", dev, *brief, "--no-baselines", "--cv", 0)
    said = call(*words, "--out", tmp_path / "run")
    assert said.code == 0, said.err
    assert f"auto: compared 5 recipes on {dev_rows} dev row" in said.err
    assert "out of fold" not in said.err and "cross-validation" not in said.err


@pytest.fixture
def hurried(monkeypatch):
    """A clock that every look at it puts a second forward, and a trained encoder that is chosen
    wherever there is one."""
    now, rate = [0.0], [1.0]

    def look():
        now[0] += rate[0]
        return now[0]

    def decided(losses, *rest):
        losses = {r: np.full(len(loss), float(r.name != "trained")) for r, loss in losses.items()}
        return real(losses, *rest)

    real = recipes_module._decided
    monkeypatch.setattr(time, "process_time", look)
    monkeypatch.setattr(recipes_module, "_decided", decided)
    names = ("steps_per_epoch", "hidden_size")
    monkeypatch.setattr(recipes_module, "OPEN", (*recipes_module.OPEN, *names))
    return rate


@pytest.mark.long
@pytest.mark.parametrize("on_dev", [False, True], ids=["folds", "dev"])
def test_where_time_is_short_an_encoder_has_fewer_epochs_also_when_resumed(
    call, few, tmp_path, hurried, monkeypatch, on_dev
):
    data = dataset(60, seed=1)
    dev = write_table(tmp_path / "dev.tsv", list(zip(data.labels, data.texts, strict=True)))
    words = ("train", few, *SMALL, "--steps-per-epoch", "2", "--hidden-size", "4")
    words += ("--budget", "35s" if on_dev else "120s", "--no-baselines", "--out")
    words = (*words[:2], "--dev", dev, *words[2:]) if on_dev else words
    whole = tmp_path / "whole"
    said = call(*words, whole)
    assert said.code == 0, said.err
    found = re.search(r"auto: the encoder is trained for (\d+) epochs of 15, to keep to", said.err)
    assert found, said.err
    epochs = int(found[1])
    assert read_config(whole / "config.toml")["epochs"] == epochs < 15
    choice = json.loads((whole / "manifest.json").read_text())["recipes"]
    assert choice["chosen"] == "trained" and choice["epochs"] == epochs
    assert (whole / "history.csv").read_text().count("\n") == epochs + 1

    def press(*arguments):
        save(*arguments)
        raise KeyboardInterrupt

    save, run = Checkpointer.on_epoch_end, tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(Checkpointer, "on_epoch_end", press)
        said = call(*words, run)
    kept = "finished epochs are kept" if on_dev else f"after 1 of {epochs} epochs"
    assert said.code == 1 and kept in said.err, said.err
    assert run.exists() != on_dev, "no recipe is chosen by an encoder that is not trained yet"
    hurried[0] = 0.0  # there would be time for all now
    said = call("train", "--resume", run)
    assert said.code == 0, said.err
    assert f"trained for {epochs} epochs of 15" in said.err
    names = ("encoder.safetensors", "history.csv", "config.toml")
    for name in names[:1] + names[2:]:
        assert (run / name).read_bytes() == (whole / name).read_bytes(), name
    assert (run / "history.csv").read_text().count("\n") == epochs + 1


def test_fit_chosen_lets_few_dev_rows_decide_with_a_cv_of_0_alone(brief):
    given = {"vector_method": "random", "vector_dimension": 8, "budget": 0.0}
    for cv, where in ((0, "on 12 dev rows"), (None, "out of fold on ")):
        config = resolve({**given, "cv": cv})
        _, choice = fit_chosen(dataset(30), config, dataset(12, seed=1), Progress())
        assert choice.facts["compared"].startswith(where)


@pytest.mark.parametrize("dev_rows", [0, 60])
def test_the_chosen_recipe_can_be_calibrated(call, tmp_path, brief, dev_rows, monkeypatch):
    def table(name, rows):
        data = dataset(rows, seed=len(name))
        labels = [data.labels[row - row % 4] for row in range(rows)]  # some are wrong
        return write_table(tmp_path / f"{name}.tsv", list(zip(labels, data.texts, strict=True)))

    files = [table("train", 45), *(("--dev", table("dev", 60)) if dev_rows else ())]
    # So that what is calibrated is chosen: an encoder alone.
    kept = [recipe for recipe in recipes_module.recipes_of(resolve({}), 45) if not recipe.trained]
    monkeypatch.setattr(recipes_module, "recipes_of", lambda *_: tuple(kept))
    monkeypatch.setattr(
        recipes_module,
        "_ready",
        lambda losses, rows: next(recipe for recipe in losses if recipe.name == "frozen"),
    )
    runs = [tmp_path / name for name in ("plain", "scaled")]
    for run, more in zip(runs, ((), ("--calibrate",)), strict=True):
        said = call("train", *files, *brief, *more, "--no-baselines", "--no-report", "--out", run)
        assert said.code == 0 and "auto: chosen: mean word vectors" in said.err, said.err
    plain, scaled = map(load_model, runs)
    assert read_config(runs[1] / "config.toml")["calibrate"] is True
    texts = dataset(40, seed=9).texts
    ratio = plain.decision(texts) / scaled.decision(texts)
    assert ratio == pytest.approx(np.full_like(ratio, ratio[0, 0]), rel=1e-3)
    temperature = json.loads((runs[1] / "metrics.json").read_text())["probe_temperature"]
    assert ratio[0, 0] == pytest.approx(temperature, rel=1e-3) and abs(temperature - 1) > 1e-3
