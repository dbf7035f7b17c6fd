"""The HTTP service: equal answers to `predict`, limits, and nobody's answer lost."""

import asyncio
import http.client
import importlib.util
import json
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from superconext.export.server import Limits, Refusal, Service, Worker, app_of

HAS_EXTRA = all(importlib.util.find_spec(name) for name in ("starlette", "uvicorn"))
needs_extra = pytest.mark.skipif(not HAS_EXTRA, reason="needs the serve extra")


class Lengths:
    """Probabilities that tell a text's length; `door` holds answers back while it is shut."""

    classes = ("short", "long")

    def __init__(self):
        self.door = threading.Event()
        self.door.set()
        self.calls = []

    def probabilities(self, texts):
        self.door.wait(20)
        self.calls.append(len(texts))
        if "fail" in texts:
            raise ValueError("secret " + texts[0])
        share = np.array([min(len(text), 100) / 100 for text in texts]).reshape(-1, 1)
        return np.hstack([1 - share, share])


def test_what_waits_is_answered_together_and_a_failure_is_its_own():
    model = Lengths()

    async def ask():
        worker = Worker(model)
        model.door.clear()
        texts = [["a"], ["ab", "abc"], ["fail"], ["abcd"], []]
        task = asyncio.create_task(worker.run())
        asked = [asyncio.create_task(worker.probabilities(one)) for one in texts]
        await asyncio.sleep(0.05)
        asked[1].cancel()
        model.door.set()
        answers = await asyncio.gather(*asked, return_exceptions=True)
        task.cancel()
        return answers

    first, gone, failed, second, nothing = asyncio.run(ask())
    assert isinstance(gone, asyncio.CancelledError) and isinstance(failed, ValueError)
    assert first.tolist() == [[0.99, 0.01]] and second.tolist() == [[0.96, 0.04]]
    assert nothing.shape == (0, 2)
    assert model.calls[0] == 5 and len(model.calls) == 6, "together, then one by one"


def test_requests_that_wait_are_not_all_one_call_of_the_model():
    model = Lengths()

    async def ask():
        worker = Worker(model)
        asked = [asyncio.create_task(worker.probabilities(["a"] * 200)) for _ in range(4)]
        await asyncio.sleep(0)
        task = asyncio.create_task(worker.run())
        answers = await asyncio.gather(*asked)
        task.cancel()
        return answers

    assert [len(one) for one in asyncio.run(ask())] == [200] * 4
    assert model.calls == [400, 400], "no more join once there are 256 texts"


def test_a_model_that_leaves_out_a_text_answers_nobody():
    class Forgetful(Lengths):
        def probabilities(self, texts):
            return super().probabilities(texts)[1:]

    async def ask():
        worker = Worker(Forgetful())
        task = asyncio.create_task(worker.run())
        asked = [worker.probabilities(["a"] * count) for count in (2, 3)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        task.cancel()
        return answers

    found = [str(error) for error in asyncio.run(ask())]
    assert found == ["1 answers for 2 texts", "2 answers for 3 texts"]


def test_blank_texts_are_answered_without_the_model_and_counted():
    service = Service(Lengths(), Limits())
    answer = asyncio.run(service._answer(["", " \t"]))
    assert answer["labels"] == answer["probabilities"] == [None, None]
    assert service.texts == 2


def test_what_is_no_list_of_texts_is_refused():
    service = Service(Lengths(), Limits(texts=3, characters=10))
    assert service._texts('{"texts": ["a", "", "زوين"]}'.encode()) == ["a", "", "زوين"]
    for body, status in (
        (b"", 400), (b"{", 400), (b"\xff", 400), (b"[" * 100_000, 400), (b"[]", 400),
        (b'{"text": ["a"]}', 400), (b'{"texts": "a"}', 400), (b'{"texts": [1]}', 400),
        (b'{"texts": ["a"], "proba": 1}', 400), (b'{"texts": ["a", "b", "c", "d"]}', 413),
        (b'{"texts": ["aaaaaaaaaaa"]}', 413),
    ):  # fmt: skip
        with pytest.raises(Refusal) as refused:
            service._texts(body)
        assert refused.value.status == status and "\n" not in str(refused.value)
        assert ('the key "proba"' in str(refused.value)) == (b"proba" in body)
        assert ("texts that is not a list" in str(refused.value)) == (body == b'{"texts": "a"}')
    assert service._texts(b'\xef\xbb\xbf{"texts": ["a"]}') == ["a"]
    with pytest.raises(Refusal, match="a body that is not UTF-8"):
        service._texts('{"texts": ["très"]}'.encode("latin-1"))
    with pytest.raises(Refusal, match="no text at place 1 of texts"):
        service._texts(b'{"texts": ["a", null]}')


@pytest.fixture
def address():
    """Start services of a model in this process; gives a function that returns host and port."""
    import uvicorn

    servers = []

    def start(model, **limits):
        listening = socket.create_server(("127.0.0.1", 0))
        config = uvicorn.Config(app_of(model, Limits(**limits)), log_level="critical")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        servers.append((server, thread))
        return listening.getsockname()

    yield start
    for server, thread in servers:
        server.should_exit = True
        thread.join(20)


def post(place, body, path="/predict", method="POST"):
    """(status, JSON or text) of one request."""
    connection = http.client.HTTPConnection(*place, timeout=30)
    try:
        given = body if isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, path, given)
        answer = connection.getresponse()
        said = answer.read().decode()
        is_json = answer.headers["content-type"] == "application/json"
        return answer.status, json.loads(said) if is_json else said
    finally:
        connection.close()


def texts_of(*texts):
    return {"texts": list(texts)}


@needs_extra
def test_errors_have_one_line_and_leave_the_next_request_alone(address, capsys):
    place = address(Lengths(), body=2000, texts=5, characters=50)
    for body, status in (
        (b"{", 400), ({"text": "a"}, 400), (texts_of(*"abcdef"), 413), (texts_of("x" * 51), 413),
        (b"x" * 2001, 413), (b" " * 400_000, 413), (texts_of("fail"), 500),
    ):  # fmt: skip
        found, said = post(place, body)
        assert found == status and list(said) == ["error"] and "\n" not in said["error"]
        assert "secret" not in said["error"]
        assert post(place, texts_of("y" * 50))[0] == 200
    assert post(place, texts_of("\ud800" * 40, "\t")) == (
        200,
        {
            "classes": ["short", "long"],
            "labels": ["short", None],
            "probabilities": [[0.6, 0.4], None],
        },
    )
    assert post(place, texts_of())[1]["labels"] == []
    assert post(place, texts_of("a"), "/predict/")[0] == 404
    assert post(place, b"", "/nowhere")[0] == 404 and post(place, b"", method="GET")[0] == 405
    status, said = post(place, b"", "/health", "GET")
    assert (status, said["status"], said["classes"]) == (200, "ok", ["short", "long"])
    metrics = post(place, b"", "/metrics", "GET")[1]
    assert 'superconext_requests_total{status="413"} 4' in metrics
    assert 'superconext_requests_total{status="500"} 1' in metrics
    assert "superconext_requests_waiting 0" in metrics
    counts = [line for line in metrics.splitlines() if not line.startswith("#")]
    assert all(float(line.split()[-1]) >= 0 for line in counts)
    assert capsys.readouterr().err == "error: ValueError while answering\n", "and no text"


@needs_extra
def test_the_histogram_counts_requests_by_the_seconds_that_they_took(address):
    class SlowAtFirst(Lengths):
        def probabilities(self, texts):
            time.sleep(0 if self.calls else 0.12)
            return super().probabilities(texts)

    place = address(SlowAtFirst())
    assert [post(place, texts_of("a", "b"))[0] for _ in range(3)] == [200] * 3
    lines = post(place, b"", "/metrics", "GET")[1].splitlines()
    found = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    name = "superconext_request_seconds"
    buckets = [int(count) for line, count in found.items() if line.startswith(f"{name}_bucket")]
    assert buckets == sorted(buckets) and buckets[-2:] == [3, 3] and len(buckets) == 12
    assert int(found[name + '_bucket{le="0.1"}']) <= 2, "the first took longer"
    assert int(found[f"{name}_count"]) == 3 and float(found[f"{name}_sum"]) > 0.1
    assert found["superconext_texts_total"] == "6"


def headers(place, method, path, body=None):
    """Status and headers of the answer to one request."""
    connection = http.client.HTTPConnection(*place, timeout=30)
    try:
        connection.request(method, path, body)
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers
    finally:
        connection.close()


@needs_extra
def test_a_refusal_says_what_a_client_may_do(address):
    place = address(Lengths(), waiting=0, body=1 << 20)
    status, given = headers(place, "POST", "/predict", b'{"texts": ["a"]}')
    assert (status, given["retry-after"]) == (429, "1")
    assert headers(place, "DELETE", "/predict")[1]["allow"] == "POST"
    # A body that is not much too long is read, else its client would see no answer.
    status, given = headers(place, "POST", "/predict", b" " * (8 << 20))
    assert (status, given["connection"]) == (413, "close")


@needs_extra
def test_a_body_without_an_end_is_refused_once_it_is_much_too_long(address):
    place = address(Lengths(), body=1000, seconds=2)
    with socket.create_connection(place, timeout=20) as sending:
        sending.sendall(b"POST /predict HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        sending.sendall(b"3e8\r\n" + b" " * 1000 + b"\r\n")
        sending.sendall((b"3e8\r\n" + b" " * 1000 + b"\r\n") * 16)
        assert sending.recv(1000).startswith(b"HTTP/1.1 413 ")


@needs_extra
def test_a_slow_client_and_one_that_goes_keep_nobody_waiting(address):
    place = address(Lengths(), seconds=0.5)
    slow = socket.create_connection(place)
    slow.sendall(b'POST /predict HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"te')
    gone = socket.create_connection(place)
    gone.sendall(b'POST /predict HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"te')
    gone.close()
    started = time.perf_counter()
    assert post(place, texts_of("a"))[0] == 200
    assert time.perf_counter() - started < 5
    slow.settimeout(20)
    assert slow.recv(1000).startswith(b"HTTP/1.1 408 ")
    slow.close()
    assert post(place, texts_of("a"))[0] == 200


@needs_extra
def test_too_many_at_once_are_refused_and_the_others_answered(address):
    model = Lengths()
    place = address(model, waiting=3)
    model.door.clear()
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(post, place, texts_of("a" * k)) for k in (1, 2, 3)]
        until = time.perf_counter() + 20
        while "waiting 3" not in post(place, b"", "/metrics", "GET")[1]:
            assert time.perf_counter() < until
            time.sleep(0.02)
        status, said = post(place, texts_of("a"))
        assert status == 429 and "waiting" in said["error"]
        assert post(place, b"", "/health", "GET")[0] == 200
        model.door.set()
        found = [one.result() for one in asked]
    assert [status for status, _ in found] == [200, 200, 200]
    shares = [round(said["probabilities"][0][1], 6) for _, said in found]
    assert shares == [0.01, 0.02, 0.03], "each has its own answer"


IDLE = """
import numpy as np
from superconext.export.server import Limits, run_server

class Alike:
    classes = ["a", "b"]
    def probabilities(self, texts):
        return np.full((len(texts), 2), 0.5)

run_server(Alike(), port=0, limits=Limits(connections=3, seconds=2.0))
"""


@needs_extra
def test_connections_that_send_nothing_are_closed_and_lock_nobody_out():
    words = [sys.executable, "-c", IDLE]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            place = "127.0.0.1", int(process.stderr.readline().split(":")[-1].split("/")[0])
            idle = [socket.create_connection(place) for _ in range(2)]
            assert post(place, texts_of("a"))[0] == 200, "three are not too many"
            idle.append(socket.create_connection(place))
            idle[0].sendall(b"POST /predict HT")
            status, said = post(place, texts_of("a"))
            assert status == 503 and "at most 3: send it later" in said["error"]
            for one in idle:
                one.settimeout(20)
                assert one.recv(10) == b"", "it is closed"
            assert post(place, texts_of("a"))[0] == 200
            # Nor does the start of a second request keep a connection open.
            kept = http.client.HTTPConnection(*place, timeout=20)
            for _ in range(2):
                kept.request("GET", "/health")
                assert kept.getresponse().read().startswith(b'{"status": "ok"')
                time.sleep(2.2)
            kept.sock.sendall(b"GET /health HT")
            assert kept.sock.recv(10) == b""
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0 and process.stderr.read() == "stopped\n"
        finally:
            process.kill()
