"""The library over HTTP: what comes in is found again, by meaning and by words; its limits; what the log says of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from organism.bootstrap import Parts
from organism.rag.hashed_words import HashedWords
from tests.server.library.asking import DAMM, DAN, PARK, TOR, LibraryClient
from tests.server.served import served
from tests.server.tenanted import bearer, hello_with


def docs(count: int, begin: int = 0) -> list[dict[str, Any]]:
    return [{"id": f"n{number}", "text": f"text number {number}"} for number in range(begin, begin + count)]


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


# -- the way of a document


async def test_what_is_ingested_is_found(library: LibraryClient) -> None:
    said = await library.put("berlin-info", TOR, PARK)
    assert said == {"index_id": "berlin-info", "ingested": 2, "doc_count": 2}
    answer = await library.ok("POST", "/berlin-info/query", {"query": "Wo ist der größte Park?", "top_k": 2})
    assert [each["id"] for each in answer["results"]] == ["d2", "d1"]
    first = answer["results"][0]
    assert (first["text"], first["metadata"]) == (PARK["text"], {})
    assert first["score"] > answer["results"][1]["score"]
    assert (answer["mode"], answer["embedding_model"]) == ("hybrid", "plain")


async def test_an_index_is_described(library: LibraryClient) -> None:
    await library.put("a", TOR, PARK)
    await library.put("b", TOR, embedding_model="other")
    (a, b) = (await library.ok("GET"))["indices"]
    assert (a["id"], a["doc_count"], a["embedding_model"]) == ("a", 2, "plain")
    assert (b["id"], b["doc_count"], b["embedding_model"]) == ("b", 1, "other")
    assert await library.ok("GET", "/a") == a
    await library.refused(404, "GET", "/c")


async def test_a_full_replace_drops_what_was_there(library: LibraryClient) -> None:
    await library.put("a", TOR, PARK)
    created = (await library.ok("GET", "/a"))["created_at"]
    assert await library.put("a", DAMM) == {"index_id": "a", "ingested": 1, "doc_count": 1}
    assert await library.ids("a") == ["d3"]
    assert await library.found("a", "Brandenburger Tor") == ["d3"]
    assert await library.found("a", "Brandenburger Tor", mode="keyword") == []
    assert (await library.ok("GET", "/a"))["created_at"] == created


async def test_append_adds_and_puts_in_the_place_of_what_has_the_id(library: LibraryClient) -> None:
    await library.put("a", TOR, PARK)
    said = await library.add("a", {"id": "d1", "text": "Ein anderer Text."}, DAMM)
    assert said == {"index_id": "a", "ingested": 2, "doc_count": 3}
    assert await library.ids("a") == ["d1", "d2", "d3"]
    assert (await library.ok("GET", "/a/documents/d1"))["text"] == "Ein anderer Text."
    assert await library.found("a", "Brandenburger", mode="keyword") == []


async def test_append_begins_an_index(library: LibraryClient) -> None:
    assert await library.add("new", TOR) == {"index_id": "new", "ingested": 1, "doc_count": 1}


async def test_a_patch_replaces_what_it_names_and_embeds_only_another_text(library: LibraryClient) -> None:
    await library.put("a", {**TOR, "metadata": {"lang": "de"}})
    said = await library.ok("PATCH", "/a/documents/d1", {"metadata": {"category": "sights", "source": "manual"}})
    assert said == {**TOR, "metadata": {"category": "sights", "source": "manual"}}
    assert library.words.texts == [TOR["text"]]
    said = await library.ok("PATCH", "/a/documents/d1", {"text": "Der Reichstag."})
    assert said == {"id": "d1", "text": "Der Reichstag.", "metadata": {"category": "sights", "source": "manual"}}
    assert library.words.texts == [TOR["text"], "Der Reichstag."]
    assert await library.found("a", "Reichstag", mode="vector") == ["d1"]
    assert await library.ok("GET", "/a/documents/d1") == said


async def test_what_was_embedded_is_not_embedded_again(library: LibraryClient) -> None:
    await library.put("a", TOR, PARK)
    await library.put("a", TOR, DAMM)
    await library.add("b", {**TOR, "id": "other"})
    assert library.words.texts == [TOR["text"], PARK["text"], DAMM["text"]]


async def test_a_document_is_deleted_once(library: LibraryClient) -> None:
    await library.put("a", TOR, PARK)
    assert await library.ok("DELETE", "/a/documents/d1") == {"deleted": True}
    assert await library.ok("DELETE", "/a/documents/d1") == {"deleted": False}
    await library.refused(404, "GET", "/a/documents/d1")
    assert await library.found("a", "Brandenburger Tor") == ["d2"]
    assert await library.ok("DELETE", "/a/documents/d2") == {"deleted": True}
    assert await library.found("a", "Park") == []
    assert (await library.ok("GET", "/a"))["doc_count"] == 0


async def test_an_index_is_deleted_with_all_that_it_has(library: LibraryClient) -> None:
    await library.put("a", TOR)
    assert await library.ok("DELETE", "/a") == {"deleted": True}
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/documents"), ("GET", "/documents/d1")):
        assert (await library.refused(404, method, f"/a{path}"))["code"] == "not_found"
    await library.put("a", PARK)
    assert await library.ids("a") == ["d2"]
    assert await library.found("a", "Brandenburger Tor", mode="keyword") == []


async def test_a_list_is_gone_through_while_it_changes(library: LibraryClient) -> None:
    await library.put("a", *docs(5))
    page = await library.ok("GET", "/a/documents?limit=2")
    assert ([each["id"] for each in page["documents"]], page["total"]) == (["n0", "n1"], 5)
    await library.ok("DELETE", "/a/documents/n0")
    await library.ok("PATCH", "/a/documents/n1", {"text": "changed"})
    page = await library.ok("GET", f"/a/documents?limit=2&cursor={page['next']}")
    assert ([each["id"] for each in page["documents"]], page["total"], page["offset"]) == (["n2", "n3"], 4, 1)
    page = await library.ok("GET", "/a/documents?limit=2&offset=3")
    assert ([each["id"] for each in page["documents"]], page["next"]) == (["n4"], None)


# -- queries


async def test_a_mode_searches_by_meaning_or_by_words(library: LibraryClient) -> None:
    await library.put("a", TOR, PARK, DAMM)
    assert await library.found("a", "Einkaufsstrasse Kurfürstendamms", mode="vector", top_k=1) == ["d3"]
    assert await library.found("a", "1791", mode="keyword") == ["d1"]
    assert await library.found("a", "Nirgendwo", mode="keyword") == []
    answer = await library.ok("POST", "/a/query", {"query": TOR["text"], "mode": "vector", "top_k": 1})
    assert answer["results"][0]["score"] == pytest.approx(1.0)


@pytest.mark.parametrize("mode", ["vector", "keyword", "hybrid"])
@pytest.mark.parametrize(
    ("wanted", "ids"),
    [
        ({"lang": "de"}, ["d1", "d2"]),
        ({"lang": "de", "year": 1791}, ["d1"]),
        ({"year": 1791.0}, ["d1"]),
        ({"old": True}, ["d1"]),
        ({"old": 1}, []),
        ({"none": None}, ["d1"]),
        ({"missing": None}, []),
        ({"year": "1791"}, []),
        ({"lang": "fr"}, []),
        ({'a"b.c': "x"}, ["d2"]),
    ],
)
async def test_a_filter_leaves_what_says_so(
    library: LibraryClient, mode: str, wanted: dict[str, Any], ids: list[str]
) -> None:
    await library.put(
        "a",
        {"id": "d1", "text": "same words", "metadata": {"lang": "de", "year": 1791, "old": True, "none": None}},
        {"id": "d2", "text": "same words", "metadata": {"lang": "de", "old": False, 'a"b.c': "x"}},
        {"id": "d3", "text": "same words", "metadata": {"lang": ["de"], "year": {"from": 1791}}},
    )
    assert await library.found("a", "same words", mode=mode, filter=wanted) == ids


@pytest.mark.parametrize("query", ['" OR *', "NEAR(", "text:Tor AND", "^%_\\", "\x00", "🏛️", "a" * 8000, "tor " * 2000])
async def test_no_query_is_taken_for_an_expression(library: LibraryClient, query: str) -> None:
    await library.put("a", TOR)
    for mode in ("keyword", "hybrid"):
        await library.found("a", query, mode=mode)


async def test_a_query_finds_nothing_of_another_index(library: LibraryClient) -> None:
    await library.put("a", TOR)
    await library.put("b", {**TOR, "id": "other"})
    for mode in ("vector", "keyword", "hybrid"):
        assert await library.found("a", TOR["text"], mode=mode) == ["d1"]


# -- embedding models


async def test_an_index_keeps_the_model_of_its_first_documents(library: LibraryClient) -> None:
    await library.add("a", TOR, embedding_model="other")
    await library.add("a", PARK)
    assert (await library.ok("GET", "/a"))["embedding_model"] == "other"
    error = await library.refused(400, "POST", "/a/documents/append", {"documents": [DAMM], "embedding_model": "plain"})
    assert error["param"] == "/embedding_model"
    assert await library.ids("a") == ["d1", "d2"]
    await library.put("a", DAMM, embedding_model="plain")
    assert (await library.ok("POST", "/a/query", {"query": "Westen"}))["embedding_model"] == "plain"


async def test_a_model_that_is_not_there_is_refused(library: LibraryClient) -> None:
    error = await library.refused(400, "POST", "/a/documents", {"documents": [TOR], "embedding_model": "none"})
    assert error["param"] == "/embedding_model"
    await library.refused(404, "GET", "/a")


# -- limits


async def refused_whole(library: LibraryClient, documents: list[Any], *params: str) -> str:
    """Both ways in refuse all of it, and name each place; gives the error's text."""
    error: dict[str, Any] = {}
    for path in ("/a/documents", "/a/documents/append"):
        error = await library.refused(400, "POST", path, {"documents": documents})
        named = [each["param"] for each in error.get("details", [])] or [error["param"]]
        assert named == list(params)
        await library.refused(404, "GET", "/a")
    return str(error["message"])


async def test_256_documents_are_taken_at_once_and_257_are_not(library: LibraryClient) -> None:
    said = await refused_whole(library, docs(257), "/documents")
    assert "257" in said
    assert (await library.put("a", *docs(256)))["doc_count"] == 256
    assert (await library.add("a", *docs(256, 256)))["doc_count"] == 512


async def test_a_text_has_at_most_8192_bytes(library: LibraryClient) -> None:
    said = await refused_whole(library, [TOR, {"id": "long", "text": "é" * 4096 + "x"}], "/documents/1/text")
    assert "'long'" in said
    assert "8193" in said
    await refused_whole(library, [{"id": "empty", "text": ""}], "/documents/0/text")
    await library.put("a", {"id": "long", "text": "é" * 4096})
    error = await library.refused(400, "PATCH", "/a/documents/long", {"text": "é" * 4097})
    assert error["param"] == "/text"


async def test_null_counts_as_absent(library: LibraryClient) -> None:
    await library.put("a", {**TOR, "metadata": None})
    answer = await library.ok("POST", "/a/query", {"query": TOR["text"], "top_k": None, "mode": None, "filter": None})
    assert answer["mode"] == "hybrid"
    assert [(each["id"], each["metadata"]) for each in answer["results"]] == [("d1", {})]
    call = {"name": "rag_index_list", "arguments": None}
    executed = await library.server.call("POST", "//v1/tools/execute", json=call, headers=DAN)
    assert executed.status_code == 200


async def test_a_number_that_would_lose_digits_is_refused(library: LibraryClient) -> None:
    body = {"documents": [{**TOR, "metadata": {"id": 99999999999999999999}}]}
    error = await library.refused(400, "POST", "/a/documents", body)
    assert error["code"] == "invalid_json"
    await library.refused(404, "GET", "/a")


async def test_metadata_have_at_most_4096_bytes(library: LibraryClient) -> None:
    most = {"key": "x" * (4096 - len('{"key":""}'))}
    said = await refused_whole(library, [{**TOR, "metadata": {"key": most["key"] + "x"}}], "/documents/0/metadata")
    assert "'d1'" in said
    await library.put("a", {**TOR, "metadata": most})
    error = await library.refused(400, "PATCH", "/a/documents/d1", {"metadata": {"key": most["key"] + "x"}})
    assert error["param"] == "/metadata"


@pytest.mark.parametrize("name", ["", "x" * 129, "a b", "a/b", "ä", "a\n", "a'"])
async def test_an_id_is_of_plain_characters(library: LibraryClient, name: str) -> None:
    await refused_whole(library, [{**TOR, "id": name}], "/documents/0/id")


async def test_the_longest_ids_are_taken(library: LibraryClient) -> None:
    name = ("aZ09._:-" * 16)[:128]
    await library.put(name, {**TOR, "id": name})
    assert await library.ids(name) == [name]
    error = await library.refused(400, "POST", f"/{name}x/documents", {"documents": []})
    assert (error["param"], "128" in error["message"]) == (None, True)


async def test_an_id_stands_once_in_a_request(library: LibraryClient) -> None:
    said = await refused_whole(library, [TOR, PARK, TOR], "/documents/0/id", "/documents/2/id")
    assert "'d1'" in said


async def test_all_that_is_wrong_is_named_at_once(library: LibraryClient) -> None:
    wrong = [{"id": "a b", "text": ""}, {**TOR, "metadata": {"x": "y" * 5000}}]
    await refused_whole(library, wrong, "/documents/0/id", "/documents/0/text", "/documents/1/metadata")


@pytest.mark.parametrize(
    ("document", "place"),
    [
        ({"id": "d1"}, "/documents/0/text"),
        ({"text": "x"}, "/documents/0/id"),
        ({"id": 1, "text": "x"}, "/documents/0/id"),
        ({"id": "d1", "text": 1}, "/documents/0/text"),
        ({"id": "d1", "text": "x", "metadata": []}, "/documents/0/metadata"),
        ({"id": "d1", "text": "x", "vector": []}, "/documents/0/vector"),
        ("text", "/documents/0"),
    ],
)
async def test_a_field_of_the_wrong_type_is_named(library: LibraryClient, document: Any, place: str) -> None:
    await refused_whole(library, [document], place)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"top_k": 0}, "/top_k"),
        ({"top_k": 51}, "/top_k"),
        ({"top_k": "5"}, "/top_k"),
        ({"top_k": True}, "/top_k"),
        ({"query": ""}, "/query"),
        ({"query": "é" * 4097}, "/query"),
        ({"mode": "fuzzy"}, "/mode"),
        ({"filter": {str(number): 1 for number in range(17)}}, "/filter"),
        ({"limit": 5}, "/limit"),
    ],
)
async def test_a_query_beyond_its_limits_is_refused(library: LibraryClient, body: Any, place: str) -> None:
    await library.put("a", TOR)
    assert (await library.refused(400, "POST", "/a/query", {"query": "Tor", **body}))["param"] == place


async def test_a_query_gives_1_to_50(library: LibraryClient) -> None:
    await library.put("a", *docs(60))
    for mode in ("vector", "keyword", "hybrid"):
        for count in (1, 50):
            assert len(await library.found("a", "text number", mode=mode, top_k=count)) == count
        assert len(await library.found("a", "text number", mode=mode)) == 5


async def test_a_patch_without_a_change_is_refused(library: LibraryClient) -> None:
    await library.put("a", TOR)
    assert (await library.refused(400, "PATCH", "/a/documents/d1", {}))["code"] == "missing_field"
    await library.refused(404, "PATCH", "/a/documents/d9", {"text": "x"})
    await library.refused(404, "PATCH", "/b/documents/d1", {"text": "x"})


async def test_an_index_gets_another_model_over_http(library: LibraryClient) -> None:
    await library.put("a", TOR, PARK)
    index = await library.ok("POST", "/a/reembed", {"embedding_model": "other"})
    assert (index["id"], index["doc_count"], index["embedding_model"]) == ("a", 2, "other")
    assert index == await library.ok("GET", "/a")
    answer = await library.ok("POST", "/a/query", {"query": "Wo ist der größte Park?"})
    assert (answer["results"][0]["id"], answer["embedding_model"]) == ("d2", "other")
    fact = (await library.server.get("/log?thread=idx-a"))["events"][-1]
    assert (fact["type"], fact["data"]["embedding_model"], fact["actor"]["user"]) == (
        "documents_changed",
        "other",
        "dan",
    )
    assert (await library.refused(400, "POST", "/a/reembed", {"embedding_model": "none"}))[
        "param"
    ] == "/embedding_model"
    assert (await library.refused(400, "POST", "/a/reembed", {}))["param"] == "/embedding_model"
    await library.refused(404, "POST", "/b/reembed", {"embedding_model": "other"})


@pytest.mark.parametrize("query", ["Gr\u00f6\u00dfe", "Gro\u0308\u00dfe"])
async def test_words_are_found_however_their_letters_are_composed(library: LibraryClient, query: str) -> None:
    await library.put("a", {"id": "size", "text": "Die Gr\u00f6\u00dfe z\u00e4hlt."}, TOR)
    assert await library.found("a", query, mode="keyword") == ["size"]


# -- users, tenants, the log


async def test_the_user_is_named_by_the_header_alone(library: LibraryClient) -> None:
    answer = await library.server.call("POST", "//a1/rag/indices/a/documents", json={"documents": [TOR]})
    assert answer.json()["error"]["param"] == "headers.spass-user-id"
    error = await library.refused(400, "POST", "/a/documents", {"documents": [TOR], "user_id": "eve"})
    assert error["param"] == "/user_id"
    assert (await library.refused(400, "GET", "?user_id=eve"))["param"] == "query.user_id"


async def test_every_change_is_a_fact_without_its_text(library: LibraryClient) -> None:
    await library.put("a", TOR, PARK)
    await library.add("a", DAMM)
    await library.ok("DELETE", "/a/documents/d1")
    await library.put("a", PARK, embedding_model="other")
    await library.ok("DELETE", "/a")
    events = (await library.server.get("/log?thread=idx-a&content=true"))["events"]
    assert [each["type"] for each in events] == ["index_created", *["documents_changed"] * 3, "index_deleted"]
    assert {each["actor"]["user"] for each in events} == {"dan"}
    created, added, deleted, replaced, _ = [each["data"] for each in events]
    assert set(created["documents"]) == {"d1", "d2"}
    assert (added["doc_count"], list(added["written"])) == (3, ["d3"])
    assert (deleted["doc_count"], deleted["deleted"]) == (2, ["d1"])
    assert (replaced["replaced"], replaced["embedding_model"], list(replaced["written"])) == (True, "other", ["d2"])
    generations = [each["data"]["generation"] for each in events]
    assert generations == sorted(set(generations))
    assert "Tiergarten" not in str(events)


async def test_two_tenants_have_an_index_of_the_same_name(tmp_path: Path) -> None:
    config = hello_with(tmp_path, {"acme": {"boss": ["admin"]}, "globex": {"boss": ["admin"]}})
    words = HashedWords()
    async with served(config, data=tmp_path / "data", parts=Parts(embeddings=words)) as server:
        acme, globex = (LibraryClient(server, words, bearer(tenant, "boss")) for tenant in ("acme", "globex"))
        await acme.put("foo", TOR)
        assert (await globex.ok("GET"))["indices"] == []
        foreign = await globex.call("GET", "/foo/documents/d1")
        missing = await globex.call("GET", "/bar/documents/d1")
        assert foreign.status_code == missing.status_code == 404
        assert foreign.json()["error"]["message"].replace("foo", "bar") == missing.json()["error"]["message"]
        await globex.put("foo", PARK)
        assert await acme.ids("foo") == ["d1"]
        assert await globex.found("foo", TOR["text"]) == ["d2"]
        await globex.ok("DELETE", "/foo")
        assert await acme.found("foo", TOR["text"]) == ["d1"]


@pytest.mark.parametrize(
    ("name", "reads", "writes", "lists"),
    [("reader", 200, 403, 200), ("writer", 403, 200, 403), ("narrow", 200, 403, 403), ("other", 403, 403, 403)],
)
async def test_a_token_reads_and_writes_what_it_is_granted(
    tmp_path: Path, name: str, reads: int, writes: int, lists: int
) -> None:
    grants = {
        "boss": ["admin"],
        "reader": ["rag:read"],
        "writer": ["rag:write"],
        "narrow": ["rag:read:index:foo"],
        "other": ["rag:read:index:bar", "act-as"],
    }
    config = hello_with(tmp_path, {"acme": grants})
    words = HashedWords()
    async with served(config, parts=Parts(embeddings=words)) as server:
        await LibraryClient(server, words, bearer("acme", "boss")).put("foo", TOR)
        library = LibraryClient(server, words, bearer("acme", name))
        assert (await library.call("POST", "/foo/query", {"query": "Tor"})).status_code == reads
        assert (await library.call("GET", "/foo/documents/d1")).status_code == reads
        assert (await library.call("POST", "/foo/documents/append", {"documents": [PARK]})).status_code == writes
        assert (await library.call("POST", "/foo/reembed", {"embedding_model": words.default})).status_code == writes
        assert (await library.call("DELETE", "/foo/documents/d1")).status_code == writes
        assert (await library.call("GET")).status_code == lists


async def test_no_live_secret_is_stored(library: LibraryClient, tmp_path: Path) -> None:
    secret = "a-live-secret-of-this-server"
    library.server.organism.parts.redactor.add(secret)
    await library.put("a", {"id": "d1", "text": f"It is {secret}.", "metadata": {"note": secret}})
    assert secret not in str(await library.ok("GET", "/a/documents/d1"))
    await library.refused(400, "POST", "/a/documents", {"documents": [{"id": secret, "text": "x"}]})
    await library.refused(400, "POST", f"/{secret}/documents", {"documents": []})
    named = {"note": {f"x-{secret}": 1}}
    await library.refused(400, "POST", "/a/documents", {"documents": [{"id": "d2", "text": "x", "metadata": named}]})
    await library.refused(400, "PATCH", "/a/documents/d1", {"metadata": named})


# -- repetitions and restarts


async def test_the_same_key_changes_once(library: LibraryClient) -> None:
    body = {"documents": [TOR]}
    first = await library.call("POST", "/a/documents/append", body, Idempotency_Key="k1")
    await library.add("a", PARK)
    again = await library.call("POST", "/a/documents/append", body, Idempotency_Key="k1")
    assert again.content == first.content
    assert (await library.ok("GET", "/a"))["doc_count"] == 2
    other = await library.call("POST", "/a/documents/append", {"documents": [PARK]}, Idempotency_Key="k1")
    assert other.json()["error"]["code"] == "idempotency_key_reused"
    for _ in range(2):
        assert await library.ok("DELETE", "/a/documents/d1", Idempotency_Key="k2") == {"deleted": True}


async def test_a_restart_embeds_nothing_again(tmp_path: Path) -> None:
    words = HashedWords()
    async with served(data=tmp_path, parts=Parts(embeddings=words)) as server:
        library = LibraryClient(server, words)
        await library.put("a", TOR, PARK)
        await library.ok("DELETE", "/a/documents/d1")
    again = HashedWords()
    async with served(data=tmp_path, parts=Parts(embeddings=again)) as server:
        library = LibraryClient(server, again)
        assert await library.found("a", "größte Park") == ["d2"]
        assert await library.ids("a") == ["d2"]
    assert again.texts == ["größte Park"]  # the query alone


async def test_what_is_deleted_is_in_no_file(tmp_path: Path) -> None:
    words = HashedWords()
    async with served(data=tmp_path, parts=Parts(embeddings=words)) as server:
        library = LibraryClient(server, words)
        await library.put("a", {"id": "d1", "text": "Geheimniskrämerei"}, PARK)
        await library.ok("DELETE", "/a/documents/d1")
        held = b"".join(path.read_bytes() for path in files(tmp_path))
        assert b"Tiergarten" in held
        assert "Geheimniskrämerei".encode() not in held
        assert b"geheimniskramerei" not in held


async def test_fifty_writers_and_fifty_readers_share_an_index(library: LibraryClient) -> None:
    await library.put("a", PARK)

    async def write(number: int) -> None:
        await library.add("a", {"id": f"n{number}", "text": f"text number {number}"})
        if number % 2:
            await library.ok("DELETE", f"/a/documents/n{number}")

    async def read(_: int) -> None:
        assert "d2" in await library.found("a", "größte Park", top_k=50)
        page = await library.ok("GET", "/a/documents?limit=500")
        assert page["count"] == page["total"]

    await asyncio.gather(*map(write, range(50)), *map(read, range(50)))
    assert set(await library.ids("a")) == {"d2", *(f"n{number}" for number in range(0, 50, 2))}
    assert (await library.ok("GET", "/a"))["doc_count"] == 26


async def test_an_administrator_of_the_tenant_reads_without_a_user(tmp_path: Path) -> None:
    config = hello_with(tmp_path, {"acme": {"boss": {"scopes": ["rag:read"], "tenant_admin": True}}})
    async with served(config) as server:
        headers = bearer("acme", "boss")
        assert (await server.call("GET", "//a1/rag/indices", headers=headers)).status_code == 200
        answer = await server.call("POST", "//a1/rag/indices/a/query", headers=headers, json={"query": "x"})
        assert answer.status_code == 400
        assert (await server.call("GET", "//a1/rag/indices", headers={**headers, **DAN})).status_code == 200
