"""Devices for a live comparison: slices of the nodes, and claims of pods, drawn as Kubernetes JSON."""

from __future__ import annotations

from collections.abc import Sequence

from kemu.lab.conformance.live.makers import Json, Maker

GPU_DRIVER, NIC_DRIVER = "gpu.example.com", "nic.example.com"
API = "resource.k8s.io/v1"
MODELS, RACKS = ("a100", "h100", "l4"), ("root-0", "root-1")
_SHARED = 0.25
"""How often a pod uses a claim that another pod has, too."""


def classes() -> list[Json]:
    """The DeviceClasses of all clusters."""
    whose = 'device.driver == "{}"'
    selectors = {
        "gpu": [whose.format(GPU_DRIVER)],
        "big-gpu": [
            whose.format(GPU_DRIVER),
            f'device.capacity["{GPU_DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0',
        ],
        "nic": [whose.format(NIC_DRIVER)],
    }
    return [
        {
            "apiVersion": API,
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {"expression": one}} for one in expressions]},
        }
        for name, expressions in selectors.items()
    ]


def slices(maker: Maker, nodes: Sequence[Json]) -> list[Json]:
    """Each node has a pool of each driver, or none."""
    return [
        _slice(maker, node["metadata"]["name"], driver)
        for node in nodes
        for driver in (GPU_DRIVER, NIC_DRIVER)
        if maker.chance(0.6 if driver == GPU_DRIVER else 0.4)
    ]


def _slice(maker: Maker, node: str, driver: str) -> Json:
    devices = [_device(maker, number) for number in range(maker.rng.randrange(1, 5))]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {
        "apiVersion": API,
        "kind": "ResourceSlice",
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": devices},
    }


def _device(maker: Maker, number: int) -> Json:
    rng = maker.rng
    made: Json = {
        "name": f"dev-{number}",
        "attributes": {
            "model": {"string": rng.choice(MODELS)},
            "index": {"int": number},
            "ready": {"bool": maker.chance(0.8)},
            "example.com/root": {"string": rng.choice(RACKS)},
        },
        "capacity": {"memory": {"value": rng.choice(("16Gi", "40Gi", "80Gi"))}},
    }
    if maker.chance(0.12):
        effect = rng.choice(("NoSchedule", "NoExecute", "None"))
        made["taints"] = [{"key": "example.com/broken", "value": "yes", "effect": effect}]
    return made


def claim(maker: Maker, name: str, namespace: str) -> Json:
    rng = maker.rng
    chance = rng.random()
    devices: Json
    if chance < 0.5:
        devices = {"requests": [{"name": "one", "exactly": _exactly(maker)}]}
    elif chance < 0.65:
        kind = rng.choice(("gpu", "nic"))
        devices = {"requests": [{"name": "all", "exactly": {"deviceClassName": kind, "allocationMode": "All"}}]}
    elif chance < 0.8:
        options = [{"name": f"option-{number}", **_exactly(maker)} for number in range(rng.randrange(2, 4))]
        devices = {"requests": [{"name": "any", "firstAvailable": options}]}
    else:
        requests = [{"name": kind, "exactly": {"deviceClassName": kind}} for kind in ("gpu", "nic")]
        devices = {"requests": requests}
        if maker.chance(0.7):
            devices["constraints"] = [{"requests": ["gpu", "nic"], "matchAttribute": "example.com/root"}]
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": API, "kind": "ResourceClaim", "metadata": metadata, "spec": {"devices": devices}}


def _exactly(maker: Maker) -> Json:
    rng = maker.rng
    kind = rng.choice(("gpu", "gpu", "big-gpu", "nic"))
    driver = NIC_DRIVER if kind == "nic" else GPU_DRIVER
    made: Json = {"deviceClassName": kind, "count": rng.choice((1, 1, 1, 2, 3))}
    if maker.chance(0.5):
        attributes = f'device.attributes["{driver}"]'
        expression = rng.choice(
            (
                f'{attributes}.model == "{rng.choice(MODELS)}"',
                f"{attributes}.ready",
                f"{attributes}.index < {rng.randrange(1, 4)}",
                f'{attributes}.model in ["a100", "h100"] && {attributes}.ready',
                f'device.attributes["example.com"].root == "{rng.choice(RACKS)}"',
            )
        )
        made["selectors"] = [{"cel": {"expression": expression}}]
    if maker.chance(0.2):
        made["tolerations"] = [{"key": "example.com/broken", "operator": "Exists"}]
    return made


def give(maker: Maker, pod: Json, known: list[str]) -> list[Json]:
    """Let a pod use one or two claims; returns those that have to be there first. ``known``: all claims that were made,
    by ``namespace/name``."""
    name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
    made: list[Json] = []
    used: list[str] = []
    for number in range(maker.rng.choice((1, 1, 1, 2))):
        there = [one.partition("/")[2] for one in known if one.startswith(f"{namespace}/")]
        there = [one for one in there if one not in used]
        if there and maker.chance(_SHARED):
            used.append(maker.rng.choice(there))
            continue
        used.append(f"{name}-claim-{number}")
        made.append(claim(maker, used[-1], namespace))
        known.append(f"{namespace}/{used[-1]}")
    spec = pod["spec"]
    spec["resourceClaims"] = [{"name": f"claim-{number}", "resourceClaimName": one} for number, one in enumerate(used)]
    spec["containers"][0].setdefault("resources", {})["claims"] = [{"name": "claim-0"}]
    return made
