"""A model of 50,000 words loads and answers within two seconds, and without scikit-learn."""

import gc
import hashlib
import json
import random
import subprocess
import sys
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

import superconext
from superconext.cli import main
from superconext.config.parameters import resolve
from superconext.core.errors import RunError
from superconext.encoders.bilstm import BiLSTMEncoder
from superconext.encoders.indexer import WordIndexer
from superconext.encoders.words import WordEmbedding
from superconext.fitting.model import Model
from superconext.objectives.base import Shape
from superconext.objectives.catalogue import objective_class
from superconext.probe.ensemble import MeanWithTfidf
from superconext.probe.logistic_regression import LogisticRegressionProbe
from superconext.probe.ngrams import fit_tfidf_model
from superconext.runs.folder import load_model, save_run
from superconext.text.ngrams import NgramVocabulary
from superconext.text.normalize import Normalizer
from superconext.text.tokenize import Tokenizer, Vocabulary
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
        WordIndexer(
            Tokenizer(Normalizer("arabic")),
            vocabulary,
            WordVectors(outside, table, buckets),
            ngrams,
            config.max_length,
        ),
        [BiLSTMEncoder(embedding, config.hidden_size, config.layers, pooling=config.pooling)],
        [objective_class(config.objective).build(config, Shape(3, 256, 256))],
        LogisticRegressionProbe(
            np.zeros(256), np.ones(256), generator.standard_normal((3, 256)), np.zeros(3), 1.0
        ),
    )


@pytest.mark.slow
def with_tfidf(model: Model) -> Model:
    """The same with TF-IDF of three texts beside the encoder."""
    config = replace(model.config, probe_features="encoder+tfidf")
    mean = MeanWithTfidf(fit_tfidf_model(["zwin bzaf", "khayb", "had film"], np.arange(3)))
    return replace(model, config=config, ensemble=mean)


def test_fifty_thousand_words_load_and_answer_in_two_seconds(tmp_path):
    model = make_model(50_000)
    save_run(model, tmp_path / "run")
    texts = ["zwin bzaf had film", " ".join(model.indexer.vocabulary.words[2:8]), "zzzqqq"]
    # Processor time: it is the work that must be little, however busy the machine is.
    started = time.process_time()
    loaded = load_model(tmp_path / "run")
    answer = loaded.predict(texts)
    assert time.process_time() - started < 2
    assert answer == model.predict(texts)
    assert np.array_equal(loaded.features(texts), model.features(texts))


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run, and one that answers with TF-IDF beside its encoder."""
    folder = tmp_path_factory.mktemp("runs")
    model = make_model(50)
    save_run(model, folder / "encoder")
    save_run(with_tfidf(model), folder / "encoder+tfidf")
    return folder


BOTH_RUNS = pytest.mark.parametrize("run", ["encoder", "encoder+tfidf"])


@BOTH_RUNS
def test_predicting_imports_nothing_that_only_training_needs(runs, run):
    program = (
        "import socket, sys\n"
        "for name in ('gensim', 'matplotlib', 'pandas', 'scipy', 'sklearn'):\n"
        "    sys.modules[name] = None\n"
        "def refuse(*_, **__):\n"
        "    raise AssertionError('network')\n"
        "socket.socket.connect = refuse\n"
        "import superconext\n"
        "print(superconext.load(sys.argv[1]).predict(['zwin bzaf'])[0])\n"
    )
    words = [sys.executable, "-c", program, str(runs / run)]
    said = subprocess.run(words, capture_output=True, env=environment(), check=False)
    assert said.returncode == 0, said.stderr.decode()
    assert said.stdout.decode().strip() in ("a", "b", "c")


@BOTH_RUNS
def test_the_command_imports_no_more(runs, run):
    program = (
        "import sys\n"
        "for name in ('gensim', 'matplotlib', 'pandas', 'scipy', 'sklearn'):\n"
        "    sys.modules[name] = None\n"
        "from superconext.cli import main\n"
        "main(sys.argv[1:])\n"
    )
    words = [sys.executable, "-c", program, "predict", str(runs / run), "--proba"]
    said = subprocess.run(
        words, input=b"zwin bzaf\n", capture_output=True, env=environment(), check=False
    )
    assert said.returncode == 0, said.stderr.decode()
    assert said.stdout.decode().splitlines()[0] == "label\ta\tb\tc\ttext"


def test_a_model_is_apart_from_the_file_it_was_read_from(tmp_path):
    save_run(make_model(50), tmp_path / "run")
    loaded = load_model(tmp_path / "run")
    expected = loaded.features(["zwin bzaf"])
    path = tmp_path / "run" / "encoder.safetensors"
    with path.open("r+b") as stream:
        stream.seek(path.stat().st_size // 2)
        stream.write(b"\0" * (path.stat().st_size // 2))
    assert np.array_equal(loaded.features(["zwin bzaf"]), expected)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("encoder.safetensors", float("nan"), "values that are no numbers"),
        ("probe.safetensors", 1e308, "probabilities that are no numbers"),
    ],
)
def test_weights_that_give_no_numbers_are_refused(tmp_path, name, value, said):
    save_run(make_model(50), tmp_path / "run")
    file, manifest = tmp_path / "run" / name, tmp_path / "run" / "manifest.json"
    weights = {n: np.full_like(array, value) for n, array in load_file(file).items()}
    save_file(weights, file)
    saved = json.loads(manifest.read_text())
    saved["files"][name] = hashlib.sha256(file.read_bytes()).hexdigest()
    manifest.write_text(json.dumps(saved))
    with np.errstate(all="ignore"), pytest.raises(RunError, match=said):
        superconext.load(tmp_path / "run").predict_proba(["zwin bzaf"])


def test_a_run_that_corrects_by_script_is_refused(tmp_path):
    """As version 0.2.0 wrote it; without the correction it would answer otherwise."""
    save_run(make_model(50), tmp_path / "run")
    file, manifest = (tmp_path / "run" / name for name in ("config.toml", "manifest.json"))
    lines, saved = file.read_text(encoding="utf-8"), json.loads(manifest.read_text())

    def loaded(value):
        file.write_text(f'{lines}\nprior_groups = "{value}"\n', encoding="utf-8")
        saved["files"]["config.toml"] = hashlib.sha256(file.read_bytes()).hexdigest()
        manifest.write_text(json.dumps(saved))
        return load_model(tmp_path / "run")

    assert loaded("none").predict(["zwin bzaf"])
    with pytest.raises(RunError, match=r"found prior_groups = 'script'.*train again"):
        loaded("script")


def test_the_collector_is_left_as_it_was(tmp_path):
    save_run(make_model(50), tmp_path / "run")
    for before in (gc.enable, gc.disable):
        before()
        try:
            superconext.load(tmp_path / "run")
            assert gc.isenabled() == (before is gc.enable)
            with pytest.raises(RunError):
                superconext.load(tmp_path / "none")
            assert gc.isenabled() == (before is gc.enable)
        finally:
            gc.enable()


@pytest.mark.parametrize("word", ["i\u0307sraf", "\ua98f\ua9ba\ua9c0\ua9b1", "·", "plain"])
def test_words_that_rules_of_today_read_otherwise_are_told(tmp_path, capsys, word):
    """As version 0.2.0 wrote them, whose folders do not say by which rules they were made."""
    run = tmp_path / "run"
    save_run(make_model(50), run)
    file, manifest = run / "vocabulary.json", run / "manifest.json"
    document, saved = (json.loads(one.read_text(encoding="utf-8")) for one in (file, manifest))

    def put(words, version):
        document["vocabulary"]["tokens"] = words
        document["tokenizer"] |= version
        file.write_text(json.dumps(document), encoding="utf-8")
        saved["files"][file.name] = hashlib.sha256(file.read_bytes()).hexdigest()
        manifest.write_text(json.dumps(saved), encoding="utf-8")

    assert document["tokenizer"].pop("version") == 2
    words = [*document["vocabulary"]["tokens"][:-1], word]
    put(words, {})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        superconext.load(run)
    told = [str(one.message) for one in caught]
    texts = tmp_path / "texts.txt"
    texts.write_text("zwin\n", encoding="utf-8")
    main(["predict", str(run), str(texts), "--quiet"])
    said = capsys.readouterr().err
    if word == "plain":
        assert told == [] and said == ""
    else:
        (line,) = told
        found = "between letters is part of a word" if word == "·" else ", cannot be found"
        assert f"{word!r}{' ' * (word == '·')}{found} by this version" in line and line in said
    put(words, {"version": 2})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        superconext.load(run)
    put(words, {"version": 3})
    with pytest.raises(RunError, match="expected at most 2: install a newer superconext"):
        superconext.load(run)
