"""How does one file come over the line, and what does the user hear when it does not?"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from superconext._version import __version__
from superconext.core.errors import DataError
from superconext.core.files import beside
from superconext.data.catalogue import PublicFile

_BLOCK = 1 << 16
_TIMEOUT = 30.0  # seconds without a byte


def transfer(url: str, path: Path, file: PublicFile, progress: Callable[[float], None]) -> None:
    """Bring `url` to `path` with pooch, or leave the file that is there if its hash is right.

    The file is downloaded beside its place and renamed when it is whole and, where a hash is
    published, checked. Raises DataError, telling what to do, if it cannot be had.
    """
    import pooch
    import requests

    meter = _Meter(url, file, progress)
    downloader = pooch.HTTPDownloader(
        progressbar=meter,
        chunk_size=_BLOCK,
        timeout=_TIMEOUT,
        headers={"User-Agent": f"superconext/{__version__}", "Accept-Encoding": "identity"},
        hooks={"response": _stay_secure},
    )
    by_hand = "or download it elsewhere and name its folder with --from"
    try:
        if path.is_file() and _fits(path, file):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with _quiet(pooch.get_logger()), beside(path) as temporary:
            downloader(url, str(temporary), None)
            if not _fits(temporary, file):
                raise DataError(
                    f"{url}: what came has another hash than MD5 {file.md5} as published; "
                    "expected the file of the catalogue, not another version or the page of a "
                    f"proxy: try again later, {by_hand}"
                )
    except requests.HTTPError as error:
        answer: Any = error.response
        raise DataError(
            f"{url}: the server answers {answer.status_code} {answer.reason}; expected the file; "
            f"check the address in a browser, {by_hand}"
        ) from None
    except requests.exceptions.SSLError as error:
        raise DataError(
            f"{url}: its certificate cannot be verified ({_words(error)}); expected a trusted "
            "one; check the clock and the system's certificates"
        ) from None
    except (requests.ConnectionError, requests.Timeout) as error:
        if meter.received:
            raise _broken(url, meter, error) from None
        raise DataError(
            f"cannot reach {url} ({_words(error)}); expected a connection; go online and run the "
            f"command again, {by_hand}"
        ) from None
    except requests.RequestException as error:
        raise _broken(url, meter, error) from None


def _fits(path: Path, file: PublicFile) -> bool:
    """Whether a file has the hash that is published, if one is."""
    import pooch

    return file.md5 is None or pooch.file_hash(str(path), "md5") == file.md5


class _Meter:
    """What pooch takes for a progress bar; it also holds the download to its limits."""

    def __init__(self, url: str, file: PublicFile, progress: Callable[[float], None]) -> None:
        self.url, self.file, self.progress = url, file, progress
        self.received = 0
        self._total = 0

    @property
    def total(self) -> int:
        return self._total

    @total.setter
    def total(self, value: int) -> None:
        """Set by pooch to the length the server announces, before the first block."""
        self._total = value
        self._hold(value)

    def update(self, count: int) -> None:
        self.received += count
        self._hold(self.received - _BLOCK)  # the last block is seldom full
        expected = self._total or self.file.size
        self.progress(min(self.received / expected, 1.0) if expected else 0.0)

    def reset(self) -> None:
        self.received = 0

    def close(self) -> None:
        self.progress(1.0)

    def _hold(self, count: int) -> None:
        if count > self.file.limit:
            raise DataError(
                f"{self.url}: the server sends more than {self.file.limit} bytes; expected fewer; "
                "it is another file than the one wanted: check the address"
            )


def _broken(url: str, meter: _Meter, error: Exception) -> DataError:
    return DataError(
        f"{url}: the connection broke after {meter.received} bytes ({_words(error)}); expected "
        "the whole file: run the command again"
    )


def _stay_secure(response: Any, *_: Any, **__: Any) -> None:
    """Refuse to be sent from https to anything less."""
    there = response.headers.get("Location", "") if response.is_redirect else ""
    if urlsplit(response.url).scheme == "https" and urlsplit(there).scheme not in ("", "https"):
        raise DataError(
            f"{response.url}: redirected to {there}; expected an address of https; check the "
            "network for a proxy, and do not trust that address"
        )


def _words(error: BaseException) -> str:
    """The innermost reason, for the libraries wrap it in several layers of names."""
    reason: Any = error
    while isinstance(reason, BaseException):
        inner = getattr(reason, "reason", None) or next(
            (part for part in reason.args if isinstance(part, BaseException)), None
        )
        if inner is None or inner is reason:
            break
        reason = inner
    words = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    return " ".join(str(words).split()).split(": ", 1)[-1][:120]


@contextlib.contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    """pooch tells every download on stderr; here `say` and the progress bar do."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
