"""What a connection asks for by its address: ``/ws?since=…&log=…&threads=…&agents=…&events=…&batch=true&ticket=…``.

All of it but the ticket is what ``subscribe`` takes; lists are parted by commas. So a filter holds from the first
frame on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from organism.errors import BadPosition, Fault, InvalidField, InvalidRequest, UnknownField
from organism.server.auth import TICKET
from organism.server.bodies import Faults, parsed
from organism.server.commands import Subscribe

LISTS: Final = ("threads", "agents", "events")
TAKEN: Final = ("since", "log", *LISTS, "batch", TICKET)
LONGEST: Final = 19
MAX_POSITION: Final = (1 << 63) - 1
IN_ADDRESS: Final = {"/since": "query.since", "/log": "query.log"}
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


def asked_of(query: Mapping[str, str], taken: Sequence[str] = TAKEN) -> Asked:
    """The parsed address, which may have what is ``taken``. Raises ``InvalidRequest`` with all that is wrong."""
    faults = Faults()
    given = {}
    for name, text in query.items():
        with faults:
            _hold_taken(name, taken)
            given[name] = _value(name, text)
    given.pop(TICKET, None)
    with faults:
        begin = _begin(given)
    faults.tell()
    return Asked(begin, query.get(TICKET))


def _begin(given: Mapping[str, Any]) -> Subscribe:
    try:
        begin = parsed(Subscribe, given)
        begin.filter()
    except InvalidRequest as error:
        faults = tuple(Fault("query." + fault.pointer.split("/")[1], fault.message) for fault in error.details)
        raise type(error)(error.message, details=faults) from error
    return begin


def _hold_taken(name: str, taken: Sequence[str]) -> None:
    if name not in taken:
        raise UnknownField(
            f"The parameter {name!r} is not known here; it takes {', '.join(taken)}.", param=f"query.{name}"
        )


def _value(name: str, text: str) -> Any:
    if name == "since":
        return position_in(text, "query.since")
    if name == "batch":
        return SWITCH.get(text, text)
    return [part for part in text.split(",") if part] if name in LISTS else text


def position_in(text: str, place: str) -> int:
    """The position that a text says. Raises ``InvalidField``, and ``BadPosition`` for one that no log can have."""
    if not (text.isascii() and text.isdigit()):
        name = place.rpartition(".")[2]
        raise InvalidField(f"`{name}` is a position, a whole number; came {text[:40]!r}.", param=place)
    if len(text) > LONGEST or int(text) > MAX_POSITION:
        raise BadPosition(f"The position {text[:40]} is ahead of any log.", param=place)
    return int(text)
