"""The hello organism, as it is shipped, in one process with real parts."""

from __future__ import annotations

from pathlib import Path

from organism.testing import running

HELLO = Path(__file__).parents[2] / "organism.yaml"


async def test_one_injection_is_a_thread_of_four_messages(tmp_path: Path) -> None:
    async with running(HELLO, tmp_path) as o:
        outcome = await o.inject("greeter", {"name": "Dan"}, wait=True)
        sent = [event.data for event in await o.events("message_sent", thread=outcome.thread_id)]
    assert [(data["from"], data["to"]) for data in sent] == [
        ("console", "greeter"),
        ("greeter", "shouter"),
        ("shouter", "response-handler"),
        ("response-handler", "console"),
    ]
    assert outcome.thread is not None
    assert outcome.thread["status"] == "completed"
    assert outcome.thread["participants"] == ["console", "greeter", "shouter", "response-handler"]
    assert outcome.thread["message_count"] == 4
    assert outcome.replies[0]["message"] == "HELLO, DAN!"


async def test_the_log_outlives_a_restart_byte_for_byte(tmp_path: Path) -> None:
    async with running(HELLO, tmp_path) as o:
        outcome = await o.inject("greeter", {"name": "Dan"}, wait=True)
        before = await o.log.row("threads", outcome.thread_id)
        head = o.log.head
    async with running(HELLO, tmp_path) as o:
        assert await o.log.row("threads", outcome.thread_id) == before
        assert o.log.head > head
        again = await o.inject("greeter", {"name": "Ann"}, wait=True)
    assert again.replies[0]["message"] == "HELLO, ANN!"


async def test_every_message_is_ended_once(tmp_path: Path) -> None:
    async with running(HELLO, tmp_path) as o:
        for name in ("a", "b", "c"):
            await o.inject("greeter", {"name": name}, wait=True)
        sent = [event.data["message"] for event in await o.events("message_sent")]
        ended = [
            event.data["message"] for event in await o.events("message_handled", "message_dead", "message_dropped")
        ]
    assert len(sent) == 12
    assert sorted(sent) == sorted(ended)
