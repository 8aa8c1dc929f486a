"""From the sections of listeners to listeners: their names, their peers, and the code behind them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from organism.config.agent_listeners import (
    PROMPT_PATH,
    Known,
    Reference,
    agent_listeners,
    followed,
    no_model,
    referred,
    with_room,
)
from organism.config.agents import AgentFiles
from organism.config.check import held
from organism.config.code import Code, Named
from organism.config.faults import Faults, Place, written
from organism.config.fields import NAME_PATTERN
from organism.config.sections import ListenerSection, ShippedSection
from organism.config.settings import Handler, Limits, Listener, Model, is_reserved
from organism.config.shipped import ShippedTool, is_own, shipped_listener
from organism.config.text import near
from organism.config.yaml import Node
from organism.model.agent import Prompt
from organism.model.ids import CONSOLE, SYSTEM_TODO, AgentName

ANYONE: Final = "*"
_VERSION_DIGITS: Final = 16


@dataclass(frozen=True, slots=True)
class Entry:
    """One item of ``listeners``: where it stands, what of it could be read, and the shipped tool that it is about."""

    node: Node
    place: Place
    section: ListenerSection
    tool: ShippedTool | None = None

    def line(self, key: str) -> int:
        """The line of the key, or of the item if the key is not there."""
        return self.node.nearest((key,)).line

    def has(self, key: str) -> bool:
        """Whether the key is given, rightly or wrongly."""
        return isinstance(self.node.value, dict) and key in self.node.value

    def named(self, key: str, path: str) -> Named:
        """The dotted path that stands behind the key."""
        return Named(path, self.line(key), (*self.place, key))

    def texts(self, key: str) -> Iterator[tuple[str, int, Place]]:
        """The texts in the list behind the key, each with its line and place."""
        items = self.node.nearest((key,)).items() if self.has(key) else ()
        return ((item.value, item.line, (*self.place, key, at)) for at, item in items if isinstance(item.value, str))


@dataclass(frozen=True, slots=True)
class Beside:
    """What listeners have beside them: the shipped tools, the files of agents, the models."""

    shipped: Sequence[ShippedTool]
    files: AgentFiles
    models: Mapping[str, Model]


@dataclass(frozen=True, slots=True)
class Listeners:
    """Those of the file, the agents, the shipped tools that these name; the other shipped tools; those that are off."""

    named: tuple[Listener, ...]
    shelf: tuple[Listener, ...]
    off: Mapping[str, str]


def read_listeners(node: Node | None, limits: Limits, code: Code, faults: Faults, beside: Beside) -> Listeners:
    """The listeners in the order of the file, without those whose code is at fault; all faults are noted."""
    items = node.value if node is not None and isinstance(node.value, tuple) else ()
    tools = {tool.name: tool for tool in beside.shipped}
    entries = [
        _entry(item, ("listeners", index), tools, faults)
        for index, item in enumerate(items)
        if isinstance(item.value, dict)
    ]
    taken = _check_names(entries, faults)
    agents = with_room(beside.files, taken)
    known = Known(
        names=[*taken, *(each.agent.name for each in agents), *tools],
        off={tool.name: tool.is_off for tool in beside.shipped if tool.is_off},
        models=beside.models,
    )
    listeners = []
    for entry in entries:
        _check_named(entry, known, faults)
        reference = _reference(entry, beside.files, known, faults)
        listener = _listener(entry, limits, code, faults)
        if listener is not None:
            listeners.append(followed(listener, reference) if reference is not None else listener)
    thinking = agent_listeners(agents, listeners, limits, known)
    return _with_shipped((*listeners, *thinking), beside.shipped, limits, known.off)


def names_used(node: Node | None, files: AgentFiles) -> frozenset[str]:
    """Every name that a listener has, and that one or an agent names as a tool or a peer, there or not."""
    items = node.value if node is not None and isinstance(node.value, tuple) else ()
    sections = [item.value for item in items if isinstance(item.value, dict)]
    nodes = [section[key] for section in sections for key in ("tools", "peers") if key in section]
    nodes = [inner for each in nodes for _, inner in each.items()] + [
        each["name"] for each in sections if "name" in each
    ]
    named = {node.value for node in nodes if isinstance(node.value, str)}
    return frozenset(named.union(*(entry.agent.tools for entry in files.agents.values())))


def _entry(item: Node, place: Place, tools: Mapping[str, ShippedTool], faults: Faults) -> Entry:
    section = item.plain()
    name = section.get("name")
    tool = tools.get(name) if isinstance(name, str) and not is_own(section) else None
    if tool is None:
        return Entry(item, place, held(ListenerSection, item, place, faults))
    said = held(ShippedSection, item, place, faults)
    return Entry(item, place, ListenerSection(**asdict(said)), tool)


def _check_names(entries: list[Entry], faults: Faults) -> dict[str, str]:
    """Note reserved names and those given twice; gives those that are left, each with where it stands."""
    first: dict[str, Entry] = {}
    for entry in entries:
        name, line, place = entry.section.name, entry.line("name"), (*entry.place, "name")
        if is_reserved(name):
            faults.add(line, place, f"`{name}` is reserved for the organism itself; take another name")
        elif name and name in first:
            taken = f"{written(first[name].place)} in line {first[name].line('name')}"
            faults.add(line, place, f"`{name}` is taken: {taken} has it already")
        first.setdefault(name, entry)
    return {
        name: f"{written(entry.place)} of organism.yaml, line {entry.line('name')},"
        for name, entry in first.items()
        if name
    }


def _check_named(entry: Entry, known: Known, faults: Faults) -> None:
    """Note each peer, each tool and the model, if it is not there or cannot be used."""
    peers = [*known.names, CONSOLE, SYSTEM_TODO, ANYONE]
    for key, names, what in (("peers", peers, "listener"), ("tools", list(known.names), "tool")):
        for name, line, place in entry.texts(key):
            if name not in names and not _is_misshapen(key, name):
                faults.add(line, place, f"there is no {what} `{name}`{near(name, names)}")
            elif name in known.off:
                faults.add(line, place, f"`{name}` is off: {known.off[name]}")
    if entry.section.model and (wrong := no_model(entry.section.model, known)):
        faults.add(entry.line("model"), (*entry.place, "model"), wrong)
    if entry.tool is not None and entry.tool.is_off:
        faults.add(entry.line("name"), (*entry.place, "name"), f"`{entry.tool.name}` is off: {entry.tool.is_off}")


def _is_misshapen(key: str, name: str) -> bool:
    """Whether it is told already that this is no name at all."""
    return key == "tools" and re.fullmatch(NAME_PATTERN, name) is None


def _reference(entry: Entry, files: AgentFiles, known: Known, faults: Faults) -> Reference | None:
    """What the listener's ``prompt_ref`` leads to; None if there is none, or after a fault."""
    ref = entry.section.prompt_ref
    found = referred(ref, files) if ref else None
    wrong = found if isinstance(found, str) else None
    if isinstance(found, Reference) and not entry.section.model:
        wrong = no_model(found.model, known)
    if wrong:
        faults.add(entry.line("prompt_ref"), (*entry.place, "prompt_ref"), wrong)
    return found if isinstance(found, Reference) else None


def _with_shipped(
    own: tuple[Listener, ...], shipped: Sequence[ShippedTool], limits: Limits, off: Mapping[str, str]
) -> Listeners:
    """Own listeners go before shipped ones of their name; and what nobody names gives way to their classes, too."""
    names = {listener.name for listener in own}
    wanted = {name for listener in own for name in (*listener.peers, *listener.tools)}
    classes = {kind.__name__ for listener in own for kind in (listener.payload_class, *listener.accepts)}
    wanted |= {tool.name for tool in shipped if tool.is_listed}
    tools = [shipped_listener(tool, limits) for tool in shipped if tool.name not in names and not tool.is_off]
    rest = [tool for tool in tools if tool.name not in wanted]
    return Listeners(
        named=(*own, *(tool for tool in tools if tool.name in wanted)),
        shelf=tuple(tool for tool in rest if classes.isdisjoint(_class_names(tool))),
        off={name: why for name, why in off.items() if name not in names},
    )


def _class_names(tool: Listener) -> set[str]:
    return {kind.__name__ for kind in (tool.payload_class, *tool.replies)}


def _listener(entry: Entry, limits: Limits, code: Code, faults: Faults) -> Listener | None:
    section, plain = entry.section, entry.node.plain()
    if entry.tool is not None:
        return shipped_listener(entry.tool, limits, section, plain)
    found = _code(entry, code, faults)
    if found is None:
        return None
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
        budget=section.budget,
        confirm=section.confirm,
        approval=section.approval,
        invoke=section.invoke,
        section=plain,
        version=_version(plain, found.digest),
        brings_outside_text=section.brings_outside_text,
        destroys=section.confirm,
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
