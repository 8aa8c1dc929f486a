"""The rules of one configuration: a reload makes new ones; a handling goes on with those that it began with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from inspect import cleandoc
from typing import Any, Final

import orjson

from organism.codec import Codec, Terms
from organism.config.settings import Handler, Listener, Settings
from organism.model.agent import Answer
from organism.model.handler import SystemError as SystemErrorPayload
from organism.model.handler import TodoComplete, TodoRegistered, TodoUntil
from organism.model.tool import CONFIRM_TOKEN, ConfirmRequired, ToolArguments, ToolError, ToolSpec

OWN_PAYLOADS = (SystemErrorPayload, ToolError, ConfirmRequired, TodoUntil, TodoRegistered, TodoComplete)
"""Payload classes that the organism itself sends or takes."""
_NO_PARAMETER: Final = frozenset({"$schema", "title", "description"})
"""What a payload's JSON Schema says of the payload as a whole, and a tool says elsewhere."""


class Rules:
    """One configuration's rules; no payload decoded under one ``generation`` is used under another."""

    __slots__ = ("_names", "_terms", "codec", "generation", "groups", "limits", "listeners", "retry", "settings")

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
            listener.name: replace(listener, handler=code.get(listener.name)) if listener.is_shipped else listener
            for listener in (*settings.listeners, *settings.shelf)
        }
        self.groups: dict[type, tuple[Listener, ...]] = {}
        for listener in settings.listeners:
            if listener.broadcast:
                self.groups[listener.payload_class] = (*self.groups.get(listener.payload_class, ()), listener)
        self._names: dict[str, str] = {}
        self._terms: dict[str, Terms] = {
            listener.name: Terms(listener.max_payload_bytes) for listener in self.listeners.values()
        }

    def receivers(self, listener: Listener) -> tuple[Listener, ...]:
        """The broadcast group that ``listener`` is in."""
        return self.groups[listener.payload_class]

    def terms(self, name: str) -> Terms:
        """What the receiver of that name takes; for the console what anybody takes."""
        return self._terms.get(name, self.codec.terms)

    def usage(self, listener: Listener) -> str:
        """How to talk to the listener's peers, as text for its prompt."""
        known = self._names.get(listener.name)
        if known is None:
            peers = (self.listeners[name] for name in listener.peers if name in self.listeners)
            known = "\n\n".join(
                f"{peer.name}: {self.codec.schema(peer.payload_class.__name__).usage}" for peer in peers
            )
            self._names[listener.name] = known
        return known

    def register(self, payload_class: type) -> None:
        """Let the codec know this class, as it must before a reply of it is sealed or read."""
        if not self.codec.knows(payload_class):
            self.codec = self.codec.with_class(payload_class)


def payload_classes(settings: Settings) -> tuple[type, ...]:
    """Every class that a configuration names: what listeners take and give, and the organism's own."""
    found: dict[type, None] = dict.fromkeys(OWN_PAYLOADS)
    for listener in (*settings.listeners, *settings.shelf):
        found[listener.payload_class] = None
        found.update(dict.fromkeys(sorted(listener.accepts, key=lambda cls: cls.__name__)))
        found.update(dict.fromkeys((*listener.replies, *_answers(listener))))
    return tuple(found)


def _answers(listener: Listener) -> tuple[type, ...]:
    """What the turn loop answers with for a listener that it runs."""
    return (Answer,) if listener.handler_path is None and not listener.is_shipped else ()


def tool_spec(listener: Listener, codec: Codec) -> ToolSpec:
    """What is offered: the listener's name, its description with the payload's docstring, the payload's JSON Schema."""
    if listener.parameters is not None:
        return ToolSpec(listener.name, cleandoc(listener.description), _parameters(listener, listener.parameters))
    schema = codec.schema(listener.payload_class.__name__)
    parameters = {key: value for key, value in schema.json_schema.items() if key not in _NO_PARAMETER}
    return ToolSpec(listener.name, _description(listener, schema.json_schema), parameters)


def _parameters(listener: Listener, own: Mapping[str, Any]) -> Mapping[str, Any]:
    """Those of a tool that is not ours, with room for the token if its calls are confirmed."""
    if not listener.confirm:
        return own
    return {**own, "properties": {**own.get("properties", {}), CONFIRM_TOKEN: {"type": "string"}}}


def _description(listener: Listener, schema: Mapping[str, Any]) -> str:
    said, more = cleandoc(listener.description), schema.get("description", "")
    return said if not more or more == said else f"{said}\n\n{more}"


def call_json(listener: Listener, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The payload of a call as JSON. A tool that is not ours takes its arguments as text, and checks them itself."""
    return arguments if listener.payload_class is not ToolArguments else {"json": orjson.dumps(arguments).decode()}
