"""A model that gives what was answered before: nothing is sent, and nothing is made up."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from organism.agents.providers import ProviderError
from organism.events.record import Record
from organism.events.vocabulary import Event, ModelCalled, RunMessageDelta, RunMessageStart, StepRecorded
from organism.log.log import EventFilter, History
from organism.model.completion import (
    Completion,
    Finish,
    ModelRequest,
    Part,
    TextDelta,
    ThoughtDelta,
    Usage,
    completed,
)

PIECE_CHARS: Final = 40
PAGE: Final = 500

Recorded = Mapping[str, Sequence[Completion]]
"""What was answered, in its order, by the digest of what was asked."""


def prompt_digest(request: ModelRequest) -> str:
    """The digest of messages, tools and schema, whatever the order of their keys, as ``model_called`` records it."""
    said: list[Any] = [request.messages, [[tool.name, tool.description, tool.parameters] for tool in request.tools]]
    return hashlib.sha256(orjson.dumps([*said, request.response_format], option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


class Replay:
    """Answers each call as calls with the same prompt were answered, in that order; then the last answer again."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        self._given: dict[str, int] = {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part, None]:
        """See ``Provider``. A call that was not recorded is ``rejected``."""
        digest = prompt_digest(request)
        answers = self._recorded.get(digest)
        if not answers:
            what = f"No answer is recorded for this call (model {request.model}, prompt {digest})"
            raise ProviderError("rejected", f"{what}: what is replayed asks something else than it did then.")
        number = self._given.get(digest, 0)
        self._given[digest] = number + 1
        for part in _parts(answers[min(number, len(answers) - 1)]):
            yield part

    async def close(self) -> None:
        """See ``Provider``: nothing is open."""


def _parts(completion: Completion) -> Iterator[Part]:
    for kind, text in ((ThoughtDelta, completion.thought), (TextDelta, completion.text)):
        for at in range(0, len(text), PIECE_CHARS):
            yield kind(text[at : at + PIECE_CHARS])
    yield from completion.tool_calls
    cost = completion.cost_usd if completion.cost_source == "upstream" else None
    yield Usage(completion.input_tokens, completion.output_tokens, cost)
    yield Finish(completion.finish)


async def recorded(log: History, threads: tuple[str, ...] = ()) -> Recorded:
    """What models answered in these threads, or in all. What failed or was erased is not among it."""
    answers: dict[str, list[Completion]] = {}
    prompts: dict[tuple[str, int], str] = {}
    shown: dict[tuple[str, str | None], str | None] = {}
    wanted = EventFilter(threads, (ModelCalled, RunMessageStart, RunMessageDelta, StepRecorded), content=True)
    after = 0
    while records := await log.read(after, log.head, wanted, PAGE):
        for record in records:
            event, said = record.event, _said(record)
            match event:
                case RunMessageStart():
                    shown[event.message, event.id] = ""
                case RunMessageDelta():  # a text of which a piece was erased is None
                    before = shown.get((event.message, event.id))
                    shown[event.message, event.id] = None if before is None or said is None else before + said["delta"]
                case ModelCalled():
                    prompts[event.message, event.step] = "" if event.error is not None else event.prompt
                case StepRecorded() if said is not None and (prompt := prompts.pop((event.message, event.step), "")):
                    text = said.get("text", shown.pop((event.message, said.get("shown", "")), None))
                    answers.setdefault(prompt, []).extend([] if text is None else [completed(said, text)])
        after = records[-1].position
    return answers


def _said(record: Record[Event]) -> Any:
    """The content's JSON, but for an erased one."""
    content = record.content
    return orjson.loads(content.json) if content is not None and not content.erased else None
