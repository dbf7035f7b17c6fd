"""`superconext report`, and the page that `train` writes."""

from __future__ import annotations

import json
import os
import re
import shutil

import pytest

from superconext.data.reading import read_labelled
from superconext.runs.folder import load_model
from superconext.runs.page import other_page
from tests.cli.conftest import blame, write_table


def sentences(path):
    html = path.read_text(encoding="utf-8")
    return json.loads(re.search(r'id="data">(.*?)</script>', html, re.DOTALL)[1]), html


def test_train_writes_the_page_of_the_reported_rows(finished, call):
    data, html = sentences(finished.folder / "report.html")
    rows = [line.split("\t") for line in finished.data.test.read_text("utf-8").splitlines()[1:]]
    assert data["rows"]["text"] == [text for _, text in rows]
    assert [data["classes"][k] for k in data["rows"]["label"]] == [label for label, _ in rows]
    said = json.loads(call("predict", finished.folder, finished.data.test, "--json").out)
    assert [data["classes"][k] for k in data["rows"]["guess"]] == [row["label"] for row in said]
    assert len(data["train"]["text"]) == 40 and len(data["rows"]["near"]) == 12
    # With so few rows all are explained, each towards what is predicted.
    asked = json.loads(call("explain", finished.folder, "--file", finished.data.test, "--json").out)
    for text, words, one in zip(data["rows"]["text"], data["rows"]["words"], asked, strict=True):
        assert [text[a:b] for a, b, _ in words] == [word["word"] for word in one["words"]]
        values = [word["contribution"] for word in one["words"]]
        assert [value for _, _, value in words] == pytest.approx(values, abs=0.006)
    assert "Labels to check" in html and "of 40 training sentences" in html
    metrics = json.loads((finished.folder / "metrics.json").read_text("utf-8"))
    assert f"{metrics['test']['accuracy']:.1%}" in html and "TF-IDF + logistic regression" in html
    assert not re.search(r"""(src|href)=["'](?!#)""", html)


def test_page_and_details_mean_the_same_by_unknown_words(finished, call, tmp_path):
    texts = ["zwin bzaf 😀 !", "kalma jdida", "zwin jdida bzaf", "😀"]
    path = write_table(tmp_path / "new.tsv", [("pos", text) for text in texts])
    details = json.loads(call("predict", finished.folder, path, "--json").out)
    model, corpus = load_model(finished.folder), read_labelled(str(path))
    made = other_page(finished.folder, model, corpus, None)
    assert made.unknown.tolist() == pytest.approx(
        [row["unknown_words"] for row in details], abs=1e-4
    )
    assert made.unknown[1] == 1.0 and 0 < made.unknown[2] < 1
    assert ("unknown", "Unknown words") in [bucket[:2] for bucket in made.buckets]


def test_a_page_takes_the_place_of_pages_alone(finished, call, tmp_path):
    rows, page = tmp_path / "rows.tsv", tmp_path / "page.html"
    shutil.copy(finished.data.dev, rows)
    before = rows.read_bytes()
    assert "found no ending .html" in blame(call("report", finished.folder, rows, "--out", rows))
    page.write_bytes(before)
    assert "exists and is no page" in blame(call("report", finished.folder, rows, "--out", page))
    assert rows.read_bytes() == page.read_bytes() == before
    page.unlink()
    for _ in range(2):
        assert call("report", finished.folder, rows, "--out", page).code == 0


def test_other_rows_get_a_page_of_their_own(finished, call, tmp_path):
    out = tmp_path / "page.html"
    said = call(
        "report", finished.folder, finished.data.dev, "--train", finished.data.train, "--out", out
    )
    assert (said.code, said.out.strip()) == (0, str(out)), said.err
    data, html = sentences(out)
    evaluated = json.loads(call("evaluate", finished.folder, finished.data.dev, "--json").out)
    assert f"{evaluated['accuracy']:.1%}" in html and "dev.tsv" in html
    assert len(data["rows"]["text"]) == 12 and len(data["train"]["text"]) == 40
    assert set(data["rows"]) >= {"near", "cosine", "unknown", "script", "length", "x", "y"}
    assert "majority class</th>" in html and "the best baseline" in html
    own = json.loads((finished.folder / "metrics.json").read_text("utf-8"))["test"]["accuracy"]
    said = f"(12 rows), accuracy was: this model {own:.1%}; "
    assert said in html and "need the training rows" not in html
    bare = tmp_path / "bare.html"
    assert call("report", finished.folder, finished.data.dev, "--out", bare).code == 0
    text = bare.read_text("utf-8")
    assert "majority class</th>" not in text and said in text and "need the training rows" in text


def test_without_a_file_the_page_shows_what_the_run_recorded(finished, call, tmp_path):
    out = tmp_path / "page.html"
    assert call("report", finished.folder, "--out", out).code == 0
    data, html = sentences(out)
    assert data["rows"] == {"label": []} and "sentences are not on this page" in html
    assert "majority class" in html and 'id="map"' not in html
    before = (finished.folder / "report.html").read_bytes()
    again = call("report", finished.folder)
    assert again.code == 0 and again.out == f"{finished.folder / 'report.html'}\n"
    assert "has its page already" in again.err
    assert (finished.folder / "report.html").read_bytes() == before


@pytest.mark.parametrize("seen", [0, 7, 12])
def test_a_page_of_records_promises_no_more_than_that_of_training(finished, call, tmp_path, seen):
    run, out = tmp_path / "run", tmp_path / "page.html"
    shutil.copytree(finished.folder, run)
    metrics = json.loads((run / "metrics.json").read_text("utf-8"))
    rest = None if seen == 12 else {**metrics["test"], "n": 12 - seen, "accuracy": 0.4}
    if seen:
        metrics["overlap"] = {"texts": 12, "train": seen, "dev": 0, "without": rest}
    (run / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")
    assert call("report", run, "--out", out).code == 0
    text = out.read_text("utf-8")
    assert ("Of other sentences of the same kind, expect" in text) == (not seen)
    assert ("Of the other 5 rows, 40.0% are labelled correctly" in text) == (seen == 7)
    assert ("No row tells what to expect of new sentences." in text) == (seen == 12)


def test_pages_of_files_whose_names_differ_behind_a_dot_are_two(finished, call, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(finished.folder, run)
    for name in ("set.a.tsv", "set.b.tsv"):
        shutil.copy(finished.data.dev, tmp_path / name)
        assert call("report", run, tmp_path / name).code == 0
    assert (run / "report-set.a.html").exists() and (run / "report-set.b.html").exists()


def test_what_cannot_be_shown_is_refused_in_one_line(finished, call, tmp_path):
    run = finished.folder
    assert call("report", run, "--train", finished.data.train, "--out", "x.html").code == 2
    assert "no such folder" in blame(call("report", tmp_path / "none"))
    other = write_table(tmp_path / "other.tsv", [("good", "zwin"), ("evil", "khayb")])
    assert "no label that" in blame(call("report", run, other, "--out", tmp_path / "page.html"))
    missing = call("report", run, finished.data.test, "--out", tmp_path / "no" / "page.html")
    assert "no such folder" in blame(missing)
    assert not (tmp_path / "page.html").exists()


def test_records_of_another_run_are_refused(finished, call, tmp_path):
    def changed(name, change):
        run = tmp_path / name
        shutil.copytree(finished.folder, run)
        (run / name).write_text(change((run / name).read_text("utf-8")), encoding="utf-8")
        return blame(call("report", run, "--out", tmp_path / "page.html"))

    def worse(text):
        metrics = json.loads(text)
        metrics["test"]["accuracy"] -= 1 / 12
        return json.dumps(metrics)

    assert "metrics.json has 0." in changed("metrics.json", worse)
    said = changed("config.toml", lambda text: text.replace("seed = 0", "seed = 1"))
    assert "its content is not what the manifest lists" in said
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("name", ["predictions.tsv", "metrics.json"])
@pytest.mark.parametrize("content", ["", "[]", "line\tlabel\nx\ty\n", '{"test": 3}', "\x00"])
def test_damaged_records_are_refused(finished, call, tmp_path, name, content):
    run = tmp_path / "run"
    shutil.copytree(finished.folder, run)
    (run / name).write_text(content, encoding="utf-8")
    blame(call("report", run, "--out", tmp_path / "page.html"))
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize(
    "change",
    [
        {"baselines": []},
        {"baselines": {"majority": {"test": {"accuracy": -5, "n": 12}}}},
        {"overlap": []},
        {"reported_split": []},
        {"per_class": {"neg": 3, "pos": 3}},
    ],
    ids=str,
)
def test_records_of_another_shape_are_refused_or_left_out(finished, call, tmp_path, change):
    run = tmp_path / "run"
    shutil.copytree(finished.folder, run)
    metrics = json.loads((run / "metrics.json").read_text("utf-8"))
    if "per_class" in change:
        metrics["test"].update(change)
    else:
        metrics.update(change)
    (run / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")
    said = call("report", run, "--out", tmp_path / "page.html")
    assert said.code == 0 or ("expected" in blame(said) and "report what it shows" not in said.err)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name")
def test_a_history_that_is_no_file_is_not_opened(finished, call, tmp_path):
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        shutil.rmtree(run := tmp_path / "run", ignore_errors=True)
        shutil.copytree(finished.folder, run)
        (run / "history.csv").unlink()
        make(run / "history.csv")
        assert call("report", run, "--out", tmp_path / "page.html").code == 0


def test_a_long_text_that_a_run_kept_is_shown(finished, call, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(finished.folder, run)
    heading, *lines = (run / "predictions.tsv").read_text("utf-8").splitlines()
    rows = [heading + "\ttext", *(f"{line}\tzwin" for line in lines[:-1])]
    rows.append(lines[-1] + "\t" + "zwin " * 30_000)
    (run / "predictions.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    assert call("report", run, "--out", tmp_path / "page.html").code == 0


def test_formats_of_figures_are_checked_before_anything_is_read(call, tmp_path):
    said = call("train", tmp_path / "none.tsv", "--out", tmp_path / "run", "--figures", "svg,jpg")
    assert said.code == 2 and "expected svg, pdf" in said.err


def test_a_run_that_is_a_baseline_is_held_against_the_others(call, data, tmp_path):
    out = tmp_path / "run"
    words = ("--test", data.test, "--freeze", "--encoder", "mean", "--cv", "0", "--out", out)
    assert call("train", data.train, *words).code == 0
    baselines = json.loads((out / "metrics.json").read_text())["baselines"]
    assert "vectors_logreg" in baselines  # the run itself
    for page, more in ((out / "report.html", ()), (out / "other.html", (data.test,))):
        if more:
            given = ("--train", data.train, "--out", page)
            assert call("report", out, *more, *given).code == 0
        told = page.read_text(encoding="utf-8")
        assert "TF-IDF + logistic regression" in told
        assert "mean word vectors + logistic regression" not in told
