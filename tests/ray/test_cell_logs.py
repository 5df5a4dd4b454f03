"""Segments and the merge of event streams: nothing that was logged is lost, and all of it comes out in order."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import judging, runner
from kemu.runtime import loads
from kemu.runtime.host import segments
from kemu.runtime.ray.driver import events as event_streams
from kemu.runtime.ray.driver.cells import RemoteCell
from kemu.runtime.ray.driver.logs import merges
from kemu.runtime.runlog.frames import FILE_NAME, Writer
from tests.ray.world import Events


def unpack(payloads: Any) -> list[Any]:
    return [msgpack.unpackb(payload) for payload in payloads]


def test_what_is_appended_can_be_read_from_any_place(tmp_path: Path) -> None:
    segment = segments.Segment(tmp_path / "a" / "log.segment")
    for number in range(100):
        segment.append(number, "actor", "kind", {"n": number})
    for offset in (0, 50, 10, 99, 100):
        expected = [[number, "actor", "kind", {"n": number}] for number in range(offset, 100)]
        assert unpack(segment.read(offset, 1 << 20)) == expected
        assert unpack(segments.read_segment(segment.path, offset)) == expected
    segment.append(100, "actor", "kind", {"n": 100})
    assert unpack(segment.read(100, 1)) == [[100, "actor", "kind", {"n": 100}]]
    segment.close()
    assert len(list(segments.read_segment(segment.path))) == 101


def test_it_is_read_in_pieces(tmp_path: Path) -> None:
    segment = segments.Segment(tmp_path / "log.segment")
    for number in range(10):
        segment.append(number, "actor", "kind", {"data": b"x" * 1000})
    offset = 0
    while offset < 10:
        piece = segment.read(offset, 2500)
        assert 1 <= len(piece) <= 3
        offset += len(piece)
    assert segment.read(10, 2500) == []


def test_it_grows(tmp_path: Path) -> None:
    segment = segments.Segment(tmp_path / "log.segment")
    big = os.urandom(3 << 20)
    for number in range(4):
        segment.append(number, "actor", "kind", {"data": big})
    events = unpack(segments.read_segment(segment.path))
    assert [event[0] for event in events] == [0, 1, 2, 3]
    assert all(event[3]["data"] == big for event in events)


KILLED = """
import os, signal, sys
from pathlib import Path
from kemu.runtime.host import segments
segment = segments.Segment(Path(sys.argv[1]))
for number in range(1000):
    segment.append(number, "actor", "kind", {"n": number})
print(segment.events, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_every_event_outlives_the_kill_of_its_process(tmp_path: Path) -> None:
    path = tmp_path / "log.segment"
    ended = subprocess.run([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert ended.stdout == b"1000\n"
    assert [event[0] for event in unpack(segments.read_segment(path))] == list(range(1000))


@given(cut=st.integers(min_value=0, max_value=600), flip=st.booleans())
def test_a_damaged_segment_is_read_up_to_the_damage(
    tmp_path_factory: pytest.TempPathFactory, cut: int, flip: bool
) -> None:
    path = tmp_path_factory.mktemp("segments") / "log.segment"
    segment = segments.Segment(path)
    for number in range(20):
        segment.append(number, "actor", "kind", {"n": number})
    segment.close()
    whole = path.read_bytes()
    cut = min(cut, len(whole) - 1)
    path.write_bytes(whole[:cut] + (bytes([whole[cut] ^ 0x55]) + whole[cut + 1 :] if flip else b""))
    events: list[int] = []
    frame = (len(whole) - len(segments.MAGIC)) // 20
    at_a_frame = cut >= len(segments.MAGIC) and (cut - len(segments.MAGIC)) % frame < 8
    # What is too short for a frame is the end; anything else is damage.
    with contextlib.nullcontext() if at_a_frame and not flip else pytest.raises(segments.DamagedSegment):
        for payload in segments.read_segment(path):
            events.append(msgpack.unpackb(payload)[0])  # noqa: PERF401 - those before an error count
    assert events == list(range(len(events)))
    assert len(events) < 20
    assert len(events) == max(0, cut - len(segments.MAGIC)) // frame


def packed(time_ns: int, actor: str, number: int) -> bytes:
    payload: bytes = msgpack.packb((time_ns, actor, "kind", {"n": number}))
    return payload


def test_events_wait_until_every_cell_has_come_as_far() -> None:
    events = Events()
    merger = merges.LogMerger(events)
    merger.open((0, 1))
    merger.open((1, 1))
    merger.add((0, 1), [packed(10, "a", 0), packed(30, "a", 1)], 40)
    assert events == []
    merger.add((1, 1), [packed(20, "b", 0)], 30)
    assert [(time_ns, actor) for time_ns, actor, _, _ in events] == [(10, "a"), (20, "b")]
    merger.close((1, 1))
    assert [time_ns for time_ns, *_ in events] == [10, 20, 30]
    assert not merger.late


def test_events_that_come_too_late_are_told_with_their_cell(tmp_path: Path) -> None:
    events = Events()
    streams = event_streams.EventStreams(events, lambda: 50, print, loads.Loads(), 1.0, tmp_path)
    for number in (0, 1):
        streams.open(remote_cell(number, Path("nowhere")))
    for number, stamps in ((0, (10, 20)), (1, (10, 20)), (0, (5, 7)), (0, (30,)), (1, (30,))):
        streams._merger.reach(event_streams._DRIVER, 1 << 40)
        streams._merger.add((number, 1), [packed(each, "a", each) for each in stamps], stamps[-1] + 1)
    streams.flush()
    assert [(actor, data) for _, actor, kind, data in events if kind == "log.late"] == [
        ("cell/cell-0", {"events": 2, "by_ns": 16})
    ]


def remote_cell(number: int, segment: Path) -> Any:
    cell: Any = SimpleNamespace(
        source=(number, 1),
        name=f"cell-{number}",
        process=f"cell/cell-{number}",
        endpoint=SimpleNamespace(segment=str(segment), address="127.0.0.1"),
        is_local=True,
    )
    cell.recover_log = lambda offset: RemoteCell.recover_log(cell, offset)
    return cell


SCENARIO = """
apiVersion: kemu.dev/v1
kind: Scenario
metadata: {name: nothing}
spec:
  duration: 1s
  nodes: [{name: a, allocatable: {cpu: "1", memory: 1Gi}}]
"""


@pytest.mark.parametrize(
    ("harm", "known", "what"),
    [
        ("", 3, ""),
        ("gone", 0, "its log segment dead.segment is not within reach of the driver"),
        ("damaged", 2, "its log segment dead.segment cannot be read to the end: event 2 is not what was written"),
    ],
)
def test_a_run_whose_log_is_not_whole_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harm: str, known: int, what: str
) -> None:
    """A cell died, and not all that it had logged can be had: what is there may well look right."""
    monkeypatch.setattr(judging.verdicts, "overall", lambda checks, judgements: "holds")
    path = tmp_path / "dead.segment"
    segment = segments.Segment(path)
    for number in range(3):
        segment.append(number, "actor", "kind", {"n": number})
    segment.close()
    if harm == "gone":
        path.unlink()
    elif harm == "damaged":
        path.write_bytes(path.read_bytes()[:-1] + b"?")
    scenario = loader.loads(SCENARIO)
    writer = Writer(tmp_path / FILE_NAME, {})
    streams = event_streams.EventStreams(writer.append, lambda: 50, print, loads.Loads(), 1.0, tmp_path)
    cell = remote_cell(0, path)
    streams.open(cell)
    asyncio.run(streams.recover(cell))
    streams.flush()
    writer.close()
    judged = runner.judge(scenario, tmp_path, judging.End("deadline", 50))
    verdict = judged.data("ray", "")
    assert judged.history.kinds["kind"] == known
    if not harm:
        assert (verdict["verdict"], verdict.get("incomplete")) == ("holds", None)
    else:
        assert verdict["verdict"] == "unknown"
        assert verdict["incomplete"] == [
            f"cell/cell-0: the log is missing from event {known} of its process on: {what}"
        ]


def test_nothing_is_kept_of_processes_that_have_died() -> None:
    merger = merges.LogMerger(Events())
    merger.open((1, 1))
    for incarnation in range(1, 100):
        merger.reach((1, 1), incarnation + 1)
        merger.open((0, incarnation))
        merger.add((0, incarnation), [packed(incarnation, "a", 0)], incarnation)
        merger.close((0, incarnation))
    assert len(merger._open) + len(merger._streams) <= 3


def test_a_cell_that_comes_later_holds_up_nothing_of_before() -> None:
    events = Events()
    merger = merges.LogMerger(events)
    merger.open((0, 1))
    merger.add((0, 1), [packed(10, "a", 0)], 20)
    merger.open((0, 2))
    merger.add((0, 1), [packed(25, "a", 1)], 30)
    merger.close((0, 1))
    merger.add((0, 2), [packed(35, "a", 2)], 36)
    assert [data["n"] for data in events.of("kind")] == [0, 1, 2]


@given(st.data())
def test_the_merge_is_in_order_whatever_the_order_of_arrival(data: st.DataObject) -> None:
    cells = 3
    streams = [
        sorted(data.draw(st.lists(st.integers(min_value=0, max_value=20), max_size=15), label=f"cell {cell}"))
        for cell in range(cells)
    ]
    events = Events()
    merger = merges.LogMerger(events)
    for cell in range(cells):
        merger.open((cell, 1))
    sent = [0] * cells
    while any(sent[cell] < len(streams[cell]) for cell in range(cells)):
        cell = data.draw(st.sampled_from([cell for cell in range(cells) if sent[cell] < len(streams[cell])]))
        count = data.draw(st.integers(min_value=1, max_value=4))
        piece = streams[cell][sent[cell] : sent[cell] + count]
        merger.add(
            (cell, 1), [packed(time_ns, str(cell), sent[cell] + k) for k, time_ns in enumerate(piece)], piece[-1]
        )
        sent[cell] += len(piece)
    merger.flush()
    expected = sorted((time_ns, cell, number) for cell in range(cells) for number, time_ns in enumerate(streams[cell]))
    assert [(time_ns, int(actor), event["n"]) for time_ns, actor, _, event in events] == expected
    assert not merger.late
