"""The policy of the descheduler as a scenario states it: ``DeschedulerPolicy`` of ``descheduler/v1alpha2``.

Arguments of plugins are checked as the descheduler checks them when it starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kemu.emulated.objects import selectors
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.plain import Json
from kemu.emulated.settings.declared import REQUIRED, Complaint, Section, restored, setting
from kemu.emulated.settings.documents import Path
from kemu.emulated.settings.shapes import (
    DURATION,
    INVALID,
    Choice,
    Free,
    Key,
    ListOf,
    MapOf,
    Number,
    Record,
    Report,
    Switch,
    Text,
    Whole,
)
from kemu.messages.k8s import meta_v1_pb2

NAME = "descheduler"
DEFAULT_EVICTOR = "DefaultEvictor"


class _Selector:
    """A LabelSelector in JSON."""

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if Free().check(value, path, report) is INVALID:
            return INVALID
        try:
            compiled(value)
        except ValueError as error:
            report.add(path, str(error))
            return INVALID
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "object"}


class _Labels:
    """A selector of labels as text."""

    def check(self, value: Json, path: Path, report: Report) -> Any:
        if Text(".*").check(value, path, report) is INVALID:
            return INVALID
        try:
            selectors.parse_labels(str(value))
        except selectors.SelectorError as error:
            report.add(path, str(error))
            return INVALID
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string"}


def compiled(selector: Any) -> selectors.LabelSelector:
    """Raises ValueError."""
    return selectors.compile_labels(convert.from_json(meta_v1_pb2.LabelSelector, selector))


_WORDS = ListOf(Text())
_SECONDS = Whole(0)


@dataclass(frozen=True, kw_only=True)
class Namespaces:
    """Which namespaces count."""

    include: list[str] = setting(_WORDS, "These alone.", [])
    exclude: list[str] = setting(_WORDS, "All but these.", [])

    def complaints(self) -> Iterator[Complaint]:
        if self.include and self.exclude:
            yield Complaint((), "only one of include and exclude can be set")

    def have(self, namespace: str) -> bool:
        return (not self.include or namespace in self.include) and namespace not in self.exclude


@dataclass(frozen=True, kw_only=True)
class _Selecting:
    """What most strategies can be told about the pods that they look at."""

    namespaces: Namespaces | None = setting(Section(Namespaces), "Where the pods are; everywhere by default.")
    label_selector: Mapping[str, Any] | None = setting(_Selector(), "Which pods; all by default.")


_EXCLUDING = Section(Namespaces)
_THRESHOLDS = MapOf(Number(0, 100))


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much one strategy may evict."""

    node: int | None = setting(Whole(0), "From one node, in a round.")


@dataclass(frozen=True, kw_only=True)
class LowNodeUtilization:
    """Evicts pods from nodes above their targets while others are below their thresholds."""

    use_deviation_thresholds: bool = setting(
        Switch(), "Whether thresholds are deviations from the average of all nodes.", False
    )
    thresholds: dict[str, float] = setting(
        _THRESHOLDS, "In percent, by resource: a node below all of them is underutilized.", REQUIRED
    )
    target_thresholds: dict[str, float] = setting(_THRESHOLDS, "A node above one of them is overutilized.", REQUIRED)
    number_of_nodes: int = setting(Whole(0), "With no more underutilized nodes than this, it does nothing.", 0)
    evictable_namespaces: Namespaces | None = setting(_EXCLUDING, "Whose pods stay: only exclude may be set.")
    eviction_limits: Limits | None = setting(Section(Limits), "How much it may evict.")

    def complaints(self) -> Iterator[Complaint]:
        yield from _excluding_alone(self.evictable_namespaces)
        if not self.thresholds:
            yield Complaint(("thresholds",), "no resource threshold is configured")
        if set(self.thresholds) != set(self.target_thresholds):
            yield Complaint((), "thresholds and targetThresholds name different resources")
            return
        for name, value in self.thresholds.items():
            if value > self.target_thresholds[name] and not self.use_deviation_thresholds:
                yield Complaint(("thresholds", name), "is greater than its targetThresholds")


@dataclass(frozen=True, kw_only=True)
class HighNodeUtilization:
    """Evicts pods from underutilized nodes so that fewer nodes are needed."""

    thresholds: dict[str, float] = setting(
        _THRESHOLDS, "In percent, by resource: a node below all of them is underutilized.", REQUIRED
    )
    number_of_nodes: int = setting(Whole(0), "With no more underutilized nodes than this, it does nothing.", 0)
    eviction_modes: list[str] = setting(
        ListOf(Choice(("OnlyThresholdingResources",))),
        "OnlyThresholdingResources: pods stay that request none of the resources with a threshold.",
        [],
    )
    evictable_namespaces: Namespaces | None = setting(_EXCLUDING, "Whose pods stay: only exclude may be set.")

    def complaints(self) -> Iterator[Complaint]:
        yield from _excluding_alone(self.evictable_namespaces)
        if not self.thresholds:
            yield Complaint(("thresholds",), "no resource threshold is configured")


def _excluding_alone(namespaces: Namespaces | None) -> Iterator[Complaint]:
    if namespaces is not None and namespaces.include:
        yield Complaint(("evictableNamespaces", "include"), "only exclude can be set here", key=True)


@dataclass(frozen=True, kw_only=True)
class RemoveDuplicates:
    """Evicts pods of one owner from nodes that have more of them than their share."""

    namespaces: Namespaces | None = setting(Section(Namespaces), "Where the pods are; everywhere by default.")
    exclude_owner_kinds: list[str] = setting(_WORDS, "Pods of such owners stay.", [])


@dataclass(frozen=True, kw_only=True)
class RemovePodsViolatingTopologySpreadConstraint(_Selecting):
    """Evicts pods from topology domains that have too many of them for their spread constraints."""

    constraints: list[str] = setting(
        ListOf(Choice(("DoNotSchedule", "ScheduleAnyway"))), "Which constraints count.", ["DoNotSchedule"]
    )
    topology_balance_node_fit: bool = setting(
        Switch(), "Whether a pod stays that would fit on no node of a smaller domain; {default} by default.", True
    )


@dataclass(frozen=True, kw_only=True)
class RemovePodsViolatingInterPodAntiAffinity(_Selecting):
    """Evicts pods whose required anti-affinity another pod violates."""


@dataclass(frozen=True, kw_only=True)
class RemovePodsViolatingNodeAffinity(_Selecting):
    """Evicts pods whose node affinity another node would suit better."""

    node_affinity_type: list[str] = setting(
        ListOf(
            Choice(
                (
                    "requiredDuringSchedulingIgnoredDuringExecution",
                    "preferredDuringSchedulingIgnoredDuringExecution",
                )
            ),
            1,
        ),
        "Which affinity.",
        REQUIRED,
    )


@dataclass(frozen=True, kw_only=True)
class RemovePodsViolatingNodeTaints(_Selecting):
    """Evicts pods that do not tolerate a NoSchedule taint of their node."""

    include_prefer_no_schedule: bool = setting(Switch(), "Whether PreferNoSchedule taints count, too.", False)
    excluded_taints: list[str] = setting(_WORDS, "Taints that do not count: key or key=value.", [])
    included_taints: list[str] | None = setting(_WORDS, "Taints that count alone: key or key=value.")

    def complaints(self) -> Iterator[Complaint]:
        if self.excluded_taints and self.included_taints:
            yield Complaint((), "either includedTaints or excludedTaints can be set, but not both")


@dataclass(frozen=True, kw_only=True)
class RemovePodsHavingTooManyRestarts(_Selecting):
    """Evicts pods whose containers were restarted too often."""

    pod_restart_threshold: int = setting(Whole(1), "How often is too often.", REQUIRED)
    including_init_containers: bool = setting(Switch(), "Whether init containers count, too.", False)
    states: list[str] = setting(
        ListOf(Choice(("Running", "CrashLoopBackOff"))), "Only pods in one of these states; any by default.", []
    )


@dataclass(frozen=True, kw_only=True)
class Kinds:
    """Kinds of owners."""

    include: list[str] = setting(_WORDS, "These alone.", [])
    exclude: list[str] = setting(_WORDS, "All but these.", [])

    def complaints(self) -> Iterator[Complaint]:
        if self.include and self.exclude:
            yield Complaint((), "only one of include and exclude can be set")


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A condition of a pod; what is not set is not compared."""

    type: str = setting(Text(".*"), "Its type.", "")
    status: str = setting(Text(".*"), "Its status.", "")
    reason: str = setting(Text(".*"), "Its reason.", "")
    min_time_since_last_transition_seconds: int | None = setting(_SECONDS, "How long it has been so at least.")

    def complaints(self) -> Iterator[Complaint]:
        if not (self.type or self.status or self.reason) and self.min_time_since_last_transition_seconds is None:
            yield Complaint((), "one of type, status, reason and minTimeSinceLastTransitionSeconds must be set")


_STATES = (
    *("Running", "Pending", "Succeeded", "Failed", "Unknown"),
    *("NodeAffinity", "NodeLost", "Shutdown", "UnexpectedAdmissionError"),
    *("PodInitializing", "ContainerCreating", "ImagePullBackOff", "CrashLoopBackOff", "CreateContainerConfigError"),
    *("ErrImagePull", "CreateContainerError", "InvalidImageName"),
    *("OOMKilled", "Error", "Completed", "DeadlineExceeded", "Evicted", "ContainerCannotRun", "StartError"),
)


@dataclass(frozen=True, kw_only=True)
class PodLifeTime(_Selecting):
    """Evicts pods that are older than they may be, or in one of some states."""

    owner_kinds: Kinds | None = setting(Section(Kinds), "Whose pods.")
    max_pod_life_time_seconds: int | None = setting(_SECONDS, "Older pods go.")
    states: list[str] = setting(
        ListOf(Choice(_STATES)), "Only pods in one of these: phases, reasons of pods and of containers.", []
    )
    conditions: list[Condition] = setting(ListOf(Section(Condition)), "Only pods with one of these conditions.", [])
    exit_codes: list[int] = setting(ListOf(Whole()), "Only pods of which a container ended with one of these.", [])
    including_init_containers: bool = setting(Switch(), "Whether init containers count, too.", False)
    including_ephemeral_containers: bool = setting(Switch(), "Whether ephemeral containers count, too.", False)

    def complaints(self) -> Iterator[Complaint]:
        if self.max_pod_life_time_seconds is None and not (self.states or self.conditions or self.exit_codes):
            yield Complaint((), "one of maxPodLifeTimeSeconds, states, conditions and exitCodes must be set")


@dataclass(frozen=True, kw_only=True)
class RemoveFailedPods(_Selecting):
    """Evicts pods that have failed."""

    exclude_owner_kinds: list[str] = setting(_WORDS, "Pods of such owners stay.", [])
    min_pod_lifetime_seconds: int | None = setting(_SECONDS, "Younger pods stay.")
    reasons: list[str] = setting(_WORDS, "Only with one of these reasons, of the pod or of a container.", [])
    exit_codes: list[int] = setting(ListOf(Whole()), "Only where a container ended with one of these.", [])
    including_init_containers: bool = setting(Switch(), "Whether init containers count, too.", False)


PROTECTED = ("PodsWithLocalStorage", "SystemCriticalPods", "FailedBarePods", "DaemonSetPods")
"""Pods that are protected unless the policy says otherwise."""
PROTECTABLE = ("PodsWithPVC", "PodsWithoutPDB", "PodsWithResourceClaims")


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """A priority."""

    value: int | None = setting(Whole(), "The priority.")
    name: str = setting(Text(".*"), "Or the name of its class.", "")

    def complaints(self) -> Iterator[Complaint]:
        if self.value is not None and self.name:
            yield Complaint((), "only one of value and name can be set")


@dataclass(frozen=True, kw_only=True)
class _Class:
    name: str = setting(Text(), "Its name.", REQUIRED)


@dataclass(frozen=True, kw_only=True)
class _Claims:
    protected_storage_classes: list[_Class] = setting(
        ListOf(Section(_Class)), "Claims of other classes do not count.", []
    )


@dataclass(frozen=True, kw_only=True)
class _ProtectionConfig:
    pods_with_pvc: _Claims | None = setting(Section(_Claims), "Which claims count.", key="PodsWithPVC")


@dataclass(frozen=True, kw_only=True)
class Protections:
    """Which pods stay, whatever a strategy says."""

    extra_enabled: list[str] = setting(ListOf(Choice(PROTECTABLE)), "Further pods that stay.", [])
    default_disabled: list[str] = setting(ListOf(Choice(PROTECTED)), "Those that may be evicted after all.", [])
    config: _ProtectionConfig | None = setting(Section(_ProtectionConfig), "More about some of them.")

    def complaints(self) -> Iterator[Complaint]:
        for key, names in (("extraEnabled", self.extra_enabled), ("defaultDisabled", self.default_disabled)):
            if len(set(names)) < len(names):
                yield Complaint((key,), "contains duplicate entries")


@dataclass(frozen=True, kw_only=True)
class DefaultEvictor:
    """Which pods may be evicted."""

    node_selector: str = setting(_Labels(), "Nodes that count where nodeFit asks for another one.", "")
    label_selector: Mapping[str, Any] | None = setting(_Selector(), "Only pods with such labels.")
    namespace_label_selector: Mapping[str, Any] | None = setting(
        _Selector(), "Only pods in namespaces with such labels."
    )
    priority_threshold: Threshold | None = setting(Section(Threshold), "Only pods of a lower priority.")
    node_fit: bool = setting(Switch(), "Only pods that would fit on another node.", False)
    min_replicas: int = setting(Whole(0), "Only pods of owners with so many pods.", 0)
    min_pod_age_ns: int | None = setting(DURATION, "Only pods that started so long ago.")
    no_eviction_policy: str = setting(
        Choice(("Preferred", "Mandatory")),
        "Mandatory: pods with the annotation descheduler.alpha.kubernetes.io/prefer-no-eviction stay.",
        "Preferred",
    )
    pod_protections: Protections | None = setting(Section(Protections), "Which pods stay in any case.")
    evict_local_storage_pods: bool = setting(Switch(), "Whether pods with emptyDir or hostPath volumes may go.", False)
    evict_daemon_set_pods: bool = setting(Switch(), "Whether pods of DaemonSets may go.", False)
    evict_system_critical_pods: bool = setting(Switch(), "Whether pods of system priorities may go.", False)
    ignore_pvc_pods: bool = setting(Switch(), "Whether pods with claims stay.", False)
    ignore_pods_without_pdb: bool = setting(
        Switch(), "Whether pods without a budget stay.", False, key="ignorePodsWithoutPDB"
    )
    evict_failed_bare_pods: bool = setting(Switch(), "Whether failed pods without an owner may go.", False)

    def complaints(self) -> Iterator[Complaint]:
        protections = self.pod_protections
        is_old = (
            self.evict_local_storage_pods
            or self.evict_daemon_set_pods
            or self.evict_system_critical_pods
            or self.ignore_pvc_pods
            or self.ignore_pods_without_pdb
            or self.evict_failed_bare_pods
        )
        if is_old and protections is not None and (protections.extra_enabled or protections.default_disabled):
            yield Complaint(
                ("podProtections",), "cannot be used beside the deprecated fields evict… and ignore…", key=True
            )

    @property
    def protected(self) -> tuple[str, ...]:
        """What is protected in the end (``getEffectivePodProtections``)."""
        stated = self.pod_protections or Protections()
        if stated.default_disabled or stated.extra_enabled:
            return (*(one for one in PROTECTED if one not in stated.default_disabled), *stated.extra_enabled)
        switches = {
            "PodsWithLocalStorage": not self.evict_local_storage_pods,
            "DaemonSetPods": not self.evict_daemon_set_pods,
            "SystemCriticalPods": not self.evict_system_critical_pods,
            "FailedBarePods": not self.evict_failed_bare_pods,
            "PodsWithPVC": self.ignore_pvc_pods,
            "PodsWithoutPDB": self.ignore_pods_without_pdb,
        }
        return tuple(name for name, is_on in switches.items() if is_on)


DESCHEDULE: dict[str, type] = {
    one.__name__: one
    for one in (
        RemovePodsViolatingInterPodAntiAffinity,
        RemovePodsViolatingNodeAffinity,
        RemovePodsViolatingNodeTaints,
        RemovePodsHavingTooManyRestarts,
        PodLifeTime,
        RemoveFailedPods,
    )
}
"""Strategies at the extension point ``deschedule``, with their arguments."""
BALANCE: dict[str, type] = {
    one.__name__: one
    for one in (
        LowNodeUtilization,
        HighNodeUtilization,
        RemoveDuplicates,
        RemovePodsViolatingTopologySpreadConstraint,
    )
}
"""Those at ``balance``."""
ARGUMENTS: dict[str, type] = {**DESCHEDULE, **BALANCE, DEFAULT_EVICTOR: DefaultEvictor}


class _PluginConfig:
    """The arguments of one plugin: what stands there depends on its name. Checked, ``args`` is an instance."""

    _shape = Record(
        {
            "name": Key(Choice(tuple(ARGUMENTS)), "The plugin.", required=True),
            "args": Key(Free(), "Its arguments."),
        }
    )

    def check(self, value: Json, path: Path, report: Report) -> Any:
        checked = self._shape.check(value, path, report)
        if checked is INVALID or not isinstance(checked.get("name"), str):
            return INVALID
        args = Section(ARGUMENTS[checked["name"]]).check(checked.get("args", {}), (*path, "args"), report)
        return INVALID if args is INVALID else {"name": checked["name"], "args": args}

    def schema(self) -> dict[str, Any]:
        return {
            "oneOf": [
                {
                    "type": "object",
                    "properties": {"name": {"const": name}, "args": Section(cls).schema()},
                    "required": ["name"],
                    "additionalProperties": False,
                }
                for name, cls in ARGUMENTS.items()
            ]
        }


def _enabled(names: tuple[str, ...]) -> Record:
    return Record(
        {
            "enabled": Key(ListOf(Choice(names)), "Those that run, in this order."),
            "disabled": Key(ListOf(Choice((*names, "*"))), "Those that do not."),
        }
    )


_EVICTOR = _enabled((DEFAULT_EVICTOR,))


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Strategies with their arguments."""

    name: str = setting(Text(), "Its name.", REQUIRED)
    plugin_config: list[dict[str, Any]] = setting(ListOf(_PluginConfig()), "Arguments of plugins.", [])
    plugins: dict[str, dict[str, list[str]]] = setting(
        Record(
            {
                "deschedule": Key(_enabled(tuple(DESCHEDULE)), "Strategies that judge pods one by one."),
                "balance": Key(_enabled(tuple(BALANCE)), "Strategies that compare nodes."),
                "filter": Key(_EVICTOR, "Which pods may go: DefaultEvictor."),
                "preEvictionFilter": Key(_EVICTOR, "The same, asked last: DefaultEvictor."),
            }
        ),
        "Which plugins run.",
        REQUIRED,
    )

    def enabled(self, point: str) -> list[str]:
        found = self.plugins.get(point, {})
        off = found.get("disabled", [])
        return [name for name in found.get("enabled", []) if name not in off and "*" not in off]

    def complaints(self) -> Iterator[Complaint]:
        configured = [one["name"] for one in self.plugin_config if isinstance(one, Mapping)]
        for point in ("deschedule", "balance"):
            for number, name in enumerate(self.plugins.get(point, {}).get("enabled", [])):
                if isinstance(name, str) and name not in configured:
                    yield Complaint(
                        ("plugins", point, "enabled", number),
                        f"{name} has no pluginConfig",
                        "add it, with its args",
                        alone=True,
                    )
        for number, name in enumerate(configured):
            if name in configured[:number]:
                yield Complaint(("pluginConfig", number, "name"), f"{name} stands there twice")


@dataclass(frozen=True, kw_only=True)
class Policy:
    """``DeschedulerPolicy``."""

    api_version: str = setting(Choice(("descheduler/v1alpha2",)), "Its version.", "descheduler/v1alpha2")
    kind: str = setting(Choice(("DeschedulerPolicy",)), "Its kind.", "DeschedulerPolicy")
    profiles: list[Profile] = setting(ListOf(Section(Profile), 1), "One after the other.", REQUIRED)
    node_selector: str = setting(_Labels(), "Nodes that count; all by default.", "")
    max_no_of_pods_to_evict_per_node: int | None = setting(Whole(0), "In a round, from one node.")
    max_no_of_pods_to_evict_per_namespace: int | None = setting(Whole(0), "In a round, of one namespace.")
    max_no_of_pods_to_evict_total: int | None = setting(Whole(0), "In a round.")
    grace_period_seconds: int | None = setting(Whole(0), "Of evicted pods; by default their own.")
    eviction_failure_event_notification: bool = setting(
        Switch(), "Whether an eviction that fails is told in an Event.", False
    )


@dataclass(frozen=True, kw_only=True)
class Settings:
    """``descheduler`` of a scenario."""

    interval_ns: int = setting(
        DURATION, "From one round to the next (--descheduling-interval); {default} by default. 0: a single round.", "5m"
    )
    policy: Policy = setting(Section(Policy), "What it does.", REQUIRED)


def restored_arguments(name: str, data: Mapping[str, Any]) -> Any:
    """The arguments of a plugin, from plain data."""
    return restored(ARGUMENTS[name], data)
