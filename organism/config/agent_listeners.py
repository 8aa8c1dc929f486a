"""From files of agents to listeners: each conversational agent takes messages by its own name."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from organism.config.agents import AgentEntry, AgentFiles
from organism.config.prompts import prompt_path
from organism.config.settings import Agent, Budget, Limits, Listener, Model, is_reserved
from organism.config.text import near
from organism.model.agent import Answer, Prompt
from organism.model.ids import AgentName

PROMPT_PATH: Final = "organism.Prompt"

_CLASSES: Final = (Prompt, Answer)
_VERSION_DIGITS: Final = 16


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
    text: bytes


def with_room(files: AgentFiles, taken: Mapping[str, str]) -> list[AgentEntry]:
    """The agents whose names are free. ``taken`` says of each listener of organism.yaml where it stands.

    A name that is not free is a fault of the agent's file; a bundled agent gives way.
    """
    free = []
    for name, entry in files.agents.items():
        if is_reserved(name):
            entry.add("name", f"`{name}` is reserved for the organism itself; take another name")
        elif name not in taken:
            free.append(entry)
        elif not entry.is_bundled:
            entry.add("name", f"`{name}` is taken: {taken[name]} has it already")
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
        return Reference(config.model_name, None, _text(asdict(config)))
    entry = files.agents.get(name)
    if entry is None:
        return f"there is no agent `{name}`{near(name, files.agents)}; a prompt is named with its version, as A2@v1"
    return Reference(entry.agent.model, entry.agent, _text(entry.plain))


def followed(listener: Listener, reference: Reference) -> Listener:
    """The listener with what it has by reference, where it says nothing of its own."""
    version = hashlib.sha256(listener.version.encode() + reference.text).hexdigest()[:_VERSION_DIGITS]
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
            entry.add("tools", f"there is no tool `{tool}`{near(tool, known.names)}", at)
        elif tool in known.off:
            entry.add("tools", f"`{tool}` is off: {known.off[tool]}", at)
    if agent.model and (wrong := no_model(agent.model, known)):
        entry.add("model", wrong)


def _listener(entry: AgentEntry, limits: Limits, known: Known) -> Listener:
    agent, plain = entry.agent, entry.plain
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
        version=hashlib.sha256(_text(plain)).hexdigest()[:_VERSION_DIGITS],
        agent=agent,
    )


def _text(plain: dict[str, Any]) -> bytes:
    return json.dumps(plain, sort_keys=True).encode()
