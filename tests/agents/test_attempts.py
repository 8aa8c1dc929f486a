"""A call is tried again, and elsewhere, where that may help; its time bounds it all."""

from __future__ import annotations

from typing import Any

import pytest

from organism.config.settings import Price
from organism.events.vocabulary import StepError
from organism.model.completion import CompleteError, TextDelta
from organism.pump.run.model_call import AnswerRestarted
from tests.agents.desk import fails, model, says


@pytest.mark.parametrize(("kind", "code"), [("rate_limited", "rate_limit_exceeded"), ("unavailable", "upstream_error")])
async def test_what_may_go_well_a_moment_later_is_tried_again_with_growing_waits(
    desk: Any, kind: str, code: str
) -> None:
    d = await desk(fails(kind, 1), fails(kind, 1, retry_after_s=20), says(times=1), fails(kind, None))
    done = await d.complete(d.begun())
    assert (done.text, done.outcome.attempts, done.called.attempts) == ("Hello, Dan.", 3, 3)
    assert d.waits == [0.75, 20.5]
    assert done.called.duration == 21_250_000
    failed = (await d.complete(d.begun(), 2)).outcome
    assert (failed.attempts, failed.error) == (
        3,
        StepError(code, f"m: The script says: {kind}."),
    )


@pytest.mark.parametrize("kind", ["unauthorized", "rejected", "malformed"])
async def test_what_would_fail_again_is_not_tried_again(desk: Any, kind: str) -> None:
    d = await desk(fails(kind), says())
    assert (await d.complete(d.begun())).outcome.attempts == 1


async def test_nobody_waits_longer_than_the_call_may_take(desk: Any) -> None:
    d = await desk(fails("rate_limited", retry_after_s=60), says(), of=model(timeout_s=30))
    done = await d.complete(d.begun())
    assert (done.outcome.attempts, d.waits) == (1, [])


async def test_all_attempts_together_take_no_longer_than_the_model_may(desk: Any) -> None:
    d = await desk(fails("unavailable", 1), fails("hang", 1), says(), of=model(timeout_s=30))
    done = await d.complete(d.begun())
    assert (done.outcome.error.code, done.outcome.attempts) == ("upstream_timeout", 2)
    assert [request.timeout_s for request in d.providers["m"].requests] == [30, 29.25]
    assert done.called.duration == 30_000_000


async def test_an_attempt_that_broke_off_is_sent_again(desk: Any) -> None:
    d = await desk(fails("cut", text="One, two, three, four.", after_chars=5), says("One and two."))
    done = await d.complete(d.begun())
    assert done.parts[:3] == [TextDelta("One, "), AnswerRestarted(), TextDelta("One and two.")]
    assert done.text == "One and two."


@pytest.mark.parametrize(
    "kind", ["unauthorized", "rejected", "rate_limited", "unavailable", "timeout", "malformed", "hang"]
)
async def test_another_model_answers_in_its_place_however_it_fails(desk: Any, kind: str) -> None:
    models = {
        "m": (model(fallback=("second", "third"), timeout_s=20), [fails(kind, None)]),
        "second": (model(), [fails("malformed", None)]),
        "third": (model(model="other", price=Price()), [says("third")]),
    }
    d = await desk(models=models)
    done = await d.complete(d.begun())
    assert (done.text, done.outcome.completion.model) == ("third", "third")
    assert (done.called.model, done.called.cost_source) == ("third", "zero")
    assert d.providers["third"].requests[0].model == "other"


async def test_if_all_fail_each_says_why(desk: Any) -> None:
    models = {
        "m": (model(fallback=("second",)), [fails("unauthorized", message="Set OPENAI_API_KEY.")]),
        "second": (model(), [fails("timeout", None, message="Too slow.")]),
    }
    d = await desk(models=models)
    failure = (await d.complete(d.begun())).outcome.error
    assert failure == StepError("upstream_timeout", "m: Set OPENAI_API_KEY. second: Too slow.")


async def test_what_goes_beyond_the_rate_waits_and_is_refused_if_that_takes_too_long(desk: Any) -> None:
    d = await desk(says(tokens=(6, 54)), of=model(rate_limit_tpm=600, timeout_s=30))
    held = [d.reserve(d.begun(), step, max_tokens=294) for step in range(4)]
    outcomes = [await d.gateway.call(call, lambda _: None) for call in held]
    assert [outcome.error for outcome in outcomes] == [None] * 4
    assert d.waits == []  # what a call did not use is there for the next
    d.registry.chain("m")[0].rate.take(960, d.purse.at)
    with pytest.raises(CompleteError) as caught:
        d.reserve(d.begun(), max_tokens=294)
    assert caught.value.code == "rate_limit_exceeded"
    assert (
        "m takes 600 tokens a minute (`rate_limit_tpm`); there is room for this call in 90 s." in caught.value.message
    )
    d.purse.at += 70_000_000
    assert (await d.complete(d.begun(), 9, max_tokens=294)).outcome.error is None
    assert d.waits == [20]


async def test_a_call_that_finds_no_room_in_time_once_it_is_its_turn_says_so(desk: Any) -> None:
    d = await desk(of=model(rate_limit_tpm=600, timeout_s=30))
    call = d.reserve(d.begun(), max_tokens=294)
    d.registry.chain("m")[0].rate.take(1200, d.purse.at)
    outcome = await d.gateway.call(call, lambda _: None)
    assert outcome.error == StepError(
        "rate_limit_exceeded", "m: There is room for it in 90 s (`rate_limit_tpm`).", retry_after_s=90
    )
    assert d.providers["m"].requests == []
