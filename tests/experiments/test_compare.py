"""A comparison ends, goes on where it was stopped, refuses another, and comes out again."""

import dataclasses
import json
import sys

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score

from superconext.baselines.linear import TfidfLogisticRegression
from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError, DataError, RunError, StoppedEarly, TrainingError
from superconext.core.progress import Progress
from superconext.core.registry import Entry
from superconext.data.reading import read_labelled
from superconext.experiments import compare as comparing
from superconext.experiments import fit_job
from superconext.experiments.compare import compare
from superconext.experiments.plan import Workers
from superconext.experiments.record import only_writer, read_results
from superconext.experiments.runner import verify
from superconext.experiments.systems import DataSet, System
from superconext.fitting.fit import fit_model
from superconext.objectives import catalogue
from superconext.probe import METRICS
from superconext.report import figures
from tests.experiments.conftest import Heard, changed

OBJECTIVES = ["superloss", "cross_entropy"]
NAMES = ["majority", "tfidf_logreg", "tfidf_svm", "vectors_logreg"]


def without_times(folder):
    lines = read_results(folder / "results.jsonl")
    return {key: {k: v for k, v in line.items() if k != "seconds"} for key, line in lines.items()}


def test_lines_are_the_fits_of_the_library(request_of, data, tmp_path):
    request = request_of()
    result = compare(request, Progress())
    keys = [(name, 0, "given") for name in NAMES]
    keys += [(name, seed, "given") for name in OBJECTIVES for seed in (0, 1)]
    lines = read_results(tmp_path / "out" / "results.jsonl")
    assert set(lines) == set(keys) and len(result.lines) == 8
    train, dev, test = (read_labelled(data / f"{s}.tsv") for s in ("train", "dev", "test"))
    index = {"neg": 0, "pos": 1}
    truth = [index[label] for label in test.labels]
    for line in lines.values():
        assert line["truth"] == truth and line["rows"] == {"train": 50, "dev": 16, "test": 24}
        for told in filter(None, (line, line.get("native"))):
            assert told["test"]["accuracy"] == accuracy_score(truth, told["predictions"])
            for kind in ("macro", "weighted"):
                expected = f1_score(truth, told["predictions"], average=kind)
                assert told["test"][f"f1_{kind}"] == pytest.approx(expected)
        assert ("native" in line) == (line["objective"] == "cross_entropy")
    config = resolve({**request.given, "objective": "cross_entropy", "seed": 1})
    model = fit_model(train, config, dev).model
    line = lines["cross_entropy", 1, "given"]
    assert line["predictions"] == [index[label] for label in model.predict(test.texts)]
    own = model.answer(test.texts).native.argmax(axis=1)
    assert line["native"]["predictions"] == own.tolist() and line["probe_C"] == model.probe.c
    rival = TfidfLogisticRegression()
    rival.fit((train.texts, train.labels), (dev.texts, dev.labels))
    expected = [index[label] for label in rival.predict(test.texts)]
    assert lines["tfidf_logreg", 0, "given"]["predictions"] == expected
    assert len({line["config"] for line in lines.values()}) == 8
    names = [row.name for row in result.table.rows]
    assert names == [*NAMES, "superloss", "cross_entropy", "cross_entropy (own rule)"]
    record = json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"))
    of = record["datasets"][""]
    assert of["files"]["test"]["sha256"] == test.sha256 and of["labels"] == ["neg", "pos"]
    assert of["identity"]["parameters"]["epochs"] == 2
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        ".lock", "comparison.json", "report.html", "results.jsonl", "table.csv", "table.md",
        "table.tex",
    }  # fmt: skip


@pytest.mark.long
def test_side_by_side_gives_what_one_after_another_does(request_of, tmp_path):
    request = request_of(given=False)
    compare(request, Progress())
    compare(changed(request, out=str(tmp_path / "two"), workers=Workers(2)), Progress())
    one, two = without_times(tmp_path / "out"), without_times(tmp_path / "two")
    assert one == two and len(one) == 12
    splits = {line["split"] for line in one.values()}
    assert splits == {"resampled-0", "resampled-1"}
    truths = {key[2]: line["truth"] for key, line in one.items()}
    assert all(line["truth"] == truths[key[2]] for key, line in one.items())
    assert all(line["rows"]["train"] == 40 for line in one.values())


def test_a_fit_that_stands_is_not_run_again(request_of, tmp_path, monkeypatch):
    request = request_of(objectives="superloss", reference="majority")
    compare(request, Progress())
    path = tmp_path / "out" / "results.jsonl"
    whole = path.read_bytes()
    run = []
    real = fit_job.run_fit
    monkeypatch.setattr(fit_job, "run_fit", lambda fit, *rest: run.append(fit) or real(fit, *rest))
    compare(request, Progress())
    assert not run and path.read_bytes() == whole
    cut = whole[: whole.rindex(b"\n", 0, -1) + 30]  # the last line torn, as by a kill
    path.write_bytes(cut)
    heard = Heard()
    result = compare(changed(request, seeds=3), heard)
    assert [str(fit) for fit in run] == [
        "superloss, seed 1, split given",
        "superloss, seed 2, split given",
    ]
    assert result.table.rows[-1].fits == 3 and "5 of 7 fits are in" in heard.lines[0]
    path.write_bytes(whole)
    again = compare(changed(request, seeds=1, reference="tfidf_svm"), Progress())
    assert again.table.rows[-1].fits == 1 and path.read_bytes() == whole


def test_a_folder_in_which_no_fit_ended_binds_nobody(request_of, tmp_path):
    """As after an error before the first fit, whose advice is to give other rows."""
    request = request_of(objectives="superloss", seeds=1)
    compare(request, Progress())
    (tmp_path / "out" / "results.jsonl").write_bytes(b"")
    given = {**request.given, "epochs": 3}
    assert compare(changed(request, given=given), Progress()).table.rows[-1].fits == 1
    with pytest.raises(RunError, match="made with epochs = 3, now 2"):
        compare(request, Progress())


def test_other_data_parameters_or_version_are_refused(request_of, data, tmp_path, monkeypatch):
    request = request_of(objectives="superloss", seeds=1)
    compare(request, Progress())
    before = (tmp_path / "out" / "results.jsonl").read_bytes()
    vectors = tmp_path / "vectors.txt"
    vectors.write_bytes((data / "vectors.txt").read_bytes())

    def refused(message, **changes):
        with pytest.raises(RunError, match=message):
            compare(changed(request, **changes), Heard())

    refused("made with epochs = 2, now 3", given={**request.given, "epochs": 3})
    refused("other rows", test=str(data / "dev.tsv"))
    refused("made with splits 'given', now 'dev'", dev=None)
    # The same vectors elsewhere are the same; others in the same place are not.
    moved = changed(request, given={**request.given, "vectors": str(vectors)})
    compare(moved, Progress())
    vectors.write_text(vectors.read_text("utf-8").replace("0.1", "0.2"), "utf-8")
    refused("made with vectors = 'sha256", given=moved.given)
    monkeypatch.setattr("superconext.experiments.record.__version__", "99.0")
    refused("made with version .*, this is 99.0")
    assert (tmp_path / "out" / "results.jsonl").read_bytes() == before


def test_a_line_of_another_folder_is_refused(request_of, tmp_path):
    request = request_of(objectives="superloss", seeds=2)
    compare(request, Progress())
    other = changed(request, out=str(tmp_path / "other"), given={**request.given, "epochs": 3})
    compare(other, Progress())
    paths = [tmp_path / name / "results.jsonl" for name in ("out", "other")]
    lines, others = (path.read_bytes().splitlines(keepends=True) for path in paths)
    paths[0].write_bytes(b"".join([*lines[:-1], others[-1]]))
    with pytest.raises(RunError, match="the line of superloss, seed 1, split given was made with"):
        compare(request, Progress())
    paths[0].write_bytes(b"".join(lines))
    compare(request, Progress())


def test_a_usual_value_that_changes_a_system_of_another_preset_is_refused(request_of, tmp_path):
    request = request_of(objectives="superloss:preset=paper+epochs=1", seeds=1)
    small = {"vectors": request.given["vectors"], "hidden_size": 8, "layers": 2}
    compare(changed(request, given=small), Progress())
    compare(changed(request, given=small), Progress())
    with pytest.raises(RunError, match="other rows, parameters or code"):  # the paper has 0.3
        compare(changed(request, given={**small, "dropout": 0.2}), Progress())
    assert resolve(small) == resolve({**small, "dropout": 0.2})


OWN = """
from superconext.objectives.base import Objective

class Length(Objective):
    def forward(self, batch):
        return batch.sentence.square().sum(dim=1).mean() * {factor}, {{}}
"""


def test_lines_of_code_that_was_changed_since_are_refused(request_of, tmp_path, monkeypatch):
    file = tmp_path / "own.py"
    monkeypatch.setattr(catalogue.OBJECTIVES, "_added", {})

    def compared(factor):
        file.write_text(OWN.format(factor=factor), encoding="utf-8")
        catalogue.OBJECTIVES._added["length"] = Entry(f"{file}:Length", "")
        return compare(request_of(objectives="length", seeds=1), Progress())

    compared("1")
    compared("1")
    with pytest.raises(RunError, match=r"length, seed 0, .* was made with other .* code"):
        compared("2")


def forget_own_code(monkeypatch):
    """As in a process of its own."""
    monkeypatch.setattr(METRICS, "used", {})
    for name in [name for name in sys.modules if name.startswith("superconext_own_")]:
        monkeypatch.delitem(sys.modules, name)


def test_lines_of_a_metric_that_was_changed_since_are_refused(request_of, tmp_path, monkeypatch):
    file = tmp_path / "own.py"
    monkeypatch.setattr(METRICS, "_added", {"size": Entry(f"{file}:size")})
    request = request_of(objectives="superloss", seeds=1)
    for value in ("0.5", "0.5", "0.25"):
        forget_own_code(monkeypatch)
        file.write_text(f"def size(truth, predicted, classes):\n    return {value}\n", "utf-8")
        if value == "0.25":
            with pytest.raises(RunError, match="with another file of metric 'size'"):
                compare(request, Progress())
        else:
            compare(request, Progress())
    monkeypatch.setattr(METRICS, "_added", {})
    compare(request, Progress())


@pytest.mark.parametrize(
    "change",
    [{"verb": None}, {"systems": None}, {"systems": 1}, {"datasets": {"": {"identity": "a"}}}],
)
def test_a_record_without_its_parts_is_refused(change, request_of, tmp_path):
    request = request_of(objectives="superloss", seeds=1)
    compare(request, Progress())
    path = tmp_path / "out" / "comparison.json"
    record = {**json.loads(path.read_text("utf-8")), **change}
    path.write_text(json.dumps({k: v for k, v in record.items() if v is not None}), "utf-8")
    with pytest.raises(RunError, match="found no record of format 2"):
        compare(request, Progress())


def test_a_folder_of_something_else_or_in_use_is_refused(request_of, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").touch()
    with pytest.raises(RunError, match="holds no comparison"):
        compare(request_of(out=str(tmp_path / "full")), Progress())
    (tmp_path / "out").mkdir()
    with (
        only_writer(tmp_path / "out", Progress()),
        pytest.raises(RunError, match="is writing there"),
    ):
        compare(request_of(), Progress())


def test_parameters_that_no_system_reads_are_told(request_of):
    heard = Heard()
    systems = "cross_entropy:temperature=0.5,lsan:temperature=1.0,superloss"
    request = request_of(objectives=systems, seeds=1)
    compare(changed(request, given={**request.given, "projection": "linear"}), heard)
    told = [line for line in heard.lines if "nothing reads it" in line]
    assert told == [
        "warning: temperature with objective = 'cross_entropy' or objective = 'lsan', where "
        "nothing reads it: leave it out"
    ]  # superloss reads the projection


def test_what_cannot_be_fitted_leaves_no_folder(request_of, tmp_path):
    request = request_of()
    for error, message, changes in (
        (ConfigError, "device", {"given": {"device": "abacus"}}),
        (ConfigError, "epochs", {"given": {"epochs": 0}}),
        (ConfigError, "margin", {"given": {"options": "margin=1"}}),
        (ConfigError, "reference", {"reference": "supcon"}),
        (DataError, "no such file", {"given": {"unlabelled": "nowhere.txt"}}),
        (DataError, "no such file", {"train": "nowhere.tsv"}),
    ):
        with pytest.raises(error, match=message):
            compare(changed(request, **changes), Progress())
    assert not (tmp_path / "out").exists()


def test_a_failed_training_is_told_and_the_others_stand(request_of, tmp_path, monkeypatch):
    real = fit_job.run_fit

    def failing(fit, *rest):
        if fit.system.name == "superloss" and fit.seed == 0:
            raise TrainingError("loss is nan")
        return real(fit, *rest)

    request = request_of()
    with monkeypatch.context() as patch:
        patch.setattr(fit_job, "run_fit", failing)
        heard = Heard()
        with pytest.raises(RunError, match=r"1 of 8 fits failed.*superloss, seed 0.*loss is nan"):
            compare(request, heard)
    assert "warning: superloss, seed 0, split given: loss is nan" in heard.lines
    assert len(read_results(tmp_path / "out" / "results.jsonl")) == 7
    assert "| superloss | 1 |" in (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    compare(request, Progress())
    assert len(read_results(tmp_path / "out" / "results.jsonl")) == 8


def test_ctrl_c_in_the_middle_of_a_training_keeps_whole_fits_alone(
    request_of, tmp_path, monkeypatch
):
    from superconext.data.sampler import BalancedBatches

    batches = BalancedBatches.epoch

    def pressing(self, number):
        if number == 1:  # the first epoch is done, so that training would keep it
            raise KeyboardInterrupt
        return batches(self, number)

    request = request_of(objectives="superloss", seeds=1)
    with monkeypatch.context() as patch:
        patch.setattr(BalancedBatches, "epoch", pressing)
        with pytest.raises(StoppedEarly, match=r"4 of 5 fits are in .*repeating the command"):
            compare(request, Progress())
    assert len(read_results(tmp_path / "out" / "results.jsonl")) == 4
    compare(request, Progress())
    assert len(read_results(tmp_path / "out" / "results.jsonl")) == 5


def test_ctrl_c_before_and_after_the_fits_tells_what_is_kept(request_of, tmp_path, monkeypatch):
    from superconext.experiments import compare as comparing
    from superconext.experiments import runner

    def pressed(*_, **__):
        raise KeyboardInterrupt

    request = request_of(objectives="superloss", seeds=1)
    for number, (module, name) in enumerate(
        [(runner, "make_record"), (comparing, "publish"), (runner, "make_record")]
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, pressed)
            told = StoppedEarly if number else KeyboardInterrupt
            with pytest.raises(told, match="are in .*results.jsonl: resume" if number else None):
                compare(request, Progress())
    assert len(read_results(tmp_path / "out" / "results.jsonl")) == 5


def test_deduplicated_rows_are_what_is_fitted(request_of, data, tmp_path):
    train = tmp_path / "train.tsv"
    rows = (data / "train.tsv").read_text("utf-8") + (data / "test.tsv").read_text("utf-8")[11:]
    train.write_text(rows, "utf-8")
    request = request_of(train=str(train), objectives="superloss", seeds=1)
    heard = Heard()
    leaky = compare(request, heard)
    assert any("LEAKAGE: 24 of 24 test texts are in train" in line for line in heard.lines)
    assert any("LEAKAGE" in note for note in leaky.table.notes)
    out = str(tmp_path / "clean")
    clean = compare(changed(request, deduplicate=True, out=out), Heard())
    compare(request_of(objectives="superloss", seeds=1, out=str(tmp_path / "ref")), Progress())
    figures_of = {name: without_times(tmp_path / name) for name in ("clean", "ref")}
    for lines in figures_of.values():
        for line in lines.values():
            del line["config"]  # the order was another, so the rows' hash may be
    assert figures_of["clean"] == figures_of["ref"]
    assert leaky.lines[0]["rows"]["train"] == 74 and clean.lines[0]["rows"]["train"] == 50
    assert not any("LEAKAGE" in note for note in clean.table.notes)


def test_verify_runs_the_lines_again(request_of, tmp_path):
    request = request_of(given=False, seeds=1)
    compare(request, Progress())
    out = tmp_path / "out"
    checks = verify(out, 99, Progress())
    assert len(checks) == 6 and all(check.same for check in checks)
    assert len(verify(out, 2, Progress())) == 2
    path = out / "results.jsonl"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    del lines[1]["steps" if "steps" in lines[1] else "rows"]
    lines[-1]["native"]["predictions"][0] ^= 1
    lines[0]["predictions"][2] ^= 1
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    wrong = {str(check) for check in verify(out, 6, Progress()) if not check.same}
    assert [
        said for said in wrong if said.endswith(": DIFFERS (0 of 5 predictions; differing: rows)")
    ]
    wrong = {said for said in wrong if "differing: rows" not in said}
    assert wrong == {
        "majority, seed 0, split resampled-0: DIFFERS (1 of 5 predictions; differing: predictions)",
        "cross_entropy, seed 0, split resampled-0: DIFFERS (0 of 5 predictions; differing: native)",
    }


def test_verify_needs_the_same_files_and_version(request_of, data, tmp_path, monkeypatch):
    train = tmp_path / "train.tsv"
    train.write_bytes((data / "train.tsv").read_bytes())
    compare(request_of(train=str(train), objectives="superloss", seeds=1), Progress())
    with monkeypatch.context() as patch:
        patch.setattr("superconext.experiments.runner.__version__", "99.0")
        with pytest.raises(RunError, match=r"this is 99\.0"):
            verify(tmp_path / "out", 1, Progress())
    train.write_text(train.read_text("utf-8") + "neg\tkhayb\n", "utf-8")
    with pytest.raises(RunError, match="have changed since"):
        verify(tmp_path / "out", 1, Progress())
    with pytest.raises(RunError, match="cannot be read"):
        verify(tmp_path / "none", 1, Progress())


def test_the_figure_is_drawn_where_it_can_be(request_of, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    heard = Heard()
    request = request_of(objectives="superloss", seeds=1)
    compare(request, heard)
    assert heard.lines[-1] == f"note: {figures.UNAVAILABLE}"
    monkeypatch.undo()
    if not figures.available():
        pytest.skip("figures need the extra plots")
    compare(request, heard)
    picture = tmp_path / "out" / "figures" / f"{comparing.FIGURE}.png"
    assert picture.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    assert np.all([row.fits == 1 for row in compare(request, heard).table.rows])


def test_systems_with_parameters_of_their_own_stand_in_one_table(request_of, data, tmp_path):
    mined = "superloss:options.mining=topk+options.mining_threshold=3+options.mining_warmup=0"
    request = request_of(objectives=f"superloss,{mined}", seeds=1)
    result = compare(request, Progress())
    assert [row.name for row in result.table.rows] == [*NAMES, "superloss", mined]
    lines = read_results(tmp_path / "out" / "results.jsonl")
    plainly, line = lines["superloss", 0, "given"], lines[mined, 0, "given"]
    assert plainly["parameters"] == {} and plainly["config"] != line["config"]
    assert line["system"] == mined and line["objective"] == "superloss"
    own = {
        "options.mining": "topk",
        "options.mining_threshold": 3,
        "options.mining_warmup": 0,
    }
    assert line["parameters"] == own
    train, dev, test = (read_labelled(data / f"{s}.tsv") for s in ("train", "dev", "test"))
    for found, parameters in ((plainly, {}), (line, own)):
        config = resolve({**request.given, **parameters, "seed": 0})
        model = fit_model(train, config, dev).model
        assert found["predictions"] == [("neg", "pos").index(x) for x in model.predict(test.texts)]
    assert all(check.same for check in verify(tmp_path / "out", 9, Progress()))


def test_a_system_s_name_stands_for_one_thing(request_of, data, tmp_path):
    def named(**parameters):
        return (System("ours", "superloss", tuple(parameters.items())),)

    vectors = tmp_path / "vectors.txt"
    vectors.write_bytes((data / "vectors.txt").read_bytes())
    own = {"epochs": 1, "vectors": str(vectors)}
    request = request_of(systems=named(**own), seeds=1)
    compare(request, Progress())
    before = (tmp_path / "out" / "results.jsonl").read_bytes()
    with pytest.raises(RunError, match=r"system 'ours' were made with .*epochs = 1.*epochs = 2"):
        compare(changed(request, systems=named(**{**own, "epochs": 2})), Progress())
    vectors.write_text(vectors.read_text("utf-8").replace("0.1", "0.2"), "utf-8")
    with pytest.raises(RunError, match="system 'ours' were made with"):
        compare(request, Progress())
    assert (tmp_path / "out" / "results.jsonl").read_bytes() == before
    other = (System("ours too", "superloss", (("epochs", 2),)),)
    result = compare(changed(request, systems=other), Progress())
    assert "ours too: superloss, epochs = 2." in result.table.notes
    # Lines of systems that are no longer asked for can still be verified.
    vectors.write_bytes((data / "vectors.txt").read_bytes())
    assert all(check.same for check in verify(tmp_path / "out", 9, Progress()))


def test_several_data_sets_have_a_table_each_and_one_of_all(request_of, data, tmp_path):
    files = {name: str(data / f"{name}.tsv") for name in ("train", "dev", "test")}
    datasets = (
        DataSet("first", **files),
        DataSet("second", files["train"], parameters=(("epochs", 1),)),
    )
    request = request_of(objectives="superloss", seeds=2, datasets=datasets)
    result = compare(request, Progress())
    assert list(result.tables) == ["first", "second"]
    alone = {}
    for data_set, given in zip(datasets, ({}, {"epochs": 1}), strict=True):
        out = str(tmp_path / f"alone-{data_set.name}")
        same = {"datasets": (dataclasses.replace(data_set, name="", parameters=()),), "out": out}
        alone[data_set.name] = compare(
            changed(request, **same, given={**request.given, **given}), Progress()
        )
    for name, table in result.tables.items():
        for row, other in zip(table.rows, alone[name].table.rows, strict=True):
            assert (row.name, row.values, row.p) == (other.name, other.values, other.p)
        folder = tmp_path / "out" / name
        assert {path.name for path in folder.iterdir()} == {"table.md", "table.csv", "table.tex"}
    lines = read_results(tmp_path / "out" / "results.jsonl")
    assert len(lines) == 16 and ("superloss", 1, "second/resampled-1") in lines
    assert {line["dataset"] for line in lines.values()} == {"first", "second"}
    assert result.overview.headings == ["system", "first", "second", "mean", "mean rank"]
    rows = (tmp_path / "out" / "table.csv").read_text("utf-8").splitlines()
    assert len(rows) == 1 + 10 and rows[1].startswith("first,majority")
    assert all(check.same for check in verify(tmp_path / "out", 4, Progress()))
    # A data set may be left out and come back; other rows under its name may not.
    compare(changed(request, datasets=datasets[1:]), Progress())
    heard = Heard()
    compare(request, heard)
    assert "16 of 16 fits are in" in heard.lines[-2] and "figures" in heard.lines[-1]
    altered = (dataclasses.replace(datasets[0], test=files["dev"]), datasets[1])
    with pytest.raises(RunError, match=r"other rows \(test\) \(data set first\)"):
        compare(changed(request, datasets=altered), Heard())
    with pytest.raises(RunError, match="other data sets"):
        compare(request_of(objectives="superloss"), Heard())


def test_rows_without_a_label_are_learned_from_as_in_train(request_of, data, tmp_path):
    rows = (data / "train.tsv").read_text("utf-8").splitlines()
    file = tmp_path / "half.tsv"
    file.write_text("\n".join([*rows, "\tnadi bzaf", "\tnadi zwin bzaf"]) + "\n", "utf-8")
    given = {"vector_dimension": 8, "epochs": 1, "hidden_size": 8}
    request = dataclasses.replace(request_of(objectives="superloss", seeds=1), given=given)
    request = changed(request, train=str(file), drop_unlabelled=True)
    result = compare(request, Progress())
    train = read_labelled(file, drop_unlabelled=True)
    dev, test = (read_labelled(data / f"{name}.tsv") for name in ("dev", "test"))
    assert list(train.unlabelled) == ["nadi bzaf", "nadi zwin bzaf"]
    model = fit_model(train, resolve({**given, "seed": 0}), dev).model
    (line,) = (line for line in result.lines if line["system"] == "superloss")
    assert line["predictions"] == [("neg", "pos").index(x) for x in model.predict(test.texts)]
    less = tmp_path / "less.tsv"
    less.write_text("\n".join([*rows, "\tnadi bzaf"]) + "\n", "utf-8")
    with pytest.raises(RunError, match="other rows without a label"):
        compare(changed(request, train=str(less)), Progress())
