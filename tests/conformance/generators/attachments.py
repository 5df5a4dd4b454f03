"""Volumes that pods use on nodes which fall silent, are tainted, go and come back.

Kubelets that are heard say which volumes they use, and stop when a pod has ended. Things happen far enough from one
another for the controller to have done its work.
"""

from __future__ import annotations

import random
from typing import Any

Json = dict[str, Any]
Draw = random.Random
FAMILIES = ("attachments",)
NODES = ("n1", "n2", "n3")
STEP_MS = 20_000


def case(family: str, seed: int, number: int) -> Json:
    return {
        "id": f"{family}-s{seed}-{number:05}",
        "family": family,
        **_Cluster(Draw(f"{family} {seed} {number}")).draw(),
    }


class _Cluster:
    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._modes = {"v0": "ReadWriteOnce", "v1": "ReadWriteOnce", "v2": "ReadWriteMany"}
        self._seen_by: dict[str, set[str]] = {volume: set() for volume in self._modes}
        """Nodes that ever wanted or had a volume."""
        self._used: dict[str, set[str]] = {node: set() for node in NODES}
        """By node, the volumes that its kubelet says it uses."""
        self._pods: dict[str, Json] = {}
        self._silent: set[str] = set()
        self._tainted: set[str] = set()
        self._gone: set[str] = set()
        self._events: list[Json] = []
        self._now_ms = 0
        self._made = 0

    def draw(self) -> Json:
        initial = [self._pod() for _ in range(self._draw.choice((0, 0, 1, 1)))]
        attachments = []
        for pod in initial:
            is_reported = self._draw.random() < 0.7
            for volume in pod["volumes"]:
                attachments.append({"volume": volume, "node": pod["node"], "reported": is_reported})
                self._used[pod["node"]].add(volume)
        if self._draw.random() < 0.3:
            # Left over: the controller was away while its pod ended.
            volume, node = self._draw.choice(list(self._modes)), self._draw.choice(NODES)
            if all(one["volume"] != volume for one in attachments):
                self._seen_by[volume].add(node)
                attachments.append({"volume": volume, "node": node, "reported": self._draw.random() < 0.5})
                if self._draw.random() < 0.4:
                    self._used[node].add(volume)
        nodes = [{"node": node, "volumes": sorted(self._used[node])} for node in NODES]
        for _ in range(self._draw.randint(4, 14)):
            self._now_ms += STEP_MS + 137 * self._draw.randint(1, 99)
            if self._draw.random() < 0.12:
                self._now_ms += 380_000
            self._happen()
        return {
            "attachMs": self._draw.choice((100, 400, 2000)),
            "detachMs": self._draw.choice((100, 400, 2000)),
            "horizonMs": self._now_ms + 450_000,
            "volumes": [{"name": name, "mode": mode} for name, mode in self._modes.items()],
            "nodes": nodes,
            "pods": initial,
            "attachments": attachments,
            "events": self._events,
        }

    def _pod(self) -> Json:
        self._made += 1
        node = self._draw.choice([one for one in NODES if one not in self._gone] or list(NODES))
        free = [volume for volume in self._modes if self._is_open(volume, node)]
        volumes = self._draw.sample(free, min(len(free), self._draw.choice((1, 1, 2))))
        for volume in volumes:
            self._seen_by[volume].add(node)
        pod: Json = {"name": f"p{self._made}", "node": node, "volumes": volumes}
        self._pods[pod["name"]] = pod
        return pod

    def _is_open(self, volume: str, node: str) -> bool:
        """Of several nodes that wait for a volume, any gets it: so only one may."""
        nodes = self._seen_by[volume]
        return self._modes[volume] == "ReadWriteMany" or node in nodes or len(nodes) < 2

    def _note(self, do: str, after_ms: int = 0, **more: Any) -> None:
        self._events.append({"do": do, "atMs": self._now_ms + after_ms, **more})

    def _tell(self, node: str, after_ms: int) -> None:
        """The kubelet of a node, if it is heard, says which volumes its pods use."""
        if node in self._silent or node in self._gone:
            return
        wanted = {volume for pod in self._pods.values() if pod["node"] == node for volume in pod["volumes"]}
        if wanted != self._used[node]:
            self._used[node] = wanted
            self._note("use", after_ms, node=node, volumes=sorted(wanted))

    def _happen(self) -> None:
        draw, chance = self._draw, self._draw.random()
        node = draw.choice(NODES)
        if chance < 0.4 or not self._pods:
            pod = self._pod()
            self._note("pod", **pod)
            self._tell(pod["node"], 1300)
        elif chance < 0.65:
            pod = self._pods.pop(draw.choice(list(self._pods)))
            self._note(draw.choice(("gone", "gone", "finish")), name=pod["name"])
            self._tell(pod["node"], 2300)
        elif node in self._gone:
            self._gone.discard(node)
            self._silent.discard(node)
            self._tainted.discard(node)
            self._used[node] = set()
            self._note("add", node=node, volumes=[])
            self._tell(node, 4300)
        elif chance < 0.8:
            is_back = node in self._silent
            (self._silent.discard if is_back else self._silent.add)(node)
            self._note("ready", node=node, **{"is": is_back})
            if is_back:
                self._tell(node, 3300)
        elif chance < 0.9:
            is_on = node not in self._tainted
            (self._tainted.add if is_on else self._tainted.discard)(node)
            self._note("taint", node=node, **{"is": is_on})
        else:
            self._gone.add(node)
            self._note("remove", node=node)
