"""The table of shipped tools, and their code bound to what it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from organism.config.load import foresee
from organism.config.settings import Handler
from organism.config.shipped import Ship, ShippedTool
from organism.config.tool_settings import Tools
from organism.log.log import History
from organism.tools import (
    calculator,
    current_datetime,
    http_fetch,
    key_value,
    wikipedia_search,
    wikipedia_summary,
)
from organism.tools.http_fetch import Fetcher
from organism.tools.key_value import Values
from organism.tools.served import guessed
from organism.tools.web import Net
from organism.tools.wikipedia import Wiki


def shipped(release: str) -> Ship:
    """Gives the shipped tools of this release, as ``tools`` of an organism.yaml sets them."""

    def ship(tools: Tools) -> Sequence[ShippedTool]:
        table = (
            calculator.TOOL,
            current_datetime.TOOL,
            wikipedia_search.tool(tools),
            wikipedia_summary.tool(tools),
            http_fetch.tool(tools),
            *key_value.TOOLS,
        )
        return [replace(tool, release=release) for tool in table]

    return ship


def unasked(release: str, config: Path) -> Ship:
    """The same with the tools of MCP servers that a file names, without asking any server what it has."""
    _, named = foresee(config)
    ship = shipped(release)

    def ship_all(tools: Tools) -> Sequence[ShippedTool]:
        served = (tool for name, server in tools.mcp.items() for tool in guessed(name, server, named))
        return [*ship(tools), *served]

    return ship_all


def bound(tools: Tools, net: Net, log: History) -> Mapping[str, Handler]:
    """The handler of each shipped tool for one tenant, by the tool's name."""
    wiki, values = Wiki(tools.wikipedia, net), Values(log)
    return {
        "calculator": calculator.calculate,
        "current_datetime": current_datetime.tell,
        "wikipedia_search": wikipedia_search.searching(wiki),
        "wikipedia_summary": wikipedia_summary.summing_up(wiki),
        **({"http_fetch": Fetcher(tools.http_fetch, net).fetch} if tools.http_fetch is not None else {}),
        "key_value_get": values.get,
        "key_value_set": values.set,
        "key_value_list": values.list,
        "key_value_delete": values.delete,
    }
