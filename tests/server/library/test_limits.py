"""The library's limits at their very edge, over HTTP: what fits is taken whole, what does not leaves nothing behind."""

from __future__ import annotations

import string
from typing import Any

import orjson
import pytest

from tests.server.library.asking import DAN, PARK, TOR, LibraryClient
from tests.server.library.test_tools import execute, result

ALLOWED = string.ascii_letters + string.digits + "._:-"
WRONG = [chr(code) for code in range(128) if chr(code) not in ALLOWED]
LOOKALIKES = [*"ä\u0430\uff11٣ª²Ⅷİ\u00a0\u2028\u200b\u202e\ufeff😀", "e\u0301"]
TEXTS = {
    "umlauts": "ü" * 4096,
    "emoji": "😀" * 2048,
    "a grapheme": "e" + "\u0301" * 4095 + "!",
    "a family": ("👩\u200d👩\u200d👧\u200d👦" * 400)[:1800].ljust(8192 // 4, "😀"),
    "control characters": "\x00\x01\x1f\x7f" * 2048,
    "bidi marks": "\u202e\u2066" * 1365 + "ab",
    "quotes": '"\\' * 4096,
    "line separators": "\u2028\u2029" * 1365 + "ab",
}


def cut(text: str) -> str:
    """The text, of 8192 bytes."""
    cut = text.encode()[:8192].decode(errors="ignore")
    return cut + "." * (8192 - len(cut.encode()))


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = {"a": value}
    return value


async def stored(library: LibraryClient, index: str = "kept") -> list[Any]:
    documents: list[Any] = (await library.ok("GET", f"/{index}/documents?limit=500"))["documents"]
    return documents


@pytest.mark.parametrize("name", TEXTS)
async def test_a_text_of_8192_bytes_is_taken_as_it_is_and_one_more_byte_is_named(
    library: LibraryClient, name: str
) -> None:
    text = cut(TEXTS[name])
    await library.put("kept", {"id": "d1", "text": text})
    assert (await library.ok("GET", "/kept/documents/d1"))["text"] == text
    longer = [PARK, {"id": "long", "text": text + "."}]
    error = await library.refused(400, "POST", "/kept/documents/append", {"documents": longer})
    assert (error["details"][0]["param"], len(error["details"])) == ("/documents/1/text", 1)
    assert "'long'" in error["message"]
    assert "8193" in error["message"]
    assert await stored(library) == [{"id": "d1", "text": text, "metadata": {}}]


@pytest.mark.parametrize("is_escaped", [False, True], ids=["utf-8", "escapes"])
async def test_the_largest_request_that_keeps_the_limits_is_taken(library: LibraryClient, *, is_escaped: bool) -> None:
    text = cut("\x01" * 8192 if is_escaped else "ü" * 4096)
    metadata = {"key": "x" * (4096 - len('{"key":""}'))}
    sent = [{"id": f"{number:0128}", "text": text, "metadata": metadata} for number in range(256)]
    assert (await library.put("a", *sent))["doc_count"] == 256
    assert (await stored(library, "a"))[-1] == sent[-1]


async def test_a_change_beyond_a_limit_leaves_all_as_it_was(library: LibraryClient) -> None:
    await library.put("kept", TOR)
    before, head = await stored(library), library.server.log.head
    wrong = [{"id": "new", "text": "fits"}, {**TOR, "text": "x" * 8193}]
    for path in ("/kept/documents", "/kept/documents/append", "/new/documents", "/new/documents/append"):
        await library.refused(400, "POST", path, {"documents": wrong})
    for patch in ({"text": "x" * 8193}, {"text": "fits", "metadata": {"key": "x" * 4096}}, {"text": ""}):
        await library.refused(400, "PATCH", "/kept/documents/d1", patch)
    assert (await stored(library), library.server.log.head) == (before, head)
    assert [each["id"] for each in (await library.ok("GET"))["indices"]] == ["kept"]
    assert await library.found("kept", "fits", mode="keyword") == []
    assert library.words.texts == [TOR["text"]]


async def test_each_wrong_character_of_an_id_is_named_with_its_document(library: LibraryClient) -> None:
    ids = [f"{before}{sign}{after}" for sign in (*WRONG, *LOOKALIKES) for before, after in (("", "a"), ("a", ""))]
    for begin in range(0, len(ids), 20):
        wrong = ids[begin : begin + 20]
        sent = [{**TOR, "id": "fits"}, *({**TOR, "id": each} for each in wrong)]
        error = await library.refused(400, "POST", "/a/documents", {"documents": sent})
        assert [each["param"] for each in error["details"]] == [f"/documents/{at}/id" for at in range(1, len(sent))]
        assert all(repr(each) in detail["message"] for each, detail in zip(wrong, error["details"], strict=True))
    await library.refused(404, "GET", "/a")


async def test_each_character_that_is_allowed_is_taken(library: LibraryClient) -> None:
    ids = [*ALLOWED.replace(".", ""), ALLOWED, "x" * 128, "...", "--"]
    await library.put("a", *({**TOR, "id": each} for each in ids))
    assert await library.ids("a") == ids
    for each in ids:
        assert (await library.ok("GET", f"/a/documents/{each}"))["id"] == each


@pytest.mark.parametrize("name", ["a%0A", "a%20b", "%C3%A4", "x" * 129, "a%00", "%2e%2e%2fa", "a%2Fb", "%EF%BC%91"])
async def test_an_index_s_name_in_a_path_keeps_the_same_rule(library: LibraryClient, name: str) -> None:
    await library.put("a", TOR)
    for path in (f"/{name}/documents", f"/{name}/documents/append"):
        answer = await library.call("POST", path, {"documents": [TOR]})
        assert answer.status_code in {400, 404, 405}
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/documents"), ("GET", "/documents/d1")):
        assert (await library.call(method, f"/{name}{path}")).status_code in {400, 404, 405}
    assert [each["id"] for each in (await library.ok("GET"))["indices"]] == ["a"]
    assert await library.ids("a") == ["d1"]


async def test_metadata_of_4096_bytes_count_as_utf_8_json(library: LibraryClient) -> None:
    most = {"ключ": "ü" * 2041}
    assert len(orjson.dumps(most)) == 4096 + 1
    error = await library.refused(400, "POST", "/a/documents", {"documents": [{**TOR, "metadata": most}]})
    assert (error["details"][0]["param"], "4097" in error["message"]) == ("/documents/0/metadata", True)
    fits = {"ключ": "ü" * 2040}
    await library.put("a", {**TOR, "metadata": fits})
    assert (await stored(library, "a"))[0]["metadata"] == fits


async def test_metadata_may_be_as_deep_as_a_body_and_no_deeper(library: LibraryClient) -> None:
    around = 4  # the body, its list, the document, the metadata
    await library.put("a", {**TOR, "metadata": nested(64 - around + 1)})
    assert (await stored(library, "a"))[0]["metadata"] == nested(64 - around + 1)
    assert (await result(library, "rag_doc_get", index_id="a", doc_id="d1"))["id"] == "d1"
    error = await library.refused(400, "POST", "/b/documents", {"documents": [{**TOR, "metadata": nested(64)}]})
    assert "64" in error["message"]
    await library.refused(404, "GET", "/b")


@pytest.mark.parametrize("number", ["1e400", "-1e400", "NaN", "Infinity"])
async def test_a_number_that_json_has_not_is_refused(library: LibraryClient, number: str) -> None:
    body = b'{"documents":[{"id":"d1","text":"x","metadata":{"n":%s}}]}' % number.encode()
    headers = {**DAN, "Content-Type": "application/json"}
    answer = await library.server.call("POST", "//a1/rag/indices/a/documents", content=body, headers=headers)
    assert answer.status_code == 400
    await library.refused(404, "GET", "/a")


async def test_every_copy_of_an_id_in_one_request_is_named_and_none_is_stored(library: LibraryClient) -> None:
    sent = [{"id": f"n{number % 200}", "text": str(number)} for number in range(256)]
    error = await library.refused(400, "POST", "/a/documents/append", {"documents": sent})
    named = {each["param"] for each in error["details"]}
    assert named <= {f"/documents/{at}/id" for at in (*range(56), *range(200, 256))}
    assert "'n0' stands 2 times" in error["message"]
    await library.refused(404, "GET", "/a")


@pytest.mark.parametrize("count", [1, 50])
async def test_as_many_as_are_wanted_come_and_one_beyond_is_named(library: LibraryClient, count: int) -> None:
    await library.put("a", *({"id": f"n{number}", "text": f"same {number}"} for number in range(60)))
    assert len(await library.found("a", "same", top_k=count)) == count
    beyond = 0 if count == 1 else 51
    error = await library.refused(400, "POST", "/a/query", {"query": "same", "top_k": beyond})
    assert error["param"] == "/top_k"


@pytest.mark.parametrize("name", [".", ".."])
async def test_an_id_that_no_url_can_name_is_refused_in_each_way_in(library: LibraryClient, name: str) -> None:
    encoded = name.replace(".", "%2E")
    for path in ("documents", "documents/append"):
        error = await library.refused(400, "POST", f"/{encoded}/{path}", {"documents": [TOR]})
        assert "not `.` or `..`" in error["message"]
        error = await library.refused(400, "POST", f"/kept/{path}", {"documents": [{**TOR, "id": name}]})
        assert "not `.` or `..`" in error["message"]
        assert error["details"][0]["param"] == "/documents/0/id"
    for tool in ("rag_index_create", "rag_doc_append"):
        for index, document in ((name, TOR), ("kept", {**TOR, "id": name})):
            answer = await execute(library, tool, index_id=index, documents=[document])
            assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_payload")
    assert (await library.ok("GET"))["indices"] == []


@pytest.mark.parametrize("name", ["...", ".a", "..a", "a.", "..:", "." * 128, ".." + "a" * 126, "a" * 128])
async def test_other_ids_with_dots_are_taken_and_addressed(library: LibraryClient, name: str) -> None:
    await library.put(name, {**TOR, "id": name})
    assert (await library.ok("GET", f"/{name}/documents/{name}"))["id"] == name
    assert (await result(library, "rag_doc_get", index_id=name, doc_id=name))["id"] == name
