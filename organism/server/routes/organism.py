"""The organism as a whole: how it stands, and pause, resume, reload, stop."""

from __future__ import annotations

from typing import Any, Final

import orjson

from organism.config.shown import shown_settings
from organism.model.commands import PauseOrganism, ResumeOrganism
from organism.server.bodies import NoBody, parsed
from organism.server.call import Answer, Call, Route, answer
from organism.server.standing import organism_row


async def organism(call: Call) -> Answer:
    """Its name, status, uptime and counts."""
    call.allow_query()
    return answer(await _standing(call))


async def _standing(call: Call) -> dict[str, Any]:
    row = await call.row("organism", "organism")
    return organism_row(row, call.tenant, call.process.organism.status)


async def config(call: Call) -> Answer:
    """The configuration in force: organism.yaml with what it leaves out, without anything secret."""
    call.allow_query()
    return answer(shown_settings(call.process.organism.settings))


async def pause(call: Call) -> Answer:
    """Start nothing more at all."""
    return await _control(call, PauseOrganism)


async def resume(call: Call) -> Answer:
    """Go on."""
    return await _control(call, ResumeOrganism)


async def _control(call: Call, command: type[PauseOrganism | ResumeOrganism]) -> Answer:
    call.allow_query()
    parsed(NoBody, call.json())
    await call.tenant.do(command(**call.command_fields(of_thread=False)))
    return answer(await _standing(call))


async def reload(call: Call) -> Answer:
    """Read organism.yaml and the handlers anew: all of it or, with 422, nothing."""
    call.allow_query()
    parsed(NoBody, call.json())
    done = await call.process.organism.reload(call.actor)
    changed = {"added": done.added, "removed": done.removed, "updated": done.updated, "position": done.position}
    return Answer(orjson.dumps(changed))


async def stop(call: Call) -> Answer:
    """Begin the graceful stop; what runs gets its grace."""
    call.allow_query()
    parsed(NoBody, call.json())
    call.process.request_stop()
    return answer({"status": "stopping", "position": call.tenant.log.head}, 202)


ROUTES: Final = (
    Route("GET", "/organism", organism, by_head=True),
    Route("GET", "/organism/config", config, by_head=True),
    Route("POST", "/organism/pause", pause, is_kept=True),
    Route("POST", "/organism/resume", resume, is_kept=True),
    Route("POST", "/organism/reload", reload, is_kept=True),
    Route("POST", "/organism/stop", stop, is_kept=True),
)
