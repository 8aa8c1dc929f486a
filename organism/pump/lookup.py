"""What a command names, looked up in the log where the fold no longer knows it: there now, there once, or never."""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from organism.errors import AlreadyResolved, NotFound
from organism.log.log import EventFilter, Log
from organism.model.thread import Step
from organism.pump.pump import Pump

_NUMBER: Final = re.compile(r"[1-9][0-9]{0,8}")
_HISTORY: Final = 1 << 20


async def indeterminate(pump: Pump, effect: str) -> Step:
    """The step of an effect (``MESSAGE:STEP``) of which nobody knows what became of it.

    Raises ``AlreadyResolved`` if that was so once, else ``NotFound``.
    """
    message_id, _, number = effect.rpartition(":")
    if _NUMBER.fullmatch(number):
        step = pump.state.routing.step(message_id, int(number))
        if step is not None and step.unknown:
            return step
        if await _was_indeterminate(pump.log, message_id, int(number)):
            raise AlreadyResolved("This effect is not indeterminate any more.")
    raise NotFound(f"There is no indeterminate effect {effect[:80]!r}.")


async def _was_indeterminate(log: Log, message_id: str, number: int) -> bool:
    message = await log.row("messages", message_id)
    if message is None:
        return False
    wanted = EventFilter((orjson.loads(message)["thread_id"],), ("step_started", "step_recorded"))
    found = (event.data for event in await log.read(wanted=wanted, limit=_HISTORY))
    return any(_is_in_doubt(data) and (data["message"], data["step"]) == (message_id, number) for data in found)


def _is_in_doubt(data: dict[str, Any]) -> bool:
    """Found so after a death, or by the kill that came while the effect was under way."""
    return "unknown" in data or data.get("error", {}).get("code") == "unknown"
