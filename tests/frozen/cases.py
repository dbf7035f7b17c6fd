"""What is frozen, and how it is asked for: only through doors that any version of the project has.

These are `superconext.load`, `SuperConTextClassifier` and the command line. Nothing else of the
package is imported here, so that its modules may move.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
DATA = HERE / "data"
PRETRAINED = HERE / "pretrained"
RUNS = HERE / "runs"
FITS = HERE / "fits.json"

#: Seen and unseen words, both scripts, other languages, signs alone and nothing at all.
SENTENCES = (
    "portable مازال ما جربتو",
    "lpitza 3jebatniiii bzaaaf",
    "الكسكس فور نحبوو",
    "القهوة ناقصة فكازا",
    "had lmerra sandwiiitch na9es wlh",
    "win rahi lconnexion?",
    "السبيطار ما خيبش ظني",
    "train mkasser krehto",
    "والله السندويش طوب",
    "chkoun y3raf had lblasa",
    "زوين بزاف هاد الفيلم",
    "khayb w ghali, ma3jebnich",
    "telephone hayel fre7ni 😂😂",
    "La livraison était très lente",
    "qwxyz vbnmk",
    "ظظظظ غغغغغ",
    "!!!",
    "7",
    " ",
    "",
)

#: Places of those that have a word: earlier versions gave blank ones probabilities too.
WORDED = [k for k, text in enumerate(SENTENCES) if text.strip()]

#: Parameters of every small training below, unless a case says otherwise.
TINY: dict[str, Any] = {
    "hidden_size": 8,
    "vector_dimension": 8,
    "vector_method": "random",
    "subwords": False,
    "epochs": 3,
    "batch_size": 24,
    "learning_rate": 0.01,
    "threads": 1,
    "seed": 7,
}

OBJECTIVES = (
    *("superloss", "cross_entropy", "ce_ce", "triplet", "n_pair", "supcon", "ce_scl", "ce_cl"),
    *("lacon", "leam", "lsan", "css_lm", "scf", "css_lm_st", "dualcl", "dualcl_no_dual"),
)

_POOL = {"unlabelled": str(DATA / "unlabelled.txt")}
_LATE = "mining_warmup=0.0"

#: Trainings by name: what each sets beside or over `TINY`.
TRAININGS: dict[str, dict[str, Any]] = {
    **{
        name: {"objective": name, **(_POOL if name in ("css_lm", "css_lm_st") else {})}
        for name in OBJECTIVES
    },
    "tfidf": {"probe_features": "encoder+tfidf"},
    "tfidf calibrated": {"probe_features": "encoder+tfidf", "calibrate": True},
    "ngrams": {"probe_features": "encoder+ngrams"},
    "ngrams adjusted": {"probe_features": "encoder+ngrams", "logit_adjustment": 0.5},
    "finetune": {"finetune_epochs": 2},
    "finetune cross_entropy": {
        "objective": "cross_entropy",
        "finetune_epochs": 12,
    },
    "init": {"init": str(PRETRAINED), "hidden_size": 6, "vector_dimension": 4},
    "init tuned": {
        "init": str(PRETRAINED),
        "hidden_size": 6,
        "vector_dimension": 4,
        "tune_vectors": True,
        "subwords": True,
    },
    "mining threshold": {"options": f"mining=threshold,mining_threshold=0.995,{_LATE}"},
    "mining topk": {"options": f"mining=topk,mining_threshold=3,{_LATE}"},
    "mining quantile": {"options": f"mining=quantile,mining_threshold=0.3,{_LATE}"},
    "mining limits": {
        "options": "mining=threshold,mining_threshold=0.8,mining_fallback=skip,"
        f"mining_max_similarity=0.9,{_LATE}",
    },
    "micro": {"options": "reduction=micro,include_self=true", "temperature": 0.3},
    "triplet options": {"objective": "triplet", "options": "form=soft,margin=0.6"},
    "members": {"members": 2},
    "min_count": {"min_count": 2},
    "calibrated": {"calibrate": True},
    "adjusted": {"logit_adjustment": 1.0},
    "related": {"related": str(DATA / "related.tsv")},
    "related ngrams": {"related": str(DATA / "related.tsv"), "probe_features": "encoder+ngrams"},
    "steps": {"steps_per_epoch": 3, "epochs": 4, "keep": "last"},
    "keep best": {"keep": "best", "epochs": 4},
    "two layers": {"layers": 2, "pooling": "mean", "projection": "linear"},
    "last state": {"pooling": "last", "projection": "identity", "max_length": 4},
    "no dropout": {"dropout": 0.0, "word_dropout": 0.0},
    "tuned subwords": {"tune_vectors": True, "subwords": True},
    "word vectors of a file": {"vectors": str(DATA / "words.vec"), "vector_dimension": 4},
    "arabizi bridged": {"normalize": "arabizi", "bridge": "moroccan"},
    "rules": {"normalize": "latin-elongation"},
    "word2vec": {"vector_method": "word2vec", **_POOL},
    "fasttext": {"vector_method": "fasttext", "subwords": True},
    "paper": {
        "preset": "paper",
        "layers": 2,
        "steps_per_epoch": 4,
    },
    "best": {
        "members": 4,
        "probe_features": "encoder+ngrams",
        "vector_method": "fasttext",
        "subwords": True,
    },
    "pretrain": {
        "vector_method": "fasttext",
        "pretrain": True,
        **_POOL,
    },
}

#: Trainings of the command line: the words after `train FILE --out RUN`, beside `TINY`.
COMMANDS: dict[str, tuple[str, ...]] = {
    "command": ("--dev", str(DATA / "dev.tsv")),
    "command without dev": ("--calibrate", "--cv", "0"),
    "stream": ("--dev", str(DATA / "dev.tsv"), "--store", "STORE"),
    "stream without dev": ("--store", "STORE", "--objective", "cross_entropy", "--epochs", "2"),
    "stream ngrams": ("--store", "STORE", "--probe-features", "encoder+ngrams"),
}

#: These come to the same in two ways, and are meant to.
ALIKE = (("command", "stream"), ("command without dev", "calibrated"))

#: Left to `pytest -m slow`.
SLOW = frozenset(
    {
        *("init tuned", "mining limits", "tfidf calibrated", "ngrams adjusted", "pretrain"),
        *("related ngrams", "stream ngrams", "stream without dev"),
    }
)


def call(*words: object) -> str:
    """What a command of `superconext` prints, in this process."""
    from superconext.cli import main

    printed, said = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
        try:
            main([str(word) for word in words])
        except SystemExit as stop:
            assert not stop.code, f"superconext {words}: {said.getvalue()}"
    return printed.getvalue()


def rows(name: str) -> tuple[list[str], list[str]]:
    """Texts and labels of a file of `data`."""
    with (DATA / name).open(encoding="utf-8", newline="") as stream:
        table = list(csv.reader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))
    return [text for _, text in table], [label for label, _ in table]


#: Whether the code in use is that of the commit whose answers are frozen; see `spelt`.
FROZEN_CODE = False


def spelt(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters by the names that the code in use has for them."""
    if not FROZEN_CODE:
        return parameters
    then = {**parameters, "projection_size": 2 * parameters["hidden_size"]}
    if "finetune_epochs" in then:
        then["finetune"] = True
    if then.get("objective", "superloss") == "superloss" and "options" in then:
        for part in then.pop("options").split(","):
            key, value = part.split("=")
            then[key] = {"true": True}.get(value, value)
            if key in ("mining_threshold", "mining_warmup", "mining_max_similarity"):
                then[key] = float(value)
    profile, minus, rule = then.get("normalize", "").partition("-")
    return {**then, "normalize": profile, "disable_rules": rule} if minus else then


def trained(name: str) -> np.ndarray:
    """Probabilities `[20, 3]` of `SENTENCES` after the training of this name in `TRAININGS`."""
    import superconext

    model = superconext.SuperConTextClassifier(**spelt({**TINY, **TRAININGS[name]}))
    return model.fit(*rows("rows.tsv")).predict_proba(SENTENCES)


def commanded(name: str, place: Path) -> np.ndarray:
    """The same of a run that the command line of this name in `COMMANDS` writes into `place`."""
    import superconext

    tiny = spelt(TINY)
    words = [str(place / "store") if word == "STORE" else word for word in COMMANDS[name]]
    call(
        *("train", DATA / "rows.tsv", "--out", place / "run", "--quiet", "--no-baselines"),
        *[f"--{key.replace('_', '-')}={value}" for key, value in tiny.items() if key != "subwords"],
        *("--no-subwords", *words),
    )
    return superconext.load(place / "run").predict_proba(SENTENCES)


def answers(run: Path) -> dict[str, Any]:
    """What a saved run says: of `SENTENCES`, and of the labelled rows it was never shown."""
    import superconext

    model = superconext.load(run)
    figures = json.loads(call("evaluate", run, labelled(model.classes_), "--json"))
    return {
        "classes": model.classes_.tolist(),
        "predicted": model.predict(SENTENCES).tolist(),
        "probabilities": rounded(model.predict_proba(SENTENCES), 6),
        "decision": rounded(model.decision_function(SENTENCES), 4),
        "lengths": rounded(np.linalg.norm(model.transform(SENTENCES), axis=1), 5),
        "evaluate": {
            key: value if isinstance(value, str) else round(value, 6)
            for key, value in figures.items()
            if isinstance(value, int | float | str)
        },
    }


def labelled(classes: np.ndarray) -> Path:
    """The file of labelled rows for a run of these classes."""
    return DATA / ("dev.tsv" if len(classes) == 3 else "dev-numbers.tsv")


def rounded(numbers: np.ndarray, decimals: int) -> Any:
    return np.round(np.asarray(numbers, dtype=np.float64), decimals).tolist()


def fingerprint() -> dict[str, Any]:
    """What the last bits of a training depend on: processor, libraries and what they chose."""
    import scipy.linalg  # noqa: F401  (its BLAS is another than NumPy's)
    import torch
    from threadpoolctl import threadpool_info

    try:
        told = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        told = []
    first = dict(
        reversed([[part.strip() for part in line.split(":", 1)] for line in told if ":" in line])
    )
    flags = first.get("flags", "").split()
    found = {info.get("architecture") for info in threadpool_info()} - {None}
    return {
        "machine": platform.machine(),
        "vendor": first.get("vendor_id", ""),
        "avx2": "avx2" in flags,
        "avx512f": "avx512f" in flags,
        "torch": torch.__version__,
        "torch kernels": torch.backends.cpu.get_cpu_capability(),
        "numpy": np.__version__,
        "blas kernels": sorted(found),
        "rounding": _rounding(),
    }


def _rounding() -> str:
    """A hash of what matrix products and functions of this machine round to: processors of one
    vendor with the same instructions may differ in it."""
    import torch

    draw = np.random.default_rng(0)
    digest = hashlib.sha256()
    for rows, inner, columns in ((1, 8, 32), (20, 8, 32), (24, 100, 64), (200, 256, 512)):
        one, other = draw.normal(size=(rows, inner)), draw.normal(size=(inner, columns))
        digest.update((one @ other).tobytes())
        a, b = (torch.from_numpy(x).float() for x in (one, other))
        product = a @ b
        for result in (product, torch.addmm(b[0], a, b), product.exp(), product.tanh()):
            digest.update(result.numpy().tobytes())
        digest.update(product.sigmoid().log_softmax(1).numpy().tobytes())
        digest.update(product.square().sum(0).numpy().tobytes())
    return digest.hexdigest()[:16]


#: How the frozen trainings are made anew, by name.
def again(name: str) -> Callable[[Path], np.ndarray]:
    if name in COMMANDS:
        return lambda place: commanded(name, place)
    return lambda place: trained(name)
