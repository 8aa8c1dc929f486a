"""A stream cut and resumed at any place loses nothing and repeats nothing, with every writer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from organism.model.commands import Injected
from organism.model.run import RunEntry
from organism.server.turns.answer import Writer
from organism.server.turns.follow import Seen
from organism.server.turns.write.ndjson import LineWriter
from organism.server.turns.write.openai import CompletionWriter, Head
from organism.server.turns.write.sse import EventWriter
from organism.server.turns.write.vercel import UiWriter
from organism.views.run import fold

SENT = Injected("thr-1", "msg-1", 1)
FAILED = {"code": "upstream_error", "message": "Away."}


def entry(kind: str, **data: Any) -> RunEntry:
    return {"type": kind, "data": data}


class Block(NamedTuple):
    """A block that comes so many times, each time in these pieces; the last time it ends."""

    kind: str
    attempts: list[list[str]]

    def entries(self, name: str, *, is_gathered: bool) -> Iterable[RunEntry]:
        for pieces in self.attempts:
            yield entry(f"{self.kind}_start", id=name)
            offset = 0
            for piece in ["".join(pieces)] if is_gathered else pieces:
                yield entry(f"{self.kind}_delta", id=name, delta=piece, offset=offset)
                offset += len(piece)
        yield entry(f"{self.kind}_end", id=name)


TEXT = st.lists(st.sampled_from(["He", "llo", ", ", "you", "ä", "€🙂", "\u2028"]), max_size=5)
BLOCK = st.builds(Block, st.sampled_from(["message", "thought"]), st.lists(TEXT, min_size=1, max_size=3))
WHOLE = st.sampled_from(
    [
        entry("message", text="Wait."),
        entry("thought", text="Hm."),
        entry("tool_call", id="t1", name="f", input={}),
        entry("tool_result", id="t1", output="42", isError=False),
        entry("usage", input=1, output=1, total=2, served_by="scripted"),
        entry("error", **FAILED),
        entry("data", name="chart", data=[1]),
    ]
)
RUN = st.lists(BLOCK | WHOLE, max_size=5)
REASON = st.sampled_from(["stop", "length", "budget", "error", "killed"])


def entries_of(run: list[Block | RunEntry], reason: str, *, is_gathered: bool) -> list[RunEntry]:
    """The run's entries, each attempt in its pieces or gathered, as the log has it."""
    entries: list[RunEntry] = []
    for at, part in enumerate(run):
        entries += part.entries(f"b{at}", is_gathered=is_gathered) if isinstance(part, Block) else [part]
    return [*entries, entry("done", stopReason=reason)]


def of_lines(wire: bytes) -> Any:
    return fold(map(orjson.loads, wire.splitlines()))


def of_events(wire: bytes) -> Any:
    events = (line.removeprefix(b"data: ") for line in wire.split(b"\n\n") if line.startswith(b"data: "))
    return fold(map(orjson.loads, events))


def of_parts(wire: bytes) -> Any:
    """The AI SDK's reading: the text of each part in its place, all other parts as they are."""
    *lines, last, _ = wire.split(b"\n\n")
    read: dict[Any, Any] = {}
    for number, line in enumerate(lines):
        part = orjson.loads(line.removeprefix(b"data: "))
        kind, _, phase = part["type"].partition("-")
        if kind not in {"text", "reasoning"}:
            read[number] = part
        elif phase == "delta":
            read[part["id"]] += part["delta"]
        elif phase == "start":
            read[part["id"]] = ""
    return last, list(read.values())


def of_chunks(wire: bytes) -> Any:
    """What a client of OpenAI has read in the end."""
    *lines, last, _ = wire.split(b"\n\n")
    texts, others = {"content": "", "reasoning_content": ""}, []
    for line in lines:
        chunk = orjson.loads(line.removeprefix(b"data: "))
        for choice in chunk.get("choices", ()):
            for name in texts:
                texts[name] += choice["delta"].pop(name, "")
            others += [choice] if choice["delta"] or choice["finish_reason"] else []
        others += [chunk["error"]] if "error" in chunk else []
    return last, texts, [each for each in others if each.get("delta") != {"role": "assistant"}]


def completions() -> CompletionWriter:
    return CompletionWriter(Head("thr-1", 1, "m"), lambda error: orjson.dumps({"error": {"code": error.code}}))


def cut_and_gone_on_with(live: list[RunEntry], logged: list[RunEntry], at: int) -> list[RunEntry]:
    """What a client gets that goes on after so many entries that it saw live."""
    seen = Seen(SENT)
    got = [new for each in live[:at] if (new := seen.take(each)) is not None]
    seen = Seen.at(orjson.loads(orjson.dumps(seen.place)))
    return got + [new for each in logged if (new := seen.take(each)) is not None]


@pytest.mark.parametrize(
    ("make", "read"),
    [
        (lambda: LineWriter("application/x-ndjson"), of_lines),
        (EventWriter, of_events),
        (lambda: UiWriter("msg-1"), of_parts),
        (completions, of_chunks),
    ],
    ids=["ndjson", "sse", "vercel", "openai"],
)
@given(run=RUN, reason=REASON, data=st.data())
def test_a_stream_that_is_cut_and_gone_on_with_is_read_as_one_that_was_not(
    make: Callable[[], Writer], read: Callable[[bytes], Any], run: list[Block | RunEntry], reason: str, data: Any
) -> None:
    live, logged = (entries_of(run, reason, is_gathered=is_gathered) for is_gathered in (False, True))
    at = data.draw(st.integers(0, len(live)))

    def shown(entries: Iterable[RunEntry]) -> Any:
        writer = make()
        return read(b"".join(map(writer.lines, entries)) + writer.end({}))

    assert shown(cut_and_gone_on_with(live, logged, at)) == shown(logged)


@given(run=RUN, reason=REASON, data=st.data())
def test_a_client_gets_the_rest_of_a_stream_and_nothing_that_it_has(
    run: list[Block | RunEntry], reason: str, data: Any
) -> None:
    live, logged = (entries_of(run, reason, is_gathered=is_gathered) for is_gathered in (False, True))
    at = data.draw(st.integers(0, len(live)))
    got = cut_and_gone_on_with(live, logged, at)
    seen = Seen(SENT)
    for each in got:
        assert seen.take(each) == each
    lengths = [sum(len(each["data"].get("delta", "")) for each in entries) for entries in (got, live)]
    assert lengths[0] == lengths[1]
