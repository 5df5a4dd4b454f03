"""Nodes, and the control plane of a drawn scenario."""

from __future__ import annotations

from kemu.lab.fuzz.drawing.canvases import ZONE, Canvas, Data
from kemu.lab.fuzz.drawing.dice import Dice

AMPLE = {"cpu": "2000", "memory": "4Ti", "pods": "1000", "ephemeral-storage": "4Ti"}
"""Room for every pod that could be drawn, on every single node."""
DEDICATED = "dedicated"
"""Key of the taints."""


def draw_nodes(canvas: Canvas) -> None:
    dice = canvas.dice("nodes")
    canvas.cpu = dice.pick((2, 4, 8, 16))
    canvas.memory_mib = 1024 * dice.pick((2, 4, 8, 16))
    zones = {"-": 0, "two": 2, "three": 3}[canvas.level("zones")]
    groups = 1 if canvas.nodes == 1 else dice.whole(1, 3)
    left, made = canvas.nodes, []
    for index in range(groups):
        count = left if index == groups - 1 else max(1, left // (groups - index))
        left -= count
        made += _group(canvas, dice.part("nodes", index), f"n{'abc'[index]}-", count, zones)
    canvas.spec["nodes"] = made


def _group(canvas: Canvas, dice: Dice, prefix: str, count: int, zones: int) -> list[Data]:
    if count <= 0:
        return []
    base = node(canvas, dice)
    if zones:
        # A group for each zone, so that few lines say it.
        parts = [count // zones + (1 if zone < count % zones else 0) for zone in range(zones)]
        found = []
        for zone, size in enumerate(parts):
            if size:
                labels = {**base.get("labels", {}), ZONE: f"zone-{'abc'[zone]}"}
                found += _named(canvas, f"{prefix}{'abc'[zone]}-", size, {**base, "labels": labels})
        return found
    return _named(canvas, prefix, count, base)


def _named(canvas: Canvas, prefix: str, count: int, base: Data) -> list[Data]:
    canvas.node_names += [f"{prefix}{number}" for number in range(1, count + 1)]
    if count == 1:
        return [{"name": f"{prefix}1", **base}]
    return [{"namePrefix": prefix, "count": count, **base}]


def node(canvas: Canvas, dice: Dice) -> Data:
    """What a node is like, but its name."""
    made: Data = {}
    if canvas.is_one("room", "ample"):
        made["allocatable"] = dict(AMPLE)
    else:
        factor = dice.pick((1, 1, 2)) if canvas.is_one("shape", "mixed") else 1
        key = "capacity" if canvas.is_one("shape", "capacity") else "allocatable"
        made[key] = {
            "cpu": str(canvas.cpu * factor),
            "memory": f"{canvas.memory_mib * factor}Mi",
            "pods": dice.pick(("110", "110", "8")),
            "ephemeral-storage": "20Gi",
        }
    made["labels"] = {"disk": dice.pick(("ssd", "hdd"))}
    if canvas.has("taints") and dice.chance(0.5):
        made["taints"] = [{"key": DEDICATED, "value": "team", "effect": canvas.level("taints")}]
    if canvas.has("cordoned") and dice.chance(0.3):
        made["unschedulable"] = True
    kubelet = _kubelet(canvas, dice)
    if kubelet:
        made["kubelet"] = kubelet
    if canvas.has("node_usage"):
        share = canvas.memory_mib * dice.pick((10, 30, 50)) // 100
        usage: Data = {"memory": f"{share}Mi"}
        if canvas.is_one("node_usage", "ramp"):
            usage = {"memory": {"ramp": {"from": f"{share // 2}Mi", "to": f"{share}Mi", "over": "60s"}}}
        usage |= dice.pick(({}, {"disk": "2Gi"}, {"images": "2Gi"}, {"pids": "500"}, {"deadContainers": "1Gi"}))
        made["usage"] = usage
    if canvas.has("machine"):
        made["machine"] = {
            "imagefs": {"imagefs": {"capacity": "30Gi"}},
            "pids": {"pids": "4000"},
        }[canvas.level("machine")]
    if canvas.is_one("images", "sized"):
        made["images"] = ["example.com/web:1"]
    return made


def _kubelet(canvas: Canvas, dice: Dice) -> Data:
    level = canvas.level("kubelet")
    if level == "limits":
        return dice.pick(
            (
                {"maxPods": 30},
                {"serializeImagePulls": False},
                {"maxParallelImagePulls": 3},
                {"crashLoopBackOff": {"maxContainerRestartPeriod": "30s"}},
            )
        )
    if level == "eviction":
        return {
            "evictionHard": {"memory.available": dice.pick(("200Mi", "10%")), "nodefs.available": "10%"},
            **dice.pick(({}, {"evictionMinimumReclaim": {"memory.available": "200Mi"}})),
            **dice.pick(({}, {"evictionPressureTransitionPeriod": "30s"})),
        }
    if level == "soft-eviction":
        return {
            "evictionSoft": {"memory.available": "20%"},
            "evictionSoftGracePeriod": {"memory.available": "20s"},
            "evictionMaxPodGracePeriod": dice.pick((0, 10)),
        }
    if level == "shutdown":
        return dice.pick(
            (
                {"shutdownGracePeriod": "20s", "shutdownGracePeriodCriticalPods": "5s"},
                {"shutdownGracePeriodByPodPriority": [{"priority": 0, "shutdownGracePeriodSeconds": 15}]},
            )
        )
    if level == "static-pods":
        pod: Data = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "proxy", "namespace": "kube-system"}}
        pod["spec"] = {
            "priorityClassName": "system-node-critical",
            "containers": [{"name": "main", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}],
        }
        return {"staticPods": [pod]}
    if level == "heartbeats":
        return dice.pick(({"nodeLeaseDurationSeconds": 20}, {"nodeStatusUpdateFrequency": "5s"}))
    return {}


REALISTIC_PARTS: tuple[Data, ...] = (
    {"kubeletSync": "500ms"},
    {"kubeletSync": {"uniform": {"min": "50ms", "max": "800ms"}}, "podStart": "2s"},
)
SLOW: tuple[Data, ...] = (
    {"schedulingCycle": "100ms", "bind": "200ms"},
    {"bind": {"uniform": {"min": "10ms", "max": "2s"}}},
    {"apiLatency": {"exponential": {"mean": "20ms"}}, "watchLatency": {"uniform": {"min": "1ms", "max": "200ms"}}},
    {"podStart": {"uniform": {"min": "1s", "max": "10s"}}, "imagePull": "5s"},
    {"apiService": "20ms", "storeLatency": "5ms", "fsync": "10ms"},
    {"keepaliveTime": "10s", "keepaliveTimeout": "5s"},
    {"clientLimits": "kubernetes"},
    {"cores": 1, "schedulingCycle": "20ms", "apiService": "2ms"},
    {"cores": 2, "schedulingCycle": "5ms", "apiService": "1ms", "clientLimits": "kubernetes"},
)


def draw_control_plane(canvas: Canvas) -> None:
    spec, dice = canvas.spec, canvas.dice("control-plane")
    if canvas.is_one("timing", "realistic"):
        spec["timing"] = "realistic"
    elif canvas.is_one("timing", "kubelet-sync"):
        spec["timing"] = dice.pick(REALISTIC_PARTS)
    elif canvas.is_one("timing", "slow"):
        spec["timing"] = dice.pick(SLOW)
    _schedulers(canvas)
    servers: Data = {}
    if canvas.has("api_servers"):
        servers["replicas"] = {"two": 2, "three": 3}[canvas.level("api_servers")]
    kinds: dict[str, Data] = {
        "-": {},
        "cache-lag": {"cacheLag": dice.pick(("50ms", "500ms", "2s"))},
        "bind-check": {"bindCheck": "capacity"},
        "plugins": dice.pick(
            (
                {"enableAdmissionPlugins": ["PodTolerationRestriction"]},
                {"enableAdmissionPlugins": ["ExtendedResourceToleration"]},
                {"authorization": ["AlwaysAllow"]},
                {"disableAdmissionPlugins": ["NodeRestriction"]},
            )
        ),
        "flow": {"maxRequestsInFlight": 4, "maxMutatingRequestsInFlight": 4},
    }
    servers |= kinds[canvas.level("api")]
    if servers:
        spec["apiServers"] = servers
    if canvas.has("store"):
        spec["store"] = {"fsync": canvas.level("store")}
    if canvas.is_one("records", "exact"):
        spec |= {"heartbeats": "exact", "eventObjects": "all"}
    elif canvas.is_one("records", "sparing"):
        spec["podStatuses"] = "sparing"
    elif canvas.is_one("records", "no-events"):
        spec["eventObjects"] = "none"
    if canvas.has("images"):
        spec["images"] = {"example.com/web:1": "300M", "example.com/web:2": "1G"}


def _schedulers(canvas: Canvas) -> None:
    dice = canvas.dice("schedulers")
    config: Data = {}
    if canvas.is_one("scheduler_config", "most-allocated"):
        strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
        args = [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}]
        config = {"profiles": [{"schedulerName": "default-scheduler", "pluginConfig": args}]}
    elif canvas.is_one("scheduler_config", "few-nodes"):
        config = {"percentageOfNodesToScore": 10}
    elif canvas.is_one("scheduler_config", "backoff"):
        config = {"podInitialBackoffSeconds": 2, "podMaxBackoffSeconds": 20}
    policy = _policy(canvas.level("policy"), dice)
    one: Data = {"name": "default-scheduler"}
    if canvas.is_one("schedulers", "racing", "elected"):
        one["replicas"] = dice.whole(2, 3)
    if canvas.is_one("schedulers", "elected"):
        config = {**config, "leaderElection": {"leaderElect": True}}
    if config:
        one["config"] = config
    if policy:
        one["policy"] = policy
    found = [one]
    if canvas.is_one("schedulers", "two-names"):
        canvas.scheduler_names.append("second")
        found.append({"name": "second", **({"policy": policy} if policy and dice.chance(0.5) else {})})
    if len(found) > 1 or len(one) > 1:
        canvas.spec["schedulers"] = found


def _policy(level: str, dice: Dice) -> Data:
    policies: dict[str, Data] = {
        "-": {},
        "requeue": {"requeue": "all"},
        "nomination": {"nomination": False},
        "clearLowerNominations": {"clearLowerNominations": dice.pick(("always", "if-unfit", "never"))},
        "eligibility": {"eligibility": "alpha"},
        "preemptor-kubelet": {"preemptor": "kubelet"},
        "preemptor-rescheduler": {"preemptor": "rescheduler"},
        "disablePreemption": dice.pick(({"disablePreemption": True}, {"preemptor": "none"})),
        "statusWrites": {"statusWrites": "background"},
        "victimOrder": {"victimOrder": dice.pick(("priority-then-qos", "qos", "qos-only"))},
        "pdb": {"pdb": "ignore"},
        "crossNodePreemption": {"crossNodePreemption": dice.pick((True, {"budget": 500}))},
        "lowerPriorityAffinity": {"lowerPriorityAffinity": dice.pick((True, {"limit": 10}))},
        "avoidEvictedNode": {"avoidEvictedNode": dice.pick((True, {"for": "1m"}))},
        "fifo": {"queue": "fifo"},
    }
    return policies[level]


def draw_autoscaler(canvas: Canvas) -> None:
    if not canvas.has("autoscaler"):
        return
    dice = canvas.dice("autoscaler")
    template: Data = {"allocatable": {"cpu": str(canvas.cpu), "memory": f"{canvas.memory_mib}Mi", "pods": "110"}}
    groups: list[Data] = []
    for index in range(dice.whole(1, 2)):
        group: Data = {"name": f"pool{index}", "max": dice.log_whole(1, 8), "template": template}
        group["provisioning"] = dice.pick(("20s", "40s", {"uniform": {"min": "10s", "max": "50s"}}))
        if dice.chance(0.3):
            group["initial"] = 1
        groups.append(group)
    made: Data = {"nodeGroups": groups, "expander": dice.pick(("least-waste", "random", "most-pods", "least-nodes"))}
    if canvas.is_one("autoscaler", "shrinks"):
        made["scaleDown"] = {"unneededTime": "30s", "delayAfterAdd": "30s"}
    canvas.spec["autoscaler"] = made


def draw_controllers(canvas: Canvas, needed: list[str]) -> None:
    """``needed``: those that the loader would choose."""
    if not canvas.has("controllers") or not needed:
        return
    dice = canvas.dice("controllers")
    chosen: Data = {name: {} for name in needed}
    for name in dice.some(needed, 3):
        if canvas.is_one("controllers", "elected"):
            chosen[name] = {"replicas": dice.whole(2, 3)}
        elif canvas.is_one("controllers", "lagging"):
            chosen[name] = {"lag": dice.pick(("200ms", "1s", {"uniform": {"min": "0s", "max": "3s"}}))}
    if canvas.is_one("controllers", "settings") and "node-lifecycle" in chosen:
        chosen["node-lifecycle"] = {"nodeMonitorGracePeriod": "20s", "nodeEvictionRate": 1}
    canvas.spec["controllers"] = chosen
