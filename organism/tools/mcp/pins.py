"""Which tools of MCP servers are accepted: by name, description and schema, as a digest.

The operator's log says what was accepted. The first sight of a server accepts all that it offers; what is new or
different later is off until the operator accepts it, since its text would stand in every prompt.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from organism.events import vocabulary as events
from organism.model.handler import HandlerMetadata, HandlerResponse
from organism.model.tool import ToolArguments, ToolError
from organism.views.foreign_tools import PinnedTool


class OfferedTool(NamedTuple):
    """A tool as its server offers it now."""

    description: str
    parameters: Mapping[str, Any]
    kind: str

    @property
    def digest(self) -> str:
        """The digest of all of it; with the name of its listener it is what is accepted."""
        return hashlib.sha256(json.dumps(self, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


class Pins:
    """``offered`` has the tools of each server that answered, by the names of their listeners.

    Until the log has said what is accepted, nothing is off: no handler runs before that.
    """

    def __init__(self) -> None:
        self.offered: dict[str, Mapping[str, OfferedTool]] = {}
        self._known: Mapping[str, PinnedTool] = {}

    def take(self, rows: Collection[PinnedTool]) -> bool:
        """What the log says (``views/foreign_tools.py``). Gives whether any tool is off, or is of a silent server."""
        self._known = {row.name: row for row in rows}
        found = ((server, name, tool) for server, tools in self.offered.items() for name, tool in tools.items())
        return any(self.is_off(*each) for each in found) or any(row.server not in self.offered for row in rows)

    def accepted(self, server: str) -> list[str]:
        """The tools that the server had when it was last seen: messages to them may be under way."""
        return [name for name, row in self._known.items() if row.server == server and row.accepted]

    def is_off(self, server: str, name: str, tool: OfferedTool) -> bool:
        """Whether the server offered it differently when it was accepted, or did not offer it then."""
        row = self._known.get(name)
        return self._was_seen(server) and (row is None or row.accepted != tool.digest)

    def news(self, configured: Collection[str]) -> Iterator[events.Event]:
        """What the log does not say yet of the servers that are configured, and of those that are not any more."""
        for server in {*configured, *(row.server for row in self._known.values())}:
            offered = {} if server not in configured else self.offered.get(server)
            if offered is None:  # it has not answered
                continue
            now = {name: tool.digest for name, tool in offered.items()}
            if now and not self._was_seen(server):
                yield events.ForeignToolsAccepted(server, now)
            elif changed := self._changes(server, now):
                yield events.ForeignToolsChanged(server, changed)

    def _was_seen(self, server: str) -> bool:
        return any(row.server == server for row in self._known.values())

    def _changes(self, server: str, now: Mapping[str, str]) -> dict[str, str]:
        known = {name: row for name, row in self._known.items() if row.server == server}
        changed = {}
        for name in sorted({*now, *known}):
            accepted, offered = (known[name].accepted, known[name].offered) if name in known else ("", "")
            digest = now.get(name, "")
            waits = "" if digest == accepted else digest
            if waits != offered:
                changed[name] = waits
        return changed


async def refuse_call(_payload: ToolArguments, _metadata: HandlerMetadata) -> HandlerResponse:
    """The handler of a tool that is off."""
    message = "Its server has changed this tool: it is off until the operator accepts it (organism tools accept)."
    return HandlerResponse.respond(ToolError("forbidden", message))
