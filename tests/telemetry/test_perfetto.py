"""``kemu trace RUN --perfetto FILE``: whether the trace obeys the format, and what it shows.

Perfetto's own ``trace_processor`` is a program that the package downloads, so its rules are stated here: what a packet
refers to has been told of before, slices of a track nest, and arrows that end have begun.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from kemu.doors.cli.main import main
from kemu.lab.telemetry.perfetto import files
from kemu.lab.telemetry.perfetto.timelines import Instant, Slice, Track
from kemu.runtime.runlog.frames import FILE_NAME, Entry
from tests.telemetry.logs import KUBELET, Log, preemption, uid_of

SECOND = 10**9
MS = 10**6


@dataclass
class Shown:
    """One slice or instant."""

    name: str
    begin_ns: int
    end_ns: int = -1
    depth: int = 0
    args: dict[str, Any] = field(default_factory=dict)
    flows: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


@dataclass
class Trace:
    """What Perfetto shows: by process and track, as their names are."""

    slices: dict[tuple[str, str], list[Shown]]
    samples: dict[tuple[str, str], list[tuple[int, float]]]
    labels: dict[str, list[str]]
    arrows: set[tuple[str, str]]
    """Names of the slices from which and to which they lead."""

    def names(self, process: str, track: str) -> list[str]:
        return [each.name for each in self.slices[process, track]]


def read(file: Path) -> Trace:
    """Parse a trace as ``trace_processor`` does, and hold it to its rules."""
    trace = Trace(defaultdict(list), defaultdict(list), {}, set())
    interned: dict[str, dict[int, str]] = defaultdict(dict)
    processes: dict[int, str] = {}
    tracks: dict[int, tuple[str, str]] = {}
    counters: set[int] = set()
    stacks: dict[int, list[Shown]] = defaultdict(list)
    begun: dict[int, str] = {}
    now_ns = 0
    for number, packet in enumerate(pb.Trace.FromString(file.read_bytes()).packet):
        assert packet.trusted_packet_sequence_id == 1
        assert packet.first_packet_on_sequence == (number == 0)
        # Interned data count from the packet that clears them.
        assert packet.sequence_flags == (1 if number == 0 else 2)
        for kind in ("event_names", "event_categories", "debug_annotation_names"):
            for entry in getattr(packet.interned_data, kind):
                assert entry.iid
                assert entry.iid not in interned[kind]
                interned[kind][entry.iid] = entry.name
        if packet.HasField("track_descriptor"):
            found = packet.track_descriptor
            assert found.uuid
            assert found.uuid not in {**processes, **tracks}
            assert not now_ns, "tracks first, then events"
            if found.HasField("process"):
                assert found.process.pid, "0 is the idle process"
                processes[found.uuid] = found.process.process_name
                trace.labels[found.process.process_name] = list(found.process.process_labels)
            else:
                tracks[found.uuid] = processes[found.parent_uuid], found.name
                if found.HasField("counter"):
                    counters.add(found.uuid)
        if not packet.HasField("track_event"):
            continue
        event = packet.track_event
        uuid, key = event.track_uuid, tracks[event.track_uuid]
        assert packet.timestamp >= now_ns
        now_ns = packet.timestamp
        assert (event.type == pb.TrackEvent.TYPE_COUNTER) == (uuid in counters)
        if event.type == pb.TrackEvent.TYPE_COUNTER:
            trace.samples[key].append((now_ns, event.double_counter_value))
        elif event.type == pb.TrackEvent.TYPE_SLICE_END:
            stacks[uuid].pop().end_ns = now_ns
        else:
            stack = stacks[uuid]
            args = {
                interned["debug_annotation_names"][each.name_iid]: getattr(each, each.WhichOneof("value") or "", None)
                for each in event.debug_annotations
            }
            name = interned["event_names"][event.name_iid]
            flows, ends = list(event.flow_ids), list(event.terminating_flow_ids)
            shown = Shown(name, now_ns, depth=len(stack), args=args, flows=flows, ends=ends)
            trace.slices[key].append(shown)
            for flow in flows:
                begun[flow] = name
            for flow in ends:
                trace.arrows.add((begun.pop(flow), name))
            if event.type == pb.TrackEvent.TYPE_SLICE_BEGIN:
                stack.append(shown)
            else:
                assert event.type == pb.TrackEvent.TYPE_INSTANT
                shown.end_ns = now_ns
    assert not any(stacks.values()), "slices that never end"
    return trace


def written(log: Log, folder: Path) -> Trace:
    file = folder / "trace.pftrace"
    files.write(log.write(folder), file)
    return read(file)


@pytest.fixture(scope="module")
def preempted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run")
    assert main(["run", "seeds/preemption-example-1", "--json", "--out", str(folder)]) == 0
    return folder


def test_a_preemption_on_the_tracks_of_all_who_took_part(preempted: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.pftrace"
    assert main(["trace", str(preempted), "--perfetto", str(file)]) == 0
    trace = read(file)
    assert list(trace.labels) == ["pods", "user", "scheduler/default-scheduler/0", "apiserver/0", "node node-1"]
    assert trace.labels["pods"] == ["scenario preemption-example-1", "seed 1", "runtime sim"]
    # The node: two pods that go, and the one that comes; each with its phases.
    on_node = trace.slices["node node-1", "pods"]
    assert {(each.name, each.depth) for each in on_node} == {
        ("a", 0), ("b", 0), ("c", 0), ("running", 1), ("termination", 1), ("kubelet admission", 1), ("start", 1),
    }  # fmt: skip
    (a,) = (each for each in on_node if each.name == "a")
    (c,) = (each for each in on_node if each.name == "c")
    assert a.end_ns <= c.begin_ns
    # The scheduler: a search for victims within an attempt.
    cycles = trace.slices["scheduler/default-scheduler/0", "scheduling cycle"]
    assert [(each.name, each.depth) for each in cycles[:2]] == [("c: unschedulable", 0), ("preemption", 1)]
    assert "Insufficient cpu" in cycles[0].args["kemu.reason"]
    # The pods, and the arrows between them.
    assert trace.names("pods", "c")[:4] == ["c", "waiting", "preempts a, b", "attempt 1: unschedulable"]
    assert trace.slices["pods", "d"][0].name == "d: never bound"
    assert trace.arrows == {("preempts a, b", "preempted by c")}


def test_counters_tell_queues_requests_and_lag(preempted: Path, tmp_path: Path) -> None:
    file = tmp_path / "run.pftrace"
    files.write(preempted, file)
    trace = read(file)
    used = trace.samples["node node-1", "requested cpu (of 10)"]
    assert [value for _, value in used] == [10, 5, 0, 10]
    assert [round(time_ns / SECOND) for time_ns, _ in used] == [0, 35, 65, 65]
    waits = trace.samples["scheduler/default-scheduler/0", "pods in queue unschedulable"]
    # d waits until the run ends, of which no event tells.
    end_ns = trace.slices["pods", "d"][0].end_ns
    assert [value for _, value in waits] == [1, 2, 0, 1, 2, 0, 1, 0]
    assert waits[-1][0] == end_ns
    lags = [value for (_, track), found in trace.samples.items() if track == "watch lag" for _, value in found]
    assert min(lags) > 0
    assert max(lags) < SECOND


def test_the_same_run_gives_the_same_bytes(preempted: Path, tmp_path: Path) -> None:
    assert main(["run", "seeds/preemption-example-1", "--json", "--out", str(tmp_path / "again")]) == 0
    first, again = tmp_path / "first", tmp_path / "second"
    assert str(files.write(preempted, first)) == str(files.write(tmp_path / "again", again))
    assert first.read_bytes() == again.read_bytes()


def test_a_pod_that_is_replaced_leads_to_its_successor(tmp_path: Path) -> None:
    log = Log()
    log.scheduled(0, "a")
    log.request(100, "delete", "a", "user")
    log.add(100, KUBELET, "kubelet.terminating", pod="default/a", uid=uid_of("a"), node="node-1", grace_s=30)
    log.request(110, "create", "b", "controller/replicaset")
    data = {"owner": "ReplicaSet default/web", "replaces": "default/a", "replaces_uid": uid_of("a")}
    log.pod(110, "controller/replicaset", "controller.pod", "b", **data)
    assert written(log, tmp_path).arrows == {("replaced by b", "replaces a")}


def test_faults_are_slices_and_marks_on_whom_they_hit(tmp_path: Path) -> None:
    log = preemption()
    log.add(71_000, "chaos", "chaos.begin", id="f1", what="partition", between=["kubelet/*", "apiserver"])
    log.events.append(Entry(71_500 * MS, "chaos", "chaos.hit", {"id": "f1", "actor": KUBELET, "peer": "apiserver/0"}))
    log.add(72_000, "chaos", "chaos.begin", id="f2", what="crash", nodes=["node-1"], actors=[])
    log.add(72_000, "operator", "machine.off", node="node-1", why="crash")
    log.add(73_000, "chaos", "chaos.end", id="f1", hits=1)
    log.add(80_000, "user", "user.event", index=2, what="nothing")
    trace = written(log, tmp_path)
    partition, crash = trace.slices["faults", "faults"]
    assert (partition.name, partition.begin_ns, partition.end_ns) == ("partition", 71 * SECOND, 73 * SECOND)
    assert (crash.name, crash.end_ns) == ("crash node-1", 80 * SECOND), "it lasts until the run ends"
    assert trace.names("node node-1", "faults") == ["partition towards apiserver/0"]
    (off,) = trace.slices["node node-1", "machine"]
    assert (off.begin_ns, off.end_ns) == (72 * SECOND, 80 * SECOND)


def test_slices_that_overlap_are_laid_side_by_side() -> None:
    track = Track("pods", 0)
    parent = Slice("a", 0, 10, children=[Slice("x", -5, 4), Slice("y", 3, 12)])
    parent.settle()
    track.slices = [Slice("b", 5, 20), parent, Slice("c", 10, 12), Slice("d", 11, 30)]
    track.instants = [Instant("now", 11)]
    lanes = [[(mark.time_ns, mark.what, mark.of.name) for mark in lane] for lane in track.lanes()]
    assert lanes == [
        [
            (0, "begin", "a"), (0, "begin", "x"), (4, "end", "x"), (4, "begin", "y"), (10, "end", "y"),
            (10, "end", "a"), (10, "begin", "c"), (11, "instant", "now"), (12, "end", "c"),
        ],
        [(5, "begin", "b"), (20, "end", "b")],
        [(11, "begin", "d"), (30, "end", "d")],
    ]  # fmt: skip


def test_without_the_extra_it_says_what_to_install(
    preempted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "perfetto.protos.perfetto.trace", None)
    assert main(["trace", str(preempted), "--perfetto", str(tmp_path / "x")]) == 2
    assert "pip install 'kemu[perfetto]'" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()


def test_a_file_that_cannot_be_written_is_an_error(
    preempted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", str(preempted), "--perfetto", str(tmp_path / "no" / "x")]) == 2
    assert "No such file" in capsys.readouterr().err
    assert (preempted / FILE_NAME).is_file()
