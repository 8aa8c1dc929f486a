"""The contract, held to whatever a server answers and pushes: a client that checks all that it is given.

``CheckedClient`` and ``CheckedSocket`` are the clients of the server's tests. An answer or a frame that the documents
do not describe fails the test that saw it: another status, code, form or field than those of the contract.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

import httpx2
import jsonschema_rs
import orjson
from websockets.asyncio.client import ClientConnection

from organism.server.app import ROUTES, page_routes
from organism.server.documents import asyncapi, openapi
from organism.server.documents.schemas import Schema

REFUSED: Final = 400
NO_ROUTE: Final = frozenset({"not_found", "forbidden", "credential_in_url", "method_not_allowed", "invalid_field"})
"""What may be said where there is no route: none of them asks who it is."""


def refusal_of(answer: httpx2.Response) -> dict[str, Any]:
    """What is wrong, which an error of JSON-RPC has in its ``data`` unless it is the protocol's own."""
    error: dict[str, Any] = answer.json()["error"]
    return error.get("data") or error


class Contract:
    """What the documents say, ready to be asked."""

    def __init__(self) -> None:
        document = openapi.document(ROUTES)
        self._components = {"components": document["components"]}
        spanning = {route.address for route in ROUTES if route.takes_slashes}
        self._paths = [
            (_pattern(path, takes_slashes=path in spanning), methods) for path, methods in document["paths"].items()
        ]
        self._page = {route.path for route in page_routes()}
        self._validators: dict[int, jsonschema_rs.Validator] = {}
        self._error = self._validator({"$ref": "#/components/schemas/ErrorAnswer"})
        self._frames = _frame_validators()

    def check_answer(self, answer: httpx2.Response) -> None:
        """Raise ``AssertionError`` for an answer that the contract does not give."""
        request = answer.request
        place = f"{request.method} {request.url.path} → {answer.status_code}"
        if answer.status_code < REFUSED and request.url.path in self._page:
            return
        assert "x-request-id" in answer.headers, place
        operation = self._operation(request.method, request.url.path)
        if operation is None:
            self._check_no_route(answer, place)
            return
        described = operation["responses"].get(str(answer.status_code))
        assert described is not None, f"{place} is not described: {answer.text[:300]}"
        asked = (
            name for name, header in described["headers"].items() if name != "ETag" and header.get("required", True)
        )
        missing = [name for name in asked if name not in answer.headers]
        assert not missing, f"{place} lacks the headers {missing}"
        self._check_form(described, answer, place)
        if openapi.CODES in described and request.method != "HEAD":
            code = refusal_of(answer)["code"]
            is_known = code in described[openapi.CODES] or isinstance(code, int)  # one of JSON-RPC itself
            assert is_known, f"{place} does not say that it may be {code}"

    def check_head(self, answer: httpx2.Response) -> None:
        """The same for an answer whose body has no end yet."""
        operation = self._operation(answer.request.method, answer.request.url.path)
        assert operation is not None
        assert (
            answer.headers["content-type"].partition(";")[0]
            in operation["responses"][str(answer.status_code)]["content"]
        )

    def check_frame(self, text: str | bytes) -> None:
        """Raise ``AssertionError`` for a frame that the contract does not know."""
        frames = orjson.loads(text)
        for frame in frames if isinstance(frames, list) else [frames]:
            validator = self._frames.get(frame["event"])
            assert validator is not None, f"There is no frame {frame['event']!r}."
            _hold(validator, frame, f"the frame {frame['event']}")

    def _operation(self, method: str, path: str) -> Schema | None:
        wanted = "get" if method == "HEAD" else method.lower()
        for pattern, methods in self._paths:
            if pattern.fullmatch(path) and wanted in methods:
                found: Schema = methods[wanted]
                return found
        return None

    def _check_no_route(self, answer: httpx2.Response, place: str) -> None:
        if answer.request.method != "HEAD":
            refusal = refusal_of(answer)
            _hold(self._error, {"error": refusal}, place)
            assert refusal["code"] in NO_ROUTE, f"{place}: {answer.text}"

    def _check_form(self, said: Schema, answer: httpx2.Response, place: str) -> None:
        if "content" not in said or answer.request.method == "HEAD":
            assert not answer.content, place
            assert answer.request.method == "HEAD" or "content-type" not in answer.headers, place
            return
        kind = answer.headers["content-type"].partition(";")[0]
        assert kind in said["content"], f"{place} comes as {kind}, which is not described"
        schema = said["content"][kind]["schema"]
        value = orjson.loads(answer.content) if kind.endswith(("/json", "+json")) else answer.text
        _hold(self._validator(schema), value, place)

    def _validator(self, schema: Schema) -> jsonschema_rs.Validator:
        """The validator of a part of the document, which lives as long as this does."""
        if id(schema) not in self._validators:
            self._validators[id(schema)] = jsonschema_rs.Draft202012Validator(
                schema | self._components, validate_formats=True
            )
        return self._validators[id(schema)]


def _pattern(path: str, *, takes_slashes: bool) -> re.Pattern[str]:
    return re.compile(re.sub(r"\\\{\w+\\\}", "(?s:.+)" if takes_slashes else "[^/]+", re.escape(path)))


def _frame_validators() -> dict[str, jsonschema_rs.Validator]:
    """By the frame's event: any of its forms."""
    components = asyncapi.components()
    forms: dict[str, list[Schema]] = {}
    for kind in asyncapi.frame_kinds():
        event = components[kind.__name__]["properties"]["event"]["const"]
        forms.setdefault(event, []).append({"$ref": f"#/components/schemas/{kind.__name__}"})
    whole = {"components": {"schemas": components}}
    return {
        event: jsonschema_rs.Draft202012Validator({"anyOf": listed} | whole, validate_formats=True)
        for event, listed in forms.items()
    }


def _hold(validator: jsonschema_rs.Validator, value: Any, place: str) -> None:
    faults = [
        f"{'/'.join(map(str, fault.instance_path))}: {fault.message[:300]}" for fault in validator.iter_errors(value)
    ]
    assert not faults, f"{place} breaks the contract: {faults}\n{orjson.dumps(value)[:1000]!r}"


@cache
def contract() -> Contract:
    """The contract, made once: that takes a moment."""
    return Contract()


class CheckedClient(httpx2.AsyncClient):
    """A client of the server that holds each answer to the contract."""

    async def send(self, request: httpx2.Request, *, stream: bool = False, **more: Any) -> httpx2.Response:
        """Send, and check what comes."""
        answer = await super().send(request, stream=stream, **more)
        if stream:
            contract().check_head(answer)
        else:
            contract().check_answer(answer)
        return answer


class CheckedSocket(ClientConnection):
    """A client of ``/ws`` that holds each frame to the contract."""

    async def recv(self, decode: bool | None = None) -> Any:  # noqa: FBT001 - as websockets has it
        """The next frame, checked."""
        message = await super().recv(decode)
        contract().check_frame(message)
        return message
