"""Spans from the events of the API server, the store, users and controllers: creation, deletion, replacement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kemu.lab.telemetry import api_calls, drafts, spans
from kemu.lab.telemetry.spans import NODE, REASON, AttributeValue, Link
from kemu.messages.k8s import core_v1_pb2

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
        self.handlers: dict[str, drafts.Handler] = {
            "store.txn": self._on_txn,
            "store.recovered": self._on_recovered,
            "api.request": self._on_request,
            "api.refused": self._on_refused,
            "user.pod": self._on_user_pod,
            "controller.pod": self._on_controller_pod,
            "taint.eviction": self._on_removed,
            "affinity.eviction": self._on_removed,
            "podgc.deleted": self._on_removed,
        }

    def _on_txn(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        self._drafts.sees_store = True
        for op, key, value, _, version in data["changes"]:
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
                self._drafts.stored(written.metadata.uid, name, time_ns, data["rev"], spec.priority, spec.nodeName)

    def _on_recovered(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        self._drafts.undone(time_ns, data["rev"])

    def _on_request(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        if data["resource"] != "pods":
            return
        verb, uid, by = data["verb"], data["uid"], data["by"]
        key = f"{data['namespace']}/{data['name']}"
        pod = self._drafts.pods.get(uid)
        attributes: dict[str, AttributeValue] = {"kemu.by": by, "kemu.revision": data["rev"]}
        if verb == "create":
            if pod is None:
                pod = self._drafts.pods[uid] = drafts.Draft(uid, key)
            pod.created_ns, pod.creator = data["start"], by
            self._drafts.uids[key] = uid
            self._served(api_calls.Served(verb, spans.ADMISSION, key, uid, actor, data["start"], time_ns, attributes))
        elif verb == "bind":
            # The scheduler has a span of its own; the losers of a conflict need to know who won.
            if pod is not None:
                pod.bound_by = by
            if self._calls is not None:
                self._calls.served(
                    api_calls.Served(verb, "binding", key, uid, actor, data["start"], time_ns, attributes)
                )
        elif verb in ("delete", "evict"):
            self._served(api_calls.Served(verb, verb, key, uid, actor, data["start"], time_ns, attributes))
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

    def _on_refused(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        verb, reason = data["verb"], data["reason"]
        if data["resource"] != "pods" or verb in ("create", "get", "list", "watch"):
            return
        key = f"{data['namespace']}/{data['name']}"
        uid = data["uid"] or self._drafts.uids.get(key)
        if not uid:
            return
        attributes: dict[str, AttributeValue] = {"kemu.by": data["by"], REASON: reason, "kemu.message": data["message"]}
        links: list[Link] = []
        if verb == "bind" and reason == "Conflict":
            links.append(self._drafts.lost_to(uid, key, attributes))
        self._drafts.emit(
            spans.REFUSED, key, uid, actor, data["start"], time_ns, attributes,
            name=f"{verb} refused", links=links, error=f"{reason}: {data['message']}", error_type=reason,
            side="server", parent=self._drafts.attempt_of(uid, data["by"]),
        )  # fmt: skip

    def _on_user_pod(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        key, uid, old = data["pod"], data["uid"], data["replaces"]
        old_uid = self._made.pop(old, None)
        self._made[key] = uid
        if len(self._made) > MOST_NAMES:
            del self._made[next(iter(self._made))]
        attributes: dict[str, AttributeValue] = {"kemu.workload": data["workload"], "kemu.number": data["n"]}
        self._emit_created(time_ns, actor, key, uid, attributes, old, old_uid)

    def _on_controller_pod(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        attributes: dict[str, AttributeValue] = {"kemu.owner": data["owner"]}
        kind, _, owner = data["owner"].partition(" ")
        if kind in spans.OWNER_NAMES:
            attributes[spans.OWNER_NAMES[kind]] = owner.rpartition("/")[2]
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
                links.append(self._drafts.to_pod("replaces", old, old_uid))
                self._drafts.emit(
                    spans.REPLACED, old, old_uid, actor, time_ns, time_ns,
                    {"kemu.replaced_by": key, REASON: f"{key} takes its place"},
                    links=(self._drafts.to_pod("replaced by", key, uid),), sequence="",
                )  # fmt: skip
        self._drafts.emit("created", key, uid, actor, time_ns, time_ns, attributes, links=links, sequence="")

    def _on_removed(self, time_ns: int, actor: str, data: Mapping[str, Any]) -> None:
        """By a controller, because of the pod's node: ``start`` is when that was due."""
        why = data.get("why") or f"does not tolerate a taint of {data['node']}"
        attributes: dict[str, AttributeValue] = {NODE: data["node"], REASON: why}
        if data["ok"]:
            self._drafts.end_by(data, f"evicted from {data['node']}" if data["node"] else why)
        self._drafts.emit(
            "evicted", data["pod"], data["uid"], actor, data["start"], time_ns, attributes,
            error=why if data["ok"] else "it was gone", error_type=spans.EVICTED_TYPE if data["ok"] else "NotFound",
        )  # fmt: skip
