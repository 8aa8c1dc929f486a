"""Which form of an answer an Accept header asks for."""

from __future__ import annotations

import pytest

from organism.errors import NotAcceptable
from organism.server.headers import chosen

OFFERS = ("application/xml", "application/schema+json")


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", OFFERS[0]),
        ("*/*", OFFERS[0]),
        ("application/*", OFFERS[0]),
        ("application/schema+json", OFFERS[1]),
        ("Application/Schema+JSON; charset=utf-8", OFFERS[1]),
        ("text/html, application/xml;q=0.9, */*;q=0.8", OFFERS[0]),
        ("application/xml;q=0.5, application/schema+json", OFFERS[1]),
        ("application/xml;q=0, */*", OFFERS[1]),
    ],
)
def test_what_is_wanted_most_is_chosen(accept: str, expected: str) -> None:
    assert chosen(accept, OFFERS) == expected


@pytest.mark.parametrize("accept", ["text/html", "application/xml;q=0", "*/*;q=much", ",", "application/xml;q=nan"])
def test_what_nobody_offers_is_refused(accept: str) -> None:
    with pytest.raises(NotAcceptable) as refused:
        chosen(accept, OFFERS)
    assert refused.value.param == "headers.accept"
