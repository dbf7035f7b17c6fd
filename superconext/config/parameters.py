"""The parameters of a run: names, types, defaults, limits and help in one table.

The command line, the TOML files and the estimator all read this table, so the three
cannot drift apart. A parameter whose default differs between presets is left `None` by
its callers to mean "the preset's value"; `resolve` fills it in.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from superconext.config.parameter import Parameter, parameter, table_of
from superconext.config.presets import PRESETS
from superconext.core.errors import ConfigError

_objective, _encoder, _text, _run = (
    partial(parameter, group=group) for group in ("objective", "encoder", "text", "run")
)


@dataclass(frozen=True)
class Config:
    """Every parameter of a run, with concrete values."""

    objective: str = _objective("superloss", "Training objective, by name.")
    preset: str = parameter("dialect", "Named set of defaults.", choices=tuple(PRESETS))
    temperature: float = _objective(
        0.1, "Softmax temperature of the similarities.", low=0.0, open_low=True
    )
    reduction: str = _objective(
        "macro",
        "Mean over classes of class means (equation 3) or over rows (equation 8).",
        choices=("macro", "micro"),
    )
    include_self: bool = _objective(
        False,
        "Count a row as its own positive, as equation 6 prints it (audit only).",
    )
    mining: str = _objective(
        "none",
        "Which negatives are kept after the warm-up.",
        choices=("none", "threshold", "topk", "quantile"),
    )
    mining_threshold: float = _objective(
        0.5,
        "threshold: keep negatives whose cosine exceeds this. "
        "topk: how many each anchor keeps. quantile: share each anchor keeps.",
        low=-1.0,
    )
    mining_warmup: float = _objective(
        1 / 3,
        "Share of the epochs trained with every negative first.",
        low=0.0,
        high=1.0,
    )
    mining_max_similarity: float = _objective(
        1.0,
        "Drop mined negatives above this cosine (label noise).",
        low=-1.0,
        high=1.0,
    )
    mining_fallback: str = _objective(
        "hardest",
        "An anchor left without a negative uses its hardest one, all, or is skipped.",
        choices=("hardest", "all", "skip"),
    )
    options: str | None = _objective(
        None, "Settings of one objective alone, as name=value,name=value."
    )
    second_objective: str | None = _objective(
        None,
        "Objective of every second member, whose errors are then other ones; unset: all members "
        "have the same.",
    )
    second_batch_size: int | None = _objective(
        None,
        "Sentences in a batch of the second objective; unset: as many as of the first.",
        low=4,
    )
    projection: str = _encoder(
        "mlp",
        "Projection head, thrown away after training.",
        choices=("mlp", "linear", "identity"),
    )
    projection_size: int = _encoder(256, "Width of the projected vector.", low=1)
    encoder: str = _encoder("bilstm", "Sentence encoder, by name.")
    layers: int = parameter(1, "BiLSTM layers.", low=1, high=8)
    hidden_size: int = parameter(128, "LSTM units in each direction.", low=1, high=8192)
    dropout: float = _encoder(
        0.2,
        "Dropout on word vectors and on every layer's output.",
        low=0.0,
        high=0.95,
    )
    word_dropout: float = _encoder(
        0.2, "Share of training words hidden behind <unk>.", low=0.0, high=0.95
    )
    pooling: str = _encoder(
        "max",
        "Token states to sentence vector.",
        choices=("last", "mean", "max"),
    )
    epochs: int | None = parameter(
        None,
        "Passes over the data; unset: 15, and of more than 3,000 rows fewer, so that 45,000 are "
        "read in all, but no fewer than 6.",
        low=1,
    )
    steps_per_epoch: int | None = parameter(
        None,
        "Batches in an epoch; unset: enough to see every row of the largest class, at least 8 "
        "where batches are balanced.",
        low=1,
    )
    batch_size: int = parameter(200, "Sentences in a batch, shared equally by the classes.", low=4)
    mini_batch_size: int | None = parameter(
        None,
        "Sentences encoded at once where memory does not hold a batch; the gradient is still the "
        "whole batch's. Unset: decided by the batch's tokens.",
        low=1,
    )
    learning_rate: float = parameter(0.001, "Adam's step size.", low=0.0, open_low=True)
    gradient_clip: float = parameter(5.0, "Largest gradient norm; 0 turns clipping off.", low=0.0)
    keep: str = parameter(
        "average",
        "Weights to end with: the mean over the last 40% of the epochs, the epoch with the "
        "best dev probe, or the last epoch.",
        choices=("average", "best", "last"),
    )
    finetune: bool = parameter(
        False, "Then go on with all weights and a softmax layer, by cross-entropy."
    )
    finetune_frozen: bool = parameter(
        False, "Then train a softmax layer alone, on the frozen encoder."
    )
    finetune_epochs: int = parameter(15, "Passes over the data in the second stage.", low=1)
    finetune_learning_rate: float | None = parameter(
        None,
        "Adam's step size in the second stage; unset: 0.001, on a frozen encoder 0.01.",
        low=0.0,
        open_low=True,
    )
    vectors: str | None = _text(
        None, "Word vector file; unset: trained on the spot, see vector_method."
    )
    init: str | None = _text(
        None,
        "Folder of a pretrained encoder (superconext pretrain) to start from; it brings its word "
        "vectors.",
    )
    unlabelled: str | None = _text(
        None, "Unlabelled text, one sentence a line, to train word vectors on."
    )
    pretrain: bool = _text(
        False,
        "Train the encoder on the unlabelled text first, to predict its words; kept in the cache.",
    )
    related: str | None = _text(
        None,
        "Labelled file of a related set (another dialect, another source) whose rows train the "
        "encoder too, and not the probe.",
    )
    vector_dimension: int = _text(
        100, "Dimension of word vectors trained on the spot.", low=1, high=4096
    )
    vector_method: str = _text(
        "fasttext",
        "How word vectors are trained on the spot: with character n-grams, without, or not at "
        "all (they start as noise).",
        choices=("fasttext", "word2vec", "random"),
    )
    tune_vectors: bool = _text(False, "Train the word vectors too.")
    unfreeze_epoch: int | None = parameter(
        None,
        "Epoch, from 1, at which word vectors that were frozen begin to be trained; unset: "
        "tune_vectors says for all epochs.",
        low=1,
        group="text",
    )
    vector_scale: float | None = _text(
        None,
        "Factor on the word vectors before training; 0: to a root mean square of 1. Unset: 1, or "
        "for smaller ones of a file what brings them to a root mean square of 0.5.",
        low=0.0,
        high=1000.0,
    )
    subwords: bool = _text(
        True,
        "Train vectors of character n-grams too, so that spellings of a word share them.",
    )
    normalize: str = _text(
        "auto",
        "Text normalisation profile.",
        choices=("auto", "arabic", "arabizi", "latin", "none"),
    )
    enable_rules: str | None = _text(
        None,
        "Normalisation rules to switch on beside the profile's, comma separated.",
    )
    disable_rules: str | None = _text(
        None, "Normalisation rules of the profile to switch off, comma separated."
    )
    bridge: str | None = _text(
        None,
        "Spell Arabizi and Arabic words alike, by a dialect's table; unset: leave them.",
        choices=("moroccan", "algerian", "tunisian"),
    )
    min_count: int = _text(1, "Drop training words seen fewer times.", low=1)
    max_length: int = parameter(500, "Tokens kept of each sentence.", low=1, high=100_000)
    seed: int = _run(0, "Seed of everything random.", low=0, high=2**31 - 1)
    threads: int = parameter(
        1,
        "Threads for matrix work; more help only on an idle machine. Unset, the command train "
        "takes as many as it finds idle processors, up to 4, and everything else one.",
        low=1,
        high=1024,
        group="run",
    )
    device: str = _run("cpu", "Torch device.")
    precision: str = parameter(
        "float32", "Arithmetic of the encoder.", choices=("float32", "bfloat16")
    )
    baselines: bool = _run(True, "Fit majority class and TF-IDF + logistic regression beside.")
    calibrate: bool = _run(False, "Scale the probe's probabilities by a temperature fitted on dev.")
    logit_adjustment: float = _run(
        0.0,
        "Share of the log class frequencies taken off the probe's scores: 0 for most rows right, "
        "1 for all classes alike, between them for the F1 scores.",
        low=0.0,
        high=1.0,
    )
    probe_features: str = _run(
        "encoder",
        "What predictions rest on: the linear probe on the encoder alone, the mean of its "
        "probabilities and those of TF-IDF + logistic regression, or a pool of both and of "
        "character n-grams, weighed on dev.",
    )
    probe_rows: str = _run(
        "seen",
        "Rows the probe is fitted on: those its encoder was trained on, or those it has not seen, "
        "each of several members leaving out another part of the rows.",
        choices=("seen", "unseen"),
    )
    members: int = _run(
        1,
        "Encoders trained with seeds of their own, a million apart, and probed side by side.",
        low=1,
        high=100,
    )

    def __post_init__(self) -> None:
        for row in PARAMETERS:
            row.check(getattr(self, row.name))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


PARAMETERS: tuple[Parameter, ...] = table_of(Config)
BY_NAME: dict[str, Parameter] = {row.name: row for row in PARAMETERS}

#: Parameters whose value is a file or a folder.
FILE_PARAMETERS = ("vectors", "init", "unlabelled", "related")


def check_names(names: Sequence[str], where: str) -> None:
    """Raise ConfigError for a name that is no parameter, with the nearest one that is."""
    for name in names:
        if name not in BY_NAME:
            near = difflib.get_close_matches(name, BY_NAME, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(BY_NAME)}"
            raise ConfigError(f"{where}: unknown parameter {name!r}; {hint}")


def resolve(given: Mapping[str, Any], where: str = "parameters") -> Config:
    """The full configuration: what is given, else the preset's value, else the default.

    A value of None counts as not given. Raises ConfigError for unknown names, wrong
    types and values outside their limits.
    """
    check_names(list(given), where)
    explicit = {name: value for name, value in given.items() if value is not None}
    for name, value in explicit.items():
        if BY_NAME[name].type is float and isinstance(value, int) and not isinstance(value, bool):
            explicit[name] = float(value)
    preset = explicit.get("preset", BY_NAME["preset"].default)
    BY_NAME["preset"].check(preset)
    return Config(**{**PRESETS[preset].values, **explicit})
