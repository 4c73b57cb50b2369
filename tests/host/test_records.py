"""Where records go: buffer, sink, file; and what is counted where they cannot."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from agent_hooks.core.points import InterceptionPoint
from agent_hooks.core.record import InterceptionRecord
from agent_hooks.host import NdjsonSink
from tests.core.support import context
from tests.host.support import EMITTERS, Sync, emitted

ROOT = Path(__file__).parent.parent.parent


def emitter(kind: Any, **more: Any) -> Any:
    return kind(**more).register(Sync(), "judge")


def numbered(number: int) -> Any:
    return context(sequence=number)


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def record() -> InterceptionRecord:
    made: InterceptionRecord = emitted(emitter(EMITTERS[1]), context())
    return made


# -- buffer and sink --


@pytest.mark.parametrize("kind", EMITTERS)
def test_buffer_keeps_the_latest_and_counts_what_it_pushed_out(kind: Any) -> None:
    """§10.3: nothing is lost unsaid."""
    one = emitter(kind).set_max_records(3)
    for number in range(5):
        emitted(one, numbered(number))
    assert [kept.sequence for kept in one.results] == [2, 3, 4]
    assert one.records_dropped == 2


@pytest.mark.parametrize("kind", EMITTERS)
def test_smaller_buffer_counts_what_it_pushes_out(kind: Any) -> None:
    """§10.3: whichever way a record goes that nobody has."""
    one = emitter(kind)
    for number in range(5):
        emitted(one, numbered(number))
    one.set_max_records(2)
    assert [kept.sequence for kept in one.results] == [3, 4]
    assert one.records_dropped == 3


@pytest.mark.parametrize("kind", EMITTERS)
def test_no_buffer_at_all_keeps_the_sink(kind: Any) -> None:
    """A host that keeps records elsewhere."""
    seen: list[Any] = []
    one = emitter(kind).set_max_records(0).set_record_sink(seen.append)
    emitted(one, context())
    assert (len(seen), one.results, one.records_dropped) == (1, [], 0)


@pytest.mark.parametrize("kind", EMITTERS)
def test_taking_empties_the_buffer_and_drops_nothing(kind: Any) -> None:
    """Each record is taken once."""
    one = emitter(kind)
    emitted(one, numbered(0))
    assert [taken.sequence for taken in one.take_records()] == [0]
    assert one.take_records() == one.results == []
    emitted(one, numbered(1))
    assert ([taken.sequence for taken in one.take_records()], one.records_dropped) == ([1], 0)


@pytest.mark.parametrize("kind", EMITTERS)
def test_results_are_a_copy(kind: Any) -> None:
    """A caller cannot take records away from another."""
    one = emitter(kind)
    emitted(one, context())
    one.results.clear()
    assert len(one.results) == 1


@pytest.mark.parametrize("kind", EMITTERS)
def test_sink_gets_every_record_in_order_before_the_caller_goes_on(kind: Any) -> None:
    """§10.3: the record precedes the action."""
    seen: list[Any] = []
    one = emitter(kind).set_record_sink(seen.append)
    for number in range(3):
        assert emitted(one, numbered(number)) is seen[-1]
    assert [kept.sequence for kept in seen] == [0, 1, 2]
    assert one.results == seen


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize("deny", [False, True], ids=["allowed", "denied"])
def test_sink_that_raises_changes_no_verdict_and_is_counted(
    kind: Any, deny: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """PROTOCOL Records as spans: an outage is said and counted."""

    def sink(_: Any) -> None:
        raise OSError("canary")

    one = kind().register(Sync(lambda _: {"decision": "deny"} if deny else {"decision": "allow"}))
    one.set_record_sink(sink)
    assert emitted(one, context()).proceeds is not deny
    assert one.records_dropped == 1
    assert len(one.results) == 1
    assert "canary" not in caplog.text
    assert "a record is lost" in caplog.text


@pytest.mark.parametrize("kind", EMITTERS)
def test_host_failure_is_a_record_like_any_other(kind: Any) -> None:
    """§6.3: a context that the host could not build."""
    seen: list[Any] = []
    one = emitter(kind).set_record_sink(seen.append)
    made = one.record_host_failure(
        InterceptionPoint.INPUT, "why", session_id="s", sequence=4, timestamp="t"
    )
    assert seen == one.results == [made]
    assert made.verdict.reason == "host_error:context_invalid"
    assert (made.session_id, made.sequence, made.timestamp) == ("s", 4, "t")
    assert (made.verdict.message, made.interceptors_registered) == ("why", 1)
    assert one.record_host_failure(InterceptionPoint.OUTPUT).sequence == -1


# -- the file --


@pytest.mark.parametrize("kind", EMITTERS)
def test_line_per_record_is_appended(kind: Any, tmp_path: Path) -> None:
    """§10.3: the record's JSON form, and what was there stays."""
    path = tmp_path / "records.ndjson"
    path.write_text('{"old": 1}\n')
    sink = NdjsonSink(path)
    one = emitter(kind).set_record_sink(sink)
    records = [emitted(one, numbered(number)) for number in range(3)]
    assert lines(path) == [{"old": 1}, *(made.to_wire() for made in records)]
    assert path.read_bytes().endswith(b"\n")
    assert (sink.written, sink.dropped) == (3, 0)
    sink.close()


def test_file_is_private(tmp_path: Path) -> None:
    """Records are for the operator."""
    NdjsonSink(tmp_path / "r").close()
    assert (tmp_path / "r").stat().st_mode & 0o777 == 0o600


def test_file_that_cannot_be_opened_is_an_error_at_once(tmp_path: Path) -> None:
    """Before any emission."""
    with pytest.raises(OSError, match="No such file"):
        NdjsonSink(tmp_path / "nowhere" / "r")
    with pytest.raises(OSError, match="directory"):
        NdjsonSink(tmp_path)


def test_threads_and_sinks_of_one_file_do_not_mix_lines(
    tmp_path: Path, record: InterceptionRecord
) -> None:
    """O_APPEND, one write per line."""
    path = tmp_path / "r"
    sinks = [NdjsonSink(path), NdjsonSink(path)]

    def write(sink: NdjsonSink) -> None:
        for _ in range(300):
            sink(record)

    crowd = [threading.Thread(target=write, args=(sink,)) for sink in sinks * 3]
    for thread in crowd:
        thread.start()
    for thread in crowd:
        thread.join()
    assert lines(path) == [record.to_wire()] * 1800
    assert [sink.written for sink in sinks] == [900, 900]


_WRITER = """
import sys
from agent_hooks.host import NdjsonSink
from agent_hooks import SyncInterceptionEmitter
from tests.core.support import context
from tests.host.support import Sync
emitter = SyncInterceptionEmitter().register(Sync()).set_record_sink(NdjsonSink(sys.argv[1]))
for number in range(200):
    emitter.emit(context(sequence=number, session=sys.argv[2]))
"""


def test_processes_of_one_file_do_not_mix_lines(tmp_path: Path) -> None:
    """The workers of one host, each with its own sink."""
    path = tmp_path / "r"
    crowd = [
        subprocess.Popen([sys.executable, "-c", _WRITER, str(path), f"s{number}"], cwd=ROOT)
        for number in range(3)
    ]
    assert [process.wait(60) for process in crowd] == [0, 0, 0]
    read = lines(path)
    for number in range(3):
        mine = [line["sequence"] for line in read if line["session_id"] == f"s{number}"]
        assert mine == list(range(200))


def test_full_disk_is_counted_and_never_raised(record: InterceptionRecord) -> None:
    """ENOSPC: the emission's verdict stands either way."""
    sink = NdjsonSink("/dev/full")
    for _ in range(3):
        sink(record)
    assert (sink.written, sink.dropped) == (0, 3)
    sink.close()


def test_closed_sink_counts(tmp_path: Path, record: InterceptionRecord) -> None:
    """And closes once."""
    sink = NdjsonSink(tmp_path / "r")
    sink.close()
    sink.close()
    sink(record)
    assert (sink.written, sink.dropped) == (0, 1)


def _limited(size: int) -> int:
    """Limit the size of files that this process writes; what it was before."""
    before, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    return before


def test_torn_line_ends_before_the_next_begins(tmp_path: Path, record: InterceptionRecord) -> None:
    """A line that was cut short spoils itself only, and is counted."""
    path = tmp_path / "r"
    sink = NdjsonSink(path)
    sink(record)
    size = path.stat().st_size
    before = _limited(size + size // 2)
    try:
        sink(record)  # half of it
        sink(record)  # none of it
    finally:
        _limited(before)
    assert (sink.written, sink.dropped) == (1, 2)
    sink(record)
    sink(record)
    first, torn, *rest = path.read_text().splitlines()
    assert [json.loads(line) for line in (first, *rest)] == [record.to_wire()] * 3
    with pytest.raises(ValueError, match=r"."):
        json.loads(torn)
    assert (sink.written, sink.dropped) == (3, 2)
    sink.close()


@pytest.mark.parametrize("kind", EMITTERS)
@pytest.mark.parametrize(
    "raw",
    [
        context() | {"session": {"id": "\ud800"}},
        context() | {"timestamp": "\udfff"},
        context() | {"sequence": 2**70},
        context() | {"sequence": -(2**70)},
        context() | {"trace": {"trace_id": "\ud800"}},
    ],
    ids=["session", "timestamp", "sequence", "negative_sequence", "trace"],
)
def test_record_of_a_hostile_envelope_reaches_the_file(kind: Any, raw: Any, tmp_path: Path) -> None:
    """SEMANTICS, hostile input: refused, and recorded where the record has to be."""
    sink = NdjsonSink(tmp_path / "r")
    one = emitter(kind).set_record_sink(sink)
    assert not emitted(one, raw).proceeds
    assert (sink.written, one.records_dropped) == (1, 0)
    [line] = lines(tmp_path / "r")
    assert line["verdict"]["reason"] == "host_error:context_invalid"


@pytest.mark.parametrize("kind", EMITTERS)
def test_record_with_an_interceptors_odd_name_reaches_the_file(kind: Any, tmp_path: Path) -> None:
    """A host's name for an interceptor is any text."""
    sink = NdjsonSink(tmp_path / "r")
    one = kind().register(Sync(), "a\nb\u2028😀").set_record_sink(sink)
    assert emitted(one, context()).proceeds
    [line] = (tmp_path / "r").read_bytes().splitlines()
    assert json.loads(line)["verdicts"][0]["name"] == "a\nb\u2028😀"


def test_sink_never_raises_whatever_the_record_holds(
    tmp_path: Path, record: InterceptionRecord
) -> None:
    """A record that cannot be written is counted."""
    sink = NdjsonSink(tmp_path / "r")
    object.__setattr__(record, "session_id", object())
    sink(record)
    assert (sink.written, sink.dropped) == (0, 1)


def test_cancelled_emission_reaches_the_file(tmp_path: Path) -> None:
    """HOUSE: the record is written before the driver re-raises."""
    sink = NdjsonSink(tmp_path / "r")

    class Sleeps:
        async def intercept(self, _: Any) -> None:
            await asyncio.sleep(600)

    one = EMITTERS[0]()
    one.register(Sleeps()).set_record_sink(sink)

    async def run() -> None:
        await asyncio.wait_for(one.emit(context()), 0.05)

    with pytest.raises(TimeoutError):
        asyncio.run(run())
    assert (sink.written, len(lines(tmp_path / "r"))) == (1, 1)
    assert os.path.exists(sink.path)
