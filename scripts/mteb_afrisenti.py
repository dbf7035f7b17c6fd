"""The table of `--protocol mteb-afrisenti` for the docs: ours, and what is published.

    superconext compare --datasets sets.toml --protocol mteb-afrisenti --vectors vectors --out OUT
    python scripts/mteb_afrisenti.py STORED.csv OUT/vectors/protocol.csv --doc docs/protocols.md

The `protocol.csv` of each study are stored as one file, and the page has the table of that.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from doc_tables import write_table

from superconext.report.table import MISSING, Grid, spread

NAME = "mteb_afrisenti"
PUBLISHED = "paper ("
OURS = {
    "vectors_mteb": "mean word vectors (ours)",
    "pretrained_mteb": "pretrained encoder, frozen (ours)",
    "tfidf_logreg": "TF-IDF + logistic regression, on the same rows",
}


def grid(lines: list[dict[str, str]]) -> Grid:
    """A row for each system, best first by the first data set; weighted F1 in percent."""
    sets = list(dict.fromkeys(line["dataset"] for line in lines))
    cells: dict[str, dict[str, tuple[float, str]]] = {}
    for line in lines:
        mean, sd = float(line["mean"]), float(line["sd"])
        cells.setdefault(OURS[line["system"]], {})[line["dataset"]] = mean, spread(mean, sd)
        for column, value in line.items():
            if column.startswith(PUBLISHED) and value:
                name = column.removeprefix(PUBLISHED).removesuffix(")")
                found = float(value), f"{100 * float(value):.1f}"
                cells.setdefault(f"{name} (published)", {})[line["dataset"]] = found
    order = sorted(cells, key=lambda name: -cells[name][sets[0]][0])
    rows = [[name, *(cells[name].get(of, (0.0, MISSING))[1] for of in sets)] for name in order]
    return Grid(["frozen vectors of", *sets], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("stored", type=Path, help="CSV of the results")
    parser.add_argument("studies", type=Path, nargs="*", help="protocol.csv files to store in it")
    parser.add_argument("--doc", type=Path, help="page to write the table into")
    options = parser.parse_args()
    if options.studies:
        lines: list[dict[str, str]] = []
        for path in options.studies:
            with path.open(encoding="utf-8", newline="") as stream:
                lines += csv.DictReader(stream)
        with options.stored.open("w", encoding="utf-8", newline="") as stream:
            writer = csv.DictWriter(stream, list(lines[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)
    with options.stored.open(encoding="utf-8", newline="") as stream:
        table = grid(list(csv.DictReader(stream)))
    if options.doc:
        write_table(options.doc, NAME, table)
    print(table.text())


if __name__ == "__main__":
    main()
