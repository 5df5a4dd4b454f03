"""Spans from run-log events, one by one.

A :class:`SpanBuilder` may see all events of a run, or only those of the actors of one cell: it makes of them what it
can, and what several builders make of the parts of a run fits together, as ids are derived (``spans``). The root span
of a pod comes from whoever saw its creation by the API server.

No event is kept. What is kept of a pod goes when the pod is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kemu.telemetry import spans
from kemu.telemetry.spans import NODE, OPEN, REASON, AttributeValue, Link, Span

SECOND_NS = 1_000_000_000

MOST_LINKS = 128
"""Links and listed victims of one span; as many as the OpenTelemetry SDK keeps by default."""

_POD_PREFIX = "/registry/pods/"


class _Pod:
    """What is to be remembered of a pod until its open spans can end. Times are virtual."""

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
        """Set where this builder saw the creation: it owes the root span."""
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
        """Its containers have runs and restarts of their own."""
        self.starting_ns: int | None = None
        """Admitted, images there, and not yet running."""
        self.running_ns: int | None = None
        self.back_off_until_ns: int | None = None
        self.stopping_ns: int | None = None


class SpanBuilder:
    """``feed`` it every event in order, then ``flush``."""

    def __init__(self, epoch_unix_s: int = 0) -> None:
        """``epoch_unix_s``: Unix time of virtual time 0, added to all times."""
        self._epoch_ns = epoch_unix_s * SECOND_NS
        self._now_ns = 0
        self._out: list[Span] = []
        self._pods: dict[str, _Pod] = {}
        """By UID."""
        self._uids: dict[str, str] = {}
        """Of the pods whose creation was seen, by ``namespace/name``."""
        self._made: dict[str, str] = {}
        """UIDs of the pods that the user's workloads made, by ``namespace/name``."""
        self._on_node: dict[str, dict[str, str]] = {}
        """By node: pods that its kubelet admitted and that still count there, in the order of admission, UID → key."""
        self._instant: dict[tuple[str, str, str], int] = {}
        """How many spans of (UID, kind, actor) ended in this instant."""
        self._sees_store = False
        self._handlers: dict[str, Callable[[int, str, Mapping[str, Any]], None]] = {
            "store.txn": self._on_txn,
            "api.request": self._on_request,
            "api.refused": self._on_refused,
            "user.pod": self._on_user_pod,
            "controller.pod": self._on_controller_pod,
            "sched.queued": self._on_queued,
            "sched.attempt": self._on_attempt,
            "sched.preemption": self._on_preemption,
            "sched.victim": self._on_victim,
            "rescheduler.victim": self._on_victim,
            "sched.nominated": self._on_nominated,
            "sched.bind": self._on_bind,
            "kubelet.admit": self._on_admit,
            "kubelet.preempting": self._on_kubelet_preempting,
            "kubelet.evicting": self._on_evicting,
            "kubelet.shutting_down": self._on_shutting_down,
            "kubelet.oom_killed": self._on_oom_killed,
            "taint.eviction": self._on_removed,
            "podgc.deleted": self._on_removed,
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

    def feed(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> Sequence[Span]:
        """The spans that are finished by this event."""
        if time_ns > self._now_ns:
            self._now_ns = time_ns
            self._instant.clear()
        handler = self._handlers.get(kind)
        if handler is None:
            return ()
        handler(time_ns, actor, data)
        if not self._out:
            return ()
        out, self._out = self._out, []
        return out

    def flush(self) -> list[Span]:
        """The run is over: what is still open ends now, and says so (``kemu.open``)."""
        for pod in list(self._pods.values()):
            self._flush_life(pod)
            if pod.created_ns is not None:
                self._finish(pod, self._end_of(pod))
        self._pods.clear()
        out, self._out = self._out, []
        return out

    # --- making spans ------------------------------------------------------------------------------------------------

    def _emit(
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
                ok=not error,
                message=error,
            )
        )

    def _pod(self, data: Mapping[str, Any]) -> _Pod:
        uid = data["uid"]
        pod = self._pods.get(uid)
        if pod is None:
            pod = self._pods[uid] = _Pod(uid, data["pod"])
        return pod

    def _finish(self, pod: _Pod, end: tuple[int, bool]) -> None:
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
        self._emit(
            spans.ROOT, pod.key, pod.uid, pod.creator or "user", pod.created_ns, end_ns, attributes,
            name=f"pod {pod.key}",
        )  # fmt: skip
        self._pods.pop(pod.uid, None)
        if self._uids.get(pod.key) == pod.uid:
            del self._uids[pod.key]

    def _end_of(self, pod: _Pod) -> tuple[int, bool]:
        if pod.gone_ns is not None:
            return pod.gone_ns, False
        if not self._sees_store and pod.asked_to_go_ns is not None and not pod.bound_by:
            # Without a node a pod is removed at once, and there is no kubelet to say so.
            return pod.asked_to_go_ns, False
        if pod.ended_ns is not None:
            return pod.ended_ns, False
        return self._now_ns, True

    def _flush_life(self, pod: _Pod) -> None:
        now_ns = self._now_ns
        if pod.stopping_ns is not None:
            self._emit_stay("termination", pod, pod.stopping_ns, now_ns, {OPEN: True})
        elif pod.running_ns is not None:
            self._end_running(pod, now_ns, {OPEN: True})
        elif pod.starting_ns is not None:
            self._emit_stay("start", pod, pod.starting_ns, now_ns, {OPEN: True})

    # --- store, API server, user ------------------------------------------------------------------------------------

    def _on_txn(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        self._sees_store = True
        for change in data["changes"]:
            if change[0] == 1 and change[1].startswith(_POD_PREFIX):
                uid = self._uids.get(change[1][len(_POD_PREFIX) :])
                if uid is not None:
                    # The answer to the request that removed it comes yet, and is part of its trace.
                    self._pods[uid].gone_ns = time_ns

    def _on_request(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        if data["resource"] != "pods":
            return
        verb, uid, by = data["verb"], data["uid"], data["by"]
        key = f"{data['namespace']}/{data['name']}"
        pod = self._pods.get(uid)
        attributes: dict[str, AttributeValue] = {"kemu.by": by, "kemu.revision": data["rev"]}
        if verb == "create":
            if pod is None:
                pod = self._pods[uid] = _Pod(uid, key)
            pod.created_ns, pod.creator = data["start"], by
            self._uids[key] = uid
            self._emit(spans.ADMISSION, key, uid, actor, data["start"], time_ns, attributes, sequence="")
        elif verb == "bind":
            # The scheduler's own span tells the same; who won matters to those who lose.
            if pod is not None:
                pod.bound_by = by
        elif verb in ("delete", "evict"):
            self._emit(verb, key, uid, actor, data["start"], time_ns, attributes)
            if pod is None or pod.created_ns is None:
                return
            if pod.asked_to_go_ns is None:
                pod.asked_to_go_ns = time_ns
            if pod.gone_ns is not None or (not self._sees_store and by.startswith("kubelet/")):
                self._flush_life(pod)
                self._finish(pod, (time_ns, False))

    def _on_refused(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        verb, reason = data["verb"], data["reason"]
        if data["resource"] != "pods" or verb in ("create", "get", "list", "watch"):
            return
        key = f"{data['namespace']}/{data['name']}"
        uid = data["uid"] or self._uids.get(key)
        if not uid:
            return
        attributes: dict[str, AttributeValue] = {"kemu.by": data["by"], REASON: reason, "kemu.message": data["message"]}
        links: list[Link] = []
        if verb == "bind" and reason == "Conflict":
            pod = self._pods.get(uid)
            links.append(self._lost_to(uid, key, pod.bound_by if pod is not None else "", attributes))
        self._emit(
            spans.REFUSED, key, uid, actor, data["start"], time_ns, attributes,
            name=f"{verb} refused", links=links, error=f"{reason}: {data['message']}",
        )  # fmt: skip

    @staticmethod
    def _lost_to(uid: str, key: str, winner: str, attributes: dict[str, AttributeValue]) -> Link:
        """A pod is bound at most once, so whose ever that binding is, its span is known."""
        if winner:
            attributes["kemu.conflict.winner"] = winner
        return Link(
            spans.trace_id(uid), spans.span_id(uid, spans.BIND), "lost to", winner or "whoever bound it first", key
        )

    def _on_user_pod(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        key, uid, old = data["pod"], data["uid"], data["replaces"]
        self._made[key] = uid
        attributes: dict[str, AttributeValue] = {"kemu.workload": data["workload"], "kemu.number": data["n"]}
        self._emit_created(time_ns, actor, key, uid, attributes, old, self._made.get(old))

    def _on_controller_pod(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        attributes: dict[str, AttributeValue] = {"kemu.owner": data["owner"]}
        self._emit_created(
            time_ns, actor, data["pod"], data["uid"], attributes, data["replaces"], data["replaces_uid"]
        )  # fmt: skip

    def _emit_created(
        self,
        time_ns: int,
        actor: str,
        key: str,
        uid: str,
        attributes: dict[str, AttributeValue],
        old: str,
        old_uid: str | None,
    ) -> None:
        """``old``: the pod whose place it takes, or nothing."""
        links = []
        if old:
            attributes["kemu.replaces"] = old
            attributes[REASON] = f"replaces {old}"
            if old_uid is not None:
                links.append(_to_pod("replaces", old, old_uid))
                self._emit(
                    "replaced", old, old_uid, actor, time_ns, time_ns,
                    {"kemu.replaced_by": key, REASON: f"{key} takes its place"},
                    name=f"replaced by {key}", links=(_to_pod("replaced by", key, uid),), sequence="",
                )  # fmt: skip
        self._emit("created", key, uid, actor, time_ns, time_ns, attributes, links=links, sequence="")

    # --- schedulers -------------------------------------------------------------------------------------------------

    def _on_queued(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        queue = data["queue"]
        attributes: dict[str, AttributeValue] = {"kemu.queue": queue, "kemu.event": data["event"]}
        self._emit(
            spans.QUEUE, data["pod"], data["uid"], actor, data["start"], time_ns, attributes, name=f"queue {queue}"
        )

    def _on_attempt(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        uid, result, message = data["uid"], data["result"], data["message"]
        pod = self._pods.get(uid)
        if pod is not None:
            pod.attempts += 1
        attributes: dict[str, AttributeValue] = {
            "kemu.attempt": data["n"],
            "kemu.result": result,
            "kemu.nodes.evaluated": data["evaluated"],
            "kemu.nodes.feasible": data["feasible"],
        }
        if data["node"]:
            attributes[NODE] = data["node"]
        if message:
            attributes[REASON] = message
        plugins = data["plugins"]
        for plugin in sorted(plugins):
            attributes[f"kemu.rejected.{plugin}"] = plugins[plugin]
        error = (message or "internal error") if result == "error" else ""
        self._emit(spans.ATTEMPT, data["pod"], uid, actor, data["start"], time_ns, attributes, error=error)

    def _on_preemption(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        victims = data["victims"]
        listed = victims[:MOST_LINKS]
        names = [key for key, _, _ in listed]
        attributes: dict[str, AttributeValue] = {
            "kemu.candidates": data["candidates"],
            "kemu.victims.count": len(victims),
            "kemu.victims": names,
            "kemu.victims.priorities": [str(priority) for _, _, priority in listed],
        }
        if victims:
            attributes[NODE] = data["node"]
            attributes[REASON] = f"makes room on {data['node']} by preempting {_enumeration(names)}"
        elif data["node"]:
            attributes[NODE] = data["node"]
            attributes[REASON] = f"nobody has to go from {data['node']}"
        else:
            attributes[REASON] = "no preemption would help"
        links = [_to_pod("preempted", key, uid) for key, uid, _ in listed]
        self._emit("preemption", data["pod"], data["uid"], actor, data["start"], time_ns, attributes, links=links)

    def _on_victim(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        by = data["by"]
        attributes: dict[str, AttributeValue] = {
            "kemu.preemptor": by,
            NODE: data["node"],
            REASON: f"preempted by {by} for room on {data['node']}",
        }
        rejected = data.get("how") == "rejected"
        if rejected:
            attributes[REASON] = f"turned away from {data['node']} for {by} while it waited for its permit"
        pod = self._pods.get(data["uid"])
        if pod is not None and data["ok"] and not rejected:
            pod.outcome = f"preempted by {by}"
        self._emit(
            "preempted", data["pod"], data["uid"], actor, data["start"], time_ns, attributes,
            name=f"preempted by {by}", links=(_to_pod("preempted by", by, data["by_uid"]),),
            error="" if data["ok"] else "it could not be deleted",
        )  # fmt: skip

    def _on_kubelet_preempting(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        """Which takes until the pod has terminated; the span says when the kubelet turned against it."""
        by, node = data["by"], data["node"]
        attributes: dict[str, AttributeValue] = {
            "kemu.preemptor": by,
            NODE: node,
            REASON: f"killed by the kubelet of {node} to make room for {by}",
        }
        pod = self._pods.get(data["uid"])
        if pod is not None:
            pod.outcome = f"preempted by {by}"
        self._emit(
            "preempted", data["pod"], data["uid"], actor, time_ns, time_ns, attributes,
            name=f"preempted by {by}", links=(_to_pod("preempted by", by, data["by_uid"]),),
        )  # fmt: skip

    def _on_evicting(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        """What follows is the termination; the span says when the kubelet chose the pod, and why."""
        attributes: dict[str, AttributeValue] = {
            NODE: data["node"],
            "kemu.signal": data["signal"],
            "kemu.grace_period_s": data["grace_s"],
            REASON: data["message"].strip(),
        }
        self._end_by(data, f"evicted from {data['node']}")
        self._emit("evicted", data["pod"], data["uid"], actor, time_ns, time_ns, attributes, name="evicted")

    def _on_shutting_down(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        """What follows is the termination."""
        attributes: dict[str, AttributeValue] = {
            NODE: data["node"],
            "kemu.grace_period_s": data["grace_s"],
            REASON: "the machine is being shut down",
        }
        self._end_by(data, f"evicted from {data['node']}")
        self._emit("evicted", data["pod"], data["uid"], actor, time_ns, time_ns, attributes, name="evicted")

    def _on_oom_killed(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        attributes: dict[str, AttributeValue] = {
            NODE: data["node"],
            "k8s.container.name": data["container"],
            REASON: "memory ran out",
        }
        self._emit(
            "oom", data["pod"], data["uid"], actor, time_ns, time_ns, attributes,
            name=f"OOM kill of {data['container']}", error="memory ran out",
        )  # fmt: skip

    def _on_removed(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        """By a controller, because of the pod's node: ``start`` is when that was due."""
        why = data.get("why") or f"does not tolerate a taint of {data['node']}"
        attributes: dict[str, AttributeValue] = {NODE: data["node"], REASON: why}
        if data["ok"]:
            self._end_by(data, f"evicted from {data['node']}" if data["node"] else why)
        self._emit(
            "evicted", data["pod"], data["uid"], actor, data["start"], time_ns, attributes,
            name="evicted", error="" if data["ok"] else "it was gone",
        )  # fmt: skip

    def _end_by(self, data: Mapping[str, Any], outcome: str) -> None:
        pod = self._pods.get(data["uid"])
        if pod is not None:
            pod.outcome = outcome

    def _on_nominated(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        node = data["node"]
        attributes: dict[str, AttributeValue] = {
            REASON: f"its place on {node} is being cleared" if node else "it no longer needs or may keep its place"
        }
        if node:
            attributes[NODE] = node
        self._emit(
            "nomination", data["pod"], data["uid"], actor, data["start"], time_ns, attributes,
            name="nomination" if node else "nomination cleared",
        )  # fmt: skip

    def _on_bind(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        key, uid, node, reason = data["pod"], data["uid"], data["node"], data["reason"]
        attributes: dict[str, AttributeValue] = {NODE: node}
        pod = self._pods.get(uid)
        if data["ok"]:
            if pod is not None:
                pod.bound_by, pod.node = actor, node
            self._emit(spans.BIND, key, uid, actor, data["start"], time_ns, attributes, sequence="")
            return
        attributes[REASON] = reason
        links: Sequence[Link] = ()
        if reason == "Conflict":
            links = (self._lost_to(uid, key, pod.bound_by if pod is not None else "", attributes),)
        self._emit(
            spans.BIND, key, uid, actor, data["start"], time_ns, attributes, links=links,
            error=reason or "binding failed",
        )  # fmt: skip

    # --- kubelets ---------------------------------------------------------------------------------------------------

    def _on_admit(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        pod = self._pod(data)
        key, uid, node = pod.key, pod.uid, data["node"]
        attributes: dict[str, AttributeValue] = {NODE: node}
        links: list[Link] = []
        error = ""
        if data["ok"]:
            pod.admitted_ns = pod.starting_ns = time_ns
            pod.node, pod.instance = node, actor
            self._on_node.setdefault(node, {})[uid] = key
        else:
            reason = data["reason"]
            error = f"{reason}: {data['message']}" if data["message"] else reason
            attributes[REASON] = reason
            attributes["kemu.message"] = data["message"]
            pod.ended_ns, pod.outcome, pod.node = time_ns, f"rejected: {reason}", node
            winner = self._winner(node, pod) if reason.startswith("OutOf") else None
            if winner is not None:
                links.append(_to_pod("lost to", winner[1], winner[0]))
                attributes["kemu.conflict.winner"] = winner[1]
        self._emit("kubelet admission", key, uid, actor, data["start"], time_ns, attributes, links=links, error=error)
        if links:
            winner_uid, winner_key = self._last_on(node)
            self._emit(
                "won", winner_key, winner_uid, actor, time_ns, time_ns,
                {NODE: node, "kemu.conflict.loser": key, REASON: f"{key} came later and was rejected: {error}"},
                name=f"won against {key}", links=(_to_pod("won against", key, uid),),
            )  # fmt: skip
        if pod.created_ns is None and not data["ok"]:
            del self._pods[uid]

    def _last_on(self, node: str) -> tuple[str, str]:
        return next(reversed(self._on_node[node].items()))

    def _winner(self, node: str, loser: _Pod) -> tuple[str, str] | None:
        """UID and name of the pod that took the place: the node's latest arrival, unless one scheduler bound both."""
        if not self._on_node.get(node):
            return None
        uid, key = self._last_on(node)
        pod = self._pods.get(uid)
        if pod is not None and pod.bound_by and pod.bound_by == loser.bound_by:
            return None
        return uid, key

    def _on_pulled(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        self._pod(data).starting_ns = time_ns
        self._emit("pull", data["pod"], data["uid"], actor, data["start"], time_ns, {NODE: data["node"]})

    def _on_running(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        pod = self._pod(data)
        pod.node, pod.instance = data["node"], actor
        start_ns = data["start"] if pod.starting_ns is None else pod.starting_ns
        self._emit_stay("start", pod, start_ns, time_ns, {})
        pod.starting_ns, pod.running_ns = None, time_ns

    def _on_started(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        self._pod(data).has_several = True

    def _on_exited(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        pod, code, container = self._pod(data), data["exit_code"], data["container"]
        attributes: dict[str, AttributeValue] = {
            NODE: data["node"],
            "k8s.container.name": container,
            "kemu.exit_code": code,
        }
        # What a kubelet finds ended it knows from the pod's status, where times are whole seconds.
        start_ns = max(data["start"], pod.created_ns or 0)
        self._emit(
            spans.CONTAINER, pod.key, pod.uid, actor, start_ns, time_ns, attributes,
            name=f"container {container}", error=f"exit code {code}" if code else "",
        )  # fmt: skip

    def _on_restarting(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        pod = self._pod(data)
        if pod.has_several:
            # The pod runs on, or has not come to run yet: its container has a span.
            return
        pod.node, pod.instance = data["node"], actor
        if pod.running_ns is None:
            pod.running_ns = data["start"]
        code = data["exit_code"]
        self._end_running(pod, time_ns, {"kemu.exit_code": code}, error=f"exit code {code}" if code else "")
        pod.running_ns = time_ns
        if data["delay_s"]:
            pod.back_off_until_ns = time_ns + int(data["delay_s"] * SECOND_NS)

    def _on_finished(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        pod = self._pod(data)
        pod.node, pod.instance = data["node"], actor
        if pod.running_ns is None:
            pod.running_ns = data["start"]
        phase, code = data["phase"], data["exit_code"]
        attributes: dict[str, AttributeValue] = {"kemu.phase": phase, "kemu.exit_code": code, REASON: phase}
        self._end_running(pod, time_ns, attributes, error=f"exit code {code}" if phase == "Failed" else "")
        self._left_node(pod, time_ns)
        pod.outcome = phase

    def _on_terminating(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        pod = self._pod(data)
        pod.node, pod.instance = data["node"], actor
        if pod.running_ns is None and pod.admitted_ns is None:
            # It ran before its kubelet, or the run, began.
            pod.running_ns = pod.created_ns
        if pod.running_ns is not None:
            self._end_running(pod, time_ns, {})
        pod.starting_ns, pod.stopping_ns = None, time_ns

    def _on_terminated(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        pod = self._pod(data)
        pod.node, pod.instance = data["node"], actor
        forced = data["forced"]
        attributes: dict[str, AttributeValue] = {"kemu.forced": forced}
        if forced:
            attributes[REASON] = "killed when its grace period was over"
        self._emit_stay("termination", pod, data["start"], time_ns, attributes)
        self._left_node(pod, time_ns)

    def _left_node(self, pod: _Pod, time_ns: int) -> None:
        pod.starting_ns = pod.running_ns = pod.stopping_ns = None
        pod.ended_ns = time_ns
        on_node = self._on_node.get(pod.node)
        if on_node is not None:
            on_node.pop(pod.uid, None)
        if pod.created_ns is None:
            self._pods.pop(pod.uid, None)

    def _end_running(self, pod: _Pod, time_ns: int, attributes: dict[str, AttributeValue], *, error: str = "") -> None:
        """Ends what it does now: running, or waiting for its next start and then running."""
        assert pod.running_ns is not None
        until_ns, pod.back_off_until_ns = pod.back_off_until_ns, None
        if until_ns is not None:
            self._emit_stay(spans.BACK_OFF, pod, pod.running_ns, min(until_ns, time_ns), {})
            pod.running_ns = until_ns
            if until_ns > time_ns:
                pod.running_ns = None
                return
        self._emit_stay(spans.RUNNING, pod, pod.running_ns, time_ns, attributes, error=error)
        pod.running_ns = None

    def _emit_stay(
        self,
        kind: str,
        pod: _Pod,
        start_ns: int,
        end_ns: int,
        attributes: dict[str, AttributeValue],
        *,
        error: str = "",
    ) -> None:
        """Something that the pod does on its node; known by its start, as it may be open when the run ends."""
        attributes[NODE] = pod.node
        self._emit(
            kind, pod.key, pod.uid, pod.instance, start_ns, end_ns, attributes, sequence=str(start_ns), error=error
        )  # fmt: skip


def _to_pod(relation: str, key: str, uid: str) -> Link:
    return Link(spans.trace_id(uid), spans.root_id(uid), relation, key, key)


def _enumeration(names: Sequence[str], most: int = 5) -> str:
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"
