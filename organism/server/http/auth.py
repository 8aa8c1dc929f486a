"""Authentication: tokens and one-use tickets; guesses are counted and slowed down (S2, S6).

*config/tokens.yaml* has tokens for each tenant. The *operator's* is ``ORGANISM_TOKEN`` or lies in the data directory;
the *page's*, made at each start, carries its own end and a MAC under the directory's key, so it outlives a restart and
is not stored. These two are admin of ``default``. A ticket is the only credential that may stand in a URL: a browser
cannot send a header with its handshake. Guessing ends in 429, which never refuses a valid token.
"""

from __future__ import annotations

import hmac
import math
import os
import secrets
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from hashlib import blake2b, sha256
from ipaddress import IPv6Address, ip_address
from pathlib import Path
from typing import Final

from organism.bootstrap import SERVER_KEY
from organism.config.faults import open_to_everyone
from organism.config.tokens import TenantEntry
from organism.errors import (
    ConfigInvalid,
    CredentialInUrl,
    InvalidAuthorization,
    MissingAuthorization,
    RateLimitExceeded,
    TooManyFailures,
)
from organism.model.ids import DEFAULT_TENANT
from organism.model.principal import ADMIN, OPERATOR, PAGE, Principal

PAGE_LIFE_SECONDS: Final = 12 * 3600
TOKEN_FILE: Final = "token"  # noqa: S105 - where it lies, not what it is
CREDENTIAL_NAMES: Final = frozenset(
    {"token", "access_token", "api_key", "apikey", "key", "authorization", "x-api-key", "ticket"}
)
TICKET: Final = "ticket"
"""Allowed in the URL of the WebSocket only."""
_PREFIX: Final = "org_"
_PAGE_PREFIX: Final = "page_"
_SECRET_BYTES: Final = 32
_END_DIGITS: Final = 16  # more than any time has; reading a number of any length would be costly


class Tokens:
    """The tokens that this server takes, found in constant time. ``now`` gives seconds since 1970, and may go back."""

    def __init__(self, operator: str, key: bytes, now: Callable[[], float]) -> None:
        self._key = key
        self._mark_key = secrets.token_bytes(_SECRET_BYTES)
        self._now = now
        self._latest = 0.0
        admin = Principal(DEFAULT_TENANT, OPERATOR, frozenset({ADMIN}), credential=sha256(operator.encode()).digest())
        self._operator = {self._mark(admin.credential): admin}
        self._known = self._operator

    def take(self, tenants: Iterable[TenantEntry]) -> None:
        holders = [who for tenant in tenants for who in tenant.tokens]
        self._known = {self._mark(who.credential): who for who in holders} | self._operator

    def principal(self, token: bytes) -> Principal:
        """Whose token it is. Raises ``InvalidAuthorization``, the same for unknown, wrong, revoked and expired."""
        digest = sha256(token).digest()
        who = self._known.get(self._mark(digest)) or self._page_of(token, digest)
        if who is None or not hmac.compare_digest(who.credential, digest) or self._has_ended(who):
            raise InvalidAuthorization(param="headers.authorization")
        return who

    def is_live(self, text: str) -> bool:
        """Whether the text is a valid token; asking does not authenticate."""
        digest = sha256(text.encode()).digest()
        return self._mark(digest) in self._known or self._page_of(text.encode(), digest) is not None

    def current(self, who: Principal) -> Principal:
        """The principal of its token as it is now. Raises ``InvalidAuthorization`` if it is revoked or expired."""
        found = who if who.name == PAGE else self._known.get(self._mark(who.credential))
        if found is None or self._has_ended(found):
            raise InvalidAuthorization(param="headers.authorization")
        return found

    def page(self) -> str:
        """A token for the page, good for 12 hours from now."""
        return self._page_token(int(self._now()) + PAGE_LIFE_SECONDS)

    def _mark(self, digest: bytes) -> bytes:
        """What a token is looked up by: the time that takes tells a guesser nothing."""
        return blake2b(digest, key=self._mark_key).digest()  # a quarter of an HMAC's time

    def _has_ended(self, who: Principal) -> bool:
        self._latest = max(self._latest, self._now())
        return who.ends is not None and who.ends <= self._latest

    def _page_token(self, end: int) -> str:
        mac = hmac.new(self._key, f"page {end}".encode(), "sha256").hexdigest()
        return f"{_PAGE_PREFIX}{end:x}_{mac}"

    def _page_of(self, token: bytes, digest: bytes) -> Principal | None:
        end_hex, _, _mac = token.removeprefix(_PAGE_PREFIX.encode()).partition(b"_")
        if len(end_hex) > _END_DIGITS:
            return None
        try:
            end = int(end_hex, 16)
        except ValueError:
            return None
        if not hmac.compare_digest(token, self._page_token(end).encode()):
            return None
        return Principal(DEFAULT_TENANT, PAGE, frozenset({ADMIN}), credential=digest, ends=end)


class RateLimiter:
    """At most ``count`` within any ``seconds``; times are of a clock that does not go back."""

    __slots__ = ("_seconds", "_times", "count")

    def __init__(self, count: int, seconds: float) -> None:
        self.count = count
        self._seconds = seconds
        self._times: deque[float] = deque(maxlen=count)

    def wait(self, now: float) -> float:
        """In how many seconds another one is allowed; 0 if it is now."""
        if len(self._times) < self.count:
            return 0.0
        return max(0.0, self._times[0] + self._seconds - now)

    def note(self, now: float) -> None:
        """Count one."""
        self._times.append(now)


FAILURES: Final = 10
SECONDS: Final = 60.0
REMEMBERED: Final = 10_000
"""Addresses and prefixes that are remembered; the least recent are forgotten first."""
_PREFIX_BYTES: Final = 40
_BARE_BYTES: Final = 8
_NETWORK_BYTES: Final = 8


class Failures:
    """Counts failed tokens. ``now`` is a clock that does not go back, in seconds; so it is below."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._windows: OrderedDict[bytes, RateLimiter] = OrderedDict()

    def note(self, address: str, token: bytes) -> None:
        """Count a failed token. Raises ``TooManyFailures`` after too many of them."""
        now = self._now()
        windows = [self._window(b"from " + network_of(address)), self._window(b"for " + prefix_of(token))]
        wait = max(window.wait(now) for window in windows)
        if wait:
            raise TooManyFailures(retry_after_s=math.ceil(wait))
        for window in windows:
            window.note(now)

    def _window(self, key: bytes) -> RateLimiter:
        window = self._windows.setdefault(key, RateLimiter(FAILURES, SECONDS))
        self._windows.move_to_end(key)
        if len(self._windows) > REMEMBERED:
            self._windows.popitem(last=False)
        return window


def prefix_of(token: bytes) -> bytes:
    """The part of a token that is no secret: all before its last ``_``, or its first few bytes."""
    readable, found, _ = token.rpartition(b"_")
    return readable[:_PREFIX_BYTES] if found else token[:_BARE_BYTES]


def network_of(address: str) -> bytes:
    """The address; of IPv6 its network: who has one address there has all of them."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address.encode()
    return parsed.packed[:_NETWORK_BYTES] if isinstance(parsed, IPv6Address) else parsed.packed


LIFE_SECONDS: Final = 30
MAX_OPEN: Final = 1000
"""Unused tickets a token may have, as many as it may open sockets."""
_BYTES: Final = 32


class Tickets:
    """Issues and redeems tickets. Their MAC is made under a key that this process alone has."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._key = secrets.token_bytes(_BYTES)
        self._open: OrderedDict[str, tuple[Principal, float]] = OrderedDict()

    def issue(self, who: Principal) -> str:
        """A ticket for ``who``. Raises ``RateLimitExceeded`` if too many are unused."""
        self._sweep()
        if sum(each.credential == who.credential for each, _ in self._open.values()) >= MAX_OPEN:
            raise RateLimitExceeded(f"{MAX_OPEN} tickets of this token are unused.", retry_after_s=LIFE_SECONDS)
        serial = secrets.token_hex(_BYTES // 2)
        self._open[serial] = (who, self._now() + LIFE_SECONDS)
        return f"{serial}.{self._mac(serial, who)}"

    def redeem(self, ticket: str) -> Principal:
        """Who asked for the ticket, which is used up. Raises ``InvalidAuthorization``, whatever is wrong with it."""
        self._sweep()
        serial, _, mac = ticket.partition(".")
        who, _ = self._open.get(serial, (None, 0.0))
        if who is None or not hmac.compare_digest(mac.encode(), self._mac(serial, who).encode()):
            raise InvalidAuthorization(param="query.ticket")
        del self._open[serial]
        return who

    def _sweep(self) -> None:
        """Forget what has expired; all live equally long, so the oldest come first."""
        while self._open and next(iter(self._open.values()))[1] <= self._now():
            self._open.popitem(last=False)

    def _mac(self, serial: str, who: Principal) -> str:
        bound = f"{serial} {who.tenant} {who.credential.hex()}"
        return hmac.new(self._key, bound.encode(), "sha256").hexdigest()


class Authenticator:
    """Authenticates by token or ticket. ``redact`` gets each valid token: until then only its digest is known."""

    def __init__(self, tokens: Tokens, now: Callable[[], float], redact: Callable[[str], None]) -> None:
        self.tokens = tokens
        self._redact = redact
        self._redacted: set[bytes] = set()
        self.tickets = Tickets(now)
        self._failures = Failures(now)

    def by_token(self, token: bytes, address: str) -> Principal:
        """Whose token it is. Raises ``InvalidAuthorization``, or ``TooManyFailures`` after many of them."""
        try:
            who = self.tokens.principal(token)
        except InvalidAuthorization:
            self._failures.note(address, token)
            raise
        if who.credential not in self._redacted:
            self._redacted.add(who.credential)
            self._redact(token.decode("utf-8", "replace"))
        return who

    def by_ticket(self, ticket: str, address: str) -> Principal:
        """Who asked for the ticket, as the token stands now. Raises as ``by_token`` does."""
        try:
            return self.tokens.current(self.tickets.redeem(ticket))
        except InvalidAuthorization:
            self._failures.note(address, b"ticket_")
            raise


def token_in(headers: Mapping[str, str]) -> bytes:
    """The token of a request's headers, as it came. Raises ``MissingAuthorization``."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip().encode("latin-1")
    if key := headers.get("x-api-key", "").strip():
        return key.encode("latin-1")
    raise MissingAuthorization(
        "No token was sent; send it as `Authorization: Bearer TOKEN` or as `X-API-Key: TOKEN`.",
        param="headers.authorization",
    )


def refuse_credentials(query: Mapping[str, str], *, takes_ticket: bool = False) -> None:
    """Raise ``CredentialInUrl`` if a parameter is named as credentials are: URLs end up in logs and histories."""
    for name in query:
        if name.lower() in CREDENTIAL_NAMES and not (takes_ticket and name == TICKET):
            raise CredentialInUrl(param=f"query.{name}")


def operator_token(directory: Path, environment: Mapping[str, str]) -> str:
    """``ORGANISM_TOKEN``, else that of the data directory, made at the first start."""
    token = environment.get("ORGANISM_TOKEN", "").strip()
    return token or secret_in(directory / TOKEN_FILE, lambda: _PREFIX + secrets.token_hex(_SECRET_BYTES))


def server_key(directory: Path) -> bytes:
    """The key of page tokens and cursors, stored in the data directory."""
    return bytes.fromhex(secret_in(directory / SERVER_KEY, lambda: secrets.token_hex(_SECRET_BYTES)))


def secret_in(path: Path, make: Callable[[], str]) -> str:
    """The text of the file; made once, for its owner alone. Raises ``ConfigInvalid`` if everyone can change it."""
    try:
        secret = path.read_text("ascii").strip()
    except FileNotFoundError:
        pass
    else:
        if (wrong := open_to_everyone(path)) is not None:
            raise ConfigInvalid(f"{path} is not secret: {wrong}")
        return secret
    secret = make()
    replace_private(path, secret.encode() + b"\n")
    return secret


def replace_private(path: Path, content: bytes) -> None:
    """Replace the file, for its owner alone, by one that is on disk."""
    draft = path.with_name(path.name + ".new")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
