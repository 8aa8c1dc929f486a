"""``organism token``: made, shown once, listed and revoked without a server, and obeyed by one that runs."""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from organism.config.tokens import read_tokens
from organism.model.principal import Principal
from tests.cli.command import Ran, organism
from tests.server.served import HELLO, served
from tests.server.test_live_tokens import open_socket


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The hello organism's configuration, without a file of tokens."""
    path = tmp_path / "organism.yaml"
    path.write_bytes(HELLO.read_bytes())
    shutil.copytree(HELLO.parent / "config/agents", tmp_path / "config/agents")
    return path


async def token(config: Path, *arguments: str) -> Ran:
    return await organism("token", *arguments, "--config", config)


def entries(config: Path) -> list[Principal]:
    return [who for tenant in read_tokens(config.parent / "config" / "tokens.yaml") for who in tenant.tokens]


async def test_a_token_is_32_random_bytes_with_a_readable_prefix_shown_once_and_stored_as_its_digest(
    config: Path,
) -> None:
    made = await token(config, "create", "ci", "--scope", "read", "--scope", "inject:agent:greeter")
    assert made.code == 0
    text = made.out.strip()
    assert re.fullmatch(r"org_ci_[0-9a-f]{64}", text)
    [who] = entries(config)
    assert who.credential == hashlib.sha256(text.encode()).digest()
    assert who.grants == {"read", "inject:agent:greeter"}
    assert text not in (config.parent / "config" / "tokens.yaml").read_text()
    again = await token(config, "create", "web", "--scope", "read", "--json")
    assert again.json["token"] != text


async def test_the_list_shows_what_a_token_may_do(config: Path) -> None:
    assert (await token(config, "list")).out == "no tokens but the operator's\n"
    may = ["--scope", "read", "--model", "small", "--tool", "calculator", "--tenant-admin"]
    more = [*may, "--tenant", "acme", "--expires", "90d", "--rate", "7"]
    assert (await token(config, "create", "ci", *more)).code == 0
    [shown] = (await token(config, "list", "--json")).json
    end = datetime.fromisoformat(shown.pop("expires"))
    assert timedelta(days=89) < end - datetime.now(UTC) <= timedelta(days=90)
    assert shown == {
        "tenant": "acme",
        "name": "ci",
        "scopes": ["read"],
        "models": ["small"],
        "tools": ["calculator"],
        "tenant_admin": True,
        "expired": False,
        "rate": 7,
    }
    lines = (await token(config, "list")).out.splitlines()
    assert lines[0].split() == ["TENANT", "TOKEN", "EXPIRES", "MODELS", "TOOLS", "SCOPES"]
    assert lines[1].split()[:2] == ["acme", "ci"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["create", "ci"], 2, "--scope read"),
        (["create", "ci", "--scope", "raed"], 1, "did you mean `read`?"),
        (["create", "a b", "--scope", "read"], 1, "a token's name"),
        (["create", "ci", "--scope", "read", "--expires", "soon"], 1, "a time with its offset"),
        (["create", "there", "--scope", "read"], 6, "has a token named 'there'"),
        (["revoke", "ci"], 5, "no token named 'ci'"),
        (["revoke", "there", "--tenant", "acme"], 5, "no token named 'there'"),
    ],
)
async def test_an_invalid_edit_is_refused_and_changes_nothing(
    config: Path, arguments: list[str], code: int, said: str
) -> None:
    assert (await token(config, "create", "there", "--scope", "read")).code == 0
    before = (config.parent / "config" / "tokens.yaml").read_bytes()
    ran = await token(config, *arguments)
    assert ran.code == code
    assert said in ran.err
    assert (config.parent / "config" / "tokens.yaml").read_bytes() == before


async def test_faults_of_the_file_are_reported_with_their_lines(config: Path) -> None:
    (config.parent / "config" / "tokens.yaml").write_text("tenants:\n  - id: 5\n")
    ran = await token(config, "list")
    assert ran.code == 1
    assert "tokens.yaml:2:tenants[0].id" in ran.err


def test_a_folder_without_an_organism_is_refused(tmp_path: Path) -> None:
    ran = asyncio.run(token(tmp_path / "organism.yaml", "create", "ci", "--scope", "read"))
    assert (ran.code, "--config FILE" in ran.err) == (5, True)
    assert list(tmp_path.iterdir()) == []


async def test_a_running_server_accepts_a_new_token_and_refuses_a_revoked_one(config: Path) -> None:
    await token(config, "create", "keeper", "--scope", "read")
    async with served(config) as server:
        text = (await token(config, "create", "ci", "--scope", "read")).out.strip()
        bearer = {"Authorization": f"Bearer {text}"}
        while (await server.call("GET", "/organism", headers=bearer)).status_code != 200:
            pass
        async with open_socket(server, bearer) as frames:
            assert (await token(config, "revoke", "ci")).out == "revoked ci of default\n"
            with pytest.raises(Exception, match="4401"):
                await frames.until("never")
        refused = await server.call("GET", "/organism", headers=bearer)
        assert refused.status_code in {401, 429}  # asked for ten times before it was taken, it has failed too often


async def test_a_link_opens_the_page_with_a_token_that_may_read_and_ends_by_itself(config: Path) -> None:
    made = await token(config, "link")
    assert made.code == 0
    text = re.fullmatch(r"http://127\.0\.0\.1:8080/#token=(org_link-\w+_[0-9a-f]{64})", made.out.strip())
    assert text
    [who] = entries(config)
    assert (who.credential, who.grants) == (hashlib.sha256(text[1].encode()).digest(), frozenset({"read"}))
    assert f"organism token revoke {who.name}" in made.err
    assert who.ends is not None
    assert timedelta(hours=11) < datetime.fromtimestamp(who.ends, UTC) - datetime.now(UTC) <= timedelta(hours=12)


@pytest.mark.parametrize(
    ("given", "address"),
    [
        (["--port", "9000"], "http://127.0.0.1:9000/#token="),
        (["--host", "office", "--port", "9000"], "http://office:9000/#token="),
        (["--host", "::1"], "http://[::1]:8080/#token="),
        (["--url", "https://organism.example/"], "https://organism.example/#token="),
    ],
)
async def test_a_link_names_the_address_that_is_asked_for(config: Path, given: list[str], address: str) -> None:
    rights = ["--scope", "read", "--scope", "control", "--hours", "2", "--tenant", "acme"]
    made = await token(config, "link", *rights, *given, "--json")
    assert made.json["url"].startswith(address)
    [who] = entries(config)
    assert (who.tenant, who.name, who.grants) == ("acme", made.json["name"], frozenset({"read", "control"}))


async def test_a_link_names_the_server_of_the_environment_unless_told_otherwise(config: Path) -> None:
    address = {"ORGANISM_URL": "https://organism.example"}
    assert (await organism("token", "link", "--config", config, **address)).out.startswith("https://organism.example/#")
    told = await organism("token", "link", "--port", "9000", "--config", config, **address)
    assert told.out.startswith("http://127.0.0.1:9000/#")


@pytest.mark.parametrize("given", [["--hours", "0"], ["--port", "0"], ["--url", "nowhere"], ["--host", "a b"]])
async def test_a_link_that_cannot_be_is_wrong_usage_and_makes_no_token(config: Path, given: list[str]) -> None:
    assert (await token(config, "link", *given)).code == 2
    assert not (config.parent / "config" / "tokens.yaml").exists()


async def test_a_link_with_a_right_that_there_is_not_makes_no_token(config: Path) -> None:
    refused = await token(config, "link", "--scope", "fly")
    assert refused.code != 0
    assert not (config.parent / "config" / "tokens.yaml").exists()


async def test_a_server_lets_a_link_in_with_its_rights_alone(config: Path) -> None:
    made = (await token(config, "link")).out.strip()
    who = {"Authorization": f"Bearer {made.partition('#token=')[2]}"}
    async with served(config) as server:
        assert (await server.call("GET", "/me", headers=who)).json()["scopes"] == ["read"]
        assert (await server.call("POST", "/organism/pause", headers=who)).status_code == 403
