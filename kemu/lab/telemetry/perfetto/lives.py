"""Slices, instants and flows from the spans of a run.

Each span is on a track of the actor that made it. On its node, a pod is one slice with its phases within it. Each pod
also has a track of its own, with its phases, its attempts as instants, and arrows: from a preemptor to its victims, and
from a lost pod to the one that takes its place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from kemu.lab.telemetry import spans
from kemu.lab.telemetry.perfetto.timelines import PODS, Instant, Slice, Timeline, Track
from kemu.lab.telemetry.spans import AttributeValue, Span
from kemu.runtime.words import short

_STAYS = ("kubelet admission", "start", spans.RUNNING, spans.BACK_OFF, "termination")
"""What a pod does on its node, one after the other."""
_SIDE_BY_SIDE = ("pull", spans.CONTAINER)
"""What containers do there, several at once."""
_AT_THE_POD = (
    spans.PREEMPTED,
    "evicted",
    spans.OOM_KILL,
    spans.PROBE,
    spans.KILLED,
    spans.RESIZE,
    spans.WON,
    spans.REPLACED,
    "created",
    spans.NOMINATION,
)
"""Instants of a pod's own track; failures and attempts besides."""
_SCHEDULING_CYCLE = "scheduling cycle"
_RANKS = (_SCHEDULING_CYCLE, "bind", "nomination", "nomination cleared", spans.PREEMPTED)


class Lives:
    """``add`` every span, then ``finish``."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._stays: dict[str, dict[str, list[Span]]] = {}
        """By UID and kubelet."""
        self._roots: dict[str, Span] = {}
        self._bound: dict[str, Span] = {}
        self._first: dict[str, Span] = {}
        """The first span of each pod, in order."""
        self._attempts: dict[int, Slice] = {}
        """By the id of their spans."""
        self._waits: dict[tuple[str, str], Span] = {}
        """The last attempt of a scheduler at a pod, while the pod is in none of its queues: by UID and scheduler."""
        self._flows: dict[int, int] = {}
        """Arrows that begin somewhere, and when first."""
        self._victims: list[tuple[int, Span]] = []

    def add(self, span: Span) -> None:
        self._first.setdefault(span.uid, span)
        kind = span.kind
        if kind == spans.ROOT:
            self._roots[span.uid] = span
            return
        process = self._timeline.of_actor(span.instance)
        if kind in _STAYS:
            self._stays.setdefault(span.uid, {}).setdefault(span.instance, []).append(span)
        elif kind in _SIDE_BY_SIDE:
            process.track("containers" if kind == spans.CONTAINER else "image pulls", 2).slices.append(_slice(span))
        elif kind == spans.QUEUE:
            self._waits.pop((span.uid, span.instance), None)
            self._in_queue(span.instance, str(span.attributes["kemu.queue"]), _slice(span))
        elif kind == spans.ATTEMPT:
            made = self._attempts[span.span_id] = _slice(span)
            process.track(_SCHEDULING_CYCLE).slices.append(made)
            if span.attributes["kemu.result"] in ("unschedulable", "error"):
                self._waits[span.uid, span.instance] = span
            else:
                self._waits.pop((span.uid, span.instance), None)
        elif kind == "preemption":
            self._preemption(span, process.track(_SCHEDULING_CYCLE))
        elif span.end_ns > span.start_ns or not span.instance.startswith("kubelet/"):
            rank = 1 + (_RANKS.index(span.name) if span.name in _RANKS else len(_RANKS))
            process.track(span.name, rank).slices.append(_slice(span))
        if kind == spans.BIND and span.ok:
            self._bound[span.uid] = span
        if kind in _AT_THE_POD or kind == spans.ATTEMPT or not span.ok:
            self._at_the_pod(span)

    def finish(self) -> None:
        self._stay_in_queues()
        for uid, places in self._stays.items():
            for actor, found in places.items():
                found.sort(key=lambda span: (span.start_ns, span.end_ns))
                whole = Slice(
                    short(found[0].pod), found[0].start_ns, max(span.end_ns for span in found), "pod",
                    _about(found[0], self._roots.get(uid)), [_phase(span) for span in found],
                )  # fmt: skip
                whole.settle()
                self._timeline.of_actor(actor).track("pods").slices.append(whole)
        for uid, first in self._first.items():
            self._life(uid, first)
        self._end_flows()

    def _pod_track(self, span: Span) -> Track:
        pods = self._timeline.process(PODS)
        return pods.track(short(span.pod), len(pods.tracks))

    # --- schedulers ---------------------------------------------------------------------------------------------------

    def _in_queue(self, actor: str, queue: str, wait: Slice) -> None:
        self._timeline.process(actor).track(f"queue {queue}", 10).slices.append(wait)

    def _stay_in_queues(self) -> None:
        """A wait that never ended has no span: the pod waits from its last attempt until it goes or the run ends."""
        for (uid, actor), attempt in self._waits.items():
            root = self._roots.get(uid)
            end_ns = self._timeline.end_ns if root is None else root.end_ns
            if end_ns > attempt.end_ns:
                args = {**_about(attempt, root), spans.OPEN: True}
                queue = "unschedulable" if attempt.attributes["kemu.result"] == "unschedulable" else "backoff"
                self._in_queue(actor, queue, Slice(short(attempt.pod), attempt.end_ns, end_ns, "queue", args))

    def _preemption(self, span: Span, cycles: Track) -> None:
        made = _slice(span)
        made.name = "preemption"
        attempt = self._attempts.get(span.parent_id or 0)
        if attempt is not None and attempt.start_ns <= made.start_ns and made.end_ns <= attempt.end_ns:
            attempt.children.append(made)
        else:
            cycles.slices.append(made)
        if span.links:
            made.flows = tuple(_flow(span.trace_id, link.trace_id) for link in span.links)
            for flow in made.flows:
                self._flows.setdefault(flow, span.end_ns)
            names = ", ".join(short(link.pod) for link in span.links)
            self._pod_track(span).instants.append(
                Instant(f"preempts {names}", span.end_ns, "preemption", span.attributes, flows=made.flows)
            )

    # --- pods ---------------------------------------------------------------------------------------------------------

    def _life(self, uid: str, first: Span) -> None:
        """The slice of a pod on its own track, with what it did."""
        root = self._roots.get(uid)
        if root is not None:
            start_ns, end_ns = root.start_ns, root.end_ns
        else:
            stays = [span for found in self._stays.get(uid, {}).values() for span in found]
            start_ns, end_ns = first.start_ns, max((span.end_ns for span in stays), default=first.end_ns)
        outcome = "" if root is None else str(root.attributes.get("kemu.outcome", ""))
        name = short(first.pod)
        life = Slice(f"{name}: {outcome}" if outcome else name, start_ns, end_ns, "pod", _about(first, root))
        life.children = self._phases(uid, life)
        life.settle()
        self._pod_track(first).slices.append(life)

    def _phases(self, uid: str, life: Slice) -> list[Slice]:
        root, bound = self._roots.get(uid), self._bound.get(uid)
        node = "" if root is None else str(root.attributes.get(spans.NODE, ""))
        phases = [_phase(span) for span in self._stays.get(uid, {}).get(f"kubelet/{node}", ())]
        if root is not None and "kemu.wait_s" not in root.attributes:
            return phases  # it was created on its node
        begun_ns = phases[0].start_ns if phases else life.end_ns
        until_ns = begun_ns if bound is None else min(begun_ns, bound.end_ns)
        if until_ns > life.start_ns:
            phases.insert(0, Slice("waiting", life.start_ns, until_ns, "phase", _NO_ARGS))
        return phases

    def _at_the_pod(self, span: Span) -> None:
        track, when_ns, args = self._pod_track(span), span.end_ns, _args(span)
        flows: tuple[int, ...] = ()
        ends: tuple[int, ...] = ()
        name = span.name
        if span.kind == spans.ATTEMPT:
            name = f"attempt {span.attributes['kemu.attempt']}: {span.attributes['kemu.result']}"
        elif span.kind == spans.PREEMPTED and span.attributes[spans.ERROR_TYPE] == spans.PREEMPTED_TYPE:
            name = f"preempted by {short(str(span.attributes['kemu.preemptor']))}"
            ends = tuple(_flow(link.trace_id, span.trace_id) for link in span.links)
            self._victims.append((ends[0], span))
        elif span.kind == spans.REPLACED:
            name = f"replaced by {short(str(span.attributes['kemu.replaced_by']))}"
            flows = tuple(_flow(span.trace_id, link.trace_id) for link in span.links)
        elif span.kind == "created" and span.links:
            name = f"replaces {short(span.links[0].pod)}"
            ends = tuple(_flow(link.trace_id, span.trace_id) for link in span.links)
        else:
            name += _error(span)
        track.instants.append(Instant(name, when_ns, "error" if not span.ok else span.kind, args, flows, ends))

    def _end_flows(self) -> None:
        """Kubelets and the rescheduler preempt without a search that has a span: their arrows begin at the preemptor's
        own track, when the victim is chosen."""
        uids = {span.trace_id: span for span in self._first.values()}
        for flow, victim in self._victims:
            if flow not in self._flows:
                self._flows[flow] = victim.start_ns
                preemptor = uids.get(victim.links[0].trace_id)
                if preemptor is not None:
                    self._pod_track(preemptor).instants.append(
                        Instant(f"preempts {short(victim.pod)}", victim.start_ns, "preemption", {}, flows=(flow,))
                    )


_NO_ARGS: Mapping[str, AttributeValue] = {}


def _flow(from_trace: int, to_trace: int) -> int:
    """64 bits, never 0."""
    text = f"{from_trace:032x} {to_trace:032x}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") or 1


def _args(span: Span) -> dict[str, AttributeValue]:
    return span.attributes if span.ok else {**span.attributes, "message": span.message}


def _error(span: Span) -> str:
    """To be added to a name that does not say it itself."""
    found = span.attributes.get(spans.ERROR_TYPE, "")
    return "" if found in ("", spans.PREEMPTED_TYPE, spans.EVICTED_TYPE) else f": {found}"


def _slice(span: Span) -> Slice:
    """On the track of an actor, which says what is done: the slice says to whom."""
    name = short(span.pod) + _error(span)
    if span.kind == spans.ATTEMPT and span.attributes["kemu.result"] != "scheduled":
        name = f"{name}: {span.attributes['kemu.result']}"
    return Slice(name, span.start_ns, span.end_ns, "error" if not span.ok else span.kind, _args(span))


def _phase(span: Span) -> Slice:
    return Slice(span.name + _error(span), span.start_ns, span.end_ns, "error" if not span.ok else "phase", _args(span))


def _about(span: Span, root: Span | None) -> dict[str, Any]:
    """The pod itself, as arguments of a slice that stands for all of its life."""
    if root is not None:
        return root.attributes
    wanted = ("k8s.namespace.name", "k8s.pod.name", "k8s.pod.uid", spans.PRIORITY)
    return {key: span.attributes[key] for key in wanted if key in span.attributes}
