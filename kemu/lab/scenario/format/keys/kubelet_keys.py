"""The fields of a KubeletConfiguration: the keys of ``kubelet`` and ``kubeletFile`` of a node.

:mod:`kemu.lab.scenario.loading.clusters` checks what they hold,
:mod:`kemu.emulated.kubelet.settings.kubelet_configurations` and
:mod:`kemu.emulated.kubelet.settings.evictions` read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects.fields import refusals
from kemu.emulated.objects.fields.kubelet_configuration import SORTS
from kemu.emulated.objects.fields.sorts import Harmless, Refused
from kemu.emulated.objects.plain import Json
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import (
    DURATION,
    INVALID,
    PERIOD,
    QUANTITY,
    SLOW_PERIOD,
    Choice,
    Free,
    Key,
    ListOf,
    MapOf,
    Record,
    Report,
    Switch,
    Text,
    Whole,
)

_INT32 = 2**31 - 1
_AMOUNTS = MapOf(Text(what="an amount in quotes, such as '100Mi' or '10%'"))


@dataclass(frozen=True)
class _Unsimulated:
    """A field that is refused unless its value changes nothing."""

    sort: Refused

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if value in self.sort.unless:
            return value
        report.add(path, refusals.text(self.sort.why), key=True)
        return INVALID

    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.sort.unless)}


KUBELET_FIELDS: dict[str, Key] = {
    "maxPods": Key(Whole(0, _INT32), "How many pods the node takes; 110 by default."),
    "kubeReserved": Key(MapOf(QUANTITY), "Kept from the capacity for Kubernetes itself."),
    "systemReserved": Key(MapOf(QUANTITY), "Kept from the capacity for the operating system."),
    "enforceNodeAllocatable": Key(
        ListOf(Text()), "With pods, as by default, all pods together may hold no more memory than is not reserved."
    ),
    "localStorageCapacityIsolation": Key(Switch(), "Whether limits of local storage are enforced; on by default."),
    "nodeLeaseDurationSeconds": Key(Whole(1, _INT32), "The lease is renewed after a quarter of it; 40 by default."),
    "nodeStatusUpdateFrequency": Key(PERIOD, "How often the kubelet looks whether its status has changed."),
    "nodeStatusReportFrequency": Key(PERIOD, "How often it reports a status that has not changed."),
    "evictionHard": Key(
        _AMOUNTS, "Hard eviction thresholds; memory.available and nodefs.available lower what is allocatable."
    ),
    "evictionSoft": Key(_AMOUNTS, "Soft eviction thresholds."),
    "evictionSoftGracePeriod": Key(MapOf(DURATION), "How long a soft threshold must be crossed."),
    "evictionPressureTransitionPeriod": Key(DURATION, "How long a pressure condition stays."),
    "evictionMaxPodGracePeriod": Key(Whole(0, _INT32), "Upper bound of the grace period in a soft eviction."),
    "evictionMinimumReclaim": Key(_AMOUNTS, "How far below the threshold an eviction must bring the node."),
    "kernelMemcgNotification": Key(
        Switch(), "The kernel wakes the eviction manager when memory crosses a threshold, as with cgroups v1."
    ),
    "housekeepingInterval": Key(
        SLOW_PERIOD, "How often the eviction manager looks, every second at most; 10s by default."
    ),
    "mergeDefaultEvictionSettings": Key(Switch(), "Signals missing from evictionHard keep their defaults."),
    "serializeImagePulls": Key(Switch(), "One image after the other; on unless maxParallelImagePulls says otherwise."),
    "maxParallelImagePulls": Key(Whole(1, _INT32), "How many images may be pulled at the same time."),
    "imageGCHighThresholdPercent": Key(
        Whole(0, 100), "How full the images' disk must be for unused ones to be removed; 85 by default."
    ),
    "imageGCLowThresholdPercent": Key(Whole(0, 100), "Down to which they are removed; 80 by default."),
    "imageMinimumGCAge": Key(DURATION, "Younger images are not removed to free room; 2m by default."),
    "imageMaximumGCAge": Key(DURATION, "Images that nobody used for longer are removed in any case; 0: they are not."),
    "nodeStatusMaxImages": Key(Whole(-1, _INT32), "How many images the Node's status tells; 50 by default, -1: all."),
    "crashLoopBackOff": Key(
        Record({"maxContainerRestartPeriod": Key(DURATION, "300s by default.")}), "The longest crash-loop back-off."
    ),
    "shutdownGracePeriod": Key(DURATION, "How long a shutdown of the machine waits for its pods; 0 by default."),
    "shutdownGracePeriodCriticalPods": Key(DURATION, "How much of that is for the critical pods, which end last."),
    "shutdownGracePeriodByPodPriority": Key(
        ListOf(
            Record(
                {
                    "priority": Key(Whole(-(2**31), 2**31 - 1), "From this priority up."),
                    "shutdownGracePeriodSeconds": Key(Whole(0), "How long a shutdown waits for these pods."),
                }
            )
        ),
        "Instead of both: groups of pods, which end from the lowest to the highest.",
    ),
    "staticPods": Key(ListOf(Free()), "Manifests of its static pods: in Kubernetes, the files of staticPodPath."),
    "kind": Key(Choice(("KubeletConfiguration",)), "May be written."),
    "apiVersion": Key(Choice(("kubelet.config.k8s.io/v1beta1",)), "May be written."),
    **{name: Key(_Unsimulated(sort), sort.why) for name, sort in SORTS.items() if isinstance(sort, Refused)},
    **{name: Key(Free(mapping=False), sort.reason.value) for name, sort in SORTS.items() if isinstance(sort, Harmless)},
}
"""The fields of a KubeletConfiguration, as in kubelet.config.k8s.io/v1beta1: a real file can be taken as it is."""
KUBELET = Record(KUBELET_FIELDS)
