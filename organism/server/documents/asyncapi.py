"""AsyncAPI 3.0 of the socket: the frame table and the command table in, the document out. It is the server's view."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from organism.server.documents.openapi import INFO, SECURITY
from organism.server.documents.schemas import Schema, Schemas, example
from organism.server.push.frames import PERSONAL, PUSHED
from organism.server.ws.answers import ADDRESS, ANSWERED, CommandRefused
from organism.server.ws.commands import COMMANDS

DESCRIPTION: Final = (
    "After `connected` every event comes once and in order, none missing. A client keeps the last `position` and the "
    "`log`, and hands both in by `since` and `log` when it comes again. The token comes by a header, `?ticket=`, or as "
    "the first message within 10 seconds: the command `auth`. `GET /api/v1/events` pushes the same, by Server-Sent "
    "Events."
)
SOCKET: Final = "#/channels/socket"
BATCH: Final = "Batch"
ID: Final = {"description": "Of any kind, up to 200 bytes of JSON; the answer carries it too.", "examples": [1]}


def frame_kinds() -> list[Any]:
    """Every form that a frame may have: pushed, personal, an answer."""
    return list(dict.fromkeys((*PUSHED, *PERSONAL, *ANSWERED.values(), CommandRefused)))


def command_name(cmd: str) -> str:
    return f"{cmd.capitalize()}Command"


def components() -> dict[str, Schema]:
    """The schemas of all frames and commands, by name."""
    schemas = Schemas([*frame_kinds(), *(kind.body for kind in COMMANDS.values())])
    bodies = {kind.body.__name__ for kind in COMMANDS.values()}
    found = {name: schema for name, schema in schemas.components.items() if name not in bodies}
    for cmd, kind in COMMANDS.items():
        found[command_name(cmd)] = _command(cmd, schemas.components[kind.body.__name__])
    pushed = [{"$ref": f"#/components/schemas/{kind.__name__}"} for kind in PUSHED]
    found[BATCH] = {
        "description": "With `batch`: what passes of one commit, or of a page of the past.",
        "type": "array",
        "items": {"anyOf": pushed},
    }
    return dict(sorted(found.items()))


def _command(cmd: str, body: Schema) -> Schema:
    """A command is its body with its name, and an id if the client wants one."""
    fields = {"cmd": {"const": cmd, "type": "string"}, **body["properties"], "id": ID}
    return {**body, "properties": fields, "required": ["cmd", *body.get("required", ())]}


def document() -> Schema:
    schemas = components()
    frames = [kind.__name__ for kind in frame_kinds()]
    commands = [command_name(cmd) for cmd in COMMANDS]
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": INFO["title"],
            "version": INFO["version"],
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {"here": _server()},
        "channels": {"socket": _channel([*frames, BATCH, *commands])},
        "operations": dict(_operations()),
        "components": {
            "schemas": schemas,
            "messages": {name: _message(name, schemas) for name in (*frames, BATCH, *commands)},
            "securitySchemes": {
                "bearer": {name: SECURITY["bearer"][name] for name in ("type", "scheme", "description")},
                "key": {"type": "httpApiKey", "name": "X-API-Key", "in": "header"},
            },
        },
    }


def _server() -> Schema:
    return {
        "host": "127.0.0.1:8080",
        "protocol": "ws",
        "description": "The address that `organism serve` prints; `wss` with a certificate.",
        "security": [{"$ref": f"#/components/securitySchemes/{name}"} for name in SECURITY],
    }


def _channel(names: list[str]) -> Schema:
    schemas = Schemas(ADDRESS.values())
    query = {"type": "object", "properties": {name: schemas.of(kind) for name, kind in ADDRESS.items()}}
    return {
        "address": "/ws",
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in names},
        "bindings": {"ws": {"method": "GET", "query": query, "bindingVersion": "0.1.0"}},
    }


def _operations() -> Iterator[tuple[str, Schema]]:
    first = [kind.__name__ for kind in PERSONAL]
    pushed = [kind.__name__ for kind in PUSHED]
    yield "say", _operation("send", "How things stand, and how far this connection has come.", first)
    yield "push", _operation("send", "What happens, as far as the filter lets it pass.", [*pushed, BATCH])
    for cmd, kind in COMMANDS.items():
        summary = (kind.body.__doc__ or "").strip().partition("\n")[0]
        reply = {
            "channel": {"$ref": SOCKET},
            "messages": _references([ANSWERED[cmd].__name__, CommandRefused.__name__]),
        }
        needs = f" Needs the scope `{kind.right.scope}`."
        yield cmd, {**_operation("receive", summary + needs, [command_name(cmd)]), "reply": reply}


def _operation(action: str, summary: str, names: list[str]) -> Schema:
    return {"action": action, "channel": {"$ref": SOCKET}, "summary": summary, "messages": _references(names)}


def _references(names: list[str]) -> list[Schema]:
    return [{"$ref": f"{SOCKET}/messages/{name}"} for name in names]


def _message(name: str, schemas: dict[str, Schema]) -> Schema:
    schema = schemas[name]
    return {
        "name": name,
        "summary": schema.get("description", ""),
        "payload": {"$ref": f"#/components/schemas/{name}"},
        "examples": [{"payload": example(schema, schemas)}],
    }
