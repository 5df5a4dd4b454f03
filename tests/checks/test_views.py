"""The checks that judge controllers by what they had seen: each holds on a sound log, and fails if one fact changes."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.lab.checks import registry
from kemu.lab.checks.workloads import surpluses
from kemu.messages.k8s import apps_v1_pb2, batch_v1_pb2
from kemu.runtime.runlog.frames import Entry
from tests.checks.test_controllers import Scene, judged, replica_set

JOB, CRON, GARBAGE, POD_GC = "controller/job", "controller/cronjob", "controller/garbage-collector", "controller/pod-gc"


def sees(log: Scene, seconds: float, actor: str, *resources: str) -> None:
    """Lists of everything, as it is."""
    for resource in resources:
        data = {"watch": f"{resource}#1", "resource": resource, "namespace": "", "label_selector": ""}
        log.add(seconds, actor, "watch.listed", **data, field_selector="", rev=log.revision, objects=0, digest=None)


def acked(log: Scene, seconds: float, actor: str, revision: int, uid: str) -> None:
    """The write is acknowledged, 10 ms after it was asked for."""
    acks = [[10_000_000, revision, log.written[revision][0], uid, 0]]
    log.add(seconds, actor, "client.acked", server="apiserver/0", sent=round(seconds * 1e9), acks=acks)


def asks(log: Scene, seconds: float, name: str, by: str, revision: int) -> None:
    """The API server deletes a pod for a controller."""
    log.add(seconds, "apiserver/0", "api.request", verb="delete", resource="pods", namespace="default", name=name,
            uid=f"uid-{name}", by=by, start=round((seconds - 0.01) * 1e9), rev=revision)  # fmt: skip


# Jobs ----------------------------------------------------------------------------------------------------------------

PARALLEL = "jobs-keep-their-parallelism"


def job(**spec: Any) -> Any:
    found = batch_v1_pb2.Job(spec=batch_v1_pb2.JobSpec(**spec))
    found.metadata.name, found.metadata.namespace, found.metadata.uid = "sum", "default", "sum"
    return found


def running(one: Any) -> Scene:
    log = Scene(JOB)
    log.put(90, "jobs", "sum", one)
    sees(log, 95, JOB, "jobs", "pods")
    return log


def creates(log: Scene, seconds: float, name: str, **fields: Any) -> None:
    revision = log.owned(seconds, name, "Job", "sum", **fields)
    acked(log, seconds + 0.005, JOB, revision, f"uid-{name}")


@pytest.mark.parametrize(("parallelism", "holds"), [(2, True), (1, False)])
def test_a_job_runs_as_many_pods_as_it_may(parallelism: int, holds: bool) -> None:
    log = running(job(parallelism=parallelism, completions=5))
    creates(log, 100, "sum-a")
    creates(log, 100.1, "sum-b")
    assert judged(log, PARALLEL).holds is holds


@pytest.mark.parametrize(("shown", "holds"), [(True, True), (False, False)])
def test_a_pod_counts_until_the_controller_has_seen_its_end(shown: bool, holds: bool) -> None:
    log = running(job(parallelism=1, completions=5))
    creates(log, 100, "sum-a")
    log.owned(101, "sum-a", "Job", "sum", phase="Succeeded")
    if shown:
        sees(log, 101.1, JOB, "pods")
    creates(log, 110, "sum-b")
    assert judged(log, PARALLEL).holds is holds


@pytest.mark.parametrize(("completions", "holds"), [(2, True), (1, False)])
def test_a_job_leaves_it_at_its_completions(completions: int, holds: bool) -> None:
    log = running(job(parallelism=5, completions=completions))
    creates(log, 100, "sum-a")
    log.owned(101, "sum-a", "Job", "sum", phase="Succeeded")
    sees(log, 101.1, JOB, "pods")
    creates(log, 110, "sum-b")
    assert judged(log, PARALLEL).holds is holds


def test_a_parallelism_that_has_changed_counts_when_it_has_been_seen() -> None:
    for seen, holds in ((True, False), (False, True)):
        log = running(job(parallelism=2))
        creates(log, 100, "sum-a")
        log.put(101, "jobs", "sum", job(parallelism=1))
        if seen:
            sees(log, 101.1, JOB, "jobs")
        creates(log, 110, "sum-b")
        assert judged(log, PARALLEL).holds is holds


@pytest.mark.parametrize(("index", "done", "holds"), [(1, "", True), (0, "", False), (1, "1", False), (3, "", False)])
def test_each_index_gets_one_pod(index: int, done: str, holds: bool) -> None:
    one = job(parallelism=3, completions=3, completionMode="Indexed")
    one.status.completedIndexes = done
    log = running(one)
    creates(log, 100, "sum-0", index=0)
    creates(log, 101, "sum-again", index=index)
    assert judged(log, PARALLEL).holds is holds


def test_a_controller_that_starts_anew_knows_what_it_has_listed() -> None:
    log = running(job(parallelism=1))
    creates(log, 100, "sum-a")
    log.add(101, JOB, "actor.started", incarnation=2)
    log.add(102, JOB, "watch.listed", watch="pods#1", resource="pods", namespace="", label_selector="",
            field_selector="", rev=1, objects=0, digest=None)  # fmt: skip
    sees(log, 102, JOB, "jobs")
    creates(log, 103, "sum-b")
    assert judged(log, PARALLEL).holds is True


# What is deleted -----------------------------------------------------------------------------------------------------

KEEPS = "scale-downs-keep-what-is-wanted"
SET = "controller/replicaset"


@pytest.mark.parametrize(("wanted", "late", "holds"), [(2, False, True), (3, False, False), (3, True, True)])
def test_a_scale_down_keeps_what_is_wanted(wanted: int, late: bool, holds: bool) -> None:
    """``late``: it wanted less when it was last seen."""
    log = Scene(SET)
    log.put(10, "replicasets", "web", replica_set("web", 2 if late else wanted))
    for name in ("a", "b", "c"):
        log.owned(11, name, "ReplicaSet", "web")
    sees(log, 20, SET, "replicasets", "pods")
    if late:
        log.put(21, "replicasets", "web", replica_set("web", wanted, generation=2))
    revision = log.owned(30, "a", "ReplicaSet", "web", deleting=30)
    asks(log, 30.005, "a", SET, revision)
    assert judged(log, KEEPS).holds is holds


@pytest.mark.parametrize("phase", ["Running", "Failed"])
@pytest.mark.parametrize("revision", ["new", "old"])
def test_a_stateful_set_keeps_its_ordinals(phase: str, revision: str) -> None:
    who = "controller/statefulset"
    found = apps_v1_pb2.StatefulSet()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = "db", "default", "db"
    found.spec.replicas = found.metadata.generation = found.status.observedGeneration = 1
    found.status.updateRevision = "new"
    log = Scene(who)
    log.put(10, "statefulsets", "db", found)
    labels = {"controller-revision-hash": revision}
    log.owned(11, "db-0", "StatefulSet", "db", labels=labels, phase=phase)
    sees(log, 20, who, "statefulsets", "pods")
    asks(log, 30.005, "db-0", who, log.owned(30, "db-0", "StatefulSet", "db", deleting=30))
    assert judged(log, KEEPS).holds is (phase == "Failed" or revision == "old")


# CronJobs ------------------------------------------------------------------------------------------------------------

POLICY = "cron-jobs-keep-their-policy"


@pytest.mark.parametrize(
    ("policy", "end", "holds"),
    [
        ("Allow", "", True), ("Forbid", "", False), ("Forbid", "Complete", True),
        ("Replace", "", False), ("Replace", "deleted", True),
    ],
)  # fmt: skip
def test_cron_jobs_keep_their_policy(policy: str, end: str, holds: bool) -> None:
    log, first = scheduled(policy)
    if end == "Complete":
        first.status.conditions.add(type=end, status="True")
    elif end:
        first.metadata.deletionTimestamp.seconds = 70
    log.put(70, "jobs", "report-1", first)
    starts(log, 2)
    assert judged(log, POLICY).holds is holds


@pytest.mark.parametrize(
    ("created", "deadline", "suspended", "holds"),
    [(120, 0, False, True), (118, 0, False, False), (150, 60, False, True), (150, 10, False, False),
     (120, 0, True, False)],
)  # fmt: skip
def test_cron_jobs_keep_their_time(created: int, deadline: int, suspended: bool, holds: bool) -> None:
    log, _ = scheduled("Allow", deadline=deadline, suspended=suspended)
    starts(log, 2, created)
    assert judged(log, POLICY).holds is holds


def scheduled(policy: str, deadline: int = 0, suspended: bool = False) -> tuple[Scene, Any]:
    """A CronJob of which the Job of the first minute runs."""
    found = batch_v1_pb2.CronJob()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = "report", "default", "report"
    found.spec.concurrencyPolicy, found.spec.suspend = policy, suspended
    if deadline:
        found.spec.startingDeadlineSeconds = deadline
    found.status.active.add(name="report-1", namespace="default", uid="report-1")
    log = Scene(CRON)
    log.put(61, "cronjobs", "report", found)
    first = minutely(1, 60)
    log.put(61, "jobs", "report-1", first)
    sees(log, 62, CRON, "cronjobs", "jobs")
    return log, first


def minutely(minute: int, created: int) -> Any:
    found = batch_v1_pb2.Job()
    found.metadata.name = found.metadata.uid = f"report-{minute}"
    found.metadata.namespace = "default"
    found.metadata.creationTimestamp.seconds = created
    found.metadata.ownerReferences.add(kind="CronJob", name="report", uid="report", controller=True)
    return found


def starts(log: Scene, minute: int, created: int = 120) -> None:
    revision = log.put(created, "jobs", f"report-{minute}", minutely(minute, created))
    acked(log, created + 0.005, CRON, revision, f"report-{minute}")


# Garbage -------------------------------------------------------------------------------------------------------------


def deleted(log: Scene, seconds: float) -> None:
    data = {"kind": "Pod", "name": "default/web-a", "uid": "uid-web-a", "policy": "Background"}
    log.events.append(Entry(round(seconds * 1e9), GARBAGE, "gc.deleted", data))


@pytest.mark.parametrize(
    ("finalizer", "gone", "holds"),
    [("", True, True), ("example.com/hold", False, False), ("foregroundDeletion", False, True)],
)
def test_garbage_has_no_owner(finalizer: str, gone: bool, holds: bool) -> None:
    log = Scene(GARBAGE)
    owner = replica_set("web", 1)
    log.put(10, "replicasets", "web", owner)
    log.owned(11, "web-a", "ReplicaSet", "web")
    if gone:
        log.txn(20, "/registry/replicasets/default/web", None)
    else:
        owner.metadata.deletionTimestamp.seconds = 20
        owner.metadata.finalizers.append(finalizer)
        log.put(20, "replicasets", "web", owner)
    revision = log.owned(30, "web-a", "ReplicaSet", "web", deleting=30)
    acked(log, 30.005, GARBAGE, revision, "uid-web-a")
    deleted(log, 30.006)
    assert judged(log, "garbage-has-no-owner").holds is holds


def test_another_owner_of_the_same_name_is_not_the_owner() -> None:
    log = Scene(GARBAGE)
    log.owned(11, "web-a", "ReplicaSet", "web")
    other = replica_set("web", 1)
    other.metadata.uid = "another"
    log.put(12, "replicasets", "web", other)
    revision = log.owned(30, "web-a", "ReplicaSet", "web", deleting=30)
    acked(log, 30.005, GARBAGE, revision, "uid-web-a")
    deleted(log, 30.006)
    assert judged(log, "garbage-has-no-owner").holds is True


COLLECTED = "pods-are-collected-for-a-reason"


def collected(what: str, at: float = 100, **limits: Any) -> bool | None:
    """A pod that is removed at that time; its node went at 50 s if it is ``lost``."""
    log = Scene(POD_GC)
    taints = [("node.kubernetes.io/out-of-service", "NoExecute")] if what == "out of service" else []
    log.node_status(5, "n1", {"Ready": "Unknown"}, taints)
    node = {} if what in ("stuck", "waits") else {"node": "n1"}
    log.pod(10, "a", **node, phase="Succeeded" if what == "ended" else "Pending")
    if what in ("stuck", "out of service"):
        log.pod(20, "a", deleting=20)
    if what == "lost":
        log.txn(50, "/registry/nodes/n1", None)
    sees(log, 60, POD_GC, "nodes", "pods")
    asks(log, at + 0.005, "a", POD_GC, log.gone(at, "a"))
    return judged(log, COLLECTED, **limits).holds


def test_pods_are_collected_for_a_reason() -> None:
    assert collected("lost") is True
    assert collected("lost", at=80) is False
    assert collected("exists") is False
    assert collected("stuck") is True
    assert collected("waits") is False
    assert collected("out of service") is True
    assert collected("ended") is False
    assert collected("ended", terminated_pods=0) is False
    assert collected("ended", terminated_pods=1) is False


def test_too_many_pods_that_have_ended_are_collected() -> None:
    log = Scene(POD_GC)
    log.node(5, "n1")
    for name in ("a", "b"):
        log.pod(10, name, node="n1", phase="Succeeded")
    sees(log, 60, POD_GC, "nodes", "pods")
    asks(log, 100.005, "a", POD_GC, log.gone(100, "a"))
    assert judged(log, COLLECTED, terminated_pods=1).holds is True
    assert judged(log, COLLECTED, terminated_pods=2).holds is False


@pytest.mark.parametrize(("lost", "holds"), [(False, False), (True, None)])
def test_after_a_loss_of_the_store_nobody_is_judged(lost: bool, holds: bool | None) -> None:
    log = running(job(parallelism=0))
    creates(log, 100, "sum-a")
    check = surpluses.JobsKeepTheirParallelism
    judge = registry.Judge(disabled=[one.id for one in registry.ALL if one is not check])
    for event in log.events[:-1]:
        judge.feed(*event)
    for one in judge._checks if lost else ():
        one.rolled_back(99, judge.history)
    judge.feed(*log.events[-1])
    assert [result.holds for result in judge.results()] == [holds]
