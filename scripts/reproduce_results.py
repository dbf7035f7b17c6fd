"""The figures of README.md and docs/results.md: run them, collect them, print them in the pages.

    python scripts/reproduce_results.py run DATA TEXT... --out DIR [--only STEP,STEP] [--list]
    python scripts/reproduce_results.py collect DIR
    python scripts/reproduce_results.py render [--check]

`run` makes word vectors and an encoder of the unlabelled TEXT files, then compares on the
labelled sets of DATA (a folder for each set with train.tsv, dev.tsv and test.tsv, or all.tsv:
label TAB text). Run it again to resume; it refuses to resume on another commit. `collect` copies
its tables to scripts/results/ and names the sets it leaves out because their step was not run.
`render` prints them into the pages between `<!-- results NAME -->` and `<!-- end -->`, where
nothing is typed; with `--check` it writes nothing and fails if a page differs from the tables.
Published figures of others are in scripts/results/published.csv, with their source.
SetFit is fitted too where SETFIT_MODEL and SUPERCONEXT_BASELINES are set as setfit_baseline.py
says.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import statistics
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from superconext.core.files import file_sha256

ROOT = Path(__file__).parents[1]
STORED = ROOT / "scripts" / "results"
PAGES = ("README.md", "docs/results.md", "docs/protocols.md", "docs/transformer.md")

#: Sets in the order of the tables, with their heading.
SETS = {
    "msac": "MSAC",
    "arq": "arq",
    "ary": "ary",
    "twifil": "TwiFil",
    "tsac": "TSAC",
    "djalil": "Djalil",
}
FOLDERS = {
    "msac": "msac",
    "arq": "afrisenti_arq",
    "ary": "afrisenti_ary",
    "twifil": "twifil_dziribert",
    "tsac": "tsac",
    "djalil": "algerian_djalil",
}
#: Comparisons with all labels: their sets and seeds, fewer where fits take minutes.
FULL = {
    "all-labels": (("msac", "arq"), 5),
    "all-labels-tweets": (("ary", "twifil"), 5),
    "all-labels-comments": (("tsac", "djalil"), 3),
}
#: That may be left out.
OPTIONAL = "all-labels-comments"
#: Sets of given files whose copies are removed too: hundreds of test texts stand in train.
LEAKING = ("tsac",)
SHOTS = "8,16,32,64,128"
#: Rare classes get more weight in all systems with probabilities, as `train` gives it by default;
#: draws of as many rows of each class have none.
ADJUSTED = 0.5
#: Those that the page shows.
SHOWN_SHOTS = ("8", "16", "64")
#: Rows of a class that SetFit is fitted to.
PEER_SHOTS = "16"

#: Systems in the order of the tables: the name a table says, and what it was given.
SYSTEMS = {
    "majority": ("majority class", "labels"),
    "tfidf_logreg": ("TF-IDF + LR", "labels"),
    "tfidf_svm": ("TF-IDF + SVM", "labels"),
    "nbsvm": ("NB-SVM", "labels"),
    "fasttext": ("fastText", "labels"),
    "setfit": ("SetFit, English MiniLM", "labels, transformer"),
    "ngrams": ("n-grams", "labels"),
    "plain_vectors_logreg": ("mean word vectors + LR", "labels, text"),
    "vectors_logreg": ("mean word vectors, emoji + LR", "labels, text"),
    "learned_vectors_logreg": ("mean of the encoder's word vectors, emoji + LR", "labels, text"),
    "pretrained_logreg": ("pretrained encoder, frozen + LR", "labels, text"),
    "cross_entropy": ("cross-entropy, pretrained", "labels, text"),
    "superloss": ("SuperLoss, pretrained", "labels, text"),
    "superloss:probe_features=encoder+ngrams": (
        "SuperLoss, pretrained, + n-grams",
        "labels, text",
    ),
    "auto": ("superconext train, by default", "labels, text"),
}
#: What all systems are compared with, and ours beside it with its control: the same text and
#: labels without the step that the system adds.
TFIDF = "tfidf_logreg"
OURS = {
    "vectors_logreg": "plain_vectors_logreg",
    "pretrained_logreg": "vectors_logreg",
    "cross_entropy": "pretrained_logreg",
    "superloss": "pretrained_logreg",
    "superloss:probe_features=encoder+ngrams": "pretrained_logreg",
    "auto": "pretrained_logreg",
}
#: The control that no comparison fits unless it is named.
PLAIN_CONTROL = OURS["vectors_logreg"]
#: Comparisons on the draws of another, of whose systems these are taken. Word vectors are those
#: that pretraining began with; beside an encoder, a comparison has those that it has made of them.
BESIDE = {"setfit": ("setfit",), "words": (PLAIN_CONTROL, "vectors_logreg")}
LEARNED = {"vectors_logreg": "learned_vectors_logreg"}
#: The objective that ours has to beat.
PLAIN = "cross_entropy"
#: All that systems are compared with.
REFERENCES = (TFIDF, *dict.fromkeys(OURS.values()), PLAIN)
#: Whose differences the page shows, and from what.
SHOWN_DIFFERENCES = {
    "vectors_logreg": (OURS["vectors_logreg"],),
    "pretrained_logreg": (OURS["pretrained_logreg"],),
    "superloss": (TFIDF, OURS["superloss"], PLAIN),
    "auto": (TFIDF,),
}
#: Rows of the README's table.
FRONT = (
    "tfidf_logreg",
    "setfit",
    "vectors_logreg",
    "pretrained_logreg",
    "cross_entropy",
    "superloss",
    "auto",
)
#: Left out of the page's tables; the stored ones have them.
LESSER = ("majority", "tfidf_svm", "nbsvm", "ngrams", *LEARNED.values())
#: Beside the published figures.
COMPARED = ("tfidf_logreg", "superloss")
#: Systems of MTEB's task.
MTEB = {
    "vectors_mteb": "mean of its word vectors (ours)",
    "pretrained_mteb": "pretrained encoder, frozen (ours)",
    "tfidf_logreg": "TF-IDF + LR, tuned on the same rows",
}
#: Systems of `bench_transformer.py`, in the order of its table.
TRANSFORMERS = {
    "setfit": "SetFit",
    "tfidf_logreg": "TF-IDF + LR",
    "bilstm": "BiLSTM",
    "taught": "BiLSTM taught by SupCon",
    "frozen": "MiniLM frozen + LR",
    "cross_entropy_24": "cross-entropy, 24 steps",
    "ce_scl_24": "CE + SCL, 24 steps",
    "superloss_24": "SuperLoss, 24 steps",
    "supcon_24": "SupCon, 24 steps",
    "dualcl_24": "DualCL, 24 steps",
    "lacon_24": "LaCon, 24 steps",
    "css_lm_24": "CSS-LM, 24 steps",
    "dualcl": "DualCL",
    "lacon": "LaCon",
    "css_lm": "CSS-LM",
    "cross_entropy": "cross-entropy",
    "ce_scl": "CE + SCL",
    "superloss": "SuperLoss",
    "supcon": "SupCon",
}
#: Stored, and left out of the table.
UNSHOWN = ("taught", *(name for name in TRANSFORMERS if name.endswith("_24")))
#: What their titles end with where the steps do not follow from the rows.
BRIEF = ", 24 steps"
#: What a paper says is ahead, and of what.
ORDERS = (
    ("ce_scl", "cross_entropy"),
    ("superloss", "supcon"),
    ("dualcl", "cross_entropy"),
    ("dualcl", "ce_scl"),
    ("lacon", "cross_entropy"),
    ("lacon", "ce_scl"),
    ("css_lm", "cross_entropy"),
)
#: What was chosen, and what it is compared with.
PEERS = (
    ("supcon", "setfit"),
    ("ce_scl", "setfit"),
    ("superloss", "setfit"),
)
#: Corrected p below which a difference counts.
LEVEL = 0.05


@dataclass(frozen=True)
class Step:
    """A command, the file or folder that is there once it is done, and what it reads."""

    name: str
    command: list[str]
    done: Path
    prepare: Callable[[], None] = lambda: None


def steps(data: Path, texts: list[str], out: Path) -> list[Step]:
    """All steps in the order they are run."""
    vectors, encoder = out / "vectors", out / "encoder"
    planned = learned(data, texts, vectors, encoder)
    split = out / "msac"
    planned.append(
        step(
            "msac-split", split,
            "data", "split", data / "msac" / "all.tsv", "--out", split, "--seed", 0,
            "--deduplicate", "--dev", 0.1, "--test", 0.2,
        )
    )  # fmt: skip
    for name, folder in (("msac", split), ("arq", data / FOLDERS["arq"])):
        to, words, peer = (out / f"{kind}few-{name}" for kind in ("", "words-", "setfit-"))
        rows = ("fewshot", folder / "train.tsv", "--test", folder / "test.tsv", "--seeds", 5)
        planned += [
            step(
                to.name, to / "table.csv", *rows, "--shots", SHOTS,
                "--objectives", "ngrams,cross_entropy,superloss,auto", "--init", encoder,
                "--out", to,
            ),
            step(
                words.name, words / "table.csv", *rows, "--shots", SHOTS,
                "--objectives", PLAIN_CONTROL, "--vectors", vectors, "--out", words,
            ),
        ]  # fmt: skip
        if os.environ.get("SETFIT_MODEL"):
            planned.append(
                step(
                    peer.name, peer / "table.csv", *rows, "--shots", PEER_SHOTS,
                    "--objectives", "setfit", "--out", peer,
                )
            )  # fmt: skip
    planned += [
        compared(
            "mteb", ("arq", "ary"), data, out,
            "--protocol", "mteb-afrisenti", "--init", encoder, done="protocol.md",
        ),
        *(
            compared(
                f"{kind}{name}", names, data, out,
                "--objectives", ",".join(systems), *words,
                "--seeds", seeds, "--logit-adjustment", ADJUSTED,
            )
            for name, (names, seeds) in FULL.items()
            for kind, systems, words in (
                ("", ["nbsvm", "fasttext", "ngrams", *list(OURS)[2:]], ("--init", encoder)),
                ("words-", [PLAIN_CONTROL], ("--vectors", vectors)),
            )
        ),
    ]  # fmt: skip
    return planned


def learned(data: Path, texts: Iterable[object], vectors: Path, encoder: Path) -> list[Step]:
    """Word vectors and an encoder of unlabelled text, without what dev and test rows say."""
    leave_out = [
        word
        for folder in FOLDERS.values()
        for part in ("all", "dev", "test")
        if (file := data / folder / f"{part}.tsv").exists()
        for word in ("--leave-out", file)
    ]
    return [
        step(vectors.name, vectors, "vectors", "train", *texts, *leave_out, "--out", vectors),
        step(
            encoder.name, encoder,
            "pretrain", *texts, "--vectors", vectors, *leave_out, "--out", encoder,
        ),
    ]  # fmt: skip


def step(name: str, done: Path, *words: object) -> Step:
    return Step(name, [sys.executable, "-m", "superconext", *map(str, words)], done)


def compared(
    name: str, names: Iterable[str], data: Path, out: Path, *words: object, done: str = "table.csv"
) -> Step:
    """A comparison on some sets as their files are."""
    file, to = out / f"{name}.toml", out / name
    made = step(name, to / done, "compare", "--datasets", file, *words, "--out", to)

    def write() -> None:
        lines = []
        for key in names:
            folder = data.resolve() / FOLDERS[key]
            parts = {p: folder / f"{p}.tsv" for p in ("train", "dev", "test")}
            if (folder / "all.tsv").exists():
                parts = {"train": folder / "all.tsv"}
            copies = "true" if len(parts) == 1 or key in LEAKING else "false"
            lines += ["[[dataset]]", f'name = "{key}"', f"deduplicate = {copies}"]
            lines += [f"{p} = {json.dumps(str(f))}" for p, f in parts.items() if f.exists()]
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")

    return Step(made.name, made.command, made.done, write)


def run(data: Path, texts: list[str], out: Path, only: str | None, listed: bool) -> None:
    """Run the steps that are not done. Raises SystemExit for an unknown step."""
    planned = steps(data, texts, out)
    names = [one.name for one in planned]
    wanted = only.split(",") if only else names
    if unknown := set(wanted) - set(names):
        sys.exit(f"error: --only {', '.join(sorted(unknown))}; expected some of {', '.join(names)}")
    out.mkdir(parents=True, exist_ok=True)
    if not listed:
        note_made_of(out, data, map(Path, texts))
    for one in (one for one in planned if one.name in wanted):
        if listed:
            print(f"{one.name}: {shlex.join(one.command)}")
        elif one.done.exists():
            print(f"{one.name}: there already", file=sys.stderr)
        else:
            one.prepare()
            print(f"{one.name}: {shlex.join(one.command)}", file=sys.stderr)
            subprocess.run(one.command, check=True)


def run_undone(planned: Iterable[Step], out: Path, data: Path, texts: Iterable[Path] = ()) -> None:
    """Run the steps that are not done, in their order, and note in `out` the commit, hashes of
    data and texts."""
    out.mkdir(parents=True, exist_ok=True)
    note_made_of(out, data, texts)
    for one in planned:
        if not one.done.exists():
            print(one.name, file=sys.stderr)
            subprocess.run(one.command, check=True)


def note_made_of(out: Path, data: Path, texts: Iterable[Path]) -> None:
    """Write `about.json`: what the run is made with. Raises SystemExit where that was another
    commit, other data or text."""
    import torch

    texts = list(texts)
    if missing := [str(path) for path in (data, *texts) if not path.exists()]:
        sys.exit(f"error: found no {', '.join(missing)}; expected the data and texts")
    rows = [file for of in FOLDERS.values() for file in sorted((data / of).glob("*.tsv"))]
    made_of = {
        name: hashlib.sha256(" ".join(map(file_sha256, files)).encode()).hexdigest()
        for name, files in {
            "data": rows,
            "texts": [path for path in texts if path.is_file()],
        }.items()
    }

    state = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=7"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    about = {
        "commit": state.stdout.strip(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "processor": torch.backends.cpu.get_cpu_capability(),
        **made_of,
    }
    path = out / "about.json"
    if path.exists():
        began = json.loads(path.read_text(encoding="utf-8"))
        for name in ("commit", *made_of):
            if began.get(name) != about[name]:
                sys.exit(
                    f"error: {out} was begun with {name} {began.get(name)}, this is {about[name]}; "
                    "expected the same: give another --out"
                )
    path.write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


def collect(out: Path, to: Path = STORED) -> None:
    """Tables of a finished run against each reference, and what made them, as files of `to`.

    Raises SystemExit where a step has not been run, other than `OPTIONAL`.
    """
    whole = [out / name for name in FULL]
    if not (whole[-1] / "table.csv").exists():
        print(f"note: {OPTIONAL} was not run to its end and is left out", file=sys.stderr)
        whole.pop()
    tables = {
        "all-labels": read_tables(whole, "dataset"),
        "few-labels": read_tables([out / "few-msac", out / "few-arq"], "shots"),
        "mteb": [
            row
            for study in ("vectors", "pretrained")
            for row in read_csv(out / "mteb" / study / "protocol.csv")
        ],
    }
    to.mkdir(parents=True, exist_ok=True)
    for name, rows in tables.items():
        with (to / f"{name}.csv").open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    shutil.copyfile(out / "about.json", to / "about.json")


def read_tables(folders: list[Path], key: str) -> list[dict[str, Any]]:
    """The rows of the tables of some folders against each reference, by set and by `key`."""
    from superconext.experiments.tables import make_tables, to_long_rows

    rows = []
    for folder in folders:
        path = folder / "results.jsonl"
        groups: dict[str, list[dict[str, Any]]] = {}
        for line in [*own_lines(path), *peer_lines(folder)]:
            groups.setdefault(str(line[key]), []).append(line)
        for reference in REFERENCES:
            table = to_long_rows(key, make_tables(groups, reference))
            more = {} if key == "dataset" else {"dataset": folder.name.removeprefix("few-")}
            rows += [{**more, **row} for row in table]
    correct(rows)
    return rows


def read_lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        sys.exit(f"error: {path}: not there; run the step {path.parent.name} first")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def own_lines(path: Path) -> list[dict[str, Any]]:
    """The fits of a comparison beside an encoder, whose word vectors have learned with it."""
    lines = read_lines(path)
    return [{**line, "system": LEARNED.get(line["system"], line["system"])} for line in lines]


def peer_lines(folder: Path) -> list[dict[str, Any]]:
    """Fits of other comparisons on the draws of a folder; SetFit's may be missing.

    Raises SystemExit where TF-IDF has other predictions beside them: then the draws differ.
    """
    expected = {
        (line.get("dataset"), line["split"], line["seed"]): line["predictions"]
        for line in read_lines(folder / "results.jsonl")
        if line["system"] == TFIDF
    }
    found = []
    for kind, systems in BESIDE.items():
        path = folder.with_name(f"{kind}-{folder.name}") / "results.jsonl"
        if kind == "setfit" and not path.exists():
            continue
        for line in read_lines(path):
            draw = line.get("dataset"), line["split"], line["seed"]
            if line["system"] == TFIDF and expected.get(draw) != line["predictions"]:
                sys.exit(f"error: {path}: other draws than {folder}'s; run both again")
            found += [line] * (line["system"] in systems)
    return found


def correct(rows: list[dict[str, Any]]) -> None:
    """Holm's correction over all comparisons with one reference, on whatever set."""
    from superconext.experiments.paired_tests import holm

    for reference in {row["reference"] for row in rows}:
        tested = [r for r in rows if r["reference"] == reference and r["p"] not in (None, "")]
        corrected = holm([float(row["p"]) for row in tested])
        for row, p in zip(tested, corrected, strict=True):
            row["p_holm"] = p
            row["significantly_better"] = p < LEVEL and float(row["difference"]) > 0


def no_surer_than_welch(rows: list[dict[str, str]]) -> list[dict[str, str]]:
    """The rows with p-values of the bootstrap that are not below Welch's t-test of the same means,
    corrected again.

    The stored ones are of a version that drew S - 1 of S seeds again, which is too sure where five
    draws differ much. With p-values of a later one this changes next to nothing.
    """
    from scipy.stats import t

    def of(row: dict[str, str], name: str) -> tuple[str, ...]:
        return (row["dataset"], row.get("shots", ""), row[name])

    systems = {of(row, "system"): row for row in rows}

    def error(row: dict[str, str]) -> float:
        return float(row["f1_weighted_sd"] or 0) ** 2 / int(row["fits"])

    found: list[dict[str, Any]] = []
    for row in rows:
        peer = systems.get(of(row, "reference"))
        errors = [error(one) for one in (row, peer) if one is not None and int(one["fits"]) > 1]
        if row["p"] and row["test"] == "hierarchical bootstrap" and sum(errors):
            fits = [int(one["fits"]) for one in (row, peer) if one is not None]
            freedom = sum(errors) ** 2 / sum(
                e**2 / (count - 1)
                for e, count in zip(errors, filter((1).__lt__, fits), strict=True)
            )
            welch = 2 * t.sf(abs(float(row["difference"])) / sum(errors) ** 0.5, freedom)
            row = {**row, "p": str(max(float(row["p"]), welch))}
        found.append(row)
    correct(found)
    return [{**row, "significantly_better": str(row["significantly_better"])} for row in found]


def few_labels(rows: list[dict[str, str]]) -> list[list[str]]:
    """Weighted F1 by rows of each class."""
    lines = [["set", "system", *SHOWN_SHOTS]]
    for name in ("msac", "arq"):
        for system in (one for one in present(rows, name) if one not in LESSER):
            by = {row["shots"]: row for row in rows_of(rows, name, system)}
            cells = [cell(by.get(shots)) for shots in SHOWN_SHOTS]
            lines.append([SETS[name], SYSTEMS[system][0], *cells])
    return lines


def all_labels(rows: list[dict[str, str]]) -> list[list[str]]:
    """Weighted F1 by set."""
    lines = [["system", *SETS.values()]]
    for system in (one for one in present(rows) if one not in LESSER):
        by = {row["dataset"]: row for row in rows_of(rows, None, system)}
        lines.append([SYSTEMS[system][0], *(cell(by.get(name)) for name in SETS)])
    return lines


def differences(full: list[dict[str, str]], few: list[dict[str, str]]) -> list[list[str]]:
    """Differences of weighted F1 as `SHOWN_DIFFERENCES` has them: by set with intervals, bold where
    the corrected p is below 0.05; with few labels their mean, and in how many comparisons the
    corrected p is."""
    lines = [["system", "minus", *SETS.values(), "few labels"]]
    for system in (one for one in SHOWN_DIFFERENCES if one in present(full + few)):
        for reference in SHOWN_DIFFERENCES[system]:
            of = {row["dataset"]: row for row in rows_of(full, None, system, reference)}
            cells = [difference(of.get(name)) for name in SETS]
            names = SYSTEMS[system][0], SYSTEMS[reference][0]
            lines.append([*names, *cells, mean_difference(rows_of(few, None, system, reference))])
    return lines


def mean_difference(rows: list[dict[str, str]]) -> str:
    """The mean of the differences, and in how many of them a system is ahead, or behind."""
    rows = [row for row in rows if row["p_holm"]]
    if not rows:
        return ""
    counts = Counter(verdict(row) for row in rows)
    mean = sum(100 * float(row["difference"]) for row in rows) / len(rows)
    behind = f", {counts['behind']} behind" * bool(counts["behind"])
    return f"{mean:+.1f} ({counts['ahead']} of {len(rows)}{behind})"


def few_gain(few: list[dict[str, str]], system: str, reference: str) -> str:
    """Points of a system above another, mean over sets and rows per class."""
    own = [r for r in few if (r["system"], r["reference"]) == (system, reference)]
    own = [row for row in own if row["difference"]]
    mean = sum(100 * float(row["difference"]) for row in own) / max(len(own), 1)
    return f"{round(mean, 1) + 0.0:.1f}"  # no -0.0


def level_or_behind(full: list[dict[str, str]], system: str, reference: str) -> str:
    """On how many of the sets one system is not significantly ahead of another, in words."""
    own = [r for r in full if (r["system"], r["reference"]) == (system, reference) and r["p_holm"]]
    found = sum(verdict(row) != "ahead" for row in own)
    return f"{found} of {len(own)} sets"


def in_short(rows: list[dict[str, str]]) -> str:
    """How the default stands to TF-IDF on sets of `default_sets.py`, in words."""
    from superconext.experiments.paired_tests import holm

    mean = statistics.mean(100 * float(row["difference"]) for row in rows)
    corrected = holm([float(row["p"]) for row in rows])
    sure = [r for r, p in zip(rows, corrected, strict=True) if p < LEVEL]
    behind = sum(float(row["difference"]) < 0 for row in sure)
    return (
        f"{mean:+.1f} points on average, significantly ahead on {len(sure) - behind} of "
        f"{len(rows)} and behind on {behind or 'none'}"
    )


def verdict(row: dict[str, str]) -> str:
    """Where the corrected p is below 0.05, whether the difference is up or down; else level."""
    if float(row["p_holm"]) >= LEVEL:
        return "level"
    return "ahead" if float(row["difference"]) > 0 else "behind"


def published(full: list[dict[str, str]], stored: Path) -> list[list[str]]:
    """What others published on the same test rows, and ours by the same metric."""
    lines = [["set, metric", *(SYSTEMS[name][0] for name in COMPARED), "published"]]
    others: dict[tuple[str, str], list[str]] = {}
    for row in read_csv(stored / "published.csv"):
        said = f"{row['system'].removeprefix('AfriSenti shared task, ')} {row['value']}"
        others.setdefault((row["set"], row["metric"]), []).append(said)
    for (name, metric), theirs in others.items():
        ours = [rows_of(full, name, system) for system in COMPARED]
        cells = [spread(found[0], metric) if found else "" for found in ours]
        title = f"{SETS[name]}, {metric.replace('f1_weighted', 'weighted F1')}"
        lines.append([title, *cells, ", ".join(theirs)])
    return lines


def of_twifil(full: list[dict[str, str]], stored: Path) -> list[str]:
    """The best published accuracy on TwiFil, and ours."""
    others = [row for row in read_csv(stored / "published.csv") if row["set"] == "twifil"]
    found = [row["value"] for row in others if row["metric"] == "accuracy"][:1]
    ours = rows_of(full, "twifil", "superloss")[:1]
    return found + [f"{100 * float(row['accuracy_mean']):.1f}" for row in ours]


def mteb(rows: list[dict[str, str]]) -> list[list[str]]:
    """Weighted F1 on MTEB's task, best on the first set first."""
    cells: dict[str, dict[str, tuple[float, str]]] = {}
    for row in rows:
        system, name = MTEB[row["system"]], row["dataset"]
        mean, sd = 100 * float(row["mean"]), 100 * float(row["sd"])
        cells.setdefault(system, {})[name] = mean, f"{mean:.1f} ± {sd:.1f}"
        for column, value in row.items():
            if column.startswith("paper (") and value:
                other = column.removeprefix("paper (").removesuffix(")")
                found = 100 * float(value), f"{100 * float(value):.1f}"
                cells.setdefault(f"{other} (published)", {})[name] = found
    order = sorted(cells, key=lambda name: -cells[name]["arq"][0])
    lines = [["frozen vectors of", "arq", "ary"]]
    return lines + [[n, *(cells[n].get(of, (0.0, ""))[1] for of in ("arq", "ary"))] for n in order]


def transformers(rows: list[dict[str, str]]) -> list[list[str]]:
    """Accuracy of SetFit on drawn test rows, and what others have more on the same draws, with a
    95% interval of t (mean ± half of it); bold where it leaves out 0."""
    rows = [row for row in rows if row["shots"] != "all"]
    scores = drawn_scores(rows)
    groups = sorted({(name, shots) for _, name, shots in scores}, key=lambda g: (g[0], int(g[1])))
    heads = [f"{name}, {shots}" for name, shots in groups]
    lines = [["system", *heads, "seconds", "MB"]]
    for system, title in TRANSFORMERS.items():
        if system in UNSHOWN:
            continue
        fits = [row for row in rows if row["rows"] == "test" and base_name(row) == system]
        cells = []
        for group in groups:
            own, peer = scores.get((system, *group), {}), scores.get(("setfit", *group), {})
            if system == "setfit":
                found = [*own.values()]
                spread = f" ± {statistics.stdev(found):.1f}" if len(found) > 1 else ""
                cells.append(f"{statistics.mean(found):.1f}{spread}" if found else "")
            else:
                cells.append(interval([own[seed] - peer[seed] for seed in own if seed in peer]))
        if any(cells):
            # The fastest draw of each column: what else the machine did can only add.
            quickest: dict[tuple[str, str], float] = {}
            for row in fits:
                key, taken_by = (row["set"], row["shots"]), float(row["seconds"])
                quickest[key] = min(taken_by, quickest.get(key, taken_by))
            ends = (min(quickest.values()), max(quickest.values()))
            taken = "–".join(dict.fromkeys(f"{seconds:.0f}" for seconds in ends))
            lines.append([title, *cells, taken, str(max(int(row["peak_mb"]) for row in fits))])
    return lines


def whole_sets(rows: list[dict[str, str]]) -> list[list[str]]:
    """Accuracy on test of what learned from all rows of a set, by seeds, and in brackets their
    number where others have more. Without seconds: the fits ran on machines of which one is three
    times as fast as another."""
    found: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows:
        if (row["rows"], row["shots"]) == ("test", "all"):
            found.setdefault((base_name(row), row["set"]), []).append(row)
    names = sorted({name for _, name in found})
    most = max(map(len, found.values()), default=0)
    lines = [["system", *names]]
    for system in (one for one in TRANSFORMERS if any(one == known for known, _ in found)):
        cells = []
        for name in names:
            fits = found.get((system, name), [])
            scores = [100 * float(row["accuracy"]) for row in fits]
            sd = f" ± {statistics.stdev(scores):.1f}" if len(scores) > 1 else ""
            fewer = f" ({len(fits)})" if len(fits) < most else ""
            cells.append(f"{statistics.mean(scores):.1f}{sd}{fewer}" if fits else "")
        lines.append([TRANSFORMERS[system], *cells])
    return lines


def base_name(row: dict[str, str]) -> str:
    """The system of a fit, without what it was given otherwise than by default."""
    return row["system"].partition(":")[0]


def drawn_scores(
    rows: list[dict[str, str]], of: str = "test"
) -> dict[tuple[str, str, str], dict[str, float]]:
    """Accuracy in percent on test or dev rows by draw, by system, set and rows a class."""
    scores: dict[tuple[str, str, str], dict[str, float]] = {}
    for row in rows:
        if row["rows"] == of:
            own = scores.setdefault((base_name(row), row["set"], row["shots"]), {})
            own[row["seed"]] = 100 * float(row["accuracy"])
    return scores


def orders(rows: list[dict[str, str]], pairs: Sequence[tuple[str, str]]) -> str:
    """Differences of systems over the draws of all sets that both have, a draw's numbers of rows
    averaged, as its few rows are part of its more."""
    scores, said = drawn_scores([row for row in rows if row["shots"] != "all"]), []
    for one, other in pairs:
        of_draw: dict[tuple[str, str], list[float]] = {}
        for (system, *group), own in scores.items():
            peer = scores.get((other, *group), {}) if system == one else {}
            for seed in own.keys() & peer.keys():
                of_draw.setdefault((group[0], seed), []).append(own[seed] - peer[seed])
        values = [statistics.mean(of) for of in of_draw.values()]
        if len(values) > 1:
            names = " over ".join(TRANSFORMERS[name] for name in (one, other))
            if TRANSFORMERS[one].endswith(BRIEF):
                names = names.replace(BRIEF, "")
            said.append(f"{names} {interval(values)} ({len(values)})")
    return "; ".join(said)


def interval(values: list[float]) -> str:
    """The mean and half its 95% interval by Student's t; bold where the interval leaves out 0. Two
    values tell no interval: where they happen to be equal it would be 0."""
    if len(values) < 2:
        return ""
    mean, count = statistics.mean(values), len(values)
    if count < 3:
        return f"{mean:+.1f}"
    from scipy.stats import t

    half = t.ppf(0.975, count - 1) * statistics.stdev(values) / count**0.5
    strong = "**" if abs(mean) > half else ""
    return f"{strong}{mean:+.1f}{strong} ±{half:.1f}"


def on_dev(rows: list[dict[str, str]]) -> str:
    """Mean accuracy on rows to choose on, over the draws that all systems have, best first."""
    found: dict[str, dict[str, float]] = {}
    for row in rows:
        if (row["rows"], row["set"], row["shots"]) == ("dev", "sst2", "16"):
            scores = found.setdefault(TRANSFORMERS[row["system"]], {})
            scores[row["seed"]] = 100 * float(row["accuracy"])
    shared = set.intersection(*map(set, found.values())) if found else set()
    if not shared:
        return ""
    means = {n: statistics.mean(own[seed] for seed in shared) for n, own in found.items()}
    best = sorted(means.items(), key=lambda pair: -pair[1])
    return f"{', '.join(f'{name} {mean:.1f}' for name, mean in best)} ({len(shared)} draws)"


def front(full: list[dict[str, str]], few: list[dict[str, str]], stored: Path) -> list[list[str]]:
    """The README's table: 16 rows a class of two sets, all labels of four, what is published."""
    shown = [("msac", "16"), ("arq", "16")]
    wide = ("msac", "arq", "ary", "twifil")
    heads = [f"{SETS[name]}, {shots}" for name, shots in shown]
    lines = [["system", "trained on", *heads, *(f"{SETS[name]}, all" for name in wide)]]
    for system in (one for one in present(full + few) if one in FRONT):
        cells = []
        for name, shots in shown:
            by = {row["shots"]: row for row in rows_of(few, name, system)}
            cells.append(cell(by.get(shots)))
        by = {row["dataset"]: row for row in rows_of(full, None, system)}
        lines.append([*SYSTEMS[system], *cells, *(cell(by.get(name)) for name in wide)])
    others: dict[str, dict[str, str]] = {}
    for row in read_csv(stored / "published.csv"):
        if row["front"]:
            others.setdefault(row["system"], {})[row["set"]] = row["value"]
    for system, of in others.items():
        few_cells = [""] * len(shown)
        row = [f"{system} (published)", "labels, transformers", *few_cells]
        lines.append(row + [of.get(name, "") for name in wide])
    return lines


def present(rows: list[dict[str, str]], dataset: str | None = None) -> list[str]:
    names = {row["system"] for row in rows if dataset in (None, row["dataset"])}
    return [name for name in SYSTEMS if name in names]


def rows_of(
    rows: list[dict[str, str]],
    dataset: str | None,
    system: str,
    reference: str | None = TFIDF,
) -> list[dict[str, str]]:
    wanted = {"dataset": dataset, "system": system, "reference": reference}
    return [r for r in rows if all(v is None or r[k] == v for k, v in wanted.items())]


def spread(row: dict[str, str], metric: str = "f1_weighted") -> str:
    """Mean ± standard deviation in percent."""
    mean, sd = row[f"{metric}_mean"], row[f"{metric}_sd"]
    return f"{100 * float(mean):.1f}" + (f" ± {100 * float(sd):.1f}" if sd else "")


def cell(row: dict[str, str] | None) -> str:
    """Weighted F1; bold where it is ahead of TF-IDF beyond chance."""
    if row is None:
        return ""
    return f"**{spread(row)}**" if row["significantly_better"] == "True" else spread(row)


def points(row: dict[str, str]) -> str:
    """The difference and its 95% interval."""
    low, high = (f"{100 * float(row[k]):+.1f}" for k in ("difference_low", "difference_high"))
    return f"{100 * float(row['difference']):+.1f} [{low}, {high}]"


def difference(row: dict[str, str] | None) -> str:
    """Points and the 95% interval, bold where the corrected p is below 0.05."""
    if row is None or not row["difference"]:
        return ""
    return points(row) if verdict(row) == "level" else f"**{points(row)}**"


def markdown(lines: list[list[str]]) -> str:
    rule = ["---"] * len(lines[0])
    return "\n".join("| " + " | ".join(line) + " |" for line in (lines[0], rule, *lines[1:]))


def blocks(stored: Path = STORED) -> dict[str, str]:
    """What is printed into the pages, by name."""
    names = ("all-labels", "few-labels", "mteb")
    full, few, of_mteb = (read_csv(stored / f"{name}.csv") for name in names)
    full, few = no_surer_than_welch(full), no_surer_than_welch(few)
    about = json.loads((stored / "about.json").read_text(encoding="utf-8"))
    path, others = stored / "transformer.csv", stored / "unseen_sets.csv"
    fits = read_csv(path) if path.exists() else []
    made = "Commit `{commit}`, Python {python}, PyTorch {torch}, processor with {processor}."
    return {
        "about": made.format(**about),
        "few-labels": markdown(few_labels(few)),
        "all-labels": markdown(all_labels(full)),
        "differences": markdown(differences(full, few)),
        "published": markdown(published(full, stored)),
        "mteb": markdown(mteb(of_mteb)),
        "twifil": ", ours ".join(of_twifil(full, stored)),
        "few-text": few_gain(few, PLAIN_CONTROL, TFIDF),
        "few-emoji": few_gain(few, "vectors_logreg", PLAIN_CONTROL),
        "few-pretraining": few_gain(few, "pretrained_logreg", "vectors_logreg"),
        "few-superloss": few_gain(few, "superloss", "pretrained_logreg"),
        "not-ahead-of-tfidf": level_or_behind(full, "superloss", TFIDF),
        "unseen": in_short(read_csv(others)) if others.exists() else "",
        "front": markdown(front(full, few, stored)),
        "transformer": markdown(transformers(fits)),
        "transformer-all": markdown(whole_sets(fits)),
        "transformer-orders": orders(fits, ORDERS),
        "transformer-peers": orders(fits, PEERS),
        "transformer-dev": on_dev(fits),
    }


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def rendered(page: str, parts: dict[str, str]) -> str:
    """A page with its marked parts replaced. Raises SystemExit for a name that is none."""

    def replace(match: re.Match[str]) -> str:
        if match[1] not in parts:
            sys.exit(f"error: <!-- results {match[1]} -->; expected one of {', '.join(parts)}")
        gap = "\n\n" if "\n" in match[2] else ""  # on a line of its own, or within one
        return f"<!-- results {match[1]} -->{gap}{parts[match[1]]}{gap}<!-- end -->"

    return re.sub(r"<!-- results ([\w-]+) -->(.*?)<!-- end -->", replace, page, flags=re.DOTALL)


def render(check: bool, root: Path = ROOT) -> None:
    """Print the results into the pages. Raises SystemExit where `check` finds another text."""
    parts = blocks(root / "scripts" / "results")
    for name in PAGES:
        path = root / name
        page = path.read_text(encoding="utf-8")
        now = rendered(page, parts)
        if now != page and check:
            sys.exit(f"error: {name} is not what scripts/results/ says; run this script's render")
        if now != page:
            path.write_text(now, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser("run")
    verb.add_argument("data", type=Path)
    verb.add_argument("texts", nargs="+", metavar="TEXT", help="unlabelled dialect text")
    verb.add_argument("--out", type=Path, required=True)
    verb.add_argument("--only", metavar="STEP,STEP")
    verb.add_argument("--list", action="store_true", help="print the commands, run nothing")
    verbs.add_parser("collect").add_argument("out", type=Path, metavar="DIR")
    verbs.add_parser("render").add_argument("--check", action="store_true")
    options = parser.parse_args()
    if options.verb == "run":
        run(options.data, options.texts, options.out, options.only, options.list)
    elif options.verb == "collect":
        collect(options.out)
    else:
        render(options.check)


if __name__ == "__main__":
    main()
