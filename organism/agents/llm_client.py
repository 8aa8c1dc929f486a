"""Calls a model from a program outside of organisms; handlers call ``metadata.complete`` instead.

With ``OPENAI_API_KEY`` or ``OPENAI_BASE_URL`` set, OpenAI or a compatible server answers; else the offline model. The
model's name is sent as it is. Each call is one attempt, and nothing is kept between calls.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from typing import Any, Final, TypeVar

import structlog

from organism.agents.providers import Provider, ProviderError
from organism.agents.providers.offline import Offline
from organism.agents.providers.openai import OpenAIProvider
from organism.model.completion import ChatMessage, Completion, ModelRequest, Part, Usage, added_up
from organism.model.money import NOTHING, exact, is_amount

API_KEY: Final = "OPENAI_API_KEY"
BASE_URL: Final = "OPENAI_BASE_URL"
TIMEOUT_S: Final = 120.0

Result = TypeVar("Result")


def call(
    model: str,
    messages: Sequence[ChatMessage],
    response_format: Mapping[str, Any] | None = None,
    temperature: float = 0.0,
    max_tokens: int | None = None,
) -> Completion:
    """The model's answer; in an event loop use ``acall``.

    ``response_format`` is a JSON Schema, or the API's own form. Raises ``ProviderError``, and ``ValueError`` for wrong
    arguments.
    """
    return _run(acall(model, messages, response_format, temperature, max_tokens))


async def acall(
    model: str,
    messages: Sequence[ChatMessage],
    response_format: Mapping[str, Any] | None = None,
    temperature: float = 0.0,
    max_tokens: int | None = None,
) -> Completion:
    """``call`` for programs with an event loop."""
    parts = [part async for part in stream(model, messages, response_format, temperature, max_tokens)]
    cost = next((part.cost_usd for part in parts if isinstance(part, Usage)), None)
    upstream = exact(cost) if cost is not None and is_amount(cost) else None
    return added_up(
        parts,
        model=model,
        cost_usd=NOTHING if upstream is None else upstream,
        cost_source="zero" if upstream is None else "upstream",
        served_by="openai" if any(_configured()) else "offline",
    )


async def stream(
    model: str,
    messages: Sequence[ChatMessage],
    response_format: Mapping[str, Any] | None = None,
    temperature: float = 0.0,
    max_tokens: int | None = None,
) -> AsyncGenerator[Part, None]:
    """The parts of the answer as they come, ``Finish`` last. Raises as ``call`` does."""
    _check(model, messages, response_format, max_tokens)
    request = ModelRequest(
        model=model,
        messages=tuple(messages),
        response_format=response_format,
        temperature=temperature,
        max_tokens=max_tokens,
        timeout_s=TIMEOUT_S,
    )
    key, url = _configured()
    provider: Provider = OpenAIProvider(url, key, API_KEY if key else None) if key or url else Offline()
    try:
        async with aclosing(provider.stream(request)) as parts:
            async for part in parts:
                if isinstance(part, Usage):
                    _logger().info("llm_called", model=model, input=part.input_tokens, output=part.output_tokens)
                yield part
    except ProviderError as error:
        _logger().warning("llm_call_failed", model=model, fault=error.fault, error=error.message)
        raise
    finally:
        await provider.close()


def _check(model: Any, messages: Any, response_format: Any, max_tokens: Any) -> None:
    """Raise ``ValueError`` for arguments that no provider takes."""
    if not isinstance(model, str) or not model:
        raise ValueError(f"Expected the name of a model, such as 'gpt-4.1-mini'; came {model!r}.")
    is_list = isinstance(messages, Sequence) and bool(messages)
    if not is_list or not all(isinstance(each, Mapping) and isinstance(each.get("role"), str) for each in messages):
        raise ValueError("Expected `messages` as a list of dicts, each with `role` and what it says, at least one.")
    if response_format is not None and not isinstance(response_format, Mapping):
        raise ValueError(f"Expected `response_format` as a dict, a JSON Schema; came {response_format!r}.")
    if max_tokens is not None and (not isinstance(max_tokens, int) or max_tokens < 1):
        raise ValueError(f"Expected `max_tokens` as a whole number from 1; came {max_tokens!r}.")


def _logger() -> Any:
    return structlog.get_logger("organism.llm_client")


def _configured() -> tuple[str | None, str | None]:
    """The key and the address from the environment; without either the offline model answers."""
    key, url = (os.environ.get(name, "").strip() or None for name in (API_KEY, BASE_URL))
    return key, url


def _run(answer: Coroutine[Any, Any, Result]) -> Result:
    """Run it in a new loop; in a new thread too if a loop runs here already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(answer)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, answer).result()
