"""Writes a run as a Perfetto trace: protobuf, as https://ui.perfetto.dev and ``trace_processor`` read it.

One sequence of packets: the clocks, the descriptors of all tracks, then all events in the order of time. Names are
interned: the first packet that uses one brings it along. Time 0 of the trace is virtual time 0; a snapshot of the
clocks says which Unix time that is, so the page can show either.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from kemu.errors import KemuError
from kemu.lab.telemetry import runs
from kemu.lab.telemetry.builder import NOT_UNDERSTOOD, SpanBuilder, not_understood
from kemu.lab.telemetry.drafts import SECOND_NS
from kemu.lab.telemetry.perfetto.levels import Levels
from kemu.lab.telemetry.perfetto.lives import Lives
from kemu.lab.telemetry.perfetto.timelines import PODS, Instant, Mark, Timeline, Track
from kemu.lab.telemetry.spans import AttributeValue
from kemu.runtime.runlog.frames import FILE_NAME, Reader

_SEQUENCE = 1
_BOOTTIME, _REALTIME = 6, 1
"""``BuiltinClock``: times of packets are of the first, unless they say otherwise."""


@dataclass(frozen=True, slots=True)
class Written:
    """What a trace file has."""

    processes: int
    tracks: int
    slices: int
    """With the instants."""
    samples: int
    flows: int
    """Arrows that begin."""
    size_bytes: int

    def __str__(self) -> str:
        return (
            f"{self.processes} processes, {self.tracks} tracks, {self.slices:,} slices, {self.samples:,} samples of "
            f"counters, {self.flows:,} arrows; {self.size_bytes:,} bytes"
        )


def write(folder: Path, file: Path) -> Written:
    """Write the trace of the run in ``folder``. Raises ModuleNotFoundError where the extra ``perfetto`` is missing,
    KemuError where the file cannot be written, RunLogError where the folder cannot be read."""
    from perfetto.protos.perfetto.trace import perfetto_trace_pb2  # takes a while

    timeline, epoch_ns = of_run(folder)
    try:
        with file.open("wb") as stream:
            return _Writer(perfetto_trace_pb2, stream).write(timeline, epoch_ns)
    except OSError as error:
        raise KemuError(f"{file}: {error.strerror or error}") from None


def of_run(folder: Path) -> tuple[Timeline, int]:
    """Everything that the trace shows, and the Unix time of its time 0 in ns."""
    timeline = Timeline()
    lives, levels = Lives(timeline), Levels(timeline)
    with Reader(folder / FILE_NAME) as reader:
        run = runs.of_header(reader.header)
        builder = SpanBuilder(run)
        for time_ns, actor, kind, data in reader:
            try:
                levels.feed(time_ns, actor, kind, data)
                finished = builder.feed(time_ns, actor, kind, data)
            except NOT_UNDERSTOOD as error:
                raise not_understood(reader, kind, error) from error
            for span in finished:
                lives.add(span)
        for span in builder.flush():
            lives.add(span)
        epoch_ns = int(reader.header.get("epoch_unix_s", 0)) * SECOND_NS
    lives.finish()
    levels.finish()
    named = {"scenario": run.scenario, "seed": run.seed, "variant": run.variant, "runtime": run.runtime}
    timeline.process(PODS).labels = [f"{key} {value}" for key, value in named.items() if value != ""]
    return timeline, epoch_ns


class _Writer:
    """One file."""

    def __init__(self, packets: Any, stream: BinaryIO) -> None:
        from perfetto.trace_builder.proto_builder import StreamingTraceProtoBuilder

        self._pb = packets
        self._builder = StreamingTraceProtoBuilder(stream)
        self._stream = stream
        self._is_first = True
        self._uuids = 0
        self._names: dict[tuple[str, str], int] = {}
        """Interned: by field of ``InternedData`` and text."""
        self._slices = self._samples = 0
        self._flows: set[int] = set()

    def write(self, timeline: Timeline, epoch_ns: int) -> Written:
        self._clocks(epoch_ns)
        events: list[tuple[int, int, int, Mark | float]] = []
        processes = timeline.ordered()
        tracks = 0
        for pid, process in enumerate(processes, 1):
            parent = self._process(pid, process.name, list(process.labels))
            for rank, track in enumerate(sorted(process.tracks.values(), key=lambda each: each.rank)):
                tracks += 1
                for uuid, marks in self._lanes(track, parent, rank):
                    events += marks if uuid is None else [(*_place(mark), uuid, mark) for mark in marks]
        # Stable: marks of one lane and one instant stay in their order, in which slices nest.
        events.sort(key=lambda event: event[:2])
        for time_ns, _, uuid, what in events:
            self._event(time_ns, uuid, what)
        size = self._stream.tell()
        return Written(len(processes), tracks, self._slices, self._samples, len(self._flows), size)

    def _lanes(self, track: Track, parent: int, rank: int) -> Iterator[tuple[int | None, Any]]:
        if track.is_counter:
            uuid = self._track(track, parent, rank)
            yield None, [(time_ns, 0, uuid, value) for time_ns, value in track.samples]
        else:
            for marks in track.lanes():
                yield self._track(track, parent, rank), marks

    # --- packets ------------------------------------------------------------------------------------------------------

    def _packet(self) -> Any:
        packet = self._builder.create_packet()
        packet.trusted_packet_sequence_id = _SEQUENCE
        if self._is_first:
            self._is_first = False
            packet.first_packet_on_sequence = True
            packet.sequence_flags = self._pb.TracePacket.SEQ_INCREMENTAL_STATE_CLEARED
        else:
            packet.sequence_flags = self._pb.TracePacket.SEQ_NEEDS_INCREMENTAL_STATE
        return packet

    def _clocks(self, epoch_ns: int) -> None:
        packet = self._packet()
        packet.clock_snapshot.primary_trace_clock = _BOOTTIME
        for clock, time_ns in ((_BOOTTIME, 0), (_REALTIME, epoch_ns)):
            one = packet.clock_snapshot.clocks.add()
            one.clock_id, one.timestamp = clock, time_ns
        self._builder.write_packet(packet)

    def _descriptor(self, packet: Any) -> Any:
        self._uuids += 1
        packet.track_descriptor.uuid = self._uuids
        return packet.track_descriptor

    def _process(self, pid: int, name: str, labels: list[str]) -> int:
        packet = self._packet()
        found = self._descriptor(packet)
        found.process.pid = pid
        found.process.process_name = name
        found.process.process_labels.extend(labels)
        found.process_ordering = self._pb.TrackDescriptor.PROCESS_ORDERING_EXPLICIT
        found.sibling_order_rank = pid
        found.child_ordering = self._pb.TrackDescriptor.EXPLICIT
        self._builder.write_packet(packet)
        return self._uuids

    def _track(self, track: Track, parent: int, rank: int) -> int:
        packet = self._packet()
        found = self._descriptor(packet)
        found.parent_uuid = parent
        found.name = track.name
        found.sibling_order_rank = rank
        if track.is_counter:
            counter = found.counter
            if track.unit == "bytes":
                counter.unit = self._pb.CounterDescriptor.UNIT_SIZE_BYTES
            elif track.unit == "ns":
                counter.unit = self._pb.CounterDescriptor.UNIT_TIME_NS
            else:
                counter.unit = self._pb.CounterDescriptor.UNIT_COUNT
        self._builder.write_packet(packet)
        return self._uuids

    def _event(self, time_ns: int, uuid: int, what: Mark | float) -> None:
        packet = self._packet()
        packet.timestamp = time_ns
        event = packet.track_event
        event.track_uuid = uuid
        if not isinstance(what, Mark):
            self._samples += 1
            event.type = self._pb.TrackEvent.TYPE_COUNTER
            event.double_counter_value = what
        elif what.what == "end":
            event.type = self._pb.TrackEvent.TYPE_SLICE_END
        else:
            self._slices += 1
            one = what.of
            event.type = (
                self._pb.TrackEvent.TYPE_INSTANT if isinstance(one, Instant) else self._pb.TrackEvent.TYPE_SLICE_BEGIN
            )
            event.name_iid = self._interned(packet, "event_names", one.name)
            if one.category:
                event.category_iids.append(self._interned(packet, "event_categories", one.category))
            for key, value in one.args.items():
                self._argument(packet, event, key, value)
            event.flow_ids.extend(one.flows)
            self._flows.update(one.flows)
            if isinstance(one, Instant):
                event.terminating_flow_ids.extend(one.ends)
        self._builder.write_packet(packet)

    def _argument(self, packet: Any, event: Any, key: str, value: AttributeValue) -> None:
        found = event.debug_annotations.add()
        found.name_iid = self._interned(packet, "debug_annotation_names", key)
        if isinstance(value, list):
            for each in value:
                found.array_values.add().string_value = each
        else:
            _set(found, value)

    def _interned(self, packet: Any, kind: str, text: str) -> int:
        known = self._names.get((kind, text))
        if known is None:
            known = self._names[kind, text] = len(self._names) + 1
            entry = getattr(packet.interned_data, kind).add()
            entry.iid, entry.name = known, text
        return known


def _set(annotation: Any, value: str | int | float | bool) -> None:
    if isinstance(value, bool):
        annotation.bool_value = value
    elif isinstance(value, int):
        annotation.int_value = value
    elif isinstance(value, float):
        annotation.double_value = value
    else:
        annotation.string_value = value


def _place(mark: Mark) -> tuple[int, int]:
    return mark.time_ns, mark.of.rank if isinstance(mark.of, Instant) else 0
