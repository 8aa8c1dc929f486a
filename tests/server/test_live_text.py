"""Text of a run on its way to viewers: heard at once, gathered in the log, no character twice and none lost (3.4)."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterator
from typing import Any

import orjson
import pytest

from organism.events.record import Content, Record, Unit
from organism.events.vocabulary import RUN_ENTRIES
from organism.log.sqlite import SqliteLog
from organism.pump.run.feed import Delta
from organism.server.push.filter import Filter, as_array
from organism.server.push.viewer import Tail
from organism.views.read_models import READ_MODELS
from organism.views.run import fold
from tests.log.engines import views
from tests.server.test_push import Sink, World, turn

TEXT = "The quick brown fox — jumps over 🦊🦊 the lazy dog."


class Said:
    """A block: see ``Speaker``."""

    def __init__(self, delta: Delta) -> None:
        self.delta = delta

    def said(self) -> Delta:
        """Its text that is not in the log."""
        return self.delta


class Theatre(World):
    """A log and a feed to which the test writes a run by hand, and viewers of both."""

    def __init__(self, log: SqliteLog) -> None:
        super().__init__(log)
        self.blocks: dict[str, Said] = {}

    async def write(self, kind: str, block: str = "m1", text: str = "", agent: str = "a", **data: Any) -> int:
        """One entry in the log."""
        said, content = dict(data), None
        if kind.endswith("_delta"):
            said["length"] = len(text)
            body = orjson.dumps({"id": block, "delta": text, "offset": data["offset"]})
            content = Content("t", body)
        event = RUN_ENTRIES[kind](message=f"msg-{agent}", agent=agent, id=block, **said)
        self.clock_us += 1
        return await self.log.commit(Unit("t", [Record(event, content)], self.clock_us, {}))

    async def begin(self, block: str = "m1", agent: str = "a") -> None:
        """A block begins, and is heard from here on."""
        start = await self.write("message_start", block, agent=agent)
        shown = self.blocks[block] = Said(Delta("t", f"msg-{agent}", agent, "message", block, start, 0, ""))
        self.feed.begin(shown, shown.said)

    def speak(self, text: str, block: str = "m1") -> None:
        """A piece is heard."""
        shown = self.blocks[block]
        self.feed.publish(shown.delta._replace(offset=shown.delta.end, text=text))
        shown.delta = shown.delta._replace(text=shown.delta.text + text)

    async def gather(self, block: str = "m1") -> None:
        """What was heard is written."""
        delta = self.blocks[block].delta
        if delta.text:
            await self.write("message_delta", block, delta.text, delta.agent, offset=delta.offset)
            shown = self.blocks[block]
            shown.delta = shown.delta.after(delta.end)

    async def end(self, block: str = "m1") -> None:
        """The block is over."""
        self.feed.end(self.blocks[block])
        await self.gather(block)
        await self.write("message_end", block, agent=self.blocks[block].delta.agent)


def entries(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The entries that frames show."""
    return [{"type": frame["type"], "data": frame["data"]} for frame in frames if frame["event"] == "run"]


def text_of(frames: list[dict[str, Any]]) -> str:
    """What a client has of the run's text; no piece may leave a gap before it."""
    length = 0
    for entry in entries(frames):
        if entry["type"] == "message_start":
            length = 0
        if entry["type"] == "message_delta":
            offset, end = entry["data"]["offset"], entry["data"]["offset"] + len(entry["data"]["delta"])
            assert offset <= length, entry
            length = max(length, end)
    return "".join(message["content"] for message in fold(entries(frames))["messages"])


@pytest.fixture
async def theatre() -> AsyncIterator[Theatre]:
    """A log and a feed."""
    made = Theatre(await SqliteLog.in_memory(READ_MODELS))
    yield made
    await made.close()


async def reached(sink: Sink, theatre: Theatre) -> None:
    """Wait until a viewer has all that is in the log."""
    await sink.until("run", theatre.log.head)


async def test_a_piece_is_shown_at_once_behind_its_start_and_again_from_the_log(theatre: Theatre) -> None:
    sink, _ = theatre.watch(0)
    await sink.until("caught_up")
    await theatre.begin()
    theatre.speak("Hel")
    theatre.speak("lo")
    await theatre.end()
    await reached(sink, theatre)
    run = [(frame.get("position"), frame["type"], frame["data"]) for frame in sink.frames() if frame["event"] == "run"]
    assert run == [
        (1, "message_start", {"id": "m1"}),
        (None, "message_delta", {"id": "m1", "delta": "Hel", "offset": 0}),
        (None, "message_delta", {"id": "m1", "delta": "lo", "offset": 3}),
        (2, "message_delta", {"id": "m1", "delta": "Hello", "offset": 0}),
        (3, "message_end", {"id": "m1"}),
    ]
    assert text_of(sink.frames()) == "Hello"


@pytest.mark.parametrize("seed", range(4))
async def test_a_client_cut_off_at_any_frame_has_the_same_text_when_it_comes_again(theatre: Theatre, seed: int) -> None:
    chance = random.Random(seed)
    sink, _ = theatre.watch(0)
    await sink.until("caught_up")
    comers: list[tuple[list[dict[str, Any]], Sink]] = []
    await theatre.begin()
    for word in _pieces(chance):
        theatre.speak(word)
        if chance.random() < 1 / 4:
            await theatre.gather()
        comers += [cut_and_resumed(theatre, sink, chance)]
    await theatre.end()
    await reached(sink, theatre)
    assert text_of(sink.frames()) == TEXT
    for cut in range(len(sink.frames())):
        comers.append(cut_and_resumed(theatre, sink, chance, cut))
    for before, again in comers:
        await reached(again, theatre)
        assert text_of(before + again.frames()) == TEXT


def _pieces(chance: random.Random) -> Iterator[str]:
    at = 0
    while at < len(TEXT):
        size = chance.randint(1, 7)
        yield TEXT[at : at + size]
        at += size


def cut_and_resumed(
    theatre: Theatre, sink: Sink, chance: random.Random, cut: int | None = None
) -> tuple[list[dict[str, Any]], Sink]:
    """A client that saw the first frames of another, and comes again with the last position that it has."""
    frames = sink.frames()
    before = frames[: chance.randint(0, len(frames)) if cut is None else cut]
    since = max((frame.get("position", 0) for frame in before), default=0)
    return before, theatre.watch(since)[0]


async def test_a_slow_viewer_gets_every_piece_in_its_turn(theatre: Theatre) -> None:
    sink, _ = theatre.watch(0)
    await sink.until("caught_up")
    await theatre.begin()
    await reached(sink, theatre)
    theatre.speak("a")
    sink.block()
    for word in ("b", "c", "d"):
        theatre.speak(word)
    await theatre.gather()
    for word in ("e", "f"):
        theatre.speak(word)
    sink.unblock()
    while text_of(sink.frames()) != "abcdef":
        await turn()
    answer = [frame["data"].get("delta") for frame in sink.frames() if frame["event"] == "run"]
    assert [piece for piece in answer if piece != "abcd"] == [None, "a", "b", "c", "d", "e", "f"]


async def test_a_slow_viewer_that_falls_far_behind_loses_nothing(theatre: Theatre) -> None:
    theatre.tail = Tail(theatre.log, views(theatre.log), lambda: theatre.now_us, 1, theatre.feed)
    sink, _ = theatre.watch(0)
    await sink.until("caught_up")
    sink.block()
    await theatre.begin()
    for number in range(50):
        theatre.speak(f"{number} ")
        await theatre.gather()
    theatre.speak("end")
    sink.unblock()
    await sink.until("fell_behind")
    while not text_of(sink.frames()).endswith("end"):
        await turn()
    assert text_of(sink.frames()) == " ".join(str(number) for number in range(50)) + " end"


@pytest.mark.parametrize(
    ("wanted", "texts"),
    [
        (Filter(agents=frozenset({"b"})), ["of b"]),
        (Filter(threads=frozenset({"other"})), []),
        (Filter(events=frozenset({"message"})), []),
        (Filter(events=frozenset({"run"})), ["of a", "of b"]),
        (Filter(frozenset({"t"}), frozenset({"a"}), frozenset({"run"})), ["of a"]),
    ],
)
async def test_filters_hold_for_what_is_heard(theatre: Theatre, wanted: Filter, texts: list[str]) -> None:
    sink, _ = theatre.watch(0, wanted)
    await sink.until("caught_up")
    for agent in ("a", "b"):
        await theatre.begin(f"m-{agent}", agent)
        theatre.speak(f"of {agent}", f"m-{agent}")
    everything, _ = theatre.watch(0)
    await everything.until("run", theatre.log.head)
    messages = [
        frame["data"]["delta"] for frame in sink.frames() if frame["event"] == "run" and "position" not in frame
    ]
    assert messages == texts


async def test_a_filter_that_shows_more_shows_what_is_not_in_the_log_yet(theatre: Theatre) -> None:
    sink, viewer = theatre.watch(0, Filter(agents=frozenset({"b"})))
    await sink.until("caught_up")
    everything, _ = theatre.watch(0)
    await theatre.begin()
    await reached(everything, theatre)
    theatre.speak("before ")
    await turn()
    viewer.want(Filter(agents=frozenset({"a"})))
    await turn()
    theatre.speak("after")
    await turn()
    messages = [frame["data"] for frame in sink.frames() if frame["event"] == "run"]
    assert messages == [
        {"id": "m1", "delta": "before ", "offset": 0},
        {"id": "m1", "delta": "after", "offset": 7},
    ]


async def test_a_slow_viewer_that_changes_its_filter_loses_no_text(theatre: Theatre) -> None:
    sink, viewer = theatre.watch(0)
    await sink.until("caught_up")
    await theatre.begin()
    await reached(sink, theatre)
    sink.block()
    for word in ("a", "b", "c"):
        theatre.speak(word)
        await turn()
    viewer.want(Filter(events=frozenset({"run"})))
    theatre.speak("d")
    sink.unblock()
    while not text_of(sink.frames()).endswith("d"):
        await turn()
    assert text_of(sink.frames()) == "abcd"


async def test_each_piece_is_encoded_once_for_all_viewers_and_a_frame_for_itself_in_a_batch(theatre: Theatre) -> None:
    sinks = [theatre.watch(0)[0] for _ in range(5)]
    batch, _ = theatre.watch(0, Filter(form=as_array))
    await theatre.begin()
    for sink in (*sinks, batch):
        await reached(sink, theatre)
    theatre.speak("a")
    await turn()
    assert [text_of(sink.frames()) for sink in sinks] == ["a"] * 5
    assert len({id(sink.written[-1]) for sink in sinks}) == 1
    assert [frame["data"] for frame in batch.whole()[-1]] == [{"id": "m1", "delta": "a", "offset": 0}]


async def test_nobody_listens_once_nobody_watches(theatre: Theatre) -> None:
    _, viewer = theatre.watch(0)
    await theatre.leave(viewer)
    await theatre.begin()
    theatre.speak("a")
    assert theatre.tail.unlogged({}) == []
