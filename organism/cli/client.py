"""The REST client of the verbs: where the server is, its token, and what its answers mean for the exit code."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import httpx2
import orjson
import typer

from organism.cli.options import Remote
from organism.cli.show import fail
from organism.errors import OrganismError

DEFAULT_URL: Final = "http://127.0.0.1:8080"
REFUSED: Final = 1
NO_SERVER: Final = 3
NOT_TAKEN: Final = 5
TIMEOUT_SECONDS: Final = 75.0
"""Longer than the longest wait that the server grants."""


@dataclass(frozen=True, slots=True)
class Place:
    """A server's address and token; ``token`` is empty if none was found."""

    url: str
    token: str

    @property
    def headers(self) -> dict[str, str]:
        """What authenticates a request."""
        return {"Authorization": f"Bearer {self.token}"} if self.token else {}


def place(options: Remote) -> Place:
    """What was given, else what the data directory knows of the local server."""
    url = options.url or _local_url(options.data)
    return Place(url.rstrip("/"), options.token or _local_token(options.data))


def _local_url(data: Path) -> str:
    try:
        said: str = orjson.loads((data / "server.json").read_bytes())["url"]
    except (OSError, ValueError, KeyError):
        return DEFAULT_URL
    return said


def _local_token(data: Path) -> str:
    try:
        return (data / "token").read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


class Client:
    """Calls the API; whatever does not work ends the command with a word on what to do."""

    def __init__(self, options: Remote) -> None:
        self.place = place(options)

    def get(self, path: str, query: Mapping[str, str] | None = None) -> Any:
        """The JSON of a GET."""
        return self._call("GET", path, params=dict(query or {}))

    def post(self, path: str, body: Any = None, **more: Any) -> Any:
        """The JSON of a POST."""
        if body is not None:
            more["json"] = body
        return self._call("POST", path, **more)

    def _call(self, method: str, path: str, **more: Any) -> Any:
        headers = {**self.place.headers, **more.pop("headers", {})}
        try:
            answer = httpx2.request(
                method,
                f"{self.place.url}/api/v1{path}",
                headers=headers,
                timeout=TIMEOUT_SECONDS,
                trust_env=False,  # a proxy is not on the way to one's own server
                verify=_authorities(self.place.url),
                **more,
            )
        except (httpx2.TransportError, httpx2.InvalidURL) as error:
            no_server(self.place, error)
        if not answer.is_success:
            _refused(answer)
        return answer.json()


def _authorities(url: str) -> ssl.SSLContext | bool:
    """Who may vouch for the server: those of the system, and of ``SSL_CERT_FILE``."""
    return ssl.create_default_context() if url.startswith("https") else False


def no_server(where: Place, error: Exception) -> NoReturn:
    """End the command: nobody answers there."""
    reason = str(error) or type(error).__name__
    fail(f"No server answers at {where.url} ({reason}).", "Start one with `organism serve`, or name it with --url.")
    raise typer.Exit(NO_SERVER)


def _refused(answer: httpx2.Response) -> NoReturn:
    """End the command: the server said no, and why."""
    try:
        error = answer.json()["error"]
    except (ValueError, KeyError, TypeError):
        fail(f"{answer.url} answered {answer.status_code}, but not as an organism does.", "Is --url right?")
        raise typer.Exit(NO_SERVER) from None
    faults = [f"{fault['param']}: {fault['message']}" for fault in error.get("details", [])]
    fail(error["message"], remedy_of(error["code"]), faults)
    raise typer.Exit(NOT_TAKEN if answer.status_code in {401, 403} else REFUSED)


def remedy_of(code: str) -> str:
    """What the error tree says can be done about a code."""
    kinds = [OrganismError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return next((kind.remediation for kind in reversed(kinds) if kind.code == code), "")
