"""What makes pretraining faster, and what it costs the control that uses nothing else.

    python scripts/pretraining_speed.py TEXT LABELLED... --out DIR [--seeds 2] [--draws 20]

One set of word vectors is learned from TEXT, and encoders are pretrained on it with each setting of
`SETTINGS` and each seed. A row of LABELLED is the frozen encoder's sentence vector at unit length;
logistic regression is fitted to some rows of each class, drawn anew each time, and scored by macro
recall on others. The interval is over the draws, which all encoders share, of the mean over seeds
and sets. Times are processor seconds of the passes over the text, without the emoji part; their
ratio to the first's is of the same seed. Figures go to scripts/results/pretraining_speed.csv;
encoders stay in DIR, and are made anew only if they are not there.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from doc_tables import write_rows
from word_vector_controls import score

from superconext.core.files import file_sha256

STORED = Path(__file__).parents[1] / "scripts" / "results" / "pretraining_speed.csv"
#: Parameters beside the defaults of `pretrain`; the first is what the others are compared with.
BEFORE = {"batch_size": 128, "learning_rate": 0.002, "frequent": 1.0}
#: The defaults for long text.
LAST = {"batch_size": 256, "learning_rate": 0.003}
SETTINGS: dict[str, dict[str, Any]] = {
    "1024 other words": BEFORE,
    "2048 other words": {**BEFORE, "sample": 2048},
    "512 other words": {**BEFORE, "sample": 512},
    "frequent words predicted less often": {**BEFORE, "frequent": 2e-4},
    "that, in batches of 256": LAST,
    "that, compiled": {**LAST, "compile": True},
}
FIRST = next(iter(SETTINGS))
ROWS = (8, 16, 64)
#: Rows of a labelled file, drawn once.
MOST = 3000


def pretrained(text: Path, vectors: Path, out: Path, seed: int, more: dict[str, Any]) -> float:
    """Make the encoder; processor seconds of its passes over the text."""
    from superconext.core.progress import Progress
    from superconext.training.pretraining import language_model
    from superconext.training.pretraining.make import pretrain, request_of

    class Timed(language_model.Trainer):
        seconds = 0.0

        def fit(self) -> list:
            began = time.process_time()
            history = super().fit()
            Timed.seconds += time.process_time() - began
            return history

    noted = out.with_suffix(".json")
    about = {"text": file_sha256(text), "parameters": more}
    if noted.exists() and out.exists():
        before = json.loads(noted.read_text(encoding="utf-8"))
        if before["about"] != about:
            sys.exit(f"error: {out} was made of another text or with other settings; remove it")
        return float(before["seconds"])
    given = {"vectors": str(vectors), "seed": seed, **more}
    plain, language_model.Trainer = language_model.Trainer, Timed
    kept = os.environ["SUPERCONEXT_CACHE"]
    with tempfile.TemporaryDirectory(dir=out.parent) as empty:  # nothing to resume from
        os.environ["SUPERCONEXT_CACHE"] = empty
        try:
            pretrain(request_of(given, files=[str(text)], out=out), Progress())
        finally:
            language_model.Trainer, os.environ["SUPERCONEXT_CACHE"] = plain, kept
    noted.write_text(json.dumps({"about": about, "seconds": Timed.seconds}), encoding="utf-8")
    return Timed.seconds


def features(encoder: Path, labels: np.ndarray, texts: list[str]) -> np.ndarray:
    """Sentence vectors `[n, d]` of unit length by the frozen encoder."""
    from superconext import SuperConTextClassifier

    model = SuperConTextClassifier(init=str(encoder), freeze=True)
    some = np.concatenate([np.flatnonzero(labels == name)[:20] for name in np.unique(labels)])
    model.fit([texts[row] for row in some], labels[some].tolist())
    found = model.transform(texts)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("labelled", nargs="+", type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--draws", type=int, default=20)
    options = parser.parse_args()
    os.environ["SUPERCONEXT_CACHE"] = str(options.out / "cache")

    from superconext.cli import main as command
    from superconext.data.reading import read_labelled

    sets = {}
    for path in options.labelled:
        data = read_labelled(path)
        kept = np.random.default_rng(0).permutation(len(data.labels))[:MOST]
        sets[path.parent.name] = np.array(data.labels)[kept], [data.texts[row] for row in kept]
    vectors = options.out / "vectors"
    if not vectors.exists():
        command(["vectors", "train", str(options.text), "--out", str(vectors), "--quiet"])
    scores: dict[tuple[str, int], list[list[float]]] = {}
    seconds: dict[str, list[float]] = {}
    for seed in range(options.seeds):
        for name, more in SETTINGS.items():
            out = options.out / f"{seed} {name}"
            seconds.setdefault(name, []).append(pretrained(options.text, vectors, out, seed, more))
            for labels, texts in sets.values():
                found = features(out, labels, texts)
                for rows in ROWS:
                    made = [score(found, labels, rows, draw) for draw in range(options.draws)]
                    scores.setdefault((name, rows), []).append(made)
            print(seed, name, f"{seconds[name][-1]:.1f} s", flush=True)
    lines = []
    for (name, rows), made in scores.items():
        values = 100 * np.mean(made, axis=0)
        more = values - 100 * np.mean(scores[FIRST, rows], axis=0)
        reach = 1.96 * more.std(ddof=1) / len(more) ** 0.5
        figures = {"recall": values.mean(), "difference": more.mean()}
        figures |= {"low": more.mean() - reach, "high": more.mean() + reach}
        line = {"options": name, "rows": rows} | {k: f"{v:.2f}" for k, v in figures.items()}
        ratio = np.mean(np.divide(seconds[FIRST], seconds[name]))
        line |= {"seconds": f"{np.mean(seconds[name]):.1f}", "times_as_fast": f"{ratio:.2f}"}
        lines.append(line)
        print(*line.values(), sep="\t")
    write_rows(STORED, lines)
    return 0


if __name__ == "__main__":
    sys.exit(main())
