"""The doctor on real directories, ports and servers, each with one real fault."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from organism.bootstrap import Parts
from organism.cli.doctor import FREE_BYTES, clock, disk, permissions, sqlite
from organism.cli.init import write_starter
from organism.testing import running
from tests.cli.command import Ran, organism
from tests.e2e.serving import Process, serving
from tests.server.served import HELLO


@pytest.fixture
async def data(tmp_path: Path) -> Path:
    """A data directory that is well: a server ran there and was stopped."""
    async with running(HELLO, tmp_path / "data") as o:
        await o.inject("greeter", {"name": "Dan"}, wait=True)
    (tmp_path / "data").chmod(0o700)
    return tmp_path / "data"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Process]:
    """A server in a process of its own."""
    async with serving(tmp_path / "data") as process:
        yield process


async def examined(data: Path, *more: str | Path) -> Ran:
    """What the doctor says, on a free port unless ``more`` names one."""
    return await organism("doctor", "--config", HELLO, "--data", data, "--port", "0", *more, "--json")


def faulty(ran: Ran) -> dict[str, str]:
    """The names of the checks that found a fault, with all that they said."""
    found = {check["check"]: check for check in ran.json["checks"] if not check["ok"]}
    assert ran.code == (1 if found else 0)
    assert ran.json["ok"] == (not found)
    assert all(fault["remedy"] for check in found.values() for fault in check["faults"])
    return {name: " ".join(fault["fault"] for fault in check["faults"]) for name, check in found.items()}


async def test_a_healthy_organism_has_no_fault(data: Path) -> None:
    assert faulty(await examined(data)) == {}
    said = await organism("doctor", "--config", HELLO, "--data", data, "--port", "0")
    assert (said.code, said.out.splitlines()[-1]) == (0, "All is well.")


async def test_a_missing_data_directory_is_no_fault(tmp_path: Path) -> None:
    assert faulty(await examined(tmp_path / "a" / "b")) == {}
    assert not (tmp_path / "a").exists()


async def test_each_fault_is_shown_with_its_remedy(data: Path) -> None:
    (data / "tenants" / "default" / "key").chmod(0o644)
    (data / "tenants" / "default").chmod(0o755)
    said = await organism("doctor", "--config", HELLO, "--data", data, "--port", "0")
    assert said.code == 1
    assert f"  {data}/tenants/default is open to other users (mode 0755).\n  next: chmod 700 {data}" in said.out
    assert f"  {data}/tenants/default/key is open to other users (mode 0644).\n  next: chmod 600 {data}" in said.out
    assert said.out.splitlines()[-1] == "2 faults."


CLASHING = """
from dataclasses import dataclass

@dataclass
class Greeting:
    other: int

async def take(payload: Greeting, metadata: object): ...
"""


async def test_every_fault_of_the_configuration_is_reported(data: Path, tmp_path: Path) -> None:
    write_starter(tmp_path)
    (tmp_path / "handlers/clashing.py").write_text(CLASHING)  # the starter has a Greeting of its own
    config = tmp_path / "organism.yaml"
    first = config.read_text().count("\n") + 1
    clashing = "{name: a, description: x, payload_class: handlers.clashing.Greeting, handler: handlers.clashing.take}"
    config.write_text(f"{config.read_text()}  - {clashing}\n  - {{name: b, description: x, peers: [nobody]}}\n")
    said = faulty(await examined(data, "--config", config))
    assert list(said) == ["config"]
    assert f"organism.yaml:{first}:listeners[" in said["config"]
    assert "`handlers.hello.Greeting` has the same name and another schema; rename one" in said["config"]
    assert f"organism.yaml:{first + 1}:" in said["config"]
    assert "there is no listener `nobody`" in said["config"]


async def test_what_keeps_sessions_from_being_compacted_is_reported(data: Path, tmp_path: Path) -> None:
    write_starter(tmp_path)
    config, tokens = tmp_path / "organism.yaml", tmp_path / "config" / "tokens.yaml"
    assert faulty(await examined(data, "--config", config)) == {}
    listener = "{name: summarizer, description: x, model: offline}"
    config.write_text(f"{config.read_text()}  - {listener}\n")
    tokens.parent.mkdir()
    tokens.write_text("tenants: [{id: acme, defaults: {compact_summary_model: gone}}]\n")
    said = faulty(await examined(data, "--config", config))
    assert list(said) == ["sessions"]
    assert "`compact_summary_model` is 'gone'" in said["sessions"]
    assert "`summarizer` cannot be asked for summaries" in said["sessions"]


async def test_bundled_agents_are_known_unless_the_organism_has_its_own(data: Path, tmp_path: Path) -> None:
    config = tmp_path / "organism.yaml"
    config.write_text("organism: {name: desk}\nlisteners: [{name: a, description: b, prompt_ref: researcher}]\n")
    assert faulty(await organism("doctor", "--config", config, "--data", data, "--port", "0", "--json")) == {}
    (tmp_path / "config" / "agents").mkdir(parents=True)
    faults = faulty(await organism("doctor", "--config", config, "--data", data, "--port", "0", "--json"))
    assert "there is no agent `researcher`" in faults["config"]


async def test_mcp_servers_are_not_asked(data: Path, tmp_path: Path) -> None:
    config = tmp_path / "organism.yaml"
    config.write_text(
        "organism: {name: x}\ntools: {mcp: {files: {command: [/no/such/program]}}}\n"
        "listeners: [{name: a, description: A, model: offline, tools: [files__read, calculator]}]\n"
    )
    assert faulty(await examined(data, "--config", config)) == {}


async def test_handlers_that_print_do_not_spoil_the_json(data: Path, tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text("print('loud')\n")
    (tmp_path / "organism.yaml").write_text("organism: {name: x, imports: [loud]}\nlisteners: []\n")
    ran = await examined(data, "--config", tmp_path / "organism.yaml")
    assert ran.json["checks"]


async def test_a_faulty_tokens_file_is_reported(data: Path, tmp_path: Path) -> None:
    write_starter(tmp_path)
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "tokens.yaml").write_text("tenants: [{idd: x}]\n")
    said = faulty(await examined(data, "--config", tmp_path / "organism.yaml"))
    assert "tokens.yaml:1" in said["tokens"]
    (tmp_path / "config" / "tokens.yaml").write_text("tenants: []\n")
    (tmp_path / "config" / "tokens.yaml").chmod(0o666)
    said = faulty(await examined(data, "--config", tmp_path / "organism.yaml"))
    assert f"chmod o-w {tmp_path}/config/tokens.yaml" in said["tokens"]


async def test_a_file_in_place_of_the_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    assert "is a file" in faulty(await examined(tmp_path / "data"))["data"]


async def test_a_full_disk_that_cannot_be_written_is_reported() -> None:
    said = faulty(await examined(Path("/proc/nowhere")))
    assert "cannot be written" in said["data"]
    assert "0 MB are free" in said["disk"]


async def test_a_missing_key_is_reported_and_one_elsewhere_is_found(data: Path, tmp_path: Path) -> None:
    key = tmp_path / "elsewhere"
    (data / "tenants" / "default" / "key").rename(key)
    assert "key of the audit chain" in faulty(await examined(data))["log"]
    assert faulty(await examined(data, "--key", key)) == {}
    key.chmod(0o644)
    assert list(faulty(await examined(data, "--key", key))) == ["permissions"]


async def test_an_unreadable_log_is_reported(data: Path) -> None:
    log = data / "tenants" / "default" / "log.sqlite"
    log.write_bytes(b"no database" * 1000)
    assert "cannot be read" in faulty(await examined(data))["log"]


async def test_a_clock_behind_the_log_is_reported(tmp_path: Path) -> None:
    ahead = Parts(wall_ns=lambda: 4_000_000_000_000_000_000)
    async with running(HELLO, tmp_path / "data", ahead):
        pass
    (tmp_path / "data").chmod(0o700)
    assert "behind the last event" in faulty(await examined(tmp_path / "data"))["clock"]


async def test_a_taken_port_is_reported(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = faulty(await examined(data, "--port", str(taken.getsockname()[1])))
    assert "is taken by another program" in said["port"]
    assert "cannot be listened on" in faulty(await examined(data, "--host", "192.0.2.1"))["port"]


async def test_a_running_server_is_named_and_its_port_is_no_fault(server: Process) -> None:
    port = server.url.rsplit(":", 1)[1]
    ran = await examined(server.data, "--port", port)
    assert faulty(ran) == {}
    said = next(check["summary"] for check in ran.json["checks"] if check["check"] == "server")
    assert said.startswith(f"process {server.process.pid} since ")
    assert server.url in said


async def test_a_summary_model_that_was_written_and_is_gone_since_is_reported(tmp_path: Path) -> None:
    config, models = tmp_path / "organism.yaml", "models: {own: {provider: offline}, small: {provider: offline}}\n"
    head = "organism: {name: desk}\nlisteners: [{name: a, description: b, model: own}]\n"
    config.write_text(head + models)
    async with serving(tmp_path / "data", config=config) as process, process.client() as client:
        address = f"{process.url}/v1/tenant/config"
        assert (await client.put(address, json={"compact_summary_model": "small"})).status_code == 200
        config.write_text(head + models.replace(", small: {provider: offline}", ""))
        assert (await client.post("/organism/reload")).status_code == 200
        said = faulty(await examined(process.data, "--config", config))
    assert said == {"server": "`compact_summary_model` is 'small' (db): there is no such model any more."}


async def test_a_hanging_server_is_reported(server: Process) -> None:
    os.kill(server.process.pid, signal.SIGSTOP)
    said = faulty(await examined(server.data))["server"]
    assert f"process {server.process.pid}" in said
    assert "takes no work" in said


async def test_a_killed_server_does_no_harm(server: Process) -> None:
    await server.end(signal.SIGKILL)
    ran = await examined(server.data)
    assert faulty(ran) == {}
    assert "the last one was killed" in str(ran.json)


NOW_US = 1_800_000_000_000_000
SAID = {
    "SQLite 3.51.2 can damage a log.": sqlite("3.51.2"),
    "Only 12 MB are free on the disk of data: a full disk stops all writing.": disk(12_000_000, Path("data")),
    "The clock says 1970-01-01 00:00:01 UTC: it was never set.": clock(1_000_000, 0),
}


@pytest.mark.parametrize("said", SAID)
def test_faults_that_this_machine_lacks_are_reported_with_a_remedy(said: str) -> None:
    assert " ".join(fault.fault for fault in SAID[said].faults) == said
    assert all(fault.remedy for fault in SAID[said].faults)


def test_values_at_the_limit_are_no_fault(tmp_path: Path) -> None:
    ahead = clock(NOW_US, NOW_US + 500_000)  # a very recent event
    enough = (sqlite("3.51.3"), sqlite("3.52"), disk(FREE_BYTES, tmp_path), ahead)
    assert [finding.faults for finding in enough if finding.faults] == []


def test_files_of_another_user_are_a_fault_except_for_root(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    owner = tmp_path.stat().st_uid
    said = [fault.fault for fault in permissions([tmp_path], owner + 8).faults]
    assert said == [f"{tmp_path} belongs to user {owner}, not to you ({owner + 8})."]
    assert (permissions([tmp_path], owner).faults, permissions([tmp_path], 0).faults) == ([], [])
