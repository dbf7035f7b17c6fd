"""scripts/choose_defaults.py: the cheapest within one standard error, and no test rows before."""

import importlib
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    yield importlib.import_module("choose_defaults")
    for name in ("choose_defaults", "reproduce_results"):
        sys.modules.pop(name, None)


def lines(script, scores):
    """Lines of a comparison in which a system has its score plus the seed's and the set's."""
    names = ("tfidf_logreg", *script.CANDIDATES)
    return [
        {
            "system": name,
            "dataset": of,
            "seed": seed,
            "test": {"f1_weighted": scores.get(name, 0.0) + seed / 10 + wobble(name, seed, of)},
        }
        for name in names
        for seed in (2, 0, 1)
        for of in script.SETS
    ]


def wobble(name, seed, of):
    return 0.02 * ((len(of) + seed) % 3 - 1) if name.startswith("superloss:probe") else 0.0


def test_a_better_one_is_chosen_only_beyond_one_standard_error(script):
    dear = "superloss:probe_features=encoder+ngrams"
    document, table = script.chosen(lines(script, {dear: 0.1}))
    assert document["chosen"] == document["best"] == dear
    document, table = script.chosen(lines(script, {dear: 0.003}))
    assert (document["best"], document["chosen"]) == (dear, "cross_entropy")
    assert [row[0] for row in table] == ["system", "tfidf_logreg", *script.CANDIDATES]
    assert table[2][-1] == pytest.approx(0.1)  # the mean of the seeds


def test_judgement_waits_for_the_commit(script, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "CHOICE", tmp_path / "choice.json")
    with pytest.raises(SystemExit, match=r"choice.json is not committed"):
        script.judge()


def test_choosing_opens_no_test_file(script, tmp_path, monkeypatch):
    data, opened = tmp_path / "data", []
    for name in script.SETS:
        folder = data / script.FOLDERS[name]
        folder.mkdir(parents=True)
        for part in ("all",) if name == "msac" else ("train", "test"):
            (folder / f"{part}.tsv").write_text("a\tb\n", encoding="utf-8")

    def run(command, check):
        opened.append(command)
        to = Path(command[command.index("--out") + 1])
        to.mkdir(parents=True)
        if "split" in command:
            (to / "train.tsv").write_text("a\tb\n", encoding="utf-8")
        else:
            raise KeyboardInterrupt

    monkeypatch.setattr("subprocess.run", run)
    with pytest.raises(KeyboardInterrupt):
        script.choose(data, tmp_path / "encoder", tmp_path / "out")
    named = (tmp_path / "out" / "sets.toml").read_text(encoding="utf-8")
    assert named.count("train = ") == len(script.SETS)
    assert "test" not in named.replace(str(tmp_path), "")
    assert not any("test.tsv" in str(word) for command in opened for word in command)


def test_changes_are_held_against_the_default_on_the_same_rows(script):
    rows = [
        {"system": system, "dataset": of, "seed": seed, "test": {"f1_weighted": score + seed / 10}}
        for system, score in (
            ("superloss:layers=2", 0.52),
            ("superloss", 0.5),
            ("tfidf_logreg", 0.1),
        )
        for of in script.SETS
        for seed in (1, 0)
    ]
    for row in rows[:6]:
        row["test"]["f1_weighted"] += 0.03 * (row["dataset"] == script.SETS[-1])
    (line,) = script.differences("given", rows)
    assert line[:2] == ["given", "layers=2"]
    assert line[2:-1] == pytest.approx([0.02, 0.02, 0.05, 0.03])
    every = [0.02, 0.02, 0.02, 0.02, 0.05, 0.05]
    mean = sum(every) / 6
    error = (sum((x - mean) ** 2 for x in every) / 5 / 6) ** 0.5
    assert line[-1] == pytest.approx(error, abs=1e-4)
