"""A plugin that misbehaves as it is told. It speaks raw bytes and uses nothing of the project.

    bad.py [MODE]

The mode says what is wrong with the process. What is wrong with an answer is
said by each context: `"fault"` in the arguments of its tool call names one of
`ANSWERS` or `ACTS`; without it the answer is an allow. It never reads its
standard input.
"""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MODE = sys.argv[1] if len(sys.argv) > 1 else "serve"
ALLOW, DENY, TRANSFORM = 1, 2, 3


def varint(number: int) -> bytes:
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


def field(number: int, value: int | str | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value & (1 << 64) - 1)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def answer(decision: int, *more: bytes) -> bytes:
    return field(1, field(1, decision) + b"".join(more))


def rewrite(text: str, path: str = "$target.n", more: bytes = b"") -> bytes:
    return answer(TRANSFORM, field(6, field(1, path) + field(2, text) + more))


EVIDENCE_ENTRY = field(1, "k") + field(2, "v")

ANSWERS = {
    "allow": answer(ALLOW),
    "good_rewrite": rewrite("1"),
    **dict.fromkeys(
        ("id_of_another", "id_missing", "id_twice", "answers_twice", "ends_after"), answer(ALLOW)
    ),
    "garbage": b"\xff\xfe\xfd not a message",
    "empty_message": b"",
    "no_decision": field(1, b""),
    "unspecified_decision": answer(0),
    "unknown_decision": answer(99),
    "negative_decision": answer(-1),
    "decision_of_wrong_type": field(1, field(1, b"\x01")),
    "unknown_field_in_answer": answer(ALLOW) + field(9, 1),
    "unknown_field_in_verdict": answer(ALLOW, field(99, "x")),
    "unknown_field_in_warning": answer(ALLOW, field(4, field(1, "w") + field(7, 1))),
    "unknown_field_in_transform": rewrite("1", more=field(3, 1)),
    "unknown_field_in_evidence": answer(ALLOW, field(7, field(1, "a") + field(3, 1))),
    "unknown_field_in_map_entry": answer(ALLOW, field(7, field(2, EVIDENCE_ENTRY + field(3, 1)))),
    "reason_of_bad_utf8": answer(DENY, field(2, b"\xff\xfe")),
    "reason_of_surrogate_utf8": answer(DENY, field(2, b"\xed\xa0\x80")),
    "reserved_reason": answer(DENY, field(2, "host_error:no_interceptor")),
    "json_cut_short": rewrite('{"a":'),
    "json_empty": rewrite(""),
    "json_two_values": rewrite("1 2"),
    "json_duplicate_keys": rewrite('{"a":1,"a":2}'),
    "json_nan": rewrite("NaN"),
    "json_infinity": rewrite('{"a":-Infinity}'),
    "json_beyond_double": rewrite("1e400"),
    "json_lone_surrogate": rewrite('"\\ud800"'),
    "json_lone_surrogate_key": rewrite('{"\\ud800":1}'),
    "json_byte_order_mark": rewrite("\ufeff1"),
    "json_depth_10000": rewrite("[" * 10000 + "]" * 10000),
    "json_depth_129": rewrite("[" * 129 + "]" * 129),
    "approval_no_object": answer(DENY, field(5, "[]")),
    "approval_duplicate_keys": answer(DENY, field(5, '{"a":1,"a":2}')),
    "approval_on_allow": answer(ALLOW, field(5, "{}")),
    "transform_on_allow": answer(ALLOW, field(6, field(1, "$target.n") + field(2, "1"))),
    "transform_missing": answer(TRANSFORM),
    "evidence_too_large": answer(ALLOW, field(7, field(1, "x" * 10241))),
}


def _hang() -> None:
    time.sleep(600)


def _raise() -> None:
    raise RuntimeError("a bug of the author")


def _status(name: str, details: str = ""):
    def act(call) -> None:
        call.abort(getattr(grpc.StatusCode, name), details)

    return act


def _die() -> None:
    os._exit(9)


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _traceparent(call) -> bytes:
    headers = dict(call.invocation_metadata())
    return says_traceparent(headers.get("traceparent"))


def says_traceparent(traceparent: str | None) -> bytes:
    return answer(DENY, field(2, traceparent or "no traceparent"))


def _huge() -> bytes:
    return answer(ALLOW, field(3, b"x" * (20 << 20)))


ACTS = {
    "hang": lambda call: _hang(),
    "raise": lambda call: _raise(),
    "own_deadline_exceeded": _status("DEADLINE_EXCEEDED"),
    "own_cancelled": _status("CANCELLED"),
    "own_ok_details": _status("RESOURCE_EXHAUSTED", "too many"),
    "unavailable": _status("UNAVAILABLE"),
    "exit_in_call": lambda call: _die(),
    "killed_in_call": lambda call: _kill(),
    "says_traceparent": _traceparent,
    "says_how": lambda call: answer(DENY, field(2, "unary")),
    "answer_of_20_mib": lambda call: _huge(),
    "closes_its_socket": lambda call: SERVER.stop(None).wait(),
}


def argument(request: bytes, name: bytes) -> str | None:
    found = re.search(rb'"%s":"?([^",}]+)' % name, request)
    return found and found[1].decode()


def intercept(request: bytes, call) -> bytes:
    if MODE == "noise":
        print("half a line, then a line like a protocol's:\n1|1|unix|/x|grpc", flush=True)
    if started := argument(request, b"started"):
        Path(started).touch()
    if gate := argument(request, b"gate"):
        while not os.path.exists(gate):
            time.sleep(0.005)
    if seconds := argument(request, b"sleep"):
        time.sleep(float(seconds))
    fault = argument(request, b"fault") or "allow"
    reply = ANSWERS[fault] if fault in ANSWERS else ACTS[fault](call)
    if mark := argument(request, b"mark"):
        Path(mark).touch()
    return reply


def reply_on_stream(fault: str, request: bytes, said: bytes, reply: bytes) -> tuple[bytes, ...]:
    """The answers that follow one request."""
    whole = said + (field(2, b"")[:1] + reply[1:] if reply[:1] == field(1, b"")[:1] else reply)
    other = field(1, "0" * 32)
    match fault:
        case "id_of_another":
            return (other + whole[len(said) :],)
        case "id_missing":
            return (whole[len(said) :],)
        case "id_twice":
            return (whole + other,)
        case "answers_twice":
            return (whole, whole)
        case "says_how":
            return (said + field(2, answer(DENY, field(2, "stream"))[2:]),)
        case "says_traceparent":
            found = re.search(rb"\x12\x37(00-[0-9a-f-]+01)", request)
            return (said + field(2, says_traceparent(found and found[1].decode())[2:]),)
    return (whole,)


def intercept_stream(requests, call):
    if MODE == "stream_ahead":
        yield field(1, "0" * 32) + field(2, field(1, ALLOW))
    for request in requests:
        said = re.search(rb"\x12\x20[0-9a-f]{32}", request)[0]
        fault = argument(request, b"fault") or "allow"
        if fault == "ends":
            return
        reply = intercept(request, call)
        yield from reply_on_stream(fault, request, b"\x0a" + said[1:], reply)
        if fault == "ends_after":
            return


def described() -> bytes:
    protocol, spec, kind, points, more = 1, "agent-hooks/0.1", 1, range(1, 9), b""
    match MODE:
        case "describe_garbage":
            return b"\xff\xff\xff"
        case "describe_empty":
            return b""
        case "describe_protocol":
            protocol = 2
        case "describe_future":
            protocol, kind, points, more = 2, 9, (5, 99), field(77, "x")
        case "describe_spec":
            spec = "agent-hooks/7.3"
        case "describe_no_points":
            points = ()
        case "describe_unknown_point":
            points = (5, 99)
        case "describe_no_kind":
            kind = 0
        case "describe_unknown_kind":
            kind = 9
        case "describe_unknown_field":
            more = field(77, "x")
        case "describe_negative_limit":
            more = field(9, -1)
        case "stream" | "stream_ahead":
            more = field(7, "intercept_stream")
        case "stream_unserved":
            more = field(7, "intercept_stream") + field(9, 40)
        case "one_at_a_time":
            more = field(9, 1)
        case "resolver" | "resolver_hangs" | "resolver_garbage":
            kind = 2
    return (
        field(1, MODE)
        + field(3, protocol)
        + field(4, spec)
        + field(5, kind)
        + b"".join(field(6, point) for point in points)
        + more
    )


def describe(request: bytes, call) -> bytes:
    if MODE == "describe_status":
        call.abort(grpc.StatusCode.FAILED_PRECONDITION, "this plugin speaks version 2")
    if MODE == "describe_hangs":
        _hang()
    return described()


def configure(request: bytes, call) -> bytes:
    if MODE == "configure_refuses":
        call.abort(
            grpc.StatusCode.INVALID_ARGUMENT, "/rules/0/when: not an expression\n/limit: too small"
        )
    if MODE == "configure_hangs":
        _hang()
    return b""


def resolve(request: bytes, call) -> bytes:
    if MODE == "resolver_hangs":
        _hang()
    if MODE == "resolver_garbage":
        return b"\xff\xff\xff"
    identity = re.search(rb"sha256:[0-9a-f]{64}", request)
    echo = field(2, identity[0]) if identity else b""
    return field(1, field(1, 1) + echo + field(3, field(1, ALLOW)))


def shutdown(request: bytes, call) -> bytes:
    if MODE not in ("deaf", "daemon"):
        ENDING.set()
    return b""


def service(name: str, **methods):
    handlers = {
        method: grpc.unary_unary_rpc_method_handler(behaviour)
        for method, behaviour in methods.items()
    }
    return grpc.method_handlers_generic_handler(name, handlers)


def interceptor_service():
    handlers = {"Intercept": grpc.unary_unary_rpc_method_handler(intercept)}
    if MODE != "stream_unserved":
        handlers["InterceptStream"] = grpc.stream_stream_rpc_method_handler(intercept_stream)
    return grpc.method_handlers_generic_handler("agent_hooks.v1.InterceptorService", handlers)


def listen():
    server = grpc.server(ThreadPoolExecutor(100), options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers(
        [
            service(
                "agent_hooks.v1.PluginService",
                Describe=describe,
                Configure=configure,
                Shutdown=shutdown,
            ),
            interceptor_service(),
            service("agent_hooks.v1.ApprovalResolverService", Resolve=resolve),
            service("grpc.health.v1.Health", Check=lambda request, call: b"\x08\x01"),
        ]
    )
    server.add_insecure_port(os.environ["AGENT_HOOKS_PLUGIN_ADDRESS"].replace("unix://", "unix:"))
    server.start()
    return server


def flood() -> None:
    line = b"\x1b[31mall is well\x07" * 4096 + b"\n"
    end = time.monotonic() + 1
    while time.monotonic() < end:
        os.write(2, line)


def daemonise(marker: str, environment: dict[str, str]) -> None:
    """Leave a process behind that no group or session ties to this one."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            program = "import time; time.sleep(600)"
            os.execve(sys.executable, [sys.executable, "-c", program, marker], environment)
        os._exit(0)


def spawn_chain(marker: str) -> None:
    """A child in a session of its own, and a child of that in another."""
    sleeper = [sys.executable, "-c", "import time; time.sleep(600)", marker]
    program = (
        f"import subprocess, time; subprocess.Popen({sleeper!r}, start_new_session=True);"
        "time.sleep(600)"
    )
    subprocess.Popen([sys.executable, "-c", program, marker], start_new_session=True)


match MODE:
    case "exit":
        print("about to give up", file=sys.stderr)
        sys.exit(3)
    case "mute":
        for path in sys.argv[2:]:
            Path(path).touch()
        time.sleep(600)
    case "noise":
        sys.stdout.write("\x00\x1b[2J" + "noise " * 5000 + "\n1|1|unix|/x|grpc\n")
        sys.stdout.flush()
    case "flood":
        threading.Thread(target=flood, daemon=True).start()
    case "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    case "daemon":
        daemonise(sys.argv[2], {})
    case "helper":
        daemonise(sys.argv[2], dict(os.environ))
    case "chain":
        spawn_chain(sys.argv[2])

import grpc  # noqa: E402 - the modes above are quicker, and louder, without it

ENDING = threading.Event()
SERVER = listen()
ENDING.wait()
SERVER.stop(None)
os._exit(0)
