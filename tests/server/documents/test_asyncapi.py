"""AsyncAPI 3.0: it is served, it hangs together, and it is of the very frames and commands that there are."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import orjson

from organism.server.documents.asyncapi import command_name, components, document
from organism.server.push.frames import DETAILED, MAKERS, PUSHED, AgentChanged, IndexProgress, RatesShown, TextHeard
from organism.server.ws.answers import ADDRESS, ANSWERED
from organism.server.ws.commands import COMMANDS, IN_QUERY
from tests.server.served import Served

DOCUMENT: Any = orjson.loads(orjson.dumps(document()))


def references(part: Any) -> Iterator[str]:
    """Every reference of the document."""
    if isinstance(part, dict):
        yield from [part["$ref"]] if isinstance(part.get("$ref"), str) else []
    inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    for value in inner:
        yield from references(value)


def at(reference: str) -> Any:
    """What a reference names. Raises ``KeyError``."""
    found = DOCUMENT
    for name in reference.removeprefix("#/").split("/"):
        found = found[name]
    return found


async def test_it_is_served_without_a_token(hello: Served) -> None:
    answer = await hello.client.get("/asyncapi.json")
    assert (answer.status_code, answer.json()) == (200, DOCUMENT)


def test_every_reference_leads_somewhere() -> None:
    named = set(references(DOCUMENT))
    assert named
    for reference in named:
        assert at(reference)


def test_every_operation_names_messages_of_its_own_channel() -> None:
    for operation in DOCUMENT["operations"].values():
        references = [*operation["messages"], *operation.get("reply", {}).get("messages", [])]
        assert operation["action"] in {"send", "receive"}
        assert {one["$ref"].rpartition("/")[0] for one in references} == {operation["channel"]["$ref"] + "/messages"}


def test_every_message_is_sent_or_received_and_shows_an_example_that_fits() -> None:
    used = {reference.rpartition("/")[2] for reference in references(DOCUMENT["operations"])} - {"socket"}
    assert used == DOCUMENT["components"]["messages"].keys() == DOCUMENT["channels"]["socket"]["messages"].keys()
    for message in DOCUMENT["components"]["messages"].values():
        schema = message["payload"] | {"components": DOCUMENT["components"]}
        jsonschema_rs.Draft202012Validator(schema).validate(message["examples"][0]["payload"])


def test_it_has_each_frame_command_and_parameter_and_no_other() -> None:
    assert set(PUSHED) == {*MAKERS.values(), *DETAILED.values(), AgentChanged, IndexProgress, RatesShown, TextHeard}
    assert ADDRESS.keys() == set(IN_QUERY)
    assert ANSWERED.keys() == COMMANDS.keys()
    for cmd, kind in COMMANDS.items():
        fields = {field.name for field in dataclasses.fields(kind.body)}
        assert components()[command_name(cmd)]["properties"].keys() == fields | {"cmd", "id"}
