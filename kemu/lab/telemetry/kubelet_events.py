"""Spans from the events of kubelets: admission, containers, evictions, termination."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.emulated.objects.amounts import quantities
from kemu.lab.telemetry import drafts, spans
from kemu.lab.telemetry.spans import NODE, REASON, AttributeValue, Link

_EXITED = "Error"
"""What Kubernetes gives as the reason of a container that ended with an exit code other than 0."""


class KubeletEvents:
    """Handlers of these events, by kind."""

    def __init__(self, written: drafts.Drafts) -> None:
        self._drafts = written
        self.handlers: dict[str, drafts.Handler] = {
            "kubelet.admit": self._on_admit,
            "kubelet.preempting": self._on_kubelet_preempting,
            "kubelet.evicting": self._on_evicting,
            "kubelet.shutting_down": self._on_shutting_down,
            "kubelet.oom_killed": self._on_oom_killed,
            "kubelet.probed": self._on_probed,
            "kubelet.killing": self._on_killing,
            "kubelet.hook_failed": self._on_hook_failed,
            "kubelet.resize": self._on_resize,
            "kubelet.mounted": self._on_mounted,
            "kubelet.mount_timeout": self._on_mount_timeout,
            "kubelet.pulled": self._on_pulled,
            "kubelet.running": self._on_running,
            "kubelet.started": self._on_started,
            "kubelet.exited": self._on_exited,
            "kubelet.restarting": self._on_restarting,
            "kubelet.found_ended": self._on_exited,
            "kubelet.finished": self._on_finished,
            "kubelet.terminating": self._on_terminating,
            "kubelet.terminated": self._on_terminated,
        }

    def _on_admit(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        pod = self._drafts.pod(data)
        key, uid, node = pod.key, pod.uid, data["node"]
        attributes: dict[str, AttributeValue] = {NODE: node}
        links: list[Link] = []
        error = ""
        if data["ok"]:
            pod.admitted_ns = pod.starting_ns = time_ns
            pod.node, pod.instance = node, actor
            self._drafts.on_node.setdefault(node, {})[uid] = key
        else:
            reason = data["reason"]
            error = f"{reason}: {data['message']}" if data["message"] else reason
            attributes[REASON] = reason
            attributes["kemu.message"] = data["message"]
            attributes[spans.POD_PHASE], attributes[spans.POD_REASON] = "Failed", reason
            pod.ended_ns, pod.outcome, pod.loss, pod.node = time_ns, f"rejected: {reason}", reason, node
            winner = self._winner(node, pod) if reason.startswith("OutOf") else None
            if winner is not None:
                links.append(self._drafts.to_pod("lost to", winner[1], winner[0]))
                attributes["kemu.conflict.winner"] = winner[1]
        self._drafts.emit(
            "kubelet admission", key, uid, actor, data["start"], time_ns, attributes, links=links,
            error=error, error_type=data["reason"],
        )  # fmt: skip
        if links:
            winner_uid, winner_key = self._last_on(node)
            self._drafts.emit(
                spans.WON, winner_key, winner_uid, actor, time_ns, time_ns,
                {NODE: node, "kemu.conflict.loser": key, REASON: f"{key} came later and was rejected: {error}"},
                links=(self._drafts.to_pod("won against", key, uid),),
            )  # fmt: skip
        if pod.created_ns is None and not data["ok"]:
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

    def _on_kubelet_preempting(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        """The termination follows; the span says when the kubelet chose the pod as a victim."""
        by, node = data["by"], data["node"]
        attributes: dict[str, AttributeValue] = {
            "kemu.preemptor": by,
            NODE: node,
            REASON: f"killed by the kubelet of {node} to make room for {by}",
        }
        pod = self._drafts.pods.get(data["uid"])
        if pod is not None:
            pod.outcome, pod.loss = f"preempted by {by}", spans.PREEMPTED_TYPE
        self._drafts.emit(
            spans.PREEMPTED, data["pod"], data["uid"], actor, time_ns, time_ns, attributes,
            links=(self._drafts.to_pod("preempted by", by, data["by_uid"]),),
            error=str(attributes[REASON]), error_type=spans.PREEMPTED_TYPE,
        )  # fmt: skip

    def _on_evicting(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        """The termination follows; the span says when the kubelet chose the pod, and why."""
        attributes: dict[str, AttributeValue] = {
            NODE: data["node"],
            "kemu.signal": data["signal"],
            "kemu.grace_period_s": data["grace_s"],
            REASON: data["message"].strip(),
        }
        self._evicted(time_ns, actor, data, attributes)

    def _on_shutting_down(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        """The termination follows."""
        attributes: dict[str, AttributeValue] = {
            NODE: data["node"],
            "kemu.grace_period_s": data["grace_s"],
            REASON: "the machine is being shut down",
        }
        self._evicted(time_ns, actor, data, attributes)

    def _evicted(
        self, time_ns: int, actor: str, data: Mapping[str, Any], attributes: dict[str, AttributeValue]
    ) -> None:
        attributes[spans.POD_REASON] = spans.EVICTED_TYPE
        self._drafts.end_by(data, f"evicted from {data['node']}")
        self._drafts.emit(
            "evicted", data["pod"], data["uid"], actor, time_ns, time_ns, attributes,
            error=str(attributes[REASON]), error_type=spans.EVICTED_TYPE,
        )  # fmt: skip

    def _on_oom_killed(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        limit = data.get("limit_bytes")
        why = f"it passed its limit of {quantities.shortest(limit)}" if limit else "memory ran out"
        attributes: dict[str, AttributeValue] = {
            NODE: data["node"],
            spans.CONTAINER_NAME: data["container"],
            spans.TERMINATED_REASON: "OOMKilled",
            REASON: why,
        }
        self._drafts.emit(
            spans.OOM_KILL, data["pod"], data["uid"], actor, time_ns, time_ns, attributes,
            error=why, error_type="OOMKilled",
        )  # fmt: skip

    def _on_probed(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        """What a probe has come to, after as many answers as its threshold wants."""
        why = f"the {data['probe']} probe {'succeeds' if data['ok'] else 'fails'}"
        attributes: dict[str, AttributeValue] = {
            NODE: data["node"],
            spans.CONTAINER_NAME: data["container"],
            REASON: why,
        }
        error, kind = ("", "") if data["ok"] else (why, "Unhealthy")
        self._drafts.emit(
            spans.PROBE, data["pod"], data["uid"], actor, time_ns, time_ns, attributes, error=error, error_type=kind
        )

    def _on_killing(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        """To start anew; its end and its next start follow."""
        probe = data["probe"]
        attributes: dict[str, AttributeValue] = {
            NODE: data["node"],
            spans.CONTAINER_NAME: data["container"],
            "kemu.grace_period_s": data["grace_s"],
            REASON: f"it failed its {probe} probe" if probe else "its resize requires a restart",
        }
        self._drafts.emit(spans.KILLED, data["pod"], data["uid"], actor, time_ns, time_ns, attributes)

    def _on_resize(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        what, message = data["what"], data["message"]
        attributes: dict[str, AttributeValue] = {NODE: data["node"], REASON: f"{what}: {message}" if message else what}
        self._drafts.emit(spans.RESIZE, data["pod"], data["uid"], actor, time_ns, time_ns, attributes)

    def _on_hook_failed(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        """The container is killed to start anew."""
        attributes: dict[str, AttributeValue] = {
            NODE: data["node"],
            spans.CONTAINER_NAME: data["container"],
            REASON: "its postStart hook failed",
        }
        self._drafts.emit(spans.KILLED, data["pod"], data["uid"], actor, time_ns, time_ns, attributes)

    def _on_mounted(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        attributes: dict[str, AttributeValue] = {REASON: f"mounted {', '.join(data['volumes'])}"}
        self._drafts.emit(spans.MOUNT, data["pod"], data["uid"], actor, data["start"], time_ns, attributes)

    def _on_mount_timeout(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        """The kubelet goes on trying."""
        why = f"not mounted in time: {', '.join(data['volumes'])}"
        self._drafts.emit(
            spans.MOUNT, data["pod"], data["uid"], actor, time_ns, time_ns, {REASON: why},
            error=why, error_type="FailedMount",
        )  # fmt: skip

    def _on_pulled(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        self._drafts.pod(data).starting_ns = time_ns
        attributes: dict[str, AttributeValue] = {NODE: data["node"]}
        if data.get("image"):
            attributes[spans.IMAGE_NAME] = data["image"]
        self._drafts.emit("pull", data["pod"], data["uid"], actor, data["start"], time_ns, attributes)

    def _on_running(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        pod = self._drafts.pod(data)
        pod.node, pod.instance = data["node"], actor
        start_ns = data["start"] if pod.starting_ns is None else pod.starting_ns
        self._drafts.emit_stay("start", pod, start_ns, time_ns, {})
        pod.starting_ns, pod.running_ns = None, time_ns

    def _on_started(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        self._drafts.pod(data).has_several = True

    def _on_exited(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        pod, code, container = self._drafts.pod(data), data["exit_code"], data["container"]
        attributes: dict[str, AttributeValue] = {
            NODE: data["node"],
            spans.CONTAINER_NAME: container,
            "kemu.exit_code": code,
            spans.EXIT_CODE: code,
        }
        # Of a container that it finds ended, a kubelet knows the times from the pod's status, in whole seconds.
        start_ns = max(data["start"], pod.created_ns or 0)
        self._drafts.emit(
            spans.CONTAINER, pod.key, pod.uid, actor, start_ns, time_ns, attributes,
            error=f"exit code {code}" if code else "", error_type=_EXITED,
        )  # fmt: skip

    def _on_restarting(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        pod = self._drafts.pod(data)
        if pod.has_several:
            # The pod goes on, or has not started to run: the container has a span of its own.
            return
        pod.node, pod.instance = data["node"], actor
        if pod.running_ns is None:
            pod.running_ns = data["start"]
        code = data["exit_code"]
        attributes: dict[str, AttributeValue] = {"kemu.exit_code": code, spans.EXIT_CODE: code}
        self._drafts.end_running(
            pod, time_ns, attributes, error=f"exit code {code}" if code else "", error_type=_EXITED
        )  # fmt: skip
        pod.running_ns = time_ns
        if data["delay_s"]:
            pod.back_off_until_ns = time_ns + int(data["delay_s"] * drafts.SECOND_NS)

    def _on_finished(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        pod = self._drafts.pod(data)
        pod.node, pod.instance = data["node"], actor
        if pod.running_ns is None:
            pod.running_ns = data["start"]
        phase, code = data["phase"], data["exit_code"]
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

    def _on_terminating(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        pod = self._drafts.pod(data)
        pod.node, pod.instance = data["node"], actor
        if pod.running_ns is None and pod.admitted_ns is None:
            # It ran before its kubelet, or the run, began.
            pod.running_ns = pod.created_ns
        if pod.running_ns is not None:
            self._drafts.end_running(pod, time_ns, {})
        pod.starting_ns, pod.stopping_ns = None, time_ns

    def _on_terminated(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        pod = self._drafts.pod(data)
        pod.node, pod.instance = data["node"], actor
        forced = data["forced"]
        attributes: dict[str, AttributeValue] = {"kemu.forced": forced}
        if forced:
            attributes[REASON] = "killed when its grace period was over"
        self._drafts.emit_stay("termination", pod, data["start"], time_ns, attributes)
        self._drafts.left_node(pod, time_ns)
