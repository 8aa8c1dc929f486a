"""The work that servers are asked for by HTTP: three steps one after another, each of which counts a number up.

A small payload with an int, a text and a nested record goes in, and the result comes out. Standard library only: every
peer takes it from here, so that its own file holds what it does about it.
"""

from dataclasses import asdict, dataclass, replace


@dataclass
class Customer:
    """Who orders."""

    name: str
    number: int


@dataclass
class Order:
    """What is ordered, and by whom."""

    number: int
    note: str
    customer: Customer


def step(order: Order) -> Order:
    """What each step does."""
    return replace(order, number=order.number + 1)


ORDER = Order(4711, "Two kettles, please.", Customer("Dan", 42))
ASKED = asdict(ORDER)
ANSWERED = asdict(step(step(step(ORDER))))
