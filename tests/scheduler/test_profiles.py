"""Configurations: what a profile makes of them, and how mistakes are told."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from kemu.emulated.scheduler.cache.cluster import Cluster
from kemu.emulated.scheduler.cache.nodes import NodeInfo
from kemu.emulated.scheduler.configuration import configurations
from kemu.emulated.scheduler.configuration.configurations import ConfigurationError, configuration_of
from kemu.emulated.scheduler.cycle.profiles import Profile
from kemu.emulated.scheduler.experiments import switches as policies
from kemu.emulated.scheduler.framework.interfaces import Cycle, Handle, NodeFilterPlugin, NodeScorePlugin
from kemu.emulated.scheduler.framework.statuses import Status, unschedulable
from kemu.emulated.scheduler.plugins.in_tree import IN_TREE, REGISTRY
from tests.scheduler import objects


def profile(data: Mapping[str, Any] | None = None) -> Profile:
    return Profile(configurations.profile_of(data or {}, "profiles[0]"), Handle(Cluster(), random.Random(0)), REGISTRY)


def names(found: Any) -> list[str]:
    return [plugin.name for plugin in found]


def weights(made: Profile) -> dict[str, int]:
    return dict(zip(names(made.line_up.scorers), made.line_up.weights, strict=True))


def test_the_default_profile_is_that_of_kubernetes() -> None:
    made = profile()
    assert names(made.line_up.filters) == [
        "NodeUnschedulable",
        "NodeName",
        "TaintToleration",
        "NodeAffinity",
        "NodePorts",
        "NodeResourcesFit",
        "VolumeRestrictions",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
        "DynamicResources",
        "NodeDeclaredFeatures",
    ]
    assert weights(made) == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }
    assert names(made.pre_enqueue) == ["SchedulingGates", "DefaultPreemption"]
    assert (made.queue_sort.name, names(made.bind), names(made.post_filters)) == (
        "PrioritySort",
        ["DefaultBinder"],
        ["DynamicResources", "DefaultPreemption"],
    )


def test_a_plugin_can_be_disabled_at_one_point_and_weighed_anew() -> None:
    score = {
        "disabled": [{"name": "ImageLocality"}, {"name": "NodeResourcesFit"}],
        "enabled": [{"name": "NodeResourcesFit", "weight": 5}, {"name": "TaintToleration", "weight": 0}],
    }
    made = profile({"plugins": {"score": score}})
    assert "ImageLocality" not in weights(made)
    assert weights(made)["TaintToleration"] == 1
    assert weights(made)["NodeResourcesFit"] == 5
    assert "NodeResourcesFit" in names(made.line_up.filters)


def test_everything_can_be_disabled() -> None:
    everything = {"disabled": [{"name": "*"}]}
    made = profile({"plugins": {"score": everything, "filter": everything, "preFilter": everything}})
    assert (made.line_up.filters, made.line_up.scorers) == ([], [])


def test_multi_point_disables_and_reweighs_everywhere() -> None:
    multi = {"disabled": [{"name": "TaintToleration"}], "enabled": [{"name": "NodeAffinity", "weight": 9}]}
    made = profile({"plugins": {"multiPoint": multi}})
    assert "TaintToleration" not in names(made.line_up.filters)
    assert weights(made)["NodeAffinity"] == 9
    assert names(made.line_up.filters)[:3] == ["NodeUnschedulable", "NodeName", "NodeAffinity"]


class EvenNames(NodeFilterPlugin):
    """A user's plugin, asked node by node."""

    def filter(self, pod: Cycle, node: NodeInfo) -> Status | None:
        return None if int(node.name[-1]) % 2 == 0 else unschedulable("node(s) had an odd name")


class LikesLate(NodeScorePlugin):
    def score(self, pod: Cycle, node: NodeInfo) -> int:
        return int(node.name[-1]) * 10


def test_a_plugin_of_the_user_by_module_and_class() -> None:
    this = f"{__name__}:"
    plugins = {
        "multiPoint": {"enabled": [{"name": f"{this}EvenNames"}]},
        "score": {"enabled": [{"name": f"{this}LikesLate", "weight": 100}]},
    }
    cluster = objects.cluster_of([objects.node(f"n{number}") for number in range(6)])
    decider = objects.decider(cluster, {"plugins": plugins})
    decision = decider.decide(cluster.pending(objects.pod("p")))
    assert (decision.node, decision.feasible) == ("n4", 3)
    for number in (0, 2, 4):
        cluster.remove_node(f"n{number}")
    decision = decider.decide(cluster.pending(objects.pod("p")))
    assert decision.node == ""
    assert decision.filtering is not None
    assert decision.filtering.message() == "0/3 nodes are available: 3 node(s) had an odd name."
    assert decision.filtering.rejectors() == ("EvenNames",)


def test_a_plugin_by_module_and_class_has_the_weight_that_is_configured() -> None:
    name = f"{__name__}:LikesLate"
    for point in ("multiPoint", "score"):
        made = profile({"plugins": {point: {"enabled": [{"name": name, "weight": 7}]}}})
        assert weights(made)["LikesLate"] == 7, point


def test_a_plugin_of_the_user_from_a_registry() -> None:
    cluster = objects.cluster_of([objects.node("n1"), objects.node("n2")])
    plugins = {"filter": {"enabled": [{"name": "EvenNames"}]}}
    decider = objects.decider(cluster, {"plugins": plugins}, registry={"EvenNames": EvenNames})
    assert decider.decide(cluster.pending(objects.pod("p"))).node == "n2"


def test_several_profiles() -> None:
    made = configuration_of({"profiles": [{"schedulerName": "a"}, {"schedulerName": "b"}]})
    assert [one.scheduler_name for one in made.profiles] == ["a", "b"]
    assert configuration_of({}, "mine").profiles[0].scheduler_name == "mine"


MISTAKES: list[tuple[dict[str, Any], str, str]] = [
    ({"profils": []}, "profils", 'did you mean "profiles"?'),
    ({"apiVersion": "v1"}, "apiVersion", "must be 'kubescheduler.config.k8s.io/v1'"),
    ({"percentageOfNodesToScore": 101}, "percentageOfNodesToScore", "from 0 to 100"),
    ({"podInitialBackoffSeconds": 20}, "podMaxBackoffSeconds", "must not be below"),
    ({"profiles": [{}, {}]}, "profiles[1].schedulerName", "has a profile already"),
    ({"profiles": [{"plugins": {"filtre": {}}}]}, "profiles[0].plugins.filtre", 'did you mean "filter"?'),
    (
        {"profiles": [{"plugins": {"score": {"enabled": [{"name": "NodeAfinity"}]}}}]},
        "profiles[0].plugins.score.enabled[0]",
        'did you mean "NodeAffinity"?',
    ),
    (
        {"profiles": [{"plugins": {"bind": {"enabled": [{"name": "NodeAffinity"}]}}}]},
        "profiles[0].plugins.bind.enabled[0]",
        "does not take part in bind",
    ),
    ({"profiles": [{"plugins": {"bind": {"disabled": [{"name": "*"}]}}}]}, "profiles[0].plugins.bind", "at least one"),
    (
        {"profiles": [{"pluginConfig": [{"name": "NodeResourcesFit", "args": {"strategy": {}}}]}]},
        "profiles[0].pluginConfig[0].args.strategy",
        "unknown field",
    ),
    (
        {"profiles": [{"pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "Most"}}}]}]},
        "profiles[0].pluginConfig[0].args.scoringStrategy.type",
        "unsupported value 'Most'",
    ),
    (
        {"profiles": [{"pluginConfig": [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}}]}]},
        "profiles[0].pluginConfig[0].args.hardPodAffinityWeight",
        "from 0 to 100",
    ),
]


def read(data: Mapping[str, Any]) -> list[Profile]:
    handle = Handle(Cluster(), random.Random(0))
    return [Profile(one, handle, REGISTRY) for one in configuration_of(data).profiles]


@pytest.mark.parametrize(("data", "path", "text"), MISTAKES)
def test_a_mistake_is_told_with_its_path(data: dict[str, Any], path: str, text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(data)
    assert caught.value.path == path
    assert text in str(caught.value)


def test_every_plugin_in_the_tree_is_known_by_its_own_name() -> None:
    assert all(name == plugin.__name__ for name, plugin in IN_TREE.items())


@pytest.mark.parametrize(
    ("switches", "path", "text"),
    [
        ({"queu": "fifo"}, "policy.queu", "did you mean queue?"),
        ({"queue": "lifo"}, "policy.queue", "must be priority or fifo"),
        ({"nomination": "nope"}, "policy.nomination", "must be true or false"),
        ({"preemptor": "nobody"}, "policy.preemptor", "must be scheduler, kubelet"),
    ],
)
def test_an_unknown_switch_or_value(switches: dict[str, Any], path: str, text: str) -> None:
    with pytest.raises(policies.PolicyError) as caught:
        policies.policy_of(switches)
    assert caught.value.path == path
    assert text in str(caught.value)
