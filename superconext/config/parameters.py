"""The parameters of a run: names, types, defaults, limits and help in one table.

The command line, the TOML files and the estimator all read this table, so the three
cannot drift apart. A parameter whose default differs between presets is left `None` by
its callers to mean "the preset's value"; `resolve` fills it in.
"""

from __future__ import annotations

import math
import os
import re
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from typing import Any, TypeVar

from superconext.config.presets import BY_ROWS, OF_ENCODERS, PRESETS
from superconext.core.errors import ConfigError, OptionError, nearest, suggestion

#: Headings of `--help`, in their order.
GROUPS = (
    "data",
    "text and vectors",
    "encoder",
    "objective and mining",
    "training",
    "probe",
    "output",
)


def parameter(
    default: Any,
    help: str,
    *,
    choices: Sequence[str] | None = None,
    low: float | None = None,
    high: float | None = None,
    open_low: bool = False,
    open_high: bool = False,
    additions: bool = False,
    several: bool = False,
    group: str = "",
) -> Any:
    """A field of a dataclass of parameters; `low` and `high` are allowed unless they are open.

    additions: whether a choice may be followed by +NAME or -NAME, which others check.
    several: whether it may also be a list of such values.
    """
    meta = {
        "help": help,
        "choices": tuple(choices) if choices else None,
        "low": low,
        "high": high,
        "open_low": open_low,
        "open_high": open_high,
        "additions": additions,
        "several": several,
        "group": group,
    }
    return field(default=default, metadata=meta)


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
    open_high: bool
    additions: bool
    several: bool
    group: str

    @property
    def governed(self) -> bool:
        """Whether a preset may set it, so that callers leave it `None` by default."""
        return len(self.defaults) > 1

    @property
    def defaults(self) -> dict[str, Any]:
        """The default under each preset that has its own, then under each encoder that has; just
        the first preset's where nobody has."""
        some = any(self.name in values for values in PRESETS.values())
        encoders = {n: values for n, values in OF_ENCODERS.items() if self.name in values}
        kept = PRESETS if some or encoders else {"fast": PRESETS["fast"]}
        return {name: of.get(self.name, self.default) for name, of in (kept | encoders).items()}

    def check(self, value: Any) -> None:
        """Raise ConfigError unless `value` has the right type and lies in its limits."""
        if value is None and self.optional:
            return
        kind = self.type
        if self.several and isinstance(value, list | tuple) and value:
            right = all(isinstance(one, kind) for one in value)
        else:
            right = isinstance(value, (int, float) if kind is float else kind)
        if not right or (isinstance(value, bool) and kind is not bool):
            raise ConfigError(
                f"{self.name} = {value!r}: expected {_KIND[kind]}, got {type(value).__name__}; "
                "change the value"
            )
        for text in files_of(value) if kind is str else ():
            try:
                text.encode()
            except UnicodeEncodeError:
                raise ConfigError(
                    f"{self.name} = {text!a}: expected a name in UTF-8, which a run can record: "
                    "rename the file, or set LC_ALL=C.UTF-8"
                ) from None
        if self.choices:
            choice = re.split("[+-]", value, maxsplit=1)[0] if self.additions else value
            if choice not in self.choices:
                raise ConfigError(
                    f"{self.name} = {value!r}: expected one of {', '.join(self.choices)}; "
                    f"{suggestion(choice, self.choices)}"
                )
        if kind in (int, float):
            if not math.isfinite(value):
                raise ConfigError(f"{self.name} = {value}: expected a finite number")
            below = self.low is not None and (
                value <= self.low if self.open_low else value < self.low
            )
            above = self.high is not None and (
                value >= self.high if self.open_high else value > self.high
            )
            if below or above:
                raise ConfigError(
                    f"{self.name} = {value}: expected a value {self.limits()}; change it"
                )

    def limits(self) -> str:
        """The allowed range in words."""
        parts = []
        if self.low is not None:
            parts.append(f"{'above' if self.open_low else 'of at least'} {self.low:g}")
        if self.high is not None:
            parts.append(f"{'below' if self.open_high else 'of at most'} {self.high:g}")
        return " and ".join(parts)


_KIND = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def table_of(parameters: type) -> tuple[Parameter, ...]:
    """The rows of a dataclass: its fields that `parameter` made."""
    hints = typing.get_type_hints(parameters)
    rows = []
    for item in fields(parameters):
        if not item.metadata:
            continue
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


_data, _text, _encoder, _objective, _training, _probe, _output = (
    partial(parameter, group=group) for group in GROUPS
)


@dataclass(frozen=True)
class Config:
    """Every parameter of a run, with concrete values."""

    objective: str = _objective("superloss", "Training objective, by name.")
    preset: str = _training(
        "fast",
        "Defaults. fast: one encoder; auto: the best of a few recipes on held-out rows; paper: as "
        "published.",
        choices=tuple(PRESETS),
    )
    temperature: float = _objective(
        0.1, "Softmax temperature of the similarities.", low=0.0, open_low=True
    )
    options: str | None = _objective(
        None,
        "Settings of the chosen objective or encoder, as name=value,name=value; for superloss, "
        "say, mining=topk,mining_threshold=20 (docs/objectives.md, docs/transformer.md).",
    )
    projection: str = _objective(
        "mlp",
        "Projection head, as wide as the sentence vector, discarded after training.",
        choices=("mlp", "linear", "identity"),
    )
    encoder: str = _encoder("bilstm", "Sentence encoder, by name.")
    model: str | None = _encoder(
        None,
        "Pretrained model for the encoder transformer: a folder, or a name on the Hugging Face "
        "Hub.",
    )
    freeze: bool = _encoder(False, "Do not train the encoder; only fit the probe on its vectors.")
    layers: int = _encoder(1, "BiLSTM layers.", low=1, high=8)
    hidden_size: int = _encoder(
        128, "LSTM units in each direction; with init those of its encoder.", low=1, high=8192
    )
    dropout: float = _encoder(
        0.2,
        "Dropout on word vectors and on every layer's output.",
        low=0.0,
        high=0.95,
    )
    word_dropout: float = _encoder(
        0.2, "Share of training words replaced by <unk>.", low=0.0, high=0.95
    )
    pooling: str | None = _encoder(
        "max",
        "How token states become a sentence vector; cls, the first token's state, is for "
        "transformers. Unset with a pretrained BiLSTM: mean for fewer than 600 rows or if frozen.",
        choices=("last", "mean", "max", "cls"),
    )
    epochs: int | None = _training(
        None,
        "Passes over the data; unset: 15, or above 3,000 rows enough to read 45,000 rows, at "
        "least 6; for transformers 24, or above 833 rows enough to read 20,000, at least 3; "
        "with steps_per_epoch 15.",
        low=1,
    )
    steps_per_epoch: int | None = _training(
        None,
        "Batches in an epoch; unset: enough to see every row of the largest class, and at least 8 "
        "if batches are balanced, except for transformers.",
        low=1,
    )
    batch_size: int = _training(
        200,
        "Sentences in a batch, which most contrastive objectives divide equally among classes.",
        low=4,
        high=65536,
    )
    learning_rate: float | None = _training(
        0.001,
        "Adam's step size; unset with a pretrained BiLSTM: 0.0002 for fewer than 600 rows.",
        low=0.0,
        open_low=True,
    )
    keep: str = _training(
        "average",
        "Final weights: the mean over the last 40% of the epochs, those of the epoch with the "
        "best dev probe, or those of the last epoch.",
        choices=("average", "best", "last"),
    )
    finetune_epochs: int = _training(
        0,
        "Epochs of fine-tuning all weights afterwards, with a softmax layer and cross-entropy.",
        low=0,
    )
    vectors: str | None = _text(None, "Word vector file; unset: the run trains its own.")
    init: str | None = _text(
        None,
        "Folder of a pretrained encoder (superconext pretrain) to start from; it includes word "
        "vectors.",
    )
    unlabelled: str | tuple[str, ...] | None = _data(
        None,
        "File of unlabelled text, one sentence a line, for word vectors and pretraining.",
        several=True,
    )
    pretrain: bool = _text(
        False,
        "First pretrain the encoder as a language model on the unlabelled text, from "
        "init if given; kept in the cache. Unless told not to, train does so when it "
        "compares recipes and the text has 500,000 words or more.",
    )
    pretrain_words: int | None = _text(
        None,
        "Words of the unlabelled text that each pass of pretraining reads, drawn anew; unset: all, "
        "or as many as the budget allows when train pretrains by itself.",
        low=1,
    )
    related: str | None = _data(
        None,
        "Labelled file of a related set (another dialect or source) whose rows train the encoder, "
        "but not the probe.",
    )
    soft_labels: str | None = _data(
        None,
        "File of texts with a probability for each class, as predict --proba writes it, from which "
        "encoder and probe learn too.",
    )
    vector_dimension: int = _text(
        100,
        "Dimension of word vectors that the run trains; with init that of its vectors.",
        low=1,
        high=4096,
    )
    vector_method: str = _text(
        "fasttext",
        "How the run trains word vectors: with character n-grams, without, or not at all (random "
        "vectors).",
        choices=("fasttext", "word2vec", "random"),
    )
    tune_vectors: bool = _text(False, "Train the word vectors together with the encoder.")
    subwords: bool = _text(
        True,
        "Also train vectors of character n-grams, so that spelling variants share them.",
    )
    normalize: str = _text(
        "auto",
        "Text normalisation profile; +RULE after it switches a rule on and -RULE off, such as "
        "auto-lower.",
        choices=("auto", "arabic", "arabizi", "latin", "none"),
        additions=True,
    )
    bridge: str | None = _text(
        None,
        "Spell Arabizi and Arabic words alike, by the table of a dialect; unset: leave them. Best "
        "with normalize = arabic-alef_maksura.",
        choices=("moroccan", "algerian", "tunisian"),
    )
    min_count: int = _text(1, "Drop training words seen fewer times.", low=1)
    max_length: int = _text(500, "Tokens read per text; the rest is cut.", low=1, high=100_000)
    seed: int = _training(0, "Random seed.", low=0, high=2**31 - 1)
    threads: int = _training(
        1,
        "Threads for matrix products in training; more than one helps only on an idle machine, and "
        "changes the last digits.",
        low=1,
        high=1024,
    )
    device: str = _training("cpu", "Torch device.")
    precision: str = _training(
        "float32", "Arithmetic of the encoder.", choices=("float32", "bfloat16")
    )
    compile: bool = _training(
        False,
        "Compile part of a BiLSTM's training step with g++ or clang++, for speed; changes the "
        "last digits.",
    )
    baselines: bool = _output(
        True,
        "Also fit baselines: majority class, and logistic regression on TF-IDF, on mean word "
        "vectors and on the frozen pretrained encoder.",
    )
    calibrate: bool = _probe(
        False,
        "Scale probabilities by a temperature fitted on dev, or on out-of-fold predictions.",
    )
    logit_adjustment: float = _probe(
        0.0,
        "Share of the log class frequencies subtracted from the probe's scores: 0 for accuracy, "
        "1 to treat all classes alike, in between for macro F1.",
        low=0.0,
        high=1.0,
    )
    probe_features: str = _probe(
        "encoder",
        "What predicts: the linear probe on the encoder alone; the mean of its probabilities and "
        "those of TF-IDF + logistic regression; or a pool of both and of character n-grams, with "
        "weights fitted on dev.",
    )
    members: int = _training(
        1,
        "Number of encoders, trained with different seeds; the probe reads the features of all.",
        low=1,
        high=100,
    )
    cv: int | None = _training(
        None,
        "Cross-validate on this many folds instead of choosing on dev rows, then fit on all rows; "
        "0: never. Unset: 5 where recipes are compared and a dev file, if any, has fewer than 50 "
        "rows, and in train below 300 rows without dev and "
        "test files; else never.",
        low=0,
        high=100,
    )
    budget: float = _training(
        5.0,
        "Minutes of CPU time that the preset auto may spend on its choice.",
        low=0.0,
        high=10_000.0,
    )

    def __post_init__(self) -> None:
        for row in PARAMETERS:
            row.check(getattr(self, row.name))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


PARAMETERS: tuple[Parameter, ...] = table_of(Config)
BY_NAME: dict[str, Parameter] = {row.name: row for row in PARAMETERS}

#: Parameters that only the training of an encoder reads.
OF_TRAINING = frozenset(
    {
        *(row.name for row in PARAMETERS if row.group == "objective and mining"),
        *("epochs", "steps_per_epoch", "batch_size", "learning_rate", "keep", "finetune_epochs"),
        *("dropout", "word_dropout", "tune_vectors", "related"),
    }
) - {"options"}  # which may be the encoder's

#: Parameters that nothing reads where n-grams predict without an encoder.
OF_ENCODER = OF_TRAINING | {
    *(row.name for row in PARAMETERS if row.group in ("text and vectors", "encoder", "data")),
    *("options", "members", "device", "precision", "compile", "calibrate"),
}

#: Parameters that `fewshot`, `compare` and `sweep` decide themselves.
DECIDED = ("seed", "baselines", "cv", "budget")
#: The same, where systems are named, which decide the objective.
DECIDED_WITH_SYSTEMS = ("objective", *DECIDED)
#: Parameters whose value is a file or a folder.
FILE_PARAMETERS = ("vectors", "init", "unlabelled", "related", "soft_labels")


def files_of(value: Any) -> tuple[Any, ...]:
    """The files that a parameter names: none, one or several."""
    return tuple(value) if isinstance(value, list | tuple) else (value,) if value else ()


def names_of(value: Any) -> str:
    """The files that a parameter names, without their folders, for people."""
    return ", ".join(os.path.basename(path) for path in files_of(value))


def with_files(name: str, value: Any, change: Callable[[Any], Any], folder: str = "") -> Any:
    """The value of a parameter, `change` called on each file or folder that it names; any other
    value is as it was. folder: what a path among the values is relative to."""
    if name in FILE_PARAMETERS or (
        name == "model" and value and os.path.isdir(os.path.join(folder, str(value)))
    ):
        changed = tuple(map(change, files_of(value)))
        return changed if len(changed) > 1 else changed[0] if changed else value
    return value


#: Before the name of a single option of the objective: `options.mining` is one of `options`.
OPTION = "options."

#: Parameters of earlier versions that are options of superloss now, and their defaults.
_OPTIONS_OF_SUPERLOSS: dict[str, Any] = {
    "reduction": "macro",
    "include_self": False,
    "mining": "none",
    "mining_threshold": 0.5,
    "mining_warmup": 1 / 3,
    "mining_max_similarity": 1.0,
    "mining_fallback": "hardest",
}

#: Parameters of earlier versions: why they left, and what to use instead in braces, first the
#: parameter's name and then its value.
REMOVED: dict[str, str] = {
    **{
        name: f"it is an option of the objective superloss: use {{options {name}=VALUE}}"
        for name in _OPTIONS_OF_SUPERLOSS
    },
    "second_objective": "members of two objectives brought nothing that members of one do not: "
    "use {members 2}",
    "second_batch_size": "all members have the same objective: use {batch_size}",
    "mini_batch_size": "batches that memory does not hold are encoded in parts, decided by their "
    "tokens: leave it out, or lower {batch_size}",
    "gradient_clip": "the largest gradient norm is 5: leave it out, or lower {learning_rate}",
    "finetune": "use {finetune_epochs 15}",
    "finetune_frozen": "the probe is a classifier on the frozen encoder: leave it out, or train "
    "all weights with {finetune_epochs 15}",
    "finetune_learning_rate": "the rate of fine-tuning is 0.001 at most: leave it out, or change "
    "{finetune_epochs}",
    "keep_best": "use {keep best}",
    "read_limit": "the epochs follow from the number of rows: leave it out, or use {epochs}",
    "unfreeze_epoch": "training the word vectors late brought nothing: train them throughout "
    "with {tune_vectors}, or leave it out",
    "vector_scale": "vectors of a file that are small are scaled as it suits the encoder: leave "
    "it out, or give a file of other numbers with {vectors}",
    "probe_rows": "a probe on rows that its encoder has not seen gained little on one set and "
    "lost more on another: leave it out, or use {members 4}",
    "projection_size": "the projection is as wide as the sentence vector: leave it out, or "
    "change {hidden_size}",
    "prior_groups": "it gained on one test set and lost on four training sets: leave it out, "
    "or use {logit_adjustment}",
    "enable_rules": "rules follow the profile: use {normalize auto+RULE}",
    "disable_rules": "rules follow the profile: use {normalize auto-RULE}",
}

#: What version 0.2.0 wrote into each configuration for parameters that have left since: with these
#: values they changed nothing.
IDLE = {"prior_groups": "none", "probe_rows": "seen"}


def removal(name: str, flag: bool = False, value: str | None = None) -> str:
    """Why a parameter of an earlier version left, and what to use instead.

    flag: spell that as options of the command line, not as names and values.
    value: what it was given.
    """

    def spelt(match: re.Match[str]) -> str:
        name, example = match.groups()
        if flag:
            return f"--{name.replace('_', '-')}" + (f" {example}" if example else "")
        if not example:
            return name
        return f"{name} = {example}" if example.isdigit() else f'{name} = "{example}"'

    text = re.sub("VALUE|RULE", lambda match: value or match[0], REMOVED[name])
    return re.sub(r"\{(\w+)(?: ([^}]*))?\}", spelt, text)


#: Names that other tools have for a parameter, and ours.
ELSEWHERE: dict[str, str] = {
    **dict.fromkeys(("lr", "body_learning_rate", "learning_rate_init"), "learning_rate"),
    **dict.fromkeys(("random_state", "random_seed"), "seed"),
    **dict.fromkeys(
        ("epoch", "num_epochs", "n_epochs", "num_train_epochs", "max_epochs", "max_iter"), "epochs"
    ),
    **dict.fromkeys(("model_name", "model_name_or_path", "base_model"), "model"),
    **dict.fromkeys(("train_batch_size", "bs"), "batch_size"),
    **dict.fromkeys(("max_seq_length", "max_len"), "max_length"),
    **dict.fromkeys(("hidden_dim", "hidden_units"), "hidden_size"),
    **dict.fromkeys(("dim", "embedding_dim", "vector_size"), "vector_dimension"),
    **dict.fromkeys(("embeddings", "word_vectors", "glove"), "vectors"),
    **dict.fromkeys(("num_layers", "n_layers"), "layers"),
    **dict.fromkeys(("n_jobs", "workers"), "threads"),
    **dict.fromkeys(("folds", "cross_validation", "n_splits", "kfold"), "cv"),
    **dict.fromkeys(("loss", "loss_fn"), "objective"),
    **dict.fromkeys(("unlabeled", "corpus"), "unlabelled"),
    "class_weight": "logit_adjustment",
    "tau": "temperature",
}


def meant(name: str, known: Iterable[str], otherwise: str) -> str:
    """`suggestion` for the name of a parameter: ours for one of another tool, else the nearest."""
    return suggestion(ELSEWHERE.get(name, name), known, otherwise)


def check_names(names: Iterable[str], where: str, also: Sequence[str] = ()) -> None:
    """Raise ConfigError for a name that is no parameter, with what to use instead.

    also: other names that are known there, for the hint at a misspelt one.
    """
    names = list(names)
    left = [
        f"found {name}, which was removed; {removal(name)}" for name in names if name in REMOVED
    ]
    if left:
        raise ConfigError(f"{where}: {'. Also '.join(left)}")
    for name in names:
        single = name.startswith(OPTION) and name.removeprefix(OPTION).isidentifier()
        if name not in BY_NAME and not single:
            hint = meant(name, [*also, *BY_NAME], f"known: {', '.join(BY_NAME)}")
            raise ConfigError(f"{where}: unknown parameter {name!r}; {hint}")


def resolve(given: Mapping[str, Any], where: str = "parameters") -> Config:
    """The full configuration: what is given, else the encoder's value, else the preset's, else the
    default.

    A value of None counts as not given. `options` may be a mapping, and `options.NAME` sets a
    single one. Raises ConfigError for unknown names, wrong types and values outside their limits.
    """
    check_names(given, where)
    explicit = {
        name: value
        for name, value in given.items()
        if value is not None and not name.startswith(OPTION)
    }
    single = {n.removeprefix(OPTION): v for n, v in given.items() if n.startswith(OPTION)}
    if single or isinstance(explicit.get("options"), Mapping):
        explicit["options"] = options_text(explicit.get("options"), single)
    for name, value in explicit.items():
        if BY_NAME[name].type is float and isinstance(value, int) and not isinstance(value, bool):
            explicit[name] = float(value)
        if BY_NAME[name].several and isinstance(value, list | tuple) and value:
            distinct = tuple(dict.fromkeys(value))
            explicit[name] = distinct if len(distinct) > 1 else distinct[0]
    preset = explicit.get("preset", BY_NAME["preset"].default)
    BY_NAME["preset"].check(preset)
    encoder = explicit.get("encoder", BY_NAME["encoder"].default)
    BY_NAME["encoder"].check(encoder)
    values = {**PRESETS[preset], **OF_ENCODERS.get(encoder, {})}
    pretrained = explicit.get("init") or explicit.get("pretrain")
    if pretrained and all(values[name] == many for name, (_, many) in BY_ROWS.items()):
        values.update(dict.fromkeys(BY_ROWS))  # decided once the rows are counted
    return Config(**{**values, **explicit})


def options_by_name(text: str | None) -> dict[str, str | None]:
    """What `options` says, such as "margin=0.3,form=soft", by name; None without a "="."""
    parts = (part.partition("=") for part in (text or "").split(",") if part.strip())
    return {name.strip(): value.strip() if equals else None for name, equals, value in parts}


def options_text(options: str | Mapping[str, Any] | None, more: Mapping[str, Any]) -> str | None:
    """`options` with more of them, which win, as name=value,name=value; None if there are none.

    Raises ConfigError for a value that is no text, number or truth value, or has a comma in it.
    """
    given = options if isinstance(options, Mapping) else options_by_name(options)
    texts = []
    for name, value in {**given, **more}.items():
        if isinstance(value, bool):
            value = "true" if value else "false"
        if not isinstance(value, str | int | float | None) or "," in str(value):
            raise ConfigError(
                f"options: {name} = {value!r}; expected text without a comma, a number, true or "
                "false: change it"
            )
        texts.append(name if value is None else f"{name}={value}")
    return ",".join(texts) or None


def upgrade(saved: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a run that an earlier version saved, as this version has them.

    What only training needed is dropped, so that the model predicts as it did.
    """
    values = {name: value for name, value in saved.items() if name not in REMOVED}
    if values.get("preset") in ("dialect", "best"):  # what they set is saved with them
        values["preset"] = "fast"
    if values.get("objective", "superloss") == "superloss":
        moved = {
            name: saved[name]
            for name, default in _OPTIONS_OF_SUPERLOSS.items()
            if saved.get(name, default) != default
        }
        if moved:
            values["options"] = options_text(values.get("options"), moved)
    if saved.get("finetune") or saved.get("finetune_frozen"):
        values.setdefault("finetune_epochs", 15)
    elif "finetune" in saved:
        values["finetune_epochs"] = 0
    given = options_by_name(values.get("options"))
    if values.get("encoder") == "transformer" and "warmup" in given:
        # Of the learning rates; that of `css_lm` counts epochs.
        of_pool = (
            str(values.get("objective")).startswith("css_lm") and str(given["warmup"]).isdigit()
        )
        if not of_pool:
            ratio = {"warmup_ratio": given.pop("warmup")}
            values["options"] = options_text(options_text(given, {}), ratio)
    rules = [
        sign + rule.strip()
        for name, sign in (("enable_rules", "+"), ("disable_rules", "-"))
        for rule in str(saved.get(name) or "").split(",")
        if rule.strip()
    ]
    if rules:
        values["normalize"] = "".join([str(values.get("normalize", "auto")), *rules])
    return values


def docstring() -> str:
    """The section "Parameters" of a class whose constructor takes every parameter."""
    lines = ["Parameters", "----------"]
    for row in PARAMETERS:
        default = None if row.governed else row.default
        choices = "{" + ", ".join(map(repr, row.choices)) + "}" if row.choices else ""
        kind = choices if choices and not row.additions else row.type.__name__
        optional = " or a list of them" * row.several
        optional += " or None" if row.optional or row.governed else ""
        lines.append(f"{row.name} : {kind}{optional}, default={default!r}")
        lines += textwrap.wrap(
            row.help, 90, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False
        )
        if row.governed:
            told = ", ".join(f"{name}: {value!r}" for name, value in row.defaults.items())
            lines.append(f"    None is the value of the preset or encoder ({told}).")
    return "\n".join(lines)


T = TypeVar("T")

#: Truth values as options write them.
TRUTH = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True)
class CheckedOptions:
    """Base class of options, with fields made by `config.parameters.parameter`; it has none itself.

    Raises OptionError for a value that its field does not allow.

    >>> @dataclass(frozen=True)
    ... class Options(CheckedOptions):
    ...     margin: float = parameter(0.2, "Wanted gap.", low=0)
    >>> parse_options("margin=0.5", Options)
    Options(margin=0.5)
    """

    def __post_init__(self) -> None:
        for row in table_of(type(self)):
            try:
                row.check(getattr(self, row.name))
            except ConfigError as error:
                help = row.help.rstrip(".")
                raise OptionError(f"options: {error} ({help})", row.name) from None


def parse_options(
    text: str | None, options: type[T], owner: str = "this objective", also: Sequence[str] = ()
) -> T:
    """An `options` instance with the values that `text` ("margin=0.3,form=soft") names.

    owner, also: for messages, who has these options, and names of others that may stand beside
    them.

    Raises OptionError for an unknown name, a part without "=", or a value that cannot be used.
    """
    hints = typing.get_type_hints(options)
    known = [field.name for field in fields(options)]  # type: ignore[arg-type]
    values: dict[str, Any] = {}
    value = ""
    for part in filter(None, (piece.strip() for piece in (text or "").split(","))):
        before = value
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals:
            comma = f": write {before}.{part} with a decimal point" * (before + part).isdigit()
            hint = comma if before else ""
            raise OptionError(f"options: found {part!r}, expected name=value{hint}", part)
        if name not in known:
            hint = _meant(name, [*known, *also])
            raise OptionError(f"options: {owner} has no option {name!r}; {hint}", name)
        values[name] = _convert(name, value, hints[name])
    return options(**values)


def _meant(name: str, known: Sequence[str]) -> str:
    """Advice on an unknown option: the nearest option or, if that is nearer, parameter."""
    near = nearest(name, [*known, *BY_NAME])
    if near and near not in known:
        return f"did you mean the parameter {near} (--{near.replace('_', '-')})?"
    return suggestion(name, known, f"known: {', '.join(known) or 'none'}")


def own_options(text: str | None, options: type) -> str | None:
    """The part of `text` whose names are fields of `options`; None if there is none."""
    return _filtered(text, options, True)


def other_options(text: str | None, options: type) -> str | None:
    """The part of `text` whose names are no fields of `options`; None if there is none."""
    return _filtered(text, options, False)


def _filtered(text: str | None, options: type, own: bool) -> str | None:
    names = {field.name for field in fields(options)}
    parts = options_by_name(text).items()
    return options_text({name: value for name, value in parts if (name in names) is own}, {})


def from_text(name: str, text: str, kind: type) -> Any:
    """The value of a parameter or option that a text spells. Raises ConfigError."""
    try:
        return TRUTH[text.lower()] if kind is bool else kind(text)
    except (ValueError, KeyError):
        expected = "yes or no" if kind is bool else _KIND[kind]
        raise ConfigError(f"{name} = {text!r}; expected {expected}") from None


def _convert(name: str, text: str, kind: type) -> Any:
    try:
        value = from_text(name, text, kind)
    except ConfigError as error:
        raise OptionError(f"options: {error}", name) from None
    if kind is float and not math.isfinite(value):
        raise OptionError(f"options: {name} = {text}; expected a finite number", name)
    return value
