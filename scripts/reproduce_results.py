"""Every table of docs/results.md in one go, from the labelled sets and unlabelled text.

    python scripts/reproduce_results.py DATA --unlabelled FILE [--unlabelled FILE] --out DIR
        [--only NAME,NAME] [--list]

DATA holds a folder for each set, as scripts/dialect_results.py has it. Word vectors, encoders,
tables and few-label curves are steps; `--list` prints their names and commands and runs nothing.
Called again after a stop it goes on: vectors and encoders where their training stopped, tables with
the next fit. A step whose last file is there is passed over. The whole takes some ten hours of one
core; `--only dialects` takes two.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BASELINES = "majority,TF-IDF + LR,NB-SVM,fastText"

#: Texts that no unlabelled line may say again: of the sets of the first tables, and beside them
#: of the sets that later ones are about.
HELD = (
    "msac/all.tsv", "twifil/all.tsv", "afrisenti_arq/dev.tsv", "afrisenti_arq/test.tsv",
    "afrisenti_ary/dev.tsv", "afrisenti_ary/test.tsv", "tsac/test.tsv", "astd_balanced/dev.tsv",
    "astd_balanced/test.tsv",
)  # fmt: skip
HELD_TOO = (*HELD, "mac/all.tsv", "algerian_djalil/all.tsv")
HELD_ENGLISH = (
    "sst2_sentence/dev.tsv", "sst2_sentence/test.tsv", "trec/test.tsv", "cr/all.tsv",
    "subj/all.tsv", "imdb/test.tsv",
)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """A command, and the file or folder that is there once it is done."""

    group: str
    name: str
    command: list[str]
    done: Path


def steps(data: Path, unlabelled: list[str], out: Path) -> Iterator[Step]:
    """All steps in the order they are run."""
    dialects = ("dialects", HELD, "msac,afrisenti_arq,afrisenti_ary")
    others = ("others", HELD_TOO, "twifil,astd_balanced,mac,tsac,algerian_djalil")
    for group, held, sets in (dialects, others):
        yield from encoder(group, unlabelled, held, data, out)
        yield table(group, sets, data, out, "SuperLoss,best")
    yield Step(
        "few", "few-split",
        ours("data", "split", data / "msac/all.tsv", "--out", out / "msac", "--seed", 0,
             "--deduplicate", "--dev", 0.1, "--test", 0.2),
        out / "msac",
    )  # fmt: skip
    for name, folder in (("msac", out / "msac"), ("afrisenti_arq", data / "afrisenti_arq")):
        to = out / f"few-{name}"
        yield Step(
            "few", to.name,
            ours("fewshot", folder / "train.tsv", "--test", folder / "test.tsv", "--shots",
                 "8,16,32,64,128", "--seeds", 5, "--objectives", "superloss,cross_entropy",
                 "--init", out / "dialects-encoder", "--out", to),
            to / "table.md",
        )  # fmt: skip
    yield from related_steps(data, out)
    yield from encoder("english", [str(out / "sentences.txt")], HELD_ENGLISH, data, out)
    yield table("english", "sst2_sentence,trec,imdb", data, out, "SuperLoss,best")


def related_steps(data: Path, out: Path) -> Iterator[Step]:
    """Two sets with the labels of a related one beside, and one with few rows of its own."""
    arq, twifil = data / "afrisenti_arq", data / "twifil" / "all.tsv"
    for name, file in (("afrisenti_arq", twifil), ("afrisenti_ary", data / "mac" / "all.tsv")):
        step = table("dialects", name, data, out, "SuperLoss")
        to = out / f"related-{name}"
        command = [*step.command[:-1], str(to), "--related", str(file)]
        yield Step("related", to.name, command, to / "table.md")
    to = out / "related-few"
    yield Step(
        "related", to.name,
        ours("fewshot", arq / "train.tsv", "--test", arq / "test.tsv", "--shots", "16,64",
             "--seeds", 5, "--objectives", "superloss", "--init", out / "dialects-encoder",
             "--related", twifil, "--out", to),
        to / "table.md",
    )  # fmt: skip


def encoder(
    group: str, texts: list[str], held: tuple[str, ...], data: Path, out: Path
) -> Iterator[Step]:
    """Word vectors of the texts, less what the held sets say, and an encoder that read them."""
    leave_out = [word for file in held for word in ("--leave-out", data / file)]
    vectors, folder = out / f"{group}-vectors", out / f"{group}-encoder"
    yield Step(
        group, vectors.name, ours("vectors", "train", *texts, "--out", vectors, *leave_out), vectors
    )
    words = ours("pretrain", *texts, "--vectors", vectors, "--out", folder, *leave_out)
    yield Step(group, folder.name, words, folder)


def table(group: str, sets: str, data: Path, out: Path, systems: str) -> Step:
    """The table of baselines and our systems on some sets."""
    to = out / f"{group}-table"
    script = Path(__file__).with_name("dialect_results.py")
    words = [data, "--init", out / f"{group}-encoder", "--sets", sets]
    if "tsac" in sets:  # the only one whose train rows hold many of its test rows
        words.append("--drop-leaked")
    command = [sys.executable, script, *words, "--systems", f"{BASELINES},{systems}", "--out", to]
    return Step(group, to.name, [str(word) for word in command], to / "table.md")


def ours(*words: object) -> list[str]:
    return [sys.executable, "-m", "superconext", *map(str, words)]


def write_sentences(data: Path, path: Path) -> None:
    """The sentences of the reviews that are trained on, one a line."""
    found = []
    for part in ("train", "dev"):
        for line in (data / "imdb" / f"{part}.tsv").open(encoding="utf-8"):
            review = line.split("\t")[1].replace("<br />", " ").strip()
            found += [s for s in re.split(r"(?<=[.!?])\s+", review) if s]
    path.write_text("\n".join(found) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--unlabelled", action="append", required=True, help="dialect text")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", help="groups; few and related need dialects")
    parser.add_argument("--list", action="store_true", help="print the commands, run nothing")
    options = parser.parse_args()
    planned = list(steps(options.data, options.unlabelled, options.out))
    groups = {step.group for step in planned}
    wanted = set(options.only.split(",")) if options.only else groups
    if not wanted <= groups:
        parser.error(f"--only {options.only}; expected some of {', '.join(sorted(groups))}")
    options.out.mkdir(parents=True, exist_ok=True)
    for step in (step for step in planned if step.group in wanted):
        if options.list:
            print(f"{step.name}: {shlex.join(step.command)}")
            continue
        if step.done.exists():
            print(f"{step.name}: there already", file=sys.stderr)
            continue
        if step.group == "english" and not (options.out / "sentences.txt").exists():
            write_sentences(options.data, options.out / "sentences.txt")
        print(f"{step.name}: {shlex.join(step.command)}", file=sys.stderr)
        subprocess.run(step.command, check=True)


if __name__ == "__main__":
    main()
