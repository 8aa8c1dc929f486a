"""A meddler: an operator who pauses agents and kills threads while others work."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from tests.faults.client import Client, Gone
from tests.faults.wishes import Wish

AGENTS: Final = ("second", "leaf", "worker", "payer", "asker")
ACTS: Final = 4
KILLS: Final = 0.5


class Meddler:
    """``killed`` are the threads of which the server said that they are killed."""

    def __init__(self, chance: random.Random) -> None:
        self.killed: set[str] = set()
        self._chance = chance

    async def meddle(self, api: Client, wishes: Sequence[Wish]) -> None:
        """A few acts, while the server lives."""
        try:
            for _ in range(ACTS):
                accepted = [wish for wish in wishes[-100:] if wish.is_acknowledged]
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
