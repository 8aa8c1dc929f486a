"""JSON → payload → XML → payload → JSON loses nothing, for chance types and chance values."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree

from organism.codec import Codec
from organism.codec import xml as codec_xml
from tests.codec.payload_types import PayloadType, payload_types, seeds

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

TYPES = 300
VALUES_A_TYPE = 40
NAMES = ("greeter", "shouter", "call-1")
often = settings(max_examples=TYPES, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@given(st.data())
@often
def test_ten_thousand_payloads_come_back_as_they_went_and_are_canonical(data: st.DataObject) -> None:
    made: PayloadType = data.draw(payload_types())
    chance = data.draw(seeds)
    codec = Codec.of([made.cls])
    for _ in range(VALUES_A_TYPE):
        _comes_back(codec, made.make(chance))


def _comes_back(codec: Codec, payload: Any) -> None:
    text = codec.json(payload)
    from_json = codec.from_json("Made", orjson.loads(text))
    sealed = codec.seal(*NAMES, from_json)
    decoded = codec.decode(sealed.xml)
    assert from_json == payload
    assert sealed.payload == payload
    assert sealed.payload is not payload
    assert decoded == (*NAMES, payload)
    assert text == sealed.json == codec.json(decoded.payload)
    assert sealed.xml == _canonical(sealed.xml)


def _canonical(document: bytes) -> bytes:
    root = codec_xml.parse(document, Codec().terms)
    return etree.tostring(root, method="c14n", exclusive=True, with_comments=False)
