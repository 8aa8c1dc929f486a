"""A long past that nobody lived through: events of all kinds, written into a server's log at once."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from organism.events import vocabulary as events
from organism.events.record import Record, Unit
from organism.log.log import EventLog

AGENTS = ("greeter", "shouter", "library")


def happening(chance: random.Random, number: int) -> events.Event:
    """An event, most often a message."""
    message, (sender, agent) = f"msg-{number}", chance.sample(AGENTS, 2)
    if chance.random() < 0.8:
        return events.MessageSent(message, sender, agent, "Greeting", 1, "token", reply=chance.random() < 0.2)
    rare: Sequence[events.Event] = (
        events.MessageHandled(message, agent, "done", chance.randrange(1, 10_000_000)),
        events.MessageDead(message, agent, sender, "Greeting", 1, "timeout", "It took too long.", 3),
        events.MessageRefused(message, sender, agent, "Greeting", "routing", "not_a_peer", "Not a peer."),
        events.ApprovalRequested(f"apr-{number}", message, agent, 1, "digest", 1),
        events.StepStarted(message, agent, 1, "effect", "", unknown=True),
        events.StepStarted(message, agent, 1, "effect", ""),
        events.ThreadPaused(),
    )
    return chance.choice(rare)


async def tell(log: EventLog, count: int, gaps: Sequence[int] = (0, 1, 1_000, 1_000_000, 60_000_000)) -> None:
    """So many events of four threads, with these gaps (µs) of time between them."""
    chance, at, number = random.Random(1), log.last_at, 0
    for thread in range(4):
        log.append(Unit(f"thr-{thread}", [Record(events.ThreadCreated())], at, {}))
    while number < count:
        at += chance.choice(gaps)
        records: list[Record[Any]] = []
        for _ in range(chance.randint(1, 5)):
            number += 1
            records.append(Record(happening(chance, number)))
        log.append(Unit(f"thr-{chance.randrange(4)}", records, at, {}))
    await log.commit(Unit("thr-0", [Record(events.ThreadPaused())], at, {}))
