"""Which readers are there, with which files are they tried, and how is one called?

The files stand in `corpus/READER`: small ones of every kind a reader knows, and inputs that
once made it fail. One called `what--name` is read under the name behind the dashes.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

CORPUS = Path(__file__).parent / "corpus"


@dataclass(frozen=True)
class Case:
    """One input: the name a file is read under, and what is in it."""

    name: str
    data: bytes


@dataclass(frozen=True)
class Reader:
    """call: given the file's path (or the folder's, where `whole`), reads it and uses it.

    tokens: pieces of the format. base: makes the files that stand beside the input.
    """

    name: str
    call: Callable[[Path], object]
    tokens: tuple[bytes, ...] = ()
    whole: bool = False
    base: Callable[[Path], None] | None = None
    named: tuple[str, ...] = ()

    def seeds(self, folder: Path) -> Iterable[Case]:
        """The corpus; of a folder that is made, each of its files too."""
        for path in sorted((CORPUS / self.name).iterdir()):
            yield Case(path.name.rpartition("--")[2], path.read_bytes())
        if self.base is not None:
            for path in sorted((folder / self.name).rglob("*")):
                if path.is_file() and path.suffix != ".png":
                    yield Case(path.name, path.read_bytes())

    def prepare(self, folder: Path) -> None:
        """Make the place where inputs are written."""
        place = folder / self.name
        place.mkdir(parents=True, exist_ok=True)
        if self.base is not None:
            self.base(place)
        elif self.whole:
            for path in (CORPUS / self.name).iterdir():
                if "--" not in path.name:
                    shutil.copyfile(path, place / path.name)

    def read(self, folder: Path, case: Case) -> None:
        """Put the input in its place and read it."""
        place = folder / self.name
        path = place / case.name
        before = path.read_bytes() if self.whole and path.exists() else None
        path.write_bytes(case.data)
        try:
            self.call(place if self.whole else path)
        finally:
            if before is not None:
                path.write_bytes(before)
            elif self.whole:
                path.unlink()

    def names(self, folder: Path, case: Case) -> tuple[str, ...]:
        """What a message about this input may call it."""
        return (str(folder / self.name), case.name, *self.named)


def _labelled(path: Path) -> None:
    from superconext.core.errors import DataError
    from superconext.data.dataset import check_training
    from superconext.data.reading import read_labelled, read_texts

    try:
        corpus = read_labelled(path)
        assert len(corpus.texts) == len(corpus.labels) == len(corpus.lines) > 0
        assert all(map(str.strip, corpus.texts)) and all(map(str.strip, corpus.labels))
        with contextlib.suppress(DataError):
            check_training(corpus)
    except DataError:
        with contextlib.suppress(DataError):
            read_texts(path)
        raise


def _stream(path: Path) -> None:
    """Predictions' input: bytes on standard input, stopping at bad lines and leaving them out."""
    from superconext.data.reading import RowStream

    column = "text" if path.suffix in (".csv", ".tsv", ".jsonl") else None
    stdin = sys.stdin
    try:
        for on_error in ("skip", "fail"):
            source = io.BytesIO(path.read_bytes())
            sys.stdin = SimpleNamespace(buffer=source)  # type: ignore[assignment]
            name = "-" if column is None else path
            for rows in RowStream(name, column, labelled=False, on_error=on_error):
                assert all(map(str.strip, rows.texts))
    finally:
        sys.stdin = stdin


def _vectors(path: Path) -> None:
    from superconext.vectors.readers import read_vectors

    vectors = read_vectors(path)
    vectors.lookup(["zwin", "ghir", "زوين", ""])
    read_vectors(path, keep=["zwin"], limit=2)


def _companions(place: Path) -> None:
    _vectors(place / "v.kv")


def _vocabulary(path: Path) -> None:
    from superconext.vectors.readers import read_torchtext_vocab

    assert all(isinstance(word, str) for word in read_torchtext_vocab(path))


def _config(path: Path) -> None:
    from superconext.config.files import read_config
    from superconext.config.parameters import resolve

    resolve(read_config(path))


def _systems(path: Path) -> None:
    from superconext.experiments.systems import read_systems

    read_systems(path)


def _datasets(path: Path) -> None:
    from superconext.experiments.systems import read_datasets

    read_datasets(path, {"splits": None, "deduplicate": False})


def _archive(path: Path) -> None:
    from superconext.data.parsers import read_tar, read_zip

    reader = read_zip if path.suffix == ".zip" else read_tar
    for _, data in reader(path, lambda name: True, limit=1 << 22):
        assert len(data) <= 1 << 22


def _published(path: Path) -> None:
    """The layouts of public sets, by the name of the parser before the dot."""
    from superconext.data.parsers import PARSERS

    options = {"text": "text", "label": "label", "folder": "SST-2"}
    parser = path.name.partition(".")[0]
    role = (
        "train/pos" if parser == "lines_of_label" else "tweets" if parser == "numbered" else "all"
    )
    PARSERS[parser]({role: path}, options)


def _run(place: Path) -> None:
    """Load and use a run whose manifest agrees with its files, as an enemy would have it."""
    from superconext.runs.folder import load_model

    manifest = place / "manifest.json"
    whole = manifest.read_bytes()
    try:
        document = json.loads(whole)
        for name in document["files"]:
            document["files"][name] = hashlib.sha256((place / name).read_bytes()).hexdigest()
        manifest.write_bytes(json.dumps(document).encode())
    except (ValueError, TypeError, LookupError, OSError, RecursionError):
        pass
    try:
        model = load_model(place)
        model.answer(["zwin bzaf ghir hadchi", "خايب had l3icha <url>", "?"])
    finally:
        manifest.write_bytes(whole)


def make_run(place: Path) -> None:
    """A tiny run with everything a run may have: subwords, tuned n-grams, TF-IDF, an objective's
    own weights."""
    import numpy as np

    from superconext.core.progress import Progress
    from superconext.runs.splits import TrainRequest
    from superconext.runs.train import train_run
    from superconext.vectors.subwords import SubwordTable
    from superconext.vectors.table import WordVectors

    draw = np.random.default_rng(0)
    words = ["zwin", "mzyan", "khayb", "ghali", "bzaf", "had", "kolchi", "ديما"]
    buckets = draw.normal(size=(40, 4)).astype(np.float32)
    buckets[::3] = 0.0
    table = WordVectors(
        words, draw.normal(size=(8, 4)).astype(np.float32), SubwordTable(buckets, 2, 3)
    )
    source = place.parent / "source"
    shutil.rmtree(source, ignore_errors=True)
    shutil.rmtree(place, ignore_errors=True)
    source.mkdir(parents=True)
    table.save(source / "vectors")
    rows = [f"pos\tzwin bzaf {i}\nneg\tkhayb bzaf {i}" for i in range(8)]
    for name in ("train", "dev"):
        (source / f"{name}.tsv").write_text("label\ttext\n" + "\n".join(rows) + "\n")
    given = {
        "vectors": str(source / "vectors"), "objective": "ce_scl", "epochs": 1, "hidden_size": 2,
        "batch_size": 8, "tune_vectors": True, "baselines": False,
        "steps_per_epoch": 1, "probe_features": "encoder+ngrams", "members": 2,
    }  # fmt: skip
    train_run(
        TrainRequest(
            train=str(source / "train.tsv"),
            dev=str(source / "dev.tsv"),
            out=str(place),
            given=given,
        ),
        Progress(),
    )
    for spare in ("figures", "README.md", "history.csv", "metrics.json", "predictions.tsv"):
        path = place / spare
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _pretrained(place: Path) -> None:
    """Start an encoder from a folder whose hash agrees with its weights, as an enemy's would."""
    import torch

    from superconext.encoders.bilstm import BiLSTMEncoder
    from superconext.encoders.pretrained import start_from
    from superconext.encoders.words import WordEmbedding
    from superconext.vectors.readers import read_vectors

    facts = place / "encoder.json"
    written = facts.read_bytes()
    with contextlib.suppress(ValueError, TypeError, LookupError, OSError, RecursionError):
        document = json.loads(written)
        weights = (place / "encoder.safetensors").read_bytes()
        document["sha256"] = hashlib.sha256(weights).hexdigest()
        facts.write_bytes(json.dumps(document).encode())
    try:
        start_from(BiLSTMEncoder(WordEmbedding(torch.zeros(4, 6)), 3), place)
        read_vectors(place).lookup(["zwin", "ghir", ""])
    finally:
        facts.write_bytes(written)


def make_encoder(place: Path) -> None:
    """A tiny encoder as `pretrain` writes it, untrained: 6 numbers a word, 3 units a direction."""
    import numpy as np
    import torch

    from superconext.encoders.bilstm import BiLSTMEncoder
    from superconext.encoders.pretrained import write_layers
    from superconext.encoders.words import WordEmbedding
    from superconext.text.normalize import Normalizer
    from superconext.text.tokenize import Tokenizer
    from superconext.vectors.table import WordVectors
    from superconext.vectors.text_corpus import record_tokenizer

    words = ["zwin", "mzyan", "khayb", "ghali", "bzaf", "had", "kolchi", "ديما"]
    table = np.random.default_rng(0).normal(size=(8, 6)).astype(np.float32)
    torch.manual_seed(0)
    encoder = BiLSTMEncoder(WordEmbedding(torch.from_numpy(table)), 3)

    def also(fresh: Path) -> None:
        record_tokenizer(fresh, Tokenizer(Normalizer("none")))
        write_layers(fresh, encoder, {"history": []})

    shutil.rmtree(place, ignore_errors=True)
    WordVectors(words, table).save(place, also)


_LINE = (
    b"text",
    b"label",
    b"text,label\n",
    b"label\ttext\n",
    b"__label__",
    b'{"text":"a","label":1}',
)
_FLOATS = (b"zwin 1 2 3\n", b" 0.1", b" 1e999", b"2 3\n", b"999999999 3\n", b"0 999999999\n")
_PICKLE = (
    b"\x80\x02", b"}", b"]", b")", b"(", b"t", b"\x85", b"\x86", b"2", b"0", b"s", b"u", b"a",
    b"R", b"b", b"\x81", b"q\x00", b"h\x00", b"2\x86" * 60, b")2\x86", b"\x85" * 2000, b"K\x01",
    b"cos\nsystem\n", b"cbuiltins\neval\n", b"c__builtin__\nset\n", b"ccollections\nOrderedDict\n",
    b"ctorch._utils\n_rebuild_tensor_v2\n", b"\x8a\x08" + b"\x7f" * 8, b"X\xff\xff\xff\x7f", b"Q",
)  # fmt: skip
_TOML = (
    b"[[system]]\n", b"[[dataset]]\n", b"name = ", b'objective = "superloss"\n', b"seed = ", b"''",
    b'"""', b"a" + b".a" * 2000 + b" = 1\n", b"[a.b]\n", b"= nan", b"= inf", b"1979-05-27",
    b"[" + b"a." * 1000 + b"a]\n", b"0x" + b"f" * 5000,
)  # fmt: skip
_TENSORS = (b'"shape":[', b'"dtype":"F32"', b'"data_offsets":[0,0]', b"encoder.", b"__metadata__")


def readers() -> Sequence[Reader]:
    """All of them; the one of Parquet only where pyarrow is installed."""
    found = [
        *(
            Reader(name, _labelled, _LINE)
            for name in ("csv", "tsv", "jsonl", "fasttext_lines", "gz")
        ),
        Reader("stream", _stream, _LINE, named=("standard input",)),
        *(
            Reader(name, _vectors, _FLOATS)
            for name in (
                "glove",
                "word2vec_text",
                "word2vec_binary",
                "fasttext_vec",
                "fasttext_bin",
            )
        ),
        Reader("gensim_kv", _companions, _PICKLE, whole=True),
        Reader("torchtext_pt", _vectors, _PICKLE),
        Reader("torchtext_vocab", _vocabulary, _PICKLE),
        Reader("vectors_zip", _vectors, _FLOATS),
        Reader("vectors_folder", _vectors, whole=True),
        Reader("toml_config", _config, _TOML),
        Reader("toml_systems", _systems, _TOML, named=("found no objective", "named twice")),
        Reader("toml_datasets", _datasets, _TOML),
        Reader("archive", _archive),
        Reader("published", _published, _LINE),
        Reader("run", _run, _TENSORS, whole=True, base=make_run),
        Reader("pretrained", _pretrained, _TENSORS, whole=True, base=make_encoder),
    ]
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        return found
    return [*found, Reader("parquet", _labelled)]


def reader(name: str) -> Reader:
    """The reader of that name. Raises LookupError."""
    return {one.name: one for one in readers()}[name]


__all__ = ["CORPUS", "Case", "Reader", "make_encoder", "make_run", "reader", "readers"]
