"""Messages that kill the process, and servers that die young (G8)."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.faults.client import Gone
from tests.faults.lives import Life, fork
from tests.faults.stage import ATTEMPTS, Stage

pytestmark = pytest.mark.faults

LIVES = 5
GATE = "PLAY_GATE"


class Gate:
    """Handlers wait here: the test sees who has arrived, and lets them go on. ``arrived`` are their tags, in order."""

    def __init__(self) -> None:
        self.arrived: list[str] = []
        self._is_open = False
        self._news = asyncio.Condition()

    async def meet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A handler came: it waits until the gate is open. If its process dies, nobody is there to go on."""
        tag = (await reader.readline()).decode().strip()
        async with self._news:
            self.arrived.append(tag)
            self._news.notify_all()
            await self._news.wait_for(lambda: self._is_open)
        writer.write(b"go on\n")
        writer.close()

    async def until_arrived(self, count: int) -> None:
        """Wait until so many have come in all."""
        async with self._news:
            await self._news.wait_for(lambda: len(self.arrived) >= count)

    async def open(self) -> None:
        """Let everyone go on, those who come later too."""
        async with self._news:
            self._is_open = True
            self._news.notify_all()


@asynccontextmanager
async def gate(path: Path) -> AsyncIterator[Gate]:
    """A gate at the Unix socket ``path``, while it lasts."""
    made = Gate()
    async with await asyncio.start_unix_server(made.meet, path):
        yield made
        await made.open()


async def inject(stage: Stage, to: str, tag: str) -> Any:
    return (await stage.api.inject(to, {"tag": tag})).expect(202)


async def kill_by_message(stage: Stage, life: Life) -> None:
    """Let the message go that kills the process; its answer comes if the message is slower."""
    with suppress(Gone):
        await stage.api.call("POST", "/agents/killer/resume")
    assert await life.end() == -signal.SIGKILL


async def die_by_itself(stage: Stage) -> None:
    """A life that an open message ends at once."""
    assert await (await fork(stage.setting)).end() == -signal.SIGKILL


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


async def die_young(stage: Stage) -> None:
    """So many lives that end at once without having handled anything."""
    stage.setting = stage.setting.forgiving(stage.folder)
    life = await stage.serve()
    (await stage.api.call("POST", "/agents/killer/pause")).expect(200)
    await inject(stage, "killer", "killer")
    await kill_by_message(stage, life)
    for _ in range(LIVES - 1):
        await die_by_itself(stage)


async def test_a_server_whose_last_five_lives_were_short_starts_paused_says_so_and_goes_on_when_resumed(
    stage: Stage,
) -> None:
    await die_young(stage)
    life = await stage.serve()
    assert (await stage.api.get("/organism"))["status"] == "paused"
    pauses = [event async for event in stage.api.events() if event["type"] == "organism_paused"]
    assert [event["data"]["by"] for event in pauses] == ["crash_loop"]
    culprit = (await stage.api.rows("threads"))[0]["id"]
    innocent = await inject(stage, "first", "innocent")
    (await stage.api.call("POST", f"/threads/{culprit}/kill")).expect(200)
    (await stage.api.call("POST", "/organism/resume")).expect(200)
    await stage.until_quiet(life)
    assert (await stage.api.get(f"/threads/{innocent['thread_id']}"))["status"] == "completed"
    await life.stop()
    assert any("paused" in line for line in life.said), life.said


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
