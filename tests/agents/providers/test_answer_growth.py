"""An answer is read in time linear in its length, however its calls come in pieces (S20)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from organism.agents.providers.answer import MOST_CALLS, Answer
from organism.agents.providers.failures import Access, Failures
from organism.agents.providers.openai import read_chunk
from tests.agents.providers.asking import request
from tests.agents.providers.odd_chat import call, calls
from tests.growth import growth_fault

pytestmark = pytest.mark.thorough

PIECES: dict[str, Callable[[int], Any]] = {
    "nothing but arguments": lambda _: call(0, None, None, "a"),
    "a name each time": lambda _: call(0, None, "f", "{"),
    "a name and text": lambda _: call(0, None, "f", '"'),
    "a name and what is closed": lambda at: call(0, None, "f", "x{}" if at else "{"),
    "an escape": lambda at: call(0, None, "f", "\\" if at else '{"a":"'),
    "a name and an id each time": lambda _: call(0, "a", "f", "{"),
    "an id of many, without an index": lambda at: call(
        None, f"c{at % MOST_CALLS}", None if at >= MOST_CALLS else "f", "{"
    ),
    "neither index nor id": lambda at: call(None, None, None if at else "f", "{"),
}
MOST_BYTES = 128 << 10


@pytest.mark.parametrize("name", PIECES)
def test_the_pieces_of_calls_cost_in_proportion_to_their_number(name: str) -> None:
    def prepare(size: int) -> Callable[[], object]:
        event = calls(*map(PIECES[name], range(size // 8)))
        failures = Failures(Access("http://localhost", None, None, needs_key=False), request("Hello!"), time.time)
        return lambda: list(read_chunk(Answer(failures), event))

    assert growth_fault(prepare, MOST_BYTES) == ""
