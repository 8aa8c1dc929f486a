"""Handler modules, imported as one set that never changes after it was loaded.

``importlib.reload`` changes modules in place, under handlings that run. Here each load makes new module objects for all
that lies below the top names of the prefixes (``a`` for the prefix ``a.b``), and these rules hold:

* A module is looked up next to organism.yaml first, and keeps its own dotted name. Its source is read once; compiled
  files (``.pyc``) are neither used nor written, since they cannot tell apart two edits within one second.
* From then on ``sys.modules`` shows the new set and nothing else below its top names; if the load fails, what it showed
  before. Two loads must not run at the same time in two threads.
* All that the modules import below the top names belongs to the set and runs at load, what is imported inside
  functions too: code comes in at a start or by a reload, never in between (S16). A module that is only imported
  inside a function or a ``try`` may fail; its error is raised where it is imported.
* An import statement of a loaded module, whenever it runs, gives modules of its own set: a handling that outlives a
  reload stays in its code, and two organisms never mix. (Only ``importlib.import_module`` sees ``sys.modules``.)
* Annotations of dataclasses that stand as text are resolved at load: later they would be looked up in ``sys.modules``.
* The package ``organism`` itself, and what lies outside the top names, is imported as usual and never reloaded.
"""

from __future__ import annotations

import ast
import builtins
import dataclasses
import hashlib
import importlib
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from importlib.util import resolve_name
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Final

from organism.config.foreign_code import Outcome, attempt

PROGRAM: Final = "organism"
"""Organism's own package: never reloaded, since its classes are the program's."""


class ModuleSet(MetaPathFinder):
    """The modules of one load, below the top names of the prefixes. Once it is complete, nothing in it changes."""

    def __init__(self, folder: Path, prefixes: Iterable[str]) -> None:
        self.sources = Sources(folder, {prefix.partition(".")[0] for prefix in prefixes} - {PROGRAM})
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
        """Run what the roots import inside functions, resolve annotations; gives failed modules' errors by name."""
        for source in self.sources.closure(roots):
            self.load(source.name)
        self._modules = _shown(self.sources.tops)
        for module in self._modules.values():
            _resolve_annotations(module)
        self._is_complete = True
        return self._failures

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """Give the import system the set's sources while the set is being loaded."""
        source = self.sources.find(fullname)
        if source is None:
            return None
        if source.spec.origin is not None:
            source.spec.loader = _Loader(source, self.builtins)
        return source.spec

    def loaded(self, name: str) -> ModuleType | None:
        """The set's module of that name; None if it was not loaded. Nothing is imported for it."""
        return self._modules.get(name)

    def show(self) -> None:
        """Let ``sys.modules`` show this set below its top names."""
        _replace(self.sources.tops, self._modules)

    def hide(self) -> None:
        """Remove the modules of this set from ``sys.modules``."""
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

    The prefixes of the first load that succeeds are allowed for good: a reload may drop one, never add one (S16).
    """

    def __init__(self) -> None:
        self.allowed: tuple[str, ...] | None = None
        self.current: ModuleSet | None = None

    def allows(self, prefix: str) -> bool:
        """Whether modules below ``prefix`` may be imported by this organism."""
        return self.allowed is None or any(is_below(prefix, allowed) for allowed in self.allowed)

    @contextmanager
    def fresh(self, folder: Path, prefixes: tuple[str, ...]) -> Iterator[ModuleSet]:
        """A new set to load within the block: taken over if the block succeeds, dropped if it raises."""
        importlib.invalidate_caches()
        modules = ModuleSet(folder, prefixes)
        tops = modules.sources.tops | (self.current.sources.tops if self.current else frozenset())
        before = _shown(tops)
        _replace(tops, {})
        sys.meta_path.insert(0, modules)
        shown_after = before
        try:
            yield modules
            shown_after = _shown(tops)
        finally:
            sys.meta_path.remove(modules)
            _replace(tops, shown_after)
        self.current = modules
        if self.allowed is None:
            self.allowed = prefixes

    def restore(self, modules: ModuleSet) -> None:
        """Show an earlier set again: what was loaded after it is dropped."""
        self.close()
        modules.show()
        self.current = modules

    def close(self) -> None:
        """Remove from ``sys.modules`` what this organism put there."""
        if self.current is not None:
            self.current.hide()
            self.current = None


def is_below(name: str, prefix: str) -> bool:
    """Whether a dotted name is the prefix or lies below it."""
    return name == prefix or name.startswith(f"{prefix}.")


class _Loader(SourceFileLoader):
    """Runs a module from the text that was read, never from a compiled file."""

    def __init__(self, source: Source, its_builtins: Callable[[], dict[str, Any]]) -> None:
        super().__init__(source.spec.name, str(source.spec.origin))
        self._source = source
        self._builtins = its_builtins

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = self._builtins()
        super().exec_module(module)

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - the loader's own signature
        if isinstance(self._source.error, OSError):
            raise self._source.error
        code: CodeType = self.source_to_code(self._source.text, self.path)
        return code


def _shown(tops: frozenset[str]) -> dict[str, ModuleType]:
    """What ``sys.modules`` shows below the top names."""
    return {name: module for name, module in list(sys.modules.items()) if name.partition(".")[0] in tops}


def _replace(tops: frozenset[str], modules: Mapping[str, ModuleType]) -> None:
    for name in _shown(tops):
        del sys.modules[name]
    sys.modules.update(modules)


def _resolve_annotations(module: ModuleType) -> None:
    """Replace annotations that are text by their types; a failure is reported when the schema is made."""
    for kind in list(vars(module).values()):
        if isinstance(kind, type) and kind.__module__ == module.__name__ and dataclasses.is_dataclass(kind):
            hints = attempt(partial(typing.get_type_hints, kind, include_extras=True)).result or {}
            own = vars(kind).get("__annotations__", {})
            own.update({name: hints[name] for name, hint in own.items() if isinstance(hint, str) and name in hints})
            for each in dataclasses.fields(kind):
                if isinstance(each.type, str) and each.name in hints:
                    each.type = hints[each.name]


# ── the sources ──────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Source:
    """One module; its ``spec`` has no origin if it is a folder without ``__init__.py``.

    ``imports`` are the modules that its import statements may mean, those inside functions included, those for type
    checkers alone not. ``error`` says why it cannot be read or parsed.
    """

    spec: ModuleSpec
    text: bytes = b""
    imports: tuple[str, ...] = ()
    error: Exception | None = None

    @property
    def name(self) -> str:
        """Its dotted name."""
        return self.spec.name


class Sources:
    """The sources below the top names, each read once: next to organism.yaml, else as installed.

    Which modules belong together is read from their import statements. That is how a listener's version knows of a
    helper module that changed, and how a load finds what is imported inside functions.
    """

    def __init__(self, folder: Path, tops: Iterable[str]) -> None:
        self.folder = folder
        self.tops = frozenset(tops)
        self._found = {top: _read(PathFinder.find_spec(top, [str(folder)]) or _installed(top)) for top in self.tops}

    def owns(self, module: str) -> bool:
        """Whether the module lies below one of the top names."""
        return module.partition(".")[0] in self.tops

    def find(self, module: str) -> Source | None:
        """The source of a module; None if it is not owned, or not written in Python."""
        if module not in self._found and self.owns(module):
            owner = self.find(module.rpartition(".")[0])
            folders = owner.spec.submodule_search_locations if owner is not None else None
            self._found[module] = _read(PathFinder.find_spec(module, folders)) if folders else None
        return self._found.get(module)

    def closure(self, modules: Iterable[str]) -> tuple[Source, ...]:
        """The modules with all that they import and the packages that they lie in, as far as owned; sorted by name."""
        reached: dict[str, Source] = {}
        ahead = list(modules)
        while ahead:
            name = ahead.pop()
            source = self.find(name) if name not in reached else None
            if source is not None:
                reached[name] = source
                ahead += [*source.imports, name.rpartition(".")[0]]
        return tuple(reached[name] for name in sorted(reached))

    def fingerprint(self, modules: Iterable[str]) -> bytes:
        """The SHA-256 of the names and texts of ``closure(modules)``."""
        digest = hashlib.sha256()
        for source in self.closure(modules):
            digest.update(f"{source.name}:{len(source.text)}:".encode())
            digest.update(source.text)
        return digest.digest()


def _installed(top: str) -> ModuleSpec | None:
    """The top module as the import system finds it."""
    specs = (finder.find_spec(top, None) for finder in sys.meta_path)
    return next((found for found in specs if found is not None), None)


def _read(spec: ModuleSpec | None) -> Source | None:
    """The source of the module; None if there is none, or it is not written in Python."""
    if spec is None:
        return None
    if spec.submodule_search_locations is not None:
        spec.submodule_search_locations = [*spec.submodule_search_locations]  # a list that follows no sys.path
    if spec.origin is None:
        return Source(spec)
    if not spec.origin.endswith(".py"):
        return None
    text = b""
    try:
        text = Path(spec.origin).read_bytes()
        tree = ast.parse(text, spec.origin)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return Source(spec, text, error=error)
    return Source(spec, text, tuple(_imported(tree, spec.parent or "")))


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    for node in _run(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            with suppress(ImportError):  # a name that leads out of its package, which Python will refuse
                owner = resolve_name("." * node.level + (node.module or ""), package)
                yield from (owner, *(f"{owner}.{alias.name}" for alias in node.names))


def _run(tree: ast.Module) -> Iterator[ast.AST]:
    """Every node that can run: what is below ``if TYPE_CHECKING`` is left out."""
    ahead: list[ast.AST] = [tree]
    while ahead:
        node = ahead.pop()
        yield node
        is_for_types = isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}
        ahead += node.orelse if is_for_types and isinstance(node, ast.If) else ast.iter_child_nodes(node)
