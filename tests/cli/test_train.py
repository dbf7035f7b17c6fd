"""`superconext train`: what it writes, what it says, and that it repeats itself."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import unicodedata
from pathlib import Path

import pytest

from superconext import SuperConTextClassifier
from superconext._version import __version__
from superconext.config.files import read_config
from superconext.config.parameters import PARAMETERS
from superconext.core.errors import ConfigError
from superconext.report.figures import available as can_draw
from superconext.report.table import BASELINE_NAMES
from superconext.text.tokenize import Tokenizer
from tests.cli.conftest import environment, rows, write_table

FROZEN_ENCODER = Path(__file__).parents[1] / "frozen" / "pretrained"
HEAVY = ("torch", "sklearn", "gensim", "scipy", "matplotlib", "numpy")
WEIGHTS = ("encoder.safetensors", "probe.safetensors")


def document(folder, name="metrics.json"):
    return json.loads((folder / name).read_text(encoding="utf-8"))


def timeless(value):
    """A metrics document without the seconds things took."""
    if isinstance(value, dict):
        return {key: timeless(item) for key, item in value.items() if key != "seconds"}
    return value


def assert_nearly(first, second):
    """Two documents are the same, but for rounding."""
    if isinstance(second, dict):
        assert first.keys() == second.keys()
        for key, value in second.items():
            assert_nearly(first[key], value)
    elif isinstance(second, list):
        assert len(first) == len(second)
        for pair in zip(first, second, strict=True):
            assert_nearly(*pair)
    else:
        assert first == (pytest.approx(second, abs=1e-6) if isinstance(second, float) else second)


def same_weights(first, second):
    return [(first / name).read_bytes() == (second / name).read_bytes() for name in WEIGHTS]


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture
def train(call, data, tmp_path):
    """Train a tiny model into `tmp_path / name` without baselines, expecting it to work."""

    def run(name, *more, file=None):
        words = ("--out", tmp_path / name, *data.small, "--no-baselines", *more)
        said = call("train", file or data.train, *words)
        assert said.code == 0, said.err
        return tmp_path / name, said

    return run


# The run folder


def test_the_run_folder_holds_every_file_and_nothing_else(finished):
    names = {str(path.relative_to(finished.folder)) for path in finished.folder.rglob("*")}
    pictures = {"figures", *(f"figures/{name}.png" for name in ("map", "confusion", "curves"))}
    assert names - pictures == {
        "manifest.json",
        "config.toml",
        "vocabulary.json",
        "encoder.safetensors",
        "vectors.safetensors",
        "probe.safetensors",
        "history.csv",
        "metrics.json",
        "predictions.tsv",
        "README.md",
        "report.html",
        "seen.safetensors",
    }
    assert list(finished.folder.parent.iterdir()) == [finished.folder]


@pytest.mark.skipif(not can_draw(), reason="needs the plots extra")
def test_figures_are_pictures(finished):
    for name in ("map", "confusion", "curves"):
        picture = (finished.folder / "figures" / f"{name}.png").read_bytes()
        assert picture.startswith(b"\x89PNG") and len(picture) > 1000


def test_the_manifest_tells_where_everything_comes_from(finished):
    manifest = document(finished.folder, "manifest.json")
    assert manifest["format"] == 1 and manifest["status"] == "complete"
    assert manifest["version"] == manifest["versions"]["superconext"] == __version__
    assert manifest["command"][:3] == ["superconext", "train", str(finished.data.train)]
    assert (manifest["seed"], manifest["threads"]) == (0, 1)
    assert manifest["vectors"]["name"] == "vectors.txt"
    assert manifest["vectors"]["sha256"] == sha256(finished.data.vectors)
    assert {"python", "torch", "numpy", "scikit-learn"} <= set(manifest["versions"])
    assert manifest["wall_seconds"] > 0 and manifest["cpu_seconds"] > 0
    for split, half in (("train", 20), ("dev", 6), ("test", 6)):
        told = manifest["data"][split]
        assert told["file"] == f"{split}.tsv"
        assert told["sha256"] == sha256(getattr(finished.data, split))
        assert told["classes"] == {"neg": half, "pos": half}
    for name, digest in manifest["files"].items():
        assert sha256(finished.folder / name) == digest
    assert set(manifest["files"]) >= {"config.toml", "vocabulary.json", *WEIGHTS}


def test_unknown_words_of_every_split_are_told_and_saved(train, tmp_path):
    known = [("pos", "zwin bzaf"), ("neg", "khayb bzaf")] * 3
    parts = {
        "dev": [("pos", "zwin jdid"), ("neg", "khayb jdid jdid")],
        "test": [("pos", "bzaf wa3r"), ("neg", "khayb")],
    }
    files = {name: write_table(tmp_path / f"{name}.tsv", rows) for name, rows in parts.items()}
    options = [word for name, path in files.items() for word in (f"--{name}", path)]
    folder, said = train("told", *options, file=write_table(tmp_path / "few.tsv", known))
    unknown = document(folder, "manifest.json")["text"]["unknown"]
    counts = {name: (told["oov_tokens"], told["tokens"]) for name, told in unknown.items()}
    assert counts == {"train": (0, 12), "dev": (3, 5), "test": (1, 3)}
    counts = {name: (told["oov_types"], told["types"]) for name, told in unknown.items()}
    assert counts == {"train": (0, 3), "dev": (1, 3), "test": (1, 3)}
    assert unknown["dev"]["frequent_oov"] == [["jdid", 3]]
    assert "not in train: 60.0% of dev's 5 tokens, 33.3% of its 3 words" in said.err
    before, heading, _ = said.err.partition("loss")
    assert heading and "not in train: 33.3% of test's 3 tokens" in before


def test_the_configuration_is_complete_and_can_be_used_again(finished, train):
    values = read_config(finished.folder / "config.toml")
    optional = {parameter.name for parameter in PARAMETERS if parameter.optional}
    assert set(values) | optional == {parameter.name for parameter in PARAMETERS}
    assert (values["epochs"], values["hidden_size"], values["batch_size"]) == (2, 8, 20)
    toml = finished.folder / "config.toml"
    again, said = train("again", "--config", toml, "--dev", finished.data.dev)
    assert same_weights(finished.folder, again) == [True, True]
    told = (
        r"^note: recipes are not compared, because of --config, --batch-size, --epochs and 2 more$"
    )
    assert re.search(told, said.err, re.MULTILINE)


def test_the_metrics_document_has_its_shape(finished):
    metrics = document(finished.folder)
    assert metrics["reported_split"] == "test"
    assert set(metrics["baselines"]) == {"majority", "tfidf_logreg", "vectors_logreg"}
    every = [metrics[split] for split in ("train", "dev", "test")]
    for baseline in metrics["baselines"].values():
        every += [baseline["test"], baseline["dev"]]
    for scores in every:
        assert set(scores["per_class"]) == {"neg", "pos"}
        fractions = [scores[name] for name in ("accuracy", "f1_macro", "f1_weighted")]
        for one in scores["per_class"].values():
            fractions += [one["precision"], one["recall"], one["f1"]]
        assert all(isinstance(x, float) and 0 <= x <= 1 for x in fractions)
    assert metrics["baselines"]["majority"]["test"]["accuracy"] == 0.5
    assert metrics["collapse"]["dimensions"] == 16
    assert isinstance(metrics["collapse"]["collapsed"], bool)
    assert 1 <= metrics["collapse"]["effective_rank"] <= 16
    assert "native" not in metrics


def test_the_controls_stand_in_metrics_table_and_card_and_change_no_weight(
    call, data, tmp_path, monkeypatch
):
    folder = str(FROZEN_ENCODER)
    words = ("--init", folder, "--hidden-size", 6, "--epochs", 2, "--batch-size", 20)
    files = (data.train, "--dev", data.dev, "--test", data.test)
    cut = []
    pieces = Tokenizer.pieces
    monkeypatch.setattr(Tokenizer, "pieces", lambda *a: cut.append((a[0], len(a[1]))) or pieces(*a))
    said = call("train", *files, *words, "--out", tmp_path / "with")
    assert said.code == 0, said.err
    by_the_run = [rows for tokenizer, rows in cut if tokenizer is cut[0][0]]
    assert sorted(by_the_run) == [12, 12, 40]  # each split once
    none = call("train", *files, *words, "--out", tmp_path / "without", "--no-baselines")
    assert none.code == 0, none.err
    metrics = document(tmp_path / "with")
    names = ["majority", "tfidf_logreg", "vectors_logreg", "pretrained_logreg"]
    assert list(metrics["baselines"]) == names
    assert metrics["baselines"]["pretrained_logreg"]["pooling"] == "mean"  # of 12 dev rows
    card = (tmp_path / "with" / "README.md").read_text(encoding="utf-8")
    bare = (tmp_path / "without" / "README.md").read_text(encoding="utf-8")
    for name in names:
        title = BASELINE_NAMES[name]
        accuracy = f"{metrics['baselines'][name]['test']['accuracy']:.3f}"
        assert re.search(rf"^{re.escape(title)} +{accuracy} ", said.out, re.MULTILINE)
        assert f"| {title} | {accuracy} (" in card
        assert title not in none.out and title not in bare
    assert document(tmp_path / "without")["baselines"] == {}
    assert same_weights(tmp_path / "with", tmp_path / "without") == [True, True]
    predictions = [(tmp_path / n / "predictions.tsv").read_bytes() for n in ("with", "without")]
    assert predictions[0] == predictions[1]


def test_the_history_has_a_line_for_each_epoch(finished):
    lines = (finished.folder / "history.csv").read_text(encoding="utf-8").splitlines()
    names = lines[0].split(",")
    assert {"member", "epoch", "loss", "dev_score", "seconds"} <= set(names)
    assert [line.split(",")[names.index("epoch")] for line in lines[1:]] == ["1", "2"]


def test_the_predictions_are_those_of_the_reported_split(finished, call):
    lines = (finished.folder / "predictions.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[0].split("\t") == ["line", "label", "predicted", "probability"]
    told = [line.split("\t") for line in lines[1:]]
    source = finished.data.test.read_text(encoding="utf-8").splitlines()
    assert [row[1] for row in told] == [source[int(row[0]) - 1].split("\t")[0] for row in told]
    later = call("predict", finished.folder, finished.data.test, "--proba").out.splitlines()
    assert [row[2] for row in told] == [line.split("\t")[0] for line in later[1:]]
    assert [row[3] for row in told] == [max(line.split("\t")[1:3]) for line in later[1:]]


def test_the_card_shows_the_reported_figures(finished):
    card = (finished.folder / "README.md").read_text(encoding="utf-8")
    assert f"{document(finished.folder)['test']['accuracy']:.3f}" in card


# What is said, and where


def test_the_table_goes_to_stdout_and_progress_to_stderr(finished):
    out = finished.said.out
    (told,) = (line for line in finished.said.err.splitlines() if "best baseline (" in line)
    assert told.startswith("note: the model is ") and " test rows" in told
    err = finished.said.err.replace(told, "")
    assert out.startswith("test, 12 rows\n")
    for name, row in {**BASELINE_NAMES, "": "trained encoder"}.items():
        if name == "pretrained_logreg" or name.endswith("_adjusted"):
            continue  # the run starts from no pretrained encoder, and adjusts nothing
        assert row in out and row not in err
    assert f"{document(finished.folder)['test']['accuracy']:.3f}" in out
    assert re.search(r"^ +epoch +loss .*\n +1 .*\n +2 ", err, re.MULTILINE)
    where, then = err.splitlines()[-2:]
    assert where == f"run folder: {finished.folder}"
    page = finished.folder / "report.html"
    assert then == f"next: superconext predict {finished.folder} FILE; open {page} in a browser"
    assert page.exists()
    assert "epoch" not in out


def test_the_epoch_lines_have_the_columns_that_the_objective_reports(train, data):
    for objective, columns in (
        ("superloss", ["pos", "sim", "neg", "sim"]),
        ("cross_entropy", ["batch", "accuracy"]),
    ):
        _, said = train(objective, "--dev", data.dev, "--objective", objective)
        lines = said.err.splitlines()
        (at,) = (place for place, line in enumerate(lines) if line.startswith("  epoch"))
        assert lines[at].split() == ["epoch", "loss", *columns, "dev", "acc", "seconds"]
        assert len(lines[at]) == len(lines[at + 1]) and " - " not in lines[at + 1]
    _, said = train("mined", "--dev", data.dev, "--options", "mining=quantile,mining_threshold=0.5")
    assert " neg kept " in said.err


def test_settings_of_the_objective_may_be_named_one_by_one(train, data):
    each = ("--options", "mining=topk", "--options", "mining_threshold=7")
    folder, said = train("each", "--dev", data.dev, *each)
    assert said.code == 0, said.err
    assert read_config(folder / "config.toml")["options"] == "mining=topk,mining_threshold=7"


def test_json_is_one_document_the_one_in_the_folder(train):
    folder, said = train("run", "--json")
    assert json.loads(said.out) == document(folder)
    assert " 2 " in said.err


def test_quiet_shows_warnings_alone(train, call, data, tmp_path):
    _, said = train("run", "--quiet")
    assert "accuracy" in said.out
    text = tmp_path / "posts.csv"
    text.write_text("text\nzwin bzaf\n\nkhayb bzaf\n" + "zwin kan\n" * 40, encoding="utf-8")
    words = ("--epochs", 1, "--dimension", 4, "--quiet")
    trained = call("vectors", "train", text, "--out", tmp_path / "vectors", *words)
    assert trained.code == 0
    for line in (said.err + trained.err).splitlines():
        assert line.startswith("warning: ")


def test_without_a_test_file_figures_are_on_dev_and_named_so(train, data):
    folder, said = train("run", "--dev", data.dev)
    metrics = document(folder)
    assert metrics["reported_split"] == "dev" and "test" not in metrics
    assert said.out.startswith("dev, 12 rows (no test file")
    assert metrics["baselines"] == {} and "majority" not in said.out
    assert len((folder / "predictions.tsv").read_text(encoding="utf-8").splitlines()) == 13


def test_without_a_dev_file_a_stratified_tenth_is_held_back(train, data):
    folder, said = train("run", "--test", data.test)
    told = document(folder, "manifest.json")["data"]
    assert told["train"]["classes"] == {"neg": 18, "pos": 18}
    assert told["dev"]["classes"] == {"neg": 2, "pos": 2}
    assert re.search(r"^note: .*\b4 of 40 .*held out", said.err, re.MULTILINE)


def test_test_texts_that_training_has_seen_are_named(train, data, tmp_path):
    lines = data.train.read_text(encoding="utf-8").splitlines()
    leaking = tmp_path / "leaking.tsv"
    leaking.write_text("\n".join([*lines[:4], "neg\tكلام آخر"]) + "\n", encoding="utf-8")
    folder, said = train("run", "--dev", data.dev, "--test", leaking, "--budget", "10s")
    told = r"^warning: 3 of 4 test texts are in train too: the score is not that of new texts"
    told += f" .superconext data inspect {data.train} {data.dev} {leaking} --deduplicate DIR"
    assert re.search(told, said.err, re.MULTILINE)
    overlap = document(folder)["overlap"]
    assert (overlap["train"], overlap["dev"], overlap["without"]["n"]) == (3, 0, 1)
    left = "3 of 4 texts are among the rows of the run (3 train); accuracy without them "
    left += f"{overlap['without']['accuracy']:.3f} (1 row)"
    assert f"warning: test: {left}\n" in said.err
    assert left in (folder / "README.md").read_text(encoding="utf-8")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "3 rows are among those that it was trained on or chosen by." in page
    assert "Of the other 1 row, " in page and "Of other sentences of the same kind" not in page
    assert "note: recipes are not compared, because of --batch-size, --epochs, --hidden" in said.err
    assert ", so --budget is not used\n" in said.err


@pytest.mark.parametrize("option", ["--dev", "--test"])
def test_texts_that_training_has_seen_are_named_whatever_marks_and_form_they_have(
    train, tmp_path, option
):
    drawn = [(label, f"{text} déjà") for label, text in rows(40, 1)]
    marked = [
        drawn[0][1].replace(" ", " \u200b"),
        "\u200f" + drawn[1][1],
        unicodedata.normalize("NFD", drawn[2][1]),
        drawn[3][1].upper(),
    ]
    table = write_table(tmp_path / "rows.tsv", drawn)
    others = [(label, text) for (label, _), text in zip(drawn, marked, strict=False)]
    other = write_table(tmp_path / "other.tsv", [*others, ("neg", "had lfilm twil")])
    _, said = train("run", option, other, file=table)
    assert f"warning: 4 of 5 {option[2:]} texts are in train too" in said.err


@pytest.mark.parametrize(
    ("twin", "told"),
    [
        ("negatif", "in accents, marks, look-alike letters or ways to write a number alone: write"),
        ("ne\u0301gatif", "in Unicode form alone: add --fold-label-case"),
        ("Négatif", "in case or spelling alone: add --fold-label-case"),
    ],
)
def test_unknown_labels_that_differ_in_spelling_alone_are_told(train, call, tmp_path, twin, told):
    names = {"neg": "négatif", "pos": "positif"}
    table = [(names[label], text) for label, text in rows(40, 1)]
    others = [(names[label], text) for label, text in rows(60, 2)[40:]]
    twins = [(twin if label == "négatif" else label, text) for label, text in others]
    file = write_table(tmp_path / "rows.tsv", table)
    other = write_table(tmp_path / "other.tsv", twins)
    pair = f"; '{twin}' and 'négatif' differ {told}"
    for option in ("--dev", "--test"):
        _, said = train("run", option, other, "--force", file=file)
        assert f"training never sees: '{twin}'" in said.err and pair in said.err
    said = call("evaluate", tmp_path / "run", other)
    assert said.code == 0 and f"does not know: '{twin}' (10 rows)" in said.err and pair in said.err
    plain = write_table(tmp_path / "plain.tsv", [*others, ("autre", "had lfilm")])
    said = call("evaluate", tmp_path / "run", plain)
    assert said.code == 0 and "'autre' (1 row)" in said.err and "to differ" not in said.err


def test_a_test_file_whose_labels_are_all_unknown_is_refused_before_training(call, data, tmp_path):
    other = write_table(tmp_path / "other.tsv", [("zen", "had lfilm"), ("chwia", "kan zwin")])
    folder = tmp_path / "run"
    said = call("train", data.train, "--test", other, "--out", folder, *data.small)
    assert said.code == 1 and not folder.exists()
    assert (
        "found the labels 'chwia', 'zen', of which training sees none; expected some of" in said.err
    )


def test_test_labels_that_training_never_sees_count_as_wrong(train, data, tmp_path):
    table = [("neg", "khayb bzaf"), ("zen", "had lfilm"), ("zen", "kan zwin")]
    folder, said = train("run", "--test", write_table(tmp_path / "other.tsv", table))
    assert re.search(r"^warning: .*labels that training never sees: 'zen'", said.err, re.MULTILINE)
    scores = document(folder)["test"]
    assert scores["per_class"]["zen"] == {"precision": 0, "recall": 0, "f1": 0, "support": 2}
    assert scores["accuracy"] <= 1 / 3


def test_figures_that_cannot_be_drawn_are_left_out_with_a_line(train):
    folder, said = train("run")
    assert said.err.count("figures left out: drawing needs matplotlib 3.") == 1
    assert "or newer, which is not installed: pip install 'superconext[plots]'" in said.err
    assert not (folder / "figures").exists()


def test_texts_are_repeated_only_when_asked_and_never_break_the_table(train, data, tmp_path):
    odd = tmp_path / "odd.jsonl"
    texts = ["zwin\tbzaf", "khayb\nbzaf", "kan  bnin\u2028", "ghali"]
    labels = ["a\tb", "neg", "a\tb", "neg"]
    records = [{"text": t, "label": n} for t, n in zip(texts, labels, strict=True)] * 3
    odd.write_text("\n".join(json.dumps(r) for r in records), encoding="utf-8")
    folder, _ = train("run", "--dev", odd, "--keep-text", file=odd)
    lines = (folder / "predictions.tsv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 13 and all(line.count("\t") == 4 for line in lines)
    assert lines[1].split("\t")[1] == "a b"
    assert [x.split("\t")[4] for x in lines[1:4]] == ["zwin bzaf", "khayb bzaf", "kan  bnin "]


# Parameters


def test_an_option_wins_over_the_toml_file(train, data, tmp_path):
    toml = tmp_path / "run.toml"
    toml.write_text("seed = 5\ndropout = 0\nepochs = 9\n", encoding="utf-8")
    folder, _ = train("run", "--config", toml, "--seed", 6)
    values = read_config(folder / "config.toml")
    assert (values["seed"], values["dropout"], values["epochs"]) == (6, 0.0, 2)
    assert document(folder, "manifest.json")["seed"] == 6


@pytest.mark.parametrize(
    "words",
    [
        ["--hiden-size", "8"],
        ["--epochs", "many"],
        ["--epochs", "0"],
        ["--temperature", "nan"],
        ["--objective", "superlos"],
        ["--threads", "0"],
        ["a second file"],
    ],
)
def test_wrong_usage_exits_with_2(call, data, tmp_path, words):
    said = call("train", data.train, "--out", tmp_path / "run", *words)
    assert said.code == 2 and said.out == "" and "usage: " in said.err
    assert not list(tmp_path.iterdir())


def test_what_is_missing_or_does_not_go_together_is_wrong_usage(call, data, tmp_path):
    for words in (
        ["train"],
        ["train", data.train],
        ["train", "--out", tmp_path / "run"],
        ["train", data.train, "--resume", tmp_path / "run"],
        ["train", "--resume", tmp_path / "run", "--epochs", "3"],
        ["train", "--resume", tmp_path / "run", "--force"],
        ["trian", data.train],
        [],
    ):
        said = call(*words)
        assert said.code == 2 and said.out == "", words


def test_an_objective_with_a_rule_of_its_own_shows_it(train, data):
    folder, said = train("run", "--objective", "cross_entropy", "--test", data.test)
    native = document(folder)["native"]
    assert set(native) == {"train", "dev", "test"}
    assert all(0 <= scores["accuracy"] <= 1 for scores in native.values())
    assert "objective's own rule" in said.out
    assert document(folder, "manifest.json")["objective"] == "cross_entropy"


def test_members_are_probed_side_by_side(train, finished):
    files = ("--dev", finished.data.dev, "--test", finished.data.test)
    folder, said = train("run", "--members", 2, *files)
    metrics = document(folder)
    assert metrics["collapse"]["dimensions"] == 32
    assert "member 2 of 2" in said.err
    lines = (folder / "history.csv").read_text(encoding="utf-8").splitlines()
    assert [line.split(",")[:2] for line in lines[1:]] == [
        ["1", "1"], ["1", "2"], ["2", "1"], ["2", "2"]
    ]  # fmt: skip


def test_vectors_are_trained_on_the_spot_and_cached(call, data, tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    more = tmp_path / "more.txt"
    more.write_text("wa3r bzaf had lfilm\n" * 20, encoding="utf-8")
    small = [word for word in data.small if word not in ("--vectors", str(data.vectors))]
    words = ["train", data.train, "--unlabelled", more, "--no-baselines", *small, "--out"]
    for name in ("first", "second"):
        said = call(*words, tmp_path / name)
        assert said.code == 0, said.err
    vectors = document(tmp_path / "first", "manifest.json")["vectors"]
    assert vectors["trained_on"] == "training text and more.txt"
    assert vectors["dimension"] == 8 and vectors["coverage"] == 1.0
    assert same_weights(tmp_path / "first", tmp_path / "second") == [True, True]
    assert len(list((tmp_path / "cache" / "vectors").iterdir())) == 1
    # The word is in the unlabelled text alone, and the run knows it all the same.
    words = document(tmp_path / "first", "vocabulary.json")
    assert "wa3r" in words["reserve"]["words"]


# The same again


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(finished, call, tmp_path):
    data = finished.data
    words = ["train", data.train, "--dev", data.dev, "--test", data.test, *data.small, "--out"]
    assert call(*words, tmp_path / "same").code == 0
    assert same_weights(finished.folder, tmp_path / "same") == [True, True]
    assert timeless(document(finished.folder)) == timeless(document(tmp_path / "same"))
    for name in ("predictions.tsv", "vocabulary.json", "vectors.safetensors"):
        assert (finished.folder / name).read_bytes() == (tmp_path / "same" / name).read_bytes()
    assert call(*words, tmp_path / "other", "--seed", 1, "--no-baselines").code == 0
    assert same_weights(finished.folder, tmp_path / "other") == [False, False]


def test_evaluating_the_run_gives_the_figures_it_reports(finished, call):
    metrics = document(finished.folder)
    for split in ("train", "dev", "test"):
        said = call("evaluate", finished.folder, getattr(finished.data, split), "--json")
        evaluated = json.loads(said.out)
        overlap = evaluated.pop("overlap")
        assert evaluated == metrics[split]
        assert split != "train" or overlap["train"] == metrics[split]["n"]


@pytest.mark.parametrize(
    "words", [["--min-count", 5], ["--members", 2], ["--max-length", 2], ["--threads", 2]]
)
def test_evaluating_gives_the_reported_figures_under_any_setting(train, call, data, words):
    folder, _ = train("run", "--dev", data.dev, "--test", data.test, *words)
    metrics = document(folder)
    for split in ("train", "test"):
        said = call("evaluate", folder, getattr(data, split), "--json")
        # Texts alike are encoded once there: other sums in the last bits, with older torches.
        evaluated = json.loads(said.out)
        assert evaluated.pop("overlap").keys() == {"train", "dev", "without"}
        assert_nearly(evaluated, metrics[split])


# What stands in the way


def test_an_earlier_run_is_replaced_only_with_force(train, call, data, tmp_path):
    folder, _ = train("run", "--seed", 1)
    kept = sha256(folder / "encoder.safetensors")
    said = call("train", data.train, "--out", folder, *data.small)
    assert said.code == 1 and "--force" in said.err
    assert sha256(folder / "encoder.safetensors") == kept
    beside = tmp_path / "run.old"
    beside.mkdir()
    (beside / "mine").touch()
    train("run", "--force", "--seed", 2)
    assert document(folder, "manifest.json")["seed"] == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "run.old"]
    assert (beside / "mine").exists()


def test_force_replaces_an_empty_folder_and_what_a_link_leads_to_but_nothing_else(
    train, call, data, tmp_path
):
    (tmp_path / "empty").mkdir()
    train("empty", "--force")
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    train("link", "--force", "--seed", 3)
    assert (tmp_path / "link").is_symlink()
    assert document(tmp_path / "empty", "manifest.json")["seed"] == 3
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").write_text("years of work")
    for out in (tmp_path / "thesis", tmp_path / "thesis" / "chapter", "."):
        said = call("train", data.train, "--out", out, "--force", *data.small)
        assert said.code == 1 and said.err.startswith("error: ")
    assert (tmp_path / "thesis" / "chapter").read_text() == "years of work"


def test_a_folder_that_only_looks_like_an_unfinished_run_is_left_alone(call, data, tmp_path):
    (tmp_path / "run.partial").mkdir()
    (tmp_path / "run.partial" / "mine").touch()
    said = call("train", data.train, "--out", tmp_path / "run", *data.small)
    assert said.code == 1 and "run.partial" in said.err
    assert (tmp_path / "run.partial" / "mine").exists() and not (tmp_path / "run").exists()


def test_missing_folders_above_the_run_are_made(train, tmp_path):
    folder, _ = train("a/b/run")
    assert list((tmp_path / "a" / "b").iterdir()) == [folder]


# Help


def test_help_and_version_import_nothing_heavy():
    code = (
        "import sys\n"
        "from superconext.cli import main\n"
        "for words in (['--help'], ['train', '--help-all'], ['predict', '-h'], ['--version']):\n"
        "    main(words)\n"
        f"print('loaded:', [name for name in {HEAVY} if name in sys.modules])\n"
    )
    said = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        encoding="utf-8",
        env=environment(),
        check=True,
    )
    assert said.stdout.rstrip().endswith(f"{__version__}\nloaded: []")
    for parameter in PARAMETERS:
        assert f"--{parameter.name.replace('_', '-')}" in said.stdout


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["--pretrain"], 1, "no unlabelled text"),
        (["--options", "margin=2"], 2, "the objective superloss has no option 'margin'"),
        (["--objective", "dualcl", "--options", "ensemble=some"], 2, "ensemble"),
        (["--options", "margin"], 2, "found 'margin', expected name=value"),
        (["--options", "n_positives=x"], 2, "expected a whole number"),
        (["--unlabelled", "t\udce3.txt"], 2, "expected a name in UTF-8"),
    ],
)
def test_what_cannot_be_is_refused_before_baselines_are_fitted(
    words, code, told, call, data, tmp_path, monkeypatch
):
    def fitted(*args):
        raise AssertionError("baselines were fitted first")

    monkeypatch.setattr("superconext.baselines.baseline.baseline_report", fitted)
    said = call("train", data.train, "--out", tmp_path / "run", *data.small, *words)
    assert said.code == code and told in said.err and "Traceback" not in said.err
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("temprature=3", "did you mean the parameter temperature (--temperature)?"),
        ("batch_size=3", "did you mean the parameter batch_size (--batch-size)?"),
        ("mning=topk", "did you mean 'mining'?"),
        ("zzz=1", "known: "),
    ],
)
def test_an_option_that_the_objective_lacks_is_wrong_usage(words, told, call, data, tmp_path):
    given = ("train", data.train, "--out", tmp_path / "run", *data.small)
    said = call(*given, "--options", words)
    line = " ".join(said.err.splitlines()[-1:])
    assert said.code == 2 and line.startswith("error: Invalid value for '--options': options: the ")
    assert f"the objective superloss has no option {words.split('=')[0]!r}; {told}" in line
    assert "Traceback" not in said.err
    several = ("--objectives", "superloss,triplet", "--seeds", 1, *given[2:])
    said = call("compare", data.train, *several, "--options", words)
    assert said.code == 2 and told in said.err and "superloss: options: the obj" in said.err
    file = tmp_path / "given.toml"
    file.write_text(f'options = "{words}"\n', encoding="utf-8")
    said = call(*given, "--config", file)
    assert said.code == 1 and told in said.err  # the file is at fault
    labels, texts = zip(*rows(24, seed=3), strict=True)
    with pytest.raises(ConfigError, match="the objective superloss has no option"):
        SuperConTextClassifier(options=words).fit(texts, labels)


def test_after_the_epochs_it_says_whose_weights_the_model_has(call, data, tmp_path):
    words = ("train", data.train, "--dev", data.dev, *data.small, "--no-baselines")
    told = "the model has the mean weights of the last 2 epochs"
    assert told in call(*words, "--epochs", 5, "--out", tmp_path / "mean").err
    assert "mean weights" not in call(*words, "--keep", "last", "--out", tmp_path / "last").err


@pytest.fixture
def tiny_classes(tmp_path):
    """Ten rows of each of five classes; two, which are never held out, of each of four others."""
    table = [
        (f"c{label}", f"zz{chr(97 + label)} {chr(97 + row) * 3} bzaf {chr(97 + label + row) * 2}")
        for label in range(9)
        for row in range(10 if label < 5 else 2)
    ]
    return write_table(tmp_path / "classes.tsv", table)


def test_classes_that_no_dev_row_has_are_told_and_get_no_score(call, data, tiny_classes, tmp_path):
    run = tmp_path / "run"
    quick = ("--preset", "fast", "--vectors", data.vectors, *data.small, "--no-baselines")
    said = call("train", tiny_classes, "--cv", 0, *quick, "--out", run)
    assert said.code == 0, said.err
    (line,) = (line for line in said.err.splitlines() if "no dev row" in line)
    assert line.startswith(
        "warning: 4 of 9 classes have no dev row, so their accuracy is unknown: "
        "'c5', 'c6', 'c7' and 1 more; macro F1 is of the "
    )
    assert "| c5 | - | - | - | 0 |" in (run / "README.md").read_text(encoding="utf-8")
    page = (run / "report.html").read_text(encoding="utf-8")
    (row,) = (
        line for line in page.splitlines() if ">c5<" in line and line.endswith(">0</td></tr>")
    )
    assert row.count(">–<") == 3
    # Of a file of fewer classes it is no alarm.
    few = write_table(tmp_path / "few.tsv", [("c0", "zza mmm bzaf nn"), ("c8", "zzi mmm bzaf nn")])
    said = call("evaluate", run, few)
    assert f"note: {few}: 7 of 9 classes have no row, so their accuracy is unknown: " in said.err
    assert "no row" not in call("evaluate", run, few, "--quiet").err
    assert "no row" not in call("evaluate", run, tiny_classes).err


def test_the_parameters_that_named_the_recipe_are_those_to_omit(call, data, tmp_path):
    given = ("--epochs", 1, "--hidden-size", 1, "--vector-method", "random", "--seed", 3)
    files = (data.train, "--test", data.test, "--out", tmp_path / "run")
    said = call("train", *files, *given, "--vector-dimension", 1, "--learning-rate", "1e-30")
    flags = "--epochs, --hidden-size, --learning-rate"
    assert f"omit {flags}, so that train compares recipes, or give more text" in said.err


def test_options_to_omit_are_named_as_they_were_given(call, data, tmp_path):
    given = ("--no-calibrate", "--epochs", 1, "--hidden-size", 1, "--vector-method", "random")
    files = (data.train, "--test", data.test, "--out", tmp_path / "run", "--no-freeze")
    said = call("train", *files, *given, "--vector-dimension", 1, "--learning-rate", "1e-30")
    flags = "--epochs, --no-freeze, --hidden-size and 1 more"
    assert f"recipes are not compared, because of {flags}" in said.err
    assert f"omit {flags}, so that train compares recipes" in said.err
