"""Downloads over http(s): resumed, checked against a hash, and put in place only when whole.

A download grows in `NAME.part` beside its place, is checked there, and is then renamed. Where its
authors publish no hash, the SHA-256 of the first download is recorded in a ledger and later ones
are compared with it. The catalogues of public data sets and of word vectors both use this.
"""

from __future__ import annotations

import gzip
import hashlib
import http.client
import json
import os
import re
import shutil
import ssl
import sys
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from superconext.core import cache
from superconext.core.errors import SuperConTextError
from superconext.core.files import file_sha256, sync, write_json
from superconext.core.locks import only_writer, try_lock

_BLOCK = 1 << 18  # bytes
_TIMEOUT = 30.0  # seconds without a byte
_ATTEMPTS = 5  # in a row that bring no byte nearer
_TEMPORARY = (408, 425, 429, 500, 502, 503, 504)  # status codes worth another attempt


@dataclass(frozen=True)
class PublicFile:
    """One file of a catalogue.

    Attributes:
        url: its address, whose last part is the file's name.
        md5: its MD5 sum in hexadecimal where published, else None.
        size: bytes where published, else None.
        limit: bytes beyond which a download is refused.
    """

    url: str
    md5: str | None = None
    size: int | None = None
    limit: int = 64 << 20

    @property
    def name(self) -> str:
        """Name of the file as it is downloaded."""
        return unquote(urlsplit(self.url).path.rsplit("/", 1)[-1])

    def address(self, url_base: str | None, error: type[SuperConTextError]) -> str:
        """The address to download from: its own, or that of the same file below `url_base`.

        Raises `error` for an address of another kind than http or https.
        """
        name = urlsplit(self.url).path.rsplit("/", 1)[-1]
        url = self.url if url_base is None else f"{url_base.rstrip('/')}/{name}"
        if urlsplit(url).scheme not in ("http", "https"):
            raise error(f"{url}: expected an address of http or https; give such a one")
        return url


@dataclass(frozen=True)
class Checked:
    """A file that is in its place.

    Attributes:
        sha256: of its bytes, in hexadecimal.
        check: what they were compared with, for people.
        downloaded: False where the file was there already.
    """

    sha256: str
    check: str
    downloaded: bool = False


class _Interrupted(Exception):
    """An attempt failed in a way that another one may not."""


class _Unreachable(Exception):
    """There is no server at the other end, or no way to it."""


class _WrongHash(Exception):
    """A file is not the one that is published or recorded."""


class Downloader:
    """Downloads of one kind, with the ledger of their hashes.

    Args:
        ledger: JSON file with the SHA-256, by name, of files whose authors publish no hash.
        error: class of the errors that are raised.
        say: called with lines for people.
        pause: waits so many seconds before another attempt.
    """

    def __init__(
        self,
        ledger: Path,
        error: type[SuperConTextError],
        say: Callable[[str], None] | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.ledger, self.error = ledger, error
        self.say = say or (lambda line: None)
        self.pause = pause

    def fetch(
        self,
        file: PublicFile,
        path: Path,
        name: str,
        *,
        url: str,
        advice: str,
        progress: Callable[[float], None] | None = None,
        replace_damaged: bool = False,
    ) -> Checked:
        """Download a file, or check the one that is there already.

        A piece left by an earlier call is continued if the server still has the very same file
        (`Range` with `If-Range`, RFC 9110 sections 13.1.5 and 14.2) and fetched again otherwise.

        Args:
            path: where the file is to be; name: its name in the ledger; url: from `file.address`.
            advice: how to do without a connection, for the messages.
            progress: called with the share downloaded, 0 to 1.
            replace_damaged: download again what is there with another hash, instead of raising.

        Raises the error class given: no connection, a refusal, more bytes than `file.limit`,
        another hash, or another process that downloads to the same place; OSError, naming the file,
        where it cannot be written.
        """
        advance = progress or (lambda share: None)
        if os.path.lexists(path):
            try:
                return self._compared(path, file, name)
            except _WrongHash as error:
                if not replace_damaged:
                    raise self.error(str(error)) from None
                self.say(f"{error}; downloading it again")
        path.parent.mkdir(parents=True, exist_ok=True)
        cache.use(path)
        part = _Part(path, self.error)
        try:
            self.say(f"downloading {url}")
            self._transfer(url, part, file, advice, advance)
            part.note.unlink(missing_ok=True)
            try:
                checked = self._compared(part.path, file, name)
            except _WrongHash as error:
                raise self.error(str(error)) from None
            part.place()
        finally:
            part.close()
        advance(1.0)
        return Checked(checked.sha256, checked.check, downloaded=True)

    def check(self, path: Path, file: PublicFile, name: str | None = None) -> Checked:
        """Compare a file with its published hash, or else with the one recorded as `name`.

        Without a `name` nothing is recorded. Raises the error class given if the hashes differ.
        """
        try:
            return self._compared(path, file, name)
        except _WrongHash as error:
            raise self.error(str(error)) from None

    def record(self, name: str, sha256: str) -> None:
        """Write a hash into the ledger, beside those that other processes write."""
        self.ledger.parent.mkdir(parents=True, exist_ok=True)
        lock = self.ledger.with_name(f".{self.ledger.name}.lock")
        with only_writer(lock, self.ledger, self.say, "it is whole", remove=True, wait=True):
            write_json(self.ledger, {**self._recorded(), name: sha256})

    def forget(self, name: str) -> None:
        """Take a hash out of the ledger, if it is there: the file was not what it should be."""
        lock = self.ledger.with_name(f".{self.ledger.name}.lock")
        with only_writer(lock, self.ledger, self.say, "it is whole", remove=True, wait=True):
            known = self._recorded()
            if known.pop(name, None) is not None:
                write_json(self.ledger, known)

    def _recorded(self) -> dict[str, str]:
        try:
            known: Any = json.loads(self.ledger.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError):
            known = None
        if not isinstance(known, dict) or not all(isinstance(v, str) for v in known.values()):
            raise self.error(
                f"{self.ledger}: not the record of downloads it should be; expected a JSON object "
                "of file names and hashes; remove it, and the next downloads are recorded again"
            )
        return known

    def _compared(self, path: Path, file: PublicFile, name: str | None) -> Checked:
        if not path.is_file():
            raise self.error(f"{path} is no plain file; expected a file to write: choose another")
        # MD5 is what authors publish; it tells damage, and https tells who sent the file.
        sha256 = file_sha256(path)
        if file.md5 is not None:
            with path.open("rb") as stream:
                md5 = hashlib.file_digest(stream, partial(hashlib.md5, usedforsecurity=False))
            if md5.hexdigest() != file.md5:
                raise _WrongHash(
                    f"{path}: found MD5 {md5.hexdigest()}, expected {file.md5} as published: the "
                    "file is damaged, or another version, or the page of a proxy; remove it if it "
                    "is still there and fetch it again"
                )
            return Checked(sha256, "MD5 as published")
        if name is None:
            return Checked(sha256, "nothing: no hash is published")
        recorded = self._recorded().get(name)
        if recorded is None:
            if name.endswith(".gz"):  # its own checksum still tells a damaged one
                for _ in gunzipped(path, self.error):
                    pass
            self.record(name, sha256)
            self.say(
                f"{name}: no hash is published; found SHA-256 {sha256}, recorded in {self.ledger}"
            )
            return Checked(sha256, "nothing: no hash is published; recorded for the next time")
        if recorded != sha256:
            raise _WrongHash(
                f"{path}: found SHA-256 {sha256}, expected {recorded} as at the first download: "
                f"the file is damaged or was replaced by its authors; fetch it again, or take "
                f"{name} out of {self.ledger} to accept the new one"
            )
        return Checked(sha256, "SHA-256 as at the first download")

    def _transfer(
        self,
        url: str,
        part: _Part,
        file: PublicFile,
        advice: str,
        progress: Callable[[float], None],
    ) -> None:
        """Bring the bytes of `url` into `part`, with other attempts where they may help."""
        opener = urllib.request.build_opener(_Redirects(self.error))
        farthest = at_first = part.size
        failures = 0
        while True:
            try:
                self._attempt(opener, url, part, file, progress)
                return
            except (_Interrupted, _Unreachable) as error:
                failures = 0 if part.size > farthest else failures + 1
                farthest = max(farthest, part.size)
                if isinstance(error, _Unreachable) and farthest == at_first:
                    raise self.error(
                        f"cannot reach {url} ({error}); expected a connection; go online and run "
                        f"the command again, {advice}"
                    ) from None
                if failures >= _ATTEMPTS:
                    resumed = ", which resumes where it stopped" if part.resumable(url) else ""
                    raise self.error(
                        f"{url}: {error}, {failures} times in a row; expected the whole file; "
                        f"run the command again later{resumed}, {advice}"
                    ) from None
                wait = float(2**failures)
                self.say(f"{error}; trying again in {wait:.0f} s")
                self.pause(wait)
            except urllib.error.HTTPError as error:
                raise self.error(
                    f"{url}: the server answers {error.code} {error.reason}; expected the file; "
                    f"check the address in a browser, {advice}"
                ) from None

    def _attempt(
        self,
        opener: urllib.request.OpenerDirector,
        url: str,
        part: _Part,
        file: PublicFile,
        progress: Callable[[float], None],
    ) -> None:
        headers = {"User-Agent": "superconext", "Accept-Encoding": "identity"}
        validator = part.validator(url)
        have = part.size if validator else 0
        if have:
            headers.update({"Range": f"bytes={have}-", "If-Range": validator})
        request = urllib.request.Request(url, headers=headers)
        with self._open(opener, request, part) as response:
            if response.status == 206:
                sent = response.headers["Content-Range"] or ""
                span = re.fullmatch(r"bytes (\d+)-\d+/(\d+)", sent)
                if span is None or int(span[1]) != have:
                    part.clear()
                    raise _Interrupted("the server sent another piece than the one asked for")
                tag = response.headers["ETag" if validator.startswith('"') else "Last-Modified"]
                if tag is not None and tag != validator:  # If-Range was not heeded
                    part.clear()
                    raise _Interrupted("the server sent a piece of another version")
                total: int | None = int(span[2])
            else:
                have = 0
                length = response.headers["Content-Length"] or ""
                total = int(length) if length.isdigit() else None
            if total is not None:
                self._check_room(url, part, total, have, file.limit)
            if not have:
                part.restart(url, response.headers)
            expected = total or file.size
            while block := _read(response):
                have += len(block)
                if have > file.limit:
                    part.clear()
                    raise self.error(_too_large(url, f"more than {file.limit}", file.limit))
                part.write(block)
                progress(min(have / expected, 1.0) if expected else 0.0)
        if total is not None and have < total:
            raise _Interrupted(f"the connection broke (it ended after {have} of {total} bytes)")

    def _open(
        self, opener: urllib.request.OpenerDirector, request: urllib.request.Request, part: _Part
    ) -> Any:
        try:
            return opener.open(request, timeout=_TIMEOUT)
        except urllib.error.HTTPError as error:
            error.close()
            if error.code == 416:  # the piece is longer than the file: start over
                part.clear()
            if error.code == 416 or error.code in _TEMPORARY:
                raise _Interrupted(f"the server answers {error.code} {error.reason}") from error
            raise
        except ValueError as error:  # such as of an address that a redirection leads to
            raise self.error(
                f"{request.full_url}: leads to no address ({error}); expected the file: check the "
                "address in a browser"
            ) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise self.error(
                    f"{request.full_url}: its certificate cannot be verified "
                    f"({reason.verify_message}); expected a trusted one; check the clock and the "
                    "system's certificates"
                ) from error
            if isinstance(error, http.client.HTTPException | ConnectionResetError):
                raise _Interrupted(f"the server hung up ({_reason(reason)})") from error
            raise _Unreachable(_reason(reason)) from error

    def _check_room(self, url: str, part: _Part, total: int, have: int, limit: int) -> None:
        if total > limit:
            raise self.error(_too_large(url, str(total), limit))
        free = shutil.disk_usage(part.path.parent).free
        if total - have > free:
            raise self.error(
                f"{part.path.parent}: {free} bytes are free and the file needs {total - have}; "
                "expected room for it; make room, or choose another place"
            )


class _Part:
    """The piece of a download that is here, in a file that one process at a time may write.

    A note beside it (`.json`) tells the address and the version of the file it is a piece of.
    """

    def __init__(self, place: Path, error: type[SuperConTextError]) -> None:
        self._place = place
        self.path = place.with_name(place.name + ".part")
        self.note = place.with_name(place.name + ".part.json")
        self._placed = False
        self._stream = self._locked(error)

    def _locked(self, error: type[SuperConTextError]) -> IO[bytes]:
        while True:
            stream = self.path.open("ab")
            if sys.platform == "win32":  # there no locked file can be read or renamed
                return stream
            if try_lock(stream.fileno()) is False:
                stream.close()
                raise error(
                    f"{self._place}: another process is downloading it; expected to be the only "
                    "one: wait until it ends"
                )
            try:  # another process may have put it in its place since it was opened
                if os.path.samestat(os.fstat(stream.fileno()), self.path.stat()):
                    return stream
            except FileNotFoundError:
                pass
            stream.close()

    @property
    def size(self) -> int:
        return os.fstat(self._stream.fileno()).st_size

    def validator(self, url: str) -> str:
        """What tells this version of the file from another one, or "" where nothing does."""
        try:
            note = json.loads(self.note.read_text(encoding="utf-8"))
            return str(note["validator"]) if note["url"] == url else ""
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    def resumable(self, url: str) -> bool:
        return self.size > 0 and self.validator(url) != ""

    def clear(self) -> None:
        self._stream.truncate(0)

    def restart(self, url: str, headers: Any) -> None:
        """Begin with no byte of the version that the headers describe."""
        self.clear()  # before the note, which must never tell of another file
        tag = headers["ETag"] or ""
        # A weak tag says "much the same", which is not enough to join two pieces.
        validator = tag if tag.startswith('"') else headers["Last-Modified"]
        if validator:
            write_json(self.note, {"url": url, "validator": validator})
        else:
            self.note.unlink(missing_ok=True)

    def write(self, block: bytes) -> None:
        try:
            self._stream.write(block)
            self._stream.flush()  # a full disk raises here, with a name, and not at the end
        except OSError as error:
            error.filename = str(self._place)
            raise

    def place(self) -> None:
        """Give the file its name."""
        sync(self.path)
        if sys.platform == "win32":
            self._stream.close()
        self.path.replace(self._place)
        self._placed = True
        sync(self._place.parent)

    def close(self) -> None:
        """Keep what a later call can resume with, and nothing else."""
        open_piece = not self._placed and not self._stream.closed
        if open_piece and not (self.size and self.note.exists()):
            self.path.unlink(missing_ok=True)
            self.note.unlink(missing_ok=True)
        self._stream.close()


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a server to another address of the web only, and never out of https."""

    def __init__(self, error: type[SuperConTextError]) -> None:
        self._error = error

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
            raise self._error(
                f"{req.full_url}: redirected to {newurl}; expected an address of {here}; check "
                "the network for a proxy, and do not trust that address"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def gunzipped(path: Path, error: type[SuperConTextError]) -> Iterator[bytes]:
    """The content of a gzip file, block by block. Raises `error` for one that is not whole."""
    block = b""
    try:
        with gzip.open(path, "rb") as stream:
            for block in iter(partial(stream.read, _BLOCK), b""):
                yield block
        if not block:  # gzip takes a file of no bytes for a whole one
            raise EOFError("there is nothing in it")
    except (OSError, EOFError, zlib.error) as problem:
        raise error(
            f"{path}: not a whole gzip file ({problem}); expected one, and not the page of a "
            "proxy; fetch it again"
        ) from problem


def _read(response: Any) -> bytes:
    """The next block; what came before the connection broke is kept, and b"" marks the end."""
    try:
        return bytes(response.read1(_BLOCK))
    except (OSError, http.client.HTTPException) as error:
        raise _Interrupted(f"the connection broke ({_reason(error)})") from error


def _reason(error: object) -> str:
    return " ".join(str(getattr(error, "strerror", None) or error or "no reason given").split())


def _too_large(url: str, found: str, limit: int) -> str:
    return (
        f"{url}: the server sends {found} bytes; expected at most {limit}; a file of more than "
        f"{limit} bytes is not the one wanted: check the address"
    )
