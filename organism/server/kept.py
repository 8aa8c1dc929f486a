"""Answers that are kept under an idempotency key, and given again byte for byte (G5).

An act that is answered by the ids of what it made needs nothing of this: the unit that makes it records them. An act
that is answered by an object *as it then stands* cannot be answered a second time by looking at the object, which has
moved on. Its own unit records the key, so that it is never done twice; what was said of the object follows as a
``call_answered`` with the finished body, and goes to the client once that is on disk. A death in between leaves a key
without a body: no client ever saw one, so the repetition's is the first.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from organism.errors import IdempotencyKeyReused, RequestInProgress
from organism.model.commands import Idempotency
from organism.server.call import Answer, Call, Endpoint

KEY_LIFE_US: Final = 24 * 3600 * 1_000_000

Place = tuple[str, str]


class Kept:
    """Answers each request once, and its repetitions by the first answer."""

    def __init__(self) -> None:
        self._running: dict[Place, str] = {}

    async def answer(self, call: Call, once: Idempotency, endpoint: Endpoint) -> Answer:
        """The endpoint's answer, or the one that this key had.

        Raises ``RequestInProgress``, ``IdempotencyKeyReused``, and what the endpoint raises, which is not kept.
        """
        place = (call.tenant.id, once.name)
        self._refuse_while_running(place, once)
        if (first := await _first(call, once)) is not None:
            return first
        self._refuse_while_running(place, once)
        self._running[place] = once.digest
        act = asyncio.create_task(_act(call, once, endpoint))
        act.add_done_callback(partial(self._over, place))
        return await asyncio.shield(act)  # a caller who goes away does not undo it, nor free its key

    def _refuse_while_running(self, place: Place, once: Idempotency) -> None:
        if place in self._running:
            raise RequestInProgress if self._running[place] == once.digest else IdempotencyKeyReused

    def _over(self, place: Place, act: asyncio.Task[Answer]) -> None:
        del self._running[place]
        if not act.cancelled():
            act.exception()  # it has been told to the caller, if there is one still


async def _act(call: Call, once: Idempotency, endpoint: Endpoint) -> Answer:
    if (first := await _first(call, once)) is not None:  # another one began and ended while we looked
        return first
    given = await endpoint(call)
    await call.tenant.keep_answer(once, call.actor, given.status, given.body)
    return given


async def _first(call: Call, once: Idempotency) -> Answer | None:
    """What this key was answered, if that is kept and not too old. Raises ``IdempotencyKeyReused``."""
    row = await call.tenant.log.private_row("answers", once.name)
    if row is None or row["at"] + KEY_LIFE_US < call.tenant.clock.now_us():
        return None
    if row["digest"] != once.digest:
        raise IdempotencyKeyReused
    kept = await call.tenant.log.content(row["said_at"]) if row["said_at"] else None
    return None if kept is None else Answer(kept[0], row["status"])
