"""Fifty that write an index and fifty that read it, at the same time: each sees whole changes, and none is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import pytest

from organism.errors import NotFound
from organism.events.vocabulary import DocumentsChanged, IndexCreated
from organism.rag.documents import Document
from organism.rag.index import Graphs, installed
from organism.rag.library import By, Library
from organism.rag.question import Mode
from organism.testing import Running
from tests.rag.libraries import ALL, library_with, organism

PEOPLE = 50
TOGETHER = [f"t{number}" for number in range(5)]
"""Documents that are always written at once, with the same text."""
GROUP = {"group": "together"}
MODES: Sequence[Mode] = get_args(Mode)
READS = 4
Write = Callable[[int], Coroutine[Any, Any, object]]


def version(number: int) -> list[Document]:
    return [Document(name, f"common version{number}", GROUP) for name in TOGETHER]


def single(number: int) -> Document:
    return Document(f"n{number}", f"common single{number}")


def is_whole(seen: Sequence[Document]) -> bool:
    """Whether they are what one change has written together, or nothing."""
    group = [each for each in seen if each.metadata == GROUP]
    return len(group) in {0, len(TOGETHER)} and len({each.text for each in group}) <= 1


async def look(shared: Library, number: int) -> None:
    """Read the index in one of the ways."""
    if number % 4 == 0:
        listed, count = await shared.documents("x", ALL)
        assert len({each.id for each in listed.documents}) == len(listed.documents) == count
        assert is_whole(listed.documents)
    elif number % 4 == 1:
        assert len(await shared.digests("x", TOGETHER)) in {0, len(TOGETHER)}
    else:
        hits, _ = await shared.query("x", "common", 50, MODES[number % 3], GROUP)
        assert is_whole([hit.document for hit in hits])


async def together(shared: Library, write: Write) -> None:
    """Fifty write while fifty read; a reader may find no index, but meets no other error."""

    async def reads(number: int) -> None:
        for at in range(number, number + READS):
            with suppress(NotFound):
                await look(shared, at)

    async with asyncio.TaskGroup() as group:
        for number in range(PEOPLE):
            group.create_task(write(number))
            group.create_task(reads(number))


async def texts_in(shared: Library) -> dict[str, str]:
    """The texts by their ids; the counts agree."""
    listed, count = await shared.documents("x", ALL)
    assert count == len(listed.documents) == (await shared.index("x")).public.doc_count
    return {each.id: each.text for each in listed.documents}


async def ids_by_the_log(o: Running) -> set[str]:
    """The documents that there must be after all changes, one after the other; each says how many there were then."""
    ids: set[str] = set()
    for record in await o.records(IndexCreated, DocumentsChanged, thread="idx-x"):
        match record.event:
            case IndexCreated(documents=written):
                ids = {*written}
            case DocumentsChanged() as changed:
                ids = {*changed.written} | (set() if changed.replaced else ids - {*changed.deleted})
                assert changed.doc_count == len(ids)
    return ids


@pytest.fixture(params=["memory", "disk"])
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Path | None:
    return tmp_path if request.param == "disk" else None


async def test_appends_of_the_same_ids_are_seen_whole_and_no_other_one_is_lost(data: Path | None) -> None:
    async with organism(data) as o:
        shared = o.tenant.library

        async def write(number: int) -> None:
            await shared.append("x", [*version(number), single(number)], None, By())
            assert await shared.document("x", f"n{number}") == single(number)

        await together(shared, write)
        found = await texts_in(shared)
    assert found.keys() == {*TOGETHER, *(f"n{number}" for number in range(PEOPLE))}
    assert len({found[name] for name in TOGETHER}) == 1


async def test_replacing_beside_appending_and_deleting_leaves_what_the_log_says(data: Path | None) -> None:
    async with organism(data) as o:
        shared = o.tenant.library
        await shared.replace("x", version(-1), None, By())

        async def write(number: int) -> None:
            match number % 5:
                case 0:
                    await shared.replace("x", version(number), None, By())
                case 1:
                    await shared.delete_document("x", f"n{number + 1}", By())
                case _:
                    await shared.append("x", [single(number), single(number + 1)], None, By())

        await together(shared, write)
        assert (await texts_in(shared)).keys() == await ids_by_the_log(o)


async def test_an_index_that_is_deleted_and_begun_again_is_there_whole_or_not_at_all(data: Path | None) -> None:
    async with organism(data) as o:
        shared = o.tenant.library

        async def write(number: int) -> None:
            await shared.append("x", version(number), None, By())
            if number % 2:
                with suppress(NotFound):  # another one was faster
                    await shared.delete_index("x", By())

        await together(shared, write)
        await shared.append("x", [single(0)], None, By())
        found = await texts_in(shared)
    assert found.keys() in ({"n0"}, {"n0", *TOGETHER})


async def test_an_index_is_emptied_document_by_document_and_filled_again(data: Path | None) -> None:
    async with organism(data) as o:
        shared = o.tenant.library
        await shared.replace("x", [single(number) for number in range(PEOPLE)], None, By())
        await together(shared, lambda number: shared.delete_document("x", f"n{number}", By()))
        assert await texts_in(shared) == {}
        for mode in MODES:
            assert (await shared.query("x", "common", 50, mode, {}))[0] == []
        await together(shared, lambda number: shared.append("x", [single(number)], None, By()))
        assert await texts_in(shared) == {f"n{number}": f"common single{number}" for number in range(PEOPLE)}
        for mode in MODES:
            assert len((await shared.query("x", "common", 50, mode, {}))[0]) == PEOPLE


async def test_what_is_written_while_graphs_are_made_is_found_but_for_what_a_small_graph_may_miss(
    tmp_path: Path,
) -> None:
    async with organism(tmp_path) as o, library_with(o, tmp_path, Graphs(tmp_path / "own", installed(), 10)) as shared:
        await shared.replace("x", [single(number) for number in range(-PEOPLE, 0)], None, By())
        missed: list[int] = []

        async def write(number: int) -> None:
            await shared.append("x", [single(number)], None, By())
            hits, _ = await shared.query("x", single(number).text, 1, "vector", {})
            missed.extend([number] * (hits[0].document != single(number)))
            await shared.delete_document("x", f"n{number - PEOPLE}", By())

        await together(shared, write)
        assert len(missed) <= PEOPLE // 10
        assert (await texts_in(shared)).keys() == await ids_by_the_log(o)
