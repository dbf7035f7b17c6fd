"""A tiny data set, a request for it, and what is said kept."""

import dataclasses
import random

import pytest

from superconext.core.progress import Progress
from superconext.experiments.plan import Request
from superconext.experiments.row_sources import read_rows
from superconext.experiments.systems import DataSet, parse_systems
from superconext.report import figures

GOOD = ["زوين", "مزيان", "zwin", "mzyan", "bnin"]
BAD = ["خايب", "khayb", "ضعيف", "ghali", "عيان"]
COMMON = ["هاد", "الفيلم", "had", "lfilm", "bzaf", "كان", "kan", "walakin", "والو", "l3icha"]


def read_pools(files, scheme, *, progress=None, look=True, copies=False, near=False, at_most=None):
    """The rows of files, as a data set with these wishes has them."""
    data = DataSet("", **files, deduplicate=copies, deduplicate_near=near, at_most=at_most)
    return read_rows(data, scheme, progress or Progress(), near_findings=look)


class Heard(Progress):
    def __init__(self):
        self.lines = []

    def say(self, line):
        self.lines.append(line)

    def warn(self, line):
        self.lines.append(f"warning: {line}")


@pytest.fixture(autouse=True)
def _no_figures(monkeypatch):
    monkeypatch.setattr(figures, "available", lambda: False)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    draw = random.Random(0)
    rows = {}
    while len(rows) < 90:
        label = ["neg", "pos"][len(rows) % 2]
        words = [*draw.sample(COMMON, 4), draw.choice(GOOD if label == "pos" else BAD)]
        draw.shuffle(words)
        rows.setdefault(" ".join(words), label)
    lines = [f"{label}\t{text}" for text, label in rows.items()]
    for name, part in (("train", lines[:50]), ("dev", lines[50:66]), ("test", lines[66:])):
        (folder / f"{name}.tsv").write_text("\n".join(["label\ttext", *part]) + "\n", "utf-8")
    vectors = [
        f"{word} {' '.join(f'{draw.gauss(0, 0.3):.4f}' for _ in range(8))}"
        for word in [*GOOD, *BAD, *COMMON]
    ]
    (folder / "vectors.txt").write_text("\n".join(vectors) + "\n", "utf-8")
    return folder


@pytest.fixture
def request_of(data, tmp_path):
    def build(given=True, objectives="superloss,cross_entropy", **changes):
        files = {name: str(data / f"{name}.tsv") for name in ("train", "dev", "test")}
        request = Request(
            datasets=(DataSet("", **(files if given else {"train": files["train"]})),),
            systems=parse_systems(objectives),
            out=str(tmp_path / "out"),
            seeds=2,
            given={
                "vectors": str(data / "vectors.txt"),
                "epochs": 2,
                "hidden_size": 8,
                "batch_size": 20,
                "learning_rate": 0.02,
            },
        )
        return changed(request, **changes)

    return build


def changed(request, **changes):
    """A request with other values; fields of DataSet are changed in every data set."""
    names = {field.name for field in dataclasses.fields(Request)}
    own = {name: value for name, value in changes.items() if name in names}
    of_data = {name: value for name, value in changes.items() if name not in names}
    datasets = own.pop("datasets", request.datasets)
    own["datasets"] = tuple(dataclasses.replace(data, **of_data) for data in datasets)
    return dataclasses.replace(request, **own)
