"""All read models. Each makes one JSON shape of the API, now and at any position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from organism.views.activity import DETAILS, LONG_SPANS, SPANS
from organism.views.approvals import APPROVALS
from organism.views.dead_letters import CLOSED_LETTERS, DEAD_LETTERS, INDETERMINATE
from organism.views.foreign_tools import FOREIGN_TOOLS
from organism.views.keyed import ANSWERS, VALUES
from organism.views.library import INDICES
from organism.views.organism import AGENTS, ORGANISM, WaitingForPeople
from organism.views.sessions import SESSION_MESSAGES, SESSIONS
from organism.views.threads import MESSAGES, THREADS
from organism.views.usage import INNER_CALLS, MODEL_CALLS, Portion
from organism.views.views import Begin, Query, ReadModel, Sums, ViewStore, Where
from organism.views.waiting import WAITING

READ_MODELS: Final[tuple[ReadModel, ...]] = (
    MESSAGES,
    THREADS,
    AGENTS,
    ORGANISM,
    DEAD_LETTERS,
    CLOSED_LETTERS,
    APPROVALS,
    INDETERMINATE,
    ANSWERS,
    VALUES,
    MODEL_CALLS,
    INNER_CALLS,
    SESSIONS,
    SESSION_MESSAGES,
    INDICES,
    FOREIGN_TOOLS,
    DETAILS,
    SPANS,
    LONG_SPANS,
)


async def waiting_for_people(views: ViewStore, at: int | None = None) -> WaitingForPeople:
    """How many of each waits for a person, ``at`` a position if given."""
    open_items = {name: Query(where, limit=0, at=at) for name, where in WAITING.items()}
    return WaitingForPeople(**{name: (await views.rows(name, query)).total for name, query in open_items.items()})


async def portions(
    views: ViewStore, by: str | Begin, where: Sequence[Where] = (), at: int | None = None
) -> list[Portion]:
    """The calls that fulfil ``where``, summed for each name, which is a column's value, and each model."""
    sums = await views.sums(MODEL_CALLS.name, Sums((by, "model", "served_by"), tuple(where), at))
    return [Portion(*each) for each in sums]
