"""Todo-until: an agent is nudged at later deliveries once what it waits for has passed in the thread."""

from __future__ import annotations

from organism.events.vocabulary import MessageRefused
from organism.testing import Running
from tests.flows.stage import play
from tests.flows.world import MakeWorld, World

SOURCE = """
@dataclass
class TellSlowly:
    text: str = ""

async def planner(payload: Ask | Told | SystemError, metadata: HandlerMetadata):
    if isinstance(payload, SystemError):
        return None
    TRACE.append(metadata.todo_nudge.partition(" (")[0])
    word, _, rest = payload.text.partition(" ")
    if word == "until":
        kind, _, sender = rest.partition(" ")
        wanted = TodoUntil(wait_for=kind, from_listener=sender, description="look at it")
        IDS.append((await metadata.ask("system.todo", wanted)).id)
    if word == "send":
        return HandlerResponse(Ask(""), to=rest)
    if word == "done":
        return HandlerResponse(TodoComplete(IDS[int(rest)]), to="system.todo")
    if word == "unknown":
        return HandlerResponse(TodoComplete("nothing"), to="system.todo")
    if word == "wrong":
        return HandlerResponse(Ask("x"), to="system.todo")

async def teller(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(Told(""))

async def slow_teller(payload: Ask, metadata: HandlerMetadata):
    return HandlerResponse.respond(TellSlowly(""))

IDS = []
"""
PEERS = {"peers": ["teller", "slow-teller"]}


def planning(world: MakeWorld) -> World:
    """A planner that does what its payload says, and two that answer it."""
    return world(
        SOURCE,
        {"planner": PEERS, "other": {"handler": "planner", **PEERS}, "teller": {}, "slow-teller": {}},
    )


async def nudges(o: Running, *texts: str, agent: str = "planner") -> list[str]:
    """What the planner is nudged with at each delivery, if one thread goes through all of this."""
    thread = None
    for text in texts:
        name, _, own = text.rpartition(": ")
        thread = (await o.inject(name or agent, {"text": own}, thread_id=thread, wait=True)).thread_id
    found: list[str] = play(o)["TRACE"]
    return found


async def test_it_nudges_at_each_later_delivery_until_it_is_complete(world: MakeWorld) -> None:
    async with planning(world).running(on_disk=False) as o:
        seen = await nudges(o, "until Told", "", "send teller", "", "done 0", "")
    assert seen == ["", "", "", "look at it", "look at it", "look at it", ""]


WAITS = [
    ("Told", "send teller", True),
    ("Told teller", "send teller", True),
    ("Told slow-teller", "send teller", False),
    ("told", "send teller", False),
    ("Tol", "send teller", False),
    ("Told", "send slow-teller", False),
    ("TellSlowly", "send slow-teller", True),
    ("Ask console", "", True),
]


async def test_it_waits_for_the_exact_type_from_that_listener_or_from_any(world: MakeWorld) -> None:
    async with planning(world).running(on_disk=False) as o:
        for wanted, sent, is_nudged in WAITS:
            assert bool((await nudges(o, f"until {wanted}", sent, ""))[-1]) is is_nudged, wanted


async def test_a_reminder_is_its_own_agent_s_and_its_own_thread_s(world: MakeWorld) -> None:
    async with planning(world).running(on_disk=False) as o:
        seen = await nudges(o, "until Told", "send teller", "other: x", "other: done 0", "")
        assert seen == ["", "", "look at it", "", "", "look at it"]
        seen.clear()
        assert await nudges(o, "elsewhere") == [""]


async def test_two_reminders_nudge_together_and_are_completed_apart(world: MakeWorld) -> None:
    async with planning(world).running(on_disk=False) as o:
        seen = await nudges(o, "until Told", "until Told", "send teller", "done 0", "", "done 1", "")
        full = play(o)["IDS"]
    assert seen[-4:] == ["look at it", "look at it", "look at it", ""]
    assert len(set(full)) == 2


async def test_it_outlives_a_restart(world: MakeWorld) -> None:
    made = planning(world)
    async with made.running() as o:
        thread = (await o.inject("planner", {"text": "until Told"}, wait=True)).thread_id
        await o.inject("planner", {"text": "send teller"}, thread_id=thread, wait=True)
        await o.crash()
    async with made.running() as o:
        await o.inject("planner", {"text": "x"}, thread_id=thread, wait=True)
        assert play(o)["TRACE"] == ["look at it"]


async def test_what_the_listener_of_reminders_does_not_take_is_refused_like_any_send(world: MakeWorld) -> None:
    async with planning(world).running(on_disk=False) as o:
        for text, refused in (("unknown", []), ("wrong", ["validation"])):
            outcome = await o.inject("planner", {"text": text}, wait=True)
            found = await o.records(MessageRefused, thread=outcome.thread_id)
            assert [record.event.code for record in found] == refused
            assert (await o.thread(outcome.thread_id))["status"] == "completed"
