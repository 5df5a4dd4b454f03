"""Pods whose containers start, end and answer their probes by a script; conditions of pods."""

from __future__ import annotations

import json
import random
from typing import Any

from kemu.emulated.kubelet.probes import answers

Json = dict[str, Any]

_HORIZON_MS = 150_000
_LATENCY_MS = {"startup": 3, "readiness": 5, "liveness": 7}
"""Different for each kind, so that no two probes of a container end in the same instant."""


def case(family: str, seed: int, number: int) -> Json:
    """The case of this number, of a family of :data:`MAKERS`."""
    draw = random.Random(f"{family} {seed} {number}")
    return {**MAKERS[family](draw), "id": f"{family}-s{seed}-{number:05}", "family": family}


# Probes --------------------------------------------------------------------------------------------------------------


def _probes(draw: random.Random) -> Json:
    names = ["main", "other"][: draw.choice((1, 1, 1, 2))]
    sidecars = ["proxy"] if draw.random() < 0.25 else []
    rules: Json = {}
    told: Json = {}
    for index, name in enumerate([*names, *sidecars]):
        kinds = [kind for kind in answers.KINDS if draw.random() < 0.6] or ["readiness"]
        rules[name] = {kind: _rules(draw, _LATENCY_MS[kind] + 11 * index) for kind in kinds}
        told[name] = {
            kind: _segments(answers.parse({name: {kind: data}})[name][kind]) for kind, data in rules[name].items()
        }
    script = sorted(_script(draw, [*names, *sidecars]), key=lambda step: step["atMs"])
    return {
        "pod": {
            "metadata": {"name": "a", "namespace": "default", "uid": "uid-a"},
            "spec": {
                "restartPolicy": "Always",
                "containers": [_container(draw, name, rules[name]) for name in names],
                "initContainers": [
                    {**_container(draw, name, rules[name]), "restartPolicy": "Always"} for name in sidecars
                ],
            },
        },
        "restartMs": draw.choice((0, 0, 1234, 8765)),
        "horizonMs": _HORIZON_MS,
        "script": script,
        "rules": rules,
        "answers": told,
    }


def _container(draw: random.Random, name: str, rules: Json) -> Json:
    found: Json = {"name": name, "image": "registry.example/app:1"}
    for kind in rules:
        found[f"{kind}Probe"] = {
            "exec": {"command": [name, kind]},
            "periodSeconds": draw.choice((1, 2, 5, 10, 10)),
            "timeoutSeconds": draw.choice((1, 1, 2)),
            "initialDelaySeconds": draw.choice((0, 0, 3, 12)),
            "failureThreshold": draw.choice((1, 2, 3, 3)),
            "successThreshold": draw.choice((1, 1, 1, 3)) if kind == "readiness" else 1,
        }
    return found


def _rules(draw: random.Random, latency_ms: int) -> Json:
    """Times in odd milliseconds: nothing else happens in these instants."""
    data: Json = {"latency": f"{latency_ms}ms"}
    what = draw.random()
    if what < 0.3:
        data["succeedsAfter"] = f"{draw.randrange(1, 40_000)}ms"
    if 0.2 < what < 0.7:
        data["failsFrom"] = f"{draw.randrange(1, 60_000)}ms"
        if draw.random() < 0.8:
            lasts_ms = draw.randrange(500, 20_000)
            data["failsFor"] = f"{lasts_ms}ms"
            if draw.random() < 0.5:
                data["every"] = f"{lasts_ms + draw.randrange(500, 30_000)}ms"
    if what > 0.85:
        begin, end = sorted(draw.sample(range(1, 90), 2))
        slow = draw.choice((700, 1300, 2600)) + latency_ms
        data["latency"] = {
            "steps": [
                {"at": 0, "value": f"{latency_ms}m"},
                {"at": begin, "value": f"{slow}m"},
                {"at": end, "value": f"{latency_ms}m"},
            ]
        }
    return data


def _segments(rules: answers.Rules) -> list[Json]:
    """The same answers, by the time since the start of the container from which on they hold."""
    load: Any = None
    asked = answers.Answers(rules, 1, load, "")
    found: list[Json] = []
    for ms in sorted(_bounds(rules)):
        at_ns = ms * 1_000_000
        said = {"ok": not asked.fails(at_ns, 0), "latencyMs": asked.latency_ns(at_ns) // 1_000_000}
        if not found or said != {key: found[-1][key] for key in said}:
            found.append({"fromMs": ms, **said})
    return found


def _bounds(rules: answers.Rules) -> set[int]:
    """The milliseconds in which an answer may change."""
    found = {0, *range(0, _HORIZON_MS, 1000), rules.succeeds_after // 1_000_000}
    if rules.fails_from is not None:
        begin_ns = rules.fails_from
        while begin_ns < _HORIZON_MS * 1_000_000:
            found |= {begin_ns // 1_000_000, (begin_ns + (rules.fails_for or 0)) // 1_000_000}
            if rules.every is None:
                break
            begin_ns += rules.every
    return found


def _script(draw: random.Random, names: list[str]) -> list[Json]:
    """What no probe does."""
    script = []
    for name in names:
        at_ms = draw.randrange(3000, 12_000)
        script.append({"atMs": at_ms, "what": "start", "container": name})
        while draw.random() < 0.4:
            at_ms += draw.randrange(1000, 50_000)
            script.append({"atMs": at_ms, "what": "exit", "container": name})
            at_ms += draw.randrange(300, 20_000)
            script.append({"atMs": at_ms, "what": "start", "container": name})
    script += [
        {"atMs": draw.randrange(3000, _HORIZON_MS), "what": "sync", "container": names[0]}
        for _ in range(draw.randrange(4))
    ]
    return [step for step in script if step["atMs"] < _HORIZON_MS]


# Conditions ----------------------------------------------------------------------------------------------------------

_GATES = ("example.com/in-service", "www.example.com/warm")


def _readiness(draw: random.Random) -> Json:
    init = [f"i{index}" for index in range(draw.choice((0, 0, 1, 2, 3)))]
    mains = [f"c{index}" for index in range(draw.choice((1, 1, 2, 3)))]
    sidecars = [name for name in init if draw.random() < 0.5]
    gates = [gate for gate in _GATES if draw.random() < 0.5]
    conditions = [
        {"type": gate, "status": draw.choice(("True", "False", "Unknown"))} for gate in gates if draw.random() < 0.7
    ]
    phase = draw.choice(("Pending", "Running", "Running", "Running", "Succeeded", "Failed"))
    return {
        "pod": {
            "metadata": {"name": "a", "namespace": "default", "generation": draw.randrange(1, 5)},
            "spec": {
                "initContainers": [
                    {"name": name, "image": "i", **({"restartPolicy": "Always"} if name in sidecars else {})}
                    for name in init
                ],
                "containers": [{"name": name, "image": "i"} for name in mains],
                "readinessGates": [{"conditionType": gate} for gate in gates],
            },
            "status": {"conditions": conditions},
        },
        "phase": phase,
        "sandbox": phase in ("Pending", "Running") and draw.random() < 0.8,
        "containers": [_state(draw, name, plain=name in init and name not in sidecars) for name in [*init, *mains]],
    }


def _state(draw: random.Random, name: str, *, plain: bool) -> Json:
    """``plain``: an init container that is no sidecar."""
    state = draw.choice(("waiting", "running", "running", "running", "terminated"))
    code = draw.choice((0, 0, 1))
    is_up = state == "running"
    if plain:
        return {
            "name": name, "state": state, "exitCode": code, "started": False,
            "ready": state == "terminated" and code == 0,
        }  # fmt: skip
    started = is_up and draw.random() < 0.8
    return {
        "name": name, "state": state, "exitCode": code, "started": started, "ready": started and draw.random() < 0.8,
    }  # fmt: skip


# Resizes -------------------------------------------------------------------------------------------------------------


def _resize(draw: random.Random) -> Json:
    old = _sized_pod(draw)
    new: Json = json.loads(json.dumps(old))
    for _ in range(draw.choice((1, 1, 2, 3))):
        _change(draw, new["spec"])
    return {"old": old, "new": new}


def _sized_pod(draw: random.Random) -> Json:
    spec: Json = {
        "containers": [_sized(draw, f"c{index}") for index in range(draw.choice((1, 1, 2)))],
        "terminationGracePeriodSeconds": 30,
    }
    if draw.random() < 0.4:
        spec["initContainers"] = [_sized(draw, "i0")]
        if draw.random() < 0.6:
            spec["initContainers"][0]["restartPolicy"] = "Always"
    if draw.random() < 0.2:
        spec["resources"] = {"requests": {"cpu": "9", "memory": "90Gi"}, "limits": {"cpu": "9", "memory": "90Gi"}}
    metadata: Json = {"name": "a", "namespace": "default", "uid": "uid-a", "resourceVersion": "1"}
    if draw.random() < 0.05:
        metadata["annotations"] = {"kubernetes.io/config.mirror": "x"}
    return {"metadata": metadata, "spec": spec}


def _sized(draw: random.Random, name: str) -> Json:
    found: Json = {"name": name, "image": "registry.example/app:1", "resources": {}}
    for resource, amounts in (("cpu", ("100m", "1", "2")), ("memory", ("100Mi", "1Gi", "2Gi"))):
        what = draw.random()
        low, high = sorted(draw.choices(range(3), k=2))
        if what < 0.75:
            found["resources"].setdefault("requests", {})[resource] = amounts[low]
        if 0.3 < what < 0.75:
            found["resources"].setdefault("limits", {})[resource] = amounts[high]
    if draw.random() < 0.3:
        found["resizePolicy"] = [
            {"resourceName": name, "restartPolicy": draw.choice(("NotRequired", "RestartContainer"))}
            for name in ("cpu", "memory")
        ]
    return found


def _change(draw: random.Random, spec: Json) -> None:
    what = draw.random()
    lists = [spec["containers"], *([spec["initContainers"]] if spec.get("initContainers") else [])]
    chosen = draw.choice(lists)
    container = draw.choice(chosen)
    part = draw.choice(("requests", "limits"))
    resources = container.setdefault("resources", {})
    if what < 0.6:
        resource = draw.choice(("cpu", "memory"))
        pool = ("100m", "1", "1000m", "2", "3") if resource == "cpu" else ("100Mi", "1Gi", "1024Mi", "2Gi", "3Gi")
        resources.setdefault(part, {})[resource] = draw.choice(pool)
    elif what < 0.7:
        resources.get(part, {}).pop(draw.choice(("cpu", "memory")), None)
    elif what < 0.75:
        resources.setdefault(part, {})["ephemeral-storage"] = "1Gi"
    elif what < 0.8:
        container["image"] = "registry.example/app:2"
    elif what < 0.84:
        container["name"] = "renamed"
    elif what < 0.88:
        chosen.append({"name": "more", "image": "registry.example/app:1"})
    elif what < 0.92 and "resources" in spec:
        draw.choice((spec["resources"]["requests"], spec["resources"]["limits"])).pop("cpu", None)
    elif what < 0.96:
        spec["resources"] = {"requests": {"cpu": "10", "memory": "90Gi"}, "limits": {"cpu": "10", "memory": "90Gi"}}
    else:
        spec["terminationGracePeriodSeconds"] = 20


# Allocations ---------------------------------------------------------------------------------------------------------


def _allocations(draw: random.Random) -> Json:
    names = [f"p{index}" for index in range(draw.choice((2, 3, 4, 5)))]
    pods = [_placed(draw, name) for name in names]
    steps: list[Json] = []
    for _ in range(draw.randrange(3, 12)):
        name = draw.choice(names)
        if draw.random() < 0.2:
            steps.append({"what": "remove", "pod": name, "requests": {}})
            continue
        resources = draw.choice((("cpu",), ("memory",), ("cpu", "memory")))
        requests = {
            one: draw.choice(("1", "2", "3", "5") if one == "cpu" else ("1Gi", "2Gi", "4Gi")) for one in resources
        }
        steps.append({"what": "resize", "pod": name, "requests": {"c0": requests}})
    allocatable = {"cpu": "11", "memory": "11Gi", "pods": "20"}
    return {
        "node": {
            "metadata": {"name": "node", "labels": {"kubernetes.io/os": "linux"}},
            "status": {"allocatable": allocatable, "capacity": allocatable},
        },
        "pods": pods,
        "steps": steps,
    }


def _placed(draw: random.Random, name: str) -> Json:
    requests = {"cpu": draw.choice(("1", "2")), "memory": draw.choice(("1Gi", "2Gi"))}
    containers = [{"name": "c0", "image": "i", "resources": {"requests": requests}}]
    if draw.random() < 0.3:
        containers.append({"name": "c1", "image": "i", "resources": {"requests": {"cpu": "100m"}}})
    return {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1},
        "spec": {
            "nodeName": "node",
            "containers": containers,
            "priority": draw.choice((0, 0, 100)),
        },
    }


MAKERS = {"probes": _probes, "readiness": _readiness, "resize": _resize, "allocations": _allocations}
