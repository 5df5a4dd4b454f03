"""What is remembered of each pod until its open spans can end, and the making of spans from it.

Role: what the handlers of events (``api_events``, ``scheduler_events``, ``kubelet_events``) write into, and
:class:`kemu.lab.telemetry.builder.SpanBuilder` takes finished spans from. Times are virtual, in ns, except those in
spans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from kemu.lab.telemetry import runs, spans
from kemu.lab.telemetry.fault_events import FaultEvents
from kemu.lab.telemetry.spans import NODE, OPEN, PRIORITY, REASON, AttributeValue, Link, Side, Span
from kemu.runtime.runlog.events import OfPod

SECOND_NS = 1_000_000_000

NEVER_BOUND = "never bound"
"""The outcome of a pod that has had no node when it, or the run, ends."""

MOST_LINKS = 128
"""Links and listed victims of one span; as many as the OpenTelemetry SDK keeps by default."""

MOST_DOUBTFUL = 1 << 17
"""Pods that are remembered although this builder may never see them end; the oldest are given up first."""

_ATTRIBUTES = {
    "by": "kemu.preemptor",
    "candidates": "kemu.candidates",
    "container": spans.CONTAINER_NAME,
    "evaluated": "kemu.nodes.evaluated",
    "event": "kemu.event",
    "feasible": "kemu.nodes.feasible",
    "grace_s": "kemu.grace_period_s",
    "n": "kemu.attempt",
    "node": NODE,
    "queue": "kemu.queue",
    "result": "kemu.result",
    "signal": "kemu.signal",
}
"""What fields of events are called in spans."""

Handler = Callable[[int, str, Any], None]
"""Takes time, actor and an event of one kind."""


class Draft:
    """What is remembered of a pod until its open spans can end. Times are virtual."""

    __slots__ = (
        "admitted_ns",
        "asked_for_ns",
        "asked_to_go_ns",
        "attempt_ids",
        "attempts",
        "back_off_until_ns",
        "bound_by",
        "bound_ns",
        "created_ns",
        "created_rev",
        "creator",
        "ended_ns",
        "gone_ns",
        "has_several",
        "instance",
        "key",
        "loss",
        "node",
        "outcome",
        "priority",
        "running_ns",
        "starting_ns",
        "stopping_ns",
        "uid",
        "why",
    )

    def __init__(self, uid: str, key: str) -> None:
        self.uid = uid
        self.key = key
        self.created_ns: int | None = None
        """Set if the log tells of the creation: then there is a root span."""
        self.asked_for_ns: int | None = None
        """When the client asked for its creation, where spans of clients are wanted."""
        self.created_rev = 0
        self.creator = ""
        self.priority: int | None = None
        """As the store has it."""
        self.node = ""
        self.bound_by = ""
        self.bound_ns: int | None = None
        self.attempts = 0
        self.attempt_ids: dict[str, int] = {}
        """The id of the span of each scheduler's latest attempt: what the scheduler does next for the pod follows from
        it."""
        self.asked_to_go_ns: int | None = None
        self.gone_ns: int | None = None
        """The object was removed."""
        self.ended_ns: int | None = None
        """No container of it will run any more."""
        self.outcome = ""
        self.loss = ""
        """``error.type``, if the outcome is a loss."""
        self.why = ""
        """What its latest attempt says, if that found no node."""
        self.instance = ""
        """The kubelet."""
        self.admitted_ns: int | None = None
        self.has_several = False
        """It has several containers, each with spans of its own."""
        self.starting_ns: int | None = None
        """Admitted, images there, and not yet running."""
        self.running_ns: int | None = None
        self.back_off_until_ns: int | None = None
        self.stopping_ns: int | None = None


class Drafts:
    """The drafts of all pods, and the spans that are finished and not yet taken."""

    def __init__(self, run: runs.Run, epoch_unix_ns: int) -> None:
        """``epoch_unix_ns``: Unix time of virtual time 0, added to all times of spans."""
        self.run = run
        self._epoch_ns = epoch_unix_ns
        self.now_ns = 0
        self._out: list[Span] = []
        self.pods: dict[str, Draft] = {}
        """By UID."""
        self._doubtful: dict[str, None] = {}
        """UIDs of pods whose end this builder may not see: created elsewhere, or deleted and not gone yet."""
        self.uids: dict[str, str] = {}
        """UIDs of the pods whose creation was seen, by ``namespace/name``."""
        self.on_node: dict[str, dict[str, str]] = {}
        """By node: pods that its kubelet admitted and that still count there, in the order of admission, UID → key."""
        self._instant: dict[tuple[str, str, str], int] = {}
        """How many spans of (UID, kind, actor) ended in this instant."""
        self.sees_store = False
        self.faults = FaultEvents()

    def move_to(self, time_ns: int) -> None:
        if time_ns > self.now_ns:
            self.now_ns = time_ns
            self._instant.clear()

    def take(self) -> list[Span]:
        """The spans finished since the last call."""
        if not self._out:
            return []
        out, self._out = self._out, []
        return out

    def end_all(self) -> None:
        """The run is over: what is still open ends now, and says so (``kemu.open``)."""
        for pod in list(self.pods.values()):
            self.flush_life(pod)
            if pod.created_ns is not None:
                self.finish(pod, self._end_of(pod))
        self.pods.clear()
        self._doubtful.clear()

    # --- making spans ------------------------------------------------------------------------------------------------

    def emit(
        self,
        kind: str,
        pod: str,
        uid: str,
        actor: str,
        start_ns: int,
        end_ns: int,
        attributes: dict[str, AttributeValue],
        *,
        name: str = "",
        sequence: str | None = None,
        links: Sequence[Link] = (),
        error: str = "",
        error_type: str = "",
        side: Side = "internal",
        parent: int | None = None,
    ) -> int:
        """Returns the span's id. ``sequence``: where it does not depend on when the span ends. ``error``: why it is not
        ok; ``error_type``: one of few words for that. ``parent``: if it is not the root."""
        if sequence is None:
            key = (uid, kind, actor)
            number = self._instant.get(key, 0)
            self._instant[key] = number + 1
            sequence = f"{actor} {end_ns} {number}"
        trace = self.run.trace_id(uid)
        root = spans.root_id(trace)
        made = root if kind == spans.ROOT else spans.span_id(trace, kind, sequence)
        if error:
            attributes[spans.ERROR_TYPE] = error_type or "Error"
            attributes[spans.FAILED] = True
        self.describe(attributes, pod, uid)
        struck = self.faults.during(self._concerned(kind, uid, actor), start_ns, end_ns)
        self._out.append(
            Span(
                trace_id=trace,
                span_id=made,
                parent_id=None if kind == spans.ROOT else parent or root,
                kind=kind,
                name=name or kind,
                pod=pod,
                uid=uid,
                service=spans.service_of(actor),
                instance=actor,
                start_ns=self._epoch_ns + min(start_ns, end_ns),
                end_ns=self._epoch_ns + end_ns,
                attributes=attributes,
                links=tuple(links),
                events=tuple(replace(event, time_ns=self._epoch_ns + event.time_ns) for event in struck),
                ok=not error,
                message=error,
                side=side,
            )
        )
        return made

    def tell(
        self,
        time_ns: int,
        actor: str,
        event: OfPod,
        attributes: Mapping[str, AttributeValue] = MappingProxyType({}),
        *,
        links: Sequence[Link] = (),
        parent: int | None = None,
        sequence: str | None = None,
    ) -> int:
        """The span that an event tells of itself; see :meth:`emit`. ``attributes``: beside those of its fields."""
        traced = event.traced()
        assert traced is not None
        found: dict[str, AttributeValue] = {
            _ATTRIBUTES[name]: value
            for name, value in event.items()
            if name in _ATTRIBUTES and value is not None and (value or name != "node")
        }
        if traced.why:
            found[REASON] = traced.why
        error = (traced.error or traced.why) if traced.error_type else ""
        return self.emit(
            traced.kind, event.pod, event.uid, actor, event.get("start", time_ns), time_ns, {**found, **attributes},
            name=traced.name, sequence=sequence, links=links, error=error, error_type=traced.error_type, parent=parent,
        )  # fmt: skip

    def told(self, time_ns: int, actor: str, event: Any) -> None:  # noqa: ANN401  # what is traced is about a pod
        """Handler of events that tell all of their span themselves."""
        self.tell(time_ns, actor, event)

    def describe(self, attributes: dict[str, AttributeValue], key: str, uid: str) -> None:
        """Say on a span which pod it is about: collectors search span by span."""
        namespace, _, name = key.partition("/")
        attributes["k8s.namespace.name"] = namespace
        attributes["k8s.pod.name"] = name
        attributes["k8s.pod.uid"] = uid
        pod = self.pods.get(uid)
        if pod is None:
            return
        if pod.node:
            attributes.setdefault(NODE, pod.node)
        if pod.priority is not None:
            attributes[PRIORITY] = pod.priority

    def attempt_of(self, uid: str, actor: str) -> int | None:
        """The latest attempt of this scheduler at the pod; None: it is no scheduler, or has not tried yet."""
        pod = self.pods.get(uid)
        return None if pod is None else pod.attempt_ids.get(actor)

    def to_pod(self, relation: str, key: str, uid: str) -> Link:
        trace = self.run.trace_id(uid)
        return Link(trace, spans.root_id(trace), relation, key, key)

    def lost_to(self, uid: str, key: str, attributes: dict[str, AttributeValue]) -> Link:
        """A pod is bound at most once, so the id of that span is known without knowing who bound it."""
        pod = self.pods.get(uid)
        winner = pod.bound_by if pod is not None else ""
        if winner:
            attributes["kemu.conflict.winner"] = winner
        trace = self.run.trace_id(uid)
        return Link(trace, spans.span_id(trace, spans.BIND), "lost to", winner or "whoever bound it first", key)

    def _concerned(self, kind: str, uid: str, actor: str) -> Sequence[str]:
        """Whose faults bear on a span: those of its actor; on a root, those of the pod's kubelet and scheduler too."""
        pod = self.pods.get(uid) if kind == spans.ROOT else None
        return (actor,) if pod is None else (actor, f"kubelet/{pod.node}", pod.bound_by)

    def emit_stay(
        self,
        kind: str,
        pod: Draft,
        start_ns: int,
        end_ns: int,
        attributes: dict[str, AttributeValue],
        *,
        error: str = "",
        error_type: str = "",
    ) -> None:
        """Something that the pod does on its node; identified by its start, as it may be open when the run ends."""
        attributes[NODE] = pod.node
        self.emit(
            kind, pod.key, pod.uid, pod.instance, start_ns, end_ns, attributes, sequence=str(start_ns),
            error=error, error_type=error_type,
        )  # fmt: skip

    def pod(self, event: OfPod) -> Draft:
        uid = event.uid
        pod = self.pods.get(uid)
        if pod is None:
            pod = self.pods[uid] = Draft(uid, event.pod)
            self.doubt(pod)
        return pod

    def stored(self, uid: str, key: str, time_ns: int, revision: int, priority: int, node: str) -> None:
        """The store has a new pod. Who created it, and since when, the API server tells next if it lives."""
        pod = self.pods.get(uid)
        if pod is None:
            pod = self.pods[uid] = Draft(uid, key)
        pod.priority, pod.created_rev = priority, revision
        pod.node = pod.node or node
        if pod.created_ns is None:
            pod.created_ns = time_ns
            self.uids[key] = uid
            self._doubtful.pop(uid, None)

    def undone(self, time_ns: int, revision: int) -> None:
        """The store has lost what it had written later than this revision."""
        for pod in [pod for pod in self.pods.values() if pod.created_rev > revision]:
            pod.outcome, pod.loss = "lost by the store", "LostByStore"
            self.flush_life(pod)
            self.finish(pod, (time_ns, False))

    def doubt(self, pod: Draft) -> None:
        """Its end may happen where this builder does not see it."""
        self._doubtful[pod.uid] = None
        if len(self._doubtful) > MOST_DOUBTFUL:
            oldest = self.pods[next(iter(self._doubtful))]
            self.flush_life(oldest)
            if oldest.created_ns is not None:
                self.finish(oldest, self._end_of(oldest))
            else:
                self.forget(oldest)

    def forget(self, pod: Draft) -> None:
        """Nothing more is to be told of it."""
        self.pods.pop(pod.uid, None)
        self._doubtful.pop(pod.uid, None)
        self._take_from_node(pod)

    def finish(self, pod: Draft, end: tuple[int, bool]) -> None:
        """Emit the root span: ``end`` is when, and whether the pod lives on."""
        end_ns, is_open = end
        assert pod.created_ns is not None
        attributes: dict[str, AttributeValue] = {"kemu.attempts": pod.attempts}
        if pod.bound_ns is not None or not pod.node:
            waited_ns = (end_ns if pod.bound_ns is None else pod.bound_ns) - pod.created_ns
            attributes["kemu.wait_s"] = round(waited_ns / SECOND_NS, 6)
        if pod.outcome or not pod.node:
            attributes["kemu.outcome"] = pod.outcome or NEVER_BOUND
        error, error_type = pod.outcome if pod.loss else "", pod.loss
        if not pod.outcome and not pod.node:
            error, error_type = pod.why or NEVER_BOUND, "Unschedulable" if pod.why else "NeverBound"
        if is_open:
            attributes[OPEN] = True
        begun_ns = pod.created_ns if pod.asked_for_ns is None else min(pod.created_ns, pod.asked_for_ns)
        self.emit(
            spans.ROOT, pod.key, pod.uid, pod.creator or "user", begun_ns, end_ns, attributes,
            error=error, error_type=error_type,
        )  # fmt: skip
        self.forget(pod)
        if self.uids.get(pod.key) == pod.uid:
            del self.uids[pod.key]

    def _end_of(self, pod: Draft) -> tuple[int, bool]:
        if pod.gone_ns is not None:
            return pod.gone_ns, False
        if not self.sees_store and pod.asked_to_go_ns is not None and not pod.bound_by:
            # Without a node a pod is removed at once, and there is no kubelet to say so.
            return pod.asked_to_go_ns, False
        if pod.ended_ns is not None:
            return pod.ended_ns, False
        return self.now_ns, True

    # --- the life of a pod on its node -------------------------------------------------------------------------------

    def flush_life(self, pod: Draft) -> None:
        now_ns = self.now_ns
        if pod.stopping_ns is not None:
            self.emit_stay("termination", pod, pod.stopping_ns, now_ns, {OPEN: True})
        elif pod.running_ns is not None:
            self.end_running(pod, now_ns, {OPEN: True})
        elif pod.starting_ns is not None:
            self.emit_stay("start", pod, pod.starting_ns, now_ns, {OPEN: True})

    def end_running(
        self,
        pod: Draft,
        time_ns: int,
        attributes: dict[str, AttributeValue],
        *,
        error: str = "",
        error_type: str = "",
    ) -> None:
        """End its current span: running, or back-off and then running."""
        assert pod.running_ns is not None
        until_ns, pod.back_off_until_ns = pod.back_off_until_ns, None
        if until_ns is not None:
            self.emit_stay(spans.BACK_OFF, pod, pod.running_ns, min(until_ns, time_ns), {})
            pod.running_ns = until_ns
            if until_ns > time_ns:
                pod.running_ns = None
                return
        self.emit_stay(spans.RUNNING, pod, pod.running_ns, time_ns, attributes, error=error, error_type=error_type)
        pod.running_ns = None

    def left_node(self, pod: Draft, time_ns: int) -> None:
        pod.starting_ns = pod.running_ns = pod.stopping_ns = None
        pod.ended_ns = time_ns
        if pod.created_ns is None:
            self.forget(pod)
        else:
            self._take_from_node(pod)

    def _take_from_node(self, pod: Draft) -> None:
        on_node = self.on_node.get(pod.node)
        if on_node is not None:
            on_node.pop(pod.uid, None)
            if not on_node:
                del self.on_node[pod.node]

    def end_by(self, event: OfPod, outcome: str) -> None:
        pod = self.pods.get(event.uid)
        if pod is not None:
            pod.outcome, pod.loss = outcome, spans.EVICTED_TYPE
