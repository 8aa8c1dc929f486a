"""Agents in files of their own, ``config/agents/{name}.yaml`` and ``{name}/{version}.json``, and their listeners.

Where there is no such folder the bundled agents are served. Those are nobody's fault: one whose name, classes or tools
an organism.yaml has no room for gives way instead of refusing the load.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from organism.config.check import Section
from organism.config.faults import Faults, lies_within, near, read_text
from organism.config.prompts import (
    PROMPT_FOLDER,
    BadPrompt,
    PromptConfig,
    PromptKey,
    is_prompt_name,
    prompt_path,
    read_prompt,
)
from organism.config.settings import Agent, Budget, Limits, Listener, Model, is_reserved
from organism.config.yaml import read_yaml
from organism.model.agent import Answer, Prompt
from organism.model.ids import AgentName

MAX_FILES: Final = 1000
PROMPT_PATH: Final = "organism.Prompt"

_CLASSES: Final = (Prompt, Answer)
_VERSION_DIGITS: Final = 16

_EXPECTED: Final = "a mapping with `name`, `model`, `description` and `system_prompt`"


def version_of(said: Any, code: bytes = b"") -> str:
    """The version of a listener: it changes with what its files say, and with the digest of its code."""
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode() + b"\0" + code).hexdigest()[:_VERSION_DIGITS]


@dataclass(frozen=True, slots=True)
class AgentEntry:
    """One agent with its file. ``is_bundled``: it came with the organism."""

    agent: Agent
    file: Section
    is_bundled: bool = False


@dataclass(frozen=True, slots=True)
class AgentFiles:
    """What the files say: agents and prompts by name, and the digest of all that was read."""

    agents: Mapping[str, AgentEntry] = field(default_factory=dict)
    prompts: Mapping[PromptKey, PromptConfig] = field(default_factory=dict)
    digest: bytes = b""


def read_agent_files(folder: Path, bundled: Path | None, faults: Faults) -> AgentFiles:
    """Read those beside organism.yaml, which lies in ``folder``, or the bundled ones; all faults are noted."""
    place = folder / PROMPT_FOLDER
    if place.exists() and not lies_within(place, folder):
        faults.of(PROMPT_FOLDER).add(1, (), "expected a folder below that of organism.yaml; a link leads elsewhere")
        return AgentFiles()
    if place.is_dir():
        return _Reader(place, folder, faults).read()
    if place.exists():
        faults.of(PROMPT_FOLDER).add(1, (), "expected a folder with the files of agents, came a file")
    return _Reader(bundled, bundled, faults, is_bundled=True).read() if bundled is not None else AgentFiles()


class _Reader:
    """Reads one folder, in the order of names. No link leads it out of ``root``."""

    def __init__(self, folder: Path, root: Path, faults: Faults, *, is_bundled: bool = False) -> None:
        self._folder = folder
        self._root = root
        self._faults = faults
        self._is_bundled = is_bundled
        self._agents: dict[str, AgentEntry] = {}
        self._prompts: dict[PromptKey, PromptConfig] = {}
        self._digest = hashlib.sha256()

    def read(self) -> AgentFiles:
        """All of them."""
        for count, path in enumerate(self._files()):
            file = path.relative_to(self._folder).as_posix()
            faults = self._faults.of(f"{PROMPT_FOLDER}/{file}")
            if count >= MAX_FILES:
                faults.add(1, (), f"expected at most {MAX_FILES} files of agents, came more")
                break
            if not path.is_file():
                faults.add(1, (), "expected a file, came something else or a link to nothing")
                continue
            if not lies_within(path, self._root):
                faults.add(1, (), "expected a file below the folder of organism.yaml; a link leads elsewhere")
                continue
            text = read_text(path, faults, if_missing="see that it may be read", if_large="shorten it")
            self._digest.update(f"{file}:{len(text)}:{text}".encode())
            if faults.are_none:
                read = self._prompt if path.suffix == ".json" else self._agent
                read(text, path, faults)
        return AgentFiles(self._agents, self._prompts, self._digest.digest())

    def _files(self) -> Iterator[Path]:
        """The files of agents and prompts. A misplaced one is a fault; what is hidden or of another kind is not."""
        for path in self._within(self._folder):
            if path.is_dir():
                yield from (each for each in self._within(path) if each.suffix == ".json")
            elif path.suffix == ".yaml":
                yield path
            elif path.suffix in {".yml", ".json"}:
                where = f"{path.stem}.yaml" if path.suffix == ".yml" else f"{path.stem}/v1.json"
                faults = self._faults.of(f"{PROMPT_FOLDER}/{path.name}")
                faults.add(1, (), f"this file would not be read: expected it at {PROMPT_FOLDER}/{where}")

    def _within(self, folder: Path) -> list[Path]:
        try:
            return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
        except OSError as error:
            where = PROMPT_FOLDER if folder == self._folder else f"{PROMPT_FOLDER}/{folder.name}"
            self._faults.of(where).add(1, (), f"the folder cannot be read: {error.strerror}")
            return []

    def _prompt(self, text: str, path: Path, faults: Faults) -> None:
        name, version = key = path.parent.name, path.stem
        if not is_prompt_name(name) or not is_prompt_name(version):
            faults.add(1, (), "expected names of letters, digits, `_`, `.` and `-` for the folder and the file")
            return
        try:
            self._prompts[key] = read_prompt(text, name, version)
        except BadPrompt as error:
            for fault in error.faults:
                faults.at(fault.pointer, fault.message)

    def _agent(self, text: str, path: Path, faults: Faults) -> None:
        node = read_yaml(text, faults, _EXPECTED)
        if node is None:
            return
        file = Section(node, (), faults)
        agent = file.record(Agent)
        if not isinstance(node.value, dict):
            return
        if agent.name and agent.name != path.stem:
            file.add(f"expected `{path.stem}`, as the file is called, came `{agent.name}`", "name")
        self._agents[path.stem] = AgentEntry(agent, file, self._is_bundled)


# ── from files to listeners ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Known:
    """What listeners may name: everybody's names, shipped tools that are off, with the reason, and the models."""

    names: Collection[str]
    off: Mapping[str, str]
    models: Mapping[str, Model]


@dataclass(frozen=True, slots=True)
class Reference:
    """What a ``prompt_ref`` leads to: ``A2@v1`` to a prompt and its model, a name alone to a conversational agent."""

    model: str
    agent: Agent | None
    said: Mapping[str, Any]


def with_room(files: AgentFiles, taken: Mapping[str, str]) -> list[AgentEntry]:
    """The agents whose names are free. ``taken`` says of each listener of organism.yaml where it stands.

    A name that is not free is a fault of the agent's file; a bundled agent gives way.
    """
    free = []
    for name, entry in files.agents.items():
        if is_reserved(name):
            entry.file.add(f"`{name}` is reserved for the organism itself; take another name", "name")
        elif name not in taken:
            free.append(entry)
        elif not entry.is_bundled:
            entry.file.add(f"`{name}` is taken: {taken[name]} has it already", "name")
    return free


def agent_listeners(
    entries: Iterable[AgentEntry], own: Iterable[Listener], limits: Limits, known: Known
) -> tuple[Listener, ...]:
    """The agents as listeners beside the ``own`` ones of organism.yaml; all faults are noted.

    A bundled agent goes without tools that are not there, and gives way to classes that are called as its own are.
    """
    classes = {kind for listener in own for kind in (listener.payload_class, *listener.accepts)}
    names = {kind.__name__ for kind in classes.difference(_CLASSES)}
    is_clear = names.isdisjoint(kind.__name__ for kind in _CLASSES)
    listeners = []
    for entry in entries:
        if not entry.is_bundled:
            _check(entry, known)
        if is_clear or not entry.is_bundled:
            listeners.append(_listener(entry, limits, known))
    return tuple(listeners)


def referred(ref: str, files: AgentFiles) -> Reference | str:
    """What the ``prompt_ref`` leads to, or what is wrong with it."""
    name, at, version = ref.partition("@")
    if at:
        config = files.prompts.get((name, version))
        if config is None:
            known = [f"{one}@{other}" for one, other in files.prompts]
            return f"there is no {prompt_path(name, version)}{near(ref, known)}"
        return Reference(config.model_name, None, asdict(config))
    entry = files.agents.get(name)
    if entry is None:
        return f"there is no agent `{name}`{near(name, files.agents)}; a prompt is named with its version, as A2@v1"
    return Reference(entry.agent.model, entry.agent, entry.file.node.plain())


def followed(listener: Listener, reference: Reference) -> Listener:
    """The listener with what it has by reference, where it says nothing of its own."""
    version = version_of([listener.version, reference.said])
    has_model = replace(listener, model=listener.model or reference.model, version=version, agent=reference.agent)
    agent = reference.agent
    if agent is None:
        return has_model
    return replace(
        has_model,
        prompt=listener.prompt or agent.system_prompt,
        tools=listener.tools or agent.tools,
        budget=listener.budget if listener.budget != Budget() else agent.budget,
    )


def no_model(name: str, known: Known) -> str | None:
    """What is wrong with the name of a model, if it is not configured."""
    there = known.models
    return None if name in there else f"there is no model `{name}` in `models` of organism.yaml{near(name, there)}"


def _check(entry: AgentEntry, known: Known) -> None:
    agent = entry.agent
    for at, tool in enumerate(agent.tools):
        if tool not in known.names:
            entry.file.add(f"there is no tool `{tool}`{near(tool, known.names)}", "tools", at)
        elif tool in known.off:
            entry.file.add(f"`{tool}` is off: {known.off[tool]}", "tools", at)
    if agent.model and (wrong := no_model(agent.model, known)):
        entry.file.add(wrong, "model")


def _listener(entry: AgentEntry, limits: Limits, known: Known) -> Listener:
    agent, plain = entry.agent, entry.file.node.plain()
    if entry.is_bundled:
        tools = tuple(tool for tool in agent.tools if tool in known.names and tool not in known.off)
        agent = replace(agent, tools=tools)
    return Listener(
        name=AgentName(agent.name),
        description=agent.description,
        is_agent=True,
        payload_class=Prompt,
        payload_class_path=PROMPT_PATH,
        accepts=frozenset({Prompt}),
        max_concurrent=limits.max_concurrent_per_agent,
        timeout_s=limits.handler_timeout_s,
        max_payload_bytes=limits.max_payload_bytes,
        prompt=agent.system_prompt,
        model=agent.model,
        tools=agent.tools,
        budget=agent.budget,
        section=plain,
        version=version_of(plain),
        agent=agent,
    )
