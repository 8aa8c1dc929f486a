"""Budgets: what is not given is no bound, and nothing is a bound too."""

from __future__ import annotations

from decimal import Decimal

import pytest

from organism.config.settings import Budget, Spend
from tests.config.place import GREETER, HEAD, Place


def budget(place: Place, text: str) -> Budget:
    place.yaml(HEAD + GREETER + f"    budget: {text}\n")
    return place.listener().budget


def test_what_is_not_given_is_no_bound(place: Place) -> None:
    assert budget(place, "{}") == Budget()
    assert budget(place, "{run: {}}").run == Spend(tokens=None, usd=None, calls=None, seconds=None)
    assert budget(place, "{day: {calls: 3}}") == Budget(day=Spend(calls=3))


def test_nothing_is_a_bound_too(place: Place) -> None:
    bound = budget(place, "{run: {tokens: 0, usd: 0, calls: 0, seconds: 0}}").run
    assert bound == Spend(tokens=0, usd=Decimal(0), calls=0, seconds=0)


def test_money_is_exactly_what_was_written(place: Place) -> None:
    assert budget(place, "{day: {usd: 0.1}}").day.usd == Decimal("0.1")


@pytest.mark.parametrize(
    ("text", "key", "message"),
    [
        ("{week: {}}", "week", "unknown key `week`; known here: day, run"),
        ("{run: {token: 1}}", "run.token", "unknown key `token`; did you mean `tokens`?"),
        ("{run: {tokens: -1}}", "run.tokens", "expected at least 0, came -1 (a number)"),
        ("{run: {tokens: 1.5}}", "run.tokens", "expected a whole number, came 1.5 (a number)"),
        ("{run: {usd: -0.5}}", "run.usd", "expected at least 0, came -0.5 (a number)"),
        ("{run: {usd: 1e30}}", "run.usd", "expected at most 1000000000, came 1e+30 (a number)"),
        ("{day: {seconds: ~}}", "day.seconds", "expected a number, came nothing"),
        ("{day: 5}", "day", "expected a mapping, came 5 (a number)"),
    ],
)
def test_a_wrong_bound_is_refused(place: Place, text: str, key: str, message: str) -> None:
    assert place.faults(HEAD + GREETER + f"    budget: {text}\n") == {f"7:listeners[0].budget.{key}": message}
