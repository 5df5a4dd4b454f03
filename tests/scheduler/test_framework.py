"""Extension points of the binding cycle, as a user's plugins see them."""

from __future__ import annotations

from typing import Any

from kemu.emulated.scheduler.framework.interfaces import (
    BindPlugin,
    Cycle,
    PermitPlugin,
    PostBindPlugin,
    PreBindPlugin,
    ReservePlugin,
    Skip,
)
from kemu.emulated.scheduler.framework.statuses import WAIT, Status, unschedulable
from tests.scheduler import objects
from tests.scheduler.runs import Run

HEARD: list[str] = []
"""What the plugins were asked, in order."""


class Witness(ReservePlugin, PermitPlugin, PreBindPlugin, BindPlugin, PostBindPlugin):
    """Notes what it is asked, and says no where the pod's labels want it."""

    def _note(self, what: str, cycle: Cycle, node: str) -> Status | None:
        HEARD.append(f"{self.name} {what} {cycle.name} {node}")
        return unschedulable(f"{what} says no") if cycle.labels.get("refuse") == what else None

    def reserve(self, cycle: Cycle, node: str) -> Status | None:
        return self._note("reserve", cycle, node)

    def unreserve(self, cycle: Cycle, node: str) -> None:
        self._note("unreserve", cycle, node)

    def permit(self, cycle: Cycle, node: str) -> tuple[Status | None, float]:
        status = self._note("permit", cycle, node)
        if "wait" in cycle.labels:
            return Status(WAIT), float(cycle.labels["wait"])
        return status, 0.0

    async def pre_bind(self, cycle: Cycle, node: str) -> Status | None:
        return self._note("pre-bind", cycle, node)

    async def bind(self, cycle: Cycle, node: str) -> Status | Skip | None:
        self._note("bind", cycle, node)
        return Skip.SKIP

    def post_bind(self, cycle: Cycle, node: str) -> None:
        self._note("post-bind", cycle, node)


class Second(ReservePlugin):
    def unreserve(self, cycle: Cycle, node: str) -> None:
        HEARD.append(f"{self.name} unreserve {cycle.name} {node}")


class Opener(PostBindPlugin):
    """Allows whoever waits as soon as the pod named "key" is bound."""

    def post_bind(self, cycle: Cycle, node: str) -> None:
        if cycle.name == "key":
            for waiting in list(self.handle.waiting.values()):
                for plugin in waiting.pending_plugins:
                    waiting.allow(plugin)


def scheduler(*names: str) -> dict[str, Any]:
    plugins = [{"name": f"{__name__}:{name}"} for name in names]
    first = [{"name": f"{__name__}:Witness"}, {"name": "DefaultBinder"}]
    return {"config": {"profiles": [{"plugins": {"multiPoint": {"enabled": plugins}, "bind": {"enabled": first}}}]}}


def play(*pods: Any, until_s: float = 3.0, names: tuple[str, ...] = ("Witness", "Second")) -> Run:
    HEARD.clear()
    run = Run()

    async def main(run: Run) -> None:
        await run.create(*pods)
        await run.at(until_s)

    run.play(main, [objects.node("n1")], [scheduler(*names)])
    return run


def test_the_points_come_in_order() -> None:
    run = play(objects.pod("p"))
    asked = ["reserve", "permit", "pre-bind", "bind", "post-bind"]
    assert [f"Witness {what} p n1" for what in asked] == HEARD
    assert run.bound() == {"p": "n1"}


def test_what_was_reserved_is_given_back_in_reverse_order() -> None:
    for refuse in ("permit", "pre-bind"):
        run = play(objects.pod("p", "9", labels={"refuse": refuse}), objects.pod("q", "9"))
        backwards = [one for one in HEARD if "unreserve" in one]
        assert backwards[:2] == ["Second unreserve p n1", "Witness unreserve p n1"]
        assert run.bound() == {"q": "n1"}


def test_a_pod_that_waits_for_its_permit_is_turned_away_in_the_end() -> None:
    run = play(objects.pod("p", labels={"wait": "2"}), until_s=2.5)
    first = run.told("sched.bind", "p")[0]
    assert not first["ok"]
    assert 2 < first["at"] < 2.1
    assert "rejected due to timeout after waiting 2s at plugin Witness" in first["message"]


def test_another_plugin_may_allow_it() -> None:
    run = play(objects.pod("p", labels={"wait": "60"}), objects.pod("key"), names=("Witness", "Opener"))
    assert run.bound() == {"p": "n1", "key": "n1"}


def test_a_waiting_pod_is_no_victim_of_the_api() -> None:
    """It is turned away instead of being deleted, and goes back to the queue."""
    run = play(objects.pod("p", "10", labels={"wait": "60"}), objects.pod("high", "10", priority=10))
    assert run.bound() == {"high": "n1"}
    assert [one["pod"] for one in run.told("sched.victim")] == ["default/p"]
    assert [one["ok"] for one in run.told("sched.bind", "p")] == [False]
    assert all(data["verb"] != "delete" for _, _, kind, data in run.recorder.events if kind == "api.request")
