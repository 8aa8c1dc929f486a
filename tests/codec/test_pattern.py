"""S13: any pattern is matched in linear time, and means the same in XSD, JSON Schema and Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, make_dataclass
from typing import Annotated

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from pydantic import Field

from organism.codec import Codec, PayloadLimits
from organism.codec.limits import XSD
from organism.codec.pattern import Pattern, PatternRefused
from organism.errors import InvalidPayload
from tests.growth import MOST, growth_fault

TAKEN = [
    "^[a-z]+$", r"\d{3}-\d{4}", "[a-z0-9]+(-[a-z0-9]+)*", r"\$\d+", "(ab|cd)*e", "x{2,5}", "x{0,500}y", r"[\]\-^a]+",
    "ä+ö", "", "^$", "a||b", "(a{2}){3}", r'[^"\\]*', ".+", "[+-]?(0|[1-9][0-9]*)(\\.[0-9]+)?", r"[A-Z][\w.-]*",
    r"(?:GET|P(?:OST|UT)) /\S*", r"[\d-]+", "a{3,}", r"tab\there", r"[^\d\s]+",
]  # fmt: skip
HARD = [
    "(a+)+", "(a*)*b", "(a|a)*", "(a|b*)*c", "(a|ab)(c|bcd)", r"[^@]+@[^@]+\.[a-z]+", "a*a", "(x+x+)+y", "(.*)(.*)",
    "(a{1,30}){1,30}b", "(a?){30}a{30}",
]  # fmt: skip
"""What backtracking matchers take exponential time for; libxml2 is one."""
REFUSED = {
    "(?=a)a": "groups that look around",
    "(?i)a": "groups that look around",
    r"(a)\1": "not known",
    r"\bword\b": "not known",
    "a+?": "quantifier stands after",
    "a**": "quantifier stands after",
    "a{3": "expected a count",
    "a{5,2}": "from small to large",
    "a{1001}": "from small to large",
    "(a": "not closed",
    "a)": r"with no \(",
    "[]": "empty",
    "[z-a]": "range",
    "[a": "not closed",
    "a^b": "where a character is expected",
    "[^\t-\U0010ffff]": "no usual character",
    "*": "where a character is expected",
    "\x01": "cannot carry",
    "\ufffe": "cannot carry",
    "(" * 30 + ")" * 30: "nested deeper",
    "a" * 501: "at most 500",
    "((a{60}){60})": "too large",
}


def compiled(pattern: Pattern) -> etree.XMLSchema:
    schema = etree.Element(f"{{{XSD}}}schema", nsmap={"xs": XSD})
    kind = etree.SubElement(etree.SubElement(schema, f"{{{XSD}}}element", name="d"), f"{{{XSD}}}simpleType")
    restriction = etree.SubElement(kind, f"{{{XSD}}}restriction", base="xs:string")
    etree.SubElement(restriction, f"{{{XSD}}}pattern", value=pattern.text)
    return etree.XMLSchema(schema)


def takes(schema: etree.XMLSchema, text: str) -> bool:
    element = etree.Element("d")
    element.text = text
    return schema.validate(element)


@pytest.mark.parametrize("source", TAKEN)
def test_a_pattern_is_taken_and_its_examples_fit_everywhere(source: str) -> None:
    pattern = Pattern.of(source)
    schema = compiled(pattern)
    for least in (0, 1, 5):
        example = pattern.example(least)
        assert pattern.fits(example)
        assert takes(schema, example)
        assert re.search(pattern.anchored, example)
        assert re.fullmatch(source.removeprefix("^").removesuffix("$"), example)


@pytest.mark.parametrize(("source", "words"), REFUSED.items())
def test_what_could_be_slow_or_is_not_known_is_refused_by_name(source: str, words: str) -> None:
    with pytest.raises(PatternRefused, match=words):
        Pattern.of(source)


@pytest.mark.thorough
@pytest.mark.parametrize("source", HARD)
@pytest.mark.parametrize("bit", ["a", "a@", "xa"])
def test_no_pattern_takes_longer_than_its_text_is_long(source: str, bit: str) -> None:
    held = make_dataclass("Held", [("text", Annotated[str, Field(pattern=source)])])
    codec = Codec.of([held], PayloadLimits(payload_bytes=2 * MOST))
    assert f'<xs:pattern value="{Pattern.of(source).text}"/>' in codec.schema("Held").xsd

    def prepare(size: int) -> Callable[[], object]:
        text = bit * (size // len(bit)) + "!"
        document = f"<Held><text>{text}</text></Held>".encode()

        def read() -> None:
            with suppress(InvalidPayload):
                codec.from_json("Held", {"text": text})
            with suppress(InvalidPayload):
                codec.from_xml(document)
            with suppress(InvalidPayload):
                codec.encode("a", "b", "c", held(text))

        return read

    assert growth_fault(prepare) == ""


@dataclass
class Leaf:
    code: Annotated[str, Field(pattern="([a-z]+)+[0-9]")]


@dataclass
class Tree:
    by_name: dict[Annotated[str, Field(pattern="k[0-9]*")], Leaf | None]
    codes: list[Annotated[str, Field(pattern="(x|x)+")]]
    count: int = 0


XML = "<Tree><by_name>{}</by_name><codes><item>{}</item></codes><count>{}</count></Tree>"
ITEM = '<item key="{}"><code>{}</code></item>'


@pytest.mark.parametrize(
    ("document", "places"),
    [
        (XML.format(ITEM.format("k1", "a1"), "xx", 1), []),
        (XML.format(ITEM.format("k1", "a"), "xx", 1), ["/by_name/k1/code"]),
        (XML.format(ITEM.format("j", "a1"), "xx", 1), ["/by_name/j"]),
        (XML.format(ITEM.format("j", "a"), "y", "n"), ["/by_name/j", "/by_name/j/code", "/codes/0", "/count"]),
    ],
)
def test_each_text_that_a_pattern_does_not_describe_is_named_in_a_document(document: str, places: list[str]) -> None:
    codec = Codec.of([Tree])
    try:
        codec.from_xml(document.encode())
        found = []
    except InvalidPayload as refused:
        found = [fault.pointer for fault in refused.details]
    assert found == places


def test_what_a_handler_sends_is_held_to_its_patterns() -> None:
    codec = Codec.of([Tree])
    codec.encode("a", "b", "c", Tree({"k": Leaf("a1"), "k2": None}, ["x"]))
    with pytest.raises(InvalidPayload) as refused:
        codec.encode("a", "b", "c", Tree({"k": Leaf("a")}, ["x"]))
    assert [fault.pointer for fault in refused.value.details] == ["/by_name/k/code"]


RANGES = st.lists(st.tuples(st.integers(0x20, 0x7E), st.integers(0, 12)), min_size=1, max_size=4)
SEEN = ["\t", "\n", "\r", *map(chr, range(0x20, 0x90)), "ä", "😀"]


@settings(derandomize=True)
@given(RANGES, st.booleans())
def test_a_class_of_any_ranges_is_read_alike(ranges: list[tuple[int, int]], negated: bool) -> None:  # noqa: FBT001 - chance
    inside = "".join(re.escape(chr(low)) + "-" + re.escape(chr(min(low + width, 0x7E))) for low, width in ranges)
    source = f"[{'^' if negated else ''}{inside}]"
    pattern = Pattern.of(source)
    schema = compiled(pattern)
    for char in SEEN:
        assert takes(schema, char) == pattern.fits(char) == bool(re.fullmatch(source, char))


PARTS = st.recursive(
    st.sampled_from(["a", "b", "c", ".", "[ab]", "[^a]", r"\d"]),
    lambda part: st.one_of(
        st.lists(part, min_size=1, max_size=3).map("".join),
        st.lists(part, min_size=1, max_size=3).map(lambda parts: "(" + "|".join(parts) + ")"),
        st.tuples(part, st.sampled_from(["?", "*", "+", "{2}", "{1,3}"])).map(lambda both: f"({both[0]}){both[1]}"),
    ),
    max_leaves=6,
)


@settings(derandomize=True)
@given(st.sampled_from(TAKEN) | PARTS, st.text("abc1-x09.\\$]^[\"'! \tä+E/GETPOS", max_size=12))
def test_libxml2_and_python_read_a_pattern_alike(source: str, text: str) -> None:
    pattern = Pattern.of(source)
    assert takes(compiled(pattern), text) == pattern.fits(text) == bool(re.search(pattern.anchored, text))


@settings(derandomize=True)
@given(PARTS, st.text("abc1!", max_size=6))
def test_a_chance_pattern_means_what_python_says(source: str, text: str) -> None:
    assert Pattern.of(source).fits(text) == bool(re.fullmatch(source, text))
