"""Named sets of defaults, each value with where it comes from.

Source of `paper` and, where a comment has numbers, of `fast`: SuperConText (IEEE Access 2023, doi
10.1109/ACCESS.2023.3241490), section V.B; "open" is what it gives no value of, and ours was chosen
on dev data. Parameters that no preset sets are open too: temperature, mining_threshold,
steps_per_epoch, max_length and min_count. What it prints and no preset has is a projection by an
MLP as wide as the sentence vector (512), and mining from epoch 20 of 60 on (Yelp-F).
"""

from __future__ import annotations

from typing import Any

# A few thousand sentences, one small BiLSTM, seconds to minutes on a laptop.
_FAST: dict[str, Any] = {
    "layers": 1,  # as for MSAC and ASAC
    "hidden_size": 128,
    "dropout": 0.2,
    "word_dropout": 0.2,  # open
    "pooling": "max",  # open
    "epochs": None,  # 15, and here of up to 3,000 rows; not the paper's of more: fewer did better
    "batch_size": 200,
    "learning_rate": 0.001,  # not the paper's 0.003: did better on dev with n-grams trained
    "keep": "average",  # open
    "vector_dimension": 100,  # open
    "tune_vectors": False,  # open
    "subwords": True,  # not the paper's: spellings vary more than one row a word can learn
}

# The large-set model of the paper: 3 layers, 512-d sentence vectors, GloVe 300-d.
_PAPER: dict[str, Any] = {
    "layers": 3,
    "hidden_size": 256,  # 512-d sentence vector: 256 units in each direction
    "dropout": 0.3,  # on each layer
    "word_dropout": 0.0,  # open
    "pooling": "last",  # open
    "epochs": 60,
    "batch_size": 800,
    "learning_rate": 0.001,
    "keep": "last",  # open
    "vector_dimension": 300,  # GloVe: give the file with --vectors
    "tune_vectors": True,  # open
    "subwords": False,  # word vectors alone
}

#: Values of the encoders that replace the preset's. Transformers are fine-tuned in small steps:
#: Devlin et al. (2019), appendix A.3, and Gunel et al. (2021) name such rates and batches.
OF_ENCODERS: dict[str, dict[str, Any]] = {
    "transformer": {
        "dropout": 0.1,
        "word_dropout": 0.0,
        "pooling": "mean",
        "batch_size": 32,
        "learning_rate": 5e-5,
        "projection": "identity",
        "temperature": 0.3,
        "keep": "last",
    }
}

#: Values of an encoder that starts pretrained and is then trained: of fewer than
#: `SMALL_STEPS_BELOW` rows, and of more. Few rows pay with small steps from the mean of the
#: states, which pretraining on emoji has trained (docs/research.md).
SMALL_STEPS_BELOW = 600
BY_ROWS: dict[str, tuple[Any, Any]] = {"pooling": ("mean", "max"), "learning_rate": (2e-4, 1e-3)}

# It chooses among recipes (`fitting.recipes`); what it does not choose is as in `fast`, but for
# rare classes, of which log loss and accuracy find too few (docs/research.md).
_AUTO = {**_FAST, "logit_adjustment": 0.5}

PRESETS: dict[str, dict[str, Any]] = {"fast": _FAST, "auto": _AUTO, "paper": _PAPER}
