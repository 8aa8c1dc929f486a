"""What our schemas take and refuse is what the `xmlschema` package says, for good documents and for spoilt ones."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest
import xmlschema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lxml import etree
from lxml.etree import _Element

from organism.codec import PayloadSchema
from organism.codec import xml as codec_xml
from organism.codec.limits import ENVELOPE, XSI, Terms
from organism.codec.xsd import envelope_xsd, text_of
from tests.codec.payload_types import PayloadType, payload_types, seeds

pytestmark = pytest.mark.thorough

SPOILT_A_VALUE = 6
# "NaN" is not among them: `xmlschema` holds it to no bound, while the standard says that it fits none.
TEXTS = [
    "",
    " ",
    "x",
    "1",
    "-1",
    "1.5",
    "1e400",
    "INF",
    "true",
    "2020-02-30",
    "2026-01-31",
    "2026-01-31T25:00:00Z",
]
TEXTS += [
    "9223372036854775808",
    "QQ==",
    "QR==",
    "2026-01-31T12:00:00",
    "2026-01-31T12:00:00+15:00",
    "0001-01-01",
    "+7",
    "01",
]
some = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@given(st.data())
@some
def test_both_agree_on_documents_of_chance_types(data: st.DataObject) -> None:
    made: PayloadType = data.draw(payload_types())
    chance = data.draw(seeds)
    schema = PayloadSchema.of(made.cls)
    second = xmlschema.XMLSchema10(schema.xsd)
    for _ in range(3):
        document = schema.document(schema.write(made.make(chance))).encode()
        root = codec_xml.parse(document, Terms())
        assert not schema.faults(root)
        assert second.is_valid(root)
        for _ in range(SPOILT_A_VALUE):
            spoilt = _spoil(root, chance)
            assert (not schema.faults(spoilt)) == second.is_valid(spoilt), etree.tostring(spoilt)


def _spoil(root: _Element, chance: Random) -> _Element:
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
    return codec_xml.parse(etree.tostring(spoilt, encoding="utf-8"), Terms())


GOOD = (
    "<{0}message xmlns{1}='{2}'><{0}meta><{0}from>a</{0}from><{0}to>b.c</{0}to><{0}thread>t</{0}thread></{0}meta>"
    "{3}</{0}message>"
)
BODY = "<Any xmlns=''/>"
ENVELOPES = [
    GOOD.format("", "", ENVELOPE, BODY),
    GOOD.format("e:", ":e", ENVELOPE, "<Any><x y='1'>2</x></Any>"),
    GOOD.format("", "", "urn:other", BODY),
    GOOD.format("", "", ENVELOPE, ""),
    GOOD.format("", "", ENVELOPE, BODY + BODY),
    GOOD.format("", "", ENVELOPE, "<Any/>"),
    GOOD.format("", "", ENVELOPE, BODY).replace("b.c", "9b"),
    GOOD.format("", "", ENVELOPE, BODY).replace("b.c", ""),
    GOOD.format("", "", ENVELOPE, BODY).replace("b.c", "b c"),
    GOOD.format("", "", ENVELOPE, BODY).replace("b.c", "b" * 129),
    GOOD.format("", "", ENVELOPE, BODY).replace(">t<", "><"),
    GOOD.format("", "", ENVELOPE, BODY).replace(">t<", ">" + "t" * 257 + "<"),
    GOOD.format("", "", ENVELOPE, BODY).replace("<to>b.c</to>", ""),
    GOOD.format("", "", ENVELOPE, BODY).replace("<from>a</from>", "<from>a</from><from>a</from>"),
    GOOD.format("", "", ENVELOPE, BODY).replace("<meta>", "<meta a='1'>"),
    GOOD.format("", "", ENVELOPE, BODY).replace("</meta>", "<tenant>x</tenant></meta>"),
    GOOD.format("", "", ENVELOPE, "text" + BODY),
]


@pytest.mark.parametrize("document", ENVELOPES)
def test_both_agree_on_envelopes(document: str) -> None:
    ours = envelope_xsd()
    root: Any = codec_xml.parse(document.encode(), Terms())
    assert etree.XMLSchema(ours).validate(root) == xmlschema.XMLSchema10(text_of(ours)).is_valid(root)


@given(st.data())
@some
def test_the_schema_that_is_enforced_takes_what_the_one_that_is_shown_takes(data: st.DataObject) -> None:
    made: PayloadType = data.draw(payload_types())
    chance = data.draw(seeds)
    shown = PayloadSchema.of(made.cls)
    enforced = etree.XMLSchema(envelope_xsd([shown.shapes]))
    root = codec_xml.parse(shown.document(shown.write(made.make(chance))).encode(), Terms())
    for _ in range(SPOILT_A_VALUE):
        spoilt = _spoil(root, chance)
        message = codec_xml.parse(GOOD.format("e:", ":e", ENVELOPE, "").encode(), Terms())
        message.append(copy.deepcopy(spoilt))
        assert enforced.validate(message) == (shown.compiled.validate(spoilt) and spoilt.tag == "Made")
