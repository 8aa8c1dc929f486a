"""A new user's way with the real command: a first organism, its server, and what it shows."""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from organism.cli.init import write_starter
from tests.cli.command import environment, in_a_process, organism, start_process
from tests.e2e.serving import Process, serving

pytestmark = pytest.mark.e2e

LONGEST_LINE = 1 << 22


@pytest.fixture
def first(tmp_path: Path) -> Path:
    """The configuration of a first organism."""
    write_starter(tmp_path)
    return tmp_path / "organism.yaml"


async def test_what_init_wrote_is_served_from_its_own_folder(tmp_path: Path) -> None:
    assert (await organism("init", tmp_path / "mine")).code == 0
    process = await start_process("serve", "--port", "0", cwd=tmp_path / "mine", env=environment())
    server = Process(process, tmp_path / "mine" / "data")
    try:
        await server.until_said("Try ")
        ran = await organism("inject", "greeter", '{"name":"Dan"}', "--wait", "20", "--data", server.data)
        assert 'greeter → console Said {"text":"HELLO, DAN!"}' in ran.out
        assert await server.end() == 0
    finally:
        await server.end(signal.SIGKILL)


async def test_the_printed_line_fits_the_organism_that_is_served(tmp_path: Path) -> None:
    write_starter(tmp_path)
    config = tmp_path / "organism.yaml"
    config.write_text(config.read_text().replace("greeter", "porter"))
    async with serving(tmp_path / "data", config=config) as server:
        assert """-d '{"to":"porter","payload":{"name":"text"}}'""" in server.said


async def test_a_refused_start_names_the_next_step(tmp_path: Path, first: Path) -> None:
    (tmp_path / "file").write_text("")
    faulty = tmp_path / "faulty" / "organism.yaml"
    faulty.parent.mkdir()
    faulty.write_text("organism: {nam: x}\nlisteners: [{name: 1}]\n")
    taken = tmp_path / "key"
    taken.write_text("of another log")
    here = ("serve", "--config", first, "--port", "0", "--data", tmp_path / "data")
    for words in (
        ("serve", "--config", tmp_path / "none.yaml", "--port", "0", "--data", tmp_path / "data"),
        ("serve", "--config", faulty, "--port", "0", "--data", tmp_path / "data"),
        (*here, "--host", "0.0.0.0"),  # noqa: S104 - refused, which is the point
        ("serve", "--config", first, "--port", "0", "--data", tmp_path / "file"),
        ("serve", "--config", first, "--port", "0", "--data", tmp_path / "file" / "below"),
        (*here, "--host", "no.such.host.invalid"),
        (*here, "--tls-cert", first, "--tls-key", first),
        (*here, "--key", taken),
        (*here, "--key", tmp_path / "none" / "key"),
    ):
        ran = await in_a_process(*words)
        assert (ran.code, ran.out) == (1, ""), words
        assert "Traceback" not in ran.err, words
        assert "next: " in ran.err, words
        assert faulty not in words or ("organism.yaml:1" in ran.err and "organism.yaml:2" in ran.err)
    assert taken.read_text() == "of another log"


async def test_the_key_of_the_chain_may_lie_elsewhere(tmp_path: Path, first: Path) -> None:
    key = tmp_path / "safe.key"
    async with serving(tmp_path / "data", "--port", "0", "--key", str(key), config=first) as server:
        await server.end()
    assert key.stat().st_mode & 0o777 == 0o600
    assert not (tmp_path / "data" / "tenants" / "default" / "key").exists()
    place = ("--data", tmp_path / "data")
    assert (await organism("log", "verify", *place)).code == 1
    assert (await organism("log", "verify", *place, "--key", key)).code == 0
    assert (await organism("log", "verify", *place, ORGANISM_KEY_FILE=str(key))).code == 0
    async with serving(tmp_path / "data", config=first, ORGANISM_KEY_FILE=str(key)) as server:
        assert await server.end() == 0


@pytest.fixture
async def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for another name than that of this machine, and its key."""
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("there is no openssl to make a certificate with")
    made = (tmp_path / "cert.pem", tmp_path / "key.pem")
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=organism.example.org"
    process = await asyncio.create_subprocess_exec(
        program, *words.split(), "-keyout", str(made[1]), "-out", str(made[0]), stderr=asyncio.subprocess.DEVNULL
    )
    assert await process.wait() == 0
    return made


async def test_the_local_server_with_tls_is_found_and_trusted_without_its_name(
    tmp_path: Path, first: Path, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
    both = tmp_path / "both.pem"
    both.write_text(key.read_text() + cert.read_text())
    words = ("--port", "0", "--tls-cert", str(both), "--tls-key", str(key))
    async with serving(tmp_path / "data", *words, config=first) as server:
        assert server.url.startswith("https://")
        assert "PRIVATE" not in (server.data / "server.json").read_text()
        assert (await organism("agents", "--data", server.data)).code == 0
        async with watching("--data", server.data, "--since", "0") as tail:
            await tail.until("caught_up")
        by_address = await organism(
            "agents", "--data", server.data, "--url", server.url.replace("127.0.0.1", "localhost")
        )
        assert by_address.code == 3, "only the address of the notice is trusted by it"
        assert "certificate" in by_address.err


async def test_only_the_certificate_in_the_notice_is_trusted(
    tmp_path: Path, first: Path, certificate: tuple[Path, Path]
) -> None:
    cert, key = certificate
    async with serving(
        tmp_path / "data", "--port", "0", "--tls-cert", str(cert), "--tls-key", str(key), config=first
    ) as s:
        notice = orjson.loads((s.data / "server.json").read_bytes())
        (s.data / "server.json").write_bytes(orjson.dumps({**notice, "certificate": None}))
        assert (await organism("agents", "--data", s.data)).code == 3


class Tail:
    """A running ``organism tail --json``."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.frames: list[dict[str, Any]] = []

    async def until(self, event: str, count: int = 1) -> None:
        """Read frames until so many of this event have come in all."""
        stdout = self.process.stdout
        assert stdout is not None
        while len([frame for frame in self.frames if frame["event"] == event]) < count:
            line = await asyncio.wait_for(stdout.readline(), 30)
            assert line, self.frames
            self.frames.append(orjson.loads(line))


@asynccontextmanager
async def watching(*words: str | Path) -> AsyncIterator[Tail]:
    """Watch as long as it lasts; the end is that of Ctrl-C."""
    process = await start_process("tail", *words, "--json", limit=LONGEST_LINE)
    try:
        yield Tail(process)
    finally:
        process.send_signal(signal.SIGINT)
        await process.communicate()
    assert process.returncode == 0


async def test_tail_resumes_by_position_after_a_kill_and_a_start_on_another_port(tmp_path: Path, first: Path) -> None:
    async with serving(tmp_path / "data", config=first) as server, watching("--data", server.data) as tail:
        await tail.until("connected")
        await organism("inject", "greeter", '{"name":"One"}', "--wait", "20", "--data", server.data)
        await tail.until("message", 4)
        await server.end(signal.SIGKILL)
        async with serving(tmp_path / "data", config=first) as again:
            assert again.url != server.url
            await organism("inject", "greeter", '{"name":"Two"}', "--wait", "20", "--data", again.data)
            await tail.until("message", 8)
    messages = [frame["position"] for frame in tail.frames if frame["event"] == "message"]
    assert messages == sorted(set(messages))
    assert len(messages) == 8


async def test_tail_shows_all_events_that_pass_its_filters_and_no_others(tmp_path: Path, first: Path) -> None:
    async with serving(tmp_path / "data", config=first) as server:
        await organism("inject", "greeter", '{"name":"One"}', "--wait", "20", "--data", server.data)
        words = ("--data", server.data, "--since", "0", "--agent", "shouter", "--event", "message")
        async with watching(*words) as tail:
            await tail.until("caught_up")
            await organism("inject", "greeter", '{"name":"Two"}', "--wait", "20", "--data", server.data)
            await tail.until("message", 4)
    messages = [frame["message"] for frame in tail.frames if frame["event"] == "message"]
    assert [(each["from"], each["to"]) for each in messages] == [("greeter", "shouter"), ("shouter", "greeter")] * 2
    assert {frame["event"] for frame in tail.frames} <= {
        "connected",
        "subscribed",
        "message",
        "caught_up",
        "checkpoint",
    }
