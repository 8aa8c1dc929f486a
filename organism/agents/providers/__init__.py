"""The port to models, and how a provider reports a failure."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Literal, Protocol

from organism.model.completion import ModelRequest, Part

Fault = Literal["unauthorized", "rejected", "rate_limited", "unavailable", "timeout", "malformed"]


class ProviderError(Exception):
    """A call failed. The text says what happened and what to do; it holds no key and no prompt.

    ``unauthorized`` is a wrong or missing key, ``rejected`` a request that the provider refuses, ``malformed`` an
    answer that cannot be understood. The others may be tried again, after ``retry_after_s`` if it is given.
    """

    def __init__(self, fault: Fault, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.fault: Fault = fault
        self.message = message
        self.retry_after_s = retry_after_s

    @property
    def may_retry(self) -> bool:
        return self.fault in {"rate_limited", "unavailable", "timeout"}


class Provider(Protocol):
    """One configured model. A provider makes one attempt a call; retries are the gateway's."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[Part, None]:
        """The parts as they come, ``Finish`` last. Closing it ends the call. Raises ``ProviderError``."""

    async def close(self) -> None:
        """Close the connections; nothing is asked afterwards."""
