"""A library with files changed at random: the process goes on; its answers are right or reported as damaged."""

from __future__ import annotations

import math
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from organism.errors import LibraryDamaged
from organism.rag.documents import Document
from organism.rag.library import By, Library
from tests.rag.libraries import ALL, organism, the_same
from tests.rag.test_damage import library_file

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGE_BYTES = 4096
SEEDS = 12
DOCUMENTS = {
    f"d{number}": Document(f"d{number}", f"common word{number} {'lorem ipsum ' * (number % 7)}", {"third": number % 3})
    for number in range(40)
}
ASKED = ("word3 common", "lorem")
TOLD = "damaged"


def flip_bits(held: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice((1, 1, 3, 30))):
        held[chance.randrange(len(held))] ^= 1 << chance.randrange(8)


def overwrite_a_page(held: bytearray, chance: random.Random) -> None:
    begin = page(held, chance)
    held[begin : begin + PAGE_BYTES] = chance.choice((bytes(PAGE_BYTES), chance.randbytes(PAGE_BYTES)))


def swap_pages(held: bytearray, chance: random.Random) -> None:
    a, b = page(held, chance), page(held, chance)
    held[a : a + PAGE_BYTES], held[b : b + PAGE_BYTES] = held[b : b + PAGE_BYTES], held[a : a + PAGE_BYTES]


def truncate(held: bytearray, chance: random.Random) -> None:
    del held[chance.randrange(len(held)) :]


def append(held: bytearray, chance: random.Random) -> None:
    held += chance.randbytes(chance.choice((1, PAGE_BYTES, 3 * PAGE_BYTES)))


def page(held: bytearray, chance: random.Random) -> int:
    return chance.randrange(len(held) // PAGE_BYTES) * PAGE_BYTES


DAMAGES: dict[str, Callable[[bytearray, random.Random], None]] = {
    "bits flipped": flip_bits,
    "a page overwritten": overwrite_a_page,
    "pages swapped": swap_pages,
    "truncated": truncate,
    "appended to": append,
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def whole(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[tuple[Path, bytes, Mapping[str, Any]]]:
    """The directory of an organism with a library, the whole file of the library, and what is answered from it."""
    data = tmp_path_factory.mktemp("whole")
    async with the_same(data) as o:
        await o.tenant.library.replace("x", list(DOCUMENTS.values()), None, By())
        answers = await answered(o.tenant.library)
    assert TOLD not in answers.values()
    yield data, library_file(data).read_bytes(), answers


async def answered(library: Library) -> dict[str, Any]:
    """The answer to each question, or that the library is damaged; no other error comes."""
    found: dict[str, Any] = {}

    async def ask(name: str, question: Awaitable[Any]) -> None:
        try:
            found[name] = await question
        except LibraryDamaged:
            found[name] = TOLD

    for name in ("d0", "d17", "d39", "d3"):
        await ask(name, library.document("x", name))
    await ask("all", listed(library))
    await ask("digests", library.digests("x", ["d1", "d2", "none"]))
    for text in ASKED:
        await ask(f"keyword {text}", hits(library, text, {}))
    await ask("filtered", hits(library, "common", {"third": 1}))
    return found


async def listed(library: Library) -> Any:
    page, count = await library.documents("x", ALL)
    return page.documents, count


async def hits(library: Library, text: str, wanted: Mapping[str, Any]) -> Any:
    """All documents with any of the words. Their order rests on the lengths of texts, which nothing guards."""
    found, _ = await library.query("x", text, len(DOCUMENTS), "keyword", wanted)
    return sorted((hit.document for hit in found), key=lambda each: each.id)


@pytest.mark.thorough
@pytest.mark.parametrize("damage", DAMAGES)
async def test_what_a_damaged_file_answers_is_right_or_reported_as_damage(
    whole: tuple[Path, bytes, Mapping[str, Any]], damage: str
) -> None:
    data, file, right = whole
    for seed in range(SEEDS):
        held = bytearray(file)
        DAMAGES[damage](held, random.Random(f"{damage} {seed}"))
        library_file(data).write_bytes(held)
        async with organism(data) as o:
            answers = await answered(o.tenant.library)
            assert {name: each for name, each in answers.items() if each not in (right[name], TOLD)} == {}, seed
            await found_by_meaning(o.tenant.library)
            assert (await o.inject("greeter", {"name": "Dan"}, wait=True)).replies
        library_file(data).write_bytes(file)


async def found_by_meaning(library: Library) -> None:
    """A search by vectors gives the documents as written, in some order, or reports the damage."""
    for text in ASKED:
        try:
            found, _ = await library.query("x", text, 10, "hybrid", {})
        except LibraryDamaged:
            continue
        assert all(hit.document == DOCUMENTS[hit.document.id] and math.isfinite(hit.score) for hit in found)


@pytest.mark.parametrize("ending", ["-wal", "-shm"])
@pytest.mark.parametrize("seed", range(3))
async def test_foreign_files_next_to_the_library_s_harm_nothing(
    whole: tuple[Path, bytes, Mapping[str, Any]], ending: str, seed: int
) -> None:
    data, file, right = whole
    library_file(data).write_bytes(file)
    beside = library_file(data).with_name(f"library.sqlite{ending}")
    beside.write_bytes(random.Random(seed).randbytes(40_000))
    async with organism(data) as o:
        assert await answered(o.tenant.library) == right
