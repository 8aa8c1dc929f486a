"""``tools`` of organism.yaml: what the shipped tools may reach. No model and no caller can change it (S21)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final

from pydantic import Field

from organism.config.check import Section, Variable, came
from organism.config.faults import near
from organism.config.host_rules import host_rule, wrong_address

SERVICES: Final = ("http_fetch", "mcp", "wikipedia")
_SERVER: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")

Host = Annotated[str, Field(min_length=1, max_length=300)]
Wait = Annotated[float, Field(gt=0, le=120)]
"""Seconds for an answer from outside, all redirects included."""


@dataclass(frozen=True, slots=True)
class HttpFetchTerms:
    """``tools.http_fetch``: the tool is off until ``hosts`` are listed (``host_rules`` says how)."""

    REQUIRED: ClassVar = ("hosts",)

    hosts: tuple[Host, ...] = ()
    timeout_s: Wait = 20.0
    max_bytes: Annotated[int, Field(ge=1, le=10 * 1024 * 1024)] = 1024 * 1024
    max_redirects: Annotated[int, Field(ge=0, le=10)] = 5


@dataclass(frozen=True, slots=True)
class Wikipedia:
    """``tools.wikipedia``: where ``wikipedia_search`` and ``wikipedia_summary`` ask."""

    base_url: Annotated[str, Field(min_length=1, max_length=2000)] = "https://en.wikipedia.org"
    timeout_s: Wait = 10.0


@dataclass(frozen=True, slots=True)
class McpServer:
    """One of ``tools.mcp``: a server of tools, either a command that is run here or an address.

    A command gets the usual variables of a login, those that ``inherit`` names, and those of ``env``; it runs in the
    folder of organism.yaml. ``token_env`` names the variable with the bearer token of an address. ``tools`` are those
    that are wanted; all, if none is named. ``timeout_s`` is for one call.
    """

    command: tuple[Annotated[str, Field(min_length=1, max_length=4096)], ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    inherit: tuple[Variable, ...] = ()
    url: Annotated[str, Field(min_length=1, max_length=2000)] = ""
    token_env: Variable = ""
    tools: tuple[Annotated[str, Field(min_length=1, max_length=128)], ...] = ()
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = 60.0


@dataclass(frozen=True, slots=True)
class Tools:
    """The section, with what was left out. ``http_fetch`` is None while it is off. ``section`` is all as written."""

    http_fetch: HttpFetchTerms | None = None
    mcp: Mapping[str, McpServer] = field(default_factory=dict)
    wikipedia: Wikipedia = field(default_factory=Wikipedia)
    section: Mapping[str, Any] = field(default_factory=dict)


def read_tools(root: Section) -> Tools:
    """``tools`` of the file; all faults are noted."""
    sections = {str(each.place[-1]): each for each in root.mappings("tools")}
    for name in sections:
        if name not in SERVICES:
            known = near(name, SERVICES) or f"; known here: {', '.join(SERVICES)}"
            root.add(f"unknown key `{name}`{known}", "tools", name)
    http_fetch, mcp, wikipedia = (sections.get(name) for name in SERVICES)
    whole = root.at("tools")
    return Tools(
        http_fetch=None if http_fetch is None else _http_fetch(http_fetch),
        mcp={} if mcp is None else _mcp(mcp),
        wikipedia=Wikipedia() if wikipedia is None else _wikipedia(wikipedia),
        section=whole.node.plain() if whole is not None and isinstance(whole.node.value, dict) else {},
    )


def _http_fetch(section: Section) -> HttpFetchTerms:
    hosts = section.at("hosts")
    if hosts is not None and hosts.node.value == ():
        hosts.add("expected at least one host; leave `http_fetch` out to turn it off")
    for index, host in hosts.node.items() if hosts is not None else ():
        try:
            if isinstance(host.value, str):
                host_rule(host.value)
        except ValueError as wrong:
            section.add(str(wrong), "hosts", index)
    return section.record(HttpFetchTerms)


def _mcp(section: Section) -> dict[str, McpServer]:
    for name, item in section.node.items():
        if not _SERVER.fullmatch(str(name)):
            section.add("expected a name: a small letter, then small letters, digits or `-`", name)
        if not isinstance(item.value, dict):
            section.add(f"expected a mapping, came {came(item.plain())}", name)
    return {str(each.place[-1]): _mcp_server(each) for each in section.mappings()}


def _mcp_server(section: Section) -> McpServer:
    """A server is either run here or has an address."""
    server, is_run, is_asked = section.record(McpServer), section.has("command"), section.has("url")
    if is_run and is_asked:
        section.add("a server has a `command` or a `url`, not both", "url")
    if not is_run and not is_asked:
        section.add("a server has a `command`, such as [python, server.py], or a `url`", "command")
    for key in ("env", "inherit"):
        if section.has(key) and is_asked:
            section.add("a server with a `url` is not run here; it gets no variables", key)
    if section.has("token_env") and is_run:
        section.add("a server that is run here takes no token; name its variables in `inherit`", "token_env")
    remedy = "name its variable by `token_env`"
    if server.url and (wrong := wrong_address(server.url, "https://tools.example/mcp", remedy)):
        section.add(wrong, "url")
    if (command := section.at("command")) is not None and command.node.value == ():
        section.add("expected at least the program", "command")
    return server


def _wikipedia(section: Section) -> Wikipedia:
    wikipedia = section.record(Wikipedia)
    if wrong := wrong_address(wikipedia.base_url, "https://de.wikipedia.org", "leave it out"):
        section.add(wrong, "base_url")
    return wikipedia
