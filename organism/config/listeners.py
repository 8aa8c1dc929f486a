"""From the sections of listeners to listeners: their names, their peers, and the code behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, ClassVar, Final

from organism.config.agents import (
    PROMPT_PATH,
    AgentFiles,
    Known,
    Reference,
    agent_listeners,
    followed,
    no_model,
    referred,
    version_of,
    with_room,
)
from organism.config.check import (
    Count,
    DottedPath,
    InvokeMode,
    Name,
    PayloadBytes,
    Seconds,
    Section,
    Text,
    matching,
)
from organism.config.code import Code, Named
from organism.config.faults import near, written
from organism.config.settings import Budget, Limits, Listener, Model, ShippedTool, is_reserved
from organism.model.agent import Prompt
from organism.model.ids import CONSOLE, SYSTEM_TODO, AgentName

ANYONE: Final = "*"
_CALLED: Final = {"peers": "listener", "tools": "tool"}
_OWN: Final = frozenset({"handler", "payload_class", "model", "prompt", "prompt_ref"})
"""A section with one of these keys that has a shipped tool's name puts a listener of its own in the tool's place."""


PromptRef = Annotated[str, matching(r"[A-Za-z0-9_.-]+(@[A-Za-z0-9_.-]+)?", "a prompt such as `A2@v1`")]


@dataclass(frozen=True, slots=True)
class ShippedSection:
    """One of ``listeners`` that has a shipped tool's name and no code: that tool, in other terms."""

    REQUIRED: ClassVar[tuple[str, ...]] = ("name",)

    name: Name = ""
    description: Text = ""
    max_concurrent: Count = 0
    timeout_s: Seconds = 0.0
    max_payload_bytes: PayloadBytes = 0
    confirm: bool = False
    approval: bool = False


@dataclass(frozen=True, slots=True)
class ListenerSection(ShippedSection):
    """One of ``listeners``. Empty text and 0 stand for "left out"."""

    REQUIRED: ClassVar[tuple[str, ...]] = ("name", "description")

    payload_class: DottedPath = ""
    handler: DottedPath = ""
    agent: bool = False
    peers: tuple[str, ...] = ()
    broadcast: bool = False
    blocking: bool = False
    prompt: Text = ""
    prompt_ref: PromptRef = ""
    model: Text = ""
    tools: tuple[Name, ...] = ()
    budget: Budget = field(default_factory=Budget)
    brings_outside_text: bool = False
    invoke: tuple[InvokeMode, ...] = ()


@dataclass(frozen=True, slots=True)
class _Entry:
    """One item of ``listeners``: where it stands, what of it could be read, and the shipped tool that it is about."""

    node: Section
    said: ListenerSection
    tool: ShippedTool | None = None


@dataclass(frozen=True, slots=True)
class Listeners:
    """Those of the file, the agents, the shipped tools that these name; the other shipped tools; those that are off."""

    named: tuple[Listener, ...]
    shelf: tuple[Listener, ...]
    off: Mapping[str, str]


def names_used(root: Section, files: AgentFiles) -> frozenset[str]:
    """Every name that a listener has, and that one or an agent names as a tool or a peer, there or not."""
    sections = [each.node.plain() for each in root.mappings("listeners", listed=True)]
    lists = [section.get(key) for section in sections for key in ("tools", "peers")]
    named = [name for each in lists if isinstance(each, list) for name in each] + [
        each.get("name") for each in sections
    ]
    texts = {name for name in named if isinstance(name, str)}
    return frozenset(texts.union(*(entry.agent.tools for entry in files.agents.values())))


class ListenerReader:
    """Makes listeners of their sections, with the shipped tools, the files of agents and the models beside them."""

    def __init__(
        self,
        shipped: Sequence[ShippedTool],
        files: AgentFiles,
        models: Mapping[str, Model],
        limits: Limits,
        code: Code,
    ) -> None:
        self._shipped = {tool.name: tool for tool in shipped}
        self._files = files
        self._models = models
        self._limits = limits
        self._code = code

    def read(self, root: Section) -> Listeners:
        """Those of the file in its order, without those whose code is at fault; all faults are noted."""
        entries = [self._entry(section) for section in root.mappings("listeners", listed=True)]
        taken = _check_names(entries)
        agents = with_room(self._files, taken)
        known = Known(
            names=[*taken, *(each.agent.name for each in agents), *self._shipped],
            off={tool.name: tool.is_off for tool in self._shipped.values() if tool.is_off},
            models=self._models,
        )
        listeners = []
        for entry in entries:
            _check_named(entry, known)
            reference = self._reference(entry, known)
            listener = self._listener(entry)
            if listener is not None:
                listeners.append(followed(listener, reference) if reference is not None else listener)
        thinking = agent_listeners(agents, listeners, self._limits, known)
        return self._with_shipped((*listeners, *thinking), known.off)

    def _entry(self, section: Section) -> _Entry:
        plain = section.node.plain()
        name = plain.get("name")
        tool = self._shipped.get(name) if isinstance(name, str) and _OWN.isdisjoint(plain) else None
        if tool is None:
            return _Entry(section, section.record(ListenerSection))
        return _Entry(section, ListenerSection(**asdict(section.record(ShippedSection))), tool)

    def _reference(self, entry: _Entry, known: Known) -> Reference | None:
        """What the listener's ``prompt_ref`` leads to; None if there is none, or after a fault."""
        ref = entry.said.prompt_ref
        found = referred(ref, self._files) if ref else None
        wrong = found if isinstance(found, str) else None
        if isinstance(found, Reference) and not entry.said.model:
            wrong = no_model(found.model, known)
        if wrong:
            entry.node.add(wrong, "prompt_ref")
        return found if isinstance(found, Reference) else None

    def _listener(self, entry: _Entry) -> Listener | None:
        said, node, limits = entry.said, entry.node, self._limits
        if entry.tool is not None:
            return self._shipped_listener(entry.tool, said, node.node.plain())
        _check_presence(node)
        payload = Named(said.payload_class, node, "payload_class")
        named = Named(said.handler, node, "handler")
        kind = self._code.payload_class(payload) if said.payload_class else None
        if not node.has("payload_class") and not node.has("handler"):
            kind = Prompt
        found = self._code.handler(named, kind, blocking=said.blocking) if said.handler else None
        if kind is None or (found is None and node.has("handler")):
            return None
        handler, accepts = found or (None, frozenset({kind}))
        is_thinking = bool(said.prompt or said.prompt_ref or said.model)
        plain = node.node.plain()
        return Listener(
            name=AgentName(said.name),
            description=said.description,
            is_agent=said.agent if node.has("agent") else is_thinking,
            peers=tuple(dict.fromkeys(said.peers)),
            any_peer=ANYONE in said.peers,
            payload_class=kind,
            payload_class_path=said.payload_class or PROMPT_PATH,
            handler=handler,
            handler_path=said.handler or None,
            accepts=accepts,
            broadcast=said.broadcast,
            blocking=said.blocking,
            max_concurrent=said.max_concurrent or limits.max_concurrent_per_agent,
            timeout_s=said.timeout_s or limits.handler_timeout_s,
            max_payload_bytes=said.max_payload_bytes or limits.max_payload_bytes,
            prompt=said.prompt or None,
            prompt_ref=said.prompt_ref or None,
            model=said.model or None,
            tools=said.tools,
            budget=said.budget,
            confirm=said.confirm,
            approval=said.approval,
            invoke=said.invoke,
            section=plain,
            version=version_of(plain, self._code.version(payload, named)),
            brings_outside_text=said.brings_outside_text,
            destroys=said.confirm,
        )

    def _shipped_listener(self, tool: ShippedTool, said: ListenerSection, section: Mapping[str, Any]) -> Listener:
        """The tool as a listener, with what its section says, if it has one."""
        settings = asdict(tool.settings) if tool.settings is not None else None
        return Listener(
            name=AgentName(tool.name),
            description=said.description or tool.description,
            payload_class=tool.payload_class,
            payload_class_path=f"{tool.payload_class.__module__}.{tool.payload_class.__qualname__}",
            accepts=frozenset({tool.payload_class}),
            max_concurrent=said.max_concurrent or self._limits.max_concurrent_per_agent,
            timeout_s=said.timeout_s or tool.timeout_s,
            max_payload_bytes=said.max_payload_bytes or self._limits.max_payload_bytes,
            confirm=said.confirm,
            approval=said.approval,
            section=section,
            version=version_of([tool.name, tool.release, tool.says, tool.parameters, settings, section]),
            brings_outside_text=tool.brings_outside_text,
            destroys=said.confirm or tool.destroys,
            check=tool.check,
            replies=tool.replies,
            parameters=tool.parameters,
            is_shipped=True,
        )

    def _with_shipped(self, own: tuple[Listener, ...], off: Mapping[str, str]) -> Listeners:
        """Own listeners go before shipped ones of their name; and what nobody names gives way to their classes, too."""
        names = {listener.name for listener in own}
        wanted = {name for listener in own for name in (*listener.peers, *listener.tools)}
        wanted |= {tool.name for tool in self._shipped.values() if tool.is_listed}
        classes = {kind.__name__ for listener in own for kind in (listener.payload_class, *listener.accepts)}
        unused = [tool for tool in self._shipped.values() if tool.name not in names and not tool.is_off]
        tools = [self._shipped_listener(tool, ListenerSection(), {}) for tool in unused]
        rest = [tool for tool in tools if tool.name not in wanted]
        return Listeners(
            named=(*own, *(tool for tool in tools if tool.name in wanted)),
            shelf=tuple(tool for tool in rest if classes.isdisjoint(_class_names(tool))),
            off={name: why for name, why in off.items() if name not in names},
        )


def _class_names(tool: Listener) -> set[str]:
    return {kind.__name__ for kind in (tool.payload_class, *tool.replies)}


def _check_names(entries: Sequence[_Entry]) -> dict[str, str]:
    """Note reserved names and those given twice; gives those that are left, each with where it stands."""
    first: dict[str, tuple[str, int]] = {}
    for entry in entries:
        name, line = entry.said.name, entry.node.node.nearest(("name",)).line
        if is_reserved(name):
            entry.node.add(f"`{name}` is reserved for the organism itself; take another name", "name")
        elif name in first:
            where, at = first[name]
            entry.node.add(f"`{name}` is taken: {where} in line {at} has it already", "name")
        if name:
            first.setdefault(name, (written(entry.node.place), line))
    return {name: f"{where} of organism.yaml, line {line}," for name, (where, line) in first.items()}


def _check_named(entry: _Entry, known: Known) -> None:
    """Note each peer, each tool and the model, if it is not there or cannot be used."""
    peers = [*known.names, CONSOLE, SYSTEM_TODO, ANYONE]
    for key, given, names in (("peers", entry.said.peers, peers), ("tools", entry.said.tools, known.names)):
        items = entry.node.at(key) if given else None
        for at, item in items.node.items() if items is not None else ():
            name = str(item.value)
            if name in given and name not in names:
                entry.node.add(f"there is no {_CALLED[key]} `{name}`{near(name, names)}", key, at)
            elif name in given and name in known.off:
                entry.node.add(f"`{name}` is off: {known.off[name]}", key, at)
    if entry.said.model and (wrong := no_model(entry.said.model, known)):
        entry.node.add(wrong, "model")
    if entry.tool is not None and entry.tool.is_off:
        entry.node.add(f"`{entry.tool.name}` is off: {entry.tool.is_off}", "name")


def _check_presence(section: Section) -> None:
    """Note what is missing: a handler where no model answers, a payload class where a handler does."""
    if not section.has("handler") and not section.has("model") and not section.has("prompt_ref"):
        how = "name an `async def` such as `handlers.hello.greet`, or give `model` or `prompt_ref`"
        section.add(f"`handler` is missing: {how} to let a model answer", "handler")
    if section.has("handler") and not section.has("payload_class"):
        how = "name the dataclass that it takes, such as `handlers.hello.Greeting`"
        section.add(f"`payload_class` is missing: {how}", "payload_class")
