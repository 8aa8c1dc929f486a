"""The REST client of the verbs: what a server's answers mean for people, and for the exit code."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, NoReturn

import httpx2
import orjson

from organism.cli.exits import OF_STATUS, Exit
from organism.cli.options import Remote
from organism.cli.place import Place, place
from organism.cli.show import refuse
from organism.errors import OrganismError

TIMEOUT_SECONDS: Final = 75.0
"""Longer than the longest wait that the server grants."""
API: Final = "/api/v1"
FOR_MODELS: Final = "/v1"
PAGE_ROWS: Final = 500
"""The largest page that the server gives."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What came of a list, and how many there are in all."""

    rows: list[Any]
    total: int


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

    def post(self, path: str, body: Any = None, **more: Any) -> Any:
        """The JSON of a POST."""
        if body is not None:
            more["json"] = body
        return self._json("POST", path, **more)

    def lines(self, path: str, body: Any, accepts: Sequence[str], headers: Mapping[str, str]) -> Iterator[str]:
        """The lines of the answer to a POST as they come, in the first of these forms that can be had."""
        status, said = 0, b""
        for accept in accepts:
            sent = {**self.place.headers, **headers, "Accept": accept}
            try:
                with (
                    httpx2.Client(timeout=None, trust_env=False, verify=self.place.authorities() or False) as http,
                    http.stream("POST", f"{self.place.url}/api/v1{path}", headers=sent, json=body) as answer,
                ):
                    status, said = answer.status_code, b"" if answer.is_success else answer.read()
                    yield from (line for line in answer.iter_lines() if line and answer.is_success)
            except (httpx2.HTTPError, httpx2.InvalidURL) as error:
                no_server(self.place, error)
            if status != HTTPStatus.NOT_ACCEPTABLE:
                break
        if status != HTTPStatus.OK:
            refuse_answer(self.place, status, said)

    def delete(self, path: str) -> Any:
        """The JSON of a DELETE."""
        return self._json("DELETE", path)

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

    def _call(self, method: str, path: str, **more: Any) -> httpx2.Response:
        headers = {**self.place.headers, **more.pop("headers", {})}
        try:
            answer = httpx2.request(
                method,
                f"{self.place.url}{more.pop('base', API)}{path}",
                headers=headers,
                timeout=TIMEOUT_SECONDS,
                trust_env=False,  # a proxy is not on the way to one's own server
                verify=self.place.authorities() or False,
                **more,
            )
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            no_server(self.place, error)
        if not answer.is_success:
            refuse_answer(self.place, answer.status_code, answer.content)
        return answer


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


def given(query: Mapping[str, Any]) -> dict[str, Any]:
    """What has a value."""
    return {name: value for name, value in query.items() if value is not None}


def no_server(where: Place, error: Exception) -> NoReturn:
    """End the command: nobody answers there."""
    reason = str(error) or type(error).__name__
    refuse(Exit.NO_SERVER, f"No server answers at {where.url} ({reason}).", where.server_remedy())


def remedy_of(code: str) -> str:
    """What the error tree says can be done about a code."""
    kinds = [OrganismError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return next((kind.remediation for kind in reversed(kinds) if kind.code == code), "")
