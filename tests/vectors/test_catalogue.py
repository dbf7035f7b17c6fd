"""Downloads against a server on this machine: whole, broken, resumed, changed, refused."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

import pytest

from superconext.core import download
from superconext.core.download import PublicFile
from superconext.core.errors import VectorsError
from superconext.vectors import catalogue
from superconext.vectors.catalogue import PublicVectors, fetch
from superconext.vectors.readers import read_vectors

ROWS = b"".join(b"word%d %.5f %.5f 0.5\n" % (i, i / 7, -i / 3) for i in range(9000))
PACKED = gzip.compress(ROWS, mtime=0)
MD5 = hashlib.md5(PACKED).hexdigest()
HALF = len(PACKED) // 2


class Server:
    """Answers each request with the next of `answers`, the last one again and again.

    An answer is a function of the handler. `asked` holds the Range of each request.
    """

    def __init__(self):
        self.answers, self.asked = [], []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                outer.asked.append(self.headers["Range"])
                answer = outer.answers[min(len(outer.asked), len(outer.answers)) - 1]
                answer(self)

            def log_message(self, *_):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    made = Server()
    yield made
    made.http.shutdown()
    made.http.server_close()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SUPERCONEXT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def send(code, headers, body):
    def answer(handler):
        handler.send_response(code)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def whole(body=PACKED, tag='"v1"'):
    return send(200, {"Content-Length": str(len(body)), **({"ETag": tag} if tag else {})}, body)


def cut(body=PACKED, at=HALF, tag='"v1"'):
    """Promises all and hangs up on the way."""
    return send(
        200, {"Content-Length": str(len(body)), **({"ETag": tag} if tag else {})}, body[:at]
    )


def ranged(body=PACKED, tag='"v1"', stop=None):
    """As RFC 9110 has it: the rest if the file is still the one of If-Range, else all of it."""

    def answer(handler):
        span = re.fullmatch(r"bytes=(\d+)-", handler.headers["Range"] or "")
        if span is None or handler.headers["If-Range"] != tag:
            whole(body, tag)(handler)
            return
        start = int(span[1])
        headers = {
            "Content-Length": str(len(body) - start),
            "Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}",
            "ETag": tag,
        }
        send(206, headers, body[start:stop])(handler)

    return answer


def failing(code):
    return send(code, {"Content-Length": "0"}, b"")


def changed(entry, **facts):
    return dataclasses.replace(entry, file=dataclasses.replace(entry.file, **facts))


FILE = PublicFile("https://example.invalid/tiny.gz", MD5, len(PACKED), 2 * len(PACKED))
ENTRY = PublicVectors("tiny", "none", FILE)
UNHASHED = changed(ENTRY, size=None, md5=None)


@pytest.fixture
def get(server, tmp_path):
    """Fetch from the server; the waits it asked for are in `get.waits`."""

    def call(*answers, entry=ENTRY, out=tmp_path / "out" / "tiny.gz", **more):
        server.answers, server.asked[:] = list(answers), []
        call.waits.clear()
        return fetch(entry, out, url_base=server.url, pause=call.waits.append, **more)

    call.waits = []
    return call


def left(tmp_path):
    return sorted(path.name for path in (tmp_path / "out").iterdir())


def test_a_good_file(get, server, tmp_path):
    shares = []
    got = get(whole(), progress=shares.append)
    assert got.path.read_bytes() == PACKED
    assert got.downloaded and got.bytes == len(PACKED)
    assert got.sha256 == hashlib.sha256(PACKED).hexdigest()
    assert got.check == "MD5 as published"
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert left(tmp_path) == ["tiny.gz"] and get.waits == []
    assert len(read_vectors(got.path)) == 9000


def test_what_is_there_is_checked_and_not_fetched_again(get, server, tmp_path):
    get(whole())
    again = get(failing(500))
    assert not again.downloaded and server.asked == []
    (tmp_path / "out" / "tiny.gz").write_bytes(PACKED[:-1] + b"!")
    with pytest.raises(VectorsError, match=f"expected {MD5} as published"):
        get(whole())
    assert server.asked == []


def test_the_place(get, tmp_path, cache):
    assert get(whole(), out=None).path == cache / "downloads" / "tiny.gz"
    (tmp_path / "folder").mkdir()
    assert get(whole(), out=tmp_path / "folder").path == tmp_path / "folder" / "tiny.gz"
    assert get(whole(), out=f"{tmp_path}/new/").path == tmp_path / "new" / "tiny.gz"
    assert get(whole(), out=tmp_path / "other").path == tmp_path / "other"


@pytest.mark.parametrize("tag", ['"v1"', None, 'W/"v1"'])
def test_a_line_that_breaks_half_way(get, server, tmp_path, tag):
    said = []
    got = get(cut(tag=tag), ranged(tag=tag), say=said.append)
    assert got.path.read_bytes() == PACKED
    # Only a strong tag says that the rest belongs to the piece that is there.
    assert server.asked == [None, f"bytes={HALF}-" if tag == '"v1"' else None]
    assert get.waits == [1.0] and "trying again" in said[1]
    assert left(tmp_path) == ["tiny.gz"]


def test_a_line_that_breaks_often_but_brings_something_each_time(get, server):
    stops = [HALF + step * 500 for step in range(1, 9)]
    got = get(cut(), *(ranged(stop=stop) for stop in stops), ranged())
    assert got.path.read_bytes() == PACKED
    assert set(get.waits) == {1.0} and len(server.asked) == 10


def test_a_file_that_never_comes_whole_is_kept_for_the_next_call(get, server, tmp_path):
    with pytest.raises(VectorsError, match=rf"ended after {HALF} of {len(PACKED)} bytes"):
        get(cut(), ranged(stop=HALF))
    assert get.waits == [1.0, 2.0, 4.0, 8.0, 16.0]
    assert left(tmp_path) == ["tiny.gz.part", "tiny.gz.part.json"]
    assert get(ranged()).path.read_bytes() == PACKED
    assert server.asked == [f"bytes={HALF}-"]
    assert left(tmp_path) == ["tiny.gz"]


def test_a_server_that_always_stops_at_the_same_byte(get, server, tmp_path):
    with pytest.raises(VectorsError, match="times in a row"):
        get(cut(tag=None))
    assert len(server.asked) < 10


def test_a_piece_of_an_earlier_version_is_not_joined_to_a_new_one(get, server):
    new = gzip.compress(ROWS[: len(ROWS) // 2], mtime=0)
    with pytest.raises(VectorsError, match="in a row"):
        get(cut(at=500), ranged(stop=500), entry=UNHASHED)
    got = get(ranged(new, '"v2"'), entry=UNHASHED)
    assert got.path.read_bytes() == new
    assert server.asked == ["bytes=500-"]


def test_a_server_that_does_not_heed_the_version_asked_for(get, server):
    new = bytes(reversed(PACKED))
    headers = {"Content-Range": f"bytes {HALF}-{len(new) - 1}/{len(new)}", "ETag": '"v2"'}
    other = send(206, headers | {"Content-Length": str(len(new) - HALF)}, new[HALF:])
    got = get(cut(), other, whole(), entry=UNHASHED)
    assert got.path.read_bytes() == PACKED and server.asked[-1] is None


def test_a_redirection_to_no_address(get):
    with pytest.raises(VectorsError, match="leads to no address"):
        get(send(302, {"Location": "http://[", "Content-Length": "0"}, b""))


def test_a_server_without_ranges(get, server):
    got = get(cut(), whole())
    assert got.path.read_bytes() == PACKED and server.asked == [None, f"bytes={HALF}-"]


def test_a_server_that_sends_the_wrong_piece(get, server):
    headers = {"Content-Range": f"bytes 0-{HALF}/{len(PACKED)}", "Content-Length": "9"}
    got = get(cut(), send(206, headers, b"x" * 9), ranged())
    assert got.path.read_bytes() == PACKED and server.asked[-1] is None


def test_a_range_that_is_refused(get, server):
    got = get(cut(), failing(416), ranged())
    assert got.path.read_bytes() == PACKED
    assert server.asked == [None, f"bytes={HALF}-", None]


@pytest.mark.parametrize("code", [500, 502, 503, 429])
def test_a_server_that_is_out_of_order_for_a_moment(get, server, code):
    assert get(failing(code), failing(code), whole()).downloaded
    assert get.waits == [2.0, 4.0]
    with pytest.raises(VectorsError, match=f"answers {code} .*in a row") as caught:
        get(failing(code), out=None)
    assert len(server.asked) == download._ATTEMPTS and "\n" not in str(caught.value)


@pytest.mark.parametrize("code", [403, 404, 410])
def test_a_file_that_is_not_there(get, server, tmp_path, code):
    with pytest.raises(VectorsError, match=f"answers {code} ") as caught:
        get(failing(code))
    assert str(tmp_path / "out" / "tiny.gz") in str(caught.value)
    assert server.asked == [None] and left(tmp_path) == []


def test_another_hash(get, server, tmp_path):
    other = gzip.compress(ROWS[:-1], mtime=0)
    with pytest.raises(VectorsError, match=f"found MD5 .* expected {MD5}"):
        get(whole(other))
    assert left(tmp_path) == []
    assert get(whole()).downloaded


def test_a_body_of_unknown_length_that_is_cut(get, tmp_path):
    with pytest.raises(VectorsError, match="MD5"):
        get(send(200, {}, PACKED[:HALF]))
    with pytest.raises(VectorsError, match="not a whole gzip file"):
        get(send(200, {}, PACKED[:HALF]), entry=UNHASHED)
    assert left(tmp_path) == []


@pytest.mark.parametrize("body", [b"<html>please log in</html>", b""])
def test_the_page_of_a_proxy_is_no_file_of_vectors(get, tmp_path, body):
    with pytest.raises(VectorsError, match="not a whole gzip file"):
        get(whole(body), entry=UNHASHED)
    assert left(tmp_path) == []
    assert get(whole(), entry=UNHASHED).downloaded


def test_too_many_bytes(get, server, tmp_path):
    entry = changed(ENTRY, limit=1000)
    with pytest.raises(VectorsError, match=f"sends {len(PACKED)} bytes; expected at most 1000"):
        get(whole(), entry=entry)
    assert left(tmp_path) == []
    with pytest.raises(VectorsError, match="sends more than 1000 bytes"):
        get(send(200, {}, PACKED), entry=entry)
    assert left(tmp_path) == []


def test_a_disk_without_room(get, tmp_path, monkeypatch):
    monkeypatch.setattr(download.shutil, "disk_usage", lambda _: SimpleNamespace(free=5))
    with pytest.raises(VectorsError, match=f"5 bytes are free .* needs {len(PACKED)}"):
        get(whole())
    assert left(tmp_path) == []


def test_no_hash_published_so_the_first_one_is_kept(get, tmp_path, cache):
    got = get(whole(), entry=UNHASHED)
    assert "recorded" in got.check
    record = json.loads((cache / "downloads" / "sha256.json").read_text())
    assert record == {"tiny.gz": hashlib.sha256(PACKED).hexdigest()}
    assert get(failing(500), entry=UNHASHED).check == "SHA-256 as at the first download"
    changed = gzip.compress(ROWS[:-1], mtime=0)
    elsewhere = tmp_path / "elsewhere"
    with pytest.raises(VectorsError, match="first download") as caught:
        get(whole(changed), entry=UNHASHED, out=elsewhere)
    assert not elsewhere.exists() and "sha256.json" in str(caught.value)
    got.path.write_bytes(changed)
    with pytest.raises(VectorsError, match="first download"):
        get(whole(), entry=UNHASHED)
    (cache / "downloads" / "sha256.json").write_text("[]")
    with pytest.raises(VectorsError, match="record of downloads"):
        get(whole(), entry=UNHASHED, out=elsewhere)


BINARY = PublicVectors(
    "tiny.bin",
    "none",
    PublicFile("https://example.invalid/tiny.bin.gz", limit=1 << 20),
    unpack=True,
)


def test_a_file_that_is_read_in_place_is_unpacked(get, server, tmp_path):
    got = get(whole(), entry=BINARY, out=f"{tmp_path}/out/")
    assert got.path == tmp_path / "out" / "tiny.bin" and got.path.read_bytes() == ROWS
    assert got.sha256 == hashlib.sha256(ROWS).hexdigest() and got.bytes == len(ROWS)
    assert left(tmp_path) == ["tiny.bin"]
    again = get(failing(500), entry=BINARY, out=got.path)
    assert not again.downloaded and again.check == "SHA-256 as at the first download"
    got.path.write_bytes(ROWS[:-1])
    with pytest.raises(VectorsError, match="first download"):
        get(whole(), entry=BINARY, out=got.path)


def test_an_archive_that_is_damaged_or_unpacks_without_end(get, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "tiny.bin.gz").write_bytes(PACKED[:-2])
    with pytest.raises(VectorsError, match="not a whole gzip file"):
        get(whole(), entry=BINARY, out=f"{tmp_path}/out/")
    (tmp_path / "out" / "tiny.bin.gz").unlink()
    with pytest.raises(VectorsError, match="unpacks to more than"):
        get(whole(), entry=changed(BINARY, limit=len(PACKED)), out=f"{tmp_path}/out/")
    assert not (tmp_path / "out" / "tiny.bin").exists()


def test_a_file_put_there_by_hand(get, server, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "tiny.gz").write_bytes(PACKED)
    assert get(failing(500)).check == "MD5 as published"
    (tmp_path / "out" / "tiny.bin.gz").write_bytes(PACKED)
    got = get(failing(500), entry=BINARY, out=f"{tmp_path}/out/")
    assert not got.downloaded and got.path.read_bytes() == ROWS and server.asked == []
    # What the user put there stays.
    assert left(tmp_path) == ["tiny.bin", "tiny.bin.gz", "tiny.gz"]


def test_offline(tmp_path, monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    waits = []
    with pytest.raises(VectorsError) as caught:
        fetch(ENTRY, tmp_path / "out" / "tiny.gz", url_base=url, pause=waits.append)
    message = str(caught.value)
    assert f"cannot reach {url}/tiny.gz" in message and "refused" in message.lower()
    assert f"save it as {tmp_path / 'out' / 'tiny.gz'}" in message
    assert "\n" not in message and waits == [] and left(tmp_path) == []


def test_a_server_that_goes_away_half_way(get, server, tmp_path):
    """Once something has come, a line that is dead for a moment is waited for."""

    def last(handler):
        cut()(handler)
        server.http.socket.close()

    with pytest.raises(VectorsError, match=f"{download._ATTEMPTS} times in a row"):
        get(last)
    assert left(tmp_path) == ["tiny.gz.part", "tiny.gz.part.json"]


def test_redirects(get, server, tmp_path):
    def moved(to):
        return send(302, {"Location": to, "Content-Length": "0"}, b"")

    assert get(moved("/elsewhere"), whole()).path.read_bytes() == PACKED
    secret = tmp_path / "secret"
    secret.write_bytes(PACKED)
    for to in (f"file://{secret}", "ftp://127.0.0.1/tiny.gz", "data:,x"):
        with pytest.raises(VectorsError, match="edirect"):
            get(moved(to), out=tmp_path / "out" / "fresh.gz")
    assert left(tmp_path) == ["tiny.gz"]


def test_a_redirect_never_leaves_https():
    request = download.urllib.request.Request("https://example.invalid/a")
    handler = download._Redirects(VectorsError)
    with pytest.raises(VectorsError, match="redirected to http:"):
        handler.redirect_request(request, None, 302, "", {}, "http://example.invalid/b")
    followed = handler.redirect_request(request, None, 302, "", {}, "https://example.invalid/b")
    assert followed.full_url == "https://example.invalid/b"


@pytest.mark.parametrize("base", ["file:///tmp", "ftp://127.0.0.1", "folder", ""])
def test_only_addresses_of_the_web(base, tmp_path):
    with pytest.raises(VectorsError, match="expected an address of http"):
        fetch(ENTRY, tmp_path / "x", url_base=base)


def test_the_catalogue():
    for name, entry in catalogue.NAMED.items():
        assert catalogue.find(name) is entry
        assert entry.file.url.startswith("https://") and entry.file.name == f"{name}.gz"
        assert re.fullmatch("[0-9a-f]{32}", entry.file.md5) and entry.file.size < entry.file.limit
    assert len({entry.file.md5 for entry in catalogue.NAMED.values()}) == 8
    text, binary = catalogue.find("cc.ar.300.vec.gz"), catalogue.find("cc.arz.300.bin")
    assert (text.file.name, text.unpack, text.file.md5) == ("cc.ar.300.vec.gz", False, None)
    assert (binary.name, binary.unpack) == ("cc.arz.300.bin", True)
    assert binary.file.url.endswith("/cc.arz.300.bin.gz")
    for name, hint in (
        ("glove-twitter-20", "did you mean 'glove-twitter-200'"),
        ("cc.ary.300.vec", "no vectors of a language 'ary'"),
        ("../../x", "no known vectors"),
    ):
        with pytest.raises(VectorsError, match=hint):
            catalogue.find(name)
