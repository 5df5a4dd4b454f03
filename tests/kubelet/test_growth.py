"""A kubelet keeps nothing of pods that are gone."""

from __future__ import annotations

from collections import deque
from typing import Any

from kemu.emulated.kubelet.kubelet import Kubelet
from kemu.emulated.kubelet.usage import curves
from kemu.messages.k8s import core_v1_pb2
from tests.kubelet.cluster import Cluster, node, pod

LEAST, MOST = 10, 40


def kept(top: Any) -> dict[str, int]:
    """How many elements the collections below a kubelet hold, by the class and the attribute that hold them."""
    found: dict[str, int] = {}
    seen: dict[int, Any] = {}
    left = [top]
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen[id(one)] = one
        if isinstance(one, dict):
            left += one.values()
        elif isinstance(one, list | tuple | deque):
            left += one
        elif type(one).__module__.startswith("kemu.emulated.kubelet"):
            names = [*getattr(one, "__dict__", ()), *(name for base in type(one).__mro__ for name in _slots(base))]
            for name in names:
                value = getattr(one, name, None)
                if isinstance(value, dict | list | deque):
                    place = f"{type(one).__name__}.{name}"
                    found[place] = found.get(place, 0) + len(value)
                left.append(value)
    return {place: count for place, count in found.items() if count}


def _slots(base: type) -> tuple[str, ...]:
    slots = base.__dict__.get("__slots__", ())
    return (slots,) if isinstance(slots, str) else tuple(slots)


def _pods(n: int) -> list[core_v1_pb2.Pod]:
    """One of each fate, with a host port and an extended resource of its own."""
    runs = pod(f"runs-{n}", cpu="10m", shutdown=3)
    runs.spec.containers[0].ports.add(containerPort=80, hostPort=1000 + n)
    for amounts in (runs.spec.containers[0].resources.requests, runs.spec.containers[0].resources.limits):
        amounts[f"example.com/device-{n}"].string = "1"
    finishes = pod(f"finishes-{n}", cpu="10m", restart="Never", run=1)
    crashes = pod(f"crashes-{n}", cpu="10m", run=0.1, exit_code=1)
    rejected = pod(f"rejected-{n}", cpu="100")
    never = pod(f"never-{n}", cpu="10m")
    never.spec.containers[0].image = f"absent:{n}"
    never.spec.containers[0].imagePullPolicy = "Never"
    unpulled = pod(f"unpulled-{n}", cpu="10m")
    unpulled.spec.containers[0].image = f"missing:{n}"
    unpulled.metadata.annotations["kemu.dev/image-pull-error"] = "no such image"
    sidecar = pod(f"sidecar-{n}", cpu="10m", restart="Never", run=1)
    sidecar.spec.initContainers.add(name="proxy", image="app", restartPolicy="Always")
    sidecar.metadata.annotations["kemu.dev/shutdown-seconds.proxy"] = "20"
    uses = pod(f"uses-{n}", cpu="10m")
    uses.metadata.annotations["kemu.dev/usage"] = '{"memory": "10Mi"}'
    return [runs, finishes, crashes, rejected, never, unpulled, sidecar, uses]


def test_nothing_is_kept_of_pods_that_are_gone(cluster: Cluster, kubelets: list[Kubelet]) -> None:
    sizes: dict[int, dict[str, int]] = {}

    async def main(cluster: Cluster) -> None:
        for n in range(MOST):
            made = _pods(n)
            await cluster.create(*made)
            await cluster.clock.sleep(4)
            for one in made:
                # The sidecar's main container has ended, and the sidecar has not.
                await cluster.client.delete("pods", one.metadata.name, "default", grace_period_seconds=n % 2 * 5)
            if n + 1 in (LEAST, MOST):
                await cluster.clock.sleep(60)
                assert not (await cluster.client.list("pods")).items
                sizes[n + 1] = kept(kubelets[0])
            await cluster.clock.sleep(1)

    devices = {f"example.com/device-{n}": "1" for n in range(MOST)}
    cluster.play(main, [node(pods="100", **devices)])
    assert len(kubelets) == 1
    assert sizes[MOST] == sizes[LEAST]


def test_a_random_walk_keeps_the_latest_part_of_its_way() -> None:
    """And finds the rest again, at the price of going back to the last of its marks."""
    make = {"randomWalk": {"from": "500", "step": "20", "every": "1s", "max": "1000"}}
    walk, other = curves.parse(make, seed="a"), curves.parse(make, seed="a")
    seconds = [*range(0, 40_000, 7), 5, 39_000, 20_000, 0]
    amounts = [walk.at(second) for second in seconds]
    assert [other.at(second) for second in reversed(seconds)] == amounts[::-1]
    assert len(set(amounts)) > 100
    assert sum(kept(walk).values()) < 10_000
