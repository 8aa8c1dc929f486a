"""Route: may this payload go there, and who gets it. A refusal tells the sender little and the operator all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from organism.config.settings import Listener
from organism.events.vocabulary import RefusalCode, RefusalReason
from organism.model.ids import CONSOLE
from organism.pump.rules import Rules

GENERIC: Final = {
    "routing": "The message could not be delivered.",
    "validation": "The message was not accepted.",
    "timeout": "There was no answer in time.",
}
"""What a sender reads, whatever the reason."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A send that is not made: ``code`` is for the sender, ``why`` and ``reason`` for the operator."""

    code: RefusalCode
    why: RefusalReason
    reason: str


class Sender(NamedTuple):
    """Who sends, in which depth, with how many messages of the thread open already."""

    listener: Listener | None
    depth: int
    open: int


def may_address(sender: Listener | None, to: str) -> bool:
    """Whether ``sender`` may send to ``to``; None is the console, which may address every listener."""
    return sender is None or to in sender.peers or sender.may_send_to(to)


def receivers(rules: Rules, sender: Sender, to: str, payload: object) -> tuple[Listener, ...] | Refused:
    """Who gets ``payload`` when ``sender`` sends it to ``to``; an empty tuple means the console."""
    if not may_address(sender.listener, to):
        name = sender.listener.name if sender.listener is not None else CONSOLE
        return Refused("routing", "not_a_peer", f"{name} may not send to {to}: it is not among its peers.")
    bounded = within_limits(rules, sender)
    if bounded is not None:
        return bounded
    return () if to == CONSOLE else _group(rules, sender, to, payload)


def _group(rules: Rules, sender: Sender, to: str, payload: object) -> tuple[Listener, ...] | Refused:
    """The listener and those of its broadcast group, if the payload is theirs and each may be addressed."""
    listener = rules.listeners.get(to)
    if listener is None:
        return Refused("routing", "unknown_receiver", f"There is no listener named {to}.")
    expected, came = listener.payload_class.__name__, type(payload).__name__
    if expected != came:
        return Refused("validation", "schema", f"{to} takes {expected}; {came} came.")
    if not listener.broadcast:
        return (listener,)
    group = rules.receivers(listener)
    for member in group:
        if not may_address(sender.listener, member.name):
            reason = f"{to} shares its group with {member.name}, which is not a peer of the sender."
            return Refused("routing", "not_a_peer", reason)
    return group


def within_limits(rules: Rules, sender: Sender) -> Refused | None:
    """The bounds on depth and on a thread's open messages."""
    limits = rules.limits
    if sender.depth > limits.max_depth:
        return Refused("validation", "depth", f"Depth {sender.depth} is beyond limits.max_depth ({limits.max_depth}).")
    if sender.open >= limits.max_open_per_thread:
        reason = (
            f"The thread has {sender.open} open messages; limits.max_open_per_thread is {limits.max_open_per_thread}."
        )
        return Refused("validation", "flood", reason)
    return None
