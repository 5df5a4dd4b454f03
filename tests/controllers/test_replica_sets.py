"""ReplicaSets, StatefulSets and DaemonSets as the real controllers sync them (v1.36.3)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.controllers.workloads import expectations, slow_start
from kemu.emulated.objects import meta, resources
from kemu.runtime.sim.simulation import SimRuntime
from kemu.testing import sim
from tests.controllers.test_node_failures import POD, Played, owner, play
from tests.controllers.test_workloads import names

MANY = 'nodes: [{name: n1, allocatable: {cpu: "64", memory: 256Gi, pods: "500"}}]'


def created(found: Played, prefix: str) -> list[float]:
    """When pods were created, in seconds."""
    return sorted(one.created_ns / 1e9 for one in found.history.pods.values() if one.key.startswith(prefix))


def controllers_of(found: Played) -> dict[str, str]:
    """By pod that is there in the end: the name of its controller."""
    refs = {pod.metadata.name: meta.controller_of(pod) for pod in found.pods.values()}
    return {name: "" if ref is None else ref.name for name, ref in refs.items()}


def statuses(found: Played, kind: str) -> list[tuple[float, Any]]:
    """The statuses that objects of a kind had, and since when."""
    resource = resources.BY_KIND[kind]
    prefix = resources.prefix(resource).decode()
    message: Any = resource.message
    return [(at, message.FromString(value).status) for at, key, value in found.written if key.startswith(prefix)]


class TestSlowStart:
    """``slowStartBatch``."""

    @pytest.mark.parametrize("latency", ["10ms", "1s"])
    def test_batches_double(self, latency: str, tmp_path: Path) -> None:
        found = play(tmp_path, f"""
            duration: 60s
            {MANY}
            timing: {{apiLatency: {latency}, watchLatency: 0s}}
            manifests:
            {owner("ReplicaSet", "web", 20)}
        """)  # fmt: skip
        assert [count for _, count in sorted(Counter(created(found, "default/web")).items())] == [1, 2, 4, 8, 5]

    def test_when_the_first_creation_fails_the_others_are_not_tried(self, tmp_path: Path) -> None:
        """And the set says so in its status as long as it lasts."""
        found = play(tmp_path, f"""
            duration: 60s
            {MANY}
            manifests:
            {owner("ReplicaSet", "web", 100, POD.replace("{containers", "{priorityClassName: late, containers"))}
            events:
            - at: 20s
              create: {{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {{name: late}}, value: 5}}
        """)  # fmt: skip
        refused = [at for at, data in found.of("api.refused") if data["verb"] == "create"]
        # One attempt at a time, after 5 ms, 10 ms, 20 ms and so on.
        assert 10 <= len(refused) <= 14
        assert max(refused) < 20
        assert len(names(found, "web")) == 100
        written = [
            (status.readyReplicas, {one.type: (one.reason, one.message) for one in status.conditions})
            for _, status in statuses(found, "ReplicaSet")
        ]
        ready, conditions = written[1]
        reason, message = conditions["ReplicaFailure"]
        assert (ready, reason) == (0, "FailedCreate")
        assert message.endswith("is forbidden: no PriorityClass with name late was found")
        assert written[-1] == (100, {})

    def test_what_could_not_be_created_is_returned(self) -> None:
        async def main(runtime: SimRuntime) -> None:
            tried: list[int] = []

            async def create(number: int) -> None:
                tried.append(number)
                if number in (4, 5):
                    raise errors.Forbidden(f"no {number}")

            left, failure = await slow_start.each(runtime.env("x"), range(100), create)
            assert tried == list(range(7))
            assert left == [4, 5, *range(7, 100)]
            assert str(failure) == "no 4"

        sim(main, 0)


class TestReplicaSetsOfAnySize:
    """``validateReplicaSetSpec`` allows any number."""

    def test_two_thousand_million_replicas_come_500_at_a_time(self, tmp_path: Path) -> None:
        found = play(tmp_path, f"""
            duration: 4s
            nodes: [{{name: n1, allocatable: {{pods: "10"}}}}]
            timing: {{apiLatency: 100ms, watchLatency: 10ms}}
            manifests:
            {owner("ReplicaSet", "huge", 2_000_000_000)}
            {owner("ReplicaSet", "small", 3)}
        """)  # fmt: skip
        assert 500 <= len(created(found, "default/huge")) <= 2_000
        assert len(created(found, "default/small")) == 3

    @pytest.mark.parametrize(("policy", "least", "most"), [("OrderedReady", 1, 10), ("Parallel", 500, 8_000)])
    def test_so_do_those_of_a_stateful_set(self, policy: str, least: int, most: int, tmp_path: Path) -> None:
        text = owner("StatefulSet", "huge", 2_000_000_000).replace(
            "podManagementPolicy: Parallel", f"podManagementPolicy: {policy}"
        )
        found = play(tmp_path, f"""
            duration: 2s
            nodes: [{{name: n1, allocatable: {{pods: "10"}}}}]
            timing: {{apiLatency: 100ms, watchLatency: 10ms}}
            manifests:
            {text}
            {owner("StatefulSet", "small", 2)}
        """)  # fmt: skip
        assert least <= len(created(found, "default/huge")) <= most
        assert len(created(found, "default/small")) == 2


class TestClaims:
    """``PodControllerRefManager``."""

    @pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
    def test_a_pod_without_a_controller_is_adopted(self, kind: str, tmp_path: Path) -> None:
        """It counts from then on, and goes with its owner."""
        name = "web-1" if kind == "StatefulSet" else "stray"
        found = play(tmp_path, f"""
            duration: 40s
            {MANY}
            manifests:
            - {{apiVersion: v1, kind: Pod, metadata: {{name: {name}, labels: {{app: web}}}}, spec: {POD}}}
            - {{apiVersion: v1, kind: Pod, metadata: {{name: other, labels: {{app: other}}}}, spec: {POD}}}
            {owner(kind, "web", 3)}
            events:
            - at: 20s
              create: {{apiVersion: v1, kind: Pod, metadata: {{name: late, labels: {{app: web}}}}, spec: {POD}}}
        """)  # fmt: skip
        made = [data["pod"] for _, data in found.of("controller.pod")]
        # A pod of no revision is updated: the StatefulSet replaces it.
        assert len(made) == (3 if kind == "StatefulSet" else 2)
        owners = controllers_of(found)
        assert owners.pop("other") == ""
        if kind == "StatefulSet":
            assert owners == {"web-0": "web", "web-1": "web", "web-2": "web", "late": ""}
        else:
            # The late one was one too many: it or another went.
            assert list(owners.values()) == ["web"] * 3
            assert [data["pod"] for _, data in found.of("controller.adopted")] == ["default/stray", "default/late"]

    def test_the_pods_of_a_deleted_set_that_was_not_theirs_stay(self, tmp_path: Path) -> None:
        """One that another controller owns is left alone, and so are pods whose labels were changed away."""
        found = play(tmp_path, f"""
            duration: 60s
            {MANY}
            manifests:
            {owner("ReplicaSet", "web", 3)}
            - {{apiVersion: v1, kind: Pod, metadata: {{name: stray, labels: {{app: web}}}}, spec: {POD}}}
            events:
            - {{at: 10s, patch: {{kind: Pod, name: stray, merge: {{metadata: {{labels: {{app: debugged}}}}}}}}}}
            - {{at: 40s, delete: {{kind: ReplicaSet, name: web}}}}
        """)  # fmt: skip
        assert [(data["pod"], data["owner"]) for _, data in found.of("controller.released")] == [
            ("default/stray", "ReplicaSet default/web")
        ]
        # A replacement came at once, and all but the released one are gone with the set.
        assert len(created(found, "default/web")) == 3
        assert controllers_of(found) == {"stray": ""}

    def test_an_owner_deletes_the_pods_of_a_namesake_that_is_gone(self, tmp_path: Path) -> None:
        """While the controller was down one set was deleted and another of its name created."""
        found = play(tmp_path, f"""
            duration: 2m
            {MANY}
            manifests:
            {owner("ReplicaSet", "web", 3)}
            events:
            - {{at: 20s, delete: {{kind: ReplicaSet, name: web}}}}
            - at: 22s
              create: {owner("ReplicaSet", "web", 2).removeprefix("- ").replace("app: web", "app: new")}
            chaos:
            - {{at: 15s, for: 10s, crash: {{actor: controller/replicaset}}}}
        """)  # fmt: skip
        assert names(found, "web") == []
        assert len(names(found, "new")) == 2


class TestAvailability:
    """``minReadySeconds``."""

    @pytest.mark.parametrize(
        ("kind", "field"),
        [
            ("ReplicaSet", "availableReplicas"),
            ("StatefulSet", "availableReplicas"),
            ("DaemonSet", "numberAvailable"),
        ],
    )
    def test_a_pod_is_available_some_time_after_it_is_ready(self, kind: str, field: str, tmp_path: Path) -> None:
        text = owner(kind, "web", 2).replace("selector:", "minReadySeconds: 30, selector:", 1)
        if kind == "DaemonSet":
            text = text.replace("replicas: 2, ", "")
        found = play(tmp_path, f"""
            duration: 60s
            nodes: [{{name: n1}}, {{name: n2}}]
            manifests:
            {text}
        """)  # fmt: skip
        running_s = [at for at, data in found.of("kubelet.running")]
        written = [(at, getattr(status, field)) for at, status in statuses(found, kind) if getattr(status, field)]
        assert written[-1][1] == 2
        assert min(at for at, _ in written) - min(running_s) >= 29
        assert max(at for at, _ in written) - max(running_s) <= 34

    def test_the_next_of_a_stateful_set_waits_for_it(self, tmp_path: Path) -> None:
        text = owner("StatefulSet", "db", 3).replace("podManagementPolicy: Parallel", "minReadySeconds: 20")
        found = play(tmp_path, f"""
            duration: 2m
            {MANY}
            manifests:
            {text}
        """)  # fmt: skip
        first, second, third = created(found, "default/db")
        assert 19 <= second - first <= 26
        assert 19 <= third - second <= 26


class TestSideBySide:
    def test_several_owners_are_synced_at_the_same_time(self, tmp_path: Path) -> None:
        """Five by default (``ConcurrentRSSyncs``)."""
        found = play(tmp_path, f"""
            duration: 30s
            {MANY}
            timing: {{apiLatency: 1s, watchLatency: 0s}}
            manifests:
            {"".join(owner("ReplicaSet", f"s{n}", 1).replace(chr(10), chr(10) + " " * 12) for n in range(10))}
        """)  # fmt: skip
        times = Counter(round(min(created(found, f"default/s{n}-")), 1) for n in range(10))
        assert sorted(times.values()) == [5, 5]


class TestExpectations:
    def test_they_are_met_when_all_has_been_seen_or_too_long_ago(self) -> None:
        async def main(runtime: SimRuntime) -> None:
            found = expectations.Expectations(runtime.clock)
            assert found.are_met("set")
            found.expect("set", "a", expectations.CREATED)
            found.expect("set", "b", expectations.DELETED)
            found.observe("set", "a", expectations.CREATED)
            found.observe("set", "b", expectations.CREATED)
            assert not found.are_met("set")
            assert found.are_met("other")
            found.observe("set", "b", expectations.DELETED)
            assert found.are_met("set")
            found.expect("set", "c", expectations.CREATED)
            await runtime.clock.sleep(expectations.TIMEOUT_S)
            assert found.are_met("set")
            assert len(found) == 0

        sim(main, 0)
