r"""Patterns for untrusted text, matched by RE2: search time is linear in the text, whatever the pattern.

Python's ``re`` backtracks, so a crafted text can block the event loop for minutes. ``re`` remains only for patterns
that look at each character a bounded number of times, which ``tests/house/test_patterns.py`` checks.

RE2 knows no look-around and no back-references. ``\b``, ``\w``, ``\d`` and ``\s`` are ASCII, ``$`` is the very end.
Texts are searched as UTF-8: pass ``bytes`` where a text is searched often, or each call encodes it again.
To find *all* matches is linear only if no search reads far beyond the match that it finds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import AnyStr, Final, Protocol, TypeVar

import re2

Text_co = TypeVar("Text_co", str, bytes, covariant=True)

MAX_PATTERN_BYTES: Final = 8 << 20
"""RE2's memory for one pattern: a pattern that needs more is refused, a search that needs more gets slower."""


class Found(Protocol[Text_co]):
    """One match."""

    def __getitem__(self, group: int) -> Text_co: ...
    def start(self, group: int = 0) -> int: ...
    def end(self, group: int = 0) -> int: ...


class Linear(Protocol):
    """A compiled pattern, for ``str`` and for ``bytes`` in UTF-8."""

    def search(self, text: AnyStr, pos: int = 0) -> Found[AnyStr] | None: ...
    def match(self, text: AnyStr, pos: int = 0) -> Found[AnyStr] | None: ...
    def fullmatch(self, text: AnyStr) -> Found[AnyStr] | None: ...
    def finditer(self, text: AnyStr) -> Iterator[Found[AnyStr]]: ...
    def sub(self, repl: Callable[[Found[AnyStr]], AnyStr], text: AnyStr) -> AnyStr: ...


def linear(pattern: str) -> Linear:
    """Compile a pattern. Raises ``ValueError`` if RE2 does not support it or it is too large."""
    options = re2.Options()
    options.max_mem = MAX_PATTERN_BYTES
    options.log_errors = False
    try:
        compiled: Linear = re2.compile(pattern, options)
    except re2.error as error:
        raise ValueError(error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)) from error
    return compiled


def searchable(text: str) -> bytes:
    """The text as bytes to search, with surrogate halves, which UTF-8 does not allow."""
    return text.encode("utf-8", "surrogatepass")
