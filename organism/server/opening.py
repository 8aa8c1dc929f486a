"""What a connection asks for by its address: ``/ws?since=…&log=…&threads=…&agents=…&events=…&batch=true&ticket=…``.

All of it but the ticket is what ``subscribe`` takes; lists are parted by commas. So a filter holds from the first
frame on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from organism.errors import Fault, InvalidField, InvalidRequest, UnknownField
from organism.server.auth import TICKET
from organism.server.bodies import parsed
from organism.server.commands import Subscribe

LISTS: Final = ("threads", "agents", "events")
TAKEN: Final = ("since", "log", *LISTS, "batch", TICKET)
SWITCH: Final = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Asked:
    """What the address says: how to ``begin``, and the ``ticket`` that it comes with."""

    begin: Subscribe
    ticket: str | None

    @property
    def resumes(self) -> bool:
        """Whether the client has the state already and goes on from a position."""
        return self.begin.since is not None or self.begin.log is not None


def asked_of(query: Mapping[str, str]) -> Asked:
    """The parsed address. Raises ``InvalidRequest`` with what is wrong in ``query.…``."""
    for name in query:
        if name not in TAKEN:
            raise UnknownField(
                f"The parameter {name!r} is not known here; /ws takes {', '.join(TAKEN)}.", param=f"query.{name}"
            )
    given = {name: _value(name, text) for name, text in query.items() if name != TICKET}
    try:
        begin = parsed(Subscribe, given)
        begin.filter()
    except InvalidRequest as error:
        faults = tuple(Fault("query." + fault.pointer.split("/")[1], fault.message) for fault in error.details)
        raise type(error)(error.message, details=faults) from error
    return Asked(begin, query.get(TICKET))


def _value(name: str, text: str) -> Any:
    if name == "since":
        return _position(text)
    if name == "batch":
        return SWITCH.get(text, text)
    return [part for part in text.split(",") if part] if name in LISTS else text


def _position(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):  # noqa: PLR2004 - digits of 2⁶³
        raise InvalidField(f"`since` is a position, a whole number; came {text[:40]!r}.", param="query.since")
    return int(text)
