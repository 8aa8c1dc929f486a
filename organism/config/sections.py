"""The keys of organism.yaml and the shape of what stands behind them: the table that ``check`` holds the file against.

Field names are the keys. Every field has a default, so that what is left of a faulty section can still be read and
the rest of its faults be found; ``REQUIRED`` names the keys that must be there. What an absent key means stands where
it is used.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Final

from pydantic import BeforeValidator, Field

from organism.config.settings import (
    CONTEXT_WINDOW,
    MODEL_TIMEOUT_S,
    RAG_TOP_K,
    Count,
    InvokeMode,
    Limits,
    PayloadBytes,
    Provider,
    Retry,
    Seconds,
    Taint,
)
from organism.config.tool_settings import VARIABLE, HttpFetch, McpServer, Wikipedia

NAME_PATTERN: Final = r"^[A-Za-z][A-Za-z0-9_.-]*$"
_NOT_BLANK: Final = r"\S"
_ONE_LINE: Final = r"^[^\x00-\x1f\x7f\x{85}\x{2028}\x{2029}]*$"
_DOTTED: Final = r"^[^\W\d]\w*(\.[^\W\d]\w*)+$"
_MODULE: Final = r"^[^\W\d]\w*(\.[^\W\d]\w*)*$"
_PROMPT_REF: Final = r"^[A-Za-z0-9_.-]+(@[A-Za-z0-9_.-]+)?$"
_FILE_NAME: Final = r"^[a-zA-Z0-9_-]+$"
_INDEX: Final = r"^[A-Za-z0-9._:-]{1,128}$"
TENANT_ID: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"
_CALLED: Final = r"^[a-z0-9][a-z0-9-]{0,31}$"
_DIGEST: Final = r"^[0-9a-f]{64}$"

PATTERNS: Final = {
    NAME_PATTERN: "a name: a letter, then letters, digits, `_`, `.` or `-`",
    _NOT_BLANK: "text that is not blank",
    _ONE_LINE: "one line of text",
    _DOTTED: "a dotted path such as `handlers.hello.greet`",
    _MODULE: "the name of a module such as `handlers`",
    _PROMPT_REF: "a prompt such as `A2@v1`",
    _FILE_NAME: "a name of letters, digits, `_` and `-`",
    _INDEX: "the name of an index: at most 128 letters, digits, `.`, `_`, `:` or `-`",
    TENANT_ID: "a tenant's id: at most 63 letters, digits, `.`, `_` or `-`",
    _CALLED: "a token's name: at most 32 small letters, digits or `-`",
    VARIABLE: "the name of an environment variable such as `SEARCH_TOKEN`, never a key itself",
    _DIGEST: "the SHA-256 of a token as 64 small hex digits, in quotes; `organism token create` makes it",
}
"""What each pattern means, for people."""

Text = Annotated[str, Field(min_length=1, pattern=_NOT_BLANK)]
Name = Annotated[str, Field(pattern=NAME_PATTERN, max_length=128)]
FileName = Annotated[str, Field(pattern=_FILE_NAME, max_length=128)]
IndexName = Annotated[str, Field(pattern=_INDEX)]
Title = Annotated[str, Field(min_length=1, pattern=_ONE_LINE, max_length=128)]
DottedPath = Annotated[str, Field(pattern=_DOTTED, max_length=256)]
Prefix = Annotated[str, Field(pattern=_MODULE, max_length=256)]
PromptRef = Annotated[str, Field(pattern=_PROMPT_REF, max_length=256)]
Amount = Annotated[float, Field(ge=0, le=1_000_000_000)]
Number = Annotated[int, Field(ge=0, le=1_000_000_000)]
TenantName = Annotated[str, Field(pattern=TENANT_ID)]
TokenName = Annotated[str, Field(pattern=_CALLED)]
Digest = Annotated[str, Field(pattern=_DIGEST)]


@dataclass(frozen=True, slots=True)
class OrganismSection:
    """``organism``: its name, the prefixes of the modules that the file may name, and its charter (``charter.py``)."""

    REQUIRED: ClassVar = ("name",)

    name: Title = ""
    imports: tuple[Prefix, ...] = ()
    charter: Any = True


@dataclass(frozen=True, slots=True)
class PriceSection:
    """What a model costs."""

    input_usd_per_million: Amount = 0.0
    output_usd_per_million: Amount = 0.0


def _today(provider: object) -> object:
    """`offline` was called `builtin` once; files may still say so."""
    return "offline" if provider == "builtin" else provider


@dataclass(frozen=True, slots=True)
class ModelSection:
    """One of ``models``. Empty text stands for "not given"."""

    REQUIRED: ClassVar = ("provider",)

    provider: Annotated[Provider, BeforeValidator(_today)] = "offline"
    model: Text = ""
    base_url: Text = ""
    api_key_env: Text = ""
    context_window: Annotated[int, Field(ge=1, le=1_000_000_000)] = CONTEXT_WINDOW
    price: PriceSection = field(default_factory=PriceSection)
    max_concurrent: Number = 0
    rate_limit_tpm: Number = 0
    fallback: tuple[Text, ...] = ()
    timeout_s: Seconds = MODEL_TIMEOUT_S
    script: Text = ""


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
class SpendSection:
    """Upper bounds of what may be spent. -1 stands for "not given": 0 is a bound like any other."""

    tokens: Number = -1
    usd: Amount = -1.0
    calls: Number = -1
    seconds: Amount = -1.0


@dataclass(frozen=True, slots=True)
class BudgetSection:
    """Bounds for one run and for one day."""

    run: SpendSection = field(default_factory=SpendSection)
    day: SpendSection = field(default_factory=SpendSection)


@dataclass(frozen=True, slots=True)
class ListenerSection:
    """One of ``listeners``. 0 and empty text stand for "not given"."""

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
    budget: BudgetSection = field(default_factory=BudgetSection)
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
class AgentSection:
    """A file of a conversational agent. 0, a temperature below it, and empty text stand for "not given"."""

    REQUIRED: ClassVar = ("name", "model", "description", "system_prompt")

    name: FileName = ""
    model: Text = ""
    description: Text = ""
    system_prompt: Text = ""
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] = 0
    temperature: Annotated[float, Field(ge=0, le=2)] = -1.0
    tools: tuple[Name, ...] = ()
    rag_index: IndexName = ""
    rag_top_k: Annotated[int, Field(ge=1, le=50)] = RAG_TOP_K
    budget: BudgetSection = field(default_factory=BudgetSection)
    taint: Taint = "escalate"


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
    """One token of config/tokens.yaml. 0 and empty text stand for "not given"."""

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


Section = (
    OrganismSection
    | Limits
    | Retry
    | ModelSection
    | EmbeddingSection
    | HttpFetch
    | McpServer
    | Wikipedia
    | ListenerSection
    | ShippedSection
    | AgentSection
    | BudgetSection
    | Root
    | TokenSection
    | TenantSection
    | TokensRoot
)
