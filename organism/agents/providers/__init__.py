"""The port to models, and how a provider reports a failure."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Final, Literal, Protocol

from organism.model.completion import CompleteCode, ModelRequest, Part

Fault = Literal[
    "unauthorized", "rejected", "too_long", "withheld", "rate_limited", "unavailable", "timeout", "malformed"
]
CODES: Final[Mapping[Fault, CompleteCode]] = {
    "rejected": "upstream_refused",
    "withheld": "upstream_refused",
    "too_long": "context_length_exceeded",
    "rate_limited": "rate_limit_exceeded",
    "timeout": "upstream_timeout",
}
"""The API's code for each fault; any other fault is the operator's or the provider's: ``upstream_error``."""


class ProviderError(Exception):
    """A call failed. The text says what happened and what to do; it holds no key and no prompt.

    ``unauthorized`` is a wrong or missing key, ``rejected`` a request that the provider refuses, ``too_long`` one that
    does not fit the model's window, ``withheld`` one whose answer its content filter does not let through,
    ``malformed`` an answer that cannot be understood. The others may be tried again, after ``retry_after_s`` if it is
    given. ``is_operators``: the fault is in the setup of this organism, not in the request.
    """

    def __init__(
        self, fault: Fault, message: str, retry_after_s: float | None = None, *, is_operators: bool = False
    ) -> None:
        super().__init__(message)
        self.fault: Fault = fault
        self.message = message
        self.retry_after_s = retry_after_s
        self.is_operators = is_operators

    @property
    def code(self) -> CompleteCode:
        """The API's code for it."""
        return "upstream_error" if self.is_operators else CODES.get(self.fault, "upstream_error")

    @property
    def may_retry(self) -> bool:
        return self.fault in {"rate_limited", "unavailable", "timeout"}


class Provider(Protocol):
    """One configured model. A provider makes one attempt a call; retries are the gateway's."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[Part, None]:
        """The parts as they come, ``Finish`` last. Closing it ends the call. Raises ``ProviderError``."""

    async def close(self) -> None:
        """Close the connections; nothing is asked afterwards."""
