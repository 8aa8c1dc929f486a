"""The activity: what is counted in each bucket, and what stands out."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from organism.events import vocabulary as events
from organism.model.times import iso
from tests.server.long_past import tell
from tests.server.served import Served, served
from tests.server.tenanted import bearer, hello_with

ALL = 1 << 20
COUNTED = ("messages", "failures", "approvals", "uncertain")


def kind_of(event: events.Event) -> str | None:
    match event:
        case events.MessageSent():
            return "messages"
        case events.MessageDead() | events.MessageRefused():
            return "failures"
        case events.ApprovalRequested():
            return "approvals"
        case events.StepStarted(unknown=True):
            return "uncertain"
    return None


def receiver(event: Any) -> str:
    """Whose it is: who got a message, else who failed or asks."""
    match event:
        case events.MessageSent():
            return str(event.to)
        case events.MessageRefused():
            return str(event.sender)
    return str(event.agent)


@pytest.mark.parametrize(
    "query",
    [
        "", "buckets=1", "buckets=3", "buckets=500", "by=time", "by=time&buckets=3", "by=time&buckets=500",
        "agent=greeter", "agent=shouter&by=time&buckets=60", "thread=thr-1", "thread=thr-2&by=time&buckets=7",
        "after=1023&until=1025", "after=1024&until=2048", "after=700&until=3700&buckets=2", "after=3900&buckets=9",
        "after=5&until=5", "after=6&until=7", "after=1024&until=1100&by=time&agent=library",
        "buckets=2&by=time&after=30",
    ],
)  # fmt: skip
async def test_its_sums_are_those_of_the_events(shared_past: Served, query: str) -> None:
    found = await shared_past.get(f"/organism/activity?{query}")
    wanted = dict(part.split("=") for part in query.split("&") if part)
    records = {record.position: record for record in await shared_past.log.read(limit=ALL)}
    expected = Counter[tuple[int, str]]()
    for position in range(found["after"] + 1, found["until"] + 1):
        record = records[position]
        kind = kind_of(record.event)
        if kind and wanted.get("thread", record.thread) == record.thread:
            expected[position, kind] += wanted.get("agent") in {None, receiver(record.event)}
    counted = Counter[str]()
    for bucket in found["buckets"]:
        inside = range(bucket["first"], bucket["last"] + 1)
        for kind in COUNTED:
            assert bucket[kind] == sum(expected[position, kind] for position in inside), bucket
            counted[kind] += bucket[kind]
        assert (bucket["from"], bucket["until"]) == (iso(records[inside[0]].at), iso(records[inside[-1]].at))
        assert len(inside) <= 1024 or inside[0] == found["after"] + 1 or inside[0] % 1024 == 1
        assert any(bucket[kind] for kind in COUNTED)
    assert counted == Counter(kind for _, kind in expected.elements())
    assert all(one["last"] < other["first"] for one, other in pairwise(found["buckets"]))
    assert len(found["buckets"]) <= int(wanted.get("buckets", 200))
    assert (found["after"], found["until"]) == (
        int(wanted.get("after", 0)),
        int(wanted.get("until", shared_past.log.head)),
    )


async def test_a_stretch_may_be_named_by_times_which_its_buckets_divide(shared_past: Served) -> None:
    records = await shared_past.log.read(limit=ALL)
    begin, end = records[500].at, records[3500].at
    path = f"/organism/activity?by=time&buckets=10&after={iso(begin)}&until={iso(end)}"
    found = await shared_past.get(path)
    assert found["after"] == max(record.position for record in records if record.at <= begin)
    assert found["until"] == max(record.position for record in records if record.at <= end)
    edges = [iso(begin + (end - begin) * number // 10) for number in range(11)]
    short = [bucket for bucket in found["buckets"] if bucket["last"] - bucket["first"] < 1024]
    assert short
    assert all(
        any(low < bucket["from"] <= bucket["until"] <= high for low, high in pairwise(edges)) for bucket in short
    )


async def test_what_stands_out_is_marked(hello: Served) -> None:
    await tell(hello.log, 600)
    await hello.call("POST", "/agents/greeter/pause")
    await hello.call("POST", "/organism/pause")
    await hello.call("POST", "/organism/resume")
    found = await hello.get("/organism/activity")
    kinds = Counter(mark["kind"] for mark in found["marks"])
    assert found["marks_total"] == len(found["marks"])
    assert kinds["failure"] == sum(bucket["failures"] for bucket in found["buckets"]) > 0
    assert kinds["question"] == sum(bucket["approvals"] for bucket in found["buckets"]) > 0
    assert kinds["uncertain"] == sum(bucket["uncertain"] for bucket in found["buckets"]) > 0
    assert found["marks"][0] == {"position": 1, "at": found["marks"][0]["at"], "kind": "start", "count": 1}
    assert [(mark["kind"], mark.get("agent")) for mark in found["marks"][-3:]] == [
        ("pause", "greeter"), ("pause", None), ("resume", None),
    ]  # fmt: skip
    of_agent = await hello.get("/organism/activity?agent=greeter")
    assert of_agent["marks"] == [mark for mark in found["marks"] if mark.get("agent") == "greeter"]


async def test_of_more_than_500_marks_each_bucket_has_one_of_a_kind(shared_past: Served) -> None:
    found = await shared_past.get("/organism/activity?buckets=4")
    assert found["marks_total"] > 500 > len(found["marks"])
    assert sum(mark["count"] for mark in found["marks"]) == found["marks_total"]
    for bucket in found["buckets"]:
        inside = [mark for mark in found["marks"] if bucket["first"] <= mark["position"] <= bucket["last"]]
        assert len({mark["kind"] for mark in inside}) == len(inside)
        assert bucket["failures"] == sum(mark["count"] for mark in inside if mark["kind"] == "failure")


@pytest.mark.parametrize(
    ("query", "status", "code", "param"),
    [
        ("at=1", 400, "unknown_field", "query.at"),
        ("buckets=0", 400, "invalid_field", "query.buckets"),
        ("buckets=501", 400, "invalid_field", "query.buckets"),
        ("by=agent", 400, "invalid_field", "query.by"),
        ("after=-1", 400, "invalid_field", "query.after"),
        ("until=soon", 400, "invalid_field", "query.until"),
        ("until=1000000", 400, "bad_position", "query.until"),
        ("after=1000000", 400, "bad_position", "query.after"),
        ("after=1&until=0", 400, "invalid_field", "query.after"),
        ("agent=greeter&thread=thr-1", 400, "invalid_field", "query.agent"),
        ("thread=thr-none", 404, "not_found", None),
        ("agent=nobody", 404, "not_found", None),
    ],
)
async def test_what_it_does_not_take(shared: Served, query: str, status: int, code: str, param: str | None) -> None:
    answer = await shared.call("GET", f"/organism/activity?{query}")
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (status, code, param)


async def test_while_nothing_happens_the_answer_is_known(hello: Served) -> None:
    first = await hello.call("GET", "/organism/activity")
    again = await hello.call("GET", "/organism/activity", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304


async def test_a_narrowed_token_sees_the_activity_of_its_object_alone(tmp_path: Path) -> None:
    tokens = {"default": {"all": ["read"], "one": ["read:agent:greeter"]}, "other": {"all": ["read"]}}
    async with served(hello_with(tmp_path, tokens)) as server:
        thread = (await server.inject())["thread_id"]

        async def status(tenant: str, name: str, query: str = "") -> int:
            answer = await server.call("GET", f"/organism/activity{query}", headers=bearer(tenant, name))
            return answer.status_code

        assert await status("default", "all") == await status("default", "one", "?agent=greeter") == 200
        assert await status("default", "one") == await status("default", "one", "?agent=shouter") == 403
        assert await status("default", "one", f"?thread={thread}") == 403
        assert await status("default", "all", f"?thread={thread}") == 200
        assert await status("other", "all", f"?thread={thread}") == 404
