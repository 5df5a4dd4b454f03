"""Admission: namespaces, priorities, default tolerations."""

from __future__ import annotations

import pytest

from kemu import errors
from kemu.k8s import core_v1_pb2
from tests.apiserver.apiserver_cluster import Cluster, pod, priority_class, refusal, run


def namespace(name: str) -> core_v1_pb2.Namespace:
    new = core_v1_pb2.Namespace()
    new.metadata.name = name
    return new


# Namespaces ---------------------------------------------------------------------------------------------------------


def test_the_namespace_must_exist() -> None:
    async def main(cluster: Cluster) -> None:
        error = await refusal(errors.NotFound, cluster.client.create(pod("a", "nowhere")), cluster)
        assert str(error) == 'namespaces "nowhere" not found'

    run(main)


def test_a_namespace_may_be_used_at_once() -> None:
    """Even before the watch cache has seen it."""

    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(namespace("fresh"))
        assert created.metadata.labels["kubernetes.io/metadata.name"] == "fresh"
        assert (await cluster.client.create(pod("a", "fresh"))).metadata.namespace == "fresh"

    run(main, servers=({"cache_lag_s": 5},))


@pytest.mark.parametrize("lag_s", [0, 5])
def test_nothing_is_created_in_a_terminating_namespace(lag_s: float) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(namespace("old"))
        await cluster.client.create(pod("a", "old"))
        deleted = await cluster.client.delete("namespaces", "old")
        assert deleted.status.phase == "Terminating"
        await cluster.clock.sleep(10)
        error = await refusal(errors.Forbidden, cluster.client.create(pod("b", "old")), cluster)
        assert str(error) == (
            'pods "b" is forbidden: unable to create new content in namespace old because it is being terminated'
        )
        assert [cause.reason for cause in error.causes] == ["NamespaceTerminating"]
        await cluster.client.patch("pods", "a", "old", {"metadata": {"labels": {"x": "1"}}})
        deleted.spec.ClearField("finalizers")
        await cluster.client.update(deleted)
        await refusal(errors.NotFound, cluster.client.get("namespaces", "old"))

    run(main, servers=({"cache_lag_s": lag_s},))


def test_some_namespaces_are_immortal() -> None:
    async def main(cluster: Cluster) -> None:
        for name in ("default", "kube-system", "kube-public"):
            error = await refusal(errors.Forbidden, cluster.client.delete("namespaces", name), cluster)
            assert str(error) == f'namespaces "{name}" is forbidden: this namespace may not be deleted'

    run(main)


# Priority -----------------------------------------------------------------------------------------------------------


def test_a_class_name_becomes_a_priority() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(priority_class("high", 1000))
        await cluster.client.create(priority_class("polite", 500, preemptionPolicy="Never"))
        high = await cluster.client.create(pod("a", priorityClassName="high"))
        assert (high.spec.priority, high.spec.preemptionPolicy) == (1000, "PreemptLowerPriority")
        polite = await cluster.client.create(pod("b", priorityClassName="polite"))
        assert (polite.spec.priority, polite.spec.preemptionPolicy) == (500, "Never")
        none = await cluster.client.create(pod("c"))
        assert none.spec.HasField("priority")
        assert (none.spec.priority, none.spec.priorityClassName) == (0, "")
        critical = await cluster.client.create(pod("d", "kube-system", priorityClassName="system-node-critical"))
        assert critical.spec.priority == 2_000_001_000

    run(main)


def test_a_class_may_be_used_at_once() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(priority_class("fresh", 77, preemptionPolicy="Never"))
        created = await cluster.client.create(pod("a", priorityClassName="fresh"))
        assert (created.spec.priority, created.spec.preemptionPolicy) == (77, "Never")

    run(main, servers=({"cache_lag_s": 5},))


def test_an_unknown_class_is_forbidden() -> None:
    async def main(cluster: Cluster) -> None:
        new = pod("a", priorityClassName="no-such-class")
        error = await refusal(errors.Forbidden, cluster.client.create(new), cluster)
        assert str(error) == 'pods "a" is forbidden: no PriorityClass with name no-such-class was found'
        assert (error.kind, error.name) == ("pods", "a")
        await cluster.client.create(priority_class("no-such-class", 7))
        assert (await cluster.client.create(new)).spec.priority == 7
        await cluster.client.delete("priorityclasses", "no-such-class")
        await cluster.clock.sleep(1)
        await refusal(errors.Forbidden, cluster.client.create(pod("b", priorityClassName="no-such-class")), cluster)

    run(main)


def test_the_global_default() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(priority_class("usual", 10, globalDefault=True, preemptionPolicy="Never"))
        await cluster.clock.sleep(1)
        new = await cluster.client.create(pod("a"))
        assert (new.spec.priorityClassName, new.spec.priority, new.spec.preemptionPolicy) == ("usual", 10, "Never")
        second = priority_class("another", 20, globalDefault=True)
        error = await refusal(errors.Forbidden, cluster.client.create(second), cluster)
        assert str(error) == (
            'priorityclasses.scheduling.k8s.io "another" is forbidden: '
            "PriorityClass usual is already marked as default. Only one default can exist"
        )
        created = await cluster.client.create(priority_class("another", 20))
        created.globalDefault = True
        await refusal(errors.Forbidden, cluster.client.update(created), cluster)
        usual = await cluster.client.get("priorityclasses", "usual")
        usual.description = "the usual one"
        usual = await cluster.client.update(usual)
        await cluster.client.delete("priorityclasses", "usual")
        await cluster.clock.sleep(1)
        assert (await cluster.client.update(created)).globalDefault
        await cluster.clock.sleep(1)
        assert (await cluster.client.create(pod("b"))).spec.priority == 20
        assert (await cluster.client.get("pods", "a", "default")).spec.priority == 10

    run(main)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("too-high", 1_000_000_001, errors.Invalid),
        ("system-mine", 5, errors.Invalid),
        ("system-node-critical2", 2_000_001_000, errors.Invalid),
    ],
)
def test_names_and_values_of_the_system_are_refused(name: str, value: int, reason: type[errors.ApiError]) -> None:
    async def main(cluster: Cluster) -> None:
        await refusal(reason, cluster.client.create(priority_class(name, value)), cluster)
        await cluster.client.create(priority_class("just-right", 1_000_000_000))

    run(main)


def test_a_priority_that_the_class_does_not_give_is_forbidden() -> None:
    async def main(cluster: Cluster) -> None:
        error = await refusal(errors.Forbidden, cluster.client.create(pod("a", priority=5)), cluster)
        assert str(error) == (
            'pods "a" is forbidden: the integer value of priority (5) must not be provided in pod spec; '
            "priority admission controller computed 0 from the given PriorityClass name"
        )
        error = await refusal(errors.Forbidden, cluster.client.create(pod("a", preemptionPolicy="Never")), cluster)
        assert "the string value of PreemptionPolicy (Never) must not be provided in pod spec" in str(error)
        await cluster.client.create(pod("a", priority=0, preemptionPolicy="PreemptLowerPriority"))

    run(main)


# Tolerations --------------------------------------------------------------------------------------------------------

NOT_READY = ("node.kubernetes.io/not-ready", "Exists", "NoExecute", 300)
UNREACHABLE = ("node.kubernetes.io/unreachable", "Exists", "NoExecute", 300)


@pytest.mark.parametrize(
    ("given", "added"),
    [
        ([], [NOT_READY, UNREACHABLE]),
        ([{"key": "other", "operator": "Exists"}], [NOT_READY, UNREACHABLE]),
        ([{"key": NOT_READY[0], "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 7}], [UNREACHABLE]),
        ([{"key": UNREACHABLE[0], "operator": "Exists"}], [NOT_READY]),
        ([{"key": NOT_READY[0], "operator": "Exists", "effect": "NoSchedule"}], [NOT_READY, UNREACHABLE]),
        ([{"operator": "Exists"}], []),
        ([{"operator": "Exists", "effect": "NoExecute"}], []),
    ],
)
def test_default_tolerations(given: list[dict[str, object]], added: list[tuple[str, str, str, int]]) -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a", tolerations=given))
        found = [(one.key, one.operator, one.effect, one.tolerationSeconds) for one in created.spec.tolerations]
        assert found[len(given) :] == added

    run(main)


def test_plugins_can_be_left_out() -> None:
    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a", "nowhere", priorityClassName="unknown"))
        assert not created.spec.tolerations
        assert not created.spec.HasField("priority")

    run(main, servers=({"admission": []},))
