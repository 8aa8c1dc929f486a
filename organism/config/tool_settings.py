"""What ``tools`` of organism.yaml says of the shipped tools, checked and frozen.

The bounds beside the fields are the ones that ``config/tools.py`` enforces. No model and no caller can change any of
it: the switches of security are never arguments (spec 7.3, S21).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

from pydantic import Field

Host = Annotated[str, Field(min_length=1, max_length=300)]
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
class Tools:
    """The section, with what was left out. ``http_fetch`` is None while it is off. ``section`` is all as written."""

    http_fetch: HttpFetch | None = None
    wikipedia: Wikipedia = field(default_factory=Wikipedia)
    section: Mapping[str, Any] = field(default_factory=dict)
