"""Recorded decisions under node pressure: ranking, the eviction manager pass by pass, and its loop."""

from __future__ import annotations

from typing import Any

from kemu.conformance import readings
from kemu.kubelet.pressure import eviction, ranking
from kemu.kubelet.settings import thresholds
from kemu.kubelet.usage import stats

Json = dict[str, Any]
_SECOND_NS = readings.SECOND_NS
_MS_NS = 1_000_000


def rank(case: Json) -> Json:
    pods = readings.pods(case.get("pods"))
    measured = {one.uid: one for one in map(stats.read_pod, case.get("stats") or ())}
    layout = _layout(case)
    return {
        "rankings": {
            signal: {"order": [pod.metadata.name for pod in ranking.rank(pods, measured, signal, layout)]}
            for signal in thresholds.SIGNALS
        }
    }


def manager(case: Json) -> Json:
    by_name = {pod.metadata.name: pod for pod in readings.pods(case.get("pods"))}
    probes = readings.pods(case.get("probes"))
    under_test = _manager(case["config"])
    steps = []
    for step in case["steps"]:
        at_ns = int(step["at"] * _SECOND_NS)
        active = [by_name[name] for name in step.get("activePods") or ()]
        outcome = under_test.synchronize(at_ns, active, _surroundings(step, _layout(case)))
        steps.append(
            {
                "error": outcome.error,
                "thresholdsObserved": [
                    {**readings.threshold_json(threshold), "firstObservedAt": since_ns / _SECOND_NS}
                    for threshold, since_ns in under_test.first_observed_ns.items()
                ],
                "thresholdsMet": [readings.threshold_json(threshold) for threshold in under_test.met],
                "nodeConditions": list(under_test.conditions),
                "conditionLastObservedAt": {
                    condition: at / _SECOND_NS for condition, at in under_test.condition_observed_ns.items()
                },
                "admission": {probe.metadata.name: _admission(under_test, probe) for probe in probes},
                "outcomes": [_outcome_json(outcome)],
            }
        )
    return {"steps": steps}


def _manager(config: Json) -> eviction.Manager:
    found = thresholds.parse(
        config.get("evictionHard") or {},
        config.get("evictionSoft") or {},
        config.get("evictionSoftGracePeriod") or {},
        config.get("evictionMinimumReclaim") or {},
        config.get("enforceNodeAllocatable") or (),
    )
    return eviction.Manager(
        found,
        transition_ns=int(config.get("evictionPressureTransitionPeriodSeconds", 0) * _SECOND_NS),
        max_pod_grace_period_s=config.get("evictionMaxPodGracePeriod", 0),
        local_storage_isolation=bool(config.get("localStorageCapacityIsolation", False)),
    )


def _layout(case: Json) -> thresholds.Layout:
    filesystem = case.get("filesystem") or {}
    return thresholds.Layout(
        bool(filesystem.get("dedicatedImageFs", False)), bool(filesystem.get("dedicatedContainerFs", False))
    )


def _surroundings(step: Json, layout: thresholds.Layout) -> eviction.Surroundings:
    looks = 0
    node = step.get("node")

    def tell_layout() -> thresholds.Layout:
        if step.get("imageFsError"):
            raise eviction.LayoutUnknown(step["imageFsError"])
        return layout

    def look() -> stats.Summary | None:
        nonlocal looks
        looks += 1
        if step.get("summaryError" if looks == 1 else "summaryErrorAfterReclaim"):
            return None
        return stats.read_summary(node or {}, step.get("podStats") or ())

    def collect(collection: str) -> None:
        nonlocal node
        node = step.get("nodeAfterContainerGC" if collection == eviction.CONTAINER_GC else "nodeAfterImageGC") or node

    return eviction.Surroundings(tell_layout, look, collect)


def _admission(under_test: eviction.Manager, probe: Any) -> Json:
    message = under_test.admit(probe)
    return {"admit": not message, "reason": eviction.REASON if message else "", "message": message}


def _outcome_json(outcome: eviction.Outcome) -> Json:
    return {
        "attemptedReclaim": outcome.reclaimed,
        "gc": outcome.collections,
        "evictionSignal": outcome.signal,
        "evictions": [
            readings.kill_json(one.pod, eviction.REASON, one.message, one.message * one.disrupts, one.grace_s)
            for one in outcome.evictions
        ],
        "returned": [one.pod.metadata.name for one in outcome.evictions],
    }


def loop(case: Json) -> Json:
    """The manager's loop with a clock of its own: what it kills stops to use anything."""
    node = _LoopNode(case)
    under_test = _manager(case["config"])
    layout = _layout(case)
    passes: list[list[int]] = []
    evictions: list[Json] = []
    changes: list[Json] = []
    admissions: list[Json] = []
    arrivals = sorted((pod for pod in node.pods if pod.start_ms > 0), key=lambda pod: pod.start_ms)
    interval_ms = int(case["monitoringIntervalSeconds"] * 1000)
    horizon_ms = int(case["horizonSeconds"] * 1000)

    def arrive(until_ms: int) -> None:
        while arrivals and arrivals[0].start_ms <= until_ms:
            pod = arrivals.pop(0)
            pod.runs = not under_test.admit(pod.pod)
            admissions.append({"pod": pod.name, "atMs": pod.start_ms, "admit": pod.runs})

    at_ms = 0
    while at_ms < horizon_ms:
        arrive(at_ms)

        def look(now_ms: int = at_ms) -> stats.Summary:
            passes.append([now_ms, node.available(now_ms)])
            return node.summary(now_ms)

        before = under_test.conditions
        active = [pod.pod for pod in node.pods if pod.is_active(at_ms)]
        outcome = under_test.synchronize(
            at_ms * _MS_NS, active, eviction.Surroundings(lambda: layout, look, lambda collection: None)
        )
        if under_test.conditions != before:
            changes.append({"atMs": at_ms, "conditions": list(under_test.conditions)})
        if not outcome.evictions:
            at_ms += interval_ms
            continue
        gone_ms: int | None = at_ms
        for one in outcome.evictions:
            pod = next(pod for pod in node.pods if pod.pod is one.pod)
            evictions.append({"pod": pod.name, "atMs": at_ms, "gracePeriodOverride": one.grace_s})
            at_ms += pod.kill_ms
            pod.end_ms = at_ms
            # For every one of them the manager waits.
            gone_ms = None if gone_ms is None or pod.cleanup_ms < 0 else max(gone_ms, at_ms + pod.cleanup_ms)
        at_ms = _after_cleanup(at_ms, gone_ms)
    arrive(horizon_ms - 1)
    return {"passes": passes, "evictions": evictions, "conditionChanges": changes, "admissions": admissions}


def _after_cleanup(at_ms: int, gone_ms: int | None) -> int:
    """When the manager goes on, which polls whether all is gone."""
    poll_ms, last_ms = eviction.CLEANUP_POLL_S * 1000, at_ms + eviction.CLEANUP_TIMEOUT_S * 1000
    at_ms += poll_ms
    while at_ms < last_ms and (gone_ms is None or at_ms < gone_ms):
        at_ms += poll_ms
    return at_ms


class _LoopPod:
    """A pod whose usage grows with time."""

    __slots__ = ("cleanup_ms", "end_ms", "growth", "kill_ms", "most", "name", "pod", "runs", "start", "start_ms")

    def __init__(self, data: Json) -> None:
        self.pod = readings.pod(data["pod"])
        self.name: str = self.pod.metadata.name
        self.start_ms = int(data.get("startMs", 0))
        self.start = int(data.get("usageAtStart", 0))
        self.growth = int(data.get("growthPerSecond", 0))
        self.most = int(data.get("usageMax", 0))
        self.kill_ms = int(data.get("killSeconds", 0) * 1000)
        self.cleanup_ms = int(data.get("cleanupSeconds", 0) * 1000)
        self.runs = self.start_ms == 0
        self.end_ms: int | None = None
        """When its kill was over."""

    def is_active(self, at_ms: int) -> bool:
        return self.runs and self.start_ms <= at_ms and (self.end_ms is None or at_ms < self.end_ms)

    def usage(self, at_ms: int) -> int:
        if not self.is_active(at_ms):
            return 0
        return min(self.most, self.start + self.growth * ((at_ms - self.start_ms) // 1000))


class _LoopNode:
    """A node of one resource."""

    __slots__ = ("capacity", "pods", "resource", "system")

    def __init__(self, case: Json) -> None:
        self.pods = [_LoopPod(data) for data in case.get("pods") or ()]
        self.capacity = int(case["capacity"])
        self.system = int(case.get("systemUsage", 0))
        self.resource: str = case["resource"]

    def available(self, at_ms: int) -> int:
        return max(0, self.capacity - self.system - sum(pod.usage(at_ms) for pod in self.pods))

    def summary(self, at_ms: int) -> stats.Summary:
        signal = {"memory": thresholds.MEMORY, "pids": thresholds.PIDS, "nodefs": thresholds.NODEFS}[self.resource]
        observed = stats.Observation(self.available(at_ms), self.capacity, at_ms * _MS_NS)
        running = [pod for pod in self.pods if pod.is_active(at_ms)]
        return stats.Summary({signal: observed}, {pod.pod.metadata.uid: self._usage(pod, at_ms) for pod in running})

    def _usage(self, pod: _LoopPod, at_ms: int) -> stats.PodStats:
        uid, used = pod.pod.metadata.uid, pod.usage(at_ms)
        if self.resource == "memory":
            return stats.PodStats(uid, working_set_bytes=used)
        if self.resource == "pids":
            return stats.PodStats(uid, processes=used)
        return stats.PodStats(uid, containers=(stats.ContainerStats("", logs=stats.Disk(used, 0)),))
