"""What a model's call costs beside a bare one: the same request to the same server, by turns, in one process.

The server is the one that tests ask (``tests/agents/peer``), in a process of its own. ``overhead`` asks for a short
answer that is there at once; ``first`` for one whose words take 20 ms each, and waits for the first of them. The bare
call is a POST by the HTTP client alone, which reads the answer and looks at nothing.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

import httpx2
import orjson
import uvloop

from bench.load import WARM_UP_SECONDS, Measurement, arguments, percentiles_us
from organism.agents.providers.openai import OpenAIProvider
from organism.agents.providers.wire import chat
from organism.model.completion import ModelRequest, TextDelta
from tests.agents.peer.answers import Answer
from tests.agents.peer.steering import NO_TLS, Peer, peer_running, steering_client

REQUEST = ModelRequest("m", ({"role": "system", "content": "Be brief. " * 50}, {"role": "user", "content": "Hello!"}))
ANSWER = Answer(text="Hello, and welcome to the society. How can I help you?", pieces=8, times=0)
WORD_S = 0.02

Call = Callable[[], Awaitable[None]]


class Calls:
    """Both calls, to the end or to the first word."""

    def __init__(self, url: str, client: httpx2.AsyncClient) -> None:
        self.provider = OpenAIProvider(url, "sk-of-the-bench")
        self._client = client
        self._url = f"{url}{chat.PATH}"

    async def ours(self) -> None:
        async for _ in self.provider.stream(REQUEST):
            pass

    async def bare(self) -> None:
        body = orjson.dumps(chat.body(REQUEST, frozenset()))
        async with self._client.stream("POST", self._url, content=body) as answer:
            async for _ in answer.aiter_bytes():
                pass

    async def ours_first(self) -> None:
        parts = cast("Any", self.provider.stream(REQUEST))
        while not isinstance(await anext(parts), TextDelta):
            pass
        await parts.aclose()

    async def bare_first(self) -> None:
        body = orjson.dumps(chat.body(REQUEST, frozenset()))
        async with self._client.stream("POST", self._url, content=body) as answer:
            async for chunk in answer.aiter_bytes():
                if b"Hello" in chunk:
                    return


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


async def measure(what: str, seconds: float, place: str) -> Measurement:
    async with httpx2.AsyncClient(trust_env=False, verify=NO_TLS) as client, steering_client() as steering:
        calls = Calls(f"{place}/v1", client)
        await calls.ours()  # imports the package
        if what == "first":
            await Peer(place, steering).script(Answer(text="Hello", pieces=1, drip_s=WORD_S, times=0))
            ours, bare = await by_turns((calls.ours_first, calls.bare_first), seconds)
        else:
            await Peer(place, steering).script(ANSWER)
            ours, bare = await by_turns((calls.ours, calls.bare), seconds)
        await calls.provider.close()
    p50, bare_p50 = percentiles_us(ours)["p50_us"], percentiles_us(bare)["p50_us"]
    return Measurement("model call", "ms", (p50 - bare_p50) / 1e3, {"p50_us": p50, "bare_us": bare_p50})


if __name__ == "__main__":
    asked = arguments(__doc__, what=("overhead", "first"))
    with peer_running() as peer:
        print(uvloop.run(measure(asked.what, asked.seconds, peer)).line())
