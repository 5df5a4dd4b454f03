"""The abstract timeline of a run: which orders of decisive events it has shown."""

from __future__ import annotations

import random
from typing import Any

from kemu.lab.exploration import coverage

KINDS = ("sched.bind", "sched.attempt", "watch.events", "api.request", "actor.crashed", "store.txn")
ACTORS = ("scheduler/red/0", "scheduler/blue/0", "kubelet/a", "kubelet/b")


def shown(events: list[tuple[str, str, dict[str, Any]]]) -> coverage.Timeline:
    timeline = coverage.Timeline()
    for time_ns, (actor, kind, data) in enumerate(events):
        timeline(time_ns, actor, kind, data)
    return timeline


def some(stream: random.Random, count: int) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (stream.choice(ACTORS), stream.choice(KINDS), {"uid": stream.choice(("", "u1", "u2")), "ok": True})
        for _ in range(count)
    ]


def test_a_timeline_has_the_orders_of_every_event_with_those_shortly_before_it() -> None:
    """An order is a pair of events: each stretch of two of them alone shows one, or none."""
    for seed in range(50):
        events = some(random.Random(seed), seed)
        decisive = [event for event in events if event[1] != "store.txn"]
        expected = set()
        for place, later in enumerate(decisive):
            for earlier in decisive[max(0, place - coverage.WINDOW) : place]:
                pair = shown([earlier, later]).orders()
                assert len(pair) == (earlier[0] != later[0])
                expected.update(pair)
        assert shown(events).orders() == tuple(sorted(expected))


def test_an_order_tells_kinds_results_actors_and_objects_apart_but_not_kubelets() -> None:
    first = ("scheduler/red/0", "sched.bind", {"uid": "u1", "ok": True})
    pairs = {
        "same object": [first, ("kubelet/a", "kubelet.admit", {"uid": "u1", "ok": True})],
        "another object": [first, ("kubelet/a", "kubelet.admit", {"uid": "u2", "ok": True})],
        "another result": [first, ("kubelet/a", "kubelet.admit", {"uid": "u1", "ok": False})],
        "another kind": [first, ("kubelet/a", "kubelet.running", {"uid": "u1"})],
        "another actor": [first, ("controller/a", "kubelet.admit", {"uid": "u1", "ok": True})],
        "another order": [("kubelet/a", "kubelet.admit", {"uid": "u1", "ok": True}), first],
    }
    orders = {name: shown(events).orders() for name, events in pairs.items()}
    assert len(dict.fromkeys(orders.values())) == len(pairs)
    elsewhere = [first, ("kubelet/b", "kubelet.admit", {"uid": "u1", "ok": True})]
    assert shown(elsewhere).orders() == orders["same object"]


def test_timelines_with_more_orders_in_common_have_more_similar_signatures() -> None:
    stream = random.Random(1)
    events = some(stream, 300)
    whole = shown(events).signature()
    assert coverage.similarity(whole, shown(list(events)).signature()) == 1
    assert coverage.similarity(whole, shown(events[:250]).signature()) > coverage.similarity(
        whole, shown(some(random.Random(2), 3)).signature()
    )
    assert shown([]).signature() == (0,) * coverage.SIGNATURE_SIZE


def test_more_events_are_counted_in_when_orders_have_been_asked_for() -> None:
    events = some(random.Random(3), 40)
    timeline = shown(events[:20])
    assert timeline.orders() == shown(events[:20]).orders()
    for actor, kind, data in events[20:]:
        timeline(0, actor, kind, data)
    assert timeline.orders() == shown(events).orders()
