"""xml-pipeline 0.4.0, in memory, with payloads that have an int, a nested record, a list of records and a decimal.

The chain and all settings are those of ``xml_pipeline_memory``. Its schemas know no ``Decimal``: a float stands for it.
"""

from dataclasses import dataclass

from third_party.xmlable import xmlify
from xml_pipeline.message_bus.message_state import HandlerMetadata, HandlerResponse

from bench.rivals.xml_pipeline_memory import Society, main

ORDER = (
    '<Order xmlns=""><Number>4711</Number><Customer><Name>{name}</Name><Number>42</Number></Customer><Lines>'
    "<Line><Article>Kettle, 1.7 l</Article><Count>2</Count><Price>24.90</Price></Line>"
    "<Line><Article>Tea &lt;Earl Grey&gt;</Article><Count>12</Count><Price>3.05</Price></Line></Lines></Order>"
)


@xmlify
@dataclass
class Customer:
    name: str
    number: int


@xmlify
@dataclass
class Line:
    article: str
    count: int
    price: float


@xmlify
@dataclass
class Order:
    number: int
    customer: Customer
    lines: list[Line]


@xmlify
@dataclass
class PricedOrder:
    number: int
    customer: Customer
    lines: list[Line]
    total: float


@xmlify
@dataclass
class Invoice:
    number: int
    customer: Customer
    lines: list[Line]
    total: float


async def price(payload: Order, metadata: HandlerMetadata) -> HandlerResponse:
    total = sum(line.count * line.price for line in payload.lines)
    return HandlerResponse(PricedOrder(payload.number, payload.customer, payload.lines, total), to="shouter")


async def bill(payload: PricedOrder, metadata: HandlerMetadata) -> HandlerResponse:
    invoice = Invoice(payload.number, payload.customer, payload.lines, payload.total)
    return HandlerResponse(invoice, to="response-handler")


ORDERS = Society((Order, price), (PricedOrder, bill), Invoice, ORDER, lambda invoice: invoice.customer.name)

if __name__ == "__main__":
    main(ORDERS, __doc__)
