"""The sources of handler modules, each read once: what a load runs is what it read, whatever the disk does meanwhile.

Which modules belong together is read from their import statements. That is how a listener's version knows of a helper
module that changed, and how a load finds what is imported inside functions.
"""

from __future__ import annotations

import ast
import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

PROGRAM: Final = "organism"
"""Organism's own package: never read anew, since its classes are the program's."""


@dataclass(frozen=True, slots=True)
class Source:
    """One module. ``file`` is None for a folder without ``__init__.py``; ``folders`` is where a package's modules lie.

    ``imports`` are the modules that its import statements may mean, those inside functions included, those for type
    checkers alone not. ``error`` says why it cannot be read or parsed.
    """

    name: str
    file: Path | None
    text: bytes
    folders: tuple[str, ...]
    imports: tuple[str, ...] = ()
    error: Exception | None = None


class Sources:
    """The modules below the prefixes' top names: beside organism.yaml if they are there, else where Python finds them.

    ``kept`` are sources of an earlier load whose modules are not made anew. ``joints`` are the prefixes that lie in a
    package which no prefix covers; ``above`` are those packages, up to the top.
    """

    def __init__(self, folder: Path, prefixes: Iterable[str], kept: Mapping[str, Source] | None = None) -> None:
        self.folder = folder
        self._prefixes = tuple(prefix for prefix in prefixes if prefix.partition(".")[0] != PROGRAM)
        self.tops = frozenset(prefix.partition(".")[0] for prefix in self._prefixes)
        self.above = frozenset(
            name for prefix in self._prefixes for name in _packages_of(prefix) if not self.renews(name)
        )
        self.joints = tuple(prefix for prefix in self._prefixes if prefix.rpartition(".")[0] in self.above)
        self._found: dict[str, Source | None] = dict(kept or {})
        for top in sorted(self.tops.difference(self._found)):
            self._found[top] = _look((str(folder),), top, top) or _installed(top)

    def owns(self, module: str) -> bool:
        """Whether the module lies below one of the top names."""
        return module.partition(".")[0] in self.tops

    def renews(self, module: str) -> bool:
        """Whether each load makes the module anew: it is a prefix, or lies below one."""
        return any(module == prefix or module.startswith(f"{prefix}.") for prefix in self._prefixes)

    def find(self, module: str) -> Source | None:
        """The source of a module that is owned; None if there is none in Python."""
        if module not in self._found:
            package, _, tail = module.rpartition(".")
            owner = self.find(package) if package else None
            self._found[module] = _look(owner.folders, tail, module) if owner is not None else None
        return self._found[module]

    def closure(self, modules: Iterable[str]) -> tuple[Source, ...]:
        """The modules with all that they import and the packages that they lie in, as far as owned; sorted by name."""
        reached: dict[str, Source] = {}
        ahead = list(modules)
        while ahead:
            name = ahead.pop()
            source = self.find(name) if name not in reached and self.owns(name) else None
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


def _packages_of(module: str) -> Iterator[str]:
    """The packages that it lies in, the nearest first."""
    while module := module.rpartition(".")[0]:
        yield module


def _look(folders: Sequence[str], tail: str, module: str) -> Source | None:
    """The module in the folders, as Python would choose: a package, then a file, then a mere folder."""
    for folder in map(Path, folders):
        package = folder / tail / "__init__.py"
        if package.is_file():
            return _read(module, package, (str(package.parent),))
        if (folder / f"{tail}.py").is_file():
            return _read(module, folder / f"{tail}.py", ())
    portions = tuple(str(Path(folder) / tail) for folder in folders if (Path(folder) / tail).is_dir())
    return Source(module, None, b"", portions) if portions else None


def _installed(top: str) -> Source | None:
    """The top module as the import system finds it, if it is written in Python."""
    specs = (finder.find_spec(top, None) for finder in sys.meta_path)
    spec = next((found for found in specs if found is not None), None)
    if spec is None:
        return None
    folders = tuple(spec.submodule_search_locations or ())
    if spec.origin is not None and spec.origin.endswith(".py"):
        return _read(top, Path(spec.origin), folders)
    return Source(top, None, b"", folders) if folders and spec.origin is None else None


def _read(module: str, file: Path, folders: tuple[str, ...]) -> Source:
    text = b""
    try:
        text = file.read_bytes()
        tree = ast.parse(text, str(file))
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
        return Source(module, file, text, folders, error=error)
    package = module if folders else module.rpartition(".")[0]
    return Source(module, file, text, folders, tuple(_imported(tree, package)))


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    for node in _run(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            owner = _absolute(node, package)
            yield owner
            yield from (f"{owner}.{alias.name}" for alias in node.names)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    """The module that ``from … import`` names; empty if it leads out of its package, which Python will refuse."""
    steps = package.split(".")
    if node.level > len(steps):
        return ""
    above = steps[: len(steps) - node.level + 1] if node.level else []
    return ".".join([*above, node.module] if node.module else above)


def _run(tree: ast.Module) -> Iterator[ast.AST]:
    """Every node that can run: what stands below ``if TYPE_CHECKING`` is left out."""
    ahead: list[ast.AST] = [tree]
    while ahead:
        node = ahead.pop()
        yield node
        is_for_types = isinstance(node, ast.If) and ast.unparse(node.test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}
        ahead += node.orelse if is_for_types and isinstance(node, ast.If) else ast.iter_child_nodes(node)
