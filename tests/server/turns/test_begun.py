"""What counts as the begin of a run: an error before it is answered with its own status."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import pytest

from organism.errors import OrganismError
from organism.model.run import RunEntry
from organism.server.turns.follow import begun

PASSAGES: RunEntry = {"type": "data", "data": {"name": "passages", "data": {"index": "berlin", "passages": []}}}
MOOD: RunEntry = {"type": "data", "data": {"name": "mood", "data": {}}}
ENDS: tuple[RunEntry, ...] = (
    {"type": "error", "data": {"code": "upstream_error", "message": "It is down."}},
    {"type": "done", "data": {"stopReason": "error"}},
)


async def run(*entries: RunEntry) -> AsyncGenerator[RunEntry, None]:
    for entry in entries:
        yield entry


async def test_passages_that_were_looked_up_are_no_begin() -> None:
    with pytest.raises(OrganismError):
        await begun(run(PASSAGES, *ENDS))


async def test_what_an_agent_shows_is_a_begin() -> None:
    entries = await begun(run(PASSAGES, MOOD, *ENDS))
    assert [entry async for entry in entries] == [PASSAGES, MOOD, *ENDS]
