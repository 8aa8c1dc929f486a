"""An agent's turn that is killed at a point and taken up by the next life, once for each point that is named.

``python -m tests.faults.talking FOLDER POINT…`` prints a line of JSON for each: how both lives ended, which calls of a
model were made, what the run came to. The lives are forks, since importing everything takes longer than a turn.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from organism.log.log import Query
from organism.model.events import Event
from organism.projections.run import entry_of, fold
from organism.pump.feed import Delta
from organism.pump.models import ModelCall, Outcome, Told
from organism.testing import Running, running
from tests.faults import points
from tests.faults.points import Point
from tests.flows.loop import ASKED, LISTENERS, LOOP
from tests.flows.speaker import Speaker, Tell
from tests.flows.world import World

CALL: Final = "organism.pump.model_calls:RunningCall"
TALK: Final[Mapping[str, Point]] = {
    "call": Point(f"{CALL}._run", "a call is reserved, and not made"),
    "answered_call": Point(
        "organism.pump.model_calls:RunningCall._settle", "it was made, and nothing of it is recorded"
    ),
    "settled_call": Point(
        "organism.pump.model_calls:RunningCall._settle", "its record is decided, not on disk", is_after=True
    ),
    "block": Point("organism.pump.stream:Block.on_disk", "a block's start is on disk, nobody heard it"),
    "piece": Point("organism.pump.feed:Feed.tell", "a piece was heard that is not in the log", is_after=True),
    "entry": Point("organism.pump.stream:RunStream.emit", "an entry is about to be shown"),
    "shown_entry": Point("organism.pump.stream:RunStream.emit", "it is on disk, the handler not told", is_after=True),
    "end": Point("organism.pump.runs:finish", "the handler has answered, its run is not over", is_after=True),
}
"""Where an agent's turn can die besides the points of every handling."""


class Counting(Speaker):
    """Models whose calls stand in a file outside, on the disk before anything is said.

    They say nothing more before what they said was heard, so that each point is come to as often in every life.
    """

    def __init__(self, calls: Path) -> None:
        super().__init__()
        self._file = calls
        self._said = 0
        self._heard = asyncio.Event()

    async def call(self, call: ModelCall, tell: Tell) -> Outcome:
        """See ``Models``."""
        handle = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(handle, f"{call.step}\n".encode())
        os.fsync(handle)
        os.close(handle)

        def say(part: Told) -> None:
            self._heard.clear()
            self._said += 1
            tell(part)

        return await super().call(call, say)

    def hear(self, _piece: Delta) -> None:
        """A piece was heard."""
        self._heard.set()

    async def pause(self) -> None:
        """Wait until what was said last was heard."""
        if self._said:
            await self._heard.wait()


def life(folder: Path, seed: int, point: str) -> int:
    """One life in a fork, that dies at the point; gives its status."""
    child = os.fork()
    if child == 0:
        points.install(point, TALK)
        asyncio.run(turn(folder, seed))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


async def turn(folder: Path, seed: int) -> None:
    """Take up the turn, or begin it, and wait for its end."""
    world = World(folder, LOOP, LISTENERS)
    models = Counting(folder / "calls")
    async with running(world.config, folder / "data", models.parts(seed)) as o:
        o.tenant.feed.join(models.hear)
        threads = orjson.loads((await o.log.rows("threads", Query())).rows)
        thread = threads[0]["id"] if threads else (await o.inject("agent", {"text": ASKED})).thread_id
        assert await o.tenant.ended(thread, 60)
        (folder / "told").write_bytes(orjson.dumps(await told(o, thread)))


async def told(o: Running, thread: str) -> dict[str, Any]:
    """What the run came to, and which calls were recorded."""
    events: list[Event] = await o.events()
    entries = [entry_of(event) for event in events if event.type.startswith("run_")]
    recorded = [event.data["step"] for event in events if event.type == "step_recorded"]
    return {
        "folded": fold(entries),
        "done": [entry["type"] for entry in entries].count("done"),
        "is_last": entries[-1]["type"] == "done",
        "recorded": sorted(recorded),
        "held": len(o.pump.state.routing.spend.open),
        "replies": [reply["text"] for reply in await o.replies(thread)],
    }


def main() -> None:
    """See the module."""
    folder, *wanted = sys.argv[1:]
    for number, point in enumerate(wanted):
        own = Path(folder) / str(number)
        own.mkdir()
        died, ended = life(own, 1, point), life(own, 2, "")
        calls = (own / "calls").read_text().split() if (own / "calls").exists() else []
        found = orjson.loads((own / "told").read_bytes())
        print(
            orjson.dumps({"point": point, "died": died, "ended": ended, "calls": calls, **found}).decode(), flush=True
        )


if __name__ == "__main__":
    main()
