"""Fetching by ``http_fetch`` with a list of hosts, over a network that is played."""

from __future__ import annotations

from typing import Any, cast

from organism.config.tool_settings import HttpFetch as Terms
from organism.model.tool import ToolError
from organism.tools.http_fetch import Fetched, Fetcher, HttpFetch
from tests.tools.outside import PUBLIC, PlayedNet, Steps

HOSTS = ("a.example", "b.example", "*.c.example", "8.8.8.8", "[2606:4700::1]", "odd.example:8080")
NAMES = {
    "a.example": [[PUBLIC]],
    "b.example": [["1.1.1.1"]],
    "x.c.example": [["2606:4700:4700::1111"]],
    "odd.example": [[PUBLIC]],
}


async def fetched(net: PlayedNet, url: str, **terms: Any) -> Fetched | ToolError:
    """What the tool answers."""
    fetcher = Fetcher(Terms(HOSTS, **terms), net)
    found = (await fetcher.fetch(HttpFetch(url), cast("Any", Steps()))).payload
    assert isinstance(found, Fetched | ToolError)
    return found


def net_of(port: int, **names: list[list[str]]) -> PlayedNet:
    """A network whose every way leads to the server at ``port``; ``names`` lead elsewhere than usual."""
    return PlayedNet(names={**{k: [list(a) for a in v] for k, v in NAMES.items()}, **names}, port=port)
