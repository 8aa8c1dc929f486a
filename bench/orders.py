"""A chain of general payloads: an int, a nested record, a list of records and a Decimal in each of its messages.

The listeners have the names of the hello organism's, so that one load drives both.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from organism import HandlerMetadata, HandlerResponse


@dataclass
class Customer:
    """Who orders."""

    name: str
    number: int


@dataclass
class Line:
    """So many of an article."""

    article: str
    count: int
    price: Decimal


@dataclass
class Order:
    """An order as it comes in."""

    number: int
    customer: Customer
    lines: list[Line]


@dataclass
class PricedOrder:
    """An order with its sum."""

    number: int
    customer: Customer
    lines: list[Line]
    total: Decimal


@dataclass
class Invoice:
    """What is to be paid."""

    number: int
    customer: Customer
    lines: list[Line]
    total: Decimal


async def price(payload: Order, metadata: HandlerMetadata) -> HandlerResponse:
    """Sum up an order."""
    total = sum((line.count * line.price for line in payload.lines), Decimal(0))
    return HandlerResponse(PricedOrder(payload.number, payload.customer, payload.lines, total), to="shouter")


async def bill(payload: PricedOrder, metadata: HandlerMetadata) -> HandlerResponse:
    """Make an invoice of a priced order."""
    invoice = Invoice(payload.number, payload.customer, payload.lines, payload.total)
    return HandlerResponse(invoice, to="response-handler")


async def hand_over(payload: Invoice, metadata: HandlerMetadata) -> HandlerResponse:
    """Hand the invoice to the outside."""
    return HandlerResponse(payload, to="console")
