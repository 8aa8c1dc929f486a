"""The tools of MCP servers: what was accepted of each, and what is offered in its place and waits for the operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from organism.events import vocabulary as events
from organism.events.entity import Entity
from organism.events.record import Record
from organism.model import words
from organism.views.views import Keys, ReadModel, fold_each


def _tools(record: Record[Any]) -> Sequence[str]:
    return tuple(record.event.tools)


class PinnedTool(Entity, kw_only=True):
    """A tool of an MCP server: what was accepted of it, and what is offered instead."""

    name: words.AgentName
    server: Annotated[str, Meta(examples=["play"])]
    status: Annotated[Literal["accepted", "waiting"], Meta(description="What is waiting is off until it is accepted.")]
    accepted: Annotated[
        str, Meta(description="The digest of name, description and schema that were accepted; empty if none were.")
    ]
    offered: Annotated[str, Meta(description="That of what is offered instead and waits; empty if nothing does.")]
    position: words.Position


def _tool(name: str, row: PinnedTool | None, record: Record[Any]) -> PinnedTool | None:
    event: events.ForeignToolsAccepted | events.ForeignToolsChanged = record.event
    digest = event.tools[name]
    if isinstance(event, events.ForeignToolsAccepted):
        accepted, offered = digest, ""
    else:
        accepted, offered = "" if row is None else row.accepted, digest
    if not accepted and not offered:
        return None
    return PinnedTool(
        name=name,
        server=event.server,
        status="waiting" if offered else "accepted",
        accepted=accepted,
        offered=offered,
        position=record.position,
    )


_KEYS: Final[Mapping[type[events.Event], Keys]] = dict.fromkeys(
    (events.ForeignToolsAccepted, events.ForeignToolsChanged), _tools
)

FOREIGN_TOOLS: ReadModel[PinnedTool] = ReadModel(
    name="foreign_tools",
    version=1,
    types=_KEYS,
    fold=fold_each(_KEYS, _tool),
    row=PinnedTool,
    columns={"name": "TEXT", "status": "TEXT"},
    indexes=(("name",), ("status", "name")),
)
