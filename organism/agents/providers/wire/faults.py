"""What went wrong with a call, as ``ProviderError``: which fault it is, what came, and what to do."""

from __future__ import annotations

import email.utils
import math
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from organism.agents.provider import Fault, ProviderError
from organism.agents.providers.wire import said
from organism.agents.providers.wire.access import Access
from organism.agents.providers.wire.said import Said
from organism.model.completion import ModelRequest

BY_STATUS: Final[Mapping[int, Fault]] = {
    401: "unauthorized",
    403: "unauthorized",
    408: "timeout",
    409: "unavailable",
    425: "unavailable",
    429: "rate_limited",
    504: "timeout",
    524: "timeout",
}
BY_NAME: Final[Mapping[str, Fault]] = {
    "authentication_error": "unauthorized",
    "invalid_api_key": "unauthorized",
    "permission_error": "unauthorized",
    "rate_limit_error": "rate_limited",
    "rate_limit_exceeded": "rate_limited",
    "too_many_requests": "rate_limited",
    "timeout_error": "timeout",
    "invalid_request_error": "rejected",
    "BadRequestError": "rejected",
    "not_found_error": "rejected",
    "request_too_large": "rejected",
    "context_length_exceeded": "rejected",
    "exceed_context_size_error": "rejected",
    "billing_error": "rejected",
    "insufficient_quota": "rejected",
}
OUT_OF_CREDIT: Final = frozenset({"insufficient_quota", "billing_error"})
"""These come with 429, but no wait helps."""
PAYMENT_REQUIRED, NOT_FOUND, TOO_MANY, LOWEST_ERROR, LOWEST_SERVER_ERROR = 402, 404, 429, 400, 500


class Refused(Exception):
    """The server answered with another status than success."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(str(status))
        self.status = status
        self.headers = headers
        self.said = said.read(body)


@dataclass(frozen=True, slots=True)
class Faults:
    """Makes the errors of one call. ``now`` tells the time, in seconds since 1970."""

    access: Access
    request: ModelRequest
    now: Callable[[], float]

    def refused(self, refusal: Refused) -> ProviderError:
        """What another status than success means."""
        status, said_ = refusal.status, refusal.said
        fault = fault_of(status, said_)
        wait_s = retry_after_s(refusal.headers, self.now()) if fault not in {"unauthorized", "rejected"} else None
        if fault == "unauthorized":
            return ProviderError(fault, self._unauthorized(status))
        happened = f"{self.access.host} {_happening(fault)} ({', '.join((str(status), *self._names(said_)))})"
        return ProviderError(fault, f"{happened}{self._quoted(said_)}.{self._hint(status, fault, wait_s)}", wait_s)

    def told(self, said_: Said) -> ProviderError:
        """What an error in the middle of an answer means."""
        status = int(said_.code) if said_.code.isdecimal() and len(said_.code) <= len("500") else 0
        fault = fault_of(status, said_) if status >= LOWEST_ERROR else _by_name(said_) or "unavailable"
        if fault == "unauthorized":
            return ProviderError(fault, self._unauthorized(status))
        names = self._names(said_)
        named = f" ({', '.join(names)})" if names else ""
        return ProviderError(fault, f"{self.access.host} broke off its answer{named}{self._quoted(said_)}.")

    def unreachable(self, error: BaseException) -> ProviderError:
        """No connection."""
        why = "does not show a certificate that is trusted here" if _is_untrusted(error) else "cannot be reached"
        return ProviderError("unavailable", f"{self.access.host} {why}; is it running, and is `base_url` right?")

    def hung_up(self) -> ProviderError:
        """The connection broke before there was an answer."""
        return ProviderError("unavailable", f"{self.access.host} hung up before it answered.")

    def late(self, what: str, seconds: float) -> ProviderError:
        """The server took too long."""
        return ProviderError("timeout", f"{self.access.host} {what} within {seconds:.4g} s.")

    def cut(self) -> ProviderError:
        """The answer ended before its end."""
        return ProviderError("unavailable", f"The answer of {self.access.host} broke off in the middle.")

    def malformed(self, what: str) -> ProviderError:
        """The answer cannot be understood."""
        return ProviderError("malformed", f"{self.access.host} answered {what}; is `base_url` that of such an API?")

    def unsendable(self) -> ProviderError:
        """The request is no JSON."""
        return ProviderError("rejected", "The request holds what JSON cannot say, such as half a character.")

    def _unauthorized(self, status: int) -> str:
        told = f" ({status})" if status else ""
        if self.access.credential() is None:
            return f"{self.access.host} wants a key{told}: {self.access.how_to_set}."
        return f"{self.access.host} does not take the key{told}: {self.access.how_to_set}."

    def _names(self, said_: Said) -> list[str]:
        return [name for name in said_.names if said.quotable(name, self.request, self.access.key)]

    def _quoted(self, said_: Said) -> str:
        """What the server says, behind what happened."""
        text = said.quotable(said_.text, self.request, self.access.key)
        return f": {text.rstrip('.')}" if text else ""

    def _hint(self, status: int, fault: Fault, wait_s: float | None) -> str:
        if status == PAYMENT_REQUIRED or (status == TOO_MANY and fault == "rejected"):
            return " The account has no credit left."
        if status == NOT_FOUND:
            return f" Is there a model `{self.request.model}`, and does `base_url` lead to the API (as …/v1 does)?"
        if status < LOWEST_ERROR:
            return " Set `base_url` to the address that it leads to."
        return f" It asks to wait {wait_s:.4g} s." if wait_s else ""


def fault_of(status: int, said_: Said) -> Fault:
    """The fault behind a status."""
    if OUT_OF_CREDIT.intersection(said_.names):
        return "rejected"
    return BY_STATUS.get(status) or ("unavailable" if status >= LOWEST_SERVER_ERROR else "rejected")


def _by_name(said_: Said) -> Fault | None:
    return next((BY_NAME[name] for name in said_.names if name in BY_NAME), None)


def _happening(fault: Fault) -> str:
    return {"rate_limited": "is asked too often", "rejected": "refused the request"}.get(fault, "failed")


def retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """How long the server asks to wait: milliseconds, seconds or a date; None if it does not say it."""
    if (milliseconds := _number(headers.get("retry-after-ms", ""))) is not None:
        return milliseconds / 1000
    told = headers.get("retry-after", "")
    if (seconds := _number(told)) is not None:
        return seconds
    try:
        return max(0.0, email.utils.parsedate_to_datetime(told).timestamp() - now)
    except (ValueError, OverflowError, OSError):
        return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _is_untrusted(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False
