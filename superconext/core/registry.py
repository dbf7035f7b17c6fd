"""Registries: every kind of thing a contributor adds is found by name in one of these.

A registry knows the built-in entries without importing them, those that `register` adds, those
of installed packages (entry points of its group), and those that its environment variable
names. A class is imported when it is first asked for.

    [project.entry-points."superconext.objectives"]
    my_loss = "my_package.losses:MyLoss"
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Generic, TypeVar

from superconext.core.errors import ConfigError, UnregisteredError, suggestion

T = TypeVar("T")

_EXPECTED = (
    "expected name=path/to/file.py:Class, where a relative path starts at the current folder"
)

_REGISTRIES: list[Registry[Any]] = []

#: The package that this is in: superconext, or in an export the folder of copies.
_PACKAGE = __name__.removesuffix(".core.registry")

#: Begins the names of modules made of files.
_OF_FILE = "superconext_own_"


@dataclass(frozen=True)
class Entry:
    """Where a class is: `module:Name` or `path/to/file.py:Name`; and a line of help."""

    target: str
    summary: str = ""


class Registry(Generic[T]):
    """Classes (or functions) of one kind by name.

    Args:
        kind: what an entry is called in messages, and the parameter's name: "objective".
        base: `module:Name` of the class that every entry extends; None where entries may be
            any callable.
        built_in: the project's own entries.
        variable: environment variable of more entries, "name=path/to/file.py:Class" after
            commas, which worker processes see too; None for none.
        home: the module that holds the registry, as OBJECTIVES of kind "objective".
        parameter: the parameter's name where it is not the kind.
        also: values that the parameter may have beside the names of entries,
            which no class is behind.
    """

    def __init__(
        self,
        kind: str,
        base: str | None,
        built_in: Mapping[str, Entry],
        variable: str | None = None,
        home: str = "",
        parameter: str = "",
        also: Sequence[str] = (),
    ) -> None:
        self.home, self.parameter, self.also = home, parameter or kind, tuple(also)
        self.kind, self.base, self.built_in, self.variable = kind, base, dict(built_in), variable
        self.group = f"superconext.{kind}s".replace(" ", "_")
        self._added: dict[str, Entry | T] = {}
        self._packages: dict[str, Entry] | None = None
        #: Classes and functions of users that were asked for, by name.
        self.used: dict[str, Any] = {}
        #: Hashes of their files, as they were then; "" of what stands in none.
        self.digests: dict[str, str] = {}
        self._faults: list[tuple[str, str]] = []
        _REGISTRIES.append(self)
        if variable and _PACKAGE == "superconext":
            self._read_variable(os.environ.get(variable, ""))

    def register(self, name: str, target: T | str, summary: str = "") -> None:
        """Add an entry: the class itself, or where it is (see `Entry`).

        A name may be registered again. Raises ConfigError for a name that is no identifier
        (dots and dashes are allowed inside) or belongs to a built-in entry.
        """
        if not is_name(name):
            raise ConfigError(
                f"{self.kind} name {name!r} found; expected letters, digits and underscores: "
                "rename it"
            )
        if name in self.built_in:
            raise ConfigError(f"{self.kind} name {name!r} is a built-in one's; choose another")
        if isinstance(target, str):
            path, _, attribute = target.rpartition(":")
            path = os.path.abspath(path) if path.endswith(".py") else path
            self._added[name] = Entry(f"{path}:{attribute}", summary)
        else:
            self._added[name] = target

    def names(self) -> list[str]:
        """Every known name, built-in ones first."""
        return list(dict.fromkeys([*self.built_in, *self._added, *self._from_packages()]))

    def values(self) -> list[str]:
        """Every value of the parameter: built-in names, what it may have beside names, others."""
        return list(dict.fromkeys([*self.built_in, *self.also, *self.names()]))

    def summary(self, name: str) -> str:
        """A line of help."""
        entry = self._entry(name)
        if isinstance(entry, Entry):
            return entry.summary
        lines = (getattr(entry, "__doc__", None) or "").strip().splitlines()
        return lines[0] if lines else ""

    def __contains__(self, name: object) -> bool:
        return name in self.built_in or name in self._added or name in self._from_packages()

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def check(self, name: str) -> None:
        """Raise ConfigError unless the parameter may have this value, with the nearest that it may
        have."""
        if name in self or name in self.also:
            self._tell()
            return
        for meant, fault in self._faults:
            if meant in (name, ""):
                raise UnregisteredError(f"{self.parameter} = {name!r}: {fault}")
        self._tell()
        error = UnregisteredError(
            f"{self.parameter} = {name!r}: expected one of {', '.join(self.values())}, or "
            f"{self._how_to_add(name)}; {suggestion(name, self.values())}"
        )
        error.kind, error.name, error.variable = self.kind, name, self.variable or ""
        raise error

    def _how_to_add(self, name: str) -> str:
        """How an entry of the user's own becomes known, for messages."""
        named = f"named in {self.variable}={name}=path/to/file.py:Class" if self.variable else ""
        constant = f"{self.kind}s".replace(" ", "_").upper()
        added = f"added in Python with {constant}.register of {self.home}" if self.home else ""
        return f"one of your own, {' or '.join(filter(None, [named, added]))}"

    def get(self, name: str) -> T:
        """The class behind a name. Raises ConfigError where it is unknown or of another kind."""
        self.check(name)
        entry = self._entry(name)
        if not isinstance(entry, Entry):
            return self._checked(name, entry, f"{entry!r} is no", "")
        path, _, attribute = entry.target.rpartition(":")
        if path.endswith(".py") and not os.path.isfile(path):
            raise UnregisteredError(
                f"{self.parameter} = {name!r}: found no file {path}; {_EXPECTED}"
            )
        if name in self.built_in:
            built_in: T = getattr(_own_module(path), attribute)
            return built_in
        try:
            module = (
                _module_of_file(path) if path.endswith(".py") else importlib.import_module(path)
            )
        except Exception as error:  # whatever a user's own file does when it is run
            raise UnregisteredError(
                f"{self.parameter} = {name!r}: {path} cannot be imported ({type(error).__name__}: "
                f"{error}); expected the module of {attribute}: correct it"
            ) from error
        return self._checked(name, getattr(module, attribute, None), f"{path} has no", attribute)

    def file_of(self, name: str) -> str:
        """The file of an added class; "" of a built-in one, and of one that stands in none."""
        return "" if name in self.built_in else _file(self.get(name))

    def _checked(self, name: str, candidate: Any, lack: str, attribute: str) -> T:
        if self.base is None:
            right = callable(candidate)
            wanted = f"function or class {attribute}".rstrip()
        else:
            module, _, base_name = self.base.partition(":")
            base = getattr(_own_module(module), base_name)
            right = isinstance(candidate, type) and issubclass(candidate, base)
            wanted = f"class {attribute} that extends".replace("  ", " ") + f" {module}.{base_name}"
        if not right:
            raise UnregisteredError(
                f"{self.parameter} = {name!r}: {lack} {wanted}; expected one: register the right "
                "name"
            )
        if self.base is not None and (lacking := _lacking(candidate)):
            raise UnregisteredError(
                f"{self.parameter} = {name!r}: found no {', no '.join(lacking)} in "
                f"{candidate.__name__}; expected what {module}.{base_name} asks for: add it"
            )
        if self.used.get(name) is not candidate:
            self.digests[name] = _digest(candidate)
        self.used[name] = candidate
        if fault := getattr(candidate, "fault", None):
            fault()
        return candidate  # type: ignore[no-any-return]

    def _entry(self, name: str) -> Entry | T:
        if name in self.built_in:
            return self.built_in[name]
        if name in self._added:
            return self._added[name]
        return self._from_packages()[name]

    def _from_packages(self) -> dict[str, Entry]:
        """Entry points of installed packages, looked up once, and only when they are needed."""
        if self._packages is None and _PACKAGE != "superconext":
            self._packages = {}  # what is registered elsewhere extends classes of the original
        if self._packages is None:
            from importlib.metadata import entry_points

            self._packages = {}
            for point in entry_points(group=self.group):
                if point.name in self.built_in:
                    fault = f"the entry points of {self.group}: {point.name!r} is a built-in name"
                    self._faults.append((point.name, f"{fault}; choose another"))
                    continue
                self._packages[point.name] = Entry(point.value, f"from {point.value}")
        return self._packages

    def _read_variable(self, text: str) -> None:
        """Register what the environment variable lists; a wrong part is left out, and told when a
        name is first looked up."""
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            name, _, place = map(str.strip, part.partition("="))
            path, _, attribute = place.rpartition(":")
            try:
                if not path.endswith(".py") or not attribute.isidentifier():
                    raise ConfigError(f"found {part!r}; {_EXPECTED}")
                self.register(name, place, f"{attribute} of {os.path.basename(path)}")
            except ConfigError as error:
                self._faults.append((name * ("=" in part), f"{self.variable}: {error}"))

    def _tell(self) -> None:
        while self._faults:
            sys.stderr.write(f"warning: left out of {self._faults.pop(0)[1]}\n")


def _lacking(candidate: type) -> list[str]:
    """Methods that a class has to define and does not: abstract ones, and `required` of a base."""

    def of(kind: type, name: str) -> object:
        method = getattr(kind, name, None)
        return getattr(method, "__func__", method)

    lacking = [
        name
        for kind in candidate.__mro__
        for name in vars(kind).get("required", ())
        if of(candidate, name) is of(kind, name)
    ]
    return [*sorted(getattr(candidate, "__abstractmethods__", ())), *lacking]


def is_name(name: str) -> bool:
    """Whether an entry may have this name."""
    return name.replace("-", "_").replace(".", "_").isidentifier()


def own_code() -> dict[str, str]:
    """Code of users that this process has used and a run needs to be opened: "objective mine" to
    "file.py:Class" or "module:Class", without folders."""
    found = {}
    for registry in (one for one in _REGISTRIES if one.kind in ("objective", "encoder", "probe")):
        for name, thing in registry.used.items():
            module = getattr(thing, "__module__", "")
            if module.startswith(_OF_FILE) or module == "__main__":
                module = os.path.basename(_file(thing))
            if name in registry and module:
                found[f"{registry.kind} {name}"] = f"{module}:{getattr(thing, '__name__', '')}"
    return found


def own_code_sha256() -> dict[str, str]:
    """Hashes of the files of `own_code` as they were when it was first used, by the same names."""
    found = {}
    for registry in (one for one in _REGISTRIES if one.kind in ("objective", "encoder", "probe")):
        for name, digest in registry.digests.items():
            if name in registry and digest:
                found[f"{registry.kind} {name}"] = digest
    return found


def own_fault(what: object, found: str, expected: str) -> ConfigError:
    """The error of a class, an object of it or a function that does not do what its kind must."""
    known = [
        (registry, name, used)
        for registry in _REGISTRIES
        for name, used in registry.used.items()
        if used in (what, type(what))
    ]
    lead = _title(*known[0]) if known else getattr(what, "__name__", type(what).__name__)
    return ConfigError(f"{lead}: found {found}; expected {expected}: correct it")


def expect(right: bool, what: object, method: str, answer: object, expected: str) -> None:
    """Raise ConfigError, which names what a user has added, unless its method's answer is right."""
    if not right:
        shape = getattr(answer, "shape", None)
        size = f" of {len(answer)}" if isinstance(answer, (list, tuple)) else ""
        size = size if shape is None else f" of shape {tuple(shape)}"
        found = "None" if answer is None else f"{type(answer).__name__}{size}"
        raise own_fault(what, f"{found}, returned by {method}", expected)


def expect_floats(
    what: object,
    method: str,
    answer: Any,
    shape: Sequence[int | str],
    meaning: str = "",
    finite: bool = True,
) -> None:
    """The same of a method whose answer is a tensor of floats of this shape. A letter is a size
    that is not known, which no answer has; `meaning` says in words what the sizes are."""
    sizes = ", ".join(map(str, shape))
    expected = f"{'finite ' * finite}floats of shape ({sizes}){meaning}"
    right = hasattr(answer, "is_floating_point") and tuple(answer.shape) == tuple(shape)
    expect(right, what, method, answer, expected)
    if not answer.is_floating_point():
        kind = str(answer.dtype).removeprefix("torch.")
        raise own_fault(what, f"numbers of type {kind}, returned by {method}", expected)
    if finite and not bool(answer.isfinite().all()):
        raise own_fault(what, f"NaN or infinity, returned by {method}", expected)


def own_code_raising(error: BaseException) -> str:
    """What a user has added whose file an error was raised in, as a message's lead; or ""."""
    own = {
        _file(thing): _title(registry, name, thing)
        for registry in _REGISTRIES
        for name, thing in registry.used.items()
    }
    for frame, _ in reversed(list(traceback.walk_tb(error.__traceback__))):
        path = os.path.abspath(frame.f_code.co_filename)
        if path in own:
            return f"{own[path]}: "
        if frame.f_globals.get("__name__", "").startswith(f"{_PACKAGE}."):
            break  # of what it has called itself
    return ""


def own_code_at_fault(error: BaseException) -> str:
    """The message of an unexpected error where something of the user's own is registered and was
    used: what the traceback leads to, else what was in use; "" where nothing was."""
    said = f"{type(error).__name__} ({error})"
    every = [(one, name, thing) for one in _REGISTRIES for name, thing in one.used.items()]
    used = [entry for entry in every if entry[1] in entry[0]]  # and still registered
    text = "".join(traceback.format_exception(error))  # has those of worker processes too
    for path, line, where in reversed(re.findall(r'File "(.+)", line (\d+), in (\S+)', text)):
        inside = [entry for entry in used if _file(entry[2]) == os.path.abspath(path)]
        for entry in sorted(inside, key=lambda entry: not _has_line(entry[2], int(line))):
            return (
                f"{_title(*entry)}: found {said} in {where}, line {line}; expected no error: "
                "correct it (--debug shows the traceback)"
            )
    if not used:
        return ""
    titles = "; ".join(_title(*entry) for entry in used)
    return (
        f"found {said} while this was in use: {titles}; expected methods that take and return "
        "what their base class says: correct them (--debug shows the traceback)"
    )


def _title(registry: Registry[Any], name: str, thing: Any) -> str:
    path = _file(thing)
    here = os.path.join(os.getcwd(), "")
    called = getattr(thing, "__name__", type(thing).__name__)
    return f"{registry.kind} {name!r} ({called} in {path.removeprefix(here) or 'memory'})"


def _file(thing: Any) -> str:
    """The file of a class or function; "" where it has none."""
    try:
        return os.path.abspath(inspect.getfile(thing))
    except (OSError, TypeError):
        return ""


def _digest(thing: Any) -> str:
    """SHA-256 of the file of a class or function, of a program its source alone; or ""."""
    try:
        if getattr(thing, "__module__", "") == "__main__":
            return hashlib.sha256(inspect.getsource(thing).encode()).hexdigest()
        with open(_file(thing), "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except (OSError, TypeError, UnicodeError):
        return ""


def _has_line(thing: Any, line: int) -> bool:
    try:
        source, first = inspect.getsourcelines(thing)
    except (OSError, TypeError):
        return False
    return first <= line < first + len(source)


def _own_module(name: str) -> ModuleType:
    """A module of this package, named as in superconext."""
    return importlib.import_module(_PACKAGE + name.removeprefix("superconext"))


def _module_of_file(path: str) -> ModuleType:
    """The module of a file, run once in a process."""
    name = f"{_OF_FILE}{abs(hash(path))}"
    known = sys.modules.get(name)
    if known is not None:
        return known
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
