"""Writes docs/events.md: every event of the log with its fields, made of the vocabulary. A test compares the file."""

from __future__ import annotations

import argparse
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from organism.events import vocabulary
from organism.server.documents import events
from organism.server.documents.schemas import Schema, type_of

HEAD: Final = """\
# Events

Made by `./scripts/schemas` of `organism/events/vocabulary.py`; not to be edited. An event is a fact in the past tense.
The list is closed: nothing else is ever in a log, and a log of an older version is read as if this one had written it.

These are the fields that `GET /log` shows as `data`, with their types as TypeScript has them. One with a question mark
is left out where it says nothing: no, none, 0 or empty. Times are UTC in microseconds since 1970, durations are in
microseconds, dollars are exact decimals as text. `message` is the id of a message, `agent` the listener that it is for.

The data of an event that has content also has `content`, which is the content's digest, and `content_owner`, the
session or thread that the content is erased with, unless that is the event's own thread. What a record has besides its
event (position, time, thread, cause, correlation, actor) stands in [design.md](design.md).
"""
MARK: Final = re.compile(r"^(?:# -- (.+)|class (\w+)\(\w+)", re.MULTILINE)
"""A heading of the vocabulary, or a class of it."""


def text() -> str:
    return "\n".join([HEAD, *_sections()])


def _sections() -> Iterator[str]:
    """A heading for each of the vocabulary's, below it the events in their order; at the end the records in them."""
    schemas = events.components()
    classes = {event.__name__: event for event in vocabulary.EVENTS.values()}
    for heading, name in MARK.findall(inspect.getsource(vocabulary)):
        if heading:
            yield f"## {heading.replace('``', '`')}\n"
        elif name in classes:
            yield _section(classes[name].event_type, schemas.pop(events.component_name(classes[name])))
    yield "## Records in them\n"
    for name, schema in schemas.items():
        if "properties" in schema:
            yield _section(name, schema)
        elif "prefixItems" in schema:
            yield "\n\n".join([f"### `{name}`", schema["description"], f"`{_type(schema)}`"]) + "\n"


def _section(name: str, schema: Schema) -> str:
    needed = schema.get("required", ())
    fields = [
        f"`{field}{'' if field in needed else '?'}: {_type(said)}`"
        for field, said in schema["properties"].items()
        if field not in events.SEAL
    ]
    return "\n\n".join([f"### `{name}`", schema["description"], *([", ".join(fields)] if fields else [])]) + "\n"


def _type(schema: Schema) -> str:
    """The type in one line."""
    return " ".join(type_of(schema).split()).removeprefix("| ")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--into", type=Path, default=Path("docs/events.md"))
    given = options.parse_args()

    given.into.write_text(text(), "utf-8")
    print(f"the events in {given.into}")


if __name__ == "__main__":
    main()
