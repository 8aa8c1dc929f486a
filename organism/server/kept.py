"""Answers that are kept whole under an idempotency key, and given again byte for byte (G5).

An act that is answered by the ids of what it made needs nothing of this: the unit that makes it records them. An act
that is answered by an object *as it then stands* cannot be answered again by looking at the object, which has moved
on. Its own unit records the key, so that it is never done twice; the finished body follows as a ``call_answered``, and
goes to the client once that is on disk. A death in between leaves a key without a body: no client ever saw one, so the
repetition's is the first.
"""

from __future__ import annotations

from functools import partial

from organism.model.commands import Idempotency
from organism.pump.idempotency import recorded
from organism.server.call import Answer, Call, Endpoint


async def answered_once(call: Call, once: Idempotency, endpoint: Endpoint) -> Answer:
    """The endpoint's answer, or the recorded one of this key. What the endpoint raises is not recorded."""
    first = partial(_first, call, once)
    return await call.tenant.keys.answer(once, first, partial(_act, call, once, endpoint))


async def _act(call: Call, once: Idempotency, endpoint: Endpoint) -> Answer:
    if (first := await _first(call, once)) is not None:  # another one began and ended while we looked
        return first
    given = await endpoint(call)
    await call.tenant.keep_answer(once, call.actor, given.status, given.body)
    return given


async def _first(call: Call, once: Idempotency) -> Answer | None:
    row = await recorded(call.tenant.log, once, call.tenant.clock.now_us())
    kept = None if row is None or not row["said_at"] else await call.tenant.log.content(row["said_at"])
    return None if row is None or kept is None else Answer(kept[0], row["status"])
