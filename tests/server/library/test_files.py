"""Files for an index: their text becomes documents, in the place of those of a file of the same name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import pytest

from organism.bootstrap import Parts
from organism.rag.hashed_words import HashedWords
from organism.server.http.call import MAX_GATEWAY_BODY_BYTES
from tests.cli.test_rag import pdf
from tests.server.library.asking import DAN, PARK, LibraryClient
from tests.server.library.test_background import Held, embedded, with_library
from tests.server.served import Served, served
from tests.server.tenanted import bearer, hello_with

PAGE = b"<html><head><title>no</title></head><body><h1>Ships</h1><p>2,400 a <b>year</b></p></body>"


async def send(
    server: Served, data: bytes, kind: str = "text/plain", path: str = "a/files?name=a.txt", **headers: str
) -> httpx2.Response:
    named = {**DAN, "Content-Type": kind, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return await server.call("POST", f"//a1/rag/indices/{path}", content=data, headers=named)


async def taken(server: Served, *given: Any, **more: Any) -> Any:
    answer = await send(server, *given, **more)
    assert answer.status_code == 202, answer.text
    return answer.json()


async def refused(status: int, code: str, server: Served, *given: Any, **more: Any) -> Any:
    answer = await send(server, *given, **more)
    assert (answer.status_code, answer.json()["error"]["code"]) == (status, code)
    return answer.json()["error"]


async def texts(library: LibraryClient) -> list[tuple[str, str]]:
    documents = (await library.ok("GET", "/a/documents"))["documents"]
    return [(each["metadata"].get("path"), each["text"]) for each in documents]


@pytest.mark.parametrize(
    ("kind", "data", "found"),
    [
        ("text/plain; charset=utf-8", b"Plain text.", ["Plain text."]),
        ("text/markdown", b"# Head\n\nText.", ["# Head\n\nText."]),
        ("text/html", PAGE, ["Ships\n\n2,400 a year"]),
        ("application/pdf", pdf("One.", "Two."), ["One.", "Two."]),
    ],
)
async def test_the_text_of_a_file_becomes_documents_that_name_it(
    library: LibraryClient, kind: str, data: bytes, found: list[str]
) -> None:
    said = await taken(library.server, data, kind, "a/files?name=the%20file")
    assert {name: said[name] for name in said if name != "work"} == {
        "index_id": "a",
        "source": "the file",
        "documents": len(found),
    }
    assert await texts(library) == [("the file", text) for text in found]
    await embedded(library, "a", len(found))


async def test_a_file_is_stored_at_once_and_embedded_in_the_background() -> None:
    words = Held()
    async with with_library(words) as library:
        said = await taken(library.server, pdf("One.", "Two."), "application/pdf")
        assert said["work"] == {"kind": "embed", "done": 0, "total": 2}
        assert (await library.ok("GET", "/a"))["work"] == said["work"]
        words.go_on()
        await embedded(library, "a", 2)


async def test_the_same_name_replaces_its_documents_and_no_others(library: LibraryClient) -> None:
    await library.put("a", PARK)
    await taken(library.server, pdf("One.", "Two.", "Three."), "application/pdf")
    await taken(library.server, b"Another.", path="a/files?name=b.txt")
    assert (await taken(library.server, pdf("Uno.", "Two."), "application/pdf"))["documents"] == 2
    assert sorted(text for _, text in await texts(library)) == sorted([PARK["text"], "Another.", "Uno.", "Two."])
    assert (await library.ok("GET", "/a"))["doc_count"] == 4
    assert (await taken(library.server, b" \n"))["documents"] == 0
    assert sorted(text for _, text in await texts(library)) == sorted([PARK["text"], "Another."])


async def test_a_file_without_text_begins_no_index(library: LibraryClient) -> None:
    said = await taken(library.server, b"")
    assert said == {"index_id": "a", "source": "a.txt", "documents": 0, "work": None}
    await library.refused(404, "GET", "/a")


@pytest.mark.parametrize(
    ("kind", "data", "why"),
    [
        ("text/plain", b"caf\xe9", "it is not UTF-8 (byte 3)"),
        ("text/markdown", b"a\0b", "it is no text: it has NUL characters"),
        ("application/pdf", b"%PDF-1.7 but no more", "it cannot be read as a PDF"),
        ("application/pdf", pdf(*["x"] * 2001), "it has 2001 pages, more than 2000"),
    ],
)
async def test_a_file_that_cannot_be_read_says_why_and_changes_nothing(
    library: LibraryClient, kind: str, data: bytes, why: str
) -> None:
    await taken(library.server, b"Before.")
    error = await refused(400, "file_unreadable", library.server, data, kind)
    assert why in error["message"]
    assert await texts(library) == [("a.txt", "Before.")]


async def test_what_is_no_such_file_is_refused(library: LibraryClient) -> None:
    server = library.server
    await refused(415, "unsupported_media_type", server, b"x", "image/png")
    await refused(415, "unsupported_media_type", server, b'{"a":1}', "application/json")
    await refused(413, "body_too_large", server, b"x" * (MAX_GATEWAY_BODY_BYTES + 1))
    await refused(400, "missing_field", server, b"x", path="a/files")
    await refused(400, "unknown_field", server, b"x", path="a/files?name=a&as=b")
    for name in ("", "n" * 1001, "a%00b", "%E2%80%AE"):
        assert (await send(server, b"x", path=f"a/files?name={name}")).status_code == 400
    await refused(400, "invalid_field", server, b"x", path="a%20b/files?name=a")
    await library.refused(404, "GET", "/a")


async def test_only_who_may_write_the_index_may_add_files_and_only_to_its_tenants(tmp_path: Path) -> None:
    rights = {
        "reader": {"scopes": ["rag:read"]},
        "writer": {"scopes": ["rag:write"]},
        "narrow": {"scopes": ["rag:write:index:b"]},
    }
    config = hello_with(tmp_path, {"acme": rights, "globex": {"writer": {"scopes": ["rag:write", "rag:read"]}}})
    async with served(config, parts=Parts(embeddings=HashedWords())) as server:
        for name, status in (("reader", 403), ("narrow", 403), ("writer", 202)):
            assert (await send(server, b"x", **bearer("acme", name))).status_code == status
        assert (await send(server, b"x", path="b/files?name=b", **bearer("acme", "narrow"))).status_code == 202
        others = await server.call("GET", "//a1/rag/indices", headers=DAN | bearer("globex", "writer"))
        assert others.json()["indices"] == []


async def test_the_same_key_does_it_once(library: LibraryClient) -> None:
    first = await send(library.server, b"One.", Idempotency_Key="k")
    await taken(library.server, b"Two.")
    again = await send(library.server, b"One.", Idempotency_Key="k")
    assert (again.status_code, again.content) == (202, first.content)
    assert await texts(library) == [("a.txt", "Two.")]
    await refused(422, "idempotency_key_reused", library.server, b"Other.", Idempotency_Key="k")
