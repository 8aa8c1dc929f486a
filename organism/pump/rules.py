"""The rules of one configuration: listeners, groups, codec. A reload makes new ones.

A handling keeps those it began with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from organism.codec import Codec, Terms
from organism.config.settings import Handler, Listener, Settings
from organism.model.agent import Answer
from organism.model.handler import SystemError as SystemErrorPayload
from organism.model.handler import TodoComplete, TodoRegistered, TodoUntil
from organism.model.tool import ConfirmRequired, ToolError

NOTHING_BOUND: Final[Mapping[str, Handler]] = {}
OWN_PAYLOADS = (SystemErrorPayload, ToolError, ConfirmRequired, TodoUntil, TodoRegistered, TodoComplete)
"""Payload classes that the organism itself sends or takes."""


class Rules:
    """``generation`` numbers a process's configurations, so that no payload decoded under one is used under another.

    ``bound`` is the code of shipped tools, bound to the tenant; those on the shelf take messages like any listener.
    """

    __slots__ = ("_names", "_terms", "codec", "generation", "groups", "limits", "listeners", "retry", "settings")

    def __init__(
        self, settings: Settings, codec: Codec, generation: int, bound: Mapping[str, Handler] = NOTHING_BOUND
    ) -> None:
        self.settings = settings
        self.limits = settings.limits
        self.retry = settings.retry
        self.codec = codec
        self.generation = generation
        self.listeners: dict[str, Listener] = {
            listener.name: replace(listener, handler=bound.get(listener.name)) if listener.is_shipped else listener
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

    def learn(self, payload_class: type) -> None:
        """A reply of a class that was not known yet: register it."""
        if not self.codec.knows(payload_class):
            self.codec = self.codec.with_class(payload_class)


def payload_classes(settings: Settings) -> tuple[type, ...]:
    """Every class that a configuration names.

    What listeners take, the replies in their annotations, those that they are known to give, the organism's own.
    """
    found: dict[type, None] = dict.fromkeys(OWN_PAYLOADS)
    for listener in (*settings.listeners, *settings.shelf):
        found[listener.payload_class] = None
        found.update(dict.fromkeys(sorted(listener.accepts, key=lambda cls: cls.__name__)))
        found.update(dict.fromkeys((*listener.replies, *_answers(listener))))
    return tuple(found)


def _answers(listener: Listener) -> tuple[type, ...]:
    """What the turn loop answers with for a listener that it runs."""
    return (Answer,) if listener.handler_path is None and not listener.is_shipped else ()
