"""How does one large file come over a bad line? In pieces that are never fetched twice."""

from __future__ import annotations

import http.client
import json
import re
import shutil
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from superconext._version import __version__
from superconext.core.errors import VectorsError
from superconext.core.files import write_json
from superconext.vectors.catalogue import PublicVectors

_BLOCK = 1 << 18
_TIMEOUT = 30.0  # seconds without a byte
_ATTEMPTS = 5  # in a row that bring no byte nearer
_PASSING = (408, 425, 429, 500, 502, 503, 504)


class _Interrupted(Exception):
    """An attempt failed in a way that another one may not."""


class _Unreachable(Exception):
    """There is no server at the other end, or no way to it."""


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a server to another address of the web only, and never out of https."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: Any,
        newurl: str,
    ) -> urllib.request.Request | None:
        here, there = urlsplit(req.full_url).scheme, urlsplit(newurl).scheme
        if there not in ("http", "https") or (here, there) == ("https", "http"):
            raise VectorsError(
                f"{req.full_url}: redirected to {newurl}; expected an address of {here}; check "
                "the network for a proxy, and do not trust that address"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def download(
    url: str,
    part: Path,
    entry: PublicVectors,
    by_hand: str,
    progress: Callable[[float], None],
    say: Callable[[str], None],
    pause: Callable[[float], None],
) -> None:
    """Bring the bytes of `url` into the file `part`, going on with what is there.

    A piece left by an earlier call is continued if the server still has the very same file
    (`Range` with `If-Range`, RFC 9110 sections 13.1.5 and 14.2) and fetched anew otherwise.

    Args:
        by_hand: how to do without a connection, for the messages.

    Raises:
        VectorsError: no connection, a refusal, or more bytes than `entry.limit`.
    """
    opener = urllib.request.build_opener(_Redirects)
    farthest = at_first = _size(part)
    failures = 0
    while True:
        try:
            _attempt(opener, url, part, entry, progress)
            _note(part).unlink(missing_ok=True)
            return
        except (_Interrupted, _Unreachable) as error:
            failures = 0 if _size(part) > farthest else failures + 1
            farthest = max(farthest, _size(part))
            if isinstance(error, _Unreachable) and farthest == at_first:
                raise VectorsError(
                    f"cannot reach {url} ({error}); expected a connection; go online and run the "
                    f"command again, {by_hand}"
                ) from None
            if failures >= _ATTEMPTS:
                raise VectorsError(
                    f"{url}: {error}, {failures} times in a row; expected the whole file; run the "
                    f"command again later, which goes on where it stopped, {by_hand}"
                ) from None
            wait = float(2**failures)
            say(f"{error}; trying again in {wait:.0f} s")
            pause(wait)
        except urllib.error.HTTPError as error:
            raise VectorsError(
                f"{url}: the server answers {error.code} {error.reason}; expected the file; "
                f"check the address in a browser, {by_hand}"
            ) from None


def _attempt(
    opener: urllib.request.OpenerDirector,
    url: str,
    part: Path,
    entry: PublicVectors,
    progress: Callable[[float], None],
) -> None:
    headers = {"User-Agent": f"superconext/{__version__}", "Accept-Encoding": "identity"}
    validator = _validator(part, url)
    have = _size(part) if validator else 0
    if have:
        headers.update({"Range": f"bytes={have}-", "If-Range": validator})
    with _open(opener, urllib.request.Request(url, headers=headers), part) as response:
        if response.status == 206:
            span = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", response.headers["Content-Range"] or "")
            if span is None or int(span[1]) != have:
                part.unlink(missing_ok=True)
                raise _Interrupted("the server sent another piece than the one asked for")
            total: int | None = int(span[2])
        else:
            have = 0
            length = response.headers["Content-Length"] or ""
            total = int(length) if length.isdigit() else None
        _check_room(url, part, total, have, entry.limit)
        if not have:
            part.unlink(missing_ok=True)  # before the note, which must never tell of another file
            _remember(part, url, response.headers)
        expected = total or entry.size
        with part.open("ab" if have else "wb") as sink:
            while block := _read(response):
                have += len(block)
                if have > entry.limit:
                    break
                _write(sink, block, part)
                progress(have / expected if expected else 0.0)
    if have > entry.limit:
        part.unlink()
        raise VectorsError(_too_large(url, f"more than {entry.limit}", entry.limit))
    if total is not None and have < total:
        raise _Interrupted(f"the connection ended after {have} of {total} bytes")


def _open(
    opener: urllib.request.OpenerDirector, request: urllib.request.Request, part: Path
) -> Any:
    try:
        return opener.open(request, timeout=_TIMEOUT)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 416:  # the piece is longer than the file: start over
            part.unlink(missing_ok=True)
        if error.code == 416 or error.code in _PASSING:
            raise _Interrupted(f"the server answers {error.code} {error.reason}") from error
        raise
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", error)
        if isinstance(reason, ssl.SSLCertVerificationError):
            raise VectorsError(
                f"{request.full_url}: its certificate cannot be verified "
                f"({reason.verify_message}); expected a trusted one; check the clock and the "
                "system's certificates"
            ) from error
        if isinstance(error, http.client.HTTPException | ConnectionResetError):
            raise _Interrupted(f"the server hung up ({_words(reason)})") from error
        raise _Unreachable(_words(reason)) from error


def _read(response: Any) -> bytes:
    """The next block; what came before the line broke is kept, and b"" marks the end."""
    try:
        return bytes(response.read1(_BLOCK))
    except (OSError, http.client.HTTPException) as error:
        raise _Interrupted(f"the connection broke ({_words(error)})") from error


def _write(sink: IO[bytes], block: bytes, part: Path) -> None:
    try:
        sink.write(block)
        sink.flush()  # a full disk is told here, by name, and not when the file is closed
    except OSError as error:
        error.filename = str(part)
        raise


def _words(error: object) -> str:
    return " ".join(str(getattr(error, "strerror", None) or error or "no reason given").split())


def _size(part: Path) -> int:
    return part.stat().st_size if part.is_file() else 0


def _note(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _remember(part: Path, url: str, headers: Any) -> None:
    """Keep what tells this version of the file from another one, to go on with it later."""
    tag = headers["ETag"] or ""
    # A weak tag says "much the same", which is not enough to join two pieces.
    validator = tag if tag.startswith('"') else headers["Last-Modified"]
    if validator:
        write_json(_note(part), {"url": url, "validator": validator})
    else:
        _note(part).unlink(missing_ok=True)


def _validator(part: Path, url: str) -> str:
    try:
        note = json.loads(_note(part).read_text(encoding="utf-8"))
        return str(note["validator"]) if note["url"] == url else ""
    except (OSError, ValueError, KeyError, TypeError):
        return ""


def _check_room(url: str, part: Path, total: int | None, have: int, limit: int) -> None:
    if total is None:
        return
    if total > limit:
        raise VectorsError(_too_large(url, str(total), limit))
    free = shutil.disk_usage(part.parent).free
    if total - have > free:
        raise VectorsError(
            f"{part.parent}: {free} bytes are free and the file needs {total - have}; expected "
            "room for it; make room, or choose another place with --out"
        )


def _too_large(url: str, found: str, limit: int) -> str:
    return (
        f"{url}: the server sends {found} bytes; expected at most {limit}; it is another file "
        "than the one wanted: check the address"
    )
