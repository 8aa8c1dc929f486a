"""A story: what a handling shows of itself, as the entries of its run.

An entry is known by its type and its ``id``: the first of them in a handling is the first in the log, whether this
attempt wrote it or one before. So what the log holds is not shown again. Of a block the log holds what it holds to its
end; one that was cut begins again, under its own id and in its own place.
"""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from organism.model.events import Content
from organism.model.thread import Shown
from organism.pump.block import Block, Teller
from organism.pump.unit import Decision


class Call(Protocol):
    """A model's call under way."""

    def stop(self) -> None:
        """Cancel it."""


class Story:
    """What one attempt at a handling has shown. ``blocks`` are open; None stands for one that the log holds whole.

    ``reason`` is why the handler says that the run is over, ``calls`` are those whose answers may still come, and
    ``ahead`` counts the entries of which nobody has waited to be on disk.
    """

    __slots__ = ("_run", "_used", "ahead", "blocks", "calls", "reason")

    def __init__(self, run: Teller) -> None:
        self._run = run
        self._used: Counter[str] = Counter()
        self.blocks: dict[tuple[str, str], Block | None] = {}
        self.calls: dict[Call, None] = {}
        self.reason = ""
        self.ahead = 0

    def is_told(self, name: str) -> bool:
        """Whether the log holds this entry; it counts as told from here on."""
        shown: Shown | None = self._run.message.shown
        self._used[name] += 1
        return shown is not None and self._used[name] <= shown.counts.get(name, 0)

    def is_whole(self, kind: str, block_id: str) -> bool:
        """Whether the log holds the next block of this name to its end."""
        shown: Shown | None = self._run.message.shown
        name = f"{kind}_end {block_id}"
        return shown is not None and self._used[name] < shown.counts.get(name, 0)

    def passed(self, kind: str, block_id: str) -> None:
        """A block that the log holds, or will hold with this decision, is over."""
        self.blocks.pop((kind, block_id), None)
        self._used[f"{kind}_end {block_id}"] += 1

    def begin(self, kind: str, block_id: str, decision: Decision, content: Content | None = None) -> Block:
        """A block begins with the decision."""
        block = self.blocks[kind, block_id] = Block(self._run, kind, block_id)
        block.begin(decision, content)
        return block

    def end(self, block: Block, decision: Decision, content: Content | None = None) -> None:
        """A block ends with the decision."""
        block.end(decision, content)
        self.passed(block.kind, block.id)

    def cut(self, decision: Decision) -> None:
        """The attempt is over: what was gathered is written."""
        for block in self.blocks.values():
            if block is not None:
                block.cut(decision)

    def drop(self) -> None:
        """The attempt is over: nobody hears more of it."""
        for call in tuple(self.calls):
            call.stop()
        for block in self.blocks.values():
            if block is not None:
                block.drop()
