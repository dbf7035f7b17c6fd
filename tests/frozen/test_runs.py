"""Every run folder ever written opens and says what it said: one of each format and kind.

The folders were written by the code of their day, and what they say by that of one commit
(`make.py`). Nothing is imported here but `superconext.load` and the command line.
"""

import csv
import hashlib
import io
import json
import shutil

import numpy as np
import pytest

import superconext
from tests.frozen.cases import DATA, PRETRAINED, RUNS, SENTENCES, WORDED, answers, call, labelled

NAMES = sorted(path.name for path in RUNS.iterdir() if path.is_dir())
FORMATS = {
    "format-1-first": 1,
    "format-1-buckets": 1,
    "format-2": 2,
    "format-3-tfidf": 3,
    "format-4-ngrams": 4,
}

#: Settings of runs whose parameter may be gone; what it did is in the weights.
KEPT = {
    "finetune-frozen": ("finetune_frozen = true", "finetune_epochs = 2"),
    "second-objective": ('second_objective = "lacon"', "second_batch_size = 9", "members = 2"),
    "unfrozen": ("unfreeze_epoch = 3", "vector_scale = 2.0"),
}

every_run = pytest.mark.parametrize("name", NAMES)


def frozen(name):
    return json.loads((RUNS / f"{name}.json").read_text(encoding="utf-8"))


def probabilities(rows):
    return [list(row["probabilities"].values()) for row in rows]


def test_a_run_of_before_keep_had_three_values_loads(tmp_path):
    """Its configuration has `keep_best` where later ones have `keep`, and lacks what came later."""
    run = tmp_path / "run"
    shutil.copytree(RUNS / "format-1-first", run)
    config = run / "config.toml"
    lines = config.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if not line.startswith(("keep =", "max_length ="))]
    config.write_text("\n".join([*kept, "keep_best = true", "read_limit = 45000", ""]), "utf-8")
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    manifest["files"]["config.toml"] = hashlib.sha256(config.read_bytes()).hexdigest()
    (run / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    expected = answers(RUNS / "format-1-first")
    np.testing.assert_allclose(
        answers(run)["probabilities"], expected["probabilities"], rtol=0, atol=1e-6
    )


def test_no_folder_is_missing():
    assert len(NAMES) == 18
    assert sorted(path.stem for path in RUNS.glob("*.json")) == NAMES


@every_run
def test_answers_of_load_and_evaluate(name):
    expected, found = frozen(name), answers(RUNS / name)
    assert found["classes"] == expected["classes"]
    # Earlier versions gave a blank text a class too, and as probable as any.
    for key, tolerance in (("probabilities", 1e-5), ("lengths", 1e-4), ("decision", 1e-3)):
        pair = [np.array(of[key])[WORDED] for of in (found, expected)]
        np.testing.assert_allclose(*pair, rtol=0, atol=tolerance, err_msg=key)
    for k, text in enumerate(SENTENCES):
        if text.strip():
            assert found["predicted"][k] == expected["predicted"][k]
        else:
            assert found["predicted"][k] in ("", found["classes"][0])
            assert len({*found["probabilities"][k]}) == 1
    for key, value in expected["evaluate"].items():
        assert found["evaluate"][key] == (
            value if isinstance(value, str) else pytest.approx(value, abs=1e-5)
        ), key


@every_run
def test_predict_as_json(name, tmp_path):
    expected = frozen(name)
    asked = WORDED
    file = tmp_path / "texts.txt"
    file.write_text("".join(SENTENCES[k] + "\n" for k in asked), encoding="utf-8")
    rows = json.loads(call("predict", RUNS / name, file, "--json", "--proba"))
    assert [row["text"] for row in rows] == [SENTENCES[k] for k in asked]
    assert [row["label"] for row in rows] == [str(expected["predicted"][k]) for k in asked]
    assert list(rows[0]["probabilities"]) == [str(label) for label in expected["classes"]]
    wanted = [expected["probabilities"][k] for k in asked]
    np.testing.assert_allclose(probabilities(rows), wanted, rtol=0, atol=1e-5)


@every_run
def test_predictions_as_a_table(name):
    expected = frozen(name)
    classes = [str(label) for label in expected["classes"]]
    file = labelled(np.array(expected["classes"]))
    printed = call("predict", RUNS / name, file, "--proba")
    head, *lines = csv.reader(io.StringIO(printed), delimiter="\t", quoting=csv.QUOTE_NONE)
    assert head == ["label", *classes, "text"]
    truth = [line.split("\t")[0] for line in file.read_text(encoding="utf-8").splitlines()]
    right = np.mean([line[0] == label for line, label in zip(lines, truth, strict=True)])
    assert right == pytest.approx(expected["evaluate"]["accuracy"], abs=1e-6)


@every_run
def test_manifest_lists_the_files_as_they_are(name):
    manifest = json.loads((RUNS / name / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["format"] == FORMATS.get(name, manifest["format"]) <= 4
    assert manifest["status"] == "complete"
    for file, listed in manifest["files"].items():
        assert hashlib.sha256((RUNS / name / file).read_bytes()).hexdigest() == listed, file


@pytest.mark.parametrize("name", KEPT)
def test_folders_hold_settings_that_may_be_gone(name):
    lines = (RUNS / name / "config.toml").read_text(encoding="utf-8").splitlines()
    assert set(lines) >= set(KEPT[name])


@every_run
def test_saved_again_it_says_the_same(name, tmp_path):
    """Whatever format it had: what is loaded can be written by today's code and read again."""
    expected = frozen(name)
    superconext.load(RUNS / name).save(tmp_path / "again")
    again = superconext.load(tmp_path / "again")
    assert again.classes_.tolist() == expected["classes"]
    assert again.classes_.dtype == superconext.load(RUNS / name).classes_.dtype
    found, wanted = again.predict_proba(SENTENCES), np.array(expected["probabilities"])
    np.testing.assert_allclose(found[WORDED], wanted[WORDED], rtol=0, atol=1e-5)


@every_run
def test_damage_is_noticed(name, tmp_path):
    shutil.copytree(RUNS / name, tmp_path / "run")
    with (tmp_path / "run" / "encoder.safetensors").open("r+b") as stream:
        stream.seek(-1, io.SEEK_END)
        last = stream.read(1)
        stream.seek(-1, io.SEEK_END)
        stream.write(bytes([last[0] ^ 1]))
    with pytest.raises(Exception, match=r"encoder\.safetensors.*copy the run again"):
        superconext.load(tmp_path / "run")


def test_pretrained_encoder_is_as_it_was_written():
    facts = json.loads((PRETRAINED / "encoder.json").read_text(encoding="utf-8"))
    assert (facts["format"], facts["version"]) == ("superconext-encoder", 1)
    assert (facts["hidden_size"], facts["dimension"]) == (6, 4)
    weights = (PRETRAINED / "encoder.safetensors").read_bytes()
    assert hashlib.sha256(weights).hexdigest() == facts["sha256"]


def test_word_vectors_of_the_pretrained_encoder():
    """`init` reads them; so does every command that takes word vectors."""
    told = json.loads(call("vectors", "info", PRETRAINED, "--on", DATA / "rows.tsv", "--json"))
    assert told["words"] == json.loads((PRETRAINED / "info.json").read_text("utf-8"))["words"]
