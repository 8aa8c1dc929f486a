"""What models answered is found in the log again, and answered once more without them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from organism.agents.providers import ProviderError
from organism.agents.providers.replay import Recorded, Replay, prompt_digest, recorded
from organism.model.completion import ModelRequest
from tests.agents.providers.asking import gathered
from tests.flows.spender import says, scripted
from tests.flows.world import MakeWorld

THINKING = """
async def think(payload: Ask, metadata: HandlerMetadata):
    said = await metadata.complete([{"role": "user", "content": payload.text}], block="b")
    return HandlerResponse.respond(Told(said.text))
"""


async def _log_of(world: MakeWorld, *answers: Mapping[str, Any], asked: Sequence[str]) -> Recorded:
    """What is recorded in the log of a handler that asked this, one after the other."""
    made = scripted(world, *answers, source=THINKING)
    async with made.running() as o:
        for text in asked:
            await o.inject("ada", {"text": text}, wait=True)
        return await recorded(o.log)


def _prompt(text: str) -> ModelRequest:
    return ModelRequest("any", ({"role": "user", "content": text},))


async def test_the_answers_of_a_log_are_found_by_what_was_asked(world: MakeWorld) -> None:
    once, twice = says("one", 3, 1, when="a", times=1), says("two", 3, 1, when="a")
    call = {"when": "b", "thought": "Hm.", "calls": [{"name": "look", "arguments": {"x": 1}}]}
    log = await _log_of(world, once, twice, call, asked=["a", "b", "a"])
    assert [answer.text for answer in log[prompt_digest(_prompt("a"))]] == ["one", "two"]
    came = await gathered(Replay(log).stream(_prompt("b")))
    assert (came.thought, [(each.name, each.input) for each in came.calls]) == ("Hm.", [("look", {"x": 1})])
    with pytest.raises(ProviderError):
        await gathered(Replay(log).stream(_prompt("c")))


async def test_a_text_that_was_shown_is_found_where_it_was_shown(world: MakeWorld) -> None:
    text = "A long answer that is shown while it comes, piece by piece. " * 5
    log = await _log_of(world, says(text), asked=["a"])
    assert [answer.text for answer in log[prompt_digest(_prompt("a"))]] == [text]


async def test_a_call_that_failed_is_no_answer(world: MakeWorld) -> None:
    log = await _log_of(world, {"fault": "rejected"}, asked=["a"])
    assert log == {}
