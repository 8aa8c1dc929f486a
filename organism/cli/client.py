"""The REST client of the verbs: which server they ask, and what its answers mean for people and for the exit code.

The address and the token that were given come first, then the environment, then what the data directory knows of the
local server. The local server's token goes to this machine alone.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import quote, urlsplit

import httpx2
import orjson
import typer

from organism.cli.exits import OF_STATUS, Exit
from organism.cli.options import Remote
from organism.cli.show import Rows, refuse
from organism.errors import OrganismError

TIMEOUT_SECONDS: Final = 75.0
"""Longer than the longest wait that the server grants."""
API: Final = "/api/v1"
FOR_MODELS: Final = "/v1"
PAGE_ROWS: Final = 500
"""The largest page that the server gives."""
DEFAULT_URL: Final = "http://127.0.0.1:8080"
NOTICE_FILE: Final = "server.json"
TOKEN_FILE: Final = "token"  # noqa: S105 - where it is kept, not what it is


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

    def http(self, timeout_seconds: float | None) -> httpx2.Client:
        """A client of this server; close it."""
        return httpx2.Client(
            base_url=self.url,
            headers=self.headers,
            timeout=timeout_seconds,
            trust_env=False,  # a proxy is not on the way to one's own server
            verify=self.authorities() or False,
        )

    def token_remedy(self) -> str:
        """What to do if the token is not taken."""
        if self.token:
            return "Give its token with --token or ORGANISM_TOKEN, or name its data directory with --data DIR."
        return f"No token was sent: {self.data / TOKEN_FILE} has none for it. Give one with --token or ORGANISM_TOKEN."


def place(options: Remote) -> Place:
    """What was given, else what the data directory knows of the local server."""
    notice = notice_of(options.data)
    local = notice.get("url")
    url = _address(options.url) if options.url else str(local or DEFAULT_URL)
    is_local = url == local
    token = options.token or ""
    if not (token.isascii() and token.strip().isprintable()):
        raise typer.BadParameter("a token is printable ASCII.", param_hint="--token")
    token = token.strip()
    if not token and (is_local or is_loopback(urlsplit(url).hostname or "")):
        with suppress(OSError, UnicodeDecodeError):
            token = (options.data / TOKEN_FILE).read_text("ascii").strip()
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
        is_whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_whole = False
    if not is_whole:
        raise typer.BadParameter(f"expected an address as http://HOST:PORT; came {said!r}.", param_hint="--url")
    return said.rstrip("/")


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Client:
    """Calls the API; whatever does not work ends the command with a word on what to do."""

    def __init__(self, options: Remote) -> None:
        self.place = place(options)

    def get(self, path: str, query: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """The JSON of a GET; what is None in the query is left out."""
        return self._json("GET", path, params=given(query or {}), **more)

    def text(self, path: str, query: Mapping[str, Any] | None = None) -> str:
        """The text of a GET."""
        return self._call("GET", path, params=given(query or {})).text

    def post(self, path: str, body: Any = None, key: str | None = None, **more: Any) -> Any:
        """The JSON of a POST; ``key`` is its idempotency key."""
        if body is not None:
            more["json"] = body
        return self._json("POST", path, headers={**more.pop("headers", {}), **idempotency(key)}, **more)

    def delete(self, path: str) -> Any:
        """The JSON of a DELETE."""
        return self._json("DELETE", path)

    def lines(self, path: str, body: Any, accepts: Sequence[str], key: str | None) -> Iterator[str]:
        """The lines of the answer to a POST as they come, in the first of these forms that can be had."""
        status, said = 0, b""
        for accept in accepts:
            headers = {**idempotency(key), "Accept": accept}
            with (
                self._connected(None) as http,
                http.stream("POST", API + path, headers=headers, json=body) as answer,
            ):
                status, said = answer.status_code, b"" if answer.is_success else answer.read()
                yield from (line for line in answer.iter_lines() if line and answer.is_success)
            if status != HTTPStatus.NOT_ACCEPTABLE:
                break
        if status != HTTPStatus.OK:
            refuse_answer(self.place, status, said)

    def rows(self, name: str, query: Mapping[str, Any], limit: int, path: str = "") -> Rows:
        """The first ``limit`` objects of the list ``name``, page by page."""
        wanted: dict[str, Any] = {**query, "limit": min(limit, PAGE_ROWS)}
        found = self.get(path or f"/{name}", wanted)
        rows, total = found[name.replace("-", "_")], found["total"]
        wanted.pop("offset", None)  # the cursor knows where it is
        while found["next"] and len(rows) < limit:
            found = self.get(path or f"/{name}", {**wanted, "cursor": found["next"]})
            rows += found[name.replace("-", "_")]
        return Rows(rows[:limit], total)

    def _json(self, method: str, path: str, **more: Any) -> Any:
        answer = self._call(method, path, **more)
        try:
            return answer.json()
        except ValueError:
            not_ours(self.place, answer.status_code)

    def _call(self, method: str, path: str, *, base: str = API, **more: Any) -> httpx2.Response:
        with self._connected(TIMEOUT_SECONDS) as http:
            answer = http.request(method, base + path, **more)
        if not answer.is_success:
            refuse_answer(self.place, answer.status_code, answer.content)
        return answer

    @contextmanager
    def _connected(self, timeout_seconds: float | None) -> Iterator[httpx2.Client]:
        """A client; what fails with it ends the command."""
        try:
            with self.place.http(timeout_seconds) as http:
                yield http
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            no_server(self.place, error)


def refuse_answer(where: Place, status: int, body: bytes) -> NoReturn:
    """End the command: the server said no, and why."""
    try:
        error = orjson.loads(body)["error"]
        code, message = error["code"], error["message"]
    except (ValueError, KeyError, TypeError):
        not_ours(where, status)
    faults = [f"{fault['param']}: {fault['message']}" for fault in error.get("details", [])]
    remedy = where.token_remedy() if status in {401, 403} else remedy_of(code)
    refuse(OF_STATUS.get(status, Exit.FAILED), message, remedy, faults)


def not_ours(where: Place, status: int) -> NoReturn:
    """End the command: something else answers there."""
    refuse(
        Exit.NO_SERVER,
        f"{where.url} answered {status}, but not as an organism does.",
        "Name the address that `organism serve` printed: --url URL.",
    )


def path_of(*parts: str) -> str:
    """The path of a resource; an id may hold any character."""
    return "".join(f"/{quote(part, safe='')}" for part in parts)


def idempotency(key: str | None) -> dict[str, str]:
    """The header for an idempotency key."""
    return {"Idempotency-Key": key} if key else {}


def given(query: Mapping[str, Any]) -> dict[str, Any]:
    """What has a value."""
    return {name: value for name, value in query.items() if value is not None}


def no_server(where: Place, error: Exception) -> NoReturn:
    """End the command: nobody answers there."""
    reason = str(error) or type(error).__name__
    has_data = where.certificate is not None or (where.data / NOTICE_FILE).exists()
    other = "with --url" if has_data else "with --url, or its data directory with --data DIR"
    remedy = f"Start one with `organism serve`, or name it {other}."
    refuse(Exit.NO_SERVER, f"No server answers at {where.url} ({reason}).", remedy)


def remedy_of(code: str) -> str:
    """What the error tree says can be done about a code."""
    kinds = [OrganismError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return next((kind.remediation for kind in reversed(kinds) if kind.code == code), "")
