"""The library's tools that write: a call shows what it would do, and acts once when it comes again with its token."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from organism.bootstrap import Parts
from organism.rag.hashed_words import HashedWords
from tests.server.library.asking import DAMM, DAN, PARK, TOR, LibraryClient
from tests.server.library.test_tools import execute, result
from tests.server.served import served
from tests.server.tenanted import bearer, hello_with


def size(*documents: dict[str, Any]) -> int:
    return sum(len(each["text"].encode()) for each in documents)


async def refusal(library: LibraryClient, tool: str, **arguments: Any) -> tuple[int, str]:
    answer = await execute(library, tool, **arguments)
    return answer.status_code, answer.json()["error"]["code"]


async def test_each_write_is_previewed_then_done(library: LibraryClient) -> None:
    async def confirmed(tool: str, **arguments: Any) -> tuple[dict[str, Any], Any]:
        asked = await result(library, tool, index_id="a", **arguments)
        assert set(asked) == {"confirm_required", "confirm_token", "expires_in_seconds", "op", "preview", "message"}
        assert (asked["confirm_required"], asked["expires_in_seconds"], asked["op"]) == (True, 60, tool)
        done = await result(library, tool, index_id="a", **arguments, confirm_token=asked["confirm_token"])
        return asked["preview"], done

    shape = {"index_id": "a", "doc_count": 2}
    shown, done = await confirmed("rag_index_create", documents=[TOR, PARK])
    assert shown == {**shape, "total_bytes": size(TOR, PARK), "replace_semantics": "replace"}
    assert done == {"index_id": "a", "ingested": 2, "doc_count": 2}

    shown, done = await confirmed("rag_doc_append", documents=[PARK, {**DAMM, "metadata": {"lang": "de"}}])
    upsert = {"total_bytes": size(PARK, DAMM), "replace_semantics": "upsert"}
    assert shown == {**shape, **upsert, "conflicting_existing_ids": [PARK["id"]]}
    assert done == {"index_id": "a", "ingested": 2, "doc_count": 3}
    assert (await library.ok("GET", f"/a/documents/{DAMM['id']}"))["metadata"] == {"lang": "de"}

    shown, done = await confirmed("rag_doc_patch", doc_id="d1", text="ü" * 300)
    assert shown == {
        "index_id": "a",
        "doc_id": "d1",
        "changed_fields": ["text"],
        "new_text_size_bytes": 600,
        "new_metadata_size_bytes": 2,
    }
    assert done == {"id": "d1", "text": "ü" * 300, "metadata": {}}

    shown, done = await confirmed("rag_doc_delete", doc_id="d1")
    assert shown == {
        "index_id": "a",
        "doc_id": "d1",
        "text_size_bytes": 600,
        "text_excerpt": "ü" * 200,
        "text_excerpt_truncated": True,
        "metadata": {},
    }
    assert done == {"deleted": True}

    row = await library.ok("GET", "/a")
    shown, done = await confirmed("rag_index_delete")
    assert shown == {
        "index_id": "a",
        "doc_count": 2,
        "total_text_bytes": size(PARK, DAMM),
        "embedding_model": row["embedding_model"],
        "created_at": row["created_at"],
        "sample_doc_ids": [PARK["id"], DAMM["id"]],
        "sample_truncated_at": 10,
    }
    assert done == {"deleted": True}
    assert (await result(library, "rag_index_list"))["total"] == 0


async def test_a_preview_names_ten_documents_of_many(library: LibraryClient) -> None:
    await library.put("a", *({"id": f"n{number:02}", "text": "x"} for number in range(12)))
    shown = (await result(library, "rag_index_delete", index_id="a"))["preview"]
    assert shown["sample_doc_ids"] == [f"n{number:02}" for number in range(10)]
    assert shown["doc_count"] == 12


async def test_a_token_is_good_for_its_own_call_once(library: LibraryClient) -> None:
    await library.put("a", TOR, PARK)
    await library.put("b", TOR, PARK)
    given = (await result(library, "rag_doc_delete", index_id="a", doc_id="d1"))["confirm_token"]
    mismatch = (409, "confirm_mismatch")
    assert await refusal(library, "rag_doc_delete", index_id="a", doc_id="d2", confirm_token=given) == mismatch
    assert await refusal(library, "rag_doc_delete", index_id="b", doc_id="d1", confirm_token=given) == mismatch
    assert await refusal(library, "rag_index_delete", index_id="a", confirm_token=given) == mismatch
    patch = {"index_id": "a", "doc_id": "d1", "text": "x", "confirm_token": given}
    assert await refusal(library, "rag_doc_patch", **patch) == mismatch
    again = {"index_id": "a", "doc_id": "d1", "confirm_token": given}
    answers = await asyncio.gather(*(execute(library, "rag_doc_delete", **again) for _ in range(2)))
    assert sorted(each.status_code for each in answers) == [200, 409]
    assert await refusal(library, "rag_doc_delete", **again) == (409, "confirm_used")
    assert [(await library.ok("GET", f"/{index}"))["doc_count"] for index in ("a", "b")] == [1, 2]


CHANGED: dict[str, tuple[str, dict[str, Any], str]] = {
    "a document by a patch": ("rag_doc_delete", {"doc_id": "d1"}, "d1"),
    "a document that is patched": ("rag_doc_patch", {"doc_id": "d1", "metadata": {}}, "d1"),
    "a document that is replaced": ("rag_doc_append", {"documents": [TOR]}, "d1"),
    "any document of an index that is deleted": ("rag_index_delete", {}, "d2"),
    "any document of an index that is replaced": ("rag_index_create", {"documents": [TOR]}, "d2"),
}


@pytest.mark.parametrize("what", CHANGED)
async def test_what_has_changed_since_its_preview_stays(library: LibraryClient, what: str) -> None:
    tool, arguments, other = CHANGED[what]
    await library.put("a", TOR, PARK)
    given = (await result(library, tool, index_id="a", **arguments))["confirm_token"]
    await library.ok("PATCH", f"/a/documents/{other}", {"metadata": {"seen": "not"}})
    before = await library.ok("GET", "/a/documents")
    confirmed = {"index_id": "a", **arguments, "confirm_token": given}
    assert await refusal(library, tool, **confirmed) == (409, "preview_stale")
    assert await library.ok("GET", "/a/documents") == before


async def test_a_call_about_a_document_rests_on_that_document_alone(library: LibraryClient) -> None:
    await library.put("a", TOR, PARK)
    call = {"index_id": "a", "doc_id": "d1"}
    given = (await result(library, "rag_doc_delete", **call))["confirm_token"]
    await library.ok("PATCH", "/a/documents/d2", {"metadata": {"of": "another"}})
    await library.add("a", DAMM)
    assert await result(library, "rag_doc_delete", **call, confirm_token=given) == {"deleted": True}


async def test_a_document_that_came_since_the_preview_is_not_overwritten(library: LibraryClient) -> None:
    append = {"index_id": "a", "documents": [TOR]}
    given = (await result(library, "rag_doc_append", **append))["confirm_token"]
    await library.put("a", {**TOR, "text": "mine"})
    assert await refusal(library, "rag_doc_append", **append, confirm_token=given) == (409, "preview_stale")
    assert (await library.ok("GET", "/a/documents/d1"))["text"] == "mine"


async def test_the_fact_of_a_confirmed_write_names_the_call_that_led_to_it_and_whose_it_is(
    library: LibraryClient,
) -> None:
    await library.put("a", TOR)
    call: dict[str, Any] = {"name": "rag_doc_delete", "arguments": {"index_id": "a", "doc_id": "d1"}}
    answer = await library.server.call("POST", "//v1/tools/execute", json=call, headers=DAN)
    call["arguments"]["confirm_token"] = answer.json()["result"]["confirm_token"]
    answer = await library.server.call("POST", "//v1/tools/execute", json=call, headers=DAN)
    assert answer.json() == {"result": {"deleted": True}}
    events = (await library.server.get("/log?limit=500"))["events"]
    (fact,) = (each for each in events if each["type"] == "documents_changed")
    (redeemed,) = (each for each in events if each["type"] == "confirm_redeemed")
    assert fact["cause"] == redeemed["data"]["message"]
    assert (fact["actor"]["user"], fact["actor"]["principal"]) == ("dan", "operator")
    assert fact["position"] > redeemed["position"]


async def test_a_body_that_differs_is_another_call(library: LibraryClient) -> None:
    given = (await result(library, "rag_index_create", index_id="a", documents=[TOR]))["confirm_token"]
    changed = {"index_id": "a", "documents": [{**TOR, "text": "another"}], "confirm_token": given}
    assert await refusal(library, "rag_index_create", **changed) == (409, "confirm_mismatch")
    assert (await result(library, "rag_index_list"))["total"] == 0


async def test_a_token_of_another_tenant_or_user_is_none(tmp_path: Path) -> None:
    grants = {"boss": ["admin"], "other": ["admin"]}
    config, words = hello_with(tmp_path, {"acme": grants, "globex": grants}), HashedWords()
    async with served(config, parts=Parts(embeddings=words)) as server:
        call = {"name": "rag_doc_delete", "arguments": {"index_id": "foo", "doc_id": "d1"}}
        for tenant in ("acme", "globex"):
            await LibraryClient(server, words, bearer(tenant, "boss")).put("foo", TOR)

        async def asked(tenant: str, who: str, user: str, **more: str) -> Any:
            body = {**call, "arguments": {**call["arguments"], **more}}  # type: ignore[dict-item]  # a dict
            headers = {**bearer(tenant, who), "SPASS-User-Id": user}
            return await server.call("POST", "//v1/tools/execute", json=body, headers=headers)

        given = (await asked("acme", "boss", "ann")).json()["result"]["confirm_token"]
        for tenant, who, user in (("globex", "boss", "ann"), ("acme", "other", "ann"), ("acme", "boss", "bob")):
            answer = await asked(tenant, who, user, confirm_token=given)
            assert (answer.status_code, answer.json()["error"]["code"]) == (409, "confirm_mismatch")
        assert (await asked("acme", "boss", "ann", confirm_token=given)).json() == {"result": {"deleted": True}}


async def test_a_token_outlives_a_restart_and_ends_after_sixty_seconds(tmp_path: Path) -> None:
    words, late_ns = HashedWords(), 0
    parts = Parts(
        embeddings=words,
        wall_ns=lambda: 1_800_000_000 * 10**9 + late_ns,
        monotonic_ns=lambda: 10**9 + late_ns,
    )
    first, second = ({"index_id": "a", "doc_id": name} for name in ("d1", "d2"))
    async with served(data=tmp_path, parts=parts) as server:
        library = LibraryClient(server, words)
        await library.put("a", TOR, PARK)
        tokens = [(await result(library, "rag_doc_delete", **each))["confirm_token"] for each in (first, second)]
    async with served(data=tmp_path, parts=parts) as server:
        library = LibraryClient(server, words)
        assert await result(library, "rag_doc_delete", **first, confirm_token=tokens[0]) == {"deleted": True}
        assert await refusal(library, "rag_doc_delete", **first, confirm_token=tokens[0]) == (409, "confirm_used")
        late_ns = 61 * 10**9
        assert await refusal(library, "rag_doc_delete", **second, confirm_token=tokens[1]) == (409, "confirm_expired")
        assert await library.ids("a") == ["d2"]


@pytest.mark.parametrize(
    ("tool", "arguments", "refused"),
    [
        ("rag_doc_delete", {"index_id": "a", "doc_id": "none"}, (404, "not_found")),
        ("rag_index_delete", {"index_id": "none"}, (404, "not_found")),
        ("rag_doc_patch", {"index_id": "a", "doc_id": "d1"}, (400, "invalid_field")),
        ("rag_doc_patch", {"index_id": "a", "doc_id": "d1", "metadata": []}, (400, "invalid_payload")),
        ("rag_doc_append", {"index_id": "a", "documents": [TOR, TOR]}, (400, "invalid_field")),
        ("rag_index_create", {"index_id": "a", "documents": [{"id": "x", "text": ""}]}, (400, "invalid_field")),
    ],
)
async def test_what_could_not_be_done_gets_no_token(
    library: LibraryClient, tool: str, arguments: dict[str, Any], refused: tuple[int, str]
) -> None:
    await library.put("a", TOR)
    assert await refusal(library, tool, **arguments) == refused
