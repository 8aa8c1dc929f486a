"""The handlers that are killed. Each injection carries a tag; what comes of it names it, so that it can be counted.

Effects write one line with their key to a file outside, on the disk before they return. A handler that is to wait says
so at a gate, a socket of the test's, and goes on when it is told to.
"""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass
from functools import partial
from typing import Any

from organism import HandlerMetadata, HandlerResponse

EFFECTS = "PLAY_EFFECTS"
GATE = "PLAY_GATE"


@dataclass
class Task:
    """One task. ``part`` tells those of one tag apart."""

    tag: str
    part: int = 0


@dataclass
class Fan:
    """Send ``width`` leaves."""

    tag: str
    width: int


@dataclass
class Sum:
    """Ask ``width`` workers, then a partner who asks back; ``back`` is set on the way back."""

    tag: str
    width: int
    back: bool = False


@dataclass
class Number:
    """A worker's answer."""

    value: int


@dataclass
class Outcome:
    """What a tag came to, for the console."""

    tag: str
    kind: str
    part: int = 0
    value: str = ""


def outcome(tag: str, kind: str, part: int = 0, value: str = "") -> HandlerResponse:
    """Tell the outside."""
    return HandlerResponse(Outcome(tag, kind, part, value), to="console")


async def first(payload: Task, metadata: HandlerMetadata) -> HandlerResponse:
    return HandlerResponse(Task(payload.tag, 1), to="second")


async def second(payload: Task, metadata: HandlerMetadata) -> HandlerResponse:
    return HandlerResponse(Task(payload.tag, 2), to="third")


async def third(payload: Task, metadata: HandlerMetadata) -> HandlerResponse:
    return outcome(payload.tag, "chain", payload.part)


async def fan(payload: Fan, metadata: HandlerMetadata) -> list[HandlerResponse]:
    return [HandlerResponse(Task(payload.tag, number), to="leaf") for number in range(payload.width)]


async def leaf(payload: Task, metadata: HandlerMetadata) -> HandlerResponse:
    return outcome(payload.tag, "leaf", payload.part)


async def asker(payload: Sum, metadata: HandlerMetadata) -> HandlerResponse:
    """The sum of the workers' numbers, and of what the partner made of asking back."""
    if payload.back:
        return HandlerResponse.respond(Number(100))
    asks = [metadata.ask("worker", Task(payload.tag, number)) for number in range(payload.width)]
    numbers: list[Number] = await asyncio.gather(*asks)
    back: Number = await metadata.ask("partner", Task(payload.tag))
    return outcome(payload.tag, "sum", value=str(sum(number.value for number in numbers) + back.value))


async def worker(payload: Task, metadata: HandlerMetadata) -> HandlerResponse:
    return HandlerResponse.respond(Number(payload.part + 1))


async def partner(payload: Task, metadata: HandlerMetadata) -> HandlerResponse:
    answer: Number = await metadata.ask("asker", Sum(payload.tag, 0, back=True))
    return HandlerResponse.respond(Number(answer.value * 10))


async def payer(payload: Task, metadata: HandlerMetadata) -> HandlerResponse:
    """Two effects that may be repeated, and between them one that may not; the chance in it is recorded too."""
    number = await metadata.uuid()
    await metadata.effect("book", partial(write_line, payload.tag, "book"), "idempotent")
    await metadata.effect("charge", partial(write_line, payload.tag, "charge"), "unsafe")
    await metadata.effect("mail", partial(write_line, payload.tag, f"mail {number}"), "idempotent")
    return outcome(payload.tag, "paid", value=str(number))


async def write_line(tag: str, what: str, key: str) -> dict[str, Any]:
    """The outside world: one line for each time that the effect was run."""
    handle = os.open(os.environ[EFFECTS], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(handle, f"{key}\t{tag}\t{what}\n".encode())
        os.fsync(handle)
    finally:
        os.close(handle)
    return {"key": key}


async def flaky(payload: Task, metadata: HandlerMetadata) -> HandlerResponse:
    if metadata.attempt == 1:
        raise RuntimeError("not at the first attempt")
    return outcome(payload.tag, "flaky")


async def killer(payload: Task, metadata: HandlerMetadata) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def patient(payload: Task, metadata: HandlerMetadata) -> HandlerResponse:
    await pass_gate(payload.tag)
    return outcome(payload.tag, "patient")


async def pass_gate(tag: str) -> None:
    """Run, outside of any step, until the listener at the gate releases those with this tag."""
    reader, writer = await asyncio.open_unix_connection(os.environ[GATE])
    writer.write(f"{tag}\n".encode())
    await reader.readline()
    writer.close()
