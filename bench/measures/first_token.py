"""How long a model's first token takes, beside the vendor's bare SDK: the same request to the same server, by turns.

The server is the one of the tests (``tests/agents/peer``), a process of its own, whose tokens are 20 ms apart.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import openai
import uvloop

from bench.load import WARM_UP_SECONDS, Measurement, arguments, percentiles_us
from organism.agents.providers.openai import OpenAIProvider
from organism.model.completion import ModelRequest, TextDelta
from tests.agents.peer.answers import Answer
from tests.agents.peer.steering import Peer, peer_running, steering_client

MESSAGES = ({"role": "system", "content": "Be brief. " * 50}, {"role": "user", "content": "Hello!"})
ANSWER = Answer(text="Hello", pieces=1, drip_s=0.02, times=0)

Call = Callable[[], Awaitable[None]]


class Calls:
    """Both calls, to the first token."""

    def __init__(self, url: str) -> None:
        self.provider = OpenAIProvider(url, "sk-of-the-bench")
        self.sdk = openai.AsyncOpenAI(api_key="sk-of-the-bench", base_url=url, max_retries=0)

    async def ours(self) -> None:
        parts = cast("Any", self.provider.stream(ModelRequest("m", MESSAGES)))
        while not isinstance(await anext(parts), TextDelta):
            pass
        await parts.aclose()

    async def bare(self) -> None:
        stream = await self.sdk.chat.completions.create(
            model="m",
            messages=cast("Any", MESSAGES),
            stream=True,
            stream_options={"include_usage": True},
            temperature=0,
        )
        async for chunk in stream:
            if chunk.choices and chunk.choices[0].delta.content:
                break
        await stream.close()


async def by_turns(calls: Sequence[Call], seconds: float) -> list[list[float]]:
    """What each call took, in seconds, after a warm-up."""
    taken: list[list[float]] = [[] for _ in calls]
    begin = time.perf_counter() + WARM_UP_SECONDS
    while (started := time.perf_counter()) < begin + seconds:
        for call, mine in zip(calls, taken, strict=True):
            called = time.perf_counter()
            await call()
            if started > begin:
                mine.append(time.perf_counter() - called)
    return taken


async def measure(seconds: float, place: str) -> Measurement:
    async with steering_client() as steering:
        await Peer(place, steering).script(ANSWER)
        calls = Calls(f"{place}/v1")
        for call in (calls.ours, calls.bare):
            await call()  # imports the packages
        ours, bare = await by_turns((calls.ours, calls.bare), seconds)
        await calls.provider.close()
        await calls.sdk.close()
    p50, bare_p50 = percentiles_us(ours)["p50_us"], percentiles_us(bare)["p50_us"]
    return Measurement("first token", "ms", p50 / 1e3, {"p50_us": p50, "bare_us": bare_p50})


if __name__ == "__main__":
    asked = arguments(__doc__)
    with peer_running() as peer:
        print(uvloop.run(measure(asked.seconds, peer)).line())
