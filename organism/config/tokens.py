"""config/tokens.yaml: the tenants, and the SHA-256 of the tokens that open them (S1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final

from organism.config.check import Count, Section, Text, matching
from organism.config.faults import Faults, near, open_to_everyone, read_text
from organism.config.tenant import TenantConfig
from organism.config.yaml import read_yaml
from organism.model.ids import DEFAULT_TENANT, TenantId
from organism.model.principal import ADMIN, KINDS, OPERATOR, PAGE, SCOPES, Principal, is_grant

TOKENS_FILE: Final = Path("config") / "tokens.yaml"
"""Its path, relative to the folder of organism.yaml."""
EVERY: Final = "*"
"""Among ``models`` or ``tools``: all of them."""


TenantName = Annotated[
    str,
    matching(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", "a tenant's id: at most 63 letters, digits, `.`, `_` or `-`"),
]
TokenName = Annotated[
    str, matching(r"[a-z0-9][a-z0-9-]{0,31}", "a token's name: at most 32 small letters, digits or `-`")
]
Digest = Annotated[
    str,
    matching(
        r"[0-9a-f]{64}",
        "the SHA-256 of a token as 64 small hex digits, in quotes; `organism token create` makes it",
    ),
]


@dataclass(frozen=True, slots=True)
class TokenSection:
    """One token of config/tokens.yaml."""

    REQUIRED: ClassVar = ("name", "sha256", "scopes")

    name: TokenName = ""
    sha256: Digest = ""
    scopes: tuple[str, ...] = ()
    models: tuple[Text, ...] = ()
    tools: tuple[Text, ...] = ()
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


@dataclass(frozen=True, slots=True)
class TenantEntry:
    """One tenant of the file. ``defaults`` are keys of ``TenantConfig``, as they stand there."""

    id: TenantId
    defaults: Mapping[str, Any]
    tokens: tuple[Principal, ...]


def holder(entries: Iterable[TenantEntry], tenant: str, name: str, seconds: float) -> Principal | None:
    """Who has a token of that name in the tenant now (seconds since 1970); None if it was revoked or has expired."""
    if tenant == DEFAULT_TENANT and name in {OPERATOR, PAGE}:
        return Principal(DEFAULT_TENANT, name, frozenset({ADMIN}))
    tokens = (token for entry in entries if entry.id == tenant for token in entry.tokens)
    return next((each for each in tokens if each.name == name and (each.ends is None or each.ends > seconds)), None)


def defaults_of(entries: Iterable[TenantEntry], tenant: str) -> Mapping[str, Any]:
    """What the file says of the tenant's configuration; nothing if it does not list the tenant."""
    return next((entry.defaults for entry in entries if entry.id == tenant), {})


def read_tokens(path: Path) -> tuple[TenantEntry, ...]:
    """The tenants of the file, none if there is no file. Raises ``ConfigInvalid`` with every fault."""
    if not path.exists():
        return ()
    faults = Faults(path.name)
    if (wrong := open_to_everyone(path)) is not None:
        faults.add(1, (), wrong)
    text = read_text(
        path,
        faults,
        if_missing="the server's user must be able to read it",
        if_large="revoke what is not used any more",
    )
    faults.refuse_if_any()
    return parse_tokens(text, path.name)


def parse_tokens(text: str, name: str = TOKENS_FILE.name) -> tuple[TenantEntry, ...]:
    """The tenants of the text. Raises ``ConfigInvalid`` with every fault."""
    faults = Faults(name)
    root = read_yaml(text, faults, "a mapping with `tenants`")
    if root is None:
        raise faults.refusal()
    whole = Section(root, (), faults)
    whole.record(TokensRoot)
    seen: dict[tuple[str, ...], int] = {}
    found = tuple(_tenant(each, seen) for each in whole.mappings("tenants", listed=True))
    faults.refuse_if_any()
    return found


def _tenant(section: Section, seen: dict[tuple[str, ...], int]) -> TenantEntry:
    tenant = section.record(TenantSection)
    _once(section, "id", ("tenant", tenant.id), seen)
    tokens = tuple(_token(tenant.id, each, seen) for each in section.mappings("tokens", listed=True))
    if (defaults := section.at("defaults")) is not None and isinstance(defaults.node.value, dict):
        defaults.record(TenantConfig)
    return TenantEntry(TenantId(tenant.id), tenant.defaults, tokens)


def _token(tenant: str, section: Section, seen: dict[tuple[str, ...], int]) -> Principal:
    token = section.record(TokenSection)
    _once(section, "name", ("token", tenant, token.name), seen)
    if token.name in {OPERATOR, PAGE}:
        section.add(f"`{token.name}` is the name of a token that the server makes by itself", "name")
    _once(section, "sha256", ("digest", token.sha256), seen)
    for index, scope in enumerate(token.scopes):
        if not is_grant(scope):
            section.add(_wrong_scope(scope), "scopes", index)
    return Principal(
        TenantId(tenant),
        token.name,
        frozenset(token.scopes),
        credential=bytes.fromhex(token.sha256),
        models=_narrowed(section, "models", token.models),
        tools=_narrowed(section, "tools", token.tools),
        is_tenant_admin=token.tenant_admin,
        rate=token.rate or None,
        ends=_end(token.expires, section),
    )


def _narrowed(section: Section, key: str, names: tuple[str, ...]) -> frozenset[str] | None:
    """The names of a list; None if it is left out or names all."""
    return None if EVERY in names or not section.has(key) else frozenset(names)


def _once(section: Section, key: str, what: tuple[str, ...], seen: dict[tuple[str, ...], int]) -> None:
    """Note a fault if this is in the file already. A missing value was reported already."""
    if what[-1] and what in seen:
        section.add(f"this {what[0]} stands here twice, first in line {seen[what]}", key)
    seen.setdefault(what, section.node.nearest((key,)).line)


def _wrong_scope(scope: str) -> str:
    whole = next((each for each in SCOPES if scope.startswith(f"{each}:")), "")
    if whole:
        return (
            f"`{scope}` narrows `{whole}` to nothing known; expected {whole}:KIND:NAME with one of {', '.join(KINDS)}"
        )
    return f"there is no scope `{scope}`" + (near(scope, SCOPES) or f"; there are {', '.join(SCOPES)}")


def _end(written: str, section: Section) -> float | None:
    if not written:
        return None
    try:
        end = datetime.fromisoformat(written)
    except ValueError:
        end = None
    if end is None or end.tzinfo is None:
        expected = "expected a time with its offset, such as 2027-01-01T00:00:00Z"
        section.add(f"{expected}; came {written[:40]!r}", "expires")
        return None
    return end.timestamp()
