"""``organism usage``: what models were called for, for people and for programs."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tests.cli.command import Ran, organism
from tests.flows.spender import says, scripted
from tests.flows.world import World
from tests.server.served import TOKEN, Served, served


async def ask(server: Served, *arguments: str) -> Ran:
    return await organism("usage", *arguments, ORGANISM_URL=server.url, ORGANISM_TOKEN=TOKEN)


async def test_it_shows_who_called_what_for_how_much(tmp_path: Path) -> None:
    made = scripted(partial(World, tmp_path), says("Here.", 20, 5), fx={"eur_per_usd": 0.9})
    async with served(made.config) as server:
        assert (await ask(server)).out == "no model was called yet\n"
        thread = (await server.inject("ada", {"text": "Hi"}))["thread_id"]
        everything = (await ask(server)).out.splitlines()
        assert everything[0].split() == ["AGENT", "CALLS", "FAILED", "TOKENS", "USD", "LAST"]
        assert [line.split()[:5] for line in everything[1:]] == [
            ["ada", "1", "-", "25", "0.00003"],
            ["all", "1", "-", "25", "0.00003"],
        ]
        one = (await ask(server, "--thread", thread)).out
        assert "tokens  25 (20 in, 5 out)" in one
        assert "cost    0.00003 USD, 0.000027 EUR" in one
        assert "models  m: 1 for 0.00003 USD" in one
        assert (await ask(server, "--agent", "ada", "--json")).json["agent"] == "ada"
        assert (await ask(server, "--at", "1")).out == "no model was called yet\n"


async def test_two_accounts_at_once_are_refused(hello: Served) -> None:
    ran = await ask(hello, "--thread", "t", "--agent", "greeter")
    assert ran.code == 2
    assert "ask for one of them" in ran.err
