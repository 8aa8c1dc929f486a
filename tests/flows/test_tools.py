"""Shipped tools in a running organism: they are listeners like any other, and every call is a message."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from organism.errors import InvalidPayload, MailboxFull, NotFound
from organism.events.vocabulary import MessageSent, MessageStarted, StepRecorded, ValueSet
from organism.model.commands import PauseAgent, PauseOrganism, ResumeOrganism
from organism.testing import Running, running
from organism.tools import key_value
from organism.views.views import Query
from tests.flows.world import MakeWorld

HELLO = Path(__file__).parents[2] / "organism.yaml"
ASKING = """
@dataclass
class Sum:
    expression: str

async def clerk(payload: Ask, metadata: HandlerMetadata) -> HandlerResponse:
    from organism.tools.calculator import Calculator
    try:
        answer = await metadata.ask("calculator", Calculator(payload.text))
    except AskError as error:
        return HandlerResponse.respond(Told(error.code))
    return HandlerResponse.respond(Told(getattr(answer, "value", None) or answer.message))

async def stranger(payload: Ask, metadata: HandlerMetadata) -> HandlerResponse:
    return await clerk(payload, metadata)
"""
LISTENERS = {"clerk": {"tools": ["calculator"]}, "stranger": {}}


async def names(o: Running) -> list[str]:
    page = await o.views.rows("agents", Query(order_by="ordinal"))
    return [row["name"] for row in orjson.loads(page.rows)]


async def test_a_tool_that_nobody_names_takes_messages_and_stands_in_no_list(world: MakeWorld) -> None:
    async with world(ASKING, {"stranger": {}}).running(on_disk=False) as o:
        done = await o.inject("calculator", {"expression": "2 * 21"}, wait=True)
        assert done.replies == ({"value": "42", "exact": True, "fraction": ""},)
        assert done.thread is not None
        assert (done.thread["status"], done.thread["participants"]) == ("completed", ["console", "calculator"])
        assert await names(o) == ["stranger"]
        organism = orjson.loads(await o.views.row("organism", "organism") or b"")
        assert organism["agent_count"] == 1
        with pytest.raises(NotFound):
            await o.do(PauseAgent(agent="calculator"))


async def test_who_names_a_tool_may_ask_it_and_the_call_is_in_the_log(world: MakeWorld) -> None:
    async with world(ASKING, LISTENERS).running(on_disk=False) as o:
        done = await o.inject("clerk", {"text": "1/4 + 1/4"}, wait=True)
        assert done.replies == ({"text": "0.5"},)
        sent = [record.event for record in await o.records(MessageSent, thread=done.thread_id)]
        assert [(each.sender, each.to, each.type) for each in sent] == [
            ("console", "clerk", "Ask"),
            ("clerk", "calculator", "Calculator"),
            ("calculator", "clerk", "Calculated"),
            ("clerk", "console", "Told"),
        ]
        assert await names(o) == ["clerk", "stranger", "calculator"]


async def test_who_does_not_name_it_may_not(world: MakeWorld) -> None:
    async with world(ASKING, LISTENERS).running(on_disk=False) as o:
        assert (await o.inject("stranger", {"text": "1"}, wait=True)).replies == ({"text": "routing"},)


async def test_what_a_tool_cannot_do_is_its_answer_and_no_failure(world: MakeWorld) -> None:
    async with world(ASKING, LISTENERS).running(on_disk=False) as o:
        done = await o.inject("clerk", {"text": "1/0"}, wait=True)
        assert done.replies == ({"text": "nothing can be divided by zero."},)
        assert done.thread is not None
        assert done.thread["status"] == "completed"


async def test_a_named_tool_can_be_paused_and_its_queue_is_bounded(world: MakeWorld) -> None:
    play = world(ASKING, LISTENERS, limits={"max_queue_per_agent": 1})
    async with play.running(on_disk=False) as o:
        await o.do(PauseAgent(agent="calculator"))
        await o.inject("calculator", {"expression": "1"})
        with pytest.raises(MailboxFull):
            await o.inject("calculator", {"expression": "1"})
        assert await o.records(MessageStarted) == []


async def test_a_tool_that_a_reload_names_first_is_added_and_what_waited_for_it_before_is_not_counted(
    world: MakeWorld,
) -> None:
    play = world(ASKING, {"stranger": {}})
    async with play.running(on_disk=False) as o:
        await o.do(PauseOrganism())
        waiting = await o.inject("calculator", {"expression": "1"})
        play.write(ASKING, LISTENERS)
        changes = await o.organism.reload()
        assert list(changes.added) == ["clerk", "calculator"]
        assert await queue(o) == 0
        another = await o.inject("calculator", {"expression": "2"})
        assert await queue(o) == 1
        await o.do(ResumeOrganism())
        assert await o.tenant.ended(waiting.thread_id, 10)
        assert await o.tenant.ended(another.thread_id, 10)
        assert await queue(o) == 0


async def queue(o: Running) -> int:
    """How many messages the agents' list says that the calculator has waiting."""
    depth: int = orjson.loads(await o.views.row("agents", "calculator") or b"")["queue_depth"]
    return depth


async def test_no_value_is_kept_under_a_key_that_holds_a_live_secret() -> None:
    async with running(HELLO) as o:
        o.organism.parts.redactor.add("live-secret-4711")
        refused = await result_of(o, "key_value_set", key="of/live-secret-4711", value="1")
        assert refused == {
            "code": "invalid_field",
            "message": "A token or key of this server stands in the key; take another name.",
        }
        assert await result_of(o, "key_value_list") == {"keys": [], "more": False}


async def test_no_more_keys_are_kept_than_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_value, "MOST_KEYS", 2)
    async with running(HELLO) as o:
        await result_of(o, "key_value_set", key="a", value="1")
        await result_of(o, "key_value_set", key="b", value="1")
        full = {
            "code": "invalid_field",
            "message": "2 keys are in use, which is all that there may be; key_value_delete makes room.",
        }
        assert await result_of(o, "key_value_set", key="c", value="1") == full
        assert await result_of(o, "key_value_set", key="b", value="2") == {"key": "b", "replaced": True}
        await result_of(o, "key_value_delete", key="a")
        assert await result_of(o, "key_value_set", key="c", value="1") == {"key": "c", "replaced": False}


@pytest.mark.parametrize("key", ["", "a b", "ä", "a" * 129, "a\n", "../é"])
async def test_a_key_is_of_few_characters(key: str) -> None:
    async with running(HELLO) as o:
        with pytest.raises(InvalidPayload) as refused:
            await o.inject("key_value_set", {"key": key, "value": ""})
        assert refused.value.param == "/key"


async def test_the_clock_tells_the_same_time_after_a_crash(tmp_path: Path) -> None:
    async with running(HELLO, tmp_path / "data") as o:
        done = await o.inject("current_datetime", {"zone": "Europe/Berlin"}, wait=True)
        (now,) = await o.records(StepRecorded, thread=done.thread_id)
        assert now.event.kind == "now"
        assert now.content is not None
        assert done.replies[0]["unix"] == int(now.content.json) // 1_000_000


async def test_a_value_outlives_its_thread_and_the_process(tmp_path: Path) -> None:
    async with running(HELLO, tmp_path / "data") as o:
        assert await result_of(o, "key_value_get", key="user/name") == {"key": "user/name", "value": None}
        assert await result_of(o, "key_value_set", key="user/name", value="Dan") == {
            "key": "user/name",
            "replaced": False,
        }
        assert await result_of(o, "key_value_set", key="user/name", value="Däñ\n<&>") == {
            "key": "user/name",
            "replaced": True,
        }
        await o.crash()
    async with running(HELLO, tmp_path / "data") as o:
        assert await result_of(o, "key_value_get", key="user/name") == {"key": "user/name", "value": "Däñ\n<&>"}
        assert await result_of(o, "key_value_delete", key="user/name") == {"key": "user/name", "deleted": True}
        assert await result_of(o, "key_value_delete", key="user/name") == {"key": "user/name", "deleted": False}
        assert await result_of(o, "key_value_get", key="user/name") == {"key": "user/name", "value": None}


async def test_a_value_is_set_in_the_unit_in_which_the_tool_answers() -> None:
    async with running(HELLO) as o:
        done = await o.inject("key_value_set", {"key": "a", "value": "b"}, wait=True)
        kinds = [record.type for record in await o.records(thread=done.thread_id)]
        assert kinds[-5:] == [
            "value_set",
            "message_sent",
            "message_handled",
            "message_handled",
            "thread_completed",
        ]
        (fact,) = await o.records(ValueSet)
        assert fact.content is not None
        assert (fact.event.key, fact.content.json, fact.content.owner) == ("a", b'"b"', done.thread_id)


async def test_keys_are_listed_by_prefix_a_page_at_a_time() -> None:
    async with running(HELLO) as o:
        for key in ("b", "a/2", "a/1", "a/3", "A", "a"):
            await result_of(o, "key_value_set", key=key, value="")
        assert await result_of(o, "key_value_list") == {"keys": ["A", "a", "a/1", "a/2", "a/3", "b"], "more": False}
        assert await result_of(o, "key_value_list", prefix="a/") == {"keys": ["a/1", "a/2", "a/3"], "more": False}
        assert await result_of(o, "key_value_list", prefix="a/", limit=2) == {"keys": ["a/1", "a/2"], "more": True}
        assert await result_of(o, "key_value_list", prefix="a/", after="a/2") == {"keys": ["a/3"], "more": False}


async def result_of(o: Running, tool: str, **arguments: object) -> object:
    """What a tool answers."""
    return (await o.inject(tool, arguments, wait=True)).replies[-1]
