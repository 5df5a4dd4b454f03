"""The ledger of the Jobs that real Kueue takes through its queues sees what would be wrong."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.kueue import ledger, queues, runs
from tests.clients.kueue.ledger import Event

AMBER, CYAN = "amber", "cyan"


def workload(revision: int, job: str, queue: str, cpu: str | None, *conditions: str, succeeded: int = 0) -> Event:
    """One of two pods. ``cpu``: what they hold together; None: it waits."""
    status: dict[str, Any] = {"conditions": [{"type": one, "status": "True"} for one in conditions]}
    if cpu is not None:
        assigned = [{"name": "main", "count": 2, "resourceUsage": {"cpu": cpu}}]
        status["admission"] = {"clusterQueue": queue, "podSetAssignments": assigned}
    if succeeded:
        status["reclaimablePods"] = [{"name": "main", "count": succeeded}]
    metadata = {"name": f"job-{job}", "ownerReferences": [{"name": job}]}
    return Event(revision, float(revision), "MODIFIED", {"kind": "Workload", "metadata": metadata, "status": status})


def pod(revision: int, job: str, queue: str, cpu: str, phase: str) -> Event:
    labels = {ledger.TEAM: queue, "batch.kubernetes.io/job-name": job}
    spec = {"containers": [{"resources": {"requests": {"cpu": cpu}}}]}
    found = {
        "kind": "Pod",
        "metadata": {"name": f"{job}-x", "labels": labels},
        "spec": spec,
        "status": {"phase": phase},
    }
    return Event(revision, float(revision), "MODIFIED", found)


def held(revision: int, job: str, queue: str, cpu: str) -> Event:
    return workload(revision, job, queue, cpu, "QuotaReserved", "Admitted")


def freed(revision: int, job: str, queue: str, cpu: str) -> Event:
    return workload(revision, job, queue, cpu, "QuotaReserved", "Admitted", "Finished")


def test_what_is_freed_can_be_held_again() -> None:
    workloads = [
        workload(1, "a", AMBER, None),
        workload(2, "b", AMBER, None),
        held(3, "a", AMBER, "40"),
        freed(6, "a", AMBER, "40"),
        held(7, "b", AMBER, "38500m"),
    ]
    pods = [
        pod(4, "a", AMBER, "40", "Running"),
        pod(5, "a", AMBER, "40", "Succeeded"),
        pod(8, "b", AMBER, "2", "Pending"),
    ]
    found = ledger.judge(reversed(workloads), pods, queues.QUOTAS)
    assert found.broken == []
    assert found.most_waiting == 2
    assert (found.peaks[AMBER], found.peak) == (40_000, 40_000)
    assert found.admitted == {"job-a": 3.0, "job-b": 7.0}
    assert found.finished == {"job-a": 6.0}


def test_pods_that_have_succeeded_give_back_what_they_had() -> None:
    workloads = [
        held(1, "a", AMBER, "40"),
        workload(2, "a", AMBER, "40", "Admitted", succeeded=1),
        held(3, "b", AMBER, "20"),
        held(4, "c", AMBER, "1"),
    ]
    found = ledger.judge(workloads, [], queues.QUOTAS)
    assert found.broken == [
        "revision 4: admitted Workloads hold 41000m of amber, which may have 40000m",
        "revision 4: admitted Workloads hold 41000m, and the cohort has 40000m",
    ]


def test_more_than_a_queue_may_borrow() -> None:
    found = ledger.judge([held(1, "a", CYAN, "12"), held(2, "b", CYAN, "1m")], [], queues.QUOTAS)
    assert found.broken == ["revision 2: admitted Workloads hold 12001m of cyan, which may have 12000m"]


def test_more_than_the_cohort_has() -> None:
    workloads = [held(1, "a", AMBER, "35"), held(2, "b", CYAN, "6"), freed(3, "a", AMBER, "35")]
    found = ledger.judge(workloads, [], queues.QUOTAS)
    assert found.broken == ["revision 2: admitted Workloads hold 41000m, and the cohort has 40000m"]


def test_pods_hold_more_than_their_workloads() -> None:
    pods = [pod(2, "a", CYAN, "13", "Pending")]
    found = ledger.judge([held(1, "a", CYAN, "1")], pods, queues.QUOTAS)
    assert found.broken == ["revision 2: pods hold 13000m of cyan, which may have 12000m"]


@pytest.mark.parametrize("when", ["never", "later", "no longer"])
def test_a_pod_whose_workload_holds_nothing(when: str) -> None:
    workloads = {
        "never": [],
        "later": [workload(1, "a", AMBER, None), held(3, "a", AMBER, "1")],
        "no longer": [freed(1, "a", AMBER, "1")],
    }[when]
    found = ledger.judge(workloads, [pod(2, "a", AMBER, "1", "Pending")], queues.QUOTAS)
    assert found.broken == ["revision 2: a pod of a is there, whose Workload holds no quota"]


def test_what_did_not_press_says_nothing() -> None:
    """Jobs that never waited would complete, whatever became of quota."""
    found = ledger.judge([held(1, "a", AMBER, "20"), held(2, "b", CYAN, "9")], [], queues.QUOTAS)
    assert runs.pressure(found, 8) == [
        "2 Workloads were admitted, and 0 waited at most: quota held nobody back",
        "all held 29000m at most of 40000m",
        "amber held 20000m at most and borrowed nothing",
    ]
