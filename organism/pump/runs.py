"""Runs: what a handling shows of itself to people, as the entries of its run (spec 4.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from organism.model.events import Content
from organism.model.run import faults
from organism.pump.handling import Run


async def emit(run: Run, kind: str, data: Mapping[str, Any]) -> None:
    """See ``HandlerMetadata.emit``."""
    wrong = faults(kind, data)
    if wrong:
        raise ValueError(wrong)
    try:
        json = orjson.dumps(dict(data))
    except TypeError as error:
        raise ValueError(f"The data of {kind} cannot be written as JSON: {error}.") from error
    message = run.message
    decision = run.decide()
    said = {"message": message.id, "agent": message.to}
    decision.add(f"run_{kind}", said, Content(message.thread.id, json), message.thread.id)
    await run.pump.commit(decision)
