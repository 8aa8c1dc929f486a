"""Talk: one call of a model under way, between the unit that begins its step and the one that records it.

What the model says is shown as it comes, in the block that the handler named. What a talk still does after its
handling's end comes to nothing.
"""

from __future__ import annotations

import asyncio
from typing import Final

from organism.model.completion import Completion, TextDelta, ThoughtDelta
from organism.model.events import Content
from organism.model.thread import Step
from organism.pump import completions
from organism.pump.block import Block
from organism.pump.handling import Run
from organism.pump.models import Anew, ModelCall, Outcome, Told
from organism.pump.story import Story
from organism.pump.unit import Decision
from organism.pump.wording import described

GATHER_SECONDS: Final = 0.001
"""So long the start of a text waits for the rest: an answer that is there at once costs one commit less."""


class Talk:
    """One call; it counts as under way from its making on."""

    __slots__ = (
        "_block", "_call", "_due", "_said", "_step", "_story", "_task", "_text", "_thought", "_thoughts", "run",
    )  # fmt: skip

    def __init__(self, run: Run, story: Story, call: ModelCall, step: Step) -> None:
        self.run = run
        self._story = story
        self._call = call
        self._step = step
        self._task: asyncio.Task[None] | None = None
        self._block = call.options.get("block", "")
        self._text: Block | None = None
        self._due: asyncio.TimerHandle | None = None
        self._thought: Block | None = None
        self._thoughts = 0
        self._said: list[str] = []
        story.calls[self] = None

    def begin(self) -> None:
        """Call."""
        self._task = asyncio.get_running_loop().create_task(self._talk())
        self._task.add_done_callback(self._ended)

    def stop(self) -> None:
        """See ``story.Call``."""
        if self._task is not None:
            self._task.cancel()
        self._wait_no_more()

    async def _talk(self) -> None:
        pump = self.run.pump
        begun_at = pump.state.now()
        outcome, error = await pump.outcome_of(pump.models.call(self._call, self.hear))
        if error is not None:
            failure = {"code": "upstream_error", "message": described(error)}
            outcome = Outcome(None, failure, 1, pump.state.now() - begun_at)
        if not self.run.dead:
            self._settle(outcome)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """A fault of ours, not of the model: the pump folds its state anew."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self.run.pump.on_broken(error)

    def hear(self, part: Told) -> None:
        """A part of the answer has come."""
        if self.run.dead or not self._block:
            return
        if isinstance(part, Anew):
            self._say_anew()
        elif isinstance(part, TextDelta) and part.text:
            self._said.append(part.text)
            if self._text is not None:
                self._text.add(part.text)
            elif self._due is None:
                self._due = asyncio.get_running_loop().call_later(GATHER_SECONDS, self._on_due)
        elif isinstance(part, ThoughtDelta) and part.text:
            if self._due is not None:
                self._show_text()
            if self._thought is None:
                self._thoughts += 1
                number = f"-{self._thoughts}" if self._thoughts > 1 else ""
                self._thought = self._begun("thought", f"{self._block}-thought{number}")
            self._thought.add(part.text)

    def _on_due(self) -> None:
        """In a task of its own, so that a fault is told as one of the call's is."""

        async def show() -> None:
            if self._due is not None:
                self._show_text()

        asyncio.get_running_loop().create_task(show()).add_done_callback(self._ended)

    def _show_text(self) -> None:
        """Begin the block, with what has come of the text."""
        self._wait_no_more()
        self._text = self._begun("message", self._block)
        self._text.add("".join(self._said))

    def _wait_no_more(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _begun(self, kind: str, block_id: str) -> Block:
        decision = self.run.decide()
        self._end_thought(decision)
        block = self._story.begin(kind, block_id, decision)
        self.run.pump.write(decision, block.on_disk)
        return block

    def _say_anew(self) -> None:
        self._said.clear()
        self._wait_no_more()
        if self._text is not None:
            self._text.drop()
            self._text = self._begun("message", self._block)

    def _end_thought(self, decision: Decision) -> None:
        if self._thought is not None:
            self._story.end(self._thought, decision)
            self._thought = None

    def _settle(self, outcome: Outcome) -> None:
        """The call is over: what it was shown in ends, what it did cost is settled, its step is recorded."""
        run, step, completion = self.run, self._step, outcome.completion
        decision = run.decide()
        self._wait_no_more()
        self._end_thought(decision)
        content = None
        if completion is not None:
            is_shown_whole = self._end_text(decision, completion)
            shown = self._block if self._text is not None else ""
            content = Content(run.message.thread.id, completions.kept(completion, shown, is_shown_whole=is_shown_whole))
        elif self._said or self._text is not None:
            self._text_in(decision).cut(decision)
        run.pump.models.settle(decision, self._call, outcome)
        step.result = completion
        decision.record(step, outcome.error, content)
        self._story.calls.pop(self, None)
        run.pump.write(decision)
        _go_ahead(run, step, decision)
        run.pump.rests.fire()

    def _end_text(self, decision: Decision, completion: Completion) -> bool:
        """Show what the answer says in the end, if that is not what was heard; gives whether the block holds it."""
        if not self._block:
            return False
        said, is_seen = "".join(self._said), self._text is not None
        if said.strip() != completion.text.strip():
            if self._text is not None:
                self._text.drop()
            self._text, self._said = None, [said := completion.text]
        if not said and not is_seen:
            return False
        self._story.end(self._text_in(decision), decision)
        return said == completion.text

    def _text_in(self, decision: Decision) -> Block:
        """The block of the text; if it waited for more until now, it begins with this decision."""
        if self._text is None:
            self._text = self._story.begin("message", self._block, decision)
            self._text.add("".join(self._said))
        return self._text


def _go_ahead(run: Run, step: Step, unit: Decision) -> None:
    """The answer is on its way to the disk. A handler that acts by steps alone need not wait for it (adr/0044).

    What those make possible waits for the disk itself, behind this unit; if that is lost, so are they.
    """
    if not run.listener.acts_by_steps or unit.failed is not None or run.message not in unit.goers:
        return
    unit.goers = tuple(message for message in unit.goers if message is not run.message)
    run.over.append(step)
    run.go()
