"""The library's tools: a model, or a program by /v1/tools/execute, searches and reads what its tenant has."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest

from organism.bootstrap import Parts
from organism.codec import Codec
from organism.rag.hashed_words import HashedWords
from organism.tools.library import LibraryTools, NewDocument, RagDocAppend, RagDocGet, RagDocList, RagQuery
from tests.server.library.asking import DAMM, PARK, TOR, LibraryClient
from tests.server.served import served
from tests.server.tenanted import bearer, hello_with


async def execute(library: LibraryClient, tool: str, **arguments: Any) -> httpx2.Response:
    return await library.server.call("POST", "//v1/tools/execute", json={"name": tool, "arguments": arguments})


async def result(library: LibraryClient, tool: str, **arguments: Any) -> Any:
    answer = await execute(library, tool, **arguments)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


async def test_a_tool_searches_an_index(library: LibraryClient) -> None:
    await library.put("berlin-info", TOR, {**PARK, "metadata": {"lang": "de"}}, DAMM)
    found = await result(library, "rag_query", index_id="berlin-info", query="Wo ist der größte Park?", top_k=2)
    first, second = found["results"]
    assert (found["index_id"], first["id"], first["text"]) == ("berlin-info", "d2", PARK["text"])
    assert first["metadata"] == {"lang": "de"}
    assert first["score"] > second["score"]


async def test_tools_list_and_read(library: LibraryClient) -> None:
    await library.put("a", TOR, PARK, DAMM)
    await library.put("b")
    listed = await result(library, "rag_index_list")
    assert ([each["id"] for each in listed["indices"]], listed["total"]) == (["a", "b"], 2)
    described = await result(library, "rag_index_describe", index_id="a")
    shown = await library.ok("GET", "/a")
    assert described == {name: shown[name] for name in described}
    documents = await result(library, "rag_doc_list", index_id="a", offset=1, limit=1)
    assert ([each["id"] for each in documents["documents"]], documents["total"]) == (["d2"], 3)
    assert await result(library, "rag_doc_get", index_id="a", doc_id="d1") == {**TOR, "metadata": {}}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("rag_query", {"index_id": "none", "query": "x"}),
        ("rag_index_describe", {"index_id": "none"}),
        ("rag_doc_list", {"index_id": "none"}),
        ("rag_doc_get", {"index_id": "none", "doc_id": "d1"}),
        ("rag_doc_get", {"index_id": "a", "doc_id": "none"}),
    ],
)
async def test_what_is_not_there_is_reported(library: LibraryClient, tool: str, arguments: dict[str, Any]) -> None:
    await library.put("a", TOR)
    answer = await execute(library, tool, **arguments)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize("arguments", [{"top_k": 0}, {"top_k": 51}, {"index_id": "a b"}, {"query": ""}, {"filter": {}}])
async def test_arguments_beyond_the_schema_are_refused(library: LibraryClient, arguments: dict[str, Any]) -> None:
    await library.put("a", TOR)
    answer = await execute(library, "rag_query", **{"index_id": "a", "query": "Tor", **arguments})
    assert answer.status_code == 400


async def test_what_xml_cannot_carry_does_not_stop_a_tool(library: LibraryClient) -> None:
    await library.put("a", {"id": "d1", "text": "bell \x07 and <b>&amp;</b>\x00", "metadata": {"x": "\ufffe"}})
    found = await result(library, "rag_doc_get", index_id="a", doc_id="d1")
    assert found["text"] == "bell \ufffd and <b>&amp;</b>\ufffd"
    assert found["metadata"] == {"x": "\ufffe"}
    assert (await library.ok("GET", "/a/documents/d1"))["text"] == "bell \x07 and <b>&amp;</b>\x00"


class Recorded:
    """A handler's metadata whose effects were all recorded before."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self._answer = answer

    async def effect(self, *_: object) -> dict[str, Any]:
        return {"answer": self._answer}


OLD = {"id": "d1", "text": "x", "metadata": '{"lang":"de"}'}
"""A document as earlier versions recorded it."""


@pytest.mark.parametrize(
    ("tool", "payload", "answer"),
    [
        ("doc_get", RagDocGet("a", "d1"), OLD),
        ("doc_list", RagDocList("a"), {"index_id": "a", "documents": [OLD], "total": 1}),
        ("query", RagQuery("a", "x"), {"index_id": "a", "results": [{**OLD, "score": 1.0}]}),
    ],
)
async def test_metadata_that_was_recorded_as_text_is_answered_as_an_object(
    tool: str, payload: object, answer: dict[str, Any]
) -> None:
    nothing_is_asked: Any = None
    reply = (await getattr(LibraryTools(nothing_is_asked), tool)(payload, Recorded(answer))).payload
    shown = orjson.loads(Codec.of([type(reply)]).encode("a", "b", "t", reply).json)
    (document,) = shown.get("documents") or shown.get("results") or [shown]
    assert document["metadata"] == {"lang": "de"}


async def test_messages_of_earlier_versions_with_metadata_as_text_are_read() -> None:
    codec = Codec.of([RagDocAppend])
    append = RagDocAppend("a", [NewDocument("d1", "x", {"lang": "de"})])
    xml = codec.encode("a", "b", "t", append).xml
    assert b'<metadata>{"lang":"de"}</metadata>' in xml  # as it was written as text
    assert codec.decode(xml).payload == append
    json = {"index_id": "a", "documents": [OLD], "confirm_token": ""}
    assert codec.from_json("RagDocAppend", json) == append


async def test_an_answer_has_as_many_documents_as_it_has_room_for(library: LibraryClient) -> None:
    await library.put("a", *({"id": f"n{number}", "text": '"' * 8192} for number in range(20)))
    listed = await result(library, "rag_doc_list", index_id="a", limit=20)
    assert (len(listed["documents"]), listed["total"]) == (3, 20)


async def test_a_tool_reads_its_own_tenant_s_library(tmp_path: Path) -> None:
    config = hello_with(tmp_path, {"acme": {"boss": ["admin"]}, "globex": {"boss": ["admin"]}})
    words = HashedWords()
    async with served(config, parts=Parts(embeddings=words)) as server:
        await LibraryClient(server, words, bearer("acme", "boss")).put("foo", TOR)
        for tenant, status in (("acme", 200), ("globex", 404)):
            body = {"name": "rag_query", "arguments": {"index_id": "foo", "query": "Tor"}}
            answer = await server.call("POST", "//v1/tools/execute", json=body, headers=bearer(tenant, "boss"))
            assert answer.status_code == status
