"""Tables on terminals and elsewhere."""

from __future__ import annotations

from datetime import datetime, timedelta

import orjson
import pytest

from organism.cli.options import Remote
from organism.cli.output import clock_time, fail, fields, out, show_document, table
from tests.cli.command import on_terminal, organism
from tests.cli.test_verbs import ask
from tests.server.hostile.texts import STEERING
from tests.server.served import TOKEN, Served

ALL = f"\x1b{STEERING}"
HOSTILE = f"raise {STEERING}31m\n  99999999 thread thr-0 completed"


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
    assert second == "  Dan"
    assert len((await organism("threads", **named)).out.splitlines()) == 2


def test_a_cell_is_one_line_and_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    table(("A", "B"), [("x", "[bold]one\ntwo")], "nothing")
    assert capsys.readouterr().out == "A  B\nx  [bold]one two\n"


def test_a_time_of_today_is_shown_as_a_time_and_another_as_a_day() -> None:
    now = datetime.now().astimezone().replace(hour=12, minute=0, second=5)
    assert clock_time(now.isoformat()) == "12:00:05"
    assert clock_time((now - timedelta(days=2)).isoformat()) == f"{now - timedelta(days=2):%Y-%m-%d}"
    assert clock_time(None) == "-"


@pytest.mark.parametrize(
    "verb",
    ["messages", "messages MESSAGE", "messages --xml", "threads", "threads THREAD", "dead-letters list", "log events"],
)
async def test_no_text_from_a_payload_controls_the_terminal_or_looks_like_our_lines(needy: Served, verb: str) -> None:
    sent = await needy.inject("worker", {"text": HOSTILE})
    words = verb.replace("MESSAGE", sent["message_id"]).replace("THREAD", sent["thread_id"]).split()
    named = {"ORGANISM_URL": needy.url, "ORGANISM_TOKEN": TOKEN, "NO_COLOR": "1"}
    shown = await on_terminal(*words, **named)
    assert sent["thread_id"] in shown or sent["message_id"] in shown
    assert not set(shown) & set(ALL)
    assert not [line for line in shown.splitlines() if line.lstrip().startswith("99999999")]


@pytest.mark.parametrize("verb", ["messages", "dead-letters list", "log events --content"])
async def test_json_escapes_control_characters_and_keeps_the_value(needy: Served, verb: str) -> None:
    await needy.inject("worker", {"text": HOSTILE})
    ran = await ask(needy, *verb.split(), "--json")
    assert not set(ran.out) & set(ALL)
    assert STEERING in orjson.dumps([orjson.loads(line) for line in ran.out.splitlines()]).decode()


def test_printed_control_characters_are_shown_and_never_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    out().print(f"a{ALL}\nb")
    fields({"name": f"a{ALL}\nb"})
    show_document(Remote(), {"name": ALL})
    fail(f"a{ALL}\nb", f"do {ALL}", [f"c{ALL}\nd"])
    said = capsys.readouterr()
    assert not set(said.out + said.err) & set(ALL)
    assert said.out.splitlines()[0] == f"a{chr(0xFFFD) * len(ALL)}"
    assert [line[0] for line in said.err.splitlines()] == ["e", " ", "n"]
