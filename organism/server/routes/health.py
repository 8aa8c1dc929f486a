"""What needs no token: whether it lives, whether it can work, and what each error code means."""

from __future__ import annotations

from typing import Final

from organism.errors import LogUnavailable, Stopping
from organism.server import problems
from organism.server.call import Answer, Call, Route, answer
from organism.server.contract import Contract, gives
from organism.server.shapes.configuration import Healthy, Ready
from organism.server.shapes.objects import ErrorCodes


async def healthz(_call: Call) -> Answer:
    """The process answers."""
    return answer({"status": "ok"})


async def readyz(call: Call) -> Answer:
    """It takes work: neither starting nor stopping, and its log can be written."""
    status = call.process.organism.status
    if status in {"starting", "stopping"}:
        raise Stopping(f"The organism is {status}.")
    if not call.tenant.log.available:
        raise LogUnavailable
    return answer({"status": status})


async def errors(_call: Call) -> Answer:
    """The table of all error codes."""
    return answer(problems.table())


ROUTES: Final = (
    Route("GET", "/healthz", healthz, contract=Contract(gives=gives(Healthy))),
    Route("GET", "/readyz", readyz, contract=Contract(gives=gives(Ready), refuses=(Stopping, LogUnavailable))),
    Route("GET", "/errors", errors, contract=Contract(gives=gives(ErrorCodes))),
)
