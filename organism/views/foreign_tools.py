"""The tools of MCP servers: what was accepted of each, and what is offered in its place and waits for the operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from organism.events.record import Record
from organism.events.vocabulary import Event, ForeignToolsAccepted, ForeignToolsChanged
from organism.views.views import Keys, ReadModel, Row, fold_each


def _tools(record: Record[Any]) -> Sequence[str]:
    return tuple(record.event.tools)


def _tool(name: str, row: Row | None, record: Record[ForeignToolsAccepted | ForeignToolsChanged]) -> Row | None:
    """``accepted`` and ``offered`` are digests; the empty text if nothing was accepted, or nothing else is offered."""
    event, digest = record.event, record.event.tools[name]
    if isinstance(event, ForeignToolsAccepted):
        accepted, offered = digest, ""
    else:
        accepted, offered = "" if row is None else row["accepted"], digest
    if not accepted and not offered:
        return None
    return {
        "name": name,
        "server": event.server,
        "status": "waiting" if offered else "accepted",
        "accepted": accepted,
        "offered": offered,
        "position": record.position,
    }


_KEYS: Final[Mapping[type[Event], Keys]] = dict.fromkeys((ForeignToolsAccepted, ForeignToolsChanged), _tools)

FOREIGN_TOOLS: ReadModel[Row] = ReadModel(
    name="foreign_tools",
    version=1,
    types=_KEYS,
    fold=fold_each(_KEYS, _tool),
    columns={"name": "TEXT", "status": "TEXT"},
    indexes=(("name",), ("status", "name")),
)
