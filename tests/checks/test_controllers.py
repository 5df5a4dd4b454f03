"""The checks of what controllers and kubelets decide: each holds on a sound log, and fails when one fact is changed."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kemu.lab.checks.workloads import owners, shortages
from kemu.messages.k8s import apps_v1_pb2, batch_v1_pb2, coordination_v1_pb2, core_v1_pb2, policy_v1_pb2
from tests.checks.logs import Log, judged


class Scene(Log):
    """With actors that are up from the beginning."""

    def __init__(self, *actors: str) -> None:
        super().__init__()
        for actor in actors:
            self.add(0, actor, "actor.started", incarnation=1)

    def put(self, seconds: float, resource: str, name: str, obj: Any) -> int:
        return self.txn(seconds, f"/registry/{resource}/default/{name}", obj.SerializeToString(deterministic=True))

    def owned(self, seconds: float, name: str, kind: str, owner: str, **fields: Any) -> int:
        """A pod of a workload whose UID is its name. ``ready``, ``index``, and what :meth:`pod` knows."""
        pod = self.pods.setdefault(name, core_v1_pb2.Pod())
        if not pod.metadata.name:
            pod.metadata.name, pod.metadata.namespace, pod.metadata.uid = name, "default", f"uid-{name}"
            pod.metadata.ownerReferences.add(kind=kind, name=owner, uid=owner, controller=True)
            pod.spec.containers.add().name = "main"
        if "index" in fields:
            pod.metadata.annotations["batch.kubernetes.io/job-completion-index"] = str(fields["index"])
        if "ready" in fields:
            del pod.status.conditions[:]
            pod.status.conditions.add(type="Ready", status="True" if fields["ready"] else "False")
        known = {name: value for name, value in fields.items() if name not in ("ready", "index")}
        return self.pod(seconds, name, **known)


def replica_set(name: str, replicas: int, owner: str = "", generation: int = 1) -> Any:
    found = apps_v1_pb2.ReplicaSet()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = name, "default", name
    found.metadata.generation = generation
    found.spec.replicas = replicas
    if owner:
        found.metadata.ownerReferences.add(kind="Deployment", name=owner, uid=owner, controller=True)
    return found


# Workloads -----------------------------------------------------------------------------------------------------------

LACK = "workloads-create-what-they-lack"


def short_set(created_s: float | None) -> Scene:
    log = Scene("controller/replicaset/0")
    log.put(10, "replicasets", "web", replica_set("web", 2))
    log.owned(11, "web-a", "ReplicaSet", "web")
    if created_s is not None:
        log.owned(created_s, "web-b", "ReplicaSet", "web")
    return log


def test_a_replica_set_creates_what_it_lacks() -> None:
    log = short_set(20)
    log.ended(100)
    assert judged(log, LACK).holds is True


def test_a_replica_set_that_lacks_a_pod() -> None:
    log = short_set(None)
    log.ended(100)
    assert judged(log, LACK).detail == (
        "ReplicaSet web has 1 of 2 pods, from 11.000 s to 100.000 s; controller/replicaset had 89.000 s"
    )


def test_an_owner_that_is_deleted_in_the_foreground_lacks_nothing() -> None:
    log = short_set(20)
    web = replica_set("web", 2)
    web.metadata.deletionTimestamp.seconds = 30
    log.put(30, "replicasets", "web", web)
    log.owned(31, "web-b", "ReplicaSet", "web", deleting=31)
    log.ended(100)
    assert judged(log, LACK).holds is True


def test_a_pod_that_is_deleted_is_lacking_again() -> None:
    log = short_set(20)
    log.owned(30, "web-b", "ReplicaSet", "web", deleting=30)
    log.ended(100)
    assert judged(log, LACK).holds is False


@pytest.mark.parametrize("excuse", ["refused", "crashed", "partitioned", "nobody"])
def test_who_cannot_create_pods_is_not_asked(excuse: str) -> None:
    log = short_set(None)
    who = "controller/replicaset/0"
    if excuse == "refused":
        log.add(12, "apiserver/0", "api.refused", verb="create", resource="pods", namespace="default", name="x", uid="",
                by=who, start=0, reason="Forbidden", message="exceeded quota: q")  # fmt: skip
    elif excuse == "crashed":
        log.add(12, who, "actor.crashed", step="")
    elif excuse == "partitioned":
        log.add(12, "chaos", "chaos.begin", id="p", what="partition", between=[[who], ["apiserver/0"]])
    else:
        log.events = [event for event in log.events if event.kind != "actor.started"]
    log.ended(100)
    assert judged(log, LACK).holds is not False


def stateful_set(replicas: int) -> Any:
    found = apps_v1_pb2.StatefulSet()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = "db", "default", "db"
    found.spec.replicas = replicas
    return found


def test_a_stateful_set_goes_on_when_a_pod_is_ready() -> None:
    for ready, holds in ((True, False), (False, True)):
        log = Scene("controller/statefulset")
        log.put(10, "statefulsets", "db", stateful_set(2))
        log.owned(11, "db-0", "StatefulSet", "db", ready=ready)
        log.ended(100)
        assert judged(log, LACK).holds is holds


def _plainly(owner: owners.Owner) -> str:
    """What a look at all pods says of the next one that a StatefulSet lacks."""
    spec = owner.value.spec
    there = {pod.name: pod for pod in owner.pods.values()}
    for ordinal in range(spec.ordinals.start, spec.ordinals.start + spec.replicas):
        pod = there.get(f"{owner.name}-{ordinal}")
        if pod is None:
            return f"lacks the pod {ordinal}"
        if spec.podManagementPolicy != "Parallel" and (not pod.ready or spec.minReadySeconds):
            return ""
    return ""


@pytest.mark.parametrize("seed", range(20))
def test_what_a_stateful_set_lacks_is_what_a_look_at_all_its_pods_says(seed: int) -> None:
    random = Random(seed)
    owner = owners.Owner("StatefulSet", "default/db", "db", stateful_set(5), 0, stateful_set(5))
    ordinals = None
    said = set()
    for step in range(2000):
        draw = random.random()
        name = f"default/db-{random.randrange(12)}"
        pod = next((pod for pod in owner.pods.values() if pod.name == name), None)
        if draw < 0.05:
            value = stateful_set(random.randrange(12))
            value.spec.ordinals.start = random.choice((0, 0, 0, 2))
            value.spec.podManagementPolicy = random.choice(("OrderedReady", "OrderedReady", "Parallel"))
            value.spec.minReadySeconds = random.choice((0, 0, 0, 5))
            owner.value = value
        elif pod is None:
            pod = owner.pods[f"uid-{step}"] = owners.Pod(f"uid-{step}", name, "db", step, ready=draw < 0.7)
            if ordinals is not None:
                ordinals.changed(pod, False)
        else:
            pod.ready = draw < 0.8
            if draw > 0.9:
                del owner.pods[pod.uid]
            if ordinals is not None:
                ordinals.changed(pod, draw > 0.9)
        if step == 100:
            ordinals = shortages._Ordinals(owner)
        if ordinals is not None:
            assert ordinals.missing() == _plainly(owner), step
            said.add(ordinals.asked)
    assert len(said) > 8


def test_a_change_of_one_pod_of_a_big_stateful_set_is_cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    passes = shortages._Ordinals._passes

    def counted(self: shortages._Ordinals, ordinal: int) -> bool:
        nonlocal looks
        looks += 1
        return passes(self, ordinal)

    monkeypatch.setattr(shortages._Ordinals, "_passes", counted)
    log = Scene("controller/statefulset")
    log.put(10, "statefulsets", "db", stateful_set(400))
    for number in range(400):
        log.owned(11, f"db-{number}", "StatefulSet", "db", ready=True)
    for number in reversed(range(400)):
        for ready in (False, True):
            log.owned(12, f"db-{number}", "StatefulSet", "db", ready=ready)
    log.ended(100)
    assert judged(log, LACK).holds is True
    assert 1200 <= looks <= 6 * 1200


def test_a_job_runs_as_many_as_it_may() -> None:
    job = batch_v1_pb2.Job()
    job.metadata.name, job.metadata.namespace, job.metadata.uid = "sum", "default", "sum"
    job.spec.parallelism = job.spec.completions = 2
    for more, holds in ((True, True), (False, False)):
        log = Scene("controller/job")
        log.put(10, "jobs", "sum", job)
        log.owned(11, "sum-a", "Job", "sum")
        if more:
            log.owned(12, "sum-b", "Job", "sum")
        log.ended(100)
        assert judged(log, LACK).holds is holds
    log = Scene("controller/job")
    log.put(10, "jobs", "sum", job)
    log.owned(11, "sum-a", "Job", "sum")
    log.owned(11, "sum-b", "Job", "sum")
    log.owned(20, "sum-b", "Job", "sum", phase="Failed")
    log.ended(100)
    assert judged(log, LACK).holds is True  # It has its back-off.


def test_a_daemon_set_has_a_pod_on_each_node_that_suits() -> None:
    daemon = apps_v1_pb2.DaemonSet()
    daemon.metadata.name, daemon.metadata.namespace, daemon.metadata.uid = "agent", "default", "agent"
    for taint, holds in (("", False), ("mine", None), ("node.kubernetes.io/unschedulable", False)):
        log = Scene("controller/daemonset")
        log.put(1, "daemonsets", "agent", daemon)
        log.node_status(5, "n1", {}, [(taint, "NoSchedule")] if taint else [])
        log.ended(100)
        assert judged(log, LACK).holds is holds


# Rollouts and orders -------------------------------------------------------------------------------------------------


def rollout(*sizes: tuple[float, str, int], ready: int = 3) -> Scene:
    """Of three pods, with maxSurge 1 and maxUnavailable 1; ``old`` has three pods."""
    deployment = apps_v1_pb2.Deployment()
    deployment.metadata.name, deployment.metadata.namespace, deployment.metadata.uid = "web", "default", "web"
    deployment.spec.replicas = 3
    deployment.spec.strategy.type = "RollingUpdate"
    deployment.spec.strategy.rollingUpdate.maxSurge.intVal = 1
    deployment.spec.strategy.rollingUpdate.maxUnavailable.intVal = 1
    log = Scene("controller/deployment")
    log.put(1, "deployments", "web", deployment)
    log.put(2, "replicasets", "old", replica_set("old", 3, "web"))
    log.put(2, "replicasets", "new", replica_set("new", 0, "web"))
    for number in range(3):
        log.owned(3, f"old-{number}", "ReplicaSet", "old", ready=number < ready)
    for seconds, name, size in sizes:
        log.put(seconds, "replicasets", name, replica_set(name, size, "web"))
    log.ended(200)
    return log


LIMITS = "rollouts-keep-their-limits"


def test_a_rollout_keeps_its_limits() -> None:
    assert judged(rollout((100, "new", 1), (100, "old", 2)), LIMITS).holds is True
    assert judged(rollout((100, "new", 2)), LIMITS).detail == (
        "100.000 s: the ReplicaSets of Deployment web want 5 pods together, of 4 allowed"
    )
    assert judged(rollout((100, "old", 1)), LIMITS).detail == (
        "100.000 s: ReplicaSet old shrinks to 1, which leaves Deployment web 1 ready pod of at least 2"
    )
    # Pods that are not ready go first.
    assert judged(rollout((100, "old", 2), ready=2), LIMITS).holds is True


ORDER = "stateful-sets-go-in-order"


def test_a_stateful_set_waits_for_each_pod() -> None:
    # What comes from another cluster was created by nobody here.
    for ready, by, holds in (
        (True, "controller/statefulset", True), (False, "controller/statefulset", False), (False, "user", True),
    ):  # fmt: skip
        log = Scene("controller/statefulset")
        log.put(20, "statefulsets", "db", stateful_set(2))
        log.owned(21, "db-0", "StatefulSet", "db", ready=ready)
        log.owned(40, "db-1", "StatefulSet", "db", ready=False)
        log.add(40, "apiserver/0", "api.request", verb="create", resource="pods", namespace="default", name="db-1",
                uid="uid-db-1", by=by, start=0, rev=log.revision)  # fmt: skip
        log.ended(50)
        assert judged(log, ORDER).holds is holds


def test_a_stateful_set_shrinks_from_its_end() -> None:
    for name, holds in (("db-1", False), ("db-2", True)):
        log = Scene("controller/statefulset")
        log.put(20, "statefulsets", "db", stateful_set(3))
        for number in range(3):
            log.owned(21 + number, f"db-{number}", "StatefulSet", "db", ready=True)
        log.put(40, "statefulsets", "db", stateful_set(1))
        log.add(41, "apiserver/0", "api.request", verb="delete", resource="pods", namespace="default", name=name,
                uid=f"uid-{name}", by="controller/statefulset", start=0, rev=log.revision)  # fmt: skip
        log.ended(50)
        assert judged(log, ORDER).holds is holds


def test_an_indexed_job_counts_indexes_that_succeeded() -> None:
    job = batch_v1_pb2.Job()
    job.metadata.name, job.metadata.namespace, job.metadata.uid = "sum", "default", "sum"
    job.spec.completionMode, job.spec.completions = "Indexed", 2
    for phase, said, number, holds in (
        ("Succeeded", "0", 1, True), ("Failed", "0", 1, False),
        ("Succeeded", "0", 2, False), ("Succeeded", "0-1", 2, False),
    ):  # fmt: skip
        log = Scene("controller/job")
        log.owned(11, "sum-0", "Job", "sum", index=0, phase=phase)
        job.status.completedIndexes, job.status.succeeded = said, number
        log.put(12, "jobs", "sum", job)
        log.ended(100)
        assert judged(log, "job-counts-each-pod-once").holds is holds


def failing_job(*created: float, bookmark: bool = False) -> Scene:
    """Each of its pods fails after five seconds."""
    job = batch_v1_pb2.Job()
    job.metadata.name, job.metadata.namespace, job.metadata.uid = "sum", "default", "sum"
    log = Scene("controller/job", "kubelet/n1")
    log.put(90, "jobs", "sum", job)
    for number, at in enumerate(created):
        pod = log.pods.setdefault(f"sum-{number}", core_v1_pb2.Pod())
        pod.metadata.creationTimestamp.seconds = int(at)
        log.owned(at, f"sum-{number}", "Job", "sum", node="n1")
        status = pod.status.containerStatuses.add()
        status.state.terminated.finishedAt.seconds = int(at) + 5
        log.pod(at + 5.2, f"sum-{number}", phase="Failed")
    if bookmark:
        log.add(200, "kubelet/n1", "watch.events", watch="pods#2", revs=[1], types="B", digests=[0])
    log.ended(300)
    return log


@pytest.mark.parametrize(
    ("created", "holds"),
    [
        ((100, 115), True), ((100, 112), False), ((100, 115, 140), True), ((100, 115, 132), False), ((100,), None),
    ],
)  # fmt: skip
def test_jobs_wait_after_failures(created: tuple[float, ...], holds: bool | None) -> None:
    assert judged(failing_job(*created), "jobs-wait-after-failures").holds is holds


def test_a_bookmark_of_an_old_revision_is_no_slow_message() -> None:
    assert judged(failing_job(100, 112, bookmark=True), "jobs-wait-after-failures").holds is False


# Nodes ---------------------------------------------------------------------------------------------------------------

UNREACHABLE = "node.kubernetes.io/unreachable"
LIFECYCLE, EVICTION = "controller/node-lifecycle", "controller/taint-eviction"


@pytest.mark.parametrize(
    ("ready", "taints", "holds"),
    [
        ("True", [], None),
        ("True", [(UNREACHABLE, "NoSchedule")], False),
        ("True", [(UNREACHABLE, "NoExecute")], False),
        ("Unknown", [(UNREACHABLE, "NoSchedule")], None),
        ("Unknown", [], False),
    ],
)
def test_taints_follow_conditions(ready: str, taints: list[tuple[str, str]], holds: bool | None) -> None:
    log = Scene(LIFECYCLE)
    log.node_status(100, "n1", {"Ready": ready}, taints)
    log.ended(200)
    assert judged(log, "taints-follow-conditions").holds is holds


def test_taints_that_change_soon_are_in_time() -> None:
    log = Scene(LIFECYCLE)
    log.node_status(100, "n1", {"Ready": "True"}, [(UNREACHABLE, "NoSchedule")])
    log.node_status(105, "n1", {"Ready": "True"}, [])
    log.ended(200)
    assert judged(log, "taints-follow-conditions").holds is True


@pytest.mark.parametrize(("until", "crashes", "holds"), [(65, True, True), (130, True, False), (65, False, False)])
def test_lost_nodes_are_noticed(until: float, crashes: bool, holds: bool) -> None:
    log = Scene(LIFECYCLE, "kubelet/n1")
    log.node_status(1, "n1", {"Ready": "True"}, [])
    if crashes:
        log.add(10, "kubelet/n1", "actor.crashed", step="")
    log.node_status(until, "n1", {"Ready": "Unknown"}, [(UNREACHABLE, "NoSchedule")])
    log.add(until, LIFECYCLE, "node.unknown", node="n1", conditions=["Ready"])
    log.ended(200)
    assert judged(log, "lost-nodes-are-noticed").holds is holds


@pytest.mark.parametrize(("reason", "holds"), [("ServiceUnavailable", True), ("Timeout", True), ("Conflict", False)])
def test_nobody_notices_anything_while_the_store_does_not_answer(reason: str, holds: bool) -> None:
    log = Scene(LIFECYCLE, "kubelet/n1")
    log.node_status(1, "n1", {"Ready": "True"}, [])
    log.add(10, "kubelet/n1", "actor.crashed", step="")
    for seconds in range(60, 200, 20):
        log.add(seconds, "apiserver/0", "api.refused", verb="get", resource="nodes", namespace="", name="n1", uid="",
                by=LIFECYCLE, start=0, reason=reason, message="")  # fmt: skip
    log.ended(200)
    assert judged(log, "lost-nodes-are-noticed").holds is holds


@pytest.mark.parametrize(("back", "runs", "holds"), [(250, True, True), (300, True, False), (300, False, True)])
def test_nodes_whose_kubelets_run_do_not_stay_unknown(back: float, runs: bool, holds: bool) -> None:
    """The kubelet starts again at 190 s; faults leave it time to recover."""
    log = Scene(LIFECYCLE, "kubelet/n1")
    log.node_status(1, "n1", {"Ready": "True"}, [])
    log.add(10, "kubelet/n1", "actor.crashed", step="")
    log.node_status(65, "n1", {"Ready": "Unknown"}, [(UNREACHABLE, "NoSchedule")])
    if runs:
        log.add(190, "kubelet/n1", "actor.started", incarnation=2)
    log.node_status(back, "n1", {"Ready": "True"}, [])
    log.ended(310)
    result = judged(log, "lost-nodes-are-noticed")
    assert result.holds is holds, result.detail


@pytest.mark.parametrize(("crashed", "until", "holds"), [(100, 108, False), (100, 145, True), (10, 25, False)])
def test_nodes_are_not_given_up_before_their_grace_period(crashed: float, until: float, holds: bool) -> None:
    log = Scene(LIFECYCLE, "kubelet/n1")
    log.node_status(1, "n1", {"Ready": "True"}, [])
    log.add(crashed, "kubelet/n1", "actor.crashed", step="")
    log.node_status(until, "n1", {"Ready": "Unknown"}, [(UNREACHABLE, "NoSchedule")])
    log.add(until, LIFECYCLE, "node.unknown", node="n1", conditions=["Ready"])
    log.ended(200)
    assert judged(log, "lost-nodes-are-noticed").holds is holds


def evicted(at: float, seconds: int | None = 30) -> Scene:
    """A pod tolerates a taint that its node has from 100 s on."""
    log = Scene(EVICTION)
    log.node_status(1, "n1", {}, [])
    pod = log.pods.setdefault("a", core_v1_pb2.Pod())
    if seconds is not None:
        pod.spec.tolerations.add(key=UNREACHABLE, operator="Exists", tolerationSeconds=seconds)
    log.pod(2, "a", node="n1")
    log.node_status(100, "n1", {}, [(UNREACHABLE, "NoExecute")])
    if at:
        log.pod(at, "a", deleting=1)
        log.add(at, EVICTION, "taint.eviction", pod="default/a", uid="uid-a", node="n1", start=round(at * 1e9), ok=True)
    log.ended(300)
    return log


@pytest.mark.parametrize(
    ("at", "seconds", "holds"),
    [(130, 30, True), (129, 30, False), (160, 30, False), (0, 30, False), (100, None, True), (150, None, False)],
)
def test_pods_leave_when_their_toleration_ends(at: float, seconds: int | None, holds: bool) -> None:
    assert judged(evicted(at, seconds), "pods-leave-when-their-toleration-ends").holds is holds


def test_nobody_leaves_without_a_taint() -> None:
    log = evicted(0)
    log.events = [event for event in log.events if event.time_ns < 100e9]
    log.add(150, EVICTION, "taint.eviction", pod="default/a", uid="uid-a", node="n1", start=0, ok=True)
    log.ended(300)
    assert judged(log, "pods-leave-when-their-toleration-ends").holds is False


def test_gone_pods_start_nothing() -> None:
    for heard, at, holds in ((True, 8, False), (True, 6.5, True), (False, 8, True)):
        log = Scene("kubelet/n1")
        log.pod(1, "a", node="n1")
        log.gone(5, "a")
        if heard:
            delivered(log, 6)
        log.admit(at, "a", "n1")
        log.ended(20)
        assert judged(log, "gone-pods-start-nothing").holds is holds


def delivered(log: Scene, at: float) -> None:
    log.add(at, "kubelet/n1", "watch.events", watch="pods#2", revs=[log.revision], types="D", digests=[0])


@pytest.mark.parametrize(("seen", "holds"), [(5.5, True), (6.5, False)])
def test_a_kubelet_acts_on_its_news_in_order(seen: float, holds: bool) -> None:
    """What it has done about later news shows that it has come to what it heard before."""
    log = Scene("kubelet/n1")
    log.pod(1, "a", node="n1")
    log.gone(5, "a")
    delivered(log, 6)
    log.admit(6.8, "b", "n1", seen=seen)
    log.admit(6.9, "a", "n1", seen=5)
    log.ended(20)
    assert judged(log, "gone-pods-start-nothing").holds is holds


@pytest.mark.parametrize(("at", "holds"), [(40, True), (42, False)])
def test_a_kubelet_that_preempts_acts_on_no_news(at: float, holds: bool) -> None:
    log = Scene("kubelet/n1")
    log.pod(1, "a", node="n1")
    log.add(2, "kubelet/n1", "kubelet.preempting", pod="default/c", uid="uid-c", by="default/b", by_uid="uid-b",
            node="n1", grace_s=38)  # fmt: skip
    log.gone(5, "a")
    delivered(log, 6)
    log.admit(40, "b", "n1", seen=1)
    log.admit(at, "a", "n1", seen=1)
    log.ended(60)
    assert judged(log, "gone-pods-start-nothing").holds is holds


# What is counted -----------------------------------------------------------------------------------------------------


def lease(holder: str) -> Any:
    found = coordination_v1_pb2.Lease()
    found.metadata.name = "red"
    found.spec.holderIdentity, found.spec.leaseDurationSeconds = holder, 15
    return found


@pytest.mark.parametrize(("at", "before", "holds"), [(26, "a_1", True), (20, "a_1", False), (20, "", None)])
def test_a_lease_is_taken_when_it_runs_out(at: float, before: str, holds: bool | None) -> None:
    log = Scene()
    log.put(10, "leases", "red", lease(before))
    log.put(at, "leases", "red", lease("b_1"))
    log.ended(100)
    assert judged(log, "leases-are-taken-when-they-run-out").holds is holds


@pytest.mark.parametrize(("lost", "holds"), [(True, None), (False, False)])
def test_a_renewal_that_the_store_has_lost_counts_for_nobody(lost: bool, holds: bool | None) -> None:
    log = Scene()
    log.put(5, "leases", "red", lease("a_1"))
    log.put(10, "leases", "red", lease("a_1"))
    if lost:
        log.revision -= 1
        log.add(12, "store", "store.recovered", rev=log.revision, replayed=1, torn_bytes=9, keys=1, digest=0)
    log.put(20.5, "leases", "red", lease("b_1"))
    log.ended(100)
    assert judged(log, "leases-are-taken-when-they-run-out").holds is holds


@pytest.mark.parametrize(
    ("pods", "cpu", "end", "holds"),
    [
        ("1", "2", 400, None), ("2", "2", 100, False), ("1", "3", 100, False), ("2", "2", 30, True),
        ("1", "1", 400, False), ("0", "2", 400, False), ("1", "1", 320, True), ("0", "2", 320, True),
    ],
)  # fmt: skip
def test_quotas_count_what_exists(pods: str, cpu: str, end: float, holds: bool | None) -> None:
    """A recount from a cache that lags behind overwrites charges, until all is counted anew after five minutes."""
    quota = core_v1_pb2.ResourceQuota()
    quota.metadata.name = "q"
    for resource, used in (("pods", pods), ("requests.cpu", cpu)):
        quota.spec.hard[resource].string = "10"
        quota.status.used[resource].string = used
    log = Scene("controller/resourcequota")
    log.pod(1, "a", cpu="2")
    log.pod(1, "over", cpu="2", phase="Succeeded")
    log.put(2, "resourcequotas", "q", quota)
    log.ended(end)
    assert judged(log, "quotas-count-what-exists").holds is holds


@pytest.mark.parametrize(
    ("actor", "peer", "lost", "end", "holds"),
    [
        ("store", "apiserver/0", 40.5, 300, True), ("apiserver/0", "store", 40.5, 300, True),
        ("store", "apiserver/0", 39.5, 300, True), ("store", "apiserver/0", 40.5, 400, False),
        ("apiserver/0", "store", 1, 300, False), ("apiserver/0", "user", 40.5, 300, False),
    ],
)  # fmt: skip
def test_a_quota_may_charge_a_pod_whose_api_server_crashed_or_lost_the_store(
    actor: str, peer: str, lost: float, end: float, holds: bool
) -> None:
    """Nobody writes the pod then, and nobody logs a refusal."""
    quota = core_v1_pb2.ResourceQuota()
    quota.metadata.name = "q"
    quota.spec.hard["pods"].string, quota.status.used["pods"].string = "10", "1"
    log = Scene("controller/resourcequota")
    if lost < 40:
        log.add(lost, actor, "net.connection_lost", peer=peer)
    log.put(40, "resourcequotas", "q", quota)
    if lost > 40:
        log.add(lost, actor, "net.connection_lost", peer=peer)
    log.ended(end)
    assert judged(log, "quotas-count-what-exists").holds is holds


@pytest.mark.parametrize(("end", "holds"), [(300, True), (400, False)])
def test_a_quota_may_charge_a_pod_whose_request_was_refused_meanwhile(end: float, holds: bool) -> None:
    quota = core_v1_pb2.ResourceQuota()
    quota.metadata.name = "q"
    quota.spec.hard["pods"].string, quota.status.used["pods"].string = "10", "1"
    log = Scene("controller/resourcequota")
    log.add(2, "apiserver/0", "api.refused", verb="create", resource="pods", namespace="default", name="a", uid="",
            by="user", start=0, reason="InternalError",
            message="Internal error occurred: resource quota evaluation timed out")  # fmt: skip
    log.put(20, "resourcequotas", "q", quota)
    log.ended(end)
    assert judged(log, "quotas-count-what-exists").holds is holds


@pytest.mark.parametrize(
    ("spec", "healthy", "wants", "holds"),
    [
        ({"minAvailable": 1}, 1, 1, None),
        ({"minAvailable": 1}, 0, 1, False),
        ({"minAvailable": 1}, 2, 1, False),
        ({"minAvailable": 1}, 1, 2, False),
        ({"maxUnavailable": 1}, 1, 3, None),
        ({"maxUnavailable": 1}, 1, 4, False),  # both ReplicaSets, and not the Deployment
        ({"maxUnavailable": 1}, 2, 3, False),
        ({"minAvailable": "30%"}, 1, 2, None),
        ({"minAvailable": "30%"}, 1, 1, False),
    ],
)
def test_budgets_follow_their_pods(spec: dict[str, Any], healthy: int, wants: int, holds: bool | None) -> None:
    """Of a Deployment of four, whose ReplicaSets have four pods and one."""
    log = Scene("controller/disruption")
    deployment = apps_v1_pb2.Deployment()
    deployment.metadata.name, deployment.metadata.uid, deployment.spec.replicas = "top", "top", 4
    log.put(1, "deployments", "top", deployment)
    for name, replicas in (("web", 4), ("new", 1)):
        found = apps_v1_pb2.ReplicaSet()
        found.metadata.name, found.metadata.namespace, found.metadata.uid = name, "default", name
        found.metadata.ownerReferences.add(kind="Deployment", name="top", uid="top", controller=True)
        found.spec.replicas = replicas
        log.put(1, "replicasets", name, found)
        log.owned(1, name, "ReplicaSet", name, ready=name == "web", labels={"app": "web"})
    budget = policy_v1_pb2.PodDisruptionBudget()
    budget.metadata.name = "b"
    budget.spec.selector.matchLabels["app"] = "web"
    for key, value in spec.items():
        field = getattr(budget.spec, key)
        if isinstance(value, str):
            field.type, field.strVal = 1, value
        else:
            field.intVal = value
    budget.status.currentHealthy, budget.status.desiredHealthy = healthy, wants
    log.put(2, "poddisruptionbudgets", "b", budget)
    log.ended(100)
    assert judged(log, "budgets-follow-their-pods").holds is holds


def pressed(signal: str, victim: str, **used: int) -> Scene:
    """``low`` exceeds its request, ``high`` too and is more important, ``modest`` does not."""
    log = Scene("kubelet/n1")
    for name, priority in (("low", 0), ("high", 10), ("modest", 0)):
        log.pod(1, name, node="n1", priority=priority)
        log.pods[name].spec.containers[0].resources.requests["memory"].string = "100"
        log.pod(2, name)
    log.add(
        10, "kubelet/n1", "kubelet.evicting", pod=f"default/{victim}", uid=f"uid-{victim}", node="n1", signal=signal,
        grace_s=0, message="", used={f"uid-{name}": amount for name, amount in used.items()},
    )  # fmt: skip
    log.ended(20)
    return log


RANKING = "evictions-follow-the-ranking"


@pytest.mark.parametrize(("victim", "holds"), [("low", True), ("high", False), ("modest", False)])
def test_evictions_follow_the_ranking(victim: str, holds: bool) -> None:
    assert judged(pressed("memory.available", victim, low=101, high=900, modest=99), RANKING).holds is holds


@pytest.mark.parametrize(("victim", "holds"), [("low", False), ("high", False), ("modest", True)])
def test_processes_have_no_request(victim: str, holds: bool) -> None:
    assert judged(pressed("pid.available", victim, low=2, high=900, modest=3), RANKING).holds is holds


def test_a_ranking_of_ones_own_is_not_asked() -> None:
    log = pressed("memory.available", "high", low=101, high=900)
    assert not judged(log, RANKING, own_ranking=True).asked
    assert judged(pressed("memory.available", "high", low=101, high=900), RANKING).detail == (
        "10.000 s: n1 evicts default/high for memory.available (priority 10, 800 bytes above its request), before low "
        "(priority 0, 1 bytes above its request)"
    )


def short_of_memory(available: int, enough: int = 100, grace_s: float = 0.0) -> Scene:
    """At 20 s less than 100 bytes should be available."""
    log = Scene("kubelet/n1")
    log.add(20, "kubelet/n1", "kubelet.thresholds", node="n1",
            met=[["memory.available", available, 100, enough, grace_s]])  # fmt: skip
    log.add(20, "kubelet/n1", "kubelet.pressure", node="n1", conditions=["MemoryPressure"], signals=[])
    return log


MEASURED = "pressure-follows-what-is-measured"


@pytest.mark.parametrize(("available", "holds"), [(99, True), (100, False)])
def test_a_threshold_is_met_below_its_value(available: int, holds: bool) -> None:
    log = short_of_memory(available)
    log.ended(30)
    assert judged(log, MEASURED).holds is holds


@pytest.mark.parametrize(("available", "holds"), [(149, True), (150, False)])
def test_a_threshold_stays_met_up_to_its_minimum_reclaim(available: int, holds: bool) -> None:
    log = short_of_memory(99, enough=150)
    met = [["memory.available", available, 100, 150, 0.0], ["pid.available", 1, 2, 2, 0.0]]
    log.add(25, "kubelet/n1", "kubelet.thresholds", node="n1", met=met)
    log.ended(30)
    assert judged(log, MEASURED).holds is holds


@pytest.mark.parametrize(
    ("at", "signal", "grace_s", "holds"),
    [
        (20, "memory.available", 0.0, True),
        (50, "memory.available", 30.0, True),
        (49, "memory.available", 30.0, False),
        (20, "pid.available", 0.0, False),
        (20, "emptydirfs.limit", 0.0, True),
    ],
)
def test_pods_are_evicted_for_a_threshold_that_is_met(at: float, signal: str, grace_s: float, holds: bool) -> None:
    log = short_of_memory(10, grace_s=grace_s)
    log.add(at, "kubelet/n1", "kubelet.evicting", pod="default/a", uid="uid-a", node="n1", signal=signal, grace_s=0,
            message="")  # fmt: skip
    log.ended(60)
    assert judged(log, MEASURED).holds is holds


@pytest.mark.parametrize(("goes", "again", "holds"), [(330, False, True), (None, False, False), (None, True, True)])
def test_a_condition_goes_after_its_transition_period(goes: float | None, again: bool, holds: bool) -> None:
    """Five minutes, where the scenario says nothing. It may get a cause again meanwhile."""
    log = short_of_memory(10)
    log.add(30, "kubelet/n1", "kubelet.thresholds", node="n1", met=[])
    if again:
        met = [["memory.available", 10, 100, 100, 0.0]]
        log.add(200, "kubelet/n1", "kubelet.thresholds", node="n1", met=met)
        log.add(210, "kubelet/n1", "kubelet.thresholds", node="n1", met=[])
    if goes is not None:
        log.add(goes, "kubelet/n1", "kubelet.pressure", node="n1", conditions=[], signals=[])
    log.ended(400)
    assert judged(log, MEASURED).holds is holds


@pytest.mark.parametrize(("told", "holds"), [(True, True), (False, False)])
def test_a_condition_comes_with_its_threshold(told: bool, holds: bool) -> None:
    log = Scene("kubelet/n1")
    log.add(20, "kubelet/n1", "kubelet.thresholds", node="n1", met=[["pid.available", 1, 2, 2, 0.0]])
    if told:
        log.add(20, "kubelet/n1", "kubelet.pressure", node="n1", conditions=["PIDPressure"], signals=[])
    log.ended(100)
    assert judged(log, MEASURED).holds is holds


def test_a_condition_without_a_threshold() -> None:
    log = short_of_memory(10)
    log.add(30, "kubelet/n1", "kubelet.pressure", node="n1", conditions=["DiskPressure", "MemoryPressure"], signals=[])
    log.ended(40)
    assert judged(log, MEASURED).holds is False


@pytest.mark.parametrize(
    ("condition", "start", "fields", "ok", "holds"),
    [
        ("MemoryPressure", 21, {}, True, False),
        ("MemoryPressure", 21, {}, False, True),
        ("MemoryPressure", 19, {}, True, None),
        ("MemoryPressure", 21, {"cpu": "1"}, True, True),
        ("DiskPressure", 21, {"cpu": "1"}, True, False),
        ("DiskPressure", 21, {"priority": 2_000_000_000}, True, True),
        ("MemoryPressure", 21, {"tolerates": True}, True, True),
    ],
)
def test_pressure_keeps_pods_out(
    condition: str, start: float, fields: dict[str, Any], ok: bool, holds: bool | None
) -> None:
    log = Scene("kubelet/n1")
    tolerates = fields.pop("tolerates", False)
    log.pod(10, "a", node="n1", **fields)
    if tolerates:
        log.pods["a"].spec.tolerations.add(key="node.kubernetes.io/memory-pressure", operator="Exists")
        log.pod(11, "a")
    log.add(20, "kubelet/n1", "kubelet.pressure", node="n1", conditions=[condition], signals=[])
    log.add(22, "kubelet/n1", "kubelet.admit", pod="default/a", uid="uid-a", node="n1", start=round(start * 1e9),
            ok=ok, reason="", message="")  # fmt: skip
    log.ended(30)
    assert judged(log, "pressure-keeps-pods-out").holds is holds


def stopped(at: float, second_s: int | None = None, heard: bool = True) -> Scene:
    """A pod with 60 s is deleted with 30 s at 10 s, and again with ``second_s`` at 15 s; its containers end ``at``."""
    log = Scene("kubelet/n1")
    log.pod(1, "a", node="n1")

    def delete(seconds: float, grace_s: int, heard: bool) -> None:
        log.pods["a"].metadata.deletionGracePeriodSeconds = grace_s
        revision = log.pod(seconds, "a", deleting=round(seconds) + grace_s)
        if heard:
            log.add(seconds, "kubelet/n1", "watch.events", watch="pods#1", revs=[revision], types="M", digests=[0])

    log.pods["a"].spec.terminationGracePeriodSeconds = 60
    delete(10, 30, heard=True)
    log.add(10, "kubelet/n1", "kubelet.terminating", pod="default/a", uid="uid-a", node="n1", grace_s=30)
    if second_s is not None:
        delete(15, second_s, heard)
    log.add(at, "kubelet/n1", "kubelet.terminated", pod="default/a", uid="uid-a", node="n1", start=0, forced=True)
    log.ended(200)
    return log


@pytest.mark.parametrize(
    ("at", "second_s", "heard", "holds"),
    [
        (40, None, True, True),
        (46, None, True, False),
        (20, 5, True, True),
        (40, 5, True, False),
        (40, 5, False, True),
        (40, 50, True, True),
        (46, 50, True, False),
    ],
)
def test_containers_end_in_time(at: float, second_s: int | None, heard: bool, holds: bool) -> None:
    assert judged(stopped(at, second_s, heard), "containers-end-in-time").holds is holds


@pytest.mark.parametrize(
    ("fails", "unready", "deleted", "holds"),
    [(True, 22, None, True), (True, None, None, False), (False, None, None, None), (True, None, 25, True)],
)
def test_readiness_follows_probes(
    fails: bool, unready: float | None, deleted: float | None, holds: bool | None
) -> None:
    log = Scene("kubelet/n1")
    log.pod(1, "a", node="n1", phase="Running")
    log.pods["a"].status.containerStatuses.add(name="main", ready=True)
    log.pod(2, "a")
    log.add(20, "kubelet/n1", "kubelet.probed", pod="default/a", uid="uid-a", node="n1", container="main",
            probe="readiness", ok=not fails)  # fmt: skip
    if unready is not None:
        log.pods["a"].status.containerStatuses[0].ready = False
        log.pod(unready, "a")
    if deleted is not None:
        log.pod(deleted, "a", deleting=round(deleted) + 30)
    log.ended(60)
    assert judged(log, "readiness-follows-probes").holds is holds
