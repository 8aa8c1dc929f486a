"""What the programs in Python use: where the server is, what its model answers, and checks that print their outcome."""

import asyncio
import base64
import inspect
import json
import os
import urllib.request
from collections.abc import Callable
from typing import Any, TypeVar

URL, TOKEN, SPENT_TOKEN = (os.environ[name] for name in ("ORGANISM_URL", "ORGANISM_TOKEN", "SPENT_TOKEN"))
SHOWN_CHARS = 300
E = TypeVar("E", bound=Exception)
HELLO: Any = [{"role": "user", "content": "Hello!"}]
ORDER = {"name": "find", "arguments": {"id": 7}, "id": "call_a"}
"""A call of the client's own function."""


def check(sentence: str) -> Callable[[Callable[[], Any]], None]:
    """Run what is decorated, once, with a model that has no script; print whether it holds."""

    def decorated(act: Callable[[], Any]) -> None:
        try:
            steer("DELETE", "")
            came = act()
            if inspect.isawaitable(came):
                asyncio.run(came)  # type: ignore[arg-type]  # an `async def`
        except BaseException as error:  # noqa: BLE001 - whatever is raised, the other checks are run
            line = (inspect.trace()[-1].code_context or [""])[0]
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            said = f"{type(error).__name__}: {str(error) or line}"
            print(f"not ok {sentence} — {' '.join(said.split())[:SHOWN_CHARS]}", flush=True)
        else:
            print(f"ok {sentence}", flush=True)

    return decorated


def raised(kind: type[E], act: Callable[[], object]) -> E:
    """The error of this kind that ``act`` ends with."""
    try:
        came = act()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}, but {came}")


def tell(*answers: dict[str, Any]) -> None:
    """What the model answers, one call after the other."""
    script = [{"body": None, **each, "calls": each.get("calls", [])} for each in answers]
    steer("POST", "script", json.dumps(script).encode())


def refuse(status: int, **error: Any) -> dict[str, Any]:
    """A refusal of the model's provider, whose JSON has these fields; it is given as often as one asks."""
    body = base64.b64encode(json.dumps({"error": {"param": None, "code": None, **error}}).encode()).decode()
    return {"status": status, "body": body, "times": 0, "headers": {"retry-after": "7"}}


def asked() -> list[dict[str, Any]]:
    """What the model was asked since the check began."""
    return [request["body"] for request in steer("GET", "requests")]


def steer(method: str, what: str, body: bytes | None = None) -> Any:
    request = urllib.request.Request(f"{os.environ['PEER_URL']}/_peer/{what}", body, method=method)  # noqa: S310 - http
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - as above
        return json.load(answer)
