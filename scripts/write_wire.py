"""Writes the types of the wire for the web pages, in TypeScript: what goes over REST and over /ws.

Each shape is an interface, the frames and commands are unions, the routes a map. A test compares the file.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from organism.events.vocabulary import EVENTS
from organism.server.app import ROUTES
from organism.server.documents import asyncapi, events, openapi
from organism.server.documents.schemas import Schema, Schemas, one_of, type_of
from organism.server.http.call import Route
from organism.server.push.frames import PUSHED
from organism.server.ws.answers import ANSWERED
from organism.server.ws.commands import COMMANDS

HEAD: Final = """\
// The wire: what goes over REST and over /ws. Made by scripts/schemas of the server's own contract; not to be edited.
// A field with a question mark may be missing; one that may be empty says null.
"""


def text(routes: Sequence[Route]) -> str:
    components = {**openapi.schemas_of(routes).components, **asyncapi.components()}
    parts = [
        HEAD,
        *(_declared(name, schema) for name, schema in sorted(components.items())),
        _union("Pushed", "What is pushed to all whose filter it passes.", map(_name, PUSHED)),
        _union("Frame", "Whatever may come over the socket.", map(_name, asyncapi.frame_kinds())),
        _union("Command", "Whatever may be sent over the socket.", map(asyncapi.command_name, COMMANDS)),
        _events(),
        _answers(),
        _routes(routes),
    ]
    return "\n".join(parts)


def _name(kind: Any) -> str:
    name: str = kind.__name__
    return name


def _declared(name: str, schema: Schema) -> str:
    comment = _comment(schema, "")
    if schema.get("type") != "object":
        return f"{comment}export type {name} = {type_of(schema)};\n"
    return f"{comment}export interface {name} {_fields(schema)}\n"


def _fields(schema: Schema, indent: str = "") -> str:
    needed = schema.get("required", ())
    lines = [
        f"{_comment(field, indent + '  ')}{indent}  {name}{'' if name in needed else '?'}: {type_of(field)};\n"
        for name, field in schema.get("properties", {}).items()
    ]
    listed = "".join(lines)
    return f"{{\n{listed}{indent}}}" if lines else "{}"


def _comment(schema: Schema, indent: str) -> str:
    said = schema.get("description", "").replace("*/", "* /")
    return f"{indent}/** {said} */\n" if said else ""


def _union(name: str, said: str, members: Iterator[str]) -> str:
    listed = "".join(f"\n  | {member}" for member in members)
    return f"/** {said} */\nexport type {name} ={listed};\n"


def _events() -> str:
    lines = "".join(f"  {name}: {events.component_name(kind)};\n" for name, kind in sorted(EVENTS.items()))
    return f"/** What an event of the log says, by its type. */\nexport interface EventDataByType {{\n{lines}}}\n"


def _answers() -> str:
    lines = "".join(f"  {cmd}: {_name(kind)};\n" for cmd, kind in ANSWERED.items())
    return f"/** What answers each command, unless it is a CommandRefused. */\nexport interface Answers {{\n{lines}}}\n"


def _routes(routes: Sequence[Route]) -> str:
    schemas = openapi.schemas_of(routes)
    lines = "".join(_route(route, schemas) for route in routes)
    said = "/** Every route, by its method and path. Refused, it answers an ErrorAnswer. */"
    return f"{said}\nexport interface Routes {{\n{lines}}}\n"


def _route(route: Route, schemas: Schemas) -> str:
    taken = {"properties": {name: schemas.of(kind) for name, kind in route.parameters().items()}}
    answer = one_of([type_of(schemas.of(form.shape)) for form in route.gives if form.shape is not None])
    body = "undefined" if route.takes is None else type_of(schemas.of(route.takes))
    if route.takes_files:
        body = "Blob"
    said = [f"    query: {_fields(taken, '    ')};\n", f"    body: {body};\n", f"    answer: {answer};\n"]
    fields = "".join(said)
    return f'  "{route.method} {route.address}": {{\n{fields}  }};\n'


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--into", type=Path, default=Path("web/src/wire.ts"))
    given = options.parse_args()

    given.into.parent.mkdir(parents=True, exist_ok=True)
    given.into.write_text(text(ROUTES), "utf-8")
    print(f"the types of the wire in {given.into}")


if __name__ == "__main__":
    main()
