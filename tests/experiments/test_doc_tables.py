"""Tables of the docs that scripts generate: they are those of the stored results."""

import csv
import importlib
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from superconext.report.table import Grid

ROOT = Path(__file__).parents[2]
TABLES = {
    "bench_cold_start": "inference.md",
    "bench_inference": "inference.md",
    "bench_step": "performance.md",
    "default_sets": "results.md",
    "audit_precision": "labelling.md",
    "suggest_saving": "labelling.md",
    "text_growth": "pretrain.md",
}


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    yield importlib.import_module
    more = (
        "bench_output",
        "bootstrap_false_positives",
        "doc_tables",
        "indomain",
        "pretrain_part",
        "reproduce_results",
    )
    for name in (*TABLES, *more):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", TABLES)
def test_the_table_in_the_page_is_that_of_the_stored_results(name, script):
    module, tables = script(name), script("doc_tables")
    (stored,) = (ROOT / "scripts" / "results").glob(f"{name}.*")
    with stored.open(encoding="utf-8", newline="") as stream:
        read = json.load(stream) if stored.suffix == ".json" else list(csv.DictReader(stream))
    grid = module.grid(read)
    text = (ROOT / "docs" / TABLES[name]).read_text(encoding="utf-8")
    assert tables.with_table(text, module.NAME, grid) == text


@pytest.mark.parametrize("name", ["indomain", "pretrain_part"])
def test_the_sentence_in_the_page_is_that_of_the_stored_results(name, script):
    module, tables = script(name), script("doc_tables")
    text = (ROOT / "docs" / "pretrain.md").read_text(encoding="utf-8")
    assert module.sentence(tables.read_rows(module.STORED)) in " ".join(text.split())


def test_what_the_page_says_of_word_vectors_is_measured(script):
    rows = script("doc_tables").read_rows
    measured = ROOT / "scripts" / "results"
    rate = {
        row["trainer"]: float(row["per_processor_second"])
        for row in rows(measured / "bench_word_vectors.csv")
        if row["method"] == "fasttext" and row["threads"] == "1"
    }
    ours, gensim, fasttext = (rate[name] for name in ("superconext", "gensim 4.4", "fastText"))
    page = " ".join((ROOT / "docs" / "vectors.md").read_text(encoding="utf-8").split())
    said = f"{ours / gensim:.1f} times as many tokens a second as gensim's training and "
    assert f"{said}{ours / fasttext:.1f} times as many as fastText's" in page
    of_sets = [
        float(row["blocks"]) - float(row["gensim"])
        for row in rows(measured / "word_vector_sets.csv")
        if row["system"] == "vectors_logreg" and row["text"] == "8.8 million words"
    ]
    assert f"differs from gensim's by {np.mean(of_sets):+.1f} on average" in page


def test_a_fit_counts_once(script):
    """Of two lines of one fit the deviation would be 0."""
    rows = script("doc_tables").read_rows(ROOT / "scripts" / "results" / "transformer.csv")
    fits = [tuple(row[n] for n in ("rows", "set", "shots", "system", "seed")) for row in rows]
    assert len(fits) > 800 and len({*fits}) == len(fits)


def test_no_table_of_numbers_is_typed():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    typed = []
    for page in pages:
        text = page.read_text(encoding="utf-8")
        text = re.sub(r"<!-- (table|results) .*?<!-- end.*?-->", "", text, flags=re.DOTALL)
        for line in re.findall(r"^\|.*\|$", text, re.MULTILINE):
            cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
            if any(re.fullmatch(r"[-+]?\d[\d.,]*( ?[%/±x–].*)?", cell) for cell in cells):
                typed.append(f"{page.name}: {line}")
    assert not typed


def test_a_table_has_one_place(script):
    with_table = script("doc_tables").with_table
    page = "a\n<!-- table x -->\nold\n<!-- end x -->\nb"
    grid = Grid(["one"], [["\\1"]])
    changed = with_table(page, "x", grid)
    assert changed == f"a\n<!-- table x -->\n{grid.markdown()}\n<!-- end x -->\nb"
    for wrong in ("a", page + page):
        with pytest.raises(ValueError, match="expected one"):
            with_table(wrong, "x", grid)


def test_in_the_simulated_worlds_both_systems_are_equally_good(script):
    world = script("bootstrap_false_positives").world
    draw = np.random.default_rng(0)
    right = []
    for _ in range(30):
        truth, ours, theirs = world(draw, 400, 3, 1, 0.05)
        assert ours.shape == (3, 400) and theirs.shape == (1, 400)
        right.append([(ours == truth).mean(), (theirs == truth).mean()])
    means = np.mean(right, axis=0)
    assert abs(means[0] - means[1]) < 0.02 and abs(means.mean() - 0.6) < 0.02
    found = script("bootstrap_false_positives").rejections((60, 2, 1, 0.0), 5, 20)
    assert set(found) == {"rows", "rows_and_seeds"} and all(0 <= x <= 1 for x in found.values())
