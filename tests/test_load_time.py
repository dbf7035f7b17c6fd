"""A model of 50,000 words loads and answers within two seconds, and without gensim."""

import random
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

from superconext.config import resolve
from superconext.encoders.bilstm import BiLSTMEncoder
from superconext.encoders.embedding import WordEmbedding
from superconext.model import Model
from superconext.objectives.base import Shape
from superconext.objectives.catalogue import objective_class
from superconext.probe import Probe
from superconext.runs.folder import load_model, save_run
from superconext.text.ngrams import NgramVocabulary
from superconext.text.tokenize import Tokenizer
from superconext.text.vocabulary import Vocabulary
from superconext.vectors.subwords import SubwordTable
from superconext.vectors.table import WordVectors
from tests.cli.conftest import environment


def make_model(words: int) -> Model:
    """`words` words in the vocabulary and as many beside it; nothing trained."""
    draw, generator = random.Random(0), np.random.default_rng(0)
    pieces = ["".join(draw.choice("abcdehiklmnorstuwyz379") for _ in range(2)) for _ in range(120)]
    found: set[str] = set()
    while len(found) < 2 * words:
        found.add("".join(draw.choice(pieces) for _ in range(draw.randint(1, 4))))
    inside, outside = sorted(found)[:words], sorted(found)[words:]
    config = resolve({})
    vocabulary = Vocabulary(inside, [1] * words)
    ngrams = NgramVocabulary.build(inside)
    embedding = WordEmbedding(torch.randn(len(vocabulary), 100), False, len(ngrams))
    table = generator.standard_normal((words, 100)).astype(np.float16)
    buckets = SubwordTable(generator.standard_normal((2 * words, 100)).astype(np.float16), 2, 5)
    return Model(
        config,
        ["a", "b", "c"],
        Tokenizer(),
        vocabulary,
        WordVectors(outside, table, buckets),
        ngrams,
        [BiLSTMEncoder(embedding, 128)],
        [objective_class(config.objective).build(config, Shape(3, 256, 256))],
        Probe(np.zeros(256), np.ones(256), generator.standard_normal((3, 256)), np.zeros(3), 1.0),
    )


@pytest.mark.slow
def test_fifty_thousand_words_load_and_answer_in_two_seconds(tmp_path):
    model = make_model(50_000)
    save_run(model, tmp_path / "run")
    texts = ["zwin bzaf had film", " ".join(model.vocabulary.words[2:8]), "zzzqqq"]
    # Processor time: it is the work that must be little, however busy the machine is.
    started = time.process_time()
    loaded = load_model(tmp_path / "run")
    answer = loaded.predict(texts)
    assert time.process_time() - started < 2
    assert answer == model.predict(texts)


def test_loading_needs_neither_gensim_nor_pandas_nor_the_network(tmp_path):
    save_run(make_model(50), tmp_path / "run")
    program = (
        "import socket, sys\n"
        "for name in ('gensim', 'matplotlib', 'pandas'):\n"
        "    sys.modules[name] = None\n"
        "def refuse(*_, **__):\n"
        "    raise AssertionError('network')\n"
        "socket.socket.connect = refuse\n"
        "import superconext\n"
        "print(superconext.load(sys.argv[1]).predict(['zwin bzaf'])[0])\n"
    )
    words = [sys.executable, "-c", program, str(tmp_path / "run")]
    said = subprocess.run(words, capture_output=True, env=environment(), check=False)
    assert said.returncode == 0, said.stderr.decode()
    assert said.stdout.decode().strip() in ("a", "b", "c")
