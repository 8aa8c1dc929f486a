"""What the state finds without a search, also when it was put down and taken up."""

from __future__ import annotations

from organism.events.record import Record
from organism.events.vocabulary import ThreadCompleted, ThreadCreated, TurnStarted
from organism.pump.recover import dump, load
from organism.pump.state import FoldedState


def below(folded: FoldedState, root: str) -> list[str]:
    """The threads below one, by their parents."""
    return [each for child in folded.children.get(root, ()) for each in (*below(folded, child), child)]


def test_the_children_of_a_thread_are_those_that_are_active() -> None:
    folded = FoldedState()
    for position, (thread, parent) in enumerate((("a", None), ("b", "a"), ("c", "b"), ("d", "a"), ("e", None)), 1):
        folded.apply(Record(ThreadCreated(parent), thread=thread, position=position))
    assert below(load(dump(folded)), "a") == below(folded, "a") == ["c", "b", "d"]
    for thread in ("c", "d"):
        folded.apply(Record(ThreadCompleted(), thread=thread, position=6))
    assert below(load(dump(folded)), "a") == below(folded, "a") == ["b"]
    folded.apply(Record(ThreadCompleted(), thread="b", position=7))
    assert folded.children == {}


def test_the_threads_of_a_session_are_its_turns_and_the_compaction_under_way() -> None:
    folded = FoldedState()
    folded.apply(Record(TurnStarted("ses-a.1", "msg-1", "queue"), thread="ses-a", position=1))
    for position, thread in enumerate(("thr-b", "ses-a.thr-c", "ses-d.thr-e"), 2):
        folded.apply(Record(ThreadCreated(), thread=thread, position=position))
    assert (
        list(load(dump(folded)).by_session["ses-a"]) == list(folded.by_session["ses-a"]) == ["ses-a.1", "ses-a.thr-c"]
    )
    for position, thread in enumerate(("ses-a.1", "ses-a.thr-c", "thr-b"), 5):
        folded.apply(Record(ThreadCompleted(), thread=thread, position=position))
    assert list(folded.by_session) == ["ses-d"]
