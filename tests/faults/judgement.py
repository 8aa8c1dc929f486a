"""The last judgement of a stage: all that is open comes to its end, and everything is held against the log."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

from tests.faults.client import Gone
from tests.faults.follower import Follower
from tests.faults.ledger import Ledger
from tests.faults.lives import ROOT, Life, fork
from tests.faults.oracle import Evidence, judge, read_lines
from tests.faults.stage import ATTEMPTS, Stage

ROWS: Final = ("threads", "messages", "dead-letters", "indeterminate")
REST_SECONDS: Final = 60.0


async def judged(stage: Stage) -> Ledger:
    """Let everything end, make again what can be made again, and judge.

    What is wrong is in ``stage.faults`` then. Gives the log.
    """
    rows = await _rest(stage)
    ledger = await _rebuilt(stage, rows)
    stage.faults += stage.chain_faults()
    lines = read_lines(stage.effects)
    stage.faults += judge(
        Evidence(stage.workload.all, ledger, lines, stage.followers, frozenset(stage.operator.killed), ATTEMPTS)
    )
    return ledger


async def verified(stage: Stage) -> None:
    """The product's own check of the log agrees. The server must have ended."""
    command = (sys.executable, "-m", "organism", "log", "verify", "--data", str(stage.setting.data))
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
    )
    said, _ = await process.communicate()
    if process.returncode != 0:
        stage.faults.append(f"organism log verify ended with {process.returncode}: {said.decode()}")


async def _rest(stage: Stage) -> dict[str, Any]:
    """Lives without a kill, until one comes to rest: a message that kills may still be open. Gives the API's rows."""
    while (rows := await _come_to_rest(stage)) is None:
        stage.counts["suicides"] += 1
    return rows


async def _come_to_rest(stage: Stage) -> dict[str, Any] | None:
    """A life that lets everything end; None if it died before."""
    life = await fork(stage.setting)
    url = await life.url()
    if url is not None:
        with suppress(Gone):
            return await _rows_at_rest(stage, life, url)
    status = await life.end()
    assert status == -signal.SIGKILL, f"The server ended by itself with {status}: {life.said[-20:]}"
    return None


async def _rows_at_rest(stage: Stage, life: Life, url: str) -> dict[str, Any]:
    stage.api.url = url
    following = _follow(stage)
    await stage.operate(1.0)
    await stage.workload.send_unanswered(stage.api)
    follower = stage.followers[0]
    try:
        async with asyncio.timeout(REST_SECONDS):
            await life.unless_it_ends(_at_rest(stage, follower))
    except TimeoutError:
        stage.faults.append(f"{len(follower.active)} threads never came to their end, {await _standing(stage)}")
    rows = {name: await stage.api.rows(name) for name in ROWS}
    head = (await stage.api.get("/organism"))["position"]
    await life.unless_it_ends(follower.until_position(head))
    if await life.stop() != 0:
        stage.faults.append(f"the graceful stop ended otherwise: {life.said[-20:]}")
    await asyncio.gather(*following)
    return rows


async def _at_rest(stage: Stage, follower: Follower) -> None:
    """Wait until nothing is active: not for the follower, and not for the server, of which it may yet have to hear."""
    while (await stage.api.get("/organism"))["active_threads"] or follower.active:
        await follower.until_position((await stage.api.get("/organism"))["position"])
        await follower.until(lambda: not follower.active)


async def _standing(stage: Stage) -> str:
    """The state of everything, to find out why nothing moves."""
    organism = await stage.api.get("/organism")
    shown = ("name", "state", "paused", "queue_depth")
    agents = [tuple(row[name] for name in shown) for row in await stage.api.rows("agents")]
    in_doubt = [row["id"] for row in await stage.api.rows("indeterminate")]
    return f"the organism is {organism['status']}, its agents are {agents}, in doubt are {in_doubt}"


async def _rebuilt(stage: Stage, rows: dict[str, Any]) -> Ledger:
    """Without anything that can be made again, the server says the same."""
    stage.forget_rows()
    life = await stage.serve()
    following = _follow(stage)
    for name, before in rows.items():
        if await stage.api.rows(name) != before:
            stage.faults.append(f"the rows of {name} are others after they were made again")
    ledger = await stage.ledger()
    for follower in stage.followers:
        await follower.until_position(ledger.head)
    await life.stop()
    await asyncio.gather(*following)
    return ledger


def _follow(stage: Stage) -> Sequence[asyncio.Future[None]]:
    return [asyncio.ensure_future(follower.follow(stage.api.url)) for follower in stage.followers]
