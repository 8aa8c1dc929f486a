"""The organism as a whole: how it stands, and pause, resume, reload, stop."""

from __future__ import annotations

from typing import Any, Final

import orjson

from organism.config.shown import shown_settings
from organism.errors import ConfigInvalid, NotFound, Stopping
from organism.model.commands import PauseOrganism, ResumeOrganism
from organism.server.bodies import NoBody, parsed
from organism.server.call import Answer, Call, Route, answer
from organism.server.contract import ACT, ACT_REFUSED, Contract, gives
from organism.server.lists import AT, moment
from organism.server.shapes.configuration import Configuration
from organism.server.shapes.objects import Organism, Reloaded, StopBegun
from organism.server.snapshot import organism_row


async def organism(call: Call) -> Answer:
    """Its name, status, uptime and counts."""
    call.allow_query(AT)
    at = await moment(call)
    return answer(await _standing(call) if at is None else await _stood(call, at))


async def _stood(call: Call, at: int) -> dict[str, Any]:
    """As it stood when the log ended there: running or paused, and up since the start before."""
    row = await call.row("organism", "organism", at)
    (event,) = await call.tenant.log.read(at - 1, at)
    return organism_row(row, event.at)


async def _standing(call: Call) -> dict[str, Any]:
    row = await call.row("organism", "organism")
    return organism_row(row, call.tenant.clock.now_us(), call.process.organism.status)


async def config(call: Call) -> Answer:
    """The configuration in force: organism.yaml with what it leaves out, without anything secret."""
    call.allow_query()
    shown = orjson.dumps(shown_settings(call.process.organism.settings))
    return answer(call.process.redactor.shown(shown))


async def pause(call: Call) -> Answer:
    """Start nothing more at all."""
    return await _control(call, PauseOrganism)


async def resume(call: Call) -> Answer:
    """Go on."""
    return await _control(call, ResumeOrganism)


async def _control(call: Call, command: type[PauseOrganism | ResumeOrganism]) -> Answer:
    call.allow_query()
    parsed(NoBody, call.json())
    await call.do(command(**call.command_fields(of_thread=False)))
    return answer(await _standing(call))


async def reload(call: Call) -> Answer:
    """Read organism.yaml and the handlers anew: all of it or, with 422, nothing."""
    call.allow_query()
    parsed(NoBody, call.json())
    call.refuse_if_match()
    if call.process.organism.status == "stopping":
        raise Stopping
    done = await call.process.organism.reload(call.actor, call.idempotency())
    changed = {"added": done.added, "removed": done.removed, "updated": done.updated, "position": done.position}
    return Answer(orjson.dumps(changed))


async def stop(call: Call) -> Answer:
    """Begin the graceful stop; what runs gets its grace."""
    call.allow_query()
    parsed(NoBody, call.json())
    call.refuse_if_match()
    call.process.request_stop()
    return answer({"status": "stopping", "position": call.tenant.log.head}, 202)


ONE: Final = Contract(gives=gives(Organism), query=(AT,), refuses=(NotFound,))
CONFIG: Final = Contract(gives=gives(Configuration))
CONTROL: Final = Contract(gives=gives(Organism), takes=NoBody, headers=ACT, refuses=ACT_REFUSED)
RELOAD: Final = Contract(gives=gives(Reloaded), takes=NoBody, headers=ACT, refuses=(ConfigInvalid,))
STOP: Final = Contract(gives=gives(StopBegun, status=202), takes=NoBody, headers=ACT)

ROUTES: Final = (
    Route("GET", "/organism", organism, by_head=True, contract=ONE),
    Route("GET", "/organism/config", config, by_head=True, contract=CONFIG),
    Route("POST", "/organism/pause", pause, is_kept=True, contract=CONTROL),
    Route("POST", "/organism/resume", resume, is_kept=True, contract=CONTROL),
    Route("POST", "/organism/reload", reload, is_kept=True, contract=RELOAD),
    Route("POST", "/organism/stop", stop, is_kept=True, contract=STOP),
)
