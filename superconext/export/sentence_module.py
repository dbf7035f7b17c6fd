"""A trained encoder as a module of the library sentence-transformers.

The library's own modules (word vectors, LSTM, pooling) cannot make the same vectors: its
tokenizers know none of our normalisation, words unseen in training would all be one, it has
no pooling that takes each direction's last state, and no way to set members side by side.
So this module wraps the model, and whoever opens the folder needs superconext installed, except
where an encoder has modules of the library's own (`Encoder.sentence_modules`).
Since its version 6 the library asks for `trust_remote_code=True` for any module that is not
its own; no code is taken from the folder either way.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from superconext.core.blank import is_blank
from superconext.core.errors import MissingExtraError
from superconext.core.files import write_json
from superconext.fitting.model import Model
from superconext.text.tokenize import Tokenizer

_SUBFOLDER = "superconext"


class SentenceModule(nn.Module):
    """Text to `sentence_embedding` `[N, d]`, members side by side."""

    modalities = ("text",)
    save_in_root = False

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        self.encoders = nn.ModuleList(model.encoders)
        self.max_seq_length = model.config.max_length

    @property
    def tokenizer(self) -> Tokenizer:
        return self.model.indexer.tokenizer

    def preprocess(
        self, inputs: Sequence[str], prompt: str | None = None, **unused: Any
    ) -> dict[str, Tensor]:
        """Padded ids `[N, T]`, lengths `[N]` and each member's vectors of unseen words."""
        store = self.model.store([(prompt or "") + text for text in inputs])
        ids, lengths = store.pad(torch.arange(len(store)).numpy())
        features = {
            "input_ids": torch.from_numpy(ids),
            "attention_mask": torch.from_numpy(ids != 0).long(),
            "sentence_lengths": torch.from_numpy(lengths),
            "shown": torch.tensor([[not is_blank(text)] for text in inputs]),
        }
        for member, encoder in enumerate(self.model.encoders):
            own, table = encoder.vector_table(None), encoder.vector_table(store.oov_words)
            if own is not None and table is not None:
                features[f"oov_words_{member}"] = table[len(own) :].detach()
        return features

    def tokenize(self, texts: Sequence[str], **unused: Any) -> dict[str, Tensor]:
        """What the library called `preprocess` before its version 6."""
        return self.preprocess(texts)

    def forward(self, features: dict[str, Tensor], **unused: Any) -> dict[str, Tensor]:
        """Adds `sentence_embedding` to the features of `preprocess`."""
        parts = []
        for member, encoder in enumerate(self.model.encoders):
            table = encoder.vector_table(None)
            if table is not None:
                new = features[f"oov_words_{member}"].to(table.device)
                table = torch.cat([table, new])
            output = encoder(features["input_ids"], features["sentence_lengths"], table)
            parts.append(output.sentence)
        # Zeros for a blank text, as `transform` gives.
        features["sentence_embedding"] = torch.cat(parts, dim=1) * features["shown"]
        return features

    def get_sentence_embedding_dimension(self) -> int:
        return sum(encoder.sentence_size for encoder in self.model.encoders)

    get_embedding_dimension = get_sentence_embedding_dimension

    def save(self, output_path: str, *args: Any, **kwargs: Any) -> None:
        """Write the model's plain files into a folder, in place of those of an earlier save."""
        from superconext.runs.folder import save_run

        save_run(self.model, Path(output_path) / "run", force=True)

    @staticmethod
    def load(input_path: str) -> SentenceModule:
        """Read what `save` wrote. Raises RunError when it is damaged."""
        from superconext.runs.folder import load_model

        model = load_model(Path(input_path) / "run")
        if told := model.indexer.misread:
            warnings.warn(f"{input_path}: {told}", stacklevel=2)
        return SentenceModule(model).eval()


def write_sentence_transformer(model: Model, folder: Path) -> None:
    """Write the files that `SentenceTransformer(folder)` opens into an existing, empty folder.

    Raises MissingExtraError where the library is not installed.
    """
    try:
        from importlib.metadata import version

        installed = version("sentence-transformers")
    except ImportError:
        raise MissingExtraError(
            "Export to sentence-transformers", "sentence-transformers"
        ) from None
    modules = None
    if len(model.encoders) == 1:
        modules = model.encoders[0].sentence_modules(model.indexer, folder)
    if modules is None:
        inner = folder / _SUBFOLDER
        inner.mkdir()
        SentenceModule(model).save(str(inner))
        kind = f"{SentenceModule.__module__}.{SentenceModule.__qualname__}"
        modules = [{"path": _SUBFOLDER, "type": kind}]
    entries = [{"idx": i, "name": str(i), **module} for i, module in enumerate(modules)]
    write_json(folder / "modules.json", entries)
    versions = {"sentence_transformers": installed, "pytorch": torch.__version__}
    write_json(
        folder / "config_sentence_transformers.json",
        {
            "__version__": versions,
            "model_type": "SentenceTransformer",
            "prompts": {},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        },
    )
