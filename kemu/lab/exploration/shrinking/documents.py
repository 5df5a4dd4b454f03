"""Smaller documents: without faults, pods, nodes, schedulers, settings.

The functions here change plain data; whether the changed scenario still fails is for :mod:`trials` to say.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kemu.emulated.objects.amounts import quantities
from kemu.emulated.objects.conversion import convert
from kemu.emulated.objects.plain import Json
from kemu.emulated.settings.values import duration_ns, duration_text
from kemu.lab.exploration.shrinking.candidates import Data, copied
from kemu.lab.scenario.format.keys import timing_keys
from kemu.lab.scenario.format.workloads import Workload
from kemu.lab.scenario.playing import workloads
from kemu.lab.scenario.scenarios import Scenario
from kemu.runtime.random_streams import random_stream

Item = tuple[str, int]
"""A section of spec and an index in it."""
Way = tuple[str | int, ...]
"""Keys and indexes, from the document's root."""

MOST_SINGLE_PODS = 200
"""A workload of more pods is not written as single events."""
MOST_SINGLE_NODES = 200

PODS = ("manifests", "events", "workloads")
"""Where pods come from."""


def items(data: Data, *sections: str) -> list[Item]:
    return [(section, index) for section in sections for index in range(len(data["spec"].get(section) or ()))]


def keeping(data: Data, kept: Sequence[Item], *sections: str) -> dict[str, Any]:
    """The document with only the items of these sections that are kept."""
    changed = copied(data)
    spec = changed["spec"]
    for section in sections:
        if section in spec:
            spec[section] = [item for index, item in enumerate(spec[section]) if (section, index) in set(kept)]
            if not spec[section]:
                del spec[section]
    return changed


# Pods


def in_time(data: Data) -> list[Item]:
    """What brings pods, and all other events: what is there from the start, workloads, then events by their times."""
    events = data["spec"].get("events") or []

    def when(item: Item) -> int:
        return duration_ns(events[item[1]].get("at", 0))

    return [*items(data, "manifests", "workloads"), *sorted(items(data, "events"), key=when)]


def happenings(data: Data) -> list[Item]:
    """All events but those that create pods."""
    events = data["spec"].get("events") or ()
    return [("events", index) for index, event in enumerate(events) if not is_pod(event.get("create"))]


def is_pod(item: Json) -> bool:
    return isinstance(item, Mapping) and item.get("kind") == "Pod"


def planned(scenario: Scenario) -> dict[str, int]:
    """How many pods each workload brings by itself."""
    return {
        workload.name: workloads.due_before(workload, scenario.seed, scenario.duration_ns)
        for workload in scenario.workloads
    }


def with_count(data: Data, index: int, count: int) -> dict[str, Any]:
    """Only the first pods of a workload."""
    changed = copied(data)
    changed["spec"]["workloads"][index].setdefault("arrivals", {})["count"] = count
    return changed


def with_single_pods(data: Data, scenario: Scenario, holder: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Every pod of a workload as an event of its own; None where that cannot be.

    ``holder``: the expectation that fails, which may name a workload.
    """
    amounts = planned(scenario)
    if not amounts or sum(amounts.values()) > MOST_SINGLE_PODS:
        return None
    changed = copied(data)
    spec = changed["spec"]
    written = {item["name"]: item for item in spec["workloads"]}
    single = [workload for workload in scenario.workloads if workload.trace is None]
    named = _workload_named(holder)
    events = list(spec.get("events") or [])
    for workload in single:
        events += _single_pods(workload, written[workload.name], scenario, is_named=workload.name == named)
    spec["events"] = sorted(events, key=lambda event: duration_ns(event.get("at", 0)))
    names = {workload.name for workload in single}
    spec["workloads"] = [item for item in spec["workloads"] if item["name"] not in names]
    if not spec["workloads"]:
        del spec["workloads"]
    for expectation in spec.get("expect") or ():
        if _workload_named(expectation) in names:
            expectation["pods"] = {"selector": {"matchLabels": {workloads.LABEL: expectation["pods"]["workload"]}}}
    return changed


def _workload_named(expectation: Mapping[str, Any] | None) -> str:
    pods = (expectation or {}).get("pods")
    return str(pods.get("workload", "")) if isinstance(pods, Mapping) else ""


def _single_pods(
    workload: Workload, written: Mapping[str, Any], scenario: Scenario, *, is_named: bool
) -> Iterator[dict[str, Any]]:
    stream = workloads.Stream(workloads.plain(workload), scenario.seed, functools.partial(random_stream, scenario.seed))
    template = written["pods"]
    while (at_ns := stream.next_ns()) is not None and at_ns < scenario.duration_ns:
        _, pod = stream.arrival()
        metadata: dict[str, Any] = {"name": pod.metadata.name, **copied(template.get("metadata") or {})}
        annotations = convert.to_json(pod.metadata).get("annotations")
        if annotations:
            metadata["annotations"] = annotations
        if is_named:
            metadata["labels"] = {**metadata.get("labels", {}), workloads.LABEL: workload.name}
        spec = copied(template.get("spec") or {})
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        yield {"at": duration_text(at_ns), "create": made}


REPLICATED = ("ReplicaSet", "StatefulSet")
_NUMBERED = (*REPLICATED, "PodDisruptionBudget")


def numbers(data: Data) -> list[tuple[Way, int]]:
    """Where a scheduler or an object states a number above one: replicas, the pods that a budget keeps."""
    spec = data["spec"]
    found: list[tuple[Way, int]] = []

    def look(item: Any, way: Way, *keys: str) -> None:
        for key in keys or item:
            value = item.get(key)
            if isinstance(value, int) and not isinstance(value, bool) and value > 1:
                found.append(((*way, key), value))

    for index, scheduler in enumerate(spec.get("schedulers") or ()):
        look(scheduler, ("spec", "schedulers", index), "replicas")
    look(spec.get("apiServers") or {}, ("spec", "apiServers"), "replicas")
    for way in _objects(data):
        item = at(data, way)
        if item.get("kind") in _NUMBERED:
            look(item.get("spec") or {}, (*way, "spec"))
    return found


def with_number(data: Data, way: Way, number: int) -> dict[str, Any]:
    """Another number; an expectation that expects as many as it was expects as many as it is."""
    before = at(data, way)
    changed = changed_at(data, way, number)
    for expectation in changed["spec"].get("expect") or ():
        for key in ("equals", "atLeast"):
            if expectation.get(key) == before:
                expectation[key] = number
    return changed


def _objects(data: Data) -> Iterator[Way]:
    """Where objects are stated: pods and others, but not the templates of workloads."""
    spec = data["spec"]
    for index, item in enumerate(spec.get("manifests") or ()):
        if isinstance(item, Mapping):
            yield ("spec", "manifests", index)
    for index, event in enumerate(spec.get("events") or ()):
        for action in ("create", "apply"):
            if isinstance(event.get(action), Mapping):
                yield ("spec", "events", index, action)


def with_equal_pods(data: Data) -> dict[str, Any] | None:
    """Every container asks for as much as the least one does; None where that is so."""
    changed = copied(data)
    requests = _requests(changed)
    is_other = False
    for resource in _SCARCE:
        asked = [str(request[resource]) for request in requests if resource in request]
        least = min(asked, key=quantities.milli, default="")
        for request in requests:
            if resource in request and request[resource] != least:
                request[resource] = least
                is_other = True
    return changed if is_other else None


def with_round_times(data: Data, unit_ns: int) -> dict[str, Any] | None:
    """Events at multiples of a time, lives of pods in whole seconds; None where that is so."""
    changed = copied(data)
    for event in changed["spec"].get("events") or ():
        if "at" in event:
            at_ns = duration_ns(event["at"])
            rounded_ns = round(at_ns / unit_ns) * unit_ns
            event["at"] = event["at"] if rounded_ns == at_ns else duration_text(rounded_ns)
        metadata = (event.get("create") or {}).get("metadata") or {}
        for name, value in (metadata.get("annotations") or {}).items():
            if name.startswith("kemu.dev/") and re.fullmatch(r"[0-9]+\.[0-9]+", str(value)):
                metadata["annotations"][name] = str(max(1, round(float(value))))
    return None if changed == data else changed


def counted(detail: str) -> int | None:
    """The number of which a failure speaks: ``preemptions = 3``."""
    number = re.search(r" = (-?[0-9]+)$", detail)
    return int(number[1]) if number is not None else None


def expected_number(data: Data) -> int | None:
    """The exact number that a counter is expected to have; None where nothing, or something else, is expected."""
    expect = data["spec"].get("expect") or []
    found = expect[0].get("equals") if len(expect) == 1 and "counter" in expect[0] else None
    return found if isinstance(found, int) else None


def with_expected_number(data: Data, number: int) -> dict[str, Any]:
    return changed_at(data, ("spec", "expect", 0, "equals"), number)


# Nodes


def with_single_nodes(data: Data) -> dict[str, Any] | None:
    """Every node of a group by its own name; None where there is no group, or too large a one."""
    nodes = data["spec"].get("nodes") or []
    groups = [node for node in nodes if "namePrefix" in node]
    if not groups or sum(node["count"] for node in groups) > MOST_SINGLE_NODES:
        return None
    changed = copied(data)
    single = []
    for node in changed["spec"]["nodes"]:
        if "namePrefix" not in node:
            single.append(node)
            continue
        rest = {key: value for key, value in node.items() if key not in ("namePrefix", "count")}
        single += [{"name": f"{node['namePrefix']}{n}", **copied(rest)} for n in range(1, node["count"] + 1)]
    changed["spec"]["nodes"] = single
    return changed


def with_fewer_nodes(data: Data, count: int) -> dict[str, Any] | None:
    """Only the first; None where there are no more."""
    nodes = data["spec"].get("nodes") or []
    if sum(node.get("count", 1) for node in nodes) <= count:
        return None
    changed = copied(data)
    kept = []
    for node in changed["spec"]["nodes"]:
        if count and "count" in node:
            node["count"] = min(node["count"], count)
        if count:
            kept.append(node)
            count -= node.get("count", 1)
    changed["spec"]["nodes"] = kept
    return changed


_SCARCE = ("cpu", "memory")


def with_room_for(data: Data, count: int) -> dict[str, Any] | None:
    """No node has room for more than so many of the largest pods; None where that is so."""
    largest = _largest_requests(data)
    changed = copied(data)
    is_less = False
    for node in changed["spec"].get("nodes") or ():
        stated = node.get("allocatable")
        for resource, text in largest.items():
            if not isinstance(stated, dict) or resource not in stated or "capacity" in node:
                continue
            if quantities.milli(str(stated[resource])) > quantities.milli(text) * count:
                stated[resource] = _times(text, count)
                is_less = True
    return changed if is_less else None


def _times(text: str, count: int) -> str:
    """``500m`` twice is ``1``, ``3Gi`` twice ``6Gi``."""
    match = re.fullmatch(r"([0-9]+)(.*)", text)
    if match is None:
        return text
    number, unit = int(match[1]) * count, match[2]
    return str(number // 1000) if unit == "m" and number % 1000 == 0 else f"{number}{unit}"


def _largest_requests(data: Data) -> dict[str, str]:
    """Most requests of one container, by resource."""
    asked = _requests(data)
    found = {}
    for resource in _SCARCE:
        amounts = [str(request[resource]) for request in asked if resource in request]
        if amounts:
            found[resource] = max(amounts, key=quantities.milli)
    return found


def _requests(data: Data) -> list[dict[str, Any]]:
    """Requests of all containers of pods that the scenario states."""
    pods = [at(data, way) for way in _objects(data)]
    pods += [workload["pods"] for workload in data["spec"].get("workloads") or () if "pods" in workload]
    return [
        container["resources"]["requests"]
        for pod in pods
        if pod.get("kind", "Pod") == "Pod"
        for container in (pod.get("spec") or {}).get("containers") or ()
        if (container.get("resources") or {}).get("requests")
    ]


# Settings

_KEPT = frozenset(
    ("seed", "duration", "modules", "nodes", "schedulers", "manifests", "events", "workloads", "chaos", "expect")
)
"""Sections that are not settings. Without its folders of modules a scenario would not stand alone."""


def settings(data: Data) -> list[Way]:
    """What could be left out: of the scenario, then of its schedulers, its nodes, its objects."""
    spec = data["spec"]
    found: list[Way] = [("spec", key) for key in spec if key not in _KEPT]
    for section, kept in (("schedulers", ("name", "factory", "replicas")), ("nodes", ("name", "namePrefix", "count"))):
        for index, item in enumerate(spec.get(section) or ()):
            found += [("spec", section, index, key) for key in item if key not in kept]
    for index, item in enumerate(spec.get("workloads") or ()):
        found += [("spec", "workloads", index, key) for key in item if key in ("life", "usage", "replaceFinished")]
        found += _of_object(item.get("pods"), ("spec", "workloads", index, "pods"))
    for way in _objects(data):
        found += _of_object(at(data, way), way)
    return found


def _of_object(item: object, way: Way) -> Iterator[Way]:
    """The options of an object that is stated in a scenario."""
    if not isinstance(item, Mapping):
        return
    for key, value in item.items():
        if key == "metadata" and isinstance(value, Mapping):
            yield from ((*way, key, name) for name in value if name not in ("name", "namespace"))
        elif key == "spec" and item.get("kind", "Pod") == "Pod" and isinstance(value, Mapping):
            yield from ((*way, key, name) for name in value if name != "containers")
            for index, container in enumerate(value.get("containers") or ()):
                yield from ((*way, key, "containers", index, name) for name in container if name != "name")


def inside(data: Data, way: Way) -> list[Way]:
    """The parts of a setting that could be left out one by one."""
    value = at(data, way)
    if isinstance(value, Mapping) and not is_distribution(value):
        return [(*way, key) for key in value]
    if isinstance(value, list) and len(value) > 1:
        return [(*way, index) for index in range(len(value))]
    return []


def without(data: Data, ways: Sequence[Way]) -> dict[str, Any]:
    """Without what stands there; mappings and lists that this leaves empty go, too."""
    changed = copied(data)
    # From behind, so that indexes stay right.
    for way in sorted(ways, key=_order, reverse=True):
        _remove(changed, way)
    return changed


def _order(way: Way) -> list[tuple[int, str]]:
    return [(step, "") if isinstance(step, int) else (-1, step) for step in way]


def _remove(data: Json, way: Way) -> None:
    parents: list[Any] = [data]
    for step in way[:-1]:
        parents.append(parents[-1][step])
    for depth in range(len(way) - 1, 0, -1):
        parent: Any = parents[depth]
        key: Any = way[depth]
        if isinstance(parent, list) or key in parent:
            del parent[key]
        if parent or isinstance(way[depth - 1], int):
            return


def changed_at(data: Data, way: Way, value: Json) -> dict[str, Any]:
    changed = copied(data)
    parent: Any = changed
    for step in way[:-1]:
        parent = parent[step]
    parent[way[-1]] = value
    return changed


def at(data: Data, way: Way) -> Any:
    value: Any = data
    for step in way:
        value = value[step]
    return value


def is_distribution(value: Json) -> bool:
    return isinstance(value, Mapping) and len(value) == 1 and next(iter(value)) in _MIDDLES


_MIDDLES = {
    "uniform": ("max", "min"),
    "exponential": ("mean",),
    "normal": ("mean",),
    "lognormal": ("median", "p99"),
    "choice": (),
}
"""By kind of distribution: the parameters that are tried in its place."""


def constants(value: Mapping[str, Any]) -> list[Any]:
    """What may stand for a distribution."""
    ((kind, parameters),) = value.items()
    if kind == "choice":
        return [choice["value"] for choice in parameters]
    return [parameters[name] for name in _MIDDLES[kind] if name in parameters]


def distributions(data: Data) -> list[Way]:
    """All distributions of the times of the cluster, of faults and of workloads."""
    found: list[Way] = []

    def search(value: Json, way: Way) -> None:
        if is_distribution(value):
            found.append(way)
        elif isinstance(value, Mapping):
            for key, inner in value.items():
                search(inner, (*way, key))
        elif isinstance(value, list):
            for index, inner in enumerate(value):
                search(inner, (*way, index))

    for section in ("timing", "chaos", "workloads"):
        if section in data["spec"]:
            search(data["spec"][section], ("spec", section))
    return found


def without_chance(data: Data) -> dict[str, Any] | None:
    """Without all random times of the cluster; None where there are none."""
    ways = [way for way in distributions(data) if way[:2] == ("spec", "timing")]
    return without(data, sorted({way[:3] for way in ways})) if ways else None


def with_single_times(data: Data) -> dict[str, Any] | None:
    """A preset of times as single times; None without one."""
    timing = data["spec"].get("timing")
    stated: dict[str, Any] = {timing_keys.PRESET: timing} if isinstance(timing, str) else dict(timing or {})
    preset = stated.pop(timing_keys.PRESET, None)
    if preset not in timing_keys.PRESETS:
        return None
    changed = copied(data)
    changed["spec"]["timing"] = {**copied(timing_keys.written(preset)), **copied(stated)}
    if not changed["spec"]["timing"]:
        del changed["spec"]["timing"]
    return changed
