"""Packages above a prefix, and what lies beside it: shared with whoever has them, and never made anew."""

from __future__ import annotations

import asyncio
import importlib
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from organism.config.modules import Importer
from organism.config.settings import Settings
from tests.config.place import GREETER, HEAD, Place

SAYING = """
import inner.deep.actors.words as by_path
from dataclasses import dataclass

from inner.beside import WORD as BESIDE
from inner.deep import actors
from inner.deep.actors import words


@dataclass
class Greeting:
    name: str


async def greet(payload: Greeting, metadata: object) -> str:
    import inner.deep.actors.words
    import inner.deep.actors.words as late
    from inner.deep import actors as late_actors

    told = {by_path.WORD, actors.words.WORD, words.WORD}
    told |= {inner.deep.actors.words.WORD, late.WORD, late_actors.words.WORD}
    (word,) = told
    return f"{BESIDE} {word}, {payload.name}"
"""
YAML = HEAD.replace("[handlers]", "[inner.deep.actors]") + GREETER.replace("handlers.hello", "inner.deep.actors.hello")
ABOVE = ("inner", "inner.deep", "inner.beside")


def speak(place: Place, word: str, beside: str = "Beside:") -> Settings:
    """Write handlers two packages deep, and load them."""
    for package in ("inner", "inner/deep", "inner/deep/actors"):
        place.write(f"{package}/__init__.py", "")
    place.write("inner/beside.py", f"WORD = {beside!r}\n\n\nclass Kind:\n    pass\n")
    place.write("inner/deep/actors/words.py", f"WORD = {word!r}\n")
    place.write("inner/deep/actors/hello.py", SAYING)
    place.yaml(YAML)
    return place.load()


def say(settings: Settings) -> str:
    listener = settings.listener("greeter")
    assert listener is not None
    assert listener.handler is not None
    answer: str = asyncio.run(listener.handler(listener.payload_class(name="Ada"), None))
    return answer


def shown(*names: str) -> list[ModuleType]:
    return [sys.modules[name] for name in names]


@pytest.fixture
def installed(place: Place) -> Iterator[list[ModuleType]]:
    """The packages as somebody else has imported them, by Python's own means."""
    place.importer.close()
    speak(place, "one")
    place.importer.close()
    place.importer = Importer()
    sys.path.insert(0, str(place.folder))
    try:
        for name in (*ABOVE, "inner.deep.actors.words"):
            importlib.import_module(name)
        yield shown(*ABOVE)
    finally:
        sys.path.remove(str(place.folder))
        for name in [name for name in sys.modules if name.partition(".")[0] == "inner"]:
            del sys.modules[name]


def test_only_what_lies_below_the_prefix_is_made_anew(place: Place, installed: list[ModuleType]) -> None:
    kind, words = installed[2].Kind, sys.modules["inner.deep.actors.words"]
    assert say(speak(place, "two")) == "Beside: two, Ada"
    assert shown(*ABOVE) == installed
    assert sys.modules[kind.__module__].Kind is kind
    assert sys.modules["inner.deep.actors.words"] is not words
    assert installed[1].actors is sys.modules["inner.deep.actors"]


def test_a_reload_makes_no_package_above_the_prefix_anew(place: Place) -> None:
    old = speak(place, "one")
    before = shown(*ABOVE)
    new = speak(place, "two", beside="Elsewhere:")
    assert shown(*ABOVE) == before
    assert [say(old), say(new)] == ["Beside: one, Ada", "Beside: two, Ada"]


def test_code_that_is_not_made_anew_changes_no_version(place: Place) -> None:
    old = speak(place, "one").listener("greeter")
    new = speak(place, "one", beside="Elsewhere:").listener("greeter")
    assert old is not None
    assert new is not None
    assert new.version == old.version


def test_what_is_imported_beside_the_prefix_later_stays(place: Place, installed: list[ModuleType]) -> None:
    speak(place, "two")
    place.write("inner/later.py", "")
    importlib.invalidate_caches()
    later = importlib.import_module("inner.later")
    speak(place, "three")
    assert sys.modules["inner.later"] is later
    assert shown(*ABOVE) == installed


def test_a_load_that_fails_gives_the_packages_back_what_they_had(place: Place, installed: list[ModuleType]) -> None:
    actors = sys.modules["inner.deep.actors"]
    place.write("inner/deep/actors/hello.py", "import nowhere")
    assert "nowhere" in str(place.faults())
    assert shown(*ABOVE, "inner.deep.actors") == [*installed, actors]
    assert installed[1].actors is actors


def test_a_set_that_is_taken_back_is_found_in_its_package_again(place: Place) -> None:
    old = speak(place, "one")
    speak(place, "two")
    place.importer.take_back(old.modules)
    assert sys.modules["inner.deep"].actors.words.WORD == "one"
    assert sys.modules["inner.deep.actors.words"].WORD == "one"


def test_closing_leaves_what_others_had_imported(place: Place, installed: list[ModuleType]) -> None:
    speak(place, "two")
    place.importer.close()
    assert shown(*ABOVE) == installed
    assert "inner.deep.actors" not in sys.modules


def test_packages_of_another_place_never_mix(place: Place, other: Place) -> None:
    mine, theirs = speak(place, "mine", "Here:"), speak(other, "theirs", "There:")
    again = speak(place, "again", "Here:")
    assert [say(each) for each in (mine, theirs, again)] == [
        "Here: mine, Ada",
        "There: theirs, Ada",
        "Here: again, Ada",
    ]


LOOKING = """
from inner import deep

seen = deep.LIST


async def greet(payload: Greeting, metadata: object) -> str:
    from inner import deep

    deep.LIST.append(payload.name)
    deep.count = len(deep.LIST)
    return f"{deep.anything} {deep.actors.words.WORD}"
"""


def test_a_package_above_a_prefix_shows_all_that_it_has(place: Place) -> None:
    speak(place, "one")
    place.importer.close()
    place.importer = Importer()
    place.write("inner/deep/__init__.py", "LIST = []\n\n\ndef __getattr__(name):\n    return name.upper()\n")
    place.write("inner/deep/actors/hello.py", SAYING.partition("async def")[0] + LOOKING)
    settings = place.load()
    assert [say(settings), say(settings)] == ["ANYTHING one"] * 2
    assert sys.modules["inner.deep"].count == len(sys.modules["inner.deep.actors.hello"].seen) == 2
