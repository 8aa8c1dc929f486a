"""The API as a page for people: each operation with a form that sends it, the socket's frames and commands, all shapes.

The page has no inline script or style and asks no other server. Text becomes HTML by ``element`` alone, which escapes
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any, Final

import orjson

from organism.server.documents.schemas import Schema, type_of

_CODE: Final = re.compile(r"`([^`]+)`")
_VOID: Final = frozenset({"link", "meta", "input"})
"""The elements without an end tag."""


class Html(str):
    """Finished HTML."""

    __slots__ = ()


def element(name: str, /, *inner: str, **attributes: str) -> Html:
    """An element, in which all but ``Html`` is escaped. ``data_in`` is the attribute ``data-in``."""
    named = "".join(f' {key.replace("_", "-")}="{escape(value)}"' for key, value in attributes.items())
    text = "".join(part if isinstance(part, Html) else escape(part) for part in inner)
    end = () if name in _VOID else (text, "</", name, ">")
    return Html("".join(("<", name, named, ">", *end)))


def page(openapi: Schema, asyncapi: Schema) -> bytes:
    """The page of both documents, in UTF-8."""
    info = openapi["info"]
    title = f"{info['title']}: the API"
    shapes = {**openapi["components"]["schemas"], **asyncapi["components"]["schemas"]}
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("link", rel="icon", href="/icon.svg", type="image/svg+xml"),
        element("link", rel="stylesheet", href="/docs.css"),
        element("script", type="module", src="/docs.js"),
    )
    groups = [(tag, list(_operations_of(openapi, tag["name"]))) for tag in openapi["tags"]]
    body = element(
        "body",
        element("h1", title),
        element("p", info["summary"]),
        element("p", *_marked(info["description"])),
        element("p", "For programs: ", _link("/openapi.json"), ", and for the socket ", _link("/asyncapi.json"), "."),
        element(
            "label",
            "Token for the forms, held in this page's memory only ",
            element("input", id="token", type="password", autocomplete="off", spellcheck="false"),
        ),
        element("nav", *(_contents(tag["name"], operations) for tag, operations in groups), _link("#socket", "/ws")),
        *(_group(tag, operations) for tag, operations in groups),
        _socket(asyncapi),
        element("h2", "Shapes"),
        *(_shape(name, shapes[name]) for name in sorted(shapes)),
    )
    return b"<!doctype html>\n" + element("html", head, body, lang="en").encode()


Operation = tuple[str, str, Schema]
"""A method, a path, and what the document says of them."""


def _operations_of(document: Schema, tag: str) -> Iterator[Operation]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if operation["tags"] == [tag]:
                yield method.upper(), path, operation


def _contents(name: str, operations: Sequence[Operation]) -> Html:
    links = (
        element("li", _link(f"#{operation['operationId']}", f"{method} {path}"))
        for method, path, operation in operations
    )
    return element("details", element("summary", name.replace("_", " ")), element("ul", *links))


def _group(tag: Schema, operations: Sequence[Operation]) -> Html:
    name = tag["name"].replace("_", " ")
    shown = (_operation(*operation) for operation in operations)
    return element("section", element("h2", name), element("p", *_marked(tag["description"])), *shown)


def _operation(method: str, path: str, operation: Schema) -> Html:
    return element(
        "section",
        element("h3", f"{method} {path}"),
        element("p", *_marked(f"{operation['summary']}. {operation['description']}")),
        *_table(
            (each["name"], each["in"], type_of(each["schema"]), each["description"]) for each in operation["parameters"]
        ),
        *_forms("Takes", operation.get("requestBody", {})),
        *_answers(operation["responses"]),
        element("details", element("summary", "Send it"), _sender(method, path, operation)),
        id=operation["operationId"],
    )


def _sender(method: str, path: str, operation: Schema) -> Html:
    """The form that ``docs.js`` sends."""
    fields = [_field(each) for each in operation["parameters"]]
    for kind, form in list(operation.get("requestBody", {}).get("content", {}).items())[:1]:
        fields.append(element("textarea", _shown(form["example"]), rows="8", name=kind, spellcheck="false"))
    send = element("button", f"Send {method}")
    return element("form", *fields, send, element("output"), data_method=method, data_path=path)


def _field(parameter: Schema) -> Html:
    required = {"required": ""} if parameter["required"] else {}
    field = element("input", name=parameter["name"], data_in=parameter["in"], autocomplete="off", **required)
    return element("label", parameter["name"], " ", field)


def _answers(responses: Schema) -> Iterator[Html]:
    """What is given with its example, then what is refused."""
    for status, answer in responses.items():
        yield from _forms(status, answer) if status < "400" else ()
    yield from _table((status, answer["description"]) for status, answer in responses.items() if status >= "400")


def _forms(title: str, answer: Schema) -> Iterator[Html]:
    if not answer:
        return
    yield element("h4", title)
    yield element("p", *_marked(answer["description"]))
    for kind, form in answer.get("content", {}).items():
        yield element("p", element("code", kind), " ", type_of(form["schema"]))
        yield element("pre", _shown(form["example"]))


def _socket(asyncapi: Schema) -> Html:
    """The socket: what it pushes, and each command with its answers."""
    operations = asyncapi["operations"].items()
    return element(
        "section",
        element("h2", "The WebSocket /ws"),
        element("p", *_marked(asyncapi["info"]["description"])),
        *(_pushed(operation, asyncapi) for _, operation in operations if operation["action"] == "send"),
        *(_command(name, operation, asyncapi) for name, operation in operations if operation["action"] == "receive"),
        id="socket",
    )


def _pushed(operation: Schema, asyncapi: Schema) -> Html:
    messages = asyncapi["components"]["messages"]
    rows = ((_link(f"#{name}", name), messages[name]["summary"]) for name in _names(operation))
    return element("section", element("h3", operation["summary"]), *_table(rows))


def _command(name: str, operation: Schema, asyncapi: Schema) -> Html:
    (command,) = _names(operation)
    example = asyncapi["components"]["messages"][command]["examples"][0]["payload"]
    answers = (part for answer in _names(operation["reply"]) for part in (" ", _link(f"#{answer}", answer)))
    return element(
        "section",
        element("h3", name),
        element("p", *_marked(operation["summary"])),
        element("pre", _shown(example)),
        element("p", "A ", _link(f"#{command}", command), ", answered by", *answers),
    )


def _names(operation: Schema) -> list[str]:
    return [message["$ref"].rpartition("/")[2] for message in operation["messages"]]


def _shape(name: str, schema: Schema) -> Html:
    fields = schema.get("properties")
    rows = [(field, type_of(part), part.get("description", "")) for field, part in (fields or {}).items()]
    kind = () if fields is not None else (element("p", element("code", type_of(schema))),)
    text = element("p", *_marked(schema.get("description", "")))
    return element("section", element("h3", name), text, *kind, *_table(rows), id=name)


def _link(to: str, text: str = "") -> Html:
    return element("a", text or to, href=to)


def _marked(text: str) -> Iterator[str]:
    """The text, with what stands between backticks as code."""
    for at, part in enumerate(_CODE.split(text)):
        yield element("code", part) if at % 2 else part


def _shown(example: Any) -> str:
    return example if isinstance(example, str) else orjson.dumps(example, option=orjson.OPT_INDENT_2).decode()


def _table(rows: Iterable[Iterable[str]]) -> Iterator[Html]:
    listed = [element("tr", *(element("td", *_cell(cell)) for cell in row)) for row in rows]
    if listed:
        yield element("table", *listed)


def _cell(cell: str) -> Iterable[str]:
    return (cell,) if isinstance(cell, Html) else _marked(cell)
