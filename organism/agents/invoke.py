"""Invoke: what a handler delivers and what a caller gets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from organism.config.check import InvokeMode
from organism.config.settings import Listener
from organism.errors import ForceNotSupported, NotAcceptable

BATCH: Final[InvokeMode] = "batch"
STREAM: Final[InvokeMode] = "stream"
FORCE: Final[InvokeMode] = "force"
"""It can take over: a forced turn ends that which runs in its session."""


@dataclass(frozen=True, slots=True)
class Flags:
    """What a caller asks for; None means not given."""

    stream: bool | None = None
    trim: bool | None = None
    force: bool | None = None


@dataclass(frozen=True, slots=True)
class Shape:
    """What the caller gets: a stream or a batch, of the whole turn or of its last unit."""

    is_stream: bool
    is_trimmed: bool


def delivers(listener: Listener) -> tuple[InvokeMode, ...]:
    """The modes that it declares; else batch, and for the turn loop all of them."""
    if listener.invoke:
        return listener.invoke if listener.invoke != (FORCE,) else (BATCH, FORCE)
    return (BATCH, STREAM, FORCE) if is_turn(listener) else (BATCH,)


def is_turn(listener: Listener) -> bool:
    """Whether the turn loop runs the listener."""
    return listener.handler_path is None and "@" not in (listener.prompt_ref or "")


def resolved(flags: Flags, modes: tuple[InvokeMode, ...]) -> Shape:
    """The shape that the flags ask for, by default the handler's. Raises ``NotAcceptable`` or ``ForceNotSupported``."""
    if flags.force and FORCE not in modes:
        raise ForceNotSupported(param="/flags/force", requested="force", supported=modes)
    if flags.stream is None:
        return Shape(is_stream=BATCH not in modes, is_trimmed=bool(flags.trim))
    requested = STREAM if flags.stream else BATCH
    if requested not in modes:
        raise NotAcceptable(
            f"This handler delivers {' and '.join(modes)}; {requested} was asked for.",
            param="/flags/stream",
            requested=requested,
            supported=modes,
        )
    return Shape(is_stream=flags.stream, is_trimmed=bool(flags.trim))
