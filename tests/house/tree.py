"""The repository as the house sees it: text files with their syntax trees, and rules that look at them."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Source:
    """One text file. ``path`` is relative to the root, with slashes."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax; empty for what is not Python."""
        return ast.parse(self.text if self.path.endswith(".py") else "")

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the tree: most rules look at all of them, and walking takes longer than looking."""
        return tuple(ast.walk(self.tree))

    def is_in(self, *places: str) -> bool:
        """Whether this is one of the files, or lies in one of the folders (named with a slash at their end)."""
        return any(self.path == place or (place.endswith("/") and self.path.startswith(place)) for place in places)


@dataclass(frozen=True, slots=True)
class Finding:
    """A place where a rule is broken."""

    path: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


Look = Callable[[Sequence[Source]], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A sentence of the house, and the look that finds what breaks it.

    ``bad`` and ``good`` are samples: each bad one must be found and no good one may be, so that a blind rule fails.
    """

    sentence: str
    look: Look
    bad: tuple[Source, ...]
    good: tuple[Source, ...] = ()


def sample(text: str, path: str = "organism/pump/somewhere.py") -> Source:
    """A file made up for a rule's samples."""
    return Source(path, text)


def each(look: Callable[[Source], Iterable[Finding]], *places: str, but: tuple[str, ...] = ()) -> Look:
    """A look at each file by itself, in ``places`` (everywhere if none is named) without ``but``."""

    def look_at_all(sources: Sequence[Source]) -> Iterator[Finding]:
        for source in sources:
            if (not places or source.is_in(*places)) and not source.is_in(*but):
                yield from look(source)

    return look_at_all


def dotted(node: ast.AST) -> str:
    """``a.b.c`` for a name or a chain of attributes; what stands before a call or a subscript is left out: ``.c``."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return ""


@cache
def read_repository() -> tuple[Source, ...]:
    """Each text file that git knows or would take."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],  # noqa: S607 - git is found by PATH
        cwd=ROOT,
        capture_output=True,
        check=True,
        text=True,
    )
    paths = sorted({path for path in listing.stdout.split("\0") if path and (ROOT / path).is_file()})
    return tuple(source for path in paths if (source := _read(path)) is not None)


def _read(path: str) -> Source | None:
    try:
        return sample((ROOT / path).read_text("utf-8"), path)
    except UnicodeDecodeError:
        return None
