"""Spans: one per emission, one per call of an interceptor, built off the calling path.

Ids are drawn when an emission begins, so that a call's `traceparent` can be
sent with it; the spans themselves are made on a thread of their own from the
finished record. Sampling and an exporter's outage lose spans, never records.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SimpleSpanProcessor,
    SpanExporter,
)
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from agent_hooks.core.effects import Failed
from agent_hooks.core.record import InterceptionRecord
from agent_hooks.telemetry.attributes import (
    Attributes,
    emission_attributes,
    emission_events,
    emission_name,
    emission_status,
)

_log = logging.getLogger("agent_hooks.telemetry")

_SCOPE = InstrumentationScope("agent_hooks")
_RPC: Attributes = {
    "rpc.system": "grpc",
    "rpc.service": "agent_hooks.v1.InterceptorService",
    "rpc.method": "Intercept",
}
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)
_QUEUE = 65536
"""Spans that may wait for the exporter: a burst of 10,000 emissions fits."""


@dataclass(slots=True)
class _CallTrace:
    name: str | None
    remote: bool
    span_id: int
    start: int
    end: int = 0
    error: str | None = None


@dataclass(slots=True)
class EmissionTrace:
    """One emission's ids and times (ns since the epoch) while it runs."""

    tracing: Tracing
    trace_id: int
    span_id: int
    parent_id: int | None
    start: int
    calls: dict[int, _CallTrace] = field(default_factory=dict)
    finish: int = 0
    record: InterceptionRecord | None = None

    def calling(self, index: int, name: str | None, remote: bool) -> str:
        """A call begins; returns its W3C traceparent."""
        span_id = _span_id()
        self.calls[index] = _CallTrace(name, remote, span_id, time.time_ns())
        return f"00-{self.trace_id:032x}-{span_id:016x}-01"

    def called(self, index: int, reply: object) -> None:
        """A call is over; only the first word counts."""
        call = self.calls[index]
        if call.end:
            return
        call.end = time.time_ns()
        if isinstance(reply, Failed):
            call.error = reply.reason.value

    def end(self, record: InterceptionRecord) -> None:
        """The emission is over; its spans follow elsewhere."""
        self.finish = time.time_ns()
        self.record = record
        self.tracing.queue(self)


class Tracing:
    """Turns finished emissions into spans for a span processor.

    Pass it to an emitter as `observer`. Call `shutdown` at the end: it hands
    over what is queued and flushes the processor.

    Args:
        processor: any OpenTelemetry span processor, usually a batching one.
        resource: who emits.
    """

    def __init__(self, processor: SpanProcessor, resource: Resource | None = None) -> None:
        self._processor = processor
        self._resource = resource or Resource.create({"service.name": "agent-hooks-host"})
        self._queue: SimpleQueue[EmissionTrace | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="agent-hooks-tracing", daemon=True)
        self._thread.start()

    def begin(self, context: object) -> EmissionTrace:
        """An emission begins; its parent is the context's trace block, where it has one."""
        trace = context.get("trace") if isinstance(context, dict) else None
        trace_id = _hex_id(trace, "trace_id", 32)
        parent = _hex_id(trace, "span_id", 16) if trace_id else None
        return EmissionTrace(
            self, trace_id or random.getrandbits(128) | 1, _span_id(), parent, time.time_ns()
        )

    def queue(self, finished: EmissionTrace) -> None:
        """Take a finished emission."""
        self._queue.put(finished)

    def shutdown(self) -> None:
        """Build and export what is queued, then stop."""
        self._queue.put(None)
        self._thread.join()
        self._processor.shutdown()

    def _work(self) -> None:
        while (finished := self._queue.get()) is not None:
            try:
                for span in self._spans(finished):
                    self._processor.on_end(span)
            except Exception as exc:  # noqa: BLE001 - tracing must not end with one bad span
                _log.error("a span could not be built: %s", type(exc).__name__)

    def _spans(self, trace: EmissionTrace) -> list[ReadableSpan]:
        record = trace.record
        assert record is not None
        own = self._context(trace.trace_id, trace.span_id)
        parent = trace.parent_id and self._context(trace.trace_id, trace.parent_id, remote=True)
        emission = self._span(
            emission_name(record),
            own,
            parent or None,
            SpanKind.INTERNAL,
            emission_attributes(record),
            (trace.start, trace.finish),
            emission_status(record),
            emission_events(record, trace.finish),
        )
        calls = [self._call(trace, own, index, call) for index, call in trace.calls.items()]
        return [*calls, emission]

    def _call(
        self, trace: EmissionTrace, parent: SpanContext, index: int, call: _CallTrace
    ) -> ReadableSpan:
        attributes: Attributes = {"agent_hooks.interceptor.index": index}
        if call.remote:
            attributes |= _RPC
        if call.name is not None:
            attributes["agent_hooks.interceptor.name"] = call.name
        if not call.end:  # given up: the host's clock had run out
            call.end, call.error = trace.finish, call.error or "host_error:interceptor_timeout"
        if call.error is not None:
            attributes["error.type"] = call.error
        return self._span(
            f"agent_hooks.intercept {call.name or index}",
            self._context(trace.trace_id, call.span_id),
            parent,
            SpanKind.CLIENT if call.remote else SpanKind.INTERNAL,
            attributes,
            (call.start, call.end),
            Status(StatusCode.ERROR, call.error) if call.error else Status(StatusCode.UNSET),
            [],
        )

    def _span(
        self,
        name: str,
        context: SpanContext,
        parent: SpanContext | None,
        kind: SpanKind,
        attributes: Attributes,
        times: tuple[int, int],
        status: Status,
        events: list[Any],
    ) -> ReadableSpan:
        return ReadableSpan(
            name,
            context=context,
            parent=parent,
            resource=self._resource,
            attributes=attributes,
            events=events,
            kind=kind,
            status=status,
            start_time=times[0],
            end_time=times[1],
            instrumentation_scope=_SCOPE,
        )

    def _context(self, trace_id: int, span_id: int, remote: bool = False) -> SpanContext:
        return SpanContext(trace_id, span_id, remote, _SAMPLED)


def otlp_tracing(endpoint: str | None = None) -> Tracing:
    """Spans to an OTLP collector over gRPC; the usual OTEL_… variables apply.

    Raises:
        RuntimeError: the extra `otlp` is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    except ImportError:
        raise RuntimeError("install agent-hooks-grpc[otlp] to export spans over OTLP") from None
    return _batching(OTLPSpanExporter(endpoint=endpoint, insecure=True))


def console_tracing(stream: Any) -> Tracing:
    """Spans as JSON on a stream, one object a line."""
    exporter = ConsoleSpanExporter(
        out=stream, formatter=lambda span: span.to_json(indent=None) + "\n"
    )
    return Tracing(SimpleSpanProcessor(exporter))


def _batching(exporter: SpanExporter) -> Tracing:
    return Tracing(BatchSpanProcessor(exporter, max_queue_size=_QUEUE))


def _span_id() -> int:
    return random.getrandbits(64) | 1


def _hex_id(trace: object, name: str, length: int) -> int | None:
    text = trace.get(name) if isinstance(trace, dict) else None
    if not isinstance(text, str) or len(text) != length:
        return None
    try:
        return int(text, 16) or None
    except ValueError:
        return None
