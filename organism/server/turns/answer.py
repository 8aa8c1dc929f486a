"""A turn's answer: all at once or as a stream, in whatever form its writer has, with what it cost.

A turn goes on when its client leaves, unless it is to be killed then.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, Protocol

import anyio
from starlette.responses import Response

from organism.agents.embeddings import Embedded
from organism.errors import OrganismError, Stopping
from organism.model.commands import KillThread
from organism.model.run import RunEntry
from organism.server.http.call import Call, JsonResponse
from organism.server.http.streaming import live_response
from organism.server.turns.begin import Turn
from organism.server.turns.costs import cost_of, set_cost_headers, set_embedding_cost_headers
from organism.server.turns.follow import begun, entries_of
from organism.server.turns.run_result import WAITING, FoldedRun


class Writer(Protocol):
    """A form in which a turn is answered. Each turn has a writer of its own.

    ``media_type`` is that of the stream, ``headers`` go with either answer.
    """

    media_type: str
    headers: Mapping[str, str]

    def waiting(self, reason: str) -> bytes:
        """What the stream says when a pause keeps its turn, and why. It may come first."""

    def lines(self, entry: RunEntry) -> bytes:
        """What the next entry becomes in the stream; nothing if the form has nothing for it."""

    def end(self, cost: Mapping[str, str]) -> bytes:
        """What comes after the last entry; ``cost`` is what the turn cost, by the names of the cost headers."""

    def whole(self, folded: FoldedRun) -> dict[str, Any]:
        """The run in this form, all at once. Raises the error of a failed run if the form has no place for it."""


Shown = Callable[[dict[str, Any], FoldedRun], Awaitable[dict[str, Any]]]
"""What a surface answers: what its writer made of the run, and what else the surface shows."""


async def answer(call: Call, turn: Turn, writer: Writer, shown: Shown) -> Response:
    """The turn's answer in the writer's form. Raises the error of a run that ended before it showed anything."""
    return await call.unless_left(_answer(call, turn, writer, shown))


async def embedded(call: Call, model: str, texts: Sequence[str]) -> Embedded:
    """Vectors of the texts, and what they cost."""
    return await call.unless_left(
        call.tenant.embeddings.recorded(model, texts, call.actor, partial(set_embedding_cost_headers, call))
    )


async def _answer(call: Call, turn: Turn, writer: Writer, shown: Shown) -> Response:
    entries = _killed_if_left(call, turn) if turn.is_killed else _entries(call, turn)
    headers = {**turn.headers, **writer.headers}
    if not turn.is_resumed:
        try:
            entries = await begun(entries)
        except OrganismError:
            await set_cost_headers(call, turn.sent, *turn.more_threads)
            raise
    if turn.shape.is_stream:
        return await live_response(call, _stream(call, turn, writer, entries), writer.media_type, headers)
    run = FoldedRun(is_trimmed=turn.shape.is_trimmed)
    async with aclosing(entries):
        async for entry in entries:
            run.add(entry)
    if run.stop_reason is None:
        raise Stopping("The server stops before the turn is done; it goes on with the next start.")
    await set_cost_headers(call, turn.sent, *turn.more_threads)
    return JsonResponse(await shown(writer.whole(run), run), headers=headers)


async def _stream(
    call: Call, turn: Turn, writer: Writer, entries: AsyncGenerator[RunEntry, None]
) -> AsyncGenerator[bytes, None]:
    """The turn as it comes, what its client has seen left out. A stream without its end was cut."""
    async with aclosing(entries):
        async for entry in entries:
            if entry["type"] == WAITING:
                yield writer.waiting(entry["data"]["reason"])
                continue
            new = turn.seen.take(entry)
            if new is not None:
                yield writer.lines(new)
            if entry["type"] == "done":
                yield writer.end(await cost_of(call, turn.sent, *turn.more_threads))


def _entries(call: Call, turn: Turn) -> AsyncGenerator[RunEntry, None]:
    return entries_of(call.tenant, turn.sent, tells_pauses=turn.shape.is_stream)


async def _killed_if_left(call: Call, turn: Turn) -> AsyncGenerator[RunEntry, None]:
    """The entries; if the client leaves before the last one, the turn is killed."""
    kind = ""
    try:
        async with aclosing(_entries(call, turn)) as entries:
            async for entry in entries:
                kind = entry["type"]
                yield entry
    finally:
        if kind != "done" and not call.process.stopping.done():
            with anyio.CancelScope(shield=True), suppress(OrganismError):
                await call.tenant.do(KillThread(thread_id=turn.sent.thread_id, actor=call.actor))
