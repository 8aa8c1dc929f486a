"""The beginning of a turn, whatever surface it comes by: what may be asked, in which form, and that it is on disk.

A turn of a session goes to the live end of its line, after a compaction if that is full.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from msgspec import Struct, convert, to_builtins

from organism.agents.invoke import Flags, Shape, delivers, resolved
from organism.config.settings import Listener
from organism.config.tenant import OnBusy
from organism.errors import InvalidField, NotFound, OrganismError, SessionCompactConflict
from organism.model.commands import Inject, Injected, SendTurn, TurnCompaction
from organism.model.ids import session_of
from organism.model.sessions import CompactionResult
from organism.server.api.sessions import caller_of
from organism.server.http.bodies import Places, named_in
from organism.server.http.call import IN_PATH, Call, caller_fields
from organism.server.turns.costs import set_cost_headers
from organism.server.turns.follow import Seen
from organism.sessions.compaction import compact, compact_if_full
from organism.sessions.lineage import live_end
from organism.views.keyed import Answer
from organism.views.sessions import SessionRow, session_row

COMPACTED: Final = "SPASS-Session-Compacted"
COMPACTED_TOKENS: Final = "SPASS-Session-Compacted-Tokens"
LAST_EVENT: Final = "Last-Event-ID"
LAST_SEEN: Final = "headers.last-event-id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What a turn is asked for: the agent's payload ``json``, which stands at ``place`` in the body.

    ``session_id`` is that of the user's session whose next turn it is; one that was archived leads on to its live end
    if the turn ``follows``. ``is_killed``: the turn ends if its client leaves before its end. ``waits``: it is accepted
    though what it needs is paused.
    """

    agent: str
    json: Mapping[str, Any]
    shape: Shape
    place: str = ""
    places: Places = field(default_factory=lambda: IN_PATH)
    session_id: str | None = None
    on_busy: OnBusy | None = None
    follows: bool = True
    is_killed: bool = False
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn that is on disk, what its client has ``seen`` of it, and how it is to be answered.

    Its cost is that of the ``compaction`` before it, too.
    """

    sent: Injected
    shape: Shape
    seen: Seen
    is_resumed: bool = False
    is_killed: bool = False
    compaction: TurnCompaction | None = None

    @property
    def headers(self) -> dict[str, str]:
        """What goes with its answer."""
        if self.compaction is None:
            return {}
        return {COMPACTED: session_of(self.sent.thread_id) or "", COMPACTED_TOKENS: str(self.compaction.tokens)}

    @property
    def more_threads(self) -> tuple[str, ...]:
        """The threads besides its own whose cost is that of the turn."""
        return () if self.compaction is None else (self.compaction.thread_id,)


class _Accepted(Struct):
    """What is recorded of an accepted turn under its key."""

    thread_id: str
    message_id: str
    position: int
    compaction: TurnCompaction | None = None


class Archived(OrganismError):
    """The session was archived: ``row`` is that of the session which goes on with it."""

    def __init__(self, row: SessionRow) -> None:
        super().__init__()
        self.row = row


def permitted_agent(call: Call, name: str, place: str | None) -> Listener:
    """The agent, which the request names at ``place``. Raises ``Forbidden`` or ``NotFound``."""
    for receiver in call.tenant.receivers(name):
        call.permit(agent=receiver)
    listener = call.tenant.pump.state.rules.listeners.get(name)
    if listener is None:
        raise NotFound(f"There is no agent {name[:80]!r}.", param=place)
    return listener


def shape_of(agent: Listener, flags: Flags, places: Places) -> Shape:
    """The form in which the agent answers. Raises ``NotAcceptable`` or ``ForceNotSupported``, named by ``places``."""
    with named_in(places):
        return resolved(flags, delivers(agent))


async def begin(call: Call, asked: Asked) -> Turn:
    """Accept the turn, or find the one with whose stream the caller goes on.

    Raises ``Archived``, unless the turn ``follows`` its line.
    """
    resumed = _resumed(call, asked) if LAST_EVENT in call.route.headers else None
    if resumed is not None:
        if asked.session_id is not None:
            with named_in(asked.places):
                await session_row(call.tenant.views, asked.session_id, call.named_user, asked.agent)
        return resumed
    fields = {**caller_fields(call), **call.command_fields(of_thread=False)}
    act = partial(_one_turn if asked.session_id is None else _next_turn, call, asked, fields)

    async def before(row: Answer) -> Turn:
        found = convert(row.body, _Accepted)
        sent = Injected(found.thread_id, found.message_id, found.position)
        return _turn(asked, sent, compaction=found.compaction)

    return await call.tenant.operator.once(call.idempotency(), act, before)


def _turn(asked: Asked, sent: Injected, **more: Any) -> Turn:
    return Turn(sent=sent, shape=asked.shape, is_killed=asked.is_killed, **{"seen": Seen(sent), **more})


def _refuse_paused(call: Call, asked: Asked) -> None:
    """Raise ``Paused`` unless the turn can be done now or ``waits``."""
    session = call.tenant.pump.state.folded.sessions.get(asked.session_id or "")
    waits_for = session.turns if session is not None and asked.on_busy not in {"force", "reject"} else ()
    if not asked.waits and (pause := call.tenant.pause_of(asked.agent, waits_for)) is not None:
        raise pause


async def _one_turn(call: Call, asked: Asked, fields: Mapping[str, Any]) -> Turn:
    """Accept a turn without a session."""
    _refuse_paused(call, asked)
    command = Inject(to=asked.agent, json=asked.json, **fields)
    return _turn(asked, await call.send(command, asked.place, asked.places))


async def _next_turn(call: Call, asked: Asked, fields: Mapping[str, Any]) -> Turn:
    """Accept the next turn of a session, after a compaction if that is full."""
    tenant, user, session_id = call.tenant, call.named_user, asked.session_id or ""
    with named_in(asked.places):
        row = await session_row(tenant.views, session_id, user, asked.agent)
        if row.public.archived_at is not None:
            row = await live_end(tenant, row, user)
            if not asked.follows:
                raise Archived(row)
        on_busy = asked.on_busy or tenant.config.on_busy
        asked = replace(asked, session_id=row.public.id, on_busy=on_busy)
        _refuse_paused(call, asked)
        compacted = await compact_if_full(tenant, row.public.id, caller_of(call, asked.agent))
        compaction = None
        if compacted is not None:
            compaction = TurnCompaction(compacted.thread_id, compacted.tokens)
            asked = replace(asked, session_id=compacted.successor_session_id)
        _refuse_paused(call, asked)  # a compaction takes a while
    command = SendTurn(
        session_id=asked.session_id or "",
        user=user,
        to=asked.agent,
        json=asked.json,
        on_busy=on_busy,
        compaction=compaction,
        **fields,
    )
    try:
        sent = await call.send(command, asked.place, asked.places)
    except SessionCompactConflict:  # it was archived after it was read
        return await _next_turn(call, asked, fields)
    return _turn(asked, sent, compaction=compaction)


async def compact_now(call: Call, session_id: str, agent: str) -> CompactionResult:
    """Compact the session that the path names, and put what that cost into the headers of the answer."""
    with named_in(IN_PATH):
        done = await compact(call.tenant, session_id, caller_of(call, agent), call.idempotency())
    await set_cost_headers(call, Injected(done.thread_id, "", 0))
    return done


def _resumed(call: Call, asked: Asked) -> Turn | None:
    """The turn with whose stream the caller goes on, if it does. Raises ``InvalidField``."""
    last = call.headers.get(LAST_EVENT, "").strip()
    if not last:
        return None
    if not asked.shape.is_stream:
        raise InvalidField("Last-Event-ID goes on with a stream: send `stream: true` with it.", param=LAST_SEEN)
    try:
        place, compaction = call.process.cursors.open(_stream_id(call), last)
    except InvalidField:
        message = "This is not the id of an event that a stream of this address has sent; send it as it came, or none."
        raise InvalidField(message, param=LAST_SEEN) from None
    seen, compaction = Seen.at(place), convert(compaction, TurnCompaction | None)
    return _turn(asked, seen.sent, seen=seen, compaction=compaction, is_resumed=True)


def event_id(call: Call, turn: Turn) -> str:
    """The id of the event with which the client has seen what it has by now."""
    return call.process.cursors.seal(_stream_id(call), [turn.seen.place, to_builtins(turn.compaction)])


def _stream_id(call: Call) -> str:
    """What the ids of a stream's events are bound to."""
    return repr((call.tenant.id, call.end_user, call.tenant.log.timeline, "turn, compaction", call.path))
