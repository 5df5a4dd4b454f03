"""Spans from the events of schedulers: queues, attempts, preemptions, nominations, bindings."""

from __future__ import annotations

from kemu.lab.telemetry import drafts, spans
from kemu.lab.telemetry.spans import AttributeValue
from kemu.runtime.runlog import events
from kemu.runtime.runlog.events import handlers


class SchedulerEvents:
    """Handlers of these events, by kind; those of the rescheduler have the same shape."""

    def __init__(self, written: drafts.Drafts) -> None:
        self._drafts = written
        self.handlers: dict[str, drafts.Handler] = handlers.of(self)

    def _on_attempt(self, time_ns: int, actor: str, event: events.PodAttempted) -> None:
        uid, result, message = event.uid, event.result, event.message
        pod = self._drafts.pods.get(uid)
        if pod is not None:
            pod.attempts += 1
            pod.why = message if result != "scheduled" else ""
        refused = {f"kemu.rejected.{plugin}": number for plugin, number in sorted(event.plugins.items())}
        made = self._drafts.tell(time_ns, actor, event, refused)
        if pod is not None:
            pod.attempt_ids[actor] = made

    def _on_preemption(self, time_ns: int, actor: str, event: events.PreemptionPlanned) -> None:
        victims = event.victims
        listed = victims[: drafts.MOST_LINKS]
        attributes: dict[str, AttributeValue] = {
            "kemu.victims.count": len(victims),
            "kemu.victims": [key for key, _, _ in listed],
            "kemu.victims.priorities": [str(priority) for _, _, priority in listed],
        }
        if victims:
            attributes["kemu.victims.budget_violations"] = event.violations
        links = [self._drafts.to_pod("preempted", key, uid) for key, uid, _ in listed]
        parent = self._drafts.attempt_of(event.uid, actor)
        self._drafts.tell(time_ns, actor, event, attributes, links=links, parent=parent)

    def _on_victim(self, time_ns: int, actor: str, event: events.OfVictim) -> None:
        pod = self._drafts.pods.get(event.uid)
        if pod is not None and event.ok and not event.is_rejected:
            pod.outcome, pod.loss = f"preempted by {event.by}", spans.PREEMPTED_TYPE
        links = (self._drafts.to_pod("preempted by", event.by, event.by_uid),)
        self._drafts.tell(time_ns, actor, event, links=links)

    def _on_nominated(self, time_ns: int, actor: str, event: events.PodNominated) -> None:
        self._drafts.tell(time_ns, actor, event, parent=self._drafts.attempt_of(event.uid, actor))

    def _on_bind(self, time_ns: int, actor: str, event: events.PodBound) -> None:
        pod, parent = self._drafts.pods.get(event.uid), self._drafts.attempt_of(event.uid, actor)
        if event.ok and pod is not None:
            pod.bound_by, pod.node, pod.bound_ns = actor, event.node, time_ns
        attributes: dict[str, AttributeValue] = {}
        links = (self._drafts.lost_to(event.uid, event.pod, attributes),) if event.reason == "Conflict" else ()
        sequence = "" if event.ok else None
        self._drafts.tell(time_ns, actor, event, attributes, links=links, parent=parent, sequence=sequence)
