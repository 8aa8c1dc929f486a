"""Shipped tools: listeners that come with the organism, without a section of their own in organism.yaml."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from inspect import cleandoc
from typing import Any, Final

from organism.config.sections import ListenerSection
from organism.config.settings import Check, Limits, Listener, Row
from organism.config.tool_settings import Tools
from organism.model.ids import AgentName

NOTHING_SAID: Final = ListenerSection()
NO_SECTION: Final[Mapping[str, Any]] = {}
_OWN: Final = frozenset({"handler", "payload_class", "model", "prompt", "prompt_ref"})
_VERSION_DIGITS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedTool:
    """What a shipped tool takes and answers, as data; the code that runs it is bound to each tenant.

    Its description is what it ``says``, else the docstring of ``payload_class``. ``replies`` are the classes that it
    answers with. ``brings_outside_text``, ``destroys`` and ``check`` are as in ``Listener``. ``timeout_s`` is its own
    running time. ``parameters`` is the JSON Schema of its arguments, where the payload class
    does not tell it. ``is_listed``: it is a listener though nobody names it. ``settings`` is what ``tools`` of
    organism.yaml says of it, a dataclass. ``release`` is the version of its code. ``is_off`` says why it cannot be
    used, if so.
    """

    name: str
    payload_class: type
    replies: tuple[type, ...]
    brings_outside_text: bool = False
    destroys: bool | Row = False
    check: Check | None = None
    timeout_s: float = 30.0
    parameters: Mapping[str, Any] | None = None
    says: str = ""
    is_listed: bool = False
    settings: Any = None
    release: str = ""
    is_off: str = ""

    @property
    def description(self) -> str:
        """What it does, for models and people."""
        return self.says or cleandoc(self.payload_class.__doc__ or "")


Ship = Callable[[Tools], Sequence[ShippedTool]]
"""Gives the shipped tools, as ``tools`` of an organism.yaml sets them."""


def nothing_shipped(_tools: Tools) -> Sequence[ShippedTool]:
    """No shipped tools at all."""
    return ()


def is_own(section: Mapping[str, Any]) -> bool:
    """Whether a section that has a shipped tool's name puts a listener of its own in the tool's place."""
    return not _OWN.isdisjoint(section)


def shipped_listener(
    tool: ShippedTool, limits: Limits, said: ListenerSection = NOTHING_SAID, section: Mapping[str, Any] = NO_SECTION
) -> Listener:
    """The tool as a listener, with what its section says, if it has one."""
    return Listener(
        name=AgentName(tool.name),
        description=said.description or tool.description,
        payload_class=tool.payload_class,
        payload_class_path=f"{tool.payload_class.__module__}.{tool.payload_class.__qualname__}",
        accepts=frozenset({tool.payload_class}),
        max_concurrent=said.max_concurrent or limits.max_concurrent_per_agent,
        timeout_s=said.timeout_s or tool.timeout_s,
        max_payload_bytes=said.max_payload_bytes or limits.max_payload_bytes,
        confirm=said.confirm,
        approval=said.approval,
        section=section,
        version=_version(tool, section),
        brings_outside_text=tool.brings_outside_text,
        destroys=said.confirm or tool.destroys,
        check=tool.check,
        replies=tool.replies,
        parameters=tool.parameters,
        is_shipped=True,
    )


def _version(tool: ShippedTool, section: Mapping[str, Any]) -> str:
    settings = asdict(tool.settings) if tool.settings is not None else None
    said = [tool.name, tool.release, tool.says, tool.parameters, settings, dict(section)]
    text = json.dumps(said, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_VERSION_DIGITS]
