"""Who asks: tokens, and what the one who holds one may do.

There are three kinds. Those of *config/tokens.yaml* open the tenant under which they stand. The *operator's* token is
``ORGANISM_TOKEN``, or was made at the first start and is kept in the data directory. The *page's* token is made at each
start for the link on the terminal: it carries its own end and a MAC under the directory's key, so it lives 12 hours,
outlives a restart, and nothing about it is stored. These two are admin of ``default``.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from organism.config.faults import open_to_everyone
from organism.config.tokens import TenantEntry
from organism.errors import ConfigInvalid, CredentialInUrl, InvalidAuthorization, MissingAuthorization
from organism.model.ids import DEFAULT_TENANT
from organism.model.principal import ADMIN, OPERATOR, PAGE, Principal

PAGE_LIFE_SECONDS: Final = 12 * 3600
TOKEN_FILE: Final = "token"  # noqa: S105 - where it is kept, not what it is
KEY_FILE: Final = "server.key"
CREDENTIAL_NAMES: Final = frozenset(
    {"token", "access_token", "api_key", "apikey", "key", "authorization", "x-api-key", "ticket"}
)
TICKET: Final = "ticket"
"""Allowed in the URL of the WebSocket only."""
_PREFIX: Final = "org_"
_PAGE_PREFIX: Final = "page_"
_SECRET_BYTES: Final = 32
_END_DIGITS: Final = 16
"""More than any time has; reading a number of any length would be costly."""


class Tokens:
    """The tokens that this server takes. ``now`` gives seconds since 1970; a clock that goes back revives no token.

    They are found by a MAC of their digest under the server's key: how long a look-up takes says nothing that a guesser
    could use. Whatever is compared is compared as bytes, in constant time (S2).
    """

    def __init__(self, operator: str, key: bytes, now: Callable[[], float]) -> None:
        self._key = key
        self._now = now
        self._latest = 0.0
        admin = Principal(DEFAULT_TENANT, OPERATOR, frozenset({ADMIN}), credential=sha256(operator.encode()).digest())
        self._operator = {self._mark(admin.credential): admin}
        self._known = self._operator

    def take(self, tenants: Iterable[TenantEntry]) -> None:
        holders = [who for tenant in tenants for who in tenant.tokens]
        self._known = {self._mark(who.credential): who for who in holders} | self._operator

    def principal(self, token: bytes) -> Principal:
        """Whose token it is. Raises ``InvalidAuthorization``: unknown, wrong, revoked and expired look the same."""
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
        return hmac.digest(self._key, b"token " + digest, "sha256")

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


def token_in(headers: Mapping[bytes, bytes]) -> bytes:
    """The token of a request's headers, as it came. Raises ``MissingAuthorization``."""
    said = headers.get(b"authorization", b"")
    scheme, _, token = said.partition(b" ")
    if scheme.lower() == b"bearer" and token.strip():
        return token.strip()
    if key := headers.get(b"x-api-key", b"").strip():
        return key
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
    """``ORGANISM_TOKEN``, else the one that the data directory keeps; it is made there if there is none yet."""
    given = environment.get("ORGANISM_TOKEN", "").strip()
    return given or kept_secret(directory / TOKEN_FILE, lambda: _PREFIX + secrets.token_hex(_SECRET_BYTES))


def server_key(directory: Path) -> bytes:
    """The key of page tokens and cursors, kept in the data directory."""
    return bytes.fromhex(kept_secret(directory / KEY_FILE, lambda: secrets.token_hex(_SECRET_BYTES)))


def kept_secret(path: Path, make: Callable[[], str]) -> str:
    """The text of the file; made once, readable by its owner alone, whole on disk or not there.

    Raises ``ConfigInvalid`` if everyone can change it.
    """
    try:
        secret = path.read_text("ascii").strip()
    except FileNotFoundError:
        pass
    else:
        if (wrong := open_to_everyone(path)) is not None:
            raise ConfigInvalid(f"{path} is not secret: {wrong}")
        return secret
    secret = make()
    draft = path.with_name(path.name + ".new")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(secret + "\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    return secret
