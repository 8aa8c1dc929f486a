"""The page at ``/docs``: plain, whole, and clean under its own policy."""

from __future__ import annotations

import re

from organism.server.app import ROUTES
from organism.server.documents.openapi import document
from organism.server.documents.page import element, page
from tests.server.served import Served


async def test_it_is_served_without_a_token_with_its_style(hello: Served) -> None:
    answer = await hello.client.get("/docs")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.content == page(document(ROUTES))
    style = await hello.client.get("/docs.css")
    assert (style.status_code, style.headers["content-type"]) == (200, "text/css; charset=utf-8")


async def test_its_policy_allows_nothing_inline_and_nothing_foreign_and_it_has_none(hello: Served) -> None:
    answer = await hello.client.get("/docs")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"<(script|style|iframe|img|form)\b|\s(style|on\w+)=", answer.text)
    links = re.findall(r'(?:href|src)="([^"]*)"', answer.text)
    assert links
    assert all(link.startswith(("/", "#")) for link in links)


def test_every_operation_and_every_shape_stands_in_it() -> None:
    described = document(ROUTES)
    shown = page(described).decode()
    for path, methods in described["paths"].items():
        for method, said in methods.items():
            assert f"<h2>{method.upper()} {path}</h2>" in shown
            assert f'<section id="{said["operationId"]}">' in shown
    assert all(f'<section id="{name}">' in shown for name in described["components"]["schemas"])


def test_text_cannot_become_an_element() -> None:
    assert element("p", "<script>", element("b", "&"), title='"') == (
        '<p title="&quot;">&lt;script&gt;<b>&amp;</b></p>'
    )
