"""What is remembered of each pod until its open spans can end, and the making of spans from it.

Role: what the handlers of events (``api_events``, ``scheduler_events``, ``kubelet_events``) write into, and
:class:`kemu.telemetry.builder.SpanBuilder` takes finished spans from. Times are virtual, in ns, except those in spans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kemu.telemetry import spans
from kemu.telemetry.fault_events import FaultEvents
from kemu.telemetry.spans import NODE, OPEN, AttributeValue, Link, Span

SECOND_NS = 1_000_000_000

MOST_LINKS = 128
"""Links and listed victims of one span; as many as the OpenTelemetry SDK keeps by default."""

MOST_DOUBTFUL = 1 << 17
"""Pods that are remembered although this builder may never see them end; the oldest are given up first."""

Handler = Callable[[int, str, Mapping[str, Any]], None]
"""Takes time, actor and data of an event of one kind."""


class Draft:
    """What is remembered of a pod until its open spans can end. Times are virtual."""

    __slots__ = (
        "admitted_ns",
        "asked_to_go_ns",
        "attempts",
        "back_off_until_ns",
        "bound_by",
        "created_ns",
        "creator",
        "ended_ns",
        "gone_ns",
        "has_several",
        "instance",
        "key",
        "node",
        "outcome",
        "running_ns",
        "starting_ns",
        "stopping_ns",
        "uid",
    )

    def __init__(self, uid: str, key: str) -> None:
        self.uid = uid
        self.key = key
        self.created_ns: int | None = None
        """Set if this builder saw the creation: then it emits the root span."""
        self.creator = ""
        self.node = ""
        self.bound_by = ""
        self.attempts = 0
        self.asked_to_go_ns: int | None = None
        self.gone_ns: int | None = None
        """The object was removed."""
        self.ended_ns: int | None = None
        """No container of it will run any more."""
        self.outcome = ""
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

    def __init__(self, epoch_unix_s: int) -> None:
        """``epoch_unix_s``: Unix time of virtual time 0, added to all times of spans."""
        self._epoch_ns = epoch_unix_s * SECOND_NS
        self.now_ns = 0
        self._out: list[Span] = []
        self.pods: dict[str, Draft] = {}
        """By UID."""
        self._doubtful: dict[str, None] = {}
        """UIDs of pods whose end this builder may not see: created elsewhere, or deleted and not gone yet."""
        self.uids: dict[str, str] = {}
        """Of the pods whose creation was seen, by ``namespace/name``."""
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
        service: str = "",
    ) -> None:
        """``sequence``: where it does not depend on when the span ends. ``error``: why it is not ok."""
        if sequence is None:
            key = (uid, kind, actor)
            number = self._instant.get(key, 0)
            self._instant[key] = number + 1
            sequence = f"{actor} {end_ns} {number}"
        root = spans.root_id(uid)
        struck = self.faults.during(self._concerned(kind, uid, actor), start_ns, end_ns)
        self._out.append(
            Span(
                trace_id=spans.trace_id(uid),
                span_id=root if kind == spans.ROOT else spans.span_id(uid, kind, sequence),
                parent_id=None if kind == spans.ROOT else root,
                kind=kind,
                name=name or kind,
                pod=pod,
                uid=uid,
                service=service or spans.service_of(actor),
                instance=actor,
                start_ns=self._epoch_ns + min(start_ns, end_ns),
                end_ns=self._epoch_ns + end_ns,
                attributes=attributes,
                links=tuple(links),
                events=tuple(replace(event, time_ns=self._epoch_ns + event.time_ns) for event in struck),
                ok=not error,
                message=error,
            )
        )

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
    ) -> None:
        """Something that the pod does on its node; identified by its start, as it may be open when the run ends."""
        attributes[NODE] = pod.node
        self.emit(
            kind, pod.key, pod.uid, pod.instance, start_ns, end_ns, attributes, sequence=str(start_ns), error=error
        )  # fmt: skip

    def pod(self, data: Mapping[str, Any]) -> Draft:
        uid = data["uid"]
        pod = self.pods.get(uid)
        if pod is None:
            pod = self.pods[uid] = Draft(uid, data["pod"])
            self.doubt(pod)
        return pod

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
        namespace, _, name = pod.key.partition("/")
        attributes: dict[str, AttributeValue] = {
            "k8s.namespace.name": namespace,
            "k8s.pod.name": name,
            "k8s.pod.uid": pod.uid,
        }
        if pod.node:
            attributes[NODE] = pod.node
        if pod.attempts:
            attributes["kemu.attempts"] = pod.attempts
        if pod.outcome:
            attributes["kemu.outcome"] = pod.outcome
        if is_open:
            attributes[OPEN] = True
        self.emit(
            spans.ROOT, pod.key, pod.uid, pod.creator or "user", pod.created_ns, end_ns, attributes,
            name=f"pod {pod.key}",
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

    def end_running(self, pod: Draft, time_ns: int, attributes: dict[str, AttributeValue], *, error: str = "") -> None:
        """End its current span: running, or back-off and then running."""
        assert pod.running_ns is not None
        until_ns, pod.back_off_until_ns = pod.back_off_until_ns, None
        if until_ns is not None:
            self.emit_stay(spans.BACK_OFF, pod, pod.running_ns, min(until_ns, time_ns), {})
            pod.running_ns = until_ns
            if until_ns > time_ns:
                pod.running_ns = None
                return
        self.emit_stay(spans.RUNNING, pod, pod.running_ns, time_ns, attributes, error=error)
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

    def end_by(self, data: Mapping[str, Any], outcome: str) -> None:
        pod = self.pods.get(data["uid"])
        if pod is not None:
            pod.outcome = outcome


def to_pod(relation: str, key: str, uid: str) -> Link:
    return Link(spans.trace_id(uid), spans.root_id(uid), relation, key, key)


def lost_to(uid: str, key: str, winner: str, attributes: dict[str, AttributeValue]) -> Link:
    """A pod is bound at most once, so the id of that span is known without knowing who bound it."""
    if winner:
        attributes["kemu.conflict.winner"] = winner
    return Link(spans.trace_id(uid), spans.span_id(uid, spans.BIND), "lost to", winner or "whoever bound it first", key)
