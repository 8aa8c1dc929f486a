"""Who watches sees the library: what an index has become, and how far the background is with it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from organism.bootstrap import Parts
from organism.events.vocabulary import IndexCreated
from organism.rag.hashed_words import HashedWords
from tests.server.library.asking import DAMM, PARK, TOR, LibraryClient
from tests.server.library.test_background import MANY, Held, accepted, embedded, with_library
from tests.server.served import Served, served
from tests.server.test_handling_frames import watching

SEEN = ("change", "index", "doc_count", "embedding_model")


def seen(frame: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(frame[name] for name in SEEN)


async def changes(server: Served, query: str) -> list[dict[str, Any]]:
    """The frames of the past that the socket plays."""
    async with watching(server, query) as frames:
        return [each for each in await frames.until("caught_up") if each["event"] == "library"]


async def test_each_change_of_an_index_is_pushed_and_played_as_the_same_bytes(tmp_path: Path) -> None:
    async with served(data=tmp_path, parts=Parts(embeddings=HashedWords("plain", "other"))) as server:
        library = LibraryClient(server, HashedWords())
        async with watching(server, "?events=library") as frames:
            await library.put("a", TOR)
            await library.add("a", PARK, DAMM)
            await library.ok("POST", "/a/reembed", {"embedding_model": "other"})
            await library.ok("DELETE", "/a/documents/d1")
            await library.ok("DELETE", "/a")
            pushed = [each for each in await frames.until("library", change="deleted") if "position" in each]
        logged = [each for each in pushed if each["event"] == "library"]
        assert list(map(seen, logged)) == [
            ("created", "a", 1, "plain"),
            ("changed", "a", 3, "plain"),
            ("changed", "a", 3, "other"),
            ("changed", "a", 2, "other"),
            ("deleted", "a", 0, "other"),
        ]
        head = logged[-1]["position"]
        assert await changes(server, f"?since=0&until={head}&events=library") == logged
        middle = logged[2]["position"]
        assert await changes(server, f"?since={middle}&until={head}") == logged[3:]
        assert await changes(server, f"?since=0&until={head}&threads=idx-a") == logged
        assert await changes(server, f"?since=0&until={head}&threads=idx-b") == []
        assert all({"thread_id"}.isdisjoint(each) and each["timestamp"].endswith("Z") for each in logged)


async def test_the_progress_of_an_ingest_is_pushed_until_it_is_done() -> None:
    words = Held(1)
    async with with_library(words) as library, watching(library.server, "?events=library") as frames:
        await accepted(library, "a/documents", *MANY)
        first = (await frames.until("library", change="progress"))[-1]
        assert (seen(first), first["work"]) == (
            ("progress", "a", 40, "plain"),
            {"kind": "embed", "done": 16, "total": 40},
        )
        assert "position" not in first
        assert (await library.ok("GET", "/a"))["work"] == first["work"]
        (listed,) = (await library.ok("GET", ""))["indices"]
        assert listed["work"] == first["work"]
        words.go_on()
        last = (await frames.until("library", work=None, change="progress"))[-1]
        assert seen(last) == ("progress", "a", 40, "plain")
        assert (await library.ok("GET", "/a"))["work"] is None


async def test_the_work_of_a_reembedding_is_shown() -> None:
    words = Held(1)
    async with with_library(words) as library, watching(library.server, "?events=library") as frames:
        await library.put("a", TOR, PARK)
        asked = asyncio.ensure_future(library.ok("POST", "/a/reembed", {"embedding_model": "other"}))
        while (shown := await library.ok("GET", "/a"))["work"] is None:
            pass
        assert shown["work"] == {"kind": "reembed", "done": 0, "total": 2}
        assert shown["embedding_model"] == "plain"
        words.go_on()
        assert (await asked)["work"] is None
        ended = (await frames.until("library", change="progress", work=None))[-1]
        assert ended["embedding_model"] == "other"


async def test_an_answer_that_moves_without_the_log_is_not_taken_for_the_one_before() -> None:
    words = Held()
    async with with_library(words) as library:
        await accepted(library, "a/documents", *MANY)
        for path in ("/a", "", "/a/embedding"):
            before = await library.call("GET", path)
            tag = before.headers["etag"]
            assert (await library.call("GET", path, If_None_Match=tag)).status_code == 304
        tags = {path: (await library.call("GET", path)).headers["etag"] for path in ("/a", "", "/a/embedding")}
        words.go_on()
        await embedded(library, "a", 40)
        for path, tag in tags.items():
            assert (await library.call("GET", path, If_None_Match=tag)).status_code == 200


async def test_an_index_names_the_agents_that_read_it_at_any_position(hello: Served) -> None:
    library = LibraryClient(hello, HashedWords())
    await library.put("berlin-info", TOR)
    await library.put("other", TOR)
    first, second = (await library.ok("GET", ""))["indices"]
    assert (first["used_by"], second["used_by"]) == (["berlin-rag"], [])
    _, born = [each.position for each in await hello.log.read(0) if isinstance(each.event, IndexCreated)]
    then = await library.ok("GET", f"/berlin-info?at={born - 1}")
    assert then == first
    assert (await library.ok("GET", f"?at={born - 1}"))["indices"] == [first]
    await library.refused(404, "GET", f"/other?at={born - 1}")
    assert (await library.refused(400, "GET", "/other?at=1000000"))["code"] == "bad_position"
    assert (await library.refused(400, "GET", "/other?as=1"))["code"] == "unknown_field"
