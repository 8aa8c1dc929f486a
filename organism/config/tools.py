"""``tools`` of organism.yaml: what the shipped tools may reach."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from organism.config.check import came, held
from organism.config.faults import Faults, Place
from organism.config.host_rules import host_rule, wrong_address
from organism.config.text import near
from organism.config.tool_settings import HttpFetch, McpServer, Tools, Wikipedia
from organism.config.yaml import Node

SERVICES: Final = ("http_fetch", "mcp", "wikipedia")
_SERVER: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")


def read_tools(node: Node | None, faults: Faults) -> Tools:
    """The section; all faults are noted."""
    written = node.value if node is not None and isinstance(node.value, dict) else {}
    items = {name: item for name, item in written.items() if isinstance(item.value, dict)}
    for name, item in items.items():
        if name not in SERVICES:
            known = near(name, SERVICES) or f"; known here: {', '.join(SERVICES)}"
            faults.add(item.line, ("tools", name), f"unknown key `{name}`{known}")
    http_fetch, wikipedia = items.get("http_fetch"), items.get("wikipedia")
    return Tools(
        http_fetch=None if http_fetch is None else _http_fetch(http_fetch, faults),
        mcp={} if "mcp" not in items else _mcp(items["mcp"], faults),
        wikipedia=Wikipedia() if wikipedia is None else _wikipedia(wikipedia, faults),
        section={} if node is None else node.plain(),
    )


def _http_fetch(node: Node, faults: Faults) -> HttpFetch:
    section = held(HttpFetch, node, ("tools", "http_fetch"), faults)
    place, hosts = ("tools", "http_fetch", "hosts"), node.nearest(("hosts",))
    if hosts.value == ():
        faults.add(hosts.line, place, "expected at least one host; leave `http_fetch` out to turn it off")
    for index, host in hosts.items() if hosts is not node else ():
        if isinstance(host.value, str) and (wrong := _wrong_host(host.value)):
            faults.add(host.line, (*place, index), wrong)
    return section


def _wrong_host(text: str) -> str | None:
    try:
        host_rule(text)
    except ValueError as wrong:
        return str(wrong)
    return None


def _mcp(node: Node, faults: Faults) -> dict[str, McpServer]:
    servers = {}
    for name, item in node.items():
        place: Place = ("tools", "mcp", str(name))
        if not _SERVER.fullmatch(str(name)):
            faults.add(item.line, place, "expected a name: a small letter, then small letters, digits or `-`")
        if not isinstance(item.value, dict):
            faults.add(item.line, place, f"expected a mapping, came {came(item.plain())}")
            continue
        server = held(McpServer, item, place, faults)
        for key, wrong in _wrong_server(server, item.value):
            faults.add(item.nearest((key,)).line, (*place, key), wrong)
        servers[str(name)] = server
    return servers


def _wrong_server(server: McpServer, said: Mapping[str, Node]) -> Iterator[tuple[str, str]]:
    """What does not go together: a server is run here, or it has an address."""
    if "command" in said and "url" in said:
        yield "url", "a server has a `command` or a `url`, not both"
    if "command" not in said and "url" not in said:
        yield "command", "a server has a `command`, such as [python, server.py], or a `url`"
    for key in ("env", "inherit"):
        if key in said and "url" in said:
            yield key, "a server with a `url` is not run here; it gets no variables"
    if "token_env" in said and "command" in said:
        yield "token_env", "a server that is run here takes no token; name its variables in `inherit`"
    example = "https://tools.example/mcp"
    if server.url and (wrong := wrong_address(server.url, example, "name its variable by `token_env`")):
        yield "url", wrong
    if said.get("command") is not None and said["command"].value == ():
        yield "command", "expected at least the program"


def _wikipedia(node: Node, faults: Faults) -> Wikipedia:
    section = held(Wikipedia, node, ("tools", "wikipedia"), faults)
    if wrong := wrong_address(section.base_url, "https://de.wikipedia.org", "leave it out"):
        faults.add(node.nearest(("base_url",)).line, ("tools", "wikipedia", "base_url"), wrong)
    return section
