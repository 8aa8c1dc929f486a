"""Invoke: what a handler delivers, and what a caller gets of it.

The flags of a call are resolved here and nowhere else. A batch answer is the fold of the very stream that a streaming
caller gets; there is no second way to make one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Any, Final

from organism.config.check import InvokeMode
from organism.config.settings import Listener
from organism.errors import ForceNotSupported, NotAcceptable
from organism.model.run import RunEntry
from organism.projections.run import Fold, trim_to_trailing_unit

BATCH: Final[InvokeMode] = "batch"
STREAM: Final[InvokeMode] = "stream"


@dataclass(frozen=True, slots=True)
class Flags:
    """What a caller asks for; None is what was not said."""

    stream: bool | None = None
    trim: bool | None = None
    force: bool | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """What the caller gets: entries as they come or all at once, of the whole turn or of its last unit."""

    is_stream: bool
    is_trimmed: bool


def delivers(listener: Listener) -> tuple[InvokeMode, ...]:
    """What the handler delivers: what it declares, else both for the turn loop, batches for any other.

    Who refers to a prompt by its version, as ``A2@v1``, is asked once; who refers to an agent is run by the turn loop.
    """
    if listener.invoke:
        return listener.invoke
    return (BATCH, STREAM) if is_turn(listener) else (BATCH,)


def is_turn(listener: Listener) -> bool:
    """Whether the turn loop runs the listener."""
    return listener.handler_path is None and "@" not in (listener.prompt_ref or "")


def resolved(flags: Flags, modes: tuple[InvokeMode, ...]) -> Shape:
    """What the handler makes of the flags. A caller who says nothing gets the handler's own shape.

    Raises ``NotAcceptable`` or ``ForceNotSupported`` for what it cannot deliver.
    """
    if flags.force:
        raise ForceNotSupported(param="/flags/force", requested="force", supported=modes)
    if flags.stream is None:
        return Shape(is_stream=BATCH not in modes, is_trimmed=bool(flags.trim))
    asked = STREAM if flags.stream else BATCH
    if asked not in modes:
        raise NotAcceptable(
            f"This handler delivers {' and '.join(modes)}; {asked} was asked for.",
            param="/flags/stream",
            requested=asked,
            supported=modes,
        )
    return Shape(is_stream=flags.stream, is_trimmed=bool(flags.trim))


async def outputs(first: Iterable[RunEntry], rest: AsyncIterator[RunEntry], shape: Shape) -> dict[str, Any]:
    """The batch: the fold of the stream, without what is null; trimmed if that was asked for."""
    run = Fold()
    for entry in first:
        run.add(entry)
    async for entry in rest:
        run.add(entry)
    folded = run.result()
    if shape.is_trimmed:
        folded["messages"] = trim_to_trailing_unit(folded["messages"])
    return {name: value for name, value in folded.items() if value is not None}
