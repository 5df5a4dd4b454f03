"""Opportunistic batching: ``pkg/scheduler/framework/runtime``, batch.go, and ``findNodesThatFitPod``, schedule_one.go.

The recorded family ``batching`` says the same of the real code; here each rule stands alone. Every node has 10 cores,
except where a test says otherwise, and scores make the larger of two empty nodes the better one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from kemu.emulated.scheduler.configuration.configurations import configuration_of
from kemu.emulated.scheduler.cycle import ties
from kemu.emulated.scheduler.cycle.decisions import Decider, ScheduleResult
from kemu.emulated.scheduler.cycle.profiles import Profile
from kemu.emulated.scheduler.framework import Cycle, Fragments, NodeFilterPlugin, NodeInfo, PodInfo, SignPlugin, Status
from kemu.emulated.scheduler.framework.interfaces import FilterPlugin, Handle
from kemu.emulated.scheduler.framework.statuses import unresolvable
from kemu.emulated.scheduler.plugins.in_tree import REGISTRY
from tests.scheduler import objects
from tests.scheduler.clocks import HandClock

NO_DEFAULTS = {"name": "PodTopologySpread", "args": {"defaultingType": "List", "defaultConstraints": []}}
PLAIN: dict[str, Any] = {"pluginConfig": [NO_DEFAULTS]}
SIZES = {"n0": "10", "n1": "9", "n2": "8", "n3": "7"}
"""Cores: in this order the nodes are chosen."""


class World:
    """One scheduler with one profile, whose pods come one after the other."""

    def __init__(self, profile: Mapping[str, Any] = PLAIN, **more: Any) -> None:
        self.cluster = objects.cluster_of([objects.node(name, cpu=cpu) for name, cpu in SIZES.items()])
        self.decider: Decider = objects.decider(self.cluster, profile, **more)
        self.handle: Handle = self.decider.profile.handle
        self.clock = HandClock()
        self.handle.clock = self.clock  # type: ignore[assignment]
        self.attempts = 0

    def attempt(self, cpu: str = "6", *, nominated: str = "", **pod: Any) -> ScheduleResult:
        """The next scheduling cycle; a pod that finds a node is assumed there."""
        self.attempts += 1
        self.handle.scheduling_cycle += 1
        message = objects.pod(f"p-{self.attempts}", cpu, **pod)
        message.status.nominatedNodeName = nominated
        info = self.cluster.pending(message)
        result = self.decider.decide(info)
        if result.node:
            self.cluster.assume(info, result.node)
        return result


def used(result: ScheduleResult) -> bool:
    """Whether a hint spared the search: the hinted node is all that was looked at."""
    assert result.node
    return result.evaluated == 1


def test_a_pod_like_the_one_before_gets_the_next_best_node_of_its_search() -> None:
    world = World()
    first = world.attempt()
    assert (first.node, first.evaluated, first.feasible) == ("n0", 4, 4)
    for node in ("n1", "n2", "n3"):
        found = world.attempt()
        assert (found.node, found.evaluated, found.feasible) == (node, 1, 1)
    assert not world.attempt().node


def test_the_hint_is_the_best_of_then_even_if_another_node_is_better_now() -> None:
    world = World()
    world.attempt()
    world.cluster.set_node(objects.node("n3", cpu="90"))
    assert world.attempt().node == "n1"
    off = World({**PLAIN, "plugins": {"multiPoint": {"enabled": [{"name": f"{__name__}:Unsigned"}]}}})
    off.attempt()
    off.cluster.set_node(objects.node("n3", cpu="90"))
    assert off.attempt().node == "n3"


def test_no_hint_while_the_last_node_still_has_room() -> None:
    world = World()
    world.attempt("4")
    assert not used(world.attempt("4"))


def test_pods_nominated_to_the_last_node_do_not_fill_it() -> None:
    """``RunFilterPlugins`` asks without them, unlike the search."""
    world = World()
    world.attempt("4")
    rival = world.cluster.pending(objects.pod("rival", "4", priority=5))
    world.cluster.nominator.nominate(rival, "n0")
    found = world.attempt("4")
    assert found.node == "n1"
    assert not used(found)


def test_results_older_than_half_a_second_are_not_used() -> None:
    world = World()
    world.attempt()
    world.clock.advance_to(0.5)
    assert used(world.attempt())
    world.clock.advance_to(0.500001)
    assert not used(world.attempt())


def test_results_are_as_old_as_the_end_of_their_attempt() -> None:
    world = World()
    world.attempt()
    world.clock.advance_to(0.4)
    assert world.decider.batches is not None
    world.decider.batches.attempt_over()
    world.clock.advance_to(0.9)
    assert used(world.attempt())
    world.decider.batches.attempt_over()
    world.clock.advance_to(0.91)
    assert not used(world.attempt())


def test_a_scheduling_cycle_between_them_ends_the_batch() -> None:
    """Of another profile, of a pod that was skipped, or one that failed."""
    world = World()
    world.attempt()
    world.handle.scheduling_cycle += 1
    assert not used(world.attempt())
    assert not world.attempt("50").node
    assert not used(world.attempt())


def test_a_hint_that_is_not_feasible_leads_to_a_search_and_a_new_list() -> None:
    world = World()
    world.attempt()
    world.cluster.set_node(objects.node("n1", cpu="1"))
    found = world.attempt()
    # The status of the hinted node counts among those looked at.
    assert (found.node, found.evaluated, found.feasible) == ("n2", 4, 2)
    assert used(world.attempt())


def test_a_hint_at_a_node_that_no_filter_was_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search ended before it came there."""
    profile = {**PLAIN, "plugins": {"multiPoint": {"enabled": [{"name": f"{__name__}:Choosy"}]}}}
    world = World(profile, percentage=34, policy={"minFeasibleNodes": 1})
    for name in ("n4", "n5"):
        world.cluster.set_node(objects.node(name, cpu="6"))
    assert world.attempt().node == "n0"
    monkeypatch.setattr(Choosy, "refused", "n1")
    found = world.attempt()
    assert (found.node, found.evaluated) == ("n2", 3)
    assert found.filtering is not None
    assert found.filtering.explain(int(found.filtering.verdicts[1])).plugin == "Choosy"


def test_a_hint_at_a_node_that_is_gone_and_a_last_node_that_is_gone() -> None:
    world = World()
    world.attempt()
    world.cluster.remove_node("n1")
    found = world.attempt()
    assert (found.node, found.evaluated) == ("n2", 3)
    world.cluster.remove_node("n2")
    assert not used(world.attempt("5"))


def test_a_nominated_node_comes_before_the_hint_and_ends_the_batch() -> None:
    world = World()
    world.attempt()
    found = world.attempt(nominated="n2")
    assert (found.node, found.evaluated) == ("n2", 1)
    assert not used(world.attempt())


def test_a_nomination_of_the_hinted_node_goes_on_with_the_batch() -> None:
    world = World()
    world.attempt()
    assert world.attempt(nominated="n1").node == "n1"
    found = world.attempt()
    assert (found.node, found.evaluated) == ("n2", 1)


def test_with_several_workers_a_lot_decides_between_equal_nodes_of_the_list() -> None:
    def order(seed: int) -> tuple[str, ...]:
        world = World(seed=seed)
        for name in SIZES:
            world.cluster.set_node(objects.node(name))
        return tuple(world.attempt().node for _ in SIZES)

    orders = {order(seed): None for seed in range(40)}
    assert all(sorted(one) == list(SIZES) for one in orders)
    assert len({one[:2]: None for one in orders}) > 6


def test_the_heap_begins_with_the_choice_of_the_search_and_sorts() -> None:
    for scores in ([3, 1, 3, 3], [1, 1, 1, 1, 1], [2, 5, 4, 5, 5, 1], [7]):
        heap = ties.Heap(list(scores))
        places = [heap.pop() for _ in scores]
        best = max(scores)
        assert places[0] == ties.top_of_heap({place for place, score in enumerate(scores) if score == best})
        assert [scores[place] for place in places] == sorted(scores, reverse=True)
        assert sorted(places) == list(range(len(scores)))


# Which pods are alike -------------------------------------------------------------------------------------------------

SAME: dict[str, dict[str, Any]] = {
    "priority": {"priority": 7},
    "a ConfigMap": {"volumes": [{"name": "settings", "configMap": {"name": "mine"}}]},
    "a limit": {
        "containers": [{"name": "a", "image": "app:1", "resources": {"requests": {"cpu": "6"}, "limits": {"cpu": "8"}}}]
    },
}
DIFFERENT: dict[str, dict[str, Any]] = {
    "a label": {"labels": {"app": "other"}},
    "a toleration": {"tolerations": [{"key": "only", "operator": "Exists"}]},
    "a request": {"cpu": "6001m"},
    "a node selector": {"nodeSelector": {"kubernetes.io/os": "linux"}},
    "a volume": {"volumes": [{"name": "scratch", "emptyDir": {}}]},
    "an image": {
        "containers": [{"name": "a", "image": "app:2", "resources": {"requests": {"cpu": "6"}}}],
    },
    "a host port": {
        "containers": [
            {
                "name": "a",
                "image": "app:1",
                "ports": [{"containerPort": 80, "hostPort": 80}],
                "resources": {"requests": {"cpu": "6"}},
            }
        ]
    },
}


def signatures(*pods: Mapping[str, Any], profile: Mapping[str, Any] = PLAIN) -> list[Any]:
    world = World(profile)
    signer = world.decider.profile.signer
    assert signer is not None
    made = [objects.pod(f"p-{number}", **{"cpu": "6", **pod}) for number, pod in enumerate(pods)]
    return [signer.of(world.cluster.pending(pod)) for pod in made]


@pytest.mark.parametrize("what", SAME)
def test_what_no_plugin_signs_makes_no_difference(what: str) -> None:
    one, other = signatures({}, SAME[what])
    assert one == other is not None


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_some_plugin_signs_makes_a_difference(what: str) -> None:
    one, other = signatures({}, DIFFERENT[what])
    assert one != other
    assert other is not None


def test_terms_expressions_and_values_in_another_order_are_the_same() -> None:
    def affinity(*terms: list[dict[str, Any]]) -> dict[str, Any]:
        selector = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
        return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}}

    zone = {"key": "zone", "operator": "In", "values": ["a", "b"]}
    turned = {"key": "zone", "operator": "In", "values": ["b", "a"]}
    disk = {"key": "disk", "operator": "Exists"}
    one, other, less = signatures(affinity([zone, disk], [disk]), affinity([disk], [disk, turned]), affinity([zone]))
    assert one == other != less


def test_tolerations_are_ordered_by_key_and_value_alone() -> None:
    def pod(*effects: str) -> dict[str, Any]:
        return {"tolerations": [{"key": "k", "value": "v", "effect": effect} for effect in effects]}

    one, other = signatures(pod("NoSchedule", "NoExecute"), pod("NoExecute", "NoSchedule"))
    assert one != other


def test_pods_with_terms_or_constraints_of_their_own_are_like_no_other() -> None:
    selector = {"matchLabels": {"app": "web"}}
    term = {"labelSelector": selector, "topologyKey": objects.ZONE}
    constraint = {"maxSkew": 1, "topologyKey": objects.ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    for spec in (
        {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}},
        {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}},
        {"topologySpreadConstraints": [{**constraint, "labelSelector": selector}]},
    ):
        assert signatures(spec) == [None]


def test_a_plugin_that_the_profile_disables_signs_nothing() -> None:
    def without(*names: str) -> dict[str, Any]:
        return {**PLAIN, "plugins": {"multiPoint": {"disabled": [{"name": name} for name in names]}}}

    volumes = without("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")
    one, other = signatures({}, DIFFERENT["a volume"], profile=volumes)
    assert one == other
    one, other = signatures({}, DIFFERENT["a label"], profile=without("InterPodAffinity"))
    assert one == other
    ignoring = {"name": "InterPodAffinity", "args": {"ignorePreferredTermsOfExistingPods": True}}
    one, other = signatures({}, DIFFERENT["a label"], profile={"pluginConfig": [NO_DEFAULTS, ignoring]})
    assert one == other


# Which profiles sign --------------------------------------------------------------------------------------------------


class Unsigned(NodeFilterPlugin):
    def filter(self, pod: Cycle, node: NodeInfo) -> Status | None:
        return None


class Choosy(FilterPlugin, SignPlugin):
    """Looks at more than a node, as far as a scheduler knows."""

    asks_passing = True
    ends_search = True
    refused: ClassVar[str] = ""

    def verdict(self, state: Any, node: NodeInfo) -> int:
        return int(node.name == self.refused)

    def explain(self, state: Any, verdict: int) -> Status:
        return unresolvable("refused")

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        return {}


class Signed(NodeFilterPlugin, SignPlugin):
    def filter(self, pod: Cycle, node: NodeInfo) -> Status | None:
        return None

    def sign_pod(self, pod: PodInfo) -> Fragments | None:
        return {"tier": pod.labels.get("tier", "")}


def with_plugin(name: str) -> dict[str, Any]:
    return {**PLAIN, "plugins": {"filter": {"enabled": [{"name": f"{__name__}:{name}"}]}}}


@pytest.mark.parametrize(
    "profile",
    [
        {},
        {"pluginConfig": [{"name": "PodTopologySpread", "args": {"defaultingType": "System"}}]},
        with_plugin("Unsigned"),
    ],
)
def test_default_constraints_or_a_plugin_that_does_not_sign_keep_a_profile_from_batching(profile: Any) -> None:
    world = World(profile)
    assert world.decider.batches is None
    world.attempt()
    assert not used(world.attempt())


def test_a_plugin_of_the_user_may_sign() -> None:
    world = World(with_plugin("Signed"))
    world.attempt()
    assert used(world.attempt())


def test_extenders_and_the_feature_gate_keep_a_scheduler_from_batching() -> None:
    def signer(**more: Any) -> object:
        made = configuration_of({"profiles": [PLAIN], **more})
        return Profile(made.profiles[0], World().handle, REGISTRY).signer

    assert signer() is not None
    assert signer(featureGates={"OpportunisticBatching": False}) is None
    assert signer(extenders=[{"urlPrefix": "kemu://extender/one", "filterVerb": "filter"}]) is None
