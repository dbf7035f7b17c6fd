"""What do word vectors, normaliser and bridge each bring? A table on dev, and one on test.

    python scripts/vectors_ablation.py DATA --unlabelled FILE [--unlabelled FILE] --out DIR
        [--glove FILE] [--sets msac,afrisenti_arq] [--seeds N] [--jobs J] [--test] [--write-only]

DATA holds msac/all.tsv and afrisenti_arq/{train,dev,test}.tsv (label TAB text). MSAC: exact
duplicates removed, a stratified 80/10/10 split for each seed; arq: its own splits. The rows:

- random: noise to begin with, trained along; whole words alone, as all GloVe rows;
- GloVe-like: word vectors of whole words, frozen: word2vec on FILE, or those of `--glove`;
- word2vec: the same (never those of `--glove`), with the encoder's character n-grams;
- FastText, training text: n-grams in the vectors too, and no other text than that of train;
- FastText: the same on FILE.

Each is fitted with the normaliser off (profile `none`) and on (`auto`), the last also with the
bridge between Arabizi and Arabic. Vectors of FILE are trained once for each treatment of the
text, in DIR/vectors, without the lines that say what a text of the sets says; those of the
training text by each fit. DIR/SET.toml says so, and `superconext compare` does the rest in
DIR/SET: run again, it goes on where it stopped. Choose on the table of dev, which is printed and
DIR/dev.md; `--test` then prints that of test, as compare wrote it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from superconext.core.progress import TerminalProgress
from superconext.experiments.compare import Compared, compare
from superconext.experiments.datasets import DataSet
from superconext.experiments.parallel import Workers
from superconext.experiments.plan import Request
from superconext.experiments.systems import read_systems
from superconext.experiments.tables import by_system, summarise, to_grid
from superconext.report.table import markdown

#: Of each set: its files, how they are split, and the dialect of its bridge.
SETS: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
    "msac": ({"train": "all.tsv"}, {"deduplicate": True}, "moroccan"),
    "afrisenti_arq": (
        {"train": "train.tsv", "dev": "dev.tsv", "test": "test.tsv"},
        {},
        "algerian",
    ),
}
OFF, ON, BRIDGE = "off", "on", "on, bridge"


def rows(glove: str | None, method: Callable[[str], str]) -> dict[str, dict[str, Any]]:
    """The parameters of each kind of vectors; method: the folder of vectors trained by it."""
    whole = {"subwords": False}
    return {
        "random": {"vector_method": "random", "tune_vectors": True, **whole},
        "GloVe" if glove else "GloVe-like": {"vectors": glove or method("word2vec"), **whole},
        "word2vec": {"vectors": method("word2vec")},
        "FastText, training text": {},
        "FastText": {"vectors": method("fasttext")},
    }


def systems(glove: str | None, folders: Path, dialect: str) -> list[dict[str, Any]]:
    """Every kind under every treatment of the text that it is tried with."""
    found = []
    for text, given in treatments(dialect).items():
        name = folder_name(text, dialect)
        kinds = rows(glove, lambda method, name=name: str(folders / f"{method}-{name}"))  # type: ignore[misc]
        for kind, parameters in kinds.items():
            if text != BRIDGE or kind == list(kinds)[-1]:
                row = {"name": f"{kind}; normaliser {text}", "objective": "superloss"}
                found.append({**row, **parameters, **given})
    return found


def treatments(dialect: str) -> dict[str, dict[str, Any]]:
    return {OFF: {"normalize": "none"}, ON: {}, BRIDGE: {"bridge": dialect}}


def folder_name(text: str, dialect: str) -> str:
    return {OFF: "off", ON: "on", BRIDGE: dialect}[text]


def train_folders(data: Path, unlabelled: list[str], folders: Path, names: list[str]) -> None:
    """Vectors of the unlabelled text for each treatment of it, unless they are there."""
    labelled = [str(data / name / file) for name in SETS for file in SETS[name][0].values()]
    leave_out = [word for file in labelled for word in ("--leave-out", file)]
    wanted = {("word2vec", text, "") for text in (OFF, ON)} | {("fasttext", OFF, "")}
    wanted |= {("fasttext", text, SETS[name][2]) for name in names for text in (ON, BRIDGE)}
    for method, text, dialect in sorted(wanted):
        out = folders / f"{method}-{folder_name(text, dialect)}"
        if out.exists():
            continue
        given = treatments(dialect)[text]
        more = [word for key, value in given.items() for word in (f"--{key}", value)]
        words = ["vectors", "train", *unlabelled, "--method", method, "--out", str(out)]
        command = [sys.executable, "-m", "superconext", *words, *leave_out, *more]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def write_systems(path: Path, listed: list[dict[str, Any]]) -> None:
    """The systems as `compare --systems` reads them."""
    # A JSON string, number or truth value is also one of TOML.
    tables = [
        "\n".join(
            ["[[system]]", *(f"{k} = {json.dumps(v, ensure_ascii=False)}" for k, v in one.items())]
        )
        for one in listed
    ]
    text = "\n\n".join(tables) + "\n"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def run(name: str, data: Path, out: Path, seeds: int, jobs: int) -> Compared:
    """The comparison on one set, in its folder."""
    files, how, _ = SETS[name]
    where = {role: str(data / name / file) for role, file in files.items()}
    request = Request(
        datasets=(DataSet("", **where, **how),),
        systems=read_systems(out / f"{name}.toml"),
        seeds=seeds,
        out=str(out / name),
        workers=Workers(jobs),
    )
    return compare(request, TerminalProgress())


def on_dev(name: str, compared: Compared) -> list[dict[str, str]]:
    """Weighted F1 on dev, a row for each kind of vectors (and each baseline)."""
    found: dict[str, dict[str, str]] = {}
    for system, lines in by_system(compared.lines).items():
        kind, _, text = system.partition("; normaliser ")
        row = summarise(system, lines, "dev")
        spread = row.deviations["f1_weighted"]
        cell = f"{100 * row.means['f1_weighted']:.1f}"
        cell += "" if spread is None else f" ± {100 * spread:.1f}"
        line = found.setdefault(kind, {"set": name, "vectors": kind, "fits": str(row.fits)})
        line[text or OFF] = cell  # the baselines read the text as it is
    return list(found.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument(
        "--unlabelled", action="append", required=True, help="one sentence a line; again for more"
    )
    parser.add_argument("--glove", type=Path, help="a file of word vectors for the GloVe rows")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--test", action="store_true", help="print the tables of test too")
    parser.add_argument("--write-only", action="store_true", help="write SET.toml, fit nothing")
    options = parser.parse_args()
    glove = str(options.glove.resolve()) if options.glove else None
    folders = options.out.resolve() / "vectors"
    names = options.sets.split(",")
    for name in names:
        if name not in SETS:
            parser.error(f"set {name!r}; expected some of {', '.join(SETS)}")
        options.out.mkdir(parents=True, exist_ok=True)
        write_systems(options.out / f"{name}.toml", systems(glove, folders, SETS[name][2]))
    if options.write_only:
        return
    train_folders(options.data, options.unlabelled, folders, names)
    tables: dict[str, Compared] = {}
    found: list[dict[str, str]] = []
    for name in names:
        tables[name] = run(name, options.data, options.out, options.seeds, options.jobs)
        found += on_dev(name, tables[name])
    text = markdown(found, ("set", "vectors", "fits", OFF, ON, BRIDGE))
    (options.out / "dev.md").write_text(text + "\n", encoding="utf-8")
    print(f"Weighted F1 on dev, percent, by normaliser.\n\n{text}")
    if options.test:
        for name, compared in tables.items():
            print(f"\n{name}, test\n\n{to_grid(compared.table).text()}")


if __name__ == "__main__":
    main()
