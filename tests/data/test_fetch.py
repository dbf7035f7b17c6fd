"""Fetching from a server on this machine: checked, recorded, refused, offline, by hand."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType, SimpleNamespace

import pytest

from superconext.core.download import PublicFile
from superconext.core.errors import DataError
from superconext.data.fetch import CATALOGUE, PublicSet, fetch, with_split

TRAIN = b"".join(b"%d sentence number %d\n" % (i % 2, i) for i in range(40)) + b"1 \n"
TEST = b"0 bad\n1 good\n"
ENTRY = PublicSet(
    "tiny",
    "sentiment",
    "English",
    2,
    {"train": 40, "test": 2},
    "CC0",
    {
        "train": PublicFile("https://example.invalid/x/tiny.train"),
        "test": PublicFile(
            "https://example.invalid/x/tiny%20test", hashlib.md5(TEST).hexdigest(), len(TEST)
        ),
    },
    "label_first",
    labels={"0": "neg", "1": "pos"},
)
ALL = dataclasses.replace(ENTRY, rows={"all": 40}, files={"all": ENTRY.files["train"]})


@pytest.fixture
def server(monkeypatch):
    """`server.files` by path; a value may be a function of the handler. `server.asked`: paths."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    made = SimpleNamespace(files={"/tiny.train": TRAIN, "/tiny%20test": TEST}, asked=[])

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            made.asked.append(self.path)
            answer = made.files.get(self.path, b"")
            if callable(answer):
                return answer(self)
            self.send_response(200 if answer else 404)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.url = f"http://127.0.0.1:{http.server_port}"
    threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True).start()
    yield made
    http.shutdown()
    http.server_close()


@pytest.fixture
def get(server, tmp_path):
    def call(entry=ENTRY, **more):
        here = {"url_base": server.url, "pause": lambda seconds: None}
        return fetch(entry, tmp_path / "cache", **{**here, **more})

    return call


def kept(tmp_path):
    return sorted(path.name for path in (tmp_path / "cache" / "tiny").iterdir())


def test_a_good_set_records_where_it_came_from(get, server, tmp_path, capfd):
    said, shares = [], []
    got = get(say=said.append, progress=shares.append)
    assert list(got.parts["test"]) == [("neg", "bad"), ("pos", "good")]
    assert list(got.parts["train"])[:2] == [
        ("neg", "sentence number 0"),
        ("pos", "sentence number 1"),
    ]
    assert got.notes == ["train: 1 row without a text or a label left out"]
    digest = hashlib.sha256(TRAIN).hexdigest()
    assert got.sources[0] == {
        "url": f"{server.url}/tiny.train",
        "sha256": digest,
        "checked": "nothing: no hash is published; recorded for the next time",
    }
    assert got.sources[1]["checked"] == "MD5 as published"
    assert any(f"found SHA-256 {digest}, recorded" in line for line in said)
    assert json.loads((tmp_path / "cache" / "sha256.json").read_text()) == {
        "tiny/tiny.train": digest
    }
    assert kept(tmp_path) == ["tiny test", "tiny.train"]
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert capfd.readouterr() == ("", "")


def test_the_second_time_nothing_is_downloaded(get, server):
    get()
    server.asked.clear()
    again = get()
    assert server.asked == []
    assert again.sources[0]["checked"] == "SHA-256 as at the first download"


def test_a_file_that_changed_since_the_first_download(get, server, tmp_path):
    get()
    (tmp_path / "cache" / "tiny" / "tiny.train").unlink()
    server.files["/tiny.train"] = TRAIN + b"0 more\n"
    with pytest.raises(DataError, match=r"found SHA-256 .* expected .* as at the first download"):
        get()
    assert kept(tmp_path) == ["tiny test"]
    server.files["/tiny.train"] = TRAIN
    assert len(get().parts["train"]) == 40


def test_a_damaged_record(get, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "sha256.json").write_text("[]")
    with pytest.raises(DataError, match=r"not the record of downloads"):
        get()


def test_another_file_than_the_published_one(get, server, tmp_path):
    server.files["/tiny%20test"] = b"<html>log in to the network</html>"
    with pytest.raises(DataError, match=r"found MD5 .* expected .* proxy"):
        get()
    assert kept(tmp_path) == ["tiny.train"]
    server.files["/tiny%20test"] = TEST
    (tmp_path / "cache" / "tiny" / "tiny test").write_bytes(b"damaged")  # fetched anew
    assert len(get().parts["test"]) == 2


def test_other_counts_than_published_are_told(get):
    got = get(dataclasses.replace(ENTRY, rows={"train": 41, "test": 2}))
    assert "train: 40 rows, where 41 are published" in got.notes


@pytest.mark.parametrize("page", [b"1 <html> log in to the network\n", TRAIN[:600]])
def test_a_page_in_place_of_a_file_without_a_hash_is_not_kept(get, server, tmp_path, page):
    server.files["/tiny.train"] = page
    with pytest.raises(DataError, match=r"train has \d+ rows?, expected 40 as published.*again"):
        get()
    assert kept(tmp_path) == ["tiny test"]
    assert json.loads((tmp_path / "cache" / "sha256.json").read_text()) == {}
    server.files["/tiny.train"] = TRAIN
    assert len(get().parts["train"]) == 40


def test_a_file_that_cannot_be_parsed_is_downloaded_again(get, server, tmp_path):
    server.files["/tiny.train"] = b"\xff\xfe\x00" * 30
    with pytest.raises(DataError):
        get()
    server.files["/tiny.train"] = TRAIN
    assert len(get().parts["train"]) == 40


@pytest.mark.parametrize("length", [True, False])
def test_too_many_bytes(get, server, tmp_path, length):
    def endless(handler):
        handler.send_response(200)
        if length:
            handler.send_header("Content-Length", str(1 << 40))
        handler.end_headers()
        for _ in range(400):
            try:
                handler.wfile.write(bytes(1 << 16))
            except OSError:
                return

    server.files["/tiny.train"] = endless
    small = dataclasses.replace(ENTRY.files["train"], limit=1 << 20)
    entry = dataclasses.replace(ENTRY, files={"train": small})
    with pytest.raises(DataError, match=r"more than 1048576 bytes"):
        get(entry)
    assert kept(tmp_path) == []


def test_a_line_that_breaks(get, server, tmp_path):
    def cut(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(TRAIN)))
        handler.end_headers()
        handler.wfile.write(TRAIN[:100])

    server.files["/tiny.train"] = cut
    with pytest.raises(
        DataError, match=r"tiny.train: the connection broke .* run the command again"
    ):
        get()
    assert kept(tmp_path) == []


@pytest.mark.parametrize("code", [403, 404, 500])
def test_a_server_that_refuses(get, server, code):
    server.files["/tiny.train"] = lambda handler: handler.send_error(code)
    with pytest.raises(DataError, match=f"answers {code}"):
        get()


def test_offline_says_so_at_once(get):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(DataError, match=r"cannot reach http.*refused.*go online.*--from") as caught:
        get(url_base=f"http://127.0.0.1:{port}")
    assert len(str(caught.value)) < 300
    with pytest.raises(DataError, match=r"cannot reach http://superconext.invalid/tiny.train"):
        get(url_base="http://superconext.invalid")


def test_addresses_of_other_kinds(get):
    with pytest.raises(DataError, match=r"expected an address of http or https"):
        get(url_base="file:///etc")


def test_files_brought_by_hand(get, server, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "tiny.train").write_bytes(TRAIN)
    with pytest.raises(DataError, match=r"tiny test: no such file.*tiny%20test saved under"):
        get(source=tmp_path / "mine")
    (tmp_path / "mine" / "tiny test").write_bytes(TEST + b"!")
    with pytest.raises(DataError, match=r"found MD5"):
        get(source=tmp_path / "mine")
    (tmp_path / "mine" / "tiny test").write_bytes(TEST)
    assert len(get(source=tmp_path / "mine").parts["test"]) == 2
    assert server.asked == [] and not (tmp_path / "cache").exists()


def test_a_set_without_a_certain_address(get):
    with pytest.raises(
        DataError, match=r"amazon_full: no certain address is known; .*Google Drive"
    ):
        get(CATALOGUE["amazon_full"])


def test_a_set_at_hugging_face(monkeypatch, tmp_path):
    library = ModuleType("datasets")

    class Split(list):
        """A list that takes attributes."""

    records = Split([{"text": "a", "label": 1}, {"text": " ", "label": 0}])
    records.features = {"label": SimpleNamespace(names=["World", "Sports"])}
    library.load_dataset = lambda *_, **__: {"train": records, "test": records}
    library.disable_progress_bars = lambda: None
    monkeypatch.setitem(sys.modules, "datasets", library)
    got = fetch(CATALOGUE["ag_news"], tmp_path)
    assert list(got.parts["test"]) == [("Sports", "a")]
    assert got.sources[0]["url"] == "https://huggingface.co/datasets/fancyzhx/ag_news"
    assert "test: 1 row, where 7600 are published" in got.notes


def test_a_set_of_one_file_is_split(get):
    got = get(ALL)
    parts, made = with_split(ALL, got, seed=2)
    assert list(parts) == ["all", "train", "dev", "test"]
    assert [len(list(rows)) for rows in parts.values()] == [40, 32, 4, 4]
    assert made["split"]["seed"] == 2
    assert with_split(ALL, get(ALL), seed=2)[0] == parts
    whole = get()
    assert with_split(ENTRY, whole, seed=2) == (whole.parts, {"split": "as published"})
