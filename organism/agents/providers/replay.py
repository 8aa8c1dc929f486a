"""A model that gives what was answered before: nothing is sent, and nothing is made up."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from organism.agents.provider import ProviderError
from organism.log.log import EventFilter, History
from organism.model.completion import Completion, Finish, ModelRequest, Part, TextDelta, ThoughtDelta, Usage
from organism.model.events import Event
from organism.pump.model_calls import completed

PIECE_CHARS: Final = 40
PAGE: Final = 500

Recorded = Mapping[str, Sequence[Completion]]
"""What was answered, in its order, by the digest of what was asked."""


def prompt_digest(request: ModelRequest) -> str:
    """The digest of what a model is sent, as ``model_called`` records it: messages, tools, and the answer's schema.

    In which order the keys of an object stand does not count.
    """
    said: list[Any] = [request.messages, [[tool.name, tool.description, tool.parameters] for tool in request.tools]]
    return hashlib.sha256(orjson.dumps([*said, request.response_format], option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]


class Replay:
    """Answers each call as a call with the same prompt was answered.

    What was asked several times is answered in that order; asked once more than then, it gets the last answer again.
    """

    def __init__(self, recorded: Recorded) -> None:
        self._recorded = recorded
        self._given: dict[str, int] = {}

    async def stream(self, request: ModelRequest) -> AsyncIterator[Part]:
        """See ``Provider``. A call that was not recorded is ``rejected``."""
        digest = prompt_digest(request)
        answers = self._recorded.get(digest)
        if not answers:
            raise ProviderError(
                "rejected",
                f"No answer is recorded for this call (model {request.model}, prompt {digest}): what is replayed has "
                "come to ask something else than it did then.",
            )
        number = self._given.get(digest, 0)
        self._given[digest] = number + 1
        for part in _parts(answers[min(number, len(answers) - 1)]):
            yield part

    async def close(self) -> None:
        """See ``Provider``: nothing is open."""


def _parts(completion: Completion) -> Iterator[Part]:
    for at in range(0, len(completion.thought), PIECE_CHARS):
        yield ThoughtDelta(completion.thought[at : at + PIECE_CHARS])
    for at in range(0, len(completion.text), PIECE_CHARS):
        yield TextDelta(completion.text[at : at + PIECE_CHARS])
    yield from completion.tool_calls
    cost = completion.cost_usd if completion.cost_source == "upstream" else None
    yield Usage(completion.input_tokens, completion.output_tokens, cost)
    yield Finish(completion.finish)


async def recorded(log: History, threads: tuple[str, ...] = ()) -> Recorded:
    """What models answered in these threads, or in all. What failed or was erased is not among it."""
    reading = _Reading()
    wanted = EventFilter(threads, tuple(reading.readers), content=True)
    after = 0
    while events := await log.read(after, log.head, wanted, PAGE):
        for event in events:
            reading.readers[event.type](event)
        after = events[-1].position
    return reading.answers


class _Reading:
    """Reads the events of a log in their order: prompts, texts as they were shown, and the answers that name both."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Completion]] = {}
        self.readers = {
            "model_called": self._call,
            "run_message_start": self._start,
            "run_message_delta": self._delta,
            "step_recorded": self._answer,
        }
        self._prompts: dict[tuple[str, int], str] = {}
        self._shown: dict[tuple[str, str], list[str] | None] = {}

    def _call(self, event: Event) -> None:
        data = event.data
        if "error" not in data and data.get("prompt"):
            self._prompts[data["message"], data["step"]] = data["prompt"]

    def _start(self, event: Event) -> None:
        self._shown[event.data["message"], event.data["id"]] = []

    def _delta(self, event: Event) -> None:
        """A text of which a piece was erased is none."""
        key, content = (event.data["message"], event.data["id"]), event.content
        pieces = self._shown.get(key)
        if content is None or content.erased:
            self._shown[key] = None
        elif pieces is not None:
            pieces.append(orjson.loads(content.json)["delta"])

    def _answer(self, event: Event) -> None:
        data, content = event.data, event.content
        prompt = self._prompts.pop((data["message"], data["step"]), None)
        if prompt is None or content is None or content.erased:
            return
        said = orjson.loads(content.json)
        pieces = self._shown.pop((data["message"], said.get("shown", "")), None)
        text = said.get("text", None if pieces is None else "".join(pieces))
        if text is not None:
            self.answers.setdefault(prompt, []).append(completed(said, text))
