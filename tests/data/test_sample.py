"""The shipped sample: made anew it is the same, and it is what its README says."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from superconext.data.dataset import check_training
from superconext.data.duplicates import deduplicate, leaks
from superconext.data.reading import read_labelled

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "data" / "sample"
SPLITS = ("train", "dev", "test")


@pytest.fixture(scope="module")
def corpora():
    return {split: read_labelled(SAMPLE / f"{split}.tsv") for split in SPLITS}


def test_generator_writes_the_shipped_bytes(tmp_path):
    script = ROOT / "scripts" / "make_sample.py"
    subprocess.run([sys.executable, "-B", script, tmp_path / "made"], check=True)
    names = sorted([*(f"{split}.tsv" for split in SPLITS), "few.tsv", "unlabelled.txt"])
    assert sorted(p.name for p in (tmp_path / "made").iterdir()) == names
    for name in names:
        assert (tmp_path / "made" / name).read_bytes() == (SAMPLE / name).read_bytes(), name


def test_unlabelled_texts_stand_in_no_labelled_file(corpora):
    texts = (SAMPLE / "unlabelled.txt").read_text(encoding="utf-8").splitlines()
    assert len(texts) == len(set(texts)) == 4000
    for corpus in corpora.values():
        assert not set(texts) & set(corpus.texts)


def test_sizes_and_classes(corpora):
    assert {split: len(corpus) for split, corpus in corpora.items()} == {
        "train": 420,
        "dev": 90,
        "test": 120,
    }
    for corpus in corpora.values():
        check_training(corpus)
        counts = corpus.class_counts()
        assert list(counts) == ["negative", "neutral", "positive"]
        assert max(counts.values()) < 0.45 * len(corpus)
        assert corpus.notes == ["no header found: column 1 read as label, column 2 as text"]


def test_few_are_the_first_rows_of_each_class(corpora):
    few, train = read_labelled(SAMPLE / "few.tsv"), corpora["train"]
    assert few.class_counts() == {"negative": 30, "neutral": 30, "positive": 30}
    for label in few.class_counts():
        of_train, of_few = (
            [text for text, own in zip(one.texts, one.labels, strict=True) if own == label]
            for one in (train, few)
        )
        assert of_few == of_train[:30]


def test_no_copies_and_no_leaks(corpora):
    everything = [text for corpus in corpora.values() for text in corpus.texts]
    assert len(deduplicate(everything)) == len(everything) == 630
    for other in ("dev", "test"):
        assert not len(leaks(corpora["train"].texts, corpora[other].texts))


def test_both_scripts_and_short_reviews(corpora):
    for corpus in corpora.values():
        arabic = sum(bool(re.search(r"[\u0600-\u06ff]", text)) for text in corpus.texts)
        assert 0.4 < arabic / len(corpus) < 0.75
        assert all(1 < len(text.split()) < 16 for text in corpus.texts)
        assert all(text == " ".join(text.split()) for text in corpus.texts)


def test_it_is_neither_trivial_nor_hopeless(corpora):
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression

    vectorizer = TfidfVectorizer(analyzer="char", ngram_range=(2, 5), sublinear_tf=True)
    train, test = corpora["train"], corpora["test"]
    features = vectorizer.fit_transform(train.texts)
    model = LogisticRegression(C=10, max_iter=2000).fit(features, train.labels)
    accuracy = model.score(vectorizer.transform(test.texts), test.labels)
    assert 0.75 < accuracy < 0.95


def test_importing_the_generator_writes_nothing(monkeypatch):
    before = {path: path.stat().st_mtime_ns for path in SAMPLE.iterdir()}
    monkeypatch.syspath_prepend(ROOT / "scripts")
    module = runpy.run_path(str(ROOT / "scripts" / "make_sample.py"))
    files = {*(f"{split}.tsv" for split in SPLITS), "few.tsv", "unlabelled.txt"}
    assert set(module["build"]()) == files
    assert before == {path: path.stat().st_mtime_ns for path in SAMPLE.iterdir()}


@pytest.mark.parametrize("given", [["--user"], ["--target", "there"]])
def test_it_is_found_wherever_pip_puts_it(given, tmp_path):
    """Of a wheel whose files are copied as pip copies them with these options."""
    home = tmp_path / "there"
    root = tmp_path / "user" if given == ["--user"] else home
    for name in ("core", "data"):
        shutil.copytree(ROOT / "superconext" / name, home / "superconext" / name)
    for name in ("__init__.py", "_version.py"):
        shutil.copy(ROOT / "superconext" / name, home / "superconext")
    shutil.copytree(SAMPLE, root / "share" / "superconext" / "sample")
    program = (
        "from pathlib import Path; from superconext.data.sample import write_sample; "
        "print(write_sample(Path('copied'))[0])"
    )
    known = {**os.environ, "PYTHONPATH": str(home), "PYTHONUSERBASE": str(tmp_path / "user")}
    words = [sys.executable, "-c", program]
    said = subprocess.run(words, env=known, cwd=tmp_path, capture_output=True, text=True)
    assert said.stdout.split() == [str(Path("copied", "train.tsv"))], said.stderr
