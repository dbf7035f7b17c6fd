"""What a user's own class does wrongly is laid to that class and its file, on one line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import superconext
from superconext.baselines import BASELINES
from superconext.core.registry import Entry
from superconext.data.file_format import FILE_FORMATS
from superconext.encoders import ENCODERS
from superconext.objectives.catalogue import OBJECTIVES
from superconext.probe import METRICS, PROBES
from tests.cli.conftest import blame, call_main, environment, rows, write_table

FILE = """
from dataclasses import dataclass

import numpy as np
import torch
from superconext.baselines.baseline import Baseline, ProbabilisticBaseline
from superconext.data.file_format import LineFormat
from superconext.encoders.base import EncoderOutput
from superconext.encoders.words import WordEncoder
from superconext.objectives.base import Objective, PoolOptions
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

class Epochs(Loss):
    def forward(self, batch):
        return batch.sentence.mean(), {"near": 0.5, "epoch": 3}

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

class Scores(Objective):
    def forward(self, batch):
        raise AssertionError("training has begun")

    def class_scores(self, output):
        return 3

class TwoOfThree(Scores):
    def class_scores(self, output):
        return output.sentence[:, :2]

class Six(Scores):
    def class_scores(self, output):
        return output.sentence[:, :6]

class OneRow(Scores):
    def class_scores(self, output):
        return output.sentence[:1, :3]

class Guesses(Scores):
    def class_scores(self, output):
        return output.sentence[:, :3].long()

class Missing(Scores):
    def class_scores(self, output):
        return output.sentence[:, :3] * float("nan")

class AfterTraining(Loss):
    def end_training(self, encode, labels):
        vectors = encode(np.arange(len(labels))).sentence
        self.means = torch.stack([vectors[labels == k].mean(dim=0) for k in labels.unique()])

    def class_scores(self, output):
        return output.sentence @ self.means.T

class LateBuffer(Loss):
    def end_training(self, encode, labels):
        self.register_buffer("means", torch.zeros(3, 8))

@dataclass(frozen=True)
class PoolSize(PoolOptions):
    pass

class Remembers(Loss):
    needs_pool, options_type = True, PoolSize

    def forward(self, batch):
        return batch.sentence.mean() + batch.pool.memory.mean(), {}

    def remembered(self, sentence):
        return sentence.mean(dim=0, keepdim=True)

class TokenStates(Loss):
    needs_token_states = True

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

class Good(Words):
    def forward(self, ids, lengths, table=None):
        words = self.embedding(ids)
        mask = torch.arange(ids.shape[1])[None] < lengths[:, None]
        mean = (words * mask.unsqueeze(2)).sum(dim=1) / lengths[:, None]
        return EncoderOutput(words, mask, mean)

class States(Words):
    def forward(self, ids, lengths, table=None):
        words = self.embedding(ids)
        return EncoderOutput(words[:, :, :3], ids > 0, words.mean(dim=1))

class Whole(Words):
    def forward(self, ids, lengths, table=None):
        words = self.embedding(ids)
        return EncoderOutput(words, ids > 0, words.sum(dim=1).long())

class Infinite(Words):
    def forward(self, ids, lengths, table=None):
        words = self.embedding(ids)
        return EncoderOutput(words, ids > 0, words.sum(dim=1) / 0)

class Mask(Words):
    def forward(self, ids, lengths, table=None):
        words = self.embedding(ids)
        return EncoderOutput(words, ids[:, :1] > 0, words.mean(dim=1))

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

class NoWidth(Words):
    width_of = WordEncoder.width_of

class Opens(One):
    def fit(self, train, dev, seed=0):
        np.load("no-such-model.bin")

class NoRow(LineFormat):
    suffixes = (".odd",)

class Recorded(One):
    def fit(self, train, dev, seed=0):
        self.settings = {"test": "x"}

class Unwritable(One):
    def fit(self, train, dev, seed=0):
        self.settings = {"words": np.int64(3)}

class Upper(Lines):
    suffixes = ("odd",)

class FiveShares(One):
    def predict(self, texts):
        return ["pos"] * len(texts)

    def predict_proba(self, texts):
        return np.full((len(texts), 5), 0.2)

class NoShares(FiveShares):
    def predict_proba(self, texts):
        return np.full((len(texts), 2), np.nan)

class NoScores(ProbabilisticBaseline):
    def fit(self, train, dev, seed=0):
        self.names = sorted(set(train[1]))

    def decision(self, texts):
        return np.full((len(texts), 2), np.nan)

def certain(truth, predicted, classes, probabilities):
    return float(probabilities.max())
"""

QUICK = ["--epochs", "1", "--no-baselines", "--cv", "0"]
PAIR = "expected the loss (a tensor of one number) and a dict"


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Registers a name of the file's."""
    path = tmp_path / "mine.py"
    path.write_text(FILE, encoding="utf-8")

    def register(registry, name):
        monkeypatch.setattr(registry, "_added", {})
        monkeypatch.setattr(registry, "used", {})
        registry.register("mine", f"{path}:{name}")

    return register


@pytest.fixture
def own(call, mine):
    """Registers a name of the file's and calls the command line; the line of the error."""

    def run(registry, name, *words):
        mine(registry, name)
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
        ("Epochs", "found a number named 'epoch'; expected another name: training has it"),
        ("Raises", "has no attribute 'sentences') in forward, line 39; expected no error"),
        ("Narrow", "expected __init__(self, size, classes, temperature, options), or from_config"),
        ("NoOptions", "found options_type = None; expected a dataclass that extends"),
        ("Pooled", "expected a dataclass that extends superconext.objectives.base.PoolOptions"),
        (
            "Remembers",
            "found Tensor of shape (1, 16), returned by remembered; expected floats of",
        ),
        ("Nothing", "found no method forward; expected one that returns"),
        ("LateBuffer", "found the tensor 'means', made in end_training; expected all param"),
    ],
)
def test_an_objective(own, data, tmp_path, name, said):
    small = [*data.small, *QUICK, "--out", tmp_path / "run"]
    if name in ("Pooled", "Remembers"):
        small += ["--unlabelled", data.test]
    assert said in own(OBJECTIVES, name, "train", data.train, "--objective", "mine", *small)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Scores", "int"),
        ("TwoOfThree", "Tensor of shape (6, 2)"),
        ("Six", "Tensor of shape (6, 6)"),
        ("OneRow", "Tensor of shape (1, 3)"),
        ("Guesses", "numbers of type int64"),
        ("Missing", "NaN or infinity"),
    ],
)
def test_a_rule_to_predict_by_is_tried_before_training(own, three, data, tmp_path, name, found):
    said = own(OBJECTIVES, name, "train", three, "--objective", "mine", *data.small, *QUICK,
               "--out", tmp_path / "run")  # fmt: skip
    assert (
        f"found {found}, returned by class_scores; expected finite floats of shape (6, 3)" in said
    )
    assert not (tmp_path / "run").exists()


def test_a_rule_to_predict_by_may_need_what_end_training_keeps(three, data, tmp_path, mine):
    mine(OBJECTIVES, "AfterTraining")
    run = ["train", three, "--objective", "mine", *data.small, *QUICK, "--out", tmp_path / "run"]
    said = call_main(*run)
    assert said.code == 0, said.err
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text(encoding="utf-8"))
    assert metrics["native"]


@pytest.fixture
def three(tmp_path):
    """A labelled file of three classes."""
    table = [(label, text) for label, (_, text) in zip("abc" * 14, rows(42, seed=3), strict=True)]
    return write_table(tmp_path / "three.tsv", table)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (
            "States",
            "(4, 5, 3), returned by forward as token_states; expected floats of shape (4, 5, 8)",
        ),
        ("Mask", "(4, 1), returned by forward as mask; expected a mask of shape (4, 5)"),
        ("Whole", "numbers of type int64, returned by forward as sentence; expected floats"),
        ("Infinite", "NaN or infinity, returned by forward as sentence; expected finite floats"),
    ],
)
def test_what_an_encoder_gives(own, data, tmp_path, name, said):
    small = [*data.small, *QUICK, "--out", tmp_path / "run", "--tune-vectors"]
    words = ["train", data.train, "--encoder", "mine", "--objective", "leam", *small]
    assert said in own(ENCODERS, name, *words)


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


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("One", "found str, returned by predict; expected a list of"),
        ("Opens", "): no-such-model.bin: No such file or directory; check the path"),
        ("Recorded", "found a setting named 'test'; expected another name: results have it"),
        ("Unwritable", "found the setting 'words' of type int64; expected names and what JSON can"),
        ("FiveShares", "of shape (4, 5), returned by predict_proba; expected an array of shape"),
        ("NoShares", "found numbers that are no shares, returned by predict_proba"),
        ("NoScores", "found NaN, returned by decision; expected scores of the classes"),
    ],
)
def test_a_baseline(own, data, tmp_path, name, said, monkeypatch):
    words = ["compare", data.train, "--test", data.test, "--objectives", "mine", "--seeds", "1"]
    if name.endswith("Shares"):  # which are asked for where a metric needs them
        path = str(tmp_path / "mine.py")
        monkeypatch.setattr(METRICS, "_added", {"certain": Entry(f"{path}:certain")})
    line = own(BASELINES, name, *words, "--out", tmp_path / "compared")
    assert said in line, line


def test_what_lacks_a_method_is_told_before_any_training(call, mine, data, tmp_path):
    mine(ENCODERS, "NoWidth")
    said = blame(call("train", data.train, "--encoder", "mine", "--out", tmp_path / "run"))
    assert "encoder = 'mine': found no width_of in NoWidth; expected what" in said
    mine(BASELINES, "Baseline")
    words = ("--test", data.test, "--objectives", "superloss,mine", "--seeds", "1")
    said = call("compare", data.train, *words, "--out", tmp_path / "out")
    assert said.code == 2 and "found no fit, no predict in Baseline" in said.err
    assert not (tmp_path / "out").exists()
    mine(FILE_FORMATS, "NoRow")
    (tmp_path / "rows.odd").write_text("zwin bzaf\n", encoding="utf-8")
    assert "found no row in NoRow" in blame(call("data", "inspect", tmp_path / "rows.odd"))
    mine(FILE_FORMATS, "Upper")
    said = blame(call("data", "inspect", tmp_path / "rows.odd"))
    assert "found the suffix 'odd'; expected small letters behind a dot" in said


def test_code_that_was_changed_after_training_is_told(call, mine, data, tmp_path, monkeypatch):
    mine(ENCODERS, "Good")
    words = [*data.small, *QUICK, "--tune-vectors", "--encoder", "mine", "--out", tmp_path / "run"]
    assert call("train", data.train, *words).code == 0
    file = tmp_path / "mine.py"
    assert "another file" not in call("predict", tmp_path / "run", data.test).err
    file.write_text(FILE + "# changed\n", encoding="utf-8")
    assert "another file" not in call("predict", tmp_path / "run", data.test).err, "is in use"
    for name in [name for name in sys.modules if name.startswith("superconext_own_")]:
        monkeypatch.delitem(sys.modules, name)  # as in another process
    monkeypatch.setattr(ENCODERS, "used", {})
    told = "found another file of the encoder 'mine' than it was trained with"
    assert told in call("predict", tmp_path / "run", data.test).err
    with pytest.warns(UserWarning, match=told):
        superconext.load(tmp_path / "run")


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
