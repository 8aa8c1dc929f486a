"""Tables on terminals and elsewhere."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from organism.cli.show import moment, table
from tests.cli.command import on_terminal, organism
from tests.server.served import TOKEN, Served


@pytest.mark.parametrize("verb", ["agents", "threads", "messages", "errors", "graph"])
async def test_no_line_is_wider_than_a_terminal_of_80_columns(hello: Served, verb: str) -> None:
    await hello.inject("greeter", {"name": "Dan" * 100})
    said = await on_terminal(verb, ORGANISM_URL=hello.url, ORGANISM_TOKEN=TOKEN, NO_COLOR="1")
    lines = said.splitlines()
    assert len(lines) > 1
    assert max(map(len, lines)) <= 80


async def test_a_thread_has_its_whole_id_on_a_narrow_terminal_and_one_line_elsewhere(hello: Served) -> None:
    thread = (await hello.inject())["thread_id"]
    named = {"ORGANISM_URL": hello.url, "ORGANISM_TOKEN": TOKEN}
    first, second = (await on_terminal("threads", NO_COLOR="1", **named)).splitlines()[2:4]
    assert first.startswith(f"{thread}  completed  4")
    assert second == "  console, greeter, shouter, response-handler"
    assert len((await organism("threads", **named)).out.splitlines()) == 2


def test_a_table_of_nothing_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    table(("A", "B"), (), "no such thing")
    assert capsys.readouterr().out == "no such thing\n"


def test_a_cell_is_one_line_and_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    table(("A", "B"), [("x", "[bold]one\ntwo")], "nothing")
    assert capsys.readouterr().out == "A  B\nx  [bold]one two\n"


def test_a_moment_of_today_is_a_time_and_another_a_day() -> None:
    now = datetime.now().astimezone().replace(hour=12, minute=0, second=5)
    assert moment(now.isoformat()) == "12:00:05"
    assert moment((now - timedelta(days=2)).isoformat()) == f"{now - timedelta(days=2):%Y-%m-%d}"
    assert moment(None) == "-"
