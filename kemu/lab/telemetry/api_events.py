"""Spans from the events of the API server, the store, users and controllers: creation, deletion, replacement."""

from __future__ import annotations

from kemu.lab.telemetry import api_calls, drafts, spans
from kemu.lab.telemetry.spans import REASON, AttributeValue, Link
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog import events
from kemu.runtime.runlog.events import handlers

_POD_PREFIX = "/registry/pods/"

MOST_NAMES = 1 << 16
"""Pods of workloads that are remembered by name; the oldest are forgotten first, and then lack a link."""


class ApiEvents:
    """Handlers of these events, by kind."""

    def __init__(self, written: drafts.Drafts, calls: api_calls.ApiCalls | None) -> None:
        """``calls``: what makes spans of both sides of a request, if they are wanted."""
        self._drafts = written
        self._calls = calls
        self._made: dict[str, str] = {}
        """UIDs of the latest pods that the user's workloads made and did not replace yet, by ``namespace/name``."""
        self.handlers: dict[str, drafts.Handler] = handlers.of(self)

    def _on_txn(self, time_ns: int, actor: str, event: events.Transaction) -> None:
        self._drafts.sees_store = True
        for op, key, value, _, version in event.changes:
            if not key.startswith(_POD_PREFIX):
                continue
            name = key[len(_POD_PREFIX) :]
            if op == 1:
                uid = self._drafts.uids.get(name)
                if uid is not None:
                    # The event of the request that removed it follows, and is part of its trace.
                    pod = self._drafts.pods[uid]
                    pod.gone_ns = time_ns
                    self._drafts.doubt(pod)
            elif version == 1:
                written = core_v1_pb2.Pod.FromString(value)
                spec = written.spec
                self._drafts.stored(written.metadata.uid, name, time_ns, event.rev, spec.priority, spec.nodeName)

    def _on_recovered(self, time_ns: int, actor: str, event: events.StoreRecovered) -> None:
        self._drafts.undone(time_ns, event.rev)

    def _on_request(self, time_ns: int, actor: str, event: events.ApiRequest) -> None:
        if event.resource != "pods":
            return
        verb, uid, by = event.verb, event.uid, event.by
        key = f"{event.namespace}/{event.name}"
        pod = self._drafts.pods.get(uid)
        attributes: dict[str, AttributeValue] = {"kemu.by": by, "kemu.revision": event.rev}
        if verb == "create":
            if pod is None:
                pod = self._drafts.pods[uid] = drafts.Draft(uid, key)
            pod.created_ns, pod.creator = event.start, by
            self._drafts.uids[key] = uid
            self._served(api_calls.Served(verb, spans.ADMISSION, key, uid, actor, event.start, time_ns, attributes))
        elif verb == "bind":
            # The scheduler has a span of its own; the losers of a conflict need to know who won.
            if pod is not None:
                pod.bound_by = by
            if self._calls is not None:
                self._calls.served(api_calls.Served(verb, "binding", key, uid, actor, event.start, time_ns, attributes))
        elif verb in ("delete", "evict"):
            self._served(api_calls.Served(verb, verb, key, uid, actor, event.start, time_ns, attributes))
            if pod is None or pod.created_ns is None:
                return
            if pod.asked_to_go_ns is None:
                pod.asked_to_go_ns = time_ns
            # Without the store's events: a kubelet deletes a pod once it has terminated, and one that was never bound
            # is removed at once.
            is_last = not self._drafts.sees_store and (by.startswith("kubelet/") or not pod.bound_by)
            if pod.gone_ns is not None or is_last:
                self._drafts.flush_life(pod)
                self._drafts.finish(pod, (time_ns, False))
            else:
                self._drafts.doubt(pod)

    def _served(self, one: api_calls.Served) -> None:
        """The server's span of a request; with the client's, once that has the answer."""
        if self._calls is not None:
            self._calls.served(one)
        else:
            one.emit(self._drafts)

    def _on_refused(self, time_ns: int, actor: str, event: events.RequestRefused) -> None:
        verb, reason = event.verb, event.reason
        if event.resource != "pods" or verb in ("create", "get", "list", "watch"):
            return
        key = f"{event.namespace}/{event.name}"
        uid = event.uid or self._drafts.uids.get(key)
        if not uid:
            return
        attributes: dict[str, AttributeValue] = {"kemu.by": event.by, REASON: reason, "kemu.message": event.message}
        links: list[Link] = []
        if verb == "bind" and reason == "Conflict":
            links.append(self._drafts.lost_to(uid, key, attributes))
        self._drafts.emit(
            spans.REFUSED, key, uid, actor, event.start, time_ns, attributes,
            name=f"{verb} refused", links=links, error=f"{reason}: {event.message}", error_type=reason,
            side="server", parent=self._drafts.attempt_of(uid, event.by),
        )  # fmt: skip

    def _on_user_pod(self, time_ns: int, actor: str, event: events.UserPodCreated) -> None:
        key, uid, old = event.pod, event.uid, event.replaces
        old_uid = self._made.pop(old, None)
        self._made[key] = uid
        if len(self._made) > MOST_NAMES:
            del self._made[next(iter(self._made))]
        attributes: dict[str, AttributeValue] = {"kemu.workload": event.workload, "kemu.number": event.n}
        self._emit_created(time_ns, actor, key, uid, attributes, old, old_uid)

    def _on_controller_pod(self, time_ns: int, actor: str, event: events.PodCreated) -> None:
        attributes: dict[str, AttributeValue] = {"kemu.owner": event.owner}
        kind, _, owner = event.owner.partition(" ")
        if kind in spans.OWNER_NAMES:
            attributes[spans.OWNER_NAMES[kind]] = owner.rpartition("/")[2]
        self._emit_created(
            time_ns, actor, event.pod, event.uid, attributes, event.replaces, event.replaces_uid
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
                links.append(self._drafts.to_pod("replaces", old, old_uid))
                self._drafts.emit(
                    spans.REPLACED, old, old_uid, actor, time_ns, time_ns,
                    {"kemu.replaced_by": key, REASON: f"{key} takes its place"},
                    links=(self._drafts.to_pod("replaced by", key, uid),), sequence="",
                )  # fmt: skip
        self._drafts.emit("created", key, uid, actor, time_ns, time_ns, attributes, links=links, sequence="")

    def _on_removed(self, time_ns: int, actor: str, event: events.OfPodDeletion) -> None:
        """By a controller, because of the pod's node: ``start`` is when that was due."""
        if event.ok:
            self._drafts.end_by(event, f"evicted from {event.node}" if event.node else event.why)
        self._drafts.tell(time_ns, actor, event)
