"""L2 and L8: what a failed commit leaves behind, and how the log comes back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import orjson
import pytest
from structlog.testing import capture_logs

from organism.errors import CommitUnknown, Fenced, LogDamaged, LogUnavailable, OrganismError, StalePosition
from organism.events.record import Actor, Record, Unit
from organism.events.vocabulary import Event, MessageSent
from organism.log.disk import IDLE_WAL_BYTES
from organism.log.sqlite import EARLY_UNITS, SqliteLog
from organism.model.redact import Redactor
from organism.views.views import Keys, Query, ReadModel, fold_each
from tests.log.engines import MODELS, THREADS, Message, created, found_out, open_durable, sent, turn, unit, views
from tests.log.faulty import FaultyDriver, Plan

SECRET = "another-secret-of-mine"


@pytest.fixture
def plan() -> Plan:
    return Plan()


@pytest.fixture
async def log(tmp_path: Path, plan: Plan) -> AsyncIterator[SqliteLog]:
    opened = await open_durable(tmp_path / "log", FaultyDriver(plan))
    yield opened
    await opened.close()


def recovered(log: SqliteLog) -> asyncio.Future[int]:
    """The head that the log tells its owner after it came back."""
    back: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    log.on_lost = back.set_result
    return back


def listen(heard: list[tuple[str, str]], name: str) -> Callable[[Unit, Exception | None], None]:
    """Notes what a unit hears."""
    return lambda _, error: heard.append((name, type(error).__name__))


CODES = ["SQLITE_FULL", "SQLITE_IOERR", "SQLITE_IOERR_FSYNC", "SQLITE_BUSY", "SQLITE_READONLY"]


@pytest.mark.parametrize("is_written_first", [False, True])
@pytest.mark.parametrize("code", CODES)
async def test_l8_unknown_is_called_unknown_and_the_log_comes_back_with_the_truth(
    log: SqliteLog, plan: Plan, code: str, *, is_written_first: bool
) -> None:
    await log.commit(unit("thr-1", created()))
    back = recovered(log)
    plan.fail_commits, plan.is_written_first = {2: code}, is_written_first
    with pytest.raises(CommitUnknown, match=code.lower().replace("_", " ")):
        await log.commit(unit("thr-1", sent("msg-1"), expect={"thr-1": 1}))
    head = await back
    assert head == log.head == (2 if is_written_first else 1)
    assert await log.commit(unit("thr-1", sent("msg-2"), expect={"thr-1": head})) == head + 1
    assert (await log.verify()).damage == ()
    assert [record.position for record in await log.read()] == list(range(1, head + 2))
    assert (await views(log).rows("messages", Query())).count == head


async def test_l8_who_was_in_the_commit_and_who_came_after_hear_different_things(log: SqliteLog, plan: Plan) -> None:
    heard: list[tuple[str, str]] = []
    plan.fail_commits = {1: "SQLITE_IOERR"}
    back = recovered(log)
    first, second, third = (unit(f"thr-{name}", created()) for name in "abc")
    first.then, third.then = listen(heard, "first"), listen(heard, "third")

    def then(_: Unit, error: Exception | None) -> None:
        heard.append(("second", type(error).__name__))
        with pytest.raises(LogUnavailable, match="takes no writes now"):
            log.append(unit("thr-d", created()))

    second.then = then
    log.append(first)
    log.append(second)
    await turn()  # the commit begins, what is appended now has to wait for the next one
    log.append(third)
    assert await back == 0
    assert heard == [("first", "CommitUnknown"), ("second", "CommitUnknown"), ("third", "LogUnavailable")]
    assert (first.last, second.last, third.last) == (-1, -1, -1)
    with pytest.raises(StalePosition):
        log.append(unit("thr-a", created(), expect={"thr-a": first}))
    assert await log.commit(unit("thr-a", created(), expect={"thr-a": 0})) == 1


async def test_l8_nothing_is_written_until_the_disk_was_read_again_and_reads_go_on(log: SqliteLog, plan: Plan) -> None:
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    back = recovered(log)
    plan.is_broken = "SQLITE_FULL"
    with pytest.raises(CommitUnknown):
        await log.commit(unit("thr-1", sent("msg-2")))
    assert log.available is False
    with pytest.raises(LogUnavailable, match="sqlite full"):
        log.append(unit("thr-1", sent("msg-3")))
    assert [record.position for record in await log.read()] == [1, 2]
    assert (await views(log).rows("messages", Query())).count == 1
    assert await log.content(2) == (b'{"text":"hello"}', b"<text>hello</text>")
    plan.is_broken = ""
    assert await back == 2
    assert await log.commit(unit("thr-1", sent("msg-4"), expect={"thr-1": 2})) == 3


async def test_l8_after_an_io_error_every_connection_is_made_again(log: SqliteLog, plan: Plan) -> None:
    await log.commit(unit("thr-1", created()))
    await views(log).rows("threads", Query())
    back, before = recovered(log), plan.opens
    plan.fail_commits = {2: "SQLITE_IOERR_FSYNC"}
    with pytest.raises(CommitUnknown):
        await log.commit(unit("thr-2", created()))
    await back
    assert (await views(log).rows("threads", Query())).count == 1
    assert plan.opens - before == len(("the writer", "the reader", "the loop"))


async def test_l8_the_log_comes_back_only_once_the_wal_is_moved_into_the_database(log: SqliteLog, plan: Plan) -> None:
    back, before = recovered(log), plan.moves
    plan.fail_commits, plan.busy_moves = {1: "SQLITE_IOERR_FSYNC"}, 2
    with pytest.raises(CommitUnknown):
        await log.commit(unit("thr-1", created()))
    await back
    assert (plan.busy_moves, plan.moves - before) == (0, 1)


async def test_l8_a_checkpoint_that_breaks_has_the_disk_read_again(log: SqliteLog, plan: Plan) -> None:
    back, before, plan.fail_checkpoint = recovered(log), plan.moves, "SQLITE_IOERR_FSYNC"
    await log.commit(unit("thr-1", sent("msg-1", "x" * (IDLE_WAL_BYTES + 1))))
    async with asyncio.timeout(30):
        assert await back == 1
    assert plan.moves - before == 1


async def test_l8_nothing_that_is_remembered_rests_on_a_commit_that_failed(log: SqliteLog, plan: Plan) -> None:
    await log.commit(unit("thr-1", created()))
    back, plan.fail_commits = recovered(log), {2: "SQLITE_IOERR"}
    with pytest.raises(CommitUnknown):
        await log.commit(unit("thr-1", sent("msg-1")))
    await back
    await log.commit(unit("thr-1", sent("msg-2")))
    assert orjson.loads(await views(log).row("threads", "thr-1") or b"") == {
        "id": "thr-1",
        "first": 1,
        "sent": 1,
        "last": 2,
    }
    assert await log.type_spans([MessageSent], 0, 9, 9) == [0]


async def test_l8_a_commit_that_turns_out_to_be_written_reaches_who_follows(log: SqliteLog, plan: Plan) -> None:
    await log.commit(unit("thr-1", created()))
    plan.fail_commits, plan.is_written_first = {2: "SQLITE_IOERR"}, True
    back = recovered(log)
    with pytest.raises(CommitUnknown):
        await log.commit(unit("thr-1", sent("msg-1")))
    await back
    await log.commit(unit("thr-1", sent("msg-2")))
    seen: list[Record[Event]] = []
    async for records in log.follow(0):
        seen += records
        if len(seen) >= 3:
            break
    assert isinstance(seen[1].event, MessageSent)
    assert [record.position for record in seen] == [1, 2, 3]


async def test_l8_a_log_that_lost_what_was_acknowledged_stays_closed(
    log: SqliteLog, plan: Plan, tmp_path: Path
) -> None:
    await log.commit(unit("thr-1", created()))
    await log.commit(unit("thr-2", created()))
    eraser = FaultyDriver(Plan()).connect(str(tmp_path / "log" / "log.sqlite"))
    eraser.execute("DELETE FROM units WHERE first = 2")
    eraser.close()
    plan.fail_commits = {3: "SQLITE_IOERR"}
    with pytest.raises(CommitUnknown):
        await log.commit(unit("thr-3", created()))
    await found_out(log)
    with pytest.raises(LogDamaged, match="position"):
        log.append(unit("thr-4", created()))
    assert (await log.read(0, 1))[0].position == 1


async def test_l6_a_log_that_was_taken_over_writes_nothing_more(log: SqliteLog, tmp_path: Path) -> None:
    await log.commit(unit("thr-1", created()))
    usurper = FaultyDriver(Plan()).connect(str(tmp_path / "log" / "log.sqlite"))
    usurper.execute("UPDATE meta SET epoch = epoch + 1")
    usurper.close()
    with pytest.raises(Fenced):
        await log.commit(unit("thr-2", created()))
    with pytest.raises(Fenced):
        log.append(unit("thr-3", created()))
    assert not log.available
    assert [record.position for record in await log.read()] == [1]


async def test_l6_a_log_that_was_taken_over_during_an_outage_does_not_take_it_back(
    log: SqliteLog, plan: Plan, tmp_path: Path
) -> None:
    await log.commit(unit("thr-1", created()))
    usurper = FaultyDriver(Plan()).connect(str(tmp_path / "log" / "log.sqlite"))
    usurper.execute("UPDATE meta SET epoch = epoch + 1")
    plan.fail_commits = {2: "SQLITE_IOERR"}
    with pytest.raises(CommitUnknown):
        await log.commit(unit("thr-2", created()))
    await found_out(log)
    assert usurper.execute("SELECT epoch FROM meta").fetchall() == [(2,)]
    usurper.close()
    with pytest.raises(Fenced):
        log.append(unit("thr-3", created()))


async def test_a_foreign_lock_is_waited_for(log: SqliteLog, tmp_path: Path) -> None:
    await log.commit(unit("thr-1", created()))
    other = FaultyDriver(Plan()).connect(str(tmp_path / "log" / "log.sqlite"))
    other.execute("BEGIN IMMEDIATE")
    back = recovered(log)
    with pytest.raises(CommitUnknown, match="locked"):
        await log.commit(unit("thr-2", created()))
    assert (await log.read())[0].position == 1
    other.execute("COMMIT")
    other.close()
    assert await back == 1
    assert await log.commit(unit("thr-2", created())) == 2


async def test_a_then_that_raises_keeps_nobody_else_from_hearing(log: SqliteLog) -> None:
    raised: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context["exception"]))

    def fall(*_: object) -> None:
        raise RuntimeError("the author's fault")

    first = unit("thr-1", created())
    first.then = fall
    log.append(first)
    assert await log.commit(unit("thr-2", created())) == 2
    assert [str(error) for error in raised] == ["the author's fault"]


async def test_a_log_closes_while_its_disk_is_broken(tmp_path: Path) -> None:
    plan = Plan()
    log = await open_durable(tmp_path / "log", FaultyDriver(plan))
    await log.commit(unit("thr-1", created()))
    plan.is_broken = "SQLITE_IOERR"
    with pytest.raises(CommitUnknown):
        await log.commit(unit("thr-1", sent("msg-1")))
    await log.close()
    log = await open_durable(tmp_path / "log")
    assert log.head == 1
    assert await views(log).row("threads", "thr-1") is not None
    await log.close()


async def test_a_read_model_that_falls_shows_nothing_half_made_and_stops_nobody(tmp_path: Path) -> None:
    unfit = {"msg-2"}

    def fall(key: str, row: Message | None, record: Record[MessageSent]) -> Message:
        if record.event.message in unfit:
            raise RuntimeError("the model's fault")
        return Message(key, record.thread, record.event.to, record.position, [])

    keys: dict[type[Event], Keys] = {MessageSent: lambda record: (record.event.message,)}
    broken = ReadModel("messages", 7, keys, fold_each(keys, fall), Message)
    log = await open_durable(tmp_path / "log", models=(THREADS, broken))
    await log.commit(unit("thr-1", created(), sent("msg-1")))
    assert (await views(log).rows("messages", Query())).count == 1
    with capture_logs() as told:
        assert await log.commit(unit("thr-1", sent("msg-2"))) == 3
    assert [(line["event"], line["error"]) for line in told] == [("rows_failed", "the model's fault")]
    assert await log.commit(unit("thr-1", sent("msg-3"), expect={"thr-1": 3})) == 4
    with pytest.raises(OrganismError, match="read model"):
        await views(log).rows("messages", Query())
    assert [record.position for record in await log.read()] == [1, 2, 3, 4]
    await log.close()
    unfit.clear()
    log = await open_durable(tmp_path / "log", models=(THREADS, broken))
    assert (await views(log).rows("messages", Query())).count == 3
    await log.close()


def unfit_unit(thread: str) -> Unit:
    """A unit that ``append`` takes, and that has no row: half a character is no UTF-8."""
    unfit = unit(thread, created())
    unfit.actor = Actor(user="\ud800")
    return unfit


@pytest.mark.parametrize("is_on_disk", [True, False])
async def test_l8_a_unit_that_cannot_be_encoded_fails_its_commit_and_the_log_goes_on(
    tmp_path: Path, *, is_on_disk: bool
) -> None:
    log = await (open_durable(tmp_path / "log") if is_on_disk else SqliteLog.in_memory(MODELS))
    heard: list[tuple[str, str]] = []
    good, unfit, back = unit("thr-1", created()), unfit_unit("thr-2"), recovered(log)
    good.then, unfit.then = listen(heard, "good"), listen(heard, "unfit")
    log.append(good)
    log.append(unfit)
    assert await back == 0
    assert heard == [("good", "CommitUnknown"), ("unfit", "CommitUnknown")]
    assert await log.commit(unit("thr-1", created(), expect={"thr-1": 0})) == 1
    assert (await log.verify()).damage == ()
    await log.close()


async def test_l8_a_unit_that_cannot_be_encoded_leaves_the_commit_under_way_alone(log: SqliteLog) -> None:
    heard: list[tuple[str, str]] = []
    back, units = recovered(log), [unit(f"thr-{number}", created()) for number in range(EARLY_UNITS + 1)]
    for each in units:  # so many that the commit has begun
        each.then = listen(heard, "under way")
        log.append(each)
    unfit = unfit_unit("thr-x")
    unfit.then = listen(heard, "unfit")
    log.append(unfit)
    head = await back
    assert heard[:EARLY_UNITS] == [("under way", "NoneType")] * EARLY_UNITS
    assert heard[-1] == ("unfit", "CommitUnknown")
    assert head == EARLY_UNITS == log.head
    assert await log.commit(unit("thr-x", created(), expect={"thr-x": 0})) == head + 1
    assert (await log.verify()).damage == ()


async def test_l2_a_stale_unit_between_two_good_ones_leaves_no_gap(log: SqliteLog) -> None:
    log.append(unit("thr-1", created(), sent("msg-1")))
    with pytest.raises(StalePosition):
        log.append(unit("thr-1", sent("msg-2"), expect={"thr-1": 0}))
    assert await log.commit(unit("thr-1", sent("msg-3"), expect={"thr-1": 2})) == 3
    assert [record.position for record in await log.read()] == [1, 2, 3]
    assert (await views(log).rows("messages", Query())).count == 2


async def test_a_secret_in_one_unit_of_a_commit_is_masked_there_alone(log: SqliteLog) -> None:
    log.conceal(Redactor([SECRET]))
    log.append(unit("thr-1", sent("msg-1", "nothing to hide")))
    log.append(unit("thr-1", sent("msg-2", f"it is {SECRET}")))
    await log.commit(unit("thr-1", sent("msg-3", "nothing either")))
    texts = [orjson.loads((await log.content(position) or (b"",))[0])["text"] for position in (1, 2, 3)]
    assert (texts[0], texts[2]) == ("nothing to hide", "nothing either")
    assert SECRET not in texts[1]
    assert (await log.verify()).damage == ()
