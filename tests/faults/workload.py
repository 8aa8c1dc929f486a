"""The workload: seeded injections, what each must come to, and how often it was sent."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests.faults.client import Answer, Client, Gone

WORKERS: Final = 8
KEYED: Final = 0.6
REPEATED: Final = 0.15
ACCEPTED: Final = 202
CONFLICT: Final = 409

Result = tuple[str, int, str]
"""What reaches the console of one tag: kind, part, value. The value of chance is not foretold: it is ``?``."""


@dataclass(slots=True)
class Injection:
    """One injection. ``answers`` are all that came, in order."""

    tag: str
    to: str
    payload: dict[str, Any]
    expected: frozenset[Result]
    key: str | None
    sent: int = 0
    answers: list[Answer] = field(default_factory=list)

    @property
    def is_acknowledged(self) -> bool:
        """Whether it was accepted, as far as its caller knows."""
        return any(answer.status == ACCEPTED for answer in self.answers)


def _chain(tag: str, _chance: random.Random) -> tuple[str, dict[str, Any], set[Result]]:
    return "first", {"tag": tag}, {("chain", 2, "")}


def _fan(tag: str, chance: random.Random) -> tuple[str, dict[str, Any], set[Result]]:
    width = chance.randint(2, 8)
    return "fan", {"tag": tag, "width": width}, {("leaf", number, "") for number in range(width)}


def _sum(tag: str, chance: random.Random) -> tuple[str, dict[str, Any], set[Result]]:
    width = chance.randint(1, 4)
    return "asker", {"tag": tag, "width": width}, {("sum", 0, str(width * (width + 1) // 2 + 1000))}


def _pay(tag: str, _chance: random.Random) -> tuple[str, dict[str, Any], set[Result]]:
    return "payer", {"tag": tag}, {("paid", 0, "?")}


def _flaky(tag: str, _chance: random.Random) -> tuple[str, dict[str, Any], set[Result]]:
    return "flaky", {"tag": tag}, {("flaky", 0, "")}


KINDS: Final = (_chain, _chain, _fan, _sum, _pay, _pay, _flaky)


def killer(tag: str) -> Injection:
    """A message that kills the process."""
    return Injection(tag, "killer", {"tag": tag}, frozenset(), key=f"key-{tag}")


class Workload:
    """All injections so far. ``accepted`` are the ids of the accepted messages, in the order of their answers.

    ``answered`` is how many answers came, refusals and repetitions included.
    """

    def __init__(self, chance: random.Random) -> None:
        self.all: list[Injection] = []
        self.accepted: list[str] = []
        self.answered = 0
        self._chance = chance
        self._unanswered: list[Injection] = []
        self._then_at = 0
        self._then: Callable[[], None]

    def next(self) -> Injection:
        """One whose answer never came and that has a key, one to be repeated, or a new one."""
        if self._unanswered:
            return self._unanswered.pop()
        keyed = self._chance.random() < KEYED
        if keyed and self.all and self._chance.random() < REPEATED:
            earlier = self._chance.choice(self.all)
            if earlier.key is not None:
                return earlier
        return self.add(self._new(keyed=keyed))

    def _new(self, *, keyed: bool) -> Injection:
        tag = f"t{len(self.all)}"
        to, payload, expected = self._chance.choice(KINDS)(tag, self._chance)
        return Injection(tag, to, payload, frozenset(expected), f"key-{tag}" if keyed else None)

    def later(self, injection: Injection) -> None:
        """Send this one before anything else."""
        self._unanswered.append(self.add(injection))

    def add(self, injection: Injection) -> Injection:
        """Add this one."""
        self.all.append(injection)
        return injection

    async def send(self, injection: Injection, client: Client) -> None:
        """Send it once. Raises ``Gone``; one with a key will then be sent again."""
        injection.sent += 1
        try:
            answer = await client.inject(injection.to, injection.payload, injection.key)
        except Gone:
            if injection.key is not None and not injection.is_acknowledged:
                self._unanswered.append(injection)
            raise
        self.answered += 1
        if self.answered == self._then_at:
            self._then()
        if answer.status == CONFLICT and answer.json["error"]["code"] == "request_in_progress":
            return
        if answer.status == ACCEPTED and not injection.is_acknowledged:
            self.accepted.append(answer.json["message_id"])
        injection.answers.append(answer)

    async def send_many(self, count: int, client: Client) -> None:
        """Send so many, a few at a time, for as long as the server lives."""
        left = iter(range(count))
        await asyncio.gather(*(self._send_each(lambda: next(left, None), client) for _ in range(WORKERS)))

    async def _send_each(self, take: Callable[[], int | None], client: Client) -> None:
        try:
            while take() is not None:
                await self.send(self.next(), client)
        except Gone:
            return

    def after_answers(self, count: int, then: Callable[[], None]) -> None:
        """Call ``then`` once so many more answers have come; what was to be called before that is not."""
        self._then_at, self._then = self.answered + count, then

    async def send_unanswered(self, client: Client) -> None:
        """Send what has a key and no answer yet."""
        while self._unanswered:
            await self.send(self._unanswered.pop(), client)
