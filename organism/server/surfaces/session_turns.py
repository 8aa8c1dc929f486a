"""The next turn of a session, by whatever surface it comes: accepted, or sent on to the live end of its line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from organism.config.tenant import OnBusy
from organism.errors import OrganismError, SessionCompactConflict
from organism.model.commands import Injected, SendTurn
from organism.server.api.sessions import caller_of
from organism.server.http.bodies import Places, named_in
from organism.server.http.call import Call, caller_fields
from organism.sessions.compaction import compact_if_full
from organism.sessions.lineage import live_end
from organism.views.sessions import SessionRow, session_row

COMPACTED: Final = "SPASS-Session-Compacted"
COMPACTED_TOKENS: Final = "SPASS-Session-Compacted-Tokens"


@dataclass(frozen=True, slots=True)
class NextTurn:
    """What a user says in a session: the agent's payload, which stands at ``place`` in the body."""

    session_id: str
    user: str
    agent: str
    json: Mapping[str, Any]
    on_busy: OnBusy | None
    place: str
    places: Places


@dataclass(frozen=True, slots=True)
class Begun:
    """A turn that is on disk, with the headers of its answer, and the position since which it cost something."""

    sent: Injected
    headers: Mapping[str, str] = field(default_factory=dict)
    since: int | None = None


class Archived(OrganismError):
    """The session was archived: ``row`` is that of the session which goes on with it."""

    def __init__(self, row: SessionRow) -> None:
        super().__init__()
        self.row = row


async def begin_turn(call: Call, turn: NextTurn, *, follows: bool) -> Begun:
    """Accept the turn, after a compaction if its session is full. Raises ``Archived``, unless it ``follows`` its line.

    Under an idempotency key all of it is one act: the turn is accepted once, wherever its session goes meanwhile.
    """
    once = call.idempotency()
    if once is None:
        return await _begin(call, turn, follows=follows)

    async def known() -> Begun | None:
        body = await call.tenant.operator.answered(once)
        return None if body is None else Begun(Injected(**body))

    return await call.tenant.keys.answer(once, known, partial(_begin, call, turn, follows=follows))


async def _begin(call: Call, turn: NextTurn, *, follows: bool) -> Begun:
    tenant = call.tenant
    with named_in(turn.places):
        row = await session_row(tenant.views, turn.session_id, turn.user, turn.agent)
        if row.public.archived_at is not None:
            row = await live_end(tenant, row, turn.user)
            if not follows:
                raise Archived(row)
        since = tenant.log.head
        compacted = await compact_if_full(tenant, row.public.id, caller_of(call, turn.agent))
    command = SendTurn(
        session_id=row.public.id if compacted is None else compacted.successor_session_id,
        user=turn.user,
        to=turn.agent,
        json=turn.json,
        on_busy=turn.on_busy or tenant.config.on_busy,
        **caller_fields(call),
        **call.command_fields(of_thread=False),
    )
    try:
        sent = await call.send(command, turn.place, turn.places)
    except SessionCompactConflict:  # it was archived after it was read
        return await _begin(call, turn, follows=follows)
    if compacted is None:
        return Begun(sent)
    headers = {COMPACTED: compacted.successor_session_id, COMPACTED_TOKENS: str(compacted.tokens)}
    return Begun(sent, headers, since)
