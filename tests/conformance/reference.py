"""The rules of the kubelet and of taints once more, as plainly as they can be said, on the JSON of recorded cases.

Written from their description and independent of kemu's own code, so that :mod:`tests.conformance.test_reference` can
compare the two on cases of which no record exists. Slow and without any regard for order of magnitude.
"""

from __future__ import annotations

import ctypes
import math
from fractions import Fraction
from typing import Any

Json = dict[str, Any]
Reasons = list[Json]

_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}


def amount(text: str) -> Fraction:
    if text[-2:] in _BINARY:
        return Fraction(text[:-2]) * (1 << 10 * _BINARY[text[-2:]])
    if text[-1] in _DECIMAL:
        return Fraction(f"{text[:-1]}e{_DECIMAL[text[-1]]}")
    return Fraction(text)


def whole(resource: str, exact: Fraction) -> int:
    return math.ceil(exact * 1000) if resource == "cpu" else math.ceil(exact)


def of(amounts: Json | None, resource: str) -> Fraction:
    return amount(amounts[resource]) if amounts and resource in amounts else Fraction(0)


def is_pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def is_extended(name: str) -> bool:
    return "/" in name and "kubernetes.io/" not in name


# Pods ----------------------------------------------------------------------------------------------------------------


def containers(pod: Json) -> list[Json]:
    return pod["spec"].get("containers") or []


def init_containers(pod: Json) -> list[Json]:
    return pod["spec"].get("initContainers") or []


def is_sidecar(container: Json) -> bool:
    return bool(container.get("restartPolicy") == "Always")


def combined(pod: Json, requested: dict[int, Fraction]) -> Fraction:
    """``requested``: by identity of the container."""
    regular = sum((requested[id(one)] for one in containers(pod)), Fraction(0))
    sidecars, most = Fraction(0), Fraction(0)
    for one in init_containers(pod):
        if is_sidecar(one):
            sidecars += requested[id(one)]
            most = max(most, sidecars)
        else:
            most = max(most, sidecars + requested[id(one)])
    return max(regular + sidecars, most)


def spec_requests(pod: Json, resource: str) -> dict[int, Fraction]:
    return {
        id(one): of((one.get("resources") or {}).get("requests"), resource)
        for one in (*containers(pod), *init_containers(pod))
    }


def request(pod: Json, resource: str) -> Fraction:
    """For ranking and preemption."""
    if resource == "pods":
        return Fraction(1)
    level = pod["spec"].get("resources") or {}
    if any(is_pod_level(name) for kind in ("requests", "limits") for name in level.get(kind) or ()):
        found = of(level.get("requests"), resource)
    else:
        found = combined(pod, spec_requests(pod, resource))
    return found + of(pod["spec"].get("overhead"), resource) if found else found


def node_request(pod: Json, resource: str, *, running: bool) -> int:
    """For admission."""
    requested = spec_requests(pod, resource)
    status = pod.get("status") or {}
    infeasible = any(
        one["type"] == "PodResizePending" and one.get("reason") == "Infeasible"
        for one in status.get("conditions") or ()
    )
    if running:
        for container in containers(pod):
            for now in status.get("containerStatuses") or ():
                if now["name"] == container["name"] and "resources" in now:
                    real = max(
                        of(now["resources"].get("requests"), resource), of(now.get("allocatedResources"), resource)
                    )
                    requested[id(container)] = real if infeasible else max(real, requested[id(container)])
    found = combined(pod, requested)
    level = (pod["spec"].get("resources") or {}).get("requests") or {}
    if is_pod_level(resource) and resource in level:
        found = amount(level[resource])
    return whole(resource, found + of(pod["spec"].get("overhead"), resource))


def qos(pod: Json) -> str:
    stated = (pod.get("status") or {}).get("qosClass")
    if stated:
        return str(stated)
    parts = [pod["spec"]] if pod["spec"].get("resources") is not None else [*containers(pod), *init_containers(pod)]
    sums: dict[str, dict[str, Fraction]] = {"requests": {}, "limits": {}}
    complete = True
    for part in parts:
        resources = part.get("resources") or {}
        for kind, total in sums.items():
            for name in ("cpu", "memory"):
                if of(resources.get(kind), name) > 0:
                    total[name] = total.get(name, Fraction(0)) + of(resources[kind], name)
        if part is pod["spec"] and not resources.get("limits"):
            continue
        complete &= all(of(resources.get("limits"), name) > 0 for name in ("cpu", "memory"))
    if not sums["requests"] and not sums["limits"]:
        return "BestEffort"
    return "Guaranteed" if complete and sums["requests"] == sums["limits"] else "Burstable"


def notes(pod: Json) -> Json:
    return pod["metadata"].get("annotations") or {}


def is_static(pod: Json) -> bool:
    return bool(notes(pod).get("kubernetes.io/config.source", "api") != "api")


def is_critical(pod: Json) -> bool:
    mirror = "kubernetes.io/config.mirror" in notes(pod)
    return is_static(pod) or mirror or pod["spec"].get("priority", 0) >= 2_000_000_000


def preemptable(preemptor: Json, victim: Json) -> bool:
    if is_critical(preemptor) and not is_critical(victim):
        return True
    mine, its = preemptor["spec"].get("priority"), victim["spec"].get("priority")
    return mine is not None and its is not None and mine > its


# Preemption ----------------------------------------------------------------------------------------------------------


def preempt(pod: Json, reasons: Reasons, active: list[Json]) -> Json:
    """``remainingReasons``, ``error`` and the names of ``preempted``."""
    if not is_critical(pod):
        return {"remainingReasons": reasons, "preempted": [], "error": ""}
    others = [reason for reason in reasons if "predicate" in reason]
    if others:
        return {"remainingReasons": others, "preempted": [], "error": ""}
    needs = [
        (one["resource"], one.get("requested", 0) - (one.get("capacity", 0) - one.get("used", 0))) for one in reasons
    ]
    lists: dict[str, list[Json]] = {"BestEffort": [], "Burstable": [], "Guaranteed": []}
    for other in active:
        if preemptable(pod, other):
            lists[qos(other)].append(other)
    left = still(needs, [one for group in lists.values() for one in group])
    if left:
        named = "".join(f"(res: {name}, q: {quantity}), " for name, quantity in left)
        text = f"no set of running pods found to reclaim resources: [{named}]"
        return {"remainingReasons": [], "preempted": [], "error": text}
    best, burstable, guaranteed = lists.values()
    third = closest(guaranteed, still(needs, best + burstable))
    second = closest(burstable, still(needs, best + third))
    first = closest(best, still(needs, second + third))
    names = [victim["metadata"]["name"] for victim in first + second + third]
    return {"remainingReasons": [], "preempted": names, "error": ""}


def still(needs: list[tuple[str, int]], gone: list[Json]) -> list[tuple[str, int]]:
    left = [(name, need - sum(whole(name, request(pod, name)) for pod in gone)) for name, need in needs]
    return [(name, need) for name, need in left if need > 0]


def closest(pods: list[Json], needs: list[tuple[str, int]]) -> list[Json]:
    pods, chosen = list(pods), []
    while needs:
        distances = []
        for pod in pods:
            total = 0.0
            for name, need in needs:
                has = whole(name, request(pod, name))
                if need > has:
                    total += ((need - has) / need) * ((need - has) / need)
            distances.append(total)
        least = min(distances)
        # Of equal ones that of the smallest memory, then cpu, then the last.
        index = min(
            (index for index in range(len(pods)) if distances[index] == least),
            key=lambda index: (
                whole("memory", request(pods[index], "memory")),
                whole("cpu", request(pods[index], "cpu")),
                -index,
            ),
        )
        needs = still(needs, [pods[index]])
        chosen.append(pods[index])
        last = pods.pop()
        if index < len(pods):
            pods[index] = last
    return chosen


# Admission -----------------------------------------------------------------------------------------------------------


def failures(node: Json, labels: Json, pod: Json, others: list[Json], first_look: Json | None = None) -> Reasons:
    """The other resources in alphabetical order. ``first_look``: the node that decides which extended ones count."""
    found: Reasons = []
    allocatable = (node.get("status") or {}).get("allocatable") or {}
    places = whole("pods", of(allocatable, "pods"))
    if len(others) + 1 > places:
        found.append({"resource": "pods", "requested": 1, "used": len(others), "capacity": places})
    named = {name for one in (*containers(pod), *init_containers(pod)) for name in requested_names(one)}
    named |= {name for name in requested_names(pod["spec"]) if is_pod_level(name)}
    listed = allocatable if first_look is None else (first_look.get("status") or {}).get("allocatable") or {}
    named = {name for name in named if name in listed or not is_extended(name)} | {"cpu", "memory"}
    first = ["cpu", "memory", "ephemeral-storage"]
    for name in [*first, *sorted(named.difference(first))]:
        wanted = node_request(pod, name, running=False)
        used = sum(node_request(other, name, running=True) for other in others)
        capacity = whole(name, of(allocatable, name))
        if wanted > 0 and wanted > capacity - used:
            found.append({"resource": name, "requested": wanted, "used": used, "capacity": capacity})
    spec = pod["spec"]
    if not node_suits(spec, labels, node["metadata"]["name"]):
        found.append(unfit("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"))
    if spec.get("nodeName") not in (None, "", node["metadata"]["name"]):
        found.append(unfit("NodeName", "node(s) didn't match the requested node name"))
    held = [port for other in others for port in host_ports(other)]
    if any(clash(mine, its) for mine in host_ports(pod) for its in held):
        found.append(unfit("NodePorts", "node(s) didn't have free ports for the requested pod ports"))
    taints = [one for one in (node.get("spec") or {}).get("taints") or () if one["effect"] == "NoExecute"]
    tolerations = spec.get("tolerations") or []
    if not is_static(pod) and not all(any(tolerates(one, taint) for one in tolerations) for taint in taints):
        found.append(unfit("TaintToleration", "node(s) had taints that the pod didn't tolerate"))
    return found


def requested_names(part: Json) -> list[str]:
    return list((part.get("resources") or {}).get("requests") or ())


def unfit(predicate: str, text: str) -> Json:
    return {"predicate": predicate, "desc": text}


def node_suits(spec: Json, labels: Json, name: str) -> bool:
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    affinity = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    if affinity is None:
        return True
    return any(term_suits(term, labels, name) for term in affinity.get("nodeSelectorTerms") or ())


def term_suits(term: Json, labels: Json, name: str) -> bool:
    expressions, fields = term.get("matchExpressions") or [], term.get("matchFields") or []
    if not expressions and not fields:
        return False
    return all(expression_suits(one, labels) for one in expressions) and all(
        (one["values"] == [name]) == (one["operator"] == "In") for one in fields
    )


def expression_suits(expression: Json, labels: Json) -> bool:
    here: str | None = labels.get(expression["key"])
    values: list[str] = expression.get("values") or []
    operator = expression["operator"]
    if operator == "In":
        return here in values
    if operator == "NotIn":
        return here not in values
    if operator in ("Exists", "DoesNotExist"):
        return bool((here is not None) == (operator == "Exists"))
    if here is None or not here.isdigit() or not values[0].isdigit():
        return False
    return int(here) > int(values[0]) if operator == "Gt" else int(here) < int(values[0])


def host_ports(pod: Json) -> list[tuple[str, str, int]]:
    return [
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])
        for container in (*containers(pod), *filter(is_sidecar, init_containers(pod)))
        for port in container.get("ports") or ()
        if port.get("hostPort", 0) > 0
    ]


def clash(mine: tuple[str, str, int], its: tuple[str, str, int]) -> bool:
    return mine[1:] == its[1:] and (mine[0] == its[0] or "0.0.0.0" in (mine[0], its[0]))


def tolerates(toleration: Json, taint: Json) -> bool:
    for field in ("effect", "key"):
        if toleration.get(field) and toleration[field] != taint[field]:
            return False
    if toleration.get("operator") == "Exists":
        return True
    same = toleration.get("value", "") == taint.get("value", "")
    return bool(same and toleration.get("operator", "") in ("", "Equal"))


# Ranking -------------------------------------------------------------------------------------------------------------


def ranks_before(signal: str, layout: Json, first: Json, second: Json, stats: Json) -> int:
    """Negative: ``first`` is evicted sooner."""
    here, there = (stats.get(pod["metadata"].get("uid", "")) for pod in (first, second))
    unknown = 0 if here is not None and there is not None else (here is not None) - (there is not None)
    by_priority = first["spec"].get("priority", 0) - second["spec"].get("priority", 0)
    if signal.startswith("pid"):
        if by_priority or here is None or there is None:
            return by_priority or unknown
        return number(there, "process_stats", "process_count") - number(here, "process_stats", "process_count")
    if here is None or there is None:
        return unknown or by_priority
    (exceeds, mine), (its_exceeds, its) = (
        excess(signal, layout, pod, one) for pod, one in ((first, here), (second, there))
    )
    return (its_exceeds - exceeds) or by_priority or (mine < its) - (mine > its)


def number(data: Json, part: str, name: str) -> int:
    return int((data.get(part) or {}).get(name) or 0)


def excess(signal: str, layout: Json, pod: Json, stats: Json) -> tuple[bool, Fraction]:
    """Whether the usage exceeds the request, and by how much."""
    if "emory" in signal:
        beyond = number(stats, "memory", "workingSetBytes") - request(pod, "memory")
        return beyond > 0, beyond
    filesystem, kind = signal.split(".")
    split = bool(layout.get("dedicatedContainerFs"))
    dedicated = bool(layout.get("dedicatedImageFs")) and not split
    layers = filesystem != "nodefs" if dedicated else not (split and filesystem == "imagefs")
    logs = filesystem == "nodefs" if dedicated else layers
    name = "usedBytes" if kind == "available" else "inodesUsed"
    used = 0
    for container in stats.get("containers") or ():
        used += number(container, "rootfs", name) * layers + number(container, "logs", name) * logs
    for volume in pod["spec"].get("volumes") or ():
        local = any(kind in volume for kind in ("hostPath", "configMap", "gitRepo"))
        if local or ("emptyDir" in volume and not (volume["emptyDir"] or {}).get("medium")):
            found: Json = next((one for one in stats.get("volume") or () if one["name"] == volume["name"]), {})
            used += int(found.get(name) or 0) * logs
    asked = request(pod, "ephemeral-storage")
    return used > (asked if kind == "available" else 0), used - asked


# Thresholds ----------------------------------------------------------------------------------------------------------


def threshold_amount(text: str, capacity: int) -> int:
    """What the statement of a threshold comes to."""
    if not text.endswith("%"):
        return math.ceil(amount(text))
    fraction = ctypes.c_float(ctypes.c_float(float(text.rstrip("%"))).value / 100).value
    return int(capacity * fraction)


# Taints --------------------------------------------------------------------------------------------------------------


def stays_ms(tolerations: list[Json], taints: list[Json]) -> float:
    """How long a pod may stay from now on."""
    least = math.inf
    for taint in taints:
        first = next((one for one in tolerations if tolerates(one, taint)), None)
        if first is None:
            return -1
        if first.get("tolerationSeconds") is not None:
            least = min(least, max(0, first["tolerationSeconds"] * 1000))
    return least


def deletions(case: Json) -> list[tuple[int, str]]:
    """Each pod by itself: the state of its node over time decides."""
    found: list[tuple[int, str]] = []
    arrivals = [(0, pod) for pod in case["pods"] or ()]
    arrivals += [(one["atMs"], one["newPod"]) for one in case.get("events") or () if one["do"] == "addPod"]
    for at_ms, pod in arrivals:
        end = deletion(case, at_ms, pod)
        if end is not None:
            found.append((end, pod["metadata"]["name"]))
    return sorted(found)


def deletion(case: Json, born_ms: int, pod: Json) -> int | None:
    name, node = pod["metadata"]["name"], pod["spec"].get("nodeName")
    if not node:
        return None
    known: Json = {one["metadata"]["name"]: (one.get("spec") or {}).get("taints") or [] for one in case["nodes"] or ()}
    exists = node in known
    taints = [one for one in known.get(node, ()) if one["effect"] == "NoExecute"]
    tolerations = pod["spec"].get("tolerations") or []
    due: float = math.inf

    def judge(now_ms: int) -> None:
        nonlocal due
        stays = stays_ms(tolerations, taints) if taints else math.inf
        if stays < 0:
            due = now_ms
        elif stays == math.inf:
            due = math.inf
        elif due == math.inf:
            due = now_ms + stays

    if born_ms == 0:
        judge(0)
    for event in sorted(case.get("events") or (), key=lambda one: one["atMs"]):
        at_ms = event["atMs"]
        if born_ms <= at_ms and due <= at_ms:
            break
        if event["do"] == "addPod" and event["newPod"] is pod:
            judge(at_ms)
        elif event["do"] == "deletePod" and event["pod"] == name and at_ms >= born_ms:
            return None
        elif event["do"] == "setTolerations" and event["pod"] == name and at_ms >= born_ms:
            changed, tolerations = event.get("tolerations") or [], tolerations
            if changed != tolerations:
                tolerations = changed
                if taints:
                    judge(at_ms)
        elif event["do"] == "setTaints" and event["node"] == node and exists:
            changed = [one for one in event.get("taints") or () if one["effect"] == "NoExecute"]
            if changed != taints:
                taints = changed
                if at_ms >= born_ms:
                    judge(at_ms)
        elif event["do"] == "deleteNode" and event["node"] == node:
            exists, taints = False, []
    return int(due) if due <= case["horizonMs"] else None
