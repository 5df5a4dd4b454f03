"""The check that containers are ready only while their probes say so."""

from __future__ import annotations

from typing import ClassVar

from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks.attention import Attention, Punctual
from kemu.lab.checks.history import POD_PREFIX, STATUS, History, parsed
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.events import ProbeChanged

_SOON_S = 10.0
"""For a kubelet to write a status, or to write it again after a conflict."""


class ReadinessFollowsProbes(Punctual):
    """A container whose readiness probe has failed does not stay ready in the status of its pod.

    Judged from the results that its kubelet has logged, while the pod is not being deleted (``UpdatePodStatus`` of
    pkg/kubelet/prober).
    """

    id: ClassVar[str] = "readiness-follows-probes"
    nothing: ClassVar[str] = "no readiness probe failed"
    unit: ClassVar[str] = "failed probe"

    def given(self, *folds: Attention) -> None:
        super().given(*folds)
        self._failing: dict[str, dict[str, None]] = {}
        """By UID, containers whose readiness probe has failed last."""
        self._uid_of_key: dict[str, str] = {}
        """Of pods that one of them belongs to."""

    def saw(self, time_ns: int, actor: str, event: ProbeChanged) -> None:
        if event.probe == "readiness":
            failing = self._failing.setdefault(event.uid, {})
            if event.ok:
                failing.pop(event.container, None)
            else:
                failing[event.container] = None
                pod = self._attention.history.pods.get(event.uid)
                if pod is not None:
                    self._uid_of_key[POD_PREFIX + pod.key] = event.uid
                if len(self._uid_of_key) == 1:
                    self.ask_again()
            self._look(time_ns, event.uid)

    def pod_changes(self) -> int | None:
        return STATUS if self._failing and not self._ended else None

    def on_pod(self, time_ns: int, revision: int, key: str, pod: core_v1_pb2.Pod | None) -> None:
        uid = pod.metadata.uid if pod is not None else ""
        before = self._uid_of_key.get(key, "")
        if before and before != uid:
            del self._uid_of_key[key]
            self._look(time_ns, before)
        if uid in self._failing:
            self._uid_of_key[key] = uid
            self._look(time_ns, uid)

    def _look(self, time_ns: int, uid: str) -> None:
        known, failing = self._attention.history.pods.get(uid), self._failing.get(uid, {})
        value = self._attention.history.values.get(POD_PREFIX + known.key) if known is not None else None
        pod = parsed.pod(value) if value is not None else None
        if pod is not None and pod.metadata.uid != uid:
            pod = None  # It is gone, and another one has its name.
        ready: dict[str, None] = {}
        if pod is not None and not pod_phases.is_terminal(pod) and not pod.metadata.HasField("deletionTimestamp"):
            ready = {one.name: None for one in pod.status.containerStatuses if one.ready and one.name in failing}
        for key in self._overdue.open():
            if key[0] == uid and key[1] not in ready:
                self._overdue.end(key, time_ns)
        if pod is not None:
            for name in ready:
                what = f"{name} of {pod.metadata.name} is ready, and its probe has failed"
                self._overdue.begin((uid, name), time_ns, f"kubelet/{pod.spec.nodeName}", _SOON_S, what)

    def rolled_back(self, time_ns: int, history: History) -> None:
        super().rolled_back(time_ns, history)
        self._uid_of_key.clear()
