"""ImageLocality: prefers nodes that already have the pod's images."""

from __future__ import annotations

from typing import Any

import numpy as np

from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.columns import IntArray
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.framework import signers
from kemu.emulated.scheduler.framework.interfaces import MAX_SCORE, SKIP, Cycle, Scope, ScorePlugin, SignPlugin
from kemu.emulated.scheduler.framework.signers import Fragments

_MEBIBYTE = 1024 * 1024
_LOWEST = 23 * _MEBIBYTE
_HIGHEST_PER_CONTAINER = 1000 * _MEBIBYTE


class ImageLocality(ScorePlugin, SignPlugin):
    scope = Scope.NODE_OBJECT

    def prepare_scores(self, cycle: Cycle, rows: IntArray) -> Any:
        return (cycle.template.images, cycle.template.containers) if cycle.template.images else SKIP

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        return signers.image_names(pod.pod)

    def score(self, state: tuple[tuple[str, ...], int], node: NodeInfo) -> int:
        images, containers = state
        cluster = self.handle.cluster
        if not cluster.images:
            return 0
        total = 0
        for image in images:
            if image in node.image_sizes:
                known = cluster.images[image]
                nodes = known.nodes.get(node.name) or len(known.nodes)
                total += int(known.size * (nodes / len(cluster)))
        return _score(total, containers)

    def scores(self, state: tuple[tuple[str, ...], int], cluster: Cluster, rows: IntArray | None) -> IntArray:
        images, containers = state
        if not cluster.images:
            return np.zeros(len(cluster) if rows is None else len(rows), dtype=np.int64)
        total = np.zeros(len(cluster), dtype=np.int64)
        for image in images:
            known = cluster.images.get(image)
            if known is not None:
                for nodes in dict.fromkeys(known.nodes.values()):
                    worth = int(known.size * (nodes / len(cluster)))
                    total[[cluster.nodes[name].row for name, seen in known.nodes.items() if seen == nodes]] += worth
        highest = _HIGHEST_PER_CONTAINER * containers
        scores: IntArray = (np.clip(total, _LOWEST, highest) - _LOWEST) * MAX_SCORE // (highest - _LOWEST)
        return scores if rows is None else scores[rows]

    def version(self, cluster: Cluster) -> int:
        return cluster.images_version


def _score(total: int, containers: int) -> int:
    highest = _HIGHEST_PER_CONTAINER * containers
    return (min(max(total, _LOWEST), highest) - _LOWEST) * MAX_SCORE // (highest - _LOWEST)
