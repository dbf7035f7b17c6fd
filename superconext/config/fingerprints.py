"""Identities of the files that parameters name, by which a change of their content is seen."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from superconext.config.parameters import with_files
from superconext.core.errors import DataError, VectorsError
from superconext.core.files import file_sha256, refuse_pipe


class Fingerprints:
    """Hashes of the content of files, wherever they are; each file is read once."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], str] = {}

    def of(self, parameters: Mapping[str, Any]) -> dict[str, Any]:
        """The parameters with files as their hashes. Raises for files that are not there."""
        known = {}
        for name, value in parameters.items():

            def print_of(path: Any, name: str = name) -> str:
                key = name, str(path)
                if key not in self._seen:
                    self._seen[key] = _content_sha256(Path(path), name)
                return f"sha256 {self._seen[key]}"

            prints = with_files(name, value, print_of)
            known[name] = list(prints) if isinstance(prints, tuple) else prints  # as JSON has it
        return known


def _content_sha256(path: Path, content: str) -> str:
    """Hash of a file, or of every file below a folder with its name."""
    error = VectorsError if content == "vectors" else DataError
    if not path.is_dir():
        # `archive.zip:member` names a file in an archive.
        archive, _, member = ("", "", "") if path.exists() else str(path).rpartition(":")
        file = Path(archive) if archive else path
        refuse_pipe(file, content, error)
        if not file.is_file():
            raise error(f"{path}: no such file; expected what {content} names: check the path")
        found = file_sha256(file)
        return hashlib.sha256(f"{found} {member}".encode()).hexdigest() if archive else found
    digest = hashlib.sha256()
    for file in sorted(item for item in path.rglob("*") if item.is_file()):
        digest.update(f"{file.relative_to(path).as_posix()} {file_sha256(file)}\n".encode())
    return digest.hexdigest()
