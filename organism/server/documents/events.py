"""The vocabulary as JSON Schemas: what ``GET /log`` shows as ``data`` of each event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec.structs import fields

from organism.events import vocabulary as events
from organism.server.documents.schemas import TEMPLATE, Schema, tidied

SEAL: Final[Mapping[str, Schema]] = {
    "content": {"type": "string", "description": "The digest of its content."},
    "content_owner": {"type": "string", "description": "What the content is erased with, if not with its thread."},
}
"""What stands besides the event's own fields in the data of one that has content."""
EXAMPLE: Final = events.MessageSent("msg-01a2b3c4", "console", "greeter", "Greeting", depth=1, token="call-01a2b3c4")  # noqa: S106 - no password


EVENT_DATA: Final = "EventData"
"""The title of ``words.EventData``."""


def component_name(event: type[events.Event]) -> str:
    """What the schema of an event's data is called."""
    return f"{event.__name__}Data"


def components() -> dict[str, Schema]:
    """``EventData``, what it may be for each event, and the records in it, by name."""
    _, found = msgspec.json.schema_components(events.EVENTS.values(), ref_template=TEMPLATE.format(model="{name}"))
    shown = {component_name(event): _data(event, found.pop(event.__name__)) for event in events.EVENTS.values()}
    some = {
        "description": "What an event says, by its type.",
        "anyOf": [{"$ref": TEMPLATE.format(model=name)} for name in shown],
        "examples": [_fields(EXAMPLE)],
    }
    return {name: tidied(schema) for name, schema in {EVENT_DATA: some, **shown, **found}.items()}


def _fields(event: events.Event) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(event)
    return {name: value for name, value in shown.items() if name != "event"}


def _data(event: type[events.Event], schema: Schema) -> Schema:
    """The event's fields without its name, as its docstring tells of them."""
    description = schema["description"]
    for field in fields(event):
        description = description.replace(f"``{field.name}``", f"``{field.encode_name}``")
    own = {name: _shown(field) for name, field in schema["properties"].items() if name != "event"}
    required = [name for name in schema["required"] if name != "event"]
    return {**schema, "description": description, "properties": {**own, **SEAL}, "required": required}


def _shown(field: Schema) -> Schema:
    """The field without the null or the word that is its default: it is left out instead."""
    default = field.get("default", ...)
    if default is None:
        choices: list[Schema] = [choice for choice in field["anyOf"] if choice != {"type": "null"}]
        return choices[0]
    if default in field.get("enum", ()):
        return {"enum": [word for word in field["enum"] if word != default]}
    return field
