"""Rows of a related set train the encoder, and the probe is fitted without them."""

import json

import numpy as np
import pytest

from superconext import SuperConTextClassifier, load
from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError
from superconext.data.auxiliary import auxiliary_rows
from superconext.data.dataset import Dataset
from superconext.fitting.fit import fit_model
from superconext.fitting.preprocess import make_tokenizer
from superconext.probe.logistic_regression import fit_probe
from tests.cli.conftest import call_main

QUICK = {"epochs": 3, "batch_size": 16, "hidden_size": 8, "vector_dimension": 8}
TEXTS = [f"{word} {filler} w{n}" for n in "abcdefgh" for word, filler in
         (("mezyan", "bzaf"), ("zwin", "chi"), ("khayb", "bzaf"), ("3iyan", "chi"))]  # fmt: skip
LABELS = ["pos", "pos", "neg", "neg"] * 8
DEV = ["zwin walo", "khayb walo"], ["pos", "neg"]
OTHERS = [("pos", "bahi barcha"), ("neg", "khayeb barcha"), ("mixed", "nos nos"),
          ("pos", "zwin walo !!"), ("neg", "mouch behi"), ("pos", "test said this")]  # fmt: skip


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "tunisian.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in OTHERS), encoding="utf-8")
    return str(path)


def test_rows_of_other_labels_and_of_held_texts_are_left_out_and_counted(file):
    held = [*DEV[0], "test said this."]
    found = auxiliary_rows(file, make_tokenizer(resolve({}), TEXTS), ["neg", "pos"], held)
    assert found.labels == ["pos", "neg", "neg"]
    assert found.tokens == [["bahi", "barcha"], ["khayeb", "barcha"], ["mouch", "behi"]]
    assert {k: found.facts[k] for k in ("file", "rows", "other_label", "held")} == {
        "file": "tunisian.tsv", "rows": 3, "other_label": 1, "held": 2,
    }  # fmt: skip
    assert len(found.facts["sha256"]) == 64


def test_without_a_label_in_common_it_is_refused(file):
    with pytest.raises(
        ConfigError, match=r"labelled 'mixed', 'neg', 'pos' and none .* labelled 'angry', 'calm'"
    ):
        auxiliary_rows(file, make_tokenizer(resolve({}), TEXTS), ["angry", "calm"], [])


def test_where_all_rows_repeat_held_texts_this_is_the_cause_that_is_told(file):
    held = [text for _, text in OTHERS]
    told = r"found 5 rows of .* which all repeat a held-out text, and 1 of another label; exp"
    with pytest.raises(ConfigError, match=told):
        auxiliary_rows(file, make_tokenizer(resolve({}), TEXTS), ["neg", "pos"], held)


@pytest.mark.parametrize(
    ("classes", "how"),
    [(["negé", "pos"], "Unicode form"), (["Negé", "pos"], "case or sp"), (["nege", "pos"], "acc")],
)
def test_labels_that_differ_in_spelling_alone_are_told(tmp_path, classes, how):
    path = tmp_path / "x.tsv"
    table = [("nege\u0301" if label == "neg" else label, text) for label, text in OTHERS]
    path.write_text("".join(f"{a}\t{b}\n" for a, b in table), encoding="utf-8")
    told = f"; 'nege\u0301' and '{classes[0]}' differ in {how}"
    tokenizer = make_tokenizer(resolve({}), TEXTS)
    said = auxiliary_rows(str(path), tokenizer, classes, []).summary
    assert "left out 3 of another label" in said and told in said
    assert "write them alike" in said and "--fold" not in said
    with pytest.raises(ConfigError) as refused:
        auxiliary_rows(str(path), tokenizer, [classes[0], "autre"], [])
    assert told in str(refused.value)


def test_the_encoder_is_that_of_all_rows_and_the_probe_that_of_the_own(file):
    config = resolve({**QUICK, "related": file})
    fitted = fit_model(
        Dataset(TEXTS, LABELS), config, Dataset(*DEV), test_texts=["test said this."]
    )
    kept = [("pos", "bahi barcha"), ("neg", "khayeb barcha"), ("neg", "mouch behi")]
    whole = fit_model(
        Dataset([*TEXTS, *(text for _, text in kept)], [*LABELS, *(label for label, _ in kept)]),
        resolve(QUICK),
        Dataset(*DEV),
        test_texts=["test said this."],
    )
    model = fitted.model
    assert np.array_equal(model.features(TEXTS), whole.model.features(TEXTS))
    assert fitted.features.shape == (len(TEXTS), 16)
    truth = np.array([model.classes.index(label) for label in LABELS])
    own = fit_probe(model.features(TEXTS), truth, grid=(model.probe.c,))
    assert np.allclose(model.probe.coef, own.coef, atol=1e-6)
    assert not np.allclose(model.probe.coef, whole.model.probe.coef, atol=1e-4)
    assert fitted.facts["related"]["rows"] == 3


@pytest.mark.parametrize(
    "more",
    [
        {"probe_features": "encoder+tfidf"},
        {"members": 2},
        {"logit_adjustment": 0.5, "probe_features": "encoder+tfidf"},
        {"keep": "best"},
    ],
    ids=str,
)
def test_it_goes_with_whatever_else_the_probe_does(more, file, tmp_path):
    model = SuperConTextClassifier(**QUICK, **more, related=file).fit(TEXTS, LABELS)
    model.save(tmp_path / "run")
    again = load(tmp_path / "run")
    assert np.allclose(again.predict_proba(TEXTS), model.predict_proba(TEXTS), atol=1e-6)


def test_epochs_are_decided_by_all_rows(file, monkeypatch):
    monkeypatch.setattr("superconext.training.trainer.ROWS_READ", 35 * 8)
    quick = {name: value for name, value in QUICK.items() if name != "epochs"}
    model = fit_model(
        Dataset(TEXTS, LABELS), resolve({**quick, "related": file}), Dataset(*DEV)
    ).model
    assert model.config.epochs == 7  # 36 rows: with "test said this", that nobody sets aside


def test_the_run_says_so(file, tmp_path):
    from superconext.cli import main

    train = tmp_path / "train.tsv"
    rows = zip(LABELS, TEXTS, strict=True)
    train.write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    words = ["train", str(train), "--related", file, "--out", str(tmp_path / "run"), "--quiet"]
    words += [w for k, v in QUICK.items() for w in (f"--{k.replace('_', '-')}", str(v))]
    main(words)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["related"]["rows"] == 5 and manifest["related"]["other_label"] == 1
    said = call_main("evaluate", tmp_path / "run", file)
    assert "5 of" in said.err and "texts are among the rows of the run (5 train)" in said.err
    card = (tmp_path / "run" / "README.md").read_text(encoding="utf-8")
    assert "also learnt from 5 labelled rows of tunisian.tsv" in card
