"""A stage for kills: one data directory over many lives, and all that the outside does with it and keeps of it."""

from __future__ import annotations

import asyncio
import random
import signal
from collections import Counter
from collections.abc import Awaitable, Coroutine, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from organism.sqlite.driver import Pysqlite
from tests.faults.chain import chain_faults
from tests.faults.client import Client, Gone
from tests.faults.follower import Follower
from tests.faults.frames import Subscription
from tests.faults.ledger import Ledger
from tests.faults.lives import Life, Setting, fork
from tests.faults.oracle import read_lines
from tests.faults.workload import Injection, Workload

SUBSCRIPTIONS: Final = (
    Subscription("everything"),
    Subscription("everything again"),
    Subscription("two agents", frozenset({"second", "payer"}), frozenset({"message", "error"})),
)
ATTEMPTS: Final = 6
"""``retry.attempts`` of the play's organism.yaml."""
AGENTS: Final = ("second", "leaf", "worker", "payer", "asker")
ACTS: Final = 4
KILLS: Final = 0.5
REACH_SECONDS: Final = 30.0
INJECTIONS: Final = 10_000
"""More than any life lasts for: what a machine does in groups or by time comes as often as it shall."""


class Operator:
    """``killed`` are the threads of which the server said that they are killed."""

    def __init__(self, chance: random.Random) -> None:
        self.killed: set[str] = set()
        self._chance = chance

    async def act(self, api: Client, injections: Sequence[Injection]) -> None:
        """A few acts, while the server lives."""
        try:
            for _ in range(ACTS):
                accepted = [injection for injection in injections[-100:] if injection.is_acknowledged]
                if accepted and self._chance.random() < KILLS:
                    await self._kill(api, self._chance.choice(accepted).answers[0].json["thread_id"])
                else:
                    verb = self._chance.choice(("pause", "resume", "resume"))
                    (await api.call("POST", f"/agents/{self._chance.choice(AGENTS)}/{verb}")).expect(200)
        except Gone:
            return

    async def _kill(self, api: Client, thread: str) -> None:
        (await api.call("POST", f"/threads/{thread}/kill")).expect(200)
        self.killed.add(thread)


class Stage:
    """``faults`` is what was found wrong so far; ``counts`` is for the report. All chance comes from ``seed``."""

    def __init__(self, folder: Path, api: Client, seed: int = 1) -> None:
        self.folder = folder
        self.api = api
        self.effects = folder / "effects"
        self.setting = Setting(folder / "data", environment={"PLAY_EFFECTS": str(self.effects)})
        self.chance = random.Random(seed)
        self.workload = Workload(random.Random(seed + 1))
        self.operator = Operator(random.Random(seed + 2))
        self.followers = [Follower(subscription) for subscription in SUBSCRIPTIONS]
        self.counts: Counter[str] = Counter()
        self.faults: list[str] = []

    async def serve(self) -> Life:
        """A life that nobody has marked for death."""
        life = await fork(self.setting)
        self.api.url = await life.serving()
        return life

    # -- what the outside does while a server lives

    async def load(self, url: str, injections: int, *more: Coroutine[Any, Any, None]) -> None:
        """Inject, operate and follow, until the server is gone."""
        self.api.url = url
        work = (self.operate(0.7), self.workload.send_many(injections, self.api), *more)
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
        follower = Follower(Subscription("quiet"))
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


async def die_at(stage: Stage, point: str) -> None:
    """A life under load that dies at ``point`` (``name:nth``). Raises ``AssertionError`` if it never gets there."""
    life = await fork(stage.setting.dying_at(point))
    url = await life.url()
    await _dead(life, point, stage.load(url, INJECTIONS) if url is not None else life.end())


async def die_stopping_at(stage: Stage, point: str, injections: int = 20) -> None:
    """A life with some work behind it that is stopped, and dies at ``point`` of that."""
    life = await fork(stage.setting.dying_at(point))
    stage.api.url = await life.serving()
    await stage.workload.send_many(injections, stage.api)
    await _dead(life, point, life.stop())


async def _dead(life: Life, point: str, work: Awaitable[object]) -> None:
    try:
        async with asyncio.timeout(REACH_SECONDS):
            await work
    except TimeoutError:
        life.kill()
        raise AssertionError(f"The server never came to {point}.") from None
    status = await life.end()
    assert status == -signal.SIGKILL, f"It was to die at {point}, and ended with {status}: {life.said}"
