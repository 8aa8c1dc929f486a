"""``tools`` of organism.yaml: what the shipped tools may reach (spec 4.6)."""

from __future__ import annotations

from typing import Final

from organism.config.address import wrong_address
from organism.config.check import held, near
from organism.config.faults import Faults
from organism.config.host_rules import host_rule
from organism.config.tool_settings import HttpFetch, Tools, Wikipedia
from organism.config.yaml import Node

SERVICES: Final = ("http_fetch", "wikipedia")


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


def _wikipedia(node: Node, faults: Faults) -> Wikipedia:
    section = held(Wikipedia, node, ("tools", "wikipedia"), faults)
    if wrong := wrong_address(section.base_url, "https://de.wikipedia.org", "leave it out"):
        faults.add(node.nearest(("base_url",)).line, ("tools", "wikipedia", "base_url"), wrong)
    return section
