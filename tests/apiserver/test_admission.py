"""Admission: namespaces, priorities, default tolerations, runtime classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kemu import errors
from kemu.emulated.apiserver import admission
from kemu.emulated.apiserver.admission.tolerations import of_pods, sets
from kemu.emulated.objects.conversion import convert
from kemu.messages.k8s import core_v1_pb2, node_v1_pb2
from tests.apiserver.apiserver_cluster import Cluster, node, pod, priority_class, refusal, run


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
        assert list((await cluster.client.get("namespaces", "old")).spec.finalizers) == ["kubernetes"]
        await cluster.client.update(deleted, "finalize")
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


# Node taints ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_on", [False, True])
def test_new_nodes_take_no_pods_yet_where_the_plugin_is_on(is_on: bool) -> None:
    """``Admit`` of plugin/pkg/admission/nodetaint: on creation alone, and once."""

    async def main(cluster: Cluster) -> None:
        new = node("n1")
        new.spec.taints.add(key="node.kubernetes.io/not-ready", effect="NoExecute")
        created = await cluster.client.create(new)
        taints = [(taint.key, taint.effect) for taint in created.spec.taints]
        added = [("node.kubernetes.io/not-ready", "NoSchedule")] * is_on
        assert taints == [("node.kubernetes.io/not-ready", "NoExecute"), *added]
        again = node("n2")
        again.spec.CopyFrom(created.spec)
        again = await cluster.client.create(again)
        assert again.spec == created.spec
        again.spec.ClearField("taints")
        assert not (await cluster.client.update(again)).spec.taints

    run(main, servers=({"admission": [*admission.DEFAULT_ON, "TaintNodesByCondition"]},) if is_on else ({},))


# Topology -------------------------------------------------------------------------------------------------------------


def test_pods_have_the_zone_and_the_region_of_their_node() -> None:
    """``Admit`` of plugin/pkg/admission/podtopologylabels."""

    async def main(cluster: Cluster) -> None:
        placed = node("n1")
        zone, region = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
        placed.metadata.labels.update({zone: "a", region: "west", "topology.kubernetes.io/rack": "7"})
        await cluster.client.create(placed)
        made = pod("x")
        made.metadata.labels.update({zone: "stated", "app": "x"})
        uid = (await cluster.client.create(made)).metadata.uid
        bound = await cluster.client.bind("default", "x", uid, "n1")
        assert dict(bound.metadata.labels) == {zone: "a", region: "west", "app": "x"}
        uid = (await cluster.client.create(pod("y"))).metadata.uid
        bound = await cluster.client.bind("default", "y", uid, "unknown")
        assert not bound.metadata.labels
        assert dict((await cluster.client.create(pod("z", nodeName="n1"))).metadata.labels) == {
            zone: "a",
            region: "west",
        }

        changed = await cluster.client.get("nodes", "n1")
        changed.metadata.labels[zone] = "b"
        await cluster.client.update(changed)
        uid = (await cluster.client.create(pod("later"))).metadata.uid
        bound = await cluster.client.bind("default", "later", uid, "n1")
        assert bound.metadata.labels[zone] == "b"

    run(main)


# Pod toleration restriction -------------------------------------------------------------------------------------------

ALL = ({"admission": [*admission.DEFAULT_ON, "PodTolerationRestriction"]},)
REQUESTS = {"containers": [{"name": "main", "image": "pause:1", "resources": {"requests": {"cpu": "1"}}}]}


@pytest.mark.parametrize("is_on", [False, True])
@pytest.mark.parametrize("spec", [{}, REQUESTS])
def test_pods_that_are_not_best_effort_tolerate_memory_pressure_where_the_plugin_is_on(
    is_on: bool, spec: dict[str, Any]
) -> None:
    """``Admit`` of plugin/pkg/admission/podtolerationrestriction; ``DefaultOffAdmissionPlugins`` of
    pkg/kubeapiserver/options has it off."""

    async def main(cluster: Cluster) -> None:
        created = await cluster.client.create(pod("a", **spec))
        found = [(one.operator, one.effect) for one in created.spec.tolerations if one.key == of_pods.MEMORY_PRESSURE]
        assert found == [("Exists", "NoSchedule")] * (is_on and bool(spec))

    run(main, servers=ALL if is_on else ({},))


def test_a_namespace_gives_tolerations_and_limits_them() -> None:
    async def main(cluster: Cluster) -> None:
        team = namespace("team")
        team.metadata.annotations[of_pods.DEFAULTS] = '[{"key": "team", "operator": "Exists"}]'
        listed = '[{"key": "team", "operator": "Exists"}, {"operator": "Exists", "effect": "NoExecute"}]'
        team.metadata.annotations[of_pods.ALLOWED] = listed
        await cluster.client.create(team)
        created = await cluster.client.create(pod("a", "team"))
        assert "team" in [one.key for one in created.spec.tolerations]
        other = pod("b", "team", tolerations=[{"key": "other", "operator": "Exists"}])
        error = await refusal(errors.Forbidden, cluster.client.create(other), cluster)
        assert "conflict with its namespace whitelist" in str(error)
        await cluster.client.create(pod("c", "default", tolerations=[{"key": "other", "operator": "Exists"}]))

    run(main, servers=ALL)


# Plugins that are off by default --------------------------------------------------------------------------------------


def requesting(name: str, *resources: str, **spec: Any) -> Any:
    """A pod whose container and init container request so many extended resources."""

    def container(name: str, requests: Sequence[str]) -> dict[str, Any]:
        amounts = dict.fromkeys(requests, "1")
        return {"name": name, "image": "pause:1", "resources": {"requests": amounts, "limits": amounts}}

    main, init = container("main", resources[:1]), container("init", resources[1:])
    return pod(name, containers=[main], initContainers=[init], **spec)


@pytest.mark.parametrize("is_on", [False, True])
def test_pods_tolerate_the_taints_of_the_extended_resources_that_they_request(is_on: bool) -> None:
    async def main(cluster: Cluster) -> None:
        own = [{"key": "b.io/card", "operator": "Exists", "effect": "NoSchedule"}, {"key": "a.io/card", "value": "x"}]
        created = await cluster.client.create(requesting("a", "b.io/card", "a.io/card", tolerations=own))
        found = [
            (one.key, one.operator, one.effect) for one in created.spec.tolerations if one.key.endswith(".io/card")
        ]
        stated = [("b.io/card", "Exists", "NoSchedule"), ("a.io/card", "", "")]
        assert found == stated + [("a.io/card", "Exists", "NoSchedule")] * is_on

    run(main, servers=({"admission": [*admission.DEFAULT_ON, *["ExtendedResourceToleration"] * is_on]},))


@pytest.mark.parametrize(("key", "is_on", "passes"), [("zone", False, True), ("zone", True, False), ("", True, True)])
def test_required_anti_affinity_may_be_limited_to_nodes(key: str, is_on: bool, passes: bool) -> None:
    async def main(cluster: Cluster) -> None:
        term = {"topologyKey": key or "kubernetes.io/hostname", "labelSelector": {}}
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        creating = cluster.client.create(pod("a", affinity=affinity))
        if passes:
            await creating
            return
        error = await refusal(errors.Forbidden, creating, cluster)
        assert str(error) == (
            'pods "a" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only '
            "key kubernetes.io/hostname is allowed"
        )

    run(main, servers=({"admission": [*admission.DEFAULT_ON, *["LimitPodHardAntiAffinityTopology"] * is_on]},))


# Runtime classes ------------------------------------------------------------------------------------------------------


def runtime_class(name: str, **fields: Any) -> node_v1_pb2.RuntimeClass:
    data = {"metadata": {"name": name}, "handler": "runc", **fields}
    return convert.from_json(node_v1_pb2.RuntimeClass, data)


KATA = runtime_class("kata", overhead={"podFixed": {"cpu": "250m", "memory": "120Mi"}})


def amounts(created: Any) -> dict[str, str]:
    return {name: created.spec.overhead[name].string for name in sorted(created.spec.overhead)}


@pytest.mark.parametrize("lag_s", [0, 5])
def test_a_runtime_class_brings_its_overhead(lag_s: float) -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(KATA)
        created = await cluster.client.create(pod("a", runtimeClassName="kata"))
        assert amounts(created) == {"cpu": "250m", "memory": "120Mi"}
        # The same amounts written differently are no difference.
        stated = {"cpu": "0.25", "memory": "125829120"}
        assert amounts(await cluster.client.create(pod("b", runtimeClassName="kata", overhead=stated))) == {
            "cpu": "250m",
            "memory": "120Mi",
        }

    run(main, servers=({"cache_lag_s": lag_s},))


def test_an_overhead_must_be_that_of_the_class() -> None:
    async def main(cluster: Cluster) -> None:
        await cluster.client.create(KATA)
        await cluster.client.create(runtime_class("plain"))
        mismatch = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
        orphan = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
        for fields, why in (
            ({"runtimeClassName": "gone"}, 'pod rejected: RuntimeClass "gone" not found'),
            ({"runtimeClassName": "kata", "overhead": {"cpu": "250m"}}, mismatch),
            ({"runtimeClassName": "kata", "overhead": {"cpu": "1", "memory": "120Mi"}}, mismatch),
            ({"runtimeClassName": "plain", "overhead": {"cpu": "1"}}, orphan),
            ({"overhead": {"cpu": "1"}}, orphan),
        ):
            error = await refusal(errors.Forbidden, cluster.client.create(pod("a", **fields)), cluster)
            assert str(error) == f'pods "a" is forbidden: {why}'
        await cluster.client.create(pod("a", runtimeClassName="plain"))

    run(main)


def test_what_is_invalid_is_said_before_an_overhead_without_class() -> None:
    """The plugin's last word comes after the validation of the pod, as in Kubernetes."""

    async def main(cluster: Cluster) -> None:
        error = await refusal(errors.Invalid, cluster.client.create(pod("a", overhead={"cpu": "-1"})), cluster)
        assert [cause.field for cause in error.causes] == ["spec.overhead.limits[cpu]"]

    run(main)


def test_a_runtime_class_adds_its_node_selector_and_tolerations() -> None:
    async def main(cluster: Cluster) -> None:
        scheduling = {
            "nodeSelector": {"vm": "yes", "disk": "ssd"},
            "tolerations": [{"key": "vm", "operator": "Exists"}, {"operator": "Exists", "effect": "NoExecute"}],
        }
        await cluster.client.create(runtime_class("kata", scheduling=scheduling))
        own = [{"key": "vm", "operator": "Equal", "value": "1", "effect": "NoSchedule"}, {"key": "gpu", "value": "1"}]
        created = await cluster.client.create(
            pod("a", runtimeClassName="kata", nodeSelector={"disk": "ssd", "zone": "a"}, tolerations=own)
        )
        assert dict(created.spec.nodeSelector) == {"vm": "yes", "disk": "ssd", "zone": "a"}
        # The class covers one of the pod's own tolerations, and the default ones of 300 s.
        assert [(one.key, one.operator, one.effect) for one in created.spec.tolerations] == [
            ("gpu", "", ""),
            ("vm", "Exists", ""),
            ("", "Exists", "NoExecute"),
        ]
        conflict = pod("b", runtimeClassName="kata", nodeSelector={"vm": "no"})
        error = await refusal(errors.Forbidden, cluster.client.create(conflict), cluster)
        assert str(error) == (
            'pods "b" is forbidden: conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; '
            "pod.spec.nodeSelector[vm] = no"
        )

    run(main)


def test_a_runtime_class_is_validated() -> None:
    async def main(cluster: Cluster) -> None:
        twice = [{"key": "a", "operator": "Exists"}, {"key": "a", "operator": "Exists", "tolerationSeconds": 3}]
        bad = runtime_class("a", handler="", overhead={"podFixed": {"x": "1"}}, scheduling={"tolerations": twice})
        error = await refusal(errors.Invalid, cluster.client.create(bad), cluster)
        assert [cause.field for cause in error.causes] == [
            "handler",
            "overhead.limits[x]",
            "overhead.limits[x]",
            "scheduling.tolerations[1].effect",
            "scheduling.tolerations[1]",
        ]
        created = await cluster.client.create(KATA)
        created.handler = "other"
        error = await refusal(errors.Invalid, cluster.client.update(created), cluster)
        assert str(error).endswith('handler: Invalid value: "other": field is immutable')

    run(main)


@pytest.mark.parametrize(
    ("tolerations", "kept"),
    [
        # (key, operator, value, effect, seconds)
        ([("a", "Exists", "", "", None), ("a", "Exists", "", "", None)], [0]),
        ([("a", "Equal", "1", "", None), ("a", "Exists", "", "", None)], [1]),
        ([("", "Exists", "", "NoExecute", 5), ("a", "Exists", "", "NoExecute", 9)], [0, 1]),
        ([("", "Exists", "", "NoExecute", 9), ("a", "Exists", "", "NoExecute", 5)], [0]),
        ([("a", "Exists", "", "NoExecute", None), ("a", "Exists", "", "NoExecute", 5)], [0]),
        ([("a", "Equal", "1", "NoSchedule", None), ("a", "Equal", "1", "", None)], [1]),
        ([("a", "Equal", "1", "", None), ("b", "Equal", "1", "", None)], [0, 1]),
    ],
)
def test_merged_tolerations_cover_one_another(tolerations: list[tuple[Any, ...]], kept: list[int]) -> None:
    names = ("key", "operator", "value", "effect", "tolerationSeconds")
    given = [core_v1_pb2.Toleration(**dict(zip(names, one, strict=True))) for one in tolerations]
    assert sets.merge(given) == [given[index] for index in kept]
