"""The keys of organism.yaml and config/tokens.yaml whose sections need more than ``check`` to become settings.

Field names are the keys. Every field has a default, so that what is left of a faulty section can still be read and
the rest of its faults be found; ``REQUIRED`` names the keys that must be there. Empty text and 0 stand for "left out".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from organism.config.fields import (
    Amount,
    Count,
    Digest,
    DottedPath,
    InvokeMode,
    Name,
    PayloadBytes,
    Prefix,
    PromptRef,
    Seconds,
    TenantName,
    Text,
    Title,
    TokenName,
)
from organism.config.settings import Budget


@dataclass(frozen=True, slots=True)
class OrganismSection:
    """``organism``: its name, the prefixes of the modules that the file may name, and its charter (``charter.py``)."""

    REQUIRED: ClassVar = ("name",)

    name: Title = ""
    imports: tuple[Prefix, ...] = ()
    charter: Any = True


@dataclass(frozen=True, slots=True)
class EmbeddingSection:
    """One of ``embeddings``."""

    REQUIRED: ClassVar = ("provider",)

    provider: Text = ""
    model: Text = ""
    base_url: Text = ""
    api_key_env: Text = ""
    dim: Count = 1
    batch: Count = 1
    default: bool = False


@dataclass(frozen=True, slots=True)
class ListenerSection:
    """One of ``listeners``."""

    REQUIRED: ClassVar = ("name", "description")

    name: Name = ""
    description: Text = ""
    payload_class: DottedPath = ""
    handler: DottedPath = ""
    agent: bool = False
    peers: tuple[str, ...] = ()
    broadcast: bool = False
    blocking: bool = False
    max_concurrent: Count = 0
    timeout_s: Seconds = 0.0
    max_payload_bytes: PayloadBytes = 0
    prompt: Text = ""
    prompt_ref: PromptRef = ""
    model: Text = ""
    tools: tuple[Name, ...] = ()
    budget: Budget = field(default_factory=Budget)
    confirm: bool = False
    approval: bool = False
    brings_outside_text: bool = False
    invoke: tuple[InvokeMode, ...] = ()


@dataclass(frozen=True, slots=True)
class ShippedSection:
    """One of ``listeners`` that has a shipped tool's name and no code: that tool, in other terms."""

    REQUIRED: ClassVar = ("name",)

    name: Name = ""
    description: Text = ""
    max_concurrent: Count = 0
    timeout_s: Seconds = 0.0
    max_payload_bytes: PayloadBytes = 0
    confirm: bool = False
    approval: bool = False


@dataclass(frozen=True, slots=True)
class Root:
    """The whole file; what stands behind the keys is held against its own table."""

    REQUIRED: ClassVar = ("organism",)

    organism: dict[str, Any] = field(default_factory=dict)
    limits: dict[str, Any] = field(default_factory=dict)
    retry: dict[str, Any] = field(default_factory=dict)
    models: dict[str, dict[str, Any]] = field(default_factory=dict)
    embeddings: dict[str, dict[str, Any]] = field(default_factory=dict)
    tools: dict[str, dict[str, Any]] = field(default_factory=dict)
    fx: dict[str, Amount] = field(default_factory=dict)
    listeners: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class TokenSection:
    """One token of config/tokens.yaml."""

    REQUIRED: ClassVar = ("name", "sha256", "scopes")

    name: TokenName = ""
    sha256: Digest = ""
    scopes: tuple[str, ...] = ()
    models: tuple[Text, ...] = ()
    tenant_admin: bool = False
    expires: str = ""
    rate: Count = 0


@dataclass(frozen=True, slots=True)
class TenantSection:
    """One of ``tenants``."""

    REQUIRED: ClassVar = ("id",)

    id: TenantName = ""
    defaults: dict[str, Any] = field(default_factory=dict)
    tokens: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class TokensRoot:
    """The whole of config/tokens.yaml."""

    REQUIRED: ClassVar = ("tenants",)

    tenants: tuple[dict[str, Any], ...] = ()
