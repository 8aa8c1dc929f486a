"""The organism as a whole: how it stands, and pause, resume, reload, stop."""

from __future__ import annotations

from functools import partial
from typing import Final, Literal, TypedDict

import msgspec
import orjson
from starlette.responses import Response

from organism.config.shown import Configuration, shown_settings
from organism.errors import ConfigInvalid, NotFound, Stopping
from organism.model import words
from organism.model.commands import PauseOrganism, ResumeOrganism
from organism.server.http.bodies import Faults, NoBody
from organism.server.http.call import Call, JsonResponse, Route, Tag, tagged
from organism.server.http.contract import ACT, ACT_REFUSED, gives
from organism.server.http.lists import AT, as_of
from organism.server.http.rights import READ, Right
from organism.server.push.filter import Filter
from organism.server.push.frames import Connected
from organism.server.push.snapshot import read_snapshot
from organism.views.organism import Organism, OrganismRow, completed
from organism.views.read_models import waiting_for_people


class Reloaded(TypedDict):
    """What a reload changed: the names of listeners."""

    added: list[words.AgentName]
    removed: list[words.AgentName]
    updated: list[words.AgentName]
    position: words.Position


class StopBegun(TypedDict):
    """The graceful stop has begun."""

    status: Literal["stopping"]
    position: words.Position


async def organism(call: Call) -> Response:
    """Its name, status, uptime and counts."""
    call.allow_query(AT)
    at = await as_of(call)
    if at is not None:
        return JsonResponse(await _as_of(call, at))
    waiting = await waiting_for_people(call.tenant.views)
    shown = completed(await _row(call), waiting, call.tenant.clock.now_us(), call.process.organism.status)
    return JsonResponse(shown)


async def snapshot(call: Call) -> Response:
    """Everything at a position, as ``connected`` shows it: the organism, its agents, threads and open questions."""
    faults = Faults()
    given = call.parameters(faults)
    with faults:
        at = await as_of(call)
    faults.raise_found()
    threads, agents = (frozenset(given[name]) if name in given else None for name in ("threads", "agents"))
    wanted = Filter(threads, agents, payload_bytes=given.get("payloads"))
    found = await read_snapshot(call.tenant.views, call.process.organism.codec, wanted, at)
    if at is None:
        now, status = call.tenant.clock.now_us(), call.process.organism.status
    else:
        now, status = await _time_of(call, at), found.organism.status
    organism = completed(found.organism, found.waiting, now, status)
    return JsonResponse(found.connected(call.tenant.log.timeline, organism))


async def _as_of(call: Call, at: int) -> Organism:
    """How it stood at a position: running or paused, and up since the start before."""
    row = await _row(call, at)
    return completed(row, await waiting_for_people(call.tenant.views, at), await _time_of(call, at), row.status)


async def _time_of(call: Call, at: int) -> int:
    (record,) = await call.tenant.log.read(at - 1, at)
    return record.at


async def _row(call: Call, at: int | None = None) -> OrganismRow:
    return msgspec.json.decode(await call.row("organism", "organism", at), type=OrganismRow)


async def config(call: Call) -> Response:
    """The configuration in force: organism.yaml with what it leaves out, without anything secret."""
    call.allow_query()
    shown = orjson.dumps(shown_settings(call.process.organism.settings))
    return JsonResponse(call.process.redactor.shown(shown))


async def pause(call: Call) -> Response:
    """Start nothing more at all."""
    return await _control(call, PauseOrganism)


async def resume(call: Call) -> Response:
    """Go on."""
    return await _control(call, ResumeOrganism)


async def _control(call: Call, command: type[PauseOrganism | ResumeOrganism]) -> Response:
    await call.body_as(NoBody)
    done = await call.do(command(**call.command_fields(of_thread=False)))
    return JsonResponse(await _as_of(call, done.position))


async def reload(call: Call) -> Response:
    """Read organism.yaml and the handlers again: all of it or, with 422, nothing."""
    await call.body_as(NoBody)
    call.refuse_if_match()
    if call.process.organism.status == "stopping":
        raise Stopping
    return JsonResponse(await call.process.organism.reload(call.actor, call.idempotency()))


async def stop(call: Call) -> Response:
    """Begin the graceful stop; what runs gets its grace."""
    await call.body_as(NoBody)
    call.refuse_if_match()
    call.process.request_stop()
    return JsonResponse(StopBegun(status="stopping", position=call.tenant.log.head), 202)


OPERATOR: Final = Right("admin", of_process=True)
_control_route = partial(Route, right=OPERATOR, takes=NoBody, headers=ACT)
_pausing = partial(_control_route, right=Right("control"), gives=gives(Organism), refuses=ACT_REFUSED)

ROUTES: Final = (
    *tagged(
        Tag("organism", __doc__),
        Route(
            "GET /organism", organism, right=READ, by_head=True, gives=gives(Organism), query=(AT,), refuses=(NotFound,)
        ),
        Route("GET /organism/config", config, right=OPERATOR, by_head=True, gives=gives(Configuration)),
        Route(
            "GET /organism/snapshot",
            snapshot,
            right=READ,
            by_head=True,
            gives=gives(Connected),
            query=(AT, "threads", "agents", "payloads"),
            refuses=(NotFound,),
        ),
        _pausing("POST /organism/pause", pause),
        _pausing("POST /organism/resume", resume),
        _control_route("POST /organism/reload", reload, gives=gives(Reloaded), refuses=(ConfigInvalid,)),
        _control_route("POST /organism/stop", stop, gives=gives(StopBegun, status=202), is_recorded=True),
    ),
)
