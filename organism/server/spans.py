"""Which spans of the log hold events of some types: whoever looks for others passes over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from organism.log.log import EventFilter, Log
from organism.log.spans import SPAN_EVENTS, span_of
from organism.model.events import Event

STEP_SPANS: Final = 8
"""So many spans are looked at in one go: others want the log's reading thread too."""
STEP_EVENTS: Final = STEP_SPANS * SPAN_EVENTS


async def stretch(log: Log, types: Sequence[str], after: int, until: int) -> tuple[int, int]:
    """The next positions that may be of these types: low < position ≤ high. There are none if low is ``until``."""
    spans = await log.type_spans(types, span_of(after + 1), span_of(until), STEP_SPANS)
    if not spans:
        return until, until
    return max(after, spans[0] * SPAN_EVENTS), min(until, _end_of_run(spans) * SPAN_EVENTS)


def _end_of_run(spans: Sequence[int]) -> int:
    """The first span behind those that follow one another without a gap."""
    end = spans[0]
    for span in spans:
        if span != end:
            break
        end += 1
    return end


async def read(log: Log, after: int, until: int, wanted: EventFilter, limit: int) -> list[Event]:
    """Events with after < position ≤ until, in order, as ``Log.read`` gives them; what holds none is not read."""
    if not wanted.types or until - after <= STEP_EVENTS:
        return await log.read(after, until, wanted, limit)
    if wanted.threads:  # whose own events lie in an index; what is left out is what comes before the first of the types
        return await log.read((await stretch(log, wanted.types, after, until))[0], until, wanted, limit)
    found: list[Event] = []
    while after < until and len(found) < limit:
        low, after = await stretch(log, wanted.types, after, until)
        if low < after:
            found += await log.read(low, after, wanted, limit - len(found))
    return found
