"""Groups of pods are scheduled as the real scheduler does with the gates GenericWorkload, GangScheduling,
WorkloadAwarePreemption and TopologyAwareWorkloadScheduling."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kemu
from kemu.emulated.client import clients
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.configuration.timings import Timing
from kemu.emulated.scheduler.experiments import switches
from kemu.emulated.scheduler.groups.attempts import GroupResult
from kemu.emulated.scheduler.groups.parts import GroupQueue
from kemu.emulated.scheduler.groups.preemption import GroupPreemption
from kemu.emulated.scheduler.loop import Engine
from kemu.emulated.scheduler.plugins import in_tree
from kemu.emulated.scheduler.queue.queues import SchedulingQueue
from kemu.lab.conformance import agreements, case_files, registry
from kemu.lab.conformance.scheduler import timelines
from kemu.messages.k8s.scheduling_v1alpha2_pb2 import PodGroup
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import sim
from tests.conformance.generators import groups
from tests.samples import step
from tests.scheduler import objects

DATA = Path(__file__).parent / "data" / "groups"
TOP = Path(__file__).parents[2]


@pytest.mark.parametrize(("family", "least"), [("group-decisions", 800), ("gangs", 150)])
def test_every_case_agrees(family: str, least: int) -> None:
    cases = list(case_files.read(DATA / f"{family}.jsonl.gz"))
    assert len(cases) >= least
    report = agreements.judge(registry.kind("timeline"), cases[:: step(len(cases), 150)])
    assert {one.id: one.differences for one in report.disagreements} == {}


def test_a_case_is_made_again_from_its_seed() -> None:
    cases = {case.id: case.question for case in case_files.read(DATA / "group-decisions.jsonl.gz")}
    for number in range(3):
        again = groups.case("group-decisions", 1, number)
        assert again["id"] not in cases or cases[again["id"]] == again


def test_the_condition_of_a_group_counts() -> None:
    case = next(iter(case_files.read(DATA / "gangs.jsonl.gz")))
    answered = timelines.answer(case.question)
    assert timelines.agrees(case.expect, answered) == []
    wrong = copy.deepcopy(answered)
    wrong["timeline"] = [one for one in wrong["timeline"] if not one["pod"].startswith("group/")]
    assert timelines.agrees(case.expect, wrong)


def test_without_the_rule_of_retries_timelines_disagree(monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison can fail: were members requeued by events, as other pods are, the recorded retries would lack."""
    monkeypatch.setattr(GroupQueue, "failed", SchedulingQueue.failed)
    cases = list(case_files.read(DATA / "gangs.jsonl.gz"))[:20]
    assert any(timelines.agrees(case.expect, timelines.answer(case.question)) for case in cases)


def test_the_order_of_hashes_decides_nothing() -> None:
    """Two processes with different hash seeds give one answer."""
    program = (
        "import json; from tests.conformance.generators import groups; "
        "from kemu.lab.conformance.scheduler import timelines; "
        "print(json.dumps([timelines.answer(groups.case('gangs', 9, number)) for number in range(4)]))"
    )
    outputs = [
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            check=True,
            cwd=TOP,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]
    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("is_seen", [True, False])
def test_a_pod_that_is_bound_while_a_group_asks_extenders_is_no_longer_assumed(is_seen: bool) -> None:
    """It is taken away to see whether the group fits then, and put back; its binding is seen in between."""

    async def preempt(runtime: SimRuntime) -> tuple[list[str], bool, str]:
        env = runtime.env("scheduler")
        gates = dict.fromkeys(("GenericWorkload", "GangScheduling", "WorkloadAwarePreemption"), True)
        configuration = configurations.configuration_of({"featureGates": gates})
        engine = Engine(env, clients.Client(env), configuration, switches.policy_of({}), Timing({}), in_tree.REGISTRY)
        cluster, known, evicted = engine.cluster, engine.handle.groups, []
        assert known is not None
        engine.node_feed.on_add(objects.node("n"))
        member = objects.pod("member", priority=9, schedulingGroup={"podGroupName": "g"})
        engine.pod_feed.on_add(member)
        known.objects["default", "g"] = PodGroup(metadata={"name": "g", "namespace": "default"}, spec={"priority": 9})
        cluster.assume(cluster.pending(objects.pod("old")), "n")
        evictor: Any = SimpleNamespace(start=lambda group, found: evicted.extend(one.name for one in found.victims))
        preemption = GroupPreemption(env, engine.handle, known, evictor, engine.deciders)

        async def attempt(_: bool) -> GroupResult:
            if is_seen:
                cluster.assumed.pop("uid-old", None)
            return GroupResult([], fits="uid-old" not in cluster.pods)

        await preemption.preempt(("default", "g"), [engine.queue.pods["uid-member"]], attempt)
        return evicted, "uid-old" in cluster.assumed, cluster.pods["uid-old"].node_name

    assert sim(preempt) == (["old"], not is_seen, "n")


@pytest.mark.parametrize(("behind", "written"), [("1ms", ["Scheduled"]), ("20ms", ["Scheduled", "Unschedulable"])])
def test_with_its_watch_behind_a_scheduler_unsays_that_a_group_is_scheduled(behind: str, written: list[str]) -> None:
    """It goes on at once with the member that waits, as ``kemu conformance live`` has seen kube-scheduler do."""
    member = {
        "schedulingGroup": {"podGroupName": "g"},
        "containers": [{"name": "c", "resources": {"requests": {"cpu": 2}}}],
    }
    group = {"metadata": {"name": "g"}, "spec": {"schedulingPolicy": {"gang": {"minCount": 1}}}}
    gates = {"GenericWorkload": True, "GangScheduling": True}
    spec = {
        "duration": "5100ms",
        "timing": {"watchLatency": behind},
        "nodes": [{"name": "n", "allocatable": {"cpu": 2, "memory": "1Gi", "pods": 9}}],
        "schedulers": [{"name": "default-scheduler", "config": {"featureGates": gates}}],
        "manifests": [{"apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup", **group}],
        "workloads": [{"name": "p", "start": "5s", "arrivals": {"count": 2}, "pods": {"spec": member}}],
    }
    run = kemu.run({"apiVersion": "kemu.dev/v1", "kind": "Scenario", "metadata": {"name": "behind"}, "spec": spec})
    changes = [one for entry in run.events if entry.kind == "store.txn" for one in entry.data["changes"]]
    groups = [PodGroup.FromString(value) for _, key, value, *_ in changes if key.startswith("/registry/podgroups/")]
    assert [one.reason for group in groups for one in group.status.conditions] == written
