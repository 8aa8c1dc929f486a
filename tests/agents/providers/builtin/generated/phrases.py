"""The sets of phrases: what is said, and what it wants, with slots in both."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SETS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")

Request = tuple[str, Mapping[str, Mapping[str, str]]]
"""A text, and the calls that it wants by the names of their tools."""
Fact = tuple[str, Sequence[str], Sequence[str]]
"""How it is told, how it may be asked for, and what may be told."""
Field = tuple[str, Mapping[str, Any], Sequence[tuple[str, str]]]
"""A field's name and schema, and sentences that tell it, each with the value that it tells."""


@dataclass(frozen=True)
class Phrases:
    """One set: requests by what they want and by language, facts and fields by language."""

    tools: Mapping[str, Mapping[str, Sequence[Request]]]
    facts: Mapping[str, Sequence[Fact]]
    fields: Mapping[str, Sequence[Field]]


def phrases(name: str) -> Phrases:
    """The set of that name."""
    path = Path(__file__).parent / "phrases" / f"{name}.json"
    return Phrases(**json.loads(path.read_text(encoding="utf-8")))
