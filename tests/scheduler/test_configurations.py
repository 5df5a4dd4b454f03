"""Every part of a KubeSchedulerConfiguration: what it means, its defaults, and what is said of mistakes."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Any

import pytest

from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.configuration import arguments, configurations, old
from kemu.emulated.scheduler.configuration.configurations import ConfigurationError, configuration_of
from kemu.emulated.scheduler.cycle.decisions import nodes_to_find
from kemu.emulated.scheduler.cycle.profiles import Profile
from kemu.emulated.scheduler.framework.interfaces import Cycle, Handle, Narrowed, NodeFilterPlugin
from kemu.emulated.scheduler.framework.statuses import Status, unschedulable
from kemu.emulated.scheduler.plugins.in_tree import REGISTRY
from tests.scheduler import objects

GPU = "example.com/gpu"
EVERYTHING = {"disabled": [{"name": "*"}]}


def profile(plugins: Mapping[str, Any]) -> Profile:
    configuration = configurations.profile_of({"plugins": plugins}, "profiles[0]")
    return Profile(configuration, Handle(Cluster(), random.Random(0)), REGISTRY)


def names(found: Any) -> list[str]:
    return [plugin.name for plugin in found]


def decide(plugins: Mapping[str, Any], pod: Any, nodes: int = 2) -> Any:
    cluster = objects.cluster_of([objects.node(f"n{number}") for number in range(1, nodes + 1)])
    return objects.decider(cluster, {"plugins": plugins}).decide(cluster.pending(pod))


def read(data: Mapping[str, Any]) -> None:
    handle = Handle(Cluster(), random.Random(0))
    for one in configuration_of(data).profiles:
        Profile(one, handle, REGISTRY)


def complaint(data: Mapping[str, Any]) -> ConfigurationError:
    with pytest.raises(ConfigurationError) as caught:
        read(data)
    return caught.value


# Extension points ---------------------------------------------------------------------------------------------------


def test_the_order_at_an_extension_point() -> None:
    """First what is named there and in multiPoint, then the rest of multiPoint, then the others named there."""
    multi = {
        "disabled": [{"name": "*"}],
        "enabled": [{"name": name} for name in ("NodeName", "NodePorts", "NodeAffinity")],
    }
    here = {"enabled": [{"name": "TaintToleration"}, {"name": "NodeAffinity"}]}
    basics = {"queueSort": {"enabled": [{"name": "PrioritySort"}]}, "bind": {"enabled": [{"name": "DefaultBinder"}]}}
    made = profile({"multiPoint": multi, "filter": here, **basics})
    assert names(made.line_up.filters) == ["NodeAffinity", "NodeName", "NodePorts", "TaintToleration"]


def test_all_are_disabled_but_those_that_are_named() -> None:
    made = profile(
        {"score": {**EVERYTHING, "enabled": [{"name": "ImageLocality", "weight": 3}, {"name": "NodeAffinity"}]}}
    )
    assert (names(made.line_up.scorers), made.line_up.weights) == (["ImageLocality", "NodeAffinity"], [3, 1])


def test_a_weight_of_zero_is_one_and_the_extension_point_goes_before_multi_point() -> None:
    multi = {"enabled": [{"name": "NodeAffinity"}, {"name": "TaintToleration", "weight": 7}]}
    made = profile({"multiPoint": multi, "score": {"enabled": [{"name": "TaintToleration", "weight": 4}]}})
    weights = dict(zip(names(made.line_up.scorers), made.line_up.weights, strict=True))
    assert (weights["NodeAffinity"], weights["TaintToleration"], weights["PodTopologySpread"]) == (1, 4, 2)


def test_a_plugin_that_is_replaced_in_multi_point_keeps_its_place() -> None:
    made = profile({"multiPoint": {"enabled": [{"name": "NodePorts"}, {"name": "NodeName"}]}})
    assert names(made.line_up.filters)[:3] == ["NodeUnschedulable", "NodeName", "TaintToleration"]


@pytest.mark.parametrize("name", ["NodeResourcesFit", "NodePorts", "PodTopologySpread", "InterPodAffinity"])
def test_a_filter_that_needs_its_pre_filter_fails_the_attempt(name: str) -> None:
    decision = decide({"preFilter": {"disabled": [{"name": name}]}}, objects.pod("p"))
    assert decision.node == ""
    assert decision.error.message.startswith(f'running "{name}" filter plugin: ')
    assert decision.error.message.endswith(f'"PreFilter{name}" from cycleState: not found')


def test_nodes_that_are_refused_before_do_not_come_so_far() -> None:
    pod = objects.pod("p", nodeSelector={"no": "such"})
    decision = decide({"preFilter": {"disabled": [{"name": "NodeResourcesFit"}]}}, pod)
    assert decision.error is None
    assert decision.filtering.rejectors() == ("NodeAffinity",)


def by_name(node: str) -> Any:
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    return objects.pod("p", affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}})


def test_node_affinity_without_pre_filter_filters_but_does_not_narrow() -> None:
    decision = decide({"preFilter": {"disabled": [{"name": "NodeAffinity"}]}}, by_name("n2"), nodes=3)
    assert (decision.node, decision.filtering.left_out) == ("n2", "")
    assert decide({}, by_name("n2"), nodes=3).filtering.left_out == "NodeAffinity"


def test_node_affinity_without_filter_narrows() -> None:
    decision = decide({"filter": {"disabled": [{"name": "NodeAffinity"}]}}, by_name("n2"), nodes=3)
    assert (decision.node, decision.filtering.left_out) == ("n2", "NodeAffinity")
    # A selector by label is the business of the filter alone.
    decision = decide({"filter": {"disabled": [{"name": "NodeAffinity"}]}}, objects.pod("p", nodeSelector={"a": "b"}))
    assert decision.node


@pytest.mark.parametrize("name", ["TaintToleration", "PodTopologySpread", "InterPodAffinity"])
def test_a_score_that_needs_its_pre_score_fails_where_nodes_are_compared(name: str) -> None:
    plugins = {"preScore": {"disabled": [{"name": name}]}}
    assert decide(plugins, objects.pod("p"), nodes=1).node == "n1"
    decision = decide(plugins, objects.pod("p"), nodes=2)
    assert decision.error.message.startswith(f'running Score plugins: plugin "{name}" failed with: ')


@pytest.mark.parametrize("name", ["NodeResourcesFit", "NodeResourcesBalancedAllocation", "NodeAffinity"])
def test_other_scores_do_without_pre_score(name: str) -> None:
    assert decide({"preScore": {"disabled": [{"name": name}]}}, objects.pod("p")).node


class Narrow(NodeFilterPlugin):
    def pre_filter(self, pod: Cycle) -> Any:
        return Narrowed(("n1",))

    def filter(self, pod: Cycle, node: NodeInfo) -> Status | None:
        return unschedulable("not here") if node.name == "n1" else None


def test_both_halves_of_a_plugin_of_the_user() -> None:
    this = [{"name": f"{__name__}:Narrow"}]
    assert decide({"preFilter": {"enabled": this}}, objects.pod("p")).node == "n1"
    assert decide({"filter": {"enabled": this}}, objects.pod("p")).node == "n2"
    assert decide({"multiPoint": {"enabled": this}}, objects.pod("p")).node == ""


def test_without_scores_the_first_node_that_passes_will_do() -> None:
    cluster = objects.cluster_of([objects.node(f"n{number}") for number in range(1, 4)])
    decider = objects.decider(cluster, {"plugins": {"score": EVERYTHING}})
    decisions = [decider.decide(cluster.pending(objects.pod(f"p{number}"))) for number in range(4)]
    assert [decision.node for decision in decisions] == ["n1", "n2", "n3", "n1"]
    assert {decision.evaluated for decision in decisions} == {1}


def test_how_many_nodes_are_looked_for() -> None:
    assert [nodes_to_find(nodes, 0) for nodes in (99, 100, 1000, 5000)] == [99, 100, 420, 500]
    assert [nodes_to_find(nodes, 0, 50) for nodes in (49, 60, 99, 1000)] == [49, 50, 50, 420]
    assert [nodes_to_find(1000, percentage) for percentage in (1, 30, 100)] == [100, 300, 1000]
    cluster = objects.cluster_of([objects.node(f"n{number}") for number in range(1, 121)])
    for policy, found in (({}, 100), ({"minFeasibleNodes": 50}, 60)):
        decision = objects.decider(cluster, {}, policy=policy, percentage=0).decide(cluster.pending(objects.pod("p")))
        assert decision.feasible == found, policy
    own = objects.decider(cluster, {"percentageOfNodesToScore": 100}, percentage=5)
    assert own.decide(cluster.pending(objects.pod("p"))).feasible == 120


# Arguments ----------------------------------------------------------------------------------------------------------


def test_the_defaults_of_arguments() -> None:
    gates = configurations.FEATURE_GATES
    both = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
    found = {name: arguments.checked(name, {}, "args", gates) for name in ("NodeResourcesFit", "DefaultPreemption")}
    strategy = {"type": "LeastAllocated", "resources": both}
    ignored = {"ignoredResources": [], "ignoredResourceGroups": []}
    assert found["NodeResourcesFit"] == {**ignored, "scoringStrategy": strategy}
    assert found["DefaultPreemption"] == {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100}
    assert arguments.checked("PodTopologySpread", {}, "args", gates) == {
        "defaultingType": "System",
        "defaultConstraints": [],
    }
    assert arguments.checked("InterPodAffinity", {}, "args", gates)["hardPodAffinityWeight"] == 1
    assert arguments.checked("NodeResourcesBalancedAllocation", {}, "args", gates) == {"resources": both}
    assert arguments.checked("VolumeBinding", {}, "args", gates) == {"bindTimeoutSeconds": 600}


FIT, SPREAD = "NodeResourcesFit", "PodTopologySpread"
ARGUMENTS: list[tuple[str, dict[str, Any], str, str]] = [
    ("DefaultPreemption", {"minCandidateNodesPercentage": 101}, "minCandidateNodesPercentage", "from 0 to 100"),
    ("DefaultPreemption", {"minCandidateNodesAbsolute": -1}, "minCandidateNodesAbsolute", "at least 0"),
    (
        "DefaultPreemption",
        {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0},
        "minCandidateNodesPercentage",
        "cannot be zero at the same time",
    ),
    ("InterPodAffinity", {"hardPodAffinityWeight": -1}, "hardPodAffinityWeight", "from 0 to 100"),
    ("InterPodAffinity", {"ignorePreferredTermsOfExistingPods": "no"}, "ignorePreferredTermsOfExistingPods", "true or"),
    ("NodeName", {"x": 1}, "x", "unknown field"),
    ("NodeName", {"kind": "NodePortsArgs"}, "kind", "must be 'NodeNameArgs'"),
    (
        "NodeAffinity",
        {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}},
        "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
        "at least one",
    ),
    (
        "NodeResourcesBalancedAllocation",
        {"resources": [{"name": "cpu", "weight": 2}]},
        "resources[0].weight",
        "must be 1",
    ),
    (
        "NodeResourcesBalancedAllocation",
        {"resources": [{"name": "cpu"}, {"name": "cpu"}]},
        "resources[1].name",
        "duplicate",
    ),
    (FIT, {"ignoredResources": ["a b"]}, "ignoredResources[0]", "a b"),
    (FIT, {"ignoredResourceGroups": ["example.com/x"]}, "ignoredResourceGroups[0]", "cannot contain '/'"),
    (FIT, {"scoringStrategy": {}}, "scoringStrategy.type", "unsupported value ''"),
    (
        FIT,
        {"scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 101}]}},
        "scoringStrategy.resources[0].weight",
        "from 1 to 100",
    ),
    (
        FIT,
        {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
        "scoringStrategy.requestedToCapacityRatio",
        "needed with",
    ),
    (
        FIT,
        {"scoringStrategy": {"type": "LeastAllocated", "requestedToCapacityRatio": {}}},
        "scoringStrategy.requestedToCapacityRatio",
        "only with type",
    ),
    (SPREAD, {"defaultingType": "Lists"}, "defaultingType", "unsupported value"),
    (SPREAD, {"defaultConstraints": [{}]}, "defaultingType", "must be List"),
    ("VolumeBinding", {"bindTimeoutSeconds": -1}, "bindTimeoutSeconds", "at least 0"),
    ("VolumeBinding", {"shape": [{"utilization": 0}]}, "shape", "feature gate StorageCapacityScoring"),
    ("DynamicResources", {"bindingTimeout": "500ms"}, "bindingTimeout", "at least 1 second"),
    ("DynamicResources", {"filterTimeout": "soon"}, "filterTimeout", "must be a duration"),
]


@pytest.mark.parametrize(("plugin", "args", "path", "text"), ARGUMENTS)
def test_a_mistake_in_arguments(plugin: str, args: dict[str, Any], path: str, text: str) -> None:
    config = [{"name": "NodePorts"}, {"name": plugin, "args": args}]
    error = complaint({"profiles": [{"pluginConfig": config}]})
    assert error.path == f"profiles[0].pluginConfig[1].args.{path}"
    assert text in str(error)


SHAPES: list[tuple[list[dict[str, int]], str, str]] = [
    ([], "shape", "at least one point"),
    ([{"utilization": 101}], "shape[0].utilization", "from 0 to 100"),
    ([{"score": 11}], "shape[0].score", "from 0 to 10"),
    ([{"utilization": 5}, {"utilization": 5}], "shape[1].utilization", "greater than"),
]


@pytest.mark.parametrize(("shape", "path", "text"), SHAPES)
def test_a_mistake_in_a_shape(shape: list[dict[str, int]], path: str, text: str) -> None:
    strategy = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}
    error = complaint({"profiles": [{"pluginConfig": [{"name": FIT, "args": {"scoringStrategy": strategy}}]}]})
    assert error.path.endswith(f".scoringStrategy.requestedToCapacityRatio.{path}")
    assert text in str(error)


CONSTRAINT = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
CONSTRAINTS: list[tuple[dict[str, Any], str, str]] = [
    ({"maxSkew": 0}, "[1].maxSkew", "greater than 0"),
    ({"topologyKey": ""}, "[1].topologyKey", "cannot be empty"),
    ({"topologyKey": "a b"}, "[1].topologyKey", "a b"),
    ({"whenUnsatisfiable": "Never"}, "[1].whenUnsatisfiable", "unsupported value"),
    ({"labelSelector": {"matchLabels": {}}}, "[1].labelSelector", "deduced"),
    ({}, "[1]", "duplicate"),
]


@pytest.mark.parametrize(("change", "path", "text"), CONSTRAINTS)
def test_a_mistake_in_default_constraints(change: dict[str, Any], path: str, text: str) -> None:
    args = {"defaultingType": "List", "defaultConstraints": [CONSTRAINT, {**CONSTRAINT, **change}]}
    error = complaint({"profiles": [{"pluginConfig": [{"name": SPREAD, "args": args}]}]})
    assert error.path == f"profiles[0].pluginConfig[0].args.defaultConstraints{path}"
    assert text in str(error)


# The rest -----------------------------------------------------------------------------------------------------------


def test_what_makes_no_difference_is_accepted() -> None:
    read(
        {
            "leaderElection": {"leaderElect": True, "leaseDuration": "15s", "resourceLock": "leases"},
            "clientConnection": {"kubeconfig": "/etc/kubernetes/scheduler.conf", "qps": 50, "burst": 100},
            "enableProfiling": True,
            "delayCacheUntilActive": False,
            "featureGates": {"SchedulerAsyncPreemption": True, "SchedulerPopFromBackoffQ": False},
        }
    )


def test_extenders_are_asked_in_their_order_the_ignorable_ones_last() -> None:
    def extender(name: str, **more: Any) -> dict[str, Any]:
        return {"urlPrefix": f"kemu://extender/{name}", "filterVerb": "filter", **more}

    managed = {"managedResources": [{"name": GPU, "ignoredByScheduler": True}, {"name": "example.com/fpga"}]}
    given = [extender("a", ignorable=True), extender("b", **managed, httpTimeout="1m30s"), extender("c")]
    plugin_config = [{"name": FIT, "args": {"ignoredResources": ["example.com/other"]}}]
    made = configuration_of({"extenders": given, "profiles": [{"pluginConfig": plugin_config}]})
    assert [one.peer for one in made.extenders] == ["extender/b", "extender/c", "extender/a"]
    assert [one.timeout_s for one in made.extenders] == [90.0, 5.0, 5.0]
    # They take the place of what the profile ignores.
    assert made.profiles[0].arguments[FIT]["ignoredResources"] == [GPU]


def test_an_outside_address_with_tls() -> None:
    for given, dialled in (
        ({"urlPrefix": "grpc://example.com:80"}, "grpc://example.com:80"),
        ({"urlPrefix": "grpc://[::1]:80", "enableHTTPS": True}, "grpcs://[::1]:80"),
        ({"urlPrefix": "kemu://extender/a/", "enableHTTPS": True, "tlsConfig": {"insecure": True}}, "extender/a"),
    ):
        (made,) = configuration_of({"extenders": [given]}).extenders
        assert made.peer == dialled


A = {"urlPrefix": "kemu://extender/a"}
MISTAKES: list[tuple[dict[str, Any], str, str]] = [
    ({"extenders": [{}]}, "extenders[0].urlPrefix", "must be kemu://extender/NAME"),
    ({"extenders": [{"urlPrefix": "http://127.0.0.1:80/x"}]}, "extenders[0].urlPrefix", "grpc://HOST:PORT"),
    ({"extenders": [{**A, "filterverb": "f"}]}, "extenders[0].filterverb", 'did you mean "filterVerb"?'),
    ({"extenders": [{**A, "prioritizeVerb": "p"}]}, "extenders[0].weight", "must be positive"),
    ({"extenders": [{**A, "prioritizeVerb": "p", "weight": -1}]}, "extenders[0].weight", "must be positive"),
    ({"extenders": [{**A, "bindVerb": "b"}, {**A, "bindVerb": "b"}]}, "extenders", "only one extender"),
    ({"extenders": [{**A, "httpTimeout": 5}]}, "extenders[0].httpTimeout", "must be a duration"),
    (
        {"extenders": [{**A, "managedResources": [{"name": "cpu"}]}]},
        "extenders[0].managedResources[0].name",
        "is not the name of an extended resource",
    ),
    (
        {"extenders": [{**A, "managedResources": [{"name": GPU}]}] * 2},
        "extenders[1].managedResources[0].name",
        "already",
    ),
    (
        {"extenders": [{"urlPrefix": "grpc://a:1", "tlsConfig": {"caFile": "x"}}]},
        "extenders[0].tlsConfig",
        "cannot be set",
    ),
    ({"extenders": [{**A, "tlsConfig": {"ca": "x"}}]}, "extenders[0].tlsConfig.ca", "unknown field"),
    ({"featureGates": {"SchedulerAsyncPreemption": False}}, "featureGates.SchedulerAsyncPreemption", "is always true"),
    ({"featureGates": {"SchedulerPopFromBackoff": True}}, "featureGates.SchedulerPopFromBackoff", "did you mean"),
    ({"leaderElection": {"resourceLock": "endpoints"}}, "leaderElection.resourceLock", "must be 'leases'"),
    ({"parallelism": 0}, "parallelism", "at least 1"),
    ({"percentageOfNodesToScore": 101}, "percentageOfNodesToScore", "from 0 to 100"),
    ({"algorithmSource": {"provider": "DefaultProvider"}}, "algorithmSource", "leave it out"),
    (
        {"algorithmSource": {"provider": "ClusterAutoscalerProvider"}},
        "algorithmSource",
        "write profiles[0].pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated}}}]",
    ),
    (
        {"algorithmSource": {"policy": {"file": {"path": "policy.cfg"}}}},
        "algorithmSource",
        "write what its policy says as profiles[0].plugins",
    ),
    (
        {"apiVersion": "v1", "kind": "Policy", "predicates": [{"name": "PodFitsHostPorts"}, {"name": "Mine"}]},
        "kind",
        "predicates are profiles[0].plugins.filter.enabled: PodFitsHostPorts is NodePorts; Mine is not known",
    ),
    (
        {"apiVersion": "v1", "kind": "Policy", "priorities": [{"name": "ImageLocalityPriority", "weight": 2}]},
        "kind",
        "priorities are profiles[0].plugins.score.enabled: ImageLocalityPriority is ImageLocality",
    ),
    ({"predicates": []}, "predicates", "it was one of kind Policy"),
    ({"disablePreemption": True}, "disablePreemption", "postFilter.disabled: [{name: DefaultPreemption}]"),
    ({"hardPodAffinitySymmetricWeight": 10}, "hardPodAffinitySymmetricWeight", "args: {hardPodAffinityWeight: …}"),
    (
        {"profiles": [{"plugins": {"score": {"enabled": [{"name": "RequestedToCapacityRatio"}]}}}]},
        "profiles[0].plugins.score.enabled[0]",
        "write profiles[0].pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: RequestedToCapacityR",
    ),
    (
        {"profiles": [{}, {"schedulerName": "b", "pluginConfig": [{"name": "RequestedToCapacityRatio", "args": {}}]}]},
        "profiles[1].pluginConfig[0].args",
        "write profiles[1].pluginConfig: [{name: NodeResourcesFit",
    ),
    ({"podInitialBackoffSeconds": 0}, "podInitialBackoffSeconds", "at least 1"),
    (
        {"profiles": [{"plugins": {"multiPoint": {"enabled": [{"name": "NodeName"}] * 2}}}]},
        "profiles[0].plugins.multiPoint.enabled[1]",
        "enabled twice",
    ),
    (
        {"profiles": [{"plugins": {"preFilter": {"enabled": [{"name": "NodeName"}]}}}]},
        "profiles[0].plugins.preFilter.enabled[0]",
        "does not take part in preFilter",
    ),
    (
        {"profiles": [{"plugins": {"bind": {"enabled": [{"name": "VolumeZone"}]}}}]},
        "profiles[0].plugins.bind.enabled[0]",
        "does not take part in bind",
    ),
    (
        {"profiles": [{"plugins": {"score": {"enabled": [{"name": "NodeAffinity", "weight": 2**60}]}}}]},
        "profiles[0].plugins.score",
        "could overflow",
    ),
    (
        {"profiles": [{}, {"schedulerName": "b", "plugins": {"queueSort": EVERYTHING}}]},
        "profiles[1].plugins.queueSort",
        "must be the same for all profiles",
    ),
    (
        {"profiles": [{"plugins": {"queueSort": {"enabled": [{"name": "PrioritySort"}, {"name": "X"}]}}}]},
        "profiles[0].plugins.queueSort.enabled",
        "only one",
    ),
]


@pytest.mark.parametrize(("data", "path", "text"), MISTAKES)
def test_a_mistake_is_told_with_its_path(data: dict[str, Any], path: str, text: str) -> None:
    error = complaint(data)
    assert error.path == path
    assert text in str(error)


def test_what_the_refusals_of_old_configurations_name_is_accepted() -> None:
    """Plugins that they name exist, and arguments that they name are read where they say."""
    tables = (old._PLUGINS, old._PREDICATES, old._PRIORITIES)
    named = {name for table in tables for text in table.values() for name in re.findall(r"\b[A-Z]\w+", text)}
    plugins = named - {"PreferNoSchedule", "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"}
    assert [name for name in sorted(plugins) if not REGISTRY.has(name)] == []
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    strategy = {"type": "RequestedToCapacityRatio", "resources": [{"name": "cpu", "weight": 3}]}
    fit = {"scoringStrategy": {**strategy, "requestedToCapacityRatio": {"shape": shape}}}
    configuration_of(
        {
            "profiles": [
                {
                    "plugins": {"postFilter": {"disabled": [{"name": "DefaultPreemption"}]}},
                    "pluginConfig": [
                        {"name": "NodeResourcesFit", "args": fit},
                        {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 10}},
                        {"name": "VolumeBinding", "args": {"bindTimeoutSeconds": 10}},
                    ],
                }
            ]
        }
    )


def test_a_percentage_above_100_acts_as_100_where_that_is_asked_for() -> None:
    data = {"percentageOfNodesToScore": 150, "profiles": [{"percentageOfNodesToScore": 101}]}
    made = configuration_of(data, caps_percentages=True)
    assert made.percentage_of_nodes_to_score == 100
    assert made.profiles[0].percentage_of_nodes_to_score == 100
    for wrong in (-1, True, "150"):
        with pytest.raises(ConfigurationError, match="from 0 to 100"):
            configuration_of({"percentageOfNodesToScore": wrong}, caps_percentages=True)
