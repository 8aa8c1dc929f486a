"""The rules of one configuration: what listeners there are, who may send what to whom, and how much.

A reload makes new rules; a handling goes on with those that it began with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from inspect import cleandoc
from typing import Any, Final, NamedTuple

import orjson

from organism.codec import Codec, PayloadLimits
from organism.config.settings import Handler, Listener, Settings
from organism.events import vocabulary as events
from organism.model.agent import Answer
from organism.model.completion import ChatCompletion, ChatCompletionRequest
from organism.model.handler import SystemError as SystemErrorPayload
from organism.model.handler import TodoComplete, TodoRegistered, TodoUntil
from organism.model.ids import CONSOLE
from organism.model.sessions import CompactionFailure, CompactionRequest, CompactionResult
from organism.model.tool import CONFIRM_TOKEN, ConfirmRequired, ToolArguments, ToolError, ToolSpec

OWN_PAYLOADS = (
    *(SystemErrorPayload, ToolError, ConfirmRequired, TodoUntil, TodoRegistered, TodoComplete),
    *(ChatCompletionRequest, ChatCompletion),
    *(CompactionRequest, CompactionResult, CompactionFailure),
)
"""Payload classes that the organism itself sends or takes."""
_NO_PARAMETER: Final = frozenset({"$schema", "title", "description"})
"""Keys of a payload's JSON Schema that describe it as a whole, which a tool does elsewhere."""


class Rules:
    """One configuration's rules; no payload decoded under one ``generation`` is used under another."""

    __slots__ = (
        "_limits_of",
        "_names",
        "codec",
        "generation",
        "groups",
        "limits",
        "listeners",
        "retry",
        "settings",
        "tools",
    )

    def __init__(
        self, settings: Settings, codec: Codec, generation: int, bound: Mapping[str, Handler] | None = None
    ) -> None:
        self.settings = settings
        self.limits = settings.limits
        self.retry = settings.retry
        self.codec = codec
        self.generation = generation
        code = bound or {}
        self.listeners: dict[str, Listener] = {
            listener.name: replace(listener, handler=code[listener.name]) if listener.name in code else listener
            for listener in settings.receivers
        }
        named = frozenset(name for listener in self.listeners.values() for name in listener.tools)
        self.tools = frozenset(name for name, each in self.listeners.items() if each.is_shipped or name in named)
        """The shipped tools that are on, and every listener that another names in ``tools``."""
        self.groups: dict[type, tuple[Listener, ...]] = {}
        for listener in settings.listeners:
            if listener.broadcast:
                self.groups[listener.payload_class] = (*self.groups.get(listener.payload_class, ()), listener)
        self._names: dict[str, str] = {}
        self._limits_of: dict[str, PayloadLimits] = {
            listener.name: PayloadLimits(listener.max_payload_bytes) for listener in self.listeners.values()
        }

    def receivers(self, listener: Listener) -> tuple[Listener, ...]:
        """The broadcast group that ``listener`` is in."""
        return self.groups[listener.payload_class]

    def is_tool_call(self, sender: str, listener: Listener) -> bool:
        """Whether a request to the listener is a tool's call: any that an agent makes, unless of another agent.

        An agent is a tool where it is called as one: its own calls are what it does.
        """
        calling = self.listeners.get(sender)
        if listener.is_agent:
            return calling is not None and listener.name in self.tools
        return listener.name in self.tools or (calling is not None and calling.is_agent)

    def payload_limits(self, name: str) -> PayloadLimits:
        """What the receiver of that name takes; for the console the general limits."""
        return self._limits_of.get(name, self.codec.limits)

    def usage(self, listener: Listener) -> str:
        """The text for the listener's prompt that describes its peers."""
        known = self._names.get(listener.name)
        if known is None:
            peers = (self.listeners[name] for name in listener.peers if name in self.listeners)
            known = "\n\n".join(
                f"{peer.name}: {self.codec.schema(peer.payload_class.__name__).usage}" for peer in peers
            )
            self._names[listener.name] = known
        return known

    def register(self, payload_class: type) -> None:
        """Add a class to the codec, before a reply of it is encoded or read."""
        if not self.codec.knows(payload_class):
            self.codec = self.codec.with_class(payload_class)


def payload_classes(settings: Settings) -> tuple[type, ...]:
    """Every class that a configuration names: what listeners take and give, and the organism's own."""
    found: dict[type, None] = dict.fromkeys(OWN_PAYLOADS)
    for listener in settings.receivers:
        found[listener.payload_class] = None
        found.update(dict.fromkeys(sorted(listener.accepts, key=lambda cls: cls.__name__)))
        found.update(dict.fromkeys(replies_of(listener)))
    return tuple(found)


def replies_of(listener: Listener) -> tuple[type, ...]:
    """The classes that it is known to answer with; the turn loop has one of its own. None: nothing is known."""
    return (Answer,) if listener.handler_path is None and not listener.is_shipped else listener.replies


def tool_spec(listener: Listener, codec: Codec) -> ToolSpec:
    """What is offered: the listener's name, its description with the payload's docstring, the payload's JSON Schema."""
    if listener.parameters is not None:
        return ToolSpec(listener.name, cleandoc(listener.description), _parameters(listener, listener.parameters))
    schema = codec.schema(listener.payload_class.__name__)
    parameters = {key: value for key, value in schema.json_schema.items() if key not in _NO_PARAMETER}
    return ToolSpec(listener.name, _description(listener, schema.json_schema), parameters)


def _parameters(listener: Listener, own: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters of an external tool, plus the token if its calls are confirmed."""
    if not listener.confirm:
        return own
    return {**own, "properties": {**own.get("properties", {}), CONFIRM_TOKEN: {"type": "string"}}}


def _description(listener: Listener, schema: Mapping[str, Any]) -> str:
    said, more = cleandoc(listener.description), schema.get("description", "")
    return said if not more or more == said else f"{said}\n\n{more}"


def call_json(listener: Listener, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The payload of a call as JSON. An external tool takes its arguments as text, and checks them itself."""
    return arguments if listener.payload_class is not ToolArguments else {"json": orjson.dumps(arguments).decode()}


GENERIC: Final = {
    "routing": "The message could not be delivered.",
    "validation": "The message was not accepted.",
    "timeout": "There was no answer in time.",
}
"""What the sender learns, whatever the reason."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A send that is not made: ``code`` is all that the sender learns; ``why`` and ``reason`` are for the operator."""

    code: events.RefusalCode
    why: events.RefusalReason
    reason: str
    dead_letter: str = ""


class Sender(NamedTuple):
    """Who sends, at which depth, with how many messages of the thread open already."""

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
    if listener is None or listener.is_internal:
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
