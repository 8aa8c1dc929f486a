"""The REST client of the verbs: which server they ask, and how its answers end a command.

An address and a token come from the options, else the environment, else the local server's data directory. The local
server's token is sent to this machine only.
"""

from __future__ import annotations

import re
import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from getpass import getuser
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import quote

import httpx2
import orjson
import typer

from organism.cli.exits import OF_STATUS, Exit
from organism.cli.options import Remote
from organism.cli.output import Rows, refuse
from organism.errors import FileUnreadable, OrganismError
from organism.model.addresses import is_loopback

TIMEOUT_SECONDS: Final = 75.0
"""Longer than the longest wait that the server grants."""
API: Final = "/api/v1"
FOR_MODELS: Final = "/v1"
PAGE_ROWS: Final = 500
"""The largest page that the server gives."""
LAST_SEEN: Final = "Last-Event-ID"
FIRST_DELAY_SECONDS: Final = 0.5
MAX_DELAY_SECONDS: Final = 8.0
DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8080
DEFAULT_URL: Final = f"http://{DEFAULT_HOST}:{DEFAULT_PORT}"
NOTICE_FILE: Final = "server.json"
TOKEN_FILE: Final = "token"  # noqa: S105 - the name of the file


@dataclass(frozen=True, slots=True)
class Server:
    """A server's address and token; ``token`` is empty if none was found.

    ``certificate`` (PEM) is the local server's own. It is trusted whatever name it was issued for: it comes from a
    directory that only its owner can write.
    """

    url: str
    token: str
    data: Path
    certificate: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The headers that authenticate a request."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}

    def tls_context(self) -> ssl.SSLContext | None:
        """Trusts the server's own certificate, else the authorities of the system and ``SSL_CERT_FILE``."""
        if not self.url.startswith("https:"):
            return None
        if self.certificate is None:
            return ssl.create_default_context()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.load_verify_locations(cadata=self.certificate)
        return context

    def http_settings(self, timeout_seconds: float | None) -> dict[str, Any]:
        """The settings of an HTTP client for this server. No proxy is used for one's own server."""
        verify = self.tls_context() or False
        return {
            "base_url": self.url,
            "headers": self.headers,
            "timeout": timeout_seconds,
            "trust_env": False,
            "verify": verify,
        }

    def token_remedy(self) -> str:
        """What to do if the token is not accepted."""
        if self.token:
            return "Give its token with --token or ORGANISM_TOKEN, or name its data directory with --data DIR."
        return f"Give one with --token or ORGANISM_TOKEN: {self.data / TOKEN_FILE} has none for it."


def find_server(options: Remote) -> Server:
    """The server that the options name, else the local one of the data directory."""
    notice = read_notice(options.data)
    url = checked_url(options.url) if options.url else notice.get("url", DEFAULT_URL)
    is_local = url == notice.get("url")
    token = (options.token or "").strip()
    if not (token.isascii() and token.isprintable()):
        raise typer.BadParameter("a token is printable ASCII.", param_hint="--token")
    if not token and (is_local or is_loopback(httpx2.URL(url).host)):
        with suppress(OSError, UnicodeDecodeError):
            token = (options.data / TOKEN_FILE).read_text("ascii").strip()
    return Server(url, token, options.data, notice.get("certificate") if is_local else None)


def read_notice(data: Path) -> dict[str, Any]:
    """What a server of this directory wrote (``url``, ``pid``, ``certificate``); empty if there is none."""
    try:
        notice = orjson.loads((data / NOTICE_FILE).read_bytes())
    except (OSError, ValueError):
        return {}
    return notice if isinstance(notice, dict) and isinstance(notice.get("url"), str) else {}


def checked_url(text: str) -> str:
    """The address without a slash at its end."""
    with suppress(httpx2.InvalidURL):
        url = httpx2.URL(text)
        if url.scheme in {"http", "https"} and url.host and text.isprintable() and " " not in text:
            return text.rstrip("/")
    raise typer.BadParameter(f"expected an address as http://HOST:PORT; came {text!r}.", param_hint="--url")


class Client:
    """Calls the API. A failure ends the command with a message and the next step."""

    def __init__(self, options: Remote) -> None:
        self.server = find_server(options)

    def get(self, path: str, query: Mapping[str, Any] | None = None, **more: Any) -> Any:
        """The JSON of a GET; None values of the query are left out."""
        return self._json("GET", path, params=drop_none(query or {}), **more)

    def text(self, path: str, query: Mapping[str, Any] | None = None) -> str:
        """The text of a GET, without white space at its end."""
        return self._call("GET", path, params=drop_none(query or {})).text.rstrip()

    def post(self, path: str, body: Any = None, key: str | None = None, **more: Any) -> Any:
        """The JSON of a POST; ``key`` is its idempotency key."""
        if body is not None:
            more["json"] = body
        return self._json("POST", path, headers={**more.pop("headers", {}), **_key_header(key)}, **more)

    def post_file(self, path: str, data: bytes, kind: str, name: str, **more: Any) -> Any:
        """The JSON of a POST of a file. Raises ``FileUnreadable``."""
        headers = {**more.pop("headers", {}), "Content-Type": kind}
        with self._http(TIMEOUT_SECONDS) as http:
            response = http.post(more.get("base", API) + path, content=data, params={"name": name}, headers=headers)
        if not response.is_success:
            with suppress(ValueError, LookupError, TypeError):
                error = response.json()["error"]
                if error["code"] == FileUnreadable.code:
                    raise FileUnreadable(error["details"][0]["message"])
            refuse_response(self.server, response.status_code, response.content)
        return response.json()

    def put(self, path: str, body: Any, **more: Any) -> Any:
        """The JSON of a PUT."""
        return self._json("PUT", path, json=body, **more)

    def delete(self, path: str, **more: Any) -> Any:
        """The JSON of a DELETE."""
        return self._json("DELETE", path, **more)

    def entries(self, path: str, body: Any, key: str | None, **headers: str) -> Iterator[tuple[str, Any]]:
        """The entries of a run that a POST streams, each with the path that answers; none if there is no stream.

        A connection that is lost is taken up again after the last entry.
        """
        given, delay = {**headers, **_key_header(key)}, FIRST_DELAY_SECONDS
        while True:
            try:
                for address, seen, entry in self._events(path, body, given):
                    path, given[LAST_SEEN] = address, seen
                    yield path, entry
                    if entry["type"] == "done":
                        return
            except httpx2.TransportError as error:
                if LAST_SEEN not in given:
                    refuse_no_server(self.server, error)
            if LAST_SEEN not in given or delay > MAX_DELAY_SECONDS:
                return
            time.sleep(delay)
            delay *= 2

    def _events(self, path: str, body: Any, headers: Mapping[str, str]) -> Iterator[tuple[str, str, Any]]:
        """The address that streams, and the id and the value of each event."""
        settings = self.server.http_settings(None)
        with (
            httpx2.Client(**settings, follow_redirects=True) as http,
            http.stream("POST", path, headers={**http.headers, **headers}, json=body) as response,
        ):
            if response.status_code == HTTPStatus.NOT_ACCEPTABLE:
                return
            if not response.is_success:
                refuse_response(self.server, response.status_code, response.read())
            for event in httpx2.EventSource(response, max_event_size=None):
                yield response.url.path, event.id, orjson.loads(event.data)

    def rows(self, name: str, query: Mapping[str, Any], limit: int, path: str = "", **more: Any) -> Rows:
        """The first ``limit`` objects of the list ``name``, page by page."""
        path, field = path or f"/{name}", name.replace("-", "_")
        wanted: dict[str, Any] = {**query, "limit": min(limit, PAGE_ROWS)}
        page = self.get(path, wanted, **more)
        rows, total = page[field], page["total"]
        wanted.pop("offset", None)  # the cursor holds the place
        while page["next"] and len(rows) < limit:
            page = self.get(path, {**wanted, "cursor": page["next"]}, **more)
            rows += page[field]
        return Rows(rows[:limit], total)

    def rows_if_allowed(self, name: str, query: Mapping[str, Any]) -> list[Any]:
        """A first page of the list; nothing if the token does not allow that."""
        with self._http(TIMEOUT_SECONDS) as http:
            answer = http.get(f"{API}/{name}", params=drop_none(query))
        return answer.json()[name.replace("-", "_")] if answer.is_success else []

    def _json(self, method: str, path: str, **more: Any) -> Any:
        response = self._call(method, path, **more)
        try:
            return response.json()
        except ValueError:
            _refuse_stranger(self.server, response.status_code)

    def _call(self, method: str, path: str, *, base: str = API, **more: Any) -> httpx2.Response:
        with self._http(TIMEOUT_SECONDS) as http:
            response = http.request(method, base + path, **more)
        if not response.is_success:
            refuse_response(self.server, response.status_code, response.content)
        return response

    @contextmanager
    def _http(self, timeout_seconds: float | None) -> Iterator[httpx2.Client]:
        """An HTTP client; a failure of the connection ends the command."""
        try:
            with httpx2.Client(**self.server.http_settings(timeout_seconds)) as http:
                yield http
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            refuse_no_server(self.server, error)


def own_name() -> str:
    """The user of this machine, as far as that is a name of the server's."""
    with suppress(OSError, KeyError, ImportError):
        return re.sub(r"[^A-Za-z0-9._@-]", "-", getuser())[:128] or "user"
    return "user"


def path_of(*parts: str) -> str:
    """The path of a resource, also where an id is `.` or `..`. Ends the command if one holds a ``/``."""
    for part in parts:
        if "/" in part:
            refuse(
                Exit.USAGE,
                f"{part!r} is not an id or a name: none has a `/`.",
                "`--help` shows the order of the arguments.",
            )
    quoted = (part.replace(".", "%2E") if part in {".", ".."} else quote(part, safe="") for part in parts)
    return "".join(f"/{part}" for part in quoted)


def drop_none(query: Mapping[str, Any]) -> dict[str, Any]:
    """The entries that have a value."""
    return {name: value for name, value in query.items() if value is not None}


def _key_header(key: str | None) -> dict[str, str]:
    return {"Idempotency-Key": key} if key else {}


def refuse_response(server: Server, status: int, body: bytes) -> NoReturn:
    """End the command with the server's refusal."""
    try:
        error = orjson.loads(body)["error"]
        code, message = error["code"], error["message"]
    except (ValueError, KeyError, TypeError):
        _refuse_stranger(server, status)
    details = error.get("details", [])
    is_said = len(details) == 1 and details[0]["message"] in message
    faults = [] if is_said else [f"{fault['param']}: {fault['message']}" for fault in details]
    remedy = server.token_remedy() if status in {401, 403} else remedy_of(code)
    refuse(OF_STATUS.get(status, Exit.FAILED), message, remedy, faults)


def _refuse_stranger(server: Server, status: int) -> NoReturn:
    """End the command: something else answers at the address."""
    refuse(
        Exit.NO_SERVER,
        f"{server.url} answered {status}, but not as an organism does.",
        "Name the address that `organism serve` printed: --url URL.",
    )


def refuse_no_server(server: Server, error: Exception) -> NoReturn:
    """End the command: nothing answers at the address."""
    reason = str(error) or type(error).__name__
    remedy = "Start one with `organism serve`, or name it with --url, or its data directory with --data DIR."
    refuse(Exit.NO_SERVER, f"No server answers at {server.url} ({reason}).", remedy)


def remedy_of(code: str) -> str:
    """The remedy that the error tree has for a code."""
    kinds = [OrganismError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return next((kind.remediation for kind in reversed(kinds) if kind.code == code), "")
