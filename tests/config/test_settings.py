from __future__ import annotations

import dataclasses

import pytest

from organism.config.settings import Changes, diff
from organism.model.ids import AgentName
from tests.config.place import GREETER, HEAD, HELLO, Place

SHOUTER = GREETER.replace("greeter", "shouter")


def test_a_listener_is_found_by_its_name_alone(place: Place) -> None:
    loaded = place.load()
    assert loaded.listener("greeter") is loaded.listeners[0]
    assert loaded.listener("Greeter") is None


def test_settings_cannot_be_changed(place: Place) -> None:
    loaded = place.load()
    for record, field in ((loaded, "name"), (loaded.limits, "max_depth"), (loaded.listeners[0], "name")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, field, "other")


def test_loading_the_same_again_changes_nothing(place: Place) -> None:
    old, new = place.load(), place.load()
    assert diff(old, new) == Changes()
    assert old.digest == new.digest


def test_a_diff_names_what_was_added_removed_and_updated(place: Place) -> None:
    place.yaml(HEAD + GREETER + SHOUTER)
    old = place.load()
    place.yaml(HEAD + SHOUTER.replace("Greets", "Shouts") + GREETER.replace("greeter", "third"))
    assert diff(old, place.load()) == Changes(
        added=(AgentName("third"),), removed=(AgentName("greeter"),), updated=(AgentName("shouter"),)
    )


def test_the_order_of_keys_and_comments_are_no_change_of_a_listener(place: Place) -> None:
    old = place.load()
    first, *rest = GREETER.splitlines()
    place.yaml("\n".join([HEAD, "  # greets", first, *reversed(rest)]))
    new = place.load()
    assert diff(old, new) == Changes()
    assert old.digest != new.digest


def test_changed_limits_update_no_listener(place: Place) -> None:
    old = place.load()
    place.yaml("limits: {max_depth: 3}\n" + HEAD + GREETER)
    assert diff(old, place.load()) == Changes()


def test_changed_code_updates_the_listeners_that_run_it(place: Place) -> None:
    place.write("handlers/other.py", HELLO)
    place.yaml(HEAD + GREETER + SHOUTER.replace("handlers.hello", "handlers.other"))
    old = place.load()
    place.write("handlers/other.py", HELLO + "\n# changed\n")
    assert diff(old, place.load()) == Changes(updated=(AgentName("shouter"),))


def test_a_changed_module_of_the_payload_class_alone_updates_its_listener(place: Place) -> None:
    place.write(
        "handlers/other.py", "from handlers.hello import Greeting\n\n\nasync def greet(payload: Greeting, m): ...\n"
    )
    place.yaml(HEAD + GREETER.replace("handlers.hello.greet", "handlers.other.greet"))
    old = place.load()
    place.write("handlers/hello.py", HELLO.replace("text: str", "text: int"))
    assert diff(old, place.load()) == Changes(updated=(AgentName("greeter"),))


def test_a_changed_package_updates_the_listeners_whose_modules_lie_in_it(place: Place) -> None:
    old = place.load()
    place.write("handlers/__init__.py", "x = 1\n")
    assert diff(old, place.load()) == Changes(updated=(AgentName("greeter"),))
