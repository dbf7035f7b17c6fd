"""`train` on a file that is read in a stream: the same run folder, out of a store on disk."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError, StoppedEarly
from superconext.core.progress import Progress
from superconext.data.dataset import Dataset
from superconext.data.labels import Annotated
from superconext.data.reading import read_labelled
from superconext.runs import splits, train
from superconext.runs.splits import Splits, TrainRequest, read_big, read_splits
from superconext.runs.train import resume_run, train_run

FAST = {
    "epochs": 1,
    "steps_per_epoch": 2,
    "batch_size": 16,
    "hidden_size": 8,
    "vector_dimension": 8,
    "vector_method": "random",
    "subwords": False,
    "baselines": False,
}
GOOD, BAD = ["zwin", "bzaf", "hayla", "top"], ["khayb", "3iyan", "walo", "machi"]


@pytest.fixture
def table(tmp_path):
    generator = np.random.default_rng(0)
    lines = ["label\ttext"]
    for row in range(300):
        words = generator.choice(GOOD if row % 2 else BAD, 5)
        lines.append(f"{'good' if row % 2 else 'bad'}\t{' '.join(words)} n{row}")
    path = tmp_path / "rows.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(splits, "SAMPLE_ROWS", 50)
    monkeypatch.setattr(splits, "MOST_HELD", 20)


class Said(Progress):
    def __init__(self):
        self.lines = []

    def say(self, text):
        self.lines.append(text)

    warn = say

    def note(self, text, source=""):
        self.lines.append(text)


def request_of(table, tmp_path, name="run", **settings):
    given = {**FAST, **settings.pop("given", {})}
    return TrainRequest(
        str(table), str(tmp_path / name), given=given, store=str(tmp_path / "store"), **settings
    )


def test_all_rows_train_and_a_sample_judges(table, tmp_path, small):
    said = Said()
    metrics = train_run(request_of(table, tmp_path), said)
    manifest = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))
    data = manifest["data"]
    assert (data["train"]["rows"], data["dev"]["rows"]) == (280, 20)
    assert data["train"]["classes"] == {"bad": 140, "good": 140}
    assert data["train"]["sha256"] == read_labelled(table).sha256
    assert metrics["reported_split"] == "dev" and 0 <= metrics["dev"]["accuracy"] <= 1
    assert any("all 280 rows train the encoder" in line for line in said.lines)
    # Dev rows carry the lines they stand on.
    lines = (tmp_path / "run" / "predictions.tsv").read_text(encoding="utf-8").splitlines()[1:]
    source = table.read_text(encoding="utf-8").splitlines()
    assert len(lines) == 20
    for line in lines:
        number, label = line.split("\t")[:2]
        assert source[int(number) - 1].startswith(label + "\t")


def test_the_vocabulary_is_that_of_the_training_rows(table, tmp_path, small):
    big, dev = read_big(str(table), (None, None), resolve(FAST), str(tmp_path), 0.1, Progress())
    assert dev is not None and len(big.texts) == len(big.labels) == 50
    own = {text.split()[-1] for text in dev.texts}
    words = set(big.on_disk.vocabulary(1).words)
    assert not own & words and len(words) == 2 + 8 + 280
    everything = read_labelled(table)
    by_text = dict(zip(everything.texts, everything.labels, strict=True))
    for corpus in (big, dev):
        assert [by_text[text] for text in corpus.texts] == corpus.labels


def test_with_all_rows_in_the_sample_the_model_is_that_of_memory(table, tmp_path):
    dev = tmp_path / "dev.tsv"
    dev.write_text("label\ttext\n" + "good\tzwin top\nbad\tkhayb walo\n" * 15, encoding="utf-8")
    streamed = request_of(table, tmp_path, "streamed", dev=str(dev))
    plain = TrainRequest(str(table), str(tmp_path / "plain"), dev=str(dev), given=FAST)
    for request in (streamed, plain):
        train_run(request, Progress())
    for name in ("encoder.safetensors", "probe.safetensors", "vocabulary.json", "predictions.tsv"):
        ours, theirs = ((tmp_path / run / name).read_bytes() for run in ("streamed", "plain"))
        assert ours == theirs, name


def test_a_run_that_was_stopped_goes_on(table, tmp_path, small):
    given = {"epochs": 2}
    train_run(request_of(table, tmp_path, "whole", given=given), Progress())

    class Stop(Progress):
        def say(self, text):
            if text.split()[:1] == ["2"]:  # the line of the second epoch
                raise KeyboardInterrupt

    with pytest.raises(StoppedEarly):
        train_run(request_of(table, tmp_path, "stopped", given=given), Stop())
    resume_run(tmp_path / "stopped", Progress())
    ours, theirs = (
        (tmp_path / run / "encoder.safetensors").read_bytes() for run in ("stopped", "whole")
    )
    assert ours == theirs


def test_size_decides_and_the_store_wins(table, monkeypatch):
    assert not splits.is_big(str(table), None)
    assert splits.is_big(str(table), "somewhere")
    assert not splits.is_big("-", "somewhere")
    monkeypatch.setattr(splits, "STREAMED_FROM", table.stat().st_size)
    assert splits.is_big(str(table), None)
    monkeypatch.setattr(splits, "STREAMED_FROM", table.stat().st_size + 1)
    assert not splits.is_big(str(table), None)
    packed = table.with_name("rows.tsv.gz")
    packed.write_bytes(gzip.compress(table.read_bytes()))
    for more, big in ((0, True), (1, False)):
        monkeypatch.setattr(splits, "STREAMED_FROM", 4 * packed.stat().st_size + more)
        assert splits.is_big(str(packed), None) is big


def test_a_sample_has_two_rows_of_every_class_and_then_the_first_of_the_draw():
    labels = np.array([0] * 50 + [1] * 4 + [2])
    order = np.random.default_rng(0).permutation(55)
    drawn = [[row for row in order if labels[row] == k][:2] for k in range(3)]
    ahead = [row for rows in drawn for row in rows]
    assert sorted(splits._every_class(labels, order, 3)) == sorted(ahead)
    rest = [row for row in order if row not in ahead]
    assert sorted(splits._every_class(labels, order, 12)) == sorted(ahead + rest[:7])


def test_the_sample_of_a_file_has_its_rare_classes(table, tmp_path, small):
    lines = table.read_text(encoding="utf-8").splitlines()
    lines[296:298] = ["mixed\tzwin walakin khayb", "mixed\tnoss noss"]
    table.write_text("\n".join(lines) + "\n", encoding="utf-8")
    big, _ = read_big(str(table), (None, None), resolve(FAST), str(tmp_path), 0.1, Progress())
    assert len(big.labels) == 50 and big.labels.count("mixed") == 2


def test_the_agreement_is_that_of_the_rows_that_are_reported_on():
    def corpus(name, *votes):
        annotated = Annotated(["x", "y"], list(map(list, votes)), ["1", "2"])
        return Dataset(["x", "y"], ["a", "b"], source=f"{name}.tsv", annotated=annotated)

    train, other = corpus("train", "aa", "ba"), corpus("other", "aa", "bb")
    for test, dev in ((other, None), (other, train), (None, other)):
        assert Splits(train, dev, test).agreement()["file"] == "other.tsv"
    assert Splits(train, None, Dataset(["x"], ["a"])).agreement()["file"] == "train.tsv"


def test_a_cross_validation_is_of_one_label_for_each_text(tmp_path):
    file, lines = tmp_path / "votes.csv", ["text,annotator_1,annotator_2,annotator_3"]
    lines += [f"zwin {n},{a},{a},{b}" for n in range(9) for a, b in ("xy", "yx", "xx", "yy")]
    lines = [lines[0], *(f"{k}{line}" for k, line in enumerate(lines[1:]))]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    request = TrainRequest(str(file), "run")
    for folds, soft in ((3, False), (0, True)):
        found = read_splits(request, resolve({**FAST, "cv": folds}), Said())
        assert found.folds == folds and bool(found.train.shares) is soft
        assert found.train.labels.count("x") == len(found.train) / 2


def test_folds_stand_beside_few_dev_rows_alone(table, monkeypatch):
    monkeypatch.setattr(splits, "DEV_ROWS_THAT_DECIDE", 12)
    train = read_labelled(table)
    request = TrainRequest(str(table), "run", dev="dev.tsv")
    for count, folds in ((11, splits.DEFAULT_FOLDS), (12, 0)):
        dev = train.select(np.arange(count))
        assert splits._dev_rows(request, resolve({"preset": "auto"}), train, dev) == (
            train,
            dev,
            folds,
            "",
        )


def test_rows_far_down_a_file_are_found_again(tmp_path, monkeypatch):
    monkeypatch.setattr("superconext.data.reading.BLOCK", 500)  # characters
    path = tmp_path / "many.tsv"
    lines = [f"{'ab'[row % 2]}\tword{row}" for row in range(1000)]
    path.write_text("\n".join(["label\ttext", *lines]) + "\n", encoding="utf-8")
    wanted = np.array([300, 301, 998, 999])
    found = splits._texts(str(path), (None, None), wanted, {})
    assert found == [f"word{row}" for row in wanted]


def test_test_texts_in_the_training_rows_are_told_of(table, tmp_path, small):
    test = tmp_path / "test.tsv"
    first = table.read_text(encoding="utf-8").splitlines()[1:300]
    test.write_text("label\ttext\n" + "\n".join(first) + "\n", encoding="utf-8")
    said = Said()
    request = request_of(table, tmp_path, test=str(test))
    splits = read_splits(request, resolve(request.given), said)
    copies = [line for line in said.lines if "are in train too" in line]
    assert set(splits.dev.texts) & {line.split("\t")[1] for line in first}
    assert len(copies) == 1 and copies[0].startswith("299 of 299")


def test_other_shares_of_the_classes_in_test_are_told_of(table, tmp_path):
    test = tmp_path / "test.tsv"
    rows = [f"{'good' if row % 4 == 0 else 'bad'}\tword{row}" for row in range(200)]
    test.write_text("label\ttext\n" + "\n".join(rows) + "\n", encoding="utf-8")
    for store in (None, str(tmp_path / "store")):  # in memory, and out of a file
        said = Said()
        read_splits(
            TrainRequest(str(table), "run", test=str(test), store=store), resolve(FAST), said
        )
        (line,) = (line for line in said.lines if "expect the shares of train" in line)
        assert "75% of the rows in test are 'bad', in train 50%: " in line
        assert f"(superconext data inspect {table} {test} shows all shares)" in line


def test_what_is_told_of_the_rows_in_memory_is_told_of_a_stream(table, tmp_path):
    with table.open("a", encoding="utf-8") as file:
        file.write("good\tkalma whda\nbad\tkalma whda\n\tbla label\n")
    told = []
    for store in (None, str(tmp_path / "store")):
        said = Said()
        reading = {"drop_unlabelled": True}
        request = TrainRequest(str(table), "run", store=store, reading=reading)
        read_splits(request, resolve(FAST), said)
        told.append([line for line in said.lines if "several labels" in line])
        streamed = [line for line in said.lines if "word vectors learn nothing from rows" in line]
        assert len(streamed) == (store is not None)
    assert told[0] == told[1] and "1 text has several labels, as on lines 302 and 303" in told[0][0]


@pytest.mark.parametrize("name", ["related", "soft_labels"])
def test_what_a_stream_cannot_do_is_refused_before_it_is_read(table, tmp_path, monkeypatch, name):
    monkeypatch.setattr(train, "read_splits", None)  # else a TypeError
    request = request_of(table, tmp_path, given={name: str(table)})
    with pytest.raises(ConfigError, match=f"{name} = .* read from the disk"):
        train_run(request, Progress())
    assert not (tmp_path / "run").exists() and not (tmp_path / "run.partial").exists()


def test_rows_that_cannot_be_trained_on_are_named(tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text("label\ttext\na\tx\n" + "".join(f"b\ty{i}\n" for i in range(20)))
    request = request_of(path, tmp_path)
    with pytest.warns(UserWarning, match=r"single row: 'a' \(line 2\)"):
        splits = read_splits(request, resolve(request.given), Progress())
    assert len(splits.dev) == 2 and splits.train.class_counts()["a"] == 1
    path.write_text("label\ttext\na\tx\na\ty\n")
    with pytest.raises(ValueError, match="one class only"):
        read_splits(request, resolve(request.given), Progress())


def test_labels_that_training_never_sees_are_named_and_the_others_counted(table, tmp_path):
    dev = tmp_path / "dev.tsv"
    lines = ["label\ttext", "good\tzwin top", *(f"x{k}\tbzaf n{k}" for k in range(7))]
    dev.write_text("\n".join(lines) + "\n", encoding="utf-8")
    said = Said()
    read_splits(TrainRequest(str(table), "run", dev=str(dev)), resolve(FAST), said)
    (line,) = (line for line in said.lines if "training never sees" in line)
    assert ": 'x0', 'x1', 'x2', 'x3', 'x4' and 2 more; " in line


def test_texts_that_differ_in_case_alone_are_not_parted(tmp_path):
    pairs = [(label, word * 3) for label in ("good", "bad") for word in "abcdefghijklmnopqrst"]
    lines = [f"{label}\t{label} {text}" for label, word in pairs for text in (word, word.upper())]
    file = tmp_path / "pairs.tsv"
    file.write_text("\n".join(["label\ttext", *lines]) + "\n", encoding="utf-8")
    found = read_splits(TrainRequest(str(file), "run"), resolve({**FAST, "cv": 0}), Said())
    assert found.dev is not None and len(found.dev) == 8
    assert found.train.repeats_of(found.dev.texts) == 0
