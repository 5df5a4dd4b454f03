"""What an ordinary run shows of what could have gone another way.

A scheduler decides on what its watches have told it so far; a kubelet admits on what runs there now. So for each
message of an ordinary run there are later events at which it would have made a difference not to know it yet: what its
receiver decided next, and what others did to the same pod or node. Each is a hold: *message … until: event*. And news
may come while its receiver still works on what came before: a decision takes time, and rests on what was known when it
began. That is a hold of what came before: *message … for: until just before the other one*. This module lists both, and
the moments at which a fault would strike something under way.
"""

from __future__ import annotations

import bisect
import functools
import itertools
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kemu.lab.exploration.strategies import swarms
from kemu.lab.exploration.strategies.subjects import Baseline, Link, Sending
from kemu.runtime.env import SECOND_NS
from kemu.runtime.holds import HAPPENINGS, MOST_NS, EventPattern, Hold, MessagePattern
from kemu.runtime.runlog.frames import Entry
from kemu.runtime.words import short

SHORTLY_NS = 5 * SECOND_NS
"""A hold that waits for something that came this much later would be told by its length, not by its order."""
MOST_AT_RECEIVER = 6
MOST_ELSEWHERE = 4
"""So many events after each message are looked at: what its receiver did next, and what others did."""
MOST_BEHIND = 2
"""So much news behind each message on the same link may come while the receiver works on it."""
JUST_BEFORE_NS = 1000
"""Shorter than anybody's decision."""

_WORDS = (
    "attempted", "bound", "bindRefused", "nominated", "preempting", "preempted", "admitted", "rejected", "running",
    "finished", "terminating", "terminated", "evicting", "created", "tainted",
)  # fmt: skip
"""Words of :data:`HAPPENINGS`: each event has one of them."""
_BY_KIND: Mapping[str, tuple[str, ...]] = {
    kind: tuple(word for word in _WORDS if kind in HAPPENINGS[word].kinds)
    for kind in dict.fromkeys(kind for word in _WORDS for kind in HAPPENINGS[word].kinds)
}

_LIFE = ("admitted", "rejected", "running", "finished")
_CAUSED: Mapping[str, tuple[str, ...]] = {
    "create": ("attempted", "bound", "bindRefused", "nominated", "preempting", "terminating", "terminated", *_LIFE),
    "bind": ("bound", "bindRefused", *_LIFE),
    "delete": ("terminating", "terminated"),
    "evict": ("terminating", "terminated"),
    "bind-answered": ("bound",),
    "bind-refused": ("bindRefused",),
}
"""What a request brings about, of its own pod."""
_CAUSED_BY_NEWS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("kubelet", "bound"): (*_LIFE, "terminated"),
    ("kubelet", "terminating"): ("terminating", "terminated"),
    ("scheduler", "added"): _CAUSED["create"],
}
"""And what news does, by who hears it, as far as that is its pod."""

_BEGINNINGS = ("added", "bound")
_NEWS = frozenset(
    ("added", "modified", "deleted", "bound", "nominated", "nomination-cleared", "terminating", "running", "succeeded",
     "failed", "tainted", "conditioned")
)  # fmt: skip
"""What watches tell."""
_BEGINS_NOTHING = ("modified", "conditioned", "running")
"""Those of these that seldom lead to a decision."""
STORE = "store"
_DECISIONS = ("attempted", "admitted", "rejected")
_UNHEARD = ("Event", "Lease")
"""Kinds on which no actor decides anything at once."""

Signature = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Happened:
    """An event that a hold can wait for."""

    time_ns: int
    actor: str
    what: str
    pod: str
    node: str

    def pattern(self, count: int) -> EventPattern:
        return EventPattern(self.actor, self.what, self.pod, "" if self.pod else self.node, count)


@dataclass(frozen=True, slots=True)
class Situation:
    """A message that could have come after an event instead of before it, or just before what came behind it."""

    sending: Sending
    until: EventPattern | None
    signature: Signature
    """What kind of situation it is: two of one signature are alike but for their objects."""
    for_ns: int = MOST_NS

    def hold(self) -> Hold:
        sending = self.sending
        return Hold(MessagePattern(*sending.link, sending.label, sending.count), self.until, self.for_ns)


def happened(events: Iterable[Entry]) -> list[Happened]:
    """What of a run a hold can wait for."""
    found = []
    for event in events:
        data = event.data
        for word in _BY_KIND.get(event.kind, ()):
            if HAPPENINGS[word].is_so(data):
                pod = short(str(data.get("pod", "")))
                found.append(Happened(event.time_ns, event.actor, word, pod, str(data.get("node", ""))))
                break
    return found


def situations(baseline: Baseline) -> dict[Signature, list[Situation]]:
    """All of an ordinary run, by signature: first those at whose event the receiver of the message itself decided, then
    news that comes while its receiver is at work."""
    everything = happened(baseline.events)
    index = _Index(everything, baseline.sendings)
    # What a single API server cannot do because it waits for its store, no actor can.
    has_stale_servers = len({link[1] for link in baseline.loads if role(link[1]) == "apiserver"}) > 1
    near: dict[Signature, list[Situation]] = {}
    far: dict[Signature, list[Situation]] = {}
    for sending in baseline.sendings:
        if (STORE in sending.link and not has_stale_servers) or sending.label.kind in _UNHEARD:
            continue
        for event in index.after(sending):
            count = index.count(event, sending.sent_ns)
            is_near = event.actor == sending.link[1]
            signature = _signature(sending, event)
            found = Situation(sending, event.pattern(count), signature)
            (near if is_near else far).setdefault(signature, []).append(found)
    return {**near, **_close(baseline), **far}


def _close(baseline: Baseline) -> dict[Signature, list[Situation]]:
    """News that could have come just before the news behind it, on its link. Kubelets and API servers take no time."""
    most_ns = min(SHORTLY_NS, baseline.execution.scenario.duration_ns // swarms.SLOWEST)
    by_link: dict[Link, list[Sending]] = {}
    for sending in baseline.sendings:
        is_news = sending.label.what in _NEWS and sending.label.kind not in _UNHEARD
        if is_news and role(sending.link[1]) in ("scheduler", "controller"):
            by_link.setdefault(sending.link, []).append(sending)
    found: dict[Signature, list[Situation]] = {}
    for (source, target), news in by_link.items():
        for place, sending in enumerate(news):
            if sending.label.what in _BEGINS_NOTHING:
                continue
            behind = 0
            for other in itertools.islice(news, place + 1, None):
                late_ns = other.came_ns - sending.came_ns - JUST_BEFORE_NS
                if behind == MOST_BEHIND or late_ns > most_ns:
                    break
                if late_ns > 0 and other.label.name != sending.label.name:
                    behind += 1
                    receiver = target if role(target) == "scheduler" else role(target)
                    labels = sending.label.kind, sending.label.what, other.label.kind, other.label.what
                    signature = (role(source), receiver, *labels, "close")
                    found.setdefault(signature, []).append(Situation(sending, None, signature, late_ns))
    return found


def shuffled(groups: Mapping[Signature, Sequence[Situation]], stream: random.Random) -> list[Situation]:
    """One of each signature, then another one of each, and so on; in random orders. Runs of many like pods have many
    like situations, and few of those that matter."""
    orders = []
    for group in groups.values():
        order = list(group)
        stream.shuffle(order)
        orders.append(order)
    found: list[Situation] = []
    for turn in range(max(map(len, orders), default=0)):
        these = [order[turn] for order in orders if turn < len(order)]
        stream.shuffle(these)
        found += these
    return found


class _Index:
    """Events by what they are about and who says so."""

    def __init__(self, events: Sequence[Happened], sendings: Sequence[Sending]) -> None:
        self._events = events
        self._heard_ns: dict[tuple[str, str], int] = {}
        """When each actor first heard of each pod through a watch."""
        for sending in sendings:
            if sending.label.kind == "Pod" and sending.label.what in _BEGINNINGS:
                self._heard_ns.setdefault((sending.link[1], sending.label.name), sending.came_ns)
        self._by_pod: dict[str, list[int]] = {}
        self._by_node: dict[str, list[int]] = {}
        self._by_actor: dict[str, list[int]] = {}
        self._decisions = [place for place, event in enumerate(events) if event.what in _DECISIONS]
        self._times: dict[tuple[str, str, str, str], list[int]] = {}
        self._node_of: dict[str, str] = {}
        self._scheduler_of: dict[str, str] = {}
        for place, event in enumerate(events):
            self._by_actor.setdefault(event.actor, []).append(place)
            if event.pod:
                self._by_pod.setdefault(event.pod, []).append(place)
            if event.node:
                self._by_node.setdefault(event.node, []).append(place)
            if event.what == "attempted":
                self._scheduler_of.setdefault(event.pod, event.actor)
            if event.pod and event.node:
                self._node_of.setdefault(event.pod, event.node)
            self._times.setdefault(_what(event), []).append(event.time_ns)

    def after(self, sending: Sending) -> list[Happened]:
        """What came shortly after a message and could have to do with it."""
        name, kind = sending.label.name, sending.label.kind
        node = name if kind == "Node" else self._node_of.get(name, "")
        found: dict[int, None] = {}
        # A scheduler looks at all nodes for each pod, so whatever it decides next may rest on the message; so may, if
        # the message is a request, what others decide.
        self._take(found, self._by_actor.get(sending.link[1], ()), sending, MOST_AT_RECEIVER)
        if kind == "Pod":
            self._take(found, self._by_pod.get(name, ()), sending, MOST_ELSEWHERE)
            self._take(found, self._decisions, sending, MOST_ELSEWHERE)
        if node:
            self._take(found, self._by_node.get(node, ()), sending, MOST_ELSEWHERE)
        return [self._events[place] for place in sorted(found)]

    def _take(self, found: dict[int, None], places: Sequence[int], sending: Sending, most: int) -> None:
        begin = bisect.bisect_left(places, sending.came_ns, key=lambda place: self._events[place].time_ns)
        taken = 0
        for place in itertools.islice(places, begin, None):
            event = self._events[place]
            if taken == most or event.time_ns > sending.came_ns + SHORTLY_NS:
                return
            if not self._is_caused(sending, event):
                found[place] = None
                taken += 1

    def _is_caused(self, sending: Sending, event: Happened) -> bool:
        """Whether the event could not happen without the message: to wait for it would be to wait for ever."""
        label, target = sending.label, sending.link[1]
        if label.what in _NEWS and event.actor == target and event.pod:
            # What comes behind the message in its stream waits with it.
            heard_ns = self._heard_ns.get((target, event.pod))
            if heard_ns is not None and sending.came_ns <= heard_ns <= event.time_ns:
                return True
        if label.kind != "Pod" or label.name != event.pod:
            return False
        if event.what in _CAUSED.get(label.what, ()):
            return True
        if event.what not in _CAUSED_BY_NEWS.get((role(target), label.what), ()):
            return False
        # Schedulers hear of all pods; only what their own do rests on that.
        return role(target) != "scheduler" or self._scheduler_of.get(event.pod) == target

    def count(self, event: Happened, since_ns: int) -> int:
        times = self._times[_what(event)]
        return bisect.bisect_right(times, event.time_ns) - bisect.bisect_left(times, since_ns)


def _what(event: Happened) -> tuple[str, str, str, str]:
    return event.actor, event.what, event.pod, "" if event.pod else event.node


@functools.cache
def role(actor: str) -> str:
    """``scheduler`` of ``scheduler/red/0``."""
    return actor.partition("/")[0]


def _signature(sending: Sending, event: Happened) -> Signature:
    source, target = sending.link
    is_same = sending.label.kind == "Pod" and sending.label.name == event.pod
    return (
        role(source),
        # Schedulers are few and differ, kubelets are many and alike.
        target if role(target) == "scheduler" else role(target),
        sending.label.kind,
        sending.label.what,
        event.actor if role(event.actor) == "scheduler" else role(event.actor),
        event.what,
        "same" if is_same else "other",
        "receiver" if event.actor == target else "",
    )


def moments(baseline: Baseline) -> dict[str, list[int]]:
    """When each actor did something, in ns: after the start of the clock."""
    found: dict[str, list[int]] = {}
    for event in happened(baseline.events):
        found.setdefault(event.actor, []).append(event.time_ns)
    return found


def actors(baseline: Baseline) -> list[str]:
    """All that have exchanged messages since the start of the clock, in the order of their names."""
    return sorted({name for link in baseline.loads for name in link})
