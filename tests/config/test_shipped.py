"""Which shipped tools become listeners, by which terms, and what may take their place."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pytest

from organism.config.reload import diff
from organism.config.settings import ShippedTool
from organism.config.tools import Tools
from tests.config.place import GREETER, HEAD, Place


@dataclass
class Adder:
    """Adds two numbers.

    Both are whole.
    """

    a: int
    b: int


@dataclass
class Sum:
    value: int


@dataclass
class Fetcher:
    """Fetches."""

    url: str


@dataclass
class Page:
    text: str


ADDER = ShippedTool(name="adder", scope="tools:execute", payload_class=Adder, replies=(Sum,), timeout_s=3, release="1")
FETCHER = ShippedTool(
    name="fetcher", scope="tools:execute", payload_class=Fetcher, replies=(Page,), brings_outside_text=True
)
SHOUTER = GREETER.replace("greeter", "shouter")


def ship(tools: Tools, _named: Collection[str]) -> Sequence[ShippedTool]:
    is_off = "" if tools.http_fetch else "list hosts under tools.http_fetch.hosts"
    return (ADDER, replace(FETCHER, is_off=is_off, settings=tools.http_fetch))


@pytest.fixture
def shop(place: Place) -> Place:
    """A place with an adder, and a fetcher that is off until hosts are listed."""
    place.ship = ship
    return place


def names(place: Place) -> tuple[list[str], list[str]]:
    settings = place.load()
    return [each.name for each in settings.listeners], [each.name for each in settings.unlisted]


def test_a_shipped_tool_that_nobody_names_is_unlisted(shop: Place) -> None:
    assert names(shop) == (["greeter"], ["adder"])
    assert shop.load().listener("adder") is None


@pytest.mark.parametrize("key", ["tools", "peers"])
def test_a_shipped_tool_that_a_listener_names_is_a_listener_behind_those_of_the_file(shop: Place, key: str) -> None:
    shop.yaml(f"{HEAD}{GREETER}    {key}: [adder]\n{SHOUTER}")
    assert names(shop) == (["greeter", "shouter", "adder"], [])


def test_it_is_known_by_its_payload_and_the_docstring_of_that(shop: Place) -> None:
    shop.yaml(f"{HEAD}{GREETER}    tools: [adder]\n")
    adder = shop.listener("adder")
    assert adder.description == "Adds two numbers.\n\nBoth are whole."
    assert (adder.payload_class, adder.replies, adder.accepts) == (Adder, (Sum,), frozenset({Adder}))
    assert adder.payload_class_path == f"{__name__}.Adder"
    assert (adder.is_shipped, adder.is_agent, adder.brings_outside_text, adder.peers) == (True, False, False, ())
    assert (adder.timeout_s, adder.max_concurrent, adder.max_payload_bytes) == (3, 5, 262144)


def test_a_section_of_its_name_without_code_sets_its_terms(shop: Place) -> None:
    terms = (
        "  - {name: adder, description: Sums, approval: true, timeout_s: 9, max_concurrent: 1, max_payload_bytes: 99}"
    )
    shop.yaml(f"{HEAD}{terms}\n{GREETER}")
    assert names(shop) == (["adder", "greeter"], [])
    adder = shop.listener("adder")
    assert (adder.description, adder.approval, adder.timeout_s, adder.max_concurrent) == ("Sums", True, 9, 1)
    assert (adder.max_payload_bytes, adder.payload_class, adder.is_shipped) == (99, Adder, True)
    assert adder.section["approval"]


def test_its_terms_have_keys_of_their_own(shop: Place) -> None:
    faults = shop.faults(f"{HEAD}  - {{name: adder, peers: [greeter], approval: perhaps}}\n{GREETER}")
    assert faults["3:listeners[0].peers"].startswith("unknown key `peers`; known here: approval, confirm, description")
    assert faults["3:listeners[0].approval"] == 'expected true or false, came "perhaps" (text)'


def test_a_listener_of_its_name_with_code_takes_its_place(shop: Place) -> None:
    shop.yaml(f"{HEAD}{GREETER.replace('greeter', 'adder')}{GREETER}    tools: [adder]\n")
    assert names(shop) == (["adder", "greeter"], [])
    assert shop.listener("adder").payload_class.__name__ == "Greeting"


def test_a_tool_that_nobody_names_gives_way_to_an_own_class_of_its_class_s_name(shop: Place) -> None:
    shop.write("handlers/hello.py", f"{(shop.folder / 'handlers/hello.py').read_text()}\nGreeting.__name__ = 'Sum'\n")
    assert names(shop) == (["greeter"], [])


def test_a_tool_that_is_not_there_is_reported_with_the_one_that_may_be_meant(shop: Place) -> None:
    faults = shop.faults(f"{HEAD}{GREETER}    tools: [addder, console, '*', greeter]\n")
    assert faults == {
        "7:listeners[0].tools[0]": "there is no tool `addder`; did you mean `adder`?",
        "7:listeners[0].tools[1]": "there is no tool `console`",
        "7:listeners[0].tools[2]": 'expected a name: a letter, then letters, digits, `_`, `.` or `-`; came "*" (text)',
    }


@pytest.mark.parametrize("key", ["tools", "peers"])
def test_a_tool_that_is_off_cannot_be_named_and_it_is_said_what_turns_it_on(shop: Place, key: str) -> None:
    faults = shop.faults(f"{HEAD}{GREETER}    {key}: [fetcher]\n  - name: fetcher\n")
    why = "`fetcher` is off: list hosts under tools.http_fetch.hosts"
    assert faults == {f"7:listeners[0].{key}[0]": why, "8:listeners[1].name": why}
    shop.yaml(HEAD + GREETER)
    assert shop.load().off == {"fetcher": "list hosts under tools.http_fetch.hosts"}


def test_what_turns_it_on_is_its_section_of_tools(shop: Place) -> None:
    shop.yaml(f"tools: {{http_fetch: {{hosts: [a.example]}}}}\n{HEAD}{GREETER}    tools: [fetcher]\n")
    assert names(shop) == (["greeter", "fetcher"], ["adder"])
    assert shop.load().off == {}
    assert shop.listener("fetcher").brings_outside_text


def test_a_reload_that_names_it_adds_it_and_other_settings_or_another_release_update_it(shop: Place) -> None:
    first = shop.load()
    head = "tools: {http_fetch: {hosts: [a.example]}}\n" + HEAD
    shop.yaml(f"{head}{GREETER}    tools: [fetcher, adder]\n")
    second = shop.load()
    assert diff(first, second).added == ("adder", "fetcher")
    shop.yaml(f"{head.replace('a.example', 'b.example')}{GREETER}    tools: [fetcher, adder]\n")
    third = shop.load()
    assert diff(second, third).updated == ("fetcher",)
    shop.ship = lambda *given: [replace(tool, release="2") for tool in ship(*given)]
    assert diff(third, shop.load()).updated == ("adder", "fetcher")
