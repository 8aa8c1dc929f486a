"""From the sections of listeners to listeners: their names, their peers, and the code behind them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final

from organism.config.budgets import budget_of
from organism.config.check import held, near
from organism.config.code import Code, Named
from organism.config.faults import Faults, Place, written
from organism.config.sections import ListenerSection
from organism.config.settings import Handler, Limits, Listener, is_reserved
from organism.config.yaml import Node
from organism.model.agent import Prompt
from organism.model.ids import CONSOLE, SYSTEM_TODO, AgentName

ANYONE: Final = "*"
PROMPT_PATH: Final = "organism.Prompt"
_VERSION_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of ``listeners``: where it stands, and what of it could be read."""

    node: Node
    place: Place
    section: ListenerSection

    def line(self, key: str) -> int:
        """The line of the key, or of the item if the key is not there."""
        return self.node.nearest((key,)).line

    def has(self, key: str) -> bool:
        """Whether the key is given, rightly or wrongly."""
        return isinstance(self.node.value, dict) and key in self.node.value

    def named(self, key: str, path: str) -> Named:
        """The dotted path that stands behind the key."""
        return Named(path, self.line(key), (*self.place, key))


def read_listeners(node: Node | None, limits: Limits, code: Code, faults: Faults) -> tuple[Listener, ...]:
    """The listeners in the order of the file, without those whose code is at fault; all faults are noted."""
    items = node.value if node is not None and isinstance(node.value, tuple) else ()
    entries = [
        Entry(item, place, held(ListenerSection, item, place, faults))
        for index, item in enumerate(items)
        if isinstance(item.value, dict) and (place := ("listeners", index))
    ]
    known = _check_names(entries, faults)
    listeners = []
    for entry in entries:
        _check_peers(entry, known, faults)
        listener = _listener(entry, limits, code, faults)
        if listener is not None:
            listeners.append(listener)
    return tuple(listeners)


def _check_names(entries: list[Entry], faults: Faults) -> list[str]:
    """Note reserved names and those given twice; gives all names that peers may have."""
    first: dict[str, Entry] = {}
    for entry in entries:
        name, line, place = entry.section.name, entry.line("name"), (*entry.place, "name")
        if is_reserved(name):
            faults.add(line, place, f"`{name}` is reserved for the organism itself; take another name")
        elif name and name in first:
            taken = f"{written(first[name].place)} in line {first[name].line('name')}"
            faults.add(line, place, f"`{name}` is taken: {taken} has it already")
        first.setdefault(name, entry)
    return [*(name for name in first if name), CONSOLE, SYSTEM_TODO, ANYONE]


def _check_peers(entry: Entry, known: list[str], faults: Faults) -> None:
    peers = entry.node.nearest(("peers",)).items() if entry.has("peers") else ()
    for index, peer in peers:
        if isinstance(peer.value, str) and peer.value not in known:
            message = f"there is no listener `{peer.value}`{near(peer.value, known)}"
            faults.add(peer.line, (*entry.place, "peers", index), message)


def _listener(entry: Entry, limits: Limits, code: Code, faults: Faults) -> Listener | None:
    section = entry.section
    found = _code(entry, code, faults)
    if found is None:
        return None
    plain = entry.node.plain()
    is_thinking = bool(section.prompt or section.prompt_ref or section.model)
    return Listener(
        name=AgentName(section.name),
        description=section.description,
        is_agent=section.agent if entry.has("agent") else is_thinking,
        peers=tuple(dict.fromkeys(section.peers)),
        any_peer=ANYONE in section.peers,
        payload_class=found.payload_class,
        payload_class_path=section.payload_class or PROMPT_PATH,
        handler=found.handler,
        handler_path=section.handler or None,
        accepts=found.accepts,
        broadcast=section.broadcast,
        blocking=section.blocking,
        max_concurrent=section.max_concurrent or limits.max_concurrent_per_agent,
        timeout_s=section.timeout_s or limits.handler_timeout_s,
        max_payload_bytes=section.max_payload_bytes or limits.max_payload_bytes,
        prompt=section.prompt or None,
        prompt_ref=section.prompt_ref or None,
        model=section.model or None,
        tools=section.tools,
        budget=budget_of(section.budget),
        confirm=section.confirm,
        approval=section.approval,
        invoke=section.invoke,
        section=plain,
        version=_version(plain, found.digest),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    """The code of one listener, and the digest of its modules."""

    payload_class: type
    handler: Handler | None
    accepts: frozenset[type]
    digest: bytes


def _code(entry: Entry, code: Code, faults: Faults) -> _Found | None:
    _check_presence(entry, faults)
    section = entry.section
    payload = entry.named("payload_class", section.payload_class)
    named = entry.named("handler", section.handler)
    kind = code.payload_class(payload) if section.payload_class else None
    if not entry.has("payload_class") and not entry.has("handler"):
        kind = Prompt
    found = code.handler(named, kind, blocking=section.blocking) if section.handler else None
    if kind is None or (found is None and entry.has("handler")):
        return None
    handler, accepts = found or (None, frozenset({kind}))
    return _Found(kind, handler, accepts, code.version(payload, named))


def _check_presence(entry: Entry, faults: Faults) -> None:
    """Note what is missing: a handler where no model answers, a payload class where a handler does."""
    if not entry.has("handler") and not entry.has("model") and not entry.has("prompt_ref"):
        how = (
            "name an `async def` such as `handlers.hello.greet`, or give `model` or `prompt_ref` to let a model answer"
        )
        faults.add(entry.node.line, (*entry.place, "handler"), f"`handler` is missing: {how}")
    if entry.has("handler") and not entry.has("payload_class"):
        how = "name the dataclass that it takes, such as `handlers.hello.Greeting`"
        faults.add(entry.node.line, (*entry.place, "payload_class"), f"`payload_class` is missing: {how}")


def _version(section: Any, code_digest: bytes) -> str:
    text = json.dumps(section, sort_keys=True).encode()
    return hashlib.sha256(text + b"\0" + code_digest).hexdigest()[:_VERSION_DIGITS]
