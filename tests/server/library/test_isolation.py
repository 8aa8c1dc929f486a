"""Two tenants whose indices and documents have the same ids: neither sees, changes or learns anything of the other's.

Each request of a stranger for what only the other tenant has is answered as if it did not exist: body and headers.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
import pytest_asyncio

from organism.bootstrap import Parts
from organism.rag.hashed_words import HashedWords
from organism.server.api.library import ROUTES
from organism.server.http.call import Route
from tests.server.library.asking import DAMM, DAN, PARK, TOR, LibraryClient
from tests.server.served import served
from tests.server.tenanted import bearer, hello_with

pytestmark = pytest.mark.asyncio(loop_scope="module")

SAID = "what acme alone knows"
QUERY = " ".join(reversed(SAID.split()))
"""Finds it; a query by a tool lies in the log of the tenant that asks."""
SECRET = {"id": "d0", "text": SAID, "metadata": {"owner": "acme-alone"}}
OWN = {"id": "d1", "text": "Globex has this."}
OF_AN_INDEX = [each for each in ROUTES if "{" in each.path and not each.takes_files]
BODIES: dict[str, Any] = {
    "query_index": {"query": QUERY},
    "replace_documents": {"documents": []},
    "append_documents": {"documents": [DAMM]},
    "patch_document": {"text": "x"},
    "reembed_index": {"embedding_model": "plain"},
}
TOOLS: dict[str, dict[str, Any]] = {
    "rag_query": {"query": QUERY, "top_k": 50},
    "rag_index_describe": {},
    "rag_doc_list": {},
    "rag_doc_get": {"doc_id": "d1"},
    "rag_doc_patch": {"doc_id": "d1", "text": "x"},
    "rag_doc_delete": {"doc_id": "d1"},
    "rag_index_delete": {},
}
Look = tuple[int, list[tuple[str, str]], str]


class Tenants(NamedTuple):
    """What ``acme`` has: the indices ``same``, ``foreign`` and ``hidden``. ``globex`` has an index ``same`` too."""

    acme: LibraryClient
    globex: LibraryClient
    folder: Path


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def tenants(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Tenants]:
    folder = tmp_path_factory.mktemp("tenants")
    grants = {"boss": ["admin"]}
    config, words = hello_with(folder, {"acme": grants, "globex": grants}), HashedWords("plain")
    async with served(config, folder / "data", Parts(embeddings=words)) as server:
        acme, globex = (LibraryClient(server, words, bearer(tenant, "boss")) for tenant in ("acme", "globex"))
        for index in ("same", "foreign", "hidden"):
            await acme.put(index, SECRET, TOR)
        await globex.put("same", OWN, PARK)
        yield Tenants(acme, globex, folder / "data")


def look(answer: httpx2.Response, asked: str) -> Look:
    """What can be seen of an answer but what was asked, the time, and the ids of the request and its thread."""
    text = re.sub(r'"request_id":"[^"]*"', "", answer.text.replace(asked, "ASKED"))
    headers = {name: re.sub(r"(req|thr|msg)-[0-9a-f]+", "ID", value) for name, value in answer.headers.items()}
    return answer.status_code, sorted((headers | {"date": ""}).items()), text


async def tool(of: LibraryClient, tenant: str, name: str, **arguments: Any) -> httpx2.Response:
    body = {"name": name, "arguments": arguments}
    return await of.server.call("POST", "//v1/tools/execute", json=body, headers={**bearer(tenant, "boss"), **DAN})


async def all_of(owner: LibraryClient) -> list[Any]:
    """Everything that a tenant has."""
    indices = (await owner.ok("GET"))["indices"]
    return [(each, (await owner.ok("GET", f"/{each['id']}/documents"))["documents"]) for each in indices]


@pytest.mark.parametrize(
    "route",
    [each for each in ROUTES if "{" in each.path and not each.takes_files],
    ids=lambda each: each.endpoint.__name__,
)
async def test_by_a_route_a_foreign_index_looks_missing(tenants: Tenants, route: Route) -> None:
    before, looks = await all_of(tenants.acme), []
    for index in ("foreign", "missing"):
        path = route.path.removeprefix("/a1/rag/indices").replace("{index_id}", index).replace("{doc_id}", "d1")
        answer = await tenants.globex.call(route.method, path, BODIES.get(route.endpoint.__name__))
        looks.append(look(answer, index))
        if answer.status_code == 200:
            await tenants.globex.ok("DELETE", f"/{index}")
    assert looks[0] == looks[1]
    assert await all_of(tenants.acme) == before


@pytest.mark.parametrize("name", TOOLS)
async def test_by_a_tool_a_foreign_index_looks_missing(tenants: Tenants, name: str) -> None:
    before, looks = await all_of(tenants.acme), []
    for index in ("foreign", "missing"):
        answer = await tool(tenants.globex, "globex", name, index_id=index, **TOOLS[name])
        assert answer.status_code == 404
        looks.append(look(answer, index))
    assert looks[0] == looks[1]
    assert await all_of(tenants.acme) == before


@pytest.mark.parametrize("mode", ["vector", "keyword", "hybrid"])
async def test_a_search_in_an_index_of_the_same_name_finds_ones_own(tenants: Tenants, mode: str) -> None:
    found = await tenants.globex.ok("POST", "/same/query", {"query": QUERY, "top_k": 50, "mode": mode})
    assert {each["id"] for each in found["results"]} <= {"d1", "d2"}
    assert "acme" not in str(found)
    assert await tenants.globex.found("same", QUERY, mode=mode, filter=SECRET["metadata"]) == []
    assert (await tenants.acme.found("same", QUERY, mode=mode, filter=SECRET["metadata"])) == ["d0"]


@pytest.mark.parametrize("document", ["d0", "none"])
async def test_a_document_that_only_the_other_s_index_of_the_name_has_is_missing(
    tenants: Tenants, document: str
) -> None:
    before = await all_of(tenants.acme)
    error = await tenants.globex.refused(404, "GET", f"/same/documents/{document}")
    assert error["message"] == f"There is no document '{document}' in the index 'same'."
    await tenants.globex.refused(404, "PATCH", f"/same/documents/{document}", {"text": "x"})
    assert await tenants.globex.ok("DELETE", f"/same/documents/{document}") == {"deleted": False}
    assert await all_of(tenants.acme) == before


async def test_changes_of_an_index_of_the_same_name_are_of_ones_own(tenants: Tenants) -> None:
    before = await all_of(tenants.acme)
    await tenants.globex.put("same", DAMM)
    await tenants.globex.add("same", {**SECRET, "text": "mine"})
    await tenants.globex.ok("PATCH", "/same/documents/d0", {"text": "still mine"})
    await tenants.globex.ok("DELETE", "/same/documents/d0")
    await tenants.globex.ok("DELETE", "/same")
    assert await all_of(tenants.acme) == before
    await tenants.globex.put("same", OWN, PARK)


async def test_lists_and_the_log_name_nothing_of_the_other_s(tenants: Tenants) -> None:
    assert [each["id"] for each in (await tenants.globex.ok("GET"))["indices"]] == ["same"]
    listed = (await tool(tenants.globex, "globex", "rag_index_list")).json()["result"]
    assert ([each["id"] for each in listed["indices"]], listed["total"]) == (["same"], 1)
    server, headers = tenants.globex.server, bearer("globex", "boss")
    own = (await server.get("/log?thread=idx-same", headers=headers))["events"]
    assert SECRET["id"] not in {name for each in own for name in each["data"].get("documents", {})}
    assert (await server.get("/log?thread=idx-hidden", headers=headers))["events"] == []


async def test_a_foreign_confirm_token_is_answered_as_one_that_nobody_has(tenants: Tenants) -> None:
    call = {"index_id": "same", "doc_id": "d1"}
    given = (await tool(tenants.acme, "acme", "rag_doc_delete", **call)).json()["result"]["confirm_token"]
    invented = given[::-1]
    looks = []
    for token in (given, invented):
        answer = await tool(tenants.globex, "globex", "rag_doc_delete", **call, confirm_token=token)
        assert answer.status_code == 409
        looks.append(look(answer, token))
    assert looks[0] == looks[1]
    assert {"d1"} <= {*await tenants.acme.ids("same")} & {*await tenants.globex.ids("same")}


async def test_a_foreign_idempotency_key_is_a_new_one(tenants: Tenants) -> None:
    body = {"documents": [{"id": "keyed", "text": "keyed"}]}
    for owner, count in ((tenants.acme, 3), (tenants.globex, 3)):
        answers = [await owner.call("POST", "/same/documents/append", body, Idempotency_Key="k1") for _ in range(2)]
        assert [each.json()["doc_count"] for each in answers] == [count, count]
        assert await owner.ok("DELETE", "/same/documents/keyed", Idempotency_Key="k2") == {"deleted": True}
    other = await tenants.globex.call("POST", "/same/documents/append", {"documents": [DAMM]}, Idempotency_Key="k1")
    assert other.json()["error"]["code"] == "idempotency_key_reused"  # as its own


async def test_a_cursor_of_the_other_s_list_opens_nothing(tenants: Tenants) -> None:
    cursor = (await tenants.acme.ok("GET", "/same/documents?limit=1"))["next"]
    foreign, invented = [
        look(await tenants.globex.call("GET", f"/same/documents?cursor={each}"), each)
        for each in (cursor, cursor[::-1])
    ]
    assert foreign == invented
    assert foreign[0] == 400


async def test_each_tenant_s_files_lie_in_a_folder_of_its_own_that_others_cannot_read(tenants: Tenants) -> None:
    files = [file for file in tenants.folder.rglob("*") if file.is_file()]
    with_secret = {file.parent for file in files if SAID.encode() in file.read_bytes()}
    with_own = {file.parent for file in files if OWN["text"].encode() in file.read_bytes()}
    assert len(with_secret) == len(with_own) == 1
    assert with_secret.isdisjoint(with_own)
    for folder in with_secret | with_own:
        assert folder.stat().st_mode & 0o777 == 0o700
        assert {file.stat().st_mode & 0o777 for file in folder.glob("library.sqlite*")} == {0o600}
