"""The controllers of workloads: how many pods there are, which ones go, and what comes in their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from kemu.emulated.controllers.workloads import replica_sets
from kemu.emulated.objects import meta
from kemu.messages.k8s import core_v1_pb2
from tests.controllers.test_node_failures import POD, Played, owner, play

NOW_NS = 10**9 * 10_000


def pod(
    name: str,
    *,
    node: str = "n1",
    phase: str = "Running",
    ready_s: int | None = 1000,
    restarts: int = 0,
    created_s: int = 100,
    cost: str = "",
) -> core_v1_pb2.Pod:
    """``ready_s``: since when."""
    found = core_v1_pb2.Pod()
    found.metadata.name, found.metadata.uid = name, f"uid-{name}"
    found.metadata.creationTimestamp.seconds = created_s
    if cost:
        found.metadata.annotations[replica_sets.DELETION_COST] = cost
    found.spec.nodeName = node
    found.status.phase = phase
    if ready_s is not None:
        meta.set_condition(found.status.conditions, "Ready", "True", "", "", ready_s * 10**9)
    found.status.containerStatuses.add(name="main", restartCount=restarts)
    return found


class TestWhoGoesFirst:
    @pytest.mark.parametrize(
        ("first", "second"),
        [
            (pod("b", node="", phase="Pending", ready_s=None), pod("a", phase="Pending", ready_s=None)),
            (pod("b", phase="Pending", ready_s=None), pod("a", ready_s=None)),
            (pod("b", ready_s=None), pod("a")),
            (pod("b", cost="-5"), pod("a")),
            (pod("b"), pod("a", cost="7")),
            (pod("b", ready_s=9_000), pod("a", ready_s=1_000)),
            (pod("b", restarts=3), pod("a", restarts=1)),
            (pod("b", created_s=9_900), pod("a", created_s=100)),
            # Created about as long ago: the uid decides.
            (pod("a", created_s=100), pod("b", created_s=200)),
            # Ready for about as long: the uid decides, not who restarted.
            (pod("a", ready_s=1_000), pod("b", ready_s=1_001, restarts=9)),
            # A cost that is no number is none.
            (pod("b", cost="much", created_s=9_900), pod("a", created_s=100)),
        ],
    )
    def test_of_two(self, first: core_v1_pb2.Pod, second: core_v1_pb2.Pod) -> None:
        for pods in ([first, second], [second, first]):
            order = replica_sets.in_order_of_deletion(pods, {}, NOW_NS)
            assert [one.metadata.name for one in order] == [first.metadata.name, second.metadata.name]

    def test_where_there_are_more_of_them(self) -> None:
        pods = [pod("a", node="n1"), pod("b", node="n2"), pod("c", node="n2"), pod("d", node="n2")]
        order = replica_sets.in_order_of_deletion(pods, {"n1": 1, "n2": 3}, NOW_NS)
        assert [one.metadata.name for one in order] == ["b", "c", "d", "a"]


def names(found: Played, app: str) -> list[str]:
    """Of the pods that are there in the end."""
    return sorted(one.metadata.name for one in found.pods.values() if one.metadata.labels.get("app") == app)


def most_at_once(found: Played, name: str) -> int:
    """How many pods of a name ran at the same time, by what their kubelets say."""
    running: dict[str, None] = {}
    most = 0
    for _, _, kind, data in found.events:
        if kind == "kubelet.running" and data["pod"] == name:
            running[data["uid"]] = None
            most = max(most, len(running))
        elif kind in ("kubelet.terminated", "kubelet.finished"):
            running.pop(data["uid"], None)
    return most


class TestReplicaSets:
    def test_scale_up_and_down(self, tmp_path: Path) -> None:
        found = play(tmp_path, f"""
            duration: 60s
            nodes: [{{name: n1}}, {{name: n2}}]
            manifests:
            {owner("ReplicaSet", "web", 3)}
            events:
            - {{at: 10s, patch: {{kind: ReplicaSet, name: web, merge: {{spec: {{replicas: 5}}}}}}}}
            - {{at: 30s, patch: {{kind: ReplicaSet, name: web, merge: {{spec: {{replicas: 1}}}}}}}}
        """)  # fmt: skip
        assert len(names(found, "web")) == 1
        assert found.history.counts["pods_created"] == 5
        # Beside more others first: what stays is alone.
        assert found.complete("web") == 1

    def test_pods_have_the_metadata_of_their_template(self, tmp_path: Path) -> None:
        """Labels, annotations and finalizers (``GetPodFromTemplate`` in ``pkg/controller``)."""
        found = play(tmp_path, """
            duration: 20s
            nodes: [{name: n1}]
            manifests:
            - apiVersion: apps/v1
              kind: ReplicaSet
              metadata: {name: web}
              spec:
                replicas: 1
                selector: {matchLabels: {app: web}}
                template:
                  metadata: {labels: {app: web}, annotations: {a: b}, finalizers: [example.com/keep]}
                  spec: {containers: [{name: main}]}
        """)  # fmt: skip
        (metadata,) = [one.metadata for one in found.pods.values()]
        assert (dict(metadata.labels), dict(metadata.annotations)) == ({"app": "web"}, {"a": "b"})
        assert list(metadata.finalizers) == ["example.com/keep"]

    def test_a_lag_is_the_time_until_it_acts(self, tmp_path: Path) -> None:
        found = play(tmp_path, f"""
            duration: 60s
            nodes: [{{name: n1}}]
            controllers: {{replicaset: {{lag: 4s}}}}
            manifests:
            {owner("ReplicaSet", "web", 2)}
        """)  # fmt: skip
        assert {round(one.created_ns / 1e9) for one in found.history.pods.values()} == {4}

    def test_an_api_server_that_crashes_in_between(self, tmp_path: Path) -> None:
        """Neither too many nor too few come of it, whenever it is."""
        for seed in range(4):
            found = play(tmp_path / str(seed), f"""
                duration: 3m
                nodes: [{{name: n1, allocatable: {{cpu: "32", memory: 64Gi}}}}]
                manifests:
                {owner("ReplicaSet", "web", 12)}
                events:
                - {{at: 20s, patch: {{kind: ReplicaSet, name: web, merge: {{spec: {{replicas: 20}}}}}}}}
                chaos:
                - {{at: 20.00{2 * seed}s, for: 5s, crash: {{actor: apiserver/0}}}}
            """, seed)  # fmt: skip
            assert found.complete("web") == 20
            assert len(names(found, "web")) == 20

    def test_a_controller_that_crashes_begins_where_it_was(self, tmp_path: Path) -> None:
        found = play(tmp_path, f"""
            duration: 3m
            nodes: [{{name: n1}}]
            manifests:
            {owner("ReplicaSet", "web", 4)}
            events:
            - {{at: 20s, delete: {{kind: ReplicaSet, name: web}}}}
            chaos:
            - {{at: 10s, for: 5s, crash: {{actor: controller/replicaset}}}}
        """)  # fmt: skip
        assert found.history.counts["pods_created"] == 4
        assert names(found, "web") == []

    def test_pods_that_a_kubelet_evicts_are_replaced(self, tmp_path: Path) -> None:
        usage = "annotations: {kemu.dev/usage: '{memory: {ramp: {from: 1Gi, to: 3Gi, over: 60s}}}'}"
        text = owner("ReplicaSet", "web", 1).replace("{labels: {app: web}}", f"{{labels: {{app: web}}, {usage}}}")
        found = play(tmp_path, f"""
            duration: 4m
            nodes:
            - {{name: n1, capacity: {{cpu: "4", memory: 2Gi}}}}
            - {{name: n2, capacity: {{cpu: "1", memory: 8Gi}}}}
            manifests:
            {text}
        """)  # fmt: skip
        evicted = [one.facts for one in found.history.pods.values() if one.evicted]
        # One more at the most, before the taint is there.
        assert len(evicted) in (1, 2)
        assert {fact.node for facts in evicted for fact in facts if fact.what == "evicted"} == {"n1"}
        (alive,) = [one for one in found.pods.values() if one.status.phase == "Running"]
        assert alive.spec.nodeName == "n2"
        # Nothing needs to be said of controllers for the node to be tainted.
        assert found.nodes["n1"].spec.taints[0].key == "node.kubernetes.io/memory-pressure"


class TestStatefulSets:
    def test_one_after_the_other_and_back(self, tmp_path: Path) -> None:
        text = owner("StatefulSet", "db", 3).replace("podManagementPolicy: Parallel, ", "")
        found = play(tmp_path, f"""
            duration: 60s
            nodes: [{{name: n1}}]
            manifests:
            {text}
            events:
            - {{at: 30s, patch: {{kind: StatefulSet, name: db, merge: {{spec: {{replicas: 1}}}}}}}}
        """)  # fmt: skip
        began, ended = (
            [data["pod"].removeprefix("default/") for _, data in found.of(f"kubelet.{kind}")]
            for kind in ("running", "terminated")
        )
        assert began == ["db-0", "db-1", "db-2"]
        assert ended == ["db-2", "db-1"]
        assert names(found, "db") == ["db-0"]

    @pytest.mark.parametrize("seed", range(3))
    def test_a_name_never_runs_twice_whatever_happens(self, seed: int, tmp_path: Path) -> None:
        tolerations = "tolerations: [{operator: Exists, effect: NoExecute, tolerationSeconds: 10}], "
        spec = "{" + tolerations + POD[1:]
        found = play(tmp_path, f"""
            duration: 6m
            nodes: [{{namePrefix: n, count: 3}}]
            manifests:
            {owner("StatefulSet", "db", 4, spec)}
            events:
            - {{at: 50s, delete: {{pod: db-0}}}}
            - {{at: 100s, evict: {{pod: db-1}}}}
            chaos:
            - {{at: 20s, for: 2m, crash: {{actor: kubelet/n1}}}}
            - {{at: 60s, for: 20s, crash: {{actor: controller/statefulset}}}}
            - {{at: 90s, for: 30s, partition: {{between: [kubelet/n2, apiserver/0]}}}}
        """, seed)  # fmt: skip
        assert max(most_at_once(found, f"default/db-{number}") for number in range(4)) == 1
        assert found.history.counts["evictions"] >= 1
        assert found.complete("db") == 4


class TestDaemonSets:
    def agent(self, more: str = "") -> str:
        return (
            "- {apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, "
            "spec: {selector: {matchLabels: {app: agent}}, "
            f"template: {{metadata: {{labels: {{app: agent}}{more}}}, spec: {{containers: [{{name: main}}]}}}}}}}}\n"
        )

    def test_one_on_every_node_that_takes_it(self, tmp_path: Path) -> None:
        found = play(tmp_path, f"""
            duration: 90s
            nodes:
            - {{name: n1}}
            - {{name: n2, taints: [{{key: dedicated, value: x, effect: NoSchedule}}]}}
            - {{name: n3, unschedulable: true}}
            manifests:
            {self.agent()}
            events:
            - {{at: 20s, addNode: {{name: n4}}}}
            - {{at: 30s, untaint: {{node: n2, key: dedicated}}}}
            - {{at: 40s, taint: {{node: n1, key: dedicated, value: x, effect: NoSchedule}}}}
            - {{at: 50s, taint: {{node: n3, key: dedicated, value: x, effect: NoExecute}}}}
        """)  # fmt: skip
        where = sorted(one.spec.nodeName for one in found.pods.values())
        # NoSchedule leaves the one on n1 alone.
        assert where == ["n1", "n2", "n4"]

    def test_a_failed_one_is_replaced_after_a_pause_that_doubles(self, tmp_path: Path) -> None:
        usage = "{memory: {steps: [{at: 0s, value: 100Mi}, {at: 2s, value: 1990Mi}]}}"
        found = play(tmp_path, f"""
            duration: 10m
            nodes:
            - {{name: n1, capacity: {{cpu: "4", memory: 2Gi}}, kubelet: {{evictionPressureTransitionPeriod: 1s}}}}
            manifests:
            {self.agent(f", annotations: {{kemu.dev/usage: '{usage}'}}")}
        """)  # fmt: skip
        pods = found.history.pods.values()
        ended = [fact.time_ns / 1e9 for one in pods for fact in one.facts if fact.what in ("evicted", "rejected")]
        begun = [one.created_ns / 1e9 for one in pods][1:]
        pauses = [round(begin - end) for end, begin in zip(ended, begun, strict=False)]
        assert len(pauses) >= 6
        assert pauses[:2] == [0, 0]
        assert pauses == sorted(pauses)
        assert pauses[-1] >= 16

    def test_a_node_that_is_removed_and_comes_back(self, tmp_path: Path) -> None:
        found = play(tmp_path, f"""
            duration: 4m
            nodes: [{{name: n1}}, {{name: n2}}]
            manifests:
            {self.agent()}
            events:
            - {{at: 20s, removeNode: {{node: n2}}}}
            - {{at: 120s, addNode: {{name: n2}}}}
        """)  # fmt: skip
        assert sorted(one.spec.nodeName for one in found.pods.values()) == ["n1", "n2"]
        ((at, data),) = found.of("podgc.deleted")
        assert (data["node"], data["why"]) == ("n2", "its node is gone")
        # Looked at every 20 s, and quarantined for 40.
        assert 79 < at < 82


class TestReplacements:
    """Who is said to replace whom."""

    def test_the_pod_of_a_replica_set_that_was_preempted(self, tmp_path: Path) -> None:
        """Not one that was too many, and not one of a set that grows."""
        found = play(tmp_path, f"""
            duration: 90s
            nodes: [{{name: n1, allocatable: {{cpu: "4", memory: 8Gi}}}}]
            priorityClasses: {{high: 1000}}
            manifests:
            {owner("ReplicaSet", "web", 3, "{containers: [{name: main, resources: {requests: {cpu: '1'}}}]}")}
            events:
            - at: 20s
              create:
                apiVersion: v1
                kind: Pod
                metadata: {{name: vip}}
                spec: {{priorityClassName: high, containers: [{{name: main, resources: {{requests: {{cpu: "2"}}}}}}]}}
            - {{at: 40s, patch: {{kind: ReplicaSet, name: web, merge: {{spec: {{replicas: 1}}}}}}}}
            - {{at: 60s, patch: {{kind: ReplicaSet, name: web, merge: {{spec: {{replicas: 2}}}}}}}}
        """)  # fmt: skip
        ((_, victim),) = found.of("sched.victim")
        made = [data for _, data in found.of("controller.pod")]
        assert {one["owner"] for one in made} == {"ReplicaSet default/web"}
        assert len(made) == 5
        assert [(one["replaces"], one["replaces_uid"]) for one in made if one["replaces"]] == [
            (victim["pod"], victim["uid"])
        ]
        assert made[3]["replaces"]

    def test_the_pod_of_a_stateful_set_has_the_name_of_the_other(self, tmp_path: Path) -> None:
        found = play(tmp_path, f"""
            duration: 90s
            nodes: [{{name: n1}}]
            manifests:
            {owner("StatefulSet", "db", 3)}
            events:
            - {{at: 20s, delete: {{pod: db-2}}}}
            - {{at: 20s, delete: {{pod: db-0}}}}
        """)  # fmt: skip
        first = {one.key: uid for uid, one in reversed(found.history.pods.items())}
        again = {data["pod"]: data for _, data in found.of("controller.pod") if data["replaces"]}
        assert sorted(again) == ["default/db-0", "default/db-2"]
        for name, data in again.items():
            assert (data["replaces"], data["replaces_uid"]) == (name, first[name])
            assert data["uid"] != data["replaces_uid"]

    def test_the_pod_of_a_daemon_set_has_the_node_of_the_other(self, tmp_path: Path) -> None:
        found = play(tmp_path, f"""
            duration: 3m
            nodes: [{{name: n1}}, {{name: n2}}, {{name: n3}}]
            manifests:
            {TestDaemonSets().agent()}
            events:
            - {{at: 20s, removeNode: {{node: n1}}}}
            - {{at: 20s, removeNode: {{node: n2}}}}
            - {{at: 120s, addNode: {{name: n2}}}}
            - {{at: 121s, addNode: {{name: n1}}}}
        """)  # fmt: skip
        again = [data for _, data in found.of("controller.pod") if data["replaces"]]
        node = {uid: one.node for uid, one in found.history.pods.items()}
        assert [node[data["uid"]] for data in again] == ["n2", "n1"]
        assert [node[data["replaces_uid"]] for data in again] == ["n2", "n1"]


class TestPodGarbage:
    def test_a_node_that_is_back_in_time_keeps_its_pods(self, tmp_path: Path) -> None:
        found = play(tmp_path, """
            duration: 3m
            nodes: [{name: n1}]
            manifests:
            - {apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {nodeName: n1, containers: [{name: main}]}}
            events:
            - {at: 25s, removeNode: {node: n1}}
            - {at: 65s, addNode: {name: n1}}
        """)  # fmt: skip
        assert found.of("podgc.deleted") == []

    def test_too_many_that_have_ended(self, tmp_path: Path) -> None:
        found = play(tmp_path, """
            duration: 90s
            nodes: [{name: n1}]
            controllers: {pod-gc: {terminatedPodThreshold: 3}}
            workloads:
            - name: task
              arrivals: {every: 2s, count: 6}
              pods: {spec: {containers: [{name: main}]}}
              life: {runSeconds: 1}
        """)  # fmt: skip
        assert [data["pod"] for _, data in found.of("podgc.deleted")] == [f"default/task-{n}" for n in range(3)]
        assert sorted(one.metadata.name for one in found.pods.values()) == ["task-3", "task-4", "task-5"]
