"""Every verb of ``organism``. What is heavy is imported by the verb that needs it: ``--help`` is there at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, get_type_hints

import typer

from organism.cli import options as take
from organism.cli.options import Options, spread

app: Final = typer.Typer(
    name="organism",
    help="Durable actors that talk by typed XML, watched and steered live.",
    epilog=(
        "Exit codes: 0 done, 1 refused or failed, 2 wrong usage, 3 no server answers, 4 the log is damaged, "
        "5 the token is not taken."
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
logs: Final = typer.Typer(help="The log itself.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(logs, name="log")


def verb(place: typer.Typer = app, name: str | None = None) -> Callable[[Callable[[Options], None]], None]:
    """Make a function of one options record a command of ``place``."""

    def register(function: Callable[[Options], None]) -> None:
        kind = get_type_hints(function)["options"]
        place.command(name or function.__name__)(spread(function, kind))

    return register


@verb()
def serve(options: take.Serve) -> None:
    """Run the organism with its API, WebSocket and page."""
    from organism.cli.held import refuse_if_held

    refuse_if_held(options.data)

    from organism.cli.serve import run_server

    run_server(options)


@verb()
def inject(options: take.Inject) -> None:
    """Send a message to an agent."""
    from organism.cli import verbs

    verbs.inject(options)


@verb()
def agents(options: take.Remote) -> None:
    """List the agents and what they do now."""
    from organism.cli import verbs

    verbs.agents(options)


@verb()
def threads(options: take.Threads) -> None:
    """List the threads, newest activity first."""
    from organism.cli import verbs

    verbs.threads(options)


@verb()
def tail(options: take.Tail) -> None:
    """Watch events live; a lost connection resumes."""
    from organism.cli.tail import watch

    watch(options)


@verb()
def kill(options: take.Kill) -> None:
    """End a thread and all that it began."""
    from organism.cli import verbs

    verbs.kill(options)


@verb()
def pause(options: take.Control) -> None:
    """Pause an agent, a thread or the whole organism."""
    from organism.cli import verbs

    verbs.control(options, "pause")


@verb()
def resume(options: take.Control) -> None:
    """Resume an agent, a thread or the whole organism."""
    from organism.cli import verbs

    verbs.control(options, "resume")


@verb()
def reload(options: take.Remote) -> None:
    """Read organism.yaml and the handlers anew: all or nothing."""
    from organism.cli import verbs

    verbs.reload(options)


@verb()
def stop(options: take.Remote) -> None:
    """Stop the server gracefully."""
    from organism.cli import verbs

    verbs.stop(options)


@verb(logs, "verify")
def log_verify(options: take.Verify) -> None:
    """Check every event of the log against the audit chain; also beside a running server."""
    from organism.cli.log import verify

    verify(options)


def main() -> None:
    """Run the command line."""
    app()
