"""What organism.yaml says, checked and frozen.

Nothing here reads a file: ``load`` makes these records, everyone else only reads them. The bounds next to fields are
the ones that ``load`` enforces; ``REQUIRED`` names the keys that must be in the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from inspect import cleandoc
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, NamedTuple

from pydantic import BeforeValidator, Field

from organism.config.check import (
    Amount,
    Count,
    Given,
    InvokeMode,
    Made,
    Money,
    Name,
    Number,
    PayloadBytes,
    Seconds,
    Text,
    Title,
    matching,
)
from organism.config.modules import ModuleSet
from organism.config.prompts import PromptConfig, PromptKey
from organism.config.tools import Tools
from organism.model.handler import EffectKind
from organism.model.ids import CONSOLE, LIBRARY_ID, SYSTEM_TODO
from organism.model.words import AgentName

FileName = Annotated[str, matching(r"[a-zA-Z0-9_-]+", "a name of letters, digits, `_` and `-`", 128)]
_INDEX: Final = "the name of an index: at most 128 letters, digits, `.`, `_`, `:` or `-`, but not `.` or `..`"
IndexName = Annotated[str, matching(LIBRARY_ID, _INDEX)]
INDEX_TOOL: Final = "rag_query"
"""The tool that asks an index of documents. An agent that names it goes without it where there is none, and says so."""
INDICES_TOOL: Final = "rag_index_list"
ProviderName = Literal["openai", "anthropic", "offline", "scripted", "local"]
Taint = Literal["escalate", "allow"]

PLAIN_AT_ONCE: Final = 64
"""Handlers at once of a listener whose own async code computes, or awaits what its author bounds."""
COSTLY_AT_ONCE: Final = 5
"""Handlers at once of any other: it has a model, runs in threads, or is a tool that asks services."""

Handler = Callable[[Any, Any], Any]
"""``async def (payload, metadata)``, or a plain ``def`` where the listener is ``blocking``."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of the whole organism. Times are in seconds; ``pause_after_failures`` 0 means never (G8).

    Where ``max_concurrent_per_agent`` is left out, it depends on what a listener does.
    """

    max_concurrent_handlers: Count = 256
    max_concurrent_per_agent: Given[Count] = None
    max_blocking_threads: Count = 20
    max_queue_per_agent: Count = 10_000
    max_open_per_thread: Count = 10_000
    max_depth: Count = 50
    max_steps_per_handling: Annotated[int, Field(ge=100, le=1_000_000)] = 10_000
    max_payload_bytes: PayloadBytes = 262_144
    handler_timeout_s: Seconds = 30.0
    ask_timeout_s: Seconds = 30.0
    approval_expires_s: Seconds = 86_400.0
    max_tokens_per_thread: Annotated[int, Field(ge=0, le=1_000_000_000)] = 100_000
    pause_after_failures: Annotated[int, Field(ge=0, le=1_000_000)] = 0


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a handling is tried, and how long it waits in between (seconds, growing to ``max_delay_s``)."""

    attempts: Annotated[int, Field(ge=1, le=1000)] = 3
    base_delay_s: Annotated[float, Field(ge=0, le=86_400)] = 0.2
    max_delay_s: Annotated[float, Field(ge=0, le=86_400)] = 10.0


@dataclass(frozen=True, slots=True)
class Spend:
    """Upper bounds of what may be spent; None is no bound, 0 forbids."""

    tokens: Given[Number] = None
    usd: Given[Money] = None
    calls: Given[Number] = None
    seconds: Given[Amount] = None


@dataclass(frozen=True, slots=True)
class Budget:
    """What one run may spend, and what all runs of a day may."""

    run: Spend = Spend()
    day: Spend = Spend()


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, in US dollars for a million tokens."""

    input_usd_per_million: Money = Decimal(0)
    output_usd_per_million: Money = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One of ``models``.

    ``model`` is what the provider calls it. The key lies in the environment, under the name ``api_key_env``.
    ``context_window`` counts tokens; no model of today takes fewer than its default. ``max_concurrent`` and
    ``rate_limit_tpm`` (tokens a minute) are 0 where there is no such limit. ``fallback`` names models that are asked
    in its place when it fails; following them never leads in a circle. ``script`` is the file from which a scripted
    model answers: absolute, once it is loaded.
    """

    REQUIRED: ClassVar = ("provider",)

    provider: Annotated[ProviderName, BeforeValidator(lambda it: "offline" if it == "builtin" else it)] = "offline"
    """Once ``offline`` was called ``builtin``; files may still say so."""
    model: Text = ""
    base_url: Given[Text] = None
    api_key_env: Given[Text] = None
    context_window: Annotated[int, Field(ge=1, le=1_000_000_000)] = 8192
    price: Price = Price()
    max_concurrent: Number = 20
    rate_limit_tpm: Number = 0
    fallback: tuple[Text, ...] = ()
    timeout_s: Seconds = 120.0
    script: Given[Annotated[Path, Made(Text, Path)]] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """A conversational agent, as its own file describes it.

    ``max_tokens`` and ``temperature`` are None where the model decides. Of ``rag_index`` the ``rag_top_k`` best
    passages are put before each prompt. ``taint`` says whether a person must agree to what it does once it has read
    text from outside (S20); None leaves it to the tenant's configuration.
    """

    REQUIRED: ClassVar = ("name", "model", "description", "system_prompt")

    name: FileName = ""
    model: Text = ""
    description: Text = ""
    system_prompt: Text = ""
    max_tokens: Given[Annotated[int, Field(ge=1, le=1_000_000)]] = None
    temperature: Given[Annotated[float, Field(ge=0, le=2)]] = None
    tools: tuple[Name, ...] = ()
    rag_index: Given[IndexName] = None
    rag_top_k: Annotated[int, Field(ge=1, le=50)] = 5
    budget: Budget = Budget()
    taint: Given[Taint] = None
    group: Given[Title] = None


class Row(NamedTuple):
    """The row of a read model whose key is a field of the payload."""

    model: str
    field: str


Check = Callable[[Any], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """One listener, with the code that it runs.

    ``peers`` stands as in the YAML; ``any_peer`` says that ``"*"`` is among them. ``handler`` is None where the turn
    loop runs the listener. ``accepts`` holds the payload class and each reply class that the handler's annotation
    names: a reply of any other class goes unread. ``max_concurrent``, ``timeout_s`` and
    ``max_payload_bytes`` are the listener's own or those of the limits; where neither says it, ``max_concurrent`` is
    ``PLAIN_AT_ONCE`` or ``COSTLY_AT_ONCE``. ``section`` is its part of the YAML.
    ``version`` changes with the section, with the modules of handler and payload class, and with whatever these
    import under the prefixes. ``brings_outside_text`` says that its answers may hold text of strangers (S20),
    ``destroys`` whether a call cannot be undone: always (as with ``confirm``), never, or where it replaces a
    row. ``quotes`` says whether a request holds text from outside that its sender brings. ``check`` raises
    ``InvalidPayload`` for a payload that its class allows and the listener does not take. ``replies`` are classes that
    it is known to answer with. ``effect`` is ``pure`` if calls change nothing, ``idempotent`` if a repeated
    call changes nothing more, else ``unsafe``. ``parameters`` is the JSON Schema of its arguments, where its payload
    class does not define them. ``is_shipped``: it comes with the organism, and its code is bound to each tenant.
    ``scope`` is what a token needs to call it as a tool. ``is_internal``: it works for the organism's own commands
    alone, and nobody can send to it.
    ``check_turn`` raises ``MessageTooLarge`` for a message of a session that its model cannot take.
    ``agent`` is the conversational agent that it is, or that its ``prompt_ref`` names. ``group`` is the one that it is
    shown in.
    """

    name: AgentName
    description: str
    is_agent: bool = False
    peers: tuple[str, ...] = ()
    any_peer: bool = False
    payload_class: type
    payload_class_path: str
    handler: Handler | None = None
    handler_path: str | None = None
    accepts: frozenset[type]
    broadcast: bool = False
    blocking: bool = False
    max_concurrent: int
    timeout_s: float
    max_payload_bytes: int
    prompt: str | None = None
    prompt_ref: str | None = None
    model: str | None = None
    tools: tuple[str, ...] = ()
    budget: Budget = Budget()
    confirm: bool = False
    approval: bool = False
    invoke: tuple[InvokeMode, ...] = ()
    section: Mapping[str, Any]
    version: str
    brings_outside_text: bool = False
    destroys: bool | Row = False
    quotes: Callable[[Any], bool] | None = None
    check: Check | None = None
    replies: tuple[type, ...] = ()
    effect: EffectKind = "unsafe"
    parameters: Mapping[str, Any] | None = None
    is_shipped: bool = False
    scope: str = "inject"
    is_internal: bool = False
    check_turn: Check | None = None
    agent: AgentSettings | None = None
    group: str | None = None

    def asks_people(self, taint: Taint) -> bool:
        """Whether it is an agent for whose tainted runs a person must agree to what cannot be undone (S20).

        ``taint`` is the tenant's, for an agent whose file has none.
        """
        own = self.agent.taint if self.agent is not None else None
        return self.is_agent and (own or taint) == "escalate"

    @property
    def looks_up(self) -> tuple[str, ...]:
        """The tools that its turns call without being asked: for passages of its index, and for the list of indices."""
        passages = self.agent is not None and self.agent.rag_index is not None
        return (INDEX_TOOL,) * passages + (INDICES_TOOL,) * (INDEX_TOOL in self.tools)

    def may_send_to(self, name: str) -> bool:
        """Whether ``name`` is a peer: by name, by ``"*"``, as a tool, itself, or as ``system.todo``, always one."""
        named = self.any_peer or name in self.peers or name in self.tools or name in {self.name, SYSTEM_TODO}
        return named or name in self.looks_up


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedTool:
    """What a shipped tool takes and answers, as data; the code that runs it is bound to each tenant.

    Its description is what it ``says``, else the docstring of ``payload_class``. ``replies``, ``brings_outside_text``,
    ``destroys``, ``effect``, ``confirm``, ``check``, ``parameters`` and ``scope`` are as in ``Listener``.
    ``is_listed``: it is a listener even if no one names it. ``settings`` is what ``tools`` of organism.yaml says of it,
    a dataclass. ``release`` is the version of its code. ``is_off`` says why it cannot be used, if so.
    """

    name: str
    scope: str
    payload_class: type
    replies: tuple[type, ...]
    brings_outside_text: bool = False
    destroys: bool | Row = False
    effect: EffectKind = "unsafe"
    confirm: bool = False
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


Ship = Callable[[Tools, Collection[str]], Sequence[ShippedTool]]
"""Gives the shipped tools, as ``tools`` of an organism.yaml sets them and for every name that it uses."""


@dataclass(frozen=True, slots=True)
class Charter:
    """``organism.charter`` as written, and its text; None is the one that ships with the organism."""

    written: str | bool = True
    text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """One organism.yaml as it was loaded, with the handler modules and the files of agents of that load.

    ``embeddings`` and ``fx`` are plain mappings whose shape was checked. ``listeners`` are those of the file, then the
    conversational agents, then the shipped tools that one of them names; ``unlisted`` are the other shipped tools: they
    take messages, and stand in no list. ``off`` says why some shipped tools cannot be used. ``prompts`` are
    those of AgentStack, by name and version. ``digest`` is the SHA-256 over all files of the load, ``folder`` where
    organism.yaml lies (absolute).
    """

    name: str
    imports: tuple[str, ...]
    limits: Limits
    retry: Retry
    models: Mapping[str, Model]
    embeddings: Mapping[str, Any]
    tools: Tools
    fx: Mapping[str, Any]
    listeners: tuple[Listener, ...]
    unlisted: tuple[Listener, ...]
    off: Mapping[str, str]
    prompts: Mapping[PromptKey, PromptConfig]
    digest: str
    folder: Path
    charter: Charter = Charter()
    modules: ModuleSet = field(repr=False, compare=False)

    @property
    def receivers(self) -> tuple[Listener, ...]:
        """All that take messages, in a list or not."""
        return (*self.listeners, *self.unlisted)

    def context_window(self, model: str | None) -> float:
        """How many tokens a turn takes: the model's context, at most what a thread may use. Infinite for no model."""
        known = self.models.get(model or "")
        return math.inf if known is None else min(known.context_window, self.limits.max_tokens_per_thread)

    def listener(self, name: str) -> Listener | None:
        """The listener of that name, or None."""
        return next((listener for listener in self.listeners if listener.name == name), None)


def is_reserved(name: str) -> bool:
    """Whether a name is reserved for the organism itself: the console, and all of ``system``."""
    return name in {CONSOLE, "system"} or name.startswith("system.")
