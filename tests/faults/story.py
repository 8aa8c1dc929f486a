"""A small story for the oracle: true as it is told, and easy to tell wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import orjson

from tests.faults.client import Answer
from tests.faults.follower import Follower
from tests.faults.ledger import Ledger
from tests.faults.oracle import Evidence, Line, judge
from tests.faults.taste import Taste
from tests.faults.wishes import Wish

THREAD: Final = "thr"
ROOT: Final = "m1"


def accepted_as(message: str, position: int) -> Answer:
    """What an injection is answered with."""
    return Answer(202, orjson.dumps({"thread_id": THREAD, "message_id": message, "position": position}))


class Story:
    """One wish that pays: a message with an unsafe effect and one to the console; as events, before any are read."""

    def __init__(self) -> None:
        accepted = [accepted_as(ROOT, 3) for _ in range(2)]
        self.wish = Wish("t0", "payer", {"tag": "t0"}, frozenset({("paid", 0, "?")}), "key-t0", 2, accepted)
        self.wishes = [self.wish]
        self.lines = [Line("m1/charge", "t0", "charge")]
        self.killed: set[str] = set()
        self.events: list[dict[str, Any]] = []
        self.add("organism_started", clean=True)
        self.add("thread_created")
        self.sent(ROOT, "console", "payer", {"tag": "t0", "part": 0})
        self.add("message_started", message=ROOT, agent="payer")
        self.step = {"message": ROOT, "agent": "payer", "step": 1, "kind": "effect"}
        self.add("step_started", effect="unsafe", key="charge", **self.step)
        self.add("step_recorded", **self.step)
        self.sent("m2", "payer", "console", {"tag": "t0", "kind": "paid", "part": 0, "value": "x"})
        self.add("message_handled", message="m2", agent="console", outcome="delivered")
        self.add("message_handled", message=ROOT, agent="payer", outcome="done")
        self.add("thread_completed")
        self.follower = Follower(Taste("everything"))

    def add(self, kind: str, content: Any = None, /, **fields: Any) -> None:
        """One more event at the end."""
        event = {
            "position": len(self.events) + 1,
            "type": kind,
            "thread_id": THREAD,
            "data": fields,
            "content": content,
        }
        self.events.append(event)

    def sent(self, message: str, sender: str, to: str, payload: Any) -> None:
        """One more message at the end."""
        self.add("message_sent", payload, message=message, **{"from": sender, "to": to})

    def drop(self, kind: str, /, **fields: Any) -> None:
        """Take the events of this kind with these fields out, and close the gap."""
        kept = [one for one in self.events if one["type"] != kind or not fields.items() <= one["data"].items()]
        self.events = [{**event, "position": number} for number, event in enumerate(kept, 1)]

    def judged(self, sabotage: Callable[[Story], object]) -> set[str]:
        """The laws that are broken after ``sabotage``. The follower saw what was there before it."""
        ledger = Ledger()
        ledger.take(self.events)
        self.follower.frames = ledger.frames(self.follower.taste, ledger.head)
        self.follower.position = ledger.head
        sabotage(self)
        ledger = Ledger()
        ledger.take(self.events)
        found = judge(Evidence(self.wishes, ledger, self.lines, [self.follower], frozenset(self.killed)))
        return {sentence.partition(":")[0] for sentence in found}
