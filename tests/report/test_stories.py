"""The story of a run, as a person reads it."""

from __future__ import annotations

from typing import Any

from kemu.checks.history import History
from kemu.report import stories
from tests.scheduler import objects
from tests.scheduler.runs import Run
from tests.scheduler.test_actor import lasting
from tests.scheduler.test_reports import waiting_scheduler


def lines(run: Run) -> list[tuple[str, str, str]]:
    history = History()
    for event in run.recorder.events:
        history.feed(*event)
    return [(line.who, line.what, line.why) for line in stories.tell(history, 100)[0]]


def preemption(schedulers: list[dict[str, Any]]) -> Run:
    run = Run()

    async def main(run: Run) -> None:
        await run.at(5)
        name = schedulers[0].get("name", "default-scheduler")
        await run.create(objects.pod("high", "10", priority=10, scheduler=name))
        await run.at(20)

    run.play(main, [objects.node("n1")], schedulers, [lasting("low", "5", 5, on="n1")])
    return run


def test_a_preemption_names_the_replica() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({}, "scheduler"),
        ({"replica": 2}, "scheduler default-scheduler/2"),
        ({"name": "a", "replica": 1}, "scheduler a/1"),
    ]
    for scheduler, who in cases:
        told = lines(preemption([scheduler]))
        assert (who, "low is preempted on n1", "makes room for high (priority 10 > 0)") in told


def test_a_victim_that_waits_for_its_permit_is_turned_away() -> None:
    run = Run()

    async def main(run: Run) -> None:
        await run.create(objects.pod("low", "10", labels={"wait": "60"}))
        await run.at(5)
        await run.create(objects.pod("high", "10", priority=10))
        await run.at(10)
        await run.client.delete("pods", "low", "default")
        await run.at(11)

    run.play(main, [objects.node("n1")], [waiting_scheduler()])
    told = [what for _, what, _ in lines(run)]
    assert "low is turned away from n1 while it waits for its permit" in told
    assert "low is preempted on n1" not in told


def test_without_nominations_nobody_speaks_of_a_nominated_node() -> None:
    run = preemption([{"policy": {"nomination": False}}])
    messages = [one["message"] for one in run.told("sched.attempt", "high")]
    assert not any("nominated node" in message for message in messages)

    run = Run()

    async def main(run: Run) -> None:
        await run.at(5)
        await run.create(objects.pod("high", "10", priority=10))
        await run.at(60)

    victims = [lasting("slow", "5", 40, on="n1"), lasting("quick", "5", 10, on="n1")]
    run.play(main, [objects.node("n1")], [{"policy": {"nomination": False}}], victims)
    (_, again, *_) = [one["message"] for one in run.told("sched.attempt", "high")]
    assert again.endswith("not eligible due to a terminating pod on the node where it has preempted.")
