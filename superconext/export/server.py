"""A model as an HTTP service: texts in, labels and probabilities out, JSON both ways.

    POST /predict  {"texts": ["...", ...]}
        200 {"classes": [...], "labels": [...], "probabilities": [[...], ...]}, in the texts' order;
            null for the label and the probabilities of a blank text
        4xx, 5xx {"error": "..."}
    GET /health    {"status": "ok", ...}
    GET /metrics   counters in Prometheus' text format

One thread answers; what waits meanwhile is answered together by its next call of the model. No text
is logged or kept. Needs Starlette and uvicorn, and of the package what an export brings along.
"""

from __future__ import annotations

import asyncio
import errno
import json
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar

import numpy as np

from superconext._version import __version__
from superconext.core.blank import is_blank
from superconext.core.errors import MissingExtraError

#: Upper edges in seconds of the histogram of answering times.
_EDGES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

#: Texts that the model is given at once, where requests wait.
_TOGETHER = 256

#: Of a body that is too long, so many times what is allowed is read all the same: a client that
#: still sends would not see the answer.
_DRAINED = 16

#: Headers of refusals. A body that was not read would be taken for the next request.
_HEADERS = {
    408: {"connection": "close"},
    413: {"connection": "close"},
    429: {"retry-after": "1"},
    503: {"connection": "close", "retry-after": "1"},
}

#: Seconds that requests under way have to end in after a signal to stop.
_GRACE = 30


@dataclass(frozen=True)
class Limits:
    """What is refused: of a request, bytes of its body (413), texts (413), characters of a text
    (413) and seconds to send the body in (408); requests that wait for an answer at once (429);
    more open connections (503). One that sends no request's head in as many seconds is closed."""

    body: int = 1 << 20
    texts: int = 1000
    characters: int = 10_000
    seconds: float = 10.0
    waiting: int = 64
    connections: int = 1000


class Refusal(Exception):
    """A request that gets no answer: HTTP status and one line that says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Worker:
    """Answers requests one batch after the other on a thread of its own."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._queue: asyncio.Queue[tuple[list[str], asyncio.Future[np.ndarray]]] = asyncio.Queue()
        self._thread = ThreadPoolExecutor(1, "answers")

    async def probabilities(self, texts: list[str]) -> np.ndarray:
        """Class probabilities `[N, C]`."""
        future: asyncio.Future[np.ndarray] = asyncio.get_running_loop().create_future()
        self._queue.put_nowait((texts, future))
        return await future

    async def run(self) -> None:
        """Answer what comes, until cancelled."""
        while True:
            batch = [await self._queue.get()]
            while not self._queue.empty() and sum(len(one) for one, _ in batch) < _TOGETHER:
                batch.append(self._queue.get_nowait())
            if not await self._answer(batch) and len(batch) > 1:
                # One request's failure is not the others'.
                for one in batch:
                    await self._answer([one])

    async def _answer(self, batch: Sequence[tuple[list[str], asyncio.Future[np.ndarray]]]) -> bool:
        """Whether all were answered; a single one that fails gets the error."""
        texts = list(chain.from_iterable(one for one, _ in batch))
        edges = np.cumsum([len(one) for one, _ in batch])
        call = asyncio.get_running_loop().run_in_executor
        try:
            shares = await call(self._thread, self._model.probabilities, texts)
            if len(shares) != edges[-1]:
                raise ValueError(f"{len(shares)} answers for {edges[-1]} texts")
        except Exception as error:
            if len(batch) == 1 and not batch[0][1].done():
                batch[0][1].set_exception(error)
            return False
        for (_, future), part in zip(batch, np.split(shares, edges[:-1]), strict=True):
            if not future.done():  # its client may have gone
                future.set_result(part)
        return True


class Service:
    """The three addresses.

    model: has `classes` and `probabilities(texts)`. limits: see `Limits`.
    """

    def __init__(self, model: Any, limits: Limits) -> None:
        self.classes: list[str] = list(model.classes)
        self.limits = limits
        self.worker = Worker(model)
        self.statuses: Counter[int] = Counter()
        self.texts = self.waiting = 0
        self.seconds, self.below = 0.0, [0] * len(_EDGES)

    async def predict(self, request: Any) -> Any:
        from starlette.requests import ClientDisconnect

        started, more = time.perf_counter(), dict[str, str]()
        try:
            texts = self._texts(await self._body(request))
            status, answer = 200, await self._answer(texts)
        except Refusal as refusal:
            status, answer = refusal.status, {"error": str(refusal)}
            more = _HEADERS.get(status, {})
        except ClientDisconnect:
            status, answer = 499, {"error": "the client has gone"}
        except Exception as error:  # its message may hold a text
            _say(f"error: {type(error).__name__} while answering")
            status, answer = 500, {"error": f"found {type(error).__name__} while answering"}
        self.statuses[status] += 1
        passed = time.perf_counter() - started
        self.seconds += passed
        for place, edge in enumerate(_EDGES):
            self.below[place] += passed <= edge
        return _json(answer, status, more)

    async def _body(self, request: Any) -> bytes:
        most = self.limits.body
        too_long = Refusal(413, f"found a body of more than {most} bytes; send fewer texts at once")
        size = request.headers.get("content-length", "0")
        if not size.isdecimal() or len(size) > 18 or int(size) > _DRAINED * most:
            raise too_long
        parts: list[bytes] = []
        read = 0
        try:
            async with asyncio.timeout(self.limits.seconds):
                async for part in request.stream():
                    read += len(part)
                    if read > _DRAINED * most:
                        raise too_long
                    if read <= most:
                        parts.append(part)
        except TimeoutError:
            raise Refusal(
                408, f"found no whole body after {self.limits.seconds:g} seconds; send it again"
            ) from None
        if read > most:
            raise too_long
        return b"".join(parts)

    def _texts(self, body: bytes) -> list[str]:
        try:
            given = json.loads(body.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise Refusal(
                400, "found a body that is not UTF-8; expected JSON in UTF-8, not compressed"
            ) from None
        except (ValueError, RecursionError):
            raise Refusal(400, 'found no JSON; expected {"texts": ["...", ...]}') from None
        texts = given.get("texts") if isinstance(given, dict) else None
        if not isinstance(texts, list) or len(given) > 1:
            more = [key for key in given if key != "texts"] if isinstance(given, dict) else []
            found = "other JSON"
            if more:
                found = f"the key {json.dumps(more[0][:40])}"
            elif texts is not None:
                found = "a value of texts that is not a list"
            raise Refusal(400, f'found {found}; expected {{"texts": ["...", ...]}} alone')
        for place, text in enumerate(texts):
            if not isinstance(text, str):
                raise Refusal(400, f"found no text at place {place} of texts; expected texts alone")
            if len(text) > self.limits.characters:
                raise Refusal(
                    413,
                    f"found {len(text)} characters at place {place} of texts; expected at most "
                    f"{self.limits.characters}: shorten it",
                )
        if len(texts) > self.limits.texts:
            raise Refusal(
                413,
                f"found {len(texts)} texts; expected at most {self.limits.texts} in a request: "
                "send several",
            )
        return texts

    async def _answer(self, texts: list[str]) -> dict[str, Any]:
        filled = [text for text in texts if not is_blank(text)]
        shares = iter(await self._shares(filled) if filled else ())
        rows = [None if is_blank(text) else next(shares) for text in texts]
        self.texts += len(texts)
        return {
            "classes": self.classes,
            "labels": [None if row is None else self.classes[row.argmax()] for row in rows],
            "probabilities": [None if row is None else row.tolist() for row in rows],
        }

    async def _shares(self, texts: list[str]) -> np.ndarray:
        if self.waiting >= self.limits.waiting:
            raise Refusal(429, f"found {self.waiting} requests waiting; send it again later")
        self.waiting += 1
        try:
            return await self.worker.probabilities(texts)
        finally:
            self.waiting -= 1

    async def health(self, request: Any) -> Any:
        return _json({"status": "ok", "version": __version__, "classes": self.classes})

    async def metrics(self, request: Any) -> Any:
        from starlette.responses import PlainTextResponse

        total = self.statuses.total()
        lines = [
            "# HELP superconext_requests_total Requests to predict, by HTTP status.",
            "# TYPE superconext_requests_total counter",
            *(
                f'superconext_requests_total{{status="{status}"}} {count}'
                for status, count in sorted(self.statuses.items())
            ),
            "# HELP superconext_texts_total Texts answered.",
            "# TYPE superconext_texts_total counter",
            f"superconext_texts_total {self.texts}",
            "# HELP superconext_requests_waiting Requests that wait for an answer.",
            "# TYPE superconext_requests_waiting gauge",
            f"superconext_requests_waiting {self.waiting}",
            "# HELP superconext_request_seconds Seconds from a request's head to its answer.",
            "# TYPE superconext_request_seconds histogram",
            *(
                f'superconext_request_seconds_bucket{{le="{edge}"}} {count}'
                for edge, count in zip((*_EDGES, "+Inf"), (*self.below, total), strict=True)
            ),
            f"superconext_request_seconds_sum {self.seconds:.6f}",
            f"superconext_request_seconds_count {total}",
        ]
        return PlainTextResponse("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")


def app_of(model: Any, limits: Limits | None = None) -> Any:
    """The ASGI application of a model. Raises MissingExtraError without Starlette."""
    try:
        from starlette.applications import Starlette
        from starlette.exceptions import HTTPException
        from starlette.routing import Route
    except ImportError:
        raise MissingExtraError("The HTTP service", "serve") from None
    service = Service(model, limits or Limits())

    @asynccontextmanager
    async def answering(app: Any) -> AsyncIterator[None]:
        task = asyncio.create_task(service.worker.run())
        yield
        task.cancel()

    async def refused(request: Any, error: Any) -> Any:
        expected = "expected POST /predict, GET /health or GET /metrics"
        return _json({"error": f"{error.detail}: {expected}"}, error.status_code, error.headers)

    routes = [
        Route("/predict", service.predict, methods=["POST"]),
        Route("/health", service.health),
        Route("/metrics", service.metrics),
    ]
    app = Starlette(routes=routes, lifespan=answering, exception_handlers={HTTPException: refused})
    app.router.redirect_slashes = False  # to whatever host a client names
    return app


def _protocol(seconds: float) -> Any:
    """uvicorn's protocol, that closes a connection on which the head of a request is not there
    after so many seconds. Its attribute `opened` is the set of connections."""
    from uvicorn.protocols.http.auto import AutoHTTPProtocol

    base: Any = AutoHTTPProtocol

    class Impatient(base):  # type: ignore[misc]
        opened: ClassVar[set[Any]] = set()
        timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.opened.add(self)
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if not self._without_head():
                self._stop_waiting()
            elif self.timer is None:
                self._wait()

        def connection_lost(self, error: Exception | None) -> None:
            self._stop_waiting()
            self.opened.discard(self)
            super().connection_lost(error)

        def _without_head(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _wait(self) -> None:
            self.timer = self.loop.call_later(seconds, self._give_up)

        def _stop_waiting(self) -> None:
            if self.timer is not None:
                self.timer.cancel()
                self.timer = None

        def _give_up(self) -> None:
            self.timer = None
            if self._without_head():
                self.transport.close()

    return Impatient


def _of_so_many(app: Any, opened: Set[Any], most: int) -> Any:
    """The ASGI application, which refuses requests while more connections are open."""

    async def limited(scope: Any, receive: Any, send: Any) -> None:
        answer = app
        if scope["type"] == "http" and len(opened) > most:
            told = f"found {len(opened)} open connections; expected at most {most}: send it later"
            answer = _json({"error": told}, 503, _HEADERS[503])
        await answer(scope, receive, send)

    return limited


def run_server(
    model: Any, host: str = "127.0.0.1", port: int = 8000, limits: Limits | None = None
) -> None:
    """Serve until SIGTERM or Ctrl-C; requests under way then get their answers first.

    port: 0 takes a free one; the address is printed on stderr. Raises OSError where the address
    is taken, MissingExtraError without the extra.
    """
    limits = limits or Limits()
    app = app_of(model, limits)
    try:
        import uvicorn
    except ImportError:
        raise MissingExtraError("The HTTP service", "serve") from None
    model.probabilities(["warm"])
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        # Which may give the error of an unknown host another class and a number of its own.
        socket.getaddrinfo(host or None, port, family, socket.SOCK_STREAM)
        listening = socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        # Python's words name the address once more; an unknown host has no number of the system.
        number = errno.EADDRNOTAVAIL if isinstance(error, socket.gaierror) else error.errno
        reason = str(error.strerror).partition(" (while")[0]
        raise OSError(number, reason, f"{host}, port {port}") from None
    # asyncio sends small packets at once where it is told that a socket is TCP's; else an answer
    # waits 40 ms for the client's acknowledgement of its head.
    listening = socket.socket(
        family, socket.SOCK_STREAM, socket.IPPROTO_TCP, fileno=listening.detach()
    )
    protocol = _protocol(limits.seconds)
    settings = uvicorn.Config(
        _of_so_many(app, protocol.opened, limits.connections),
        http=protocol,
        log_level="error",  # warnings are of what clients sent
        access_log=False,
        timeout_graceful_shutdown=_GRACE,
        server_header=False,
    )
    # uvicorn stops at the signal and, when all is answered, raises it again.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{listening.getsockname()[1]}"
    _say(f"serving at {address}/predict")
    with suppress(KeyboardInterrupt):
        uvicorn.Server(settings).run(sockets=[listening])
    _say("stopped")


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def _json(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Any:
    from starlette.responses import Response

    body = json.dumps(content).encode()
    return Response(body, status, headers, media_type="application/json")
