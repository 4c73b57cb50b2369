"""PROTOCOL, "Records as spans": what a trace shows, and what it never shows."""

from __future__ import annotations

import asyncio
import io
import json
import threading

import pytest
from opentelemetry.sdk.trace import SpanProcessor
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, StatusCode

from agent_hooks import (
    ALLOW,
    AgentContextBuilder,
    CompositionConfig,
    InterceptionEmitter,
    SyncInterceptionEmitter,
    Verdict,
)
from agent_hooks.core.call import Call
from agent_hooks.telemetry import Tracing, console_tracing, otlp_tracing

TRACE = {"trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7"}
CANARY = "canary-7f3a"


class Keep(SpanProcessor):
    def __init__(self):
        self.spans = []

    def on_end(self, span):
        self.spans.append(span)


class Answers:
    def __init__(self, answer):
        self.answer = answer

    def intercept(self, context):
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Elsewhere:
    """Stands where a plugin process would: it sees only the call."""

    is_remote = True

    def __init__(self):
        self.calls: list[Call] = []

    def start(self, call, done):
        self.calls.append(call)
        done(ALLOW)
        return lambda _: None


def tool_call(trace=None, **args):
    builder = AgentContextBuilder(agent_id="a", framework="f", session_id="s-1")
    if trace is not None:
        builder.with_l2(trace=trace)
    return builder.pre_tool_call(call_id="c", name="t", args=args)


def emit(*interceptors, context=None, **options):
    keep = Keep()
    tracing = Tracing(keep)
    emitter = SyncInterceptionEmitter(observer=tracing, **options)
    for index, interceptor in enumerate(interceptors):
        emitter.register(interceptor, name=f"i{index}")
    record = emitter.emit_unchecked(context or tool_call())
    tracing.shutdown()
    return record, {span.name: span for span in keep.spans}


def test_an_emission_is_one_internal_span_with_the_records_projection():
    record, spans = emit(Answers(Verdict.deny(reason="no")))
    span = spans["agent_hooks.emission pre_tool_call"]
    assert span.kind is SpanKind.INTERNAL
    assert span.attributes["agent_hooks.decision"] == "deny"
    assert span.attributes["agent_hooks.reason"] == "no"
    assert span.attributes["agent_hooks.interceptor.name"] == "i0"
    assert span.attributes["agent_hooks.session.id"] == "s-1"
    assert span.attributes["agent_hooks.input_identity"] == record.input_identity
    assert span.start_time <= span.end_time


def test_the_parent_is_the_contexts_trace_block():
    _, spans = emit(Answers(ALLOW), context=tool_call(TRACE))
    span = spans["agent_hooks.emission pre_tool_call"]
    assert f"{span.context.trace_id:032x}" == TRACE["trace_id"]
    assert f"{span.parent.span_id:016x}" == TRACE["span_id"]
    assert span.parent.is_remote


@pytest.mark.parametrize(
    "trace", [None, {"trace_id": "x"}, {"trace_id": "0" * 32, "span_id": "0" * 16}, {"span_id": 5}]
)
def test_without_a_usable_trace_block_an_emission_is_a_root(trace):
    _, spans = emit(Answers(ALLOW), context=tool_call(trace))
    span = spans["agent_hooks.emission pre_tool_call"]
    assert span.parent is None
    assert span.context.trace_id != 0


def test_a_plugins_call_is_a_client_span_whose_ids_the_plugin_was_sent():
    elsewhere = Elsewhere()
    _, spans = emit(elsewhere, context=tool_call(TRACE))
    call = spans["agent_hooks.intercept i0"]
    assert call.kind is SpanKind.CLIENT
    assert call.attributes["rpc.service"] == "agent_hooks.v1.InterceptorService"
    assert call.parent.span_id == spans["agent_hooks.emission pre_tool_call"].context.span_id
    sent = elsewhere.calls[0].traceparent
    assert sent == f"00-{TRACE['trace_id']}-{call.context.span_id:016x}-01"


def test_an_interceptor_in_process_is_no_remote_call():
    _, spans = emit(Answers(ALLOW))
    assert spans["agent_hooks.intercept i0"].kind is SpanKind.INTERNAL
    assert "rpc.system" not in spans["agent_hooks.intercept i0"].attributes


def test_without_a_tracer_the_contexts_own_trace_goes_to_the_plugin():
    elsewhere = Elsewhere()
    SyncInterceptionEmitter().register(elsewhere).emit_unchecked(tool_call(TRACE))
    assert elsewhere.calls[0].traceparent == f"00-{TRACE['trace_id']}-{TRACE['span_id']}-01"


def test_a_policys_deny_is_no_error_and_a_failure_is():
    _, denied = emit(Answers(Verdict.deny(reason="policy")))
    assert denied["agent_hooks.emission pre_tool_call"].status.status_code is StatusCode.UNSET
    _, failed = emit(Answers(ValueError(CANARY)))
    span = failed["agent_hooks.emission pre_tool_call"]
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["error.type"] == "host_error:interceptor_failed"
    assert failed["agent_hooks.intercept i0"].status.status_code is StatusCode.ERROR


def test_summaries_and_warnings_are_events():
    _, spans = emit(
        Answers(Verdict.warn(reason="w")), Answers(ALLOW), composition=CompositionConfig.run_all()
    )
    events = spans["agent_hooks.emission pre_tool_call"].events
    assert [event.name for event in events] == [
        "agent_hooks.verdict", "agent_hooks.verdict", "agent_hooks.warning",
    ]  # fmt: skip
    assert events[2].attributes["agent_hooks.warning.reason"] == "w"


def test_a_call_that_was_given_up_ends_with_its_emission():
    class Hangs:
        async def intercept(self, context):
            await asyncio.Event().wait()

    keep = Keep()
    tracing = Tracing(keep)
    emitter = InterceptionEmitter(observer=tracing, timeout=0.05).register(Hangs(), name="slow")
    record = asyncio.run(emitter.emit_unchecked(tool_call()))
    tracing.shutdown()
    assert record.verdict.reason == "host_error:interceptor_timeout"
    call = next(span for span in keep.spans if span.name == "agent_hooks.intercept slow")
    assert call.attributes["error.type"] == "host_error:interceptor_timeout"
    assert call.end_time >= call.start_time


def test_no_content_reaches_a_span():
    rewrite = Verdict.rewrite("$target.secret", CANARY)
    context = tool_call(TRACE, secret=CANARY)
    stream = io.StringIO()
    tracing = console_tracing(stream)
    emitter = SyncInterceptionEmitter(observer=tracing)
    emitter.register(Answers(rewrite)).register(Answers(ValueError(CANARY)))
    emitter.emit_unchecked(context)
    tracing.shutdown()
    assert CANARY not in stream.getvalue()
    assert len([json.loads(line) for line in stream.getvalue().splitlines()]) == 3


def test_an_exporter_that_fails_costs_no_record_and_no_verdict():
    class Broken(SpanProcessor):
        def on_end(self, span):
            raise RuntimeError(CANARY)

    tracing = Tracing(Broken())
    emitter = SyncInterceptionEmitter(observer=tracing).register(Answers(ALLOW))
    assert all(emitter.emit_unchecked(tool_call()).proceeds for _ in range(3))
    assert len(emitter.results) == 3
    tracing.shutdown()


def test_a_burst_of_ten_thousand_emissions_loses_no_span():
    exported = []
    release = threading.Event()

    class Slow(SpanExporter):
        def export(self, spans):
            release.wait()
            exported.extend(spans)
            return SpanExportResult.SUCCESS

    from agent_hooks.telemetry import spans as module

    tracing = module._batching(Slow())
    emitter = SyncInterceptionEmitter(observer=tracing).register(Elsewhere(), name="p")
    context = tool_call()
    for _ in range(10_000):
        emitter.emit_unchecked(context)
    release.set()
    tracing.shutdown()
    assert len(exported) == 20_000


def test_spans_go_out_over_otlp():
    from concurrent import futures

    import grpc

    received = []

    class Collector(grpc.GenericRpcHandler):
        def service(self, details):
            return grpc.unary_unary_rpc_method_handler(
                lambda request, _: received.append((details.method, request)) or b""
            )

    server = grpc.server(futures.ThreadPoolExecutor(1))
    server.add_generic_rpc_handlers((Collector(),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    tracing = otlp_tracing(f"http://127.0.0.1:{port}")
    SyncInterceptionEmitter(observer=tracing).register(Answers(ALLOW)).emit_unchecked(tool_call())
    tracing.shutdown()
    server.stop(None)
    assert received[0][0].endswith("TraceService/Export")
    assert b"agent_hooks.emission pre_tool_call" in received[0][1]
