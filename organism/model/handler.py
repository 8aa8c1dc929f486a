"""What a handler, ``async def handle(payload, metadata)``, gets and gives: the front door for its authors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, Unpack
from uuid import UUID

from organism.model.completion import ChatMessage, CompleteOptions, Completion

EffectKind = Literal["pure", "idempotent", "unsafe"]
AskCode = Literal["routing", "validation", "timeout", "dead_letter", "no_reply"]


@dataclass
class SystemError:
    """Told to an agent when a send of its was refused.

    The text does not tell a missing receiver from a forbidden one.
    """

    code: Literal["routing", "validation", "timeout"]
    message: str
    retry_allowed: bool = False


@dataclass
class TodoUntil:
    """Ask ``system.todo`` to remind you until a message of the type ``wait_for`` passes in the thread.

    ``from_listener`` narrows it to messages from that listener; empty means any.
    """

    wait_for: str
    from_listener: str = ""
    description: str = ""


@dataclass
class TodoRegistered:
    """The reminder's id."""

    id: str


@dataclass
class TodoComplete:
    """Close the reminder with this id."""

    id: str


@dataclass(frozen=True, slots=True)
class HandlerResponse:
    """A message to send to the peer ``to``; without it, the answer to the caller (``respond`` says so plainly)."""

    payload: object
    to: str | None = None

    @classmethod
    def respond(cls, payload: object) -> HandlerResponse:
        """Answer the caller of the current handling; the pump knows who that is."""
        return cls(payload)


@dataclass(frozen=True, slots=True)
class Approval:
    """What a human decided: ``decision`` is ``approve``, ``reject`` or ``expired``, ``edits`` what they changed."""

    decision: Literal["approve", "reject", "expired"]
    edits: Any = None
    comment: str = ""
    by: str = ""


class AskError(Exception):
    """An ``ask`` got no reply. ``code`` says why: routing, validation, timeout, dead_letter or no_reply.

    ``message`` is the same whoever failed, and why. The error's text says more: ``listener``, who was asked,
    ``message_id``, the question, and ``cause``, why what was asked failed; ``dead_letter`` is the id of that failure.
    """

    def __init__(  # noqa: PLR0913 - what is known of the question
        self,
        code: AskCode,
        message: str,
        *,
        listener: str = "",
        message_id: str = "",
        cause: str = "",
        dead_letter: str = "",
    ) -> None:
        named = " ".join(each for each in (listener, message_id and f"({message_id})") if each)
        super().__init__(" ".join(each for each in (named and f"{named}:", message, cause) if each))
        self.code = code
        self.message = message
        self.listener = listener
        self.message_id = message_id
        self.cause = cause
        self.dead_letter = dead_letter


class NonRetryable(Exception):
    """For a handler to raise where no further attempt can succeed: its message becomes a dead letter at once."""


class EffectError(Exception):
    """An outside effect raised; the text names what. A new attempt runs the effect again, with the same key."""


class EffectUnknown(Exception):
    """For an outside effect to raise that cannot tell whether it happened; the text says why.

    Of an unsafe one a person is asked, as of one that never returned. Any other has failed, and may be tried again.
    """


class EffectFailed(EffectError):
    """An outside effect failed for good: an operator said so, or its result cannot be stored. It is not tried again."""


class HandlerMetadata(ABC):
    """What a handler knows of its message, and the steps that it may take.

    Each step is on disk before its result is given; after a restart a recorded step gives its recorded result. A step
    is found again by where it is called: in which task of the handler, and as which step there. So take the same steps
    each time, and let what comes from outside come by ``effect``. Steps may overlap (``gather``, ``TaskGroup``,
    ``wait``); results are given one at a time, in the order in which they were recorded. A step raises ``RuntimeError``
    where it could not be found again: in an effect, a callback, another thread, a blocking handler.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def thread_id(self) -> str:
        """The thread's id, as the API and the log show it."""

    @property
    @abstractmethod
    def call_id(self) -> str:
        """An opaque token of this call: the same for the replies to what was sent in it."""

    @property
    @abstractmethod
    def from_id(self) -> str:
        """Who sent the message."""

    @property
    @abstractmethod
    def own_name(self) -> str | None:
        """The listener's own name; for agents only."""

    @property
    @abstractmethod
    def is_self_call(self) -> bool:
        """Whether the listener sent the message itself."""

    @property
    @abstractmethod
    def usage_instructions(self) -> str:
        """How to talk to the agent's peers: each one's payload, for its prompt. Empty for tools."""

    @property
    @abstractmethod
    def todo_nudge(self) -> str:
        """The reminders whose message has passed and that are not closed yet; empty if there are none."""

    @property
    @abstractmethod
    def attempt(self) -> int:
        """1 for the first start of this message, one more for each further one."""

    @property
    @abstractmethod
    def deadline(self) -> datetime:
        """When the handling's own running time is over if it never waits, UTC."""

    @abstractmethod
    async def ask(self, to: str, payload: object, timeout: float | None = None, *, tool_call_id: str = "") -> Any:
        """Send ``payload`` to the peer ``to`` and give the payload of its reply.

        ``payload`` may be a dict of the fields of the peer's payload class, for a class that is not at hand.
        ``timeout`` is in seconds (default: the organism's ``ask_timeout_s``); time in which the peer is paused does not
        count. Raises ``AskError``. While it waits, the handler's slot is free for others. ``tool_call_id`` is that of
        the ``tool_call`` entry by which the run shows it: if a person is asked about the call, the run shows that too.
        """

    @abstractmethod
    async def effect(self, key: str, fn: Callable[[str], Awaitable[Any]], kind: EffectKind = "idempotent") -> Any:
        """Run ``fn(key)``, which touches the outside, and give its JSON result, recorded.

        That key is the same in each attempt, and in a replayed dead letter.

        ``pure`` and ``idempotent`` effects may run again after a crash, with the same key; an ``unsafe`` one never
        does: it waits for an operator. Raises ``EffectError`` when ``fn`` raised (the same after a restart, when what
        it raised is gone) and ``EffectFailed`` when an operator said that it failed.
        """

    @abstractmethod
    async def now(self) -> datetime:
        """The log's time (UTC, aware), the same after a restart."""

    @abstractmethod
    async def uuid(self) -> UUID:
        """A random UUID, the same after a restart."""

    @abstractmethod
    async def random(self) -> float:
        """A random number in [0, 1), the same after a restart."""

    @abstractmethod
    async def approve(self, preview: Any) -> Approval:
        """Show ``preview`` (JSON) to a human and wait for the decision."""

    @abstractmethod
    async def complete(self, messages: Sequence[ChatMessage], **options: Unpack[CompleteOptions]) -> Completion:
        """Call a model: the listener's own, or the one that ``model`` names. See ``CompleteOptions``.

        Raises ``CompleteError``, and ``ValueError`` for what is no call. While it waits, the handler's slot is free for
        others, but no other message of its thread comes to it. What the model said is shown as it comes under the id
        that ``block`` gives.
        """

    @abstractmethod
    async def history(self) -> Sequence[Mapping[str, Any]]:
        """What was said in the session before this turn, oldest first; empty if the message is no turn of a session.

        Each is a message as a page of the session's history shows it (``pump/history.py``). It is the same at each
        attempt.
        """

    @abstractmethod
    async def steered(self) -> Sequence[Any]:
        """The payloads of messages that came to the session meanwhile and are meant for this turn, oldest first.

        The turn takes them in, which is a step if there are any. Ask before each model call.
        """

    @abstractmethod
    async def emit(self, kind: str, data: Mapping[str, Any]) -> None:
        """Show an entry of this handling's run to those who watch, and record it: ``model/run.py`` lists them.

        After a restart, or in a new attempt, an entry that the log holds is not shown again: the first of its type and
        ``id`` is the first, the second the second. But an ``error`` is its attempt's own. ``done`` is held back until
        the handling has ended. Raises ``ValueError`` for an unknown type and for data that do not fit it.
        """
