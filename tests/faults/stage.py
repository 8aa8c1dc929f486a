"""A stage for kills: one data directory over many lives, and all that the outside does with it and keeps of it."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Coroutine, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from organism.log.driver import Pysqlite
from tests.faults.chain import chain_faults
from tests.faults.client import Client, Gone
from tests.faults.follower import Follower
from tests.faults.ledger import Ledger
from tests.faults.lives import Life, Nursery, Setting
from tests.faults.meddler import Meddler
from tests.faults.oracle import read_lines
from tests.faults.taste import Taste
from tests.faults.wishes import Wishes

TASTES: Final = (
    Taste("everything"),
    Taste("everything again"),
    Taste("two agents", frozenset({"second", "payer"}), frozenset({"message", "error"})),
)
ATTEMPTS: Final = 6
"""``retry.attempts`` of the play's organism.yaml."""


class Stage:
    """``faults`` is what was found wrong so far; ``counts`` is for the report. All chance comes from ``seed``."""

    def __init__(self, folder: Path, births: Nursery, api: Client, seed: int = 1) -> None:
        self.folder = folder
        self.births = births
        self.api = api
        self.effects = folder / "effects"
        self.setting = Setting(folder / "data", environment={"PLAY_EFFECTS": str(self.effects)})
        self.chance = random.Random(seed)
        self.wishes = Wishes(random.Random(seed + 1))
        self.meddler = Meddler(random.Random(seed + 2))
        self.followers = [Follower(taste) for taste in TASTES]
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []

    async def serve(self) -> Life:
        """A life that nobody has marked for death."""
        life = await self.births.bear(self.setting)
        self.api.url = await life.serving()
        return life

    # -- what the outside does while a server lives

    async def load(self, url: str, wishes: int, *more: Coroutine[Any, Any, None]) -> None:
        """Wish, operate and follow, until the server is gone."""
        self.api.url = url
        work = (self.operate(0.7), self.wishes.send_many(wishes, self.api), *more)
        await asyncio.gather(*work, *(follower.follow(url) for follower in self.followers))

    async def operate(self, share: float) -> None:
        """What an operator does with a server that is back: resume what is paused, resolve what is in doubt."""
        try:
            if (await self.api.get("/organism"))["status"] == "paused":
                (await self.api.call("POST", "/organism/resume")).expect(200)
                self.counts["resumed"] += 1
            for row in await self.api.rows("agents"):
                if row["paused"] and self.chance.random() < share:
                    (await self.api.call("POST", f"/agents/{row['name']}/resume")).expect(200)
            for row in await self.api.rows("indeterminate"):
                if self.chance.random() < share:
                    await self._resolve(row)
        except Gone:
            return

    async def _resolve(self, row: dict[str, Any]) -> None:
        """Look outside whether it happened, and say so. The question may be gone by now: its thread was killed."""
        key = f"{row['message_id']}/{row['key']}"
        happened = any(line.key == key for line in read_lines(self.effects))
        said: dict[str, Any] = {"outcome": "done", "result": {"key": key}} if happened else {"outcome": "redo"}
        (await self.api.call("POST", f"/indeterminate/{row['id']}/resolve", said)).expect(200, 404, 409)
        self.counts[said["outcome"]] += 1

    async def until_quiet(self, life: Life) -> None:
        """Wait until no thread is active any more. Raises ``Gone`` if the server ends before."""
        follower = Follower(Taste("quiet"))
        following = asyncio.ensure_future(follower.follow(self.api.url))
        head = (await self.api.get("/organism"))["position"]
        await life.unless_it_ends(follower.until(lambda: follower.position >= head and not follower.active))
        following.cancel()
        await asyncio.wait([following])

    async def ledger(self) -> Ledger:
        """The log so far."""
        ledger = Ledger()
        async for event in self.api.events():
            ledger.take([event])
        return ledger

    # -- the files

    @property
    def log(self) -> Path:
        """Where the log lies."""
        return self.setting.data / "tenants" / "default"

    def forget_rows(self) -> None:
        """Have the next start make every row again. The server must have ended."""
        with closing(Pysqlite().connect(str(self.log / "log.sqlite"))) as database:
            database.execute("DELETE FROM models")

    def chain_faults(self) -> Iterator[str]:
        """What does not fit in the audit chain. The server must have ended."""
        return chain_faults(self.log, self.folder / "copy")
