"""Jobs as the real controller runs them (v1.36.3)."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.controllers.jobs import gangs, intervals
from kemu.emulated.objects import meta
from kemu.messages.k8s import batch_v1_pb2, scheduling_v1alpha2_pb2
from tests.controllers.test_node_failures import Played, play

NODE = 'nodes: [{name: n1, allocatable: {cpu: "64", memory: 256Gi, pods: "500"}}]'


def job(name: str, spec: dict[str, Any] | None = None, run_s: int = 20, exit_code: int = 0) -> str:
    """As an item of ``manifests``."""
    ends = {"kemu.dev/run-seconds": str(run_s), "kemu.dev/exit-code": str(exit_code)}
    template = {"metadata": {"annotations": ends}, "spec": {"restartPolicy": "Never", "containers": [{"name": "main"}]}}
    manifest = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **(spec or {})},
    }
    return f"- {json.dumps(manifest)}\n"


def last(found: Played, name: str) -> Any:
    """The Job as it was last written."""
    key = f"/registry/jobs/default/{name}"
    return batch_v1_pb2.Job.FromString([value for _, where, value in found.written if where == key][-1])


def created_s(found: Played, prefix: str) -> list[float]:
    return sorted(round(pod.created_ns / 1e9) for pod in found.history.pods.values() if pod.key.startswith(prefix))


def test_an_indexed_job_names_its_pods_by_their_index(tmp_path: Path) -> None:
    found = play(tmp_path, f"""
        duration: 3m
        {NODE}
        manifests:
        {job("pi", {"completions": 3, "parallelism": 2, "completionMode": "Indexed"})}
    """)  # fmt: skip
    status = last(found, "pi").status
    assert (status.succeeded, status.failed, status.completedIndexes) == (3, 0, "0-2")
    assert [condition.type for condition in status.conditions] == ["SuccessCriteriaMet", "Complete"]
    pods = sorted(found.pods.values(), key=lambda pod: pod.metadata.name)
    assert [pod.spec.hostname for pod in pods] == ["pi-0", "pi-1", "pi-2"]
    assert [pod.metadata.name[:5] for pod in pods] == ["pi-0-", "pi-1-", "pi-2-"]
    assert not any(pod.metadata.finalizers for pod in pods)


def test_the_backoff_doubles_from_ten_seconds(tmp_path: Path) -> None:
    """Each failure is noticed a second after its end, when the batch of events is synced."""
    found = play(tmp_path, f"""
        duration: 5m
        {NODE}
        manifests:
        {job("bad", {"backoffLimit": 3}, run_s=1, exit_code=1)}
    """)  # fmt: skip
    times = created_s(found, "default/bad")
    assert [later - earlier for earlier, later in itertools.pairwise(times)] == [11, 21, 41]
    failed = meta.get_condition(last(found, "bad").status.conditions, "Failed")
    assert failed is not None
    assert (failed.reason, failed.message) == ("BackoffLimitExceeded", "Job has reached the specified backoff limit")


def test_a_suspended_job_deletes_its_pods_and_starts_its_time_anew(tmp_path: Path) -> None:
    found = play(tmp_path, f"""
        duration: 3m
        {NODE}
        manifests:
        {job("nap", {"parallelism": 2, "completions": 2, "activeDeadlineSeconds": 45}, run_s=30)}
        events:
          - {{at: 10s, patch: {{kind: Job, name: nap, merge: {{spec: {{suspend: true}}}}}}}}
          - {{at: 60s, patch: {{kind: Job, name: nap, merge: {{spec: {{suspend: false}}}}}}}}
    """)  # fmt: skip
    assert created_s(found, "default/nap") == [0, 0, 60, 60]
    status = last(found, "nap").status
    assert (status.succeeded, status.failed) == (2, 0)
    assert meta.has_condition(status.conditions, "Complete")


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", ""), ("0-2,4", "0-2,4"), ("0,1", "0,1"), ("3,4,5", "3-5"), ("8-20", "8,9"), ("x,1", "1")],
)
def test_intervals_are_read_and_written(text: str, expected: str) -> None:
    assert intervals.render(intervals.parse(text, 10)) == expected


GANGS = "schedulers: [{name: default-scheduler, config: {featureGates: {GenericWorkload: true, GangScheduling: true}}}]"


def groups(found: Played) -> dict[str, Any]:
    """PodGroups as they were last written, by name."""
    prefix = "/registry/podgroups/default/"
    return {
        where.removeprefix(prefix): scheduling_v1alpha2_pb2.PodGroup.FromString(value)
        for _, where, value in found.written
        if where.startswith(prefix)
    }


@pytest.mark.thorough
def test_the_pods_of_an_indexed_job_are_a_gang(tmp_path: Path) -> None:
    """``job_scheduling_manager.go``: for three pods there is room, for six there is none, and none of them starts."""
    indexed = {"completionMode": "Indexed"}
    found = play(tmp_path, f"""
        duration: 10s
        nodes: [{{namePrefix: n, count: 2, allocatable: {{cpu: "4", memory: 8Gi, pods: "2"}}}}]
        {GANGS}
        controllers: {{job: {{featureGates: {{WorkloadWithJob: true}}}}}}
        manifests:
        {job("three", {"completions": 3, "parallelism": 3, **indexed}, run_s=600)}
        {job("six", {"completions": 6, "parallelism": 6, **indexed}, run_s=600)}
        {job("one", {"completions": 1, "parallelism": 1, **indexed}, run_s=5)}
        {job("more", {"completions": 4, "parallelism": 2, **indexed}, run_s=5)}
    """)  # fmt: skip
    made = groups(found)
    assert sorted(group.spec.schedulingPolicy.gang.minCount for group in made.values()) == [3, 6]
    by_job = {group.metadata.ownerReferences[0].name: name for name, group in made.items()}
    nodes: dict[str, list[str]] = {"three": [], "six": []}
    for pod in found.pods.values():
        owner = pod.metadata.ownerReferences[0].name
        assert pod.spec.schedulingGroup.podGroupName == by_job.get(owner, "")
        if owner in nodes:
            nodes[owner].append(pod.spec.nodeName)
    assert len(nodes["three"]) == 3
    assert all(nodes["three"])
    assert nodes["six"] == [""] * 6


@pytest.mark.parametrize(("disabled", "parallelism"), [("", [3, 1]), ("JobValidation", [2, 1])])
def test_only_the_parallelism_of_a_gang_stays(tmp_path: Path, disabled: str, parallelism: list[int]) -> None:
    found = play(tmp_path, f"""
        duration: 6s
        {NODE}
        {GANGS}
        apiServers: {{disableAdmissionPlugins: [{disabled}]}}
        controllers: {{job: {{featureGates: {{WorkloadWithJob: true}}}}}}
        manifests:
        {job("three", {"completionMode": "Indexed", "completions": 3, "parallelism": 3}, run_s=600)}
        {job("more", {"completionMode": "Indexed", "completions": 4, "parallelism": 2}, run_s=600)}
        events:
          - {{at: 3s, patch: {{kind: Job, name: three, merge: {{spec: {{parallelism: 2, completions: 2}}}}}}}}
          - {{at: 3s, patch: {{kind: Job, name: more, merge: {{spec: {{parallelism: 1}}}}}}}}
    """)  # fmt: skip
    assert [last(found, name).spec.parallelism for name in ("three", "more")] == parallelism


@pytest.mark.parametrize(
    ("job_name", "uid", "workload", "group"),
    [
        ("three", "91551b02-37be-4200-a403-14171968087d", "three-989767c8c", "three-989767c8c-three-pgt-0-85d9d47bc9"),
        ("six", "a8534184-c1ab-4e74-8d02-6f7435d8529b", "six-55f74b877c", "six-55f74b877c-six-pgt-0-6c8c756f45"),
    ],
)
def test_gangs_of_jobs_have_the_names_that_the_real_controller_made(
    job_name: str, uid: str, workload: str, group: str
) -> None:
    """By a kube-controller-manager v1.36.3 with WorkloadWithJob."""
    assert gangs.workload_name(job_name, uid) == workload
    assert gangs.group_name(workload, f"{job_name}-pgt-0") == group


@pytest.mark.parametrize(("lengths", "left"), [((250, 3), (239, 3)), ((2, 250), (2, 239)), ((200, 200), (121, 120))])
def test_names_that_are_too_long_share_the_room(lengths: tuple[int, int], left: tuple[int, int]) -> None:
    """As ``TestComputePodGroupName`` asks."""
    name = gangs.group_name("w" * lengths[0], "t" * lengths[1])
    workload, template, suffix = name.split("-")
    assert (len(workload), len(template)) == left
    assert len(name) == 253
    assert len(suffix) > 8
