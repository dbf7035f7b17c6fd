"""`superconext evaluate`, `predict` and `embed` on a finished run."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import subprocess
import sys

import numpy as np
import pytest

from tests.cli.conftest import environment, rows, write_table


def table_of(path):
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    return [tuple(line.split("\t")) for line in lines]


@pytest.fixture
def test_rows(finished):
    return table_of(finished.data.test)


@pytest.fixture
def predict(call, finished):
    """Predict with the finished run, expecting it to work."""

    def run(*words, stdin=b""):
        said = call("predict", finished.folder, *words, stdin=stdin)
        assert said.code == 0, said.err
        return said

    return run


# evaluate


def test_evaluate_agrees_with_counting(finished, call, predict, test_rows):
    scores = json.loads(call("evaluate", finished.folder, finished.data.test, "--json").out)
    told = [line.split("\t")[0] for line in predict(finished.data.test).out.splitlines()]
    pairs = list(zip([label for label, _ in test_rows], told, strict=True))
    assert scores["n"] == 12
    assert scores["accuracy"] == pytest.approx(sum(a == b for a, b in pairs) / 12)
    means = []
    for name in ("neg", "pos"):
        hits = sum(a == b == name for a, b in pairs)
        wanted, given = (sum(pair[side] == name for pair in pairs) for side in (0, 1))
        means.append(2 * hits / (wanted + given))
        assert scores["per_class"][name]["support"] == wanted
        assert scores["per_class"][name]["f1"] == pytest.approx(means[-1])
    assert scores["f1_macro"] == pytest.approx(sum(means) / 2)


def test_evaluate_prints_the_figures_and_each_class(finished, call):
    said = call("evaluate", finished.folder, finished.data.test)
    scores = json.loads(call("evaluate", finished.folder, finished.data.test, "--json").out)
    assert said.code == 0
    for number in (scores["accuracy"], scores["per_class"]["neg"]["f1"]):
        assert f"{number:.3f}" in said.out
    assert "neg" in said.out and "pos" in said.out


def test_evaluate_names_a_command_that_reads_the_file_as_it_did(finished, call, tmp_path):
    path = tmp_path / "gaps.tsv"
    path.write_text("klass\tsentence\npos\tzwin\nneg\tkhayb\n\tzwin bzaf\n", encoding="utf-8")
    words = ("--label-column", "klass", "--text-column", "sentence", "--drop-incomplete")
    said = call("evaluate", finished.folder, path, *words)
    assert said.code == 0, said.err
    named = re.search(r"next: superconext (report .*) shows the mistakes", said.err + said.out)
    again = call(*shlex.split(named[1]), "--out", tmp_path / "page.html")
    assert again.code == 0, again.err


def test_evaluate_says_what_it_read_on_stderr_also_beside_json(finished, call, tmp_path):
    bare = tmp_path / "bare.tsv"
    bare.write_text("neg\tkhayb bzaf\nneg\tghali had\nzen\tkan zwin\n", encoding="utf-8")
    for words in ([], ["--json"]):
        said = call("evaluate", finished.folder, bare, *words)
        assert said.code == 0 and "no header found" in said.err
        assert "warning: " in said.err and "does not know: 'zen'" in said.err
    assert json.loads(said.out)["per_class"]["zen"]["recall"] == 0


def test_evaluate_takes_columns_by_name_and_number(finished, call, test_rows, tmp_path):
    wide = tmp_path / "wide.csv"
    lines = ["id,gold,phrase", *(f'{i},{a},"{b}"' for i, (a, b) in enumerate(test_rows))]
    wide.write_text("\n".join(lines), encoding="utf-8")
    plain = call("evaluate", finished.folder, finished.data.test, "--json").out
    for text, label in (("phrase", "gold"), ("3", "2")):
        columns = ("--text-column", text, "--label-column", label)
        assert call("evaluate", finished.folder, wide, "--json", *columns).out == plain


def test_evaluate_tests_several_runs_against_the_first_on_the_same_rows(finished, call, tmp_path):
    other = tmp_path / "other"
    words = ("--vectors", finished.data.vectors, "--vector-dimension", 8, "--freeze")
    assert call("train", finished.data.dev, "--out", other, "--no-report", *words).code == 0
    path = finished.data.train
    rows = json.loads(call("evaluate", finished.folder, other, path, "--json").out)["runs"]
    alone = json.loads(call("evaluate", other, path, "--json").out)
    paired = rows[1].pop("against_first")
    assert rows[1] == {"run": str(other), **alone} and "against_first" not in rows[0]
    right = [
        [
            line.split("\t")[0] == label
            for line, (label, _) in zip(said, table_of(path), strict=True)
        ]
        for said in (call("predict", r, path).out.splitlines() for r in (finished.folder, other))
    ]
    first, only = (sum(a > b for a, b in zip(*pair, strict=True)) for pair in (right, right[::-1]))
    assert first + only > 0
    assert (paired["only_right"], paired["only_first_right"]) == (only, first)
    assert paired["difference"] == pytest.approx((only - first) / 40)
    tail = sum(math.comb(first + only, k) for k in range(min(first, only) + 1))
    assert paired["p_mcnemar"] == pytest.approx(min(1, 2 * tail / 2 ** (first + only)))
    said = call("evaluate", finished.folder, other, other, path)
    assert said.code == 0 and f"accuracy against {finished.folder}" in said.out
    assert said.out.count(f"{(only - first) / 40:+.3f}") == 2 and "p (Holm)" in said.out
    assert f"train.tsv, {finished.folder}: 40 of 40 texts are among the rows" in said.err
    assert "repeat a text" not in said.err
    twice = tmp_path / "twice.tsv"
    twice.write_text(path.read_text("utf-8") + path.read_text("utf-8").partition("\n")[2], "utf-8")
    said = call("evaluate", finished.folder, other, twice)
    assert "40 of 80 rows repeat a text, and p counts each of them" in said.err


# predict


def test_predict_keeps_the_order_and_the_texts(predict, finished, test_rows):
    lines = [line.split("\t") for line in predict(finished.data.test).out.splitlines()]
    assert [line[1] for line in lines] == [text for _, text in test_rows]
    assert {line[0] for line in lines} <= {"neg", "pos"}


def test_predict_gives_probabilities_under_a_heading(predict, finished, test_rows):
    lines = [line.split("\t") for line in predict(finished.data.test, "--proba").out.splitlines()]
    assert lines[0] == ["label", "neg", "pos", "text"]
    assert [line[3] for line in lines[1:]] == [text for _, text in test_rows]
    for label, *shares, _ in lines[1:]:
        numbers = [float(share) for share in shares]
        assert all(len(share) == 6 and 0 <= float(share) <= 1 for share in shares)
        assert sum(numbers) == pytest.approx(1, abs=1.01e-4)
        assert numbers[["neg", "pos"].index(label)] == max(numbers)


def test_predict_gives_one_json_document(predict, finished, test_rows):
    plain = json.loads(predict(finished.data.test, "--json").out)
    assert [row["text"] for row in plain] == [text for _, text in test_rows]
    facts = {"unknown_words", "unseen_script", "seen_in"}
    assert all(set(row) == {"line", "label", "text"} | facts for row in plain)
    assert [row["line"] for row in plain] == list(range(2, len(test_rows) + 2))
    shares = json.loads(predict(finished.data.test, "--json", "--proba").out)
    for row, bare in zip(shares, plain, strict=True):
        best = max(row["probabilities"], key=row["probabilities"].get)
        assert best == row["label"] == bare["label"]
        assert sum(row["probabilities"].values()) == pytest.approx(1)


def test_the_label_column_does_not_matter(predict, finished, test_rows, tmp_path):
    expected = predict(finished.data.test).out
    other = write_table(tmp_path / "other.tsv", [("?", text) for _, text in test_rows])
    assert predict(other).out == expected
    plain = tmp_path / "plain.txt"
    plain.write_text("\n".join(text for _, text in test_rows), encoding="utf-8")
    assert predict(plain).out == expected
    records = tmp_path / "records.jsonl"
    records.write_text("\n".join(json.dumps({"text": text}) for _, text in test_rows))
    assert predict(records).out == expected


def test_a_sentence_is_predicted_alike_alone_and_in_company(predict, finished, test_rows):
    together = json.loads(predict(finished.data.test, "--json", "--proba").out)
    turned = "\n".join(text for _, text in reversed(test_rows)).encode()
    backwards = json.loads(predict("-", "--json", "--proba", stdin=turned).out)[::-1]
    alone = [
        json.loads(predict("-", "--json", "--proba", stdin=text.encode()).out)[0]
        for _, text in test_rows[:4]
    ]
    for row, other in [*zip(together, backwards, strict=True), *zip(together, alone, strict=False)]:
        assert row["label"] == other["label"]
        assert row["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)


def test_standard_input_is_the_default(predict):
    said = predict(stdin="زوين بزاف\n\nkhayb\n".encode())
    assert [line.split("\t")[1] for line in said.out.splitlines()] == ["زوين بزاف", "", "khayb"]
    assert "1 row without a text" in said.err


def test_every_text_stays_on_its_line_and_in_its_cell(predict, tmp_path):
    texts = ["zwin\tbzaf", "two  blanks kept ", "line\nend", "a\u2028b\x85c\x0bd", "\u200fروعة!"]
    records = tmp_path / "odd.jsonl"
    records.write_text("\n".join(json.dumps({"text": text}) for text in texts))
    cells = [line.split("\t", 1)[1] for line in predict(records).out.splitlines()]
    assert cells == ["zwin bzaf", texts[1], "line end", "a b c d", texts[4]]
    assert [row["text"] for row in json.loads(predict(records, "--json").out)] == texts


def test_texts_of_unknown_words_or_none_at_all_are_predicted(predict):
    texts = ["zzzzz qqqqq", "!!!", "😀😀", "https://example.org", "漢字", "w" * 5000, "\u0301"]
    said = predict("--proba", stdin="\n".join(texts).encode())
    rows = [line.split("\t") for line in said.out.splitlines()[1:]]
    assert [row[3] for row in rows] == texts
    assert all(0 <= float(row[1]) <= 1 for row in rows)


BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("sklearn", "gensim", "matplotlib"):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocker())
from superconext.cli import main
main(sys.argv[1:])
"""


def test_predict_reads_a_pipe_and_needs_neither_sklearn_nor_gensim(predict, finished):
    text = "زوين بزاف\nkhayb\n"
    said = subprocess.run(
        [sys.executable, "-c", BLOCKED, "predict", str(finished.folder)],
        input=text.encode(),
        capture_output=True,
        env=environment(),
        check=False,
    )
    assert said.returncode == 0, said.stderr.decode()
    expected = predict(stdin=text.encode()).out
    assert said.stdout.decode().replace(os.linesep, "\n") == expected


# embed


def test_embed_writes_float32_rows_without_pickle(call, finished, tmp_path):
    out = tmp_path / "vectors.npy"
    said = call("embed", finished.folder, finished.data.test, "--out", out)
    assert said.code == 0 and said.out == ""
    vectors = np.load(out, allow_pickle=False)
    assert vectors.shape == (12, 16) and vectors.dtype == np.float32
    assert np.isfinite(vectors).all() and vectors.std(axis=0).min() > 0
    assert list(tmp_path.iterdir()) == [out]


def test_embed_keeps_the_order_and_treats_each_text_alone(call, finished, test_rows, tmp_path):
    texts = [text for _, text in test_rows] + ["kan " * 150]
    found = []
    for name, lines in (("all", texts), ("turned", texts[::-1]), ("one", texts[:1])):
        plain = tmp_path / f"{name}.txt"
        plain.write_text("\n".join(lines), encoding="utf-8")
        assert call("embed", finished.folder, plain, "--out", tmp_path / name).code == 0
        found.append(np.load(tmp_path / name))
    assert np.allclose(found[0], found[1][::-1], atol=1e-6)
    assert np.allclose(found[0][:1], found[2], atol=1e-6)
    assert not np.allclose(found[0][0], found[0][1], atol=1e-3)


def test_a_text_that_does_not_show_is_blank_to_every_command(call, finished, tmp_path):
    plain = tmp_path / "blank.txt"
    plain.write_text("zwin\n\u200b\n\u2800\u3164\n", encoding="utf-8")
    said = call("embed", finished.folder, plain, "--out", tmp_path / "vectors.npy")
    assert "2 rows without a text, given a vector of zeros" in said.err
    assert np.load(tmp_path / "vectors.npy").any(axis=1).tolist() == [True, False, False]
    rows = call("predict", finished.folder, plain, "--details").out.splitlines()[2:]
    assert [row.split("\t")[1:5] for row in rows] == [[""] * 4] * 2


def test_embed_replaces_a_file_when_told_but_nothing_else(call, finished, tmp_path):
    (tmp_path / "old.npy").write_text("old")
    words = ("embed", finished.folder, finished.data.test, "--out")
    said = call(*words, tmp_path / "old.npy")
    assert said.code == 1 and "exists already" in said.err and "add --force" in said.err
    assert (tmp_path / "old.npy").read_text() == "old"
    assert call(*words, tmp_path / "old.npy", "--force").code == 0
    assert np.load(tmp_path / "old.npy").shape == (12, 16)
    (tmp_path / "folder.npy").mkdir()
    said = call(*words, tmp_path / "folder.npy", "--force")
    assert said.code == 1 and "exists already" in said.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder.npy", "old.npy"]


def test_several_runs_trained_on_columns_of_other_names_are_told(call, tmp_path):
    """The first run says which columns are read; the second would be judged on them in silence."""
    few_rows = rows(40, seed=0)
    runs, tables = [], []
    for number, (text, label) in enumerate((("text", "label"), ("body", "class"))):
        table = tmp_path / f"train{number}.tsv"
        lines = [f"{text}\t{label}", *(f"{line[1]}\t{line[0]}" for line in few_rows)]
        table.write_text("\n".join(lines) + "\n", encoding="utf-8")
        runs.append(tmp_path / f"run{number}")
        tables.append(table)
        small = ("--vector-method", "random", "--vector-dimension", 8, "--preset", "fast")
        brief = ("--epochs", 1, "--steps-per-epoch", 2, "--no-baselines", "--no-report", "--cv", 0)
        assert call("train", table, "--out", runs[-1], *small, *brief).code == 0
    both = tmp_path / "both.tsv"
    lines = ["text\tlabel\tbody\tclass"]
    lines += [f"{text}\t{label}\t{text} zwin\t{label}" for label, text in few_rows]
    both.write_text("\n".join(lines) + "\n", encoding="utf-8")
    told = f"warning: {runs[1]} was trained on texts of the column 'body', and is judged on those "
    said = call("evaluate", *runs, both)
    assert said.code == 0 and told in said.err and "labels of the column 'class'" in said.err
    named = ("--text-column", "text", "--label-column", "label")
    assert "was trained on" not in call("evaluate", *runs, both, *named).err
    assert "was trained on" not in call("evaluate", runs[0], runs[0], both).err


@pytest.mark.parametrize(
    "task",
    [
        {"data": {"text": "kan zwin had"}, "annotations": []},
        {"fields": {"text": "kan zwin had"}, "responses": {}},
    ],
)
def test_numbers_of_tasks_are_kept(call, finished, tmp_path, task):
    path = tmp_path / "tasks.jsonl"
    path.write_text("".join(json.dumps({"id": n, **task}) + "\n" for n in (71, 72)))
    said = call("predict", finished.folder, path, "--keep", "id")
    assert said.code == 0, said.err
    lines = said.out.splitlines()
    assert len(lines) == 3 and all(
        str(n) in line for n, line in zip((71, 72), lines[1:], strict=True)
    )
