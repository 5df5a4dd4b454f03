"""One run through kemu's API server, scheduler and kubelets, and where its pods went."""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import kemu
from experiments.published.fgd import clusters
from experiments.published.fgd.inputs import Inputs
from kemu.emulated.objects.pods import gpu_cards
from kemu.messages.k8s import core_v1_pb2


class RunFailed(Exception):
    """A run that does not show what it is meant to."""


@dataclass(frozen=True, slots=True)
class Placement:
    """Of one pod."""

    pod: str
    """Its name in the trace."""
    node: str
    """The name in the trace; empty: it fitted nowhere."""
    cards: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Played:
    placements: Sequence[Placement]
    """In the order of arrival."""
    cpu_s: float


def play(policy: str, seed: int, inputs: Inputs, limit: int | None = None) -> Played:
    """Raises RunFailed where kemu finds fault with the run."""
    began = time.process_time()
    with tempfile.TemporaryDirectory(prefix="kemu-fgd-") as folder:
        spec = clusters.scenario(policy, seed, inputs, Path(folder), limit)
        run = kemu.run(spec, seed=seed, data=folder)
    if not run.holds:
        raise RunFailed("\n".join(f"{found.id}: {found.detail}" for found in run.failures) or run.verdict)
    names = inputs.pod_orders[seed][:limit]
    nodes = {clusters.node_name(rank, name): name for rank, name in enumerate(inputs.node_orders[seed])}
    attempts = run.counts["scheduling_attempts"]
    if attempts != len(names):
        raise RunFailed(f"{len(names)} pods had {attempts} attempts; each has one")
    pods = _pods(run)
    placements = []
    for number, name in enumerate(names):
        pod = pods[f"{clusters.WORKLOAD}-{number}"]
        text = pod.metadata.annotations.get(gpu_cards.ANNOTATION, "")
        node = nodes[pod.spec.nodeName] if pod.spec.nodeName else ""
        placements.append(Placement(name, node, gpu_cards.numbers(text) if text else ()))
    return Played(placements, time.process_time() - began)


def _pods(run: kemu.Run) -> dict[str, core_v1_pb2.Pod]:
    """By name, as the store had them last."""
    values: dict[str, bytes] = {}
    for _time_ns, _actor, kind, data in run.events:
        if kind == "store.txn":
            changes = data["changes"]
            values |= {key: value for operation, key, value, *_ in changes if operation == 0 and "/pods/" in key}
    found = (core_v1_pb2.Pod.FromString(value) for value in values.values())
    return {pod.metadata.name: pod for pod in found}


def fingerprint(placements: Sequence[Placement]) -> str:
    """Equal for equal placements."""
    lines = "".join(f"{one.pod} {one.node} {gpu_cards.text_of(one.cards)}\n" for one in placements)
    return hashlib.sha256(lines.encode()).hexdigest()[:16]
