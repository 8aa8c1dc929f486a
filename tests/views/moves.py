"""What may happen next in a lawful ``World``: each move picks its objects by a number; without any it does nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from hypothesis import strategies

from organism.events.record import Record
from organism.events.vocabulary import (
    After,
    AgentPaused,
    AgentResumed,
    ApprovalExpired,
    ApprovalRequested,
    ApprovalResolved,
    CallAnswered,
    Event,
    MessageDead,
    MessageDiscarded,
    MessageDropped,
    MessageHandled,
    MessageRefused,
    MessageReplayed,
    MessageRetried,
    MessageStarted,
    OrganismPaused,
    OrganismReloaded,
    OrganismResumed,
    Outcome,
    Resolution,
    StepResolved,
    ThreadCreated,
    ThreadKilled,
    ThreadPaused,
    ThreadResumed,
    Verdict,
)
from tests.views.lawful import NAMES, Letter, World

T = TypeVar("T")


def pick(options: Sequence[T], number: int) -> T | None:
    """One of the options, or None if there is none."""
    return options[number % len(options)] if options else None


def running(world: World) -> list[Letter]:
    """The messages whose handlers run or wait in a step."""
    return [letter for letter in world.letters.values() if letter.running]


def inject(world: World, number: int) -> None:
    """A message from outside, into a new thread or one that was not killed."""
    to = pick(world.names, number)
    if to is None:
        return
    thread = pick(["", *(name for name, status in world.threads.items() if status != "killed")], number // 7)
    if not thread:
        thread = world.fresh("thr")
        world.add(ThreadCreated(), thread)
        world.threads[thread] = "active"
    world.wake(thread)
    world.send(thread, "console", to)
    if number % 3 == 0:
        call = CallAnswered(f"k{number}", "POST", "/inject", "d", status=202, body={"thread_id": thread}, back=1)
        world.add(call, thread)


def begin(world: World, number: int) -> None:
    """A waiting message starts, unless an operator is waited for."""
    waiting = [
        letter
        for letter in world.letters.values()
        if not letter.running and letter.to in world.names and "unknown" not in letter.steps.values()
    ]
    letter = pick(waiting, number)
    if letter is not None:
        letter.starts += 1
        letter.running = True
        after: After = "death" if letter.starts > 1 else ""
        world.add(MessageStarted(letter.id, letter.to, letter.starts, 0, "1", after), letter.thread)


def end(world: World, number: int) -> None:
    """A handling ends well: it answers, sends on, or says nothing."""
    letter = pick([letter for letter in running(world) if not letter.steps], number)
    if letter is None:
        return
    world.add(MessageHandled(letter.id, letter.to, "done", duration=1), letter.thread)
    if number % 2:
        answer(world, letter)
    world.close(letter)
    for to in world.names[: number % 3]:
        world.send(letter.thread, letter.to, to)


def answer(world: World, letter: Letter) -> None:
    """Its answer: to the outside, to the ask that waits for it, or to who does not read it."""
    if letter.ask is not None and letter.ask[0].id in world.letters and letter.ask[1] in letter.ask[0].steps:
        asker, step = letter.ask
        world.reply(letter.thread, letter.to, asker.to, "answered", (asker.id, step))
        del asker.steps[step]
        world.end_step(asker, step, "ask")
    else:
        outcome: Outcome = "delivered" if letter.sender == "console" else "unread"
        world.reply(letter.thread, letter.to, letter.sender, outcome)


def fail(world: World, number: int) -> None:
    """An attempt fails, or the last one does, or the listener of a waiting message is gone."""
    gone = [letter for letter in world.letters.values() if letter.to not in world.names and not letter.running]
    letter = pick([*running(world), *gone], number)
    if letter is None:
        return
    if letter.running and number % 3:
        world.note_unknown(letter)
        world.cancel(letter)
        letter.steps = {step: kind for step, kind in letter.steps.items() if kind == "unknown"}
        letter.running = False
        world.add(MessageRetried(letter.id, letter.to, 1, "?", next_at=1), letter.thread)
        return
    world.close(letter)
    died = MessageDead(
        letter.id, letter.to, letter.sender, "Note", letter.position, "handler_error", "it broke", attempts=3
    )
    world.add(died, letter.thread)
    world.dead[letter.id] = (letter.thread, letter.to, True)


def refuse(world: World, number: int) -> None:
    """A send that is not made."""
    letter = pick(running(world), number)
    if letter is not None:
        message = world.fresh("msg")
        refused = MessageRefused(message, letter.to, "nobody", "Note", "routing", "not_a_peer", "no peer")
        world.add(refused, letter.thread)
        world.dead[message] = (letter.thread, letter.to, False)


def ask(world: World, number: int) -> None:
    """A handler asks another listener."""
    letter, to = pick(running(world), number), pick(world.names, number // 5)
    if letter is not None and to is not None:
        letter.count += 1
        letter.steps[letter.count] = "ask"
        world.begin_step(letter, letter.count, "ask")
        world.send(letter.thread, letter.to, to, (letter, letter.count))


def approve(world: World, number: int) -> None:
    """A handler waits for a human."""
    letter = pick(running(world), number)
    if letter is not None:
        letter.count += 1
        letter.steps[letter.count] = "approve"
        approval = world.fresh("apr")
        letter.approvals[approval] = letter.count
        world.begin_step(letter, letter.count, "approve", approval=approval)
        asked = ApprovalRequested(approval, letter.id, letter.to, letter.count, "d", expires_at=world.at + 1)
        world.add(asked, letter.thread)


def decide(world: World, number: int) -> None:
    """An approval is resolved or expires."""
    letter = pick([letter for letter in world.letters.values() if letter.approvals], number)
    if letter is not None:
        approval, step = letter.approvals.popitem()
        if number % 3:
            decision: Verdict = "approve" if number % 3 == 1 else "reject"
            world.add(ApprovalResolved(approval, decision, comment="", by="me"), letter.thread)
        else:
            world.add(ApprovalExpired(approval), letter.thread)
        del letter.steps[step]
        world.end_step(letter, step, "approve")


def affect(world: World, number: int) -> None:
    """An unsafe effect begins, or one that is under way ends."""
    letter = pick(running(world), number)
    if letter is None:
        return
    under_way = [step for step, kind in letter.steps.items() if kind == "effect"]
    if under_way:
        del letter.steps[under_way[0]]
        world.end_step(letter, under_way[0], "effect")
    else:
        letter.count += 1
        letter.steps[letter.count] = "effect"
        world.begin_step(letter, letter.count, "effect")


def settle_unknown(world: World, number: int) -> None:
    """An operator says what became of an effect."""
    doubtful = [
        (letter, step) for letter in world.letters.values() for step, kind in letter.steps.items() if kind == "unknown"
    ]
    found = pick(doubtful, number)
    if found is not None:
        letter, step = found
        del letter.steps[step]
        outcomes: tuple[Resolution, ...] = ("done", "redo", "fail")
        world.add(StepResolved(letter.id, letter.to, step, outcomes[number % 3]), letter.thread)


def pause(world: World, number: int) -> None:
    """An agent, a thread or the organism is paused or resumed."""
    agent = pick(world.names, number)
    thread = pick([name for name, status in world.threads.items() if status != "killed"], number)
    if number % 3 == 0 and agent is not None:
        world.add(AgentResumed(agent, "operator") if agent in world.paused else AgentPaused(agent, "operator"))
        world.paused ^= {agent}
    elif number % 3 == 1 and thread is not None:
        world.add(ThreadResumed() if thread in world.paused_threads else ThreadPaused(), thread)
        world.paused_threads ^= {thread}
    else:
        world.add(OrganismPaused("operator") if number % 2 else OrganismResumed("operator"))


def kill(world: World, number: int) -> None:
    """A thread is killed, whether it still was active or not."""
    thread = pick([name for name, status in world.threads.items() if status != "killed"], number)
    if thread is None:
        return
    for letter in [letter for letter in world.letters.values() if letter.thread == thread]:
        letter.ask = None
        world.close(letter)
        if letter.running:
            world.add(MessageHandled(letter.id, letter.to, "killed", duration=1), thread)
        else:
            world.add(MessageDropped(letter.id, letter.to), thread)
    world.add(ThreadKilled(ended=world.threads[thread] != "active"), thread)
    world.threads[thread] = "killed"


def close_dead_letter(world: World, number: int) -> None:
    """A dead letter is replayed or discarded."""
    message = pick([name for name, (thread, _, _) in world.dead.items() if world.threads[thread] != "killed"], number)
    if message is None:
        return
    thread, agent, failed = world.dead.pop(message)
    if number % 2 and agent in world.names:
        world.add(MessageReplayed(message, f"msg-{world.count + 1}", edited=False, failed=failed), thread)
        world.wake(thread)
        world.send(thread, "console", agent)
    else:
        world.add(MessageDiscarded(message, failed), thread)


def restart(world: World, number: int) -> None:
    """The process dies or stops, and starts again, perhaps with fewer listeners."""
    world.start(fewer(world, number), clean=bool(number % 2))


def reload(world: World, number: int) -> None:
    """The configuration is read again: a listener goes, or one comes that was never there."""
    names = fewer(world, number)
    if len(names) == len(world.names) and number % 3 == 0:
        known = {getattr(record.event, "agent", "") for record in world.records} | {*world.names, *NAMES[:3]}
        names = [*names, *[name for name in NAMES if name not in known][:1]]
    listeners, removed = world.listing(names)
    world.add(OrganismReloaded(added=(), removed=removed, updated=(), listeners=listeners, config="digest"))


def fewer(world: World, number: int) -> list[str]:
    """The present listeners, or all but one of them."""
    gone = pick(world.names, number // 4) if number % 4 == 0 and len(world.names) > 1 else None
    return [name for name in world.names if name != gone]


def rest(_world: World, _number: int) -> None:
    """Nothing happens; what a failing example shrinks to."""


MOVES: Final[tuple[Callable[[World, int], None], ...]] = (
    *(rest, inject, inject, inject, inject, begin, begin, begin, begin, begin, begin, end, end, end, end, fail, fail),
    *(refuse, ask, ask, ask, approve, decide, decide, affect, affect, settle_unknown, settle_unknown),
    *(pause, kill, close_dead_letter, close_dead_letter, restart, reload),
)


def records_of(numbers: Sequence[int]) -> list[Record[Event]]:
    """The log that these numbers choose."""
    world = World()
    for number in numbers:
        MOVES[number % len(MOVES)](world, number // len(MOVES))
        world.settle()
    return world.records


lawful_logs = strategies.lists(strategies.integers(0, 9_999), min_size=30, max_size=90).map(records_of)
"""Lists of records."""
