"""scripts/reproduce_results.py: its steps, that it goes on, and that pages say what tables say."""

import csv
import importlib.util
import itertools
import json
import shutil
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from scipy.stats import t, ttest_ind_from_stats

from superconext.cli import cli
from superconext.experiments.systems import read_datasets

SCRIPT = Path(__file__).parents[2] / "scripts" / "reproduce_results.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("reproduce_results", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclass looks itself up there
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture
def data(script, tmp_path):
    """The folders and files that the steps expect, without contents."""
    for key, folder in script.FOLDERS.items():
        (tmp_path / "data" / folder).mkdir(parents=True)
        single = key in ("msac", "djalil")
        for part in ("all",) if single else ("train", "test"):
            (tmp_path / "data" / folder / f"{part}.tsv").write_text("a\tb\n", encoding="utf-8")
    return tmp_path / "data"


def test_every_step_is_a_command_that_has_these_options(script, data, tmp_path):
    """Files that are missing are complained of, options that do not exist come before that."""
    planned = script.steps(data, ["text.txt"], tmp_path / "out")
    assert len({one.name for one in planned}) == len(planned) == 14
    for one in planned:
        words = one.command[3:]
        options = cli.commands[words[0]]
        if hasattr(options, "commands"):
            options = options.commands[words[1]]
        known = {word for parameter in options.params for word in parameter.opts}
        assert {word for word in words if word.startswith("--")} <= known, one.name
        assert CliRunner().invoke(cli, [*words, "--help"]).exit_code == 0


def test_vectors_and_encoder_leave_out_every_file_that_is_tested_on(script, data, tmp_path):
    for one in script.steps(data, ["text.txt"], tmp_path / "out")[:2]:
        left_out = {Path(f) for o, f in itertools.pairwise(one.command) if o == "--leave-out"}
        assert left_out == {*data.glob("*/test.tsv"), *data.glob("*/all.tsv")}


def test_the_files_of_data_sets_are_read_by_compare(script, data, tmp_path):
    out = tmp_path / "out"
    out.mkdir()
    for one in script.steps(data, ["text.txt"], out):
        one.prepare()
    sets = {s.name: s for f in sorted(out.glob("*.toml")) for s in read_datasets(f, {})}
    assert sorted(sets) == sorted(script.SETS)
    assert {name for name, one in sets.items() if one.deduplicate} == {"msac", "djalil", "tsac"}
    assert sets["arq"].test == str(data / "afrisenti_arq" / "test.tsv")


def test_goes_on_where_it_was(script, data, tmp_path, monkeypatch, capsys):
    done = []

    def run(command, check):
        assert check
        to = Path(command[command.index("--out") + 1])
        done.append(to.name)
        if to.name == "mteb":
            raise KeyboardInterrupt  # stopped before its last file is there
        to.mkdir()
        (to / "table.csv").touch()

    monkeypatch.setattr(script, "note_made_of", lambda out, data, texts: None)
    monkeypatch.setattr("subprocess.run", run)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            script.run(data, ["text.txt"], tmp_path / "out", None, listed=False)
    few = ["few-msac", "words-few-msac", "few-arq", "words-few-arq"]
    assert done == ["vectors", "encoder", "msac", *few, "mteb", "mteb"]
    assert "encoder: there already" in capsys.readouterr().err


def test_an_unknown_step_is_refused_with_those_there_are(script, data, tmp_path):
    with pytest.raises(SystemExit, match="few-arqq; expected some of vectors, encoder"):
        script.run(data, ["text.txt"], tmp_path / "out", "few-arqq", listed=False)


def line(system, seed, predictions, **more):
    truth = [0, 1, 0, 1, 0, 1, 0, 1]
    right = sum(a == b for a, b in zip(truth, predictions, strict=True)) / 8
    scores = {"n": 8, "accuracy": right, "f1_macro": right, "f1_weighted": right}
    return {
        "system": system, "objective": system, "seed": seed, "split": "given", "seconds": 1.0,
        "rows": {"train": 8, "dev": 8, "test": 8}, "dev": scores, "test": scores,
        "predictions": predictions, "truth": truth, "parameters": {}, **more,
    }  # fmt: skip


@pytest.fixture
def results(tmp_path):
    """A run's folders with two systems, of which one is always right."""
    right, wrong = [0, 1] * 4, [0, 0, 0, 0, 1, 1, 1, 1]
    out = tmp_path / "out"
    for study in ("vectors", "pretrained"):
        (out / "mteb" / study).mkdir(parents=True)
        lines = "dataset,system,mean,sd,paper (big)\narq,{0}_mteb,0.5,0.1,0.4\n"
        text = lines.format(study)
        (out / "mteb" / study / "protocol.csv").write_text(text, encoding="utf-8")
    about = {"commit": "abc", "python": "3.11", "torch": "2", "processor": "AVX2"}
    (out / "about.json").write_text(json.dumps(about), encoding="utf-8")
    for name, more in {
        "all-labels": [{"dataset": "arq"}],
        "all-labels-tweets": [{"dataset": "ary"}],
        "all-labels-comments": [{"dataset": "tsac"}],
        "few-msac": [{"shots": n, "draw": f"shots{n}", "overlap": 0.1} for n in (8, 16)],
        "few-arq": [{"shots": 8, "draw": "shots8", "overlap": 0.1}],
    }.items():
        for folder, systems in (
            (name, {"tfidf_logreg": wrong, "vectors_logreg": right, "superloss": right}),
            (f"words-{name}", {"tfidf_logreg": wrong, "vectors_logreg": wrong}),
        ):
            (out / folder).mkdir(parents=True)
            lines = [
                line(system, seed, predicted, **one)
                for one in more
                for system, predicted in systems.items()
                for seed in (0, 1)
            ]
            text = "".join(json.dumps(one) + "\n" for one in lines)
            (out / folder / "results.jsonl").write_text(text, encoding="utf-8")
            (out / folder / "table.csv").touch()
    return out


def test_pages_say_what_the_tables_say(script, results, tmp_path):
    stored = tmp_path / "scripts" / "results"
    script.collect(results, stored)
    shutil.copy(script.STORED / "published.csv", stored)
    page = "before\n<!-- results all-labels -->\nold\n<!-- end -->\nafter\n"
    (tmp_path / "docs").mkdir()
    (tmp_path / "README.md").write_text(page.replace("all-labels", "front"), encoding="utf-8")
    (tmp_path / "docs" / "results.md").write_text(page, encoding="utf-8")
    (tmp_path / "docs" / "protocols.md").write_text(page, encoding="utf-8")
    (tmp_path / "docs" / "transformer.md").write_text("no table", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"README.md is not what scripts/results/ says"):
        script.render(check=True, root=tmp_path)
    script.render(check=False, root=tmp_path)
    script.render(check=True, root=tmp_path)
    text = (tmp_path / "docs" / "results.md").read_text(encoding="utf-8")
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in text.splitlines()[3:]]
    (ours,) = [row for row in rows if row and row[0] == "SuperLoss, pretrained"]
    with (stored / "all-labels.csv").open(encoding="utf-8") as stream:
        stored_rows = list(csv.DictReader(stream))
    assert ours.count("") == len(script.SETS) - 3
    assert [cell.strip("*") for cell in ours if "100" in cell] == ["100.0 ± 0.0"] * 3
    assert {row["dataset"] for row in stored_rows} == {"arq", "ary", "tsac"}
    assert text.startswith("before\n") and text.endswith("<!-- end -->\nafter\n")


def test_word_vectors_are_those_that_pretraining_began_with(script, results, tmp_path):
    stored = tmp_path / "scripts" / "results"
    script.collect(results, stored)
    for name in ("few-labels", "all-labels"):
        rows = script.read_csv(stored / f"{name}.csv")
        score = {row["system"]: float(row["accuracy_mean"]) for row in rows}
        assert score["vectors_logreg"] == 0.5 and score["learned_vectors_logreg"] == 1.0
    shutil.rmtree(results / "words-few-arq")
    with pytest.raises(SystemExit, match="run the step words-few-arq first"):
        script.collect(results, stored)


def test_setfit_counts_only_on_the_draws_of_all_others(script, results, tmp_path):
    peer = results / "setfit-few-msac"
    peer.mkdir()
    more = {"shots": 16, "draw": "shots16", "overlap": 0.1}

    def write(tfidf):
        fits = [("tfidf_logreg", tfidf), ("setfit", [0, 0, 0, 0, 0, 1, 1, 1])]
        lines = [line(system, seed, said, **more) for system, said in fits for seed in (0, 1)]
        text = "".join(json.dumps(one) + "\n" for one in lines)
        (peer / "results.jsonl").write_text(text, encoding="utf-8")

    write([0, 0, 0, 0, 1, 1, 1, 1])
    stored = tmp_path / "scripts" / "results"
    script.collect(results, stored)
    rows = script.read_csv(stored / "few-labels.csv")
    found = [row for row in rows if row["system"] == "setfit"]
    assert {(row["dataset"], row["shots"]) for row in found} == {("msac", "16")}
    assert float(found[0]["accuracy_mean"]) == 5 / 8
    write([1, 1, 1, 1, 1, 1, 1, 1])
    with pytest.raises(SystemExit, match="other draws"):
        script.collect(results, stored)


def test_transformers_stand_beside_setfit_on_the_same_draws(script):
    def fits(rows, system, *scores):
        more = {"rows": rows, "set": "sst2", "shots": "8", "system": system, "seconds": "4"}
        return [
            {**more, "seed": str(i), "accuracy": str(score), "peak_mb": "9"}
            for i, score in enumerate(scores)
        ]

    rows = fits("test", "setfit", 0.6, 0.7, 0.5) + fits("test", "lacon", 0.62, 0.74)
    for name in ("cross_entropy", "cross_entropy_24"):  # the second has no row
        rows += fits("test", name, 0.6, 0.7, 0.9)
    rows += (
        fits("dev", "lacon", 0.5, 0.6) + fits("dev", "ce_scl_24", 0.7) + fits("test", "frozen", 1)
    )
    head, setfit, lacon, ce = script.transformers(rows)
    assert head == ["system", "sst2, 8", "seconds", "MB"]
    assert setfit == ["SetFit", "60.0 ± 10.0", "4", "9"]
    # Differences 2 and 4 of two draws, which have no interval.
    assert lacon == ["LaCon", "+3.0", "4", "9"]
    assert ce[:2] == ["cross-entropy", "+13.3 ±57.4"]
    assert script.interval([2.0, 2.1, 2.2]) == "**+2.1** ±0.2"
    assert script.orders(rows, script.ORDERS) == "LaCon over cross-entropy +3.0 (2)"
    chosen = script.on_dev([{**row, "shots": "16"} for row in rows])
    assert chosen == "CE + SCL, 24 steps 70.0, LaCon 50.0 (1 draws)"


def test_a_system_with_fewer_seeds_than_others_says_how_many(script):
    scores = {"lacon": (0.6, 0.7, 0.5), "setfit:num_iterations=1": (0.5, 0.7), "frozen": (0.25,)}
    rows = [
        {"rows": "test", "set": "cr", "shots": "all", "system": name, "accuracy": str(score)}
        for name, found in scores.items()
        for score in found
    ]
    assert script.whole_sets([*rows, {**rows[0], "shots": "8"}, {**rows[0], "rows": "dev"}]) == [
        ["system", "cr"],
        ["SetFit", "60.0 ± 14.1 (2)"],
        ["MiniLM frozen + LR", "25.0 (1)"],
        ["LaCon", "60.0 ± 10.0"],
    ]


def test_a_table_nobody_knows_is_refused(script):
    with pytest.raises(SystemExit, match="results nothing -->; expected one of front"):
        script.rendered("<!-- results nothing --><!-- end -->", {"front": ""})


def test_collecting_names_the_step_that_was_not_run(script, results, tmp_path):
    (results / "few-arq" / "results.jsonl").unlink()
    with pytest.raises(SystemExit, match="run the step few-arq first"):
        script.collect(results, tmp_path / "stored")


def test_large_sets_that_were_not_run_are_left_out_and_said(script, results, tmp_path, capsys):
    (results / "all-labels-comments" / "table.csv").unlink()
    script.collect(results, tmp_path / "stored")
    assert "all-labels-comments was not run" in capsys.readouterr().err
    rows = script.read_csv(tmp_path / "stored" / "all-labels.csv")
    assert {row["dataset"] for row in rows} == {"arq", "ary"}


def test_one_commit_and_the_same_rows_and_texts_make_all(script, data, tmp_path):
    texts = [tmp_path / "text.txt"]
    with pytest.raises(SystemExit, match=r"found no .*text\.txt"):
        script.note_made_of(tmp_path, data, texts)
    texts[0].write_text("one\n", encoding="utf-8")
    script.note_made_of(tmp_path, data, texts)
    script.note_made_of(tmp_path, data, texts)
    texts[0].write_text("two\n", encoding="utf-8")
    with pytest.raises(SystemExit, match="begun with texts "):
        script.note_made_of(tmp_path, data, texts)
    texts[0].write_text("one\n", encoding="utf-8")
    about = json.loads((tmp_path / "about.json").read_text(encoding="utf-8"))
    (tmp_path / "about.json").write_text(json.dumps({**about, "commit": "1234567"}))
    with pytest.raises(SystemExit, match="begun with commit 1234567"):
        script.note_made_of(tmp_path, data, texts)


def test_differences_count_as_ahead_only_beyond_chance(script):
    def row(dataset, difference, p):
        low, high = float(difference) - 0.01, float(difference) + 0.01
        return {
            "system": "superloss", "reference": "tfidf_logreg", "dataset": dataset,
            "difference": difference, "difference_low": low, "difference_high": high, "p_holm": p,
        }  # fmt: skip

    full = [row("msac", "0.02", "0.01"), row("arq", "0.03", "0.05"), row("ary", "-0.02", "0.001")]
    head, first, control, plain = script.differences(full, [*full, row("arq", "0.03", "0.01")])
    assert head == ["system", "minus", *script.SETS.values(), "few labels"]
    assert first[:2] == ["SuperLoss, pretrained", "TF-IDF + LR"]
    assert first[2:5] == ["**+2.0 [+1.0, +3.0]**", "+3.0 [+2.0, +4.0]", "**-2.0 [-3.0, -1.0]**"]
    assert first[5:] == ["", "", "", "+1.5 (2 of 4, 1 behind)"]
    assert control[1:] == ["pretrained encoder, frozen + LR", *7 * [""]]
    assert plain[1:] == ["cross-entropy, pretrained", *7 * [""]]


def test_p_is_corrected_over_the_comparisons_of_every_set(script):
    rows = [
        {"reference": reference, "dataset": name, "p": p, "difference": difference, "p_holm": ""}
        for reference, name, p, difference in [
            ("a", "one", "0.02", 0.1),
            ("a", "two", 0.03, 0.1),
            ("a", "two", 0.01, -0.1),
            ("b", "one", 0.04, 0.1),
            ("a", "two", None, None),
        ]
    ]
    script.correct(rows)
    # By hand, of three against a: 3 * 0.01, 2 * 0.02, and 0.03, which may not be below that.
    assert [row["p_holm"] for row in rows[:4]] == pytest.approx([0.04, 0.04, 0.03, 0.04])
    assert [row.get("significantly_better") for row in rows] == [True, True, False, True, None]


def test_no_stored_p_is_below_the_t_test_of_the_same_means(script):
    def row(system, fits, mean, sd, p, test="hierarchical bootstrap"):
        return {
            **{"dataset": "arq", "shots": "16", "system": system, "fits": str(fits)},
            **{"f1_weighted_mean": str(mean), "f1_weighted_sd": str(sd), "reference": "base"},
            **{"difference": str(mean - 0.45), "p": p, "p_holm": p, "test": test},
            "significantly_better": str(bool(p)),
        }

    rows = [row("base", 5, 0.45, 0.05, "")]
    rows += [row("wide", 5, 0.55, 0.04, "0.001"), row("narrow", 4, 0.85, 0.01, "0.001")]
    rows += [row("other", 5, 0.55, 0.04, "0.001", "corrected resampled t-test")]
    found = script.no_surer_than_welch(rows)
    welch = ttest_ind_from_stats(0.55, 0.04, 5, 0.45, 0.05, 5, equal_var=False).pvalue
    assert [float(one["p"] or 1) for one in found] == pytest.approx([1, welch, 0.001, 0.001])
    assert [float(one["p_holm"] or 1) for one in found] == pytest.approx([1, welch, 0.003, 0.003])
    steady = [row("base", 1, 0.45, "", ""), row("wide", 5, 0.55, 0.04, "0.001")]
    alone = script.no_surer_than_welch(steady)[1]
    assert float(alone["p"]) == pytest.approx(2 * t.sf(0.1 / (0.04 / 5**0.5), 4))


def test_the_pages_of_the_project_say_what_its_tables_say(script):
    script.render(check=True)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("indomain", (Path("encoder"), [Path("text.txt")])),
        ("pretrain_part", ([Path("text.txt")],)),
        ("text_growth", (0.3,)),
    ],
)
def test_the_commands_of_other_scripts_have_options_that_there_are(
    script, data, tmp_path, monkeypatch, name, given
):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    spec = importlib.util.spec_from_file_location(name, SCRIPT.with_name(f"{name}.py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    planned = module.steps(data, *given, tmp_path / "out")
    assert planned
    for one in planned:
        # Parsed, not run: what comes first tells of all that no command takes.
        context, words = None, one.command[3:]
        command = cli
        while isinstance(command, click.Group):
            command, words = command.commands[words[0]], words[1:]
        context = command.make_context(one.name, list(words), resilient_parsing=False)
        assert context.params
