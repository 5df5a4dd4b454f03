"""Disruption budgets: evictions respect them, preemption may violate them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.apiserver.registry.evictions import Evictor
from kemu.lab.checks import registry
from kemu.lab.checks.history import History
from kemu.lab.checks.results import Result
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2, policy_v1_pb2
from tests.checks.logs import Log

CHECK = "voluntary-evictions-respect-budgets"


def budget(
    log: Log, seconds: float, *disrupted: str, name: str = "db", labels: str = "x", healthy: int = 0, **spec: Any
) -> None:
    """``minAvailable: 2``, unless said otherwise; the status names pods whose eviction was allowed."""
    found = policy_v1_pb2.PodDisruptionBudget()
    found.metadata.name, found.metadata.namespace = name, "default"
    found.status.currentHealthy = healthy
    if labels:
        found.spec.selector.matchLabels["app"] = labels
    key, value = spec.popitem() if spec else ("minAvailable", 2)
    if key == "unhealthyPodEvictionPolicy":
        found.spec.unhealthyPodEvictionPolicy = value
        key, value = "minAvailable", 2
    if isinstance(value, str):
        getattr(found.spec, key).type = 1
        getattr(found.spec, key).strVal = value
    else:
        getattr(found.spec, key).intVal = value
    for pod in disrupted:
        found.status.disruptedPods[pod].seconds = 1
    log.txn(seconds, f"/registry/poddisruptionbudgets/default/{name}", found.SerializeToString(deterministic=True))


def replicas(log: Log, seconds: float, count: int, name: str = "web", above: str = "") -> None:
    found = apps_v1_pb2.ReplicaSet()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = name, "default", f"uid-{name}"
    found.spec.replicas = count
    if above:
        found.metadata.ownerReferences.add(kind="Deployment", name=above, uid="uid-top", controller=True)
    log.txn(seconds, f"/registry/replicasets/default/{name}", found.SerializeToString(deterministic=True))


def pod(
    log: Log,
    seconds: float,
    name: str,
    *,
    ready: bool = True,
    deleting: bool = False,
    owned: bool = False,
    owner: str = "web",
) -> int:
    """``owned``: by the ReplicaSet ``owner``; so is a pod with another owner than the usual one."""
    found = core_v1_pb2.Pod()
    found.metadata.name, found.metadata.namespace, found.metadata.uid = name, "default", f"uid-{name}"
    found.metadata.labels["app"] = "x"
    found.spec.nodeName, found.status.phase = "n1", "Running"
    found.status.conditions.add(type="Ready", status=str(ready))
    if deleting:
        found.metadata.deletionTimestamp.seconds = 99
    if owned or owner != "web":
        found.metadata.ownerReferences.add(kind="ReplicaSet", name=owner, uid=f"uid-{owner}", controller=True)
    return log.txn(seconds, f"/registry/pods/default/{name}", found.SerializeToString(deterministic=True))


def evict(log: Log, seconds: float, name: str, **fields: bool) -> None:
    took(log, seconds, name, pod(log, seconds, name, deleting=True, **fields))


def took(log: Log, seconds: float, name: str, revision: int, verb: str = "evict", server: str = "apiserver/0") -> None:
    log.add(
        seconds, server, "api.request",
        verb=verb, resource="pods", namespace="default", name=name, uid=f"uid-{name}", by="user", start=0,
        rev=revision,
    )  # fmt: skip


def judged(log: Log) -> tuple[Result, History]:
    history, results = registry.judge(log.events)
    return next(result for result in results if result.id == CHECK), history


def three(**spec: Any) -> Log:
    log = Log()
    budget(log, 0, **spec)
    for name in "abc":
        pod(log, 0, name)
    return log


class TestEvictions:
    def test_as_many_as_the_budget_allows(self) -> None:
        log = three()
        evict(log, 100, "a")
        found, _ = judged(log)
        assert (found.holds, found.detail) == (True, "1 eviction within budgets")

    def test_one_too_many(self) -> None:
        log = three()
        evict(log, 100, "a")
        evict(log, 101, "b")
        found, _ = judged(log)
        assert found.holds is False
        assert "101.000 s: user evicted default/b: that leaves 1 healthy pod to db, which wants 2" in found.detail

    @pytest.mark.parametrize(
        ("spec", "most"),
        [
            ({"maxUnavailable": 1}, 1),
            ({"maxUnavailable": "50%"}, 2),
            ({"minAvailable": "50%"}, 1),
            ({"minAvailable": 0}, 3),
        ],
    )
    def test_what_a_budget_wants(self, spec: dict[str, Any], most: int) -> None:
        """Of three pods of a ReplicaSet; percentages are rounded up."""
        for evictions in (most, most + 1):
            log = Log()
            replicas(log, 0, 3)
            for name in "abc":
                pod(log, 0, name, owned=True)
            budget(log, 0, **spec)
            for name in "abc"[:evictions]:
                evict(log, 100, name, owned=True)
            assert judged(log)[0].holds is (evictions == most or most == 3)

    @pytest.mark.parametrize(
        ("first", "then", "holds"),
        [
            (("delete", "apiserver/0"), ("evict", "apiserver/0"), None),
            (("evict", "apiserver/0"), ("delete", "apiserver/0"), False),
            (("evict", "apiserver/0"), ("delete", "apiserver/1"), None),
        ],
    )
    def test_who_evicts_a_pod_that_goes_already_takes_nothing(
        self, first: tuple[str, str], then: tuple[str, str], holds: bool | None
    ) -> None:
        """Both requests name the revision at which it was deleted; the log of two servers does not tell whose it is."""
        log = three(minAvailable=9)
        revision = pod(log, 100, "a", deleting=True)
        for verb, server in (first, then):
            took(log, 100, "a", revision, verb, server)
        assert judged(log)[0].holds is holds

    def test_a_pod_that_the_controller_has_not_missed_yet(self) -> None:
        """It was deleted a second before the eviction: the status of the budget still counts it."""
        log = three()
        budget(log, 100)
        pod(log, 101, "b", deleting=True)
        evict(log, 102, "a")
        assert judged(log)[0].holds is True

    def test_a_pod_that_it_has_missed_for_long(self) -> None:
        log = three()
        pod(log, 101, "b", deleting=True)
        budget(log, 200)
        evict(log, 201, "a")
        assert judged(log)[0].holds is False

    @pytest.mark.parametrize(("counted", "holds"), [(3, True), (2, False)])
    def test_a_status_that_was_behind_when_it_was_written(self, counted: int, holds: bool) -> None:
        log = three()
        pod(log, 101, "b", deleting=True)
        budget(log, 102, healthy=counted)
        evict(log, 103, "a")
        assert judged(log)[0].holds is holds

    @pytest.mark.parametrize(
        ("shown", "asked", "holds"), [(101.5, 101.4, True), (101.5, 101.6, False), (0, 101.6, True)]
    )
    def test_a_status_that_counts_what_its_writer_knew_to_be_lost(
        self, shown: float, asked: float, holds: bool
    ) -> None:
        """The log of the controller tells what it had been shown when it asked for the write."""
        actor = "controller/disruption"
        log = three()
        for resource in ("pods", "replicasets", "statefulsets"):
            log.add(50, actor, "watch.listed", watch=resource, resource=resource, namespace="", label_selector="",
                    field_selector="", rev=log.revision, objects=0, digest=None)  # fmt: skip
        pod(log, 101, "b", deleting=True)
        if shown:
            log.add(shown, actor, "watch.events", watch="pods", revs=[log.revision], types="M", digests=[0])
        budget(log, 102, healthy=3)
        key = "/registry/poddisruptionbudgets/default/db"
        log.add(102, actor, "client.acked", server="apiserver/0", sent=0,
                acks=[[round((102 - asked) * 1e9), log.revision, key, "", 0]])  # fmt: skip
        evict(log, 103, "a")
        assert judged(log)[0].holds is holds

    @pytest.mark.parametrize("healthy", [3, 2])
    def test_during_a_rollout_the_deployment_says_how_many_there_should_be(self, healthy: int) -> None:
        """Of its ReplicaSets, one of three pods is as large as ever, and one has a pod already: four in all."""
        log = Log()
        deployment = apps_v1_pb2.Deployment()
        deployment.metadata.name, deployment.metadata.namespace, deployment.metadata.uid = "web", "default", "uid-top"
        deployment.spec.replicas = 3
        log.txn(0, "/registry/deployments/default/web", deployment.SerializeToString(deterministic=True))
        replicas(log, 0, 3, above="web")
        replicas(log, 0, 1, "new", above="web")
        for name in "abc"[:healthy]:
            pod(log, 0, name, owned=True)
        pod(log, 0, "d", ready=False, owner="new")
        budget(log, 0, maxUnavailable=1)
        evict(log, 200, "a", owned=True)
        assert judged(log)[0].holds is (healthy == 3)

    def test_taking_a_disruption_is_no_write_of_the_controller(self) -> None:
        log = three()
        budget(log, 100)
        pod(log, 101, "b", deleting=True)
        budget(log, 200, "a")
        evict(log, 201, "a")
        assert judged(log)[0].holds is True

    @pytest.mark.parametrize(("spec", "holds"), [({}, False), ({"unhealthyPodEvictionPolicy": "AlwaysAllow"}, True)])
    def test_a_pod_that_is_not_ready(self, spec: dict[str, Any], holds: bool) -> None:
        log = Log()
        budget(log, 0, **spec)
        pod(log, 0, "a", ready=False)
        pod(log, 0, "b")
        evict(log, 100, "a", ready=False)
        assert judged(log)[0].holds is holds

    def test_two_budgets(self) -> None:
        log = three()
        budget(log, 1, name="other")
        evict(log, 100, "a")
        found, _ = judged(log)
        assert (found.holds, "several disruption budgets: db, other" in found.detail) == (False, True)

    @pytest.mark.parametrize("labels", ["", "y"])
    def test_a_budget_of_others(self, labels: str) -> None:
        log = three(minAvailable=3)
        budget(log, 1, labels=labels, minAvailable=3)
        for name in "abc":
            evict(log, 100, name)
        assert judged(log)[0].holds is None

    def test_a_delete_is_no_eviction(self) -> None:
        log = three()
        for name in "abc":
            pod(log, 100, name, deleting=True)
        assert judged(log)[0].holds is None


class TestPreemptions:
    @pytest.mark.parametrize(("wanted", "violations"), [(3, 1), (2, 0)])
    def test_a_violation_is_counted_and_named(self, wanted: int, violations: int) -> None:
        log = three(minAvailable=wanted)
        log.pod(5, "high", priority=10)
        log.victim(6, "a", "high", "n1")
        pod(log, 6, "a", deleting=True)
        found, history = judged(log)
        assert (found.holds, history.counts["budget_violations"]) == (None, violations)
        named = "6.000 s: default/db keeps 2 healthy pods and wants 3, as default/a is preempted for default/high"
        assert (named in found.detail) is bool(violations)


SCENARIO = """\
apiVersion: kemu.dev/v1
kind: Scenario
spec:
  duration: 2m
  nodes: [{name: node-1}]
  manifests:
    - apiVersion: policy/v1
      kind: PodDisruptionBudget
      metadata: {name: budget}
      spec: {minAvailable: 2, selector: {matchLabels: {app: x}}}
    - &pod
      apiVersion: v1
      kind: Pod
      metadata: {name: a, labels: {app: x}}
      spec: {nodeName: node-1, containers: [{name: m}]}
    - {<<: *pod, metadata: {name: b, labels: {app: x}}}
    - {<<: *pod, metadata: {name: c, labels: {app: x}}}
  events: [{at: 30s, evict: {pod: a}}, {at: 30s, evict: {pod: b}}]
"""


@pytest.mark.parametrize("is_planted", [False, True])
def test_an_api_server_that_takes_nothing_from_the_budget(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_planted: bool
) -> None:
    async def free(self: Evictor, pod: Any) -> str:
        return ""

    if is_planted:
        monkeypatch.setattr(Evictor, "_spend", free)
    verdict = runner.run(loader.loads(SCENARIO), runner.Options(out=tmp_path)).verdict
    found = next(one for one in verdict["checks"] if one["id"] == CHECK)
    assert found["holds"] is not is_planted, found
