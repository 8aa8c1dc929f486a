"""Every verb of ``organism``, as a table. A verb's module is imported only when it runs, so ``--help`` is quick."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import MISSING, fields
from importlib import import_module, metadata
from typing import Annotated, Any, Final, NamedTuple, get_type_hints

import typer

from organism.cli import options
from organism.cli.exits import Exit
from organism.cli.streams import OutputFailed, drop_output, prepare_streams


class Verb(NamedTuple):
    """A verb: its words, the class of its options, ``module:function`` in this package, and its help."""

    words: str
    options: type
    function: str
    help: str


GROUPS: Final = {
    "dead-letters": "Messages that failed for good or were refused.",
    "approvals": "Calls that wait for a person's decision.",
    "indeterminate": "Unsafe effects that may or may not have happened.",
    "token": "Access tokens; needs no server.",
    "tools": "Tools that agents, and you, may call.",
    "rag": "The library: indices of documents that agents answer from.",
    "log": "The event log.",
}

VERBS: Final = (
    Verb("init", options.Init, "init:init", "Write a small working organism into a directory."),
    Verb("serve", options.Serve, "serve:serve", "Run the organism with its API, WebSocket and page."),
    Verb("doctor", options.Doctor, "doctor:doctor", "Find what is wrong here, and how to correct it."),
    Verb("status", options.Remote, "queries:status", "Show the state of the organism."),
    Verb("inject", options.Inject, "send:inject", "Send a message to an agent."),
    Verb("chat", options.Chat, "chat:chat", "Ask an agent, or talk with it, and read its answers as they come."),
    Verb("tail", options.Tail, "tail:tail", "Watch events live; a lost connection resumes."),
    Verb("agents", options.Agents, "queries:agents", "List the agents and what they are doing, or show one."),
    Verb("threads", options.Threads, "queries:threads", "List the threads, newest activity first, or show one."),
    Verb("graph", options.Graph, "queries:graph", "Show who may write to whom."),
    Verb("config", options.Remote, "queries:config", "Show the configuration in force, without secrets."),
    Verb("tenant", options.TenantConfig, "queries:tenant", "Show the tenant's configuration, or write keys of it."),
    Verb("usage", options.Usage, "queries:usage", "Show calls of models and their cost."),
    Verb("messages", options.Messages, "queries:messages", "List the newest messages, or show one."),
    Verb("find", options.Find, "queries:find", "Find agents, threads and messages by a text or a part of an id."),
    Verb("kill", options.Kill, "operate:kill", "End a thread and everything it started."),
    Verb("pause", options.Control, "operate:pause", "Pause an agent, a thread or the whole organism."),
    Verb("resume", options.Control, "operate:resume", "Resume an agent, a thread or the whole organism."),
    Verb("reload", options.Remote, "operate:reload", "Load organism.yaml and the handlers again: all or nothing."),
    Verb("stop", options.Remote, "operate:stop", "Stop the server gracefully."),
    Verb("dead-letters list", options.DeadLetters, "operate:dead_letters", "List the open ones, newest first."),
    Verb("dead-letters replay", options.Replay, "operate:replay", "Send one or a thread's again, unchanged or edited."),
    Verb("dead-letters discard", options.Discard, "operate:discard", "Close one, or all of a thread, for good."),
    Verb("approvals list", options.Approvals, "operate:approvals", "List them, oldest first."),
    Verb("approvals check", options.ApprovalCheck, "operate:check_approval", "Say to what a decision would be bound."),
    Verb("approvals resolve", options.Approval, "operate:resolve_approval", "Approve or reject one."),
    Verb("indeterminate list", options.OpenItems, "operate:indeterminate", "List the open ones, newest first."),
    Verb("indeterminate resolve", options.Indeterminate, "operate:resolve_effect", "Say what happened to one."),
    Verb("tools list", options.Remote, "operate:tools", "List the tools that you may call."),
    Verb("tools run", options.RunTool, "operate:run_tool", "Call one and print its result."),
    Verb("tools accept", options.AcceptTool, "operate:accept_tool", "Accept a tool that its MCP server has changed."),
    Verb("rag add", options.AddDocuments, "rag:add", "Put files into an index; again, only what has changed."),
    Verb("rag list", options.Remote, "rag:indices", "List the indices."),
    Verb("rag query", options.QueryIndex, "rag:query", "Find the documents that answer a question best."),
    Verb("rag reembed", options.ReembedIndex, "rag:reembed", "Give an index another embedding model."),
    Verb("rag docs", options.Documents, "rag:documents", "List an index's documents, or show one."),
    Verb("rag rm", options.RemoveDocuments, "rag:remove", "Delete a document, or an index with all of its documents."),
    Verb("mcp", options.Remote, "mcp:mcp", "Serve the tools as an MCP server over stdio."),
    Verb("token create", options.CreateToken, "token:create", "Make a token and print it, only this once."),
    Verb("token link", options.LinkToken, "token:link", "Make a link to the page that has a token of its own."),
    Verb(
        "token revoke",
        options.RevokeToken,
        "token:revoke",
        "Revoke a token; a running server refuses it within a second.",
    ),
    Verb("token list", options.Tokens, "token:listed", "List the tokens of config/tokens.yaml."),
    Verb("log events", options.Events, "queries:events", "Show events; with --json one per line."),
    Verb(
        "log verify",
        options.OfTenant,
        "log:verify",
        "Check every event and row against the audit chain; needs no server.",
    ),
    Verb(
        "log backup",
        options.Backup,
        "backup:backup",
        "Write all logs and libraries into one file, also beside a running server.",
    ),
    Verb("log restore", options.Restore, "backup:restore", "Make a data directory of a backup; needs no server."),
    Verb("log rebuild", options.OfTenant, "log:rebuild", "Have the next start rebuild every row; needs no server."),
    Verb("log audit", options.Offline, "log:audit", "Write the audit files again from the logs; needs no server."),
    Verb(
        "log stats", options.OfTenant, "log:stats", "Show what the log contains and how large it is; needs no server."
    ),
    Verb("bench", options.Bench, "bench:bench", "Measure how fast this machine and disk handle messages."),
    Verb("errors", options.Errors, "queries:errors", "List the error codes, or explain one."),
)
"""In the order of ``--help``."""


def make_app() -> typer.Typer:
    """The command line."""
    app = _group(
        "Agents as durable actors that talk by typed messages, watched and steered live.",
        name="organism",
        epilog="\b\nExit codes:\n" + "\n".join(f"  {code:<4d} {code.meaning}" for code in Exit),
    )
    app.callback()(_root)
    groups = {name: _group(text) for name, text in GROUPS.items()}
    for name, group in groups.items():
        app.add_typer(group, name=name)
    for verb in VERBS:
        name_of_group, _, name = verb.words.rpartition(" ")
        groups.get(name_of_group, app).command(name, help=verb.help)(_command(verb))
    return app


def _show_version(*, is_asked: bool) -> None:
    if is_asked:
        typer.echo(metadata.version("organism"))
        raise typer.Exit(Exit.DONE)


VERSION: Final = typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=_show_version)


def _root(*, version: Annotated[bool, VERSION] = False) -> None:
    """The options that come before any verb."""


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
    """The verb as a function with a parameter per option: typer reads options off a signature."""

    def command(**values: Any) -> None:
        for name, value in values.items():
            try:
                str(value).encode()
            except UnicodeEncodeError:  # a shell may pass any bytes
                raise typer.BadParameter("it is not valid UTF-8.", param_hint=name.upper()) from None
        try:
            function_of(verb)(verb.options(**values))
            sys.stdout.flush()
        except BrokenPipeError:  # the reader, such as `head`, has ended: end without a message
            drop_output()
            raise typer.Exit(Exit.PIPE_CLOSED) from None

    described: Any = command
    described.__signature__ = inspect.Signature(_parameters(verb.options))
    return command


def function_of(verb: Verb) -> Callable[[Any], None]:
    """The verb's function; its module is imported now."""
    module, _, name = verb.function.partition(":")
    function: Callable[[Any], None] = getattr(import_module(f"organism.cli.{module}"), name)
    return function


def _parameters(kind: Any) -> list[inspect.Parameter]:
    """A parameter per field; the verb's own come before those that it shares with others."""
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
    prepare_streams()
    try:
        make_app()(prog_name="organism")
    except OutputFailed as error:
        drop_output()
        typer.echo(f"error: Standard output cannot be written: {error}.", err=True)
        sys.exit(Exit.FAILED)
