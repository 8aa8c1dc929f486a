"""A nursery of servers: it has imported everything once, and forks a fresh process for each life.

Importing takes most of a start; a kill loop that paid for it each time would be longer and no more telling. The child
is a process of its own that runs the command's ``main`` from its first line, with nothing open but its output. The
nursery speaks lines of JSON: ``{"argv", "env", "output"}`` in, ``{"pid"}`` out, and ``{"pid", "status"}`` for a death.
"""

from __future__ import annotations

import gc
import os
import selectors
import signal
import sys
from typing import Any, NoReturn

import orjson
import uvicorn.lifespan.off
import uvicorn.protocols.http.httptools_impl  # noqa: F401 - as above

import organism.cli.serve  # noqa: F401 - as above
from organism.cli.app import main
from tests.faults import points

MOST_FILES = 256


def serve() -> None:
    """Fork and tell until the input ends; then nobody is left who could use the living."""
    gc.collect()
    gc.freeze()
    living: set[int] = set()
    with selectors.DefaultSelector() as selector:
        selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        while _turn(selector, living):
            pass
    for pid in living:
        os.kill(pid, signal.SIGKILL)


def _turn(selector: selectors.BaseSelector, living: set[int]) -> bool:
    """Deaths are told, a wish is fulfilled. False once the input has ended."""
    for key, _ in selector.select():
        if key.data is not None:
            selector.unregister(key.fd)
            os.close(key.fd)
            living.discard(key.data)
            _tell({"pid": key.data, "status": os.waitstatus_to_exitcode(os.waitpid(key.data, 0)[1])})
            continue
        line = sys.stdin.buffer.readline()
        if not line:
            return False
        wanted = orjson.loads(line)
        output = os.open(wanted["output"], os.O_WRONLY)  # open before it lives: its end is the end of its output
        pid = os.fork()
        if pid == 0:
            selector.close()
            _live(wanted, output)
        os.close(output)
        living.add(pid)
        selector.register(os.pidfd_open(pid), selectors.EVENT_READ, pid)
        _tell({"pid": pid})
    return True


def _tell(said: dict[str, Any]) -> None:
    sys.stdout.buffer.write(orjson.dumps(said) + b"\n")
    sys.stdout.buffer.flush()


def _live(wanted: dict[str, Any], output: int) -> NoReturn:
    """Become what the command would be: its arguments, environment and output, and no other open file."""
    for stream in (0, 1, 2):
        os.dup2(output, stream)
    os.closerange(3, MOST_FILES)
    os.environ.clear()
    os.environ.update(wanted["env"])
    sys.argv = ["organism", *wanted["argv"]]
    status: object = None
    try:
        points.install(os.environ.get(points.KILL_AT, ""))
        main()
    except SystemExit as ended:
        status = ended.code
    finally:
        if (error := sys.exc_info()[1]) is not None:
            status = 1
            sys.excepthook(type(error), error, error.__traceback__)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status if isinstance(status, int) else int(status is not None))


if __name__ == "__main__":
    serve()
