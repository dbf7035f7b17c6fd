"""Write what is frozen here: inputs, run folders of every format, and what today's code answers.

    python tests/frozen/make.py             # everything
    python tests/frozen/make.py data        # inputs, out of data/sample
    python tests/frozen/make.py runs [NAME...]     # run folders, by the code that wrote the format
    python tests/frozen/make.py answers [NAME...]  # what TODAY says of each folder
    python tests/frozen/make.py fits [NAME...]     # what TODAY's trainings come to
    python tests/frozen/make.py refit REASON NAME...  # what those of the working tree come to
    python tests/frozen/make.py elsewhere NAME...  # what they come to here, beside what is there

Code of other commits is taken out of git into a temporary folder and run from there by the same
Python. Inputs lie beside a run while it is trained, so that no folder has a path of a machine in
it. With names only those are written again; what stands in the files of the others stays.

To freeze something that is new, set TODAY to the commit that has it and name it. A training that
comes to something else for a reason that the changelog states is fitted again with `refit`, and
`fits.json` has the reason beside its name. A training that has not changed and comes to something
else on a processor of the same fingerprint gets what it comes to there as another result. Run
folders and what they answer never change.
"""

from __future__ import annotations

import io
import json
import os
import random
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))

from tests.frozen import cases  # noqa: E402

#: The commit whose answers are frozen: the last one before the restructuring.
TODAY = "0d97c8c"
#: The first commit whose runs TODAY reads (before it `keep_best` stood where `keep` does), the last
#: that runs and wrote nothing but format 1, the last that wrote 2 and 3 and not 4.
FIRST, ONLY_1, UP_TO_3 = "56ac18c", "601874c", "afecdfe"

_SMALL = ("--hidden-size=4", "--projection-size=4", "--batch-size=12", "--epochs=5")
_SMALL = (*_SMALL, "--learning-rate=0.03", "--threads=1")
_WORDS = (*_SMALL, "--vectors=words.vec", "--no-subwords")
_NOISE = (*_SMALL, "--vector-dimension=4", "--vector-method=random", "--no-subwords")

#: Run folders by name: the commit that writes each, and the options of its `train`.
FOLDERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "format-1-first": (FIRST, (*_WORDS, "--tune-vectors")),
    "format-1-buckets": (ONLY_1, (*_SMALL, "--vectors=words.bin", "--subwords")),
    "format-2": (UP_TO_3, (*_SMALL, "--vector-dimension=2", "--subwords")),
    "format-3-tfidf": (UP_TO_3, (*_NOISE, "--probe-features=encoder+tfidf", "--calibrate")),
    "format-4-ngrams": (TODAY, (*_NOISE, "--probe-features=encoder+ngrams", "--members=2")),
    "probe": (TODAY, (*_NOISE, "--layers=2", "--pooling=mean", "--calibrate", "--min-count=2")),
    "finetune": (TODAY, (*_WORDS, "--finetune", "--finetune-epochs=2")),
    "finetune-frozen": (TODAY, (*_WORDS, "--finetune-frozen", "--finetune-epochs=2")),
    "cross-entropy": (TODAY, (*_WORDS, "--objective=cross_entropy", "--pooling=last")),
    "dualcl": (TODAY, (*_WORDS, "--objective=dualcl")),
    "lsan": (TODAY, (*_WORDS, "--objective=lsan")),
    "leam": (TODAY, (*_WORDS, "--objective=leam", "--bridge=moroccan")),
    "members-tuned": (TODAY, (*_SMALL, "--vector-dimension=2", "--members=2", "--tune-vectors")),
    "second-objective": (
        TODAY,
        (*_WORDS, "--members=2", "--second-objective=lacon", "--second-batch-size=9"),
    ),
    "unfrozen": (TODAY, (*_WORDS, "--unfreeze-epoch=3", "--vector-scale=2")),
    "init": (TODAY, (*_SMALL, "--init=pretrained", "--hidden-size=6", "--subwords")),
    "unseen": (TODAY, (*_NOISE, "--members=3", "--probe-rows=unseen", "--logit-adjustment=0.5")),
}
#: Fewer rows for folders with many n-grams in them.
_LARGE = ("format-1-buckets", "format-2", "format-3-tfidf", "format-4-ngrams", "members-tuned")
_LARGE = (*_LARGE, "init")
#: Written by `SuperConTextClassifier.save`: two classes, which are whole numbers.
SAVED = "saved"

_COMMAND = (
    "import sys; sys.modules['matplotlib'] = None; "  # no figures
    "from superconext.cli import main; main(sys.argv[1:])"
)
_SAVE = """
from superconext import SuperConTextClassifier
rows = [line.rstrip("\\n").split("\\t") for line in open("fewest-numbers.tsv", encoding="utf-8")]
model = SuperConTextClassifier(
    objective="scf", hidden_size=4, projection_size=4, batch_size=12, epochs=5,
    learning_rate=0.03, vector_dimension=4, vector_method="random", subwords=False,
    probe_features="encoder+ngrams",
)
model.fit([text for _, text in rows], [int(label) for label, _ in rows]).save("saved")
"""


def main() -> None:
    words = sys.argv[1:]
    if words[:1] == ["inside"]:  # with TODAY's code before all other in the path
        cases.FROZEN_CODE = True
        {"answers": _answers, "fits": _fits}[words[1]](words[2:])
        return
    if words[:1] == ["refit"]:
        _fits(words[2:], words[1])
        return
    if words[:1] == ["elsewhere"]:
        _elsewhere(words[1:])
        return
    steps = words[:1] or ["data", "runs", "answers", "fits"]
    with tempfile.TemporaryDirectory(prefix="frozen-") as name:
        for step in steps:
            if step == "data":
                make_data()
            elif step == "runs":
                make_runs(words[1:], Path(name))
            else:
                script = [str(Path(__file__).resolve()), "inside", step, *words[1:]]
                _python(TODAY, script, Path(name), ROOT)


def make_data() -> None:
    """Inputs: the first rows of the sample, and noise as word vectors of some of its words."""
    sample = ROOT / "data" / "sample"
    train, dev, unlabelled = (
        (sample / name).read_text(encoding="utf-8").splitlines()
        for name in ("train.tsv", "dev.tsv", "unlabelled.txt")
    )
    cases.DATA.mkdir(exist_ok=True)
    numbers = {"negative": "0", "positive": "1"}

    def two(lines: list[str]) -> list[str]:
        pairs = [line.split("\t") for line in lines]
        return [f"{numbers[label]}\t{text}" for label, text in pairs if label in numbers]

    written = {
        "rows.tsv": train[:220],
        "few.tsv": train[:24],
        "fewest.tsv": train[:16],
        "fewest-numbers.tsv": two(train[:22]),
        "dev.tsv": dev[:40],
        "dev-numbers.tsv": two(dev[:40]),
        "related.tsv": train[300:340],
        "unlabelled.txt": unlabelled[:250],
    }
    draw = random.Random(0)
    known = sorted({word for line in train[:40] for word in line.split("\t")[1].split()})[:110]
    vectors = [" ".join([word, *(f"{draw.gauss(0, 0.5):.2f}" for _ in range(4))]) for word in known]
    written["words.vec"] = [f"{len(vectors)} 4", *vectors]
    for name, lines in written.items():
        (cases.DATA / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def make_runs(names: list[str], place: Path) -> None:
    """The pretrained encoder and the run folders."""
    here = place / "inputs"
    if not here.exists():
        shutil.copytree(cases.DATA, here)
        _write_bin(here)
    if not names or "pretrained" in names:
        words = ("unlabelled.txt", "--out=pretrained", "--vectors=words.vec", "--hidden-size=6")
        small = ("--epochs=1", "--sample=16", "--batch-size=32", "--quiet")
        _python(TODAY, ["-c", _COMMAND, "pretrain", *words, *small], place, here)
        _put(here / "pretrained", cases.PRETRAINED)
    else:
        shutil.copytree(cases.PRETRAINED, here / "pretrained")
    for name, (commit, options) in FOLDERS.items():
        if names and name not in names:
            continue
        rows = "fewest.tsv" if name in _LARGE else "few.tsv"
        words = (rows, "--dev=dev.tsv", f"--out={name}", "--no-baselines", "--quiet")
        _python(commit, ["-c", _COMMAND, "train", *words, *options], place, here)
        _put(here / name, cases.RUNS / name)
    if not names or SAVED in names:
        _python(TODAY, ["-c", _SAVE], place, here)
        _put(here / SAVED, cases.RUNS / SAVED)


def _write_bin(here: Path) -> None:
    """Vectors in fastText's own format, with few buckets, all of them full."""
    from gensim.models import FastText
    from gensim.models.fasttext import save_facebook_model

    lines = (here / "unlabelled.txt").read_text(encoding="utf-8").splitlines()
    settings = {"vector_size": 4, "bucket": 300, "min_n": 2, "max_n": 5, "min_count": 3}
    model = FastText([line.split() for line in lines], workers=1, seed=0, **settings)
    save_facebook_model(model, str(here / "words.bin"))


def _answers(names: list[str]) -> None:
    for run in sorted(path for path in cases.RUNS.iterdir() if path.is_dir()):
        if not names or run.name in names:
            told = cases.answers(run)
            _write(run.with_suffix(".json"), told)
            print("answers of", run.name)


def _fits(names: list[str], reason: str = "") -> None:
    known = json.loads(cases.FITS.read_text(encoding="utf-8")) if cases.FITS.exists() else {}
    found, moved = known.get("probabilities", {}), known.get("moved", {})
    for name in names or [*cases.TRAININGS, *cases.COMMANDS]:
        with tempfile.TemporaryDirectory() as place:
            found[name] = cases.rounded(cases.again(name)(Path(place)), 5)
        moved.pop(name, None)
        if reason:
            moved[name] = reason
        print("trained", name)
        known.get("elsewhere", {}).pop(name, None)
    of = known["fingerprint"] if reason else cases.fingerprint()
    fits = {"commit": TODAY, "fingerprint": of, "moved": moved}
    _write(cases.FITS, {**fits, "elsewhere": known.get("elsewhere", {}), "probabilities": found})


def _elsewhere(names: list[str]) -> None:
    known = json.loads(cases.FITS.read_text(encoding="utf-8"))
    for name in names:
        with tempfile.TemporaryDirectory() as place:
            found = cases.rounded(cases.again(name)(Path(place)), 5)
        known["elsewhere"].setdefault(name, []).append(found)
        print("trained", name)
    _write(cases.FITS, known)


def _write(path: Path, document: dict[str, object]) -> None:
    """Indented JSON, but every list on one line."""
    lists: list[str] = []

    def marked(value: object) -> object:
        if isinstance(value, dict):
            return {key: marked(inner) for key, inner in value.items()}
        if isinstance(value, list):
            lists.append(json.dumps(value, ensure_ascii=False))
            return f"@list {len(lists) - 1}@"
        return value

    text = json.dumps(marked(document), ensure_ascii=False, indent=1)
    for number, line in enumerate(lists):
        text = text.replace(f'"@list {number}@"', line)
    path.write_text(text + "\n", encoding="utf-8")


def _python(commit: str, words: list[str], place: Path, here: Path) -> None:
    """Run Python on the package as it was at a commit."""
    code = place / commit
    if not code.exists():
        git = ["git", "-C", str(ROOT), "archive", commit, "superconext"]
        packed = subprocess.run(git, check=True, stdout=subprocess.PIPE).stdout
        with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
            archive.extractall(code, filter="data")
    env = {
        **os.environ,
        "PYTHONPATH": str(code),
        "OMP_NUM_THREADS": "1",
        "SUPERCONEXT_CACHE": str(place / f"cache-{commit}"),
    }
    subprocess.run([sys.executable, *words], check=True, cwd=here, env=env)


def _put(made: Path, home: Path) -> None:
    shutil.rmtree(home, ignore_errors=True)
    home.parent.mkdir(exist_ok=True)
    shutil.copytree(made, home, ignore=shutil.ignore_patterns("README.md"))  # nothing reads it
    print("made", home.name)


if __name__ == "__main__":
    main()
