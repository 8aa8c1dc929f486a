"""A session of a thousand turns: its storage, and how long turns and pages of its history take early and late.

The model is scripted. Compaction never comes to it, so the last prompt has all.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import cast

import orjson
import uvloop

from bench import ours
from bench.load import Measurement, arguments
from bench.talk import ANSWER, QUICK_TURNS, SAMPLES, TURNS, at_begin, at_end, disk_bytes, question
from organism.model.commands import CreateSession, Injected, SendTurn, SessionBegun
from organism.pump.history import messages
from organism.testing import Running
from organism.views.views import Page, PageKey, Query, Where

PAGE = 50
PATIENCE_SECONDS = 60
USER = "dan"


def config(folder: Path) -> Path:
    """An organism of one agent, whose model says ``ANSWER``. It is JSON, which every reader of YAML takes."""
    script = folder / "script.yaml"
    script.write_text(json.dumps({"answers": [{"text": ANSWER}]}), "utf-8")
    model = {"provider": "scripted", "script": script.name, "context_window": 10_000_000}
    agent = {"name": "talker", "description": "Talks", "agent": True, "model": "m", "prompt": "Be brief."}
    place = folder / "organism.yaml"
    place.write_text(
        json.dumps(
            {
                "organism": {"name": "talking"},
                "limits": {"max_tokens_per_thread": 100_000_000},
                "models": {"m": model},
                "listeners": [agent],
            }
        ),
        "utf-8",
    )
    return place


class Conversation:
    """One session, and how long its turns took: until they were started, and until they had ended."""

    def __init__(self, organism: Running, session_id: str) -> None:
        self._organism = organism
        self._session_id = session_id
        self.started: list[float] = []
        self.ended: list[float] = []

    async def turn(self, number: int) -> None:
        """Raises ``TimeoutError``."""
        begun = time.perf_counter()
        payload = {"message": question(number)}
        sent = cast(
            "Injected",
            await self._organism.do(SendTurn(to="talker", session_id=self._session_id, user=USER, json=payload)),
        )
        self.started.append(time.perf_counter() - begun)
        if not await self._organism.tenant.ended(sent.thread_id, PATIENCE_SECONDS):
            raise TimeoutError(f"The turn {sent.thread_id} is still active after {PATIENCE_SECONDS} s.")
        self.ended.append(time.perf_counter() - begun)

    async def pages(self) -> list[PageKey | None]:
        """The cursors of all pages of the history."""
        cursors: list[PageKey | None] = [None]
        while (page := await self._rows(cursors[-1])).before + page.count < page.total:
            cursors.append(page.last)
        return cursors

    async def page_seconds(self, after: PageKey | None) -> float:
        """How long the page takes that begins behind the cursor. Raises ``RuntimeError`` if it is not full."""
        begun = time.perf_counter()
        found = await messages(self._organism.log, orjson.loads((await self._rows(after)).rows))
        if len(found) != PAGE:
            raise RuntimeError(f"Expected {PAGE} messages behind {after}, got {len(found)}.")
        return time.perf_counter() - begun

    async def _rows(self, after: PageKey | None) -> Page:
        query = Query((Where("session_id", "=", self._session_id),), "position", limit=PAGE, after=after)
        return await self._organism.views.rows("session_messages", query)


async def measure(turns: int) -> Measurement:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        place = Path(folder)
        async with ours.organism(place / "data", config(place)) as started:
            session = cast("SessionBegun", await started.do(CreateSession(agent="talker", user=USER)))
            talk = Conversation(started, session.session_id)
            for number in range(turns):
                await talk.turn(number)
            cursors = await talk.pages()
            first, last = [[await talk.page_seconds(cursors[at]) for _ in range(SAMPLES)] for at in (0, -1)]
        stored = disk_bytes(place / "data")
    text = sum(len(question(number)) + len(ANSWER) for number in range(turns))
    return Measurement(
        "session",
        "ms",
        at_end(talk.ended),
        {
            "first_ms": at_begin(talk.ended),
            "started_ms": at_end(talk.started),
            "first_started_ms": at_begin(talk.started),
            "page_ms": 1e3 * median(last),
            "first_page_ms": 1e3 * median(first),
            "kib_a_turn": stored / turns / 1024,
            "kib_a_turn_beyond_text": (stored - 2 * text) / turns / 1024,
        },
    )


if __name__ == "__main__":
    print(uvloop.run(measure(QUICK_TURNS if arguments(__doc__).quick else TURNS)).line())
