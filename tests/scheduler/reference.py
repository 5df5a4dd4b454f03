"""A second kube-scheduler, as plain as can be: the yardstick for the columns, caches and shortcuts of the real one.

It answers the same recorded questions as :mod:`kemu.lab.conformance.scheduler.decisions`, and shares no code with kemu:
it works on the JSON of the case, asks one node at a time and walks over all pods for every question. Follows the
filters, scores and the preemption of v1.36. The public function is :func:`answer`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

Json = dict[str, Any]

UNSCHEDULABLE, UNRESOLVABLE = "Unschedulable", "UnschedulableAndUnresolvable"
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
MEBIBYTE = 1024 * 1024
_DEFAULTS = {"cpu": Fraction(1, 10), "memory": Fraction(200 * MEBIBYTE)}
_DEFAULT_WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesFit": 1,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
_UNITS = {letter: Fraction(1000) ** power for power, letter in enumerate(["n", "u", "m", "", *"kMGTPE"], start=-3)}
_UNITS |= {f"{letter}i": Fraction(1024**power) for power, letter in enumerate("KMGTPE", start=1)}


class Status(NamedTuple):
    plugin: str
    code: str
    reasons: tuple[str, ...]


# Quantities and requests --------------------------------------------------------------------------------------------


def quantity(text: str) -> Fraction:
    number = text.rstrip("".join(sorted({letter for unit in _UNITS for letter in unit})))
    suffix = text[len(number) :]
    if "e" in number:
        digits, exponent = number.split("e")
        return Fraction(digits) * Fraction(10 ** int(exponent))
    return Fraction(number) * _UNITS[suffix]


def whole(name: str, amount: Fraction) -> int:
    return math.ceil(amount * 1000) if name == "cpu" else math.ceil(amount)


def amounts(resources: Json | None) -> dict[str, Fraction]:
    return {name: quantity(text) for name, text in (resources or {}).items()}


def plus(first: dict[str, Fraction], second: dict[str, Fraction]) -> dict[str, Fraction]:
    return {name: first.get(name, Fraction(0)) + second.get(name, Fraction(0)) for name in first | second}


def most(*lists: dict[str, Fraction]) -> dict[str, Fraction]:
    return {name: max(one[name] for one in lists if name in one) for one in lists for name in one}


def is_sidecar(container: Json) -> bool:
    return container.get("restartPolicy") == "Always"


def is_pod_level(name: str) -> bool:
    return name in ("cpu", "memory") or name.startswith("hugepages-")


def total_request(
    pod: Json, *, on_node: bool = False, pod_level: bool = True, missing: dict[str, Fraction] | None = None
) -> dict[str, Fraction]:
    """``missing``: what a container counts for a resource that it has no entry for."""
    spec, status = pod["spec"], pod.get("status", {})
    seen_containers = [*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())]
    statuses = {one["name"]: one for one in seen_containers}
    pending: Json = next((one for one in status.get("conditions", ()) if one["type"] == "PodResizePending"), {})

    def request(container: Json, counts_status: bool) -> dict[str, Fraction]:
        found = amounts(container.get("resources", {}).get("requests"))
        seen = statuses.get(container["name"], {})
        if on_node and counts_status and "resources" in seen:
            now = (amounts(seen["resources"].get("requests")), amounts(seen.get("allocatedResources")))
            found = most(*now) if pending.get("reason") == "Infeasible" else most(found, *now)
        return (missing or {}) | found

    total: dict[str, Fraction] = {}
    for container in spec["containers"]:
        total = plus(total, request(container, True))
    peaks, sidecars = [], dict[str, Fraction]()
    for container in spec.get("initContainers", ()):
        if is_sidecar(container):
            total = plus(total, request(container, True))
            sidecars = plus(sidecars, request(container, True))
            peaks.append(sidecars)
        else:
            peaks.append(plus(request(container, False), sidecars))
    total = most(total, *peaks)
    if pod_level:
        own = amounts(spec.get("resources", {}).get("requests"))
        if on_node and "resources" in status:
            now = (amounts(status["resources"].get("requests")), amounts(status.get("allocatedResources")))
            most_now = most(*now) if pending.get("reason") == "Infeasible" else most(own, *now)
            own = {name: most_now.get(name, Fraction(0)) for name in own}
        total = total | {name: amount for name, amount in own.items() if is_pod_level(name)}
    return plus(total, amounts(spec.get("overhead")))


def plain_request(pod: Json, *, on_node: bool = False, pod_level: bool = True) -> dict[str, int]:
    total = total_request(pod, on_node=on_node, pod_level=pod_level)
    return {name: whole(name, amount) for name, amount in total.items()}


def non_zero_request(pod: Json, *, on_node: bool = False, pod_level: bool = True) -> dict[str, int]:
    missing = _DEFAULTS
    if pod_level and any(is_pod_level(name) for name in pod["spec"].get("resources", {}).get("requests", ())):
        asked = total_request(pod, on_node=on_node)
        missing = {name: amount for name, amount in _DEFAULTS.items() if name not in asked}
    total = total_request(pod, on_node=on_node, pod_level=pod_level, missing=missing)
    return {name: whole(name, amount) for name, amount in total.items()}


# Labels, selectors, taints ------------------------------------------------------------------------------------------


def labels_of(thing: Json) -> dict[str, str]:
    labels: dict[str, str] = thing["metadata"].get("labels", {})
    return labels


def integer(text: str) -> int | None:
    try:
        value = int(text, 10) if text.lstrip("+-").isdecimal() and text.isascii() else None
    except ValueError:
        return None
    return value if value is not None and -(2**63) <= value < 2**63 else None


def holds(requirement: Json, labels: dict[str, str]) -> bool:
    key, values = requirement["key"], requirement.get("values", [])
    match requirement["operator"]:
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case operator:
            left, right = integer(labels.get(key, "")), integer(values[0])
            return left is not None and right is not None and (left > right if operator == "Gt" else left < right)


def requirements(selector: Json) -> list[Json]:
    labels = selector.get("matchLabels", {})
    exact: list[Json] = [{"key": key, "operator": "In", "values": [labels[key]]} for key in labels]
    exact += selector.get("matchExpressions", [])
    return exact


def selects(selector: Json | None, labels: dict[str, str]) -> bool:
    """An absent selector selects nothing, an empty one everything."""
    return selector is not None and all(holds(one, labels) for one in requirements(selector))


def node_term_matches(term: Json, node: Json) -> bool:
    expressions, fields = term.get("matchExpressions", []), term.get("matchFields", [])
    if not expressions and not fields:
        return False
    name = {"metadata.name": node["metadata"]["name"]}
    return all(holds(one, labels_of(node)) for one in expressions) and all(holds(one, name) for one in fields)


def node_selector_matches(selector: Json, node: Json) -> bool:
    return any(node_term_matches(term, node) for term in selector["nodeSelectorTerms"])


def required_node_affinity(pod: Json) -> Json | None:
    affinity: Json = pod["spec"].get("affinity", {}).get("nodeAffinity", {})
    return affinity.get("requiredDuringSchedulingIgnoredDuringExecution")


def matches_node_affinity(pod: Json, node: Json) -> bool:
    labels = labels_of(node)
    if any(labels.get(key) != value for key, value in pod["spec"].get("nodeSelector", {}).items()):
        return False
    required = required_node_affinity(pod)
    return required is None or node_selector_matches(required, node)


def tolerated(taint: Json, tolerations: Iterable[Json]) -> bool:
    for one in tolerations:
        if one.get("effect", "") not in ("", taint["effect"]) or one.get("key", "") not in ("", taint["key"]):
            continue
        if one.get("operator") == "Exists":
            return True
        if one.get("operator", "Equal") == "Equal" and one.get("value", "") == taint.get("value", ""):
            return True
    return False


def tolerates_node(pod: Json, node: Json) -> bool:
    forbidding = [one for one in node.get("spec", {}).get("taints", ()) if one["effect"] in ("NoSchedule", "NoExecute")]
    return all(tolerated(taint, pod["spec"].get("tolerations", ())) for taint in forbidding)


def host_ports(pod: Json) -> list[tuple[str, str, int]]:
    spec = pod["spec"]
    containers = [*spec["containers"], *(one for one in spec.get("initContainers", ()) if is_sidecar(one))]
    return [
        (port.get("hostIP") or "0.0.0.0", port.get("protocol", "TCP"), port["hostPort"])
        for container in containers
        for port in container.get("ports", ())
        if port.get("hostPort", 0) > 0
    ]


# Terms --------------------------------------------------------------------------------------------------------------


def affinity_terms(pod: Json, kind: str) -> list[Json]:
    found: list[Json] = (
        pod["spec"].get("affinity", {}).get(kind, {}).get("requiredDuringSchedulingIgnoredDuringExecution", [])
    )
    return found


def preferred_terms(pod: Json) -> list[tuple[int, Json]]:
    """With their weights, those of anti-affinity negative."""
    return [
        (sign * one["weight"], one["podAffinityTerm"])
        for kind, sign in (("podAffinity", 1), ("podAntiAffinity", -1))
        for one in pod["spec"]
        .get("affinity", {})
        .get(kind, {})
        .get("preferredDuringSchedulingIgnoredDuringExecution", [])
    ]


class Place(NamedTuple):
    """A pod that is counted on a node."""

    pod: Json
    node: Json


class World:
    """A case, and the changes that a simulation made to one node."""

    def __init__(self, case: Json) -> None:
        self.case = case
        self.pod: Json = case["pod"]
        self.nodes: list[Json] = case["nodes"]
        self.by_name = {node["metadata"]["name"]: node for node in self.nodes}
        self.pods: dict[str, list[Json]] = {name: [] for name in self.by_name}
        for pod in case.get("pods", ()):
            if pod["spec"]["nodeName"] in self.pods:
                self.pods[pod["spec"]["nodeName"]].append(pod)
        self.ports = {name: {port for pod in there for port in host_ports(pod)} for name, there in self.pods.items()}
        self.changes: list[tuple[int, Place]] = []
        self.namespaces = {one["metadata"]["name"]: labels_of(one) for one in case.get("namespaces", ())}
        profile = case.get("profile") or {}
        self.args: dict[str, Json] = {one["name"]: one.get("args", {}) for one in profile.get("pluginConfig", ())}
        score = profile.get("plugins", {}).get("score", {})
        off = {one["name"] for one in score.get("disabled", ())}
        self.weights = {name: weight for name, weight in _DEFAULT_WEIGHTS.items() if not off & {"*", name}}
        self.weights |= {one["name"]: one.get("weight") or 1 for one in score.get("enabled", ())}
        self.base = self

    def changed(self, amount: int, pod: Json, node: Json) -> World:
        twin = World.__new__(World)
        twin.__dict__.update(self.__dict__)
        name = node["metadata"]["name"]
        there = [one for one in self.pods[name] if one is not pod]
        twin.pods = {**self.pods, name: [*there, pod] if amount > 0 else there}
        # A port is free when one of its pods goes, although another may hold it too.
        ports, own = self.ports[name], set(host_ports(pod))
        twin.ports = {**self.ports, name: ports | own if amount > 0 else ports - own}
        twin.changes = [*self.changes, (amount, Place(pod, node))]
        return twin

    def places(self) -> Iterable[Place]:
        for node in self.nodes:
            for pod in self.pods[node["metadata"]["name"]]:
                yield Place(pod, node)

    # Inter-pod affinity ---------------------------------------------------------------------------------------------

    def own_term_selects(self, term: Json, other: Json) -> bool:
        """Whether a term of the pending pod is about another pod."""
        namespace, selector = other["metadata"]["namespace"], term.get("namespaceSelector")
        if not term.get("namespaces") and selector is None:
            right = namespace == self.pod["metadata"]["namespace"]
        else:
            right = namespace in term.get("namespaces", ())
            if selector is not None:
                listed = namespace in self.namespaces and selects(selector, self.namespaces[namespace])
                # v1.36 compares the selector once more, with no labels.
                right = right or listed or selects(selector, {})
        return right and selects(term.get("labelSelector"), labels_of(other))

    def term_selects_pending(self, term: Json, owner: Json) -> bool:
        """Whether a term of another pod is about the pending pod."""
        namespace, selector = self.pod["metadata"]["namespace"], term.get("namespaceSelector")
        if not term.get("namespaces") and selector is None:
            right = namespace == owner["metadata"]["namespace"]
        else:
            right = namespace in term.get("namespaces", ()) or selects(selector, self.namespaces.get(namespace, {}))
        return right and selects(term.get("labelSelector"), labels_of(self.pod))

    def skips_pod_affinity(self) -> bool:
        if affinity_terms(self.pod, "podAffinity") or affinity_terms(self.pod, "podAntiAffinity"):
            return False
        return not any(
            term["topologyKey"] in labels_of(place.node) and self.term_selects_pending(term, place.pod)
            for place in self.base.places()
            for term in affinity_terms(place.pod, "podAntiAffinity")
        )

    def pod_affinity(self, node: Json) -> Status | None:
        if self.skips_pod_affinity():
            return None
        labels = labels_of(node)

        def together(key: str, place: Place) -> bool:
            """Whether a pod stands in the node's domain."""
            return key in labels and labels_of(place.node).get(key) == labels[key]

        wanted = affinity_terms(self.pod, "podAffinity")
        if wanted:
            friends = [one for one in self.places() if all(self.own_term_selects(term, one.pod) for term in wanted)]
            keys = [term["topologyKey"] for term in wanted]
            satisfied = all(any(together(key, one) for one in friends) for key in keys)
            known = any(key in labels_of(one.node) for one in friends for key in keys)
            alone = not known and all(self.own_term_selects(term, self.pod) for term in wanted)
            if not all(key in labels for key in keys) or not (satisfied or alone):
                return Status("InterPodAffinity", UNRESOLVABLE, ("node(s) didn't match pod affinity rules",))
        for term in affinity_terms(self.pod, "podAntiAffinity"):
            key = term["topologyKey"]
            if any(together(key, one) and self.own_term_selects(term, one.pod) for one in self.places()):
                return Status("InterPodAffinity", UNSCHEDULABLE, ("node(s) didn't match pod anti-affinity rules",))
        for one in self.places():
            for term in affinity_terms(one.pod, "podAntiAffinity"):
                if together(term["topologyKey"], one) and self.term_selects_pending(term, one.pod):
                    reason = "node(s) didn't satisfy existing pods anti-affinity rules"
                    return Status("InterPodAffinity", UNSCHEDULABLE, (reason,))
        return None

    def pod_affinity_scores(self, feasible: list[Json]) -> list[int] | None:
        args = self.args.get("InterPodAffinity", {})
        own = preferred_terms(self.pod)
        if args.get("ignorePreferredTermsOfExistingPods") and not own:
            return None
        hard = args.get("hardPodAffinityWeight", 1)
        worth: dict[tuple[str, str], int] = {}
        for one in self.places():
            terms = [(weight, term) for weight, term in own if self.own_term_selects(term, one.pod)]
            theirs = preferred_terms(one.pod)
            theirs += [(hard, term) for term in affinity_terms(one.pod, "podAffinity") if hard]
            terms += [(weight, term) for weight, term in theirs if self.term_selects_pending(term, one.pod)]
            for weight, term in terms:
                if term["topologyKey"] in labels_of(one.node):
                    domain = term["topologyKey"], labels_of(one.node)[term["topologyKey"]]
                    worth[domain] = worth.get(domain, 0) + weight
        if not worth:
            return None
        raw = [sum(worth.get(label, 0) for label in labels_of(node).items()) for node in feasible]
        lowest, highest = min(raw), max(raw)
        if lowest == highest:
            return [0] * len(raw)
        return [int(100.0 * ((score - lowest) / (highest - lowest))) for score in raw]

    # Topology spread ------------------------------------------------------------------------------------------------

    def constraints(self, when: str) -> tuple[list[Json], bool]:
        """The constraints that count, and whether nodes must have all of their keys to take part."""
        own = self.pod["spec"].get("topologySpreadConstraints", ())
        args = self.args.get("PodTopologySpread", {})
        system = args.get("defaultingType", "System") == "System"
        if own:
            return [one for one in own if one["whenUnsatisfiable"] == when], True
        defaults = args.get("defaultConstraints", [])
        if system:
            soft = {"whenUnsatisfiable": "ScheduleAnyway"}
            defaults = [{"topologyKey": HOSTNAME, "maxSkew": 3, **soft}, {"topologyKey": ZONE, "maxSkew": 5, **soft}]
        selector = self.default_selector()
        if not requirements(selector):
            return [], not system
        return [{**one, "labelSelector": selector} for one in defaults if one["whenUnsatisfiable"] == when], not system

    def default_selector(self) -> Json:
        namespace, labels = self.pod["metadata"]["namespace"], labels_of(self.pod)
        exact: dict[str, str] = {}
        for service in self.case.get("services", ()):
            wanted = service.get("spec", {}).get("selector", {})
            if service["metadata"]["namespace"] == namespace and wanted and wanted.items() <= labels.items():
                exact |= wanted
        added: list[Json] = []
        owners = [one for one in self.pod["metadata"].get("ownerReferences", ()) if one.get("controller")]
        owner: Json = owners[0] if owners else {}
        kinds = {("v1", "ReplicationController"): "replicationControllers", ("apps/v1", "ReplicaSet"): "replicaSets"}
        kinds["apps/v1", "StatefulSet"] = "statefulSets"
        key = kinds.get((owner.get("apiVersion", ""), owner.get("kind", "")), "")
        for one in self.case.get(key, ()):
            if (one["metadata"]["namespace"], one["metadata"]["name"]) == (namespace, owner["name"]):
                if key == "replicationControllers":
                    exact |= one["spec"].get("selector", {})
                else:
                    added += requirements(one["spec"].get("selector", {}))
        return {"matchExpressions": requirements({"matchLabels": exact}) + added}

    def counts_for(self, constraint: Json, node: Json) -> bool:
        if constraint.get("nodeAffinityPolicy", "Honor") == "Honor" and not matches_node_affinity(self.pod, node):
            return False
        return constraint.get("nodeTaintsPolicy", "Ignore") == "Ignore" or tolerates_node(self.pod, node)

    def matching_pods(self, constraint: Json, node: Json) -> int:
        selector = constraint.get("labelSelector")
        if selector is None or not requirements(selector):
            return 0
        return sum(
            pod["metadata"]["namespace"] == self.pod["metadata"]["namespace"]
            and "deletionTimestamp" not in pod["metadata"]
            and selects(selector, labels_of(pod))
            for pod in self.base.pods[node["metadata"]["name"]]
        )

    def spread(self, node: Json) -> Status | None:
        constraints, _ = self.constraints("DoNotSchedule")
        keys = [one["topologyKey"] for one in constraints]
        complete = [one for one in self.nodes if all(key in labels_of(one) for key in keys)]
        for one in constraints:
            key = one["topologyKey"]
            if key not in labels_of(node):
                reason = "node(s) didn't match pod topology spread constraints (missing required label)"
                return Status("PodTopologySpread", UNRESOLVABLE, (reason,))
            counts: dict[str, int] = {}
            for other in complete:
                if self.counts_for(one, other):
                    value = labels_of(other)[key]
                    counts[value] = counts.get(value, 0) + self.matching_pods(one, other)
            for amount, place in self.changes:
                # A simulation counts pods that are being deleted, and an empty selector selects everybody.
                if (
                    place.pod["metadata"]["namespace"] == self.pod["metadata"]["namespace"]
                    and place.node in complete
                    and self.counts_for(one, place.node)
                    and selects(one.get("labelSelector"), labels_of(place.pod))
                ):
                    counts[labels_of(place.node)[key]] += amount
            fewest = min(counts.values()) if len(counts) >= one.get("minDomains", 1) else 0
            itself = selects(one.get("labelSelector"), labels_of(self.pod))
            if counts.get(labels_of(node)[key], 0) + itself - fewest > one["maxSkew"]:
                reason = "node(s) didn't match pod topology spread constraints"
                return Status("PodTopologySpread", UNSCHEDULABLE, (reason,))
        return None

    def spread_scores(self, feasible: list[Json]) -> list[int] | None:
        constraints, need_all = self.constraints("ScheduleAnyway")
        if not constraints:
            return None

        def takes_part(node: Json) -> bool:
            return not need_all or all(one["topologyKey"] in labels_of(node) for one in constraints)

        candidates = [node for node in feasible if takes_part(node)]
        raw = [0.0] * len(feasible)
        for one in constraints:
            key = one["topologyKey"]
            domains = {labels_of(node).get(key, "") for node in candidates}
            weight = math.log((len(candidates) if key == HOSTNAME else len(domains)) + 2)
            for number, node in enumerate(feasible):
                if key not in labels_of(node):
                    continue
                if key == HOSTNAME:
                    count = self.matching_pods(one, node)
                else:
                    count = sum(
                        self.matching_pods(one, other)
                        for other in self.nodes
                        if takes_part(other) and self.counts_for(one, other)
                        if labels_of(other).get(key, "") == labels_of(node)[key]
                    )
                raw[number] += count * weight + (one["maxSkew"] - 1)
        rounded = [math.floor(score + 0.5) for score in raw]
        counted = [score for score, node in zip(rounded, feasible, strict=True) if takes_part(node)]
        highest, lowest = max(counted, default=0), min(counted, default=0)
        return [
            0 if not takes_part(node) else 100 if highest == 0 else 100 * (highest + lowest - score) // highest
            for score, node in zip(rounded, feasible, strict=True)
        ]

    # Resources ------------------------------------------------------------------------------------------------------

    def allocatable(self, node: Json) -> dict[str, int]:
        return {name: whole(name, amount) for name, amount in amounts(node["status"].get("allocatable")).items()}

    def requested(self, node: Json) -> dict[str, int]:
        total: dict[str, int] = {}
        for pod in self.pods[node["metadata"]["name"]]:
            for name, amount in plain_request(pod, on_node=True).items():
                total[name] = total.get(name, 0) + amount
        return total

    def fit(self, node: Json) -> Status | None:
        allocatable, requested = self.allocatable(node), self.requested(node)
        args = self.args.get("NodeResourcesFit", {})
        reasons, unresolvable = [], False
        if len(self.pods[node["metadata"]["name"]]) + 1 > allocatable.get("pods", 0):
            reasons.append("Too many pods")
        for name, amount in plain_request(self.pod).items():
            group = name.partition("/")[0]
            ignored = name in args.get("ignoredResources", ()) or group in args.get("ignoredResourceGroups", ())
            if ignored and "/" in name and "kubernetes.io/" not in name:
                continue
            if amount > 0 and amount > allocatable.get(name, 0) - requested.get(name, 0):
                reasons.append(f"Insufficient {name}")
                unresolvable = unresolvable or amount > allocatable.get(name, 0)
        code = UNRESOLVABLE if unresolvable else UNSCHEDULABLE
        return Status("NodeResourcesFit", code, tuple(sorted(reasons))) if reasons else None

    def counted(self, node: Json, entries: list[Json] | None, *, non_zero: bool) -> list[tuple[int, int, int, int]]:
        """(allocatable, requested, request of the pending pod, weight) of the resources that count in a score."""
        listed = [(one["name"], one.get("weight") or 1) for one in entries or ()] or [("cpu", 1), ("memory", 1)]
        own = plain_request(self.pod, pod_level=not non_zero)
        own_non_zero = non_zero_request(self.pod, pod_level=False)
        allocatable, requested = self.allocatable(node), self.requested(node)
        found = []
        for name, weight in listed:
            amount, used = own.get(name, 0), requested.get(name, 0)
            if non_zero and name in ("cpu", "memory"):
                amount = own_non_zero.get(name, 0)
                there = self.pods[node["metadata"]["name"]]
                used = sum(non_zero_request(pod, on_node=True).get(name, 0) for pod in there)
            scalar = name not in ("cpu", "memory", "ephemeral-storage")
            if allocatable.get(name, 0) and (amount or not scalar):
                found.append((allocatable[name], used, amount, weight))
        return found

    def fit_score(self, node: Json) -> int:
        strategy = self.args.get("NodeResourcesFit", {}).get("scoringStrategy", {})
        total = weights = 0
        for allocatable, used, amount, weight in self.counted(node, strategy.get("resources"), non_zero=True):
            requested = used + amount
            match strategy.get("type", "LeastAllocated"):
                case "LeastAllocated":
                    score = 0 if requested > allocatable else (allocatable - requested) * 100 // allocatable
                case "MostAllocated":
                    score = min(requested, allocatable) * 100 // allocatable
                case _:
                    utilization = 100 if requested > allocatable else requested * 100 // allocatable
                    score = on_shape(strategy["requestedToCapacityRatio"]["shape"], utilization)
                    if score == 0:
                        continue
            total += score * weight
            weights += weight
        if not weights:
            return 0
        if strategy.get("type") == "RequestedToCapacityRatio":
            return math.floor(Fraction(total, weights) + Fraction(1, 2))
        return total // weights

    def balance_scores(self, feasible: list[Json]) -> list[int] | None:
        entries = self.args.get("NodeResourcesBalancedAllocation", {}).get("resources")
        names = [one["name"] for one in entries or ()] or ["cpu", "memory"]
        own = plain_request(self.pod)
        if not any(own.get(name, 0) for name in names):
            return None
        scores = []
        for node in feasible:
            counted = self.counted(node, entries, non_zero=False)
            gain = 50 + balance([(used + amount, top) for top, used, amount, _ in counted])
            gain -= balance([(used, top) for top, used, _, _ in counted])
            scores.append(50 + int(gain / 2))
        return scores

    # The other filters and scores -----------------------------------------------------------------------------------

    def local(self, node: Json) -> Status | None:
        """The filters that come before those above."""
        spec, own = node.get("spec", {}), self.pod["spec"]
        cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
        if spec.get("unschedulable") and not tolerated(cordon, own.get("tolerations", ())):
            return Status("NodeUnschedulable", UNRESOLVABLE, ("node(s) were unschedulable",))
        if own.get("nodeName", "") not in ("", node["metadata"]["name"]):
            return Status("NodeName", UNRESOLVABLE, ("node(s) didn't match the requested node name",))
        if not tolerates_node(self.pod, node):
            return Status("TaintToleration", UNRESOLVABLE, ("node(s) had untolerated taint(s)",))
        added = self.args.get("NodeAffinity", {}).get("addedAffinity", {})
        enforced = added.get("requiredDuringSchedulingIgnoredDuringExecution")
        if enforced is not None and not node_selector_matches(enforced, node):
            return Status("NodeAffinity", UNRESOLVABLE, ("node(s) didn't match scheduler-enforced node affinity",))
        if not matches_node_affinity(self.pod, node):
            return Status("NodeAffinity", UNRESOLVABLE, ("node(s) didn't match Pod's node affinity/selector",))
        taken = self.ports[node["metadata"]["name"]]
        for address, protocol, number in host_ports(self.pod):
            for other, *rest in taken:
                if rest == [protocol, number] and (address == other or "0.0.0.0" in (address, other)):
                    reason = "node(s) didn't have free ports for the requested pod ports"
                    return Status("NodePorts", UNSCHEDULABLE, (reason,))
        return None

    def taint_scores(self, feasible: list[Json]) -> list[int]:
        discouraging = "PreferNoSchedule"
        tolerations = self.pod["spec"].get("tolerations", ())
        counting = [one for one in tolerations if one.get("effect", "") in ("", discouraging)]
        raw = [
            sum(
                one["effect"] == discouraging and not tolerated(one, counting)
                for one in node.get("spec", {}).get("taints", ())
            )
            for node in feasible
        ]
        return [100 - 100 * score // max(raw) if max(raw) else 100 for score in raw]

    def node_affinity_scores(self, feasible: list[Json]) -> list[int] | None:
        key = "preferredDuringSchedulingIgnoredDuringExecution"
        terms = list(self.args.get("NodeAffinity", {}).get("addedAffinity", {}).get(key, ()))
        terms += self.pod["spec"].get("affinity", {}).get("nodeAffinity", {}).get(key, ())
        if not terms:
            return None
        raw = [sum(one["weight"] for one in terms if node_term_matches(one["preference"], node)) for node in feasible]
        return [100 * score // max(raw) if max(raw) else score for score in raw]

    def image_scores(self, feasible: list[Json]) -> list[int] | None:
        spec = self.pod["spec"]
        containers = [*spec.get("initContainers", ()), *spec["containers"]]
        images = [one.get("image", "") for one in containers]
        images += [one["image"].get("reference", "") for one in spec.get("volumes", ()) if "image" in one]
        images = [one if one.rfind(":") > one.rfind("/") else f"{one}:latest" for one in images]
        sizes: dict[str, int] = {}
        holders: dict[str, list[str]] = {}
        for node in self.nodes:
            for image in node["status"].get("images", ()):
                for name in image.get("names", ()):
                    sizes.setdefault(name, image.get("sizeBytes", 0))
                    if node["metadata"]["name"] not in holders.setdefault(name, []):
                        holders[name].append(node["metadata"]["name"])
        lowest, highest = 23 * MEBIBYTE, 1000 * MEBIBYTE * len(containers)
        scores = []
        for node in feasible:
            total = sum(
                int(float(sizes[image]) * (len(holders[image]) / len(self.nodes)))
                for image in images
                if node["metadata"]["name"] in holders.get(image, ())
            )
            scores.append(100 * (min(max(total, lowest), highest) - lowest) // (highest - lowest))
        return scores

    # One node -------------------------------------------------------------------------------------------------------

    def filters(self, node: Json) -> Status | None:
        return self.local(node) or self.fit(node) or self.spread(node) or self.pod_affinity(node)

    def two_passes(self, node: Json) -> Status | None:
        """With the pods nominated to the node that must be left room for, and without them."""
        crowded = self
        for other in self.case.get("nominated", ()):
            if other["status"]["nominatedNodeName"] != node["metadata"]["name"]:
                continue
            if priority_of(other) >= priority_of(self.pod) and other["metadata"]["uid"] != self.pod["metadata"]["uid"]:
                crowded = crowded.changed(1, other, node)
        return (crowded.filters(node) if crowded is not self else None) or self.filters(node)


def on_shape(shape: Sequence[Json], utilization: int) -> int:
    points: list[tuple[int, int]] = [(one.get("utilization", 0), one.get("score", 0) * 10) for one in shape]
    for number, (x, y) in enumerate(points):
        if utilization <= x:
            if number == 0:
                return y
            x1, y1 = points[number - 1]
            return y1 + math.trunc(Fraction((y - y1) * (utilization - x1), x - x1))
    return points[-1][1]


def balance(pairs: list[tuple[int, int]]) -> int:
    fractions = [min(1.0, used / top) for used, top in pairs]
    spread = 0.0
    if len(fractions) == 2:
        spread = abs((fractions[0] - fractions[1]) / 2)
    elif len(fractions) > 2:
        total = squares = 0.0
        for one in fractions:
            total += one
        mean = total / len(fractions)
        for one in fractions:
            squares += (one - mean) * (one - mean)
        spread = math.sqrt(squares / len(fractions))
    return int((1 - spread) * 100.0)


def priority_of(pod: Json) -> int:
    value: int = pod["spec"].get("priority", 0)
    return value


# The answer ---------------------------------------------------------------------------------------------------------


def named_nodes(pod: Json) -> list[str] | None:
    """What PreFilter of NodeAffinity narrows the search to; None when it does not."""
    required = required_node_affinity(pod)
    if required is None:
        return None
    union: list[str] = []
    for term in required["nodeSelectorTerms"]:
        sets = [
            set(one["values"])
            for one in term.get("matchFields", ())
            if one["key"] == "metadata.name" and one["operator"] == "In"
        ]
        if not sets:
            return None
        union += sorted(set.intersection(*sets) - set(union))
    return union


def answer(case: Json) -> Json:
    """In the form of :func:`kemu.lab.conformance.scheduler.decisions.answer`, as far as answers are judged."""
    world = World(case)
    pod = world.pod
    own = pod.get("status", {}).get("nominatedNodeName", "")
    statuses = {name: world.two_passes(node) for name, node in world.by_name.items()}
    narrowed = named_nodes(pod)
    rejected_all = narrowed == []
    if rejected_all:
        conflict = Status("NodeAffinity", UNRESOLVABLE, ("pod affinity terms conflict",))
        statuses = dict.fromkeys(statuses, conflict)
    elif narrowed is not None:
        plugins = {"NodeAffinity"}
        tried = statuses.get(own)
        if tried is not None:
            plugins.add(tried.plugin)
        left_out = Status("", UNRESOLVABLE, (f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(plugins))}]",))
        for name in statuses:
            if name not in narrowed and name != own:
                statuses[name] = left_out
    feasible = [node for name, node in world.by_name.items() if statuses[name] is None]
    result: Json = {"feasible": sorted(node["metadata"]["name"] for node in feasible)}
    result["rejected"] = {
        name: {"plugin": status.plugin, "reasons": sorted(status.reasons), "code": status.code}
        for name, status in statuses.items()
        if status is not None
    }
    if feasible:
        _score(world, feasible, result)
        if own in statuses:
            result["selectable"] = [own] if statuses[own] is None else result["best"]
        return result
    if rejected_all:
        result["message"] = f"0/{len(statuses)} nodes are available: pod affinity terms conflict."
    else:
        tally: dict[str, int] = {}
        for status in statuses.values():
            for reason in status.reasons if status else ():
                tally[reason] = tally.get(reason, 0) + 1
        text = ", ".join(sorted(f"{count} {reason}" for reason, count in tally.items()))
        result["message"] = f"0/{len(statuses)} nodes are available:" + (f" {text}." if text else "")
    result["preemption"] = _preempt(world, statuses, own)
    return result


def _score(world: World, feasible: list[Json], result: Json) -> None:
    plugins: dict[str, Callable[[list[Json]], list[int] | None]] = {
        "TaintToleration": world.taint_scores,
        "NodeAffinity": world.node_affinity_scores,
        "PodTopologySpread": world.spread_scores,
        "InterPodAffinity": world.pod_affinity_scores,
        "NodeResourcesFit": lambda nodes: [world.fit_score(node) for node in nodes],
        "NodeResourcesBalancedAllocation": world.balance_scores,
        "ImageLocality": world.image_scores,
    }
    names = [node["metadata"]["name"] for node in feasible]
    result["scores"] = {name: {} for name in names}
    for plugin, weight in world.weights.items():
        for name, score in zip(names, plugins[plugin](feasible) or (), strict=False):
            result["scores"][name][plugin] = score * weight
    result["totals"] = {name: sum(scores.values()) for name, scores in result["scores"].items()}
    highest = max(result["totals"].values())
    result["best"] = sorted(name for name, total in result["totals"].items() if total == highest)


# Preemption ---------------------------------------------------------------------------------------------------------


def importance(pod: Json) -> tuple[int, str]:
    """Smaller is more important. Start times are texts of one form, so that texts compare as times do."""
    return (-priority_of(pod), pod["status"].get("startTime", "~"))


def _preempt(world: World, statuses: dict[str, Status | None], own: str) -> Json:
    pod = world.pod
    if pod["spec"].get("preemptionPolicy") == "Never":
        return {"eligible": False, "reason": "not eligible due to preemptionPolicy=Never."}
    status = statuses.get(own)
    if own in statuses and (status is None or status.code == UNSCHEDULABLE):
        for other in world.pods[own]:
            ends = any(
                (one["type"], one["status"], one.get("reason")) == ("DisruptionTarget", "True", "PreemptionByScheduler")
                for one in other["status"].get("conditions", ())
            )
            if ends and "deletionTimestamp" in other["metadata"] and priority_of(other) < priority_of(pod):
                return {"eligible": False, "reason": "not eligible due to a terminating pod on the nominated node."}
    candidates: dict[str, tuple[list[Json], int]] = {}
    for name, node in world.by_name.items():
        status = statuses[name]
        if status is not None and status.code == UNSCHEDULABLE:
            found = dry_run(world, node)
            if found is not None:
                candidates[name] = found
    result: Json = {"eligible": True, "candidates": {}}
    for name, (victims, violations) in candidates.items():
        names = [victim["metadata"]["name"] for victim in victims]
        result["candidates"][name] = {"victims": names, "pdbViolations": violations}
    left = list(candidates)
    for criterion in _CRITERIA:
        if left:
            best = min(criterion(*candidates[name]) for name in left)
            left = [name for name in left if criterion(*candidates[name]) == best]
    result["chosenAnyOf"] = sorted(left)
    return result


def dry_run(world: World, node: Json) -> tuple[list[Json], int] | None:
    """Victims, most important first, and how many budgets they violate; None when that does not help."""
    there = world.pods[node["metadata"]["name"]]
    lower = sorted((one for one in there if priority_of(one) < priority_of(world.pod)), key=importance)
    if not lower:
        return None
    for one in lower:
        world = world.changed(-1, one, node)
    if world.two_passes(node) is not None:
        return None
    violating = violating_pods(world, lower)
    victims, violations = [], 0
    for one in [*violating, *(other for other in lower if other not in violating)]:
        crowded = world.changed(1, one, node)
        if crowded.two_passes(node) is None:
            world = crowded
        else:
            victims.append(one)
            violations += one in violating
    return sorted(victims, key=importance), violations


def violating_pods(world: World, lower: list[Json]) -> list[Json]:
    left = [budget["status"].get("disruptionsAllowed", 0) for budget in world.case.get("pdbs", ())]
    found = []
    for pod in lower:
        violates = False
        for number, budget in enumerate(world.case.get("pdbs", ())):
            selector = budget["spec"].get("selector")
            if (
                budget["metadata"]["namespace"] == pod["metadata"]["namespace"]
                and labels_of(pod)
                and selector is not None
                and requirements(selector)
                and selects(selector, labels_of(pod))
                and pod["metadata"]["name"] not in budget["status"].get("disruptedPods", {})
            ):
                left[number] -= 1
                violates = violates or left[number] < 0
        if violates:
            found.append(pod)
    return found


def _earliest_start(victims: list[Json]) -> tuple[int, ...]:
    """Of those with the highest priority: larger is better, so that the characters are turned around."""
    highest = [one["status"].get("startTime", "~") for one in victims if priority_of(one) == priority_of(victims[0])]
    return tuple(-ord(letter) for letter in min(highest, default=""))


_CRITERIA: tuple[Callable[[list[Json], int], Any], ...] = (
    lambda victims, violations: violations,
    lambda victims, violations: priority_of(victims[0]) if victims else -(2**40),
    lambda victims, violations: sum(priority_of(one) + 2**31 for one in victims),
    lambda victims, violations: len(victims),
    lambda victims, violations: _earliest_start(victims),
)
