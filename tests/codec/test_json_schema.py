"""The JSON Schema of a class takes just what ``from_json`` takes, by the word of another implementation."""

from __future__ import annotations

from random import Random
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from organism.codec import Codec
from organism.errors import InvalidPayload
from tests.codec.payload_types import PayloadType, payload_types, seeds

pytestmark = pytest.mark.thorough

jsonschema_rs: Any = pytest.importorskip("jsonschema_rs")
JUNK: list[Any] = [None, 1, -1, 2**63, 1.5, "", "x", "1", "2026-01-31", "2026-01-31T12:00:00Z", True, "QQ==", "QR=="]
JUNK += [[], {}, ["x"], {"Inner": {}}, {"a": 1}]


@given(st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
def test_both_agree_on_json_of_chance_types(data: st.DataObject) -> None:
    made: PayloadType = data.draw(payload_types())
    chance = data.draw(seeds)
    codec = Codec.of([made.cls])
    second = jsonschema_rs.validator_for(codec.schema("Made").json_schema)
    for _ in range(3):
        value = orjson.loads(codec.json(made.make(chance)))
        second.validate(value)
        for _ in range(6):
            spoilt = _spoil(value, chance)
            assert second.is_valid(spoilt) == _is_taken(codec, spoilt), spoilt


def _is_taken(codec: Codec, value: Any) -> bool:
    try:
        codec.from_json("Made", value)
    except InvalidPayload:
        return False
    return True


def _spoil(value: Any, chance: Random) -> Any:
    if not isinstance(value, dict | list) or not value or chance.random() < 0.3:
        return chance.choice(JUNK)
    at = chance.choice(list(value)) if isinstance(value, dict) else chance.randrange(len(value))
    spoilt = value.copy()
    if chance.random() < 0.2:
        del spoilt[at]
    elif isinstance(spoilt, dict) and chance.random() < 0.2:
        spoilt["strange"] = 1
    else:
        spoilt[at] = _spoil(value[at], chance)
    return spoilt
