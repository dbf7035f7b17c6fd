"""C++ sources of the package as libraries, made by this machine's compiler and kept in the cache.

A library is made for the processor it is made on, so the cache has one for each kind of processor
and release of the compiler. As it is code, one that somebody else could have put there is not used;
its name ends in its hash, so that one which is damaged is made again.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from superconext.core.errors import SuperConTextError
from superconext.core.files import cache_dir, file_sha256
from superconext.core.process import processor_kind

COMPILERS = ("g++", "clang++", "c++")
FOLDER = "compiled"
#: Faster arithmetic that keeps infinity, NaN and the order of sums.
_OPTIONS = ("-O3", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=fast")
_PATIENCE = 120  # seconds; it takes two


class CompilerError(SuperConTextError):
    """There is no compiler, or it failed: what was found, what was expected."""


def library_of(source: Path) -> Path:
    """The library of a C++ file. Raises CompilerError where it can't be made."""
    names = [os.environ.get("CXX", ""), *COMPILERS]
    compiler = next((found for name in names if name and (found := shutil.which(name))), None)
    if compiler is None:
        raise CompilerError(f"found no C++ compiler, expected {' or '.join(COMPILERS[:-1])}")
    arm = platform.machine().lower() in ("arm64", "aarch64")
    options = [*_OPTIONS, "-std=c++17", "-mcpu=native" if arm else "-march=native"]
    try:
        about = [_said(compiler, "--version"), *options, processor_kind()]
        key = hashlib.sha256(source.read_bytes() + "\n".join(about).encode()).hexdigest()[:16]
        home = cache_dir() / FOLDER
        home.mkdir(0o700, parents=True, exist_ok=True)
        if not _is_ours(home):
            raise CompilerError(f"{home}: found a folder that others can write to")
        for library in home.glob(f"{key}-*.so"):
            if library.name == _named(key, library) and _is_ours(library):
                return library
        with tempfile.TemporaryDirectory(dir=home, prefix=".") as folder:
            made = Path(folder) / f"{key}.so"
            _said(compiler, *options, "-shared", "-fPIC", str(source), "-o", str(made))
            made.chmod(0o700)
            library = home / _named(key, made)
            os.replace(made, library)
    except (OSError, subprocess.SubprocessError) as error:
        where = getattr(error, "filename", None)
        if where is not None and str(where) != compiler:
            raise CompilerError(
                f"{where}: {getattr(error, 'strerror', error)}; expected a place for the library: "
                "name a folder that can be written to as SUPERCONEXT_CACHE"
            ) from None
        raise CompilerError(f"{compiler}: {error}") from None
    return library


def _named(key: str, library: Path) -> str:
    return f"{key}-{file_sha256(library)[:16]}.so"


def _is_ours(path: Path) -> bool:
    """Whether nobody else owns a path or may write to it; true where systems do not tell."""
    about = path.stat()
    return not hasattr(os, "getuid") or (
        about.st_uid == os.getuid() and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def _said(*command: str) -> str:
    run = subprocess.run(
        command, capture_output=True, encoding="utf-8", errors="replace", timeout=_PATIENCE
    )
    if run.returncode:
        first = (run.stderr.strip().splitlines() or ["no message"])[0]
        raise CompilerError(f"{command[0]} failed: {first}")
    return run.stdout
