"""Traces a few requests through a real server in this process: which files of organism/ and handlers/ each one enters.

A *return* is a pair of files (A, B): A called into B while a function of B, further up, waited for A.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import httpx2
import structlog

from tests.server.served import Served, served

HERE: Final = Path(__file__).parents[1]
ROOMS: Final = tuple(f"{HERE / room}/" for room in ("organism", "handlers"))
A1: Final = "//a1/agents/concise-de/sessions"
INDICES: Final = "//a1/rag/indices"
USER: Final = {"SPASS-User-Id": "ann"}


class Trace:
    """What ran while it was on."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        self.returns: set[tuple[str, str]] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """See ``sys.setprofile``."""
        if event != "call" or not (entered := frame.f_code.co_filename).startswith(ROOMS):
            return
        self.files.setdefault(entered)
        caller, above = None, frame.f_back
        while above is not None:
            file = above.f_code.co_filename
            if file.startswith(ROOMS):
                if caller is None and file == entered:
                    return
                if caller is not None and file == entered:
                    self.returns.add((caller, entered))
                    return
                caller = caller or file
            above = above.f_back


@contextmanager
def traced() -> Any:
    """A trace of all threads, as far as they begin to work meanwhile."""
    trace = Trace()
    threading.setprofile(trace)
    sys.setprofile(trace)
    try:
        yield trace
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


async def done(answering: Awaitable[httpx2.Response]) -> Any:
    """The JSON of an answer that must be a success."""
    answer = await answering
    if not answer.is_success:
        raise SystemExit(f"{answer.url.path} answered {answer.status_code}: {answer.text}")
    return answer.json()


async def session(server: Served) -> Callable[[], Awaitable[Any]]:
    """A message to a session, and its answer."""
    begun = await done(server.call("POST", A1, headers=USER))

    async def say() -> Any:
        return await done(
            server.call("POST", f"{A1}/{begun['id']}/messages", headers=USER, json={"message": "What is 6 * 7?"})
        )

    return say


async def injection(server: Served) -> Callable[[], Awaitable[Any]]:
    """A message to a handler, and the end of its thread."""
    return server.inject


async def threads(server: Served) -> Callable[[], Awaitable[Any]]:
    """A page of threads."""
    await server.inject()
    return lambda: server.get("/threads")


async def search(server: Served) -> Callable[[], Awaitable[Any]]:
    """A question to the library."""
    document = {"id": "d1", "text": "The largest park of the city."}
    await done(server.call("POST", f"{INDICES}/parks/documents", headers=USER, json={"documents": [document]}))
    return lambda: done(server.call("POST", f"{INDICES}/parks/query", headers=USER, json={"query": "park"}))


TRIPS: Final[Mapping[str, Callable[[Served], Awaitable[Callable[[], Awaitable[Any]]]]]] = {
    "session": session,
    "inject": injection,
    "threads": threads,
    "search": search,
}


async def main() -> None:
    """Trace each trip once it is warm, and print what was seen."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--files", choices=TRIPS, action="append", default=[], metavar="NAME")
    shown = options.parse_args().files
    print(f"{'trip':<10}{'files':>7}{'returns':>9}")
    for name, prepare in TRIPS.items():
        async with served() as server:
            act = await prepare(server)
            await act()
            with traced() as trace:
                await act()
        print(f"{name:<10}{len(trace.files):>7}{len(trace.returns):>9}   {prepare.__doc__}")
        if name in shown:
            print(*(f"    {Path(file).relative_to(HERE)}" for file in trace.files), sep="\n")


if __name__ == "__main__":
    asyncio.run(main())
