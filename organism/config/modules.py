"""Handler modules, imported as one set that never changes after it was loaded.

The naive way is ``importlib.reload``: it changes modules in place, so a handling that runs would wake up in other
code, and one fault in the third module leaves two new ones. Here each load makes fresh module objects for everything
below the prefixes, and these rules hold:

* A module is found beside organism.yaml first, and keeps its own dotted name. Its source is read once and compiled
  from what was read; compiled files (``.pyc``) are neither used nor written, since two edits within one second look
  alike to them.
* While a load runs, and after it went well, ``sys.modules`` shows the new set and nothing else below its top names.
  If it fails, ``sys.modules`` shows again what it showed before. Two loads must not run at the same time in two
  threads.
* All that the modules import below the same top names belongs to the set and runs at load, what is imported inside
  functions too: code comes in at a start or by a reload, never in between (S16). A module that is only imported
  inside a function or a ``try`` may fail; its error is raised where it is imported.
* An import statement of a loaded module, whenever it runs, gives modules of its own set. So a handling that outlives
  a reload stays in the code with which it began, and two organisms with a package ``handlers`` each never mix, though
  ``sys.modules`` has room for one. (Only ``importlib.import_module``, called while a handler runs, sees what
  ``sys.modules`` shows.)
* Annotations of dataclasses that stand as text are resolved at load: later they would be looked up in ``sys.modules``.
* The package ``organism`` itself, and what lies outside the prefixes, is imported as ever and never anew.
"""

from __future__ import annotations

import builtins
import dataclasses
import importlib
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import resolve_name, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from organism.config.foreign import Outcome, attempt
from organism.config.sources import Source, Sources


class ModuleSet:
    """The modules of one load. Once it is complete, nothing in it changes."""

    def __init__(self, sources: Sources) -> None:
        self.sources = sources
        self._python_import = builtins.__import__
        self._modules: dict[str, ModuleType] = {}
        self._failures: dict[str, BaseException] = {}
        self._is_complete = False

    def load(self, name: str) -> Outcome[ModuleType]:
        """Import a module while the set is being loaded; one that failed is not run again."""
        if name in self._failures:
            return Outcome(error=self._failures[name])
        outcome = attempt(partial(importlib.import_module, name))
        if outcome.error is not None:
            self._failures[name] = outcome.error
        return outcome

    def complete(self, roots: Iterable[str]) -> Mapping[str, BaseException]:
        """Run what the roots import inside functions, resolve annotations, and take what ``sys.modules`` now shows.

        Gives the error of each module that failed, by name.
        """
        for source in self.sources.closure(roots):
            self.load(source.name)
        self._modules = _shown(self.sources.tops)
        for module in self._modules.values():
            _resolve_annotations(module)
        self._is_complete = True
        return self._failures

    def loaded(self, name: str) -> ModuleType | None:
        """The set's module of that name; None if it was not loaded. Nothing is imported for it."""
        return self._modules.get(name)

    def show(self) -> None:
        """Let ``sys.modules`` show this set below its top names."""
        _replace(self.sources.tops, self._modules)

    def hide(self) -> None:
        """Take from ``sys.modules`` what is of this set."""
        for name, module in self._modules.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]

    def builtins(self) -> dict[str, Any]:
        """What the set's modules have as ``__builtins__``: Python's, with an import that stays in the set."""
        return {**vars(builtins), "__import__": self._import}

    def _import(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,  # noqa: A002 - named as in Python's own __import__
        locals: Mapping[str, Any] | None = None,  # noqa: A002 - named as in Python's own __import__
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> ModuleType:
        full = resolve_name("." * level + name, str((globals or {})["__package__"])) if level else name
        if not self._is_complete or not self.sources.owns(full):
            return self._python_import(name, globals, locals, fromlist or (), level)
        module = self._expect(full)
        if not fromlist:
            return self._expect(full.partition(".")[0])
        for part in fromlist:
            if not hasattr(module, part) and f"{full}.{part}" in self._failures:
                raise self._failures[f"{full}.{part}"].with_traceback(None)
        return module

    def _expect(self, name: str) -> ModuleType:
        if name in self._modules:
            return self._modules[name]
        if name in self._failures:
            raise self._failures[name].with_traceback(None)
        raise ModuleNotFoundError(f"No module named {name!r} among those loaded with organism.yaml", name=name)


class Importer:
    """The imports of one organism: which prefixes it allows, and which set it shows.

    The prefixes of the first load that goes well are allowed for good: a reload may drop one, never add one (S16).
    """

    def __init__(self) -> None:
        self.allowed: tuple[str, ...] | None = None
        self.current: ModuleSet | None = None

    def allows(self, prefix: str) -> bool:
        """Whether modules below ``prefix`` may be imported by this organism."""
        return self.allowed is None or any(is_below(prefix, allowed) for allowed in self.allowed)

    @contextmanager
    def fresh(self, folder: Path, prefixes: tuple[str, ...]) -> Iterator[ModuleSet]:
        """A new set to load within the block: taken over if the block goes well, dropped if it raises."""
        importlib.invalidate_caches()
        modules = ModuleSet(Sources(folder, prefixes))
        tops = modules.sources.tops | (self.current.sources.tops if self.current else frozenset())
        before = _shown(tops)
        finder = _Finder(modules)
        _replace(tops, {})
        sys.meta_path.insert(0, finder)
        taken = False
        try:
            yield modules
            taken = True
        finally:
            sys.meta_path.remove(finder)
            if not taken:
                _replace(tops, before)
        self.current = modules
        if self.allowed is None:
            self.allowed = prefixes

    def take_back(self, modules: ModuleSet) -> None:
        """Show an earlier set again: what was loaded after it is not used after all."""
        if self.current is not None:
            self.current.hide()
        modules.show()
        self.current = modules

    def close(self) -> None:
        """Take from ``sys.modules`` what this organism put there."""
        if self.current is not None:
            self.current.hide()
            self.current = None


def is_below(name: str, prefix: str) -> bool:
    """Whether a dotted name is the prefix or lies below it."""
    return name == prefix or name.startswith(f"{prefix}.")


class _Finder(MetaPathFinder):
    """Gives the import system the set's sources while the set is being loaded."""

    def __init__(self, modules: ModuleSet) -> None:
        self._modules = modules

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        sources = self._modules.sources
        source = sources.find(fullname) if sources.owns(fullname) else None
        if source is None:
            return None
        if source.file is None:
            folder = ModuleSpec(fullname, None, is_package=True)
            folder.submodule_search_locations = list(source.folders)
            return folder
        loader = _Loader(source, self._modules.builtins)
        return spec_from_file_location(
            fullname, source.file, loader=loader, submodule_search_locations=list(source.folders) or None
        )


class _Loader(SourceFileLoader):
    """Runs a module from the text that was read, never from a compiled file."""

    def __init__(self, source: Source, its_builtins: Callable[[], dict[str, Any]]) -> None:
        super().__init__(source.name, str(source.file))
        self._source = source
        self._builtins = its_builtins

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = self._builtins()
        super().exec_module(module)

    def get_data(self, path: str) -> bytes:
        if path != self.path:
            return super().get_data(path)
        if isinstance(self._source.error, OSError):
            raise self._source.error
        return self._source.text

    def path_stats(self, path: str) -> Mapping[str, Any]:  # noqa: ARG002 - the loader's own signature
        raise OSError("a compiled file is neither read nor written")


def _shown(tops: frozenset[str]) -> dict[str, ModuleType]:
    """What ``sys.modules`` shows below the top names."""
    return {name: module for name, module in list(sys.modules.items()) if name.partition(".")[0] in tops}


def _replace(tops: frozenset[str], modules: Mapping[str, ModuleType]) -> None:
    for name in _shown(tops):
        del sys.modules[name]
    sys.modules.update(modules)


def _resolve_annotations(module: ModuleType) -> None:
    for kind in list(vars(module).values()):
        if isinstance(kind, type) and kind.__module__ == module.__name__ and dataclasses.is_dataclass(kind):
            hints = attempt(partial(typing.get_type_hints, kind, include_extras=True)).result
            _settle(kind, hints or {})


def _settle(kind: type[Any], hints: Mapping[str, Any]) -> None:
    """Put the resolved types where the texts stood; what could not be resolved is told when its schema is made."""
    own = vars(kind).get("__annotations__", {})
    own.update({name: hints[name] for name, hint in own.items() if isinstance(hint, str) and name in hints})
    for each in dataclasses.fields(kind):
        if isinstance(each.type, str) and each.name in hints:
            each.type = hints[each.name]
