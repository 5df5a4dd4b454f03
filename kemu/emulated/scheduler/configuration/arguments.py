"""Arguments of the plugins in the tree (``pluginConfig[].args``): which there are, what each may hold, their defaults.

What is refused, and where, is what ``pkg/scheduler/apis/config/validation`` (validation_pluginargs.go) refuses; the
defaults are those of ``pkg/scheduler/apis/config/v1`` (defaults.go). So the plugins in the tree get complete and
checked arguments, and check nothing themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

from google.protobuf.message import Message

from kemu.emulated.objects import names
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.plain import Json
from kemu.emulated.objects.validation import placement
from kemu.emulated.scheduler.configuration import fields
from kemu.emulated.scheduler.configuration.fields import ConfigurationError
from kemu.errors import Cause
from kemu.messages.k8s import core_v1_pb2

_STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
_CPU_AND_MEMORY = ({"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1})
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")
_HIGHEST_SCORE = 10
"""Highest score of a point of a shape (``MaxCustomPriorityScore``)."""

Arguments = dict[str, Any]


def is_known(plugin: str) -> bool:
    """Whether the arguments of a plugin are checked here."""
    return plugin in _CHECKS or plugin in _WITHOUT_ARGUMENTS


def defaults(plugin: str) -> Arguments:
    """The arguments of a plugin in the tree that a profile says nothing about; none of any other plugin."""
    return dict(_defaults(plugin)) if is_known(plugin) else {}


@functools.cache
def _defaults(plugin: str) -> Arguments:
    return checked(plugin, {}, "", {})


def checked(plugin: str, data: Mapping[str, Any], path: str, gates: Mapping[str, bool]) -> Arguments:
    """The arguments of a plugin in the tree, with the defaults of what was not said.

    ``apiVersion`` and ``kind`` may be written. ``gates``: feature gates. Raises ConfigurationError.
    """
    given = {key: value for key, value in data.items() if key not in ("apiVersion", "kind")}
    for key, expected in (("apiVersion", fields.API_VERSION), ("kind", f"{plugin}Args")):
        if data.get(key, expected) != expected:
            raise ConfigurationError(f"{path}.{key}", f"must be {expected!r}, not {data[key]!r}")
    if plugin in _WITHOUT_ARGUMENTS:
        fields.check_keys(given, path, ())
        return given
    return _CHECKS[plugin](given, path, gates)


def _default_preemption(data: Mapping[str, Any], path: str, gates: Mapping[str, bool]) -> Arguments:
    percentage, absolute = "minCandidateNodesPercentage", "minCandidateNodesAbsolute"
    known = {percentage: fields.whole(0, 100), absolute: fields.whole(0, None)}
    found = {percentage: 10, absolute: 100, **fields.read(data, path, known)}
    if found[percentage] == found[absolute] == 0:
        raise ConfigurationError(f"{path}.{percentage}", f"cannot be zero at the same time as {absolute}")
    return found


def _inter_pod_affinity(data: Mapping[str, Any], path: str, gates: Mapping[str, bool]) -> Arguments:
    known = {"hardPodAffinityWeight": fields.whole(0, 100), "ignorePreferredTermsOfExistingPods": fields.boolean}
    defaults = {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": False}
    return {**defaults, **fields.read(data, path, known)}


def _node_affinity(data: Mapping[str, Any], path: str, gates: Mapping[str, bool]) -> Arguments:
    found = fields.read(data, path, {"addedAffinity": fields.mapping})
    if "addedAffinity" in found:
        here = f"{path}.addedAffinity"
        affinity = core_v1_pb2.Affinity(nodeAffinity=_message(core_v1_pb2.NodeAffinity, found["addedAffinity"], here))
        causes: list[Cause] = []
        placement.check_affinity(affinity, "", causes)
        if causes:
            first = causes[0]
            raise ConfigurationError(here + first.field.removeprefix(".nodeAffinity"), first.message)
    return found


def _balanced_allocation(data: Mapping[str, Any], path: str, gates: Mapping[str, bool]) -> Arguments:
    found = fields.read(data, path, {"resources": fields.entries})
    resources = _resources(found.get("resources"), f"{path}.resources")
    for number, resource in enumerate(resources):
        here = f"{path}.resources[{number}]"
        if resource["weight"] != 1:
            raise ConfigurationError(f"{here}.weight", f"must be 1: {resource['weight']}")
        if resource["name"] in [other["name"] for other in resources[:number]]:
            raise ConfigurationError(f"{here}.name", f"duplicate value: {resource['name']!r}")
    return {"resources": resources}


def _fit(data: Mapping[str, Any], path: str, gates: Mapping[str, bool]) -> Arguments:
    known = {"ignoredResources": fields.entries, "ignoredResourceGroups": fields.entries}
    found = fields.read(data, path, {**known, "scoringStrategy": fields.mapping})
    for number, resource in enumerate(found.get("ignoredResources", ())):
        _label_name(resource, f"{path}.ignoredResources[{number}]")
    for number, group in enumerate(found.get("ignoredResourceGroups", ())):
        here = f"{path}.ignoredResourceGroups[{number}]"
        if "/" in fields.text(group, here):
            raise ConfigurationError(here, f"a resource group name cannot contain '/': {group!r}")
        _label_name(group, here)
    strategy = found.get("scoringStrategy", {"type": _STRATEGIES[0]})
    found["scoringStrategy"] = _scoring_strategy(strategy, f"{path}.scoringStrategy")
    return {"ignoredResources": [], "ignoredResourceGroups": [], **found}


def _scoring_strategy(data: Mapping[str, Any], path: str) -> Arguments:
    known = {"type": fields.text, "resources": fields.entries, "requestedToCapacityRatio": fields.mapping}
    found = fields.read(data, path, known)
    kind = found.get("type", "")
    if kind not in _STRATEGIES:
        raise ConfigurationError(f"{path}.type", f"unsupported value {kind!r}: {', '.join(_STRATEGIES)}")
    found["resources"] = _resources(found.get("resources"), f"{path}.resources")
    for number, resource in enumerate(found["resources"]):
        if not 0 < resource["weight"] <= 100:
            here = f"{path}.resources[{number}].weight"
            raise ConfigurationError(here, f"must be a whole number from 1 to 100: {resource['weight']}")
    ratio, here = found.get("requestedToCapacityRatio"), f"{path}.requestedToCapacityRatio"
    if kind != _STRATEGIES[2]:
        if ratio is not None:
            raise ConfigurationError(here, f"only with type {_STRATEGIES[2]}")
        return found
    if ratio is None:
        raise ConfigurationError(here, f"needed with type {_STRATEGIES[2]}")
    shape = fields.read(ratio, here, {"shape": fields.entries}).get("shape", [])
    found["requestedToCapacityRatio"] = {"shape": _shape(shape, f"{here}.shape")}
    return found


def _pod_topology_spread(data: Mapping[str, Any], path: str, gates: Mapping[str, bool]) -> Arguments:
    found = fields.read(data, path, {"defaultConstraints": fields.entries, "defaultingType": fields.text})
    kind = found.setdefault("defaultingType", "System")
    constraints = found.setdefault("defaultConstraints", [])
    if kind not in ("System", "List"):
        raise ConfigurationError(f"{path}.defaultingType", f"unsupported value {kind!r}: System, List")
    if kind == "System" and constraints:
        raise ConfigurationError(f"{path}.defaultingType", "System when defaultConstraints are not empty: must be List")
    seen: list[tuple[str, str]] = []
    for number, data_of_one in enumerate(constraints):
        here = f"{path}.defaultConstraints[{number}]"
        one = _message(core_v1_pb2.TopologySpreadConstraint, fields.mapping(data_of_one, here), here)
        if one.maxSkew <= 0:
            raise ConfigurationError(f"{here}.maxSkew", f"must be greater than 0: {one.maxSkew}")
        if not one.topologyKey:
            raise ConfigurationError(f"{here}.topologyKey", "cannot be empty")
        _label_name(one.topologyKey, f"{here}.topologyKey")
        if one.whenUnsatisfiable not in _ACTIONS:
            message = f"unsupported value {one.whenUnsatisfiable!r}: {', '.join(_ACTIONS)}"
            raise ConfigurationError(f"{here}.whenUnsatisfiable", message)
        if one.HasField("labelSelector"):
            raise ConfigurationError(f"{here}.labelSelector", "must not be set: it is deduced for each pod")
        if (one.topologyKey, one.whenUnsatisfiable) in seen:
            raise ConfigurationError(here, f"duplicate value: {{{one.topologyKey}, {one.whenUnsatisfiable}}}")
        seen.append((one.topologyKey, one.whenUnsatisfiable))
    return found


def _volume_binding(data: Mapping[str, Any], path: str, gates: Mapping[str, bool]) -> Arguments:
    found = fields.read(data, path, {"bindTimeoutSeconds": fields.whole(0, None), "shape": fields.entries})
    if "shape" in found:
        if not gates.get("StorageCapacityScoring", False):
            raise ConfigurationError(f"{path}.shape", "needs the feature gate StorageCapacityScoring")
        found["shape"] = _shape(found["shape"], f"{path}.shape")
    return {"bindTimeoutSeconds": 600, **found}


def _dynamic_resources(data: Mapping[str, Any], path: str, gates: Mapping[str, bool]) -> Arguments:
    found = fields.read(data, path, {"filterTimeout": fields.duration_s, "bindingTimeout": fields.duration_s})
    if found.get("bindingTimeout", 600) < 1:
        raise ConfigurationError(f"{path}.bindingTimeout", "must be at least 1 second")
    return {"filterTimeout": 10.0, "bindingTimeout": 600.0, **found}


_CHECKS: dict[str, Callable[[Mapping[str, Any], str, Mapping[str, bool]], Arguments]] = {
    "DefaultPreemption": _default_preemption,
    "InterPodAffinity": _inter_pod_affinity,
    "NodeAffinity": _node_affinity,
    "NodeResourcesBalancedAllocation": _balanced_allocation,
    "NodeResourcesFit": _fit,
    "PodTopologySpread": _pod_topology_spread,
    "VolumeBinding": _volume_binding,
    "DynamicResources": _dynamic_resources,
}


_WITHOUT_ARGUMENTS = (
    "PrioritySort",
    "SchedulingGates",
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodePorts",
    "ImageLocality",
    "DefaultBinder",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeZone",
    "NodeDeclaredFeatures",
)


# Parts ----------------------------------------------------------------------------------------------------------------


def _resources(entries: list[Any] | None, path: str) -> list[Arguments]:
    """A list of ``{name, weight}``; cpu and memory when it is empty, weight 1 where none is given."""
    if not entries:
        return [dict(one) for one in _CPU_AND_MEMORY]
    found = []
    for number, entry in enumerate(entries):
        here = f"{path}[{number}]"
        one = fields.read(entry, here, {"name": fields.text, "weight": fields.whole(None, None)})
        if not one.get("name"):
            raise ConfigurationError(f"{here}.name", "a resource must be named")
        found.append({"name": one["name"], "weight": one.get("weight", 0) or 1})
    return found


def _shape(entries: list[Any], path: str) -> list[Arguments]:
    """Points of (utilization in percent, score of 0..10), in increasing order of utilization."""
    if not entries:
        raise ConfigurationError(path, "at least one point is needed")
    points: list[Arguments] = []
    for number, entry in enumerate(entries):
        here = f"{path}[{number}]"
        known = {"utilization": fields.whole(0, 100), "score": fields.whole(0, _HIGHEST_SCORE)}
        point = {"utilization": 0, "score": 0, **fields.read(entry, here, known)}
        if points and point["utilization"] <= points[-1]["utilization"]:
            raise ConfigurationError(f"{here}.utilization", "must be greater than that of the point before")
        points.append(point)
    return points


M = TypeVar("M", bound=Message)


def _message(kind: type[M], data: Mapping[str, Any], path: str) -> M:
    try:
        return convert.from_json(kind, data, path=path)
    except convert.ConversionError as error:
        _raise_first(error)


def _raise_first(error: convert.ConversionError) -> NoReturn:
    problem = error.problems[0]
    raise ConfigurationError(problem.path, problem.message, problem.suggestion) from None


def _label_name(value: Json, path: str) -> None:
    problems = names.label_key(fields.text(value, path))
    if problems:
        raise ConfigurationError(path, f"{value!r}: {problems[0]}")
