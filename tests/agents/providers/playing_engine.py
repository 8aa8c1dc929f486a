"""An engine that plays answers: the twin of llama.cpp, for what the provider ``local`` owes around it."""

from __future__ import annotations

import json
from collections.abc import Callable
from threading import Event
from typing import Any

from tests.agents.peer import chat
from tests.agents.peer.answers import Answer

TICK_SECONDS = 0.005


class PlayingEngine:
    """Plays the answers in turn, each as often as it says, chunk by chunk. See ``Engine``."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[dict[str, Any]] = []
        self.is_asked = Event()
        self.is_free = Event()
        self.is_closed = False

    def answer(self, body: str, hear: Callable[[str], bool]) -> None:
        """Play the next one. One that hangs asks on and on whether that was enough."""
        self.asked.append(json.loads(body))
        self.is_free.clear()
        self.is_asked.set()
        self._play(self._next(), hear)
        self.is_free.set()

    def close(self) -> None:
        """See ``Engine``."""
        self.is_closed = True

    def _next(self) -> Answer:
        answer = self.answers[0]
        if answer.times:
            self.answers.pop(0)
        return answer

    def _play(self, answer: Answer, hear: Callable[[str], bool]) -> None:
        if answer.body is not None:
            raise ValueError(answer.body.decode())
        for number, chunk in enumerate(_chunks(answer, self.asked[-1]), 1):
            while answer.hang_after is not None and number > answer.hang_after:
                if hear("{}"):
                    return
                Event().wait(TICK_SECONDS)
            if number == answer.cut_after or hear(chunk):
                return


def _chunks(answer: Answer, asked: dict[str, Any]) -> list[str]:
    if answer.status != 200:
        return [json.dumps({"error": {"code": answer.status, "message": answer.error}})]
    events = [event.decode().removeprefix("data: ").strip() for event in chat.events(answer, asked)]
    return events[:-1]
