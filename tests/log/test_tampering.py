"""G11: what was changed in a log's directory is named by `organism log verify`, and the log does not open."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import orjson
import pytest
import typer
from structlog.testing import capture_logs

from organism.cli.log import verify
from organism.cli.options import OfTenant
from organism.errors import ContentDamaged, LogDamaged
from organism.events.record import Record
from organism.events.vocabulary import ContentErased
from organism.log.log import EventFilter
from organism.log.offline import drop_rows, verify_directory
from organism.log.sqlite import Options, SqliteLog
from organism.model.ids import folder_of
from organism.sqlite.driver import Pysqlite
from organism.views.views import Query
from tests.log.engines import MODELS, FixedClock, created, open_durable, sent, unit, views

Tamper = Callable[[Path], object]
TENANT = folder_of("acme")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with the logs of two tenants, stopped in order; each test spoils a copy."""
    data = tmp_path_factory.mktemp("whole") / "data"
    asyncio.run(fill(data))
    return data


async def fill(data: Path) -> None:
    for tenant in ("default", TENANT):
        log = await open_tenant(data, tenant)
        for number in range(4):
            await log.commit(unit("thr-1", created(), sent(f"msg-{number}")))
        await log.commit(unit("thr-2", created(), sent("msg-4")))
        await log.save_snapshot("pump", log.head, b"state")
        await log.close()


async def open_tenant(data: Path, tenant: str) -> SqliteLog:
    return await SqliteLog.open(data / "tenants" / tenant, FixedClock(), MODELS, Options(tenant=tenant))


@pytest.fixture
def data(whole: Path, tmp_path: Path) -> Path:
    shutil.copytree(whole, tmp_path / "data")
    return tmp_path / "data"


def place_in(data: Path) -> Path:
    return data / "tenants" / "default"


def in_log(*statements: str) -> Tamper:
    """Run SQL in the log's file behind its back."""

    def tamper(place: Path) -> None:
        with closing(Pysqlite().connect(str(place / "log.sqlite"))) as database:
            for statement in statements:
                database.execute(statement).fetchall()

    return tamper


def spoil(name: str, text: bytes) -> Tamper:
    return lambda place: (place / name).write_bytes(text)


def truncate(name: str, size: int) -> Tamper:
    return lambda place: os.truncate(place / name, size)


def missing(name: str) -> Tamper:
    return lambda place: (place / name).unlink()


def link(name: str) -> Tamper:
    def tamper(place: Path) -> None:
        shutil.move(place / name, place.parent / name)
        (place / name).symlink_to(place.parent / name)

    return tamper


def directory(name: str) -> Tamper:
    def tamper(place: Path) -> None:
        (place / name).unlink(missing_ok=True)
        (place / name).mkdir()

    return tamper


def mode(bits: int) -> Tamper:
    return lambda place: (place / "key").chmod(bits)


def anchor(**fields: object) -> Tamper:
    """Change fields of the anchor."""

    def tamper(place: Path) -> None:
        written = orjson.loads((place / "anchor").read_bytes())
        (place / "anchor").write_bytes(orjson.dumps({**written, **fields}).ljust(512))

    return tamper


def of_other_tenant(*names: str) -> Tamper:
    """Copy files from another tenant's log."""

    def tamper(place: Path) -> None:
        for name in names:
            shutil.copy(place.parent / TENANT / name, place / name)

    return tamper


def last_unit(body: bytes) -> Tamper:
    """Put another unit, with its digest, in the place of the last one."""
    digest = sha256(body).hexdigest()
    return in_log(f"UPDATE units SET body = x'{body.hex()}', digest = x'{digest}' WHERE first = 9")  # noqa: S608 - our own hex


NOT_UNDER_THE_KEY = "was not written under the key"
CLOCK_BACK = "UPDATE meta SET epoch = epoch - 1"
UNTRUSTED = "DELETE FROM snapshots"  # So that a start verifies the log from its first unit on
REFUSED: dict[str, tuple[Tamper, str]] = {
    "the log is missing": (missing("log.sqlite"), "log.sqlite is missing"),
    "the log is empty": (truncate("log.sqlite", 0), "layout 0"),
    "the log is no database": (spoil("log.sqlite", b"no database" * 500), "cannot be read"),
    "the log is a link": (link("log.sqlite"), "log.sqlite must be a file, and is a link"),
    "the log is a directory": (directory("log.sqlite"), "log.sqlite must be a file, and is none"),
    "the WAL is a directory": (directory("log.sqlite-wal"), "log.sqlite-wal must be a file"),
    "the lock is a directory": (directory("lock"), "lock must be a file"),
    "the key is missing": (missing("key"), "key must hold the key"),
    "the key is empty": (truncate("key", 0), "key must hold the key"),
    "the key is cut": (truncate("key", 40), "key must hold the key"),
    "the key is no text": (spoil("key", b"\xff\0"), "key must hold the key"),
    "the key is a directory": (directory("key"), "key must be a file"),
    "the key is a link": (link("key"), "key must be a file, and is a link"),
    "the key is another one": (spoil("key", b"1" * 64), NOT_UNDER_THE_KEY),
    "the key can be read by all": (mode(0o644), "key is open to other users"),
    "the key can be written by the group": (mode(0o620), "key is open to other users"),
    "the anchor is missing": (missing("anchor"), "anchor must name the head"),
    "the anchor is empty": (truncate("anchor", 0), "anchor must name the head"),
    "the anchor is cut": (truncate("anchor", 100), "anchor must name the head"),
    "the anchor is a link": (link("anchor"), "anchor must be a file, and is a link"),
    "the anchor is a directory": (directory("anchor"), "anchor must be a file"),
    "the anchor has another position": (anchor(position=8), NOT_UNDER_THE_KEY),
    "the anchor has another hash": (anchor(hash="00" * 32), NOT_UNDER_THE_KEY),
    "the anchor has another epoch": (anchor(epoch=0), NOT_UNDER_THE_KEY),
    "the anchor has another timeline": (anchor(timeline="other"), NOT_UNDER_THE_KEY),
    "the anchor has no MAC": (anchor(mac=None), NOT_UNDER_THE_KEY),
    "the anchor is another tenant's": (of_other_tenant("anchor"), NOT_UNDER_THE_KEY),
    "the log is another tenant's": (of_other_tenant("log.sqlite", "key", "anchor"), NOT_UNDER_THE_KEY),
    "only the database is another tenant's": (of_other_tenant("log.sqlite"), "does not continue the one before it"),
    "the epoch was raised": (in_log("UPDATE meta SET epoch = epoch + 1"), "table meta: the epoch or the timeline"),
    "the epoch was put back": (in_log(CLOCK_BACK), "table meta: the epoch or the timeline"),
    "the timeline was changed": (in_log("UPDATE meta SET timeline = 'other'"), "table meta: the epoch or the timeline"),
    "the row of meta is gone": (in_log("DELETE FROM meta"), "table meta: the epoch or the timeline"),
    "the layout is older": (in_log("PRAGMA user_version = 1"), "layout 1, this program knows layout"),
    "the layout is newer": (in_log("PRAGMA user_version = 99"), "layout 99, this program knows layout"),
    "a table was added": (in_log("CREATE TABLE more (x)"), "table more: it is none of the log's"),
    "a view was added": (in_log("CREATE VIEW more AS SELECT 1"), "view more: it is none of the log's"),
    "an index was added": (in_log("CREATE INDEX more ON content (owner)"), "index more: it is none of the log's"),
    "an index was added under the name of one of the rows": (
        in_log("CREATE INDEX rows_more ON content (owner)"),
        "index rows_more: it is none of the log's",
    ),
    "a trigger was added": (
        in_log("CREATE TRIGGER more AFTER INSERT ON units BEGIN DELETE FROM content; END"),
        "trigger more: it is none of the log's",
    ),
    "a table became a view": (
        in_log("ALTER TABLE content RENAME TO old", "CREATE VIEW content AS SELECT * FROM old"),
        "table content: it is missing",
    ),
    "a column was added": (
        in_log("ALTER TABLE content ADD COLUMN more INTEGER"),
        "table content: it is missing or was changed",
    ),
    "a table is gone": (in_log("DROP TABLE content"), "table content: it is missing"),
    "a unit was changed": (
        in_log(
            UNTRUSTED,
            "UPDATE units SET body = CAST(replace(CAST(body AS TEXT), 'greeter', 'x') AS BLOB) WHERE first = 5",
        ),
        "position 5: the unit does not fit its digest",
    ),
    "a unit has another digest": (
        in_log(UNTRUSTED, "UPDATE units SET digest = randomblob(32) WHERE first = 5"),
        "position 5: the unit does not fit its digest",
    ),
    "a unit is missing": (
        in_log(UNTRUSTED, "DELETE FROM units WHERE first = 5"),
        "positions 7 to 8: the commit does not continue",
    ),
    "a unit was moved": (
        in_log(UNTRUSTED, "UPDATE units SET first = -1 WHERE first = 3"),
        "position -1: the unit was written for another position",
    ),
    "the end of a commit was moved": (
        in_log(UNTRUSTED, "UPDATE units SET hash = NULL WHERE first = 5"),
        "positions 5 to 8: the commit does not continue",
    ),
    "the end was cut": (in_log(UNTRUSTED, "DELETE FROM units WHERE first > 8"), "position 9: the log ends here"),
    "a commit was cut": (
        in_log("UPDATE units SET hash = NULL WHERE first = 9"),
        "position 9: the commit that begins here has no end",
    ),
    "all units are gone": (in_log("DELETE FROM units"), "position 1: the log ends here"),
    "the last unit is empty": (
        in_log("UPDATE units SET body = x'' WHERE first = 9"),
        "position 9: the unit does not fit its digest",
    ),
    "the last unit is another one that fits its digest": (
        last_unit(b'[9,2,1,null,null,null,null,[{"event":"thread_killed"}],[],[]]'),
        "positions 9 to 9: the commit does not continue",
    ),
    "the last unit is none and fits its digest": (last_unit(b"9"), "the unit was written for another position"),
    "the last commit has another hash": (
        in_log("UPDATE units SET hash = randomblob(32) WHERE first = 9"),
        "positions 9 to 10: the commit does not continue",
    ),
}
"""What was done to a stopped log, and the words that name it."""


@pytest.mark.parametrize("name", REFUSED)
async def test_what_was_tampered_with_is_named_by_verify_and_refused_at_the_start(
    data: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    tamper, words = REFUSED[name]
    tamper(place_in(data))
    before = contents(place_in(data))
    with pytest.raises(typer.Exit) as ended:
        await asyncio.to_thread(verify, OfTenant(data=data, tenant="default"))
    said = " ".join(capsys.readouterr().err.split())
    assert (ended.value.exit_code, words in said) == (1, True), said
    with pytest.raises(LogDamaged):
        await open_tenant(data, "default")
    assert contents(place_in(data)) == before


async def test_a_log_that_went_another_way_since_a_copy_is_not_taken_for_this_one(data: Path, tmp_path: Path) -> None:
    shutil.copytree(data, tmp_path / "copy")
    for root, messages in ((data, ["msg-5"]), (tmp_path / "copy", ["msg-6", "msg-7"])):
        log = await open_tenant(root, "default")
        for message in messages:
            await log.commit(unit("thr-1", sent(message)))
        await log.close()
    shutil.copy(place_in(tmp_path / "copy") / "log.sqlite", place_in(data) / "log.sqlite")
    found = verify_directory(place_in(data), None, "default")
    assert ["the anchor names another commit here" in damage for damage in found.damage] == [True]
    with pytest.raises(LogDamaged, match="the log was exchanged"):
        await open_tenant(data, "default")


async def test_a_log_of_an_earlier_life_is_not_taken_for_this_one(data: Path, tmp_path: Path) -> None:
    shutil.copy(place_in(data) / "log.sqlite", tmp_path / "before")
    await (await open_tenant(data, "default")).close()
    shutil.copy(tmp_path / "before", place_in(data) / "log.sqlite")
    with pytest.raises(LogDamaged, match="is not the one that the anchor knows"):
        await open_tenant(data, "default")


def contents(place: Path) -> dict[str, bytes]:
    """The files that must not be written over."""
    return {path.name: path.read_bytes() for path in place.iterdir() if path.is_file() and path.name in TRUSTED}


TRUSTED = {"log.sqlite", "anchor", "key"}


EMPTIED: dict[str, tuple[str, str]] = {
    "all content is empty": ("UPDATE content SET salt = x'', json = x'', xml = x''", "is empty, and no event says"),
    "content is empty after another owner's erasure": (
        "UPDATE content SET salt = x'', json = x'', xml = x'', erased_at = 12 WHERE position = 2",
        "is empty, and no event says",
    ),
    "content names an erasure that came before it": (
        "UPDATE content SET salt = x'', json = x'', xml = x'', erased_at = 11 WHERE position = 14",
        "is empty, and no event says",
    ),
    "content names an event that is no erasure": (
        "UPDATE content SET salt = x'', json = x'', xml = x'', erased_at = 9 WHERE position = 2",
        "is empty, and no event says",
    ),
    "the text is gone and the salt is not": ("UPDATE content SET json = x''", "does not fit its digest"),
    "the salt is gone and the text is not": ("UPDATE content SET salt = x''", "does not fit its digest"),
    "the text is another one": ("UPDATE content SET json = x'7b7d'", "does not fit its digest"),
    "the XML is another one": ("UPDATE content SET xml = x'00'", "does not fit its digest"),
    "the text is whole and is said to be erased": (
        "UPDATE content SET erased_at = 11 WHERE position = 2",
        "does not fit its digest",
    ),
    "the content has another owner": ("UPDATE content SET owner = 'thr-9'", "does not fit its digest"),
    "the content is erased under another owner": (
        "UPDATE content SET salt = x'', json = x'', xml = x'', owner = 'thr-9', erased_at = 12 WHERE position = 2",
        "is empty, and no event says",
    ),
    "the content is missing": ("DELETE FROM content", "is missing, and no event says that it was erased"),
    "the content lies elsewhere": ("UPDATE content SET position = 1 WHERE position = 2", "is missing"),
}
"""What was done to contents, in SQL, and the words that name it. ``erase`` writes 11 for thr-1 and 12 for thr-9."""


async def erase(data: Path) -> None:
    """What an erasure leaves: its event in the chain, and rows that name it; here for thr-1, and for nothing else."""
    log = await open_tenant(data, "default")
    erasures = [Record(ContentErased(owner)) for owner in ("thr-1", "thr-9")]
    assert await log.commit(unit(None, *erasures)) == 12
    await log.commit(unit("thr-1", created(), sent("msg-5")))
    await log.close()
    in_log("UPDATE content SET salt = x'', json = x'', xml = x'', erased_at = 11 WHERE position = 4")(place_in(data))


@pytest.mark.parametrize("name", EMPTIED)
async def test_content_that_is_not_as_it_was_written_nor_erased_is_named_and_not_read(data: Path, name: str) -> None:
    sql, words = EMPTIED[name]
    await erase(data)
    in_log(sql)(place_in(data))
    assert any(words in damage for damage in verify_directory(place_in(data)).damage)
    log = await open_tenant(data, "default")
    position = 14 if "14" in sql else 2
    with pytest.raises(ContentDamaged, match=f"The content at position {position} {words}"):
        await log.content(position)
    with pytest.raises(ContentDamaged, match=words):
        await log.read(position - 1, position, EventFilter(content=True))
    await log.close()


async def test_content_that_is_changed_after_a_page_showed_it_is_not_shown_again(data: Path) -> None:
    log = await open_tenant(data, "default")
    await views(log).rows("messages", Query())
    in_log("UPDATE content SET json = x'7b7d'")(place_in(data))
    with pytest.raises(ContentDamaged, match="does not fit its digest"):
        await views(log).rows("messages", Query())
    await log.close()


async def test_content_that_an_event_of_the_chain_says_was_erased_is_no_damage(data: Path) -> None:
    await erase(data)
    assert verify_directory(place_in(data)).damage == ()
    log = await open_tenant(data, "default")
    assert await log.content(4) is None
    (record,) = await log.read(3, 4, EventFilter(content=True))
    assert record.content is not None
    assert (record.content.erased, record.content.owner) == (True, "thr-1")
    assert (await log.verify()).damage == ()
    await log.close()


@pytest.mark.parametrize("position", [-3, 1, 9, 999])
async def test_content_that_no_event_has_is_named(data: Path, position: int) -> None:
    added = f"INSERT INTO content VALUES ({position}, 'thr-1', x'00', x'7b7d', x'', NULL)"  # noqa: S608 - our own number
    in_log(added)(place_in(data))
    expected = f"position {position}: no event has the content that lies here, it was added"
    assert verify_directory(place_in(data)).damage == (expected,)
    log = await open_tenant(data, "default")
    assert (await log.verify()).damage == (expected,)
    assert (await log.verify(7)).damage == ((expected,) if position > 7 else ())
    await log.close()


async def test_a_log_is_verified_while_commits_go_on(tmp_path: Path) -> None:
    log = await open_durable(tmp_path / "log")
    for number in range(20):
        log.append(unit("thr-1", created(), sent(f"msg-{number}")))
        found, _ = await asyncio.gather(log.verify(), log.commit(unit("thr-2", created(), sent(f"more-{number}"))))
        assert found.damage == ()
    await log.close()


# Rows


ADDED = (
    "INSERT INTO rows_threads SELECT version + 1, key, until, public, private, content_at, f_first, f_sent, f_last "
    "FROM rows_threads LIMIT 1"
)
WRONG_ROWS: dict[str, tuple[Tamper, str]] = {
    "a row was changed": (in_log("UPDATE rows_threads SET public = x'7b7d' WHERE key = 'thr-2'"), "rows_threads"),
    "a version is missing": (
        in_log("DELETE FROM rows_threads WHERE version IN (SELECT min(version) FROM rows_threads)"),
        "rows_threads",
    ),
    "a version was added": (in_log(ADDED), "rows_threads"),
    "a message was moved": (in_log("UPDATE rows_messages SET f_thread = 'thr-2'"), "rows_messages"),
    "the index of streams lacks one": (in_log("DELETE FROM streams WHERE stream = 'thr-2'"), "streams"),
    "the index of types lacks one": (in_log("DELETE FROM types"), "types"),
}


@pytest.mark.parametrize("name", WRONG_ROWS)
async def test_rows_that_are_not_what_the_events_make_of_them_are_named_and_made_again(data: Path, name: str) -> None:
    tamper, table = WRONG_ROWS[name]
    assert verify_directory(place_in(data), models=MODELS).damage == ()
    tamper(place_in(data))
    (damage,) = verify_directory(place_in(data), models=MODELS).damage
    assert damage.startswith(f"table {table}: it does not hold what the events make of it")
    drop_rows(place_in(data), None, "default", FixedClock().now_us)
    await (await open_tenant(data, "default")).close()
    assert verify_directory(place_in(data), models=MODELS).damage == ()


def damage_page(place: Path, table: str) -> None:
    """Nobody can read the table any more."""
    with closing(Pysqlite().connect(str(place / "log.sqlite"))) as database:
        ((page,),) = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchall()
    with (place / "log.sqlite").open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xff" * 4096)


async def test_rows_whose_pages_are_damaged_are_named_and_made_again_and_a_start_says_so(data: Path) -> None:
    damage_page(place_in(data), "rows_threads")
    (damage,) = verify_directory(place_in(data), models=MODELS).damage
    assert damage.startswith("the rows cannot be read: ")
    assert "`organism log rebuild`" in damage
    drop_rows(place_in(data), None, "default", FixedClock().now_us)
    with capture_logs() as said:
        log = await open_tenant(data, "default")
    expected = {"event": "rows_made_again", "log_level": "warning", "log": "default"}
    assert said == [{**expected, "events": log.head, "dropped": []}]
    await log.close()
    assert verify_directory(place_in(data), models=MODELS).damage == ()


async def test_damaged_rows_are_reported_with_what_makes_them_again_while_the_log_is_open(data: Path) -> None:
    damage_page(place_in(data), "rows_threads")
    log = await open_tenant(data, "default")
    with pytest.raises(LogDamaged, match="organism log rebuild"):
        await views(log).row("threads", "thr-1")
    await log.close()


async def test_a_table_that_passes_for_rows_is_named_when_it_is_dropped(data: Path) -> None:
    in_log("CREATE TABLE rows_more (x)")(place_in(data))
    with capture_logs() as said:
        await (await open_tenant(data, "default")).close()
    assert said[0]["dropped"] == ["rows_more"]
    assert verify_directory(place_in(data), models=MODELS).damage == ()


async def test_events_that_cannot_be_read_are_not_copied_and_stay_as_they_are(data: Path) -> None:
    log_file = place_in(data) / "log.sqlite"
    damage_page(place_in(data), "units")
    before = log_file.read_bytes()
    with pytest.raises(LogDamaged, match="cannot be read"):
        drop_rows(place_in(data), None, "default", FixedClock().now_us)
    assert (log_file.read_bytes(), list(place_in(data).glob("*.new"))) == (before, [])


async def test_rows_are_compared_while_commits_go_on(tmp_path: Path) -> None:
    log = await open_durable(tmp_path / "log")
    for number in range(10):
        await log.commit(unit("thr-1", created(), sent(f"msg-{number}")))
        beside = asyncio.to_thread(verify_directory, tmp_path / "log", None, "default", MODELS)
        found, _ = await asyncio.gather(beside, log.commit(unit("thr-2", created(), sent(f"more-{number}"))))
        assert found.damage == ()
    await log.close()


# Snapshots


FORGED: dict[str, str] = {
    "another body": "UPDATE snapshots SET body = x'00'",
    "another position": "UPDATE snapshots SET position = 9",
    "another name": "UPDATE snapshots SET name = 'other' WHERE name = 'pump'",
    "a digest without a key": "UPDATE snapshots SET body = x'', mac = "
    "x'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'",
}


@pytest.mark.parametrize("name", FORGED)
async def test_a_forged_snapshot_is_not_loaded(data: Path, name: str) -> None:
    in_log(FORGED[name])(place_in(data))
    log = await open_tenant(data, "default")
    assert await log.load_snapshot("pump") is None
    assert await log.load_snapshot("other") is None
    await log.close()


async def test_a_snapshot_of_another_tenant_is_not_loaded(data: Path) -> None:
    with closing(Pysqlite().connect(str(place_in(data) / "log.sqlite"))) as database:
        database.execute("ATTACH ? AS other", (str(data / "tenants" / TENANT / "log.sqlite"),))
        database.execute("REPLACE INTO snapshots SELECT * FROM other.snapshots")
    log = await open_tenant(data, "default")
    assert await log.load_snapshot("pump") is None
    await log.close()


async def test_a_forged_snapshot_does_not_spare_what_lies_before_it_from_being_verified(data: Path) -> None:
    log = await open_tenant(data, "default")
    for _ in range(3):
        await log.commit(unit("thr-3", created()))
    await log.close()
    in_log("DELETE FROM snapshots WHERE name <> 'pump'", "UPDATE snapshots SET position = 13")(place_in(data))
    in_log("UPDATE units SET hash = randomblob(32) WHERE first = 11")(place_in(data))
    with pytest.raises(LogDamaged, match="positions 11 to 11"):
        await open_tenant(data, "default")


async def test_a_unit_before_the_snapshot_that_is_damaged_is_not_folded(data: Path) -> None:
    in_log("UPDATE units SET body = x'00' WHERE first = 3")(place_in(data))
    log = await open_tenant(data, "default")
    with pytest.raises(LogDamaged, match="position 3"):
        await log.fold(0, lambda record: None)
    await log.close()


# Tenants


async def test_a_tenant_whose_log_is_missing_is_named_and_not_left_out(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / "tenants" / TENANT / "log.sqlite").unlink()
    with pytest.raises(typer.Exit) as ended:
        await asyncio.to_thread(verify, OfTenant(data=data))
    assert ended.value.exit_code == 1
    said = " ".join(capsys.readouterr().err.split())
    assert f"{TENANT}: " in said
    assert "log.sqlite is missing" in said


async def test_the_default_tenant_is_missed_where_others_are(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(place_in(data))
    with pytest.raises(typer.Exit) as ended:
        await asyncio.to_thread(verify, OfTenant(data=data))
    assert ended.value.exit_code == 1
    assert "default: " in capsys.readouterr().err


async def test_a_log_does_not_open_under_another_tenants_name_even_with_its_key(data: Path) -> None:
    place = place_in(data)
    shutil.rmtree(place)
    shutil.copytree(data / "tenants" / TENANT, place)
    assert verify_directory(place, tenant=TENANT).damage == ()
    with pytest.raises(LogDamaged, match=NOT_UNDER_THE_KEY):
        verify_directory(place)
    with pytest.raises(LogDamaged, match=NOT_UNDER_THE_KEY):
        await open_tenant(data, "default")


async def test_another_key_is_refused_after_a_stop_and_the_log_goes_on_under_its_own(data: Path) -> None:
    key = place_in(data) / "key"
    own = key.read_bytes()
    key.write_bytes(b"1" * 64)
    with pytest.raises(LogDamaged, match=NOT_UNDER_THE_KEY):
        await open_tenant(data, "default")
    key.write_bytes(own)
    log = await open_tenant(data, "default")
    await log.commit(unit("thr-1", created()))
    await log.close()
    assert verify_directory(place_in(data)).damage == ()
