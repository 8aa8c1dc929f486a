"""From the sections of listeners to listeners: their names, their peers, and the code behind them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, ClassVar, Final

from organism.config.agents import AgentEntry, AgentFiles
from organism.config.check import (
    Count,
    DottedPath,
    InvokeMode,
    Name,
    PayloadBytes,
    Seconds,
    Section,
    Text,
    Title,
    matching,
)
from organism.config.code import Code, Named
from organism.config.faults import near, written
from organism.config.prompts import prompt_path
from organism.config.settings import (
    COSTLY_AT_ONCE,
    INDEX_TOOL,
    PLAIN_AT_ONCE,
    AgentSettings,
    Budget,
    Limits,
    Listener,
    Model,
    ShippedTool,
    is_reserved,
)
from organism.model.agent import Answer, Prompt
from organism.model.ids import CONSOLE, SYSTEM_TODO

ANYONE: Final = "*"
PROMPT_PATH: Final = "organism.Prompt"
_VERSION_DIGITS: Final = 16
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
    group: Title = ""


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
    given: ListenerSection
    tool: ShippedTool | None = None


@dataclass(frozen=True, slots=True)
class Listeners:
    """Those of the file, with the agents and tools that these name; the other shipped tools; those that are off."""

    named: tuple[Listener, ...]
    unlisted: tuple[Listener, ...]
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
    """Makes listeners from their sections, the shipped tools, the files of agents and the models."""

    def __init__(
        self,
        shipped: Sequence[ShippedTool],
        files: AgentFiles,
        models: Mapping[str, Model],
        limits: Limits,
        code: Code,
    ) -> None:
        self._shipped = {tool.name: tool for tool in shipped}
        self._off = {tool.name: tool.is_off for tool in shipped if tool.is_off}
        self._names: Sequence[str] = ()
        self._files = files
        self._models = models
        self._limits = limits
        self._code = code

    def read(self, root: Section) -> Listeners:
        """Those of the file in its order, without those whose code is at fault; all faults are noted."""
        entries = [self._entry(section) for section in root.mappings("listeners", listed=True)]
        taken = _taken_names(entries)
        agents = self._with_room(taken)
        self._names = [*taken, *(each.agent.name for each in agents), *self._shipped]
        own = []
        for entry in entries:
            self._check_named(entry)
            listener = self._followed(entry, self._listener(entry))
            if listener is not None:
                own.append(listener)
        return self._with_shipped((*own, *self._agent_listeners(agents, own)))

    def _entry(self, section: Section) -> _Entry:
        plain = section.node.plain()
        name = plain.get("name")
        tool = self._shipped.get(name) if isinstance(name, str) and _OWN.isdisjoint(plain) else None
        if tool is None:
            return _Entry(section, section.record(ListenerSection))
        return _Entry(section, ListenerSection(**asdict(section.record(ShippedSection))), tool)

    def _with_room(self, taken: Mapping[str, str]) -> list[AgentEntry]:
        """The agents whose names are free. A taken name is a fault of its file, but a bundled agent gives way."""
        free = []
        for name, entry in self._files.agents.items():
            if is_reserved(name):
                entry.file.add(f"`{name}` is reserved for the organism itself; take another name", "name")
            elif name not in taken:
                free.append(entry)
            elif not entry.is_bundled:
                entry.file.add(f"`{name}` is taken: {taken[name]} has it already", "name")
        return free

    def _check_named(self, entry: _Entry) -> None:
        """Note each peer, each tool and the model, if it is not there or cannot be used."""
        peers = [*self._names, CONSOLE, SYSTEM_TODO, ANYONE]
        self._check_names(entry.node, "peers", entry.given.peers, peers)
        self._check_names(entry.node, "tools", entry.given.tools, self._names)
        if entry.given.model:
            self._check_model(entry.node, "model", entry.given.model)
        if entry.tool is not None and entry.tool.is_off:
            entry.node.add(f"`{entry.tool.name}` is off: {entry.tool.is_off}", "name")

    def _check_names(self, section: Section, key: str, given: Sequence[str], known: Sequence[str]) -> None:
        """Note each of the names that is not there. What is no name at all was noted already."""
        items = section.at(key) if given else None
        for at, item in items.node.items() if items is not None else ():
            name = str(item.value)
            if name in given and name not in known:
                section.add(f"there is no {_CALLED[key]} `{name}`{near(name, known)}", key, at)
            elif name in given and name in self._off:
                section.add(f"`{name}` is off: {self._off[name]}", key, at)

    def _check_model(self, section: Section, key: str, name: str) -> None:
        if name not in self._models:
            section.add(f"there is no model `{name}` in `models` of organism.yaml{near(name, self._models)}", key)

    def _followed(self, entry: _Entry, listener: Listener | None) -> Listener | None:
        """The listener with what it has by its ``prompt_ref``, where it says nothing of its own."""
        ref, files = entry.given.prompt_ref, self._files
        name, at, version = ref.partition("@")
        prompt, file = files.prompts.get((name, version)), files.agents.get(name)
        if at and prompt is not None:
            model, written, agent = prompt.model_name, asdict(prompt), None
        elif not at and file is not None:
            model, written, agent = file.agent.model, file.file.node.plain(), file.agent
        else:
            if at:
                known = [f"{one}@{other}" for one, other in files.prompts]
                entry.node.add(f"there is no {prompt_path(name, version)}{near(ref, known)}", "prompt_ref")
            elif ref:
                how = "; a prompt is named with its version, as A2@v1"
                entry.node.add(f"there is no agent `{name}`{near(name, files.agents)}{how}", "prompt_ref")
            return listener
        if not entry.given.model:
            self._check_model(entry.node, "prompt_ref", model)
        if listener is None:
            return None
        version = version_of([listener.version, written])
        if agent is not None and listener.tools:
            agent = replace(agent, tools=listener.tools)
        has_model = replace(listener, model=listener.model or model, version=version, agent=agent)
        if agent is None:
            return has_model
        return replace(
            has_model,
            prompt=listener.prompt or agent.system_prompt,
            group=listener.group or agent.group,
            tools=listener.tools or self._tools_there(agent),
            budget=listener.budget if listener.budget != Budget() else agent.budget,
        )

    def _listener(self, entry: _Entry) -> Listener | None:
        given, node = entry.given, entry.node
        if entry.tool is not None:
            return self._shipped_listener(entry.tool, given, node.node.plain())
        _check_presence(node)
        payload = Named(given.payload_class, node, "payload_class")
        named = Named(given.handler, node, "handler")
        kind = self._code.payload_class(payload) if given.payload_class else None
        if not node.has("payload_class") and not node.has("handler"):
            kind = Prompt
        found = self._code.handler(named, kind, blocking=given.blocking) if given.handler else None
        if kind is None or (found is None and node.has("handler")):
            return None
        handler, accepts = found or (None, frozenset({kind}))
        is_thinking = bool(given.prompt or given.prompt_ref or given.model)
        is_plain = handler is not None and not (given.blocking or given.model or given.prompt_ref)
        plain = node.node.plain()
        return Listener(
            name=given.name,
            description=given.description,
            is_agent=given.agent if node.has("agent") else is_thinking,
            peers=tuple(dict.fromkeys(given.peers)),
            any_peer=ANYONE in given.peers,
            payload_class=kind,
            payload_class_path=given.payload_class or PROMPT_PATH,
            handler=handler,
            handler_path=given.handler or None,
            accepts=accepts,
            broadcast=given.broadcast,
            blocking=given.blocking,
            **self._bounds(given, is_plain=is_plain),
            prompt=given.prompt or None,
            prompt_ref=given.prompt_ref or None,
            model=given.model or None,
            tools=given.tools,
            budget=given.budget,
            invoke=given.invoke,
            section=plain,
            version=version_of(plain, self._code.version(payload, named)),
            brings_outside_text=given.brings_outside_text,
            destroys=given.confirm,
        )

    def _agent_listeners(self, entries: Sequence[AgentEntry], own: Sequence[Listener]) -> Iterator[Listener]:
        """The agents as listeners. The bundled ones give way to own classes that are called as theirs are."""
        classes = {kind for listener in own for kind in (listener.payload_class, *listener.accepts)}
        names = {kind.__name__ for kind in classes - {Prompt, Answer}}
        for entry in entries:
            if not entry.is_bundled:
                self._check_names(entry.file, "tools", entry.agent.tools, (*self._names, INDEX_TOOL))
                if entry.agent.model:
                    self._check_model(entry.file, "model", entry.agent.model)
            if not entry.is_bundled or names.isdisjoint({"Prompt", "Answer"}):
                yield self._agent_listener(entry)

    def _agent_listener(self, entry: AgentEntry) -> Listener:
        agent, plain = entry.agent, entry.file.node.plain()
        if entry.is_bundled:  # it goes without tools that are not there
            there = {*self._names, INDEX_TOOL}.difference(self._off)
            agent = replace(agent, tools=tuple(tool for tool in agent.tools if tool in there))
        return Listener(
            name=agent.name,
            description=agent.description,
            is_agent=True,
            payload_class=Prompt,
            payload_class_path=PROMPT_PATH,
            accepts=frozenset({Prompt}),
            **self._bounds(ListenerSection(group=agent.group or "")),
            prompt=agent.system_prompt,
            model=agent.model,
            tools=self._tools_there(agent),
            budget=agent.budget,
            section=plain,
            version=version_of(plain),
            agent=agent,
        )

    def _tools_there(self, agent: AgentSettings) -> tuple[str, ...]:
        """The agent's tools, without ``INDEX_TOOL`` where there is none."""
        return tuple(tool for tool in agent.tools if tool != INDEX_TOOL or tool in self._names)

    def _shipped_listener(self, tool: ShippedTool, given: ListenerSection, section: Mapping[str, Any]) -> Listener:
        """The tool as a listener, with what its section says, if it has one."""
        settings = asdict(tool.settings) if tool.settings is not None else None
        return Listener(
            name=tool.name,
            description=given.description or tool.description,
            payload_class=tool.payload_class,
            payload_class_path=f"{tool.payload_class.__module__}.{tool.payload_class.__qualname__}",
            accepts=frozenset({tool.payload_class}),
            **(self._bounds(given, tool.timeout_s) | {"confirm": given.confirm or tool.confirm}),
            section=section,
            version=version_of([tool.name, tool.release, tool.says, tool.parameters, settings, section]),
            brings_outside_text=tool.brings_outside_text,
            destroys=given.confirm or tool.confirm or tool.destroys,
            check=tool.check,
            replies=tool.replies,
            effect=tool.effect,
            parameters=tool.parameters,
            is_shipped=True,
            scope=tool.scope,
        )

    def _bounds(self, given: ShippedSection, timeout_s: float = 0.0, *, is_plain: bool = False) -> dict[str, Any]:
        """Bounds, gates and group of a section; a bound that it leaves out is the limits', or fits its kind."""
        at_once = given.max_concurrent or self._limits.max_concurrent_per_agent
        return {
            "max_concurrent": at_once or (PLAIN_AT_ONCE if is_plain else COSTLY_AT_ONCE),
            "timeout_s": given.timeout_s or timeout_s or self._limits.handler_timeout_s,
            "max_payload_bytes": given.max_payload_bytes or self._limits.max_payload_bytes,
            "confirm": given.confirm,
            "approval": given.approval,
            "group": given.group or None,
        }

    def _with_shipped(self, own: tuple[Listener, ...]) -> Listeners:
        """Own listeners replace shipped ones of their name and, unless they are named, of their classes."""
        names = {listener.name for listener in own}
        wanted = {name for listener in own for name in (*listener.peers, *listener.tools, *listener.looks_up)}
        wanted |= {tool.name for tool in self._shipped.values() if tool.is_listed}
        classes = {kind.__name__ for listener in own for kind in (listener.payload_class, *listener.accepts)}
        unused = [tool for tool in self._shipped.values() if tool.name not in names and not tool.is_off]
        tools = [self._shipped_listener(tool, ListenerSection(), {}) for tool in unused]
        rest = [tool for tool in tools if tool.name not in wanted]
        return Listeners(
            named=(*own, *(tool for tool in tools if tool.name in wanted)),
            unlisted=tuple(
                tool
                for tool in rest
                if classes.isdisjoint(kind.__name__ for kind in (tool.payload_class, *tool.replies))
            ),
            off={name: why for name, why in self._off.items() if name not in names},
        )


def version_of(written: Any, code: bytes = b"") -> str:
    """The version of a listener: it changes with what its files say, and with the digest of its code."""
    return hashlib.sha256(json.dumps(written, sort_keys=True).encode() + b"\0" + code).hexdigest()[:_VERSION_DIGITS]


def _taken_names(entries: Sequence[_Entry]) -> dict[str, str]:
    """Note reserved names and those given twice; gives the rest, each with its place."""
    first: dict[str, tuple[str, int]] = {}
    for entry in entries:
        name, line = entry.given.name, entry.node.node.nearest(("name",)).line
        if is_reserved(name):
            entry.node.add(f"`{name}` is reserved for the organism itself; take another name", "name")
        elif name in first:
            where, at = first[name]
            entry.node.add(f"`{name}` is taken: {where} in line {at} has it already", "name")
        if name:
            first.setdefault(name, (written(entry.node.place), line))
    return {name: f"{where} of organism.yaml, line {line}," for name, (where, line) in first.items()}


def _check_presence(section: Section) -> None:
    """Note what is missing: a handler where no model answers, a payload class where a handler does."""
    if not section.has("handler") and not section.has("model") and not section.has("prompt_ref"):
        how = "name an `async def` such as `handlers.hello.greet`, or give `model` or `prompt_ref`"
        section.add(f"`handler` is missing: {how} to let a model answer", "handler")
    if section.has("handler") and not section.has("payload_class"):
        how = "name the dataclass that it takes, such as `handlers.hello.Greeting`"
        section.add(f"`payload_class` is missing: {how}", "payload_class")
