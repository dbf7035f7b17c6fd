"""Archives: plain ones are read, those that escape, explode or lie are refused."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import zipfile

import pytest

from superconext.core.errors import DataError
from superconext.data.parsers import read_tar, read_zip

TEXTS = {"set/train/a.txt": b"zwin", "set/train/b.txt": "شكرا".encode(), "set/README": b"hello"}


def tar(path, members, mode="w:gz", **facts):
    with tarfile.open(path, mode) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for fact, value in facts.items():
                setattr(info, fact, value)
            archive.addfile(info, io.BytesIO(data))
    return path


def zipped(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def every(name):
    return True


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_a_plain_tar(tmp_path, mode):
    path = tar(tmp_path / "set.tar", TEXTS, mode)
    assert dict(read_tar(path, every)) == TEXTS
    assert [name for name, _ in read_tar(path, lambda n: n.endswith(".txt"))] == list(TEXTS)[:2]


def test_a_plain_zip(tmp_path):
    path = zipped(tmp_path / "set.zip", TEXTS)
    assert dict(read_zip(path, every)) == TEXTS
    assert dict(read_zip(path, "set/README".__eq__)) == {"set/README": b"hello"}


@pytest.mark.parametrize("name", ["../evil", "/etc/evil", "a/../../evil", "C:/evil", "..\\evil"])
def test_names_that_lead_out(tmp_path, name):
    members = {**TEXTS, name: b"x"}
    with pytest.raises(DataError, match=r"leads out of the folder"):
        list(read_tar(tar(tmp_path / "a.tar.gz", members), "set/README".__eq__))
    with pytest.raises(DataError, match=r"leads out of the folder"):
        list(read_zip(zipped(tmp_path / "a.zip", members), "set/README".__eq__))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.tar.gz", "a.zip"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_links_and_devices(tmp_path, kind):
    path = tar(tmp_path / "a.tar.gz", {"link": b""}, type=kind, linkname="/etc/passwd")
    with pytest.raises(DataError, match=r"'link' is a link or a device"):
        list(read_tar(path, every))
    info = zipfile.ZipInfo("link")
    info.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(DataError, match=r"'link' is a link or a device"):
        list(read_zip(tmp_path / "a.zip", every))


def test_what_explodes(tmp_path):
    bomb = {"a.txt": bytes(3_000_000), "b.txt": b"x"}
    for read, path in (
        (read_tar, tar(tmp_path / "a.tar.gz", bomb)),
        (read_zip, zipped(tmp_path / "a.zip", bomb)),
    ):
        assert path.stat().st_size < 10_000
        with pytest.raises(DataError, match=r"unpacks to more than 1000000 bytes"):
            list(read(path, "b.txt".__eq__, limit=1_000_000))
        assert dict(read(path, "b.txt".__eq__)) == {"b.txt": b"x"}


def test_too_many_files(tmp_path, monkeypatch):
    monkeypatch.setattr("superconext.data.parsers.MOST", 2)
    for read, path in (
        (read_tar, tar(tmp_path / "a.tar.gz", TEXTS)),
        (read_zip, zipped(tmp_path / "a.zip", TEXTS)),
    ):
        with pytest.raises(DataError, match=r"more than 2 files"):
            list(read(path, every))


def test_a_header_that_explodes(tmp_path, monkeypatch):
    """A name of 30 MB in a pax header is small when packed and no member at all."""
    monkeypatch.setattr("superconext.data.parsers._OVERHEAD", 1 << 20)
    path = tar(tmp_path / "a.tar.gz", {"x" * 30_000_000: b""})
    assert path.stat().st_size < 100_000
    with pytest.raises(DataError, match=r"unpacks to more than"):
        list(read_tar(path, every, limit=1 << 20))


def test_what_is_broken(tmp_path):
    whole = tar(tmp_path / "a.tar.gz", TEXTS).read_bytes()
    half = zipped(tmp_path / "b.zip", TEXTS).read_bytes()
    damaged = bytearray(half)
    damaged[40] ^= 255  # inside the packed bytes of the first member
    cases = [
        (read_tar, whole[: len(whole) // 2]),
        (read_tar, gzip.compress(b"<html>no archive</html>" * 100)),
        (read_tar, b"<html>no archive</html>" * 100),
        (read_zip, half[: len(half) // 2]),
        (read_zip, b"<html>no archive</html>"),
        (read_zip, bytes(damaged)),
    ]
    for read, data in cases:
        path = tmp_path / "broken"
        path.write_bytes(data)
        with pytest.raises(DataError, match=r"broken: (broken archive|.* not as long)"):
            list(read(path, every))
