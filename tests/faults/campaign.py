"""The kill loop: a real server under load, killed at random instants, again and again."""

from __future__ import annotations

import asyncio
import os
import platform
import signal
import time
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Final

import orjson

from tests.faults.client import Gone, client
from tests.faults.judgement import judged, verified
from tests.faults.ledger import Ledger
from tests.faults.lives import Life, fork, spawn
from tests.faults.oracle import read_lines
from tests.faults.stage import Stage
from tests.faults.workload import killer

NEVER: Final = 1 << 62
AFTER_ANSWER_SECONDS: Final = 0.02


METHOD: Final = """\
A real server with its disk and sockets is killed by SIGKILL at random instants, while it starts or under load;
one life in ten is the command as a user starts it, the others are forked from a process that has imported it. The load
are chains, fans, asks that overlap and come back, effects that may be repeated and effects that may not, failures, keys
sent again, an operator who pauses agents and kills threads, messages that kill the process, and three followers who
resume by position. At the end everything is let come to its rest, all that is disposable is deleted and made again, and
an oracle outside holds the answers, the effects' own file, the followers' frames and the audit chain against the log
(`tests/faults/oracle.py` has the laws). A kill of the process loses nothing that the kernel was given: power cuts are
another harness.
"""


def this_machine() -> str:
    """The machine, as far as it matters here."""
    return f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}"


@dataclass(frozen=True, slots=True)
class Report:
    """``counts`` are numbers by name, ``findings`` the sentences of the oracle: none, if all is well."""

    kills: int
    seed: int
    seconds: float
    kills_with_open_work: int
    counts: dict[str, int]
    findings: list[str] = field(default_factory=list)
    day: str = field(default_factory=lambda: f"{datetime.now(UTC):%Y-%m-%d}")
    machine: str = field(default_factory=this_machine)

    @property
    def share_with_open_work(self) -> float:
        """The share of the kills at which something accepted was not handled yet."""
        return self.kills_with_open_work / max(1, self.kills)

    def json(self) -> bytes:
        """The report for machines."""
        said = {**asdict(self), "share_with_open_work": self.share_with_open_work}
        return orjson.dumps(said, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)

    def markdown(self) -> str:
        """The report for people."""
        rows = "\n".join(f"| {name.replace('_', ' ')} | {count:,} |" for name, count in self.counts.items())
        found = "\n".join(f"- {finding}" for finding in self.findings) or "None: every law held."
        return f"""# Kill loop: {self.kills} kills

`scripts/soak --kills {self.kills} --seed {self.seed}`, {self.day}, {self.machine}: {self.seconds:.0f} s, \
{self.seconds / max(1, self.kills):.2f} s a kill. At {self.kills_with_open_work} of {self.kills} kills \
({self.share_with_open_work:.1%}) injections were acknowledged and not handled yet.

{METHOD}
| counted | |
|---|---|
{rows}

## What broke

{found}
"""


@dataclass(frozen=True, slots=True)
class Plan:
    """How a campaign goes.

    One life in ``early`` is killed while it starts, the others after a random number of answered injections, at most
    ``most_answered``: counted, because by the clock a slow machine would be killed while it has nothing to do. Into one
    in ``suicides`` a message is sent that kills the process, and one in ``spawned`` is the command as a user starts it;
    the others are forked.
    """

    kills: int
    seed: int = 1
    injections_a_life: int = 150
    most_answered: int = 40
    early: int = 10
    suicides: int = 20
    spawned: int = 10


@dataclass(slots=True)
class Kill:
    """One death: how many injections were accepted until then, and where the next life begins that served."""

    accepted: int
    next_life: int = NEVER


class Campaign:
    """One kill loop on a stage."""

    def __init__(self, plan: Plan, stage: Stage) -> None:
        self.plan = plan
        self.stage = stage
        self.kills: list[Kill] = []

    async def run(self) -> Report:
        """Kill, let everything come to its end, judge."""
        begun = time.monotonic()
        while len(self.kills) < self.plan.kills:
            await self._live_and_die()
        seconds = time.monotonic() - begun
        ledger = await judged(self.stage)
        await verified(self.stage)
        return self._report(ledger, seconds)

    async def _live_and_die(self) -> None:
        chance = self.stage.chance
        is_early = chance.randrange(self.plan.early) == 0
        is_spawned = chance.randrange(self.plan.spawned) == 0
        life = await (spawn if is_spawned else fork)(self.stage.setting)
        if is_early:
            self._kill_within(1.0 if is_spawned else 0.1, life)
        else:
            kill = partial(self._kill_within, AFTER_ANSWER_SECONDS, life)
            self.stage.workload.after_answers(chance.randint(1, self.plan.most_answered), kill)
        url = await life.url()
        if url is not None:
            if chance.randrange(self.plan.suicides) == 0:
                self.stage.workload.later(killer(f"killer{len(self.kills)}"))
            operating = self.stage.operator.act(self.stage.api, self.stage.workload.all)
            await self.stage.load(url, self.plan.injections_a_life, self._note_life(), operating)
        await self._bury(life)

    def _kill_within(self, seconds: float, life: Life) -> None:
        asyncio.get_running_loop().call_later(self.stage.chance.random() * seconds, life.kill)

    async def _note_life(self) -> None:
        """Where the life begins that serves now: what was open there was open at each kill before."""
        last = max((kill.next_life for kill in self.kills if kill.next_life < NEVER), default=0)
        try:
            lives = await self.stage.api.get(f"/log?type=organism_started&limit=500&after={last}")
        except Gone:
            return
        for kill in self.kills:
            kill.next_life = min(kill.next_life, lives["events"][-1]["position"])

    async def _bury(self, life: Life) -> None:
        """Note the death. If no signal from outside caused it, a message that kills must have."""
        status = await life.end()
        if status != -signal.SIGKILL:
            self.stage.faults.append(f"the server ended by itself with {status}: {life.said[-20:]}")
        if life.is_killed:
            self.kills.append(Kill(len(self.stage.workload.accepted)))
        else:
            self.stage.counts["suicides"] += 1

    def _report(self, ledger: Ledger, seconds: float) -> Report:
        stage, workload = self.stage, self.stage.workload
        ends = {entry.id: entry.ends[0][0] if entry.ends else NEVER for entry in ledger.entries.values()}
        latest_ends = [0, *accumulate((ends.get(message, NEVER) for message in workload.accepted), max)]
        at_work = sum(latest_ends[kill.accepted] >= min(kill.next_life, ledger.lives[-1]) for kill in self.kills)
        counts = {
            "deaths by a message that kills": stage.counts["suicides"],
            "injections": len(workload.all),
            "injections accepted": len(workload.accepted),
            "injections sent again with their key": sum(max(0, injection.sent - 1) for injection in workload.all),
            "messages": len(ledger.entries),
            "events": ledger.head,
            "starts of a handler after its first": sum(max(0, entry.starts - 1) for entry in ledger.entries.values()),
            "effects run": len(read_lines(stage.effects)),
            "unsafe effects found unfinished that had happened": stage.counts["done"],
            "unsafe effects found unfinished that had not": stage.counts["redo"],
            "messages parked with the process": len(ledger.parked),
            "starts that paused themselves": stage.counts["resumed"],
            "threads killed": len(ledger.killed),
            "frames pushed": sum(len(follower.frames) for follower in stage.followers),
            "times that a follower resumed": sum(follower.resumes for follower in stage.followers),
        }
        return Report(len(self.kills), self.plan.seed, seconds, at_work, counts, stage.faults)


async def campaign(plan: Plan, folder: Path) -> Report:
    """Run a campaign in an empty folder."""
    async with client() as api:
        stage = Stage(folder, api, plan.seed)
        return await Campaign(plan, stage).run()
