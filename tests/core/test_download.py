"""The downloader itself; what it does on a network stands in the tests of its two callers."""

from __future__ import annotations

import hashlib
import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from superconext.core import download
from superconext.core.download import Downloader, PublicFile, _Part
from superconext.core.errors import DataError, VectorsError

FILE = PublicFile("https://example.invalid/a%20b.txt", hashlib.md5(b"whole").hexdigest())


@pytest.fixture
def downloader(tmp_path):
    return Downloader(tmp_path / "sha256.json", DataError, pause=lambda seconds: None)


def test_the_address_of_a_mirror():
    assert FILE.name == "a b.txt"
    assert FILE.address(None, DataError) == FILE.url
    assert FILE.address("http://here/x/", DataError) == "http://here/x/a%20b.txt"
    for base in ("file:///etc", "ftp://here", "here", ""):
        with pytest.raises(VectorsError, match="expected an address of http"):
            FILE.address(base, VectorsError)


def test_two_at_a_time_are_refused_and_disturb_nothing(downloader, tmp_path):
    path = tmp_path / "a b.txt"
    first = _Part(path, DataError)
    first.write(b"half")
    with pytest.raises(DataError, match=r"another process is downloading .* wait"):
        downloader.fetch(FILE, path, "a b.txt", url=FILE.url, advice="")
    assert first.path.read_bytes() == b"half"
    first.write(b" whole")
    first.place()
    first.close()
    assert path.read_bytes() == b"half whole"


def test_who_waited_for_a_part_that_was_placed_takes_a_new_one(tmp_path, monkeypatch):
    path = tmp_path / "words"
    first = _Part(path, DataError)
    first.write(b"whole")
    real, tries = download.try_lock, []

    def placed_meanwhile(handle):
        tries.append(handle)
        if len(tries) == 1:
            first.place()
            first.close()
        return real(handle)

    monkeypatch.setattr(download, "try_lock", placed_meanwhile)
    second = _Part(path, DataError)
    second.clear()
    assert len(tries) == 2 and path.read_bytes() == b"whole"
    second.close()
    assert list(tmp_path.iterdir()) == [path]


def test_a_damaged_file_is_replaced_only_where_that_is_asked_for(downloader, tmp_path, monkeypatch):
    path = tmp_path / "words"
    path.write_bytes(b"damaged")

    def transfer(url, part, *_):
        part.write(b"whole")

    monkeypatch.setattr(downloader, "_transfer", transfer)
    settings = {"url": FILE.url, "advice": ""}
    with pytest.raises(DataError, match="found MD5"):
        downloader.fetch(FILE, path, "words", **settings)
    assert path.read_bytes() == b"damaged"
    assert downloader.fetch(FILE, path, "words", **settings, replace_damaged=True).downloaded
    assert path.read_bytes() == b"whole"
    assert not downloader.fetch(FILE, path, "words", **settings).downloaded


def test_a_damaged_ledger_is_told_and_nothing_is_removed(downloader, tmp_path):
    path = tmp_path / "words"
    path.write_bytes(b"whole")
    downloader.ledger.write_text("[]")
    unhashed = PublicFile(FILE.url)
    with pytest.raises(DataError, match="not the record of downloads"):
        downloader.fetch(unhashed, path, "w", url=FILE.url, advice="", replace_damaged=True)
    assert path.read_bytes() == b"whole"


def test_hashes_recorded_at_the_same_time_are_all_kept(downloader, monkeypatch):
    names = [f"file {number}" for number in range(6)]
    real = download.write_json

    def slow(path, value):
        time.sleep(0.02)
        real(path, value)

    monkeypatch.setattr(download, "write_json", slow)
    with ThreadPoolExecutor(len(names)) as pool:
        list(pool.map(downloader.record, names, names))
    assert json.loads(downloader.ledger.read_text()) == {name: name for name in names}
    assert [path.name for path in downloader.ledger.parent.iterdir()] == ["sha256.json"]
