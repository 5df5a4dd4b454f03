"""What kubelets, controllers and drivers report stands in the story, one plain sentence each."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.lab.checks.history import History
from kemu.lab.tell import stories
from kemu.lab.tell.selections import Selection
from kemu.runtime.runlog.frames import Entry
from tests.checks.logs import SECOND, Log

WEB = {"pod": "default/web-0", "uid": "uid-web-0", "node": "n1", "container": "main"}


def told(log: Log, limit: int = 0, **selected: Any) -> list[tuple[str, str, str]]:
    """Who, what and why, without the creation of pods."""
    history = History()
    for event in log.events:
        history.feed(*event)
    found = [one for one in stories.find(history, Selection(**selected)) if one.kind != "created"]
    return [(line.who, line.what, line.why) for line in stories.told(found, limit).lines]


def with_pod() -> Log:
    log = Log()
    log.pod(0, "web-0", uid="uid-web-0", node="n1")
    return log


def test_readiness_is_told_where_it_is_lost_and_regained() -> None:
    log = with_pod()
    for seconds, ok in ((1, True), (5, False), (9, True), (12, True)):
        log.add(seconds, "kubelet/n1", "kubelet.probed", **WEB, probe="readiness", ok=ok)
    assert told(log, pod="web-0", kinds=("probed",)) == [
        ("kubelet n1", "web-0 is not ready any more", "its readiness probe failed, container main"),
        ("kubelet n1", "web-0 is ready again", "container main"),
    ]


def test_a_restart_names_the_probe_and_the_failure_is_not_told_twice() -> None:
    log = with_pod()
    log.add(5, "kubelet/n1", "kubelet.probed", **WEB, probe="liveness", ok=False)
    log.add(5, "kubelet/n1", "kubelet.killing", **WEB, probe="liveness", grace_s=30)
    log.add(6, "kubelet/n1", "kubelet.killing", **WEB, probe="", grace_s=30)
    log.add(7, "kubelet/n1", "kubelet.hook_failed", **WEB, start=0)
    assert told(log) == [
        ("kubelet n1", "web-0 is restarted", "its liveness probe failed, container main"),
        ("kubelet n1", "web-0 is restarted", "its resize requires a restart, container main"),
        ("kubelet n1", "web-0 is restarted", "its postStart hook failed, container main"),
    ]


def test_restarts_of_many_pods_are_one_line() -> None:
    log = Log()
    for place in range(9):
        log.pod(0, f"web-{place}", uid=f"uid-web-{place}", node="n1")
        data = {**WEB, "pod": f"default/web-{place}", "uid": f"uid-web-{place}"}
        log.add(5, "kubelet/n1", "kubelet.killing", **data, probe="liveness", grace_s=30)
    assert told(log, 3) == [("kubelet n1", "9 web pods are restarted", "its liveness probe failed, container main")]


def test_resizes() -> None:
    log = with_pod()
    for seconds, what, message in ((1, "deferred", "no room"), (2, "started", ""), (3, "completed", "")):
        log.add(seconds, "kubelet/n1", "kubelet.resize", **WEB, what=what, message=message)
    log.add(4, "kubelet/n1", "kubelet.resize", **WEB, what="failed", message="too late")
    assert [line[1:] for line in told(log)] == [
        ("web-0 waits for its resize", "no room"),
        ("web-0 is resized", ""),
        ("web-0 is not resized: it failed", "too late"),
    ]


@pytest.mark.parametrize(
    ("reason", "message", "what", "why"),
    [
        ("Completed", "Job completed", "Job nightly is complete", ""),
        ("Suspended", "Job suspended", "Job nightly is suspended", ""),
        ("BackoffLimitExceeded", "limit", "Job nightly fails: BackoffLimitExceeded", "limit"),
    ],
)
def test_jobs(reason: str, message: str, what: str, why: str) -> None:
    log = Log()
    log.add(1, "controller/job", "controller.job", job="default/nightly", uid="u", reason=reason, message=message)
    assert told(log) == [("job", what, why)]


def test_cron_jobs() -> None:
    log = Log()
    who = {"cronjob": "shop/nightly", "uid": "u"}
    for seconds in range(1, 6):
        message = f"Created job nightly-{seconds}"
        log.add(seconds, "controller/cronjob", "controller.cronjob", **who, reason="SuccessfulCreate", message=message)
    log.add(6, "controller/cronjob", "controller.cronjob", **who, reason="JobAlreadyActive", message="active")
    log.add(7, "controller/cronjob", "controller.cronjob", **who, reason="SawCompletedJob", message="completed")
    log.add(8, "controller/cronjob", "controller.cronjob", **who, reason="UnknownTimeZone", message="Mars")
    assert told(log, 3) == [
        ("cronjob", "CronJob shop/nightly starts Job nightly-1, and 4 more like that", ""),
        ("cronjob", "CronJob shop/nightly skips a Job", "active"),
        ("cronjob", "CronJob shop/nightly reports UnknownTimeZone", "Mars"),
    ]


def scaled(log: Log, seconds: float, replica_set: str, revision: int, before: int, replicas: int) -> None:
    data = {"deployment": "default/web", "replica_set": replica_set, "revision": str(revision), "before": before}
    log.add(seconds, "controller/deployment", "controller.scaled", **data, replicas=replicas)


def test_steps_of_a_rollout_are_one_line() -> None:
    log = Log()
    for step in range(4):
        scaled(log, 10 + step, "web-new", 2, step, step + 1)
        scaled(log, 10.5 + step, "web-old", 1, 4 - step, 3 - step)
    for seconds, outcome in ((15, "stuck"), (16, "complete")):
        data = {"deployment": "default/web", "revision": "2", "outcome": outcome}
        log.add(seconds, "controller/deployment", "controller.rollout", **data)
    assert [line[1:] for line in told(log, 4)] == [
        ("Deployment web scales up ReplicaSet web-new from 0 to 4 in 4 steps", "revision 2"),
        ("Deployment web scales down ReplicaSet web-old from 4 to 0 in 4 steps", "revision 1"),
        ("the rollout of Deployment web is stuck", "revision 2 exceeded its progress deadline"),
        ("the rollout of Deployment web is complete", "revision 2"),
    ]


def test_a_rollback_scales_up_a_replica_set_that_has_become_the_newest_again() -> None:
    log = Log()
    scaled(log, 1, "web-a", 1, 0, 3)
    scaled(log, 2, "web-b", 2, 0, 3)
    scaled(log, 3, "web-a", 1, 3, 0)
    scaled(log, 9, "web-a", 3, 0, 3)
    found = told(log)
    assert found[3][1:] == ("Deployment web rolls back to ReplicaSet web-a", "revision 1 becomes revision 3")
    assert sum("rolls back" in what for _, what, _ in found) == 1


def test_volumes() -> None:
    log = with_pod()
    claim = {"claim": "default/data", "uid": "u", "driver": "disks", "start": 0}
    log.add(1, "controller/csi-drivers", "csi.provision_failed", **claim, why="full")
    log.add(2, "controller/csi-drivers", "csi.provisioned", **claim, volume="pvc-u")
    log.add(3, "controller/csi-drivers", "csi.attached", volume="pvc-u", node="n1", driver="disks", modes=[], start=2)
    stuck = {"pod": "default/web-0", "uid": "uid-web-0"}
    log.add(4, "controller/attach-detach", "volumes.multi_attach", **stuck, volume="pv", node="n1", others=["n2"])
    log.add(5, "kubelet/n1", "kubelet.mount_timeout", **stuck, volumes=["data"])
    assert told(log) == [
        ("csi-drivers", "claim data gets no volume", "full"),
        ("csi-drivers", "claim data gets a new volume", "pvc-u of disks"),
        ("csi-drivers", "volume pvc-u is attached to n1", "disks"),
        ("attach-detach", "web-0 waits for a volume of another node", "pv is attached to n2"),
        ("kubelet n1", "web-0 waits too long for its volumes", "not mounted: data"),
    ]


def test_who_was_refused_by_which_quota() -> None:
    limits = "requested: pods=1, used: pods=5, limited: pods=5"
    message = f'pods "x" is forbidden: exceeded quota: few, {limits}'
    log = Log()
    log.add(1, "user", "user.refused", workload="greedy", replaces="", reason="Forbidden", message=message)
    refused = {"verb": "create", "resource": "pods", "namespace": "shop", "name": "x", "uid": "", "start": 0}
    refused |= {"reason": "Forbidden", "message": message}
    log.add(1, "apiserver", "api.refused", **refused, by="user")
    log.add(2, "apiserver", "api.refused", **refused, by="controller/replicaset")
    log.add(3, "apiserver", "api.refused", **{**refused, "message": "no quotas here"}, by="controller/replicaset")
    assert told(log) == [
        ("API server", "a pod of greedy is refused by quota few", limits),
        ("API server", "replicaset may not create a pod: quota few of shop", limits),
    ]


def test_garbage_is_told_once_with_its_reason() -> None:
    log = with_pod()
    by = "controller/garbage-collector"
    for kind, name in (("ReplicaSet", "default/web"), ("Pod", "default/web-0")):
        data = {"kind": kind, "name": name, "uid": f"uid-{kind}", "policy": "Background"}
        log.events.append(Entry(SECOND, by, "gc.deleted", data))
    pod = {"resource": "pods", "namespace": "default", "name": "web-0", "uid": "uid-web-0", "start": 0, "rev": 9}
    log.add(2, "apiserver", "api.request", verb="delete", by=by, **pod)
    log.pod(2, "web-0", deleting=30)
    assert told(log) == [
        ("garbage-collector", "ReplicaSet web is deleted", "its owner is gone"),
        ("garbage-collector", "web-0 is deleted, and shuts down", "its owner is gone"),
    ]


def test_a_namespace_is_told_of_when_its_end_begins_and_when_it_is_empty() -> None:
    log = Log()
    for seconds, remaining in ((1, {"pods": 3}), (2, {"pods": 1}), (3, {}), (4, {})):
        log.add(seconds, "controller/namespace", "namespace.emptied", namespace="shop", remaining=remaining)
    assert told(log) == [
        ("namespace", "namespace shop is being emptied", "left: 3 pods"),
        ("namespace", "namespace shop is empty", ""),
    ]
