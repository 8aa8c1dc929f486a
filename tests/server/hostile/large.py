"""Requests and commands of any size, each of which a careless server reads in more than linear time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tests.server.hostile.http import HOST, POST, WHO

EXECUTE: Final = "/api/v1/tools/execute"
MOST_HEAD_BYTES: Final = 32 << 10
Make = Callable[[int], str]


def _get(path: str, *headers: str, who: str = WHO) -> str:
    return f"GET {path} HTTP/1.1\r\n{HOST}{who}" + "".join(f"{line}\r\n" for line in headers) + "\r\n"


def _post(body: str, path: str = "/api/v1/inject", kind: str = "application/json") -> str:
    head = POST.replace("/api/v1/inject", path).replace("application/json", kind)
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}"


def _greeting(payload: str) -> str:
    return _post(f'{{"to":"greeter","payload":{payload}}}')


def _xml(document: str) -> str:
    return _post(document, kind="application/xml")


def _sum(expression: str) -> str:
    return _tool(f'{{"expression":"{expression}"}}')


def _tool(arguments: str) -> str:
    return _post(f'{{"name":"calculator","arguments":{arguments}}}', EXECUTE)


def _twice(text: str) -> str:
    return f"{text},{text}"


def _many(bit: str, size: int) -> str:
    return bit * (size // len(bit))


def _numbered(bit: str, size: int, between: str = ",") -> str:
    return between.join(bit.replace("#", str(at)) for at in range(size // (len(bit) + 6)))


KEY: Final = '"a#":1'
TO: Final = '"to":1'
TAG: Final = '"#"'
TEXT: Final = '"a#"'
ATTRIBUTE: Final = 'a#="1"'
SPACE: Final = 'xmlns:a#="a#"'
GREETING: Final = '{"to":"greeter","payload":{"name":"x"},'

HEADS: Final[Mapping[str, Make]] = {
    "a name of a parameter, twice": lambda size: _get(f"/healthz?{_many('a.', size // 2)}&{_many('a.', size // 2)}"),
    "an unknown parameter": lambda size: _get(f"/api/v1/threads?{_many('a-', size)}=1"),
    "many parameters": lambda size: _get(f"/api/v1/threads?{_numbered('a#', size, '&')}"),
    "a number": lambda size: _get(f"/api/v1/threads?limit={_many('9', size)}"),
    "a position": lambda size: _get(f"/api/v1/organism?at={_many('9', size)}"),
    "a time": lambda size: _get(f"/api/v1/messages?since={_many('2024-', size)}"),
    "a text that is looked for": lambda size: _get(f"/api/v1/messages?q={_many('ab', size)}"),
    "a cursor": lambda size: _get(f"/api/v1/messages?cursor={_many('aA', size)}"),
    "a path": lambda size: _get(f"/api/v1/{_many('a/', size)}"),
    "a path of dots": lambda size: _get(f"/{_many('../', size)}"),
    "a path of escapes": lambda size: _get(f"/api/v1/threads/{_many('%61.', size)}"),
    "a thread": lambda size: _get(f"/api/v1/threads/{_many('eyJ-', size)}"),
    "an id of an agent": lambda size: _get(f"/api/v1/agents/{_many('org_a-', size)}"),
    "a token": lambda size: _get("/api/v1/organism", who=f"Authorization: Bearer {_many('org_-', size)}\r\n"),
    "a list of tags": lambda size: _get("/api/v1/organism", f"If-None-Match: {_many('W/,', size)}"),
    "a list of numbered tags": lambda size: _get("/api/v1/organism", f"If-None-Match: {_numbered(TAG, size)}"),
    "a tag": lambda size: _post("").replace("Content-Length", f"If-Match: {_many('1', size)}\r\nContent-Length", 1),
    "forms that are accepted": lambda size: _get("/api/v1/organism", f"Accept: {_many('a;q=0.1,', size)}"),
    "an origin": lambda size: _get("/api/v1/organism", f"Origin: http://{_many('a.', size)}"),
    "a host": lambda size: _get("/healthz").replace("localhost", _many("a.", size)),
    "a kind of body": lambda size: _post("{}", kind=_many("a/", size)),
    "the depth of a caller": lambda size: _get("/api/v1/organism", f"SPASS-Caller-Depth: {_many('9', size)}"),
    "headers of one name": lambda size: _get("/healthz", *("x: a" for _ in range(min(200, size // 6)))),
}
"""What a head may hold: up to 64 KiB of it."""

BODIES: Final[Mapping[str, Make]] = {
    "an unknown key": lambda size: _post(f'{GREETING}"{_many("a.", size)}":1}}'),
    "many unknown keys": lambda size: _post(f"{GREETING}{_numbered(KEY, size)}}}"),
    "a key that stands twice": lambda size: _post(GREETING + _twice(f'"{_many("a.", size // 2)}":1') + "}"),
    "a key that stands twice among many": lambda size: _post(f"{GREETING}{_numbered(KEY, size)},{TO}}}"),
    "an unknown receiver": lambda size: _post(f'{{"to":"{_many("eyJ-", size)}","payload":{{}}}}'),
    "an unknown field of a payload": lambda size: _greeting(f'{{"{_many("a.", size)}":1}}'),
    "many unknown fields": lambda size: _greeting(f"{{{_numbered(KEY, size)}}}"),
    "a payload of another kind": lambda size: _greeting(f'["{_many("a.", size)}"]'),
    "a field of another kind": lambda size: _greeting(f'{{"name":[{_many("1,", size)}1]}}'),
    "a control character behind much": lambda size: _greeting(f'{{"name":"{_many("a", size)}\\u0000"}}'),
    "a number of many digits": lambda size: _post(f'{GREETING}"wait":{_many("9", size)}}}'),
    "a fraction of many digits": lambda size: _post(f'{GREETING}"wait":0.{_many("9", size)}}}'),
    "an exponent of many digits": lambda size: _post(f'{GREETING}"wait":1e{_many("9", size)}}}'),
    "no JSON": lambda size: _post(_many('"', size)),
    "brackets": lambda size: _post(_many("[", size)),
    "escapes": lambda size: _post(f'{{"to":"{_many(chr(92) * 2, size)}"}}'),
    "a name that is no element": lambda size: _xml(f"<{_many('a.', size)}/>"),
    "many elements": lambda size: _xml(f"<Greeting>{_many('<name>x</name>', size)}</Greeting>"),
    "many namespaces": lambda size: _xml(f"<Greeting {_numbered(SPACE, size, ' ')}/>"),
    "many attributes": lambda size: _xml(f"<Greeting {_numbered(ATTRIBUTE, size, ' ')}/>"),
    "an attribute": lambda size: _xml(f"<Greeting a='{_many('&lt;', size)}'/>"),
    "references": lambda size: _xml(f"<Greeting><name>{_many('&amp;', size)}</name></Greeting>"),
    "what is open": lambda size: _xml(_many("<a>", size)),
    "a document type": lambda size: _xml(f"<!DOCTYPE {_many('<!', size)}"),
    "comments": lambda size: _xml(f"<Greeting>{_many('<!---->', size)}</Greeting>"),
    "a sum": lambda size: _sum(f'{_many("1+", size)}1'),
    "a power": lambda size: _sum(f'{_many("9^", size)}9'),
    "digits": lambda size: _sum(f'{_many("9", size)}*2'),
    "arguments that are unknown": lambda size: _tool(f"{{{_numbered(KEY, size)}}}"),
}  # fmt: skip
"""What a body may hold: up to 1 MiB of it."""

COMMANDS: Final[Mapping[str, Make]] = {
    "an id": lambda size: f'{{"cmd":"ping","id":"{_many("a.", size)}"}}',
    "an id of a command that is none": lambda size: f'{{"cmd":"x","id":["{_many("eyJ-", size)}"]}}',
    "a command": lambda size: f'{{"cmd":"{_many("a.", size)}"}}',
    "a key": lambda size: f'{{"cmd":"ping","{_many("a.", size)}":1}}',
    "many keys": lambda size: f'{{"cmd":"ping",{_numbered(KEY, size)}}}',
    "many events": lambda size: f'{{"cmd":"subscribe","events":[{_numbered(TEXT, size)}]}}',
    "many threads": lambda size: f'{{"cmd":"subscribe","threads":[{_numbered(TEXT, size)}]}}',
    "many fields of a payload": lambda size: f'{{"cmd":"inject","to":"greeter","payload":{{{_numbered(KEY, size)}}}}}',
    "a thread": lambda size: f'{{"cmd":"kill","thread_id":"{_many("a.", size)}"}}',
    "a token": lambda size: f'{{"cmd":"auth","token":"{_many("org_-", size)}"}}',
}  # fmt: skip
