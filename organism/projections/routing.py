"""The fold that routes: which messages are open, in which calls, with which steps; which threads and agents are paused.

The running pump applies it to every event that it makes, at the decision, so that the next decision rests on it; a
start applies it to the log. ``Message.payload``, ``.generation``, ``.next``, ``.line`` and ``.handling`` are the pump's
own and never folded.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import field

from organism.events.entity import Entity
from organism.model.events import RUN, Event
from organism.model.ids import CONSOLE
from organism.model.thread import CONSENT, Call, Message, Root, Step, Thread, asks_above, steps_held, stop_or_go

SHORT_LIFE_US: Final = 12_000_000
"""A life that ended sooner, with something started and nothing ended, counts towards a crash loop (G8)."""


class Routing(Entity):
    """The state. Only ``FOLDS`` and the pump's decisions change it."""

    threads: dict[str, Thread] = field(default_factory=dict)
    messages: dict[str, Message] = field(default_factory=dict)
    paused: bool = False
    paused_agents: set[str] = field(default_factory=set)
    failures_in_row: dict[str, int] = field(default_factory=dict)
    position: int = 0
    last_at: int = 0
    life: int = 0
    life_at: int = 0
    life_started: bool = False
    life_ended: bool = False
    clean: bool = True
    short_lives: int = 0

    def step(self, message_id: str, number: int) -> Step | None:
        message = self.messages.get(message_id)
        return message.steps.get(number) if message is not None and message.steps else None

    def is_paused(self, message: Message) -> bool:
        """Whether the message's agent, its thread or the organism is paused."""
        return self.paused or message.thread.paused or message.to in self.paused_agents

    def hold(self, at: int) -> None:
        """Something began or ceased to hold up messages: the clock of each step that it concerns stops or runs on."""
        held: set[Step] = set()
        for message in self.messages.values():
            held.update(steps_held(message, is_paused=self.is_paused(message)))
        for message in self.messages.values():
            for step in (message.steps or {}).values():
                stop_or_go(step, at, is_held=step in held)

    def end(self, message_id: str) -> None:
        """An open message is open no more."""
        message = self.messages.pop(message_id, None)
        if message is None:
            return
        message.thread.open -= 1
        if message.ask is not None:
            message.ask.open -= 1


def _message_sent(state: Routing, event: Event) -> None:
    data = event.data
    thread = state.threads[event.thread or ""]
    for todo in (thread.todos or {}).values():
        if todo["wait_for"] == data["type"] and todo["from_listener"] in {"", data["from"]}:
            todo["met"] = True
    if "answers" in data:
        step = state.step(*data["answers"])
        if step is not None:
            step.content_at = event.position
            step.message.read = step.message.read.union(data.get("authors", ()))
        return
    if data["to"] == CONSOLE:
        return
    message = Message.sent(event, thread)
    if "step" in data:
        asker, number = data["step"]
        message.step = message.ask = state.step(asker, number)
    _place_in_call(state, message, event)
    if message.ask is not None:
        message.ask.open += 1
    thread.open += 1
    state.messages[message.id] = message
    if message.ask is not None and state.is_paused(message):
        for step in asks_above(message):
            stop_or_go(step, event.at, is_held=True)


def _place_in_call(state: Routing, message: Message, event: Event) -> None:
    """A message lies in the call of what caused it; a reply goes up to the call that it names."""
    data = event.data
    cause = state.messages.get(event.cause or "")
    if "calls" in data:
        for call_id, caller in reversed(data["calls"]):
            message.call = Call(call_id, caller, message.call)
        message.thread.begin_chain(event.correlation, Root(*data.get("root", ())), state.messages.values())
    elif cause is not None:
        call = cause.call
        if message.reply and call is not None and data["call"] != call.id:
            call = call.parent
        message.call = call
        if message.ask is None and call is not None:
            message.ask = call.ask
    elif (who := event.actor) is not None and (who.principal is not None or "caller_depth" in data):
        root = Root(who.principal, data.get("caller_depth", 0))
        message.thread.begin_chain(event.correlation, root, state.messages.values())


def _message_started(state: Routing, event: Event) -> None:
    message = state.messages[event.data["message"]]
    message.starts += 1
    message.running = True
    message.next_at = 0
    for todo in (message.thread.todos or {}).values():
        if todo["agent"] == message.to:
            message.read = message.read.union(todo.get("authors", ()))
    if not message.reply and message.starts == 1:
        message.call = call = Call(message.id, message.sender, message.call)
        call.step, call.ask = message.step, message.ask
    state.life_started = True


def _message_handled(state: Routing, event: Event) -> None:
    data = event.data
    state.end(data["message"])
    state.life_ended = True
    if data["outcome"] == "done" and data["agent"] in state.failures_in_row:
        del state.failures_in_row[data["agent"]]


def _message_retried(state: Routing, event: Event) -> None:
    """The new attempt gives back what succeeded and runs the rest again; what failed for good stays so."""
    message = state.messages[event.data["message"]]
    message.running = False
    message.failures += 1
    message.after = "retry"
    message.next_at = event.data["next_at"]
    steps, message.steps = message.steps or {}, {}
    for number, step in steps.items():
        if step.ok or step.unknown or (step.error is not None and step.error["code"] == "effect_failed"):
            message.steps[number] = step
        else:
            step.ok = False
    message.steps = message.steps or None


def _message_dead(state: Routing, event: Event) -> None:
    message = state.messages.get(event.data["message"])
    if message is not None:
        message.thread.failed += 1
        message.thread.reason = event.data["reason"]
    state.end(event.data["message"])
    state.life_ended = True
    agent = event.data["agent"]
    state.failures_in_row[agent] = state.failures_in_row.get(agent, 0) + 1


def _dead_letter_closed(state: Routing, event: Event) -> None:
    thread = state.threads.get(event.thread or "")
    if thread is not None and event.data.get("failed", True):
        thread.failed = max(0, thread.failed - 1)


def _thread_created(state: Routing, event: Event) -> None:
    thread = Thread(event.thread or "")
    thread.parent = event.data.get("parent")
    state.threads[thread.id] = thread


def _thread_reopened(state: Routing, event: Event) -> None:
    _thread_created(state, event)
    thread, data = state.threads[event.thread or ""], event.data
    thread.failed = data.get("failed", 0)
    thread.reason = data.get("reason", "")
    thread.paused = data.get("paused", False)
    thread.todos = {name: dict(todo) for name, todo in data.get("todos", {}).items()} or None


def _thread_ended(state: Routing, event: Event) -> None:
    state.threads.pop(event.thread or "", None)


def _thread_paused_or_resumed(state: Routing, event: Event) -> None:
    thread = state.threads.get(event.thread or "")
    if thread is not None:
        thread.paused = event.type == "thread_paused"
        state.hold(event.at)


def _agent_paused(state: Routing, event: Event) -> None:
    state.paused_agents.add(event.data["agent"])
    state.failures_in_row.pop(event.data["agent"], None)
    state.hold(event.at)


def _agent_resumed(state: Routing, event: Event) -> None:
    state.paused_agents.discard(event.data["agent"])
    state.hold(event.at)


def _organism_paused_or_resumed(state: Routing, event: Event) -> None:
    state.paused = event.type == "organism_paused"
    if not state.paused:
        state.short_lives = 0
    state.hold(event.at)


def _organism_started(state: Routing, event: Event) -> None:
    """A new life: what ran when the last one ended waits again, and counts the death unless it was told to stop."""
    clean = event.data["clean"]
    short = not clean and state.life_started and not state.life_ended and state.last_at - state.life_at <= SHORT_LIFE_US
    state.short_lives = state.short_lives + 1 if short else 0
    for message in state.messages.values():
        if message.running:
            message.running = False
            message.after = "stop" if clean else "death"
            message.deaths += not clean and not message.is_waiting_in_step()
    state.life = event.data["life"]
    state.life_at = event.at
    state.life_started = state.life_ended = False
    state.clean = False


def _organism_stopped(state: Routing, _event: Event) -> None:
    state.clean = True


def _step_started(state: Routing, event: Event) -> None:
    data = event.data
    message = state.messages[data["message"]]
    if "unknown" in data:
        if message.steps is not None:
            message.steps[data["step"]].unknown = True
        return
    step = Step(message, data["step"], data["kind"], data["input"])
    step.effect = data.get("effect", "")
    step.key = data.get("key", "")
    step.approval = data.get("approval", "")
    step.expires = data.get("expires", 0)
    if message.steps is None:
        message.steps = {}
    message.steps[step.number] = step
    if step.number == CONSENT:
        state.hold(event.at)


def _step_recorded(state: Routing, event: Event) -> None:
    data = event.data
    message = state.messages.get(data["message"])
    if message is None:
        return
    if message.steps is None:
        message.steps = {}
    step = message.steps.get(data["step"])
    if step is None:
        step = message.steps[data["step"]] = Step(message, data["step"], data["kind"], data["input"])
    step.error = data.get("error")
    step.ok = step.error is None
    step.unknown = False
    if step.kind != "ask":
        step.content_at = event.position
    if step.number == CONSENT:
        state.hold(event.at)


def _step_resolved(state: Routing, event: Event) -> None:
    data = event.data
    step = state.step(data["message"], data["step"])
    if step is None:
        return
    step.unknown = False
    if data["outcome"] == "done":
        step.ok, step.content_at = True, event.position
    elif data["outcome"] == "fail":
        step.ok, step.error = False, {"code": "effect_failed", "message": "An operator said that this effect failed."}
    elif step.message.steps is not None:
        del step.message.steps[step.number]


def _todo_registered(state: Routing, event: Event) -> None:
    thread = state.threads[event.thread or ""]
    if thread.todos is None:
        thread.todos = {}
    thread.todos[event.data["todo"]] = {**event.data, "met": False}


def _todo_closed(state: Routing, event: Event) -> None:
    thread = state.threads.get(event.thread or "")
    if thread is not None and thread.todos:
        thread.todos.pop(event.data["todo"], None)


def _run_entry(state: Routing, event: Event) -> None:
    """An entry of an open message's run: the next attempt shows only what the log does not hold."""
    message = state.messages.get(event.data["message"])
    if message is not None:
        message.shows().take(event.type.removeprefix("run_"), event.data.get("id", ""))


FOLDS: Final[dict[str, Callable[[Routing, Event], None]]] = {
    "message_sent": _message_sent,
    "message_started": _message_started,
    "message_handled": _message_handled,
    "message_dropped": lambda state, event: state.end(event.data["message"]),
    "message_retried": _message_retried,
    "message_dead": _message_dead,
    "message_replayed": _dead_letter_closed,
    "message_discarded": _dead_letter_closed,
    "thread_created": _thread_created,
    "thread_reopened": _thread_reopened,
    "thread_completed": _thread_ended,
    "thread_failed": _thread_ended,
    "thread_killed": _thread_ended,
    "thread_paused": _thread_paused_or_resumed,
    "thread_resumed": _thread_paused_or_resumed,
    "agent_paused": _agent_paused,
    "agent_resumed": _agent_resumed,
    "organism_paused": _organism_paused_or_resumed,
    "organism_resumed": _organism_paused_or_resumed,
    "organism_started": _organism_started,
    "organism_stopped": _organism_stopped,
    "step_started": _step_started,
    "step_recorded": _step_recorded,
    "step_resolved": _step_resolved,
    "todo_registered": _todo_registered,
    "todo_closed": _todo_closed,
    **dict.fromkeys(RUN, _run_entry),
}
