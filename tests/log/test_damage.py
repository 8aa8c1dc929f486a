"""L7: what was acknowledged and is changed, missing, swapped or cut is found and located."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from organism.errors import LogDamaged, NotFound
from organism.log.encode import check_order
from organism.log.log import EventFilter
from organism.log.offline import verify_directory
from organism.views.views import Query
from tests.log.engines import anchor, as_tuples, created, open_durable, sent, unit, views

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


async def test_l7_a_unit_that_is_changed_while_the_log_is_open_is_not_read(place: Path) -> None:
    log = await open_durable(place)
    change(
        place, "UPDATE units SET body = CAST(replace(CAST(body AS TEXT), 'greeter', 'shouter') AS BLOB) WHERE first = 5"
    )
    with pytest.raises(LogDamaged, match="position 5"):
        await log.read()
    assert [record.position for record in await log.read(6, 8)] == [7, 8]
    await log.close()


async def test_l7_a_unit_that_is_missing_while_the_log_is_open_is_not_passed_over(place: Path) -> None:
    log = await open_durable(place)
    change(place, "DELETE FROM units WHERE first = 5")
    with pytest.raises(LogDamaged, match="positions 5 to 6 are missing"):
        await log.read()
    with pytest.raises(LogDamaged, match="positions 5 to 6 are missing"):
        await log.read(reverse=True)
    for read in (views(log).rows("messages", Query()), views(log).row("messages", "msg-02"), log.content(6)):
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


def test_a_directory_without_a_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="holds no log"):
        verify_directory(tmp_path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed log, made once: each example spoils a copy."""
    place = tmp_path_factory.mktemp("whole") / "log"
    asyncio.run(fill(place))
    return place


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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
        records = await log.read(wanted=EventFilter(content=True))
    except LogDamaged:
        return
    finally:
        await log.close()
    original = await open_durable(whole)
    expected = await original.read(wanted=EventFilter(content=True))
    await original.close()
    assert found.damage or as_tuples(records) == as_tuples(expected)


@pytest.mark.parametrize("rows", [[(9, b""), (5, b"")], [(5, b"")], [("6", b"")]])
def test_l7_rows_that_lead_back_are_damage_and_no_endless_read(rows: list[tuple[object, bytes]]) -> None:
    with pytest.raises(LogDamaged, match="What follows position 5 is not in order"):
        check_order(5, rows)
