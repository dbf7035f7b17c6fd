"""ONNX export: a folder from which text becomes labels, with NumPy and onnxruntime alone.

The encoders write their own part of the graph (`Encoder.onnx_graph`), the probe follows. What
answers beside the encoder goes along: n-gram models and the weights of their pool.

| file | what it holds |
|---|---|
| `README.md` | what this is, how to use it |
| `classify.py` | text to label: a command, and `load` for programs |
| `serve.py` | the same as an HTTP service, see `export.server` |
| `superconext_runtime/` | the modules that it runs, see `export.standalone` |
| `model.onnx` | token ids to the probe's scores and sentence vectors, see below |
| `model.json` | format, classes and their type, tokenizer, words by id, file hashes |
| `ensemble/` | n-gram models and the weights of their pool, where the run has them |
| `ngrams.safetensors` | n-gram and unknown-word vectors of each member, for unseen spellings |
| `vectors/` | vectors of words outside the training text |

| input or output of the graph | shape | what |
|---|---|---|
| `ids` (in) | int64 `[batch, length]` | token ids, 0 behind a text's end |
| `oov_words` (in, may be left out) | float32 `[words, members * e]` | vectors of ids from V on |
| `scores` (out) | float64 `[batch, classes]` | of the probe; their softmax is its probabilities |
| `sentence` (out) | float32 `[batch, d]` | the frozen sentence vectors |
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import torch

from superconext.core.arrays import write_arrays
from superconext.core.errors import ConfigError, MissingExtraError, RunError
from superconext.core.files import file_sha256, write_json
from superconext.encoders.onnx_graph import OPSET, GraphBuilder
from superconext.export.exported_model import sealed
from superconext.export.onnx_model import ENSEMBLE, FORMAT, OnnxModel, run_session, session_of
from superconext.export.standalone import write_standalone
from superconext.fitting.model import Model
from superconext.probe.base import softmax
from superconext.probe.ensemble import ENSEMBLES
from superconext.probe.logistic_regression import LogisticRegressionProbe
from superconext.text.tokenize import PAD_ID

#: Written by every onnx since 2022, read by every onnxruntime since then.
IR_VERSION = 8

#: How far apart onnxruntime and torch may be in a probability, or in a vector's number as a share
#: of the largest, if that is above 1: both add the same float32 numbers in another order.
TOLERANCE = 1e-5

#: Letters of the texts that both answer, beside words of the training text.
_LETTERS = "abcdeghiklmnorstuwxyz237895éçـابتثجحخدرزسشصضطعغفقكلمنهويةىءآأًّ😀👍🏽❤️-'’!?.,،؟#@_"

#: Texts that are like no others.
_ODD = (
    "", "   \t ", "\u200f", "\ud800", "<pad> <unk> <url>", "👍🏽👍🏽 ❤️‍🔥 🇲🇦", "z" * 3000,
    "zwin " * 700,
    "https://a.b/c?d=1 @user_1 #tag_two me@mail.org 3,5% 12/10 ٣٤", "हिन्दी 漢字かな ไทย Ελληνικά",
    "heeeeellooooo !!!!!!!!", "L'argent est-il ... l3ib؟؟؟ مُحَمَّـــد",
)  # fmt: skip


def write_onnx(model: Model, folder: Path, run: str = "a run", label_type: str = "str") -> float:
    """Write the files into an existing, empty folder and compare both ways to answer.

    run: its name, for the README. label_type: name of the dtype that labels were fitted in.

    Returns the largest difference between onnxruntime's and torch's numbers. Raises
    MissingExtraError without onnx and onnxruntime, RunError where the difference is above
    `TOLERANCE`.
    """
    try:
        import onnx
        import onnxruntime  # noqa: F401
    except ImportError:
        raise MissingExtraError("Export to ONNX", "onnx") from None

    proto = build_graph(model)
    onnx.checker.check_model(proto, full_check=True)
    onnx.save(proto, str(folder / "model.onnx"))
    write_rest(model, folder, run, label_type)
    shares, vectors = _difference(model, folder)
    shares = float(np.max([shares, difference_on_texts(model, OnnxModel(folder))]))
    for found, most in ((vectors, TOLERANCE), (shares, tolerance_of(model))):
        if not found <= most:
            raise RunError(
                f"onnxruntime and torch differ by {found:.2g} on this run, expected at most "
                f"{most:g}: nothing was written; export it with --format static"
            )
    return max(shares, vectors)


def write_rest(model: Model, folder: Path, run: str = "a run", label_type: str = "str") -> None:
    """Write all but the graph into a folder that has it already."""
    arrays = {
        f"{name}.{member}": array
        for member, encoder in enumerate(model.encoders)
        for name, array in encoder.onnx_arrays().items()
    }
    write_arrays(folder / "ngrams.safetensors", arrays)
    names = ["model.onnx", "ngrams.safetensors"]
    ensemble = None
    if model.ensemble is not None:
        kinds = ((name, kind) for name, kind in ENSEMBLES.items() if type(model.ensemble) is kind)
        ensemble, _ = next(kinds)
        (folder / ENSEMBLE).mkdir()
        model.ensemble.save(folder / ENSEMBLE)
        names += [f"{ENSEMBLE}/{name}" for name in model.ensemble.files]
    of_indexer = model.indexer.write_onnx(folder)
    names += sorted(f"vectors/{path.name}" for path in folder.glob("vectors/*"))
    document: dict[str, Any] = {
        "format": FORMAT,
        "classes": model.classes,
        "label_type": label_type,
        "columns": model.columns,
        "ensemble": ensemble,
        **of_indexer,
        "files": {name: file_sha256(folder / name) for name in names},
    }
    write_json(folder / "model.json", sealed(document))
    of_tokens = ["tokenizers"] if "subwords" in document else []
    packages = ["numpy", "onnxruntime", *of_tokens]
    opened = "OnnxModel(HERE, threads)"
    write_standalone(folder, packages, "onnx_model", opened, model.classes, run)


def build_graph(model: Model) -> Any:
    """The ONNX model (`onnx.ModelProto`) of a trained model.

    Raises RunError for an encoder, ConfigError for a probe that has no ONNX form.
    """
    from onnx import TensorProto, helper

    graph = GraphBuilder()
    zero = graph.constant([PAD_ID])
    real = graph.node("Cast", graph.node("Equal", "ids", zero), to=TensorProto.INT64)
    real = graph.node("Sub", graph.constant([1]), real)
    lengths = graph.node("ReduceSum", real, graph.constant([1]), keepdims=0)
    lengths = graph.node("Max", lengths, graph.constant([1]))
    sentences, first, sizes = [], 0, []
    for encoder in model.encoders:
        table = encoder.vector_table(None)
        size = 0 if table is None else table.shape[1]
        oov_vectors = graph.cut("oov_words", first, first + size, 1)
        sentences.append(encoder.onnx_graph(graph, lengths, oov_vectors))
        first += size
        sizes.append(encoder.sentence_size)
    graph.node("Concat", *sentences, output="sentence", axis=1)
    _probe(graph, model)
    values = helper.make_tensor_value_info
    # An initializer of the same name makes an input that may be left out.
    nobody = helper.make_tensor("oov_words", TensorProto.FLOAT, [0, first], [])
    proto = helper.make_graph(
        graph.nodes,
        "superconext",
        [
            values("ids", TensorProto.INT64, ["batch", "length"]),
            values("oov_words", TensorProto.FLOAT, ["words", first]),
        ],
        [
            values("scores", TensorProto.DOUBLE, ["batch", len(model.classes)]),
            values("sentence", TensorProto.FLOAT, ["batch", sum(sizes)]),
        ],
        [nobody, *graph.constants],
    )
    opset = [helper.make_opsetid("", OPSET)]
    return helper.make_model(
        proto, opset_imports=opset, ir_version=IR_VERSION, producer_name="superconext"
    )


def _probe(graph: GraphBuilder, model: Model) -> None:
    """Standardise, multiply and add, in double precision as the probe itself."""
    from onnx import TensorProto

    probe = model.probe
    if type(probe) is not LogisticRegressionProbe:  # another's scores may be computed otherwise
        raise ConfigError(
            f"found probe_features = {model.config.probe_features!r}; expected a logistic "
            "regression, which ONNX can hold: train with --probe-features encoder"
        )
    values = graph.node("Cast", "sentence", to=TensorProto.DOUBLE)
    if probe.unit_length:
        length = graph.node("ReduceL2", values, axes=[1], keepdims=1)
        # Of a sentence of zeros the length is 0; any other is far above the smallest number.
        least = graph.constant(np.finfo(np.float64).tiny, np.float64)
        values = graph.node("Div", values, graph.node("Max", length, least))
    values = graph.node("Sub", values, graph.constant(probe.mean, np.float64))
    values = graph.node("Div", values, graph.constant(probe.scale, np.float64))
    scores = graph.node("MatMul", values, graph.constant(probe.coef.T, np.float64))
    scores = graph.node("Add", scores, graph.constant(probe.intercept, np.float64))
    halves = [-0.5, 0.5] if len(probe.coef) == 1 else [1.0]
    graph.node("Mul", scores, graph.constant(halves, np.float64), output="scores")


def tolerance_of(model: Model) -> float:
    """How far apart probabilities may be: `TOLERANCE`, or what the probe makes of the rounding of
    a sentence vector, where its weights are so large (a few units of a tiny encoder hardly vary,
    and are standardised). Then torch's own answers differ as much from batch to batch."""
    probe = model.probe
    assert isinstance(probe, LogisticRegressionProbe)
    gain = np.linalg.norm(probe.coef / probe.scale, axis=1).max()
    return max(TOLERANCE, float(np.finfo(np.float32).eps * gain))


@torch.no_grad()
def _difference(model: Model, folder: Path) -> tuple[float, float]:
    """The largest differences of probabilities and of sentence vectors over random sentences of
    known, unknown and new words."""
    session = session_of(folder / "model.onnx")
    generator = np.random.default_rng(0)
    tables = [encoder.vector_table(None) for encoder in model.encoders]
    sizes = [0 if table is None else table.shape[1] for table in tables]
    above, words = model.encoders[0].onnx_ids
    largest = np.zeros(2)
    for rows, width, new in ((1, 1, 0), (3, 7, 2), (17, 40, 5)):
        lengths = generator.integers(1, width + 1, rows)
        ids = generator.integers(1, words + new * any(sizes), (rows, width))
        ids[np.arange(width) >= lengths[:, None]] = 0
        oov_words = generator.standard_normal((new, sum(sizes))).astype(np.float32)
        scores, sentence = run_session(session, ids, oov_words)
        answered = softmax(scores), sentence
        parts = []
        extras = np.split(oov_words, np.cumsum(sizes)[:-1], axis=1)
        own_ids = torch.from_numpy(ids - above).clamp(min=0)
        for encoder, own, extra in zip(model.encoders, tables, extras, strict=True):
            table = None if own is None else torch.cat([own, torch.from_numpy(extra)])
            output = encoder(own_ids, torch.from_numpy(lengths), table)
            parts.append(output.sentence.numpy())
        features = np.hstack(parts)
        expected = (model.probe.probabilities(features), features)
        pairs = zip(answered, expected, strict=True)
        found = np.array([np.abs(one - other).max() for one, other in pairs])
        found[1] /= max(1.0, np.abs(features).max())
        largest = np.maximum(largest, found)
    return float(largest[0]), float(largest[1])


def difference_on_texts(model: Model, other: OnnxModel, count: int = 200, seed: int = 0) -> float:
    """The largest difference between two models' probabilities over generated texts."""
    texts = generated_texts(model, count, seed)
    return float(np.abs(model.probabilities(texts) - other.probabilities(texts)).max())


def generated_texts(model: Model, count: int, seed: int = 0) -> list[str]:
    """`count` texts of words the model knows, of such words misspelt, and of letters of two
    scripts in any order; some odd ones in front."""
    draw = random.Random(seed)
    known = model.indexer.known_words or ("zwin", "زوين")

    def word() -> str:
        kind, one = draw.random(), draw.choice(known)
        if kind < 0.6:
            return one
        if kind < 0.8:
            at = draw.randrange(len(one))
            return one[:at] + draw.choice(_LETTERS) + one[at + draw.randrange(2) :]
        return "".join(draw.choices(_LETTERS, k=draw.randint(1, 12)))

    texts = [" ".join(word() for _ in range(draw.randint(1, 25))) for _ in range(count)]
    return [*_ODD, *texts][:count]
