"""Clocks that stand still: what holds up a message holds up every ask that waits for it, however far away."""

from __future__ import annotations

from collections.abc import Iterable

from organism.model.thread import WAITS, Message, Step


def steps_held(message: Message, *, is_paused: bool) -> Iterable[Step]:
    """The steps whose clocks stand still for this message's sake.

    A pause holds up its own steps that wait for somebody and the asks that wait for it. While a human is asked whether
    it may be handled at all, the asks alone: the question itself has its own end.
    """
    if is_paused:
        yield from (step for step in (message.steps or {}).values() if step.ok is None and step.kind in WAITS)
    if is_paused or message.awaits_consent():
        yield from asks_above(message)


def asks_above(message: Message) -> Iterable[Step]:
    """The asks that wait for an answer of the message's branch, from the nearest to the farthest."""
    ask, seen = message.ask, set[Step]()
    while ask is not None and ask not in seen:
        seen.add(ask)
        yield ask
        ask = ask.message.ask


def stop_or_go(step: Step, at: int, *, is_held: bool) -> None:
    """Stop the step's clock at a time, or let it run on: then its end moves on by the time in between."""
    if is_held and not step.held_at:
        step.held_at = at
    elif step.held_at and not is_held:
        step.expires += at - step.held_at if step.expires else 0
        step.held_at = 0
