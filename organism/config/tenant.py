"""What a tenant's configuration says, key by key: the program's own value, that of config/tokens.yaml, the tenant's.

The later one wins. It is made at each read, so a change of any of them acts at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass, field, fields
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError

from organism.config.check import Name, Text, record_of, without
from organism.config.settings import Budget, Taint

CompactStrategy = Literal["auto", "manual", "off"]
OnBusy = Literal["queue", "reject", "force", "steer"]
Source = Literal["process", "yaml", "db"]
KeepLast = Annotated[int, Field(ge=0, le=200)]
ToolName = Annotated[Name, Field(json_schema_extra={"pattern": r"^[A-Za-z][A-Za-z0-9_.-]{0,127}$"})]
MOST_TOOLS: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantConfig:
    """Every key; the defaults are the program's own values.

    Without ``compact_summary_model`` the summarizer's own model makes summaries, else that of the session's agent.
    ``taint`` is that of agents whose files do not name one. ``budget`` bounds the runs and days of all agents.
    """

    compact_strategy: CompactStrategy = "auto"
    compact_keep_last_n: KeepLast = 10
    compact_observation_mask: bool = True
    compact_summary_model: Annotated[Text, Field(max_length=200)] | None = None
    on_busy: OnBusy = "queue"
    taint: Taint = "escalate"
    audit_prompts: bool = False
    tools_enabled_default: Annotated[tuple[ToolName, ...], Field(max_length=MOST_TOOLS, fail_fast=True)] = ()
    budget: Budget = field(default_factory=Budget)


KEYS: Final = tuple(each.name for each in fields(TenantConfig))
READ_ONLY: Final[Mapping[str, Source]] = {
    "models": "yaml",
    "scopes": "yaml",
    "rate": "yaml",
    "providers": "process",
    "limits": "process",
}
"""What only the operator sets: for a token in config/tokens.yaml, or in the program itself."""


def effective(yaml: Mapping[str, Any], written: Mapping[str, Any]) -> TenantConfig:
    """The configuration in force: ``yaml`` are the tenant's ``defaults``, ``written`` what was written since."""
    return record_of(TenantConfig, {**yaml, **written})


def readable(written: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The written keys that can be read, and the places of others: of another version, or masked in the log."""
    try:
        record_of(TenantConfig, dict(written))
    except ValidationError as error:
        wrong = error.errors(include_url=False)
        places = tuple(dict.fromkeys("/".join(map(str, fault["loc"][1:])) for fault in wrong))
        return without(deepcopy(dict(written)), wrong), places
    return dict(written), ()


def sources(yaml: Mapping[str, Any], written: Mapping[str, Any]) -> dict[str, Source]:
    """Where the value of each key comes from."""
    return {key: "db" if key in written else "yaml" if key in yaml else "process" for key in KEYS}


def plain(config: TenantConfig) -> dict[str, Any]:
    """The values as JSON has them; a budget has only the keys that are bounded."""
    return {**asdict(config), "budget": {name: _bounds(spend) for name, spend in asdict(config.budget).items()}}


def _bounds(spend: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(most) if name == "usd" else most for name, most in spend.items() if most is not None}
