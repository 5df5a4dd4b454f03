"""Kueue's queues: Jobs wait for quota, borrow it, are preempted, and give it back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from kemu import errors
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner


def group(quota: int) -> list[dict[str, Any]]:
    resources = [{"name": "cpu", "nominalQuota": quota}]
    return [{"coveredResources": ["cpu"], "flavors": [{"name": "default", "resources": resources}]}]


def queue(name: str, quota: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "cohortName": "all", "resourceGroups": group(quota), **more}


def job(name: str, to: str, cpu: str, run_s: int = 600, **more: Any) -> dict[str, Any]:
    pods = {
        "metadata": {"annotations": {"kemu.dev/run-seconds": str(run_s)}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}]},
    }
    labels = {"kueue.x-k8s.io/queue-name": to}
    spec = {"suspend": True, "template": pods, **more}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels}, "spec": spec}


def played(tmp_path: Path, queues: dict[str, Any], jobs: list[dict[str, Any]], **spec: Any) -> dict[str, int]:
    document = {
        "apiVersion": "kemu.dev/v1",
        "kind": "Scenario",
        "metadata": {"name": "t"},
        "spec": {
            "duration": "60s",
            "nodes": [{"name": "node-1", "allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}}],
            "queues": queues,
            "manifests": jobs,
            **spec,
        },
    }
    path = tmp_path / "t.yaml"
    path.write_text(yaml.safe_dump(document))
    return runner.run_all(loader.load(path), runner.Options(out=tmp_path / "run", runtime="sim"))[0]["counts"]


def test_a_job_waits_until_another_one_has_ended(tmp_path: Path) -> None:
    jobs = [job("first", "a", "3", run_s=20), job("second", "a", "3", run_s=20)]
    found = played(tmp_path, {"clusterQueues": [queue("a", 4)]}, jobs)
    assert (found["jobs_admitted"], found["pods_running"], found["pods_succeeded"]) == (2, 2, 2)


def test_a_job_counts_with_all_of_its_pods(tmp_path: Path) -> None:
    jobs = [job("wide", "a", "1", parallelism=5, completions=5), job("narrow", "a", "1")]
    found = played(tmp_path, {"clusterQueues": [queue("a", 4)]}, jobs)
    assert (found["jobs_admitted"], found["pods_created"]) == (1, 1)


def test_strict_queues_let_nobody_pass(tmp_path: Path) -> None:
    queues = {"clusterQueues": [queue("a", 4, queueingStrategy="StrictFIFO")]}
    events = [{"at": "10s", "create": job("narrow", "a", "1")}]
    found = played(tmp_path, queues, [job("wide", "a", "5")], events=events)
    assert found["jobs_admitted"] == 0


def test_what_was_lent_is_reclaimed(tmp_path: Path) -> None:
    queues = {"clusterQueues": [queue("a", 4, preemption={"reclaimWithinCohort": "Any"}), queue("b", 0)]}
    events = [{"at": "10s", "create": job("owner", "a", "4")}]
    found = played(tmp_path, queues, [job("guest", "b", "4")], events=events)
    assert (found["jobs_admitted"], found["jobs_preempted"]) == (2, 1)


def test_lending_limits_keep_quota_free(tmp_path: Path) -> None:
    lender = queue("a", 4)
    lender["resourceGroups"][0]["flavors"][0]["resources"][0]["lendingLimit"] = 1
    found = played(tmp_path, {"clusterQueues": [lender, queue("b", 0)]}, [job("guest", "b", "2")])
    assert found["jobs_admitted"] == 0


def test_the_next_flavor_is_tried(tmp_path: Path) -> None:
    flavors = [
        {"name": name, "resources": [{"name": "cpu", "nominalQuota": quota}]} for name, quota in (("x", 1), ("y", 4))
    ]
    one = queue("a", 0)
    one["resourceGroups"][0]["flavors"] = flavors
    found = played(tmp_path, {"clusterQueues": [one]}, [job("first", "a", "1"), job("second", "a", "4")])
    assert found["jobs_admitted"] == 2


def test_a_restarted_actor_knows_what_it_admitted(tmp_path: Path) -> None:
    jobs = [job("first", "a", "3", run_s=30), job("second", "a", "3", run_s=10)]
    chaos = [{"at": "10s", "for": "2s", "crash": {"actor": "controller/kueue"}}]
    found = played(tmp_path, {"clusterQueues": [queue("a", 4)]}, jobs, chaos=chaos)
    assert (found["jobs_admitted"], found["jobs_preempted"], found["pods_succeeded"]) == (2, 0, 2)


@pytest.mark.parametrize(
    ("queues", "message"),
    [
        ({"clusterQueues": [queue("a", 1), queue("a", 1)]}, "a stands there twice"),
        ({"clusterQueues": [queue("a", 1)], "localQueues": [{"name": "l", "clusterQueue": "b"}]}, "no ClusterQueue b"),
        ({"clusterQueues": [queue("a", 1)], "cohorts": [{"name": "x", "parentName": "x"}]}, "below the cohort itself"),
        ({"clusterQueues": [queue("a", 1, preemption={"withinClusterQueue": "Any"})]}, "must be Never, LowerPriority"),
    ],
)
def test_what_is_wrong_with_queues(queues: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(errors.KemuError, match=message):
        played(tmp_path, queues, [])
