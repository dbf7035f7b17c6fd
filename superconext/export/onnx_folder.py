"""A folder with the model as ONNX, and everything else it takes to go from text to ids.

| file | what it holds |
|---|---|
| `model.onnx` | token ids to probabilities and sentence vectors, see `onnx_graph` |
| `model.json` | format, classes, tokenizer, words by id, the SHA-256 of the other files |
| `ngrams.safetensors` | n-gram and unknown-word vectors of each member, for unseen spellings |
| `vectors/` | vectors of words outside the training text |
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from superconext.core.errors import MissingExtraError, RunError
from superconext.core.files import file_sha256, write_json
from superconext.encoders.bilstm import BiLSTMEncoder
from superconext.export.onnx_graph import build_graph
from superconext.export.onnx_model import FORMAT, EncodedTexts
from superconext.text.vocabulary import UNK_ID

if TYPE_CHECKING:
    from superconext.fitting.model import Model

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
    indexer: Any = model.indexer
    indexer.oov_vectors.save(folder / "vectors")
    arrays: dict[str, np.ndarray] = {}
    for member, encoder in enumerate(model.encoders):
        assert isinstance(encoder, BiLSTMEncoder)
        embedding = encoder.embedding
        arrays[f"unknown.{member}"] = embedding.words[UNK_ID].detach().numpy().copy()
        arrays[f"ngrams.{member}"] = embedding.ngrams.detach().numpy()
    save_file(arrays, folder / "ngrams.safetensors")
    names = ("model.onnx", "ngrams.safetensors")
    document: dict[str, Any] = {
        "format": FORMAT,
        "classes": model.classes,
        "max_length": model.config.max_length,
        "tokenizer": indexer.tokenizer.to_dict(),
        "vocabulary": indexer.vocabulary.to_json(),
        "ngrams": None if indexer.ngrams is None else indexer.ngrams.to_json(),
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


@torch.no_grad()
def _difference(model: Model, folder: Path) -> float:
    """The largest difference over random sentences of known, unknown and new words."""
    from superconext.export.onnx_model import run_session, session_of

    session = session_of(folder / "model.onnx")
    generator = np.random.default_rng(0)
    indexer: Any = model.indexer
    words = len(indexer.vocabulary)
    sizes = [int(encoder.embedding.dimension) for encoder in model.encoders]  # type: ignore[union-attr,arg-type]
    largest = 0.0
    for rows, width, new in ((1, 1, 0), (3, 7, 2), (17, 40, 5)):
        lengths = generator.integers(1, width + 1, rows)
        ids = generator.integers(1, words + new, (rows, width))
        ids[np.arange(width) >= lengths[:, None]] = 0
        newcomers = generator.standard_normal((new, sum(sizes))).astype(np.float32)
        answered = run_session(session, EncodedTexts(ids, newcomers))
        parts = []
        for encoder, extra in zip(
            model.encoders, np.split(newcomers, np.cumsum(sizes)[:-1], axis=1), strict=True
        ):
            own = encoder.vector_table(None)
            assert own is not None
            table = torch.cat([own, torch.from_numpy(extra)])
            output = encoder(torch.from_numpy(ids), torch.from_numpy(lengths), table)
            parts.append(output.sentence.numpy())
        features = np.hstack(parts)
        expected = (model.probe.probabilities(features), features)
        for one, other in zip(answered, expected, strict=True):
            largest = max(largest, float(np.abs(one - other).max()))
    return largest
