"""Decisions of the kubelet, mixed from the parts of recorded cases.

So their features are as frequent as in the record, but meet in other ways.
"""

from __future__ import annotations

import copy
import functools
import itertools
import random
from pathlib import Path
from typing import Any

from kemu.lab.conformance import case_files
from kemu.lab.conformance.kubelet import decisions
from tests.conformance import reference

Json = dict[str, Any]

DATA = Path(__file__).parent.parent / "data" / "kubelet"


def case(family: str, seed: int, number: int) -> Json:
    """The case of this number, of a family of :data:`FAMILIES`."""
    draw = random.Random(f"{family} {seed} {number}")
    mixed = f"{family}{decisions.MIXED}"
    return {**_MAKERS[family](draw), "id": f"{mixed}-s{seed}-{number:05}", "family": mixed}


# Parts of the record -------------------------------------------------------------------------------------------------


@functools.cache
def recorded(family: str) -> list[Json]:
    return [one.question for one in case_files.read(DATA / f"{family}.jsonl.gz")]


@functools.cache
def recorded_pods() -> list[Json]:
    found: list[Json] = []
    for family in ("admission", "critical-preemption", "eviction-rank", "qos", "critical"):
        for question in recorded(family):
            found += [*(question.get("pods") or ()), *([question["pod"]] if "pod" in question else ())]
    return found


def named(draw: random.Random, count: int, pool: list[Json] | None = None) -> list[Json]:
    pods = [copy.copy(pod) for pod in draw.choices(pool or recorded_pods(), k=count)]
    for number, pod in enumerate(pods):
        pod["metadata"] = {**pod["metadata"], "name": f"p{number:02}", "uid": f"uid-p{number:02}"}
    return pods


def _mixed_pods(draw: random.Random, count: int) -> list[Json]:
    """Each with the containers, sidecars, overhead, priority and resources of several pods."""
    pods = named(draw, count)
    for pod in pods:
        spec = pod["spec"] = {**pod["spec"]}
        for part in ("containers", "initContainers"):
            if draw.random() < 0.5:
                pool = [one for other in draw.sample(recorded_pods(), 3) for one in other["spec"].get(part) or ()]
                some = draw.sample(pool, min(len(pool), draw.choice((1, 2, 3))))
                spec[part] = [{**one, "name": f"{part[0]}{index}"} for index, one in enumerate(some)]
            if not spec.get(part):
                spec.pop(part, None)
        spec.setdefault("containers", [{"name": "c0", "image": "registry.example/app:1"}])
        for part in ("overhead", "resources", "priority", "priorityClassName"):
            if draw.random() < 0.3:
                other = draw.choice(recorded_pods())["spec"]
                spec.pop(part, None)
                spec |= {part: other[part]} if part in other else {}
    return pods


def _mixed(draw: random.Random, pool: list[Json], keys: tuple[str, ...]) -> Json:
    """Each key from another of the objects, or missing as it is there."""
    found: Json = {}
    for key in keys:
        other = draw.choice(pool)
        found |= {key: other[key]} if key in other else {}
    return found


# Families ------------------------------------------------------------------------------------------------------------


def _qos(draw: random.Random) -> Json:
    (pod,) = _mixed_pods(draw, 1)
    return {"pod": pod, "memoryCapacity": draw.choice(recorded("qos"))["memoryCapacity"]}


def _critical(draw: random.Random) -> Json:
    return {"pods": _mixed_pods(draw, draw.randrange(2, 7))}


def _thresholds(draw: random.Random) -> Json:
    settings = ("evictionHard", "evictionSoft", "evictionMinimumReclaim", "enforceNodeAllocatable", "capacities")
    made = _mixed(draw, recorded("thresholds"), settings)
    grace = dict(draw.choice(recorded("thresholds")).get("evictionSoftGracePeriod") or {})
    # Most soft thresholds are given a period, as an operator would.
    for signal in made.get("evictionSoft") or ():
        if draw.random() < 0.9:
            grace[signal] = draw.choice(("30s", "1m30s", "0", "1h", "250ms"))
    return {**made, "evictionSoftGracePeriod": grace}


def _config_defaults(draw: random.Random) -> Json:
    pool = [one["kubeletConfiguration"] for one in recorded("config-defaults")]
    keys = sorted({key for one in pool for key in one} - {"evictionSoft", "evictionSoftGracePeriod"})
    fixed = {key: pool[0][key] for key in ("apiVersion", "kind")}
    # Soft thresholds stay with their periods.
    soft = draw.choice(pool)
    both = {key: soft[key] for key in ("evictionSoft", "evictionSoftGracePeriod") if key in soft}
    return {"kubeletConfiguration": {**_mixed(draw, pool, tuple(keys)), **both, **fixed}}


def _admission(draw: random.Random) -> Json:
    questions = recorded("admission")
    nodes = [one for question in questions for one in (question["node"], question.get("freshNode")) if one]
    nodes += [question["node"] for question in recorded("critical-preemption") if "node" in question]
    made: Json = {"mode": "predicate", "node": draw.choice(nodes)}
    incoming = draw.choice([question["pod"] for question in questions] if draw.random() < 0.5 else recorded_pods())
    (made["pod"],) = named(draw, 1, [incoming])
    made["pod"]["metadata"] |= {"name": "incoming", "uid": "uid-incoming"}
    made["pods"] = named(draw, draw.choice((0, 1, 2, 3, 5, 8, 13)))
    if draw.random() < 0.3:
        made["freshNode"] = draw.choice(nodes)
    return made


def _critical_preemption(draw: random.Random) -> Json:
    base = draw.choice([one for one in recorded("critical-preemption") if one["mode"] == "direct"])
    pods = named(draw, draw.choice((1, 2, 4, 7, 12)), draw.choice((None, base["pods"])))
    reasons = []
    for resource in draw.sample(
        ("pods", "cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi"),
        draw.choice((1, 2, 3, 4)),
    ):
        # From what one pod has to what all have, and beyond.
        sizes = [reference.whole(resource, reference.request(pod, resource)) for pod in pods]
        need = draw.choice((max(sizes), sum(sizes) // 2, sum(sizes), draw.randint(0, sum(sizes) + 1)))
        capacity = draw.randint(0, 4) * need
        reasons.append({"resource": resource, "requested": need, "used": capacity, "capacity": capacity})
    return {"mode": "direct", "pod": base["pod"], "pods": pods, "reasons": reasons, "killErrors": []}


def _eviction_rank(draw: random.Random) -> Json:
    questions = recorded("eviction-rank")
    stats = [one for question in questions for one in question.get("stats") or ()]
    pool = [one for question in questions for one in question.get("pods") or ()]
    pods = named(draw, draw.choice((0, 1, 2, 5, 11, 20)), pool)
    measured = [
        {**draw.choice(stats), "podRef": {"uid": pod["metadata"]["uid"]}} for pod in pods if draw.random() < 0.85
    ]
    return {"pods": pods, "stats": measured, "filesystem": draw.choice(questions).get("filesystem")}


def _eviction_manager(draw: random.Random) -> Json:
    """The passes of one case at their times, with the settings, pods and amounts of others."""
    questions = recorded("eviction-manager")
    base = draw.choice(questions)
    pods = named(draw, draw.choice((1, 3, 5, 8)), [pod for one in draw.sample(questions, 4) for pod in one["pods"]])
    config = dict(draw.choice(questions)["config"])
    config |= _mixed(
        draw,
        [one["config"] for one in questions],
        ("evictionPressureTransitionPeriodSeconds", "evictionMaxPodGracePeriod", "localStorageCapacityIsolation"),
    )
    steps = []
    for step in base["steps"]:
        other = draw.choice(draw.choice(questions)["steps"])
        made = {key: step[key] for key in ("at", "imageFsError", "summaryError") if key in step}
        made["node"] = _with_times_of(step["node"], other["node"])
        for key in ("nodeAfterContainerGC", "nodeAfterImageGC"):
            if key in other:
                made[key] = _with_times_of(step["node"], other[key])
        for key in ("containerGCError", "imageGCError", "summaryErrorAfterReclaim"):
            made |= {key: other[key]} if key in other else {}
        active = draw.sample(pods, draw.randint(0, len(pods)))
        made["activePods"] = [pod["metadata"]["name"] for pod in active]
        stats = itertools.chain.from_iterable(one["podStats"] or () for one in draw.choice(questions)["steps"])
        made["podStats"] = [
            {**one, "podRef": {key: pod["metadata"][key] for key in ("name", "namespace", "uid")}}
            for pod, one in zip(draw.sample(pods, len(pods)), stats, strict=False)
            if draw.random() < 0.9
        ]
        if draw.random() < 0.05 and pods:
            made["killErrors"] = [draw.choice(pods)["metadata"]["name"]]
        steps.append(made)
    return {
        "config": config,
        "filesystem": draw.choice(questions)["filesystem"],
        "pods": pods,
        "probes": draw.choice(questions)["probes"],
        "steps": steps,
    }


def _eviction_loop(draw: random.Random) -> Json:
    """Pods of several cases about the same resource, on the node and with the settings of one."""
    questions = recorded("eviction-loop")
    base = draw.choice(questions)
    like = [one for one in questions if one["resource"] == base["resource"] and one["capacity"] == base["capacity"]]
    pool = [one for other in like for one in other["pods"]]
    some = draw.sample(pool, min(len(pool), draw.choice((3, 5, 7))))
    pods = named(draw, len(some), [one["pod"] for one in some])
    times = ("monitoringIntervalSeconds", "filesystem", "systemUsage")
    return {
        **{key: base[key] for key in ("resource", "capacity", "horizonSeconds")},
        **_mixed(draw, like, times),
        "config": draw.choice(like)["config"],
        "pods": [{**one, "pod": pod} for one, pod in zip(some, pods, strict=True)],
    }


def _taint_eviction(draw: random.Random) -> Json:
    """Times of events and of tolerations never meet: no two of these times differ by whole seconds."""
    questions = recorded("taint-eviction")
    nodes = draw.choices([node for question in questions for node in question["nodes"] or ()], k=3)
    pods = named(draw, draw.randint(1, 8), [pod for question in questions for pod in question["pods"] or ()])
    happen: list[Json] = []
    for number, pod in enumerate(pods):
        pod["spec"] = {**pod["spec"], "nodeName": draw.choice(("n0", "n1", "n2", ""))}
        if number > 5:
            happen.append({"do": "addPod", "newPod": pod})
    events = [event for question in questions for event in question.get("events") or () if event["do"] != "addPod"]
    for event in draw.choices(events, k=draw.randint(0, 14)):
        changed = dict(event)
        if "node" in changed:
            changed["node"] = draw.choice(("n0", "n1", "n2"))
        if "pod" in changed:
            changed["pod"] = f"p{draw.randint(0, 7):02}"
        happen.append(changed)
    draw.shuffle(happen)
    times = sorted(draw.sample(range(1, 900), len(happen)))
    timed = zip(happen, times, strict=True)
    return {
        "nodes": [{**node, "metadata": {"name": f"n{number}"}} for number, node in enumerate(nodes)],
        "pods": pods[:6],
        "events": [{**one, "atMs": at * 1000 + number + 1} for number, (one, at) in enumerate(timed)],
        "horizonMs": 1_000_500,
    }


def _node_failure(draw: random.Random) -> Json:
    """Nodes of up to three zones that fall silent again and again, and whose kubelets report that they are not well.

    Of nodes that fail at one look of the controller, any is tainted first: no two do.
    """
    base = draw.choice(recorded("node-failure"))
    horizon_ms = 1000 * draw.choice((200, 250, 300))
    grace_ms = 1000 * draw.choice((20, 40, 50))
    zones = draw.choice((("z1",), ("z1", "z2"), ("z1", "z1", "z2"), ("z1", "z2", "z3")))
    nodes: list[Json] = []
    looks: set[int] = set()
    for number in range(1, draw.randint(2, 9)):
        node = copy.deepcopy(base["nodes"][0]["node"])
        zone = {"topology.kubernetes.io/region": "r1", "topology.kubernetes.io/zone": draw.choice(zones)}
        node["metadata"] = {"name": f"node-{number}", "labels": zone if draw.random() < 0.95 else {}}
        phase_ms = 300 + 1000 * draw.randrange(10)
        one: Json = {"node": node, "leasePhaseMs": phase_ms, "silentMs": []}
        for at in sorted(draw.sample(range(0, horizon_ms - 60_000, 1000), draw.choice((0, 1, 1, 2, 3)))):
            last_ms = max(0, (at - 1 - phase_ms) // 10_000 * 10_000 + phase_ms)
            if _is_new((last_ms + grace_ms) // 5000, looks):
                one["silentMs"].append([at, at + 1000 * draw.choice((15, 45, 75, 120, 400))])
        nodes.append(one)
    events: list[Json] = []
    for at in sorted(draw.sample(range(700, horizon_ms, 1000), draw.choice((0, 1, 2, 4, 6)))):
        condition = _reported(draw)
        if condition["type"] != "Ready" or _is_new(at // 5000, looks):
            name = draw.choice(nodes)["node"]["metadata"]["name"]
            events.append({"atMs": at, "node": name, "condition": condition})
    pods = named(draw, draw.randint(0, 8), [pod for one in recorded("node-failure") for pod in one.get("pods") or ()])
    for pod in pods:
        pod["spec"] = {**pod["spec"], "nodeName": draw.choice(nodes)["node"]["metadata"]["name"]}
    return {
        "horizonSeconds": horizon_ms // 1000,
        "nodeMonitorPeriodSeconds": 5,
        "nodeMonitorGracePeriodSeconds": grace_ms // 1000,
        "nodeStartupGracePeriodSeconds": 60,
        "nodeEvictionRate": draw.choice((0.1, 0.1, 0.05, 0.5)),
        "secondaryNodeEvictionRate": draw.choice((0.01, 0.02)),
        "largeClusterSizeThreshold": draw.choice((2, 3, 50)),
        "unhealthyZoneThreshold": draw.choice((0.55, 0.4, 0.8)),
        "nodes": nodes,
        "events": events,
        "pods": pods,
    }


def _is_new(look: int, looks: set[int]) -> bool:
    if look in looks:
        return False
    looks.add(look)
    return True


def _reported(draw: random.Random) -> Json:
    kind = draw.choice(("Ready", "Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"))
    return {"type": kind, "status": draw.choice(("True", "False"))}


def _with_times_of(timed: Json, amounts: Json) -> Json:
    """Statistics of a node with other amounts. A manager acts on those that are newer than the ones it saw before."""
    found: Json = {}
    for key, value in amounts.items():
        if isinstance(value, dict):
            there = timed.get(key)
            nested = _with_times_of(there if isinstance(there, dict) else {}, value)
            found[key] = {**nested, "time": there["time"]} if isinstance(there, dict) and "time" in there else nested
        else:
            found[key] = value
    return found


_MAKERS = {
    "qos": _qos,
    "critical": _critical,
    "thresholds": _thresholds,
    "config-defaults": _config_defaults,
    "admission": _admission,
    "critical-preemption": _critical_preemption,
    "eviction-rank": _eviction_rank,
    "eviction-manager": _eviction_manager,
    "eviction-loop": _eviction_loop,
    "taint-eviction": _taint_eviction,
    "node-failure": _node_failure,
}
FAMILIES = tuple(_MAKERS)
