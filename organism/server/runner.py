"""Serving: the socket, uvicorn around the application, and the graceful stop (G13).

On a signal the organism stops first, while the server still answers; then the sockets close with 1012. The process
ends whatever a handler does.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeVar

import orjson
import uvicorn
import uvloop

from organism.bootstrap import Organism
from organism.model.ids import DEFAULT_TENANT
from organism.server.app import application
from organism.server.http.auth import Tokens, operator_token, replace_private, server_key
from organism.server.http.call import Process
from organism.server.http.connections import Timeouts
from organism.server.http.live_tokens import LiveTokens
from organism.server.http.protocols import ServerConfig

GRACE_SECONDS: Final = 10.0
SHUTDOWN_SECONDS: Final = 5
STOP_SECONDS: Final = GRACE_SECONDS + SHUTDOWN_SECONDS + 2
"""The longest that a stop may take."""
LAST_SECONDS: Final = 1.0
"""How long the process may outlive the organism."""
MAX_FRAME_BYTES: Final = 256 * 1024
USER_TIMEOUT_MS: Final = 8_000
BACKLOG: Final = 2048
HANDLED_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
NOTICE_FILE: Final = "server.json"
COLLECT_AFTER_OBJECTS: Final = 10_000
SWITCH_SECONDS: Final = 0.0002

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Where to listen, which further names are served, whose pages are let in, and how long clients may take."""

    host: str = "127.0.0.1"
    port: int = 8080
    tls_cert: Path | None = None
    tls_key: Path | None = None
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    timeouts: Timeouts = field(default_factory=Timeouts)

    @property
    def scheme(self) -> str:
        """``http``, or ``https`` with a certificate."""
        return "https" if self.tls_cert else "http"


def listen(settings: ServerSettings) -> socket.socket:
    """The listening socket, whose connections time out (S15). Raises ``OSError`` if the address cannot be taken."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # named: else asyncio leaves Nagle on
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, USER_TIMEOUT_MS)
        listening.bind((settings.host, settings.port))
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    listening.setblocking(False)  # noqa: FBT003 - the socket's own signature
    return listening


def url_of(settings: ServerSettings, listening: socket.socket) -> str:
    """The address as a browser takes it, with the real port."""
    host, port = listening.getsockname()[:2]
    if ip_address(host).is_unspecified:
        host = "localhost"
    shown = f"[{host}]" if ":" in host else host
    return f"{settings.scheme}://{shown}:{port}"


class GracefulServer(uvicorn.Server):
    """uvicorn, which leaves signals to the application and says when it answers."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], on_signal: Callable[[int], None]) -> None:
        super().__init__(config)
        self._ready = ready
        self._on_signal = on_signal

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """A signal came. It is not noted, else uvicorn would raise it again at its end."""
        self._on_signal(sig)


@dataclass(frozen=True, slots=True)
class Secrets:
    """What the data directory keeps for the server."""

    tokens: Tokens
    key: bytes


def secrets_of(data: Path, environment: Mapping[str, str], running: Organism) -> Secrets:
    """The server's key and tokens, made at the first start. Tokens live by the log's time (G14)."""
    key = server_key(data)
    clock = running.tenants[DEFAULT_TENANT].clock
    return Secrets(Tokens(operator_token(data, environment), key, lambda: clock.now_us() / 1e6), key)


def exit_within(seconds: float) -> None:
    """End the process with 0 by then, unless it has ended by itself. What was accepted is on disk."""

    def end() -> None:
        time.sleep(seconds)
        os._exit(0)

    threading.Thread(target=end, name="exit", daemon=True).start()


class Serving:
    """A started organism behind a listening socket. ``end_within`` gets the seconds that the process has left."""

    def __init__(
        self,
        running: Organism,
        settings: ServerSettings,
        listening: socket.socket,
        secrets: Secrets,
        end_within: Callable[[float], None] = lambda _: None,
    ) -> None:
        self.url = url_of(settings, listening)
        self._organism = running
        self._listening = listening
        self._loop = asyncio.get_running_loop()
        running.parts.redactor.add(secrets.key.hex())
        running.parts.redactor.is_live = secrets.tokens.is_live
        self.process = Process(running, secrets.tokens, secrets.key, settings.timeouts)
        self._watching_tokens = LiveTokens(running, secrets.tokens, self.process.connections.review).begin()
        self.app = application(self.process, (settings.host, *settings.allowed_hosts), settings.allowed_origins)
        self._end_within = end_within
        self._was_signalled = False
        self._config = ServerConfig(
            self.app,
            settings.timeouts,
            ws_max_size=MAX_FRAME_BYTES,
            ws_per_message_deflate=False,
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="warning",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=SHUTDOWN_SECONDS,
            ssl_certfile=settings.tls_cert,
            ssl_keyfile=settings.tls_key,
        )

    async def run(self, ready: Callable[[], None] = lambda: None) -> None:
        """Serve until a signal or ``POST /organism/stop``; ``ready`` is called once requests are answered."""
        server = GracefulServer(self._config, ready, self._signalled)
        serving = asyncio.ensure_future(server.serve([self._listening]))
        try:
            await asyncio.wait({serving, self.process.stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.process.request_stop()
            self._end_within(STOP_SECONDS)
            await self._organism.stop(GRACE_SECONDS)
            server.should_exit = True
            await serving
            self._end_within(LAST_SECONDS)

    def stop(self) -> None:
        self.process.request_stop()

    def _signalled(self, sig: int) -> None:
        """The first signal begins the graceful stop. A second one ends it at once: what was accepted is on disk."""
        if self._was_signalled or self.process.stopping.done():
            os._exit(128 + sig)
        self._was_signalled = True
        self._end_within(STOP_SECONDS)  # a handler may block the loop, which then never hears of the stop
        self._loop.call_soon_threadsafe(self.process.request_stop)


def leave_to_this_process(listening: socket.socket) -> None:
    """Have no forked child go on with the socket or its connections, nor with this process's signals and event loop.

    A child that outlives the server would keep the port. For a process that serves one organism: this cannot be undone,
    and a program that forks without Python knowing of it is not reached.
    """
    loop, port = asyncio.get_running_loop(), listening.getsockname()[1]

    def in_child() -> None:
        signal.set_wakeup_fd(-1)  # it leads to the server's loop
        for number in HANDLED_SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.SIG_DFL)
        unmask()
        nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        for handle in [int(each.name) for each in Path("/dev/fd").iterdir()]:
            if _is_of_port(handle, port):
                os.dup2(nothing, handle, inheritable=False)  # not closed: whatever else got its number would be closed
        os.close(nothing)
        loop.call_soon(os._exit, 1)  # a child that comes back from the handler would be a second server

    mask = partial(signal.pthread_sigmask, signal.SIG_BLOCK, HANDLED_SIGNALS)  # until the child has its own handlers
    unmask = partial(signal.pthread_sigmask, signal.SIG_UNBLOCK, HANDLED_SIGNALS)
    os.register_at_fork(before=mask, after_in_parent=unmask, after_in_child=in_child)


def _is_of_port(handle: int, port: int) -> bool:
    """Whether it is the listening socket of a TCP port, or a connection that came in by it."""
    try:
        its = socket.socket(fileno=handle)
    except OSError:
        return False
    try:
        return its.family in {socket.AF_INET, socket.AF_INET6} and its.getsockname()[1] == port
    finally:
        its.detach()


def hangups() -> asyncio.Event:
    """What each SIGHUP sets from now on, unless the process was told to ignore it, as ``nohup`` does."""
    hangup = asyncio.Event()
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, hangup.set)
    return hangup


def run(main: Coroutine[Any, Any, Result]) -> Result:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main)


def tune_interpreter() -> None:
    """Collect cycles rarely, since hops leave none; switch threads soon, so that the log's writer gets the lock.

    For a process that serves one organism, once it has started: what is there then stays to its end.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER_OBJECTS, 50, 100)


@contextlib.contextmanager
def announced(data: Path, url: str, certificate: str | None = None) -> Iterator[None]:
    """Meanwhile the data directory tells the command line the address, the process and the certificate (PEM)."""
    notice, written = data / NOTICE_FILE, orjson.dumps({"url": url, "pid": os.getpid(), "certificate": certificate})
    replace_private(notice, written)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            if notice.read_bytes() == written:  # else that of a newer server
                notice.unlink()
