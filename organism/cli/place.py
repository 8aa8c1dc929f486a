"""Where the server is that the verbs ask, its token, and who vouches for it.

What was given comes first, then the environment, then what the data directory knows of the local server. The local
server's token goes to the local server and to this machine alone: a token is no business of any other address.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import orjson
import typer

from organism.cli.options import Remote

DEFAULT_URL: Final = "http://127.0.0.1:8080"
NOTICE_FILE: Final = "server.json"
TOKEN_FILE: Final = "token"  # noqa: S105 - where it is kept, not what it is
SCHEMES: Final = frozenset({"http", "https"})


@dataclass(frozen=True, slots=True)
class Place:
    """A server's address and token; ``token`` is empty if none was found.

    ``certificate`` (PEM) is the local server's own. It is trusted as it stands, whatever name it was made for: it
    comes from a directory that its owner alone can write.
    """

    url: str
    token: str
    data: Path
    certificate: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        """What authenticates a request."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def authorities(self) -> ssl.SSLContext | None:
        """Who may vouch for the server: its own certificate, else those of the system and of ``SSL_CERT_FILE``."""
        if not self.url.startswith("https:"):
            return None
        if self.certificate is None:
            return ssl.create_default_context()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.load_verify_locations(cadata=self.certificate)
        return context

    def token_remedy(self) -> str:
        """What to do if the token is not taken."""
        if self.token:
            return "Give its token with --token or ORGANISM_TOKEN, or name its data directory with --data DIR."
        return f"No token was sent: {self.data / TOKEN_FILE} has none for it. Give one with --token or ORGANISM_TOKEN."

    def server_remedy(self) -> str:
        """What to do if nobody answers."""
        if self.certificate is None and not (self.data / NOTICE_FILE).exists():
            return "Start one with `organism serve`, or name it with --url, or its data directory with --data DIR."
        return "Start one with `organism serve`, or name it with --url."


def place(options: Remote) -> Place:
    """What was given, else what the data directory knows of the local server."""
    notice = notice_of(options.data)
    local = notice.get("url")
    url = _address(options.url) if options.url else str(local or DEFAULT_URL)
    is_local = url == local
    token = _sendable(options.token) if options.token else ""
    if not token and (is_local or _is_this_machine(url)):
        token = _kept_token(options.data)
    return Place(url, token, options.data, notice.get("certificate") if is_local else None)


def notice_of(data: Path) -> dict[str, Any]:
    """What a server on this directory says of itself (``url``, ``pid``, ``certificate``); empty if there is none."""
    try:
        said = orjson.loads((data / NOTICE_FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) and isinstance(said.get("url"), str) else {}


def _address(said: str) -> str:
    """The address without a slash at its end."""
    try:
        parts = urlsplit(said)
        is_whole = parts.scheme in SCHEMES and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_whole = False
    if not is_whole:
        raise typer.BadParameter(f"expected an address as http://HOST:PORT; came {said!r}.", param_hint="--url")
    return said.rstrip("/")


def _sendable(said: str) -> str:
    """The token, as a header takes it."""
    if not (said.isascii() and said.strip().isprintable()):
        raise typer.BadParameter("a token is printable ASCII.", param_hint="--token")
    return said.strip()


def _is_this_machine(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _kept_token(data: Path) -> str:
    try:
        return (data / TOKEN_FILE).read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
