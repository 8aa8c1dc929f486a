"""Acts on several: each is the single act, in a unit of its own and under a key of its own (G5).

A crash leaves some done and some not; the same request again does the rest, and is answered as the first would be.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from http import HTTPStatus
from typing import Annotated, Any, Final, NotRequired, TypedDict

import msgspec
from msgspec import Meta
from pydantic import Field
from starlette.responses import Response

from organism.errors import OrganismError
from organism.model import words
from organism.model.commands import Command, Idempotency
from organism.server.http import problems
from organism.server.http.bodies import Name, body
from organism.server.http.call import Call, JsonResponse
from organism.server.json import encoded

MOST: Final = 500
"""So many are acted on by one request."""


@body
class IdsBody:
    """What to act on; one that is named twice is acted on once."""

    ids: Annotated[list[Name], Field(min_length=1, max_length=MOST, fail_fast=True)]


class Acted(TypedDict):
    """What became of one."""

    id: Annotated[str, Meta(examples=["thr-01a2b3c4"])]
    status: Annotated[int, Meta(description="As of the act on this one alone.", examples=[200])]
    error: NotRequired[Annotated[problems.Refusal, Meta(description="Why not, if it was refused.")]]


class SeveralActed(TypedDict):
    """What became of each."""

    results: list[Acted]
    left: Annotated[words.Count, Meta(description="Of a group: how many are still open, those refused among them.")]


async def none_left() -> int:
    """Ids leave nothing."""
    return 0


async def act_on_each(
    call: Call,
    choose: Callable[[list[str]], Awaitable[Iterable[str]]],
    command: Callable[[str, dict[str, Any]], Command],
    left: Callable[[], Awaitable[int]] = none_left,
    *,
    status: int = HTTPStatus.OK,
) -> Response:
    """Carry out a command for each id that ``choose`` gives, one after the other, and say what became of each.

    ``choose`` gets those of earlier requests with the same key, which are answered as they were. ``command`` is made of
    the id and the fields that all commands have. What is refused is tried again by the same request.
    """
    call.refuse_if_match()
    once = call.idempotency()
    operator = call.tenant.operator

    async def act() -> Response:
        done = [] if once is None else await operator.parts(once)
        results = [await _acted(call, each, command, once, status) for each in dict.fromkeys(await choose(done))]
        return JsonResponse(call.process.redactor.shown(encoded({"results": results, "left": await left()})))

    async def before(_row: object) -> None:
        """The whole has no recorded answer: its parts have."""

    return await operator.once(once, act, before)


async def _acted(
    call: Call,
    each: str,
    command: Callable[[str, dict[str, Any]], Command],
    once: Idempotency | None,
    status: int,
) -> Acted:
    own = None if once is None else msgspec.structs.replace(once, key=f"{once.key}/{each}")
    try:
        call.permit(id=each)
        await call.do(command(each, {"actor": call.actor, "idempotency": own}))
    except OrganismError as error:
        return {"id": each, "status": error.status, "error": problems.refusal(error, call.request_id)}  # type: ignore[typeddict-item]  # as the class has it
    return {"id": each, "status": status}
