"""The rows that the probe after an epoch is fitted on: few, of every class, and the same ones."""

import numpy as np
import pytest

from superconext.config.parameters import resolve
from superconext.core.progress import Progress
from superconext.data.reading import RowStream, read_labelled
from superconext.data.token_store import build_store
from superconext.fitting.preprocess import MOST_MONITORED, Prepared, _beside, preprocess


def prepared(labels, sample=None):
    """Rows whose one token is their own number."""
    rest = dict.fromkeys(Prepared.__dataclass_fields__)
    store = build_store(([row] for row in range(len(labels))), 5)
    return Prepared(**rest | {"train": store, "labels": np.array(labels), "sample": sample})


@pytest.mark.parametrize("sizes", [(9000, 60, 1), (4000, 4000), (MOST_MONITORED, 1)])
def test_every_class_has_its_share_and_one_row_at_least(sizes):
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(sizes)), sizes))
    rows, found = prepared(labels).monitor_split
    counts = np.bincount(found, minlength=len(sizes))
    assert MOST_MONITORED / 2 <= len(found) <= MOST_MONITORED + len(sizes)
    for count, size in zip(counts, sizes, strict=True):
        assert count >= 1
        assert abs(count / len(found) - size / sum(sizes)) < 0.002
    numbers = [rows.take(np.array([row]))[0][0] for row in range(len(rows))]
    assert len(set(numbers)) == len(numbers)
    assert found.tolist() == labels[numbers].tolist()


def test_few_rows_are_all_taken():
    rows, labels = prepared([0, 1] * (MOST_MONITORED // 2)).monitor_split
    assert len(rows) == len(labels) == MOST_MONITORED


def test_of_a_file_larger_than_memory_it_takes_from_the_sample():
    sample = np.arange(1, 20_000, 2)
    rows, labels = prepared([0, 1, 1, 0] * 5000, sample).monitor_split
    numbers = [rows.take(np.array([row]))[0][0] for row in range(len(rows))]
    assert set(numbers) <= set(sample.tolist())
    assert set(labels.tolist()) == {0, 1}


@pytest.mark.parametrize("sample", [None, np.array([1, 4, 6, 9])])
def test_rows_left_out_are_counted_among_those_that_probes_are_fitted_on(sample):
    """The second and the fourth of them go; of what is left the others are where they were."""
    whole = prepared(list(range(10)), sample)
    some = whole.without(np.array([1, 3]))
    left = [1, 3] if sample is None else [4, 9]
    assert some.labels.tolist() == [row for row in range(10) if row not in left]
    tokens, lengths = some.train.take(np.arange(len(some.train)))
    assert tokens.tolist() == some.labels.tolist() and set(lengths.tolist()) == {1}
    judged = whole.probe_split[1].tolist()
    assert some.probe_split[1].tolist() == [row for row in judged if row not in left]


class Said(Progress):
    def __init__(self):
        self.lines = []

    def say(self, line):
        self.lines.append(line)


@pytest.mark.parametrize("brought", [False, True])
def test_rows_without_a_label_train_the_word_vectors(tmp_path, brought):
    """Those of a file that drops them, but for what a dev text says and for the header again."""
    labelled = [f"{'good' if n % 2 else 'bad'}\tfilm number{n % 3}" for n in range(12)]
    others = ["\tserie hahua walo", "nan\tserie walo hahua", "\tmatch ghrib bzaf!", "\ttext", "\t"]
    path = tmp_path / "train.tsv"
    path.write_text("\n".join(["label\ttext", *labelled, *others]) + "\n", encoding="utf-8")
    train = read_labelled(path, drop_unlabelled=True)
    assert len(train) == 12
    assert list(train.unlabelled) == ["serie hahua walo", "serie walo hahua", "match ghrib bzaf!"]
    (tmp_path / "dev.tsv").write_text("label\ttext\ngood\tmatch ghrib bzaf\n", encoding="utf-8")
    given = {"vector_dimension": 4, "min_count": 1}
    if brought:
        (tmp_path / "v.txt").write_text("film 1 2 3 4\n", encoding="utf-8")
        given = {"vectors": str(tmp_path / "v.txt")}
    said = Said()
    dev = read_labelled(tmp_path / "dev.tsv")
    found = preprocess(train, dev, ["bad", "good"], resolve({"preset": "fast", **given}), said)
    reserve = set(found.indexer.oov_vectors.words)
    if brought:
        assert not reserve and "without a label" not in "".join(said.lines)
    else:
        assert {"serie", "hahua", "walo"} <= reserve and not reserve & {"match", "ghrib"}
        assert "also learned from: the texts of 2 rows without a label (1 left out" in "".join(
            said.lines
        )
    assert len(found.train) == len(found.labels) == 12
    assert set(found.indexer.vocabulary.words) <= {"<pad>", "<unk>", "film"} | {
        f"number{n}" for n in range(3)
    }


def test_rows_without_a_label_are_learned_from_beside_much_text_and_by_no_transformer(tmp_path):
    """Much text is learned from without the labelled rows, see `text_to_clear`."""
    labelled = [f"{'good' if n % 2 else 'bad'}\tfilm number{n % 3}" for n in range(6)]
    path, text = tmp_path / "train.tsv", tmp_path / "text.txt"
    rows = ["label\ttext", *labelled, "\tserie hahua walo"]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    text.write_text("kolchi bzaf had lbelaka\n" * 200, encoding="utf-8")
    train = read_labelled(path, drop_unlabelled=True)
    given = {"preset": "fast", "vector_dimension": 4, "unlabelled": str(text)}
    said = Said()
    found = preprocess(train, None, ["bad", "good"], resolve(given), said)
    assert {"kolchi", "hahua"} <= set(found.indexer.oov_vectors.words)
    assert "the texts of 1 row without a label" in "".join(said.lines)
    config = resolve({"preset": "fast", "encoder": "transformer", "model": "some/model"})
    assert _beside(train, [], found.indexer.tokenizer, config) == ([], 0)


def test_a_stream_keeps_no_texts_without_a_label(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_text("label\ttext\ngood\tzwin\n\thahua\nbad\tkhayb\n", encoding="utf-8")
    stream = RowStream(path, drop_unlabelled=True)
    assert [text for block in stream for text in block.texts] == ["zwin", "khayb"]
    assert stream.unlabelled == []
