"""Spans from the events of schedulers: queues, attempts, preemptions, nominations, bindings."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.lab.telemetry import drafts, spans
from kemu.lab.telemetry.spans import NODE, REASON, AttributeValue, Link
from kemu.runtime.runlog.events import (
    OfVictim,
    PodAttempted,
    PodBound,
    PodNominated,
    PodQueued,
    PreemptionPlanned,
    handlers,
)


class SchedulerEvents:
    """Handlers of these events, by kind; those of the rescheduler have the same shape."""

    def __init__(self, written: drafts.Drafts) -> None:
        self._drafts = written
        self.handlers: dict[str, drafts.Handler] = handlers.of(self)

    def _on_queued(self, time_ns: int, actor: str, event: PodQueued) -> None:
        queue = event.queue
        attributes: dict[str, AttributeValue] = {"kemu.queue": queue, "kemu.event": event.event}
        self._drafts.emit(
            spans.QUEUE, event.pod, event.uid, actor, event.start, time_ns, attributes, name=f"queue {queue}"
        )

    def _on_attempt(self, time_ns: int, actor: str, event: PodAttempted) -> None:
        uid, result, message = event.uid, event.result, event.message
        pod = self._drafts.pods.get(uid)
        if pod is not None:
            pod.attempts += 1
            pod.why = message if result != "scheduled" else ""
        attributes: dict[str, AttributeValue] = {
            "kemu.attempt": event.n,
            "kemu.result": result,
            "kemu.nodes.evaluated": event.evaluated,
            "kemu.nodes.feasible": event.feasible,
        }
        if event.node:
            attributes[NODE] = event.node
        if message:
            attributes[REASON] = message
        plugins = event.plugins
        for plugin in sorted(plugins):
            attributes[f"kemu.rejected.{plugin}"] = plugins[plugin]
        error = (message or "internal error") if result == "error" else ""
        made = self._drafts.emit(
            spans.ATTEMPT, event.pod, uid, actor, event.start, time_ns, attributes,
            error=error, error_type="SchedulerError",
        )  # fmt: skip
        if pod is not None:
            pod.attempt_ids[actor] = made

    def _on_preemption(self, time_ns: int, actor: str, event: PreemptionPlanned) -> None:
        victims = event.victims
        listed = victims[: drafts.MOST_LINKS]
        names = [key for key, _, _ in listed]
        attributes: dict[str, AttributeValue] = {
            "kemu.candidates": event.candidates,
            "kemu.victims.count": len(victims),
            "kemu.victims": names,
            "kemu.victims.priorities": [str(priority) for _, _, priority in listed],
        }
        if victims:
            attributes[NODE] = event.node
            violations = event.violations
            some = f"{violations} of them " if violations < len(victims) else ""
            beyond = f", {some}beyond a disruption budget" if violations else ""
            attributes["kemu.victims.budget_violations"] = violations
            attributes[REASON] = f"makes room on {event.node} by preempting {_enumeration(names)}{beyond}"
        elif event.node:
            attributes[NODE] = event.node
            attributes[REASON] = f"nobody has to go from {event.node}"
        else:
            attributes[REASON] = "no preemption would help"
        links = [self._drafts.to_pod("preempted", key, uid) for key, uid, _ in listed]
        self._drafts.emit(
            "preemption", event.pod, event.uid, actor, event.start, time_ns, attributes,
            links=links, parent=self._drafts.attempt_of(event.uid, actor),
        )  # fmt: skip

    def _on_victim(self, time_ns: int, actor: str, event: OfVictim) -> None:
        by = event.by
        attributes: dict[str, AttributeValue] = {
            "kemu.preemptor": by,
            NODE: event.node,
            REASON: f"preempted by {by} for room on {event.node}",
        }
        rejected = event.get("how") == "rejected"
        if rejected:
            attributes[REASON] = f"turned away from {event.node} for {by} before it was bound"
        pod = self._drafts.pods.get(event.uid)
        if pod is not None and event.ok and not rejected:
            pod.outcome, pod.loss = f"preempted by {by}", spans.PREEMPTED_TYPE
        self._drafts.emit(
            spans.PREEMPTED, event.pod, event.uid, actor, event.start, time_ns, attributes,
            links=(self._drafts.to_pod("preempted by", by, event.by_uid),),
            error=str(attributes[REASON]) if event.ok else "it could not be deleted",
            error_type=spans.PREEMPTED_TYPE if event.ok else "NotDeleted",
        )  # fmt: skip

    def _on_nominated(self, time_ns: int, actor: str, event: PodNominated) -> None:
        node = event.node
        if not node:
            reason = "it no longer needs or may keep its place"
        elif event.why == "binding":
            reason = f"it is to be bound to {node}, but has to wait"
        else:
            reason = f"room is being made for it on {node}"
        attributes: dict[str, AttributeValue] = {REASON: reason}
        if node:
            attributes[NODE] = node
        self._drafts.emit(
            spans.NOMINATION, event.pod, event.uid, actor, event.start, time_ns, attributes,
            name="nomination" if node else "nomination cleared", parent=self._drafts.attempt_of(event.uid, actor),
        )  # fmt: skip

    def _on_bind(self, time_ns: int, actor: str, event: PodBound) -> None:
        key, uid, node, reason = event.pod, event.uid, event.node, event.reason
        attributes: dict[str, AttributeValue] = {NODE: node}
        pod, parent = self._drafts.pods.get(uid), self._drafts.attempt_of(uid, actor)
        if event.ok:
            if pod is not None:
                pod.bound_by, pod.node, pod.bound_ns = actor, node, time_ns
            self._drafts.emit(spans.BIND, key, uid, actor, event.start, time_ns, attributes, sequence="", parent=parent)
            return
        attributes[REASON] = reason
        links: Sequence[Link] = ()
        if reason == "Conflict":
            links = (self._drafts.lost_to(uid, key, attributes),)
        self._drafts.emit(
            spans.BIND, key, uid, actor, event.start, time_ns, attributes, links=links,
            error=reason or "binding failed", error_type=reason or "SchedulerError", parent=parent,
        )  # fmt: skip


def _enumeration(names: Sequence[str], most: int = 5) -> str:
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
