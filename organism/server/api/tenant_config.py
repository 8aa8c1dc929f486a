"""The tenant's configuration: by key, what the program, the operator's file and the tenant say."""

from __future__ import annotations

from dataclasses import make_dataclass
from typing import Annotated, Any, Final, Literal, TypedDict, get_args, get_type_hints

from msgspec import Meta
from pydantic import ConfigDict, ValidationError, with_config
from starlette.responses import Response

from organism.config.check import record_of
from organism.config.settings import ProviderName
from organism.config.tenant import KEYS, READ_ONLY, TenantConfig, plain, sources
from organism.errors import Fault, InvalidField, ModelNotInAllowlist, TenantConfigKeyReadonly
from organism.model.commands import ChangeTenantConfig
from organism.server.http.bodies import refusal
from organism.server.http.call import (
    MAX_BODY_BYTES,
    MAX_GATEWAY_BODY_BYTES,
    Call,
    JsonResponse,
    Route,
    Tag,
    refuse_secret,
    tagged,
)
from organism.server.http.contract import ACT, gives
from organism.server.http.rights import Right
from organism.server.json import MAX_DEPTH, encoded

_HINTS: Final = get_type_hints(TenantConfig, include_extras=True)
_BODY: Final = make_dataclass("ConfigBody", [(key, _HINTS[key] | None, None) for key in KEYS], kw_only=True)
_BODY.__doc__ = "The keys to write; one that is null gets the value of the levels below again."
_DEFAULTS: Final = plain(TenantConfig())


class ConfigValue(TypedDict):
    """A key of the tenant's configuration."""

    value: Annotated[Any, Meta(examples=["auto"])]
    source: Annotated[
        Literal["process", "yaml", "db"],
        Meta(description="Who says so: the program, the operator's file, or the tenant by `PUT`."),
    ]
    writable: Annotated[bool, Meta(description="Whether `PUT` takes it.")]


ConfigValues = Annotated[dict[str, ConfigValue], Meta(title="ConfigValues")]
"""The tenant's configuration, by key."""


async def tenant_config(call: Call) -> Response:
    """Each key, its value, and whether the program, the operator's file or the tenant itself says so."""
    call.allow_query()
    return _shown(call)


async def write_tenant_config(call: Call) -> Response:
    """Write keys; the others stay as they are. A value acts from the next read on."""
    call.allow_query()
    changes = _with_whole_numbers(await call.json())
    _check(call, changes)
    await call.do(ChangeTenantConfig(changes=changes, **call.command_fields(of_thread=False)))
    return _shown(call)


def _with_whole_numbers(value: Any) -> Any:
    """JSON in which 5.0 is 5, as JSON Schema has it."""
    if isinstance(value, dict):
        return {key: _with_whole_numbers(each) for key, each in value.items()}
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _check(call: Call, changes: Any) -> None:
    """Raise an ``InvalidRequest`` that names all that cannot be written."""
    if not isinstance(changes, dict):
        raise InvalidField("Send a JSON object of keys and their values.", param="")
    if fixed := tuple(
        Fault(f"/{key}", "is the operator's or the program's alone") for key in changes if key in READ_ONLY
    ):
        raise TenantConfigKeyReadonly(details=fixed)
    values = {key: _DEFAULTS.get(key) if value is None else value for key, value in changes.items()}
    try:
        config = record_of(TenantConfig, values)
    except ValidationError as error:
        found = error.errors(include_url=False)
        raise refusal([{**each, "loc": each["loc"][1:]} for each in found], values) from None
    for at, name in enumerate(config.tools_enabled_default):
        refuse_secret(call.process.redactor, name, f"/tools_enabled_default/{at}")
    model, allowed = config.compact_summary_model, call.who.models
    if changes.get("compact_summary_model") and not (
        model in call.process.organism.settings.models and (allowed is None or model in allowed)
    ):
        raise ModelNotInAllowlist(
            f"There is no model {model!r} for this token. GET /v1/models lists those that there are.",
            param="/compact_summary_model",
        )


def _shown(call: Call) -> Response:
    state, who = call.tenant.pump.state, call.who
    values, said_by = plain(state.config), sources(state.defaults(), state.folded.config)
    models = call.process.organism.settings.models
    fixed = {
        "models": [name for name in models if who.models is None or name in who.models],
        "scopes": sorted(who.grants),
        "rate": who.rate,
        "providers": get_args(ProviderName),
        "limits": {
            "body_bytes": MAX_BODY_BYTES,
            "gateway_body_bytes": MAX_GATEWAY_BODY_BYTES,
            "json_depth": MAX_DEPTH,
        },
    }
    shown = {key: ConfigValue(value=values[key], source=said_by[key], writable=True) for key in KEYS}
    others = {key: ConfigValue(value=fixed[key], source=source, writable=False) for key, source in READ_ONLY.items()}
    return JsonResponse(call.process.redactor.shown(encoded({**shown, **others})))


ROUTES: Final = tagged(
    Tag("tenant", __doc__),
    Route("GET /tenant/config", tenant_config, right=Right("tenant_config:read"), gives=gives(ConfigValues)),
    Route(
        "PUT /tenant/config",
        write_tenant_config,
        right=Right("tenant_config:write"),
        takes=with_config(ConfigDict(extra="forbid"))(_BODY),
        gives=gives(ConfigValues),
        headers=ACT,
        refuses=(TenantConfigKeyReadonly, ModelNotInAllowlist),
        is_recorded=True,
    ),
)
"""Mounted below /v1."""
