"""One line for an error: what was found, what was expected, what to do."""

from __future__ import annotations

import errno

from superconext.core.errors import SuperConTextError

_ROOM = "expected free disk space: make room and run the command again"
_MEMORY = "out of memory; expected more of it: close other programs or lower batch_size"
_ADVICE = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EFBIG: "expected leave to write a file of that size: lift the limit (ulimit -f), or "
    "choose another disk",
    errno.EACCES: "expected permission: check who owns it",
    errno.EROFS: "expected a folder that can be written to: choose another",
}
#: How torch, NumPy, C++ and the loader of libraries say that memory has run out.
_SIGNS = (
    "can't allocate memory",
    "cannot allocate memory",
    "unable to allocate",
    "bad_alloc",
    "out of memory",
    "can't start new thread",
    "failed to map segment",
)


def explain(error: BaseException) -> str:
    """The line for any error but those of wrong usage."""
    if _is_memory(error):
        return _MEMORY
    if isinstance(error, SuperConTextError):
        return str(error)
    if isinstance(error, OSError):
        name = error.filename or "a file"
        advice = _ADVICE.get(error.errno or 0, "check the path and run the command again")
        return f"{name}: {error.strerror or error}; {advice}"
    return (
        f"found {type(error).__name__} ({error}), which was not expected: "
        "run again with --debug and report what it shows"
    )


def _is_memory(error: BaseException) -> bool:
    """Whether an error, or what it was raised from, tells of memory that has run out."""
    seen: BaseException | None = error
    for _ in range(8):
        if seen is None:
            return False
        if isinstance(seen, MemoryError) or getattr(seen, "errno", None) == errno.ENOMEM:
            return True
        if isinstance(seen, RuntimeError | ImportError | OSError) and not isinstance(
            seen, SuperConTextError
        ):
            said = str(seen).lower()
            if any(sign in said for sign in _SIGNS):
                return True
        seen = seen.__cause__ or seen.__context__
    return False
