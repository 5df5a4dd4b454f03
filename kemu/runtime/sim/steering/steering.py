"""Carries messages later than usual: as a chooser chooses, and as holds say.

Every direction of every call is a lane, in which messages stay in their order: what is sent behind a message that is
kept waits with it. A run without chooser and holds has no steering, and its messages pay nothing for it
(``wires.SimWires``); with steering that delays nothing it is the same run, byte for byte.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kemu.runtime.holds import Hold, Label, MessagePattern
from kemu.runtime.rpc.ends import ClientEnd, Deliver, End, P, Status
from kemu.runtime.runlog.events import Event, HoldKept, HoldReleased
from kemu.runtime.sim.agendas import LoopTimer
from kemu.runtime.sim.clocks import MasterClock
from kemu.runtime.sim.steering.choosers import Attentive, Chooser
from kemu.runtime.sim.steering.messages import Counts, LabelReader, Message

Log = Callable[[str, Event], None]
"""Takes an actor and its event."""


_MESSAGES: dict[type, bool] = {}
"""Whether payloads of a class are messages, and do not only travel with them; of the classes that have been asked for:
to ask for an abstract class is slow, and every message asks."""


def _is_message(payload: object) -> bool:
    found = _MESSAGES[type(payload)] = isinstance(payload, (bytes, Status, ClientEnd))
    return found


class Road:
    """What one actor sends to another, with one latency: for the wire, in the place of the latency."""

    __slots__ = ("constant_ns", "count", "next_ns", "source", "target")

    def __init__(
        self, source: str, target: str, constant_ns: int, next_ns: Callable[[], int], count: list[int]
    ) -> None:
        self.source = source
        self.target = target
        self.constant_ns = constant_ns
        """How long each message takes; -1: to be drawn."""
        self.next_ns = next_ns
        """How long the next message takes."""
        self.count = count
        """How many messages there were, in one place: roads of several latencies share it."""


class _Sent:
    """A message, or what travels with messages (ends of streams, windows), on its way."""

    __slots__ = ("deliver", "due_ns", "has_come", "keepers", "message", "payload")

    def __init__(self, deliver: Deliver[P], payload: P, due_ns: int, message: Message | None) -> None:
        self.deliver = deliver
        self.payload = payload
        self.due_ns = due_ns
        """In the loop's time."""
        self.has_come = False
        """The time is over; it may still have to wait for a hold, or for what was sent before it."""
        self.keepers = 0
        """Holds that keep it until something happens."""
        self.message = message


class _Kept:
    """What one hold keeps, until its event happens."""

    __slots__ = ("end", "index", "left", "sent", "timer")

    def __init__(self, index: int, sent: _Sent, end: End, left: int) -> None:
        self.index = index
        self.sent = sent
        self.end = end
        self.left = left
        """How often the event has to happen yet."""
        self.timer: LoopTimer | None = None
        """Lets it go when the hold has lasted its longest."""


class _Counted:
    """A pattern of messages of one link, and which of them holds mean."""

    __slots__ = ("indexes", "matched", "pattern")

    def __init__(self, pattern: MessagePattern) -> None:
        self.pattern = pattern
        self.matched = 0
        self.indexes: dict[int, list[int]] = {}
        """Indexes of holds, by count."""


class _OfLink:
    """The holds of one link. There may be as many as messages, so each message is looked up."""

    __slots__ = ("_exact", "_loose")

    def __init__(self) -> None:
        self._exact: dict[Label, _Counted] = {}
        self._loose: dict[Label, _Counted] = {}
        """With fields that fit all."""

    def add(self, index: int, pattern: MessagePattern) -> None:
        label = pattern.label
        counted = self._exact if label.kind and label.name and label.what else self._loose
        counted.setdefault(label, _Counted(pattern)).indexes.setdefault(pattern.count, []).append(index)

    def found(self, labels: Sequence[Label]) -> list[int]:
        """The holds that mean a message with these labels, which is counted."""
        fitting = [self._exact[label] for label in dict.fromkeys(labels) if label in self._exact]
        loose = self._loose.values()
        fitting += [counted for counted in loose if any(counted.pattern.fits(label) for label in labels)]
        found: list[int] = []
        for counted in fitting:
            counted.matched += 1
            found += counted.indexes.get(counted.matched, ())
        return sorted(found)


class Steering:
    """Steers one run. ``readers`` makes what reads messages. ``chooser`` chooses when the clock has started."""

    def __init__(
        self, readers: Callable[[], LabelReader], chooser: Chooser | None = None, holds: Sequence[Hold] = ()
    ) -> None:
        self._readers = readers
        self._chooser = chooser
        self._attends = isinstance(chooser, Attentive)
        self.holds = tuple(holds)
        self.sent: list[Message] = []
        """All messages between actors so far, if there is a chooser: in the order in which they were sent."""
        self._attentive: Attentive | None = None
        self._begun: Chooser | None = None
        """The chooser, once it has chosen."""
        self._uses_lanes = False
        """Something can keep or move messages. Otherwise their times alone keep them in their order."""
        self._in_flight: dict[Message, tuple[End, _Sent, int]] = {}
        """For an attentive chooser: with the time at which each would usually arrive."""
        self._reader = readers()
        self._read = 0
        """How many of ``sent`` have been read, if an attentive chooser wants to know what they are about."""
        self._newest: tuple[Label, ...] = ()
        """The labels of the last of these."""
        self._kept: list[_Kept] = []
        self._lanes: dict[End, deque[_Sent]] = {}
        self._counts: dict[tuple[str, str], list[int]] = {}
        self._index_holds()

    def _index_holds(self) -> None:
        self._uses_lanes = any(hold.until is not None for hold in self.holds)
        self._by_link: dict[tuple[str, str], _OfLink] = {}
        for index, hold in enumerate(self.holds):
            self._by_link.setdefault((hold.message.source, hold.message.target), _OfLink()).add(index, hold.message)
        self._read_links = frozenset(
            link for source, target in self._by_link for link in ((source, target), (target, source))
        )

    def attach(self, master: MasterClock, log: Log) -> None:
        """To a run."""
        self._master = master
        self._loop = master.loop
        self._log = log

    def spares(self, holds: Sequence[Hold]) -> bool:
        """Whether these would have kept none of the messages so far, all of which a chooser saw."""
        return not Steering(self._readers, holds=holds)._count(self.sent)

    def turn_to(self, chooser: Chooser | None, holds: Sequence[Hold]) -> None:
        """Go on, when the clock starts, as if it had been these from the beginning; the holds spare what was sent."""
        self._chooser = chooser
        self._attends = isinstance(chooser, Attentive)
        if holds:
            self.holds = tuple(holds)
            self._index_holds()
            self._count(self.sent)
        if chooser is None:
            self.sent.clear()

    def _count(self, sent: Sequence[Message]) -> bool:
        """Count messages that were sent without the holds. Returns whether a hold means one of them."""
        is_meant = False
        for message in sent:
            link = message.source, message.target
            if self._attends or link in self._read_links:
                self._newest = self._reader.labels(message)
                of_link = self._by_link.get(link)
                if of_link is not None and of_link.found(self._newest):
                    is_meant = True
        self._read = len(sent)
        return is_meant

    # Messages

    def road(self, end: End, constant_ns: int, next_ns: Callable[[], int]) -> Road:
        """Of what this end sends; its messages take so long."""
        source, target = ends_of(end)
        return Road(source, target, constant_ns, next_ns, self._counts.setdefault((source, target), [0]))

    def carry(self, end: End, deliver: Deliver[P], payload: P, when_ns: int = -1) -> None:
        """Have it delivered at that time of the loop, or later; -1: when its latency is over. The latency of the end
        is its road."""
        message: Message | None = None
        held: Sequence[int] = ()
        chosen_ns = 0
        loop, road = self._loop, end.latency
        if when_ns < 0:
            delay_ns: int = road.constant_ns
            if delay_ns < 0:
                delay_ns = road.next_ns()
            when_ns = loop.now_ns + delay_ns
        if (is_message := _MESSAGES.get(type(payload))) is None:
            is_message = _is_message(payload)
        if is_message:
            master, chooser = self._master, self._chooser
            origin_ns = master.origin_ns
            is_running = master.running
            road.count[0] += 1
            message = Message(
                road.source, road.target, end, payload, road.count[0], loop.now_ns - origin_ns if is_running else 0,
                when_ns - origin_ns if when_ns > origin_ns else 0,
            )  # fmt: skip
            if chooser is not None:
                self.sent.append(message)
                if is_running:
                    if self._begun is not chooser:
                        self._begin(chooser)
                    chosen_ns = message.delay_ns = chooser.delay_ns(message)
            if self._by_link:
                held = self._holds_of(message)
                message.holds = tuple(held)
                when_ns += sum(self.holds[index].for_ns for index in held if self.holds[index].until is None)
        usual_ns = when_ns
        when_ns += chosen_ns
        if when_ns < end.last_ns:
            when_ns = end.last_ns
        else:
            end.last_ns = when_ns
        if not (self._uses_lanes or held or end in self._lanes):
            if when_ns <= loop.now_ns:
                loop.ready.append((self._deliver, (deliver, payload, message), None))
                return
            # Agenda.push, inlined: nearly every message goes this way.
            agenda = loop.foreground
            bucket = agenda.buckets.get(when_ns)
            if bucket is None:
                agenda.buckets[when_ns] = [(self._deliver, (deliver, payload, message), None)]
                heapq.heappush(agenda.times, when_ns)
            else:
                bucket.append((self._deliver, (deliver, payload, message), None))
            return
        sent = _Sent(deliver, payload, when_ns, message)
        if message is not None and self._attentive is not None:
            self._in_flight[message] = (end, sent, usual_ns)
        lane = self._lanes.get(end)
        if lane is None:
            lane = self._lanes[end] = deque()
        lane.append(sent)
        for index in held:
            self._keep(index, sent, end)
        loop.post(when_ns, self._come, (end, sent))

    def _deliver(self, deliver: Deliver[P], payload: P, message: Message | None) -> None:
        """What needs no lane."""
        if message is not None:
            master = self._master
            message.arrived_ns = self._loop.now_ns - master.origin_ns if master.running else 0
        deliver(payload)

    def _come(self, end: End, sent: _Sent) -> None:
        if self._loop.now_ns < sent.due_ns:
            return  # it has been moved
        sent.has_come = True
        lane = self._lanes.get(end)
        if lane and lane[0].has_come:
            self._move(end, lane)

    def _move(self, end: End, lane: deque[_Sent]) -> None:
        """Deliver what waits for nothing any more."""
        while lane:
            sent = lane[0]
            if sent.keepers or not sent.has_come:
                return
            lane.popleft()
            if not lane:
                self._lanes.pop(end, None)
            if sent.message is not None:
                sent.message.arrived_ns = self._master.now_ns()
            sent.deliver(sent.payload)
            if self._attentive is not None and sent.message in self._in_flight:
                del self._in_flight[sent.message]
                self._attentive.delivered(sent.message)

    # Attentive choosers

    def _begin(self, chooser: Chooser) -> None:
        self._begun = chooser
        if isinstance(chooser, Attentive):
            self._attentive = chooser
            self._uses_lanes = True
            chooser.begin(self)

    def now_ns(self) -> int:
        return self._master.now_ns()

    def newest_labels(self) -> tuple[Label, ...]:
        for index in range(self._read, len(self.sent)):
            self._newest = self._reader.labels(self.sent[index])
        self._read = len(self.sent)
        return self._newest

    def move(self, message: Message, delay_ns: int) -> None:
        found = self._in_flight.get(message)
        if found is None:
            return
        end, moved, usual_ns = found
        link: Any = end.link
        due_ns = usual_ns + delay_ns
        # When a connection broke, its loss was told behind what was in flight; that must not move any more.
        if due_ns <= moved.due_ns or link.broken:
            return
        message.delay_ns = delay_ns
        end.last_ns = max(end.last_ns, due_ns)
        is_behind = False
        for sent in self._lanes.get(end, ()):
            is_behind = is_behind or sent is moved
            if is_behind and sent.due_ns < due_ns:
                sent.due_ns = due_ns
                sent.has_come = False
                self._loop.post(due_ns, self._come, (end, sent))

    # Holds

    def _holds_of(self, message: Message) -> list[int]:
        """Those that mean this message."""
        link = (message.source, message.target)
        if link not in self._read_links:
            return []
        # Each message is read once: with an attentive chooser, all of them in their order.
        labels = self.newest_labels() if self._attends else self._reader.labels(message)
        of_link = self._by_link.get(link)
        return of_link.found(labels) if of_link is not None else []

    def _keep(self, index: int, sent: _Sent, end: End) -> None:
        hold = self.holds[index]
        message = sent.message
        assert message is not None
        label = str(hold.message.label)
        event = HoldKept(hold=index, source=message.source, target=message.target, what=label)
        if hold.until is None:
            self._log("holds", HoldKept(**event, for_ns=hold.for_ns))
            return
        self._log("holds", event)
        kept = _Kept(index, sent, end, hold.until.count)
        sent.keepers += 1
        self._kept.append(kept)
        kept.timer = self._loop.set_timer(self._loop.now_ns + hold.for_ns, self._release, (kept, "limit"), None)

    def on_event(self, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        """Something has happened."""
        for kept in list(self._kept):
            until = self.holds[kept.index].until
            if until is not None and until.fits(actor, kind, data):
                kept.left -= 1
                if kept.left == 0:
                    self._release(kept, "event")

    def _release(self, kept: _Kept, why: str) -> None:
        if kept not in self._kept:
            return
        self._kept.remove(kept)
        if kept.timer is not None:
            kept.timer.cancel()
        self._log("holds", HoldReleased(hold=kept.index, why=why))
        kept.sent.keepers -= 1
        # Not now: whatever happens at this moment is over first.
        self._loop.post(self._loop.now_ns, self._let_go, (kept.end,))

    def _let_go(self, end: End) -> None:
        lane = self._lanes.get(end)
        if not lane:
            return
        link: Any = end.link
        if link.broken:
            # What was on its way when the connection broke is lost with it.
            del self._lanes[end]
            return
        self._move(end, lane)

    @property
    def keeps(self) -> bool:
        """Whether a hold waits for an event now."""
        return bool(self._kept)

    # What a chooser has chosen

    def deviations(self) -> list[Hold]:
        """The holds under which a run without the chooser is the same run."""
        counts = Counts()
        reader = self._readers()
        found = []
        for message in self.sent:
            labels = reader.labels(message)
            counts.add(message.source, message.target, labels)
            if message.delay_ns:
                label = labels[0]
                count = counts.of(message.source, message.target, label)
                pattern = MessagePattern(message.source, message.target, label, count)
                found.append(Hold(pattern, None, message.delay_ns))
        return found


def ends_of(end: End) -> tuple[str, str]:
    """Who sends from there, and who receives."""
    link: Any = end.link
    client, server = link.client.name, link.target
    return (client, server) if end.is_client else (server, client)
