"""config/tokens.yaml: the tenants, and the tokens that open them (S1).

A token is never in the file, only the SHA-256 of its text. All faults are told at once, each with its line and key.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from organism.config.check import held
from organism.config.faults import Faults, Place
from organism.config.sections import TenantSection, TokenSection, TokensRoot
from organism.config.settings import Budget
from organism.config.text import near, open_to_everyone, read_text
from organism.config.yaml import Node, read_yaml
from organism.model.ids import DEFAULT_TENANT, TenantId
from organism.model.principal import ADMIN, COMMANDS_PER_SECOND, KINDS, OPERATOR, PAGE, SCOPES, Principal, is_grant

TOKENS_FILE: Final = Path("config") / "tokens.yaml"
"""Where it lies, beside organism.yaml."""
EVERY_MODEL: Final = "*"


@dataclass(frozen=True, slots=True)
class TenantEntry:
    """One tenant of the file. ``defaults`` is a plain mapping, as it stands there; ``budget`` is what they allow."""

    id: TenantId
    defaults: Mapping[str, Any]
    tokens: tuple[Principal, ...]
    budget: Budget = field(default_factory=Budget)


def holder(entries: Iterable[TenantEntry], tenant: str, name: str, seconds: float) -> Principal | None:
    """Who has a token of that name in the tenant now (seconds since 1970); None if it was revoked or has expired."""
    if tenant == DEFAULT_TENANT and name in {OPERATOR, PAGE}:
        return Principal(DEFAULT_TENANT, name, frozenset({ADMIN}))
    tokens = (token for entry in entries if entry.id == tenant for token in entry.tokens)
    return next((each for each in tokens if each.name == name and (each.ends is None or each.ends > seconds)), None)


def budget_of_tenant(entries: Iterable[TenantEntry], tenant: str) -> Budget:
    """What the tenant may spend; no bound if the file does not say it."""
    return next((entry.budget for entry in entries if entry.id == tenant), Budget())


_Seen = dict[tuple[str, ...], int]
"""What may stand only once in the file, with the line where it stands."""


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
    held(TokensRoot, root, (), faults)
    found = tuple(_tenants(root, faults))
    faults.refuse_if_any()
    return found


def _tenants(root: Node, faults: Faults) -> Iterator[TenantEntry]:
    seen: _Seen = {}
    for place, node in _items(root, ("tenants",)):
        section = held(TenantSection, node, place, faults)
        _once(seen, ("tenant", section.id), node, (*place, "id"), faults)
        tokens = tuple(
            _token(section.id, token, inner, seen, faults) for inner, token in _items(node, ("tokens",), place)
        )
        yield TenantEntry(TenantId(section.id), section.defaults, tokens, _budget(node, place, faults))


def _budget(tenant: Node, place: Place, faults: Faults) -> Budget:
    """What a run of the tenant, and all its runs of a day, may spend."""
    way = ("defaults", "budget")
    defaults = tenant.nearest(way[:1])
    if defaults is tenant or not isinstance(defaults.value, dict) or "budget" not in defaults.value:
        return Budget()
    return held(Budget, defaults.value["budget"], (*place, *way), faults)


def _items(owner: Node, way: Place, above: Place = ()) -> Iterator[tuple[Place, Node]]:
    """The mappings of the list that lies at ``way``, each with its place; what is none was told already."""
    node = owner.nearest(way)
    if node is owner or not isinstance(node.value, tuple):
        return
    for index, item in enumerate(node.value):
        if isinstance(item.value, dict):
            yield (*above, *way, index), item


def _token(tenant: str, node: Node, place: Place, seen: _Seen, faults: Faults) -> Principal:
    section = held(TokenSection, node, place, faults)
    _once(seen, ("token", tenant, section.name), node, (*place, "name"), faults)
    if section.name in {OPERATOR, PAGE}:
        line = node.nearest(("name",)).line
        faults.add(line, (*place, "name"), f"`{section.name}` is the name of a token that the server makes by itself")
    _once(seen, ("digest", section.sha256), node, (*place, "sha256"), faults)
    for index, scope in enumerate(section.scopes):
        if not is_grant(scope):
            line = node.nearest(("scopes", index)).line
            faults.add(line, (*place, "scopes", index), _wrong_scope(scope))
    rate = section.rate or (None if ADMIN in section.scopes else COMMANDS_PER_SECOND)
    has_all_models = EVERY_MODEL in section.models or "models" not in dict(node.items())
    return Principal(
        TenantId(tenant),
        section.name,
        frozenset(section.scopes),
        credential=bytes.fromhex(section.sha256),
        models=None if has_all_models else frozenset(section.models),
        is_tenant_admin=section.tenant_admin,
        rate=rate,
        ends=_end(section.expires, node, place, faults),
    )


def _once(seen: _Seen, what: tuple[str, ...], node: Node, place: Place, faults: Faults) -> None:
    """Note a fault if this stands in the file already. What is missing was told already."""
    if not what[-1]:
        return
    line = node.nearest((place[-1],)).line
    if what in seen:
        faults.add(line, place, f"this {what[0]} stands here twice, first in line {seen[what]}")
    seen.setdefault(what, line)


def _wrong_scope(scope: str) -> str:
    whole = next((each for each in SCOPES if scope.startswith(f"{each}:")), "")
    if whole:
        return (
            f"`{scope}` narrows `{whole}` to nothing known; expected {whole}:KIND:NAME with one of {', '.join(KINDS)}"
        )
    return f"there is no scope `{scope}`" + (near(scope, SCOPES) or f"; there are {', '.join(SCOPES)}")


def _end(said: str, node: Node, place: Place, faults: Faults) -> float | None:
    if not said:
        return None
    try:
        moment = datetime.fromisoformat(said)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        expected = "expected a time with its offset, such as 2027-01-01T00:00:00Z"
        faults.add(node.nearest(("expires",)).line, (*place, "expires"), f"{expected}; came {said[:40]!r}")
        return None
    return moment.timestamp()
