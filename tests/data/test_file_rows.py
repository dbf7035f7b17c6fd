"""Rows tokenised in a stream are the rows that memory would hold, however they were read."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import zlib

import numpy as np
import pytest

from superconext.core.errors import DataError
from superconext.core.files import file_sha256
from superconext.data import reading, token_store
from superconext.data.duplicates import keys_of, told_conflicting
from superconext.data.file_rows import FileRows, TrainingRows, tokenised_rows
from superconext.data.reading import RowStream, read_labelled
from superconext.data.token_store import build_store
from superconext.text.normalize import Normalizer
from superconext.text.tokenize import Tokenizer, Vocabulary

TOKENIZER = Tokenizer(Normalizer("arabic"))
WORDS = ["khoya", "zwin", "bzaf", "3la", "رائع", "فيلم", "<unk>", "walo", "!", "محترم"]


def rows_of(count, seed=0):
    """(labels, texts); some texts come twice."""
    generator = np.random.default_rng(seed)
    texts = [" ".join(generator.choice(WORDS, generator.integers(1, 12))) for _ in range(count)]
    texts[3:5] = ["zwin bzaf"] * 2
    return [("neg", "pos", "neutre")[i % 3] for i in range(count)], texts


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "rows.tsv"
    labels, texts = rows_of(200)
    lines = [f"{label}\t{text}" for label, text in zip(labels, texts, strict=True)]
    path.write_text("label\ttext\n" + "\n".join(lines) + "\n\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """So that a small file has many blocks and chunks."""
    monkeypatch.setattr(reading, "BLOCK", 300)
    monkeypatch.setattr(token_store, "CHUNK", 64)


def tokenised(path, home, jobs=1, columns=(None, None), tokenizer=TOKENIZER, **settings):
    return tokenised_rows(path, file_sha256(path), tokenizer, columns, home, jobs=jobs, **settings)


def whole(rows, kept=None):
    kept = np.arange(len(rows)) if kept is None else kept
    return TrainingRows(rows, kept, np.arange(2))


WRITERS = {
    "rows.tsv": lambda rows: "label\ttext\n" + "".join(f"{a}\t{b}\n" for a, b in rows),
    "bare.tsv": lambda rows: "".join(f"{a}\t{b}\n" for a, b in rows),
    "rows.csv": lambda rows: "text,label\n" + "".join(f'"{b}\n,",{a} \n' for a, b in rows),
    "rows.jsonl": lambda rows: "\n\n".join(json.dumps({"text": b, "label": a}) for a, b in rows),
    "rows.txt": lambda rows: "".join(f"__label__{a} {b}\n" for a, b in rows),
}


@pytest.mark.parametrize("jobs", [1, 2])
def test_copies_are_told_by_the_usual_rules_whatever_the_run_goes_by(tmp_path, jobs):
    """As in memory: letter case makes no other text, also where training reads it."""
    path = tmp_path / "rows.tsv"
    texts = [f"{word} {number} zwin" for number, word in enumerate(["khoya", "bzaf", "3la"] * 20)]
    rows = [f"{'ab'[k % 2]}\t{text}" for k, text in enumerate(texts)]
    rows += [row[:2] + row[2:].upper() for row in rows]
    path.write_text("label\ttext\n" + "\n".join(rows) + "\n", encoding="utf-8")
    plain, usual = Tokenizer(Normalizer("none")), Tokenizer(Normalizer("latin"))
    found = tokenised(path, tmp_path / "one", jobs, tokenizer=plain, keys=usual)
    kept, held = found.hold_back(0.2, 0)
    assert len(held) and {*(kept % len(texts))}.isdisjoint(held % len(texts))
    training = TrainingRows(found, kept, np.arange(2))
    asked = [texts[k].title() for k in (int(kept[0] % len(texts)), int(held[0] % len(texts)))]
    assert training.has(asked) == 1
    assert found.tokenizer.to_dict() == plain.to_dict()
    others = tokenised(path, tmp_path / "one", tokenizer=plain)
    assert TrainingRows(others, kept, np.arange(2)).has(asked) == 0


@pytest.mark.parametrize("name", list(WRITERS))
@pytest.mark.parametrize("packed", [False, True])
def test_the_stream_gives_what_the_reader_of_whole_files_gives(name, packed, tmp_path):
    data = WRITERS[name](list(zip(*rows_of(200), strict=True))).encode()
    path = tmp_path / (name + ".gz" * packed)
    path.write_bytes(gzip.compress(data) if packed else data)
    stream = RowStream(path)
    blocks = list(stream.large_blocks())
    read = read_labelled(path)
    assert len(blocks) > 3
    assert [text for block in blocks for text in block.texts] == read.texts
    assert [label for block in blocks for label in block.labels] == read.labels
    assert [line for block in blocks for line in block.lines] == read.lines
    assert stream.notes == read.notes


def test_parquet_too(tmp_path):
    arrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    labels, texts = rows_of(50)
    path = tmp_path / "rows.parquet"
    parquet.write_table(arrow.table({"label": labels, "text": texts}), path)
    blocks = list(RowStream(path).large_blocks())
    assert [text for block in blocks for text in block.texts] == texts
    assert [label for block in blocks for label in block.labels] == labels


@pytest.mark.parametrize(
    ("line", "message"),
    [("\tsome text", "line 3: found an empty label"), ("pos\t ", "line 3: found an empty text")],
)
def test_a_bad_row_is_named(line, message, tmp_path):
    path = tmp_path / "rows.tsv"
    path.write_text(f"label\ttext\npos\ta\n{line}\n")
    with pytest.raises(DataError, match=message):
        list(RowStream(path).large_blocks())
    with pytest.raises(DataError):
        tokenised(path, tmp_path / "home")
    assert not list((tmp_path / "home" / "tokens").iterdir())


@pytest.mark.parametrize("min_count", [1, 40])
@pytest.mark.parametrize("max_length", [4, 100])
@pytest.mark.parametrize("drop", [1, 3])
def test_words_and_ids_are_those_of_memory(table, tmp_path, min_count, max_length, drop):
    read = read_labelled(table)
    rows = tokenised(table, tmp_path)
    kept = np.flatnonzero(np.arange(len(rows)) % 7 >= drop)
    tokens = [TOKENIZER(read.texts[i]) for i in kept]
    vocabulary = Vocabulary.build(tokens, min_count=min_count)
    store = build_store([vocabulary.encode(row) for row in tokens], max_length)

    training = whole(rows, kept)
    assert list(training) == tokens
    assert training.vocabulary(min_count).to_json() == vocabulary.to_json()
    filed = training.store(vocabulary, min_count, max_length)
    np.testing.assert_array_equal(filed.tokens, store.tokens)
    np.testing.assert_array_equal(filed.offsets, store.offsets)
    assert [rows.classes[k] for k in training.labels] == [read.labels[i] for i in kept]
    for some in (np.array([5, 0, 5]), np.arange(len(kept))[::-1]):  # runs and single rows
        for ours, theirs in zip(
            [*filed.take(some), *filed.pad(some)],
            [*store.take(some), *store.pad(some)],
            strict=True,
        ):
            np.testing.assert_array_equal(ours, theirs)


def test_a_text_of_no_token_reads_as_the_unknown_word(tmp_path):
    class Nothing(Tokenizer):
        def __call__(self, text):
            return [] if text == "zwin" else super().__call__(text)

    path = tmp_path / "rows.tsv"
    path.write_text("a\tzwin\na\tx y\nb\tzwin\nb\ty\n" * 5)
    rows = tokenised(path, tmp_path, tokenizer=Nothing(Normalizer("none")))
    tokens = [[], ["x", "y"], [], ["y"]] * 5
    vocabulary = Vocabulary.build(tokens)
    filed = whole(rows).store(vocabulary, 1, 9)
    expected = build_store([vocabulary.encode(row) for row in tokens], 9)
    np.testing.assert_array_equal(filed.tokens, expected.tokens)
    np.testing.assert_array_equal(filed.offsets, expected.offsets)


def files_in(rows):
    return {path.name: path.read_bytes() for path in rows.folder.iterdir() if path.is_file()}


def test_processes_change_nothing(table, tmp_path):
    alone = tokenised(table, tmp_path / "one", jobs=1)
    together = tokenised(table, tmp_path / "two", jobs=2)
    assert files_in(alone) == files_in(together)


def test_a_second_run_reads_nothing_and_another_file_or_setting_is_another_store(table, tmp_path):
    first = tokenised(table, tmp_path)
    made: list[int] = []
    again = tokenised(table, tmp_path, advance=made.append)
    assert (again.folder, made) == (first.folder, [])
    other = Tokenizer(Normalizer("none"))
    assert tokenised(table, tmp_path, tokenizer=other).folder != first.folder
    table.write_text(table.read_text(encoding="utf-8") + "pos\tzwin\n", encoding="utf-8")
    assert len(tokenised(table, tmp_path)) == len(first) + 1
    vocabulary = whole(first).vocabulary(1)
    store = whole(first).store(vocabulary, 1, 20)
    stamp = os.stat(first.folder / "tokens.bin").st_mtime_ns
    assert whole(first).store(vocabulary, 1, 20).offsets.tolist() == store.offsets.tolist()
    assert os.stat(first.folder / "tokens.bin").st_mtime_ns == stamp
    assert len(list(first.folder.glob("cut-*"))) == 1


@pytest.mark.parametrize("name", ["rows.json", "tokens.bin", "labels.npy"])
def test_a_damaged_store_is_made_again(table, tmp_path, name):
    first = tokenised(table, tmp_path)
    expected = files_in(first)
    (first.folder / name).write_bytes((first.folder / name).read_bytes()[:40])
    assert files_in(tokenised(table, tmp_path)) == expected
    assert [path.name for path in (tmp_path / "tokens").iterdir()] == [first.folder.name]


def altered(path):
    """Change a number of a file and leave its size alone."""
    content = bytearray(path.read_bytes())
    content[-4] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize("name", ["rows.json", "tokens.bin", "labels.npy", "texts.npy"])
def test_a_store_that_was_altered_is_made_again(table, tmp_path, name):
    first = tokenised(table, tmp_path)
    expected = files_in(first)
    path = first.folder / name
    if name == "rows.json":
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("neutre", "NEUTRE"), encoding="utf-8")
    else:
        altered(path)
    again = tokenised(table, tmp_path)
    assert files_in(again) == expected and again.classes == ["neg", "neutre", "pos"]


@pytest.mark.parametrize("name", ["ids.bin", "offsets.npy"])
def test_ids_that_were_altered_are_made_again(table, tmp_path, name):
    rows = tokenised(table, tmp_path)
    vocabulary = whole(rows).vocabulary(1)
    expected = whole(rows).store(vocabulary, 1, 20)
    tokens, offsets = expected.tokens.copy(), expected.offsets.copy()
    (path,) = rows.folder.rglob(f"cut-*/{name}")
    altered(path)
    again = whole(rows).store(vocabulary, 1, 20)
    np.testing.assert_array_equal(again.tokens, tokens)
    np.testing.assert_array_equal(again.offsets, offsets)


def test_copies_stay_on_one_side_and_classes_keep_their_share(table, tmp_path):
    rows = tokenised(table, tmp_path)
    texts = read_labelled(table).texts
    kept, held = rows.hold_back(0.2, seed=1)
    assert sorted([*kept, *held]) == list(range(len(rows)))
    assert not {texts[i] for i in kept} & {texts[i] for i in held}
    counts = np.bincount(rows.labels()[held])
    assert len(counts) == 3 and counts.min() > 5
    training = whole(rows, kept)
    assert training.has([texts[i] for i in held]) == 0
    marked = "\u200f" + texts[kept[1]].upper()
    assert training.has([texts[kept[0]], "never said", marked]) == 2
    np.testing.assert_array_equal(rows.hold_back(0.2, seed=1)[1], held)
    assert not np.array_equal(rows.hold_back(0.2, seed=2)[1], held)
    assert len(rows.hold_back(0.999, seed=0)[0]) >= 6  # every class keeps two texts


def test_spellings_of_a_text_stay_on_one_side_as_in_memory(tmp_path):
    names = ["@a film {} zwin", "@b Film {} ZWIN", "@c FILM {} zwin"]
    lines = [f"{'xy'[k % 2]}\t{name.format('abcdefgh'[k // 8] + 'ijklmnop'[k % 8] * 2)}"
             for name in names for k in range(60)]  # fmt: skip
    lines += [f"{'xy'[k % 2]}\t@user{k}" for k in range(6)]  # of no words: no copies
    table = tmp_path / "spelt.tsv"
    table.write_text("\n".join(["label\ttext", *lines]) + "\n", encoding="utf-8")
    texts = read_labelled(table).texts
    keys = keys_of(texts)
    assert len(set(keys)) == 66
    kept, held = tokenised(table, tmp_path).hold_back(0.3, seed=1)
    assert len(held) > 30
    assert not {keys[i] for i in kept} & {keys[i] for i in held}


@pytest.mark.parametrize("seed", range(6))
def test_texts_with_several_labels_are_told_as_in_memory(tmp_path, seed):
    draw = np.random.default_rng(seed)
    lines = [f"{'xyz'[draw.integers(3)]}\tfilm {'abcd'[draw.integers(4)] * 3}" for _ in range(9)]
    lines += [f"{'xyz'[k]}\tkalma {'klm'[k] * 3}" for k in range(3)]
    table = tmp_path / "rows.tsv"
    table.write_text("\n".join(["label\ttext", *lines]) + "\n", encoding="utf-8")
    read = read_labelled(table)
    told = told_conflicting(read.texts, read.labels, read.lines, "on lines")
    assert tokenised(table, tmp_path).told_conflicting() == told and "several labels" in told
    clean = tmp_path / "clean.tsv"
    clean.write_text("\n".join(["label\ttext", *lines[9:], lines[9]]) + "\n", encoding="utf-8")
    assert tokenised(clean, tmp_path).told_conflicting() == ""


def test_a_class_of_copies_with_another_label_is_never_held_back_whole(tmp_path):
    lines = [f"{'xy'[k % 2]}\tfilm {'abcdefgh'[k // 8] * 2}{'ijklmnop'[k % 8]}" for k in range(64)]
    table = tmp_path / "rows.tsv"
    rare = [f"rare\t{line.partition(chr(9))[2]}" for line in lines[3:5]]
    table.write_text("\n".join(["label\ttext", *lines, *rare]) + "\n", encoding="utf-8")
    rows = tokenised(table, tmp_path)
    for seed in range(40):
        kept, held = rows.hold_back(0.3, seed)
        counts = np.bincount(rows.labels()[kept], minlength=3)
        assert counts[rows.classes.index("rare")] == 2 and len(held) > 10


def test_many_small_classes_give_their_share_together(tmp_path):
    lines = [f"c{label}\tbzaf {'abcd'[row] * 3}{label}" for label in range(25) for row in range(4)]
    table = tmp_path / "small.tsv"
    table.write_text("\n".join(["label\ttext", *lines]) + "\n", encoding="utf-8")
    assert len(tokenised(table, tmp_path).hold_back(0.1, seed=0)[1]) == 10


def test_what_is_read_is_a_folder_of_plain_arrays(table, tmp_path):
    rows = FileRows(tokenised(table, tmp_path).folder)
    assert rows.classes == ["neg", "neutre", "pos"]
    assert (rows.lines() == np.arange(2, 202)).all()
    assert rows.counts.sum() == rows.offsets()[-1] == len(rows.tokens)


SCATTERED = """
import sys
from pathlib import Path
import numpy as np
from superconext.data.token_store import open_ids
store = open_ids(Path(sys.argv[1]))
def most():
    line = next(x for x in open("/proc/self/status") if x.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
before, rows = most(), np.arange(0, len(store), 2)
tokens, lengths = store.take(rows)
assert len(tokens) == lengths.sum() == 16 * len(rows)
assert store.checksum() == int(sys.argv[2])
print(most() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_rows_from_all_over_a_file_do_not_bring_it_into_memory(tmp_path):
    ids = np.zeros(1 << 26, dtype=np.int32)  # 256 MiB
    ids.tofile(tmp_path / "ids.bin")
    offsets = np.arange(0, len(ids), len(ids) // 8192)
    np.save(tmp_path / "offsets.npy", np.sort(np.concatenate([offsets, offsets + 16, [len(ids)]])))
    words = [sys.executable, "-c", SCATTERED, str(tmp_path), str(zlib.crc32(ids.data))]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 32


def test_a_file_that_became_shorter_is_told_of(table, tmp_path):
    rows = tokenised(table, tmp_path)
    store = whole(rows).store(whole(rows).vocabulary(1), 1, 20)
    last = np.array([len(store) - 1])
    kept = store.take(last)[0]
    with open(store.file.ids.filename, "r+b") as stream:
        stream.truncate(kept.nbytes)
    with pytest.raises(OSError, match="shorter than it was"):
        store.take(last)
