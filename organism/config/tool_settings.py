"""What ``tools`` of organism.yaml says of the shipped tools, checked and frozen.

The bounds beside the fields are the ones that ``config/tools.py`` enforces. No model and no caller can change any of
it: the switches of security are never arguments (S21).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import Field

from organism.config.fields import VARIABLE

Host = Annotated[str, Field(min_length=1, max_length=300)]
Variable = Annotated[str, Field(pattern=VARIABLE, max_length=128)]
Wait = Annotated[float, Field(gt=0, le=120)]
"""Seconds for an answer from outside, all redirects included."""


@dataclass(frozen=True, slots=True)
class HttpFetch:
    """``tools.http_fetch``: the tool is off until ``hosts`` are listed (``config/host_rules.py`` says how)."""

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

    http_fetch: HttpFetch | None = None
    mcp: Mapping[str, McpServer] = field(default_factory=dict)
    wikipedia: Wikipedia = field(default_factory=Wikipedia)
    section: Mapping[str, Any] = field(default_factory=dict)
