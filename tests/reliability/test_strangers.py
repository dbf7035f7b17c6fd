"""A run folder, a pickle or an archive from a stranger: no code runs, memory stays small."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import pickle
import shutil
import struct
import tarfile
import time
import tracemalloc
import zipfile

import numpy as np
import pytest
import torch

from superconext.config.files import read_config
from superconext.config.parameters import resolve
from superconext.core.errors import ConfigError, DataError, RunError, VectorsError
from superconext.data.parsers import read_tar, read_zip
from superconext.data.reading import read_labelled
from superconext.objectives.base import Shape
from superconext.objectives.catalogue import objective_class
from superconext.runs.folder import load_model
from superconext.vectors.readers import read_torchtext_vocab, read_vectors
from tests.reliability.readers import make_run

OBJECTIVES = [
    *("superloss", "cross_entropy", "ce_ce", "triplet", "n_pair", "supcon", "ce_scl", "ce_cl"),
    *("lacon", "leam", "lsan", "dualcl", "dualcl_no_dual", "css_lm", "scf", "css_lm_st"),
]
EVIL = "import os; os.mkdir('evil')"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made") / "run"
    make_run(folder)
    return folder


@pytest.fixture
def run(made, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(made, tmp_path / "run")
    return tmp_path / "run"


def sign(run):
    """Put the hashes of the files as they are into the manifest, as a stranger would."""
    document = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    for name in document["files"]:
        document["files"][name] = hashlib.sha256((run / name).read_bytes()).hexdigest()
    (run / "manifest.json").write_text(json.dumps(document), encoding="utf-8")


def refused(run, most=32 << 20):
    """Loading the run is refused by one line that names it, in little memory and time."""
    sign(run)
    tracemalloc.start()
    started = time.process_time()
    try:
        with pytest.raises(RunError) as caught:
            load_model(run)
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()
    assert time.process_time() - started < 20
    assert str(run) in str(caught.value) and "\n" not in str(caught.value)
    return str(caught.value)


def edit(path, change):
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def set_parameter(run, name, value):
    lines = (run / "config.toml").read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if not line.startswith((f"{name} =", f"# {name} is"))]
    (run / "config.toml").write_text("\n".join([*lines, f"{name} = {value}"]), encoding="utf-8")


def reshape(path, name, shape, dtype=None):
    """Make a safetensors header lie about one tensor."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + size])
    header[name]["shape"] = shape
    header[name]["dtype"] = dtype or header[name]["dtype"]
    head = json.dumps(header).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + data[8 + size :])


# Run folders


def test_the_run_that_all_others_are_made_from_loads(run):
    sign(run)
    assert load_model(run).predict(["zwin bzaf"])[0] in ("pos", "neg")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hidden_size", 10**9), ("hidden_size", 8192), ("hidden_size", 3), ("layers", 8),
        ("vector_dimension", 10**9), ("members", 10**9),
        ("max_length", 10**12), ("temperature", "nan"), ("options", '"heads=99999999"'),
        ("objective", '"lacon"'), ("objective", '"os.system()"'), ("pooling", '"../x"'),
    ],
)  # fmt: skip
def test_a_configuration_that_asks_for_more_than_the_files_have(run, name, value):
    set_parameter(run, name, value)
    assert refused(run)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_every_objective_can_be_weighed_before_it_is_made(objective):
    with torch.device("meta"):
        made = objective_class(objective).build(resolve({"objective": objective}), Shape(3, 16, 8))
    assert all(part.is_meta for part in (*made.parameters(), *made.buffers()))


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d["ngrams"].update(longest=10**9),
        lambda d: d["ngrams"].update(shortest=-(10**9)),
        lambda d: d["reserve"].update(words=["x"] * 10**5),
        lambda d: d["reserve"].update(min_n="1"),
        lambda d: d["reserve"].update(min_n=True),
        lambda d: d["reserve"].update(name=[]),
        lambda d: d.update(classes=["a"] * 1000),
        lambda d: d.update(classes=["a"]),
        lambda d: d.update(classes=[["a"], ["b"]]),
        lambda d: d.update(classes="ab"),
        lambda d: d["vocabulary"].update(tokens=["<pad>", "<unk>", "x"], counts=[0, 0, 1]),
        lambda d: d.update(tokenizer={"normalizer": {"profile": "../x", "rules": []}}),
        lambda d: d.update(tokenizer=None),
        lambda d: d.clear(),
    ],
)
def test_a_vocabulary_that_does_not_fit(run, change):
    edit(run / "vocabulary.json", change)
    assert refused(run)


@pytest.mark.parametrize("name", ["vocabulary.json", "tfidf.json", "manifest.json"])
@pytest.mark.parametrize("content", [b"[" * 10**6, b'{"a":' * 10**5, b"1" * 10**5, b"\xff", b"NaN"])
def test_json_that_is_deep_or_none(run, name, content):
    (run / name).write_bytes(content)
    with pytest.raises(RunError, match="run"):
        if name != "manifest.json":
            sign(run)
        load_model(run)


def test_documents_are_bounded(run, monkeypatch):
    monkeypatch.setattr("superconext.runs.manifest.MOST_JSON", 100)
    assert "longer than" in refused(run)


@pytest.mark.parametrize(
    ("file", "name", "shape"),
    [
        ("encoder", "encoder.0.embedding.words", [10**12, 4]),
        ("encoder", "encoder.0.embedding.words", [2**32, 2**32]),
        ("vectors", "matrix", [10**15]),
        ("vectors", "bucket_count", [0]),
        ("probe", "coef", [8, 1]),
        ("probe", "mean", [1, 8]),
        ("tfidf", "idf", [1]),
    ],
)
def test_a_header_that_lies(run, file, name, shape):
    reshape(run / f"{file}.safetensors", name, shape)
    assert refused(run)


def test_a_header_of_a_length_that_is_not_there(run):
    path = run / "encoder.safetensors"
    path.write_bytes((2**63 - 1).to_bytes(8, "little") + path.read_bytes()[8:])
    assert refused(run)


def test_a_table_of_n_grams_larger_than_any_memory(run):
    from safetensors.numpy import load_file, save_file

    arrays = load_file(run / "vectors.safetensors")
    assert "bucket_rows" in arrays
    for count in (2**40, 2**62, -1, 3):
        save_file({**arrays, "bucket_count": np.array([count])}, run / "vectors.safetensors")
        assert "n-gram rows" in refused(run)


def test_members_that_are_not_there(run):
    from safetensors.torch import load_file, save_file

    tensors = load_file(run / "encoder.safetensors")
    for name in ("encoder.999999999.x", "encoder.-5.x", "encoder.x.y", "encoder"):
        save_file({**tensors, name: torch.zeros(1)}, run / "encoder.safetensors")
        assert refused(run)
    save_file({}, run / "encoder.safetensors")
    assert refused(run)


@pytest.mark.parametrize("name", ["config.toml", "vocabulary.json", "manifest.json"])
def test_links_out_of_the_folder_are_refused_and_links_within_are_not(run, tmp_path, name):
    sign(run)
    (run / "inside").mkdir()
    (run / name).rename(run / "inside" / name)
    (run / name).symlink_to(run / "inside" / name)
    load_model(run)
    (run / name).unlink()
    (run / "inside" / name).rename(tmp_path / name)
    for target in (tmp_path / name, f"../{name}"):
        (run / name).symlink_to(target)
        with pytest.raises(RunError, match=f"{name}: a link that leads out of the folder"):
            load_model(run)
        (run / name).unlink()


def test_a_pipe_or_a_folder_in_the_place_of_a_file_is_not_waited_for(run):
    sign(run)
    (run / "config.toml").unlink()
    os.mkfifo(run / "config.toml")
    with pytest.raises(RunError, match="missing"):
        load_model(run)


def test_names_in_the_manifest_lead_nowhere(run, tmp_path):
    (tmp_path / "secret").write_text("x", encoding="utf-8")
    sign(run)
    edit(run / "manifest.json", lambda d: d["files"].update({"../secret": "0", "/etc/x": "0"}))
    load_model(run)  # only files of the format are opened, whatever else is listed


# TOML


@pytest.mark.parametrize(
    "content",
    [
        b"a = " + b"[" * 50_000,
        b"a." * 20_000 + b"b = 1",
        b"a = " + b"9" * 10_000,
        b"[" + b"a." * 20_000 + b"a]",
        b"a = " + b"{a=" * 20_000,
        b"# x\n" * 200_000,
    ],
    ids=["arrays", "keys", "digits", "header", "tables", "long"],
)
def test_toml_that_is_deep_or_long(tmp_path, content):
    path = tmp_path / "config.toml"
    path.write_bytes(content)
    started = time.process_time()
    with pytest.raises(ConfigError, match=r"config\.toml"):
        read_config(path)
    assert time.process_time() - started < 5


# Pickles


class Evil:
    def __reduce__(self):
        return exec, (EVIL,)


def nested(depth):
    """Opcodes of a tuple that holds itself twice over, `depth` levels deep."""
    return b")" + b"2\x86" * depth


HOSTILE = {
    "code": pickle.dumps(Evil(), 2),
    "system": b"\x80\x02cos\nsystem\nX\x04\x00\x00\x00echoq\x00\x85R.",
    "getattr": b"\x80\x02c__builtin__\ngetattr\n.",
    "hash": b"\x80\x02}" + nested(60) + b"K\x01s.",
    "set": b"\x80\x02c__builtin__\nset\n]" + nested(60) + b"a\x85R.",
    "deep": b"\x80\x02})" + b"\x85" * 300_000 + b"K\x01s.",
    "long": b"\x80\x02X\xff\xff\xff\x7fabc.",
    "bytearray": b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b".",
    "frame": b"\x80\x04\x95" + struct.pack("<Q", 1 << 60) + b".",
    "memo": b"\x80\x02]r\xff\xff\xff\xff.",
    "extension": b"\x80\x02\x82\x01.",
    "stop": b"\x80\x02.",
}


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("wrapping", ["plain", "zip", "legacy"])
@pytest.mark.parametrize("reader", [read_vectors, read_torchtext_vocab])
def test_hostile_pickles_run_nothing_and_take_little(tmp_path, monkeypatch, kind, wrapping, reader):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "v.pt"
    content = HOSTILE[kind]
    if wrapping == "zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("v/data.pkl", content)
    elif wrapping == "legacy":
        legacy = io.BytesIO()
        torch.save([1], legacy, _use_new_zipfile_serialization=False)
        # Magic number and protocol come first, then the machine, then the object.
        head = legacy.getvalue()
        path.write_bytes(head[: head.index(b".", 60) + 1] + content)
    else:
        path.write_bytes(content)
    tracemalloc.start()
    started = time.process_time()
    try:
        with pytest.raises(VectorsError, match=r"v\.pt"):
            reader(path)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()
    assert time.process_time() - started < 10
    assert sorted(tmp_path.iterdir()) == [path]


def save_cache(path, size, strides, offset=0):
    """A torchtext cache whose tensor lies about its size over a storage of six numbers."""
    tensor = torch.arange(6, dtype=torch.float32)
    torch.save((["a", "b"], {"a": 0, "b": 1}, tensor, 3), path)
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}

    def number(value):
        return b"\x8a\x08" + struct.pack("<q", value)

    name = next(name for name in members if name.endswith("data.pkl"))
    program = members[name]
    # `offset, (6,), (1,)` of the tensor as it was saved.
    at = program.index(b"QK\x00K\x06\x85") + 1
    end = program.index(b"\x89", at)
    lie = number(offset) + b"".join(map(number, size)) + b"\x86"
    lie += b"".join(map(number, strides)) + b"\x86"
    members[name] = program[:at] + lie + program[end:]
    with zipfile.ZipFile(path, "w") as archive:
        for member, content in members.items():
            archive.writestr(member, content)


def test_a_tensor_that_is_not_within_its_storage(tmp_path):
    path = tmp_path / "v.pt"
    save_cache(path, (2, 3), (3, 1))
    np.testing.assert_array_equal(read_vectors(path).matrix, [[0, 1, 2], [3, 4, 5]])
    big = 1 << 36
    for size, strides, offset in (
        ((2, 3), (3, 1), 1), ((2, big), (0, 0), 0), ((2, 3), (big, 1), 0), ((2, big), (3, 1), 0),
        ((2, 3), (-3, 1), 3), ((2, 3), (3, 1), -1), ((2, 3), (3, 1), big),
    ):  # fmt: skip
        save_cache(path, size, strides, offset)
        with pytest.raises(VectorsError, match=r"v\.pt"):
            read_vectors(path)


# Archives and packed files


def member(archive, name, data=b"x", kind=tarfile.REGTYPE, link=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    info.size = len(data) if kind == tarfile.REGTYPE else 0
    archive.addfile(info, io.BytesIO(data) if info.size else None)


@pytest.mark.parametrize(
    ("name", "kind", "link"),
    [
        ("../x", tarfile.REGTYPE, ""), ("/etc/x", tarfile.REGTYPE, ""),
        ("a/../../x", tarfile.REGTYPE, ""), ("C:\\x", tarfile.REGTYPE, ""),
        ("a", tarfile.SYMTYPE, "/etc/passwd"), ("a", tarfile.LNKTYPE, "../x"),
        ("a", tarfile.FIFOTYPE, ""), ("a", tarfile.CHRTYPE, ""),
    ],
)  # fmt: skip
def test_archives_that_escape(tmp_path, name, kind, link):
    path = tmp_path / "set.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        member(archive, "fine.txt")
        member(archive, name, kind=kind, link=link)
    with pytest.raises(DataError, match="do not trust it"):
        list(read_tar(path, lambda name: True))
    if kind == tarfile.REGTYPE:
        with zipfile.ZipFile(tmp_path / "set.zip", "w") as archive:
            archive.writestr(name, b"x")
        with pytest.raises(DataError, match="leads out of the folder"):
            list(read_zip(tmp_path / "set.zip", lambda name: True))
    assert {path.name for path in tmp_path.iterdir()} <= {"set.tar.gz", "set.zip"}


def test_archives_that_explode(tmp_path):
    bomb = bytes(8 << 20)
    with zipfile.ZipFile(tmp_path / "set.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a", bomb)
    with tarfile.open(tmp_path / "set.tar.gz", "w:gz") as archive:
        member(archive, "a", bomb)
    tracemalloc.start()
    try:
        for read, name in ((read_zip, "set.zip"), (read_tar, "set.tar.gz")):
            with pytest.raises(DataError, match="unpacks to more than"):
                list(read(tmp_path / name, lambda name: True, limit=1 << 20))
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.long
def test_a_packed_labelled_file_that_explodes(tmp_path, monkeypatch):
    monkeypatch.setattr("superconext.data.lines.ALWAYS_UNPACKED", 1 << 20)
    path = tmp_path / "rows.tsv.gz"
    path.write_bytes(gzip.compress(b"label\ttext\n" + b"a\tb\n" * (8 << 20)))
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=r"rows\.tsv\.gz: \d+ bytes that unpack to more than"):
            read_labelled(path)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_a_long_row_of_vectors_asks_for_no_thousand_of_its_kind(tmp_path):
    path = tmp_path / "v.txt"
    path.write_bytes(b"a" + b" 0" * 200_000 + b"\nb" + b" 1" * 200_000 + b"\n")
    tracemalloc.start()
    try:
        assert read_vectors(path).dimension == 200_000
        assert tracemalloc.get_traced_memory()[1] < 200 << 20
    finally:
        tracemalloc.stop()
