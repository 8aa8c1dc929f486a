"""S13: only patterns that every matcher reads in linear time, meaning the same in XSD, JSON Schema and Python."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from organism.codec.limits import XSD
from organism.codec.pattern import Pattern
from organism.codec.pattern_reader import PatternRefused

TAKEN = [
    "^[a-z]+$",
    r"\d{3}-\d{4}",
    "[a-z0-9]+(-[a-z0-9]+)*",
    r"\$\d+",
    "(ab|cd)*e",
    "x{2,5}",
    "x{0,500}y",
    r"[\]\-^a]+",
    "ä+ö",
    "",
    "^$",
    "a||b",
    "(a{2}){3}",
    r'[^"\\]*',
    ".+",
    "[+-]?(0|[1-9][0-9]*)(\\.[0-9]+)?",
    r"[A-Z][\w.-]*",
    r"(?:GET|P(?:OST|UT)) /\S*",
    r"[\d-]+",
    "a{3,}",
    r"tab\there",
    r"[^\d\s]+",
]
REFUSED = {
    "(a+)+": "repetition is repeated",
    "(a*)*b": "may be empty",
    "(a|a)*": "next character decides",
    "(a|b*)*c": "may be empty",
    "(a|ab)(c|bcd)": "next character decides",
    r"[^@]+@[^@]+\.[a-z]+": "next character decides",
    "a*a": "next character decides",
    "(x+x+)+y": "next character decides",
    "(.*)(.*)": "next character decides",
    "(?=a)a": "groups that look around",
    "(?i)a": "groups that look around",
    r"(a)\1": "not known",
    r"\bword\b": "not known",
    "a+?": "quantifier stands after",
    "a**": "quantifier stands after",
    "a{3": "expected a count",
    "a{5,2}": "from small to large",
    "a{200000}": "from small to large",
    "(a": "not closed",
    "a)": r"with no \(",
    "[]": "empty",
    "[z-a]": "range",
    "[a": "too early",
    "a^b": "where a character is expected",
    "[^\t-\U0010ffff]": "no usual character",
    "*": "where a character is expected",
    "\x01": "cannot carry",
    "\ufffe": "cannot carry",
    "(" * 30 + ")" * 30: "nested deeper",
    "a" * 501: "at most 500",
    "(((a{60}){60}){60})": "too large",
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
def test_a_deterministic_pattern_is_taken_and_its_examples_fit_everywhere(source: str) -> None:
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


@pytest.mark.parametrize("source", TAKEN)
def test_a_pattern_that_is_taken_is_linear_on_long_texts(source: str) -> None:
    pattern = Pattern.of(source)
    schema = compiled(pattern)
    began = time.monotonic()
    for text in ("a" * 100_000, "a-" * 50_000 + "!", "abcd" * 25_000, "1" * 100_000 + "x", "x" * 100_000):
        assert takes(schema, text) == pattern.fits(text)
    assert time.monotonic() - began < 3


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.sampled_from(TAKEN), st.text("ab-x019.\\$]^[\"'! \tä+E/GETPOS", max_size=12))
def test_libxml2_and_python_read_a_pattern_alike(source: str, text: str) -> None:
    pattern = Pattern.of(source)
    assert takes(compiled(pattern), text) == pattern.fits(text) == bool(re.search(pattern.anchored, text))


RANGES = st.lists(st.tuples(st.integers(0x20, 0x7E), st.integers(0, 12)), min_size=1, max_size=4)
SEEN = ["\t", "\n", "\r", *map(chr, range(0x20, 0x90)), "ä", "😀"]


@settings(max_examples=200, deadline=None, derandomize=True)
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


@settings(max_examples=400, deadline=None, derandomize=True)
@given(PARTS)
def test_no_chance_pattern_that_is_taken_is_slow(source: str) -> None:
    try:
        pattern = Pattern.of(source)
    except PatternRefused:
        return
    schema = compiled(pattern)
    began = time.monotonic()
    for text in ("a" * 60 + "!", "ab" * 30 + "!", "abc" * 20 + "!"):
        assert takes(schema, text) == pattern.fits(text)
    assert time.monotonic() - began < 1
