"""Experiment switches make a difference in a run: what happens with each, and without.

``clearLowerNominations`` and ``cooperate`` are in :mod:`tests.scheduler.test_actor`, ``avoidEvictedNode`` in
:mod:`tests.scheduler.test_avoided_nodes`.
"""

from __future__ import annotations

from typing import Any

import pytest
import yaml

import kemu
from kemu.emulated.scheduler.experiments.switches import policy_of
from kemu.emulated.settings.declared import plain
from kemu.lab.scenario import catalog
from kemu.messages.k8s import core_v1_pb2
from tests.scheduler import objects
from tests.scheduler.runs import Run
from tests.scheduler.test_actor import lasting
from tests.scheduler.test_searches import away_from, near_to


def bindings(run: Run) -> dict[str, float]:
    return {one["pod"].partition("/")[2]: one["at"] for one in run.told("sched.bind") if one["ok"]}


def preempted(run: Run) -> list[tuple[str, str]]:
    """Victim and preemptor."""
    return [(one["pod"].partition("/")[2], one["by"].partition("/")[2]) for one in run.told("sched.victim")]


def play(policy: dict[str, Any], *pods: tuple[float, core_v1_pb2.Pod], until_s: float = 60, **config: Any) -> Run:
    """One node, or those of ``nodes``; ``running`` on them; ``pods`` come at their times."""
    run = Run()
    nodes = config.pop("nodes", [objects.node("n1")])
    running = config.pop("running", [])

    async def main(run: Run) -> None:
        for at_s, pod in pods:
            await run.at(at_s)
            await run.create(pod)
        await run.at(until_s)

    run.play(main, nodes, [{"policy": plain(policy_of(policy)), **config}], running)
    return run


@pytest.mark.parametrize(("queue", "first"), [("priority", "important"), ("fifo", "early")])
def test_queue(queue: str, first: str) -> None:
    """Both come while the scheduler is busy with another."""
    busy, early, important = objects.pod("busy"), objects.pod("early"), objects.pod("important", priority=10)
    run = play({"queue": queue}, (1, busy), (1.2, early), (1.4, important), timing={"schedulingCycle": 2})
    tried = [one["pod"].partition("/")[2] for one in run.told("sched.attempt")]
    assert tried[:2] == ["busy", first]


@pytest.mark.parametrize(("nomination", "taken"), [(True, False), (False, True)])
def test_nomination(nomination: bool, taken: bool) -> None:
    """P waits for the slower of two victims; does a small pod of lower priority get the room of the quicker one?"""
    quick, slow = lasting("quick", "5", 2, on="n1"), lasting("slow", "5", 30, on="n1")
    small = objects.pod("small", "5", priority=5)
    p = objects.pod("p", "10", priority=1000)
    run = play({"nomination": nomination}, (1, p), (6, small), running=[quick, slow])
    assert (bindings(run).get("small", 1000.0) < 10) is taken
    assert (("small", "p") in preempted(run)) is taken


@pytest.mark.parametrize(("pdb", "victim"), [("respect", "free"), ("ignore", "protected")])
def test_pdb(pdb: str, victim: str) -> None:
    protected = objects.pod("protected", "10", priority=1, on="n1", labels={"app": "db"})
    free = objects.pod("free", "10", priority=5, on="n2")
    run = Run()

    async def main(run: Run) -> None:
        budget = objects.budget("db", {"app": "db"}, 0)
        budget.ClearField("status")
        await run.client.create(budget)
        await run.at(2)
        await run.create(objects.pod("p", "10", priority=10))
        await run.at(10)

    nodes = [objects.node("n1"), objects.node("n2")]
    run.play(main, nodes, [{"policy": {"pdb": pdb}}], [protected, free])
    assert preempted(run) == [(victim, "p")]


@pytest.mark.parametrize(("first", "node"), [(True, "n1"), (False, "n2")])
def test_nominated_node_first(first: bool, node: str) -> None:
    """While the scheduler is busy, the victim ends and a better node joins."""
    run = Run()

    async def main(run: Run) -> None:
        await run.at(1)
        await run.create(objects.pod("p", "8", priority=1000))
        await run.at(13)
        await run.create(objects.pod("busy", "20"))
        await run.at(14)
        await run.client.create(objects.node("n2"))
        await run.at(40)

    running = [lasting("victim", "8", 10, on="n1"), objects.pod("resident", "2", priority=1000, on="n1")]
    config = {"policy": {"nominatedNodeFirst": first}, "timing": {"schedulingCycle": 4}}
    run.play(main, [objects.node("n1")], [config], running)
    assert preempted(run) == [("victim", "p")]
    assert run.bound()["p"] == node


def sure(name: str, cpu: str, **fields: Any) -> core_v1_pb2.Pod:
    """A Guaranteed pod."""
    amounts = {"cpu": cpu, "memory": "1Gi"}
    container = {"name": "main", "image": "app:1", "resources": {"requests": amounts, "limits": amounts}}
    return objects.pod(name, None, containers=[container], **fields)


@pytest.mark.parametrize(
    ("order", "victims"),
    [("priority", []), ("priority-then-qos", []), ("qos", [("web", "job")]), ("qos-only", [("web", "job")])],
)
def test_victim_order(order: str, victims: list[Any]) -> None:
    """The document's web server: Burstable, of very high priority; a Guaranteed job of low priority comes."""
    web = objects.pod("web", "6", priority=1000, on="n1")
    assert preempted(play({"victimOrder": order}, (1, sure("job", "6")), running=[web])) == victims


@pytest.mark.parametrize(
    ("order", "node"), [("priority", "n2"), ("priority-then-qos", "n2"), ("qos", "n1"), ("qos-only", "n1")]
)
def test_victim_order_decides_between_nodes_too(order: str, node: str) -> None:
    """Guaranteed pods of a lower priority on n2, a Burstable one of a higher priority on n1."""
    nodes = [objects.node("n1"), objects.node("n2")]
    running = [objects.pod("burstable", "10", priority=9, on="n1"), sure("guaranteed", "10", priority=1, on="n2")]
    run = play({"victimOrder": order}, (1, sure("p", "10", priority=10)), nodes=nodes, running=running)
    assert run.bound() == {"p": node}


@pytest.mark.parametrize(("order", "victim"), [("priority", "burstable"), ("priority-then-qos", "best-effort-like")])
def test_qos_breaks_ties_between_pods_of_one_node(order: str, victim: str) -> None:
    """Of equal priority. Kubernetes preempts the pod that started last; the document, the one of the lower class."""
    older = objects.pod("best-effort-like", "5", priority=1, on="n1")
    newer = sure("burstable", "5", priority=1, on="n1")
    older.status.startTime.seconds, newer.status.startTime.seconds = 100, 200
    assert preempted(play({"victimOrder": order}, (1, objects.pod("p", "5", priority=9)), running=[older, newer])) == [
        (victim, "p")
    ]


@pytest.mark.parametrize(("order", "node"), [("priority", "n2"), ("priority-then-qos", "n1")])
def test_qos_breaks_ties_between_nodes(order: str, node: str) -> None:
    """Of equal priority: the pod of n2 started last, that of n1 has the lower class."""
    low, high = objects.pod("low", "10", priority=1, on="n1"), sure("high", "10", priority=1, on="n2")
    low.status.startTime.seconds, high.status.startTime.seconds = 100, 200
    nodes = [objects.node("n1"), objects.node("n2")]
    p = objects.pod("p", "10", priority=9)
    assert play({"victimOrder": order}, (1, p), nodes=nodes, running=[low, high]).bound() == {"p": node}


@pytest.mark.parametrize(("order", "victims"), [("qos", [("web", "job")]), ("qos-only", [])])
def test_qos_instead_of_priority_preempts_nobody_of_its_own_class(order: str, victims: list[Any]) -> None:
    web, job = sure("web", "6", priority=1, on="n1"), sure("job", "6", priority=1000)
    assert preempted(play({"victimOrder": order}, (1, job), running=[web])) == victims


@pytest.mark.parametrize(
    ("clear", "cleared"),
    [("current", ["small", "middle"]), ("always", ["small", "middle"]), ("if-unfit", ["middle"]), ("never", [])],
)
def test_which_lower_nominations_are_cleared(clear: str, cleared: list[str]) -> None:
    """``small`` and ``middle`` wait for room on the node; ``big`` preempts there, and only ``small`` fits beside it."""
    running = [lasting("a", "4", 30, priority=1, on="n1"), lasting("b", "6", 60, priority=2, on="n1")]
    middle, small = objects.pod("middle", "3", priority=20), objects.pod("small", "1", priority=10)
    big = objects.pod("big", "9", priority=30)
    run = play({"clearLowerNominations": clear}, (1, middle), (2, small), (3, big), until_s=10, running=running)
    told = [(one["pod"].partition("/")[2], one["node"]) for one in run.told("sched.nominated")]
    assert {pod for pod, node in told if node} == {"small", "middle", "big"}
    assert sorted({pod for pod, node in told if not node}) == sorted(cleared)


@pytest.mark.parametrize(("requeue", "attempts"), [("hints", 1), ("all", 3)])
def test_requeue(requeue: str, attempts: int) -> None:
    """P is too large for the node. Neither a label of the node nor one of a running pod can help it."""
    run = Run()

    async def main(run: Run) -> None:
        await run.at(1)
        await run.create(objects.pod("p", "11", priority=10))
        await run.at(5)
        await run.client.patch("nodes", "n1", "", {"metadata": {"labels": {"colour": "red"}}})
        await run.at(15)
        await run.client.patch("pods", "resident", "default", {"metadata": {"labels": {"colour": "red"}}})
        await run.at(30)

    run.play(main, [objects.node("n1")], [{"policy": {"requeue": requeue}}], [objects.pod("resident", "1", on="n1")])
    assert len(run.told("sched.attempt", "p")) == attempts


def test_requeue_all_counts_what_happens_during_an_attempt() -> None:
    run = Run()

    async def main(run: Run) -> None:
        await run.at(1)
        await run.create(objects.pod("p", "11", priority=10))
        await run.at(2)
        await run.client.patch("nodes", "n1", "", {"metadata": {"labels": {"colour": "red"}}})
        await run.at(30)

    config = {"policy": {"requeue": "all"}, "timing": {"schedulingCycle": 3}}
    run.play(main, [objects.node("n1")], [config], [])
    assert len(run.told("sched.attempt", "p")) == 2


@pytest.mark.parametrize("requeue", ["hints", "all"])
def test_a_preemptor_takes_a_node_that_joins_while_its_victim_ends(requeue: str) -> None:
    """ "Remove all the pods from the unschedulable pods list" means preemptors, too: whatever they wait for."""
    run = Run()

    async def main(run: Run) -> None:
        await run.at(1)
        await run.create(objects.pod("p", "10", priority=10))
        await run.at(20)
        await run.client.create(objects.node("n2"))
        await run.at(120)

    run.play(main, [objects.node("n1")], [{"policy": {"requeue": requeue}}], [lasting("slow", "10", 100, on="n1")])
    assert preempted(run) == [("slow", "p")]
    assert run.bound() == {"p": "n2"}
    assert 20 < bindings(run)["p"] < 21


def test_requeue_all_tries_a_preemptor_again_when_its_victims_have_been_told_to_go() -> None:
    """Their status changes, which is an event like any other."""
    victims = [lasting("a", "5", 100, on="n1"), lasting("b", "5", 100, on="n1")]
    run = play({"requeue": "all"}, (1, objects.pod("p", "10", priority=10)), until_s=10, running=victims)
    assert len(preempted(run)) == 2
    over = max(one["at"] for one in run.told("sched.victim"))
    attempts = [one["at"] for one in run.told("sched.attempt", "p")]
    assert attempts[0] < over < attempts[1] < over + 0.01
    assert not run.bound()


@pytest.mark.parametrize(("requeue", "bound"), [("hints", False), ("all", True)])
def test_requeue_all_counts_what_happens_while_victims_are_told_to_go(requeue: str, bound: bool) -> None:
    """The second preemption finds its victim gone, and nothing happens any more when it is over."""
    scenario = yaml.safe_load(catalog.find("museum/141694-preemptor-that-nothing-wakes").read_text())
    spec = {key: value for key, value in scenario["spec"].items() if key not in ("matrix", "expect")}
    run = kemu.run({**spec, "schedulers": [{"name": "default-scheduler", "policy": {"requeue": requeue}}]})
    assert run.pods["preemptor"].running is bound


def test_requeue_all_leaves_pods_with_gates_alone() -> None:
    """They are no unschedulable pods: nobody has tried them."""
    run = Run()

    async def main(run: Run) -> None:
        await run.at(1)
        await run.create(objects.pod("p", "1", schedulingGates=[{"name": "example.com/wait"}]))
        for second in (5, 15, 25):
            await run.at(second)
            await run.client.patch("nodes", "n1", "", {"metadata": {"labels": {"second": str(second)}}})
        await run.at(30)

    run.play(main, [objects.node("n1")], [{"policy": {"requeue": "all"}}], [])
    assert not run.told("sched.attempt", "p")
    assert not run.told("sched.queued", "p")


def test_qos_first_loops_where_the_victim_comes_back() -> None:
    """The web server's replacement has the higher priority: it ignores the job's nomination and goes first."""
    run = Run()

    async def main(run: Run) -> None:
        await run.at(1)
        await run.create(sure("job", "10"))
        replaced = 0
        for second in range(2, 90):
            await run.at(second)
            if len(preempted(run)) > replaced:
                # As a ReplicaSet does: the next one as soon as this one terminates.
                replaced += 1
                await run.create(lasting(f"web-{replaced}", "10", 5, priority=1000))

    web = lasting("web-0", "10", 5, priority=1000, on="n1")
    run.play(main, [objects.node("n1")], [{"policy": {"victimOrder": "qos"}}], [web])
    assert len(preempted(run)) >= 3
    assert {by for _, by in preempted(run)} == {"job"}


@pytest.mark.parametrize(("eligibility", "waits"), [("current", False), ("alpha", True)])
def test_eligibility(eligibility: str, waits: bool) -> None:
    """P's nominated node is cordoned while its victim takes a minute to end there."""
    run = Run()
    nodes = [objects.node("n1"), objects.node("n2")]
    running = [
        lasting("slow", "10", 60, on="n1"),
        objects.pod("other", "9", priority=5, on="n2"),
        objects.pod("bystander", "1", priority=5, on="n2"),
    ]

    async def main(run: Run) -> None:
        await run.at(1)
        await run.create(objects.pod("p", "10", priority=10))
        await run.at(5)
        await run.client.patch("nodes", "n1", "", {"spec": {"unschedulable": True}})
        await run.at(20)
        await run.client.delete("pods", "bystander", "default")
        await run.at(90)

    run.play(main, nodes, [{"policy": {"eligibility": eligibility}}], running)
    assert [victim for victim, _ in preempted(run)] == ["slow", "other"]
    assert (bindings(run)["p"] > 60) is waits


@pytest.mark.parametrize("disabled", [{"disablePreemption": True}, {"preemptor": "none"}])
def test_nobody_preempts(disabled: dict[str, Any]) -> None:
    running = [objects.pod("low", "10", on="n1")]
    assert not preempted(play(disabled, (1, objects.pod("p", "10", priority=10)), running=running))
    assert preempted(play({}, (1, objects.pod("p", "10", priority=10)), running=running)) == [("low", "p")]


@pytest.mark.parametrize("on", [True, False])
def test_cross_node_preemption(on: bool) -> None:
    """P waits for Q on the other node, is bound when Q is gone, and has told nobody else to go."""
    zone = {objects.ZONE: "a"}
    nodes = [objects.node("n", zone), objects.node("m", zone)]
    running = [
        objects.pod("heavy", "8", priority=2000, on="m"),
        lasting("q", "1", 20, on="m", labels={"app": "q"}),
        objects.pod("idle", "1", on="m"),
    ]
    p = objects.pod("p", "5", priority=10, **away_from("q"))
    # Its arrival and its end bring P back to the queue while Q terminates.
    short = objects.pod("short", "1")
    short.metadata.annotations["kemu.dev/run-seconds"] = "2"
    run = play({"crossNodePreemption": on}, (1, p), (5, short), nodes=nodes, running=running)
    if not on:
        assert not preempted(run)
        assert "p" not in run.bound()
        assert not run.told("sched.search")
        return
    assert preempted(run) == [("q", "p")]
    assert run.bound()["p"] == "n"
    assert 21 < bindings(run)["p"] < 22
    search = run.told("sched.search")[0]
    assert (search["algorithm"], search["found"], search["gave_up"]) == ("crossNodePreemption", True, False)


def test_a_search_takes_time() -> None:
    zone = {objects.ZONE: "a"}
    nodes = [objects.node("n", zone), objects.node("m", zone)]
    running = [objects.pod("heavy", "8", priority=2000, on="m"), objects.pod("q", on="m", labels={"app": "q"})]
    p = objects.pod("p", "5", priority=10, **away_from("q"))
    timing = {"schedulingCycle": {"base": 0.5, "perNode": 0, "perEvaluation": 0.25}}
    run = play({"crossNodePreemption": True}, (1, p), nodes=nodes, running=running, timing=timing)
    (search,) = run.told("sched.search")
    first = run.told("sched.attempt", "p")[0]
    assert search["at"] - search["start"] / 1e9 == pytest.approx(0.25 * search["evaluations"])
    assert first["at"] - first["start"] / 1e9 == pytest.approx(0.5 + 0.25 * search["evaluations"])


@pytest.mark.parametrize("on", [True, False])
def test_lower_priority_affinity(on: bool) -> None:
    running = [objects.pod("cache", "2", on="n1", labels={"app": "cache"}), objects.pod("batch", "8", on="n1")]
    p = objects.pod("p", "5", priority=10, **near_to("cache"))
    run = play({"lowerPriorityAffinity": on}, (1, p), running=running)
    assert preempted(run) == ([("batch", "p")] if on else [])
    assert run.bound() == ({"p": "n1"} if on else {})
