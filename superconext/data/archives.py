"""Members of downloaded archives, read without unpacking them into a folder.

Members are read into memory one by one, so nothing can land outside a folder. An archive is
still refused as a whole if a member's name would lead out of one, if it holds links or devices,
or if it unpacks to more than a limit: it is not what its authors packed.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, Any

from superconext.core.errors import DataError

#: Bytes all members together may unpack to, and how many there may be.
LIMIT = 1 << 30
MOST = 250_000

_OVERHEAD = MOST * 1024  # bytes of headers and filling between the members of a tar archive


def read_tar(
    path: Path, wanted: Callable[[str], bool], limit: int = LIMIT
) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of the wanted files of a tar archive, gzipped or not, in its order.

    Raises DataError for an archive that is broken, escapes or explodes.
    """
    total = count = 0
    try:
        with _unpacked(path) as packed, tarfile.open(fileobj=packed, mode="r|") as archive:
            # A stream cannot go back, so each member is read before the next one is looked at.
            packed.limit = limit + _OVERHEAD
            for member in archive:
                count, total = count + 1, total + max(member.size, 0)
                _check(path, member.name, count, total, limit)
                if not (member.isreg() or member.isdir()):
                    raise DataError(_refused(path, f"{member.name!r} is a link or a device"))
                if member.isreg() and wanted(member.name):
                    stream = archive.extractfile(member)
                    if stream is not None:
                        yield member.name, _exactly(path, member.name, stream, member.size)
    except (DataError, MemoryError):
        raise
    except Exception as error:  # a damaged archive makes its reader fail in many ways
        raise DataError(_broken(path, error)) from None


def read_zip(
    path: Path, wanted: Callable[[str], bool], limit: int = LIMIT
) -> Iterator[tuple[str, bytes]]:
    """Name and bytes of the wanted files of a zip archive, in its order. Raises as `read_tar`."""
    total = 0
    try:
        with zipfile.ZipFile(path) as archive:
            for count, member in enumerate(archive.infolist(), start=1):
                total += member.file_size
                _check(path, member.filename, count, total, limit)
                mode = member.external_attr >> 16
                if mode and (mode & 0o170000) not in (0, 0o040000, 0o100000):
                    raise DataError(_refused(path, f"{member.filename!r} is a link or a device"))
            for member in archive.infolist():
                if not member.filename.endswith("/") and wanted(member.filename):
                    with archive.open(member) as stream:
                        yield (
                            member.filename,
                            _exactly(path, member.filename, stream, member.file_size),
                        )
    except (DataError, MemoryError):
        raise
    except Exception as error:
        raise DataError(_broken(path, error)) from None


class _Limited(io.RawIOBase):
    """The bytes of a file, gunzipped if need be, up to a limit: headers can explode too."""

    def __init__(self, path: Path, source: IO[bytes]) -> None:
        self.path, self.source, self.limit, self.done = path, source, _OVERHEAD, 0

    def read(self, size: int = -1) -> bytes:
        data = self.source.read(size)
        self.done += len(data)
        if self.done > self.limit:
            raise DataError(_refused(self.path, f"it unpacks to more than {self.limit} bytes"))
        return data

    def close(self) -> None:
        self.source.close()
        super().close()


def _unpacked(path: Path) -> _Limited:
    with path.open("rb") as stream:
        gzipped = stream.read(2) == b"\x1f\x8b"
    source: Any = gzip.GzipFile(path) if gzipped else path.open("rb")
    return _Limited(path, source)


def _check(path: Path, name: str, count: int, total: int, limit: int) -> None:
    parts = PurePosixPath(name.replace("\\", "/"))
    if parts.is_absolute() or ".." in parts.parts or ":" in (parts.parts or ("",))[0]:
        raise DataError(_refused(path, f"{name!r} leads out of the folder it is unpacked in"))
    if count > MOST or total > limit:
        found = f"more than {MOST} files" if count > MOST else f"more than {limit} bytes"
        raise DataError(_refused(path, f"it unpacks to {found}"))


def _exactly(path: Path, name: str, stream: IO[bytes], size: int) -> bytes:
    # The sizes in a header are words only: what comes out must agree with them.
    data = stream.read(size + 1)
    if len(data) != size:
        raise DataError(_refused(path, f"{name!r} is not as long as it says"))
    return data


def _refused(path: Path, found: str) -> str:
    return f"{path}: {found}; expected an archive of plain files: remove it and do not trust it"


def _broken(path: Path, error: Exception) -> str:
    reason = " ".join(str(error).split()) or type(error).__name__
    return f"{path}: broken archive ({reason}); expected a whole one: remove it and fetch it again"
