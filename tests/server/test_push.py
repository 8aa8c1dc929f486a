"""The tail and its viewers over a real log: none misses, repeats or disorders anything, whatever its socket does."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.frames import Frame as WireFrame
from websockets.protocol import Protocol, Side
from websockets.protocol import State as WireState

from organism.events.record import Content, Record, Unit
from organism.events.vocabulary import Declared, MessageSent, OrganismStarted, ThreadCompleted, ThreadCreated
from organism.log.sqlite import SqliteLog
from organism.pump.run.feed import Feed
from organism.server.push.filter import Filter, as_array
from organism.server.push.frames import Resumed
from organism.server.push.past import MOST_PAGE
from organism.server.push.snapshot import Start
from organism.server.push.viewer import QUIET_EVENTS, Tail, Viewer
from organism.views.read_models import READ_MODELS
from tests.log.engines import views

EVERYTHING = Filter()


class Sink:
    """A connection that keeps what it is sent. While it is blocked it takes nothing more."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.over = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._news = asyncio.Event()

    def block(self) -> None:
        """There is no room from now on."""
        self._room.clear()

    def unblock(self) -> None:
        """There is room again."""
        self._room.set()

    async def take(self, viewer: Viewer) -> None:
        """Take what the viewer sends, until that ends."""
        async for frames in viewer.stream():
            if frames:
                self.written.append(frames)
                self._news.set()
            await self._room.wait()
        self.over.set()

    def whole(self) -> list[Any]:
        """All that was written, frame by frame, as a client reads it."""
        client = Protocol(Side.CLIENT, state=WireState.OPEN, max_size=None)
        client.receive_data(b"".join(self.written))
        return [orjson.loads(bytes(read.data)) for read in client.events_received() if isinstance(read, WireFrame)]

    def frames(self) -> list[dict[str, Any]]:
        """The same, event by event."""
        return [event for frame in self.whole() for event in (frame if isinstance(frame, list) else [frame])]

    def positions(self) -> list[int]:
        """The positions of what came from the log."""
        own = {"caught_up", "fell_behind", "checkpoint", "agent_state"}
        return [frame["position"] for frame in self.frames() if frame["event"] not in own]

    async def until(self, event: str, position: int = 0) -> None:
        """Wait until it has a frame of this event, at this position or later."""
        while not any(f["event"] == event and f.get("position", 0) >= position for f in self.frames()):
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 10)


class World:
    """A log that is written to by hand, and a tail of it."""

    def __init__(self, log: SqliteLog, window_bytes: int = 1 << 20) -> None:
        self.log = log
        self.feed = Feed()
        self.now_us = 0
        self.tail = Tail(log, views(log), lambda: self.now_us, window_bytes, self.feed)
        self._watching: dict[Viewer, asyncio.Task[None]] = {}
        self.clock_us = 1_000_000

    async def say(self, *threads: str) -> int:
        """A commit with a message in each of these threads; gives the head."""
        units = [self._unit(thread) for thread in threads]
        for unit in units[:-1]:
            self.log.append(unit)
        return await self.log.commit(units[-1])

    async def say_often(self, times: int) -> int:
        """So many commits; gives the head."""
        heads = [await self.say("t") for _ in range(times)]
        return heads[-1]

    def _unit(self, thread: str) -> Unit:
        self.clock_us += 1
        sent = MessageSent(f"m{self.clock_us}", "a", "console", "T", depth=1, token="c")
        shown = Record(sent, Content(thread, b'{"n":%d}' % self.clock_us))
        records = [Record(ThreadCreated()), shown, Record(ThreadCompleted())]
        return Unit(f"{thread}-{self.clock_us}", records, self.clock_us, {})

    def watch(self, since: int | None = None, wanted: Filter = EVERYTHING) -> tuple[Sink, Viewer]:
        """A viewer from a position on (None: from the head)."""
        sink = Sink()
        start = Start(Resumed(self.log.head if since is None else since, "log"), announce=since is not None)
        viewer = Viewer(self.tail, wanted, start)
        tail = ExitStack()
        tail.enter_context(self.tail.watched())
        task = self._watching[viewer] = asyncio.ensure_future(sink.take(viewer))
        task.add_done_callback(lambda _: tail.close())
        return sink, viewer

    async def leave(self, viewer: Viewer) -> None:
        """The viewer watches no more."""
        task = self._watching.pop(viewer)
        task.cancel()
        await asyncio.wait([task])
        await turn()

    async def close(self) -> None:
        """Nobody watches any more."""
        for viewer in tuple(self._watching):
            await self.leave(viewer)
        await self.log.close()


@pytest.fixture
async def world() -> AsyncIterator[World]:
    """A log with its tail."""
    made = World(await SqliteLog.in_memory(READ_MODELS))
    yield made
    await made.close()


def turn() -> asyncio.Future[None]:
    """Done when the loop has turned once."""
    loop = asyncio.get_running_loop()
    turned = loop.create_future()
    loop.call_soon(turned.set_result, None)
    return turned


async def truth(log: SqliteLog) -> list[int]:
    """The positions of all events, each of which has a frame here."""
    return [record.position for record in await log.read(limit=100_000)]


async def test_frames_are_encoded_once_for_all_who_want_the_same(world: World) -> None:
    sinks = [world.watch()[0] for _ in range(3)]
    first = await world.say("t")
    for sink in sinks:
        await sink.until("thread_updated", first)
    head = await world.say("t", "u", "v")
    for sink in sinks:
        await sink.until("thread_updated", head)
    last = [next(written for written in reversed(sink.written) if b"thread_updated" in written) for sink in sinks]
    assert last[0] is last[1] is last[2], "the very same bytes, in one write"


async def test_anyone_who_comes_with_a_position_catches_up_and_is_told_so(world: World) -> None:
    await world.say_often(MOST_PAGE)
    plain, arrays = world.watch(since=3)[0], world.watch(since=3, wanted=Filter(form=as_array))[0]
    for sink in (plain, arrays):
        await sink.until("caught_up")
    head = await world.say("t")
    for sink in (plain, arrays):
        await sink.until("thread_updated", head)
        assert sink.positions() == (await truth(world.log))[3:]
        assert [frame["event"] for frame in sink.frames()].count("caught_up") == 1


@pytest.mark.parametrize("since", range(10))
async def test_anyone_who_comes_back_to_any_position_gets_the_rest_once(world: World, since: int) -> None:
    first, _ = world.watch()
    await world.say("t")
    head = await world.say("u", "v")
    await first.until("thread_updated", head)
    sink, _ = world.watch(since=since)  # the window has both commits
    await sink.until("caught_up")
    assert sink.positions() == list(range(since + 1, head + 1))


async def test_who_asks_for_another_position_while_the_past_is_read_gets_what_follows_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = await world.say_often(10)
    read, reading, gate = world.log.read, asyncio.Event(), asyncio.Event()

    async def slow(*arguments: Any, **options: Any) -> list[Record[Any]]:
        records = await read(*arguments, **options)
        reading.set()
        await gate.wait()
        return records

    monkeypatch.setattr(world.log, "read", slow)
    sink, viewer = world.watch(since=0)
    await reading.wait()
    viewer.begin(Start(Resumed(15, "log")))
    gate.set()
    await sink.until("caught_up")
    assert sink.positions() == list(range(16, head + 1))


async def test_who_is_jammed_for_a_while_holds_up_nobody_is_written_nothing_and_misses_nothing(world: World) -> None:
    jammed, viewer = world.watch()
    free, _ = world.watch()
    await jammed.until("thread_updated", await world.say("t"))
    jammed.block()
    await world.say("t")
    before = len(jammed.written)
    head = await world.say_often(50)
    await free.until("thread_updated", head)
    assert len(jammed.written) <= before + 1
    assert viewer.position < head
    jammed.unblock()
    await jammed.until("thread_updated", head)
    assert jammed.positions() == free.positions() == await truth(world.log)
    assert "fell_behind" not in [frame["event"] for frame in jammed.frames()]


async def test_who_falls_behind_the_window_is_told_and_misses_nothing(world: World) -> None:
    world.tail = Tail(world.log, views(world.log), lambda: world.now_us, window_bytes=3_000)
    other, _ = world.watch()
    sink, _ = world.watch()
    await sink.until("thread_updated", await world.say("t"))
    sink.block()
    head = await world.say_often(30)
    await other.until("thread_updated", head)
    sink.unblock()
    await sink.until("caught_up", head)
    events = [frame["event"] for frame in sink.frames()]
    assert events.count("fell_behind") == events.count("caught_up") == 1
    assert sink.positions() == other.positions() == await truth(world.log)


async def test_who_has_fallen_behind_hears_once_a_second_how_old_the_next_event_is(world: World) -> None:
    seconds = itertools.count(5_000_000_000, 1_000_000)  # one more each time that somebody looks
    world.tail = Tail(world.log, views(world.log), seconds.__next__, window_bytes=3_000)
    other, _ = world.watch()
    sink, _ = world.watch()
    await sink.until("thread_updated", await world.say("t"))
    sink.block()
    head = await world.say_often(1_000)
    await other.until("thread_updated", head)
    sink.unblock()
    await sink.until("caught_up", head)
    said = [frame for frame in sink.frames() if frame["event"] == "fell_behind"]
    at = {record.position: record.at for record in await world.log.read(0, limit=head)}
    looked_at = [round(frame["lag_ms"] * 1000) + at[frame["position"] + 1] for frame in said]
    assert len(said) > 1
    assert looked_at == sorted(set(looked_at))
    assert all((each - 5_000_000_000) % 1_000_000 == 0 for each in looked_at)


async def test_a_quiet_filter_hears_how_far_the_log_has_come(world: World) -> None:
    sink, _ = world.watch(wanted=Filter(events=frozenset({"error"})))
    watcher, _ = world.watch()
    head = await world.say("t")
    await watcher.until("thread_updated", head)
    for _ in range(2):
        world.tail.tick()
        await turn()
    assert [frame for frame in sink.frames() if frame["event"] != "agent_state"] == [
        {"event": "checkpoint", "position": head}
    ]


async def test_a_quiet_filter_hears_checkpoints_while_it_catches_up(world: World) -> None:
    await world.say_often(QUIET_EVENTS)
    sink, _ = world.watch(since=0, wanted=Filter(events=frozenset({"error"})))
    await sink.until("caught_up", world.log.head)
    assert [frame["event"] for frame in sink.frames() if frame["event"] != "agent_state"] == ["checkpoint", "caught_up"]


async def test_in_arrays_each_commit_is_one_frame(world: World) -> None:
    sink, _ = world.watch(wanted=Filter(form=as_array))
    none, _ = world.watch(wanted=Filter(events=frozenset({"error"}), form=as_array))
    plain, _ = world.watch()
    head = await world.say("t", "u")
    last = await world.say("v")
    await plain.until("thread_updated", last)
    world.tail.tick()
    await turn()
    arrays = [frame for frame in sink.whole() if isinstance(frame, list)]
    assert [[frame["position"] for frame in array] for array in arrays] == [[1, 2, 3, 4, 5, 6], [7, 8, 9]]
    assert [frame for array in arrays for frame in array] == [f for f in plain.frames() if f["event"] != "agent_state"]
    assert (head, last) == (6, 9)
    assert none.whole() == [{"event": "checkpoint", "position": 9}], "no empty array, and its own frame in none"


async def test_what_a_wider_filter_shows_of_the_agents_is_sent_with_it(world: World) -> None:
    listeners = tuple(
        Declared(name, "", is_agent=False, peers=(), payload_class="x.Y", model=None, version="1") for name in "ab"
    )
    started = OrganismStarted("o", "1", "", listeners, removed=(), life=1, clean=True)
    await world.log.commit(Unit(None, [Record(started)], 1_000_000, {}))
    sink, viewer = world.watch(wanted=Filter(agents=frozenset({"a"})))
    await sink.until("agent_state")
    viewer.want(Filter(agents=frozenset({"a", "b"})))
    await turn()
    assert [frame["agent"] for frame in sink.frames() if frame["event"] == "agent_state"] == ["a", "b"]


async def test_when_the_log_closes_every_viewer_hangs_up_after_the_last_event(world: World) -> None:
    sink, _ = world.watch()
    head = await world.say("t")
    await world.log.close()
    await sink.until("thread_updated", head)
    await asyncio.wait_for(sink.over.wait(), 10)
    assert sink.positions() == await truth(world.log)


async def test_with_nobody_left_the_tail_rests_and_wakes_again(world: World) -> None:
    _, viewer = world.watch()
    await world.say("t")
    await world.leave(viewer)
    away = await world.say("t")
    sink, viewer = world.watch(since=away)
    await sink.until("thread_updated", await world.say("t"))
    assert sink.positions() == [position for position in await truth(world.log) if position > away]
    viewer.end()
    last, _ = world.watch()  # who comes as the last one leaves is not hung up
    await last.until("thread_updated", await world.say("t"))
    assert not last.over.is_set()


Moves = st.lists(st.sampled_from(["say", "say3", "block", "unblock", "turn", "again"]), max_size=60)


@given(moves=Moves, window_bytes=st.sampled_from([1_000, 10_000, 1 << 20]))
def test_whatever_the_socket_does_the_union_is_the_log(moves: Sequence[str], window_bytes: int) -> None:
    async def play() -> None:
        log = await SqliteLog.in_memory(READ_MODELS)
        world = World(log, window_bytes)
        sink, viewer = world.watch(since=0)
        for move in moves:
            if move == "say":
                await world.say("t")
            elif move == "say3":
                await world.say("t", "u", "v")
            elif move == "block":
                sink.block()
            elif move == "unblock":
                sink.unblock()
            elif move == "again":
                viewer.begin(Start(Resumed(viewer.position, "log")))
            else:
                await turn()
        sink.unblock()
        await sink.until("thread_updated", await world.say("end"))
        assert sink.positions() == await truth(log)
        await world.close()

    asyncio.run(play())
