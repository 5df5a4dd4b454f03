"""The shipped scenarios: each can be read, says what it shows, and its resolved document says the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.lab.bench.clusters import large_clusters
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.scenarios import Scenario
from tests import traces
from tests.scenario.test_loading import same
from tests.scenario.texts import SCENARIOS

FILES = sorted(SCENARIOS.glob("*/*.yaml"))
SEEDS = {
    "multi-scheduler-race", "non-cooperating-schedulers-loop", "preemption-example-1", "preemption-example-2",
    "preemption-example-3", "preemption-example-4", "starvation", "victim-choice", "bin-packing", "node-affinity",
    "node-selector", "non-preempting-priority", "pod-affinity", "pod-overhead", "redis-and-web-servers",
    "taints-and-tolerations", "avoid-evicted-node", "cross-node-preemption", "disruption-budgets",
    "lower-priority-affinity", "preemption-eligibility", "qos-first-victims", "who-preempts", "critical-static-pod",
    "preemption-then-eviction", "eviction-ping-pong", "soft-eviction-threshold", "hard-eviction-threshold",
    "node-condition-oscillation", "minimum-eviction-reclaim", "node-level-reclaim", "disk-inode-and-pid-pressure",
    "local-storage-limits", "out-of-memory-order", "out-of-memory-limit", "toleration-seconds", "no-execute-taint",
    "system-reserved", "daemonset-under-pressure", "lost-node-replacements",
    "drain-with-a-budget", "affinity-to-a-nominated-pod", "nominated-node-first", "percentage-above-100",
    "memcg-notification", "housekeeping-interval", "active-file-memory",
    "victim-search", "required-during-execution",
}  # fmt: skip


def load(file: Path) -> Scenario:
    few = large_clusters.scaled(file, 100) if file.parent.name == large_clusters.FOLDER else None
    return loader.load(file, traces.folder(), few)


def test_every_worked_example_of_the_source_documents_is_there() -> None:
    assert {file.stem for file in FILES if file.parent.name == "seeds"} == SEEDS


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_it_can_be_read_and_written_again(file: Path) -> None:
    scenario = load(file)
    assert scenario.name == file.stem
    assert len(scenario.description) > 80
    for _, variant in loader.variants(scenario):
        assert variant.expectations
        text = variant.to_yaml()
        again = loader.loads(text, data_dir=traces.folder())
        assert same(again, variant)
        assert again.to_yaml() == text
    assert len(loader.loads(scenario.to_yaml(), data_dir=traces.folder()).variants) == len(scenario.variants)
