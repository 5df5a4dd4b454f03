"""The check that containers are ready only while their probes say so."""

from __future__ import annotations

from sys import intern
from typing import ClassVar

from kemu.emulated.objects.pods import pod_phases
from kemu.lab.checks.attention import Attention, Punctual
from kemu.lab.checks.history import POD_PREFIX, History, parsed
from kemu.lab.checks.history.facts import Change
from kemu.runtime.runlog.events import ProbeChanged, Transaction

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
        self._pods: dict[str, Change] = {}
        """The latest of each, by UID."""
        self._uid_of_key: dict[str, str] = {}

    def saw(self, time_ns: int, actor: str, event: Transaction | ProbeChanged) -> None:
        if isinstance(event, ProbeChanged):
            if event.probe == "readiness":
                failing = self._failing.setdefault(event.uid, {})
                if event.ok:
                    failing.pop(event.container, None)
                else:
                    failing[event.container] = None
                self._look(time_ns, event.uid)
            return
        for change in self._attention.history.changes_of(event):
            key, value = change.key, change.value
            if key.startswith(POD_PREFIX):
                before = self._uid_of_key.pop(key, "")
                uid = intern(parsed.pod(value).metadata.uid) if value is not None else ""
                if before and before != uid:
                    self._pods.pop(before, None)
                    self._look(time_ns, before)
                if value is not None:
                    self._uid_of_key[key], self._pods[uid] = uid, change
                    if uid in self._failing:
                        self._look(time_ns, uid)

    def _look(self, time_ns: int, uid: str) -> None:
        known, failing = self._pods.get(uid), self._failing.get(uid, {})
        pod = parsed.pod(known.value or b"") if known is not None else None
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
        self._pods.clear()
        self._uid_of_key.clear()
