"""A tool as a model sees it: what it may call, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A function that is offered to a model; ``parameters`` is the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]
