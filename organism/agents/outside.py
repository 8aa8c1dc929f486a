"""The texts of others that a run has read: a call that repeats their words is none of the model's (S20)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

_SPACE: Final = re.compile(r"\s+")


class Outside:
    """What others have written and the run has read: messages but the console's, and the results of calls."""

    def __init__(self) -> None:
        self._texts: list[str] = []

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
