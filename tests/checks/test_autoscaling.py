"""The checks of the cluster autoscaler: each holds on a sound log, and fails when one fact is changed."""

from __future__ import annotations

from typing import Any

import pytest

from kemu.emulated.autoscaler.settings import Settings
from kemu.lab.checks import registry
from kemu.lab.checks.limits import Autoscaled, Limits, NodeGroup
from kemu.lab.checks.results import Result
from kemu.messages.k8s import apps_v1_pb2, core_v1_pb2
from tests.checks.logs import Log

WHO = "controller/cluster-autoscaler"
SIZES = "node-groups-keep-their-sizes"
REMOVALS = "nodes-go-when-their-pods-fit-elsewhere"
ADDITIONS = "pods-that-wait-get-nodes"
BUDGETS = "voluntary-evictions-respect-budgets"


class Scene(Log):
    """A group ``pool`` of nodes of 4 cpu."""

    def __init__(self) -> None:
        super().__init__()
        self.add(0, WHO, "actor.started", incarnation=1)

    def machine(self, seconds: float, name: str, what: str) -> None:
        self.add(seconds, "cloud", "cloud.instance", group="pool", node=name, what=what, price=1.0)

    def comes(self, seconds: float, name: str, **more: Any) -> int:
        """A node that is ready, and its machine."""
        if seconds:
            self.machine(seconds, name, "requested")
        self.machine(seconds, name, "running")
        return self.txn(seconds, f"/registry/nodes/{name}", made(name, **more).SerializeToString(deterministic=True))

    def owned(self, seconds: float, name: str, kind: str = "ReplicaSet", **fields: Any) -> int:
        """A pod with a controller; ``unschedulable``, and what :meth:`pod` knows."""
        pod = self.pods.setdefault(name, core_v1_pb2.Pod())
        if not pod.metadata.name:
            pod.metadata.name, pod.metadata.namespace, pod.metadata.uid = name, "default", f"uid-{name}"
            pod.metadata.ownerReferences.add(kind=kind, name="web", uid="web", controller=True)
            pod.spec.containers.add().name = "main"
        if fields.pop("unschedulable", False):
            pod.status.conditions.add(type="PodScheduled", status="False", reason="Unschedulable")
        if "tolerates" in fields:
            pod.spec.tolerations.add(key=fields.pop("tolerates"), operator="Exists")
        if "selector" in fields:
            pod.spec.nodeSelector["disk"] = fields.pop("selector")
        return self.pod(seconds, name, **fields)

    def goes(self, seconds: float, name: str, pods: int = -1, nodes: int = -1) -> None:
        """The removal of a node begins, decided by these revisions of pods and nodes; the latest, if none are given."""
        seen = {"pods_rev": self.revision if pods < 0 else pods, "nodes_rev": self.revision if nodes < 0 else nodes}
        data = {"node": name, "group": "pool", "drain": True, "pods": 1, "unneeded_ns": 0}
        self.add(seconds, WHO, "autoscaler.scale_down", **data, **seen)

    def judged(self, check: str, *, least: int = 1, most: int = 3, **flags: Any) -> Result:
        template = made("pool").SerializeToString(deterministic=True)
        autoscaled = Autoscaled((NodeGroup("pool", least, most, template),), Settings(**flags))
        _, results = registry.judge(self.events, within=Limits(autoscaled=autoscaled))
        return next(result for result in results if result.id == check)


def made(name: str, cpu: str = "4", ready: bool = True, taint: str = "", disk: str = "") -> Any:
    node = core_v1_pb2.Node()
    node.metadata.name = name
    node.status.allocatable["cpu"].string, node.status.allocatable["pods"].string = cpu, "10"
    node.status.conditions.add(type="Ready", status="True" if ready else "False")
    if taint:
        node.spec.taints.add(key=taint, effect="NoSchedule")
    if disk:
        node.metadata.labels["disk"] = disk
    return node


# Sizes ---------------------------------------------------------------------------------------------------------------


def test_a_group_within_its_sizes() -> None:
    log = Scene()
    log.comes(0, "pool-1")
    log.comes(10, "pool-2")
    log.machine(20, "pool-2", "deleting")
    assert log.judged(SIZES).holds is True
    assert Scene().judged(SIZES).holds is None


def test_a_group_beyond_its_greatest_size() -> None:
    log = Scene()
    log.comes(0, "pool-1")
    log.machine(10, "pool-2", "requested")
    assert log.judged(SIZES, most=1).detail == (
        "10.000 s: pool has 2 machines with pool-2, which is more than its max, 1"
    )


def test_a_group_below_its_least_size() -> None:
    log = Scene()
    log.comes(0, "pool-1")
    log.comes(0, "pool-2")
    log.machine(10, "pool-2", "deleting")
    log.machine(40, "pool-2", "gone")
    assert log.judged(SIZES).holds is True
    log.machine(50, "pool-1", "deleting")
    assert log.judged(SIZES).detail == ("50.000 s: pool has 0 machines without pool-1, which is less than its min, 1")


def test_a_machine_that_could_not_be_made_is_no_loss() -> None:
    log = Scene()
    log.machine(10, "pool-1", "requested")
    log.machine(10, "pool-1", "failed")
    log.machine(20, "pool-1", "gone")
    assert log.judged(SIZES).holds is True


# Removals ------------------------------------------------------------------------------------------------------------


def pair(cpu: str = "3") -> Scene:
    """Two nodes; the pod on the first one wants so much, and 2 of the second are taken."""
    log = Scene()
    log.comes(0, "pool-1")
    log.comes(0, "pool-2")
    log.owned(1, "a", cpu=cpu, node="pool-1")
    log.owned(1, "b", cpu="2", node="pool-2")
    return log


def test_a_node_goes_whose_pods_fit_elsewhere() -> None:
    log = pair(cpu="2")
    log.goes(10, "pool-1")
    assert log.judged(REMOVALS).holds is True
    assert pair().judged(REMOVALS).holds is None


def test_a_node_goes_whose_pod_has_no_room_elsewhere() -> None:
    log = pair()
    log.goes(10, "pool-1")
    assert log.judged(REMOVALS).detail == (
        "10.000 s: controller/cluster-autoscaler removes pool-1, and default/a fits on no other node"
    )


def test_each_of_its_pods_has_room_but_not_all() -> None:
    log = pair(cpu="1")
    log.owned(1, "c", cpu="2", node="pool-1")
    log.goes(10, "pool-1")
    assert "the others have not enough cpu for its 2 pods" in log.judged(REMOVALS).detail


def test_a_node_that_goes_is_no_other_place() -> None:
    log = pair(cpu="2")
    log.goes(10, "pool-2")
    log.goes(10, "pool-1")
    assert log.judged(REMOVALS).holds is False
    log = pair(cpu="2")
    log.goes(10, "pool-2")
    log.add(20, WHO, "autoscaler.scaled_down", node="pool-2", group="pool", ok=False, why="a pod")
    log.goes(30, "pool-1")
    assert log.judged(REMOVALS).holds is True


def test_taints_and_labels_keep_pods_away() -> None:
    for fields, holds in (({}, False), ({"tolerates": "team"}, True)):
        log = Scene()
        log.comes(0, "pool-1")
        log.comes(0, "pool-2", taint="team")
        log.owned(1, "a", cpu="1", node="pool-1", **fields)
        log.goes(10, "pool-1")
        assert log.judged(REMOVALS).holds is holds
    log = Scene()
    log.comes(0, "pool-1", disk="ssd")
    log.comes(0, "pool-2", disk="hdd")
    log.owned(1, "a", cpu="1", node="pool-1", selector="ssd")
    log.goes(10, "pool-1")
    assert log.judged(REMOVALS).holds is False


@pytest.mark.parametrize("why", ["daemon", "expendable", "deleting", "over"])
def test_pods_that_need_no_other_place(why: str) -> None:
    log = pair(cpu="0")
    fields: dict[str, Any] = {"cpu": "3", "node": "pool-1"}
    log.owned(2, "d", "DaemonSet" if why == "daemon" else "ReplicaSet", **fields)
    log.owned(
        3,
        "d",
        **{"expendable": {"priority": -11}, "deleting": {"deleting": 3}, "over": {"phase": "Failed"}}.get(why, {}),
    )
    log.goes(10, "pool-1")
    assert log.judged(REMOVALS).holds is True


def test_what_the_autoscaler_had_seen_counts() -> None:
    log = pair(cpu="2")
    before = log.revision
    log.owned(5, "late", cpu="2", node="pool-2")
    log.goes(10, "pool-1", pods=before)
    assert log.judged(REMOVALS).holds is True
    log = pair(cpu="2")
    log.owned(5, "late", cpu="2", node="pool-2")
    log.goes(10, "pool-1")
    assert log.judged(REMOVALS).holds is False


def test_nothing_is_judged_by_a_history_that_was_lost() -> None:
    log = pair()
    log.recovered(5, log.revision - 1)
    log.goes(10, "pool-1")
    assert log.judged(REMOVALS).holds is None


def test_the_autoscaler_evicts_pods_and_does_not_delete_them() -> None:
    for by, holds in (("user", None), (WHO, False)):
        log = pair()
        log.add(5, "apiserver/0", "api.request", verb="delete", resource="pods", namespace="default", name="a",
                uid="uid-a", by=by, start=0, rev=log.revision)  # fmt: skip
        assert log.judged(BUDGETS).holds is holds


# Additions -----------------------------------------------------------------------------------------------------------


def waits(cpu: str = "3", **fields: Any) -> Scene:
    """One node of 4, of which 2 are taken, and a pod that wants so much from 10 s on."""
    log = Scene()
    log.comes(0, "pool-1")
    log.owned(1, "a", cpu="2", node="pool-1")
    log.owned(10, "b", cpu=cpu, unschedulable=True, **fields)
    return log


def test_a_pod_that_waits_gets_a_node() -> None:
    log = waits()
    log.comes(20, "pool-2")
    log.owned(70, "b", node="pool-2")
    log.ended(200)
    assert log.judged(ADDITIONS).holds is True


def test_a_pod_that_waits_and_gets_none() -> None:
    log = waits()
    log.ended(200)
    assert log.judged(ADDITIONS).detail == (
        "default/b fits on no node, and on a new one of pool, from 10.000 s to 200.000 s; controller/cluster-autoscaler"
        " had 190.000 s"
    )
    assert log.judged(ADDITIONS, scan_interval_s=100).holds is True
    assert log.judged(ADDITIONS, new_pod_scale_up_delay_s=300).holds is True


@pytest.mark.parametrize(
    ("why", "fields", "asked"),
    [
        ("it fits on the node that is there", {"cpu": "2"}, {}),
        ("it fits on no node at all", {"cpu": "5"}, {}),
        ("the group is full", {}, {"most": 1}),
        ("the cluster is full", {}, {"max_nodes_total": 1}),
        ("it is below the cut-off", {"priority": -11}, {}),
        ("it is nominated", {"nominated": "pool-1"}, {}),
        ("it is being deleted", {"deleting": 10}, {}),
        ("it is a daemon", {"kind": "DaemonSet"}, {}),
        ("its label is not that of the group", {"selector": "ssd"}, {}),
    ],
)
def test_nobody_adds_a_node(why: str, fields: dict[str, Any], asked: dict[str, Any]) -> None:
    log = waits(**fields)
    log.ended(200)
    assert log.judged(ADDITIONS, **asked).holds is None, why


@pytest.mark.parametrize(
    "what", ["to come", "not ready", "refused", "tainted", "crashed", "partitioned", "pods of sets"]
)
def test_nobody_need_add_a_node_now(what: str) -> None:
    log = waits()
    if what == "to come":
        log.machine(11, "pool-2", "requested")
    elif what == "not ready":
        log.comes(11, "pool-2", ready=False)
    elif what == "refused":
        log.machine(11, "", "refused")
    elif what == "tainted":
        log.txn(11, "/registry/nodes/pool-1", made("pool-1", taint="team").SerializeToString(deterministic=True))
    elif what == "crashed":
        log.add(11, WHO, "actor.crashed", step="")
    elif what == "partitioned":
        log.add(11, "chaos", "chaos.begin", id="p", what="partition", between=[[WHO], ["cloud"]])
    else:
        daemons = apps_v1_pb2.DaemonSet()
        daemons.spec.template.spec.containers.add().resources.requests["cpu"].string = "2"
        log.txn(11, "/registry/daemonsets/default/agent", daemons.SerializeToString(deterministic=True))
    log.ended(200)
    assert log.judged(ADDITIONS).holds is True


def test_it_has_to_grow_again_when_what_was_to_come_is_there() -> None:
    log = waits()
    log.comes(20, "pool-2")
    log.owned(21, "c", cpu="4", node="pool-2")
    log.ended(200)
    assert "from 21.000 s to 200.000 s" in log.judged(ADDITIONS).detail
    assert log.judged(ADDITIONS, most=2).holds is True


def test_what_the_store_lost_nobody_waits_for() -> None:
    log = waits()
    log.recovered(11, log.revision - 1)
    log.ended(200)
    assert log.judged(ADDITIONS).holds is True
