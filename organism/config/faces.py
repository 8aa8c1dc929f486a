"""Packages above a prefix: they are shared by all sets and by others, and each set sees its own modules below them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any, Final

_ITS_OWN: Final = ("__package__", "__loader__", "__spec__", "__file__", "__path__")
"""What every module has of itself, so that it is not asked for in vain."""


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


def cut(joints: Iterable[str]) -> None:
    """Take what lies at the joints from the packages that they are in: it is imported anew, and not found there."""
    for joint in joints:
        package, _, tail = joint.rpartition(".")
        if package in sys.modules:
            vars(sys.modules[package]).pop(tail, None)


def join(joints: Iterable[str]) -> None:
    """Let the packages have again what ``sys.modules`` shows at the joints."""
    for joint in joints:
        package, _, tail = joint.rpartition(".")
        if package in sys.modules and joint in sys.modules:
            vars(sys.modules[package])[tail] = sys.modules[joint]
