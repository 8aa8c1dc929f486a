"""L7: what was acknowledged and is changed, missing, swapped or cut is found and located."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from organism.errors import LogDamaged, NotFound
from organism.log.encode import hold_order
from organism.log.log import EventFilter, Query
from organism.log.offline import verify_directory
from tests.log.engines import anchor, as_tuples, created, open_durable, sent, unit

UNITS = 12


async def fill(place: Path) -> None:
    """Twelve commits of two events each, closed in order."""
    log = await open_durable(place)
    for number in range(UNITS):
        await log.commit(unit(f"thr-{number:02}", created(), sent(f"msg-{number:02}", "text " * 20)))
    await log.close()


@pytest.fixture
async def place(tmp_path: Path) -> Path:
    await fill(tmp_path / "log")
    return tmp_path / "log"


def change(place: Path, sql: str) -> None:
    """Change the database behind the log's back."""
    with sqlite3.connect(place / "log.sqlite", isolation_level=None) as database:
        database.execute(sql)
    database.close()


CHANGES: dict[str, tuple[str, str]] = {
    "a changed event": (
        "UPDATE units SET body = CAST(replace(CAST(body AS TEXT), 'greeter', 'shouter') AS BLOB) WHERE first = 5",
        "position 5: the unit does not fit its digest",
    ),
    "a changed event with a new digest": (
        "UPDATE units SET digest = randomblob(32) WHERE first = 5",
        "position 5: the unit does not fit its digest",
    ),
    "a missing event": ("DELETE FROM units WHERE first = 7", "positions 9 to 10: the commit does not continue"),
    "swapped events": (
        "UPDATE units SET first = -1 WHERE first = 3",
        "position -1: the unit was written for another position",
    ),
    "a moved end of a commit": (
        "UPDATE units SET hash = NULL WHERE first = 9",
        "positions 9 to 12: the commit does not",
    ),
    "a changed hash": (
        "UPDATE units SET hash = randomblob(32) WHERE first = 9",
        "positions 9 to 10: the commit does not",
    ),
    "a cut end": ("DELETE FROM units WHERE first > 20", "position 21: the log ends here"),
    "a cut commit": (
        "UPDATE units SET hash = NULL WHERE first = 23",
        "position 23: the commit that begins here has no end",
    ),
    "all gone": ("DELETE FROM units", "position 1: the log ends here"),
}


@pytest.mark.parametrize("name", CHANGES)
async def test_l7_a_change_is_named_with_its_position_and_the_log_does_not_open(place: Path, name: str) -> None:
    sql, expected = CHANGES[name]
    change(place, sql)
    before = (place / "log.sqlite").read_bytes()
    assert any(expected in damage for damage in verify_directory(place).damage)
    with pytest.raises(LogDamaged, match="organism log verify"):
        await open_durable(place)
    assert (place / "log.sqlite").read_bytes() == before


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("UPDATE content SET json = '{}' WHERE position = 6", "position 6: the content does not fit its digest"),
        ("UPDATE content SET xml = x'00' WHERE position = 6", "position 6: the content does not fit its digest"),
        ("DELETE FROM content WHERE position = 6", "position 6: the content is missing"),
        ("UPDATE content SET position = 5 WHERE position = 6", "position 6: the content is missing"),
    ],
)
async def test_l7_changed_content_is_named_and_not_read(place: Path, sql: str, expected: str) -> None:
    change(place, sql.replace("'{}'", "CAST('{}' AS BLOB)"))
    assert expected in "\n".join(verify_directory(place).damage)
    log = await open_durable(place)
    assert expected in "\n".join((await log.verify()).damage)
    digests = {event.position: event.data["content"] for event in await log.read() if "content" in event.data}
    with pytest.raises(LogDamaged, match="content at position 6"):
        await log.content(6)
    with pytest.raises(LogDamaged, match="content at position 6"):
        await log.contents(digests)
    with pytest.raises(LogDamaged, match="content at position 6"):
        await log.read(4, 6, EventFilter(content=True))
    assert await log.content(8) is not None
    await log.close()


async def test_l7_a_unit_that_is_changed_while_the_log_is_open_is_not_read(place: Path) -> None:
    log = await open_durable(place)
    change(
        place, "UPDATE units SET body = CAST(replace(CAST(body AS TEXT), 'greeter', 'shouter') AS BLOB) WHERE first = 5"
    )
    with pytest.raises(LogDamaged, match="position 5"):
        await log.read()
    assert [event.position for event in await log.read(6, 8)] == [7, 8]
    await log.close()


async def test_l7_a_unit_that_is_missing_while_the_log_is_open_is_not_passed_over(place: Path) -> None:
    log = await open_durable(place)
    change(place, "DELETE FROM units WHERE first = 5")
    with pytest.raises(LogDamaged, match="positions 5 to 6 are missing"):
        await log.read()
    with pytest.raises(LogDamaged, match="positions 5 to 6 are missing"):
        await log.read(reverse=True)
    for read in (log.rows("messages", Query()), log.row("messages", "msg-02"), log.content(6)):
        with pytest.raises(LogDamaged, match="position 6 is missing"):
            await read
    await log.close()


async def test_l7_a_deleted_wal_is_noticed(tmp_path: Path) -> None:
    place, copy = tmp_path / "log", tmp_path / "copy"
    log = await open_durable(place)
    for number in range(UNITS):
        await log.commit(unit(f"thr-{number:02}", created()))
    anchor(log)
    shutil.copytree(place, copy)
    await log.close()
    (copy / "log.sqlite-wal").unlink()
    with pytest.raises(LogDamaged, match="-wal file is missing"):
        await open_durable(copy)


async def test_l7_another_log_in_the_place_of_this_one_is_noticed(place: Path, tmp_path: Path) -> None:
    await fill(tmp_path / "other")
    shutil.copy(tmp_path / "other" / "log.sqlite", place / "log.sqlite")
    with pytest.raises(LogDamaged, match="position"):
        await open_durable(place)
    shutil.copy(tmp_path / "other" / "key", place / "key")
    with pytest.raises(LogDamaged, match="was not written under the key"):
        await open_durable(place)


@pytest.mark.parametrize("name", ["key", "anchor"])
@pytest.mark.parametrize("spoil", [Path.unlink, lambda path: path.write_bytes(b"\xff\0")])
async def test_l7_a_lost_key_or_anchor_is_named(place: Path, name: str, spoil: Callable[[Path], object]) -> None:
    spoil(place / name)
    with pytest.raises(LogDamaged, match=f"{name} must"):
        await open_durable(place)
    with pytest.raises(LogDamaged, match=f"{name} must"):
        verify_directory(place)


async def test_l7_a_file_that_is_no_database_is_named(place: Path) -> None:
    (place / "log.sqlite").write_bytes(b"not a database" * 500)
    with pytest.raises(LogDamaged, match="cannot be read"):
        await open_durable(place)
    assert "cannot be read" in verify_directory(place).damage[0]


def test_a_directory_without_a_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="holds no log"):
        verify_directory(tmp_path)


async def test_a_log_is_verified_from_outside_while_it_is_written(tmp_path: Path) -> None:
    log = await open_durable(tmp_path / "log")
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    found = verify_directory(tmp_path / "log")
    assert (found.position, found.events, found.commits, found.damage) == (2, 2, 1, ())
    await log.commit(unit("thr-1", sent("msg-2")))
    await log.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed log, made once: each example spoils a copy."""
    place = tmp_path_factory.mktemp("whole") / "log"
    asyncio.run(fill(place))
    return place


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
async def test_l7_a_flipped_bit_is_found_or_changes_nothing(
    whole: Path, tmp_path: Path, where: float, bit: int
) -> None:
    place = tmp_path / "spoiled"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(whole, place)
    content = bytearray((place / "log.sqlite").read_bytes())
    content[int(where * len(content))] ^= 1 << bit
    (place / "log.sqlite").write_bytes(content)
    try:
        log = await open_durable(place)
    except LogDamaged:
        return
    try:
        found = await log.verify()
        events = await log.read(wanted=EventFilter(content=True))
    except LogDamaged:
        return
    finally:
        await log.close()
    original = await open_durable(whole)
    expected = await original.read(wanted=EventFilter(content=True))
    await original.close()
    assert found.damage or as_tuples(events) == as_tuples(expected)


@pytest.mark.parametrize("rows", [[(9, b""), (5, b"")], [(5, b"")], [("6", b"")]])
def test_l7_rows_that_lead_back_are_damage_and_no_endless_read(rows: list[tuple[object, bytes]]) -> None:
    with pytest.raises(LogDamaged, match="What follows position 5 is not in order"):
        hold_order(5, rows)
