"""The check that nothing runs for a pod that is gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from kemu.checks.history import MIRROR, POD_PREFIX, History, parsed
from kemu.checks.results import Check, Result, counted, seconds, several

_KUBELET = "kubelet/"
_START_NS = 1_000_000_000
"""A start that is under way when the kubelet hears that the pod is gone may still succeed for so long."""


class GonePodsStartNothing(Check):
    """A kubelet that has heard that a pod is gone admits it no more, and starts none of its containers.

    Another pod of the same name is another pod. What counts is what the kubelet's watch had delivered.
    """

    id: ClassVar[str] = "gone-pods-start-nothing"
    kinds: ClassVar[tuple[str, ...]] = (
        "store.txn", "watch.listed", "watch.events", "kubelet.admit", "kubelet.running", "kubelet.started",
        "actor.started",
    )  # fmt: skip

    def __init__(self) -> None:
        self._uids: dict[str, tuple[str, str]] = {}
        """By key: UID and node of the pod that has it."""
        self._unheard: dict[str, dict[str, int]] = {}
        """By node, UIDs of pods that are gone: the revisions at which they went."""
        self._heard: dict[str, dict[str, int]] = {}
        """By node and UID, when the kubelet heard that it is gone."""
        self._judged = 0
        self._findings: list[str] = []

    def on_event(self, time_ns: int, actor: str, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "store.txn":
            for op, key, value, _create, _version in data["changes"]:
                if key.startswith(POD_PREFIX):
                    self._pod_changed(data["rev"], key, value if op == 0 else None)
        elif kind.startswith("watch."):
            if actor.startswith(_KUBELET) and data["watch"].startswith("pods#"):
                unheard = self._unheard.get(actor.removeprefix(_KUBELET))
                if unheard:
                    seen = data["rev"] if kind == "watch.listed" else data["revs"][-1]
                    for uid in [uid for uid, revision in unheard.items() if revision <= seen]:
                        del unheard[uid]
                        self._heard.setdefault(actor.removeprefix(_KUBELET), {})[uid] = time_ns
        elif kind == "actor.started":
            # A process that is new has heard of nothing.
            self._heard.pop(actor.removeprefix(_KUBELET), None)
        elif kind != "kubelet.admit" or data["ok"]:
            self._begins(time_ns, kind, data)

    def _pod_changed(self, revision: int, key: str, value: bytes | None) -> None:
        pod = parsed.pod(value) if value is not None else None
        uid, node = self._uids.get(key, ("", ""))
        if uid and (pod is None or pod.metadata.uid != uid):
            del self._uids[key]
            if node:
                self._unheard.setdefault(node, {})[uid] = revision
        if pod is not None and MIRROR not in pod.metadata.annotations:
            self._uids[key] = pod.metadata.uid, pod.spec.nodeName

    def _begins(self, time_ns: int, kind: str, data: Mapping[str, Any]) -> None:
        self._judged += 1
        heard_ns = self._heard.get(data["node"], {}).get(data["uid"])
        if heard_ns is None or time_ns - heard_ns <= (0 if kind == "kubelet.admit" else _START_NS):
            return
        does = "admits" if kind == "kubelet.admit" else "starts containers of"
        self._findings.append(
            f"{seconds(time_ns)}: {data['node']} {does} {data['pod']}, of which it heard at {seconds(heard_ns)} that "
            "it is gone"
        )

    def rolled_back(self, time_ns: int, history: History) -> None:
        """Who was gone may be there again."""
        self._uids.clear()
        self._unheard.clear()
        self._heard.clear()
        for key, value in history.values.items():
            if key.startswith(POD_PREFIX):
                self._pod_changed(history.revision, key, value)

    def result(self, history: History) -> Result:
        if self._findings:
            return Result(self.id, False, several(self._findings))
        if not self._judged:
            return Result(self.id, None, "no kubelet started a pod")
        return Result(self.id, True, f"{counted(self._judged, 'start')} of pods")
