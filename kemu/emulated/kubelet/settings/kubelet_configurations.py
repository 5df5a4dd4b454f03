"""The settings of a kubelet: its KubeletConfiguration (kubelet.config.k8s.io/v1beta1), and how long its work takes.

Mirrors the defaults and checks of ``pkg/kubelet/apis/config`` (``SetDefaults_KubeletConfiguration``,
``ValidateKubeletConfiguration``). A real file can be taken as it is: fields without effect are accepted, or refused by
name (:mod:`kemu.emulated.objects.fields.kubelet_configuration`). Kubelets of one cluster mostly share one
configuration, so equal ones share one :class:`Settings`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import msgpack

from kemu import errors
from kemu.emulated.kubelet.settings import image_policies, shutdown_groups, thresholds
from kemu.emulated.objects.fields import refusals
from kemu.emulated.objects.fields.kubelet_configuration import WITHOUT_EFFECT
from kemu.emulated.objects.fields.sorts import Acts, Harmless, Refused, Sort
from kemu.emulated.objects.pods import declared_features
from kemu.emulated.settings.declared import Complaint, Section, setting, settings_of
from kemu.emulated.settings.documents import Document, Path
from kemu.emulated.settings.shapes import (
    DURATION,
    INVALID,
    PERIOD,
    QUANTITY,
    SLOW_PERIOD,
    AsWritten,
    Choice,
    Free,
    Key,
    ListOf,
    MapOf,
    Report,
    Switch,
    Text,
    Whole,
)
from kemu.runtime import distributions
from kemu.runtime.env import SECOND_NS
from kemu.runtime.words import did_you_mean

_INT32 = 2**31 - 1
_LIMITS = "stated; the defaults act with timing.clientLimits"
_AMOUNTS = MapOf(Text(what="an amount in quotes, such as '100Mi' or '10%'"))
_MAX_RESTART_PERIOD_NS = 300 * SECOND_NS
_LOW_PERCENT = 80


def _gate(name: str, note: str) -> Any:
    return setting(Switch(), note, True, key=name)


@dataclass(frozen=True, kw_only=True)
class CrashLoopBackOff:
    max_container_restart_period_ns: int = setting(DURATION, "{default} by default.", "300s", zero_is_default=True)


@dataclass(frozen=True, kw_only=True)
class FeatureGates:
    """What a kubelet has, and declares in its Node."""

    extend_web_sockets_to_kubelet: bool = _gate("ExtendWebSocketsToKubelet", "Declared only.")
    in_place_pod_level_resources_vertical_scaling: bool = _gate(
        declared_features.RESIZE_PODS, "Whether the resources of its pods can be resized."
    )
    in_place_pod_vertical_scaling_init_containers: bool = _gate(
        declared_features.RESIZE_INIT_CONTAINERS, "Whether init containers of its pods can be resized."
    )
    restart_all_containers_on_container_exits: bool = _gate(
        declared_features.RESTART_ALL, "Whether it takes pods with the rule RestartAllContainers."
    )

    @cached_property
    def declared(self) -> tuple[str, ...]:
        """The features of the Node, in order."""
        on = (
            self.extend_web_sockets_to_kubelet,
            self.in_place_pod_level_resources_vertical_scaling,
            self.in_place_pod_vertical_scaling_init_containers,
            self.restart_all_containers_on_container_exits,
        )
        return tuple(name for name, is_on in zip(declared_features.KUBELET, on, strict=True) if is_on)


@dataclass(frozen=True, kw_only=True)
class ShutdownGroup:
    priority: int = setting(Whole(-(2**31), 2**31 - 1), "From this priority up.", 0)
    shutdown_grace_period_seconds: int = setting(Whole(0), "How long a shutdown waits for these pods.", 0)


@dataclass(frozen=True, kw_only=True)
class KubeletConfiguration:
    """The fields that act."""

    max_pods: int = setting(
        Whole(0, _INT32), "How many pods the node takes; {default} by default.", 110, zero_is_default=True
    )
    kube_reserved: Mapping[str, str] = setting(MapOf(QUANTITY), "Kept from the capacity for Kubernetes itself.", {})
    system_reserved: Mapping[str, str] = setting(
        MapOf(QUANTITY), "Kept from the capacity for the operating system.", {}
    )
    enforce_node_allocatable: list[str] = setting(
        ListOf(Text()),
        "With pods, as by default, all pods together may hold no more memory than is not reserved.",
        [thresholds.PODS_ENFORCED],
    )
    local_storage_capacity_isolation: bool = setting(
        Switch(), "Whether limits of local storage are enforced; on by default.", True
    )
    node_lease_duration_seconds: int = setting(
        Whole(1, _INT32), "The lease is renewed after a quarter of it; {default} by default.", 40
    )
    node_status_update_frequency_ns: int = setting(
        PERIOD, "How often the kubelet looks whether its status has changed.", "10s", zero_is_default=True
    )
    node_status_report_frequency_ns: int = setting(
        PERIOD, "How often it reports a status that has not changed.", "5m", zero_is_default=True
    )
    eviction_hard: Mapping[str, str] | None = setting(
        _AMOUNTS, "Hard eviction thresholds; memory.available and nodefs.available lower what is allocatable."
    )
    eviction_soft: Mapping[str, str] = setting(_AMOUNTS, "Soft eviction thresholds.", {})
    eviction_soft_grace_period: Mapping[str, str] = setting(
        MapOf(AsWritten(DURATION)), "How long a soft threshold must be crossed.", {}
    )
    eviction_pressure_transition_period_ns: int = setting(
        DURATION, "How long a pressure condition stays.", "5m", zero_is_default=True
    )
    eviction_max_pod_grace_period: int = setting(
        Whole(0, _INT32), "Upper bound of the grace period in a soft eviction.", 0
    )
    eviction_minimum_reclaim: Mapping[str, str] = setting(
        _AMOUNTS, "How far below the threshold an eviction must bring the node.", {}
    )
    kernel_memcg_notification: bool = setting(
        Switch(),
        "The kernel wakes the eviction manager when memory crosses a threshold, as with cgroups v1.",
        False,
        note="as on a machine with cgroups v1; on one with v2 a real kubelet ignores it",
    )
    housekeeping_interval_ns: int = setting(
        SLOW_PERIOD,
        "How often the eviction manager looks, every second at most; {default} by default.",
        "10s",
        zero_is_default=True,
        note="kemu's own: how often the eviction manager looks, which is 10s in a real kubelet",
    )
    merge_default_eviction_settings: bool = setting(
        Switch(), "Signals missing from evictionHard keep their defaults.", False
    )
    serialize_image_pulls: bool | None = setting(
        Switch(), "One image after the other; on unless maxParallelImagePulls says otherwise."
    )
    max_parallel_image_pulls: int | None = setting(Whole(1, _INT32), "How many images may be pulled at the same time.")
    image_gc_high_threshold_percent: int = setting(
        Whole(0, 100),
        "How full the images' disk must be for unused ones to be removed; {default} by default.",
        85,
        key="imageGCHighThresholdPercent",
    )
    image_gc_low_threshold_percent: int = setting(
        Whole(0, 100),
        "Down to which they are removed; {default} by default.",
        _LOW_PERCENT,
        key="imageGCLowThresholdPercent",
    )
    image_minimum_gc_age_ns: int = setting(
        DURATION,
        "Younger images are not removed to free room; {default} by default.",
        "2m",
        key="imageMinimumGCAge",
        zero_is_default=True,
    )
    image_maximum_gc_age_ns: int = setting(
        DURATION,
        "Images that nobody used for longer are removed in any case; {default}: they are not.",
        0,
        key="imageMaximumGCAge",
    )
    node_status_max_images: int = setting(
        Whole(-1, _INT32), "How many images the Node's status tells; {default} by default, -1: all.", 50
    )
    crash_loop_back_off: CrashLoopBackOff = setting(Section(CrashLoopBackOff), "The longest crash-loop back-off.", {})
    shutdown_grace_period_ns: int = setting(
        DURATION, "How long a shutdown of the machine waits for its pods; {default} by default.", 0
    )
    shutdown_grace_period_critical_pods_ns: int = setting(
        DURATION, "How much of that is for the critical pods, which end last.", 0
    )
    shutdown_grace_period_by_pod_priority: list[ShutdownGroup] = setting(
        ListOf(Section(ShutdownGroup)), "Instead of both: groups of pods, which end from the lowest to the highest.", []
    )
    static_pods: list[Any] = setting(
        ListOf(Free()),
        "Manifests of its static pods: in Kubernetes, the files of staticPodPath.",
        [],
        note="kemu's own: manifests of static pods, in place of staticPodPath",
    )
    feature_gates: FeatureGates = setting(Section(FeatureGates), "Features that the kubelet declares in its Node.", {})
    kube_api_qps: int | None = setting(
        Whole(0, _INT32), "Requests a second, heartbeats and events apart.", key="kubeAPIQPS", note=_LIMITS
    )
    kube_api_burst: int | None = setting(
        Whole(0, _INT32), "Requests at once after a pause.", key="kubeAPIBurst", note=_LIMITS
    )
    event_record_qps: int | None = setting(Whole(0, _INT32), "Events a second.", key="eventRecordQPS", note=_LIMITS)
    event_burst: int | None = setting(Whole(0, _INT32), "Events at once after a pause.", key="eventBurst", note=_LIMITS)
    kind: str | None = setting(Choice(("KubeletConfiguration",)), "May be written.")
    api_version: str | None = setting(Choice(("kubelet.config.k8s.io/v1beta1",)), "May be written.")

    @property
    def hard(self) -> Mapping[str, str]:
        """Hard eviction thresholds, with the defaults."""
        if self.eviction_hard is None:
            return thresholds.DEFAULT_HARD
        defaults = thresholds.DEFAULT_HARD if self.merge_default_eviction_settings else {}
        return {**defaults, **self.eviction_hard}

    @cached_property
    def eviction_thresholds(self) -> tuple[thresholds.Threshold, ...]:
        """Raises ThresholdError."""
        return thresholds.parse(
            self.hard,
            self.eviction_soft,
            self.eviction_soft_grace_period,
            self.eviction_minimum_reclaim,
            self.enforce_node_allocatable,
        )

    @cached_property
    def image_policy(self) -> image_policies.Policy:
        return image_policies.Policy(
            self.image_gc_high_threshold_percent,
            self.image_gc_low_threshold_percent,
            self.image_minimum_gc_age_ns,
            self.image_maximum_gc_age_ns,
        )

    @property
    def pulls_at_once(self) -> int:
        """How many images may be pulled at the same time; 0: any number. More than one only where that is asked for; as
        in the kubelet, naming a number is asking for it."""
        return 1 if self._pulls_serially else self.max_parallel_image_pulls or 0

    @property
    def _pulls_serially(self) -> bool:
        if self.serialize_image_pulls is None:
            return self.max_parallel_image_pulls is None or self.max_parallel_image_pulls < 2
        return self.serialize_image_pulls

    @property
    def max_restart_period_s(self) -> float:
        return self.crash_loop_back_off.max_container_restart_period_ns / SECOND_NS

    @property
    def shutdown(self) -> tuple[shutdown_groups.Group, ...]:
        """By which the pods end when the machine is shut down, the lowest first; empty: it does not wait for them."""
        listed = self.shutdown_grace_period_by_pod_priority
        critical_ns = self.shutdown_grace_period_critical_pods_ns
        if listed:
            groups = (shutdown_groups.Group(one.priority, one.shutdown_grace_period_seconds) for one in listed)
            return tuple(sorted(groups, key=lambda group: group.priority))
        if not self.shutdown_grace_period_ns:
            return ()
        return (
            shutdown_groups.Group(
                shutdown_groups.DEFAULT_PRIORITY, (self.shutdown_grace_period_ns - critical_ns) // SECOND_NS
            ),
            shutdown_groups.Group(shutdown_groups.CRITICAL_PRIORITY, critical_ns // SECOND_NS),
        )

    def complaints(self) -> Iterator[Complaint]:
        """What the kubelet itself would say when it starts."""
        yield from self._complaints_about_evictions()
        high, low = "imageGCHighThresholdPercent", "imageGCLowThresholdPercent"
        policy = self.image_policy
        if policy.low_percent >= policy.high_percent:
            text = f"{low} ({policy.low_percent}) must be less than {high} ({policy.high_percent})"
            yield Complaint(
                (low if policy.low_percent != KubeletConfiguration().image_policy.low_percent else high,), text
            )
        if 0 < policy.max_age_ns <= policy.min_age_ns:
            text = f"must be greater than imageMinimumGCAge ({policy.min_age_ns // SECOND_NS}s)"
            yield Complaint(("imageMaximumGCAge",), text)
        if not SECOND_NS <= self.crash_loop_back_off.max_container_restart_period_ns <= _MAX_RESTART_PERIOD_NS:
            yield Complaint(("crashLoopBackOff", "maxContainerRestartPeriod"), "must be between 1s and 300s")
        if self._pulls_serially and (self.max_parallel_image_pulls or 1) > 1:
            text = "cannot be greater than 1 unless serializeImagePulls is false"
            yield Complaint(("maxParallelImagePulls",), text)
        yield from self._complaints_about_shutdowns()

    def _complaints_about_evictions(self) -> Iterator[Complaint]:
        """About each eviction setting by itself or, if there are none, about all of them."""
        found = False
        stated = (
            ("evictionHard", self.eviction_hard or {}),
            ("evictionSoft", self.eviction_soft),
            ("evictionSoftGracePeriod", self.eviction_soft_grace_period),
            ("evictionMinimumReclaim", self.eviction_minimum_reclaim),
        )
        for number, (field, amounts) in enumerate(stated):
            for signal, text in amounts.items():
                parts: list[dict[str, str]] = [{} for _ in stated]
                parts[number] = {signal: text}
                try:
                    thresholds.parse(parts[0], parts[1], parts[2], parts[3])
                except thresholds.ThresholdError as error:
                    # The soft threshold alone has no period, which is beside it.
                    if error.category == "missing-grace-period" and signal in self.eviction_soft_grace_period:
                        continue
                    found = True
                    is_unknown = error.category != "missing-grace-period" and signal not in thresholds.SIGNALS
                    hint = did_you_mean(signal, thresholds.SIGNALS) if is_unknown else ""
                    yield Complaint((field, signal), str(error), hint, key=is_unknown)
        if not found:
            try:
                _ = self.eviction_thresholds
            except thresholds.ThresholdError as error:
                yield Complaint((), str(error))

    def _complaints_about_shutdowns(self) -> Iterator[Complaint]:
        period, critical = "shutdownGracePeriod", "shutdownGracePeriodCriticalPods"
        period_ns, critical_ns = self.shutdown_grace_period_ns, self.shutdown_grace_period_critical_pods_ns
        for field, found_ns in ((period, period_ns), (critical, critical_ns)):
            if 0 < found_ns < SECOND_NS:
                yield Complaint((field,), "must be 0, or 1s at least")
                return
        if critical_ns > period_ns:
            yield Complaint((critical,), f"must not be longer than {period}")
        elif self.shutdown_grace_period_by_pod_priority and period_ns:
            yield Complaint(("shutdownGracePeriodByPodPriority",), f"cannot stand beside {period}")


@dataclass(frozen=True)
class _Unsimulated:
    """A field that is refused unless its value changes nothing."""

    sort: Refused

    def check(self, value: object, path: Path, report: Report) -> Any:
        if value in self.sort.unless:
            return value
        report.add(path, refusals.text(self.sort.why), key=True)
        return INVALID

    def schema(self) -> dict[str, Any]:
        return {"enum": list(self.sort.unless)}


_INERT = {
    **{name: Key(_Unsimulated(sort), sort.why) for name, sort in WITHOUT_EFFECT.items() if isinstance(sort, Refused)},
    **{
        name: Key(Free(mapping=False), sort.reason.value)
        for name, sort in WITHOUT_EFFECT.items()
        if isinstance(sort, Harmless)
    },
}
SHAPE = Section(KubeletConfiguration, more=_INERT)
"""A KubeletConfiguration as a user writes it."""
SORTS: dict[str, Sort] = {
    **{key: Acts(one.note) for key, (_, one) in settings_of(KubeletConfiguration).items()},
    **WITHOUT_EFFECT,
}
"""How kemu treats each field."""


@dataclass(frozen=True, slots=True)
class Settings:
    """A configuration, and how long the work of a kubelet takes, in seconds."""

    configuration: KubeletConfiguration
    sync: distributions.Distribution
    """From what the kubelet hears until it acts."""
    pod_start: distributions.Distribution
    """From admission until the containers run, where a pod does not say."""
    image_pull: distributions.Distribution
    """How long an image takes that the node does not have."""


def read(kubelet: Mapping[str, Any], timing: Mapping[str, Any]) -> Settings:
    """``kubelet``: a KubeletConfiguration as written. Raises ValueError that begins with the path of the field."""
    return _read(msgpack.packb([kubelet, timing]))


def configuration(kubelet: Mapping[str, Any]) -> KubeletConfiguration:
    """The same without times."""
    return read(kubelet, {}).configuration


@lru_cache(1024)
def _read(packed: bytes) -> Settings:
    kubelet, timing = msgpack.unpackb(packed)
    problems: list[errors.Problem] = []
    found = SHAPE.check(kubelet, (), Report(Document("", kubelet), problems))
    if problems:
        raise ValueError(": ".join(part for part in (problems[0].path, problems[0].message) if part))
    return Settings(
        found,
        sync=_distribution(timing, "kubeletSync"),
        pod_start=_distribution(timing, "podStart"),
        image_pull=_distribution(timing, "imagePull"),
    )


def _distribution(timing: Mapping[str, Any], name: str) -> distributions.Distribution:
    try:
        return distributions.parse(timing.get(name, 0))
    except distributions.DistributionError as error:
        raise ValueError(f"timing.{name}: {error}") from error
