"""The errors of a call as ``ProviderError``; a server's own text is quoted only if it shows no key and no prompt."""

from __future__ import annotations

import email.utils
import math
import re
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Final
from urllib.parse import urlsplit

from organism.agents.providers import Fault, ProviderError
from organism.model.completion import CompleteCode, ModelRequest
from organism.model.redact import SHORTEST, Redactor

BY_STATUS: Final[Mapping[int, Fault]] = {
    **dict.fromkeys((401, 403), "unauthorized"),
    **dict.fromkeys((408, 504, 524), "timeout"),
    **dict.fromkeys((409, 425), "unavailable"),
    429: "rate_limited",
}
NAMES: Final[Mapping[Fault, str]] = {
    "unauthorized": "authentication_error invalid_api_key permission_error",
    "rate_limited": "rate_limit_error rate_limit_exceeded too_many_requests",
    "timeout": "timeout_error",
    "rejected": "invalid_request_error BadRequestError not_found_error request_too_large context_length_exceeded "
    "exceed_context_size_error billing_error insufficient_quota",
}
BY_NAME: Final[Mapping[str, Fault]] = {name: fault for fault, names in NAMES.items() for name in names.split()}
OUT_OF_CREDIT: Final = frozenset({"insufficient_quota", "billing_error"})
"""These come with 429, but waiting does not help."""
PAYMENT_REQUIRED, FORBIDDEN, NOT_FOUND, TOO_MANY = 402, 403, 404, 429
HAPPENING: Final[Mapping[Fault, str]] = {
    "rate_limited": "is asked too often",
    **dict.fromkeys(("rejected", "too_long"), "refused the request"),
}
LOWEST_REDIRECT, LOWEST_ERROR, LOWEST_SERVER_ERROR = 300, 400, 500

KEY_CHARACTERS: Final = frozenset(map(chr, range(0x21, 0x7F)))
SHOWN_CHARS: Final = 300
READ_CHARS: Final = 4000
REVEALING_WORDS: Final = 3
"""How many words in a row, found in both texts, count as quoted; so do two long words, or one with digits."""
REVEALING_CHARS: Final = 4
LONG_WORD_CHARS: Final = 5

_WORD: Final = re.compile(r"\w+")
_QUOTED: Final = re.compile(r"[\"'`\u201c\u2018\xab](.+?)[\"'`\u201d\u2019\xbb]")
_NAME: Final = re.compile(r"[\w.\[\]-]{1,80}")
_TOO_LONG: Final = re.compile(
    r"context[ _-]?(?:length|window|size|limit)|exceed_context|maximum (?:prompt|input|model|sequence) length"
    r"|(?:prompt|input|request|conversation) (?:is )?too long|too many (?:input )?tokens|reduce the length"
    r"|input token count|tokens? (?:limit|count)[^.]{0,40}exceed|exceed[^.]{0,40}(?:token limit|limit of \d+)"
    r"|tokens_limit_reached|`inputs`[^.]{0,40}tokens|more than max tokens",
    re.IGNORECASE,
)
"""How servers say that a request does not fit the model's window."""
_WITHHELD: Final = re.compile(
    r"content[ _-]?(?:filter|policy|management|moderation|violates)|moderation|usage polic|usage guidelines"
    r"|(?:input|prompt|content|request|messages?) (?:was|were|is|has been) flagged|data_?inspection"
    r"|inappropriate content|responsibleai",
    re.IGNORECASE,
)
"""How servers say that a content filter stopped the request or its answer."""


@dataclass(frozen=True, slots=True)
class Access:
    """A server's address and key. A missing key is an error only with ``key_env`` or ``needs_key``."""

    base_url: str
    key: str | None = field(default=None, repr=False)
    key_env: str | None = None
    needs_key: bool = False

    @property
    def host(self) -> str:
        """The server as errors name it: host and port, never a credential."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    def credential(self) -> str | None:
        """The key to send, if there is one. Raises ``ProviderError``."""
        key = (self.key or "").strip()
        if not key and (self.key_env or self.needs_key):
            raise ProviderError("unauthorized", f"There is no key for {self.host}: {self.how_to_set}.")
        if not KEY_CHARACTERS.issuperset(key):
            wrong = "has characters that no header takes; expected letters, digits and signs without spaces"
            raise ProviderError("unauthorized", f"The key for {self.host} {wrong}: {self.how_to_set}.")
        return key or None

    @property
    def how_to_set(self) -> str:
        return (
            f"set the variable {self.key_env} to a valid one and start again"
            if self.key_env
            else "put it into a variable and name that by `api_key_env`"
        )


@dataclass(frozen=True, slots=True)
class ServerError:
    """An error as the server reports it: its text, and its names for programs."""

    text: str = ""
    kind: str = ""
    code: str = ""
    param: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for name in (self.kind, self.code) if name))


class Refused(ProviderError):
    """The server answered with an error status; ``report`` is its own account."""

    def __init__(self, fault: Fault, message: str, wait_s: float | None, status: int, report: ServerError) -> None:
        super().__init__(fault, message, wait_s, is_operators=status < LOWEST_ERROR)
        self.status = status
        self.report = report

    @property
    def code(self) -> CompleteCode:
        """The API's code for it. An account without credit is a rate limit, as its server says."""
        return "rate_limit_exceeded" if self.status == TOO_MANY else super().code


@dataclass(frozen=True, slots=True)
class Failures:
    """Makes the errors of one call. ``now`` gives seconds since 1970."""

    access: Access
    request: ModelRequest
    now: Callable[[], float]

    def of(self, error: Exception, *, has_begun: bool, connect_s: float) -> ProviderError:
        """The error for an exception of an SDK or its connection."""
        from organism.agents.providers import transport

        if isinstance(error, ValueError | RecursionError):
            return self.malformed("with an event that is no JSON")
        cause = error if isinstance(error, transport.ERRORS) else error.__cause__
        if isinstance(cause, transport.Unreadable):
            return self.malformed(str(cause))
        if cause is not None:
            return self._broken(cause, connect_s, has_begun=has_begun)
        # Both SDKs call these alike. An error within an answer comes without a status, or with that of success.
        report = server_error(getattr(error, "body", None))
        if (status := getattr(error, "status_code", 0)) < LOWEST_REDIRECT:
            return self.reported(report)
        return self._refused(status, getattr(error, "response").headers, report)  # noqa: B009 - as above

    def _refused(self, status: int, headers: Mapping[str, str], report: ServerError) -> Refused:
        fault = _fault(status, report)
        if fault == "unauthorized":
            return Refused(fault, self._unauthorized(status), None, status, report)
        wait_s = _retry_after_s(headers, self.now()) if ProviderError(fault, "").may_retry else None
        text = f"{self.access.host} {HAPPENING.get(fault, 'failed')}{self._account(report, str(status))}"
        return Refused(fault, f"{text}{self._hint(status, fault, wait_s)}", wait_s, status, report)

    def reported(self, report: ServerError) -> ProviderError:
        """The error for a failure that the server reports inside its answer."""
        status = int(report.code) if report.code.isdecimal() and len(report.code) <= len("500") else 0
        by_name: Fault = next((BY_NAME[name] for name in report.names if name in BY_NAME), "unavailable")
        fault = _fault(status, report) if status >= LOWEST_ERROR else _in_words(by_name, report) or by_name
        if fault == "unauthorized":
            return ProviderError(fault, self._unauthorized(status))
        return ProviderError(fault, f"{self.access.host} broke off its answer{self._account(report)}")

    def late(self, what: str, seconds: float) -> ProviderError:
        return ProviderError("timeout", f"{self.access.host} {what} within {seconds:.4g} s.")

    def cut(self) -> ProviderError:
        return ProviderError("unavailable", f"The answer of {self.access.host} broke off in the middle.")

    def malformed(self, what: str) -> ProviderError:
        return ProviderError("malformed", f"{self.access.host} answered {what}; is `base_url` that of such an API?")

    def _broken(self, error: BaseException, connect_s: float, *, has_begun: bool) -> ProviderError:
        """The error for a connection that failed."""
        import httpx2

        if isinstance(error, httpx2.ConnectTimeout):
            return self.late("could not be connected to", connect_s)
        if not isinstance(error, httpx2.ConnectError | ssl.SSLError):
            hung_up = ProviderError("unavailable", f"{self.access.host} hung up before it answered.")
            return self.cut() if has_begun else hung_up
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
            cause = cause.__cause__ or cause.__context__
        why = "cannot be reached" if cause is None else "does not show a certificate that is trusted here"
        return ProviderError("unavailable", f"{self.access.host} {why}; is it running, and is `base_url` right?")

    def _unauthorized(self, status: int) -> str:
        verb = "wants a key" if self.access.credential() is None else "does not take the key"
        return f"{self.access.host} {verb}{f' ({status})' if status else ''}: {self.access.how_to_set}."

    def _account(self, report: ServerError, *names: str) -> str:
        """The server's account: its names for the error in brackets, and its text if it may be shown."""
        names += tuple(name for name in report.names if quotable(name, self.request, self.access.key))
        text = quotable(report.text, self.request, self.access.key)
        named = f" ({', '.join(names)})" if names else ""
        return f"{named}: {text.rstrip('.')}." if text else f"{named}."

    def _hint(self, status: int, fault: Fault, wait_s: float | None) -> str:
        if status == PAYMENT_REQUIRED or (status == TOO_MANY and fault == "rejected"):
            return " The account has no credit left."
        if status == NOT_FOUND:
            return f" Is there a model `{self.request.model}`, and does `base_url` lead to the API (as …/v1 does)?"
        if status < LOWEST_ERROR:
            return " Set `base_url` to the address that it leads to."
        return f" It asks to wait {wait_s:.4g} s." if wait_s else ""


def _fault(status: int, report: ServerError) -> Fault:
    if OUT_OF_CREDIT.intersection(report.names):
        return "rejected"
    fault = BY_STATUS.get(status) or ("unavailable" if status >= LOWEST_SERVER_ERROR else "rejected")
    return _in_words("rejected" if status == FORBIDDEN else fault, report) or fault


def _in_words(fault: Fault, report: ServerError) -> Fault | None:
    """What the server's own words say of a refusal, where they say more than its status."""
    said = " ".join((report.text[:READ_CHARS], *report.names))
    if fault == "rejected" and _WITHHELD.search(said):
        return "withheld"
    return "too_long" if fault in {"rejected", "unavailable"} and _TOO_LONG.search(said) else None


def _retry_after_s(headers: Mapping[str, str], now: float) -> float | None:
    """How long the server asks to wait, given in milliseconds, seconds or as a date; None if it does not say."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        with suppress(ValueError):
            if math.isfinite(number := float(headers.get(name, ""))):
                return max(0.0, number / unit)
    try:
        return max(0.0, email.utils.parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - now)
    except (ValueError, OverflowError, OSError):
        return None


def server_error(body: object) -> ServerError:
    """The error in a body, JSON or text; servers agree on no form for it."""
    if isinstance(body, list):
        return server_error(body[0]) if body else ServerError()
    if isinstance(body, str):
        return ServerError(text="" if body.startswith(("<", "{", "[")) else body)  # a page, or JSON that was cut
    if not isinstance(body, Mapping):
        return ServerError()
    inner = body.get("error")
    if isinstance(inner, Mapping | str):
        return server_error(inner)
    text = next((body[key] for key in ("message", "detail", "msg") if isinstance(body.get(key), str)), "")
    return ServerError(text, *(_name(body.get(key)) for key in ("type", "code", "param")))


def _name(value: Any) -> str:
    """A name such as ``rate_limit_error``; anything else may be part of the prompt."""
    name = str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""
    return name if _NAME.fullmatch(name) else ""


def quotable(text: str, request: ModelRequest, key: str | None) -> str:
    """The server's text in one short line; empty if it repeats the key or the prompt."""
    line = "".join(sign if sign.isprintable() else " " for sign in text[:READ_CHARS])
    line = " ".join(line.split())
    if (key and _shows(line, key)) or _repeats(line, list(_texts(request.messages))):
        return ""
    line = Redactor([key] if key else []).text(line)
    return line if len(line) <= SHOWN_CHARS else f"{line[:SHOWN_CHARS]}…"


def _shows(line: str, key: str) -> bool:
    """Whether the line shows an end of the key, as servers tend to do. A short key is a placeholder, not a secret."""
    if len(key) < SHORTEST:
        return False
    shown = max(REVEALING_CHARS, len(key) // 8)
    return any(key[at : at + shown] in line for at in (0, max(0, len(key) - shown)))


def _repeats(line: str, prompt: Sequence[str]) -> bool:
    """Whether the line repeats or quotes so much of the prompt that it is no coincidence."""
    words = _words(line)
    prompt_words = f" {' '.join(word for text in prompt for word in _words(text))} "
    runs = [words[at : at + REVEALING_WORDS] for at in range(len(words) - REVEALING_WORDS + 1)]
    runs += [list(pair) for pair in pairwise(words) if min(map(len, pair)) >= LONG_WORD_CHARS]
    runs += [[word] for word in words if len(word) >= REVEALING_CHARS and any(map(str.isdigit, word))]
    runs += [_words(part) for part in _QUOTED.findall(line) if len(part) >= REVEALING_CHARS]
    if any(f" {' '.join(run)} " in prompt_words for run in runs if run):
        return True
    spaced = f" {' '.join(words)} "
    return any(len(text) >= REVEALING_CHARS and f" {' '.join(_words(text))} " in spaced for text in prompt)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def _texts(value: Any) -> Iterator[str]:
    """Every text in a request's messages, except roles and names."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(inner) if key not in {"role", "type", "id", "name", "tool_call_id"} else ()
    elif isinstance(value, Iterable):
        for inner in value:
            yield from _texts(inner)
