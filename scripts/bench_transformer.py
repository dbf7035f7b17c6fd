"""A pretrained transformer with few rows a class: frozen, fine-tuned, and SetFit beside it.

    python scripts/bench_transformer.py run DATA --model FOLDER --out DIR [--dev]
    python scripts/bench_transformer.py collect DIR

DATA has a folder for each set with train.tsv and test.tsv, label TAB text, or with all.tsv, of
which the rows to score are held out. All systems that read
the model start from the same weights, and all learn from the same drawn rows. `run` adds one line
of results for each fit, and does none again that is there; with another model, vectors or number of
test rows a folder is refused. With `--dev` it draws other training
rows, and scores are those of training rows that were not drawn: what is chosen is chosen there.
`collect` adds the lines to scripts/results/transformer.csv, which `reproduce_results.py render`
prints into the page, in the place of the same fits. Packages: superconext[transformers] and setfit.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch
from default_sets import shown
from doc_tables import read_rows, write_rows
from sklearn.metrics import f1_score

from superconext import SuperConTextClassifier
from superconext.baselines import BASELINES
from superconext.data.reading import read_labelled

ROOT = Path(__file__).parents[1]
STORED = ROOT / "scripts" / "results"

#: Folder of each set, and what its labels are called: DualCL and LaCon read the names.
SETS = {
    "sst2": ("sst2_sentence", {"0": "negative", "1": "positive"}),
    "trec": (
        "trec",
        {
            "0": "description",
            "1": "entity",
            "2": "abbreviation",
            "3": "person",
            "4": "location",
            "5": "number",
        },
    ),
    "cr": ("cr", {"0": "negative", "1": "positive"}),
    "subj": ("subj", {"0": "subjective", "1": "objective"}),
}

#: 24 steps, chosen on dev draws of SST-2, 16 rows a class. What was stored with it learned from
#: nine tenths of the drawn rows.
BRIEF: dict[str, Any] = {
    "epochs": 4,
    "steps_per_epoch": 6,
    "temperature": 0.1,
    "options": "unit=true",
}
#: A small pool of which few rows are retrieved, for the time of CSS-LM.
SMALL_POOL = "pool_size=1000,queries=4,retrieved=8,negative_rows=16"
#: Parameters of each of ours that is fine-tuned, beside the defaults.
FINE_TUNED: dict[str, dict[str, Any]] = {
    "cross_entropy_24": {**BRIEF, "objective": "cross_entropy"},
    "ce_scl_24": {**BRIEF, "objective": "ce_scl"},
    "superloss_24": {**BRIEF, "objective": "superloss"},
    "supcon_24": {**BRIEF, "objective": "supcon", "temperature": 0.3},
    "dualcl_24": {**BRIEF, "objective": "dualcl"},
    "lacon_24": {**BRIEF, "objective": "lacon"},
    "css_lm_24": {**BRIEF, "objective": "css_lm", "options": f"unit=true,{SMALL_POOL}"},
    "dualcl": {},
    "lacon": {},
    "css_lm": {"options": SMALL_POOL},
    "cross_entropy": {},
    "ce_scl": {},
    "superloss": {},
    "supcon": {},
}
#: What teaches the BiLSTM.
TEACHER = "supcon_24"
SYSTEMS = ("tfidf_logreg", "bilstm", "taught", "frozen", "setfit", *FINE_TUNED)
#: `--shots` for all rows.
ALL = "all"

Rows = tuple[list[str], list[str]]


def drawn_rows(labels: list[str], shots: int, seed: int) -> list[int]:
    """`shots` rows of each class."""
    draw = np.random.default_rng(seed).permutation(len(labels))
    rows: list[int] = []
    for name in sorted(set(labels)):
        rows += [int(row) for row in draw if labels[row] == name][:shots]
    return rows


def ours(
    given: dict[str, Any],
    model: str | None,
    seed: int,
    train: Rows,
    pool: list[str],
) -> Any:
    """Fit one of ours; pool: unlabelled texts, for the objective that reads them."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["SUPERCONEXT_CACHE"] = folder  # else the time would be that of reading it
        if given.get("objective") == "css_lm":
            file = Path(folder) / "pool.txt"
            file.write_text("\n".join(pool), encoding="utf-8")
            given = {**given, "unlabelled": str(file)}
        if model:
            given = {**given, "encoder": "transformer", "model": model}
        return SuperConTextClassifier(seed=seed, **given).fit(*train)


def taught(model: str, vectors: str | None, seed: int, train: Rows, pool: list[str]) -> Any:
    """A BiLSTM that learns, beside the labels, what a fine-tuned model says of unlabelled texts."""
    teacher = ours(FINE_TUNED[TEACHER], model, seed, train, pool)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "soft.csv"
        with file.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["text", *teacher.classes_])
            for text, shares in zip(pool, teacher.predict_proba(pool), strict=True):
                writer.writerow([text, *shares])
        given = {"objective": "cross_entropy", "vectors": vectors, "soft_labels": str(file)}
        return ours(given, None, seed, train, pool)


def setfit(model: str, seed: int, train: Rows, **given: Any) -> Callable[[list[str]], Any]:
    """SetFit, by default with one epoch over the pairs that it draws, then a logistic regression;
    given: of its arguments, such as num_iterations, pairs of either kind drawn of each row."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    started = SetFitModel.from_pretrained(model)
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            output_dir=folder,
            seed=seed,
            save_strategy="no",
            report_to="none",
            use_amp=False,
            **given,
        )
        rows = Dataset.from_dict({"text": train[0], "label": train[1]})
        Trainer(model=started, args=arguments, train_dataset=rows).train()
    return lambda texts: started.predict(texts, use_labels=False)


def tfidf(seed: int, train: Rows) -> Callable[[list[str]], Any]:
    return BASELINES.get("tfidf_logreg")().fit(train, None, seed).predict


def fit(
    system: str,
    model: str,
    vectors: str | None,
    seed: int,
    train: Rows,
    pool: list[str],
) -> Any:
    """Fit a system, which may have parameters behind it: NAME:PARAMETER=VALUE:..."""
    name, *more = system.split(":")
    given = {key: _value(text) for key, text in (part.split("=", 1) for part in more)}
    if name == "setfit":
        return setfit(model, seed, train, **given)
    if name == "tfidf_logreg":
        return tfidf(seed, train)
    if name == "taught":
        return taught(model, vectors, seed, train, pool).predict
    if name == "bilstm":
        return ours({"vectors": vectors, **given}, None, seed, train, pool).predict
    known = {"objective": name, **FINE_TUNED.get(name, {})}
    if name == "frozen":
        known = {"freeze": True, "options": "unit=true"}
    return ours({**known, **given}, model, seed, train, pool).predict


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def measured(*arguments: Any, test: Rows, results: Any) -> None:
    """Fit in a process of its own, so that its largest memory is known."""
    began = time.process_time()  # of the processor: others may be at work on it
    predict = fit(*arguments)
    seconds = time.process_time() - began
    began = time.process_time()
    predicted = [str(label) for label in predict(test[0])]
    line = {
        "accuracy": float(np.mean(np.array(predicted) == np.array(test[1]))),
        "f1_weighted": float(f1_score(test[1], predicted, average="weighted")),
        "seconds": round(seconds, 1),
        "predict_seconds": round(time.process_time() - began, 1),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }
    results.put(line)


def run(arguments: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    systems = arguments.systems.split(",")
    if unknown := [name for name in systems if name.partition(":")[0] not in SYSTEMS]:
        raise SystemExit(f"error: --systems {unknown[0]}: expected some of {', '.join(SYSTEMS)}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    note_given(arguments)
    failed = False
    file = arguments.out / ("dev.jsonl" if arguments.dev else "test.jsonl")
    done = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    keys = {(line["set"], line["shots"], line["seed"], line["system"]) for line in done}
    apart = multiprocessing.get_context("fork")
    for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
        for shots in arguments.shots.split(","):
            shots = shots if shots == ALL else int(shots)
            for system in systems:
                key = (arguments.set, shots, seed, system)
                if key in keys:
                    continue
                train, pool, test = rows_of(arguments, shots, seed)
                results = apart.SimpleQueue()
                known = (system, arguments.model, arguments.vectors, seed)
                given = (*known, train, pool)
                child = apart.Process(
                    target=measured, args=given, kwargs={"test": test, "results": results}
                )
                child.start()
                child.join()
                if child.exitcode:
                    print(f"{key}: failed", file=sys.stderr)
                    failed = True
                    continue
                line = dict(zip(("set", "shots", "seed", "system"), key, strict=True))
                line |= results.get()
                with file.open("a") as stream:
                    stream.write(json.dumps(line) + "\n")
                print(line, file=sys.stderr)
    if failed:
        raise SystemExit(1)


def note_given(arguments: argparse.Namespace) -> None:
    """Write `given.json`: the model, word vectors and number of test rows of all lines. Raises
    SystemExit where a folder has those of others."""
    given = {name: shown(str(getattr(arguments, name))) for name in ("model", "vectors")}
    given |= {"test_rows": str(arguments.test_rows)}
    path = arguments.out / "given.json"
    if path.exists() and (before := json.loads(path.read_text(encoding="utf-8"))) != given:
        raise SystemExit(f"error: {arguments.out} was begun with {before}; expected {given}")
    path.write_text(json.dumps(given) + "\n", encoding="utf-8")


def rows_of(
    arguments: argparse.Namespace, shots: int | str, seed: int
) -> tuple[Rows, list[str], Rows]:
    """Training rows, unlabelled texts, and rows to score."""
    folder, names = SETS[arguments.set]
    whole = arguments.data / folder / "all.tsv"
    test = read_labelled(whole if whole.exists() else whole.with_name("test.tsv"))
    # All rows are scored where all are learned from, except in a file of both.
    most = None if shots == ALL and not whole.exists() else arguments.test_rows
    order = np.random.default_rng(0).permutation(len(test.labels))[:most]
    if whole.exists():
        train, free = test, sorted({*range(len(test.labels))} - {*map(int, order)})
    else:
        train = read_labelled(whole.with_name("train.tsv"))
        free = [*range(len(train.labels))]
    labels = [names[label] for label in train.labels]
    # Draws to choose on are never those that are reported.
    stream = seed + 1000 * arguments.dev
    if shots == ALL:
        held_out = arguments.test_rows if arguments.dev else 0
        drawn = [free[row] for row in np.random.default_rng(stream).permutation(len(free))]
        drawn = drawn[held_out:]
    else:
        drawn = [free[r] for r in drawn_rows([labels[r] for r in free], int(shots), stream)]
    rest = np.random.default_rng(7).permutation(sorted({*free} - {*drawn}))
    held = [int(row) for row in rest[: arguments.test_rows]]
    pool = [train.texts[row] for row in rest[arguments.test_rows :]]
    if arguments.dev:
        scored = [train.texts[row] for row in held], [labels[row] for row in held]
    else:
        scored = [test.texts[r] for r in order], [names[test.labels[r]] for r in order]
    return ([train.texts[r] for r in drawn], [labels[r] for r in drawn]), pool, scored


def collect(arguments: argparse.Namespace) -> None:
    """Add the lines, which were made by the present commit's package, to scripts/results/."""
    found = [
        {"rows": rows, **json.loads(line)}
        for rows in ("dev", "test")
        if (arguments.out / f"{rows}.jsonl").exists()
        for line in (arguments.out / f"{rows}.jsonl").read_text().splitlines()
    ]

    def fit_of(line: dict[str, Any]) -> tuple[str, ...]:
        return tuple(str(line[name]) for name in ("rows", "set", "shots", "system", "seed"))

    fits = Counter(map(fit_of, found))
    if not found:
        raise SystemExit(f"error: found no results in {arguments.out}; expected those of `run`")
    if twice := [fit for fit, count in fits.items() if count > 1]:
        raise SystemExit(f"found {twice[0]} twice in {arguments.out}; expected one line a fit")
    stored, versions = STORED / "transformer.csv", STORED / "transformer.json"
    before = read_rows(stored) if stored.exists() else []
    lines = [*(line for line in before if fit_of(line) not in fits), *found]
    lines.sort(
        key=lambda line: (
            line["set"], str(line["shots"]).rjust(4), line["system"], int(line["seed"])
        )
    )  # fmt: skip
    git = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    of = [sorted({fit[place] for fit in fits}) for place in range(1, 5)]
    made_by = {
        "commit": arguments.commit or subprocess.check_output(git, text=True).strip(),
        "of": "; ".join(
            f"{name} {', '.join(some)}"
            for name, some in zip(("sets", "shots", "systems", "seeds"), of, strict=True)
        ),
        "transformers": version("transformers"),
    }
    earlier = json.loads(versions.read_text(encoding="utf-8")) if before else {"commits": []}
    about = {
        "commits": [*earlier.pop("commits"), made_by],
        "python": platform.python_version(),
        **{name: version(name) for name in ("torch", "transformers", "setfit")},
        **earlier,
        "fine_tuned": FINE_TUNED,
    }
    columns = dict.fromkeys(name for line in (*before, *found) for name in line)
    lines = [{**dict.fromkeys(columns, ""), **line} for line in lines]
    write_rows(stored, lines)
    versions.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run")
    one.set_defaults(do=run)
    one.add_argument("data", type=Path)
    one.add_argument("--model", required=True, help="folder of the weights")
    one.add_argument("--vectors", help="word vectors of the BiLSTM")
    one.add_argument("--out", required=True, type=Path)
    one.add_argument("--set", choices=SETS, default="sst2")
    one.add_argument("--shots", default="16,8,64", help=f"rows of each class, or {ALL}")
    one.add_argument("--seeds", type=int, default=5)
    one.add_argument("--first-seed", type=int, default=0)
    one.add_argument("--test-rows", type=int, default=500)
    one.add_argument("--systems", default=",".join(SYSTEMS))
    one.add_argument("--dev", action="store_true", help="draws and rows to choose on")
    other = commands.add_parser("collect")
    other.set_defaults(do=collect)
    other.add_argument("out", type=Path)
    other.add_argument("--commit", help="that the lines were made by; unset: the present one")
    arguments = parser.parse_args()
    arguments.do(arguments)


if __name__ == "__main__":
    main()
