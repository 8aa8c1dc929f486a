"""Offer: a listener as a tool that a model, or a program, may call."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import cleandoc
from typing import Any, Final

import orjson

from organism.codec import Codec
from organism.config.settings import Listener
from organism.model.tool import CONFIRM_TOKEN, ToolArguments, ToolSpec

_ABOUT_ITSELF: Final = frozenset({"$schema", "title", "description"})
"""What a payload's JSON Schema says of the payload as a whole, and a tool says elsewhere."""


def tool_spec(listener: Listener, codec: Codec) -> ToolSpec:
    """What is offered: the listener's name, its description with the payload's docstring, the payload's JSON Schema."""
    if listener.parameters is not None:
        return ToolSpec(listener.name, cleandoc(listener.description), _parameters(listener, listener.parameters))
    schema = codec.schema(listener.payload_class.__name__)
    parameters = {key: value for key, value in schema.json_schema.items() if key not in _ABOUT_ITSELF}
    return ToolSpec(listener.name, _description(listener, schema.json_schema), parameters)


def _parameters(listener: Listener, own: Mapping[str, Any]) -> Mapping[str, Any]:
    """Those of a tool that is not ours, with room for the token if its calls are confirmed."""
    if not listener.confirm:
        return own
    return {**own, "properties": {**own.get("properties", {}), CONFIRM_TOKEN: {"type": "string"}}}


def _description(listener: Listener, schema: Mapping[str, Any]) -> str:
    said, more = cleandoc(listener.description), schema.get("description", "")
    return said if not more or more == said else f"{said}\n\n{more}"


def call_json(listener: Listener, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
    """The payload of a call as JSON. A tool that is not ours takes its arguments as text, and checks them itself."""
    return arguments if listener.payload_class is not ToolArguments else {"json": orjson.dumps(arguments).decode()}
