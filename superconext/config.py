"""The parameters of a run: names, types, defaults, limits and help in one table.

The command line, the TOML files and the estimator all read this table, so the three
cannot drift apart. A parameter whose default differs between presets is left `None` by
its callers to mean "the preset's value"; `resolve` fills it in.
"""

from __future__ import annotations

import difflib
import math
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from superconext.errors import ConfigError
from superconext.presets import PRESETS


def _parameter(
    default: Any,
    help: str,
    *,
    choices: Sequence[str] | None = None,
    low: float | None = None,
    high: float | None = None,
    open_low: bool = False,
    group: str = "training",
) -> Any:
    meta = {
        "help": help,
        "choices": tuple(choices) if choices else None,
        "low": low,
        "high": high,
        "open_low": open_low,
        "group": group,
    }
    return field(default=default, metadata=meta)


@dataclass(frozen=True)
class Config:
    """Every parameter of a run, with concrete values."""

    objective: str = _parameter("superloss", "Training objective, by name.", group="objective")
    preset: str = _parameter(
        "dialect", "Named set of defaults.", choices=tuple(PRESETS), group="objective"
    )
    temperature: float = _parameter(
        0.1, "Softmax temperature of the similarities.", low=0.0, open_low=True, group="objective"
    )
    reduction: str = _parameter(
        "macro",
        "Mean over classes of class means (equation 3) or over rows (equation 8).",
        choices=("macro", "micro"),
        group="objective",
    )
    include_self: bool = _parameter(
        False,
        "Count a row as its own positive, as equation 6 prints it (audit only).",
        group="objective",
    )
    mining: str = _parameter(
        "none",
        "Which negatives are kept after the warm-up.",
        choices=("none", "threshold", "topk", "quantile"),
        group="objective",
    )
    mining_threshold: float = _parameter(
        0.5,
        "threshold: keep negatives whose cosine exceeds this. "
        "topk: how many each anchor keeps. quantile: share each anchor keeps.",
        low=-1.0,
        group="objective",
    )
    mining_warmup: float = _parameter(
        1 / 3,
        "Share of the epochs trained with every negative first.",
        low=0.0,
        high=1.0,
        group="objective",
    )
    mining_max_similarity: float = _parameter(
        1.0,
        "Drop mined negatives above this cosine (label noise).",
        low=-1.0,
        high=1.0,
        group="objective",
    )
    mining_fallback: str = _parameter(
        "hardest",
        "An anchor left without a negative uses its hardest one, all, or is skipped.",
        choices=("hardest", "all", "skip"),
        group="objective",
    )
    options: str | None = _parameter(
        None, "Settings of one objective alone, as name=value,name=value.", group="objective"
    )
    projection: str = _parameter(
        "mlp",
        "Projection head, thrown away after training.",
        choices=("mlp", "linear", "identity"),
        group="encoder",
    )
    projection_size: int = _parameter(256, "Width of the projected vector.", low=1, group="encoder")
    layers: int = _parameter(1, "BiLSTM layers.", low=1, high=8, group="encoder")
    hidden_size: int = _parameter(
        128, "LSTM units in each direction.", low=1, high=8192, group="encoder"
    )
    dropout: float = _parameter(
        0.2,
        "Dropout on word vectors and on every layer's output.",
        low=0.0,
        high=0.95,
        group="encoder",
    )
    word_dropout: float = _parameter(
        0.2, "Share of training words hidden behind <unk>.", low=0.0, high=0.95, group="encoder"
    )
    pooling: str = _parameter(
        "max",
        "Token states to sentence vector.",
        choices=("last", "mean", "max"),
        group="encoder",
    )
    epochs: int = _parameter(15, "Passes over the data.", low=1)
    steps_per_epoch: int | None = _parameter(
        None,
        "Batches in an epoch; unset: enough to see every row of the largest class, at least 8 "
        "where batches are balanced.",
        low=1,
    )
    batch_size: int = _parameter(200, "Sentences in a batch, shared equally by the classes.", low=4)
    mini_batch_size: int | None = _parameter(
        None,
        "Sentences encoded at once where memory does not hold a batch; the gradient is still the "
        "whole batch's. Unset: decided by the batch's tokens.",
        low=1,
    )
    learning_rate: float = _parameter(0.001, "Adam's step size.", low=0.0, open_low=True)
    gradient_clip: float = _parameter(5.0, "Largest gradient norm; 0 turns clipping off.", low=0.0)
    keep: str = _parameter(
        "average",
        "Weights to end with: the mean over the last 40% of the epochs, the epoch with the "
        "best dev probe, or the last epoch.",
        choices=("average", "best", "last"),
    )
    finetune: bool = _parameter(
        False, "Then go on with all weights and a softmax layer, by cross-entropy."
    )
    finetune_frozen: bool = _parameter(
        False, "Then train a softmax layer alone, on the frozen encoder."
    )
    finetune_epochs: int = _parameter(15, "Passes over the data in the second stage.", low=1)
    finetune_learning_rate: float | None = _parameter(
        None,
        "Adam's step size in the second stage; unset: 0.001, on a frozen encoder 0.01.",
        low=0.0,
        open_low=True,
    )
    vectors: str | None = _parameter(
        None, "Word vector file; unset: trained on the spot, see vector_method.", group="text"
    )
    unlabelled: str | None = _parameter(
        None, "Unlabelled text, one sentence a line, to train word vectors on.", group="text"
    )
    vector_dimension: int = _parameter(
        100, "Dimension of word vectors trained on the spot.", low=1, high=4096, group="text"
    )
    vector_method: str = _parameter(
        "fasttext",
        "How word vectors are trained on the spot: with character n-grams, without, or not at "
        "all (they start as noise).",
        choices=("fasttext", "word2vec", "random"),
        group="text",
    )
    tune_vectors: bool = _parameter(False, "Train the word vectors too.", group="text")
    unfreeze_epoch: int | None = _parameter(
        None,
        "Epoch, from 1, at which word vectors that were frozen begin to be trained; unset: "
        "tune_vectors says for all epochs.",
        low=1,
        group="text",
    )
    vector_scale: float = _parameter(
        1.0,
        "Factor on the word vectors before training; 0: to a root mean square of 1.",
        low=0.0,
        high=1000.0,
        group="text",
    )
    subwords: bool = _parameter(
        True,
        "Train vectors of character n-grams too, so that spellings of a word share them.",
        group="text",
    )
    normalize: str = _parameter(
        "auto",
        "Text normalisation profile.",
        choices=("auto", "arabic", "arabizi", "latin", "none"),
        group="text",
    )
    enable_rules: str | None = _parameter(
        None,
        "Normalisation rules to switch on beside the profile's, comma separated.",
        group="text",
    )
    disable_rules: str | None = _parameter(
        None, "Normalisation rules of the profile to switch off, comma separated.", group="text"
    )
    bridge: str | None = _parameter(
        None,
        "Spell Arabizi and Arabic words alike, by a dialect's table; unset: leave them.",
        choices=("moroccan", "algerian", "tunisian"),
        group="text",
    )
    min_count: int = _parameter(1, "Drop training words seen fewer times.", low=1, group="text")
    max_length: int = _parameter(
        200, "Tokens kept of each sentence.", low=1, high=100_000, group="text"
    )
    seed: int = _parameter(0, "Seed of everything random.", low=0, high=2**31 - 1, group="run")
    threads: int = _parameter(
        1,
        "Threads for matrix work; more help only on an idle machine. Unset, the command train "
        "takes as many as it finds idle processors, up to 4, and everything else one.",
        low=1,
        high=1024,
        group="run",
    )
    device: str = _parameter("cpu", "Torch device.", group="run")
    precision: str = _parameter(
        "float32", "Arithmetic of the encoder.", choices=("float32", "bfloat16"), group="run"
    )
    baselines: bool = _parameter(
        True, "Fit majority class and TF-IDF + logistic regression beside.", group="run"
    )
    calibrate: bool = _parameter(
        False, "Scale the probe's probabilities by a temperature fitted on dev.", group="run"
    )
    logit_adjustment: float = _parameter(
        0.0,
        "Share of the log class frequencies taken off the probe's scores: 0 for most rows right, "
        "1 for all classes alike, between them for the F1 scores.",
        low=0.0,
        high=1.0,
        group="run",
    )
    probe_features: str = _parameter(
        "encoder",
        "What predictions rest on: the linear probe on the encoder alone, or the mean of its "
        "probabilities and those of TF-IDF + logistic regression.",
        choices=("encoder", "encoder+tfidf"),
        group="run",
    )
    probe_rows: str = _parameter(
        "seen",
        "Rows the probe is fitted on: those its encoder was trained on, or those it has not seen, "
        "each of several members leaving out another part of the rows.",
        choices=("seen", "unseen"),
        group="run",
    )
    members: int = _parameter(
        1,
        "Encoders trained with seeds seed, seed+1, ... and probed side by side.",
        low=1,
        high=100,
        group="run",
    )

    def __post_init__(self) -> None:
        for parameter in PARAMETERS:
            parameter.check(getattr(self, parameter.name))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Parameter:
    """One row of the table."""

    name: str
    type: type
    optional: bool
    default: Any
    help: str
    choices: tuple[str, ...] | None
    low: float | None
    high: float | None
    open_low: bool
    group: str

    @property
    def governed(self) -> bool:
        """Whether a preset may set it, so that callers leave it `None` by default."""
        return any(self.name in preset.values for preset in PRESETS.values())

    def check(self, value: Any) -> None:
        """Raise ConfigError unless `value` has the right type and lies in its limits."""
        if value is None and self.optional:
            return
        kind = self.type
        right = isinstance(value, (int, float) if kind is float else kind)
        if not right or (isinstance(value, bool) and kind is not bool):
            raise ConfigError(
                f"{self.name} = {value!r}: expected {_KIND[kind]}, got {type(value).__name__}; "
                "change the value"
            )
        if self.choices and value not in self.choices:
            near = difflib.get_close_matches(value, self.choices, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ConfigError(
                f"{self.name} = {value!r}: expected one of {', '.join(self.choices)}{hint}"
            )
        if kind in (int, float):
            if not math.isfinite(value):
                raise ConfigError(f"{self.name} = {value}: expected a finite number")
            below = self.low is not None and (
                value <= self.low if self.open_low else value < self.low
            )
            if below or (self.high is not None and value > self.high):
                raise ConfigError(
                    f"{self.name} = {value}: expected a value {self.limits()}; change it"
                )

    def limits(self) -> str:
        """The allowed range in words."""
        parts = []
        if self.low is not None:
            parts.append(f"{'above' if self.open_low else 'of at least'} {self.low:g}")
        if self.high is not None:
            parts.append(f"of at most {self.high:g}")
        return " and ".join(parts)


_KIND = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def _table() -> tuple[Parameter, ...]:
    hints = typing.get_type_hints(Config)
    rows = []
    for item in fields(Config):
        hint = hints[item.name]
        optional = isinstance(hint, types.UnionType)
        if optional:
            hint = next(arg for arg in typing.get_args(hint) if arg is not type(None))
        rows.append(
            Parameter(
                name=item.name, type=hint, optional=optional, default=item.default, **item.metadata
            )
        )
    return tuple(rows)


PARAMETERS: tuple[Parameter, ...] = _table()
BY_NAME: dict[str, Parameter] = {parameter.name: parameter for parameter in PARAMETERS}


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
