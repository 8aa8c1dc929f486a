"""Context variables: what a handler sets is in force wherever code of its handling runs."""

from __future__ import annotations

from tests.flows.stage import at_gate, open_gate, play, until
from tests.flows.world import MakeWorld

SOURCE = """
from contextvars import ContextVar

WHO = ContextVar("who", default="nobody")

@dataclass
class Signed:
    text: str = ""

    def __post_init__(self):
        TRACE.append((self.text, WHO.get()))

async def signs(payload: Ask, metadata: HandlerMetadata):
    WHO.set(payload.text)
    answer = Signed(payload.text)
    await gate("end")
    return HandlerResponse(answer, to="reads")

async def reads(payload: Signed, metadata: HandlerMetadata):
    await gate("read")
"""
LISTENERS = {
    "signs": {"peers": ["reads"], "max_concurrent": 2},
    "reads": {"payload_class": "Signed", "max_concurrent": 2},
}


async def test_answers_that_are_decided_together_are_each_made_in_the_context_of_their_handler(
    world: MakeWorld,
) -> None:
    async with world(SOURCE, LISTENERS).running() as o:
        for name in ("ann", "bob"):
            await o.inject("signs", {"text": name})
        made = play(o)["TRACE"]
        await until(lambda: len(made) == 2)
        open_gate(o, "end")  # both go on in the same iteration of the loop
        await at_gate(o, "read")
        assert made[2:] == [("ann", "ann"), ("bob", "bob")]
