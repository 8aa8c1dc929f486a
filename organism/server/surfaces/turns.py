"""The turn of a conversational agent as an answer: all at once, or as Server-Sent Events that can be gone on with."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final

import anyio
import orjson
from starlette.responses import Response

from organism.agents.invoke import Flags, Shape, delivers, outputs, resolved
from organism.config.settings import Listener
from organism.errors import InvalidField, OrganismError, Stopping
from organism.events import vocabulary as events
from organism.events.record import Record
from organism.log.log import EventFilter
from organism.model.agent import Answer
from organism.model.commands import Injected, KillThread
from organism.model.ids import CONSOLE
from organism.model.run import COUNTS, RunEntry
from organism.server.http.bodies import named_in
from organism.server.http.call import Call, JsonResponse
from organism.server.http.streaming import SSE, live_response
from organism.server.surfaces.costs import begun_or_costed, tell_cost, with_cost
from organism.server.surfaces.run import beyond, entries_of, written

LAST_SEEN: Final = "headers.last-event-id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A turn that was accepted, and how it is to be answered.

    ``session_id`` and ``headers`` go with the answer. ``is_killed``: it ends if the client leaves before its end.
    """

    sent: Injected
    agent: Listener
    is_stream: bool
    session_id: str | None = None
    is_killed: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    since: int | None = None

    @property
    def charged(self) -> Injected:
        """What its cost is counted by."""
        return self.sent if self.since is None else replace(self.sent, position=self.since)


def is_stream(agent: Listener, *, wanted: bool | None) -> bool:
    """Whether the turn comes as a stream; None asks for the agent's own form. Raises ``NotAcceptable``."""
    with named_in({"/flags/stream": "/stream"}):
        return resolved(Flags(stream=wanted), delivers(agent)).is_stream


async def answer_turn(call: Call, turn: Turn, seen: Seen | None = None) -> Response:
    """The turn's answer. A stream goes on after what was ``seen`` of it."""
    return await call.unless_left(_answer(call, turn, seen))


async def _answer(call: Call, turn: Turn, seen: Seen | None) -> Response:
    entries = killed_if_left(call, turn.sent) if turn.is_killed else entries_of(call.tenant, turn.sent)
    if seen is not None:
        return await _stream(call, turn, seen, _after(entries, seen))
    entries = await begun_or_costed(call, turn.charged, entries)
    if turn.is_stream:
        return await _stream(call, turn, Seen(turn.sent), entries)
    answer = await _batch(call, turn, entries)
    await tell_cost(call, turn.charged)
    return answer


async def _stream(call: Call, turn: Turn, seen: Seen, entries: AsyncGenerator[RunEntry, None]) -> Response:
    cursors, listing, has = call.process.cursors, _stream_id(call), replace(seen, chars=dict(seen.chars))

    def event(entry: RunEntry) -> bytes:
        has.take(entry)
        return b"id: %b\ndata: %b\n\n" % (cursors.seal(listing, has.place).encode(), orjson.dumps(entry))

    parts = with_cost(call, turn.charged, written(entries, SSE, event))
    return await live_response(call, parts, SSE, turn.headers)


async def _batch(call: Call, turn: Turn, entries: AsyncGenerator[RunEntry, None]) -> Response:
    usage = dict.fromkeys(COUNTS, 0)

    async def counted() -> AsyncGenerator[RunEntry, None]:
        async with aclosing(entries):
            async for entry in entries:
                for name in COUNTS if entry["type"] == "usage" else ():
                    usage[name] += entry["data"][name]
                yield entry

    folded = await outputs(counted(), Shape(is_stream=False, is_trimmed=False))
    if "stop_reason" not in folded:
        raise Stopping("The server stops before the turn is done; it goes on with the next start.")
    texts = (each["content"] for each in reversed(folded["messages"]) if each["role"] == "assistant")
    answer = {"reply": next(filter(None, texts), ""), **folded, "usage": usage}
    if citations := await _citations(call, turn.sent):
        answer["citations"] = citations
    answer |= {"agent": turn.agent.name, "model": turn.agent.model, "thread_id": turn.sent.thread_id}
    answer |= {} if turn.session_id is None else {"session_id": turn.session_id}
    return JsonResponse(answer, headers=turn.headers)


async def _citations(call: Call, sent: Injected) -> list[str]:
    """The sources that the agent's answer names."""
    wanted = EventFilter((sent.thread_id,), (events.MessageSent,), content=True)
    records: list[Record[Any]] = await call.tenant.log.read(sent.position, wanted=wanted, limit=1, reverse=True)
    for record in records:
        event: events.MessageSent = record.event
        if (event.to, event.type) == (CONSOLE, Answer.__name__) and record.content is not None:
            return list(orjson.loads(record.content.json or b"{}").get("citations", ()))
    return []


async def killed_if_left(call: Call, sent: Injected) -> AsyncGenerator[RunEntry, None]:
    """The entries; a turn whose client leaves before the last one is killed."""
    kind = ""
    try:
        async with aclosing(entries_of(call.tenant, sent)) as entries:
            async for entry in entries:
                kind = entry["type"]
                yield entry
    finally:
        if kind != "done" and not call.process.stopping.done():
            with anyio.CancelScope(shield=True), suppress(OrganismError):
                await call.tenant.do(KillThread(thread_id=sent.thread_id, actor=call.actor))


@dataclass(slots=True)
class Seen:
    """What a client has of a turn's entries: ``count`` besides deltas, and of each open block so many characters."""

    sent: Injected
    count: int = 0
    chars: dict[str, int] = field(default_factory=dict)

    @property
    def place(self) -> list[Any]:
        """It as JSON."""
        return [self.sent.thread_id, self.sent.message_id, self.sent.position, self.count, self.chars]

    def take(self, entry: RunEntry) -> None:
        """The client gets the next entry."""
        kind, data = entry["type"], entry["data"]
        if "delta" in data:
            self.chars[_block(entry)] = data["offset"] + len(data["delta"])
            return
        self.count += 1
        if kind.endswith(("_start", "_end")):
            self.chars.pop(_block(entry), None)


def _block(entry: RunEntry) -> str:
    return f"{entry['type'].partition('_')[0]} {entry['data'].get('id')}"


async def _after(entries: AsyncGenerator[RunEntry, None], seen: Seen) -> AsyncGenerator[RunEntry, None]:
    """The entries after what was seen. All but deltas come in the same order each time."""
    count, passed = seen.count, 0
    async with aclosing(entries):
        async for entry in entries:
            is_delta = "delta" in entry["data"]
            if passed < count:
                passed += not is_delta
                continue
            new = beyond(entry, seen.chars.get(_block(entry), 0)) if is_delta else entry
            if new is not None:
                seen.take(new)
                yield new


def seen_of(call: Call, *, is_wanted: bool) -> Seen | None:
    """What the caller has of the stream with which it goes on. Raises ``InvalidField``."""
    last = call.headers.get("last-event-id", "").strip()
    if not last:
        return None
    if not is_wanted:
        raise InvalidField("Last-Event-ID goes on with a stream: send `stream: true` with it.", param=LAST_SEEN)
    try:
        thread_id, message_id, position, count, chars = call.process.cursors.open(_stream_id(call), last)
    except InvalidField:
        message = "This is not the id of an event that a stream of this address has sent; send it as it came, or none."
        raise InvalidField(message, param=LAST_SEEN) from None
    return Seen(Injected(thread_id, message_id, position), count, chars)


def _stream_id(call: Call) -> str:
    """What the ids of a stream's events are bound to."""
    return repr((call.tenant.id, call.end_user, call.tenant.log.timeline, "turn", call.path))
