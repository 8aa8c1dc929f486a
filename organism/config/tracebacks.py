"""The lines of handlers' own code that an exception, a coroutine or a frame is in, the innermost first; no values.

Lines of libraries and of the organism are left out, unless there are no others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from inspect import unwrap
from types import CodeType, FrameType
from typing import Any, Final

from organism.config.foreign_code import attempt, readable
from organism.config.modules import ModuleSet
from organism.events import vocabulary as events

MOST_LINES: Final = 20
MOST_CODE: Final = 200
"""Characters of a line that are shown."""
Place = tuple[FrameType, int]
"""A frame, and the number of its line."""


def lines_of_error(error: BaseException, modules: ModuleSet) -> tuple[events.CodeLine, ...]:
    """Where it was raised; for an exception group, where its first one was."""
    return attempt(lambda: _own(_raised(error), modules)).result or ()


def lines_of_coroutine(coroutine: Any, modules: ModuleSet) -> tuple[events.CodeLine, ...]:
    """Where the coroutine waits."""
    return attempt(lambda: _own([*_waiting(coroutine)][::-1], modules)).result or ()


def lines_of_frame(frame: FrameType | None, modules: ModuleSet | None) -> tuple[events.CodeLine, ...]:
    """Where the frame's thread is."""
    return _own(_stack(frame), modules)


def lines_of_function(function: Any, modules: ModuleSet) -> tuple[events.CodeLine, ...]:
    """Where a handler's own code begins; empty if its code is not in the organism's modules."""
    code = getattr(unwrap(function) if callable(function) else None, "__code__", None)
    module = str(getattr(function, "__module__", ""))
    return (_line(module, code, code.co_firstlineno, modules),) if code and modules.sources.owns(module) else ()


def text_of(lines: Iterable[events.CodeLine]) -> str:
    """The lines for people: each place, and below it its code."""
    return "\n".join(f"{each.file}:{each.line} in {each.function}\n    {each.code}".rstrip() for each in lines)


def _raised(error: BaseException) -> list[Place]:
    trace, places = error.__traceback__, list[Place]()
    while trace is not None:
        places.append((trace.tb_frame, trace.tb_lineno))
        trace = trace.tb_next
    inner = _raised(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else []
    return inner + places[::-1]


def _waiting(coroutine: Any) -> Iterator[Place]:
    while (frame := getattr(coroutine, "cr_frame", None)) is not None:
        yield frame, frame.f_lineno
        coroutine = coroutine.cr_await


def _stack(frame: FrameType | None) -> Iterator[Place]:
    while frame is not None:
        yield frame, frame.f_lineno
        frame = frame.f_back


def _own(places: Iterable[Place], modules: ModuleSet | None) -> tuple[events.CodeLine, ...]:
    every = [*places]
    own = [each for each in every if modules is not None and modules.sources.owns(_module(each[0]))]
    return tuple(_line(_module(frame), frame.f_code, line, modules) for frame, line in (own or every)[:MOST_LINES])


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _line(module: str, code: CodeType, number: int, modules: ModuleSet | None) -> events.CodeLine:
    source = modules.sources.find(module) if modules is not None else None
    is_package = code.co_filename.endswith("__init__.py")
    file = module.replace(".", "/") + ("/__init__.py" if is_package else ".py")
    written = source.text.splitlines()[number - 1 : number] if source is not None else []
    text = b"".join(written).decode("utf-8", "replace").strip()[:MOST_CODE]
    return events.CodeLine(readable(file), number, readable(code.co_qualname), readable(text))
