"""The texts from outside that a run has read (S20)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

_SPACE: Final = re.compile(r"\s+")


class Outside:
    """What strangers have written and the run has read. A run with any of it is tainted."""

    def __init__(self) -> None:
        self._texts: list[str] = []

    @property
    def is_read(self) -> bool:
        """Whether the run has read any."""
        return bool(self._texts)

    def add(self, text: str) -> None:
        """The run reads this text; of JSON each text in it, too."""
        self._texts += [_squeezed(each) for each in (text, *_texts_in(text))]

    def holds(self, source: str) -> bool:
        """Whether these words stand in a text from outside, spaces apart."""
        squeezed = _squeezed(source)
        return any(squeezed in text for text in self._texts)


def _squeezed(text: str) -> str:
    return _SPACE.sub("", text)


def _texts_in(text: str) -> Iterator[str]:
    try:
        value = orjson.loads(text)
    except ValueError:
        return
    ahead: list[Any] = [value]
    while ahead:
        value = ahead.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict):
            ahead += [*value, *value.values()]
        elif isinstance(value, list):
            ahead += value
