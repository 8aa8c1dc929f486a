"""Chance types and values: nothing is lost on the way, and two other implementations read our schemas as we do."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import jsonschema_rs
import orjson
import pytest
import xmlschema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree
from lxml.etree import _Element

from organism.codec import Codec
from organism.codec import xml as codec_xml
from organism.codec.limits import ENVELOPE, XSI, PayloadLimits
from organism.codec.xsd import envelope_xsd, text_of
from organism.errors import InvalidPayload
from tests.codec.payload_types import PayloadType, payload_types, seeds

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(600)]

NAMES = ("greeter", "shouter", "call-1")
JUNK: list[Any] = [None, 1, -1, 2**63, 1.5, "", "x", "1", "2026-01-31", "2026-01-31T12:00:00Z", True, "QQ==", "QR=="]
JUNK += [[], {}, ["x"], {"Inner": {}}, {"a": 1}]
# "NaN" is not among them: `xmlschema` holds it to no bound, while the standard says that it fits none.
TEXTS = ["", " ", "x", "1", "-1", "1.5", "1e400", "INF", "true", "9223372036854775808", "QQ==", "QR==", "+7", "01"]
TEXTS += ["2020-02-30", "2026-01-31", "0001-01-01"]
TEXTS += ["2026-01-31T25:00:00Z", "2026-01-31T12:00:00", "2026-01-31T12:00:00+15:00"]


def often(examples: int) -> settings:
    return settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@given(st.data())
@often(300)
def test_ten_thousand_payloads_come_back_as_they_went_and_are_canonical(data: st.DataObject) -> None:
    made: PayloadType = data.draw(payload_types())
    chance = data.draw(seeds)
    codec = Codec.of([made.cls])
    for _ in range(40):
        payload = made.make(chance)
        text = codec.json(payload)
        from_json = codec.from_json("Made", orjson.loads(text))
        encoded = codec.encode(*NAMES, from_json)
        decoded = codec.decode(encoded.xml)
        assert from_json == encoded.payload == payload
        assert encoded.payload is not payload
        assert decoded == (*NAMES, payload)
        assert text == encoded.json == codec.json(decoded.payload)
        root = codec_xml.parse(encoded.xml, PayloadLimits())
        assert encoded.xml == etree.tostring(root, method="c14n", exclusive=True, with_comments=False)


@given(st.data())
@often(100)
def test_json_schema_takes_what_is_taken(data: st.DataObject) -> None:
    made: PayloadType = data.draw(payload_types())
    chance = data.draw(seeds)
    codec = Codec.of([made.cls])
    second = jsonschema_rs.validator_for(codec.schema("Made").json_schema)
    for _ in range(3):
        value = orjson.loads(codec.json(made.make(chance)))
        second.validate(value)
        for _ in range(6):
            spoilt = _spoilt_json(value, chance)
            assert second.is_valid(spoilt) == _is_taken(codec, spoilt), spoilt


def _is_taken(codec: Codec, value: Any) -> bool:
    try:
        codec.from_json("Made", value)
    except InvalidPayload:
        return False
    return True


def _spoilt_json(value: Any, chance: Random) -> Any:
    if not isinstance(value, dict | list) or not value or chance.random() < 0.3:
        return chance.choice(JUNK)
    at = chance.choice(list(value)) if isinstance(value, dict) else chance.randrange(len(value))
    spoilt = value.copy()
    if chance.random() < 0.2:
        del spoilt[at]
    elif isinstance(spoilt, dict) and chance.random() < 0.2:
        spoilt["strange"] = 1
    else:
        spoilt[at] = _spoilt_json(value[at], chance)
    return spoilt


@given(st.data())
@often(120)
def test_the_schema_that_is_shown_takes_what_is_taken_and_what_the_enforced_one_takes(data: st.DataObject) -> None:
    made: PayloadType = data.draw(payload_types())
    chance = data.draw(seeds)
    codec = Codec.of([made.cls])
    schema = codec.schema("Made")
    shown, enforced = xmlschema.XMLSchema10(schema.xsd), etree.XMLSchema(envelope_xsd([schema.shapes]))
    for _ in range(3):
        root = codec_xml.parse(schema.document(schema.form.write(made.make(chance))).encode(), PayloadLimits())
        for document in (root, *(_spoilt(root, chance) for _ in range(6))):
            is_valid = shown.is_valid(document)
            assert _is_read(codec, document) == is_valid, etree.tostring(document)
            message = codec_xml.parse(GOOD.format("e:", ":e", ENVELOPE, "").encode(), PayloadLimits())
            message.append(copy.deepcopy(document))
            assert enforced.validate(message) == (schema.compiled.validate(document) and document.tag == "Made")
        assert shown.is_valid(root)


OF_WHICH_NO_XSD_KNOWS = ("a key stands twice", "this is not JSON", "expected JSON object", "a number that can be held")


def _is_read(codec: Codec, document: _Element) -> bool:
    try:
        codec.from_xml(etree.tostring(document, encoding="utf-8"))
    except InvalidPayload as refused:
        no_xsd_knows = any(fault in refused.message for fault in OF_WHICH_NO_XSD_KNOWS)
        return no_xsd_knows and codec.schema("Made").compiled.validate(document)
    return True


def _spoilt(root: _Element, chance: Random) -> _Element:
    """A copy of the document with one thing changed, of the kinds that people and models get wrong."""
    spoilt = copy.deepcopy(root)
    element = chance.choice(list(spoilt.iter()))
    parent = element.getparent()
    change = chance.randrange(8)
    if change == 0:
        element.text = chance.choice(TEXTS)
    elif change == 1 and parent is not None:
        parent.remove(element)
    elif change == 2 and parent is not None:
        parent.append(copy.deepcopy(element))
    elif change == 3:
        element.tag = chance.choice(["item", "name", "Inner", "strange"])
    elif change == 4:
        element.set(chance.choice(["key", "strange"]), chance.choice(TEXTS))
    elif change == 5:
        element.set(f"{{{XSI}}}nil", chance.choice(["true", "false", "1", "maybe"]))
    elif change == 6:
        etree.SubElement(element, chance.choice(["item", "strange"])).text = chance.choice(TEXTS)
    else:
        element.attrib.clear()
    return codec_xml.parse(etree.tostring(spoilt, encoding="utf-8"), PayloadLimits())


GOOD = (
    "<{0}message xmlns{1}='{2}'><{0}meta><{0}from>a</{0}from><{0}to>b.c</{0}to><{0}thread>t</{0}thread></{0}meta>"
    "{3}</{0}message>"
)
BODY = "<Any xmlns=''/>"
PLAIN = GOOD.format("", "", ENVELOPE, BODY)
ENVELOPES = [
    PLAIN,
    GOOD.format("e:", ":e", ENVELOPE, "<Any><x y='1'>2</x></Any>"),
    GOOD.format("", "", "urn:other", BODY),
    *(GOOD.format("", "", ENVELOPE, body) for body in ("", BODY + BODY, "<Any/>", "text" + BODY)),
    *(PLAIN.replace("b.c", name) for name in ("9b", "", "b c", "b" * 129)),
    *(PLAIN.replace(">t<", f">{token}<") for token in ("", "t" * 257)),
    PLAIN.replace("<to>b.c</to>", ""),
    PLAIN.replace("<from>a</from>", "<from>a</from><from>a</from>"),
    PLAIN.replace("<meta>", "<meta a='1'>"),
    PLAIN.replace("</meta>", "<tenant>x</tenant></meta>"),
]


@pytest.mark.parametrize("document", ENVELOPES)
def test_both_agree_on_envelopes(document: str) -> None:
    ours = envelope_xsd()
    root: Any = codec_xml.parse(document.encode(), PayloadLimits())
    assert etree.XMLSchema(ours).validate(root) == xmlschema.XMLSchema10(text_of(ours)).is_valid(root)
