"""Who asks: tokens, and what the one who holds one may do.

There are two kinds here. The *operator's* token is ``ORGANISM_TOKEN``, or was made at the first start and is kept in
the data directory. The *page's* token is made at each start for the link on the terminal: it carries its own end and a
MAC under the directory's key, so it lives 12 hours, outlives a restart, and nothing about it is stored. Both are admin
of ``default``.
"""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from organism.errors import CredentialInUrl, InvalidAuthorization, MissingAuthorization
from organism.model.ids import DEFAULT_TENANT
from organism.model.principal import ADMIN, Principal

PAGE_LIFE_SECONDS: Final = 12 * 3600
TOKEN_FILE: Final = "token"  # noqa: S105 - where it is kept, not what it is
KEY_FILE: Final = "server.key"
CREDENTIAL_NAMES: Final = frozenset({"token", "access_token", "api_key", "apikey", "key", "authorization", "x-api-key"})
_PREFIX: Final = "org_"
_PAGE_PREFIX: Final = "page_"
_SECRET_BYTES: Final = 32


class Tokens:
    """The tokens that this server takes. ``now`` gives seconds since 1970."""

    def __init__(self, operator: str, key: bytes, now: Callable[[], float]) -> None:
        self._operator = _digest(key, operator.encode())
        self._key = key
        self._now = now

    def principal(self, token: bytes) -> Principal:
        """Whose token it is. Raises ``InvalidAuthorization``: unknown, wrong and expired look the same."""
        if hmac.compare_digest(_digest(self._key, token), self._operator):
            return Principal(DEFAULT_TENANT, "operator", frozenset({ADMIN}))
        if self._is_live_page(token):
            return Principal(DEFAULT_TENANT, "page", frozenset({ADMIN}))
        raise InvalidAuthorization(param="headers.authorization")

    def page(self) -> str:
        """A token for the page, good for 12 hours from now."""
        return self._page_token(int(self._now()) + PAGE_LIFE_SECONDS)

    def _page_token(self, end: int) -> str:
        mac = hmac.new(self._key, f"page {end}".encode(), "sha256").hexdigest()
        return f"{_PAGE_PREFIX}{end:x}_{mac}"

    def _is_live_page(self, token: bytes) -> bool:
        prefix, _, rest = token.partition(b"_")
        end_hex, _, _mac = rest.partition(b"_")
        try:
            end = int(end_hex, 16)
        except ValueError:
            return False
        genuine = self._page_token(end).encode()
        return prefix + b"_" == _PAGE_PREFIX.encode() and hmac.compare_digest(token, genuine) and self._now() < end


def _digest(key: bytes, token: bytes) -> bytes:
    return hmac.new(key, token, "sha256").digest()


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


def refuse_credentials(query: Mapping[str, str]) -> None:
    """Raise ``CredentialInUrl`` if a parameter is named as credentials are: URLs end up in logs and histories."""
    for name in query:
        if name.lower() in CREDENTIAL_NAMES:
            raise CredentialInUrl(param=f"query.{name}")


def operator_token(directory: Path, environment: Mapping[str, str]) -> str:
    """``ORGANISM_TOKEN``, else the one that the data directory keeps; it is made there if there is none yet."""
    given = environment.get("ORGANISM_TOKEN", "").strip()
    return given or kept_secret(directory / TOKEN_FILE, lambda: _PREFIX + secrets.token_hex(_SECRET_BYTES))


def server_key(directory: Path) -> bytes:
    """The key of page tokens and cursors, kept in the data directory."""
    return bytes.fromhex(kept_secret(directory / KEY_FILE, lambda: secrets.token_hex(_SECRET_BYTES)))


def kept_secret(path: Path, make: Callable[[], str]) -> str:
    """The text of the file; made once, readable by its owner alone, whole on disk or not there."""
    try:
        return path.read_text("ascii").strip()
    except FileNotFoundError:
        pass
    secret = make()
    draft = path.with_name(path.name + ".new")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(secret + "\n")
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    return secret
