"""Dispatch by content, archives, and bytes that nobody meant to read."""

import gzip
import struct
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from superconext.core.errors import VectorsError
from superconext.vectors.readers import read_torchtext_vocab, read_vectors
from superconext.vectors.subwords import SubwordTable
from superconext.vectors.table import WordVectors

TEXT = b"".join(b"w%d %.3f -0.5 1e-2\n" % (i, i / 7) for i in range(40))
BINARY = b"40 3\n" + b"".join(
    b"w%d " % i + np.array([i / 7, -0.5, 1e-2], "<f4").tobytes() for i in range(40)
)


def check(vectors):
    assert vectors.words == [f"w{i}" for i in range(40)]
    np.testing.assert_allclose(vectors.matrix[:, 0], np.arange(40) / 7, atol=1e-3)
    np.testing.assert_allclose(vectors.matrix[:, 1], -0.5)


def zipped(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


@pytest.mark.parametrize("data", [TEXT, b"40 3\n" + TEXT, BINARY])
@pytest.mark.parametrize("name", ["v.txt", "v.bin", "v.vec", "v", "v.kv"])
def test_content_and_not_the_name_decides(tmp_path, data, name):
    (tmp_path / name).write_bytes(data)
    check(read_vectors(str(tmp_path / name)))


@pytest.mark.parametrize("data", [TEXT, BINARY])
def test_gzip_and_zip(tmp_path, data):
    (tmp_path / "v.txt.gz").write_bytes(gzip.compress(data))
    check(read_vectors(tmp_path / "v.txt.gz"))
    path = zipped(tmp_path / "two.zip", {"a/v.txt": data, "__MACOSX/a/._v.txt": b"junk", "a/": b""})
    vectors = read_vectors(path)
    check(vectors)
    assert vectors.name == "two.zip"
    assert read_vectors(f"{path}:a/v.txt").name == "two.zip:a/v.txt"


def test_an_archive_of_several_files_asks_which(tmp_path):
    path = zipped(tmp_path / "glove.zip", {"a.50d.txt": TEXT, "a.100d.txt": TEXT})
    with pytest.raises(VectorsError, match=r"a\.50d\.txt, a\.100d\.txt"):
        read_vectors(path)
    check(read_vectors(f"{path}:a.50d.txt"))
    with pytest.raises(VectorsError, match="no member"):
        read_vectors(f"{path}:b.txt")
    with pytest.raises(VectorsError, match="0 files"):
        read_vectors(zipped(tmp_path / "empty.zip", {}))


def test_models_that_are_read_in_place_must_be_unpacked(tmp_path):
    for number, data in enumerate([struct.pack("<i", 793712314) * 30, b"\x80\x04N."]):
        (tmp_path / f"{number}.gz").write_bytes(gzip.compress(data))
        with pytest.raises(VectorsError, match="unpack"):
            read_vectors(tmp_path / f"{number}.gz")


def test_a_saved_folder(tmp_path):
    (tmp_path / "v.txt").write_bytes(TEXT)
    first = read_vectors(tmp_path / "v.txt")
    first.save(tmp_path / "folder")
    again = read_vectors(tmp_path / "folder")
    check(again)
    assert again.sha256 == first.sha256
    part = read_vectors(tmp_path / "folder", keep={"W3"})
    assert (part.words, part.sha256, part.name) == (["w3"], first.sha256, "v.txt")
    (tmp_path / "v.txt").write_bytes(TEXT + b"short 1\n")
    noted = read_vectors(tmp_path / "v.txt")
    noted.save(tmp_path / "folder")
    assert noted.notes and read_vectors(tmp_path / "folder", keep={"w3"}).notes == noted.notes
    (tmp_path / "other").mkdir()
    with pytest.raises(VectorsError, match="folder"):
        read_vectors(tmp_path / "other")


def test_some_rows_of_a_folder_keep_its_ngrams(tmp_path):
    subwords = SubwordTable(np.arange(20, dtype=np.float32).reshape(10, 2), 2, 3)
    whole = WordVectors(["zwin", "bzaf"], np.ones((2, 2), np.float32), subwords)
    whole.save(tmp_path / "folder")
    for some in ({"keep": {"bzaf"}}, {"limit": 1}):
        part = read_vectors(tmp_path / "folder", **some)
        assert len(part) == 1
        np.testing.assert_array_equal(part.lookup(["khayb"])[0], whole.lookup(["khayb"])[0])


def test_the_hash_is_the_files(tmp_path):
    import hashlib

    (tmp_path / "v.txt").write_bytes(TEXT)
    expected = hashlib.sha256(TEXT).hexdigest()
    assert read_vectors(tmp_path / "v.txt", limit=1).sha256 == expected


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"BZh91AY", "bzip2"),
        (b"\xfd7zXZ\0\0", "xz"),
        ("the 1 2".encode("utf-16"), "UTF-16"),
        (b"\x93NUMPY\x01\0", "numpy"),
        (b"%PDF-1.4\0\0\0\x01\x02", "unknown format"),
        (b"", "empty"),
    ],
)
def test_what_it_is_not_is_said(tmp_path, data, said):
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(VectorsError, match=said) as caught:
        read_vectors(tmp_path / "x")
    assert "expected" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_such_file(tmp_path):
    with pytest.raises(VectorsError, match="no such file"):
        read_vectors(tmp_path / "nowhere.txt")


def samples(folder):
    """A small file of each kind, with gensim's when it is there."""
    torch.save((["a"], {"a": 0}, torch.ones(1, 2), 2), folder / "new.pt")
    torch.save(
        (["a"], {"a": 0}, torch.ones(1, 2), 2),
        folder / "old.pt",
        _use_new_zipfile_serialization=False,
    )
    (folder / "v.txt").write_bytes(TEXT)
    (folder / "h.vec").write_bytes(b"40 3\n" + TEXT)
    (folder / "v.bin").write_bytes(BINARY)
    (folder / "v.gz").write_bytes(gzip.compress(TEXT))
    (folder / "b.gz").write_bytes(gzip.compress(BINARY))
    zipped(folder / "v.zip", {"v.txt": TEXT})
    header = struct.pack("<2i12id", 793712314, 12, 2, 5, 5, 1, 5, 1, 2, 2, 3, 2, 3, 100, 1e-4)
    words = struct.pack("<3i2q", 1, 1, 0, 9, -1) + b"ab\0" + struct.pack("<qb", 3, 0)
    (folder / "ft.bin").write_bytes(header + words + struct.pack("<?2q8f", False, 4, 2, *[0.5] * 8))
    try:
        from gensim.models import FastText, KeyedVectors
    except ImportError:
        pass
    else:
        keyed = KeyedVectors(2)
        keyed.add_vectors(["a", "b"], np.ones((2, 2), np.float32))
        keyed.save(str(folder / "w.kv"))
        model = FastText([["ab", "cd"]], vector_size=2, min_count=1, bucket=5, workers=1)
        model.wv.save(str(folder / "f.kv"))
    return [path.read_bytes() for path in sorted(folder.iterdir())]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    return Corpus(tmp_path_factory.mktemp("samples"))


class Corpus:
    """The samples and a place for a changed one; its name is short in a failing example."""

    def __init__(self, folder):
        self.files = samples(folder)
        self.path = folder.parent / f"{folder.name}-changed"


def read_anyhow(path, data):
    """Either a table or the project's own error, and that on one line."""
    path.write_bytes(data)
    for reader in (read_vectors, lambda p: read_vectors(p, keep={"a"}), read_torchtext_vocab):
        try:
            result = reader(path)
        except VectorsError as error:
            assert "\n" not in str(error)
        else:
            assert isinstance(result, WordVectors | list)
            if isinstance(result, WordVectors):
                assert np.isfinite(result.matrix).all()


FUZZ = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def test_every_sample_is_sound(corpus):
    for data in corpus.files:
        corpus.path.write_bytes(data)
        read_vectors(corpus.path)


@FUZZ
@given(data=st.data())
def test_truncated_files(corpus, data):
    whole = data.draw(st.sampled_from(corpus.files))
    read_anyhow(corpus.path, whole[: data.draw(st.integers(0, len(whole)))])


@FUZZ
@given(data=st.data())
def test_changed_bytes(corpus, data):
    whole = bytearray(data.draw(st.sampled_from(corpus.files)))
    for _ in range(data.draw(st.integers(1, 6))):
        # Most fields that steer a reader stand near the front.
        top = data.draw(st.sampled_from([min(120, len(whole)), len(whole)]))
        whole[data.draw(st.integers(0, top - 1))] = data.draw(st.integers(0, 255))
    read_anyhow(corpus.path, bytes(whole))


@FUZZ
@given(
    st.sampled_from(
        [b"", b"\x80\x04", b"\x80\x02", b"PK\x03\x04", b"\x1f\x8b", b"3 2\n", b"\xba\x16O/"]
    ),
    st.binary(max_size=300),
)
def test_random_bytes(corpus, front, rest):
    read_anyhow(corpus.path, front + rest)
