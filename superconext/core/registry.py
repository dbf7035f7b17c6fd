"""Registries: every kind of thing a contributor adds is found by name in one of these.

A registry knows the built-in entries without importing them, those that `register` adds, those
of installed packages (entry points of its group), and those that its environment variable
names. A class is imported when it is first asked for.

    [project.entry-points."superconext.objectives"]
    my_loss = "my_package.losses:MyLoss"
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Generic, TypeVar

from superconext.core.errors import ConfigError, UnregisteredError

T = TypeVar("T")


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
    """

    def __init__(
        self,
        kind: str,
        base: str | None,
        built_in: Mapping[str, Entry],
        variable: str | None = None,
    ) -> None:
        self.kind, self.base, self.built_in, self.variable = kind, base, dict(built_in), variable
        self.group = f"superconext.{kind}s".replace(" ", "_")
        self._added: dict[str, Entry | T] = {}
        self._packages: dict[str, Entry] | None = None
        if variable:
            self._read_variable(os.environ.get(variable, ""))

    def register(self, name: str, target: T | str, summary: str = "") -> None:
        """Add an entry: the class itself, or where it is (see `Entry`).

        A name may be registered again. Raises ConfigError for a name that is no identifier
        (dots and dashes are allowed inside) or belongs to a built-in entry.
        """
        if not name.replace("-", "_").replace(".", "_").isidentifier():
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
        """Raise ConfigError unless the name is known, with the nearest one that is."""
        if name in self:
            return
        near = difflib.get_close_matches(name, self.names(), 1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        own = f" or be named in {self.variable}={name}=path/to/file.py:Class" * bool(self.variable)
        raise UnregisteredError(
            f"{self.kind} = {name!r}: expected one of {', '.join(self.names())}{hint}; one of "
            f"your own has to be registered{own}"
        )

    def get(self, name: str) -> T:
        """The class behind a name. Raises ConfigError where it is unknown or of another kind."""
        self.check(name)
        entry = self._entry(name)
        if not isinstance(entry, Entry):
            return self._checked(name, entry, f"{entry!r} is no", "")
        path, _, attribute = entry.target.rpartition(":")
        if name in self.built_in:
            built_in: T = getattr(importlib.import_module(path), attribute)
            return built_in
        try:
            module = (
                _module_of_file(path) if path.endswith(".py") else importlib.import_module(path)
            )
        except Exception as error:  # whatever a user's own file does when it is run
            raise ConfigError(
                f"{self.kind} = {name!r}: {path} cannot be imported ({type(error).__name__}: "
                f"{error}); expected the module of {attribute}: correct it"
            ) from error
        return self._checked(name, getattr(module, attribute, None), f"{path} has no", attribute)

    def _checked(self, name: str, candidate: Any, lack: str, attribute: str) -> T:
        if self.base is None:
            right = callable(candidate)
            wanted = f"function or class {attribute}".rstrip()
        else:
            module, _, base_name = self.base.partition(":")
            base = getattr(importlib.import_module(module), base_name)
            right = isinstance(candidate, type) and issubclass(candidate, base)
            wanted = f"class {attribute} that extends".replace("  ", " ") + f" {module}.{base_name}"
        if not right:
            raise ConfigError(
                f"{self.kind} = {name!r}: {lack} {wanted}; expected one: register the right name"
            )
        return candidate  # type: ignore[no-any-return]

    def _entry(self, name: str) -> Entry | T:
        if name in self.built_in:
            return self.built_in[name]
        if name in self._added:
            return self._added[name]
        return self._from_packages()[name]

    def _from_packages(self) -> dict[str, Entry]:
        """Entry points of installed packages, looked up once, and only when they are needed."""
        if self._packages is None:
            from importlib.metadata import entry_points

            self._packages = {
                point.name: Entry(point.value, f"from {point.value}")
                for point in entry_points(group=self.group)
            }
        return self._packages

    def _read_variable(self, text: str) -> None:
        """Register what the environment variable lists; a wrong part is told and left out."""
        for part in filter(None, (piece.strip() for piece in text.split(","))):
            name, _, place = part.partition("=")
            path, _, attribute = place.rpartition(":")
            try:
                if not path.endswith(".py") or not attribute.isidentifier():
                    raise ConfigError(f"found {part!r}, expected name=path/to/file.py:Class")
                self.register(name.strip(), place, f"{attribute} of {os.path.basename(path)}")
            except ConfigError as error:
                warnings.warn(f"{self.variable}: {error}; it is left out", stacklevel=3)


def _module_of_file(path: str) -> ModuleType:
    """The module of a file, run once in a process."""
    name = f"superconext_own_{abs(hash(path))}"
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
