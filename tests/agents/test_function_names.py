"""Function names of listeners: what models take, and back to one listener."""

from __future__ import annotations

import re
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from organism.agents.function_names import function_names

LISTENER = st.from_regex(r"[A-Za-z][A-Za-z0-9_.\-]{0,127}", fullmatch=True)


def test_a_name_that_models_take_stays_as_it_is() -> None:
    assert function_names(["calculator", "a-b_C9"]) == {"calculator": "calculator", "a-b_C9": "a-b_C9"}


def test_the_dots_of_a_name_are_replaced() -> None:
    assert function_names(["shop.order.send"]) == {"shop.order.send": "shop_order_send"}


def test_a_name_that_fits_keeps_itself_whatever_another_would_become() -> None:
    for order in permutations(["a.b", "a_b", "a-b"]):
        names = function_names(order)
        assert names["a_b"] == "a_b"
        assert re.fullmatch(r"a_b-[0-9a-f]{8}", names["a.b"])


@given(st.sets(LISTENER, max_size=8))
def test_every_name_is_one_that_models_take_and_means_one_listener(listeners: set[str]) -> None:
    names = function_names(listeners)
    assert set(names) == listeners
    assert len(set(names.values())) == len(listeners)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name) for name in names.values())


@given(st.sets(LISTENER, max_size=8))
def test_the_order_of_the_listeners_changes_nothing(listeners: set[str]) -> None:
    assert function_names(sorted(listeners)) == function_names(sorted(listeners, reverse=True))
