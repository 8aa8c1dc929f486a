"""The command line as a whole: quick, documented, and clean in how it ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib import metadata

import pytest

from organism.cli.app import VERBS, function_of
from organism.cli.exits import Exit
from tests.cli.command import REPOSITORY, environment, in_a_process, on_terminal, organism, start_process
from tests.server.served import TOKEN, Frames, Served

PACKAGES = {
    "rich",
    "httpx2",
    "openai",
    "anthropic",
    "websockets",
    "starlette",
    "uvicorn",
    "pydantic",
    "lxml",
    "pysqlite3",
}
HEAVY = PACKAGES | {"organism.bootstrap"}


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom organism.cli.app import make_app\nfrom typer.testing import CliRunner\n"
        "assert CliRunner().invoke(make_app(), ['--help']).exit_code == 0\nprint(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split()
    assert HEAVY & set(loaded) == set()


async def test_the_help_and_the_operations_page_list_the_exit_codes() -> None:
    help_text = (await organism("--help", COLUMNS="80")).out
    page = (REPOSITORY / "docs" / "operations.md").read_text()
    for code in Exit:
        assert f"  {code:<4d} {code.meaning}\n" in help_text
        assert f"| {code:d} | {code.meaning} |" in page


async def test_every_verb_has_a_function_and_a_row_in_the_operations_page() -> None:
    assert all(callable(function_of(verb)) for verb in VERBS)
    page = (REPOSITORY / "docs" / "operations.md").read_text()
    assert [verb.words for verb in VERBS if f"`organism {verb.words}" not in page] == []


async def test_completion_can_be_installed_and_knows_every_verb() -> None:
    assert "--install-completion" in (await organism("--help")).out
    assert (await organism("--version")).out == f"{metadata.version('organism')}\n"
    typed = {"_ORGANISM_COMPLETE": "complete_bash", "COMP_WORDS": "organism dead-letters re", "COMP_CWORD": "2"}
    assert (await organism(**typed)).out.split() == ["replay"]


async def test_a_closed_pipe_ends_the_command_silently(hello: Served) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    named = environment(ORGANISM_URL=hello.url, ORGANISM_TOKEN=TOKEN)
    for words in (["agents"], ["tail", "--since", "0", "--json"]):
        process = await start_process(*words, env=named, stdout=writing)
        _, err = await process.communicate()
        assert (process.returncode, err) == (141, b""), words
    os.close(writing)


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
async def test_a_character_that_the_output_s_encoding_lacks_is_escaped_and_json_stays_json(
    hello: Served, encoding: str
) -> None:
    named = {"ORGANISM_URL": hello.url, "ORGANISM_TOKEN": TOKEN, "PYTHONIOENCODING": encoding}
    words = ["inject", "greeter", '{"name": "Zo\u00eb \u2192 \U0001f600"}', "--wait", "20"]
    shown, printed = await in_a_process(*words, **named), await in_a_process(*words, "--json", **named)
    assert [(each.code, each.err) for each in (shown, printed)] == [(0, "")] * 2
    assert printed.json["replies"][0]["payload"]["message"] == "HELLO, ZO\u00cb \u2192 \U0001f600!"


async def test_ctrl_c_ends_a_verb_with_130_and_no_trace(hello: Served) -> None:
    await hello.call("POST", "/agents/shouter/pause")
    named = environment(ORGANISM_URL=hello.url, ORGANISM_TOKEN=TOKEN)
    async with hello.socket() as socket:
        frames = Frames(socket)
        await frames.until("connected")
        process = await start_process("inject", "greeter", '{"name":"D"}', "--wait", "60", env=named)
        await frames.until("thread_created")
        process.send_signal(signal.SIGINT)
        out, err = await process.communicate()
    assert (process.returncode, out, err) == (130, b"", b"")


async def test_ctrl_c_ends_tail_with_0(hello: Served) -> None:
    named = environment(ORGANISM_URL=hello.url, ORGANISM_TOKEN=TOKEN)
    process = await start_process("tail", "--since", "0", env=named)
    assert process.stdout is not None
    await process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = await process.communicate()
    assert (process.returncode, err) == (0, b"")


async def test_arguments_that_are_not_utf8_are_wrong_usage() -> None:
    ran = await organism("inject", os.fsdecode(b"\xff"), "{}")
    assert ran.code == 2
    assert "UTF-8" in ran.err
    assert "Traceback" not in ran.err


async def test_colours_appear_on_a_terminal_only_and_not_with_no_color(hello: Served) -> None:
    named = {"ORGANISM_URL": hello.url, "ORGANISM_TOKEN": TOKEN}
    assert "\x1b[" in await on_terminal("agents", **named)
    assert "\x1b[" not in await on_terminal("agents", NO_COLOR="1", **named)
    assert "\x1b[" not in (await organism("agents", **named)).out
