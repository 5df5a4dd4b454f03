"""Nominations and preemption over time: what is written, taken back, written again; what changes meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from kemu import errors
from kemu.emulated.objects.conversion import convert
from kemu.lab.conformance.scheduler import small_clusters
from kemu.lab.conformance.scheduler.small_clusters import World
from kemu.messages.k8s import core_v1_pb2
from kemu.runtime.env import SECOND_NS
from tests.scheduler import objects

Json = dict[str, Any]


def case(nodes: list[core_v1_pb2.Node], running: list[core_v1_pb2.Pod], *events: Json, **more: Any) -> Json:
    return {
        "start": "2026-01-01T00:00:00Z",
        "horizon_s": 20,
        "nodes": [convert.to_json(one) for one in nodes],
        "pods": [convert.to_json(one) for one in running],
        "events": list(events),
        **more,
    }


def create(at_s: float, pod: core_v1_pb2.Pod) -> Json:
    return {"at_s": at_s, "do": "createPod", "pod": convert.to_json(pod)}


def lasting(name: str, cpu: str, grace_s: int, *, on: str, priority: int = 0) -> core_v1_pb2.Pod:
    return objects.pod(name, cpu, on=on, priority=priority, start_s=1, terminationGracePeriodSeconds=grace_s)


def of(outcome: Json, name: str, *kinds: str) -> list[tuple[float, str]]:
    """When something happened to a pod, and on which node."""
    return [
        (round(one["t_s"], 1), one.get("node", ""))
        for one in outcome["timeline"]
        if one["pod"] == name and one["what"] in kinds
    ]


def refusing(refused: Callable[[str, Mapping[str, Any]], bool], seen: list[str]) -> Callable[[World], object]:
    """A world that refuses some writes of ``nominatedNodeName``; ``seen`` is told of all: "pod=node"."""

    def watch(world: World) -> None:
        write = world.patch

        async def patch(resource: str, name: str, namespace: str, data: Mapping[str, Any], *more: Any) -> None:
            status = data["status"]
            if "nominatedNodeName" in status:
                seen.append(f"{name}={status['nominatedNodeName'] or ''}")
                if refused(name, status):
                    raise errors.Forbidden("not you")  # an error that is not worth another try
            await write(resource, name, namespace, data, *more)

        setattr(world, "patch", patch)  # noqa: B010

    return watch


# Preemption ---------------------------------------------------------------------------------------------------------


def on_one_node() -> Json:
    """c has "a" go and is nominated; then d, more important, needs the whole node and has "b" go."""
    running = [lasting("a", "5", 8, on="n1"), lasting("b", "5", 8, on="n1", priority=50)]
    return case(
        [objects.node("n1")],
        running,
        create(1.5, objects.pod("c", "5", priority=10)),
        create(3.5, objects.pod("d", "10", priority=100)),
    )


def test_a_preemptor_clears_lower_nominations_and_waits_for_its_victims() -> None:
    seen: list[str] = []
    found = small_clusters.play(on_one_node(), watch=refusing(lambda name, status: False, seen))
    assert seen == ["c=n1", "d=n1", "c="] or seen == ["c=n1", "c=", "d=n1"]
    assert of(found, "c", "nominationCleared") == [(3.5, "")]
    # d is tried when it comes and when a victim is gone.
    assert of(found, "d", "unschedulable") == [(3.5, ""), (9.5, "")]
    assert of(found, "d", "bound") == [(11.5, "n1")]


def test_a_preemptor_that_could_not_clear_a_nomination_is_tried_again() -> None:
    """An error of clearNominatedNodeName ends the preemption as failed, so the preemptor is activated.

    (``Executor.prepareCandidateAsync``; the victims are told to go nevertheless.)
    """
    seen: list[str] = []
    found = small_clusters.play(
        on_one_node(), watch=refusing(lambda name, status: name == "c" and not status["nominatedNodeName"], seen)
    )
    assert of(found, "c", "nominationCleared") == []
    assert of(found, "b", "preempted") == [(3.5, "")]
    assert of(found, "d", "unschedulable") == [(3.5, ""), (3.5, ""), (9.5, "")]
    assert of(found, "d", "bound") == [(11.5, "n1")]


def test_a_nomination_that_never_was_written_is_not_cleared() -> None:
    """ClearNominatedNodeName passes pods over whose status has none; so nothing can fail."""
    seen: list[str] = []
    found = small_clusters.play(on_one_node(), watch=refusing(lambda name, status: name == "c", seen))
    assert seen == ["c=n1", "d=n1"]
    assert of(found, "d", "unschedulable") == [(3.5, ""), (9.5, "")]


# Slow attempts ------------------------------------------------------------------------------------------------------


def test_a_nomination_taken_back_during_an_attempt_is_written_again() -> None:
    """After an attempt, handleSchedulingFailure compares the status with that of the pod as it is in the informer."""

    def watch(world: World) -> None:
        def take_back() -> None:
            pod = world.changed("c")
            assert pod.status.nominatedNodeName == "n1"
            pod.status.ClearField("nominatedNodeName")
            world.put(pod)

        # c is tried from 2.5 to 3, when its first victim has gone and somebody else has put "x" in its place.
        world.clock.call_at_ns(round(2.75 * SECOND_NS), take_back)

    placed = lasting("x", "10", 4, on="n1")
    found = small_clusters.play(
        case(
            [objects.node("n1")],
            [lasting("a", "10", 1, on="n1")],
            create(1, objects.pod("c", "10", priority=10)),
            create(2, placed),
            attempt_s=0.5,
        ),
        watch=watch,
    )
    assert of(found, "c", "nominated") == [(1.5, "n1"), (3.0, "n1")]


def test_a_preemptor_that_was_nominated_no_more_when_its_attempt_ended_may_preempt_again() -> None:
    """Preempt looks at the pod as it is in the informer: no nominated node, no victim there to wait for."""
    small = objects.node("n2", cpu="1")

    def watch(world: World) -> None:
        def take_back() -> None:
            pod = world.changed("c")
            pod.status.ClearField("nominatedNodeName")
            world.put(pod)

        # c is tried from 3 to 3.5, as the end of "z" woke it.
        world.clock.call_at_ns(round(3.25 * SECOND_NS), take_back)

    found = small_clusters.play(
        case(
            [objects.node("n1"), small],
            [lasting("a", "10", 30, on="n1"), lasting("z", "1", 0, on="n2", priority=100)],
            create(1, objects.pod("c", "10", priority=10)),
            {"at_s": 3, "do": "finishPod", "name": "z"},
            attempt_s=0.5,
            horizon_s=5,
        ),
        watch=watch,
    )
    assert of(found, "c", "nominated") == [(1.5, "n1"), (3.5, "n1")]
    assert of(found, "a", "preempted") == [(1.5, "")]


def test_for_a_pod_that_is_gone_when_its_attempt_ends_nobody_is_preempted() -> None:
    found = small_clusters.play(
        case(
            [objects.node("n1")],
            [lasting("a", "10", 30, on="n1")],
            create(1, objects.pod("c", "10", priority=10)),
            {"at_s": 1.2, "do": "deletePod", "name": "c"},
            attempt_s=0.5,
        )
    )
    assert [(one["what"], one.get("message", "")) for one in found["timeline"]] == [
        ("gone", ""),
        ("unschedulable", '0/1 nodes are available: 1 Insufficient cpu. preemption: pod "c" not found'),
    ]
    assert found["final"]["a"] == {"state": "running", "node": "n1"}


def test_a_refused_binding_is_over_while_another_pod_is_being_tried() -> None:
    """ForgetPod makes a pod a waiting one at once, also for an attempt that goes on with an older snapshot.

    Here its nomination is cleared meanwhile: when it is tried again it may go anywhere.
    """
    big = objects.node("n2", cpu="20")
    found = small_clusters.play(
        case(
            [objects.node("n1"), big],
            [lasting("low", "10", 1, on="n1"), lasting("high", "20", 0, on="n2", priority=100)],
            create(1, objects.pod("p", "10", priority=10)),
            # Tried from the moment p is assumed, until half a second later.
            create(2.7, objects.pod("other", "50")),
            {"at_s": 4.2, "do": "finishPod", "name": "high"},
            attempt_s=0.5,
            bindErrors={"p": 1},
        )
    )
    assert of(found, "p", "nominated") == [(1.5, "n1")]
    assert of(found, "p", "error", "nominationCleared") == [(3.0, ""), (3.0, "")]
    assert of(found, "other", "unschedulable")[0] == (3.5, "")
    assert of(found, "p", "bound") == [(5.5, "n2")]


def test_a_pod_that_changes_while_it_is_being_tried_counts_as_it_is_once_it_is_bound() -> None:
    """AddPod takes over what the watch shows also of a pod that was assumed on that node before."""
    found = small_clusters.play(
        case(
            [objects.node("n1")],
            [],
            create(1, objects.pod("p", "10")),
            {"at_s": 1.2, "do": "updatePod", "name": "p", "requests": {"cpu": "2"}},
            create(3, objects.pod("q", "8")),
            attempt_s=0.5,
        )
    )
    assert of(found, "p", "bound") == [(1.5, "n1")]
    assert of(found, "q", "bound") == [(3.5, "n1")]
