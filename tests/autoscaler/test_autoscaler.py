"""The cluster autoscaler on whole clusters, in virtual time."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.autoscaler import taints
from kemu.lab.checks.history import History
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.lab.tell import happenings
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.runlog.frames import FILE_NAME, Reader

OWN = 'nodes:\n- {name: own, allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}\n'
"""A node that nobody scales."""
NODES = "/registry/nodes/"
NODE = '{allocatable: {cpu: "4", memory: 16Gi, pods: "110"}}'


class Played:
    """A run, and what its log says."""

    def __init__(self, result: runner.RunResult) -> None:
        self.history: History = result.history
        self.costs = result.verdict["costs"]
        self.counts = result.verdict["counts"]
        with Reader(result.folder / FILE_NAME) as reader:
            self.events = [(time_ns / 1e9, kind, data) for time_ns, _, kind, data in reader]
        self.nodes: dict[str, core_v1_pb2.Node] = {}
        """As they are in the end."""
        for _, data in self.of("store.txn"):
            for op, key, value, *_ in data["changes"]:
                if key.startswith(NODES) and op == 0:
                    self.nodes[key.removeprefix(NODES)] = core_v1_pb2.Node.FromString(value)
        broken = [check["id"] for check in result.verdict["checks"] if check["asked"] and check["holds"] is False]
        assert not broken, result.verdict["checks"]

    def of(self, kind: str, **wanted: Any) -> list[tuple[float, Mapping[str, Any]]]:
        return [
            (at, data)
            for at, what, data in self.events
            if what == kind and all(data.get(name) == value for name, value in wanted.items())
        ]

    def reasons(self) -> list[str]:
        """Of events about the autoscaler itself."""
        return [data["reason"] for _, data in self.of("autoscaler.event")]


def play(folder: Path, spec: str, seed: int = 1) -> Played:
    text = f"apiVersion: kemu.dev/v1\nkind: Scenario\nspec:\n  seed: {seed}\n" + textwrap.indent(
        textwrap.dedent(spec), "  "
    )
    return Played(runner.run(loader.loads(text), runner.Options(out=folder, runtime="sim")))


def group(name: str = "pool", **more: Any) -> str:
    fields = {"min": 0, "max": 5, "template": NODE, **more}
    return f"{{name: {name}, " + ", ".join(f"{key}: {value}" for key, value in fields.items()) + "}"


def autoscaler(*groups: str, **flags: Any) -> str:
    text = "autoscaler:\n  nodeGroups:\n" + "".join(f"  - {each}\n" for each in groups or (group(),))
    return text + "".join(f"  {key}: {value}\n" for key, value in flags.items())


def pods(count: int, cpu: str = "2", at: str = "10s", prefix: str = "pod", more: str = "") -> str:
    return "".join(
        f"- {{at: {at}, create: {{apiVersion: v1, kind: Pod, metadata: {{name: {prefix}-{n}}}, "
        f'spec: {{{more}containers: [{{name: main, resources: {{requests: {{cpu: "{cpu}"}}}}}}]}}}}}}\n'
        for n in range(count)
    )


def replicas(name: str, count: int, cpu: str = "1", annotations: str = "{}", more: str = "") -> str:
    return (
        f"- {{apiVersion: apps/v1, kind: ReplicaSet, metadata: {{name: {name}}}, spec: {{replicas: {count}, "
        f"selector: {{matchLabels: {{app: {name}}}}}, template: {{metadata: {{labels: {{app: {name}}}, "
        f"annotations: {annotations}}}, spec: {{{more}containers: [{{name: main, "
        f'resources: {{requests: {{cpu: "{cpu}"}}}}}}]}}}}}}}}\n'
    )


# --- scale-up --------------------------------------------------------------------------------------------------------


def test_an_empty_cluster_grows_by_what_its_pods_take(tmp_path: Path) -> None:
    played = play(tmp_path, autoscaler(group(provisioning="50s")) + "duration: 5m\nevents:\n" + pods(5))
    ((at, data),) = played.of("autoscaler.scale_up")
    # Two pods of 2 CPUs on each node of 4; they are too young in the first iteration.
    assert (data["from"], data["to"]) == (0, 3)
    assert 12 <= at <= 21
    assert [round(when - at) for when, _ in played.of("cloud.instance", what="running")] == [50, 50, 50]
    assert played.counts["pods_bound"] == 5


def test_daemon_pods_take_room_on_every_new_node(tmp_path: Path) -> None:
    daemons = (
        "manifests:\n- {apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent}, spec: {selector: {matchLabels: "
        "{app: agent}}, template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: main, resources: "
        '{requests: {cpu: "1"}}}]}}}}\n'
    )
    played = play(tmp_path, autoscaler() + "duration: 5m\n" + daemons + "events:\n" + pods(2))
    ((_, data),) = played.of("autoscaler.scale_up")
    assert data["to"] == 2  # Two pods of 2 CPUs no longer share a node of 4.


def daemons(name: str = "agent", namespace: str = "default", cpu: str = "500m") -> str:
    return (
        f"- {{apiVersion: apps/v1, kind: DaemonSet, metadata: {{name: {name}, namespace: {namespace}}}, spec: "
        f"{{selector: {{matchLabels: {{app: {name}}}}}, template: {{metadata: {{labels: {{app: {name}}}}}, "
        f"spec: {{containers: [{{name: main, resources: {{requests: {{cpu: {cpu}}}}}}}]}}}}}}}}\n"
    )


def test_simulations_leave_daemon_pods_of_nodes_that_serve_as_examples_alone(tmp_path: Path) -> None:
    spec = autoscaler(group(min=1, initial=3)) + "duration: 20m\nmanifests:\n" + daemons()
    played = play(tmp_path, spec + "events:\n" + pods(1, cpu="40", at="50s") + pods(3, at="70s", prefix="next"))
    assert [data["why"] for _, data in played.of("autoscaler.no_scale_up")] == ["1 Insufficient cpu"]
    assert played.counts["pods_bound"] == 3 + 3
    assert not played.of("autoscaler.failed")


def test_daemon_sets_of_one_name_in_two_namespaces_count_twice(tmp_path: Path) -> None:
    manifests = "manifests:\n" + daemons() + daemons(namespace="kube-system")
    spec = autoscaler(group(provisioning="40s"), group("other", provisioning="40s")) + "duration: 6m\n" + manifests
    played = play(tmp_path, spec + "events:\n" + pods(2) + pods(2, at="30s", prefix="next"))
    # On a node of 4 CPUs, of which the daemons take one, there is room for one pod of 2.
    assert played.counts["nodes_added"] == 4


def test_a_pod_that_fits_on_no_group_adds_nothing_and_says_why(tmp_path: Path) -> None:
    played = play(tmp_path, autoscaler() + "duration: 5m\nevents:\n" + pods(1, cpu="8"))
    assert played.counts["scale_ups"] == 0
    ((_, data),) = played.of("autoscaler.no_scale_up")
    assert data["why"] == "1 Insufficient cpu"


def test_a_full_group_says_so(tmp_path: Path) -> None:
    played = play(tmp_path, autoscaler(group(max=1)) + "duration: 5m\nevents:\n" + pods(3))
    assert played.counts["nodes_added"] == 1
    assert "1 max node group size reached" in [data["why"] for _, data in played.of("autoscaler.no_scale_up")]


def test_nodes_to_come_count_as_room(tmp_path: Path) -> None:
    later = (
        autoscaler(group(provisioning="3m")) + "duration: 10m\nevents:\n" + pods(1) + pods(1, at="1m", prefix="next")
    )
    played = play(tmp_path, later)
    assert played.counts["nodes_added"] == 1


def test_a_node_that_starts_up_keeps_pods_away_and_is_not_asked_for_again(tmp_path: Path) -> None:
    played = play(tmp_path, autoscaler(group(provisioning="30s", startup="90s")) + "duration: 10m\nevents:\n" + pods(1))
    ((asked, _),) = played.of("autoscaler.scale_up")
    ((bound, _),) = played.of("sched.bind", ok=True)
    assert 120 <= bound - asked <= 121
    assert played.counts["nodes_added"] == 1


# --- failures --------------------------------------------------------------------------------------------------------


def test_a_group_without_machines_is_left_alone_for_longer_each_time(tmp_path: Path) -> None:
    failing = group(failures="[{kind: out-of-resources, until: 30m}]")
    played = play(tmp_path, autoscaler(failing) + "duration: 50m\nevents:\n" + pods(1))
    times = [at for at, _ in played.of("autoscaler.scale_up")]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    # 5, 10, 20 minutes, and the next iteration.
    assert [round(gap / 60) for gap in gaps] == [5, 10, 20]
    assert played.reasons().count("ScaleUpFailed") == 3
    assert played.counts["pods_bound"] == 1


def test_while_a_group_fails_another_one_grows(tmp_path: Path) -> None:
    cheap = group("cheap", price=0.1, failures="[{kind: out-of-resources}]")
    dear = group("dear", price=1)
    played = play(tmp_path, autoscaler(cheap, dear, expander="price") + "duration: 10m\nevents:\n" + pods(1))
    assert [data["group"] for _, data in played.of("autoscaler.scale_up")] == ["cheap", "dear"]
    assert played.counts["pods_bound"] == 1


def test_machines_that_never_register_are_given_up(tmp_path: Path) -> None:
    failing = group(failures="[{kind: never-registers, until: 5m}]", provisioning="60s")
    played = play(tmp_path, autoscaler(failing) + "duration: 40m\nevents:\n" + pods(1))
    # To the autoscaler the scale-up is over then, not failed: it asks for the next machine at once.
    assert "ScaleUpTimedOut" not in played.reasons()
    assert "DeleteUnregistered" in played.reasons()
    given_up = played.of("cloud.instance", what="deleting", node="pool-1")
    assert 15 <= given_up[0][0] / 60 <= 16
    assert played.counts["pods_bound"] == 1


def test_with_too_many_broken_nodes_it_does_nothing(tmp_path: Path) -> None:
    crash = "chaos:\n- {at: 1m, crash: {node: pool-*, count: 5, restart: false}}\n"
    spec = autoscaler(group(initial=6, max=9, min=6), maxNodeStartupTime="1s") + crash
    played = play(tmp_path, spec + "duration: 20m\nevents:\n" + pods(4, cpu="3", at="10m"))
    assert "ClusterUnhealthy" in played.reasons()
    assert played.counts["scale_ups"] == 0


# --- scale-down ------------------------------------------------------------------------------------------------------


def test_an_empty_node_goes_after_ten_minutes_and_is_paid_for_until_then(tmp_path: Path) -> None:
    played = play(tmp_path, autoscaler(group(initial=2, min=1, price=6)) + "duration: 1h\n")
    ((at, data),) = played.of("autoscaler.scale_down")
    assert (data["drain"], round(at)) == (False, 620)
    ((gone, _),) = played.of("cloud.instance", what="gone")
    end = played.history.now_ns / 1e9
    assert played.costs["bill.node_hours"] == pytest.approx((gone + end) / 3600, abs=1e-5)
    assert played.costs["bill.money"] == pytest.approx(6 * (gone + end) / 3600, abs=1e-5)


def test_nodes_are_drained_one_at_a_time_within_their_budgets(tmp_path: Path) -> None:
    spread = "topologySpreadConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}], "  # noqa: E501
    budget = "- {apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web}, spec: {maxUnavailable: 1, selector: {matchLabels: {app: web}}}}\n"  # noqa: E501
    spec = autoscaler(group(initial=4, min=0, max=4)) + "duration: 1h\nmanifests:\n"
    played = play(tmp_path, spec + replicas("web", 4, more=spread) + budget)
    begun = [at for at, data in played.of("autoscaler.scale_down") if data["drain"]]
    ended = [at for at, data in played.of("autoscaler.scaled_down") if data["ok"]]
    assert played.counts["nodes_removed"] == 3
    assert len(begun) == 3, played.of("autoscaler.scaled_down")
    assert all(end <= begin for end, begin in zip(ended[:-1], begun[1:], strict=True))
    assert played.counts["evictions"] == 4  # The last of them has two pods by then.


def test_pods_that_may_not_move_keep_their_node(tmp_path: Path) -> None:
    unsafe = '{cluster-autoscaler.kubernetes.io/safe-to-evict: "false"}'
    scratch = "volumes: [{name: scratch, emptyDir: {}}], "
    for index, more in enumerate((
        replicas("web", 1, annotations=unsafe),
        replicas("web", 1, more=scratch),
        "- {apiVersion: v1, kind: Pod, metadata: {name: lonely}, spec: {nodeName: pool-1, containers: [{name: main}]}}\n",  # noqa: E501
    )):  # fmt: skip
        spec = autoscaler(group(initial=2, min=0)) + "duration: 40m\nmanifests:\n"
        played = play(tmp_path / str(index), spec + more)
        assert played.counts["nodes_removed"] == 1, more


def test_a_pod_below_the_cut_off_keeps_no_node(tmp_path: Path) -> None:
    spec = autoscaler(group(initial=2, min=1), cutOff=0) + "duration: 40m\npriorityClasses: {low: -1}\nmanifests:\n"
    lonely = "- {apiVersion: v1, kind: Pod, metadata: {name: lonely-%d}, spec: {nodeName: pool-%d, priorityClassName: low, containers: [{name: main, resources: {requests: {cpu: 4}}}]}}\n"  # noqa: E501
    played = play(tmp_path, spec + lonely % (1, 1) + lonely % (2, 2))
    assert played.counts["nodes_removed"] == 1


def test_a_failed_drain_gives_the_node_back(tmp_path: Path) -> None:
    """The pod does not go in time: somebody keeps it with a finalizer."""
    stuck = (
        "- {apiVersion: v1, kind: Pod, metadata: {name: stuck, finalizers: [example.com/keep], annotations: "
        '{cluster-autoscaler.kubernetes.io/safe-to-evict: "true"}}, '
        "spec: {nodeName: pool-1, containers: [{name: main}]}}\n"
    )
    flags = "  scaleDown: {maxGracefulTermination: 60s}\n"
    spec = autoscaler(group(initial=1, min=0)) + flags + OWN + "duration: 12m\nmanifests:\n" + stuck
    played = play(tmp_path, spec)
    ((_, data), *_) = played.of("autoscaler.scaled_down")
    assert (data["ok"], data["why"]) == (False, "Failed to drain node /pool-1: pods remaining after timeout")
    assert not taints.has(played.nodes["pool-1"], taints.TO_BE_DELETED)
    assert not played.nodes["pool-1"].spec.unschedulable


@pytest.mark.parametrize(("more", "added"), [("", 0), (OWN, 1)])
def test_without_scale_up_from_zero_a_cluster_without_ready_nodes_does_not_grow(
    tmp_path: Path, more: str, added: int
) -> None:
    big = "- {at: 10s, create: {apiVersion: v1, kind: Pod, metadata: {name: big}, spec: {nodeSelector: {disk: ssd}, containers: [{name: main}]}}}\n"  # noqa: E501
    pool = group(template='{allocatable: {cpu: "4", memory: 16Gi, pods: "110"}, labels: {disk: ssd}}')
    played = play(tmp_path, autoscaler(pool, scaleUpFromZero="false") + more + "duration: 10m\nevents:\n" + big)
    assert played.counts.get("nodes_added", 0) == added
    assert ("ClusterUnhealthy" in played.reasons()) is (added == 0)


# --- as before -------------------------------------------------------------------------------------------------------


def test_a_cordoned_node_with_its_taint_is_taken_back_by_a_new_autoscaler(tmp_path: Path) -> None:
    crash = "chaos:\n- {at: 612s, crash: {actor: controller/cluster-autoscaler, restart: true}}\n"
    played = play(tmp_path, autoscaler(group(initial=2, min=1)) + crash + "duration: 40m\n")
    # It began anew: ten minutes after the crash.
    ends = [at for at, data in played.of("autoscaler.scaled_down") if data["ok"]]
    assert len(ends) == 1
    assert ends[0] > 612 + 590


def test_the_same_seed_gives_the_same_run(tmp_path: Path) -> None:
    spec = (
        autoscaler(group(provisioning="{uniform: {min: 20s, max: 90s}}"), group("other")) + "duration: 20m\nevents:\n"
    )
    first = play(tmp_path / "1", spec + pods(6))
    second = play(tmp_path / "2", spec + pods(6))
    assert first.events == second.events


def test_the_story_says_what_it_did(tmp_path: Path) -> None:
    spec = autoscaler(group(max=1)) + "duration: 40m\nevents:\n" + pods(3) + "- {at: 5m, delete: {pod: pod-0}}\n"
    played = play(tmp_path, spec + "- {at: 5m, delete: {pod: pod-1}}\n- {at: 5m, delete: {pod: pod-2}}\n")
    told = [each.what for each in happenings.all_of(played.history) if each.kind == "scaled"]
    assert told == ["pool grows from 0 to 1", "no node would help pod-2", "pool-1 is not needed: it is empty and goes"]
