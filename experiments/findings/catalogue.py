"""The experiments of docs/findings.md: where they and their results are, and what the results depend on.

``experiments/NAME.yaml`` quote a document and are small; ``experiments/scale/NAME.yaml`` have a thousand nodes or more.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.findings import proportions
from kemu.emulated.settings import documents
from kemu.lab.checks import registry
from kemu.lab.sweep.experiments import loader
from kemu.lab.sweep.experiments.experiments import Experiment, Limits, Variant
from kemu.lab.sweep.statistics import judging

ROOT = Path(__file__).resolve().parents[2]
EXPERIMENTS = ROOT / "experiments"
SCALE = "scale"
RESULTS = EXPERIMENTS / "results"
ORDER = (
    "queue-and-nomination",
    "two-pass-filtering",
    "second-filtering-pass",
    "nominated-node-first",
    "clear-nominations",
    "creation-rate",
    "grace-periods",
    "backoff-inversion",
    "requeue-all",
    "who-preempts",
    "victim-order",
    "budget-density",
    "cross-node-preemption",
    "victim-search",
    "lower-priority-affinity",
    "number-of-schedulers",
    "gangs-of-schedulers",
    "backfilling",
    "sampling",
    "soft-thresholds",
    "transition-period",
    "ping-pong",
    "autoscaler-cut-off",
    "greedy-tenant",
)
"""Of the sections of the page, but those at scale."""
LARGE_NODES = 1000
"""How many nodes an experiment at scale has at least, and how many the others are repeated on."""
LARGE_SEEDS = 6
"""At least; so many more as the confidence of a claim needs."""
LARGE_SETTINGS = {"timing": {"preset": "realistic", "clientLimits": "none"}}
"""Small clusters have times of their own, which stand for a slow scheduler; a large one has those of a real control
plane, whose clients may send as many requests as they like."""
LARGE_SPARING = {
    "podStatuses": "sparing",
    "eventObjects": "none",
    "checks.disable": [check.id for check in registry.ALL],
}
"""Saves nearly half of the CPU time; no metric depends on it."""
NOT_SPARING = ("transition-period",)
"""Repeated without."""
_FULL_SOON = (
    {"duration": "60s", "workloads[2].start": "15s", "workloads[2].arrivals.every": "10s"},
    "the cluster is full after 12 s, victims end within 5 s, and no important pod ends while others come",
)
LARGE_TIMES: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "creation-rate": (
        {"duration": "190s", "workloads[1].arrivals.count": 1},
        "500 preemptors come within 30 s, from the same second on, and have 100 s more",
    ),
    "cross-node-preemption": _FULL_SOON,
    "victim-search": _FULL_SOON,
}
"""By experiment: shorter times, by path below the spec of its scenario, and why they suffice. Many nodes have as many
pods in a shorter time; but when the pods that matter come, the cluster must be as full as in the small run, and no more
and no fewer of them may end meanwhile."""
LARGE_LIMITS = Limits(events=1_000_000_000, cpu_s=7200)
REPEATS = ("real", "large")
"""What is stored beside the results of an experiment."""


def quoting() -> list[str]:
    """The names of all experiments that quote a document."""
    return [
        path.stem
        for path in sorted(EXPERIMENTS.glob("*.yaml"))
        if "quotes" in documents.read(path)[0].data.get("spec", {})
    ]


def at_scale() -> list[str]:
    return sorted(path.stem for path in (EXPERIMENTS / SCALE).glob("*.yaml"))


def done_at_scale() -> list[str]:
    return [name for name in at_scale() if results(name).exists()]


def file(name: str) -> Path:
    """Of the experiment. Raises SystemExit where there is none."""
    for path in (EXPERIMENTS / f"{name}.yaml", EXPERIMENTS / SCALE / f"{name}.yaml"):
        if path.exists():
            return path
    raise SystemExit(f"{name}: there is no experiment of this name; there are {', '.join([*ORDER, *at_scale()])}")


def results(name: str) -> Path:
    """The small file: means, claims, and the figures of the first seed."""
    folder = file(name).parent.relative_to(EXPERIMENTS)
    return RESULTS / folder / f"{name}.json"


def raw(name: str) -> Path:
    """The table of all cells, a row for each: of an experiment at scale, or of a repeat on ``LARGE_NODES`` nodes."""
    return RESULTS / (SCALE if name in at_scale() else "large") / f"{name}.parquet"


def shown(path: Path) -> str:
    """As a person at the root of the repository names it."""
    return f"experiments/{path.relative_to(EXPERIMENTS)}"


def load(name: str) -> tuple[Experiment, Mapping[str, Any]]:
    """And its ``spec`` as written."""
    path = file(name)
    return loader.load(path), documents.read(path)[0].data["spec"]


def large(name: str) -> Experiment:
    """The experiment on ``LARGE_NODES`` nodes, with as many more pods; only the variants that its claims speak of."""
    experiment, spec = load(name)
    scenario = spec["scenario"]
    groups = scenario.get("autoscaler", {}).get("nodeGroups", ())
    scale = LARGE_NODES // (sum(group["max"] for group in groups) or len(experiment.scenario.nodes))
    times, _ = LARGE_TIMES.get(name, ({}, ""))
    settings = {**LARGE_SETTINGS, "scale": scale, **proportions.settings(scenario, scale), **times}
    if name not in NOT_SPARING:
        settings |= LARGE_SPARING
    found = loader.load(file(name), settings=settings)
    kept = [number for number, variant in enumerate(found.variants) if _is_named(variant, found)]
    return dataclasses.replace(
        found,
        variants=tuple(found.variants[number] for number in kept),
        overrides=tuple(proportions.overrides(found.overrides[number], scale) for number in kept),
        claims=tuple(proportions.claim(each, scale) for each in found.claims),
        seeds=experiment.seeds[: max(LARGE_SEEDS, *(judging.least_seeds(each.confidence) for each in found.claims))],
        limits=LARGE_LIMITS,
    )


def _is_named(variant: Variant, experiment: Experiment) -> bool:
    terms = [term for claim in experiment.claims for term in (claim.left, claim.right) if term.metric is not None]
    return any(all(variant[path] == value for path, value in term.variant.items()) for term in terms)


def digest(experiment: Experiment) -> str:
    """Of what the results depend on: words may be changed without running anything again."""
    whole = {
        **experiment.identity(),
        "seeds": experiment.seeds,
        "metrics": [metric.text for metric in experiment.metrics],
        "claims": [[claim.id, claim.says, claim.confidence] for claim in experiment.claims],
    }
    return hashlib.sha256(json.dumps(whole, sort_keys=True, default=str).encode()).hexdigest()


def stored(name: str) -> dict[str, Any]:
    path = results(name)
    if not path.exists():
        raise SystemExit(f"{shown(path)} is missing: scripts/findings run {name} makes it")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def write(name: str, found: Mapping[str, Any]) -> None:
    path = results(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
