"""ONNX export: a folder with the model as a graph, and what it takes to go from text to ids.

The encoders write their own part of the graph (`Encoder.onnx_graph`), the probe follows.

| file | what it holds |
|---|---|
| `model.onnx` | token ids to probabilities and sentence vectors, see below |
| `model.json` | format, classes, tokenizer, words by id, the SHA-256 of the other files |
| `ngrams.safetensors` | n-gram and unknown-word vectors of each member, for unseen spellings |
| `vectors/` | vectors of words outside the training text |

| input or output of the graph | shape | what |
|---|---|---|
| `ids` (in) | int64 `[batch, length]` | token ids, 0 behind a text's end |
| `oov_words` (in, may be left out) | float32 `[words, members * e]` | vectors of ids from V on |
| `probabilities` (out) | float32 `[batch, classes]` | of the probe |
| `sentence` (out) | float32 `[batch, d]` | the frozen sentence vectors |
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

from superconext.core.errors import ConfigError, MissingExtraError, RunError
from superconext.core.files import file_sha256, write_json
from superconext.encoders.onnx_graph import OPSET, GraphBuilder
from superconext.export.onnx_model import FORMAT, run_session, session_of
from superconext.fitting.model import Model
from superconext.probe.logistic_regression import LogisticRegressionProbe
from superconext.text.vocabulary import PAD_ID

#: Written by every onnx since 2022, read by every onnxruntime since then.
IR_VERSION = 8

#: How far apart onnxruntime and torch may be in a probability or a vector's number.
TOLERANCE = 1e-5


def write_onnx(model: Model, folder: Path) -> float:
    """Write the files into an existing, empty folder and compare both ways to answer.

    Returns the largest difference between onnxruntime's and torch's numbers. Raises
    MissingExtraError without onnx and onnxruntime, RunError where the difference is above
    `TOLERANCE`.
    """
    try:
        import onnx
        import onnxruntime  # noqa: F401
    except ImportError:
        raise MissingExtraError("Export to ONNX", "onnx") from None
    from safetensors.numpy import save_file

    proto = build_graph(model)
    onnx.checker.check_model(proto, full_check=True)
    onnx.save(proto, str(folder / "model.onnx"))
    arrays = {
        f"{name}.{member}": array
        for member, encoder in enumerate(model.encoders)
        for name, array in encoder.onnx_arrays().items()
    }
    save_file(arrays, folder / "ngrams.safetensors")
    names = ("model.onnx", "ngrams.safetensors")
    document: dict[str, Any] = {
        "format": FORMAT,
        "classes": model.classes,
        "columns": model.columns,
        **model.indexer.write_onnx(folder),
        "files": {name: file_sha256(folder / name) for name in names},
    }
    write_json(folder / "model.json", document)
    difference = _difference(model, folder)
    if not difference <= TOLERANCE:
        raise RunError(
            f"{folder}: onnxruntime and torch differ by {difference:.2g}, expected at most "
            f"{TOLERANCE:g}: do not use the file, and report this model's parameters"
        )
    return difference


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
            values("probabilities", TensorProto.FLOAT, ["batch", len(model.classes)]),
            values("sentence", TensorProto.FLOAT, ["batch", sum(sizes)]),
        ],
        [nobody, *graph.constants],
    )
    opset = [helper.make_opsetid("", OPSET)]
    return helper.make_model(
        proto, opset_imports=opset, ir_version=IR_VERSION, producer_name="superconext"
    )


def _probe(graph: GraphBuilder, model: Model) -> None:
    """Standardise, multiply, add and soften, in double precision as the probe itself."""
    from onnx import TensorProto

    probe = model.probe
    if model.priors is not None:
        raise ConfigError(
            "found a run with prior_groups = 'script', which corrects probabilities by the text's "
            "script; expected one without, because an ONNX graph reads token ids and knows no "
            "script: train with --prior-groups none"
        )
    if not isinstance(probe, LogisticRegressionProbe):
        raise ConfigError(
            f"found probe_features = {model.config.probe_features!r}; expected a logistic "
            "regression, which ONNX can hold: train with --probe-features encoder"
        )
    values = graph.node("Cast", "sentence", to=TensorProto.DOUBLE)
    values = graph.node("Sub", values, graph.constant(probe.mean, np.float64))
    values = graph.node("Div", values, graph.constant(probe.scale, np.float64))
    scores = graph.node("MatMul", values, graph.constant(probe.coef.T, np.float64))
    scores = graph.node("Add", scores, graph.constant(probe.intercept, np.float64))
    if len(probe.coef) == 1:
        scores = graph.node("Mul", scores, graph.constant([-0.5, 0.5], np.float64))
    shares = graph.node("Softmax", scores, axis=1)
    graph.node("Cast", shares, output="probabilities", to=TensorProto.FLOAT)


@torch.no_grad()
def _difference(model: Model, folder: Path) -> float:
    """The largest difference over random sentences of known, unknown and new words."""
    session = session_of(folder / "model.onnx")
    generator = np.random.default_rng(0)
    tables = [encoder.vector_table(None) for encoder in model.encoders]
    sizes = [0 if table is None else table.shape[1] for table in tables]
    above, words = model.encoders[0].onnx_ids
    largest = 0.0
    for rows, width, new in ((1, 1, 0), (3, 7, 2), (17, 40, 5)):
        lengths = generator.integers(1, width + 1, rows)
        ids = generator.integers(1, words + new * any(sizes), (rows, width))
        ids[np.arange(width) >= lengths[:, None]] = 0
        oov_words = generator.standard_normal((new, sum(sizes))).astype(np.float32)
        answered = run_session(session, ids, oov_words)
        parts = []
        extras = np.split(oov_words, np.cumsum(sizes)[:-1], axis=1)
        own_ids = torch.from_numpy(ids - above).clamp(min=0)
        for encoder, own, extra in zip(model.encoders, tables, extras, strict=True):
            table = None if own is None else torch.cat([own, torch.from_numpy(extra)])
            output = encoder(own_ids, torch.from_numpy(lengths), table)
            parts.append(output.sentence.numpy())
        features = np.hstack(parts)
        expected = (model.probe.probabilities(features), features)
        for one, other in zip(answered, expected, strict=True):
            largest = max(largest, float(np.abs(one - other).max()))
    return largest
