"""An agent's functions: its tools and peers, as its model may call them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from typing import Any, Final

from organism.codec import Codec, PayloadLimits
from organism.config.settings import Listener
from organism.model.handler import TodoComplete, TodoUntil
from organism.model.ids import SYSTEM_TODO
from organism.model.tool import ToolSpec
from organism.pump.rules import call_json, tool_spec

MOST_NAME_CHARS: Final = 64
_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_FOREIGN: Final = re.compile(r"[^a-zA-Z0-9_-]")
_DIGEST_CHARS: Final = 8
REMINDERS: Final[Mapping[str, type]] = {"todo_until": TodoUntil, "todo_complete": TodoComplete}
"""The payloads of ``system.todo``, as functions of an agent that names it among its peers."""


@dataclass(frozen=True, slots=True)
class Function:
    """One function. ``to`` is the listener that is asked; ``make`` gives its payload or raises ``InvalidPayload``.

    A function of the caller's own has no payload class and no receiver here: a call of it ends the turn.
    """

    spec: ToolSpec
    to: str
    payload_class: type | None = None
    make: Callable[[Mapping[str, Any]], object] = dict

    @property
    def is_callers(self) -> bool:
        return self.payload_class is None


class Functions:
    """What one agent may call. ``specs`` are offered to its model; ``arguments`` are each function's argument names."""

    def __init__(self, functions: Sequence[Function]) -> None:
        self._functions = functions
        by_name = {function.spec.name: function for function in functions}
        self._found = {function.to: function for function in functions if function.to != SYSTEM_TODO} | by_name
        self.specs = tuple(function.spec for function in functions)
        self.arguments = {
            name: tuple(function.spec.parameters.get("properties", ())) for name, function in self._found.items()
        }

    def find(self, name: str) -> Function | None:
        """The function of that name, or of the listener of that name."""
        return self._found.get(name)

    def taking(self) -> dict[str, Function]:
        """Each payload class that exactly one function takes, with that function."""
        kinds = [(each.payload_class.__name__, each) for each in self._functions if each.payload_class is not None]
        count = Counter(name for name, _ in kinds)
        return {name: each for name, each in kinds if count[name] == 1}

    def with_callers(self, specs: Sequence[ToolSpec]) -> Functions:
        """These and the caller's own, which go before those of their names."""
        own = {spec.name: Function(spec, spec.name) for spec in specs}
        return Functions([*own.values(), *(each for each in self._functions if each.spec.name not in own)])


def functions_of(agent: Listener, listeners: Mapping[str, Listener], codec: Codec) -> Functions:
    """The functions of ``agent``: its tools, its peers, and with ``system.todo`` the two reminder functions."""
    named = dict.fromkeys((*agent.tools, *agent.peers))
    offered = [listeners[name] for name in named if name in listeners]
    reminders = REMINDERS if SYSTEM_TODO in agent.peers else {}
    names = function_names((*(listener.name for listener in offered), *reminders))
    functions = [function_of(listener, names[listener.name], codec) for listener in offered]
    return Functions([*functions, *(_reminder(names[name], kind, codec) for name, kind in reminders.items())])


def lookups_of(agent: Listener, listeners: Mapping[str, Listener], codec: Codec) -> dict[str, Function]:
    """The tools that its turns call without being asked, by name."""
    return {name: function_of(listeners[name], name, codec) for name in agent.looks_up if name in listeners}


def function_of(listener: Listener, name: str, codec: Codec) -> Function:
    """The function ``name`` that asks the listener."""
    payload_class = listener.payload_class

    def make(arguments: Mapping[str, Any]) -> object:
        """The payload as the listener takes it, its size included, so that the model learns what is wrong."""
        json = call_json(listener, arguments)
        return codec.from_json(payload_class.__name__, json, PayloadLimits(listener.max_payload_bytes))

    return Function(replace(tool_spec(listener, codec), name=name), listener.name, payload_class, make)


def _reminder(name: str, kind: type, codec: Codec) -> Function:
    schema = codec.schema(kind.__name__).json_schema
    spec = ToolSpec(name, str(schema["description"]), schema)
    return Function(spec, SYSTEM_TODO, kind, partial(codec.draft, kind.__name__))


def function_names(listeners: Iterable[str]) -> dict[str, str]:
    """The function name of each listener: models take ``[a-zA-Z0-9_-]{1,64}``, listeners may be called more.

    The names are distinct and do not depend on the order. A name that fits stays as it is; in others each foreign
    character becomes ``_``, with a digest where the result is too long or taken.
    """
    wanted = sorted(set(listeners), key=lambda name: (_NAME.fullmatch(name) is None, name))
    taken: dict[str, str] = {}
    for name in wanted:
        taken[_free_name(name, taken)] = name
    return {listener: function for function, listener in taken.items()}


def _free_name(name: str, taken: Mapping[str, str]) -> str:
    plain = _FOREIGN.sub("_", name)
    if len(plain) <= MOST_NAME_CHARS and plain not in taken:
        return plain
    digest = sha256(name.encode()).hexdigest()
    return f"{plain[: MOST_NAME_CHARS - _DIGEST_CHARS - 1]}-{digest[:_DIGEST_CHARS]}"


def wire_name(name: str) -> str:
    """An unknown function's name in a form that servers accept in the messages that follow."""
    return _FOREIGN.sub("_", name)[:MOST_NAME_CHARS] or "unnamed"
