"""Every table of docs/results.md in one go, from the labelled sets and unlabelled text.

    python scripts/reproduce_results.py DATA --unlabelled FILE [--unlabelled FILE] --out DIR
        [--english-vectors FILE] [--only NAME,NAME] [--list]

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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path

BASELINES = "majority,TF-IDF + LR,NB-SVM,fastText,n-grams"

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
    """A command, and the file or folder that is there once it is done.

    prepare: writes what the command reads and no other step makes.
    """

    group: str
    name: str
    command: list[str]
    done: Path
    prepare: Callable[[], None] | None = None


def steps(data: Path, unlabelled: list[str], out: Path, english: str | None) -> Iterator[Step]:
    """All steps in the order they are run.

    english: file of word vectors for the English encoder; without one they are trained.
    """
    dialects = "msac,afrisenti_arq,afrisenti_ary"
    begun = ("--init", out / "dialects-encoder")
    yield from encoder("dialects", unlabelled, HELD, data, out)
    vectors = ("--vectors", out / "dialects-vectors")
    ours_two = f"{BASELINES},SuperLoss,cross-entropy"
    yield table("dialects", "dialects-plain", dialects, data, out, ours_two, *vectors)
    yield table("dialects", "dialects-table", dialects, data, out, "TF-IDF + LR,SuperLoss", *begun)
    several = "TF-IDF + LR,best"
    yield table("dialects", "dialects-best", "afrisenti_arq", data, out, several, *begun)
    yield from encoder("others", unlabelled, HELD_TOO, data, out)
    too = ("--init", out / "others-encoder")
    yield table(
        "others", "others-table", "twifil,astd_balanced,mac,tsac,algerian_djalil", data, out,
        f"{BASELINES},SuperLoss", *too,
    )  # fmt: skip
    yield table("others", "others-best", "twifil", data, out, several, *too)
    yield from few_steps(data, out, vectors, begun)
    yield from related_steps(data, out)
    yield from english_steps(data, out, english)


def few_steps(data: Path, out: Path, *starts: tuple[str, Path]) -> Iterator[Step]:
    """Few-label curves from word vectors and from an encoder."""
    yield Step(
        "few", "few-split",
        ours("data", "split", data / "msac/all.tsv", "--out", out / "msac", "--seed", 0,
             "--deduplicate", "--dev", 0.1, "--test", 0.2),
        out / "msac",
    )  # fmt: skip
    sets = (("msac", out / "msac"), ("afrisenti_arq", data / "afrisenti_arq"))
    for (name, folder), start in product(sets, starts):
        to = out / f"few-{name}{start[0][1:]}"
        yield Step(
            "few", to.name,
            ours("fewshot", folder / "train.tsv", "--test", folder / "test.tsv", "--shots",
                 "8,16,32,64,128", "--seeds", 5, "--objectives", "superloss,cross_entropy",
                 *start, "--out", to),
            to / "table.md",
        )  # fmt: skip
    rows, to = out / "msac", out / "few-msac-ngrams"
    yield Step(
        "few", to.name,
        ours("fewshot", rows / "train.tsv", "--test", rows / "test.tsv", "--shots",
             "8,16,32,64,128", "--seeds", 5, "--objectives",
             "superloss,superloss:probe_features=encoder+ngrams,ngrams", *starts[-1], "--out", to),
        to / "table.md",
    )  # fmt: skip


def related_steps(data: Path, out: Path) -> Iterator[Step]:
    """Sets with the labels of a related one beside, and one with few rows of its own."""
    arq, twifil, mac = (data / name for name in ("afrisenti_arq", "twifil", "mac"))
    renamed, systems = (
        out / "mac_two_classes.tsv",
        "TF-IDF + LR,TF-IDF + LR of both,n-grams of both,SuperLoss",
    )
    for name, file in (
        ("afrisenti_arq", twifil / "all.tsv"),
        ("afrisenti_ary", mac / "all.tsv"),
        ("msac", renamed),
    ):
        yield table(
            "related", f"related-{name}", name, data, out, systems,
            "--init", out / "dialects-encoder", "--related", file,
            prepare=partial(write_renamed, mac / "all.tsv", renamed),
        )  # fmt: skip
    two = out / "twifil_and_djalil.tsv"
    yield table(
        "related", "related-two", "afrisenti_arq", data, out, systems,
        "--init", out / "dialects-encoder", "--related", two,
        prepare=partial(write_both, data / "algerian_djalil" / "all.tsv", twifil / "all.tsv", two),
    )  # fmt: skip
    to = out / "related-few"
    yield Step(
        "related", to.name,
        ours("fewshot", arq / "train.tsv", "--test", arq / "test.tsv", "--shots", "16,64",
             "--seeds", 5, "--objectives", "superloss", "--init", out / "dialects-encoder",
             "--related", twifil / "all.tsv", "--out", to),
        to / "table.md",
    )  # fmt: skip


def english_steps(data: Path, out: Path, vectors: str | None) -> Iterator[Step]:
    """English sets from an encoder that has read the reviews that are trained on."""
    sentences = out / "sentences.txt"
    write = partial(write_sentences, data, sentences)
    texts, to = [str(sentences)], out / "english-encoder"
    for step in encoder("english", texts, HELD_ENGLISH, data, out, vectors):
        yield replace(step, prepare=write)
    everything = f"{BASELINES},SuperLoss"
    begun = ("--init", to)
    yield table(
        "english", "english-table", "sst2_sentence,trec,imdb", data, out, everything, *begun
    )
    yield table("english", "english-best", "trec", data, out, "NB-SVM,best", *begun)
    yield table(
        "english", "english-phrases", "sst2_sentence", data, out,
        "TF-IDF + LR of both,n-grams of both,SuperLoss", *begun,
        "--related", data / "sst2_phrases" / "train.tsv",
    )  # fmt: skip


def encoder(
    group: str,
    texts: list[str],
    held: tuple[str, ...],
    data: Path,
    out: Path,
    vectors: str | None = None,
) -> Iterator[Step]:
    """Word vectors of the texts, less what the held sets say, and an encoder that read them.

    vectors: a file of them, instead.
    """
    leave_out = [word for file in held for word in ("--leave-out", data / file)]
    folder, to = out / f"{group}-vectors", out / f"{group}-encoder"
    if vectors is None:
        words = ours("vectors", "train", *texts, "--out", folder, *leave_out)
        yield Step(group, folder.name, words, folder)
    words = ours("pretrain", *texts, "--vectors", vectors or folder, "--out", to, *leave_out)
    yield Step(group, to.name, words, to)


def table(
    group: str,
    name: str,
    sets: str,
    data: Path,
    out: Path,
    systems: str,
    *options: object,
    prepare: Callable[[], None] | None = None,
) -> Step:
    """The table of baselines and our systems on some sets."""
    to = out / name
    script = Path(__file__).with_name("dialect_results.py")
    words = [data, *options, "--sets", sets, "--systems", systems, "--out", to]
    if "tsac" in sets:  # the only one whose train rows hold many of its test rows
        words.append("--drop-leaked")
    command = [sys.executable, *map(str, (script, *words))]
    return Step(group, name, command, to / "table.md", prepare)


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


def write_renamed(source: Path, path: Path) -> None:
    """The positive and negative rows of a set, labelled as MSAC labels its own."""
    names = {"positive": "pos", "negative": "neg"}
    rows = (line.split("\t", 1) for line in source.open(encoding="utf-8"))
    kept = [f"{names[label]}\t{text}" for label, text in rows if label in names]
    path.write_text("".join(kept), encoding="utf-8")


def write_both(one: Path, other: Path, path: Path) -> None:
    """The rows of two files, one after the other."""
    path.write_bytes(b"\n".join(file.read_bytes().rstrip(b"\n") for file in (one, other)) + b"\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--unlabelled", action="append", required=True, help="dialect text")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", help="groups; few and related need dialects")
    parser.add_argument("--list", action="store_true", help="print the commands, run nothing")
    parser.add_argument("--english-vectors", help="word vectors for English, such as GloVe's")
    options = parser.parse_args()
    planned = list(steps(options.data, options.unlabelled, options.out, options.english_vectors))
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
        if step.prepare is not None:
            step.prepare()
        print(f"{step.name}: {shlex.join(step.command)}", file=sys.stderr)
        subprocess.run(step.command, check=True)


if __name__ == "__main__":
    main()
