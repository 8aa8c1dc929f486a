"""A model that answers from a script: for tests of agents, ours and users' (docs/agents.md tells the file)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

from organism.agents.provider import Fault, ProviderError
from organism.agents.providers.messages import TurnState, tokens_of, tokens_of_call, tokens_of_request, turn_state
from organism.agents.providers.script import Answer, ScriptedCall, ScriptedFault, ScriptedUsage, read_script
from organism.model.completion import Finish, ModelRequest, Part, TextDelta, ThoughtDelta, ToolCall, Usage

SHOWN_CHARS: Final = 80

Sleep = Callable[[float], Awaitable[object]]


class Scripted:
    """Answers each call with the first answer of the script that fits and is not used up.

    The error of a call without an answer shows the beginning of what the user said: a script is for tests.
    ``sleep`` waits out the delays.
    """

    def __init__(self, answers: Sequence[Answer], name: str = "the script", sleep: Sleep = asyncio.sleep) -> None:
        self._answers = tuple(answers)
        self._name = name
        self._sleep = sleep
        self._given = [0] * len(self._answers)

    @classmethod
    def read(cls, path: Path, sleep: Sleep = asyncio.sleep) -> Scripted:
        return cls(read_script(path), path.name, sleep)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Part]:
        answer = self._answer(request)
        wait = _Patience(request.timeout_s, self._sleep)
        await wait(answer.delay_s)
        if answer.fault is not None and answer.fault.kind != "cut":
            raise await _failure(answer.fault, wait)
        async for part in _texts(answer, wait):
            yield part
        if answer.fault is not None:
            raise _cut(answer.fault)
        calls = [_call(call, f"call_{len(request.messages)}_{at}") for at, call in enumerate(answer.calls, 1)]
        for call in calls:
            yield call
        if answer.usage is not None:
            yield _usage(request, answer, answer.usage, calls)
        yield Finish(answer.finish or ("tool_calls" if calls else "stop"))

    async def close(self) -> None:
        """See ``Provider``: nothing is open."""

    def _answer(self, request: ModelRequest) -> Answer:
        now = turn_state(request.messages)
        for at, answer in enumerate(self._answers):
            if (answer.times is None or self._given[at] < answer.times) and answer.when.fits(request, now):
                self._given[at] += 1
                return answer
        used_up = sum(1 for answer, given in zip(self._answers, self._given, strict=True) if given == answer.times)
        raise ProviderError("rejected", _unanswered(self._name, request, now, used_up))


class _Patience:
    """Waits as long as the call may take, all in all."""

    def __init__(self, timeout_s: float, sleep: Sleep) -> None:
        self._timeout_s = timeout_s
        self._left_s = timeout_s
        self._sleep = sleep

    async def __call__(self, seconds: float) -> None:
        if seconds > 0:
            await self._sleep(min(seconds, self._left_s))
            self._left_s -= seconds
        if self._left_s < 0:
            raise ProviderError("timeout", f"The model did not answer within {self._timeout_s:g} s.")

    async def in_vain(self) -> None:
        await self(self._left_s)


async def _failure(fault: ScriptedFault, wait: _Patience) -> ProviderError:
    if fault.kind == "hang":
        await wait.in_vain()
    kind: Fault = "timeout" if fault.kind == "hang" else "unavailable" if fault.kind == "cut" else fault.kind
    return ProviderError(kind, fault.message or f"The script says: {fault.kind}.", fault.retry_after_s)


def _cut(fault: ScriptedFault) -> ProviderError:
    return ProviderError("unavailable", fault.message or "The stream broke off in the middle.", fault.retry_after_s)


async def _texts(answer: Answer, wait: _Patience) -> AsyncIterator[Part]:
    """Thought and text in pieces, up to where the fault cuts them."""
    is_first = True
    for kind, text in ((ThoughtDelta, answer.thought), (TextDelta, _said(answer))):
        for at in range(0, len(text), answer.chunk_chars):
            await wait(0 if is_first else answer.chunk_delay_s)
            is_first = False
            yield kind(text[at : at + answer.chunk_chars])


def _said(answer: Answer) -> str:
    if answer.fault is None:
        return answer.text
    after = answer.fault.after_chars
    return answer.text[: len(answer.text) // 2 if after is None else after]


def _call(call: ScriptedCall, id_: str) -> ToolCall:
    arguments = dict(call.arguments) if call.raw is None else None
    return ToolCall(call.id or id_, call.name, arguments, call.raw)


def _usage(request: ModelRequest, answer: Answer, told: ScriptedUsage, calls: Sequence[ToolCall]) -> Usage:
    written = tokens_of(answer.thought) + tokens_of(answer.text) + sum(map(tokens_of_call, calls))
    return Usage(
        tokens_of_request(request) if told.input_tokens is None else told.input_tokens,
        written if told.output_tokens is None else told.output_tokens,
        told.cost_usd,
    )


def _unanswered(name: str, request: ModelRequest, now: TurnState, used_up: int) -> str:
    came = [f"model {request.model}", f"turn {now.turn}", f"round {now.round}", f"user said {_short(now.user)}"]
    came += [f"a tool answered {_short(result)}" for result in now.results]
    came += [f"tools {', '.join(tool.name for tool in request.tools)}"] if request.tools else []
    used = f" {used_up} of its answers were given as often as `times` allows." if used_up else ""
    return f"{name} has no answer for this call: {'; '.join(came)}.{used} Add an answer whose `when` fits."


def _short(text: str) -> str:
    line = " ".join(text.split())
    return f"“{line}”" if len(line) <= SHOWN_CHARS else f"“{line[: SHOWN_CHARS - 1]}…”"
