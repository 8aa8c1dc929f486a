"""The base of records that are compared and shown by identity."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Entity(Struct, eq=False):
    """Its fields may lead through the whole state, payloads included: a traceback that shows locals must not follow."""

    def __repr__(self) -> str:
        return object.__repr__(self)

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return []
