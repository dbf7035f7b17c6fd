"""What a user's own class does wrongly is laid to that class and its file, on one line."""

from __future__ import annotations

import subprocess
import sys

import pytest

from superconext.baselines import BASELINES
from superconext.data.file_format import FILE_FORMATS
from superconext.encoders import ENCODERS
from superconext.objectives.catalogue import OBJECTIVES
from superconext.probe import METRICS, PROBES
from tests.cli.conftest import blame, environment

FILE = """
import torch
from superconext.baselines.baseline import Baseline
from superconext.data.file_format import LineFormat
from superconext.encoders.words import WordEncoder
from superconext.objectives.base import Objective
from superconext.probe.base import Probe

class Loss(Objective):
    def forward(self, batch):
        return batch.sentence.square().mean(), {}

class Alone(Loss):
    def forward(self, batch):
        return batch.sentence.square().mean()

class Number(Loss):
    def forward(self, batch):
        return 1.0, {}

class Still(Loss):
    def forward(self, batch):
        return batch.sentence.mean().detach(), {}

class Scalars(Loss):
    def forward(self, batch):
        return batch.sentence.mean(), {"vectors": batch.sentence}

class Raises(Loss):
    def forward(self, batch):
        return batch.sentences, {}

class Narrow(Loss):
    def __init__(self, size):
        super().__init__()

class NoOptions(Loss):
    options_type = None

class Pooled(Loss):
    needs_pool = True

class Scores(Loss):
    def class_scores(self, output):
        return 3

class Nothing(Objective):
    pass

class Words(WordEncoder):
    def __init__(self, embedding):
        super().__init__()
        self.embedding, self.sentence_size = embedding, embedding.dimension

    @classmethod
    def over_words(cls, embedding, config, class_tokens):
        return cls(embedding)

    @classmethod
    def width_of(cls, config):
        return config.vector_dimension

    def forward(self, ids, lengths, table=None):
        return self.embedding(ids)

class Constant(Probe):
    @classmethod
    def fit(cls, features, labels, dev_features=None, dev_labels=None):
        return cls()

    def decision(self, features):
        return [1.0]

    def arrays(self):
        return {}

    @classmethod
    def from_arrays(cls, arrays, classes, width):
        return cls()

class One(Baseline):
    def fit(self, train, dev, seed=0):
        return self

    def predict(self, texts):
        return "pos"

class Lines(LineFormat):
    suffixes = (".odd",)

    def row(self, line, number):
        return 1

def score(truth, predicted, classes):
    return "good"
"""

QUICK = ["--epochs", "1", "--no-baselines", "--cv", "0"]
PAIR = "expected the loss (a tensor of one number) and a dict"


@pytest.fixture
def own(call, tmp_path, monkeypatch):
    """Registers a name of the file's and calls the command line; the line of the error."""
    path = tmp_path / "mine.py"
    path.write_text(FILE, encoding="utf-8")

    def run(registry, name, *words):
        monkeypatch.setattr(registry, "_added", {})
        monkeypatch.setattr(registry, "used", {})
        registry.register("mine", f"{path}:{name}")
        line = blame(call(*words))
        assert f"{registry.kind} 'mine' ({name} in " in line and "mine.py)" in line, line
        return line

    return run


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Alone", "found Tensor of shape (), returned by forward; " + PAIR),
        ("Number", "found float, returned by forward as loss; " + PAIR),
        ("Still", "found a loss without gradient; expected one computed from the batch"),
        ("Scalars", "returned by forward as 'vectors'; " + PAIR),
        ("Raises", "has no attribute 'sentences') in forward, line 31; expected no error"),
        ("Narrow", "expected __init__(self, size, classes, temperature, options), or from_config"),
        ("NoOptions", "found options_type = None; expected a dataclass that extends"),
        ("Pooled", "expected a dataclass that extends superconext.objectives.base.PoolOptions"),
        ("Scores", "found int, returned by class_scores; expected a tensor [N, C], or None"),
        ("Nothing", "found no method forward; expected one that returns"),
    ],
)
def test_an_objective(own, data, tmp_path, name, said):
    small = [*data.small, *QUICK, "--out", tmp_path / "run"]
    if name == "Pooled":
        small += ["--unlabelled", data.test]
    assert said in own(OBJECTIVES, name, "train", data.train, "--objective", "mine", *small)


@pytest.mark.parametrize(
    ("registry", "name", "words", "said"),
    [
        (ENCODERS, "Words", ["--encoder", "mine", "--tune-vectors"], "expected an EncoderOutput"),
        (
            PROBES,
            "Constant",
            ["--probe-features", "mine", "--cv", "0"],
            "found list of 1, returned by decision",
        ),
        (METRICS, "score", [], "found str, returned by score; expected a number"),
    ],
)
def test_other_kinds(own, data, tmp_path, registry, name, words, said):
    small = [*data.small, *QUICK, "--out", tmp_path / "run"]
    assert said in own(registry, name, "train", data.train, *words, *small)


def test_a_baseline(own, data, tmp_path):
    words = ["compare", data.train, "--test", data.test, "--objectives", "mine,superloss"]
    line = own(BASELINES, "One", *words, "--seeds", "1", "--out", tmp_path / "compared")
    assert "found str, returned by predict; expected a list of" in line


def test_a_file_format(own, tmp_path):
    (tmp_path / "rows.odd").write_text("zwin bzaf\n", encoding="utf-8")
    line = own(FILE_FORMATS, "Lines", "data", "inspect", tmp_path / "rows.odd")
    assert "while this was in use" in line and "what their base class says" in line


def test_debug_shows_the_traceback_and_a_wrong_variable_is_one_line(data, tmp_path):
    (tmp_path / "mine.py").write_text(FILE, encoding="utf-8")
    known = {"SUPERCONEXT_OBJECTIVES": "mine=mine.py:Raises,mine.py:Loss"}
    words = ["train", data.train, "--out", "run", "--objective", "mine", *data.small, "--debug"]
    said = subprocess.run(
        [sys.executable, "-m", "superconext", *map(str, words)],
        cwd=tmp_path,
        env={**environment(), **known},
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert said.returncode == 1 and "Traceback" in said.stderr
    (told,) = [line for line in said.stderr.splitlines() if "SUPERCONEXT_OBJECTIVES" in line]
    assert told.startswith("warning: ") and "a relative path starts at the current folder" in told
    assert said.stderr.splitlines()[-1].startswith("error: objective 'mine' (Raises in mine.py): ")
