"""Nesting: how many runs of agents a run lies in. A run within a run is bounded besides the hops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from organism.config.settings import Listener
from organism.model.completion import CompleteError
from organism.model.thread import Message

MOST_RUNS: Final = 3
"""So many lie in each other at most, the outermost counted."""


def depth_of(message: Message, listeners: Mapping[str, Listener]) -> int:
    """The runs above a handling: those around the injection that it follows from, and those that wait for it in an ask.

    Whoever called a model, or is an agent, has a run; a tool in between has none.
    """
    depth, ask = message.root.depth, message.ask
    while ask is not None:
        asker = ask.message
        listener = listeners.get(asker.to)
        is_agent = listener is not None and listener.is_agent
        depth += is_agent or any(step.kind == "complete" for step in (asker.steps or {}).values())
        ask = asker.ask
    return depth


def hold_depth(message: Message, listeners: Mapping[str, Listener]) -> None:
    """Raise ``CompleteError`` (``recursion_depth_exceeded``) if no further run may begin here."""
    depth = depth_of(message, listeners)
    if depth >= MOST_RUNS:
        raise CompleteError(
            "recursion_depth_exceeded",
            f"{message.to} would think within {depth} runs that wait for it; at most {MOST_RUNS} lie in each other.",
        )
