"""From the choice of a node until the pod is bound: waiting for a permit, PreBind, and what others see of it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from kemu.emulated.scheduler.framework.interfaces import SKIP, Cycle, PermitPlugin, PreBindPlugin, Skip
from kemu.emulated.scheduler.framework.statuses import ERROR, WAIT, Status, unschedulable
from kemu.lab.scenario.loading import loader
from kemu.lab.scenario.playing import runner
from kemu.messages.k8s import core_v1_pb2
from tests.scheduler import objects
from tests.scheduler.runs import Run

HEARD: list[str] = []
"""What the PreBind plugin was asked, in order."""


class Gang(PermitPlugin):
    """All pods of a gang are bound, or none: they wait for each other, as long as the label says.

    Labels: ``gang`` (its name), ``members`` (how many there must be), ``patience`` (seconds), and ``spoils``: this one
    sends all home.
    """

    def permit(self, cycle: Cycle, node: str) -> tuple[Status | None, float]:
        gang = cycle.labels.get("gang")
        if not gang:
            return None, 0.0
        others = [one for one in self.handle.waiting.values() if one.pod.labels.get("gang") == gang]
        if "spoils" in cycle.labels:
            for one in others:
                one.reject(self.name, "the gang is spoilt")
            return unschedulable("the gang is spoilt"), 0.0
        if len(others) + 1 < int(cycle.labels["members"]):
            return Status(WAIT), float(cycle.labels["patience"])
        for one in others:
            one.allow(self.name)
        return None, 0.0


class Volumes(PreBindPlugin):
    """Mounts what the label ``mount`` says: takes so many seconds. ``flight`` and ``fails`` are labels, too."""

    def pre_bind_pre_flight(self, cycle: Cycle, node: str) -> Status | Skip | None:
        flight = cycle.labels.get("flight")
        if flight:
            return Status(ERROR, ("out of fuel",)) if flight == "fails" else unschedulable("fog")
        return None if "mount" in cycle.labels else SKIP

    async def pre_bind(self, cycle: Cycle, node: str) -> Status | None:
        assert self.handle.clock is not None
        HEARD.append(f"mount {cycle.name}")
        try:
            await self.handle.clock.sleep(float(cycle.labels["mount"]))
        except asyncio.CancelledError:
            HEARD.append(f"interrupted {cycle.name}")
            raise
        how = cycle.labels.get("fails")
        if how:
            return Status(ERROR, ("no such volume",)) if how == "error" else unschedulable("no volume free")
        HEARD.append(f"mounted {cycle.name}")
        return None


def scheduler(name: str = "", **config: Any) -> dict[str, Any]:
    plugins = [{"name": f"{__name__}:{plugin}"} for plugin in ("Gang", "Volumes")]
    profile: dict[str, Any] = {"plugins": {"multiPoint": {"enabled": plugins}}}
    return {"config": {"profiles": [profile]}, **config}


def gang(name: str, cpu: str = "6", *, members: int = 2, patience: float = 60, **labels: str) -> core_v1_pb2.Pod:
    return objects.pod(
        name, cpu, labels={"gang": "g", "members": str(members), "patience": str(patience), **labels}
    )  # fmt: skip


def mounting(name: str, cpu: str = "6", seconds: float = 20, *, priority: int = 0, **labels: str) -> core_v1_pb2.Pod:
    return objects.pod(name, cpu, priority=priority, labels={"mount": str(seconds), **labels})


def play(*pods: tuple[float, core_v1_pb2.Pod], until_s: float = 60, nodes: int = 1, **config: Any) -> tuple[Run, Any]:
    """``pods`` come at their times. Also what is in the store at every whole second: nominations by pod."""
    HEARD.clear()
    run = Run()
    seen: dict[int, dict[str, str]] = {}

    async def watch() -> None:
        second = 0
        while True:
            await run.at(second)
            listed = await run.client.list("pods", namespace="default")
            seen[second] = {
                one.metadata.name: one.status.nominatedNodeName for one in listed.items if one.status.nominatedNodeName
            }
            second += 1

    async def main(run: Run) -> None:
        watching = asyncio.get_running_loop().create_task(watch())
        for at_s, pod in pods:
            await run.at(at_s)
            await run.create(pod)
        await run.at(until_s)
        watching.cancel()

    run.play(main, [objects.node(f"n{number + 1}") for number in range(nodes)], [scheduler(**config)])
    return run, seen


def nominations(run: Run, name: str) -> list[tuple[int, str, str]]:
    """At which second, which node, and what for."""
    return [(int(one["at"]), one["node"], one["why"]) for one in run.told("sched.nominated", name)]


def reasons_of(run: Run, name: str) -> list[str]:
    """Of the condition PodScheduled, as it was written."""
    found = []
    for _, _, kind, data in run.recorder.events:
        for op, key, value, *_ in data["changes"] if kind == "store.txn" else ():
            if op == 0 and key == f"/registry/pods/default/{name}":
                for one in core_v1_pb2.Pod.FromString(value).status.conditions:
                    if one.type == "PodScheduled" and one.reason not in found:
                        found.append(one.reason)
    return found


# Permit -------------------------------------------------------------------------------------------------------------


def test_a_pod_that_waits_for_its_permit_is_nominated_until_it_is_bound() -> None:
    run, seen = play((2, gang("a")), (12, gang("b", "2")), until_s=20)
    assert nominations(run, "a") == [(2, "n1", "binding")]
    assert [second for second in seen if "a" in seen[second]] == list(range(3, 13))
    # The last one does not wait, so nobody has to be told where it will go.
    assert nominations(run, "b") == []
    assert {one["pod"]: int(one["at"]) for one in run.told("sched.bind")} == {"default/a": 12, "default/b": 12}


def test_one_that_waits_in_vain_loses_its_nomination_and_is_tried_again() -> None:
    run, _ = play((2, gang("a", patience=10)), until_s=20)
    first, *_ = run.told("sched.bind", "a")
    assert (int(first["at"]), first["ok"], first["reason"]) == (12, False, "Gang")
    assert first["message"].endswith("1 rejected due to timeout after waiting 10s at plugin Gang.")
    (set_at, _, _), (cleared_at, node, why), (again_at, _, _) = nominations(run, "a")
    assert (set_at, cleared_at, node, why) == (2, 12, "", "")
    # The end of its own nomination wakes it, as that of any pod of its priority; its back-off counts from the failure.
    assert again_at in (12, 13, 14)
    assert [two["result"] for two in run.told("sched.attempt", "a")] == ["scheduled", "scheduled"]


def test_one_that_is_denied_loses_its_nomination() -> None:
    run, _ = play((2, gang("a")), (12, gang("b", "2", spoils="yes")), until_s=12.9)
    first, *_ = run.told("sched.bind", "a")
    assert (first["ok"], first["message"]) == (False, "0/1 nodes are available: 1 the gang is spoilt.")
    assert nominations(run, "a")[:2] == [(2, "n1", "binding"), (12, "", "")]
    # Whoever is denied at once was never nominated.
    assert run.told("sched.attempt", "b")[0]["result"] == "unschedulable"
    assert nominations(run, "b") == []


def test_a_nomination_by_preemption_is_replaced() -> None:
    """It goes where room comes about sooner."""
    run = Run()
    slow = objects.pod("slow", "8", on="n1", terminationGracePeriodSeconds=30)
    slow.metadata.annotations["kemu.dev/shutdown-seconds"] = "30"
    big = objects.pod("big", "10", priority=50, on="n2")

    async def main(run: Run) -> None:
        await run.at(2)
        vip = gang("vip", "8")
        vip.spec.priority = 10
        await run.create(vip)
        await run.at(10)
        await run.client.delete("pods", "big", "default", grace_period_seconds=0)
        await run.at(15)
        assert (await run.get("vip")).status.nominatedNodeName == "n2"

    run.play(main, [objects.node("n1"), objects.node("n2")], [scheduler()], [slow, big])
    assert nominations(run, "vip") == [(2, "n1", "preemption"), (10, "n2", "binding")]


@pytest.mark.parametrize("policy", [{"nomination": False}, {"statusWrites": "background"}])
def test_switches(policy: dict[str, Any]) -> None:
    run, seen = play((2, gang("a")), (12, gang("b", "2")), until_s=20, policy=policy)
    assert [second for second in seen if "a" in seen[second]] == (
        list(range(3, 13)) if "statusWrites" in policy else []
    )
    assert sorted(run.bound()) == ["a", "b"]


def test_others_hear_of_a_rejected_pod_when_its_status_is_written() -> None:
    """handleBindingCycleError defers that event until the failure has been handled, which includes the status."""
    too_big = objects.pod("too-big", "20", priority=10)
    run, _ = play((1, too_big), (2, gang("a", patience=10)), until_s=12.9)
    cleared = next(one["at"] for one in run.told("sched.nominated", "a") if not one["node"])
    first, again = (one["at"] for one in run.told("sched.attempt", "too-big"))
    assert (int(first), int(again)) == (1, 12)
    assert again >= cleared


# PreBind ------------------------------------------------------------------------------------------------------------


def test_a_pod_for_which_pre_bind_works_is_nominated_until_it_is_bound() -> None:
    run, seen = play((2, mounting("a", seconds=10)), (3, objects.pod("b", "2")), until_s=20)
    assert nominations(run, "a") == [(2, "n1", "binding")]
    assert [second for second in seen if "a" in seen[second]] == list(range(3, 13))
    assert HEARD == ["mount a", "mounted a"]
    # For the other one PreBind has nothing to do: it is not asked, and bound at once.
    assert nominations(run, "b") == []
    assert {one["pod"]: int(one["at"]) for one in run.told("sched.bind")} == {"default/a": 12, "default/b": 3}


@pytest.mark.parametrize(
    ("fails", "reason", "message"),
    [
        ("error", "SchedulerError", 'running PreBind plugin "Volumes": no such volume'),
        ("reject", "Unschedulable", "no volume free"),
    ],
)
def test_when_pre_bind_fails_the_nomination_goes_and_the_pod_backs_off(fails: str, reason: str, message: str) -> None:
    """Nothing has to happen for it to be tried again, also where the plugin turned it away."""
    run, _ = play((2, mounting("a", seconds=3, fails=fails)), until_s=14)
    reasons = reasons_of(run, "a")
    assert nominations(run, "a")[:2] == [(2, "n1", "binding"), (5, "", "")]
    first, *more = run.told("sched.bind", "a")
    assert (int(first["at"]), first["ok"], first["message"]) == (5, False, message)
    assert more
    tried = [int(one["at"]) for one in run.told("sched.attempt", "a")]
    assert tried[:2] == [2, 7]
    assert reasons[0] == reason


@pytest.mark.parametrize(
    ("flight", "message"),
    [
        ("fails", 'running PreBindPreFlight "Volumes": out of fuel'),
        ("rejects", 'PreBindPreFlight Volumes returned "Unschedulable", which is unsupported.'),
    ],
)
@pytest.mark.parametrize("waits", [False, True])
def test_when_the_pre_flight_fails_nothing_was_said(waits: bool, flight: str, message: str) -> None:
    """Also where the pod would have had to wait for its permit: that is over at once."""
    pod = gang("a", flight=flight) if waits else mounting("a", flight=flight)
    run, seen = play((2, pod), until_s=3)
    (first,) = run.told("sched.bind", "a")
    assert (int(first["at"]), first["ok"]) == (2, False)
    assert first["message"].startswith(message)
    assert nominations(run, "a") == []
    assert not any(seen.values())
    assert HEARD == []


def test_a_preemptor_turns_away_who_is_in_pre_bind() -> None:
    run, _ = play((2, mounting("low", "8")), (6, objects.pod("high", "8", priority=10)), until_s=12)
    assert HEARD == ["mount low", "interrupted low"]
    (victim,) = run.told("sched.victim")
    assert (victim["pod"], victim["by"], victim["how"]) == ("default/low", "default/high", "rejected")
    (refused,) = run.told("sched.bind", "low")
    assert (refused["ok"], refused["message"]) == (
        False,
        'running PreBind plugin "Volumes": preempted by DefaultPreemption',
    )
    assert all(data["verb"] != "delete" for _, _, kind, data in run.recorder.events if kind == "api.request")
    assert run.bound() == {"high": "n1"}
    assert nominations(run, "low") == [(2, "n1", "binding"), (6, "", "")]


def test_the_end_of_a_binding_is_news_also_when_the_pod_was_deleted_long_before() -> None:
    """The event comes when the pod is deleted, and when its binding fails: to forget who is gone is no error."""
    too_big = objects.pod("too-big", "20")

    async def main(run: Run) -> None:
        await run.create(too_big)
        await run.at(2)
        await run.create(mounting("a", seconds=20))
        await run.at(8)
        await run.client.delete("pods", "a", "default")
        await run.at(30)

    run = Run()
    run.play(main, [objects.node("n1")], [scheduler()])
    assert [int(one["at"]) for one in run.told("sched.attempt", "too-big")] == [0, 8, 22]
    (refused,) = run.told("sched.bind", "a")
    assert (refused["ok"], refused["reason"]) == (False, "NotFound")


# Another scheduler --------------------------------------------------------------------------------------------------

TWO_SCHEDULERS = """
apiVersion: kemu.dev/v1
kind: Scenario
spec:
  duration: 2m
  nodes: [{name: n1, allocatable: {cpu: "10", memory: 16Gi}}]
  schedulers:
  - name: default-scheduler
    config:
      profiles: [{plugins: {multiPoint: {enabled: [{name: "tests.scheduler.test_bindings:PLUGIN"}]}}}]
  - {name: other, policy: {cooperate: COOPERATE}}
  events:
  - at: 5s
    create:
      apiVersion: v1
      kind: Pod
      metadata: {name: a, labels: {gang: g, members: "2", patience: "90", mount: "40"}}
      spec: {containers: [{name: main, resources: {requests: {cpu: "6"}}}]}
  - at: 15s
    create:
      apiVersion: v1
      kind: Pod
      metadata: {name: rival}
      spec: {schedulerName: other, containers: [{name: main, resources: {requests: {cpu: "6"}}}]}
  - at: 45s
    create:
      apiVersion: v1
      kind: Pod
      metadata: {name: b, labels: {gang: g, members: "2", patience: "90"}}
      spec: {containers: [{name: main}]}
"""


@pytest.mark.parametrize("plugin", ["Gang", "Volumes"])
@pytest.mark.parametrize("cooperate", [True, False])
def test_another_scheduler_leaves_room_for_who_waits(plugin: str, cooperate: bool, tmp_path: Path) -> None:
    HEARD.clear()
    text = TWO_SCHEDULERS.replace("PLUGIN", plugin).replace("COOPERATE", "on" if cooperate else "off")
    result, again = (
        runner.run(loader.loads(text), runner.Options(out=tmp_path / name, runtime="sim")) for name in ("one", "two")
    )
    assert result.verdict["digest"] == again.verdict["digest"]
    facts = {
        one.key.partition("/")[2]: [(fact.what, int(fact.time_ns / 1e9)) for fact in one.facts]
        for one in result.history.pods.values()
    }
    assert ("nominated", 5) in facts["a"]
    assert ("bound", 45) in facts["a"]
    assert ("nominationCleared", 45) not in facts["a"]
    whats = {name: [what for what, _ in facts[name]] for name in facts}
    if cooperate:
        assert "bound" not in whats["rival"]
        assert "running" in whats["a"]
    else:
        # It took the room of which nobody had told it, and the one who waited comes too late.
        assert ("bound", 15) in facts["rival"]
        assert "rejected" in whats["a"]
