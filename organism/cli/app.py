"""Every verb of ``organism``, as a table. What is heavy is imported by the verb that runs: ``--help`` is quick."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from dataclasses import MISSING, fields
from importlib import import_module, metadata
from typing import Annotated, Any, Final, NamedTuple, get_type_hints

import typer

from organism.cli import options as take
from organism.cli.exits import Exit, end


class Verb(NamedTuple):
    """A line of the table: its words, the record of its options, ``file:function`` in this folder, and its help."""

    words: str
    takes: type
    does: str
    help: str


GROUPS: Final = {
    "dead-letters": "What failed for good or was refused.",
    "approvals": "What waits for a person's word.",
    "indeterminate": "Unsafe effects of which nobody knows whether they happened.",
    "token": "Who may use the organism; needs no server.",
    "tools": "What agents may call, and you too.",
    "log": "The log itself.",
}

VERBS: Final = (
    Verb("init", take.Init, "init:init", "Write a small working organism into a directory."),
    Verb("serve", take.Serve, "serve:serve", "Run the organism with its API, WebSocket and page."),
    Verb("doctor", take.Doctor, "doctor:doctor", "Find what is wrong here, each with its remedy."),
    Verb("status", take.Remote, "views:status", "Show how the organism stands."),
    Verb("inject", take.Inject, "send:inject", "Send a message to an agent."),
    Verb("chat", take.Chat, "send:chat", "Ask an agent and read its answer as it comes."),
    Verb("tail", take.Tail, "tail:tail", "Watch events live; a lost connection resumes."),
    Verb("agents", take.Agents, "views:agents", "List the agents and what they do now, or show one."),
    Verb("threads", take.Threads, "views:threads", "List the threads, newest activity first, or show one."),
    Verb("graph", take.Graph, "views:graph", "Show who may write to whom."),
    Verb("config", take.Remote, "views:config", "Show the configuration in force, without secrets."),
    Verb("usage", take.Usage, "views:usage", "Show what models were called for, and what it cost."),
    Verb("messages", take.Messages, "views:messages", "List the newest messages, or show one."),
    Verb("kill", take.Kill, "operate:kill", "End a thread and all that it began."),
    Verb("pause", take.Control, "operate:pause", "Pause an agent, a thread or the whole organism."),
    Verb("resume", take.Control, "operate:resume", "Resume an agent, a thread or the whole organism."),
    Verb("reload", take.Remote, "operate:reload", "Read organism.yaml and the handlers again: all or nothing."),
    Verb("stop", take.Remote, "operate:stop", "Stop the server gracefully."),
    Verb("dead-letters list", take.OpenItems, "operate:dead_letters", "List the open ones, newest first."),
    Verb("dead-letters replay", take.Replay, "operate:replay", "Send one again, as it was or with another payload."),
    Verb("dead-letters discard", take.Discard, "operate:discard", "Close one for good."),
    Verb("approvals list", take.Approvals, "operate:approvals", "List what waits, oldest first."),
    Verb("approvals resolve", take.Approval, "operate:resolve_approval", "Approve or reject one."),
    Verb("indeterminate list", take.OpenItems, "operate:indeterminate", "List the open ones, oldest first."),
    Verb("indeterminate resolve", take.Indeterminate, "operate:resolve_effect", "Say what became of one."),
    Verb("tools list", take.Remote, "operate:tools", "List the tools that may be called."),
    Verb("tools run", take.RunTool, "operate:run_tool", "Call one and print its result."),
    Verb("mcp", take.Remote, "mcp:mcp", "Offer the tools over standard input and output, as an MCP server."),
    Verb("token create", take.CreateToken, "token:create", "Make a token and print it, this once."),
    Verb("token revoke", take.RevokeToken, "token:revoke", "Take a token away; a running server obeys in a second."),
    Verb("token list", take.Tokens, "token:listed", "List the tokens of config/tokens.yaml."),
    Verb("log events", take.Events, "log:events", "Show the events themselves; with --json one a line."),
    Verb("log verify", take.Offline, "log:verify", "Check every event and row by the audit chain; needs no server."),
    Verb("log rebuild", take.Offline, "log:rebuild", "Have the next start make every row again; needs no server."),
    Verb("log stats", take.Offline, "log:stats", "Count what the log holds and how large it is; needs no server."),
    Verb("bench", take.Bench, "bench:bench", "Measure how fast this machine and disk carry messages."),
    Verb("errors", take.Errors, "views:errors", "Say what the error codes mean, and what to do."),
)
"""Every verb there is, in the order of ``--help``."""


def made() -> typer.Typer:
    """The command line."""
    app = _group(
        "Durable actors that talk by typed XML, watched and steered live.",
        name="organism",
        epilog="\b\nExit codes:\n" + "\n".join(f"  {code:<4d} {code.meaning}" for code in Exit),
    )
    app.callback()(_above)
    places = {"": app, **{name: _group(text) for name, text in GROUPS.items()}}
    for name, place in places.items():
        if name:
            app.add_typer(place, name=name)
    for verb in VERBS:
        group, _, name = verb.words.rpartition(" ")
        places[group].command(name, help=verb.help)(_command(verb))
    return app


def _show_version(*, is_asked: bool) -> None:
    if is_asked:
        typer.echo(metadata.version("organism"))
        end(Exit.DONE)


VERSION: Final = typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_show_version)


def _above(*, version: Annotated[bool, VERSION] = False) -> None:
    """What stands before any verb."""


def _group(text: str, **more: Any) -> typer.Typer:
    return typer.Typer(
        help=text,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
        **more,
    )


def _command(verb: Verb) -> Callable[..., None]:
    """The verb as a function that takes each option by itself, as typer reads options off a signature."""

    def called(**given: Any) -> None:
        for name, value in given.items():
            try:
                str(value).encode()
            except UnicodeEncodeError:  # what a shell hands over need not be text
                raise typer.BadParameter("it is no valid UTF-8.", param_hint=name.upper()) from None
        try:
            function_of(verb)(verb.takes(**given))
            sys.stdout.flush()
        except BrokenPipeError:  # a reader that is gone, such as `head`, ends the command without a word
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            end(Exit.PIPE_CLOSED)

    described: Any = called
    described.__signature__ = inspect.Signature(_parameters(verb.takes))
    return called


def function_of(verb: Verb) -> Callable[[Any], None]:
    """What the verb does; its file is imported now."""
    file, _, name = verb.does.partition(":")
    function: Callable[[Any], None] = getattr(import_module(f"organism.cli.{file}"), name)
    return function


def _parameters(kind: Any) -> list[inspect.Parameter]:
    """A parameter for each field; what is the verb's own comes before what it shares with others."""
    hints, own = get_type_hints(kind, include_extras=True), inspect.get_annotations(kind)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=Annotated[hints[field.name], *field.metadata.values()] if field.metadata else hints[field.name],
        )
        for field in sorted(fields(kind), key=lambda field: field.name not in own)
    ]


def main() -> None:
    """Run the command line."""
    made()(prog_name="organism")
