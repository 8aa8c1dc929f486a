"""A model that repeats recorded answers; nothing is sent."""

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
"""The recorded answers, in order, by the digest of their prompt."""


def prompt_digest(request: ModelRequest) -> str:
    """The digest of messages, tools and schema, independent of key order, as ``model_called`` records it."""
    tools = [[*tool.told.values()] for tool in request.tools]
    prompt = [request.messages, tools, request.response_format]
    return hashlib.sha256(orjson.dumps(prompt, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


class Replay:
    """Answers each call with the recorded answers to its prompt, in order; then with the last one again."""

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        self._given: dict[str, int] = {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Part, None]:
        """See ``Provider``. A call that was not recorded is ``rejected``."""
        digest = prompt_digest(request)
        answers = self._recorded.get(digest)
        if not answers:
            what = f"No answer is recorded for this call (model {request.model}, prompt {digest})"
            raise ProviderError("rejected", f"{what}: the replay asks something else than the recorded run.")
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
    """What models answered in these threads, or in all, without failed calls and erased answers."""
    answers: dict[str, list[Completion]] = {}
    prompts: dict[tuple[str, int], str] = {}
    shown: dict[tuple[str, str | None], str | None] = {}
    wanted = EventFilter(threads, (ModelCalled, RunMessageStart, RunMessageDelta, StepRecorded), content=True)
    after = 0
    while records := await log.read(after, log.head, wanted, PAGE):
        for record in records:
            event, content = record.event, _content(record)
            match event:
                case RunMessageStart():
                    shown[event.message, event.id] = ""
                case RunMessageDelta():  # a text of which a piece was erased is None
                    before = shown.get((event.message, event.id))
                    shown[event.message, event.id] = (
                        None if before is None or content is None else before + content["delta"]
                    )
                case ModelCalled():
                    prompts[event.message, event.step] = "" if event.error is not None else event.prompt
                case StepRecorded() if content is not None and (prompt := prompts.pop((event.message, event.step), "")):
                    text = content.get("text", shown.pop((event.message, content.get("shown", "")), None))
                    answers.setdefault(prompt, []).extend([] if text is None else [completed(content, text)])
        after = records[-1].position
    return answers


def _content(record: Record[Event]) -> Any:
    """The content's JSON; None if it was erased."""
    content = record.content
    return orjson.loads(content.json) if content is not None and not content.erased else None
