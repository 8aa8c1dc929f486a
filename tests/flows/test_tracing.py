"""OpenTelemetry spans mirror causes, and a trace goes on after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from organism.bootstrap import Parts, tracing_of
from organism.errors import ConfigInvalid
from organism.events.vocabulary import StepStarted, ThreadCompleted
from organism.testing import running
from organism.tracing import Tracing
from tests.flows.world import MakeWorld

HELLO = Path(__file__).parents[2] / "organism.yaml"


class Collector:
    """What was exported, over all lives."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()

    def tracing(self, service: str) -> Tracing:
        """A life's tracing; its exporter shuts down with it, so each life has one."""
        self.before = self.spans()
        self.exporter = InMemorySpanExporter()
        return Tracing(SimpleSpanProcessor(self.exporter), service)

    def spans(self) -> list[ReadableSpan]:
        """All spans, oldest first."""
        return [*getattr(self, "before", []), *self.exporter.get_finished_spans()]

    @property
    def parts(self) -> Parts:
        """The organism's parts with this in them."""
        return Parts(tracing=self.tracing)


@pytest.fixture
def collector() -> Collector:
    """A collector."""
    return Collector()


def parent(span: ReadableSpan, spans: list[ReadableSpan]) -> str | None:
    """The name of the span that it lies below."""
    found = [other.name for other in spans if span.parent and other.context.span_id == span.parent.span_id]
    return found[0] if found else None


async def test_a_handling_is_a_span_below_the_handling_that_caused_it(collector: Collector) -> None:
    async with running(HELLO, parts=collector.parts) as o:
        done = await o.inject("greeter", {"name": "Dan"}, wait=True)
    spans = collector.spans()
    assert {span.name: parent(span, spans) for span in spans} == {
        "greeter Greeting": None,
        "shouter GreetingResponse": "greeter Greeting",
        "response-handler ShoutedResponse": "shouter GreetingResponse",
    }
    assert len({span.context.trace_id for span in spans}) == 1
    assert all(span.attributes and span.attributes["organism.thread"] == done.thread_id for span in spans)
    assert all(span.status.status_code is StatusCode.OK for span in spans)
    assert all(span.start_time and span.end_time and span.start_time <= span.end_time for span in spans)


async def test_each_injection_is_a_trace_of_its_own(collector: Collector) -> None:
    async with running(HELLO, parts=collector.parts) as o:
        for name in ("Dan", "Eve"):
            await o.inject("greeter", {"name": name}, wait=True)
    assert len({span.context.trace_id for span in collector.spans()}) == 2


async def test_no_payload_is_in_a_span(collector: Collector) -> None:
    async with running(HELLO, parts=collector.parts) as o:
        await o.inject("greeter", {"name": "canary-4711"}, wait=True)
    assert collector.spans()
    assert not any("canary" in span.to_json() for span in collector.spans())


async def test_failed_attempts_are_events_of_the_span_and_a_dead_letter_is_its_error(
    world: MakeWorld, collector: Collector
) -> None:
    made = world(
        "async def fails(payload: Ask, metadata):\n    raise ValueError('no')\n",
        {"fails": {}},
        retry={"attempts": 2, "base_delay_s": 0.01},
    )
    async with running(made.config, parts=collector.parts) as o:
        await o.inject("fails", {"text": "x"}, wait=True)
    (span,) = collector.spans()
    assert (span.status.status_code, span.attributes and span.attributes["organism.attempts"]) == (StatusCode.ERROR, 2)
    assert [event.attributes and event.attributes["error"] for event in span.events] == ["ValueError: no"]


async def test_a_trace_goes_on_after_a_crash(
    world: MakeWorld, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """
async def first(payload: Ask, metadata):
    return HandlerResponse(payload, to="second")

async def second(payload: Ask, metadata):
    await metadata.effect("wait", wait, kind="idempotent")
    return HandlerResponse.respond(Told("done"))

async def wait(key):
    await asyncio.sleep(float(os.environ["PAUSE"]))
"""
    made = world("import os\n" + source, {"first": {"peers": ["second", "console"]}, "second": {}})
    monkeypatch.setenv("PAUSE", "60")
    async with made.running(parts=collector.parts) as o:
        sent = await o.inject("first", {"text": "x"})
        await o.until(StepStarted, sent.thread_id)
        await o.crash()
    monkeypatch.setenv("PAUSE", "0")
    async with made.running(parts=collector.parts) as o:
        await o.until(ThreadCompleted, sent.thread_id)
    spans = collector.spans()
    assert [(span.name, parent(span, spans)) for span in spans][:2] == [
        ("first Ask", None),
        ("second Ask", "first Ask"),
    ]
    assert len({span.context.trace_id for span in spans}) == 1


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"OTEL_SERVICE_NAME": "x"},
        {"OTEL_TRACES_EXPORTER": "none"},
        {"OTEL_TRACES_EXPORTER": "console", "OTEL_SDK_DISABLED": "true"},
    ],
)
def test_nothing_is_traced_unless_the_environment_asks_for_it(environment: dict[str, str]) -> None:
    assert tracing_of(environment, "x") is None


def test_what_the_environment_asks_for_is_used() -> None:
    tracing = tracing_of({"OTEL_TRACES_EXPORTER": "console"}, "x")
    assert tracing is not None
    tracing.close()


def test_an_exporter_that_is_not_installed_keeps_the_organism_from_starting() -> None:
    with pytest.raises(ConfigInvalid, match="no exporter 'abacus'"):
        tracing_of({"OTEL_TRACES_EXPORTER": "abacus"}, "x")
