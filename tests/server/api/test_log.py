"""The log by HTTP: several types at once, and the newest first."""

from __future__ import annotations

from typing import Any

import pytest

from organism.events.vocabulary import EVENTS
from tests.server.contract import refusal_of
from tests.server.served import Served


async def test_several_types_are_named_with_commas(hello: Served) -> None:
    await hello.inject()
    of_all = (await hello.get("/log"))["events"]
    wanted = {"thread_created", "message_handled"}
    found = (await hello.get(f"/log?type={','.join(wanted)}"))["events"]
    assert found == [event for event in of_all if event["type"] in wanted]
    assert {event["type"] for event in found} == wanted


@pytest.mark.parametrize("filters", ["", "&type=message_sent,thread_completed", "&after=4", "&thread={thread}"])
async def test_the_newest_first_is_the_same_backwards_page_by_page(hello: Served, filters: str) -> None:
    sent = await hello.inject()
    await hello.inject()
    filters = filters.format(thread=sent["thread_id"])
    oldest_first = (await hello.get(f"/log?limit=500{filters}"))["events"]
    seen, until = list[dict[str, Any]](), ""
    while True:
        page = await hello.get(f"/log?order=desc&limit=3{filters}{until}")
        seen += page["events"]
        if page["next"] is None:
            break
        until = f"&until={page['next']}"
    assert seen == oldest_first[::-1]


@pytest.mark.parametrize(
    ("query", "param"),
    [
        ("type=message_sent,odd", "query.type"),
        ("type=,", "query.type"),
        (f"type={','.join(list(EVENTS)[:21])}", "query.type"),
        ("order=newest", "query.order"),
    ],
)
async def test_a_page_of_the_log_that_cannot_be_made_is_refused(hello: Served, query: str, param: str) -> None:
    answer = await hello.call("GET", f"/log?{query}")
    refused = refusal_of(answer)
    assert (answer.status_code, refused["code"], refused["param"]) == (400, "invalid_field", param)


async def test_twenty_types_are_taken(hello: Served) -> None:
    assert (await hello.get(f"/log?type={','.join(list(EVENTS)[:20])}"))["events"]
