"""The OpenAPI document as a plain page: no script, no foreign address, and a style of its own server's.

Text becomes HTML by ``element`` alone, which escapes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Any, Final

import orjson

from organism.server.documents.schemas import Schema, type_of

_CODE: Final = re.compile(r"`([^`]+)`")
_BARE: Final = frozenset({"link", "meta"})
"""The elements that have no end."""


class Html(str):
    """Finished HTML."""

    __slots__ = ()


def element(name: str, /, *inner: str, **attributes: str) -> Html:
    """An element. What in it is no ``Html`` is text, and escaped; ``class_`` is ``class``."""
    said = "".join(f' {key.rstrip("_")}="{escape(value)}"' for key, value in attributes.items())
    text = "".join(part if isinstance(part, Html) else escape(part) for part in inner)
    end = () if name in _BARE else (text, "</", name, ">")
    return Html("".join(("<", name, said, ">", *end)))


def page(document: Schema) -> bytes:
    info, operations = document["info"], list(_operations(document))
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width"),
        element("title", f"{info['title']}: the API"),
        element("link", rel="stylesheet", href="/docs.css"),
    )
    body = element(
        "body",
        element("h1", f"{info['title']}: the API"),
        element("p", info["summary"]),
        element("p", *_marked(info["description"])),
        element("p", "For programs: ", _link("/openapi.json"), ", and for the socket ", _link("/asyncapi.json"), "."),
        element(
            "nav",
            *(
                element("div", _link(f"#{said['operationId']}", name), " ", *_marked(said["summary"]))
                for name, said in operations
            ),
        ),
        *(_operation(name, said) for name, said in operations),
        element("h2", "Shapes"),
        *(_shape(name, schema) for name, schema in document["components"]["schemas"].items()),
    )
    return b"<!doctype html>\n" + element("html", head, body, lang="en").encode()


def _operations(document: Schema) -> Iterator[tuple[str, Schema]]:
    for path, methods in document["paths"].items():
        for method, said in methods.items():
            yield f"{method.upper()} {path}", said


def _link(to: str, text: str = "") -> Html:
    return element("a", text or to, href=to)


def _marked(text: str) -> Iterator[str]:
    """The text, with what stands between backticks as code."""
    for at, part in enumerate(_CODE.split(text)):
        yield element("code", part) if at % 2 else part


def _operation(name: str, said: Schema) -> Html:
    return element(
        "section",
        element("h2", name),
        element("p", *_marked(f"{said['summary']}. {said['description']}")),
        *_table(
            (each["name"], each["in"], type_of(each["schema"]), each["description"]) for each in said["parameters"]
        ),
        *_forms("Takes", said.get("requestBody", {})),
        *_answers(said["responses"]),
        id=said["operationId"],
    )


def _answers(responses: Schema) -> Iterator[Html]:
    """What is given with its example, then what is refused."""
    for status, answer in responses.items():
        yield from _forms(status, answer) if status < "400" else ()
    yield from _table((status, answer["description"]) for status, answer in responses.items() if status >= "400")


def _forms(title: str, answer: Schema) -> Iterator[Html]:
    if not answer:
        return
    yield element("h3", title)
    yield element("p", *_marked(answer["description"]))
    for kind, form in answer.get("content", {}).items():
        yield element("p", element("code", kind), " ", type_of(form["schema"]))
        yield element("pre", _shown(form["example"]))


def _shown(example: Any) -> str:
    return example if isinstance(example, str) else orjson.dumps(example, option=orjson.OPT_INDENT_2).decode()


def _shape(name: str, schema: Schema) -> Html:
    fields = schema.get("properties")
    rows = [(field, type_of(said), said.get("description", "")) for field, said in (fields or {}).items()]
    kind = () if fields is not None else (element("p", element("code", type_of(schema))),)
    said = element("p", *_marked(schema.get("description", "")))
    return element("section", element("h3", name), said, *kind, *_table(rows), id=name)


def _table(rows: Any) -> Iterator[Html]:
    listed = [element("tr", *(element("td", *_marked(cell)) for cell in row)) for row in rows]
    if listed:
        yield element("table", *listed)
