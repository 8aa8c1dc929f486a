"""The repository as the house sees it: text files with their syntax trees."""

from __future__ import annotations

import ast
import subprocess
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
        return Source(path, (ROOT / path).read_text("utf-8"))
    except UnicodeDecodeError:
        return None
