"""``?at=``: an answer as it stood when the log ended at a position, or at the last position of a time."""

from __future__ import annotations

from typing import Final

from organism.errors import BadPosition
from organism.server.call import Call
from organism.server.wire import microseconds

AT: Final = "at"
_LONGEST: Final = 19
"""So many digits has the greatest position there can be."""


async def moment(call: Call) -> int | None:
    """The position that the query asks for; None for now, which the head is too.

    Raises ``BadPosition`` for one ahead of the log, ``InvalidField`` for what is neither a position nor a time.
    """
    said = call.query.get(AT)
    if said is None:
        return None
    log = call.tenant.log
    if not (said.isascii() and said.isdigit()):
        at = await log.position_at(microseconds(said, "query.at"))
    elif len(said) > _LONGEST or int(said) > log.head:
        raise BadPosition(f"The position {said[:40]} is ahead of the log; its head is {log.head}.", param="query.at")
    else:
        at = int(said)
    return None if at == log.head else at
