"""OpenTelemetry spans, made of the log's events (extra ``otel``).

A span is one message's handling, from its first start to its end; its parent is the handling that sent the message, its
trace the injection at the root. Both ids are digests of the log's ids, so a trace continues after a restart without any
stored state. A follower of the log makes them; the pump does not know about it (law 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.metadata import entry_points
from typing import Final

import orjson
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import Event as SpanEvent
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from organism.errors import ConfigInvalid
from organism.events import vocabulary as events
from organism.events.record import Record
from organism.log.log import EventFilter, EventLog
from organism.views.views import ViewStore

End = events.MessageHandled | events.MessageDead | events.MessageDropped
TYPES: Final = (
    events.MessageSent,
    events.MessageStarted,
    events.MessageRetried,
    events.MessageHandled,
    events.MessageDead,
    events.MessageDropped,
)
ASKING: Final = ("OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
"""Any of these variables turns spans on."""
EXPORTERS: Final = "opentelemetry_traces_exporter"
OTLP: Final = {"otlp": "otlp_proto_http"}
_TRACE_BYTES: Final = 16
_SPAN_BYTES: Final = 8


@dataclass(slots=True)
class Handling:
    """A handling that has not ended."""

    sender: str
    type: str
    cause: str | None
    began_us: int = 0
    attempts: int = 0
    failures: list[SpanEvent] = field(default_factory=list)


def processor_of(environment: Mapping[str, str]) -> SpanProcessor | None:
    """The processor of spans that the ``OTEL_…`` variables configure; None if they configure none.

    Raises ``ConfigInvalid`` for an exporter that is not installed.
    """
    is_off = environment.get("OTEL_SDK_DISABLED", "").lower() == "true"
    name = environment.get(ASKING[0], "otlp")
    if is_off or name == "none" or not any(environment.get(variable) for variable in ASKING):
        return None
    found = next(iter(entry_points(group=EXPORTERS, name=OTLP.get(name, name))), None)
    if found is None:
        advice = "install its package, for otlp opentelemetry-exporter-otlp"
        raise ConfigInvalid(f"There is no exporter {name!r}; {advice}.")
    make: Callable[[], SpanExporter] = found.load()
    return BatchSpanProcessor(make())


class Tracing:
    """Makes spans of the logs of all tenants and gives them to the processor."""

    def __init__(self, processor: SpanProcessor, service: str) -> None:
        self._processor = processor
        own = Resource.create()  # of OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES
        is_named = not str(own.attributes[SERVICE_NAME]).startswith("unknown_service")
        self._resource = own if is_named else own.merge(Resource({SERVICE_NAME: service}))

    async def follow(self, tenant: str, log: EventLog, views: ViewStore, after: int) -> None:
        """Until the log closes, make a span of each handling that ends after the position ``after``."""
        spans = Spans(tenant, self._resource)
        async for records in log.follow(after, EventFilter(types=TYPES)):
            for record in records:
                event = record.event
                if isinstance(event, events.MessageStarted) and not spans.knows(event.message):
                    spans.recall(await views.row("messages", event.message))
                for span in spans.take(record):
                    self._processor.on_end(span)

    def close(self) -> None:
        """Send the remaining spans."""
        self._processor.shutdown()


class Spans:
    """Folds one tenant's events into spans."""

    def __init__(self, tenant: str, resource: Resource) -> None:
        self._tenant = tenant
        self._resource = resource
        self._open: dict[str, Handling] = {}

    def knows(self, message: str) -> bool:
        """Whether it has seen the message being sent."""
        return message in self._open

    def recall(self, row: bytes | None) -> None:
        """Take a message that was sent before this process started from its row."""
        if row is not None:
            message = orjson.loads(row)
            self._open[message["id"]] = Handling(message["from"], message["payload_type"], message["cause"])

    def take(self, record: Record[events.Event]) -> Iterator[ReadableSpan]:
        """Take an event; gives the span that it ends."""
        event = record.event
        match event:
            case events.MessageSent():
                self._open[event.message] = Handling(event.sender, event.type, record.cause)
            case events.MessageStarted() if (handling := self._open.get(event.message)) is not None:
                handling.began_us = handling.began_us or record.at
                handling.attempts = event.attempt
            case events.MessageRetried() if (handling := self._open.get(event.message)) is not None:
                attributes: dict[str, str | int] = {"attempt": event.attempt, "error": event.error}
                handling.failures.append(SpanEvent("retry", attributes, timestamp=record.at * 1000))
            case events.MessageHandled() | events.MessageDead() | events.MessageDropped():
                ended = self._open.pop(event.message, None)
                if ended is not None and ended.began_us:
                    yield self._span(ended, record, event)

    def _span(self, handling: Handling, record: Record[events.Event], end: End) -> ReadableSpan:
        trace = _trace_id(record.correlation or "")
        outcome = end.outcome if isinstance(end, events.MessageHandled) else end.event_type.removeprefix("message_")
        return ReadableSpan(
            name=f"{end.agent} {handling.type}",
            context=_context(trace, end.message),
            parent=_context(trace, handling.cause) if handling.cause else None,
            resource=self._resource,
            attributes={
                "organism.tenant": self._tenant,
                "organism.thread": record.thread or "",
                "organism.message": end.message,
                "organism.agent": end.agent,
                "organism.from": handling.sender,
                "organism.payload_type": handling.type,
                "organism.attempts": handling.attempts,
                "organism.outcome": outcome,
                "organism.position": record.position,
            },
            events=handling.failures,
            kind=SpanKind.CONSUMER,
            status=Status(StatusCode.ERROR, end.code) if isinstance(end, events.MessageDead) else Status(StatusCode.OK),
            start_time=handling.began_us * 1000,
            end_time=record.at * 1000,
        )


def _trace_id(correlation: str) -> int:
    return int.from_bytes(sha256(correlation.encode()).digest()[:_TRACE_BYTES])


def _context(trace: int, message: str) -> SpanContext:
    span = int.from_bytes(sha256(message.encode()).digest()[:_SPAN_BYTES])
    return SpanContext(trace, span, is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))
