"""An agent's functions: its tools and peers as its model may call them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from organism.agents.functions import Functions, function_names, functions_of
from organism.codec import Codec
from organism.config.settings import Listener
from organism.errors import InvalidPayload
from organism.model.handler import TodoComplete, TodoUntil


@dataclass
class Parcel:
    """What is sent."""

    what: str
    grams: int = 1


@dataclass
class Removal:
    """Remove it for good."""

    id: str
    confirm_token: str = ""


CODEC = Codec.of((Parcel, Removal, TodoUntil, TodoComplete))


def listener(name: str, payload_class: type = Parcel, **more: Any) -> Listener:
    return Listener(
        name=name,
        description=f"Plays {name}",
        payload_class=payload_class,
        payload_class_path="",
        accepts=frozenset({payload_class}),
        max_concurrent=1,
        timeout_s=1,
        max_payload_bytes=1000,
        section={},
        version="",
        **more,
    )


def offered(*others: Listener, **keys: Any) -> Functions:
    agent = listener("agent", **{"tools": tuple(other.name for other in others), **keys})
    return functions_of(agent, {each.name: each for each in (*others, agent)}, CODEC)


def test_tools_come_first_then_peers_each_once() -> None:
    peers = ("mail", "shop", "console", "*", "system.todo", "nobody")
    functions = offered(listener("calc"), listener("shop"), listener("mail"), tools=("shop", "calc"), peers=peers)
    assert [spec.name for spec in functions.specs] == ["shop", "calc", "mail", "todo_until", "todo_complete"]


def test_a_function_has_the_description_and_the_schema_of_its_listener_under_a_name_that_models_take() -> None:
    functions = offered(listener("shop.send"))
    (spec,) = functions.specs
    assert (spec.name, spec.description) == ("shop_send", "Plays shop.send\n\nWhat is sent.")
    assert spec.parameters["required"] == ["what"]
    assert functions.arguments == {"shop.send": ("what", "grams"), "shop_send": ("what", "grams")}


def test_a_function_is_found_by_its_name_and_by_its_listeners() -> None:
    functions = offered(listener("shop.send"), listener("shop_send"))
    found = {name: function.to for name in ("shop.send", "shop_send") if (function := functions.find(name))}
    assert found == {"shop.send": "shop.send", "shop_send": "shop_send"}
    assert functions.find("nobody") is None


def test_arguments_become_the_payload_within_the_receivers_size() -> None:
    function = offered(listener("shop")).find("shop")
    assert function is not None
    assert function.make({"what": "tea"}) == Parcel("tea")
    with pytest.raises(InvalidPayload, match="bytes"):
        function.make({"what": "tea" * 400})
    with pytest.raises(InvalidPayload) as refused:
        function.make({"grams": "x", "colour": 1})
    assert [fault.pointer for fault in refused.value.details] == ["/colour", "/what", "/grams"]


def test_the_reminders_are_functions_of_who_names_them() -> None:
    functions = offered(peers=("system.todo",))
    until, complete = functions.find("todo_until"), functions.find("todo_complete")
    assert until is not None
    assert complete is not None
    assert until.make({"wait_for": "Parcel"}) == TodoUntil("Parcel")
    assert complete.make({"id": "1"}) == TodoComplete("1")
    assert (until.to, complete.to) == ("system.todo", "system.todo")
    assert functions.find("system.todo") is None


def test_a_class_that_two_functions_take_names_neither() -> None:
    functions = offered(listener("shop"), listener("mail"), listener("remove", Removal))
    assert {name: function.to for name, function in functions.taking().items()} == {"Removal": "remove"}


NAME = st.from_regex(r"[A-Za-z][A-Za-z0-9_.\-]{0,127}", fullmatch=True)


def test_a_name_that_fits_keeps_itself_whatever_another_would_become() -> None:
    for order in permutations(["a.b", "a_b", "a-b"]):
        names = function_names(order)
        assert names["a_b"] == "a_b"
        assert re.fullmatch(r"a_b-[0-9a-f]{8}", names["a.b"])


@given(st.sets(NAME, max_size=8))
def test_every_name_is_one_that_models_take_and_means_one_listener(listeners: set[str]) -> None:
    names = function_names(listeners)
    assert set(names) == listeners
    assert len(set(names.values())) == len(listeners)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names.values())
