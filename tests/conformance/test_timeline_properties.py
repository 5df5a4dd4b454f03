"""What holds of every timeline, whatever happens: nobody is lost, nobody sleeps who could run, order is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kemu.emulated.scheduler.framework.events import Event
from kemu.emulated.scheduler.queue import queues
from kemu.emulated.scheduler.queue.queues import QueuedPod, SchedulingQueue
from kemu.lab.conformance.scheduler import small_clusters
from tests.conformance import random_timelines

LOOK_EVERY_S = 0.2


class Auditor:
    """Looks at a running world again and again. ``wrong`` collects what should not be."""

    def __init__(self, world: small_clusters.World) -> None:
        self.world = world
        self.queue = world.engine.queue
        self.wrong: list[str] = []
        self.moved_nodes = False
        """A node with pods was deleted, or has another zone than it had."""
        self.zones: dict[str, str] = {}
        self._take = self.queue.take
        self.queue.take = self.take  # type: ignore[method-assign]
        self.look()

    def say(self, what: str) -> None:
        self.wrong.append(f"{self.world.clock.now_ns() / 1e9:.3f}: {what}")

    def look(self) -> None:
        self.places()
        zones = {name: node.metadata.labels.get(random_timelines.ZONE, "") for name, node in self.world.nodes.items()}
        if any(zones.get(name) != zone for name, zone in self.zones.items()):
            self.moved_nodes = True
        self.zones = zones
        if self.is_quiet():
            self.nobody_sleeps_who_could_run()
        clock = self.world.clock
        clock.call_at_ns(clock.now_ns() + round(LOOK_EVERY_S * 1e9), self.look, background=True)

    def places(self) -> None:
        """Every pending pod is in exactly one part of the queue, or being tried, or being bound."""
        found = parts(self.queue)
        for uid, at in found.items():
            if at != [self.queue.pods[uid].place if uid in self.queue.pods else None]:
                self.say(f"{uid} is in {at}, and says so of {self.queue.pods.get(uid) and self.queue.pods[uid].place}")
        pending = {pod.metadata.uid for pod in self.world.pods.values() if not pod.spec.nodeName}
        for uid in sorted(pending - {*found} - {*self.world.engine.cluster.assumed}):
            self.say(f"{uid} is lost")
        for uid in sorted({*found} - pending - {*self.queue._in_flight}):
            self.say(f"{uid} waits though it is not pending")

    def take(self) -> QueuedPod | None:
        """The next is the first by priority, then by age; from backoff only when nothing is active."""
        queue = self.queue
        active = [pod for pod in queue.pods.values() if pod.place == queues.ACTIVE]
        backoff = [pod for pod in queue.pods.values() if pod.place == queues.BACKOFF]
        taken = self._take()
        if active:
            best = min(active, key=lambda pod: (-pod.info.priority, pod.timestamp_ns, pod.stamp))
            if taken is not best:
                self.say(f"took {taken and taken.info.name} and not {best.info.name}")
        elif taken is not None and (taken not in backoff or not queue._pops_from_backoff):
            self.say(f"took {taken.info.name}, which had to wait")
        elif taken is None and backoff and queue._pops_from_backoff:
            self.say("took nobody, though somebody could be taken out of backoff")
        return taken

    def is_quiet(self) -> bool:
        engine = self.world.engine
        busy = (
            self.queue._in_flight or engine.cluster.assumed or engine.cluster.held is not None or engine.evictor._busy
        )
        return not busy and not any(pod.place == queues.ACTIVE for pod in self.queue.pods.values())

    def nobody_sleeps_who_could_run(self) -> None:
        """No event that helped was missed: brute force against the hints."""
        engine = self.world.engine
        now_s = self.world.clock.now_ns() / 1e9
        for pod in self.queue.pods.values():
            if pod.place != queues.UNSCHEDULABLE or pod.gate:
                continue
            if now_s - pod.timestamp_ns / 1e9 > 330:
                self.say(f"{pod.info.name} starves")
            decider = engine.deciders[pod.profile.scheduler_name]
            engine.cluster.settle()
            if not engine.cluster.rows:
                continue
            filtering = decider.filter(pod.info)
            could_run = filtering.rejection is None and not filtering.verdicts[: filtering.nodes].all()
            if could_run and not self.is_missed_upstream_too(pod):
                self.say(f"{pod.info.name} sleeps, rejected by {pod.rejectors}, but could run")

    def is_missed_upstream_too(self, pod: QueuedPod) -> bool:
        """What kube-scheduler v1.36 tells no plugin, or the plugin does not care about."""
        if "PodTopologySpread" in pod.rejectors:
            # A pod that begins to terminate does not count any more.
            return any(one.metadata.HasField("deletionTimestamp") for one in self.world.pods.values())
        if "InterPodAffinity" in pod.rejectors:
            # Pods of other zones come into nobody's way; when the last pod of a kind is gone, another may be the first.
            return self.moved_nodes or bool(pod.info.template.affinity_terms)
        return self.a_nomination_ended_elsewhere()

    def a_nomination_ended_elsewhere(self) -> bool:
        """A pod was bound to another node than the one that was kept for it (upstream's issue 134859)."""
        nominated: dict[str, str] = {}
        for entry in self.world.timeline:
            if entry["what"] == "nominated":
                nominated[entry["pod"]] = entry["node"]
            elif entry["what"] == "bound" and nominated.get(entry["pod"], entry["node"]) != entry["node"]:
                return True
        return False


def parts(queue: SchedulingQueue) -> dict[str, list[str]]:
    """In which parts of the queue each pod is, by what the parts hold."""
    found: dict[str, list[str]] = {}
    for place, heap in (
        (queues.ACTIVE, queue._active),
        (queues.BACKOFF, queue._backoff),
        (queues.ERROR_BACKOFF, queue._errors),
    ):
        for *_key, entry, pod in heap:
            if pod.entry == entry:
                found.setdefault(pod.info.uid, []).append(place)
    for members in queue._unschedulable.values():
        for uid in members:
            found.setdefault(uid, []).append(queues.UNSCHEDULABLE)
    for uid, pod in queue._held.items():
        found.setdefault(uid, []).append(queues.UNSCHEDULABLE if pod.attempts else queues.GATED)
    for uid in queue._in_flight:
        found.setdefault(uid, []).append(queues.IN_FLIGHT)
    return found


def audited(case: dict[str, Any], seed: int = 0) -> tuple[dict[str, Any], Auditor]:
    auditors: list[Auditor] = []
    outcome = small_clusters.play(case, seed, watch=lambda world: auditors.append(Auditor(world)))
    return outcome, auditors[0]


# The properties -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0, 30, 60, 90])
def test_nobody_is_lost_or_sleeps_who_could_run_and_order_is_kept(start: int) -> None:
    wrong = {}
    for seed in range(start, start + 30):
        found = audited(random_timelines.case(seed))[1].wrong
        if found:
            wrong[seed] = found[0]
    assert not wrong


def test_nobody_starves_beyond_the_flush() -> None:
    auditor = audited(random_timelines.case(3, horizon_s=700))[1]
    assert not auditor.wrong


def ask_nobody(world: small_clusters.World) -> None:
    """Every event wakes every pod, as if plugins gave no hints."""
    for profile in world.engine.profiles.values():
        for event in profile.hints:
            profile.hints[event] = dict.fromkeys(profile.plugins)


def attempts(outcome: dict[str, Any]) -> int:
    return sum(entry["what"] == "unschedulable" for entry in outcome["timeline"])


def test_hints_save_attempts_and_change_nothing_else() -> None:
    saved = 0
    for seed in range(25):
        case = random_timelines.case(seed, simple=True, horizon_s=250)
        hinted, unhinted = small_clusters.play(case), small_clusters.play(case, watch=ask_nobody)
        assert hinted["final"] == unhinted["final"]
        saved += attempts(unhinted) - attempts(hinted)
    assert saved > 0


def test_the_same_seed_gives_the_same_timeline() -> None:
    for seed in range(15):
        case = random_timelines.case(seed)
        assert small_clusters.play(case, seed) == small_clusters.play(case, seed)


def lose_events(world: small_clusters.World) -> None:
    """A fault: what happens while a pod is being tried is forgotten."""
    world.engine.queue._was_worth = lambda *_: False  # type: ignore[method-assign]


def be_deaf_to_ends(world: small_clusters.World) -> None:
    """A fault: the end of a pod wakes nobody that waits for room."""
    for profile in world.engine.profiles.values():
        profile.hints[Event.ASSIGNED_POD_DELETE].pop("NodeResourcesFit", None)


@pytest.mark.parametrize("fault", [lose_events, be_deaf_to_ends])
def test_the_audit_finds_faults(fault: Callable[[small_clusters.World], None]) -> None:
    """Otherwise the properties above would say nothing."""

    def finds(seed: int) -> bool:
        auditors: list[Auditor] = []

        def watch(world: small_clusters.World) -> None:
            fault(world)
            auditors.append(Auditor(world))

        small_clusters.play(random_timelines.case(seed), watch=watch)
        return bool(auditors[0].wrong)

    assert any(finds(seed) for seed in range(60))


def test_a_pod_deleted_while_it_is_being_bound_frees_its_room_at_once() -> None:
    case = random_timelines.case(0, simple=True)
    node, pod = case["nodes"][0], case["pods"][-1]
    node["status"]["allocatable"]["cpu"] = "1"
    other = {**pod, "metadata": {**pod["metadata"], "name": "other"}}
    case["nodes"], case["pods"] = [node], [pod]
    case["events"] = [
        {"at_s": 1, "do": "deletePod", "name": pod["metadata"]["name"]},
        {"at_s": 2, "do": "createPod", "pod": other},
    ]
    outcome = small_clusters.play(case, latencies=small_clusters.Latencies(call_s=5))
    assert [(one["t_s"], one["pod"]) for one in outcome["timeline"] if one["what"] == "bound"] == [(7, "other")]
    assert not any(one["what"] == "unschedulable" for one in outcome["timeline"])
