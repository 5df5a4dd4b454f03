"""Where pods wait, in which order they are tried, and what wakes them."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kemu.emulated.scheduler.cache.pods import PodInfo
from kemu.emulated.scheduler.cache.updates import PodUpdate
from kemu.emulated.scheduler.devices.trackers import Devices
from kemu.emulated.scheduler.framework import events
from kemu.emulated.scheduler.framework.events import Event
from kemu.emulated.scheduler.framework.interfaces import NodeFilterPlugin, PreEnqueuePlugin
from kemu.emulated.scheduler.framework.statuses import Status, unresolvable
from kemu.emulated.scheduler.queue.queues import QueuedPod, SchedulingQueue
from kemu.messages.k8s import core_v1_pb2, resource_v1_pb2
from kemu.runtime.env import SECOND_NS
from tests.scheduler import objects
from tests.scheduler.clocks import HandClock

FIT = ("NodeResourcesFit",)


class World:
    def __init__(self, **options: Any) -> None:
        registry = options.pop("registry", None)
        profile = options.pop("profile", None)
        started_s = options.pop("started_s", 0)
        kind = options.pop("kind", SchedulingQueue)
        self.clock = HandClock()
        self.clock.advance_to(started_s)
        self.cluster = objects.cluster_of([objects.node("n1")])
        if options.pop("devices", False):
            self.cluster.devices = Devices(self.clock)
        self.profile = objects.decider(self.cluster, profile, registry=registry).profile
        self.left: list[tuple[str, str, float, str]] = []
        self.queue = kind(self.clock, {"default-scheduler": self.profile}, on_leave=self._on_leave, **options)
        self.queue.start()

    def _on_leave(self, pod: QueuedPod, place: str, since_ns: int, cause: str) -> None:
        self.left.append((pod.info.name, place, since_ns / SECOND_NS, cause))

    def info(self, name: str, **fields: Any) -> PodInfo:
        return self.cluster.pending(objects.pod(name, **fields))

    def add(self, name: str, **fields: Any) -> None:
        self.queue.add(self.info(name, **fields))

    def fail(self, rejectors: tuple[str, ...] = FIT, name: str | None = None) -> QueuedPod:
        """Take the next pod and say that it failed."""
        pod = self.queue.take()
        assert pod is not None
        assert name in (None, pod.info.name)
        self.queue.failed(pod, rejectors)
        return pod

    def taken(self) -> list[str]:
        """The pods that can be taken now, in order."""
        names = []
        while (pod := self.queue.take()) is not None:
            names.append(pod.info.name)
            self.queue.done(pod.info.uid)
        return names

    def a_pod_ends(self) -> None:
        self.queue.move(Event.ASSIGNED_POD_DELETE, objects.pod("gone", on="n1"), None)


def test_high_priority_first_then_first_come_first_served() -> None:
    world = World()
    for name, priority in (("a", 0), ("b", 10), ("c", 0), ("d", 10)):
        world.add(name, priority=priority)
    assert world.taken() == ["b", "d", "a", "c"]


def test_a_failed_pod_waits_for_an_event_that_its_plugins_care_about() -> None:
    world = World()
    world.add("p")
    world.fail()
    world.queue.move(Event.ASSIGNED_POD_ADD, None, objects.pod("x", on="n1"))
    world.queue.move(Event.NODE_ADD, None, objects.node("small", cpu="500m"))
    assert world.taken() == []
    world.queue.move(Event.NODE_ADD, None, objects.node("large"))
    assert world.taken() == ["p"]


def test_the_second_of_backoff_must_be_over() -> None:
    """An error at 6.403 with 1 s backoff is retried at 8, then after 2, 4, 8, 10 s: 11, 16, 25, 36."""
    world = World()
    world.clock.advance_to(6.403)
    world.add("p")
    for retried_at in (8, 11, 16, 25, 36):
        world.fail(rejectors=())
        world.clock.advance_to(retried_at - 0.001)
        assert world.queue.take() is None
        world.clock.advance_to(retried_at)
    assert world.taken() == ["p"]


def test_an_idle_scheduler_takes_pods_out_of_backoff_but_not_those_in_error() -> None:
    world = World()
    world.add("rejected")
    world.add("broken")
    world.fail(FIT, "rejected")
    world.fail((), "broken")
    world.a_pod_ends()
    assert world.taken() == ["rejected"]


def test_backoff_puts_a_pod_behind_those_that_are_active() -> None:
    world = World()
    world.add("important", priority=10)
    world.fail()
    world.add("modest")
    world.a_pod_ends()
    assert world.taken() == ["modest", "important"]


def test_without_the_gate_nothing_is_taken_early_and_nothing_is_rounded() -> None:
    world = World(pops_from_backoff=False)
    world.clock.advance_to(0.2)
    world.add("p")
    world.fail()
    world.a_pod_ends()
    assert world.taken() == []
    world.clock.advance_to(1.9)
    assert world.taken() == []
    world.clock.advance_to(2)
    assert world.taken() == ["p"]


def test_after_five_minutes_a_pod_is_tried_without_an_event() -> None:
    world = World()
    world.add("p")
    world.fail(("NodeAffinity",))
    world.clock.advance_to(329.9)
    assert world.taken() == []
    world.clock.advance_to(330)
    assert world.taken() == ["p"]
    assert world.left[-2:] == [("p", "unschedulable", 0, "AttemptFailed"), ("p", "active", 330, "UnschedulableTimeout")]


def test_an_event_met_in_flight_is_not_lost() -> None:
    world = World()
    world.add("p")
    pod = world.queue.take()
    assert pod is not None
    world.a_pod_ends()
    world.queue.failed(pod, FIT)
    assert world.taken() == ["p"]


@pytest.mark.parametrize("in_flight", [False, True])
@pytest.mark.parametrize(
    ("rejectors", "pending", "backs_off"),
    [
        (FIT, (), True),
        (FIT, FIT, False),
        (("InterPodAffinity", *FIT), FIT, False),
        # Its hint does not care for the end of this pod; that of the plugin that rejected the pod does.
        (("InterPodAffinity", *FIT), ("InterPodAffinity",), True),
    ],
)
def test_the_event_of_a_pending_plugin_skips_the_backoff(
    in_flight: bool, rejectors: tuple[str, ...], pending: tuple[str, ...], backs_off: bool
) -> None:
    """``isPodWorthRequeuing``: Queue from a plugin that said Pending means at once, from others after the backoff."""
    world = World(pops_from_backoff=False)
    world.add("p")
    pod = world.queue.take()
    assert pod is not None
    if in_flight:
        world.a_pod_ends()
    world.queue.failed(pod, rejectors, pending)
    if not in_flight:
        world.a_pod_ends()
    assert world.taken() == ([] if backs_off else ["p"])
    world.clock.advance_to(2.1)
    assert world.taken() == (["p"] if backs_off else [])


def test_of_several_events_met_in_flight_that_of_a_pending_plugin_wins() -> None:
    world = World(pops_from_backoff=False)
    world.add("p")
    pod = world.queue.take()
    assert pod is not None
    world.a_pod_ends()
    world.queue.move(Event.NODE_ADD, None, objects.node("n2"))
    world.queue.failed(pod, ("NodeName", *FIT), ("NodeName",))
    assert world.taken() == ["p"]


def test_pending_is_forgotten_with_the_next_attempt() -> None:
    world = World(pops_from_backoff=False)
    world.add("p")
    pod = world.queue.take()
    assert pod is not None
    world.queue.failed(pod, FIT, FIT)
    world.a_pod_ends()
    assert world.queue.take() is pod
    world.queue.failed(pod, FIT)
    world.a_pod_ends()
    assert world.taken() == []


def test_an_event_before_the_flight_does_not_count() -> None:
    world = World()
    world.add("p")
    world.a_pod_ends()
    world.fail()
    assert world.taken() == []


def test_a_gated_pod_waits_until_its_last_gate_is_gone() -> None:
    world = World()
    gated = objects.pod("p", schedulingGates=[{"name": "a"}, {"name": "b"}])
    world.queue.add(world.cluster.pending(gated))
    world.a_pod_ends()
    assert world.taken() == []
    one_left, open_ = core_v1_pb2.Pod(), core_v1_pb2.Pod()
    one_left.CopyFrom(gated)
    del one_left.spec.schedulingGates[0]
    world.queue.update(world.cluster.pending(one_left), [], gated)
    assert world.taken() == []
    open_.CopyFrom(one_left)
    del open_.spec.schedulingGates[0]
    world.queue.update(world.cluster.pending(open_), [Event.POD_GATES], one_left)
    assert world.taken() == ["p"]
    assert world.left[0] == ("p", "gated", 0, "PodAdd")


class Closed(PreEnqueuePlugin):
    """A door that only the end of a pod opens."""

    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        return unresolvable("closed") if self.args["doors"] else None

    def events(self) -> Any:
        return [(Event.ASSIGNED_POD_DELETE, None)]


def test_a_gate_hears_only_of_its_own_events() -> None:
    doors = [True]
    profile = {"plugins": {"preEnqueue": {"enabled": [{"name": "Closed"}]}}}
    world = World(profile=profile, registry={"Closed": lambda args, handle: Closed({"doors": doors}, handle)})
    world.add("p")
    doors.clear()
    world.queue.move(Event.NODE_ADD, None, objects.node("large"))
    assert world.taken() == []
    world.a_pod_ends()
    assert world.taken() == ["p"]


def test_a_gated_pod_that_stays_gated_has_not_moved() -> None:
    """A member of a gang of a thousand is asked about a thousand times."""
    doors = [True]
    profile = {"plugins": {"preEnqueue": {"enabled": [{"name": "Closed"}]}}}
    world = World(profile=profile, registry={"Closed": lambda args, handle: Closed({"doors": doors}, handle)})
    world.add("p")
    for _ in range(3):
        world.clock.advance_to(world.clock.now_ns() / SECOND_NS + 1)
        world.a_pod_ends()
    assert world.left == []
    doors.clear()
    world.a_pod_ends()
    assert world.left == [("p", "gated", 0, "PodAdd")]


def test_a_pod_in_flight_is_activated_once() -> None:
    """Each member of a gang that gets a node activates all others; after the flight it counts again."""
    world = World()
    world.add("p")
    world.add("q")
    world.queue.take()
    world.queue.take()
    for _ in range(3):
        world.queue.activate("uid-p")
    assert len(world.queue._events) == 1
    world.queue.done("uid-p")
    world.add("p")
    world.queue.take()
    world.queue.activate("uid-p")
    assert len(world.queue._events) == 2
    world.queue.done("uid-q")
    assert len(world.queue._events) == 1


def test_a_flush_while_a_pod_is_being_tried_wakes_it_too() -> None:
    """kube-scheduler remembers the flush as an event for everybody."""
    world = World()
    world.add("old")
    world.fail(("NodeAffinity",))
    world.clock.advance_to(320)
    world.add("new")
    tried = world.queue.take()
    assert tried is not None
    world.clock.advance_to(331)
    world.queue.failed(tried, ("NodeAffinity",))
    assert world.taken() == ["old", "new"]


def test_a_flush_that_wakes_nobody_is_no_event() -> None:
    world = World()
    world.clock.advance_to(320)
    world.add("p")
    tried = world.queue.take()
    assert tried is not None
    world.clock.advance_to(331)
    world.queue.failed(tried, ("NodeAffinity",))
    assert world.taken() == []


def test_a_flush_of_a_pod_that_is_held_back_is_an_event_too() -> None:
    """It does not wake the gated pod, yet kube-scheduler remembers it for the pods that are being tried."""
    world = World()
    world.add("gated", schedulingGates=[{"name": "example.com/one"}])
    world.clock.advance_to(320)
    world.add("new")
    tried = world.queue.take()
    assert tried is not None
    world.clock.advance_to(331)
    world.queue.failed(tried, ("NodeAffinity",))
    assert world.taken() == ["new"]


def test_flushes_count_from_the_start() -> None:
    world = World(started_s=12)
    world.add("p")
    world.fail(("NodeAffinity",))
    world.clock.advance_to(341.9)
    assert world.taken() == []
    world.clock.advance_to(342)
    assert world.taken() == ["p"]


@pytest.mark.parametrize(("activated", "taken"), [("uid-p", ["p"]), ("uid-q", [])])
def test_a_pod_activated_while_it_is_being_tried_comes_back(activated: str, taken: list[str]) -> None:
    world = World()
    world.add("p")
    world.add("q")
    pod, other = world.queue.take(), world.queue.take()
    assert pod is not None
    assert other is not None
    world.queue.activate(activated)
    world.queue.failed(pod, FIT)
    assert world.taken() == taken


def test_changes_of_another_pod_in_flight_do_not_count() -> None:
    world = World()
    world.add("p")
    world.add("q")
    pod = world.queue.take()
    assert pod is not None
    world.queue.take()
    other = objects.pod("q")
    world.queue.update(world.cluster.pending(other), [Event.POD_SCALE_DOWN], other)
    world.queue.failed(pod, FIT)
    assert world.taken() == []


class Curious(NodeFilterPlugin):
    """Names no events, so that every event requeues the pods that it rejects."""


def _curious_world() -> World:
    profile = {"plugins": {"filter": {"enabled": [{"name": "Curious"}]}}}
    return World(profile=profile, registry={"Curious": Curious})


def test_a_plugin_that_registers_every_event_hears_of_status_updates() -> None:
    old, new = objects.pod("x", on="n1"), objects.pod("x", on="n1")
    new.status.message = "new"
    waiting, reported = objects.pod("p"), objects.pod("p")
    reported.status.message = "unschedulable"
    for rejector, wakes in (("Curious", ["p"]), ("NodeResourcesFit", [])):
        world = _curious_world()
        world.add("p")
        world.fail((rejector,))
        for event in events.assigned_pod_events(PodUpdate(old, new)):
            world.queue.move(event, old, new)
        assert world.taken() == wakes, rejector
        world = _curious_world()
        world.add("p")
        world.fail((rejector,))
        update = PodUpdate(waiting, reported)
        world.queue.update(world.cluster.pending(reported), events.pending_pod_events(update), waiting)
        assert world.taken() == wakes, rejector


def test_a_plugin_that_registers_every_event_hears_of_other_pods_in_flight() -> None:
    world = _curious_world()
    world.add("p")
    world.add("q")
    pod = world.queue.take()
    assert pod is not None
    world.queue.take()
    other = objects.pod("q")
    world.queue.update(world.cluster.pending(other), [Event.POD_UPDATE], other)
    world.queue.failed(pod, ("Curious",))
    assert world.taken() == ["p"]


@pytest.mark.parametrize(
    ("event", "change"),
    [
        (Event.NODE_CONDITIONS, lambda node: node.status.conditions.add(type="Ready", status="True")),
        (Event.NODE_ANNOTATIONS, lambda node: node.metadata.annotations.update(note="new")),
    ],
)
def test_a_plugin_that_registers_every_event_hears_of_conditions_and_annotations(event: Event, change: Any) -> None:
    old, new = objects.node("n1"), objects.node("n1")
    change(new)
    assert events.node_events(old, new) == [event]
    for rejector, wakes in (("Curious", ["p"]), ("NodeResourcesFit", [])):
        world = _curious_world()
        world.add("p")
        world.fail((rejector,))
        world.queue.move(event, old, new)
        assert world.taken() == wakes, rejector


def test_a_heartbeat_is_no_event() -> None:
    old, new = objects.node("n1"), objects.node("n1")
    for node, seconds in ((old, 1), (new, 11)):
        node.status.conditions.add(type="Ready", status="True").lastHeartbeatTime.seconds = seconds
    assert events.node_events(old, new) == []


def test_a_preemptor_waits_for_the_events_of_those_who_rejected_it() -> None:
    """The end of a pod opens the door of DefaultPreemption, but wakes the preemptor only if it helps."""
    world = World()
    world.add("p")
    preemptor = world.queue.take()
    assert preemptor is not None
    world.queue.failed(preemptor, ("NodePorts",))
    world.profile.handle.is_preempting = lambda uid: True
    world.queue.activate("uid-p")
    assert preemptor.gate == "DefaultPreemption"
    world.profile.handle.is_preempting = lambda uid: False
    world.a_pod_ends()
    assert world.taken() == []


def test_an_error_behind_the_door_of_preemption_waits_with_the_rejected_ones() -> None:
    world = World()
    world.add("p")
    pod = world.queue.take()
    assert pod is not None
    world.profile.handle.is_preempting = lambda uid: True
    world.queue.failed(pod, ())
    assert (pod.place, pod.rejectors) == ("unschedulable", ("DefaultPreemption",))


def test_who_waits_for_new_nodes_hears_of_all_taints() -> None:
    class Choosy(PreEnqueuePlugin):
        def pre_enqueue(self, pod: PodInfo) -> Status | None:
            return None

        def events(self) -> Any:
            return [(Event.NODE_ADD, lambda pod, old, new: False)]

    profile = {"plugins": {"preEnqueue": {"enabled": [{"name": "Choosy"}]}}}
    world = World(profile=profile, registry={"Choosy": Choosy})
    assert world.profile.hints[Event.NODE_TAINTS]["Choosy"] is None


def test_hints_of_affinity_see_no_labels_of_namespaces() -> None:
    """In v1.36 a pod in a namespace that only the namespaceSelector names wakes nobody; one that is named does."""
    term = {
        "topologyKey": objects.ZONE,
        "labelSelector": {"matchLabels": {"app": "web"}},
        "namespaceSelector": {"matchLabels": {"team": "a"}},
    }
    for namespaces, taken in (([], []), (["other"], ["p"])):
        world = World()
        world.cluster.set_namespace("other", {"team": "a"})
        terms = [{**term, "namespaces": namespaces}]
        world.add("p", affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}})
        world.fail(("InterPodAffinity",))
        arrived = objects.pod("web", on="n1", labels={"app": "web"})
        arrived.metadata.namespace = "other"
        world.queue.move(Event.ASSIGNED_POD_ADD, None, arrived)
        assert world.taken() == taken


def test_a_node_that_only_the_added_affinity_ruled_out_is_no_news() -> None:
    """The hint of NodeAffinity asks the added affinity of the new labels alone."""
    terms = [{"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]}]
    added = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    profile = {"pluginConfig": [{"name": "NodeAffinity", "args": {"addedAffinity": added}}]}
    world = World(profile=profile)
    world.add("p", nodeSelector={"disk": "ssd"})
    world.fail(("NodeAffinity",))
    world.queue.move(
        Event.NODE_LABELS,
        objects.node("n1", {"disk": "ssd"}),
        objects.node("n1", {"disk": "ssd", "pool": "a"}),
    )
    assert world.taken() == []
    world.queue.move(
        Event.NODE_LABELS, objects.node("n1", {"pool": "a"}), objects.node("n1", {"disk": "ssd", "pool": "a"})
    )
    assert world.taken() == ["p"]


def test_a_toleration_is_news_when_it_is_a_further_one() -> None:
    old = objects.pod("p", tolerations=[{"key": "a", "operator": "Exists", "effect": "NoExecute"}])
    longer = objects.pod(
        "p", tolerations=[{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9}]
    )
    further = objects.pod("p", tolerations=[{"operator": "Exists"}, {"key": "b", "operator": "Exists"}])
    assert events.pending_pod_events(PodUpdate(old, longer)) == [Event.POD_UPDATE]
    assert events.pending_pod_events(PodUpdate(old, further)) == [Event.POD_TOLERATIONS]


def test_the_end_of_a_nomination_is_the_end_of_a_pod_for_spread_constraints() -> None:
    """involvedInTopologySpreading (v1.36.3) is asked of pods with a node or a nominated node."""
    world = World()
    constraint = {
        "maxSkew": 1,
        "topologyKey": objects.ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    world.add("p", topologySpreadConstraints=[constraint])
    world.fail(("PodTopologySpread",))
    nominated = objects.pod("nominated", labels={"app": "web"})
    nominated.status.nominatedNodeName = "n1"
    another = objects.pod("another", labels={"app": "db"}, on="n1")
    world.queue.move(Event.ASSIGNED_POD_DELETE, another, None)
    assert world.taken() == []
    world.queue.move(Event.ASSIGNED_POD_DELETE, nominated, None)
    assert world.taken() == ["p"]


def test_a_pod_that_is_removed_is_not_taken() -> None:
    world = World()
    world.add("a")
    world.add("b")
    world.queue.remove("uid-a")
    assert world.taken() == ["b"]
    assert len(world.queue) == 0


@pytest.mark.parametrize(("rejectors", "alive"), [((), True), (FIT, False)])
def test_only_a_pod_that_time_alone_will_wake_keeps_a_run_alive(rejectors: tuple[str, ...], alive: bool) -> None:
    world = World()
    world.add("p")
    world.fail(rejectors)
    assert bool(world.clock.foreground()) is alive


def test_to_wait_for_nodes_does_not_keep_a_run_alive() -> None:
    world = World()
    world.queue.nodes_changed(False)
    world.add("p")
    world.fail(())
    assert world.clock.foreground() == []
    world.queue.nodes_changed(True)
    assert world.clock.foreground() == [2 * SECOND_NS]


def test_void_entries_do_not_pile_up() -> None:
    """A pod that never comes to the head is sorted in again and again; others come and go behind it."""
    world = World()
    world.add("first", priority=10)
    for number in range(1000):
        world.add(f"p{number}")
        world.queue.remove(f"uid-p{number}")
    assert len(world.queue._active) < 100
    assert world.taken() == ["first"]


class _LooksAtAll(SchedulingQueue):
    """Asks the hints about every pod that waits, whatever the event."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        assert {*self._keyed} == {Event.RESOURCE_CLAIM_ADD, Event.RESOURCE_CLAIM_UPDATE}
        self._keyed.clear()


class _KnowsOldNames(SchedulingQueue):
    """Does not hear of the claim that a template made for a pod that waits."""

    def _note(self, pod: QueuedPod) -> None:
        if not pod.keys:
            super()._note(pod)
            pod.keys = pod.keys or ("none",)
            self._by_key.setdefault("none", {})[pod.info.uid] = pod


def _history(kind: type[SchedulingQueue], seed: int) -> list[object]:
    """Where pods were that wait for claims, while claims come, change and are freed and attempts fail."""
    rng, world = random.Random(seed), World(kind=kind, devices=True)
    devices, queue = world.cluster.devices, world.queue
    assert devices is not None
    devices.on_claim = lambda old, new: queue.move(
        Event.RESOURCE_CLAIM_ADD if old is None else Event.RESOURCE_CLAIM_UPDATE, old, new
    )
    pods: dict[str, core_v1_pb2.Pod] = {}
    version = 0
    for step in range(150):
        what, number = (
            rng.choice(("pod", "generated", "claim", "claim", "claim", "attempt", "attempt")),
            rng.randrange(6),
        )
        if what == "pod":
            claims: list[dict[str, str]] = [{"name": "own", "resourceClaimTemplateName": "template"}]
            if rng.random() < 0.7:
                claims = [{"name": f"c{one}", "resourceClaimName": f"c{one}"} for one in rng.sample(range(6), 2)]
            pods[f"p{step}"] = objects.pod(f"p{step}", resourceClaims=claims)
            queue.add(world.cluster.pending(pods[f"p{step}"]))
        elif what == "generated":
            for name, old in pods.items():
                if old.spec.resourceClaims[0].name == "own" and not old.status.resourceClaimStatuses:
                    new = core_v1_pb2.Pod()
                    new.CopyFrom(old)
                    new.status.resourceClaimStatuses.add(name="own", resourceClaimName=f"c{number}")
                    pods[name] = new
                    queue.update(world.cluster.pending(new), events.pending_pod_events(PodUpdate(old, new)), old)
                    break
        elif what == "claim":
            version += 1
            claim = resource_v1_pb2.ResourceClaim()
            claim.metadata.name, claim.metadata.namespace, claim.metadata.uid = (
                f"c{number}",
                "default",
                f"uid-c{number}",
            )
            claim.metadata.resourceVersion = str(version)
            for name in pods:
                claim.metadata.ownerReferences.add(uid=f"uid-{name}", controller=True)
            if rng.random() < 0.5:
                claim.status.allocation.devices.results.add(driver="d", pool="n1", device=f"gpu-{version}")
            devices.set_claim(claim)
        elif (pod := queue.take()) is not None:
            queue.failed(pod, rng.choice((("DynamicResources",), FIT, (*FIT, "DynamicResources"))))
        world.clock.advance_to(step / 2)
    return [*world.left, world.taken()]


def test_an_event_of_a_claim_wakes_the_pods_that_a_look_at_all_of_them_would_wake() -> None:
    histories = [_history(_LooksAtAll, seed) for seed in range(20)]
    assert any(len(history) > 30 for history in histories)
    assert [_history(SchedulingQueue, seed) for seed in range(20)] == histories
    assert [_history(_KnowsOldNames, seed) for seed in range(20)] != histories
