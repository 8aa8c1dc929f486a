"""The contract of a provider (organism/agents/providers): what all owe, and those whose answers can be scripted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Protocol, cast

import pytest

from organism.agents.providers import Fault, Provider, ProviderError
from organism.agents.providers import scripted as script
from organism.agents.providers.anthropic import AnthropicProvider
from organism.agents.providers.offline import Offline
from organism.agents.providers.openai import OpenAIProvider
from organism.agents.providers.scripted import Scripted
from organism.model.completion import Finish, TextDelta, ThoughtDelta, ToolCall, Usage
from tests.agents.peer.answers import Answer, Called
from tests.agents.peer.steering import Peer
from tests.agents.providers.asking import Came, ask, gathered, request, tool

PATIENCE_SECONDS = 20
SEARCH = tool("search", "Looks things up.", words={"type": "string"})


class ScriptedProvider(Protocol):
    """A provider in the making: tell it what to answer, then ask it."""

    async def answers(self, *answers: Answer) -> Provider:
        """The provider, which will give these answers in turn."""

    async def until_asked(self, asking: asyncio.Future[Any]) -> None:
        """Wait until the call is under way."""

    async def is_free(self) -> None:
        """Wait until the call that was given up holds nothing any more."""


class Asked:
    """A provider that asks the peer."""

    def __init__(self, peer: Peer, make: Callable[..., Provider]) -> None:
        self.peer = peer
        self.provider = make(self.peer.url)

    async def answers(self, *answers: Answer) -> Provider:
        await self.peer.script(*answers)
        return self.provider

    async def until_asked(self, asking: asyncio.Future[Any]) -> None:
        await self.peer.until(requests=1)

    async def is_free(self) -> None:
        await self.peer.until(gone=1)


class Script:
    """A provider with a script."""

    def __init__(self) -> None:
        self.provider: Provider = Scripted([])

    async def answers(self, *answers: Answer) -> Provider:
        self.provider = Scripted([_scripted(answer) for answer in answers])
        return self.provider

    async def until_asked(self, asking: asyncio.Future[Any]) -> None:
        await asyncio.wait({asking}, timeout=0.01)

    async def is_free(self) -> None:
        pass


def _scripted(answer: Answer) -> script.Answer:
    """The answer in the words of a script."""
    calls = tuple(
        script.ScriptedCall(call.name, {}, call.arguments, call.id)
        if isinstance(call.arguments, str)
        else script.ScriptedCall(call.name, call.arguments, None, call.id)
        for call in answer.calls
    )
    used = script.ScriptedUsage(answer.input_tokens, answer.output_tokens)
    return script.Answer(
        text=answer.text,
        thought=answer.thought,
        calls=calls,
        finish=FINISHES.get(answer.finish),
        usage=None if answer.input_tokens is None else used,
        fault=_fault(answer),
        chunk_chars=max(1, -(-len(answer.text) // answer.pieces)),
        times=answer.times or None,
    )


def _fault(answer: Answer) -> script.ScriptedFault | None:
    if answer.hang_after == 0:
        return script.ScriptedFault("hang")
    if answer.cut_after is not None:
        return script.ScriptedFault("cut")
    after = answer.headers.get("Retry-After")
    kind = FAULTS.get(answer.status)
    return None if kind is None else script.ScriptedFault(kind, retry_after_s=float(after) if after else None)


FINISHES: Mapping[str, Any] = {"length": "length", "max_tokens": "length"}
FAULTS: Mapping[int, Fault] = {401: "unauthorized", 400: "rejected", 429: "rate_limited", 503: "unavailable"}
PROVIDERS: dict[str, Callable[[Peer], ScriptedProvider]] = {
    "openai": lambda peer: Asked(peer, OpenAIProvider),
    "anthropic": lambda peer: Asked(peer, AnthropicProvider),
    "scripted": lambda _: Script(),
}
LENGTH = {"openai": "length", "anthropic": "max_tokens", "scripted": "length"}


class Unasked:
    """The provider that thinks of its answers itself."""

    provider = Offline()

    async def answers(self, *_: Answer) -> Provider:
        return self.provider

    async def until_asked(self, asking: asyncio.Future[Any]) -> None:
        await asyncio.wait({asking}, timeout=0.001)

    async def is_free(self) -> None:
        pass


ALL: dict[str, Callable[[Peer], ScriptedProvider]] = {**PROVIDERS, "offline": lambda _: Unasked()}


@pytest.fixture(params=ALL)
async def each(request: pytest.FixtureRequest, peer: Peer) -> AsyncIterator[ScriptedProvider]:
    made = ALL[request.param](peer)
    yield made
    await cast("Any", made).provider.close()


@pytest.fixture(params=PROVIDERS)
async def scripted(request: pytest.FixtureRequest, peer: Peer) -> AsyncIterator[ScriptedProvider]:
    made = PROVIDERS[request.param](peer)
    yield made
    await cast("Any", made).provider.close()


async def test_calls_come_before_the_usage_and_the_end(each: ScriptedProvider) -> None:
    provider = await each.answers(Answer(calls=(Called("calculator", {"expression": "2*21"}),)))
    calculator = tool("calculator", "Computes.", expression={"type": "string"})
    came = await ask(provider, "What is 2*21?", tools=[calculator])
    assert [type(part) for part in came.parts] == [ToolCall, Usage, Finish]
    assert (came.calls[0].name, came.finish) == ("calculator", "tool_calls")


async def test_any_call_can_be_closed_and_the_next_one_is_whole(each: ScriptedProvider) -> None:
    provider = await each.answers(Answer(text="Forty-two it is.", times=0))
    parts = cast("Any", provider.stream(request("What is 2*21?")))
    await anext(parts)
    await parts.aclose()
    with pytest.raises(StopAsyncIteration):
        await anext(parts)
    assert (await ask(provider, "What is 2*21?")).finish == "stop"


async def test_any_call_can_be_cancelled_and_the_next_one_is_whole(each: ScriptedProvider) -> None:
    provider = await each.answers(Answer(text="Forty-two it is.", times=0))
    asking = asyncio.ensure_future(gathered(provider.stream(request("What is 2*21?"))))
    await each.until_asked(asking)
    asking.cancel()
    await asyncio.wait({asking}, timeout=PATIENCE_SECONDS)
    assert asking.done()
    assert (await ask(provider, "What is 2*21?")).finish == "stop"


async def test_the_parts_come_in_order_and_the_end_comes_once_and_last(scripted: ScriptedProvider) -> None:
    calls = (Called("search", {"words": "a"}, "c1"), Called("search", {"words": "b"}, "c2"))
    provider = await scripted.answers(Answer(thought="Let me see.", text="I look it up.", calls=calls))
    came = await ask(provider, "What is a?", tools=[SEARCH])
    order = [type(part) for part in came.parts]
    assert list(dict.fromkeys(order)) == [ThoughtDelta, TextDelta, ToolCall, Usage, Finish]
    assert (order.count(Usage), order.count(Finish), order[-1]) == (1, 1, Finish)


async def test_what_is_said_comes_whole_and_in_pieces(scripted: ScriptedProvider) -> None:
    provider = await scripted.answers(
        Answer(thought="Schauen wir: ÄÖÜ 🎉.", text="Grüße aus Köln, 東京 und 🎉!", pieces=5)
    )
    came = await ask(provider, "Hello!")
    assert (came.thought, came.text) == ("Schauen wir: ÄÖÜ 🎉.", "Grüße aus Köln, 東京 und 🎉!")
    assert len([part for part in came.parts if isinstance(part, TextDelta)]) > 1
    assert came.finish == "stop"


async def test_calls_come_whole_each_under_its_own_id(scripted: ScriptedProvider) -> None:
    calls = (Called("search", {"words": "ä"}, "c1"), Called("search", {"words": "b"}, "c2"), Called("now", {}, "c3"))
    provider = await scripted.answers(Answer(calls=calls))
    came = await ask(provider, "Search!", tools=[SEARCH])
    assert came.calls == [
        ToolCall("c1", "search", {"words": "ä"}),
        ToolCall("c2", "search", {"words": "b"}),
        ToolCall("c3", "now", {}),
    ]
    assert came.finish == "tool_calls"


async def test_arguments_that_are_no_object_are_given_as_their_text(scripted: ScriptedProvider) -> None:
    provider = await scripted.answers(Answer(calls=(Called("search", "words: a", "c1"),)))
    came = await ask(provider, "Search!", tools=[SEARCH])
    assert came.calls == [ToolCall("c1", "search", None, "words: a")]


async def test_the_usage_is_what_the_server_says(scripted: ScriptedProvider) -> None:
    provider = await scripted.answers(Answer(text="Hi.", input_tokens=11, output_tokens=2))
    assert (await ask(provider, "Hello!")).usage == Usage(11, 2)


async def test_a_server_that_tells_no_usage_gets_none_ascribed(scripted: ScriptedProvider) -> None:
    provider = await scripted.answers(Answer(text="Hi.", input_tokens=None, output_tokens=None))
    assert (await ask(provider, "Hello!")).usage is None


async def test_an_answer_that_was_too_long_says_so(scripted: ScriptedProvider, request: pytest.FixtureRequest) -> None:
    reason = LENGTH[request.node.callspec.params["scripted"]]
    provider = await scripted.answers(Answer(text="And then", finish=reason))
    assert (await ask(provider, "Tell me all!")).finish == "length"


@pytest.mark.parametrize("status", FAULTS)
async def test_what_goes_wrong_is_a_fault_of_the_port(scripted: ScriptedProvider, status: int) -> None:
    provider = await scripted.answers(Answer(status=status, error="No."))
    with pytest.raises(ProviderError) as caught:
        await ask(provider, "Hello!")
    assert caught.value.fault == FAULTS[status]
    assert caught.value.may_retry is (status in {429, 503})


async def test_the_time_to_wait_is_passed_on(scripted: ScriptedProvider) -> None:
    provider = await scripted.answers(Answer(status=429, error="No.", headers={"Retry-After": "7"}))
    with pytest.raises(ProviderError) as caught:
        await ask(provider, "Hello!")
    assert caught.value.retry_after_s == 7


async def test_an_answer_that_is_cut_gives_its_beginning_and_a_fault(scripted: ScriptedProvider) -> None:
    provider = await scripted.answers(Answer(text="abcdefghij" * 3, pieces=10, cut_after=7))
    came = Came()
    with pytest.raises(ProviderError) as caught:
        await gathered(provider.stream(request("Hello!")), came)
    assert caught.value.fault == "unavailable"
    assert "abcdefghij".startswith(came.text[:10])
    assert came.text
    assert came.finish is None


async def test_a_model_that_says_nothing_is_waited_for_as_long_as_the_call_may_take(scripted: ScriptedProvider) -> None:
    provider = await scripted.answers(Answer(hang_after=0))
    with pytest.raises(ProviderError) as caught:
        await ask(provider, "Hello!", timeout_s=0.2)
    assert caught.value.fault == "timeout"


async def test_a_call_that_is_given_up_holds_no_connection(scripted: ScriptedProvider) -> None:
    provider = await scripted.answers(Answer(text="abcdefghij" * 3, pieces=10, hang_after=5), Answer(text="Hi."))
    parts = cast("Any", provider.stream(request("Hello!")))
    await anext(parts)
    await parts.aclose()
    await asyncio.wait_for(scripted.is_free(), PATIENCE_SECONDS)
    assert (await ask(provider, "Hello!")).text == "Hi."


async def test_a_cancelled_call_ends_at_once_and_holds_no_connection(scripted: ScriptedProvider) -> None:
    provider = await scripted.answers(Answer(hang_after=0), Answer(text="Hi."))
    asking = asyncio.ensure_future(gathered(provider.stream(request("Hello!"))))
    await scripted.until_asked(asking)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asking, PATIENCE_SECONDS)
    await asyncio.wait_for(scripted.is_free(), PATIENCE_SECONDS)
    assert (await ask(provider, "Hello!")).text == "Hi."


async def test_calls_at_once_keep_their_parts_apart(scripted: ScriptedProvider) -> None:
    texts = [f"answer {number} " * 20 for number in range(8)]
    provider = await scripted.answers(*(Answer(text=text, pieces=30) for text in texts))
    came = await asyncio.gather(*(ask(provider, f"question {number}") for number in range(8)))
    assert sorted(each.text for each in came) == sorted(texts)


async def test_nothing_is_asked_before_the_first_part_is_wanted(scripted: ScriptedProvider) -> None:
    provider = await scripted.answers(Answer(text="Hi."))
    unread = cast("Any", provider.stream(request("Hello!")))
    await unread.aclose()
    assert (await ask(provider, "Hello!")).text == "Hi."


async def test_an_error_is_raised_once_and_then_the_call_is_over(scripted: ScriptedProvider) -> None:
    provider = await scripted.answers(Answer(status=503, error="No."), Answer(text="Hi."))
    parts = provider.stream(request("Hello!"))
    with pytest.raises(ProviderError):
        await anext(parts)
    with pytest.raises(StopAsyncIteration):
        await anext(parts)
    assert (await ask(provider, "Hello!")).text == "Hi."
