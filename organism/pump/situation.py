"""The situation of a handling, as its handler may see it."""

from __future__ import annotations

from organism.model.ids import token_of
from organism.pump import todo
from organism.pump.handling import Run


class Situation:
    """What ``HandlerMetadata`` tells of a run; worked out when a handler asks for it."""

    __slots__ = ("_run",)

    def __init__(self, run: Run) -> None:
        self._run = run

    @property
    def token(self) -> str:
        """The call token of the call in which the message is handled."""
        message = self._run.message
        return token_of(message.call.id if message.call is not None else message.id)

    @property
    def from_id(self) -> str:
        """Who sent the message."""
        return self._run.message.sender

    @property
    def own_name(self) -> str | None:
        """The listener's name, if it is an agent."""
        return self._run.listener.name if self._run.listener.is_agent else None

    @property
    def is_self_call(self) -> bool:
        """Whether the listener sent the message itself."""
        return self._run.message.sender == self._run.message.to

    @property
    def usage_instructions(self) -> str:
        """How to talk to the agent's peers."""
        run = self._run
        return run.rules.usage(run.listener) if run.listener.is_agent else ""

    @property
    def todo_nudge(self) -> str:
        """Reminders whose message has passed."""
        return todo.nudge(self._run.message)

    @property
    def attempt(self) -> int:
        """How often the message was started when this run began."""
        return self._run.attempt

    @property
    def deadline_us(self) -> int:
        """When its own running time is over if it never waits."""
        return self._run.started_at + int(self._run.listener.timeout_s * 1_000_000)
