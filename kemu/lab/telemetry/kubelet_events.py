"""Spans from the events of kubelets: admission, containers, evictions, termination."""

from __future__ import annotations

from kemu.emulated.objects.amounts import quantities
from kemu.lab.telemetry import drafts, spans
from kemu.lab.telemetry.spans import NODE, REASON, AttributeValue, Link
from kemu.runtime.runlog import events
from kemu.runtime.runlog.events import handlers

_EXITED = "Error"
"""What Kubernetes gives as the reason of a container that ended with an exit code other than 0."""


class KubeletEvents:
    """Handlers of these events, by kind."""

    def __init__(self, written: drafts.Drafts) -> None:
        self._drafts = written
        self.handlers: dict[str, drafts.Handler] = handlers.of(self)

    def _on_admit(self, time_ns: int, actor: str, event: events.AdmissionDecided) -> None:
        pod = self._drafts.pod(event)
        key, uid, node = pod.key, pod.uid, event.node
        attributes: dict[str, AttributeValue] = {}
        links: list[Link] = []
        if event.ok:
            pod.admitted_ns = pod.starting_ns = time_ns
            pod.node, pod.instance = node, actor
            self._drafts.on_node.setdefault(node, {})[uid] = key
        else:
            reason = event.reason
            attributes["kemu.message"] = event.message
            attributes[spans.POD_PHASE], attributes[spans.POD_REASON] = "Failed", reason
            pod.ended_ns, pod.outcome, pod.loss, pod.node = time_ns, f"rejected: {reason}", reason, node
            winner = self._winner(node, pod) if reason.startswith("OutOf") else None
            if winner is not None:
                links.append(self._drafts.to_pod("lost to", winner[1], winner[0]))
                attributes["kemu.conflict.winner"] = winner[1]
        self._drafts.tell(time_ns, actor, event, attributes, links=links)
        if links:
            winner_uid, winner_key = self._last_on(node)
            why = f"{key} came later and was rejected: {event.traced().error}"
            self._drafts.emit(
                spans.WON, winner_key, winner_uid, actor, time_ns, time_ns,
                {NODE: node, "kemu.conflict.loser": key, REASON: why},
                links=(self._drafts.to_pod("won against", key, uid),),
            )  # fmt: skip
        if pod.created_ns is None and not event.ok:
            self._drafts.forget(pod)

    def _last_on(self, node: str) -> tuple[str, str]:
        return next(reversed(self._drafts.on_node[node].items()))

    def _winner(self, node: str, loser: drafts.Draft) -> tuple[str, str] | None:
        """UID and name of the pod that took its place: the last one admitted, unless the same scheduler bound both."""
        if not self._drafts.on_node.get(node):
            return None
        uid, key = self._last_on(node)
        pod = self._drafts.pods.get(uid)
        if pod is not None and pod.bound_by and pod.bound_by == loser.bound_by:
            return None
        return uid, key

    def _on_kubelet_preempting(self, time_ns: int, actor: str, event: events.PodPreempting) -> None:
        pod = self._drafts.pods.get(event.uid)
        if pod is not None:
            pod.outcome, pod.loss = f"preempted by {event.by}", spans.PREEMPTED_TYPE
        links = (self._drafts.to_pod("preempted by", event.by, event.by_uid),)
        self._drafts.tell(time_ns, actor, event, links=links)

    def _on_evicting(self, time_ns: int, actor: str, event: events.PodEvicting | events.PodShutDown) -> None:
        self._drafts.end_by(event, f"evicted from {event.node}")
        self._drafts.tell(time_ns, actor, event, {spans.POD_REASON: spans.EVICTED_TYPE})

    def _on_oom_killed(self, time_ns: int, actor: str, event: events.OomKilled) -> None:
        limit = event.limit_bytes
        why = f"it passed its limit of {quantities.shortest(limit)}" if limit else "memory ran out"
        attributes: dict[str, AttributeValue] = {
            NODE: event.node,
            spans.CONTAINER_NAME: event.container,
            spans.TERMINATED_REASON: "OOMKilled",
            REASON: why,
        }
        self._drafts.emit(
            spans.OOM_KILL, event.pod, event.uid, actor, time_ns, time_ns, attributes,
            error=why, error_type="OOMKilled",
        )  # fmt: skip

    def _on_pulled(self, time_ns: int, actor: str, event: events.ImagePulled) -> None:
        self._drafts.pod(event).starting_ns = time_ns
        attributes: dict[str, AttributeValue] = {NODE: event.node}
        if event.image:
            attributes[spans.IMAGE_NAME] = event.image
        self._drafts.emit("pull", event.pod, event.uid, actor, event.start, time_ns, attributes)

    def _on_running(self, time_ns: int, actor: str, event: events.PodRunning) -> None:
        pod = self._drafts.pod(event)
        pod.node, pod.instance = event.node, actor
        start_ns = event.start if pod.starting_ns is None else pod.starting_ns
        self._drafts.emit_stay("start", pod, start_ns, time_ns, {})
        pod.starting_ns, pod.running_ns = None, time_ns

    def _on_started(self, time_ns: int, actor: str, event: events.ContainerStarted) -> None:
        self._drafts.pod(event).has_several = True

    def _on_exited(self, time_ns: int, actor: str, event: events.ContainerExited | events.ContainerFoundEnded) -> None:
        pod, code, container = self._drafts.pod(event), event.exit_code, event.container
        attributes: dict[str, AttributeValue] = {
            NODE: event.node,
            spans.CONTAINER_NAME: container,
            "kemu.exit_code": code,
            spans.EXIT_CODE: code,
        }
        # Of a container that it finds ended, a kubelet knows the times from the pod's status, in whole seconds.
        start_ns = max(event.start, pod.created_ns or 0)
        self._drafts.emit(
            spans.CONTAINER, pod.key, pod.uid, actor, start_ns, time_ns, attributes,
            error=f"exit code {code}" if code else "", error_type=_EXITED,
        )  # fmt: skip

    def _on_restarting(self, time_ns: int, actor: str, event: events.ContainerRestarting) -> None:
        pod = self._drafts.pod(event)
        if pod.has_several:
            # The pod goes on, or has not started to run: the container has a span of its own.
            return
        pod.node, pod.instance = event.node, actor
        if pod.running_ns is None:
            pod.running_ns = event.start
        code = event.exit_code
        attributes: dict[str, AttributeValue] = {"kemu.exit_code": code, spans.EXIT_CODE: code}
        self._drafts.end_running(
            pod, time_ns, attributes, error=f"exit code {code}" if code else "", error_type=_EXITED
        )  # fmt: skip
        pod.running_ns = time_ns
        if event.delay_s:
            pod.back_off_until_ns = time_ns + int(event.delay_s * drafts.SECOND_NS)

    def _on_finished(self, time_ns: int, actor: str, event: events.PodFinished) -> None:
        pod = self._drafts.pod(event)
        pod.node, pod.instance = event.node, actor
        if pod.running_ns is None:
            pod.running_ns = event.start
        phase, code = event.phase, event.exit_code
        attributes: dict[str, AttributeValue] = {
            "kemu.phase": phase,
            spans.POD_PHASE: phase,
            "kemu.exit_code": code,
            spans.EXIT_CODE: code,
            REASON: phase,
        }
        failed = phase == "Failed"
        self._drafts.end_running(
            pod, time_ns, attributes, error=f"exit code {code}" if failed else "", error_type=_EXITED
        )
        self._drafts.left_node(pod, time_ns)
        pod.outcome, pod.loss = phase, phase if failed else ""

    def _on_terminating(self, time_ns: int, actor: str, event: events.PodTerminating) -> None:
        pod = self._drafts.pod(event)
        pod.node, pod.instance = event.node, actor
        if pod.running_ns is None and pod.admitted_ns is None:
            # It ran before its kubelet, or the run, began.
            pod.running_ns = pod.created_ns
        if pod.running_ns is not None:
            self._drafts.end_running(pod, time_ns, {})
        pod.starting_ns, pod.stopping_ns = None, time_ns

    def _on_terminated(self, time_ns: int, actor: str, event: events.PodTerminated) -> None:
        pod = self._drafts.pod(event)
        pod.node, pod.instance = event.node, actor
        forced = event.forced
        attributes: dict[str, AttributeValue] = {"kemu.forced": forced}
        if forced:
            attributes[REASON] = "killed when its grace period was over"
        self._drafts.emit_stay("termination", pod, event.start, time_ns, attributes)
        self._drafts.left_node(pod, time_ns)
