"""Every contact of the bench with the product: how it is started, put under load, stopped and looked at.

The product is driven whole, in process, through its public door for tests: the same parts that `organism serve` starts,
on a disk, with every feature on. Only the web server is left out, except where a subscriber is measured.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
import shutil
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pysqlite3
from ruamel.yaml import YAML

from bench.places import LOG_FILE
from organism import __file__ as package
from organism.bootstrap import Organism, Parts
from organism.model.commands import PauseAgent
from organism.server.http.auth import Tokens
from organism.server.http.server_log import configure_logs
from organism.server.runner import Secrets, ServerSettings, Serving, listen, tune_interpreter
from organism.sqlite.driver import uri_of
from organism.testing import Running, running
from organism.views.views import CHANGED, Query

CONFIG = Path(__file__).parent / "organism.yaml"
GENERAL_CONFIG = Path(__file__).parent / "orders.yaml"
LAST_POSITION = (
    "SELECT first + json_array_length(CAST(body AS TEXT), '$[7]') - 1 FROM units ORDER BY first DESC LIMIT 1"
)
FORGET_SNAPSHOTS = "DELETE FROM snapshots WHERE name <> 'live'"
CHAIN_SECONDS = 60
STAMP = "made-by"
SOURCES = (".py", ".sql")


@asynccontextmanager
async def organism(folder: Path | None, config: Path = CONFIG, parts: Parts | None = None) -> AsyncIterator[Running]:
    """The product on ``folder`` (None: in memory), from ready to stopped, in an interpreter tuned as by its command."""
    async with running(config, data=folder, parts=parts) as started:
        tune_interpreter()
        yield started


@asynccontextmanager
async def served(started: Organism, token: str) -> AsyncIterator[Serving]:
    """The real server around an organism, which logs as it does by default; at the end both stop."""
    configure_logs(sys.stderr, started.parts.redactor)
    tune_interpreter()
    settings, key = ServerSettings(port=0), secrets.token_bytes(32)
    serving = Serving(started, settings, listen(settings), Secrets(Tokens(token, key, time.time), key))
    ready = asyncio.Event()
    running = asyncio.ensure_future(serving.run(ready.set))
    await ready.wait()
    try:
        yield serving
    finally:
        serving.stop()
        await running


async def chain(started: Running, key: str, first: str = "greeter") -> None:
    """One chain ``first`` → shouter → response-handler, until its thread has ended and all of it is on disk.

    The answer is not read back from the log, as no rival reads back its own. Raises ``TimeoutError``.
    """
    await _end(started, await open_thread(started, key, first))


async def general_chain(started: Running, key: str) -> None:
    """The same with the payloads of ``bench/orders.py``; it takes an organism of ``GENERAL_CONFIG``."""
    await _end(started, (await started.inject("greeter", order(key))).thread_id)


def order(key: str) -> dict[str, object]:
    """The payload that begins a general chain, as JSON."""
    lines = [
        {"article": "Kettle, 1.7 l", "count": 2, "price": "24.90"},
        {"article": "Tea <Earl Grey>", "count": 12, "price": "3.05"},
    ]
    return {"number": 4711, "customer": {"name": key, "number": 42}, "lines": lines}


async def _end(started: Running, thread_id: str) -> None:
    if not await started.tenant.ended(thread_id, CHAIN_SECONDS):
        raise TimeoutError(f"The thread {thread_id} is still active after {CHAIN_SECONDS} s.")


async def open_thread(started: Running, key: str, first: str = "greeter") -> str:
    """Begins a thread, and gives its id as soon as it is on disk."""
    return (await started.inject(first, {"name": key})).thread_id


async def page_of_the_past(started: Running, where: float) -> float:
    """How long the first fifty threads take as they stood at a position: at ``where`` of 1 of the log."""
    log, views = started.tenant.log, started.tenant.views
    at = 1 + int(where * (log.head - 1))
    began = time.perf_counter()
    await views.rows("threads", Query(order_by=CHANGED, descending=True, at=at))
    return time.perf_counter() - began


async def hold_up(started: Running) -> None:
    """From now on the threads that are begun stay open: their first message waits for a paused agent."""
    await started.do(PauseAgent(agent="greeter"))


def config_with_agents(folder: Path, count: int) -> Path:
    """The organism of the bench with ``count`` greeters, instead of one."""
    config = YAML(typ="safe").load(CONFIG)
    greeter, *others = config["listeners"]
    short = {key: value for key, value in greeter.items() if key not in {"prompt", "max_concurrent"}}
    config["listeners"] = [*({**short, "name": f"greeter-{number}"} for number in range(count)), *others]
    path = folder / f"agents-{count}.yaml"
    path.write_text(json.dumps(config, separators=(",", ":")), "utf-8")  # every reader of YAML takes JSON
    return path


def empty(folder: Path) -> None:
    """Makes the folder again."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def source_digest() -> str:
    """Changes with every line of the product: what it wrote before may be of another form."""
    digest = hashlib.sha256()
    for path in sorted(file for file in Path(package).parent.rglob("*") if file.suffix in SOURCES):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def read_stamp(folder: Path) -> str:
    """The digest of the source that made the log in this folder; empty if there is none."""
    stamp = folder / STAMP
    return stamp.read_text("ascii") if stamp.exists() else ""


def write_stamp(folder: Path, digest: str) -> None:
    (folder / STAMP).write_text(digest, "ascii")


def count_events(folder: Path) -> int:
    """How many events lie in a log that nobody has open, 0 if there is none: positions are dense, the last tells."""
    if not (folder / LOG_FILE).exists():
        return 0
    with closing(pysqlite3.connect(uri_of(folder / LOG_FILE, read_only=True), uri=True)) as connection:
        last = connection.execute(LAST_POSITION).fetchone()
    return int(last[0]) if last else 0


def forget_snapshots(folder: Path) -> None:
    """Leaves the log as if the pump had never folded it: the next start reads every event."""
    with closing(pysqlite3.connect(str(folder / LOG_FILE), isolation_level=None)) as connection:
        connection.execute(FORGET_SNAPSHOTS)


def serve(folder: Path, port: int) -> list[str]:
    """The command line of the real server."""
    place = ["--config", str(CONFIG), "--data", str(folder), "--port", str(port)]
    return [sys.executable, "-m", "organism", "serve", *place]
