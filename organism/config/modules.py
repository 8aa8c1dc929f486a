"""Handler modules, imported as one set that never changes after it was loaded.

The naive way is ``importlib.reload``: it changes modules in place, so a handling that runs would wake up in other
code, and one fault in the third module leaves two new ones. Here each load makes fresh module objects for everything
below the prefixes, and these rules hold:

* A module is found beside organism.yaml first, and keeps its own dotted name. Its source is read once and compiled
  from what was read; compiled files (``.pyc``) are neither used nor written, since two edits within one second look
  alike to them.
* While a load runs, and after it went well, ``sys.modules`` shows the new set and nothing else below its prefixes.
  If it fails, ``sys.modules`` shows again what it showed before. Two loads must not run at the same time in two
  threads.
* What lies beside or above a prefix is not made anew: with the prefix ``a.b.c``, the packages ``a`` and ``a.b`` and
  their other modules stay the objects that they are, if Python or an earlier load has them, and are made once if not.
  Only a package of another place that has the same name gives way. Within the set each package above a prefix has a
  face: all that it has, but below the prefix the modules of the set (adr/0040).
* All that the modules import below the same top names belongs to the set and runs at load, what is imported inside
  functions too: code comes in at a start or by a reload, never in between (S16). A module that is only imported
  inside a function or a ``try`` may fail; its error is raised where it is imported.
* An import statement of a loaded module, whenever it runs, gives modules of its own set. So a handling that outlives
  a reload stays in the code with which it began, and two organisms with a package ``handlers`` each never mix, though
  ``sys.modules`` has room for one. (Only ``importlib.import_module``, called while a handler runs, sees what
  ``sys.modules`` shows.)
* Annotations of dataclasses that stand as text are resolved at load: later they would be looked up in ``sys.modules``.
* The package ``organism`` itself, and what lies outside the top names, is imported as ever and never anew.
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
from typing import Any, Final

from organism.config.foreign import Outcome, attempt
from organism.config.sources import Source, Sources

_ITS_OWN: Final = ("__package__", "__loader__", "__spec__", "__file__", "__path__")
"""What every module has of itself, so that it is not asked for in vain."""


class ModuleSet:
    """The modules of one load. Once it is complete, nothing in it changes."""

    def __init__(self, sources: Sources, kept: Mapping[str, ModuleType]) -> None:
        """``kept`` are modules that an earlier set of the organism made, and that are not made anew."""
        self.sources = sources
        self._kept = kept
        self._others: dict[str, ModuleType] = {}
        self._python_import = builtins.__import__
        self._modules: dict[str, ModuleType] = {}
        self._failures: dict[str, BaseException] = {}
        self._is_complete = False

    def begin(self, before: Mapping[str, ModuleType], made: Mapping[str, ModuleType]) -> Mapping[str, ModuleType]:
        """What of ``before`` stays while the set is loaded; ``made`` is what the organism's last set made of it."""
        sources = self.sources
        tops = {name for name in before if "." not in name and self._is_ours(name, before[name])}
        others = {name: module for name, module in before.items() if made.get(name) is not module}
        self._others = {
            name: module
            for name, module in others.items()
            if not sources.renews(name) and (name.partition(".")[0] in tops or not sources.owns(name))
        }
        return {**self._others, **self._kept}

    def _is_ours(self, top: str, module: ModuleType) -> bool:
        """Whether a top module that is there already is the one that the set would have."""
        if top in self._kept:
            return module is self._kept[top]
        return top not in self.sources.tops or _lies_at(module, self.sources.find(top))

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
        for name, module in self.made.items():
            if name not in self._kept:
                _resolve_annotations(module)
        self._is_complete = True
        return self._failures

    @property
    def made(self) -> Mapping[str, ModuleType]:
        """Those that this set made, or an earlier one of the organism: all but what others had loaded before."""
        return {name: module for name, module in self._modules.items() if self._others.get(name) is not module}

    def loaded(self, name: str) -> ModuleType | None:
        """The set's module of that name; None if it was not loaded. Nothing is imported for it."""
        return self._modules.get(name)

    def show(self) -> None:
        """Let ``sys.modules`` show this set below its top names."""
        _replace(self.sources.tops, {**_shown(self.sources.tops), **self._modules})
        _join(self.sources.joints)

    def hide(self) -> None:
        """Take from ``sys.modules`` what is of this set."""
        for name, module in self.made.items():
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
        if not self._is_complete or not self._holds(full):
            module = self._python_import(name, globals, locals, fromlist or (), level)
            return (
                module if "*" in (fromlist or ()) else self._face(full if fromlist else full.partition(".")[0], module)
            )
        module = self._expect(full)
        if not fromlist:
            return self._expect(full.partition(".")[0])
        for part in fromlist:
            if not hasattr(module, part) and f"{full}.{part}" in self._failures:
                raise self._failures[f"{full}.{part}"].with_traceback(None)
        return module

    def _holds(self, name: str) -> bool:
        return name in self._modules or name in self._failures or self.sources.renews(name)

    def _face(self, name: str, module: ModuleType) -> ModuleType:
        return Face(module, self._below) if name in self.sources.above else module

    def _below(self, name: str) -> ModuleType | None:
        """The set's own view of a module that lies below a face; None if it has none of its own."""
        if name not in self.sources.above and not self.sources.renews(name):
            return None
        module = (self._modules if self._is_complete else sys.modules).get(name)
        return None if module is None else self._face(name, module)

    def _expect(self, name: str) -> ModuleType:
        if name in self._modules:
            return self._face(name, self._modules[name])
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
        made = self.current.made if self.current else {}
        modules = _next_set(folder, prefixes, self.current)
        tops = modules.sources.tops | (self.current.sources.tops if self.current else frozenset())
        before = _shown(tops)
        finder = _Finder(modules)
        _replace(tops, modules.begin(before, made))
        _cut(modules.sources.joints)
        sys.meta_path.insert(0, finder)
        taken = False
        try:
            yield modules
            taken = True
        finally:
            sys.meta_path.remove(finder)
            if not taken:
                _replace(tops, before)
                _join(modules.sources.joints)
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


def _next_set(folder: Path, prefixes: tuple[str, ...], last: ModuleSet | None) -> ModuleSet:
    """A set to be loaded: what the last one made beside or above the prefixes is kept, with its source."""
    sources = Sources(folder, prefixes)
    made = last.made if last is not None else {}
    kept = {name: module for name, module in made.items() if sources.owns(name) and not sources.renews(name)}
    if last is None or not kept:
        return ModuleSet(sources, {})
    known = {name: source for name in kept if (source := last.sources.find(name)) is not None}
    return ModuleSet(Sources(folder, prefixes, known), kept)


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


def _lies_at(module: ModuleType, source: Source | None) -> bool:
    """Whether a module that is loaded comes from there. What is not written in Python has one place only."""
    if source is None:
        return True
    if source.file is not None:
        file = getattr(module, "__file__", None)
        return isinstance(file, str) and Path(file).resolve() == source.file.resolve()
    folders = {Path(folder).resolve() for folder in getattr(module, "__path__", ())}
    return folders.issuperset(Path(folder).resolve() for folder in source.folders)


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


# ── packages above a prefix ──────────────────────────────────────────────────────────────────────────────────────────


class Face(ModuleType):
    """A package as one set sees it: the set's own modules, all else as the package has it, changes too.

    ``below`` gives the set's module of a full name, or None if the set has none of its own there.
    """

    def __init__(self, package: ModuleType, below: Callable[[str], ModuleType | None]) -> None:
        super().__init__(package.__name__, package.__doc__)
        vars(self).update({name: vars(package)[name] for name in _ITS_OWN if name in vars(package)})
        vars(self).update(_package=package, _below=below)

    def __getattr__(self, name: str) -> Any:
        mine = vars(self)["_below"](f"{self.__name__}.{name}")
        return getattr(vars(self)["_package"], name) if mine is None else mine

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(vars(self)["_package"], name, value)

    def __dir__(self) -> list[str]:
        return dir(vars(self)["_package"])


def _cut(joints: Iterable[str]) -> None:
    """Take what lies at the joints from the packages that they are in: it is imported anew, and not found there."""
    for joint in joints:
        package, _, tail = joint.rpartition(".")
        if package in sys.modules:
            vars(sys.modules[package]).pop(tail, None)


def _join(joints: Iterable[str]) -> None:
    """Let the packages have again what ``sys.modules`` shows at the joints."""
    for joint in joints:
        package, _, tail = joint.rpartition(".")
        if package in sys.modules and joint in sys.modules:
            vars(sys.modules[package])[tail] = sys.modules[joint]
