"""What a model writes costs no more than in proportion to its length, whatever it is (S20)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest

from organism.agents.functions import Functions
from organism.agents.tool_calls import CallReader
from organism.agents.written_calls import written_calls
from organism.codec.repair import repair_text
from organism.config.json_text import NotJson, found_in
from organism.errors import InvalidPayload
from tests.agents.test_functions import CODEC
from tests.growth import growth_fault

pytestmark = pytest.mark.thorough

OFFERED = {"f": ("a", "b"), "g": ("a",)}
CALLS = (
    '{"', '{"a":1,\n', "[f", "[f(", "f(1)\n", "f(1);", "[f(1),", '{"name": "f", "arguments": {}}\n', "<tool_call>",
    '<tool_call>[[[[[[{"a"\n', "<function=f>", "<function=g>{", "f(a=[", '\nf("', "{'a':", "[[", 'f("""', "```\n",
)  # fmt: skip
DOCUMENTS = (
    "<Greeting>", "<Greeting ", "<!--", "<![CDATA[", "<?", "</a>", "<Greeting><a>", "&", "&#0;", '<Greeting a="',
    "<!DOCTYPE ", "<Greeting></Greeting>", '<a b="c" ', "\x00",
)  # fmt: skip
OBJECTS = ('{"', '{"a":1,', "[1,", "[[", "{}", "[1]\n", '{"a":{', '{"a":1}x\n')
MOST_BYTES = 64 << 10


def read_calls(text: str) -> None:
    reader = CallReader(Functions([]), CODEC)
    reader.add_outside(text.replace("f", "h"))
    written_calls(f"f {text}", OFFERED, reader.is_outside)


def read_document(text: str) -> None:
    with suppress(InvalidPayload):
        repair_text(text, ["Greeting"])


def read_objects(text: str) -> None:
    with suppress(NotJson):
        list(found_in(text))


@pytest.mark.parametrize(
    ("reads", "bit"),
    [
        *((read_calls, bit) for bit in CALLS),
        *((read_document, bit) for bit in DOCUMENTS),
        *((read_objects, bit) for bit in OBJECTS),
    ],
)
@pytest.mark.parametrize("before", ["", '{"a":["'])
def test_a_models_text_costs_in_proportion_to_its_length(reads: Callable[[str], None], bit: str, before: str) -> None:
    def prepare(size: int) -> Callable[[], object]:
        return partial(reads, before + bit * (size // len(bit)))

    assert growth_fault(prepare, MOST_BYTES) == ""


def test_calls_beyond_a_hundred_places_stay_text() -> None:
    calls, rest = written_calls("f(1)\n" * 101, OFFERED, lambda _: False)
    assert (len(calls), rest) == (100, "f(1)")
