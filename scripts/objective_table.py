"""Every objective on several data sets, each as the dev rows of some of them would have it.

    python scripts/objective_table.py SETS.toml --tune A,B --out DIR [--seeds 5] [--jobs 2]

SETS.toml names the data sets, as `superconext compare --datasets` reads them. Each setting of
scripts/objective_grid.toml is fitted on the sets A and B with one seed; of each objective the one
with the highest mean weighted F1 on their dev rows is then fitted on all sets with all seeds. Both
are comparisons of their own, DIR/tune and DIR/table, and go on where they stopped. The chosen
settings are printed and stand in DIR/chosen.toml. The tables with all scores and paired tests are
those of DIR/table; what is printed is accuracy, mean and standard deviation, `+` or `-` where it
differs from the reference, TF-IDF + LR, after Holm's correction, and the median seconds of a fit.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np

from superconext.config.files import read_toml
from superconext.experiments.systems import OWN_RULE
from superconext.report.table import markdown

GRID = Path(__file__).with_name("objective_grid.toml")


def toml(kind: str, tables: list[dict]) -> str:
    """An array of tables whose values are numbers, texts and switches."""
    lines = []
    for table in tables:
        lines.append(f"[[{kind}]]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in table.items()]
        lines.append("")
    return "\n".join(lines)


def chosen(systems: list[dict], results: list[dict], sets: list[str]) -> list[dict]:
    """Of each objective the setting that does best on dev, called by the objective's name.

    The first one on ties. Raises SystemExit where a fit is missing.
    """
    found = {
        (line["system"], line["dataset"]): line["dev"]["f1_weighted"]
        for line in results
        if line["seed"] == 0
    }
    best: dict[str, tuple[float, dict]] = {}
    for system in systems:
        if any((system["name"], name) not in found for name in sets):
            raise SystemExit(f"error: no fit of {system['name']} on each of {', '.join(sets)}")
        score = float(np.mean([found[system["name"], name] for name in sets]))
        if score > best.get(system["objective"], (-1.0, {}))[0]:
            best[system["objective"]] = score, system
    for score, system in best.values():
        print(f"{100 * score:.1f}  {system['name']}")
    return [{**system, "name": name} for name, (_, system) in best.items()]


def compare(datasets: Path, systems: Path, out: Path, seeds: int, jobs: int) -> None:
    """Run a comparison, or go on with it."""
    command = ["compare", "--datasets", str(datasets), "--systems", str(systems)]
    command += ["--seeds", str(seeds), "--jobs", str(jobs), "--out", str(out)]
    done = subprocess.run([sys.executable, "-m", "superconext", *command], check=False)
    if done.returncode:
        raise SystemExit(done.returncode)


def fits(folder: Path) -> list[dict]:
    """The lines of a comparison."""
    lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def table(folder: Path) -> str:
    """Systems by data sets, from the comparison's own long table."""
    with (folder / "table.csv").open(encoding="utf-8", newline="") as stream:
        lines = list(csv.DictReader(stream))
    sets = list(dict.fromkeys(line["dataset"] for line in lines))
    # The median, for a fit that was pushed aside by other work says nothing.
    taken: dict[str, list[float]] = {}
    for fit in fits(folder):
        taken.setdefault(fit["system"], []).append(fit["seconds"])
    rows = []
    for name in dict.fromkeys(line["system"] for line in lines):
        own = {line["dataset"]: line for line in lines if line["system"] == name}
        row = {"system": name, **{one: _cell(own[one]) for one in sets if one in own}}
        row["seconds"] = f"{np.median(taken[name.removesuffix(OWN_RULE)]):.0f}"
        rows.append(row)
    return markdown(rows, ("system", *sets, "seconds"))


def _cell(line: dict[str, str]) -> str:
    text = f"{100 * float(line['accuracy_mean']):.1f}"
    if line["accuracy_sd"]:
        text += f" ± {100 * float(line['accuracy_sd']):.1f}"
    if line["p_holm"] and float(line["p_holm"]) < 0.05:
        text += " +" if float(line["difference"]) > 0 else " -"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", type=Path)
    parser.add_argument("--tune", required=True, help="names of the sets whose dev rows choose")
    parser.add_argument("--grid", type=Path, default=GRID)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    wanted = options.tune.split(",")
    sets, systems = (
        read_toml(path, f"[[{key}]] tables").get(key) or parser.error(f"{path}: no [[{key}]] table")
        for path, key in ((options.sets, "dataset"), (options.grid, "system"))
    )
    judges = [one for one in sets if one["name"] in wanted]
    if len(judges) < len(wanted):
        names = ", ".join(one["name"] for one in sets)
        raise SystemExit(f"error: --tune {options.tune}: expected some of {names}")
    options.out.mkdir(parents=True, exist_ok=True)
    # Beside the original, for what it names is looked for beside it.
    subset = options.sets.with_name(f".{options.sets.stem}-tune.toml")
    subset.write_text(toml("dataset", judges), encoding="utf-8")
    try:
        compare(subset, options.grid, options.out / "tune", 1, options.jobs)
    finally:
        subset.unlink()
    best = options.out / "chosen.toml"
    tuned = chosen(systems, fits(options.out / "tune"), wanted)
    best.write_text(toml("system", tuned), encoding="utf-8")
    compare(options.sets, best, options.out / "table", options.seeds, options.jobs)
    print(table(options.out / "table"))


if __name__ == "__main__":
    main()
