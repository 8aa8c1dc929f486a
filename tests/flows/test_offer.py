"""A listener as it is offered to a model: name, description, the JSON Schema of its arguments."""

from __future__ import annotations

import pytest

from organism.config.settings import Listener
from organism.errors import InvalidPayload
from organism.pump.rules import call_json, tool_spec
from organism.testing import Running
from tests.flows.world import MakeWorld

SOURCE = '''
from typing import Annotated
from annotated_types import Ge

@dataclass
class Parcel:
    """What is sent, and how heavy it is in grams."""

    what: str
    grams: Annotated[int, Ge(1)] = 100

async def weigh(payload: Parcel, metadata: HandlerMetadata) -> HandlerResponse:
    return HandlerResponse.respond(Told("light"))

async def tell(payload: Ask, metadata: HandlerMetadata) -> HandlerResponse:
    return HandlerResponse.respond(Told(payload.text))
'''
LISTENERS = {"weigh": {"payload_class": "Parcel"}, "tell": {}}


def named(o: Running, name: str) -> Listener:
    listener = o.organism.settings.listener(name)
    assert listener is not None
    return listener


async def test_a_listener_is_offered_with_its_description_and_the_schema_of_its_payload(world: MakeWorld) -> None:
    async with world(SOURCE, LISTENERS).running(on_disk=False) as o:
        spec = tool_spec(named(o, "weigh"), o.organism.codec)
    assert spec.name == "weigh"
    assert spec.description == "Plays weigh\n\nWhat is sent, and how heavy it is in grams."
    assert spec.parameters["properties"]["grams"]["minimum"] == 1
    assert spec.parameters["required"] == ["what"]
    assert set(spec.parameters) == {"type", "properties", "required", "additionalProperties"}


async def test_arguments_become_the_payload_or_every_fault_is_named(world: MakeWorld) -> None:
    async with world(SOURCE, LISTENERS).running(on_disk=False) as o:
        payload = o.organism.codec.draft("Parcel", call_json(named(o, "weigh"), {"what": "tea"}))
        assert (type(payload).__name__, vars(payload)) == ("Parcel", {"what": "tea", "grams": 100})
        with pytest.raises(InvalidPayload) as refused:
            o.organism.codec.draft("Parcel", call_json(named(o, "weigh"), {"grams": "many", "colour": 1}))
        assert [fault.pointer for fault in refused.value.details] == ["/colour", "/what", "/grams"]
