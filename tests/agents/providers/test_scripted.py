"""The scripted model: which answer is given to which call, how it comes, and what its file may say."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from organism.agents.providers import ProviderError
from organism.errors import ConfigInvalid
from organism.model.completion import ToolCall, Usage
from organism.testing import Scripted
from tests.agents.providers.asking import Came, ask, called, gathered, request, tool


class Waits:
    """Waits for nothing, and keeps how long it was asked to."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def script(tmp_path: Path, waits: Waits) -> Any:
    def of(text: str) -> Scripted:
        (tmp_path / "answers.yaml").write_text(text, encoding="utf-8")
        return Scripted.read(tmp_path / "answers.yaml", waits)

    return of


async def refused(scripted: Scripted, /, *texts: Any, **options: Any) -> tuple[ProviderError, Came]:
    came = Came()
    with pytest.raises(ProviderError) as caught:
        await gathered(scripted.stream(request(*texts, **options)), came)
    return caught.value, came


# ── which answer ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("when", "fits", "fits_not"),
    [
        ("weather", "How is the WEATHER?", "How is the wind?"),
        ("{user: weather}", "The weather, please", "The wind, please"),
        ("{user: {is: Hi}}", " Hi ", "Hi there"),
        (r"{user: {pattern: '\d+ ?\* ?\d+'}}", "2*21", "2 times 21"),
        ("{user: {pattern: '^What.*e$'}}", "What time", "What time?"),
        ("{user: {holds: time, pattern: '^What'}}", "What time?", "Which time?"),
    ],
)
async def test_an_answer_is_chosen_by_the_newest_text_of_the_user(
    script: Any, when: str, fits: str, fits_not: str
) -> None:
    model = script(f"answers:\n- when: {when}\n  text: this\n- text: other\n")
    assert (await ask(model, fits)).text == "this"
    assert (await ask(model, fits_not)).text == "other"
    assert (await ask(model, fits, "I see.", fits_not)).text == "other"


@pytest.mark.parametrize("when", ["model: small", "turn: 2", "round: 1", "system: terse", "tools: [clock]"])
async def test_an_answer_is_chosen_by_what_else_is_known_of_the_call(script: Any, when: str) -> None:
    model = script(f"answers:\n- when: {{{when}}}\n  text: this\n- text: other\n")
    fitting: dict[str, Any] = {
        "model: small": await ask(model, "Hi", model="small"),
        "turn: 2": await ask(model, "Hi", "Hello.", "Hi"),
        "round: 1": await ask(model, "Hi", *called(("clock", "noon"))),
        "system: terse": await ask(model, {"role": "system", "content": "Be TERSE."}, "Hi"),
        "tools: [clock]": await ask(model, "Hi", tools=[tool("clock"), tool("map")]),
    }
    assert {key: came.text for key, came in fitting.items()} == {
        key: "this" if key == when else "other" for key in fitting
    }


async def test_a_tool_s_result_is_answered_by_what_it_holds(script: Any) -> None:
    model = script(
        """
        answers:
        - {when: {user: what is, tool_result: "42"}, text: forty-two}
        - {when: {tool_result: {pattern: "4."}}, text: forty-something}
        - {when: what is, calls: [{name: calculator, arguments: {expression: 2*21}}]}
        """
    )
    assert (await ask(model, "What is it?")).calls == [ToolCall("call_1_1", "calculator", {"expression": "2*21"})]
    assert (await ask(model, "What is it?", *called(("calculator", "42")))).text == "forty-two"
    assert (await ask(model, "And now?", *called(("calculator", "no"), ("calculator", "43")))).text == "forty-something"
    error, _ = await refused(model, "What is it?", *called(("calculator", "none")))
    assert "a tool answered “none”" in error.message


async def test_a_call_without_an_answer_is_refused_with_the_file_and_with_what_came(script: Any) -> None:
    model = script("answers:\n- {when: weather, text: fine}\n")
    error, came = await refused(model, "Tell me " + "more " * 50, model="small", tools=[tool("clock")])
    assert (error.fault, came.parts) == ("rejected", [])
    assert error.message.startswith("answers.yaml has no answer for this call: model small; turn 1; round 0; user said")
    assert "“Tell me more more" in error.message
    assert "tools clock" in error.message
    assert len(error.message) < 300


async def test_a_pattern_is_looked_for_in_time_linear_in_the_text(script: Any) -> None:
    model = script("answers:\n- {when: {user: {pattern: '((a|a)*)*((a|b)+)+c$'}}, text: found}\n- text: no\n")
    assert (await ask(model, "a" * 50_000)).text == "no"
    assert (await ask(model, "x" + "ab" * 500 + "c")).text == "found"


# ── how it comes ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_usage_is_what_the_script_says_else_an_estimate_or_none(script: Any) -> None:
    model = script(
        """
        answers:
        - {when: told, usage: {input_tokens: 7, output_tokens: 9, cost_usd: "0.0021"}}
        - {when: none, text: hello, usage: null}
        - {text: 12345678, finish: length}
        """.replace("12345678", '"12345678"')
    )
    assert (await ask(model, "told")).usage == Usage(7, 9, Decimal("0.0021"))
    assert (await ask(model, "none")).usage is None
    came = await ask(model, "1234")
    assert came.usage == Usage(5, 2)
    assert came.finish == "length"


async def test_delays_are_waited_out_before_the_first_piece_and_between_pieces(script: Any, waits: Waits) -> None:
    await ask(script("answers:\n- {text: abc, chunk_chars: 1, delay_s: 2, chunk_delay_s: 0.5}\n"), "Hi")
    assert waits.seconds == [2, 0.5, 0.5]


# ── faults ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("429", "rate_limited"),
        ("500", "unavailable"),
        ("401", "unauthorized"),
        ("400", "rejected"),
        ("504", "timeout"),
        ("malformed", "malformed"),
        ("unavailable", "unavailable"),
        ("hang", "timeout"),
    ],
)
async def test_a_fault_comes_instead_of_the_answer(script: Any, fault: str, kind: str) -> None:
    error, came = await refused(script(f"answers:\n- {{fault: {fault}, text: never}}\n"), "Hi")
    assert (error.fault, came.parts) == (kind, [])


@pytest.mark.parametrize(("fault", "text"), [("cut", "abc"), ("{kind: cut, after_chars: 4}", "abcd")])
async def test_a_stream_is_cut_in_the_middle(script: Any, fault: str, text: str) -> None:
    error, came = await refused(script(f"answers:\n- {{text: abcdef, fault: {fault}}}\n"), "Hi")
    assert (error.fault, came.text, came.finish) == ("unavailable", text, None)


# ── the file ─────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_each_fault_of_the_file_is_reported_with_its_line_and_key(script: Any) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        script(
            """answers:
- wen: weather
- when: {user: {pattern: "(?=x)"}, turn: -1}
  text: 7
- calls:
  - {nam: x}
- fault: cutt
- {fault: 418, delay_s: -1, finish: ended}
- {text: a, json: {}, times: 0, usage: {cost_usd: much}}
- {tools: x, calls: [{name: x, arguments: [1]}]}
"""
        )
    faults = {fault.pointer: fault.message for fault in caught.value.details}
    assert faults == {
        "answers.yaml:2:answers[0].wen": "unknown key `wen`; did you mean `when`?",
        "answers.yaml:3:answers[1].when.user.pattern": "this pattern is not taken: invalid perl operator: (?=",
        "answers.yaml:3:answers[1].when.turn": "expected at least 0, came -1 (a number)",
        "answers.yaml:4:answers[1].text": "expected text, came 7 (a number); put it in quotes to make it text",
        "answers.yaml:6:answers[2].calls[0].nam": "unknown key `nam`; did you mean `name`?",
        "answers.yaml:6:answers[2].calls[0].name": "`name` is missing",
        "answers.yaml:7:answers[3].fault.kind": "expected 'unauthorized', 'rejected', 'too_long', 'withheld', "
        "'rate_limited', 'unavailable', 'timeout', 'malformed', 'hang' or 'cut', came \"cutt\" (text)",
        "answers.yaml:8:answers[4].fault.kind": "expected 'unauthorized', 'rejected', 'too_long', 'withheld', "
        "'rate_limited', 'unavailable', 'timeout', 'malformed', 'hang' or 'cut', came 418 (a number)",
        "answers.yaml:8:answers[4].delay_s": "expected at least 0, came -1 (a number)",
        "answers.yaml:8:answers[4].finish": "expected 'stop', 'length', 'tool_calls', 'content_filter' or "
        "'refusal', "
        'came "ended" (text)',
        "answers.yaml:9:answers[5].json": "`text` stands here already; leave one of the two out",
        "answers.yaml:9:answers[5].times": "expected at least 1, came 0 (a number)",
        "answers.yaml:9:answers[5].usage.cost_usd": 'expected a number such as "0.0021", came "much" (text)',
        "answers.yaml:10:answers[6].tools": "unknown key `tools`; known here: calls, chunk_chars, "
        "chunk_delay_s, delay_s, fault, finish, text, thought, times, usage, when",
        "answers.yaml:10:answers[6].calls[0].arguments": "expected a mapping, came a list",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "answers.yaml:1: the file is empty; expected a mapping with `answers`"),
        ("- text: x", "answers.yaml:1: expected a mapping with the one key `answers`"),
        ("answer: []", "answers.yaml:1: expected a mapping with the one key `answers`"),
        ("answers: x", 'answers.yaml:1:answers: expected a list, came "x" (text)'),
        ("answers: [", "answers.yaml:1: this is not YAML"),
    ],
)
def test_a_file_that_is_no_script_is_refused(script: Any, text: str, message: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        script(text)
    assert any(f"{fault.pointer}: {fault.message}".startswith(message) for fault in caught.value.details)
