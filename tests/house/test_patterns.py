"""Every pattern that Python's ``re`` runs takes time in proportion to the text, however the text is made (S13)."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import pytest

import organism
from tests.growth import growth_fault

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

MOST: Final = 64 << 10
PARTS: Final = re.compile(r"[A-Za-z]{2,}|[^\\]")
"""What texts are made of that hurt a pattern: the words and the characters that it speaks of."""
ALWAYS: Final = ("a", "A", "0", " ", "-", ".", "_", "\n", "<", '"', "a ", "0.", "a-", "\u00e9")
TRIED_ONCE: Final = frozenset(
    {
        "organism.agents.conversation:_FENCED",
        "organism.agents.written_calls:_BEGUN",
        "organism.agents.written_calls:_LINE_ENDS",
        "organism.agents.written_calls:_LIST_ENDS",
        "organism.agents.written_calls:_TOKEN",
        "organism.config.host_rules:_IS_NUMBER",
        "organism.server.json:_AFTER_STRING",
        "organism.server.json:_IN_STRING",
        "organism.server.json:_TOKEN",
        "organism.server.json:_WHOLE_NUMBER",
        "organism.tools.urls:_URL",
    }
)
"""Patterns that are tried at one place of a text alone (``match`` and ``fullmatch``), never searched for."""


def patterns() -> dict[str, re.Pattern[Any]]:
    """Each pattern that a module of the package holds, by the place of the first that holds it."""
    found: dict[str, re.Pattern[Any]] = {}
    for module in pkgutil.walk_packages(organism.__path__, "organism."):
        if module.name.endswith("__main__"):
            continue
        for name, value in vars(importlib.import_module(module.name)).items():
            for pattern in _held(value):
                if pattern not in found.values():
                    found[f"{module.name}:{name}:{len(found)}"] = pattern
    return found


def _held(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, tuple | list | frozenset):
        for each in value:
            yield from _held(each)
    elif isinstance(value, dict):
        yield from _held(list(value.values()))


def test_each_pattern_takes_time_in_proportion_to_the_text() -> None:
    found = patterns()
    assert len(found) > 20
    for place, pattern in found.items():
        source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
        for unit in dict.fromkeys((*ALWAYS, *PARTS.findall(source))):
            fault = growth_fault(partial(_search, place, pattern, unit), MOST)
            assert fault == "", f"{place}: {pattern.pattern!r} of many {unit!r}"


def _search(place: str, pattern: re.Pattern[Any], unit: str, size: int) -> Callable[[], object]:
    text: Any = (unit * size)[:size]
    text = text if isinstance(pattern.pattern, str) else text.encode("latin-1")
    if place.rpartition(":")[0] in TRIED_ONCE:
        return lambda: (pattern.match(text), pattern.fullmatch(text))
    return lambda: deque(pattern.finditer(text), 0)
