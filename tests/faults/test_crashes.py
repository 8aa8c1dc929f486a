"""Messages that kill the process, and servers that die young (G8)."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import Any

import pytest

from tests.faults.client import Gone
from tests.faults.gate import Gate, gate
from tests.faults.lives import Life
from tests.faults.stage import ATTEMPTS, Stage

pytestmark = [pytest.mark.faults, pytest.mark.asyncio(loop_scope="session")]

LIVES = 5
GATE = "PLAY_GATE"


async def inject(stage: Stage, to: str, tag: str) -> Any:
    return (await stage.api.inject(to, {"tag": tag})).expect(202)


async def kill_by_message(stage: Stage, life: Life) -> None:
    """Let the message go that kills the process; its answer comes if the message is slower."""
    with suppress(Gone):
        await stage.api.call("POST", "/agents/killer/resume")
    assert await life.end() == -signal.SIGKILL


async def die_by_itself(stage: Stage) -> None:
    """A life that an open message ends at once."""
    assert await (await stage.births.bear(stage.setting)).end() == -signal.SIGKILL


async def begin_with_a_killer_among_the_innocent(stage: Stage, at: Gate) -> Life:
    """The killer lies in the middle, and waits; the others run, in no step."""
    life = await stage.serve()
    (await stage.api.call("POST", "/agents/killer/pause")).expect(200)
    for number in range(3):
        await inject(stage, "patient", f"before {number}")
    await inject(stage, "killer", "killer")
    for number in range(3):
        await inject(stage, "patient", f"after {number}")
    await at.until_arrived(6)
    return life


async def test_a_message_that_kills_the_process_is_parked_and_the_innocent_beside_it_are_not(stage: Stage) -> None:
    async with gate(stage.folder / "gate") as at:
        stage.setting = stage.setting.having(GATE, str(stage.folder / "gate"))
        life = await begin_with_a_killer_among_the_innocent(stage, at)
        await kill_by_message(stage, life)
        await at.open()
        for _ in range(ATTEMPTS - 1):
            await die_by_itself(stage)
        life = await stage.serve()
        await stage.until_quiet(life)
    ledger = await stage.ledger()
    killers = [entry for entry in ledger.entries.values() if entry.to == "killer"]
    assert [(entry.starts, entry.deaths) for entry in killers] == [(ATTEMPTS, ATTEMPTS)]
    assert list(ledger.parked) == [killers[0].id]
    letters = await stage.api.rows("dead-letters")
    assert [(letter["id"], letter["code"], letter["attempts"]) for letter in letters] == [
        (killers[0].id, "killed_process", ATTEMPTS)
    ]
    outcomes = [entry.payload["tag"] for entry in ledger.entries.values() if entry.to == "console"]
    assert sorted(outcomes) == [f"after {number}" for number in range(3)] + [f"before {number}" for number in range(3)]
    await life.stop()


async def die_at_the_gate(stage: Stage, at: Gate, tag: str) -> None:
    """A life that is killed when one with this tag has come to the gate."""
    met = at.arrived.count(tag)
    life = await stage.serve()
    await life.unless_it_ends(at.until_met(tag, met + 1))
    life.kill()
    await life.end()


async def test_a_suspect_that_waits_for_another_suspect_is_no_deadlock(stage: Stage) -> None:
    """The seeker ran at two deaths before it asked, and what it asked for at two more, while it only waited."""
    async with gate(stage.folder / "gate") as at:
        stage.setting = stage.setting.having(GATE, str(stage.folder / "gate"))
        life = await stage.serve()
        thread = (await inject(stage, "seeker", "seeker"))["thread_id"]
        await at.until_met("seeker", 1)
        life.kill()
        await life.end()
        await die_at_the_gate(stage, at, "seeker")
        await at.let("seeker")
        await die_at_the_gate(stage, at, "keeper")
        await die_at_the_gate(stage, at, "keeper")
        await at.open()
        life = await stage.serve()
        async with asyncio.timeout(20):
            await stage.until_quiet(life)
    entries = (await stage.ledger()).entries.values()
    assert [(entry.to, entry.deaths) for entry in entries if entry.deaths] == [("seeker", 2), ("keeper", 2)]
    assert (await stage.api.get(f"/threads/{thread}"))["status"] == "completed"
    await life.stop()


async def die_young(stage: Stage) -> None:
    """So many lives that end at once without having handled anything."""
    stage.setting = stage.setting.forgiving(stage.folder)
    life = await stage.serve()
    (await stage.api.call("POST", "/agents/killer/pause")).expect(200)
    await inject(stage, "killer", "killer")
    await kill_by_message(stage, life)
    for _ in range(LIVES - 1):
        await die_by_itself(stage)


async def test_a_server_whose_last_five_lives_were_short_starts_paused_and_says_so(stage: Stage) -> None:
    await die_young(stage)
    life = await stage.serve()
    assert (await stage.api.get("/organism"))["status"] == "paused"
    pauses = [event async for event in stage.api.events() if event["type"] == "organism_paused"]
    assert [event["data"]["by"] for event in pauses] == ["crash_loop"]
    await life.stop()
    assert any("paused" in line for line in life.said), life.said


async def test_a_paused_server_goes_on_once_the_culprit_is_gone_and_it_is_resumed(stage: Stage) -> None:
    await die_young(stage)
    life = await stage.serve()
    culprit = (await stage.api.rows("threads"))[0]["id"]
    innocent = await inject(stage, "first", "innocent")
    (await stage.api.call("POST", f"/threads/{culprit}/kill")).expect(200)
    (await stage.api.call("POST", "/organism/resume")).expect(200)
    await stage.until_quiet(life)
    assert (await stage.api.get(f"/threads/{innocent['thread_id']}"))["status"] == "completed"
    await life.stop()


async def test_short_lives_that_handled_something_are_no_crash_loop(stage: Stage) -> None:
    for number in range(LIVES + 1):
        life = await stage.serve()
        (await stage.api.call("POST", "/inject", {"to": "first", "payload": {"tag": f"{number}"}, "wait": 20})).expect(
            200
        )
        life.kill()
        assert await life.end() == -signal.SIGKILL
    life = await stage.serve()
    assert (await stage.api.get("/organism"))["status"] == "running"
    await life.stop()
